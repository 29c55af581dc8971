//! The binary as users start it.

#[cfg(unix)]
mod checkpoints;
mod commands;
mod common;
#[cfg(unix)]
mod examples;
#[cfg(target_os = "linux")]
mod hosts;
mod live;
mod messages;
mod pages;
#[cfg(unix)]
mod parts;
#[cfg(target_os = "linux")]
mod peaks;
#[cfg(unix)]
mod queue;
#[cfg(unix)]
mod robust;
#[cfg(unix)]
mod shares;
#[cfg(unix)]
mod signals;
mod view;
