//! Sums over views, block by block: kernels of stream.cu with their lists.

use std::ops::Range;
use std::sync::Arc;

use zellige_engine::cuda::{Buffer, Cuda, Kernel, Mapped, Pool, Program, Recipe};
use zellige_engine::error::Result;

use super::layout::Layout;
use super::tile_ranges::{self, PartRange, TileRange};
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

/// Names of the kernels.
pub(in crate::stages::cuda) const NAMES: [&str; 3] = ["object_part", "probe_part", "change"];

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

/// Sums that blocks add to, and the memory for those that wait.
pub(in crate::stages::cuda) struct Touched {
    /// Tiles that blocks add to.
    pub(in crate::stages::cuda) tiles: Vec<TileRange>,
    /// Slots for sums of tiles between blocks.
    pub(in crate::stages::cuda) slots: usize,
    /// Parts of the probes' sums that blocks add to.
    pub(in crate::stages::cuda) pieces: Vec<PartRange>,
}

/// Lists and kernels.
pub(in crate::stages::cuda) struct BlockSums<T> {
    object: Kernel,
    probe: Kernel,
    change: Kernel,
    tile_ranges: Buffer<TileRange>,
    first_touch: Vec<usize>,
    operations: Buffer<PartRange>,
    first_piece: Vec<usize>,
    /// Numerators and weights of tiles between blocks.
    pub(in crate::stages::cuda) held: Arc<Buffer<C<T>>>,
    pub(in crate::stages::cuda) held_weights: Arc<Buffer<T>>,
    moved: Mapped<T>,
    pixels: u32,
    /// Neighbouring pixels of a thread.
    pair: u32,
}

impl<T: Number> BlockSums<T> {
    pub(super) fn new(model: &Model, views: &[View], cuda: &Cuda, pool: &Pool, config: KernelConfig, layout: &Layout) -> Result<Self> {
        let program = sums_recipe(&config).build(cuda)?;
        let (tiles, visits) = lists::tiles(model, views);
        let (listed, parts, _) = lists::parts(model, views, cuda.properties().multiprocessors, size_of::<T>());
        let bounds = layout.bounds();
        let tile_ranges::TileRanges { list, first, slots } = tile_ranges::tile_ranges(&tiles, &visits, &bounds);
        let pieces = tile_ranges::pieces(&listed, &parts, &bounds);
        let first_piece = tile_ranges::firsts(&pieces);
        let touched = Touched { tiles: list, slots, pieces: pieces.concat() };
        Ok(Self { first_touch: first, first_piece, ..Self::of_lists(model, cuda, pool, &program, &touched)? })
    }

    /// Sums of blocks that are told by ranges of these lists.
    pub(in crate::stages::cuda) fn of_lists(model: &Model, cuda: &Cuda, pool: &Pool, program: &Program, touched: &Touched) -> Result<Self> {
        let values = touched.slots * slot_bytes(model.modes[1], size_of::<T>()) as usize / (3 * size_of::<T>());
        let what = "ptycho: sums between blocks";
        let [object, probe, change] = NAMES;
        Ok(Self {
            object: program.kernel(object)?,
            probe: program.kernel(probe)?,
            change: program.kernel(change)?,
            tile_ranges: pool.buffer_from(&touched.tiles, what)?,
            first_touch: Vec::new(),
            operations: pool.buffer_from(&touched.pieces, what)?,
            first_piece: Vec::new(),
            held: Arc::new(pool.alloc_zeros(values, what)?),
            held_weights: Arc::new(pool.alloc_zeros(values, what)?),
            moved: cuda.mapped(1)?,
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
            _ => self.add_tiles(model, exits, first, sums, self.first_touch[b]..self.first_touch[b + 1], target),
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
        let (update, to) = match target {
            Target::Object(update) => (*update, 0),
            Target::Gradient(to) => (UpdateArgument::none(), to.address()),
            Target::Probe => unreachable!("the probes have no tiles"),
        };
        let launch = self.object.launch(touches.len() as u32, TEAM).arg(model).arg(exits).arg(first as u32).arg(sums.argument(0));
        let launch = launch.arg(self.tile_ranges.from(touches.start)).arg(&*self.held).arg(&*self.held_weights);
        // SAFETY: (Model, const C*, u32, Sums, const Touch*, C*, float*, Update, C*) as declared; the tile_ranges name views of the block and
        // slots that are there; `to` is as long as the objects.
        unsafe { launch.plain(update).arg(to).run() }
    }

    /// The squared relative change of the probes, waited for.
    pub(in crate::stages::cuda) fn moved(&self, cuda: &Cuda, sums: &Sums<T>) -> Result<T> {
        // SAFETY: (Sums, u32, float*) as declared; so many blocks have left their changes.
        unsafe { self.change.launch(1, TEAM).arg(sums.argument(0)).arg(sums.blocks).arg(&self.moved).run()? };
        cuda.synchronize()?;
        Ok(self.moved.get(0))
    }
}
