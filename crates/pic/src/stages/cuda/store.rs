//! The particles of one species on the device: pages of slots, tables of pages by tile, and the exchange between tiles.
//!
//! A tile's particles fill its pages from the first slot on without holes; only its last page may be part empty. So a pool of
//! (particles / page + tiles) pages is enough wherever they go, one tile may hold all of them, and nothing in a step has to
//! wait for the host.

use bytemuck::Zeroable;
use zellige_engine::cuda::{Buffer, Cuda, Pool};
use zellige_engine::error::{Error, Result};

use super::arguments::{Counters, StoreArgument};
use super::early;
use super::program::{GROUP, Kernels, Kind};
use crate::particles::Particles;

/// Blocks that share the common outbox.
const COMMON_BLOCKS: usize = 64;
/// Least records of the common outbox.
const COMMON_LEAST: usize = 1 << 14;

/// The store of one species.
pub(super) struct Store {
    cuda: Cuda,
    pool: Pool,
    pub(super) kind: Kind,
    pub(super) kernels: Kernels,
    cells: [usize; 2],
    pub(super) tiles: [usize; 2],
    /// No more particles than this are there.
    most: usize,
    /// Particles that there is room for.
    room: usize,
    pages: usize,
    /// Groups of particles, as `Place` of common.cu has them.
    slots: Buffer<u8>,
    gone: Buffer<u32>,
    /// count, left, arrivals, placed.
    by_tile: [Buffer<u32>; 4],
    landing: Buffer<[u32; 4]>,
    first: [Buffer<u32>; 2],
    first_item: Buffer<u32>,
    status: Buffer<u64>,
    table: [Buffer<u32>; 2],
    /// `Item` of common.cu.
    item: Buffer<[u32; 4]>,
    spare: Buffer<u32>,
    holes: Buffer<u32>,
    outbox: Buffer<u8>,
    common: Buffer<u8>,
    outgoing: Buffer<u32>,
    counters: Buffer<Counters>,
    /// Which of `first` and `table` is current.
    current: usize,
}

impl Store {
    /// An empty store with room for `expected` particles.
    pub(super) fn new(cuda: &Cuda, pool: &Pool, kernels: Kernels, kind: Kind, cells: [usize; 2], expected: usize) -> Result<Self> {
        let tiles = [0, 1].map(|a| cells[a].div_ceil(kind.tile[a]));
        let n = tiles[0] * tiles[1];
        let words = |n: usize, what: &str| pool.alloc_zeros::<u32>(n, what);
        let by_tile = || words(n, "pic: counts of tiles");
        let mut store = Self {
            cuda: cuda.clone(),
            pool: pool.clone(),
            kind,
            kernels,
            cells,
            tiles,
            most: 0,
            room: 0,
            pages: 0,
            slots: pool.alloc_zeros(0, "pic: particles")?,
            gone: words(0, "pic: particles")?,
            by_tile: [by_tile()?, by_tile()?, by_tile()?, by_tile()?],
            landing: pool.alloc_zeros(n, "pic: counts of tiles")?,
            first: [words(n + 1, "pic: tables of pages")?, words(n + 1, "pic: tables of pages")?],
            first_item: by_tile()?,
            status: pool.alloc_zeros(n + n.div_ceil(1024) + 1, "pic: counts of tiles")?,
            table: [words(0, "pic: tables of pages")?, words(0, "pic: tables of pages")?],
            item: pool.alloc_zeros(0, "pic: items")?,
            spare: words(0, "pic: free pages")?,
            holes: words(0, "pic: holes")?,
            outbox: pool.alloc_zeros(0, "pic: leaving particles")?,
            common: pool.alloc_zeros(0, "pic: leaving particles")?,
            outgoing: words(0, "pic: leaving particles")?,
            counters: pool.alloc_zeros(1, "pic: counters")?,
            current: 0,
        };
        store.reserve(expected.max(1))?;
        Ok(store)
    }

    fn tile_count(&self) -> usize {
        self.tiles[0] * self.tiles[1]
    }

    fn items_of(&self, particles: usize) -> usize {
        particles.div_ceil(self.kind.work) + self.tile_count().min(particles)
    }

    /// The largest number of blocks that work on all particles.
    pub(super) fn items(&self) -> u32 {
        self.items_of(self.most) as u32
    }

    /// As the host's bound.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Makes room for `n` particles in all. Waits where it has to grow.
    fn reserve(&mut self, n: usize) -> Result<()> {
        if n <= self.room {
            return Ok(());
        }
        let (kind, pool) = (self.kind, self.pool.clone());
        let pages = n.div_ceil(kind.page()) + self.tile_count().min(n);
        let slots = pages * kind.page();
        if slots > u32::MAX as usize * 32 {
            return Err(Error::Numerics {
                what: "particles".into(),
                place: "gpu".into(),
                message: format!("{n} of a species are too many"),
            });
        }
        let mut larger = pool.alloc_zeros(slots / GROUP * kind.group(), "pic: particles")?;
        self.cuda.copy(&self.slots, 0, &mut larger, 0, self.slots.len())?;
        self.slots = larger;
        self.gone = pool.alloc_zeros(slots / 32, "pic: particles")?;
        for table in &mut self.table {
            let mut larger = pool.alloc_zeros(pages, "pic: tables of pages")?;
            self.cuda.copy(table, 0, &mut larger, 0, table.len())?;
            *table = larger;
        }
        // The new pages go on top of those that are free.
        let mut counters = self.counters()?;
        let mut free = self.cuda.download_range(&self.spare, 0..counters.free as usize)?;
        free.splice(0..0, (self.pages as u32..pages as u32).rev());
        counters.free = free.len() as u32;
        self.spare = pool.alloc_zeros(pages, "pic: free pages")?;
        self.cuda.upload(&mut self.spare, &free)?;
        self.cuda.upload(&mut self.counters, &[counters])?;
        let items = self.items_of(n);
        let mut item = pool.alloc_zeros(items, "pic: items")?;
        self.cuda.copy(&self.item, 0, &mut item, 0, self.item.len())?;
        self.item = item;
        self.outgoing = pool.alloc_zeros(items, "pic: leaving particles")?;
        self.outbox = pool.alloc_zeros(items * kind.out * kind.record(), "pic: leaving particles")?;
        let common = (n / 16).clamp(COMMON_LEAST, 1 << 22);
        self.common = pool.alloc_zeros(common * kind.record(), "pic: leaving particles")?;
        // No more holes are listed than records come.
        self.holes = pool.alloc_zeros(items * kind.out + common, "pic: holes")?;
        (self.room, self.pages) = (n, pages);
        Ok(())
    }

    /// As kernels see it.
    pub(super) fn argument(&self) -> StoreArgument {
        let [count, left, arrivals, placed] = self.by_tile.each_ref().map(Buffer::address);
        let (now, next) = (self.current, 1 - self.current);
        StoreArgument {
            slots: self.slots.address(),
            gone: self.gone.address(),
            count,
            left,
            arrivals,
            placed,
            landing: self.landing.address(),
            first: self.first[now].address(),
            next_first: self.first[next].address(),
            table: self.table[now].address(),
            next_table: self.table[next].address(),
            item: self.item.address(),
            first_item: self.first_item.address(),
            spare: self.spare.address(),
            holes: self.holes.address(),
            outbox: self.outbox.address(),
            common: self.common.address(),
            outgoing: self.outgoing.address(),
            counters: self.counters.address(),
            status: self.status.address(),
            tiles: self.tile_count() as u32,
            outbox_items: self.outgoing.len() as u32,
            common_room: (self.common.len() / self.kind.record()) as u32,
            unused: 0,
        }
    }

    /// Sends what lies in the outboxes to its tiles. Does not wait.
    pub(super) fn exchange(&mut self) -> Result<()> {
        let tiles = self.tile_count() as u32;
        let (kernels, st) = (&self.kernels, self.used(self.argument()));
        let deliverers = tiles.div_ceil(8) as usize + self.items() as usize + COMMON_BLOCKS;
        // SAFETY: the kernels take a store, whose buffers are alive and as large as `reserve` made them.
        unsafe {
            early(&self.cuda, kernels.compact.launch(tiles, self.kind.sweepers)).plain(st).run()?;
            early(&self.cuda, kernels.layout.launch(tiles.div_ceil(1024), 1024)).plain(st).run()?;
            early(&self.cuda, kernels.deliver.launch(deliverers as u32, 256)).plain(st).run()?;
        }
        self.current = 1 - self.current;
        Ok(())
    }

    /// The same with only the outboxes that may be in use.
    fn used(&self, st: StoreArgument) -> StoreArgument {
        StoreArgument { outbox_items: self.items(), ..st }
    }

    /// Puts particles in, which have been checked.
    pub(super) fn insert(&mut self, p: &Particles) -> Result<()> {
        self.reserve(self.most + p.len())?;
        let piece = self.common.len() / self.kind.record();
        for begin in (0..p.len()).step_by(piece.max(1)) {
            let end = (begin + piece).min(p.len());
            let mut records = Vec::with_capacity((end - begin) * self.kind.record());
            (begin..end).for_each(|k| self.record(p, k, &mut records));
            self.cuda.upload(&mut self.common, &records)?;
            let n = (end - begin) as u32;
            // SAFETY: a store and a number; the records are there.
            unsafe { self.kernels.enter.launch(n.div_ceil(256), 256).plain(self.argument()).arg(n).run()? };
            self.exchange()?;
            self.most += end - begin;
        }
        Ok(())
    }

    /// `Record` of common.cu.
    fn record(&self, p: &Particles, k: usize, bytes: &mut Vec<u8>) {
        let end = bytes.len() + self.kind.record();
        let [tx, ty] = self.kind.tile;
        let (i, j) = (p.i[k] as usize, p.j[k] as usize);
        let tile = (j / ty * self.tiles[0] + i / tx) as u32;
        let cell = ((i % tx) | ((j % ty) << 8)) as u32;
        bytes.extend_from_slice(bytemuck::cast_slice(&[tile, cell]));
        let weight = p.weight.get(k).copied().unwrap_or(1.0);
        let values = [p.s[k], p.t[k], p.u[0][k], p.u[1][k], p.u[2][k], weight];
        for v in &values[..5 + usize::from(self.kind.weighted)] {
            if self.kind.real() == 4 {
                bytes.extend_from_slice(&(*v as f32).to_ne_bytes());
            } else {
                bytes.extend_from_slice(&v.to_ne_bytes());
            }
        }
        if self.kind.tagged {
            bytes.resize(end - 8, 0);
            bytes.extend_from_slice(&p.tag.get(k).copied().unwrap_or(0).to_ne_bytes());
        }
        bytes.resize(end, 0);
    }

    /// Takes everything out.
    pub(super) fn clear(&mut self) -> Result<()> {
        self.cuda.synchronize()?;
        for buffer in self.by_tile.iter_mut().chain(&mut self.first).chain([&mut self.first_item]) {
            self.cuda.fill_zero(buffer)?;
        }
        let free: Vec<u32> = (0..self.pages as u32).rev().collect();
        self.cuda.upload(&mut self.spare, &free)?;
        let counters = self.counters()?.emptied(free.len() as u32);
        self.cuda.upload(&mut self.counters, &[counters])?;
        self.most = 0;
        Ok(())
    }

    /// Sets the device's ledger.
    pub(super) fn set_ledger(&mut self, ledger: &[f64; 13]) -> Result<()> {
        let counters = self.counters()?.with_ledger(ledger);
        self.cuda.upload(&mut self.counters, &[counters])
    }

    /// Counters of the device. Waits.
    pub(super) fn counters(&self) -> Result<Counters> {
        let counters = self.cuda.download(&self.counters)?.first().copied().unwrap_or_else(Counters::zeroed);
        if counters.lost > 0 {
            return Err(Error::Numerics {
                what: "particles".into(),
                place: "exchange between tiles".into(),
                message: format!(
                    "{} found no room on their way to another tile: use larger tiles, so that fewer leave in a step",
                    counters.lost
                ),
            });
        }
        Ok(counters)
    }

    /// Particles there are. Waits.
    pub(super) fn len(&mut self) -> Result<usize> {
        let counts = self.cuda.download(&self.by_tile[0])?;
        let n = counts.iter().map(|n| *n as usize).sum();
        self.most = n;
        Ok(n)
    }

    /// All particles, tile by tile. Waits.
    pub(super) fn export(&self) -> Result<Particles> {
        self.counters()?;
        let counts = self.cuda.download(&self.by_tile[0])?;
        let first = self.cuda.download(&self.first[self.current])?;
        let table = self.cuda.download(&self.table[self.current])?;
        let slots = self.cuda.download(&self.slots)?;
        let (real, group) = (self.kind.real(), self.kind.group());
        // Value c of a slot: four side by side, then columns.
        let value = |slot: usize, c: usize| {
            let k = slot % GROUP;
            let at = slot / GROUP * group + if c < 4 { 4 * k + c } else { c * GROUP + k } * real;
            let bytes = &slots[at..at + real];
            if real == 4 { f64::from(bytemuck::pod_read_unaligned::<f32>(bytes)) } else { bytemuck::pod_read_unaligned(bytes) }
        };
        let cells = (5 + usize::from(self.kind.weighted)) * GROUP * real;
        let word = |slot: usize| {
            let at = slot / GROUP * group + cells + 2 * (slot % GROUP);
            bytemuck::pod_read_unaligned::<u16>(&slots[at..at + 2])
        };
        let tag = |slot: usize| {
            let at = slot / GROUP * group + cells + 2 * GROUP + 8 * (slot % GROUP);
            bytemuck::pod_read_unaligned::<u64>(&slots[at..at + 8])
        };
        let mut p = Particles::default();
        for (tile, count) in counts.iter().enumerate() {
            let corner = [tile % self.tiles[0] * self.kind.tile[0], tile / self.tiles[0] * self.kind.tile[1]];
            for k in 0..*count as usize {
                let page = table[first[tile] as usize + (k >> self.kind.shift)] as usize;
                let slot = page * self.kind.page() + k % self.kind.page();
                let cell = word(slot);
                p.i.push(corner[0] as u32 + u32::from(cell & 255));
                p.j.push(corner[1] as u32 + u32::from(cell >> 8));
                p.s.push(value(slot, 0));
                p.t.push(value(slot, 1));
                for c in 0..3 {
                    p.u[c].push(value(slot, 2 + c));
                }
                if self.kind.weighted {
                    p.weight.push(value(slot, 5));
                }
                if self.kind.tagged {
                    p.tag.push(tag(slot));
                }
            }
        }
        debug_assert!(p.i.iter().all(|i| (*i as usize) < self.cells[0]));
        Ok(p)
    }
}
