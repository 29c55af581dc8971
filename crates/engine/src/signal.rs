//! SIGINT and SIGTERM: the first one asks the run loop to save and stop, a second SIGINT ends the process at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::error::{Error, Result};

/// Flags that the signal handlers set. The handlers are taken off when this is dropped.
#[derive(Debug)]
pub struct Signals {
    seen: Arc<AtomicUsize>,
    handlers: Vec<signal_hook::SigId>,
}

impl Signals {
    /// Puts the handlers in place.
    pub fn listen() -> Result<Self> {
        let seen = Arc::new(AtomicUsize::new(0));
        let once = Arc::new(AtomicBool::new(false));
        let register = || -> std::io::Result<_> {
            Ok(vec![
                // In this order: the first SIGINT finds `once` unset and sets it, the second one exits.
                flag::register_conditional_shutdown(SIGINT, 130, once.clone())?,
                flag::register(SIGINT, once)?,
                flag::register_usize(SIGINT, seen.clone(), SIGINT as usize)?,
                flag::register_usize(SIGTERM, seen.clone(), SIGTERM as usize)?,
            ])
        };
        let handlers = register().map_err(|e| Error::Device {
            device: "host".into(),
            message: format!("signal handlers cannot be set: {e}"),
            hint: None,
        })?;
        Ok(Self { seen, handlers })
    }

    /// The signal that came, by name.
    pub fn seen(&self) -> Option<&'static str> {
        match self.seen.load(Ordering::Relaxed) as i32 {
            SIGINT => Some("SIGINT"),
            SIGTERM => Some("SIGTERM"),
            _ => None,
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.handlers.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}
