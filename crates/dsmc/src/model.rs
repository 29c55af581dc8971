//! A run before anything is allocated: numbers in SI units, tables of pairs, what stands on the sides.

use std::f64::consts::PI;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::ReferenceConfig;
use crate::gas::Species;
use crate::gas::pair::Pair;
use crate::geometry::Geometry;
use crate::grid::Grid;
use crate::planar;
use crate::stages::{ALONG_Z, MOMENTS};
use crate::start::source::LineSource;
use crate::walls::subsonic::SubsonicBoundary;
use crate::walls::{BOLTZMANN, Wall};

/// Scheme that selects colliding pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(extend("x-synonyms" = { "off": "none", "free_molecular": "none", "collisionless": "none", "bird": "ntc", "no_time_counter": "ntc", "mfs": "majorant", "majorant_frequency": "majorant" }))]
pub enum Scheme {
    /// Free-molecular flow.
    None,
    /// No time counter (Bird 1994, section 11.1).
    #[default]
    Ntc,
    /// Majorant frequency (Ivanov and Rogasinsky 1988): a Poisson number of attempts.
    Majorant,
    /// All particles in disjoint random pairs (Baganoff and McDonald 1990).
    Pairing,
}

/// Collision partner of a particle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Partner {
    /// The nearest in cells wider than the free path of `gas` with at least 20 particles, else random; the plan says which.
    #[default]
    Auto,
    /// Any particle.
    Random,
    /// Not the last partner again, for fewer than about ten particles in a cell; needs candidate pairs.
    Fresh,
    /// The nearest but the last (LeBeau, Jacikas and Lumpkin 2003), for cells wider than the free path; needs candidate pairs.
    NearestNeighbour,
}

impl Partner {
    /// True if particles keep their last collision partner.
    pub fn tagged(self) -> bool {
        matches!(self, Self::Fresh | Self::NearestNeighbour)
    }
}

/// Particles in a cell from which on the nearest is much nearer than any.
pub(crate) const CROWD: f64 = 20.0;

/// Definition of Z, the collision number of an internal mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ZDefinition {
    /// Relaxation time of Jeans' equation over the mean collision time.
    #[default]
    Jeans,
    /// Each particle of a pair exchanges energy with probability 1/Z (SPARTA).
    Particle,
}

/// Collision model.
#[derive(Debug, Clone, PartialEq)]
pub struct Collisions {
    /// Scheme that selects pairs.
    pub scheme: Scheme,
    /// Pairs of species: `[a * species + b]`.
    pub pairs: Vec<Pair>,
    /// Definition of Z.
    pub z_definition: ZDefinition,
    /// True if some species rotates and its rotation is computed.
    pub rotation: bool,
    /// True if some species vibrates and its vibration is computed.
    pub vibration: bool,
    /// Most modes of vibration of a species.
    pub modes: usize,
    /// Choice of the collision partner: never [`Partner::Auto`].
    pub partner: Partner,
    /// True if anything moves along z: walls, injected gas, or the gas at the start. Then products with z are summed, which
    /// otherwise are nothing but noise.
    pub along_z: bool,
    /// True if vibration relaxes as Millikan and White have it, where no collision number is given.
    pub millikan_white: bool,
}

/// Boundary condition of a side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Edge {
    /// The other side.
    Periodic,
    /// A wall, by its number.
    Wall(u32),
    /// A wall whose temperature varies along it: the number of that of the first cell; those of the other cells follow.
    Walls(u32),
    /// Nothing: molecules that leave are removed; gas of an inflow is injected.
    Open,
}

impl Edge {
    /// True if it is a wall.
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
    /// Repairs of the outlines of bodies, in words.
    pub notes: Vec<String>,
    /// Reference points and lengths of the loads on each body, where the input says them.
    pub references: Vec<ReferenceConfig>,
    /// Lines that inject gas.
    pub sources: Vec<LineSource>,
    /// Walls of sides, then of bodies.
    pub walls: Vec<Wall>,
    /// The sides, in the order of [`crate::grid::Side::ALL`].
    pub edges: [Edge; 4],
    /// Gas injected through open sides; where something is given instead, until the gas within has been seen.
    pub inflow: [Option<Gas>; 4],
    /// Conditions on sides that follow the gas within, and the steps over which that is averaged.
    pub given: [Option<(SubsonicBoundary, f64)>; 4],
    /// The species.
    pub species: Vec<Species>,
    /// Part of the molecules by species at the start.
    pub fractions: Vec<f64>,
    /// Collisions.
    pub collisions: Collisions,
    /// Components of the velocity: 3, or 2 in a gas that moves in the plane alone ([`crate::planar`]).
    pub components: usize,
    /// Time step, s.
    pub dt: f64,
    /// Molecules that a particle stands for, where cells do not differ.
    pub weight: f64,
    /// Those of each cell over `weight`, rounded as the devices hold them; empty where all are 1.
    pub weights: Arc<[f32]>,
    /// Particles expected per cell, for the shape of tiles.
    pub per_cell: f64,
    /// Temperature from which (sigma g)max is estimated, K, and the fastest drift, m/s.
    pub hottest: [f64; 2],
    /// Particles expected at the start.
    pub expected: f64,
    /// Seed.
    pub seed: u64,
}

impl Collisions {
    /// Numbers of a cell and species that are summed up for averages: of the motion ([`MOMENTS`]), of the rotation, and of each
    /// mode of vibration, or one where there is none.
    pub fn sums(&self) -> usize {
        self.internal() + 1 + self.modes.max(1)
    }

    /// Index of that of the rotation among them; those of the vibration follow.
    pub fn internal(&self) -> usize {
        MOMENTS + if self.along_z { ALONG_Z } else { 0 }
    }

    /// Those of them that are kept where they are summed up: none of internal modes where there are none.
    pub fn kept(&self) -> usize {
        if self.rotation || self.vibration { self.sums() } else { self.internal() }
    }
}

impl Model {
    /// The point that the moment on a body is about, m.
    pub fn moment_point(&self, body: usize) -> [f64; 2] {
        let given = self.references.get(body).and_then(|r| r.point);
        given.unwrap_or_else(|| self.geometry.bodies()[body].centre())
    }

    /// The pair of two species.
    pub fn pair(&self, a: usize, b: usize) -> &Pair {
        &self.collisions.pairs[a * self.species.len() + b]
    }

    /// Molecules of a particle in a cell over those of `weight`.
    #[inline]
    pub fn relative(&self, cell: usize) -> f64 {
        self.weights.get(cell).map_or(1.0, |w| f64::from(*w))
    }

    /// Molecules that a particle stands for in a cell.
    #[inline]
    pub fn weight_of(&self, cell: usize) -> f64 {
        self.weight * self.relative(cell)
    }

    /// True if particles are doubled and removed between cells.
    pub fn weighted(&self) -> bool {
        !self.weights.is_empty()
    }

    /// True if particles move in the plane alone.
    pub fn planar(&self) -> bool {
        self.components == 2
    }

    /// Mean of cross-section times relative speed of two species in a gas at rest, m^3/s.
    pub fn mean_rate(&self, a: usize, b: usize, temperature: f64) -> f64 {
        let pair = self.pair(a, b);
        if self.planar() { planar::mean_rate(pair, temperature) } else { pair.mean_rate(temperature) }
    }

    /// Mean speed of a species in a gas at rest, m/s.
    pub fn mean_speed(&self, species: usize, temperature: f64) -> f64 {
        let mass = self.species[species].mass;
        if self.planar() { planar::mean_speed(mass, temperature) } else { (8.0 * BOLTZMANN * temperature / (PI * mass)).sqrt() }
    }

    /// Mean free path of a gas at rest, m, and the mean time between the collisions of a molecule, s: of all partners, weighted by
    /// numbers.
    pub fn free_path(&self, density: f64, temperature: f64) -> [f64; 2] {
        let n = self.species.len();
        let rate = |a: usize| (0..n).map(|b| density * self.fractions[b] * self.mean_rate(a, b, temperature)).sum::<f64>();
        let mean = |f: &dyn Fn(usize) -> f64| (0..n).map(|a| self.fractions[a] * f(a)).sum::<f64>();
        [mean(&|a| self.mean_speed(a, temperature) / rate(a)), 1.0 / mean(&rate)]
    }

    /// The longest edge of a cell, m.
    pub fn widest(&self) -> f64 {
        self.grid.h[..self.grid.dimensions].iter().copied().fold(0.0, f64::max)
    }

    /// Choice of [`Partner::Auto`] in a gas: the nearest only where that is known to improve the result.
    pub(crate) fn partner(&self, density: f64, temperature: f64) -> Partner {
        let draws_candidates = matches!(self.collisions.scheme, Scheme::Ntc | Scheme::Majorant);
        let crowd = density * self.grid.volume() / self.weight >= CROWD;
        let coarse = self.grid.len() > 1 && self.widest() > self.free_path(density, temperature)[0];
        if draws_candidates && crowd && coarse { Partner::NearestNeighbour } else { Partner::Random }
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
    pub(crate) const PARTNER: u32 = 0x600a;
}
