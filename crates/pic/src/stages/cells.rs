//! The cells of the box out of arrays over all corners with guards, as records hold them.

use std::ops::Range;

use zellige_engine::error::Result;
use zellige_engine::large::zeros;
use zellige_engine::parallel::{chunks, chunks_mut, each};
use zellige_engine::real::RealScalar;
use zellige_engine::record::Values;

use super::Precision;
use super::images::{self, Quantity};
use crate::grid::{BELOW, Grid};

/// Values that are fetched at a time: little enough to stay in a cache, much for a copy from a device.
const PIECE: usize = 1 << 22;

/// The cells of `quantity` that the grid holds, row by row, times `scale` and in the format of `precision`. `fetch` writes a range
/// of whole rows of the array, guards included, to where it is told.
pub fn cells<T: RealScalar>(
    grid: &Grid,
    quantity: Quantity,
    precision: Precision,
    scale: f64,
    fetch: impl FnMut(Range<usize>, &mut [T]) -> Result<()>,
) -> Result<Values> {
    Ok(match precision {
        Precision::F32 => Values::F32(scaled(grid, quantity, scale, fetch)?),
        Precision::F64 => Values::F64(scaled(grid, quantity, scale, fetch)?),
    })
}

fn scaled<T: RealScalar, R: RealScalar>(
    grid: &Grid,
    quantity: Quantity,
    scale: f64,
    mut fetch: impl FnMut(Range<usize>, &mut [T]) -> Result<()>,
) -> Result<Vec<R>> {
    let ([nx, ny], pitch) = (grid.cells_held(), grid.pitch());
    let mut out = zeros::<R>(nx * ny);
    let rows = (PIECE / pitch).clamp(1, ny);
    let mut piece = zeros::<T>(rows * pitch);
    for (k, out) in out.chunks_mut(rows * nx).enumerate() {
        let count = out.len() / nx;
        let first = BELOW + k * rows;
        let piece = &mut piece[..count * pitch];
        fetch(first * pitch..(first + count) * pitch, piece)?;
        each((chunks_mut(out, nx), chunks(piece, pitch)), |_, (to, from)| {
            to.iter_mut().zip(&from[BELOW..]).for_each(|(to, v)| *to = R::from_f64(v.to_f64() * scale));
        });
    }
    if zero_at_wall(grid, 0, quantity) {
        out.iter_mut().step_by(nx).for_each(|v| *v = R::ZERO);
    }
    if grid.held().start == 0 && zero_at_wall(grid, 1, quantity) {
        out[..nx].fill(R::ZERO);
    }
    Ok(out)
}

/// Returns true if the first cells of an axis are zero whatever the array holds: a mirror image of the other sign is zero on the
/// wall itself.
pub fn zero_at_wall(grid: &Grid, axis: usize, quantity: Quantity) -> bool {
    images::guards(grid, axis, quantity).iter().any(|image| image.0 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{FieldSide, ParticleSide};
    use crate::stages::Component;
    use crate::stages::cpu::fields::fill_guards;

    /// Rows of a part are those of the whole.
    #[test]
    fn cells_of_parts_follow_each_other() {
        let whole = Grid {
            cells: [7, 30],
            h: [0.1; 2],
            origin: [0.0; 2],
            dt: 0.05,
            fields: [[FieldSide::Pec; 2]; 2],
            particles: [[ParticleSide::Reflect; 2]; 2],
            dimensions: 2,
            part: None,
        };
        let of = |grid: &Grid| {
            // Numbers of corners of the domain.
            let first = grid.held().start * grid.pitch();
            let fetch = |range: Range<usize>, to: &mut [f64]| {
                to.iter_mut().zip(range).for_each(|(to, k)| *to = (first + k) as f64);
                Ok(())
            };
            let Values::F64(found) = cells(grid, Quantity::Vector(Component::Ex), Precision::F64, 1.0, fetch).unwrap() else { panic!() };
            found
        };
        let parts = [0..11, 11..17, 17..30].map(|rows| of(&Grid { part: Some(rows), ..whole.clone() }));
        assert_eq!(parts.concat(), of(&whole));
        assert!(parts[0][..7].iter().all(|v| *v == 0.0) && parts[1][0] != 0.0);
    }

    /// Values in several pieces equal those between the guards, times the scale, also where a wall holds them at zero.
    #[test]
    fn cells_are_what_stands_between_the_guards() {
        let grid = Grid {
            cells: [1500, 3000],
            h: [0.1; 2],
            origin: [0.0; 2],
            dt: 0.05,
            fields: [[FieldSide::Pec; 2], [FieldSide::Pmc; 2]],
            particles: [[ParticleSide::Reflect; 2]; 2],
            dimensions: 2,
            part: None,
        };
        assert!(grid.len() > PIECE);
        let array: Vec<f32> = (0..grid.len()).map(|k| 1.0 + (k % 8191) as f32).collect();
        for component in [Component::Ez, Component::Bx, Component::Ex, Component::Jx] {
            let mut whole = array.clone();
            fill_guards(&grid, component, &mut whole);
            let rows = (0..grid.cells[1]).flat_map(|j| whole[grid.row(j as isize)].iter().map(|v| (f64::from(*v) * 0.3) as f32));
            let fetch = |range: Range<usize>, to: &mut [f32]| {
                to.copy_from_slice(&array[range]);
                Ok(())
            };
            let found = cells(&grid, Quantity::Vector(component), Precision::F32, 0.3, fetch).unwrap();
            assert!(found == Values::F32(rows.collect()), "{component:?}");
        }
    }
}
