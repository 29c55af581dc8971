//! A scan: diffraction frames with where and how they were taken. Every reader gives one, the simulation makes one, and
//! the engines are set up from one or several.

use num_complex::Complex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zellige_engine::error::Result;
use zellige_engine::links::Links;
use zellige_engine::parallel::{chunks, chunks_mut, each};

/// Planck's constant times the speed of light, keV m: wavelength times energy (CODATA 2018).
pub const HC: f64 = 1.239_841_984_332_002_6e-9;

/// Frames, positions and geometry of one scan.
pub struct Scan {
    /// Name, for messages and outputs.
    pub name: String,
    /// Photon counts, centred: the optical axis is at pixel `[ny / 2, nx / 2]`.
    pub frames: Frames,
    /// Rows and columns of a frame.
    pub shape: [usize; 2],
    /// Mask of the pixels that count.
    pub mask: Mask,
    /// Positions of the probe, metres, `[y, x]`: a larger coordinate takes a patch further down and right of the object.
    pub positions: Vec<[f64; 2]>,
    /// Wavelength, geometry of the detector and way of propagation.
    pub beam: Beam,
    /// Probe to start from, if the file holds one: modes, then rows, then columns.
    pub probe: Option<Image>,
    /// Object to start from, if the file holds one.
    pub object: Option<Image>,
    /// Truth of a simulated scan.
    pub truth: Option<Truth>,
    /// Observations about the data that the user should know of.
    pub notes: Vec<String>,
}

/// Wavelength, distances and pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Beam {
    /// Wavelength, metres.
    pub wavelength: f64,
    /// Sample to detector (far field), or the effective propagation distance (near field), metres.
    pub distance: f64,
    /// Pixel of the detector `[y, x]`, metres; in the near field that of the sample plane as well.
    pub pixel: [f64; 2],
    /// Far or near field.
    pub propagation: Propagation,
}

impl Beam {
    /// Photon energy, keV.
    pub fn energy(&self) -> f64 {
        HC / self.wavelength
    }

    /// Pixel of probe and object `[y, x]`, metres, for frames of `shape` rows and columns: in the far field the detector's
    /// aperture sets it, in the near field it is that of the detector.
    pub fn resolution(&self, shape: [usize; 2]) -> [f64; 2] {
        match self.propagation {
            Propagation::Far => [0, 1].map(|d| self.wavelength * self.distance / (shape[d] as f64 * self.pixel[d])),
            Propagation::Near => self.pixel,
        }
    }

    /// Beam on a detector whose pixels are divided into `bin` rows and columns each.
    #[must_use]
    pub fn parted(&self, bin: [usize; 2]) -> Self {
        Self { pixel: [0, 1].map(|d| self.pixel[d] / bin[d] as f64), ..*self }
    }
}

/// Propagation from the sample to the detector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(extend("x-synonyms" = { "fraunhofer": "far", "farfield": "far", "fresnel": "near", "nearfield": "near" }))]
pub enum Propagation {
    /// Fraunhofer diffraction.
    #[default]
    Far,
    /// Fresnel diffraction.
    Near,
}

/// Photon counts of all frames, `[n][ny][nx]`.
pub enum Frames {
    /// Counts as detectors write them.
    Counts(Vec<u16>),
    /// Scaled or summed.
    Real(Vec<f32>),
    /// Frames left in the file and read in blocks.
    Stored(Box<dyn Source>),
    /// Number of frames that are not read or made yet: a plan needs no more.
    Planned(usize),
}

impl Frames {
    /// Takes pixels that are not numbers for 0 and masks them where they are.
    pub(crate) fn mask_odd(&mut self, mask: &mut Mask, pixels: usize) {
        let Self::Real(counts) = self else { return };
        if counts.iter().all(|v| !v.is_nan()) {
            return;
        }
        let valid = |i: usize| match &*mask {
            Mask::All => true,
            Mask::Common(m) => m[i % pixels],
            Mask::Each(m) => m[i],
        };
        let each = counts.iter().enumerate().map(|(i, v)| valid(i) && !v.is_nan()).collect();
        counts.iter_mut().filter(|v| v.is_nan()).for_each(|v| *v = 0.0);
        *mask = Mask::Each(each);
    }

    /// Number of frames of `pixels` pixels.
    pub fn len(&self, pixels: usize) -> usize {
        match self {
            Self::Counts(v) => v.len() / pixels.max(1),
            Self::Real(v) => v.len() / pixels.max(1),
            Self::Stored(source) => source.len(),
            Self::Planned(count) => *count,
        }
    }

    /// Frames from `first` on, as many as `into` holds.
    ///
    /// # Panics
    /// If there are fewer, or the frames were only planned.
    pub fn read(&mut self, first: usize, pixels: usize, into: &mut [f32]) -> Result<()> {
        let begin = first * pixels;
        match self {
            Self::Counts(v) => {
                let from = &v[begin..begin + into.len()];
                each((chunks_mut(into, 1 << 16), chunks(from, 1 << 16)), |_, (into, from)| {
                    into.iter_mut().zip(from).for_each(|(a, b)| *a = f32::from(*b));
                });
                Ok(())
            }
            Self::Real(v) => {
                into.copy_from_slice(&v[begin..begin + into.len()]);
                Ok(())
            }
            Self::Stored(source) => source.read(first, into),
            Self::Planned(_) => unreachable!("a plan reads no frames"),
        }
    }
}

/// Frames that are read in blocks.
pub trait Source: Send {
    /// Number of frames.
    fn len(&self) -> usize;
    /// Returns true if there are no frames.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Frames from `first` on, as many as `into` holds; not a number where a pixel does not count in its frame.
    fn read(&mut self, first: usize, into: &mut [f32]) -> Result<()>;
    /// Observations about the frames that all parts of a run have read so far, which the user should know of.
    fn notes(&self, links: &Links) -> Result<Vec<String>> {
        let _ = links;
        Ok(Vec::new())
    }
}

/// Frames of which only some are there.
pub(crate) struct SomeFrames {
    /// Number of all.
    pub(crate) all: usize,
    /// Number of the first that is there.
    pub(crate) first: usize,
    /// Pixels of a frame.
    pub(crate) pixels: usize,
    /// Those that are there.
    pub(crate) frames: Frames,
}

impl Source for SomeFrames {
    fn len(&self) -> usize {
        self.all
    }

    fn read(&mut self, first: usize, into: &mut [f32]) -> Result<()> {
        self.frames.read(first - self.first, self.pixels, into)
    }
}

/// Valid pixels, centred as the frames are.
#[derive(Debug, Clone)]
pub enum Mask {
    /// No mask: every pixel counts.
    All,
    /// One for all frames, `[ny][nx]`.
    Common(Vec<bool>),
    /// One a frame, `[n][ny][nx]`.
    Each(Vec<bool>),
}

/// A stack of complex images. A probe's origin is such that its pixel `[rows / 2, columns / 2]` is at zero, and a view of the
/// object is the patch whose pixel `[rows / 2, columns / 2]` is at the probe's position.
#[derive(Debug, Clone, Default)]
pub struct Image {
    /// Layers (modes), rows, columns.
    pub shape: [usize; 3],
    /// Values in C order.
    pub values: Vec<Complex<f32>>,
    /// Coordinates of pixel `[0, 0]`, metres `[y, x]`.
    pub origin: [f64; 2],
    /// Size of a pixel, metres `[y, x]`.
    pub spacing: [f64; 2],
}

/// Object, probe and positions that a simulated scan was made from.
#[derive(Debug, Clone)]
pub struct Truth {
    /// Probe modes.
    pub probe: Image,
    /// Object.
    pub object: Image,
    /// Positions that were used, where the scan reports others (position errors); metres.
    pub positions: Vec<[f64; 2]>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0.155 nm over 2 m on 192 rows of 75 um and 256 columns of 50 um: `lambda z/(N d)` is 3.1e-10 over 14.4 mm and 12.8 mm. In
    /// the near field pixels are the detector's. 12.398 42 keV have a wavelength of 0.1 nm.
    #[test]
    fn pixels_of_the_sample_are_those_of_each_axis() {
        let beam = Beam { wavelength: 1.55e-10, distance: 2.0, pixel: [75e-6, 50e-6], propagation: Propagation::Far };
        let [y, x] = beam.resolution([192, 256]);
        assert!((y / 2.152_777_8e-8 - 1.0).abs() < 1e-7 && (x / 2.421_875e-8 - 1.0).abs() < 1e-12, "{y:e} {x:e}");
        let near = Beam { propagation: Propagation::Near, ..beam };
        assert_eq!(near.resolution([192, 256]), [75e-6, 50e-6]);
        assert!((Beam { wavelength: 1e-10, ..beam }.energy() / 12.398_42 - 1.0).abs() < 1e-6);
    }
}
