//! Meetings of the streams of several parts: copies into the memory of others, between two marks in each stream.

use std::sync::Arc;

use super::Links;
use super::slabs::mismatch;
use crate::cuda::{Cuda, Event};
use crate::error::Result;

/// Marks in a part's stream.
#[derive(Debug)]
struct Events {
    /// Others may write to this part's memory.
    free: Event,
    /// This part's copies to others are done.
    sent: Event,
}

/// Card that a part gives to those that it meets.
#[derive(Debug, Clone)]
pub(super) struct Mark {
    cuda: Cuda,
    events: Arc<Events>,
}

/// Parts that meet, as one of them sees it.
#[derive(Debug)]
pub(super) struct Meeting {
    links: Links,
    own: Mark,
    /// Other parts, each once.
    peers: Vec<(usize, Mark)>,
}

impl Meeting {
    /// A meeting of this part alone.
    pub(super) fn new(cuda: &Cuda, links: &Links) -> Result<Self> {
        let events = Arc::new(Events { free: cuda.event_without_time()?, sent: cuda.event_without_time()? });
        Ok(Self { links: links.clone(), own: Mark { cuda: cuda.clone(), events }, peers: Vec::new() })
    }

    /// This part's mark, for the others.
    pub(super) fn mark(&self) -> Mark {
        self.own.clone()
    }

    /// Takes in another part, once.
    pub(super) fn join(&mut self, part: usize, mark: Mark) -> Result<()> {
        if self.peers.iter().all(|(other, _)| *other != part) {
            self.own.cuda.reach(&mark.cuda)?;
            self.peers.push((part, mark));
        }
        Ok(())
    }

    /// Puts `copies` to the memory of others on the stream. What is on the streams of all before comes before them, and what is put
    /// on this stream afterwards comes after the others' copies to here. All parts call this alike. Waits for no device.
    ///
    /// # Errors
    /// Another part has failed.
    pub(super) fn hold(&self, copies: impl FnOnce(&Cuda) -> Result<()>) -> Result<()> {
        let Mark { cuda, events } = &self.own;
        // Readers of what came in the meeting before are ahead of this mark.
        cuda.record(&events.free)?;
        self.tell()?;
        for (part, their) in &self.peers {
            self.hear(*part)?;
            cuda.wait_for(&their.events.free)?;
        }
        copies(cuda)?;
        cuda.record(&events.sent)?;
        self.tell()?;
        for (part, their) in &self.peers {
            self.hear(*part)?;
            cuda.wait_for(&their.events.sent)?;
        }
        Ok(())
    }

    /// Tells the others that this part's mark is in its stream.
    fn tell(&self) -> Result<()> {
        self.peers.iter().try_for_each(|(part, _)| self.links.send(*part, Vec::new()))
    }

    /// Waits for another part's word of that.
    fn hear(&self, part: usize) -> Result<()> {
        if self.links.receive(part)?.is_empty() { Ok(()) } else { Err(mismatch(part)) }
    }
}

impl Drop for Meeting {
    fn drop(&mut self) {
        // Copies into the others' memory, which may go next.
        let _ = self.own.cuda.synchronize();
    }
}
