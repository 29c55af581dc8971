//! Transforms on the threads of the pool at hand.
//!
//! Two axes: rows, transposition, rows again, transposition back. Many frames go to the threads a frame at a time,
//! which then stays in the cache; of a few large ones, the rows do.

use std::sync::Arc;

use num_complex::Complex;
use zellige_fft::{Fft, FftDirection, Planned};

use super::{Direction, Shape};
use crate::parallel::{chunks, chunks_mut, each, threads};

/// `f32` or `f64`.
pub trait Real: Planned + Default + bytemuck::Pod {
    /// Distance from 1 to the next number.
    const EPSILON: f64;
    /// Converts to double precision.
    fn wide(self) -> f64;
    /// Rounded to this precision.
    fn from_wide(x: f64) -> Self;
}

macro_rules! reals {
    ($($t:ty),*) => {$(
        impl Real for $t {
            const EPSILON: f64 = <$t>::EPSILON as f64;
            fn wide(self) -> f64 {
                self as f64
            }
            fn from_wide(x: f64) -> Self {
                x as $t
            }
        }
    )*};
}
reals!(f32, f64);

/// Edge of the squares that are transposed at once: two of them stay in the first-level cache.
const SQUARE: usize = 16;

type Line<T> = Arc<dyn Fft<T>>;

/// Transforms of one shape, forward and inverse, with the buffers they need. Made for the pool that it is made in.
pub struct Plan<T> {
    shape: Shape,
    /// Along rows and along columns, for both directions.
    along: [[Line<T>; 2]; 2],
    /// Work is dealt in this many parts, each with its own buffers.
    parts: usize,
    transposed: Vec<Complex<T>>,
    scratch: Vec<Complex<T>>,
    scratch_len: usize,
}

impl<T> std::fmt::Debug for Plan<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plan").field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl<T: Real> Plan<T> {
    /// Plans transforms of `shape`.
    pub fn new(shape: Shape) -> Self {
        let both = |n: usize| [FftDirection::Forward, FftDirection::Inverse].map(|d| T::line(n, d));
        let along = [both(shape.columns), both(shape.rows)];
        let scratch_len = along.iter().flatten().map(|l| l.get_inplace_scratch_len()).max().unwrap_or(0).max(1);
        // A few parts a thread even out what the system takes away.
        let parts = if threads() == 1 { 1 } else { 4 * threads() };
        let frames = if shape.rows == 1 || shape.columns == 1 { 0 } else { parts.min(shape.batch) };
        let zero = Complex::new(T::zero(), T::zero());
        Self { shape, along, parts, transposed: vec![zero; frames * shape.frame()], scratch: vec![zero; parts * scratch_len], scratch_len }
    }

    /// Bytes that the plan holds.
    pub fn memory(&self) -> u64 {
        ((self.transposed.len() + self.scratch.len()) * size_of::<Complex<T>>()) as u64
    }

    /// Transforms all frames in place.
    ///
    /// # Panics
    /// If `data` is not as long as the shape says.
    pub fn run(&mut self, data: &mut [Complex<T>], direction: Direction) {
        assert_eq!(data.len(), self.shape.values(), "values of {:?}", self.shape);
        if data.is_empty() {
            return;
        }
        let Self { shape, along, parts, transposed, scratch, scratch_len } = self;
        let (parts, scratch_len) = (*parts, *scratch_len);
        let way = usize::from(direction == Direction::Inverse);
        let (rows, columns) = (&along[0][way], &along[1][way]);
        if transposed.is_empty() {
            // One axis: a column of frames one wide is a line as well.
            lines(if shape.columns == 1 { columns } else { rows }, data, scratch, scratch_len, parts);
        } else if shape.batch >= parts {
            let frames = shape.batch.div_ceil(parts) * shape.frame();
            each(
                (chunks_mut(data, frames), chunks_mut(transposed, shape.frame()), chunks_mut(scratch, scratch_len)),
                |_, (frames, turned, scratch)| {
                    for frame in frames.chunks_mut(shape.frame()) {
                        rows.process_with_scratch(frame, scratch);
                        turn(frame, turned, 0, shape.rows, shape.columns);
                        columns.process_with_scratch(turned, scratch);
                        turn(turned, frame, 0, shape.columns, shape.rows);
                    }
                },
            );
        } else {
            lines(rows, data, scratch, scratch_len, parts);
            turn_all(data, transposed, shape.rows, shape.columns);
            lines(columns, transposed, scratch, scratch_len, parts);
            turn_all(transposed, data, shape.columns, shape.rows);
        }
    }
}

/// Transforms every line of `data`, in `parts` parts.
fn lines<T: Real>(line: &Line<T>, data: &mut [Complex<T>], scratch: &mut [Complex<T>], scratch_len: usize, parts: usize) {
    let part = (data.len() / line.len()).div_ceil(parts) * line.len();
    each((chunks_mut(data, part), chunks_mut(scratch, scratch_len)), |_, (part, scratch)| line.process_with_scratch(part, scratch));
}

/// `to = transpose(from)` for every frame of `rows` x `columns`, the lines of `to` dealt to the threads.
fn turn_all<T: Real>(from: &[Complex<T>], to: &mut [Complex<T>], rows: usize, columns: usize) {
    let frame = rows * columns;
    each((chunks_mut(to, frame), chunks(from, frame)), |_, (to, from)| {
        each(chunks_mut(to, SQUARE * rows), |band, to| turn(from, to, band * SQUARE, rows, columns));
    });
}

/// The columns of `from` (`rows` x `columns`) from number `first` on as the rows of `to`, as many as it holds. Squares go by way of
/// one that stays in the first-level cache: read and written along lines, each of these once, where the lines of one column of a
/// power of two push each other out.
fn turn<T: Real>(from: &[Complex<T>], to: &mut [Complex<T>], first: usize, rows: usize, columns: usize) {
    let mut square = [[Complex::new(T::zero(), T::zero()); SQUARE]; SQUARE];
    for (band, to) in to.chunks_mut(SQUARE * rows).enumerate() {
        let start = first + band * SQUARE;
        let width = to.len() / rows;
        for i0 in (0..rows).step_by(SQUARE) {
            let height = SQUARE.min(rows - i0);
            for i in 0..height {
                let line = &from[(i0 + i) * columns + start..][..width];
                for (turned, value) in square.iter_mut().zip(line) {
                    turned[i] = *value;
                }
            }
            for (turned, line) in square.iter().zip(to.chunks_mut(rows)) {
                line[i0..i0 + height].copy_from_slice(&turned[..height]);
            }
        }
    }
}
