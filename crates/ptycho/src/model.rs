//! Data of the engines: flat arrays, no object per view, so that a million views cost nothing to set up.
//!
//! | array | shape | what |
//! |---|---|---|
//! | `mag` | `[n][my][mx]` | square roots of the counts, in the order of the transform (pixel 0 is the optical axis); -1 where masked |
//! | exit waves | `[n][K][ny][nx]` | `K = P O` modes, `k = p O + o`; kept by the stages |
//! | `probe` | `[sets][P][ny][nx]` | |
//! | `object` | storages of `[O][H][W]` one behind the other | each with its own `H`, `W`, offset |
//! | `views` | `[n]` | which probe and storage, and where: rows and columns of the storage |
//!
//! A part of a run has moduli and exit waves of its own views alone ([`Share`]); all else is whole on every part.
//!
//! A frame that was counted has `my = ny / by`, `mx = nx / bx` pixels: where the model is sampled more finely than the detector, a
//! counted pixel is the bin of `by x bx` pixels of the waves that begins at `[by y, bx x]`, in the order of the transform as well;
//! the tilt that puts the middle of bin 0 on the optical axis is part of the phase below.
//!
//! The quadratic phase of the sample plane is multiplied into probe and exit waves when they are loaded and removed when they
//! go out ([`crate::propagation`]), so that the propagation to a far detector is a bare unitary transform in between.

use std::ops::Range;

use num_complex::Complex;
use zellige_device_macro::device;
use zellige_engine::error::Result;
use zellige_engine::parallel::{chunks, map};

use crate::share::Share;

/// Masked pixels of `mag`.
pub const MASKED: f32 = -1.0;

/// Position of a view, and the probe and storage that it sees.
#[device]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct View {
    /// Number of the probe.
    pub probe: u32,
    /// Number of the object's storage.
    pub object: u32,
    /// First row of the patch.
    pub row: i32,
    /// First column of the patch.
    pub col: i32,
}

/// One object: `modes` layers of `shape`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Storage {
    /// Rows and columns.
    pub shape: [usize; 2],
    /// Offset of its first value in the array of all storages.
    pub offset: usize,
    /// Coordinates of pixel `[0, 0]`, metres `[y, x]`.
    pub origin: [f64; 2],
}

impl Storage {
    /// Values of one layer.
    pub fn layer(&self) -> usize {
        self.shape[0] * self.shape[1]
    }
}

/// Propagation from the sample to the detector.
#[derive(Debug, Clone, PartialEq)]
pub enum Transfer {
    /// A unitary transform.
    Far,
    /// A transform, times this kernel `[ny][nx]` of modulus 1 in the order of the transform, and a transform back. `mag` is
    /// in the order of the sample plane then: pixel 0 is the corner.
    Near(Vec<Complex<f64>>),
}

/// Sums of the counts that count.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Power {
    /// Sum over all frames.
    pub total: f64,
    /// Sum over the brightest frame.
    pub max: f64,
    /// A pixel and frame.
    pub mean: f64,
    /// Part of the pixels of all frames that is masked.
    pub masked: f64,
}

impl Power {
    /// Computes the sums of frames of `pixels` pixels each.
    pub fn of(mag: &[f32], pixels: usize) -> Self {
        Self::of_frames(&frames(mag, pixels), pixels)
    }

    /// Computes the sums of the frames of all parts from the moduli of own ones.
    pub fn of_parts(mag: &[f32], pixels: usize, share: &Share) -> Result<Self> {
        Ok(Self::of_frames(&share.gathered(frames(mag, pixels))?, pixels))
    }

    fn of_frames(frames: &[[f64; 2]], pixels: usize) -> Self {
        let mut power = Self::default();
        let mut masked = 0.0;
        // In their order.
        for [sum, without] in frames {
            power.total += sum;
            power.max = power.max.max(*sum);
            masked += without;
        }
        let all = (frames.len() * pixels).max(1) as f64;
        (power.mean, power.masked) = (power.total / all, masked / all);
        power
    }
}

/// Counts of each frame, and how many of its pixels are masked.
fn frames(mag: &[f32], pixels: usize) -> Vec<[f64; 2]> {
    map(chunks(mag, pixels), |_, m| {
        let counts = m.iter().filter(|m| **m >= 0.0).map(|m| f64::from(*m).powi(2)).sum::<f64>();
        [counts, m.iter().filter(|m| **m < 0.0).count() as f64]
    })
}

/// Probe and object, as the engines hold them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct State {
    /// `[sets][P][ny][nx]`.
    pub probe: Vec<Complex<f64>>,
    /// All storages.
    pub object: Vec<Complex<f64>>,
}

/// The problem.
#[derive(Debug, Clone)]
pub struct Model {
    /// Rows and columns of the waves of a frame.
    pub frame: [usize; 2],
    /// Rows and columns of the waves that are counted as one pixel; they divide `frame`.
    pub bin: [usize; 2],
    /// Modes of the probe (P) and of the object (O).
    pub modes: [usize; 2],
    /// Number of probes.
    pub probes: usize,
    /// The objects.
    pub storages: Vec<Storage>,
    /// Views: probe, object and position of each.
    pub views: Vec<View>,
    /// Shows a view the probe shifted by the remainder of its whole pixels, rather than at the nearest pixel.
    pub subpixel: bool,
    /// Sub-pixel remainders of the positions of `views`, `[y, x]` in pixels, each -0.5 to 0.5: the position of the probe in the
    /// frame of a view with `subpixel`, and kept for position refinement without.
    pub shifts: Vec<[f64; 2]>,
    /// Square roots of the counts of own views.
    pub mag: Vec<f32>,
    /// Own views of this part of a run.
    pub share: Share,
    /// Sample to detector.
    pub transfer: Transfer,
    /// Pixel of the sample plane `[y, x]`, metres.
    pub pixel: [f64; 2],
    /// Phase of the sample plane, `[ny][nx]`: probes and exit waves are held times this.
    pub filter: Vec<Complex<f64>>,
    /// Sums of the counts.
    pub power: Power,
    /// Probe and object to start from.
    pub start: State,
    /// Description of the origin of each probe.
    pub begins: Vec<String>,
    /// Name of each scan and its first view.
    pub scans: Vec<(String, usize)>,
}

impl Model {
    /// Numbers of the own views of this part of a run.
    pub fn own(&self) -> Range<usize> {
        self.share.own(self.views.len())
    }

    /// Moduli of an own view.
    pub fn moduli(&self, j: usize) -> &[f32] {
        let (at, pixels) = (j - self.own().start, self.counted());
        &self.mag[at * pixels..(at + 1) * pixels]
    }

    /// Pixels of the waves of a frame.
    pub fn pixels(&self) -> usize {
        self.frame[0] * self.frame[1]
    }

    /// Rows and columns of a frame as it was counted.
    pub fn detector(&self) -> [usize; 2] {
        [0, 1].map(|d| self.frame[d] / self.bin[d])
    }

    /// Pixels of it.
    pub fn counted(&self) -> usize {
        self.detector().iter().product()
    }

    /// Modes of an exit wave.
    pub fn exits(&self) -> usize {
        self.modes[0] * self.modes[1]
    }

    /// Values of all storages.
    pub fn object_len(&self) -> usize {
        self.storages.iter().map(|s| self.modes[1] * s.layer()).sum()
    }

    /// Values of all probes.
    pub fn probe_len(&self) -> usize {
        self.probes * self.modes[0] * self.pixels()
    }

    /// Views of each probe.
    pub fn views_of_probe(&self) -> Vec<usize> {
        let mut count = vec![0; self.probes];
        for view in &self.views {
            count[view.probe as usize] += 1;
        }
        count
    }
}
