//! Particles that change tile: listed while they move, handed over when all tiles are done.
//!
//! An entry says where it goes, so any distance will do. Every tile takes what is for it in the order of the tiles that it
//! comes from, whatever the number of threads.

use rayon::prelude::*;
use zellige_engine::real::RealScalar;

use super::store::{Mosaic, Particle, Place, Tile};
use super::walls::energy;

/// What one tile counted in one pass; sums are without the species' factors.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Tally {
    /// Particles taken out.
    pub(super) removed: u64,
    /// Sum of the weights of those taken out.
    pub(super) weight_out: f64,
    /// Sum of `weight (gamma - 1)` that walls put in.
    pub(super) energy_in: f64,
    /// Sum of `weight (gamma - 1)` that walls took.
    pub(super) energy_out: f64,
    /// Sum of `weight (gamma - 1)` after half the kick.
    pub(super) kinetic: f64,
    /// Sum of `weight u` before the push.
    pub(super) momentum: [f64; 3],
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.removed += other.removed;
        self.weight_out += other.weight_out;
        self.energy_in += other.energy_in;
        self.energy_out += other.energy_out;
        self.kinetic += other.kinetic;
        for (a, b) in self.momentum.iter_mut().zip(other.momentum) {
            *a += b;
        }
    }
}

/// What leaves one tile, and what it counted.
#[derive(Debug)]
pub(super) struct Outbox<T> {
    entries: Vec<(Place, Particle<T>)>,
    /// Destination in the upper half, number of the entry in the lower.
    order: Vec<u64>,
    pub(super) tally: Tally,
}

impl<T> Default for Outbox<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), order: Vec::new(), tally: Tally::default() }
    }
}

impl<T: RealScalar> Outbox<T> {
    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.order.clear();
        self.tally = Tally::default();
    }

    /// Adds a particle that goes to `place`.
    #[inline(always)]
    pub(super) fn push(&mut self, place: Place, p: Particle<T>) {
        self.order.push(u64::from(place.tile) << 32 | self.entries.len() as u64);
        self.entries.push((place, p));
    }

    /// Orders the entries by destination; those of one destination keep their order.
    pub(super) fn seal(&mut self) {
        self.order.sort_unstable();
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<(Place, Particle<T>)>() + self.order.capacity() * size_of::<u64>()
    }

    /// Ranges of `order` with one destination.
    fn ranges(&self) -> impl Iterator<Item = (u32, std::ops::Range<u32>)> {
        let mut begin = 0;
        self.order.chunk_by(|a, b| a >> 32 == b >> 32).map(move |chunk| {
            let range = begin..begin + chunk.len() as u32;
            begin = range.end;
            ((chunk[0] >> 32) as u32, range)
        })
    }
}

/// Hands over everything in sealed outboxes, one per tile. Returns how many particles changed tile.
pub(super) fn deliver<T: RealScalar>(tiles: &mut [Tile<T>], outboxes: &[Outbox<T>]) -> usize {
    let mut inboxes: Vec<Vec<(u32, std::ops::Range<u32>)>> = vec![Vec::new(); tiles.len()];
    for (from, outbox) in outboxes.iter().enumerate() {
        for (to, range) in outbox.ranges() {
            inboxes[to as usize].push((from as u32, range));
        }
    }
    tiles.par_iter_mut().zip(&inboxes).for_each(|(tile, inbox)| {
        for (from, range) in inbox {
            let outbox = &outboxes[*from as usize];
            for key in &outbox.order[range.start as usize..range.end as usize] {
                let (place, p) = &outbox.entries[*key as u32 as usize];
                tile.rows[place.row as usize].push(p);
            }
        }
    });
    outboxes.iter().map(|o| o.entries.len()).sum()
}

/// Lists the particles that a move of the window by one cell towards lower x takes out of their tile, and moves the others in
/// place. What was in the first cells of the domain is taken out.
pub(super) fn shift_tile<T: RealScalar>(mosaic: &Mosaic, tile: &mut Tile<T>, out: &mut Outbox<T>) {
    for (r, row) in tile.rows.iter_mut().enumerate() {
        let mut k = 0;
        while k < row.len() {
            let column = &mut row.cells_mut()[k];
            if *column > 0 {
                *column -= 1;
                k += 1;
                continue;
            }
            let mut p = row.swap_remove(k);
            if tile.corner[0] == 0 {
                out.tally.removed += 1;
                out.tally.weight_out += p.v[5].to_f64();
                out.tally.energy_out += energy(&p);
            } else {
                let place = mosaic.place(tile.corner[0] - 1, tile.corner[1] + r);
                p.column = place.column;
                out.push(place, p);
            }
        }
    }
    out.seal();
}

#[cfg(test)]
mod tests {
    use super::super::store::{COLUMNS, Store};
    use super::*;

    /// From every tile to every tile, far ones included; the order is that of the senders.
    #[test]
    fn entries_reach_any_tile_in_the_order_of_their_senders() {
        let mosaic = Mosaic::new([50, 30], [16, 16]);
        let mut store = Store::<f32>::new(mosaic, false, true, 0);
        let mut outboxes: Vec<Outbox<f32>> = (0..mosaic.len()).map(|_| Outbox::default()).collect();
        for (from, outbox) in outboxes.iter_mut().enumerate() {
            for k in 0..3 {
                for (j, i) in (0..30).step_by(16).flat_map(|j| (0..50).step_by(16).map(move |i| (j, i))) {
                    let mut place = mosaic.place(i, j);
                    place.row = 2;
                    outbox.push(place, Particle { v: [0.0; COLUMNS], tag: (10 * from + k) as u64, column: 1 });
                }
            }
            outbox.seal();
        }
        assert_eq!(deliver(&mut store.tiles, &outboxes), 8 * 8 * 3);
        let expected: Vec<u64> = (0..8).flat_map(|from| (0..3).map(move |k| 10 * from + k)).collect();
        for tile in &store.tiles {
            let tags: Vec<u64> = (0..tile.rows[2].len()).map(|k| tile.rows[2].get(k).tag).collect();
            assert_eq!(tags, expected);
        }
    }
}
