//! Guards filled and folded, row by row. What to do is in [`crate::stages::images`].

use std::ops::Range;

use zellige_engine::parallel::{chunks, chunks_mut, each};
use zellige_engine::real::RealScalar;

use super::BAND;
use crate::grid::{BELOW, Grid};
use crate::stages::images::{self, Image, Quantity};

/// Place of node `i` in a row.
fn place(i: isize) -> usize {
    (i + BELOW as isize) as usize
}

/// Rows of nodes across a line that its particles reach: they lie in one quarter of the cell, see the passes over particles.
const REACHED: Range<isize> = 0..4;

/// A current becomes zero, wherever particles may have left one.
pub(super) fn clear<T: RealScalar>(grid: &Grid, array: &mut [T]) {
    let pitch = grid.pitch();
    let rows = if grid.dimensions == 1 { grid.place(REACHED.start)..grid.place(REACHED.end) } else { 0..grid.rows() };
    each(chunks_mut(&mut array[rows.start * pitch..rows.end * pitch], pitch * BAND), |_, band| band.fill(T::ZERO));
}

/// `sum = a + b`.
pub(super) fn sum<T: RealScalar>(grid: &Grid, sum: &mut [T], a: &[T], b: &[T]) {
    let band = grid.pitch() * BAND;
    each((chunks_mut(sum, band), chunks(a, band), chunks(b, band)), |_, (sum, a, b)| {
        for ((sum, a), b) in sum.iter_mut().zip(a).zip(b) {
            *sum = *a + *b;
        }
    });
}

/// Fills the guards from the nodes inside: along x in every row that is inside, then whole rows; but not those that other parts
/// have.
pub(super) fn guards<T: RealScalar>(grid: &Grid, quantity: Quantity, array: &mut [T]) {
    guards_x(grid, quantity, array, grid.inside());
    guards_y(grid, quantity, array);
}

/// The guards likewise, along x also in rows that other parts have.
pub(super) fn guards_of_rows<T: RealScalar>(grid: &Grid, quantity: Quantity, array: &mut [T]) {
    guards_x(grid, quantity, array, 0..grid.rows());
    guards_y(grid, quantity, array);
}

/// The guards that a step reads: not the rows beside a line, which are the line itself ([`Grid::across`]). `rows` are up to date.
pub(super) fn guards_of_steps<T: RealScalar>(grid: &Grid, quantity: Quantity, array: &mut [T], rows: Range<usize>) {
    guards_x(grid, quantity, array, rows);
    if grid.dimensions > 1 {
        guards_y(grid, quantity, array);
    }
}

/// The guards at both ends of some rows.
fn guards_x<T: RealScalar>(grid: &Grid, quantity: Quantity, array: &mut [T], rows: Range<usize>) {
    let images: Vec<_> =
        images::guards(grid, 0, quantity).into_iter().map(|(i, image, f)| (place(i), place(image), T::from_f64(f))).collect();
    let pitch = grid.pitch();
    each(chunks_mut(&mut array[rows.start * pitch..rows.end * pitch], pitch * BAND), |_, band| {
        for row in band.chunks_mut(pitch) {
            for (guard, image, factor) in &images {
                row[*guard] = *factor * row[*image];
            }
        }
    });
}

/// The rows of guards.
fn guards_y<T: RealScalar>(grid: &Grid, quantity: Quantity, array: &mut [T]) {
    let pitch = grid.pitch();
    for (guard, image, factor) in rows::<T>(grid, own(grid, images::guards(grid, 1, quantity))) {
        array.copy_within(image * pitch..(image + 1) * pitch, guard * pitch);
        if factor != T::ONE {
            array[guard * pitch..(guard + 1) * pitch].iter_mut().for_each(|v| *v = factor * *v);
        }
    }
}

/// Those of the images of axis 1 that are at ends of the domain that are this part's.
pub(super) fn own(grid: &Grid, images: Vec<Image>) -> impl Iterator<Item = Image> {
    let others = [0, 1].map(|end| grid.continues(end));
    images.into_iter().filter(move |image| !others[usize::from(image.0 > 0)])
}

/// Adds deposits on guards to their nodes, and doubles wall corners: their control volume is half a cell.
/// Along x in every row, guards too, then along y, as far as both are this part's. The guards keep what they had.
pub(super) fn fold<T: RealScalar>(grid: &Grid, quantity: Quantity, array: &mut [T]) {
    let pitch = grid.pitch();
    let along_x: Vec<_> =
        images::folds(grid, 0, quantity).into_iter().map(|(i, image, f)| (place(i), place(image), T::from_f64(f))).collect();
    let walls: Vec<usize> = images::walls(grid, 0, quantity).into_iter().map(place).collect();
    each(chunks_mut(array, pitch * BAND), |_, band| {
        for row in band.chunks_mut(pitch) {
            for (guard, image, factor) in &along_x {
                let deposit = row[*guard];
                row[*image] += *factor * deposit;
            }
            for wall in &walls {
                row[*wall] = T::TWO * row[*wall];
            }
        }
    });
    // Nobody has been where nothing was deposited.
    let reached = |guard: isize| quantity == Quantity::Charge || grid.dimensions > 1 || REACHED.contains(&guard);
    let (below, above) = (grid.held().start == 0, grid.held().end == grid.cells[1]);
    let held = |j: isize| (below || j >= grid.held().start as isize) && (above || j < grid.held().end as isize);
    let along_y = images::folds(grid, 1, quantity).into_iter().filter(|(guard, image, _)| reached(*guard) && held(*guard) && held(*image));
    for (guard, image, factor) in rows::<T>(grid, along_y) {
        for i in 0..pitch {
            let deposit = array[guard * pitch + i];
            array[image * pitch + i] += factor * deposit;
        }
    }
    for wall in images::walls(grid, 1, quantity).into_iter().filter(|j| held(*j)).map(|j| grid.place(j)) {
        array[wall * pitch..(wall + 1) * pitch].iter_mut().for_each(|v| *v = T::TWO * *v);
    }
}

/// Rows and factors as the loops take them.
pub(super) fn rows<T: RealScalar>(grid: &Grid, images: impl Iterator<Item = Image>) -> impl Iterator<Item = (usize, usize, T)> {
    images.map(|(guard, image, factor)| (grid.place(guard), grid.place(image), T::from_f64(factor)))
}

/// The rows inside, copied.
pub(super) fn copy<T: RealScalar>(grid: &Grid, from: &[T], to: &mut [T]) {
    let inside = grid.inside().start * grid.pitch()..grid.inside().end * grid.pitch();
    let band = grid.pitch() * BAND;
    each((chunks_mut(&mut to[inside.clone()], band), chunks(&from[inside], band)), |_, (to, from)| to.copy_from_slice(from));
}
