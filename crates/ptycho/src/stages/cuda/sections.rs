//! Sections of the views, each of which has sums of its own.
//!
//! A tile's sums are taken section by section, and added up in the order of the sections: so parts of a run that consist of
//! sections add to no sum that another one has begun, and have their work at the same time.

use super::lists::{Tile, Visit};

/// Devices at most that all have work for their multiprocessors where views are many; a power of two.
pub(super) const DEVICES: usize = 8;
/// Views of a section from which on a few of its tiles' sums more cost next to nothing.
const SECTION: usize = 512;

/// First view of each section, and the number of views. A section is a range of the views whose sums are taken for themselves, and
/// added up afterwards: parts of a run that consist of sections do not wait for each other's sums.
pub(crate) fn sections(views: usize) -> Vec<usize> {
    let number = (0..=DEVICES.ilog2()).rev().map(|power| 1 << power).find(|number| views >= number * SECTION).unwrap_or(1);
    (0..=number).map(|section| section * views / number).collect()
}

/// Visits at which sections begin within tiles, whose numbers the tiles keep.
pub(super) fn cuts(tiles: &mut [Tile], visits: &[Visit], views: usize) -> Vec<u32> {
    let (bounds, mut cuts) = (sections(views), Vec::new());
    for tile in tiles.iter_mut() {
        tile.cut = cuts.len() as u32;
        let (begin, end) = tile.visits();
        let list = &visits[begin as usize..end as usize];
        let begins = bounds[1..].iter().map(|bound| list.partition_point(|visit| (visit.view() as usize) < *bound));
        let mut before = 0;
        for at in begins.filter(|at| (1..list.len()).contains(at)) {
            if at > before {
                cuts.push(begin + at as u32);
                before = at;
            }
        }
        tile.cuts = cuts.len() as u32 - tile.cut;
    }
    cuts
}

impl Tile {
    /// Ranges of its visits, section by section: one at least.
    pub(super) fn sections<'a>(&self, cuts: &'a [u32]) -> impl Iterator<Item = (u32, u32)> + use<'a> {
        let (begin, end) = self.visits();
        let cuts = cuts[self.cut as usize..(self.cut + self.cuts) as usize].iter().copied();
        std::iter::once(begin).chain(cuts.clone()).zip(cuts.chain([end]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stages::cuda::lists;

    #[test]
    fn parts_of_a_run_consist_of_sections() {
        for (views, number) in [(1, 1), (1023, 1), (1024, 2), (2100, 4), (4095, 4), (4096, 8), (1_000_003, 8)] {
            let bounds = sections(views);
            assert_eq!((bounds.len() - 1, bounds[0], bounds[number]), (number, 0, views));
            for parts in [1, 2, 4, 8].into_iter().filter(|parts| *parts <= number) {
                assert!((0..=parts).all(|part| bounds.contains(&(part * views / parts))), "{views} views, {parts} parts");
            }
        }
    }

    #[test]
    fn tiles_are_cut_where_sections_begin() {
        let model = lists::tests::sectioned();
        let ((tiles, visits, cuts), bounds) = (lists::tiles(&model, &model.views), sections(model.views.len()));
        let mut several = 0;
        for tile in &tiles {
            let ranges: Vec<(u32, u32)> = tile.sections(&cuts).collect();
            assert_eq!((ranges[0].0, ranges[ranges.len() - 1].1), tile.visits());
            assert!(ranges.windows(2).all(|pair| pair[0].1 == pair[1].0));
            several += usize::from(ranges.len() > 1);
            let section = |visit: &Visit| bounds.partition_point(|first| *first <= visit.view() as usize);
            let of: Vec<Vec<usize>> =
                ranges.iter().map(|(begin, end)| visits[*begin as usize..*end as usize].iter().map(section).collect()).collect();
            assert!(of.iter().all(|of| of.windows(2).all(|pair| pair[0] == pair[1])), "a sum of two sections");
            assert!(of.windows(2).all(|pair| pair[0][0] < pair[1][0]), "two sums of a section");
        }
        assert!(several > 20 && several < tiles.len(), "{several} of {} tiles", tiles.len());
    }
}
