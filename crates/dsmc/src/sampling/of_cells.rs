//! Averages of cells: of those of a part of the run, or of all.

use super::spread::Cells;
use crate::model::Model;

/// Averages of cells.
#[derive(Debug, Clone)]
pub(super) struct OfCells {
    /// Sums of all batches, `[cell][species][sums]`.
    pub(super) sums: Vec<f64>,
    /// Scatter of the values.
    pub(super) spread: Cells,
}

impl OfCells {
    /// Of so many cells.
    pub(super) fn new(model: &Model, cells: usize) -> Self {
        Self { sums: vec![0.0; cells * model.species.len() * model.collisions.sums()], spread: Cells::new(model, cells) }
    }

    /// Everything that makes them up, with the names in a checkpoint.
    pub(super) fn columns(&self) -> [(&'static str, &Vec<f64>); 4] {
        let Cells { value, square, filled, .. } = &self.spread;
        [("samples.cells", &self.sums), ("samples.cell_value", value), ("samples.cell_square", square), ("samples.cell_filled", filled)]
    }

    pub(super) fn columns_mut(&mut self) -> [(&'static str, &mut Vec<f64>); 4] {
        let Cells { value, square, filled, .. } = &mut self.spread;
        let sums = &mut self.sums;
        [("samples.cells", sums), ("samples.cell_value", value), ("samples.cell_square", square), ("samples.cell_filled", filled)]
    }

    /// Numbers of a cell in each of the columns.
    pub(super) fn widths(model: &Model) -> [usize; 4] {
        let one = Self::new(model, 1);
        one.columns().map(|(_, column)| column.len())
    }

    pub(super) fn clear(&mut self) {
        self.columns_mut().into_iter().for_each(|(_, column)| column.fill(0.0));
    }

    pub(super) fn memory(&self) -> u64 {
        self.columns().into_iter().map(|(_, column)| 8 * column.len() as u64).sum()
    }
}
