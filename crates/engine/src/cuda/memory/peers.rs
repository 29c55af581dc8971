//! Copies between parts of a run, on one GPU or two.

use bytemuck::Pod;
use cudarc::driver::{result, sys};

use super::{Buffer, Memory};
use crate::cuda::Cuda;
use crate::error::Result;

impl Cuda {
    /// Lets kernels and copies of this GPU reach the memory of `other`; false where they cannot, and the driver copies by way of
    /// the host.
    pub fn reach(&self, other: &Self) -> Result<bool> {
        if self.ordinal() == other.ordinal() {
            return Ok(true);
        }
        self.bind()?;
        let mut can = 0;
        // SAFETY: both devices are open.
        let asked = unsafe { sys::cuDeviceCanAccessPeer(&raw mut can, self.0.context.cu_device(), other.0.context.cu_device()) };
        asked.result().map_err(|e| self.failed("it cannot be asked about other GPUs", e))?;
        if can == 0 {
            tracing::debug!("cuda:{} reaches cuda:{} by way of the host", self.ordinal(), other.ordinal());
            return Ok(false);
        }
        // SAFETY: the context of the other device is alive, and this one's is bound.
        let enabled = unsafe { sys::cuCtxEnablePeerAccess(other.0.context.cu_ctx(), 0) };
        match enabled.result() {
            Err(e) if e.0 != sys::CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => {
                Err(self.failed("the memory of another GPU cannot be reached", e))
            }
            _ => Ok(true),
        }
    }

    /// Copies `n` values to a buffer of another part, on this GPU or another one, in the order of this stream. Its owner keeps
    /// another stream from it meanwhile: events tell.
    pub(crate) fn copy_to_peer<T: Pod>(&self, from: &Buffer<T>, from_at: usize, to: &Buffer<T>, to_at: usize, n: usize) -> Result<()> {
        assert!(from_at <= from.len && n <= from.len - from_at, "{n} values at {from_at} of a buffer of {}", from.len);
        assert!(to_at <= to.len && n <= to.len - to_at, "{n} values at {to_at} of a buffer of {}", to.len);
        if n == 0 {
            return Ok(());
        }
        let size = size_of::<T>();
        self.copy_memory(from.memory(), from_at * size, to.memory(), to_at * size, n * size)
    }

    /// Copies bytes to the memory of another part, as [`Cuda::copy_to_peer`] does.
    pub(crate) fn copy_memory(&self, from: &Memory, from_at: usize, to: &Memory, to_at: usize, bytes: usize) -> Result<()> {
        self.bind()?;
        self.put(|stream| copy_between(stream, (from, from_at), (to, to_at), bytes)).map_err(|e| self.failed(NOT_COPIED, e))
    }
}

/// Error of copies between parts.
pub(in crate::cuda) const NOT_COPIED: &str = "a copy to another part failed";

/// Puts a copy of bytes, on one device or between two, on a stream of the context that is bound.
pub(in crate::cuda) fn copy_between(
    stream: sys::CUstream,
    (from, from_at): (&Memory, usize),
    (to, to_at): (&Memory, usize),
    bytes: usize,
) -> std::result::Result<(), result::DriverError> {
    for (memory, at) in [(from, from_at), (to, to_at)] {
        assert!(memory.has(at, bytes), "{bytes} bytes at {at} of {memory:?}");
    }
    let (Memory(from), Memory(to)) = (from, to);
    let (there, here) = (to.inner.context.cu_ctx(), from.inner.context.cu_ctx());
    let (target, source) = (to.pointer + to_at as u64, from.pointer + from_at as u64);
    // SAFETY: both ranges lie in memory that is held, of contexts that are alive.
    unsafe {
        if there == here {
            return result::memcpy_dtod_async(target, source, bytes, stream);
        }
        sys::cuMemcpyPeerAsync(target, there, source, here, bytes, stream).result()
    }
}
