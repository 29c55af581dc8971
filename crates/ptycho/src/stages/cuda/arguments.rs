//! The structures that kernels take, as `model.cu`, `constrain.cu`, `sequence.cu` and `sums.cu` declare them.

use bytemuck::{Pod, Zeroable};

use super::number::Number;
use crate::stages::{Overlap, Projection, Sweep};

/// `Storage`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct StorageArgument {
    pub(super) offset: u64,
    pub(super) height: u32,
    pub(super) width: u32,
}

/// `Model`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct ModelArgument {
    pub(super) probe: u64,
    pub(super) object: u64,
    pub(super) views: u64,
    pub(super) storages: u64,
    pub(super) near: u64,
    pub(super) spectra: u64,
    pub(super) shifts: u64,
}

/// `Constraint`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Zeroable)]
pub(super) struct ConstraintArgument<T> {
    a: T,
    b: T,
    c: T,
    bound: T,
    noise: T,
}

// SAFETY: numbers of one type, without padding.
unsafe impl<T: Number> Pod for ConstraintArgument<T> {}

impl<T: Number> From<&Projection> for ConstraintArgument<T> {
    fn from(rule: &Projection) -> Self {
        // In doubles the three are such that parts of e cancel exactly; so they are for whole numbers in single precision.
        let [a, b, c, bound, noise] = [rule.a, rule.b, rule.c, rule.bound, rule.noise].map(T::from_wide);
        Self { a, b, c, bound, noise }
    }
}

impl<T: Number> From<&Sweep> for ConstraintArgument<T> {
    fn from(rule: &Sweep) -> Self {
        let [a, b, c] = [rule.a, rule.b, rule.c].map(T::from_wide);
        Self { a, b, c, bound: T::default(), noise: T::default() }
    }
}

/// `PieStep`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Zeroable)]
pub(super) struct PieStepArgument<T> {
    by_object: T,
    object_local: T,
    by_probe: T,
    probe_local: T,
    low: T,
    high: T,
    object: u32,
    probe: u32,
    keep: u32,
    unused: u32,
    support: u64,
}

// SAFETY: six numbers and four words, 40 or 64 bytes, and an address: no padding.
unsafe impl<T: Number> Pod for PieStepArgument<T> {}

impl<T: Number> PieStepArgument<T> {
    /// `support`: address of the mask of the probes, or 0.
    pub(super) fn new(rule: &Sweep, keep: bool, support: u64) -> Self {
        let [low, high] = clip(rule.clip);
        let [by_object, by_probe] = rule.step.map(T::from_wide);
        let [object_local, probe_local] = rule.local.map(T::from_wide);
        let (object, probe, keep) = (rule.object.into(), rule.probe.into(), keep.into());
        Self { by_object, object_local, by_probe, probe_local, low, high, object, probe, keep, unused: 0, support }
    }
}

/// Range of the modulus, -1 for none.
fn clip<T: Number>(range: Option<[f64; 2]>) -> [T; 2] {
    range.unwrap_or([-1.0; 2]).map(T::from_wide)
}

/// `Sums`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct SumsArgument {
    pub(super) tiles: u64,
    pub(super) visits: u64,
    pub(super) parts: u64,
    pub(super) first_part: u64,
    pub(super) listed: u64,
    pub(super) numerators: u64,
    pub(super) weights: u64,
    pub(super) before: u64,
    pub(super) support: u64,
    pub(super) inertia: u64,
    pub(super) changes: u64,
    pub(super) barrier: u64,
    pub(super) passes: u64,
    pub(super) pool: u64,
    pub(super) values: u64,
    pub(super) tile_count: u32,
    pub(super) part_count: u32,
    pub(super) sets: u32,
    pub(super) views: u32,
}

/// `Update`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Zeroable)]
pub(super) struct UpdateArgument<T> {
    object_inertia: T,
    low: T,
    high: T,
    tolerance: T,
    most: u32,
    object: u32,
    probe: u32,
    probe_first: u32,
}

// SAFETY: four numbers and four words, without padding.
unsafe impl<T: Number> Pod for UpdateArgument<T> {}

impl<T: Number> UpdateArgument<T> {
    /// Update of nothing.
    pub(super) fn none() -> Self {
        Self::zeroed()
    }

    /// One pass over the probes alone.
    pub(super) fn of_probes(self) -> Self {
        Self { most: 1, object: 0, probe: 1, ..self }
    }
}

impl<T: Number> From<&Overlap> for UpdateArgument<T> {
    fn from(rule: &Overlap) -> Self {
        let [low, high] = clip(rule.limits.clip);
        Self {
            object_inertia: T::from_wide(rule.object_inertia),
            low,
            high,
            tolerance: T::from_wide(rule.tolerance),
            most: rule.passes,
            object: rule.object.into(),
            probe: rule.probe.into(),
            probe_first: (!rule.object_first).into(),
        }
    }
}

/// `LineSearch`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct LineSearchArgument {
    pub(super) views: u32,
    pub(super) floating: u32,
    pub(super) left_out: u32,
    pub(super) unused: u32,
}
