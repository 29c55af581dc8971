//! Particles that change tile: listed while they move, handed over when all tiles are done.
//!
//! An entry says where it goes, so any distance will do. Every tile takes what is for it in the order of the tiles that it
//! comes from, whatever the number of threads.

use super::mosaic::Place;
use super::row::Particle;
use super::store::Tile;
use crate::parallel::{chunks, chunks_mut, map_tasks};
use crate::real::RealScalar;

/// What leaves one tile, and what its sender counted meanwhile (`tally`).
#[derive(Debug, Clone)]
pub struct Outbox<T, S, const N: usize, const B: usize = 0> {
    entries: Vec<(Place, Particle<T, N, B>)>,
    /// Destination in the upper half, number of the entry in the lower.
    order: Vec<u64>,
    /// What the sender counted.
    pub tally: S,
}

/// A count of the particles that changed tile, at both ends of the way: proof that none was lost or doubled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moved {
    /// Entries in the outboxes.
    pub sent: usize,
    /// By how much the tiles grew.
    pub received: usize,
}

impl<T, S: Default, const N: usize, const B: usize> Default for Outbox<T, S, N, B> {
    fn default() -> Self {
        Self { entries: Vec::new(), order: Vec::new(), tally: S::default() }
    }
}

impl<T: RealScalar, S: Default, const N: usize, const B: usize> Outbox<T, S, N, B> {
    /// Forgets everything; the room stays.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.order.clear();
        self.tally = S::default();
    }

    /// Adds a particle that goes to `place`; it is its cell that counts, not the one in `p`.
    #[inline(always)]
    pub fn push(&mut self, place: Place, p: Particle<T, N, B>) {
        self.order.push(u64::from(place.tile) << 32 | self.entries.len() as u64);
        self.entries.push((place, p));
    }

    /// Takes over the entries of another one, behind its own. What was counted is the caller's to add.
    pub fn append(&mut self, other: &mut Self) {
        other.order.clear();
        for (place, p) in other.entries.drain(..) {
            self.push(place, p);
        }
    }

    /// Orders the entries by destination; those of one destination keep their order. To be called before [`deliver`].
    pub fn seal(&mut self) {
        self.order.sort_unstable();
    }

    /// Entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<(Place, Particle<T, N, B>)>() + self.order.capacity() * size_of::<u64>()
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

/// Hands over everything in sealed outboxes. Each tile takes what is for it in the order of the outboxes, and of one outbox in the
/// order of its entries.
///
/// # Panics
/// Where an entry names a tile or row that there is not.
pub fn deliver<T: RealScalar, S: Default + Sync, const N: usize, const B: usize>(
    tiles: &mut [Tile<T, N, B>],
    outboxes: &[Outbox<T, S, N, B>],
) -> Moved {
    let mut inboxes: Vec<Vec<(u32, std::ops::Range<u32>)>> = vec![Vec::new(); tiles.len()];
    for (from, outbox) in outboxes.iter().enumerate() {
        debug_assert_eq!(outbox.order.len(), outbox.entries.len());
        for (to, range) in outbox.ranges() {
            inboxes[to as usize].push((from as u32, range));
        }
    }
    let take = |tile: &mut Tile<T, N, B>, inbox: &[(u32, std::ops::Range<u32>)]| {
        if inbox.is_empty() {
            return 0;
        }
        let before = tile.len();
        for (from, range) in inbox {
            let outbox = &outboxes[*from as usize];
            for key in &outbox.order[range.start as usize..range.end as usize] {
                let (place, p) = &outbox.entries[*key as u32 as usize];
                tile.rows[usize::from(place.row)].push(&Particle { column: place.column, ..*p });
            }
        }
        tile.len() - before
    };
    let received = map_tasks((chunks_mut(tiles, 8), chunks(&inboxes, 8)), |_, (tiles, inboxes)| {
        tiles.iter_mut().zip(inboxes).map(|(tile, inbox)| take(tile, inbox)).sum::<usize>()
    });
    Moved { sent: outboxes.iter().map(Outbox::len).sum(), received: received.iter().sum() }
}
