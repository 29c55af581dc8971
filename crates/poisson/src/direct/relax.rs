//! The residual of a solution on the processor: its norms, and a sweep of damped Jacobi on it. Row by row in double
//! precision, whatever the solution is stored in; the sums are by rows, so they do not depend on the number of threads.

use std::ops::Range;

use zellige_engine::parallel::{chunks_mut, each_with, indices, map_with};

use super::transform::Scalar;
use super::wide::wide;
use crate::grid::{Axis, Bc};
use crate::stages::Norms;

/// Independent sums of a row: two of the widest registers.
const LANES: usize = 16;

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

    /// `f - A u` of the unknowns of row `q`, `l` into `r`.
    #[inline(always)]
    fn row<T: Scalar>(&self, u: &[T], f: &[T], [q, l]: [usize; 2], r: &mut [f64]) {
        let (x, m) = (self.unknowns[0].clone(), self.nodes[0]);
        let at = |q: usize, l: usize| &u[m * (q + self.nodes[1] * l)..][x.clone()];
        let (c, n) = (at(q, l), x.len());
        for (r, f) in r.iter_mut().zip(&f[m * (q + self.nodes[1] * l)..][x.clone()]) {
            *r = f.to_f64();
        }
        for (d, w) in [(1, self.weight[1]), (2, self.weight[2])].into_iter().filter(|(_, w)| *w > 0.0) {
            let here = if d == 1 { q } else { l };
            for up in [false, true] {
                let row = self.beside(d, here, up).map(|k| if d == 1 { at(k, l) } else { at(q, k) });
                match row {
                    Some(row) => r.iter_mut().zip(row).zip(c).for_each(|((r, v), c)| *r -= w * (v.to_f64() - c.to_f64())),
                    None => r.iter_mut().zip(c).for_each(|(r, c)| *r += w * c.to_f64()),
                }
            }
        }
        let w = self.weight[0];
        let inner = r.get_mut(1..n - 1).unwrap_or_default();
        for (r, v) in inner.iter_mut().zip(c.windows(3)) {
            *r -= w * ((v[0].to_f64() - v[1].to_f64()) + (v[2].to_f64() - v[1].to_f64()));
        }
        for i in if n > 1 { vec![0, n - 1] } else { vec![0] } {
            let value = |up: bool| self.beside(0, x.start + i, up).map_or(0.0, |k| c[k - x.start].to_f64());
            r[i] -= w * ((value(false) - c[i].to_f64()) + (value(true) - c[i].to_f64()));
        }
    }

    /// Rows of the grid that hold unknowns: `None` for the others, else their place along the middle and the last axis.
    fn place(&self, row: usize) -> Option<[usize; 2]> {
        let place = [row % self.nodes[1], row / self.nodes[1]];
        (self.unknowns[1].contains(&place[0]) && self.unknowns[2].contains(&place[1])).then_some(place)
    }

    /// Norms of `f - A u` and of `u`.
    pub(super) fn norms<T: Scalar>(&self, u: &[T], f: &[T]) -> Norms {
        let x = self.unknowns[0].clone();
        let ends = [1.0 - self.share(0, x.start), if x.len() > 1 { 1.0 - self.share(0, x.end - 1) } else { 0.0 }];
        let rows = indices(self.nodes[1] * self.nodes[2]);
        let sums = map_with(
            || vec![0.0; x.len()],
            rows,
            |r, _, row| {
                let [q, l] = self.place(row)?;
                Some(wide(|| {
                    self.row(u, f, [q, l], r);
                    let u = &u[self.nodes[0] * row..][x.clone()];
                    let share = self.share(1, q) * self.share(2, l);
                    let [r2, u2, max] = sums(r, u);
                    // What lies beyond a Neumann end does not count.
                    let last = x.len() - 1;
                    let beyond = |v: [f64; 2]| ends[0] * v[0] * v[0] + ends[1] * v[1] * v[1];
                    [share * (r2 - beyond([r[0], r[last]])), share * (u2 - beyond([u[0].to_f64(), u[last].to_f64()])), max]
                }))
            },
        );
        let mut total = Norms::default();
        for [r2, u2, max] in sums.into_iter().flatten() {
            (total.l2, total.u_l2) = (total.l2 + r2, total.u_l2 + u2);
            total.max = if max.is_nan() || total.max.is_nan() { f64::NAN } else { total.max.max(max) };
        }
        (total.l2, total.u_l2) = ((total.l2 / self.volume).sqrt(), (total.u_l2 / self.volume).sqrt());
        total
    }

    /// `to = u + omega r / diagonal` at the unknowns.
    pub(super) fn relax<T: Scalar>(&self, u: &[T], f: &[T], to: &mut [T], omega: f64) {
        let x = self.unknowns[0].clone();
        // The diagonal of A is negative.
        let factor = -omega / self.weight.iter().map(|w| 2.0 * w).sum::<f64>();
        each_with(
            || vec![0.0; x.len()],
            chunks_mut(to, self.nodes[0]),
            |r, row, to| {
                let Some([q, l]) = self.place(row) else { return };
                wide(|| {
                    self.row(u, f, [q, l], r);
                    for ((to, r), u) in to[x.clone()].iter_mut().zip(&*r).zip(&u[row * self.nodes[0]..][x.clone()]) {
                        *to = T::of(u.to_f64() + factor * r);
                    }
                });
            },
        );
    }
}

/// Sums of `r^2` and `u^2`, and the largest `|r|`; NaN if any is.
#[inline(always)]
fn sums<T: Scalar>(r: &[f64], u: &[T]) -> [f64; 3] {
    let (mut r2, mut u2, mut max) = ([0.0; LANES], [0.0; LANES], [0.0_f64; LANES]);
    let mut take = |r: &[f64], u: &[T]| {
        for (k, (r, u)) in r.iter().zip(u).enumerate() {
            let (a, u) = (r.abs(), u.to_f64());
            r2[k] += r * r;
            u2[k] += u * u;
            max[k] = if a > max[k] { a } else { max[k] };
        }
    };
    let (rows, rest) = r.as_chunks::<LANES>();
    let (values, u_rest) = u.as_chunks::<LANES>();
    rows.iter().zip(values).for_each(|(r, u)| take(r, u));
    take(rest, u_rest);
    let sum: f64 = r2.iter().sum();
    [sum, u2.iter().sum(), if sum.is_finite() { max.iter().fold(0.0, |m, v| v.max(m)) } else { f64::NAN }]
}
