//! How far a solution is from the error of the formula itself.
//!
//! The exact solution `v` leaves `A v - rho = tau = (hx^2 v_xxxx + hy^2 v_yyyy (+ ..)) / 12` behind, a computed one the
//! residual `r`. Both are turned into errors of `u` by the same inverse, so the smooth part of `r`, measured against
//! `tau`, tells the error left in solving as a share of the error of the formula. The rough part of `r` makes next to
//! no error and is averaged away; it is also where rounding sits. Fourth derivatives are taken over a stride, or
//! rounding would drown them on fine grids.

use serde::Serialize;

use crate::grid::Grid;
use crate::operator;

/// An estimate from the solution alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Truncation {
    /// Error left in solving over the error of the formula.
    pub share: f64,
    /// Root mean square of the truncation error `tau`.
    pub tau: f64,
}

/// Intervals per axis that the stride leaves.
const SAMPLES: usize = 128;
/// Nodes per axis over which the residual is averaged at least.
const BOX: usize = 4;

/// Estimates the share of the error of solving `A u = f`.
pub fn estimate(grid: &Grid, u: &[f64], f: &[f64]) -> Truncation {
    let tau = truncation_error(grid, u);
    let smooth = smooth_residual(grid, &operator::residual(grid, u, f));
    Truncation { share: if tau > 0.0 { smooth / tau } else { 0.0 }, tau }
}

fn strides(grid: &Grid) -> [usize; 3] {
    [0, 1, 2].map(|d| (grid.axes[d].intervals() / SAMPLES).max(1))
}

/// Root mean square of `tau` over the nodes two strides or more from every side.
fn truncation_error(grid: &Grid, u: &[f64]) -> f64 {
    let [m, n, _] = grid.nodes();
    let stride = strides(grid);
    let offset = [1, m, m * n];
    let range = |d: usize| {
        let reach = if grid.axes[d].is_flat() { 0 } else { 2 * stride[d] };
        (reach..grid.axes[d].nodes.saturating_sub(reach)).step_by(stride[d])
    };
    let (mut sum, mut count) = (0.0, 0_usize);
    for k in range(2) {
        for j in range(1) {
            for i in range(0) {
                let c = i + m * (j + n * k);
                let mut tau = 0.0;
                for d in (0..3).filter(|d| !grid.axes[*d].is_flat()) {
                    let (s, h) = (stride[d] * offset[d], grid.axes[d].h);
                    let fourth = u[c - 2 * s] + u[c + 2 * s] - 4.0 * (u[c - s] + u[c + s]) + 6.0 * u[c];
                    tau += h * h / 12.0 * fourth / (stride[d] as f64 * h).powi(4);
                }
                sum += tau * tau;
                count += 1;
            }
        }
    }
    (sum / count.max(1) as f64).sqrt()
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
