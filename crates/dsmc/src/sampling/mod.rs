//! Averages of cells and surfaces, with error bars from the means of batches.
//!
//! The sampling time is cut into batches. The values written are those of all samples; the error bar is their standard error by the
//! scatter of the batches (`spread`), which holds whatever the correlation of neighbouring steps as long as a batch is longer than
//! it. They may begin by themselves once the flow is steady ([`steady`]), or begin anew with every window of time.

pub mod formulae;
pub(crate) mod loads;
pub mod sections;
mod spread;
pub mod steady;
#[cfg(test)]
mod tests;
mod values;

use std::ops::Range;

use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::error::Result;
use zellige_engine::links::Links;

use crate::config::{AUTO, Config};
use crate::model::Model;
use crate::stages::{SURFACE_SUMS, Stages};
use crate::walls::tally::{BodyLoad, Flux};
pub use formulae::VALUES_OF_SUMS;
use spread::{Cells, FILLED, Spread};
use steady::Search;
use values::all_values;
pub use values::{
    OF_SPECIES, QUANTITIES, Quantity, VALUES, WITH_Z, first_mode, first_with_z, modes, species_values, translation, values, width,
};

/// Values of a surface, as [`Flux`] has them.
pub const SURFACE_VALUES: usize = SURFACE_SUMS;

/// Sections of a checkpoint with the counts.
const COUNTS: [&str; 6] = ["samples.taken", "samples.current", "samples.batches", "samples.start", "samples.full", "samples.batch"];

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
    cells: Vec<f64>,
    surfaces: Vec<f64>,
    /// True if a device has closed batches that are not here yet.
    on_device: bool,
    /// Sums of the last batch, kept: their pages are made once.
    batch_cells: Vec<f64>,
    batch_surfaces: Vec<f64>,
    cell_spread: Cells,
    surface_spread: Spread,
    load_spread: Spread,
    section_spread: Spread,
    /// Links to the other parts of the run: averages are at the first one, and the others count samples.
    links: Links,
}

impl Samples {
    /// As the input has them.
    pub fn new(model: &Model, config: &Config, links: &Links) -> Self {
        let s = &config.sampling;
        let start = config.sampling_start();
        let here = links.is_first();
        let if_here = |n: usize| if here { n } else { 0 };
        let [sums, surface_sums] = lengths(model).map(if_here);
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
            on_device: false,
            cells: vec![0.0; sums],
            surfaces: vec![0.0; surface_sums],
            batch_cells: vec![0.0; sums],
            batch_surfaces: vec![0.0; surface_sums],
            cell_spread: Cells::new(model, if_here(model.grid.len())),
            surface_spread: Spread::new(surfaces * SURFACE_VALUES),
            load_spread: Spread::new(if_here(loads::count(model))),
            section_spread: Spread::new(if_here(sections::count(model) * sections::lines(model))),
            links: links.clone(),
        };
        all.cut();
        all
    }

    /// Cuts what is sampled from `start` on into batches.
    fn cut(&mut self) {
        let samples = if self.window > 0 { self.window } else { self.steps.saturating_sub(self.start).div_ceil(self.every) };
        self.batch = (samples / self.wanted).max(1);
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
            self.cells.fill(0.0);
            self.surfaces.fill(0.0);
            self.cell_spread.clear();
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
                sums_of_regions(model, &self.batch_cells, regions, 0..model.collisions.sums())
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
        let (cells, surfaces) = (&mut self.batch_cells, &mut self.batch_surfaces);
        self.batches += 1;
        if !self.links.is_first() {
            self.current = 0;
            return stages.take_samples(cells, surfaces);
        }
        let flows = match stages.batches() {
            Some(device) => {
                let flows = sections::flows(model, self.current, &mut |regions, sums| device.regions(regions, sums))?;
                device.close(self.batches, self.current, surfaces)?;
                self.on_device = true;
                flows
            }
            None => {
                stages.take_samples(cells, surfaces)?;
                self.cell_spread.add(model, &mut self.cells, cells, self.batches, self.current);
                sections::flows(model, self.current, &mut |regions, sums| Ok(sums_of_regions(model, cells, regions, sums)))?
            }
        };
        let found: Vec<f64> = (0..surfaces.len()).map(|i| surface_value(model, surfaces, i, self.current * self.every)).collect();
        self.surface_spread.add(&found, self.batches);
        self.load_spread.add(&loads::numbers(model, &|segment| flux_of(&found, segment)), self.batches);
        self.section_spread.add(&flows, self.batches);
        self.surfaces.iter_mut().zip(&*surfaces).for_each(|(to, from)| *to += from);
        self.current = 0;
        Ok(())
    }

    /// Brings averages that a device keeps to the host, where all that is asked of them is answered.
    pub fn fetch(&mut self, model: &Model, stages: &mut dyn Stages) -> Result<()> {
        if let (true, Some(device)) = (std::mem::take(&mut self.on_device), stages.batches()) {
            device.fetch(&mut self.cells, &mut self.cell_spread.square, &mut self.cell_spread.filled)?;
            self.cell_spread.value = all_values(model, &self.cells, self.closed());
        }
        Ok(())
    }

    /// Samples that are in closed batches.
    pub fn closed(&self) -> u64 {
        self.batches * self.batch
    }

    /// Sums of a cell, `[species][sums]`.
    pub fn sums(&self, model: &Model, cell: usize) -> &[f64] {
        let width = model.species.len() * model.collisions.sums();
        &self.cells[cell * width..][..width]
    }

    /// All values, `[cell][width]` with [`width`], of the closed batches.
    ///
    /// # Panics
    ///
    /// Where a device has closed some since the last [`Samples::fetch`].
    pub fn values(&self) -> &[f64] {
        assert!(!self.on_device, "averages are fetched before they are looked at");
        &self.cell_spread.value
    }

    /// Standard error of one of [`Samples::values`]. Not a number where too few batches saw a particle.
    pub fn error(&self, model: &Model, cell: usize, value: usize) -> f64 {
        self.cell_spread.error(model, cell, value, self.sums(model, cell), self.batches)
    }

    /// True if the scatter of velocities is known in a cell, whose values are `values`: of the gas (`line` 0) or of species
    /// `line - 1` of a mixture. A few particles that flew by together are cold by chance, and one alone has no temperature but
    /// round-off: too few batches have one, or the temperature of translation is less than twice its error.
    pub fn warm(&self, model: &Model, cell: usize, line: usize, values: &[f64]) -> bool {
        let at = translation(line);
        let few = self.cell_spread.filled(cell, line) < FILLED.min(self.batches);
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
        let sums = &mut |regions, sums| Ok(sums_of_regions(model, &self.cells, regions, sums));
        let means = sections::flows(model, self.closed(), sums).unwrap_or_default();
        means.into_iter().enumerate().map(|(i, mean)| [mean, self.section_spread.error(i, self.batches)]).collect()
    }

    /// Bytes held.
    pub fn memory(&self) -> u64 {
        let spreads = [&self.surface_spread, &self.load_spread, &self.section_spread];
        let of_cells = 2 * self.cell_spread.value.len() + self.cell_spread.filled.len();
        let numbers = 2 * (self.cells.len() + self.surfaces.len()) + of_cells + spreads.iter().map(|s| 2 * s.mean.len()).sum::<usize>();
        8 * numbers as u64 + self.search.as_ref().map_or(0, Search::memory)
    }

    /// Writes everything; open batches are in `pending`, the sums that the stages hold.
    pub fn save(&mut self, model: &Model, writer: &mut Writer, stages: &mut dyn Stages) -> Result<()> {
        self.fetch(model, stages)?;
        let mut pending = [vec![0.0; self.cells.len()], vec![0.0; self.surfaces.len()]];
        let [cells, surfaces] = &mut pending;
        stages.pending(cells, surfaces)?;
        let counts = [self.taken, self.current, self.batches, self.start, u64::from(self.full), self.batch];
        for (name, n) in COUNTS.into_iter().zip(counts) {
            writer.u64(name, n)?;
        }
        if let Some(search) = &self.search {
            search.save(writer)?;
        }
        for (name, values) in self.columns().into_iter().zip(&pending).map(|((name, _), p)| (format!("{name}.pending"), p)) {
            writer.f64s(&name, values)?;
        }
        for (name, values) in self.columns() {
            writer.f64s(name, values)?;
        }
        Ok(())
    }

    fn columns(&self) -> [(&'static str, &Vec<f64>); 11] {
        [
            ("samples.cells", &self.cells),
            ("samples.surfaces", &self.surfaces),
            ("samples.cell_value", &self.cell_spread.value),
            ("samples.cell_square", &self.cell_spread.square),
            ("samples.cell_filled", &self.cell_spread.filled),
            ("samples.surface_mean", &self.surface_spread.mean),
            ("samples.surface_square", &self.surface_spread.square),
            ("samples.load_mean", &self.load_spread.mean),
            ("samples.load_square", &self.load_spread.square),
            ("samples.section_mean", &self.section_spread.mean),
            ("samples.section_square", &self.section_spread.square),
        ]
    }

    /// Takes everything back.
    pub fn restore(&mut self, model: &Model, reader: &Reader, stages: &mut dyn Stages) -> Result<()> {
        let fit = |name: &str, n: usize| {
            let values = reader.f64s(name)?;
            if values.len() == n {
                Ok(values)
            } else {
                Err(reader.content_error(format!("section `{name}` has {} numbers, {n} expected", values.len())))
            }
        };
        let mut counts = [0; COUNTS.len()];
        for (count, name) in counts.iter_mut().zip(COUNTS) {
            *count = reader.u64(name)?;
        }
        let full;
        // A run that goes on with more steps keeps its batches as long as they were and has more of them.
        [self.taken, self.current, self.batches, self.start, full, self.batch] = counts;
        if self.batch == 0 {
            return Err(reader.content_error("section `samples.batch` is 0"));
        }
        self.full = full > 0;
        if let Some(search) = &mut self.search {
            search.restore(reader)?;
        }
        let [cells, surfaces] = lengths(model);
        stages.put_samples(&fit("samples.cells.pending", cells)?, &fit("samples.surfaces.pending", surfaces)?)?;
        if !self.links.is_first() {
            return Ok(());
        }
        self.cells = fit("samples.cells", self.cells.len())?;
        self.surfaces = fit("samples.surfaces", self.surfaces.len())?;
        let of_cells = &mut self.cell_spread;
        for (name, to) in [("value", &mut of_cells.value), ("square", &mut of_cells.square), ("filled", &mut of_cells.filled)] {
            *to = fit(&format!("samples.cell_{name}"), to.len())?;
        }
        let spreads = [&mut self.surface_spread, &mut self.load_spread, &mut self.section_spread];
        for (names, spread) in ["surface", "load", "section"].into_iter().zip(spreads) {
            spread.mean = fit(&format!("samples.{names}_mean"), spread.mean.len())?;
            spread.square = fit(&format!("samples.{names}_square"), spread.square.len())?;
        }
        if let Some(device) = stages.batches().filter(|_| self.batches > 0) {
            device.put(&self.cells, &self.cell_spread.square, &self.cell_spread.filled)?;
        }
        Ok(())
    }
}

/// Numbers of the sums of all cells, and of all surfaces.
fn lengths(model: &Model) -> [usize; 2] {
    let surfaces = 4 + model.geometry.segments().len();
    [model.grid.len() * model.species.len() * model.collisions.sums(), surfaces * SURFACE_SUMS]
}

/// Sums of even regions along each axis, `[region][species][sum]`, of those of cells, by the weights of the cells.
fn sums_of_regions(model: &Model, cells: &[f64], regions: [usize; 2], sums: Range<usize>) -> Vec<f64> {
    let (grid, one, species) = (&model.grid, model.collisions.sums(), model.species.len());
    let mut out = vec![0.0; regions[0] * regions[1] * species * sums.len()];
    // Row by row: a division for each cell took longer than all else.
    let column: Vec<usize> = (0..grid.cells[0]).map(|x| x * regions[0] / grid.cells[0]).collect();
    for (row, cells) in cells.chunks_exact(grid.cells[0] * species * one).enumerate() {
        let first = row * regions[1] / grid.cells[1] * regions[0];
        for (x, of_cell) in cells.chunks_exact(species * one).enumerate() {
            let weight = model.relative(row * grid.cells[0] + x);
            let to = &mut out[(first + column[x]) * species * sums.len()..][..species * sums.len()];
            for (to, from) in to.chunks_exact_mut(sums.len()).zip(of_cell.chunks_exact(one)) {
                to.iter_mut().zip(&from[sums.clone()]).for_each(|(to, from)| *to += weight * from);
            }
        }
    }
    out
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
