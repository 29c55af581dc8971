//! The stages on a GPU in doubles against those on the CPU: tolerances are those of single precision times [`part`]. Skipped
//! without a GPU.

use num_complex::Complex;
use zellige_engine::cuda::Properties;
use zellige_engine::device::{Cpu, Device};
use zellige_engine::profile::Profiler;
use zellige_engine::sim::{Environment, Solver};
use zellige_engine::testing;
use zellige_ptycho::Ptycho;
use zellige_ptycho::config::{Compatibility, EngineConfig, EngineName, NoiseName, Precision};
use zellige_ptycho::engines::{self, EngineState, ProblemSize};
use zellige_ptycho::model::Model;
use zellige_ptycho::stages::Stages;
use zellige_ptycho::stages::cuda::{KernelConfig, new_with, new_within};

use super::common::Bench;
use super::common::twins::{Case, PLAIN, model};
use super::streamed_cuda::{counted, demand_of, streaming_plans};
use super::twins_cuda::{RULES, goes_on, likelihood_agrees, projections_agree};
use super::twins_engines::engines_agree;
use super::twins_places;

/// One of each sort: frames in tiles, over clusters where a device has them, and around cuFFT; several modes and objects, near
/// fields, bins, odd edges, probes between pixels.
const CASES: [Case; 8] = [
    PLAIN,
    Case { frame: [96, 100], modes: [2, 2], sets: 2, views: 11, ..PLAIN },
    Case { frame: [63, 45], bin: [3, 1], modes: [2, 1], views: 11, ..PLAIN },
    Case { near: true, frame: [64, 96], bin: [1, 4], views: 11, ..PLAIN },
    Case { between: true, views: 11, ..PLAIN },
    Case { between: true, frame: [63, 45], modes: [2, 1], sets: 2, views: 11, ..PLAIN },
    Case { between: true, near: true, frame: [45, 64], modes: [2, 1], views: 11, ..PLAIN },
    CLUSTERED,
];

/// Frames whose Fourier step is one kernel of clusters of blocks.
const CLUSTERED: Case = Case { frame: [128, 128], sets: 2, views: 11, ..PLAIN };

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn projections_in_doubles_agree() {
    let Some(cuda) = testing::gpu() else { return };
    for case in CASES {
        projections_agree(case, &cuda, true);
    }
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn likelihoods_in_doubles_agree() {
    let Some(cuda) = testing::gpu() else { return };
    for (case, rules) in CASES.into_iter().zip([0..4, 1..3, 3..4, 1..2, 1..2, 2..3, 1..2, 1..2]) {
        likelihood_agrees(case, &RULES[rules], &cuda, true);
    }
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn positions_in_doubles_agree() {
    let Some(cuda) = testing::gpu() else { return };
    for case in CASES {
        twins_places::agree_in(case, &cuda, true);
    }
}

/// Every engine with the keys that choose other kernels.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn engines_in_doubles_agree() {
    let Some(cuda) = testing::gpu() else { return };
    let supported = EngineConfig {
        probe_support: Some(0.7),
        probe_fourier_support: Some(0.8),
        object_clip: Some([0.1, 1.5]),
        ..EngineConfig::default()
    };
    let with = |name, iterations| EngineConfig { name, iterations: Some(iterations), ..supported.clone() };
    let early = |name| EngineConfig { probe_update_start: Some(0), ..EngineConfig::new(name, 2) };
    let steps = |name, batch| EngineConfig { object_step: Some(0.3), probe_step: Some(0.2), batch: Some(batch), ..with(name, 1) };
    let least = |noise| EngineConfig { batch: Some(5), noise, ..with(EngineName::Lsqml, 2) };
    for case in [CASES[0], CASES[1], CASES[3], CASES[5], CLUSTERED] {
        let smooth = EngineConfig { object_smooth: Some(1.5), ..early(EngineName::Dm) };
        let ml = EngineConfig { smooth_gradient: Some(2.0), smoothness: Some(0.01), ..early(EngineName::Ml) };
        let preconditioned =
            EngineConfig { wavefield_preconditioner: Some(true), noise: Some(NoiseName::Poisson), ..early(EngineName::Ml) };
        for config in [early(EngineName::Dm), early(EngineName::Raar), smooth, ml, preconditioned] {
            engines_agree(case, &config, &cuda, 2e-4, true);
        }
        for config in [steps(EngineName::Epie, 1), steps(EngineName::Rpie, 4), steps(EngineName::Sdr, 1)] {
            engines_agree(case, &config, &cuda, 5e-4, true);
            let plain = EngineConfig { probe_support: None, probe_fourier_support: None, ..config };
            engines_agree(case, &plain, &cuda, 5e-4, true);
        }
        engines_agree(case, &least(None), &cuda, 2e-4, true);
        engines_agree(case, &least(Some(NoiseName::Poisson)), &cuda, 2e-4, true);
    }
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn a_saved_state_in_doubles_goes_on_the_same_way() {
    let Some(cuda) = testing::gpu() else { return };
    for (name, between) in [(EngineName::Dm, true), (EngineName::Ml, false)] {
        goes_on(name, between, &cuda, true);
    }
}

/// Blocks of frames of doubles give the bits of a run that holds all.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn streamed_runs_in_doubles_give_the_bits_of_resident_ones() {
    let Some(cuda) = testing::gpu() else { return };
    let dm = EngineConfig { overlap_passes: Some(2), overlap_tolerance: Some(1e-4), ..EngineConfig::new(EngineName::Dm, 3) };
    let run = |model: &Model, config: &EngineConfig, stages: Box<dyn Stages>| {
        let engine = engines::engine(config, &ProblemSize::of(model, Compatibility::None, 1), 0);
        let mut stages = stages;
        engines::begin(&*engine, &mut *stages, model.frame).unwrap();
        let mut run = Bench { stages, engine, memory: EngineState::default(), k: 0 };
        let errors: Vec<_> = (0..config.iterations()).map(|_| run.step(None)).collect();
        (errors, run.stages.state().unwrap(), run.stages.memory())
    };
    let kinds = [dm, EngineConfig::new(EngineName::Ml, 3), EngineConfig::new(EngineName::Sdr, 2), EngineConfig::new(EngineName::Lsqml, 2)];
    let spread = Case { views: 61, ..CLUSTERED };
    for case in [Case { views: 61, ..PLAIN }, Case { between: true, frame: [61, 45], views: 61, ..PLAIN }, spread] {
        let model = counted(model(case));
        for config in &kinds {
            let kind = KernelConfig::of(&model, cuda.properties(), true);
            let (errors, state, _) = run(&model, config, new_with(&model, &cuda, kind).unwrap());
            let mut demand = demand_of(config);
            demand.double = true;
            for (outline, streaming) in streaming_plans(&model, cuda.properties(), demand, false) {
                let (found, end, memory) = run(&model, config, new_within(&model, &cuda, streaming).unwrap());
                let what = format!("{case:?}, {:?}, {:?}", config.name, outline.layout);
                assert_eq!(found, errors, "{what}: errors");
                assert!(end == state, "{what}: state");
                assert!(memory <= streaming.allowance, "{what}: {memory} of {}", streaming.allowance);
            }
            // Never a lower precision than was asked for.
            let (_, mut streaming) = streaming_plans(&model, cuda.properties(), demand, false).remove(0);
            streaming.half = true;
            assert!(new_within(&model, &cuda, streaming).is_err(), "{case:?}");
        }
    }
}

/// A run of the program in doubles, to the same checks as on the CPU.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn a_run_in_doubles_is_that_of_the_cpu() {
    let Some(cuda) = testing::gpu() else { return };
    let (config, folder) = example();
    let errors = |device: Device| {
        let mut solver = Ptycho::setup(&config, &Environment::new(device, folder.clone(), 1)).unwrap();
        for _ in 0..6 {
            solver.step(&mut Profiler::off()).unwrap();
        }
        solver.whole().errors().unwrap()
    };
    let (there, here) = (errors(Device::Cuda(cuda)), errors(Device::Cpu(Cpu::new(4).unwrap())));
    // The difference map doubles what rounding leaves from one iteration to the next, or so.
    assert!((0..3).all(|i| (there[i] - here[i]).abs() <= 1e-9 * here[i]), "{there:?} and {here:?}");
}

/// Sweeps of probes of one mode and of two, which keep their power.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn probes_keep_their_power_on_a_gpu() {
    let Some(cuda) = testing::gpu() else { return };
    let (mut config, folder) = example();
    (config.frc, config.scan[0].simulate.as_mut().unwrap().frames) = (false, 64);
    for (name, modes) in [(EngineName::Epie, 1), (EngineName::Rpie, 2)] {
        (config.engine, config.probe.modes) = (vec![EngineConfig::new(name, 3)], modes);
        let powers = |device: Device| {
            let mut solver = Ptycho::setup(&config, &Environment::new(device, folder.clone(), 1)).unwrap();
            let power = |solver: &mut Ptycho| solver.whole().state().unwrap().probe.iter().map(Complex::norm_sqr).sum::<f64>();
            let before = power(&mut solver);
            (0..3).for_each(|_| solver.step(&mut Profiler::off()).unwrap());
            (power(&mut solver) / before, solver.whole().errors().unwrap()[1])
        };
        let (there, here) = (powers(Device::Cuda(cuda.clone())), powers(Device::Cpu(Cpu::new(4).unwrap())));
        for (ratio, _) in [there, here] {
            assert!((ratio - 1.0).abs() < 1e-12, "{name:?}: {there:?} and {here:?}");
        }
        // Each frame hands what rounding leaves on to the next ones.
        assert!((there.1 - here.1).abs() < 1e-2 * here.1, "{name:?}: {there:?} and {here:?}");
    }
}

/// An example's input in doubles, and its folder.
fn example() -> (zellige_ptycho::Config, std::path::PathBuf) {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/ptycho");
    let overrides = ["ptycho.precision=f64".to_owned()];
    let config = zellige_engine::config::load::<Ptycho>(&folder.join("stacked.toml"), &overrides).unwrap().config;
    assert_eq!(config.precision, Precision::F64);
    (config, folder)
}

/// A GPU is not refused for doubles: there are programs for all engines, all of them in doubles.
#[test]
fn doubles_have_programs_for_gpus() {
    let (config, folder) = example();
    assert_eq!(Ptycho::only_on_cpu(&config), Vec::<&str>::new());
    let gpu = Properties {
        name: "some".into(),
        capability: (9, 0),
        multiprocessors: 132,
        l2: 50 << 20,
        shared_per_block: 227 << 10,
        shared_per_multiprocessor: 228 << 10,
        memory: 80 << 30,
        cooperative: true,
    };
    let environment = Environment::new(Device::Cpu(Cpu::new(2).unwrap()), folder, 1);
    let programs = Ptycho::programs(&config, &environment, &gpu).unwrap();
    // Copies for who asks for them are of either kind.
    let own: Vec<_> = programs.iter().filter(|program| program.name.starts_with("ptycho ")).collect();
    assert!(own.len() > 3);
    for program in own {
        let double = ("DOUBLE".to_owned(), "1".to_owned());
        assert!(program.name.contains("in doubles") && program.defines.contains(&double), "{}", program.name);
    }
}
