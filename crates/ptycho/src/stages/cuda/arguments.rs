//! The structs that kernels take, without `Argument` in their names there.

use bytemuck::{Pod, Zeroable};
use zellige_device_macro::{device, device_source};

use super::number::Number;
use super::stream::tile_ranges;
use super::{batches, lists};
use crate::model;
use crate::stages::{Overlap, Projection, Sweep};

/// One object: modes `[O][height][width]` from `offset` in the array of all.
#[device]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct StorageArgument {
    pub(super) offset: u64,
    pub(super) height: u32,
    pub(super) width: u32,
}

/// Arrays that all kernels share.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct ModelArgument {
    /// `[sets][P][NY * NX]`.
    pub(super) probe: *mut C,
    pub(super) object: *mut C,
    pub(super) views: *const View,
    pub(super) storages: *const StorageArgument,
    /// Kernel of the near field, in the order of the transform; null for a far detector.
    pub(super) near: *const C,
    /// Transforms of probes that `project` shifts for the views, in its order, and puts to `probe`; or null.
    pub(super) spectra: *const C,
    /// Shifts of the views, then.
    pub(super) shifts: *const real2,
}

/// Fourier constraint; a frame is let through `bound` (below 0: none) and the part `noise` of what photons make.
#[device]
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

/// Rule of engines that go from view to view.
#[device]
#[derive(Debug, Clone, Copy, Zeroable)]
pub(super) struct PieStepArgument<T> {
    /// `s_o`, `t_o`, `s_p`, `t_p`.
    object_step: T,
    object_mix: T,
    probe_step: T,
    probe_mix: T,
    /// Range of the object's magnitude; `low` < 0: none.
    low: T,
    high: T,
    /// Flags of what is updated.
    object: u32,
    probe: u32,
    /// 1 if waves are kept, 0 if they begin as F(P O) every time.
    keep: u32,
    unused: u32,
    /// 1 where probes may be and 0 elsewhere, or null for no support.
    support: *const T,
}

// SAFETY: six numbers and four words, 40 or 64 bytes, and an address: no padding.
unsafe impl<T: Number> Pod for PieStepArgument<T> {}

impl<T: Number> PieStepArgument<T> {
    /// `support`: address of the mask of the probes, or 0.
    pub(super) fn new(rule: &Sweep, keep: bool, support: u64) -> Self {
        let [low, high] = clip(rule.clip);
        let [object_step, probe_step] = rule.step.map(T::from_wide);
        let [object_mix, probe_mix] = rule.local.map(T::from_wide);
        let (object, probe, keep) = (rule.object.into(), rule.probe.into(), keep.into());
        Self { object_step, object_mix, probe_step, probe_mix, low, high, object, probe, keep, unused: 0, support }
    }
}

/// Range of the modulus, -1 for none.
fn clip<T: Number>(range: Option<[f64; 2]>) -> [T; 2] {
    range.unwrap_or([-1.0; 2]).map(T::from_wide)
}

/// Lists that sums over views go by, and their places.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct SumsArgument {
    pub(super) tiles: *const Tile,
    pub(super) visits: *const Visit,
    /// Visits at which sections begin.
    pub(super) cuts: *const u32,
    pub(super) parts: *const Part,
    /// First part of every bundle of parts, and the end.
    pub(super) bundles: *const u32,
    /// First bundle of every set of probes, and the end.
    pub(super) first_bundle: *const u32,
    /// Views in the order of the parts.
    pub(super) listed: *const u32,
    /// `[parts][PROBES][NY * NX]`.
    pub(super) numerators: *mut C,
    /// `[parts][NY * NX]`.
    pub(super) weights: *mut real,
    /// Probes at the last test.
    pub(super) before: *mut C,
    /// `[NY * NX]`, or null.
    pub(super) support: *const real,
    /// Inertia of every set of probes.
    pub(super) inertia: *const real,
    /// `[sets][blocks]`.
    pub(super) changes: *mut real2,
    pub(super) barrier: *mut u32,
    /// Number of passes that there were.
    pub(super) passes: *mut u32,
    /// Real and imaginary part and weight of every value of the objects, zero between sums; or null.
    pub(super) pool: *mut real4,
    /// Values of the objects.
    pub(super) values: u64,
    pub(super) tile_count: u32,
    pub(super) part_count: u32,
    pub(super) sets: u32,
    pub(super) views: u32,
}

/// Update of object and probes from sums over views.
#[device]
#[derive(Debug, Clone, Copy, Zeroable)]
pub(super) struct UpdateArgument<T> {
    object_inertia: T,
    /// Range of the object's magnitude; `low` < 0: none.
    low: T,
    high: T,
    tolerance: T,
    /// Passes at most.
    most: u32,
    /// Flags of what is updated.
    object: u32,
    probe: u32,
    /// 1 if the first pass leaves the object.
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

/// Search along a direction.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct LineSearchArgument {
    pub(super) views: u32,
    pub(super) floating: u32,
    pub(super) left_out: u32,
}

/// Structs of all programs, in the order of their use.
pub(super) const ARGUMENTS: &[&str] = &device_source![
    model::View,
    StorageArgument,
    ModelArgument,
    ConstraintArgument,
    PieStepArgument,
    lists::Tile,
    lists::Visit,
    lists::Part,
    SumsArgument,
    UpdateArgument,
    tile_ranges::TileRange,
    tile_ranges::SectionedTile,
    tile_ranges::PartRange,
    LineSearchArgument,
    batches::Batch
];
