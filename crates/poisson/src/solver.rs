//! The solver as the run loop sees it.

use std::fmt::Write as _;
use std::path::Path;

use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::device::{Device, host_must_hold};
use zellige_engine::error::{Problem as Fault, Result};
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Check, Record, Row};
use zellige_engine::sim::{Bench, Case, Clock, Cost, Ending, Environment, Outcome, Plan, Solver};

use crate::config::Config;
use crate::driver::{Driver, on_host};
use crate::grid::{Bc, Grid, Level, cycle_levels};
use crate::method::{Choice, Scheme};
use crate::problem::Problem;
use crate::stages::{Held, Norms};
use crate::status::Status;
use crate::{bench, cost, operator, output, setup, truncation};

/// One problem being solved.
pub struct Poisson {
    config: Config,
    device: Device,
    problem: Problem<'static>,
    driver: Driver,
    levels: Vec<Level>,
    /// Root mean square of the right-hand side, which an imbalance is measured against.
    imbalance_scale: f64,
}

/// An imbalance above this share of the right-hand side is said.
const NOTABLE_IMBALANCE: f64 = 1e-10;

fn is_gpu(device: &Device) -> bool {
    matches!(device, Device::Cuda(_))
}

fn levels_of(grid: &Grid, choice: &Choice) -> Vec<Level> {
    cycle_levels(grid, if matches!(choice.scheme, Scheme::Cycles { .. }) { choice.coarse_levels } else { 0 })
}

impl Poisson {
    fn load(&mut self, u: Option<Vec<f64>>) -> Result<()> {
        let problem = self.problem.clone();
        let mut folded = on_host(&self.device, || problem.fold())?;
        self.imbalance_scale = folded.reference.l2.hypot(folded.imbalance);
        if let Some(u) = u {
            folded.u = u;
        }
        self.driver.load(folded)
    }

    fn message(&self, status: Status) -> String {
        let judge = self.driver.judge();
        let relative = judge.relative();
        let mut message = match status {
            Status::Converged if self.driver.choice().truncation => {
                let share = self.driver.truncation().map_or(0.0, |t| t.share);
                format!("the error of solving is {share:.1e} of the error of the formula (relative residual {relative:.2e})")
            }
            Status::Converged => format!("relative residual {relative:.2e}, {:.1e} asked for", judge.goal()),
            Status::PrecisionFloor if self.driver.choice().truncation && self.driver.truncation().is_none() => format!(
                "relative residual {relative:.2e} is rounding error in {}, and the error of the formula is no more than that: it could not be \
                 measured, and the solution is as good as this precision gives",
                self.config.precision
            ),
            Status::PrecisionFloor => format!(
                "relative residual {relative:.2e} is rounding error in {}; the solution is as good as this precision gives",
                self.config.precision
            ),
            Status::Stagnated if self.driver.choice().scheme == Scheme::Direct => {
                format!("the residual stands still at {relative:.2e}, above rounding; try `method = \"multigrid\"` or another `precision`")
            }
            Status::Stagnated => {
                format!("the residual stands still at {relative:.2e}; try `smoother = \"red_black\"`, other `pre`, `post` or `method`")
            }
            Status::Diverged => "the residual grew or is not finite; leave `omega` out, or look for huge values in the input".into(),
            Status::MaxCycles if self.driver.choice().truncation => match self.driver.truncation() {
                Some(t) => format!(
                    "the error of solving is {:.1e} of the error of the formula when `max_cycles` was reached, {} asked for (relative residual \
                     {relative:.2e})",
                    t.share,
                    truncation::SHARE
                ),
                None => format!(
                    "relative residual {relative:.2e} when `max_cycles` was reached; the error of the formula could not be measured"
                ),
            },
            Status::MaxCycles => format!("relative residual {relative:.2e} when `max_cycles` was reached, {:.1e} asked for", judge.goal()),
        };
        let imbalance = self.driver.imbalance();
        if imbalance.abs() > NOTABLE_IMBALANCE * self.imbalance_scale {
            let _ = write!(
                message,
                "; right-hand side and fluxes do not balance, and no side holds a value: the mean {imbalance:.6e} was taken off"
            );
        }
        message
    }

    fn step_name(&self) -> String {
        match self.driver.choice().scheme {
            Scheme::Sweeps { block, .. } => format!("steps of {block} sweeps"),
            _ => "cycles".into(),
        }
    }
}

/// `4096 x 4096 nodes`, and what stands on the sides.
fn grid_lines(config: &Config, grid: &Grid) -> Vec<(String, String)> {
    let join = |words: Vec<String>, by: &str| words.join(by);
    let axes = 0..config.dimensions();
    let nodes = join(axes.clone().map(|d| grid.axes[d].nodes.to_string()).collect(), " x ");
    // Six decimals where they hold the digits that matter; a grid may be of nanometres.
    let length = |h: f64| if (1e-3..1e6).contains(&h) { format!("{h:.6}") } else { format!("{h:.6e}") };
    let spacing = join(axes.clone().map(|d| length(grid.axes[d].h)).collect(), " x ");
    let word = |bc: Bc| match bc {
        Bc::Dirichlet => "Dirichlet",
        Bc::Neumann => "Neumann",
        Bc::Periodic => "periodic",
    };
    let sides = axes.map(|d| {
        let (axis, name) = (&grid.axes[d], ["x", "y", "z"][d]);
        if axis.lo == axis.hi { format!("{name} {}", word(axis.lo)) } else { format!("{name} {} to {}", word(axis.lo), word(axis.hi)) }
    });
    vec![("grid".into(), format!("{nodes} nodes, spacing {spacing}")), ("sides".into(), join(sides.collect(), ", "))]
}

/// Refuses what the machine cannot hold, before anything of it is asked for.
fn fits(grid: &Grid, choice: &Choice, levels: &[Level], device: &Device) -> Result<()> {
    let needed = cost::memory(levels, choice.scheme, choice.precision, is_gpu(device));
    // Besides, the host has the right-hand side as the input states it, whatever the device.
    let given = size_of::<f64>() as u64 * grid.axes.iter().map(|a| a.nodes as u64).product::<u64>();
    device.must_hold(needed, format!("the levels of a problem of {} unknowns", grid.unknowns()))?;
    host_must_hold(given, format!("the right-hand side of a problem of {} unknowns", grid.unknowns()))
}

fn ending(status: Status, limit_was_asked_for: bool) -> Ending {
    match status {
        Status::Converged => Ending::Finished,
        Status::PrecisionFloor => Ending::Limited,
        Status::MaxCycles if limit_was_asked_for => Ending::Limited,
        Status::MaxCycles | Status::Stagnated | Status::Diverged => Ending::Failed,
    }
}

impl Solver for Poisson {
    const NAME: &'static str = "poisson";
    const STEP: &'static str = "cycle";
    const ITEM: &'static str = "unknown";

    type Config = Config;

    fn check(config: &Config) -> Vec<Fault> {
        config.check()
    }

    fn plan(config: &Config, environment: &Environment) -> Result<Plan> {
        setup::look_at_files(config, &environment.folder)?;
        let grid = setup::grid(config);
        let choice = config.options().choose_on(&grid, &environment.device, config.guess.is_some())?;
        let levels = levels_of(&grid, &choice);
        let mut lines = grid_lines(config, &grid);
        lines.push(("method".into(), choice.words.clone()));
        if levels.len() > 1 {
            let coarsest = levels[levels.len() - 1].grid.nodes()[..config.dimensions()].iter().map(ToString::to_string).collect::<Vec<_>>();
            lines.push(("levels".into(), format!("{}, the coarsest {}", levels.len(), coarsest.join(" x "))));
        }
        lines.push(("precision".into(), choice.precision.to_string()));
        let goal =
            if choice.truncation { "truncation error".into() } else { format!("relative residual {:.1e}", choice.criteria.relative) };
        lines.push(("goal".into(), goal));
        let mut warnings = Vec::new();
        let floor = cost::expected_floor(&grid, choice.precision);
        if !choice.truncation && choice.criteria.relative < floor && choice.criteria.absolute == 0.0 {
            let better = if choice.precision.eps() > 1e-10 { "; `precision = \"mixed\"` goes further" } else { "" };
            warnings.push(format!(
                "a relative residual of {:.1e} is below the rounding error of {} on this grid, near {floor:.1e}: expect `precision_floor`{better}",
                choice.criteria.relative, choice.precision
            ));
        }
        Ok(Plan {
            lines,
            items: grid.unknowns() as u64,
            memory: cost::memory(&levels, choice.scheme, choice.precision, is_gpu(&environment.device)),
            traffic: cost::step(&levels, choice.scheme, choice.precision).bytes as u64,
            warnings,
        })
    }

    fn setup(config: &Config, environment: &Environment) -> Result<Self> {
        let device = environment.device.clone();
        let folder: &Path = &environment.folder;
        let grid = setup::grid(config);
        let choice = config.options().choose_on(&grid, &device, config.guess.is_some())?;
        let levels = levels_of(&grid, &choice);
        fits(&grid, &choice, &levels, &device)?;
        let problem = on_host(&device, || setup::problem(config, folder))?;
        let driver = Driver::new(&grid, choice, &device)?;
        let mut solver = Self { config: config.clone(), device, problem, driver, levels, imbalance_scale: 0.0 };
        solver.load(None)?;
        solver.driver.begin(&mut Profiler::off())?;
        Ok(solver)
    }

    fn step(&mut self, profiler: &mut Profiler) -> Result<()> {
        self.driver.step(profiler)
    }

    fn outcome(&self) -> Option<Outcome> {
        let status = self.driver.status()?;
        Some(Outcome { ending: ending(status, self.config.max_cycles.is_some()), status: status.word(), message: self.message(status) })
    }

    fn clock(&self) -> Clock {
        Clock { step: self.driver.steps() as u64, time: None }
    }

    fn progress(&self) -> f64 {
        if self.driver.status().is_some() { 1.0 } else { self.driver.judge().progress() }
    }

    fn row(&mut self) -> Result<Row> {
        let judge = self.driver.judge();
        let mut row = Row::default();
        row.push("cycle", "", self.driver.steps() as f64);
        row.push("residual", "", self.config.norm.of(judge.norms()));
        row.push("relative_residual", "", judge.relative());
        row.push("rate", "", judge.rate().unwrap_or(1.0));
        Ok(row)
    }

    fn records(&mut self) -> Result<Vec<Record>> {
        let u = self.driver.solution()?;
        let judge = self.driver.judge();
        let scale = if judge.reference() > 0.0 { 1.0 / judge.reference() } else { 1.0 };
        let relative: Vec<f64> = judge.history().iter().map(|r| r * scale).collect();
        let rhs = zellige_engine::record::Values::F64(self.problem.rhs.to_vec());
        Ok(vec![
            output::solution(&self.config, u),
            output::field(&self.config, "rhs", "right-hand side", rhs),
            output::residual_curve(&relative, &self.step_name()),
        ])
    }

    fn checks(&mut self) -> Result<Vec<Check>> {
        let u = self.driver.solution()?;
        let problem = self.problem.clone();
        let folded = on_host(&self.device, || problem.fold())?;
        let grid = folded.grid;
        let (norms, mean) = on_host(&self.device, || (operator::residual_norms(&grid, &u, &folded.f), operator::mean(&grid, &u)));
        let judge = self.driver.judge();
        let reference = self.config.norm.reference(folded.reference);
        let relative = self.config.norm.of(norms) / if reference > 0.0 { reference } else { 1.0 };
        let mut checks = Vec::new();
        // The residual that stopped the solve was rounded in the working precision: twice the floor covers it.
        let goal = if self.driver.choice().truncation { f64::INFINITY } else { judge.goal() };
        if goal.is_finite() {
            checks.push(Check::at_most(
                "relative residual, recomputed in double precision",
                relative,
                goal.max(8.0 * judge.floor()) + 2.0 * judge.floor(),
            ));
        } else if let Some(truncation) = self.driver.truncation() {
            checks.push(Check::at_most("error of solving over the error of the formula", truncation.share, truncation::SHARE));
        }
        if grid.singular() {
            let scale = self.config.mean.abs() + norms.u_l2;
            checks.push(Check::at_most("mean of the solution", (mean - self.config.mean).abs(), 1e-12 * scale.max(f64::MIN_POSITIVE)));
        }
        Ok(checks)
    }

    fn save(&mut self, writer: &mut Writer) -> Result<()> {
        let (u, held) = (self.driver.state()?, self.driver.held()?);
        if let Some(held) = held {
            writer.bytes("residual", &held.residual)?;
            writer.f64s("residual_scale", &[held.scale])?;
        }
        let judge = self.driver.judge();
        let last = judge.norms();
        writer.f64s("u", &u)?;
        writer.f64s("history", judge.history())?;
        writer.f64s("norms", &[last.l2, last.max, last.u_l2])
    }

    fn restore(&mut self, reader: &Reader) -> Result<()> {
        let mut u = vec![0.0; self.driver.grid().len()];
        reader.f64s_into("u", &mut u)?;
        let mut last = [0.0; 3];
        reader.f64s_into("norms", &mut last)?;
        let history = reader.f64s("history")?;
        if history.is_empty() {
            return Err(reader.wrong("`history` is empty"));
        }
        let mut held = None;
        if reader.has("residual") {
            let mut scale = [0.0];
            reader.f64s_into("residual_scale", &mut scale)?;
            held = Some(Held { residual: reader.bytes("residual")?, scale: scale[0] });
        }
        self.load(Some(u))?;
        let norms = Norms { l2: last[0], max: last[1], u_l2: last[2] };
        self.driver.resume(history, norms, held.as_ref(), &mut Profiler::off())
    }

    fn cost(&self) -> Cost {
        cost::step(&self.levels, self.driver.choice().scheme, self.driver.choice().precision)
    }

    fn cases() -> &'static [Case] {
        bench::CASES
    }

    fn bench(case: &Case, device: &Device) -> Result<Box<dyn Bench>> {
        bench::open(case, device)
    }
}
