//! Scans made by the program, so that the first run needs no data and every engine has a truth to be held against.
//!
//! A frame is the photons behind the exit waves of all modes: `I(q) = sum_m |F(P_m(x) O(x + X))(q)|^2`, unitary transform, with the
//! quadratic phase of the sample plane in the far field and Fresnel's kernel in the near field.

mod check;
mod coherence;
mod config;
mod illumination;
mod light;
mod noise;
mod object;
mod pattern;
mod zernike;

use std::ops::Range;
use std::path::Path;

use num_complex::Complex;
use zellige_engine::device::host_must_hold;
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::parallel::{items, map};

pub use config::{DetectorConfig, ObjectConfig, ObjectKind, Pair, PatternConfig, PatternKind, SimulateConfig};
pub use illumination::{Aperture, IlluminationConfig, Optic};
pub use zernike::{AberrationConfig, AberrationKind};

use crate::data::check_geometry;
use crate::scan::{Frames, Image, Mask, Scan, SomeFrames, Truth};

/// Pixels of the sample beyond the outermost frames.
const MARGIN: usize = 2;

/// The scan of a table that was found sound. Pictures are looked for in `folder`; the same `seed` gives the same scan on any number
/// of threads.
pub fn simulate(config: &SimulateConfig, name: &str, folder: &Path, seed: u64) -> Result<Scan> {
    simulate_some(config, name, folder, seed, 0..config.frames)
}

/// Simulates a scan as [`simulate`] does, with the frames `some` alone.
pub(crate) fn simulate_some(config: &SimulateConfig, name: &str, folder: &Path, seed: u64, some: Range<usize>) -> Result<Scan> {
    let seed = seed.wrapping_add(config.seed);
    let (size, bin) = (config.size.both(), config.resample.both());
    // Sampling of the waves.
    let (beam, shape) = (config.beam().parted(bin), [0, 1].map(|d| size[d] * bin[d]));
    let spacing = beam.resolution(shape);
    let probe = config.illumination.modes(&beam, shape, config.photons, seed);
    let (positions, real) = pattern::both(config, spacing, seed);
    let (grid, origin) = sample(&real, shape, spacing)?;
    let sample = object::transmission(&config.object, grid, shape, folder, seed)?;
    let mask = light::mask(&config.detector, size, seed);
    let view = light::FrameGeometry { config, beam, shape, bin, spacing, probe: &probe, sample: &sample, grid, origin, mask: &mask, seed };
    let (all, first) = (real.len(), some.start);
    let mut frames = light::frames(&view, &real, some.clone());
    if some.len() < all {
        frames = Frames::Stored(Box::new(SomeFrames { all, first, pixels: size[0] * size[1], frames }));
    }
    let values = map(items(&sample), |_, v| Complex::new(v.re as f32, v.im as f32));
    let object = Image { shape: [1, grid[0], grid[1]], values, origin, spacing };
    let truth = Some(Truth { probe, object, positions: real });
    let notes = noted(config, name, &positions)?;
    let beam = config.beam();
    Ok(Scan { name: name.into(), frames, shape: size, mask, positions, beam, probe: None, object: None, truth, notes })
}

/// Simulates as much as a plan needs: all but the frames, with the checks that this allows.
pub fn planned(config: &SimulateConfig, name: &str, folder: &Path, seed: u64) -> Result<Scan> {
    let (size, bin) = (config.size.both(), config.resample.both());
    let shape = [0, 1].map(|d| size[d] * bin[d]);
    let spacing = config.beam().parted(bin).resolution(shape);
    let (positions, real) = pattern::both(config, spacing, seed.wrapping_add(config.seed));
    sample(&real, shape, spacing)?;
    for picture in [&config.object.image, &config.object.absorption_image].into_iter().flatten() {
        let path = folder.join(picture);
        std::fs::metadata(&path).map_err(|e| Error::file("read", &path, e))?;
    }
    let notes = noted(config, name, &positions)?;
    let (frames, beam) = (Frames::Planned(positions.len()), config.beam());
    Ok(Scan { name: name.into(), frames, shape: size, mask: Mask::All, positions, beam, probe: None, object: None, truth: None, notes })
}

/// Pixels of a sample that the frames do not look beyond, and the position of the first; refused where no memory of the host
/// holds it.
fn sample(positions: &[[f64; 2]], shape: [usize; 2], spacing: [f64; 2]) -> Result<([usize; 2], [f64; 2])> {
    let edge = |d: usize, f: fn(f64, f64) -> f64| positions.iter().map(|p| p[d]).reduce(f).unwrap_or(0.0);
    let (low, high) = ([0, 1].map(|d| edge(d, f64::min)), [0, 1].map(|d| edge(d, f64::max)));
    let grid = [0, 1].map(|d| ((high[d] - low[d]) / spacing[d]).ceil() as usize + shape[d] + 2 * MARGIN);
    let requested = (grid[0] as u64).saturating_mul(grid[1] as u64).saturating_mul(size_of::<Complex<f64>>() as u64);
    host_must_hold(
        requested,
        format!("a sample of {} x {} pixels of {:.3e} m (is `pattern.step` in metres?)", grid[0], grid[1], spacing[0]),
    )?;
    Ok((grid, [0, 1].map(|d| low[d] - (MARGIN + shape[d] / 2) as f64 * spacing[d])))
}

/// Warnings about its geometry.
fn noted(config: &SimulateConfig, name: &str, positions: &[[f64; 2]]) -> Result<Vec<String>> {
    check_geometry(&config.beam(), config.size.both(), positions).map_err(|message| crate::setup::of_named(name, Problem::new("", message)))
}

impl SimulateConfig {
    /// A scan for benchmarks and tests: `frames` frames of `size` squared pixels with `modes` modes and noise.
    pub fn case(frames: usize, size: usize, modes: usize) -> Self {
        let mut config = Self { frames, size: Pair::Same(size), ..Self::default() };
        if modes > 1 {
            // A source that makes the second mode about as strong as a fifth of the first.
            let spacing = config.beam().resolution([size; 2])[0];
            config.illumination.blur = Pair::Same(2.0 * spacing);
            config.illumination.modes = modes;
        }
        config
    }
}
