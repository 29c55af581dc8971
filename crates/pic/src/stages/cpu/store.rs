//! The store of one species on the processor: tiles of cells, a bucket of particles per row of a tile's cells.
//!
//! Which row a particle lies in is exact after every step; inside a row the order is free, so nothing is ever sorted. A row
//! holds columns of numbers (`s`, `t`, `ux`, `uy`, `uz`, and `weight` where the species has one) and the cell's column in the
//! tile in a byte: 21 bytes a particle in single precision. It grows when it is full.

use bytemuck::{Pod, Zeroable};
use zellige_engine::real::RealScalar;

use crate::particles::Particles;

/// Columns of numbers in a row of a species with equal weights.
pub(super) const PLAIN: usize = 5;
/// Columns at most: the last one is the weight.
pub(super) const COLUMNS: usize = 6;
/// Rows hold room for multiples of this many particles: two of the widest registers.
const GRAIN: usize = 32;

/// A cache line, for alignment.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// One particle out of its row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Particle<T> {
    /// `s`, `t`, `ux`, `uy`, `uz`, weight.
    pub(super) v: [T; COLUMNS],
    /// Tag, 0 where there is none.
    pub(super) tag: u64,
    /// Column of its cell in the tile.
    pub(super) column: u8,
}

/// Particles in one row of a tile's cells.
#[derive(Debug)]
pub(super) struct Row<T> {
    len: usize,
    capacity: usize,
    weighted: bool,
    tagged: bool,
    values: Vec<Line>,
    cells: Vec<u8>,
    tags: Vec<u64>,
    kind: std::marker::PhantomData<T>,
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Line")
    }
}

impl<T: RealScalar> Row<T> {
    fn new(weighted: bool, tagged: bool, capacity: usize) -> Self {
        let kind = std::marker::PhantomData;
        let mut row = Self { len: 0, capacity: 0, weighted, tagged, values: Vec::new(), cells: Vec::new(), tags: Vec::new(), kind };
        row.reserve(capacity);
        row
    }

    fn width(&self) -> usize {
        if self.weighted { COLUMNS } else { PLAIN }
    }

    /// Number of particles.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn bytes(&self) -> usize {
        self.values.len() * size_of::<Line>() + self.cells.len() + self.tags.len() * size_of::<u64>()
    }

    /// Makes room for `capacity` particles at least. New slots hold zeros: whatever computes with them stays finite.
    pub(super) fn reserve(&mut self, capacity: usize) {
        let capacity = capacity.next_multiple_of(GRAIN);
        if capacity <= self.capacity {
            return;
        }
        let width = self.width();
        let mut values = vec![Line::zeroed(); (width * capacity * size_of::<T>()).div_ceil(size_of::<Line>())];
        if self.len > 0 {
            let new: &mut [T] = bytemuck::cast_slice_mut(&mut values);
            let old: &[T] = bytemuck::cast_slice(&self.values);
            for k in 0..width {
                new[k * capacity..][..self.len].copy_from_slice(&old[k * self.capacity..][..self.len]);
            }
        }
        self.values = values;
        self.cells.resize(capacity, 0);
        if self.tagged {
            self.tags.resize(capacity, 0);
        }
        self.capacity = capacity;
    }

    /// The columns of numbers, `capacity` each, and that of the cells; the sixth is empty without weights.
    pub(super) fn columns_mut(&mut self) -> ([&mut [T]; COLUMNS], &mut [u8]) {
        let (capacity, weighted) = (self.capacity.max(1), self.weighted);
        let mut columns = bytemuck::cast_slice_mut::<Line, T>(&mut self.values).chunks_exact_mut(capacity);
        let values = std::array::from_fn(|k| if k < PLAIN || weighted { columns.next().unwrap_or_default() } else { Default::default() });
        (values, &mut self.cells)
    }

    /// Column `k` of numbers.
    pub(super) fn column(&self, k: usize) -> &[T] {
        &bytemuck::cast_slice::<Line, T>(&self.values)[k * self.capacity..][..self.len]
    }

    /// Columns of the particles' cells in the tile.
    pub(super) fn cells(&self) -> &[u8] {
        &self.cells[..self.len]
    }

    /// The same, to be changed.
    pub(super) fn cells_mut(&mut self) -> &mut [u8] {
        &mut self.cells[..self.len]
    }

    /// The particle in slot `k`.
    #[inline(always)]
    pub(super) fn get(&self, k: usize) -> Particle<T> {
        debug_assert!(k < self.capacity);
        let values: &[T] = bytemuck::cast_slice(&self.values);
        let mut v = [T::ONE; COLUMNS];
        for (c, v) in v.iter_mut().enumerate().take(self.width()) {
            *v = values[c * self.capacity + k];
        }
        Particle { v, tag: if self.tagged { self.tags[k] } else { 0 }, column: self.cells[k] }
    }

    /// Puts a particle into slot `k`.
    #[inline(always)]
    pub(super) fn set(&mut self, k: usize, p: &Particle<T>) {
        let (width, capacity) = (self.width(), self.capacity);
        let values: &mut [T] = bytemuck::cast_slice_mut(&mut self.values);
        for c in 0..width {
            values[c * capacity + k] = p.v[c];
        }
        self.cells[k] = p.column;
        if self.tagged {
            self.tags[k] = p.tag;
        }
    }

    /// Appends a particle, growing by a quarter where there is no room.
    #[inline(always)]
    pub(super) fn push(&mut self, p: &Particle<T>) {
        if self.len == self.capacity {
            self.reserve(self.len + self.len / 4 + 1);
        }
        self.len += 1;
        self.set(self.len - 1, p);
    }

    /// Exchanges the particles in `slots` with those in `others` of another row, pair by pair.
    pub(super) fn swap(&mut self, slots: &[u32], row: &mut Self, others: &[u32]) {
        let (a, b) = (self.capacity, row.capacity);
        let values: (&mut [T], &mut [T]) = (bytemuck::cast_slice_mut(&mut self.values), bytemuck::cast_slice_mut(&mut row.values));
        let columns = values.0.chunks_exact_mut(a.max(1)).zip(values.1.chunks_exact_mut(b.max(1)));
        let pairs = || slots.iter().zip(others).map(|(k, l)| (*k as usize, *l as usize));
        for (mine, theirs) in columns {
            pairs().for_each(|(k, l)| std::mem::swap(&mut mine[k], &mut theirs[l]));
        }
        pairs().for_each(|(k, l)| std::mem::swap(&mut self.cells[k], &mut row.cells[l]));
        if self.tagged {
            pairs().for_each(|(k, l)| std::mem::swap(&mut self.tags[k], &mut row.tags[l]));
        }
    }

    /// Puts a particle into the last free slot of `holes`, or behind the others where there is none.
    pub(super) fn fill(&mut self, holes: &mut Vec<u32>, p: &Particle<T>) {
        match holes.pop() {
            Some(slot) => self.set(slot as usize, p),
            None => self.push(p),
        }
    }

    /// Closes free slots with particles from the end of the row.
    pub(super) fn close(&mut self, holes: &mut Vec<u32>) {
        // The last one first: what is taken from the end is never a free slot itself.
        holes.sort_unstable();
        for slot in holes.drain(..).rev() {
            self.swap_remove(slot as usize);
        }
    }

    /// Takes out slot `k`; the last particle moves there.
    pub(super) fn swap_remove(&mut self, k: usize) -> Particle<T> {
        let gone = self.get(k);
        self.len -= 1;
        if k < self.len {
            let last = self.get(self.len);
            self.set(k, &last);
        }
        gone
    }
}

/// A rectangle of cells and its particles.
#[derive(Debug)]
pub(super) struct Tile<T> {
    /// Its lowest cell.
    pub(super) corner: [usize; 2],
    /// Its cells per axis: fewer than the tile size at the upper sides.
    pub(super) cells: [usize; 2],
    /// Particles, one entry per row of cells.
    pub(super) rows: Vec<Row<T>>,
}

/// How the domain is cut into tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mosaic {
    /// Cells of the domain.
    pub(super) cells: [usize; 2],
    /// Cells of a tile.
    pub(super) tile: [usize; 2],
    /// Tiles per axis.
    pub(super) tiles: [usize; 2],
}

/// Where a cell is: tile, row in it, column in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) tile: u32,
    pub(super) row: u16,
    pub(super) column: u8,
}

impl Mosaic {
    /// Tiles of `tile` cells over `cells` cells; the last ones of an axis are smaller where it does not divide.
    pub(super) fn new(cells: [usize; 2], tile: [usize; 2]) -> Self {
        let tile = [tile[0].clamp(1, 128), tile[1].clamp(1, 1 << 15)];
        Self { cells, tile, tiles: [cells[0].div_ceil(tile[0]), cells[1].div_ceil(tile[1])] }
    }

    /// Number of tiles.
    pub(super) fn len(&self) -> usize {
        self.tiles[0] * self.tiles[1]
    }

    /// Lowest cell of a tile, and its cells.
    pub(super) fn bounds(&self, tile: usize) -> ([usize; 2], [usize; 2]) {
        let at = [tile % self.tiles[0], tile / self.tiles[0]];
        let corner = [at[0] * self.tile[0], at[1] * self.tile[1]];
        (corner, [0, 1].map(|a| self.tile[a].min(self.cells[a] - corner[a])))
    }

    /// Where cell `(i, j)` is.
    pub(super) fn place(&self, i: usize, j: usize) -> Place {
        let (x, y) = (i / self.tile[0], j / self.tile[1]);
        let tile = (y * self.tiles[0] + x) as u32;
        Place { tile, row: (j - y * self.tile[1]) as u16, column: (i - x * self.tile[0]) as u8 }
    }
}

/// All particles of a species.
#[derive(Debug)]
pub(super) struct Store<T> {
    pub(super) mosaic: Mosaic,
    pub(super) tiles: Vec<Tile<T>>,
    weighted: bool,
    tagged: bool,
}

impl<T: RealScalar> Store<T> {
    /// An empty store with room for `expected` particles spread evenly.
    pub(super) fn new(mosaic: Mosaic, weighted: bool, tagged: bool, expected: usize) -> Self {
        let per_cell = expected as f64 / (mosaic.cells[0] * mosaic.cells[1]) as f64;
        let tiles = (0..mosaic.len())
            .map(|t| {
                let (corner, cells) = mosaic.bounds(t);
                // Four standard deviations of a random load; rows that need more grow.
                let mean = per_cell * cells[0] as f64;
                let room = if expected == 0 { 0 } else { (mean + 4.0 * mean.sqrt() + 8.0) as usize };
                Tile { corner, cells, rows: (0..cells[1]).map(|_| Row::new(weighted, tagged, room)).collect() }
            })
            .collect();
        Self { mosaic, tiles, weighted, tagged }
    }

    /// Number of particles.
    pub(super) fn len(&self) -> usize {
        self.rows().map(|(.., row)| row.len()).sum()
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.rows().map(|(.., row)| row.bytes() + size_of::<Row<T>>()).sum()
    }

    /// Removes all particles.
    pub(super) fn clear(&mut self) {
        for row in self.tiles.iter_mut().flat_map(|t| &mut t.rows) {
            row.len = 0;
        }
    }

    /// Rows with their lowest cell, tile by tile.
    pub(super) fn rows(&self) -> impl Iterator<Item = (usize, usize, &Row<T>)> {
        self.tiles.iter().flat_map(|t| t.rows.iter().enumerate().map(|(r, row)| (t.corner[0], t.corner[1] + r, row)))
    }

    /// Puts particles in, in their order. Cells and columns have been checked.
    pub(super) fn insert(&mut self, p: &Particles) {
        for k in 0..p.len() {
            let place = self.mosaic.place(p.i[k] as usize, p.j[k] as usize);
            let weight = p.weight.get(k).copied().unwrap_or(1.0);
            let v = [p.s[k], p.t[k], p.u[0][k], p.u[1][k], p.u[2][k], weight].map(T::from_f64);
            let tag = p.tag.get(k).copied().unwrap_or(0);
            self.tiles[place.tile as usize].rows[place.row as usize].push(&Particle { v, tag, column: place.column });
        }
    }

    /// All particles: tile by tile, row by row, in the order of their slots. Put into an empty store of the same tiles they
    /// come to lie as they did.
    pub(super) fn export(&self) -> Particles {
        let n = self.len();
        let mut p = Particles { i: Vec::with_capacity(n), j: Vec::with_capacity(n), ..Particles::default() };
        for (i, j, row) in self.rows() {
            p.i.extend(row.cells().iter().map(|c| (i + usize::from(*c)) as u32));
            p.j.extend(std::iter::repeat_n(j as u32, row.len()));
            let into = |to: &mut Vec<f64>, k| to.extend(row.column(k).iter().map(|v| v.to_f64()));
            into(&mut p.s, 0);
            into(&mut p.t, 1);
            for c in 0..3 {
                into(&mut p.u[c], 2 + c);
            }
            if self.weighted {
                into(&mut p.weight, 5);
            }
            if self.tagged {
                p.tag.extend_from_slice(&row.tags[..row.len]);
            }
        }
        p
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_has_one_place() {
        for (cells, tile) in [([17, 5], [8, 16]), ([1, 9], [16, 4]), ([33, 40], [16, 16]), ([5, 1], [3, 3])] {
            let mosaic = Mosaic::new(cells, tile);
            let mut seen = std::collections::HashSet::new();
            for (i, j) in (0..cells[1]).flat_map(|j| (0..cells[0]).map(move |i| (i, j))) {
                let p = mosaic.place(i, j);
                let (corner, size) = mosaic.bounds(p.tile as usize);
                assert_eq!([corner[0] + usize::from(p.column), corner[1] + usize::from(p.row)], [i, j]);
                assert!(usize::from(p.column) < size[0] && usize::from(p.row) < size[1]);
                assert!(seen.insert((p.tile, p.row, p.column)));
            }
            let total: usize = (0..mosaic.len()).map(|t| mosaic.bounds(t).1.iter().product::<usize>()).sum();
            assert_eq!(total, cells[0] * cells[1]);
        }
    }

    /// Everything in one row: it grows, and what comes out is what went in, also after holes were filled.
    #[test]
    fn a_row_grows_and_keeps_its_particles() {
        let mut row = Row::<f32>::new(true, true, 0);
        let particle = |k: usize| Particle { v: [k as f32; COLUMNS], tag: k as u64, column: (k % 7) as u8 };
        for k in 0..1000 {
            row.push(&particle(k));
        }
        for k in 0..1000 {
            let p = row.get(k);
            assert_eq!((p.v, p.tag, p.column), ([k as f32; COLUMNS], k as u64, (k % 7) as u8));
        }
        let mut left: Vec<u64> = (0..400).map(|_| row.swap_remove(300).tag).collect();
        left.extend_from_slice(&row.tags[..row.len()]);
        left.sort_unstable();
        assert_eq!(left, (0..1000).collect::<Vec<_>>());
        assert!(row.capacity <= 1312, "grows by quarters: {}", row.capacity);
    }
}
