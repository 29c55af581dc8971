//! Boundary conditions for particles.
//!
//! A particle moves straight through the wall, which the current sees, and then is dealt with here: periodic sides send it
//! round, reflecting ones mirror place and momentum, thermal ones mirror the place and draw a new momentum, absorbing ones
//! take it out.

use zellige_engine::real::RealScalar;
use zellige_engine::rng::{Philox, open_f64};

use super::exchange::Tally;
use super::store::{Location, Particle, Tiling};
use crate::grid::{Grid, ParticleSide};
use crate::particles::Species;
use crate::physics::{Vec3, kinetic_energy, mixed_in};
use crate::sampling::purpose;

/// The sides as one species meets them in one step.
#[derive(Debug, Clone)]
pub(super) struct Walls {
    pub(super) tiling: Tiling,
    sides: [[ParticleSide; 2]; 2],
    thermal: [[f64; 2]; 2],
    random: Philox,
    step: u64,
}

impl Walls {
    /// The sides of `grid` for species number `index` in step `step`.
    pub(super) fn new(grid: &Grid, tiling: Tiling, species: &Species, index: usize, seed: u64, step: u64) -> Self {
        let random = Philox::new(purpose::walls(index), seed);
        Self { tiling, sides: grid.particles, thermal: species.wall_thermal, random, step }
    }

    /// Position of a particle that has moved to cell `cell`; `None` where a side took it.
    #[inline(always)]
    pub(super) fn settle<T: RealScalar>(&self, cell: [isize; 2], p: &mut Particle<T>, tally: &mut Tally) -> Option<Location> {
        let [nx, ny] = self.tiling.cells.map(|n| n as isize);
        if cell[0] >= 0 && cell[0] < nx && cell[1] >= 0 && cell[1] < ny {
            return Some(self.tiling.locate(cell[0] as usize, cell[1] as usize));
        }
        self.beyond(cell, p, tally)
    }

    #[cold]
    fn beyond<T: RealScalar>(&self, mut cell: [isize; 2], p: &mut Particle<T>, tally: &mut Tally) -> Option<Location> {
        for axis in 0..2 {
            let n = self.tiling.cells[axis] as isize;
            let end = usize::from(cell[axis] >= n);
            if cell[axis] >= 0 && cell[axis] < n {
                continue;
            }
            match self.sides[axis][end] {
                ParticleSide::Periodic => {
                    cell[axis] = cell[axis].rem_euclid(n);
                    continue;
                }
                ParticleSide::Absorb => {
                    tally.removed += 1;
                    tally.weight_out += p.v[5].to_f64();
                    tally.energy_out += energy(p);
                    return None;
                }
                ParticleSide::Reflect => p.v[2 + axis] = -p.v[2 + axis],
                ParticleSide::Thermal => {
                    tally.energy_out += energy(p);
                    self.redraw(p, axis, end, key(cell, p));
                    tally.energy_in += energy(p);
                }
            }
            // The mirror image: x -> -x at the lower wall, 2n - x at the upper one.
            cell[axis] = if end == 0 { -1 - cell[axis] } else { 2 * n - 1 - cell[axis] };
            p.v[axis] = -p.v[axis];
        }
        Some(self.tiling.locate(cell[0] as usize, cell[1] as usize))
    }

    /// A momentum of the flux that a non-relativistic Maxwellian of `u_th` sends through a wall: the normal part has the
    /// density `u exp(-u^2 / 2 u_th^2)`, the others are normal (Birdsall and Langdon 1991, section 16-5).
    fn redraw<T: RealScalar>(&self, p: &mut Particle<T>, axis: usize, end: usize, index: u64) {
        let u_th = self.thermal[axis][end];
        let [a, b, ..] = self.random.draw(self.step, index);
        let inward = if end == 0 { 1.0 } else { -1.0 };
        let [v, w] = self.random.normals(self.step, !index);
        p.v[2 + axis] = T::from_f64(inward * u_th * (-2.0 * open_f64(a, b).ln()).sqrt());
        p.v[3 - axis] = T::from_f64(u_th * v);
        p.v[4] = T::from_f64(u_th * w);
    }
}

/// Key of a particle's random numbers: itself at the hit, the cell behind the wall, and its tag if it has one. Its slot or its
/// number in a tile would make them depend on tiles, threads and restarts. Particles without tags that agree in everything,
/// as they do only where they were loaded so, draw the same. The kernel of the GPU has the same key without the tag.
fn key<T: RealScalar>(cell: [isize; 2], p: &Particle<T>) -> u64 {
    let bits = |k: usize| -> u64 {
        let v = p.v[k];
        if size_of::<T>() == 4 { u64::from((v.to_f64() as f32).to_bits()) } else { v.to_f64().to_bits() }
    };
    let place = (cell[0] as i32).wrapping_mul(8191).wrapping_add(cell[1] as i32) as u32;
    let start = mixed_in(p.words[0], u64::from(place));
    (0..5).fold(start, |hash, k| mixed_in(hash, bits(k)))
}

/// `weight (gamma - 1)`.
pub(super) fn energy<T: RealScalar>(p: &Particle<T>) -> f64 {
    let u = Vec3 { x: p.v[2].to_f64(), y: p.v[3].to_f64(), z: p.v[4].to_f64() };
    p.v[5].to_f64() * kinetic_energy(u)
}
