//! Bodies in the flow.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zellige_engine::error::Problem;

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
    /// Maximum segment length, m: longer segments are cut into equal parts, each with loads of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_segment_length: Option<f64>,
    /// On which side the gas is.
    #[serde(default)]
    pub gas: Gas,
    /// Wall of the body.
    pub wall: WallConfig,
    /// Walls of the types of a SPARTA file, by type, in place of `wall`: `walls = { 2 = { temperature = 500.0 } }`. A line without
    /// a type is of type 1. `wall` is for the type that is left.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub walls: BTreeMap<String, WallConfig>,
    /// Temperature along the wall in place of the wall's own, K: an expression of the position `x`, `y` of a segment's middle,
    /// m, and of the way `s` along the outline to there, m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<String>,
    /// Reference point and length of the loads, in place of those of the body's bounding box.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<ReferenceConfig>,
}

/// Reference point and length of the loads on a body.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReferenceConfig {
    /// The point that the moment is about, m: an airfoil's quarter of the chord. The middle of the box about the body if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<[f64; 2]>,
    /// Reference length of drag and lift coefficients, m: an airfoil's chord. The width of the box across the stream if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<f64>,
}

impl ReferenceConfig {
    /// First fault of it.
    pub(crate) fn fault(&self) -> Option<Problem> {
        if self.point.is_some_and(|p| p.iter().any(|x| !x.is_finite())) {
            return Some(Problem::new("", "`point` is not finite").allowed("a position in m"));
        }
        let length = self.length.filter(|l| !(l.is_finite() && *l > 0.0))?;
        Some(Problem::new("", format!("`length` is {length}")).allowed("a length above 0, in m"))
    }
}
