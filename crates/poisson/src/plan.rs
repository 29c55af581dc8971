//! One grid with its conditions and options, planned once and solved for many right-hand sides.

use zellige_engine::cuda::{Buffer, Cuda};
use zellige_engine::device::Device;
use zellige_engine::error::{Error, Problem as Fault, Result};
use zellige_engine::profile::Profiler;

use crate::fold::in_range;
use crate::grid::Grid;
use crate::method::Options;
use crate::on_gpu::Sides;
use crate::problem::Problem;
use crate::solve::{Report, ReusableDriver, Solution};
use crate::stages;

/// A problem without its right-hand side: method, tables, buffers and threads are kept from one solve to the next.
///
/// Where the direct solver works in double precision on the CPU, [`Plan::solve_into`] reads the right-hand side where it lies and
/// works in the caller's array for the solution: nothing is copied and nothing allocated.
///
/// # Example
/// ```
/// use zellige_engine::device::{Cpu, Device};
/// use zellige_poisson::{Options, Plan, Problem, Side};
///
/// let shape = Problem::plane([65, 33], [2.0, 1.0], vec![]).sides(0, Side::dirichlet(0.0), Side::neumann(0.0));
/// let mut plan = Plan::new(&shape, &Options::default(), &Device::Cpu(Cpu::new(1)?))?;
/// let mut u = vec![0.0; 65 * 33];
/// for step in 0..3 {
///     let rho = vec![f64::from(step); 65 * 33];
///     let report = plan.solve_into(&rho, &mut u)?;
///     assert!(report.relative_residual < 1e-6);
/// }
/// # Ok::<(), zellige_engine::error::Error>(())
/// ```
pub struct Plan {
    /// Problem without a right-hand side.
    problem: Problem<'static>,
    reusable: ReusableDriver,
    /// Contributions for right-hand sides in a GPU's memory: the mean of those from derivatives on sides, and those of the sides.
    sides: Option<(f64, Sides)>,
}

impl Plan {
    /// Plans for the grid and the sides of `problem`, whose right-hand side is not read and may be empty.
    ///
    /// # Errors
    /// As [`crate::solve()`]; [`Error::Input`] also for a first guess, from which no plan starts.
    pub fn new(problem: &Problem<'_>, options: &Options, device: &Device) -> Result<Self> {
        let mut faults = problem.faults(None, false);
        faults.retain(|fault| fault.path != "rhs");
        if problem.guess.is_some() {
            faults.push(Fault::new("guess", "a plan starts from zero").hint("leave it out, or call `solve` with it"));
        }
        if !faults.is_empty() {
            return Err(Error::Input { origin: "the problem".into(), problems: faults });
        }
        let grid = problem.grid();
        let choice = options.choose_on(&grid, device, false)?;
        let sides = problem.sides.each_ref().map(|pair| pair.each_ref().map(crate::Side::to_own));
        let problem = Problem { nodes: problem.nodes, size: problem.size, sides, rhs: Vec::new().into(), guess: None, mean: problem.mean };
        Ok(Self { problem, reusable: ReusableDriver::new(&grid, choice, device)?, sides: None })
    }

    /// The solution for `rhs`, over all nodes, to the last bit as [`crate::solve()`] gives it.
    ///
    /// # Errors
    /// [`Error::Input`] if `rhs` has another length than the grid or values that are not finite; those of the device.
    pub fn solve(&mut self, rhs: &[f64]) -> Result<Solution> {
        let problem = self.with(rhs);
        problem.check_statement()?;
        self.reusable.solve(&problem, &mut Profiler::off())
    }

    /// Solves as [`Plan::solve`] does, into `u` over all nodes, whose previous values are not read.
    ///
    /// # Errors
    /// As [`Plan::solve`], and [`Error::Input`] if `u` has another length; `u` holds no solution then.
    pub fn solve_into(&mut self, rhs: &[f64], u: &mut [f64]) -> Result<Report> {
        let problem = self.with(rhs);
        problem.check_statement()?;
        let nodes = self.reusable.driver().grid().len();
        if u.len() != nodes {
            let fault = Fault::new("u", format!("{} values where the grid has {nodes} nodes", u.len()));
            return Err(Error::Input { origin: "the plan".into(), problems: vec![fault.hint("arrays cover all nodes, sides included")] });
        }
        self.reusable.solve_into(&problem, u, &mut Profiler::off())
    }

    /// The problem of a right-hand side.
    fn with<'a>(&self, rhs: &'a [f64]) -> Problem<'a> {
        let Problem { nodes, size, sides, mean, .. } = self.problem.clone();
        Problem { nodes, size, sides, rhs: rhs.into(), guess: None, mean }
    }

    /// Solves as [`Plan::solve_into`] does, with both arrays dense over all nodes in the memory of the plan's GPU, made by the
    /// [`Cuda`] of the plan's device or a clone of it: the work is put on its stream behind earlier work. Nothing of the size of
    /// the grid goes to the host.
    ///
    /// # Errors
    /// As [`Plan::solve_into`]; [`Error::Device`] if the plan is for the CPU; [`Error::Input`] for `tolerance = "truncation"`,
    /// whose error is estimated on the host.
    pub fn solve_on_gpu(&mut self, rhs: &Buffer<f64>, u: &mut Buffer<f64>) -> Result<Report> {
        let Device::Cuda(cuda) = self.reusable.device().clone() else { return Err(stages::needs_gpu_stages()) };
        let grid = self.reusable.driver().grid().clone();
        let length = |path: &str, n: usize| {
            (n != grid.len()).then(|| {
                let fault = Fault::new(path, format!("{n} values where the grid has {} nodes", grid.len()));
                fault.hint("arrays cover all nodes, sides included")
            })
        };
        let mut faults: Vec<_> = length("rhs", rhs.len()).into_iter().chain(length("u", u.len())).collect();
        if self.reusable.driver().choice().truncation {
            let fault = Fault::new("tolerance", "`truncation` needs the arrays on the host");
            faults.push(fault.hint("give a number, or call `solve_into`"));
        }
        if !faults.is_empty() {
            return Err(Error::Input { origin: "the plan".into(), problems: faults });
        }
        if self.sides.is_none() {
            self.sides = Some(self.sides_on(&grid, &cuda)?);
        }
        let Some((own, sides)) = &self.sides else { return Err(stages::needs_gpu_stages()) };
        let (f, found) = sides.fold(rhs, grid.singular())?;
        if !found.finite {
            let fault = Fault::new("rhs", "a value is not finite");
            return Err(Error::Input { origin: "the plan".into(), problems: vec![fault.allowed("finite numbers")] });
        }
        in_range(found.norms.max)?;
        let report = self.reusable.solve_on_gpu(f, u, (found.norms, own + found.mean))?;
        sides.finish(u, grid.singular().then_some(self.problem.mean))?;
        Ok(report)
    }

    /// The sides on the GPU, with the mean of the right-hand side that their derivatives make.
    fn sides_on(&self, grid: &Grid, cuda: &Cuda) -> Result<(f64, Sides)> {
        let (zeros, mut values) = (vec![0.0; grid.len()], vec![0.0; grid.len()]);
        let system = self.with(&zeros).system(&mut values, Vec::new())?;
        Ok((system.imbalance, Sides::new(grid, &system, &values, cuda)?))
    }

    /// Description of the chosen method and the reason for it.
    pub fn method(&self) -> &str {
        &self.reusable.driver().choice().description
    }

    /// Bytes held on the device.
    pub fn memory(&self) -> u64 {
        self.reusable.driver().memory() + self.sides.as_ref().map_or(0, |(_, sides)| sides.memory())
    }
}
