//! Tests from outside, in one program: linking one for each file took most of the time of building them.

mod layout;
mod parts;
mod real;
mod run;
mod twins;

/// Signals are the process's: the tests that listen to them take turns.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
