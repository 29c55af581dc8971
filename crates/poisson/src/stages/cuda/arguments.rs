//! The structs that all kernels take.

use std::ops::Range;

use zellige_device_macro::device;

/// Axis of a level. Tables of the operator and of the regular transfers may be read a few entries beyond either end: zeros
/// there, or the wrapped entry on a periodic axis.
#[device]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Axis {
    /// Nodes.
    pub(super) n: i32,
    /// Unknowns are `first <= i < last`.
    pub(super) first: i32,
    pub(super) last: i32,
    pub(super) periodic: i32,
    /// A launch works on nodes `begin <= i < end`, which are wrapped on a periodic axis; passes over plane grids round up to whole
    /// bands.
    pub(super) begin: i32,
    pub(super) end: i32,
    /// `[2i], [2i+1]`: weights west and east.
    pub(super) w: *const real,
    /// Weights in `wide`.
    pub(super) ww: *const wide,
    /// Length of the control volume.
    pub(super) volume: *const wide,
    /// `[2i], [2i+1]`: weights of coarse nodes `i/2` and `i/2 + 1` at fine node `i`.
    pub(super) line: *const real,
    /// `[3I..3I+2]`: weights of fine nodes `2I-1`, `2I`, `2I+1` at coarse node `I`, 0 off the unknowns.
    pub(super) full: *const real,
    /// The general transfer: coarse node west of (or at) `i`, weights in `ends`.
    pub(super) parent: *const i32,
    /// `[2i], [2i+1]`: weights of coarse nodes `parent` and `parent + 1`.
    pub(super) ends: *const real,
    /// Fine node under coarse node `I`.
    pub(super) child: *const i32,
    /// `[3I..3I+2]`: weights of fine nodes `child-1`, `child`, `child+1`, 0 off the unknowns.
    pub(super) shares: *const real,
    /// Cubic interpolation: first of four coarse nodes.
    pub(super) base: *const i32,
    /// `[4i..4i+3]`: their weights.
    pub(super) cubic: *const wide,
}

/// Level of a grid.
#[device]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Level {
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) z: Axis,
    pub(super) pitch: i32,
    pub(super) plane: i64,
}

impl Level {
    pub(super) fn axes(&self) -> [&Axis; 3] {
        [&self.x, &self.y, &self.z]
    }

    pub(super) fn axes_mut(&mut self) -> [&mut Axis; 3] {
        [&mut self.x, &mut self.y, &mut self.z]
    }

    /// The level with the slabs, planes or rows of a plane grid, that a launch works on.
    pub(super) fn over(mut self, slabs: &Range<isize>) -> Self {
        let axis = if self.z.n > 1 { &mut self.z } else { &mut self.y };
        (axis.begin, axis.end) = (slabs.start as i32, slabs.end as i32);
        self
    }

    /// Values of a field, gaps included.
    pub(super) fn values(&self) -> usize {
        self.plane as usize * self.z.n as usize
    }

    /// Values of a slab, gaps included.
    pub(super) fn slab(&self) -> usize {
        if self.z.n > 1 { self.plane as usize } else { self.pitch as usize }
    }
}

/// Destination of the norms of a pass: a partial result a block, their total here and at the host, and the blocks that have
/// arrived, 0 before and after.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct Norms {
    pub(super) partials: *mut Partial,
    pub(super) totals: *mut Partial,
    pub(super) host: *mut Partial,
    pub(super) arrived: *mut u32,
}
