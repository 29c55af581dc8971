//! Tiles of the objects and parts of the probes' sums that each block of frames adds to.
//!
//! A block continues where the one before has stopped: sums of a tile that later blocks add to wait in a slot; a tile whose last
//! views are in the block is finished at once, and its slot is free for others. So sums have the order of a run that holds all
//! frames, bit for bit, and the memory that they take is that of the tiles that are open at a time.

use bytemuck::{Pod, Zeroable};
use zellige_device_macro::device;

use crate::stages::cuda::lists::{Part, Tile, Visit};

/// Visits of a tile that are in a block, and the slot of its sums between blocks.
#[device]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
pub(in crate::stages::cuda) struct TileRange {
    pub(in crate::stages::cuda) tile: u32,
    begin: u32,
    end: u32,
    pub(in crate::stages::cuda) slot: u32,
    /// Bit 0: nothing was added before; bit 1: nothing will be.
    state: u32,
}

impl TileRange {
    /// Range of the visits of the tile.
    #[cfg(test)]
    pub(in crate::stages::cuda) fn visits(&self) -> (u32, u32) {
        (self.begin, self.end)
    }

    /// Returns true if nobody else adds to the tile.
    pub(in crate::stages::cuda) fn alone(&self) -> bool {
        self.state == 3
    }

    /// Returns true if the sums of the tile are complete behind it.
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
}

/// Block of a view, where `bounds` are the first views of all blocks, and their number.
fn block_of(bounds: &[usize], view: u32) -> usize {
    bounds.partition_point(|first| *first <= view as usize) - 1
}

/// Touches of each block, without slots; `bounds` are the first views of all blocks, and their number.
pub(in crate::stages::cuda) fn touches(tiles: &[Tile], visits: &[Visit], bounds: &[usize]) -> Vec<Vec<TileRange>> {
    let mut of: Vec<Vec<TileRange>> = vec![Vec::new(); bounds.len() - 1];
    for (number, tile) in tiles.iter().enumerate() {
        let (mut begin, end) = tile.visits();
        let mut fresh = 1;
        loop {
            // A tile that nobody sees is touched once: its object feels its own weight.
            let block = if begin < end { block_of(bounds, visits[begin as usize].view()) } else { 0 };
            let until = bounds[block + 1];
            let list = &visits[begin as usize..end as usize];
            let stop = begin + list.partition_point(|v| (v.view() as usize) < until) as u32;
            of[block].push(TileRange { tile: number as u32, begin, end: stop, slot: 0, state: fresh | u32::from(stop == end) << 1 });
            (begin, fresh) = (stop, 0);
            if begin == end {
                break;
            }
        }
    }
    of
}

/// Touches of blocks with these bounds, each with its slot.
pub(super) fn tile_ranges(tiles: &[Tile], visits: &[Visit], bounds: &[usize]) -> TileRanges {
    let mut of = touches(tiles, visits, bounds);
    let (mut slot_of, mut free, mut slots) = (vec![0; tiles.len()], Vec::new(), 0);
    for list in &mut of {
        for touch in list.iter_mut().filter(|t| !t.alone()) {
            let slot = &mut slot_of[touch.tile as usize];
            if touch.state & 1 == 1 {
                *slot = free.pop().unwrap_or_else(|| {
                    slots += 1;
                    slots - 1
                });
            }
            touch.slot = *slot;
        }
        // Not before the block is over: its tiles are worked on at the same time.
        free.extend(list.iter().filter(|t| t.state == 2).map(|t| t.slot));
    }
    TileRanges { first: firsts(&of), slots: slots as usize, list: of.concat() }
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
        let model = lists::tests::model();
        let (tiles, visits) = lists::tiles(&model, &model.views);
        for block in [1, 7, 16, 40] {
            let layout = layout(model.views.len(), block);
            let TileRanges { list: tile_ranges, first, slots } = super::tile_ranges(&tiles, &visits, &layout.bounds());
            assert_eq!(first.len(), layout.blocks() + 1);
            let mut next: Vec<u32> = tiles.iter().map(|t| t.visits().0).collect();
            let mut holder: Vec<Option<u32>> = vec![None; slots];
            let mut closed = vec![false; tiles.len()];
            for (b, range) in first.windows(2).enumerate() {
                let list = &tile_ranges[range[0]..range[1]];
                for touch in list {
                    let t = touch.tile as usize;
                    assert_eq!((touch.begin, closed[t]), (next[t], false));
                    assert_eq!(touch.state & 1 == 1, touch.begin == tiles[t].visits().0);
                    assert_eq!(touch.state & 2 == 2, touch.end == tiles[t].visits().1);
                    let views = &visits[touch.begin as usize..touch.end as usize];
                    assert!(views.iter().all(|v| layout.range(b).contains(&(v.view() as usize))));
                    next[t] = touch.end;
                    closed[t] = touch.state & 2 == 2;
                    if touch.state == 1 {
                        assert_eq!(holder[touch.slot as usize].replace(touch.tile), None);
                    } else if touch.state != 3 {
                        assert_eq!(holder[touch.slot as usize], Some(touch.tile));
                    }
                }
                for touch in list.iter().filter(|t| t.state == 2) {
                    holder[touch.slot as usize] = None;
                }
            }
            assert!(closed.iter().all(|c| *c), "every tile is finished");
            assert!(next.iter().zip(&tiles).all(|(n, t)| *n == t.visits().1));
        }
    }

    #[test]
    fn parts_are_added_to_in_order() {
        let model = lists::tests::model();
        let (listed, parts, _) = lists::parts(&model, &model.views, 132, 4);
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
