//! Diagnostics of a running plasma: energies, modes, spectra, tracks of particles; and the output that falls due.

pub mod balance;
pub mod fit;
pub mod histogram;
pub mod mode;
pub mod series;
pub mod spectrum;
pub mod tracks;

use std::collections::BTreeSet;
use std::time::Duration;

use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::error::Result;
use zellige_engine::record::{Pictures, Record, Row};
use zellige_engine::schedule::{Agenda, Schedule};
use zellige_engine::sim::{Clock, Look};

use crate::config::Config;
use crate::config::diagnostics::{BinConfig, FieldsConfig, PhaseSpaceConfig};
use crate::grid::Grid;
use crate::output;
use crate::plasma::{EnergyAccounts, Plasma};
use crate::stages::Component;

use balance::EnergyAccount;
use mode::Mode;
use series::Series;
use spectrum::Spectrum;
use tracks::Tracks;

/// A component as a picture writes it: `E_x`.
fn symbol(component: &str) -> String {
    let (field, axis) = component.split_at(1);
    format!("{}_{axis}", field.to_uppercase())
}

/// Samples a component: puts it aside on the device, or gives all that was put into `list` and it itself to `take`.
fn sampled(plasma: &mut Plasma, component: Component, list: usize, mut take: impl FnMut(&Grid, &[f64])) -> Result<()> {
    if plasma.stages.keep(list, component)? {
        return Ok(());
    }
    settled(plasma, list, &mut take)?;
    if !plasma.stages.keep(list, component)? {
        take(&plasma.setup.grid, &plasma.stages.component(component)?);
    }
    Ok(())
}

/// Gives all that was put into `list` to `take`.
fn settled(plasma: &mut Plasma, list: usize, mut take: impl FnMut(&Grid, &[f64])) -> Result<()> {
    plasma.stages.kept(list)?.iter().for_each(|values| take(&plasma.setup.grid, values));
    Ok(())
}

/// Measurements of energies in a long run where nothing is said, the steps between them in a shorter one, and their number in
/// one of a few steps. A measured step takes a fifth longer on a GPU; a plasma period has about ninety steps.
const MEASUREMENTS: u64 = 250;
const MEASURED_STEP: u64 = 4;
const FEW_MEASUREMENTS: u64 = 10;
/// Looks at `div E - rho` likewise, and least steps between them: a look takes about as long as a few steps.
const CHECKS_PER_COLUMN: u64 = 20;
const LOOK_STEPS: u64 = 50;

/// Steps between measurements of energies in a run of so many, where nothing is said.
fn energies_every(steps: u64) -> u64 {
    steps.div_ceil(FEW_MEASUREMENTS).min(MEASURED_STEP).max(steps.div_ceil(MEASUREMENTS))
}

/// A record that is written at times, with its clockwork.
struct ScheduledRecord<T> {
    what: T,
    every: Option<Schedule>,
    agenda: Agenda,
}

impl<T> ScheduledRecord<T> {
    fn new(what: T, every: Option<Schedule>) -> Self {
        Self { what, every, agenda: Agenda::new(every, Clock::default()) }
    }

    fn go_on(&mut self, clock: Clock) {
        self.agenda = Agenda::new(self.every, clock);
    }

    fn due(&mut self, clock: Clock, wall: Duration) -> bool {
        !self.agenda.due(clock, wall).is_empty()
    }
}

/// The diagnostics of a run.
pub struct Diagnostics {
    /// Energies, momenta and counts over time.
    pub series: Series,
    /// Fourier modes.
    pub modes: Vec<Mode>,
    /// Spectra.
    pub spectra: Vec<Spectrum>,
    /// Courses.
    pub tracks: Vec<Tracks>,
    fields: Vec<ScheduledRecord<FieldsConfig>>,
    /// True if fields were named: then zero ones are written too.
    named: bool,
    phase_spaces: Vec<ScheduledRecord<PhaseSpaceConfig>>,
    particles: Vec<ScheduledRecord<crate::config::diagnostics::ParticlesConfig>>,
    measure_every: u64,
    look_every: u64,
}

impl Diagnostics {
    /// As the input has them, at the start of a run.
    pub fn new(config: &Config, plasma: &mut Plasma) -> Result<Self> {
        let d = &config.diagnostics;
        let everything = || FieldsConfig { what: ["ex", "ey", "ez", "bx", "by", "bz", "charge"].map(String::from).to_vec(), every: None };
        let steps = plasma.model.steps;
        let mut all = Self {
            series: Series::new(config, plasma),
            modes: d.mode.iter().enumerate().map(|(i, m)| Mode::new(config, i, m)).collect::<Result<_>>()?,
            spectra: d.spectrum.iter().map(|s| Spectrum::new(s.clone())).collect(),
            tracks: Vec::new(),
            fields: d
                .fields
                .clone()
                .unwrap_or_else(|| vec![everything()])
                .into_iter()
                .map(|f| ScheduledRecord::new(f.clone(), f.every))
                .collect(),
            named: d.fields.is_some(),
            phase_spaces: d
                .phase_space
                .clone()
                .unwrap_or_else(|| default_phase_spaces(config))
                .into_iter()
                .map(|p| ScheduledRecord::new(p.clone(), p.every))
                .collect(),
            particles: d.particles.iter().map(|p| ScheduledRecord::new(p.clone(), p.every)).collect(),
            measure_every: d.energies_every.unwrap_or_else(|| energies_every(steps)).max(1),
            look_every: d.charge_every.unwrap_or_else(|| steps.div_ceil(CHECKS_PER_COLUMN).max(LOOK_STEPS)).max(1),
        };
        for t in &d.tracks {
            all.tracks.push(Tracks::new(config, t.clone(), plasma)?);
        }
        if plasma.model.window.is_some() {
            all.look_every = all.look_every.min(plasma.gauss.window_steps());
        }
        all.sample(plasma)?;
        Ok(all)
    }

    /// True if the next step has to sum energies.
    pub fn measures(&self, plasma: &Plasma) -> bool {
        plasma.step.is_multiple_of(self.measure_every) || plasma.step + 1 == plasma.model.steps
    }

    /// After a step: takes what it measured, with the account that it began with, and what is due to be sampled.
    pub fn after_step(&mut self, plasma: &mut Plasma, measured: Option<EnergyAccount>) -> Result<()> {
        if let Some(account) = measured {
            // Energies belong to the time at which the step began.
            self.series.push(plasma, plasma.step - 1, &account)?;
        }
        if plasma.step.is_multiple_of(self.look_every) || plasma.step == plasma.model.steps {
            self.series.charge_error = self.series.charge_error.max(plasma.check_charge()?);
        }
        self.sample(plasma)
    }

    fn sample(&mut self, plasma: &mut Plasma) -> Result<()> {
        let step = plasma.step;
        let modes = self.modes.len();
        for (k, mode) in self.modes.iter_mut().enumerate().filter(|(_, m)| step.is_multiple_of(m.config.every)) {
            mode.sample(plasma, k)?;
        }
        let due = |s: &Spectrum| s.config.every.is_some_and(|n| step.is_multiple_of(n));
        for (k, spectrum) in self.spectra.iter_mut().enumerate().filter(|(_, s)| due(s)) {
            spectrum.sample(plasma, modes + k)?;
        }
        for tracks in self.tracks.iter_mut().filter(|t| step.is_multiple_of(t.config.every)) {
            tracks.sample(plasma)?;
        }
        if step == plasma.model.steps { self.settle(plasma) } else { Ok(()) }
    }

    /// Adds the rates and frequencies of modes whose theory is known to a row, 0 before there is one.
    pub fn figures(&mut self, plasma: &mut Plasma, row: &mut Row) -> Result<()> {
        let names = mode::columns(self.modes.iter().map(|m| &m.config));
        for (k, (mode, name)) in self.modes.iter_mut().zip(names).enumerate() {
            if let Some(name) = name {
                row.push(name, "", mode.figure_so_far(plasma, k)?);
            }
        }
        Ok(())
    }

    /// Takes what samples have left on the device.
    pub fn settle(&mut self, plasma: &mut Plasma) -> Result<()> {
        let modes = self.modes.len();
        self.modes.iter_mut().enumerate().try_for_each(|(k, mode)| mode.settle(plasma, k))?;
        self.spectra.iter_mut().enumerate().try_for_each(|(k, spectrum)| spectrum.settle(plasma, modes + k))
    }

    /// Records whose schedules fall due now.
    pub fn due(&mut self, config: &Config, plasma: &mut Plasma, clock: Clock, wall: Duration) -> Result<Vec<Record>> {
        let mut records = Pictures::default();
        let due: Vec<_> = self.fields.iter_mut().filter_map(|f| f.due(clock, wall).then_some(&f.what)).collect();
        let with_fields = !due.is_empty();
        output::fields(config, plasma, &quantities(due), self.named, true, &mut records)?;
        for p in &mut self.phase_spaces {
            if p.due(clock, wall) {
                histogram::add(config, plasma, &p.what, true, &mut records)?;
            }
        }
        for p in &mut self.particles {
            // A file of fields without them would be a series of which readers say that it has no particles.
            if p.due(clock, wall) || (with_fields && p.every.is_none()) {
                records.push(Record::Table(output::particles(config, plasma, &p.what)?));
            }
        }
        if !records.is_empty() {
            records.push(output::method(config, plasma));
        }
        records.records()
    }

    /// Everything as it stands; for a look as far as pictures need it: pixels of fields where these are made on the device, no
    /// particles one by one, samples as far as they are on the host; for a quick one nothing for which all particles or a spectrum
    /// are gone through.
    pub fn records(&mut self, config: &Config, plasma: &mut Plasma, look: Option<Look>) -> Result<Pictures> {
        let mut records = Pictures::default();
        let (whole, quick) = (look.is_none(), look == Some(Look::Quick));
        if whole {
            self.settle(plasma)?;
        }
        let mut what = quantities(self.fields.iter().map(|f| &f.what));
        what.retain(|name| !quick || output::is_component(name));
        output::fields(config, plasma, &what, self.named, whole, &mut records)?;
        for p in self.phase_spaces.iter().filter(|_| !quick) {
            histogram::add(config, plasma, &p.what, whole, &mut records)?;
        }
        for p in self.particles.iter().filter(|_| whole) {
            records.push(Record::Table(output::particles(config, plasma, &p.what)?));
        }
        records.push(output::method(config, plasma));
        records.extend(self.series.records(plasma.accounts() != EnergyAccounts::Open));
        for mode in &self.modes {
            records.push(mode.record());
        }
        for spectrum in self.spectra.iter().filter(|_| !quick) {
            records.extend(spectrum.record(config, plasma)?);
        }
        for tracks in &self.tracks {
            records.extend(tracks.records());
        }
        Ok(records)
    }

    /// True if results show J as it stands.
    pub fn show_current(&self) -> bool {
        self.fields.iter().flat_map(|f| &f.what.what).any(|name| output::is_current(name))
            || self.spectra.iter().any(|spectrum| output::is_current(spectrum.component().name()))
    }

    /// Saves the state that a bitwise identical continuation needs.
    pub fn save(&self, writer: &mut Writer) -> Result<()> {
        self.series.save(writer)?;
        for (k, mode) in self.modes.iter().enumerate() {
            mode.save(writer, k)?;
        }
        for (k, spectrum) in self.spectra.iter().enumerate() {
            writer.f64s(&format!("spectrum{k}"), &spectrum.samples)?;
        }
        for (k, tracks) in self.tracks.iter().enumerate() {
            tracks.save(writer, k)?;
        }
        Ok(())
    }

    /// Takes it back. Schedules go on from `clock`.
    pub fn restore(&mut self, reader: &Reader, clock: Clock) -> Result<()> {
        self.series.restore(reader)?;
        for (k, mode) in self.modes.iter_mut().enumerate() {
            mode.restore(reader, k)?;
        }
        for (k, spectrum) in self.spectra.iter_mut().enumerate() {
            spectrum.samples = reader.f64s(&format!("spectrum{k}"))?;
        }
        for (k, tracks) in self.tracks.iter_mut().enumerate() {
            tracks.restore(reader, k)?;
        }
        // Output that fell due before the checkpoint has been written.
        self.fields.iter_mut().for_each(|t| t.go_on(clock));
        self.phase_spaces.iter_mut().for_each(|t| t.go_on(clock));
        self.particles.iter_mut().for_each(|t| t.go_on(clock));
        Ok(())
    }
}

/// Quantities of lists of one moment, each once: components of a field are one record, whichever lists have them.
fn quantities<'a>(lists: impl IntoIterator<Item = &'a FieldsConfig>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    lists.into_iter().flat_map(|f| &f.what).filter(|name| seen.insert(*name)).cloned().collect()
}

/// `(x, ux)` of each mobile species.
fn default_phase_spaces(config: &Config) -> Vec<PhaseSpaceConfig> {
    let axis = |value: &str, bins: usize| BinConfig { value: value.into(), bins, range: None };
    config
        .species
        .iter()
        .filter(|s| s.mobile)
        .map(|s| PhaseSpaceConfig {
            name: None,
            species: s.name.clone(),
            axes: vec![axis("x", config.grid.cells[0].clamp(1, 512)), axis("ux", 256)],
            weight: None,
            select: None,
            every: None,
        })
        .collect()
}
