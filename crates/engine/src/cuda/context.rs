//! One GPU: its context, its properties and the one stream that all work goes to, in order.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Instant;

use cudarc::driver::CudaContext;
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};
use serde::Serialize;

use super::library;
use super::memory::ByteCount;
use super::repeated::flush_deferred;
use crate::error::{Error, Result};

/// Properties of a GPU that launches depend on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Properties {
    /// Name of the GPU, for example `NVIDIA H200`.
    pub name: String,
    /// Compute capability, major and minor.
    pub capability: (u32, u32),
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of L2 cache.
    pub l2: usize,
    /// Bytes of shared memory a block may have at most (opted in).
    pub shared_per_block: u32,
    /// Bytes of shared memory on a multiprocessor.
    pub shared_per_multiprocessor: u32,
    /// Bytes of device memory.
    pub memory: u64,
    /// Support for cooperative launches, in which all blocks can wait for each other.
    pub cooperative: bool,
}

pub(super) struct Inner {
    pub(super) context: Arc<CudaContext>,
    pub(super) stream: sys::CUstream,
    pub(super) ordinal: usize,
    properties: Properties,
    /// The thread that captures, if one does. Held while something is put on the stream, which would else become part of another
    /// thread's graph.
    capturer: Mutex<Option<ThreadId>>,
    pub(super) captured: Condvar,
    pub(super) count: Arc<ByteCount>,
    pub(super) bandwidth: OnceLock<f64>,
    pub(super) host_rates: OnceLock<[f64; 2]>,
    /// Address ranges of page-locked host memory.
    pub(super) pinned: Mutex<Vec<Range<usize>>>,
}

// SAFETY: a stream handle may be used from any thread as long as the context is bound there, which every call does.
unsafe impl Send for Inner {}
// SAFETY: as above; the driver serialises calls on one stream.
unsafe impl Sync for Inner {}

impl Inner {
    fn capturer(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.capturer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other thread captures, and keeps them from beginning. Not to be taken twice by one thread.
    pub(crate) fn turn(&self) -> MutexGuard<'_, Option<ThreadId>> {
        flush_deferred(self);
        let own = thread::current().id();
        let others = |capturer: &mut Option<ThreadId>| capturer.is_some_and(|id| id != own);
        self.captured.wait_while(self.capturer(), others).unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.context.bind_to_thread().is_ok() {
            // SAFETY: made by `stream::create`, destroyed once; the driver lets pending work end first.
            unsafe { result::stream::destroy(self.stream) }.ok();
        }
    }
}

/// One GPU: its context and the stream that all work goes to. Clones share both.
#[derive(Clone)]
pub struct Cuda(pub(super) Arc<Inner>);

impl std::fmt::Debug for Cuda {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cuda({}: {})", self.ordinal(), self.name())
    }
}

impl Cuda {
    /// Number of GPUs that the driver shows; an error says why there is no driver.
    pub fn count() -> Result<usize> {
        let driver = library::driver();
        if let Some(refusal) = &driver.refusal {
            return Err(Error::Device { device: "cuda".into(), message: refusal.clone(), hint: driver.hint.clone() });
        }
        let failed = |e| Error::Device {
            device: "cuda".into(),
            message: format!("the driver does not start: {}", word(e)),
            hint: Some("`nvidia-smi` shows whether the driver works".into()),
        };
        let begun = Instant::now();
        result::init().map_err(failed)?;
        tracing::debug!("the driver was ready after {:.0} ms", 1e3 * begun.elapsed().as_secs_f64());
        Ok(result::device::get_count().map_err(failed)? as usize)
    }

    /// Opens GPU number `ordinal`, for work.
    pub fn open(ordinal: usize) -> Result<Self> {
        let cuda = Self::look_at(ordinal)?;
        cuda.keep()?;
        Ok(cuda)
    }

    /// Opens GPU number `ordinal` to see what it is: once nobody has it open, it is free again.
    pub(crate) fn look_at(ordinal: usize) -> Result<Self> {
        let count = Self::count()?;
        if ordinal >= count {
            return Err(Error::Device {
                device: format!("cuda:{ordinal}"),
                message: format!("there {} only", if count == 1 { "is 1 GPU".into() } else { format!("are {count} GPUs") }),
                hint: Some("`zellige devices` lists them; CUDA_VISIBLE_DEVICES may hide some".into()),
            });
        }
        let failed = |e| failure(format!("cuda:{ordinal}"), "cannot be opened", e);
        let begun = Instant::now();
        let context = CudaContext::new(ordinal).map_err(failed)?;
        tracing::debug!("the context of cuda:{ordinal} took {:.0} ms", 1e3 * begun.elapsed().as_secs_f64());
        let properties = properties(&context).map_err(failed)?;
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking).map_err(failed)?;
        Ok(Self(Arc::new(Inner {
            context,
            stream,
            ordinal,
            properties,
            capturer: Mutex::default(),
            captured: Condvar::new(),
            count: Arc::default(),
            bandwidth: OnceLock::new(),
            host_rates: OnceLock::new(),
            pinned: Mutex::default(),
        })))
    }

    /// Keeps the context for the life of the process, as CUDA's own runtime does: whoever opens the GPU next finds it made, and it
    /// is not destroyed while a thread of the driver still works in it: driver 580 then ends in 1 of 10 processes that open and
    /// close a GPU in several parts a hundred times (its event handler reads a null pointer).
    pub(crate) fn keep(&self) -> Result<()> {
        static KEPT: Mutex<BTreeSet<sys::CUdevice>> = Mutex::new(BTreeSet::new());
        let device = self.0.context.cu_device();
        if KEPT.lock().unwrap_or_else(PoisonError::into_inner).insert(device) {
            // SAFETY: the driver gave the device.
            unsafe { result::primary_ctx::retain(device) }.map_err(|e| self.failed("its context cannot be kept", e))?;
        }
        Ok(())
    }

    /// The number of the GPU.
    pub fn ordinal(&self) -> usize {
        self.0.ordinal
    }

    /// Identifier of the GPU, which no other one has, on whichever host.
    pub(crate) fn unique_id(&self) -> Result<[u8; 16]> {
        let id = result::device::get_uuid(self.0.context.cu_device()).map_err(|e| self.failed("it has no identifier", e))?;
        Ok(id.bytes.map(|byte| byte as u8))
    }

    /// Name of the GPU, for example `NVIDIA H200`.
    pub fn name(&self) -> &str {
        &self.0.properties.name
    }

    /// Properties that launches depend on.
    pub fn properties(&self) -> &Properties {
        &self.0.properties
    }

    /// The architecture that kernels are compiled for, for example `sm_90`.
    pub fn arch(&self) -> String {
        let (major, minor) = self.0.properties.capability;
        format!("sm_{major}{minor}")
    }

    /// Bytes of memory, total.
    pub fn memory(&self) -> u64 {
        self.0.properties.memory
    }

    /// Bytes of memory free at this moment; `None` when the driver does not tell.
    pub fn memory_free(&self) -> Option<u64> {
        self.0.context.mem_get_info().ok().map(|(free, _)| free as u64)
    }

    /// Copy bandwidth, bytes/s read and written: a copy of up to 1 GB on the device, the best of seven. Measured once.
    pub fn bandwidth(&self) -> Result<f64> {
        if let Some(known) = self.0.bandwidth.get() {
            return Ok(*known);
        }
        // Far beyond any L2 cache, and never more than a quarter of what is free.
        let bytes = self.memory_free().map_or(1 << 28, |free| free / 8).min(1 << 30) as usize;
        let n = bytes / size_of::<u64>();
        let from = self.alloc_zeros::<u64>(n, "bandwidth measurement")?;
        let mut to = self.alloc_zeros::<u64>(n, "bandwidth measurement")?;
        let (begin, end) = (self.event()?, self.event()?);
        let mut best = f64::INFINITY;
        for _ in 0..7 {
            self.record(&begin)?;
            self.copy(&from, 0, &mut to, 0, n)?;
            self.record(&end)?;
            end.wait()?;
            best = best.min(end.seconds_since(&begin)?);
        }
        Ok(*self.0.bandwidth.get_or_init(|| 2.0 * bytes as f64 / best))
    }

    /// Waits until the stream is empty; an error of any earlier kernel shows here at the latest.
    pub fn synchronize(&self) -> Result<()> {
        self.bind()?;
        let _turn = self.0.turn();
        // SAFETY: the stream is alive as long as `self`.
        unsafe { result::stream::synchronize(self.0.stream) }.map_err(|e| self.failed("a kernel or copy failed", e))
    }

    /// Returns true if `other` is the same GPU by the same handle.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns true if `inner` is the state behind this handle.
    pub(super) fn has(&self, inner: &Inner) -> bool {
        std::ptr::eq(&raw const *self.0, inner)
    }

    /// Returns true if this thread captures a graph: its launches are then recorded, not run.
    pub fn capturing(&self) -> bool {
        *self.0.capturer() == Some(thread::current().id())
    }

    /// The stream, for libraries that put work on it, in their [turn](Self::turn).
    pub(crate) fn stream(&self) -> sys::CUstream {
        self.0.stream
    }

    /// Waits for what a library has put on the default stream, for which streams of runs do not wait.
    pub(crate) fn synchronize_default(&self) -> Result<()> {
        self.bind()?;
        // SAFETY: the context is current; null is its default stream.
        unsafe { result::stream::synchronize(std::ptr::null_mut()) }.map_err(|e| self.failed("work of a library failed", e))
    }

    /// The right to put work on the stream, while no other thread captures. Not to be taken twice by one thread.
    pub(crate) fn turn(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.0.turn()
    }

    /// Makes the context current on this thread.
    pub(crate) fn bind(&self) -> Result<()> {
        self.0.context.bind_to_thread().map_err(|e| self.failed("the context is lost", e))
    }

    /// Refuses what must not happen while a graph is captured.
    pub(crate) fn not_capturing(&self, what: &str) -> Result<()> {
        if self.capturing() {
            return Err(Error::Device {
                device: format!("cuda:{}", self.0.ordinal),
                message: format!("{what} is not possible while a graph is captured"),
                hint: None,
            });
        }
        Ok(())
    }

    /// A mistake of this program in the use of the device.
    pub(super) fn defect(&self, message: String) -> Error {
        Error::Kernel { program: "launch".into(), arch: self.arch(), log: message }
    }

    pub(super) fn failed(&self, doing: &str, error: DriverError) -> Error {
        failure(format!("cuda:{}", self.0.ordinal), doing, error)
    }
}

/// The driver's word for an error.
pub(super) fn word(error: DriverError) -> String {
    error.error_string().map_or_else(|_| format!("{:?}", error.0), |s| s.to_string_lossy().into_owned())
}

fn failure(device: String, doing: &str, error: DriverError) -> Error {
    Error::Device {
        device,
        message: format!("{doing}: {}", word(error)),
        hint: Some("`nvidia-smi` shows the state of the GPU; `--device cpu` works without it".into()),
    }
}

fn properties(context: &CudaContext) -> std::result::Result<Properties, DriverError> {
    let attribute = |a| context.attribute(a).map(|v| v.max(0) as u32);
    Ok(Properties {
        name: context.name()?,
        capability: (
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        l2: attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)? as usize,
        shared_per_block: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        shared_per_multiprocessor: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
        memory: context.total_mem()? as u64,
        cooperative: attribute(Attribute::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)? != 0,
    })
}
