//! Particles that change tile: listed while they move, handed over when all tiles are done.
//!
//! An entry says where it goes, so any distance will do. An [`Outbox`] puts what it holds in the order of where it goes,
//! [`Deliveries`] notes which parts of which outboxes a tile has to take, and every tile takes them in an order of its own,
//! whatever the number of threads: at once ([`Deliveries::deliver`]), or at the beginning of its next pass ([`Deliveries::take`]),
//! while its particles are in the cache anyway.

use super::column::{Key, Word};
use super::row::{Particle, Row};
use super::store::Tile;
use super::tiling::Location;
use crate::parallel::{chunks_mut, map_tasks};
use crate::real::RealScalar;

/// Tiles of one task of [`Deliveries::deliver`].
const TILES_AT_A_TIME: usize = 8;

/// A particle on its way, flat: a particle and a row beside each other would be padded twice.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<T, const N: usize, I, const W: usize, K> {
    pub(super) v: [T; N],
    pub(super) words: [I; W],
    pub(super) row: u16,
    pub(super) key: K,
}

/// Particles that leave one tile, and a count kept by their sender (`tally`).
#[derive(Debug, Clone)]
pub struct Outbox<T, S, const N: usize, I = u64, const W: usize = 1, K = u8> {
    pub(super) entries: Vec<Entry<T, N, I, W, K>>,
    /// Destination in the upper half, number of the entry in the lower.
    pub(super) order: Vec<u64>,
    /// Destinations, and how far `order` goes that concerns them, once it is sealed.
    pub(super) ends: Vec<[u32; 2]>,
    /// Count kept by the sender.
    pub tally: S,
}

impl<T, S: Default, const N: usize, I, const W: usize, K> Default for Outbox<T, S, N, I, W, K> {
    fn default() -> Self {
        Self { entries: Vec::new(), order: Vec::new(), ends: Vec::new(), tally: S::default() }
    }
}

impl<T: RealScalar, S: Default, const N: usize, I: Word, const W: usize, K: Key> Outbox<T, S, N, I, W, K> {
    /// Forgets everything; the capacity stays.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.order.clear();
        self.ends.clear();
        self.tally = S::default();
    }

    /// Adds a particle that goes to a tile and row; its key is that of the cell there, see [`super::Layout::key`].
    #[inline(always)]
    pub fn push(&mut self, to: Location, p: Particle<T, N, I, W, K>) {
        self.order.push(u64::from(to.tile) << 32 | self.entries.len() as u64);
        self.entries.push(Entry { v: p.v, words: p.words, row: to.row, key: p.key });
    }

    /// Takes over the entries of another one, behind its own. What was counted is the caller's to add.
    pub fn append(&mut self, other: &mut Self) {
        let begin = self.entries.len() as u64;
        // Entries are numbered as they stand, so `order` need not be as it was when they came.
        self.order.extend(other.order.drain(..).map(|key| key + begin));
        self.entries.append(&mut other.entries);
        other.ends.clear();
    }

    /// Orders the entries by destination; those of one destination keep their order. To be called before [`Deliveries::sort`].
    pub fn seal(&mut self) {
        self.order.sort_unstable();
        self.ends.clear();
        for (k, key) in self.order.iter().enumerate() {
            let (to, end) = ((key >> 32) as u32, k as u32 + 1);
            match self.ends.last_mut() {
                Some(last) if last[0] == to => last[1] = end,
                _ => self.ends.push([to, end]),
            }
        }
    }

    /// Entries that are to be delivered.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns true if there are no particles to be delivered.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Iterates over the particles in transit, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = Particle<T, N, I, W, K>> + '_ {
        self.entries.iter().map(|e| Particle { v: e.v, words: e.words, key: e.key })
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<Entry<T, N, I, W, K>>() + self.order.capacity() * size_of::<u64>() + self.ends.capacity() * 8
    }
}

/// A count of the particles that changed tile, at both ends of the way: proof that none was lost or doubled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransferCount {
    /// Entries in the outboxes.
    pub sent: usize,
    /// Growth of the tiles, in particles.
    pub received: usize,
}

/// A part of an outbox's order.
#[derive(Debug, Clone, Copy)]
struct OutboxPart {
    from: u32,
    begin: u32,
    end: u32,
}

/// Assignment of parts of outboxes to tiles.
#[derive(Debug, Clone, Default)]
pub struct Deliveries {
    inboxes: Vec<Vec<OutboxPart>>,
    sent: usize,
}

impl Deliveries {
    /// Notes what sealed outboxes hold, one for each tile.
    pub fn sort<T: RealScalar, S: Default, const N: usize, I: Word, const W: usize, K: Key>(
        &mut self,
        outboxes: &[Outbox<T, S, N, I, W, K>],
    ) {
        self.clear();
        self.inboxes.resize_with(outboxes.len(), Vec::new);
        for (from, outbox) in outboxes.iter().enumerate() {
            debug_assert_eq!(outbox.ends.last().map_or(0, |e| e[1] as usize), outbox.len(), "an outbox was not sealed");
            self.sent += outbox.len();
            let mut begin = 0;
            for [to, end] in &outbox.ends {
                self.inboxes[*to as usize].push(OutboxPart { from: from as u32, begin, end: *end });
                begin = *end;
            }
        }
    }

    /// Forgets everything; the capacity stays.
    pub fn clear(&mut self) {
        self.inboxes.iter_mut().for_each(Vec::clear);
        self.sent = 0;
    }

    /// Particles on their way: what all tiles together have to receive.
    pub fn sent(&self) -> usize {
        self.sent
    }

    /// Puts what is for tile number `tile` behind the particles of its rows: what comes from the tiles `first` in their order, then
    /// the rest in the order of where it comes from, each in the order of its entries. Returns by how much the rows grew.
    ///
    /// # Panics
    /// Where an entry names a row that there is not.
    pub fn take<T: RealScalar, S: Default, const N: usize, I: Word, const W: usize, K: Key>(
        &self,
        outboxes: &[Outbox<T, S, N, I, W, K>],
        tile: usize,
        first: &[u32],
        rows: &mut [Row<T, N, I, W, K>],
    ) -> usize {
        let Some(inbox) = self.inboxes.get(tile) else { return 0 };
        if inbox.is_empty() {
            return 0;
        }
        let before: usize = rows.iter().map(Row::len).sum();
        let mut put = |parcel: &OutboxPart| {
            let outbox = &outboxes[parcel.from as usize];
            for key in &outbox.order[parcel.begin as usize..parcel.end as usize] {
                let e = &outbox.entries[*key as u32 as usize];
                rows[usize::from(e.row)].push(&Particle { v: e.v, words: e.words, key: e.key });
            }
        };
        for from in first {
            // An outbox has one parcel at most for a tile.
            inbox.iter().find(|p| p.from == *from).into_iter().for_each(&mut put);
        }
        inbox.iter().filter(|p| !first.contains(&p.from)).for_each(put);
        rows.iter().map(Row::len).sum::<usize>() - before
    }

    /// Hands over everything in sealed outboxes at once, one for each tile. Each takes what is for it in the order of the outboxes,
    /// and of one outbox in the order of its entries.
    ///
    /// # Panics
    /// Where an entry names a tile or row that there is not.
    pub fn deliver<T: RealScalar, S: Default + Sync, const N: usize, I: Word, const W: usize, K: Key>(
        &mut self,
        tiles: &mut [Tile<T, N, I, W, K>],
        outboxes: &[Outbox<T, S, N, I, W, K>],
    ) -> TransferCount {
        self.sort(outboxes);
        let received = map_tasks(chunks_mut(tiles, TILES_AT_A_TIME), |part, tiles| {
            let numbers = part * TILES_AT_A_TIME..;
            numbers.zip(tiles).map(|(number, tile)| self.take(outboxes, number, &[], &mut tile.rows)).sum::<usize>()
        });
        TransferCount { sent: self.sent, received: received.iter().sum() }
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        self.inboxes.iter().map(|i| i.capacity() * size_of::<OutboxPart>() + size_of::<Vec<OutboxPart>>()).sum()
    }
}
