//! Lines in the domain from which gas comes.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A line from which gas comes: given here, or by a source file of the seed's form.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SourceConfig {
    /// Ends of the line, m.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<[[f64; 2]; 2]>,
    /// Direction of the gas, of any length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<[f64; 2]>,
    /// Temperature, K.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Velocity of the stream, m/s.
    pub velocity: [f64; 3],
    /// Number density of a steady flux, 1/m^3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub density: Option<f64>,
    /// Steps and particles injected in them, e.g. `[[0, 1000], [50, 200]]`, with or without `density`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub schedule: Vec<[u64; 2]>,
    /// A source file in place of the above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Schedule of a source file without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule_file: Option<PathBuf>,
}
