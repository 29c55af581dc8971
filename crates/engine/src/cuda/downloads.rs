//! Copies to the host that are waited for later, when the device has its next work ([`Downloads`]).

use bytemuck::Pod;

use super::context::Cuda;
use super::event::Event;
use super::memory::Buffer;
use super::stream::Pinned;
use crate::error::Result;

/// Copies under way at once, at most.
const SLOTS: usize = 2;

/// Copies of `n` values to the host, taken in the order in which they were begun.
#[derive(Debug)]
pub struct Downloads<T: Pod> {
    cuda: Cuda,
    slots: [(Pinned<T>, Event); SLOTS],
    /// Copies begun and taken so far.
    begun: usize,
    taken: usize,
}

impl<T: Pod> Downloads<T> {
    /// Page-locked memory for copies of `n` values. `what` names it when memory runs out.
    pub fn new(cuda: &Cuda, n: usize, what: &str) -> Result<Self> {
        let slot = || Ok((cuda.pinned(n, what)?, cuda.event_without_time()?));
        Ok(Self { cuda: cuda.clone(), slots: [slot()?, slot()?], begun: 0, taken: 0 })
    }

    /// Number of copies that were begun and not taken.
    pub fn under_way(&self) -> usize {
        self.begun - self.taken
    }

    /// Puts a copy of the first values of `buffer` on the stream.
    ///
    /// # Panics
    /// If the buffer has fewer values, or two copies are under way.
    pub fn begin(&mut self, buffer: &Buffer<T>) -> Result<()> {
        assert!(self.under_way() < SLOTS, "a third copy while two are under way");
        let (host, event) = &mut self.slots[self.begun % SLOTS];
        // SAFETY: the memory is page-locked and this value's own; it is read, begun anew or freed only after the event, or the stream,
        // was waited for.
        unsafe { self.cuda.memory_to_host(buffer.memory(), 0, bytemuck::cast_slice_mut(host))? };
        self.begun += 1;
        self.cuda.record(event)
    }

    /// Waits for the copy that was begun first and returns its values.
    ///
    /// # Panics
    /// If none is under way.
    pub fn take(&mut self) -> Result<&[T]> {
        assert!(self.under_way() > 0, "no copy is under way");
        let (host, event) = &self.slots[self.taken % SLOTS];
        event.wait()?;
        self.taken += 1;
        Ok(host)
    }
}

impl<T: Pod> Drop for Downloads<T> {
    fn drop(&mut self) {
        // Copies under way write to the memory that is freed next.
        if self.under_way() > 0 {
            self.cuda.synchronize().ok();
        }
    }
}
