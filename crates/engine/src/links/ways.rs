//! Copies one way, from a part's device memory into that of another, on one GPU or between two.
//!
//! Where parts exchange alike there are [`Slabs`](super::Slabs); here a part copies to others what is ready, and goes on. The host
//! waits for no GPU, only for the others' threads to have put their share on their streams; events keep the streams in order.

use std::any::Any;
use std::sync::Arc;

use bytemuck::Pod;

use super::slabs::mismatch;
use super::{Handed, Links};
use crate::cuda::{Buffer, Cuda, Event};
use crate::error::Result;

/// Word of a part that something is on its stream.
const POSTED: u8 = 1;

/// A buffer that the other parts copy to, and theirs that this one copies to.
#[derive(Debug)]
pub struct Opened<T> {
    own: Arc<Buffer<T>>,
    /// By part; nothing for this one.
    others: Vec<Option<Arc<Buffer<T>>>>,
}

impl<T: Pod + Send + Sync> Opened<T> {
    /// Opens a buffer to all other parts, which open theirs at the same time.
    ///
    /// # Errors
    /// Parts are processes, which do not see each other's memory.
    pub fn new(links: &Links, own: Arc<Buffer<T>>) -> Result<Self> {
        let others = introduced(links, &own)?;
        Ok(Self { own, others })
    }

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

/// Marks of one part in its stream, some for each other part: a mark is not made anew before it was heard.
type Marks = (Cuda, Vec<Vec<Event>>);

/// Ways of a part to all others.
#[derive(Debug)]
pub struct Ways {
    cuda: Cuda,
    links: Links,
    own: Arc<Marks>,
    others: Vec<Option<Arc<Marks>>>,
    /// Words to each part so far, and from it.
    posted: Vec<usize>,
    heard: Vec<usize>,
}

impl Ways {
    /// Ways on which a part says at most `words` words to another one between two times at which all [settle](Self::settle).
    ///
    /// # Errors
    /// Parts are processes, which do not see each other's memory.
    pub fn new(cuda: &Cuda, links: &Links, words: usize) -> Result<Self> {
        // One part may be ahead of another by what lies between two times.
        let count = |part| if part == links.rank() { 0 } else { 2 * words + 4 };
        let marks = |part| (0..count(part)).map(|_| cuda.event_without_time()).collect();
        let own = Arc::new((cuda.clone(), (0..links.size()).map(marks).collect::<Result<_>>()?));
        let others = introduced(links, &own)?;
        others.iter().flatten().try_for_each(|marks| cuda.reach(&marks.0))?;
        let none = vec![0; links.size()];
        Ok(Self { cuda: cuda.clone(), links: links.clone(), own, others, posted: none.clone(), heard: none })
    }

    /// Copies `n` values of a buffer, as the stream has written them by now, to the one that another part has opened. That part has
    /// read by then what was there: this stream has waited for a word that came after, its own or one that followed from it.
    pub fn copy<T: Pod>(&self, from: &Buffer<T>, from_at: usize, to: &Opened<T>, part: usize, to_at: usize, n: usize) -> Result<()> {
        match &to.others[part] {
            Some(to) => self.cuda.copy_to_peer(from, from_at, to, to_at, n),
            None => Ok(()),
        }
    }

    /// Tells another part that everything is on the stream so far.
    ///
    /// # Errors
    /// Another part has failed.
    pub fn post(&mut self, part: usize) -> Result<()> {
        let marks = &self.own.1[part];
        self.cuda.record(&marks[self.posted[part] % marks.len()])?;
        self.posted[part] += 1;
        self.links.send(part, vec![POSTED])
    }

    /// Lets the stream wait for the next word of another part: what is put on it afterwards finds what was copied here before.
    ///
    /// # Errors
    /// Another part has failed.
    pub fn hear(&mut self, part: usize) -> Result<()> {
        if self.links.receive(part)? != [POSTED] {
            return Err(mismatch(part));
        }
        let Some(marks) = &self.others[part] else { return Err(mismatch(part)) };
        let marks = &marks.1[self.links.rank()];
        self.cuda.wait_for(&marks[self.heard[part] % marks.len()])?;
        self.heard[part] += 1;
        Ok(())
    }

    /// Lets all streams wait for what is on all others by now; all parts call this alike.
    ///
    /// # Errors
    /// Another part has failed.
    pub fn settle(&mut self) -> Result<()> {
        self.others().try_for_each(|part| self.post(part))?;
        self.others().try_for_each(|part| self.hear(part))
    }

    /// Numbers of the other parts.
    pub fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let own = self.links.rank();
        (0..self.links.size()).filter(move |part| *part != own)
    }
}

impl Drop for Ways {
    fn drop(&mut self) {
        // Copies into the others' buffers, which may go next.
        let _ = self.cuda.synchronize();
    }
}
