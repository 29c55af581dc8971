//! Records of the fields, some rows at a time, their pictures, of which only pixels go to the host, and copies on the device.

use zellige_engine::cuda::Coming;
use zellige_engine::error::Result;
use zellige_engine::ops::plane::{FieldCopier, PlaneOnGpu, PlaneReducer};
use zellige_engine::real::RealScalar;
use zellige_engine::record::{Centring, Values, ValuesOnGpu};

use super::{Fields, bytes};
use crate::grid::{BELOW, Grid};
use crate::stages::cells::{cells, zero_at_wall};
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
        let (array, begin) = if c < 6 { (&self.advancing[0][c], 0) } else { (&self.current, (c - 6) * self.grid.len()) };
        let size = bytes(self.precision);
        cells(&self.grid, Quantity::Vector(component), self.precision, scale, |range, to: &mut [T]| {
            self.cuda.download_to(array, (begin + range.start) * size, bytemuck::cast_slice_mut(to))
        })
    }

    /// Charge on the cells of the box likewise.
    pub(in crate::stages::cuda) fn charge_cells(&self, scale: f64) -> Result<Values> {
        let charge = self.charge();
        cells(&self.grid, Quantity::Charge, self.precision, scale, |range, to| charge.fetch(&self.cuda, range.start, to))
    }

    /// Returns true if the whole plane lies here.
    pub(in crate::stages::cuda) fn makes_pictures(&self) -> bool {
        self.grid.dimensions == 2 && self.grid.part.is_none()
    }

    /// Pixels of a component, as [`crate::stages::Stages::picture`] gives them.
    pub(in crate::stages::cuda) fn picture(&mut self, component: Component, scale: f64) -> Result<Coming<f32>> {
        self.make_room_for(component)?;
        self.pixels(|fields| fields.plane(component, scale))
    }

    /// Pixels of the charge likewise.
    pub(in crate::stages::cuda) fn charge_picture(&mut self, scale: f64) -> Result<Coming<f32>> {
        self.pixels(|fields| fields.charge_plane(scale))
    }

    fn pixels(&mut self, plane: impl FnOnce(&Self) -> PlaneOnGpu<'_>) -> Result<Coming<f32>> {
        // Out of its place, since planes borrow the fields.
        let mut reducer = self.reducer.take();
        let pixels = PlaneReducer::of(&mut reducer, &self.cuda, &self.pool)?.pixels(&plane(self));
        self.reducer = reducer;
        pixels
    }

    /// A component on the cells of the box, as a copy on the device.
    pub(in crate::stages::cuda) fn copy(&mut self, component: Component, scale: f64, copier: &FieldCopier) -> Result<ValuesOnGpu> {
        self.make_room_for(component)?;
        copier.plane(&self.plane(component, scale), "a copy of a field")
    }

    /// Charge on the cells of the box likewise.
    pub(in crate::stages::cuda) fn charge_copy(&self, scale: f64, copier: &FieldCopier) -> Result<ValuesOnGpu> {
        copier.plane(&self.charge_plane(scale), "a copy of the charge density")
    }

    /// Sets E or B on the cells of the box, as [`crate::stages::Stages::set_cells_on_gpu`] does.
    pub(in crate::stages::cuda) fn put(
        &mut self,
        component: Component,
        values: &ValuesOnGpu,
        unit: f64,
        copier: &FieldCopier,
    ) -> Result<Option<(usize, f64)>> {
        let plane = self.plane(component, 1.0);
        let unfit = copier.first_unfit(values, unit, plane.double)?;
        if unfit.is_none() {
            copier.put_plane(values, unit, &plane)?;
            self.fill_guards()?;
        }
        Ok(unfit)
    }

    fn make_room_for(&mut self, component: Component) -> Result<()> {
        if component as usize >= 6 { self.j().map(|_| ()) } else { Ok(()) }
    }

    /// A component where it lies; there is room for it.
    fn plane(&self, component: Component, scale: f64) -> PlaneOnGpu<'_> {
        let c = component as usize;
        let (array, begin) = if c < 6 { (&self.advancing[0][c], 0) } else { (&self.current, (c - 6) * self.grid.len()) };
        let mut plane = PlaneOnGpu::new(array, self.precision == Precision::F64, self.grid.cells, Centring::Node);
        (plane.begin, plane.scale) = (begin, scale);
        between_guards(&self.grid, Quantity::Vector(component), &mut plane);
        plane
    }

    /// The charge that was added up last likewise.
    fn charge_plane(&self, scale: f64) -> PlaneOnGpu<'_> {
        let mut plane = PlaneOnGpu::new(self.charge().values(), true, self.grid.cells, Centring::Node);
        (plane.double_in_record, plane.scale) = (self.precision == Precision::F64, scale);
        between_guards(&self.grid, Quantity::Charge, &mut plane);
        plane
    }
}

/// Narrows a plane to the cells of the box, its array over all corners with guards beginning at `plane.begin`.
fn between_guards(grid: &Grid, quantity: Quantity, plane: &mut PlaneOnGpu<'_>) {
    let pitch = grid.pitch();
    plane.begin += BELOW * pitch + BELOW;
    plane.strides = [1, pitch];
    plane.zeros = [0, 1].map(|axis| usize::from(zero_at_wall(grid, axis, quantity)));
}
