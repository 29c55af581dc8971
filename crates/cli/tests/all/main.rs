//! The binary as users start it.

mod commands;
mod common;
mod messages;
#[cfg(unix)]
mod robust;
