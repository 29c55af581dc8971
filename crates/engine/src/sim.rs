//! The trait that a solver implements. The run loop ([`crate::run`]), checkpoints, progress, the profile, `bench` and
//! the command line are written against it once, so a new solver gets all of them for nothing.

mod refusals;

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

pub use self::refusals::{not_on_gpu, not_set};
use crate::checkpoint::{Reader, Writer};
use crate::cuda::{Properties, Recipe};
use crate::device::Device;
use crate::error::{Error, Problem, Result};
use crate::links::{Division, Links};
use crate::ops::plane::FieldCopier;
use crate::profile::Profiler;
use crate::record::{Check, FieldOnGpu, GivenValues, Pictures, Record, Row, Table, TableOnGpu, ValuesOnGpu};
use crate::schedule::Schedule;

/// Position of a run in steps and time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Clock {
    /// Finished steps.
    pub step: u64,
    /// Physical time, for solvers that have one.
    pub time: Option<f64>,
}

/// Bytes, flops and items of one step or one call, by the written model: what the algorithm must move, not what a
/// cache happened to save.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Cost {
    /// Bytes read and written.
    pub bytes: f64,
    /// Floating-point operations.
    pub flops: f64,
    /// Items (unknowns, particles, frames) worked on.
    pub items: f64,
}

/// Announcement of a run, made before anything is allocated.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Plan {
    /// `label: value` lines for people: grid, method and why it was chosen, levels, precision.
    pub lines: Vec<(String, String)>,
    /// Items (unknowns, particles, frames).
    pub items: u64,
    /// Memory that will be asked for, bytes.
    pub memory: u64,
    /// Traffic of one step by the cost model, bytes.
    pub traffic: u64,
    /// Warnings with numbers.
    pub warnings: Vec<String>,
    /// Values that columns of the rows should have.
    pub expected: Vec<Expected>,
    /// Work of all steps, as far as it is known: `auto` chooses the device by it.
    #[serde(skip)]
    pub work: Option<WorkEstimate>,
}

/// Value that a column of the rows should have, or come to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    /// Name of the column.
    pub column: String,
    /// The value.
    pub value: f64,
    /// Source of the value in a word or two: `theory`, `goal`.
    pub by: String,
}

impl Expected {
    /// A value of a column.
    pub fn new(column: &str, value: f64, by: &str) -> Self {
        Self { column: column.into(), value, by: by.into() }
    }
}

/// The steps of a run by the cost model, on the CPU and on a GPU: which of them is faster is known before a driver is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorkEstimate {
    /// Steps.
    pub steps: f64,
    /// Seconds of a step on one CPU thread.
    pub thread_seconds: f64,
    /// Kernels launched in a step on a GPU, and as many more as waiting for it in a step costs.
    pub launches: f64,
    /// Bytes that a step moves on a GPU.
    pub bytes: f64,
}

/// Seconds that CPU threads need to come together in a step: 16 took 100 to 400 us, some stages with their measurements.
const SYNCHRONISATION: f64 = 2e-4;
/// Seconds from one launch to the next where little is in them.
const LAUNCH: f64 = 4e-6;
/// Seconds that the driver, the context and the kernels of a GPU take before anything is done on it, and at the end of the process.
const GPU_START: f64 = 0.4;
/// Bytes a second of kernels on a GPU of a data centre, two thirds of an H100's.
const GPU_RATE: f64 = 1.5e12;

impl WorkEstimate {
    /// Forecast of all steps on this many threads, seconds.
    pub fn on_threads(&self, threads: usize) -> f64 {
        let alone = self.steps * self.thread_seconds;
        if threads < 2 { alone } else { alone.min(alone / threads as f64 + self.steps * SYNCHRONISATION) }
    }

    /// Forecast of all steps on a GPU that has been started, seconds.
    pub fn on_gpu(&self) -> f64 {
        self.steps * (LAUNCH * self.launches).max(self.bytes / GPU_RATE)
    }

    /// The forecasts on this many threads and on a GPU with its start, if the threads finish first.
    pub fn forecasts_if_cpu_faster(&self, threads: usize) -> Option<[f64; 2]> {
        Some([self.on_threads(threads), GPU_START + self.on_gpu()]).filter(|[here, there]| here <= there)
    }
}

/// Extent of the pictures that are wished for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Look {
    /// Those that take no longer than to read fields.
    Quick,
    /// All.
    Whole,
}

/// Reason for the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The goal was reached.
    Finished,
    /// The goal was not reached, but the result is the best that this precision or these limits allow. Exit code 0 with a warning.
    Limited,
    /// The goal was missed: the result is not to be trusted as asked. Exit code 3.
    Failed,
}

/// The solver's verdict once it is done.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Reason for the end.
    pub ending: Ending,
    /// The solver's own word, for example `converged` or `precision_floor`.
    pub status: &'static str,
    /// A sentence for people.
    pub message: String,
}

/// Resources that a solver may use during set-up.
pub struct Environment {
    /// The device to work on.
    pub device: Device,
    /// The folder that relative paths in the input refer to.
    pub folder: PathBuf,
    /// The seed of all random numbers.
    pub seed: u64,
    /// Links to the other parts of the run.
    pub links: Links,
    /// Parts of the run, which a plan is made for before they are linked.
    pub parts: usize,
}

impl Environment {
    /// An environment of a run that is not cut into parts. Relative paths of the input refer to `folder`.
    pub fn new(device: Device, folder: impl Into<PathBuf>, seed: u64) -> Self {
        Self { device, folder: folder.into(), seed, links: Links::default(), parts: 1 }
    }

    /// The environment of one part of a run.
    #[must_use]
    pub fn of_part(self, links: Links) -> Self {
        Self { parts: links.size(), links, ..self }
    }

    /// The environment that a run in so many parts is planned in.
    #[must_use]
    pub fn in_parts(self, parts: usize) -> Self {
        Self { parts, ..self }
    }
}

/// A solver: the parts that every one of the four has.
pub trait Solver: Sized + Send + 'static {
    /// The table in the input that decides for this solver, and its name on the command line.
    const NAME: &'static str;
    /// Name of one step: `cycle`, `step`, `iteration`.
    const STEP: &'static str;
    /// Name of one item: `unknown`, `particle`, `frame`.
    const ITEM: &'static str;
    /// Makes a row after each step, so that a step that breaks down is found at once. Otherwise only the rows that fall due and the
    /// last one are made: for solvers whose row waits for a device, or covers all steps since the row before.
    const ROW_EACH_STEP: bool = true;

    /// Schedule of the rows where `run.rows_every` is not given.
    fn rows_every(_config: &Self::Config) -> Schedule {
        Schedule::Steps(1)
    }

    /// The table of the input as typed; unknown keys are refused.
    type Config: Serialize + DeserializeOwned + JsonSchema + Clone + Send + Sync;

    /// Results that plan and set-up share, such as files read.
    type Prepared;

    /// Finds every problem that can be seen without allocating anything. Paths are relative to the solver's table.
    fn check(config: &Self::Config) -> Vec<Problem>;

    /// Features of an input that only the CPU computes, in words of the input: `auto` then means the CPU, and a GPU asked for by
    /// name is refused.
    fn only_on_cpu(config: &Self::Config) -> Vec<&'static str> {
        let _ = config;
        Vec::new()
    }

    /// Refuses to compute this input in more than one part: the reason, in words of the input. A solver that allows parts has a
    /// state that owns a share of the domain and exchanges the rest over [`Environment::links`]; all parts then call its methods
    /// alike. Rows, outcome and clock are the same for all, records and what is saved are whole at the first part.
    fn only_in_one_part(config: &Self::Config) -> Option<&'static str> {
        let _ = config;
        Some("this solver computes in one part")
    }

    /// Reason why parts of this input are computed on CPUs only, in words of the input.
    fn parts_only_on_cpu(config: &Self::Config) -> Option<&'static str> {
        let _ = config;
        Some("this solver computes parts on the CPU so far")
    }

    /// Division of a step of this input among `parts` parts, each on a device like that of `environment`, by the model; `plan` is
    /// that of the whole run. Allocates nothing. Solvers that compute in several parts have one.
    ///
    /// # Errors
    /// There are more parts than shares of the domain.
    fn divide(config: &Self::Config, environment: &Environment, plan: &Plan, parts: usize) -> Result<Division> {
        let _ = (environment, plan);
        let problem = Problem::new("--parts", Self::only_in_one_part(config).unwrap_or("this solver has no model of parts"));
        Err(Error::input("command line", problem.allowed(format!("1, not {parts}"))))
    }

    /// Keys at the top of the solver's table in which a run resumed from a checkpoint may differ from the one that made it, such as
    /// the number of steps. Where there are some, a run that saves checkpoints also saves one at its end.
    fn may_change() -> &'static [&'static str] {
        &[]
    }

    /// Reads and computes what plan and set-up share.
    fn prepare(config: &Self::Config, environment: &Environment) -> Result<Self::Prepared>;

    /// Plans a run: what it will do and what it needs. Allocates nothing.
    fn plan_prepared(prepared: &Self::Prepared, config: &Self::Config, environment: &Environment) -> Result<Plan>;

    /// Builds the state: the only place that allocates.
    fn setup_prepared(prepared: Self::Prepared, config: &Self::Config, environment: &Environment) -> Result<Self>;

    /// [`Solver::plan_prepared`] for those who set nothing up: a solver that takes long to prepare plans from the input alone here.
    fn plan(config: &Self::Config, environment: &Environment) -> Result<Plan> {
        Self::plan_prepared(&Self::prepare(config, environment)?, config, environment)
    }

    /// [`Solver::setup_prepared`] for those who plan nothing.
    fn setup(config: &Self::Config, environment: &Environment) -> Result<Self> {
        Self::setup_prepared(Self::prepare(config, environment)?, config, environment)
    }

    /// Programs that a run of this input takes on such a GPU, as far as known beforehand; others are compiled
    /// when it is asked for. `environment` is that of the CPU: packs of kernels are made where there is no GPU.
    fn programs(config: &Self::Config, environment: &Environment, gpu: &Properties) -> Result<Vec<Recipe>>;

    /// One step. Waits for nothing but what the method itself needs. A step that can take longer than a second asks
    /// [`crate::signal::stop_reason`] on its way, and returns with the clock where it was when there is a reason to stop.
    fn step(&mut self, profiler: &mut Profiler) -> Result<()>;

    /// `None` while there is more to do.
    fn outcome(&self) -> Option<Outcome>;

    /// Position of the run in steps and time.
    fn clock(&self) -> Clock;

    /// Progress of the run, 0 to 1, as far as it is known.
    fn progress(&self) -> f64;

    /// The scalars of this step.
    fn row(&mut self) -> Result<Row>;

    /// Returns true if the last step is still at work on a device and its row can wait until the next one was put there: the loop
    /// then asks for [`Solver::row_before`] after that, or for [`Solver::row`] before anything else looks at the run; only
    /// [`Solver::pictures`] may be asked for in between.
    fn row_can_wait(&self) -> bool {
        false
    }

    /// The scalars of the step before the last, where its row could wait.
    fn row_before(&mut self) -> Result<Row> {
        self.row()
    }

    /// The results as they stand: asked for when `output.every` falls due, and at the end of the run.
    fn records(&mut self) -> Result<Vec<Record>>;

    /// The results as they stand, as far as pictures of a run under way need them: what only files need may be left out, in a quick
    /// look also what takes long, and what comes from a device may be on its way, so that the next step need not wait. Empty if
    /// nothing has changed since the last pictures. Changes nothing in the state.
    fn pictures(&mut self, look: Look) -> Result<Pictures> {
        let _ = look;
        self.records().map(Pictures::from)
    }

    /// Name of the sections of a run that follow each other, such as the engines of a reconstruction; `None` where there are none.
    fn section(config: &Self::Config) -> Option<&'static str> {
        let _ = config;
        None
    }

    /// Ends the section at work, so that the next step is the first of the next section, or the run is at its end. Returns false
    /// where there are no sections.
    fn next_section(&mut self) -> Result<bool> {
        Ok(false)
    }

    /// All particles of a species as they stand, for a caller who looks at a run between two steps; `None` where there are none of
    /// that name.
    fn particles(&mut self, species: &str) -> Result<Option<Table>> {
        let _ = species;
        Ok(None)
    }

    /// A field by the name of its record as it stands, for such a caller, also where it is zero everywhere or no result of the run;
    /// `None` where [`Solver::records`] has all that there are.
    fn field(&mut self, name: &str) -> Result<Option<Record>> {
        let _ = name;
        Ok(None)
    }

    /// A field as it stands, copied by `copier` within the memory of the run's GPU, for a caller who looks at a run between two
    /// steps: the values that its record has, which may still be on their way. Asked of runs on a GPU in one part.
    ///
    /// # Errors
    /// There is no such field, or it does not lie there.
    fn field_on_gpu(&mut self, name: &str, copier: &FieldCopier) -> Result<FieldOnGpu> {
        let _ = copier;
        Err(not_on_gpu(name, &[]))
    }

    /// All particles of a species, copied within the memory of the run's GPU as [`Solver::field_on_gpu`] copies fields; `None`
    /// where there are none of that name.
    ///
    /// # Errors
    /// They do not lie there in a form that could be copied.
    fn particles_on_gpu(&mut self, species: &str, copier: &FieldCopier) -> Result<Option<TableOnGpu>> {
        let _ = copier;
        Err(not_on_gpu(species, &[]))
    }

    /// Puts new values in place of those of a field of the state between two steps: in the shape, order and units of the record
    /// `name`.
    ///
    /// # Errors
    /// The state has no such field, the shape is another one, or a value is not finite.
    fn set_field(&mut self, name: &str, shape: &[usize], values: GivenValues) -> Result<()> {
        let _ = (shape, values);
        Err(not_set("field", name, &[]))
    }

    /// [`Solver::set_field`] from values in the memory of the run's GPU, real ones or complex ones as the field has them. Asked of
    /// runs on a GPU in one part.
    ///
    /// # Errors
    /// Those of [`Solver::set_field`].
    fn set_field_on_gpu(&mut self, name: &str, shape: &[usize], values: &ValuesOnGpu, copier: &FieldCopier) -> Result<()> {
        let _ = (shape, values, copier);
        Err(not_set("field", name, &[]))
    }

    /// Puts new values in place of columns of [`Solver::particles`] between two steps, by their names; columns that are not given
    /// stay, which takes as many particles as there were.
    ///
    /// # Errors
    /// There is no such species or column, columns differ in length, or particles lie outside of the domain.
    fn set_particles(&mut self, species: &str, columns: &[(String, Vec<f64>)]) -> Result<()> {
        let _ = columns;
        Err(not_set("species", species, &[]))
    }

    /// [`Solver::set_particles`] from columns in the memory of the run's GPU, as far as particles keep their number and places:
    /// what a particle has is changed where it lies. Asked of runs on a GPU in one part.
    ///
    /// # Errors
    /// Those of [`Solver::set_particles`]; particles would come to lie elsewhere.
    fn set_particles_on_gpu(&mut self, species: &str, columns: &[(String, ValuesOnGpu)], copier: &FieldCopier) -> Result<()> {
        let _ = (columns, copier);
        Err(not_set("species", species, &[]))
    }

    /// Records of diagnostics that have schedules of their own and fall due now, `wall` into the run. Asked before the
    /// first step of a fresh run and after every step, the last one included; [`crate::schedule::Agenda`] keeps count.
    fn due(&mut self, wall: Duration) -> Result<Vec<Record>> {
        let _ = wall;
        Ok(Vec::new())
    }

    /// Conservation or residual figures.
    fn checks(&mut self) -> Result<Vec<Check>>;

    /// Figures of the parts of a run that has several, for `summary.json`: right-hand sides of a batch, say.
    fn details(&self) -> Option<serde_json::Value> {
        None
    }

    /// Writes everything that a bit-equal continuation needs.
    fn save(&mut self, writer: &mut Writer) -> Result<()>;

    /// Takes the state back, into a solver that was set up from the same input.
    fn restore(&mut self, reader: &Reader) -> Result<()>;

    /// The cost model of one step.
    fn cost(&self) -> Cost;

    /// The named benchmark cases.
    fn cases() -> &'static [Case];

    /// Sets a case up on a device.
    fn bench(case: &Case, device: &Device) -> Result<Box<dyn Bench>>;

    /// The plain case over its sizes, for sweeps: series of neighbours from small to large, whose names [`Solver::bench`] and
    /// [`Solver::input`] know.
    fn sweep() -> Vec<Vec<Case>> {
        Vec::new()
    }

    /// Input that a user would write for a case, which runs about as long as the timed part; `None` where no input describes the
    /// case.
    fn input(case: &Case) -> Option<Self::Config> {
        let _ = case;
        None
    }
}

impl Case {
    /// A case of a sweep, timed on any device with enough memory.
    pub fn of_sweep(name: String) -> Self {
        // Some dozens, once in a process.
        Self { name: name.leak(), about: "a size of the sweep", gpu_only: false }
    }
}

/// One named benchmark case.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// `solver/case`, for example `poisson/mixed-1e-6-4097`.
    pub name: &'static str,
    /// Description of the timed work, with the target figure.
    pub about: &'static str,
    /// Restricts the case to GPUs (size, time); it is listed and skipped elsewhere with a message.
    pub gpu_only: bool,
}

/// A benchmark case, set up: `reset` and `run` are called in turn, `run` alone is timed.
pub trait Bench {
    /// Back to the start; not timed.
    fn reset(&mut self) -> Result<()>;
    /// The work that is timed. Returns when the device is done. `profiler` is off while it is timed; one more run with it on tells
    /// the stages apart.
    fn run(&mut self, profiler: &mut Profiler) -> Result<()>;
    /// Checks of the physics of the last timed work.
    fn checks(&mut self) -> Result<Vec<Check>>;
    /// Model cost of the last timed work.
    fn cost(&self) -> Cost;
    /// Steps of the last timed work, as a run counts them.
    fn steps(&self) -> u64;
    /// Memory held on the device, bytes.
    fn memory(&self) -> u64;
    /// Further figures for the table, for example `("sweeps", 5.0)`.
    fn figures(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
    /// Figures that other programs state for their stages of the same work.
    fn peer_times(&self) -> &'static [PeerTime] {
        &[]
    }
}

/// Time that another program states for one of its stages, to stand beside ours.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PeerTime {
    /// Program and device.
    pub by: &'static str,
    /// Name of the stage in that program.
    pub stage: &'static str,
    /// Time per item, nanoseconds.
    pub ns_per_item: f64,
    /// Share of its bandwidth limit, per cent, where it is stated.
    pub percent_of_bandwidth: Option<f64>,
    /// Our stage that does this.
    pub ours: &'static str,
}
