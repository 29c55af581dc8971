//! Copies beside the kernels: page-locked host memory ([`Pinned`]) and further streams ([`Stream`]) that continue while the main
//! stream computes. Events order the streams among each other.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, MutexGuard, PoisonError};

use bytemuck::Pod;
use cudarc::driver::{result, sys};

use super::context::{Cuda, Inner};
use super::event::Event;
use super::memory::{Buffer, Memory, NOT_COPIED, copy_between};
use crate::error::{Error, Result};

/// Bytes of the copies by which the rate to the host is measured: 0.15 ms each where a bus moves 55 GB/s. To lock their pages takes
/// the host 0.3 ms a megabyte or more.
const MEASURED: usize = 8 << 20;

/// Host memory that the device copies from and to at full rate and without the help of the CPU. It cannot be swapped out.
pub struct Pinned<T> {
    host: NonNull<T>,
    len: usize,
    inner: Arc<Inner>,
}

// SAFETY: the memory belongs to this value alone.
unsafe impl<T: Send> Send for Pinned<T> {}
// SAFETY: shared access only reads.
unsafe impl<T: Sync> Sync for Pinned<T> {}

impl<T> std::fmt::Debug for Pinned<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pinned<{}>({})", std::any::type_name::<T>(), self.len)
    }
}

impl<T> std::ops::Deref for Pinned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: as many values were allocated and set to zero; who starts a copy keeps others off until it is done.
        unsafe { std::slice::from_raw_parts(self.host.as_ptr(), self.len) }
    }
}

impl<T> std::ops::DerefMut for Pinned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and borrowed uniquely.
        unsafe { std::slice::from_raw_parts_mut(self.host.as_ptr(), self.len) }
    }
}

impl<T> Drop for Pinned<T> {
    fn drop(&mut self) {
        let begin = self.host.as_ptr() as usize;
        self.inner.pinned().retain(|range| range.start != begin);
        if self.inner.context.bind_to_thread().is_ok() {
            // SAFETY: allocated by `malloc_host`, freed once; copies were waited for, as who started them promised.
            unsafe { result::free_host(self.host.as_ptr().cast()) }.ok();
        }
    }
}

/// A stream beside the main one. Dropping it waits for what it still does.
pub struct Stream {
    handle: sys::CUstream,
    inner: Arc<Inner>,
}

// SAFETY: the driver lets streams be used from any thread, one at a time; methods that change it take the context first.
unsafe impl Send for Stream {}
// SAFETY: shared access gives the handle to the driver, which serialises calls on one stream.
unsafe impl Sync for Stream {}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stream")
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.inner.context.bind_to_thread().is_ok() {
            // SAFETY: made by `stream::create`, destroyed once.
            unsafe {
                result::stream::synchronize(self.handle).ok();
                result::stream::destroy(self.handle).ok();
            }
        }
    }
}

impl Inner {
    /// Locks the list of page-locked ranges of host memory.
    fn pinned(&self) -> MutexGuard<'_, Vec<Range<usize>>> {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if `data` lies in page-locked host memory, from which the driver still copies after the call has returned.
    pub(super) fn is_pinned<T>(&self, data: &[T]) -> bool {
        let own = data.as_ptr_range();
        self.pinned().iter().any(|range| range.start < own.end as usize && (own.start as usize) < range.end)
    }
}

impl Cuda {
    /// A further stream.
    pub fn side_stream(&self) -> Result<Stream> {
        self.bind()?;
        let handle =
            result::stream::create(result::stream::StreamKind::NonBlocking).map_err(|e| self.failed("a stream cannot be made", e))?;
        Ok(Stream { handle, inner: self.0.clone() })
    }

    /// `n` zeros in page-locked host memory. `what` names them when memory runs out.
    pub fn pinned<T: Pod>(&self, n: usize, what: &str) -> Result<Pinned<T>> {
        self.not_capturing("an allocation")?;
        self.bind()?;
        let short = || Error::OutOfMemory {
            device: "page-locked host memory".into(),
            what: what.to_owned(),
            requested: (n as u64).saturating_mul(size_of::<T>() as u64),
            free: crate::device::host_memory_free(),
        };
        let bytes = n.checked_mul(size_of::<T>()).ok_or_else(short)?.max(8);
        // SAFETY: the context is bound; the memory is set before anybody can read it.
        let host = unsafe { result::malloc_host(bytes, sys::CU_MEMHOSTALLOC_PORTABLE) }.map_err(|e| {
            if e.0 == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY { short() } else { self.failed("pinned host memory cannot be had", e) }
        })?;
        let host = NonNull::new(host.cast::<T>()).ok_or_else(short)?;
        // SAFETY: so many bytes were allocated just now.
        unsafe { std::ptr::write_bytes(host.as_ptr().cast::<u8>(), 0, bytes) };
        let begin = host.as_ptr() as usize;
        self.0.pinned().push(begin..begin + bytes);
        Ok(Pinned { host, len: n, inner: self.0.clone() })
    }

    /// Makes later work on the main stream wait for `event`, recorded on any stream. The host does not wait.
    pub fn wait_for(&self, event: &Event) -> Result<()> {
        self.bind()?;
        let _turn = self.turn();
        // SAFETY: stream and event are alive.
        unsafe { result::stream::wait_event(self.0.stream, event.handle(), sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT) }
            .map_err(|e| self.failed("a stream cannot wait", e))
    }

    /// Rates of copies from page-locked host memory and back to it, bytes/s each by itself: the best of four of 8 MiB. Measured
    /// once.
    pub fn host_rates(&self) -> Result<[f64; 2]> {
        if let Some(known) = self.0.host_rates.get() {
            return Ok(*known);
        }
        let stream = self.side_stream()?;
        let mut host = self.pinned::<u8>(MEASURED, "rate measurement")?;
        let mut buffer = self.alloc_zeros::<u8>(MEASURED, "rate measurement")?;
        self.synchronize()?;
        let (begin, end) = (self.event()?, self.event()?);
        let mut best = [f64::INFINITY; 2];
        for turn in 0..8 {
            stream.record(&begin)?;
            // SAFETY: both live and are left alone until `end` was waited for.
            unsafe { if turn % 2 == 0 { stream.upload(&mut buffer, 0, &host)? } else { stream.download(&buffer, 0, &mut host)? } }
            stream.record(&end)?;
            end.wait()?;
            best[turn % 2] = best[turn % 2].min(end.seconds_since(&begin)?);
        }
        Ok(*self.0.host_rates.get_or_init(|| best.map(|s| MEASURED as f64 / s)))
    }
}

impl Stream {
    fn cuda(&self) -> Cuda {
        Cuda(self.inner.clone())
    }

    /// The stream, for libraries that put work on it.
    pub(super) fn handle(&self) -> sys::CUstream {
        self.handle
    }

    /// Copies `data` to `buffer[at..]`, in the order of this stream.
    ///
    /// # Panics
    /// If the range does not lie in the buffer.
    ///
    /// # Safety
    /// `data` lies in [`Pinned`] memory; until an event behind the copy was waited for it is neither written nor freed, the buffer
    /// is not freed, and other streams leave the range alone.
    pub unsafe fn upload<T: Pod>(&self, buffer: &mut Buffer<T>, at: usize, data: &[T]) -> Result<()> {
        let room = buffer.len();
        assert!(at <= room && data.len() <= room - at, "{} values at {at} of a buffer of {room}", data.len());
        let cuda = self.cuda();
        cuda.bind()?;
        // SAFETY: the range lies in the buffer; the rest is the caller's promise.
        unsafe { result::memcpy_htod_async(buffer.from(at).0, data, self.handle) }.map_err(|e| cuda.failed("a copy to the GPU failed", e))
    }

    /// Fills `data` from `buffer[at..]`, in the order of this stream.
    ///
    /// # Panics
    /// If the range does not lie in the buffer.
    ///
    /// # Safety
    /// `data` lies in [`Pinned`] memory; until an event behind the copy was waited for it is neither read, written nor freed, the
    /// buffer is not freed, and other streams do not write to the range.
    pub unsafe fn download<T: Pod>(&self, buffer: &Buffer<T>, at: usize, data: &mut [T]) -> Result<()> {
        let room = buffer.len();
        assert!(at <= room && data.len() <= room - at, "{} values at {at} of a buffer of {room}", data.len());
        let cuda = self.cuda();
        cuda.bind()?;
        // SAFETY: the range lies in the buffer; the rest is the caller's promise.
        unsafe { result::memcpy_dtoh_async(data, buffer.from(at).0, self.handle) }.map_err(|e| cuda.failed("a copy from the GPU failed", e))
    }

    /// Copies bytes to the memory of another part, on this GPU or another one, in the order of this stream.
    pub(crate) fn copy_memory(&self, from: (&Memory, usize), to: (&Memory, usize), bytes: usize) -> Result<()> {
        let cuda = self.cuda();
        cuda.bind()?;
        copy_between(self.handle, from, to, bytes).map_err(|e| cuda.failed(NOT_COPIED, e))
    }

    /// Marks this point of the stream.
    pub fn record(&self, event: &Event) -> Result<()> {
        let cuda = self.cuda();
        cuda.bind()?;
        // SAFETY: event and stream are alive.
        unsafe { result::event::record(event.handle(), self.handle) }.map_err(|e| cuda.failed("an event cannot be recorded", e))
    }

    /// Makes later work on this stream wait for `event`; an event that was never recorded is not waited for.
    pub fn wait_for(&self, event: &Event) -> Result<()> {
        let cuda = self.cuda();
        cuda.bind()?;
        // SAFETY: stream and event are alive.
        unsafe { result::stream::wait_event(self.handle, event.handle(), sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT) }
            .map_err(|e| cuda.failed("a stream cannot wait", e))
    }

    /// Waits until the stream is empty.
    pub fn synchronize(&self) -> Result<()> {
        let cuda = self.cuda();
        cuda.bind()?;
        // SAFETY: the stream is alive.
        unsafe { result::stream::synchronize(self.handle) }.map_err(|e| cuda.failed("a copy failed", e))
    }
}
