//! The particles on the device: columns twice, read from one and written to the other, and the lists by which tiles exchange them.
//!
//! A tile owns a region of slots as long as it has particles, those that leave it in this step included; so the regions never need
//! more slots than there are particles, wherever they go, and nothing can be lost for want of room. Only injected particles
//! needs room, behind the regions.

use bytemuck::Zeroable;
use zellige_engine::cuda::{Buffer, Cuda, Launch, Pool};
use zellige_engine::error::Result;
use zellige_engine::parallel::{indices, items, map};

use super::arguments::{self, Counters};
use super::beyond;
use super::columns::{Set, arranged, narrowed, slots, tags, widened};
use super::program::{CLASSES, KernelConfig, Kernels, TURNS};
use super::tiling::Tiling;
use crate::grid::Grid;
use crate::particles::Particles;

/// Blocks that put those that go far into the slots of their tiles.
const PLACERS: u32 = 792;

/// Columns of the set not in use in which lists of common.cu lie: `wanderers`, `copies_of`, `goals`.
const LISTS: [usize; 4] = [0, 1, COPIES, 4];
const COPIES: usize = 3;

/// The store.
pub(super) struct Store {
    cuda: Cuda,
    pool: Pool,
    pub(super) config: KernelConfig,
    pub(super) kernels: Kernels,
    pub(super) tiling: Tiling,
    grid: Grid,
    /// Slots of each column.
    pub(super) capacity: usize,
    sets: [Set; 2],
    first: [Buffer<u32>; 2],
    /// `list`, `left` and `near`: of a small gas once for each set, else the second ones are empty.
    list: [Buffer<u32>; 2],
    left: [Buffer<u32>; 2],
    near: [Buffer<u32>; 2],
    special: Buffer<u32>,
    /// Tiles that are begun first: turns.cu.
    turns: Buffer<u32>,
    /// stay, `near_in`, `far_in`, `near_n`, `far_n`, filled: by tile.
    by_tile: [Buffer<u32>; 6],
    /// Of a small gas: `chains`, `link`, and `wanderers`.
    chains: Buffer<u32>,
    link: Buffer<u32>,
    wanderers: Buffer<u64>,
    /// Of a run in parts: first slots of what came by each way, and what kernels are told of the other parts.
    link_first: Buffer<u32>,
    pub(super) beyond: beyond::Address,
    pub(super) counters: Buffer<Counters>,
    /// Current set and regions.
    current: usize,
}

impl Store {
    pub(super) fn new(cuda: &Cuda, pool: &Pool, config: KernelConfig, grid: &Grid, tiling: Tiling) -> Result<Self> {
        let tiles = tiling.len();
        let words = |n: usize| pool.alloc_zeros::<u32>(n, "dsmc: exchange between tiles");
        let small = |n: usize| words(if config.recorded { n } else { 0 });
        Ok(Self {
            cuda: cuda.clone(),
            pool: pool.clone(),
            config,
            kernels: Kernels::new(cuda, &config)?,
            tiling,
            grid: grid.clone(),
            capacity: 0,
            sets: [Set::new(pool, &config, 0)?, Set::new(pool, &config, 0)?],
            first: [words(tiles + 1)?, words(tiles + 1)?],
            list: [words(0)?, words(0)?],
            left: [words(tiles * config.lists())?, small(tiles * config.lists())?],
            near: [words(9 * tiles)?, small(9 * tiles)?],
            special: words(tiles * config.lists())?,
            turns: words(TURNS as usize + CLASSES)?,
            by_tile: [words(tiles)?, words(tiles)?, words(tiles)?, words(tiles)?, words(tiles)?, words(tiles)?],
            chains: small(config.threads as usize * tiles)?,
            link: words(0)?,
            wanderers: pool.alloc_zeros(0, "dsmc: exchange between tiles")?,
            link_first: words(if config.parts { 9 * tiles } else { 0 })?,
            beyond: beyond::Address::default(),
            counters: pool.alloc_zeros(1, "dsmc: counters")?,
            current: 0,
        })
    }

    /// As kernels see it.
    pub(super) fn argument(&self) -> arguments::Store {
        let (now, next) = (self.current, 1 - self.current);
        // Columns aside, a step writes its own buffers while the next one reads them.
        let (then, write) = if self.config.recorded { (now, next) } else { (0, 0) };
        let ([lower, upper], beyond::Address { owner, slabs, half, parts }) = (self.tiling.own, self.beyond);
        let [stay, near_in, far_in, near_n, far_n, filled] = self.by_tile.each_ref().map(Buffer::address);
        arguments::Store {
            now: self.sets[now].argument(),
            next: self.sets[next].argument(),
            first: self.first[now].address(),
            next_first: self.first[next].address(),
            list: self.list[write].address(),
            left: self.left[write].address(),
            special: self.special.address(),
            stay,
            near: self.near[write].address(),
            old_list: self.list[then].address(),
            old_left: self.left[then].address(),
            old_near: self.near[then].address(),
            near_in,
            far_in,
            near_n,
            far_n,
            filled,
            chains: self.chains.address(),
            link: self.link.address(),
            wanderers: self.wanderers.address(),
            turns: self.turns.address(),
            full: self.config.capacity as u32,
            counters: self.counters.address(),
            cells: self.grid.cells.map(|n| n as i32),
            tiles: self.tiling.tiles.map(|n| n as i32),
            count: self.tiling.len() as u32,
            capacity: self.capacity as u32,
            lower: self.tiling.lower.map(|n| n as i32),
            own: [lower[0], lower[1], upper[0], upper[1]].map(|n| n as i32),
            all: self.tiling.all[0] as i32,
            parts,
            owner,
            slabs,
            half,
            link_first: self.link_first.address(),
        }
    }

    /// Finds where everything will be. Counts a step of a clock, which has two slots in turn. Does not wait.
    /// `tallied`: counts the injected particles too.
    pub(super) fn exchange(
        &self,
        clock: Option<&Buffer<u64>>,
        domain: arguments::Domain,
        inflow: arguments::Inflow,
        tallied: bool,
    ) -> Result<()> {
        let (st, tiles) = (self.argument(), self.tiling.own_len() as u32);
        let [before, clock] = clock.map_or([0; 2], |c| [1 - self.current, self.current].map(|k| c.address() + 8 * k as u64));
        let layout = self.early(self.kernels.layout.launch(1 + u32::from(tallied), 1024));
        // SAFETY: the arguments as declared; the first kernel takes two slots, none where they are 0.
        unsafe {
            layout.arg(st).arg(domain).arg(inflow).arg(before).arg(clock).run()?;
            let Some([place, deliver, _]) = &self.kernels.exchange else { return Ok(()) };
            self.early(place.launch(PLACERS, 256)).arg(st).run()?;
            if tiles == 0 {
                return Ok(());
            }
            self.early(deliver.launch(tiles, 256)).arg(st).run()
        }
    }

    /// A launch that is there before the kernel ahead has ended (`in_turn` of common.cu), where the GPU has that. Not of a run in
    /// parts, between whose launches streams wait for each other: 2 and 4 parts on a GPU took up to 3 % longer with it.
    pub(super) fn early<'a>(&self, launch: Launch<'a>) -> Launch<'a> {
        if self.config.parts { launch } else { launch.early() }
    }

    /// The pass over all tiles: 0 only puts in order, 1 is a step, 2 one with samples.
    pub(super) fn advance(&self, mode: usize, gas: arguments::Gas, pass: arguments::Pass) -> Result<()> {
        let (st, config, tiles) = (self.argument(), &self.config, self.tiling.own_len() as u32);
        if tiles == 0 {
            return Ok(());
        }
        let first = if config.recorded { 0 } else { TURNS };
        let launch = self.early(self.kernels.advance[mode].launch(first + tiles, config.threads)).shared(config.shared());
        // SAFETY: the arguments as declared.
        unsafe { launch.arg(st).arg(gas).arg(pass).run() }
    }

    /// Index of the set of columns that is read.
    pub(super) fn set_in_use(&self) -> usize {
        self.current
    }

    /// Says which of them is.
    pub(super) fn use_set(&mut self, set: usize) {
        self.current = set;
    }

    /// Swaps the buffers: those written are read next.
    pub(super) fn turn(&mut self) {
        self.current = 1 - self.current;
    }

    /// Makes room for `n` particles. Waits where it has to grow.
    pub(super) fn reserve(&mut self, n: usize) -> Result<()> {
        if n <= self.capacity {
            return Ok(());
        }
        let (pool, now, before) = (self.pool.clone(), self.current, self.capacity);
        let mut set = Set::new(&pool, &self.config, n)?;
        let old = &self.sets[now];
        for (to, from) in set.numbers.iter_mut().zip(&old.numbers) {
            self.cuda.copy(from, 0, to, 0, before)?;
        }
        self.cuda.copy(&old.rotation, 0, &mut set.rotation, 0, old.rotation.len())?;
        self.cuda.copy(&old.level, 0, &mut set.level, 0, old.level.len())?;
        self.cuda.copy(&old.key, 0, &mut set.key, 0, before)?;
        self.cuda.copy(&old.tag, 0, &mut set.tag, 0, old.tag.len())?;
        self.sets[now] = set;
        // The other one goes before its successor is asked for: there may not be room for both. But what is on its way is listed there.
        let (parts, mut kept) = (self.config.parts, Vec::new());
        let special = if self.config.recorded { 0 } else { self.counters()?.special as usize };
        for column in LISTS.into_iter().filter(|c| *c != COPIES || self.config.weighted || parts) {
            // Of what comes from other parts they have the ranks too.
            let n = if column < COPIES && !parts { special } else { before };
            let mut list = pool.alloc_zeros(n, "dsmc: exchange between tiles")?;
            self.cuda.copy(&self.sets[1 - now].numbers[column], 0, &mut list, 0, n)?;
            kept.push((column, list));
        }
        self.sets[1 - now] = Set::new(&pool, &self.config, 0)?;
        self.sets[1 - now] = Set::new(&pool, &self.config, n)?;
        for (column, list) in kept {
            self.cuda.copy(&list, 0, &mut self.sets[1 - now].numbers[column], 0, list.len())?;
        }
        let words = |n: usize| pool.alloc_zeros::<u32>(n, "dsmc: exchange between tiles");
        let (then, halves) = if self.config.recorded { (now, 1 + usize::from(self.config.weighted)) } else { (0, 0) };
        let (mut larger, mut link) = (words(n)?, words(halves * n)?);
        self.cuda.copy(&self.list[then], 0, &mut larger, 0, before)?;
        self.list[then] = larger;
        for half in 0..halves {
            self.cuda.copy(&self.link, half * before, &mut link, half * n, before)?;
        }
        if self.config.recorded {
            self.link = link;
            self.list[1 - then] = words(n)?;
            self.wanderers = pool.alloc_zeros(n, "dsmc: exchange between tiles")?;
        }
        self.capacity = n;
        Ok(())
    }

    /// Counters of the device. Waits.
    pub(super) fn counters(&self) -> Result<Counters> {
        Ok(self.cuda.download(&self.counters)?.first().copied().unwrap_or_else(Counters::zeroed))
    }

    /// Slots in use, those included whose particles have left. Waits.
    pub(super) fn used(&self) -> Result<usize> {
        let (n, Counters { fresh, far, near, .. }) = (self.tiling.len(), self.counters()?);
        let end = self.cuda.download_range(&self.first[self.current], n..n + 1)?;
        Ok(end.iter().sum::<u32>() as usize + fresh as usize + far as usize + near as usize)
    }

    /// Removes all particles; the counters stay.
    pub(super) fn clear(&mut self) -> Result<()> {
        let lists = self.left.iter_mut().chain(&mut self.near).chain([&mut self.special, &mut self.chains]);
        for buffer in self.first.iter_mut().chain(lists).chain(&mut self.by_tile) {
            self.cuda.fill_zero(buffer)?;
        }
        let counters = Counters { fresh: 0, special: 0, far: 0, near: 0, ..self.counters()? };
        self.cuda.upload(&mut self.counters, &[counters])
    }

    /// Cells of this part tile by tile: particles in their order need not be rearranged by [`Self::fill`].
    pub(super) fn cells(&self) -> Vec<u32> {
        let cells = (0..self.tiling.padded_cells()).filter_map(|k| self.tiling.padded_cell(k));
        cells.filter(|cell| self.tiling.owns(*cell)).map(|cell| self.grid.index(cell) as u32).collect()
    }

    /// Puts particles into an empty store, in their order within each tile. Those of a cell are shared out among the tiles that
    /// share it; particles put `back` stand tile by tile as [`Store::export`] gave them, and only the lengths are to be found
    /// (`set_lengths`).
    pub(super) fn fill(&mut self, p: &Particles, back: bool) -> Result<()> {
        self.reserve(p.len())?;
        let (tiles, species) = (self.tiling.len(), self.config.species);
        let tile_and_slot = |i: usize| self.tiling.tile_and_slot(self.grid.cell(p.cell[i] as usize));
        let mut keys: Vec<(u32, u16)> = map(indices(p.len()), |_, i| {
            let (tile, slot) = tile_and_slot(i);
            (tile as u32, (slot * species + usize::from(p.species[i])) as u16)
        });
        let mut stay = vec![0_u32; tiles];
        for k in &keys {
            stay[k.0 as usize] += 1;
        }
        let layers = self.tiling.layers as u32;
        if layers > 1 {
            // By cell, so that tiles get as many of each, or by place as they stand.
            let cells = if back { 1 } else { self.config.cells() };
            let group = |tile: u32, key: u16| (tile / layers) as usize * cells + usize::from(key) / species % cells;
            let mut all = vec![0_u32; tiles / layers as usize * cells];
            for (tile, key) in &keys {
                all[group(*tile, *key)] += 1;
            }
            let mut seen = vec![0_u32; all.len()];
            stay.fill(0);
            for (tile, key) in &mut keys {
                let at = group(*tile, *key);
                *tile += (u64::from(seen[at]) * u64::from(layers) / u64::from(all[at])) as u32;
                seen[at] += 1;
                stay[*tile as usize] += 1;
            }
        }
        let mut first = vec![0_u32; tiles + 1];
        for t in 0..tiles {
            first[t + 1] = first[t] + stay[t];
        }
        let to = slots(&keys, &first);
        let key = arranged(&to, &map(items(&keys), |_, k| k.1)).into_owned();
        drop(keys);
        let cuda = self.cuda.clone();
        let set = &mut self.sets[self.current];
        cuda.upload(&mut set.key, &key)?;
        drop(key);
        let columns = [&p.offset[0], &p.offset[1], &p.velocity[0], &p.velocity[1], &p.velocity[2], &p.rotation];
        let ordered = map(items(&columns), |_, from| arranged(&to, from));
        for (buffer, values) in set.numbers.iter_mut().chain([&mut set.rotation]).zip(&ordered) {
            cuda.upload(buffer, values)?;
        }
        cuda.upload(&mut set.level, &narrowed(&arranged(&to, &p.level), self.config.level_words()))?;
        cuda.upload(&mut set.tag, &tags(&to, p, self.config.tagged))?;
        cuda.upload(&mut self.first[self.current], &first)?;
        cuda.upload(&mut self.by_tile[0], &stay)
    }

    /// First slot of each tile, and one past the last. Waits.
    pub(super) fn first(&self) -> Result<Vec<u32>> {
        self.cuda.download(&self.first[self.current])
    }

    /// Particles of each tile, where several share a cell; to be called when they are in order and none is on its way. Waits.
    pub(super) fn lengths(&self) -> Result<Vec<f64>> {
        if self.tiling.layers == 1 {
            return Ok(Vec::new());
        }
        let first = self.cuda.download(&self.first[self.current])?;
        Ok(first.windows(2).map(|w| f64::from(w[1] - w[0])).collect())
    }

    /// Number of those lengths in the domain.
    pub(super) fn length_count(&self) -> usize {
        if self.tiling.layers == 1 { 0 } else { self.tiling.all[0] * self.tiling.all[1] * self.tiling.layers }
    }

    /// Parts the particles of cells, as they have just been put in, among the tiles that share them. False where they are not so
    /// many.
    pub(super) fn set_lengths(&mut self, lengths: &[f64]) -> Result<bool> {
        if lengths.is_empty() {
            return Ok(true);
        }
        let mut first = self.cuda.download(&self.first[self.current])?;
        let stay: Vec<u32> = lengths.iter().map(|n| *n as u32).collect();
        let whole =
            |stay: &[u32], first: &[u32]| stay.iter().map(|n| u64::from(*n)).sum::<u64>() == u64::from(first[first.len() - 1] - first[0]);
        let layers = self.tiling.layers;
        if !(0..self.tiling.len()).step_by(layers).all(|t| whole(&stay[t..t + layers], &first[t..=t + layers])) {
            return Ok(false);
        }
        for t in 0..stay.len() {
            first[t + 1] = first[t] + stay[t];
        }
        self.cuda.upload(&mut self.first[self.current], &first)?;
        self.cuda.upload(&mut self.by_tile[0], &stay)?;
        Ok(true)
    }

    /// All particles as they lie; to be called when they are in order and none is on its way. Waits.
    pub(super) fn export(&self) -> Result<Particles> {
        let (cuda, set) = (&self.cuda, &self.sets[self.current]);
        let first = cuda.download(&self.first[self.current])?;
        let n = first.last().copied().unwrap_or(0) as usize;
        let column = |b: &Buffer<f32>| cuda.download_range(b, 0..n.min(b.len()));
        let key = cuda.download_range(&set.key, 0..n)?;
        let [x, y, vx, vy, vz] = &set.numbers;
        let mut p = Particles {
            cell: vec![0; n],
            species: vec![0; n],
            offset: [column(x)?, column(y)?],
            velocity: [column(vx)?, column(vy)?, column(vz)?],
            rotation: column(&set.rotation)?,
            level: widened(
                &cuda.download_range(&set.level, 0..(n * self.config.level_words()).min(set.level.len()))?,
                self.config.level_words(),
            ),
            tag: cuda.download_range(&set.tag, 0..n.min(set.tag.len()))?,
        };
        for tile in 0..self.tiling.len() {
            for i in first[tile] as usize..first[tile + 1] as usize {
                let key = usize::from(key[i]);
                let cell = self.tiling.cell(tile, key / self.config.species);
                p.cell[i] = cell.map_or(0, |c| self.grid.index(c)) as u32;
                p.species[i] = (key % self.config.species) as u16;
            }
        }
        Ok(p)
    }
}
