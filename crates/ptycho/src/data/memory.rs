//! Scans in the memory of a caller.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use num_complex::Complex;
use zellige_engine::error::{Error, Problem, Result};
use zellige_io::tensor::Elements;

use super::{Geometry, LoadExtent, RawFrames, RawScan, UnreadFrames};
use crate::scan::{Beam, Image};

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
    /// Modes of the probe to start from, and their values `[modes][ny][nx]`.
    pub probe: Option<(usize, Vec<Complex<f32>>)>,
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

impl ScanArrays {
    /// Returns true if the mask is one of each frame.
    pub(crate) fn masks_each(&self) -> bool {
        self.mask.as_ref().is_some_and(|mask| mask.len() > self.shape[0] * self.shape[1])
    }

    /// The scan as a reader gives it.
    ///
    /// # Errors
    /// Its frames have been read before.
    pub(super) fn raw(&self, depth: LoadExtent) -> Result<RawScan> {
        let [ny, nx] = self.shape;
        let (count, spacing) = (self.positions.len(), self.beam.resolution(self.shape));
        let frames: Box<dyn RawFrames> = match depth {
            LoadExtent::Plan => Box::new(UnreadFrames),
            _ => {
                let read = || Error::input("ptycho", Problem::new("scan", "frames in memory are read once"));
                Box::new(CallersFrames { counts: self.counts.take().ok_or_else(read)?, pixels: ny * nx })
            }
        };
        let origin = [ny, nx].map(|n| -((n / 2) as f64));
        let probe = self.probe.as_ref().map(|(modes, values)| Image {
            shape: [*modes, ny, nx],
            values: values.clone(),
            origin: [origin[0] * spacing[0], origin[1] * spacing[1]],
            spacing,
        });
        Ok(RawScan {
            frames,
            count,
            shape: self.shape,
            positions: self.positions.clone(),
            mask: self.mask.clone().filter(|_| depth != LoadExtent::Plan),
            dark: None,
            flat: None,
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
