//! Graphs: launches recorded once and replayed as one, for work whose launches cost more than the work.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;

use cudarc::driver::result;
use cudarc::driver::sys;

use super::context::{Cuda, Inner};
use crate::error::{Error, Result};

/// Libraries that allocate or wait for the whole device break a capture that another thread has under way, and fail by it: captures
/// share this, and such calls have it alone.
static CAPTURES: RwLock<()> = RwLock::new(());

fn recording() -> RwLockReadGuard<'static, ()> {
    CAPTURES.read().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until no thread captures, and keeps captures waiting.
pub(crate) fn no_captures() -> RwLockWriteGuard<'static, ()> {
    CAPTURES.write().unwrap_or_else(PoisonError::into_inner)
}

/// Recorded launches, ready to be replayed.
pub struct Graph {
    recorded: sys::CUgraph,
    executable: sys::CUgraphExec,
    inner: Arc<Inner>,
}

// SAFETY: the handles may be used from any thread, one at a time; `launch` takes `&mut self`.
unsafe impl Send for Graph {}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Graph")
    }
}

impl Cuda {
    /// Records what `body` puts on the stream instead of running it. Allocations, copies to and from the host and
    /// waiting are refused meanwhile; other threads that use the stream wait. Buffers must not be dropped inside `body`.
    pub fn capture(&self, body: impl FnOnce() -> Result<()>) -> Result<Graph> {
        self.not_capturing("a capture inside a capture")?;
        let _recording = recording();
        self.bind()?;
        let mut turn = self.turn();
        // SAFETY: the stream is alive and no capture is under way on it.
        unsafe { result::stream::begin_capture(self.0.stream, sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) }
            .map_err(|e| self.failed("a capture cannot begin", e))?;
        *turn = Some(thread::current().id());
        drop(turn);
        let open = CaptureGuard(self);
        let done = body();
        std::mem::forget(open);
        let recorded = self.end();
        // The error of the body is the cause; that of the end only its echo.
        done?;
        let graph = recorded?.ok_or_else(|| Error::Device {
            device: format!("cuda:{}", self.ordinal()),
            message: "a capture recorded nothing".into(),
            hint: None,
        })?;
        // SAFETY: the graph was made just now.
        match unsafe { result::graph::instantiate(graph, sys::CUgraphInstantiate_flags(0)) } {
            Ok(executable) => Ok(Graph { recorded: graph, executable, inner: self.0.clone() }),
            Err(e) => {
                // SAFETY: destroyed once.
                unsafe { result::graph::destroy(graph) }.ok();
                Err(self.failed("a graph cannot be made ready", e))
            }
        }
    }

    fn end(&self) -> Result<Option<sys::CUgraph>> {
        let bound = self.bind();
        let mut turn = self.turn();
        // SAFETY: the capture was begun on this stream by this thread.
        let ended = unsafe { result::stream::end_capture(self.0.stream) };
        *turn = None;
        drop(turn);
        self.0.captured.notify_all();
        bound?;
        let graph = ended.map_err(|e| self.failed("a capture failed", e))?;
        Ok((!graph.is_null()).then_some(graph))
    }
}

/// Ends the capture if the body panics, so that the stream is usable afterwards.
struct CaptureGuard<'a>(&'a Cuda);

impl Drop for CaptureGuard<'_> {
    fn drop(&mut self) {
        if let Ok(Some(graph)) = self.0.end() {
            // SAFETY: made by the capture that was cut short, destroyed once.
            unsafe { result::graph::destroy(graph) }.ok();
        }
    }
}

impl Graph {
    /// Loads what the recorded launches need onto the device, so that the first replay does not.
    pub fn load(&mut self) -> Result<()> {
        let cuda = Cuda(self.inner.clone());
        cuda.bind()?;
        cuda.not_capturing("the loading of a graph")?;
        let _turn = cuda.turn();
        // SAFETY: graph and stream are alive.
        unsafe { sys::cuGraphUpload(self.executable, self.inner.stream) }.result().map_err(|e| cuda.failed("a graph cannot be loaded", e))
    }

    /// Puts the recorded launches on the stream, without waiting.
    ///
    /// # Safety
    /// Buffers, mapped memory and programs that the recorded launches use are still alive.
    pub unsafe fn launch(&mut self) -> Result<()> {
        let cuda = Cuda(self.inner.clone());
        cuda.bind()?;
        cuda.not_capturing("the launch of a graph")?;
        let _turn = cuda.turn();
        // SAFETY: graph and stream are alive; what the launches use is by the caller's promise.
        unsafe { result::graph::launch(self.executable, self.inner.stream) }.map_err(|e| cuda.failed("a graph cannot be launched", e))
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if self.inner.context.bind_to_thread().is_ok() {
            // SAFETY: both were made in `capture` and are destroyed once; a launch under way ends first.
            unsafe {
                result::graph::exec_destroy(self.executable).ok();
                result::graph::destroy(self.recorded).ok();
            }
        }
    }
}
