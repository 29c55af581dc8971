//! The gas in the engine's tiles: a tile is one row of particles, kept through the order of keys ([`zellige_engine::tiles`]).
//!
//! A row holds `x`, `y` (offset in the cell, 0 to 1), `vx`, `vy`, `vz` (m/s) and the energy of the rotation over k (K) where
//! molecules rotate, words for the levels of vibration and for the tag of the last collision where there are any, and a key of 16
//! bits: the cell in the tile times the number of species plus the species. 22 bytes a particle without internal modes. Between
//! steps a tile's particles are in no order; [`HOLE`] marks the slot of one that has left.

use zellige_engine::tiles::{self, Layout};
pub(super) use zellige_engine::tiles::{Deliveries, Tiling};

use crate::grid::Grid;
use crate::model::Model;

/// Key of a slot without a particle.
pub(super) const HOLE: u16 = u16::MAX;
/// Columns of numbers where nothing rotates, and at most.
const PLAIN: usize = 5;
const NUMBERS: usize = 6;
/// Slots behind the last particle: two of the registers that moments are summed up in are read from any slot on.
const SPARE: usize = 16;

/// A particle as the engine has it.
pub(super) type Particle = tiles::Particle<f32, NUMBERS, u32, 2, u16>;
/// The particles of a tile.
pub(super) type Row = tiles::Row<f32, NUMBERS, u32, 2, u16>;
/// All particles.
pub(super) type Store = tiles::Store<f32, NUMBERS, u32, 2, u16>;
/// Particles that leave a tile.
pub(super) type Outbox = tiles::Outbox<f32, (), NUMBERS, u32, 2, u16>;

/// The columns that a run needs.
pub(super) fn layout(model: &Model) -> Layout<2> {
    let c = &model.collisions;
    let width = if c.rotation { NUMBERS } else { PLAIN };
    Layout { width, words: [c.vibration, c.partner.tagged()], kinds: model.species.len(), spare: SPARE }
}

/// Columns of a row by name; those that no species needs are empty.
#[derive(Debug)]
pub(super) struct Columns<'a> {
    pub(super) x: &'a mut [f32],
    pub(super) y: &'a mut [f32],
    pub(super) v: [&'a mut [f32]; 3],
    pub(super) rotation: &'a mut [f32],
    pub(super) level: &'a mut [u32],
    pub(super) tag: &'a mut [u32],
    pub(super) key: &'a mut [u16],
}

impl<'a> Columns<'a> {
    /// Those of a row, with what lies behind its last particle.
    pub(super) fn of(row: &'a mut Row) -> Self {
        let tiles::Columns { v: [x, y, vx, vy, vz, rotation], words: [level, tag], keys: key } = row.columns_mut();
        Self { x, y, v: [vx, vy, vz], rotation, level, tag, key }
    }

    /// The particle in slot `i`.
    pub(super) fn get(&self, i: usize) -> ParticleState {
        ParticleState {
            x: self.x[i],
            y: self.y[i],
            v: [self.v[0][i], self.v[1][i], self.v[2][i]],
            rotation: self.rotation.get(i).copied().unwrap_or(0.0),
            level: self.level.get(i).copied().unwrap_or(0),
            tag: self.tag.get(i).copied().unwrap_or(0),
        }
    }
}

/// State of one particle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ParticleState {
    pub(super) x: f32,
    pub(super) y: f32,
    pub(super) v: [f32; 3],
    pub(super) rotation: f32,
    pub(super) level: u32,
    /// A number that it shares with the particle that it collided with last.
    pub(super) tag: u32,
}

impl ParticleState {
    /// As the engine has it.
    #[inline(always)]
    pub(super) fn with_key(&self, key: u16) -> Particle {
        let [vx, vy, vz] = self.v;
        Particle { v: [self.x, self.y, vx, vy, vz, self.rotation], words: [self.level, self.tag], key }
    }

    /// Out of a row or an outbox.
    pub(super) fn of(p: &Particle, layout: &Layout<2>) -> Self {
        let [x, y, vx, vy, vz, rotation] = p.v;
        // Numbers that are not held read as 1.
        let rotation = if layout.width == NUMBERS { rotation } else { 0.0 };
        Self { x, y, v: [vx, vy, vz], rotation, level: p.words[0], tag: p.words[1] }
    }
}

/// True for energies of the rotation, levels of the vibration and tags that are held.
pub(super) fn held(layout: &Layout<2>) -> [bool; 3] {
    [layout.width == NUMBERS, layout.words[0], layout.words[1]]
}

/// Particles of a tile at which its columns still fit the second cache.
const BEST: f64 = 4096.0;
/// Most cells of a tile: keys have 16 bits, of which species take up to 8.
const MOST_CELLS: usize = 256;

/// Tiles for so many particles per cell, a power of two of cells each way.
pub(super) fn tiling(grid: &Grid, per_cell: f64) -> Tiling {
    let mut shift = [0; 2];
    // Grows along the axis that has more cells in the tile's favour until a tile is full.
    loop {
        let along_x = shift[0] <= shift[1] && (1 << shift[0]) < grid.cells[0] || (1 << shift[1]) >= grid.cells[1];
        let axis = usize::from(!along_x);
        let cells = 2_usize << (shift[0] + shift[1]);
        if cells > MOST_CELLS || cells as f64 * per_cell > BEST || (1 << shift[axis]) >= grid.cells[axis] {
            break;
        }
        shift[axis] += 1;
    }
    let tile = shift.map(|s| 1 << s);
    Tiling::new(grid.cells, tile).with_depth(tile[1])
}

/// The width of a tile is two to this: no division.
#[inline(always)]
pub(super) fn shift_of(tiling: &Tiling) -> u32 {
    tiling.tile[0].trailing_zeros()
}

/// Column and row in a tile of the cell in slot `slot` of it.
#[inline(always)]
pub(super) fn local(tiling: &Tiling, slot: usize) -> [usize; 2] {
    [slot & (tiling.tile[0] - 1), slot >> shift_of(tiling)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tile_is_one_row_of_a_power_of_two() {
        for (cells, per_cell) in [([100, 70], 10.0), ([1, 1], 5.0), ([300, 1], 10.0), ([1, 9], 1e4), ([33, 40], 100.0), ([7, 500], 1.0)] {
            let grid = Grid { cells, h: [1.0; 2], origin: [0.0; 2], dimensions: 2 };
            let tiling = tiling(&grid, per_cell);
            let slots = tiling.cells_of_row();
            assert!(slots <= MOST_CELLS && slots as f64 * per_cell <= BEST.max(per_cell), "{tiling:?}");
            assert!((0..tiling.len()).all(|t| tiling.rows(t) == 1), "{tiling:?}");
            for c in 0..grid.len() {
                let [i, j] = grid.cell(c);
                let at = tiling.locate(i, j);
                let (corner, size) = tiling.bounds(at.tile as usize);
                let [x, y] = local(&tiling, usize::from(at.cell));
                assert!([corner[0] + x, corner[1] + y] == [i, j] && x < size[0] && y < size[1]);
            }
        }
    }
}
