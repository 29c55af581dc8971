//! The session of one solver: its run, the rows and results that it keeps, and its live page.

mod to_end;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use zellige_engine::config::Input;
use zellige_engine::cuda::Cuda;
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::files;
use zellige_engine::links::Links;
use zellige_engine::profile::Profiler;
use zellige_engine::record::{FieldOnGpu, GivenValues, Record, Row, TableOnGpu, ValuesOnGpu};
use zellige_engine::run::{Options, Progress, Running, Sink, Wish};
use zellige_engine::schedule::Schedule;
use zellige_engine::signal::{self, Signals};
use zellige_engine::sim::{Clock, Outcome, Plan, Solver};
use zellige_engine::times::Watch;
use zellige_io::csv::EarlierRows;
use zellige_live::{Address, Watcher};

use super::{Session, Settings, Told};
use crate::args::{RunArgs, RunTarget};
use crate::commands::live::{self, Live};
use crate::commands::ready::Ready;
use crate::commands::run;
use crate::report;
use crate::sink::{Output, RESOLVED, ROWS};

/// [`super::open`] for one solver.
pub(crate) fn open_solver<S: Solver>(input: Input<S::Config>, settings: &Settings) -> Result<Box<dyn Session>> {
    let arguments = RunArgs {
        target: RunTarget { device: settings.device.clone(), threads: settings.threads },
        output: settings.output.clone(),
        resume: settings.resume.as_deref().map(run::resumed_folder),
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
    let state = State::SetUp(Box::new(running));
    Ok(Box::new(Driven {
        input,
        plan,
        device,
        arguments,
        profiler,
        watch,
        run,
        page: None,
        first,
        series: BTreeSet::new(),
        files: None,
        state,
    }))
}

/// Options of steps that are made by hand: rows alone.
fn by_hand<S: Solver>(input: &Input<S::Config>, arguments: &RunArgs) -> Options {
    Options { rows: run::rows_every::<S>(input), checkpoint: Some(Schedule::Never), ..Options::new(run::folder_of::<S>(input, arguments)) }
}

/// State of a session.
enum State<S: Solver> {
    /// No step has been made.
    SetUp(Box<Running<S>>),
    /// Steps are made by hand.
    Stepping(Box<Running<S>>),
    /// The run has ended, and its results are written.
    Ended(Clock, Outcome),
    /// The run is worked on; what a panic leaves.
    Lost,
}

/// Rows, the results of the end, and who listens.
struct Steps {
    rows: Vec<(Clock, Row)>,
    last: Vec<Record>,
    told: Option<Told>,
}

/// The live page of a run.
struct Page {
    live: Live,
    watcher: Watcher,
}

impl Page {
    /// Tells an error of the run, which can go on unless its state is lost.
    fn tell_error(&self, error: &Error) {
        match error {
            Error::Numerics { .. } | Error::Device { .. } | Error::OutOfMemory { .. } => self.live.tell_error(error),
            error => self.live.hub().notice(&error.to_string()),
        }
    }
}

struct Driven<S: Solver> {
    input: Input<S::Config>,
    plan: Plan,
    device: String,
    arguments: RunArgs,
    profiler: Profiler,
    watch: Watch,
    run: Steps,
    page: Option<Page>,
    /// Step at which the run was set up: not 0 where it was resumed.
    first: u64,
    /// Lists of the series of files that it has begun on the way to its end.
    series: BTreeSet<PathBuf>,
    /// Those of a run that pauses on the way to its end.
    files: Option<to_end::Files>,
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

/// Does `work` with the sink of a run, which is watched where there is a page.
fn sunk<R>(run: &mut Steps, output: Option<&mut Output>, page: Option<&mut Page>, work: impl FnOnce(&mut dyn Sink) -> R) -> R {
    let mut sink = Keeping { run, output };
    match page {
        Some(page) => work(&mut page.watcher.before(&mut sink)),
        None => work(&mut sink),
    }
}

/// Error of a session whose solver is gone.
fn ended(what: &str) -> Error {
    let problem = Problem::new("", format!("the run has ended: {what}"));
    Error::input("the run", problem.hint("make a new run, or one that resumes from a checkpoint"))
}

impl<S: Solver> Driven<S> {
    /// Starts the run if it was not.
    fn start(&mut self) -> Result<()> {
        if let State::SetUp(_) = &self.state
            && let State::SetUp(mut running) = std::mem::replace(&mut self.state, State::Lost)
        {
            let options = by_hand::<S>(&self.input, &self.arguments);
            let begun = sunk(&mut self.run, None, self.page.as_mut(), |sink| running.start(&options, sink));
            self.state = State::Stepping(running);
            begun?;
        }
        Ok(())
    }

    /// Does the work of a call, which the page tells from the time between two.
    fn at_work<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        let hub = self.page.as_ref().map(|page| page.live.hub());
        let rest = |rests| {
            if let Some(hub) = &hub {
                hub.rest(rests);
            }
        };
        rest(false);
        let result = work(self);
        if let Some(page) = &mut self.page {
            page.watcher.tell_last();
        }
        rest(true);
        result
    }

    /// Does something with a run that was started, and its sink.
    fn with<R>(&mut self, work: impl FnOnce(&mut Running<S>, &mut Profiler, &mut dyn Sink) -> Result<R>) -> Result<R> {
        let Self { state: State::Stepping(running), run, page, profiler, .. } = self else {
            return Err(ended("there are no further steps"));
        };
        sunk(run, None, page.as_mut(), |sink| work(running, profiler, sink))
    }

    fn running(&mut self) -> Option<&mut Running<S>> {
        match &mut self.state {
            State::SetUp(running) | State::Stepping(running) => Some(running),
            _ => None,
        }
    }

    fn make_steps(&mut self, n: u64) -> Result<u64> {
        let signals = Signals::listen_beside()?;
        self.start()?;
        let first = self.clock().step;
        let mut made = 0;
        loop {
            self.heed(signals.stop_reason())?;
            if made == n || self.with(|running, profiler, sink| running.make_step(None, profiler, sink))?.is_some() {
                break;
            }
            made = self.clock().step - first;
        }
        self.with(|running, _, sink| running.settle(sink))?;
        if let (Some(outcome), Some(page)) = (self.outcome(), &self.page) {
            page.live.tell_outcome(&outcome, None);
        }
        Ok(made)
    }

    /// Stops between two steps where there is a reason, and grants what those who watch wish for: checkpoints as [`Session::save`]
    /// makes them.
    fn heed(&mut self, stop: Option<&'static str>) -> Result<()> {
        let wish = self.with(|_, _, sink| Ok(sink.wish()))?;
        if let Some(reason) = stop.or_else(|| wish.stop.then_some(signal::LIVE_PAGE)) {
            let last = Wish { pictures: wish.pictures.filter(|_| wish.stop), ..Wish::default() };
            self.with(|running, profiler, sink| running.settle(sink).and_then(|()| running.grant(last, profiler, sink)))?;
            // Who stops it on its page may be far from the interpreter.
            let saved = (reason == signal::LIVE_PAGE).then(|| self.save(None));
            if saved.is_some() {
                // Pressed again meanwhile, it is this stop that was meant, and not the next call.
                self.page.iter().for_each(|page| page.live.hub().forget_stop());
            }
            let checkpoint = saved.transpose()?;
            return Err(Error::Interrupted { reason, step: self.clock().step, checkpoint });
        }
        if wish.save {
            self.with(|running, _, sink| running.settle(sink))?;
            if let Err(error) = self.save(None) {
                let text = format!("no checkpoint could be saved: {error}");
                self.with(|_, _, sink| {
                    sink.notice(&text);
                    Ok(())
                })?;
            }
        }
        self.with(|running, profiler, sink| running.grant(Wish { save: false, ..wish }, profiler, sink))
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

    fn live(&mut self, address: &Address, steer: bool) -> Result<(String, Option<String>)> {
        if self.running().is_none() {
            return Err(ended("`zellige view FOLDER --live` shows its results"));
        }
        // The page at work stays where no other can take its place, unless its port is asked for once more, or none: tunnels lead there.
        let at_work = self.page.as_ref().map(|page| page.live.port());
        let address = Address { host: address.host, port: address.port.or(at_work) };
        if address.port.is_some() && address.port == at_work {
            self.page = None;
        }
        let folder = run::folder_of::<S>(&self.input, &self.arguments);
        let live = Live::start(&address, live::names::<S>(&self.input.config, &folder, &self.device, &self.plan, steer))?;
        let (hub, told) = (live.hub(), live.address());
        self.run.rows.iter().for_each(|(clock, row)| hub.row(clock, row));
        let mut page = Page { live, watcher: Watcher::new(hub) };
        if let State::SetUp(running) | State::Stepping(running) = &mut self.state {
            sunk(&mut self.run, None, Some(&mut page), |sink| running.look(sink))?;
        }
        page.live.hub().rest(true);
        self.page = Some(page);
        Ok(told)
    }

    fn step(&mut self, n: u64) -> Result<u64> {
        let mut watch = std::mem::take(&mut self.watch);
        let result = watch.during(|| self.at_work(|driven| driven.make_steps(n)));
        self.watch = watch;
        let result = result.map_err(|error| run::named(error, &self.input.origin));
        // A step of a run that has ended is none, and its end was told.
        if let (Err(error), true, Some(page)) = (&result, self.running().is_some(), &self.page) {
            page.tell_error(error);
        }
        result
    }

    fn records(&mut self) -> Result<Vec<Record>> {
        match self.running() {
            Some(running) => running.solver().records(),
            None => Ok(self.run.last.clone()),
        }
    }

    fn field(&mut self, name: &str) -> Result<Option<Record>> {
        self.running().map_or(Ok(None), |running| running.solver().field(name))
    }

    fn field_on_gpu(&mut self, name: &str) -> Result<FieldOnGpu> {
        self.running().ok_or_else(|| ended("its fields are on the host, in `run.fields`"))?.field_on_gpu(name)
    }

    fn particles_on_gpu(&mut self, species: &str) -> Result<Option<TableOnGpu>> {
        self.running().ok_or_else(|| ended("its particles are no more"))?.particles_on_gpu(species)
    }

    fn particles(&mut self, species: &str) -> Result<Option<Record>> {
        if let Some(running) = self.running()
            && let Some(table) = running.solver().particles(species)?
        {
            return Ok(Some(Record::Table(table)));
        }
        Ok(self.records()?.into_iter().find(|record| matches!(record, Record::Table(table) if table.name == species)))
    }

    fn set_field(&mut self, name: &str, shape: &[usize], values: GivenValues) -> Result<()> {
        let running = self.running().ok_or_else(|| ended("there is no state to set"))?;
        running.change(|solver| solver.set_field(name, shape, values))
    }

    fn gpu(&mut self) -> Result<Option<Cuda>> {
        Ok(self.running().ok_or_else(|| ended("there is no state to set"))?.gpu().cloned())
    }

    fn set_field_on_gpu(&mut self, name: &str, shape: &[usize], values: &ValuesOnGpu) -> Result<()> {
        self.running().ok_or_else(|| ended("there is no state to set"))?.set_field_on_gpu(name, shape, values)
    }

    fn set_particles(&mut self, species: &str, columns: &[(String, Vec<f64>)]) -> Result<()> {
        let running = self.running().ok_or_else(|| ended("there is no state to set"))?;
        running.change(|solver| solver.set_particles(species, columns))
    }

    fn set_particles_on_gpu(&mut self, species: &str, columns: &[(String, ValuesOnGpu)]) -> Result<()> {
        self.running().ok_or_else(|| ended("there is no state to set"))?.set_particles_on_gpu(species, columns)
    }

    fn save(&mut self, folder: Option<&Path>) -> Result<PathBuf> {
        let folder = folder.map_or_else(|| run::folder_of::<S>(&self.input, &self.arguments), Path::to_owned);
        let resolved = run::resolved::<S>(&self.input, &self.device)?;
        let Self { state: State::SetUp(running) | State::Stepping(running), run, page, files, .. } = self else {
            return Err(ended("there is no state to save"));
        };
        if let Some(files) = files.as_mut().filter(|files| files.are_in(&folder)) {
            // Rows and input, which lie beside a checkpoint, are there already.
            return sunk(run, Some(&mut files.output), page.as_mut(), |sink| running.save(&folder, sink));
        }
        let _locks = run::own(&folder, None, false)?;
        let earlier = match &self.arguments.resume {
            Some(from) if self.first > 0 => EarlierRows::read(from.join(ROWS), self.first)?,
            _ => EarlierRows::default(),
        };
        let path = sunk(run, None, page.as_mut(), |sink| running.save(&folder, sink))?;
        // Read by a run that resumes.
        files::atomic_write(folder.join(RESOLVED), |out| out.write_all(resolved.as_bytes()))?;
        zellige_io::csv::write_rows(folder.join(ROWS), &earlier, &self.run.rows)?;
        Ok(path)
    }

    fn to_end(&mut self, pause: Option<u64>) -> Result<Option<PathBuf>> {
        let mut watch = std::mem::take(&mut self.watch);
        let result = watch.during(|| self.at_work(|driven| driven.run_to_end(pause)));
        self.watch = watch;
        result
    }

    fn break_off(&mut self, save: bool) -> Result<()> {
        self.end_files(save)
    }
}
