//! The solver as the run loop sees it.

use std::fmt::Write as _;
use std::time::Duration;

use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::cuda::{Properties, Recipe};
use zellige_engine::device::Device;
use zellige_engine::error::{Problem, Result};
use zellige_engine::links::{Division, Links};
use zellige_engine::ops::plane::FieldCopier;
use zellige_engine::parallel::{chunks, map};
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Check, FieldOnGpu, Pictures, Record, Row, Table, TableOnGpu, ValuesOnGpu};
use zellige_engine::schedule::Schedule;
use zellige_engine::sim::{Bench, Case, Clock, Cost, Ending, Environment, Look, Outcome, Plan, Solver, not_set};
use zellige_engine::times::{self, Phase};

use crate::bench;
use crate::config::Config;
use crate::diagnostics::audit;
use crate::diagnostics::surfaces;
use crate::flow::{self, Averaged, Flow};
use crate::model::{Model, Partner, Scheme};
use crate::output;
use crate::plan::forecast;
use crate::stages::cpu::bytes_of;
use crate::stages::{Ledger, Totals, cuda, division};

/// Looks at energy and momentum in a run where nothing is said.
const AUDITS: u64 = 50;
/// Fewest steps between two of them: an audit goes through all particles.
const APART: u64 = 50;
/// Steps from one row to the next, each of which waits for a GPU, and rows in a short run.
const ROW_STEPS: u64 = 20;
const ROWS: u64 = 50;
/// Cells that a thread looks at in a piece.
const CELLS_AT_ONCE: usize = 4096;

/// A gas being run.
pub struct Dsmc {
    config: Config,
    flow: Flow,
    audit_every: u64,
    totals: Totals,
    start: Totals,
    /// The ledger at the last row, and its step: rates of a row are means over the steps since then.
    last: (Ledger, u64),
    /// Fault that the last audit found.
    lost: Option<String>,
    /// Fraction of the collisions above (sigma g)max, where the last audit found it too large.
    exceeded: Option<f64>,
    /// Averages that the last pictures were of ([`crate::sampling::Samples`] counts their changes).
    seen: Option<u64>,
    /// Cells of the averages at the end that are wider than the free path ([`coarse`]).
    coarse: Option<(usize, f64)>,
    device: Device,
    links: Links,
}

impl Dsmc {
    /// The gas.
    pub fn flow(&mut self) -> &mut Flow {
        &mut self.flow
    }

    /// Goes through all particles: energy and momentum for the rows, and whether all is there.
    fn audit(&mut self) -> Result<()> {
        self.totals = self.flow.totals()?;
        let ledger = self.flow.ledger()?;
        let start = audit::closed(&self.flow.model).then_some(&self.start);
        let found = audit::lost(&ledger, &self.totals, start);
        self.lost = found.map(|what| format!("{what}; found in the audit after step {}", self.flow.step));
        self.exceeded = audit::exceeded(&ledger);
        Ok(())
    }

    /// Number of the species of that name, whose particles are to be set.
    fn number_of(&self, species: &str) -> Result<usize> {
        let names: Vec<&str> = self.flow.model.species.iter().map(|s| s.name.as_str()).collect();
        names.iter().position(|name| *name == species).ok_or_else(|| not_set("species", species, &names))
    }

    /// Energy from outside is no change of the gas, which is held to what it has now.
    fn begin_anew(&mut self) -> Result<()> {
        self.totals = self.flow.totals()?;
        self.start = self.totals;
        Ok(())
    }

    /// Looks at the averages of a run that is at its end, at the first part, which gets them. All parts call this alike.
    fn look_at_the_end(&mut self) -> Result<()> {
        if self.flow.step == self.config.steps {
            self.flow.fetch()?;
            if self.links.is_first() {
                self.coarse = self.flow.on_host(coarse);
            }
        }
        Ok(())
    }
}

/// Model traffic of a step.
pub fn cost(model: &Model, particles: u64, sample: bool) -> Cost {
    let n = particles as f64;
    Cost { bytes: bytes_of(model, sample, n), flops: 30.0 * n, items: n }
}

/// Cells that turned out wider than the free path of the gas in them, and the widest by its free path; nothing where that does not
/// matter.
fn coarse(Averaged { model, samples }: Averaged<'_>) -> Option<(usize, f64)> {
    let (grid, c) = (&model.grid, &model.collisions);
    if samples.batches == 0 || grid.len() == 1 || c.scheme == Scheme::None || c.partner == Partner::NearestNeighbour {
        return None;
    }
    let h = grid.h[..grid.dimensions].iter().copied().fold(0.0, f64::max);
    let width = crate::sampling::width(model);
    let of_block = |block: usize, values: &[f64]| {
        let values = values.chunks_exact(width).enumerate();
        let wide = values.filter(|(_, v)| v[14] > 0.0 && h > v[14]);
        let known = wide.filter(|(c, v)| samples.warm(model, block * CELLS_AT_ONCE + c, 0, v));
        known.fold((0, 0.0_f64), |(n, most), (_, v)| (n + 1, most.max(h / v[14])))
    };
    let blocks = map(chunks(samples.values(), CELLS_AT_ONCE * width), of_block);
    let (cells, worst) = blocks.into_iter().fold((0, 0.0_f64), |(n, most), (cells, worst)| (n + cells, most.max(worst)));
    (cells > 0).then_some((cells, worst))
}

impl Solver for Dsmc {
    const NAME: &'static str = "dsmc";
    const STEP: &'static str = "step";
    const ITEM: &'static str = "particle";
    const ROW_EACH_STEP: bool = false;

    type Config = Config;
    type Prepared = Model;

    fn check(config: &Config) -> Vec<Problem> {
        config.check()
    }

    fn rows_every(config: &Config) -> Schedule {
        Schedule::Steps((config.steps / ROWS).clamp(1, ROW_STEPS))
    }

    fn only_in_one_part(_: &Config) -> Option<&'static str> {
        None
    }

    fn parts_only_on_cpu(_: &Config) -> Option<&'static str> {
        None
    }

    fn divide(config: &Config, environment: &Environment, plan: &Plan, parts: usize) -> Result<Division> {
        Ok(division::of(&Self::prepare(config, environment)?, plan, &environment.device, parts))
    }

    fn may_change() -> &'static [&'static str] {
        &["steps"]
    }

    fn prepare(config: &Config, environment: &Environment) -> Result<Model> {
        Model::new(config, &environment.folder, environment.seed)
    }

    fn plan_prepared(model: &Model, config: &Config, environment: &Environment) -> Result<Plan> {
        let items = model.expected as u64;
        let traffic = cost(model, items, config.sampling.every == 1).bytes as u64;
        let (mut lines, warnings) = forecast::forecast(config, model);
        lines.push(("forecast".into(), forecast::duration(config, model, &environment.device)));
        let work = Some(forecast::work(config, model, traffic as f64));
        let expected = forecast::expected(config, model);
        Ok(Plan { lines, items, memory: flow::memory(model, &environment.device), traffic, warnings, expected, work })
    }

    fn setup_prepared(model: Model, config: &Config, environment: &Environment) -> Result<Self> {
        let mut flow = Flow::of(model, config, &environment.device, &environment.links)?;
        let totals = flow.totals()?;
        let audit_every = config.sampling.audit.unwrap_or_else(|| config.steps.div_ceil(AUDITS).max(APART)).max(1);
        let last = (flow.ledger()?, 0);
        Ok(Self {
            config: config.clone(),
            flow,
            audit_every,
            totals,
            start: totals,
            last,
            lost: None,
            exceeded: None,
            coarse: None,
            seen: None,
            device: environment.device.clone(),
            links: environment.links.clone(),
        })
    }

    fn programs(config: &Config, environment: &Environment, gpu: &Properties) -> Result<Vec<Recipe>> {
        let model = Self::prepare(config, environment)?;
        // Parts have programs of their own, which are the same for any number of them.
        let of_steps = [1, 2].into_iter().flat_map(|parts| cuda::recipes(&model, gpu, parts));
        Ok(of_steps.chain(cuda::recipes_of_copies(&model, gpu)).collect())
    }

    fn step(&mut self, profiler: &mut Profiler) -> Result<()> {
        self.flow.advance(profiler)?;
        if self.flow.step.is_multiple_of(self.audit_every) || self.flow.step == self.config.steps {
            let device = self.device.clone();
            profiler.stage("audit", Cost::default(), || times::after_steps(&device, Phase::Diagnostics, || self.audit()))?;
        }
        // Averages at the end of a run and of a window.
        if self.flow.step == self.config.steps || self.flow.samples.full {
            let device = self.device.clone();
            times::after_steps(&device, Phase::Diagnostics, || {
                self.flow.fetch()?;
                self.look_at_the_end()
            })?;
        }
        Ok(())
    }

    fn outcome(&self) -> Option<Outcome> {
        if let Some(what) = &self.lost {
            let message = format!("{what}. This is an error of the program, not of the input; please report it");
            return Some(Outcome { ending: Ending::Failed, status: "not_conserved", message });
        }
        if self.flow.step < self.config.steps {
            return None;
        }
        let samples = self.flow.samples.closed();
        let batches = self.flow.samples.batches;
        let mut message = format!("t = {:.6e} s; averages of {samples} samples in {batches} batches", self.flow.time());
        let (mut ending, mut status) = (Ending::Finished, "finished");
        match self.flow.samples.search.as_ref().and_then(|s| s.found) {
            Some(f) if f.steady => {
                let _ = write!(message, " from step {}, when no trend was left (measure {:.2}, at most 2)", f.step, f.measure);
            }
            Some(f) => {
                (ending, status) = (Ending::Limited, "not_steady");
                let _ = write!(
                    message,
                    " from step {}, though the flow was not found steady (measure of the trend {:.2}, at most 2); more `steps` would do",
                    f.step, f.measure
                );
            }
            None => {}
        }
        if let Some(part) = self.exceeded {
            (ending, status) = (Ending::Limited, "collisions_missed");
            let _ = write!(
                message,
                "; {:.1} % of the collisions were above (sigma g)max, so that there were too few; `collisions.scheme = \"pairing\"` knows no such bound",
                100.0 * part
            );
        }
        if !self.links.is_first() {
            // Averages are at the first part, which says what is in them.
            return Some(Outcome { ending, status, message });
        }
        if let Some((cells, worst)) = self.coarse {
            let all = self.flow.model.grid.len();
            let _ = write!(message, "; {cells} of {all} cells are wider than the free path in them, the widest {worst:.2} times");
        }
        for (i, body) in self.flow.model.geometry.bodies().iter().enumerate().filter(|_| batches > 1) {
            let [load, error] = surfaces::body(&self.flow, i);
            let with = |value: f64, error: f64| format!("{value:.4e} +- {error:.1e}");
            let _ = write!(
                message,
                "; {}: force {} N/m along x, {} along y, moment {} N, heat {} W/m",
                body.name,
                with(load.force[0], error.force[0]),
                with(load.force[1], error.force[1]),
                with(load.moment, error.moment),
                with(load.heat, error.heat)
            );
            if let Some(c) = surfaces::coefficients(&self.flow, i, &[load, error]) {
                let [[drag, drag_error], [lift, lift_error]] = c.values;
                let _ = write!(
                    message,
                    ", drag coefficient {drag:.4} +- {drag_error:.4}, lift {lift:.4} +- {lift_error:.4} by the {} {:.4e} m",
                    c.what, c.width
                );
            }
        }
        Some(Outcome { ending, status, message })
    }

    fn clock(&self) -> Clock {
        Clock { step: self.flow.step, time: Some(self.flow.time()) }
    }

    fn progress(&self) -> f64 {
        self.flow.step as f64 / self.config.steps as f64
    }

    fn row(&mut self) -> Result<Row> {
        let ledger = self.flow.ledger()?;
        let (before, step) = std::mem::replace(&mut self.last, (ledger, self.flow.step));
        let steps = (self.flow.step - step).max(1) as f64;
        let t = &self.totals;
        let mut row = Row::default();
        row.push("particles", "", ledger.there() as f64);
        row.push("collisions_per_step", "", (ledger.collisions - before.collisions) as f64 / steps);
        row.push("attempts_per_step", "", (ledger.attempts - before.attempts) as f64 / steps);
        row.push("injected_per_step", "", (ledger.injected - before.injected) as f64 / steps);
        row.push("exited_per_step", "", (ledger.removed - before.removed) as f64 / steps);
        if self.flow.model.weighted() {
            row.push("copied_per_step", "", (ledger.copied - before.copied) as f64 / steps);
            row.push("dropped_per_step", "", (ledger.dropped - before.dropped) as f64 / steps);
        }
        row.push("energy", "J", t.translation + t.internal);
        row.push("energy_translation", "J", t.translation);
        row.push("energy_internal", "J", t.internal);
        row.push("momentum_x", "kg m/s", t.momentum[0]);
        row.push("momentum_y", "kg m/s", t.momentum[1]);
        row.push("momentum_z", "kg m/s", t.momentum[2]);
        row.push("samples", "", self.flow.samples.taken as f64);
        if !self.flow.model.geometry.is_empty() {
            // Of all bodies together, as far as batches are closed; rows hold numbers: 0 before.
            let [load, error] = if self.links.is_first() { surfaces::all(&self.flow) } else { Default::default() };
            let known = |x: f64| if x.is_finite() { x } else { 0.0 };
            row.push("force_x", "N/m", known(load.force[0]));
            row.push("force_x_error", "N/m", known(error.force[0]));
            row.push("force_y", "N/m", known(load.force[1]));
            row.push("force_y_error", "N/m", known(error.force[1]));
            row.push("heat", "W/m", known(load.heat));
            row.push("heat_error", "W/m", known(error.heat));
        }
        if let Some(search) = &self.flow.samples.search {
            // Rows hold numbers: -1 before the first look, and no more than a million.
            let measure = search.measure();
            row.push("trend", "", if measure.is_nan() { -1.0 } else { measure.min(1e6) });
        }
        let mut values: Vec<f64> = row.0.iter().map(|scalar| scalar.value).collect();
        self.links.first_values(&mut values)?;
        row.0.iter_mut().zip(values).for_each(|(scalar, value)| scalar.value = value);
        Ok(row)
    }

    fn records(&mut self) -> Result<Vec<Record>> {
        self.flow.fetch()?;
        Ok(if self.links.is_first() { output::records(&self.flow) } else { Vec::new() })
    }

    fn pictures(&mut self, _look: Look) -> Result<Pictures> {
        let changes = self.flow.samples.changes();
        if self.seen == Some(changes) {
            return Ok(Pictures::default());
        }
        if self.flow.samples.batches == 0 {
            if changes == 0 {
                // Nothing comes, but what comes later has its memory ready.
                self.flow.begin_fetch()?;
            }
            return Ok(Pictures::default());
        }
        let mut pictures = Pictures::default();
        match self.flow.begin_fetch()? {
            Some(to_come) => pictures.push_coming(move || to_come.wait(|averaged| output::of(averaged, false))),
            None => pictures.extend(self.records()?),
        }
        self.seen = Some(changes);
        Ok(pictures)
    }

    fn particles(&mut self, species: &str) -> Result<Option<Table>> {
        let number = self.flow.model.species.iter().position(|s| s.name == species);
        number.map(|number| self.flow.table(number)).transpose()
    }

    fn set_particles(&mut self, species: &str, columns: &[(String, Vec<f64>)]) -> Result<()> {
        let number = self.number_of(species)?;
        self.flow.set_velocities(number, columns)?;
        self.begin_anew()
    }

    fn field_on_gpu(&mut self, name: &str, _copier: &FieldCopier) -> Result<FieldOnGpu> {
        output::field_on_gpu(&mut self.flow, name)
    }

    fn particles_on_gpu(&mut self, species: &str, _copier: &FieldCopier) -> Result<Option<TableOnGpu>> {
        let number = self.flow.model.species.iter().position(|s| s.name == species);
        number.map(|number| self.flow.table_on_gpu(number)).transpose()
    }

    fn set_particles_on_gpu(&mut self, species: &str, columns: &[(String, ValuesOnGpu)], copier: &FieldCopier) -> Result<()> {
        let number = self.number_of(species)?;
        self.flow.set_velocities_on_gpu(number, columns, copier)?;
        self.begin_anew()
    }

    fn due(&mut self, _wall: Duration) -> Result<Vec<Record>> {
        // Of a window that has just become full: its last batch has brought the averages to the host.
        let flow = &self.flow;
        let now = flow.samples.full && flow.step > 0 && flow.samples.due(flow.step - 1) && self.links.is_first();
        Ok(if now { output::records(flow) } else { Vec::new() })
    }

    fn checks(&mut self) -> Result<Vec<Check>> {
        let (ledger, totals) = (self.flow.ledger()?, self.flow.totals()?);
        let there = ledger.there();
        let mut checks = vec![
            Check::at_most("particles missing or too many", there.abs_diff(totals.particles) as f64, 0.0),
            Check::at_most("stuck particles", ledger.stuck as f64, 0.0),
        ];
        if ledger.collisions > 0 {
            let part = ledger.exceeded as f64 / ledger.collisions as f64;
            checks.push(Check::at_most("fraction of the collisions above (sigma g)max", part, audit::EXCEEDED_LIMIT));
        }
        if audit::closed(&self.flow.model) {
            let change = audit::energy_change(&totals, &self.start);
            checks.push(Check::at_most("relative change of the energy", change, audit::energy_limit(&ledger, &totals)));
        }
        Ok(checks)
    }

    fn save(&mut self, writer: &mut Writer) -> Result<()> {
        self.flow.save(writer)?;
        writer.f64("energy", self.start.translation + self.start.internal)?;
        // Of the last audit, which rows show until the next one.
        let Totals { particles, momentum: [x, y, z], translation, internal } = self.totals;
        writer.u64("audited", particles)?;
        writer.f64s("totals", &[x, y, z, translation, internal])?;
        let (ledger, step) = &self.last;
        writer.u64("last.step", *step)?;
        writer.f64s("last.ledger", &ledger.numbers(true))
    }

    fn restore(&mut self, reader: &Reader) -> Result<()> {
        self.flow.restore(reader)?;
        self.start = Totals { translation: reader.f64("energy")?, ..Totals::default() };
        let [x, y, z, translation, internal] = reader.f64s("totals")?[..] else {
            return Err(reader.content_error("its totals are not five numbers"));
        };
        self.totals = Totals { particles: reader.u64("audited")?, momentum: [x, y, z], translation, internal };
        self.last = (Ledger::from_numbers(&reader.f64s("last.ledger")?), reader.u64("last.step")?);
        self.look_at_the_end()
    }

    fn cost(&self) -> Cost {
        let sampled = self.flow.step > 0 && self.flow.samples.due(self.flow.step - 1);
        cost(&self.flow.model, self.totals.particles, sampled)
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
