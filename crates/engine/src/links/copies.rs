//! Buffers of device memory that several parts have, and copies from one part's into the others'.
//!
//! As with [`super::Slabs`] the host waits for no GPU. Slabs have places of their own; here nothing is copied twice.

use std::any::Any;

use super::Links;
use super::meeting::{Mark, Meeting, mismatch};
use crate::cuda::{Buffer, Cuda, Memory};
use crate::error::Result;

/// Copy of bytes of a buffer to another part's buffer of the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyTo {
    /// The other part.
    pub part: usize,
    /// Number of the buffer.
    pub buffer: usize,
    /// First byte here.
    pub from: usize,
    /// First byte there.
    pub to: usize,
    /// Bytes.
    pub bytes: usize,
}

/// Buffers of one part with those of the others that it copies to.
#[derive(Debug)]
pub struct Copies {
    // Dropped before the memory that its stream copies to.
    meeting: Meeting,
    own: Vec<Memory>,
    theirs: Vec<(usize, Vec<Memory>)>,
}

impl Copies {
    /// Copies among `parts` and this one, which all call this alike, of `buffers`, which all have in this order.
    ///
    /// # Errors
    /// Parts are processes, which do not see each other's memory.
    pub fn new(cuda: &Cuda, links: &Links, parts: &[usize], buffers: &[&Buffer<u8>]) -> Result<Self> {
        let mut meeting = Meeting::new(cuda, links)?;
        let own: Vec<Memory> = buffers.iter().map(|buffer| buffer.memory().clone()).collect();
        // Zeros are there before anybody writes.
        cuda.synchronize()?;
        let others = || parts.iter().copied().filter(|part| *part != links.rank());
        for part in others() {
            let card: Box<dyn Any + Send> = Box::new((meeting.mark(), own.clone()));
            links.hand(part, card)?;
        }
        let mut theirs = Vec::new();
        for part in others() {
            let card = links.take(part)?.downcast::<(Mark, Vec<Memory>)>().map_err(|_| mismatch(part))?;
            let (mark, memory) = *card;
            if memory.len() != own.len() {
                return Err(mismatch(part));
            }
            meeting.join(part, mark)?;
            theirs.push((part, memory));
        }
        Ok(Self { meeting, own, theirs })
    }

    /// Makes `copies`, as the stream has written their sources by now; what is put on the stream afterwards finds those of the
    /// others to here. All parts call this alike, each with its own copies. Does not wait for the device.
    ///
    /// # Errors
    /// Another part has failed.
    ///
    /// # Panics
    /// Where bytes do not lie in a buffer.
    pub fn exchange(&self, copies: &[CopyTo]) -> Result<()> {
        self.meeting.hold(|cuda| {
            copies.iter().try_for_each(|copy| {
                let (_, theirs) = self.theirs.iter().find(|(part, _)| *part == copy.part).ok_or_else(|| mismatch(copy.part))?;
                cuda.copy_memory(&self.own[copy.buffer], copy.from, &theirs[copy.buffer], copy.to, copy.bytes)
            })
        })
    }
}
