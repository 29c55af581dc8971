//! Particles of a tile of cells, by column.
//!
//! Between steps a tile's particles are in no order; each has a key, its cell in the tile times the number of species plus its
//! species. [`HOLE`] marks the slot of a particle that has left.

use crate::grid::Grid;
use crate::model::{Model, Partner};

/// Key of a slot without a particle.
pub(super) const HOLE: u16 = u16::MAX;
/// Room behind the last particle, so that whole registers can be read.
const PAD: usize = 64;

/// Which columns there are besides place, velocity and key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) rotation: bool,
    pub(super) level: bool,
    /// Tags of the last collision.
    pub(super) tag: bool,
}

impl Kept {
    /// What a run needs.
    pub(super) fn new(model: &Model) -> Self {
        let c = &model.collisions;
        Self { rotation: c.rotation, level: c.vibration, tag: c.partner == Partner::Near }
    }
}

/// Columns of particles; those that no species needs stay empty.
#[derive(Debug, Default)]
pub(super) struct Columns {
    pub(super) x: Vec<f32>,
    pub(super) y: Vec<f32>,
    pub(super) v: [Vec<f32>; 3],
    pub(super) rotation: Vec<f32>,
    pub(super) level: Vec<u32>,
    pub(super) key: Vec<u16>,
    pub(super) tag: Vec<u32>,
}

impl Columns {
    /// Makes room for `n` particles: every column in use has at least that many slots.
    pub(super) fn reserve(&mut self, n: usize, kept: Kept) {
        if self.key.len() >= n + PAD {
            return;
        }
        let room = n + n / 8 + PAD;
        self.key.resize(room, HOLE);
        let [vx, vy, vz] = &mut self.v;
        for column in [&mut self.x, &mut self.y, vx, vy, vz] {
            column.resize(room, 0.0);
        }
        if kept.rotation {
            self.rotation.resize(room, 0.0);
        }
        if kept.level {
            self.level.resize(room, 0);
        }
        if kept.tag {
            self.tag.resize(room, 0);
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        4 * (self.x.capacity()
            + self.y.capacity()
            + self.v.iter().map(Vec::capacity).sum::<usize>()
            + self.rotation.capacity()
            + self.level.capacity()
            + self.tag.capacity())
            + 2 * self.key.capacity()
    }

    /// The particle in slot `i`.
    pub(super) fn get(&self, i: usize) -> Body {
        Body {
            x: self.x[i],
            y: self.y[i],
            v: [self.v[0][i], self.v[1][i], self.v[2][i]],
            rotation: self.rotation.get(i).copied().unwrap_or(0.0),
            level: self.level.get(i).copied().unwrap_or(0),
            tag: self.tag.get(i).copied().unwrap_or(0),
        }
    }

    /// Puts a particle into slot `i`, which exists.
    pub(super) fn put(&mut self, i: usize, key: u16, body: &Body) {
        (self.x[i], self.y[i], self.key[i]) = (body.x, body.y, key);
        for c in 0..3 {
            self.v[c][i] = body.v[c];
        }
        if let Some(rotation) = self.rotation.get_mut(i) {
            *rotation = body.rotation;
        }
        if let Some(level) = self.level.get_mut(i) {
            *level = body.level;
        }
        if let Some(tag) = self.tag.get_mut(i) {
            *tag = body.tag;
        }
    }
}

/// A particle by itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Body {
    pub(super) x: f32,
    pub(super) y: f32,
    pub(super) v: [f32; 3],
    pub(super) rotation: f32,
    pub(super) level: u32,
    /// A number that it shares with the particle that it collided with last.
    pub(super) tag: u32,
}

/// A particle on its way to another tile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Leaver {
    pub(super) tile: u32,
    pub(super) key: u16,
    pub(super) body: Body,
}

/// How the grid is laid out in tiles, of `1 << shift[0]` by `1 << shift[1]` cells; the last ones of an axis are smaller.
#[derive(Debug, Clone)]
pub(super) struct Mosaic {
    pub(super) cells: [usize; 2],
    pub(super) shift: [u32; 2],
    pub(super) tiles: [usize; 2],
}

/// Particles of a tile at which its columns still fit the second cache.
const BEST: f64 = 4096.0;
/// Most cells of a tile: keys have 16 bits, of which species take up to 8.
const MOST_CELLS: usize = 256;

impl Mosaic {
    /// For so many particles per cell.
    pub(super) fn new(grid: &Grid, per_cell: f64) -> Self {
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
        let tiles = [0, 1].map(|d| grid.cells[d].div_ceil(1 << shift[d]));
        Self { cells: grid.cells, shift, tiles }
    }

    /// Number of tiles.
    pub(super) fn len(&self) -> usize {
        self.tiles[0] * self.tiles[1]
    }

    /// Slots for cells of a tile, those included that a smaller tile at the end does not use.
    pub(super) fn slots(&self) -> usize {
        1 << (self.shift[0] + self.shift[1])
    }

    /// Lowest cell of a tile, and its cells.
    pub(super) fn bounds(&self, tile: usize) -> ([usize; 2], [usize; 2]) {
        let at = [tile % self.tiles[0], tile / self.tiles[0]];
        let corner = [0, 1].map(|d| at[d] << self.shift[d]);
        (corner, [0, 1].map(|d| (1 << self.shift[d]).min(self.cells[d] - corner[d])))
    }

    /// Tile and slot of a cell.
    pub(super) fn place(&self, cell: [usize; 2]) -> (usize, usize) {
        let tile = (cell[1] >> self.shift[1]) * self.tiles[0] + (cell[0] >> self.shift[0]);
        let local = [0, 1].map(|d| cell[d] & ((1 << self.shift[d]) - 1));
        (tile, local[1] << self.shift[0] | local[0])
    }

    /// The tiles around a tile, across periodic sides too, each once, in a fixed order; the tile itself is one of them, since a
    /// particle may leave the fast path and arrive where it was.
    pub(super) fn near(&self, tile: usize) -> Vec<u32> {
        let at = [tile % self.tiles[0], tile / self.tiles[0]];
        let mut all = Vec::with_capacity(9);
        for dy in [self.tiles[1] - 1, 0, 1] {
            for dx in [self.tiles[0] - 1, 0, 1] {
                let t = ((at[1] + dy) % self.tiles[1]) * self.tiles[0] + (at[0] + dx) % self.tiles[0];
                if !all.contains(&(t as u32)) {
                    all.push(t as u32);
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_has_one_slot_and_near_is_mutual() {
        for (cells, per_cell) in [([100, 70], 10.0), ([1, 1], 5.0), ([300, 1], 10.0), ([1, 9], 1e4), ([33, 40], 100.0), ([7, 500], 1.0)] {
            let grid = Grid { cells, h: [1.0; 2], origin: [0.0; 2], dimensions: 2 };
            let mosaic = Mosaic::new(&grid, per_cell);
            assert!(mosaic.slots() <= MOST_CELLS && mosaic.slots() as f64 * per_cell <= BEST.max(per_cell), "{mosaic:?}");
            let mut seen = std::collections::HashSet::new();
            for c in 0..grid.len() {
                let cell = grid.cell(c);
                let (tile, slot) = mosaic.place(cell);
                let (corner, size) = mosaic.bounds(tile);
                let local = [slot & ((1 << mosaic.shift[0]) - 1), slot >> mosaic.shift[0]];
                assert!([0, 1].iter().all(|d| corner[*d] + local[*d] == cell[*d] && local[*d] < size[*d]));
                assert!(slot < mosaic.slots() && seen.insert((tile, slot)));
            }
            for t in 0..mosaic.len() {
                assert!(mosaic.near(t).iter().all(|n| mosaic.near(*n as usize).contains(&(t as u32))));
            }
        }
    }
}
