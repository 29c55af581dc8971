//! Estimate of the error left in solving, relative to the truncation error.
//!
//! The exact solution `v` leaves `A v - rho = tau = (hx^2 v_xxxx + hy^2 v_yyyy (+ ..)) / 12` behind, a computed one the
//! residual `r`. Both are turned into errors of `u` by the same inverse, so the smooth part of `r`, measured against
//! `tau`, tells the error left in solving as a share of the truncation error. The rough part of `r` makes next to
//! no error and is averaged away; it is also where rounding sits. Fourth derivatives are taken over a stride, or
//! rounding would drown them on fine grids.
//!
//! There is no estimate where `tau` is no more than the rounding of `u` (the formula is exact, or the precision too low for its
//! error), or no more than what the rough part of the residual may make of it through `u`. And none for axes of fewer nodes than a
//! fourth derivative needs: those are refused.

use serde::Serialize;
use zellige_engine::error::Problem as Fault;

use crate::grid::Grid;
use crate::operator;

/// An estimate from the solution alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Truncation {
    /// Error left in solving over the truncation error.
    pub share: f64,
    /// Root mean square of the truncation error `tau`.
    pub tau: f64,
}

/// Intervals per axis that the stride leaves.
const SAMPLES: usize = 128;
/// Nodes per axis over which the residual is averaged at least.
const BOX: usize = 4;

/// A solve is done when the algebraic error is this share of the truncation error.
pub const SHARE: f64 = 0.5;
/// Nodes of an axis that a fourth derivative needs.
const LEAST_NODES: usize = 5;
/// `tau` is taken to be rounding up to this multiple of what values of `u` that are right to a rounding unit make of it. Rounding
/// to the nearest makes 0.3 of that, the transforms of the direct solver about 3.
const ROUNDING: f64 = 10.0;

/// Estimates the share of the algebraic error of `A u = f`, `u` being stored with the rounding unit `eps`; `None` where the
/// truncation error cannot be told from rounding and from errors that the cycles will take away.
pub fn estimate(grid: &Grid, u: &[f64], f: &[f64], eps: f64) -> Option<Truncation> {
    let (tau, rounding) = truncation_error(grid, u);
    if tau.is_nan() || tau <= ROUNDING * eps * rounding {
        return None;
    }
    let r = operator::residual(grid, u, f);
    // An error of `u` with the eigenvalue t in units of 1 / h^2, 4 at the most along an axis, makes t / 12 of its residual in `tau`; over
    // a stride s no more than 4 / s^2 counts.
    let root_mean_square = (r.iter().map(|r| r * r).sum::<f64>() / r.len() as f64).sqrt();
    let stride = (0..3).filter(|d| !grid.axes[*d].is_flat()).map(|d| strides(grid)[d]).min().unwrap_or(1) as f64;
    (tau * stride * stride >= root_mean_square).then(|| Truncation { share: smooth_residual(grid, &r) / tau, tau })
}

/// The refusal of a grid, by its nodes per axis, whose truncation error cannot be estimated.
pub(crate) fn too_few_nodes(nodes: &[usize]) -> Option<Fault> {
    let (axis, n) = ["x", "y", "z"].iter().zip(nodes).find(|(_, n)| (2..LEAST_NODES).contains(*n))?;
    let fault = Fault::new("tolerance", format!("`truncation` needs the truncation error, which {n} nodes in {axis} do not determine"));
    Some(fault.allowed(format!("{LEAST_NODES} or more nodes in each axis")).hint("give a number as `tolerance`, or more nodes"))
}

fn strides(grid: &Grid) -> [usize; 3] {
    [0, 1, 2].map(|d| (grid.axes[d].intervals() / SAMPLES).max(1))
}

/// Root mean square of `tau` over the nodes two strides or more from every side, and of what independent errors of the size of
/// each `u` would make of it; no number where there are no such nodes.
fn truncation_error(grid: &Grid, u: &[f64]) -> (f64, f64) {
    let [m, n, _] = grid.nodes();
    let stride = strides(grid);
    let offset = [1, m, m * n];
    let range = |d: usize| {
        let reach = if grid.axes[d].is_flat() { 0 } else { 2 * stride[d] };
        (reach..grid.axes[d].nodes.saturating_sub(reach)).step_by(stride[d])
    };
    let (mut sum, mut rounding, mut count) = (0.0, 0.0, 0_usize);
    for k in range(2) {
        for j in range(1) {
            for i in range(0) {
                let c = i + m * (j + n * k);
                let (mut tau, mut errors) = (0.0, 0.0);
                for d in (0..3).filter(|d| !grid.axes[*d].is_flat()) {
                    let (s, h) = (stride[d] * offset[d], grid.axes[d].h);
                    let fourth = u[c - 2 * s] + u[c + 2 * s] - 4.0 * (u[c - s] + u[c + s]) + 6.0 * u[c];
                    let weight = h * h / 12.0 / (stride[d] as f64 * h).powi(4);
                    tau += weight * fourth;
                    // 1 + 16 + 36 + 16 + 1.
                    errors += 70.0 * weight * weight;
                }
                sum += tau * tau;
                rounding += errors * u[c] * u[c];
                count += 1;
            }
        }
    }
    ((sum / count as f64).sqrt(), (rounding / count as f64).sqrt())
}

/// Root mean square of the residual averaged over boxes.
fn smooth_residual(grid: &Grid, r: &[f64]) -> f64 {
    let [m, n, l] = grid.nodes();
    let size = strides(grid).map(|s| s.max(BOX));
    let boxes = [0, 1, 2].map(|d| grid.nodes()[d].div_ceil(size[d]));
    let (mut sums, mut counts) = (vec![0.0; boxes.iter().product()], vec![0_u32; boxes.iter().product()]);
    for k in 0..l {
        for j in 0..n {
            let row = boxes[0] * (j / size[1] + boxes[1] * (k / size[2]));
            for (i, r) in r[m * (j + n * k)..][..m].iter().enumerate() {
                sums[row + i / size[0]] += r;
                counts[row + i / size[0]] += 1;
            }
        }
    }
    let square: f64 = sums.iter().zip(&counts).map(|(s, c)| (s / f64::from(*c)).powi(2)).sum();
    (square / sums.len() as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{Axis, Bc};

    /// Finds `2 h^2` for `x^4` along either axis: a twelfth of `h^2` times the fourth derivative, 24.
    #[test]
    fn a_fourth_power_has_its_truncation_error() {
        for d in 0..2 {
            let grid = Grid::plane(Axis::new(17, 1.0, Bc::Dirichlet, Bc::Dirichlet), Axis::new(9, 1.0, Bc::Dirichlet, Bc::Dirichlet));
            let [m, n, _] = grid.nodes();
            let (h, nodes) = (grid.axes[d].h, m * n);
            let u: Vec<f64> = (0..nodes).map(|c| ([c % m, c / m][d] as f64 * h).powi(4)).collect();
            let (tau, _) = truncation_error(&grid, &u);
            // Rounding of values up to 1 over h^2.
            assert!((tau - 2.0 * h * h).abs() < 1e-12 / (h * h), "{tau} for {}", 2.0 * h * h);
        }
    }
}
