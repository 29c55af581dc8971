//! The operations on a row: the inner loops of the method.
//!
//! Each is a [`Work`], compiled for every instruction set. Rows are read and written in blocks of [`PAD`] lanes; out
//! rows are never in rows.

use zellige_engine::real::{Lanes, Real, RealScalar};

use super::field::PAD;
use super::isa::Work;
use super::tables::Operator;
use crate::physics;

type Block<T> = Lanes<T, PAD>;

#[inline(always)]
fn load<T: RealScalar>(row: &[T], i: usize) -> Block<T> {
    Block::load(&row[i..i + PAD])
}

/// A row and its neighbours, with the weights of the neighbours.
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

impl<T: RealScalar> Neighbours<'_, T> {
    /// Cut to `n` nodes, so that the compiler sees that no block leaves them.
    #[inline(always)]
    fn cut(&self, n: usize) -> Neighbours<'_, T> {
        Neighbours {
            centre: &self.centre[..n + 2],
            slabs: [&self.slabs[0][..n], &self.slabs[1][..n]],
            rows: [&self.rows[0][..n], &self.rows[1][..n]],
            ..*self
        }
    }

    /// `A u` on the block at `i`, `west` and `east` its weights. Without `ROWS` a slab is one row.
    #[inline(always)]
    fn operator<const ROWS: bool>(&self, i: usize, west: Block<T>, east: Block<T>) -> Block<T> {
        let centre = load(self.centre, i + 1);
        let mut sum = physics::second_difference(centre, load(self.centre, i), load(self.centre, i + 2), west, east);
        if ROWS {
            let (a, b) = self.row_weights;
            sum += physics::second_difference(centre, load(self.rows[0], i), load(self.rows[1], i), Block::splat(a), Block::splat(b));
        }
        let (a, b) = self.slab_weights;
        sum + physics::second_difference(centre, load(self.slabs[0], i), load(self.slabs[1], i), Block::splat(a), Block::splat(b))
    }
}

/// `body!(start..end, west, east, inside)` for the blocks at the ends, with the tables, and for those between, without.
macro_rules! over_blocks {
    ($operator:expr, $n:expr, |$i:ident, $west:ident, $east:ident, $inside:ident| $body:expr) => {{
        let (n, uniform) = ($n, $operator.uniform.start * PAD..$operator.uniform.end * PAD);
        let (west_table, east_table) = (&$operator.west[..n], &$operator.east[..n]);
        let inside_table = &$operator.inside[..n];
        let uniform = if uniform.end <= n && uniform.start < uniform.end { uniform } else { n..n };
        let mut $i = 0;
        while $i < uniform.start && $i + PAD <= n {
            let ($west, $east, $inside) = (load(west_table, $i), load(east_table, $i), load(inside_table, $i));
            $body;
            $i += PAD;
        }
        if uniform.start < n {
            let ($west, $east) = (Block::splat(west_table[uniform.start]), Block::splat(east_table[uniform.start]));
            let $inside = Block::splat(inside_table[uniform.start]);
            while $i < uniform.end && $i + PAD <= n {
                $body;
                $i += PAD;
            }
        }
        while $i + PAD <= n {
            let ($west, $east, $inside) = (load(west_table, $i), load(east_table, $i), load(inside_table, $i));
            $body;
            $i += PAD;
        }
    }};
}

/// A relaxation of a row: `out = u + omega / d (A u - rhs)` where `step` is not 0, else `u`; with `before`, plus
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

impl<T: RealScalar, const ROWS: bool, const MOMENTUM: bool> Work for Relax<'_, T, ROWS, MOMENTUM> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let n = self.out.len();
        let (row, rhs, table, out) = (self.row.cut(n), &self.rhs[..n], &self.step[..n], &mut self.out[..n]);
        let before = if MOMENTUM { &self.before[..n] } else { rhs };
        let (omega, momentum) = (Block::splat(self.omega), Block::splat(self.momentum));
        over_blocks!(self.operator, n, |i, west, east, _inside| {
            let residual = physics::residual(load(rhs, i), row.operator::<ROWS>(i, west, east));
            let (centre, step) = (load(row.centre, i + 1), omega * load(table, i));
            let new = if MOMENTUM {
                physics::relax_with_momentum(centre, residual, step, momentum, load(before, i))
            } else {
                physics::relax(centre, residual, step)
            };
            new.store(&mut out[i..i + PAD]);
        });
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

impl<T: RealScalar, const ROWS: bool> Work for Residual<'_, T, ROWS> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let n = self.out.len();
        let (row, rhs, out) = (self.row.cut(n), &self.rhs[..n], &mut self.out[..n]);
        over_blocks!(self.operator, n, |i, west, east, inside| {
            let residual = physics::residual(load(rhs, i), row.operator::<ROWS>(i, west, east));
            (inside * residual).store(&mut out[i..i + PAD]);
        });
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

impl<T: RealScalar, U: RealScalar, const ROWS: bool> Work for OuterResidual<'_, T, U, ROWS> {
    type Out = RowSums;

    #[inline(always)]
    fn run(self) -> RowSums {
        let n = self.out.len();
        let (row, rhs, out) = (self.row.cut(n), &self.rhs[..n], &mut self.out[..n]);
        let volume = &self.operator.volume_x[..n];
        let (scale, u_scale) = (Block::splat(self.scale), Block::splat(self.u_scale));
        let (mut r, mut r2, mut u2, mut max) = (Block::ZERO, Block::ZERO, Block::ZERO, Block::ZERO);
        over_blocks!(self.operator, n, |i, west, east, inside| {
            let residual = inside * (scale * physics::residual(load(rhs, i), row.operator::<ROWS>(i, west, east)));
            let (u, v) = (u_scale * load(row.centre, i + 1), load(volume, i));
            let weighted = v * residual;
            r += weighted;
            r2 += weighted * residual;
            u2 += v * (u * u);
            max = max.max(residual.abs());
            for l in 0..PAD {
                out[i + l] = T::from_f64(residual.0[l].to_f64());
            }
        });
        let sum = |lanes: Block<U>| lanes.0.iter().map(|v| v.to_f64()).sum();
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
