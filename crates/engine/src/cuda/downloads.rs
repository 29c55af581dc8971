//! Copies to the host that are waited for later, when the device has its next work ([`Downloads`]).
//!
//! On the stream of the kernels a copy would hold these up by the change to the copy engine and back: 8 us of an iteration of 48
//! (H200, 2026-11-29). There the values are only put aside; from there a stream of its own copies them.

use bytemuck::Pod;

use super::context::Cuda;
use super::event::Event;
use super::memory::Buffer;
use super::stream::{Pinned, Stream};
use crate::error::Result;

/// Copies under way at once, at most.
const SLOTS: usize = 2;

/// Way of some values to the host.
#[derive(Debug)]
struct Slot<T: Pod> {
    /// Values as they were when the copy was begun.
    aside: Buffer<T>,
    there: Event,
    host: Pinned<T>,
    done: Event,
}

/// Copies of `n` values to the host, taken in the order in which they were begun.
#[derive(Debug)]
pub struct Downloads<T: Pod> {
    cuda: Cuda,
    stream: Stream,
    slots: [Slot<T>; SLOTS],
    /// Copies begun and taken so far.
    begun: usize,
    taken: usize,
}

impl<T: Pod> Downloads<T> {
    /// Room for copies of `n` values. `what` names it when memory runs out.
    pub fn new(cuda: &Cuda, n: usize, what: &str) -> Result<Self> {
        let event = || cuda.event_without_time();
        let slot = || Ok(Slot { aside: cuda.alloc_zeros(n, what)?, there: event()?, host: cuda.pinned(n, what)?, done: event()? });
        Ok(Self { cuda: cuda.clone(), stream: cuda.side_stream()?, slots: [slot()?, slot()?], begun: 0, taken: 0 })
    }

    /// Number of copies that were begun and not taken.
    pub fn under_way(&self) -> usize {
        self.begun - self.taken
    }

    /// Begins a copy of the first values of `buffer` as they are behind what is on the stream.
    ///
    /// # Panics
    /// If the buffer has fewer values, or two copies are under way.
    pub fn begin(&mut self, buffer: &Buffer<T>) -> Result<()> {
        assert!(self.under_way() < SLOTS, "a third copy while two are under way");
        let Slot { aside, there, host, done } = &mut self.slots[self.begun % SLOTS];
        // A copy before to this slot was waited for when it was taken.
        self.cuda.copy(buffer, 0, aside, 0, host.len())?;
        self.cuda.record(there)?;
        self.stream.wait_for(there)?;
        // SAFETY: the memory is page-locked and this value's own, like what is put aside; both are read, written anew or freed only
        // after the event, or the stream, was waited for.
        unsafe { self.stream.download(aside, 0, host)? };
        self.begun += 1;
        self.stream.record(done)
    }

    /// Waits for the copy that was begun first and returns its values.
    ///
    /// # Panics
    /// If none is under way.
    pub fn take(&mut self) -> Result<&[T]> {
        assert!(self.under_way() > 0, "no copy is under way");
        let Slot { host, done, .. } = &self.slots[self.taken % SLOTS];
        done.wait()?;
        self.taken += 1;
        Ok(host)
    }
}

impl<T: Pod> Drop for Downloads<T> {
    fn drop(&mut self) {
        // Copies under way write to the memory that is freed next.
        if self.under_way() > 0 {
            self.cuda.synchronize().and_then(|()| self.stream.synchronize()).ok();
        }
    }
}
