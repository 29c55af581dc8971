//! Particles that leave their tile: the engine's outboxes, with what a tile counts for the ledger; and what parts of a run send
//! each other when their tiles have been advanced.

use zellige_engine::error::{Error, Result};
use zellige_engine::real::RealScalar;
use zellige_engine::tiles::{self, Deliveries, hand_over, take_over};

use super::store::{COLUMNS, Store, Tile, Tiling};
use super::walls::energy;
use super::window::Window;
use crate::stages::part::Part;

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

/// Currents on nodes that other parts add up, and particles that leave for their tiles, in one message to each; what comes in goes
/// to the windows and outboxes of the tiles that it is from. `from` names tiles of others whose outboxes are in use.
pub(super) fn swap_with_peers<T: RealScalar>(
    part: &Part,
    tiling: &Tiling,
    windows: &mut [Window<T>],
    outboxes: &mut [Outbox<T>],
    from: &mut Vec<usize>,
) -> Result<()> {
    if part.is_alone() {
        return Ok(());
    }
    let own = part.links().rank();
    let mut messages = vec![Vec::new(); part.peers().len()];
    for (peer, message) in part.peers().iter().zip(&mut messages) {
        for (tile, rows) in part.strips(tiling, own, *peer) {
            let (window, width) = (&windows[tile], tiling.bounds(tile).1[0]);
            for nodes in rows.filter_map(|row| window.nodes(width, row)) {
                window.j.iter().for_each(|j| message.extend_from_slice(bytemuck::cast_slice(&j[nodes.clone()])));
            }
        }
    }
    for tile in part.tiles() {
        outboxes[tile].send_away(tile as u32, |to| part.peer_with(to), &mut messages);
    }
    let received = part.links().exchange(part.peers().iter().copied().zip(messages), part.peers())?;
    from.drain(..).for_each(|tile| outboxes[tile].clear());
    for (peer, message) in part.peers().iter().zip(&received) {
        let mut rest = &message[..];
        for (tile, rows) in part.strips(tiling, *peer, own) {
            let (window, width) = (&mut windows[tile], tiling.bounds(tile).1[0]);
            for row in rows {
                let Some(nodes) = window.nodes(width, row) else { continue };
                for j in &mut window.j {
                    let to: &mut [u8] = bytemuck::cast_slice_mut(&mut j[nodes.clone()]);
                    let (values, behind) = rest.split_at(to.len());
                    to.copy_from_slice(values);
                    rest = behind;
                }
            }
        }
        Outbox::receive(outboxes, rest, from);
    }
    from.sort_unstable();
    from.dedup();
    for tile in from {
        outboxes[*tile].seal();
    }
    Ok(())
}

/// Moves the domain of a store on by a cell: `tiling` is what it has then. Where a window has gone past a tile of a row of which a
/// part has only some, the particles of its first tile are then in the last one of the part before it.
pub(super) fn move_on<T: RealScalar>(part: &Part, tiling: &Tiling, store: &mut Store<T>) -> Result<()> {
    let (own, rank) = (part.tiles(), part.links().rank());
    let cut_at = |tile: usize| !part.is_alone() && tiling.behind == 0 && !tile.is_multiple_of(tiling.tiles[0]);
    let given = cut_at(own.start).then(|| {
        let mut message = Vec::new();
        hand_over(&mut store.tiles[own.start].rows, &mut message);
        (rank - 1, message)
    });
    let from: Vec<usize> = cut_at(own.end).then_some(rank + 1).into_iter().collect();
    let taken = part.links().exchange(given, &from)?;
    store.move_on(own.clone());
    for message in taken {
        take_over(&mut store.tiles[own.end - 1].rows, &mut &message[..]);
    }
    Ok(())
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
