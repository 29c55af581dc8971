//! Very full tiles cut into bands of rows, so that a dense target does not keep one thread busy and all others waiting.

use super::column::{Key, Word};
use super::row::Row;
use super::store::Tile;
use crate::real::RealScalar;

/// Rows of a tile that one task works on. A tile that is not too full is a single band.
#[derive(Debug)]
pub struct Band<'a, T, const N: usize, I = u64, const W: usize = 1, K = u8> {
    /// Lowest cell of the band.
    pub corner: [usize; 2],
    /// Cells of the band per axis.
    pub cells: [usize; 2],
    /// Number of the first row in the tile.
    pub first: usize,
    /// Particles, row by row.
    pub rows: &'a mut [Row<T, N, I, W, K>],
}

impl<T: RealScalar, const N: usize, I: Word, const W: usize, K: Key> Tile<T, N, I, W, K> {
    /// The tile as one band.
    pub fn whole(&mut self) -> Band<'_, T, N, I, W, K> {
        Band { corner: self.corner, cells: self.cells, first: 0, rows: &mut self.rows }
    }

    /// Number of bands of at most `most` particles that the tile is cut into: whole rows, as few bands as result when they are
    /// filled in order. A row with more particles is a band of its own. At least one, also for an empty tile. It depends on the
    /// particles alone, not on threads.
    pub fn band_count(&self, most: usize) -> usize {
        let (mut bands, mut load) = (1, 0);
        for row in &self.rows {
            if load > 0 && load + row.len() > most {
                bands += 1;
                load = 0;
            }
            load += row.len();
        }
        bands
    }

    /// The bands that [`Tile::band_count`] counts, `depth` rows of cells to a row.
    pub fn bands(&mut self, most: usize, depth: usize) -> impl Iterator<Item = Band<'_, T, N, I, W, K>> {
        let (corner, cells) = (self.corner, self.cells);
        let (mut rest, mut first) = (&mut self.rows[..], 0);
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let (mut n, mut load) = (0, 0);
            while n < rest.len() && (load == 0 || load + rest[n].len() <= most) {
                load += rest[n].len();
                n += 1;
            }
            let (rows, more) = std::mem::take(&mut rest).split_at_mut(n);
            rest = more;
            let low = first * depth;
            let height = (n * depth).min(cells[1] - low);
            let band = Band { corner: [corner[0], corner[1] + low], cells: [cells[0], height], first, rows };
            first += n;
            Some(band)
        })
    }
}
