//! Sums over views, block by block: kernels of stream.cu with their lists.

use std::ops::Range;
use std::sync::Arc;

use zellige_engine::cuda::{Buffer, Cuda, Event, Kernel, Mapped, Pool, Program, Recipe};
use zellige_engine::error::Result;

use super::layout::Layout;
use super::tile_ranges::{self, PartRange, SectionedTile, SectionedTiles, TileRange};
use crate::model::{Model, View};
use crate::stages::cuda::arguments::{ModelArgument, UpdateArgument};
use crate::stages::cuda::lists;
use crate::stages::cuda::number::{C, Number};
use crate::stages::cuda::program::{KernelConfig, TEAM, TILE_COLUMNS, TILE_ROWS, pair};
use crate::stages::cuda::recipes::recipe;
use crate::stages::cuda::sums::Sums;

/// Bytes that a tile's sums take while they wait for a block: of every warp of a block of threads.
pub(in crate::stages::cuda) fn slot_bytes(modes: usize, number: usize) -> u64 {
    (modes * (TEAM as usize / 32) * TILE_ROWS * TILE_COLUMNS * 3 * number) as u64
}

/// Bytes of the sum of a tile's section.
pub(in crate::stages::cuda) fn section_bytes(modes: usize, number: usize) -> u64 {
    (modes * TILE_ROWS * TILE_COLUMNS * 3 * number) as u64
}

/// Names of the kernels.
pub(in crate::stages::cuda) const NAMES: [&str; 4] = ["object_part", "join_sections", "probe_part", "change"];

/// The kernels.
pub(super) fn sums_recipe(config: &KernelConfig) -> Recipe {
    recipe(config, "streamed sums", &["stream/stream.cu"], &NAMES)
}

/// Destination of sums over views.
pub(in crate::stages::cuda) enum Target<'a, T> {
    /// Object, which is updated.
    Object(UpdateArgument<T>),
    /// Array as long as the objects.
    Gradient(&'a Buffer<C<T>>),
    /// Parts of the probes.
    Probe,
}

impl<T: Number> Target<'_, T> {
    /// Update of the objects, or the address of the array.
    fn of_tiles(&self) -> (UpdateArgument<T>, u64) {
        match self {
            Target::Object(update) => (*update, 0),
            Target::Gradient(to) => (UpdateArgument::none(), to.address()),
            Target::Probe => unreachable!("the probes have no tiles"),
        }
    }
}

/// Sums that blocks add to, and the memory for those that wait.
pub(in crate::stages::cuda) struct Touched {
    /// Tiles that blocks add to.
    pub(in crate::stages::cuda) tiles: Vec<TileRange>,
    /// Slots for sums of tiles between blocks.
    pub(in crate::stages::cuda) slots: usize,
    /// Parts of the probes' sums that blocks add to.
    pub(in crate::stages::cuda) pieces: Vec<PartRange>,
    /// Tiles whose sums of sections are added up here, and places for these.
    pub(in crate::stages::cuda) sectioned: SectionedTiles,
    pub(in crate::stages::cuda) places: usize,
}

/// Lists and kernels.
pub(in crate::stages::cuda) struct BlockSums<T> {
    object: Kernel,
    join: Kernel,
    probe: Kernel,
    change: Kernel,
    tile_ranges: Buffer<TileRange>,
    first_touch: Vec<usize>,
    operations: Buffer<PartRange>,
    first_piece: Vec<usize>,
    /// Numerators and weights of tiles between blocks.
    pub(in crate::stages::cuda) held: Arc<Buffer<C<T>>>,
    pub(in crate::stages::cuda) held_weights: Arc<Buffer<T>>,
    sectioned: Buffer<SectionedTile>,
    places: Buffer<u32>,
    /// Sums of tiles' sections.
    pub(in crate::stages::cuda) sections: Arc<Buffer<T>>,
    moved: Mapped<T>,
    measured: Event,
    pixels: u32,
    /// Neighbouring pixels of a thread.
    pair: u32,
}

impl<T: Number> BlockSums<T> {
    pub(super) fn new(model: &Model, views: &[View], cuda: &Cuda, pool: &Pool, config: KernelConfig, layout: &Layout) -> Result<Self> {
        let program = sums_recipe(&config).build(cuda)?;
        let (listed, parts, ..) = lists::parts(model, views, cuda.properties().multiprocessors, size_of::<T>());
        let bounds = layout.bounds();
        let tile_ranges::TileRanges { list, first, slots, sectioned } = tile_ranges::tile_ranges(&lists::tiles(model, views), &bounds);
        let pieces = tile_ranges::pieces(&listed, &parts, &bounds);
        let first_piece = tile_ranges::firsts(&pieces);
        let touched = Touched { tiles: list, slots, pieces: pieces.concat(), places: sectioned.places.len(), sectioned };
        Ok(Self { first_touch: first, first_piece, ..Self::of_lists(model, cuda, pool, &program, &touched)? })
    }

    /// Sums of blocks that are told by ranges of these lists.
    pub(in crate::stages::cuda) fn of_lists(model: &Model, cuda: &Cuda, pool: &Pool, program: &Program, touched: &Touched) -> Result<Self> {
        let values = touched.slots * slot_bytes(model.modes[1], size_of::<T>()) as usize / (3 * size_of::<T>());
        let what = "ptycho: sums between blocks";
        let [object, join, probe, change] = NAMES;
        let sections = touched.places * section_bytes(model.modes[1], size_of::<T>()) as usize / size_of::<T>();
        Ok(Self {
            object: program.kernel(object)?,
            join: program.kernel(join)?,
            probe: program.kernel(probe)?,
            change: program.kernel(change)?,
            tile_ranges: pool.buffer_from(&touched.tiles, what)?,
            first_touch: Vec::new(),
            operations: pool.buffer_from(&touched.pieces, what)?,
            first_piece: Vec::new(),
            held: Arc::new(pool.alloc_zeros(values, what)?),
            held_weights: Arc::new(pool.alloc_zeros(values, what)?),
            sectioned: pool.buffer_from(&touched.sectioned.tiles, what)?,
            places: pool.buffer_from(&touched.sectioned.places, what)?,
            sections: Arc::new(pool.alloc_zeros(sections, what)?),
            moved: cuda.mapped(1)?,
            measured: cuda.event_without_time()?,
            pixels: model.pixels() as u32,
            pair: pair(model.frame, size_of::<T>()) as u32,
        })
    }

    /// Adds the views of block `b`, whose waves begin with view `first`. `model` is that of all views.
    pub(super) fn add(
        &self,
        model: ModelArgument,
        exits: &Buffer<C<T>>,
        (b, first): (usize, usize),
        sums: &Sums<T>,
        target: &Target<T>,
    ) -> Result<()> {
        match target {
            Target::Probe => self.add_pieces(model, exits, first, sums, self.first_piece[b]..self.first_piece[b + 1]),
            _ => {
                self.add_tiles(model, exits, first, sums, self.first_touch[b]..self.first_touch[b + 1], target)?;
                let last = b + 2 == self.first_touch.len();
                self.join_sections(model, sums, 0..if last { self.sectioned.len() } else { 0 }, target)
            }
        }
    }

    /// Adds to some parts of the probes' sums the views of a block, whose waves begin with view `first`.
    pub(in crate::stages::cuda) fn add_pieces(
        &self,
        model: ModelArgument,
        exits: &Buffer<C<T>>,
        first: usize,
        sums: &Sums<T>,
        pieces: Range<usize>,
    ) -> Result<()> {
        if pieces.is_empty() {
            return Ok(());
        }
        // Pieces of a block are at most the parts: a few thousand for small frames of very many views, where a grid has 65 535.
        let launch = self.probe.launch(((self.pixels / self.pair).div_ceil(TEAM), pieces.len() as u32), TEAM);
        let launch = launch.arg(model).arg(exits).arg(first as u32).arg(sums.argument(0)).arg(self.operations.from(pieces.start));
        // SAFETY: (Model, const C*, u32, Sums, const Piece*) as declared; the pieces name views of the block.
        unsafe { launch.run() }
    }

    /// Adds likewise to some tiles of the objects or of a gradient.
    pub(in crate::stages::cuda) fn add_tiles(
        &self,
        model: ModelArgument,
        exits: &Buffer<C<T>>,
        first: usize,
        sums: &Sums<T>,
        touches: Range<usize>,
        target: &Target<T>,
    ) -> Result<()> {
        if touches.is_empty() {
            return Ok(());
        }
        let (update, to) = target.of_tiles();
        let launch = self.object.launch(touches.len() as u32, TEAM).arg(model).arg(exits).arg(first as u32).arg(sums.argument(0));
        let launch = launch.arg(self.tile_ranges.from(touches.start)).arg(&*self.held).arg(&*self.held_weights).arg(&*self.sections);
        // SAFETY: (Model, const C*, u32, Sums, const TileRange*, C*, float*, float*, Update, C*) as declared; the tile_ranges name views
        // of the block, and slots and places that are there; `to` is as long as the objects.
        unsafe { launch.plain(update).arg(to).run() }
    }

    /// Adds up the sums of sections of some tiles, which are complete.
    pub(in crate::stages::cuda) fn join_sections(
        &self,
        model: ModelArgument,
        sums: &Sums<T>,
        tiles: Range<usize>,
        target: &Target<T>,
    ) -> Result<()> {
        if tiles.is_empty() {
            return Ok(());
        }
        let (update, to) = target.of_tiles();
        let launch = self.join.launch(tiles.len() as u32, (TILE_ROWS * TILE_COLUMNS) as u32).arg(model).arg(sums.argument(0));
        let launch = launch.arg(self.sectioned.from(tiles.start)).arg(&self.places).arg(&*self.sections);
        // SAFETY: (Model, Sums, const SectionedTile*, const u32*, float*, Update, C*) as declared; the places are there; `to` is as long as
        // the objects.
        unsafe { launch.plain(update).arg(to).run() }
    }

    /// Measures the squared relative change of the probes, for [`moved`](Self::moved).
    pub(in crate::stages::cuda) fn measure(&self, cuda: &Cuda, sums: &Sums<T>) -> Result<()> {
        // SAFETY: (Sums, u32, float*) as declared; so many blocks have left their changes.
        unsafe { self.change.launch(1, TEAM).arg(sums.argument(0)).arg(sums.blocks).arg(&self.moved).run()? };
        cuda.record(&self.measured)
    }

    /// The change that was measured last, waited for.
    pub(in crate::stages::cuda) fn moved(&self) -> Result<T> {
        self.measured.wait()?;
        Ok(self.moved.get(0))
    }
}
