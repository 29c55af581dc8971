//! The way of blocks: page-locked host memory, the slots on the device, and the two streams that copy while the main one computes.

use zellige_engine::cuda::{Buffer, Cuda, Event, Pinned, Pool, Stream};
use zellige_engine::error::Result;

use super::layout::{DeviceMemory, Layout};
use crate::stages::cuda::number::{C, Number};

/// Access of a sweep to the stored data of the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Access {
    /// Frames are read.
    pub(super) raw: bool,
    /// Waves are read.
    pub(super) read: bool,
    /// Waves are written.
    pub(super) write: bool,
}

impl Access {
    fn number(self) -> usize {
        usize::from(self.raw) | usize::from(self.read) << 1 | usize::from(self.write) << 2
    }
}

/// Stored data of a block, on the device.
pub(super) struct StoredBlock<T> {
    pub(super) raw: Buffer<u8>,
    pub(super) waves: Buffer<C<T>>,
    /// Both parts of a value in a word.
    pub(super) half_precision: Buffer<u32>,
}

impl<T: Number> StoredBlock<T> {
    fn new(pool: &Pool, need: &DeviceMemory, views: usize, half: bool) -> Result<Self> {
        let (raw, wave) = (need.raw as usize * views, need.wave as usize * views);
        let what = "ptycho: frames";
        Ok(Self {
            raw: pool.alloc_zeros(raw, what)?,
            waves: pool.alloc_zeros(if half { 0 } else { wave / size_of::<C<T>>() }, "ptycho: exit waves")?,
            half_precision: pool.alloc_zeros(if half { wave / size_of::<u32>() } else { 0 }, "ptycho: exit waves")?,
        })
    }

    /// Frames from host memory, `at` frames into the block.
    ///
    /// # Safety
    /// As [`Stream::upload`].
    pub(super) unsafe fn raw_from(&mut self, stream: &Stream, at: usize, host: &[u8]) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { stream.upload(&mut self.raw, at, host) }
    }

    /// Waves from host memory to byte `at`.
    ///
    /// # Safety
    /// As [`Stream::upload`].
    pub(super) unsafe fn waves_from(&mut self, stream: &Stream, at: usize, host: &[u8]) -> Result<()> {
        // SAFETY: the caller's.
        unsafe {
            if self.half_precision.is_empty() {
                stream.upload(&mut self.waves, at / size_of::<C<T>>(), bytemuck::cast_slice(host))
            } else {
                stream.upload(&mut self.half_precision, at / size_of::<u32>(), bytemuck::cast_slice(host))
            }
        }
    }

    /// Waves to host memory from byte `at` on.
    ///
    /// # Safety
    /// As [`Stream::download`].
    pub(super) unsafe fn waves_to(&self, stream: &Stream, at: usize, host: &mut [u8]) -> Result<()> {
        // SAFETY: the caller's.
        unsafe {
            if self.half_precision.is_empty() {
                stream.download(&self.waves, at / size_of::<C<T>>(), bytemuck::cast_slice_mut(host))
            } else {
                stream.download(&self.half_precision, at / size_of::<u32>(), bytemuck::cast_slice_mut(host))
            }
        }
    }
}

/// A block on its way.
pub(super) struct Slot<T> {
    pub(super) kept: StoredBlock<T>,
    /// Event at which the data it is to hold have arrived.
    pub(super) came: Event,
    /// The main stream is done with it.
    pub(super) done: Event,
    /// Event after which the block is no longer needed.
    pub(super) free: Event,
    /// Requests for frames and waves.
    there: [bool; 2],
}

/// Blocks that stay and blocks on their way.
pub(super) struct BlockRing<T: Number> {
    // Streams are dropped first: they wait for their copies.
    pub(super) up: Stream,
    pub(super) down: Stream,
    pub(super) cuda: Cuda,
    pub(super) layout: Layout,
    pub(super) need: DeviceMemory,
    pub(super) half: bool,
    /// Blocks that stay, by block.
    pub(super) held: Vec<Option<StoredBlock<T>>>,
    pub(super) slots: Vec<Slot<T>>,
    /// Waves of the streamed blocks, one behind the other, and whether each has come back.
    pub(super) host: Pinned<u8>,
    back: Vec<Event>,
    /// Streamed blocks that were sent for, and that were computed, since the beginning; and at the end of this sweep.
    sent: usize,
    used: usize,
    end: usize,
    now: Access,
    /// Access of the sweep that followed each kind of sweep last time.
    next: [Access; 8],
}

impl<T: Number> BlockRing<T> {
    /// Frames `raw` go to the blocks that stay.
    pub(super) fn new(cuda: &Cuda, pool: &Pool, layout: Layout, need: DeviceMemory, half: bool, raw: &[u8]) -> Result<Self> {
        let wave = need.wave as usize * layout.block;
        let mut held = Vec::new();
        for b in 0..layout.blocks() {
            let range = layout.range(b);
            held.push(match layout.streamed(b) {
                Some(_) => None,
                None => {
                    let mut kept = StoredBlock::new(pool, &need, range.len(), half)?;
                    let size = need.raw as usize;
                    cuda.upload(&mut kept.raw, &raw[range.start * size..range.end * size])?;
                    Some(kept)
                }
            });
        }
        let slot = |_| {
            let kept = StoredBlock::new(pool, &need, layout.block, half)?;
            Ok(Slot { kept, came: cuda.event()?, done: cuda.event()?, free: cuda.event()?, there: [false; 2] })
        };
        let slots: Vec<Slot<T>> = (0..layout.slots()).map(slot).collect::<Result<_>>()?;
        // Copies on other streams must not overtake the zeros.
        cuda.synchronize()?;
        Ok(Self {
            up: cuda.side_stream()?,
            down: cuda.side_stream()?,
            cuda: cuda.clone(),
            layout,
            need,
            half,
            held,
            slots,
            host: cuda.pinned(wave * layout.streamed, "ptycho: exit waves")?,
            back: (0..layout.streamed).map(|_| cuda.event()).collect::<Result<_>>()?,
            sent: 0,
            used: 0,
            end: 0,
            now: Access::default(),
            next: [Access { raw: true, read: need.wave > 0, write: false }; 8],
        })
    }

    /// Begins a sweep over all blocks in their order.
    pub(super) fn begin(&mut self, access: Access, raw: &[u8]) -> Result<()> {
        if self.end > 0 {
            self.next[self.now.number()] = access;
        }
        (self.now, self.end) = (access, self.used + self.layout.streamed);
        self.send(raw)
    }

    /// Requests blocks as far as there is memory.
    fn send(&mut self, raw: &[u8]) -> Result<()> {
        if self.layout.streamed == 0 {
            return Ok(());
        }
        while self.sent < self.used + self.slots.len() {
            let access = if self.sent < self.end { self.now } else { self.next[self.now.number()] };
            let slot = self.sent % self.slots.len();
            self.slots[slot].there = [false; 2];
            self.fill(self.sent, access, raw)?;
            self.sent += 1;
        }
        Ok(())
    }

    /// Copies what `access` reads of the block of turn `turn` to its slot.
    fn fill(&mut self, turn: usize, access: Access, raw: &[u8]) -> Result<()> {
        let (number, slot) = (turn % self.layout.streamed, turn % self.slots.len());
        let range = self.layout.range(self.block(number));
        let slot = &mut self.slots[slot];
        self.up.wait_for(&slot.free)?;
        // SAFETY: events keep the slot and the host's part until the copy is over; `raw` is page-locked memory of the caller, not written.
        unsafe {
            if access.raw && !slot.there[0] {
                let size = self.need.raw as usize;
                slot.kept.raw_from(&self.up, 0, &raw[range.start * size..range.end * size])?;
                slot.there[0] = true;
            }
            if access.read && !slot.there[1] {
                self.up.wait_for(&self.back[number])?;
                let size = self.need.wave as usize;
                let begin = number * self.layout.block * size;
                slot.kept.waves_from(&self.up, 0, &self.host[begin..begin + range.len() * size])?;
                slot.there[1] = true;
            }
        }
        self.up.record(&slot.came)
    }

    /// The block that streamed block `number` is.
    pub(super) fn block(&self, number: usize) -> usize {
        // The inverse of `Layout::streamed`: the first block with more than `number` streamed ones up to it.
        ((number + 1) * self.layout.blocks()).div_ceil(self.layout.streamed) - 1
    }

    /// Block `b`, on the device by the time the main stream reaches it.
    pub(super) fn enter(&mut self, b: usize, raw: &[u8]) -> Result<&mut StoredBlock<T>> {
        if self.layout.streamed(b).is_some() {
            let slot = self.used % self.slots.len();
            // Less may have been fetched ahead than is needed.
            let there = self.slots[slot].there;
            if (self.now.raw && !there[0]) || (self.now.read && !there[1]) {
                self.fill(self.used, self.now, raw)?;
            }
            self.cuda.wait_for(&self.slots[slot].came)?;
            return Ok(&mut self.slots[slot].kept);
        }
        match &mut self.held[b] {
            Some(kept) => Ok(kept),
            None => unreachable!("a block that is neither held nor streamed"),
        }
    }

    /// The main stream was given all that there is to do with block `b`.
    pub(super) fn leave(&mut self, b: usize, raw: &[u8]) -> Result<()> {
        let Some(number) = self.layout.streamed(b) else { return Ok(()) };
        let slot = &mut self.slots[self.used % self.layout.slots()];
        if self.now.write {
            let size = self.need.wave as usize;
            let begin = number * self.layout.block * size;
            let bytes = self.layout.range(b).len() * size;
            self.cuda.record(&slot.done)?;
            self.down.wait_for(&slot.done)?;
            // SAFETY: the slot is not sent to before `free`, the host's part not read before `back`.
            unsafe { slot.kept.waves_to(&self.down, 0, &mut self.host[begin..begin + bytes])? };
            self.down.record(&slot.free)?;
            self.down.record(&self.back[number])?;
        } else {
            self.cuda.record(&slot.free)?;
        }
        self.used += 1;
        self.send(raw)
    }

    /// Waits for all copies in flight and forgets what was fetched ahead.
    pub(super) fn drain(&mut self) -> Result<()> {
        self.up.synchronize()?;
        self.cuda.synchronize()?;
        self.down.synchronize()?;
        self.sent = self.used;
        self.slots.iter_mut().for_each(|s| s.there = [false; 2]);
        Ok(())
    }
}

impl<T: Number> Drop for BlockRing<T> {
    fn drop(&mut self) {
        // An error here was one before.
        self.drain().ok();
    }
}
