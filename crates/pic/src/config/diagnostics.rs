//! Diagnostics and their schedules.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zellige_engine::error::Problem;
use zellige_engine::schedule::Schedule;

use super::species::SpeciesConfig;
use crate::diagnostics::histogram;
use crate::stages::Component;

/// Relative energy change that passes, if nothing is said.
pub const ENERGY_LIMIT: f64 = 0.1;
/// Relative difference of a mode from what is expected that passes, if nothing is said.
pub const TOLERANCE: f64 = 0.02;

/// The diagnostics. By default, energies are measured in every fourth step, and fields, charge and a phase space
/// `(x, ux)` of each species are written at the end.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DiagnosticsConfig {
    /// Steps between measurements of energies and momenta; default 4, more in a run of over a thousand steps, fewer in one of less
    /// than forty.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub energies_every: Option<u64>,
    /// Steps between measurements of `max |div E - rho|`, besides the end; default twenty in a run, at least 50 steps apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub charge_every: Option<u64>,
    /// Relative energy change that passes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0.0, "default" = ENERGY_LIMIT))]
    pub energy_limit: Option<f64>,
    /// Fields on the grid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<FieldsConfig>>,
    /// Histograms of particles; default `(x, ux)` of each mobile species.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase_space: Option<Vec<PhaseSpaceConfig>>,
    /// Particles one by one.
    pub particles: Vec<ParticlesConfig>,
    /// Tracks of tagged particles.
    pub tracks: Vec<TracksConfig>,
    /// Fourier spectra of a component.
    pub spectrum: Vec<SpectrumConfig>,
    /// Fourier modes.
    pub mode: Vec<ModeConfig>,
}

/// Results of every run, or of every run of some kind: fields, charges and curves.
const ALWAYS: [&str; 10] = ["E", "B", "J", "rho", "energies", "momentum", "energy_change", "ledger", "ledger_energy", "work"];

impl DiagnosticsConfig {
    /// Results of one name, of which only one could be a file.
    pub(super) fn named_twice(&self, species: &[SpeciesConfig]) -> Vec<Problem> {
        let key = |list: &str, i: usize, key: &str| format!("diagnostics.{list}[{i}].{key}");
        let spaces = self.phase_space.iter().flatten().enumerate();
        let spaces = spaces.map(|(i, p)| (key("phase_space", i, "name"), histogram::name(p), "give it a `name` of its own"));
        let modes = self.mode.iter().enumerate().map(|(i, m)| (key("mode", i, "name"), m.name.clone(), "give it a `name` of its own"));
        let join = "name a species once: `select` joins conditions by `or`";
        let particles = self.particles.iter().enumerate().map(|(i, p)| (key("particles", i, "species"), p.species.clone(), join));
        let tracks = self.tracks.iter().enumerate().map(|(i, t)| (key("tracks", i, "species"), format!("tracks_{}_x", t.species), join));
        let spectra = self.spectrum.iter().enumerate().map(|(i, s)| {
            let name = format!("{}_{}", if s.every.is_some() { "dispersion" } else { "spectrum" }, s.component.name());
            (key("spectrum", i, "component"), name, "name a component once")
        });
        let components = ALWAYS[..3].iter().flat_map(|field| ["x", "y", "z"].map(|axis| format!("{field}_{axis}")));
        // Those that come where none is asked for.
        let defaults = species.iter().filter(|s| s.mobile && self.phase_space.is_none()).map(|s| format!("{}_x_ux", s.name));
        let mut names: Vec<String> = ALWAYS.map(String::from).into_iter().chain(components).chain(defaults).collect();
        let mut problems = Vec::new();
        for (path, name, hint) in spaces.chain(particles).chain(tracks).chain(spectra).chain(modes) {
            if names.contains(&name) {
                problems.push(Problem::new(path, format!("another result has the name `{name}`")).hint(hint));
            } else {
                names.push(name);
            }
        }
        problems
    }
}

/// Fields at times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FieldsConfig {
    /// `ex` to `bz`, `jx` to `jz`, `charge` (all species) or `charge.NAME`.
    pub what: Vec<String>,
    /// Schedule, besides the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Schedule>,
}

/// A histogram over one or two axes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PhaseSpaceConfig {
    /// File-safe name; default species and axes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The species.
    pub species: String,
    /// One or two axes.
    #[schemars(length(min = 1, max = 2))]
    pub axes: Vec<BinConfig>,
    /// Factor on a particle's density, an expression as for axes; default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<String>,
    /// Only particles for which this expression is not 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select: Option<String>,
    /// Schedule, besides the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Schedule>,
}

/// An axis of a histogram.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BinConfig {
    /// Expression of `x`, `y`, `ux`, `uy`, `uz`, `gamma`, `weight`.
    pub value: String,
    /// Bins.
    #[serde(default = "bins")]
    #[schemars(range(min = 1, max = 8192))]
    pub bins: usize,
    /// `[from, to]`; default the domain for `x` and `y`, else the range of the values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
}

fn bins() -> usize {
    128
}

/// Particles one by one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParticlesConfig {
    /// The species.
    pub species: String,
    /// Only particles for which this expression is not 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select: Option<String>,
    /// Most particles written; more are thinned evenly.
    #[serde(default = "limit")]
    #[schemars(range(min = 1))]
    pub limit: usize,
    /// Schedule, besides the end of the run; default that of the fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Schedule>,
}

fn limit() -> usize {
    1_000_000
}

/// Tracks of particles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TracksConfig {
    /// The species, which must be `tagged`.
    pub species: String,
    /// Selection at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select: Option<String>,
    /// Most particles followed.
    #[serde(default = "followed")]
    #[schemars(range(min = 1, max = 10000))]
    pub limit: usize,
    /// Steps between two points.
    #[schemars(range(min = 1))]
    pub every: u64,
}

fn followed() -> usize {
    100
}

/// The spectrum of a component along x, averaged over y, in space alone or in space and time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpectrumConfig {
    /// The component.
    pub component: Component,
    /// Steps between samples in time; default a spectrum in space at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub every: Option<u64>,
    /// Largest wave number shown, w_n/c; default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k_max: Option<f64>,
    /// Largest frequency shown, w_n; default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omega_max: Option<f64>,
}

/// A Fourier mode of a component: its amplitude over time, and the rate or frequency of a stretch of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModeConfig {
    /// File-safe name.
    pub name: String,
    /// The component.
    pub component: Component,
    /// Wave numbers in periods of the box, `[m]` or `[m, n]`.
    pub mode: Vec<i64>,
    /// Quantity that is fitted.
    #[serde(default)]
    pub measure: Measure,
    /// Interval of the fit, 1/w_n; default the largest exponential change, for a frequency all of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit: Option<[f64; 2]>,
    /// Theoretical value: a number or an expression of constants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Expected>,
    /// Relative difference from it that passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0.0, "default" = TOLERANCE))]
    pub tolerance: Option<f64>,
    /// Steps between two samples.
    #[serde(default = "each")]
    #[schemars(range(min = 1))]
    pub every: u64,
}

fn each() -> u64 {
    1
}

/// A theoretical value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Expected {
    /// Constant value.
    Number(f64),
    /// An expression of constants.
    Expression(String),
}

/// Quantity that is fitted to a mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Growth rate of the amplitude (negative: decay).
    #[default]
    Growth,
    /// Angular frequency from zero crossings.
    Frequency,
}

/// Variables of expressions about particles.
pub const PARTICLE: [&str; 7] = ["x", "y", "ux", "uy", "uz", "gamma", "weight"];
