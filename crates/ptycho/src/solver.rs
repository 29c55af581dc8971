//! The solver as the run loop sees it.

mod outside;
mod results;

use std::path::PathBuf;
use std::time::Duration;

use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::cuda::{Properties, Recipe, prepare};
use zellige_engine::device::Device;
use zellige_engine::error::{Problem, Result};
use zellige_engine::links::Division;
use zellige_engine::ops::plane::FieldCopier;
use zellige_engine::parallel::{inside, items, map, threads};
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Check, FieldOnGpu, GivenValues, Pictures, Record, Row, ValuesOnGpu};
use zellige_engine::schedule::Agenda;
use zellige_engine::sim::{Bench, Case, Clock, Cost, Ending, Environment, Look, Outcome, Plan, Solver};

use crate::config::{Config, EngineConfig};
use crate::division;
use crate::half_sets::{HalfSets, TruthComparison};
use crate::model::Model;
use crate::noise::NoiseStatistics;
use crate::output;
use crate::reconstruction::{Iteration, Reconstruction};
use crate::scan::{Beam, Truth};
use crate::share::Share;
use crate::{bench, engines, peak, plan, programs, setup, streaming};

/// Scans being reconstructed.
pub struct Ptycho {
    config: Config,
    /// The folder that paths in the input refer to.
    folder: PathBuf,
    whole: Reconstruction,
    half_sets: Option<HalfSets>,
    truths: Vec<Option<Truth>>,
    beams: Vec<Beam>,
    /// Mean errors of each iteration.
    history: Vec<[f64; 3]>,
    /// Errors of each view in each iteration, if the input asks for them.
    local: Vec<[f32; 3]>,
    live: Agenda,
    /// Errors of the last iteration that is not `waiting`.
    errors: [f64; 3],
    /// The last iteration, while its errors are on their way from the device.
    waiting: Option<Iteration>,
    /// Objects beside their truths, from the records of a moment to its checks.
    comparisons: Option<Vec<TruthComparison>>,
    /// Brightest frame, once it was asked for.
    brightest: Option<usize>,
    device: Device,
}

/// `work` with its loops on the threads of the device, where that is the CPU; on all cores beside a GPU.
pub(crate) fn on<R: Send>(device: &Device, work: impl FnOnce() -> R + Send) -> R {
    match device {
        Device::Cpu(cpu) => cpu.install(work),
        Device::Cuda(_) => work(),
    }
}

impl Ptycho {
    /// The reconstruction of all frames.
    pub fn whole(&mut self) -> &mut Reconstruction {
        &mut self.whole
    }

    /// Peak memory of the stages so far, bytes ([`crate::stages::Stages::memory_peak`]); half-scans are taken with the whole.
    pub fn memory_peak(&self) -> u64 {
        self.whole.stages.memory_peak() + self.half_sets.as_ref().map_or(0, HalfSets::memory_peak)
    }

    /// The part of the counts that the model does not explain ([`NoiseStatistics`]), of some of the frames.
    fn unexplained(&mut self) -> Result<f64> {
        let Reconstruction { model, stages, .. } = &mut self.whole;
        let (views, own) = (model.views.len(), model.own());
        let some: Vec<usize> = (0..views).step_by(views.div_ceil(LOOKED_AT).max(1)).filter(|j| own.contains(j)).collect();
        let mut found = Vec::with_capacity(some.len());
        // As many at once as there are threads: large frames take much memory.
        for some in some.chunks(threads()) {
            let frames = stages.intensities(some)?;
            found.extend(map(items(some), |i: usize, j: &usize| NoiseStatistics::of(model.moduli(*j), &frames[i])));
        }
        let mut all = NoiseStatistics::default();
        for one in model.share.gathered(found)? {
            all += one;
        }
        Ok(all.unexplained())
    }

    /// Waits for the errors of the last iteration where they are on their way.
    fn settle(&mut self) -> Result<()> {
        let Some(iteration) = self.waiting.take() else { return Ok(()) };
        let errors = self.whole.stages.begun_errors()?;
        self.take_errors(&errors, iteration)
    }

    /// Keeps the errors after an iteration, of which those of own views are given.
    fn take_errors(&mut self, errors: &[[f64; 3]], iteration: Iteration) -> Result<()> {
        self.errors = self.whole.mean_errors(errors, iteration)?;
        self.history.push(self.errors);
        if self.config.output.local_errors {
            let all = self.whole.model.share.gathered(errors.to_vec())?;
            self.local.extend(all.iter().map(|e| e.map(|v| v as f32)));
        }
        Ok(())
    }

    /// Scalars of an iteration of the last engine.
    fn row_of(&self, errors: [f64; 3]) -> Row {
        let mut row = Row::default();
        let measured = engines::measured(self.whole.last_engine());
        let names = ["fourier_error", "likelihood_error", "exit_error"];
        for (i, name) in names.into_iter().enumerate().filter(|(i, _)| measured[*i]) {
            row.push(name, "", errors[i]);
        }
        if self.config.engine.iter().any(|e| e.positions.is_some()) {
            row.push("positions_moved", "px", self.whole.moved);
        }
        row
    }
}

/// Model traffic of an iteration with numbers of `number` bytes: exit waves read and written, moduli, exit waves again for object
/// and probe.
pub fn cost(model: &Model, exits: bool, number: usize) -> Cost {
    let (pixels, modes) = ((model.views.len() * model.pixels()) as f64, model.exits() as f64);
    let bytes = 4.0 * (model.views.len() * model.counted()) as f64 + if exits { 6.0 * number as f64 * modes } else { 0.0 } * pixels;
    let transforms = 3.0 * modes;
    Cost { bytes, flops: transforms * 5.0 * pixels * (model.pixels() as f64).log2(), items: model.views.len() as f64 }
}

/// The problem, the truths of scans, their beams, notes made when they were read, and how many parts of the run share this host.
type Loaded = (Model, Vec<Option<Truth>>, Vec<Beam>, Vec<String>, usize);

fn load(config: &Config, environment: &Environment) -> Result<Loaded> {
    // Problems that no memory holds are refused before frames are read.
    let links = &environment.links;
    let parts = Share::parts_of_host(links)?;
    plan::of_input(config, environment, parts)?;
    let read = || {
        let mut scans = setup::scans_of_part(config, &environment.folder, environment.seed, links)?;
        // Memory used to read them, and the counts below, would stay with the process: arrays of megabytes each.
        peak::give_back();
        let model = setup::model_of_part(config, &mut scans, environment.seed, links)?;
        let beams = scans.iter().map(|s| s.beam).collect();
        let notes = plan::noted(&scans);
        let truths = scans.into_iter().map(|s| s.truth).collect();
        peak::give_back();
        Ok((model, truths, beams, notes, parts))
    };
    // Hundreds of loops, which a thread outside of the pool would wait for twice as long where a GPU leads the run. Parts wait for
    // each other, which no thread of a pool may do: it could be one that the other part needs.
    if links.is_alone() { inside(read) } else { read() }
}

/// The state of the loaded problem.
fn set_up(config: &Config, environment: &Environment, (model, truths, beams, _, parts): Loaded) -> Result<Ptycho> {
    let (device, seed) = (&environment.device, environment.seed);
    if let Device::Cuda(gpu) = device {
        // Those of the last engine are compiled while the first one works.
        prepare(gpu, programs::programs(config, &model, device, gpu.properties()));
    }
    let [budget, of_half] = streaming::memory_budgets(config, device, parts);
    let half_sets = if config.frc { Some(HalfSets::new(config, &model, device, seed, &of_half)?) } else { None };
    let whole = Reconstruction::within(config, model, device, seed, &budget)?;
    let live = Agenda::new(config.output.live, Clock::default());
    Ok(Ptycho {
        config: config.clone(),
        folder: environment.folder.clone(),
        whole,
        half_sets,
        truths,
        beams,
        history: Vec::new(),
        local: Vec::new(),
        live,
        errors: [0.0; 3],
        waiting: None,
        comparisons: None,
        brightest: None,
        device: device.clone(),
    })
}

impl Solver for Ptycho {
    const NAME: &'static str = "ptycho";
    const STEP: &'static str = "iteration";
    const ITEM: &'static str = "frame";

    type Config = Config;
    type Prepared = Loaded;

    fn check(config: &Config) -> Vec<Problem> {
        config.check()
    }

    fn only_in_one_part(config: &Config) -> Option<&'static str> {
        config.only_in_one_part()
    }

    fn parts_only_on_cpu(config: &Config) -> Option<&'static str> {
        config.parts_only_on_cpu()
    }

    fn may_change() -> &'static [&'static str] {
        // The permitted changes are checked when the state is restored.
        &["engine"]
    }

    fn plan(config: &Config, environment: &Environment) -> Result<Plan> {
        on(&environment.device, || plan::of_input(config, environment, 1))
    }

    fn divide(config: &Config, environment: &Environment, plan: &Plan, parts: usize) -> Result<Division> {
        let mut scans = setup::planned(config, &environment.folder, environment.seed)?;
        let model = on(&environment.device, || setup::outline(config, &mut scans, &environment.links))?;
        division::of(config, &model, &environment.device, plan, parts)
    }

    fn prepare(config: &Config, environment: &Environment) -> Result<Loaded> {
        on(&environment.device, || load(config, environment))
    }

    fn plan_prepared(loaded: &Loaded, config: &Config, environment: &Environment) -> Result<Plan> {
        let (model, truths, _, notes, parts) = loaded;
        let read = plan::truths_read(config, truths.iter().map(Option::as_ref));
        on(&environment.device, || plan::of_model(config, environment, (model, *parts), notes, &read))
    }

    fn setup_prepared(loaded: Loaded, config: &Config, environment: &Environment) -> Result<Self> {
        on(&environment.device, || set_up(config, environment, loaded))
    }

    fn programs(config: &Config, environment: &Environment, gpu: &Properties) -> Result<Vec<Recipe>> {
        let (model, ..) = load(config, environment)?;
        Ok(programs::programs(config, &model, &environment.device, gpu))
    }

    fn step(&mut self, profiler: &mut Profiler) -> Result<()> {
        self.comparisons = None;
        self.whole.advance_open(None, profiler)?;
        if let Some(half_sets) = &mut self.half_sets {
            profiler.stage_with("half-sets", Cost::default(), |profiler| half_sets.advance(profiler))?;
        }
        // Begun before those of the iteration before are waited for, and added up by all parts: the device has work meanwhile.
        let begun = self.whole.begin_errors()?;
        self.settle()?;
        let iteration = self.whole.iteration();
        if begun {
            self.waiting = Some(iteration);
        } else {
            let errors = self.whole.stages.errors()?;
            self.take_errors(&errors, iteration)?;
        }
        self.whole.stages.end_overlap()
    }

    fn row_can_wait(&self) -> bool {
        self.waiting.is_some()
    }

    fn row_before(&mut self) -> Result<Row> {
        let last = usize::from(self.waiting.is_none());
        let errors = self.history.iter().rev().nth(last).copied().unwrap_or_default();
        Ok(self.row_of(errors))
    }

    fn outcome(&self) -> Option<Outcome> {
        if !self.whole.finished() {
            return None;
        }
        let [fourier, likelihood, _] = self.errors;
        // Zero says that the engine has no such error: ML keeps to the likelihood, others may leave it out.
        let known = [("likelihood", likelihood), ("Fourier", fourier)].into_iter().filter(|(_, error)| *error > 0.0);
        let known: Vec<String> = known.map(|(name, error)| format!("{name} error {}", plan::figures(error))).collect();
        let message = format!("{}; {}", plan::counted(self.whole.done as usize, "iteration"), known.join(", "));
        let message = [vec![message], self.whole.resting(), self.whole.affine()].concat().join("; ");
        Some(Outcome { ending: Ending::Finished, status: "finished", message })
    }

    fn clock(&self) -> Clock {
        Clock { step: self.whole.done, time: None }
    }

    fn progress(&self) -> f64 {
        self.whole.passed() as f64 / self.config.iterations().max(1) as f64
    }

    fn row(&mut self) -> Result<Row> {
        self.settle()?;
        Ok(self.row_of(self.errors))
    }

    fn records(&mut self) -> Result<Vec<Record>> {
        let device = self.device.clone();
        on(&device, || self.all_records())
    }

    fn pictures(&mut self, _look: Look) -> Result<Pictures> {
        if let Some(state) = self.whole.stages.begin_state()? {
            return self.pictures_of(state);
        }
        let device = self.device.clone();
        let (first, frame) = (self.whole.model.share.links().is_first(), self.config.output.frame);
        on(&device, || self.with_results(frame, |results| if first { output::pictures(results) } else { Vec::new() })).map(Pictures::from)
    }

    fn section(config: &Config) -> Option<&'static str> {
        (config.engine.len() > 1).then_some("engine")
    }

    fn next_section(&mut self) -> Result<bool> {
        self.settle()?;
        if self.whole.finished() {
            return Ok(false);
        }
        let mut profiler = Profiler::off();
        self.whole.end_engine(&mut profiler)?;
        if let Some(half_sets) = &mut self.half_sets {
            half_sets.end_engine(&mut profiler)?;
        }
        Ok(true)
    }

    fn field_on_gpu(&mut self, name: &str, copier: &FieldCopier) -> Result<FieldOnGpu> {
        self.wave_on_gpu(name, copier)
    }

    fn set_field_on_gpu(&mut self, name: &str, shape: &[usize], values: &ValuesOnGpu, copier: &FieldCopier) -> Result<()> {
        self.set_wave_on_gpu(name, shape, values, copier)
    }

    fn set_field(&mut self, name: &str, shape: &[usize], values: GivenValues) -> Result<()> {
        let device = self.device.clone();
        on(&device, || self.set_wave(name, shape, values))
    }

    fn due(&mut self, wall: Duration) -> Result<Vec<Record>> {
        let clock = self.clock();
        if self.live.due(clock, wall).is_empty() {
            return Ok(Vec::new());
        }
        let device = self.device.clone();
        on(&device, || Ok(self.with_results(None, output::live)?.into_iter().collect()))
    }

    fn checks(&mut self) -> Result<Vec<Check>> {
        let device = self.device.clone();
        on(&device, || self.all_checks())
    }

    fn save(&mut self, writer: &mut Writer) -> Result<()> {
        self.settle()?;
        for (name, arrays) in self.config.callers_arrays() {
            writer.f64s(&name, &arrays.account())?;
        }
        writer.json("engines", &self.config.engine)?;
        self.whole.save("whole.", writer)?;
        if let Some(half_sets) = &mut self.half_sets {
            half_sets.save(writer)?;
        }
        writer.f64s("errors", &self.errors)?;
        writer.f32s("local", self.local.as_flattened())?;
        writer.f64s("history", self.history.as_flattened())
    }

    fn restore(&mut self, reader: &Reader) -> Result<()> {
        for (name, arrays) in self.config.callers_arrays() {
            if let Some(how) = arrays.difference(&reader.f64s(&name)?) {
                let hint = "a run goes on with the arrays that it began with";
                return Err(reader.mismatch(format!("the checkpoint belongs to other arrays: {how}; {hint}")));
            }
        }
        let before: Vec<EngineConfig> = reader.json("engines")?;
        self.config.goes_on(&before).map_err(|message| reader.mismatch(message))?;
        self.settle()?;
        self.whole.restore("whole.", reader, &before)?;
        if let Some(half_sets) = &mut self.half_sets {
            half_sets.restore(reader, &before)?;
        }
        self.comparisons = None;
        reader.f64s_into("errors", &mut self.errors)?;
        self.history = reader.f64s("history")?.as_chunks::<3>().0.to_vec();
        // Of a checkpoint without them too.
        self.local = if reader.has("local") { reader.f32s("local")?.as_chunks::<3>().0.to_vec() } else { Vec::new() };
        self.live = Agenda::new(self.config.output.live, self.clock());
        Ok(())
    }

    fn cost(&self) -> Cost {
        let number = self.config.memory_budget(1.0).demand.number();
        cost(&self.whole.model, self.whole.engine().name.keeps_exits(), number)
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

/// Frames whose model is examined at the end, evenly among all: a transform each.
pub(crate) const LOOKED_AT: usize = 32;

/// A model that misses more of the squared counts beyond noise explains something else: intensities a third off in the root mean
/// square.
const MISSED_LIMIT: f64 = 0.1;

/// Mixed states of the same modes with 85, 7, 6 and 1 % of the power in place of 58, 19, 19 and 5 % lose 0.10 of their fidelity.
const MIXED_LIMIT: f64 = 0.05;

/// An object that is farther than this from a known truth is another one: noise and few iterations stay below.
const TRUTH_LIMIT: f64 = 0.5;

#[cfg(test)]
mod tests;
