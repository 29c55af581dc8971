//! The binary as users start it.

mod commands;
mod common;
mod messages;
#[cfg(target_os = "linux")]
#[cfg(unix)]
mod robust;
