//! Properties that hold for every engine: symmetries, derivatives, fixed points, restarts.

use std::path::Path;

use num_complex::Complex;
use zellige_engine::device::{Cpu, Device};
use zellige_engine::profile::Profiler;
use zellige_engine::rng::Philox;
use zellige_ptycho::config::{Compatibility, Config, EngineConfig, EngineName, PositionConfig, PositionMethod, ScanConfig, WaveStorage};
use zellige_ptycho::engines::divergence_warning;
use zellige_ptycho::model::{Model, State};
use zellige_ptycho::reconstruction::Reconstruction;
use zellige_ptycho::scan::{Propagation, Scan, Truth};
use zellige_ptycho::simulate::{Pair, SimulateConfig};
use zellige_ptycho::stages::{Likelihood, Noise, Slot, Stages, cpu};
use zellige_ptycho::{Ptycho, half_sets, setup};

use super::common::{Bench, Reference, mean};

/// A small simulated scan.
pub(super) fn made(change: impl FnOnce(&mut SimulateConfig)) -> SimulateConfig {
    let mut config = SimulateConfig { noise: false, ..SimulateConfig::case(36, 32, 1) };
    change(&mut config);
    config
}

/// The model of an input whose scans are simulated, and the truth of the first.
pub(super) fn model(config: &Config) -> (Model, Truth) {
    assert_eq!(config.check(), []);
    let mut scans: Vec<Scan> = setup::scans(config, Path::new(""), 7).unwrap();
    let model = setup::model(config, &mut scans, 7).unwrap();
    (model, scans.remove(0).truth.unwrap())
}

pub(super) fn input(made: SimulateConfig, engine: EngineConfig) -> Config {
    Config::new(ScanConfig { simulate: Some(made), ..ScanConfig::default() }, engine)
}

/// Starts a model from the truth, shaken by `by`.
pub(super) fn from_truth(config: &Config, by: f32) -> (Model, Truth) {
    let mut scans = setup::scans(config, Path::new(""), 7).unwrap();
    for scan in &mut scans {
        let truth = scan.truth.clone().unwrap();
        let philox = Philox::new(9, 1);
        let shake = |values: &mut Vec<Complex<f32>>, seed: u64| {
            let size = (values.iter().map(Complex::norm_sqr).sum::<f32>() / values.len() as f32).sqrt();
            for (i, v) in values.iter_mut().enumerate() {
                let [a, b] = philox.normals(seed, i as u64);
                *v += Complex::new(a as f32, b as f32) * (by * size);
            }
        };
        let (mut probe, mut object) = (truth.probe, truth.object);
        shake(&mut probe.values, 0);
        shake(&mut object.values, 1);
        (scan.probe, scan.object) = (Some(probe), Some(object));
    }
    let model = setup::model(config, &mut scans, 7).unwrap();
    (model, scans.remove(0).truth.unwrap())
}

pub(super) fn run(config: &Config, model: Model, threads: usize) -> Reconstruction {
    let device = Device::Cpu(Cpu::new(threads).unwrap());
    let mut reconstruction = Reconstruction::new(config, model, &device, 7).unwrap();
    while !reconstruction.finished() {
        reconstruction.advance(&mut Profiler::off()).unwrap();
    }
    reconstruction
}

pub(super) const ALL: [EngineName; 7] =
    [EngineName::Dm, EngineName::Raar, EngineName::Epie, EngineName::Rpie, EngineName::Sdr, EngineName::Ml, EngineName::Lsqml];

/// Checks that, without noise, from the truth on pixels that are the truth's own, every engine stays where it is.
/// What is asked for and not there on the CPU is said before anything is computed.
#[test]
fn waves_in_half_precision_are_answered_on_the_cpu() {
    use zellige_engine::sim::{Environment, Solver};
    let environment = Environment::new(Device::Cpu(Cpu::new(1).unwrap()), ".", 1);
    for (engine, waves, expected) in [
        (EngineName::Dm, WaveStorage::F16, 1),
        (EngineName::Dm, WaveStorage::F32, 0),
        // It keeps none.
        (EngineName::Ml, WaveStorage::F16, 0),
    ] {
        let mut config = input(made(|m| m.frames = 9), EngineConfig::new(engine, 1));
        config.memory.exit_waves = waves;
        let plan = zellige_ptycho::Ptycho::plan(&config, &environment).unwrap();
        assert_eq!(plan.warnings.iter().filter(|w| w.contains("exit_waves")).count(), expected, "{engine:?}: {:?}", plan.warnings);
    }
}

/// Leaves out columns that an engine does not measure: no zero that looks like a result.
#[test]
fn rows_have_the_errors_of_their_engine() {
    use zellige_engine::sim::{Environment, Solver};
    let mut config = input(made(|m| m.frames = 9), EngineConfig::new(EngineName::Dm, 1));
    config.engine[0].log_likelihood = Some(false);
    config.engine.extend([EngineConfig::new(EngineName::Ml, 1), EngineConfig::new(EngineName::Epie, 1)]);
    let environment = Environment::new(Device::Cpu(Cpu::new(1).unwrap()), ".", 1);
    let mut solver = zellige_ptycho::Ptycho::setup(&config, &environment).unwrap();
    for expected in [&["fourier_error", "exit_error"][..], &["likelihood_error"], &["fourier_error", "likelihood_error", "exit_error"]] {
        solver.step(&mut Profiler::off()).unwrap();
        let row = solver.row().unwrap();
        assert_eq!(row.0.iter().map(|s| s.name).collect::<Vec<_>>(), expected);
        assert!(row.0.iter().all(|s| s.value > 0.0), "{row:?}");
    }
}

#[test]
fn the_truth_is_a_fixed_point_of_every_engine() {
    for name in ALL {
        let config = input(made(|m| m.pattern.jitter = 0.0), EngineConfig::new(name, 10));
        let (mut start, _) = from_truth(&config, 0.0);
        // Positions on whole pixels: the frames are made anew from the start itself.
        remake(&mut start);
        let before = start.start.clone();
        let mut done = run(&config, start, 2);
        let errors = done.errors().unwrap();
        let brightness = done.model.power.mean;
        // Moduli in single precision: squared rounding of 6e-8 over some transforms, in counts.
        assert!(errors[0] < 1e-9 * brightness.max(1.0), "{name:?}: {errors:?}");
        let after = done.stages.state().unwrap();
        let off = |a: &[Complex<f64>], b: &[Complex<f64>]| {
            let d: f64 = a.iter().zip(b).map(|(a, b)| (a - b).norm_sqr()).sum();
            (d / b.iter().map(Complex::norm_sqr).sum::<f64>()).sqrt()
        };
        assert!(off(&after.probe, &before.probe) < 1e-4, "{name:?}: {:e}", off(&after.probe, &before.probe));
        assert!(off(&after.object, &before.object) < 2e-2, "{name:?}: {:e}", off(&after.object, &before.object));
    }
}

/// Frames from the start of a model.
pub(super) fn remake(model: &mut Model) {
    let mut stages = cpu::new(model, &Cpu::new(1).unwrap(), true);
    let pixels = model.counted();
    for j in 0..model.views.len() {
        for (mag, i) in model.mag[j * pixels..(j + 1) * pixels].iter_mut().zip(stages.intensities(&[j]).unwrap().remove(0)) {
            *mag = i.sqrt() as f32;
        }
    }
}

/// Value of the likelihood at a state.
fn value(stages: &mut dyn Stages, rule: &Likelihood, state: &State) -> f64 {
    stages.set_state(state).unwrap();
    stages.gradient(rule).unwrap()
}

/// Central differences in doubles against the gradient and the two orders along a line: truncation is the step squared, rounding
/// the value's 1e-16 over the step.
pub(super) fn check_gradient(noise: Noise, floating: bool, smoothness: f64, near: bool, modes: [usize; 2], bin: [usize; 2]) {
    let made = made(|m| {
        m.resample = Pair::Each(bin);
        m.frames = 9;
        m.photons = 1e5;
        if near {
            m.propagation = Propagation::Near;
            (m.distance, m.pixel) = (1e-3, Pair::Same(1e-6));
        }
    });
    let mut config = input(made, EngineConfig::new(EngineName::Ml, 1));
    (config.probe.modes, config.object.modes) = (modes[0], modes[1]);
    config.resample = Pair::Each(bin);
    let what = format!("{noise:?}, floating {floating}, smoothness {smoothness}, near {near}, modes {modes:?}, bins {bin:?}");
    gradient_is_right(&config, noise, floating, smoothness, &what);
}

/// Checks the gradient of any input.
pub(super) fn gradient_is_right(config: &Config, noise: Noise, floating: bool, smoothness: f64, what: &str) {
    let (start, _) = from_truth(config, 0.05);
    let mut stages = cpu::new(&start, &Cpu::new(2).unwrap(), true);
    let rule = Likelihood { noise, floating, floating_left_out: false, smoothness, probe: true, object: true };
    let philox = Philox::new(5, 5);
    let state = stages.state().unwrap();
    let noise_of = |step: u64, values: &[Complex<f64>]| -> Vec<Complex<f64>> {
        let size = (values.iter().map(Complex::norm_sqr).sum::<f64>() / values.len() as f64).sqrt();
        (0..values.len()).map(|i| philox.normals(step, i as u64)).map(|[a, b]| Complex::new(a, b) * size).collect()
    };
    let direction = State { probe: noise_of(0, &state.probe), object: noise_of(1, &state.object) };
    let along = |t: f64| State {
        probe: state.probe.iter().zip(&direction.probe).map(|(a, d)| a + d * t).collect(),
        object: state.object.iter().zip(&direction.object).map(|(a, d)| a + d * t).collect(),
    };
    let t = 1e-5;
    let values = [-t, 0.0, t].map(|t| value(&mut *stages, &rule, &along(t)));
    let difference = (values[2] - values[0]) / (2.0 * t);
    value(&mut *stages, &rule, &state);
    // The direction by way of the state: the slots take pairs only.
    stages.set_state(&direction).unwrap();
    stages.combine(Slot::Direction, [0.0; 2], Slot::State, [1.0; 2]).unwrap();
    stages.set_state(&state).unwrap();
    let dot = stages.dot(Slot::Gradient, Slot::Direction).unwrap();
    let slope = 2.0 * (dot[0] + dot[1]);
    // Poisson's factor of brightness is the best one without the 1e-6 counts that keep the logarithm off zero.
    let limit = if floating && noise == Noise::Poisson { 1e-5 } else { 1e-6 };
    assert!((slope / difference - 1.0).abs() < limit, "{what}: gradient {slope:e}, differences {difference:e}");
    let [b1, b2] = stages.line(&rule).unwrap();
    if !floating {
        assert!((b1 / difference - 1.0).abs() < 1e-6, "{what}: first order {b1:e}, differences {difference:e}");
        let t = 1e-3;
        let values = [-t, 0.0, t].map(|t| value(&mut *stages, &rule, &along(t)));
        let second = (values[2] - 2.0 * values[1] + values[0]) / (2.0 * t * t);
        // Fourth order of the value over the square of the step; Poisson's and Euclid's have steep dark pixels.
        let limit = if noise == Noise::Gaussian { 1e-3 } else { 5e-2 };
        assert!((b2 / second - 1.0).abs() < limit, "{what}: second order {b2:e}, differences {second:e}");
    }
}

#[test]
fn gradients_are_the_differences_of_the_value() {
    check_gradient(Noise::Gaussian, false, 0.0, false, [1, 1], [1, 1]);
    check_gradient(Noise::Gaussian, true, 0.3, false, [2, 1], [1, 1]);
    check_gradient(Noise::Gaussian, false, 0.3, true, [1, 2], [1, 1]);
    check_gradient(Noise::Poisson, false, 0.0, false, [2, 2], [1, 1]);
    check_gradient(Noise::Poisson, true, 0.0, true, [1, 1], [1, 1]);
    check_gradient(Noise::Euclid, false, 0.0, false, [2, 1], [1, 1]);
    check_gradient(Noise::Euclid, true, 0.0, false, [1, 1], [1, 1]);
    check_gradient(Noise::Gaussian, false, 0.0, false, [1, 1], [2, 2]);
    check_gradient(Noise::Gaussian, true, 0.3, false, [2, 1], [3, 3]);
    check_gradient(Noise::Gaussian, false, 0.0, true, [1, 2], [2, 2]);
    check_gradient(Noise::Poisson, false, 0.0, false, [2, 1], [2, 2]);
    check_gradient(Noise::Poisson, true, 0.0, false, [1, 1], [1, 2]);
    check_gradient(Noise::Euclid, false, 0.0, false, [2, 1], [2, 2]);
    check_gradient(Noise::Euclid, true, 0.0, true, [1, 1], [4, 2]);
}

/// Permuted frames, other numbers of threads: the difference map does not mind.
#[test]
fn the_order_of_frames_changes_rounding_only_and_threads_change_nothing() {
    let mut reference = Reference::open();
    let one = reference.model();
    let mut other = one.clone();
    let n = one.views.len();
    let position = |i: usize| (i * 37 + 5) % n;
    for i in 0..n {
        other.views[i] = one.views[position(i)];
        other.mag[i * 4096..(i + 1) * 4096].copy_from_slice(&one.mag[position(i) * 4096..(position(i) + 1) * 4096]);
    }
    let go = |model: &Model, threads: usize| {
        let mut bench = Bench::new(model, &EngineConfig::new(EngineName::Dm, 6), Compatibility::Ptypy, threads, false);
        let errors: Vec<[f64; 3]> = (0..6).map(|_| bench.step(None)).collect();
        (errors, bench.stages.state().unwrap())
    };
    let (a, state_a) = go(&one, 1);
    let (b, state_b) = go(&one, 3);
    assert_eq!(a, b);
    assert_eq!(state_a, state_b);
    let (c, _) = go(&other, 2);
    for (a, c) in a.iter().zip(&c) {
        for i in 0..3 {
            // Sums of some dozen views in another order, in single precision.
            assert!((a[i] / c[i] - 1.0).abs() < 1e-5, "{a:?} {c:?}");
        }
    }
}

/// Checks that every engine brings the likelihood down from a start that is a tenth off, on frames of either shape and field, with
/// modes on both sides.
#[test]
fn every_engine_converges_on_every_kind_of_frame() {
    type Kind = (&'static str, fn(&mut SimulateConfig));
    let kinds: [Kind; 3] = [
        ("far", |_| {}),
        ("rectangular", |m| m.size = Pair::Each([32, 44])),
        ("near", |m| {
            m.propagation = Propagation::Near;
            (m.distance, m.pixel) = (1e-3, Pair::Same(1e-6));
        }),
    ];
    for (kind, change) in kinds {
        let mut config = input(made(change), EngineConfig::default());
        if kind == "rectangular" {
            (config.probe.modes, config.object.modes) = (2, 1);
        }
        // One scan for all of them.
        let (start, _) = from_truth(&config, 0.1);
        for name in ALL {
            config.engine = vec![EngineConfig::new(name, 6)];
            let device = Device::Cpu(Cpu::new(2).unwrap());
            let mut run = Reconstruction::new(&config, start.clone(), &device, 7).unwrap();
            run.advance(&mut Profiler::off()).unwrap();
            let first = run.errors().unwrap();
            while !run.finished() {
                run.advance(&mut Profiler::off()).unwrap();
            }
            let last = run.errors().unwrap();
            assert!(last[1] < 0.6 * first[1], "{kind} {name:?}: {first:?} to {last:?}");
        }
    }
}

/// A run that is cut in two by a checkpoint gives the same bits.
#[test]
fn restarts_are_bit_equal() {
    for name in [EngineName::Dm, EngineName::Ml, EngineName::Sdr, EngineName::Lsqml] {
        let mut config = input(made(|m| m.noise = true), EngineConfig::new(name, 8));
        config.engine[0].positions = Some(PositionConfig { start: 2, every: 2, ..PositionConfig::default() });
        restart_is_bit_equal(&config);
    }
}

/// SDR on weak frames: as it stands it stays where it comes to; without relaxation it runs away, which the plan says.
#[test]
fn sdr_stays_on_noisy_frames() {
    let errors = |photons: f64, [sigma, tau]: [Option<f64>; 2]| {
        let mut config = input(made(|m| (m.noise, m.photons) = (true, photons)), EngineConfig::new(EngineName::Sdr, 100));
        (config.engine[0].sigma, config.engine[0].tau) = (sigma, tau);
        let (model, _) = from_truth(&config, 0.1);
        let mut run = Reconstruction::new(&config, model, &Device::Cpu(Cpu::new(2).unwrap()), 7).unwrap();
        let mut all = Vec::new();
        while !run.finished() {
            run.advance(&mut Profiler::off()).unwrap();
            all.push(run.errors().map_or(f64::INFINITY, |e| e[1]));
            if all[all.len() - 1] > 1e6 {
                break;
            }
        }

        (all.iter().copied().fold(f64::INFINITY, f64::min), all[all.len() - 1], divergence_warning(&config.engine[0], config.compatibility))
    };
    for photons in [1e4, 1e5, 1e6] {
        // Sweeps in other orders, one after the other, wander by some hundredths.
        let (best, last, warning) = errors(photons, [None; 2]);
        assert!(last < 1.05 * best && warning.is_none(), "{best} to {last}, {warning:?}");
    }
    let (best, last, warning) = errors(1e4, [Some(0.5), Some(1.0)]);
    assert!(last > 1.05 * best && warning.is_some(), "{best} to {last}");
    let (best, last, warning) = errors(1e4, [Some(1.0); 2]);
    assert!(last > 1e3 * best && warning.is_some(), "{best} to {last}");
}

/// rPIE on frames with noise whose object has an unlit rim: the probe keeps its power. Without that it grows from sweep to sweep,
/// the object fades until its rim outshines the rest, and errors run away: with steps of 1 to 1e32 in so many sweeps.
#[test]
fn rpie_stays_on_noisy_frames() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/ptycho");
    // Steps of 1 overshoot, and so stay at some times the noise.
    for (steps, limit) in [("", 0.8), (",alpha=0.2,object_step=1,probe_step=1", 10.0)] {
        let engine = format!("ptycho.engine=[{{name=\"rPIE\",iterations=120{steps}}}]");
        let overrides = ["ptycho.frc=false".to_owned(), engine];
        let config = zellige_engine::config::load::<Ptycho>(&folder.join("stacked.toml"), &overrides).unwrap().config;
        let mut scans = setup::scans(&config, Path::new(""), 7).unwrap();
        let model = setup::model(&config, &mut scans, 7).unwrap();
        let mut run = Reconstruction::new(&config, model, &Device::Cpu(Cpu::new(2).unwrap()), 7).unwrap();
        let mut errors = Vec::new();
        while !run.finished() {
            run.advance(&mut Profiler::off()).unwrap();
            errors.push(run.errors().map_or(f64::INFINITY, |e| e[1]));
        }
        let (middle, last) = (errors[errors.len() / 2], errors[errors.len() - 1]);
        assert!(last < limit && last < 1.5 * middle, "{steps}: {middle} to {last}");
    }
}

/// Measures SDR on frames with noise: `cargo test --test ptycho sdr_goes -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn sdr_goes() {
    for (photons, noise) in [(1e4, true), (1e5, true), (1e5, false)] {
        for (sigma, tau) in [(1.0, 1.0), (1.0, 0.9), (1.0, 0.75), (0.5, 1.0), (1.0, 0.5), (0.25, 0.75)] {
            for start in [0.1, 0.5] {
                let mut config = input(made(|m| (m.noise, m.photons) = (noise, photons)), EngineConfig::new(EngineName::Sdr, 30));
                (config.engine[0].sigma, config.engine[0].tau) = (Some(sigma), Some(tau));
                let (model, truth) = from_truth(&config, start);
                let mut run = Reconstruction::new(&config, model, &Device::Cpu(Cpu::new(2).unwrap()), 7).unwrap();
                let mut line = Vec::new();
                while !run.finished() {
                    run.advance(&mut Profiler::off()).unwrap();
                    match run.errors() {
                        Ok(e) if [1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30].contains(&run.done) => line.push(e[1]),
                        Ok(_) => {}
                        Err(_) => break,
                    }
                }
                let off = half_sets::distance_from_truth(&mut run, &truth).unwrap();
                println!("photons {photons:e} noise {noise} sigma {sigma} tau {tau} start {start}: {line:.3?}; off {off:?}");
            }
        }
    }
}

/// The run of an input of eight iterations against the same in two halves.
pub(super) fn restart_is_bit_equal(config: &Config) {
    use zellige_engine::checkpoint::{Reader, Writer};
    let folder = tempfile::tempdir().unwrap();
    let name = config.engine[0].name;
    let (start, _) = from_truth(config, 0.1);
    let device = Device::Cpu(Cpu::new(2).unwrap());
    let mut whole = run(config, start.clone(), 2);
    let mut first = Reconstruction::new(config, start.clone(), &device, 7).unwrap();
    for _ in 0..4 {
        first.advance(&mut Profiler::off()).unwrap();
    }
    let path = folder.path().join(name.as_str());
    let mut writer = Writer::create(&path, "ptycho").unwrap();
    first.save("x.", &mut writer).unwrap();
    writer.finish().unwrap();
    let mut second = Reconstruction::new(config, start, &device, 7).unwrap();
    second.restore("x.", &Reader::open(&path, "ptycho").unwrap(), &config.engine).unwrap();
    while !second.finished() {
        second.advance(&mut Profiler::off()).unwrap();
    }
    assert_eq!(whole.stages.errors().unwrap(), second.stages.errors().unwrap(), "{name:?}");
    assert_eq!(whole.state().unwrap(), second.state().unwrap(), "{name:?}");
    assert_eq!(whole.positions(), second.positions(), "{name:?}");
}

/// Displaces every third view by a pixel; at the end the positions are half as far off as at the start, or less.
pub(super) fn moved_views_come_back(mut config: Config, method: PositionMethod) {
    config.object.margin = Some(6);
    config.engine[0].positions = Some(PositionConfig { method, start: 0, every: 1, trials: 6, step: 0.5, ..PositionConfig::default() });
    let (mut start, _) = from_truth(&config, 0.0);
    remake(&mut start);
    let truth = start.views.clone();
    for (j, view) in start.views.iter_mut().enumerate().filter(|(j, _)| j % 3 == 0) {
        view.row += if j % 2 == 0 { 1 } else { -1 };
        view.col += i32::from(j % 4 < 2);
    }
    let far = |views: &[zellige_ptycho::model::View]| {
        let off = views.iter().zip(&truth).map(|(a, b)| f64::from((a.row - b.row).pow(2) + (a.col - b.col).pow(2)));
        (off.sum::<f64>() / truth.len() as f64).sqrt()
    };
    let before = far(&start.views);
    let done = run(&config, start, 2);
    let after = far(done.stages.views().0);
    assert!(after < 0.5 * before, "{method:?}: {before} to {after} pixels");
}

/// Positions that were reported wrong by a pixel and a half are found again.
#[test]
fn positions_come_back() {
    for method in [PositionMethod::Annealing, PositionMethod::Grid, PositionMethod::Gradient] {
        let scan = made(|m| {
            m.frames = 49;
            m.pattern.jitter = 0.0;
        });
        let config = input(scan, EngineConfig::new(EngineName::Epie, 20));
        moved_views_come_back(config, method);
    }
}

/// Reconstructs from an unknown sample and a rough beam to the truth; the two halves agree as far as the truth does.
#[test]
fn a_simulated_scan_is_reconstructed_and_its_resolution_told() {
    let scan = SimulateConfig { photons: 1e7, ..SimulateConfig::case(49, 64, 1) };
    let mut config = input(scan, EngineConfig::new(EngineName::Dm, 30));
    config.engine.push(EngineConfig::new(EngineName::Ml, 10));
    let mut scans = setup::scans(&config, Path::new(""), 7).unwrap();
    let truth = scans[0].truth.clone().unwrap();
    let mut probe = truth.probe.clone();
    probe.values.iter_mut().enumerate().for_each(|(i, v)| *v *= 1.0 + 0.2 * (i as f32 * 0.1).sin());
    scans[0].probe = Some(probe);
    let start = setup::model(&config, &mut scans, 7).unwrap();
    let device = Device::Cpu(Cpu::new(2).unwrap());
    let mut parts = half_sets::HalfSets::new(&config, &start, &device, 7, &config.memory_budget(1.0)).unwrap();
    for _ in 0..config.iterations() {
        parts.advance(&mut Profiler::off()).unwrap();
    }
    let mut whole = run(&config, start, 2);
    let off = half_sets::distance_from_truth(&mut whole, &truth).unwrap().unwrap();
    // Frames of 10^7 photons: noise of a few parts in a thousand, and pixels that few frames see.
    assert!(off < 0.1, "{off}");
    let pixel = whole.model.pixel[0];
    let resolution = parts.rings().unwrap()[0].1.half_bit_resolution();
    assert!(resolution < 4.0 * pixel, "{resolution:e}, pixel {pixel:e}");
}

#[test]
fn scans_share_what_they_say() {
    let scan = |seed: u64, object: Option<&str>| ScanConfig {
        simulate: Some(made(|m| m.seed = seed)),
        probe: Some("beam".into()),
        object: object.map(Into::into),
        ..ScanConfig::default()
    };
    let mut config = Config::new(scan(0, None), EngineConfig::new(EngineName::Dm, 3));
    config.scan.push(scan(1, Some("a")));
    config.scan.push(scan(2, Some("a")));
    let (start, _) = model(&config);
    assert_eq!((start.probes, start.storages.len(), start.views.len()), (1, 2, 108));
    let objects: Vec<u32> = start.views.iter().step_by(36).map(|v| v.object).collect();
    assert_eq!(objects, [0, 1, 1]);
    let mut done = run(&config, start, 2);
    assert!(mean(&done.stages.errors().unwrap()).iter().all(|e| e.is_finite()));
}
