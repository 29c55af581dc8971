//! [`Stages`] on a GPU.

use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;
use zellige_engine::sim::Cost;

use super::arguments::Counters;
use super::store::TOTAL_BLOCKS;
use super::{Gas, WATCH};
use crate::model::{Scheme, purpose};
use crate::particles::Particles;
use crate::stages::cpu::{Stream, bytes_of};
use crate::stages::{Batches, Ledger, SURFACE_SUMS, Stages, Totals};
use crate::walls::BOLTZMANN;

/// Blocks of `trace_flights` that take injected particles in turn, and those for all others: of a small gas, whose few are spread
/// over as many warps as run at once, and of a large one.
const FEW: [u32; 2] = [96, 300];
const MANY: [u32; 2] = [264, 528];

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
        let weighted = self.model.weighted();
        let watched = self.store.config.follows && self.looked + WATCH <= self.steps || weighted && self.steps <= WATCH;
        if self.most + coming + self.copies > self.store.capacity as u64 || watched {
            self.flush(profiler)?;
            let (made, used) = (self.whole()?.copied, self.store.used()? as u64);
            let before = std::mem::replace(&mut self.copied, made);
            if weighted {
                let each = (made - before) / (self.steps - self.looked).max(1);
                self.rate = self.rate.max(each);
                self.copies = 4 * self.rate + used / 64 + 64;
            }
            self.most = used + made - before;
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
        } else {
            16
        }
    }

    /// True if injections are counted before the gas has moved, which takes no time of its own then: not where they follow the gas
    /// within.
    fn tallied(&self) -> bool {
        self.store.config.recorded && !self.store.config.follows
    }

    /// Flights that hit something, and injected particles.
    fn trace_flights(&mut self, step: u64, sample: bool) -> Result<()> {
        let (st, domain, geometry, inflow) = (self.store.argument(), self.domain(step, sample), self.geometry(), self.inflow());
        let (store, fed) = (&self.store, self.is_fed());
        let [emitters, wanderers] = if store.config.recorded { FEW } else { MANY };
        let emitters = if fed { emitters } else { 0 };
        // SAFETY: the arguments as declared; offsets have an entry a face and species and one more, groups one a line and group.
        unsafe {
            if let Some([_, _, gather]) = &store.kernels.exchange {
                gather.launch((store.tiling.len() as u32).div_ceil(8), 256).arg(st).run()?;
            }
            if fed && !self.tallied() {
                store.early(store.kernels.tally_faces.launch(1, 1024)).arg(st).arg(domain).arg(inflow).run()?;
            }
            let launch = store.early(store.kernels.trace_flights.launch(emitters + wanderers, 128));
            launch.arg(st).arg(domain).arg(geometry).arg(inflow).arg(emitters).run()
        }
    }

    /// Puts the launches of a step on the stream.
    pub(super) fn launch(&mut self, step: u64, sample: bool, profiler: &mut Profiler) -> Result<()> {
        let cuda = self.cuda.clone();
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
        profiler.stage_on(&cuda, name, Cost::default(), || self.trace_flights(step, sample))
    }

    /// Model traffic of a step.
    pub(super) fn cost(&self, sample: bool) -> Cost {
        let particles = self.most as f64;
        Cost { bytes: bytes_of(&self.model, sample, particles), flops: 0.0, items: particles }
    }

    /// Puts everything in order, so that none is on its way.
    fn complete_exchange(&mut self) -> Result<()> {
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
        } else if self.model.weighted() {
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
        Ok(())
    }

    fn order(&self) -> Option<Vec<u32>> {
        Some(self.store.cells())
    }

    fn insert(&mut self, particles: &Particles) -> Result<()> {
        self.flush(&mut Profiler::off())?;
        let here = self.store.used()?;
        if here > 0 {
            let mut all = self.particles()?;
            all.append(particles.clone());
            self.store.clear()?;
            self.store.fill(&all)?;
        } else {
            let n = particles.len();
            // Room for injections until the host looks again.
            let spare = if self.is_fed() { n / self.spare() + 8 * self.tables.bound as usize + 1024 } else { 0 };
            self.store.reserve((n + spare).max(1))?;
            self.store.fill(particles)?;
        }
        self.inserted += particles.len() as u64;
        self.most = self.store.used()? as u64;
        Ok(())
    }

    fn particles(&mut self) -> Result<Particles> {
        self.complete_exchange()?;
        self.store.export()
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
        let whole: Vec<u64> = surfaces.iter().enumerate().map(|(i, v)| (v * self.surface_unit(i)).round() as i64 as u64).collect();
        self.cuda.upload(&mut self.surfaces, &whole)
    }

    fn ledger(&mut self) -> Result<Ledger> {
        self.flush(&mut Profiler::off())?;
        let c = self.whole()?;
        Ok(Ledger {
            injected: self.inserted + c.injected,
            removed: c.removed,
            collisions: c.collisions,
            attempts: c.attempts,
            exceeded: c.exceeded,
            stuck: c.stuck,
            copied: c.copied,
            dropped: c.dropped,
        })
    }

    fn totals(&mut self) -> Result<Totals> {
        self.flush(&mut Profiler::off())?;
        if self.model.weighted() {
            self.complete_exchange()?;
        }
        let launch = self.store.kernels.totals.launch(TOTAL_BLOCKS, 256);
        let launch = launch.arg(self.store.argument()).arg(&self.tables.mass).arg(&self.tables.theta).arg(&self.tables.weights);
        let launch = launch.arg(&mut self.totals);
        // SAFETY: the arguments as declared; six sums a block.
        unsafe { launch.run()? };
        let mut sums = [0.0; 6];
        for block in self.cuda.download(&self.totals)?.chunks_exact(6) {
            sums.iter_mut().zip(block).for_each(|(sum, v)| *sum += v);
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
        let l = self.ledger()?;
        let counts = l.numbers(self.model.weighted());
        // One more number than the CPU's, whose tiles are others.
        let mut extra: Vec<f64> = std::iter::once(self.store.tiling.len() as f64).chain(counts).collect();
        for column in &self.majorants {
            extra.extend(self.cuda.download(column)?.into_iter().map(f64::from));
        }
        extra.extend(self.cuda.download(&self.moving)?);
        extra.extend(self.store.lengths()?);
        extra.extend(self.averages.numbers()?);
        Ok(extra)
    }

    fn set_extra(&mut self, extra: &[f64]) -> Result<(), String> {
        self.flush(&mut Profiler::off()).map_err(|e| e.to_string())?;
        let [a, b, c] = self.majorants.each_ref().map(zellige_engine::cuda::Buffer::len);
        let counts = 1 + Ledger::length(self.model.weighted());
        let expected = counts + a + b + c + self.moving.len() + self.store.length_count();
        let tiles = self.store.tiling.len() as f64;
        if !self.averages.lengths().map(|n| expected + n).contains(&extra.len()) || extra[0] != tiles {
            return Err(
                "the state of the collisions was written on the CPU or for other tiles; resume it on the device that wrote it".into()
            );
        }
        let word = |e: zellige_engine::error::Error| e.to_string();
        let n = Ledger::from_numbers(&extra[1..counts]);
        let mut at = counts;
        for column in &mut self.majorants {
            let values: Vec<f32> = extra[at..at + column.len()].iter().map(|v| *v as f32).collect();
            at += column.len();
            self.cuda.upload(column, &values).map_err(word)?;
        }
        let (moving, rest) = extra[at..].split_at(self.moving.len());
        let (lengths, recent) = rest.split_at(self.store.length_count());
        if !self.store.set_lengths(lengths).map_err(word)? {
            return Err("particles are not as many as tiles that share a cell had".into());
        }
        self.cuda.upload(&mut self.moving, moving).map_err(word)?;
        self.averages.set_numbers(recent).map_err(word)?;
        let kept = self.store.counters().map_err(word)?;
        let counters = Counters {
            injected: n.injected,
            removed: n.removed,
            collisions: n.collisions,
            attempts: n.attempts,
            exceeded: n.exceeded,
            stuck: n.stuck,
            copied: n.copied,
            dropped: n.dropped,
            ..kept
        };
        (self.inserted, self.copied) = (0, n.copied);
        self.cuda.upload(&mut self.store.counters, &[counters]).map_err(word)
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

    /// Sets `surfaces` to what they got.
    fn look_at_surfaces(&self, surfaces: &mut [f64]) -> Result<()> {
        let found = self.cuda.download(&self.surfaces)?;
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
