//! Averages that stay on the device that keeps them.

use zellige_engine::cuda::Buffer;
use zellige_engine::error::Result;

use super::Samples;
use super::values::{Base, bases};
use crate::model::Model;
use crate::stages::{Stages, Wanted};

/// True if a value of a cell is an average over particles.
pub(crate) fn by_particles(model: &Model, value: usize) -> bool {
    matches!(bases(model)[value], Base::Particles(_))
}

impl Samples {
    /// A value of all cells over the closed batches, of which there is one at least, as a copy on the device. `None` where no
    /// device keeps them, or in several parts.
    pub(crate) fn show(&self, wanted: &Wanted, stages: &mut dyn Stages) -> Result<Option<Buffer<f64>>> {
        stages.batches().map_or(Ok(None), |device| device.show(wanted, self.batches, self.batch))
    }

    /// Scatter of the values of all cells and their batches with particles, as `spread` has them.
    #[cfg(test)]
    pub(crate) fn scatter(&self) -> (&[f64], &[f64]) {
        (&self.all().spread.square, &self.all().spread.filled)
    }
}
