//! Rows of nodes of a component as a checkpoint has them: those that carry values of their own, without guards.

use zellige_engine::error::Result;
use zellige_engine::real::RealScalar;

use super::Component;
use super::cpu::fields::fill_guards_of_rows;
use super::part::Part;
use crate::grid::{BELOW, Grid};

/// Reader of a row of nodes of the domain, which is given by its number.
pub type ReadRow<'a> = &'a mut dyn FnMut(usize, &mut [f64]) -> Result<()>;

/// Rows of a part in its array, and the number of the first.
pub(in crate::stages) fn own<T: RealScalar>(part: &Part, grid: &Grid, array: &[T]) -> (usize, Vec<f64>) {
    let (nodes, pitch) = (grid.nodes(0), grid.pitch());
    // Nodes that are not shared out are whole at every part.
    let rows = if grid.part.is_none() && !part.links().is_first() { 0..0 } else { grid.inside() };
    let mut values = Vec::with_capacity(rows.len() * nodes);
    for row in rows {
        values.extend(array[row * pitch + BELOW..][..nodes].iter().map(|v| v.to_f64()));
    }
    (grid.held().start, values)
}

/// The array of a part, guards included, from the rows of the domain that it holds.
pub(in crate::stages) fn held(grid: &Grid, component: Component, read: ReadRow<'_>) -> Result<Vec<f64>> {
    let (nodes, pitch) = (grid.nodes(0), grid.pitch());
    let all = (grid.cells[1] as isize, grid.nodes(1) as isize);
    let mut array = vec![0.0; grid.len()];
    let first = grid.held().start as isize - BELOW as isize;
    for (j, row) in (first..).zip(array.chunks_exact_mut(pitch)) {
        // Guards beyond a periodic side are rows of others.
        let source = if grid.periodic(1) { j.rem_euclid(all.0) } else { j };
        if (0..all.1).contains(&source) {
            read(source as usize, &mut row[BELOW..][..nodes])?;
        }
    }
    fill_guards_of_rows(grid, component, &mut array);
    Ok(array)
}
