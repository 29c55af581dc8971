//! The structures that kernels take, as the `.cu` files declare them, field by field.

use bytemuck::{Pod, Zeroable};

use crate::gas::vibration::MODES;
use crate::stages::cpu::collide::ChanceTables;

/// `Columns` of common.cu: x, y, vx, vy, vz, rotation, level, key, tag.
pub(super) type Columns = [u64; 9];

/// `Store` of common.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub(super) struct StoreArgument {
    pub(super) now: Columns,
    pub(super) next: Columns,
    pub(super) first: u64,
    pub(super) next_first: u64,
    pub(super) list: u64,
    pub(super) left: u64,
    pub(super) special: u64,
    pub(super) stay: u64,
    pub(super) near: u64,
    pub(super) old: [u64; 3],
    pub(super) near_in: u64,
    pub(super) far_in: u64,
    pub(super) near_n: u64,
    pub(super) far_n: u64,
    pub(super) filled: u64,
    pub(super) chains: u64,
    pub(super) link: u64,
    pub(super) wanderers: u64,
    pub(super) counters: u64,
    pub(super) cells: [i32; 2],
    pub(super) tiles: [i32; 2],
    pub(super) count: u32,
    pub(super) capacity: u32,
}

/// `Counters` of common.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
pub(super) struct Counters {
    pub(super) injected: u64,
    pub(super) removed: u64,
    pub(super) collisions: u64,
    pub(super) attempts: u64,
    pub(super) exceeded: u64,
    pub(super) stuck: u64,
    pub(super) copied: u64,
    pub(super) dropped: u64,
    pub(super) fresh: u32,
    pub(super) refused: u32,
    pub(super) fullest: u32,
    pub(super) special: u32,
}

/// `Kinetics` of gas.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Kinetics {
    pub(super) rate: f32,
    pub(super) power: f32,
    pub(super) soft: f32,
    pub(super) share: [f32; 2],
    pub(super) thermal: f32,
    pub(super) pool: f32,
    pub(super) inelastic: u32,
    pub(super) species: [u32; 2],
    pub(super) chances: ChanceTables,
}

/// `Modes` of gas.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Modes {
    pub(super) rotation: u32,
    pub(super) count: u32,
    pub(super) z_rotation: f32,
    pub(super) t_star: f32,
    pub(super) theta: [f32; MODES],
    pub(super) degeneracy: [f32; MODES],
    pub(super) z: [f32; MODES],
}

/// `Part` of gas.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Part {
    pub(super) fraction: f32,
    pub(super) first: u32,
    pub(super) count: u32,
}

/// `Gas` of gas.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub(super) struct GasArgument {
    pub(super) pairs: u64,
    pub(super) modes: u64,
    pub(super) lookup: u64,
    pub(super) rate: u64,
    pub(super) sigma_g_max: u64,
    pub(super) seen: u64,
    pub(super) attempts: u64,
    pub(super) divided: u64,
    pub(super) parts: u64,
    pub(super) outline: u64,
    pub(super) seed: u64,
    pub(super) step: u64,
    pub(super) stride: u64,
    pub(super) chances: u64,
    pub(super) across: [f32; 2],
    pub(super) jeans: u32,
    pub(super) unused: u32,
}

/// `Pass` of advance.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub(super) struct PassArgument {
    pub(super) step: [f32; 2],
    pub(super) stride: u32,
    pub(super) unused: u32,
    pub(super) reach: u64,
    pub(super) sums: u64,
    pub(super) factor: u64,
    pub(super) follow_first: u64,
    pub(super) follow: u64,
    pub(super) memory: u64,
    pub(super) moving: u64,
    pub(super) mass: u64,
    pub(super) weights: u64,
}

/// `Wall` of reflect.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct WallArgument {
    pub(super) model: i32,
    pub(super) unused: i32,
    pub(super) temperature: f64,
    pub(super) velocity: [f64; 3],
    pub(super) normal: f64,
    pub(super) tangential: f64,
}

/// `Molecule` of reflect.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct MoleculeArgument {
    pub(super) mass: f64,
    pub(super) thermal: f64,
    pub(super) theta: [f64; MODES],
    pub(super) degeneracy: [u32; MODES],
    pub(super) rotation: u32,
    pub(super) count: u32,
}

/// `Domain` of trajectory.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub(super) struct DomainArgument {
    pub(super) edge: [i32; 4],
    pub(super) along: [u32; 4],
    pub(super) path: [f32; 2],
    pub(super) dt: f64,
    pub(super) per_metre: [f64; 2],
    pub(super) seed: u64,
    pub(super) step: u64,
    pub(super) walls: u64,
    pub(super) species: u64,
    pub(super) surfaces: u64,
    pub(super) hits: f64,
    pub(super) momentum: f64,
    pub(super) energy: f64,
    pub(super) weights: u64,
    pub(super) sample: u32,
    pub(super) capacity: u32,
}

/// `Segment` of lattice.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct SegmentArgument {
    pub(super) normal: [f64; 2],
    pub(super) middle: [f64; 2],
    pub(super) per_cell: [f64; 2],
    pub(super) wall: u32,
    pub(super) unused: u32,
}

/// `Geometry` of lattice.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub(super) struct GeometryArgument {
    pub(super) slots: u64,
    pub(super) first: u64,
    pub(super) pieces: u64,
    pub(super) references: u64,
    pub(super) segments: u64,
    pub(super) inside: u64,
    pub(super) cells: [i32; 2],
    pub(super) h: [f64; 2],
}

/// `Face` of sides.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct FaceArgument {
    pub(super) cell: [i32; 2],
    pub(super) side: u32,
    pub(super) follow: u32,
}

/// `Beam` of sides.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct BeamArgument {
    pub(super) density: f64,
    pub(super) temperature: f64,
    pub(super) velocity: [f64; 3],
    pub(super) mass: f64,
    pub(super) mean: f64,
}

/// `SubsonicBoundary` of sides.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct SubsonicArgument {
    pub(super) what: u32,
    pub(super) unused: u32,
    pub(super) value: f64,
    pub(super) temperature: f64,
}

/// `Line` of sides.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct LineArgument {
    pub(super) ends: [f64; 4],
    pub(super) normal: [f64; 2],
    pub(super) temperature: f64,
    pub(super) velocity: [f64; 3],
}

/// `Inflow` of sides.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub(super) struct InflowArgument {
    pub(super) faces: u64,
    pub(super) beams: u64,
    pub(super) given: u64,
    pub(super) moving: u64,
    pub(super) volume: u64,
    pub(super) offsets: u64,
    pub(super) lines: u64,
    pub(super) groups: u64,
    pub(super) fractions: u64,
    pub(super) per_flux: [f64; 2],
    pub(super) face_count: u32,
    pub(super) line_count: u32,
}
