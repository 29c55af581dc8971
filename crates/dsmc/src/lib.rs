//! Rarefied gas by direct simulation Monte Carlo in none, one and two dimensions with three velocity components, or with two on
//! request ([`planar`]).

mod audit;
pub mod bench;
pub mod config;
pub mod flow;
pub mod forecast;
pub mod gas;
pub mod geometry;
pub mod grid;
pub mod loading;
mod local;
pub mod model;
pub mod output;
pub mod particles;
mod patches;
pub mod physics;
pub mod planar;
mod relaxation;
pub mod sampling;
pub mod seed;
pub mod setup;
mod shocked;
pub mod solver;
pub mod source;
mod species;
pub mod stages;
pub mod step;
pub mod surfaces;
mod unused;
pub mod walls;

pub use config::Config;
pub use solver::Dsmc;
