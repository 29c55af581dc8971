//! Starts that are the same in every cell: a few numbers from which a GPU makes the particles.

mod rows;

use zellige_device_macro::device;

pub(crate) use self::rows::RowOfCells;

use super::Source;
use crate::config::species::Positions;
use crate::sampling::{Purpose, purpose};
use crate::setup::{Load, Profile, ThermalSpread};

/// Momenta without spread: `UniformSource::heat`.
#[device]
pub(crate) const COLD: u32 = 0;
/// Normal momenta.
#[device]
pub(crate) const GAUSSIAN: u32 = 1;
/// Momenta of Maxwell and Juttner's distribution, seen from where their frame moves.
#[device]
pub(crate) const RELATIVISTIC: u32 = 2;

/// Numbers from which the particles of a species are made.
#[device]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UniformSource {
    seed: u64,
    /// Rows of cells of the box.
    rows: u64,
    /// Mean momentum.
    drift: [f64; 3],
    /// Spread of the momentum.
    width: [f64; 3],
    /// Purposes of random numbers.
    place: u32,
    momentum: u32,
    per_cell: u32,
    random: u32,
    /// [`COLD`], [`GAUSSIAN`], or [`RELATIVISTIC`], whose temperature is the first width.
    heat: u32,
    /// Set for one dimension.
    line: u32,
}

fn number(profile: &Profile) -> Option<f64> {
    if let Profile::Number(x) = profile { Some(*x) } else { None }
}

impl Load {
    /// Why a GPU cannot make the particles by itself; nothing where it can.
    pub fn obstacle(&self) -> Option<&'static str> {
        let widths = match &self.heat {
            ThermalSpread::Cold => &[][..],
            ThermalSpread::Gaussian(widths) => &widths[..],
            ThermalSpread::Temperature(t) | ThermalSpread::MaxwellJuttner(t) => std::slice::from_ref(t),
        };
        let cold = matches!(self.heat, ThermalSpread::Cold);
        match () {
            () if self.listed.is_some() => Some("they are those of a file"),
            () if self.species.weighted => Some("they have weights of their own"),
            () if !self.flat || number(&self.density).is_none() => Some("their density is not the same everywhere"),
            () if self.drift.iter().chain(widths).any(|p| number(p).is_none()) => Some("their momenta depend on the position"),
            () if self.quiet && !cold => Some("their momenta are a quiet start"),
            () if self.corrected => Some("their mean momenta are corrected"),
            () => None,
        }
    }
}

impl Source<'_> {
    /// The numbers from which all particles can be made, and their offsets where they are not random: for a GPU, which cannot where
    /// there is nothing.
    pub fn uniform_source(&self) -> Option<(UniformSource, &[[f64; 2]])> {
        let load = self.load;
        if load.obstacle().is_some() || super::half_step_back::pushes(self.setup, load.number, self.total_field) {
            return None;
        }
        let (heat, width) = match &load.heat {
            ThermalSpread::Cold => (COLD, [0.0; 3]),
            ThermalSpread::Gaussian(widths) => (GAUSSIAN, [number(&widths[0])?, number(&widths[1])?, number(&widths[2])?]),
            ThermalSpread::Temperature(t) => (GAUSSIAN, [number(t)?.sqrt(); 3]),
            ThermalSpread::MaxwellJuttner(t) => (RELATIVISTIC, [number(t)?; 3]),
        };
        let [x, y, z] = &load.drift;
        let uniform_source = UniformSource {
            seed: self.model.seed,
            rows: self.model.grid.cells[1] as u64,
            drift: [number(x)?, number(y)?, number(z)?],
            width,
            place: purpose::start(load.number, Purpose::Position),
            momentum: purpose::start(load.number, Purpose::Momentum),
            per_cell: load.per_cell as u32,
            random: u32::from(load.positions == Positions::Random),
            heat,
            line: u32::from(self.model.grid.dimensions == 1),
        };
        Some((uniform_source, &self.offsets))
    }
}

impl Source<'_> {
    /// Number of the box's last column of cells, counted from the start of the run.
    pub fn last_column(&self) -> u64 {
        self.moved + self.model.grid.cells[0] as u64 - 1
    }
}

impl UniformSource {
    /// Particles of a cell.
    pub fn per_cell(&self) -> usize {
        self.per_cell as usize
    }

    /// Tag of particle `k` of a cell, by its column, counted from the start of the run, and its row.
    fn tag(&self, column: u64, row: u32, k: u64) -> u64 {
        super::tag(self.rows, column, row, k)
    }
}
