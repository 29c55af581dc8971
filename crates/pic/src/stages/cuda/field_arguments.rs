//! The structs that the kernels of the fields take.

use bytemuck::Zeroable;
use zellige_device_macro::device;

use crate::stages::Smoothing;

/// Weights of a filter at most: 32 passes and a compensator reach 33 nodes. A power of two.
pub(super) const MOST_TAPS: usize = 64;

/// Fields and their grid.
#[device]
#[derive(Debug, Clone, Copy, Zeroable)]
pub(super) struct YeeGrid {
    pub(super) e: [*mut real; 3],
    pub(super) b: [*mut real; 3],
    pub(super) j: [*mut real; 3],
    pub(super) scratch: [*mut real; 3],
    /// Memory of the layers: of B and E, per derivative and side; null where there is none.
    pub(super) psi: [[[*mut real; 2]; 4]; 2],
    /// Coefficients per axis: at corners from the wall, then halfway.
    pub(super) layer: [*const Coefficients; 2],
    /// Cells and nodes that are here; cells of the whole domain in y, and the first of those that are here.
    pub(super) cells: [i32; 2],
    pub(super) nodes: [i32; 2],
    pub(super) height: i32,
    pub(super) row: i32,
    pub(super) thick: [i32; 2],
    pub(super) pitch: i32,
    /// Lower and upper side of x, then of y: 0 periodic, 1 conductor, 2 magnetic, 3 another part of the run.
    pub(super) fields: [i32; 4],
    /// For particles: 0 periodic, 1 mirror, 2 drop.
    pub(super) particles: [i32; 4],
    /// `dt / 2h`.
    pub(super) half: [f64; 2],
    /// `dt / h`.
    pub(super) whole: [f64; 2],
    /// `1 / h`.
    pub(super) inverse: [f64; 2],
    pub(super) dt: f64,
}

/// Output of the fused update, and its current.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct FusedFields {
    pub(super) e: [*mut real; 3],
    pub(super) b: [*mut real; 3],
    /// Integers of this step, `length` a component.
    pub(super) sums: *const i64,
    /// Those of the next one.
    pub(super) clear: *mut i64,
    pub(super) length: i64,
    pub(super) scale: [f64; 3],
    /// Set if J has a part of this step already.
    pub(super) more: i32,
}

/// Corners whose charge is checked.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct Corners {
    pub(super) rho: *const f64,
    pub(super) all: *const f64,
    pub(super) base: *mut f64,
    pub(super) variance: *mut f64,
    pub(super) forget: *const u8,
    pub(super) range: [i32; 4],
    pub(super) turn: i32,
}

/// All passes of an axis as one symmetric filter.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct Taps {
    /// Weight at each distance, in nodes.
    pub(super) weight: [f64; MOST_TAPS],
    /// Rows of the parts of the run below and above, from the border on, `reach` of each component.
    pub(super) beyond: [*const u8; 2],
    pub(super) reach: i32,
    pub(super) count: i32,
    pub(super) axis: i32,
}

impl Taps {
    /// All passes of an axis in one.
    pub(super) fn new(smoothing: Smoothing, axis: usize) -> Self {
        // Weights at the distances -m..=m, pass by pass.
        let mut all = vec![1.0];
        for [middle, side] in smoothing.weights() {
            let at = |k: usize, shift: usize| (k + 1).checked_sub(shift).and_then(|k| all.get(k)).copied().unwrap_or(0.0);
            all = (0..all.len() + 2).map(|k| middle * at(k, 2) + side * (at(k, 1) + at(k, 3))).collect();
        }
        let reach = all.len() / 2;
        let mut weight = [0.0; MOST_TAPS];
        weight[..=reach].copy_from_slice(&all[reach..]);
        Self { weight, beyond: [0; 2], reach: reach as i32, count: reach as i32 + 1, axis: axis as i32 }
    }
}
