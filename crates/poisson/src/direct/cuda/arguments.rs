//! The structs that the kernels take.

use bytemuck::Zeroable;
use zellige_device_macro::device;

/// Splits that a launch can carry: of 2^20 intervals into [`SMALL`](super::axis::SMALL), and a few.
pub(super) const LEVELS: usize = 16;

/// One split: `groups` DFTs of `m` points a line.
#[device]
#[derive(Debug, Clone, Copy, Zeroable)]
pub(super) struct Split {
    pub(super) modes: *mut Z,
    pub(super) table: *const Z,
    pub(super) n: u32,
    pub(super) radix: u32,
    pub(super) m: u32,
    pub(super) groups: u32,
}

/// All splits of a line of `n` intervals, and its rest of `rest` ones, extended (periodic: as it is).
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct Transform {
    pub(super) levels: [Split; LEVELS],
    pub(super) extended: *mut Z,
    pub(super) count: u32,
    pub(super) kind: u32,
    pub(super) n: u32,
    pub(super) len: u32,
    pub(super) rest: u32,
    pub(super) room: u32,
}

/// Source and destination of lines: rows of the grid in pairs, or (`grid` is null) complex lines one behind the other.
#[device]
#[derive(Debug, Clone, Copy, Zeroable)]
pub(super) struct LineLayout {
    pub(super) grid: *mut real,
    pub(super) lines: *mut Z,
    /// Node of the first unknown.
    pub(super) first: u64,
    /// Nodes from system to system.
    pub(super) system: u64,
    /// Nodes from row to row.
    pub(super) last: u64,
    /// Nodes along the middle axis.
    pub(super) middle: u32,
    /// Rows along the middle axis.
    pub(super) rows: u32,
    /// Rows along the middle axis of all systems.
    pub(super) middles: u32,
    /// Rows along the last axis.
    pub(super) end: u32,
}

/// Modes of each part: `at[k] .. at[k + 1]` of every outer mode, one outer mode behind the other, `outer` of them.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct Modes {
    pub(super) part: [*mut Z; LEVELS + 1],
    pub(super) at: [u32; LEVELS + 2],
    pub(super) count: u32,
    pub(super) outer: u32,
}

/// Grid of the residual.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    /// Node of the first unknown.
    pub(super) first: u64,
    /// Nodes from system to system, along the middle and the last axis.
    pub(super) system: u64,
    pub(super) middle: u64,
    pub(super) last: u64,
    /// Unknowns.
    pub(super) n: [u32; 3],
    pub(super) tiles: [u32; 3],
    /// 0 Dirichlet, 1 Neumann, 2 periodic.
    pub(super) lo: [i32; 3],
    pub(super) hi: [i32; 3],
    /// `1 / h^2`.
    pub(super) weight: [f64; 3],
    pub(super) volume: f64,
}
