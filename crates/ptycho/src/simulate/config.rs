//! The table of a simulated scan.

use std::path::PathBuf;

use num_complex::Complex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::illumination::IlluminationConfig;
use crate::scan::{Beam, HC, Propagation};

/// One number for both axes, or one each: rows (y) first.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Pair<T> {
    /// One number for both axes.
    Same(T),
    /// Rows (y), columns (x).
    Each([T; 2]),
}

impl<T: Copy> Pair<T> {
    /// Rows (y), columns (x).
    pub fn both(self) -> [T; 2] {
        match self {
            Self::Same(v) => [v; 2],
            Self::Each(v) => v,
        }
    }
}

/// A simulated scan: what a detector would have counted, and the truth behind it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SimulateConfig {
    /// Number of frames.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub frames: usize,
    /// Pixels of a frame (rows, columns): even, 8 to 4096.
    pub size: Pair<usize>,
    /// Photon energy, keV.
    pub energy: f64,
    /// Distance from sample to detector, m (near field: effective propagation distance).
    pub distance: f64,
    /// Detector pixel, m; in the near field also the sample's.
    pub pixel: Pair<f64>,
    /// Far or near field.
    pub propagation: Propagation,
    /// Wave pixels per detector pixel along rows and columns, 1 to 8 (1).
    #[serde(skip_serializing_if = "crate::config::is_single")]
    pub resample: Pair<usize>,
    /// Photons in a frame without a sample.
    pub photons: f64,
    /// Poisson noise; without it frames are real numbers.
    pub noise: bool,
    /// Illumination.
    pub illumination: IlluminationConfig,
    /// The sample.
    pub object: ObjectConfig,
    /// Scan pattern.
    pub pattern: PatternConfig,
    /// R.m.s. error of reported positions along each axis, m.
    pub position_error: f64,
    /// R.m.s. relative fluctuation of the intensity between frames.
    pub fluctuation: f64,
    /// Detector effects.
    pub detector: DetectorConfig,
    /// Offset of the run's seed, so that scans differ.
    pub seed: u64,
}

impl Default for SimulateConfig {
    fn default() -> Self {
        Self {
            frames: 100,
            size: Pair::Same(128),
            energy: 7.2,
            distance: 7.19,
            pixel: Pair::Same(172e-6),
            propagation: Propagation::Far,
            resample: Pair::Same(1),
            photons: 1e7,
            noise: true,
            illumination: IlluminationConfig::default(),
            object: ObjectConfig::default(),
            pattern: PatternConfig::default(),
            position_error: 0.0,
            fluctuation: 0.0,
            detector: DetectorConfig::default(),
            seed: 0,
        }
    }
}

impl SimulateConfig {
    /// Wavelength, geometry and way of propagation.
    pub fn beam(&self) -> Beam {
        let (pixel, propagation) = (self.pixel.both(), self.propagation);
        Beam { wavelength: HC / self.energy, distance: self.distance, pixel, propagation }
    }

    /// Bytes that making the scan takes at the most beside its counts, where its sample has about so many pixels.
    pub(crate) fn memory(&self, sample: u64, threads: u64) -> u64 {
        super::light::memory(self, sample, threads)
    }

    /// The wave at the sample as its optics would have it, of unit power, for waves of `shape` with `beam`.
    pub(crate) fn nominal(&self, beam: &Beam, shape: [usize; 2]) -> Vec<Complex<f64>> {
        let (size, bin) = (self.size.both(), self.resample.both());
        let own = self.beam().parted(bin);
        self.illumination.nominal((&own, [0, 1].map(|d| size[d] * bin[d])), beam, shape)
    }
}

/// The sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ObjectConfig {
    /// Content of the sample.
    pub kind: ObjectKind,
    /// Phase shift where thickest, rad; negative advances the wave.
    pub phase: f64,
    /// Amplitude absorbed where thickest.
    #[schemars(range(min = 0.0), extend("exclusiveMaximum" = 1.0))]
    pub absorption: f64,
    /// PNG of the thickness for the phase, black is none, for `kind = "image"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<PathBuf>,
    /// PNG of the thickness for the absorption; default `image`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absorption_image: Option<PathBuf>,
}

impl Default for ObjectConfig {
    fn default() -> Self {
        Self { kind: ObjectKind::Cells, phase: 1.5, absorption: 0.3, image: None, absorption_image: None }
    }
}

/// Content of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ObjectKind {
    /// Soft discs, a ring and bars on a rough background.
    Cells,
    /// Siemens star.
    Star,
    /// A picture.
    Image,
}

/// Scan pattern.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PatternConfig {
    /// Path of the scan.
    pub kind: PatternKind,
    /// Distance of neighbouring positions, m; default 0.12 of the field of view.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<f64>,
    /// Random displacement along each axis, uniform over this part of the step.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub jitter: f64,
    /// Rounds positions to whole pixels.
    pub round: bool,
}

impl Default for PatternConfig {
    fn default() -> Self {
        Self { kind: PatternKind::Raster, step: None, jitter: 0.3, round: true }
    }
}

/// Path of the scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PatternKind {
    /// Raster.
    Raster,
    /// Fermat's spiral.
    Spiral,
    /// Concentric rings.
    Round,
}

/// Detector effects.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DetectorConfig {
    /// Diameter of a round beam stop in the middle, pixels; masked.
    pub beamstop: f64,
    /// Fraction of dead pixels; masked.
    pub dead: f64,
    /// Mean background of a pixel, photons.
    pub background: f64,
    /// R.m.s. point spread, pixels.
    pub spread: f64,
}
