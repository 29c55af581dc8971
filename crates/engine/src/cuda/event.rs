//! Events: marks in the stream that tell when the work before them was done.

use std::sync::{Arc, OnceLock};

use cudarc::driver::result;
use cudarc::driver::sys;

use super::context::{Cuda, Inner};
use crate::error::Result;

/// A mark in a stream, with a time.
pub struct Event {
    handle: sys::CUevent,
    inner: Arc<Inner>,
}

// SAFETY: the driver lets events be used from any thread.
unsafe impl Send for Event {}
// SAFETY: shared access gives the handle to the driver, which serialises calls.
unsafe impl Sync for Event {}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Event")
    }
}

impl Cuda {
    /// A new event, not yet recorded.
    pub fn event(&self) -> Result<Event> {
        self.bind()?;
        let handle = result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).map_err(|e| self.failed("an event cannot be made", e))?;
        Ok(Event { handle, inner: self.0.clone() })
    }

    /// A new event that a thread waits for asleep: without taking a core, and a little longer.
    pub fn patient_event(&self) -> Result<Event> {
        self.bind()?;
        let handle =
            result::event::create(sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC).map_err(|e| self.failed("an event cannot be made", e))?;
        Ok(Event { handle, inner: self.0.clone() })
    }

    /// A new event that keeps no time, which is cheaper for streams that wait for each other.
    pub fn event_without_time(&self) -> Result<Event> {
        self.bind()?;
        let handle =
            result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING).map_err(|e| self.failed("an event cannot be made", e))?;
        Ok(Event { handle, inner: self.0.clone() })
    }

    /// Marks this point of the stream.
    pub fn record(&self, event: &Event) -> Result<()> {
        self.bind()?;
        let _turn = self.turn();
        // SAFETY: event and stream are alive.
        unsafe { result::event::record(event.handle, self.0.stream) }.map_err(|e| self.failed("an event cannot be recorded", e))
    }
}

impl Event {
    pub(super) fn handle(&self) -> sys::CUevent {
        self.handle
    }

    fn cuda(&self) -> Cuda {
        Cuda(self.inner.clone())
    }

    /// Returns true if the event belongs to this device.
    pub fn belongs_to(&self, cuda: &Cuda) -> bool {
        Arc::ptr_eq(&self.inner, &cuda.0)
    }

    /// Returns true if the work before the event is done, without waiting.
    pub fn done(&self) -> Result<bool> {
        let cuda = self.cuda();
        cuda.bind()?;
        // SAFETY: the event is alive.
        match unsafe { result::event::query(self.handle) } {
            Ok(()) => Ok(true),
            Err(e) if e.0 == sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            Err(e) => Err(cuda.failed("a kernel or copy failed", e)),
        }
    }

    /// Waits until the work before the mark is done.
    pub fn wait(&self) -> Result<()> {
        let cuda = self.cuda();
        cuda.bind()?;
        // SAFETY: the event is alive.
        unsafe { result::event::synchronize(self.handle) }.map_err(|e| cuda.failed("a kernel or copy failed", e))
    }

    /// Seconds from `earlier` to this mark; both must be done. Resolution about half a microsecond.
    pub fn seconds_since(&self, earlier: &Self) -> Result<f64> {
        type Elapsed = unsafe extern "C" fn(*mut f32, sys::CUevent, sys::CUevent) -> sys::CUresult;
        static ELAPSED: OnceLock<Option<Elapsed>> = OnceLock::new();
        // By hand, since the binding asks for a name that drivers before CUDA 12.8 lack; every driver has this one.
        // SAFETY: the type is the one that cuda.h declares for the name.
        let elapsed = ELAPSED.get_or_init(|| unsafe { sys::culib().get::<Elapsed>(b"cuEventElapsedTime").ok().map(|s| *s) });
        let cuda = self.cuda();
        cuda.bind()?;
        let mut milliseconds = 0.0;
        let status = match elapsed {
            // SAFETY: both events are alive.
            Some(elapsed) => unsafe { elapsed(&raw mut milliseconds, earlier.handle, self.handle) },
            None => sys::CUresult::CUDA_ERROR_NOT_FOUND,
        };
        status.result().map_err(|e| cuda.failed("an event's time cannot be read", e))?;
        Ok(f64::from(milliseconds) * 1e-3)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.inner.context.bind_to_thread().is_ok() {
            // SAFETY: made by `create`, destroyed once.
            unsafe { result::event::destroy(self.handle) }.ok();
        }
    }
}
