//! Memory of the device ([`Buffer`]), counted per [`Pool`], and host memory that the device writes to ([`Mapped`]).
//!
//! All copies are explicit. Copies go to the stream like kernels do, in order; only [`Cuda::download`] waits, since it
//! has to.

mod peers;

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::Pod;
use cudarc::driver::result;
use cudarc::driver::sys;

use super::context::{Cuda, Inner};
use super::launch::Argument;
use crate::error::{Error, Result};
use crate::large::zeros;

pub(super) use self::peers::{NOT_COPIED, copy_between};

/// Counts the bytes of the buffers made from it: one pool a solver. Clones share the count.
#[derive(Clone)]
pub struct Pool {
    cuda: Cuda,
    count: Arc<ByteCount>,
}

#[derive(Default)]
pub(super) struct ByteCount {
    held: AtomicU64,
    peak: AtomicU64,
}

impl ByteCount {
    fn add(&self, bytes: u64) {
        let held = self.held.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak.fetch_max(held, Ordering::Relaxed);
    }

    fn remove(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("allocated", &self.allocated()).field("peak", &self.peak()).finish_non_exhaustive()
    }
}

impl Pool {
    /// Bytes held now.
    pub fn allocated(&self) -> u64 {
        self.count.held.load(Ordering::Relaxed)
    }

    /// The most bytes held at once.
    pub fn peak(&self) -> u64 {
        self.count.peak.load(Ordering::Relaxed)
    }

    /// `n` zeros, counted here. `what` names them when memory runs out.
    pub fn alloc_zeros<T: Pod>(&self, n: usize, what: &str) -> Result<Buffer<T>> {
        allocate(&self.cuda, &self.count, n, what)
    }

    /// A buffer with the content of `data`, counted here.
    pub fn buffer_from<T: Pod>(&self, data: &[T], what: &str) -> Result<Buffer<T>> {
        let mut buffer = self.alloc_zeros(data.len(), what)?;
        self.cuda.upload(&mut buffer, data)?;
        Ok(buffer)
    }
}

fn allocate<T: Pod>(cuda: &Cuda, count: &Arc<ByteCount>, n: usize, what: &str) -> Result<Buffer<T>> {
    cuda.not_capturing("an allocation")?;
    cuda.bind()?;
    let short = || Error::OutOfMemory {
        device: cuda.name().to_owned(),
        what: what.to_owned(),
        requested: (n as u64).saturating_mul(size_of::<T>() as u64),
        free: cuda.memory_free(),
    };
    // The driver refuses an allocation of nothing; an empty buffer gets a word that nobody reads.
    let allocated = n.checked_mul(size_of::<T>()).ok_or_else(short)?.max(8);
    // SAFETY: the context is bound; the memory is filled before anybody can read it.
    let pointer = unsafe { result::malloc_sync(allocated) }
        .map_err(|e| if e.0 == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY { short() } else { cuda.failed("memory cannot be had", e) })?;
    count.add(allocated as u64);
    let memory = Memory(Arc::new(Allocation { pointer, allocated, inner: cuda.0.clone(), count: count.clone() }));
    let mut buffer = Buffer { memory, len: n, kind: PhantomData };
    cuda.fill_zero(&mut buffer)?;
    Ok(buffer)
}

/// Buffer of values as kernels see them.
pub type BufferOf<A> = Buffer<<A as Argument>::Value>;

/// `len` values of `T` in device memory. Freed when dropped, after the work that uses it.
pub struct Buffer<T> {
    memory: Memory,
    len: usize,
    kind: PhantomData<T>,
}

/// Memory of a buffer, which stays for as long as somebody holds it: other parts of a run copy to it.
#[derive(Clone)]
pub(crate) struct Memory(Arc<Allocation>);

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Memory({} bytes)", self.0.allocated)
    }
}

impl Memory {
    /// Address of a byte on the device.
    pub(super) fn address(&self, at: usize) -> u64 {
        self.0.pointer + at as u64
    }

    /// Returns true if it holds these bytes; of memory of another owner nothing is known.
    pub(crate) fn has(&self, at: usize, bytes: usize) -> bool {
        let room = self.0.allocated;
        room == 0 || at <= room && bytes <= room - at
    }
}

struct Allocation {
    pointer: sys::CUdeviceptr,
    /// Bytes allocated; 0 where the memory is another owner's.
    allocated: usize,
    inner: Arc<Inner>,
    count: Arc<ByteCount>,
}

impl<T> std::fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer<{}>({})", std::any::type_name::<T>(), self.len)
    }
}

impl<T: Pod> Buffer<T> {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no values.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of the values.
    pub fn bytes(&self) -> u64 {
        (self.len * size_of::<T>()) as u64
    }

    /// Number of the GPU.
    pub fn gpu(&self) -> usize {
        self.memory.0.inner.ordinal
    }

    /// The address on the device.
    pub fn address(&self) -> u64 {
        self.memory.0.pointer
    }

    /// The memory, to be held by another part.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The address of value `at`, to be given to a kernel that works on a part. Panics if `at > len`.
    pub fn from(&self, at: usize) -> Address<T> {
        assert!(at <= self.len, "value {at} of a buffer of {}", self.len);
        Address(self.address() + (at * size_of::<T>()) as u64, PhantomData)
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if self.inner.context.bind_to_thread().is_ok() {
            let _turn = self.inner.turn();
            // SAFETY: allocated by `malloc_sync`, freed once; waiting first, so that no kernel uses freed memory.
            unsafe {
                result::stream::synchronize(self.inner.stream).ok();
                if self.allocated > 0 {
                    result::free_sync(self.pointer).ok();
                }
            }
        }
        self.count.remove(self.allocated as u64);
    }
}

/// An address inside a buffer, for a kernel's argument. It does not keep the buffer alive.
#[derive(Debug)]
pub struct Address<T>(pub(super) u64, PhantomData<T>);

impl<T> Clone for Address<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Address<T> {}

/// Work behind which the values of another owner's memory are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behind {
    /// They are there.
    Nothing,
    /// Work on a stream of the driver (1: the default stream, 2: that of each thread).
    Stream(usize),
    /// All that the GPU has been given.
    All,
}

impl Cuda {
    /// A pool of its own: the bytes of each solver are counted apart.
    pub fn pool(&self) -> Pool {
        Pool { cuda: self.clone(), count: Arc::default() }
    }

    /// `n` zeros. `what` names them when memory runs out. Counted with the device; see [`Cuda::pool`].
    pub fn alloc_zeros<T: Pod>(&self, n: usize, what: &str) -> Result<Buffer<T>> {
        allocate(self, &self.0.count, n, what)
    }

    /// A buffer with the content of `data`.
    pub fn buffer_from<T: Pod>(&self, data: &[T], what: &str) -> Result<Buffer<T>> {
        let mut buffer = self.alloc_zeros(data.len(), what)?;
        self.upload(&mut buffer, data)?;
        Ok(buffer)
    }

    /// Copies `data` to the front of `buffer`, in stream order; `data` may be changed as soon as this returns, for which it waits
    /// if `data` lies in page-locked memory.
    ///
    /// # Panics
    /// If `data` is longer than the buffer.
    pub fn upload<T: Pod>(&self, buffer: &mut Buffer<T>, data: &[T]) -> Result<()> {
        self.upload_at(buffer, 0, data)
    }

    /// Copies `data` to `buffer[at..]`, as [`Cuda::upload`] does.
    ///
    /// # Panics
    /// If the range does not lie in the buffer.
    pub fn upload_at<T: Pod>(&self, buffer: &mut Buffer<T>, at: usize, data: &[T]) -> Result<()> {
        assert!(at <= buffer.len && data.len() <= buffer.len - at, "{} values at {at} of a buffer of {}", data.len(), buffer.len);
        self.not_capturing("a copy from the host")?;
        self.bind()?;
        // SAFETY: the range lies in the buffer; from pageable memory the driver has taken the data when it returns, for other memory
        // the stream is waited for below, before `data` can change.
        let begun = self.put(|stream| unsafe { result::memcpy_htod_async(buffer.from(at).0, data, stream) });
        begun.map_err(|e| self.failed("a copy to the GPU failed", e))?;
        if self.0.is_pinned(data) { self.synchronize() } else { Ok(()) }
    }

    /// Puts something on the stream, in turn.
    fn put<T>(&self, work: impl FnOnce(sys::CUstream) -> T) -> T {
        let _turn = self.turn();
        work(self.0.stream)
    }

    /// Waits for the stream and returns all values.
    pub fn download<T: Pod>(&self, buffer: &Buffer<T>) -> Result<Vec<T>> {
        self.download_range(buffer, 0..buffer.len)
    }

    /// Waits for the stream and returns the values in `range`.
    ///
    /// # Panics
    /// If the range does not lie in the buffer.
    pub fn download_range<T: Pod>(&self, buffer: &Buffer<T>, range: Range<usize>) -> Result<Vec<T>> {
        let mut data = zeros(range.len());
        self.download_to(buffer, range.start, &mut data)?;
        Ok(data)
    }

    /// Waits for the stream and fills `data` from `buffer[at..]`.
    ///
    /// # Panics
    /// If the range does not lie in the buffer.
    pub fn download_to<T: Pod>(&self, buffer: &Buffer<T>, at: usize, data: &mut [T]) -> Result<()> {
        assert!(at <= buffer.len && data.len() <= buffer.len - at, "{} values at {at} of a buffer of {}", data.len(), buffer.len);
        self.not_capturing("a copy to the host")?;
        self.bind()?;
        // SAFETY: the range lies in the buffer and `data` is borrowed until the stream was waited for.
        self.put(|stream| unsafe { result::memcpy_dtoh_async(data, buffer.from(at).0, stream) })
            .map_err(|e| self.failed("a copy from the GPU failed", e))?;
        self.synchronize()
    }

    /// Copies `n` values on the device, in stream order.
    ///
    /// # Panics
    /// If a range does not lie in its buffer.
    pub fn copy<T: Pod>(&self, from: &Buffer<T>, from_at: usize, to: &mut Buffer<T>, to_at: usize, n: usize) -> Result<()> {
        assert!(from_at <= from.len && n <= from.len - from_at, "{n} values at {from_at} of a buffer of {}", from.len);
        assert!(to_at <= to.len && n <= to.len - to_at, "{n} values at {to_at} of a buffer of {}", to.len);
        self.bind()?;
        // SAFETY: both ranges lie in live buffers, which are different ones since `to` is borrowed uniquely.
        self.put(|stream| unsafe { result::memcpy_dtod_async(to.from(to_at).0, from.from(from_at).0, n * size_of::<T>(), stream) })
            .map_err(|e| self.failed("a copy on the GPU failed", e))
    }

    /// Puts a copy of bytes of the device to page-locked memory on the stream.
    ///
    /// # Panics
    /// If the bytes do not lie in the memory.
    ///
    /// # Safety
    /// `to` lies in [`Pinned`](super::Pinned) memory, and is neither read, written nor freed until the stream was waited for.
    pub(crate) unsafe fn memory_to_host(&self, from: &Memory, at: usize, to: &mut [u8]) -> Result<()> {
        assert!(from.has(at, to.len()), "{} bytes at {at} of {from:?}", to.len());
        if to.is_empty() {
            return Ok(());
        }
        self.bind()?;
        // SAFETY: the bytes lie in memory that is held; the rest is the caller's promise.
        self.put(|stream| unsafe { result::memcpy_dtoh_async(to, from.0.pointer + at as u64, stream) })
            .map_err(|e| self.failed("a copy from the GPU failed", e))
    }

    /// Copies bytes to memory of the device, in stream order; `data` may be changed as soon as this returns.
    ///
    /// # Panics
    /// If the bytes do not lie in the memory.
    pub(crate) fn host_to_memory(&self, data: &[u8], to: &Memory, at: usize) -> Result<()> {
        assert!(to.has(at, data.len()), "{} bytes at {at} of {to:?}", data.len());
        if data.is_empty() {
            return Ok(());
        }
        self.bind()?;
        // SAFETY: the bytes lie in memory that is held; from pageable memory the driver has taken the data when it returns, for other
        // memory the stream is waited for.
        self.put(|stream| unsafe { result::memcpy_htod_async(to.0.pointer + at as u64, data, stream) })
            .map_err(|e| self.failed("a copy to the GPU failed", e))?;
        if self.0.is_pinned(data) { self.synchronize() } else { Ok(()) }
    }

    /// Memory of another owner as a buffer, which does not free it. Waits for the owner's work on it.
    ///
    /// # Errors
    /// The memory is that of another GPU or of none; the work cannot be waited for, or has failed.
    ///
    /// # Safety
    /// At `address` lie `n` aligned values, which stay there as long as the buffer does; nobody else writes to them meanwhile. A
    /// stream in `behind` is alive.
    pub unsafe fn lent<T: Pod>(&self, address: u64, n: usize, behind: Behind) -> Result<Buffer<T>> {
        self.bind()?;
        if n > 0 {
            self.must_hold(address)?;
        }
        let done = match behind {
            Behind::Nothing => Ok(()),
            // SAFETY: the caller's.
            Behind::Stream(stream) => unsafe { result::stream::synchronize(stream as sys::CUstream) },
            Behind::All => result::ctx::synchronize(),
        };
        done.map_err(|e| self.failed("the work on an array cannot be waited for", e))?;
        let memory = Allocation { pointer: address, allocated: 0, inner: self.0.clone(), count: Arc::default() };
        Ok(Buffer { memory: Memory(Arc::new(memory)), len: n, kind: PhantomData })
    }

    /// Refuses memory of another GPU.
    fn must_hold(&self, address: u64) -> Result<()> {
        let mut ordinal = -1_i32;
        let attribute = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
        // SAFETY: the attribute is an int; of an address that the driver does not know it says so.
        let found = unsafe { sys::cuPointerGetAttribute((&raw mut ordinal).cast(), attribute, address) };
        if found == sys::CUresult::CUDA_SUCCESS && ordinal == self.ordinal() as i32 {
            return Ok(());
        }
        let (place, hint) = if ordinal < 0 {
            ("no GPU".into(), "its memory was freed, or CUDA does not know it: give one that is there")
        } else {
            (format!("cuda:{ordinal}"), "copy it to this GPU first")
        };
        Err(Error::Device {
            device: format!("cuda:{}", self.ordinal()),
            message: format!("an array lies in the memory of {place}"),
            hint: Some(hint.into()),
        })
    }

    /// Fills `buffer` with zero bytes, in stream order.
    pub fn fill_zero<T: Pod>(&self, buffer: &mut Buffer<T>) -> Result<()> {
        self.bind()?;
        // All that was allocated; of another owner's memory the values.
        let bytes = buffer.memory.0.allocated.max(buffer.len * size_of::<T>());
        // SAFETY: so many bytes lie there.
        self.put(|stream| unsafe { result::memset_d8_async(buffer.address(), 0, bytes, stream) })
            .map_err(|e| self.failed("memory cannot be cleared", e))
    }

    /// `n` zeros in host memory that kernels can write to, for scalars that the host polls.
    pub fn mapped<T: Pod>(&self, n: usize) -> Result<Mapped<T>> {
        self.not_capturing("an allocation")?;
        self.bind()?;
        let bytes = (n * size_of::<T>()).max(8);
        let flags = sys::CU_MEMHOSTALLOC_DEVICEMAP | sys::CU_MEMHOSTALLOC_PORTABLE;
        // SAFETY: the context is bound; the memory is cleared before it can be read.
        let host = unsafe {
            let host = result::malloc_host(bytes, flags).map_err(|e| self.failed("pinned host memory cannot be had", e))?;
            std::ptr::write_bytes(host.cast::<u8>(), 0, bytes);
            host
        };
        let mut device = 0;
        // SAFETY: `host` was allocated as mapped just now.
        let status = unsafe { sys::cuMemHostGetDevicePointer_v2(&raw mut device, host, 0) };
        // Made before the check, so that the memory is freed when it fails.
        let mapped = Mapped { host: host.cast(), device, len: n, inner: self.0.clone() };
        status.result().map_err(|e| self.failed("host memory cannot be mapped", e))?;
        Ok(mapped)
    }
}

/// Pinned host memory that the device sees. The host reads single values while the device may write them: a value is
/// only meaningful after the write was waited for (an event, or a flag that the kernel sets behind a system fence).
pub struct Mapped<T> {
    host: *mut T,
    device: u64,
    len: usize,
    inner: Arc<Inner>,
}

// SAFETY: the memory belongs to this value; all access by the host is by volatile reads and writes of plain values.
unsafe impl<T: Send> Send for Mapped<T> {}

impl<T> std::fmt::Debug for Mapped<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mapped<{}>({})", std::any::type_name::<T>(), self.len)
    }
}

impl<T: Pod> Mapped<T> {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no values.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value at `i` at this moment. Panics if `i >= len`.
    pub fn get(&self, i: usize) -> T {
        assert!(i < self.len, "value {i} of {}", self.len);
        // SAFETY: in range and initialised; volatile, since the device may write.
        unsafe { self.host.add(i).read_volatile() }
    }

    /// Sets the value at `i`. Panics if `i >= len`.
    pub fn set(&mut self, i: usize, value: T) {
        assert!(i < self.len, "value {i} of {}", self.len);
        // SAFETY: in range; volatile, since the device may read.
        unsafe { self.host.add(i).write_volatile(value) }
    }

    /// The address of value `at` for a kernel.
    pub fn from(&self, at: usize) -> Address<T> {
        assert!(at <= self.len, "value {at} of {}", self.len);
        Address(self.device + (at * size_of::<T>()) as u64, PhantomData)
    }
}

impl<T> Drop for Mapped<T> {
    fn drop(&mut self) {
        if self.inner.context.bind_to_thread().is_ok() {
            let _turn = self.inner.turn();
            // SAFETY: allocated by `malloc_host`, freed once; waiting first, so that no kernel writes to freed memory.
            unsafe {
                result::stream::synchronize(self.inner.stream).ok();
                result::free_host(self.host.cast()).ok();
            }
        }
    }
}
