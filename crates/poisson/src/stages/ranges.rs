//! Slabs of a level by part.

use std::ops::Range;

/// Even shares of slabs, as [`Ranges::even`] has them.
pub(super) fn even(parts: usize, slabs: usize, [first, step]: [usize; 2]) -> impl ExactSizeIterator<Item = Range<usize>> {
    let start = move |part: usize| match part * slabs / parts {
        begin if part == 0 || part == parts || begin < first => begin,
        begin => first + (begin - first) / step * step,
    };
    (0..parts).map(move |part| start(part)..start(part + 1))
}

/// Even shares of a level's slabs, or none where the level is too small: all parts then work on it alike.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Ranges {
    /// One range a part, in order; none where all work on all.
    ranges: Vec<Range<usize>>,
    slabs: usize,
}

impl Ranges {
    /// Even shares of `slabs` slabs among `parts`, each but the first of which begins at one of `begins`: the first such slab, and
    /// from one to the next.
    pub(super) fn even(parts: usize, slabs: usize, begins: [usize; 2], large_enough: impl Fn(usize) -> bool) -> Self {
        Self::of(even(parts, slabs, begins).collect(), slabs, large_enough)
    }

    /// Shares of the level below one with these: the coarse slabs on a part's fine ones, the first of which `coarse_start` gives.
    pub(super) fn below(&self, coarse_start: impl Fn(usize) -> usize, slabs: usize, large_enough: impl Fn(usize) -> bool) -> Self {
        let start = |fine: usize| coarse_start(fine).min(slabs);
        Self::of(self.ranges.iter().map(|range| start(range.start)..start(range.end)).collect(), slabs, large_enough)
    }

    fn of(ranges: Vec<Range<usize>>, slabs: usize, large_enough: impl Fn(usize) -> bool) -> Self {
        let divided = ranges.len() > 1 && ranges.iter().all(|range| large_enough(range.len()));
        Self { ranges: if divided { ranges } else { Vec::new() }, slabs }
    }

    /// The level as all parts work on it alike.
    pub(super) fn whole(slabs: usize) -> Self {
        Self { ranges: Vec::new(), slabs }
    }

    /// Returns true if parts have different slabs.
    pub(super) fn divided(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// Slabs of the level.
    pub(super) fn slabs(&self) -> usize {
        self.slabs
    }

    /// Slabs of a part.
    pub(super) fn of_part(&self, part: usize) -> Range<usize> {
        self.ranges.get(part).cloned().unwrap_or(0..self.slabs)
    }

    /// Parts with their slabs, where they have different ones.
    pub(super) fn parts(&self) -> impl Iterator<Item = (usize, &Range<usize>)> {
        self.ranges.iter().enumerate()
    }

    /// Slabs beside those of a part, `depth` on both sides, by their numbers on the axis.
    pub(super) fn beside(&self, part: usize, depth: usize, periodic: bool) -> Vec<usize> {
        let range = self.of_part(part);
        let (slabs, depth) = (self.slabs as isize, depth as isize);
        let [start, end] = [range.start, range.end].map(|k| k as isize);
        let there = |k: &isize| periodic || (0..slabs).contains(k);
        let mut all: Vec<usize> =
            (start - depth..start).chain(end..end + depth).filter(there).map(|k| k.rem_euclid(slabs) as usize).collect();
        all.retain(|k| !range.contains(k));
        all.sort_unstable();
        all.dedup();
        all
    }
}
