//! The stages of a step behind one trait. A call is a pass over all particles, so that dynamic dispatch costs nothing; both devices
//! fuse all stages of a tile while its particles are in the cache, or in shared memory.

pub mod cpu;
pub mod cuda;
pub(crate) mod division;
mod shares;

use std::ops::Range;

use zellige_engine::cuda::Buffer;
use zellige_engine::error::{Error, Result};
use zellige_engine::profile::Profiler;
use zellige_engine::record::ValuesOnGpu;
use zellige_engine::sim::not_on_gpu;

use crate::gas::Species;
use crate::grid::Rectangle;
use crate::model::Model;
use crate::particles::{Particles, Placed};
use crate::walls::BOLTZMANN;

/// Sums of the motion of a cell and species: number, velocity (3), squares xx, yy, zz, product xy (m/s)^2, then `(c^2 + 2 e/m) v`
/// along x and y (m/s)^3 with the internal energy e. Behind them, where something moves along z, the products xz and yz and the
/// same along z; then energy of the rotation over k (K) and level of the vibration, where a species has several modes that of each:
/// [`crate::model::Collisions::sums`].
pub const MOMENTS: usize = 10;
/// Sums that come with a motion along z.
pub const ALONG_Z: usize = 3;
/// Sums of a surface: hits, momentum given to it (3, kg m/s of real molecules), energy (J), and of a segment the momentum against
/// its normal times the position of the hit along it, -1 to 1 (kg m/s): half its length times that is the moment about its
/// middle.
pub const SURFACE_SUMS: usize = 6;

/// Energy over half of a molecule's mass by what is summed up: `2 k/m` by species, then `2 k theta/m` of each mode by species.
fn factors(model: &Model) -> Vec<f64> {
    let per_mass = |s: &Species| 2.0 * BOLTZMANN / s.mass;
    let theta = |s: &Species, m: usize| s.vibration.modes().get(m).map_or(0.0, |mode| mode.theta);
    let modes = (0..model.collisions.modes).flat_map(|m| model.species.iter().map(move |s| per_mass(s) * theta(s, m)));
    model.species.iter().map(per_mass).chain(modes).collect()
}

/// Particles of a tile: their numbers in it have 28 bits.
const IN_A_TILE: u64 = 1 << 28;

/// Refuses to go on with a tile that holds more.
fn overfull(most: u64) -> Result<()> {
    if most <= IN_A_TILE {
        return Ok(());
    }
    Err(Error::Numerics {
        what: "gas".into(),
        place: "a tile of cells".into(),
        message: format!("{most} particles crowd in one tile, which holds {IN_A_TILE} at most; use a larger `weight`"),
    })
}

/// Samples whose sums are kept in single precision before they are added to those in double precision, where so many particles are
/// expected in a cell: 32, but no more than make about 1024 terms of a sum.
///
/// A sum of 32 samples of ten particles rounds 320 times at random, by about 1e-6 of it; what a single particle more or less makes
/// is ten thousand times as much.
fn samples_at_a_time(per_cell: f64) -> u32 {
    (1024.0 / per_cell).clamp(1.0, 32.0) as u32
}

/// Particles and energy in and out since the start.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Ledger {
    /// Particles put in, at the start and through open sides.
    pub injected: u64,
    /// Particles that left through open sides.
    pub removed: u64,
    /// Collisions.
    pub collisions: u64,
    /// Attempted collisions.
    pub attempts: u64,
    /// Attempts whose cross-section was above the stored maximum.
    pub exceeded: u64,
    /// Stuck particles: too many hits in a step, left where they were.
    pub stuck: u64,
    /// Copies made of particles that entered cells of less weight.
    pub copied: u64,
    /// Particles that vanished where they entered cells of more weight.
    pub dropped: u64,
}

impl Ledger {
    /// Particles that must be there.
    pub fn there(&self) -> u64 {
        self.injected + self.copied - self.removed - self.dropped
    }

    /// As a checkpoint has it: copies only where cells have weights.
    pub(crate) fn numbers(&self, weighted: bool) -> Vec<f64> {
        let all = [self.injected, self.removed, self.collisions, self.attempts, self.exceeded, self.stuck, self.copied, self.dropped];
        all[..Self::length(weighted)].iter().map(|n| *n as f64).collect()
    }

    /// Number of values.
    const fn length(weighted: bool) -> usize {
        if weighted { 8 } else { 6 }
    }

    /// From [`Ledger::numbers`].
    pub(crate) fn from_numbers(numbers: &[f64]) -> Self {
        let at = |i: usize| numbers.get(i).map_or(0, |n| *n as u64);
        Self {
            injected: at(0),
            removed: at(1),
            collisions: at(2),
            attempts: at(3),
            exceeded: at(4),
            stuck: at(5),
            copied: at(6),
            dropped: at(7),
        }
    }
}

/// Totals over all particles, real molecules, SI units.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Totals {
    /// Particles.
    pub particles: u64,
    /// Momentum, kg m/s per metre of depth.
    pub momentum: [f64; 3],
    /// Translational energy, J per metre of depth.
    pub translation: f64,
    /// Energy of rotation and vibration, J.
    pub internal: f64,
}

/// Averages on a device that closes batches itself, so that no sums of cells come to the host until they are asked for: what
/// `sampling::Samples` does elsewhere.
pub trait Batches {
    /// Closes batch number `count`, from 1, of `samples` samples: adds its sums to those of all, and its values to their scatter.
    /// The first forgets all before. Sets `surfaces` to its sums.
    fn close(&mut self, count: u64, samples: u64, surfaces: &mut [f64]) -> Result<()>;

    /// Sums since the last batch of even regions along each axis, `[region][species][sum]`, by the weights of their cells.
    fn regions(&mut self, regions: [usize; 2], sums: Range<usize>) -> Result<Vec<f64>>;

    /// Forgets the sums since the last batch, and sets `surfaces` to those of the surfaces.
    fn discard(&mut self, surfaces: &mut [f64]) -> Result<()>;

    /// Begins to bring the sums of all batches and their scatter (`sampling::spread`) to the host, for which nobody waits here.
    /// Before the first batch it only has the memory ready.
    fn begin_fetch(&mut self) -> Result<FetchCells>;

    /// A value of all cells as records have it, row by row, over so many closed batches of `samples` samples, one at least: a copy
    /// in the memory of the device, which may be on its way. `None` in several parts.
    fn show(&mut self, wanted: &Wanted, batches: u64, samples: u64) -> Result<Option<Buffer<f64>>>;

    /// Takes them back.
    fn put(&mut self, cells: &[f64], square: &[f64], filled: &[f64]) -> Result<()>;
}

/// A value of the averages, or its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wanted {
    /// Index among the values of a cell.
    pub value: usize,
    /// The gas, or 1 + the number of a species of a mixture.
    pub line: usize,
    /// Data that a cell needs for it: 0 the gas, 1 particles, 2 the scatter of their velocities.
    pub needs: u32,
    /// Asks for the standard error.
    pub error: bool,
    /// Marks an average over particles.
    pub by_particles: bool,
}

/// Particles of a species, as copies in the memory of a device.
#[derive(Debug)]
pub struct ColumnsOnGpu {
    /// Number of particles.
    pub len: usize,
    /// Position (m) and velocity (m/s), of which those that were asked for are there.
    pub columns: [Option<Buffer<f64>>; 5],
}

/// Waits for sums of cells and their scatter, and puts them where they belong; on any thread.
pub type FetchCells = Box<dyn FnOnce(&mut [f64], &mut [f64], &mut [f64]) -> Result<()> + Send>;

/// The state of a gas and what happens to it in a step.
pub trait Stages: Send {
    /// Index, collide, sample (if `sample`), move, emit: step number `step`, counted from 0.
    fn advance(&mut self, step: u64, sample: bool, profiler: &mut Profiler) -> Result<()>;

    /// Cells in the order in which particles are best put in, all at once; none if they may come piece by piece in any order.
    fn order(&self) -> Option<Vec<u32>> {
        None
    }

    /// Cells of this part of the run, in the order of their numbers; none if it is the only one.
    fn share(&self) -> Option<Vec<u32>> {
        None
    }

    /// Cells of each part of the run, in the order of the parts; none if it is the only one. They may change with a step.
    fn areas(&self) -> Vec<Rectangle> {
        Vec::new()
    }

    /// Puts particles in, those in cells of this part. Cells and species have been checked.
    fn insert(&mut self, particles: &Particles) -> Result<()>;

    /// Puts particles of this part into an empty store in the order of a checkpoint, so that they come to lie as they did.
    fn put_back(&mut self, particles: &Particles) -> Result<()> {
        self.insert(particles)
    }

    /// All particles, cell by cell within tiles. Of a run in parts they are at the first one, and nothing at the others, as all
    /// sums of surfaces are.
    fn particles(&mut self) -> Result<Particles>;

    /// Particles of this part alone, and where they come in the order of [`Stages::particles`].
    fn own_particles(&mut self) -> Result<(Particles, Vec<Placed>)>;

    /// Raises the bounds of collision rates, `(sigma g)max` of each cell and pair of species, to those of a relative speed, m/s.
    fn raise_majorants(&mut self, speed: f64) -> Result<()>;

    /// Positions and velocities of all particles of a species, in the order of [`Stages::particles`], as copies in the memory of
    /// the GPU that they lie on: x, y and the components of the velocity, as far as `wanted`. `None` where they lie on the host or
    /// in several parts.
    fn columns_on_gpu(&mut self, _species: usize, _wanted: [bool; 5]) -> Result<Option<ColumnsOnGpu>> {
        Ok(None)
    }

    /// Puts velocities of the particles of a species in place, right behind [`Stages::columns_on_gpu`]: a value a particle, real
    /// and finite. Gives the largest speed of all, m/s, if a particle is faster than it was.
    fn set_velocities_on_gpu(&mut self, _species: usize, _velocity: [Option<&ValuesOnGpu>; 3]) -> Result<Option<f64>> {
        Err(not_on_gpu("velocity", &[]))
    }

    /// Removes all particles.
    fn clear(&mut self) -> Result<()>;

    /// Sets `cells` (`[cell][species][sums]`, those of this part row by row) and `surfaces` (`[surface][SURFACE_SUMS]`, sides
    /// first) to the sums of all samples since the last call and forgets them.
    fn take_samples(&mut self, cells: &mut [f64], surfaces: &mut [f64]) -> Result<()>;

    /// Averages, where the device keeps them.
    fn batches(&mut self) -> Option<&mut dyn Batches> {
        None
    }

    /// Sets both to pending sums for a checkpoint, without forgetting them: those not in [`Stages::extra`].
    fn pending(&mut self, cells: &mut [f64], surfaces: &mut [f64]) -> Result<()>;

    /// Takes sums back that [`Stages::take_samples`] gave away, or [`Stages::pending`].
    fn put_samples(&mut self, cells: &[f64], surfaces: &[f64]) -> Result<()>;

    /// Particles and energy in and out.
    fn ledger(&mut self) -> Result<Ledger>;

    /// Totals over all particles.
    fn totals(&mut self) -> Result<Totals>;

    /// State besides the particles that a bit-equal continuation needs.
    fn extra(&mut self) -> Result<Vec<f64>>;

    /// Takes it back.
    fn set_extra(&mut self, extra: &[f64]) -> Result<(), String>;

    /// Bytes held.
    fn memory(&self) -> u64;

    /// Peak memory so far, bytes, where it is counted: buffers of a GPU.
    fn memory_peak(&self) -> u64 {
        self.memory()
    }

    /// Waits for the device, and says what went wrong on it.
    fn wait(&mut self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the particles of a tile have 28 bits on either device.
    #[test]
    fn a_tile_of_more_particles_than_have_numbers_is_refused() {
        assert!(overfull(0).is_ok() && overfull(1 << 28).is_ok());
        let refused = overfull((1 << 28) + 1).unwrap_err().to_string();
        for words in ["268435457 particles", "268435456 at most", "a larger `weight`"] {
            assert!(refused.contains(words), "{refused}");
        }
    }
}
