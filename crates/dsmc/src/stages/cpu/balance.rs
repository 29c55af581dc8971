//! Balance of the parts while they run: where one has much more work than the others, all are cut anew, and tiles go over to the
//! parts that own them then.
//!
//! The work of a tile is counted, not timed: so all parts decide alike, and a run is cut the same way whenever it is done. Results
//! do not depend on the cut.

use zellige_engine::error::Result;
use zellige_engine::links::{Cut, Relay};
use zellige_engine::tiles::{hand_over, take_over};

use super::Gas;
use super::sums::Sums;

/// Steps between two looks at the work.
const EVERY: u64 = 16;
/// Largest work of a part over the mean that is left as it is.
const UNEVEN: f64 = 1.05;
/// Largest part of the work of the slowest that a new cut may leave it: one that takes off less is not worth the move.
const WORTH: f64 = 0.97;
/// Work of an attempted collision and of a cell, in that of a particle, which is sorted, moved and sampled.
const ATTEMPT: f64 = 1.0;
const CELL: f64 = 0.5;

impl Gas {
    /// Work of a tile in a step, in that of a particle, over the steps since the last look.
    fn work(&mut self, number: usize) -> f64 {
        let particles = self.store.tiles[number].len() as f64;
        let tile = &mut self.tiles[number];
        let attempts = tile.ledger.attempts - tile.attempts_before;
        tile.attempts_before = tile.ledger.attempts;
        particles + ATTEMPT * attempts as f64 / EVERY as f64 + CELL * (tile.cells[0] * tile.cells[1]) as f64
    }

    /// Returns true if the work is looked at before step number `step`.
    pub(super) fn balance_is_due(&self, step: u64) -> bool {
        !self.links.is_alone() && step > 0 && step.is_multiple_of(EVERY)
    }

    /// Cuts the parts anew if one has too much work.
    pub(super) fn balance(&mut self) -> Result<()> {
        let parts = self.cut.parts();
        let tiles: Vec<usize> = self.cut.tiles(self.links.rank()).collect();
        let own: Vec<f64> = tiles.into_iter().map(|tile| self.work(tile)).collect();
        let of_parts = self.links.joined(vec![own.iter().sum::<f64>()])?;
        let slowest = of_parts.iter().copied().fold(0.0, f64::max);
        if slowest <= UNEVEN * of_parts.iter().sum::<f64>() / parts as f64 {
            return Ok(());
        }
        let all = self.links.joined(own)?;
        let mut work = vec![0.0; self.tiles.len()];
        for (tile, of_tile) in (0..parts).flat_map(|part| self.cut.tiles(part)).zip(all) {
            work[tile] = of_tile;
        }
        let (cut, after) = best(self.cut.lattice(), parts, &work);
        if after > WORTH * slowest {
            return Ok(());
        }
        self.cut_anew(cut)
    }

    /// Hands tiles over to the parts that own them by another cut.
    fn cut_anew(&mut self, cut: Cut) -> Result<()> {
        // Tiles go with what has arrived for them; nothing is on its way meanwhile.
        self.complete_exchange()?;
        let (rank, parts) = (self.links.rank(), cut.parts());
        let before = std::mem::replace(&mut self.cut, cut);
        let goes =
            |gas: &Self, from: usize, to: usize| -> Vec<usize> { before.tiles(from).filter(|tile| gas.cut.owner(*tile) == to).collect() };
        let others: Vec<usize> = (0..parts).filter(|part| *part != rank).collect();
        let mut send = Vec::new();
        for part in &others {
            let mut message = Vec::new();
            for tile in goes(self, rank, *part) {
                let numbers = self.tile_numbers(tile);
                message.extend_from_slice(&(numbers.len() as u64).to_le_bytes());
                message.push(u8::from(!self.tiles[tile].sums.is_empty()));
                message.extend_from_slice(bytemuck::cast_slice(&numbers));
                hand_over(&mut self.store.tiles[tile].rows, &mut message);
                self.tiles[tile].sums = Sums::new(tile, self.model.per_cell);
                self.tiles[tile].hits.clear();
            }
            if !message.is_empty() {
                send.push((*part, message));
            }
        }
        let from: Vec<usize> = others.into_iter().filter(|part| !goes(self, *part, rank).is_empty()).collect();
        for (part, message) in from.iter().zip(self.links.exchange(send, &from)?) {
            let mut rest = &message[..];
            for tile in goes(self, *part, rank) {
                let (head, behind) = rest.split_at(9);
                let length = u64::from_le_bytes(std::array::from_fn(|i| head[i])) as usize;
                let (numbers, behind) = behind.split_at(8 * length);
                rest = behind;
                self.set_tile_numbers(tile, head[8] > 0, &zellige_engine::links::values::<f64>(numbers));
                take_over(&mut self.store.tiles[tile].rows, &mut rest);
                let own = &mut self.tiles[tile];
                own.attempts_before = own.ledger.attempts;
            }
        }
        self.relay = Relay::new(&self.cut, rank);
        Ok(())
    }
}

/// A cut for this work of the tiles, and the work of its slowest part: boxes of about as long sides, or strips of rows or columns
/// where they are so much more even that it is worth their longer sides.
fn best(lattice: [usize; 3], parts: usize, work: &[f64]) -> (Cut, f64) {
    let cuts = [&[0, 1][..], &[1], &[0]].map(|axes| {
        let cut = Cut::new(lattice, axes, parts, |tile| work[tile]);
        let slowest = (0..parts).map(|part| cut.tiles(part).map(|tile| work[tile]).sum::<f64>()).fold(0.0, f64::max);
        (cut, slowest)
    });
    let better = |a: (Cut, f64), b: (Cut, f64)| if b.1 < WORTH * a.1 { b } else { a };
    let [boxes, rows, columns] = cuts;
    better(better(boxes, rows), columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_are_taken_where_boxes_are_uneven() {
        let even = best([8, 8, 1], 4, &[1.0; 64]);
        assert_eq!((even.1, even.0.block(0).upper), (16.0, [4, 4, 1]));
        // All work in two columns of a long domain.
        let work: Vec<f64> = (0..60).map(|tile| if tile % 15 < 2 { 1.0 } else { 0.0 }).collect();
        let (cut, slowest) = best([15, 4, 1], 4, &work);
        assert_eq!((slowest, cut.busy()), (2.0, 4));
    }
}
