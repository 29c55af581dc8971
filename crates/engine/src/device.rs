//! Devices: the processor with a number of threads, and NVIDIA GPUs.

use std::sync::Arc;

use crate::error::{Error, Result};

/// The processor, with a pool of threads.
#[derive(Debug, Clone)]
pub struct Cpu {
    pool: Arc<rayon::ThreadPool>,
}

impl Cpu {
    /// A pool of `threads` threads; 0 takes every core.
    pub fn new(threads: usize) -> Result<Self> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("zellige-{i}"))
            .build()
            .map_err(|e| Error::Device { device: "cpu".into(), message: e.to_string(), hint: Some("use fewer `--threads`".into()) })?;
        Ok(Self { pool: Arc::new(pool) })
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// Runs `work` in the pool: rayon's parallel iterators inside use its threads.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.pool.install(work)
    }
}

/// A device that work can be put on.
#[derive(Debug, Clone)]
pub enum Device {
    /// The processor.
    Cpu(Cpu),
    /// A GPU.
    Cuda(crate::cuda::Cuda),
}
