//! The `[dsmc]` table of the input, as typed, in SI units. [`Config::check`] finds everything that is wrong with it before anything
//! is allocated; [`crate::setup`] makes a [`crate::model::Model`] of it.
//!
//! ```toml
//! [dsmc]
//! dt = 7e-9
//! steps = 1000
//! particles_per_cell = 10
//! species = [{ name = "Ar" }]
//! [dsmc.grid]
//! cells = [100, 100]
//! size = [1e-3, 1e-3]
//! [dsmc.gas]
//! density = 7.07e22
//! temperature = 273.15
//! ```

pub mod bodies;
mod check;
pub mod sides;
pub mod sources;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zellige_engine::error::Problem;
use zellige_engine::expr::Expr;

use crate::gas::sparta::Relax;
use crate::gas::table::Model as Molecules;
use crate::grid::Grid;
use crate::model::{Partner, Scheme, ZDefinition};

pub use bodies::{BodyConfig, ReferenceConfig};
pub use sides::{Boundary, SideConfig, WallConfig, WallModel};
pub use sources::SourceConfig;

/// A rarefied gas by direct simulation Monte Carlo. SI units throughout; per metre of depth in the directions that the grid does
/// not have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Time step, s: a fraction of the mean collision time and of the time in which a molecule crosses a cell.
    pub dt: f64,
    /// Number of steps.
    pub steps: u64,
    /// Molecules that a particle stands for; or give `particles_per_cell`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// Particles in a cell that holds gas of the density of `gas`; or give `weight`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub particles_per_cell: Option<f64>,
    /// Components of a particle's velocity: 3, or 2 for the gas of discs that move in the plane alone, with two degrees of freedom
    /// and a ratio of heats of 2. No gas is like that: it is there to compare with programs that leave the third one out. For atoms
    /// only.
    #[serde(default = "three", skip_serializing_if = "is_three")]
    pub velocity_components: u32,
    /// Molecules of a particle over `weight`, cell by cell: an expression of `x` and `y` at the middle of a cell, above 0. A
    /// particle that comes into a cell of another weight is doubled or removed at random, so that what it stands for is kept on
    /// average. All the same if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell_weights: Option<String>,
    /// The cells.
    pub grid: GridConfig,
    /// The gas: what streams in, and what is there at the start unless `initial` says otherwise.
    pub gas: GasConfig,
    /// The species with their mole fractions. Names are those of the program's table (`zellige dsmc gas` lists it) or of
    /// `species_file`; any other one comes with all of `mass`, `diameter`, `omega`.
    pub species: Vec<SpeciesConfig>,
    /// A file of species in SPARTA's form, in place of the program's own table. Lines of other species than the run's are passed
    /// over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub species_file: Option<PathBuf>,
    /// A file of the modes of molecules that have several, in SPARTA's form, which goes with `species_file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vibration_file: Option<PathBuf>,
    /// A file of cross-sections in SPARTA's form, which goes with `species_file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vss_file: Option<PathBuf>,
    /// Collisions.
    #[serde(default)]
    pub collisions: CollisionConfig,
    /// Boundary conditions; periodic if left out.
    #[serde(default)]
    pub boundary: Boundary,
    /// Bodies in the flow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bodies: Vec<BodyConfig>,
    /// Lines from which gas comes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceConfig>,
    /// The gas at the start where it is not that of `gas`.
    #[serde(default)]
    pub initial: InitialConfig,
    /// Averages.
    #[serde(default)]
    pub sampling: SamplingConfig,
}

/// The cells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GridConfig {
    /// Cells per axis, `[nx]` or `[nx, ny]`: 1 to 65536 each. `[1]` with periodic sides is a box without space.
    pub cells: Vec<usize>,
    /// Length per axis, m.
    pub size: Vec<f64>,
    /// Coordinates of the lower corner, m; zero if left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origin: Vec<f64>,
}

/// A uniform gas.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GasConfig {
    /// Number density, 1/m^3.
    pub density: f64,
    /// Temperature, K.
    pub temperature: f64,
    /// Velocity, m/s; at rest if left out.
    #[serde(default)]
    pub velocity: [f64; 3],
}

/// A species: a name of the program's table (`zellige dsmc gas` lists it) or of `species_file`, or one's own with all of `mass`,
/// `diameter`, `omega`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpeciesConfig {
    /// Name: letters, digits, `_`, `+`, `-`.
    pub name: String,
    /// Mole fraction, above 0; the fractions are scaled to add up to 1.
    #[serde(default = "one")]
    pub fraction: f64,
    /// Mass of a molecule, kg.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mass: Option<f64>,
    /// Diameter at the reference temperature, m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diameter: Option<f64>,
    /// Exponent of the viscosity: 0.5 to 1.4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omega: Option<f64>,
    /// Exponent of the deflection: 0.5 to 4; 1 for hard spheres.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// Reference temperature, K.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub t_ref: Option<f64>,
    /// Degrees of freedom of the rotation: 0, 2 or 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation: Option<u32>,
    /// Collision number of the rotation: a number, or `{ z_inf, t_star }` of Parker's formula.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub z_rotation: Option<ZConfig>,
    /// Characteristic temperature of the vibration, K; or a list of modes, of which at most four may differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vibration: Option<VibrationConfig>,
    /// Collision number of the vibration, of all modes that have none of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub z_vibration: Option<f64>,
}

impl SpeciesConfig {
    /// A gas of the table.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.into(),
            fraction: 1.0,
            mass: None,
            diameter: None,
            omega: None,
            alpha: None,
            t_ref: None,
            rotation: None,
            z_rotation: None,
            vibration: None,
            z_vibration: None,
        }
    }
}

fn one() -> f64 {
    1.0
}

fn three() -> u32 {
    3
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_three(components: &u32) -> bool {
    *components == 3
}

/// A vibration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum VibrationConfig {
    /// The characteristic temperature of the only mode, K.
    Single(f64),
    /// All modes.
    Modes(Vec<ModeConfig>),
}

impl VibrationConfig {
    /// The modes.
    pub fn modes(&self) -> Vec<ModeConfig> {
        match self {
            Self::Single(theta) => vec![ModeConfig { theta: *theta, degeneracy: 1, z: None }],
            Self::Modes(modes) => modes.clone(),
        }
    }
}

/// A mode of vibration.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModeConfig {
    /// Characteristic temperature, K; of one of several 200 at least.
    pub theta: f64,
    /// Number of modes of this temperature: 1 to 4.
    #[serde(default = "single")]
    pub degeneracy: u32,
    /// Collision number in place of `z_vibration`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub z: Option<f64>,
}

fn single() -> u32 {
    1
}

/// A collision number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ZConfig {
    /// Constant value at any temperature.
    Number(f64),
    /// Parker's formula.
    Parker(ParkerConfig),
}

/// Constants of Parker's formula.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParkerConfig {
    /// Value at high temperature.
    pub z_inf: f64,
    /// Temperature of the attraction, K.
    pub t_star: f64,
}

/// Collision model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CollisionConfig {
    /// Scheme that selects pairs; `"none"` is free-molecular flow.
    pub scheme: Scheme,
    /// Molecular model of gases from the program's table.
    pub model: Molecules,
    /// If true, rotation is computed.
    pub rotation: bool,
    /// If true, vibration is computed.
    pub vibration: bool,
    /// Definition of a collision number Z.
    pub z_definition: ZDefinition,
    /// Source of the rotational collision number with a `species_file`: `"constant"`, its column 1/Z, or `"variable"`, Z_inf and T*
    /// of `vss_file`.
    #[serde(skip_serializing_if = "Relax::is_constant")]
    pub relax: Relax,
    /// Pairs of species that do not take the mean of theirs.
    pub pairs: Vec<PairConfig>,
    /// Choice of the collision partner. If left out: the nearest neighbour in cells wider than the free path, a random one
    /// elsewhere.
    pub partner: Partner,
    /// If true, vibration relaxes as Millikan and White have it, with Park's limit, in species without a `z_vibration`.
    pub millikan_white: bool,
}

impl Default for CollisionConfig {
    fn default() -> Self {
        Self {
            scheme: Scheme::default(),
            model: Molecules::default(),
            rotation: true,
            vibration: false,
            z_definition: ZDefinition::default(),
            relax: Relax::default(),
            pairs: Vec::new(),
            partner: Partner::default(),
            millikan_white: false,
        }
    }
}

/// A pair of species.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PairConfig {
    /// Names of the two.
    pub species: [String; 2],
    /// Diameter at the reference temperature, m.
    pub diameter: f64,
    /// Exponent of the viscosity.
    pub omega: f64,
    /// Exponent of the deflection.
    #[serde(default = "one")]
    pub alpha: f64,
    /// Reference temperature, K.
    #[serde(default = "t_ref")]
    pub t_ref: f64,
}

fn t_ref() -> f64 {
    crate::gas::table::T_REF
}

/// A number, or an expression of `x` and `y` in m.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Value {
    /// Constant value.
    Number(f64),
    /// An expression of `x` and `y`.
    Expression(String),
}

/// The gas at the start. What is left out is that of `gas`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct InitialConfig {
    /// Number density, 1/m^3; 0 begins with a vacuum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub density: Option<Value>,
    /// Temperature, K.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Value>,
    /// Temperatures of the motion along x, y and z, K, in place of `temperature`: a gas out of equilibrium. Internal modes have
    /// `internal_temperature`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperatures: Option<[f64; 3]>,
    /// Temperature of rotation and vibration, K.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub internal_temperature: Option<f64>,
    /// Velocity, m/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub velocity: Option<[Value; 3]>,
}

/// Schedule and method of averages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SamplingConfig {
    /// First step that counts: by then the flow should be steady. `"auto"` looks for it; half of the steps if left out.
    #[serde(with = "start", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<SampleStart>")]
    pub start: Option<u64>,
    /// Steps from one sample to the next.
    pub every: u64,
    /// Steps after which the averages are written and begin anew, for flows that are not steady; one average if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Parts of the sampling time, or of a window, whose means give the error bars: 2 to 1000.
    pub batches: u64,
    /// Steps between two audits of particles, energy and momentum; a hundredth of the steps, 10 at least, if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<u64>,
}

impl Default for SamplingConfig {
    fn default() -> Self {
        Self { start: None, every: 1, window: None, batches: 16, audit: None }
    }
}

/// As `sampling.start`: the start is looked for.
pub const AUTO: u64 = u64::MAX;

/// A step, or the word for looking for it.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum SampleStart {
    /// A step.
    Step(u64),
    /// `"auto"`.
    Word(StartWord),
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum StartWord {
    Auto,
}

/// Serialisation of the first sampled step.
mod start {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{AUTO, SampleStart, StartWord};

    #[expect(clippy::ref_option, reason = "serde's signature")]
    pub(super) fn serialize<S: Serializer>(start: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
        start.map(|s| if s == AUTO { SampleStart::Word(StartWord::Auto) } else { SampleStart::Step(s) }).serialize(serializer)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Option<u64>, D::Error> {
        Ok(Option::deserialize(deserializer)?.map(|s| match s {
            SampleStart::Step(step) => step,
            SampleStart::Word(StartWord::Auto) => AUTO,
        }))
    }
}

/// Variables of expressions.
pub const COORDINATES: [&str; 2] = ["x", "y"];

impl Config {
    /// A periodic box of one gas with everything else left to the solver.
    pub fn new(cells: Vec<usize>, size: Vec<f64>, species: &str, density: f64, temperature: f64) -> Self {
        Self {
            dt: 1e-9,
            steps: 1,
            weight: None,
            particles_per_cell: Some(10.0),
            velocity_components: 3,
            cell_weights: None,
            grid: GridConfig { cells, size, origin: Vec::new() },
            gas: GasConfig { density, temperature, velocity: [0.0; 3] },
            species: vec![SpeciesConfig::named(species)],
            species_file: None,
            vibration_file: None,
            vss_file: None,
            collisions: CollisionConfig::default(),
            boundary: Boundary::default(),
            bodies: Vec::new(),
            sources: Vec::new(),
            initial: InitialConfig::default(),
            sampling: SamplingConfig::default(),
        }
    }

    /// Space dimensions.
    pub fn dimensions(&self) -> usize {
        self.grid.cells.len()
    }

    /// The domain. The grid of the input must be sound.
    pub fn domain(&self) -> Grid {
        let g = &self.grid;
        let cells = [g.cells[0], g.cells.get(1).copied().unwrap_or(1)];
        let size = [g.size[0], g.size.get(1).copied().unwrap_or(1.0)];
        let h = [0, 1].map(|d| size[d] / cells[d] as f64);
        Grid { cells, h, origin: [0, 1].map(|d| g.origin.get(d).copied().unwrap_or(0.0)), dimensions: g.cells.len() }
    }

    /// True if gas flows through a side with a given pressure or mass flow.
    pub fn follows(&self) -> bool {
        let b = &self.boundary;
        let all = [&b.all, &b.x, &b.y, &b.x_lo, &b.x_hi, &b.y_lo, &b.y_hi];
        all.into_iter().flatten().any(|s| matches!(s, SideConfig::Outlet(_) | SideConfig::Inlet(_)))
    }

    /// First step that is sampled; [`AUTO`] where it is looked for.
    pub fn sampling_start(&self) -> u64 {
        self.sampling.start.unwrap_or(self.steps / 2)
    }

    /// Constants of expressions: `lx`, `ly`, `hx`, `hy`.
    pub fn expression(&self, path: &str, text: &str) -> Result<Expr, Problem> {
        let grid = self.domain();
        let constants = [("lx", grid.length(0)), ("hx", grid.h[0]), ("ly", grid.length(1)), ("hy", grid.h[1])];
        Expr::parse_with(text, &COORDINATES, &constants).map_err(|e| e.problem(path))
    }

    /// An expression of a position on an outline and the way along it, with the same constants.
    pub fn along(&self, path: &str, text: &str) -> Result<Expr, Problem> {
        let grid = self.domain();
        let constants = [("lx", grid.length(0)), ("hx", grid.h[0]), ("ly", grid.length(1)), ("hy", grid.h[1])];
        Expr::parse_with(text, &["x", "y", "s"], &constants).map_err(|e| e.problem(path))
    }

    /// Every problem that can be seen without allocating anything, paths relative to this table.
    pub fn check(&self) -> Vec<Problem> {
        check::all(self)
    }
}
