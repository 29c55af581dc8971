//! The cycles: one page that reads as the method. Levels count from the finest, 0, to the coarsest, `L`.
//!
//! Sources: Trottenberg, Oosterlee and Schueller, Multigrid (2001), sections 2.4 (V, W, F), 2.6 (full multigrid);
//! Bornemann and Deuflhard, Numer. Math. 75 (1996) (cascadic).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;

use crate::smoothing::Smoothing;
use crate::stages::{Smoother, Stages, Start};

/// The order in which levels are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Cycle {
    /// Down once, up once.
    V,
    /// Two visits of each coarse level per visit of the finer.
    W,
    /// A W on the first visit, a V on the second.
    F,
    /// Cascadic: more smoothing on coarser levels.
    C,
}

/// A cycle with its smoothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CyclePlan {
    /// The order of visits.
    pub cycle: Cycle,
    /// Sweeps before the coarse correction.
    pub pre: u32,
    /// Sweeps after it.
    pub post: u32,
    /// The relaxation.
    pub smoother: Smoother,
    /// Levels are smoothed more, and with a factor of their own, where [`crate::smoothing`] says that they need it.
    pub adapts: bool,
}

impl CyclePlan {
    /// The plan as it is followed on a level.
    #[must_use]
    pub fn on(self, stages: &dyn Stages, level: usize) -> Self {
        match self.smoother {
            Smoother::RedBlack { .. } if self.adapts => {
                let Smoothing { pre, post, omega } = stages.smoothing(level);
                Self { pre: self.pre.max(pre), post: self.post.max(post), smoother: Smoother::RedBlack { omega }, ..self }
            }
            _ => self,
        }
    }
}

/// Doublings of the cascadic cycle's smoothing stop here: the coarse levels are cheap, but not free.
const CASCADE_DOUBLINGS: u32 = 4;

/// One cycle on `A u = f`: `r_0` must be current, and is afterwards.
pub fn cycle(stages: &mut dyn Stages, plan: CyclePlan, profiler: &mut Profiler) -> Result<()> {
    cycle_ending(stages, plan, false, profiler)
}

/// Runs a [`cycle`] before another one, which the backend may make use of: see [`Stages::ascend_carry`].
pub fn carried_cycle(stages: &mut dyn Stages, plan: CyclePlan, profiler: &mut Profiler) -> Result<()> {
    cycle_ending(stages, plan, true, profiler)
}

fn cycle_ending(stages: &mut dyn Stages, plan: CyclePlan, carry: bool, profiler: &mut Profiler) -> Result<()> {
    if stages.levels() == 1 {
        stages.coarse_solve(profiler)?;
        return stages.correct(0, profiler);
    }
    if plan.cycle == Cycle::C {
        cascade(stages, plan, profiler)?;
        return stages.correct(0, profiler);
    }
    let CyclePlan { pre, post, smoother, .. } = plan.on(stages, 0);
    if carry {
        stages.descend_carry(pre, smoother, profiler)?;
    } else {
        stages.descend(0, Start::Zero, pre, smoother, profiler)?;
    }
    coarse_correction(stages, 1, plan, profiler)?;
    if carry { stages.ascend_carry(pre, post, smoother, profiler) } else { stages.ascend_correct(pre, post, smoother, profiler) }
}

/// Approximates `A e_l = r_l` by one cycle from `start`, on any level but the finest.
fn level_cycle(stages: &mut dyn Stages, level: usize, start: Start, plan: CyclePlan, profiler: &mut Profiler) -> Result<()> {
    if level + 1 == stages.levels() {
        return stages.coarse_solve(profiler);
    }
    let CyclePlan { pre, post, smoother, .. } = plan.on(stages, level);
    stages.descend(level, start, pre, smoother, profiler)?;
    coarse_correction(stages, level + 1, plan, profiler)?;
    stages.ascend(level, start, pre, post, smoother, profiler)
}

/// `e_l` for the level above: one visit (V), two (W), or an F and a V (F). The coarsest level is solved once.
fn coarse_correction(stages: &mut dyn Stages, level: usize, plan: CyclePlan, profiler: &mut Profiler) -> Result<()> {
    level_cycle(stages, level, Start::Zero, plan, profiler)?;
    if level + 1 < stages.levels() {
        let second = match plan.cycle {
            Cycle::W => Some(plan),
            Cycle::F => Some(CyclePlan { cycle: Cycle::V, ..plan }),
            Cycle::V | Cycle::C => None,
        };
        if let Some(plan) = second {
            level_cycle(stages, level, Start::Current, plan, profiler)?;
        }
    }
    Ok(())
}

/// The cascadic cycle on the correction: restrict without smoothing, solve, and smooth on the way up, twice as often
/// on each coarser level.
fn cascade(stages: &mut dyn Stages, plan: CyclePlan, profiler: &mut Profiler) -> Result<()> {
    let coarsest = stages.levels() - 1;
    for level in 0..coarsest {
        stages.descend(level, Start::Zero, 0, plan.smoother, profiler)?;
    }
    stages.coarse_solve(profiler)?;
    for level in (0..coarsest).rev() {
        let CyclePlan { pre, post, smoother, .. } = plan.on(stages, level);
        let sweeps = (pre + post).max(1) << (level as u32).min(CASCADE_DOUBLINGS);
        stages.ascend(level, Start::Zero, 0, sweeps, smoother, profiler)?;
    }
    Ok(())
}

/// Full multigrid: the coarsest problem solved, then on each finer level the solution interpolated by cubics and
/// improved by `cycles` V-cycles. `r_0` is current afterwards.
pub fn full_multigrid(stages: &mut dyn Stages, plan: CyclePlan, cycles: u32, profiler: &mut Profiler) -> Result<()> {
    stages.restrict_rhs(profiler)?;
    stages.coarse_solution(profiler)?;
    let coarsest = stages.levels() - 1;
    if coarsest == 0 {
        return stages.residual(0, profiler);
    }
    let v = CyclePlan { cycle: Cycle::V, ..plan };
    for level in (0..coarsest).rev() {
        // A cascade begins without a sweep.
        let CyclePlan { pre, post, smoother, .. } = v.on(stages, level);
        if cycles > 0 && (level > 0 || plan.cycle != Cycle::C) {
            stages.interpolate_descend(level, pre, smoother, profiler)?;
        } else {
            stages.interpolate_residual(level, profiler)?;
        }
        for repeat in 0..cycles {
            if level == 0 {
                cycle(stages, plan, profiler)?;
                continue;
            }
            if repeat > 0 {
                stages.residual(level, profiler)?;
            }
            stages.descend(level, Start::Zero, pre, smoother, profiler)?;
            coarse_correction(stages, level + 1, v, profiler)?;
            stages.ascend_add(level, pre, post, smoother, profiler)?;
        }
    }
    if cycles == 0 { stages.residual(0, profiler) } else { Ok(()) }
}
