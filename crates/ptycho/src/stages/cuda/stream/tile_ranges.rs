//! Tiles of the objects and parts of the probes' sums that each block of frames adds to.
//!
//! A block continues where the one before has stopped: sums of a tile that later blocks add to wait in a slot; a tile whose last
//! views are in the block is finished at once, and its slot is free for others. So sums have the order of a run that holds all
//! frames, bit for bit, and the memory that they take is that of the tiles that are open at a time.

use bytemuck::{Pod, Zeroable};
use zellige_device_macro::device;

use crate::stages::cuda::lists::{Part, Tile, Visit};
use crate::stages::cuda::program::{TEAM, TILE_COLUMNS};

/// Visits of a tile by views of a section that are in a block, and the slot of their sums between blocks.
#[device]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
pub(in crate::stages::cuda) struct TileRange {
    pub(in crate::stages::cuda) tile: u32,
    begin: u32,
    end: u32,
    pub(in crate::stages::cuda) slot: u32,
    /// Bit 0: nothing was added before; bit 1: nothing will be; bit 2: the tile has sums of other sections too.
    state: u32,
    /// Warp that adds the first visit.
    crew: u32,
    /// Number of the sum among those of all tiles and sections.
    pub(in crate::stages::cuda) sum: u32,
    /// Place of the sum among those that are added up afterwards.
    pub(in crate::stages::cuda) place: u32,
}

/// Tile of several sections, and the range of the list of their sums' places.
#[device]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
pub(in crate::stages::cuda) struct SectionedTile {
    pub(in crate::stages::cuda) tile: u32,
    begin: u32,
    end: u32,
}

/// Tiles of several sections, and the places of their sums in the order of the sections.
#[derive(Debug, Default)]
pub(in crate::stages::cuda) struct SectionedTiles {
    pub(in crate::stages::cuda) tiles: Vec<SectionedTile>,
    pub(in crate::stages::cuda) places: Vec<u32>,
}

impl SectionedTiles {
    /// Takes a tile with the places of its sums.
    pub(in crate::stages::cuda) fn push(&mut self, tile: u32, places: &[u32]) {
        let begin = self.places.len() as u32;
        self.places.extend(places);
        self.tiles.push(SectionedTile { tile, begin, end: self.places.len() as u32 });
    }

    /// Places of the sums of a tile.
    #[cfg(test)]
    pub(in crate::stages::cuda) fn places_of(&self, tile: &SectionedTile) -> &[u32] {
        &self.places[tile.begin as usize..tile.end as usize]
    }
}

impl TileRange {
    /// Range of the visits of the tile.
    #[cfg(test)]
    pub(in crate::stages::cuda) fn visits(&self) -> (u32, u32) {
        (self.begin, self.end)
    }

    /// Returns true if nobody else adds to the sum.
    pub(in crate::stages::cuda) fn alone(&self) -> bool {
        self.state & 3 == 3
    }

    /// Returns true if the tile has sums of other sections.
    #[cfg(test)]
    pub(in crate::stages::cuda) fn sectioned(&self) -> bool {
        self.state & 4 != 0
    }

    /// Returns true if the sum is complete behind it.
    pub(in crate::stages::cuda) fn completes(&self) -> bool {
        self.state & 2 != 0
    }
}

/// Piece of the list of views that a block adds to a part.
#[device]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
pub(in crate::stages::cuda) struct PartRange {
    pub(in crate::stages::cuda) part: u32,
    begin: u32,
    end: u32,
    /// As [`TileRange::state`].
    state: u32,
}

impl PartRange {
    /// Returns true if the sums of the part are complete behind it.
    pub(in crate::stages::cuda) fn completes(&self) -> bool {
        self.state & 2 != 0
    }
}

/// Touches of all blocks one behind the other, the first of each block (and the end), and the slots that they need.
pub(super) struct TileRanges {
    pub(super) list: Vec<TileRange>,
    pub(super) first: Vec<usize>,
    pub(super) slots: usize,
    pub(super) sectioned: SectionedTiles,
}

/// Block of a view, where `bounds` are the first views of all blocks, and their number.
fn block_of(bounds: &[usize], view: u32) -> usize {
    bounds.partition_point(|first| *first <= view as usize) - 1
}

/// Touches of each block, without slots and places, and the number of sums; `bounds` are the first views of all blocks, and their
/// number.
pub(in crate::stages::cuda) fn touches(
    (tiles, visits, cuts): &(Vec<Tile>, Vec<Visit>, Vec<u32>),
    bounds: &[usize],
) -> (Vec<Vec<TileRange>>, usize) {
    let (mut of, mut sum): (Vec<Vec<TileRange>>, u32) = (vec![Vec::new(); bounds.len() - 1], 0);
    let sections = tiles.iter().enumerate().flat_map(|(number, tile)| tile.sections(cuts).map(move |section| (number, tile, section)));
    for (number, tile, (first, end)) in sections {
        let (mut begin, mut fresh) = (first, 1);
        let several = u32::from((first, end) != tile.visits()) << 2;
        loop {
            // A tile that nobody sees is touched once: its object feels its own weight.
            let block = if begin < end { block_of(bounds, visits[begin as usize].view()) } else { 0 };
            let until = bounds[block + 1];
            let list = &visits[begin as usize..end as usize];
            let stop = begin + list.partition_point(|v| (v.view() as usize) < until) as u32;
            let state = fresh | u32::from(stop == end) << 1 | several;
            let crew = (begin - first) % (TEAM / TILE_COLUMNS as u32);
            of[block].push(TileRange { tile: number as u32, begin, end: stop, slot: 0, state, crew, sum, place: 0 });
            (begin, fresh) = (stop, 0);
            if begin == end {
                break;
            }
        }
        sum += 1;
    }
    (of, sum as usize)
}

/// Touches of blocks with these bounds, each with its slot and place.
pub(super) fn tile_ranges(lists: &(Vec<Tile>, Vec<Visit>, Vec<u32>), bounds: &[usize]) -> TileRanges {
    let (mut of, sums) = touches(lists, bounds);
    let (mut slot_of, mut free, mut slots) = (vec![0; sums], Vec::new(), 0);
    for list in &mut of {
        for touch in list.iter_mut().filter(|t| !t.alone()) {
            let slot = &mut slot_of[touch.sum as usize];
            if touch.state & 1 == 1 {
                *slot = free.pop().unwrap_or_else(|| {
                    slots += 1;
                    slots - 1
                });
            }
            touch.slot = *slot;
        }
        // Not before the block is over: its tiles are worked on at the same time.
        free.extend(list.iter().filter(|t| t.state & 3 == 2).map(|t| t.slot));
    }
    let mut place_of = vec![0; sums];
    let (mut sectioned, mut sum) = (SectionedTiles::default(), 0);
    for (number, tile) in lists.0.iter().enumerate() {
        let (first, count) = (sum, tile.sections(&lists.2).count());
        sum += count;
        if count > 1 {
            let place = sectioned.places.len() as u32;
            place_of[first..sum].iter_mut().zip(place..).for_each(|(of, place)| *of = place);
            sectioned.push(number as u32, &place_of[first..sum]);
        }
    }
    of.iter_mut().flatten().for_each(|touch| touch.place = place_of[touch.sum as usize]);
    TileRanges { first: firsts(&of), slots: slots as usize, list: of.concat(), sectioned }
}

/// Pieces of the parts of probes' sums that each block adds to, in the order of the parts.
pub(in crate::stages::cuda) fn pieces(listed: &[u32], parts: &[Part], bounds: &[usize]) -> Vec<Vec<PartRange>> {
    let mut of: Vec<Vec<PartRange>> = vec![Vec::new(); bounds.len() - 1];
    for (number, part) in parts.iter().enumerate() {
        let (mut begin, end) = part.listed();
        let mut fresh = 1;
        while begin < end {
            let block = block_of(bounds, listed[begin as usize]);
            let until = bounds[block + 1];
            let list = &listed[begin as usize..end as usize];
            let stop = begin + list.partition_point(|n| (*n as usize) < until) as u32;
            let state = fresh | u32::from(stop == end) << 1;
            of[block].push(PartRange { part: number as u32, begin, end: stop, state });
            (begin, fresh) = (stop, 0);
        }
    }
    of
}

/// Numbers of the first of each list among all, and of all.
pub(in crate::stages::cuda) fn firsts<T>(of: &[Vec<T>]) -> Vec<usize> {
    let ends = of.iter().scan(0, |sum, list| {
        *sum += list.len();
        Some(*sum)
    });
    std::iter::once(0).chain(ends).collect()
}

#[cfg(test)]
mod tests {
    use super::super::layout::Layout;
    use super::*;
    use crate::stages::cuda::lists;

    fn layout(views: usize, block: usize) -> Layout {
        Layout { views, block, streamed: 1 }
    }

    #[test]
    fn tiles_are_added_to_in_order_and_slots_are_not_shared() {
        for (model, block) in
            [1, 7, 16, 40].map(|block| (lists::tests::model(), block)).into_iter().chain([(lists::tests::sectioned(), 90)])
        {
            let lists = lists::tiles(&model, &model.views);
            let (tiles, visits, cuts) = &lists;
            let sums: Vec<(u32, u32)> = tiles.iter().flat_map(|tile| tile.sections(cuts)).collect();
            let layout = layout(model.views.len(), block);
            let TileRanges { list: tile_ranges, first, slots, sectioned } = super::tile_ranges(&lists, &layout.bounds());
            assert_eq!(first.len(), layout.blocks() + 1);
            let mut next: Vec<u32> = sums.iter().map(|sum| sum.0).collect();
            let mut holder: Vec<Option<u32>> = vec![None; slots];
            let mut closed = vec![false; sums.len()];
            let mut placed = vec![None; sectioned.places.len()];
            for (b, range) in first.windows(2).enumerate() {
                let list = &tile_ranges[range[0]..range[1]];
                for touch in list {
                    let (t, state) = (touch.sum as usize, touch.state & 3);
                    assert_eq!((touch.begin, closed[t]), (next[t], false));
                    assert_eq!((state & 1 == 1, state & 2 == 2), (touch.begin == sums[t].0, touch.end == sums[t].1));
                    assert_eq!(touch.crew, (touch.begin - sums[t].0) % 8);
                    assert_eq!(touch.state & 4 == 0, tiles[touch.tile as usize].visits() == sums[t]);
                    let views = &visits[touch.begin as usize..touch.end as usize];
                    assert!(views.iter().all(|v| layout.range(b).contains(&(v.view() as usize))));
                    next[t] = touch.end;
                    closed[t] = state & 2 == 2;
                    if state == 1 {
                        assert_eq!(holder[touch.slot as usize].replace(touch.sum), None);
                    } else if state != 3 {
                        assert_eq!(holder[touch.slot as usize], Some(touch.sum));
                    }
                    if closed[t] && touch.state & 4 == 4 {
                        assert_eq!(placed[touch.place as usize].replace((touch.tile, touch.end)), None);
                    }
                }
                for touch in list.iter().filter(|t| t.state & 3 == 2) {
                    holder[touch.slot as usize] = None;
                }
            }
            assert!(closed.iter().all(|c| *c), "every sum is finished");
            assert!(next.iter().zip(&sums).all(|(n, sum)| *n == sum.1));
            for SectionedTile { tile, begin, end } in &sectioned.tiles {
                let found = sectioned.places[*begin as usize..*end as usize].iter().map(|place| placed[*place as usize].take().unwrap());
                assert!(found.eq(tiles[*tile as usize].sections(cuts).map(|section| (*tile, section.1))));
            }
            assert!(placed.iter().all(Option::is_none), "every sum of a section is taken");
        }
    }

    #[test]
    fn parts_are_added_to_in_order() {
        let model = lists::tests::model();
        let (listed, parts, ..) = lists::parts(&model, &model.views, 132, 4);
        for block in [1, 7, 40] {
            let layout = layout(model.views.len(), block);
            let of = pieces(&listed, &parts, &layout.bounds());
            let mut next: Vec<u32> = parts.iter().map(|p| p.listed().0).collect();
            for (b, pieces) in of.iter().enumerate() {
                for piece in pieces {
                    let p = piece.part as usize;
                    assert_eq!((piece.begin, piece.state & 1 == 1), (next[p], piece.begin == parts[p].listed().0));
                    assert_eq!(piece.completes(), piece.end == parts[p].listed().1);
                    let views = &listed[piece.begin as usize..piece.end as usize];
                    assert!(!views.is_empty() && views.iter().all(|n| layout.range(b).contains(&(*n as usize))));
                    next[p] = piece.end;
                }
            }
            assert!(next.iter().zip(&parts).all(|(n, p)| *n == p.listed().1));
        }
    }
}
