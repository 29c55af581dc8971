//! The benchmark cases: whole steps of a box of argon as SPARTA's benchmarks have it, its physics checked.

use std::path::Path;

use zellige_engine::device::Device;
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::profile::Profiler;
use zellige_engine::record::Check;
use zellige_engine::sim::{Bench, Case, Cost};

use crate::config::Config;
use crate::config::sides::{SideConfig, SideWord};
use crate::flow::Flow;
use crate::model::Scheme;
use crate::solver::cost;
use crate::stages::{Ledger, Totals};

/// The cases, with what others reach.
pub const CASES: &[Case] = &[
    Case {
        name: "dsmc/collide-1m",
        about: "argon box, 316 x 316 cells, 10 particles each, dt 0.14 of the collision time: SPARTA on one core 11.1 to 16.2 million \
                particle-steps a second. Aim: 40",
        gpu_only: false,
    },
    Case { name: "dsmc/collide-100k", about: "the same with 100 x 100 cells: SPARTA on one core 25 to 28.7. Aim: 50", gpu_only: false },
    Case { name: "dsmc/free-1m", about: "the same without collisions: SPARTA on one core 26.9 to 36.8. Aim: 90", gpu_only: false },
    Case { name: "dsmc/sampled-1m", about: "dsmc/collide-1m with samples in every step. Aim: at most 10 % slower", gpu_only: false },
];

/// Steps before anything is timed: the largest cross-sections settle and neighbours in memory mix.
const WARM_UP: u64 = 30;
/// Particle-steps of a repetition.
const WORK: f64 = 2e7;

/// The input of a case: SPARTA's box in two dimensions, mirrors all around.
pub fn config(name: &str) -> Option<Config> {
    let side = if name.ends_with("100k") { 100 } else { 316 };
    if !CASES.iter().any(|c| c.name == name) {
        return None;
    }
    let mut config = Config::new(vec![side; 2], vec![1e-5 * side as f64; 2], "Ar", 7.07043e22, 273.15);
    config.dt = 7e-9;
    config.boundary.all = Some(SideConfig::Word(SideWord::Specular));
    if name == "dsmc/free-1m" {
        config.collisions.scheme = Scheme::None;
    }
    // Long enough that no batch of samples ends while it is timed: that happens a few times in a run.
    config.steps = 1 << 40;
    config.sampling.start = Some(if name == "dsmc/sampled-1m" { 0 } else { 1 << 39 });
    Some(config)
}

struct Steps {
    case: &'static str,
    flow: Flow,
    each: u64,
    start: Totals,
    begin: (Ledger, u64),
}

/// Sets a case up.
pub fn open(case: &Case, device: &Device) -> Result<Box<dyn Bench>> {
    let Some(config) = config(case.name) else {
        let names: Vec<_> = CASES.iter().map(|c| c.name).collect();
        return Err(Error::input("bench", Problem::new("", format!("there is no case `{}`", case.name)).allowed(names.join(", "))));
    };
    let mut flow = Flow::new(&config, Path::new(""), 1, device)?;
    let start = flow.totals()?;
    for _ in 0..WARM_UP {
        flow.advance(&mut Profiler::off())?;
    }
    let begin = (flow.ledger()?, flow.step);
    Ok(Box::new(Steps { case: case.name, flow, each: (WORK / start.particles as f64) as u64, start, begin }))
}

impl Bench for Steps {
    /// The gas goes on from where it is.
    fn reset(&mut self) -> Result<()> {
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        for _ in 0..self.each {
            self.flow.advance(&mut Profiler::off())?;
        }
        Ok(())
    }

    fn checks(&mut self) -> Result<Vec<Check>> {
        let (ledger, totals) = (self.flow.ledger()?, self.flow.totals()?);
        let mut checks = vec![
            Check::at_most("particles missing or too many", totals.particles.abs_diff(self.start.particles) as f64, 0.0),
            // Rounding in single precision.
            Check::at_most("relative change of the energy", (totals.translation / self.start.translation - 1.0).abs(), 1e-5),
        ];
        if self.case != "dsmc/free-1m" {
            let model = &self.flow.model;
            let volume = model.grid.volume() * model.grid.len() as f64;
            let density = totals.particles as f64 * model.weight / volume;
            let temperature = totals.translation / (1.5 * crate::walls::BOLTZMANN * totals.particles as f64 * model.weight);
            let rate = 0.5 * totals.particles as f64 * density * model.pair(0, 0).mean_rate(temperature) * model.dt;
            let steps = (self.flow.step - self.begin.1) as f64;
            let found = (ledger.collisions - self.begin.0.collisions) as f64 / steps;
            // Counting statistics of 1e6 collisions or more are 1e-3; cells are filled with 10 particles exactly at the start,
            // whose pairs then spread to Poisson's within some crossings of a cell.
            checks.push(Check::at_most("relative error of the collision rate", (found / rate - 1.0).abs(), 5e-3));
        }
        Ok(checks)
    }

    fn cost(&self) -> Cost {
        let one = cost(&self.flow.model, self.start.particles, self.case == "dsmc/sampled-1m");
        let n = self.each as f64;
        Cost { bytes: n * one.bytes, flops: n * one.flops, items: n * one.items }
    }

    fn memory(&self) -> u64 {
        self.flow.stages.memory()
    }

    fn figures(&self) -> Vec<(&'static str, f64)> {
        let sparta = match self.case {
            "dsmc/collide-100k" => 28.7,
            "dsmc/free-1m" => 36.8,
            _ => 16.2,
        };
        let bytes = self.flow.stages.memory() as f64 / self.start.particles as f64;
        vec![("steps", self.flow.step as f64), ("bytes_per_particle", bytes), ("sparta_core_million_per_s", sparta)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_a_sound_input() {
        for case in CASES {
            assert_eq!(config(case.name).unwrap().check(), [], "{}", case.name);
        }
        assert!(config("dsmc/none").is_none());
    }
}
