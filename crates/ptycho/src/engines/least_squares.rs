//! LSQML: directions from the likelihood, the step of each view solved for (Odstrcil, Menzel and Guizar-Sicairos, Opt. Express 26
//! (2018) 3108).

use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;

use super::staged::staged;
use super::{DataSizes, Engine, EngineState, ProblemSize, shuffled};
use crate::config::{EngineConfig, NoiseName};
use crate::memory::default_batch;
use crate::stages::{LeastSquares, Noise, Stages};

pub(super) struct LeastSquaresEngine {
    rule: LeastSquares,
    start: [u64; 2],
    supports: [Option<f64>; 2],
    views: usize,
    seed: u64,
    number: usize,
    sizes: DataSizes,
}

impl LeastSquaresEngine {
    pub(super) fn new(config: &EngineConfig, problem: &ProblemSize, number: usize) -> Self {
        let rule = LeastSquares {
            step: [config.object_step.unwrap_or(0.9), config.probe_step.unwrap_or(0.9)],
            damping: config.damping.unwrap_or(0.1),
            batch: config.batch.unwrap_or_else(|| default_batch(problem.views)).max(1),
            // The variance of a modulus is constant: a least-squares fit of moduli is its likelihood. Gaussian noise of counts is refused by the input's check.
            noise: if config.noise == Some(NoiseName::Poisson) { Noise::Poisson } else { Noise::Euclid },
            probe: true,
            object: true,
            clip: config.object_clip,
            likelihood: config.log_likelihood.unwrap_or(true),
        };
        let start = [config.probe_update_start.unwrap_or(0), config.object_update_start.unwrap_or(0)];
        Self {
            rule,
            start,
            supports: super::supports(config, problem.ptypy()),
            views: problem.views,
            seed: problem.seed,
            number,
            sizes: problem.sizes,
        }
    }
}

impl Engine for LeastSquaresEngine {
    fn iterate(&self, stages: &mut dyn Stages, k: u64, _: &mut EngineState, order: Option<&[u32]>, profiler: &mut Profiler) -> Result<()> {
        let rule = LeastSquares { probe: k >= self.start[0], object: k >= self.start[1], ..self.rule };
        let order = order.map_or_else(|| shuffled(self.views, self.seed, self.number, k), <[u32]>::to_vec);
        // Residual waves written, and read for both directions and for the steps along them.
        let cost = self.sizes.cost(32.0, 1.0, 2.0);
        staged(profiler, stages, "least_squares", cost, |stages| stages.least_squares(&rule, &order))
    }

    fn keeps_exits(&self) -> bool {
        false
    }

    fn supports(&self) -> [Option<f64>; 2] {
        self.supports
    }
}
