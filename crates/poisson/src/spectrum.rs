//! The spectrum of the Jacobi matrix of a uniform grid in closed form, and the relaxation factors that follow from it.
//!
//! Source: Young, Iterative Solution of Large Linear Systems (1971), chapters 5 and 6.

use crate::grid::{Axis, Bc, Grid};

/// The ends of the spectrum of the Jacobi matrix `1 - A / diag A`, constants of a singular problem left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spectrum {
    /// Largest eigenvalue (slowest mode).
    pub low: f64,
    /// Magnitude of the most negative eigenvalue (roughest mode).
    pub high: f64,
}

impl Spectrum {
    /// Computes the extreme eigenvalues for a uniform grid: `sum_d w_d cos_d / sum_d w_d`.
    pub fn of(grid: &Grid) -> Self {
        let axes: Vec<&Axis> = grid.axes.iter().filter(|a| !a.is_flat()).collect();
        let weight = |a: &Axis| 1.0 / (a.h * a.h);
        let total: f64 = axes.iter().map(|a| weight(a)).sum();
        // 1 - cos of the smoothest mode of each axis; for a singular problem the axis with the smallest second one
        // carries the slowest mode that matters.
        let mut gap: f64 = axes.iter().map(|a| weight(a) * smooth_gap(a, false)).sum();
        if grid.singular() {
            gap = axes.iter().map(|a| weight(a) * smooth_gap(a, true)).fold(f64::INFINITY, f64::min);
        }
        let rough: f64 = axes.iter().map(|a| weight(a) * rough_gap(a)).sum();
        Self { low: 1.0 - gap / total, high: 1.0 - rough / total }
    }

    /// `2 / (1 + sqrt(1 - rho^2))`, and no more than `seam_omega`.
    pub fn sor_omega(self, grid: &Grid) -> f64 {
        // 1 - rho^2 without cancellation for rho near 1.
        let gap = 1.0 - self.low;
        let optimal = 2.0 / (1.0 + (gap * (2.0 - gap)).sqrt());
        seam_omega(grid).map_or(optimal, |most| optimal.min(most))
    }

    /// Factor of the error per sweep of over-relaxation by `omega`: Young's relation between the eigenvalues.
    pub fn sor_rate(self, omega: f64) -> f64 {
        let discriminant = (omega * self.low).powi(2) - 4.0 * (omega - 1.0);
        if discriminant <= 0.0 { omega - 1.0 } else { (0.5 * (omega * self.low + discriminant.sqrt())).powi(2) }
    }

    /// The damping that makes both ends of the spectrum equally slow.
    pub fn jacobi_omega(self) -> f64 {
        2.0 / (2.0 - self.low + self.high)
    }

    /// Factor of the error per sweep of Jacobi damped by `omega`.
    pub fn jacobi_rate(self, omega: f64) -> f64 {
        (1.0 - omega * (1.0 - self.low)).abs().max((1.0 - omega * (1.0 + self.high)).abs())
    }
}

/// The largest factor of over-relaxation that is safe where a periodic axis of an odd number of nodes puts two nodes of one colour
/// side by side, each of which then sees the other as it was before: `2 - 1.25 / sqrt(n)`, n the least such number.
///
/// Not consistently ordered, such a grid follows no relation like Young's: over-relaxation grows at the seam once the rest of the
/// ring damps too little. By Householder and John it converges where `(2 / omega - 1) d` is above the weight across the seam, which
/// holds for all lengths to `omega < 4 / 3`; longer rings damp more. The power method on rings of 3 to 257 nodes, alone and beside
/// axes of weights 1 to 400 times smaller, two and three of them at once, finds limits of `2 - c / sqrt(n)` with c from 0.5 to
/// 1.16.
pub(crate) fn seam_omega(grid: &Grid) -> Option<f64> {
    let odd = grid.axes.iter().filter(|a| a.periodic() && !a.is_flat() && a.nodes % 2 == 1).map(|a| a.nodes);
    odd.min().map(|n| 2.0 - 1.25 / (n as f64).sqrt())
}

/// `1 - cos(angle)` without cancellation.
fn gap(angle: f64) -> f64 {
    2.0 * (0.5 * angle).sin().powi(2)
}

/// `1 - cos` of the smoothest mode of an axis, or of the smoothest that is not constant.
fn smooth_gap(axis: &Axis, skip_constant: bool) -> f64 {
    use std::f64::consts::PI;
    let n = axis.intervals() as f64;
    match (axis.lo, axis.hi) {
        (Bc::Dirichlet, Bc::Dirichlet) => gap(PI / n),
        (Bc::Dirichlet, _) | (_, Bc::Dirichlet) => gap(0.5 * PI / n),
        (Bc::Periodic, _) if skip_constant => gap(2.0 * PI / n),
        (Bc::Neumann, _) if skip_constant => gap(PI / n),
        _ => 0.0,
    }
}

/// `1 + cos` of the roughest mode of an axis.
fn rough_gap(axis: &Axis) -> f64 {
    use std::f64::consts::PI;
    let n = axis.intervals() as f64;
    match (axis.lo, axis.hi) {
        (Bc::Periodic, _) if axis.nodes % 2 == 1 => gap(PI / n),
        (Bc::Periodic, _) => 0.0,
        _ => smooth_gap(axis, false),
    }
}

#[cfg(test)]
mod tests {
    use zellige_engine::device::Cpu;

    use super::*;
    use crate::operator;

    const D: Bc = Bc::Dirichlet;
    const N: Bc = Bc::Neumann;
    const P: Bc = Bc::Periodic;

    /// Largest eigenvalue of `(1 + sign J) / 2` by the power method with constants projected out where asked.
    fn extreme(grid: &Grid, sign: f64) -> f64 {
        let diagonal: f64 = grid.axes.iter().filter(|a| !a.is_flat()).map(|a| 2.0 / (a.h * a.h)).sum();
        let zero = vec![0.0; grid.len()];
        let mut v: Vec<f64> = (0..grid.len()).map(|i| ((i * i + 3 * i) as f64).sin()).collect();
        v = operator::unknowns_only(grid, &v);
        let mut eigenvalue = 0.0;
        for _ in 0..4000 {
            if grid.singular() && sign > 0.0 {
                let mean = operator::mean(grid, &v);
                for x in &mut v {
                    *x -= mean;
                }
            }
            // J v = v + A v / diag, and the residual of f = 0 is -A v.
            let r = operator::residual(grid, &v, &zero);
            let next: Vec<f64> = v.iter().zip(&r).map(|(v, r)| 0.5 * (v + sign * (v - r / diagonal))).collect();
            let size = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
            eigenvalue = size(&next) / size(&v);
            let scale = 1.0 / size(&next);
            v = next.iter().map(|x| x * scale).collect();
        }
        eigenvalue
    }

    #[test]
    fn the_spectrum_is_that_of_the_operator() {
        // Grids of some fifty nodes: other threads would be woken for longer than they work.
        Cpu::new(1).unwrap().install(spectrum_of_operator);
    }

    fn spectrum_of_operator() {
        let pairs = [((D, D), (D, D)), ((D, N), (N, N)), ((N, N), (P, P)), ((P, P), (P, P)), ((N, D), (P, P))];
        for ((xl, xh), (yl, yh)) in pairs {
            for (m, n, ratio) in [(9, 6, 1.0), (7, 9, 1.7)] {
                let grid = Grid::plane(Axis::new(m, 1.0, xl, xh), Axis::new(n, ratio, yl, yh));
                let s = Spectrum::of(&grid);
                let (low, high) = (2.0 * extreme(&grid, 1.0) - 1.0, 2.0 * extreme(&grid, -1.0) - 1.0);
                // 4000 steps of the power method; neighbouring eigenvalues of these grids differ by 1e-2 or more.
                assert!((low - s.low).abs() < 1e-6, "{grid:?}: low {low} against {s:?}");
                assert!((high - s.high).abs() < 1e-6, "{grid:?}: high {high} against {s:?}");
            }
        }
    }

    /// Damps both ends of a spectrum that is not symmetric alike: the factors have opposite signs.
    #[test]
    fn damping_makes_both_ends_equally_slow() {
        let (closed, ring) = (|| Axis::new(5, 1.0, N, D), || Axis::new(9, 1.0, P, P));
        for grid in [Grid::plane(closed(), ring()), Grid::plane(ring(), closed())] {
            let s = Spectrum::of(&grid);
            assert!((s.high - s.low).abs() > 1e-3, "{s:?} has equal ends");
            let omega = s.jacobi_omega();
            let ends = [1.0 - omega * (1.0 - s.low), 1.0 - omega * (1.0 + s.high)];
            assert!((ends[0] + ends[1]).abs() < 1e-14, "{ends:?}");
            assert!((s.jacobi_rate(omega) - ends[0]).abs() < 1e-14);
        }
    }

    #[test]
    fn textbook_values_of_the_square() {
        for n in [128, 4096] {
            let grid = Grid::plane(Axis::new(n + 1, 32.0, D, D), Axis::new(n + 1, 32.0, D, D));
            let s = Spectrum::of(&grid);
            let expected = 2.0 / (1.0 + (std::f64::consts::PI / n as f64).sin());
            assert!((s.sor_omega(&grid) - expected).abs() < 1e-12, "{n}");
            assert!((s.sor_rate(s.sor_omega(&grid)) - (expected - 1.0)).abs() < 1e-7);
            assert!((s.sor_rate(1.0) - s.low * s.low).abs() < 1e-14);
            assert!((s.jacobi_omega() - 1.0).abs() < 1e-12);
        }
        // The figure of the 4096-interval square.
        let grid = Grid::plane(Axis::new(4097, 1.0, D, D), Axis::new(4097, 1.0, D, D));
        let s = Spectrum::of(&grid);
        assert!((s.sor_omega(&grid) - 1.99847).abs() < 5e-6);
    }
}
