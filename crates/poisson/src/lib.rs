//! Poisson's equation on regular grids.

pub mod grid;
pub mod operator;
pub mod problem;
pub mod stages;
pub mod step;
