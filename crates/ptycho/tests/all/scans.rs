//! Several scans in one reconstruction, and probes that are brought to the middle.

use num_complex::Complex;
use zellige_engine::device::{Cpu, Device};
use zellige_engine::profile::Profiler;
use zellige_engine::testing;
use zellige_ptycho::config::{Config, EngineConfig, EngineName, ScanConfig};
use zellige_ptycho::model::Model;
use zellige_ptycho::reconstruction::Reconstruction;
use zellige_ptycho::scan::{Beam, Frames, Mask, Propagation, Scan};
use zellige_ptycho::setup;

use super::common::twins::{Case, PLAIN, model};

fn scan(name: &str, beam: Beam) -> Scan {
    Scan {
        name: name.into(),
        frames: Frames::Counts(vec![3; 4 * 16 * 16]),
        shape: [16, 16],
        mask: Mask::All,
        positions: (0..4).map(|n| [f64::from(n / 2) * 1e-6, f64::from(n % 2) * 1e-6]).collect(),
        beam,
        probe: None,
        object: None,
        truth: None,
        notes: Vec::new(),
    }
}

const NEAR: Beam = Beam { wavelength: 1e-10, distance: 0.02, pixel: [1e-7; 2], propagation: Propagation::Near };
const FAR: Beam = Beam { wavelength: 1e-10, distance: 2.0, pixel: [1e-4; 2], propagation: Propagation::Far };

fn set_up(config: &Config, beams: [Beam; 2]) -> Result<Model, String> {
    let mut config = config.clone();
    config.scan = vec![ScanConfig::default(); 2];
    let [a, b] = beams;
    setup::model(&config, &mut [scan("first", a), scan("second", b)], 1).map_err(|error| error.to_string())
}

#[test]
fn scans_at_other_distances_before_a_near_detector_are_refused() {
    let config = Config::new(ScanConfig::default(), EngineConfig::new(EngineName::Dm, 1));
    for other in [Beam { distance: 0.03, ..NEAR }, Beam { wavelength: 1.1e-10, ..NEAR }] {
        let error = set_up(&config, [NEAR, other]).unwrap_err();
        assert!(["second", "first", "2e-12", "keV"].iter().all(|word| error.contains(word)), "{error}");
    }
    // Rounding of what files say; the same product; and in the far field pixels say it all.
    set_up(&config, [NEAR, Beam { distance: 0.02 * (1.0 + 1e-7), ..NEAR }]).unwrap();
    set_up(&config, [NEAR, Beam { distance: 0.04, wavelength: 0.5e-10, ..NEAR }]).unwrap();
    set_up(&config, [FAR, Beam { distance: 4.0, wavelength: 0.5e-10, ..FAR }]).unwrap();
}

#[test]
fn probes_are_not_centred_before_a_near_detector() {
    let mut config = Config::new(ScanConfig::default(), EngineConfig::new(EngineName::Dm, 1));
    config.engine.push(EngineConfig { probe_center_tolerance: Some(1.0), ..EngineConfig::new(EngineName::Ml, 1) });
    let error = set_up(&config, [NEAR; 2]).unwrap_err();
    assert!(error.contains("engine[1].probe_center_tolerance") && error.contains("far field"), "{error}");
    set_up(&config, [FAR; 2]).unwrap();
}

/// Pixels that the light of each probe is off the middle, on average.
fn off(model: &Model, probes: &[Complex<f64>]) -> Vec<[f64; 2]> {
    let [ny, nx] = model.frame;
    let one = |probe: &[Complex<f64>]| {
        let mut sum = [0.0; 3];
        for (i, v) in probe.iter().enumerate() {
            let at = i % (ny * nx);
            let add = [1.0, (at / nx) as f64 - (ny / 2) as f64, (at % nx) as f64 - (nx / 2) as f64];
            (0..3).for_each(|k| sum[k] += add[k] * v.norm_sqr());
        }
        [sum[1] / sum[0], sum[2] / sum[0]]
    };
    probes.chunks_exact(model.modes[0] * ny * nx).map(one).collect()
}

/// Probes in the middle change no error, with waves that are kept and without; probes that share no object go their own way.
#[test]
fn probes_come_to_the_middle_with_their_objects() {
    const MOVED: [[f64; 2]; 2] = [[5.0, 4.0], [-7.0, -3.0]];
    let gpu = testing::gpu();
    for (case, shared) in [
        (Case { modes: [2, 1], sets: 2, ..PLAIN }, false),
        (Case { modes: [2, 1], sets: 2, ..PLAIN }, true),
        (Case { frame: [48, 40], sets: 2, ..PLAIN }, false),
        (Case { frame: [48, 40], modes: [1, 2], sets: 2, between: true, ..PLAIN }, false),
    ] {
        let mut model = model(case);
        let [ny, nx] = case.frame;
        // Smooth and in a part of the frame: what goes over the edges of a frame and of an object is nothing.
        model.start.probe = (0..model.start.probe.len())
            .map(|i| {
                let (plane, at) = (i / (ny * nx), i % (ny * nx));
                let (set, mode) = (plane / case.modes[0], plane % case.modes[0]);
                let [dy, dx] = MOVED[if shared { 0 } else { set }];
                let y = ((at / nx) as f64 - (ny / 2) as f64 - dy) / (ny as f64 / 12.0);
                let x = ((at % nx) as f64 - (nx / 2) as f64 - dx) / (nx as f64 / 12.0);
                Complex::from_polar(60.0 / (1.0 + mode as f64) * (-x * x - y * y).exp(), 0.5 * mode as f64 * y)
            })
            .collect();
        if shared {
            model.views.iter_mut().for_each(|v| v.object = 0);
        }
        for name in [EngineName::Dm, EngineName::Sdr, EngineName::Epie] {
            let run = |tolerance, device: &Device| {
                let engine = EngineConfig {
                    probe_center_tolerance: tolerance,
                    // Errors are those of the start's probe and object, and of the waves.
                    probe_update_start: Some(9),
                    object_update_start: Some(9),
                    ..EngineConfig::new(name, 4)
                };
                let config = Config::new(ScanConfig::default(), engine);
                let mut run = Reconstruction::new(&config, model.clone(), device, 1).unwrap();
                let mut errors = Vec::new();
                for _ in 0..3 {
                    run.advance(&mut Profiler::off()).unwrap();
                    errors.push(run.errors().unwrap());
                }
                (errors, run.state().unwrap())
            };
            let mut runs = vec![("processor", Device::Cpu(Cpu::new(2).unwrap()))];
            for gpu in gpu.iter().cloned() {
                runs.push(("GPU", Device::Cuda(gpu)));
            }
            for (on, device) in runs {
                let (still, moved) = (run(None, &device), run(Some(0.5), &device));
                for (a, b) in moved.0.iter().zip(&still.0) {
                    // Three iterations in single precision; a shifted frame is another order of sums.
                    let same = (0..3).all(|i| (a[i] - b[i]).abs() <= 1e-3 * b[i]);
                    assert!(same, "{case:?}, {name:?}, {on}: {a:?} and {b:?}");
                }
                let found = off(&model, &moved.1.probe);
                assert!(found.iter().all(|o| o[0].abs() < 0.6 && o[1].abs() < 0.6), "{case:?}, {name:?}, {on}: {found:?}");
                let start = off(&model, &still.1.probe);
                assert!(start.iter().all(|o| o[0].hypot(o[1]) > 2.0), "{case:?}, {name:?}, {on}: {start:?}");
                assert!(still.1.object != moved.1.object, "{case:?}, {name:?}, {on}");
            }
        }
    }
}
