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
    /// The outline, e.g. `{ shape = "circle", centre = [0.0, 0.0], radius = 0.1 }`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outline: Option<Shape>,
    /// File of outlines (SPARTA's or older form) in place of `outline`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Longest segment, m: longer ones are cut into equal parts, each with its loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_segment_length: Option<f64>,
    /// Side of the gas.
    #[serde(default)]
    pub gas: Gas,
    /// Wall of the body.
    pub wall: WallConfig,
    /// Walls by line type of a SPARTA file (1 if none), e.g. `{ 2 = { temperature = 500.0 } }`; `wall` is for the type left
    /// out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub walls: BTreeMap<String, WallConfig>,
    /// Temperature along the wall, K: an expression of `x`, `y` and the way `s` along the outline at the middle of a segment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<String>,
    /// Reference of the loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<ReferenceConfig>,
}

/// Reference point and length of the loads on a body.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReferenceConfig {
    /// Point of the moment, m (an airfoil's quarter chord); default the middle of the bounding box.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<[f64; 2]>,
    /// Length of drag and lift coefficients, m (an airfoil's chord); default the box's width across the stream.
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
