//! The structs of the kernels that close batches.

use zellige_device_macro::device;

use crate::gas::vibration::MODES;

/// Species.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct Molecule {
    /// Mass, kg.
    pub(super) mass: f64,
    /// Degrees of freedom of rotation.
    pub(super) freedom: f64,
    pub(super) theta: [f64; MODES],
    pub(super) degeneracy: [f64; MODES],
    /// Modes of vibration.
    pub(super) modes: u32,
}

/// Mean of cross-section times relative speed of a pair: `rate T^power`.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct MeanRate {
    pub(super) rate: f64,
    pub(super) power: f64,
}

/// Sums of the batches.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct Batches {
    /// Sums since the last batch, `[sum][tile][key]`.
    pub(super) fresh: *mut f64,
    /// Sums of all batches, in the tile of the first layer.
    pub(super) all: *mut f64,
    /// `Cells::square`: `[value][cell]`.
    pub(super) square: *mut f64,
    /// Batches with particles: `[line][cell]`.
    pub(super) filled: *mut u32,
    /// Volume of the cell; 0 where there is none.
    pub(super) volume: *const f64,
    /// Weights of cells by [`Batches::weight`], where they have some.
    pub(super) relative: *const f32,
    pub(super) molecules: *const Molecule,
    /// `[species][species]`.
    pub(super) rates: *const MeanRate,
    /// Mean speed at 1 K by species.
    pub(super) speeds: *const f64,
    /// Numbers of a sum.
    pub(super) stride: u64,
    /// Cells with those that fill the last tiles.
    pub(super) cells: u64,
    /// Number of this batch, from 1.
    pub(super) count: f64,
    /// Samples of each.
    pub(super) samples: f64,
    /// Molecules of a particle.
    pub(super) weight: f64,
}

/// A value of all cells as records have it.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    /// Index of the value among those of a cell, and its line: the gas, or a species of a mixture.
    pub(super) value: u32,
    pub(super) line: u32,
    /// Data that a cell needs for it: 0 the gas, 1 particles, 2 the scatter of their velocities.
    pub(super) needs: u32,
    /// 1 for the standard error.
    pub(super) error: u32,
    /// 1 for an average over particles.
    pub(super) by_particles: u32,
    /// Fewest batches with particles.
    pub(super) filled: u32,
    /// Cells along each axis.
    pub(super) cells: [u32; 2],
    /// Tiles along x.
    pub(super) tiles: u32,
}

/// Regions of the domain over which sums are taken.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct Regions {
    /// Sums since the last batch, `[sum][tile][key]`.
    pub(super) fresh: *const f64,
    /// Weights of cells.
    pub(super) weights: *const f32,
    /// Numbers of a sum.
    pub(super) stride: u64,
    /// Tiles along x.
    pub(super) tiles: u32,
    pub(super) cells: [u32; 2],
    pub(super) count: [u32; 2],
    /// First sum.
    pub(super) from: u32,
}
