//! The operator `A` of the finest grid spelt out in double precision: the definition that the fast stages are held to.
//! The checks of a run and of a benchmark recompute the residual with it.

use std::ops::Range;

use zellige_engine::parallel::{chunks, indices, map, map_with};

use crate::grid::Grid;
use crate::isa::{Isa, Run, Work};
use crate::stages::Norms;

/// Weights of an axis and its unknowns, as tables.
struct Weights {
    west: Vec<f64>,
    east: Vec<f64>,
}

impl Weights {
    fn new(grid: &Grid, d: usize) -> Self {
        let axis = &grid.axes[d];
        let (west, east) = (0..axis.nodes).map(|i| axis.weights(i)).unzip();
        Self { west, east }
    }
}

/// `each(j, k, au)` for every row of `range` with unknowns, `au` being the row of `A u`; what it gives is returned in order.
fn rows<R: Send>(grid: &Grid, u: &[f64], range: Range<usize>, each: impl Fn(usize, usize, &[f64]) -> R + Sync) -> Vec<R> {
    let [m, n, l] = grid.nodes();
    let [wx, wy, wz] = [0, 1, 2].map(|d| Weights::new(grid, d));
    let [x, y, z] = [0, 1, 2].map(|d| grid.axes[d].unknowns());
    let row = |j: usize, k: usize| &u[m * (j + n * k)..m * (j + n * k) + m];
    let of_rows = map_with(
        || vec![0.0; m],
        indices(range.len()),
        |au, _, r| {
            let (j, k) = ((range.start + r) % n, (range.start + r) / n);
            if !(y.contains(&j) && z.contains(&k)) {
                return None;
            }
            let c = row(j, k);
            for i in x.clone() {
                let (w, e) = (c[(i + m - 1) % m], c[(i + 1) % m]);
                au[i] = wx.west[i] * (w - c[i]) + wx.east[i] * (e - c[i]);
            }
            let others = [
                (wy.west[j], row((j + n - 1) % n, k)),
                (wy.east[j], row((j + 1) % n, k)),
                (wz.west[k], row(j, (k + l - 1) % l)),
                (wz.east[k], row(j, (k + 1) % l)),
            ];
            for (weight, other) in others {
                if weight != 0.0 {
                    for i in x.clone() {
                        au[i] += weight * (other[i] - c[i]);
                    }
                }
            }
            Some(each(j, k, au))
        },
    );
    of_rows.into_iter().flatten().collect()
}

/// `f - A u` over all nodes, zero on Dirichlet nodes.
pub fn residual(grid: &Grid, u: &[f64], f: &[f64]) -> Vec<f64> {
    let [m, n, _] = grid.nodes();
    let x = grid.axes[0].unknowns();
    let mut r = vec![0.0; grid.len()];
    let computed = rows(grid, u, all_rows(grid), |j, k, au| {
        let start = m * (j + n * k);
        let row: Vec<f64> = x.clone().map(|i| f[start + i] - au[i]).collect();
        (start, row)
    });
    for (start, row) in computed {
        r[start + x.start..start + x.end].copy_from_slice(&row);
    }
    r
}

/// All rows of nodes along x.
fn all_rows(grid: &Grid) -> Range<usize> {
    let [_, n, l] = grid.nodes();
    0..n * l
}

/// Norms of `f - A u` and of `u`. The sums are by rows, so they do not depend on the number of threads.
pub fn residual_norms(grid: &Grid, u: &[f64], f: &[f64]) -> Norms {
    norms_of_rows(grid, &residual_rows(grid, u, f, all_rows(grid)))
}

/// Sums of the squares of `f - A u` and of `u`, and the largest magnitude of the former, of each row of `range` with unknowns, in
/// order. Of `u` the rows beside are read too.
pub(crate) fn residual_rows(grid: &Grid, u: &[f64], f: &[f64], range: Range<usize>) -> Vec<[f64; 3]> {
    let [m, n, _] = grid.nodes();
    let [x, y, z] = [0, 1, 2].map(|d| &grid.axes[d]);
    let vx: Vec<f64> = (0..m).map(|i| x.volume(i)).collect();
    rows(grid, u, range, |j, k, au| {
        let start = m * (j + n * k);
        let (mut r2, mut u2, mut max, mut finite) = (0.0, 0.0, 0.0_f64, true);
        for i in x.unknowns() {
            let (r, u) = (f[start + i] - au[i], u[start + i]);
            r2 += vx[i] * r * r;
            u2 += vx[i] * u * u;
            max = max.max(r.abs());
            finite &= r.is_finite();
        }
        let v = y.volume(j) * z.volume(k);
        [v * r2, v * u2, if finite { max } else { f64::NAN }]
    })
}

/// Volume of the unknowns.
fn volume(grid: &Grid) -> f64 {
    grid.axes.iter().map(|a| a.unknowns().map(|i| a.volume(i)).sum::<f64>()).product()
}

/// Norms from what [`residual_rows`] or [`source_rows`] give of all rows, in order.
pub(crate) fn norms_of_rows(grid: &Grid, rows: &[[f64; 3]]) -> Norms {
    let volume = volume(grid);
    let mut norms = Norms::default();
    for [r2, u2, max] in rows {
        norms.l2 += r2;
        norms.u_l2 += u2;
        norms.max = if max.is_nan() || norms.max.is_nan() { f64::NAN } else { norms.max.max(*max) };
    }
    norms.l2 = (norms.l2 / volume).sqrt();
    norms.u_l2 = (norms.u_l2 / volume).sqrt();
    norms
}

/// Values that a pass sums side by side.
const LANES: usize = 16;

/// `sum v f^2` and `max |f|` over the unknowns of a row, no number if any value of the row is none.
struct SourceRow<'a> {
    f: &'a [f64],
    volumes: &'a [f64],
    unknowns: Range<usize>,
}

impl Work for SourceRow<'_> {
    type Out = [f64; 2];

    #[inline(always)]
    fn run(self) -> [f64; 2] {
        let Self { f, volumes, unknowns } = self;
        let (mut squares, mut max, mut none) = ([0.0; LANES], [0.0_f64; LANES], [0.0; LANES]);
        let inner = &f[unknowns.clone()];
        let (blocks, rest) = inner.as_chunks::<LANES>();
        let (weights, last) = volumes[unknowns.clone()].as_chunks::<LANES>();
        let mut take = |k: usize, f: f64, v: f64| {
            squares[k] += v * (f * f);
            max[k] = if f.abs() > max[k] { f.abs() } else { max[k] };
            none[k] += 0.0 * f;
        };
        for (f, v) in blocks.iter().zip(weights) {
            for k in 0..LANES {
                take(k, f[k], v[k]);
            }
        }
        for (k, (f, v)) in rest.iter().zip(last).enumerate() {
            take(k, *f, *v);
        }
        let none: f64 = none.iter().sum::<f64>() + f[..unknowns.start].iter().chain(&f[unknowns.end..]).map(|f| 0.0 * f).sum::<f64>();
        [squares.iter().sum::<f64>() + none, max.iter().fold(none, |m, v| if *v > m { *v } else { m })]
    }
}

/// Norms over the unknowns of a right-hand side, which is read once; no numbers if any of its values, those on Dirichlet nodes too,
/// is not finite. The sums are by rows, so they do not depend on the number of threads.
pub fn source_norms(grid: &Grid, f: &[f64]) -> Norms {
    norms_of_rows(grid, &source_rows(grid, f, all_rows(grid)))
}

/// Sum of the squares of a right-hand side, zero, and its largest magnitude, of each row of `range`, in order.
pub(crate) fn source_rows(grid: &Grid, f: &[f64], range: Range<usize>) -> Vec<[f64; 3]> {
    let [m, n, _] = grid.nodes();
    let [x, y, z] = [0, 1, 2].map(|d| &grid.axes[d]);
    let (volumes, isa): (Vec<f64>, _) = ((0..m).map(|i| x.volume(i)).collect(), Isa::best());
    map(chunks(&f[range.start * m..range.end * m], m), |row, f| {
        let (j, k) = ((range.start + row) % n, (range.start + row) / n);
        let inside = y.unknowns().contains(&j) && z.unknowns().contains(&k);
        let unknowns = if inside { x.unknowns() } else { 0..0 };
        let [squares, max] = isa.run(SourceRow { f, volumes: &volumes, unknowns });
        [y.volume(j) * z.volume(k) * squares, 0.0, max]
    })
}

/// Mean over the unknowns, weighted by control volumes.
pub fn mean(grid: &Grid, v: &[f64]) -> f64 {
    mean_of_rows(grid, &mean_rows(grid, v, all_rows(grid)))
}

/// The mean from what [`mean_rows`] gives of all rows, in order.
pub(crate) fn mean_of_rows(grid: &Grid, rows: &[f64]) -> f64 {
    rows.iter().sum::<f64>() / volume(grid)
}

/// Sums over the unknowns of each row of `range`, weighted by control volumes, in order.
pub(crate) fn mean_rows(grid: &Grid, v: &[f64], range: Range<usize>) -> Vec<f64> {
    let [m, n, _] = grid.nodes();
    let [x, y, z] = [0, 1, 2].map(|d| &grid.axes[d]);
    let vx: Vec<f64> = (0..m).map(|i| x.volume(i)).collect();
    map(chunks(&v[range.start * m..range.end * m], m), |row, v| {
        let (j, k) = ((range.start + row) % n, (range.start + row) / n);
        if y.unknowns().contains(&j) && z.unknowns().contains(&k) {
            let sum: f64 = x.unknowns().map(|i| vx[i] * v[i]).sum();
            sum * y.volume(j) * z.volume(k)
        } else {
            0.0
        }
    })
}

/// `v` at the unknowns, zero elsewhere.
pub fn unknowns_only(grid: &Grid, v: &[f64]) -> Vec<f64> {
    let [m, n, _] = grid.nodes();
    let [x, y, z] = [0, 1, 2].map(|d| grid.axes[d].unknowns());
    let inside = |i: usize| x.contains(&(i % m)) && y.contains(&(i / m % n)) && z.contains(&(i / (m * n)));
    v.iter().enumerate().map(|(i, v)| if inside(i) { *v } else { 0.0 }).collect()
}

/// An upper bound of `||A||`: twice the sum of the largest weights.
pub fn norm_bound(grid: &Grid) -> f64 {
    grid.axes.iter().map(|a| 2.0 * a.unknowns().map(|i| a.weights(i)).fold(0.0, |s: f64, (w, e)| s.max(w + e))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{Axis, Bc};

    /// Weights nodes by their volumes, half ones at Neumann ends: the mean of `x^2` by the trapezoidal rule, `1/3 + h^2/6`, along
    /// either axis.
    #[test]
    fn norms_are_weighted_by_volumes() {
        let axis = |n| Axis::new(n, 1.0, Bc::Neumann, Bc::Neumann);
        let grid = Grid::plane(axis(5), axis(9));
        let [m, n, _] = grid.nodes();
        for d in 0..2 {
            let h = grid.axes[d].h;
            let f: Vec<f64> = (0..m * n).map(|c| [c % m, c / m][d] as f64 * h).collect();
            let expected = (1.0 / 3.0 + h * h / 6.0).sqrt();
            let found = [residual_norms(&grid, &vec![0.0; m * n], &f).l2, source_norms(&grid, &f).l2];
            assert!(found.iter().all(|found| (found - expected).abs() < 1e-14), "{found:?} for {expected}");
        }
    }
}
