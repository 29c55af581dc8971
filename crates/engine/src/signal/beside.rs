//! Handlers of signals in a process that does more than a run, an interpreter say: those that were there before are called as well,
//! and are back once nobody listens.

use std::ffi::{c_int, c_void};
use std::io::Error;
use std::mem::zeroed;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

use libc::{SA_ONSTACK, SA_RESTART, SA_SIGINFO, SIG_DFL, SIG_IGN, SIGINT, SIGTERM, sigaction, siginfo_t};

use super::SIGNAL;

const SIGNALS: [c_int; 2] = [SIGINT, SIGTERM];
/// Handlers that were there before, and their flags: what [`note`] may read at any moment.
static HANDLERS: [AtomicUsize; 2] = [AtomicUsize::new(SIG_DFL), AtomicUsize::new(SIG_DFL)];
static FLAGS: [AtomicI32; 2] = [AtomicI32::new(0), AtomicI32::new(0)];
/// Threads that are in such a handler, 0 for none, and the process that listens.
static INSIDE: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
static PROCESS: AtomicI32 = AtomicI32::new(0);
static LISTENING: Mutex<Listening> = Mutex::new(Listening { listeners: 0, before: [None; 2] });

type Handler = extern "C" fn(c_int);
type HandlerWithInfo = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);

/// Listeners, and what is put back after the last one.
struct Listening {
    listeners: usize,
    before: [Option<sigaction>; 2],
}

/// Takes note of a signal, then does what was done before.
extern "C" fn note(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    SIGNAL.store(signal as usize, Ordering::Relaxed);
    let number = usize::from(signal == SIGTERM);
    let handler = HANDLERS[number].load(Ordering::Relaxed);
    // SAFETY: these ask, set an action, and raise a signal once this handler has returned; all of them may be called in handlers.
    let thread = unsafe {
        if handler == SIG_DFL && libc::getpid() != PROCESS.load(Ordering::Relaxed) {
            // A child of the process that listens, which knows of no run.
            libc::signal(signal, SIG_DFL);
            libc::raise(signal);
        }
        libc::pthread_self() as usize
    };
    // Somebody may have put a handler in place that calls this one.
    if handler == SIG_DFL || handler == SIG_IGN || INSIDE[number].swap(thread, Ordering::Relaxed) == thread {
        return;
    }
    if FLAGS[number].load(Ordering::Relaxed) & SA_SIGINFO != 0 {
        // SAFETY: with this flag the handler that was in place is such a function.
        let handler = unsafe { std::mem::transmute::<usize, HandlerWithInfo>(handler) };
        handler(signal, info, context);
    } else {
        // SAFETY: without it, one of a signal alone.
        let handler = unsafe { std::mem::transmute::<usize, Handler>(handler) };
        handler(signal);
    }
    INSIDE[number].store(0, Ordering::Relaxed);
}

/// The action for a signal, replaced by another one if there is one.
fn exchange(signal: c_int, new: Option<&sigaction>) -> Result<sigaction, Error> {
    // SAFETY: numbers, addresses and bits, of which none is needed to be anything.
    let mut old = unsafe { zeroed() };
    let new = new.map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: both are actions, or null; handlers are functions of this module or were in place before.
    if unsafe { sigaction(signal, new, &raw mut old) } == 0 { Ok(old) } else { Err(Error::last_os_error()) }
}

/// Listens. A process may have put other handlers in place while somebody listened already: ours go before those again.
pub(super) fn listen() -> Result<(), Error> {
    let mut state = LISTENING.lock().unwrap_or_else(PoisonError::into_inner);
    // The handler must not be the first to ask for it.
    LazyLock::force(&SIGNAL);
    // SAFETY: it asks.
    PROCESS.store(unsafe { libc::getpid() }, Ordering::Relaxed);
    for (number, signal) in SIGNALS.into_iter().enumerate() {
        let old = exchange(signal, None)?;
        // A signal that the process ignores, as in the background of a shell, stays ignored.
        if old.sa_sigaction == SIG_IGN || old.sa_sigaction == note as *const () as usize {
            continue;
        }
        HANDLERS[number].store(old.sa_sigaction, Ordering::Relaxed);
        FLAGS[number].store(old.sa_flags, Ordering::Relaxed);
        // Python has calls of the system end at a signal, so that its handlers are run.
        let restart = if old.sa_sigaction == SIG_DFL { SA_RESTART } else { old.sa_flags & SA_RESTART };
        let new = sigaction { sa_sigaction: note as *const () as usize, sa_flags: SA_SIGINFO | SA_ONSTACK | restart, ..old };
        exchange(signal, Some(&new))?;
        state.before[number] = Some(old);
    }
    state.listeners += 1;
    Ok(())
}

/// Listens no more. After the last one handlers are what they were, unless somebody has replaced ours.
pub(super) fn leave() {
    let mut state = LISTENING.lock().unwrap_or_else(PoisonError::into_inner);
    state.listeners -= 1;
    if state.listeners > 0 {
        return;
    }
    for (number, signal) in SIGNALS.into_iter().enumerate() {
        let ours = exchange(signal, None).is_ok_and(|now| now.sa_sigaction == note as *const () as usize);
        if let Some(before) = state.before[number].take().filter(|_| ours) {
            // It was in place once, and can be again.
            let _ = exchange(signal, Some(&before));
        }
    }
}
