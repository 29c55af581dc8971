//! The residual of a solution on the CPU: its norms, and a sweep of damped Jacobi on it. Row by row in double
//! precision, whatever the solution is stored in; the sums are by rows, so they do not depend on the number of threads.

use std::ops::Range;

use zellige_engine::parallel::{chunks_mut, each_with, indices, map_with};
use zellige_engine::real::prefetch;

use super::transform::Scalar;
use crate::grid::{Axis, Bc};
use crate::isa::{Isa, Run, Work};
use crate::stages::Norms;

/// Nodes of a block: two of the widest registers.
pub(super) const LANES: usize = 16;

/// Values by which a stream from memory is asked for ahead of its use, over the ends of pages, at which the CPU's own
/// asking stops.
const AHEAD: usize = 192;

/// Asks for the values that come [`AHEAD`] of these.
#[inline(always)]
pub(super) fn prefetch_block<T>(block: &[T]) {
    let ahead = block.as_ptr().wrapping_add(AHEAD);
    prefetch(ahead);
    prefetch(ahead.wrapping_add(LANES / 2));
}

/// The unknowns with their conditions, axes in the order x, middle, last.
pub(super) struct Field {
    nodes: [usize; 3],
    unknowns: [Range<usize>; 3],
    sides: [[Bc; 2]; 3],
    /// `1 / h^2`; 0 for a flat axis.
    weight: [f64; 3],
    volume: f64,
}

impl Field {
    pub(super) fn new(axes: [&Axis; 3]) -> Self {
        let half = |a: &Axis| 0.5 * [a.lo, a.hi].into_iter().filter(|bc| !a.is_flat() && *bc == Bc::Neumann).count() as f64;
        Self {
            nodes: axes.map(|a| a.nodes),
            unknowns: axes.map(Axis::unknowns),
            sides: axes.map(|a| [a.lo, a.hi]),
            weight: axes.map(|a| if a.is_flat() { 0.0 } else { 1.0 / (a.h * a.h) }),
            volume: axes.iter().map(|a| a.unknowns().len() as f64 - half(a)).product(),
        }
    }

    /// The node beside `i`; `None` at a Dirichlet side, whose values are in the right-hand side already.
    #[inline(always)]
    fn beside(&self, d: usize, i: usize, up: bool) -> Option<usize> {
        let Range { start, end } = self.unknowns[d];
        if if up { i + 1 < end } else { i > start } {
            return Some(if up { i + 1 } else { i - 1 });
        }
        match self.sides[d][usize::from(up)] {
            Bc::Dirichlet => None,
            Bc::Neumann => Some(if up { i - 1 } else { i + 1 }),
            Bc::Periodic => Some(if up { start } else { end - 1 }),
        }
    }

    /// Share of a control volume inside the grid, along axis `d`.
    fn share(&self, d: usize, i: usize) -> f64 {
        let Range { start, end } = self.unknowns[d];
        let half = |at: bool, bc: Bc| if at && bc == Bc::Neumann && self.weight[d] > 0.0 { 0.5 } else { 1.0 };
        half(i == start, self.sides[d][0]) * half(i + 1 == end, self.sides[d][1])
    }

    /// Gives `f - A u` of the unknowns of row `q`, `l` to `sink`. `zero` replaces the rows beyond Dirichlet sides.
    #[inline(always)]
    fn row<T: Scalar, S: Sink<T>>(&self, u: &[T], f: &[T], zero: &[T], [q, l]: [usize; 2], sink: &mut S) {
        let (x, m) = (self.unknowns[0].clone(), self.nodes[0]);
        let at = |q: usize, l: usize| m * (q + self.nodes[1] * l) + x.start;
        let row = |place: Option<usize>| place.map_or(zero, |p| &u[p..]);
        let last = [false, true].map(|up| row(self.beside(2, l, up).map(|l| at(q, l))));
        let (c, f, [_, wy, wz]) = (&u[at(q, l)..][..x.len()], &f[at(q, l)..], self.weight);
        if wy > 0.0 {
            let middle = [false, true].map(|up| row(self.beside(1, q, up).map(|q| at(q, l))));
            self.line(c, f, [middle[0], middle[1], last[0], last[1]], [wy, wy, wz, wz], sink);
        } else {
            self.line(c, f, last, [wz, wz], sink);
        }
    }

    /// Computes the residual along the line `c` between the rows `near`, whose second differences have the weights `w`.
    #[inline(always)]
    fn line<T: Scalar, S: Sink<T>, const N: usize>(&self, c: &[T], f: &[T], near: [&[T]; N], w: [f64; N], sink: &mut S) {
        let (n, first) = (c.len(), self.unknowns[0].start);
        let (f, near) = (&f[..n], near.map(|row| &row[..n]));
        // The first and the last node have a neighbour of their own kind.
        let single = |i: usize, sink: &mut S| {
            let value = |up: bool| self.beside(0, first + i, up).map_or(T::ZERO, |k| c[k - first]);
            let r = residual([c[i]], [value(false)], [value(true)], [f[i]], near.map(|row| [row[i]]), w, self.weight[0]);
            sink.one(i, r[0], c[i]);
        };
        single(0, sink);
        if n == 1 {
            return;
        }
        let (here, left, right, source) = (inner(c, 0), inner(c, -1), inner(c, 1), inner(f, 0));
        let beside = near.map(|row| inner(row, 0));
        for b in 0..here.len() {
            let mut side = [[T::ZERO; LANES]; N];
            for d in 0..N {
                side[d] = beside[d][b];
            }
            let r = residual(here[b], left[b], right[b], source[b], side, w, self.weight[0]);
            sink.block(1 + LANES * b, &r, &here[b]);
            prefetch_block(&source[b]);
            prefetch_block(&beside[N - 1][b]);
        }
        for i in 1 + LANES * here.len()..n {
            single(i, sink);
        }
    }

    /// Rows of the grid that hold unknowns: `None` for the others, else their index along the middle and the last axis.
    fn place(&self, row: usize) -> Option<[usize; 2]> {
        let place = [row % self.nodes[1], row / self.nodes[1]];
        (self.unknowns[1].contains(&place[0]) && self.unknowns[2].contains(&place[1])).then_some(place)
    }

    /// Computes the terms of the norms: the [`Row`]s of the given planes of the last axis, in order.
    pub(super) fn sums<T: Scalar>(&self, u: &[T], f: &[T], isa: Isa, planes: Range<usize>) -> Vec<Row> {
        let x = self.unknowns[0].clone();
        let ends = [1.0 - self.share(0, x.start), if x.len() > 1 { 1.0 - self.share(0, x.end - 1) } else { 0.0 }];
        let middle = self.unknowns[1].clone();
        let rows = indices(middle.len() * planes.len());
        map_with(
            || vec![T::ZERO; x.len()],
            rows,
            |zero, _, row| {
                let [q, l] = [middle.start + row % middle.len(), planes.start + row / middle.len()];
                let share = self.share(1, q) * self.share(2, l);
                let Row { r2, u2, max } = isa.run(RowNorms { field: self, u, f, zero, place: [q, l], ends });
                Row { r2: share * r2, u2: share * u2, max }
            },
        )
    }

    /// The norms of all rows, in order.
    pub(super) fn total(&self, rows: &[Row]) -> Norms {
        self.roots(add(Norms::default(), rows))
    }

    /// The norms from what [`add`] gives of all rows.
    pub(super) fn roots(&self, mut total: Norms) -> Norms {
        (total.l2, total.u_l2) = ((total.l2 / self.volume).sqrt(), (total.u_l2 / self.volume).sqrt());
        total
    }

    /// `to = u + omega r / diagonal` at the unknowns of some planes of the last axis.
    pub(super) fn relax<T: Scalar>(&self, u: &[T], f: &[T], (to, planes): (&mut [T], Range<usize>), omega: f64, isa: Isa) {
        let (x, plane) = (self.unknowns[0].clone(), self.nodes[0] * self.nodes[1]);
        // The diagonal of A is negative.
        let factor = -omega / self.weight.iter().map(|w| 2.0 * w).sum::<f64>();
        each_with(
            || vec![T::ZERO; x.len()],
            chunks_mut(&mut to[planes.start * plane..planes.end * plane], self.nodes[0]),
            |zero, row, to| {
                let Some(place) = self.place(planes.start * self.nodes[1] + row) else { return };
                isa.run(RelaxRow { field: self, u, f, zero, place, step: Step { to: &mut to[x.clone()], factor } });
            },
        );
    }
}

/// The sums of squares and the largest magnitude of some rows and of those that follow, in order.
pub(super) fn add(mut total: Norms, rows: &[Row]) -> Norms {
    for Row { r2, u2, max } in rows {
        (total.l2, total.u_l2) = (total.l2 + r2, total.u_l2 + u2);
        total.max = if max.is_nan() || total.max.is_nan() { f64::NAN } else { total.max.max(*max) };
    }
    total
}

/// The blocks of the inner nodes of a line, or of their neighbours.
#[inline(always)]
fn inner<T>(line: &[T], shift: isize) -> &[[T; LANES]] {
    line[1_usize.wrapping_add_signed(shift)..(line.len() - 1).wrapping_add_signed(shift)].as_chunks().0
}

/// `f - A u` of some neighbouring nodes `c`.
#[inline(always)]
fn residual<T: Scalar, const L: usize, const N: usize>(
    c: [T; L],
    left: [T; L],
    right: [T; L],
    f: [T; L],
    near: [[T; L]; N],
    w: [f64; N],
    wx: f64,
) -> [f64; L] {
    let mut r = [0.0; L];
    for k in 0..L {
        let here = c[k].to_f64();
        let mut sum = f[k].to_f64();
        for d in 0..N {
            sum -= w[d] * (near[d][k].to_f64() - here);
        }
        r[k] = sum - wx * ((left[k].to_f64() - here) + (right[k].to_f64() - here));
    }
    r
}

/// Use of the residual of a row.
trait Sink<T> {
    /// Takes those of the nodes `i ..` and the solution there.
    fn block(&mut self, i: usize, r: &[f64; LANES], u: &[T; LANES]);

    /// Takes that of node `i`.
    fn one(&mut self, i: usize, r: f64, u: T);
}

/// Sums of `r^2` and `u^2`, and the largest `|r|`.
struct Sums {
    r2: [f64; LANES],
    u2: [f64; LANES],
    max: [f64; LANES],
    /// Shares of the first and the last node that lie beyond a Neumann end and do not count.
    ends: [f64; 2],
    last: usize,
}

impl<T: Scalar> Sink<T> for Sums {
    #[inline(always)]
    fn block(&mut self, _: usize, r: &[f64; LANES], u: &[T; LANES]) {
        for k in 0..LANES {
            let (a, u) = (r[k].abs(), u[k].to_f64());
            self.r2[k] += r[k] * r[k];
            self.u2[k] += u * u;
            self.max[k] = if a > self.max[k] { a } else { self.max[k] };
        }
    }

    #[inline(always)]
    fn one(&mut self, i: usize, r: f64, u: T) {
        let beyond = |at: bool, share: f64| if at { share } else { 0.0 };
        let share = 1.0 - beyond(i == 0, self.ends[0]) - beyond(i == self.last, self.ends[1]);
        let (k, u) = (i % LANES, u.to_f64());
        self.r2[k] += share * (r * r);
        self.u2[k] += share * (u * u);
        self.max[k] = if r.abs() > self.max[k] { r.abs() } else { self.max[k] };
    }
}

/// Sums of `r^2` and `u^2` over a row, and the largest `|r|`, NaN if any is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Row {
    r2: f64,
    u2: f64,
    max: f64,
}

/// The sums of a row.
struct RowNorms<'a, T> {
    field: &'a Field,
    u: &'a [T],
    f: &'a [T],
    zero: &'a [T],
    place: [usize; 2],
    ends: [f64; 2],
}

impl<T: Scalar> Work for RowNorms<'_, T> {
    type Out = Row;

    #[inline(always)]
    fn run(self) -> Row {
        let zero = [0.0; LANES];
        let mut sums = Sums { r2: zero, u2: zero, max: zero, ends: self.ends, last: self.field.unknowns[0].len() - 1 };
        self.field.row(self.u, self.f, self.zero, self.place, &mut sums);
        let sum: f64 = sums.r2.iter().sum();
        Row { r2: sum, u2: sums.u2.iter().sum(), max: if sum.is_finite() { sums.max.iter().fold(0.0, |m, v| v.max(m)) } else { f64::NAN } }
    }
}

/// A damped step along the residual.
struct Step<'a, T> {
    to: &'a mut [T],
    factor: f64,
}

impl<T: Scalar> Sink<T> for Step<'_, T> {
    #[inline(always)]
    fn block(&mut self, i: usize, r: &[f64; LANES], u: &[T; LANES]) {
        let to = &mut self.to[i..i + LANES];
        for k in 0..LANES {
            to[k] = T::of(u[k].to_f64() + self.factor * r[k]);
        }
    }

    #[inline(always)]
    fn one(&mut self, i: usize, r: f64, u: T) {
        self.to[i] = T::of(u.to_f64() + self.factor * r);
    }
}

/// The step of a row.
struct RelaxRow<'a, T> {
    field: &'a Field,
    u: &'a [T],
    f: &'a [T],
    zero: &'a [T],
    place: [usize; 2],
    step: Step<'a, T>,
}

impl<T: Scalar> Work for RelaxRow<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run(mut self) {
        self.field.row(self.u, self.f, self.zero, self.place, &mut self.step);
    }
}
