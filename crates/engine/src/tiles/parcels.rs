//! Leavers between parts of a run, as messages.
//!
//! A parcel holds what leaves one tile for another: both numbers, a count, and the particles in the order in which their tile sent
//! them. It goes into the outbox of the tile that it is from, so that deliveries have the order of a run in one part.

use bytemuck::{Pod, bytes_of, pod_read_unaligned};

use super::column::{Key, Word};
use super::exchange::Outbox;
use super::row::Particle;
use super::tiling::Location;
use crate::real::RealScalar;

/// Takes a value from the front of a message.
fn taken<V: Pod>(message: &mut &[u8]) -> V {
    let (value, rest) = message.split_at(size_of::<V>());
    *message = rest;
    pod_read_unaligned(value)
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
                message.extend_from_slice(bytes_of(&e.row));
                message.extend_from_slice(bytes_of(&e.key));
                e.v.iter().for_each(|v| message.extend_from_slice(bytes_of(v)));
                e.words.iter().for_each(|w| message.extend_from_slice(bytes_of(w)));
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
                let (row, key) = (taken(&mut message), taken(&mut message));
                let v = std::array::from_fn(|_| taken(&mut message));
                let words = std::array::from_fn(|_| taken(&mut message));
                outboxes[tile as usize].push(Location { tile: to, row, cell: 0 }, Particle { v, words, key });
            }
            from.push(tile as usize);
        }
    }
}
