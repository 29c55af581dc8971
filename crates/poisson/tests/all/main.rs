//! Verification from outside, in one program: linking one for each file took most of the time of building them.

mod batch;
mod bench;
mod book;
mod common;
mod convergence;
mod direct;
mod direct_sizes;
mod endings;
mod every_grid;
mod examples;
mod golden;
mod memory_cuda;
mod parts;
mod parts_cuda;
mod passes;
mod physics;
mod pictures_cuda;
mod plans;
mod robustness;
mod solves;
mod twins;
mod twins_solves;
mod twins_stages;
