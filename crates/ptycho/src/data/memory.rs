//! Scans in the memory of a caller.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use num_complex::Complex;
use zellige_engine::error::{Error, Problem, Result};
use zellige_io::tensor::Elements;

use super::{Geometry, LoadExtent, RawFrames, RawScan, UnreadFrames};
use crate::scan::{Beam, Image, Propagation};

/// Counts of a caller, `[n][ny][nx]`, which are read in pieces where they lie.
pub trait CallersCounts: Send + Sync {
    /// Counts from number `first` on.
    fn read(&self, first: usize, count: usize) -> Elements;
}

/// Counts until they are read, once: the caller's memory is not held longer.
pub struct UnreadCounts(Mutex<Option<Box<dyn CallersCounts>>>);

impl UnreadCounts {
    /// Counts that a scan will be read from.
    pub fn new(counts: impl CallersCounts + 'static) -> Self {
        Self(Mutex::new(Some(Box::new(counts))))
    }

    fn take(&self) -> Option<Box<dyn CallersCounts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl fmt::Debug for UnreadCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("counts of the caller")
    }
}

impl PartialEq for UnreadCounts {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

/// Frames, positions and geometry, the optical axis on the middle pixel.
#[derive(Debug, PartialEq)]
pub struct ScanArrays {
    /// Counts `[n][ny][nx]`.
    pub counts: UnreadCounts,
    /// Rows and columns of a frame.
    pub shape: [usize; 2],
    /// Pixels that count, of one frame or of all.
    pub mask: Option<Vec<bool>>,
    /// Positions, metres `[y, x]`.
    pub positions: Vec<[f64; 2]>,
    /// Beam and detector.
    pub beam: Beam,
    /// Dark frame to subtract.
    pub dark: Option<Vec<f32>>,
    /// Response of the pixels, by which frames are divided.
    pub flat: Option<Vec<f32>>,
    /// Modes, rows and columns of the probe to start from, and its values.
    pub probe: Option<([usize; 3], Vec<Complex<f32>>)>,
}

/// Frames as they lie in the memory of the caller.
struct CallersFrames {
    counts: Box<dyn CallersCounts>,
    pixels: usize,
}

impl RawFrames for CallersFrames {
    fn read(&mut self, first: usize, count: usize) -> Result<Elements> {
        Ok(self.counts.read(first * self.pixels, count * self.pixels))
    }
}

/// A whole number that tells values apart, 0 for none (FNV-1a, of which a real holds 53 bits).
fn mark(values: impl Iterator<Item = u32>) -> f64 {
    let mut values = values.peekable();
    if values.peek().is_none() {
        return 0.0;
    }
    let mixed = |hash: u64, value: u32| (hash ^ u64::from(value)).wrapping_mul(0x0100_0000_01b3);
    (values.fold(0xcbf2_9ce4_8422_2325, mixed) >> 11) as f64
}

impl ScanArrays {
    /// Returns true if the mask is one of each frame.
    pub(crate) fn masks_each(&self) -> bool {
        self.mask.as_ref().is_some_and(|mask| mask.len() > self.shape[0] * self.shape[1])
    }

    /// Numbers by which a run that goes on knows the arrays that it began with, but for the counts: frames, rows and columns, then
    /// the beam, then marks of mask, dark frame and response, then positions.
    pub(crate) fn account(&self) -> Vec<f64> {
        let Beam { wavelength, distance, pixel: [py, px], propagation } = self.beam;
        let near = f64::from(u8::from(propagation == Propagation::Near));
        let [ny, nx] = self.shape.map(|n| n as f64);
        let reals = |values: &Option<Vec<f32>>| mark(values.iter().flatten().map(|v| v.to_bits()));
        let masked = mark(self.mask.iter().flatten().map(|inside| u32::from(*inside)));
        let numbers =
            [self.positions.len() as f64, ny, nx, wavelength, distance, py, px, near, masked, reals(&self.dark), reals(&self.flat)];
        [&numbers, self.positions.as_flattened()].concat()
    }

    /// Tells in words how the arrays differ from those of an [`ScanArrays::account`], if they do.
    pub(crate) fn difference(&self, then: &[f64]) -> Option<String> {
        let now = self.account();
        let at = now.iter().zip(then).position(|(now, then)| now != then);
        let frames = |of: &[f64]| format!("{} frames of {} x {} pixels", of[0], of[1], of[2]);
        Some(match at.or((now.len() != then.len()).then_some(0))? {
            _ if then.len() < Self::BEFORE_POSITIONS => "it is of no arrays".into(),
            0..3 => format!("it is of {}, and {} are given", frames(then), frames(&now)),
            3..Self::BEFORE_MARKS => "it is of another wavelength, distance, pixel or propagation".into(),
            Self::BEFORE_MARKS..Self::BEFORE_POSITIONS => "it is of another mask, dark frame or response".into(),
            k => format!("the position of frame {} is another one", (k - Self::BEFORE_POSITIONS) / 2),
        })
    }

    /// Numbers of an account before its marks and before its positions.
    const BEFORE_MARKS: usize = 8;
    const BEFORE_POSITIONS: usize = 11;

    /// The scan as a reader gives it.
    ///
    /// # Errors
    /// Its frames have been read before.
    pub(super) fn raw(&self, depth: LoadExtent) -> Result<RawScan> {
        let [ny, nx] = self.shape;
        let count = self.positions.len();
        let frames: Box<dyn RawFrames> = match depth {
            LoadExtent::Plan => Box::new(UnreadFrames),
            _ => {
                let read = || Error::input("ptycho", Problem::new("scan", "frames in memory are read once"));
                Box::new(CallersFrames { counts: self.counts.take().ok_or_else(read)?, pixels: ny * nx })
            }
        };
        let probe = self.probe.as_ref().map(|(shape, values)| {
            let [_, rows, columns] = *shape;
            let spacing = self.beam.resolution([rows, columns]);
            let origin = [-((rows / 2) as f64) * spacing[0], -((columns / 2) as f64) * spacing[1]];
            Image { shape: *shape, values: values.clone(), origin, spacing }
        });
        Ok(RawScan {
            frames,
            count,
            shape: self.shape,
            positions: self.positions.clone(),
            mask: self.mask.clone().filter(|_| depth != LoadExtent::Plan),
            dark: self.dark.clone().filter(|_| depth != LoadExtent::Plan),
            flat: self.flat.clone().filter(|_| depth != LoadExtent::Plan),
            geometry: Geometry {
                wavelength: Some(self.beam.wavelength),
                distance: Some(self.beam.distance),
                pixel: Some(self.beam.pixel),
                propagation: Some(self.beam.propagation),
            },
            center: None,
            probe,
            object: None,
            refined: None,
            truth: None,
            listing: None,
            notes: Vec::new(),
        })
    }
}
