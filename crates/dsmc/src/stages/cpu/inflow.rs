//! Gas that comes in through open sides: the exact flux of a drifting Maxwellian through each cell's face.

use super::fly::{Pass, trace};
use super::math::Stream;
use super::store::{Body, Leaver};
use super::tile::Tile;
use crate::geometry::Flight;
use crate::grid::Side;
use crate::loading::internal;
use crate::model::{Gas, purpose};
use crate::walls::inflow::Stream as Beam;

/// A face of a cell on an open side.
#[derive(Debug, Clone, Copy)]
pub(super) struct Face {
    /// The side.
    pub(super) side: Side,
    /// The cell.
    pub(super) cell: [usize; 2],
}

/// Lets gas in through the faces of a tile.
pub(super) fn inflow(pass: &Pass<'_>, number: usize, tile: &mut Tile, faces: &[Face], out: &mut Vec<Leaver>) {
    let model = pass.model;
    let species_count = model.species.len();
    for face in faces {
        let Some(gas) = &model.inflow[face.side.index()] else { continue };
        let normal = face.side.normal();
        let along = face.cell[1 - face.side.axis] as u64;
        for species in 0..species_count {
            // A face and species have their own numbers, 2^36 of the former.
            let item = ((face.side.index() as u64) << 34 | along) * species_count as u64 + species as u64;
            let mut stream = Stream::with_room(purpose::INFLOW, model.seed, pass.step, item, 20);
            let beam = beam(pass, gas, species);
            let mean = beam.flux(normal) * model.grid.h[1 - face.side.axis] * model.dt / model.weight;
            let count = (mean + stream.open()) as u64;
            for _ in 0..count {
                let mut offset = [0.0; 2];
                offset[face.side.axis] = if face.side.upper { 1.0 } else { 0.0 };
                offset[1 - face.side.axis] = stream.open();
                let velocity = beam.draw(normal, &mut || stream.open());
                let (rotation, level) = internal(&model.species[species], gas.temperature, &mut || stream.open());
                let left = stream.open();
                if !model.geometry.in_gas(face.cell, offset) {
                    continue;
                }
                let flight = Flight { cell: face.cell, offset, path: [0.0; 2], left: None };
                let body = Body { x: 0.0, y: 0.0, v: velocity.map(|v| v as f32), rotation, level };
                tile.ledger.injected += 1;
                match trace(pass, tile, flight, species, &body, left, &mut || stream.open()) {
                    None => tile.ledger.removed += 1,
                    Some((cell, body)) => {
                        let (home, slot) = pass.mosaic.place(cell);
                        let key = (slot * species_count + species) as u16;
                        if home == number {
                            tile.columns.reserve(tile.len + 1, pass.flags.0, pass.flags.1);
                            tile.columns.put(tile.len, key, &body);
                            tile.len += 1;
                        } else {
                            out.push(Leaver { tile: home as u32, key, body });
                        }
                    }
                }
            }
        }
    }
}

/// A species of a gas in front of a side.
fn beam(pass: &Pass<'_>, gas: &Gas, species: usize) -> Beam {
    let density = gas.density * gas.fractions[species];
    Beam { density, temperature: gas.temperature, velocity: gas.velocity, mass: pass.model.species[species].mass }
}
