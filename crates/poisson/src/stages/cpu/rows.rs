//! The operations on a row: the inner loops of the method.
//!
//! Each is a [`Work`], compiled for every instruction set. Rows are whole blocks of [`PAD`] nodes; out rows are never in
//! rows, so that the loops are loops over independent nodes.

use std::ops::Range;

use zellige_engine::real::{Lanes, Real, RealScalar};

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
    /// Their weights.
    pub slab_weights: (T, T),
    /// The rows before and after it in its slab.
    pub rows: [&'a [T]; 2],
    /// Their weights.
    pub row_weights: (T, T),
}

/// A stretch of a row with all that the operator reads there; every slice but `centre` has its length.
#[derive(Clone, Copy)]
struct Stretch<'a, T> {
    row: Neighbours<'a, T>,
    west: &'a [T],
    east: &'a [T],
    inside: &'a [T],
}

impl<'a, T: RealScalar> Stretch<'a, T> {
    #[inline(always)]
    fn new(operator: &'a Operator<T>, row: &Neighbours<'a, T>, at: &Range<usize>) -> Self {
        let cut = |row: &'a [T]| &row[at.start..at.end];
        Self {
            row: Neighbours {
                centre: &row.centre[at.start..at.end + 2],
                slabs: [cut(row.slabs[0]), cut(row.slabs[1])],
                rows: [cut(row.rows[0]), cut(row.rows[1])],
                ..*row
            },
            west: cut(&operator.west),
            east: cut(&operator.east),
            inside: cut(&operator.inside),
        }
    }

    /// `A u` at node `i` of the stretch. Without `ROWS` a slab is one row; with `UNIFORM` the weights along x are those
    /// of the first node.
    #[inline(always)]
    fn operator<const ROWS: bool, const UNIFORM: bool>(&self, i: usize) -> T {
        let Neighbours { centre: u, slabs, slab_weights, rows, row_weights } = self.row;
        let (west, east) = if UNIFORM { (self.west[0], self.east[0]) } else { (self.west[i], self.east[i]) };
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
fn stretches<T>(operator: &Operator<T>, n: usize) -> [Range<usize>; 3] {
    let start = (operator.uniform.start * PAD).min(n);
    let end = (operator.uniform.end * PAD).clamp(start, n);
    [0..start, start..end, end..n]
}

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
    fn stretch<const UNIFORM: bool>(&mut self, at: Range<usize>) {
        let n = at.len();
        if n == 0 {
            return;
        }
        let stretch = Stretch::new(self.operator, &self.row, &at);
        let (rhs, steps, out) = (&self.rhs[at.clone()][..n], &self.step[at.clone()][..n], &mut self.out[at.clone()][..n]);
        let before = if MOMENTUM { &self.before[at][..n] } else { rhs };
        for i in 0..n {
            let residual = physics::residual(rhs[i], stretch.operator::<ROWS, UNIFORM>(i));
            let (centre, step) = (stretch.row.centre[i + 1], self.omega * steps[i]);
            out[i] = if MOMENTUM {
                physics::relax_with_momentum(centre, residual, step, self.momentum, before[i])
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
        self.stretch::<false>(west);
        self.stretch::<true>(middle);
        self.stretch::<false>(east);
    }
}

/// The same from `u = 0`: `out = -omega / d rhs`.
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
    fn stretch<const UNIFORM: bool>(&mut self, at: Range<usize>) {
        let n = at.len();
        if n == 0 {
            return;
        }
        let stretch = Stretch::new(self.operator, &self.row, &at);
        let (rhs, out) = (&self.rhs[at.clone()][..n], &mut self.out[at][..n]);
        for i in 0..n {
            let inside = if UNIFORM { stretch.inside[0] } else { stretch.inside[i] };
            out[i] = inside * physics::residual(rhs[i], stretch.operator::<ROWS, UNIFORM>(i));
        }
    }
}

impl<T: RealScalar, const ROWS: bool> Work for Residual<'_, T, ROWS> {
    type Out = ();

    #[inline(always)]
    fn run(mut self) {
        let [west, middle, east] = stretches(self.operator, self.out.len());
        self.stretch::<false>(west);
        self.stretch::<true>(middle);
        self.stretch::<false>(east);
    }
}

/// What a row adds to the norms: sums over its nodes weighted by the volumes along x.
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

/// Sums of the norms by lanes.
struct LaneSums<U>([Lanes<U, PAD>; 4]);

impl<T: RealScalar, U: RealScalar, const ROWS: bool> OuterResidual<'_, T, U, ROWS> {
    #[inline(always)]
    fn stretch<const UNIFORM: bool>(&mut self, at: Range<usize>, sums: &mut LaneSums<U>) {
        let n = at.len();
        if n == 0 {
            return;
        }
        let stretch = Stretch::new(self.operator, &self.row, &at);
        let (rhs, out) = (&self.rhs[at.clone()][..n], &mut self.out[at.clone()][..n]);
        let volume = &self.operator.volume_x[at][..n];
        let [r, r2, u2, max] = &mut sums.0;
        let mut i = 0;
        while i + PAD <= n {
            for l in 0..PAD {
                let k = i + l;
                let inside = if UNIFORM { stretch.inside[0] } else { stretch.inside[k] };
                let residual = inside * (self.scale * physics::residual(rhs[k], stretch.operator::<ROWS, UNIFORM>(k)));
                let (u, v) = (self.u_scale * stretch.row.centre[k + 1], volume[k]);
                let weighted = v * residual;
                r.0[l] += weighted;
                r2.0[l] += weighted * residual;
                u2.0[l] += v * (u * u);
                max.0[l] = Real::max(max.0[l], residual.abs());
                out[k] = T::from_f64(residual.to_f64());
            }
            i += PAD;
        }
    }
}

impl<T: RealScalar, U: RealScalar, const ROWS: bool> Work for OuterResidual<'_, T, U, ROWS> {
    type Out = RowSums;

    #[inline(always)]
    fn run(mut self) -> RowSums {
        let [west, middle, east] = stretches(self.operator, self.out.len());
        let mut sums = LaneSums([Lanes::ZERO; 4]);
        self.stretch::<false>(west, &mut sums);
        self.stretch::<true>(middle, &mut sums);
        self.stretch::<false>(east, &mut sums);
        let [r, r2, u2, max] = sums.0;
        let sum = |lanes: Lanes<U, PAD>| lanes.0.iter().map(|v| v.to_f64()).sum();
        RowSums { r: sum(r), r2: sum(r2), u2: sum(u2), max: max.0.iter().fold(0.0, |m, v| f64::max(m, v.to_f64())) }
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

/// `out = west a + east b`.
pub(super) struct Between<'a, T> {
    pub west: T,
    pub a: &'a [T],
    pub east: T,
    pub b: &'a [T],
    pub out: &'a mut [T],
}

impl<T: RealScalar> Work for Between<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let n = self.out.len();
        let (a, b, out) = (&self.a[..n], &self.b[..n], &mut self.out[..n]);
        for i in 0..n {
            out[i] = physics::between(self.west, a[i], self.east, b[i]);
        }
    }
}

/// `out = w0 a + w1 b + w2 c`.
pub(super) struct Three<'a, T> {
    pub weights: [T; 3],
    pub rows: [&'a [T]; 3],
    pub out: &'a mut [T],
}

impl<T: RealScalar> Work for Three<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let n = self.out.len();
        let [a, b, c] = self.rows;
        let (a, b, c, out) = (&a[..n], &b[..n], &c[..n], &mut self.out[..n]);
        let [wa, wb, wc] = self.weights;
        for i in 0..n {
            out[i] = physics::three(wa, a[i], wb, b[i], wc, c[i]);
        }
    }
}

/// Restriction along x of a row with ghosts, to the coarse nodes `0..out.len()` whose fine nodes are `2 i`.
pub(super) struct RestrictX<'a, T> {
    /// The fine row from its west ghost on.
    pub fine: &'a [T],
    pub weights: [&'a [T]; 3],
    pub out: &'a mut [T],
}

impl<T: RealScalar> Work for RestrictX<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let n = self.out.len();
        let fine = &self.fine[..2 * n + 1];
        let [a, b, c] = self.weights;
        let (a, b, c) = (&a[..n], &b[..n], &c[..n]);
        for i in 0..n {
            self.out[i] = physics::three(a[i], fine[2 * i], b[i], fine[2 * i + 1], c[i], fine[2 * i + 2]);
        }
    }
}

/// `fine += P coarse` along x.
pub(super) struct ProlongX<'a, T> {
    /// The coarse row; its east ghost follows it.
    pub coarse: &'a [T],
    pub west: &'a [T],
    pub east: &'a [T],
    pub fine: &'a mut [T],
}

impl<T: RealScalar> Work for ProlongX<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let n = self.fine.len() / 2;
        let coarse = &self.coarse[..=n];
        let (west, east, fine) = (&self.west[..2 * n], &self.east[..2 * n], &mut self.fine[..2 * n]);
        for i in 0..n {
            fine[2 * i] += physics::between(west[2 * i], coarse[i], east[2 * i], coarse[i + 1]);
            fine[2 * i + 1] += physics::between(west[2 * i + 1], coarse[i], east[2 * i + 1], coarse[i + 1]);
        }
    }
}
