//! Rarefied gas by direct simulation Monte Carlo in none, one and two dimensions with three velocity components.

pub mod flux;
pub mod gas;
pub mod geometry;
pub mod grid;
pub mod loading;
pub mod model;
pub mod particles;
pub mod physics;
pub mod stages;
pub mod walls;
