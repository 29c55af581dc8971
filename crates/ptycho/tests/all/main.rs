//! Everything that is tested from outside, in one program: linking a program for each file took most of the time of building them.

mod common;
mod data;
mod packed;
mod parity;
mod physics;
mod simulate;
mod streamed;
mod streamed_cuda;
mod twins_cuda;
mod twins_engines;
