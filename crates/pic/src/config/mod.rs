//! The `[pic]` table of the input, as typed. [`Config::check`] finds everything that is wrong with it before anything is
//! allocated; [`crate::setup`] turns it into a plasma.
//!
//! ```toml
//! [pic]
//! courant = 0.6
//! t_end = 40.0
//! boundary.all = "periodic"
//! [pic.grid]
//! cells = [128]
//! size = [6.4]
//! [[pic.species]]
//! name = "electrons"
//! particles_per_cell = 64
//! density = "1 + 0.01*cos(2*pi*x/lx)"
//! momentum = { thermal = 0.01 }
//! ```

pub mod boundary;
mod check;
pub(crate) mod check_laser;
pub mod diagnostics;
pub mod laser;
pub mod profile;
pub mod species;
pub mod units;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zellige_engine::error::Problem;
use zellige_engine::expr::Expr;

use crate::grid::{FieldSide, Grid};
use crate::stages::{Precision, Smoothing};

pub use boundary::Boundary;
pub use diagnostics::DiagnosticsConfig;
pub use laser::LaserConfig;
pub use profile::{Density, Preset, Value};
pub use species::{Momentum, SpeciesConfig};
pub use units::{Units, UnitsConfig};

/// A relativistic plasma: Maxwell's equations on a Yee grid, the Lorentz force on macro-particles. Lengths in `c/w_n`,
/// times in `1/w_n`, densities in `n_0`, fields in `m_e c w_n/e`, unless `units` says SI.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Time step, 1/w_n; or give `courant`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dt: Option<f64>,
    /// Time step over the largest stable one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0.0, "exclusiveMaximum" = 1.0, "default" = DEFAULT_COURANT))]
    pub courant: Option<f64>,
    /// Time at which the run ends, 1/w_n; or give `steps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub t_end: Option<f64>,
    /// Number of steps; or give `t_end`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Number format.
    #[serde(default)]
    pub precision: Precision,
    /// Order of the particles' shape: 1 (linear) or 2 (quadratic).
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 2))]
    pub order: u32,
    /// Units: `{ density = 1e24 }` is SI, with temperatures in eV.
    #[serde(default)]
    pub units: UnitsConfig,
    /// Requires bitwise identical runs, which every device gives in any case.
    #[serde(default)]
    pub deterministic: bool,
    /// Cells of a tile of particles, `[x, y]`; default the device's choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tile: Option<[usize; 2]>,
    /// The Yee grid.
    pub grid: GridConfig,
    /// Boundary conditions; default periodic.
    #[serde(default)]
    pub boundary: Boundary,
    /// A window that moves along x at the speed of light; new plasma enters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowConfig>,
    /// Binomial filter of the current.
    #[serde(default)]
    pub smoothing: SmoothingConfig,
    /// The fields at the start; default zero.
    #[serde(default)]
    pub initial: InitialConfig,
    /// Fields that act on particles and are not advanced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<FieldValues>,
    /// The species.
    #[serde(default)]
    pub species: Vec<SpeciesConfig>,
    /// Laser pulses.
    #[serde(default)]
    pub laser: Vec<LaserConfig>,
    /// Diagnostics and their schedules.
    #[serde(default)]
    pub diagnostics: DiagnosticsConfig,
}

fn one() -> u32 {
    1
}

/// The Yee grid: a line of cells or a plane.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GridConfig {
    /// Cells per axis, `[nx]` or `[nx, ny]`.
    #[schemars(inner(range(min = 1, max = 1_048_576)))]
    pub cells: Vec<usize>,
    /// Length per axis, c/w_n: above 0.
    pub size: Vec<f64>,
    /// Coordinates of the lower corner, c/w_n; default zero.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origin: Vec<f64>,
}

/// The window: once it moves, everything moves back one cell for each cell that light advances, and new plasma enters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WindowConfig {
    /// Time at which it begins to move, 1/w_n: 0 or more.
    #[serde(default)]
    pub start: f64,
}

/// The filter per axis; `all` holds for both.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SmoothingConfig {
    /// Both axes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<Smoothing>,
    /// Along x.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x: Option<Smoothing>,
    /// Along y.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub y: Option<Smoothing>,
}

/// Initial fields.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct InitialConfig {
    /// E solves `div E = rho` of the loaded particles; otherwise a background makes the plasma neutral.
    pub poisson: bool,
    /// E and B at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<FieldValues>,
}

/// Six components, each a number or an expression of `x` and `y`; default zero.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FieldValues {
    /// E along x, m_e c w_n/e.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ex: Option<Value>,
    /// E along y, m_e c w_n/e.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ey: Option<Value>,
    /// E along z, m_e c w_n/e.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ez: Option<Value>,
    /// B along x, m_e c w_n/e.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bx: Option<Value>,
    /// B along y, m_e c w_n/e.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<Value>,
    /// B along z, m_e c w_n/e.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bz: Option<Value>,
}

impl FieldValues {
    /// Names and values, in the order of [`crate::stages::Component`].
    pub fn components(&self) -> [(&'static str, Option<&Value>); 6] {
        let values = [&self.ex, &self.ey, &self.ez, &self.bx, &self.by, &self.bz];
        ["ex", "ey", "ez", "bx", "by", "bz"].into_iter().zip(values.map(Option::as_ref)).collect::<Vec<_>>().try_into().unwrap_or_default()
    }
}

impl Config {
    /// One species-free box with everything else left to the solver.
    pub fn new(cells: Vec<usize>, size: Vec<f64>) -> Self {
        Self {
            dt: None,
            courant: None,
            t_end: None,
            steps: None,
            precision: Precision::default(),
            order: 1,
            units: UnitsConfig::default(),
            deterministic: false,
            tile: None,
            grid: GridConfig { cells, size, origin: Vec::new() },
            boundary: Boundary::default(),
            window: None,
            smoothing: SmoothingConfig::default(),
            initial: InitialConfig::default(),
            external: None,
            species: Vec::new(),
            laser: Vec::new(),
            diagnostics: DiagnosticsConfig::default(),
        }
    }

    /// Space dimensions.
    pub fn dimensions(&self) -> usize {
        self.grid.cells.len()
    }

    /// The scales of the units that the input is in.
    pub fn scales(&self) -> Units {
        self.units.scales()
    }

    /// Size of a cell in the input's units; the second axis of one dimension has the size of the first.
    pub fn spacing(&self, axis: usize) -> f64 {
        let axis = axis.min(self.grid.cells.len().min(self.grid.size.len()).saturating_sub(1));
        self.grid.size[axis] / self.grid.cells[axis] as f64
    }

    /// Lower corner in the input's units.
    pub fn origin(&self, axis: usize) -> f64 {
        self.grid.origin.get(axis).copied().unwrap_or(0.0)
    }

    /// The domain in normalised units. The grid and the times of the input must be sound.
    pub fn domain(&self) -> Grid {
        let units = self.scales();
        let dimensions = self.dimensions();
        let h = [0, 1].map(|d| self.spacing(d) / units.length);
        let side = |d: usize, end: usize| if d < dimensions { self.boundary.side(d, end).fields } else { FieldSide::Periodic };
        let wall = |d: usize, end: usize| {
            if d < dimensions { self.boundary.side(d, end).particles } else { crate::grid::ParticleSide::Periodic }
        };
        let mut grid = Grid {
            cells: [self.grid.cells[0], self.grid.cells.get(1).copied().unwrap_or(1)],
            h,
            origin: [0, 1].map(|d| self.origin(d) / units.length),
            dt: 0.0,
            fields: [0, 1].map(|d| [0, 1].map(|end| side(d, end))),
            particles: [0, 1].map(|d| [0, 1].map(|end| wall(d, end))),
            dimensions,
            part: None,
        };
        grid.dt = self.dt.map_or_else(|| self.courant.unwrap_or(DEFAULT_COURANT) * grid.courant_limit(), |dt| dt / units.time);
        grid
    }

    /// Number of steps of the run: to `t_end` and not a step less.
    pub fn step_count(&self) -> u64 {
        match (self.steps, self.t_end) {
            (Some(steps), _) => steps,
            // An end that is a multiple of the step but for rounding takes no step more.
            (None, Some(end)) => (end / self.scales().time / self.domain().dt * (1.0 - 1e-12)).ceil() as u64,
            (None, None) => 0,
        }
    }

    /// Filter of an axis; an axis that is not there has none.
    pub fn smoothing(&self, axis: usize) -> Smoothing {
        let single = if axis == 0 { self.smoothing.x } else { self.smoothing.y };
        if axis < self.dimensions() { single.or(self.smoothing.all).unwrap_or_default() } else { Smoothing::default() }
    }

    /// Named constants of expressions: lengths, spacings and the time step, in the input's units.
    pub fn constants(&self) -> Vec<(&'static str, f64)> {
        let names = [("lx", "hx"), ("ly", "hy")];
        let axes = self.dimensions().min(2).min(self.grid.size.len());
        let mut all: Vec<_> = (0..axes).flat_map(|d| [(names[d].0, self.grid.size[d]), (names[d].1, self.spacing(d))]).collect();
        if axes > 0 {
            all.push(("dt", self.domain().dt * self.scales().time));
        }
        all
    }

    /// An expression of `variables` and of the constants.
    pub fn expression(&self, path: &str, text: &str, variables: &[&str]) -> Result<Expr, Problem> {
        Expr::parse_with(text, variables, &self.constants()).map_err(|e| e.problem(path))
    }

    /// Every problem that can be seen without allocating anything, paths relative to this table.
    pub fn check(&self) -> Vec<Problem> {
        check::all(self)
    }
}

/// Part of the stability limit that the time step is, if nothing is said.
pub const DEFAULT_COURANT: f64 = 0.95;
/// Variables of profiles and fields.
pub const COORDINATES: [&str; 2] = ["x", "y"];
