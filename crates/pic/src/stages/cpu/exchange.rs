//! Particles that leave their tile: the engine's outboxes, with what a tile counts for the ledger.

use zellige_engine::error::{Error, Result};
use zellige_engine::real::RealScalar;
use zellige_engine::tiles::{self, Deliveries};

use super::store::{COLUMNS, Tile};
use super::walls::energy;

/// Particles that leave one tile, and its tally.
pub(super) type Outbox<T> = tiles::Outbox<T, Tally, COLUMNS>;

/// Tally of one tile in one pass; sums are without the species' factors.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Tally {
    /// Particles taken out.
    pub(super) removed: u64,
    /// Sum of the weights of those taken out.
    pub(super) weight_out: f64,
    /// Sum of `weight (gamma - 1)` that walls put in.
    pub(super) energy_in: f64,
    /// Sum of `weight (gamma - 1)` that walls took.
    pub(super) energy_out: f64,
    /// Sum of `weight (gamma - 1)` after half the kick.
    pub(super) kinetic: f64,
    /// Sum of `weight u` before the push.
    pub(super) momentum: [f64; 3],
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.removed += other.removed;
        self.weight_out += other.weight_out;
        self.energy_in += other.energy_in;
        self.energy_out += other.energy_out;
        self.kinetic += other.kinetic;
        for (a, b) in self.momentum.iter_mut().zip(other.momentum) {
            *a += b;
        }
    }
}

/// Hands over everything in sealed outboxes, one per tile, and proves by two counts that all of it arrived.
pub(super) fn deliver<T: RealScalar>(species: &str, post: &mut Deliveries, tiles: &mut [Tile<T>], outboxes: &[Outbox<T>]) -> Result<()> {
    let moved = post.deliver(tiles, outboxes);
    if moved.sent == moved.received {
        return Ok(());
    }
    let message = format!("{} particles left their tiles, {} arrived", moved.sent, moved.received);
    Err(Error::Numerics { what: format!("species `{species}`"), place: "exchange".into(), message })
}

/// Takes out what a move of the window by one cell towards higher x leaves behind, the first column of cells of a tile in the first
/// column of tiles; the others' columns are counted from the next one. Returns the tally.
pub(super) fn leave_behind<T: RealScalar>(tile: &mut Tile<T>) -> Tally {
    let mut tally = Tally::default();
    for row in &mut tile.rows {
        let mut k = 0;
        while k < row.len() {
            let column = &mut row.keys_mut()[k];
            if *column > 0 {
                *column -= 1;
                k += 1;
                continue;
            }
            let p = row.swap_remove(k);
            tally.removed += 1;
            tally.weight_out += p.v[5].to_f64();
            tally.energy_out += energy(&p);
        }
    }
    tally
}
