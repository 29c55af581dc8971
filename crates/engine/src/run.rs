//! The run loop, written once for every solver:
//!
//! ```text
//! setup -> [restore] -> { step; row; guard; progress, diagnostics, records, checkpoint as they fall due } -> records -> summary
//! ```
//!
//! What the wall time goes to is counted by name on the way ([`crate::times`]).
//!
//! A run that breaks down ends with the step that found it, and hands over its last rows. A signal or the wall-time limit saves a
//! checkpoint first and ends in [`Error::Interrupted`]. What is written, and how progress is shown, is the [`Sink`]'s matter.

mod limit;
mod parts;
mod recent;
mod running;
mod state;
mod watch;

pub use parts::PartRow;
pub use running::{Running, StepFigures};
pub use state::save;
pub use watch::{Lost, View, Wish};

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use self::state::{PendingResults, Saver};
use crate::device::Device;
use crate::error::{BROKEN_DOWN, Error, Result};
use crate::links::Links;
use crate::profile::{Profiler, StageRow};
use crate::record::{Check, Lead, Record, Row, follow, must_join};
use crate::schedule::Schedule;
use crate::signal::{self, Signals};
use crate::sim::{Clock, Cost, Ending, Environment, Outcome, Solver};
use crate::times::{self, Phase, Times};

/// Output of a run and its schedules; everything that is not physics.
#[derive(Debug, Clone)]
pub struct Options {
    /// Output folder.
    pub folder: PathBuf,
    /// Folder in which checkpoints go to `checkpoint/`, if not the output folder.
    pub checkpoint_folder: Option<PathBuf>,
    /// Folder of an earlier run to resume.
    pub resume: Option<PathBuf>,
    /// Save and stop after this much wall time, but not before a step is made: a chain of jobs comes on whatever a start takes.
    pub wall_time: Option<Duration>,
    /// Schedule of checkpoints.
    pub checkpoint: Option<Schedule>,
    /// Interval of temporary checkpoints, used where `checkpoint` is none: the last is removed at the end.
    pub temporary_checkpoints: Option<Duration>,
    /// Schedule of the rows handed to the sink; the last row always is.
    pub rows: Schedule,
    /// Schedule of the records handed to the sink; at the end they always are.
    pub records: Option<Schedule>,
}

impl Options {
    /// Rows at every step, records at the end, no checkpoints but on a signal.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        let rows = Schedule::Steps(1);
        Self {
            folder: folder.into(),
            checkpoint_folder: None,
            resume: None,
            wall_time: None,
            checkpoint: None,
            temporary_checkpoints: None,
            rows,
            records: None,
        }
    }

    /// Folder in which checkpoints go to `checkpoint/`.
    fn checkpoint_folder(&self) -> &Path {
        self.checkpoint_folder.as_ref().unwrap_or(&self.folder)
    }
}

/// Progress of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Clock.
    pub clock: Clock,
    /// Part done, 0 to 1.
    pub fraction: f64,
    /// Wall time since the first step.
    pub wall: Duration,
    /// Items worked on per second since the first step.
    pub items_per_second: f64,
}

/// Receiver of rows, records and progress.
pub trait Sink {
    /// A row fell due.
    fn row(&mut self, clock: &Clock, row: &Row) -> Result<()>;
    /// A step was finished.
    fn progress(&mut self, progress: &Progress, row: &Row);
    /// Records fell due, by `output.every` or by the solver's own schedules; `last` for the results at the end of the run.
    ///
    /// # Errors
    /// They cannot be written, or those of before could not be: a sink may write while the next steps run, but the `last` ones,
    /// which are on the disk when this returns.
    fn records(&mut self, clock: &Clock, records: Vec<Record>, last: bool) -> Result<()>;
    /// Folder that it writes into, if it does.
    fn folder(&self) -> Option<&Path> {
        None
    }
    /// Returns true if [`Sink::shares`] can write a record of which each part has a share. Others come whole.
    fn takes_share(&self, _record: &Record) -> bool {
        false
    }
    /// Records as of [`Sink::records`], some of which are shares that this sink takes: `lead` has all parts write them into files
    /// that are laid out; then these get their names. All is on the disk when this returns.
    ///
    /// # Errors
    /// As there, or another part could not write.
    fn shares(&mut self, clock: &Clock, records: Vec<Record>, last: bool, _lead: &Lead) -> Result<()> {
        self.records(clock, records, last)
    }
    /// Something that a person should know.
    fn notice(&mut self, text: &str);
    /// All is set up, and steps come next. A clock that is not at 0 is that of a checkpoint: what was handed over up to there does
    /// not come again.
    ///
    /// # Errors
    /// Nothing can be written; the run does not begin.
    fn started(&mut self, _clock: &Clock) -> Result<()> {
        Ok(())
    }
    /// A checkpoint is saved next: should the run break off after it, it goes on from there, and what was handed over up to here
    /// does not come again, so it must be on the disk.
    ///
    /// # Errors
    /// What was handed over could not be kept; the checkpoint is saved all the same.
    fn saving(&mut self) -> Result<()> {
        Ok(())
    }
    /// Wish of somebody who watches the run. Asked before every step, so it must cost next to nothing where nobody does.
    fn wish(&mut self) -> Wish {
        Wish::default()
    }
    /// Returns true if pictures may be wished for on the way. On a GPU the first are then made before the first step, so that their
    /// kernels and memory are ready.
    fn may_wish(&self) -> bool {
        false
    }
    /// Returns true if pictures of the end of the run are wished for before its results are handed over: where these are whole
    /// fields, and pictures take less.
    fn wishes_end(&mut self) -> bool {
        false
    }
    /// The pictures that a wish asked for.
    fn view(&mut self, _view: View) {}
}

/// Sink of the parts of a run that write nothing.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Sink for Silent {
    fn row(&mut self, _clock: &Clock, _row: &Row) -> Result<()> {
        Ok(())
    }

    fn progress(&mut self, _progress: &Progress, _row: &Row) {}

    fn records(&mut self, _clock: &Clock, _records: Vec<Record>, _last: bool) -> Result<()> {
        Ok(())
    }

    fn notice(&mut self, _text: &str) {}
}

/// Result of a run as a whole; written as `summary.json` by the command line.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// The solver's name.
    pub solver: &'static str,
    /// Outcome of the run.
    pub outcome: Outcome,
    /// Device.
    pub device: String,
    /// Threads of the host.
    pub threads: usize,
    /// Seed.
    pub seed: u64,
    /// Clock at the end.
    pub clock: Clock,
    /// Steps of this run (after a resume fewer than the clock says).
    pub steps: u64,
    /// Wall time of the steps alone, seconds.
    pub seconds: f64,
    /// Wall time by name.
    pub times: Times,
    /// Model cost of one step.
    pub cost_per_step: Cost,
    /// Time per item and step, nanoseconds.
    pub ns_per_item: f64,
    /// Model traffic over time, bytes per second.
    pub bytes_per_second: f64,
    /// Measured copy bandwidth of the device, bytes per second; of the CPU only where a run was long and large enough to be
    /// compared with it.
    pub bandwidth: Option<f64>,
    /// The stages.
    pub stages: Vec<StageRow>,
    /// Conservation or residual figures.
    pub checks: Vec<Check>,
    /// The last row.
    pub row: Row,
    /// The parts of the run; none where there is one only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartRow>,
    /// Details that the solver reports about its parts, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<serde_json::Value>,
    /// Steps after which the state was changed from outside.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_after: Vec<u64>,
}

impl Summary {
    /// 0, or 3 where the goal was missed or a check failed.
    pub fn exit_code(&self) -> u8 {
        if self.verdict().is_some() { 3 } else { 0 }
    }

    /// A sentence on why the result is not to be trusted: the goal was missed, or checks failed. None where all is well.
    pub fn verdict(&self) -> Option<String> {
        let missed = (self.outcome.ending == Ending::Failed)
            .then(|| format!("the goal was missed ({}: {})", self.outcome.status.replace('_', " "), self.outcome.message));
        let failed: Vec<String> = self.checks.iter().filter(|c| !c.ok).map(ToString::to_string).collect();
        let failed = match failed.len() {
            0 => None,
            1 => Some(format!("a check failed: {}", failed[0])),
            n => Some(format!("{n} checks failed: {}", failed.join("; "))),
        };
        match (missed, failed) {
            (Some(missed), Some(failed)) => Some(format!("{missed}, and {failed}")),
            (missed, failed) => missed.or(failed),
        }
    }
}

/// The checkpoint of the run in `folder`.
pub fn checkpoint_path(folder: &Path) -> PathBuf {
    folder.join("checkpoint").join("latest.zck")
}

/// Sets the solver up and runs it to its end.
pub fn run<S: Solver>(
    config: &S::Config,
    environment: &Environment,
    options: &Options,
    profiler: &mut Profiler,
    sink: &mut dyn Sink,
) -> Result<Summary> {
    run_from::<S>(None, config, environment, options, profiler, sink)
}

/// Runs a simulation as [`run`] does, from what was prepared for its plan.
pub fn run_from<S: Solver>(
    prepared: Option<S::Prepared>,
    config: &S::Config,
    environment: &Environment,
    options: &Options,
    profiler: &mut Profiler,
    sink: &mut dyn Sink,
) -> Result<Summary> {
    let begun = Instant::now();
    profiler.make_ready(&environment.device);
    let mut running = Running::<S>::set_up(prepared, config, environment, options)?;
    // Until here a signal ends the process at once: there is nothing to save yet.
    let mut signals = Signals::listen()?;
    running.start(options, sink)?;
    let outcome = running.advance_to_the_end(&mut signals, begun, options.wall_time, profiler, sink)?;
    running.end(outcome, profiler, sink)
}

/// Reason to stop, wall time and wish of the first part, for all: no part may stop, or save, where another goes on.
fn agree(links: &Links, reason: Option<&'static str>, wall: Duration, wish: Wish) -> Result<(Option<&'static str>, Duration, Wish)> {
    if links.is_alone() {
        return Ok((reason, wall, wish));
    }
    let number = |reason| signal::REASONS.iter().position(|r| *r == reason);
    let (number, wall, wish) = links.first_says((reason.and_then(number), wall, wish))?;
    Ok((number.and_then(|k| signal::REASONS.get(k)).copied(), wall, wish))
}

/// Hands the results over, those of the `end` or on the way. Should that fail, or a signal come in between, the state is saved.
fn write_records<S: Solver>(solver: &mut S, device: &Device, saver: &Saver<S>, end: Option<&Outcome>, sink: &mut dyn Sink) -> Result<()> {
    let clock = solver.clock();
    let records = times::after_steps(device, Phase::Diagnostics, || solver.records())?;
    let written =
        times::within(Phase::Output, || signal::while_interruptible(|| hand_over(saver.links(), &clock, records, end.is_some(), sink)));
    saver.links().follow_first(written).map_err(|error| saver.unwritten_results(error, &PendingResults::after(end), solver, sink))
}

/// Hands on what the solver's own schedules ask for. Should that fail, the state is saved: what could not be written may be results
/// of before where there are some on the way (`late`), since a sink may write while the next steps run.
fn diagnostics<S: Solver>(solver: &mut S, saver: &Saver<S>, wall: Duration, late: bool, sink: &mut dyn Sink) -> Result<()> {
    let due = times::within(Phase::Diagnostics, || solver.due(wall))?;
    if saver.links().first_says(due.is_empty())? {
        return Ok(());
    }
    let pending = if late { PendingResults::Results } else { PendingResults::Nothing };
    let written = times::within(Phase::Output, || hand_over(saver.links(), &solver.clock(), due, false, sink));
    saver.links().follow_first(written).map_err(|error| saver.unwritten_results(error, &pending, solver, sink))
}

/// Hands records to the sink. Those of which parts have shares come together at the first part, one after the other, unless its
/// sink has all parts write them.
fn hand_over(links: &Links, clock: &Clock, records: Vec<Record>, last: bool, sink: &mut dyn Sink) -> Result<()> {
    let shares: Vec<&Record> = records.iter().filter(|record| record.share().is_some()).collect();
    if shares.is_empty() {
        return sink.records(clock, records, last);
    }
    let taken: Vec<bool> = shares.iter().map(|record| sink.takes_share(record)).collect();
    must_join(links, &shares)?;
    let mut taken = links.first_says(taken)?;
    if taken.contains(&true) && !links.share_folder(sink.folder())? {
        taken.fill(false);
    }
    let mut taken = taken.into_iter();
    let whole = |record: Record| match record.share().and_then(|_| taken.next()) {
        Some(false) => record.joined(links),
        _ => Ok(record),
    };
    let records = records.into_iter().map(whole).collect::<Result<Vec<_>>>()?;
    if records.iter().all(|record| record.share().is_none()) {
        return sink.records(clock, records, last);
    }
    if !links.is_first() {
        return follow(links, &records);
    }
    let lead = Lead::new(links);
    let written = sink.shares(clock, records, last, &lead);
    // The other parts wait for the word.
    written.and(lead.end())
}

/// The row, which must be finite: a NaN never leaves the step that made it.
fn guard(row: Row, step: &str, clock: Clock) -> Result<Row> {
    match row.0.iter().find(|s| !s.value.is_finite()) {
        None => Ok(row),
        Some(scalar) => Err(Error::Numerics {
            what: scalar.name.to_owned(),
            place: format!("{step} {}", clock.step),
            message: format!("the value is {}; {BROKEN_DOWN}", scalar.value),
        }),
    }
}
