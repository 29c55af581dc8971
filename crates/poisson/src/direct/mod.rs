//! The direct solver: transforms along all axes but the last, a tridiagonal system along that one for every mode.
//!
//! ```text
//! u_xx + u_yy = f      u^_k(y) = sum_i v_i u(x_i, y) phi_k(x_i)     (lambda_k + d^2/dy^2) u^_k = f^_k     u = sum_k u^_k phi_k
//! ```
//!
//! exact up to rounding for any mix of conditions and any size on a grid with equal intervals. Sizes whose largest prime
//! factor is small are fastest, but no size is refused. The work is `O(N log N)` and independent of the right-hand side:
//! nothing to converge and nothing to tune. On the CPU an axis whose size is awkward for transforms changes places with
//! the last one where that is the cheaper way (`axis_swap.rs`), and is eliminated along instead.
//!
//! A right-hand side is loaded as [`crate::stages::Stages::load`] takes it. The solution of a singular problem has mean
//! zero, and the mean of its right-hand side is taken off and reported.
//!
//! Source: Swarztrauber, SIAM Review 19 (1977) 490 (the matrix decomposition method); the transforms are in
//! `transform.rs`, the systems along the last axis in `line.rs`. What their rounding leaves is noise, which a sweep of
//! relaxation takes away where a tolerance asks for it (`relax.rs`).

use std::ops::Range;

use zellige_engine::cuda::{Buffer, Coming, Properties, Recipe};
use zellige_engine::device::Device;
use zellige_engine::error::Result;
use zellige_engine::links::Links;
use zellige_engine::profile::Profiler;
use zellige_engine::sim::Cost;

use crate::grid::{Axis, Bc, Grid};
use crate::problem::Precision;
use crate::stages::cpu::host_slabs;
use crate::stages::{self, HostShare, Norms};
use axis_swap::Turn;
pub(crate) use waves::Sent;

mod axis_swap;
mod cpu;
mod cuda;
mod fold;
mod line;
mod odd;
mod pairs;
mod relax;
mod transform;
mod waves;
mod zero_mode;

#[cfg(test)]
mod tests;

/// Name of the stage in the profile.
pub const DIRECT: &str = "direct";

/// Name of a sweep on the solution in the profile.
pub const POLISH: &str = "polish";

/// Largest number of right-hand sides of one plan on a GPU: the limit of a launch along its second axis.
pub const SYSTEMS: usize = 65_535;

/// A planned problem on a device, for one right-hand side or a batch: load, solve, polish and read, as often as wanted.
///
/// The CPU takes one right-hand side at a time: batches are solved side by side there, one a thread.
pub struct Direct {
    grid: Grid,
    turn: Turn,
    backend: Backend,
    systems: usize,
    bytes: u64,
    removed: Vec<f64>,
}

/// The program of the direct solver for a grid on such a GPU.
pub(crate) fn recipe(grid: &Grid, precision: Precision, gpu: &Properties) -> Recipe {
    match precision {
        Precision::F32 => cuda::recipe_on::<f32>(grid, gpu),
        _ => cuda::recipe_on::<f64>(grid, gpu),
    }
}

enum Backend {
    F32(Box<cpu::Solver<f32>>),
    F64(Box<cpu::Solver<f64>>),
    CudaF32(Box<cuda::Solver<f32>>),
    CudaF64(Box<cuda::Solver<f64>>),
}

/// Damping of the sweep that takes most off white noise, the rounding of the transforms. With `t` the eigenvalues of the
/// Jacobi-scaled operator, spread as those of noise are, it makes `sum t^2 (1 - omega t)^2` least: `<t^3> / <t^4>`, which is
/// 1.75 / 2.64 in the plane and 1.5 / 2.07 in space, for a factor of 0.27 of the residual's norm.
fn damping(grid: &Grid) -> f64 {
    if grid.dimensions() < 3 { 0.66 } else { 0.72 }
}

impl Direct {
    /// Plans the transforms and tables of `grid`, a user's grid (all intervals of an axis equal), and allocates. Mixed
    /// precision is double: there is no cycle that could be cheaper.
    pub fn new(grid: &Grid, precision: Precision, device: &Device) -> Result<Self> {
        Self::batch(grid, 1, precision, device)
    }

    /// Prepares as [`Direct::new`] does, for `systems` right-hand sides at once, up to [`SYSTEMS`] on a GPU and 1 on the CPU.
    pub fn batch(grid: &Grid, systems: usize, precision: Precision, device: &Device) -> Result<Self> {
        Self::with_axis_swap(grid, crate::estimate::axis_to_swap(grid, !matches!(device, Device::Cpu(_))), systems, precision, device)
    }

    /// Prepares as [`Direct::batch`] does, eliminating along the axis `swapped` in place of the last one: on the CPU only.
    pub fn with_axis_swap(grid: &Grid, swapped: Option<usize>, systems: usize, precision: Precision, device: &Device) -> Result<Self> {
        Self::planned(grid, swapped, systems, precision, device, &Links::default())
    }

    /// Prepares as [`Direct::new`] does, for a part of a run on the CPU.
    pub(crate) fn of_part(grid: &Grid, precision: Precision, device: &Device, links: &Links) -> Result<Self> {
        Self::planned(grid, crate::estimate::axis_to_swap(grid, !matches!(device, Device::Cpu(_))), 1, precision, device, links)
    }

    fn planned(grid: &Grid, swapped: Option<usize>, systems: usize, precision: Precision, device: &Device, links: &Links) -> Result<Self> {
        assert!(grid.axes.iter().all(|a| a.theta == 1.0), "the direct solver takes grids of equal intervals");
        assert!(swapped.is_none() || matches!(device, Device::Cpu(_)), "axes change places on the CPU only");
        let most = if matches!(device, Device::Cpu(_)) { 1 } else { SYSTEMS };
        assert!((1..=most).contains(&systems), "{systems} right-hand sides at once");
        let (work, host) = (axis_swap::grid(grid, swapped), host_slabs(grid, links));
        let share = if host.divided() { host_slabs(&work, links) } else { HostShare::undivided(&work, links) };
        let backend = match (device, precision) {
            (Device::Cpu(cpu), Precision::F32) => Backend::F32(Box::new(cpu::Solver::new(&work, cpu, share))),
            (Device::Cpu(cpu), _) => Backend::F64(Box::new(cpu::Solver::new(&work, cpu, share))),
            (Device::Cuda(cuda), Precision::F32) => Backend::CudaF32(Box::new(cuda::Solver::new(grid, systems, cuda)?)),
            (Device::Cuda(cuda), _) => Backend::CudaF64(Box::new(cuda::Solver::new(grid, systems, cuda)?)),
        };
        let (turn, bytes) = (Turn { swapped, host }, precision.outer_bytes());
        Ok(Self { grid: grid.clone(), turn, backend, systems, bytes, removed: vec![0.0; systems] })
    }

    /// Slabs of the grid that this part of a run has on its host.
    pub(crate) fn host_share(&self) -> HostShare {
        self.turn.host.clone()
    }

    /// The grid that it was made for.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Bytes of a value.
    pub(crate) fn precision_bytes(&self) -> u64 {
        self.bytes
    }

    /// Right-hand sides that are solved at once.
    pub fn systems(&self) -> usize {
        self.systems
    }

    /// Takes a right-hand side (boundary fluxes already folded in) and an array whose Dirichlet nodes hold the boundary
    /// values, both over all nodes in C order with x fastest. The unknowns of `u` are read by [`Direct::polish`] alone.
    pub fn load(&mut self, u: &[f64], f: &[f64]) -> Result<()> {
        self.load_system(0, u, f)
    }

    /// Loads as [`Direct::load`] does, into system number `system` of a batch.
    pub fn load_system(&mut self, system: usize, u: &[f64], f: &[f64]) -> Result<()> {
        assert!(u.len() == self.grid.len() && f.len() == self.grid.len(), "arrays cover all nodes of the grid");
        assert!(system < self.systems, "right-hand side {system} of {}", self.systems);
        match &mut self.backend {
            Backend::F32(solver) => solver.load(u, f, &self.grid, &self.turn),
            Backend::F64(solver) => solver.load(u, f, &self.grid, &self.turn),
            Backend::CudaF32(solver) => solver.load(system, u, f, &self.grid),
            Backend::CudaF64(solver) => solver.load(system, u, f, &self.grid),
        }
    }

    /// Solves the loaded problem. Does not wait for a GPU.
    pub fn solve(&mut self, profiler: &mut Profiler) -> Result<()> {
        let cost = self.cost();
        match &mut self.backend {
            Backend::F32(solver) => self.removed[0] = profiler.stage(DIRECT, cost, || solver.solve(false))?.0,
            Backend::F64(solver) => self.removed[0] = profiler.stage(DIRECT, cost, || solver.solve(false))?.0,
            Backend::CudaF32(solver) => profiler.stage_on(&solver.cuda().clone(), DIRECT, cost, || solver.solve())?,
            Backend::CudaF64(solver) => profiler.stage_on(&solver.cuda().clone(), DIRECT, cost, || solver.solve())?,
        }
        Ok(())
    }

    /// Solves as [`Direct::solve`] does and returns the norms of [`Direct::norms`]: on the CPU in one pass, which saves a pass of
    /// the solution through memory.
    pub fn solve_measured(&mut self, profiler: &mut Profiler) -> Result<Vec<Norms>> {
        let cost = self.measured_cost();
        let (removed, norms) = match &mut self.backend {
            Backend::F32(solver) => profiler.stage(DIRECT, cost, || solver.solve(true))?,
            Backend::F64(solver) => profiler.stage(DIRECT, cost, || solver.solve(true))?,
            Backend::CudaF32(_) | Backend::CudaF64(_) => {
                self.solve(profiler)?;
                return self.norms(profiler);
            }
        };
        self.removed[0] = removed;
        Ok(norms.into_iter().collect())
    }

    /// Returns true if [`Direct::solve_borrowed`] can work on the caller's arrays: the CPU does so in double precision.
    pub(crate) fn can_borrow(&self) -> bool {
        self.turn.swapped.is_none() && matches!(self.backend, Backend::F64(_))
    }

    /// Solves as [`Direct::solve_measured`] does, from the caller's right-hand side, which includes the values of Dirichlet sides,
    /// into the caller's array, where [`Direct::can_borrow`].
    pub(crate) fn solve_borrowed(&mut self, f: &[f64], u: &mut [f64], profiler: &mut Profiler) -> Result<Option<Norms>> {
        let cost = self.measured_cost();
        let Backend::F64(solver) = &mut self.backend else { return Ok(None) };
        let (removed, norms) = profiler.stage(DIRECT, cost, || solver.solve_borrowed(f, u, true))?;
        self.removed[0] = removed;
        Ok(norms)
    }

    /// Loads as [`Direct::load`] does, a right-hand side in the GPU's memory that includes the values of Dirichlet sides.
    pub(crate) fn load_on_gpu(&mut self, f: &Buffer<f64>) -> Result<()> {
        match &mut self.backend {
            Backend::F32(_) | Backend::F64(_) => Err(stages::needs_gpu_stages()),
            Backend::CudaF32(solver) => solver.load_on_gpu(f),
            Backend::CudaF64(solver) => solver.load_on_gpu(f),
        }
    }

    /// The solution, zero on Dirichlet nodes, in the GPU's memory.
    pub(crate) fn solution_on_gpu(&mut self, u: &mut Buffer<f64>) -> Result<()> {
        match &mut self.backend {
            Backend::F32(_) | Backend::F64(_) => Err(stages::needs_gpu_stages()),
            Backend::CudaF32(solver) => solver.solution_on_gpu(u),
            Backend::CudaF64(solver) => solver.solution_on_gpu(u),
        }
    }

    /// Pixels of the solution of the only system, as [`stages::Stages::picture`] gives them.
    pub(crate) fn picture(&mut self, dimensions: usize, double_in_record: bool) -> Result<Option<Vec<Coming<f32>>>> {
        let len = self.grid.nodes();
        match &mut self.backend {
            Backend::F32(_) | Backend::F64(_) => Ok(None),
            Backend::CudaF32(solver) => solver.picture(&len[..dimensions], double_in_record).map(Some),
            Backend::CudaF64(solver) => solver.picture(&len[..dimensions], double_in_record).map(Some),
        }
    }

    /// Polishes as [`Direct::polish`] does, after [`Direct::solve_borrowed`].
    pub(crate) fn polish_borrowed(&mut self, f: &[f64], u: &mut [f64], profiler: &mut Profiler) -> Result<Option<Norms>> {
        let (omega, cost) = (damping(&self.grid), self.polish_cost());
        let Backend::F64(solver) = &mut self.backend else { return Ok(None) };
        profiler.stage(POLISH, cost, || solver.polish_borrowed(f, u, omega)).map(Some)
    }

    /// A sweep of damped Jacobi on the solutions of the systems that are `active`, formed from their true residual. It takes
    /// the rounding of the transforms down to that of storing the solution, in a sweep or two.
    pub fn polish(&mut self, active: &[bool], profiler: &mut Profiler) -> Result<Vec<Norms>> {
        assert_eq!(active.len(), self.systems);
        let (omega, cost) = (damping(&self.grid), self.polish_cost());
        match &mut self.backend {
            Backend::F32(solver) => profiler.stage(POLISH, cost, || solver.polish(omega).and_then(|()| Ok(vec![solver.norms()?]))),
            Backend::F64(solver) => profiler.stage(POLISH, cost, || solver.polish(omega).and_then(|()| Ok(vec![solver.norms()?]))),
            Backend::CudaF32(solver) => {
                profiler.stage_on(&solver.cuda().clone(), POLISH, cost, || solver.polish(active, omega))?;
                solver.norms()
            }
            Backend::CudaF64(solver) => {
                profiler.stage_on(&solver.cuda().clone(), POLISH, cost, || solver.polish(active, omega))?;
                solver.norms()
            }
        }
    }

    /// Norms of the residual of each system on the device, in double precision. What [`Direct::removed_mean`] took off the
    /// right-hand side of a singular problem counts as residual.
    pub fn norms(&mut self, profiler: &mut Profiler) -> Result<Vec<Norms>> {
        let items = (self.grid.unknowns() * self.systems) as f64;
        let cost = Cost { bytes: (2 * self.bytes) as f64 * items, flops: 15.0 * items, items };
        match &mut self.backend {
            Backend::F32(solver) => Ok(vec![profiler.stage("residual", cost, || solver.norms())?]),
            Backend::F64(solver) => Ok(vec![profiler.stage("residual", cost, || solver.norms())?]),
            Backend::CudaF32(solver) => {
                profiler.stage_on(&solver.cuda().clone(), "residual", cost, || solver.measure())?;
                solver.norms()
            }
            Backend::CudaF64(solver) => {
                profiler.stage_on(&solver.cuda().clone(), "residual", cost, || solver.measure())?;
                solver.norms()
            }
        }
    }

    fn on_gpu(&self) -> bool {
        matches!(self.backend, Backend::CudaF32(_) | Backend::CudaF64(_))
    }

    /// Waits for the device.
    pub fn wait(&self) -> Result<()> {
        match &self.backend {
            Backend::F32(_) | Backend::F64(_) => Ok(()),
            Backend::CudaF32(solver) => solver.cuda().synchronize(),
            Backend::CudaF64(solver) => solver.cuda().synchronize(),
        }
    }

    /// The solution over all nodes.
    pub fn solution(&mut self) -> Result<Vec<f64>> {
        self.solution_of(0)
    }

    /// The solution of number `system` of a batch.
    pub fn solution_of(&mut self, system: usize) -> Result<Vec<f64>> {
        assert!(system < self.systems, "right-hand side {system} of {}", self.systems);
        Ok(match &self.backend {
            Backend::F32(solver) => solver.solution(&self.grid, &self.turn)?,
            Backend::F64(solver) => solver.solution(&self.grid, &self.turn)?,
            Backend::CudaF32(solver) => solver.solution(system)?,
            Backend::CudaF64(solver) => solver.solution(system)?,
        })
    }

    /// Singular problems: the volume-weighted mean that the last solve took off each right-hand side.
    pub fn removed_mean(&self) -> Result<Vec<f64>> {
        match &self.backend {
            Backend::F32(_) | Backend::F64(_) => Ok(self.removed.clone()),
            Backend::CudaF32(solver) => solver.removed(),
            Backend::CudaF64(solver) => solver.removed(),
        }
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

    /// Traffic and operations of a solve: the right-hand side read, the modes written and read, the solution written; two complex
    /// DFTs of `n` points for two lines of each transformed axis (`5 n log2 n` each) and 12 operations around them.
    pub fn cost(&self) -> Cost {
        let items = (self.grid.unknowns() * self.systems) as f64;
        let grid = axis_swap::grid(&self.grid, self.turn.swapped);
        let [x, middle, _] = ordered(&grid);
        let flops: f64 = [x, middle].iter().filter(|a| !a.is_flat()).map(|a| 5.0 * (a.nodes as f64).log2() + 12.0).sum();
        Cost { bytes: 4.0 * self.bytes as f64 * items, flops: (flops + 5.0) * items, items }
    }
}

impl Direct {
    /// Cost of a solve with its norms: the right-hand side is read once more.
    fn measured_cost(&self) -> Cost {
        let Cost { bytes, flops, items } = self.cost();
        Cost { bytes: bytes + self.bytes as f64 * items, flops: flops + 15.0 * items, items }
    }

    /// Cost of a sweep: u, f and u again, and once more with the norms.
    fn polish_cost(&self) -> Cost {
        let items = (self.grid.unknowns() * self.systems) as f64;
        Cost { bytes: (if self.on_gpu() { 6 } else { 5 } * self.bytes) as f64 * items, flops: 30.0 * items, items }
    }
}

/// Lengths of the DFTs of a line along an axis, and how many there are of each.
pub(crate) fn dfts(axis: &Axis, gpu: bool) -> Vec<(usize, usize)> {
    let kind = transform::TransformType::of(axis);
    let (parts, rest) = transform::split(kind, axis.intervals(), if gpu { cuda::axis::SMALL } else { transform::SMALL });
    let mut all: Vec<_> = parts.iter().map(|p| (p.points, p.groups)).collect();
    match kind {
        transform::TransformType::Sine | transform::TransformType::Cosine => all.push((2 * rest, 1)),
        transform::TransformType::Fourier => all.push((rest, 1)),
        transform::TransformType::Quarter { .. } | transform::TransformType::Flat => {}
    }
    all
}

/// Bytes that a GPU with `shared` bytes of shared memory a block will hold for one right-hand side in numbers of `bytes` bytes; the
/// workspace of DFTs comes on top.
pub(crate) fn memory_on_gpu(grid: &Grid, shared: u32, bytes: u64) -> u64 {
    cuda::memory(grid, shared, bytes)
}

/// x, the middle axis (flat in the plane) and the last axis, along which the systems are solved.
pub(crate) fn ordered(grid: &Grid) -> [&Axis; 3] {
    let [x, y, z] = &grid.axes;
    if z.is_flat() { [x, z, y] } else { [x, y, z] }
}

/// Number of the last axis.
pub(crate) fn last(grid: &Grid) -> usize {
    if grid.axes[2].is_flat() { 1 } else { 2 }
}

/// `-lambda h^2`, h of the last axis, of the modes of the two transformed axes.
fn deltas(axes: [&Axis; 3], small: usize) -> [Vec<f64>; 2] {
    [axes[0], axes[1]].map(|axis| {
        let ratio = axes[2].h / axis.h;
        let angles = transform::angles(transform::TransformType::of(axis), axis.intervals(), small);
        angles.iter().map(|phi| (2.0 * ratio * (0.5 * phi).sin()).powi(2)).collect()
    })
}

/// Calls `take(node, value)` with what the Dirichlet values of `u` add to `A u` at their neighbours among the nodes `within`.
pub(crate) fn fold_boundary(grid: &Grid, u: &[f64], within: &Range<usize>, mut take: impl FnMut(usize, f64)) {
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
                    let node = side.wrapping_add_signed(inward * stride[d] as isize);
                    if within.contains(&node) {
                        take(node, weight * u[side]);
                    }
                }
            }
        }
    }
}
