//! Numbers, expressions, arrays in files and density profiles.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number, an expression, or an array in a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Value {
    /// Constant value.
    Number(f64),
    /// An expression of `x` and `y`.
    Expression(String),
    /// An array in a file.
    File(Box<FileProfile>),
}

/// An array in a file, C order, shape `(nx)` or `(ny, nx)`, any number of values: linear between them, zero outside.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileProfile {
    /// An NPY file, or `file.h5:/path/to/dataset`; relative to the folder of the input.
    pub file: PathBuf,
    /// Coordinates of the first value, c/w_n; default that of the file, else half a spacing inside the corner of the grid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Vec<f64>>,
    /// Distance between values per axis, c/w_n; default that of the file, else the grid's length over the number of values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spacing: Option<Vec<f64>>,
    /// Factor on the values; default `unitSI` of the file, else 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
}

impl Value {
    /// The number, where it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(value) => Some(*value),
            Self::Expression(_) | Self::File(_) => None,
        }
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Expression(text.into())
    }
}

/// Number density of a species: a number, an expression of `x` and `y`, an array in a file, or a shape with its measures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Density {
    /// Constant value.
    Number(f64),
    /// An expression of `x` and `y`.
    Expression(String),
    /// A shape.
    Preset(Preset),
    /// An array in a file.
    File(Box<FileProfile>),
}

/// The shapes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(extend("x-synonyms" = { "box": "slab", "rectangle": "slab", "plateau": "slab", "linear": "ramp", "gradient": "ramp", "gauss": "gaussian", "normal": "gaussian", "circle": "sphere", "disc": "sphere", "disk": "sphere", "cylinder": "sphere", "droplet": "sphere", "heaviside": "step", "half_space": "step" }))]
pub enum Preset {
    /// Nothing before a plane, `value` behind it.
    Step(StepProfile),
    /// `value` between two planes.
    Slab(Slab),
    /// Linear between two planes; 0 before, `end` behind.
    Ramp(Ramp),
    /// `background + peak exp(-((x - x0)/sx)^2/2 - ((y - y0)/sy)^2/2)`.
    Gaussian(Gaussian),
    /// `value` inside a circle (a sphere's cut; in one dimension a slab).
    Sphere(Sphere),
}

/// An axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum AxisName {
    #[default]
    X,
    Y,
}

fn unit() -> f64 {
    1.0
}

/// A step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepProfile {
    /// Density behind the plane, n_0.
    #[serde(default = "unit")]
    pub value: f64,
    /// Position of the plane, c/w_n.
    pub from: f64,
    /// Normal axis.
    #[serde(default)]
    pub axis: AxisName,
}

/// A slab.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Slab {
    /// Density inside, n_0.
    #[serde(default = "unit")]
    pub value: f64,
    /// Lower end, c/w_n.
    pub from: f64,
    /// Upper end, c/w_n.
    pub to: f64,
    /// Axis across it.
    #[serde(default)]
    pub axis: AxisName,
}

/// A ramp.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ramp {
    /// Density at `from`, n_0.
    #[serde(default)]
    pub start: f64,
    /// Density at `to` and behind, n_0.
    #[serde(default = "unit")]
    pub end: f64,
    /// Start, c/w_n.
    pub from: f64,
    /// End, c/w_n.
    pub to: f64,
    /// Axis of the rise.
    #[serde(default)]
    pub axis: AxisName,
}

/// A hump.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gaussian {
    /// Height over the background, n_0.
    #[serde(default = "unit")]
    pub peak: f64,
    /// Density far away, n_0.
    #[serde(default)]
    pub background: f64,
    /// Centre, c/w_n: `[x, y]`; y is ignored in one dimension.
    pub centre: [f64; 2],
    /// Standard deviations, c/w_n: `[x, y]`, above 0.
    pub sigma: [f64; 2],
}

/// A ball.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sphere {
    /// Density inside, n_0.
    #[serde(default = "unit")]
    pub value: f64,
    /// Centre, c/w_n: `[x, y]`.
    pub centre: [f64; 2],
    /// Radius, c/w_n: above 0.
    pub radius: f64,
}

impl Preset {
    /// True if it has one value wherever it is not zero: then equal weights represent it, edges included.
    pub fn is_flat(&self) -> bool {
        matches!(self, Self::Step(_) | Self::Slab(_) | Self::Sphere(_))
    }

    /// The density at a position of a space of `dimensions`.
    pub fn at(&self, position: [f64; 2], dimensions: usize) -> f64 {
        let along = |axis: AxisName| position[axis as usize];
        let inside = |yes: bool, value: f64| if yes { value } else { 0.0 };
        let square =
            |centre: [f64; 2], scale: [f64; 2]| -> f64 { (0..dimensions).map(|d| ((position[d] - centre[d]) / scale[d]).powi(2)).sum() };
        match self {
            Self::Step(s) => inside(along(s.axis) >= s.from, s.value),
            Self::Slab(s) => inside((s.from..s.to).contains(&along(s.axis)), s.value),
            Self::Ramp(r) => {
                let part = ((along(r.axis) - r.from) / (r.to - r.from)).min(1.0);
                inside(part >= 0.0, r.start + (r.end - r.start) * part)
            }
            Self::Gaussian(g) => g.background + g.peak * (-0.5 * square(g.centre, g.sigma)).exp(),
            Self::Sphere(s) => inside(square(s.centre, [s.radius; 2]) < 1.0, s.value),
        }
    }

    /// Fault in the measures: the key and the sentence.
    pub fn fault(&self) -> Option<(&'static str, String)> {
        let numbers = match self {
            Self::Step(s) => vec![s.value, s.from],
            Self::Slab(s) => vec![s.value, s.from, s.to],
            Self::Ramp(r) => vec![r.start, r.end, r.from, r.to],
            Self::Gaussian(g) => vec![g.peak, g.background, g.centre[0], g.centre[1], g.sigma[0], g.sigma[1]],
            Self::Sphere(s) => vec![s.value, s.centre[0], s.centre[1], s.radius],
        };
        if let Some(bad) = numbers.iter().find(|v| !v.is_finite()) {
            return Some(("", format!("a measure is {bad}")));
        }
        match self {
            Self::Step(StepProfile { value, .. }) | Self::Slab(Slab { value, .. }) | Self::Sphere(Sphere { value, .. }) if *value < 0.0 => {
                Some(("value", format!("the density is {value}")))
            }
            Self::Slab(s) if s.to <= s.from => Some(("to", format!("the slab ends at {} and begins at {}", s.to, s.from))),
            Self::Ramp(r) if r.to <= r.from => Some(("to", format!("the ramp ends at {} and begins at {}", r.to, r.from))),
            Self::Ramp(r) if r.start.min(r.end) < 0.0 => Some(("start", "the density is negative at one end".into())),
            Self::Gaussian(g) if g.sigma[0].min(g.sigma[1]) <= 0.0 => Some(("sigma", "a standard deviation is not above 0".into())),
            Self::Gaussian(g) if g.background < 0.0 || g.background + g.peak < 0.0 => Some(("peak", "the density is negative".into())),
            Self::Sphere(s) if s.radius <= 0.0 => Some(("radius", format!("the radius is {}", s.radius))),
            _ => None,
        }
    }

    /// The name of the shape.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Step(_) => "step",
            Self::Slab(_) => "slab",
            Self::Ramp(_) => "ramp",
            Self::Gaussian(_) => "gaussian",
            Self::Sphere(_) => "sphere",
        }
    }
}
