//! The library's entry: [`solve`] and [`solve_batch`].

use serde::Serialize;
use zellige_engine::cuda::Buffer;
use zellige_engine::device::Device;
use zellige_engine::error::{Error, Result};
use zellige_engine::large::zeros;
use zellige_engine::parallel::{items, map_with};
use zellige_engine::profile::Profiler;

use crate::batch;
use crate::driver::{Driver, on_host};
use crate::fold::Reference;
use crate::grid::Grid;
use crate::method::{Choice, Options};
use crate::problem::Problem;
use crate::status::{ConvergenceMonitor, Status};
use crate::truncation::Truncation;

/// A solution with the account of how it was found.
#[derive(Debug, Clone)]
pub struct Solution {
    /// `u` over all nodes, C order with x fastest.
    pub u: Vec<f64>,
    /// Report of the solve.
    pub report: Report,
}

/// Report of a solve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Outcome of the solve. [`Status::PrecisionFloor`] is as good as the precision allows; the last three miss the goal.
    pub status: Status,
    /// The method and why it was chosen.
    pub method: String,
    /// Steps taken: cycles, blocks of sweeps, or the direct solution and the sweeps on it.
    pub steps: usize,
    /// Residual in the norm asked for, before the first step and after each.
    pub history: Vec<f64>,
    /// Reference of "relative": that norm of `f - A u_b`.
    pub reference: f64,
    /// The last residual over the reference.
    pub relative_residual: f64,
    /// `||r|| / (||A|| ||u|| + ||f||)`.
    pub backward_error: f64,
    /// Relative residual at which rounding takes over.
    pub floor: f64,
    /// Factor of the last step.
    pub rate: Option<f64>,
    /// Singular problems: the mean that was taken off the right-hand side, fluxes included.
    pub imbalance: f64,
    /// `tolerance = "truncation"`: how far the algebraic error is below the truncation error.
    pub truncation: Option<Truncation>,
    /// Levels of the hierarchy, the finest included.
    pub levels: usize,
    /// Bytes held on the device.
    pub memory: u64,
}

impl Report {
    /// The account of a driver that has ended.
    pub(crate) fn of(driver: &Driver, status: Status) -> Self {
        let (truncation, levels, memory) = (driver.truncation(), driver.levels(), driver.memory());
        Self::new(driver.monitor(), driver.choice(), status, driver.imbalance(), truncation, levels, memory)
    }

    /// The account of a solve whose residual `monitor` followed.
    pub(crate) fn new(
        monitor: &ConvergenceMonitor,
        choice: &Choice,
        status: Status,
        imbalance: f64,
        truncation: Option<Truncation>,
        levels: usize,
        memory: u64,
    ) -> Self {
        Self {
            status,
            method: choice.description.clone(),
            steps: monitor.history().len().saturating_sub(1),
            history: monitor.history().to_vec(),
            reference: monitor.reference(),
            relative_residual: monitor.relative(),
            backward_error: monitor.backward_error(),
            floor: monitor.floor(),
            rate: monitor.rate(),
            imbalance,
            truncation,
            levels,
            memory,
        }
    }
}

/// Solves `u_xx + u_yy (+ u_zz) = rho` on the caller's arrays: no files, no globals. For many right-hand sides make a
/// [`crate::Plan`].
///
/// A solve that ends without meeting the tolerance is not an error: look at [`Report::status`].
///
/// # Errors
/// [`Error::Input`] for everything that is wrong with the problem and the options, [`Error::OutOfMemory`] and
/// [`Error::Device`] from the device.
///
/// # Example
/// ```
/// use zellige_engine::device::{Cpu, Device};
/// use zellige_poisson::{Options, Problem, Side, solve};
///
/// // u = x^2 + y on the unit square: its second derivative, and its values on the sides.
/// let (m, n) = (33, 20);
/// let y = |j: usize| j as f64 / (n - 1) as f64;
/// let x = |i: usize| i as f64 / (m - 1) as f64;
/// let problem = Problem::plane([m, n], [1.0, 1.0], vec![2.0; m * n])
///     .sides(0, Side::dirichlet_nodes((0..n).map(y).collect::<Vec<_>>()), Side::neumann(2.0))
///     .sides(1, Side::neumann(-1.0), Side::dirichlet_nodes((0..m).map(|i| x(i) * x(i) + 1.0).collect::<Vec<_>>()));
///
/// let device = Device::Cpu(Cpu::new(1)?);
/// let options = Options { tolerance: zellige_poisson::Tolerance::Relative(1e-10), ..Options::default() };
/// let solution = solve(&problem, &options, &device)?;
/// let error = (0..m * n).map(|k| (solution.u[k] - x(k % m).powi(2) - y(k / m)).abs()).fold(0.0, f64::max);
/// assert!(error < 1e-8, "{error}");
/// # Ok::<(), zellige_engine::error::Error>(())
/// ```
pub fn solve(problem: &Problem<'_>, options: &Options, device: &Device) -> Result<Solution> {
    let mut reusable = None;
    solve_with(&mut reusable, problem, options, device, &mut Profiler::off())
}

/// Solves many problems, on the CPU side by side. On a GPU, problems of one shape that follow each other and that the
/// direct solver takes are solved together, each kernel working on all of them; where the method is another they follow one
/// another and share one set of buffers and recorded graphs. Solutions come in the order of the problems, each the same to the
/// last bit as [`solve`] alone gives, and none depends on the number of threads.
///
/// # Errors
/// As [`solve`], for the first problem that is refused; then no solution is given.
pub fn solve_batch(problems: &[Problem<'_>], options: &Options, device: &Device) -> Result<Vec<Solution>> {
    for (n, problem) in problems.iter().enumerate() {
        let mut faults = problem.check();
        if !faults.is_empty() {
            for fault in &mut faults {
                fault.path = format!("problems[{n}].{}", fault.path);
            }
            return Err(Error::Input { origin: "the batch".into(), problems: faults });
        }
    }
    match device {
        Device::Cpu(cpu) => cpu.install(|| {
            let solve = |reusable: &mut _, _, problem| solve_with(reusable, problem, options, device, &mut Profiler::off());
            map_with(|| None, items(problems), solve).into_iter().collect()
        }),
        Device::Cuda(cuda) => batch::solve_on_gpu(problems, options, device, cuda),
    }
}

/// A driver that is reused from one right-hand side to the next.
pub(crate) struct ReusableDriver {
    driver: Driver,
    device: Device,
    /// Method that the driver was made for: cycles made necessary by a direct solution are for one right-hand side.
    choice: Choice,
    /// Room for a right-hand side that the sides change.
    spare: Vec<f64>,
}

impl ReusableDriver {
    pub(crate) fn new(grid: &Grid, choice: Choice, device: &Device) -> Result<Self> {
        Ok(Self { driver: Driver::new(grid, choice.clone(), device)?, device: device.clone(), choice, spare: Vec::new() })
    }

    pub(crate) fn driver(&self) -> &Driver {
        &self.driver
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// Solves as [`Driver::solve_on_gpu`] does.
    pub(crate) fn solve_on_gpu(&mut self, f: &Buffer<f64>, u: &mut Buffer<f64>, of_f: (Reference, f64)) -> Result<Report> {
        self.rebuild()?;
        let status = self.driver.solve_on_gpu(f, u, of_f, &mut Profiler::off())?;
        Ok(Report::of(&self.driver, status))
    }

    fn fits_problem(&self, grid: &Grid, choice: &Choice) -> bool {
        self.driver.grid() == grid && self.choice == *choice
    }

    /// The driver as it was made.
    fn rebuild(&mut self) -> Result<()> {
        if *self.driver.choice() != self.choice {
            self.driver = Driver::new(&self.driver.grid().clone(), self.choice.clone(), &self.device)?;
        }
        Ok(())
    }

    /// The solution of a problem on this grid.
    pub(crate) fn solve(&mut self, problem: &Problem<'_>, profiler: &mut Profiler) -> Result<Solution> {
        self.rebuild()?;
        if self.driver.can_borrow() {
            let mut u = zeros(self.driver.grid().len());
            if let Some(report) = self.solve_borrowed(problem, &mut u, profiler)? {
                return Ok(Solution { u, report });
            }
        }
        self.solve_loaded(problem, profiler)
    }

    /// Solves the problem, over all nodes of `u`.
    pub(crate) fn solve_into(&mut self, problem: &Problem<'_>, u: &mut [f64], profiler: &mut Profiler) -> Result<Report> {
        self.rebuild()?;
        if let Some(report) = self.solve_borrowed(problem, u, profiler)? {
            return Ok(report);
        }
        let solution = self.solve_loaded(problem, profiler)?;
        u.copy_from_slice(&solution.u);
        Ok(solution.report)
    }

    fn solve_borrowed(&mut self, problem: &Problem<'_>, u: &mut [f64], profiler: &mut Profiler) -> Result<Option<Report>> {
        let status = self.driver.solve_borrowed(problem.borrowed(), u, &mut self.spare, profiler)?;
        Ok(status.map(|status| Report::of(&self.driver, status)))
    }

    fn solve_loaded(&mut self, problem: &Problem<'_>, profiler: &mut Profiler) -> Result<Solution> {
        self.driver.load(on_host(&self.device, || problem.borrowed().fold())?)?;
        let mut status = self.driver.run(profiler)?;
        if self.driver.missed() {
            self.driver.fall_back(on_host(&self.device, || problem.borrowed().fold())?)?;
            status = self.driver.run(profiler)?;
        }
        Ok(Solution { u: self.driver.solution()?, report: Report::of(&self.driver, status) })
    }
}

/// Solves with the given driver if it was made for the same grid and choice, else with a new one that replaces it.
pub(crate) fn solve_with(
    reusable: &mut Option<ReusableDriver>,
    problem: &Problem<'_>,
    options: &Options,
    device: &Device,
    profiler: &mut Profiler,
) -> Result<Solution> {
    problem.check_statement()?;
    let grid = problem.grid();
    let choice = options.choose_on(&grid, device, problem.guess.is_some())?;
    if !reusable.as_ref().is_some_and(|reusable| reusable.fits_problem(&grid, &choice)) {
        // The old buffers go first, or both would have to fit.
        *reusable = None;
    }
    let reusable = match reusable {
        Some(reusable) => reusable,
        None => reusable.insert(ReusableDriver::new(&grid, choice, device)?),
    };
    reusable.solve(problem, profiler)
}
