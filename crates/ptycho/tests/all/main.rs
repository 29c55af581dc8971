//! Everything that is tested from outside, in one program: linking a program for each file took most of the time of building them.

mod book;
mod common;
mod data;
mod likelihood;
mod object_sums;
mod packed;
mod parity;
mod physics;
mod resample;
mod several;
mod simulate;
mod scans;
mod streamed;
mod streamed_cuda;
mod subpixel;
mod twins_cuda;
mod twins_engines;
