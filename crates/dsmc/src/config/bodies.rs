//! Bodies in the flow.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sides::WallConfig;
use crate::geometry::{Gas, Shape};

/// A body: a shape, or the outlines of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BodyConfig {
    /// Name, for messages and results.
    pub name: String,
    /// The outline: `{ shape = "circle", centre = [0.0, 0.0], radius = 0.1 }`, or `ellipse`, `polygon`, `plate`, `airfoil`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outline: Option<Shape>,
    /// A file of outlines in SPARTA's or the seed's form, in place of `outline`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Longest segment, m: longer ones are cut into equal parts, each with loads of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest: Option<f64>,
    /// On which side the gas is.
    #[serde(default)]
    pub gas: Gas,
    /// What molecules meet.
    pub wall: WallConfig,
    /// Temperature along the wall in place of the wall's own, K: an expression of the place `x`, `y` of a segment's middle, m, and of the
    /// way `s` along the outline to there, m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<String>,
}
