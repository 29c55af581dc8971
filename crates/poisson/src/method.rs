//! The methods, their options, and the choice of everything that was left open.
//!
//! Sources: Young, Iterative Solution of Large Linear Systems (1971), chapter 6 (optimal over-relaxation); Trottenberg,
//! Oosterlee and Schueller, Multigrid (2001), chapter 2; the measured factors are in docs/numerics.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zellige_engine::cuda::library;
use zellige_engine::device::Device;
use zellige_engine::error::{Error, Problem as Fault, Result};

use crate::estimate;
use crate::grid::Grid;
use crate::problem::Precision;
use crate::spectrum::Spectrum;
use crate::stages::Smoother;
use crate::status::{Criteria, ExpectedConvergence, Norm};
use crate::step::{Cycle, CyclePlan};
use crate::truncation::too_few_nodes;

pub use self::choice::{Choice, Scheme};

mod choice;

/// Method of solution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(extend("x-synonyms" = { "mg": "multigrid", "full_multigrid": "fmg", "successive_over_relaxation": "sor", "fft": "direct", "spectral": "direct", "dst": "direct" }))]
pub enum Method {
    /// The fastest; the plan says why.
    #[default]
    Auto,
    /// Multigrid cycles from the first guess.
    Multigrid,
    /// Full multigrid, then cycles until the tolerance is met.
    Fmg,
    /// Successive over-relaxation.
    Sor,
    /// Red-black Gauss-Seidel.
    GaussSeidel,
    /// Damped Jacobi.
    Jacobi,
    /// Chebyshev iteration.
    Chebyshev,
    /// Transforms along the axes.
    Direct,
}

/// The relaxation inside a multigrid cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Relaxation {
    /// Red-black Gauss-Seidel, over-relaxed by `omega`.
    #[default]
    RedBlack,
    /// Jacobi, damped by `omega`.
    Jacobi,
    /// Chebyshev polynomial.
    Chebyshev,
}

/// Goal of a solve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Tolerance {
    /// Residual relative to `||f - A u_b||`.
    Relative(f64),
    /// A word.
    Named(NamedTolerance),
}

/// Tolerances that are not numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NamedTolerance {
    /// Algebraic below truncation error.
    Truncation,
}

impl Tolerance {
    /// Full multigrid to the truncation error.
    pub const TRUNCATION: Self = Self::Named(NamedTolerance::Truncation);
}

/// Sweeps before or after a coarse correction.
pub(crate) const MOST_SWEEPS: u32 = 100;

/// Options of the caller; [`Options::default`] leaves everything to the solver.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The method.
    pub method: Method,
    /// The cycle of multigrid.
    pub cycle: Cycle,
    /// Sweeps before the coarse correction; default 1 (to truncation error: 2).
    pub pre: Option<u32>,
    /// Sweeps after it; default 1.
    pub post: Option<u32>,
    /// The relaxation inside a cycle.
    pub smoother: Relaxation,
    /// Relaxation factor of the smoother, or of SOR and Jacobi; default the best known.
    pub omega: Option<f64>,
    /// Largest number of coarse levels below the given grid.
    pub coarse_levels: usize,
    /// Number format.
    pub precision: Precision,
    /// Goal of a solve.
    pub tolerance: Tolerance,
    /// A residual that is enough whatever the right-hand side; 0 leaves it out.
    pub absolute: f64,
    /// The norm of both.
    pub norm: Norm,
    /// Largest number of cycles (relaxation methods: sweeps); default ample for the method.
    pub max_cycles: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            method: Method::Auto,
            cycle: Cycle::V,
            pre: None,
            post: None,
            smoother: Relaxation::RedBlack,
            omega: None,
            coarse_levels: usize::MAX,
            precision: Precision::Mixed,
            tolerance: Tolerance::Relative(1e-6),
            absolute: 0.0,
            norm: Norm::L2,
            max_cycles: None,
        }
    }
}

/// Sweeps of a step times [`work`], after which a signal is heeded: a tenth of a second on an idle core, half of one on a slow and
/// shared core.
const BLOCK_WORK: f64 = 1e8;
/// The direct solution and the sweeps on it: two reach the floor of storing it, measured.
const DIRECT_STEPS: u64 = 6;
/// Cells stretched by less than this keep over-relaxation in the smoother.
const NEARLY_SQUARE: f64 = 1.5;

/// Properties of a device that the choice depends on.
#[derive(Clone, Copy)]
struct DeviceProperties {
    gpu: bool,
    /// A library of Fourier transforms.
    transforms: bool,
    /// The grid is cut into parts on GPUs, which the direct solver is not.
    cut: bool,
}

fn device_properties(device: &Device) -> DeviceProperties {
    let gpu = matches!(device, Device::Cuda(_));
    DeviceProperties { gpu, transforms: !gpu || library::cufft().refusal.is_none(), cut: false }
}

fn in_parts(device: &Device, parts: usize) -> DeviceProperties {
    let has = device_properties(device);
    DeviceProperties { cut: has.gpu && parts > 1, ..has }
}

/// Cost of a sweep, in relaxations of one node: each line of nodes and each pass has an overhead, which dominates where lines are
/// short. Measured: 0.1 microseconds per line and 3 per pass (a launch, on a GPU) on one core that relaxes a node in one
/// nanosecond.
fn work(grid: &Grid) -> f64 {
    let shortest = grid.axes.iter().filter(|a| !a.is_flat()).map(|a| a.nodes).min().unwrap_or(1);
    grid.unknowns() as f64 + 100.0 * (grid.len() / shortest) as f64 + 3000.0
}

impl Options {
    /// Finds every fault of the options that no problem could make valid.
    pub fn check(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        if let Tolerance::Relative(t) = self.tolerance
            && !(t.is_finite() && (0.0..1.0).contains(&t))
        {
            faults.push(Fault::new("tolerance", format!("the value is {t}")).allowed("0 or more and below 1, or `\"truncation\"`"));
        }
        if !(self.absolute.is_finite() && self.absolute >= 0.0) {
            faults.push(Fault::new("absolute", format!("the value is {}", self.absolute)).allowed("finite, 0 or more"));
        }
        if let Some(omega) = self.omega
            && !(omega > 0.0 && omega < 2.0)
        {
            let fault = Fault::new("omega", format!("the value is {omega}")).allowed("above 0 and below 2");
            faults.push(fault.hint("omit it for the best known value"));
        }
        for (path, sweeps) in [("pre", self.pre), ("post", self.post)] {
            if let Some(sweeps) = sweeps.filter(|s| *s > MOST_SWEEPS) {
                faults.push(Fault::new(path, format!("{sweeps} sweeps")).allowed(format!("0 to {MOST_SWEEPS}")));
            }
        }
        if (self.pre, self.post) == (Some(0), Some(0)) {
            faults.push(Fault::new("post", "a cycle without any sweep does not smooth").allowed("1 or more where `pre` is 0"));
        }
        let cycles = matches!(self.method, Method::Auto | Method::Multigrid | Method::Fmg);
        if self.tolerance == Tolerance::TRUNCATION && !matches!(self.method, Method::Auto | Method::Fmg) {
            let fault = Fault::new("tolerance", "full multigrid reaches `truncation`, the chosen method does not");
            faults.push(fault.hint("use `method = \"fmg\"` or `\"auto\"`, or give a number"));
        }
        if self.cycle != Cycle::V && !cycles {
            faults.push(Fault::new("cycle", "the method chosen has no cycles").hint("leave `cycle` out, or use `method = \"multigrid\"`"));
        }
        let of_cycles = [
            ("smoother", self.smoother != Relaxation::RedBlack),
            ("pre", self.pre.is_some()),
            ("post", self.post.is_some()),
            ("coarse_levels", self.coarse_levels != usize::MAX),
        ];
        for (key, _) in of_cycles.into_iter().filter(|(_, given)| *given && !cycles) {
            let fault = Fault::new(key, "the chosen method has no cycles and would ignore it");
            faults.push(fault.hint(format!("leave `{key}` out, or use `method = \"multigrid\"`")));
        }
        if self.omega.is_some() && cycles && self.smoother == Relaxation::Chebyshev {
            let fault = Fault::new("omega", "a Chebyshev polynomial has no relaxation factor");
            faults.push(fault.hint("leave `omega` out, or use another `smoother`"));
        }
        if self.omega.is_some() && matches!(self.method, Method::GaussSeidel | Method::Chebyshev | Method::Direct) {
            faults.push(Fault::new("omega", "the method chosen has no relaxation factor").hint("leave `omega` out"));
        }
        faults
    }

    /// Settles everything for a grid on a device; `warm`: whether there is a first guess. Where a GPU's library of Fourier
    /// transforms is missing, the automatic choice is between cycles, and says so.
    pub fn choose_on(&self, grid: &Grid, device: &Device, warm: bool) -> Result<Choice> {
        self.choose_for(grid, device_properties(device), warm, false)
    }

    /// Chooses as [`Options::choose_on`] does, for a grid in so many parts.
    pub fn choose_in_parts(&self, grid: &Grid, device: &Device, warm: bool, parts: usize) -> Result<Choice> {
        self.choose_for(grid, in_parts(device, parts), warm, false)
    }

    /// Chooses as parts on GPUs do: `auto` takes cycles.
    pub(crate) fn choose_cycles(&self, grid: &Grid, device: &Device, warm: bool) -> Result<Choice> {
        self.choose_for(grid, DeviceProperties { cut: true, ..device_properties(device) }, warm, false)
    }

    /// Chooses as [`Options::choose_in_parts`] does, for many right-hand sides on one grid, which the direct solver takes together.
    pub fn choose_stack(&self, grid: &Grid, device: &Device, warm: bool, parts: usize) -> Result<Choice> {
        self.choose_for(grid, in_parts(device, parts), warm, true)
    }

    /// The choice on a GPU with all its libraries; `stack`: for many right-hand sides.
    pub fn choose_for_gpu(&self, grid: &Grid, warm: bool, stack: bool) -> Result<Choice> {
        self.choose_for(grid, DeviceProperties { gpu: true, transforms: true, cut: false }, warm, stack)
    }

    /// Settles everything for a grid. `gpu`: the device's kind, with all its libraries; `warm`: whether there is a first guess.
    pub fn choose(&self, grid: &Grid, gpu: bool, warm: bool) -> Result<Choice> {
        self.choose_for(grid, DeviceProperties { gpu, transforms: true, cut: false }, warm, false)
    }

    fn choose_for(&self, grid: &Grid, has: DeviceProperties, warm: bool, stack: bool) -> Result<Choice> {
        let mut faults = self.check();
        if warm && (self.method == Method::Fmg || self.tolerance == Tolerance::TRUNCATION) {
            faults.push(
                Fault::new("method", "full multigrid starts from the coarsest grid and would drop the first guess")
                    .hint("use `method = \"multigrid\"`"),
            );
        }
        // Lines of a GPU's fields are padded to whole warps.
        let padded = [grid.axes[0].nodes.next_multiple_of(32), grid.axes[1].nodes, grid.axes[2].nodes];
        if has.gpu && padded.into_iter().try_fold(1_i32, |all, n| all.checked_mul(i32::try_from(n).ok()?)).is_none() {
            let fault = Fault::new("grid.nodes", format!("{} nodes", grid.len()))
                .allowed("fewer than 2^31 on a GPU, whose kernels count them in 32 bits");
            faults.push(fault.hint("use `device = \"cpu\"`, or fewer nodes"));
        }
        if self.tolerance == Tolerance::TRUNCATION {
            faults.extend(too_few_nodes(&grid.nodes()));
        }
        if !faults.is_empty() {
            return Err(Error::Input { origin: "the options".into(), problems: faults });
        }
        let truncation = self.tolerance == Tolerance::TRUNCATION;
        let (method, reason) = self.method(grid, has, warm, stack);
        let scheme = self.scheme(method, grid);
        let relative = match self.tolerance {
            Tolerance::Relative(t) => t,
            Tolerance::Named(_) => 0.0,
        };
        let mut lowest = 0.0;
        let (expected, max_steps) = match scheme {
            Scheme::Cycles { .. } => (ExpectedConvergence::cycles(), self.max_cycles.unwrap_or(100)),
            Scheme::Sweeps { smoother, block, pieces, rate, .. } => {
                // Twice the sweeps that the rate asks for down to the smoothest mode's share, after a transient as long as the grid is wide.
                let wide = grid.nodes().into_iter().max().unwrap_or(1) as f64;
                let gap = 1.0 - Spectrum::of(grid).low;
                lowest = gap * grid.axes.iter().filter(|a| !a.is_flat()).map(|a| 2.0 / (a.h * a.h)).sum::<f64>();
                let ample = 4.0 * wide + 2.0 * (0.5 * gap * relative.max(1e-16)).ln() / rate.clamp(1e-3, 1.0 - 1e-12).ln();
                let sweeps = self.max_cycles.unwrap_or(ample.ceil() as u64);
                let polynomials = matches!(smoother, Smoother::Chebyshev { .. });
                let expected = if polynomials {
                    ExpectedConvergence::polynomials(pieces)
                } else {
                    ExpectedConvergence::sweeps(rate.powi(block as i32))
                };
                (expected, sweeps.div_ceil(u64::from(block)))
            }
            Scheme::Direct => (ExpectedConvergence::cycles(), self.max_cycles.unwrap_or(DIRECT_STEPS)),
        };
        let criteria = Criteria { relative, absolute: self.absolute, norm: self.norm, lowest, max_steps: max_steps as usize };
        let description = format!("{}{}", scheme.description(), if reason.is_empty() { String::new() } else { format!(" ({reason})") });
        let cycles =
            || Self { method: if truncation { Method::Fmg } else { Method::Multigrid }, ..self.clone() }.choose_for(grid, has, warm, stack);
        let fallback = if (self.method, scheme) == (Method::Auto, Scheme::Direct) { Some(Box::new(cycles()?)) } else { None };
        let (precision, coarse_levels) = (self.precision, self.coarse_levels);
        Ok(Choice { scheme, description, criteria, truncation, warm, expected, precision, coarse_levels, fallback })
    }

    /// Returns true if an option is set that only cycles have.
    fn asks_for_cycles(&self) -> bool {
        let sweeps = self.pre.is_some() || self.post.is_some() || self.omega.is_some();
        self.cycle != Cycle::V || sweeps || self.smoother != Relaxation::RedBlack || self.coarse_levels != usize::MAX
    }

    /// The method, and why it was chosen.
    fn method(&self, grid: &Grid, has: DeviceProperties, warm: bool, stack: bool) -> (Method, String) {
        let DeviceProperties { gpu, transforms, cut } = has;
        if self.method != Method::Auto {
            return (self.method, String::new());
        }
        let truncation = self.tolerance == Tolerance::TRUNCATION;
        let goal = match self.tolerance {
            Tolerance::Relative(t) => t,
            // Full multigrid is done after its start: a cycle's worth of goal.
            Tolerance::Named(_) => 1e-4,
        };
        // From a guess half of the decades are left to do, as far as anyone knows.
        let (cycles, full) = match (truncation, warm) {
            (true, _) => (Method::Fmg, true),
            (false, true) => (Method::Multigrid, false),
            (false, false) => {
                let [plain, full] = [false, true].map(|fmg| estimate::cycles(grid, self.precision, gpu, fmg, goal));
                if full < plain { (Method::Fmg, true) } else { (Method::Multigrid, false) }
            }
        };
        let of_cycles = estimate::cycles(grid, self.precision, gpu, full, if warm { goal.sqrt() } else { goal });
        if self.asks_for_cycles() {
            return (cycles, "the cycle's own options were given".into());
        }
        if cut {
            return (cycles, "the direct solver is computed in one part on GPUs".into());
        }
        if !transforms {
            return (cycles, "the direct solver needs cuFFT, which is missing: see `zellige devices`".into());
        }
        // Single precision: its rounding along whole lines is more than that of cycles, and sweeps do not mend what is smooth.
        let noise = estimate::noise(grid, self.precision);
        if self.precision == Precision::F32 && (truncation || goal < noise) {
            return (cycles, format!("the direct solver would leave {noise:.0e} in single precision"));
        }
        if stack && !truncation {
            let how =
                if gpu { "each launch works on all right-hand sides" } else { "right-hand sides are solved side by side, one thread each" };
            return (Method::Direct, how.into());
        }
        let sweeps = if truncation { 0 } else { estimate::sweeps(grid, self.precision, goal) };
        let of_direct = estimate::direct(grid, self.precision, gpu, sweeps);
        let compared = |a: &str, x: f64, b: &str, y: f64| format!("{a} about {x:.0} bytes an unknown at copy speed, {b} {y:.0}");
        if of_direct <= of_cycles {
            (Method::Direct, compared("takes", of_direct, "cycles", of_cycles))
        } else {
            (cycles, compared("take", of_cycles, "the direct solver", of_direct))
        }
    }

    fn scheme(&self, method: Method, grid: &Grid) -> Scheme {
        let limit = self.max_cycles.unwrap_or(u64::MAX);
        let limited = |smoother, block: u32, pieces: u32, rate| {
            let block = block.min(limit.clamp(1, u64::from(u32::MAX)) as u32);
            Scheme::Sweeps { smoother, block, pieces, rate, limit }
        };
        let most = (BLOCK_WORK / work(grid)).max(10.0);
        let sweeps = |smoother, rate: f64| {
            let decade = (10.0_f64.ln() / -rate.clamp(1e-3, 1.0 - 1e-9).ln()).ceil();
            // A factor that makes it grow is looked at soon.
            let block = if rate < 1.0 { decade.min(most).max(10.0) } else { 10.0 };
            limited(smoother, block as u32, 1, rate)
        };
        let spectrum = Spectrum::of(grid);
        match method {
            Method::Auto | Method::Multigrid | Method::Fmg => {
                let fmg = (method != Method::Multigrid).then_some(1);
                // One V(2,1) per level brings full multigrid to 1.07 times the truncation error, V(1,1) to 1.11.
                let open = if self.tolerance == Tolerance::TRUNCATION { [2, 1] } else { [1, 1] };
                let [pre, post] = [self.pre.unwrap_or(open[0]), self.post.unwrap_or(open[1])];
                let adapts = self.pre.is_none() && self.post.is_none() && self.omega.is_none();
                Scheme::Cycles { plan: CyclePlan { cycle: self.cycle, pre, post, smoother: self.cycle_smoother(grid), adapts }, fmg }
            }
            Method::Sor => {
                let omega = self.omega.unwrap_or_else(|| spectrum.sor_omega(grid));
                sweeps(Smoother::RedBlack { omega }, spectrum.sor_rate(omega))
            }
            Method::GaussSeidel => sweeps(Smoother::RedBlack { omega: 1.0 }, spectrum.sor_rate(1.0)),
            Method::Jacobi => {
                let omega = self.omega.unwrap_or_else(|| spectrum.jacobi_omega());
                sweeps(Smoother::Jacobi { omega }, spectrum.jacobi_rate(omega))
            }
            Method::Chebyshev => {
                let ratio = (1.0 + spectrum.high) / (1.0 - spectrum.low);
                let rate = (ratio.sqrt() - 1.0) / (ratio.sqrt() + 1.0);
                // It begins anew after x / -ln(rate) sweeps, which costs ln 2 / x of them, a ninth for 6: longer ones gather rounding.
                let degree = (6.0 / -rate.clamp(1e-3, 1.0 - 1e-9).ln()).ceil().max(10.0);
                let pieces = (degree / most).ceil();
                limited(Smoother::Chebyshev { ratio }, (degree / pieces).ceil() as u32, pieces as u32, rate)
            }
            Method::Direct => Scheme::Direct,
        }
    }

    fn cycle_smoother(&self, grid: &Grid) -> Smoother {
        let plane = grid.dimensions() < 3;
        match self.smoother {
            Relaxation::RedBlack => {
                let best = if grid.stretch() >= NEARLY_SQUARE {
                    1.0
                } else if plane {
                    1.15
                } else {
                    1.2
                };
                Smoother::RedBlack { omega: self.omega.unwrap_or(best) }
            }
            // The best damping of the modes that no coarse grid sees: 4/5 in the plane, 6/7 in space.
            Relaxation::Jacobi => Smoother::Jacobi { omega: self.omega.unwrap_or(if plane { 0.8 } else { 6.0 / 7.0 }) },
            // Those modes reach from 1/2 (1/3) to 2 in units of the diagonal.
            Relaxation::Chebyshev => Smoother::Chebyshev { ratio: if plane { 4.0 } else { 6.0 } },
        }
    }
}

#[cfg(test)]
mod tests;
