//! Tiles with their particles.

use super::mosaic::{Mosaic, Place};
use super::row::{Layout, Particle, Row};
use crate::real::RealScalar;

/// A rectangle of cells and its particles.
#[derive(Debug, Clone)]
pub struct Tile<T, const N: usize, const B: usize = 0> {
    /// Its lowest cell.
    pub corner: [usize; 2],
    /// Its cells per axis: fewer than the tile size at the upper sides.
    pub cells: [usize; 2],
    /// Particles, row by row.
    pub rows: Vec<Row<T, N, B>>,
}

impl<T: RealScalar, const N: usize, const B: usize> Tile<T, N, B> {
    /// Number of particles.
    pub fn len(&self) -> usize {
        self.rows.iter().map(Row::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.iter().all(Row::is_empty)
    }
}

/// All particles of one kind.
#[derive(Debug, Clone)]
pub struct Store<T, const N: usize, const B: usize = 0> {
    /// How the domain is cut.
    pub mosaic: Mosaic,
    /// Tiles, as the mosaic numbers them.
    pub tiles: Vec<Tile<T, N, B>>,
    layout: Layout,
}

impl<T: RealScalar, const N: usize, const B: usize> Store<T, N, B> {
    /// An empty store with room for `expected` particles spread evenly.
    pub fn new(mosaic: Mosaic, layout: Layout, expected: usize) -> Self {
        let per_cell = expected as f64 / (mosaic.cells[0] * mosaic.cells[1]) as f64;
        let tiles = (0..mosaic.len())
            .map(|t| {
                let (corner, cells) = mosaic.bounds(t);
                // Four standard deviations of a random load; rows that need more grow.
                let mean = per_cell * (cells[0] * mosaic.depth) as f64;
                let room = if expected == 0 { 0 } else { (mean + 4.0 * mean.sqrt() + 8.0) as usize };
                Tile { corner, cells, rows: (0..mosaic.rows(t)).map(|_| Row::new(layout, room)).collect() }
            })
            .collect();
        Self { mosaic, tiles, layout }
    }

    /// The columns held.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Number of particles.
    pub fn len(&self) -> usize {
        self.tiles.iter().map(Tile::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tiles.iter().all(Tile::is_empty)
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        self.tiles.iter().flat_map(|t| &t.rows).map(|row| row.memory() + size_of::<Row<T, N, B>>()).sum()
    }

    /// Removes all particles; the room stays.
    pub fn clear(&mut self) {
        self.tiles.iter_mut().flat_map(|t| &mut t.rows).for_each(Row::clear);
    }

    /// Rows with their lowest cell, tile by tile: the order in which everything is told and put back.
    pub fn rows(&self) -> impl Iterator<Item = ([usize; 2], &Row<T, N, B>)> {
        let depth = self.mosaic.depth;
        self.tiles.iter().flat_map(move |t| t.rows.iter().enumerate().map(move |(r, row)| ([t.corner[0], t.corner[1] + r * depth], row)))
    }

    /// All particles with their places, in the order of [`Store::rows`]. Put into an empty store of the same tiles with
    /// [`Store::insert`] they come to lie as they did.
    pub fn iter(&self) -> impl Iterator<Item = (Place, Particle<T, N, B>)> {
        self.tiles.iter().enumerate().flat_map(|(t, tile)| {
            tile.rows.iter().enumerate().flat_map(move |(r, row)| {
                (0..row.len()).map(move |k| {
                    let p = row.get(k);
                    (Place { tile: t as u32, row: r as u16, column: p.column }, p)
                })
            })
        })
    }

    /// Puts a particle into cell `(i, j)` of the domain, whatever cell it names itself.
    #[inline]
    pub fn insert(&mut self, i: usize, j: usize, mut p: Particle<T, N, B>) {
        let place = self.mosaic.place(i, j);
        p.column = place.column;
        self.tiles[place.tile as usize].rows[usize::from(place.row)].push(&p);
    }
}
