//! A run watched in the browser: one page, served by the run itself.
//!
//! ```text
//! run loop -> Watched (sink) -> Hub: rows, rings of frames, stages <- Server: a thread a connection <- page
//!                  |-> Looks --^
//!          <- wishes: pictures, save, next                         <-
//! ```
//!
//! The run waits for nobody. It asks the [`Hub`] before a step whether somebody watches, which is two loads of atomics where nobody
//! does. If so, and if the last pictures are long enough ago that all of them hold it up for at most a hundredth of the time, it
//! hands over its records, reduced to frames of at most [`frame::MOST`] times as many pixels; what is on its way from a GPU is
//! waited for by a thread of its own. Clients take what there is at their own pace.
//!
//! The server binds to the loopback unless told otherwise. Every path begins with a token of 128 random bits, and the name in
//! `Host` must be one of this host, so that neither other users nor pages of other sites get anything. Commands need `--steer`.

mod address;
pub mod frame;
mod http;
mod hub;
mod looks;
mod pace;
mod page;
mod queue;
mod rows;
mod server;
mod sink;

pub use address::Address;
pub use hub::{Command, Hub, RunNames};
pub use page::page;
pub use queue::{OpenFolder, Queue, QueuedRun, RunPage};
pub use server::{Security, Server};
pub use sink::{Watched, Watcher};
