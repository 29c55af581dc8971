//! The structures that kernels take, as `model.cu`, `constrain.cu`, `sequence.cu` and `sums.cu` declare them.

use bytemuck::{Pod, Zeroable};

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
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct ConstraintArgument {
    a: f32,
    b: f32,
    c: f32,
    bound: f32,
    noise: f32,
}

impl From<&Projection> for ConstraintArgument {
    fn from(rule: &Projection) -> Self {
        // In doubles the three are such that parts of e cancel exactly; so they are for whole numbers in single precision.
        Self { a: rule.a as f32, b: rule.b as f32, c: rule.c as f32, bound: rule.bound as f32, noise: rule.noise as f32 }
    }
}

impl From<&Sweep> for ConstraintArgument {
    fn from(rule: &Sweep) -> Self {
        Self { a: rule.a as f32, b: rule.b as f32, c: rule.c as f32, bound: 0.0, noise: 0.0 }
    }
}

/// `PieStep`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct PieStepArgument {
    by_object: f32,
    object_local: f32,
    by_probe: f32,
    probe_local: f32,
    low: f32,
    high: f32,
    object: u32,
    probe: u32,
    keep: u32,
    unused: u32,
    support: u64,
}

impl PieStepArgument {
    /// `support`: address of the mask of the probes, or 0.
    pub(super) fn new(rule: &Sweep, keep: bool, support: u64) -> Self {
        let [low, high] = clip(rule.clip);
        let [by_object, by_probe] = rule.step.map(|x| x as f32);
        let [object_local, probe_local] = rule.local.map(|x| x as f32);
        let (object, probe, keep) = (rule.object.into(), rule.probe.into(), keep.into());
        Self { by_object, object_local, by_probe, probe_local, low, high, object, probe, keep, unused: 0, support }
    }
}

/// Range of the modulus, -1 for none.
fn clip(range: Option<[f64; 2]>) -> [f32; 2] {
    range.map_or([-1.0, -1.0], |r| r.map(|x| x as f32))
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
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct UpdateArgument {
    object_inertia: f32,
    low: f32,
    high: f32,
    tolerance: f32,
    most: u32,
    object: u32,
    probe: u32,
    probe_first: u32,
}

impl UpdateArgument {
    /// Update of nothing.
    pub(super) fn none() -> Self {
        Self::zeroed()
    }

    /// One pass over the probes alone.
    pub(super) fn of_probes(self) -> Self {
        Self { most: 1, object: 0, probe: 1, ..self }
    }
}

impl From<&Overlap> for UpdateArgument {
    fn from(rule: &Overlap) -> Self {
        let [low, high] = clip(rule.limits.clip);
        Self {
            object_inertia: rule.object_inertia as f32,
            low,
            high,
            tolerance: rule.tolerance as f32,
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
