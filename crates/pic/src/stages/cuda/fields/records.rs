//! Records of the fields, some rows at a time.

use zellige_engine::error::Result;
use zellige_engine::real::RealScalar;
use zellige_engine::record::Values;

use super::{Charge, Fields, bytes};
use crate::stages::cells::cells;
use crate::stages::images::Quantity;
use crate::stages::{Component, Precision};

impl Fields {
    /// A component on the cells of the box, as [`crate::stages::Stages::cells`] gives it: some rows at a time. Waits.
    pub(in crate::stages::cuda) fn cells(&mut self, component: Component, scale: f64) -> Result<Values> {
        match self.precision {
            Precision::F32 => self.cells_of::<f32>(component, scale),
            Precision::F64 => self.cells_of::<f64>(component, scale),
        }
    }

    fn cells_of<T: RealScalar>(&mut self, component: Component, scale: f64) -> Result<Values> {
        let c = component as usize;
        if c >= 6 {
            self.j()?;
        }
        if self.grid.part.is_some() {
            let all = self.get(component, false)?;
            return self.cells_of_whole(Quantity::Vector(component), scale, &all);
        }
        let (array, begin) = if c < 6 { (&self.advancing[0][c], 0) } else { (&self.current, (c - 6) * self.grid.len()) };
        let size = bytes(self.precision);
        cells(&self.grid, Quantity::Vector(component), self.precision, scale, |range, to: &mut [T]| {
            self.cuda.download_to(array, (begin + range.start) * size, bytemuck::cast_slice_mut(to))
        })
    }

    /// Cells of an array over the whole domain, which only the first part has.
    fn cells_of_whole(&self, quantity: Quantity, scale: f64, all: &[f64]) -> Result<Values> {
        if all.is_empty() {
            return Ok(Values::F64(Vec::new()));
        }
        cells(&self.grid.whole(), quantity, self.precision, scale, |range, to: &mut [f64]| {
            to.copy_from_slice(&all[range]);
            Ok(())
        })
    }

    /// Charge on the cells of the box likewise.
    pub(in crate::stages::cuda) fn charge_cells(&self, charge: &Charge, scale: f64) -> Result<Values> {
        if self.grid.part.is_some() {
            let mut own = vec![0.0; self.grid.len()];
            charge.fetch(&self.cuda, 0, &mut own)?;
            let all = self.part.whole(&self.grid, &own, self.grid.pitch(), false)?;
            return self.cells_of_whole(Quantity::Charge, scale, &all);
        }
        cells(&self.grid, Quantity::Charge, self.precision, scale, |range, to| charge.fetch(&self.cuda, range.start, to))
    }
}
