//! Diagnostics of particles on the device: `particle_diagnostics.cu`; and those on the host, some pages at a time.

use zellige_engine::cuda::{Buffer, Downloads, Launch};
use zellige_engine::error::Result;
use zellige_engine::parallel::{items, map_tasks};

use super::arguments;
use super::program::KernelConfig;
use super::store::Store;
use super::{CudaStages, Population};
use crate::particles::Particles;
use crate::stages::{Bins, BinsToCome, Visit};

/// Bytes of pages that the host has at a time.
const WINDOW: usize = 1 << 26;
/// Particles that one task tells of.
const PORTION: usize = 1 << 16;
/// Blocks that find an extent.
const BLOCKS: usize = 2048;

impl Population {
    /// Has the particles counted, for `totals`.
    pub(super) fn number(&self) -> Result<()> {
        let launch = self.store.kernels.number.launch(1, 1024).arg(self.store.argument());
        // SAFETY: a store, and the last of five numbers.
        unsafe { launch.arg(self.totals.from(4)).run() }
    }

    /// Sums of the last measured step, and the number of particles when `number` was called last: after a wait for it.
    pub(super) fn totals(&self) -> [f64; 5] {
        std::array::from_fn(|c| self.totals.get(c))
    }
}

impl CudaStages {
    /// With the domain and the store of a species as arguments.
    fn of<'a>(&self, launch: Launch<'a>, species: usize) -> Launch<'a> {
        let population = &self.species[species];
        launch.arg(population.domain()).arg(population.store.argument())
    }

    /// Adds the charge of a species to the sums at hand, which are zero, the first component of them.
    pub(super) fn sum_charge(&mut self, species: usize) -> Result<()> {
        let population = &self.species[species];
        let launch = population.store.kernels.charge.launch(population.store.all_units() as u32, 256);
        let launch = self.push(self.of(launch, species), population);
        // SAFETY: the arguments as declared; the sums have room for three times as many.
        unsafe { launch.arg(&self.sums[self.adding]).run() }
    }

    /// Has the least and greatest finite value of a column found in each of so many blocks, two numbers each.
    fn extents(&mut self, species: usize, axis: &Bins) -> Result<(&Buffer<f64>, usize)> {
        if self.extents.is_empty() {
            self.extents = self.pool.alloc_zeros(2 * BLOCKS, "pic: extent of a histogram")?;
        }
        let store = &self.species[species].store;
        let blocks = store.all_units().min(BLOCKS);
        let launch = self.of(store.kernels.extent.launch(blocks as u32, 256), species);
        // SAFETY: as declared; two numbers a block.
        unsafe { launch.arg(arguments::Bins::new(axis)).arg(&self.extents).run()? };
        Ok((&self.extents, blocks))
    }

    /// Least and greatest finite value of a column. Waits.
    pub(super) fn extent_of(&mut self, species: usize, axis: &Bins) -> Result<[f64; 2]> {
        let cuda = self.cuda.clone();
        let (extents, blocks) = self.extents(species, axis)?;
        let found = cuda.download_range(extents, 0..2 * blocks)?;
        let own =
            found.as_chunks::<2>().0.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[a, b], [low, high]| [a.min(*low), b.max(*high)]);
        let mut ends = [-own[0], own[1]];
        self.part.links().max(&mut ends)?;
        Ok([-ends[0], ends[1]])
    }

    /// Begins to count this part's weights in the bins of one axis or two, of which those `measured` go over all their values.
    pub(super) fn begin_bins_of(&mut self, species: usize, axes: &[Bins], measured: [bool; 2]) -> Result<BinsToCome> {
        let count: usize = axes.iter().map(|a| a.count).product();
        let cuda = self.cuda.clone();
        let mut histograms = self.histograms.take();
        let begun = Downloads::of(&mut histograms, &cuda, "pic: bins of a histogram")?.begin_filled(2 * count + 4, |sums| {
            cuda.fill_zero(sums)?;
            let bins = [0, 1].map(|k| axes.get(k).map_or_else(arguments::Bins::all, arguments::Bins::new));
            for (k, bins) in bins.iter().enumerate() {
                let blocks = if measured[k] { self.extents(species, &axes[k])?.1 } else { 0 };
                let launch = self.species[species].store.kernels.edges.launch(1, 256).arg(&self.extents).arg(blocks as u32);
                // SAFETY: as declared; two numbers a block, and room for two of each axis behind the sums.
                unsafe { launch.arg(*bins).arg(sums.from(2 * count + 2 * k)).run()? };
            }
            let store = &self.species[species].store;
            let launch = self.of(store.kernels.bins.launch(store.all_units() as u32, 256), species);
            // SAFETY: as declared; two words for each pair of bins, and four numbers.
            unsafe { launch.arg(bins[0]).arg(bins[1]).arg(sums).run() }
        });
        self.histograms = histograms;
        Ok(BinsToCome::new(begun?))
    }

    /// Weights in the bins of one axis or two. Waits.
    pub(super) fn sums_in(&mut self, species: usize, axes: &[Bins]) -> Result<Vec<f64>> {
        let own = self.begin_bins_of(species, axes, [false; 2])?;
        let words = own.words()?;
        let n = words.len();
        let mut sums = vec![[0_u64; 2]; n / 2];
        for part in self.part.joined(words.to_vec(), false)?.chunks_exact(n) {
            for (sum, [whole, rest]) in sums.iter_mut().zip(part.as_chunks::<2>().0) {
                let (more, carry) = sum[1].overflowing_add(*rest);
                *sum = [sum[0] + whole + u64::from(carry), more];
            }
        }
        Ok(sums.iter().map(BinsToCome::weight).collect())
    }

    /// Places in cells and momenta of particles by their tags. Waits.
    pub(super) fn followed(&mut self, species: usize, tags: &[u64]) -> Result<Vec<[f64; 5]>> {
        let store = &self.species[species].store;
        if !store.kernel_config.tagged || tags.is_empty() {
            return Ok(vec![[f64::NAN; 5]; tags.len()]);
        }
        let wanted = self.pool.buffer_from(tags, "pic: tags to follow")?;
        let out = self.pool.buffer_from(&vec![f64::NAN; 5 * tags.len()], "pic: particles followed")?;
        let launch = self.of(store.kernels.follow.launch(store.all_units() as u32, 256), species);
        // SAFETY: as declared; five numbers for each of the tags, which rise.
        unsafe { launch.arg(&wanted).arg(tags.len() as u32).arg(&out).run()? };
        let mut points = vec![[f64::NAN; 5]; tags.len()];
        for part in self.part.joined(self.cuda.download(&out)?, true)?.chunks_exact(5 * tags.len()) {
            let found = points.iter_mut().zip(part.as_chunks::<5>().0).filter(|(_, point)| !point[0].is_nan());
            found.for_each(|(to, point)| *to = *point);
        }
        Ok(points)
    }
}

/// A page in use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page {
    pub(super) number: u32,
    /// Particles in it.
    pub(super) count: u32,
    /// First cell of their tile.
    pub(super) corner: [i32; 2],
}

impl KernelConfig {
    /// Appends the particles of a page.
    pub(super) fn read(&self, page: &Page, bytes: &[u8], p: &mut Particles) {
        let (real, slots, n) = (self.real(), self.page(), page.count as usize);
        // Value c of particle k: four side by side, then columns.
        let value = |k: usize, c: usize| {
            let from = if c < 4 { 4 * k + c } else { c * slots + k } * real;
            let bytes = &bytes[from..from + real];
            if real == 4 { f64::from(bytemuck::pod_read_unaligned::<f32>(bytes)) } else { bytemuck::pod_read_unaligned(bytes) }
        };
        let cells = (5 + usize::from(self.weighted)) * slots * real;
        for cell in bytes[cells..cells + 2 * n].as_chunks::<2>().0 {
            p.i.push((page.corner[0] + i32::from(cell[0])) as u32);
            p.j.push((page.corner[1] + i32::from(cell[1])) as u32);
        }
        let column = |to: &mut Vec<f64>, c: usize| to.extend((0..n).map(|k| value(k, c)));
        column(&mut p.s, 0);
        column(&mut p.t, 1);
        for c in 0..3 {
            column(&mut p.u[c], 2 + c);
        }
        if self.weighted {
            column(&mut p.weight, 5);
        }
        if self.tagged {
            let tags = &bytes[cells + 2 * slots..][..8 * n];
            p.tag.extend(tags.as_chunks::<8>().0.iter().map(|t| u64::from_le_bytes(*t)));
        }
    }
}

impl Store {
    /// Pages in use, unit by unit. Waits.
    pub(super) fn pages_in_use(&self) -> Result<Vec<Page>> {
        self.counters()?;
        let now = &self.inbox[self.current];
        let lists =
            (self.cuda.download(&self.count)?, self.cuda.download(&self.table)?, self.capacity.list_room, self.kernel_config.warps());
        let came = (self.cuda.download(&now.count)?, self.cuda.download(&now.table)?, self.capacity.inbox_room, 1);
        let owner = self.cuda.download(&self.teams[2])?;
        let mut pages = Vec::new();
        for unit in 0..self.all_units() {
            let tile = unit.checked_sub(self.units()).map_or(unit, |helper| owner[helper] as usize);
            // A helper without a tile has no particles.
            let tile = if tile < self.units() { tile / self.kernel_config.parts } else { 0 };
            let corner = [
                self.first_cell(tile % self.tiles[0]),
                (self.grid.held().start + tile / self.tiles[0] * self.kernel_config.tile[1]) as i32,
            ];
            for (count, table, room, each) in [&lists, &came] {
                for list in unit * each..(unit + 1) * each {
                    for first in (0..count[list] as usize).step_by(self.kernel_config.page()) {
                        let number = table[list * room + first / self.kernel_config.page()];
                        pages.push(Page {
                            number,
                            count: count[list].min((first + self.kernel_config.page()) as u32) - first as u32,
                            corner,
                        });
                    }
                }
            }
        }
        Ok(pages)
    }

    /// All particles, unit by unit. Waits.
    pub(super) fn export(&self) -> Result<Particles> {
        let pages = self.pages_in_use()?;
        let slots = self.cuda.download(&self.slots)?;
        let (bytes, n) = (self.kernel_config.page_bytes(), pages.iter().map(|p| p.count as usize).sum());
        let mut p = Particles { i: Vec::with_capacity(n), j: Vec::with_capacity(n), ..Particles::default() };
        for to in [&mut p.s, &mut p.t].into_iter().chain(&mut p.u) {
            to.reserve_exact(n);
        }
        for page in &pages {
            self.kernel_config.read(page, &slots[page.number as usize * bytes..][..bytes], &mut p);
        }
        debug_assert!(p.i.iter().all(|i| (*i as usize) < self.grid.cells[0]));
        Ok(p)
    }

    /// All particles as their pages lie in memory, of which some are copied at a time. Waits.
    pub(super) fn visit(&self, part: Visit<'_>, join: &mut (dyn FnMut(Vec<f64>) + Send)) -> Result<()> {
        let mut pages = self.pages_in_use()?;
        pages.sort_unstable_by_key(|p| p.number);
        let bytes = self.kernel_config.page_bytes();
        let window = (WINDOW / bytes).max(1) as u32;
        for some in pages.chunk_by(|a, b| a.number / window == b.number / window) {
            let first = some[0].number as usize;
            let slots = self.cuda.download_range(&self.slots, first * bytes..(some[some.len() - 1].number as usize + 1) * bytes)?;
            let portions: Vec<_> = some.chunks(PORTION / self.kernel_config.page()).collect();
            let made = map_tasks(items(&portions), |_, pages| {
                let mut p = Particles::default();
                for page in *pages {
                    self.kernel_config.read(page, &slots[(page.number as usize - first) * bytes..][..bytes], &mut p);
                }
                part(p)
            });
            made.into_iter().for_each(&mut *join);
        }
        Ok(())
    }
}
