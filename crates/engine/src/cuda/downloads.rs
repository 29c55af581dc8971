//! Copies to the host that are waited for later, by whoever has use for them ([`Downloads`], [`Coming`]).
//!
//! On the stream of the kernels a copy would hold these up by the change to the copy engine and back: 8 us of an iteration of 48
//! (H200, 2026-11-29). There the values are only put aside; from there a stream of its own copies them.

use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::Pod;

use super::context::Cuda;
use super::event::Event;
use super::memory::{Buffer, Memory};
use super::stream::{Pinned, Stream};
use crate::error::Result;

/// Way of some values to the host.
#[derive(Debug)]
struct Slot<T: Pod> {
    /// Values as they were when the copy was begun; none where they are copied from their place.
    aside: Buffer<T>,
    there: Event,
    host: Pinned<T>,
    done: Event,
    /// Memory that is copied from its place, held until it was.
    held: Option<Memory>,
}

/// Slots that are at rest, of which each is taken again for another copy: memory is had once.
type AtRest<T> = Arc<Mutex<Vec<Slot<T>>>>;

/// Copies of values to the host, beside the kernels.
#[derive(Debug)]
pub struct Downloads<T: Pod> {
    cuda: Cuda,
    stream: Stream,
    at_rest: AtRest<T>,
    /// Mark behind the last copy.
    last: Event,
    what: String,
}

/// Values on their way to the host, which any thread may wait for.
#[derive(Debug)]
pub struct Coming<T: Pod> {
    /// Some until it is dropped.
    slot: Option<Slot<T>>,
    len: usize,
    at_rest: AtRest<T>,
}

impl<T: Pod> Downloads<T> {
    /// No copies yet. `what` names their memory when it runs out.
    pub fn new(cuda: &Cuda, what: &str) -> Result<Self> {
        let last = cuda.event_without_time()?;
        Ok(Self { cuda: cuda.clone(), stream: cuda.side_stream()?, at_rest: AtRest::default(), last, what: what.to_owned() })
    }

    /// The downloads in `slot`, made when they are asked for first.
    pub fn of<'a>(slot: &'a mut Option<Self>, cuda: &Cuda, what: &str) -> Result<&'a mut Self> {
        match slot {
            Some(downloads) => Ok(downloads),
            none => Ok(none.insert(Self::new(cuda, what)?)),
        }
    }

    /// Has the memory of a copy of `n` values ready: in a step it would take its time.
    pub fn reserve(&mut self, n: usize, in_place: bool) -> Result<()> {
        let slot = self.slot(n, in_place)?;
        rest(&self.at_rest, slot);
        Ok(())
    }

    /// Begins a copy of the first `n` values of `buffer` as they are behind what is on the stream.
    ///
    /// # Panics
    /// If the buffer has fewer values.
    pub fn begin(&mut self, buffer: &Buffer<T>, n: usize) -> Result<Coming<T>> {
        let cuda = self.cuda.clone();
        self.begin_filled(n, |aside| cuda.copy(buffer, 0, aside, 0, n))
    }

    /// Begins a copy of `n` values that `fill` has put into memory of the device: by launches on the stream.
    pub fn begin_filled(&mut self, n: usize, fill: impl FnOnce(&mut Buffer<T>) -> Result<()>) -> Result<Coming<T>> {
        let mut slot = self.slot(n, false)?;
        fill(&mut slot.aside)?;
        self.send(slot, n, None)
    }

    /// Begins a copy of the first `n` values of `buffer` from where they lie, which takes no memory of the device. What changes
    /// them must be put on the stream behind [`Downloads::before_changes`].
    ///
    /// # Panics
    /// If the buffer has fewer values.
    pub fn begin_in_place(&mut self, buffer: &Buffer<T>, n: usize) -> Result<Coming<T>> {
        let slot = self.slot(n, true)?;
        self.send(slot, n, Some(buffer))
    }

    /// Makes what is put on the stream from now on wait for the copies that were begun. The host does not wait.
    pub fn before_changes(&self) -> Result<()> {
        self.cuda.wait_for(&self.last)
    }

    /// A slot with room for `n` values, the smallest there is.
    fn slot(&self, n: usize, in_place: bool) -> Result<Slot<T>> {
        let mut at_rest = self.at_rest.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |slot: &Slot<T>| slot.host.len() >= n && (in_place || slot.aside.len() >= n);
        let smallest = (0..at_rest.len()).filter(|k| fits(&at_rest[*k])).min_by_key(|k| at_rest[*k].host.len());
        if let Some(k) = smallest {
            return Ok(at_rest.swap_remove(k));
        }
        drop(at_rest);
        let (cuda, what) = (&self.cuda, &self.what);
        let event = || cuda.event_without_time();
        let aside = cuda.alloc_zeros(if in_place { 0 } else { n }, what)?;
        Ok(Slot { aside, there: event()?, host: cuda.pinned(n, what)?, done: event()?, held: None })
    }

    fn send(&mut self, mut slot: Slot<T>, n: usize, place: Option<&Buffer<T>>) -> Result<Coming<T>> {
        let Slot { aside, there, host, done, held } = &mut slot;
        *held = place.map(|buffer| buffer.memory().clone());
        self.cuda.record(there)?;
        self.stream.wait_for(there)?;
        // SAFETY: the host's memory is page-locked and the slot's own; it is read, written anew or freed only after the event, or the
        // stream, was waited for. So is what was put aside, which nobody else has; memory that is copied from its place is held.
        let begun = unsafe { self.stream.download(place.unwrap_or(aside), 0, &mut host[..n]) };
        if let Err(error) = begun.and_then(|()| self.stream.record(done)).and_then(|()| self.stream.record(&self.last)) {
            self.stream.synchronize().ok();
            return Err(error);
        }
        Ok(Coming { slot: Some(slot), len: n, at_rest: self.at_rest.clone() })
    }
}

impl<T: Pod> Coming<T> {
    /// Waits until the values are there.
    pub fn wait(&self) -> Result<&[T]> {
        let Some(Slot { host, done, .. }) = &self.slot else { return Ok(&[]) };
        done.wait()?;
        Ok(&host[..self.len])
    }
}

impl<T: Pod> Drop for Coming<T> {
    fn drop(&mut self) {
        let Some(mut slot) = self.slot.take() else { return };
        // The copy writes to memory that is used again. A device that has failed copies no more.
        if slot.done.wait().is_ok() {
            slot.held = None;
            rest(&self.at_rest, slot);
        }
    }
}

fn rest<T: Pod>(at_rest: &AtRest<T>, slot: Slot<T>) {
    at_rest.lock().unwrap_or_else(PoisonError::into_inner).push(slot);
}
