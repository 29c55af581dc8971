//! Particles that leave their tile: the engine's outboxes, with what a tile counts for the ledger.

use zellige_engine::error::{Error, Result};
use zellige_engine::real::RealScalar;
use zellige_engine::tiles::{self, Deliveries};

use super::store::{COLUMNS, Tile, Tiling};
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

/// Lists the particles that a move of the window by one cell towards lower x takes out of their tile, and moves the others in
/// place. What was in the first cells of the domain is taken out.
pub(super) fn shift_tile<T: RealScalar>(tiling: &Tiling, tile: &mut Tile<T>, out: &mut Outbox<T>) {
    for (r, row) in tile.rows.iter_mut().enumerate() {
        let mut k = 0;
        while k < row.len() {
            let column = &mut row.keys_mut()[k];
            if *column > 0 {
                *column -= 1;
                k += 1;
                continue;
            }
            let mut p = row.swap_remove(k);
            if tile.corner[0] == 0 {
                out.tally.removed += 1;
                out.tally.weight_out += p.v[5].to_f64();
                out.tally.energy_out += energy(&p);
            } else {
                let place = tiling.locate(tile.corner[0] - 1, tile.corner[1] + r);
                p.key = place.cell;
                out.push(place, p);
            }
        }
    }
    out.seal();
}
