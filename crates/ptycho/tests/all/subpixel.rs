//! Probes that stand between pixels (`subpixel`): derivatives, fixed points, the truth of a simulated scan, restarts, positions.

use std::path::Path;

use zellige_engine::device::{Cpu, Device};
use zellige_engine::profile::Profiler;
use zellige_ptycho::config::{AffinePart, Config, EngineConfig, EngineName, PositionConfig, PositionMethod};
use zellige_ptycho::half_sets;
use zellige_ptycho::positions::exact;
use zellige_ptycho::reconstruction::Reconstruction;
use zellige_ptycho::setup;
use zellige_ptycho::simulate::{Pair, SimulateConfig};
use zellige_ptycho::stages::{Noise, cpu};

use super::physics::{ALL, from_truth, gradient_is_right, input, made, remake, restart_is_bit_equal, run};

/// A scan at positions as they come.
pub(super) fn between(change: impl FnOnce(&mut SimulateConfig)) -> SimulateConfig {
    made(|m| {
        m.pattern.round = false;
        change(m);
    })
}

/// Makes a sub-pixel scan in the near field.
pub(super) fn near(change: impl FnOnce(&mut SimulateConfig)) -> SimulateConfig {
    between(|m| {
        m.propagation = zellige_ptycho::scan::Propagation::Near;
        (m.distance, m.pixel) = (1e-3, Pair::Same(1e-6));
        change(m);
    })
}

/// Input of a shifted scan.
pub(super) fn shifted(made: SimulateConfig, engine: EngineConfig) -> Config {
    Config { subpixel: true, ..input(made, engine) }
}

#[test]
fn gradients_are_the_differences_of_the_value() {
    for (noise, floating, modes, bin) in [
        (Noise::Gaussian, false, [1, 1], [1, 1]),
        (Noise::Gaussian, true, [2, 2], [1, 1]),
        (Noise::Poisson, false, [2, 1], [1, 1]),
        (Noise::Euclid, true, [1, 2], [2, 2]),
    ] {
        let scan = between(|m| (m.frames, m.photons, m.resample) = (9, 1e5, Pair::Each(bin)));
        let mut config = shifted(scan, EngineConfig::new(EngineName::Ml, 1));
        (config.probe.modes, config.object.modes, config.resample) = (modes[0], modes[1], Pair::Each(bin));
        gradient_is_right(&config, noise, floating, 0.0, &format!("{noise:?}, {modes:?}, {bin:?}"));
    }
    let mut config = shifted(near(|m| (m.frames, m.photons) = (9, 1e5)), EngineConfig::new(EngineName::Ml, 1));
    config.probe.modes = 2;
    gradient_is_right(&config, Noise::Gaussian, true, 0.0, "near field");
}

/// Frames made from the start itself, between pixels: every engine stays, and the errors are rounding.
#[test]
fn the_start_is_a_fixed_point_of_every_engine() {
    for (name, scan) in ALL.into_iter().flat_map(|name| [(name, between(|_| {})), (name, near(|_| {}))]) {
        let config = shifted(scan, EngineConfig::new(name, 6));
        let (mut start, _) = from_truth(&config, 0.0);
        assert!(start.shifts.iter().any(|s| s[0].abs() > 0.3));
        remake(&mut start);
        let before = start.start.clone();
        let mut done = run(&config, start, 2);
        let errors = done.errors().unwrap();
        // As on whole pixels.
        assert!(errors[0] < 1e-9 * done.model.power.mean.max(1.0), "{name:?}: {errors:?}");
        let off = super::common::twins::off(&done.stages.state().unwrap().probe, &before.probe);
        assert!(off < 1e-4, "{name:?}: {off:e}");
    }
}

/// The simulation shifts the probe of its own accord: from the truth, the model's intensities are the frames.
#[test]
fn frames_of_the_simulation_are_those_of_the_model() {
    for (bin, far) in [([1, 1], true), ([2, 1], true), ([1, 1], false)] {
        let error = |subpixel: bool| {
            let change = |m: &mut SimulateConfig| (m.frames, m.resample) = (9, Pair::Each(bin));
            let scan = if far { between(change) } else { near(change) };
            let mut config = Config { subpixel, resample: Pair::Each(bin), ..input(scan, EngineConfig::new(EngineName::Ml, 1)) };
            // On the pixels of the truth: an object that is sampled anew is another one.
            let mut scans = setup::scans(&config, Path::new(""), 7).unwrap();
            let truth = scans[0].truth.clone().unwrap();
            let off = (scans[0].positions[0][0] - truth.object.origin[0]) / truth.object.spacing[0];
            assert!((off - off.round()).abs() < 0.5);
            (scans[0].probe, config.object.margin) = (Some(truth.probe.clone()), Some(3));
            let mut model = setup::model(&config, &mut scans, 7).unwrap();
            // Positions anew in the pixels of the truth.
            let shape = [truth.object.shape[1], truth.object.shape[2]];
            (model.storages[0].shape, model.storages[0].origin) = (shape, truth.object.origin);
            model.start.object = truth.object.values.iter().map(|v| num_complex::Complex::new(f64::from(v.re), f64::from(v.im))).collect();
            for (j, at) in truth.positions.iter().enumerate() {
                let position = |d: usize| (at[d] - truth.object.origin[d]) / truth.object.spacing[d] - (model.frame[d] / 2) as f64;
                let whole = [position(0).round(), position(1).round()];
                (model.views[j].row, model.views[j].col) = (whole[0] as i32, whole[1] as i32);
                model.shifts[j] = [position(0) - whole[0], position(1) - whole[1]];
            }
            let mut stages = cpu::new(&model, &Cpu::new(1).unwrap(), true);
            let pixels = model.counted();
            let (mut off, mut all) = (0.0, 0.0);
            for j in 0..model.views.len() {
                for (i, m) in stages.intensities(&[j]).unwrap().remove(0).iter().zip(&model.mag[j * pixels..(j + 1) * pixels]) {
                    off += (i.sqrt() - f64::from(*m)).powi(2);
                    all += f64::from(*m).powi(2);
                }
            }
            (off / all).sqrt()
        };
        // Frames are single precision.
        assert!(error(true) < 1e-6, "{bin:?}: {:e}", error(true));
        assert!(error(false) > 1e-2, "{bin:?}: {:e}", error(false));
    }
}

/// The derivative by the position is that of the summed squared deviation, between pixels.
#[test]
fn slopes_are_the_differences_of_the_deviation() {
    for scan in [between(|m| m.frames = 9), near(|m| m.frames = 9)] {
        slope_is_right(&shifted(scan, EngineConfig::new(EngineName::Ml, 1)));
    }
}

fn slope_is_right(config: &Config) {
    let (start, _) = from_truth(config, 0.1);
    let mut stages = cpu::new(&start, &Cpu::new(1).unwrap(), true);
    let slopes = stages.slope().unwrap();
    let valid = start.counted() as f64;
    let mut sum = |by: [f64; 2]| {
        let shifts: Vec<[f64; 2]> = start.shifts.iter().map(|s| [s[0] + by[0], s[1] + by[1]]).collect();
        stages.set_views(&start.views, &shifts).unwrap();
        stages.trial(&vec![[0; 2]; start.views.len()]).unwrap()
    };
    let h = 1e-5;
    for d in 0..2 {
        let along = |sign: f64| if d == 0 { [sign * h, 0.0] } else { [0.0, sign * h] };
        let (high, low) = (sum(along(1.0)), sum(along(-1.0)));
        for (j, slope) in slopes.iter().enumerate() {
            let difference = valid * (high[j] - low[j]) / (2.0 * h);
            // Rounding of the sum, 1e-16 over the step; dark pixels, where moduli bend, give h.
            assert!((slope[d] - difference).abs() < 1e-4 * difference.abs().max(1.0), "view {j}: {} and {difference}", slope[d]);
        }
    }
}

#[test]
fn restarts_are_bit_equal() {
    for name in [EngineName::Dm, EngineName::Ml, EngineName::Sdr, EngineName::Lsqml] {
        let scan = if name == EngineName::Dm { near(|m| m.noise = true) } else { between(|m| m.noise = true) };
        let mut config = shifted(scan, EngineConfig::new(name, 8));
        let gradient = PositionConfig { method: PositionMethod::Gradient, start: 2, every: 2, ..PositionConfig::default() };
        config.engine[0].positions = Some(gradient);
        restart_is_bit_equal(&config);
    }
}

#[test]
fn threads_change_nothing() {
    for name in ALL {
        let mut config = shifted(between(|m| m.frames = 16), EngineConfig::new(name, 3));
        config.probe.modes = 2;
        if name == EngineName::Epie {
            config.engine[0].batch = Some(5);
        }
        let (start, _) = from_truth(&config, 0.1);
        let [one, three] = [1, 3].map(|threads| run(&config, start.clone(), threads).state().unwrap());
        assert!(one == three, "{name:?}");
    }
}

/// A scan whose positions are not whole pixels, from a rough start: the model that knows of it comes nearer to the frames and
/// to the truth.
#[test]
fn a_scan_between_pixels_is_reconstructed_better() {
    let found = |subpixel: bool, name: EngineName| {
        let scan = SimulateConfig { noise: false, ..SimulateConfig::case(49, 48, 1) };
        let scan = between(|m| (m.frames, m.size, m.pattern.step) = (scan.frames, scan.size, scan.pattern.step));
        let mut config = Config { subpixel, ..input(scan, EngineConfig::new(name, 20)) };
        if name == EngineName::Rpie {
            // As large as may be without noise.
            let engine = &mut config.engine[0];
            (engine.alpha, engine.object_step, engine.probe_step) = (Some(0.05), Some(1.0), Some(1.0));
        }
        if name == EngineName::Ml {
            // From so far it stays at the next best position, whatever the model.
            config.engine.insert(0, EngineConfig::new(EngineName::Dm, 12));
        }
        let mut scans = setup::scans(&config, Path::new(""), 7).unwrap();
        let truth = scans[0].truth.clone().unwrap();
        let mut probe = truth.probe.clone();
        probe.values.iter_mut().enumerate().for_each(|(i, v)| *v *= 1.0 + 0.2 * (i as f32 * 0.1).sin());
        scans[0].probe = Some(probe);
        let start = setup::model(&config, &mut scans, 7).unwrap();
        let mut done = run(&config, start, 2);
        (done.errors().unwrap(), half_sets::distance_from_truth(&mut done, &truth).unwrap().unwrap())
    };
    for name in [EngineName::Dm, EngineName::Rpie, EngineName::Ml, EngineName::Lsqml] {
        let (with, without) = (found(true, name), found(false, name));
        println!("{name:?}: with {with:?}, without {without:?}");
        assert!(with.0[1] < 0.2 * without.0[1], "{name:?}: {with:?} and {without:?}");
        assert!(with.1 < 0.7 * without.1, "{name:?}: {with:?} and {without:?}");
    }
}

/// Positions that are a third of a pixel off come back to a twentieth.
#[test]
fn thirds_of_a_pixel_are_found() {
    let mut config = shifted(between(|m| (m.frames, m.photons) = (49, 1e7)), EngineConfig::new(EngineName::Epie, 40));
    // The errors follow a pattern, of which a part is affine.
    let affine = AffinePart::Kept;
    let positions = PositionConfig { method: PositionMethod::Gradient, start: 0, every: 1, step: 1.0, affine, ..PositionConfig::default() };
    config.engine[0].positions = Some(positions);
    let (mut start, _) = from_truth(&config, 0.0);
    remake(&mut start);
    let truth: Vec<[f64; 2]> = start.views.iter().zip(&start.shifts).map(|(v, s)| exact(v, *s)).collect();
    // Views on a third of a pixel to all sides: no shift of the whole.
    for (j, shift) in start.shifts.iter_mut().enumerate() {
        shift[0] += [1.0, -1.0, 0.0][j % 3] / 3.0;
        shift[1] += [0.0, 1.0, -1.0][j / 3 % 3] / 3.0;
    }
    let far = |views: &[zellige_ptycho::model::View], shifts: &[[f64; 2]]| {
        let positions: Vec<[f64; 2]> = views.iter().zip(shifts).map(|(v, s)| exact(v, *s)).collect();
        // Object and probe may have gone together: the mean is theirs.
        let n = positions.len() as f64;
        let mean = [0, 1].map(|d| positions.iter().zip(&truth).map(|(a, b)| a[d] - b[d]).sum::<f64>() / n);
        let off = positions.iter().zip(&truth).map(|(a, b)| (0..2).map(|d| (a[d] - b[d] - mean[d]).powi(2)).sum::<f64>());
        (off.sum::<f64>() / n).sqrt()
    };
    let before = far(&start.views, &start.shifts);
    let device = Device::Cpu(Cpu::new(2).unwrap());
    let mut run = Reconstruction::new(&config, start, &device, 7).unwrap();
    while !run.finished() {
        run.advance(&mut Profiler::off()).unwrap();
    }
    let (views, shifts) = run.stages.views();
    let after = far(views, shifts);
    println!("{before} to {after} pixels");
    assert!(before > 0.3 && after < 0.05, "{before} to {after} pixels");
}

/// Reproduces the figures in the header of the example: `cargo test --test ptycho subpixel::example -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn example() {
    use zellige_engine::sim::{Environment, Solver};
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/ptycho");
    let whole = ["ptycho.subpixel=false"];
    let still = ["ptycho.engine.0.positions.start=1000", "ptycho.engine.0.positions.stop=2000"];
    for more in [&[][..], &whole, &still, &[whole[0], still[0], still[1]]] {
        let overrides: Vec<String> = more.iter().map(|s| (*s).to_owned()).collect();
        let config = zellige_engine::config::load::<zellige_ptycho::Ptycho>(folder.join("subpixel.toml"), &overrides).unwrap().config;
        let device = Device::Cpu(Cpu::new(2).unwrap());
        let mut solver = zellige_ptycho::Ptycho::setup(&config, &Environment::new(device, folder.clone(), 1)).unwrap();
        let (mut errors, begin) = (Vec::new(), std::time::Instant::now());
        while solver.outcome().is_none() {
            solver.step(&mut Profiler::off()).unwrap();
            errors.push(solver.whole().errors().unwrap()[1]);
        }
        let seconds = begin.elapsed().as_secs_f64();
        let checks = solver.checks().unwrap();
        let truth = setup::scans(&config, &folder, 1).unwrap().remove(0).truth.unwrap();
        let found = solver.whole().positions();
        let n = found.len() as f64;
        let mean = [0, 1].map(|d| found.iter().zip(&truth.positions).map(|(a, b)| a[d] - b[d]).sum::<f64>() / n);
        let off = found.iter().zip(&truth.positions).map(|(a, b)| (0..2).map(|d| (a[d] - b[d] - mean[d]).powi(2)).sum::<f64>());
        let off = (off.sum::<f64>() / n).sqrt();
        println!("{more:?}: {:.4e} {:.4e} {:.4e}, positions {off:.3e} m, {seconds:.1} s", errors[0], errors[99], errors[errors.len() - 1]);
        println!("  {checks:?}");
    }
}
