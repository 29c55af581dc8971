//! Node values of a level in memory, laid out for whole vectors.
//!
//! A level is a stack of slabs: planes `z = const` in 3D, rows `y = const` in 2D (with one row each). A row of `nx`
//! nodes is stored as `[PAD][nx rounded up to PAD][PAD]` values: node `i` at `PAD + i`, the ghosts west and east of it
//! at `PAD - 1` and `PAD + nx`. What lies beyond the nodes is finite and has zero weight, so that rows are worked on
//! in blocks of `PAD` nodes without a rest.

use std::ops::Range;

use zellige_engine::real::RealScalar;

use crate::grid::{Grid, Level};

/// Lanes of a block, and the padding on both sides of a row.
pub(super) const PAD: usize = 16;

/// The shape of a level, seen as slabs of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// Nodes in a row.
    pub nx: usize,
    /// Rows in a slab.
    pub rows: usize,
    /// Slabs.
    pub slabs: usize,
    /// Values per row, padding included.
    pub stride: usize,
}

/// The hierarchy with the axes in the order (within a row, across the rows of a slab, across slabs): in 2D the flat
/// third axis takes the second place on every level. A collapsed axis of a coarse level keeps its place.
pub(super) fn in_slabs(levels: &[Level]) -> Vec<Level> {
    let mut levels = levels.to_vec();
    if levels.first().is_some_and(|l| l.grid.axes[2].is_flat()) {
        for level in &mut levels {
            level.grid.axes.swap(1, 2);
            if let Some(transfer) = &mut level.transfer {
                transfer.swap(1, 2);
            }
        }
    }
    levels
}

impl Shape {
    /// The shape of a grid whose axes are in the order of [`in_slabs`].
    pub(super) fn new(grid: &Grid) -> Self {
        let [x, y, z] = &grid.axes;
        let stride = 2 * PAD + x.nodes.next_multiple_of(PAD);
        Self { nx: x.nodes, rows: y.nodes, slabs: z.nodes, stride }
    }

    /// Values in a slab.
    pub(super) fn slab(self) -> usize {
        self.rows * self.stride
    }

    /// Nodes in all.
    pub(super) fn nodes(self) -> usize {
        self.nx * self.rows * self.slabs
    }

    /// Length of the block part of a row.
    pub(super) fn width(self) -> usize {
        self.stride - 2 * PAD
    }

    /// The nodes of row `j` in a slab, rounded up to whole blocks.
    pub(super) fn row<T>(self, slab: &[T], j: usize) -> &[T] {
        &slab[j * self.stride + PAD..][..self.width()]
    }

    /// Mutable row, as [`Shape::row`].
    pub(super) fn row_mut<T>(self, slab: &mut [T], j: usize) -> &mut [T] {
        &mut slab[j * self.stride + PAD..][..self.width()]
    }

    /// Row as of [`Shape::row`] with one more value on both sides.
    pub(super) fn with_ghosts<T>(self, slab: &[T], j: usize) -> &[T] {
        &slab[j * self.stride + PAD - 1..][..self.width() + 2]
    }

    /// Fills the ghosts of all rows of a slab: the nodes at the other end where x is periodic, else zero.
    pub(super) fn fill_ghosts<T: RealScalar>(self, slab: &mut [T], periodic: bool) {
        for row in slab.chunks_exact_mut(self.stride) {
            let (west, east) = if periodic { (row[PAD + self.nx - 1], row[PAD]) } else { (T::ZERO, T::ZERO) };
            row[PAD - 1] = west;
            row[PAD + self.nx] = east;
        }
    }
}

/// Memory whose first value starts a cache line.
#[derive(Debug, Clone)]
pub(super) struct Aligned<T> {
    data: Vec<T>,
    start: usize,
}

impl<T: RealScalar> Aligned<T> {
    pub(super) fn new(len: usize) -> Self {
        let slack = 64 / size_of::<T>();
        let data = vec![T::ZERO; len + slack];
        let start = data.as_ptr().align_offset(64).min(slack);
        Self { data, start }
    }

    pub(super) fn len(&self) -> usize {
        self.data.len() - 64 / size_of::<T>()
    }

    pub(super) fn get(&self) -> &[T] {
        &self.data[self.start..]
    }

    pub(super) fn get_mut(&mut self) -> &mut [T] {
        &mut self.data[self.start..]
    }

    /// Makes it at least `len` long; what it held is lost if it has to grow.
    pub(super) fn reserve(&mut self, len: usize) {
        if self.len() < len {
            *self = Self::new(len);
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.data.len() * size_of::<T>()) as u64
    }
}

/// Values on all nodes of a level.
#[derive(Debug, Clone)]
pub(super) struct Field<T> {
    /// The shape.
    pub shape: Shape,
    /// Slabs on both sides of a part's own that are up to date; a pass that writes the array makes it 0.
    pub beside: usize,
    data: Aligned<T>,
}

impl<T: RealScalar> Field<T> {
    /// Zeros.
    pub(super) fn new(shape: Shape) -> Self {
        Self { shape, beside: 0, data: Aligned::new(shape.slab() * shape.slabs) }
    }

    /// Sets the slabs of a range to zero.
    pub(super) fn clear(&mut self, slabs: Range<usize>) {
        let slab = self.shape.slab();
        self.all_mut()[slabs.start * slab..slabs.end * slab].fill(T::ZERO);
        self.beside = 0;
    }

    /// Slabs of a range, to write.
    pub(super) fn slabs_mut(&mut self, slabs: Range<usize>) -> &mut [T] {
        let slab = self.shape.slab();
        &mut self.all_mut()[slabs.start * slab..slabs.end * slab]
    }

    pub(super) fn bytes(&self) -> u64 {
        self.data.bytes()
    }

    pub(super) fn all(&self) -> &[T] {
        &self.data.get()[..self.shape.slab() * self.shape.slabs]
    }

    pub(super) fn all_mut(&mut self) -> &mut [T] {
        let len = self.shape.slab() * self.shape.slabs;
        &mut self.data.get_mut()[..len]
    }

    /// Slab `k`.
    pub(super) fn slab(&self, k: usize) -> &[T] {
        &self.all()[k * self.shape.slab()..][..self.shape.slab()]
    }

    /// Slab `k`, counted round a periodic axis.
    pub(super) fn wrapped(&self, k: isize) -> &[T] {
        self.slab(k.rem_euclid(self.shape.slabs as isize) as usize)
    }

    /// Node `i` of row `j` of slab `k`.
    pub(super) fn at(&self, i: usize, j: usize, k: usize) -> T {
        self.slab(k)[j * self.shape.stride + PAD + i]
    }

    /// Node `i` of row `j` of slab `k`, to write.
    pub(super) fn at_mut(&mut self, i: usize, j: usize, k: usize) -> &mut T {
        let place = k * self.shape.slab() + j * self.shape.stride + PAD + i;
        &mut self.all_mut()[place]
    }
}
