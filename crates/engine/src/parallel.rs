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

use std::marker::PhantomData;
use std::ops::Range;

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

/// Calls `work` with ranges that cover `0..n` once, on all threads.
pub fn spans(n: usize, work: &(dyn Fn(Range<usize>) + Sync)) {
    if n < 2 || rayon::current_num_threads() == 1 {
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
    if n == 1 {
        return work(0);
    }
    (0..n).into_par_iter().with_max_len(1).for_each(work);
}

/// What can be parted for the turns of a loop.
pub trait Parts: Sync {
    /// What a turn gets.
    type Part;

    /// Number of turns.
    fn count(&self) -> usize;

    /// Part `i`.
    ///
    /// # Safety
    ///
    /// `i < count()`, and nobody else has asked or asks for the same part.
    unsafe fn part(&self, i: usize) -> Self::Part;
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

/// As [`each`], with something of its own that `make` gives for a run of turns: buffers.
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

/// What `work(i, part)` gives, in order.
#[inline]
pub fn map<P: Parts, R: Send>(parts: P, work: impl Fn(usize, P::Part) -> R + Sync) -> Vec<R> {
    map_with(|| (), parts, |(), i, part| work(i, part))
}

/// As [`map`], with something of its own that `make` gives for a run of turns.
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

/// As [`each`], every turn a task of its own ([`tasks`]).
#[inline]
pub fn each_task<P: Parts>(parts: P, work: impl Fn(usize, P::Part) + Sync) {
    // SAFETY: tasks are the indices once.
    tasks(parts.count(), &|i| work(i, unsafe { parts.part(i) }));
}

/// As [`map`], every turn a task of its own ([`tasks`]).
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

/// The indices below `n`.
pub fn indices(n: usize) -> Range<usize> {
    0..n
}

/// `values`, cut every `size`; the last part may be shorter.
pub fn chunks<T: Sync>(values: &[T], size: usize) -> Chunks<'_, T> {
    assert!(size > 0, "parts of nothing");
    Chunks { values, size }
}

/// `values` to write, cut every `size`; the last part may be shorter.
pub fn chunks_mut<T: Send>(values: &mut [T], size: usize) -> ChunksMut<'_, T> {
    assert!(size > 0, "parts of nothing");
    ChunksMut { start: Pointer(values.as_mut_ptr()), len: values.len(), size, values: PhantomData }
}

/// Each of `values`.
pub fn items<T: Sync>(values: &[T]) -> Items<'_, T> {
    Items(values)
}

/// Each of `values`, to write.
pub fn items_mut<T: Send>(values: &mut [T]) -> ItemsMut<'_, T> {
    ItemsMut { start: Pointer(values.as_mut_ptr()), len: values.len(), values: PhantomData }
}

/// Each of `values`, given away.
pub fn owned<T: Send>(mut values: Vec<T>) -> Owned<T> {
    let (start, len) = (Pointer(values.as_mut_ptr()), values.len());
    // SAFETY: shorter than it was. What it held belongs to those who ask for it; nobody asking, it is forgotten.
    unsafe { values.set_len(0) };
    Owned { start, len, _memory: Memory(values) }
}

/// A pointer that threads share, to parts of which each is one thread's.
struct Pointer<T>(*mut T);

// SAFETY: it is followed only as `Parts::part` allows, which gives every value to one thread.
unsafe impl<T: Send> Sync for Pointer<T> {}

// SAFETY: as above.
unsafe impl<T: Send> Send for Pointer<T> {}

impl<T> Pointer<T> {
    /// To value `i`.
    ///
    /// # Safety
    ///
    /// It lies within the same allocation.
    #[inline(always)]
    unsafe fn at(&self, i: usize) -> *mut T {
        // SAFETY: the caller's.
        unsafe { self.0.add(i) }
    }
}

/// See [`chunks`].
pub struct Chunks<'a, T> {
    values: &'a [T],
    size: usize,
}

impl<'a, T: Sync> Parts for Chunks<'a, T> {
    type Part = &'a [T];

    #[inline(always)]
    fn count(&self) -> usize {
        self.values.len().div_ceil(self.size)
    }

    #[inline(always)]
    unsafe fn part(&self, i: usize) -> &'a [T] {
        let start = i * self.size;
        &self.values[start..self.values.len().min(start + self.size)]
    }
}

/// See [`chunks_mut`].
pub struct ChunksMut<'a, T> {
    start: Pointer<T>,
    len: usize,
    size: usize,
    values: PhantomData<&'a mut [T]>,
}

// SAFETY: a part goes to one thread; the marker says only how long the values live.
unsafe impl<T: Send> Sync for ChunksMut<'_, T> {}

impl<'a, T: Send> Parts for ChunksMut<'a, T> {
    type Part = &'a mut [T];

    #[inline(always)]
    fn count(&self) -> usize {
        self.len.div_ceil(self.size)
    }

    #[inline(always)]
    unsafe fn part(&self, i: usize) -> &'a mut [T] {
        let start = i * self.size;
        // SAFETY: parts do not overlap and lie within the slice, whose exclusive use this has for `'a`.
        unsafe { std::slice::from_raw_parts_mut(self.start.at(start), self.size.min(self.len - start)) }
    }
}

/// See [`items`].
pub struct Items<'a, T>(&'a [T]);

impl<'a, T: Sync> Parts for Items<'a, T> {
    type Part = &'a T;

    #[inline(always)]
    fn count(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    unsafe fn part(&self, i: usize) -> &'a T {
        // SAFETY: the caller's `i` is below the length.
        unsafe { self.0.get_unchecked(i) }
    }
}

/// See [`items_mut`].
pub struct ItemsMut<'a, T> {
    start: Pointer<T>,
    len: usize,
    values: PhantomData<&'a mut [T]>,
}

// SAFETY: a part goes to one thread; the marker says only how long the values live.
unsafe impl<T: Send> Sync for ItemsMut<'_, T> {}

impl<'a, T: Send> Parts for ItemsMut<'a, T> {
    type Part = &'a mut T;

    #[inline(always)]
    fn count(&self) -> usize {
        self.len
    }

    #[inline(always)]
    unsafe fn part(&self, i: usize) -> &'a mut T {
        // SAFETY: values do not overlap and lie within the slice, whose exclusive use this has for `'a`.
        unsafe { &mut *self.start.at(i) }
    }
}

/// See [`owned`].
pub struct Owned<T> {
    start: Pointer<T>,
    len: usize,
    _memory: Memory<T>,
}

/// An empty vector, kept for its memory.
struct Memory<T>(#[allow(dead_code, reason = "dropped")] Vec<T>);

// SAFETY: nobody looks at it.
unsafe impl<T: Send> Sync for Memory<T> {}

impl<T: Send> Parts for Owned<T> {
    type Part = T;

    #[inline(always)]
    fn count(&self) -> usize {
        self.len
    }

    #[inline(always)]
    unsafe fn part(&self, i: usize) -> T {
        // SAFETY: it was moved into the vector, and is moved out once.
        unsafe { self.start.at(i).read() }
    }
}

impl Parts for Range<usize> {
    type Part = usize;

    #[inline(always)]
    fn count(&self) -> usize {
        self.len()
    }

    #[inline(always)]
    unsafe fn part(&self, i: usize) -> usize {
        self.start + i
    }
}

macro_rules! several {
    ($($name:ident $at:tt),*) => {
        /// As many turns as the shortest has parts.
        impl<$($name: Parts),*> Parts for ($($name,)*) {
            type Part = ($($name::Part,)*);

            #[inline(always)]
            fn count(&self) -> usize {
                usize::MAX$(.min(self.$at.count()))*
            }

            #[inline(always)]
            unsafe fn part(&self, i: usize) -> Self::Part {
                // SAFETY: the caller's, for each of them.
                unsafe { ($(self.$at.part(i),)*) }
            }
        }
    };
}

several!(A 0, B 1);
several!(A 0, B 1, C 2);
several!(A 0, B 1, C 2, D 3);
several!(A 0, B 1, C 2, D 3, E 4);

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::device::Cpu;

    /// On pools of one thread and of several.
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
