//! A plasma under way: the stages with what is put in at the start, at the window and by antennas. What the solver, the bench
//! and the tests drive.

mod finite;
mod lasers;
mod outside;
mod saved;
mod window;

use std::path::Path;

use zellige_engine::cuda::{Properties, Recipe, RepeatedLaunches, prepare};
use zellige_engine::device::Device;
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::links::Links;
use zellige_engine::profile::Profiler;
use zellige_engine::times::{self, Phase};

use crate::config::Config;
use crate::config::laser::LaserSource;
use crate::diagnostics::balance::EnergyAccount;
use crate::gauss::Gauss;
use crate::grid::FieldSide;
use crate::laser::Antenna;
use crate::loading::{Source, back_push};
use crate::particles::Particles;
use crate::setup::{Load, Model};
use crate::stages::{self, Component, Energies, Ledger, Setup, Stages};
use crate::step;

use self::lasers::{antennas, initial_fields};
use self::window::InitialFields;
pub(crate) use self::window::left_behind;

/// A plasma under way.
pub struct Plasma {
    /// Model that it is made of.
    pub model: Model,
    /// Set-up of its backend.
    pub setup: Setup,
    /// Its state.
    pub stages: Box<dyn Stages>,
    /// Finished steps.
    pub step: u64,
    /// Cells that the window has gone.
    pub moved: u64,
    /// Residual `div E - rho` of the start.
    pub gauss: Gauss,
    /// Mean charge that a start by Poisson's equation took off, `e n_0`: an immobile background where no conductor holds it.
    pub background: f64,
    device: Device,
    links: Links,
    antennas: Vec<Antenna>,
    front: InitialFields,
    /// Ledgers of all species when the run began.
    start: Vec<Ledger>,
    accounts: EnergyAccounts,
    /// Particles of each species that were added from outside between steps, less those that were taken away.
    pub(crate) added: Vec<i64>,
    /// J is that of the last step: not where a checkpoint was without it.
    has_current: bool,
    /// Energy that the antennas radiate where nothing comes back to them.
    radiated: f64,
    /// A step is so short on a GPU that marks of time between its stages would be a part of it, and its launches take longer than
    /// what they do.
    small: bool,
    /// The launches of such steps: arrays change positions from step to step, so each comes again with the step after the next.
    repeated: RepeatedLaunches,
}

/// Particles up to which that is so, and steps of which one has its stages in the profile all the same.
const SMALL: usize = 1 << 20;
const APART: u64 = 64;

/// Accounting of a run's energy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnergyAccounts {
    /// Only particles enter or leave.
    Closed,
    /// Fields come and go; the work that they do on particles is added up.
    Work,
    /// Not at all: external electric fields work too.
    Open,
}

/// The stages of a part of a run on its device.
pub fn open(setup: &Setup, device: &Device, links: &Links) -> Result<Box<dyn Stages>> {
    match device {
        Device::Cpu(cpu) => stages::cpu::of_part(setup, cpu, links),
        Device::Cuda(cuda) => stages::cuda::of_part(setup, cuda, links),
    }
}

/// Runs `work` in the pool of a CPU, or where it stands.
pub(crate) fn on_host<R: Send>(device: &Device, work: impl FnOnce() -> R + Send) -> R {
    match device {
        Device::Cpu(cpu) => cpu.install(work),
        Device::Cuda(_) => work(),
    }
}

/// Why a GPU cannot make the particles of `load` by itself; nothing where it can.
pub(crate) fn obstacle(config: &Config, setup: &Setup, load: &Load) -> Option<&'static str> {
    let initial = config.initial.fields.is_some() || config.laser.iter().any(|l| l.source == LaserSource::Box);
    let acts = !config.initial.poisson && (initial || setup.external.iter().any(|f| !f.is_empty()));
    load.obstacle().or((acts && load.species.mobile).then_some("fields at the start take their momenta half a step back"))
}

/// Programs by which a GPU makes the particles of the species that it can make.
pub(crate) fn makers(config: &Config, model: &Model, setup: &Setup, gpu: &Properties) -> Vec<Recipe> {
    stages::cuda::makers(setup, gpu, &|s| obstacle(config, setup, &model.loads[s]).is_none())
}

impl Plasma {
    /// Does work for diagnostics on the host, for which it waits: what a device still has to do of the steps is counted as theirs.
    pub(crate) fn after_steps<R>(&mut self, work: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let device = self.device.clone();
        times::after_steps(&device, Phase::Diagnostics, || work(self))
    }

    /// Allocates, puts everything in, and takes the momenta half a step back. Files of the input are relative to the process's
    /// folder.
    pub fn new(config: &Config, seed: u64, device: &Device) -> Result<Self> {
        Self::of(Model::new(config, Path::new(""), seed)?, config, device, &Links::default())
    }

    /// Allocates and fills the box of the model of an input, or the share of a part in it.
    pub fn of(model: Model, config: &Config, device: &Device, links: &Links) -> Result<Self> {
        let setup = model.setup(config)?;
        let share = stages::memory(&setup, device) / links.size() as u64;
        device.must_hold(share, "particles and fields of the plasma")?;
        // Tiles of parts are their own.
        if let Device::Cuda(cuda) = device
            && links.is_alone()
        {
            prepare(cuda, makers(config, &model, &setup, cuda.properties()));
        }
        let mut stages = open(&setup, device, links)?;
        let fields = initial_fields(config, &model)?;
        for (c, values) in fields.iter().enumerate().filter(|(_, v)| !v.is_empty()) {
            stages.set_component(Component::ALL[c], values)?;
        }
        let antennas = antennas(config, &model)?.into_iter().map(|(_, antenna)| antenna).collect();
        let front = InitialFields::new(config, &model, &setup)?;
        let (gauss, device, start) = (Gauss::new(&setup), device.clone(), Vec::new());
        let added = vec![0; setup.species.len()];
        let mut plasma = Self {
            model,
            setup,
            stages,
            step: 0,
            moved: 0,
            gauss,
            background: 0.0,
            device,
            links: links.clone(),
            antennas,
            front,
            start,
            accounts: EnergyAccounts::Open,
            added,
            radiated: 0.0,
            small: false,
            has_current: true,
            repeated: RepeatedLaunches::default(),
        };
        // Exchanges between parts are no launches.
        plasma.small = links.is_alone() && plasma.setup.expected.iter().sum::<usize>() <= SMALL;
        let total_field = if config.initial.poisson { Default::default() } else { plasma.total_field(|c| !fields[c].is_empty())? };
        for s in 0..plasma.model.loads.len() {
            let Self { model, setup, stages, .. } = &mut plasma;
            stages.fill(s, &Source::new(model, setup, s, 0, &total_field))?;
        }
        if config.initial.poisson {
            plasma.neutralise()?;
        }
        plasma.start = plasma.stages.ledger()?;
        let external = plasma.setup.external[..3].iter().any(|e| !e.is_empty());
        plasma.accounts = match plasma.closed() {
            _ if external => EnergyAccounts::Open,
            true => EnergyAccounts::Closed,
            false => {
                plasma.stages.count_work()?;
                EnergyAccounts::Work
            }
        };
        if plasma.start.iter().map(|l| l.injected).sum::<u64>() == 0 && !plasma.model.loads.is_empty() && plasma.model.window.is_none() {
            let problem = Problem::new("pic.species", "no particle was placed in the box");
            return Err(Error::input("the input", problem.hint("a larger `particles_per_cell`, or a higher density")));
        }
        plasma.check_charge()?;
        Ok(plasma)
    }

    /// E and B that particles feel, guards included; empty components are zero, as those of the plasma itself are that are not
    /// `there`.
    fn total_field(&mut self, there: impl Fn(usize) -> bool) -> Result<[Vec<f64>; 6]> {
        let mut total_field = self.setup.external.clone();
        for (c, sum) in total_field.iter_mut().enumerate().filter(|(c, _)| there(*c)) {
            let own = self.stages.component(Component::ALL[c])?;
            if own.iter().all(|v| *v == 0.0) {
                continue;
            }
            if sum.is_empty() {
                *sum = own;
            } else {
                sum.iter_mut().zip(own).for_each(|(sum, v)| *sum += v);
            }
        }
        Ok(total_field)
    }

    /// `div E = rho`: adds the field of the charge present, then takes the momenta half a step back in it.
    fn neutralise(&mut self) -> Result<()> {
        let mut rho = vec![0.0; self.setup.grid.len()];
        let smoothed = self.gauss.smoothed();
        for s in 0..self.setup.species.len() {
            for (sum, r) in rho.iter_mut().zip(self.stages.charge(s, smoothed)?) {
                *sum += r;
            }
        }
        let start = crate::initial::field_of(&self.setup.grid, &rho, &self.device)?;
        self.background = start.background;
        for (c, e) in start.e.into_iter().enumerate() {
            let mut sum = self.stages.component(Component::ALL[c])?;
            sum.iter_mut().zip(e).for_each(|(sum, e)| *sum += e);
            self.stages.set_component(Component::ALL[c], &sum)?;
        }
        let total_field = self.total_field(|_| true)?;
        for s in
            (0..self.setup.species.len()).filter(|s| !self.model.loads[*s].listed.as_ref().is_some_and(|l| l.behind)).collect::<Vec<_>>()
        {
            let Self { setup, device, stages, .. } = self;
            let push = |particles: &mut Particles| {
                on_host(device, || back_push(&setup.grid, setup.order, &setup.species[s], &total_field, particles));
            };
            stages.revise(s, &push)?;
        }
        Ok(())
    }

    /// One step; the window follows.
    pub fn advance(&mut self, measure: bool, profiler: &mut Profiler) -> Result<()> {
        let sheets = self.sheets();
        for sheet in sheets.iter().filter(|s| s.axis == 0) {
            self.gauss.leave_out(sheet.node);
            // Half of `K E` with `E = -K/2` of its own, `K = h J`.
            let grid = &self.setup.grid;
            self.radiated += 0.5 * grid.dt * grid.h[0] * grid.cell_volume() * sheet.values.iter().map(|j| j * j).sum::<f64>();
        }
        let (stages, species, n) = (self.stages.as_mut(), &self.setup.species, self.step);
        match &self.device {
            Device::Cuda(cuda) if self.small && !(profiler.is_on() && n % APART == 1) => {
                let (cost, off) =
                    (crate::solver::cost(&self.setup, self.setup.expected.iter().sum::<usize>() as u64), &mut Profiler::off());
                let (name, repeated) = (if measure { "measured step, as one" } else { "step, as one" }, &mut self.repeated);
                let launch = || step::step(stages, species, &sheets, n, measure, off);
                profiler.stage_on(cuda, name, cost, || cuda.repeat(repeated, launch))?;
            }
            _ => step::step(stages, species, &sheets, n, measure, profiler)?,
        }
        self.step += 1;
        self.has_current = true;
        let due = self.model.window.map_or(0, |start| self.model.shifts(start, self.step));
        while self.moved < due {
            self.shift(profiler)?;
        }
        Ok(())
    }

    /// Time, `1/w_n`.
    pub fn time(&self) -> f64 {
        self.step as f64 * self.setup.grid.dt
    }

    /// Energies of the last measured step.
    pub fn energies(&mut self) -> Result<Energies> {
        self.stages.energies()
    }

    /// Particles and energy in and out since the start, summed over the species, and the work and radiation of the fields.
    pub fn account(&mut self) -> Result<EnergyAccount> {
        let mut sum = Ledger::default();
        for (now, start) in self.stages.ledger()?.iter().zip(&self.start) {
            sum.injected += now.injected;
            sum.removed += now.removed;
            sum.energy_in += now.energy_in - start.energy_in;
            sum.energy_out += now.energy_out - start.energy_out;
            sum.charge_out += now.charge_out - start.charge_out;
        }
        Ok(EnergyAccount { ledger: sum, work: self.stages.work()?, radiated: self.radiated })
    }

    /// `max |div E - rho|` against the start, in `e n_0`.
    ///
    /// # Errors
    /// It is no number.
    pub fn check_charge(&mut self) -> Result<f64> {
        let found = self.gauss.update(self.stages.as_mut(), self.step, self.moved)?;
        if found.is_finite() { Ok(found) } else { Err(self.broken_down("div E - rho".into(), &found.to_string())) }
    }

    /// Accounting of the energy.
    pub fn accounts(&self) -> EnergyAccounts {
        self.accounts
    }

    /// Probable cause of energy that grew without bound.
    pub fn cause(&self) -> String {
        crate::stability::cause(&self.model)
    }

    /// True if energy can only change form: no window, no antenna, no layer, no external electric field.
    pub fn closed(&self) -> bool {
        let layer = self.setup.grid.fields.iter().flatten().any(|s| *s == FieldSide::Absorbing);
        self.model.window.is_none() && self.antennas.is_empty() && !layer && self.setup.external[..3].iter().all(Vec::is_empty)
    }

    /// True if a component is known: J is not between a checkpoint without it and the next step.
    pub fn knows(&self, component: Component) -> bool {
        self.has_current || !component.is_current()
    }

    /// Links to the other parts of the run.
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Lower corner of the box in x and y, in the input's units: the window has moved it.
    pub fn corner(&self) -> [f64; 2] {
        self.model.position(self.moved as f64, 0.0)
    }

    /// Position of the corner of the box and length of a cell, in the input's units, along a column of particles that is a
    /// position.
    pub fn cells_to_place(&self, column: usize) -> [f64; 2] {
        let [from, next] = [0.0, 1.0].map(|k| self.model.position(self.moved as f64 + k, k));
        if column < 2 { [from[column], next[column] - from[column]] } else { [0.0; 2] }
    }
}
