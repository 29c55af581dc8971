//! Bands: the slabs of a level dealt out to threads in contiguous runs.
//!
//! A pass changes arrays in place while neighbours still need the old values, so each band takes a copy of the slabs
//! next to it before the pass starts, and computes what it needs of its neighbours' work again. The result is the same
//! for every number of bands.

use std::ops::Range;

use zellige_engine::real::RealScalar;

use super::field::{Aligned, Field};

/// Below this number of nodes a level is one band: waking threads costs more than the work.
const MIN_NODES_PER_BAND: usize = 1 << 14;

/// First and one past the last slab of each band of a part's own slabs of `nodes` nodes each, at most `threads` bands of at least
/// `4 halo` slabs.
pub(super) fn bounds(own: &Range<usize>, nodes: usize, threads: usize, halo: usize) -> Vec<(usize, usize)> {
    let slabs = own.len();
    let bands = threads.min(slabs * nodes / MIN_NODES_PER_BAND).min(slabs / (4 * halo.max(1))).max(1);
    (0..bands).map(|b| (own.start + b * slabs / bands, own.start + (b + 1) * slabs / bands)).collect()
}

/// A band of an array that the pass changes, with copies of `depth` slabs on both sides.
pub(super) struct Band<'a, T> {
    own: &'a mut [T],
    halo: &'a mut [T],
    first: isize,
    count: isize,
    depth: isize,
    slab: usize,
}

impl<T> Band<'_, T> {
    /// A band of nothing.
    pub(super) fn empty() -> Self {
        Self { own: &mut [], halo: &mut [], first: 0, count: 0, depth: 0, slab: 0 }
    }

    /// Returns whether slab `j` is the band's own, and its first value. Slabs count on beyond the ends of a periodic axis.
    fn place(&self, j: isize) -> (bool, usize) {
        let local = j - self.first;
        let (own, n) = if local < 0 {
            (false, local + self.depth)
        } else if local < self.count {
            (true, local)
        } else {
            (false, local - self.count + self.depth)
        };
        (own, n as usize * self.slab)
    }

    pub(super) fn get(&self, j: isize) -> &[T] {
        let (own, at) = self.place(j);
        if own { &self.own[at..at + self.slab] } else { &self.halo[at..at + self.slab] }
    }

    pub(super) fn get_mut(&mut self, j: isize) -> &mut [T] {
        let (own, at) = self.place(j);
        if own { &mut self.own[at..at + self.slab] } else { &mut self.halo[at..at + self.slab] }
    }

    /// Slab `j` and those before and after it, if all three are the band's own.
    #[inline(always)]
    pub(super) fn around(&mut self, j: isize) -> Option<&mut [T]> {
        let local = j - self.first;
        (1..self.count - 1).contains(&local).then(|| &mut self.own[(local as usize - 1) * self.slab..][..3 * self.slab])
    }

    /// Returns true if slab `j` is the band's own.
    pub(super) fn owns(&self, j: isize) -> bool {
        (0..self.count).contains(&(j - self.first))
    }

    /// Slab `j` to write, and others to read.
    #[inline(always)]
    pub(super) fn split_slab<const N: usize>(&mut self, j: isize, others: [Option<isize>; N]) -> (&mut [T], [Option<&[T]>; N]) {
        let (own, at) = self.place(j);
        let places = others.map(|k| k.map(|k| self.place(k)));
        let (same, other) = if own { (&mut *self.own, &*self.halo) } else { (&mut *self.halo, &*self.own) };
        let (before, rest) = same.split_at_mut(at);
        let (line, after) = rest.split_at_mut(self.slab);
        let (before, after, slab) = (&*before, &*after, self.slab);
        let get = |(in_own, from): (bool, usize)| {
            if in_own != own {
                &other[from..][..slab]
            } else if from < at {
                &before[from..][..slab]
            } else {
                &after[from - at - slab..][..slab]
            }
        };
        (line, places.map(|place| place.map(get)))
    }
}

/// An array as a band sees it.
pub(super) enum Slabs<'a, T> {
    /// Field that this pass only reads.
    Shared(&'a Field<T>),
    /// Changed in this pass.
    Band(Band<'a, T>),
}

impl<T: RealScalar> Slabs<'_, T> {
    pub(super) fn get(&self, j: isize) -> &[T] {
        match self {
            Self::Shared(field) => field.wrapped(j),
            Self::Band(band) => band.get(j),
        }
    }

    /// The slab to write; `None` if the array is only read.
    pub(super) fn get_mut(&mut self, j: isize) -> Option<&mut [T]> {
        match self {
            Self::Shared(_) => None,
            Self::Band(band) => Some(band.get_mut(j)),
        }
    }
}

/// Splits `field` along `bounds`, after copying `depth` slabs on both sides of each band into `halos`.
pub(super) fn split<'a, T: RealScalar>(
    field: &'a mut Field<T>,
    bounds: &[(usize, usize)],
    depth: usize,
    periodic: bool,
    halos: &'a mut [Aligned<T>],
) -> Vec<Band<'a, T>> {
    let (slab, slabs) = (field.shape.slab(), field.shape.slabs as isize);
    let whole = bounds[0].0 == 0 && bounds[0].1 == field.shape.slabs;
    let depth = if whole && !periodic { 0 } else { depth };
    for ((first, end), halo) in bounds.iter().zip(halos.iter_mut()) {
        halo.reserve(2 * depth * slab);
        let copies = halo.get_mut();
        for d in 0..2 * depth {
            let j = if d < depth { *first as isize - (depth - d) as isize } else { (*end + d - depth) as isize };
            if periodic || (0..slabs).contains(&j) {
                copies[d * slab..(d + 1) * slab].copy_from_slice(field.wrapped(j));
            }
        }
    }
    field.beside = 0;
    let mut rest = &mut field.all_mut()[bounds[0].0 * slab..];
    let mut bands = Vec::with_capacity(bounds.len());
    for ((first, end), halo) in bounds.iter().zip(halos) {
        let (own, after) = rest.split_at_mut((end - first) * slab);
        rest = after;
        let count = (end - first) as isize;
        bands.push(Band { own, halo: halo.get_mut(), first: *first as isize, count, depth: depth as isize, slab });
    }
    bands
}
