//! Ptychographic phase retrieval: object and probe from overlapping diffraction frames.

pub mod config;
pub mod data;
pub mod engines;
pub mod model;
pub mod modes;
pub mod physics;
pub mod positions;
pub mod propagation;
pub mod resolution;
pub mod scan;
pub mod setup;
pub mod simulate;
pub mod stages;
mod start;

pub use config::Config;
pub use scan::Scan;
