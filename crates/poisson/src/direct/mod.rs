//! The direct solver: transforms along all axes but the last, a tridiagonal system along that one for every mode.
//!
//! ```text
//! u_xx + u_yy = f      u^_k(y) = sum_i v_i u(x_i, y) phi_k(x_i)     (lambda_k + d^2/dy^2) u^_k = f^_k     u = sum_k u^_k phi_k
//! ```
//!
//! exact up to rounding for any mix of conditions and any size on a grid with equal intervals. Sizes whose largest prime
//! factor is small are fastest, but no size is refused. The work is `O(N log N)` and independent of the right-hand side:
//! nothing to converge and nothing to tune.
//!
//! A right-hand side is loaded as [`crate::stages::Stages::load`] takes it. The solution of a singular problem has mean
//! zero, and the mean of its right-hand side is taken off and reported.
//!
//! Source: Swarztrauber, SIAM Review 19 (1977) 490 (the matrix decomposition method); the transforms are in
//! `transform.rs`, the systems along the last axis in `line.rs`.

use zellige_engine::device::Device;
use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;
use zellige_engine::sim::Cost;

use crate::grid::{Axis, Bc, Grid};
use crate::problem::Precision;

mod cpu;
mod cuda;
mod fold;
mod line;
mod transform;
mod wide;
mod zero_mode;

#[cfg(test)]
mod tests;

/// Name of the stage in the profile.
pub const DIRECT: &str = "direct";

/// A planned problem on a device: load, solve, and read, as often as wanted.
pub struct Direct {
    grid: Grid,
    backend: Backend,
    bytes: u64,
    removed: f64,
}

enum Backend {
    F32(Box<cpu::Solver<f32>>),
    F64(Box<cpu::Solver<f64>>),
    CudaF32(Box<cuda::Solver<f32>>),
    CudaF64(Box<cuda::Solver<f64>>),
}

impl Direct {
    /// Plans the transforms and tables of `grid`, a user's grid (all intervals of an axis equal), and allocates. Mixed
    /// precision is double: there is no cycle that could be cheaper.
    pub fn new(grid: &Grid, precision: Precision, device: &Device) -> Result<Self> {
        assert!(grid.axes.iter().all(|a| a.theta == 1.0), "the direct solver takes grids of equal intervals");
        let backend = match (device, precision) {
            (Device::Cpu(cpu), Precision::F32) => Backend::F32(Box::new(cpu::Solver::new(grid, cpu))),
            (Device::Cpu(cpu), _) => Backend::F64(Box::new(cpu::Solver::new(grid, cpu))),
            (Device::Cuda(cuda), Precision::F32) => Backend::CudaF32(Box::new(cuda::Solver::new(grid, cuda)?)),
            (Device::Cuda(cuda), _) => Backend::CudaF64(Box::new(cuda::Solver::new(grid, cuda)?)),
        };
        let bytes = if precision == Precision::F32 { 4 } else { 8 };
        Ok(Self { grid: grid.clone(), backend, bytes, removed: 0.0 })
    }

    /// Takes a right-hand side (boundary fluxes already folded in) and an array whose Dirichlet nodes hold the boundary
    /// values, both over all nodes in C order with x fastest. The unknowns of `u` are not read.
    pub fn load(&mut self, u: &[f64], f: &[f64]) -> Result<()> {
        assert!(u.len() == self.grid.len() && f.len() == self.grid.len(), "arrays cover all nodes of the grid");
        match &mut self.backend {
            Backend::F32(solver) => solver.load(u, f, &self.grid),
            Backend::F64(solver) => solver.load(u, f, &self.grid),
            Backend::CudaF32(solver) => solver.load(u, f, &self.grid)?,
            Backend::CudaF64(solver) => solver.load(u, f, &self.grid)?,
        }
        Ok(())
    }

    /// Solves what was loaded and waits for it.
    pub fn solve(&mut self, profiler: &mut Profiler) -> Result<()> {
        let cost = self.cost();
        self.removed = match &mut self.backend {
            Backend::F32(solver) => profiler.stage(DIRECT, cost, || solver.solve()),
            Backend::F64(solver) => profiler.stage(DIRECT, cost, || solver.solve()),
            Backend::CudaF32(solver) => profiler.stage(DIRECT, cost, || solver.solve())?,
            Backend::CudaF64(solver) => profiler.stage(DIRECT, cost, || solver.solve())?,
        };
        Ok(())
    }

    /// The solution over all nodes.
    pub fn solution(&mut self) -> Result<Vec<f64>> {
        Ok(match &self.backend {
            Backend::F32(solver) => solver.solution(),
            Backend::F64(solver) => solver.solution(),
            Backend::CudaF32(solver) => solver.solution()?,
            Backend::CudaF64(solver) => solver.solution()?,
        })
    }

    /// Singular problems: the volume-weighted mean that the last solve took off the right-hand side.
    pub fn removed_mean(&self) -> f64 {
        self.removed
    }

    /// Bytes held on the device.
    pub fn memory(&self) -> u64 {
        match &self.backend {
            Backend::F32(solver) => solver.memory(),
            Backend::F64(solver) => solver.memory(),
            Backend::CudaF32(solver) => solver.memory(),
            Backend::CudaF64(solver) => solver.memory(),
        }
    }

    /// What a solve must move and compute: the right-hand side read, the modes written and read, the solution written; two
    /// complex DFTs of `n` points for two lines of each transformed axis (`5 n log2 n` each) and 12 operations around them.
    pub fn cost(&self) -> Cost {
        let items = self.grid.unknowns() as f64;
        let [x, middle, _] = ordered(&self.grid);
        let flops: f64 = [x, middle].iter().filter(|a| !a.is_flat()).map(|a| 5.0 * (a.nodes as f64).log2() + 12.0).sum();
        Cost { bytes: 4.0 * self.bytes as f64 * items, flops: (flops + 5.0) * items, items }
    }
}

/// x, the middle axis (flat in the plane) and the last axis, along which the systems are solved.
fn ordered(grid: &Grid) -> [&Axis; 3] {
    let [x, y, z] = &grid.axes;
    if z.is_flat() { [x, z, y] } else { [x, y, z] }
}

/// `-lambda h^2`, h of the last axis, of the modes of the two transformed axes.
fn deltas(axes: [&Axis; 3]) -> [Vec<f64>; 2] {
    [axes[0], axes[1]].map(|axis| {
        let ratio = axes[2].h / axis.h;
        let angles = transform::angles(transform::Kind::of(axis), axis.intervals());
        angles.iter().map(|phi| (2.0 * ratio * (0.5 * phi).sin()).powi(2)).collect()
    })
}

/// Calls `take(node, value)` with what the Dirichlet values of `u` add to `A u` at their neighbours.
fn fold_boundary(grid: &Grid, u: &[f64], mut take: impl FnMut(usize, f64)) {
    let n = grid.nodes();
    let stride = [1, n[0], n[0] * n[1]];
    for (d, axis) in grid.axes.iter().enumerate() {
        let (a, b) = [(1, 2), (0, 2), (0, 1)][d];
        for (bc, node, inward) in [(axis.lo, 0, 1), (axis.hi, axis.nodes - 1, -1)] {
            if bc != Bc::Dirichlet || axis.is_flat() {
                continue;
            }
            let weight = 1.0 / (axis.h * axis.h);
            for q in grid.axes[b].unknowns() {
                for p in grid.axes[a].unknowns() {
                    let side = node * stride[d] + p * stride[a] + q * stride[b];
                    take(side.wrapping_add_signed(inward * stride[d] as isize), weight * u[side]);
                }
            }
        }
    }
}
