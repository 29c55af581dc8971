//! The time step: the page to read. Everything named here is a stage of [`crate::stages`].
//!
//! ```text
//! index    particles that arrived are put in; all are ordered by cell and species
//! collide  pairs of a cell, by their cross-sections and at random
//! sample   sums of each cell and species
//! move     every particle flies for dt: sides, bodies, walls
//! inflow   new particles through open sides, each for the part of dt since its injection
//! ```
//!
//! Both devices do all of it tile by tile in one pass ([`crate::stages::cpu`], [`crate::stages::cuda`]); on a GPU what hits
//! something and injected particles have passes of their own.
//!
//! Source: Bird, Molecular Gas Dynamics and the Direct Simulation of Gas Flows (1994), chapters 7 and 11.

use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;

use crate::stages::Stages;

/// Step number `step`, counted from 0. `sample` adds to the averages.
pub fn step(stages: &mut dyn Stages, step: u64, sample: bool, profiler: &mut Profiler) -> Result<()> {
    stages.advance(step, sample, profiler)
}
