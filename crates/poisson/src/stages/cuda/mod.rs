//! The stages on an NVIDIA GPU.
//!
//! Three ways through a level, the fastest that applies:
//! * marching (march.cu): plane grids whose axes both halve, V(1,1) with red-black smoothing. One pass down that stores
//!   only the restricted residual, one pass up; on the finest level the pass up also corrects `u` and makes the new
//!   residual and its norms. Where solution and correction have one precision, a plain level's passes are over the
//!   solution (solution.cu), and the end of a cycle is one pass with the beginning of the next.
//! * the bottom (bottom.rs, product.cu, sines.cu): the first level of at most about 257 nodes an axis, 1025 where FFTs make
//!   its modes, is solved directly, in the modes of its axes. It replaces all levels below, which a GPU would spend mostly
//!   on waiting; so there are fewer levels here than on the CPU, except in double precision, whose cycles are the same.
//! * general kernels (relax.cu, transfer.cu, residual.cu), one thread a node: any grid, smoother and start.
//!
//! Nothing waits but [`Stages::load`], [`Stages::solution`] and [`Stages::norms`]; a sequence of stages is recorded as a
//! graph once and replayed. Sums have a fixed order: results are the same bit by bit from run to run.

mod arguments;
mod bands;
mod borrowed;
mod bottom;
mod cycles;
mod data;
mod eigen;
mod fields;
mod full;
mod host;
mod norms;
mod parts;
mod passes;
mod pictures;
mod program;
mod sines;
mod smoother;
mod tables;

use std::collections::HashMap;

use zellige_engine::cuda::{Buffer, Coming, Cuda, Graph};
use zellige_engine::error::Result;
use zellige_engine::links::Links;
use zellige_engine::ops::plane::PlaneReducer;
use zellige_engine::parallel::{chunks, map};
use zellige_engine::profile::Profiler;
use zellige_engine::sim::Cost;

use self::data::Data;
pub use self::program::recipe;
use self::smoother::{SOLVED, Target, ascended};
use self::tables::Number;
use super::{HostShare, Norms, Smoother, Stages, Start, StoredResidual, stage};
use crate::grid::cycle_levels;
use crate::operator;
use crate::physics::Chebyshev;
use crate::problem::{Precision, StageSetup};
use crate::smoothing::{self, Smoothing};

/// Values that a thread looks through in a row.
const PART: usize = 1 << 16;

/// A problem's stages on `cuda`.
pub fn new(setup: &StageSetup, cuda: &Cuda) -> Result<Box<dyn Stages>> {
    with_bottom(setup, cuda, None)
}

/// The stages of a part of the run.
pub(crate) fn of_part(setup: &StageSetup, cuda: &Cuda, links: &Links) -> Result<Box<dyn Stages>> {
    open(setup, cuda, None, links)
}

/// Builds the stages as [`new`] does, the bottom level being the first below the finest with at most `nodes` nodes per axis: to try
/// sizes, and to compare with other hierarchies. Without coarse levels it may be the finest.
pub fn with_bottom(setup: &StageSetup, cuda: &Cuda, nodes: Option<usize>) -> Result<Box<dyn Stages>> {
    open(setup, cuda, nodes, &Links::default())
}

fn open(setup: &StageSetup, cuda: &Cuda, nodes: Option<usize>, links: &Links) -> Result<Box<dyn Stages>> {
    let (inner, outer) = match setup.precision {
        Precision::F32 => (Number::F32, Number::F32),
        Precision::Mixed => (Number::F32, Number::F64),
        Precision::F64 => (Number::F64, Number::F64),
    };
    // Levels beyond those asked for serve to solve the coarsest one.
    let mut levels = cycle_levels(setup.grid(), usize::MAX);
    let from = usize::from(setup.levels.len() > 1);
    // In double precision cycles and their solutions are those of the CPU.
    let all = setup.precision == Precision::F64 && from == 1 && setup.levels.len() >= levels.len();
    let nodes = nodes.or(all.then_some(0));
    let last = bottom::level(&levels, from, inner, cuda.properties().shared_per_block, nodes);
    levels.truncate(last + 1);
    levels[last].transfer = None;
    let smoothing = (0..levels.len()).map(|l| smoothing::of(&levels, l)).collect();
    let kernels = program::kernels(cuda, setup.precision)?;
    let data = Data::new(cuda, kernels, &levels, inner, outer, setup.full, links)?;
    Ok(Box::new(CudaStages {
        host_share: data.levels[0].share.on_host(links),
        data,
        given: setup.levels.len().min(levels.len()),
        smoothing,
        singular: setup.grid().singular(),
        removed: 0.0,
        bound: operator::norm_bound(setup.grid()),
        recurrence: None,
        reducer: None,
        graphs: HashMap::new(),
    }))
}

/// State of the copies: which of `u` and `r` are current, whether `u` is ahead and whether `r` is stale, a bit each; and whether
/// norms are pending. There are fewer than 31 levels: the finest has fewer than 2^31 nodes, and each has about half of those of the
/// one above, or fewer.
type CopyState = u128;
const PENDING: CopyState = 1 << 127;

struct CudaStages {
    // Dropped before the data that they point at.
    graphs: HashMap<(String, CopyState), (Graph, CopyState)>,
    data: Data,
    host_share: HostShare,
    /// Levels that the caller sees.
    given: usize,
    smoothing: Vec<Smoothing>,
    singular: bool,
    removed: f64,
    /// Bound of the operator's norm.
    bound: f64,
    /// Recurrence of a Chebyshev polynomial on the solution, once it has begun.
    recurrence: Option<Chebyshev>,
    /// None before somebody looks.
    reducer: Option<PlaneReducer>,
}

/// The power of two next to `1 / largest`; 1 if that is no number.
fn inverse_power_of_two(largest: f64) -> f64 {
    if largest.is_finite() && largest > 0.0 { (-largest.log2().round()).clamp(-1000.0, 1000.0).exp2() } else { 1.0 }
}

impl CudaStages {
    fn copy_state(&self) -> CopyState {
        let bits = |f: &fields::Fields| (f.u_at | f.r_at << 1 | usize::from(f.smoothed) << 2 | usize::from(f.stale) << 3) as CopyState;
        let pending = if self.data.pending { PENDING } else { 0 };
        self.data.levels.iter().enumerate().fold(pending, |copy_state, (l, fields)| copy_state | bits(fields) << (4 * l))
    }

    fn set_copy_state(&mut self, copy_state: CopyState) {
        self.data.pending = copy_state & PENDING != 0;
        for (l, f) in self.data.levels.iter_mut().enumerate() {
            let bits = (copy_state >> (4 * l)) as usize;
            (f.u_at, f.r_at, f.smoothed, f.stale) = (bits & 1, bits >> 1 & 1, bits & 4 != 0, bits & 8 != 0);
        }
    }

    /// Sets what residuals and corrections are held times.
    fn set_scale(&mut self, scale: f64) {
        if scale != self.data.scale {
            // Recorded launches hold the old one.
            self.graphs.clear();
            self.data.scale = scale;
        }
    }
}

impl Stages for CudaStages {
    fn levels(&self) -> usize {
        self.given
    }

    fn host_share(&self) -> HostShare {
        self.host_share.clone()
    }

    fn smoothing(&self, level: usize) -> Smoothing {
        self.smoothing[level]
    }

    fn load(&mut self, u: &[f64], f: &[f64]) -> Result<()> {
        // A solve like the one before finds its graphs.
        self.set_copy_state(0);
        self.recurrence = None;
        self.upload(u, Some(self.data.levels[0].u_at))?;
        self.upload(f, None)?;
        let share = &self.host_share;
        let largest = |v: &[f64]| {
            let of = |part: &[f64]| part.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
            share.max(map(chunks(&v[share.own(v.len())], PART), |_, part| of(part)).into_iter().fold(0.0, f64::max))
        };
        let scale = if self.data.inner == self.data.outer { 1.0 } else { inverse_power_of_two(largest(f)? + self.bound * largest(u)?) };
        self.set_scale(scale);
        self.removed = if self.singular { self.data.remove_mean()? } else { 0.0 };
        Ok(())
    }

    fn load_on_gpu(&mut self, f: &Buffer<f64>, largest: f64) -> Result<()> {
        self.load_from_gpu(f, largest)
    }

    fn solution_on_gpu(&mut self, u: &mut Buffer<f64>) -> Result<()> {
        self.store_to_gpu(u)
    }

    fn solution(&mut self) -> Result<Vec<f64>> {
        self.dense(self.data.levels[0].u_at)
    }

    fn picture(&mut self, dimensions: usize, double_in_record: bool) -> Result<Option<Vec<Coming<f32>>>> {
        self.pixels(dimensions, double_in_record)
    }

    fn previous_solution(&mut self) -> Result<Option<Vec<f64>>> {
        self.recurrence.map(|_| self.dense(1 - self.data.levels[0].u_at)).transpose()
    }

    fn restart_polynomial(&mut self) {
        self.recurrence = None;
    }

    fn resume_polynomial(&mut self, sweeps: u64, ratio: f64, previous: &[f64]) -> Result<()> {
        self.recurrence = Some(Chebyshev::after(sweeps, smoother::LAMBDA, ratio));
        self.upload(previous, Some(1 - self.data.levels[0].u_at))
    }

    fn residual(&mut self, level: usize, profiler: &mut Profiler) -> Result<()> {
        let (cost, singular, cuda) = (self.cost(level, 1.0, 2.0, 14.0), self.singular, self.data.cuda.clone());
        profiler.stage_on(&cuda, stage::RESIDUAL, cost, || self.data.residual(level, false, singular))
    }

    fn descend(&mut self, level: usize, start: Start, nu: u32, smoother: Smoother, profiler: &mut Profiler) -> Result<()> {
        let cuda = self.data.cuda.clone();
        let fused = self.fused_omega(level, start, nu, smoother);
        if self.data.levels[level].smoothed {
            if fused == Some(self.data.levels[level].omega) {
                return Ok(());
            }
            self.residual(level, profiler)?;
        }
        if level == 0 && self.solution_omega(0, nu, smoother).is_some() {
            // As quick as from the residual, which then need not be stored.
            return self.descend_carry(nu, smoother, profiler);
        }
        if self.data.levels[level].stale {
            self.residual(level, profiler)?;
        }
        if let Some(omega) = fused {
            let cost = self.cost(level, 1.25, 0.0, 40.0);
            return profiler.stage_on(&cuda, stage::DESCEND, cost, || self.data.descend(level, omega));
        }
        let sweeps = f64::from(nu);
        let cost = self.cost(level, 6.0 * sweeps + 2.125, 0.0, 22.0 * sweeps + 20.0);
        profiler.stage_on(&cuda, stage::DESCEND, cost, || {
            self.smooth(level, start, nu, smoother)?;
            self.data.restrict(level, start == Start::Zero && nu == 0)
        })
    }

    fn coarse_solve(&mut self, profiler: &mut Profiler) -> Result<()> {
        let level = self.given - 1;
        if level + 1 == self.data.levels.len() {
            return self.solve_bottom(profiler);
        }
        for cycle in 0..cycles::INNER_CYCLES {
            self.inner_cycle(level, if cycle == 0 { Start::Zero } else { Start::Current }, profiler)?;
        }
        Ok(())
    }

    fn ascend(&mut self, level: usize, start: Start, pre: u32, nu: u32, smoother: Smoother, profiler: &mut Profiler) -> Result<()> {
        let cuda = self.data.cuda.clone();
        let fused = self.fused_omega(level, start, pre, smoother);
        if let (Some(omega), 1) = (fused, nu) {
            let cost = self.cost(level, 2.25, 0.0, 60.0);
            return profiler.stage_on(&cuda, stage::ASCEND, cost, || self.data.ascend(level, omega, omega));
        }
        let sweeps = f64::from(nu);
        let cost = self.cost(level, 6.0 * sweeps + 2.125, 0.0, 22.0 * sweeps + 14.0);
        profiler.stage_on(&cuda, stage::ASCEND, cost, || {
            if let Some(omega) = fused {
                // The way down did not store it.
                self.data.relax_zero(level, omega)?;
            }
            self.data.prolong(level, nu)?;
            self.data.smooth(Target::Correction, level, nu, smoother, ascended(level))
        })
    }

    fn correct(&mut self, level: usize, profiler: &mut Profiler) -> Result<()> {
        let (cost, singular, cuda) = (self.cost(level, 2.0, 3.0, 16.0), self.singular, self.data.cuda.clone());
        profiler.stage_on(&cuda, stage::CORRECT, cost, || self.data.residual(level, true, singular))
    }

    fn ascend_correct(&mut self, pre: u32, nu: u32, smoother: Smoother, profiler: &mut Profiler) -> Result<()> {
        self.ascend_finest(pre, nu, smoother, false, profiler)
    }

    fn stored_residual(&mut self) -> Result<Option<StoredResidual>> {
        self.residual_as_stored()
    }

    fn restore_residual(&mut self, held: &StoredResidual) -> Result<bool> {
        self.take_residual(held)
    }

    fn carries(&self) -> bool {
        self.data.levels[0].plain()
    }

    fn residual_descend(&mut self, pre: u32, smoother: Smoother, zero: bool, profiler: &mut Profiler) -> Result<()> {
        let Some(omega) = self.solution_omega(0, pre, smoother) else { return self.residual(0, profiler) };
        let (cost, cuda) = (self.cost(0, 0.25, if zero { 2.0 } else { 3.0 }, 60.0), self.data.cuda.clone());
        profiler.stage_on(&cuda, stage::RESIDUAL, cost, || self.data.descend_solution(0, omega, true, zero))
    }

    fn descend_carry(&mut self, pre: u32, smoother: Smoother, profiler: &mut Profiler) -> Result<()> {
        match self.solution_omega(0, pre, smoother) {
            Some(omega) if !self.data.levels[0].smoothed => {
                let (cost, cuda) = (self.cost(0, 0.25, 3.0, 50.0), self.data.cuda.clone());
                profiler.stage_on(&cuda, stage::DESCEND, cost, || self.data.descend_solution(0, omega, false, false))
            }
            _ => self.descend(0, Start::Zero, pre, smoother, profiler),
        }
    }

    fn ascend_carry(&mut self, pre: u32, nu: u32, smoother: Smoother, profiler: &mut Profiler) -> Result<()> {
        self.ascend_finest(pre, nu, smoother, self.carries(), profiler)
    }

    fn interpolate_residual(&mut self, level: usize, profiler: &mut Profiler) -> Result<()> {
        if !self.data.levels[level].full {
            self.interpolate(level, 3, profiler)?;
            return self.residual(level, profiler);
        }
        let (cost, cuda) = (self.cost(level, 1.0, 2.25, 30.0), self.data.cuda.clone());
        profiler.stage_on(&cuda, stage::INTERPOLATE, cost, || self.data.full_residual(level))
    }

    fn interpolate_descend(&mut self, level: usize, pre: u32, smoother: Smoother, profiler: &mut Profiler) -> Result<()> {
        match self.solution_omega(level, pre, smoother) {
            Some(omega) if self.data.levels[level].full => {
                let (cost, cuda) = (self.cost(level, 0.25, 2.25, 70.0), self.data.cuda.clone());
                profiler.stage_on(&cuda, stage::INTERPOLATE, cost, || self.data.interpolate_descend(level, omega))
            }
            _ => self.interpolate_residual(level, profiler),
        }
    }

    fn ascend_add(&mut self, level: usize, pre: u32, nu: u32, smoother: Smoother, profiler: &mut Profiler) -> Result<()> {
        if self.data.levels[level].smoothed {
            return self.ascend_smoothed(level, nu, smoother, false, profiler);
        }
        match self.fused_omega(level, Start::Zero, pre, smoother) {
            Some(omega) if nu == 1 && level > 0 => {
                let (cost, cuda) = (self.cost(level, 1.25, 2.0, 70.0), self.data.cuda.clone());
                profiler.stage_on(&cuda, stage::ASCEND, cost, || self.data.ascend_correct(level, omega, omega, false))
            }
            _ => {
                self.ascend(level, Start::Zero, pre, nu, smoother, profiler)?;
                self.correct(level, profiler)
            }
        }
    }

    fn sweep(&mut self, level: usize, nu: u32, smoother: Smoother, profiler: &mut Profiler) -> Result<()> {
        let cuda = self.data.cuda.clone();
        if let (Smoother::RedBlack { omega }, true) = (smoother, self.data.levels[level].marches) {
            let cost = self.cost(level, 0.0, 3.0, 24.0);
            // Two at a time, which read and write as much as one.
            return (0..nu.div_ceil(2)).try_for_each(|pass| {
                let two = 2 * pass + 1 < nu;
                profiler.stage_on(&cuda, stage::SWEEP, cost, || self.data.sweep(level, omega, two))
            });
        }
        let cost = self.cost(level, 0.0, 6.0 * f64::from(nu), 24.0 * f64::from(nu));
        profiler.stage_on(&cuda, stage::SWEEP, cost, || self.data.smooth(Target::Solution, level, nu, smoother, SOLVED))
    }

    fn sweep_norms(&mut self, nu: u32, smoother: Smoother, profiler: &mut Profiler) -> Result<()> {
        if matches!(smoother, Smoother::Chebyshev { .. }) {
            let (cost, cuda) = (self.cost(0, 0.0, 5.0 * f64::from(nu), 24.0 * f64::from(nu)), self.data.cuda.clone());
            let recurrence = self.recurrence.get_or_insert_default();
            profiler
                .stage_on(&cuda, stage::SWEEP, cost, || self.data.smooth_on(Target::Solution, 0, nu, smoother, (SOLVED, recurrence)))?;
        } else {
            self.sweep(0, nu, smoother, profiler)?;
        }
        self.residual(0, profiler)
    }

    fn restrict_rhs(&mut self, profiler: &mut Profiler) -> Result<()> {
        let cuda = self.data.cuda.clone();
        let last = self.given - 1;
        let mut level = 0;
        while level < last {
            let two = level + 2 <= last && self.data.restricts_two(level);
            let cost = self.cost(level, 0.0, if two { 1.31 } else { 1.25 }, 4.0);
            profiler.stage_on(&cuda, stage::INTERPOLATE, cost, || self.data.restrict_rhs(level, two))?;
            level += if two { 2 } else { 1 };
        }
        let cost = Cost::default();
        profiler.stage_on(&cuda, stage::INTERPOLATE, cost, || (0..last).try_for_each(|l| self.data.restrict_edges(l, l + 1 == last)))
    }

    fn interpolate(&mut self, level: usize, order: u32, profiler: &mut Profiler) -> Result<()> {
        self.data.levels[level].smoothed = false;
        let (cost, cuda) = (self.cost(level, 0.0, 1.25, 16.0), self.data.cuda.clone());
        profiler.stage_on(&cuda, stage::INTERPOLATE, cost, || self.data.interpolate(level, order == 1))
    }

    fn coarse_solution(&mut self, profiler: &mut Profiler) -> Result<()> {
        // The unknowns are zero after `restrict_rhs`; what else is stored is corrected all the same.
        let level = self.given - 1;
        self.residual(level, profiler)?;
        if level + 1 == self.data.levels.len() {
            let (cost, cuda) = (self.cost(level, 6.0, 0.0, self.data.bottom.flops()), self.data.cuda.clone());
            if profiler.stage_on(&cuda, stage::COARSE_SOLVE, cost, || self.data.solve_bottom_at_once())? {
                return Ok(());
            }
        }
        self.coarse_solve(profiler)?;
        self.correct(level, profiler)?;
        if self.data.inner != self.data.outer {
            // Rounding of a whole solution in single precision is more than what a cycle on the next level takes away.
            self.coarse_solve(profiler)?;
            self.correct(level, profiler)?;
        }
        Ok(())
    }

    fn norms(&mut self) -> Result<Norms> {
        self.data.join_pending()?;
        self.data.cuda.synchronize()?;
        let [rr, max, uu, mean] = [0, 1, 2, 3].map(|i| self.data.host.get(i));
        let volume = self.data.volume;
        // The mean was taken off after the sums were made.
        let mean = if self.singular { mean / volume } else { 0.0 };
        Ok(Norms { l2: (rr / volume - mean * mean).max(0.0).sqrt(), max, u_l2: (uu / volume).sqrt() })
    }

    fn removed_mean(&self) -> f64 {
        self.removed
    }

    fn memory(&self) -> u64 {
        self.data.pool.allocated()
    }

    fn replay(
        &mut self,
        key: &str,
        profiler: &mut Profiler,
        body: &mut dyn FnMut(&mut dyn Stages, &mut Profiler) -> Result<()>,
    ) -> Result<()> {
        if profiler.is_on() || self.data.in_parts() {
            // Stages inside a graph cannot be timed one by one, and parts tell each other where their streams are.
            return body(self, profiler);
        }
        let before = self.copy_state();
        let key = (key.to_owned(), before);
        if !self.graphs.contains_key(&key) {
            let cuda = self.data.cuda.clone();
            let recorded = cuda.capture(|| body(self, profiler));
            let after = self.copy_state();
            self.set_copy_state(before);
            self.graphs.insert(key.clone(), (recorded?, after));
        }
        if let Some((graph, after)) = self.graphs.get_mut(&key) {
            // SAFETY: the graph uses the buffers and kernels of `self.data`, which is alive.
            unsafe { graph.launch() }?;
            let after = *after;
            self.set_copy_state(after);
        }
        Ok(())
    }
}
