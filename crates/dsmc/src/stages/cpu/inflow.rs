//! Gas injected through open sides: the exact flux of a drifting Maxwellian through each cell's face.

use super::fly::{Destination, Pass, trace};
use super::math::Stream;
use super::store::{Outbox, ParticleState, Row};
use super::tile::{Scratch, Tile};
use crate::geometry::Flight;
use crate::grid::Side;
use crate::model::{Gas, purpose};
use crate::start::loading::internal;
use crate::walls::inflow::Stream as Beam;
use crate::walls::subsonic::{CellSums, Composition, MovingAverage, SubsonicBoundary};

/// A face of a cell on an open side.
#[derive(Debug, Clone)]
pub(super) struct Face {
    /// The side.
    pub(super) side: Side,
    /// The cell.
    pub(super) cell: [usize; 2],
    /// The gas in it of late, for sides that follow it.
    pub(super) moving: MovingAverage,
}

/// Takes the gas of the cells beside sides that follow it into their averages. `scratch` has the particles in order.
pub(super) fn observe(pass: &Pass<'_>, faces: &mut [Face], scratch: &Scratch) {
    let species = &pass.model.species;
    for face in faces {
        let Some((_, memory)) = pass.model.given[face.side.index()] else { continue };
        let key = usize::from(pass.tiling.locate(face.cell[0], face.cell[1]).cell) * species.len();
        let v = [2, 3, 4].map(|c| scratch.sorted.column(c));
        let (mut seen, mut by_species) = (CellSums::default(), Vec::with_capacity(MovingAverage::species_counts(species.len())));
        for (s, kind) in species.iter().enumerate() {
            let range = scratch.start[key + s] as usize..scratch.start[key + s + 1] as usize;
            let (mut sum, mut square) = ([0.0; 3], 0.0);
            let count = range.len() as f64;
            for i in range {
                let v = v.map(|v| f64::from(v[i]));
                for c in 0..3 {
                    sum[c] += v[c];
                    square += v[c] * v[c];
                }
            }
            let heavy = kind.mass / species[0].mass;
            seen.count += count;
            seen.square += heavy * square;
            for (to, v) in seen.velocity.iter_mut().zip(sum) {
                *to += heavy * v;
            }
            if species.len() > 1 {
                by_species.push(count);
            }
        }
        face.moving.take(&seen, &by_species, memory);
    }
}

/// Lets gas in through the faces of a tile.
pub(super) fn inflow(pass: &Pass<'_>, number: usize, tile: &mut Tile, row: &mut Row, faces: &[Face], out: &mut Outbox) {
    let model = pass.model;
    let species_count = model.species.len();
    for face in faces {
        let Some(gas) = &model.inflow[face.side.index()] else { continue };
        let normal = face.side.normal();
        let along = face.cell[1 - face.side.axis] as u64;
        let followed = following(pass, face, gas);
        let weight = model.relative(model.grid.index(face.cell));
        for species in 0..species_count {
            // A face and species have their own numbers, 2^36 of the former.
            let item = ((face.side.index() as u64) << 34 | along) * species_count as u64 + species as u64;
            let mut stream = Stream::with_room(purpose::INFLOW, model.seed, pass.step, item, 20);
            let beam = followed.as_ref().map_or_else(|| beam(pass, gas, species), |beams| beams[species]);
            let mean = beam.flux(normal) * model.grid.h[1 - face.side.axis] * model.dt / (model.weight * weight);
            let count = (mean + stream.open()) as u64;
            for _ in 0..count {
                let mut offset = [0.0; 2];
                offset[face.side.axis] = if face.side.upper { 1.0 } else { 0.0 };
                offset[1 - face.side.axis] = stream.open();
                let velocity = beam.draw(normal, &mut || stream.open());
                let (rotation, level) = internal(&model.species[species], beam.temperature, &mut || stream.open());
                let left = stream.open();
                if !model.geometry.in_gas(face.cell, offset) {
                    continue;
                }
                let flight = Flight { cell: face.cell, offset, path: [0.0; 2], left: None };
                let body = ParticleState { x: 0.0, y: 0.0, v: velocity.map(|v| v as f32), rotation, level, tag: 0 };
                enter(pass, number, tile, row, out, flight, species, &body, weight, left, &mut stream);
            }
        }
    }
}

/// Flies a new particle, which stands for `weight` times the model's, for the rest of its first step and puts it where it arrives.
fn enter(
    pass: &Pass<'_>,
    number: usize,
    tile: &mut Tile,
    row: &mut Row,
    out: &mut Outbox,
    flight: Flight,
    species: usize,
    body: &ParticleState,
    weight: f64,
    left: f64,
    stream: &mut Stream,
) {
    tile.ledger.injected += 1;
    let [x, y, z] = body.v;
    let body = &ParticleState { v: [x, y, if pass.model.planar() { 0.0 } else { z }], ..*body };
    match trace(pass, tile, flight, species, body, weight, left, &mut || stream.open()) {
        None => tile.ledger.removed += 1,
        Some((cell, body)) => {
            let mut to = Destination { pass, number, row, slot: None, out };
            to.put(&mut tile.ledger, cell, species, body, weight, &mut || stream.open());
        }
    }
}

/// Lets gas in from the lines that cross a tile. Every tile goes through all particles of a line and takes those that begin in it.
pub(super) fn sources(pass: &Pass<'_>, number: usize, tile: &mut Tile, row: &mut Row, out: &mut Outbox) {
    let model = pass.model;
    for (s, source) in model.sources.iter().enumerate() {
        let ends = [0.0, 1.0].map(|u| source.position(&model.grid, u).0);
        let crosses = (0..2).all(|d| {
            let (low, high) = (ends[0][d].min(ends[1][d]), ends[0][d].max(ends[1][d]));
            low < tile.corner[d] + tile.cells[d] && high >= tile.corner[d]
        });
        if !crosses {
            continue;
        }
        // Particles of the schedule first, each of a species by its part; then the steady ones, species by species.
        let mut counts = vec![source.count(pass.step)];
        for (k, species) in model.species.iter().enumerate() {
            let mean = source.steady(species.mass, model.fractions[k]) * model.dt / model.weight;
            let mut stream = Stream::with_room(purpose::SOURCE, model.seed, pass.step, 1 << 48 | (s as u64) << 16 | k as u64, 2);
            counts.push((mean + stream.open()) as u64);
        }
        let mut item = 0_u64;
        for (group, count) in counts.into_iter().enumerate() {
            for _ in 0..count {
                let mut stream = Stream::with_room(purpose::SOURCE, model.seed, pass.step, (s as u64) << 36 | item, 12);
                item += 1;
                let (cell, offset) = source.position(&model.grid, stream.open());
                if pass.tiling.locate(cell[0], cell[1]).tile as usize != number {
                    continue;
                }
                if !model.geometry.in_gas(cell, offset) {
                    // On the body at which the line ends, to the last bit of its position: injected and removed.
                    tile.ledger.injected += 1;
                    tile.ledger.removed += 1;
                    continue;
                }
                let species = if group > 0 { group - 1 } else { pick(&model.fractions, stream.open()) };
                let velocity = source.velocity(model.species[species].mass, &mut || stream.open());
                let (rotation, level) = internal(&model.species[species], source.temperature, &mut || stream.open());
                let left = stream.open();
                let flight = Flight { cell, offset, path: [0.0; 2], left: None };
                let body = ParticleState { x: 0.0, y: 0.0, v: velocity.map(|v| v as f32), rotation, level, tag: 0 };
                // A line may cross cells of different weights: its particles stand for the model's.
                enter(pass, number, tile, row, out, flight, species, &body, 1.0, left, &mut stream);
            }
        }
    }
}

/// The species in whose part a uniform number falls.
fn pick(fractions: &[f64], mut u: f64) -> usize {
    let found = fractions.iter().position(|f| {
        u -= f;
        u < 0.0
    });
    found.unwrap_or(fractions.len() - 1)
}

/// The species of the gas beyond a face of a side that follows the gas within; nothing on other sides and before enough has been
/// seen.
fn following(pass: &Pass<'_>, face: &Face, gas: &Gas) -> Option<Vec<Beam>> {
    let model = pass.model;
    let (given, _) = model.given[face.side.index()]?;
    let number = model.grid.index(face.cell);
    let volume = model.cell_volume(number);
    let masses: Vec<f64> = model.species.iter().map(|s| s.mass).collect();
    let cell = face.moving.gas(&masses, model.components, model.weight_of(number) / volume)?;
    let by_species = &face.moving.by_species;
    let seen: Vec<f64> = if by_species.is_empty() { vec![1.0] } else { by_species.iter().map(|n| n / face.moving.count).collect() };
    let freedom = model.components as f64 + model.species.iter().zip(&seen).map(|(s, f)| f * f64::from(s.rotation)).sum::<f64>();
    let [within, fresh] = [&seen, &gas.fractions].map(|fractions| Composition { masses: &masses, fractions });
    let beyond = given.beyond(&cell, face.side.normal(), (freedom + 2.0) / freedom, [within, fresh]);
    // Gas beyond an outlet is that which flows out of it.
    let made = if matches!(given, SubsonicBoundary::Outlet { .. }) { within } else { fresh };
    Some((0..masses.len()).map(|s| made.species(&beyond, s)).collect())
}

/// A species of a gas in front of a side.
fn beam(pass: &Pass<'_>, gas: &Gas, species: usize) -> Beam {
    let density = gas.density * gas.fractions[species];
    Beam { density, temperature: gas.temperature, velocity: gas.velocity, mass: pass.model.species[species].mass }
}
