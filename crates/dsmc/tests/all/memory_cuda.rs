//! Memory stated in a plan for a GPU, against the peak of a run's buffers. Skipped without a GPU.

use zellige_dsmc::bench::input;
use zellige_dsmc::config::Config;
use zellige_dsmc::{Dsmc, config::SpeciesConfig};
use zellige_engine::device::Device;
use zellige_engine::profile::Profiler;
use zellige_engine::sim::{Environment, Solver};
use zellige_engine::testing;

use crate::common::argon;

/// The argon box with `side` cells a side and `per_cell` particles each, sampled from the start.
fn sampled(side: usize, per_cell: f64, change: impl Fn(&mut Config)) -> Config {
    let mut config = argon(side, per_cell);
    (config.steps, config.sampling.start) = (30, Some(0));
    change(&mut config);
    config
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn the_plan_tells_what_a_gpu_takes() {
    let Some(cuda) = testing::gpu() else { return };
    // As they are timed, with a start of the averages in the middle.
    let timed = |name: &str| {
        let mut config = input(name).unwrap();
        config.steps = config.steps.min(60);
        config.sampling.start = Some(config.steps / 2);
        config
    };
    let nitrogen = |config: &mut Config| config.species = vec![SpeciesConfig::named("N2")];
    let cases = [
        ("box of a million", timed("dsmc/collide-1m")),
        ("box of ten million", sampled(1000, 10.0, |_| ())),
        ("few a cell", sampled(1000, 2.0, |_| ())),
        ("many a cell", sampled(64, 2000.0, |_| ())),
        ("molecules that rotate", sampled(1000, 10.0, nitrogen)),
        ("dense cells", timed("dsmc/dense-cells")),
        ("nearest-neighbour partners", timed("dsmc/nearest-partners")),
        ("weights", timed("dsmc/weights")),
        ("mixture past a body", timed("dsmc/mixture-body")),
        ("cylinder", timed("dsmc/cylinder-50m")),
    ];
    let mut off = Vec::new();
    for (what, config) in cases {
        assert_eq!(config.check(), [], "{what}");
        let environment = Environment::new(Device::Cuda(cuda.clone()), ".", 1);
        let plan = Dsmc::plan(&config, &environment).unwrap().memory;
        let mut gas = Dsmc::setup(&config, &environment).unwrap();
        while gas.outcome().is_none() {
            gas.step(&mut Profiler::off()).unwrap();
        }
        let took = gas.flow().stages.memory_peak();
        let share = took as f64 / plan as f64;
        println!("{what}: {:.1} MiB of {:.1}, {share:.3}", took as f64 / 1048576.0, plan as f64 / 1048576.0);
        if !(0.9..1.1).contains(&share) {
            off.push(format!("{what}: {share:.3}"));
        }
    }
    assert!(off.is_empty(), "{off:?}");
}
