//! A species: what it is, where its particles are put, and how fast they are.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::profile::{Density, Preset, Value};
use crate::particles::Pusher;

/// A species of particles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpeciesConfig {
    /// Name: letters, digits, `_`, `-`.
    pub name: String,
    /// Charge of a particle, e.
    #[serde(default = "minus_one")]
    pub charge: f64,
    /// Mass of a particle, m_e.
    #[serde(default = "one")]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub mass: f64,
    /// Particles per cell at the reference density: a number, or `[nx, ny]`; needed unless `particles` are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub particles_per_cell: Option<PerCell>,
    /// The particles of a file, in place of those that density and momentum make.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub particles: Option<FileParticles>,
    /// If false, particles only contribute their charge.
    #[serde(default = "yes")]
    pub mobile: bool,
    /// Pusher of the momenta.
    #[serde(default)]
    pub pusher: Pusher,
    /// Positions of particles in their cell.
    #[serde(default)]
    pub positions: Positions,
    /// Quantity that follows the density.
    #[serde(default)]
    pub weighting: Weighting,
    /// Density of `particles_per_cell`, n_0; default the largest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference_density: Option<f64>,
    /// Thermal momentum `gamma v/c` per component of particles that thermal sides return; default the species'.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_thermal: Option<f64>,
    /// Tags each particle, for tracks.
    #[serde(default)]
    pub tagged: bool,
    /// Number density, n_0: a number, an expression, an array in a file or one of the shapes; default 1 (in SI units the reference
    /// density).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub density: Option<Density>,
    /// Momenta `u = gamma v/c`; default at rest.
    #[serde(default)]
    pub momentum: Momentum,
}

fn minus_one() -> f64 {
    -1.0
}

fn one() -> f64 {
    1.0
}

fn yes() -> bool {
    true
}

impl SpeciesConfig {
    /// Electrons at rest with density 1.
    pub fn electrons(per_cell: usize) -> Self {
        Self {
            name: "electrons".into(),
            charge: -1.0,
            mass: 1.0,
            particles_per_cell: Some(PerCell::Number(per_cell)),
            particles: None,
            mobile: true,
            pusher: Pusher::default(),
            positions: Positions::default(),
            weighting: Weighting::default(),
            reference_density: None,
            wall_thermal: None,
            tagged: false,
            density: None,
            momentum: Momentum::default(),
        }
    }

    /// True if particles have weights of their own: the default where the density has more than one value.
    pub fn weighted(&self) -> bool {
        match self.weighting {
            Weighting::Equal => false,
            Weighting::Variable => true,
            Weighting::Auto => match &self.density {
                None | Some(Density::Number(_)) => false,
                Some(Density::Expression(_) | Density::File(_)) => true,
                Some(Density::Preset(preset)) => !Preset::is_flat(preset),
            },
        }
    }
}

/// Particles in a file: an NPZ archive with `x`, `y`, `ux`, `uy`, `uz` (`gamma v/c`) and `weight`, or a species of openPMD.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileParticles {
    /// `NAME.npz`, or `file.h5:/data/120/particles/NAME`; relative to the folder of the input.
    pub file: PathBuf,
    /// Real particles that each stands for: `n_0 (c/w_n)^d`, in SI units a number per metre of each length that the box lacks;
    /// default as the file says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// Components of an openPMD species that become x, y and z.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub axes: Option<[String; 3]>,
    /// True if momenta are those of half a step before the positions, as in files that zellige writes.
    #[serde(default)]
    pub half_step_behind: bool,
}

/// A number of particles, or a lattice of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PerCell {
    /// In all; a lattice takes the two factors that are nearest to the shape of the cell.
    Number(usize),
    /// Per axis.
    Lattice([usize; 2]),
}

impl PerCell {
    /// Columns and rows for cells of size `h`.
    pub fn lattice(self, h: [f64; 2], dimensions: usize) -> [usize; 2] {
        match self {
            Self::Lattice(both) => both,
            Self::Number(n) if dimensions == 1 => [n, 1],
            Self::Number(n) => {
                let wanted = h[0] / h[1];
                let shape = |nx: usize| ((nx * nx) as f64 / n as f64 / wanted).ln().abs();
                let columns = (1..=n).filter(|nx| n.is_multiple_of(*nx)).min_by(|a, b| shape(*a).total_cmp(&shape(*b))).unwrap_or(n);
                [columns, n / columns.max(1)]
            }
        }
    }

    /// In all.
    pub fn total(self) -> usize {
        match self {
            Self::Number(n) => n,
            Self::Lattice([nx, ny]) => nx.saturating_mul(ny),
        }
    }
}

/// Positions of particles in their cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(extend("x-synonyms" = { "regular": "lattice", "uniform": "lattice", "grid": "lattice", "thermal": "random", "halton": "quiet", "low_discrepancy": "quiet" }))]
pub enum Positions {
    /// Regular.
    #[default]
    Lattice,
    /// Anywhere.
    Random,
    /// Halton's sequence, with `momentum.quiet`: nearly no noise, unstable in the long run (Birdsall and Langdon 1991, section
    /// 16-4).
    Quiet,
}

/// Quantity that follows the density.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Weighting {
    /// Equal where the density is uniform, else variable.
    #[default]
    Auto,
    /// Equal weights; the number follows the density.
    Equal,
    /// Equal numbers in all cells with plasma; the weight follows.
    Variable,
}

/// Momenta `u = gamma v/c` of the particles at the start.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Momentum {
    /// Mean momentum: numbers or expressions of `x`, `y`; with `maxwell_juttner` that of the distribution's rest frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<[Value; 3]>,
    /// Standard deviation of each component (Gaussian): one, or three.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thermal: Option<Thermal>,
    /// Temperature of a Gaussian with `u_th = sqrt(T/m)`, m_e c^2 (eV in SI units).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Value>,
    /// Temperature of a Maxwell-Juttner distribution, m_e c^2 (eV in SI units).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maxwell_juttner: Option<Value>,
    /// Subtracts each cell's mean thermal momentum.
    pub corrected: bool,
    /// Thermal momenta of a low-discrepancy sequence; default with `positions = "quiet"`. Not for `maxwell_juttner`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet: Option<bool>,
}

impl Momentum {
    /// The thermal spread, where it is a number that walls can take over: of the first component, or as a temperature.
    pub fn spread(&self) -> Option<Spread> {
        let thermal = match &self.thermal {
            Some(Thermal::Number(x)) => Some(*x),
            Some(Thermal::Each(values)) => values[0].number(),
            _ => None,
        };
        let temperature = self.temperature.as_ref().or(self.maxwell_juttner.as_ref()).and_then(Value::number);
        thermal.map(Spread::Momentum).or(temperature.map(Spread::Temperature))
    }
}

/// Width of the momentum distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Spread {
    /// `u_th`.
    Momentum(f64),
    /// In the input's units.
    Temperature(f64),
}

/// One spread or three.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Thermal {
    /// One number for all components.
    Number(f64),
    /// One expression for all components.
    Expression(String),
    /// Per component.
    Each([Value; 3]),
}

impl Thermal {
    /// Per component, with the key of each.
    pub fn components(&self) -> [(Value, String); 3] {
        let same = |value: Value| [0, 1, 2].map(|_| (value.clone(), "thermal".to_owned()));
        match self {
            Self::Number(value) => same(Value::Number(*value)),
            Self::Expression(text) => same(Value::Expression(text.clone())),
            Self::Each(values) => [0, 1, 2].map(|c| (values[c].clone(), format!("thermal[{c}]"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_particles_becomes_a_lattice_of_the_cells_shape() {
        let number = PerCell::Number;
        assert_eq!(number(64).lattice([0.1, 0.1], 2), [8, 8]);
        assert_eq!(number(16).lattice([0.4, 0.1], 2), [8, 2]);
        assert_eq!(number(36).lattice([0.1, 0.1], 2), [6, 6]);
        assert_eq!(number(7).lattice([0.1, 0.2], 2), [1, 7]);
        assert_eq!(number(12).lattice([0.1, 0.2], 1), [12, 1]);
        assert_eq!((PerCell::Lattice([3, 5]).lattice([1.0; 2], 2), PerCell::Lattice([3, 5]).total()), ([3, 5], 15));
    }
}
