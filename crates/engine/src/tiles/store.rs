//! Tiles with their particles.

use std::ops::Range;

use super::column::{Key, Layout, Word};
use super::row::{Particle, Row};
use super::tiling::{Location, Tiling};
use crate::large::Piece;
use crate::parallel::{map, owned};
use crate::real::RealScalar;

/// A rectangle of cells and its particles.
#[derive(Debug, Clone)]
pub struct Tile<T, const N: usize, I = u64, const W: usize = 1, K = u8> {
    /// Lowest cell of the tile.
    pub corner: [usize; 2],
    /// Cells of the tile per axis: fewer than the tile size at the upper sides.
    pub cells: [usize; 2],
    /// Particles, row by row.
    pub rows: Vec<Row<T, N, I, W, K>>,
}

impl<T: RealScalar, const N: usize, I: Word, const W: usize, K: Key> Tile<T, N, I, W, K> {
    /// Number of particles; of slots in use where rows have free ones.
    pub fn len(&self) -> usize {
        self.rows.iter().map(Row::len).sum()
    }

    /// Returns true if there are no particles.
    pub fn is_empty(&self) -> bool {
        self.rows.iter().all(Row::is_empty)
    }
}

/// All particles of one kind.
#[derive(Debug, Clone)]
pub struct Store<T, const N: usize, I = u64, const W: usize = 1, K = u8> {
    /// Division of the domain into tiles.
    pub tiling: Tiling,
    /// Tiles, as the tiling numbers them.
    pub tiles: Vec<Tile<T, N, I, W, K>>,
    layout: Layout<W>,
}

impl<T: RealScalar, const N: usize, I: Word, const W: usize, K: Key> Store<T, N, I, W, K> {
    /// An empty store with capacity for `expected` particles spread evenly.
    ///
    /// # Panics
    /// Where keys cannot tell all cells of a row and kinds apart.
    pub fn new(tiling: Tiling, layout: Layout<W>, expected: usize) -> Self {
        Self::of_part(tiling, layout, expected, |_| true)
    }

    /// An empty store of a part of a run: the tiles that it `owns` have rows, the others none, and nothing may be put into them.
    /// `expected` particles are spread over all tiles.
    ///
    /// # Panics
    /// As [`Store::new`].
    pub fn of_part(tiling: Tiling, layout: Layout<W>, expected: usize, owns: impl Fn(usize) -> bool + Sync) -> Self {
        let keys = tiling.cells_of_row() * layout.kinds;
        assert!(keys <= K::COUNT, "{} cells and {} kinds, {} keys", tiling.cells_of_row(), layout.kinds, K::COUNT);
        let per_cell = expected as f64 / (tiling.cells[0] * tiling.cells[1]) as f64;
        let tile = |t: usize| {
            let (corner, cells) = tiling.bounds(t);
            // Four standard deviations of a random load; rows that need more grow.
            let mean = per_cell * (cells[0] * tiling.depth) as f64;
            let room = if expected == 0 { 0 } else { (mean + 4.0 * mean.sqrt() + 8.0) as usize };
            (corner, cells, room, if owns(t) { tiling.rows(t) } else { 0 })
        };
        let tiles: Vec<_> = (0..tiling.len()).map(tile).collect();
        let lines = |(_, _, room, rows): &(_, _, usize, usize)| std::iter::repeat_n(Row::<T, N, I, W, K>::lines(layout, *room), *rows);
        // Numbers of all rows are one array, on large pages.
        let mut values = Piece::split(&tiles.iter().flat_map(lines).collect::<Vec<_>>()).into_iter();
        let tiles = tiles.into_iter().map(|tile| (tile, values.by_ref().take(tile.3).collect::<Vec<_>>())).collect();
        // By all threads, each of which the system gives memory near to it.
        let tiles = map(owned(tiles), |_, ((corner, cells, room, _), values)| {
            let rows = values.into_iter().map(|values| Row::on(values, layout, room)).collect();
            Tile { corner, cells, rows }
        });
        Self { tiling, tiles, layout }
    }

    /// The columns held.
    pub fn layout(&self) -> Layout<W> {
        self.layout
    }

    /// Number of particles; of slots in use where rows have free ones.
    pub fn len(&self) -> usize {
        self.tiles.iter().map(Tile::len).sum()
    }

    /// Returns true if there are no particles.
    pub fn is_empty(&self) -> bool {
        self.tiles.iter().all(Tile::is_empty)
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        self.tiles.iter().flat_map(|t| &t.rows).map(|row| row.memory() + size_of::<Row<T, N, I, W, K>>()).sum()
    }

    /// Removes all particles; the capacity stays.
    pub fn clear(&mut self) {
        self.tiles.iter_mut().flat_map(|t| &mut t.rows).for_each(Row::clear);
    }

    /// Sets the tiling of an empty store whose domain has moved.
    pub fn set_tiling(&mut self, tiling: Tiling) {
        self.tiling = tiling;
        for (t, tile) in self.tiles.iter_mut().enumerate() {
            (tile.corner, tile.cells) = tiling.bounds(t);
        }
    }

    /// Moves the domain on by a cell along x. The first column of cells is empty, and the keys in the first column of tiles count
    /// from the next one. A column of tiles that is left behind becomes the last one.
    ///
    /// Of a row of tiles of which this part of a run has only some, the first one of `own`, whose particles the part before it has
    /// taken, becomes the last one.
    pub fn move_on(&mut self, own: Range<usize>) {
        let tiling = self.tiling.moved(1);
        if tiling.behind == 0 {
            let row = |tile: &usize| tile / tiling.tiles[0];
            let own: Vec<usize> = own.collect();
            own.chunk_by(|a, b| row(a) == row(b)).for_each(|some| self.tiles[some[0]..some[0] + some.len()].rotate_left(1));
        }
        self.set_tiling(tiling);
    }

    /// Rows with their lowest cell, tile by tile: the order in which everything is saved and restored.
    pub fn rows(&self) -> impl Iterator<Item = ([usize; 2], &Row<T, N, I, W, K>)> {
        let depth = self.tiling.depth;
        self.tiles.iter().flat_map(move |t| t.rows.iter().enumerate().map(move |(r, row)| ([t.corner[0], t.corner[1] + r * depth], row)))
    }

    /// All particles with their locations and kinds, in the order of [`Store::rows`], without free slots. Put into an empty
    /// store of the same tiles with [`Store::insert`] they lie as they did.
    pub fn iter(&self) -> impl Iterator<Item = (Location, usize, Particle<T, N, I, W, K>)> {
        let layout = self.layout;
        self.tiles.iter().enumerate().flat_map(move |(t, tile)| {
            tile.rows.iter().enumerate().flat_map(move |(r, row)| {
                (0..row.len()).filter(|k| !row.keys()[*k].is_hole()).map(move |k| {
                    let p = row.get(k);
                    let (cell, kind) = layout.cell_and_kind(p.key);
                    (Location { tile: t as u32, row: r as u16, cell }, kind, p)
                })
            })
        })
    }

    /// Puts a particle of a kind into cell `(i, j)` of the domain, whatever key it has itself.
    #[inline]
    pub fn insert(&mut self, i: usize, j: usize, kind: usize, mut p: Particle<T, N, I, W, K>) {
        let location = self.tiling.locate(i, j);
        p.key = self.layout.key(location.cell, kind);
        self.tiles[location.tile as usize].rows[usize::from(location.row)].push(&p);
    }
}
