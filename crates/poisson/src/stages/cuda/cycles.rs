//! Parts shared by several stages: the way down and up where a level cannot be passed in one go, and the cost of a pass.

use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;
use zellige_engine::sim::Cost;

use super::smoother::{RESTRICTED, Target};
use super::{CudaStages, Smoother, Stages, Start, stage};

/// A coarsest level above the bottom is solved by this many V(2,2) cycles down to it: a factor of about 0.05 each.
pub(super) const INNER_CYCLES: u32 = 6;
const INNER_SWEEPS: u32 = 2;
const INNER: Smoother = Smoother::RedBlack { omega: 1.0 };

impl CudaStages {
    /// Bytes of `inner` words of the correction's format and `outer` words of the solution's per node of a level.
    pub(super) fn cost(&self, level: usize, inner: f64, outer: f64, flops: f64) -> Cost {
        let n = self.data.levels[level].nodes as f64;
        let bytes = n * (inner * self.data.inner.bytes() as f64 + outer * self.data.outer.bytes() as f64);
        Cost { bytes, flops: n * flops, items: n }
    }

    /// Solves the bottom level.
    pub(super) fn solve_bottom(&self, profiler: &mut Profiler) -> Result<()> {
        let bottom = &self.data.bottom;
        let cost = self.cost(bottom.level, 2.0 * bottom.steps.len() as f64, 0.0, bottom.flops());
        profiler.stage_on(&self.data.cuda, stage::COARSE_SOLVE, cost, || self.data.solve_bottom())
    }

    /// The factor of one red-black sweep from zero on a level that marches.
    pub(super) fn fused_omega(&self, level: usize, start: Start, pre: u32, smoother: Smoother) -> Option<f64> {
        match smoother {
            Smoother::RedBlack { omega } if self.data.levels[level].fused && start == Start::Zero && pre == 1 => Some(omega),
            _ => None,
        }
    }

    /// `nu` sweeps on `A e = r` by general kernels.
    pub(super) fn smooth(&mut self, level: usize, start: Start, nu: u32, smoother: Smoother) -> Result<()> {
        if start == Start::Current {
            return self.data.smooth(Target::Correction, level, nu, smoother, RESTRICTED);
        }
        if let (Smoother::RedBlack { omega }, 1..) = (smoother, nu) {
            self.data.relax_zero(level, omega)?;
            return self.data.smooth(Target::Correction, level, nu - 1, smoother, RESTRICTED);
        }
        self.data.clear(level)?;
        self.data.smooth(Target::Correction, level, nu, smoother, RESTRICTED)
    }

    /// One V-cycle on `A e = r` down to the last level there is.
    pub(super) fn inner_cycle(&mut self, level: usize, start: Start, profiler: &mut Profiler) -> Result<()> {
        if level + 1 == self.data.levels.len() {
            return self.solve_bottom(profiler);
        }
        self.descend(level, start, INNER_SWEEPS, INNER, profiler)?;
        self.inner_cycle(level + 1, Start::Zero, profiler)?;
        self.ascend(level, start, INNER_SWEEPS, INNER_SWEEPS, INNER, profiler)
    }

    /// The factor of a cycle's first sweep if it can be a pass over the solution.
    pub(super) fn solution_omega(&self, level: usize, pre: u32, smoother: Smoother) -> Option<f64> {
        self.data.on_solution(level).and_then(|_| self.fused_omega(level, Start::Zero, pre, smoother))
    }

    /// The way up where `u` is ahead: `u += P e_{l+1}`, and `nu` sweeps on `u`; `carry`: and the first one of the next cycle.
    pub(super) fn ascend_smoothed(
        &mut self,
        level: usize,
        nu: u32,
        smoother: Smoother,
        carry: bool,
        profiler: &mut Profiler,
    ) -> Result<()> {
        let cuda = self.data.cuda.clone();
        let more = match smoother {
            Smoother::RedBlack { omega } if nu > 0 => {
                let turns = carry && nu == 1 && level == 0;
                let cost = self.cost(level, if turns { 0.5 } else { 0.25 }, 3.0, 80.0);
                let pre = self.data.levels[level].omega;
                profiler.stage_on(&cuda, stage::ASCEND, cost, || {
                    if turns { self.data.ascend_descend(pre, omega) } else { self.data.ascend_solution_norms(level, omega) }
                })?;
                nu - 1
            }
            _ => {
                self.data.clear(level)?;
                self.data.prolong(level, 0)?;
                self.correct(level, profiler)?;
                nu
            }
        };
        if more == 0 {
            return Ok(());
        }
        self.sweep(level, more, smoother, profiler)?;
        if level == 0 { self.residual(level, profiler) } else { Ok(()) }
    }

    /// The pass up on the finest level with the correction of `u`; `carry`: the new residual is `r - A e`.
    pub(super) fn ascend_finest(&mut self, pre: u32, nu: u32, smoother: Smoother, carry: bool, profiler: &mut Profiler) -> Result<()> {
        if self.data.levels[0].smoothed {
            return self.ascend_smoothed(0, nu, smoother, carry, profiler);
        }
        match self.fused_omega(0, Start::Zero, pre, smoother) {
            Some(omega) if nu == 1 => {
                let cost = self.cost(0, 2.25, if carry { 2.0 } else { 3.0 }, 100.0);
                let cuda = self.data.cuda.clone();
                profiler.stage_on(&cuda, stage::ASCEND, cost, || self.data.ascend_correct(0, omega, omega, carry))
            }
            _ => {
                self.ascend(0, Start::Zero, pre, nu, smoother, profiler)?;
                self.correct(0, profiler)
            }
        }
    }
}
