//! Boundary conditions at the sides of the domain, and walls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::grid::Side;
use crate::walls::{Model, Wall};

/// Conditions per side. A single side goes before its axis, an axis before `all`; periodic if nothing is said.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Boundary {
    /// Every side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<SideConfig>,
    /// Both x sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x: Option<SideConfig>,
    /// Both y sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub y: Option<SideConfig>,
    /// The lower x side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x_lo: Option<SideConfig>,
    /// The upper x side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x_hi: Option<SideConfig>,
    /// The lower y side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub y_lo: Option<SideConfig>,
    /// The upper y side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub y_hi: Option<SideConfig>,
}

/// A word, a wall, or a gas that enters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SideConfig {
    /// By one word.
    Word(SideWord),
    /// `{ wall = { temperature = 300.0 } }`.
    Wall(SideWall),
    /// `{ inflow = { density = 1e20, temperature = 300.0, velocity = [100.0, 0.0, 0.0] } }`: an open side with a gas of its own.
    Inflow(SideInflow),
    /// `{ outlet = { pressure = 0.5 } }`: an open side with a pressure, where a slow flow leaves.
    Outlet(SideOutlet),
    /// `{ inlet = { pressure = 0.5, temperature = 300.0 } }` or with `mass_flow`: an open side where a slow flow enters.
    Inlet(SideInlet),
}

/// A side by one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(extend("x-synonyms" = { "mirror": "specular", "symmetry": "specular", "reflecting": "specular", "reflective": "specular", "outflow": "vacuum", "absorbing": "vacuum", "freestream": "stream", "open": "stream", "inflow": "stream", "cyclic": "periodic" }))]
pub enum SideWord {
    /// Continues at the opposite side.
    Periodic,
    /// A mirror, or a plane of symmetry.
    Specular,
    /// Particles that leave are removed.
    Vacuum,
    /// Open to `gas`, whose flux is injected.
    Stream,
}

/// A wall on a side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SideWall {
    /// The wall.
    pub wall: WallConfig,
    /// Temperature along the side, K: an expression of `x`, `y` and the distance `s` from its lower end at the middle of a cell
    /// face.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<String>,
}

impl From<WallConfig> for SideConfig {
    fn from(wall: WallConfig) -> Self {
        Self::Wall(SideWall { wall, temperature: None })
    }
}

/// A gas beyond a side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SideInflow {
    /// The gas.
    pub inflow: super::GasConfig,
}

/// A side where a slow flow leaves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SideOutlet {
    /// Conditions at the outlet.
    pub outlet: OutletConfig,
}

/// Conditions at an outlet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutletConfig {
    /// Pressure, Pa.
    pub pressure: f64,
    /// Steps of the average beside the side.
    #[serde(default = "memory")]
    #[schemars(range(min = 1.0, max = 1e6))]
    pub memory: f64,
}

/// A side where a slow flow enters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SideInlet {
    /// Conditions at the inlet.
    pub inlet: InletConfig,
}

/// Conditions at an inlet: the temperature, and one of the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InletConfig {
    /// Temperature, K.
    pub temperature: f64,
    /// Pressure, Pa.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure: Option<f64>,
    /// Net mass flow into the domain, kg/s per metre of depth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mass_flow: Option<f64>,
    /// Steps of the average beside the side.
    #[serde(default = "memory")]
    #[schemars(range(min = 1.0, max = 1e6))]
    pub memory: f64,
}

fn memory() -> f64 {
    500.0
}

/// A wall.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WallConfig {
    /// Reflection model of the wall.
    #[serde(default)]
    pub model: WallModel,
    /// Temperature, K; not needed by a specular wall.
    #[serde(default = "room")]
    pub temperature: f64,
    /// Velocity in its plane, m/s.
    #[serde(default)]
    pub velocity: [f64; 3],
    /// Fraction of molecules that a diffuse wall accommodates; others reflect specularly.
    #[serde(default = "one")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub accommodation: f64,
    /// Accommodation of normal energy (CLL).
    #[serde(default = "one")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub normal: f64,
    /// Accommodation of tangential momentum (CLL).
    #[serde(default = "one")]
    #[schemars(range(min = 0.0, max = 2.0))]
    pub tangential: f64,
}

fn room() -> f64 {
    300.0
}

fn one() -> f64 {
    1.0
}

/// Reflection of molecules from a wall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(extend("x-synonyms" = { "mirror": "specular", "reflecting": "specular", "maxwell": "diffuse", "thermal": "diffuse", "cercignani_lampis_lord": "cll", "cercignani_lampis": "cll" }))]
pub enum WallModel {
    /// Mirror reflection.
    Specular,
    /// At the wall's temperature.
    #[default]
    Diffuse,
    /// Cercignani, Lampis and Lord.
    Cll,
}

impl WallConfig {
    /// A diffuse wall.
    pub fn diffuse(temperature: f64, velocity: [f64; 3]) -> Self {
        Self { model: WallModel::Diffuse, temperature, velocity, accommodation: 1.0, normal: 1.0, tangential: 1.0 }
    }

    /// The wall.
    pub fn wall(&self) -> Wall {
        let model = match self.model {
            WallModel::Specular => Model::Specular,
            WallModel::Diffuse => Model::Diffuse { accommodation: self.accommodation },
            WallModel::Cll => Model::Cll { normal: self.normal, tangential: self.tangential },
        };
        Wall { model, temperature: self.temperature, velocity: self.velocity }
    }
}

impl Boundary {
    /// Boundary condition of a side, with its key in the input.
    pub fn side(&self, side: Side) -> (SideConfig, String) {
        let singles = [&self.x_lo, &self.x_hi, &self.y_lo, &self.y_hi];
        let axis = ["x", "y"][side.axis];
        [
            (singles[side.index()], format!("boundary.{}", side.name())),
            ([&self.x, &self.y][side.axis], format!("boundary.{axis}")),
            (&self.all, "boundary.all".to_owned()),
        ]
        .into_iter()
        .find_map(|(found, path)| found.clone().map(|s| (s, path)))
        .unwrap_or((SideConfig::Word(SideWord::Periodic), "boundary".into()))
    }
}
