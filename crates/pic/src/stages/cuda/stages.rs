//! [`Stages`] on a GPU.

use std::ops::Range;

use zellige_engine::cuda::{Coming, Launch};
use zellige_engine::error::{Error, Result};
use zellige_engine::ops::plane::FieldCopier;
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Values, ValuesOnGpu};
use zellige_engine::sim::Cost;

use super::arguments::{self, PushOf, Walls};
use super::{CudaStages, Population, early, unit_of};
use crate::gauss::{ChargeCheck, ChargeErrors};
use crate::grid::{BELOW, ParticleSide};
use crate::loading::{Batch, Source};
use crate::particles::Particles;
use crate::sampling::purpose;
use crate::stages::images::{self, Quantity};
use crate::stages::{
    Bins, BinsToCome, ColumnUnits, ColumnsOnGpu, Component, Energies, Ledger, Precision, ReadRow, Sheet, Stages, Visit, cpu,
};

/// Floating-point operations of a particle's step, order 1: gather 62, Boris 60, move 20, deposit 60.
const FLOPS: f64 = 202.0;

/// Particles that are told of at a time.
const PORTION: usize = 1 << 16;

impl CudaStages {
    /// Reads and writes of a pass over a species, by the host's bound of its number.
    fn cost(&self, species: usize) -> Cost {
        let store = &self.species[species].store;
        let n = store.most() as f64;
        Cost { bytes: n * (4.0 + 10.0 * store.kernel_config.real() as f64), flops: FLOPS * n, items: n }
    }

    /// With the push of a species as the next argument.
    pub(super) fn push<'a>(&self, launch: Launch<'a>, population: &Population) -> Launch<'a> {
        let (s, grid) = (&population.species, &self.setup.grid);
        let alpha = 0.5 * s.charge_to_mass() * grid.dt;
        let step = grid.h.map(|h| grid.dt / h);
        let sign = if s.charge < 0.0 { -1 } else { 1 };
        // Powers of two.
        let unit = [self.unit, 4.0 / self.unit, 2.0 / self.unit];
        match self.setup.precision {
            Precision::F32 => {
                let (step, unit) = (step.map(|v| v as f32), unit.map(|v| v as f32));
                launch.arg(PushOf { alpha: alpha as f32, step, unit, sign })
            }
            Precision::F64 => launch.arg(PushOf { alpha, step, unit, sign }),
        }
    }

    fn advance_particles(&mut self, species: usize, step: u64, measure: bool) -> Result<()> {
        self.measure_in(self.species[species].species.macro_charge().abs())?;
        let units = self.species[species].store.all_units();
        if measure && self.species[species].measured.len() < 4 * units {
            self.species[species].measured = self.pool.alloc_zeros(4 * units, "pic: energies")?;
        }
        let population = &self.species[species];
        let (store, kernel_config) = (&population.store, &population.store.kernel_config);
        let fields = arguments::Fields {
            f: std::array::from_fn(|c| self.fields.total_field(c)),
            external: std::array::from_fn(|c| self.fields.external(c)),
        };
        // Species in their order: each waits in the end for all those ahead.
        let ahead = std::mem::replace(&mut self.ahead, (!measure).then_some(species));
        let overlaps = u32::from(ahead.is_some_and(|ahead| ahead < species));
        // Only thermal walls draw; without them launches of a step are those of the step before the last one (`Cuda::repeat`).
        let step = if self.setup.grid.particles.iter().flatten().any(|s| *s == ParticleSide::Thermal) { step } else { 0 };
        let walls = Walls { purpose: purpose::walls(species), overlaps, seed: self.setup.seed, step };
        let kernel = if measure { &store.kernels.advance_measured } else { &store.kernels.advance };
        let launch = early(&self.cuda, kernel.launch(store.blocks(), kernel_config.block).shared(kernel_config.shared()));
        let launch = self.push(launch.arg(population.domain()).arg(store.argument()).arg(fields), population);
        // SAFETY: the arguments as declared; lists, sums and fields are as large as the kernel expects.
        unsafe { launch.arg(walls).arg(&self.sums[self.adding]).arg(&population.measured).run()? };
        if measure {
            let launch = store.kernels.total.launch(4, 256).arg(store.argument()).arg(&population.measured).arg(&population.totals);
            // SAFETY: a store, four sums of each unit of it, and room for four totals.
            unsafe { launch.run()? };
        }
        Ok(())
    }
}

impl Stages for CudaStages {
    fn begin(&mut self, measure: bool, profiler: &mut Profiler) -> Result<()> {
        // J is overwritten by the first conversion of this step.
        (self.fresh, self.unread, self.ahead) = (true, None, None);
        if measure { self.fields.measure(profiler) } else { Ok(()) }
    }

    fn advance(&mut self, species: usize, step: u64, measure: bool, profiler: &mut Profiler) -> Result<()> {
        let (cuda, cost) = (self.cuda.clone(), self.cost(species));
        profiler.stage_on(&cuda, "advance", cost, || self.advance_particles(species, step, measure))?;
        if !self.part.is_alone() {
            // Their particles go to other parts along with the sums of the current.
            self.pushed.push(species);
            return Ok(());
        }
        profiler.stage_on(&cuda, "exchange", Cost::default(), || self.species[species].store.swap_pages())
    }

    fn current(&mut self, sheets: &[Sheet], profiler: &mut Profiler) -> Result<()> {
        let cuda = self.cuda.clone();
        // The fused update keeps no J, of which the work would be.
        let fused = self.fields.fuses_fields() && sheets.is_empty() && !self.fields.counts_work();
        if !self.part.is_alone() {
            profiler.stage_on(&cuda, "parts", Cost::default(), || self.complete(fused))?;
        }
        let charge = self.pending.take();
        if fused {
            // As it is: the field reads the integers.
            self.unread = Some(self.current_of(charge.unwrap_or(0.0)));
            return Ok(());
        }
        let cost = Cost { bytes: (48.0 + 3.0 * self.fields.real()) * self.setup.grid.len() as f64, ..Cost::default() };
        profiler.stage_on(&cuda, "collect", cost, || {
            charge.map_or(Ok(()), |charge| self.convert_complete(charge))?;
            if std::mem::take(&mut self.fresh) { self.fields.clear_current() } else { Ok(()) }
        })?;
        self.fields.current(sheets, profiler)
    }

    fn field(&mut self, profiler: &mut Profiler) -> Result<()> {
        let Some(current) = self.unread else { return self.fields.field(profiler) };
        self.fields.fused_fields(&self.sums[self.adding], &self.sums[1 - self.adding], current, profiler)?;
        self.adding = 1 - self.adding;
        Ok(())
    }

    fn shift(&mut self, fresh: &[Particles], ahead: &[Sheet], profiler: &mut Profiler) -> Result<()> {
        cpu::check_shift(&self.setup, fresh)?;
        (self.ahead, self.closed) = (None, false);
        let (cuda, coming) = (self.cuda.clone(), std::mem::take(&mut self.coming));
        let height = self.setup.grid.cells[1];
        profiler.stage_on(&cuda, "window", Cost::default(), || {
            self.species.iter_mut().enumerate().try_for_each(|(k, p)| {
                let coming = coming.iter().filter(|(species, ..)| *species == k);
                p.store.shift(p.domain(), coming.clone().map(|(_, source, _)| source.per_cell()).sum())?;
                for (_, uniform_source, column) in coming {
                    p.store.make_column(p.domain(), *uniform_source, *column)?;
                    p.ledger.injected += (height * uniform_source.per_cell()) as u64;
                }
                Ok(())
            })
        })?;
        self.fields.shift(ahead, profiler)?;
        fresh.iter().enumerate().filter(|(_, p)| !p.is_empty()).try_for_each(|(k, p)| self.take_in(k, p, false))
    }

    fn fill(&mut self, species: usize, source: &Source<'_>) -> Result<()> {
        if let Some((uniform_source, offsets)) = source.uniform_source() {
            // The first cell's particles tell whether the numbers are sound.
            source.fill(std::iter::once([0, 0]), &mut Batch::default())?;
            self.ahead = None;
            let population = &mut self.species[species];
            population.store.fill(population.domain(), uniform_source, offsets)?;
            let [x, y] = self.setup.grid.cells;
            population.ledger.injected += (x * y * uniform_source.per_cell()) as u64;
            return Ok(());
        }
        let before = self.species[species].ledger.energy_in;
        source.portions(0..self.setup.grid.cells[0], |p| self.inject(species, &p))?;
        self.species[species].ledger.energy_in = before;
        Ok(())
    }

    fn bring(&mut self, species: usize, source: &Source<'_>) -> Result<bool> {
        let Some((uniform_source, offsets)) = source.uniform_source() else { return Ok(false) };
        self.species[species].store.reserve_column(&uniform_source, offsets)?;
        self.coming.push((species, uniform_source, source.last_column()));
        Ok(true)
    }

    fn inject(&mut self, species: usize, particles: &Particles) -> Result<()> {
        self.take_in(species, particles, true)
    }

    fn particles(&mut self, species: usize) -> Result<Particles> {
        self.part.particles(self.species[species].store.export()?)
    }

    fn own_particles(&mut self, species: usize) -> Result<Particles> {
        self.species[species].store.export()
    }

    fn own_cells(&self) -> [Range<usize>; 2] {
        let grid = &self.setup.grid;
        [0..grid.cells[0], self.part.grid(grid).held()]
    }

    fn revise(&mut self, species: usize, change: &(dyn Fn(&mut Particles) + Sync)) -> Result<()> {
        let mut own = self.species[species].store.export()?;
        change(&mut own);
        self.replace(species, &own)
    }

    fn visit(&mut self, species: usize, part: Visit<'_>, join: &mut (dyn FnMut(Vec<f64>) + Send)) -> Result<()> {
        if self.part.is_alone() {
            return self.species[species].store.visit(part, join);
        }
        let all = self.particles(species)?;
        for begin in (0..all.len()).step_by(PORTION) {
            join(part(all.at(begin..all.len().min(begin + PORTION))));
        }
        Ok(())
    }

    fn extent(&mut self, species: usize, axis: &Bins) -> Result<[f64; 2]> {
        self.extent_of(species, axis)
    }

    fn bins(&mut self, species: usize, axes: &[Bins]) -> Result<Vec<f64>> {
        self.sums_in(species, axes)
    }

    fn begin_bins(&mut self, species: usize, axes: &[Bins], measured: [bool; 2]) -> Result<Option<BinsToCome>> {
        if !self.part.is_alone() {
            return Ok(None);
        }
        self.begin_bins_of(species, axes, measured).map(Some)
    }

    fn follow(&mut self, species: usize, tags: &[u64]) -> Result<Vec<[f64; 5]>> {
        self.followed(species, tags)
    }

    fn replace(&mut self, species: usize, particles: &Particles) -> Result<()> {
        cpu::check_particles(&self.setup.grid, &self.species[species].species, particles)?;
        self.species[species].store.clear()?;
        self.measure_charge_of_all(particles)?;
        self.put(species, particles, true)
    }

    fn component(&mut self, component: Component) -> Result<Vec<f64>> {
        self.read_if_current(component)?;
        self.fields.get(component)
    }

    fn own_rows(&mut self, component: Component) -> Result<(usize, Vec<f64>)> {
        self.read_if_current(component)?;
        self.fields.own_rows(component)
    }

    fn set_rows(&mut self, component: Component, read: ReadRow<'_>) -> Result<()> {
        self.read_if_current(component)?;
        self.fields.set_rows(component, read)
    }

    fn cells(&mut self, component: Component, scale: f64) -> Result<Values> {
        self.read_if_current(component)?;
        self.fields.cells(component, scale)
    }

    fn rows_of_cells(&self) -> Option<Range<usize>> {
        self.part.grid(&self.setup.grid).part
    }

    fn charge_cells(&mut self, species: &[usize], scale: f64) -> Result<Values> {
        self.charge_of(species, false)?;
        self.fields.charge_cells(scale)
    }

    fn picture(&mut self, component: Component, scale: f64) -> Result<Option<Coming<f32>>> {
        if !self.fields.makes_pictures() {
            return Ok(None);
        }
        self.read_if_current(component)?;
        self.fields.picture(component, scale).map(Some)
    }

    fn charge_picture(&mut self, species: &[usize], scale: f64) -> Result<Option<Coming<f32>>> {
        if !self.fields.makes_pictures() {
            return Ok(None);
        }
        self.charge_of(species, false)?;
        self.fields.charge_picture(scale).map(Some)
    }

    fn cells_on_gpu(&mut self, component: Component, scale: f64, copier: &FieldCopier) -> Result<Option<ValuesOnGpu>> {
        if !self.part.is_alone() {
            return Ok(None);
        }
        self.read_if_current(component)?;
        self.fields.copy(component, scale, copier).map(Some)
    }

    fn charge_cells_on_gpu(&mut self, species: &[usize], scale: f64, copier: &FieldCopier) -> Result<Option<ValuesOnGpu>> {
        if !self.part.is_alone() {
            return Ok(None);
        }
        self.charge_of(species, false)?;
        self.fields.charge_copy(scale, copier).map(Some)
    }

    fn set_cells_on_gpu(
        &mut self,
        component: Component,
        values: &ValuesOnGpu,
        unit: f64,
        copier: &FieldCopier,
    ) -> Result<Option<(usize, f64)>> {
        self.fields.put(component, values, unit, copier)
    }

    fn columns_on_gpu(&mut self, species: usize, units: &ColumnUnits) -> Result<Option<ColumnsOnGpu>> {
        if self.part.is_alone() { self.copied_columns(species, units).map(Some) } else { Ok(None) }
    }

    fn set_momenta_on_gpu(&mut self, species: usize, momenta: [Option<&ValuesOnGpu>; 3], unit: f64) -> Result<()> {
        self.put_momenta(species, momenta, unit)
    }

    fn keep(&mut self, list: usize, component: Component) -> Result<bool> {
        self.fields.keep(list, component)
    }

    fn kept(&mut self, list: usize) -> Result<Vec<Vec<f64>>> {
        self.fields.kept(list)
    }

    fn set_component(&mut self, component: Component, values: &[f64]) -> Result<()> {
        self.read_if_current(component)?;
        self.fields.set(component, values)
    }

    fn charge(&mut self, species: usize, smoothed: bool) -> Result<Vec<f64>> {
        self.ahead = None;
        self.convert()?;
        let (n, pitch) = (self.setup.grid.len(), self.setup.grid.pitch());
        self.sum_charge(species)?;
        self.complete(false)?;
        let population = &self.species[species];
        let unit = population.species.macro_charge().abs() / (4.0 * self.unit);
        let sums = self.cuda.download_range(&self.sums[self.adding], 0..n)?;
        let mut all = if self.setup.grid.periodic(1) {
            self.part.whole(&self.setup.grid, &sums, pitch, true)?
        } else {
            // With the guards beyond the walls.
            let rows = self.part.collected(self.part.links().rank());
            let own = self.setup.grid.place(rows.start) * pitch..(self.setup.grid.place(rows.end - 1) + 1) * pitch;
            self.part.joined(sums[own].to_vec(), true)?
        };
        // Guards beyond a periodic side as parts do it, in whole numbers: these have the same sum in any order.
        for (guard, image, _) in images::folds(&self.setup.grid.whole(), 1, Quantity::Charge) {
            if self.setup.grid.periodic(1) && self.setup.grid.dimensions == 2 {
                let [from, to] = [guard, image].map(|j| (j + BELOW as isize) as usize * pitch);
                for k in 0..pitch {
                    all[to + k] += std::mem::take(&mut all[from + k]);
                }
            }
        }
        let rho: Vec<f64> = all.iter().map(|v| *v as f64 * unit).collect();
        self.cuda.fill_zero(&mut self.sums[self.adding])?;
        self.fields.complete_charge(&rho, smoothed)
    }

    fn check_charge(&mut self, check: &ChargeCheck<'_>) -> Result<ChargeErrors> {
        // Particles are not checked for losses in each measured step.
        self.species.iter().try_for_each(|p| p.store.counters().map(|_| ()))?;
        let all: Vec<usize> = (0..self.species.len()).collect();
        self.charge_of(&all, check.smoothed)?;
        self.fields.check_charge(check)
    }

    fn energies(&mut self) -> Result<Energies> {
        for p in &self.species {
            p.number()?;
        }
        self.cuda.synchronize()?;
        let [a, b, c, d, e, f] = self.fields.energies()?;
        let mut found = Energies { electric: [a, b, c], magnetic: [d, e, f], ..Energies::default() };
        let volume = self.setup.grid.cell_volume();
        for p in &self.species {
            // Of all parts, in their order.
            let all = self.part.joined(p.totals().to_vec(), true)?;
            let sum = |sum: [f64; 5], part: &[f64; 5]| std::array::from_fn(|k| sum[k] + part[k]);
            let totals: [f64; 5] = all.as_chunks::<5>().0.iter().fold([0.0; 5], sum);
            let mass = p.species.macro_mass() * volume;
            found.kinetic.push(mass * totals[0]);
            found.momentum.push([1, 2, 3].map(|c| mass * totals[c]));
            found.count.push(totals[4] as u64);
        }
        Ok(found)
    }

    fn count(&mut self) -> Result<Vec<u64>> {
        // The counters tell whether a particle was lost on its way.
        let species = self.species.iter().map(|p| {
            p.number()?;
            // Waits.
            p.store.counters().map(|_| p.totals()[4] as u64)
        });
        let mut counts = species.collect::<Result<Vec<u64>>>()?;
        self.part.links().sum(&mut counts)?;
        Ok(counts)
    }

    fn ledger(&mut self) -> Result<Vec<Ledger>> {
        let volume = self.setup.grid.cell_volume();
        let closed = self.closed;
        let species = self.species.iter().map(|p| {
            // Nothing goes out of a periodic box, so that there is nothing to wait for.
            if closed {
                return Ok(p.ledger);
            }
            let counters = p.store.counters()?.of_all(&self.part)?;
            let ([weight, out, back], mass) = (counters.sums(), p.species.macro_mass() * volume);
            Ok(Ledger {
                injected: p.ledger.injected,
                removed: p.ledger.removed + counters.removed,
                energy_in: p.ledger.energy_in + mass * back,
                energy_out: p.ledger.energy_out + mass * out,
                charge_out: p.ledger.charge_out + weight * p.species.macro_charge() * volume,
            })
        });
        species.collect()
    }

    fn count_work(&mut self) -> Result<()> {
        self.fields.count_work()
    }

    fn work(&mut self) -> Result<f64> {
        self.fields.work()
    }

    fn auxiliary_state(&mut self) -> Result<Vec<(String, Vec<f64>)>> {
        let mut state = self.fields.auxiliary_state()?;
        for (k, l) in self.ledger()?.iter().enumerate() {
            state.push((format!("ledger.{k}"), entries(l)));
        }
        // Exact ledgers as they are kept: the host's part and the device's.
        for (k, p) in self.species.iter().enumerate() {
            let device = p.store.counters()?.of_all(&self.part)?.ledger();
            state.push((format!("counted.{k}"), entries(&p.ledger).into_iter().chain(device).collect()));
        }
        state.push(("unit".into(), vec![self.unit, self.heaviest]));
        Ok(state)
    }

    fn set_auxiliary_state(&mut self, state: &[(String, Vec<f64>)]) -> Result<()> {
        let missing = |name: &str| Error::Numerics {
            what: "saved state".into(),
            place: name.to_owned(),
            message: format!("`{name}` is missing or of another length"),
        };
        let entry = |name: &str| state.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_slice()).ok_or_else(|| missing(name));
        for (k, p) in self.species.iter_mut().enumerate() {
            let name = format!("ledger.{k}");
            let mut device = [0.0; 13];
            let mut host = <[f64; 5]>::try_from(entry(&name)?).map_err(|_| missing(&name))?;
            // A state of the CPU has the totals only.
            if let Ok(counted) = <[f64; 18]>::try_from(entry(&format!("counted.{k}")).unwrap_or_default()) {
                host.copy_from_slice(&counted[..5]);
                device.copy_from_slice(&counted[5..]);
            }
            let [injected, removed, energy_in, energy_out, charge_out] = host;
            p.ledger = Ledger { injected: injected as u64, removed: removed as u64, energy_in, energy_out, charge_out };
            self.closed &= device == [0.0; 13];
            // Counts of all parts become the first one's.
            p.store.set_ledger(if self.part.links().is_first() { &device } else { &[0.0; 13] })?;
        }
        // A state of the CPU has no unit; the one at hand then does.
        if let Ok([unit, heaviest]) = <[f64; 2]>::try_from(entry("unit").unwrap_or_default()) {
            // No finer than sums have room for.
            (self.unit, self.heaviest) = (unit.min(unit_of(&self.setup, heaviest)), heaviest);
        }
        self.fields.set_auxiliary_state(state)
    }

    fn memory(&self) -> u64 {
        self.pool.allocated()
    }

    fn memory_peak(&self) -> u64 {
        self.pool.peak()
    }

    fn wait(&mut self) -> Result<()> {
        self.cuda.synchronize()?;
        self.species.iter().try_for_each(|p| p.store.counters().map(|_| ()))
    }
}

/// A ledger as numbers, in the order of its fields.
fn entries(l: &Ledger) -> Vec<f64> {
    vec![l.injected as f64, l.removed as f64, l.energy_in, l.energy_out, l.charge_out]
}
