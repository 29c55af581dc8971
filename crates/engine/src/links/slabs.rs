//! Slabs of device memory that go from part to part: fixed places of fixed size, copied from one GPU to another, or read there.
//!
//! The host waits for no GPU here, where parts are those of a process. Each part waits for the others' threads to have put their
//! share of an exchange on their streams; events keep the streams in order. Between processes slabs go as [`Parcels`].

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::parcels::{Parcels, Piece};
use super::{Links, values};
use crate::cuda::nccl::Portion;
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
    /// Shared with the part that reads it, where that reaches it.
    outgoing: Arc<Buffer<u8>>,
    /// Shared with the part that writes to it: that one's outgoing slab where this part reads there.
    incoming: Arc<Buffer<u8>>,
    /// The other's incoming slab, to which the outgoing one is copied.
    to: Option<Arc<Buffer<u8>>>,
}

/// Card that a part hands to the owner of a place that is in common.
struct Introduction {
    outgoing: Arc<Buffer<u8>>,
    /// Slab to be copied to, if this part does not read the other's outgoing one where it lies.
    incoming: Option<Arc<Buffer<u8>>>,
    cuda: Cuda,
    events: Arc<Events>,
}

/// Marks in a part's stream.
#[derive(Debug)]
struct Events {
    /// Outgoing slabs are written, and copied where the other does not read them, by the half.
    sent: [Event; HALVES],
}

/// Parts of a slab, which are used in turn: nobody has to say when one may be written to, and kernels read what comes where it
/// lies, as far as their GPUs reach.
const HALVES: usize = 2;

/// More places than a part has: tells slabs that go together apart in the messages of processes.
const MOST_PLACES: usize = 1 << 20;

/// Slabs of one part, of two halves that are used in turn. What has come is read before the next exchange.
#[derive(Debug)]
pub struct Slabs {
    cuda: Cuda,
    links: Links,
    pairs: Vec<Pair>,
    /// Exchanges so far.
    exchanges: AtomicUsize,
    events: Arc<Events>,
    /// Other parts of the process, each once, with their GPUs and events.
    peers: Vec<(usize, Cuda, Arc<Events>)>,
    /// Way to parts that are other processes.
    parcels: Option<Parcels>,
}

impl Slabs {
    /// Slabs for all `places`, zero, of which the other parts have the other ends: all parts make theirs at the same time. `what`
    /// names them when memory runs out.
    pub fn new(cuda: &Cuda, pool: &Pool, links: &Links, places: &[Place], what: &str) -> Result<Self> {
        let event = || cuda.event_without_time();
        let events = Arc::new(Events { sent: [event()?, event()?] });
        let slab = |place: &Place| pool.alloc_zeros::<u8>(HALVES * place.bytes, what).map(Arc::new);
        if !links.shares_memory() {
            introduce(links, places)?;
            let others: Vec<usize> = places.iter().map(|place| place.part).collect();
            let pair = |place: &Place| Ok(Pair { place: *place, outgoing: slab(place)?, incoming: slab(place)?, to: None });
            let (pairs, parcels) = (places.iter().map(pair).collect::<Result<_>>()?, Some(Parcels::new(cuda, links, &others)?));
            let (cuda, links, exchanges) = (cuda.clone(), links.clone(), AtomicUsize::new(0));
            return Ok(Self { cuda, links, pairs, exchanges, events, peers: Vec::new(), parcels });
        }
        // Every part says which GPU it is on, so that the others know what they reach.
        for place in places {
            links.hand(place.part, Box::new(cuda.clone()))?;
        }
        let mut ends = Vec::new();
        for place in places {
            let Ok(their) = links.take(place.part)?.downcast::<Cuda>() else { return Err(mismatch(place.part)) };
            ends.push((slab(place)?, if cuda.reach(&their)? { None } else { Some(slab(place)?) }));
        }
        // Zeros are there before anybody writes.
        cuda.synchronize()?;
        for (own, (place, (outgoing, incoming))) in places.iter().zip(&ends).enumerate() {
            let (outgoing, incoming) = (outgoing.clone(), incoming.clone());
            let introduction = Introduction { outgoing, incoming, cuda: cuda.clone(), events: events.clone() };
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
            let fits = |p: &Place| p.part == *part && p.theirs == theirs && HALVES * p.bytes == introduction.outgoing.len();
            if !places.get(own).is_some_and(fits) || found[own].is_some() {
                return Err(mismatch(*part));
            }
            found[own] = Some(introduction);
        }
        let mut peers: Vec<(usize, Cuda, Arc<Events>)> = Vec::new();
        let mut pairs = Vec::new();
        for ((place, (outgoing, incoming)), introduction) in places.iter().zip(ends).zip(found) {
            let Introduction { outgoing: theirs, incoming: to, cuda: their, events } = introduction.ok_or_else(|| mismatch(place.part))?;
            if peers.iter().all(|(part, ..)| *part != place.part) {
                peers.push((place.part, their, events));
            }
            pairs.push(Pair { place: *place, outgoing, incoming: incoming.unwrap_or(theirs), to });
        }
        let (cuda, links, exchanges) = (cuda.clone(), links.clone(), AtomicUsize::new(0));
        Ok(Self { cuda, links, pairs, exchanges, events, peers, parcels: None })
    }

    /// Slab that goes to place `k`, both halves of it, to be written on the device.
    pub fn outgoing(&self, k: usize) -> &Buffer<u8> {
        &self.pairs[k].outgoing
    }

    /// Slab that has come from place `k`, both halves of it.
    pub fn incoming(&self, k: usize) -> &Buffer<u8> {
        &self.pairs[k].incoming
    }

    /// Half of the slabs that goes with the next exchange; what came with the last one is in the other one.
    pub fn half(&self) -> usize {
        self.exchanges.load(Ordering::Relaxed) % HALVES
    }

    /// Address of what goes to place `k` with the next exchange.
    pub fn next(&self, k: usize) -> u64 {
        self.outgoing(k).address() + (self.half() * self.pairs[k].place.bytes) as u64
    }

    /// Address of what came from place `k` with the last exchange.
    pub fn last(&self, k: usize) -> u64 {
        self.incoming(k).address() + ((1 - self.half()) * self.pairs[k].place.bytes) as u64
    }

    /// Has all outgoing slabs, as the stream has written them by now, go to the others; what is put on the stream afterwards finds
    /// theirs in the incoming ones. All parts call this alike. Does not wait for the device, unless others are processes.
    ///
    /// # Errors
    /// Another part has failed.
    pub fn exchange(&self) -> Result<()> {
        self.exchange_with(&[])
    }

    /// Exchanges others along with these, between the same parts, for which the streams wait for each other once.
    ///
    /// # Errors
    /// Another part has failed.
    pub fn exchange_with(&self, others: &[&Self]) -> Result<()> {
        let all: Vec<(&Self, usize)> =
            std::iter::once(&self).chain(others).map(|slabs| (*slabs, slabs.exchanges.fetch_add(1, Ordering::Relaxed) % HALVES)).collect();
        if let Some(parcels) = &self.parcels {
            return self.exchange_parcels(parcels, &all);
        }
        // Readers of the other half are ahead of the others' marks of the exchange before, which this stream has waited for.
        for (slabs, half) in &all {
            for pair in &slabs.pairs {
                if let Some(to) = &pair.to {
                    let (at, bytes) = (half * pair.place.bytes, pair.place.bytes);
                    self.cuda.copy_to_peer(&pair.outgoing, at, to, at, bytes)?;
                }
            }
        }
        let half = all[0].1;
        self.cuda.record(&self.events.sent[half])?;
        self.tell()?;
        for (part, _, events) in &self.peers {
            self.hear(*part)?;
            self.cuda.wait_for(&events.sent[half])?;
        }
        Ok(())
    }

    /// Exchanges these halves of slabs with parts that are other processes.
    fn exchange_parcels(&self, parcels: &Parcels, all: &[(&Self, usize)]) -> Result<()> {
        if let Some(direct) = parcels.direct() {
            let (mut out, mut back) = (Vec::new(), Vec::new());
            for (slabs, half) in all {
                // Both ends of a place take theirs in one order, that of the part before: nothing needs to be said.
                let rank = self.links.rank();
                let mut pairs: Vec<(usize, &Pair)> = slabs.pairs.iter().enumerate().collect();
                pairs.sort_by_key(|(own, Pair { place, .. })| (place.part, if rank < place.part { *own } else { place.theirs }));
                let portion = |memory, place: &Place| Portion { part: place.part, memory, at: half * place.bytes, bytes: place.bytes };
                out.extend(pairs.iter().map(|(_, pair)| portion(pair.outgoing.memory(), &pair.place)));
                back.extend(pairs.iter().map(|(_, pair)| portion(pair.incoming.memory(), &pair.place)));
            }
            return direct.exchange(&out, &back);
        }
        let mut parcel: Vec<(usize, Vec<Piece>)> = Vec::new();
        for (number, (slabs, half)) in all.iter().enumerate() {
            for Pair { place: Place { part, theirs, bytes }, outgoing, .. } in &slabs.pairs {
                let at = half * bytes;
                let piece = Piece { memory: outgoing.memory().clone(), at, bytes: *bytes, buffer: number * MOST_PLACES + theirs, to: at };
                match parcel.iter_mut().find(|(other, _)| other == part) {
                    Some((_, pieces)) => pieces.push(piece),
                    None => parcel.push((*part, vec![piece])),
                }
            }
        }
        parcels.exchange(&parcel, |buffer| {
            let (slabs, _) = all.get(buffer / MOST_PLACES)?;
            slabs.pairs.get(buffer % MOST_PLACES).map(|pair| pair.incoming.memory())
        })
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

/// Compares places with those of parts that are other processes, which hold their ends.
fn introduce(links: &Links, places: &[Place]) -> Result<()> {
    for (own, place) in places.iter().enumerate() {
        let card = [own, place.theirs, HALVES * place.bytes].map(|number| number as u64);
        links.send(place.part, bytemuck::cast_slice(&card).to_vec())?;
    }
    let mut found = vec![false; places.len()];
    for Place { part, .. } in places {
        let card = links.receive(*part)?;
        let &[theirs, own, bytes] = &values::<u64>(&card)[..] else { return Err(mismatch(*part)) };
        let fits = |p: &Place| p.part == *part && p.theirs as u64 == theirs && (HALVES * p.bytes) as u64 == bytes;
        match found.get_mut(own as usize) {
            Some(found) if !*found && fits(&places[own as usize]) => *found = true,
            _ => return Err(mismatch(*part)),
        }
    }
    Ok(())
}

impl Drop for Slabs {
    fn drop(&mut self) {
        // Copies into the others' slabs, and reads of them, which may go next.
        let _ = self.cuda.synchronize();
    }
}

/// Error of parts that do not exchange the same.
pub(super) fn mismatch(part: usize) -> Error {
    let problem = Problem::new("", format!("part {part} does not exchange what this one does"));
    Error::input("parts of a run", problem.hint("this is a fault of the program: please report it with the input"))
}
