//! The operations on a row: the inner loops of the method.
//!
//! Each is a [`Work`], compiled for every instruction set. Rows are whole blocks of [`PAD`] nodes; out rows are never in
//! rows, so that the loops are loops over independent nodes.

use std::ops::Range;

use zellige_engine::real::{Real, RealScalar};

use super::field::PAD;
use super::isa::Work;
use super::tables::Operator;
use crate::physics;

/// A row and its neighbours, with the weights of the neighbours.
#[derive(Clone, Copy)]
pub(super) struct Neighbours<'a, T> {
    /// The row, with a ghost at both ends.
    pub centre: &'a [T],
    /// The rows of the lower and of the upper slab.
    pub slabs: [&'a [T]; 2],
    /// Weights of these rows.
    pub slab_weights: (T, T),
    /// The rows before and after it in its slab.
    pub rows: [&'a [T]; 2],
    /// Weights of these rows.
    pub row_weights: (T, T),
}

/// A stretch of a row with all that the operator reads there; every slice but `centre` has its length.
#[derive(Clone, Copy)]
struct RowSegment<'a, T> {
    row: Neighbours<'a, T>,
    west: &'a [T],
    east: &'a [T],
    inside: &'a [T],
}

impl<'a, T: RealScalar> RowSegment<'a, T> {
    #[inline(always)]
    fn new(operator: &'a Operator<T>, row: &Neighbours<'a, T>, at: &Range<usize>) -> Self {
        // The length as one number: the compiler then sees that no index leaves any of the slices.
        let n = at.len();
        let cut = |row: &'a [T]| &row[at.start..][..n];
        Self {
            row: Neighbours {
                centre: &row.centre[at.start..][..n + 2],
                slabs: [cut(row.slabs[0]), cut(row.slabs[1])],
                rows: [cut(row.rows[0]), cut(row.rows[1])],
                ..*row
            },
            west: cut(&operator.west),
            east: cut(&operator.east),
            inside: cut(&operator.inside),
        }
    }

    /// Weights of the first node, read once.
    #[inline(always)]
    fn first(&self) -> (T, T) {
        (self.west[0], self.east[0])
    }

    /// `A u` at node `i` of the stretch. Without `ROWS` a slab is one row; with `UNIFORM` the weights along x are
    /// `first` everywhere.
    #[inline(always)]
    fn operator<const ROWS: bool, const UNIFORM: bool>(&self, i: usize, first: (T, T)) -> T {
        let Neighbours { centre: u, slabs, slab_weights, rows, row_weights } = self.row;
        let (west, east) = if UNIFORM { first } else { (self.west[i], self.east[i]) };
        let centre = u[i + 1];
        let mut sum = physics::second_difference(centre, u[i], u[i + 2], west, east);
        if ROWS {
            sum += physics::second_difference(centre, rows[0][i], rows[1][i], row_weights.0, row_weights.1);
        }
        sum + physics::second_difference(centre, slabs[0][i], slabs[1][i], slab_weights.0, slab_weights.1)
    }
}

/// The stretches of a row of `n` nodes: the west end, the uniform middle, the east end. Any may be empty.
#[inline(always)]
pub(super) fn stretches<T>(operator: &Operator<T>, n: usize) -> [Range<usize>; 3] {
    let start = (operator.uniform.start * PAD).min(n);
    let end = (operator.uniform.end * PAD).clamp(start, n);
    [0..start, start..end, end..n]
}

/// Sums over a row are taken over every `CHUNK`-th node first, so that all loops are loops over independent nodes.
const CHUNK: usize = 128;

/// A relaxation of a row: `out = u + omega / d (A u - rhs)` where `step` is not 0, else `u`; with `MOMENTUM`, plus
/// `momentum (u - before)`.
pub(super) struct Relax<'a, T, const ROWS: bool, const MOMENTUM: bool> {
    pub operator: &'a Operator<T>,
    pub row: Neighbours<'a, T>,
    pub rhs: &'a [T],
    /// `1 / d` or 0.
    pub step: &'a [T],
    pub omega: T,
    pub momentum: T,
    pub before: &'a [T],
    pub out: &'a mut [T],
}

impl<T: RealScalar, const ROWS: bool, const MOMENTUM: bool> Relax<'_, T, ROWS, MOMENTUM> {
    #[inline(always)]
    fn segment<const UNIFORM: bool>(&mut self, at: Range<usize>) {
        let n = at.len();
        if n == 0 {
            return;
        }
        let segment = RowSegment::new(self.operator, &self.row, &at);
        let (rhs, steps, out) = (&self.rhs[at.start..][..n], &self.step[at.start..][..n], &mut self.out[at.start..][..n]);
        let before = if MOMENTUM { &self.before[at.start..][..n] } else { rhs };
        let (omega, momentum, first) = (self.omega, self.momentum, segment.first());
        for i in 0..n {
            let residual = physics::residual(rhs[i], segment.operator::<ROWS, UNIFORM>(i, first));
            let (centre, step) = (segment.row.centre[i + 1], omega * steps[i]);
            out[i] = if MOMENTUM {
                physics::relax_with_momentum(centre, residual, step, momentum, before[i])
            } else {
                physics::relax(centre, residual, step)
            };
        }
    }
}

impl<T: RealScalar, const ROWS: bool, const MOMENTUM: bool> Work for Relax<'_, T, ROWS, MOMENTUM> {
    type Out = ();

    #[inline(always)]
    fn run(mut self) {
        let [west, middle, east] = stretches(self.operator, self.out.len());
        self.segment::<false>(west);
        self.segment::<true>(middle);
        self.segment::<false>(east);
    }
}

/// Relaxation from `u = 0`: `out = -omega / d rhs`.
pub(super) struct RelaxZero<'a, T> {
    pub rhs: &'a [T],
    pub step: &'a [T],
    pub omega: T,
    pub out: &'a mut [T],
}

impl<T: RealScalar> Work for RelaxZero<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let n = self.out.len();
        let (rhs, step, out) = (&self.rhs[..n], &self.step[..n], &mut self.out[..n]);
        for i in 0..n {
            out[i] = physics::relax(T::ZERO, rhs[i], self.omega * step[i]);
        }
    }
}

/// The residual of the correction, `out = rhs - A e`.
pub(super) struct Residual<'a, T, const ROWS: bool> {
    pub operator: &'a Operator<T>,
    pub row: Neighbours<'a, T>,
    pub rhs: &'a [T],
    pub out: &'a mut [T],
}

impl<T: RealScalar, const ROWS: bool> Residual<'_, T, ROWS> {
    #[inline(always)]
    fn segment<const UNIFORM: bool>(&mut self, at: Range<usize>) {
        let n = at.len();
        if n == 0 {
            return;
        }
        let segment = RowSegment::new(self.operator, &self.row, &at);
        let (rhs, out) = (&self.rhs[at.start..][..n], &mut self.out[at.start..][..n]);
        let (first, first_inside) = (segment.first(), segment.inside[0]);
        for i in 0..n {
            let inside = if UNIFORM { first_inside } else { segment.inside[i] };
            out[i] = inside * physics::residual(rhs[i], segment.operator::<ROWS, UNIFORM>(i, first));
        }
    }
}

impl<T: RealScalar, const ROWS: bool> Work for Residual<'_, T, ROWS> {
    type Out = ();

    #[inline(always)]
    fn run(mut self) {
        let [west, middle, east] = stretches(self.operator, self.out.len());
        self.segment::<false>(west);
        self.segment::<true>(middle);
        self.segment::<false>(east);
    }
}

/// Contribution of a row to the norms: sums over its nodes weighted by the volumes along x.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RowSums {
    pub r: f64,
    pub r2: f64,
    pub u2: f64,
    pub max: f64,
}

/// The residual of the solution in its precision: `out = scale (rhs - A u)` rounded to the inner one, with its sums.
pub(super) struct OuterResidual<'a, T, U, const ROWS: bool> {
    pub operator: &'a Operator<U>,
    pub row: Neighbours<'a, U>,
    pub rhs: &'a [U],
    pub scale: U,
    /// Unit of `u` in its sum of squares.
    pub u_scale: U,
    pub out: &'a mut [T],
}

/// Residuals below this times the largest one are taken as zero in single precision: below its normal numbers the
/// CPU is a hundred times slower.
const NEGLIGIBLE: f64 = 1e-30;

/// Partial sums of a row.
struct ChunkSums<U> {
    r: [U; CHUNK],
    r2: [U; CHUNK],
    u2: [U; CHUNK],
    max: [U; CHUNK],
}

impl<T: RealScalar, U: RealScalar, const ROWS: bool> OuterResidual<'_, T, U, ROWS> {
    #[inline(always)]
    fn segment<const UNIFORM: bool>(&mut self, whole: Range<usize>, sums: &mut ChunkSums<U>) {
        let mut start = whole.start;
        let mut residuals = [U::ZERO; CHUNK];
        let negligible = U::from_f64(if size_of::<T>() == 4 { NEGLIGIBLE } else { 0.0 });
        while start < whole.end {
            let end = (start + CHUNK).min(whole.end);
            let n = end - start;
            let at = start..end;
            let segment = RowSegment::new(self.operator, &self.row, &at);
            let (rhs, out) = (&self.rhs[at.start..][..n], &mut self.out[at.start..][..n]);
            let volume = &self.operator.volume_x[if UNIFORM { whole.start } else { start }..][..n];
            let residuals = &mut residuals[..n];
            let (first, first_inside, scale) = (segment.first(), segment.inside[0], self.scale);
            for i in 0..n {
                let inside = if UNIFORM { first_inside } else { segment.inside[i] };
                residuals[i] = inside * (scale * physics::residual(rhs[i], segment.operator::<ROWS, UNIFORM>(i, first)));
            }
            let (r, r2) = (&mut sums.r[..n], &mut sums.r2[..n]);
            for i in 0..n {
                let weighted = volume[i] * residuals[i];
                r[i] += weighted;
                r2[i] += weighted * residuals[i];
            }
            let (u2, max, centre) = (&mut sums.u2[..n], &mut sums.max[..n], &segment.row.centre[1..=n]);
            for i in 0..n {
                let u = self.u_scale * centre[i];
                u2[i] += volume[i] * (u * u);
                max[i] = Real::max(max[i], residuals[i].abs());
            }
            for i in 0..n {
                let value = U::select(residuals[i].abs() < negligible, U::ZERO, residuals[i]);
                out[i] = T::from_f64(value.to_f64());
            }
            start = end;
        }
    }
}

/// The partial values of a row combined, halves on halves.
#[inline(always)]
fn combined<U: RealScalar>(values: &mut [U; CHUNK], combine: impl Fn(U, U) -> U) -> f64 {
    let mut n = CHUNK / 2;
    while n > 0 {
        let (low, high) = values.split_at_mut(n);
        for i in 0..n {
            low[i] = combine(low[i], high[i]);
        }
        n /= 2;
    }
    values[0].to_f64()
}

impl<T: RealScalar, U: RealScalar, const ROWS: bool> Work for OuterResidual<'_, T, U, ROWS> {
    type Out = RowSums;

    #[inline(always)]
    fn run(mut self) -> RowSums {
        let [west, middle, east] = stretches(self.operator, self.out.len());
        let zero = [U::ZERO; CHUNK];
        let mut sums = ChunkSums { r: zero, r2: zero, u2: zero, max: zero };
        self.segment::<false>(west, &mut sums);
        self.segment::<true>(middle, &mut sums);
        self.segment::<false>(east, &mut sums);
        RowSums {
            r: combined(&mut sums.r, |a, b| a + b),
            r2: combined(&mut sums.r2, |a, b| a + b),
            u2: combined(&mut sums.u2, |a, b| a + b),
            max: combined(&mut sums.max, Real::max),
        }
    }
}

/// `u += scale e`.
pub(super) struct AddScaled<'a, T, U> {
    pub e: &'a [T],
    pub scale: U,
    pub u: &'a mut [U],
}

impl<T: RealScalar, U: RealScalar> Work for AddScaled<'_, T, U> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let n = self.u.len();
        let (e, u) = (&self.e[..n], &mut self.u[..n]);
        for i in 0..n {
            u[i] += self.scale * U::from_f64(e[i].to_f64());
        }
    }
}
