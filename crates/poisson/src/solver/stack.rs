//! A stack of right-hand sides on one grid, as the run loop sees it: the direct solver takes as many together as fit, a step
//! each time; other methods take one after another, a step being one of theirs.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::{Value, json};
use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::device::{Device, host_must_hold};
use zellige_engine::error::Result;
use zellige_engine::large::zeros;
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Check, Record, Row};
use zellige_engine::sim::{Cost, Ending, Environment, Outcome};

use super::single::{self, NOTABLE_IMBALANCE, ending, residual_limit, share_of_imbalance};
use crate::batch::{BatchSolver, concurrent, host_bytes};
use crate::config::Config;
use crate::driver::{Driver, on_host};
use crate::grid::{Grid, Level};
use crate::method::{Choice, Scheme};
use crate::setup::BatchProblems;
use crate::solve::{Report, Solution};
use crate::stages::HostShare;
use crate::status::Status;
use crate::{cost, output, setup, truncation};

/// All of a stack while it is being solved.
pub(crate) struct Stack {
    config: Config,
    device: Device,
    grid: Grid,
    /// Slabs of the grid that this part of a run has.
    share: HostShare,
    choice: Choice,
    levels: Vec<Level>,
    problems: BatchProblems,
    work: SolveOrder,
    done: Vec<SolveSummary>,
    /// Solutions of those that are done, one behind the other, of this part's slabs.
    solutions: Vec<f64>,
    steps: u64,
}

enum SolveOrder {
    /// Several at a time.
    Concurrent(Box<BatchSolver>),
    /// One after another; `loaded`: number `done.len()` is in the driver.
    Sequential { driver: Box<Driver>, loaded: bool },
}

/// Outcome of one right-hand side.
#[derive(Debug, Clone, Copy)]
struct SolveSummary {
    status: Status,
    steps: f64,
    residual: f64,
    relative: f64,
    backward_error: f64,
    floor: f64,
    reference: f64,
    imbalance: f64,
    /// Share of the truncation error; NaN where that is not the goal.
    share: f64,
}

/// Statuses from the best to the worst, which is that of the whole.
const ENDINGS: [Status; 5] = [Status::Converged, Status::PrecisionFloor, Status::MaxCycles, Status::Stagnated, Status::Diverged];
/// Numbers of a [`SolveSummary`].
const FIGURES: usize = 9;

fn rank(status: Status) -> usize {
    ENDINGS.iter().position(|s| *s == status).unwrap_or_default()
}

impl SolveSummary {
    fn of(report: &Report) -> Self {
        Self {
            status: report.status,
            steps: report.steps as f64,
            residual: report.history.last().copied().unwrap_or_default(),
            relative: report.relative_residual,
            backward_error: report.backward_error,
            floor: report.floor,
            reference: report.reference,
            imbalance: report.imbalance,
            share: report.truncation.map_or(f64::NAN, |t| t.share),
        }
    }

    fn figures(&self) -> [f64; FIGURES] {
        let Self { status, steps, residual, relative, backward_error, floor, reference, imbalance, share } = *self;
        [rank(status) as f64, steps, residual, relative, backward_error, floor, reference, imbalance, share]
    }

    fn from_figures(figures: &[f64; FIGURES]) -> Option<Self> {
        let [status, steps, residual, relative, backward_error, floor, reference, imbalance, share] = *figures;
        let status = *ENDINGS.get(status as usize)?;
        Some(Self { status, steps, residual, relative, backward_error, floor, reference, imbalance, share })
    }
}

/// Returns true if right-hand sides of a stack are solved together: by the direct solver to a residual, without an error estimate.
pub(crate) fn together(choice: &Choice) -> bool {
    choice.scheme == Scheme::Direct && !choice.truncation
}

/// Lines of the plan about a stack of `count`.
pub(crate) fn plan_line(count: usize, concurrent: usize, choice: &Choice, parts: usize, gpu: bool) -> String {
    let launches = count.div_ceil(concurrent);
    if !together(choice) {
        format!("{count} right-hand sides, one after another: this method takes one at a time")
    } else if gpu && launches == 1 {
        format!("{count} right-hand sides, all of them in each launch")
    } else if gpu {
        format!("{count} right-hand sides, {concurrent} in each launch: {launches} times, as the memory allows")
    } else if parts > 1 {
        format!("{count} right-hand sides, one after another, each by all parts")
    } else {
        format!("{count} right-hand sides, {concurrent} at a time, one thread each")
    }
}

impl Stack {
    pub(crate) fn new(config: &Config, count: usize, choice: Choice, environment: &Environment) -> Result<Self> {
        let device = environment.device.clone();
        let grid = setup::grid(config);
        let levels = single::levels_of(&grid, &choice);
        single::fits(&grid, &choice, &levels, &device, &environment.links)?;
        host_must_hold(host_bytes(&grid, count), format!("{count} right-hand sides and solutions of {} unknowns", grid.unknowns()))?;
        let links = &environment.links;
        single::must_be_cut(&choice, matches!(device, Device::Cuda(_)), links.size())?;
        let (work, share) = if together(&choice) {
            // Parts take one after the other.
            let concurrent = if links.is_alone() { concurrent(&grid, &choice, count, &device) } else { 1 };
            let solver = BatchSolver::new(&grid, &choice, concurrent, &device, links)?;
            let share = solver.share();
            (SolveOrder::Concurrent(Box::new(solver)), share)
        } else {
            let driver = Driver::of_part(&grid, choice.clone(), &device, links)?;
            let share = driver.share().clone();
            (SolveOrder::Sequential { driver: Box::new(driver), loaded: false }, share)
        };
        let problems = share.together(on_host(&device, || setup::problems(config, count, &environment.folder, &share)))?;
        let own = share.own(grid.len()).len();
        let (done, solutions, config) = (Vec::with_capacity(count), Vec::with_capacity(count * own), config.clone());
        Ok(Self { config, device, grid, share, choice, levels, problems, work, done, solutions, steps: 0 })
    }

    fn count(&self) -> usize {
        self.problems.count()
    }

    pub(crate) fn step(&mut self, profiler: &mut Profiler) -> Result<()> {
        let first = self.done.len();
        self.steps += 1;
        let solved = match &mut self.work {
            SolveOrder::Concurrent(together) => {
                let next = self.problems.count().min(first + together.concurrent());
                let problems: Vec<_> = (first..next).map(|k| self.problems.of(k)).collect();
                together.solve(&problems, profiler)?
            }
            SolveOrder::Sequential { driver, loaded } => {
                if !*loaded {
                    let problem = self.problems.of(first);
                    driver.load(on_host(&self.device, || problem.fold_in(&self.share))?)?;
                    driver.begin(profiler)?;
                    *loaded = true;
                }
                if driver.status().is_none() {
                    driver.step(profiler)?;
                }
                if driver.missed() {
                    let problem = self.problems.of(first);
                    driver.fall_back(on_host(&self.device, || problem.fold_in(&self.share))?)?;
                    driver.begin(profiler)?;
                }
                match driver.status() {
                    None => return Ok(()),
                    Some(status) => {
                        *loaded = false;
                        vec![Solution { u: driver.solution()?, report: Report::of(driver, status) }]
                    }
                }
            }
        };
        for Solution { u, report } in solved {
            self.done.push(SolveSummary::of(&report));
            self.solutions.extend(&u[self.share.own(u.len())]);
        }
        Ok(())
    }

    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    pub(crate) fn progress(&self) -> f64 {
        let part = match &self.work {
            SolveOrder::Sequential { driver, loaded: true } => driver.monitor().progress(),
            _ => 0.0,
        };
        (self.done.len() as f64 + part) / self.count() as f64
    }

    pub(crate) fn outcome(&self) -> Option<Outcome> {
        if self.done.len() < self.count() {
            return None;
        }
        let worst = self.done.iter().map(|d| d.status).max_by_key(|s| rank(*s))?;
        let parts: Vec<String> = ENDINGS
            .iter()
            .filter_map(|status| {
                let n = self.done.iter().filter(|d| d.status == *status).count();
                (n > 0).then(|| format!("{n} {}", status.word()))
            })
            .collect();
        let (k, d) = self.largest(|d| d.relative)?;
        let mut message = format!(
            "of {} right-hand sides {}; the largest relative residual is {:.2e}, of number {k}",
            self.count(),
            parts.join(", "),
            d.relative
        );
        if ending(worst, self.config.max_cycles.is_some()) != Ending::Finished
            && let Some(k) = self.done.iter().position(|d| d.status == worst)
        {
            let _ = write!(message, "; number {k} is the first that ended as {}", worst.word());
        }
        let share = |d: &SolveSummary| share_of_imbalance(d.imbalance, d.reference);
        if let Some((k, d)) = self.largest(share).filter(|(_, d)| share(d) > NOTABLE_IMBALANCE) {
            let _ = write!(
                message,
                "; right-hand sides and fluxes do not balance, and no side has Dirichlet values: their means were subtracted, {:.6e} for number {k}",
                d.imbalance
            );
        }
        Some(Outcome { ending: ending(worst, self.config.max_cycles.is_some()), status: worst.word(), message })
    }

    /// The one with the largest of a figure, NaN before all others.
    fn largest(&self, figure: impl Fn(&SolveSummary) -> f64) -> Option<(usize, &SolveSummary)> {
        let of = |d: &SolveSummary| if figure(d).is_nan() { f64::INFINITY } else { figure(d) };
        self.done.iter().enumerate().rev().max_by(|a, b| of(a.1).total_cmp(&of(b.1)))
    }

    pub(crate) fn row(&self) -> Row {
        let mut row = Row::default();
        // A value that is not finite belongs to one of many problems, and does not end the others.
        let mut push = |name, value: f64| {
            if value.is_finite() {
                row.push(name, "", value);
            }
        };
        push("solved", self.done.len() as f64);
        match &self.work {
            SolveOrder::Concurrent(_) => push("largest_relative_residual", self.largest(|d| d.relative).map_or(0.0, |(_, d)| d.relative)),
            SolveOrder::Sequential { driver, loaded } => {
                push("right_hand_side", (self.done.len() - usize::from(!loaded && !self.done.is_empty())) as f64);
                push("cycle", driver.steps() as f64);
                push("residual", self.config.norm.of(driver.monitor().norms()));
                push("relative_residual", driver.monitor().relative());
                push("rate", driver.monitor().rate().unwrap_or(1.0));
            }
        }
        row
    }

    /// All solutions once there are all of them, at the first part; nothing before.
    pub(crate) fn records(&self) -> Result<Vec<Record>> {
        if self.done.len() < self.count() {
            return Ok(Vec::new());
        }
        let len = self.grid.len();
        let (mut u, mut rhs) = (Cow::Borrowed(&self.solutions[..]), Cow::Borrowed(self.problems.rhs()));
        if self.share.divided() {
            let of_rhs = rhs.chunks(len).map(|rhs| &rhs[self.share.own(len)]);
            (u, rhs) = (self.whole(self.own_solutions())?.into(), self.whole(of_rhs)?.into());
            if !self.share.links().is_first() {
                return Ok(Vec::new());
            }
        }
        let relative: Vec<f64> = self.done.iter().map(|d| d.relative).collect();
        Ok(vec![
            output::solutions(&self.config, self.count(), &u),
            output::right_hand_sides(&self.config, self.count(), &rhs),
            output::residuals(relative),
        ])
    }

    /// Solutions of those that are done, of this part's slabs.
    fn own_solutions(&self) -> impl Iterator<Item = &[f64]> {
        self.solutions.chunks(self.share.own(self.grid.len()).len())
    }

    /// Arrays over the grid, of which this part has its slabs, one behind the other: whole at the first part.
    fn whole<'a>(&self, arrays: impl Iterator<Item = &'a [f64]>) -> Result<Vec<f64>> {
        let mut whole = Vec::new();
        for own in arrays {
            let (share, len) = (&self.share, self.grid.len());
            whole.append(&mut on_host(&self.device, || share.at_first(share.spread(own, len)))?);
        }
        Ok(whole)
    }

    pub(crate) fn details(&self) -> Value {
        let one = |(k, d): (usize, &SolveSummary)| {
            let mut line = json!({
                "right_hand_side": k, "status": d.status.word(), "cycles": d.steps, "residual": d.residual,
                "relative_residual": d.relative, "backward_error": d.backward_error,
            });
            if self.grid.singular() {
                line["imbalance"] = json!(d.imbalance);
            }
            if self.choice.truncation {
                line["share_of_truncation_error"] = json!(d.share);
            }
            line
        };
        json!({ "right_hand_sides": self.done.iter().enumerate().map(one).collect::<Vec<_>>() })
    }

    /// The worst of each check, by how near it is to its limit.
    pub(crate) fn checks(&self) -> Result<Vec<Check>> {
        let mut worst: Vec<(f64, Check)> = Vec::new();
        for ((k, d), own) in self.done.iter().enumerate().zip(self.own_solutions()) {
            let problem = self.problems.of(k);
            let (grid, share) = (&self.grid, &self.share);
            let folded = on_host(&self.device, || problem.fold_in(share))?;
            let (norms, mean) = on_host(&self.device, || {
                let mut u = share.spread(own, grid.len());
                Ok((share.residual_norms(grid, &mut u, &folded.f)?, share.mean(grid, &u)?))
            })?;
            let reference = d.reference;
            let scale = if reference > 0.0 { reference } else { 1.0 };
            let mut checks = Vec::new();
            if self.choice.truncation {
                if !d.share.is_nan() {
                    checks.push(("algebraic error over truncation error", d.share, truncation::SHARE));
                }
            } else {
                let criteria = &self.choice.criteria;
                let goal = if reference > 0.0 { criteria.relative.max(criteria.absolute / reference) } else { criteria.absolute };
                let limit = residual_limit(goal, d.floor);
                checks.push(("relative residual, recomputed in double precision", self.config.norm.of(norms) / scale, limit));
            }
            if self.grid.singular() {
                let limit = 1e-12 * (self.config.mean.abs() + norms.u_l2).max(f64::MIN_POSITIVE);
                checks.push(("mean of the solution", (mean - self.config.mean).abs(), limit));
            }
            for (name, value, limit) in checks {
                let share = if value.is_nan() { f64::INFINITY } else { value / limit };
                let check = Check::at_most(format!("{name}, the worst (number {k})"), value, limit);
                match worst.iter_mut().find(|(_, c)| c.name.starts_with(name)) {
                    None => worst.push((share, check)),
                    Some(held) if share > held.0 => *held = (share, check),
                    Some(_) => {}
                }
            }
        }
        Ok(worst.into_iter().map(|(_, check)| check).collect())
    }

    pub(crate) fn save(&mut self, writer: &mut Writer) -> Result<()> {
        writer.u64("steps", self.steps)?;
        writer.u64(single::DIRECT, u64::from(together(&self.choice)))?;
        writer.f64s("done", &self.done.iter().flat_map(SolveSummary::figures).collect::<Vec<_>>())?;
        let (len, own) = (self.grid.len(), self.share.own(self.grid.len()));
        let has = self.share.divided() || self.share.links().is_first();
        let pieces: Vec<_> = self.own_solutions().enumerate().filter(|_| has).map(|(k, u)| (k * len + own.start, u)).collect();
        writer.joined("solutions", &pieces)?;
        match &mut self.work {
            SolveOrder::Sequential { driver, loaded: true } => single::save(driver, writer),
            _ => Ok(()),
        }
    }

    pub(crate) fn restore(&mut self, reader: &Reader) -> Result<()> {
        self.steps = reader.u64("steps")?;
        let name = |direct: bool| if direct { "the direct solver" } else { "cycles or sweeps" };
        let [began, goes_on] = [reader.u64(single::DIRECT)? == 1, together(&self.choice)].map(name);
        if began != goes_on {
            let message = format!("{began} began this batch, {goes_on} would go on with it: resume it on the device that began it");
            return Err(reader.mismatch(message));
        }
        let figures = reader.f64s("done")?;
        let (lists, rest) = figures.as_chunks();
        self.done = lists.iter().filter_map(SolveSummary::from_figures).collect();
        let (len, own) = (self.grid.len(), self.share.own(self.grid.len()));
        let found = reader.count::<f64>("solutions")?;
        let whole = rest.is_empty() && self.done.len() == lists.len() && found == self.done.len() * len;
        if !whole || self.done.len() > self.count() {
            return Err(reader.content_error("`done` and `solutions` do not belong together"));
        }
        self.solutions = zeros(self.done.len() * own.len());
        for (k, u) in self.solutions.chunks_mut(own.len()).enumerate() {
            reader.values_from("solutions", k * len + own.start, u)?;
        }
        if let SolveOrder::Sequential { driver, loaded } = &mut self.work {
            *loaded = reader.has("u");
            if *loaded {
                if self.done.len() == self.problems.count() {
                    return Err(reader.content_error("`u` is one more than there are right-hand sides"));
                }
                let problem = self.problems.of(self.done.len());
                single::restore(driver, on_host(&self.device, || problem.fold_in(&self.share))?, reader)?;
            }
        }
        Ok(())
    }

    pub(crate) fn cost(&self) -> Cost {
        let one = cost::step(&self.levels, self.choice.scheme, self.choice.precision);
        match &self.work {
            SolveOrder::Sequential { .. } => one,
            SolveOrder::Concurrent(together) => {
                // The last one may be of fewer.
                let each = self.count() as f64 / self.count().div_ceil(together.concurrent()) as f64;
                Cost { bytes: each * one.bytes, flops: each * one.flops, items: each * one.items }
            }
        }
    }
}
