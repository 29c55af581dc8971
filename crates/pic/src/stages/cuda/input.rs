//! Particles from the host: checked, weighted in whole units of charge, entered in the ledger, and put into the store.

use zellige_engine::error::Result;
use zellige_engine::parallel::{indices, map};
use zellige_engine::rng::Philox;

use super::{CudaStages, unit_of};
use crate::integers::dithered;
use crate::particles::Particles;
use crate::physics::{Vec3, kinetic_energy};
use crate::sampling::purpose;
use crate::stages::cpu;

/// Particles whose energies are summed at a time.
const PART: usize = 1 << 14;

impl CudaStages {
    /// Puts particles in and takes note of them; into the lists of their tiles at once where they are to be `listed`.
    pub(super) fn take_in(&mut self, species: usize, particles: &Particles, listed: bool) -> Result<()> {
        let dithered = self.dithered(species, particles);
        let particles = dithered.as_ref().unwrap_or(particles);
        self.put(species, particles, listed)?;
        let population = &mut self.species[species];
        let one = |k: usize| {
            let [x, y, z] = [0, 1, 2].map(|c| particles.u[c][k]);
            particles.weight.get(k).copied().unwrap_or(1.0) * kinetic_energy(Vec3 { x, y, z })
        };
        // Sums of a fixed number each, so that they do not depend on threads.
        let n = particles.len();
        let parts: Vec<f64> = map(indices(n.div_ceil(PART)), |_, k| (k * PART..n.min((k + 1) * PART)).map(one).sum());
        let energy: f64 = parts.iter().sum();
        population.ledger.injected += particles.len() as u64;
        population.ledger.energy_in += energy * population.species.macro_mass() * self.setup.grid.cell_volume();
        Ok(())
    }

    /// Checks particles and puts them in.
    pub(super) fn put(&mut self, species: usize, particles: &Particles, listed: bool) -> Result<()> {
        self.ahead = None;
        cpu::check_particles(&self.setup.grid, &self.species[species].species, particles)?;
        self.measure_charge(heaviest(particles));
        if self.part.is_alone() {
            return self.species[species].store.insert(particles, listed);
        }
        let held = self.setup.grid.held();
        let own = particles.at((0..particles.len()).filter(|k| held.contains(&(particles.j[*k] as usize))));
        self.species[species].store.insert(&own, listed)
    }

    /// Makes the unit of charge fit the heaviest of such particles, which other parts of the run have too.
    pub(super) fn measure_charge_of_all(&mut self, own: &Particles) -> Result<()> {
        let mut all = [heaviest(own)];
        self.part.links().max(&mut all)?;
        self.measure_charge(all[0]);
        Ok(())
    }

    /// Makes the unit of charge fit a particle of weight `heaviest`.
    fn measure_charge(&mut self, heaviest: f64) {
        if heaviest > self.heaviest {
            self.heaviest = heaviest.log2().ceil().exp2();
            self.unit = unit_of(&self.setup, self.heaviest);
        }
    }

    /// Particles with weights of their own as they are put in: integers.rs. Keyed by their number.
    fn dithered(&mut self, species: usize, particles: &Particles) -> Option<Particles> {
        if particles.weight.is_empty() || !self.species[species].species.weighted {
            return None;
        }
        self.measure_charge(heaviest(particles));
        let random = Philox::new(purpose::charge(species), self.setup.seed);
        let (first, unit, precision) = (self.species[species].ledger.injected, self.unit, self.setup.precision);
        let weight = |k: usize| dithered(particles.weight[k], unit, precision, random.draw(0, first + k as u64)[0]);
        Some(Particles { weight: map(indices(particles.len()), |_, k| weight(k)), ..particles.clone() })
    }
}

/// Largest weight of some particles.
fn heaviest(particles: &Particles) -> f64 {
    particles.weight.iter().fold(1.0, |most, weight| f64::max(most, weight.abs()))
}
