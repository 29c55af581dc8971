//! Slabs of device memory that go from part to part: fixed places of fixed size, copied from one GPU to another, or on one.
//!
//! The host waits for no GPU here. Each part waits for the others' threads to have put their share of an exchange on their streams;
//! events keep the streams in order.

use std::any::Any;
use std::sync::Arc;

use super::Links;
use super::meeting::{Mark, Meeting, mismatch};
use crate::cuda::{Buffer, Cuda, Pool};
use crate::error::Result;

/// A place that a part exchanges with another one: what it puts in goes to the other's place, and the other way round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The other part.
    pub part: usize,
    /// Number of the other's place among its own: two parts may have several in common.
    pub theirs: usize,
    /// Bytes that go there and come from there.
    pub bytes: usize,
}

/// Slabs of one place, out and in.
#[derive(Debug)]
struct Pair {
    place: Place,
    outgoing: Buffer<u8>,
    /// Shared with the part that writes to it.
    incoming: Arc<Buffer<u8>>,
    /// The other's incoming slab.
    to: Arc<Buffer<u8>>,
}

/// Card that a part hands to the owner of a place that is in common.
struct Introduction {
    slab: Arc<Buffer<u8>>,
    mark: Mark,
}

/// Slabs of one part.
#[derive(Debug)]
pub struct Slabs {
    // Dropped first: it waits for copies into the others' slabs, which may go next.
    meeting: Meeting,
    pairs: Vec<Pair>,
}

impl Slabs {
    /// Slabs for all `places`, zero, of which the other parts have the other ends: all parts make theirs at the same time. `what`
    /// names them when memory runs out.
    ///
    /// # Errors
    /// Parts are processes, which do not see each other's memory.
    pub fn new(cuda: &Cuda, pool: &Pool, links: &Links, places: &[Place], what: &str) -> Result<Self> {
        let mut meeting = Meeting::new(cuda, links)?;
        let mut ends = Vec::new();
        for place in places {
            let incoming = Arc::new(pool.alloc_zeros::<u8>(place.bytes, what)?);
            ends.push((pool.alloc_zeros::<u8>(place.bytes, what)?, incoming));
        }
        // Zeros are there before anybody writes.
        cuda.synchronize()?;
        for (own, (place, (_, incoming))) in places.iter().zip(&ends).enumerate() {
            let introduction = Introduction { slab: incoming.clone(), mark: meeting.mark() };
            let card: Box<dyn Any + Send> = Box::new((own, place.theirs, introduction));
            links.hand(place.part, card)?;
        }
        // From each part as many as there are places in common, in the other's order.
        let mut found: Vec<Option<Introduction>> = places.iter().map(|_| None).collect();
        let mut parts: Vec<usize> = places.iter().map(|place| place.part).collect();
        parts.sort_unstable();
        for part in &parts {
            let card = links.take(*part)?.downcast::<(usize, usize, Introduction)>();
            let Ok(card) = card else { return Err(mismatch(*part)) };
            let (theirs, own, introduction) = *card;
            let fits = places.get(own).is_some_and(|p| p.part == *part && p.theirs == theirs && p.bytes == introduction.slab.len());
            if !fits || found[own].is_some() {
                return Err(mismatch(*part));
            }
            found[own] = Some(introduction);
        }
        let mut pairs = Vec::new();
        for ((place, (outgoing, incoming)), introduction) in places.iter().zip(ends).zip(found) {
            let Introduction { slab, mark } = introduction.ok_or_else(|| mismatch(place.part))?;
            meeting.join(place.part, mark)?;
            pairs.push(Pair { place: *place, outgoing, incoming, to: slab });
        }
        Ok(Self { meeting, pairs })
    }

    /// Slab that goes to place `k`, to be written on the device.
    pub fn outgoing(&self, k: usize) -> &Buffer<u8> {
        &self.pairs[k].outgoing
    }

    /// [`Slabs::outgoing`], for copies from the host.
    #[cfg(test)]
    pub(super) fn outgoing_mut(&mut self, k: usize) -> &mut Buffer<u8> {
        &mut self.pairs[k].outgoing
    }

    /// Slab that has come from place `k`.
    pub fn incoming(&self, k: usize) -> &Buffer<u8> {
        &self.pairs[k].incoming
    }

    /// Copies all outgoing slabs, as the stream has written them by now, into the incoming ones of the others; what is put on the
    /// stream afterwards finds the others' here. All parts call this alike. Does not wait for the device.
    ///
    /// # Errors
    /// Another part has failed.
    pub fn exchange(&self) -> Result<()> {
        self.meeting.hold(|cuda| self.pairs.iter().try_for_each(|pair| cuda.copy_to_peer(&pair.outgoing, &pair.to, pair.place.bytes)))
    }
}
