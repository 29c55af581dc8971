//! The gas on the CPU as the trait of stages has it.

use zellige_engine::error::Result;
use zellige_engine::parallel::{each, items, items_mut, map_tasks, owned, thread};
use zellige_engine::profile::Profiler;
use zellige_engine::sim::Cost;

use super::collide::bounds_at;
use super::fly::Pass;
use super::store::{Columns, Outbox, ParticleState, Row};
use super::sums::Sums;
use super::tile::Tile;
use super::{Gas, Work, totals};
use crate::grid::Rectangle;
use crate::model::{Model, Scheme};
use crate::particles::{Particles, Placed};
use crate::stages::{IN_A_TILE, Ledger, Stages, Totals, overfull, samples_at_a_time};
use crate::walls::BOLTZMANN;

impl Stages for Gas {
    fn advance(&mut self, step: u64, sample: bool, profiler: &mut Profiler) -> Result<()> {
        if self.balance_is_due(step) {
            profiler.stage("balance", Cost::default(), || self.balance())?;
        }
        let pass = Pass { model: &self.model, tiling: &self.store.tiling, step, sample };
        let [boxes, out] = &mut self.boxes;
        let (boxes, post, scratch, table, isa, factors) = (&*boxes, &self.post, &self.scratch, &self.table, self.isa, &self.factors);
        let (cut, rank) = (&self.cut, self.links.rank());
        let name = match (self.model.collisions.scheme, sample) {
            (Scheme::None, false) => "sort, move",
            (Scheme::None, true) => "sort, sample, move",
            (_, false) => "sort, collide, move",
            (_, true) => "sort, collide, sample, move",
        };
        let particles = self.store.len() as f64;
        let bytes = bytes_of(&self.model, sample, particles);
        let cost = Cost { bytes, flops: 0.0, items: particles };
        let arrived = profiler.stage(name, cost, || {
            self.cpu.install(|| {
                // A tile of the gas is one row of the store.
                let of_tiles = self.tiles.iter_mut().zip(&mut self.store.tiles).zip(self.faces.iter_mut().zip(out)).enumerate();
                let own = of_tiles.filter_map(|(number, ((tile, rows), (faces, out)))| {
                    out.clear();
                    (cut.owner(number) == rank).then_some((number, tile, &mut rows.rows[0], faces, out))
                });
                // Each a task: in spans of an eighth of all, a thread that other work holds up would be waited for by all.
                let arrived = map_tasks(owned(own.collect()), |_, (number, tile, row, faces, out)| {
                    let mut scratch = scratch[thread()].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    Work { pass, table, number, tile, row, faces, boxes, post, out, scratch: &mut scratch, factors }.on(isa)
                });
                arrived.into_iter().sum::<usize>()
            })
        });
        self.check(arrived)?;
        if self.store.len() as u64 > IN_A_TILE {
            overfull(self.store.tiles.iter().map(|t| t.len() as u64).max().unwrap_or(0))?;
        }
        profiler.stage("route", Cost::default(), || self.route())
    }

    fn share(&self) -> Option<Vec<u32>> {
        let cells = 0..self.model.grid.len() as u32;
        let tile = |cell: u32| {
            let [x, y] = self.model.grid.cell(cell as usize);
            self.store.tiling.locate(x, y).tile as usize
        };
        (!self.links.is_alone()).then(|| cells.filter(|cell| self.owns(tile(*cell))).collect())
    }

    fn areas(&self) -> Vec<Rectangle> {
        if self.links.is_alone() { Vec::new() } else { (0..self.cut.parts()).map(|part| self.area(part)).collect() }
    }

    fn insert(&mut self, particles: &Particles) -> Result<()> {
        let (mut count, tiling, grid) = (vec![0; self.tiles.len()], self.store.tiling, &self.model.grid);
        let (cut, rank) = (&self.cut, self.links.rank());
        let tile = |cell: u32| {
            let [x, y] = grid.cell(cell as usize);
            tiling.locate(x, y).tile as usize
        };
        let own = |cell: &u32| cut.owner(tile(*cell)) == rank;
        particles.cell.iter().filter(|cell| own(cell)).for_each(|cell| count[tile(*cell)] += 1);
        let inserted: usize = count.iter().sum();
        for (tile, n) in self.store.tiles.iter_mut().zip(count).filter(|(_, n)| *n > 0) {
            let len = tile.len();
            tile.rows[0].room(len + n);
        }
        for i in (0..particles.len()).filter(|i| own(&particles.cell[*i])) {
            let body = ParticleState {
                x: particles.offset[0][i],
                y: particles.offset[1][i],
                v: [0, 1, 2].map(|c| particles.velocity[c][i]),
                rotation: particles.rotation.get(i).copied().unwrap_or(0.0),
                level: particles.level.get(i).copied().unwrap_or(0),
                tag: particles.tag.get(i).copied().unwrap_or(0),
            };
            let [x, y] = grid.cell(particles.cell[i] as usize);
            self.store.insert(x, y, usize::from(particles.species[i]), body.with_key(0));
        }
        self.inserted += inserted as u64;
        Ok(())
    }

    fn particles(&mut self) -> Result<Particles> {
        let own = self.own()?;
        self.gather_particles(own)
    }

    fn own_particles(&mut self) -> Result<(Particles, Vec<Placed>)> {
        let own = self.own()?;
        Ok((own, self.places()?))
    }

    fn raise_majorants(&mut self, speed: f64) -> Result<()> {
        let bounds = bounds_at(&self.model, speed);
        for tile in &mut self.tiles {
            for (majorant, bound) in tile.majorants.iter_mut().zip(bounds.iter().cycle()) {
                majorant.sigma_g_max = majorant.sigma_g_max.max(*bound);
            }
        }
        Ok(())
    }

    fn clear(&mut self) -> Result<()> {
        self.store.clear();
        self.tiles.iter_mut().for_each(|t| (t.ledger, t.attempts_before) = (Ledger::default(), 0));
        self.surfaces.fill(0.0);
        self.boxes.iter_mut().flatten().for_each(Outbox::clear);
        self.post.clear();
        self.inserted = 0;
        Ok(())
    }

    fn take_samples(&mut self, cells: &mut [f64], surfaces: &mut [f64]) -> Result<()> {
        self.put_cells(cells, Sums::all);
        self.gather_surfaces(surfaces)?;
        self.surfaces.fill(0.0);
        self.cpu.install(|| {
            each(items_mut(&mut self.tiles), |_, tile| {
                tile.hits.clear();
                tile.sums.clear();
            });
        });
        Ok(())
    }

    fn pending(&mut self, cells: &mut [f64], surfaces: &mut [f64]) -> Result<()> {
        // Those in single precision and of surfaces are in `extra`, tile by tile.
        self.put_cells(cells, Sums::old);
        surfaces.iter_mut().zip(&self.surfaces).for_each(|(to, from)| *to = *from);
        Ok(())
    }

    fn put_samples(&mut self, cells: &[f64], surfaces: &[f64]) -> Result<()> {
        let (species, kept, sums) = (self.model.species.len(), self.model.collisions.kept(), self.model.collisions.sums());
        let area = self.area(self.links.rank());
        for number in self.cut.tiles(self.links.rank()) {
            let tile = &mut self.tiles[number];
            let own = tile.sums.old_mut(self.store.tiling.cells_of_row() * species * kept);
            for (j, i) in (0..tile.cells[1]).flat_map(|j| (0..tile.cells[0]).map(move |i| (j, i))) {
                let (slot, cell) = (j * self.store.tiling.tile[0] + i, area.index([tile.corner[0] + i, tile.corner[1] + j]));
                let to = own[slot * species * kept..].chunks_exact_mut(kept);
                for (to, from) in to.zip(cells[cell * species * sums..][..species * sums].chunks_exact(sums)) {
                    to.copy_from_slice(&from[..kept]);
                }
            }
        }
        if self.links.is_first() {
            self.surfaces.copy_from_slice(surfaces);
        }
        Ok(())
    }

    fn ledger(&mut self) -> Result<Ledger> {
        let mut all = Ledger { injected: self.inserted, ..Ledger::default() };
        for l in self.tiles.iter().map(|t| &t.ledger) {
            all.injected += l.injected;
            all.removed += l.removed;
            all.collisions += l.collisions;
            all.attempts += l.attempts;
            all.exceeded += l.exceeded;
            all.stuck += l.stuck;
            all.copied += l.copied;
            all.dropped += l.dropped;
        }
        let Ledger { injected, removed, collisions, attempts, exceeded, stuck, copied, dropped } = &mut all;
        let counts = [injected, removed, collisions, attempts, exceeded, stuck, copied, dropped];
        let mut sums = counts.each_ref().map(|count| **count);
        self.links.sum(&mut sums)?;
        counts.into_iter().zip(sums).for_each(|(count, sum)| *count = sum);
        Ok(all)
    }

    fn totals(&mut self) -> Result<Totals> {
        if self.model.weighted() {
            // Particles on their way have no cell yet: put in, they have the weight of their cell.
            self.complete_exchange()?;
        }
        let (model, layout) = (&self.model, self.store.layout());
        let add = |sum: &mut Totals, s: usize, b: &ParticleState| {
            let kind = &model.species[s];
            let v = b.v.map(f64::from);
            sum.particles += 1;
            for c in 0..3 {
                sum.momentum[c] += kind.mass * v[c];
            }
            sum.translation += 0.5 * kind.mass * v.iter().map(|v| v * v).sum::<f64>();
            sum.internal += BOLTZMANN * (f64::from(b.rotation) + kind.vibration.energy(b.level));
        };
        // Tile by tile in parallel, then in their order: the same sums whatever the threads.
        let parts: Vec<Totals> = self.cpu.install(|| {
            let of = |rows: &mut [Row], out: &Outbox, weights: &[f32]| {
                let mut sum = Totals::default();
                for row in rows {
                    let n = row.len();
                    totals::add(model, &Columns::of(row), n, weights, &mut sum);
                }
                for p in out.iter() {
                    add(&mut sum, layout.cell_and_kind(p.key).1, &ParticleState::of(&p, &layout));
                }
                sum
            };
            map_tasks((items_mut(&mut self.store.tiles), items(&self.boxes[0]), items(&self.tiles)), |_, (tile, out, own)| {
                of(&mut tile.rows, out, &own.weights)
            })
        });
        let of_tile = |tile: usize| {
            let Totals { particles, momentum: [x, y, z], translation, internal } = parts[tile];
            vec![f64::from_bits(particles), x, y, z, translation, internal]
        };
        let mut all = Totals::default();
        for part in self.gather(of_tile)? {
            all.particles += part[0].to_bits();
            for c in 0..3 {
                all.momentum[c] += part[1 + c];
            }
            all.translation += part[4];
            all.internal += part[5];
        }
        let [x, y, z] = all.momentum;
        let mut sums = [f64::from_bits(all.particles), x, y, z, all.translation, all.internal];
        self.links.first_values(&mut sums)?;
        let [particles, x, y, z, translation, internal] = sums;
        all = Totals { particles: particles.to_bits(), momentum: [x, y, z], translation, internal };
        let weight = self.model.weight;
        all.momentum = all.momentum.map(|p| p * weight);
        all.translation *= weight;
        all.internal *= weight;
        Ok(all)
    }

    fn extra(&mut self) -> Result<Vec<f64>> {
        let ledger = self.ledger()?;
        self.all_numbers(&ledger)
    }

    fn set_extra(&mut self, extra: &[f64]) -> Result<(), String> {
        self.set_all_numbers(extra)
    }

    fn memory(&self) -> u64 {
        let tiles: usize =
            self.tiles.iter().map(|t| 12 * t.majorants.capacity() + t.sums.bytes() + 4 * t.rate.len() + size_of::<Tile>()).sum();
        let boxes: usize = self.boxes.iter().flatten().map(Outbox::memory).sum();
        (self.store.memory() + tiles + boxes + self.post.memory()) as u64
    }
}

/// Model traffic of a step: a particle is read and written once, the sums of a cell and species read and written when sampled, in
/// single precision where those of several samples are.
pub(crate) fn bytes_of(model: &Model, sample: bool, particles: f64) -> f64 {
    let c = &model.collisions;
    let particle = 22.0 + if c.rotation { 4.0 } else { 0.0 } + if c.vibration { 4.0 } else { 0.0 };
    let number = if samples_at_a_time(model.per_cell) > 1 { 4.0 } else { 8.0 };
    2.0 * particle * particles + if sample { 2.0 * number * (c.kept() * model.grid.len() * model.species.len()) as f64 } else { 0.0 }
}
