//! Scans made by the program.

use num_complex::Complex;
use std::path::Path;

use zellige_engine::device::Cpu;
use zellige_ptycho::scan::{Frames, Mask, Propagation};
use zellige_ptycho::simulate::{self, Aperture, Optic, Pair, PatternConfig, PatternKind, SimulateConfig};

fn make(config: &SimulateConfig, seed: u64) -> zellige_ptycho::Scan {
    let faults = config.check();
    assert!(faults.is_empty(), "{faults:?}");
    simulate::simulate(config, "test", Path::new("."), seed).unwrap()
}

fn real(frames: &Frames) -> Vec<f32> {
    match frames {
        Frames::Counts(v) => v.iter().map(|c| f32::from(*c)).collect(),
        Frames::Real(v) => v.clone(),
        Frames::Stored(_) | Frames::Planned(_) => panic!("a simulation is in memory"),
    }
}

fn small() -> SimulateConfig {
    SimulateConfig { frames: 12, size: Pair::Each([24, 32]), ..SimulateConfig::default() }
}

/// The sum over the detector is the light behind the sample (Parseval), frame by frame: round-off of f32 amplitudes.
#[test]
fn energy_is_kept_on_the_way_to_the_detector() {
    for propagation in [Propagation::Far, Propagation::Near] {
        for blur in [0.0, 2e-7] {
            let mut config = SimulateConfig { noise: false, propagation, ..small() };
            if propagation == Propagation::Near {
                config.illumination.optic = Optic::Diffuser;
                config.pixel = Pair::Same(1e-7);
                config.distance = 1e-3;
            }
            config.illumination.blur = Pair::Same(blur);
            config.illumination.modes = if blur > 0.0 { 3 } else { 1 };
            let scan = make(&config, 3);
            let (truth, values) = (scan.truth.as_ref().unwrap(), real(&scan.frames));
            let [modes, rows, columns] = truth.probe.shape;
            assert_eq!((modes, rows, columns), (config.illumination.modes, 24, 32));
            let light: f64 = truth.probe.values.iter().map(|v| f64::from(v.norm_sqr())).sum();
            assert!((light / config.photons - 1.0).abs() < 1e-5, "{light}");
            for (j, frame) in values.chunks_exact(rows * columns).enumerate() {
                let start = [0, 1].map(|d| {
                    let at = (truth.positions[j][d] - truth.object.origin[d]) / truth.object.spacing[d];
                    at.round() as usize - scan.shape[d] / 2
                });
                let mut behind = 0.0;
                for (i, p) in truth.probe.values.iter().enumerate() {
                    let (row, column) = (i / columns % rows, i % columns);
                    let o = truth.object.values[(start[0] + row) * truth.object.shape[2] + start[1] + column];
                    behind += f64::from((p * o).norm_sqr());
                }
                let counted: f64 = frame.iter().map(|v| f64::from(*v)).sum();
                assert!((counted / behind - 1.0).abs() < 1e-5, "frame {j}: {counted} for {behind}");
            }
        }
    }
}

/// The definition, by a plain sum over the patch, at some pixels of a frame: 1e-5 of the brightest, as amplitudes are single.
#[test]
fn a_frame_is_the_transform_of_probe_times_sample() {
    let config = SimulateConfig { noise: false, ..small() };
    let scan = make(&config, 4);
    let (truth, values) = (scan.truth.as_ref().unwrap(), real(&scan.frames));
    let [rows, columns] = scan.shape;
    let lz = scan.beam.wavelength * scan.beam.distance;
    let frame = &values[5 * rows * columns..6 * rows * columns];
    let brightest = frame.iter().copied().fold(0.0, f32::max);
    let start =
        [0, 1].map(|d| ((truth.positions[5][d] - truth.object.origin[d]) / truth.object.spacing[d]).round() as usize - scan.shape[d] / 2);
    for (v, w) in [(12, 16), (13, 16), (10, 21), (0, 0), (23, 31)] {
        let mut sum = Complex::new(0.0, 0.0);
        for (r, c) in (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c))) {
            let y = (r as f64 - 12.0) * truth.probe.spacing[0];
            let x = (c as f64 - 16.0) * truth.probe.spacing[1];
            let wave = truth.probe.values[r * columns + c] * truth.object.values[(start[0] + r) * truth.object.shape[2] + start[1] + c];
            let turns = (r as f64 - 12.0) * (f64::from(v) - 12.0) / 24.0 + (c as f64 - 16.0) * (f64::from(w) - 16.0) / 32.0;
            let phase = std::f64::consts::PI * (x * x + y * y) / lz - std::f64::consts::TAU * turns;
            sum += Complex::new(f64::from(wave.re), f64::from(wave.im)) * Complex::from_polar(1.0, phase);
        }
        let expected = sum.norm_sqr() / (rows * columns) as f64;
        let found = f64::from(frame[v as usize * columns + w as usize]);
        assert!((found - expected).abs() < 1e-5 * f64::from(brightest), "[{v}, {w}]: {found}, expected {expected}");
    }
}

/// Positions between pixels: a shift of everything by a fraction leaves the frame of a sample without structure as it is, and the
/// sum over the detector of any.
#[test]
fn positions_between_pixels_move_the_probe() {
    let mut config = SimulateConfig { noise: false, ..small() };
    config.object.phase = 0.0;
    config.object.absorption = 0.0;
    config.pattern = PatternConfig { round: false, ..PatternConfig::default() };
    let moved = real(&make(&config, 5).frames);
    config.pattern.round = true;
    let whole = real(&make(&config, 5).frames);
    let brightest = whole.iter().copied().fold(0.0, f32::max);
    // The quadratic phase does not move with the probe: fractions of a pixel change the frame by a shift of fractions of a pixel.
    let worst = moved.iter().zip(&whole).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst > 0.0 && worst < 0.2 * brightest, "{worst} of {brightest}");
    for (a, b) in moved.chunks_exact(24 * 32).zip(whole.chunks_exact(24 * 32)) {
        assert!((a.iter().sum::<f32>() / b.iter().sum::<f32>() - 1.0).abs() < 1e-4);
    }
}

#[test]
fn the_same_seed_gives_the_same_scan_on_any_number_of_threads() {
    let config = SimulateConfig { frames: 30, size: Pair::Same(32), position_error: 1e-7, fluctuation: 0.05, ..SimulateConfig::default() };
    let on = |threads: usize, seed| {
        let scan = Cpu::new(threads).unwrap().install(|| make(&config, seed));
        (real(&scan.frames), scan.truth.unwrap().positions, scan.positions)
    };
    let (one, three, other) = (on(1, 7), on(3, 7), on(1, 8));
    assert_eq!(one, three);
    assert!(one.0 != other.0 && one.1 != one.2);
    let errors: Vec<f64> = one.1.iter().zip(&one.2).flat_map(|(a, b)| [a[0] - b[0], a[1] - b[1]]).collect();
    let rms = (errors.iter().map(|e| e * e).sum::<f64>() / errors.len() as f64).sqrt();
    // 60 numbers: 9 % for a standard deviation, 4 of them; rounding to pixels of 0.2 micrometres adds 0.065 micrometres.
    assert!((0.6e-7..1.7e-7).contains(&rms), "{rms:e}");
}

/// Means of many counts agree with the frames without noise: chi squared per pixel is 1 within 4 deviations.
#[test]
fn counts_scatter_as_photons_do() {
    let mut config = SimulateConfig { photons: 3e5, ..small() };
    config.detector.background = 2.0;
    let counts = real(&make(&config, 9).frames);
    config.noise = false;
    let means = real(&make(&config, 9).frames);
    assert!(counts.iter().all(|c| c.fract() == 0.0));
    let chi2: f64 = counts.iter().zip(&means).map(|(c, m)| f64::from((c - m).powi(2) / m)).sum::<f64>() / counts.len() as f64;
    // Variance of a term: 2 + 1 / mean, the mean at least 2.
    assert!((chi2 - 1.0).abs() < 4.0 * (2.5 / counts.len() as f64).sqrt(), "{chi2}");
}

#[test]
fn bright_frames_are_kept_as_real_numbers() {
    let scan = make(&SimulateConfig { photons: 1e9, ..small() }, 1);
    assert!(matches!(scan.frames, Frames::Real(_)));
    let scan = make(&SimulateConfig { photons: 1e5, ..small() }, 1);
    assert!(matches!(scan.frames, Frames::Counts(_)));
}

#[test]
fn masked_pixels_are_dark() {
    let mut config = small();
    config.detector.beamstop = 6.0;
    config.detector.dead = 0.1;
    let scan = make(&config, 2);
    let Mask::Common(valid) = &scan.mask else { panic!("a mask was asked for") };
    let dark = valid.iter().filter(|v| !**v).count() as f64 / valid.len() as f64;
    assert!((0.06..0.25).contains(&dark) && !valid[12 * 32 + 16]);
    for frame in real(&scan.frames).chunks_exact(valid.len()) {
        assert!(frame.iter().zip(valid).all(|(c, v)| *v || *c == 0.0));
    }
}

/// Checks that every optic and aperture makes a probe that stands in the middle and is dark at the rim of the frame.
#[test]
fn probes_stand_in_the_middle() {
    for (optic, aperture) in [
        (Optic::Lens, Aperture::Round),
        (Optic::Lens, Aperture::Annular),
        (Optic::Lens, Aperture::Square),
        (Optic::Lens, Aperture::Gaussian),
        (Optic::Pinhole, Aperture::Round),
        (Optic::Pinhole, Aperture::Gaussian),
        (Optic::Diffuser, Aperture::Round),
    ] {
        let mut config = SimulateConfig { size: Pair::Same(64), ..SimulateConfig::default() };
        (config.illumination.optic, config.illumination.aperture, config.illumination.inner) = (optic, aperture, 0.4);
        let probe = config.illumination.modes(&config.beam(), [64, 64], 1e6, 1);
        let power = |i: usize| f64::from(probe.values[i].norm_sqr());
        let total: f64 = (0..64 * 64).map(power).sum();
        let centre = [0, 1].map(|d| (0..64 * 64).map(|i| power(i) * [i / 64, i % 64][d] as f64).sum::<f64>() / total);
        assert!(centre.iter().all(|c| (c - 32.0).abs() < 0.6), "{optic:?} {aperture:?}: {centre:?}");
        let rim: f64 = (0..64 * 64).filter(|i| i / 64 < 2 || i / 64 > 61 || i % 64 < 2 || i % 64 > 61).map(power).sum();
        assert!((total / 1e6 - 1.0).abs() < 1e-4 && rim < 0.02 * total, "{optic:?} {aperture:?}: {rim} of {total}");
        assert!((probe.origin[0] + 32.0 * probe.spacing[0]).abs() < 1e-12);
    }
}

#[test]
fn every_pattern_covers_its_sample() {
    for kind in [PatternKind::Raster, PatternKind::Spiral, PatternKind::Round] {
        let config = SimulateConfig { frames: 37, pattern: PatternConfig { kind, ..PatternConfig::default() }, ..small() };
        let scan = make(&config, 2);
        assert_eq!((scan.positions.len(), scan.frames.len(24 * 32)), (37, 37));
    }
}

#[test]
fn what_makes_no_sense_is_listed() {
    let mut config = SimulateConfig { frames: 0, size: Pair::Same(33), energy: -1.0, ..SimulateConfig::default() };
    config.illumination.modes = 4;
    config.object.kind = simulate::ObjectKind::Image;
    let found: Vec<String> = config.check().iter().map(|p| p.path.clone()).collect();
    assert_eq!(found, ["frames", "size", "energy", "object.image", "illumination.modes"]);
}
