//! Messages from any part to any other in a few rounds, without one for each pair of parts.
//!
//! The parts are cut into two halves by their numbers, these into halves again, and so on. In each round, from the largest halves
//! down, a part sends one message to its partner in the other half: everything that it holds for parts there, wherever it came
//! from. After the last round everything is where it is to go. Of `n` parts each sends `log2 n` messages, rounded up at most,
//! whatever they hold: nobody has to be told whether there will be one, and a message goes any distance.
//!
//! The partner is the nearest part of the other half: what leaves for a neighbour goes there at once, and only what goes farther is
//! handed on.

use super::{Cut, Links};
use crate::error::{Error, Problem, Result};

/// Partners of one part in one round.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Round {
    /// Parts of the other half: the first, and one past the last.
    beyond: [usize; 2],
    /// Partner that takes what is for them.
    to: usize,
    /// Parts of the other half whose partner this one is.
    from: Vec<usize>,
}

/// Way of messages between all parts, as one of them takes part in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Relay(Vec<Round>);

impl Relay {
    /// Way of part `rank` among the parts of a cut.
    pub fn new(cut: &Cut, rank: usize) -> Self {
        Self::by(cut.parts(), rank, |a, b| cut.distance(a, b))
    }

    /// Way of part `rank` among `parts`, whose distances are given: the same on all.
    fn by<D: PartialOrd>(parts: usize, rank: usize, distance: impl Fn(usize, usize) -> D) -> Self {
        let partner = |part: usize, [begin, end]: [usize; 2]| {
            let nearer = |a: usize, b: usize| if distance(part, b) < distance(part, a) { b } else { a };
            (begin..end).reduce(nearer).unwrap_or(begin)
        };
        let (mut begin, mut end, mut rounds) = (0, parts, Vec::new());
        while end - begin > 1 {
            let middle = begin + (end - begin) / 2;
            let (own, beyond) = if rank < middle { ([begin, middle], [middle, end]) } else { ([middle, end], [begin, middle]) };
            let from = (beyond[0]..beyond[1]).filter(|other| partner(*other, own) == rank).collect();
            rounds.push(Round { beyond, to: partner(rank, beyond), from });
            [begin, end] = own;
        }
        Self(rounds)
    }

    /// Messages that this part sends whenever something is carried.
    pub fn messages(&self) -> usize {
        self.0.len()
    }

    /// Carries a message to each part, given by number, which all parts call at once. Returns those for this part, in an order
    /// of their own: what the receiver makes of them must not depend on it. Empty ones do not arrive.
    ///
    /// # Errors
    /// Another part has failed.
    pub fn carry(&self, links: &Links, mut messages: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        let rank = links.rank();
        let mut arrived = Vec::new();
        for Round { beyond: [begin, end], to, from } in &self.0 {
            let mut packet = Vec::new();
            for (part, message) in messages.iter_mut().enumerate().take(*end).skip(*begin).filter(|(_, message)| !message.is_empty()) {
                packet.extend_from_slice(&(part as u64).to_le_bytes());
                packet.extend_from_slice(&(message.len() as u64).to_le_bytes());
                packet.append(message);
            }
            links.send(*to, packet)?;
            for part in from {
                let packet = links.receive(*part)?;
                let mut rest = &packet[..];
                while !rest.is_empty() {
                    let (to, message) = taken(&mut rest).filter(|(to, _)| *to < messages.len()).ok_or_else(|| garbled(*part))?;
                    if to == rank {
                        arrived.push(message.to_vec());
                    } else {
                        messages[to].extend_from_slice(message);
                    }
                }
            }
        }
        Ok(arrived)
    }
}

/// Takes a part's number and the message for it from the front of a packet.
fn taken<'a>(packet: &mut &'a [u8]) -> Option<(usize, &'a [u8])> {
    let mut number = || {
        let (bytes, rest) = packet.split_first_chunk()?;
        *packet = rest;
        usize::try_from(u64::from_le_bytes(*bytes)).ok()
    };
    let (to, length) = (number()?, number()?);
    let (message, rest) = packet.split_at_checked(length)?;
    *packet = rest;
    Some((to, message))
}

/// Error of a packet that does not hold what it says.
fn garbled(part: usize) -> Error {
    Error::input("parts of a run", Problem::new("", format!("a message of part {part} cannot be read")))
}

#[cfg(test)]
mod tests {
    use super::super::inside;
    use super::*;
    use crate::rng::Philox;

    /// Messages of random parts to random parts arrive once, in rounds of about the logarithm of the parts.
    #[test]
    fn everything_arrives_at_any_distance() {
        for parts in [1, 2, 3, 4, 5, 7, 8, 16, 19] {
            let cut = Cut::new([24, 16, 1], &[0, 1], parts, |tile| 1.0 + (tile % 24) as f64);
            let sent = |from: usize, to: usize| {
                let random = Philox::new(3, 5).draw(from as u64, to as u64)[0];
                // To half of the others, also over the longest way.
                let is = from != to && (random.is_multiple_of(2) || to == (from + parts / 2) % parts);
                vec![from as u8; if is { 1 + random as usize % 50 } else { 0 }]
            };
            inside::run(parts, |links| {
                let (rank, relay) = (links.rank(), Relay::new(&cut, links.rank()));
                // The logarithm of the parts, rounded up or down.
                assert!(1 << relay.messages() < 2 * parts && 2 << relay.messages() > parts, "{parts} {}", relay.messages());
                for _ in 0..3 {
                    let messages = relay.carry(&links, (0..parts).map(|to| sent(rank, to)).collect())?;
                    let mut found = messages.concat();
                    found.sort_unstable();
                    assert_eq!(found, (0..parts).flat_map(|from| sent(from, rank)).collect::<Vec<_>>(), "{rank} of {parts}");
                }
                Ok(())
            })
            .unwrap();
        }
    }

    /// Of four columns of tiles the two in the middle are partners, where by number each would be that of the one after the next.
    #[test]
    fn partners_are_neighbours() {
        let cut = Cut::new([8, 1, 1], &[0], 4, |_| 1.0);
        let rounds: Vec<Vec<usize>> = (0..4).map(|rank| Relay::new(&cut, rank).0.iter().map(|round| round.to).collect()).collect();
        assert_eq!(rounds, [[3, 1], [2, 0], [1, 3], [0, 2]]);
    }

    #[test]
    fn a_message_that_says_too_much_is_refused() {
        let done = inside::run(2, |links| {
            if links.rank() == 0 {
                links.send(1, vec![1; 20])?;
                return Ok(String::new());
            }
            let relay = Relay::new(&Cut::new([2, 1, 1], &[0], 2, |_| 1.0), 1);
            Ok(relay.carry(&links, vec![Vec::new(); 2]).unwrap_err().to_string())
        });
        assert!(done.unwrap()[1].contains("a message of part 0 cannot be read"));
    }
}
