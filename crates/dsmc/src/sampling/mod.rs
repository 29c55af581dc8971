//! Averages of cells and surfaces, with error bars from the means of batches.
//!
//! The sampling time is cut into batches. The values written are those of all samples; the error bar is their standard error by the
//! scatter of the batches (`spread`), which holds whatever the correlation of neighbouring steps as long as a batch is longer than
//! it. They may begin by themselves once the flow is steady ([`steady`]), or begin anew with every window of time.

pub mod formulae;
pub(crate) mod loads;
mod of_cells;
pub mod sections;
mod shares;
mod shown;
mod spread;
mod state;
pub mod steady;
#[cfg(test)]
mod tests;
mod values;

use zellige_engine::error::Result;
use zellige_engine::links::Links;

use crate::config::{AUTO, Config};
use crate::grid::Rectangle;
use crate::model::Model;
use crate::stages::{FetchCells, SURFACE_SUMS, Stages};
use crate::walls::tally::{BodyLoad, Flux};
pub use formulae::VALUES_OF_SUMS;
use of_cells::OfCells;
use shares::{Shares, sums_of_regions};
pub(crate) use shown::by_particles;
pub(crate) use spread::FILLED;
use spread::Spread;
use steady::Search;
use values::all_values;
pub use values::{
    OF_SPECIES, QUANTITIES, Quantity, VALUES, WITH_Z, first_mode, first_with_z, modes, species_values, translation, values, width,
};

/// Values of a surface, as [`Flux`] has them.
pub const SURFACE_VALUES: usize = SURFACE_SUMS;

/// The averages of a run.
#[derive(Debug, Clone)]
pub struct Samples {
    /// First step that counts; [`AUTO`] while it is looked for.
    pub start: u64,
    /// Steps between samples.
    pub every: u64,
    /// Samples of a batch, and batches asked for.
    batch: u64,
    wanted: u64,
    /// Samples taken, and those of the batch under way.
    pub taken: u64,
    current: u64,
    /// Batches that are done.
    pub batches: u64,
    /// Last step of the run.
    steps: u64,
    /// The search for the start, also when it is over.
    pub search: Option<Search>,
    /// Samples of a window after which the averages begin anew; 0 for one window.
    window: u64,
    /// True if the window is full: the next sample begins another one.
    pub full: bool,
    /// Averages of the cells of this part of the run.
    own: OfCells,
    /// Those of all cells, at the first of several parts, once they were asked for.
    whole: Option<OfCells>,
    surfaces: Vec<f64>,
    /// True if the averages of all cells are those of the closed batches: others are yet on a device or at other parts.
    fetched: bool,
    /// Number of times that the closed batches became others.
    changes: u64,
    /// Sums of the last batch, kept: their pages are made once.
    batch_cells: Vec<f64>,
    batch_surfaces: Vec<f64>,
    surface_spread: Spread,
    load_spread: Spread,
    section_spread: Spread,
    /// Links to the other parts of the run: averages of surfaces and sections are at the first one.
    links: Links,
    shares: Shares,
}

impl Samples {
    /// As the input has them, in parts that own the cells `areas` ([`Stages::areas`]).
    pub fn new(model: &Model, config: &Config, links: &Links, areas: Vec<Rectangle>) -> Self {
        let s = &config.sampling;
        let start = config.sampling_start();
        let here = links.is_first();
        let if_here = |n: usize| if here { n } else { 0 };
        let surface_sums = if_here(surface_sums(model));
        let shares = Shares::new(model, links, areas);
        let own = OfCells::new(model, shares.own().len());
        let surfaces = surface_sums / SURFACE_SUMS;
        let mut all = Self {
            start,
            every: s.every,
            batch: 1,
            wanted: s.batches,
            taken: 0,
            current: 0,
            batches: 0,
            steps: config.steps,
            search: (start == AUTO).then(|| Search::new(model, config.steps, s.every)),
            window: s.window.map_or(0, |w| w / s.every),
            full: false,
            fetched: links.is_alone(),
            changes: 0,
            batch_cells: vec![0.0; own.sums.len()],
            own,
            whole: None,
            surfaces: vec![0.0; surface_sums],
            batch_surfaces: vec![0.0; surface_sums],
            surface_spread: Spread::new(surfaces * SURFACE_VALUES),
            load_spread: Spread::new(if_here(loads::count(model))),
            section_spread: Spread::new(if_here(sections::count(model) * sections::lines(model))),
            links: links.clone(),
            shares,
        };
        all.cut();
        all
    }

    /// Cuts what is sampled from `start` on into batches.
    fn cut(&mut self) {
        self.batch = self.length();
    }

    /// Samples of a batch of which there are as many as wanted.
    fn length(&self) -> u64 {
        let samples = if self.window > 0 { self.window } else { self.steps.saturating_sub(self.start).div_ceil(self.every) };
        (samples / self.wanted).max(1)
    }

    /// True if step `step` is to be sampled.
    pub fn due(&self, step: u64) -> bool {
        if self.start == AUTO {
            step.is_multiple_of(self.every)
        } else {
            step >= self.start && (step - self.start).is_multiple_of(self.every)
        }
    }

    /// Counts a sampled step. Whether [`Samples::after`] has something to do, which waits for the device and is work for all
    /// threads.
    pub fn count(&mut self) -> bool {
        if self.start == AUTO {
            return self.search.as_mut().is_some_and(Search::count);
        }
        if std::mem::take(&mut self.full) {
            (self.taken, self.current, self.batches) = (0, 0, 0);
            self.surfaces.fill(0.0);
            self.own.clear();
            self.outdate();
            self.surface_spread = Spread::new(self.surface_spread.mean.len());
            self.load_spread = Spread::new(self.load_spread.mean.len());
            self.section_spread = Spread::new(self.section_spread.mean.len());
        }
        self.taken += 1;
        self.current += 1;
        self.current == self.batch || self.taken == self.window
    }

    /// Closes a batch that is full, or a block of the search. `next` is the next step.
    pub fn after(&mut self, model: &Model, stages: &mut dyn Stages, next: u64) -> Result<()> {
        if self.start == AUTO {
            return self.look(model, stages, next);
        }
        if self.current == self.batch {
            self.close(model, stages)?;
        }
        if self.taken == self.window {
            // Remainders of a window that the batches do not fill are not averaged.
            match stages.batches() {
                Some(device) => device.discard(&mut self.batch_surfaces)?,
                None => stages.take_samples(&mut self.batch_cells, &mut self.batch_surfaces)?,
            }
            (self.current, self.full) = (0, true);
        }
        Ok(())
    }

    /// Looks at a block of the search; at the end of it the averages begin.
    fn look(&mut self, model: &Model, stages: &mut dyn Stages, next: u64) -> Result<()> {
        let regions = steady::regions(model);
        let sums = match stages.batches() {
            Some(device) => {
                let sums = device.regions(regions, 0..model.collisions.sums())?;
                device.discard(&mut self.batch_surfaces)?;
                sums
            }
            None => {
                stages.take_samples(&mut self.batch_cells, &mut self.batch_surfaces)?;
                self.shares.sums_of_regions(model, &self.batch_cells, regions, 0..model.collisions.sums())?
            }
        };
        if let Some(search) = &mut self.search {
            if self.links.is_first() {
                search.take(model, &sums, &self.batch_surfaces, next);
            }
            search.follow(&self.links)?;
            if let Some(found) = search.found {
                self.start = found.step;
                self.cut();
            }
        }
        Ok(())
    }

    fn close(&mut self, model: &Model, stages: &mut dyn Stages) -> Result<()> {
        self.batches += 1;
        self.outdate();
        let (cells, surfaces, shares) = (&mut self.batch_cells, &mut self.batch_surfaces, &self.shares);
        let flows = match stages.batches() {
            Some(device) => {
                let flows = sections::flows(model, self.current, &mut |regions, sums| device.regions(regions, sums))?;
                device.close(self.batches, self.current, surfaces)?;
                self.fetched = false;
                flows
            }
            None => {
                stages.take_samples(cells, surfaces)?;
                self.own.spread.add(model, shares.own(), &mut self.own.sums, cells, self.batches, self.current);
                sections::flows(model, self.current, &mut |regions, sums| shares.sums_of_regions(model, cells, regions, sums))?
            }
        };
        if !self.links.is_first() {
            self.current = 0;
            return Ok(());
        }
        let found: Vec<f64> = (0..surfaces.len()).map(|i| surface_value(model, surfaces, i, self.current * self.every)).collect();
        self.surface_spread.add(&found, self.batches);
        self.load_spread.add(&loads::numbers(model, &|segment| flux_of(&found, segment)), self.batches);
        self.section_spread.add(&flows, self.batches);
        self.surfaces.iter_mut().zip(&*surfaces).for_each(|(to, from)| *to += from);
        self.current = 0;
        Ok(())
    }

    /// Forgets averages of all cells that are not those of the closed batches any more.
    fn outdate(&mut self) {
        self.whole = None;
        self.fetched = self.links.is_alone();
        self.changes += 1;
    }

    /// Brings averages that a device or other parts keep to the host of the first part, where all that is asked is answered.
    pub fn fetch(&mut self, model: &Model, stages: &mut dyn Stages) -> Result<()> {
        self.fetch_own(model, stages)?;
        if std::mem::replace(&mut self.fetched, true) {
            return Ok(());
        }
        let mut whole = OfCells::new(model, 0);
        for (((_, to), (_, own)), width) in whole.columns_mut().into_iter().zip(self.own.columns()).zip(OfCells::widths(model)) {
            *to = self.shares.gathered(own, width)?;
        }
        self.whole = self.links.is_first().then_some(whole);
        Ok(())
    }

    /// Begins to bring averages that a device keeps to the host, for a look while the steps go on: a copy of these without those of
    /// cells, and what [`Samples::fill`] takes. `None` where they are there, or in several parts.
    pub(crate) fn begin_fetch(&mut self, model: &Model, stages: &mut dyn Stages) -> Result<Option<(Self, FetchCells)>> {
        let Some(device) = stages.batches().filter(|_| self.links.is_alone()) else { return Ok(None) };
        let fetch = device.begin_fetch()?;
        let aside = (std::mem::replace(&mut self.own, OfCells::new(model, 0)), std::mem::take(&mut self.batch_cells));
        let light = self.clone();
        (self.own, self.batch_cells) = aside;
        Ok(Some((light, fetch)))
    }

    /// Takes averages of this part's cells that come from a device.
    pub(crate) fn fill(&mut self, model: &Model, fetch: FetchCells) -> Result<()> {
        if self.own.sums.is_empty() {
            self.own = OfCells::new(model, self.shares.own().len());
        }
        let OfCells { sums, spread } = &mut self.own;
        fetch(sums, &mut spread.square, &mut spread.filled)?;
        self.own.spread.value = all_values(model, self.shares.own(), &self.own.sums, self.closed());
        self.fetched = true;
        Ok(())
    }

    /// Number that is another one whenever the closed batches are others.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Brings averages of the cells of this part to its host.
    fn fetch_own(&mut self, model: &Model, stages: &mut dyn Stages) -> Result<()> {
        // A window that begins anew has none, though the device still has those of the one before.
        if let Some(device) = stages.batches().filter(|_| !self.fetched && self.batches > 0) {
            let fetch = device.begin_fetch()?;
            self.fill(model, fetch)?;
            self.fetched = self.links.is_alone();
        }
        Ok(())
    }

    /// Hands averages of cells over to the parts that own them from now on, if these are others.
    pub fn follow(&mut self, model: &Model, areas: Vec<Rectangle>) -> Result<()> {
        if self.shares.are(&areas) {
            return Ok(());
        }
        let shares = Shares::new(model, &self.links, areas);
        for ((_, column), width) in self.own.columns_mut().into_iter().zip(OfCells::widths(model)) {
            *column = self.shares.moved(&shares, column, width)?;
        }
        self.batch_cells = vec![0.0; self.own.sums.len()];
        self.shares = shares;
        Ok(())
    }

    /// Averages of all cells.
    fn all(&self) -> &OfCells {
        self.whole.as_ref().unwrap_or(&self.own)
    }

    /// Samples that are in closed batches.
    pub fn closed(&self) -> u64 {
        self.batches * self.batch
    }

    /// Sums of a cell, `[species][sums]`.
    pub fn sums(&self, model: &Model, cell: usize) -> &[f64] {
        let width = model.species.len() * model.collisions.sums();
        &self.all().sums[cell * width..][..width]
    }

    /// All values, `[cell][width]` with [`width`], of the closed batches.
    ///
    /// # Panics
    ///
    /// Where a device or other parts have closed some since the last [`Samples::fetch`].
    pub fn values(&self) -> &[f64] {
        assert!(self.fetched, "averages are fetched before they are looked at");
        &self.all().spread.value
    }

    /// Standard error of one of [`Samples::values`]. Not a number where too few batches saw a particle.
    pub fn error(&self, model: &Model, cell: usize, value: usize) -> f64 {
        self.all().spread.error(model, cell, value, self.sums(model, cell), self.batches)
    }

    /// True if the scatter of velocities is known in a cell, whose values are `values`: of the gas (`line` 0) or of species
    /// `line - 1` of a mixture. A few particles that flew by together are cold by chance, and one alone has no temperature but
    /// round-off: too few batches have one, or the temperature of translation is less than twice its error.
    pub fn warm(&self, model: &Model, cell: usize, line: usize, values: &[f64]) -> bool {
        let at = translation(line);
        let few = self.all().spread.filled(cell, line) < FILLED.min(self.batches);
        values[at] > 0.0 && !few && (self.batches < 2 || values[at] >= 2.0 * self.error(model, cell, at))
    }

    /// A surface's values, and their standard errors.
    pub fn surface(&self, model: &Model, surface: usize) -> [[f64; 2]; SURFACE_VALUES] {
        let mut out = [[0.0; 2]; SURFACE_VALUES];
        for (v, out) in out.iter_mut().enumerate() {
            let i = surface * SURFACE_SUMS + v;
            *out = [surface_value(model, &self.surfaces, i, self.closed() * self.every), self.surface_spread.error(i, self.batches)];
        }
        out
    }

    /// Flux to a segment, as far as batches are closed.
    pub fn flux(&self, model: &Model, segment: usize) -> Flux {
        std::array::from_fn(|v| surface_value(model, &self.surfaces, (4 + segment) * SURFACE_SUMS + v, self.closed() * self.every))
    }

    /// Standard errors of a segment's pressure and shear, Pa.
    pub fn segment_error(&self, segment: usize) -> [f64; loads::OF_SEGMENT] {
        std::array::from_fn(|v| self.load_spread.error(segment * loads::OF_SEGMENT + v, self.batches))
    }

    /// Standard errors of what a body feels, or, behind the last one, all together.
    pub fn body_error(&self, model: &Model, body: usize) -> BodyLoad {
        let at = loads::first(model) + body * BodyLoad::NUMBERS;
        BodyLoad::from_numbers(std::array::from_fn(|v| self.load_spread.error(at + v, self.batches)))
    }

    /// Mass flows through sections with their standard errors, `[section][line]` ([`sections`]).
    pub fn flows(&self, model: &Model) -> Vec<[f64; 2]> {
        let sums = &mut |regions, sums| Ok(sums_of_regions(model, &self.all().sums, regions, sums));
        let means = sections::flows(model, self.closed(), sums).unwrap_or_default();
        means.into_iter().enumerate().map(|(i, mean)| [mean, self.section_spread.error(i, self.batches)]).collect()
    }

    /// Bytes held.
    pub fn memory(&self) -> u64 {
        let spreads = [&self.surface_spread, &self.load_spread, &self.section_spread];
        let batch = self.batch_cells.len() + 2 * self.surfaces.len();
        let numbers = batch + spreads.iter().map(|s| 2 * s.mean.len()).sum::<usize>();
        let cells = self.own.memory() + self.whole.as_ref().map_or(0, OfCells::memory);
        8 * numbers as u64 + cells + self.search.as_ref().map_or(0, Search::memory)
    }
}

/// Numbers of the sums of all surfaces.
fn surface_sums(model: &Model) -> usize {
    (4 + model.geometry.segments().len()) * SURFACE_SUMS
}

/// Area of a surface, m^2 per metre of depth: a side's or a segment's length.
pub fn area(model: &Model, surface: usize) -> f64 {
    match surface.checked_sub(4) {
        None => model.grid.length(1 - surface / 2),
        Some(segment) => model.geometry.segments()[segment].length(),
    }
}

fn surface_value(model: &Model, sums: &[f64], i: usize, steps: u64) -> f64 {
    sums[i] / (area(model, i / SURFACE_SUMS) * model.dt * steps as f64)
}

/// Flux to a segment, among the values of all surfaces.
fn flux_of(values: &[f64], segment: usize) -> Flux {
    std::array::from_fn(|v| values[(4 + segment) * SURFACE_VALUES + v])
}
