//! Many right-hand sides: on a GPU those that the direct solver takes go through its kernels together, on the CPU they
//! are solved side by side.

use zellige_engine::cuda::Cuda;
use zellige_engine::device::Device;
use zellige_engine::error::Result;
use zellige_engine::links::Links;
use zellige_engine::parallel::{items, items_mut, map};
use zellige_engine::profile::Profiler;
use zellige_engine::sim::Cost;

use crate::cost;
use crate::direct::{DIRECT, Direct, SYSTEMS};
use crate::driver::{Driver, direct_verdict, on_host, set_mean, verdict_before};
use crate::grid::{Grid, hierarchy};
use crate::method::{Choice, Options, Scheme};
use crate::operator;
use crate::problem::Problem;
use crate::solve::{Report, ReusableDriver, Solution, solve_with};
use crate::stages::HostShare;
use crate::status::{ConvergenceMonitor, Status};

/// Share of the free memory that a batch may take.
const SHARE: f64 = 0.8;

/// Systems of the direct solver that fit into `free` bytes.
fn capacity(grid: &Grid, choice: &Choice, free: Option<u64>, device: &Device) -> usize {
    let each = cost::memory(&hierarchy(grid, 0), choice.scheme, choice.precision, cost::shared(device)) as f64;
    free.map_or(usize::MAX, |free| (SHARE * free as f64 / each) as usize)
}

/// Bytes on the host besides those of the device: right-hand sides and solutions.
pub(crate) fn host_bytes(grid: &Grid, count: usize) -> u64 {
    2 * (size_of::<f64>() * count) as u64 * grid.axes.iter().map(|a| a.nodes as u64).product::<u64>()
}

/// Number out of `count` right-hand sides that the direct solver takes at a time: on a GPU all that fit, in launches of similar
/// size; on the CPU one per thread.
pub(crate) fn concurrent(grid: &Grid, choice: &Choice, count: usize, device: &Device) -> usize {
    let (capacity, most) = match device {
        Device::Cuda(_) => (capacity(grid, choice, device.memory_free(), device), SYSTEMS),
        Device::Cpu(cpu) => {
            let free = device.memory_free().map(|free| free.saturating_sub(host_bytes(grid, count)));
            (capacity(grid, choice, free, device), cpu.threads())
        }
    };
    count.div_ceil(count.div_ceil(capacity.clamp(1, most)))
}

/// Solver of a stack of right-hand sides on one grid, kept from one part of the stack to the next.
pub(crate) struct BatchSolver {
    grid: Grid,
    choice: Choice,
    device: Device,
    links: Links,
    concurrent: usize,
    work: BatchBackend,
}

enum BatchBackend {
    /// A driver for each that goes side by side.
    Cpu(Vec<Driver>),
    /// One plan for all.
    Gpu(Option<Box<Direct>>),
}

impl BatchSolver {
    /// Makes the solver of a part of a run; several parts take one right-hand side at a time.
    pub(crate) fn new(grid: &Grid, choice: &Choice, concurrent: usize, device: &Device, links: &Links) -> Result<Self> {
        let driver = |_| Driver::of_part(grid, choice.clone(), device, links);
        let work = match device {
            Device::Cpu(_) => BatchBackend::Cpu((0..concurrent).map(driver).collect::<Result<_>>()?),
            Device::Cuda(_) => BatchBackend::Gpu(Some(Box::new(Direct::batch(grid, concurrent, choice.precision, device)?))),
        };
        Ok(Self { grid: grid.clone(), choice: choice.clone(), device: device.clone(), links: links.clone(), concurrent, work })
    }

    /// Slabs of the grid that this part of a run has on its host.
    pub(crate) fn share(&self) -> HostShare {
        match &self.work {
            BatchBackend::Cpu(drivers) => drivers[0].share().clone(),
            BatchBackend::Gpu(_) => HostShare::undivided(&self.grid, &self.links),
        }
    }

    pub(crate) fn concurrent(&self) -> usize {
        self.concurrent
    }

    /// Solves as many problems as [`BatchSolver::concurrent`] says, or fewer. Each solution has the bits that it has alone.
    pub(crate) fn solve(&mut self, problems: &[Problem<'_>], profiler: &mut Profiler) -> Result<Vec<Solution>> {
        let solutions = self.solve_directly(problems, profiler)?;
        by_cycles(solutions, problems, &self.grid, &self.choice, &self.device, &self.links)
    }

    fn solve_directly(&mut self, problems: &[Problem<'_>], profiler: &mut Profiler) -> Result<Vec<Solution>> {
        match &mut self.work {
            BatchBackend::Gpu(plan) => {
                if plan.as_ref().is_some_and(|plan| plan.systems() != problems.len()) {
                    // The old buffers go first, or both would have to fit.
                    *plan = None;
                }
                let direct = match plan {
                    Some(direct) => direct,
                    None => plan.insert(Box::new(Direct::batch(&self.grid, problems.len(), self.choice.precision, &self.device)?)),
                };
                solve_together(problems, &self.grid, &self.choice, direct, profiler)
            }
            BatchBackend::Cpu(drivers) => {
                let one = cost::step(&hierarchy(&self.grid, 0), self.choice.scheme, self.choice.precision);
                let n = problems.len() as f64;
                let cost = Cost { bytes: n * one.bytes, flops: n * one.flops, items: n * one.items };
                let alone = |_, (driver, problem): (&mut Driver, &Problem<'_>)| {
                    let share = driver.share().clone();
                    driver.load(problem.borrowed().fold_in(&share)?)?;
                    let status = driver.run(&mut Profiler::off())?;
                    Ok(Solution { u: driver.solution()?, report: Report::of(driver, status) })
                };
                profiler.stage(DIRECT, cost, || {
                    if let [driver] = &mut drivers[..] {
                        // All threads work on it.
                        return on_host(&self.device, || problems.iter().map(|problem| alone(0, (driver, problem))).collect());
                    }
                    on_host(&self.device, || map((items_mut(drivers), items(problems)), alone).into_iter().collect())
                })
            }
        }
    }
}

/// Solves all problems in order. Neighbours of one grid that the direct solver takes are solved together, as many as
/// the memory holds; the cycles of multigrid and plain relaxation end at a residual of their own, so such problems follow
/// one another.
pub(crate) fn solve_on_gpu(problems: &[Problem<'_>], options: &Options, device: &Device, cuda: &Cuda) -> Result<Vec<Solution>> {
    let (mut reusable, mut plan) = (None::<ReusableDriver>, None::<Direct>);
    let mut solutions = Vec::with_capacity(problems.len());
    while let Some(first) = problems.get(solutions.len()) {
        let rest = &problems[solutions.len()..];
        let grid = first.grid();
        let choice = options.choose_on(&grid, device, first.guess.is_some())?;
        let alike = |p: &&Problem<'_>| p.grid() == grid && p.guess.is_some() == first.guess.is_some();
        let together = match choice.scheme {
            Scheme::Direct if !choice.truncation => rest.iter().take_while(alike).count(),
            _ => 1,
        };
        if together == 1 {
            plan = None;
            solutions.push(solve_with(&mut reusable, first, options, device, &mut Profiler::off())?);
            continue;
        }
        reusable = None;
        let fitting = |d: &Direct| d.grid() == &grid && d.precision_bytes() == choice.precision.outer_bytes() && d.systems() <= together;
        if !plan.as_ref().is_some_and(fitting) {
            // The old buffers go first, or both would have to fit.
            plan = None;
        }
        let direct = match &mut plan {
            Some(direct) => direct,
            None => {
                let capacity = capacity(&grid, &choice, cuda.memory_free(), device);
                plan.insert(Direct::batch(&grid, together.min(capacity).clamp(1, SYSTEMS), choice.precision, device)?)
            }
        };
        let count = direct.systems();
        let found = solve_together(&rest[..count], &grid, &choice, direct, &mut Profiler::off())?;
        solutions.extend(by_cycles(found, &rest[..count], &grid, &choice, device, &Links::default())?);
    }
    Ok(solutions)
}

/// Solves by cycles what the direct solver was chosen for and missed.
fn by_cycles(
    mut solutions: Vec<Solution>,
    problems: &[Problem<'_>],
    grid: &Grid,
    choice: &Choice,
    device: &Device,
    links: &Links,
) -> Result<Vec<Solution>> {
    for (solution, problem) in solutions.iter_mut().zip(problems) {
        let Some(cycles) = choice.after_direct(solution.report.relative_residual).filter(|_| choice.missed(solution.report.status)) else {
            continue;
        };
        let mut driver = Driver::of_part(grid, cycles, device, links)?;
        let share = driver.share().clone();
        driver.load(on_host(device, || problem.borrowed().fold_in(&share))?)?;
        let status = driver.run(&mut Profiler::off())?;
        *solution = Solution { u: driver.solution()?, report: Report::of(&driver, status) };
    }
    Ok(solutions)
}

/// Solves as many problems as the plan has systems, step by step as [`Driver`] does one by one.
fn solve_together(
    problems: &[Problem<'_>],
    grid: &Grid,
    choice: &Choice,
    direct: &mut Direct,
    profiler: &mut Profiler,
) -> Result<Vec<Solution>> {
    let norm_a = operator::norm_bound(grid);
    let (mut runs, mut loaded) = (Vec::with_capacity(problems.len()), Vec::with_capacity(problems.len()));
    for (n, problem) in problems.iter().enumerate() {
        let folded = problem.borrowed().fold()?;
        direct.load_system(n, &folded.u, &folded.f)?;
        let monitor = ConvergenceMonitor::new(choice.criteria, choice.expected, choice.precision.eps(), norm_a, folded.reference);
        runs.push((monitor, None::<Status>, folded.imbalance, folded.mean));
        loaded.push(folded.u);
    }
    let guesses = if choice.warm { Some(direct.norms(profiler)?) } else { None };
    for (n, (monitor, status, ..)) in runs.iter_mut().enumerate() {
        *status = match &guesses {
            Some(norms) => monitor.push(norms[n]),
            None => verdict_before(monitor),
        };
    }
    // Problems that need no solving keep the loaded values.
    let before: Vec<_> = runs.iter().zip(loaded).map(|((_, status, ..), u)| status.map(|_| u)).collect();
    if runs.iter().any(|(_, status, ..)| status.is_none()) {
        let mut norms = direct.solve_measured(profiler)?;
        loop {
            for ((monitor, status, ..), norms) in runs.iter_mut().zip(&norms).filter(|((_, status, ..), _)| status.is_none()) {
                *status = direct_verdict(monitor, *norms);
            }
            let active: Vec<_> = runs.iter().map(|(_, status, ..)| status.is_none()).collect();
            if !active.contains(&true) {
                break;
            }
            norms = direct.polish(&active, profiler)?;
        }
    }
    let memory = direct.memory();
    let mut solutions = Vec::with_capacity(problems.len());
    for (n, ((monitor, status, imbalance, mean), before)) in runs.into_iter().zip(before).enumerate() {
        let mut u = match before {
            Some(u) => u,
            None => direct.solution_of(n)?,
        };
        set_mean(grid, &HostShare::whole(grid), &mut u, mean)?;
        let Some(status) = status else { continue };
        let report = Report::new(&monitor, choice, status, imbalance, None, 1, memory);
        solutions.push(Solution { u, report });
    }
    Ok(solutions)
}
