//! Rarefied gas by direct simulation Monte Carlo in none, one and two dimensions with three velocity components.

pub mod geometry;
pub mod grid;
pub mod walls;
