//! Ptychographic phase retrieval: object and probe from overlapping diffraction frames.
//!
//! A scan is a set of far-field (or near-field) intensities of one sample, lit by one beam that was moved between the frames by
//! less than its width: `I_j(q) = sum_m |F(P_m(x) O(x + X_j))(q)|^2`. Phases are lost, but neighbouring frames see the same part of
//! the sample, and from that both the object `O` and the modes `P_m` of the probe are found.
//!
//! The way of a run: [`data`] and [`simulate`] give scans; [`setup`] makes flat arrays of them ([`model`]); [`engines`] are lists
//! of calls of [`stages`], which a device does for all frames at once; [`reconstruction`] runs the engines of the input one after
//! another, with refinement of [`positions`] and [`modes`] made orthogonal between; [`solver`] is all that as the run loop sees it;
//! [`output`] makes records.

pub mod arrays;
mod batch;
pub mod bench;
pub mod config;
pub mod data;
mod division;
pub mod engines;
pub mod half_sets;
pub mod memory;
pub mod model;
pub mod modes;
pub mod noise;
mod ordered;
pub mod output;
pub mod peak;
pub mod physics;
mod plan;
pub mod positions;
mod programs;
pub mod propagation;
pub mod reconstruction;
mod relay;
pub mod resolution;
pub mod scan;
pub mod setup;
pub mod share;
pub mod simulate;
pub mod solver;
pub mod stages;
mod start;
pub mod streaming;

pub use config::Config;
pub use scan::Scan;
pub use solver::Ptycho;
