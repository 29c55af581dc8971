//! The slabs between the stages of a band: rings that hold the last few slabs of a stage, or of several stages that change
//! them in place.

use zellige_engine::real::RealScalar;

use super::field::{Aligned, Shape};

/// Slabs that a ring keeps for a stage that writes into another one: three are read while a fourth is written.
const KEPT: usize = 4;

/// The last slabs of a stage; slab `j` lies at `j` modulo the number kept.
#[derive(Debug)]
pub(super) struct Ring<T> {
    data: Aligned<T>,
    kept: usize,
    /// Values in a slab.
    slab: usize,
}

impl<T: RealScalar> Ring<T> {
    fn start(&self, j: isize) -> usize {
        j.rem_euclid(self.kept as isize) as usize * self.slab
    }

    /// Slab `j`.
    pub(super) fn get(&self, j: isize) -> &[T] {
        &self.data.get()[self.start(j)..][..self.slab]
    }

    /// Slab `j`, to write.
    pub(super) fn get_mut(&mut self, j: isize) -> &mut [T] {
        let start = self.start(j);
        &mut self.data.get_mut()[start..][..self.slab]
    }

    /// Slab `j` to write, and all others to read.
    pub(super) fn split_slab(&mut self, j: isize) -> (&mut [T], OtherSlabs<'_, T>) {
        let (start, kept, slab) = (self.start(j), self.kept, self.slab);
        let (before, rest) = self.data.get_mut().split_at_mut(start);
        let (own, after) = rest.split_at_mut(slab);
        (own, OtherSlabs { before, after, kept, slab })
    }
}

/// A ring without one of its slabs.
pub(super) struct OtherSlabs<'a, T> {
    before: &'a [T],
    after: &'a [T],
    kept: usize,
    slab: usize,
}

impl<'a, T> OtherSlabs<'a, T> {
    /// Slab `j`, which must not be the one that is missing.
    pub(super) fn get(&self, j: isize) -> &'a [T] {
        let start = j.rem_euclid(self.kept as isize) as usize * self.slab;
        match start.checked_sub(self.before.len() + self.slab) {
            Some(after) => &self.after[after..][..self.slab],
            None => &self.before[start..][..self.slab],
        }
    }
}

/// Buffers that the stages of a band share.
#[derive(Debug)]
pub(super) struct Scratch<T> {
    pub rings: Vec<Ring<T>>,
    /// The ring of each stage, and after them that of the residual.
    pub ring_of: Vec<usize>,
    /// A slab put together for a transfer.
    pub coarse: Aligned<T>,
    /// A row put together for a transfer.
    pub row: Aligned<T>,
    pub zeros: Aligned<T>,
}

impl<T: RealScalar> Scratch<T> {
    pub(super) fn new() -> Self {
        Self { rings: Vec::new(), ring_of: Vec::new(), coarse: Aligned::new(0), row: Aligned::new(0), zeros: Aligned::new(0) }
    }

    /// Allocates buffers for stages whose rings are `ring_of`.
    pub(super) fn reserve(&mut self, ring_of: &[usize], shape: Shape) {
        let slab = shape.slab();
        self.ring_of.clear();
        self.ring_of.extend_from_slice(ring_of);
        for ring in 0..=ring_of.iter().copied().max().unwrap_or(0) {
            if self.rings.len() == ring {
                self.rings.push(Ring { data: Aligned::new(0), kept: 0, slab: 0 });
            }
            // A stage that works in place reads a slab later than the one before it.
            let kept = KEPT + ring_of.iter().filter(|r| **r == ring).count().saturating_sub(1);
            let place = &mut self.rings[ring];
            place.data.reserve(kept * slab);
            (place.kept, place.slab) = (kept, slab);
        }
        self.coarse.reserve(slab);
        self.row.reserve(shape.stride);
        self.zeros.reserve(slab);
    }

    /// The ring of stage `s`.
    pub(super) fn stage(&mut self, s: usize) -> &mut Ring<T> {
        &mut self.rings[self.ring_of[s]]
    }

    pub(super) fn bytes(&self) -> u64 {
        self.rings.iter().map(|r| r.data.bytes()).sum::<u64>() + self.coarse.bytes() + self.row.bytes() + self.zeros.bytes()
    }
}
