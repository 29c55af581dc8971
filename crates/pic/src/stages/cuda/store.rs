//! The particles of one species on the device: lists of pages from one pool, a list for each warp of each unit of work, and
//! inboxes for those that come.
//!
//! A list fills its pages from the first slot on without holes; only its last page may be part empty. So the pool is large enough
//! wherever particles go, and nothing in a step has to wait for the host.

mod fill;

use bytemuck::Zeroable;
use zellige_engine::cuda::{Buffer, Cuda, Kernel, Pool};
use zellige_engine::error::{Error, Result};
use zellige_engine::links::Slabs;

use self::fill::Maker;
use super::arguments::{self, Counters, Domain};
use super::beside::Ends;
use super::capacity::{Capacity, HEAVY};
use super::program::{KernelConfig, Kernels, arrivals};
use super::{early, tiles};
use crate::grid::Grid;
use crate::stages::Setup;
use crate::stages::part::Part;

/// Least records that there is room for between two parts.
const LEAST_ROOM: usize = 1 << 13;
/// Blocks that put arrivals into inboxes.
const ARRIVING: u32 = 64;

/// Particles that arrive in a unit.
pub(super) struct Inbox {
    pub(super) count: Buffer<u32>,
    pages: Buffer<u32>,
    pub(super) table: Buffer<u32>,
}

/// The store of one species.
pub(super) struct Store {
    pub(super) cuda: Cuda,
    pool: Pool,
    pub(super) kernel_config: KernelConfig,
    pub(super) kernels: Kernels,
    pub(super) grid: Grid,
    pub(super) tiles: [usize; 2],
    /// Cells that the window has moved past the tiles, modulo all that these have.
    pub(super) passed: usize,
    /// No more particles than this are there, and no more in a unit.
    most: usize,
    fullest: usize,
    /// Particles that there is room for.
    room: usize,
    pub(super) capacity: Capacity,
    /// Pages, as `ParticleSlot` of page.cu has them.
    pub(super) slots: Buffer<u8>,
    pub(super) count: Buffer<u32>,
    pub(super) table: Buffer<u32>,
    pub(super) inbox: [Inbox; 2],
    ring: Buffer<u32>,
    outbox: Buffer<u8>,
    common: Buffer<u8>,
    place: Buffer<u32>,
    /// Of very full units, as `team.cu` has them.
    pub(super) teams: [Buffer<u32>; 5],
    counters: Buffer<Counters>,
    /// Index of the inbox that is read next.
    pub(super) current: usize,
    /// Blocks that the device holds at a time.
    places: u32,
    /// Maker of particles, and their offsets where they are not random: none before it is needed.
    maker: Option<Maker>,
    /// Exchange with other parts of the run, where there are any.
    away: Option<Away>,
}

/// Particles on their way to the parts of a run above and below, and from there.
struct Away {
    arrive: Kernel,
    ends: Ends,
    slabs: Slabs,
    /// Records of a slab.
    room: usize,
}

/// Bytes in front of the records of a slab: `SLAB_HEADER` of settle.cu.
const HEADER: usize = 16;

impl Away {
    /// Slabs with room for twice the particles of a row of cells on the mean, none where no other part is.
    fn new(cuda: &Cuda, pool: &Pool, part: &Part, grid: &Grid, kernel_config: &KernelConfig, expected: usize) -> Result<Option<Self>> {
        if grid.part.is_none() {
            return Ok(None);
        }
        let room = (2 * expected.div_ceil(grid.held().len())).max(LEAST_ROOM);
        // One size for both sides of a border.
        let room = part.links().all_say(&room)?.into_iter().max().unwrap_or(room);
        let ends = Ends::new(part, grid);
        let slabs = ends.slabs(cuda, pool, part, HEADER + room * kernel_config.record())?;
        Ok(Some(Self { arrive: arrivals(kernel_config).build(cuda)?.kernel("arrive")?, ends, slabs, room }))
    }
}

impl Store {
    /// An empty store with room for `expected` particles.
    pub(super) fn new(
        cuda: &Cuda,
        pool: &Pool,
        kernels: Kernels,
        kernel_config: KernelConfig,
        setup: &Setup,
        expected: usize,
        part: &Part,
    ) -> Result<Self> {
        let tiles = tiles(setup, &kernel_config);
        let words = |what: &str| pool.alloc_zeros::<u32>(0, what);
        let inbox =
            || Ok::<_, Error>(Inbox { count: words("pic: inboxes")?, pages: words("pic: inboxes")?, table: words("pic: inboxes")? });
        let resident = kernels.advance.blocks_per_multiprocessor(kernel_config.block, kernel_config.shared())?.max(1);
        let mut store = Self {
            cuda: cuda.clone(),
            pool: pool.clone(),
            kernel_config,
            kernels,
            grid: setup.grid.clone(),
            tiles,
            passed: 0,
            most: 0,
            fullest: 0,
            room: 0,
            capacity: Capacity::default(),
            slots: pool.alloc_zeros(0, "pic: particles")?,
            count: words("pic: lists of particles")?,
            table: words("pic: lists of particles")?,
            inbox: [inbox()?, inbox()?],
            ring: words("pic: free pages")?,
            outbox: pool.alloc_zeros(0, "pic: leaving particles")?,
            common: pool.alloc_zeros(0, "pic: leaving particles")?,
            place: words("pic: leaving particles")?,
            teams: [words("pic: teams")?, words("pic: teams")?, words("pic: teams")?, words("pic: teams")?, words("pic: teams")?],
            counters: pool.alloc_zeros(1, "pic: counters")?,
            current: 0,
            places: cuda.properties().multiprocessors * resident,
            maker: None,
            away: Away::new(cuda, pool, part, &setup.grid, &kernel_config, expected)?,
        };
        store.allocate(expected.max(1), 0)?;
        Ok(store)
    }

    /// The window moves on by a cell, and what is in the first column of cells stays behind. `domain` is the one before; `per_cell`
    /// particles are to be made in the cells of the new column.
    pub(super) fn shift(&mut self, domain: Domain, per_cell: usize) -> Result<()> {
        let fresh = (self.kernel_config.tile[1] * per_cell.div_ceil(self.kernel_config.parts)) as u32;
        let launch = self.kernels.shift.launch(self.blocks(), self.kernel_config.block).arg(domain).arg(self.argument());
        // SAFETY: a domain, a store and a number, as declared.
        unsafe { launch.arg(fresh).run()? };
        self.passed = (self.passed + 1) % (self.tiles[0] * self.kernel_config.tile[0]);
        Ok(())
    }

    /// Column of tiles of the cells in column `i`: `tile_column` of common.cu.
    fn tile_column(&self, i: usize) -> usize {
        (i + self.passed) / self.kernel_config.tile[0] % self.tiles[0]
    }

    /// First cell of a column of tiles, and how many are left behind: `first_cell` of common.cu.
    pub(super) fn first_cell(&self, column: usize) -> i32 {
        let (x, turned) = (self.kernel_config.tile[0], self.passed / self.kernel_config.tile[0]);
        ((column + self.tiles[0] - turned) % self.tiles[0] * x) as i32 - (self.passed % x) as i32
    }

    /// Rows of cells that are here.
    fn rows(&self) -> usize {
        self.grid.held().len()
    }

    /// Units of work of the tiles.
    pub(super) fn units(&self) -> usize {
        self.tiles[0] * self.tiles[1] * self.kernel_config.parts
    }

    /// Units with all possible helpers.
    pub(super) fn all_units(&self) -> usize {
        self.units() + self.capacity.helpers
    }

    /// Blocks of `advance`: each takes one unit after the other.
    pub(super) fn blocks(&self) -> u32 {
        self.places.min(self.all_units() as u32)
    }

    /// Particles, as the host's bound.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Empty, with room for `n` particles in all and `unit` in each unit.
    fn allocate(&mut self, n: usize, unit: usize) -> Result<()> {
        let kernel_config = self.kernel_config;
        self.capacity = Capacity::new(&kernel_config, self.units(), n, unit, self.places as usize);
        let c = self.capacity;
        if c.pages > u32::MAX as usize / 2 {
            let message = format!("{n} of a species are too many");
            return Err(Error::Numerics { what: "particles".into(), place: "gpu".into(), message });
        }
        let pool = self.pool.clone();
        // Freed first: there may not be room for both.
        self.slots = pool.alloc_zeros(0, "pic: particles")?;
        self.slots = pool.alloc_zeros(c.pages * kernel_config.page_bytes(), "pic: particles")?;
        let lists = c.units * kernel_config.warps();
        self.count = pool.alloc_zeros(lists, "pic: lists of particles")?;
        self.table = pool.alloc_zeros(lists * c.list_room, "pic: lists of particles")?;
        for inbox in &mut self.inbox {
            inbox.count = pool.alloc_zeros(c.units, "pic: inboxes")?;
            inbox.pages = pool.alloc_zeros(c.units, "pic: inboxes")?;
            inbox.table = pool.alloc_zeros(c.units * c.inbox_room, "pic: inboxes")?;
        }
        let teams = [2 * self.units(), 16 * c.helpers, c.helpers, HEAVY, c.helpers];
        for (buffer, n) in self.teams.iter_mut().zip(teams) {
            *buffer = pool.alloc_zeros(n, "pic: teams")?;
        }
        self.ring = pool.alloc_zeros(c.pages.next_power_of_two(), "pic: free pages")?;
        self.outbox = pool.alloc_zeros(c.outbox * kernel_config.record(), "pic: leaving particles")?;
        self.common = pool.alloc_zeros(c.common * kernel_config.record(), "pic: leaving particles")?;
        self.place = pool.alloc_zeros(c.common, "pic: leaving particles")?;
        self.room = n;
        self.clear()
    }

    /// Takes everything out.
    pub(super) fn clear(&mut self) -> Result<()> {
        self.cuda.synchronize()?;
        let units = self.all_units();
        self.cuda.fill_zero(&mut self.count)?;
        self.cuda.fill_zero(&mut self.teams[0])?;
        // A page for each inbox; the others are free.
        for (k, inbox) in self.inbox.iter_mut().enumerate() {
            self.cuda.fill_zero(&mut inbox.count)?;
            self.cuda.upload(&mut inbox.pages, &vec![1; units])?;
            let mut table = vec![0_u32; units * self.capacity.inbox_room];
            table.iter_mut().step_by(self.capacity.inbox_room).zip((k * units) as u32..).for_each(|(first, page)| *first = page);
            self.cuda.upload(&mut inbox.table, &table)?;
        }
        let free: Vec<u32> = (2 * units as u32..self.capacity.pages as u32).collect();
        self.cuda.upload_at(&mut self.ring, 0, &free)?;
        let counters = self.counters()?.emptied(free.len() as u32);
        self.cuda.upload(&mut self.counters, &[counters])?;
        (self.most, self.fullest) = (0, 0);
        Ok(())
    }

    /// As kernels see it.
    pub(super) fn argument(&self) -> arguments::Store {
        let inbox = |which: usize| {
            let Inbox { count, pages, table } = &self.inbox[which];
            arguments::Inbox { count: count.address(), pages: pages.address(), table: table.address() }
        };
        arguments::Store {
            slots: self.slots.address(),
            count: self.count.address(),
            table: self.table.address(),
            now: inbox(self.current),
            next: inbox(1 - self.current),
            ring: self.ring.address(),
            away: self.away.as_ref().map_or([0; 2], |away| away.ends.addresses(&away.slabs, Slabs::next)),
            away_room: self.away.as_ref().map_or(0, |away| away.room as u32),
            outbox: self.outbox.address(),
            common: self.common.address(),
            place: self.place.address(),
            team: self.teams[0].address(),
            members: self.teams[1].address(),
            owner: self.teams[2].address(),
            heavy: self.teams[3].address(),
            spare: self.teams[4].address(),
            counters: self.counters.address(),
            units: self.units() as u32,
            parts: self.kernel_config.parts as u32,
            room: self.capacity.list_room as u32,
            inbox_room: self.capacity.inbox_room as u32,
            ring_mask: self.ring.len() as u32 - 1,
            common_room: self.place.len() as u32,
            helpers: self.capacity.helpers as u32,
            limit: self.capacity.limit() as u32,
            target: self.capacity.target as u32,
        }
    }

    /// Slabs of the particles that left this part, where there are other parts.
    pub(super) fn leaving(&self) -> Option<&Slabs> {
        self.away.as_ref().map(|away| &away.slabs)
    }

    /// Puts particles that have come from other parts into inboxes. Does not wait.
    pub(super) fn arrive(&self, domain: Domain) -> Result<()> {
        let Some(away) = &self.away else { return Ok(()) };
        let [below, above] = away.ends.addresses(&away.slabs, Slabs::last);
        let launch = away.arrive.launch((ARRIVING, 2), 256).arg(domain).arg(self.argument());
        // SAFETY: a domain, its store, and slabs of as much room as the store says.
        unsafe { launch.arg(below).arg(above).run() }
    }

    /// After a pass over all particles: what left is what came. Does not wait.
    pub(super) fn swap_pages(&mut self) -> Result<()> {
        // SAFETY: a store, whose buffers are alive and as large as `allocate` made them.
        unsafe { early(&self.cuda, self.kernels.swap_pages.launch(1, 1024)).arg(self.argument()).run()? };
        self.current = 1 - self.current;
        Ok(())
    }

    /// Makes room for `more` particles, of which a unit gets `unit` at most. Waits where it may have to grow.
    fn reserve(&mut self, more: usize, unit: usize) -> Result<()> {
        // Units that are split have room for any number.
        let fits = |s: &Self| {
            (s.fullest + unit).div_ceil(s.kernel_config.warps()) + 2 * s.kernel_config.page()
                <= s.capacity.list_room * s.kernel_config.page()
        };
        let holds = |s: &Self| s.most + more <= s.room && (s.capacity.helpers > 0 || fits(s));
        if holds(self) {
            return Ok(());
        }
        self.len()?;
        if holds(self) {
            return Ok(());
        }
        let all = self.export()?;
        let (n, fullest) = (self.most + more, self.fullest + unit);
        // Growth by a quarter, so that a run that goes on growing does not come here in each step.
        let n = if n <= self.room { self.room } else { n.max(if self.most == 0 { n } else { self.room / 4 * 5 }) };
        self.allocate(n, fullest)?;
        self.insert(&all, true)
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
                    "{} found no room on their way to another tile{}",
                    counters.lost,
                    if self.away.is_some() {
                        " or another GPU: use one GPU, or larger tiles, so that fewer leave in a step"
                    } else {
                        ": use larger tiles, so that fewer leave in a step"
                    }
                ),
            });
        }
        Ok(counters)
    }

    /// Particles there are. Waits.
    pub(super) fn len(&mut self) -> Result<usize> {
        let lists = self.cuda.download(&self.count)?;
        let came = self.cuda.download(&self.inbox[self.current].count)?;
        let units =
            lists.chunks(self.kernel_config.warps()).zip(&came).map(|(l, c)| l.iter().map(|n| *n as usize).sum::<usize>() + *c as usize);
        (self.most, self.fullest) = units.fold((0, 0), |(sum, most), n| (sum + n, most.max(n)));
        Ok(self.most)
    }
}
