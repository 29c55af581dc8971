//! Steps of a scheme on the stages, and the residuals that they begin from.

use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;

use crate::method::Scheme;
use crate::stages::{Smoother, Stages};
use crate::step;

/// The residual before the first step; `ahead`: together with the beginning of a cycle, `u` being known to be zero or not.
pub(super) fn first_residual(stages: &mut dyn Stages, scheme: Scheme, ahead: Option<bool>, profiler: &mut Profiler) -> Result<()> {
    match (scheme, ahead) {
        (Scheme::Cycles { plan, .. }, Some(zero)) if plan.cycle != step::Cycle::C => {
            let plan = plan.on(stages, 0);
            stages.residual_descend(plan.pre, plan.smoother, zero, profiler)
        }
        _ => stages.residual(0, profiler),
    }
}

/// The residual after `steps` steps, to the bits that the last of them left.
pub(super) fn resumed_residual(stages: &mut dyn Stages, scheme: Scheme, steps: usize, profiler: &mut Profiler) -> Result<()> {
    match scheme {
        // On one level full multigrid is a solution and its residual.
        Scheme::Cycles { fmg, .. } if steps == 0 || fmg.is_some() && steps == 1 && stages.levels() == 1 => stages.residual(0, profiler),
        Scheme::Cycles { plan, .. } => {
            let (ascends, plan) = (stages.levels() > 1 && plan.cycle != step::Cycle::C, plan.on(stages, 0));
            stages.residual_as_corrected(ascends.then_some((plan.pre, plan.post, plan.smoother)), profiler)
        }
        Scheme::Sweeps { .. } | Scheme::Direct => stages.residual(0, profiler),
    }
}

/// One step of a scheme on the stages: the part that a graph records and that a benchmark times.
/// `carry`: a cycle carries the residual on.
pub(crate) fn advance(stages: &mut dyn Stages, scheme: Scheme, first: bool, carry: bool, profiler: &mut Profiler) -> Result<()> {
    match scheme {
        Scheme::Cycles { plan, fmg: Some(cycles) } if first => {
            stages.replay("full multigrid", profiler, &mut |s, p| step::full_multigrid(s, plan, cycles, p))
        }
        Scheme::Cycles { plan, .. } if carry => stages.replay("carried cycle", profiler, &mut |s, p| step::carried_cycle(s, plan, p)),
        Scheme::Cycles { plan, .. } => stages.replay("cycle", profiler, &mut |s, p| step::cycle(s, plan, p)),
        // Its numbers are others in each step.
        Scheme::Sweeps { smoother: smoother @ Smoother::Chebyshev { .. }, block, .. } => stages.sweep_norms(block, smoother, profiler),
        Scheme::Sweeps { smoother, block, .. } => {
            stages.replay(&format!("{block} sweeps"), profiler, &mut |s, p| s.sweep_norms(block, smoother, p))
        }
        Scheme::Direct => Ok(()),
    }
}
