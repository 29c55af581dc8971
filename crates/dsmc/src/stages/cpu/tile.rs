//! A tile, and the first stage of its step: particles that arrived are put in, and all are ordered by cell and species.

use super::math::Words;
use super::moments::moments;
use super::rows::Rows;
use super::store::{Columns, HOLE, Kept, Leaver, Mosaic};
use super::sums::Sums;
use crate::gas::Species;
use crate::model::Model;
use crate::stages::Ledger;

/// The largest cross-section times speed that pairs of two species are tried against in a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::stages) struct Majorant {
    /// The value in use, m^3/s times [`super::collide::SCALE`].
    pub(in crate::stages) most: f32,
    /// The largest one seen since it was last looked at.
    pub(super) seen: f32,
    /// Tries since then.
    pub(super) tries: f32,
}

/// A meeting with a wall: what the surface got.
#[derive(Debug, Clone, Copy)]
pub(super) struct Impact {
    /// Sides first, then segments.
    pub(super) surface: u32,
    /// Momentum given to it, kg m/s of one molecule.
    pub(super) momentum: [f64; 3],
    /// Energy given to it, J of one molecule.
    pub(super) energy: f64,
}

/// A tile of cells with its particles.
#[derive(Debug)]
pub(super) struct Tile {
    /// Lowest cell.
    pub(super) corner: [usize; 2],
    /// Cells of it that exist.
    pub(super) cells: [usize; 2],
    /// Tiles that particles come from.
    pub(super) near: Vec<u32>,
    /// The particles, in no order, with holes.
    pub(super) columns: Columns,
    /// Slots in use, holes included.
    pub(super) len: usize,
    /// `[slot of the cell][pair]`.
    pub(super) majorants: Vec<Majorant>,
    /// What samples add up to.
    pub(super) sums: Sums,
    /// Meetings with surfaces while samples are taken.
    pub(super) impacts: Vec<Impact>,
    /// Molecules' weight over the free volume of each cell times the step, over [`super::collide::SCALE`]; 0 inside bodies.
    pub(super) rate: Vec<f32>,
    /// Whether bodies part a cell; empty where no cell of the tile is.
    pub(super) parted: Vec<bool>,
    /// [`crate::geometry::Geometry::reach`] of each cell; empty where there are no bodies.
    pub(super) reach: Vec<u8>,
    /// What went in and out here.
    pub(super) ledger: Ledger,
}

/// What a thread works in.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Particles in order.
    pub(super) sorted: Columns,
    /// Begin of each cell and species in `sorted`, and the end.
    pub(super) start: Vec<u32>,
    /// New place of each slot.
    place: Vec<u32>,
    /// Random words of the tries.
    pub(super) words: Words,
    /// Tries: number by cell and pair.
    pub(super) tries: Vec<u32>,
    /// The tries in rows.
    pub(super) rows: Rows,
    /// A permutation of a cell's particles.
    pub(super) order: Vec<u32>,
}

impl Tile {
    /// Takes particles that left other tiles for this one: those near in a fixed order, then those from afar.
    pub(super) fn arrive(&mut self, number: usize, boxes: &[Vec<Leaver>], far: &[Leaver], flags: Kept) {
        for t in 0..self.near.len() {
            for leaver in &boxes[self.near[t] as usize] {
                if leaver.tile as usize == number {
                    self.take(leaver, flags);
                }
            }
        }
        for leaver in far {
            self.take(leaver, flags);
        }
    }

    /// Puts one behind the others.
    #[inline(always)]
    fn take(&mut self, leaver: &Leaver, flags: Kept) {
        self.columns.reserve(self.len + 1, flags);
        self.columns.put(self.len, leaver.key, &leaver.body);
        self.len += 1;
    }

    /// Orders the particles by key into `scratch`, equal ones as they stood. Returns their number, without holes.
    #[inline(always)]
    pub(super) fn index(&self, keys: usize, scratch: &mut Scratch, flags: Kept) -> usize {
        let n = self.len;
        let key = &self.columns.key[..n];
        let start = &mut scratch.start;
        start.clear();
        // Holes count as the last key.
        start.resize(keys + 2, 0);
        for k in key {
            start[usize::from(*k).min(keys) + 1] += 1;
        }
        for k in 0..=keys {
            start[k + 1] += start[k];
        }
        let valid = start[keys] as usize;
        if scratch.place.len() < n {
            scratch.place.resize(n + n / 8, 0);
        }
        let place = &mut scratch.place[..n];
        let start = &mut start[..];
        for (p, k) in place.iter_mut().zip(key) {
            let next = &mut start[usize::from(*k).min(keys)];
            *p = *next;
            *next += 1;
        }
        // Each entry has become the next one's begin.
        for k in (0..keys).rev() {
            start[k + 1] = start[k];
        }
        start[0] = 0;
        start[keys] = valid as u32;
        scratch.sorted.reserve(n, flags);
        let to = &mut scratch.sorted;
        // All of these in one loop: their slices are of one length, so that one check of the place does for all.
        let (x, y) = (&self.columns.x[..n], &self.columns.y[..n]);
        let (vx, vy, vz) = (&self.columns.v[0][..n], &self.columns.v[1][..n], &self.columns.v[2][..n]);
        let [to_vx, to_vy, to_vz] = &mut to.v;
        let (to_vx, to_vy, to_vz) = (&mut to_vx[..n], &mut to_vy[..n], &mut to_vz[..n]);
        let (to_x, to_y, to_key) = (&mut to.x[..n], &mut to.y[..n], &mut to.key[..n]);
        for i in 0..n {
            let p = place[i] as usize;
            assert!(p < n, "places are a permutation");
            (to_key[p], to_x[p], to_y[p]) = (key[i], x[i], y[i]);
            (to_vx[p], to_vy[p], to_vz[p]) = (vx[i], vy[i], vz[i]);
        }
        if flags.rotation {
            scatter(place, &self.columns.rotation, &mut to.rotation);
        }
        if flags.level {
            scatter(place, &self.columns.level, &mut to.level);
        }
        if flags.tag {
            scatter(place, &self.columns.tag, &mut to.tag);
        }
        valid
    }
}

/// `to[place[i]] = from[i]`.
#[inline(always)]
fn scatter<T: Copy>(place: &[u32], from: &[T], to: &mut [T]) {
    let from = &from[..place.len()];
    for (p, value) in place.iter().zip(from) {
        // Places are a permutation of the slots, which `to` has; the check is one predicted branch.
        to[*p as usize] = *value;
    }
}

/// An empty tile.
pub(super) fn empty(model: &Model, mosaic: &Mosaic, number: usize) -> Tile {
    let (corner, cells) = mosaic.bounds(number);
    let slots = mosaic.slots();
    let cell_of = |slot: usize| {
        let local = [slot & ((1 << mosaic.shift[0]) - 1), slot >> mosaic.shift[0]];
        (local[0] < cells[0] && local[1] < cells[1]).then(|| model.grid.index([0, 1].map(|d| corner[d] + local[d])))
    };
    let rate = (0..slots).map(|slot| cell_of(slot).map_or(0.0, |c| super::collide::rate(model, c))).collect();
    let is_parted = |slot: usize| cell_of(slot).is_some_and(|c| model.geometry.smallest_part(c).is_some());
    let parted: Vec<bool> = if model.geometry.is_empty() { Vec::new() } else { (0..slots).map(is_parted).collect() };
    let reach = if model.geometry.is_empty() {
        Vec::new()
    } else {
        (0..slots).map(|slot| cell_of(slot).map_or(0, |c| model.geometry.reach(c))).collect()
    };
    let majorants = super::collide::majorants(model).into_iter().cycle().take(slots * super::collide::pair_count(model.species.len()));
    Tile {
        corner,
        cells,
        near: mosaic.near(number),
        columns: Columns::default(),
        len: 0,
        majorants: if model.collisions.scheme == crate::model::Scheme::None { Vec::new() } else { majorants.collect() },
        sums: Sums::new(number, model.per_cell),
        impacts: Vec::new(),
        rate,
        parted: if parted.contains(&true) { parted } else { Vec::new() },
        reach,
        ledger: Ledger::default(),
    }
}

/// Adds the particles of each cell to the tile's sums. `factors` are those of [`crate::stages::factors`].
#[inline(always)]
pub(super) fn sample(tile: &mut Tile, scratch: &Scratch, keys: usize, species: &[Species], factors: &[f64], kept: usize, wide: bool) {
    let s = &scratch.sorted;
    for (k, total) in tile.sums.open(keys * kept).chunks_exact_mut(kept).enumerate() {
        let range = scratch.start[k] as usize..scratch.start[k + 1] as usize;
        if range.is_empty() {
            continue;
        }
        total[0] += range.len() as f32;
        if let Some(total) = total[1..].first_chunk_mut() {
            moments(&s.v, range.clone(), total, wide);
        }
        let (vx, vy) = (&s.v[0][range.clone()], &s.v[1][range.clone()]);
        // Internal modes: twice the energy per mass, of an energy in K and of a level.
        if !s.rotation.is_empty() {
            internal(total, &s.rotation[range.clone()], vx, vy, factors[k % species.len()], 10, f64::from);
        }
        if !s.level.is_empty() {
            let vibration = &species[k % species.len()].vibration;
            for m in 0..vibration.modes().len() {
                let factor = factors[(1 + m) * species.len() + k % species.len()];
                internal(total, &s.level[range.clone()], vx, vy, factor, 11 + m, |word| f64::from(vibration.level(word, m)));
            }
        }
    }
    tile.sums.close();
}

/// Adds a mode's energy, and what of it flows along x and y.
#[inline(always)]
fn internal<T: Copy>(total: &mut [f32], mode: &[T], vx: &[f32], vy: &[f32], per_mass: f64, into: usize, wide: impl Fn(T) -> f64) {
    let (mut sum, mut x, mut y) = (0.0, 0.0, 0.0);
    for ((e, vx), vy) in mode.iter().zip(vx).zip(vy) {
        let e = wide(*e);
        sum += e;
        x += e * f64::from(*vx);
        y += e * f64::from(*vy);
    }
    total[into] += sum as f32;
    total[8] += (per_mass * x) as f32;
    total[9] += (per_mass * y) as f32;
}

/// Whether a slot is free.
#[inline(always)]
pub(super) fn is_hole(key: u16) -> bool {
    key == HOLE
}
