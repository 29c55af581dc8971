//! One problem, as the run loop sees it.

use std::fmt::Write as _;
use std::path::Path;

use zellige_engine::checkpoint::{Element, Reader, Writer};
use zellige_engine::device::{Device, host_must_hold};
use zellige_engine::error::{Error, Problem as Fault, Result};
use zellige_engine::large::zeros;
use zellige_engine::links::Links;
use zellige_engine::notice;
use zellige_engine::ops::plane::{FieldCopier, PlaneOnGpu};
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Check, FieldOnGpu, Pictures, Planes, Record, Row, ValuesOnGpu};
use zellige_engine::sim::{Cost, Ending, Environment, Outcome, Plan, not_on_gpu};
use zellige_engine::times::{self, Phase};

use crate::config::Config;
use crate::driver::{Driver, on_host};
use crate::fold::{Folded, copy, copy_unknowns};
use crate::grid::{Grid, Level, cycle_levels};
use crate::method::{Choice, Scheme};
use crate::problem::Problem;
use crate::stages::cpu::division;
use crate::stages::{HostShare, Norms, Smoother, StoredResidual};
use crate::status::Status;
use crate::{cost, output, setup, truncation};

/// Section of a checkpoint: 1 where the direct solver was at work.
pub(super) const DIRECT: &str = "direct solver";

/// One problem being solved.
pub(crate) struct Single {
    config: Config,
    device: Device,
    links: Links,
    problem: Problem<'static>,
    driver: Driver,
    levels: Vec<Level>,
    /// Root mean square of the right-hand side without its mean, which an imbalance is measured against.
    reference: f64,
    /// Pictures of the right-hand side, which stays as it is; none before somebody looks.
    rhs_seen: Option<Record>,
}

/// An imbalance above this share of the right-hand side is said.
pub(crate) const NOTABLE_IMBALANCE: f64 = 1e-10;

/// Ratio of the subtracted mean to a right-hand side, `reference` being the remainder.
pub(crate) fn share_of_imbalance(imbalance: f64, reference: f64) -> f64 {
    let whole = reference.hypot(imbalance);
    if whole > 0.0 { imbalance.abs() / whole } else { 0.0 }
}

pub(crate) fn levels_of(grid: &Grid, choice: &Choice) -> Vec<Level> {
    cycle_levels(grid, if matches!(choice.scheme, Scheme::Cycles { .. }) { choice.coarse_levels } else { 0 })
}

/// Refuses several parts of the direct solver on GPUs.
pub(crate) fn must_be_cut(choice: &Choice, gpu: bool, parts: usize) -> Result<()> {
    if choice.scheme != Scheme::Direct || parts == 1 || !gpu {
        return Ok(());
    }
    let fault = Fault::new("poisson.method", "the direct solver computes in one part on GPUs");
    Err(Error::input("the input", fault.hint("`method = \"multigrid\"` is cut into parts there; or use `--device cpu`, or one part")))
}

/// Limit of a recomputed residual. The one that stopped the solve was rounded in the working precision: twice the floor covers it.
pub(crate) fn residual_limit(goal: f64, floor: f64) -> f64 {
    goal.max(8.0 * floor) + 2.0 * floor
}

/// Refuses what the machine cannot hold; a GPU has to hold one part, and a host those of its process.
pub(crate) fn fits(grid: &Grid, choice: &Choice, levels: &[Level], device: &Device, links: &Links) -> Result<()> {
    let parts = links.size();
    let mut needed = cost::memory(levels, choice.scheme, choice.precision, cost::shared(device));
    // Besides, the host has the right-hand side as the input states it, whatever the device: of each of its parts that of its slabs,
    // on GPUs along a periodic axis the whole. An estimate of the truncation error has the whole of two arrays.
    let whole = size_of::<f64>() as u64 * grid.axes.iter().map(|a| a.nodes as u64).product::<u64>();
    let here = if links.shares_memory() { parts as u64 } else { 1 };
    if parts > 1 {
        let gpu = matches!(device, Device::Cuda(_));
        let part = division::of(levels, choice, &Plan { memory: needed, ..Plan::default() }, (parts, gpu)).memory;
        needed = if gpu { part } else { part.saturating_mul(here) };
    }
    let periodic = matches!(device, Device::Cuda(_)) && grid.axes[if grid.axes[2].is_flat() { 1 } else { 2 }].periodic();
    let mut given = if periodic { whole * here } else { whole * here / parts as u64 };
    if choice.truncation && parts > 1 {
        given += 2 * whole * here;
    }
    device.must_hold(needed, format!("the levels of a problem of {} unknowns", grid.unknowns()))?;
    host_must_hold(given, format!("the right-hand side of a problem of {} unknowns", grid.unknowns()))
}

pub(crate) fn ending(status: Status, limit_was_asked_for: bool) -> Ending {
    match status {
        Status::Converged => Ending::Finished,
        Status::PrecisionFloor => Ending::Limited,
        Status::MaxCycles if limit_was_asked_for => Ending::Limited,
        Status::MaxCycles | Status::Stagnated | Status::Diverged => Ending::Failed,
    }
}

/// Writes what a driver needs to continue.
pub(crate) fn save(driver: &mut Driver, writer: &mut Writer) -> Result<()> {
    let (u, held, share) = (driver.state()?, driver.stored_residual()?, driver.share().clone());
    if let Some(previous) = driver.previous_solution()? {
        writer.joined("older", &share.pieces(&previous))?;
    }
    if let Some(held) = held {
        writer.joined("residual", &share.pieces(&held.residual))?;
        writer.f64s("residual_scale", &[held.scale])?;
    }
    if let Some((steps, left)) = driver.direct_before() {
        writer.f64s("direct", &[steps as f64, left])?;
    }
    let monitor = driver.monitor();
    let last = monitor.norms();
    writer.joined("u", &share.pieces(&u))?;
    writer.f64s("history", monitor.history())?;
    writer.f64s("norms", &[last.l2, last.max, last.u_l2])
}

/// Reads an array over the grid, of the slabs that a part holds.
fn held<V: Element>(reader: &Reader, name: &str, share: &HostShare, len: usize) -> Result<Vec<V>> {
    let found = reader.count::<V>(name)?;
    if found != len {
        return Err(reader.content_error(format!("section `{name}` has {found} values, expected {len}: the input has changed")));
    }
    let (mut values, held) = (zeros(len), share.held(len));
    reader.values_from(name, held.start, &mut values[held])?;
    Ok(values)
}

/// Takes it back; `folded` is the system that the driver had.
pub(crate) fn restore(driver: &mut Driver, mut folded: Folded<'_>, reader: &Reader) -> Result<()> {
    let (share, nodes) = (driver.share().clone(), driver.grid().len());
    // Sides as they are stated: the direct solver has them in its right-hand side, where those saved may be rounded.
    let [_, n, l] = driver.grid().nodes();
    copy_unknowns(driver.grid(), &held(reader, "u", &share, nodes)?, &share.held(n * l), &mut folded.u);
    let mut last = [0.0; 3];
    reader.f64s_into("norms", &mut last)?;
    let history = reader.f64s("history")?;
    if history.is_empty() {
        return Err(reader.content_error("`history` is empty"));
    }
    let mut residual = None;
    if reader.has("residual") {
        let mut scale = [0.0];
        reader.f64s_into("residual_scale", &mut scale)?;
        let len = reader.count::<u8>("residual")?;
        residual = Some(StoredResidual { residual: held(reader, "residual", &share, len)?, scale: scale[0] });
    }
    if reader.has("direct") {
        let mut direct = [0.0; 2];
        reader.f64s_into("direct", &mut direct)?;
        driver.take_cycles(direct[0] as usize, direct[1])?;
    }
    driver.load(folded)?;
    let norms = Norms { l2: last[0], max: last[1], u_l2: last[2] };
    let previous = if reader.has("older") { Some(held(reader, "older", &share, nodes)?) } else { None };
    driver.resume(history, norms, residual.as_ref(), &mut Profiler::off())?;
    previous.map_or(Ok(()), |previous| driver.resume_polynomial(&previous))
}

impl Single {
    pub(crate) fn new(config: &Config, choice: Choice, environment: &Environment) -> Result<Self> {
        let device = environment.device.clone();
        let folder: &Path = &environment.folder;
        let grid = setup::grid(config);
        let levels = levels_of(&grid, &choice);
        fits(&grid, &choice, &levels, &device, &environment.links)?;
        must_be_cut(&choice, matches!(device, Device::Cuda(_)), environment.links.size())?;
        let mut driver = Driver::of_part(&grid, choice, &device, &environment.links)?;
        let share = driver.share().clone();
        let problem = share.together(on_host(&device, || setup::problem_in(config, folder, &share)))?;
        let folded = on_host(&device, || problem.view().fold_in(&share))?;
        let reference = folded.reference.l2;
        driver.load(folded)?;
        driver.begin(&mut Profiler::off())?;
        Ok(Self { config: config.clone(), device, links: environment.links.clone(), problem, driver, levels, reference, rhs_seen: None })
    }

    pub(crate) fn step(&mut self, profiler: &mut Profiler) -> Result<()> {
        self.driver.step(profiler)?;
        if self.driver.missed() {
            // The slabs are those of the direct solver.
            let share = self.driver.share().clone();
            self.driver.fall_back(on_host(&self.device, || self.problem.view().fold_in(&share))?)?;
            self.levels = levels_of(self.driver.grid(), self.driver.choice());
            self.driver.begin(profiler)?;
        }
        Ok(())
    }

    pub(crate) fn steps(&self) -> u64 {
        self.driver.steps() as u64
    }

    pub(crate) fn outcome(&self) -> Option<Outcome> {
        let status = self.driver.status()?;
        Some(Outcome { ending: ending(status, self.config.max_cycles.is_some()), status: status.word(), message: self.message(status) })
    }

    pub(crate) fn progress(&self) -> f64 {
        if self.driver.status().is_some() { 1.0 } else { self.driver.monitor().progress() }
    }

    fn message(&self, status: Status) -> String {
        let monitor = self.driver.monitor();
        let relative = monitor.relative();
        let mut message = match status {
            Status::Converged if self.driver.choice().truncation => {
                let share = self.driver.truncation().map_or(0.0, |t| t.share);
                format!("the algebraic error is {share:.1e} of the truncation error (relative residual {relative:.2e})")
            }
            Status::Converged if monitor.goal() < monitor.criteria().relative => format!(
                "relative residual {relative:.2e}, {:.1e} requested: the remaining error is smooth, an error of {:.1e} of the solution at most",
                monitor.goal(),
                monitor.criteria().relative
            ),
            Status::Converged => format!("relative residual {relative:.2e}, {:.1e} requested", monitor.goal()),
            Status::PrecisionFloor if self.driver.choice().truncation && self.driver.truncation().is_none() => format!(
                "relative residual {relative:.2e} is rounding error in {}, and the truncation error is no more than that: it could not be \
                 measured, and the solution is as good as this precision gives",
                self.config.precision
            ),
            Status::PrecisionFloor
                if matches!(self.driver.choice().scheme, Scheme::Sweeps { smoother: Smoother::Chebyshev { .. }, .. }) =>
            {
                format!(
                    "relative residual {relative:.2e} is the rounding error in {} of polynomials of this degree; `multigrid` and `sor` reach less",
                    self.config.precision
                )
            }
            Status::PrecisionFloor => format!(
                "relative residual {relative:.2e} is rounding error in {}; the solution is as good as this precision gives",
                self.config.precision
            ),
            Status::Stagnated if self.driver.choice().scheme == Scheme::Direct => {
                format!("the residual stagnates at {relative:.2e}, above rounding; try `method = \"multigrid\"` or another `precision`")
            }
            Status::Stagnated => {
                format!("the residual stagnates at {relative:.2e}; try `smoother = \"red_black\"`, other `pre`, `post` or `method`")
            }
            Status::Diverged if self.config.omega.is_some() => {
                "the residual grew or is not finite; leave `omega` out, or look for huge values in the input".into()
            }
            Status::Diverged => "the residual grew or is not finite; look for huge values in the input, or take another `method`".into(),
            Status::MaxCycles if self.driver.choice().truncation => match self.driver.truncation() {
                Some(t) => format!(
                    "the algebraic error is {:.1e} of the truncation error when `max_cycles` was reached, {} requested (relative residual \
                     {relative:.2e})",
                    t.share,
                    truncation::SHARE
                ),
                None => {
                    format!("relative residual {relative:.2e} when `max_cycles` was reached; the truncation error could not be measured")
                }
            },
            Status::MaxCycles => {
                format!("relative residual {relative:.2e} when `max_cycles` was reached, {:.1e} requested", monitor.goal())
            }
        };
        if let Some((_, left)) = self.driver.direct_before() {
            let _ = write!(message, "; by cycles, after the direct solver left a relative residual of {left:.1e}");
        }
        let imbalance = self.driver.imbalance();
        if share_of_imbalance(imbalance, self.reference) > NOTABLE_IMBALANCE {
            let _ = write!(
                message,
                "; right-hand side and fluxes do not balance, and no side has Dirichlet values: the mean {imbalance:.6e} was subtracted"
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

    pub(crate) fn row(&self) -> Row {
        let monitor = self.driver.monitor();
        let mut row = Row::default();
        row.push("cycle", "", self.driver.steps() as f64);
        row.push("residual", "", self.config.norm.of(monitor.norms()));
        row.push("relative_residual", "", monitor.relative());
        row.push("rate", "", monitor.rate().unwrap_or(1.0));
        if let Scheme::Sweeps { block, .. } = self.driver.choice().scheme {
            // Counted by `max_cycles`.
            row.push("sweeps", "", self.driver.steps() as f64 * f64::from(block));
        }
        row
    }

    /// Records of the results, of the slabs of this part.
    pub(crate) fn records(&mut self) -> Result<Vec<Record>> {
        let (u, rhs) = (self.driver.solution()?, self.right_hand_side());
        let share = self.driver.share();
        let (divided, own) = (share.divided(), share.own(u.len()));
        let cut = |values: Vec<f64>| if divided { values[own.clone()].to_vec() } else { values };
        let (u, rhs) = on_host(&self.device, || (cut(u), cut(rhs)));
        let mut fields = [output::solution(&self.config, u), output::right_hand_side(&self.config, rhs)];
        for field in &mut fields {
            field.share = divided.then_some(own.start);
        }
        Ok(fields.into_iter().map(Record::Field).chain([self.residual_curve()]).collect())
    }

    /// Those of the whole grid at the first part; none at the others.
    fn whole_records(&mut self) -> Result<Vec<Record>> {
        let (records, links) = (self.records()?, self.driver.share().links().clone());
        let whole = records.into_iter().map(|record| record.joined(&links)).collect::<Result<Vec<_>>>()?;
        Ok(if links.is_first() { whole } else { Vec::new() })
    }

    pub(crate) fn pictures(&mut self) -> Result<Pictures> {
        let double = output::in_doubles(&self.config);
        let Some(pixels) = self.driver.picture(self.config.dimensions(), double)? else {
            let device = self.device.clone();
            return Ok(times::after_steps(&device, Phase::Diagnostics, || self.whole_records())?.into());
        };
        let mut pictures = Pictures::default();
        let solution = output::solution_without_values(&self.config);
        pictures.push_coming(move || Ok(vec![Record::Planes(Planes::of_copies(solution, &pixels)?)]));
        if self.rhs_seen.is_none() {
            let rhs = output::right_hand_side(&self.config, self.right_hand_side());
            self.rhs_seen = Some(on_host(&self.device, || output::seen(Record::Field(rhs))));
        }
        pictures.extend(self.rhs_seen.clone().into_iter().chain([self.residual_curve()]));
        Ok(pictures)
    }

    /// The solution in the memory of the run's GPU; the right-hand side is on the host.
    pub(crate) fn field_on_gpu(&mut self, name: &str, copier: &FieldCopier) -> Result<FieldOnGpu> {
        let field = output::solution_without_values(&self.config);
        if name != field.name {
            return Err(not_on_gpu(name, &[field.name]));
        }
        let u = self.driver.solution_on_gpu(copier.cuda())?;
        if output::in_doubles(&self.config) {
            return Ok(FieldOnGpu { field, values: ValuesOnGpu::F64(u) });
        }
        let mut line = PlaneOnGpu::new(&u, true, [u.len(), 1], field.centring);
        line.double_in_record = false;
        Ok(FieldOnGpu { values: copier.plane(&line, "a copy of the solution")?, field })
    }

    /// A copy of the right-hand side, of this part's slabs.
    fn right_hand_side(&self) -> Vec<f64> {
        let (rhs, own) = (&self.problem.rhs, self.driver.share().own(self.problem.rhs.len()));
        let mut copied = zeros(rhs.len());
        on_host(&self.device, || copy(&rhs[own.clone()], &mut copied[own.clone()]));
        copied
    }

    fn residual_curve(&self) -> Record {
        let monitor = self.driver.monitor();
        let scale = if monitor.reference() > 0.0 { 1.0 / monitor.reference() } else { 1.0 };
        let relative: Vec<f64> = monitor.history().iter().map(|r| r * scale).collect();
        output::residual_curve(&relative, &self.step_name())
    }

    pub(crate) fn checks(&mut self) -> Result<Vec<Check>> {
        let (mut u, share) = (self.driver.solution()?, self.driver.share());
        let folded = on_host(&self.device, || self.problem.view().fold_in(share))?;
        let grid = folded.grid;
        let (norms, mean) = on_host(&self.device, || Ok((share.residual_norms(&grid, &mut u, &folded.f)?, share.mean(&grid, &u)?)))?;
        let monitor = self.driver.monitor();
        let reference = monitor.reference();
        let relative = self.config.norm.of(norms) / if reference > 0.0 { reference } else { 1.0 };
        let mut checks = Vec::new();
        let goal = if self.driver.choice().truncation { f64::INFINITY } else { monitor.goal() };
        if goal.is_finite() {
            checks.push(Check::at_most(
                "relative residual, recomputed in double precision",
                relative,
                residual_limit(goal, monitor.floor()),
            ));
        } else if let Some(truncation) = self.driver.truncation() {
            checks.push(Check::at_most("algebraic error over truncation error", truncation.share, truncation::SHARE));
        }
        if grid.singular() {
            let scale = self.config.mean.abs() + norms.u_l2;
            checks.push(Check::at_most("mean of the solution", (mean - self.config.mean).abs(), 1e-12 * scale.max(f64::MIN_POSITIVE)));
        }
        Ok(checks)
    }

    pub(crate) fn save(&mut self, writer: &mut Writer) -> Result<()> {
        writer.u64(DIRECT, u64::from(self.driver.choice().scheme == Scheme::Direct))?;
        save(&mut self.driver, writer)
    }

    /// Takes it back; also what parts on GPUs have done by cycles where `auto` takes the direct solver here.
    pub(crate) fn restore(&mut self, reader: &Reader) -> Result<()> {
        let fell_back = reader.has("direct");
        match (reader.u64(DIRECT)? == 1 || fell_back, self.driver.choice().scheme == Scheme::Direct) {
            (true, false) if matches!(self.device, Device::Cuda(_)) && !self.links.is_alone() => {
                let message = "it is of the direct solver, which computes in one part on GPUs: resume it in one part, or on the CPU";
                return Err(reader.mismatch(message));
            }
            (false, true) => {
                let grid = setup::grid(&self.config);
                let choice = self.config.options().choose_cycles(&grid, &self.device, self.config.guess.is_some())?;
                self.levels = levels_of(&grid, &choice);
                fits(&grid, &choice, &self.levels, &self.device, &self.links)?;
                if self.links.is_first() {
                    notice::tell(&format!("several parts began this run: {} goes on", choice.description));
                }
                self.driver = Driver::of_part(&grid, choice, &self.device, &self.links)?;
            }
            _ => {}
        }
        let share = self.driver.share().clone();
        let folded = on_host(&self.device, || self.problem.view().fold_in(&share))?;
        restore(&mut self.driver, folded, reader)
    }

    pub(crate) fn cost(&self) -> Cost {
        cost::step(&self.levels, self.driver.choice().scheme, self.driver.choice().precision)
    }
}
