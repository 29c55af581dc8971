//! Waves that are sampled more finely than the detector: what follows from counting several of their pixels as one.

use num_complex::Complex;
use zellige_engine::device::{Cpu, Device};
use zellige_engine::profile::Profiler;
use zellige_ptycho::config::{Config, EngineConfig, EngineName, PositionMethod, ProbeShape};
use zellige_ptycho::engines::middle_first;
use zellige_ptycho::reconstruction::Reconstruction;
use zellige_ptycho::scan::{Frames, Propagation, Truth};
use zellige_ptycho::simulate::{Optic, Pair, SimulateConfig, simulate};
use zellige_ptycho::stages::cpu;
use zellige_ptycho::{half_sets, resolution, setup};

use super::physics::{ALL, from_truth, input, made, model, moved_views_come_back, remake, run};

fn near(m: &mut SimulateConfig) {
    m.propagation = Propagation::Near;
    (m.distance, m.pixel) = (1e-3, Pair::Same(1e-6));
}

/// An input whose scan and model are sampled alike.
fn resampled(bin: [usize; 2], engine: EngineConfig, change: impl FnOnce(&mut SimulateConfig)) -> Config {
    let scan = made(|m| {
        m.resample = Pair::Each(bin);
        change(m);
    });
    Config { resample: Pair::Each(bin), ..input(scan, engine) }
}

fn frames(config: &SimulateConfig) -> Vec<f64> {
    match simulate(config, "scan", std::path::Path::new(""), 7).unwrap().frames {
        Frames::Real(v) => v.into_iter().map(f64::from).collect(),
        _ => panic!("frames without noise are real"),
    }
}

/// Compares the model of the truth with the counts of the simulation, with the optical axis on the same pixel: bins even, odd and
/// of two kinds, both fields.
#[test]
fn the_model_of_the_truth_is_the_scan() {
    for bin in [[1, 1], [2, 2], [3, 3], [2, 1], [3, 4]] {
        for far in [true, false] {
            let config = resampled(bin, EngineConfig::new(EngineName::Dm, 1), |m| {
                m.frames = 4;
                if !far {
                    near(m);
                }
            });
            let (start, _) = from_truth(&config, 0.0);
            assert_eq!((start.frame, start.detector()), ([32 * bin[0], 32 * bin[1]], [32, 32]));
            let counted = frames(config.scan[0].simulate.as_ref().unwrap());
            let mut stages = cpu::new(&start, &Cpu::new(1).unwrap(), true);
            for (j, counted) in counted.chunks(1024).enumerate() {
                let found = stages.intensities(&[j]).unwrap().remove(0);
                let found = if far { middle_first(&found, [32, 32]) } else { found };
                let off: f64 = found.iter().zip(counted).map(|(a, b)| (a - b).powi(2)).sum();
                let all: f64 = counted.iter().map(|b| b * b).sum();
                // Both hold probe and object in single precision.
                assert!((off / all).sqrt() < 1e-5, "{bin:?} far {far}, frame {j}: {:e}", (off / all).sqrt());
            }
        }
    }
}

/// Compares a coarse frame with the sum of the fine frame's pixels for the same waves: none is lost, and none is counted twice.
#[test]
fn bins_conserve_what_is_counted() {
    for far in [true, false] {
        // The detector's aperture and the waves' sampling are the same: pixels of half the size, twice as many.
        let mut coarse = made(|m| {
            (m.frames, m.resample) = (3, Pair::Same(2));
            if !far {
                near(m);
            }
        });
        coarse.pattern.step = Some(if far { 1e-6 } else { 4e-6 });
        let both = coarse.pixel.both().map(|p| p / 2.0);
        let fine = SimulateConfig { resample: Pair::Same(1), size: Pair::Same(64), pixel: Pair::Each(both), ..coarse.clone() };
        let (coarse, fine) = (frames(&coarse), frames(&fine));
        for (coarse, fine) in coarse.chunks(1024).zip(fine.chunks(4096)) {
            let sums = [coarse, fine].map(|f| f.iter().sum::<f64>());
            // Single precision.
            assert!((sums[0] / sums[1] - 1.0).abs() < 1e-5, "far {far}: {sums:?}");
            if !far {
                for i in 0..1024 {
                    let at = 2 * (i / 32) * 64 + 2 * (i % 32);
                    let sum = fine[at] + fine[at + 1] + fine[at + 64] + fine[at + 65];
                    assert!((coarse[i] - sum).abs() < 1e-5 * sums[0] / 1024.0 + 1e-5 * sum, "{i}: {} and {sum}", coarse[i]);
                }
            }
        }
    }
}

/// Checks that, without noise, from the truth, every engine stays where it is.
#[test]
fn the_truth_is_a_fixed_point_of_every_engine() {
    for name in ALL {
        let config = resampled([2, 2], EngineConfig::new(name, 6), |m| m.pattern.jitter = 0.0);
        let (mut start, _) = from_truth(&config, 0.0);
        remake(&mut start);
        let before = start.start.clone();
        let mut done = run(&config, start, 2);
        let errors = done.errors().unwrap();
        // As without bins: squared rounding of moduli in single precision, in counts.
        assert!(errors[0] < 1e-9 * done.model.power.mean.max(1.0), "{name:?}: {errors:?}");
        let after = done.stages.state().unwrap();
        let off = |a: &[Complex<f64>], b: &[Complex<f64>]| {
            let d: f64 = a.iter().zip(b).map(|(a, b)| (a - b).norm_sqr()).sum();
            (d / b.iter().map(Complex::norm_sqr).sum::<f64>()).sqrt()
        };
        assert!(off(&after.probe, &before.probe) < 1e-4, "{name:?}: {:e}", off(&after.probe, &before.probe));
        // Pixels that hardly any light falls on drift by rounding.
        assert!(off(&after.object, &before.object) < 2e-2, "{name:?}: {:e}", off(&after.object, &before.object));
    }
}

/// Checks that every engine brings the likelihood down, in both fields, with even and odd bins, several modes, masked pixels, noise
/// and frames that differ in brightness.
#[test]
fn every_engine_converges() {
    for (bin, modes) in [([2, 2], 1), ([3, 1], 2)] {
        for far in [true, false] {
            let mut config = resampled(bin, EngineConfig::default(), |m| {
                (m.frames, m.noise, m.detector.dead, m.fluctuation) = (25, true, 0.02, 0.02);
                if !far {
                    near(m);
                }
            });
            config.probe.modes = modes;
            // One scan for all of them.
            let (start, _) = from_truth(&config, 0.1);
            for name in ALL {
                // SDR comes down within three sweeps and goes up again from the fifth on such a scan, with bins and without.
                let iterations = if name == EngineName::Sdr { 4 } else { 6 };
                config.engine = vec![EngineConfig::new(name, iterations)];
                if name == EngineName::Ml {
                    config.engine[0].floating_intensities = Some(true);
                }
                let device = Device::Cpu(Cpu::new(2).unwrap());
                let mut run = Reconstruction::new(&config, start.clone(), &device, 7).unwrap();
                run.advance(&mut Profiler::off()).unwrap();
                let first = run.errors().unwrap();
                while !run.finished() {
                    run.advance(&mut Profiler::off()).unwrap();
                }
                let last = run.errors().unwrap();
                assert!(last[1] < 0.6 * first[1], "{bin:?} far {far} {name:?}: {first:?} to {last:?}");
            }
        }
    }
}

/// Relative distance of the object from the truth in the part that the middle of the beam went over.
fn distance_from_truth(whole: &mut Reconstruction, truth: &Truth) -> f64 {
    let half_sets::TruthComparison { found, expected, shape: [height, width], .. } =
        half_sets::compare_with_truths(whole, &[Some(truth.clone())]).unwrap().remove(0);
    let middle = |values: &[Complex<f64>]| -> Vec<Complex<f64>> {
        let [y, x] = [height / 2 - LIT / 2, width / 2 - LIT / 2];
        (0..LIT * LIT).map(|i| values[(y + i / LIT) * width + x + i % LIT]).collect()
    };
    let (mut found, expected) = (middle(&found), middle(&expected));
    resolution::align(&mut found, &expected, [LIT; 2]);
    let off: f64 = found.iter().zip(&expected).map(|(a, b)| (a - b).norm_sqr()).sum();
    (off / expected.iter().map(Complex::norm_sqr).sum::<f64>()).sqrt()
}

/// Rows and columns of that part.
const LIT: usize = 36;

/// A beam wider than the field that the detector's pixels resolve: found on pixels half as wide, not on the detector's own.
#[test]
fn a_beam_too_wide_for_the_detector_is_found_by_finer_waves() {
    let mut scan = SimulateConfig { photons: 1e8, resample: Pair::Same(2), ..SimulateConfig::case(100, 32, 1) };
    let field = 32.0 * scan.beam().resolution([32, 32])[0];
    scan.illumination.optic = Optic::Pinhole;
    (scan.illumination.diameter, scan.illumination.defocus) = (Some(1.1 * field), Some(2e-3));
    scan.pattern.step = Some(0.11 * field);
    let [fine, coarse] = [2, 1].map(|bin| {
        let mut config = input(scan.clone(), EngineConfig::new(EngineName::Dm, 100));
        config.engine.push(EngineConfig::new(EngineName::Ml, 20));
        config.resample = Pair::Same(bin);
        (config.probe.shape, config.probe.size, config.probe.defocus) = (ProbeShape::Round, Some(1.2 * field), Some(1.6e-3));
        let (start, truth) = model(&config);
        let mut whole = run(&config, start, 2);
        (distance_from_truth(&mut whole, &truth), whole.errors().unwrap()[1])
    });
    // The likelihood would come to 1, where photon noise alone is left: 3 after half as many iterations more.
    assert!(fine.0 < 0.03 && fine.1 < 12.0, "on finer pixels: {fine:?}");
    assert!(coarse.0 > 5.0 * fine.0 && coarse.1 > 100.0 * fine.1, "on the detector's pixels: {coarse:?}, on finer ones {fine:?}");
}

/// A run goes on from the probe of one without finer waves: the same pixels, in the middle.
#[test]
fn a_coarse_probe_is_taken_to_the_middle() {
    let config = input(made(|_| {}), EngineConfig::new(EngineName::Dm, 1));
    let (coarse, truth) = from_truth(&config, 0.0);
    for bin in [2, 3] {
        let config = Config { resample: Pair::Same(bin), ..config.clone() };
        let mut scans = setup::scans(&config, std::path::Path::new(""), 7).unwrap();
        scans[0].probe = Some(truth.probe.clone());
        let fine = setup::model(&config, &mut scans, 7).unwrap();
        assert_eq!(fine.pixel, coarse.pixel);
        let (wide, first) = (32 * bin, (32 * bin) / 2 - 16);
        for (i, v) in fine.start.probe.iter().enumerate() {
            let at = [i / wide, i % wide].map(|n| n.wrapping_sub(first));
            let expected = if at.iter().all(|n| *n < 32) { coarse.start.probe[at[0] * 32 + at[1]].norm() } else { 0.0 };
            assert!((v.norm() - expected).abs() <= 1e-12 * expected, "{i}");
        }
    }
}

/// Positions that were reported wrong come back.
#[test]
fn positions_come_back() {
    for method in [PositionMethod::Annealing, PositionMethod::Gradient] {
        let config = resampled([2, 2], EngineConfig::new(EngineName::Epie, 20), |m| (m.frames, m.pattern.jitter) = (49, 0.0));
        moved_views_come_back(config, method);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let scan = made(|m| m.resample = Pair::Same(0));
    let config = Config { resample: Pair::Each([2, 9]), ..input(scan, EngineConfig::new(EngineName::Dm, 1)) };
    let faults = config.check();
    let paths: Vec<&str> = faults.iter().map(|f| f.path.as_str()).collect();
    assert_eq!(paths, ["resample", "scan[0].simulate.resample"]);
    assert!(faults.iter().all(|f| f.allowed.as_ref().is_some_and(|a| a.starts_with("1 (off) to 8"))), "{faults:?}");
}
