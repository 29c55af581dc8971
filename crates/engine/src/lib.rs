//! The engine under the four solvers of zellige: devices, kernels, parallel operations, random numbers, expressions,
//! the run loop, checkpoints and the profiler. It knows no physics and no file format.
//!
//! The page to read first is [`sim`]: the trait that a solver implements.

pub mod allocator;
pub mod bench;
pub mod checkpoint;
pub mod config;
pub mod cuda;
pub mod device;
pub mod error;
pub mod expr;
pub mod files;
pub mod large;
pub mod links;
pub mod lock;
pub mod notice;
pub mod ops;
pub mod parallel;
pub mod profile;
pub mod real;
pub mod record;
pub mod rng;
pub mod run;
pub mod schedule;
pub mod signal;
pub mod sim;
pub mod testing;
pub mod text;
pub mod tiles;
pub mod times;
pub mod trace;
pub mod twins;
