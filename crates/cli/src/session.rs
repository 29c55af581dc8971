//! A run of any solver that is driven from outside, step by step: what the Python package holds.

mod driven;
pub mod words;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use zellige_engine::config::{Format, Source};
use zellige_engine::cuda::Cuda;
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::record::{FieldOnGpu, GivenValues, Record, Row, TableOnGpu, ValuesOnGpu};
use zellige_engine::run::Progress;
use zellige_engine::sim::{Clock, Outcome, Plan};
pub use zellige_live::Address;
use zellige_ptycho::Ptycho;
use zellige_ptycho::data::ScanArrays;

pub(crate) use self::driven::open_solver;
use crate::commands::run;
use crate::report;
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
    /// Folder of an earlier run to resume, or its checkpoint.
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
    /// Makes steps, at most `n`, and returns how many; fewer at the end of the run. Writes no file unless its page asks for it.
    ///
    /// # Errors
    /// [`Error::Interrupted`] on a signal or by the page, which has the state saved, between two steps, after which the run can go
    /// on; those of the solver.
    fn step(&mut self, n: u64) -> Result<u64>;
    /// Tells the progress from now on, after each step, or to nobody.
    fn tell(&mut self, told: Option<Told>);
    /// Serves the live page until the session ends, in place of an earlier one; with `steer` it may save and stop. Returns its
    /// address, and the command that brings it to another machine; none where it is open to the network.
    fn live(&mut self, address: &Address, steer: bool) -> Result<(String, Option<String>)>;
    /// The results as they stand.
    fn records(&mut self) -> Result<Vec<Record>>;
    /// A field by the name of its record, also where it is no result of the run ([`zellige_engine::sim::Solver::field`]).
    fn field(&mut self, name: &str) -> Result<Option<Record>>;
    /// A copy of a field in the memory of the run's GPU ([`zellige_engine::run::Running::field_on_gpu`]).
    fn field_on_gpu(&mut self, name: &str) -> Result<FieldOnGpu>;
    /// Copies of all particles of a species there ([`zellige_engine::run::Running::particles_on_gpu`]).
    fn particles_on_gpu(&mut self, species: &str) -> Result<Option<TableOnGpu>>;
    /// All particles of a species, or the record of that name that lists them.
    fn particles(&mut self, species: &str) -> Result<Option<Record>>;
    /// Sets a field of the state ([`zellige_engine::sim::Solver::set_field`]).
    fn set_field(&mut self, name: &str, shape: &[usize], values: GivenValues) -> Result<()>;
    /// The GPU that the run computes on, if it has not ended.
    fn gpu(&mut self) -> Result<Option<Cuda>>;
    /// Sets a field from values there ([`zellige_engine::run::Running::set_field_on_gpu`]).
    fn set_field_on_gpu(&mut self, name: &str, shape: &[usize], values: &ValuesOnGpu) -> Result<()>;
    /// Sets columns of particles ([`zellige_engine::sim::Solver::set_particles`]).
    fn set_particles(&mut self, species: &str, columns: &[(String, Vec<f64>)]) -> Result<()>;
    /// Sets them from values on that GPU ([`zellige_engine::run::Running::set_particles_on_gpu`]).
    fn set_particles_on_gpu(&mut self, species: &str, columns: &[(String, ValuesOnGpu)]) -> Result<()>;
    /// Saves a checkpoint below a folder, by default that of the results, and returns its path.
    fn save(&mut self, folder: Option<&Path>) -> Result<PathBuf>;
    /// Runs to the end as the command line does, with the same files, and returns the folder of the results. With a step to
    /// `pause` after it returns nothing there: its state can be looked at, changed and saved, and the next call goes on.
    ///
    /// # Errors
    /// [`Error::Interrupted`] on a signal or at the wall-time limit, once the state is saved; those of the solver and of files.
    fn to_end(&mut self, pause: Option<u64>) -> Result<Option<PathBuf>>;
    /// Brings the files of a run that pauses on the way to its end to theirs; steps by hand may follow, or another way to the end.
    /// Asked to `save`, it leaves a checkpoint as a signal does.
    ///
    /// # Errors
    /// The state or results so far cannot be written.
    fn break_off(&mut self, save: bool) -> Result<()>;
}

/// Listener of the progress of a run.
pub type Told = Box<dyn FnMut(&Progress) + Send>;

/// Sets a run up, on the device that the settings, the environment or the input asks for. From now on this process says errors
/// alone: its standard error is that of an interpreter.
pub fn open(input: &InputText, settings: &Settings) -> Result<Box<dyn Session>> {
    report::only_errors();
    let source = match input {
        InputText::File(path) => run::read(path, &settings.overrides)?,
        InputText::Json(text) => run::completed(Source::parse(text, Format::Json, run::NO_FILE)?.unseen(), &settings.overrides)?,
    };
    solvers::find(source.solver(&solvers::names())?)?.open(&source, settings)
}

/// [`open`] for ptychography of scans in memory, given as tables in JSON whose entries of `ptycho.scan` have these frames.
pub fn open_scans(tables: &str, scans: Vec<ScanArrays>, settings: &Settings) -> Result<Box<dyn Session>> {
    report::only_errors();
    let source = run::completed(Source::parse(tables, Format::Json, run::NO_FILE)?.unseen(), &settings.overrides)?;
    let mut input = source.typed::<Ptycho>()?;
    if input.config.scan.len() != scans.len() {
        let message = format!("{} scans of the input, and arrays of {}", input.config.scan.len(), scans.len());
        return Err(Error::input(run::NO_FILE, Problem::new("ptycho.scan", message)));
    }
    for (entry, arrays) in input.config.scan.iter_mut().zip(scans) {
        entry.arrays = Some(Arc::new(arrays));
    }
    open_solver::<Ptycho>(input, settings).map_err(|e| run::with_positions(e, &source))
}
