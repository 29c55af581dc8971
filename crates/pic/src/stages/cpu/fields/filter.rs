//! The binomial filter `[1 2 1]/4`, n times per axis, and the compensator `[-1 b -1]/(b - 2)`, `b = (4 + 2n)/n`, which
//! leaves long waves unchanged up to fourth order in `k h`. Response to a wave of `k h = theta`: `cos^(2n)(theta/2)`, times
//! `(b - 2 cos theta)/(b - 2)`.
//!
//! Beyond walls the grid is mirrored, with the parity of the quantity: the filter then commutes with the divergence up
//! to the wall, and a uniform plasma stays uniform. Each axis has its own passes.
//!
//! Source: Birdsall and Langdon (1991), appendix C.

use zellige_engine::parallel::{chunks_mut, each, each_with};
use zellige_engine::real::RealScalar;

use super::{BAND, sides};
use crate::grid::{BELOW, Grid};
use crate::stages::Smoothing;
use crate::stages::images::{self, Quantity};

/// Filters an array whose guards are folded. `scratch` is kept by the caller between calls.
pub(super) fn smooth<T: RealScalar>(grid: &Grid, smoothing: [Smoothing; 2], quantity: Quantity, array: &mut [T], scratch: &mut Vec<T>) {
    let weights = smoothing.map(|s| s.weights().into_iter().map(|w| w.map(T::from_f64)).collect::<Vec<_>>());
    let pitch = grid.pitch();
    if !weights[0].is_empty() {
        let images: Vec<_> = near(grid, 0, quantity);
        let inside = &mut array[BELOW * pitch..(BELOW + grid.nodes(1)) * pitch];
        each_with(
            || vec![T::ZERO; pitch],
            chunks_mut(inside, pitch * BAND),
            |old, _, band| {
                for row in band.chunks_mut(pitch) {
                    for weights in &weights[0] {
                        along_x(row, old, *weights, &images, grid.nodes(0));
                    }
                }
            },
        );
    }
    if !weights[1].is_empty() {
        scratch.resize(array.len(), T::ZERO);
        let images: Vec<(usize, usize, T)> = near(grid, 1, quantity);
        for weights in &weights[1] {
            for (guard, image, factor) in &images {
                for i in 0..pitch {
                    array[guard * pitch + i] = *factor * array[image * pitch + i];
                }
            }
            along_y(grid, array, scratch, *weights);
            sides::copy(grid, scratch, array);
        }
    }
}

/// The nearest guards of an axis.
fn near<T: RealScalar>(grid: &Grid, axis: usize, quantity: Quantity) -> Vec<(usize, usize, T)> {
    let last = grid.nodes(axis) as isize;
    let wanted = |i: isize| i == -1 || (i >= grid.cells[axis] as isize && i <= last);
    let images = images::guards(grid, axis, quantity).into_iter().filter(|image| wanted(image.0));
    images
        .map(|(guard, image, factor)| ((guard + BELOW as isize) as usize, (image + BELOW as isize) as usize, T::from_f64(factor)))
        .collect()
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

/// One pass across the rows, into `to`.
fn along_y<T: RealScalar>(grid: &Grid, from: &[T], to: &mut [T], [middle, side]: [T; 2]) {
    let pitch = grid.pitch();
    let inside = &mut to[BELOW * pitch..(BELOW + grid.nodes(1)) * pitch];
    each(chunks_mut(inside, pitch), |j, row| {
        let here = (BELOW + j) * pitch;
        let (down, own, up) = (&from[here - pitch..here], &from[here..here + pitch], &from[here + pitch..here + 2 * pitch]);
        for i in 0..pitch {
            row[i] = middle * own[i] + side * (down[i] + up[i]);
        }
    });
}
