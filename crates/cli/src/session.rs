//! A run of any solver that is driven from outside, step by step: what the Python package holds.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use zellige_engine::config::{Format, Input, Source};
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::files;
use zellige_engine::links::Links;
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Record, Row};
use zellige_engine::run::{Options, Progress, Running, Sink};
use zellige_engine::schedule::Schedule;
use zellige_engine::signal::Signals;
use zellige_engine::sim::{Clock, Outcome, Plan, Solver};
use zellige_engine::times::Watch;
use zellige_io::csv::EarlierRows;
use zellige_ptycho::Ptycho;
use zellige_ptycho::data::ScanArrays;

use crate::args::{RunArgs, RunTarget};
use crate::commands::conclude::conclude_run;
use crate::commands::ready::Ready;
use crate::commands::run::{self, Destination};
use crate::report;
use crate::sink::{Output, RESOLVED, ROWS};
use crate::solvers;

/// Origin of an input.
#[derive(Debug, Clone)]
pub enum InputText {
    /// A file in one of the formats.
    File(PathBuf),
    /// The tables as JSON; relative paths in it refer to the current folder.
    Json(String),
}

/// Settings of a session, as of a command line.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// `auto`, `cpu`, `cuda` or `cuda:N`; default as in the input.
    pub device: Option<String>,
    /// Threads on the CPU; default as in the input.
    pub threads: Option<usize>,
    /// `KEY=VALUE` each, over those of the input.
    pub overrides: Vec<String>,
    /// Folder of the results.
    pub output: Option<PathBuf>,
    /// Folder of an earlier run to resume.
    pub resume: Option<PathBuf>,
}

/// A run between two steps. No method is called before the one before it has returned.
pub trait Session: Send {
    /// Name of the solver.
    fn solver(&self) -> &'static str;
    /// Announcement of the run.
    fn plan(&self) -> &Plan;
    /// Model of the device.
    fn device(&self) -> &str;
    /// Position of the run in steps and time.
    fn clock(&mut self) -> Clock;
    /// Outcome of a run that is at its end.
    fn outcome(&mut self) -> Option<Outcome>;
    /// Rows of scalars so far, by `run.rows_every`.
    fn rows(&self) -> &[(Clock, Row)];
    /// Makes steps, at most `n`, and returns how many; fewer at the end of the run. Writes no file.
    ///
    /// # Errors
    /// [`Error::Interrupted`] on a signal, between two steps, after which the run can go on; those of the solver.
    fn step(&mut self, n: u64) -> Result<u64>;
    /// Tells the progress from now on, after each step, or to nobody.
    fn tell(&mut self, told: Option<Told>);
    /// The results as they stand.
    fn records(&mut self) -> Result<Vec<Record>>;
    /// All particles of a species, or the record of that name that lists them.
    fn particles(&mut self, species: &str) -> Result<Option<Record>>;
    /// Sets a field of the state ([`Solver::set_field`]).
    fn set_field(&mut self, name: &str, shape: &[usize], values: &[f64]) -> Result<()>;
    /// Sets columns of particles ([`Solver::set_particles`]).
    fn set_particles(&mut self, species: &str, columns: &[(String, Vec<f64>)]) -> Result<()>;
    /// Saves a checkpoint below a folder, by default that of the results, and returns its path.
    fn save(&mut self, folder: Option<&Path>) -> Result<PathBuf>;
    /// Runs to the end as the command line does, with the same files, and returns the folder of the results.
    ///
    /// # Errors
    /// [`Error::Interrupted`] on a signal or at the wall-time limit, once the state is saved; those of the solver and of files.
    fn to_end(&mut self) -> Result<PathBuf>;
}

/// Listener of the progress of a run.
pub type Told = Box<dyn FnMut(&Progress) + Send>;

/// Sets a run up, on the device that the settings, the environment or the input asks for. From now on this process says errors
/// alone: its standard error is that of an interpreter.
pub fn open(input: &InputText, settings: &Settings) -> Result<Box<dyn Session>> {
    report::only_errors();
    let source = match input {
        InputText::File(path) => run::read(path, &settings.overrides)?,
        InputText::Json(text) => run::completed(Source::parse(text, Format::Json, "the input")?, &settings.overrides)?,
    };
    solvers::find(source.solver(&solvers::names())?)?.open(&source, settings)
}

/// [`open`] for ptychography of scans in memory, given as tables in JSON whose entries of `ptycho.scan` have these frames.
pub fn open_scans(tables: &str, scans: Vec<ScanArrays>, settings: &Settings) -> Result<Box<dyn Session>> {
    report::only_errors();
    let source = run::completed(Source::parse(tables, Format::Json, "the input")?, &settings.overrides)?;
    let mut input = source.typed::<Ptycho>()?;
    if input.config.scan.len() != scans.len() {
        let message = format!("{} scans of the input, and arrays of {}", input.config.scan.len(), scans.len());
        return Err(Error::input("the input", Problem::new("ptycho.scan", message)));
    }
    for (entry, arrays) in input.config.scan.iter_mut().zip(scans) {
        entry.arrays = Some(Arc::new(arrays));
    }
    open_solver::<Ptycho>(input, settings).map_err(|e| run::with_positions(e, &source))
}

/// [`open`] for one solver.
pub(crate) fn open_solver<S: Solver>(input: Input<S::Config>, settings: &Settings) -> Result<Box<dyn Session>> {
    let arguments = RunArgs {
        target: RunTarget { device: settings.device.clone(), threads: settings.threads },
        output: settings.output.clone(),
        resume: settings.resume.clone(),
        ..RunArgs::default()
    };
    let mut watch = Watch::default();
    let (input, plan, device, mut running) = watch.during(|| {
        let ready = Ready::<S>::new(input, &arguments, &Links::default())?;
        let Ready { input, environment, plan, prepared, .. } = ready;
        let options = Options { resume: arguments.resume.clone(), ..by_hand::<S>(&input, &arguments) };
        let running = Running::<S>::set_up(prepared, &input.config, &environment, &options).map_err(|e| run::named(e, &input.origin))?;
        Ok::<_, Error>((input, plan, environment.device.name().to_owned(), running))
    })?;
    let profiler = Profiler::new();
    let first = running.solver().clock().step;
    let run = Steps { rows: Vec::new(), last: Vec::new(), told: None };
    Ok(Box::new(Driven { input, plan, device, arguments, profiler, watch, run, first, state: State::SetUp(Box::new(running)) }))
}

/// Options of steps that are made by hand: rows alone.
fn by_hand<S: Solver>(input: &Input<S::Config>, arguments: &RunArgs) -> Options {
    Options { rows: run::rows_every::<S>(input), checkpoint: Some(Schedule::Never), ..Options::new(run::folder_of(input, arguments)) }
}

/// State of a session.
enum State<S: Solver> {
    /// No step has been made.
    SetUp(Box<Running<S>>),
    /// Steps are made by hand.
    Stepping(Box<Running<S>>),
    /// The run has ended, and its results are written.
    Ended(Clock, Outcome),
    /// The solver was lost to an error at the end.
    Lost,
}

/// Rows, the results of the end, and who listens.
struct Steps {
    rows: Vec<(Clock, Row)>,
    last: Vec<Record>,
    told: Option<Told>,
}

struct Driven<S: Solver> {
    input: Input<S::Config>,
    plan: Plan,
    device: String,
    arguments: RunArgs,
    profiler: Profiler,
    watch: Watch,
    run: Steps,
    /// Step at which the run was set up: not 0 where it was resumed.
    first: u64,
    state: State<S>,
}

/// Keeps rows and the last results, and hands all on to the files, if there are any.
struct Keeping<'a> {
    run: &'a mut Steps,
    output: Option<&'a mut Output>,
}

impl Sink for Keeping<'_> {
    fn row(&mut self, clock: &Clock, row: &Row) -> Result<()> {
        self.run.rows.push((*clock, row.clone()));
        self.output.as_mut().map_or(Ok(()), |output| output.row(clock, row))
    }

    fn progress(&mut self, progress: &Progress, row: &Row) {
        if let Some(told) = &mut self.run.told {
            told(progress);
        }
        if let Some(output) = &mut self.output {
            output.progress(progress, row);
        }
    }

    fn records(&mut self, clock: &Clock, records: Vec<Record>, last: bool) -> Result<()> {
        let Some(output) = &mut self.output else { return Ok(()) };
        if last {
            self.run.last.clone_from(&records);
        }
        output.records(clock, records, last)
    }

    fn notice(&mut self, text: &str) {
        match &mut self.output {
            Some(output) => output.notice(text),
            None => report::note(text),
        }
    }

    fn started(&mut self, clock: &Clock) -> Result<()> {
        let Some(output) = &mut self.output else { return Ok(()) };
        output.started(clock)?;
        // Those of the steps by hand.
        self.run.rows.iter().try_for_each(|(clock, row)| output.row(clock, row))
    }

    fn saving(&mut self) -> Result<()> {
        self.output.as_mut().map_or(Ok(()), |output| output.saving())
    }
}

/// Error of a session whose solver is gone.
fn ended(what: &str) -> Error {
    let problem = Problem::new("", format!("the run has ended: {what}"));
    Error::input("the run", problem.hint("make a new run, or one that resumes from a checkpoint"))
}

impl<S: Solver> Driven<S> {
    /// The run, started if it was not.
    fn started(&mut self) -> Result<(&mut Running<S>, &mut Profiler, &mut Steps)> {
        if let State::SetUp(_) = &self.state
            && let State::SetUp(mut running) = std::mem::replace(&mut self.state, State::Lost)
        {
            let mut sink = Keeping { run: &mut self.run, output: None };
            let begun = running.start(&by_hand::<S>(&self.input, &self.arguments), &mut sink);
            self.state = State::Stepping(running);
            begun?;
        }
        match &mut self.state {
            State::Stepping(running) => Ok((running, &mut self.profiler, &mut self.run)),
            _ => Err(ended("there are no further steps")),
        }
    }

    fn running(&mut self) -> Option<&mut Running<S>> {
        match &mut self.state {
            State::SetUp(running) | State::Stepping(running) => Some(running),
            _ => None,
        }
    }

    fn make_steps(&mut self, n: u64) -> Result<u64> {
        let signals = Signals::listen_beside(None)?;
        let (running, profiler, run) = self.started()?;
        let mut sink = Keeping { run, output: None };
        let first = running.solver().clock().step;
        let mut made = 0;
        while made < n {
            if let Some(reason) = signals.stop_reason() {
                running.settle(&mut sink)?;
                return Err(Error::Interrupted { reason, step: first + made, checkpoint: None });
            }
            if running.advance(None, profiler, &mut sink)?.is_some() {
                break;
            }
            made = running.solver().clock().step - first;
        }
        running.settle(&mut sink)?;
        Ok(made)
    }

    fn run_to_end(&mut self) -> Result<PathBuf> {
        let begun = Instant::now();
        let (State::SetUp(mut running) | State::Stepping(mut running)) = std::mem::replace(&mut self.state, State::Lost) else {
            return Err(ended("its results are written"));
        };
        let destination = match Destination::new::<S>(&self.input, &self.arguments) {
            Ok(destination) => destination,
            Err(error) => {
                self.state = State::Stepping(running);
                return Err(error);
            }
        };
        let Destination { options, locks } = destination;
        let mut output = run::output::<S>(&options.folder, &self.input, &self.arguments, &self.device)?;
        let mut sink = Keeping { run: &mut self.run, output: Some(&mut output) };
        let profiler = &mut self.profiler;
        let work = (|| {
            let signals = Signals::listen_beside(options.wall_time.map(|limit| begun + limit))?;
            running.start(&options, &mut sink)?;
            loop {
                if let Some(outcome) = running.advance(signals.stop_reason(), profiler, &mut sink)? {
                    return Ok(outcome);
                }
            }
        })();
        let clock = running.solver().clock();
        let result = match work {
            Ok(outcome) => {
                self.state = State::Ended(clock, outcome.clone());
                running.end(outcome, profiler, &mut sink)
            }
            Err(error) => {
                self.state = State::Stepping(running);
                Err(error)
            }
        };
        let profiler = std::mem::replace(&mut self.profiler, Profiler::new());
        let (origin, folder) = (self.input.origin.clone(), options.folder.clone());
        conclude_run::<S>(result, &origin, &self.plan, &folder, output, profiler, &self.arguments, locks)?;
        Ok(folder)
    }
}

impl<S: Solver> Session for Driven<S> {
    fn solver(&self) -> &'static str {
        S::NAME
    }

    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn device(&self) -> &str {
        &self.device
    }

    fn clock(&mut self) -> Clock {
        match &mut self.state {
            State::SetUp(running) | State::Stepping(running) => running.solver().clock(),
            State::Ended(clock, _) => *clock,
            State::Lost => Clock::default(),
        }
    }

    fn outcome(&mut self) -> Option<Outcome> {
        match &self.state {
            State::SetUp(running) | State::Stepping(running) => running.outcome(),
            State::Ended(_, outcome) => Some(outcome.clone()),
            State::Lost => None,
        }
    }

    fn rows(&self) -> &[(Clock, Row)] {
        &self.run.rows
    }

    fn tell(&mut self, told: Option<Told>) {
        self.run.told = told;
    }

    fn step(&mut self, n: u64) -> Result<u64> {
        let mut watch = std::mem::take(&mut self.watch);
        let result = watch.during(|| self.make_steps(n));
        self.watch = watch;
        result.map_err(|error| run::named(error, &self.input.origin))
    }

    fn records(&mut self) -> Result<Vec<Record>> {
        match self.running() {
            Some(running) => running.solver().records(),
            None => Ok(self.run.last.clone()),
        }
    }

    fn particles(&mut self, species: &str) -> Result<Option<Record>> {
        if let Some(running) = self.running()
            && let Some(table) = running.solver().particles(species)?
        {
            return Ok(Some(Record::Table(table)));
        }
        Ok(self.records()?.into_iter().find(|record| matches!(record, Record::Table(table) if table.name == species)))
    }

    fn set_field(&mut self, name: &str, shape: &[usize], values: &[f64]) -> Result<()> {
        let running = self.running().ok_or_else(|| ended("there is no state to set"))?;
        running.change(|solver| solver.set_field(name, shape, values))
    }

    fn set_particles(&mut self, species: &str, columns: &[(String, Vec<f64>)]) -> Result<()> {
        let running = self.running().ok_or_else(|| ended("there is no state to set"))?;
        running.change(|solver| solver.set_particles(species, columns))
    }

    fn save(&mut self, folder: Option<&Path>) -> Result<PathBuf> {
        let folder = folder.map_or_else(|| run::folder_of(&self.input, &self.arguments), Path::to_owned);
        let resolved = run::resolved::<S>(&self.input, &self.device)?;
        let run = &mut self.run;
        let (State::SetUp(running) | State::Stepping(running)) = &mut self.state else {
            return Err(ended("there is no state to save"));
        };
        let _locks = run::own(&folder, None, false)?;
        let earlier = match &self.arguments.resume {
            Some(from) if self.first > 0 => EarlierRows::read(from.join(ROWS), self.first)?,
            _ => EarlierRows::default(),
        };
        let path = running.save(&folder, &mut Keeping { run, output: None })?;
        // Read by a run that resumes.
        files::atomic_write(folder.join(RESOLVED), |out| out.write_all(resolved.as_bytes()))?;
        zellige_io::csv::write_rows(folder.join(ROWS), &earlier, &self.run.rows)?;
        Ok(path)
    }

    fn to_end(&mut self) -> Result<PathBuf> {
        let mut watch = std::mem::take(&mut self.watch);
        let result = watch.during(|| self.run_to_end());
        self.watch = watch;
        result
    }
}
