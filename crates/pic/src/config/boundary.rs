//! Boundary conditions: one word for fields and particles, or a word for each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::grid::{FieldSide, ParticleSide};

/// Conditions per side. A single side goes before its axis, an axis before `all`; periodic if nothing is said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Boundary {
    /// Cells of an absorbing layer.
    #[schemars(range(min = 4, max = 256))]
    pub layer: usize,
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

impl Default for Boundary {
    fn default() -> Self {
        Self { layer: 16, all: None, x: None, y: None, x_lo: None, x_hi: None, y_lo: None, y_hi: None }
    }
}

/// A word for both, or a table.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SideConfig {
    /// Fields and particles by one word.
    Both(SideName),
    /// One by one.
    Each(SidePair),
}

/// A word for both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(extend("x-synonyms" = { "open": "absorbing", "pml": "absorbing", "cpml": "absorbing", "outflow": "absorbing", "silver_muller": "absorbing", "reflective": "reflecting", "reflect": "reflecting", "mirror": "reflecting", "conductor": "reflecting", "pec": "reflecting", "cyclic": "periodic" }))]
pub enum SideName {
    /// Continues at the opposite side.
    Periodic,
    /// A conductor that reflects particles.
    Reflecting,
    /// An absorbing layer; particles are removed.
    Absorbing,
}

/// A word each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SidePair {
    /// Condition for fields.
    pub fields: FieldSide,
    /// Condition for particles.
    pub particles: ParticleSide,
}

/// Boundary condition of a side, with its key in the input.
#[derive(Debug, Clone, PartialEq)]
pub struct SideRef {
    /// Fields.
    pub fields: FieldSide,
    /// Particles.
    pub particles: ParticleSide,
    /// Path in the solver's table.
    pub path: String,
}

impl Boundary {
    /// Boundary condition at side `end` of axis `d`.
    pub fn side(&self, d: usize, end: usize) -> SideRef {
        let axis = ["x", "y"][d];
        let single = [[&self.x_lo, &self.x_hi], [&self.y_lo, &self.y_hi]][d][end];
        let name = format!("boundary.{axis}_{}", ["lo", "hi"][end]);
        let found = [(single, name), ([&self.x, &self.y][d], format!("boundary.{axis}")), (&self.all, "boundary.all".into())];
        let (side, path) = found
            .into_iter()
            .find_map(|(side, path)| side.map(|s| (s, path)))
            .unwrap_or((SideConfig::Both(SideName::Periodic), "boundary".into()));
        let (fields, particles) = match side {
            SideConfig::Both(SideName::Periodic) => (FieldSide::Periodic, ParticleSide::Periodic),
            SideConfig::Both(SideName::Reflecting) => (FieldSide::Pec, ParticleSide::Reflect),
            SideConfig::Both(SideName::Absorbing) => (FieldSide::Absorbing, ParticleSide::Absorb),
            SideConfig::Each(pair) => (pair.fields, pair.particles),
        };
        SideRef { fields, particles, path }
    }
}
