//! The coarsest level: solved by a stored inverse where it is small, as it is unless the number of levels was limited,
//! else relaxed by SOR with the optimal factor.

use zellige_engine::error::Result;
use zellige_engine::real::RealScalar;

use super::field::{Field, Shape};
use super::share::Share;
use super::tables::Operator;
use crate::grid::Grid;
use crate::physics::optimal_omega;

/// Largest number of unknowns for which the inverse is stored: 1.3 MB, and less time to apply than one cycle takes elsewhere.
const MAX_DIRECT: usize = 400;

/// Reduction of the residual by SOR: well below a cycle's factor of about 0.05.
const SOR_REDUCTION: f64 = 1e-3;

/// Solver of the coarsest level.
#[derive(Debug)]
pub(super) enum CoarseSolver {
    /// `e = inverse (V r)` over the unknowns.
    Direct {
        /// Row-major.
        inverse: Vec<f64>,
        /// Indices `(i, row, slab)` of the unknowns and their volumes.
        nodes: Vec<([usize; 3], f64)>,
        rhs: Vec<f64>,
    },
    /// Sweeps from zero.
    Sor { omega: f64, sweeps: u32 },
}

impl CoarseSolver {
    pub(super) fn new(grid: &Grid, scale: f64) -> Self {
        if grid.unknowns() <= MAX_DIRECT {
            return Self::direct(grid, scale);
        }
        let omega = optimal_omega(grid);
        // The iteration matrix has a Jordan block at the optimum: twice the sweeps that the rate alone asks for.
        let sweeps = (2.0 * SOR_REDUCTION.ln() / (omega - 1.0).clamp(0.1, 1.0 - 1e-9).ln()).ceil() as u32;
        Self::Sor { omega, sweeps }
    }

    /// `-V A` is symmetric and positive; on a singular problem the mean of the solution is weighed in to make it so.
    fn direct(grid: &Grid, scale: f64) -> Self {
        let axes = &grid.axes;
        let operator = Operator::<f64>::new(grid, scale);
        let mut nodes = Vec::new();
        let mut number = vec![usize::MAX; grid.len()];
        let n = axes.each_ref().map(|a| a.nodes);
        let at = |p: [usize; 3]| p[0] + n[0] * (p[1] + n[1] * p[2]);
        for k in axes[2].unknowns() {
            for j in axes[1].unknowns() {
                for i in axes[0].unknowns() {
                    number[at([i, j, k])] = nodes.len();
                    let [vx, vy, vz] = &operator.volumes;
                    nodes.push(([i, j, k], vx[i] * vy[j] * vz[k]));
                }
            }
        }
        let count = nodes.len();
        let mut matrix = vec![0.0; count * count];
        for (row, (p, volume)) in nodes.iter().enumerate() {
            for (d, axis) in axes.iter().enumerate() {
                let (west, east) = axis.weights(p[d]);
                for (weight, step) in [(west, n[d] - 1), (east, 1)] {
                    if weight == 0.0 {
                        continue;
                    }
                    matrix[row * count + row] += scale * weight * volume;
                    let mut q = *p;
                    q[d] = (q[d] + step) % n[d];
                    if let Some(entry) = matrix.get_mut(row * count..(row + 1) * count).and_then(|m| m.get_mut(number[at(q)])) {
                        *entry -= scale * weight * volume;
                    }
                }
            }
        }
        if grid.singular() {
            let size = matrix[0] / (nodes[0].1 * operator.volume);
            for (row, (_, a)) in nodes.iter().enumerate() {
                for (column, (_, b)) in nodes.iter().enumerate() {
                    matrix[row * count + column] += size * a * b;
                }
            }
        }
        Self::Direct { inverse: invert(matrix, count), rhs: vec![0.0; count], nodes }
    }

    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Direct { inverse, nodes, rhs } => 8 * (inverse.len() + 4 * nodes.len() + rhs.len()) as u64,
            Self::Sor { .. } => 0,
        }
    }
}

/// Inverse of a symmetric positive matrix by Gauss-Jordan elimination, which needs no pivots there.
fn invert(mut a: Vec<f64>, n: usize) -> Vec<f64> {
    for p in 0..n {
        let pivot = 1.0 / a[p * n + p];
        let mut pivot_row = a[p * n..(p + 1) * n].to_vec();
        pivot_row[p] = 1.0;
        for v in &mut pivot_row {
            *v *= pivot;
        }
        for (row, line) in a.chunks_exact_mut(n).enumerate() {
            if row == p {
                line.copy_from_slice(&pivot_row);
            } else {
                let factor = line[p];
                line[p] = 0.0;
                for (v, q) in line.iter_mut().zip(&pivot_row) {
                    *v -= factor * q;
                }
            }
        }
    }
    a
}

/// Solves `A e = r` by the stored inverse.
pub(super) fn apply_inverse<T: RealScalar>(
    inverse: &[f64],
    nodes: &[([usize; 3], f64)],
    rhs: &mut [f64],
    singular: bool,
    r: &Field<T>,
    e: &mut Field<T>,
) {
    for (value, ([i, j, k], _)) in rhs.iter_mut().zip(nodes) {
        *value = -r.at(*i, *j, *k).to_f64();
    }
    let volume: f64 = nodes.iter().map(|(_, v)| v).sum();
    let mean = if singular { nodes.iter().zip(&*rhs).map(|((_, v), r)| v * r).sum::<f64>() / volume } else { 0.0 };
    for (value, (_, v)) in rhs.iter_mut().zip(nodes) {
        *value = v * (*value - mean);
    }
    let n = nodes.len();
    for (line, ([i, j, k], _)) in inverse.chunks_exact(n.max(1)).zip(nodes) {
        *e.at_mut(*i, *j, *k) = T::from_f64(line.iter().zip(&*rhs).map(|(a, b)| a * b).sum());
    }
}

/// Takes the volume-weighted mean off `field`; gives the mean and the largest value left.
pub(super) fn remove_mean<T: RealScalar, V: RealScalar>(
    field: &mut Field<T>,
    operator: &Operator<V>,
    share: &Share,
    mean: Option<f64>,
) -> Result<(f64, f64)> {
    let shape: Shape = field.shape;
    let [vx, vy, vz] = &operator.volumes;
    let mean = match mean {
        Some(mean) => mean,
        None => {
            let slab = |k: usize| -> f64 {
                let row = |j: usize| vy[j] * (0..shape.nx).map(|i| vx[i] * field.at(i, j, k).to_f64()).sum::<f64>();
                vz[k] * (0..shape.rows).map(row).sum::<f64>()
            };
            let mut sums = vec![[0.0]; shape.slabs];
            share.own().for_each(|k| sums[k] = [slab(k)]);
            share.gather_values(&mut sums)?;
            sums.as_flattened().iter().sum::<f64>() / operator.volume
        }
    };
    let (mut max, off) = (0.0_f64, T::from_f64(mean));
    field.beside = 0;
    for slab in field.slabs_mut(share.own()).chunks_exact_mut(shape.slab()) {
        for j in 0..shape.rows {
            for v in &mut shape.row_mut(slab, j)[..shape.nx] {
                *v -= off;
                max = max.max(v.to_f64().abs());
            }
        }
    }
    Ok((mean, share.max(max)?))
}
