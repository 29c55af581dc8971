//! Chosen method: all its parameters, its stopping criteria and its description.

use super::DIRECT_STEPS;
use crate::problem::Precision;
use crate::stages::Smoother;
use crate::status::{Criteria, ExpectedConvergence, Status};
use crate::step::{Cycle, CyclePlan};

/// The method in full.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scheme {
    /// Cycles, after full multigrid with `fmg` cycles per level or from the first guess.
    Cycles {
        /// The cycle.
        plan: CyclePlan,
        /// Cycles per level of full multigrid.
        fmg: Option<u32>,
    },
    /// Plain relaxation, `block` sweeps a step, the last one ending at `limit`.
    Sweeps {
        /// The relaxation.
        smoother: Smoother,
        /// Sweeps per step.
        block: u32,
        /// Steps of a Chebyshev polynomial; 1 for the others.
        pieces: u32,
        /// Expected factor of the error per sweep.
        rate: f64,
        /// Largest number of sweeps.
        limit: u64,
    },
    /// One transform.
    Direct,
}

/// Chosen method.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The method in full.
    pub scheme: Scheme,
    /// Description for people: the method and the reason for it.
    pub description: String,
    /// Stopping criteria.
    pub criteria: Criteria,
    /// Sets the truncation error as the goal.
    pub truncation: bool,
    /// Marks the presence of a first guess.
    pub warm: bool,
    /// Expected speed of convergence.
    pub expected: ExpectedConvergence,
    /// Number formats.
    pub precision: Precision,
    /// Largest number of coarse levels.
    pub coarse_levels: usize,
    /// Fallback where the direct solver was chosen automatically: the cycles to use if it misses its goal.
    pub fallback: Option<Box<Choice>>,
}

impl Choice {
    /// Returns true if a solve with this status is to be repeated by other means.
    pub(crate) fn missed(&self, status: Status) -> bool {
        let limit = self.criteria.max_steps as u64 == DIRECT_STEPS;
        self.fallback.is_some() && (matches!(status, Status::Stagnated | Status::Diverged) || status == Status::MaxCycles && limit)
    }

    /// The cycles in place of a direct solution that left this relative residual, which their words say.
    pub(crate) fn after_direct(&self, relative: f64) -> Option<Self> {
        let mut choice = Self::clone(self.fallback.as_deref()?);
        choice.description = format!("{}, after the direct solver left a relative residual of {relative:.1e}", choice.description);
        Some(choice)
    }
}

impl Scheme {
    /// Scheme of the step after `steps` others: the last block of sweeps may be shorter.
    #[must_use]
    pub fn after(self, steps: usize) -> Self {
        let Self::Sweeps { smoother, block, pieces, rate, limit } = self else { return self };
        let left = limit.saturating_sub(steps as u64 * u64::from(block)).clamp(1, u64::from(block));
        Self::Sweeps { smoother, block: left as u32, pieces, rate, limit }
    }

    /// The method for people.
    pub fn description(&self) -> String {
        match self {
            Self::Cycles { plan, fmg } => {
                let cycle = match plan.cycle {
                    Cycle::V => "V",
                    Cycle::W => "W",
                    Cycle::F => "F",
                    Cycle::C => "C",
                };
                let smoother = match plan.smoother {
                    Smoother::RedBlack { omega } => format!("red-black, omega {omega}"),
                    Smoother::Jacobi { omega } => format!("Jacobi, omega {omega:.4}"),
                    Smoother::Chebyshev { ratio } => format!("Chebyshev, ratio {ratio}"),
                };
                let start = if fmg.is_some() { "full multigrid, then " } else { "" };
                format!("{start}{cycle}({},{}) cycles, {smoother}", plan.pre, plan.post)
            }
            Self::Sweeps { smoother, block, pieces, .. } => match smoother {
                Smoother::RedBlack { omega } if *omega == 1.0 => format!("red-black Gauss-Seidel, {block} sweeps a step"),
                Smoother::RedBlack { omega } => format!("red-black SOR, omega {omega:.6}, {block} sweeps a step"),
                Smoother::Jacobi { omega } => format!("Jacobi, omega {omega:.6}, {block} sweeps a step"),
                Smoother::Chebyshev { ratio } => {
                    format!("Chebyshev, condition {ratio:.4e}, degree {}, {block} sweeps a step", u64::from(*block) * u64::from(*pieces))
                }
            },
            Self::Direct => "direct solver by transforms".into(),
        }
    }
}
