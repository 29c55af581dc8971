//! Arrays side by side in one allocation, each with an owner of its own.

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use bytemuck::Pod;

use super::{LINE, zeros};

/// Memory that pieces share, in words of a type for which zeros are those that the system makes; freed with the last piece.
#[derive(Debug)]
struct Whole(NonNull<[u64]>);

// SAFETY: it is never read or written, only freed, by the last piece.
unsafe impl Send for Whole {}
// SAFETY: as above.
unsafe impl Sync for Whole {}

impl Drop for Whole {
    fn drop(&mut self) {
        // SAFETY: it comes from a box, and no piece is left.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// An array that may lie beside others in one allocation: thousands of some kilobytes are then on large pages, which a system gives
/// an allocation of megabytes only, and cost one fault where there were 512.
#[derive(Debug)]
pub struct Piece<T> {
    start: NonNull<T>,
    len: usize,
    /// Nothing where there are no values.
    whole: Option<Arc<Whole>>,
}

// SAFETY: a piece is the only one that has its values, as a vector would be.
unsafe impl<T: Send> Send for Piece<T> {}
// SAFETY: shared access only reads.
unsafe impl<T: Send + Sync> Sync for Piece<T> {}

impl<T: Pod + Send> Piece<T> {
    /// Zeros in pieces of these lengths, which the system hands out when they are first touched. The first one begins where a line
    /// of the cache begins.
    ///
    /// # Panics
    /// Where values want to be aligned to more than a line.
    pub fn split(lengths: &[usize]) -> Vec<Self> {
        assert!(align_of::<T>() <= LINE, "an alignment of {} bytes", align_of::<T>());
        let bytes = lengths.iter().sum::<usize>() * size_of::<T>();
        let all = NonNull::from(Box::leak(zeros::<u64>((bytes + LINE).div_ceil(size_of::<u64>())).into_boxed_slice()));
        let whole = Arc::new(Whole(all));
        let line = all.cast::<u8>();
        // SAFETY: there is a line more than the pieces take.
        let mut next = unsafe { line.add(line.align_offset(LINE)) }.cast::<T>();
        let piece = |len: &usize| {
            let start = next;
            // SAFETY: lengths add up to what is there behind the first one's start.
            next = unsafe { next.add(*len) };
            Self { start, len: *len, whole: (*len > 0).then(|| whole.clone()) }
        };
        lengths.iter().map(piece).collect()
    }

    /// Zeros in an allocation of their own.
    pub fn zeros(len: usize) -> Self {
        Self::split(&[len]).pop().unwrap_or_default()
    }

    /// Ends it. Where others keep the allocation, its pages go back to the system.
    pub fn release(self) {
        #[cfg(target_os = "linux")]
        if self.whole.as_ref().is_some_and(|whole| Arc::strong_count(whole) > 1) {
            const PAGE: usize = 4096;
            let (start, bytes) = (self.start.cast::<u8>(), self.len * size_of::<T>());
            let skip = start.align_offset(PAGE).min(bytes);
            // SAFETY: whole pages of values that nobody has any more; plain data, which needs no end.
            unsafe { libc::madvise(start.add(skip).as_ptr().cast(), (bytes - skip) / PAGE * PAGE, libc::MADV_DONTNEED) };
        }
    }
}

impl<T> Default for Piece<T> {
    fn default() -> Self {
        Self { start: NonNull::dangling(), len: 0, whole: None }
    }
}

impl<T: Pod + Send> Clone for Piece<T> {
    /// A copy in an allocation of its own.
    fn clone(&self) -> Self {
        let mut copy = Self::zeros(self.len);
        copy.copy_from_slice(self);
        copy
    }
}

impl<T> Deref for Piece<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: so many values from there on are this piece's alone, and the allocation lives as long as it.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Piece<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and borrowed uniquely.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_arrays_of_their_own() {
        let lengths = [3, 0, 5000, 70_000, 1];
        let mut pieces = Piece::<u64>::split(&lengths);
        for (k, piece) in pieces.iter_mut().enumerate() {
            assert!(piece.len() == lengths[k] && piece.iter().all(|x| *x == 0));
            assert!(k > 0 || piece.as_ptr().addr().is_multiple_of(LINE));
            piece.fill(k as u64 + 1);
        }
        let copy = pieces[3].clone();
        // The pages of one go back; neighbours keep their values, and the copy its own.
        pieces.remove(3).release();
        for (piece, k) in pieces.iter().zip([0, 1, 2, 4]) {
            assert!(piece.len() == lengths[k] && piece.iter().all(|x| *x == k as u64 + 1));
        }
        let last = pieces.pop().unwrap();
        drop(pieces);
        assert_eq!((&last[..], copy.len()), (&[5][..], 70_000));
        assert!(copy.iter().all(|x| *x == 4));
        last.release();
        assert!(Piece::<u8>::zeros(0).is_empty() && Piece::<u8>::default().clone().is_empty());
    }
}
