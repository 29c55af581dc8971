//! Everything that is tested from outside, in one program: linking a program for each file took most of the time of building them.

mod book;
mod common;
mod data;
mod examples;
mod files;
mod inputs;
mod likelihood;
mod low_dose;
mod near;
mod object_sums;
mod packed;
mod parity;
mod physics;
mod recipes;
mod resample;
mod scans;
mod several;
mod simulate;
mod streamed;
mod streamed_cuda;
mod subpixel;
mod twins_cuda;
mod twins_engines;
mod updates;
mod wavefield;
