//! Field energies: `1/2 integral F^2` per component. A wall corner stands for half a cell.

use std::ops::Range;

use zellige_engine::error::Result;
use zellige_engine::ops::sum;
use zellige_engine::parallel::{chunks, map};
use zellige_engine::real::RealScalar;

use super::FieldSet;
use crate::grid::{BELOW, Grid};
use crate::stages::Component;
use crate::stages::images::{self, Quantity};

/// Running sums of a row, so that the loop is not one chain of additions.
const LANES: usize = 8;

impl<T: RealScalar> FieldSet<T> {
    /// Takes the energies as they are now.
    pub(super) fn measure(&mut self) -> Result<()> {
        let part = self.part.clone();
        let arrays = || self.e.iter().chain(&self.b).zip(Component::ALL);
        let rows = part.loops(|| arrays().map(|(array, component)| squares_of_rows(&self.grid, component, array)).collect());
        let rows = part.lists_of_rows(&self.grid, rows)?;
        let of = |c: usize| 0.5 * self.grid.cell_volume() * part.loops(|| sum(&rows[c]));
        (self.electric, self.magnetic) = ([of(0), of(1), of(2)], [of(3), of(4), of(5)]);
        Ok(())
    }

    /// `J.E` as they are now, without the columns of sheets: sums of rows, for each component.
    pub(super) fn power_of_rows(&self) -> Vec<Vec<f64>> {
        let (grid, pitch) = (&self.grid, self.grid.pitch());
        (0..3)
            .map(|c| {
                let quantity = Quantity::Vector(Component::ALL[c]);
                let count = if quantity.half(0) { grid.cells[0] } else { grid.nodes(0) };
                let walls = [0, 1].map(|axis| images::walls(grid, axis, quantity));
                let Range { start, end } = counted(grid, quantity);
                let inside = start * pitch..end * pitch;
                map((chunks(&self.e[c][inside.clone()], pitch), chunks(&self.j[c][inside], pitch)), |row, (e, j)| {
                    let (e, j) = (&e[BELOW..BELOW + count], &j[BELOW..BELOW + count]);
                    let at = |i: usize| e[i].to_f64() * j[i].to_f64();
                    let ends: f64 = walls[0].iter().map(|i| at(*i as usize)).sum();
                    let sheets: f64 = self.sheets.iter().filter(|i| **i < count).map(|i| at(*i)).sum();
                    let weight = if walls[1].contains(&((grid.held().start + row) as isize)) { 0.5 } else { 1.0 };
                    weight * (e.iter().zip(j).map(|(e, j)| e.to_f64() * j.to_f64()).sum::<f64>() - 0.5 * ends - sheets)
                })
            })
            .collect()
    }

    /// `integral J.E` from the sums of all rows.
    pub(super) fn power(&self, rows: &[Vec<f64>]) -> f64 {
        rows.iter().map(|rows| self.grid.cell_volume() * sum(rows)).sum()
    }
}

/// Squares of one component, summed in double precision for each row in an order that is always the same.
fn squares_of_rows<T: RealScalar>(grid: &Grid, component: Component, array: &[T]) -> Vec<f64> {
    let quantity = Quantity::Vector(component);
    let count = if quantity.half(0) { grid.cells[0] } else { grid.nodes(0) };
    let walls = [0, 1].map(|axis| images::walls(grid, axis, quantity));
    let pitch = grid.pitch();
    let Range { start, end } = counted(grid, quantity);
    map(chunks(&array[start * pitch..end * pitch], pitch), |j, row| {
        let row = &row[BELOW..BELOW + count];
        let ends: f64 = walls[0].iter().map(|i| square(row[*i as usize])).sum();
        let weight = if walls[1].contains(&((grid.held().start + j) as isize)) { 0.5 } else { 1.0 };
        weight * (squares(row) - 0.5 * ends)
    })
}

/// Rows of nodes inside that a quantity has.
fn counted(grid: &Grid, quantity: Quantity) -> Range<usize> {
    if quantity.half(1) { BELOW..BELOW + grid.held().len() } else { grid.inside() }
}

fn square<T: RealScalar>(value: T) -> f64 {
    value.to_f64() * value.to_f64()
}

/// `sum v^2`.
fn squares<T: RealScalar>(row: &[T]) -> f64 {
    let mut lanes = [0.0; LANES];
    let (chunks, rest) = row.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += square(*value);
        }
    }
    for (lane, value) in lanes.iter_mut().zip(rest) {
        *lane += square(*value);
    }
    lanes.iter().sum()
}
