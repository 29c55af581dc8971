//! Data of a tile's cells besides the particles, the scratch memory of a thread, and samples.

use std::collections::BTreeMap;

use super::math::Words;
use super::moments;
use super::rows::Rows;
use zellige_engine::real::Isa;
use zellige_engine::tiles::Layout;

use super::store::{Columns, Row, Tiling, local};
use super::sums::Sums;
use crate::model::Model;
use crate::stages::{ALONG_Z, Ledger, MOMENTS, SURFACE_SUMS};

/// (sigma g)max of the pairs of two species in a cell, against which candidate pairs are accepted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::stages) struct Majorant {
    /// The value in use, m^3/s times [`super::collide::SCALE`].
    pub(in crate::stages) sigma_g_max: f32,
    /// Largest product seen since the last adaptation.
    pub(super) seen: f32,
    /// Attempts since then.
    pub(super) attempts: f32,
}

/// Hit of a wall: momentum and energy given to the surface.
#[derive(Debug, Clone, Copy)]
pub(super) struct Impact {
    /// Sides first, then segments.
    pub(super) surface: u32,
    /// Momentum given to it, kg m/s of one molecule.
    pub(super) momentum: [f64; 3],
    /// Energy given to it, J of one molecule.
    pub(super) energy: f64,
    /// Momentum against the normal of a segment times the position along it.
    pub(super) tilt: f64,
    /// Number weight of the particle, over `weight` of the model.
    pub(super) weight: f64,
}

/// A tile of cells, without its particles.
#[derive(Debug)]
pub(super) struct Tile {
    /// Lowest cell.
    pub(super) corner: [usize; 2],
    /// Cells of it that exist.
    pub(super) cells: [usize; 2],
    /// Tiles around it: what comes from these is taken first.
    pub(super) near: Vec<u32>,
    /// `[slot of the cell][pair]`.
    pub(super) majorants: Vec<Majorant>,
    /// Sums of samples.
    pub(super) sums: Sums,
    /// Hits on surfaces in the pass under way, while samples are taken.
    pub(super) impacts: Vec<Impact>,
    /// Sums of the hits of all samples, by surface.
    pub(super) hits: BTreeMap<u32, [f64; SURFACE_SUMS]>,
    /// Molecules' weight over the free volume of each cell times the step, over [`super::collide::SCALE`]; 0 inside bodies.
    pub(super) rate: Vec<f32>,
    /// True for cells that bodies divide; empty where no cell of the tile is.
    pub(super) divided: Vec<bool>,
    /// [`crate::geometry::Geometry::reach`] of each cell; empty where there are no bodies.
    pub(super) reach: Vec<u8>,
    /// [`Model::relative`] of each cell; empty where all are 1.
    pub(super) weights: Vec<f32>,
    /// True if they differ within the tile.
    pub(super) uneven: bool,
    /// Ledger of this tile: of the steps in which this part of the run owned it.
    pub(super) ledger: Ledger,
    /// Attempts in it at the last look at the balance of parts.
    pub(super) attempts_before: u64,
}

/// Scratch memory of a thread.
#[derive(Debug)]
pub(super) struct Scratch {
    /// Particles in order.
    pub(super) sorted: Row,
    /// Begin of each cell and species in `sorted`, and the end.
    pub(super) start: Vec<u32>,
    /// New index of each slot.
    destinations: Vec<u32>,
    /// Random words of the attempts.
    pub(super) words: Words,
    /// Attempts: number by cell and pair.
    pub(super) attempts: Vec<u32>,
    /// The attempts in rows.
    pub(super) rows: Rows,
    /// A permutation of a cell's particles.
    pub(super) order: Vec<u32>,
}

impl Scratch {
    /// For rows of a layout.
    pub(super) fn new(layout: Layout<2>) -> Self {
        Self {
            sorted: Row::new(layout, 0),
            start: Vec::new(),
            destinations: Vec::new(),
            words: Words::default(),
            attempts: Vec::new(),
            rows: Rows::default(),
            order: Vec::new(),
        }
    }

    /// Copies a tile's particles into `sorted`, by key. Returns their number, without holes.
    pub(super) fn order(&mut self, row: &Row, keys: usize) -> usize {
        row.sort_into(keys, &mut self.sorted, &mut self.start, &mut self.destinations)
    }
}

/// An empty tile.
pub(super) fn empty(model: &Model, tiling: &Tiling, number: usize) -> Tile {
    let (corner, cells) = tiling.bounds(number);
    let slots = tiling.cells_of_row();
    let cell_of = |slot: usize| {
        let local = local(tiling, slot);
        (local[0] < cells[0] && local[1] < cells[1]).then(|| model.grid.index([0, 1].map(|d| corner[d] + local[d])))
    };
    let rate = (0..slots).map(|slot| cell_of(slot).map_or(0.0, |c| super::collide::rate(model, c))).collect();
    let is_divided = |slot: usize| cell_of(slot).is_some_and(|c| model.geometry.smallest_part(c).is_some());
    let divided: Vec<bool> = if model.geometry.is_empty() { Vec::new() } else { (0..slots).map(is_divided).collect() };
    let reach = if model.geometry.is_empty() {
        Vec::new()
    } else {
        (0..slots).map(|slot| cell_of(slot).map_or(0, |c| model.geometry.reach(c))).collect()
    };
    // Slots that no cell has take the weight of the first, so that they make no difference.
    let first = cell_of(0).map_or(1.0, |c| model.relative(c) as f32);
    let weights =
        if model.weighted() { (0..slots).map(|slot| cell_of(slot).map_or(first, |c| model.weights[c])).collect() } else { Vec::new() };
    let majorants = super::collide::majorants(model).into_iter().cycle().take(slots * super::collide::pair_count(model.species.len()));
    Tile {
        corner,
        cells,
        near: tiling.near(number),
        majorants: if model.collisions.scheme == crate::model::Scheme::None { Vec::new() } else { majorants.collect() },
        sums: Sums::new(number, model.per_cell),
        impacts: Vec::new(),
        hits: BTreeMap::new(),
        rate,
        divided: if divided.contains(&true) { divided } else { Vec::new() },
        reach,
        uneven: weights.windows(2).any(|w| w[0] != w[1]),
        weights,
        ledger: Ledger::default(),
        attempts_before: 0,
    }
}

/// Adds the hits of a pass to the tile's sums, in their order.
pub(super) fn add_hits(tile: &mut Tile, weight: f64) {
    for Impact { surface, momentum, energy, tilt, weight: own } in tile.impacts.drain(..) {
        let sums = tile.hits.entry(surface).or_default();
        for (sum, term) in sums.iter_mut().zip([1.0, momentum[0], momentum[1], momentum[2], energy, tilt]) {
            *sum += weight * own * term;
        }
    }
}

/// Adds the particles of each cell to the tile's sums. `factors` are those of [`crate::stages::factors`].
#[inline(always)]
pub(super) fn sample(tile: &mut Tile, scratch: &mut Scratch, keys: usize, model: &Model, factors: &[f64], isa: Isa) {
    let (species, kept, modes) = (&model.species, model.collisions.kept(), model.collisions.internal());
    let (s, start) = (Columns::of(&mut scratch.sorted), &scratch.start[..=keys]);
    let v = [&*s.v[0], &*s.v[1], &*s.v[2]];
    let sums = tile.sums.open(keys * kept);
    moments::add(v, start, sums, kept, isa);
    if model.collisions.along_z {
        moments::add_along_z(v, start, sums, kept);
    }
    if !(s.rotation.is_empty() && s.level.is_empty()) {
        for (k, total) in sums.chunks_exact_mut(kept).enumerate() {
            let range = start[k] as usize..start[k + 1] as usize;
            if range.is_empty() {
                continue;
            }
            let along = [0, 1, 2].map(|d| &v[d][range.clone()]);
            // Index of the flux along z, if it is summed.
            let z = model.collisions.along_z.then_some(FLUX_Z);
            // Internal modes: twice the energy per mass, of an energy in K and of a level.
            if !s.rotation.is_empty() {
                internal(total, &s.rotation[range.clone()], along, z, factors[k % species.len()], modes, f64::from);
            }
            if !s.level.is_empty() {
                let vibration = &species[k % species.len()].vibration;
                for m in 0..vibration.modes().len() {
                    let factor = factors[(1 + m) * species.len() + k % species.len()];
                    internal(total, &s.level[range.clone()], along, z, factor, modes + 1 + m, |word| f64::from(vibration.level(word, m)));
                }
            }
        }
    }
    tile.sums.close();
}

/// Index of `c^2 z` among the sums.
const FLUX_Z: usize = MOMENTS + ALONG_Z - 1;

/// Adds a mode's energy, and what of it flows along x and y, and along z where that has an index.
#[inline(always)]
fn internal<T: Copy>(
    total: &mut [f32],
    mode: &[T],
    v: [&[f32]; 3],
    flux_z: Option<usize>,
    per_mass: f64,
    into: usize,
    wide: impl Fn(T) -> f64,
) {
    let (mut sum, mut x, mut y) = (0.0, 0.0, 0.0);
    for ((e, vx), vy) in mode.iter().zip(v[0]).zip(v[1]) {
        let e = wide(*e);
        sum += e;
        x += e * f64::from(*vx);
        y += e * f64::from(*vy);
    }
    total[into] += sum as f32;
    total[8] += (per_mass * x) as f32;
    total[9] += (per_mass * y) as f32;
    if let Some(at) = flux_z {
        let z: f64 = mode.iter().zip(v[2]).map(|(e, vz)| wide(*e) * f64::from(*vz)).sum();
        total[at] += (per_mass * z) as f32;
    }
}
