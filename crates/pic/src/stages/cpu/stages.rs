//! [`Stages`] on the CPU.

use std::ops::Range;

use zellige_engine::error::{Error, Result};
use zellige_engine::parallel::{chunks, chunks_mut, each, each_task, items, items_mut, map, map_tasks, owned, thread};
use zellige_engine::profile::Profiler;
use zellige_engine::record::Values;
use zellige_engine::sim::Cost;

use super::advance::{ACROSS, PassContext, advance_tile, deposit_charge};
use super::counted::{bins, extent};
use super::exchange::{Outbox, Tally, deliver, leave_behind};
use super::isa::{Format, Work};
use super::store::{self, Band, Tile, Tiling, export, follow, insert, visit};
use super::walls::Walls;
use super::window::{Window, collect};
use super::{CpuStages, Path, check_particles, check_shift, enter};
use crate::gauss::{ChargeCheck, ChargeErrors};
use crate::grid::{ABOVE, BELOW};
use crate::loading::{Batch, Source};
use crate::particles::Particles;
use crate::physics::{Vec3, kinetic_energy};
use crate::stages::cells::cells;
use crate::stages::images::Quantity;
use crate::stages::{Bins, Component, Energies, Ledger, Sheet, Stages, Visit};

/// Particles that one task advances: fuller tiles are cut into bands of rows, so that a dense target keeps all threads busy.
pub(super) const BAND: usize = 1 << 15;

/// Tiles whose charge is in memory together.
const TILES_AT_A_TIME: usize = 256;

/// Corners whose charges one task adds.
const PART: usize = 1 << 14;

/// Floating-point operations of a particle's step, order 1: gather 62, Boris 60, move 20, deposit 40.
const FLOPS: f64 = 182.0;

impl<T: Format> CpuStages<T> {
    /// Reads and writes of a pass over a species.
    fn cost(&self, species: usize) -> Cost {
        // By the ledger: counting tile by tile takes as long as moving what they hold where they hold little.
        let ledger = &self.species[species].ledger;
        let n = ledger.injected.saturating_sub(ledger.removed) as f64;
        let bytes = 2.0 * (5 * size_of::<T>() + 1) as f64 * n;
        Cost { bytes, flops: FLOPS * n, items: n }
    }

    /// Moves and deposits a species, tile by tile.
    fn advance_tiles(&mut self, species: usize, step: u64, measure: bool) {
        let grid = &self.setup.grid;
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
        let tiles = (items_mut(&mut population.store.tiles), items_mut(&mut self.windows), items_mut(&mut self.outboxes));
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

    /// Charge of a species at all corners with guards.
    fn sum_charge(&mut self, species: usize, smoothed: bool) -> Vec<T> {
        let population = &self.species[species];
        let (grid, order) = (&self.setup.grid, self.setup.order);
        let width = BELOW + self.tiling.tile[0] + ABOVE;
        let mut rho = vec![0.0; grid.len()];
        // Some tiles at a time, each on a thread of its own; added up in their order.
        for tiles in population.store.tiles.chunks(TILES_AT_A_TIME) {
            let deposit = |tile: &Tile<T>| match order {
                _ if tile.is_empty() => Vec::new(),
                1 => deposit_charge::<T, 1>(tile, width),
                _ => deposit_charge::<T, 2>(tile, width),
            };
            let parts: Vec<Vec<f64>> = self.cpu.install(|| map_tasks(items(tiles), |_, tile| deposit(tile)));
            for (tile, part) in tiles.iter().zip(&parts) {
                let reach = BELOW + tile.cells[0] + ABOVE;
                for (row, part) in part.chunks_exact(width).enumerate() {
                    let begin = (tile.corner[1] + row) * grid.pitch() + tile.corner[0];
                    rho[begin..begin + reach].iter_mut().zip(part).for_each(|(a, b)| *a += *b);
                }
            }
        }
        let q = population.species.macro_charge();
        self.cpu.install(|| {
            let mut rho = map(items(&rho), |_, r| T::from_f64(q * r));
            self.fields.complete_charge(&mut rho, smoothed);
            rho
        })
    }

    /// Tallies of the tiles, in their order.
    fn tally(&self) -> Tally {
        let mut sum = Tally::default();
        for out in &self.outboxes {
            sum += out.tally;
        }
        sum
    }
}

impl<T: Format> Stages for CpuStages<T> {
    fn begin(&mut self, measure: bool, profiler: &mut Profiler) -> Result<()> {
        profiler.stage("begin", Cost::default(), || self.cpu.install(|| self.fields.begin(measure)));
        Ok(())
    }

    fn advance(&mut self, species: usize, step: u64, measure: bool, profiler: &mut Profiler) -> Result<()> {
        let cost = self.cost(species);
        profiler.stage("advance", cost, || self.advance_tiles(species, step, measure));
        profiler.stage("collect", Cost::default(), || {
            self.cpu.install(|| collect(&self.setup.grid, &self.tiling, &self.windows, &mut self.fields.j));
        });
        let tally = self.tally();
        let population = &mut self.species[species];
        let (name, tiles) = (&population.species.name, &mut population.store.tiles);
        profiler.stage("exchange", Cost::default(), || self.cpu.install(|| deliver(name, &mut self.post, tiles, &self.outboxes)))?;
        let volume = self.setup.grid.cell_volume();
        enter(&mut population.ledger, &tally, &population.species, volume);
        if measure {
            let mass = population.species.macro_mass() * volume;
            population.kinetic = mass * tally.kinetic;
            population.momentum = tally.momentum.map(|p| mass * p);
        }
        Ok(())
    }

    fn current(&mut self, sheets: &[Sheet], profiler: &mut Profiler) -> Result<()> {
        profiler.stage("current", Cost::default(), || self.cpu.install(|| self.fields.current(sheets)));
        Ok(())
    }

    fn field(&mut self, profiler: &mut Profiler) -> Result<()> {
        profiler.stage("field", Cost::default(), || self.cpu.install(|| self.fields.field()));
        Ok(())
    }

    fn shift(&mut self, fresh: &[Particles], ahead: &[Sheet], profiler: &mut Profiler) -> Result<()> {
        check_shift(&self.setup, fresh)?;
        profiler.stage("window", Cost::default(), || {
            self.tiling = self.tiling.moved(1);
            let volume = self.setup.grid.cell_volume();
            for population in &mut self.species {
                let (store, columns) = (&mut population.store, self.tiling.tiles[0]);
                let left = self.cpu.install(|| map_tasks(chunks_mut(&mut store.tiles, columns), |_, tiles| leave_behind(&mut tiles[0])));
                store.move_on();
                let mut tally = Tally::default();
                for part in left {
                    tally += part;
                }
                enter(&mut population.ledger, &tally, &population.species, volume);
            }
            self.cpu.install(|| self.fields.shift(ahead));
        });
        for (k, p) in fresh.iter().enumerate() {
            self.inject(k, p)?;
        }
        Ok(())
    }

    fn fill(&mut self, species: usize, source: &Source<'_>) -> Result<()> {
        let population = &mut self.species[species];
        // Enough runs of tiles for all threads, each with one batch that keeps its memory.
        let run = population.store.tiles.len().div_ceil(8 * self.cpu.threads()).clamp(1, TILES_AT_A_TIME);
        let filled = |tiles: &mut [Tile<T>]| {
            let mut batch = Batch::default();
            tiles.iter_mut().try_for_each(|tile| store::fill(tile, source, &mut batch))
        };
        let tiles = &mut population.store.tiles;
        self.cpu.install(|| map_tasks(chunks_mut(tiles, run), |_, tiles| filled(tiles))).into_iter().collect::<Result<()>>()?;
        population.ledger.injected += population.store.len() as u64;
        Ok(())
    }

    fn inject(&mut self, species: usize, particles: &Particles) -> Result<()> {
        let grid = &self.setup.grid;
        let population = &mut self.species[species];
        check_particles(grid, &population.species, particles)?;
        insert(&mut population.store, particles);
        let energy: f64 = (0..particles.len())
            .map(|k| {
                let [x, y, z] = [0, 1, 2].map(|c| particles.u[c][k]);
                particles.weight.get(k).copied().unwrap_or(1.0) * kinetic_energy(Vec3 { x, y, z })
            })
            .sum();
        population.ledger.injected += particles.len() as u64;
        population.ledger.energy_in += energy * population.species.macro_mass() * grid.cell_volume();
        Ok(())
    }

    fn particles(&mut self, species: usize) -> Result<Particles> {
        Ok(export(&self.species[species].store))
    }

    fn visit(&mut self, species: usize, part: Visit<'_>, join: &mut (dyn FnMut(Vec<f64>) + Send)) -> Result<()> {
        self.cpu.install(|| visit(&self.species[species].store, part, join));
        Ok(())
    }

    fn extent(&mut self, species: usize, axis: &Bins) -> Result<[f64; 2]> {
        Ok(self.cpu.install(|| extent(&self.species[species].store, axis)))
    }

    fn bins(&mut self, species: usize, axes: &[Bins]) -> Result<Vec<f64>> {
        let population = &self.species[species];
        Ok(self.cpu.install(|| bins(&population.store, axes, population.species.weighted)))
    }

    fn follow(&mut self, species: usize, tags: &[u64]) -> Result<Vec<[f64; 5]>> {
        Ok(self.cpu.install(|| follow(&self.species[species].store, tags)))
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
        insert(&mut population.store, particles);
        Ok(())
    }

    fn component(&mut self, component: Component) -> Result<Vec<f64>> {
        Ok(self.fields.get(component))
    }

    fn cells(&mut self, component: Component, scale: f64) -> Result<Values> {
        self.cpu.install(|| self.fields.cells(component, self.setup.precision, scale))
    }

    fn charge_cells(&mut self, species: &[usize], scale: f64) -> Result<Values> {
        let mut rho = vec![0.0; self.setup.grid.len()];
        for s in species {
            let charge = self.charge(*s, false)?;
            self.cpu.install(|| {
                each((chunks_mut(&mut rho, PART), chunks(&charge, PART)), |_, (sum, charge)| {
                    sum.iter_mut().zip(charge).for_each(|(sum, r)| *sum += r);
                });
            });
        }
        let fetch = |range: Range<usize>, to: &mut [f64]| {
            to.copy_from_slice(&rho[range]);
            Ok(())
        };
        self.cpu.install(|| cells(&self.setup.grid, Quantity::Charge, self.setup.precision, scale, fetch))
    }

    fn set_component(&mut self, component: Component, values: &[f64]) -> Result<()> {
        self.fields.set(component, values);
        Ok(())
    }

    fn charge(&mut self, species: usize, smoothed: bool) -> Result<Vec<f64>> {
        let rho = self.sum_charge(species, smoothed);
        Ok(self.cpu.install(|| map(items(&rho), |_, r| r.to_f64())))
    }

    fn check_charge(&mut self, check: &ChargeCheck<'_>) -> Result<ChargeErrors> {
        let (mut rho, mut all) = (vec![0.0; self.setup.grid.len()], vec![0.0; self.setup.grid.len()]);
        for s in 0..self.species.len() {
            let charge = self.sum_charge(s, check.smoothed);
            self.cpu.install(|| {
                each((chunks_mut(&mut rho, PART), chunks_mut(&mut all, PART), chunks(&charge, PART)), |_, (rho, all, charge)| {
                    for ((rho, all), r) in rho.iter_mut().zip(all).zip(charge) {
                        let r = r.to_f64();
                        *rho += r;
                        *all += r.abs();
                    }
                });
            });
        }
        let Self { setup, fields, corners, .. } = self;
        Ok(self.cpu.install(|| corners.check_charge(&setup.grid, check, &rho, &all, [&fields.e[0], &fields.e[1]])))
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
        Ok(self.species.iter().map(|s| s.store.len() as u64).collect())
    }

    fn ledger(&mut self) -> Result<Vec<Ledger>> {
        Ok(self.species.iter().map(|s| s.ledger).collect())
    }

    fn count_work(&mut self) -> Result<()> {
        self.fields.count_work();
        Ok(())
    }

    fn work(&mut self) -> Result<f64> {
        Ok(self.fields.work())
    }

    fn auxiliary_state(&mut self) -> Result<Vec<(String, Vec<f64>)>> {
        let mut state = self.fields.auxiliary_state();
        state.push(("residual.base".into(), self.corners.base.clone()));
        state.push(("residual.variance".into(), self.corners.variance.clone()));
        for (k, s) in self.species.iter().enumerate() {
            let l = &s.ledger;
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
            s.ledger = Ledger { injected: injected as u64, removed: removed as u64, energy_in, energy_out, charge_out };
        }
        for (name, to) in [("residual.base", &mut self.corners.base), ("residual.variance", &mut self.corners.variance)] {
            if let Some((_, values)) = state.iter().find(|(n, v)| n == name && v.len() == to.len()) {
                to.copy_from_slice(values);
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
