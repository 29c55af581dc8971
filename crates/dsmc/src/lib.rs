//! Rarefied gas by direct simulation Monte Carlo in none, one and two dimensions with three velocity components, or with two on
//! request ([`planar`]).

pub mod bench;
pub mod config;
pub mod diagnostics;
pub mod flow;
pub mod gas;
pub mod geometry;
pub mod grid;
pub mod model;
pub mod output;
mod outside;
pub mod particles;
pub mod physics;
pub mod plan;
pub mod planar;
pub mod sampling;
mod saved;
pub mod setup;
pub mod solver;
mod species;
pub mod stages;
pub mod start;
pub mod step;
pub mod walls;

pub use config::Config;
pub use solver::Dsmc;
