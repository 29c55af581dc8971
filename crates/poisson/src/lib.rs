//! Poisson's equation on regular grids.

pub mod grid;
pub mod stages;
pub mod step;
