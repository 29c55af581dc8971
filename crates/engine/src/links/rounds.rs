//! Exchanges of all parts with all, and work that they do one after the other.

use bytemuck::Pod;

use super::{Links, values};
use crate::error::Result;

impl Links {
    /// Gives every other part the message that `message` makes for it, and its own to `take`, with the number of the sender. In
    /// rounds: a part has one message on its way at a time, each round to a part one further.
    ///
    /// # Errors
    /// Another part has failed.
    pub fn all_to_all(&self, mut message: impl FnMut(usize) -> Vec<u8>, mut take: impl FnMut(usize, Vec<u8>)) -> Result<()> {
        let (rank, size) = (self.rank(), self.size());
        for round in 1..size {
            let (to, from) = ((rank + round) % size, (rank + size - round) % size);
            self.send(to, message(to))?;
            take(from, self.receive(from)?);
        }
        Ok(())
    }

    /// Values that each part goes on with where the part before it has left them, to all: a sum in the order of the parts is
    /// that of one part, bit for bit.
    ///
    /// # Errors
    /// Another part has failed.
    pub fn in_turn<V: Pod>(&self, begin: Vec<V>, go_on: impl FnOnce(Vec<V>) -> Vec<V>) -> Result<Vec<V>> {
        let (rank, last) = (self.rank(), self.size() - 1);
        let before = if rank == 0 { begin } else { values(&self.receive(rank - 1)?) };
        let after = go_on(before);
        if last == 0 {
            return Ok(after);
        }
        let message = bytemuck::cast_slice(&after).to_vec();
        // From the last one by way of the first, which tells all.
        self.send(if rank == last { 0 } else { rank + 1 }, message)?;
        let end = if rank == 0 { self.receive(last)? } else { Vec::new() };
        Ok(values(&self.broadcast(end)?))
    }
}

#[cfg(test)]
mod tests {
    use crate::links::inside;

    #[test]
    fn every_part_has_a_message_of_every_other() {
        for parts in 1..6 {
            let found = inside::run(parts, |links| {
                let own = links.rank() as u8;
                let mut all = vec![vec![own, own]; parts];
                links.all_to_all(|to| vec![own, to as u8], |from, message| all[from] = message)?;
                Ok(all)
            });
            for (part, all) in found.unwrap().into_iter().enumerate() {
                assert_eq!(all, (0..parts).map(|from| vec![from as u8, part as u8]).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn sums_in_turn_have_the_bits_of_one_part() {
        let terms: Vec<f64> = (0..60).map(|k| (k as f64 * 0.7).sin().exp()).collect();
        for parts in [1, 2, 3, 5] {
            let found = inside::run(parts, |links| {
                let own = terms.chunks(60 / parts).nth(links.rank()).unwrap_or(&[]);
                links.in_turn(vec![0.1], |sum| vec![own.iter().fold(sum[0], |sum, term| sum + term)])
            });
            let alone = terms.iter().fold(0.1, |sum, term| sum + term);
            assert_eq!(found.unwrap(), vec![vec![alone]; parts], "{parts}");
        }
    }
}
