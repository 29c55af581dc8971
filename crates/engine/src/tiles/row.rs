//! A row: the bucket of particles, in columns.

use bytemuck::{Pod, Zeroable};

use crate::real::RealScalar;

/// Rows hold room for multiples of this many particles: two of the widest registers.
const GRAIN: usize = 32;

/// A cache line, for alignment.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u8; 64]);

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Line")
    }
}

/// Which of the columns that a type has room for are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Columns of numbers: the first so many. Those that are not held read as 1, as a factor that all have in common.
    pub width: usize,
    /// Whether there are tags; they read as 0 where not.
    pub tagged: bool,
}

/// One particle out of its row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Particle<T, const N: usize, const B: usize = 0> {
    /// Numbers.
    pub v: [T; N],
    /// Bytes.
    pub bytes: [u8; B],
    /// Tag, 0 where there is none.
    pub tag: u64,
    /// Its cell in the row.
    pub column: u8,
}

/// The columns of a row, `capacity` entries each, to be worked on. What lies behind the last particle is old, but never without
/// value: whatever computes with it stays in bounds of its type.
#[derive(Debug)]
pub struct Columns<'a, T, const N: usize, const B: usize = 0> {
    /// Numbers; empty where not held.
    pub v: [&'a mut [T]; N],
    /// Bytes.
    pub bytes: [&'a mut [u8]; B],
    /// Cells in the row.
    pub cells: &'a mut [u8],
    /// Tags; empty where not held.
    pub tags: &'a mut [u64],
}

/// Particles in one row of a tile.
#[derive(Debug, Clone)]
pub struct Row<T, const N: usize, const B: usize = 0> {
    len: usize,
    capacity: usize,
    layout: Layout,
    values: Vec<Line>,
    bytes: [Vec<u8>; B],
    cells: Vec<u8>,
    tags: Vec<u64>,
    kind: std::marker::PhantomData<T>,
}

impl<T: RealScalar, const N: usize, const B: usize> Row<T, N, B> {
    /// An empty row with room for `capacity` particles at least.
    ///
    /// # Panics
    /// Where the layout is wider than `N`.
    pub fn new(layout: Layout, capacity: usize) -> Self {
        assert!(layout.width <= N, "{} columns of numbers, {N} are possible", layout.width);
        let (bytes, kind) = (std::array::from_fn(|_| Vec::new()), std::marker::PhantomData);
        let mut row = Self { len: 0, capacity: 0, layout, values: Vec::new(), bytes, cells: Vec::new(), tags: Vec::new(), kind };
        row.reserve(capacity);
        row
    }

    /// Number of particles.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Particles that there is room for.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The columns held.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        self.values.len() * size_of::<Line>() + self.capacity * (B + 1) + self.tags.len() * size_of::<u64>()
    }

    /// Makes room for `capacity` particles at least. New slots hold zeros: whatever computes with them stays finite.
    pub fn reserve(&mut self, capacity: usize) {
        let capacity = capacity.next_multiple_of(GRAIN);
        if capacity <= self.capacity {
            return;
        }
        let width = self.layout.width;
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
        self.bytes.iter_mut().for_each(|b| b.resize(capacity, 0));
        if self.layout.tagged {
            self.tags.resize(capacity, 0);
        }
        self.capacity = capacity;
    }

    /// All columns, to be worked on in place.
    pub fn columns_mut(&mut self) -> Columns<'_, T, N, B> {
        let (capacity, width) = (self.capacity.max(1), self.layout.width);
        let mut columns = bytemuck::cast_slice_mut::<Line, T>(&mut self.values).chunks_exact_mut(capacity);
        let v = std::array::from_fn(|k| if k < width { columns.next().unwrap_or_default() } else { Default::default() });
        Columns { v, bytes: self.bytes.each_mut().map(|b| &mut b[..]), cells: &mut self.cells, tags: &mut self.tags }
    }

    /// Column `k` of numbers, one of those that are held.
    pub fn column(&self, k: usize) -> &[T] {
        &bytemuck::cast_slice::<Line, T>(&self.values)[k * self.capacity..][..self.len]
    }

    /// Cells of the particles.
    pub fn cells(&self) -> &[u8] {
        &self.cells[..self.len]
    }

    /// The same, to be changed.
    pub fn cells_mut(&mut self) -> &mut [u8] {
        &mut self.cells[..self.len]
    }

    /// Column `k` of bytes.
    pub fn bytes(&self, k: usize) -> &[u8] {
        &self.bytes[k][..self.len]
    }

    /// Tags; empty where there are none.
    pub fn tags(&self) -> &[u64] {
        &self.tags[..self.len.min(self.tags.len())]
    }

    /// The particle in slot `k`.
    #[inline(always)]
    pub fn get(&self, k: usize) -> Particle<T, N, B> {
        debug_assert!(k < self.capacity);
        let values: &[T] = bytemuck::cast_slice(&self.values);
        let mut v = [T::ONE; N];
        for (c, v) in v.iter_mut().enumerate().take(self.layout.width) {
            *v = values[c * self.capacity + k];
        }
        let bytes = std::array::from_fn(|b| self.bytes[b][k]);
        Particle { v, bytes, tag: if self.layout.tagged { self.tags[k] } else { 0 }, column: self.cells[k] }
    }

    /// Puts a particle into slot `k`.
    #[inline(always)]
    pub fn set(&mut self, k: usize, p: &Particle<T, N, B>) {
        let (width, capacity) = (self.layout.width, self.capacity);
        let values: &mut [T] = bytemuck::cast_slice_mut(&mut self.values);
        for c in 0..width {
            values[c * capacity + k] = p.v[c];
        }
        self.cells[k] = p.column;
        for (column, byte) in self.bytes.iter_mut().zip(p.bytes) {
            column[k] = byte;
        }
        if self.layout.tagged {
            self.tags[k] = p.tag;
        }
    }

    /// Appends a particle, growing by a quarter where there is no room.
    #[inline(always)]
    pub fn push(&mut self, p: &Particle<T, N, B>) {
        if self.len == self.capacity {
            self.reserve(self.len + self.len / 4 + 1);
        }
        self.len += 1;
        self.set(self.len - 1, p);
    }

    /// Removes all particles; the room stays.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Keeps the first `len` particles.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Exchanges the particles in `slots` with those in `others` of another row, pair by pair.
    pub fn swap(&mut self, slots: &[u32], row: &mut Self, others: &[u32]) {
        let (a, b) = (self.capacity, row.capacity);
        let values: (&mut [T], &mut [T]) = (bytemuck::cast_slice_mut(&mut self.values), bytemuck::cast_slice_mut(&mut row.values));
        let columns = values.0.chunks_exact_mut(a.max(1)).zip(values.1.chunks_exact_mut(b.max(1)));
        let pairs = || slots.iter().zip(others).map(|(k, l)| (*k as usize, *l as usize));
        for (mine, theirs) in columns {
            pairs().for_each(|(k, l)| std::mem::swap(&mut mine[k], &mut theirs[l]));
        }
        pairs().for_each(|(k, l)| std::mem::swap(&mut self.cells[k], &mut row.cells[l]));
        for (mine, theirs) in self.bytes.iter_mut().zip(&mut row.bytes) {
            pairs().for_each(|(k, l)| std::mem::swap(&mut mine[k], &mut theirs[l]));
        }
        if self.layout.tagged {
            pairs().for_each(|(k, l)| std::mem::swap(&mut self.tags[k], &mut row.tags[l]));
        }
    }

    /// Puts a particle into the last free slot of `holes`, or behind the others where there is none.
    pub fn fill(&mut self, holes: &mut Vec<u32>, p: &Particle<T, N, B>) {
        match holes.pop() {
            Some(slot) => self.set(slot as usize, p),
            None => self.push(p),
        }
    }

    /// Closes free slots with particles from the end of the row.
    pub fn close(&mut self, holes: &mut Vec<u32>) {
        // The last one first: what is taken from the end is never a free slot itself.
        holes.sort_unstable();
        for slot in holes.drain(..).rev() {
            self.swap_remove(slot as usize);
        }
    }

    /// Takes out slot `k`; the last particle moves there.
    pub fn swap_remove(&mut self, k: usize) -> Particle<T, N, B> {
        let gone = self.get(k);
        self.len -= 1;
        if k < self.len {
            let last = self.get(self.len);
            self.set(k, &last);
        }
        gone
    }

    /// The values by columns, for [`super::sort`]: a closure on each column of numbers that is held.
    pub(super) fn each_column(&mut self, mut f: impl FnMut(&mut [T])) {
        let (capacity, len) = (self.capacity.max(1), self.len);
        for column in bytemuck::cast_slice_mut::<Line, T>(&mut self.values).chunks_exact_mut(capacity).take(self.layout.width) {
            f(&mut column[..len]);
        }
    }
}
