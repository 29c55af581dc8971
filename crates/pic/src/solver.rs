//! The solver as the run loop sees it.

use std::fmt::Write as _;
use std::time::Duration;

use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::cuda::{Properties, Recipe};
use zellige_engine::device::Device;
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::links::Division;
use zellige_engine::ops::plane::FieldCopier;
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Check, FieldOnGpu, GivenValues, Pictures, Record, Row, Table, TableOnGpu, ValuesOnGpu};
use zellige_engine::sim::{Bench, Case, Clock, Cost, Ending, Environment, Look, Outcome, Plan, Solver, WorkEstimate, not_set};
use zellige_engine::times::{self, Phase};

use crate::bench;
use crate::config::Config;
use crate::config::diagnostics::{ENERGY_LIMIT, ParticlesConfig};
use crate::diagnostics::{Diagnostics, mode};
use crate::division;
use crate::grid::{FieldSide, ParticleSide};
use crate::output::{self, digits};
use crate::plasma::{self, EnergyAccounts, Plasma, left_behind};
use crate::setup::{Load, Model};
use crate::stages::{self, Component, Precision, Setup};
use crate::warnings;

/// Mean charge above which it is said.
const BACKGROUND: f64 = 1e-9;

/// A plasma being run.
pub struct Pic {
    config: Config,
    plasma: Plasma,
    diagnostics: Diagnostics,
    /// Particles at the last count.
    count: u64,
    device: Device,
}

impl Pic {
    /// The plasma.
    pub fn plasma(&mut self) -> &mut Plasma {
        &mut self.plasma
    }

    /// The component of E or B of that name, which is set to values of this shape.
    fn field_to_set(&mut self, name: &str, shape: &[usize]) -> Result<Component> {
        const FIELDS: [&str; 6] = ["E_x", "E_y", "E_z", "B_x", "B_y", "B_z"];
        let Some(c) = FIELDS.iter().position(|field| *field == name) else { return Err(not_set("field", name, &FIELDS)) };
        let cells = self.plasma.setup.grid.cells;
        let wanted: Vec<usize> = cells[..self.plasma.setup.grid.dimensions].iter().rev().copied().collect();
        if shape != wanted {
            let problem = Problem::new(name, format!("an array of {shape:?} values")).allowed(format!("{wanted:?}, a value a cell"));
            return Err(Error::input("the run", problem));
        }
        self.diagnostics.settle(&mut self.plasma)?;
        Ok(Component::ALL[c])
    }

    /// Number of the species of that name, whose particles are to be set.
    fn species_to_set(&mut self, species: &str) -> Result<usize> {
        let names: Vec<&str> = self.plasma.setup.species.iter().map(|s| s.name.as_str()).collect();
        let Some(s) = names.iter().position(|name| *name == species) else { return Err(not_set("species", species, &names)) };
        self.diagnostics.settle(&mut self.plasma)?;
        Ok(s)
    }

    /// Diagnostics of the run.
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }
}

/// Model traffic of a step: a particle is read and written once, the six fields and the current of a cell twice.
pub fn cost(setup: &Setup, particles: u64) -> Cost {
    let size = if setup.precision == Precision::F32 { 4.0 } else { 8.0 };
    let cells = (setup.grid.cells[0] * setup.grid.cells[1]) as f64;
    // Two offsets, three momenta and the place of the cell.
    let particle = 2.0 * (5.0 * size + 2.0);
    let n = particles as f64;
    // Counted in the formulae: gather 60, push 60, move and split 40, deposit 60; quadratic shapes double the first and last.
    let flops = if setup.order == 1 { 220.0 } else { 420.0 };
    Cost { bytes: n * particle + cells * 4.0 * 9.0 * size, flops: n * flops + cells * 60.0, items: n }
}

/// Launches of a step on a GPU, with the waits of its diagnostics: small plasmas take 95 to 600 us a step on an H100.
const LAUNCHES: f64 = 40.0;

/// All steps by the cost model: on a thread 9 ns a particle with linear shapes, 22 with quadratic ones, twice that in double
/// precision, and 8 ns a cell.
fn work(config: &Config, setup: &Setup, particles: u64) -> WorkEstimate {
    let double = if setup.precision == Precision::F32 { 1.0 } else { 2.0 };
    let each = double * if setup.order == 1 { 9e-9 } else { 22e-9 };
    let cells = (setup.grid.cells[0] * setup.grid.cells[1]) as f64;
    let thread_seconds = particles as f64 * each + cells * 8e-9 * double;
    WorkEstimate { steps: config.step_count() as f64, thread_seconds, launches: LAUNCHES, bytes: cost(setup, particles).bytes }
}

impl Solver for Pic {
    const NAME: &'static str = "pic";
    const STEP: &'static str = "step";
    const ITEM: &'static str = "particle";

    type Config = Config;
    type Prepared = Model;

    fn check(config: &Config) -> Vec<Problem> {
        config.check()
    }

    fn only_in_one_part(_: &Config) -> Option<&'static str> {
        None
    }

    fn parts_only_on_cpu(config: &Config) -> Option<&'static str> {
        (config.dimensions() == 1).then_some("on GPUs parts have rows of a plane, and this is a line")
    }

    fn divide(config: &Config, environment: &Environment, plan: &Plan, parts: usize) -> Result<Division> {
        let model = Self::prepare(config, environment)?;
        division::of(&model, &model.setup(config)?, &environment.device, plan, parts)
    }

    fn may_change() -> &'static [&'static str] {
        &["t_end", "steps"]
    }

    fn prepare(config: &Config, environment: &Environment) -> Result<Model> {
        Model::new(config, &environment.folder, environment.seed)
    }

    fn plan_prepared(model: &Model, config: &Config, environment: &Environment) -> Result<Plan> {
        let setup = model.setup(config)?;
        if let Device::Cuda(cuda) = &environment.device {
            stages::cuda::check(&setup, cuda.properties())?;
        }
        let items: u64 = model.expected.iter().map(|n| *n as u64).sum();
        let traffic = cost(&setup, items).bytes as u64;
        let mut warnings = warnings::of(config, model);
        warnings.extend(left_behind(config, model)?);
        let mut lines = lines(config, model);
        if matches!(environment.device, Device::Cuda(_)) {
            lines.extend(makers(config, model, &setup));
        }
        let work = Some(work(config, &setup, items));
        let memory = stages::memory(&setup, &environment.device);
        Ok(Plan { lines, items, memory, traffic, warnings, expected: mode::expected(config)?, work })
    }

    fn setup_prepared(model: Model, config: &Config, environment: &Environment) -> Result<Self> {
        let mut plasma = Plasma::of(model, config, &environment.device, &environment.links)?;
        let diagnostics = Diagnostics::new(config, &mut plasma)?;
        let count = plasma.stages.ledger()?.iter().map(|l| l.injected - l.removed).sum();
        Ok(Self { config: config.clone(), plasma, diagnostics, count, device: environment.device.clone() })
    }

    fn programs(config: &Config, environment: &Environment, gpu: &Properties) -> Result<Vec<Recipe>> {
        let model = Self::prepare(config, environment)?;
        let setup = model.setup(config)?;
        Ok([stages::cuda::recipes(&setup, gpu), plasma::makers(config, &model, &setup, gpu), stages::cuda::recipes_of_copies()].concat())
    }

    fn step(&mut self, profiler: &mut Profiler) -> Result<()> {
        let measures = self.diagnostics.measures(&self.plasma);
        let (device, plasma, diagnostics) = (&self.device, &mut self.plasma, &mut self.diagnostics);
        // A closed box's account waits for nothing.
        let account = match plasma.accounts() {
            _ if !measures => None,
            EnergyAccounts::Closed => Some(times::within(Phase::Diagnostics, || plasma.account())?),
            _ => Some(times::after_steps(device, Phase::Diagnostics, || plasma.account())?),
        };
        plasma.advance(measures, profiler)?;
        if measures {
            times::after_steps(device, Phase::Diagnostics, || diagnostics.after_step(plasma, account))?;
        } else {
            times::within(Phase::Diagnostics, || diagnostics.after_step(plasma, None))?;
        }
        if measures {
            self.count = self.diagnostics.series.last("particles") as u64;
        }
        Ok(())
    }

    fn outcome(&self) -> Option<Outcome> {
        if self.plasma.step < self.plasma.model.steps {
            return None;
        }
        let figures: Vec<String> = self.diagnostics.modes.iter().map(mode::Mode::message).collect();
        let end = self.plasma.time() * self.plasma.model.units.time;
        let mut message = if figures.is_empty() { format!("t = {}", digits(end, 7)) } else { figures.join("; ") };
        if self.plasma.background.abs() > BACKGROUND {
            let _ =
                write!(message, "; a background of charge {:.3e} e n_0 that does not move makes the box neutral", -self.plasma.background);
        }
        Some(Outcome { ending: Ending::Finished, status: "finished", message })
    }

    fn clock(&self) -> Clock {
        Clock { step: self.plasma.step, time: Some(self.plasma.time() * self.plasma.model.units.time) }
    }

    fn progress(&self) -> f64 {
        self.plasma.step as f64 / self.plasma.model.steps.max(1) as f64
    }

    fn row(&mut self) -> Result<Row> {
        let mut row = self.diagnostics.series.row();
        self.diagnostics.figures(&mut self.plasma, &mut row)?;
        Ok(row)
    }

    fn records(&mut self) -> Result<Vec<Record>> {
        let records = self.diagnostics.records(&self.config, &mut self.plasma, None)?.records()?;
        self.plasma.must_be_finite(&records)?;
        Ok(records)
    }

    fn pictures(&mut self, look: Look) -> Result<Pictures> {
        self.diagnostics.records(&self.config, &mut self.plasma, Some(look))
    }

    fn particles(&mut self, species: &str) -> Result<Option<Table>> {
        if self.plasma.setup.species.iter().all(|s| s.name != species) {
            return Ok(None);
        }
        let all = ParticlesConfig { species: species.to_owned(), select: None, limit: usize::MAX, every: None };
        let table = output::particles(&self.config, &mut self.plasma, &all)?;
        self.plasma.particles_must_be_finite(&table)?;
        Ok(Some(table))
    }

    fn field(&mut self, name: &str) -> Result<Option<Record>> {
        let found = output::field(&self.config, &mut self.plasma, name)?;
        self.plasma.must_be_finite(found.as_slice())?;
        Ok(found)
    }

    fn field_on_gpu(&mut self, name: &str, copier: &FieldCopier) -> Result<FieldOnGpu> {
        output::field_on_gpu(&self.config, &mut self.plasma, name, copier)
    }

    fn particles_on_gpu(&mut self, species: &str, copier: &FieldCopier) -> Result<Option<TableOnGpu>> {
        let number = self.plasma.setup.species.iter().position(|s| s.name == species);
        number.map(|s| output::particles_on_gpu(&mut self.plasma, s, copier)).transpose()
    }

    fn set_field(&mut self, name: &str, shape: &[usize], values: GivenValues) -> Result<()> {
        let component = self.field_to_set(name, shape)?;
        self.plasma.set_field(name, component, values.real(name)?)?;
        self.diagnostics.series.changed();
        Ok(())
    }

    fn set_field_on_gpu(&mut self, name: &str, shape: &[usize], values: &ValuesOnGpu, copier: &FieldCopier) -> Result<()> {
        let component = self.field_to_set(name, shape)?;
        self.plasma.set_field_on_gpu(name, component, values, copier)?;
        self.diagnostics.series.changed();
        Ok(())
    }

    fn set_particles(&mut self, species: &str, columns: &[(String, Vec<f64>)]) -> Result<()> {
        let s = self.species_to_set(species)?;
        self.plasma.set_particles(s, columns)?;
        self.diagnostics.series.changed();
        self.count = self.plasma.stages.count()?.iter().sum();
        Ok(())
    }

    fn set_particles_on_gpu(&mut self, species: &str, columns: &[(String, ValuesOnGpu)], copier: &FieldCopier) -> Result<()> {
        let s = self.species_to_set(species)?;
        self.plasma.set_particles_on_gpu(s, columns, copier, |plasma| output::particles_on_gpu(plasma, s, copier))?;
        self.diagnostics.series.changed();
        Ok(())
    }

    fn due(&mut self, wall: Duration) -> Result<Vec<Record>> {
        let clock = self.clock();
        let due = self.diagnostics.due(&self.config, &mut self.plasma, clock, wall)?;
        self.plasma.must_be_finite(&due)?;
        Ok(due)
    }

    fn checks(&mut self) -> Result<Vec<Check>> {
        let mut checks: Vec<Check> = self.diagnostics.modes.iter().filter_map(mode::Mode::check).collect();
        checks.extend(self.plasma.gauss.check());
        let (ledger, there) = (self.plasma.stages.ledger()?, self.plasma.stages.count()?);
        let put =
            ledger.iter().zip(&self.plasma.added).map(|(l, added)| l.injected.saturating_sub(l.removed).saturating_add_signed(*added));
        let missing: u64 = put.zip(there).map(|(put, n)| n.abs_diff(put)).sum();
        checks.push(Check::at_most("particles missing or too many", missing as f64, 0.0));
        if self.plasma.accounts() != EnergyAccounts::Open {
            let limit = self.config.diagnostics.energy_limit.unwrap_or(ENERGY_LIMIT);
            checks.push(Check::at_most("largest relative change of the energy", self.diagnostics.series.worst_change(), limit));
        }
        Ok(checks)
    }

    fn save(&mut self, writer: &mut Writer) -> Result<()> {
        self.diagnostics.settle(&mut self.plasma)?;
        self.plasma.save(writer, self.diagnostics.show_current())?;
        writer.u64("count", self.count)?;
        self.diagnostics.save(writer)
    }

    fn restore(&mut self, reader: &Reader) -> Result<()> {
        // Samples put aside at the start are none of those that come back.
        self.diagnostics.settle(&mut self.plasma)?;
        self.plasma.restore(reader)?;
        self.count = reader.u64("count")?;
        let clock = self.clock();
        self.diagnostics.restore(reader, clock)
    }

    fn cost(&self) -> Cost {
        cost(&self.plasma.setup, self.count)
    }

    fn cases() -> &'static [Case] {
        bench::CASES
    }

    fn bench(case: &Case, device: &Device) -> Result<Box<dyn Bench>> {
        bench::open(case, device)
    }

    fn sweep() -> Vec<Vec<Case>> {
        bench::sweep()
    }

    fn input(case: &Case) -> Option<Config> {
        bench::input(case.name)
    }
}

/// Maker of each species on a GPU run, CPU or GPU, for the plan.
fn makers(config: &Config, model: &Model, setup: &Setup) -> Vec<(String, String)> {
    let line = |load: &Load| match plasma::obstacle(config, setup, load) {
        None => format!("{}: made by the GPU", load.species.name),
        Some(why) => format!("{}: made on the host, since {why}", load.species.name),
    };
    model.loads.iter().map(|load| ("start".to_owned(), line(load))).collect()
}

fn lines(config: &Config, model: &Model) -> Vec<(String, String)> {
    let (grid, units) = (&model.grid, &model.units);
    let join = |f: &dyn Fn(usize) -> String, by: &str| (0..grid.dimensions).map(f).collect::<Vec<_>>().join(by);
    let length = units.label(" m", " c/w_n");
    let cells = join(&|d| grid.cells[d].to_string(), " x ");
    let spacing = join(&|d| format!("{:.5e}", config.spacing(d)), " x ");
    let field = |side: FieldSide| ["periodic", "PEC", "PMC", "absorbing"][side as usize];
    let particle = |side: ParticleSide| ["periodic", "reflecting", "absorbing", "thermal"][side as usize];
    let side = |d: usize, end: usize| format!("{}/{}", field(grid.fields[d][end]), particle(grid.particles[d][end]));
    let sides = join(
        &|d| {
            let [lo, hi] = [0, 1].map(|end| side(d, end));
            if lo == hi { format!("{} {lo}", ["x", "y"][d]) } else { format!("{} {lo} to {hi}", ["x", "y"][d]) }
        },
        ", ",
    );
    let mut lines = vec![
        ("grid".to_owned(), format!("{cells} cells of {spacing}{length}")),
        ("sides".to_owned(), format!("{sides} (fields/particles)")),
        (
            "time".to_owned(),
            format!(
                "{} steps of {:.5e}{} ({:.3} of the limit), to t = {}",
                model.steps,
                grid.dt * units.time,
                units.label(" s", "/w_n"),
                grid.dt / grid.courant_limit(),
                digits(model.steps as f64 * grid.dt * units.time, 7)
            ),
        ),
    ];
    for (load, (n, most)) in model.loads.iter().zip(model.at_start.iter().zip(&model.expected)) {
        let s = &load.species;
        let later = if most > n { format!(" at first, {most} as the window moves") } else { String::new() };
        let heavy = if s.weighted { ", own weights" } else { "" };
        let per_cell = if load.listed.is_some() { "from a file".to_owned() } else { format!("{} per cell", load.per_cell) };
        lines
            .push(("species".into(), format!("{}: charge {}, mass {}, {per_cell}, {n} particles{later}{heavy}", s.name, s.charge, s.mass)));
    }
    let precision = if model.precision == Precision::F32 { "single" } else { "double" };
    let shape = if config.order == 1 { "linear" } else { "quadratic" };
    lines.push(("numerics".into(), format!("{shape} shapes, {precision} precision")));
    if let Some(start) = model.window {
        lines.push(("window".into(), format!("from t = {} on, {} cells", digits(start * units.time, 7), model.shifts(start, model.steps))));
    }
    lines
}
