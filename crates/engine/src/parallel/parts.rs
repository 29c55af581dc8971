//! Ranges of parallel loops: indices, parts of slices, several of them at once.

use std::marker::PhantomData;
use std::ops::Range;

/// Collection that can be divided among the iterations of a loop.
///
/// # Safety
///
/// Parts of different numbers below `count()`, which is the same whenever it is asked for, may be used by different threads at a
/// time: what one of them writes no other one reads or writes.
pub unsafe trait Parts: Sync {
    /// Item that one iteration receives.
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

/// Iterates over `values`.
pub fn items<T: Sync>(values: &[T]) -> Items<'_, T> {
    Items(values)
}

/// Iterates over `values`, mutably.
pub fn items_mut<T: Send>(values: &mut [T]) -> ItemsMut<'_, T> {
    ItemsMut { start: Pointer(values.as_mut_ptr()), len: values.len(), values: PhantomData }
}

/// Iterates over `values`, taking them.
pub fn owned<T: Send>(mut values: Vec<T>) -> Owned<T> {
    let (start, len) = (Pointer(values.as_mut_ptr()), values.len());
    // SAFETY: shorter than it was. What it held belongs to those who ask for it; nobody asking, it is forgotten.
    unsafe { values.set_len(0) };
    Owned { start, len, _memory: Memory(values) }
}

/// A pointer that threads share, to parts of which each is one thread's.
pub(super) struct Pointer<T>(pub(super) *mut T);

// SAFETY: it is followed only as `Parts::part` allows, which gives every value to one thread.
unsafe impl<T: Send> Sync for Pointer<T> {}

// SAFETY: as above.
unsafe impl<T: Send> Send for Pointer<T> {}

impl<T> Pointer<T> {
    /// Pointer to value `i`.
    ///
    /// # Safety
    ///
    /// It lies within the same allocation.
    #[inline(always)]
    pub(super) unsafe fn at(&self, i: usize) -> *mut T {
        // SAFETY: the caller's.
        unsafe { self.0.add(i) }
    }
}

/// Parts of [`chunks`].
pub struct Chunks<'a, T> {
    values: &'a [T],
    size: usize,
}

// SAFETY: parts are only read.
unsafe impl<'a, T: Sync> Parts for Chunks<'a, T> {
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

/// Parts of [`chunks_mut`].
pub struct ChunksMut<'a, T> {
    start: Pointer<T>,
    len: usize,
    size: usize,
    values: PhantomData<&'a mut [T]>,
}

// SAFETY: a part goes to one thread; the marker says only how long the values live.
unsafe impl<T: Send> Sync for ChunksMut<'_, T> {}

// SAFETY: parts do not overlap; the length is that of the slice.
unsafe impl<'a, T: Send> Parts for ChunksMut<'a, T> {
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

/// Parts of [`items`].
pub struct Items<'a, T>(&'a [T]);

// SAFETY: values are only read.
unsafe impl<'a, T: Sync> Parts for Items<'a, T> {
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

/// Parts of [`items_mut`].
pub struct ItemsMut<'a, T> {
    start: Pointer<T>,
    len: usize,
    values: PhantomData<&'a mut [T]>,
}

// SAFETY: a part goes to one thread; the marker says only how long the values live.
unsafe impl<T: Send> Sync for ItemsMut<'_, T> {}

// SAFETY: each value is a part of its own; the length is that of the slice.
unsafe impl<'a, T: Send> Parts for ItemsMut<'a, T> {
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

/// Parts of [`owned`].
pub struct Owned<T> {
    start: Pointer<T>,
    len: usize,
    _memory: Memory<T>,
}

/// An empty vector, kept for its memory.
struct Memory<T>(#[allow(dead_code, reason = "dropped")] Vec<T>);

// SAFETY: nobody looks at it.
unsafe impl<T: Send> Sync for Memory<T> {}

// SAFETY: each value is moved out by its own number, once.
unsafe impl<T: Send> Parts for Owned<T> {
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

// SAFETY: numbers share nothing.
unsafe impl Parts for Range<usize> {
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
        /// Number of iterations: that of the shortest collection.
        // SAFETY: parts of one number come from parts of that number, each from a value of its own.
        unsafe impl<$($name: Parts),*> Parts for ($($name,)*) {
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
