//! [`Stages`] on the CPU.

use std::ops::Range;

use zellige_engine::error::{Error, Result};
use zellige_engine::parallel::{chunks, chunks_mut, each, each_task, items, items_mut, map, map_tasks, owned, thread};
use zellige_engine::profile::Profiler;
use zellige_engine::record::Values;
use zellige_engine::sim::Cost;

use super::advance::{ACROSS, PassContext, advance_tile};
use super::counted::{bins, extent};
use super::exchange::{Outbox, deliver, leave_behind, move_on, swap_with_peers};
use super::fields::{FieldSet, cells_of, fill_guards_of_charge};
use super::isa::{Format, Work};
use super::store::{self, Band, Store, Tile, Tiling, export, follow, insert, visit};
use super::walls::Walls;
use super::window::{Window, collect};
use super::{CpuStages, Path, Population, check_particles, check_shift};
use crate::gauss::{ChargeCheck, ChargeErrors};
use crate::loading::{Batch, Source};
use crate::particles::Particles;
use crate::physics::{Vec3, kinetic_energy};
use crate::stages::images::Quantity;
use crate::stages::{Bins, Component, Energies, Ledger, ReadRow, Sheet, Stages, Visit};

/// Particles that one task advances: fuller tiles are cut into bands of rows, so that a dense target keeps all threads busy.
pub(super) const BAND: usize = 1 << 15;

/// Tiles that one task fills, at most.
const TILES_AT_A_TIME: usize = 256;

/// Corners whose charges one task adds.
const PIECE: usize = 1 << 14;

/// Floating-point operations of a particle's step, order 1: gather 62, Boris 60, move 20, deposit 40.
const FLOPS: f64 = 182.0;

impl<T: Format> CpuStages<T> {
    /// Reads and writes of a pass over a species; an equal share of them in several parts.
    fn cost(&self, species: usize) -> Cost {
        // By the ledger: counting tile by tile takes as long as moving what they hold where they hold little.
        let ledger = self.species[species].flows.known();
        let n = ledger.injected.saturating_sub(ledger.removed) as f64 / self.part.links().size() as f64;
        let bytes = 2.0 * (5 * size_of::<T>() + 1) as f64 * n;
        Cost { bytes, flops: FLOPS * n, items: n }
    }

    /// Moves and deposits a species, tile by tile.
    fn advance_tiles(&mut self, species: usize, step: u64, measure: bool) {
        let grid = &self.fields.grid;
        let population = &mut self.species[species];
        let s = &population.species;
        let q = s.macro_charge();
        let line = grid.dimensions == 1;
        // Steps across a line are a part of what they are, and their current as many times larger.
        let across = if line { ACROSS } else { 1.0 };
        let pass = PassContext {
            grid,
            fields: std::array::from_fn(|c| self.fields.gathered(Component::ALL[c])),
            alpha: T::from_f64(0.5 * s.charge_to_mass() * grid.dt),
            reach: [grid.dt / grid.h[0], across * grid.dt / grid.h[1]].map(T::from_f64),
            charge: [q * grid.h[0] / grid.dt, q * grid.h[1] / grid.dt / across, q].map(T::from_f64),
            line,
            pusher: s.pusher,
            walls: Walls::new(grid, self.tiling, s, species, self.setup.seed, step),
            weighted: s.weighted,
            measure,
        };
        let (path, order, scratch) = (self.path, self.setup.order, &self.scratch);
        let advance = |mut tile: Band<'_, T>, window: &mut Window<T>, out: &mut Outbox<T>| match path {
            Path::Rows(isa) => {
                let scratch = &scratch[thread()];
                T::advance(isa, Work { pass: &pass, tile, window, out, scratch, order });
            }
            Path::Single if order == 1 => advance_tile::<T, 1>(&pass, &mut tile, window, out),
            Path::Single => advance_tile::<T, 2>(&pass, &mut tile, window, out),
        };
        // Tile by tile: where a target is dense, its tiles must not be one thread's share of the domain.
        let own = self.part.tiles();
        let (windows, outboxes) = (&mut self.windows[own.clone()], &mut self.outboxes[own.clone()]);
        let tiles = (items_mut(&mut population.store.tiles[own]), items_mut(windows), items_mut(outboxes));
        self.cpu.install(|| {
            each_task(tiles, |_, (tile, window, out)| {
                out.clear();
                window.clear();
                if tile.band_count(BAND) == 1 {
                    advance(tile.whole(), window, out);
                    return;
                }
                let bands: Vec<_> = tile.bands(BAND, 1).collect();
                let parts = map_tasks(owned(bands), |_, band| {
                    let first = band.first;
                    let (mut window, mut out) = (Window::new([window.width(), band.cells[1]]), Outbox::default());
                    advance(band, &mut window, &mut out);
                    (first, window, out)
                });
                // In the order of the bands, whichever was done first.
                for (first, part, mut leavers) in parts {
                    window.add(&part, first);
                    out.tally += leavers.tally;
                    out.append(&mut leavers);
                }
                out.seal();
            });
        });
    }
}

impl<T: Format> CpuStages<T> {
    /// Gives all particles of a species, as a run in one part has them, to `work` at the first part; the others give it nothing.
    fn with_all<R: Send>(&self, species: usize, to: R, work: impl FnOnce(&Store<T>, R) + Send) -> Result<()> {
        let Population { store: own, species, .. } = &self.species[species];
        if self.part.is_alone() {
            self.cpu.install(|| work(own, to));
            return Ok(());
        }
        let all = self.part.particles(export(own))?;
        if self.part.links().is_first() {
            let mut store = store::store(self.tiling, species, 0, |_| true);
            insert(&mut store, &all, |_| true);
            drop(all);
            self.cpu.install(|| work(&store, to));
        }
        Ok(())
    }
}

impl<T: Format> Stages for CpuStages<T> {
    fn begin(&mut self, measure: bool, profiler: &mut Profiler) -> Result<()> {
        let part = self.part.clone();
        profiler.stage("begin", Cost::default(), || part.stage(|| self.fields.begin(measure)))
    }

    fn advance(&mut self, species: usize, step: u64, measure: bool, profiler: &mut Profiler) -> Result<()> {
        let cost = self.cost(species);
        profiler.stage("advance", cost, || self.advance_tiles(species, step, measure));
        let (part, own) = (self.part.clone(), self.part.tiles());
        if !part.is_alone() {
            let Self { tiling, windows, outboxes, received, .. } = self;
            profiler.stage("parts", Cost::default(), || swap_with_peers(&part, tiling, windows, outboxes, received))?;
        }
        profiler.stage("collect", Cost::default(), || {
            let (windows, collected) = ((&self.windows[..], &self.windows[own.start]), part.collected(part.links().rank()));
            let FieldSet { grid, j, .. } = &mut self.fields;
            self.cpu.install(|| collect(grid, &self.tiling, windows, collected, j));
        });
        let tallies = || own.clone().zip(&self.outboxes[own.clone()]).map(|(tile, out)| (tile, &out.tally));
        let population = &mut self.species[species];
        let (name, tiles) = (&population.species.name, &mut population.store.tiles);
        profiler.stage("exchange", Cost::default(), || self.cpu.install(|| deliver(name, &mut self.post, tiles, &self.outboxes)))?;
        let volume = self.setup.grid.cell_volume();
        population.flows.count(&part, tallies(), &population.species, volume)?;
        if measure {
            let mass = population.species.macro_mass() * volume;
            let own = [0, 1, 2, 3].map(|k| tallies().map(|(_, t)| if k == 0 { t.kinetic } else { t.momentum[k - 1] }).collect());
            let sums = part.lists(own.to_vec())?;
            let of = |k: usize| mass * sums[k].iter().fold(0.0, |sum, v| sum + v);
            (population.kinetic, population.momentum) = (of(0), [of(1), of(2), of(3)]);
        }
        Ok(())
    }

    fn current(&mut self, sheets: &[Sheet], profiler: &mut Profiler) -> Result<()> {
        let part = self.part.clone();
        profiler.stage("current", Cost::default(), || part.stage(|| self.fields.current(sheets)))
    }

    fn field(&mut self, profiler: &mut Profiler) -> Result<()> {
        let part = self.part.clone();
        profiler.stage("field", Cost::default(), || part.stage(|| self.fields.field()))
    }

    fn shift(&mut self, fresh: &[Particles], ahead: &[Sheet], profiler: &mut Profiler) -> Result<()> {
        check_shift(&self.setup, fresh)?;
        let part = self.part.clone();
        profiler.stage("window", Cost::default(), || {
            self.tiling = self.tiling.moved(1);
            let volume = self.setup.grid.cell_volume();
            for population in &mut self.species {
                let (store, columns) = (&mut population.store, self.tiling.tiles[0]);
                let left = self.cpu.install(|| map_tasks(chunks_mut(&mut store.tiles, columns), |_, tiles| leave_behind(&mut tiles[0])));
                move_on(&part, &self.tiling, store)?;
                // Each by the first tile of its row of tiles.
                let tallies = left.iter().enumerate().map(|(row, tally)| (row * columns, tally));
                population.flows.count(&part, tallies, &population.species, volume)?;
            }
            part.stage(|| self.fields.shift(ahead))
        })?;
        for (k, p) in fresh.iter().enumerate() {
            self.inject(k, p)?;
        }
        Ok(())
    }

    fn fill(&mut self, species: usize, source: &Source<'_>) -> Result<()> {
        let (population, own) = (&mut self.species[species], self.part.tiles());
        // Enough runs of tiles for all threads, each with one batch that keeps its memory.
        let run = own.len().div_ceil(8 * self.cpu.threads()).clamp(1, TILES_AT_A_TIME);
        let filled = |tiles: &mut [Tile<T>]| {
            let mut batch = Batch::default();
            tiles.iter_mut().try_for_each(|tile| store::fill(tile, source, &mut batch))
        };
        let tiles = &mut population.store.tiles[own];
        self.cpu.install(|| map_tasks(chunks_mut(tiles, run), |_, tiles| filled(tiles))).into_iter().collect::<Result<()>>()?;
        let mut count = [population.store.len() as u64];
        self.part.links().sum(&mut count)?;
        population.flows.begin(count[0]);
        Ok(())
    }

    fn inject(&mut self, species: usize, particles: &Particles) -> Result<()> {
        let grid = &self.setup.grid;
        let population = &mut self.species[species];
        check_particles(grid, &population.species, particles)?;
        insert(&mut population.store, particles, |tile| self.part.has(tile));
        let energy: f64 = (0..particles.len())
            .map(|k| {
                let [x, y, z] = [0, 1, 2].map(|c| particles.u[c][k]);
                particles.weight.get(k).copied().unwrap_or(1.0) * kinetic_energy(Vec3 { x, y, z })
            })
            .sum();
        let energy = energy * population.species.macro_mass() * grid.cell_volume();
        population.flows.inject(&self.part, particles.len() as u64, energy);
        Ok(())
    }

    fn particles(&mut self, species: usize) -> Result<Particles> {
        self.part.particles(export(&self.species[species].store))
    }

    fn own_particles(&mut self, species: usize) -> Result<Particles> {
        Ok(export(&self.species[species].store))
    }

    fn own_cells(&self) -> [Range<usize>; 2] {
        self.part.cells(&self.tiling)
    }

    fn revise(&mut self, species: usize, change: &(dyn Fn(&mut Particles) + Sync)) -> Result<()> {
        let mut own = export(&self.species[species].store);
        change(&mut own);
        self.replace(species, &own)
    }

    fn visit(&mut self, species: usize, part: Visit<'_>, join: &mut (dyn FnMut(Vec<f64>) + Send)) -> Result<()> {
        self.with_all(species, (), |store, ()| visit(store, part, join))
    }

    fn extent(&mut self, species: usize, axis: &Bins) -> Result<[f64; 2]> {
        let [low, high] = self.cpu.install(|| extent(&self.species[species].store, axis));
        let mut ends = [-low, high];
        self.part.links().max(&mut ends)?;
        Ok([-ends[0], ends[1]])
    }

    fn bins(&mut self, species: usize, axes: &[Bins]) -> Result<Vec<f64>> {
        let weighted = self.species[species].species.weighted;
        if weighted {
            // Their sums depend on the order of portions of all particles.
            let mut sums = vec![0.0; axes.iter().map(|axis| axis.count).product()];
            self.with_all(species, &mut sums, |store, sums| *sums = bins(store, axes, weighted))?;
            return Ok(sums);
        }
        // Whole numbers have the same sum in any parts.
        let own = self.cpu.install(|| bins(&self.species[species].store, axes, weighted));
        let all = self.part.joined(own, false)?;
        let count = axes.iter().map(|axis| axis.count).product();
        let mut sums = vec![0.0; count];
        all.chunks_exact(count).for_each(|part| sums.iter_mut().zip(part).for_each(|(sum, v)| *sum += v));
        Ok(sums)
    }

    fn follow(&mut self, species: usize, tags: &[u64]) -> Result<Vec<[f64; 5]>> {
        let mut points = self.cpu.install(|| follow(&self.species[species].store, tags));
        if !self.part.is_alone() {
            let all = self.part.joined(points.clone(), true)?;
            for part in all.chunks_exact(tags.len().max(1)) {
                let found = points.iter_mut().zip(part).filter(|(_, point)| !point[0].is_nan());
                found.for_each(|(to, point)| *to = *point);
            }
        }
        Ok(points)
    }

    fn set_moved(&mut self, cells: u64) {
        let tile = self.tiling.tile[0] as u64;
        self.tiling = Tiling { behind: (cells % tile) as usize, ..self.tiling };
        for population in &mut self.species {
            population.store.clear();
            population.store.set_tiling(self.tiling);
        }
    }

    fn replace(&mut self, species: usize, particles: &Particles) -> Result<()> {
        let population = &mut self.species[species];
        check_particles(&self.setup.grid, &population.species, particles)?;
        population.store.clear();
        insert(&mut population.store, particles, |tile| self.part.has(tile));
        Ok(())
    }

    fn component(&mut self, component: Component) -> Result<Vec<f64>> {
        self.fields.get(component)
    }

    fn own_rows(&mut self, component: Component) -> Result<(usize, Vec<f64>)> {
        Ok(self.fields.own_rows(component))
    }

    fn set_rows(&mut self, component: Component, read: ReadRow<'_>) -> Result<()> {
        self.fields.set_rows(component, read)
    }

    fn cells(&mut self, component: Component, scale: f64) -> Result<Values> {
        self.cpu.install(|| self.fields.cells(component, self.setup.precision, scale))
    }

    fn rows_of_cells(&self) -> Option<Range<usize>> {
        self.fields.grid.part.clone()
    }

    fn charge_cells(&mut self, species: &[usize], scale: f64) -> Result<Values> {
        let mut rho = vec![0.0; self.fields.grid.len()];
        for s in species {
            let charge = self.sum_charge(*s, false)?;
            self.cpu.install(|| {
                each((chunks_mut(&mut rho, PIECE), chunks(&charge, PIECE)), |_, (sum, charge)| {
                    sum.iter_mut().zip(charge).for_each(|(sum, r)| *sum += r.to_f64());
                });
            });
        }
        let (grid, precision) = (&self.fields.grid, self.setup.precision);
        self.cpu.install(|| cells_of(grid, Quantity::Charge, precision, scale, &rho))
    }

    fn set_component(&mut self, component: Component, values: &[f64]) -> Result<()> {
        self.fields.set(component, values);
        Ok(())
    }

    fn charge(&mut self, species: usize, smoothed: bool) -> Result<Vec<f64>> {
        let (rho, grid) = (self.sum_charge(species, smoothed)?, &self.fields.grid);
        let mut rho = self.part.whole(grid, &rho, grid.pitch(), true)?;
        if grid.part.is_some() {
            fill_guards_of_charge(&grid.whole(), &mut rho);
        }
        Ok(self.cpu.install(|| map(items(&rho), |_, r| r.to_f64())))
    }

    fn check_charge(&mut self, check: &ChargeCheck<'_>) -> Result<ChargeErrors> {
        let (mut rho, mut all) = (vec![0.0; self.fields.grid.len()], vec![0.0; self.fields.grid.len()]);
        for s in 0..self.species.len() {
            let charge = self.sum_charge(s, check.smoothed)?;
            self.cpu.install(|| {
                each((chunks_mut(&mut rho, PIECE), chunks_mut(&mut all, PIECE), chunks(&charge, PIECE)), |_, (rho, all, charge)| {
                    for ((rho, all), r) in rho.iter_mut().zip(all).zip(charge) {
                        let r = r.to_f64();
                        *rho += r;
                        *all += r.abs();
                    }
                });
            });
        }
        let particles = self.count()?.iter().sum();
        let Self { part, fields, corners, .. } = self;
        part.stage(|| corners.check_charge((part, &fields.grid), check, particles, &rho, &all, [&fields.e[0], &fields.e[1]]))
    }

    fn energies(&mut self) -> Result<Energies> {
        Ok(Energies {
            electric: self.fields.electric(),
            magnetic: self.fields.magnetic(),
            kinetic: self.species.iter().map(|s| s.kinetic).collect(),
            momentum: self.species.iter().map(|s| s.momentum).collect(),
            count: self.count()?,
        })
    }

    fn count(&mut self) -> Result<Vec<u64>> {
        let mut count: Vec<u64> = self.species.iter().map(|s| s.store.len() as u64).collect();
        self.part.links().sum(&mut count)?;
        Ok(count)
    }

    fn ledger(&mut self) -> Result<Vec<Ledger>> {
        let volume = self.setup.grid.cell_volume();
        self.species.iter_mut().try_for_each(|s| s.flows.settle(&self.part, &s.species, volume))?;
        Ok(self.species.iter().map(|s| *s.flows.known()).collect())
    }

    fn count_work(&mut self) -> Result<()> {
        self.fields.count_work();
        Ok(())
    }

    fn work(&mut self) -> Result<f64> {
        self.fields.work()
    }

    fn auxiliary_state(&mut self) -> Result<Vec<(String, Vec<f64>)>> {
        let (part, grid) = (self.part.clone(), &self.fields.grid);
        let residual = [&self.corners.base, &self.corners.variance].map(|values| part.whole(grid, values, grid.pitch(), false));
        let mut state = self.fields.auxiliary_state()?;
        let [base, variance] = residual;
        state.extend([("residual.base".into(), base?), ("residual.variance".into(), variance?)]);
        for (k, l) in self.ledger()?.iter().enumerate() {
            state.push((format!("ledger.{k}"), vec![l.injected as f64, l.removed as f64, l.energy_in, l.energy_out, l.charge_out]));
        }
        Ok(state)
    }

    fn set_auxiliary_state(&mut self, state: &[(String, Vec<f64>)]) -> Result<()> {
        for (k, s) in self.species.iter_mut().enumerate() {
            let name = format!("ledger.{k}");
            let found = state.iter().find(|(n, _)| *n == name).and_then(|(_, v)| <[f64; 5]>::try_from(v.as_slice()).ok());
            let Some([injected, removed, energy_in, energy_out, charge_out]) = found else {
                let message = format!("`{name}` with its five numbers is missing");
                return Err(Error::Numerics { what: "saved state".into(), place: format!("species `{}`", s.species.name), message });
            };
            s.flows.set(Ledger { injected: injected as u64, removed: removed as u64, energy_in, energy_out, charge_out });
        }
        let grid = &self.fields.grid;
        for (name, to) in [("residual.base", &mut self.corners.base), ("residual.variance", &mut self.corners.variance)] {
            if let Some((_, values)) = state.iter().find(|(n, v)| n == name && v.len() == self.setup.grid.len()) {
                *to = self.part.share(grid, values, grid.pitch());
            }
        }
        self.fields.set_auxiliary_state(state);
        Ok(())
    }

    fn memory(&self) -> u64 {
        let particles: usize = self.species.iter().map(|s| s.store.memory()).sum();
        let windows: usize = self.windows.iter().map(Window::bytes).sum();
        let outboxes: usize = self.outboxes.iter().map(Outbox::memory).sum();
        (particles + windows + outboxes + self.post.memory()) as u64 + self.fields.memory()
    }

    fn wait(&mut self) -> Result<()> {
        Ok(())
    }
}
