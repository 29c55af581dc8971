//! Scans in the memory of a caller.

use num_complex::Complex;
use zellige_io::tensor::{Elements, Tensor};

use super::{FramesInMemory, Geometry, LoadExtent, RawFrames, RawScan, UnreadFrames};
use crate::scan::{Beam, Image};

/// Frames, positions and geometry, the optical axis on the middle pixel.
#[derive(Debug, Clone, PartialEq)]
pub struct ScanArrays {
    /// Counts `[n][ny][nx]`.
    pub counts: Vec<f32>,
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

impl ScanArrays {
    /// The scan as a reader gives it.
    pub(super) fn raw(&self, depth: LoadExtent) -> RawScan {
        let [ny, nx] = self.shape;
        let (count, spacing) = (self.positions.len(), self.beam.resolution(self.shape));
        let frames: Box<dyn RawFrames> = match depth {
            LoadExtent::Plan => Box::new(UnreadFrames),
            _ => Box::new(FramesInMemory(Tensor { shape: vec![count, ny, nx], elements: Elements::F32(self.counts.clone()) })),
        };
        let origin = [ny, nx].map(|n| -((n / 2) as f64));
        let probe = self.probe.as_ref().map(|(modes, values)| Image {
            shape: [*modes, ny, nx],
            values: values.clone(),
            origin: [origin[0] * spacing[0], origin[1] * spacing[1]],
            spacing,
        });
        RawScan {
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
        }
    }
}
