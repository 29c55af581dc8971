//! Memory stated in a plan for a GPU, against the buffers of a run. Skipped without a GPU.

use zellige_engine::device::Device;
use zellige_engine::profile::Profiler;
use zellige_engine::sim::{Environment, Solver};
use zellige_engine::testing;
use zellige_ptycho::Ptycho;
use zellige_ptycho::config::{Config, EngineConfig, EngineName, PositionConfig, PositionMethod, Precision};
use zellige_ptycho::scan::Propagation;
use zellige_ptycho::simulate::{Optic, Pair, SimulateConfig};

use super::physics::input;

/// A run's input: frames of this size, modes, engine, and what else is changed.
fn case(frames: usize, size: usize, modes: usize, name: EngineName, change: impl FnOnce(&mut Config)) -> (String, Config) {
    let made = SimulateConfig { noise: false, ..SimulateConfig::case(frames, size, modes) };
    // Enough for whatever is made late.
    let mut config = input(made, EngineConfig::new(name, 3));
    config.probe.modes = modes;
    change(&mut config);
    (format!("{frames} x {size}^2 x {modes}, {name:?}"), config)
}

fn made(config: &mut Config) -> &mut SimulateConfig {
    config.scan[0].simulate.as_mut().unwrap()
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn the_plan_tells_what_a_gpu_takes() {
    use EngineName::{Dm, Epie, Lsqml, Ml};
    let Some(cuda) = testing::gpu() else { return };
    let near = |config: &mut Config| {
        let made = made(config);
        (made.propagation, made.distance, made.energy, made.pixel) = (Propagation::Near, 0.02, 17.0, Pair::Same(1e-7));
        made.illumination.optic = Optic::Diffuser;
        made.pattern.step = Some(1.3e-6);
    };
    let resampled = |config: &mut Config| {
        (made(config).resample, config.resample) = (Pair::Same(2), Pair::Same(2));
    };
    let positions = |config: &mut Config| {
        let positions = PositionConfig { method: PositionMethod::Gradient, start: 0, every: 1, ..PositionConfig::default() };
        config.engine[0].positions = Some(positions);
    };
    let some = |share: f64| move |config: &mut Config| config.memory.device = Some(format!("{} MiB", (share * 64.0) as u64));
    let double = |config: &mut Config| config.precision = Precision::F64;
    let plain = |_: &mut Config| {};
    let cases = [
        ("registers", case(400, 128, 1, Dm, plain)),
        ("registers, four modes", case(120, 128, 4, Dm, plain)),
        ("tiles", case(200, 192, 1, Dm, plain)),
        ("tiles, two modes", case(100, 192, 2, Dm, plain)),
        ("tiles of large frames", case(16, 1024, 1, Dm, plain)),
        ("around cuFFT", case(200, 136, 1, Dm, |config| made(config).size = Pair::Each([136, 134]))),
        ("likelihood", case(400, 128, 1, Ml, plain)),
        ("likelihood in pieces", case(200, 192, 1, Ml, plain)),
        ("view to view", case(400, 128, 1, Epie, plain)),
        ("view to view in pieces", case(100, 192, 2, Epie, plain)),
        ("batches", case(400, 128, 1, Lsqml, plain)),
        ("near field", case(200, 128, 1, Dm, near)),
        ("between pixels", case(200, 128, 1, Dm, |config| config.subpixel = true)),
        ("likelihood between pixels", case(200, 128, 1, Ml, |config| config.subpixel = true)),
        ("resampled", case(200, 64, 1, Dm, resampled)),
        ("positions", case(400, 128, 1, Dm, positions)),
        ("half-scans", case(400, 128, 1, Dm, |config| config.frc = true)),
        ("doubles", case(200, 128, 1, Dm, double)),
        ("likelihood in doubles", case(200, 128, 1, Ml, double)),
        ("in blocks", case(1000, 128, 1, Dm, some(3.0))),
        ("likelihood in blocks", case(1000, 128, 1, Ml, some(1.5))),
    ];
    let mut off = Vec::new();
    for (what, (case, config)) in cases {
        assert_eq!(config.check(), [], "{what}");
        let environment = Environment::new(Device::Cuda(cuda.clone()), ".", 1);
        let plan = Ptycho::plan(&config, &environment).unwrap().memory;
        let mut solver = Ptycho::setup(&config, &environment).unwrap();
        while solver.outcome().is_none() {
            solver.step(&mut Profiler::off()).unwrap();
        }
        let took = solver.memory_peak();
        let share = took as f64 / plan as f64;
        println!("{what} ({case}): {:.1} MiB of {:.1}, {share:.3}", took as f64 / 1048576.0, plan as f64 / 1048576.0);
        if !(0.9..1.1).contains(&share) {
            off.push(format!("{what}: {share:.3}"));
        }
    }
    assert!(off.is_empty(), "{off:?}");
}
