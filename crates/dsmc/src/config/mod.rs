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
use crate::gas::vibration::DEGENERACY;
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
    /// Time step, s: a fraction of the mean collision time and of a cell's transit time.
    pub dt: f64,
    /// Number of steps.
    pub steps: u64,
    /// Molecules per particle; or give `particles_per_cell`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// Particles in a cell at the density of `gas`; or give `weight`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub particles_per_cell: Option<f64>,
    /// Velocity components: 3, or 2 for discs that move in the plane alone (atoms only).
    #[serde(default = "three", skip_serializing_if = "is_three")]
    pub velocity_components: u32,
    /// Molecules of a particle over `weight` by cell: an expression of `x`, `y` at the cell's middle, above 0; default 1.
    /// Particles are doubled or removed at random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell_weights: Option<String>,
    /// The cells.
    pub grid: GridConfig,
    /// The gas that streams in, and at the start unless `initial` says otherwise.
    pub gas: GasConfig,
    /// The species: of the program's table (`zellige dsmc gas`), of `species_file`, or with `mass`, `diameter` and `omega`.
    pub species: Vec<SpeciesConfig>,
    /// SPARTA file of species, in place of the program's table; others in it are ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub species_file: Option<PathBuf>,
    /// SPARTA file of the modes of molecules with several, for `species_file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vibration_file: Option<PathBuf>,
    /// SPARTA file of cross-sections, for `species_file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vss_file: Option<PathBuf>,
    /// Collisions.
    #[serde(default)]
    pub collisions: CollisionConfig,
    /// Boundary conditions; default periodic.
    #[serde(default)]
    pub boundary: Boundary,
    /// Bodies in the flow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bodies: Vec<BodyConfig>,
    /// Lines that inject gas.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceConfig>,
    /// The gas at the start, if not that of `gas`.
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
    /// Cells per axis, `[nx]` or `[nx, ny]`. `[1]` with periodic sides is a box without space.
    #[schemars(inner(range(min = 1, max = 65_536)))]
    pub cells: Vec<usize>,
    /// Length per axis, m.
    pub size: Vec<f64>,
    /// Coordinates of the lower corner, m; default zero.
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
    /// Velocity, m/s.
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
    /// Mole fraction; scaled to a sum of 1.
    #[serde(default = "one")]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub fraction: f64,
    /// Mass of a molecule, kg.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mass: Option<f64>,
    /// Diameter at the reference temperature, m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diameter: Option<f64>,
    /// Exponent of the viscosity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.5, max = 1.4))]
    pub omega: Option<f64>,
    /// Exponent of the deflection; 1 for hard spheres.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.5, max = 4.0))]
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
    /// Characteristic temperature of the vibration, K; or a list of modes, at most four different.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vibration: Option<VibrationConfig>,
    /// Collision number of vibrational modes without their own.
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
    /// Characteristic temperature, K; at least 200 if one of several.
    pub theta: f64,
    /// Number of modes of this temperature.
    #[serde(default = "single")]
    #[schemars(range(min = 1, max = DEGENERACY))]
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
    /// Selection of pairs.
    pub scheme: Scheme,
    /// Molecular model of gases from the program's table.
    pub model: Molecules,
    /// Computes rotation.
    pub rotation: bool,
    /// Computes vibration.
    pub vibration: bool,
    /// Definition of a collision number Z.
    pub z_definition: ZDefinition,
    /// Rotational collision number with a `species_file`.
    #[serde(skip_serializing_if = "Relax::is_constant")]
    pub relax: Relax,
    /// Pairs of species with values other than the mean.
    pub pairs: Vec<PairConfig>,
    /// Choice of the collision partner.
    pub partner: Partner,
    /// Vibrational relaxation after Millikan and White with Park's limit in species without `z_vibration`.
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
    /// Temperatures along x, y and z, K, in place of `temperature`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperatures: Option<[f64; 3]>,
    /// That of rotation and vibration, K.
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
    /// First step sampled, when the flow is steady; `"auto"` finds it; default half of the steps.
    #[serde(with = "start", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<SampleStart>")]
    pub start: Option<u64>,
    /// Steps between samples.
    #[schemars(range(min = 1))]
    pub every: u64,
    /// Steps of an average, for unsteady flows; default one average.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Parts of the sampling time, or window, whose scatter gives the error bars.
    #[schemars(range(min = 2, max = 1000))]
    pub batches: u64,
    /// Steps between audits of particles, energy and momentum; default a fiftieth of the steps, at least 50.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
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
