//! Launches that come again: kept back while a piece of work is put together, compared with what it was before, and put on the
//! stream as one graph where they are the same, for work whose launches cost more than the work.

use std::cell::RefCell;

use super::context::Cuda;
use super::graph::Graph;
use super::launch::Prepared;
use crate::error::Result;

/// Sequences that are remembered: the last ones.
const REMEMBERED: usize = 8;

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// Launches of this thread that are kept back.
struct Held {
    cuda: Cuda,
    launches: Vec<Prepared>,
    /// Something other than a launch came, before which those there were had to go.
    broken: bool,
    /// Outcome of the recorded work, an error if it failed.
    failed: Result<()>,
}

/// Sequences of launches of before, the last one last, with their graphs from the second time on.
#[derive(Debug, Default)]
pub struct Repeated {
    known: Vec<(Vec<Prepared>, Option<Graph>)>,
}

/// Ends the keeping back if the body panics.
struct Open;

impl Drop for Open {
    fn drop(&mut self) {
        HELD.take();
    }
}

impl Cuda {
    /// Runs `body`, whose launches are kept back until its end or until it does anything else with the stream. Where they are,
    /// bit for bit, those of one of the last times, arguments included, they go as one graph; else one by one.
    pub fn repeat(&self, repeated: &mut Repeated, body: impl FnOnce() -> Result<()>) -> Result<()> {
        if self.capturing() || HELD.with_borrow(Option::is_some) {
            return body();
        }
        HELD.set(Some(Held { cuda: self.clone(), launches: Vec::new(), broken: false, failed: Ok(()) }));
        let open = Open;
        let done = body();
        let held = HELD.take();
        drop(open);
        let Some(Held { launches, broken, failed, .. }) = held else { return done };
        failed?;
        if done.is_err() || broken {
            launches.iter().try_for_each(Prepared::put)?;
            return done;
        }
        repeated.put(self, launches)
    }
}

impl Repeated {
    /// Sequences that have come again, and are graphs.
    pub fn graphs(&self) -> usize {
        self.known.iter().filter(|(_, graph)| graph.is_some()).count()
    }

    fn put(&mut self, cuda: &Cuda, launches: Vec<Prepared>) -> Result<()> {
        if launches.is_empty() {
            return Ok(());
        }
        let Some(at) = self.known.iter().position(|(known, _)| *known == launches) else {
            launches.iter().try_for_each(Prepared::put)?;
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
            None => cuda.capture(|| launches.iter().try_for_each(Prepared::put))?,
        };
        // SAFETY: these launches were asked for just now, with the same addresses: the promise of `Launch::run` is that of what the graph uses.
        let launched = unsafe { recorded.launch() };
        *graph = Some(recorded);
        launched
    }
}

/// Keeps `launch` back if this thread does that for its GPU; gives it back otherwise.
pub(super) fn keep_back<T>(cuda: &Cuda, launch: T, prepared: impl FnOnce(T) -> Prepared) -> Option<T> {
    HELD.with_borrow_mut(|held| match held {
        Some(held) if held.cuda.is(cuda) => {
            held.launches.push(prepared(launch));
            None
        }
        _ => Some(launch),
    })
}

/// Puts what this thread keeps back for this GPU on the stream: something else comes.
pub(super) fn let_go(inner: &super::context::Inner) {
    let launches = HELD.with_borrow_mut(|held| match held {
        Some(held) if held.cuda.has(inner) && !held.launches.is_empty() => std::mem::take(&mut held.launches),
        _ => Vec::new(),
    });
    if launches.is_empty() {
        return;
    }
    // Not kept back again.
    let mut held = HELD.take();
    let put = launches.iter().try_for_each(Prepared::put);
    if let Some(held) = &mut held {
        held.broken = true;
        if held.failed.is_ok() {
            held.failed = put;
        }
    }
    HELD.set(held);
}
