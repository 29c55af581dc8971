//! A row: the bucket of particles, in columns.

use bytemuck::{Pod, Zeroable};

use super::column::{Key, Layout, Word};
use crate::large::Piece;
use crate::real::RealScalar;

/// The capacity of rows is a multiple of this many particles: two of the widest registers.
const GRAIN: usize = 32;

/// A cache line, for alignment.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(super) struct Line([u8; 64]);

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Line")
    }
}

/// One particle out of its row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Particle<T, const N: usize, I = u64, const W: usize = 1, K = u8> {
    /// Numbers.
    pub v: [T; N],
    /// Words.
    pub words: [I; W],
    /// Key: the cell in the row, and the kind.
    pub key: K,
}

/// The columns of a row, `capacity` entries each, to be worked on. What lies behind the last particle is old, but never without
/// value: whatever computes with it stays in bounds of its type.
#[derive(Debug)]
pub struct Columns<'a, T, const N: usize, I = u64, const W: usize = 1, K = u8> {
    /// Numbers; empty where not held.
    pub v: [&'a mut [T]; N],
    /// Words; empty where not held.
    pub words: [&'a mut [I]; W],
    /// Cells in the row, and kinds.
    pub keys: &'a mut [K],
}

/// Particles in one row of a tile.
///
/// A row may have free slots among the others, marked by [`Key::HOLE`], from a pass that writes back what it has read to the next
/// [`Row::sort_into`]. Everything else here takes it that there are none.
#[derive(Debug, Clone)]
pub struct Row<T, const N: usize, I = u64, const W: usize = 1, K = u8> {
    len: usize,
    capacity: usize,
    layout: Layout<W>,
    values: Piece<Line>,
    words: [Vec<I>; W],
    keys: Vec<K>,
    kind: std::marker::PhantomData<T>,
}

/// Slots of a row with room for `len` particles: with what the layout wants behind them, whole registers.
fn slots<const W: usize>(layout: Layout<W>, len: usize) -> usize {
    (len + if len == 0 { 0 } else { layout.spare }).next_multiple_of(GRAIN)
}

impl<T: RealScalar, const N: usize, I: Word, const W: usize, K: Key> Row<T, N, I, W, K> {
    /// An empty row with a capacity of at least `capacity` particles.
    ///
    /// # Panics
    /// Where the layout is wider than `N`.
    pub fn new(layout: Layout<W>, capacity: usize) -> Self {
        Self::on(Piece::zeros(Self::lines(layout, capacity)), layout, capacity)
    }

    /// An empty row whose numbers lie in `values`, as many lines of zeros as [`Row::lines`] asks for.
    pub(super) fn on(values: Piece<Line>, layout: Layout<W>, capacity: usize) -> Self {
        assert!(layout.width <= N, "{} columns of numbers, {N} are possible", layout.width);
        let (words, kind) = (std::array::from_fn(|_| Vec::new()), std::marker::PhantomData);
        let mut row = Self { len: 0, capacity: 0, layout, values, words, keys: Vec::new(), kind };
        row.extend(slots(layout, capacity));
        row
    }

    /// Lines of numbers of a row with a capacity of at least `capacity` particles.
    pub(super) fn lines(layout: Layout<W>, capacity: usize) -> usize {
        (layout.width * slots(layout, capacity) * size_of::<T>()).div_ceil(size_of::<Line>())
    }

    /// Number of particles; of slots in use where some are free.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no particles.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Capacity in particles.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The columns held.
    pub fn layout(&self) -> Layout<W> {
        self.layout
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        let words: usize = self.words.iter().map(Vec::len).sum();
        self.values.len() * size_of::<Line>() + words * size_of::<I>() + self.capacity * size_of::<K>()
    }

    /// Makes room for `len` particles and what the layout wants behind them, rounded up to whole registers. New slots hold zeros:
    /// whatever computes with them stays finite.
    pub fn reserve(&mut self, len: usize) {
        let capacity = slots(self.layout, len);
        if capacity <= self.capacity {
            return;
        }
        let mut values = Piece::zeros(Self::lines(self.layout, len));
        if self.len > 0 {
            let new: &mut [T] = bytemuck::cast_slice_mut(&mut values);
            let old: &[T] = bytemuck::cast_slice(&self.values);
            for k in 0..self.layout.width {
                new[k * capacity..][..self.len].copy_from_slice(&old[k * self.capacity..][..self.len]);
            }
        }
        std::mem::replace(&mut self.values, values).release();
        self.extend(capacity);
    }

    /// Keys and words for `capacity` slots, for which there are numbers.
    fn extend(&mut self, capacity: usize) {
        // To the slot, not to twice what was there.
        let more = capacity - self.keys.len();
        self.keys.reserve_exact(more);
        self.keys.resize(capacity, K::zeroed());
        for (column, held) in self.words.iter_mut().zip(self.layout.words) {
            if held {
                column.reserve_exact(more);
                column.resize(capacity, I::zeroed());
            }
        }
        self.capacity = capacity;
    }

    /// Makes room for `len` particles, and for an eighth more where there was not enough.
    #[inline(always)]
    pub fn room(&mut self, len: usize) {
        if len + self.layout.spare > self.capacity {
            self.reserve(len + len / 8);
        }
    }

    /// All columns, to be worked on in place.
    pub fn columns_mut(&mut self) -> Columns<'_, T, N, I, W, K> {
        let (capacity, width) = (self.capacity.max(1), self.layout.width);
        let mut columns = bytemuck::cast_slice_mut::<Line, T>(&mut self.values).chunks_exact_mut(capacity);
        let v = std::array::from_fn(|k| if k < width { columns.next().unwrap_or_default() } else { Default::default() });
        Columns { v, words: self.words.each_mut().map(|w| &mut w[..]), keys: &mut self.keys }
    }

    /// Column `k` of numbers, one of those that are held.
    pub fn column(&self, k: usize) -> &[T] {
        &bytemuck::cast_slice::<Line, T>(&self.values)[k * self.capacity..][..self.len]
    }

    /// Keys of the particles: their cells where there is one kind.
    #[inline(always)]
    pub fn keys(&self) -> &[K] {
        &self.keys[..self.len]
    }

    /// Mutable keys.
    pub fn keys_mut(&mut self) -> &mut [K] {
        &mut self.keys[..self.len]
    }

    /// Column `k` of words; empty where it is not held.
    pub fn word(&self, k: usize) -> &[I] {
        &self.words[k][..self.len.min(self.words[k].len())]
    }

    /// The particle in slot `k`.
    #[inline(always)]
    pub fn get(&self, k: usize) -> Particle<T, N, I, W, K> {
        debug_assert!(k < self.capacity);
        let values: &[T] = bytemuck::cast_slice(&self.values);
        let mut v = [T::ONE; N];
        for (c, v) in v.iter_mut().enumerate().take(self.layout.width) {
            *v = values[c * self.capacity + k];
        }
        let words = std::array::from_fn(|w| if self.layout.words[w] { self.words[w][k] } else { I::zeroed() });
        Particle { v, words, key: self.keys[k] }
    }

    /// Puts a particle into slot `k`.
    #[inline(always)]
    pub fn set(&mut self, k: usize, p: &Particle<T, N, I, W, K>) {
        let (width, capacity) = (self.layout.width, self.capacity);
        let values: &mut [T] = bytemuck::cast_slice_mut(&mut self.values);
        for c in 0..width {
            values[c * capacity + k] = p.v[c];
        }
        self.keys[k] = p.key;
        for w in 0..W {
            if self.layout.words[w] {
                self.words[w][k] = p.words[w];
            }
        }
    }

    /// Appends a particle, growing by an eighth where there is no room.
    #[inline(always)]
    pub fn push(&mut self, p: &Particle<T, N, I, W, K>) {
        self.room(self.len + 1);
        self.len += 1;
        self.set(self.len - 1, p);
    }

    /// Takes the first `len` slots to be in use. There is room for them; those that were not in use hold old values.
    pub fn set_len(&mut self, len: usize) {
        self.room(len);
        self.len = len;
    }

    /// Removes all particles; the capacity stays.
    pub fn clear(&mut self) {
        self.len = 0;
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
        pairs().for_each(|(k, l)| std::mem::swap(&mut self.keys[k], &mut row.keys[l]));
        for (mine, theirs) in self.words.iter_mut().zip(&mut row.words).filter(|(mine, _)| !mine.is_empty()) {
            pairs().for_each(|(k, l)| std::mem::swap(&mut mine[k], &mut theirs[l]));
        }
    }

    /// Puts a particle into the last free slot of `holes`, or behind the others where there is none.
    pub fn fill(&mut self, holes: &mut Vec<u32>, p: &Particle<T, N, I, W, K>) {
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
    pub fn swap_remove(&mut self, k: usize) -> Particle<T, N, I, W, K> {
        let gone = self.get(k);
        self.len -= 1;
        if k < self.len {
            let last = self.get(self.len);
            self.set(k, &last);
        }
        gone
    }

    /// Columns of numbers as one slice and the distance between them, for [`super::sort`].
    pub(super) fn values(&self) -> (&[T], usize) {
        (bytemuck::cast_slice(&self.values), self.capacity)
    }

    /// Mutable columns of numbers as one slice and the distance between them.
    pub(super) fn values_mut(&mut self) -> (&mut [T], usize) {
        (bytemuck::cast_slice_mut(&mut self.values), self.capacity)
    }
}
