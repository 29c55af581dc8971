//! Field energies: `1/2 integral F^2` per component. A wall corner stands for half a cell.

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
    pub(super) fn measure(&mut self) {
        self.electric = std::array::from_fn(|c| energy(&self.grid, Component::ALL[c], &self.e[c]));
        self.magnetic = std::array::from_fn(|c| energy(&self.grid, Component::ALL[3 + c], &self.b[c]));
    }
}

impl<T: RealScalar> FieldSet<T> {
    /// `integral J.E` as they are now, without the columns of sheets.
    pub(super) fn power(&self) -> f64 {
        let (grid, pitch) = (&self.grid, self.grid.pitch());
        (0..3)
            .map(|c| {
                let quantity = Quantity::Vector(Component::ALL[c]);
                let counts = [0, 1].map(|axis| if quantity.half(axis) { grid.cells[axis] } else { grid.nodes(axis) });
                let walls = [0, 1].map(|axis| images::walls(grid, axis, quantity));
                let inside = BELOW * pitch..(BELOW + counts[1]) * pitch;
                let rows = map((chunks(&self.e[c][inside.clone()], pitch), chunks(&self.j[c][inside], pitch)), |row, (e, j)| {
                    let (e, j) = (&e[BELOW..BELOW + counts[0]], &j[BELOW..BELOW + counts[0]]);
                    let at = |i: usize| e[i].to_f64() * j[i].to_f64();
                    let ends: f64 = walls[0].iter().map(|i| at(*i as usize)).sum();
                    let sheets: f64 = self.sheets.iter().filter(|i| **i < counts[0]).map(|i| at(*i)).sum();
                    let weight = if walls[1].contains(&(row as isize)) { 0.5 } else { 1.0 };
                    weight * (e.iter().zip(j).map(|(e, j)| e.to_f64() * j.to_f64()).sum::<f64>() - 0.5 * ends - sheets)
                });
                grid.cell_volume() * sum(&rows)
            })
            .sum()
    }
}

/// The energy of one component, summed in double precision in an order that is always the same.
fn energy<T: RealScalar>(grid: &Grid, component: Component, array: &[T]) -> f64 {
    let quantity = Quantity::Vector(component);
    let counts = [0, 1].map(|axis| if quantity.half(axis) { grid.cells[axis] } else { grid.nodes(axis) });
    let walls = [0, 1].map(|axis| images::walls(grid, axis, quantity));
    let pitch = grid.pitch();
    let inside = &array[BELOW * pitch..(BELOW + counts[1]) * pitch];
    let rows = map(chunks(inside, pitch), |j, row| {
        let row = &row[BELOW..BELOW + counts[0]];
        let ends: f64 = walls[0].iter().map(|i| square(row[*i as usize])).sum();
        let weight = if walls[1].contains(&(j as isize)) { 0.5 } else { 1.0 };
        weight * (squares(row) - 0.5 * ends)
    });
    0.5 * grid.cell_volume() * sum(&rows)
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
