//! Reasons to stop early: SIGINT, SIGTERM, the wall-time limit and the end of a queue. The first signal asks the run loop to save
//! and stop, a second SIGINT ends the process at once. What takes long inside a step asks [`stop_reason`] on its way.

mod beside;

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Instant;

use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::error::{Error, Result};

/// The signal that came last while somebody listened.
static SIGNAL: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);
/// The earliest limit of the runs at work, nanoseconds after [`EPOCH`].
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);
/// The limits of all of them.
static LIMITS: Mutex<Vec<u64>> = Mutex::new(Vec::new());
/// Origin of the time limit.
static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);
/// Process whose end is a reason to stop, 0 where there is none.
static LEADER: AtomicU32 = AtomicU32::new(0);
/// Runs under way.
static LISTENING: Mutex<usize> = Mutex::new(0);

/// Every reason to stop.
pub(crate) const REASONS: [&str; 5] = ["SIGINT", "SIGTERM", "the wall-time limit", LIVE_PAGE, QUEUE_ENDED];
/// Reason of [`request_stop`], and of whoever stops a run on its page.
pub const LIVE_PAGE: &str = "the live page";
/// Reason of [`end_with`].
const QUEUE_ENDED: &str = "the end of its queue";
/// Number that stands for [`LIVE_PAGE`] in place of a signal's.
const REQUESTED: usize = usize::MAX;

/// Changes the limits of the runs at work.
fn change_limits(change: impl FnOnce(&mut Vec<u64>)) {
    let mut limits = LIMITS.lock().unwrap_or_else(PoisonError::into_inner);
    change(&mut limits);
    LIMIT.store(limits.iter().copied().min().unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// Asks the runs of this process to save and stop, as SIGTERM does; without a run it does nothing.
pub fn request_stop() {
    if *LISTENING.lock().unwrap_or_else(PoisonError::into_inner) > 0 {
        SIGNAL.store(REQUESTED, Ordering::Relaxed);
    }
}

/// Makes the end of the process `leader` that started this one a reason to stop: a queue that was killed hands no signal on.
pub fn end_with(leader: u32) {
    LEADER.store(leader, Ordering::Relaxed);
}

/// Returns true if the process of [`end_with`] has ended: children go to another one then.
fn is_orphaned() -> bool {
    let leader = LEADER.load(Ordering::Relaxed);
    #[cfg(unix)]
    return leader != 0 && std::os::unix::process::parent_id() != leader;
    #[cfg(not(unix))]
    false
}

/// The reason to stop, if there is one: `SIGINT`, `SIGTERM`, `the wall-time limit`, `the live page` or `the end of its queue`.
///
/// Any thread may ask, and it costs about ten nanoseconds. A solver whose step can take longer than a second asks between parts of
/// it, and returns from [`crate::sim::Solver::step`] with its clock where it was and a state that the next call continues from; the
/// run loop then saves that state and stops.
pub fn stop_reason() -> Option<&'static str> {
    const INTERRUPT: usize = SIGINT as usize;
    const TERMINATE: usize = SIGTERM as usize;
    match SIGNAL.load(Ordering::Relaxed) {
        INTERRUPT => Some("SIGINT"),
        TERMINATE => Some("SIGTERM"),
        REQUESTED => Some(LIVE_PAGE),
        _ if is_orphaned() => Some(QUEUE_ENDED),
        _ => match LIMIT.load(Ordering::Relaxed) {
            u64::MAX => None,
            limit => (EPOCH.elapsed().as_nanos() as u64 >= limit).then_some("the wall-time limit"),
        },
    }
}

/// Source of reasons to stop.
pub type Ask = fn() -> Option<&'static str>;

thread_local! {
    /// Who is asked by a thread whose present work can be broken off.
    static INTERRUPTIBLE: Cell<Option<Ask>> = const { Cell::new(None) };
}

/// Lets [`Interruption::check`] break `work` off, which will be done again.
pub(crate) fn while_interruptible<R>(work: impl FnOnce() -> R) -> R {
    while_asking(stop_reason, work)
}

/// Lets [`Interruption::check`] break `work` off, which is not wanted any more, where `ask` has a reason.
pub fn while_asking<R>(ask: Ask, work: impl FnOnce() -> R) -> R {
    let before = INTERRUPTIBLE.replace(Some(ask));
    let result = work();
    INTERRUPTIBLE.set(before);
    result
}

/// Permission to break off the work of the thread that made it when there is a reason to stop. Other threads may ask on its behalf.
#[derive(Debug, Clone, Copy)]
pub struct Interruption(Option<Ask>);

/// Returns the permission of this thread at this moment.
pub fn interruption() -> Interruption {
    Interruption(INTERRUPTIBLE.get())
}

impl Interruption {
    /// Ends the work where there is a reason to stop: between two files of results, which a run that is gone on with writes again,
    /// or between two steps of a solution that somebody waits for.
    ///
    /// # Errors
    /// [`Error::Interrupted`], for the run loop.
    pub fn check(self) -> Result<()> {
        match self.0.and_then(|ask| ask()) {
            None => Ok(()),
            Some(reason) => Err(Error::Interrupted { reason, step: 0, checkpoint: None }),
        }
    }
}

/// Hands the signal that asked this process to stop on to another one; SIGTERM where that was the wall-time limit.
pub fn forward(process: u32) {
    let signal = match SIGNAL.load(Ordering::Relaxed) {
        0 | REQUESTED => SIGTERM,
        signal => signal as i32,
    };
    #[cfg(unix)]
    // SAFETY: sends a signal; a process that has ended is an error that nobody needs.
    unsafe {
        libc::kill(process as libc::pid_t, signal);
    }
}

/// Makes a file that grows beyond the limit on its length (`ulimit -f`) an error of the write, where the system would end the
/// process.
pub fn survive_limits_on_files() {
    #[cfg(unix)]
    // SAFETY: ignoring a signal runs no code of ours.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// Handlers of the signals and the wall-time limit of one run, once it has one. They are taken off when this is dropped.
#[derive(Debug)]
pub struct Signals {
    until: Option<Instant>,
    /// The limit as [`LIMITS`] has it, unless the run rests.
    limit: Option<u64>,
    /// Those of a process that is this run; else they are [`beside`] others.
    handlers: Option<Vec<SigId>>,
}

impl Signals {
    /// Puts the handlers in place.
    pub fn listen() -> Result<Self> {
        let once = Arc::new(AtomicBool::new(false));
        let register = || {
            Ok(vec![
                // In this order: the first SIGINT finds `once` unset and sets it, the second one exits.
                flag::register_conditional_shutdown(SIGINT, 130, once.clone())?,
                flag::register(SIGINT, once)?,
                flag::register_usize(SIGINT, SIGNAL.clone(), SIGINT as usize)?,
                flag::register_usize(SIGTERM, SIGNAL.clone(), SIGTERM as usize)?,
            ])
        };
        Self::with_handlers(register().map(Some))
    }

    /// Listens in a process that does more than this run, an interpreter say: handlers that were there before are called as well,
    /// and are back afterwards; no signal ends the process meanwhile.
    pub fn listen_beside() -> Result<Self> {
        Self::with_handlers(beside::listen().map(|()| None))
    }

    fn with_handlers(handlers: std::io::Result<Option<Vec<SigId>>>) -> Result<Self> {
        let handlers = handlers.map_err(|e| Error::Device {
            device: "host".into(),
            message: format!("signal handlers cannot be set: {e}"),
            hint: None,
        })?;
        *LISTENING.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Ok(Self { until: None, limit: None, handlers })
    }

    /// Makes this the run's wall-time limit.
    pub fn stop_at(&mut self, until: Instant) {
        self.rest();
        self.until = Some(until);
        self.go_on();
    }

    /// Takes the limit off while others of the process work, for whom it is no reason to stop.
    pub fn rest(&mut self) {
        if let Some(limit) = self.limit.take() {
            change_limits(|limits| {
                limits.iter().position(|other| *other == limit).map(|place| limits.swap_remove(place));
            });
        }
    }

    /// Puts the limit back in place after [`Signals::rest`].
    pub fn go_on(&mut self) {
        if let (None, Some(until)) = (self.limit, self.until) {
            let limit = u64::try_from(until.saturating_duration_since(*EPOCH).as_nanos()).unwrap_or(u64::MAX);
            self.limit = Some(limit);
            change_limits(|limits| limits.push(limit));
        }
    }

    /// Returns true once the run has its limit.
    pub(crate) fn has_limit(&self) -> bool {
        self.until.is_some()
    }

    /// The reason for this run to stop. [`stop_reason`] may have that of another run of the process.
    pub fn stop_reason(&self) -> Option<&'static str> {
        match stop_reason() {
            Some("the wall-time limit") if self.until.is_none_or(|until| Instant::now() < until) => None,
            reason => reason,
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        match &mut self.handlers {
            Some(handlers) => {
                for id in handlers.drain(..) {
                    signal_hook::low_level::unregister(id);
                }
            }
            None => beside::leave(),
        }
        self.rest();
        let mut listening = LISTENING.lock().unwrap_or_else(PoisonError::into_inner);
        *listening -= 1;
        if *listening == 0 {
            SIGNAL.store(0, Ordering::Relaxed);
        }
    }
}
