//! Slabs of device memory that go from part to part: fixed places of fixed size, copied from one GPU to another, or on one.
//!
//! The host waits for no GPU here. Each part waits for the others' threads to have put their share of an exchange on their streams;
//! events keep the streams in order.

use std::any::Any;
use std::sync::Arc;

use super::Links;
use crate::cuda::{Buffer, Cuda, Event, Pool};
use crate::error::{Error, Problem, Result};

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
    cuda: Cuda,
    events: Arc<Events>,
}

/// Marks in a part's stream.
#[derive(Debug)]
struct Events {
    /// Incoming slabs may be written to.
    free: Event,
    /// Outgoing slabs have been copied.
    sent: Event,
}

/// Slabs of one part.
#[derive(Debug)]
pub struct Slabs {
    cuda: Cuda,
    links: Links,
    pairs: Vec<Pair>,
    events: Arc<Events>,
    /// Other parts, each once, with their GPUs and events.
    peers: Vec<(usize, Cuda, Arc<Events>)>,
}

impl Slabs {
    /// Slabs for all `places`, zero, of which the other parts have the other ends: all parts make theirs at the same time. `what`
    /// names them when memory runs out.
    ///
    /// # Errors
    /// Parts are processes, which do not see each other's memory.
    pub fn new(cuda: &Cuda, pool: &Pool, links: &Links, places: &[Place], what: &str) -> Result<Self> {
        let events = Arc::new(Events { free: cuda.event_without_time()?, sent: cuda.event_without_time()? });
        let mut ends = Vec::new();
        for place in places {
            let incoming = Arc::new(pool.alloc_zeros::<u8>(place.bytes, what)?);
            ends.push((pool.alloc_zeros::<u8>(place.bytes, what)?, incoming));
        }
        // Zeros are there before anybody writes.
        cuda.synchronize()?;
        for (own, (place, (_, incoming))) in places.iter().zip(&ends).enumerate() {
            let introduction = Introduction { slab: incoming.clone(), cuda: cuda.clone(), events: events.clone() };
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
        let mut peers: Vec<(usize, Cuda, Arc<Events>)> = Vec::new();
        let mut pairs = Vec::new();
        for ((place, (outgoing, incoming)), introduction) in places.iter().zip(ends).zip(found) {
            let Introduction { slab, cuda: their, events } = introduction.ok_or_else(|| mismatch(place.part))?;
            if peers.iter().all(|(part, ..)| *part != place.part) {
                cuda.reach(&their)?;
                peers.push((place.part, their, events));
            }
            pairs.push(Pair { place: *place, outgoing, incoming, to: slab });
        }
        Ok(Self { cuda: cuda.clone(), links: links.clone(), pairs, events, peers })
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
        // Readers of the incoming slabs of the exchange before are ahead of this mark.
        self.cuda.record(&self.events.free)?;
        self.tell()?;
        for (part, _, events) in &self.peers {
            self.hear(*part)?;
            self.cuda.wait_for(&events.free)?;
        }
        for pair in &self.pairs {
            self.cuda.copy_to_peer(&pair.outgoing, 0, &pair.to, 0, pair.place.bytes)?;
        }
        self.cuda.record(&self.events.sent)?;
        self.tell()?;
        for (part, _, events) in &self.peers {
            self.hear(*part)?;
            self.cuda.wait_for(&events.sent)?;
        }
        Ok(())
    }

    /// Tells the others that this part's mark is in its stream.
    fn tell(&self) -> Result<()> {
        self.peers.iter().try_for_each(|(part, ..)| self.links.send(*part, Vec::new()))
    }

    /// Waits for another part's word of that.
    fn hear(&self, part: usize) -> Result<()> {
        if self.links.receive(part)?.is_empty() { Ok(()) } else { Err(mismatch(part)) }
    }
}

impl Drop for Slabs {
    fn drop(&mut self) {
        // Copies into the others' slabs, which may go next.
        let _ = self.cuda.synchronize();
    }
}

/// Error of parts that do not exchange the same.
pub(super) fn mismatch(part: usize) -> Error {
    let problem = Problem::new("", format!("part {part} does not exchange what this one does"));
    Error::input("parts of a run", problem.hint("this is a fault of the program: please report it with the input"))
}
