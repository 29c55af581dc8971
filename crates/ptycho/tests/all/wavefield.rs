//! ML's wavefield preconditioner against its definition, on the CPU and, where there is one, on a GPU; and further steps
//! along a direction.

use num_complex::Complex;
use zellige_engine::device::Cpu;
use zellige_engine::testing;
use zellige_ptycho::config::{Compatibility, EngineConfig, EngineName};
use zellige_ptycho::model::{Model, State};
use zellige_ptycho::stages::cuda::{KernelConfig, new_with};
use zellige_ptycho::stages::{self, Likelihood, Noise, Slot, Stages};

use super::common::Bench;
use super::common::twins::{Case, PLAIN, all, model, off, part};
use super::physics::{from_truth, input, made, restart_is_bit_equal};
use super::twins_engines::engines_agree;

/// Damping of probe and object.
const DAMPING: [f64; 2] = [0.3, 40.0];

const RULE: Likelihood =
    Likelihood { noise: Noise::Gaussian, floating: false, floating_left_out: false, smoothness: 0.0, probe: true, object: true };

/// The gradient at the start, or what the preconditioner makes of it.
fn gradient(stages: &mut dyn Stages, start: &State, divided: bool) -> State {
    stages.set_state(start).unwrap();
    stages.gradient(&RULE).unwrap();
    if divided {
        stages.wavefield(Slot::Gradient, DAMPING).unwrap();
    }
    stages.combine(Slot::State, [0.0; 2], Slot::Gradient, [1.0; 2]).unwrap();
    stages.state().unwrap()
}

/// `gradient` over the root of light and of what the object lets through, to the `power`-th.
fn divided(model: &Model, gradient: &State, damping: [f64; 2], power: i32) -> State {
    let ([probes, objects], pixels) = (model.modes, model.pixels());
    let mut weights = [vec![0.0; model.probe_len()], vec![0.0; model.object_len()]];
    for view in &model.views {
        let storage = &model.storages[view.object as usize];
        for i in 0..pixels {
            let at = (view.row as usize + i / model.frame[1]) * storage.shape[1] + view.col as usize + i % model.frame[1];
            for (p, o) in (0..probes).flat_map(|p| (0..objects).map(move |o| (p, o))) {
                let from_probe = (view.probe as usize * probes + p) * pixels + i;
                let from_object = storage.offset + o * storage.layer() + at;
                weights[0][from_probe] += model.start.object[from_object].norm_sqr();
                weights[1][from_object] += model.start.probe[from_probe].norm_sqr();
            }
        }
    }
    let over = |values: &[Complex<f64>], which: usize| {
        let weights = weights[which].iter().map(|w| (w + damping[which]).sqrt().powi(power));
        values.iter().zip(weights).map(|(v, w)| v / w).collect::<Vec<_>>()
    };
    State { probe: over(&gradient.probe, 0), object: over(&gradient.object, 1) }
}

#[test]
fn the_wavefield_is_its_definition() {
    let (cpu, cuda) = (Cpu::new(2).unwrap(), testing::gpu());
    for case in [
        PLAIN,
        Case { frame: [44, 62], modes: [2, 2], sets: 2, views: 11, ..PLAIN },
        Case { frame: [45, 63], modes: [2, 1], views: 11, ..PLAIN },
        // Probes count as they stand on whole pixels.
        Case { between: true, views: 11, ..PLAIN },
    ] {
        let model = model(case);
        let mut exact = stages::cpu::new(&model, &cpu, true);
        let plain = gradient(&mut *exact, &model.start, false);
        let expected = divided(&model, &plain, DAMPING, 1);
        let compare = |what: &str, stages: &mut dyn Stages, limit: f64| {
            let found = gradient(stages, &model.start, true);
            let far = [off(&found.probe, &expected.probe), off(&found.object, &expected.object)];
            assert!(far.iter().all(|far| *far < limit), "{case:?}, {what}: {far:?}");
        };
        compare("doubles", &mut *exact, 1e-12);
        // Sums of some dozen views and a transform's rounding.
        compare("single precision", &mut *stages::cpu::new(&model, &cpu, false), 1e-5);
        if let Some(cuda) = &cuda {
            for double in [false, true] {
                for (name, mut stages) in all(&model, cuda, double).into_iter().skip(1) {
                    compare(name, &mut *stages, 1e-5 * part(double));
                }
            }
            let atomic = KernelConfig { atomic: true, ..KernelConfig::of(&model, cuda.properties(), false) };
            compare("atomic sums", &mut *new_with(&model, cuda, atomic).unwrap(), 1e-5);
        }
    }
}

fn ml(iterations: u64) -> EngineConfig {
    EngineConfig {
        wavefield_preconditioner: Some(true),
        probe_update_start: Some(0),
        probe_support: Some(0.0),
        ..EngineConfig::new(EngineName::Ml, iterations)
    }
}

/// The preconditioner stands twice in the direction: the first one is the gradient over light and damping themselves.
#[test]
fn the_first_step_goes_along_the_gradient_over_the_light() {
    let model = model(Case { modes: [2, 1], views: 11, ..PLAIN });
    let config = EngineConfig { wavefield_probe_damping: Some(DAMPING[0]), wavefield_object_damping: Some(DAMPING[1]), ..ml(1) };
    let mut bench = Bench::new(&model, &config, Compatibility::Ptypy, 2, true);
    let plain = gradient(&mut *bench.stages, &model.start, false);
    bench.stages.set_state(&model.start).unwrap();
    bench.step(None);
    let after = bench.stages.state().unwrap();
    let both = |state: State| [state.probe, state.object].concat();
    let moved: Vec<_> = both(after).iter().zip(both(model.start.clone())).map(|(a, b)| a - b).collect();
    let along = both(divided(&model, &plain, DAMPING, 2));
    let dot = |a: &[Complex<f64>], b: &[Complex<f64>]| a.iter().zip(b).map(|(a, b)| (a.conj() * b).re).sum::<f64>();
    let length = dot(&moved, &along) / dot(&along, &along);
    let expected: Vec<_> = along.iter().map(|v| v * length).collect();
    assert!(length < 0.0 && off(&moved, &expected) < 1e-9, "{length:e}, off by {:e}", off(&moved, &expected));
}

#[test]
fn it_leads_down_and_goes_on_from_checkpoints() {
    let config = |engine| input(made(|m| m.noise = true), engine);
    let (start, _) = from_truth(&config(ml(12)), 0.1);
    let mut bench = Bench::new(&start, &ml(12), Compatibility::None, 2, false);
    let errors: Vec<f64> = (0..12).map(|_| bench.step(None)[1]).collect();
    println!("{errors:?}");
    assert!(errors[11] < 0.3 * errors[0], "{errors:?}");
    restart_is_bit_equal(&config(EngineConfig { line_steps: Some(3), ..ml(8) }));
}

/// Ends at the minimum of a line, where there is no slope along it.
#[test]
fn line_steps_come_to_the_minimum() {
    let engine = |line_steps| EngineConfig { line_steps: Some(line_steps), ..ml(1) };
    let (start, _) = from_truth(&input(made(|m| m.frames = 9), ml(1)), 0.1);
    let slope = |line_steps| {
        let mut bench = Bench::new(&start, &engine(line_steps), Compatibility::None, 2, true);
        bench.step(None);
        bench.stages.gradient(&RULE).unwrap();
        bench.stages.dot(Slot::Gradient, Slot::Direction).unwrap().iter().sum::<f64>().abs()
    };
    let [one, five, eight] = [1, 5, 8].map(slope);
    assert!(five < 1e-3 * one && eight < 1e-6 * one, "{one:e} {five:e} {eight:e}");
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn engines_with_the_wavefield_agree() {
    let Some(cuda) = testing::gpu() else { return };
    for case in [PLAIN, Case { modes: [2, 2], sets: 2, ..PLAIN }, Case { frame: [96, 100], ..PLAIN }, Case { between: true, ..PLAIN }] {
        let config = EngineConfig { line_steps: Some(2), smooth_gradient: Some(1.0), ..ml(2) };
        // As in `supports_and_smoothing_agree`.
        engines_agree(case, &config, &cuda, 2e-4, false);
    }
}
