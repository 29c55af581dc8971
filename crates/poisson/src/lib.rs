//! Poisson's equation on regular grids.

pub mod direct;
pub mod grid;
pub mod operator;
pub mod physics;
pub mod problem;
pub mod stages;
pub mod step;
pub mod method;
pub mod spectrum;
pub mod status;
