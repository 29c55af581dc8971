//! One linear system on one device, driven step by step by the method chosen. [`crate::solve()`], the run loop's solver
//! and the benchmarks all go through here.

use zellige_engine::device::Device;
use zellige_engine::error::{Error, Result};
use zellige_engine::links::Links;
use zellige_engine::parallel::position;
use zellige_engine::profile::Profiler;
use zellige_engine::signal;

use crate::direct::Direct;
use crate::fold::{Folded, Reference};
use crate::grid::Grid;
use crate::method::{Choice, Scheme};
use crate::operator;
use crate::problem::{Precision, StageSetup};
use crate::stages::{HostShare, Norms, Smoother, Stages, StoredResidual, cpu, cuda};
use crate::status::{ConvergenceMonitor, Status};
use crate::truncation::{self, Truncation};
pub(crate) use solution::set_mean;
pub(crate) use steps::advance;
use steps::{first_residual, resumed_residual};

mod borrowed;
mod solution;
mod steps;

/// Owner of the data.
enum Backend {
    /// The stages of a cycle, on either device.
    Stages(Box<dyn Stages>),
    /// The direct solver.
    Direct(Box<Direct>),
}

/// A system being solved.
pub struct Driver {
    grid: Grid,
    choice: Choice,
    device: Device,
    backend: Backend,
    links: Links,
    share: HostShare,
    monitor: ConvergenceMonitor,
    status: Option<Status>,
    imbalance: f64,
    mean: f64,
    /// The right-hand side, kept where the host estimates the truncation error.
    f: Vec<f64>,
    truncation: Option<Truncation>,
    /// Residual when it was last made from `u` and `f`, and not carried on.
    made: f64,
    /// The solution is zero: nothing has been done since zeros were loaded.
    zero: bool,
    /// Steps of the direct solver, and the relative residual that it left, where cycles were taken after it.
    direct: Option<(usize, f64)>,
}

/// A carried residual is made afresh when it is about to fall below this multiple of the inner precision's unit times
/// the last one that was made: what it lost by rounding is then half a per cent of it.
const CARRY: f64 = 200.0;
/// Nor is it carried to within this factor of the goal or of the floor, where it decides.
const CARRY_MARGIN: f64 = 3.0;
/// Unknowns from which on a residual is carried: below, a cycle waits for launches, and recording a second graph costs more.
const CARRY_LEAST: usize = 1 << 20;
/// The first cycle's factor is taken to be no better than this; measured: 0.2, then 0.05.
const FIRST_FACTOR: f64 = 0.1;

/// The stages of a part of the run for a setup on a device.
fn open(setup: &StageSetup, device: &Device, links: &Links) -> Result<Box<dyn Stages>> {
    match device {
        Device::Cpu(pool) => cpu::of_part(setup, pool, links),
        Device::Cuda(gpu) => cuda::of_part(setup, gpu, links),
    }
}

/// The verdict on a direct solution and on the sweeps after it. What transforms leave is rounding, which the first sweeps
/// take down by a factor of four each until that of storing the solution is left.
pub(crate) fn direct_verdict(monitor: &mut ConvergenceMonitor, norms: Norms) -> Option<Status> {
    let verdict = monitor.push(norms);
    let exhausted = monitor.history().len() > 2 && monitor.rate().is_none_or(|rate| rate > POLISH_FACTOR);
    match verdict {
        Some(Status::Converged | Status::Diverged | Status::PrecisionFloor) => verdict,
        Some(Status::MaxCycles) | None if !exhausted => verdict,
        // Sweeps help no further: that is rounding only where the residual is as small.
        _ if monitor.at_floor() => Some(Status::PrecisionFloor),
        _ => Some(Status::Stagnated),
    }
}

/// The verdict before the first step of a method that starts from the boundary values alone, whose residual the reference is.
pub(crate) fn verdict_before(monitor: &mut ConvergenceMonitor) -> Option<Status> {
    let reference = monitor.reference_norms();
    monitor.push(Norms { l2: reference.l2, max: reference.max, u_l2: 0.0 })
}

/// A sweep on a direct solution that leaves more than this share of the residual has reached the floor.
const POLISH_FACTOR: f64 = 0.5;

/// Runs host work on the device's threads.
pub(crate) fn on_host<R: Send>(device: &Device, work: impl FnOnce() -> R + Send) -> R {
    match device {
        Device::Cpu(cpu) => cpu.install(work),
        Device::Cuda(_) => work(),
    }
}

impl Driver {
    /// Allocates everything that solving on `grid` needs.
    pub fn new(grid: &Grid, choice: Choice, device: &Device) -> Result<Self> {
        Self::of_part(grid, choice, device, &Links::default())
    }

    /// Allocates what a part of a run needs for solving on `grid`.
    pub fn of_part(grid: &Grid, choice: Choice, device: &Device, links: &Links) -> Result<Self> {
        let backend = match choice.scheme {
            Scheme::Direct => Backend::Direct(Box::new(Direct::of_part(grid, choice.precision, device, links)?)),
            Scheme::Sweeps { .. } => Backend::Stages(open(&StageSetup::new(grid, 0, choice.precision, false), device, links)?),
            Scheme::Cycles { fmg, .. } => {
                Backend::Stages(open(&StageSetup::new(grid, choice.coarse_levels, choice.precision, fmg.is_some()), device, links)?)
            }
        };
        let share = match &backend {
            Backend::Stages(stages) => stages.host_share(),
            Backend::Direct(direct) => direct.host_share(),
        };
        Ok(Self {
            share,
            links: links.clone(),
            monitor: ConvergenceMonitor::new(
                choice.criteria,
                choice.expected,
                choice.precision.eps(),
                operator::norm_bound(grid),
                Reference::default(),
            ),
            grid: grid.clone(),
            choice,
            device: device.clone(),
            backend,
            status: None,
            imbalance: 0.0,
            mean: 0.0,
            f: Vec::new(),
            truncation: None,
            made: 0.0,
            zero: false,
            direct: None,
        })
    }

    /// Returns true if a direct solution that was chosen automatically has ended without reaching its goal: [`Driver::fall_back`]
    /// is to follow.
    pub(crate) fn missed(&self) -> bool {
        self.status.is_some_and(|status| self.choice.missed(status))
    }

    /// Takes cycles in place of the direct solver, from its result if that is nearer than zero. `folded` is the system that it had;
    /// what follows is [`Driver::begin`] or [`Driver::run`].
    pub(crate) fn fall_back(&mut self, mut folded: Folded<'_>) -> Result<()> {
        let (steps, left) = (self.steps(), self.monitor.relative());
        if left < 1.0 {
            folded.u = self.state()?;
        }
        self.take_cycles(steps, left)?;
        self.load(folded)
    }

    /// Continues as [`Driver::fall_back`] does, after `steps` steps of the direct solver, with nothing loaded.
    pub(crate) fn take_cycles(&mut self, steps: usize, left: f64) -> Result<()> {
        if let Some(choice) = self.choice.after_direct(left) {
            *self = Self { direct: Some((steps, left)), ..Self::of_part(&self.grid, choice, &self.device, &self.links)? };
        }
        Ok(())
    }

    /// Steps of a direct solver that missed its goal, and the relative residual that it left.
    pub(crate) fn direct_before(&self) -> Option<(usize, f64)> {
        self.direct
    }

    /// Puts a system on the device. Its grid must be the one that the driver was made for.
    pub fn load(&mut self, folded: Folded<'_>) -> Result<()> {
        assert_eq!(folded.grid, self.grid, "a driver is made for one grid");
        let norm_a = operator::norm_bound(&self.grid);
        self.monitor =
            ConvergenceMonitor::new(self.choice.criteria, self.choice.expected, self.choice.precision.eps(), norm_a, folded.reference);
        (self.status, self.truncation) = (None, None);
        (self.imbalance, self.mean) = (folded.imbalance, folded.mean);
        self.f = Vec::new();
        let own = self.share.own(folded.u.len());
        let zero = on_host(&self.device, || position(&folded.u[own], |v| *v != 0.0)).is_none();
        // Parts have to begin alike.
        self.zero = self.share.max(if zero { 0.0 } else { 1.0 })? == 0.0;
        match &mut self.backend {
            Backend::Stages(stages) => stages.load(&folded.u, &folded.f)?,
            Backend::Direct(direct) => direct.load(&folded.u, &folded.f)?,
        }
        if self.choice.truncation {
            // The estimate needs the whole on every part.
            self.f = folded.f.into_owned();
            self.share.complete(&mut self.f)?;
        }
        Ok(())
    }

    /// The residual before the first step.
    pub fn begin(&mut self, profiler: &mut Profiler) -> Result<()> {
        self.begin_ahead(false, profiler)
    }

    /// Begins as [`Driver::begin`] does; `ahead`: steps follow at once, which may begin in the same pass.
    fn begin_ahead(&mut self, ahead: bool, profiler: &mut Profiler) -> Result<()> {
        let fresh = matches!(self.choice.scheme, Scheme::Cycles { fmg: Some(_), .. });
        self.status = match &mut self.backend {
            Backend::Stages(stages) if !fresh => {
                first_residual(stages.as_mut(), self.choice.scheme, ahead.then_some(self.zero), profiler)?;
                self.zero = false;
                self.monitor.push(stages.norms()?)
            }
            Backend::Direct(direct) if self.choice.warm => self.monitor.push(direct.norms(profiler)?[0]),
            Backend::Stages(_) | Backend::Direct(_) => verdict_before(&mut self.monitor),
        };
        self.made = self.monitor.last();
        Ok(())
    }

    /// Goes on from a saved state instead of [`Driver::begin`]; the system loaded must hold the saved solution, and `held` is what
    /// [`Driver::stored_residual`] gave.
    pub fn resume(&mut self, history: Vec<f64>, last: Norms, held: Option<&StoredResidual>, profiler: &mut Profiler) -> Result<()> {
        if let Backend::Stages(stages) = &mut self.backend
            && !held.map_or(Ok(false), |held| stages.restore_residual(held))?
        {
            resumed_residual(stages.as_mut(), self.choice.scheme, history.len().saturating_sub(1), profiler)?;
        }
        self.monitor.restore(history, last);
        self.status = None;
        Ok(())
    }

    /// Returns true if the next cycle may carry the residual on: its norm will decide nothing, and stays accurate to half a per
    /// cent.
    fn may_carry(&self) -> bool {
        let unit = if self.choice.precision == Precision::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
        let scale = if self.monitor.reference() > 0.0 { self.monitor.reference() } else { 1.0 };
        let decides = CARRY_MARGIN * self.monitor.goal().max(self.monitor.floor()) * scale;
        let history = self.monitor.history();
        let (Some(last), Scheme::Cycles { fmg, .. }) = (history.last(), self.choice.scheme) else { return false };
        if fmg.is_some() && history.len() == 1 {
            // Full multigrid comes next.
            return false;
        }
        let next = last * self.monitor.rate().unwrap_or(FIRST_FACTOR).min(FIRST_FACTOR);
        next > decides && next > CARRY * unit * self.made
    }

    /// One step of the method: a cycle, a full-multigrid start, a block of sweeps, the direct solution, or a sweep on it.
    /// Its residual is made from the solution, so that resuming from a saved one gives the same. Where there is a reason to stop,
    /// a long solution of the coarsest level ends early, and the step is not counted: the next call does it anew.
    pub fn step(&mut self, profiler: &mut Profiler) -> Result<()> {
        self.allow_interrupt(true);
        let outcome = self.step_carrying(false, profiler);
        self.allow_interrupt(false);
        match outcome {
            Err(Error::Interrupted { .. }) => Ok(()),
            outcome => outcome,
        }
    }

    fn allow_interrupt(&mut self, allowed: bool) {
        if let Backend::Stages(stages) = &mut self.backend {
            stages.allow_interrupt(allowed);
        }
    }

    /// One step; `carry`: a cycle may carry the residual on.
    fn step_carrying(&mut self, carry: bool, profiler: &mut Profiler) -> Result<()> {
        let first = self.own_steps() == 0;
        self.zero = false;
        let may_carry = carry && self.may_carry();
        let scheme = self.choice.scheme.after(self.own_steps());
        let begins = matches!(scheme, Scheme::Sweeps { pieces, .. } if self.own_steps().is_multiple_of(pieces as usize));
        match &mut self.backend {
            Backend::Stages(stages) => {
                if begins {
                    stages.restart_polynomial();
                }
                let carried = may_carry && self.grid.len() >= CARRY_LEAST && stages.carries();
                advance(stages.as_mut(), scheme, first, carried, profiler)?;
                self.status = self.monitor.push(stages.norms()?);
                if carried && self.status.is_some() {
                    // A verdict needs the true residual.
                    stages.residual(0, profiler)?;
                    self.status = self.monitor.push_again(stages.norms()?);
                    self.made = self.monitor.last();
                } else if !carried {
                    self.made = self.monitor.last();
                }
            }
            Backend::Direct(direct) => {
                let norms = if first { direct.solve_measured(profiler)? } else { direct.polish(&[true], profiler)? };
                self.status = direct_verdict(&mut self.monitor, norms[0]);
            }
        }
        if self.choice.truncation && matches!(self.status, None | Some(Status::PrecisionFloor | Status::Stagnated | Status::MaxCycles)) {
            // A constant makes no difference to it: not the solution with the mean asked for, whose rounding that could hide.
            let (mut u, eps) = (self.state()?, self.choice.precision.eps());
            self.share.complete(&mut u)?;
            self.truncation = on_host(&self.device, || truncation::estimate(&self.grid, &u, &self.f, eps));
            if self.truncation.is_some_and(|t| t.share <= truncation::SHARE) {
                self.status = Some(Status::Converged);
            }
        }
        Ok(())
    }

    /// Begins, and steps until there is a verdict, or a reason to stop where the caller can be interrupted
    /// ([`signal::while_asking`]).
    pub fn run(&mut self, profiler: &mut Profiler) -> Result<Status> {
        let interruption = signal::interruption();
        self.begin_ahead(true, profiler)?;
        loop {
            if let Some(status) = self.status {
                return Ok(status);
            }
            interruption.check()?;
            self.step_carrying(true, profiler)?;
        }
    }

    /// Exactly `steps` steps, unjudged: for benchmarks. Waits once, at the end.
    pub(crate) fn run_steps(&mut self, steps: u32, profiler: &mut Profiler) -> Result<()> {
        let fresh = matches!(self.choice.scheme, Scheme::Cycles { fmg: Some(_), .. });
        match &mut self.backend {
            Backend::Stages(stages) => {
                if matches!(self.choice.scheme, Scheme::Cycles { fmg: None, .. }) {
                    first_residual(stages.as_mut(), self.choice.scheme, (steps > 1).then_some(self.zero), profiler)?;
                }
                self.zero = false;
                for step in 0..steps {
                    // The last one's residual is the true one.
                    let carry = step + 1 < steps && stages.carries();
                    advance(stages.as_mut(), self.choice.scheme, fresh && step == 0, carry, profiler)?;
                }
                stages.norms().map(drop)
            }
            Backend::Direct(direct) => {
                direct.solve(profiler)?;
                direct.wait()
            }
        }
    }

    /// Sets the sweeps of a step and returns the relaxation factor: for benchmarks.
    pub(crate) fn fix_block(&mut self, sweeps: u32) -> f64 {
        match &mut self.choice.scheme {
            Scheme::Sweeps { smoother: Smoother::RedBlack { omega }, block, .. } => {
                *block = sweeps;
                *omega
            }
            _ => 0.0,
        }
    }

    /// The verdict, once there is one.
    pub fn status(&self) -> Option<Status> {
        self.status
    }

    /// Finished steps, those of a direct solver that missed its goal included.
    pub fn steps(&self) -> usize {
        self.direct.map_or(0, |(steps, _)| steps) + self.own_steps()
    }

    fn own_steps(&self) -> usize {
        self.monitor.history().len().saturating_sub(1)
    }

    /// Chosen method.
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// The residual's course.
    pub fn monitor(&self) -> &ConvergenceMonitor {
        &self.monitor
    }

    /// The finest grid.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// The estimate behind `tolerance = "truncation"`.
    pub fn truncation(&self) -> Option<Truncation> {
        self.truncation
    }

    /// Singular problems: the mean that was taken off the right-hand side.
    pub fn imbalance(&self) -> f64 {
        self.imbalance
    }

    /// Levels of the hierarchy, the finest included.
    pub fn levels(&self) -> usize {
        match &self.backend {
            Backend::Stages(stages) => stages.levels(),
            Backend::Direct(_) => 1,
        }
    }

    /// Bytes held on the device.
    pub fn memory(&self) -> u64 {
        match &self.backend {
            Backend::Stages(stages) => stages.memory(),
            Backend::Direct(direct) => direct.memory(),
        }
    }
}

#[cfg(test)]
mod tests;
