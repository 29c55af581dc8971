//! Pictures of the solution, of which only pixels go to the host.

use zellige_engine::cuda::Coming;
use zellige_engine::error::Result;
use zellige_engine::ops::plane::{PlaneOnGpu, PlaneReducer};
use zellige_engine::record::Centring;

use super::CudaStages;
use super::tables::Number;

impl CudaStages {
    /// Pixels of the solution, as [`crate::stages::Stages::picture`] gives them.
    pub(super) fn pixels(&mut self, dimensions: usize, double_in_record: bool) -> Result<Option<Vec<Coming<f32>>>> {
        let data = &self.data;
        let (level, field) = (&data.levels[0], &data.levels[0].u[data.levels[0].u_at]);
        if data.parts.is_some() || field.skipped != 0 {
            return Ok(None);
        }
        let len = level.argument.axes().map(|axis| axis.n as usize);
        let strides = [1, level.argument.pitch as usize, level.argument.plane as usize];
        let mut plane = PlaneOnGpu::new(&field.buffer, data.outer == Number::F64, [len[0], len[1]], Centring::Node);
        let reducer = PlaneReducer::of(&mut self.reducer, &data.cuda, &data.pool)?;
        plane.double_in_record = double_in_record;
        reducer.planes(&plane, &len[..dimensions], &strides[..dimensions]).map(Some)
    }
}
