//! Copies one way, from a part's device memory into that of another, on one GPU or between two.
//!
//! Where parts exchange alike there are [`Slabs`](super::Slabs); here a part copies to others what is ready, and goes on. The host
//! waits for no GPU within a process, only for the others' threads to have put their share on their streams; events keep the
//! streams in order. Between processes what was copied goes as a parcel with the next word.

use std::any::Any;
use std::sync::Arc;

use bytemuck::Pod;

use super::parcels::{Parcels, Piece};
use super::slabs::mismatch;
use super::{Handed, Links};
use crate::cuda::{Buffer, Cuda, Event, Memory};
use crate::error::Result;

/// Words of a part: that something for the other one is on its stream, and that it settles.
const POSTED: u8 = 1;
const SETTLED: u8 = 2;
/// Times at which all settle that a part may be ahead of another, and one more.
const TURNS: usize = 2;

/// A buffer that the other parts copy to, and theirs that this one copies to.
#[derive(Debug)]
pub struct Opened<T> {
    own: Arc<Buffer<T>>,
    /// By part; nothing for this one, and for those of other processes.
    others: Vec<Option<Arc<Buffer<T>>>>,
    /// Number among those that all parts have opened.
    number: usize,
}

impl<T> Opened<T> {
    /// The own buffer.
    pub fn own(&self) -> &Buffer<T> {
        &self.own
    }
}

/// Values that the other parts hand over in exchange for `own`.
fn introduced<V: Any + Send + Sync>(links: &Links, own: &Arc<V>) -> Result<Vec<Option<Arc<V>>>> {
    let parts = 0..links.size();
    for part in parts.clone().filter(|part| *part != links.rank()) {
        let card: Handed = Box::new(own.clone());
        links.hand(part, card)?;
    }
    let take = |part: usize| {
        if part == links.rank() {
            return Ok(None);
        }
        links.take(part)?.downcast::<Arc<V>>().map(|card| Some(*card)).map_err(|_| mismatch(part))
    };
    parts.map(take).collect()
}

/// Marks of one part in its stream, which are not made anew before they were heard.
#[derive(Debug)]
struct Marks {
    cuda: Cuda,
    /// Some for each other part.
    posted: Vec<Vec<Event>>,
    /// For all.
    settled: Vec<Event>,
}

/// Ways of a part to all others.
#[derive(Debug)]
pub struct Ways {
    cuda: Cuda,
    links: Links,
    kind: Kind,
    /// Own buffers that are open to the others.
    opened: Vec<Memory>,
}

#[derive(Debug)]
enum Kind {
    /// Within a process.
    Near {
        own: Arc<Marks>,
        others: Vec<Option<Arc<Marks>>>,
        /// Words to each part so far, and from it.
        posted: Vec<usize>,
        heard: Vec<usize>,
        /// Times at which all have settled.
        settled: usize,
    },
    /// To other processes, with what waits for the next word to each.
    Far { parcels: Parcels, waiting: Vec<Vec<Piece>> },
}

impl Ways {
    /// Ways on which a part says at most `words` words to another one between two times at which all [settle](Self::settle).
    pub fn new(cuda: &Cuda, links: &Links, words: usize) -> Result<Self> {
        let kind = if links.shares_memory() {
            // One part may be ahead of another by what lies between two times.
            let count = |part| if part == links.rank() { 0 } else { 2 * words + 4 };
            let marks = |count| (0..count).map(|_| cuda.event_without_time()).collect::<Result<Vec<_>>>();
            let posted = (0..links.size()).map(|part| marks(count(part))).collect::<Result<_>>()?;
            let own = Arc::new(Marks { cuda: cuda.clone(), posted, settled: marks(TURNS)? });
            let others = introduced(links, &own)?;
            others.iter().flatten().try_for_each(|marks| cuda.reach(&marks.cuda).map(drop))?;
            let none = vec![0; links.size()];
            Kind::Near { own, others, posted: none.clone(), heard: none, settled: 0 }
        } else {
            Kind::Far { parcels: Parcels::new(cuda, links)?, waiting: vec![Vec::new(); links.size()] }
        };
        Ok(Self { cuda: cuda.clone(), links: links.clone(), kind, opened: Vec::new() })
    }

    /// Opens a buffer to all other parts, which open theirs at the same time.
    pub fn open<T: Pod + Send + Sync>(&mut self, own: Arc<Buffer<T>>) -> Result<Opened<T>> {
        let others = match self.kind {
            Kind::Near { .. } => introduced(&self.links, &own)?,
            Kind::Far { .. } => Vec::new(),
        };
        self.opened.push(own.memory().clone());
        Ok(Opened { own, others, number: self.opened.len() - 1 })
    }

    /// Copies `n` values of a buffer to the one that another part has opened, with the next word to that part: as the stream has
    /// written them by now, if they are left alone until then. That part has read by then what was there: this stream has waited
    /// for a word that came after, its own or one that followed from it.
    pub fn copy<T: Pod>(&mut self, from: &Buffer<T>, from_at: usize, to: &Opened<T>, part: usize, to_at: usize, n: usize) -> Result<()> {
        match &mut self.kind {
            Kind::Near { .. } => match &to.others[part] {
                Some(to) => self.cuda.copy_to_peer(from, from_at, to, to_at, n),
                None => Ok(()),
            },
            Kind::Far { waiting, .. } => {
                let [at, to_at, bytes] = [from_at, to_at, n].map(|values| values * size_of::<T>());
                waiting[part].push(Piece { memory: from.memory().clone(), at, bytes, buffer: to.number, to: to_at });
                Ok(())
            }
        }
    }

    /// Tells another part that everything is on the stream so far.
    ///
    /// # Errors
    /// Another part has failed.
    pub fn post(&mut self, part: usize) -> Result<()> {
        match &mut self.kind {
            Kind::Near { own, posted, .. } => {
                let marks = &own.posted[part];
                self.cuda.record(&marks[posted[part] % marks.len()])?;
                posted[part] += 1;
                self.links.send(part, vec![POSTED])
            }
            Kind::Far { parcels, waiting } => parcels.send(&[(part, std::mem::take(&mut waiting[part]))]),
        }
    }

    /// Lets the stream wait for the next word of another part: what is put on it afterwards finds what was copied here before.
    ///
    /// # Errors
    /// Another part has failed.
    pub fn hear(&mut self, part: usize) -> Result<()> {
        match &mut self.kind {
            Kind::Near { others, heard, .. } => {
                let marks = &word(&self.links, others, part, POSTED)?.posted[self.links.rank()];
                self.cuda.wait_for(&marks[heard[part] % marks.len()])?;
                heard[part] += 1;
                Ok(())
            }
            Kind::Far { parcels, .. } => parcels.receive(part, |number| self.opened.get(number)),
        }
    }

    /// Lets all streams wait for what is on all others by now; all parts call this alike.
    ///
    /// # Errors
    /// Another part has failed.
    pub fn settle(&mut self) -> Result<()> {
        let parts = self.others();
        match &mut self.kind {
            Kind::Near { own, others, settled, .. } => {
                let turn = *settled % TURNS;
                *settled += 1;
                self.cuda.record(&own.settled[turn])?;
                parts.clone().try_for_each(|part| self.links.send(part, vec![SETTLED]))?;
                parts.clone().try_for_each(|part| self.cuda.wait_for(&word(&self.links, others, part, SETTLED)?.settled[turn]))
            }
            Kind::Far { parcels, waiting } => {
                // Each writes here what comes, in turn with what reads it: nobody has to wait for others to have read.
                let all: Vec<_> = parts.map(|part| (part, std::mem::take(&mut waiting[part]))).collect();
                parcels.exchange(&all, |number| self.opened.get(number))
            }
        }
    }

    /// Numbers of the other parts.
    pub fn others(&self) -> impl Iterator<Item = usize> + Clone + use<> {
        let own = self.links.rank();
        (0..self.links.size()).filter(move |part| *part != own)
    }
}

/// Takes the next word of another part of the process, which is to be this one; gives that part's marks.
fn word<'a>(links: &Links, others: &'a [Option<Arc<Marks>>], part: usize, word: u8) -> Result<&'a Marks> {
    let fits = links.receive(part)? == [word];
    others[part].as_deref().filter(|_| fits).ok_or_else(|| mismatch(part))
}

impl Drop for Ways {
    fn drop(&mut self) {
        // Copies into the others' buffers, which may go next.
        let _ = self.cuda.synchronize();
    }
}
