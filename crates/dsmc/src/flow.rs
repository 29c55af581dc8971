//! A gas under way: the stages with their averages. What the solver, the bench and the tests drive.

use std::path::Path;
use std::sync::Arc;

use zellige_engine::device::{Cpu, Device};
use zellige_engine::error::Result;
use zellige_engine::links::Links;
use zellige_engine::profile::Profiler;

use crate::config::Config;
use crate::grid::Rectangle;
use crate::model::Model;
use crate::sampling::{Samples, VALUES, width};
use crate::setup::Initial;
use crate::stages::{self, FetchCells, Ledger, Stages, Totals};
use crate::start::loading;
use crate::step;

/// A gas under way.
pub struct Flow {
    /// Model that it is made of.
    pub model: Arc<Model>,
    /// Its state.
    pub stages: Box<dyn Stages>,
    /// Its averages.
    pub samples: Samples,
    /// Finished steps.
    pub step: u64,
    cpu: Cpu,
    pub(crate) links: Links,
    /// Threads that work up averages for a look, once there was one.
    watchers: Option<Cpu>,
}

/// A model and its averages, which threads may share; the state is of one thread.
#[derive(Debug, Clone, Copy)]
pub struct Averaged<'a> {
    pub(crate) model: &'a Model,
    pub(crate) samples: &'a Samples,
}

impl<'a> From<&'a Flow> for Averaged<'a> {
    fn from(flow: &'a Flow) -> Self {
        Self { model: &flow.model, samples: &flow.samples }
    }
}

/// Averages of a moment that are on their way from a device, and what records are made of them with.
pub(crate) struct AveragesToCome {
    model: Arc<Model>,
    samples: Samples,
    fetch: FetchCells,
    cpu: Cpu,
}

impl AveragesToCome {
    /// Waits for them, and does `work` with them.
    pub(crate) fn wait<R: Send>(self, work: impl FnOnce(Averaged<'_>) -> R + Send) -> Result<R> {
        let Self { model, mut samples, fetch, cpu } = self;
        cpu.install(|| {
            samples.fill(&model, fetch)?;
            Ok(work(Averaged { model: &model, samples: &samples }))
        })
    }
}

impl Flow {
    /// Allocates and fills the domain. Files of the input are looked for in `folder`.
    pub fn new(config: &Config, folder: &Path, seed: u64, device: &Device) -> Result<Self> {
        Self::of(Model::new(config, folder, seed)?, config, device, &Links::default())
    }

    /// Allocates and fills this part of the domain of the model of an input.
    pub fn of(model: Model, config: &Config, device: &Device, links: &Links) -> Result<Self> {
        // Loading and averages are work of the CPU on any device.
        let cpu = match device {
            Device::Cpu(cpu) => cpu.clone(),
            Device::Cuda(_) => Cpu::new(0)?,
        };
        let shares = if matches!(device, Device::Cuda(_)) { links.size() as u64 } else { 1 };
        device.must_hold(memory(&model, device) / shares, "particles and averages of the gas")?;
        let initial = Initial::new(config)?;
        let mut stages = match device {
            Device::Cpu(cpu) => stages::cpu::new(&model, cpu, links),
            Device::Cuda(cuda) => stages::cuda::of_part(&model, cuda, links)?,
        };
        cpu.install(|| match stages.order() {
            Some(cells) => {
                let all = loading::fill_cells(&model, &|position| initial.at(position), cells.len(), |k| cells[k] as usize);
                stages.insert(&all)
            }
            None => {
                let share = stages.share();
                loading::fill(&model, &|position| initial.at(position), share.as_deref(), |piece| stages.insert(&piece))
            }
        })?;
        let samples = Samples::new(&model, config, links, stages.areas());
        Ok(Self { model: Arc::new(model), stages, samples, step: 0, cpu, links: links.clone(), watchers: None })
    }

    /// One step.
    pub fn advance(&mut self, profiler: &mut Profiler) -> Result<()> {
        let sample = self.samples.due(self.step);
        step::step(&mut *self.stages, self.step, sample, profiler)?;
        self.step += 1;
        self.samples.follow(&self.model, self.stages.areas())?;
        if sample {
            let Self { model, stages, samples, cpu, step, .. } = self;
            if samples.count() {
                let cost = zellige_engine::sim::Cost::default();
                profiler.stage("batch", cost, || cpu.install(|| samples.after(model, &mut **stages, *step)))?;
            }
        }
        Ok(())
    }

    /// Brings averages that a device keeps to the host: before they are looked at.
    pub fn fetch(&mut self) -> Result<()> {
        let Self { model, stages, samples, cpu, .. } = self;
        cpu.install(|| samples.fetch(model, &mut **stages))
    }

    /// Begins to bring averages that a device keeps to the host; `None` where they are there, or in several parts. Before the first
    /// batch it only has memory for them made ready.
    pub(crate) fn begin_fetch(&mut self) -> Result<Option<AveragesToCome>> {
        let Self { model, stages, samples, watchers, .. } = self;
        let Some((samples, fetch)) = samples.begin_fetch(model, &mut **stages)? else { return Ok(None) };
        // Threads of their own, half as many as there are: those of the run are free for its steps.
        let cpu = match watchers {
            Some(cpu) => cpu,
            none => none.insert(Cpu::new((self.cpu.threads() / 2).max(1))?),
        };
        Ok(Some(AveragesToCome { model: model.clone(), samples, fetch, cpu: cpu.clone() }))
    }

    /// Physical time, s.
    pub fn time(&self) -> f64 {
        self.step as f64 * self.model.dt
    }

    /// Ledger of the particles and energy in and out.
    pub fn ledger(&mut self) -> Result<Ledger> {
        self.stages.ledger()
    }

    /// Cells of this part of the run.
    pub(crate) fn own_area(&self) -> Rectangle {
        let all = Rectangle { lower: [0; 2], upper: self.model.grid.cells };
        self.stages.areas().get(self.links.rank()).copied().unwrap_or(all)
    }

    /// Totals over all particles.
    pub fn totals(&mut self) -> Result<Totals> {
        self.stages.totals()
    }

    /// The values of the gas as a whole, `[cell][VALUES]`.
    pub fn values(&self) -> Vec<f64> {
        let width = width(&self.model);
        let all = self.all_values();
        if width == VALUES { all.to_vec() } else { all.chunks_exact(width).flat_map(|v| &v[..VALUES]).copied().collect() }
    }

    /// All values, `[cell][width]`: those of species of a mixture too ([`width`]).
    pub fn all_values(&self) -> &[f64] {
        self.samples.values()
    }

    /// Does `work` with the averages on all threads that the host has for this run.
    pub(crate) fn on_host<R: Send>(&self, work: impl FnOnce(Averaged<'_>) -> R + Send) -> R {
        let averaged = Averaged::from(self);
        self.cpu.install(|| work(averaged))
    }
}

/// Bytes of the program itself.
const PROGRAM: f64 = 16e6;

/// Memory of a run on its device. On the CPU the most that there is at a time, which is when the results are written:
/// particles with an eighth of spare room and another of what is on its way between tiles, sums of the stages, of the last batch
/// and of all, the spread of values, and all fields with their errors, one of them once more when it is written. What threads
/// have loaded particles in stays theirs. Not in it: a checkpoint, 22 bytes a particle and more, and VTK's cells.
pub fn memory(model: &Model, device: &Device) -> u64 {
    if let Device::Cuda(_) = device {
        return stages::cuda::memory(model);
    }
    let c = &model.collisions;
    let four = |column: bool| if column { 4.0 } else { 0.0 };
    let particle = 22.0 + four(c.rotation) + four(c.vibration) + four(c.partner.tagged());
    let (cells, species) = (model.grid.len() as f64, model.species.len() as f64);
    let (width, lines) = (width(model) as f64, if species > 1.0 { 1.0 + species } else { 1.0 });
    let sums = species * (12.0 * c.kept() as f64 + 2.0 * 8.0 * c.sums() as f64) + 8.0 * (2.0 * width + lines);
    let written = 2.0 * 8.0 * crate::output::fields(model) as f64 + 8.0;
    let of_cells = cells * (sums + written + 6.0 * species * (species + 1.0) + 4.0);
    let loading = if device.threads() > 1 { model.expected.min(loading::PIECE) * (particle + 4.0) } else { 0.0 };
    (PROGRAM + model.expected * particle * 5.0 / 4.0 + of_cells + loading) as u64
}
