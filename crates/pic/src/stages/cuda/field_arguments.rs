//! The structures that the kernels of the fields take, as `yee_grid.cu`, `fused_fields.cu` and `current.cu` declare them.

use bytemuck::{Pod, Zeroable};

use crate::stages::Smoothing;

/// Weights of a filter at most: 32 passes and a compensator reach 33 nodes. A power of two.
pub(super) const MOST_TAPS: usize = 64;

/// `YeeGrid` in `yee_grid.cu`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct YeeGrid {
    pub(super) arrays: [[u64; 3]; 4],
    pub(super) psi: [[[u64; 2]; 4]; 2],
    pub(super) layer: [u64; 2],
    pub(super) cells: [i32; 2],
    pub(super) nodes: [i32; 2],
    pub(super) thick: [i32; 2],
    pub(super) pitch: i32,
    pub(super) fields: [i32; 4],
    pub(super) particles: [i32; 4],
    pub(super) unused: i32,
    pub(super) half: [f64; 2],
    pub(super) whole: [f64; 2],
    pub(super) inverse: [f64; 2],
    pub(super) dt: f64,
}

/// `FusedFields` in `fused_fields.cu`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct FusedFields {
    pub(super) arrays: [[u64; 3]; 2],
    pub(super) sums: u64,
    pub(super) clear: u64,
    pub(super) length: i64,
    pub(super) scales: [f64; 3],
    pub(super) more: i32,
    pub(super) unused: i32,
}

/// `Taps` in `current.cu`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Taps {
    pub(super) weight: [f64; MOST_TAPS],
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
        Self { weight, count: reach as i32 + 1, axis: axis as i32 }
    }
}
