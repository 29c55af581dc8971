//! Leavers between parts of a run, as messages.
//!
//! A parcel holds what leaves one tile for another: both numbers, a count, and the particles in the order in which their tile sent
//! them. It goes into the outbox of the tile that it is from, so that deliveries have the order of a run in one part. A row that
//! another part takes over goes as a whole.

use bytemuck::{Pod, bytes_of, pod_read_unaligned};

use super::column::{Key, Word};
use super::exchange::Outbox;
use super::row::{Particle, Row};
use super::tiling::Location;
use crate::real::RealScalar;

/// Takes a value from the front of a message.
fn taken<V: Pod>(message: &mut &[u8]) -> V {
    let (value, rest) = message.split_at(size_of::<V>());
    *message = rest;
    pod_read_unaligned(value)
}

/// Puts a particle of row `row` behind a message.
fn put<T: RealScalar, const N: usize, I: Word, const W: usize, K: Key>(message: &mut Vec<u8>, row: u16, p: &Particle<T, N, I, W, K>) {
    message.extend_from_slice(bytes_of(&row));
    message.extend_from_slice(bytes_of(&p.key));
    p.v.iter().for_each(|v| message.extend_from_slice(bytes_of(v)));
    p.words.iter().for_each(|w| message.extend_from_slice(bytes_of(w)));
}

/// Takes a particle and its row from the front of a message.
fn particle<T: RealScalar, const N: usize, I: Word, const W: usize, K: Key>(message: &mut &[u8]) -> (u16, Particle<T, N, I, W, K>) {
    let (row, key) = (taken(message), taken(message));
    let v = std::array::from_fn(|_| taken(message));
    (row, Particle { v, words: std::array::from_fn(|_| taken(message)), key })
}

/// Puts the particles of all rows of a tile behind a message, in their order, and takes them out of the rows with the memory that
/// they had.
pub fn hand_over<T: RealScalar, const N: usize, I: Word, const W: usize, K: Key>(rows: &mut [Row<T, N, I, W, K>], message: &mut Vec<u8>) {
    let all = |row: &Row<T, N, I, W, K>| (0..row.len()).filter(|k| !row.keys()[*k].is_hole()).collect::<Vec<_>>();
    let slots: Vec<Vec<usize>> = rows.iter().map(all).collect();
    message.extend_from_slice(&(slots.iter().map(Vec::len).sum::<usize>() as u64).to_le_bytes());
    for (number, (row, slots)) in rows.iter_mut().zip(slots).enumerate() {
        for k in slots {
            put(message, number as u16, &row.get(k));
        }
        *row = Row::new(row.layout(), 0);
    }
}

/// Takes the particles of a tile from the front of a message into its rows.
pub fn take_over<T: RealScalar, const N: usize, I: Word, const W: usize, K: Key>(rows: &mut [Row<T, N, I, W, K>], message: &mut &[u8]) {
    let count: u64 = taken(message);
    for _ in 0..count {
        let (row, p) = particle(message);
        rows[usize::from(row)].push(&p);
    }
}

impl<T: RealScalar, S: Default, const N: usize, I: Word, const W: usize, K: Key> Outbox<T, S, N, I, W, K> {
    /// Moves entries of the sealed outbox of `tile` to messages: to the one with the number that `message_to` has for their
    /// destination; those for which it has none stay.
    pub fn send_away(&mut self, tile: u32, message_to: impl Fn(usize) -> Option<usize>, messages: &mut [Vec<u8>]) {
        if self.ends.iter().all(|[to, _]| message_to(*to as usize).is_none()) {
            return;
        }
        let (mut begin, mut kept) = (0, Vec::with_capacity(self.order.len()));
        let ends = std::mem::take(&mut self.ends);
        for [to, end] in ends {
            let keys = &self.order[begin..end as usize];
            begin = end as usize;
            let Some(number) = message_to(to as usize) else {
                kept.extend_from_slice(keys);
                self.ends.push([to, kept.len() as u32]);
                continue;
            };
            let message = &mut messages[number];
            message.extend_from_slice(bytes_of(&[tile, to, keys.len() as u32]));
            for key in keys {
                let e = &self.entries[*key as u32 as usize];
                put(message, e.row, &Particle { v: e.v, words: e.words, key: e.key });
            }
        }
        self.order = kept;
    }

    /// Puts the parcels of a message into the outboxes of the tiles that they are from, one for each tile, whose numbers it adds to
    /// `from`. Those outboxes are to be sealed when all messages are in.
    pub fn receive(outboxes: &mut [Self], mut message: &[u8], from: &mut Vec<usize>) {
        while !message.is_empty() {
            let [tile, to, count]: [u32; 3] = taken(&mut message);
            for _ in 0..count {
                let (row, p) = particle(&mut message);
                outboxes[tile as usize].push(Location { tile: to, row, cell: 0 }, p);
            }
            from.push(tile as usize);
        }
    }
}
