//! Value types of columns, and the set of columns that a store holds.

use bytemuck::Pod;

/// A whole number of a particle: tag, quantum numbers.
pub trait Word: Pod + PartialEq + std::fmt::Debug + Send + Sync + 'static {}

impl Word for u32 {}
impl Word for u64 {}

/// Key of a particle: its cell in the row and its kind, if there are several, as the cell times the number of kinds plus the kind.
pub trait Key: Pod + Ord + std::fmt::Debug + Send + Sync + 'static {
    /// Marks a slot without a particle; nothing for a byte, which has no value to spare.
    const HOLE: Option<Self>;
    /// Number of keys: 0 to this, less one.
    const COUNT: usize;

    /// The key of this number, which is below [`Key::COUNT`].
    fn of(number: usize) -> Self;

    /// Number of the key.
    fn number(self) -> usize;

    /// Returns true if the key marks a slot without a particle.
    #[inline(always)]
    fn is_hole(self) -> bool {
        Self::HOLE == Some(self)
    }
}

impl Key for u8 {
    const HOLE: Option<Self> = None;
    const COUNT: usize = 1 << 8;

    #[inline(always)]
    fn of(number: usize) -> Self {
        debug_assert!(number < Self::COUNT);
        number as u8
    }

    #[inline(always)]
    fn number(self) -> usize {
        usize::from(self)
    }
}

impl Key for u16 {
    const HOLE: Option<Self> = Some(u16::MAX);
    const COUNT: usize = (1 << 16) - 1;

    #[inline(always)]
    fn of(number: usize) -> Self {
        debug_assert!(number < Self::COUNT);
        number as u16
    }

    #[inline(always)]
    fn number(self) -> usize {
        usize::from(self)
    }
}

/// Selection of the columns that a store holds out of those of its type, and the meaning of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout<const W: usize = 1> {
    /// Number of columns of numbers held, the first ones. Others read as 1, as a factor that all have in common.
    pub width: usize,
    /// Selection of the columns of words; those that are not held read as 0.
    pub words: [bool; W],
    /// Kinds of particles that keys tell apart: 1 where a key is just the cell.
    pub kinds: usize,
    /// Slots that there are at least behind the last particle, for whoever reads whole registers from any slot on.
    pub spare: usize,
}

impl<const W: usize> Layout<W> {
    /// `width` columns of numbers, one kind of particles, no words, and nothing to spare.
    pub fn new(width: usize) -> Self {
        Self { width, words: [false; W], kinds: 1, spare: 0 }
    }

    /// The key of a particle of a kind in a cell of a row.
    #[inline(always)]
    pub fn key<K: Key>(&self, cell: u8, kind: usize) -> K {
        K::of(usize::from(cell) * self.kinds + kind)
    }

    /// Cell and kind of a key.
    #[inline(always)]
    pub fn cell_and_kind<K: Key>(&self, key: K) -> (u8, usize) {
        ((key.number() / self.kinds) as u8, key.number() % self.kinds)
    }
}
