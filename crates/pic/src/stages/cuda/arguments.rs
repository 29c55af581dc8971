//! The structs that kernels of particles take.

use bytemuck::{Pod, Zeroable};
use zellige_device_macro::device;
use zellige_engine::error::Result;

use crate::grid::{Grid, ParticleSide};
use crate::particles::Species;
use crate::stages;
use crate::stages::part::Part;

/// Box, its tiles and its sides.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct Domain {
    /// Cells that are here, the number of their first row in the whole domain, and the rows of that.
    cells: [i32; 2],
    row: i32,
    height: i32,
    tiles: [i32; 2],
    pitch: i32,
    /// Lower and upper side of x, then of y, as particles meet them: 0 periodic, 1 reflect, 2 absorb, 3 thermal, 4 another part of
    /// the run.
    sides: [i32; 4],
    /// Cells that the window has moved past the tiles, which stand still; a column that it has left is the last one then.
    passed: i32,
    /// Values of an array with guards.
    length: i64,
    /// `u_th` of each side.
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
        let [[a, b], across] = grid.particles.map(|ends| ends.map(side));
        let [c, d] = [0, 1].map(|end| if grid.continues(end) { 4 } else { across[end] });
        let held = grid.held();
        let [[e, f], [g, h]] = species.wall_thermal;
        Self {
            cells: [grid.cells[0] as i32, held.len() as i32],
            row: held.start as i32,
            height: grid.cells[1] as i32,
            tiles: tiles.map(|n| n as i32),
            pitch: grid.pitch() as i32,
            sides: [a, b, c, d],
            passed: passed as i32,
            length: grid.len() as i64,
            thermal: [e, f, g, h],
        }
    }
}

/// Particles that come to a unit: how many, how many pages there are for them, and which (`inbox_room` of each unit).
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct Inbox {
    pub(super) count: *mut u32,
    pub(super) pages: *mut u32,
    pub(super) table: *mut u32,
}

/// Particles of a species.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct Store {
    /// Pages, see `ParticleSlot`; cells are x | y << 8 in the tile.
    pub(super) slots: *mut u8,
    /// Particles of a list.
    pub(super) count: *mut u32,
    /// Its pages, `room` of each.
    pub(super) table: *mut u32,
    /// Particles that came in the last step and are read in this one.
    pub(super) now: Inbox,
    /// Those that leave in this one.
    pub(super) next: Inbox,
    /// Free pages.
    pub(super) ring: *mut u32,
    /// Slabs for particles that go to the parts of the run below and above, with room for so many each.
    pub(super) away: [*mut u8; 2],
    pub(super) away_room: u32,
    /// OUT records of each warp.
    pub(super) outbox: *mut Record,
    /// Records that found no page.
    pub(super) common: *mut Record,
    /// Numbers of those in the inbox.
    pub(super) place: *mut u32,
    /// Place in `members` of the helpers of each unit of a tile, and how many there are.
    pub(super) team: *mut uint2,
    /// Helpers.
    pub(super) members: *mut u32,
    /// Unit of a tile that each of them helps.
    pub(super) owner: *mut u32,
    /// Units to be split.
    pub(super) heavy: *mut u32,
    /// Helpers without a tile among those that had one.
    pub(super) spare: *mut u32,
    pub(super) counters: *mut Counters,
    pub(super) units: u32,
    /// Units of a tile.
    pub(super) parts: u32,
    pub(super) room: u32,
    pub(super) inbox_room: u32,
    pub(super) ring_mask: u32,
    pub(super) common_room: u32,
    /// Helpers there are, numbered behind the units.
    pub(super) helpers: u32,
    /// Particles of a unit at most, and after a split.
    pub(super) limit: u32,
    pub(super) target: u32,
}

/// Counts of a store, kept on the device.
#[device]
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
pub(super) struct Counters {
    /// Ring of free pages: next to take, next place, end of those to be had now.
    head: u32,
    tail: u32,
    limit: u32,
    /// Common records.
    common: u32,
    /// Units taken.
    ticket: u32,
    /// Records that found no room.
    pub(super) lost: u32,
    /// Lists that could not grow.
    tight: u32,
    /// Units to be split.
    heavy: u32,
    /// Helpers that have or had a tile, and those of them without one.
    pub(super) helping: u32,
    pub(super) spare: u32,
    /// End and begin of the part of `members` in use.
    filled: u32,
    begin: u32,
    pub(super) removed: u64,
    injected: u64,
    /// Weight out, energy out and energy in, each as two words of 2^-40.
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

    /// The ledgers of all parts of a run together.
    pub(super) fn of_all(self, part: &Part) -> Result<Self> {
        let mut own = vec![self.removed];
        own.extend(self.out);
        let all = part.joined(own, true)?;
        let mut sum = Self { removed: 0, out: [0; 6], ..self };
        for part in all.as_chunks::<7>().0 {
            sum.removed += part[0];
            for k in [0, 2, 4] {
                let (low, carry) = sum.out[k].overflowing_add(part[1 + k]);
                (sum.out[k], sum.out[k + 1]) = (low, sum.out[k + 1] + part[2 + k] + u64::from(carry));
            }
        }
        Ok(sum)
    }

    /// Weight taken out, and `weight (gamma - 1)` taken out and put in by walls.
    pub(super) fn sums(&self) -> [f64; 3] {
        [0, 2, 4].map(|k| (self.out[k] as f64 + self.out[k + 1] as f64 * 64.0_f64.exp2()) * (-40.0_f64).exp2())
    }
}

/// Bins along an axis of a histogram: edges, and the position of the box's corner and a cell's length.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct Bins {
    from: f64,
    spacing: f64,
    position: [f64; 2],
    column: i32,
    count: i32,
}

impl Bins {
    pub(super) fn new(bins: &stages::Bins) -> Self {
        Self { from: bins.from, spacing: bins.spacing, position: bins.position, column: bins.column as i32, count: bins.count as i32 }
    }

    /// One bin for all particles.
    pub(super) fn all() -> Self {
        Self { from: 0.0, spacing: 1.0, position: [0.0; 2], column: 0, count: 1 }
    }
}

/// Fields that particles feel.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields {
    /// Ex, Ey, Ez, Bx, By, Bz over all nodes with guards.
    pub(super) f: [*const real; 6],
    /// Fields added to them; null where there is none.
    pub(super) external: [*const real; 6],
}

/// Push of a species.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct PushOf<R> {
    /// `q dt / 2m`.
    pub(super) alpha: R,
    /// `dt / h`.
    pub(super) step: [R; 2],
    /// K, 4/K and 2/K.
    pub(super) unit: [R; 3],
    /// Sign of the charge.
    pub(super) sign: i32,
}

/// Walls: their random numbers.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct Walls {
    pub(super) purpose: u32,
    /// The kernel ahead is `swap_pages` of another species in the same step.
    pub(super) overlaps: u32,
    pub(super) seed: u64,
    pub(super) step: u64,
}
