//! Launches that come again: kept back while a piece of work is put together, compared with what it was before, and put on the
//! stream as one graph where they are the same, for work whose launches cost more than the work.

use std::cell::RefCell;

use super::context::Cuda;
use super::graph::Graph;
use super::launch::PreparedLaunch;
use crate::error::Result;

/// Sequences that are remembered: the last ones.
const REMEMBERED: usize = 8;

thread_local! {
    static DEFERRED: RefCell<Option<DeferredLaunches>> = const { RefCell::new(None) };
}

/// Launches of this thread that are kept back.
struct DeferredLaunches {
    cuda: Cuda,
    launches: Vec<PreparedLaunch>,
    /// Something other than a launch came, before which those there were had to go.
    broken: bool,
    /// Outcome of the recorded work, an error if it failed.
    failed: Result<()>,
}

/// Sequences of launches of before, the last one last, with their graphs from the second time on.
#[derive(Debug, Default)]
pub struct RepeatedLaunches {
    known: Vec<(Vec<PreparedLaunch>, Option<Graph>)>,
}

/// Ends the keeping back if the body panics.
struct DeferGuard;

impl Drop for DeferGuard {
    fn drop(&mut self) {
        DEFERRED.take();
    }
}

impl Cuda {
    /// Runs `body`, whose launches are kept back until its end or until it does anything else with the stream. Where they are,
    /// bit for bit, those of one of the last times, arguments included, they go as one graph; else one by one.
    pub fn repeat(&self, repeated: &mut RepeatedLaunches, body: impl FnOnce() -> Result<()>) -> Result<()> {
        if self.capturing() || DEFERRED.with_borrow(Option::is_some) {
            return body();
        }
        DEFERRED.set(Some(DeferredLaunches { cuda: self.clone(), launches: Vec::new(), broken: false, failed: Ok(()) }));
        let open = DeferGuard;
        let done = body();
        let held = DEFERRED.take();
        drop(open);
        let Some(DeferredLaunches { launches, broken, failed, .. }) = held else { return done };
        failed?;
        if done.is_err() || broken {
            launches.iter().try_for_each(PreparedLaunch::put)?;
            return done;
        }
        repeated.put(self, launches)
    }
}

impl RepeatedLaunches {
    /// Sequences that have come again, and are graphs.
    pub fn graphs(&self) -> usize {
        self.known.iter().filter(|(_, graph)| graph.is_some()).count()
    }

    fn put(&mut self, cuda: &Cuda, launches: Vec<PreparedLaunch>) -> Result<()> {
        if launches.is_empty() {
            return Ok(());
        }
        let Some(at) = self.known.iter().position(|(known, _)| *known == launches) else {
            launches.iter().try_for_each(PreparedLaunch::put)?;
            if self.known.len() == REMEMBERED {
                self.known.remove(0);
            }
            self.known.push((launches, None));
            return Ok(());
        };
        self.known[at..].rotate_left(1);
        let Some((_, graph)) = self.known.last_mut() else { return Ok(()) };
        let mut recorded = match graph.take() {
            Some(recorded) => recorded,
            None => cuda.capture(|| launches.iter().try_for_each(PreparedLaunch::put))?,
        };
        // SAFETY: these launches were asked for just now, with the same addresses: the promise of `Launch::run` is that of what the graph uses.
        let launched = unsafe { recorded.launch() };
        *graph = Some(recorded);
        launched
    }
}

/// Keeps `launch` back if this thread does that for its GPU; gives it back otherwise.
pub(super) fn defer<T>(cuda: &Cuda, launch: T, prepared: impl FnOnce(T) -> PreparedLaunch) -> Option<T> {
    DEFERRED.with_borrow_mut(|held| match held {
        Some(held) if held.cuda.is(cuda) => {
            held.launches.push(prepared(launch));
            None
        }
        _ => Some(launch),
    })
}

/// Puts what this thread keeps back for this GPU on the stream: something else comes.
pub(super) fn flush_deferred(inner: &super::context::Inner) {
    let launches = DEFERRED.with_borrow_mut(|held| match held {
        Some(held) if held.cuda.has(inner) && !held.launches.is_empty() => std::mem::take(&mut held.launches),
        _ => Vec::new(),
    });
    if launches.is_empty() {
        return;
    }
    // Not kept back again.
    let mut held = DEFERRED.take();
    let put = launches.iter().try_for_each(PreparedLaunch::put);
    if let Some(held) = &mut held {
        held.broken = true;
        if held.failed.is_ok() {
            held.failed = put;
        }
    }
    DEFERRED.set(held);
}
