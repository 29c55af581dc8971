//! Ptychographic phase retrieval: object and probe from overlapping diffraction frames.

pub mod config;
pub mod data;
pub mod engines;
pub mod model;
pub mod physics;
pub mod scan;
pub mod simulate;
pub mod stages;

pub use config::Config;
pub use scan::Scan;
