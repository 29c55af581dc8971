//! Problems of the cases, with their solutions where these have a closed form.

use std::f64::consts::PI;

use zellige_engine::parallel::{chunks_mut, each, items};

use crate::grid::{Axis, Bc, Grid};
use crate::problem::{Problem, Side};

/// Side of the plane domain.
pub(super) const LENGTH: f64 = 32.0;

/// Two opposite Gaussian charges on `n^2` nodes.
pub fn dipole(n: usize) -> Problem<'static> {
    let h = LENGTH / (n - 1) as f64;
    let mut rhs = vec![0.0; n * n];
    let profile = |centre: f64| -> Vec<f64> { (0..n).map(|i| (-0.5 * (i as f64 * h - centre).powi(2)).exp()).collect() };
    let (left, right, y) = (profile(12.0), profile(20.0), profile(16.0));
    each((chunks_mut(&mut rhs, n), items(&y)), |_, (row, y)| {
        for (i, v) in row.iter_mut().enumerate() {
            *v = y * (left[i] - right[i]);
        }
    });
    Problem::plane([n, n], [LENGTH, LENGTH], rhs)
}

/// Wave numbers and amplitudes of the modes; a plane has no third.
pub(super) const MODES: [([f64; 3], f64); 2] = [([1.0, 2.0, 1.0], 1.0), ([3.0, 1.0, 5.0], 0.5)];

/// The mode `p` of an axis, which its second difference takes to a multiple of itself: its value at node `i`, and that multiple.
/// Sines from a held end, cosines from a free one; the far end sets the angle between two nodes.
fn mode(axis: &Axis, p: f64, i: usize) -> (f64, f64) {
    let n = axis.nodes as f64;
    let angle = match (axis.lo, axis.hi) {
        _ if axis.nodes == 1 => return (1.0, 0.0),
        (Bc::Periodic, _) => 2.0 * PI * p / n,
        (lo, hi) if lo == hi => PI * p / (n - 1.0),
        _ => PI * (p - 0.5) / (n - 1.0),
    };
    let value = if axis.lo == Bc::Dirichlet { (angle * i as f64).sin() } else { (angle * i as f64).cos() };
    (value, -(2.0 / axis.h * (0.5 * angle).sin()).powi(2))
}

/// The values of a mode at all nodes of an axis.
fn wave(axis: &Axis, p: f64) -> Vec<f64> {
    (0..axis.nodes).map(|i| mode(axis, p, i).0).collect()
}

/// `problem` with a right-hand side of two modes of its sides, whose solution is the same modes over their eigenvalues.
pub fn modes(problem: Problem<'static>) -> Problem<'static> {
    let grid = problem.grid();
    let [m, n, _] = grid.nodes();
    let mut rhs = vec![0.0; grid.len()];
    for (p, amplitude) in MODES {
        let [x, y, z] = std::array::from_fn(|d| wave(&grid.axes[d], p[d]));
        each(chunks_mut(&mut rhs, m), |row, out| {
            let scale = amplitude * y[row % n] * z[row / n];
            out.iter_mut().zip(&x).for_each(|(v, x)| *v += scale * x);
        });
    }
    Problem { rhs: rhs.into(), ..problem }
}

/// The discrete solution of [`modes`] at a node.
pub(super) fn modes_solution(grid: &Grid, node: [usize; 3]) -> f64 {
    let solved = |(p, amplitude): &([f64; 3], f64)| {
        let of: [_; 3] = std::array::from_fn(|d| mode(&grid.axes[d], p[d], node[d]));
        amplitude * of.iter().map(|m| m.0).product::<f64>() / of.iter().map(|m| m.1).sum::<f64>()
    };
    MODES.iter().map(solved).sum()
}

/// A box of `n^3` nodes with zero sides.
pub fn cube(n: usize) -> Problem<'static> {
    Problem::space([n; 3], [1.0; 3], Vec::new())
}

/// A square of `n^2` nodes with zero sides.
pub(super) fn square(n: usize) -> Problem<'static> {
    Problem::plane([n; 2], [1.0; 2], Vec::new())
}

/// A box with a side of every kind: x periodic, y between Dirichlet and Neumann sides, z between Neumann sides.
pub fn mixed_sides(nodes: [usize; 3]) -> Problem<'static> {
    Problem::space(nodes, [1.0; 3], Vec::new()).periodic(0).sides(1, Side::dirichlet(0.0), Side::neumann(0.0)).sides(
        2,
        Side::neumann(0.0),
        Side::neumann(0.0),
    )
}
