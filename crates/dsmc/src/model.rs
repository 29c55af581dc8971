//! A run before anything is allocated: numbers in SI units, tables of pairs, what stands on the sides.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::gas::Species;
use crate::gas::pair::Pair;
use crate::geometry::Geometry;
use crate::grid::Grid;
use crate::source::LineSource;
use crate::stages::SUMS;
use crate::walls::Wall;
use crate::walls::subsonic::Given;

/// How colliding pairs are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scheme {
    /// No collisions: free-molecular flow.
    None,
    /// No time counter (Bird 1994, section 11.1): a number of pairs is tried, each taken by its cross-section.
    #[default]
    Ntc,
    /// Majorant frequency (Ivanov and Rogasinsky 1988): as NTC, but the number of tries is Poisson's.
    Majorant,
    /// All particles of a cell in random pairs that share none (Baganoff and McDonald 1990): nothing to be adapted.
    Pairing,
}

/// With whom a particle collides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Partner {
    /// Anyone of its cell.
    #[default]
    Random,
    /// The nearest of its cell, and not the last one again: for cells that are wider than the free path (LeBeau, Jacikas and Lumpkin
    /// 2003). For the schemes that try pairs.
    Near,
}

/// What Z, the collision number of an internal mode, means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ZDefinition {
    /// Jeans' relaxation equation has the time `Z` times the mean collision time.
    #[default]
    Jeans,
    /// Each particle of a colliding pair exchanges energy with the probability 1/Z (the convention of SPARTA).
    Particle,
}

/// How collisions are done.
#[derive(Debug, Clone, PartialEq)]
pub struct Collisions {
    /// How pairs are chosen.
    pub scheme: Scheme,
    /// Pairs of species: `[a * species + b]`.
    pub pairs: Vec<Pair>,
    /// What Z means.
    pub z_definition: ZDefinition,
    /// Whether some species rotates and its rotation is computed.
    pub rotation: bool,
    /// Whether some species vibrates and its vibration is computed.
    pub vibration: bool,
    /// Most modes of vibration of a species.
    pub modes: usize,
    /// With whom a particle collides.
    pub partner: Partner,
    /// Whether vibration relaxes as Millikan and White have it, where no collision number is given.
    pub millikan_white: bool,
}

/// What stands on a side of the domain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Edge {
    /// The other side.
    Periodic,
    /// A wall, by its number.
    Wall(u32),
    /// A wall whose temperature varies along it: the number of that of the first cell; those of the other cells follow.
    Walls(u32),
    /// Nothing: what leaves is gone; gas of an inflow comes in.
    Open,
}

impl Edge {
    /// Whether it is a wall.
    pub fn is_wall(self) -> bool {
        matches!(self, Self::Wall(_) | Self::Walls(_))
    }
}

/// A uniform gas in equilibrium.
#[derive(Debug, Clone, PartialEq)]
pub struct Gas {
    /// Number density, 1/m^3.
    pub density: f64,
    /// Temperature, K.
    pub temperature: f64,
    /// Velocity, m/s.
    pub velocity: [f64; 3],
    /// Part of the molecules by species; adds up to 1.
    pub fractions: Vec<f64>,
}

/// A run.
#[derive(Debug, Clone)]
pub struct Model {
    /// The domain.
    pub grid: Grid,
    /// The bodies.
    pub geometry: Arc<Geometry>,
    /// What was mended in the outlines of bodies, in words.
    pub notes: Vec<String>,
    /// Lines from which gas comes.
    pub sources: Vec<LineSource>,
    /// Walls of sides, then of bodies.
    pub walls: Vec<Wall>,
    /// The sides, in the order of [`crate::grid::Side::ALL`].
    pub edges: [Edge; 4],
    /// Gas that comes in through open sides; where something is given instead, until the gas within has been seen.
    pub inflow: [Option<Gas>; 4],
    /// What is given on sides that follow the gas within, and the steps over which that is averaged.
    pub given: [Option<(Given, f64)>; 4],
    /// The species.
    pub species: Vec<Species>,
    /// Part of the molecules by species at the start.
    pub fractions: Vec<f64>,
    /// Collisions.
    pub collisions: Collisions,
    /// Time step, s.
    pub dt: f64,
    /// Molecules that a particle stands for.
    pub weight: f64,
    /// Particles expected per cell, for the shape of tiles.
    pub per_cell: f64,
    /// Temperature from which the largest cross-sections are guessed, K, and the fastest drift, m/s.
    pub hottest: [f64; 2],
    /// Particles expected at the start.
    pub expected: f64,
    /// Seed.
    pub seed: u64,
}

impl Collisions {
    /// Numbers of a cell and species that are summed up for averages: [`SUMS`] with one mode of vibration or none, one more for each other.
    pub fn sums(&self) -> usize {
        SUMS - 1 + self.modes.max(1)
    }

    /// Those of them that are kept where they are summed up: none of internal modes where there are none.
    pub fn kept(&self) -> usize {
        if self.rotation || self.vibration { self.sums() } else { SUMS - 2 }
    }
}

impl Model {
    /// The pair of two species.
    pub fn pair(&self, a: usize, b: usize) -> &Pair {
        &self.collisions.pairs[a * self.species.len() + b]
    }

    /// Free volume of a cell, m^3.
    pub fn cell_volume(&self, cell: usize) -> f64 {
        self.grid.volume() * self.geometry.fraction(cell)
    }

    /// Cells per path length along an axis; 0 along axes that the grid does not have.
    #[inline]
    pub fn cells_per_metre(&self, axis: usize) -> f64 {
        if axis < self.grid.dimensions { 1.0 / self.grid.h[axis] } else { 0.0 }
    }
}

/// Ids of random numbers.
pub(crate) mod purpose {
    pub(crate) const COUNT: u32 = 0x6001;
    pub(crate) const PAIR: u32 = 0x6002;
    pub(crate) const INTERNAL: u32 = 0x6003;
    pub(crate) const WALL: u32 = 0x6004;
    pub(crate) const INFLOW: u32 = 0x6005;
    pub(crate) const FILL: u32 = 0x6006;
    pub(crate) const PERMUTE: u32 = 0x6007;
    pub(crate) const SOURCE: u32 = 0x6008;
    pub(crate) const PART: u32 = 0x6009;
}
