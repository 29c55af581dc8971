//! The `[poisson]` table of the input, as typed. [`Config::check`] finds everything that is wrong with it before
//! anything is allocated; [`crate::setup`] turns it into a [`crate::problem::Problem`].
//!
//! ```toml
//! [poisson]
//! rhs = "exp(-((x - 12)^2 + (y - 16)^2)/2)"
//! boundary = { x = "periodic", y_lo = { dirichlet = "sin(2*pi*x/lx)" }, y_hi = { neumann = 0.5 } }
//! [poisson.grid]
//! nodes = [1024, 1025]
//! size = [32.0, 32.0]
//! ```

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zellige_engine::error::Problem as Fault;
use zellige_engine::expr::Expr;

use crate::grid::Bc;
use crate::method::{MOST_SWEEPS, Method, Options, Relaxation, Tolerance};
use crate::problem::{Precision, mean_fault};
use crate::status::Norm;
use crate::step::Cycle;
use crate::truncation;

/// Poisson's equation `u_xx + u_yy (+ u_zz) = rhs` on a rectangle or a box.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The grid of nodes.
    pub grid: GridConfig,
    /// Right-hand side: a number, an expression, or `{ file = "rho.npy" }`; a file with one axis more in front is a batch.
    pub rhs: Source,
    /// Right-hand sides of a batch, numbered by `k` from 0; not needed with a stack in a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub batch: Option<usize>,
    /// Conditions per side; a side left out has `u = 0`.
    #[serde(default)]
    pub boundary: Boundary,
    /// First guess of the solution (warm start); default zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guess: Option<Source>,
    /// Method of solution.
    #[serde(default)]
    pub method: Method,
    /// The cycle of multigrid.
    #[serde(default = "Config::default_cycle")]
    pub cycle: Cycle,
    /// Sweeps before the coarse correction; default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = MOST_SWEEPS))]
    pub pre: Option<u32>,
    /// Sweeps after the coarse correction; default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = MOST_SWEEPS))]
    pub post: Option<u32>,
    /// The relaxation inside a cycle.
    #[serde(default)]
    pub smoother: Relaxation,
    /// Relaxation factor, above 0 and below 2, of smoother, SOR and Jacobi; default the best known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omega: Option<f64>,
    /// Most coarse grids; default as many as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coarse_levels: Option<u32>,
    /// Number format.
    #[serde(default)]
    pub precision: Precision,
    /// Residual relative to the right-hand side, 0 or more and below 1, or `"truncation"`.
    #[serde(default = "Config::default_tolerance")]
    pub tolerance: Tolerance,
    /// Absolute residual that suffices in any case; 0 for none.
    #[serde(default)]
    pub absolute: f64,
    /// Norm of residuals.
    #[serde(default)]
    pub norm: Norm,
    /// Most cycles, sweeps, or direct solutions and refinements; default ample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_cycles: Option<u64>,
    /// Mean of the solution where no side holds a value (all Neumann or periodic).
    #[serde(default)]
    pub mean: f64,
}

/// The grid of nodes; sides are nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GridConfig {
    /// Nodes per axis, `[M, N]` or `[M, N, K]`. A periodic axis counts each node once.
    #[schemars(inner(range(min = 3, max = 1_048_576)))]
    pub nodes: Vec<usize>,
    /// Length per axis, above 0. A periodic axis has its period.
    pub size: Vec<f64>,
    /// Coordinates of the first node; default zero.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origin: Vec<f64>,
}

/// Values over nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Source {
    /// One number for the whole domain.
    Number(f64),
    /// An expression of the coordinates.
    Expression(String),
    /// An array in a file.
    File(FileSource),
}

/// An array in a file, C order, shape `(N, M)` or `(K, N, M)`; on a side the shape of its nodes. In a batch of B also `(B, N, M)`
/// and so on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileSource {
    /// An NPY file, or `file.h5:/path/to/dataset`; relative to the folder of the input.
    pub file: PathBuf,
}

/// Conditions per side. A single side takes precedence over its axis, an axis over `all`.
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
    /// Both z sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub z: Option<SideConfig>,
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
    /// The lower z side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub z_lo: Option<SideConfig>,
    /// The upper z side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub z_hi: Option<SideConfig>,
}

/// The condition on a side: `"periodic"`, `"dirichlet"` and `"neumann"` (both with 0), or a table with the values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SideConfig {
    /// The kind alone; its values are zero.
    Kind(Bc),
    /// `{ dirichlet = VALUES }`.
    Dirichlet(DirichletConfig),
    /// `{ neumann = VALUES }`.
    Neumann(NeumannConfig),
}

/// `u` on a side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirichletConfig {
    /// Values: number, expression, or file.
    pub dirichlet: Source,
}

/// The outward derivative on a side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NeumannConfig {
    /// Values: number, expression, or file.
    pub neumann: Source,
}

/// The condition of a side with its key.
pub(crate) struct SideRef<'a> {
    /// Kind.
    pub bc: Bc,
    /// Values; `None` for zero.
    pub values: Option<&'a Source>,
    /// Path in the solver's table; empty for the default.
    pub path: String,
}

const AXES: [&str; 3] = ["x", "y", "z"];
/// Length and spacing per axis, in expressions.
const CONSTANTS: [(&str, &str); 3] = [("lx", "hx"), ("ly", "hy"), ("lz", "hz")];
/// The number of a right-hand side, in expressions of a batch.
pub(crate) const COUNTER: &str = "k";

impl Boundary {
    /// The condition that holds on side `end` of axis `d`.
    pub(crate) fn side(&self, d: usize, end: usize) -> SideRef<'_> {
        let single = [[&self.x_lo, &self.x_hi], [&self.y_lo, &self.y_hi], [&self.z_lo, &self.z_hi]][d][end];
        let axis = [&self.x, &self.y, &self.z][d];
        let name = format!("boundary.{}_{}", AXES[d], ["lo", "hi"][end]);
        let found = [(single, name), (axis, format!("boundary.{}", AXES[d])), (&self.all, "boundary.all".into())];
        let Some((side, path)) = found.into_iter().find_map(|(side, path)| side.as_ref().map(|s| (s, path))) else {
            return SideRef { bc: Bc::Dirichlet, values: None, path: String::new() };
        };
        match side {
            SideConfig::Kind(bc) => SideRef { bc: *bc, values: None, path },
            SideConfig::Dirichlet(s) => SideRef { bc: Bc::Dirichlet, values: Some(&s.dirichlet), path: format!("{path}.dirichlet") },
            SideConfig::Neumann(s) => SideRef { bc: Bc::Neumann, values: Some(&s.neumann), path: format!("{path}.neumann") },
        }
    }
}

impl Config {
    fn default_cycle() -> Cycle {
        Cycle::V
    }

    fn default_tolerance() -> Tolerance {
        Tolerance::Relative(1e-6)
    }

    /// Leaves everything to the solver, with `u = 0` on all sides.
    pub fn new(nodes: Vec<usize>, size: Vec<f64>, rhs: Source) -> Self {
        let Options { method, cycle, pre, post, smoother, omega, precision, tolerance, absolute, norm, max_cycles, .. } =
            Options::default();
        let grid = GridConfig { nodes, size, origin: Vec::new() };
        let (boundary, guess, coarse_levels, mean) = (Boundary::default(), None, None, 0.0);
        #[rustfmt::skip]
        let config = Self {
            grid, rhs, batch: None, boundary, guess, method, cycle, pre, post, smoother, omega, coarse_levels, precision, tolerance, absolute, norm, max_cycles, mean,
        };
        config
    }

    /// Options of the method, as the caller chose them.
    pub fn options(&self) -> Options {
        Options {
            method: self.method,
            cycle: self.cycle,
            pre: self.pre,
            post: self.post,
            smoother: self.smoother,
            omega: self.omega,
            coarse_levels: self.coarse_levels.map_or(usize::MAX, |n| n as usize),
            precision: self.precision,
            tolerance: self.tolerance,
            absolute: self.absolute,
            norm: self.norm,
            max_cycles: self.max_cycles,
        }
    }

    /// Number of axes.
    pub fn dimensions(&self) -> usize {
        self.grid.nodes.len()
    }

    /// Names of the variables of expressions: coordinates, and in a batch the number of the right-hand side behind them.
    pub(crate) fn variables(&self) -> Vec<&'static str> {
        let axes = &AXES[..self.dimensions().clamp(2, 3)];
        axes.iter().copied().chain(self.batch.map(|_| COUNTER)).collect()
    }

    /// Distance between nodes of axis `d`.
    pub(crate) fn spacing(&self, d: usize) -> f64 {
        let periodic = self.boundary.side(d, 0).bc == Bc::Periodic;
        self.grid.size[d] / (self.grid.nodes[d] - usize::from(!periodic)) as f64
    }

    /// Named constants of expressions: lengths and spacings.
    pub(crate) fn constants(&self) -> Vec<(&'static str, f64)> {
        let axes = self.dimensions().min(3).min(self.grid.size.len());
        (0..axes).flat_map(|d| [(CONSTANTS[d].0, self.grid.size[d]), (CONSTANTS[d].1, self.spacing(d))]).collect()
    }

    /// The names that expressions may use while the grid is wrong, so that their problems and its own are reported at once.
    fn placeholders(&self) -> Names {
        let axes = if self.dimensions() == 2 { 2 } else { 3 };
        let variables = AXES[..axes].iter().copied().chain(self.batch.map(|_| COUNTER)).collect();
        (variables, CONSTANTS[..axes].iter().flat_map(|(l, h)| [(*l, 1.0), (*h, 1.0)]).collect())
    }

    /// The equation is made of one over the square of a spacing: it has to be a number, and its own inverse too.
    fn size_fault(&self, d: usize) -> Option<Fault> {
        let widest = if self.precision == Precision::F32 { 1e18 } else { 1e150 };
        let h = self.spacing(d);
        if (1.0 / widest..=widest).contains(&h) {
            return None;
        }
        let message = format!("the spacing in {} is {h:e}, whose square cannot be represented in {}", AXES[d], self.precision);
        let fault = Fault::new("grid.size", message).allowed(format!("spacings of {:e} to {widest:e}", 1.0 / widest));
        Some(fault.hint("choose a unit of length near the size of the problem"))
    }

    /// Finds every problem that can be seen without allocating anything, paths relative to this table.
    pub fn check(&self) -> Vec<Fault> {
        let mut faults = zellige_engine::config::faults(self);
        faults.extend(self.grid.check());
        let of_grid = |faults: &[Fault]| faults.iter().any(|fault| fault.path.starts_with("grid."));
        if !of_grid(&faults) {
            faults.extend((0..self.dimensions()).filter_map(|d| self.size_fault(d)));
        }
        let names = if of_grid(&faults) { self.placeholders() } else { (self.variables(), self.constants()) };
        faults.extend(source_fault("rhs", &self.rhs, &names));
        faults.extend(self.guess.as_ref().and_then(|g| source_fault("guess", g, &names)));
        let mut seen = Vec::new();
        for d in 0..self.dimensions().min(3) {
            let [lo, hi] = [0, 1].map(|end| self.boundary.side(d, end));
            if (lo.bc == Bc::Periodic) != (hi.bc == Bc::Periodic) {
                let (periodic, other) = if lo.bc == Bc::Periodic { (&lo, "hi") } else { (&hi, "lo") };
                let fault = Fault::new(&periodic.path, format!("the {} axis is periodic on one side but not at `{0}_{other}`", AXES[d]));
                faults.push(fault.hint(format!("write `{} = \"periodic\"` for both sides", AXES[d])));
            }
            for side in [lo, hi] {
                if let Some(values) = side.values.filter(|_| !seen.contains(&side.path)) {
                    faults.extend(source_fault(&side.path, values, &names));
                }
                seen.push(side.path);
            }
        }
        let z = [("z", &self.boundary.z), ("z_lo", &self.boundary.z_lo), ("z_hi", &self.boundary.z_hi)];
        for (key, _) in z.iter().filter(|(_, side)| self.dimensions() == 2 && side.is_some()) {
            let fault = Fault::new(format!("boundary.{key}"), "the grid has no z axis");
            faults.push(fault.hint("leave it out, or give three `nodes` and three lengths"));
        }
        if self.mean != 0.0
            && (0..self.dimensions().min(3)).any(|d| [0, 1].map(|end| self.boundary.side(d, end).bc).contains(&Bc::Dirichlet))
        {
            faults.push(mean_fault());
        }
        if self.guess.is_some() && self.method == Method::Fmg {
            let fault = Fault::new("guess", "full multigrid starts from the coarsest grid and would drop the first guess");
            faults.push(fault.hint("use `method = \"multigrid\"`, or leave `guess` out"));
        }
        if self.guess.is_some() && self.tolerance == Tolerance::TRUNCATION && self.method != Method::Fmg {
            let fault = Fault::new("guess", "`tolerance = \"truncation\"` means full multigrid, which would drop the first guess");
            faults.push(fault.hint("give a number as `tolerance`, or leave `guess` out"));
        }
        if self.tolerance == Tolerance::TRUNCATION {
            faults.extend(truncation::too_few_nodes(&self.grid.nodes));
        }
        let options: Vec<_> = self.options().check().into_iter().filter(|fault| faults.iter().all(|f| f.path != fault.path)).collect();
        faults.extend(options);
        faults
    }
}

/// Variables and constants of expressions.
type Names = (Vec<&'static str>, Vec<(&'static str, f64)>);

/// Finds the fault of a source, as far as its text shows.
fn source_fault(path: &str, source: &Source, (variables, constants): &Names) -> Option<Fault> {
    match source {
        Source::Expression(text) => Expr::parse_with(text, variables, constants).err().map(|e| {
            let counts = !variables.contains(&COUNTER) && text.get(e.span.clone()) == Some(COUNTER);
            let fault = e.problem(path);
            if counts { fault.hint("`k` is the number of a right-hand side where `batch` says how many there are") } else { fault }
        }),
        Source::File(source) if source.file.as_os_str().is_empty() => Some(Fault::new(format!("{path}.file"), "the name is empty")),
        _ => None,
    }
}

impl GridConfig {
    fn check(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let axes = self.nodes.len();
        if !(2..=3).contains(&axes) {
            faults.push(Fault::new("grid.nodes", format!("{axes} numbers")).allowed("2 or 3, one per axis"));
            return faults;
        }
        if self.size.len() != axes {
            faults.push(Fault::new("grid.size", format!("{} numbers for {axes} axes", self.size.len())).allowed(format!("{axes} lengths")));
        }
        for (axis, length) in AXES.iter().zip(&self.size).filter(|(_, l)| !(l.is_finite() && **l > 0.0)) {
            faults.push(Fault::new("grid.size", format!("the length in {axis} is {length}")).allowed("finite and above 0"));
        }
        if !self.origin.is_empty() && self.origin.len() != axes {
            faults.push(
                Fault::new("grid.origin", format!("{} numbers for {axes} axes", self.origin.len())).allowed(format!("{axes} coordinates")),
            );
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn expressions_are_read_also_where_the_grid_that_they_refer_to_is_wrong() {
        for (nodes, size) in [(json!([2, 9]), json!([0, 1])), (json!([5]), json!([1])), (json!([5, 5, 5]), json!([1, 1]))] {
            let config: Config = serde_json::from_value(json!({
                "grid": { "nodes": nodes, "size": size }, "rhs": "lx*(x - ", "guess": "1/hx + ly*y",
                "boundary": { "x": { "dirichlet": "sin(w)" } },
            }))
            .unwrap();
            let faults = config.check();
            let (grid, others): (Vec<&str>, Vec<&str>) = faults.iter().map(|f| f.path.as_str()).partition(|p| p.starts_with("grid."));
            assert!(!grid.is_empty(), "{nodes}");
            assert_eq!(others, ["rhs", "boundary.x.dirichlet"], "{nodes}");
        }
    }
}
