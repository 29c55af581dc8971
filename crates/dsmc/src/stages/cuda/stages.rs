//! [`Stages`] on a GPU.

use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;
use zellige_engine::record::ValuesOnGpu;
use zellige_engine::sim::Cost;

use super::arguments::Counters;
use super::beyond::Beyond;
use super::{Gas, WATCH};
use crate::grid::Rectangle;
use crate::model::{Scheme, purpose};
use crate::particles::{Particles, Placed};
use crate::stages::cpu::collide::bounds_at;
use crate::stages::cpu::{Stream, bytes_of};
use crate::stages::shares::{gather, gather_particles, places};
use crate::stages::{Batches, ColumnsOnGpu, Ledger, SURFACE_SUMS, Stages, Totals};
use crate::walls::BOLTZMANN;

/// Blocks of `trace_flights` that take injected particles in turn, and those for all others: of a small gas, whose few are spread
/// over as many warps as run at once, and of a large one. Both kinds run at once on a GPU with 132 multiprocessors.
const FEW: [u32; 2] = [96, 300];
const MANY: [u32; 2] = [132, 396];

impl Gas {
    /// Number of particles from each line in a step: before its schedule, before each species of its steady part; at the end all.
    fn groups_of(&self, step: u64) -> Vec<u32> {
        let model = &self.model;
        let mut groups = vec![0_u32];
        let mut all = 0_u64;
        for (s, source) in model.sources.iter().enumerate() {
            let mut add = |n: u64| {
                all += n;
                groups.push(all.min(u64::from(u32::MAX)) as u32);
            };
            add(source.count(step));
            for (k, species) in model.species.iter().enumerate() {
                let mean = source.steady(species.mass, model.fractions[k]) * model.dt / model.weight;
                let mut stream = Stream::with_room(purpose::SOURCE, model.seed, step, 1 << 48 | (s as u64) << 16 | k as u64, 2);
                add((mean + stream.open()) as u64);
            }
        }
        groups
    }

    /// Makes sure that there is room for injected particles and, where cells have weights, for copies: those of a step come in the
    /// next one. Looks at the device only where the host's bound is too large. How many copies a step makes is known from the steps
    /// before, of which the first are looked at one by one; where there are more than ever before nothing is lost in silence: the
    /// device stops, and the next look says so.
    fn prepare(&mut self, coming: u64, profiler: &mut Profiler) -> Result<()> {
        let (weighted, parts) = (self.model.weighted(), self.beyond.is_some());
        let watched = self.store.config.follows && self.looked + WATCH <= self.steps || weighted && self.steps <= WATCH;
        if self.most + coming + self.copies > self.store.capacity as u64 || watched {
            self.flush(profiler)?;
            let (counters, used) = (self.whole()?, self.store.used()? as u64);
            let made = counters.copied + counters.received;
            let before = std::mem::replace(&mut self.copied, made);
            if (weighted || parts) && self.steps > self.looked {
                let each = (made - before) / (self.steps - self.looked);
                self.rate = self.rate.max(each);
                self.copies = 4 * self.rate + used / if weighted { 64 } else { 1024 } + 64;
            }
            // Copies come in the next step; what came from other parts is there.
            self.most = used + if weighted { made - before } else { 0 };
            self.looked = self.steps;
            let wanted = self.most + coming + self.copies;
            if wanted + wanted / 64 > self.store.capacity as u64 {
                self.store.reserve((wanted + wanted / self.spare() as u64) as usize)?;
            }
        }
        self.most += coming + self.copies;
        Ok(())
    }

    /// Part of the particles for which there is room besides: of a small gas more, since each look at the device takes it a step or
    /// two.
    fn spare(&self) -> usize {
        if self.store.config.recorded {
            2
        } else if self.model.weighted() {
            4
        } else if self.beyond.is_some() {
            8
        } else {
            16
        }
    }

    /// True if injections are counted before a small gas has moved, which takes no time of its own then: not where they follow the
    /// gas within. Of others a block of `gather` does it.
    fn tallied(&self) -> bool {
        self.store.config.recorded && !self.store.config.follows
    }

    /// Flights that hit something, and injected particles.
    fn trace_flights(&mut self, step: u64, sample: bool) -> Result<()> {
        let (st, domain, geometry, inflow) = (self.store.argument(), self.domain(step, sample), self.geometry(), self.inflow());
        let (store, fed) = (&self.store, self.is_fed());
        let [emitters, wanderers] = if store.config.recorded { FEW } else { MANY };
        // All blocks of a large gas that injects none are for the others.
        let (emitters, wanderers) = match (fed, store.config.recorded) {
            (true, _) => (emitters, wanderers),
            (false, true) => (0, wanderers),
            (false, false) => (0, emitters + wanderers),
        };
        // SAFETY: the arguments as declared, so many links; offsets have an entry a face and species and one more, groups one a line and group.
        unsafe {
            if let Some([_, _, gather]) = &store.kernels.exchange {
                let (links, linked) = self.beyond.as_ref().map_or((0, 0), Beyond::sent);
                let (blocks, counting) = ((linked + store.tiling.len() as u32).div_ceil(8).max(1), u32::from(fed));
                let launch = store.early(gather.launch(counting + blocks, 256)).arg(st).arg(domain).arg(inflow);
                launch.arg(counting).arg(links).arg(linked).run()?;
            } else if fed && !self.tallied() {
                store.early(store.kernels.tally_faces.launch(1, 1024)).arg(st).arg(domain).arg(inflow).run()?;
            }
            let launch = store.early(store.kernels.trace_flights.launch(emitters + wanderers, 128));
            launch.arg(st).arg(domain).arg(geometry).arg(inflow).arg(emitters).run()
        }
    }

    /// Puts the launches of a step on the stream.
    pub(super) fn launch(&mut self, step: u64, sample: bool, profiler: &mut Profiler) -> Result<()> {
        let cuda = self.cuda.clone();
        if let Some(beyond) = &self.beyond {
            self.store.beyond = beyond.argument();
        }
        let clock = Some(&self.recorded.clock).filter(|_| self.store.config.recorded);
        let tallied = self.is_fed() && self.tallied();
        profiler.stage_on(&cuda, "exchange", Cost::default(), || {
            self.store.exchange(clock, self.domain(step, sample), self.inflow(), tallied)
        })?;
        let name = match (self.model.collisions.scheme, sample) {
            (Scheme::None, false) => "sort, move",
            (Scheme::None, true) => "sort, sample, move",
            (_, false) => "sort, collide, move",
            (_, true) => "sort, collide, sample, move",
        };
        profiler.stage_on(&cuda, name, self.cost(sample), || self.store.advance(1 + usize::from(sample), self.gas(step), self.pass()))?;
        let name = if self.is_fed() { "flights, inflow" } else { "flights" };
        profiler.stage_on(&cuda, name, Cost::default(), || self.trace_flights(step, sample))?;
        let Some(beyond) = &self.beyond else { return Ok(()) };
        let (kernels, store, inflow) = (&self.store.kernels, self.store.argument(), self.inflow());
        beyond.exchange(kernels, &store, inflow, profiler)
    }

    /// Model traffic of a step.
    pub(super) fn cost(&self, sample: bool) -> Cost {
        let particles = self.most as f64;
        Cost { bytes: bytes_of(&self.model, sample, particles), flops: 0.0, items: particles }
    }

    /// Puts everything in order, so that none is on its way.
    pub(super) fn complete_exchange(&mut self) -> Result<()> {
        self.flush(&mut Profiler::off())?;
        if self.model.weighted() {
            self.prepare(0, &mut Profiler::off())?;
        }
        // The clock has two slots in turn, and this turns without a step.
        self.recorded.next = None;
        self.store.exchange(None, self.domain(0, false), self.inflow(), false)?;
        self.store.advance(0, self.gas(0), self.pass())?;
        self.store.turn();
        Ok(())
    }
}

impl Stages for Gas {
    fn advance(&mut self, step: u64, sample: bool, profiler: &mut Profiler) -> Result<()> {
        self.steps += 1;
        if sample {
            self.averages.reserve()?;
        }
        let fed = self.is_fed();
        let groups = if fed { self.groups_of(step) } else { Vec::new() };
        if fed {
            self.prepare(self.tables.bound + u64::from(groups.last().copied().unwrap_or(0)), profiler)?;
        } else if self.model.weighted() || self.beyond.is_some() {
            self.prepare(0, profiler)?;
        }
        if groups != self.last_groups {
            self.flush(profiler)?;
            self.cuda.upload(&mut self.groups, &groups)?;
            self.last_groups = groups;
        }
        if self.store.config.recorded {
            self.keep_back(step, sample, profiler)?;
        } else {
            self.launch(step, sample, profiler)?;
            self.store.turn();
        }
        if sample && self.averages.count() {
            self.flush(profiler)?;
            self.averages.fold(&self.store.kernels.fold)?;
        }
        self.look_beyond()
    }

    fn areas(&self) -> Vec<Rectangle> {
        self.all_areas()
    }

    fn order(&self) -> Option<Vec<u32>> {
        Some(self.store.cells())
    }

    fn insert(&mut self, particles: &Particles) -> Result<()> {
        self.put(particles, false)
    }

    fn put_back(&mut self, particles: &Particles) -> Result<()> {
        self.put(particles, true)
    }

    fn particles(&mut self) -> Result<Particles> {
        self.complete_exchange()?;
        let own = self.store.export()?;
        let Some(Beyond { links, cut, .. }) = &self.beyond else { return Ok(own) };
        let (tiling, first) = (&self.store.tiling, self.store.first()?);
        let count = |place: usize| (first[tiling.at(place) + tiling.layers] - first[tiling.at(place)]) as usize;
        gather_particles(links, cut, count, own)
    }

    fn own_particles(&mut self) -> Result<(Particles, Vec<Placed>)> {
        self.complete_exchange()?;
        let own = self.store.export()?;
        let Some(Beyond { links, cut, .. }) = &self.beyond else {
            let all = Placed { first: 0, own: 0..own.len() };
            return Ok((own, vec![all]));
        };
        let (tiling, first) = (&self.store.tiling, self.store.first()?);
        let count = |place: usize| (first[tiling.at(place) + tiling.layers] - first[tiling.at(place)]) as usize;
        Ok((own, places(links, cut, count)?))
    }

    fn raise_majorants(&mut self, speed: f64) -> Result<()> {
        self.flush(&mut Profiler::off())?;
        let bounds = bounds_at(&self.model, speed);
        let [majorants, ..] = &mut self.majorants;
        let mut values = self.cuda.download(majorants)?;
        let cells = values.len() / bounds.len();
        for (of_pair, bound) in values.chunks_exact_mut(cells.max(1)).zip(bounds) {
            for value in of_pair {
                *value = value.max(bound);
            }
        }
        self.cuda.upload(majorants, &values)
    }

    fn columns_on_gpu(&mut self, species: usize, wanted: [bool; 5]) -> Result<Option<ColumnsOnGpu>> {
        if self.beyond.is_none() { self.copied_columns(species, wanted).map(Some) } else { Ok(None) }
    }

    fn set_velocities_on_gpu(&mut self, species: usize, velocity: [Option<&ValuesOnGpu>; 3]) -> Result<Option<f64>> {
        self.take_velocities(species, velocity)
    }

    fn clear(&mut self) -> Result<()> {
        self.flush(&mut Profiler::off())?;
        self.store.clear()?;
        self.cuda.upload(&mut self.store.counters, &[Counters::default()])?;
        (self.inserted, self.most, self.copied) = (0, 0, 0);
        Ok(())
    }

    fn take_samples(&mut self, cells: &mut [f64], surfaces: &mut [f64]) -> Result<()> {
        self.fold()?;
        self.averages.look(cells)?;
        self.averages.clear()?;
        self.take_surfaces(surfaces)
    }

    fn batches(&mut self) -> Option<&mut dyn Batches> {
        Some(self)
    }

    fn pending(&mut self, cells: &mut [f64], surfaces: &mut [f64]) -> Result<()> {
        self.flush(&mut Profiler::off())?;
        self.averages.look(cells)?;
        self.look_at_surfaces(surfaces)
    }

    fn put_samples(&mut self, cells: &[f64], surfaces: &[f64]) -> Result<()> {
        self.flush(&mut Profiler::off())?;
        self.averages.put(cells)?;
        // All of them are the first part's, from which the others' differ then.
        let first = self.beyond.as_ref().is_none_or(|beyond| beyond.links.is_first());
        let surfaces = surfaces.iter().map(|v| if first { *v } else { 0.0 });
        let whole: Vec<u64> = surfaces.enumerate().map(|(i, v)| (v * self.surface_unit(i)).round() as i64 as u64).collect();
        self.cuda.upload(&mut self.surfaces, &whole)
    }

    fn ledger(&mut self) -> Result<Ledger> {
        self.flush(&mut Profiler::off())?;
        let c = self.whole()?;
        let mut sums = [self.inserted + c.injected, c.removed, c.collisions, c.attempts, c.exceeded, c.stuck, c.copied, c.dropped];
        if let Some(beyond) = &self.beyond {
            beyond.links.sum(&mut sums)?;
        }
        let [injected, removed, collisions, attempts, exceeded, stuck, copied, dropped] = sums;
        Ok(Ledger { injected, removed, collisions, attempts, exceeded, stuck, copied, dropped })
    }

    fn totals(&mut self) -> Result<Totals> {
        self.flush(&mut Profiler::off())?;
        // Particles on their way have no cell whose weight they could have, and injected ones no tile.
        if self.model.weighted() || self.is_fed() {
            self.complete_exchange()?;
        }
        let tiles = self.store.tiling.own_len();
        let launch = self.store.kernels.totals.launch(tiles as u32, 256);
        let launch = launch.arg(self.store.argument()).arg(&self.tables.mass).arg(&self.tables.theta).arg(&self.tables.weights);
        let launch = launch.arg(&mut self.totals);
        if tiles > 0 {
            // SAFETY: the arguments as declared; six sums a block.
            unsafe { launch.run()? };
        }
        let own = self.cuda.download(&self.totals)?;
        let all = match &self.beyond {
            Some(Beyond { links, cut, .. }) => {
                // Places of this part follow each other as its tiles do.
                let (layers, places) = (self.store.tiling.layers, cut.tiles(links.rank()).collect::<Vec<_>>());
                let number = |place: usize| places.binary_search(&place).unwrap_or(0);
                gather(links, cut, |place| own[6 * layers * number(place)..][..6 * layers].to_vec())?.concat()
            }
            None => own,
        };
        let mut sums = [0.0; 6];
        for tile in all.chunks_exact(6) {
            sums.iter_mut().zip(tile).for_each(|(sum, v)| *sum += v);
        }
        if let Some(beyond) = &self.beyond {
            beyond.links.first_values(&mut sums)?;
        }
        let weight = self.model.weight;
        Ok(Totals {
            particles: sums[0] as u64,
            momentum: [1, 2, 3].map(|c| weight * sums[c]),
            translation: weight * sums[4],
            internal: weight * BOLTZMANN * sums[5],
        })
    }

    fn extra(&mut self) -> Result<Vec<f64>> {
        self.all_numbers()
    }

    fn set_extra(&mut self, extra: &[f64]) -> Result<(), String> {
        self.set_all_numbers(extra)
    }

    fn memory(&self) -> u64 {
        self.pool.allocated()
    }

    fn memory_peak(&self) -> u64 {
        self.pool.peak()
    }

    fn wait(&mut self) -> Result<()> {
        self.flush(&mut Profiler::off())?;
        self.whole().map(|_| ())
    }
}

impl Gas {
    /// Puts particles in, those that were here as they lay.
    fn put(&mut self, particles: &Particles, back: bool) -> Result<()> {
        self.flush(&mut Profiler::off())?;
        let (here, particles) = (self.store.used()?, &*self.own_of(particles));
        if here > 0 {
            let mut all = self.particles()?;
            all.append(particles.clone());
            self.store.clear()?;
            self.store.fill(&all, false)?;
        } else {
            let n = particles.len();
            // Room for injections until the host looks again.
            let spare = if self.is_fed() || self.beyond.is_some() {
                n / self.spare() + 8 * self.tables.bound as usize + 2 * self.copies as usize + 1024
            } else {
                0
            };
            self.store.reserve((n + spare).max(1))?;
            self.store.fill(particles, back)?;
        }
        self.inserted += particles.len() as u64;
        self.most = self.store.used()? as u64;
        Ok(())
    }

    /// Has all sums in double precision.
    pub(super) fn fold(&mut self) -> Result<()> {
        self.flush(&mut Profiler::off())?;
        if self.averages.unfolded() {
            self.averages.fold(&self.store.kernels.fold)?;
        }
        Ok(())
    }

    /// Sets `surfaces` to what they got since the last call.
    pub(super) fn take_surfaces(&mut self, surfaces: &mut [f64]) -> Result<()> {
        self.look_at_surfaces(surfaces)?;
        self.cuda.fill_zero(&mut self.surfaces)
    }

    /// Sets `surfaces` to what they got, at the first part.
    fn look_at_surfaces(&self, surfaces: &mut [f64]) -> Result<()> {
        let mut found = self.cuda.download(&self.surfaces)?;
        if let Some(beyond) = &self.beyond {
            // Whole numbers, some of them below 0, at the first part.
            let (n, all) = (found.len(), beyond.links.joined_at_first(found)?);
            found = (0..n).map(|i| all.iter().skip(i).step_by(n).fold(0, |sum: u64, v| sum.wrapping_add(*v))).collect();
        }
        for (i, (to, from)) in surfaces.iter_mut().zip(found).enumerate() {
            *to = from as i64 as f64 / self.surface_unit(i);
        }
        Ok(())
    }

    /// Whole numbers of sum `i` of the surfaces per real molecule, kg m/s or J.
    fn surface_unit(&self, i: usize) -> f64 {
        let fine = match i % SURFACE_SUMS {
            0 => self.fine[0],
            4 => self.fine[2],
            _ => self.fine[1],
        };
        fine / self.model.weight
    }
}
