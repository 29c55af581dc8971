//! The binomial filter `[1 2 1]/4`, n times per axis, and the compensator `[-1 b -1]/(b - 2)`, `b = (4 + 2n)/n`, which
//! leaves long waves unchanged up to fourth order in `k h`. Response to a wave of `k h = theta`: `cos^(2n)(theta/2)`, times
//! `(b - 2 cos theta)/(b - 2)`.
//!
//! Beyond walls the grid is mirrored, with the parity of the quantity ([`images::filter_guards`]): the filter then commutes
//! with the divergence up to the wall, and a uniform plasma between walls at which particles turn stays uniform. Each axis has
//! its own passes.
//!
//! Source: Birdsall and Langdon (1991), appendix C.

use zellige_engine::error::Result;
use zellige_engine::parallel::{chunks_mut, each, each_with};
use zellige_engine::real::RealScalar;

use super::{BAND, sides};
use crate::grid::{BELOW, Grid};
use crate::stages::Smoothing;
use crate::stages::images::{self, Image, Quantity};
use crate::stages::part::{Array, Part};

/// Filters arrays whose guards are folded. `scratch` is kept by the caller between calls.
pub(super) fn smooth<T: RealScalar>(
    part: &Part,
    grid: &Grid,
    smoothing: [Smoothing; 2],
    arrays: &mut [Array<'_, T>],
    scratch: &mut Vec<T>,
) -> Result<()> {
    let weights = smoothing.map(|s| s.weights().into_iter().map(|w| w.map(T::from_f64)).collect::<Vec<_>>());
    if !weights[0].is_empty() {
        part.loops(|| arrays.iter_mut().for_each(|(quantity, array)| rows_smoothed(grid, *quantity, &weights[0], array)));
    }
    for weights in &weights[1] {
        part.fill(grid, arrays, [1, 1])?;
        part.loops(|| arrays.iter_mut().for_each(|(quantity, array)| along_y(grid, *quantity, array, scratch, *weights)));
    }
    Ok(())
}

/// All passes along the rows.
fn rows_smoothed<T: RealScalar>(grid: &Grid, quantity: Quantity, weights: &[[T; 2]], array: &mut [T]) {
    let pitch = grid.pitch();
    let image = |(guard, image, factor): Image| ((guard + BELOW as isize) as usize, (image + BELOW as isize) as usize, T::from_f64(factor));
    let images: Vec<_> = images::filter_guards(grid, 0, quantity).into_iter().filter(|i| nearest(grid, 0, i.0)).map(image).collect();
    let inside = &mut array[grid.inside().start * pitch..grid.inside().end * pitch];
    each_with(
        || vec![T::ZERO; pitch],
        chunks_mut(inside, pitch * BAND),
        |old, _, band| {
            for row in band.chunks_mut(pitch) {
                for weights in weights {
                    along_x(row, old, *weights, &images, grid.nodes(0));
                }
            }
        },
    );
}

/// True if a guard of an axis is next to the nodes inside, or a node of it that is on a side.
fn nearest(grid: &Grid, axis: usize, i: isize) -> bool {
    i == -1 || i == 0 || (i >= grid.cells[axis] as isize && i <= grid.nodes(axis) as isize)
}

/// One pass along a row.
#[inline(always)]
fn along_x<T: RealScalar>(row: &mut [T], old: &mut [T], [middle, side]: [T; 2], images: &[(usize, usize, T)], count: usize) {
    for (guard, image, factor) in images {
        row[*guard] = *factor * row[*image];
    }
    old.copy_from_slice(row);
    let (old, row) = (&old[BELOW - 1..=BELOW + count], &mut row[BELOW..BELOW + count]);
    for i in 0..count {
        row[i] = middle * old[i + 1] + side * (old[i] + old[i + 2]);
    }
}

/// One pass across the rows.
fn along_y<T: RealScalar>(grid: &Grid, quantity: Quantity, array: &mut [T], scratch: &mut Vec<T>, [middle, side]: [T; 2]) {
    let (pitch, begin) = (grid.pitch(), grid.inside().start);
    for (guard, image, factor) in
        sides::rows::<T>(grid, sides::own(grid, images::filter_guards(grid, 1, quantity)).filter(|i| nearest(grid, 1, i.0)))
    {
        for i in 0..pitch {
            array[guard * pitch + i] = factor * array[image * pitch + i];
        }
    }
    scratch.resize(array.len(), T::ZERO);
    let (from, inside) = (&*array, &mut scratch[begin * pitch..grid.inside().end * pitch]);
    each(chunks_mut(inside, pitch), |j, row| {
        let here = (begin + j) * pitch;
        let (down, own, up) = (&from[here - pitch..here], &from[here..here + pitch], &from[here + pitch..here + 2 * pitch]);
        for i in 0..pitch {
            row[i] = middle * own[i] + side * (down[i] + up[i]);
        }
    });
    sides::copy(grid, scratch, array);
}
