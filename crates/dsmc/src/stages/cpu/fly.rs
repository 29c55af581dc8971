//! The move: every particle flies for a step. Those that stay in the tile and can hit nothing are moved in registers; the others,
//! a few in a hundred, fly from hit to hit.

use super::math::Stream;
use super::store::{Columns, HOLE, Outbox, ParticleState, Row, Tiling, local, shift_of};
use super::tile::{Impact, Scratch, Tile};
use crate::geometry::{BELOW_ONE, Flight, FlightEnd, Segment};
use crate::grid::Side;
use crate::model::{Edge, Model, purpose};
use crate::stages::Ledger;
use crate::walls::{Molecule, Motion, Wall};

/// Hits of one particle in a step after which it is left where it is, and counted.
const MAX_HITS: u32 = 1000;
/// Cells that a fast flight may cross: beyond, it is certain to leave the tile.
const FAR: f32 = 30_000.0;

/// Data of the move of a tile.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pass<'a> {
    pub(super) model: &'a Model,
    pub(super) tiling: &'a Tiling,
    pub(super) step: u64,
    pub(super) sample: bool,
}

/// Moves the `n` particles of `scratch` into the tile's row; those for other tiles go to `out`.
#[inline(always)]
pub(super) fn fly(pass: &Pass<'_>, number: usize, tile: &mut Tile, row: &mut Row, scratch: &mut Scratch, n: usize, out: &mut Outbox) {
    row.set_len(n);
    let from = Columns::of(&mut scratch.sorted);
    let mut to = Columns::of(row);
    match (tile.reach.is_empty(), tile.uneven) {
        (true, false) => straight::<false, false>(pass, tile, &mut to, &from, n),
        (false, false) => straight::<true, false>(pass, tile, &mut to, &from, n),
        (true, true) => straight::<false, true>(pass, tile, &mut to, &from, n),
        (false, true) => straight::<true, true>(pass, tile, &mut to, &from, n),
    }
    for c in 0..3 {
        to.v[c][..n].copy_from_slice(&from.v[c][..n]);
    }
    if !from.rotation.is_empty() {
        to.rotation[..n].copy_from_slice(&from.rotation[..n]);
    }
    if !from.level.is_empty() {
        to.level[..n].copy_from_slice(&from.level[..n]);
    }
    if !from.tag.is_empty() {
        to.tag[..n].copy_from_slice(&from.tag[..n]);
    }
    // A block without a hole is passed over at once.
    for block in (0..n).step_by(16) {
        let end = (block + 16).min(n);
        if row.keys()[block..end].iter().fold(0, |most, k| most.max(*k)) == HOLE {
            for i in block..end {
                if row.keys()[i] == HOLE {
                    let stream = Stream::new(purpose::WALL, pass.model.seed, pass.step, (number as u64) << 28 | i as u64);
                    wander(pass, number, tile, row, &from, i, stream, out);
                }
            }
        }
    }
}

/// The fast path. Writes new offsets and keys; the key of a particle that needs the slow one becomes a hole.
// A clamp would let through what is not a number; `&` instead of `&&` leaves one loop without branches.
#[allow(clippy::manual_clamp, clippy::needless_bitwise_bool)]
#[inline(always)]
fn straight<const BODIES: bool, const WEIGHTS: bool>(pass: &Pass<'_>, tile: &Tile, to: &mut Columns<'_>, from: &Columns<'_>, n: usize) {
    let species = pass.model.species.len() as i32;
    let inverse = 1.0 / species as f32;
    let scale = scale_of(pass);
    let shift = shift_of(pass.tiling);
    let mask = (1_i32 << shift) - 1;
    let size = tile.cells.map(|c| c as u32);
    let (x, y, vx, vy, key) = (&from.x[..n], &from.y[..n], &from.v[0][..n], &from.v[1][..n], &from.key[..n]);
    let (to_x, to_y, to_key) = (&mut to.x[..n], &mut to.y[..n], &mut to.key[..n]);
    for i in 0..n {
        let k = i32::from(key[i]);
        // Exact: keys are below 2^16.
        let cell = if species == 1 { k } else { ((k as f32 + 0.5) * inverse) as i32 };
        let (px, py) = (vx[i] * scale[0] + x[i], vy[i] * scale[1] + y[i]);
        let fx = px.floor().max(-FAR).min(FAR);
        let fy = py.floor().max(-FAR).min(FAR);
        // SAFETY: between -30000 and 30000; `max` and `min` have replaced what is not a number.
        let (dx, dy) = unsafe { (fx.to_int_unchecked::<i32>(), fy.to_int_unchecked::<i32>()) };
        let (cx, cy) = ((cell & mask) + dx, (cell >> shift) + dy);
        let mut stays = ((cx as u32) < size[0]) & ((cy as u32) < size[1]);
        if BODIES {
            stays &= dx.abs().max(dy.abs()) < i32::from(tile.reach[cell as usize]);
        }
        if WEIGHTS && stays {
            // Particles to be doubled or removed are no matter of a loop.
            stays = tile.weights[cell as usize] == tile.weights[(cx + (cy << shift)) as usize];
        }
        to_x[i] = (px - fx).min(BELOW_ONE);
        to_y[i] = (py - fy).min(BELOW_ONE);
        to_key[i] = if stays { (k + (dx + (dy << shift)) * species) as u16 } else { HOLE };
    }
}

/// Cells per velocity along each axis.
#[inline(always)]
fn scale_of(pass: &Pass<'_>) -> [f32; 2] {
    let (model, dt) = (pass.model, pass.model.dt);
    [(dt * model.cells_per_metre(0)) as f32, (dt * model.cells_per_metre(1)) as f32]
}

/// The slow path of particle `i` of `from`.
#[inline(never)]
fn wander(
    pass: &Pass<'_>,
    number: usize,
    tile: &mut Tile,
    row: &mut Row,
    from: &Columns<'_>,
    i: usize,
    mut stream: Stream,
    out: &mut Outbox,
) {
    let count = pass.model.species.len();
    let species = usize::from(from.key[i]) % count;
    let slot = usize::from(from.key[i]) / count;
    let [column, line] = local(pass.tiling, slot);
    let cell = [tile.corner[0] + column, tile.corner[1] + line];
    let body = from.get(i);
    let weight = tile.weights.get(slot).map_or(1.0, |w| f64::from(*w));
    // Most have but left the tile and can hit nothing: they are where the fast path has put them.
    let scale = scale_of(pass);
    let (px, py) = (body.v[0] * scale[0] + body.x, body.v[1] * scale[1] + body.y);
    let (fx, fy) = (px.floor(), py.floor());
    let far = fx.abs().max(fy.abs());
    let reach = tile.reach.get(slot).map_or(FAR, |r| f32::from(*r));
    let goal = [cell[0] as f32 + fx, cell[1] as f32 + fy];
    if far < reach
        && goal[0] >= 0.0
        && goal[1] >= 0.0
        && (goal[0] as usize) < pass.tiling.cells[0]
        && (goal[1] as usize) < pass.tiling.cells[1]
    {
        let body = ParticleState { x: (px - fx).min(BELOW_ONE), y: (py - fy).min(BELOW_ONE), ..body };
        let goal = [goal[0] as usize, goal[1] as usize];
        let mut to = Destination { pass, number, row, slot: Some(i), out };
        to.put(&mut tile.ledger, goal, species, body, weight, &mut || stream.open());
        return;
    }
    let flight = Flight { cell, offset: [f64::from(body.x), f64::from(body.y)], path: [0.0; 2], left: None };
    let mut uniform = || stream.open();
    match trace(pass, tile, flight, species, &body, weight, 1.0, &mut uniform) {
        None => tile.ledger.removed += 1,
        Some((cell, body)) => {
            let mut to = Destination { pass, number, row, slot: Some(i), out };
            to.put(&mut tile.ledger, cell, species, body, weight, &mut uniform);
        }
    }
}

/// Destination of a particle that leaves its tile or enters.
pub(super) struct Destination<'a> {
    pub(super) pass: &'a Pass<'a>,
    /// The tile, and its row.
    pub(super) number: usize,
    pub(super) row: &'a mut Row,
    /// The slot that a particle had in it, which is free.
    pub(super) slot: Option<usize>,
    pub(super) out: &'a mut Outbox,
}

impl Destination<'_> {
    /// Puts a particle that stands for `weight` (over the model's) into the cell where it has arrived: as often as keeps what it
    /// stands for, rounded at random.
    pub(super) fn put(
        &mut self,
        ledger: &mut Ledger,
        cell: [usize; 2],
        species: usize,
        mut body: ParticleState,
        weight: f64,
        uniform: &mut dyn FnMut() -> f64,
    ) {
        let Self { pass, number, row, slot, out } = self;
        let mut copies = 1;
        let here = pass.model.relative(pass.model.grid.index(cell));
        if here != weight {
            copies = (weight / here + uniform()) as u64;
            ledger.dropped += u64::from(copies == 0);
            ledger.copied += copies.saturating_sub(1);
            if copies > 1 && body.tag == 0 {
                // Copies are not each other's partners: a nearest one would be the nearest of all.
                body.tag = (uniform() * f64::from(u32::MAX)) as u32 | 1;
            }
        }
        let home = pass.tiling.locate(cell[0], cell[1]);
        let p = body.with_key(row.layout().key(home.cell, species));
        for _ in 0..copies {
            if home.tile as usize != *number {
                out.push(home, p);
            } else if let Some(i) = slot.take() {
                row.set(i, &p);
            } else {
                row.push(&p);
            }
        }
    }
}

/// Flies for the part `left` of a step, from hit to hit; surfaces feel `weight` times the model's. Returns where it
/// arrived, or nothing if it left the domain.
pub(super) fn trace(
    pass: &Pass<'_>,
    tile: &mut Tile,
    mut flight: Flight,
    species: usize,
    body: &ParticleState,
    weight: f64,
    mut left: f64,
    uniform: &mut dyn FnMut() -> f64,
) -> Option<([usize; 2], ParticleState)> {
    let model = pass.model;
    let [vx, vy, vz] = body.v;
    let mut motion = Motion { velocity: [vx.into(), vy.into(), vz.into()], rotation: f64::from(body.rotation), level: body.level };
    let along = |motion: &Motion, left: f64, d: usize| motion.velocity[d] * (left * model.dt) * model.cells_per_metre(d);
    let path = |motion: &Motion, left: f64| [along(motion, left, 0), along(motion, left, 1)];
    flight.path = path(&motion, left);
    let mut hits = 0;
    loop {
        let (surface, normal, wall) = match model.geometry.advance(&mut flight) {
            FlightEnd::Nothing => break,
            FlightEnd::Edge { side, done } => {
                left *= 1.0 - done;
                match model.edges[side.index()] {
                    Edge::Open => return None,
                    Edge::Periodic => {
                        flight.cell[side.axis] = if side.upper { 0 } else { model.grid.cells[side.axis] - 1 };
                        flight.offset[side.axis] = if side.upper { 0.0 } else { 1.0 };
                        hits += 1;
                        if hits > MAX_HITS {
                            tile.ledger.stuck += 1;
                            break;
                        }
                        continue;
                    }
                    Edge::Wall(wall) => (side.index() as u32, side.normal(), wall),
                    Edge::Walls(first) => (side.index() as u32, side.normal(), first + flight.cell[1 - side.axis] as u32),
                }
            }
            FlightEnd::Segment { segment, normal, done } => {
                left *= 1.0 - done;
                (Side::ALL.len() as u32 + segment, normal, model.geometry.segments()[segment as usize].wall)
            }
        };
        let molecule = model.species[species].molecule();
        let before = motion;
        let wall = &model.walls[wall as usize];
        motion = wall.reflect(&molecule, normal, &before, uniform);
        if model.planar() {
            // Every kernel of a wall makes the part along z by itself: without it the others stay as they are.
            motion.velocity[2] = 0.0;
        }
        if pass.sample {
            let impact = impact(surface, wall, normal, &molecule, &before, &motion);
            let tilt = match (surface as usize).checked_sub(Side::ALL.len()) {
                Some(segment) => tilt(model, &model.geometry.segments()[segment], &flight, impact.momentum),
                None => 0.0,
            };
            tile.impacts.push(Impact { tilt, weight, ..impact });
        }
        hits += 1;
        if hits > MAX_HITS {
            tile.ledger.stuck += 1;
            break;
        }
        flight.path = path(&motion, left);
    }
    let [x, y] = model.geometry.stored_offset(&flight);
    let [vx, vy, vz] = motion.velocity;
    let v = [vx as f32, vy as f32, vz as f32];
    Some((flight.cell, ParticleState { x, y, v, rotation: motion.rotation as f32, level: motion.level, tag: body.tag }))
}

/// Hit on a surface. Energy is heat, seen from the wall: the work of the shear on a wall that moves is not in it.
fn impact(surface: u32, wall: &Wall, normal: [f64; 2], molecule: &Molecule, before: &Motion, after: &Motion) -> Impact {
    let momentum = [0, 1, 2].map(|c| molecule.mass * (before.velocity[c] - after.velocity[c]));
    let across = wall.velocity[0] * normal[0] + wall.velocity[1] * normal[1];
    let slide = [wall.velocity[0] - across * normal[0], wall.velocity[1] - across * normal[1], wall.velocity[2]];
    let work = momentum[0] * slide[0] + momentum[1] * slide[1] + momentum[2] * slide[2];
    Impact { surface, momentum, energy: before.energy(molecule) - after.energy(molecule) - work, tilt: 0.0, weight: 1.0 }
}

/// Momentum against a segment's normal times the position along it of the flight that hit it.
fn tilt(model: &Model, segment: &Segment, flight: &Flight, momentum: [f64; 3]) -> f64 {
    let (grid, middle, per_metre) = (&model.grid, segment.middle(), segment.per_metre());
    let along = |d: usize| (grid.origin[d] + (flight.cell[d] as f64 + flight.offset[d]) * grid.h[d] - middle[d]) * per_metre[d];
    -(along(0) + along(1)) * (momentum[0] * segment.normal[0] + momentum[1] * segment.normal[1])
}
