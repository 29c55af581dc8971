//! Laser pulses: in the box from the start, or from an antenna on a side.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A pulse that runs along x. The centre of its envelope, or its front, is at `position` at time 0 (in the box) or passes the
/// antenna at the time `delay`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaserConfig {
    /// Peak of the normalised vector potential `e E / (m_e w c)`.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub a0: f64,
    /// Angular frequency, w_n (rad/s in SI units); or give `wavelength`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omega: Option<f64>,
    /// Wavelength in vacuum, c/w_n; or give `omega`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wavelength: Option<f64>,
    /// Source of the pulse.
    #[serde(default)]
    pub source: LaserSource,
    /// Direction of propagation: right is towards larger x.
    #[serde(default)]
    pub direction: LaserDirection,
    /// Position of the sheet of current in x, c/w_n; default two cells inside the lower side (its layer).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub antenna: Option<f64>,
    /// In the box: x of the centre of a Gaussian envelope, of the front of any other, c/w_n.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<f64>,
    /// From an antenna: time at which the centre or the front passes it, 1/w_n.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<f64>,
    /// Full width at half maximum of a Gaussian intensity, c/w_n or 1/w_n: a length in the box, a time from an antenna; or give
    /// `rise`, `flat`, `fall`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fwhm: Option<f64>,
    /// Length or time of the amplitude's rise as `sin^2`, c/w_n or 1/w_n.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rise: Option<f64>,
    /// Length or time at full amplitude, c/w_n or 1/w_n.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flat: Option<f64>,
    /// Length or time of the fall, c/w_n or 1/w_n.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fall: Option<f64>,
    /// Radius at the focus where the amplitude is `1/e`, c/w_n; default a plane wave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waist: Option<f64>,
    /// Position of the focus, c/w_n: `[x, y]`; default at the pulse's start (or the antenna), halfway up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<[f64; 2]>,
    /// Polarisation: linear along y, z or at an angle from y in degrees, or circular.
    #[serde(default)]
    pub polarisation: PolarisationConfig,
    /// Phase at the focus, degrees, as the envelope's centre (or front) passes it.
    #[serde(default)]
    pub phase: f64,
}

/// Source of a pulse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LaserSource {
    /// In the domain at the start.
    #[default]
    Box,
    /// Radiated by a current sheet.
    Antenna,
}

/// Direction of a pulse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LaserDirection {
    /// Larger x.
    #[default]
    Right,
    /// Smaller x.
    Left,
}

/// An angle, or a word.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PolarisationConfig {
    /// Linear, degrees from the y axis.
    Angle(f64),
    /// A word.
    Word(PolarisationName),
}

impl Default for PolarisationConfig {
    fn default() -> Self {
        Self::Word(PolarisationName::Y)
    }
}

/// The words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PolarisationName {
    /// Along y.
    Y,
    /// Along z.
    Z,
    /// Circular, E turning from y to z if the pulse runs to the right.
    Left,
    /// Circular, negative helicity.
    Right,
}
