//! Tiles and sums for the probes by the parts that complete them.

use super::super::lists::Tile;
use super::super::stream::tile_ranges::{PartRange, SectionedTiles, TileRange, firsts};
use super::rounds::Touch;

/// Tiles of one part, and places of the sums of their sections, by the touches of all parts.
#[derive(Debug)]
pub(super) struct CompletedTiles {
    /// Tiles of which each part completes all sums.
    pub(super) of: Vec<Vec<u32>>,
    /// First place of the sums that each part completes of other tiles, and the end: all parts have these in the same places.
    pub(super) first: Vec<usize>,
    /// Tiles whose sums are added up here: those of which this part completes all, and then those of several parts.
    pub(super) sectioned: SectionedTiles,
    /// Number of the former.
    pub(super) alone: usize,
    /// Places in all.
    pub(super) places: usize,
}

impl CompletedTiles {
    /// Tiles of part `me`, whose touches get their places.
    pub(super) fn new(tiles: &[Tile], cuts: &[u32], touches: &mut [Vec<TileRange>], sums: usize, me: usize) -> Self {
        let mut completes = vec![0; sums];
        for (part, list) in touches.iter().enumerate() {
            list.iter().filter(|touch| touch.completes()).for_each(|touch| completes[touch.sum as usize] = part);
        }
        let mut of = vec![Vec::new(); touches.len()];
        let (mut alone, mut shared, mut first_sum) = (Vec::new(), Vec::new(), 0);
        let mut of_shared = vec![Vec::new(); touches.len()];
        for (number, tile) in tiles.iter().enumerate() {
            let sums = first_sum..first_sum + tile.sections(cuts).count();
            first_sum = sums.end;
            let part = completes[sums.start];
            if completes[sums.clone()].iter().any(|other| *other != part) {
                sums.clone().for_each(|sum| of_shared[completes[sum]].push(sum));
                shared.push((number as u32, sums));
            } else {
                of[part].push(number as u32);
                if part == me && sums.len() > 1 {
                    alone.push((number as u32, sums));
                }
            }
        }
        let mut places = vec![0; sums];
        let all = of_shared.iter().flatten().copied().chain(alone.iter().flat_map(|(_, sums)| sums.clone()));
        let count = all.zip(0..).map(|(sum, place)| places[sum] = place).count();
        touches[me].iter_mut().for_each(|touch| touch.place = places[touch.sum as usize]);
        let (alone_count, mut sectioned) = (alone.len(), SectionedTiles::default());
        alone.into_iter().chain(shared).for_each(|(tile, sums)| sectioned.push(tile, &places[sums]));
        Self { of, first: firsts(&of_shared), sectioned, alone: alone_count, places: count }
    }
}

/// Numbers of the sums that a part completes, in their order.
pub(super) fn complete<S: Touch>(touches: &[S]) -> Vec<u32> {
    let mut sums: Vec<u32> = touches.iter().filter(|touch| touch.completes()).map(|touch| touch.sum() as u32).collect();
    sums.sort_unstable();
    sums
}

/// Runs of numbers that follow each other: the first, and how many.
pub(super) fn runs(numbers: impl Iterator<Item = usize>) -> Vec<[usize; 2]> {
    let mut runs: Vec<[usize; 2]> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some([first, count]) if *first + *count == number => *count += 1,
            _ => runs.push([number, 1]),
        }
    }
    runs
}

/// Bundles of which each part completes all parts of the probes' sums; nothing if there are others.
pub(super) fn whole_bundles(bundles: &[u32], pieces: &[Vec<PartRange>], parts: usize) -> Option<Vec<Vec<usize>>> {
    let mut completes = vec![0; parts];
    for (part, list) in pieces.iter().enumerate() {
        list.iter().filter(|piece| piece.completes()).for_each(|piece| completes[piece.part as usize] = part);
    }
    let mut of = vec![Vec::new(); pieces.len()];
    for (bundle, ends) in bundles.windows(2).enumerate() {
        let here = &completes[ends[0] as usize..ends[1] as usize];
        if here.iter().any(|part| *part != here[0]) {
            return None;
        }
        of[here[0]].push(bundle);
    }
    Some(of)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::stages::cuda::lists;
    use crate::stages::cuda::stream::tile_ranges::{pieces, touches};

    /// All parts join the sums of a tile of several parts alike, each from where it was written or copied to.
    #[test]
    fn every_part_finds_every_tile() {
        for (model, parts) in
            [2, 3, 4, 8].into_iter().flat_map(|parts| [(lists::tests::model(), parts), (lists::tests::sectioned(), parts)])
        {
            let lists = lists::tiles(&model, &model.views);
            let bounds: Vec<usize> = (0..=parts).map(|part| part * model.views.len() / parts).collect();
            let all: Vec<(Vec<TileRange>, CompletedTiles)> = (0..parts)
                .map(|me| {
                    let (mut of, sums) = touches(&lists, &bounds);
                    let completed = CompletedTiles::new(&lists.0, &lists.2, &mut of, sums, me);
                    (of.swap_remove(me), completed)
                })
                .collect();
            let mut shared = HashMap::new();
            for (me, (touches, CompletedTiles { first, .. })) in all.iter().enumerate() {
                let sums = touches.iter().filter(|touch| touch.completes() && touch.sectioned());
                let told = sums.filter(|touch| (touch.place as usize) < first[parts]);
                for touch in told {
                    assert!((first[me]..first[me + 1]).contains(&(touch.place as usize)), "it goes with what the part sends");
                    assert_eq!(shared.insert(touch.place, touch.sum), None);
                }
            }
            let mut first_sums = Vec::new();
            lists.0.iter().fold(0, |sum, tile| {
                first_sums.push(sum);
                sum + tile.sections(&lists.2).count()
            });
            for (me, (touches, CompletedTiles { of, sectioned, alone, places, .. })) in all.iter().enumerate() {
                let mut placed = shared.clone();
                let own = touches.iter().filter(|touch| touch.completes() && touch.sectioned());
                placed.extend(own.map(|touch| (touch.place, touch.sum)));
                assert!(placed.keys().all(|place| (*place as usize) < *places));
                let mut seen = vec![0; lists.0.len()];
                of.iter().flatten().for_each(|tile| seen[*tile as usize] += 1);
                for (k, tile) in sectioned.tiles.iter().enumerate() {
                    let sums: Vec<u32> = sectioned.places_of(tile).iter().map(|place| placed[place]).collect();
                    let number = tile.tile as usize;
                    assert!(sums.iter().copied().eq((first_sums[number] as u32..).take(lists.0[number].sections(&lists.2).count())));
                    assert_eq!(of[me].contains(&tile.tile), k < *alone);
                    seen[number] += usize::from(k >= *alone);
                }
                assert!(seen.iter().all(|n| *n == 1), "each tile comes once");
            }
            assert_eq!(shared.is_empty(), model.views.len() < 1024);
        }
    }

    #[test]
    fn bundles_are_whole_where_parts_are_sections() {
        let model = lists::tests::sectioned();
        let (listed, probe_parts, bundles, _) = lists::parts(&model, &model.views, 1, 4);
        assert_eq!(bundles.len(), 9);
        for parts in [2, 3, 4, 5, 8] {
            let bounds: Vec<usize> = (0..=parts).map(|part| part * model.views.len() / parts).collect();
            let found = whole_bundles(&bundles, &pieces(&listed, &probe_parts, &bounds), probe_parts.len());
            let told = found.map(|of| of.into_iter().map(|of| runs(of.into_iter())).collect::<Vec<_>>());
            let expected = (0..parts).map(|part| vec![[part * 8 / parts, 8 / parts]]).collect();
            assert_eq!(told, (8 % parts == 0).then_some(expected), "{parts} parts");
        }
        assert_eq!(runs([3, 4, 6].into_iter()), [[3, 2], [6, 1]]);
    }
}
