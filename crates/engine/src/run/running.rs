//! The run loop between two steps: set up, started, advanced step by step, ended. [`super::run_from`] does so at once, a caller who
//! wants to look at the solver in between does it by hand.

mod outside;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::recent::RecentRows;
use super::state::{PendingResults, Saver, TemporaryCheckpoint};
use super::{Options, Progress, Sink, Summary, Wish, agree, diagnostics, guard, parts, watch, write_records};
use crate::device::Device;
use crate::error::{Error, Problem, Result};
use crate::links::{Links, Traffic};
use crate::ops::plane::FieldCopier;
use crate::profile::{Profiler, per_item};
use crate::record::Row;
use crate::schedule::{Schedule, Trigger};
use crate::signal;
use crate::sim::{Clock, Ending, Environment, Look, Outcome, Solver};
use crate::times::{self, Phase, Times};

/// A run under way.
pub struct Running<S: Solver> {
    solver: S,
    saver: Saver<S>,
    device: Device,
    links: Links,
    seed: u64,
    /// Times on this thread before the run.
    before: Times,
    /// Clock after set-up: not at 0 where the run was resumed.
    first: Clock,
    started: Instant,
    resumed: bool,
    pending: PendingResults,
    rows: Trigger,
    records: Option<Trigger>,
    checkpoints: Option<Trigger>,
    temporary: Option<TemporaryCheckpoint>,
    /// Checkpoints were asked for.
    keeps: bool,
    /// A checkpoint was saved that nobody asked for: at a stop, for results that could not be written, or a temporary one.
    left: bool,
    recent: RecentRows,
    /// The last step, whose row waits for the next one, and the mark of a row that fell due.
    waiting: Option<(Clock, bool)>,
    /// Messages up to the start.
    traffic: Traffic,
    /// Steps after which the state was changed from outside.
    changed_after: Vec<u64>,
    /// None before somebody asks.
    copier: Option<FieldCopier>,
    /// Quantity, place and message of a state that has broken down: no step is made from such a state.
    broken: Option<[String; 3]>,
}

/// Figures of the steps of a run, as they stood when they had ended.
pub struct StepFigures {
    /// Wall time since the start.
    wall: Duration,
    /// Seconds in the steps themselves.
    seconds: f64,
    /// Bytes between parts.
    traffic: Traffic,
}

impl<S: Solver> Running<S> {
    /// Sets the solver up, and takes back the state that `options.resume` names. No file is written.
    pub fn set_up(prepared: Option<S::Prepared>, config: &S::Config, environment: &Environment, options: &Options) -> Result<Self> {
        times::begin(Phase::SetUp);
        let before = times::elapsed();
        let saver = times::within(Phase::Reading, || Saver::<S>::new(config, environment, options))?;
        times::switch_to(Phase::SetUp);
        let mut solver = match prepared {
            Some(prepared) => S::setup_prepared(prepared, config, environment)?,
            None => S::setup(config, environment)?,
        };
        let pending = times::within(Phase::Checkpoints, || {
            let reader = saver.open(options.resume.as_ref())?;
            reader.map(|reader| saver.restore(&mut solver, &reader)).transpose()
        })?;
        if let Device::Cuda(cuda) = &environment.device {
            // Copies of the state to the device are no part of the first step.
            cuda.synchronize()?;
        }
        let first = solver.clock();
        Ok(Self {
            solver,
            saver,
            device: environment.device.clone(),
            links: environment.links.clone(),
            seed: environment.seed,
            before,
            first,
            started: Instant::now(),
            resumed: pending.is_some(),
            pending: pending.unwrap_or_default(),
            rows: Trigger::new(options.rows, first, Duration::ZERO),
            records: None,
            checkpoints: None,
            temporary: None,
            keeps: false,
            left: false,
            recent: RecentRows::default(),
            waiting: None,
            traffic: Traffic::default(),
            changed_after: Vec::new(),
            copier: None,
            broken: None,
        })
    }

    /// Begins to hand over what the schedules of `options` ask for. A run whose steps so far were made by hand may be started once
    /// more, with other options: rows and diagnostics of before do not come again.
    pub fn start(&mut self, options: &Options, sink: &mut dyn Sink) -> Result<()> {
        if std::mem::take(&mut self.resumed) {
            sink.notice(&format!("resumed after {} {}", S::STEP, self.solver.clock().step));
        }
        if sink.may_wish() && self.links.is_alone() && matches!(self.device, Device::Cuda(_)) {
            watch::look(Look::Whole, &mut self.solver, &self.device, &self.saver, Vec::new, sink)?;
        }
        self.started = Instant::now();
        let now = self.solver.clock();
        for (key, schedule) in
            [("run.checkpoint_every", options.checkpoint), ("run.rows_every", Some(options.rows)), ("output.every", options.records)]
        {
            if let (Some(Schedule::Time(_)), None) = (schedule, now.time) {
                let message = format!("`{}` has no physical time, so this would never be due", S::NAME);
                let allowed = format!("a number of {}s or a wall time", S::STEP);
                return Err(Error::input("schedules", Problem::new(key, message).allowed(allowed)));
            }
        }
        self.by_hand();
        self.saver.save_in(options.checkpoint_folder());
        times::within(Phase::Output, || sink.started(&self.first))?;
        times::switch_to(Phase::Steps);
        let trigger = |s: Schedule| Trigger::new(s, now, Duration::ZERO);
        (self.rows, self.records) = (trigger(options.rows), options.records.map(trigger));
        self.checkpoints = options.checkpoint.map(trigger);
        self.temporary = options.temporary_checkpoints.filter(|_| self.checkpoints.is_none()).map(TemporaryCheckpoint::new);
        self.keeps = options.checkpoint.is_some();
        self.traffic = self.links.traffic();
        if now.step == 0 {
            diagnostics(&mut self.solver, &self.saver, Duration::ZERO, self.records.is_some(), sink)?;
        }
        Ok(())
    }

    /// Makes a step, with all that falls due after it, or returns the outcome of a run that is at its end. A step that gives way to
    /// a signal leaves the clock where it was.
    ///
    /// # Errors
    /// [`Error::Interrupted`] for the reason to `stop`, if there is one, once the state is saved; those of the solver and the sink.
    pub fn advance(&mut self, stop: Option<&'static str>, profiler: &mut Profiler, sink: &mut dyn Sink) -> Result<Option<Outcome>> {
        self.must_be_sound()?;
        if let Some(outcome) = self.outcome() {
            return Ok(Some(outcome));
        }
        let (stop, agreed, wish) = agree(&self.links, stop, self.started.elapsed(), sink.wish())?;
        if let Some(reason) = stop.or_else(|| wish.stop.then_some(signal::LIVE_PAGE)) {
            self.settle(sink)?;
            if wish.stop {
                // Who stops it sees what it stops at.
                self.grant(Wish { pictures: wish.pictures, ..Wish::default() }, profiler, sink)?;
            }
            let checkpoint = Some(self.save_before_end(sink)?);
            return Err(Error::Interrupted { reason, step: self.solver.clock().step, checkpoint });
        }
        self.grant(wish, profiler, sink)?;
        let agreed = (!self.links.is_alone()).then_some(agreed);
        self.make_step(agreed, profiler, sink)
    }

    /// Saves the state of a run that is stopped on its way to the end; a run that comes to its end later removes it.
    ///
    /// # Errors
    /// The state has broken down, or the file cannot be written.
    pub fn save_before_end(&mut self, sink: &mut dyn Sink) -> Result<PathBuf> {
        self.must_be_sound()?;
        self.settle(sink)?;
        let Self { solver, saver, device, pending, .. } = self;
        let saved = times::after_steps(device, Phase::Checkpoints, || saver.save(solver, pending, sink));
        self.left |= saved.is_ok();
        self.remembering(saved)
    }

    /// Drops what the run was to write by [`Running::start`], but for rows: steps by hand follow, or another start.
    pub fn by_hand(&mut self) {
        self.left |= self.temporary.take().is_some_and(|temporary| temporary.saved());
        (self.records, self.checkpoints, self.keeps) = (None, None, false);
    }

    /// Grants a wish, but for that to stop, before the next step.
    pub fn grant(&mut self, wish: Wish, profiler: &mut Profiler, sink: &mut dyn Sink) -> Result<()> {
        if wish.save {
            self.must_be_sound()?;
        }
        // Results of before come first: what is granted changes the state, or saves it as one whose results are written.
        if wish != Wish::default() && matches!(self.pending, PendingResults::Results) {
            self.pending = PendingResults::Nothing;
            write_records(&mut self.solver, &self.device, &self.saver, None, sink)?;
        }
        // Pictures of a run that is alone can do without the row of the last step, for which the host would wait.
        if wish.save || wish.next || (wish.pictures.is_some() && !self.links.is_alone()) {
            self.settle(sink)?;
        }
        watch::grant(wish, &mut self.solver, &self.device, &self.saver, profiler, sink)
    }

    /// Makes a step as [`Running::advance`] does, for a caller who has heeded reasons to stop and wishes; `agreed` is the wall time
    /// of all parts, where there are several.
    ///
    /// # Errors
    /// Those of the solver and the sink; a state that has broken down is refused at each further step.
    pub fn make_step(&mut self, agreed: Option<Duration>, profiler: &mut Profiler, sink: &mut dyn Sink) -> Result<Option<Outcome>> {
        self.must_be_sound()?;
        let made = self.step_and_hand_on(agreed, profiler, sink);
        self.remembering(made)
    }

    fn step_and_hand_on(&mut self, agreed: Option<Duration>, profiler: &mut Profiler, sink: &mut dyn Sink) -> Result<Option<Outcome>> {
        if let Some(outcome) = self.outcome() {
            return Ok(Some(outcome));
        }
        let Self { solver, saver, device, .. } = self;
        if let PendingResults::Results = std::mem::take(&mut self.pending) {
            write_records(solver, device, saver, None, sink)?;
            return Ok(None);
        }
        let before = solver.clock().step;
        profiler.next_step();
        if let Err(error) = solver.step(profiler) {
            // A row that was waited for does not come any more.
            let before = self.waiting.take().map_or(before, |(clock, _)| clock.step.saturating_sub(1));
            return Err(self.recent.write_last_rows(error, before, S::STEP, sink));
        }
        if let Some((clock, due)) = self.waiting.take() {
            let row = self.solver.row_before();
            self.hand_over(row, clock, due, sink)?;
        }
        let Self { solver, .. } = self;
        let (clock, wall) = (solver.clock(), agreed.unwrap_or_else(|| self.started.elapsed()));
        if clock.step == before && signal::stop_reason().is_some() {
            // It gave way to a signal, and has no row yet.
            return Ok(None);
        }
        let ended = solver.outcome().map(|o| o.ending);
        let failed = ended == Some(Ending::Failed);
        let due = self.rows.due(clock, wall);
        if S::ROW_EACH_STEP || due || ended.is_some() {
            if ended.is_none() && solver.row_can_wait() {
                self.waiting = Some((clock, due));
            } else {
                let row = solver.row();
                self.hand_over(row, clock, due, sink)?;
            }
        }
        let saves_records = ended.is_none() && self.records.as_mut().is_some_and(|t| t.due(clock, wall));
        // A state that failed is none to go on from, and must not take the place of one that is.
        let saves = !failed && self.checkpoints.as_mut().is_some_and(|t| t.due(clock, wall));
        let temporary = self.temporary.as_ref().is_some_and(|temporary| !failed && temporary.due(wall));
        if saves_records || saves || temporary {
            self.settle(sink)?;
        }
        let Self { solver, saver, device, first, recent, .. } = self;
        let row = recent.row();
        let steps = (clock.step - first.step) as f64;
        let items_per_second = steps * solver.cost().items / self.started.elapsed().as_secs_f64().max(1e-9);
        let progress = Progress { clock, fraction: solver.progress(), wall, items_per_second };
        times::within(Phase::Output, || sink.progress(&progress, row));
        let late = self.records.is_some();
        let temporary = self.temporary.as_mut().filter(|_| temporary);
        let hand_on = || {
            diagnostics(solver, saver, wall, late, sink)?;
            if saves_records {
                write_records(solver, device, saver, None, sink)?;
            }
            if saves {
                times::after_steps(device, Phase::Checkpoints, || saver.save_or_notice(solver, sink))?;
            }
            temporary.map_or(Ok(()), |temporary| times::within(Phase::Checkpoints, || temporary.save(wall, saver, solver, sink)))
        };
        match hand_on() {
            // A state that broke down may be found here first.
            Err(error @ Error::Numerics { .. }) => Err(self.recent.write_last_rows(error, clock.step.saturating_sub(1), S::STEP, sink)),
            result => result.map(|()| None),
        }
    }

    /// Waits for the row of the last step where it is not there yet, and hands it over: before anybody looks at the run.
    pub fn settle(&mut self, sink: &mut dyn Sink) -> Result<()> {
        let Some((clock, due)) = self.waiting.take() else { return Ok(()) };
        let row = self.solver.row();
        let handed = self.hand_over(row, clock, due, sink);
        self.remembering(handed)
    }

    /// Refuses a state that has broken down, as it was told of first: solvers look for that now and then only.
    fn must_be_sound(&self) -> Result<()> {
        let Some([what, place, message]) = self.broken.clone() else { return Ok(()) };
        Err(Error::Numerics { what, place, message })
    }

    /// Remembers that the state has broken down, if it has.
    fn remembering<R>(&mut self, result: Result<R>) -> Result<R> {
        if let Err(Error::Numerics { what, place, message }) = &result {
            self.broken.get_or_insert_with(|| [what, place, message].map(String::clone));
        }
        result
    }

    /// Hands a row over if it fell due. A solver that knows that it failed says it better than the guard could.
    fn hand_over(&mut self, row: Result<Row>, clock: Clock, due: bool, sink: &mut dyn Sink) -> Result<()> {
        let failed = self.solver.outcome().is_some_and(|o| o.ending == Ending::Failed);
        let row = row.and_then(|row| if failed { Ok(row) } else { guard(row, S::STEP, clock) });
        let row = row.map_err(|error| self.recent.write_last_rows(error, clock.step.saturating_sub(1), S::STEP, sink))?;
        if due {
            times::within(Phase::Output, || sink.row(&clock, &row))?;
        }
        self.recent.push(clock, row, due);
        Ok(())
    }

    /// Hands the results over and sums the run up.
    pub fn end(mut self, outcome: Outcome, profiler: &mut Profiler, sink: &mut dyn Sink) -> Result<Summary> {
        let figures = self.write_results(&outcome, profiler, sink)?;
        self.summed_up(outcome, &figures, profiler)
    }

    /// Hands over the results of a run that is at its end. Where they cannot be written, it can be started and ended once more.
    pub fn write_results(&mut self, outcome: &Outcome, profiler: &mut Profiler, sink: &mut dyn Sink) -> Result<StepFigures> {
        if let Device::Cuda(cuda) = &self.device {
            cuda.synchronize()?;
        }
        let figures = StepFigures {
            wall: self.started.elapsed(),
            seconds: times::elapsed().since(&self.before).of(Phase::Steps),
            traffic: self.links.traffic().since(self.traffic),
        };
        times::switch_to(Phase::End);
        times::within(Phase::Output, || self.recent.write_rows(1, sink))?;
        let wish = Wish { pictures: sink.wishes_end().then_some(Look::Whole), ..Wish::default() };
        let (_, _, wish) = agree(&self.links, None, figures.wall, wish)?;
        watch::grant(wish, &mut self.solver, &self.device, &self.saver, profiler, sink)?;
        let written = write_records(&mut self.solver, &self.device, &self.saver, Some(outcome), sink);
        self.left |= written.is_err();
        written?;
        if self.keeps && !S::may_change().is_empty() && outcome.ending != Ending::Failed {
            times::within(Phase::Checkpoints, || self.saver.save_or_notice(&mut self.solver, sink))?;
        }
        Ok(figures)
    }

    /// Summary of a run whose results are written.
    pub fn summed_up(mut self, outcome: Outcome, figures: &StepFigures, profiler: &mut Profiler) -> Result<Summary> {
        let StepFigures { wall, seconds, traffic } = *figures;
        let clock = self.solver.clock();
        let (steps, cost) = (clock.step - self.first.step, self.solver.cost());
        let per_step = seconds / steps.max(1) as f64;
        let (checks, details) = (self.solver.checks()?, self.solver.details());
        let Self { solver, saver, device, links, seed, before, recent, temporary, changed_after, left, keeps, .. } = self;
        // Its memory is free for what comes.
        drop(solver);
        let bandwidth = if links.is_first() { device.bandwidth_of_run(wall)? } else { None };
        if let Some(bandwidth) = bandwidth {
            profiler.set_bandwidth(bandwidth);
        }
        let mut stages = profiler.table();
        per_item(&mut stages, cost.items * steps as f64);
        let parts = parts::gather(&links, wall.as_secs_f64(), traffic, &mut stages)?;
        let summary = Summary {
            solver: S::NAME,
            outcome,
            device: device.name().to_owned(),
            threads: device.threads(),
            seed,
            clock,
            steps,
            seconds,
            times: times::elapsed().since(&before),
            cost_per_step: cost,
            ns_per_item: 1e9 * per_step / cost.items.max(1.0),
            bytes_per_second: cost.bytes / per_step.max(1e-12),
            bandwidth,
            stages,
            checks,
            row: recent.row().clone(),
            parts,
            details,
            changed_after,
        };
        if (temporary.is_some_and(|temporary| temporary.saved()) || left && !keeps) && summary.verdict().is_none() {
            saver.remove()?;
        }
        Ok(summary)
    }

    /// Outcome of a run that is at its end.
    pub fn outcome(&self) -> Option<Outcome> {
        self.pending.end().or_else(|| self.solver.outcome())
    }

    /// The solver between two steps.
    pub fn solver(&mut self) -> &mut S {
        &mut self.solver
    }

    /// Hands over pictures of the state as it stands.
    pub fn look(&mut self, sink: &mut dyn Sink) -> Result<()> {
        watch::look(Look::Whole, &mut self.solver, &self.device, &self.saver, Vec::new, sink)
    }

    /// Saves a checkpoint below `folder`, from which a run of the same input goes on; returns its path.
    pub fn save(&mut self, folder: &Path, sink: &mut dyn Sink) -> Result<PathBuf> {
        self.must_be_sound()?;
        let Self { saver, solver, device, pending, .. } = self;
        let saved = times::after_steps(device, Phase::Checkpoints, || saver.save_once_in(folder, solver, pending, sink));
        // One in place of that of a stop was asked for.
        self.left &= !saved.as_ref().is_ok_and(|path| self.saver.saves_at(path));
        self.remembering(saved)
    }
}
