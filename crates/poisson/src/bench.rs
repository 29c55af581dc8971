//! The benchmark cases: a solve on data that lie on the device already, held against known numbers.
//!
//! Golden values are those of a direct double-precision solver on the same grid for two opposite Gaussian charges,
//! `rho = exp(-((x-12)^2 + (y-16)^2)/2) - exp(-((x-20)^2 + (y-16)^2)/2)` on `[0, 32]^2` with zero edges.

mod problems;

use zellige_engine::device::Device;
use zellige_engine::error::{Error, Problem as Fault, Result};
use zellige_engine::profile::Profiler;
use zellige_engine::record::Check;
use zellige_engine::sim::{Bench, Case, Cost};

use self::problems::{LENGTH, MODES, modes_solution, square};
pub use self::problems::{cube, dipole, mixed_sides, modes};
use crate::config::Config;
use crate::driver::{Driver, on_host};
use crate::fold::Folded;
use crate::grid::{Level, cycle_levels};
use crate::method::{Method, Options, Scheme, Tolerance};
use crate::problem::{Precision, Problem};
use crate::stages::Smoother;
use crate::{cost, operator};

/// The cases, with the figures to reach and those of others.
pub const CASES: &[Case] = &[
    Case {
        name: "poisson/mixed-1e-6-4097",
        about: "4097^2 nodes to a relative residual of 1e-6 in mixed precision, by the automatic choice: the direct solver. Aim: <= 12 ns per \
                unknown on one core, <= 1.0 ms on an H200. Others: SciPy's sine transforms, whole function, 31 ns on one core, hypre PCG+PFMG 193; \
                H200: sine transforms by own odd extension in CuPy 3.1 ms, hypre PFMG 27 ms",
        gpu_only: false,
    },
    Case {
        name: "poisson/mixed-1e-6-4096",
        about: "the same on 4096^2 nodes, an odd number of intervals: the direct solver. Aim: <= 1.0 ms on an H200. Others: H200, own \
                odd extension in CuPy 4.8 ms",
        gpu_only: false,
    },
    Case {
        name: "poisson/mixed-1e-10-4097",
        about: "4097^2 nodes to 1e-10, by the automatic choice: the direct solver and a sweep. Aim: 1.5 times as fast as SciPy's sine \
                transforms, whole function, <= 1.6 ms on an H200. Others: hypre PCG+PFMG 326 ns on one core; hypre on an H200 42 ms",
        gpu_only: false,
    },
    Case {
        name: "poisson/mixed-1e-6-1025",
        about: "1025^2 nodes to 1e-6, by the automatic choice: the direct solver. Aim: <= 0.25 ms on an H200",
        gpu_only: false,
    },
    Case {
        name: "poisson/multigrid-1e-6-4097",
        about: "4097^2 nodes to 1e-6 in mixed precision by multigrid cycles alone, for grids that no transform fits",
        gpu_only: false,
    },
    Case { name: "poisson/multigrid-1e-10-4097", about: "the same to 1e-10", gpu_only: false },
    Case {
        name: "poisson/fmg-4097",
        about: "full multigrid on 4097^2 nodes in single precision, to rounding and truncation error. Aim: <= 0.45 ms on an H200. \
                Others: H200, sine transforms by own odd extension in CuPy, f32, 2.1 ms",
        gpu_only: false,
    },
    Case {
        name: "poisson/vcycle-f32-4096",
        about: "ten V(1,1) cycles in single precision on 4096^2 nodes. Aim: <= 0.15 ms each on an H200",
        gpu_only: false,
    },
    Case {
        name: "poisson/sor-f32-4096",
        about: "ten sweeps of red-black SOR in single precision on 4096^2 nodes. Aim: 70 % (GPU 75 %) of the copy bandwidth or more",
        gpu_only: false,
    },
    Case {
        name: "poisson/direct-4097",
        about: "the direct solver in double precision on 4097^2 nodes. Others: SciPy's sine \
                transforms, whole function, 31 ns per unknown on one core; H200, own odd extension in CuPy 3.1 ms",
        gpu_only: false,
    },
    Case {
        name: "poisson/3d-512",
        about: "512^3 nodes to 1e-6 in mixed precision, by the automatic choice: the direct solver. Aim: <= 40 ms on an H200",
        gpu_only: true,
    },
    Case { name: "poisson/small-129", about: "129^2 nodes to 1e-6, the solver reused. Aim: <= 60 us on an H200", gpu_only: false },
    Case { name: "poisson/small-257", about: "257^2 nodes to 1e-6, the solver reused. Aim: <= 60 us on an H200", gpu_only: false },
    Case {
        name: "poisson/periodic-4095",
        about: "4095^2 nodes with periodic sides, an odd number of intervals (3^2 * 5 * 7 * 13), to 1e-6 by the automatic choice; beside mixed-1e-6-4097",
        gpu_only: false,
    },
    Case {
        name: "poisson/prime-4099",
        about: "4099^2 nodes, 2 * 3 * 683 intervals, to 1e-6 by the automatic choice; beside mixed-1e-6-4097",
        gpu_only: false,
    },
    Case {
        name: "poisson/prime-4094",
        about: "4094^2 nodes, a prime number of intervals, to 1e-6 by the automatic choice; beside mixed-1e-6-4097",
        gpu_only: false,
    },
    Case { name: "poisson/3d-257", about: "257^3 nodes to 1e-6 in mixed precision by the automatic choice", gpu_only: true },
    Case {
        name: "poisson/3d-mixed-257",
        about: "256 x 257 x 256 nodes: x periodic, y between Dirichlet and Neumann sides, z between Neumann sides, to 1e-6 by the automatic choice; beside 3d-257",
        gpu_only: true,
    },
];

/// Cycles of the cycle case, sweeps of the sweep case.
pub const REPEATS: u32 = 10;
/// `u` at these points for 1024 and 4096 intervals.
const PROBES: [[f64; 2]; 3] = [[12.0, 16.0], [8.0, 8.0], [14.0, 18.0]];
const GOLDEN_1024: [f64; 3] = [-1.912791556204, -0.276416686906, -0.748983977921];
const GOLDEN_4096: [f64; 3] = [-1.912735502679, -0.276416794737, -0.748986645877];

/// Reference against which the physics is checked.
#[derive(Debug)]
pub enum Truth {
    /// Values at the probes, with the largest difference that passes.
    Golden {
        /// The values.
        values: [f64; 3],
        /// The difference.
        limit: f64,
    },
    /// Repetition of the sweeps by a slow reference around the first probe.
    Sweeps {
        /// Relaxation factor.
        omega: f64,
    },
    /// Residual alone, which must be small.
    Residual,
    /// The discrete solution in closed form.
    Modes {
        /// The largest difference over the largest value that passes.
        limit: f64,
    },
}

/// A solve that is timed and compared with its known solution.
pub struct SolveBench {
    device: Device,
    driver: Driver,
    /// Problem loaded before a run.
    pub folded: Folded<'static>,
    levels: Vec<Level>,
    /// Reference for the physics check.
    pub truth: Truth,
    /// Steps to take, whatever the residual; the solver's own end if `None`.
    steps: Option<u32>,
    /// Largest relative residual, recomputed in double precision, that passes.
    residual_limit: Option<f64>,
}

/// Sets a case up.
pub fn open(case: &Case, device: &Device) -> Result<Box<dyn Bench>> {
    let mixed = |tolerance: f64| Options { tolerance: Tolerance::Relative(tolerance), ..Options::default() };
    let cycles = |tolerance: f64| Options { method: Method::Multigrid, ..mixed(tolerance) };
    let f32_only =
        |method: Method| Options { method, precision: Precision::F32, tolerance: Tolerance::Relative(0.0), ..Options::default() };
    let golden = |values, limit| Truth::Golden { values, limit };
    let in_modes = |problem| SolveBench::new(device, modes(problem), &mixed(1e-6), Truth::Modes { limit: 1e-5 }, None, Some(1.001e-6));
    let bench = match case.name {
        // The residual makes an error of its own size at most; 3e-6 of it is left in u, measured.
        "poisson/mixed-1e-6-4097" => SolveBench::new(device, dipole(4097), &mixed(1e-6), golden(GOLDEN_4096, 1e-5), None, Some(1.001e-6))?,
        "poisson/mixed-1e-10-4097" => SolveBench::new(device, dipole(4097), &mixed(1e-10), golden(GOLDEN_4096, 1e-9), None, Some(1.1e-10))?,
        "poisson/mixed-1e-6-1025" => SolveBench::new(device, dipole(1025), &mixed(1e-6), golden(GOLDEN_1024, 1e-5), None, Some(1.001e-6))?,
        "poisson/mixed-1e-6-4096" => SolveBench::new(device, dipole(4096), &mixed(1e-6), golden(GOLDEN_4096, 1e-5), None, Some(1.001e-6))?,
        "poisson/multigrid-1e-6-4097" => {
            SolveBench::new(device, dipole(4097), &cycles(1e-6), golden(GOLDEN_4096, 1e-5), None, Some(1.001e-6))?
        }
        "poisson/multigrid-1e-10-4097" => {
            SolveBench::new(device, dipole(4097), &cycles(1e-10), golden(GOLDEN_4096, 1e-9), None, Some(1.1e-10))?
        }
        // Single precision leaves 2e-5 of |u| by rounding, the formula 2e-6.
        "poisson/fmg-4097" => SolveBench::new(device, dipole(4097), &f32_only(Method::Fmg), golden(GOLDEN_4096, 1e-4), Some(1), None)?,
        "poisson/vcycle-f32-4096" => {
            SolveBench::new(device, dipole(4096), &f32_only(Method::Multigrid), golden(GOLDEN_4096, 1e-4), Some(REPEATS), None)?
        }
        "poisson/sor-f32-4096" => {
            let mut bench = SolveBench::new(device, dipole(4096), &f32_only(Method::Sor), Truth::Sweeps { omega: 1.0 }, Some(1), None)?;
            bench.truth = Truth::Sweeps { omega: bench.repeat() };
            bench
        }
        "poisson/direct-4097" => {
            let options = Options { method: Method::Direct, precision: Precision::F64, ..mixed(0.0) };
            SolveBench::new(device, dipole(4097), &options, golden(GOLDEN_4096, 1e-9), Some(1), Some(1e-9))?
        }
        "poisson/3d-512" => in_modes(cube(512))?,
        "poisson/small-129" => in_modes(square(129))?,
        "poisson/small-257" => in_modes(square(257))?,
        "poisson/periodic-4095" => in_modes(square(4095).periodic(0).periodic(1))?,
        "poisson/prime-4099" => in_modes(square(4099))?,
        "poisson/prime-4094" => in_modes(square(4094))?,
        "poisson/3d-257" => in_modes(cube(257))?,
        "poisson/3d-mixed-257" => in_modes(mixed_sides([256, 257, 256]))?,
        other if side(other).is_some() => {
            let (dimensions, n) = side(other).unwrap_or_default();
            let problem = if dimensions == 2 { dipole(n) } else { modes(cube(n)) };
            SolveBench::new(device, problem, &mixed(1e-6), Truth::Residual, None, Some(1.001e-6))?
        }
        other => {
            let names: Vec<_> = CASES.iter().map(|c| c.name).collect();
            return Err(Error::input("bench", Fault::new("", format!("there is no case `{other}`")).allowed(names.join(", "))));
        }
    };
    Ok(Box::new(bench))
}

/// Powers of two up to which the sweep goes in the plane, and lengths of cubes; each with neighbours of an odd and of a prime
/// number of intervals.
const PLANES: std::ops::RangeInclusive<u32> = 5..=14;
const CUBES: [usize; 8] = [32, 64, 96, 128, 192, 256, 512, 768];

/// The sizes of the sweep, in the plane and in space: numbers of intervals smooth, odd and prime.
pub fn sweep() -> Vec<Vec<Case>> {
    let prime = |n: usize| (2..n).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d));
    let kinds = |n: usize| {
        let odd = (n + 3..).step_by(2).find(|k| !prime(*k));
        [Some(n), odd, (n + 1..2 * n).find(|k| prime(*k))].into_iter().flatten()
    };
    let series = |dimensions: usize, sides: Vec<usize>| {
        let mut nodes: Vec<usize> = sides.into_iter().flat_map(kinds).map(|n| n + 1).collect();
        nodes.sort_unstable();
        nodes.into_iter().map(|n| Case::of_sweep(format!("sweep/poisson-{dimensions}d-{n}"))).collect()
    };
    vec![series(2, PLANES.map(|k| 1 << k).collect()), series(3, CUBES.to_vec())]
}

/// Dimensions and nodes along an axis of a size of the sweep.
fn side(name: &str) -> Option<(usize, usize)> {
    let (dimensions, nodes) = name.strip_prefix("sweep/poisson-")?.split_once("d-")?;
    Some((dimensions.parse().ok().filter(|d| [2, 3].contains(d))?, nodes.parse().ok().filter(|n| *n > 2)?))
}

/// The input of a case that has one: a solve to a tolerance.
pub fn input(name: &str) -> Option<Config> {
    let plane = |n: usize, keys: serde_json::Value| {
        let charge = |x: f64| format!("exp(-((x-{x})^2+(y-16)^2)/2)");
        let mut table = serde_json::json!({
            "grid": { "nodes": [n, n], "size": [LENGTH, LENGTH] },
            "rhs": format!("{}-{}", charge(12.0), charge(20.0)),
        });
        table.as_object_mut()?.extend(keys.as_object()?.clone());
        serde_json::from_value(table).ok()
    };
    let space = |n: usize| {
        let mode = |([p, q, r], a): &([f64; 3], f64)| format!("{a}*sin({p}*pi*x)*sin({q}*pi*y)*sin({r}*pi*z)");
        let rhs = MODES.iter().map(mode).collect::<Vec<_>>().join("+");
        let grid = serde_json::json!({ "nodes": [n, n, n], "size": [1.0, 1.0, 1.0] });
        serde_json::from_value(serde_json::json!({ "grid": grid, "rhs": rhs, "tolerance": 1e-6 })).ok()
    };
    let to = |tolerance: f64| serde_json::json!({ "tolerance": tolerance });
    match name {
        "poisson/mixed-1e-6-4097" => plane(4097, to(1e-6)),
        "poisson/mixed-1e-6-4096" => plane(4096, to(1e-6)),
        "poisson/mixed-1e-10-4097" => plane(4097, to(1e-10)),
        "poisson/mixed-1e-6-1025" => plane(1025, to(1e-6)),
        "poisson/multigrid-1e-6-4097" => plane(4097, serde_json::json!({ "tolerance": 1e-6, "method": "multigrid" })),
        "poisson/multigrid-1e-10-4097" => plane(4097, serde_json::json!({ "tolerance": 1e-10, "method": "multigrid" })),
        "poisson/3d-512" => space(512),
        other => match side(other)? {
            (2, n) => plane(n, to(1e-6)),
            (_, n) => space(n),
        },
    }
}

impl SolveBench {
    /// Prepares a benchmark of `problem` with `options`: to its end, or `steps` steps of it.
    pub fn new(
        device: &Device,
        problem: Problem<'static>,
        options: &Options,
        truth: Truth,
        steps: Option<u32>,
        residual_limit: Option<f64>,
    ) -> Result<Self> {
        let folded = on_host(device, || problem.fold())?;
        let choice = options.choose_on(&folded.grid, device, false)?;
        let levels = cycle_levels(&folded.grid, if matches!(choice.scheme, Scheme::Cycles { .. }) { usize::MAX } else { 0 });
        let driver = Driver::new(&folded.grid, choice, device)?;
        Ok(Self { device: device.clone(), driver, folded, levels, truth, steps, residual_limit })
    }

    /// Makes a step [`REPEATS`] sweeps of one factor of relaxation, and gives that.
    pub fn repeat(&mut self) -> f64 {
        self.driver.fix_block(REPEATS)
    }

    /// Value of `u` at a point of the plane domain by cubics through 4 x 4 nodes.
    fn probe(&self, u: &[f64], [x, y]: [f64; 2]) -> f64 {
        let [m, n, _] = self.folded.grid.nodes();
        let weights = |t: f64, nodes: usize| {
            let first = (t.floor() as usize).clamp(1, nodes - 3) - 1;
            let s = t - first as f64;
            let w: [f64; 4] = std::array::from_fn(|a| (0..4).filter(|b| *b != a).map(|b| (s - b as f64) / (a as f64 - b as f64)).product());
            (first, w)
        };
        let h = |d: usize| self.folded.grid.axes[d].h;
        let ((i, wx), (j, wy)) = (weights(x / h(0), m), weights(y / h(1), n));
        (0..4).map(|b| wy[b] * (0..4).map(|a| wx[a] * u[i + a + m * (j + b)]).sum::<f64>()).sum()
    }

    /// The value at a node after [`REPEATS`] sweeps from zero, done in double precision on the patch that it depends on.
    fn swept(&self, node: [usize; 2], omega: f64) -> f64 {
        let m = self.folded.grid.nodes()[0];
        // A sweep brings in values from two nodes away.
        let reach = 2 * REPEATS as usize + 1;
        let size = 2 * reach + 1;
        let h2 = self.folded.grid.axes[0].h.powi(2);
        let mut u = vec![0.0; size * size];
        let corner = [node[0] - reach, node[1] - reach];
        for half in 0..2 * REPEATS as usize {
            for q in 1..size - 1 {
                for p in 1..size - 1 {
                    let (i, j) = (corner[0] + p, corner[1] + q);
                    if (i + j) % 2 == half % 2 {
                        let c = p + size * q;
                        let sum = u[c - 1] + u[c + 1] + u[c - size] + u[c + size];
                        u[c] += omega * (0.25 * (sum - h2 * self.folded.f[i + m * j]) - u[c]);
                    }
                }
            }
        }
        u[reach + size * reach]
    }
}

impl Bench for SolveBench {
    fn reset(&mut self) -> Result<()> {
        self.driver.load(self.folded.clone())
    }

    fn run(&mut self, profiler: &mut Profiler) -> Result<()> {
        match self.steps {
            None => self.driver.run(profiler).map(drop),
            Some(steps) => self.driver.run_steps(steps, profiler),
        }
    }

    fn checks(&mut self) -> Result<Vec<Check>> {
        let u = self.driver.solution()?;
        let mut checks = Vec::new();
        match &self.truth {
            Truth::Residual => {}
            Truth::Golden { values, limit } => {
                for (point, golden) in PROBES.iter().zip(values) {
                    let name = format!("|u - golden| at ({}, {})", point[0], point[1]);
                    checks.push(Check::at_most(name, (self.probe(&u, *point) - golden).abs(), *limit));
                }
            }
            Truth::Sweeps { omega } => {
                let [m, n, _] = self.folded.grid.nodes();
                let node = [3 * m / 8, n / 2];
                let expected = self.swept(node, *omega);
                // Rounding of about 20 half-sweeps in single precision.
                let limit = 40.0 * f64::from(f32::EPSILON) * expected.abs();
                checks.push(Check::at_most("|u - slow sweeps| beside a charge", (u[node[0] + m * node[1]] - expected).abs(), limit));
            }
            Truth::Modes { limit } => {
                let grid = &self.folded.grid;
                let [m, n, l] = grid.nodes();
                let (mut worst, mut largest) = (0.0_f64, 0.0_f64);
                for k in 0..1000_usize {
                    let node = [(7919 * k + 13) % m, (104_729 * k + 5) % n, (1_299_709 * k + 3) % l];
                    let known = modes_solution(grid, node);
                    worst = worst.max((u[node[0] + m * (node[1] + n * node[2])] - known).abs());
                    largest = largest.max(known.abs());
                }
                let relative = worst / largest;
                checks.push(Check::at_most("|u - closed form| over |u| at 1000 nodes", relative, *limit));
            }
        }
        if let Some(limit) = self.residual_limit {
            let (grid, f) = (&self.folded.grid, &self.folded.f);
            let norms = on_host(&self.device, || operator::residual_norms(grid, &u, f));
            checks.push(Check::at_most("relative residual in double precision", norms.l2 / self.folded.reference.l2, limit));
        }
        Ok(checks)
    }

    fn cost(&self) -> Cost {
        let (scheme, precision) = (self.driver.choice().scheme, self.driver.choice().precision);
        let step = cost::step(&self.levels, scheme, precision);
        let steps = self.steps() as f64;
        let mut total = Cost { bytes: steps * step.bytes, flops: steps * step.flops, items: step.items };
        match scheme {
            Scheme::Cycles { fmg: Some(cycles), .. } => {
                let fmg = cost::full_multigrid(&self.levels, scheme, precision, cycles);
                total.bytes += fmg.bytes - step.bytes;
                total.flops += fmg.flops - step.flops;
            }
            // Items are unknowns per sweep and per cycle.
            Scheme::Cycles { .. } if self.steps.is_some() => total.items *= steps,
            Scheme::Sweeps { block, .. } => total.items *= f64::from(block),
            Scheme::Cycles { .. } | Scheme::Direct => {}
        }
        total
    }

    fn steps(&self) -> u64 {
        self.steps.map_or(self.driver.steps() as u64, u64::from)
    }

    fn memory(&self) -> u64 {
        self.driver.memory()
    }

    fn figures(&self) -> Vec<(&'static str, f64)> {
        let mut figures = Vec::new();
        if self.steps.is_none() {
            figures.push(("relative residual", self.driver.monitor().relative()));
        }
        if let Scheme::Sweeps { block, smoother: Smoother::RedBlack { omega }, .. } = self.driver.choice().scheme {
            figures.extend([("sweeps", f64::from(block)), ("omega", omega)]);
        }
        figures
    }
}
