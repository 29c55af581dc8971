//! ePIE, rPIE and SDR: view by view in a seeded order.

use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;
use zellige_engine::sim::Cost;

use super::{Engine, Facts, Memory, shuffled};
use crate::config::{EngineConfig, EngineName};
use crate::stages::{Stages, Sweep};

pub(super) struct Sweeping {
    rule: Sweep,
    start: [u64; 2],
    supports: [Option<f64>; 2],
    views: usize,
    seed: u64,
    number: usize,
}

impl Sweeping {
    pub(super) fn new(config: &EngineConfig, facts: &Facts, number: usize) -> Self {
        let [object, probe] = [config.object_step, config.probe_step];
        let (a, b, c, step, local) = match config.name {
            EngineName::Sdr => {
                let (sigma, tau) = (config.sigma.unwrap_or(1.0), config.tau.unwrap_or(1.0));
                let local = [object.unwrap_or(0.9), probe.unwrap_or(0.1)];
                (1.0 - tau * (1.0 + sigma), tau, 1.0 + sigma, local, local)
            }
            EngineName::Rpie => {
                // The weight of the largest norm is `alpha`; that of the local one is what is left.
                let local = 1.0 - config.alpha.unwrap_or(0.05);
                (0.0, 1.0, 1.0, [object.unwrap_or(1.0), probe.unwrap_or(1.0)], [local; 2])
            }
            _ => (0.0, 1.0, 1.0, [object.unwrap_or(1.0), probe.unwrap_or(1.0)], [0.0; 2]),
        };
        let rule = Sweep {
            a,
            b,
            c,
            step,
            local,
            probe: true,
            object: true,
            batch: config.batch.unwrap_or(1),
            clip: config.object_clip,
            likelihood: config.log_likelihood.unwrap_or(true),
        };
        let start = [config.probe_update_start.unwrap_or(0), config.object_update_start.unwrap_or(0)];
        Self { rule, start, supports: super::supports(config, facts), views: facts.views, seed: facts.seed, number }
    }
}

impl Engine for Sweeping {
    fn iterate(&self, stages: &mut dyn Stages, k: u64, _: &mut Memory, order: Option<&[u32]>, profiler: &mut Profiler) -> Result<()> {
        let rule = Sweep { probe: k >= self.start[0], object: k >= self.start[1], ..self.rule };
        let order = order.map_or_else(|| shuffled(self.views, self.seed, self.number, k), <[u32]>::to_vec);
        profiler.stage("sweep", Cost::default(), || stages.sweep(&rule, &order))
    }

    fn keeps_exits(&self) -> bool {
        self.rule.c != 1.0 || self.rule.a + self.rule.b != 1.0
    }

    fn supports(&self) -> [Option<f64>; 2] {
        self.supports
    }
}
