//! Loops whose turns are shared among the threads of the pool at hand ([`crate::device::Cpu::install`]): over indices,
//! over parts of slices, and over several of them at once.
//!
//! ```
//! use zellige_engine::parallel::{chunks, chunks_mut, each, map};
//!
//! let (from, mut to) = (vec![1.0; 12], vec![0.0; 12]);
//! each((chunks_mut(&mut to, 4), chunks(&from, 4)), |row, (to, from)| to[0] = from[0] + row as f64);
//! assert_eq!(map(chunks(&to, 4), |_, row| row[0]), [1.0, 2.0, 3.0]);
//! ```
//!
//! Turns are dealt out as rayon does it, in halves of halves for as long as threads are idle, but the machinery of that is
//! compiled once, here, and not once for every loop: what is compiled for a loop is its body, once. With rayon's own
//! iterators a quarter of a solver's compile time went into them. Which thread does which turn is left open; results are
//! kept in order.

#![allow(clippy::needless_pass_by_value, reason = "parts are taken for good: asked for again, they would be two threads' at once")]

mod parts;

use std::cell::Cell;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use parts::Pointer;
pub use parts::{Chunks, ChunksMut, Items, ItemsMut, Owned, Parts, chunks, chunks_mut, indices, items, items_mut, owned};
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

thread_local! {
    /// Flag of a thread whose present work runs on it alone.
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Does `work` with loops on this thread alone, or on those of the pool that it enters: what was so before is so again afterwards,
/// also after a panic.
pub(crate) fn with_alone<R>(alone: bool, work: impl FnOnce() -> R) -> R {
    struct RestoreFlag(bool);
    impl Drop for RestoreFlag {
        fn drop(&mut self) {
            ALONE.set(self.0);
        }
    }
    let _before = RestoreFlag(ALONE.replace(alone));
    work()
}

/// Does `work` with its loops on this thread: waking others takes longer than a few thousand short turns do.
pub fn alone<R>(work: impl FnOnce() -> R) -> R {
    with_alone(true, work)
}

/// Does `work` on a thread of the pool at hand: from another one each of its loops would wait to be taken up by the pool, and wake
/// this thread again.
pub fn inside<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    if ALONE.get() { work() } else { rayon::scope(|_| work()) }
}

/// Threads that loops are dealt out to here: those of the pool at hand, outside of any as many as there are cores.
pub fn threads() -> usize {
    if ALONE.get() { 1 } else { rayon::current_num_threads() }
}

/// Number of the current thread in its pool: below [`threads`], and 0 outside of any pool.
pub fn thread() -> usize {
    if ALONE.get() { 0 } else { rayon::current_thread_index().unwrap_or(0) }
}

/// Calls `work` with ranges that cover `0..n` once, on all threads.
pub fn spans(n: usize, work: &(dyn Fn(Range<usize>) + Sync)) {
    if n < 2 || threads() == 1 {
        if n > 0 {
            work(0..n);
        }
        return;
    }
    let halves = |span: Range<usize>| {
        let middle = span.start.midpoint(span.end);
        if span.len() < 2 { (span, None) } else { (span.start..middle, Some(middle..span.end)) }
    };
    rayon::iter::split(0..n, halves).for_each(work);
}

/// Calls `work(i)` for `0..n`, each a task of its own that any idle thread may take: where some take much longer than others.
pub fn tasks(n: usize, work: &(dyn Fn(usize) + Sync)) {
    if n < 2 || threads() == 1 {
        return (0..n).for_each(work);
    }
    (0..n).into_par_iter().with_max_len(1).for_each(work);
}

/// Calls `work(i, part)` for every part.
#[inline]
pub fn each<P: Parts>(parts: P, work: impl Fn(usize, P::Part) + Sync) {
    spans(parts.count(), &|span| {
        for i in span {
            // SAFETY: spans cover the indices once.
            work(i, unsafe { parts.part(i) });
        }
    });
}

/// Runs a loop as [`each`] does, with local storage, such as buffers, that `make` provides for a run of iterations.
#[inline]
pub fn each_with<P: Parts, S>(make: impl Fn() -> S + Sync, parts: P, work: impl Fn(&mut S, usize, P::Part) + Sync) {
    spans(parts.count(), &|span| {
        let mut own = make();
        for i in span {
            // SAFETY: spans cover the indices once.
            work(&mut own, i, unsafe { parts.part(i) });
        }
    });
}

/// Collects the results of `work(i, part)` in order.
#[inline]
pub fn map<P: Parts, R: Send>(parts: P, work: impl Fn(usize, P::Part) -> R + Sync) -> Vec<R> {
    map_with(|| (), parts, |(), i, part| work(i, part))
}

/// Maps as [`map`] does, with local storage that `make` provides for a run of iterations.
#[inline]
pub fn map_with<P: Parts, S, R: Send>(make: impl Fn() -> S + Sync, parts: P, work: impl Fn(&mut S, usize, P::Part) -> R + Sync) -> Vec<R> {
    let n = parts.count();
    let mut results: Vec<R> = Vec::with_capacity(n);
    let to = Pointer(results.as_mut_ptr());
    spans(n, &|span| {
        let mut own = make();
        for i in span {
            // SAFETY: spans cover the indices once, and there is room for all of them.
            unsafe { to.at(i).write(work(&mut own, i, parts.part(i))) };
        }
    });
    // SAFETY: all have been written. (After a panic we are not here, and those that were are forgotten.)
    unsafe { results.set_len(n) };
    results
}

/// Runs a loop as [`each`] does, every iteration as a task of its own ([`tasks`]).
#[inline]
pub fn each_task<P: Parts>(parts: P, work: impl Fn(usize, P::Part) + Sync) {
    // SAFETY: tasks are the indices once.
    tasks(parts.count(), &|i| work(i, unsafe { parts.part(i) }));
}

/// Maps as [`map`] does, every iteration as a task of its own ([`tasks`]).
#[inline]
pub fn map_tasks<P: Parts, R: Send>(parts: P, work: impl Fn(usize, P::Part) -> R + Sync) -> Vec<R> {
    let n = parts.count();
    let mut results: Vec<R> = Vec::with_capacity(n);
    let to = Pointer(results.as_mut_ptr());
    // SAFETY: tasks are the indices once, and there is room for all of them.
    tasks(n, &|i| unsafe { to.at(i).write(work(i, parts.part(i))) });
    // SAFETY: as in `map_with`.
    unsafe { results.set_len(n) };
    results
}

/// The first of what `work(i, part)` gives, by the order of parts; those behind one that gave something may be left out.
#[inline]
pub fn first<P: Parts, R: Send>(parts: P, work: impl Fn(usize, P::Part) -> Option<R> + Sync) -> Option<R> {
    let (least, found) = (AtomicUsize::new(usize::MAX), Mutex::new(None));
    spans(parts.count(), &|span| {
        for i in span {
            if i > least.load(Ordering::Relaxed) {
                return;
            }
            // SAFETY: spans cover the indices once.
            if let Some(result) = work(i, unsafe { parts.part(i) }) {
                let mut found = found.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                if i <= least.fetch_min(i, Ordering::Relaxed) {
                    *found = Some(result);
                }
                return;
            }
        }
    });
    found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Index of the first value of which `is` holds.
pub fn position<T: Sync>(values: &[T], is: impl Fn(&T) -> bool + Sync) -> Option<usize> {
    first(chunks(values, PIECE), |n, piece| piece.iter().position(&is).map(|i| n * PIECE + i))
}

/// Values that a thread looks through before it asks whether to continue.
const PIECE: usize = 1 << 14;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::device::Cpu;

    /// Runs `work` on pools of one thread and of several.
    fn on_pools(work: impl Fn() + Sync + Send) {
        for threads in [1, 2, 5] {
            Cpu::new(threads).unwrap().install(&work);
        }
    }

    #[test]
    fn every_turn_is_taken_once() {
        on_pools(|| {
            for n in [0, 1, 2, 3, 1000] {
                let times: Vec<_> = (0..n).map(|_| AtomicUsize::new(0)).collect();
                let count = |i: usize, time: &AtomicUsize| {
                    assert!(std::ptr::eq(time, &raw const times[i]));
                    time.fetch_add(1, Ordering::Relaxed);
                };
                each(items(&times), count);
                each_task(items(&times), count);
                assert!(times.iter().all(|t| t.load(Ordering::Relaxed) == 2), "{n}");
            }
        });
    }

    #[test]
    fn parts_are_those_of_the_slices_and_results_stay_in_order() {
        on_pools(|| {
            let from: Vec<usize> = (0..1003).collect();
            let (mut to, mut sums) = (vec![0; 1003], vec![0; 300]);
            let lengths = map((chunks_mut(&mut to, 4), chunks(&from, 4), items_mut(&mut sums)), |i, (to, from, sum)| {
                to.copy_from_slice(from);
                *sum = from.iter().sum::<usize>() + i;
                from.len()
            });
            assert_eq!(to, from);
            assert_eq!((lengths.len(), lengths[249], lengths[250]), (251, 4, 3));
            assert_eq!((sums[1], sums[250], sums[251]), (4 + 5 + 6 + 7 + 1, 1000 + 1001 + 1002 + 250, 0));
            let doubled: Vec<_> = (0..300).map(|i| 2 * i).collect();
            assert_eq!(map(indices(300), |_, i| 2 * i), doubled);
            assert_eq!(map_tasks(indices(300), |_, i| 2 * i), doubled);
        });
    }

    #[test]
    fn the_first_is_found() {
        on_pools(|| {
            let values: Vec<usize> = (0..100_000).collect();
            assert_eq!(position(&values, |v| v % 40_000 == 39_999), Some(39_999));
            assert_eq!(position(&values, |v| *v == 100_000), None);
            assert_eq!(first(items(&values), |i, v| (*v >= 777).then_some(i + v)), Some(2 * 777));
            assert_eq!(first(indices(0), |_, i| Some(i)), None);
        });
    }

    /// The threads of the pool that was entered last, whichever was entered before; and again those before, also after a panic.
    #[test]
    fn a_pool_of_one_is_the_thread_that_enters_it() {
        let [one, three] = [1, 3].map(|n| Cpu::new(n).unwrap());
        let here = std::thread::current().id();
        let outside = threads();
        assert_eq!(one.install(|| (threads(), thread(), std::thread::current().id())), (1, 0, here));
        let nested = one.install(|| (three.install(|| (threads(), one.install(threads), threads())), threads()));
        assert_eq!(nested, ((3, 1, 3), 1));
        three.install(|| {
            let worker = std::thread::current().id();
            one.install(|| each(indices(100), |_, _| assert_eq!((thread(), std::thread::current().id()), (0, worker))));
            each(indices(100), |_, _| assert!(thread() < 3));
        });
        // Work goes inside where it is not: into the pool of all cores, but not away from a thread that is to work alone.
        let id = || std::thread::current().id();
        assert!(rayon::current_thread_index().is_none() && inside(|| rayon::current_thread_index().is_some()));
        three.install(|| assert_eq!((inside(id), inside(threads)), (id(), 3)));
        one.install(|| assert_eq!((inside(id), inside(threads)), (here, 1)));
        let panics = std::panic::AssertUnwindSafe(|| one.install(|| panic!("in a pool")));
        assert!(std::panic::catch_unwind(panics).is_err());
        assert_eq!(threads(), outside);
    }

    #[test]
    fn what_is_given_away_is_dropped_once_and_buffers_stay_with_a_run() {
        struct Counted<'a>(&'a AtomicUsize);
        impl Drop for Counted<'_> {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        on_pools(|| {
            let (dropped, made, used) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
            let values = (0..500).map(|_| Counted(&dropped)).collect();
            let make = || made.fetch_add(1, Ordering::Relaxed);
            each_with(make, (owned(values), indices(400)), |_, _, (value, _)| {
                used.fetch_add(1, Ordering::Relaxed);
                drop(value);
            });
            // Those beyond the shorter of the two are forgotten.
            assert_eq!(dropped.load(Ordering::Relaxed), 400);
            assert_eq!(used.load(Ordering::Relaxed), 400);
            assert!((1..=400).contains(&made.load(Ordering::Relaxed)));
        });
    }

    #[test]
    #[should_panic(expected = "in turn 7")]
    fn a_panic_comes_through() {
        Cpu::new(3).unwrap().install(|| each(indices(20), |_, i| assert!(i != 7, "in turn {i}")));
    }
}
