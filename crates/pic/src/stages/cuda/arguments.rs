//! The structures that kernels take, as `common.cu`, `walls.cu`, `gather.cu`, `advance.cu` and `charge.cu` declare them.

use bytemuck::{Pod, Zeroable};

use crate::grid::{Grid, ParticleSide};
use crate::particles::Species;
use crate::stages::Bins;

/// `Domain`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Domain {
    cells: [i32; 2],
    tiles: [i32; 2],
    pitch: i32,
    sides: [i32; 4],
    /// Cells that the window has moved past the tiles.
    passed: i32,
    length: i64,
    thermal: [f64; 4],
}

impl Domain {
    pub(super) fn new(grid: &Grid, tiles: [usize; 2], passed: usize, species: &Species) -> Self {
        let side = |s| match s {
            ParticleSide::Periodic => 0,
            ParticleSide::Reflect => 1,
            ParticleSide::Absorb => 2,
            ParticleSide::Thermal => 3,
        };
        let [[a, b], [c, d]] = grid.particles.map(|ends| ends.map(side));
        let [[e, f], [g, h]] = species.wall_thermal;
        Self {
            cells: grid.cells.map(|n| n as i32),
            tiles: tiles.map(|n| n as i32),
            pitch: grid.pitch() as i32,
            sides: [a, b, c, d],
            passed: passed as i32,
            length: grid.len() as i64,
            thermal: [e, f, g, h],
        }
    }
}

/// `Inbox`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct InboxArgument {
    pub(super) count: u64,
    pub(super) pages: u64,
    pub(super) table: u64,
}

/// `Store`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct StoreArgument {
    pub(super) slots: u64,
    pub(super) count: u64,
    pub(super) table: u64,
    pub(super) now: InboxArgument,
    pub(super) next: InboxArgument,
    pub(super) ring: u64,
    pub(super) outbox: u64,
    pub(super) common: u64,
    pub(super) place: u64,
    pub(super) team: u64,
    pub(super) members: u64,
    pub(super) owner: u64,
    pub(super) heavy: u64,
    pub(super) spare: u64,
    pub(super) counters: u64,
    pub(super) units: u32,
    pub(super) parts: u32,
    pub(super) room: u32,
    pub(super) inbox_room: u32,
    pub(super) ring_mask: u32,
    pub(super) common_room: u32,
    pub(super) helpers: u32,
    pub(super) limit: u32,
    pub(super) target: u32,
    pub(super) unused: u32,
}

/// `Counters`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
pub(super) struct Counters {
    head: u32,
    tail: u32,
    limit: u32,
    common: u32,
    ticket: u32,
    pub(super) lost: u32,
    tight: u32,
    heavy: u32,
    /// Helpers that have or had a tile, and those of them without one.
    pub(super) helping: u32,
    pub(super) spare: u32,
    filled: u32,
    begin: u32,
    pub(super) removed: u64,
    injected: u64,
    out: [u64; 6],
}

impl Counters {
    /// Counters with `free` pages free, the first ones of the ring, and nothing under way.
    pub(super) fn emptied(self, free: u32) -> Self {
        Self {
            head: 0,
            tail: free,
            limit: free,
            common: 0,
            ticket: 0,
            tight: 0,
            heavy: 0,
            helping: 0,
            spare: 0,
            filled: 0,
            begin: 0,
            ..self
        }
    }

    /// The ledger in numbers that are exact: the count, and each sum in pieces of 32 bits.
    pub(super) fn ledger(&self) -> [f64; 13] {
        std::array::from_fn(
            |k| if k == 0 { self.removed as f64 } else { f64::from((self.out[(k - 1) / 2] >> (32 * ((k - 1) % 2))) as u32) },
        )
    }

    /// Counters with such a ledger.
    pub(super) fn with_ledger(self, ledger: &[f64; 13]) -> Self {
        let out = std::array::from_fn(|k| ledger[1 + 2 * k] as u64 | (ledger[2 + 2 * k] as u64) << 32);
        Self { removed: ledger[0] as u64, out, ..self }
    }

    /// Weight taken out, and `weight (gamma - 1)` taken out and put in by walls.
    pub(super) fn sums(&self) -> [f64; 3] {
        [0, 2, 4].map(|k| (self.out[k] as f64 + self.out[k + 1] as f64 * 64.0_f64.exp2()) * (-40.0_f64).exp2())
    }
}

/// `Bins`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct BinsArgument {
    from: f64,
    spacing: f64,
    position: [f64; 2],
    column: i32,
    count: i32,
}

impl BinsArgument {
    pub(super) fn new(bins: &Bins) -> Self {
        Self { from: bins.from, spacing: bins.spacing, position: bins.position, column: bins.column as i32, count: bins.count as i32 }
    }

    /// One bin for all particles.
    pub(super) fn all() -> Self {
        Self { from: 0.0, spacing: 1.0, position: [0.0; 2], column: 0, count: 1 }
    }
}

/// `Fields`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct FieldsArgument {
    pub(super) fields: [u64; 6],
    pub(super) external: [u64; 6],
}

/// `Push` in single precision.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Push32 {
    pub(super) alpha: f32,
    pub(super) step: [f32; 2],
    /// K, 4/K and 2/K.
    pub(super) unit: [f32; 3],
    pub(super) sign: i32,
    pub(super) unused: i32,
}

/// `Push` in double precision.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Push64 {
    pub(super) alpha: f64,
    pub(super) step: [f64; 2],
    /// K, 4/K and 2/K.
    pub(super) unit: [f64; 3],
    pub(super) sign: i32,
    pub(super) unused: i32,
}

/// `Walls`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Walls {
    pub(super) purpose: u32,
    /// The kernel ahead is `swap_pages` of another species in the same step.
    pub(super) overlaps: u32,
    pub(super) seed: u64,
    pub(super) step: u64,
}
