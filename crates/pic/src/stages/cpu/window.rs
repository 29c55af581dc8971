//! The current of one tile, and how the tiles' currents become that of the domain.
//!
//! Every tile adds up its own current over its cells and the nodes around them that its particles reach. The rows of the
//! domain then collect from the tiles in the order of the tiles: no two threads write to one place, and the sums do not depend
//! on their number.

use std::ops::Range;

use zellige_engine::parallel::{chunks_mut, each};
use zellige_engine::real::RealScalar;

use super::store::Tiling;
use crate::grid::{ABOVE, BELOW, Grid};

/// Nodes around those that a tile's current reaches: values written there are zero, or go into a wall.
const MARGIN: usize = 1;

/// Current of a tile: nodes `-BELOW .. cells + ABOVE` per axis and a margin, row by row; on a line the rows that its particles
/// reach.
#[derive(Debug)]
pub(super) struct Window<T> {
    pub(super) pitch: usize,
    /// Rows below the tile's lowest corners.
    below: usize,
    pub(super) j: [Vec<T>; 3],
}

impl<T: RealScalar> Window<T> {
    /// None of a tile: its current is never asked for.
    pub(super) fn none() -> Self {
        Self { pitch: MARGIN + BELOW + ABOVE + MARGIN, below: 0, j: [const { Vec::new() }; 3] }
    }

    /// For a tile of at most `tile` cells.
    pub(super) fn new(tile: [usize; 2]) -> Self {
        let [pitch, rows] = tile.map(|n| MARGIN + BELOW + n + ABOVE + MARGIN);
        Self { pitch, below: BELOW + MARGIN, j: std::array::from_fn(|_| vec![T::ZERO; pitch * rows]) }
    }

    /// For at most `cells` cells of a line: two corners across it for linear shapes, four for quadratic ones, from the lower corner
    /// of the cells on (see `MIDST` of advance.rs).
    pub(super) fn on_line(cells: usize, order: u32) -> Self {
        let (pitch, rows) = (MARGIN + BELOW + cells + ABOVE + MARGIN, if order == 1 { 2 } else { 4 });
        Self { pitch, below: 0, j: std::array::from_fn(|_| vec![T::ZERO; pitch * rows]) }
    }

    /// Cells that it is wide enough for.
    pub(super) fn width(&self) -> usize {
        self.pitch - (MARGIN + BELOW + ABOVE + MARGIN)
    }

    /// Sets all to zero.
    pub(super) fn clear(&mut self) {
        self.j.iter_mut().for_each(|j| j.fill(T::ZERO));
    }

    /// Place of the node `(i, j)` counted from the tile's lowest corner.
    #[inline(always)]
    pub(super) fn at(&self, i: isize, j: isize) -> usize {
        (j + self.below as isize) as usize * self.pitch + (i + (BELOW + MARGIN) as isize) as usize
    }

    /// Nodes that a tile of `cells` cells reaches in row `j` of nodes, counted from its lowest corners, from node `-BELOW` on;
    /// nothing where the row is no part of it.
    pub(super) fn nodes(&self, cells: usize, j: isize) -> Option<Range<usize>> {
        let from = self.has(j).then(|| self.at(-(BELOW as isize), j))?;
        Some(from..from + BELOW + cells + ABOVE)
    }

    /// True if row `j` of nodes, counted from the tile's lowest corners, is a part of it.
    fn has(&self, j: isize) -> bool {
        (0..(self.j[0].len() / self.pitch) as isize).contains(&(j + self.below as isize))
    }

    /// Adds the current of a band of the tile whose lowest row is row `first` of the tile; `part` is as wide as this.
    pub(super) fn add(&mut self, part: &Self, first: usize) {
        debug_assert_eq!((self.pitch, self.below), (part.pitch, part.below));
        for (to, from) in self.j.iter_mut().zip(&part.j) {
            to[first * self.pitch..].iter_mut().zip(from).for_each(|(a, b)| *a += *b);
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.j.iter().map(|j| j.len() * size_of::<T>()).sum()
    }
}

/// Adds the tiles' currents to `j` on the rows of nodes `collected`. All windows of a domain have the rows of `one`.
pub(super) fn collect<T: RealScalar>(
    grid: &Grid,
    tiling: &Tiling,
    (windows, one): (&[Window<T>], &Window<T>),
    collected: Range<isize>,
    j: &mut [Vec<T>; 3],
) {
    let (pitch, first) = (grid.pitch(), grid.place(collected.start) * grid.pitch());
    let height = tiling.tile[1] as isize;
    let [jx, jy, jz] = j;
    let some = first..first + collected.len() * pitch;
    let arrays = [jx, jy, jz].map(|j| &mut j[some.clone()]);
    let [jx, jy, jz] = arrays.map(|j| chunks_mut(j, pitch));
    each((jx, jy, jz), |row, (jx, jy, jz)| {
        let row = collected.start + row as isize;
        // Tiles that reach this row: those whose last cell is ABOVE rows below it, to those whose first is BELOW above it.
        let first = (row - ABOVE as isize).div_euclid(height).max(0) as usize;
        let last = ((row + BELOW as isize) / height) as usize;
        for ty in first..=last.min(tiling.tiles[1] - 1) {
            let inside = row - ty as isize * height;
            let rows = tiling.tile[1].min(tiling.cells[1] - ty * tiling.tile[1]);
            if inside >= (rows + ABOVE) as isize || !one.has(inside) {
                continue;
            }
            let from = one.at(-(BELOW as isize), inside);
            for (tx, window) in windows[ty * tiling.tiles[0]..][..tiling.tiles[0]].iter().enumerate() {
                let (corner, cells) = tiling.bounds(ty * tiling.tiles[0] + tx);
                if cells[0] == 0 {
                    continue;
                }
                let (corner, n) = (corner[0], BELOW + cells[0] + ABOVE);
                for (to, part) in [&mut *jx, &mut *jy, &mut *jz].into_iter().zip(&window.j) {
                    // The row's first value is node -BELOW, as is the window's.
                    for (a, b) in to[corner..corner + n].iter_mut().zip(&part[from..from + n]) {
                        *a += *b;
                    }
                }
            }
        }
    });
}
