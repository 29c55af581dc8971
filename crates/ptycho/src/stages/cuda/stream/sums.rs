//! Sums over views, block by block: kernels of stream.cu with their lists.

use zellige_engine::cuda::{Buffer, Cuda, Kernel, Mapped, Pool, Recipe};
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
pub(super) fn slot_bytes(modes: usize, number: usize) -> u64 {
    (modes * (TEAM as usize / 32) * TILE_ROWS * TILE_COLUMNS * 3 * number) as u64
}

/// The kernels.
pub(super) fn sums_recipe(config: &KernelConfig) -> Recipe {
    recipe(config, "streamed sums", &["stream/stream.cu"], &["object_part", "probe_part", "change"])
}

/// Destination of sums over views.
pub(super) enum Target<'a, T> {
    /// Object, which is updated.
    Object(UpdateArgument<T>),
    /// Array as long as the objects.
    Gradient(&'a Buffer<C<T>>),
    /// Parts of the probes.
    Probe,
}

/// Lists and kernels.
pub(super) struct BlockSums<T> {
    object: Kernel,
    probe: Kernel,
    change: Kernel,
    tile_ranges: Buffer<TileRange>,
    first_touch: Vec<usize>,
    operations: Buffer<PartRange>,
    first_piece: Vec<usize>,
    held: Buffer<C<T>>,
    held_weights: Buffer<T>,
    moved: Mapped<T>,
    pixels: u32,
    /// Neighbouring pixels of a thread.
    pair: u32,
}

impl<T: Number> BlockSums<T> {
    pub(super) fn new(model: &Model, views: &[View], cuda: &Cuda, pool: &Pool, config: KernelConfig, layout: &Layout) -> Result<Self> {
        let program = sums_recipe(&config).build(cuda)?;
        let (tiles, visits) = lists::tiles(model, views);
        let (listed, parts, _) = lists::parts(model, views, cuda.properties().multiprocessors);
        let tile_ranges::TileRanges { list, first, slots } = tile_ranges::tile_ranges(&tiles, &visits, layout);
        let (operations, first_piece) = tile_ranges::operations(&listed, &parts, layout);
        let values = slots * slot_bytes(model.modes[1], size_of::<T>()) as usize / (3 * size_of::<T>());
        let what = "ptycho: sums subpixel blocks";
        Ok(Self {
            object: program.kernel("object_part")?,
            probe: program.kernel("probe_part")?,
            change: program.kernel("change")?,
            tile_ranges: pool.buffer_from(&list, what)?,
            first_touch: first,
            operations: pool.buffer_from(&operations, what)?,
            first_piece,
            held: pool.alloc_zeros(values, what)?,
            held_weights: pool.alloc_zeros(values, what)?,
            moved: cuda.mapped(1)?,
            pixels: model.pixels() as u32,
            pair: pair(model.frame) as u32,
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
        let argument = sums.argument(0);
        if let Target::Probe = target {
            let (begin, end) = (self.first_piece[b], self.first_piece[b + 1]);
            // Pieces of a block are at most the parts: some hundred a probe.
            let launch = self.probe.launch(((self.pixels / self.pair).div_ceil(TEAM), (end - begin) as u32), TEAM);
            let launch = launch.plain(model).arg(exits).arg(first as u32).plain(argument).arg(self.operations.from(begin));
            // SAFETY: (Model, const C*, u32, Sums, const Piece*) as declared; the pieces name views of the block.
            return unsafe { launch.run() };
        }
        let (begin, end) = (self.first_touch[b], self.first_touch[b + 1]);
        let (update, to) = match target {
            Target::Object(update) => (*update, 0),
            Target::Gradient(to) => (UpdateArgument::none(), to.address()),
            Target::Probe => unreachable!("done above"),
        };
        let launch = self.object.launch((end - begin) as u32, TEAM).plain(model).arg(exits).arg(first as u32).plain(argument);
        let launch = launch.arg(self.tile_ranges.from(begin)).arg(&self.held).arg(&self.held_weights);
        // SAFETY: (Model, const C*, u32, Sums, const Touch*, C*, float*, Update, C*) as declared; the tile_ranges name views of the block and
        // slots that are there; `to` is as long as the objects.
        unsafe { launch.plain(update).arg(to).run() }
    }

    /// The squared relative change of the probes, waited for.
    pub(super) fn moved(&self, cuda: &Cuda, sums: &Sums<T>) -> Result<T> {
        // SAFETY: (Sums, u32, float*) as declared; so many blocks have left their changes.
        unsafe { self.change.launch(1, TEAM).plain(sums.argument(0)).arg(sums.blocks).arg(&self.moved).run()? };
        cuda.synchronize()?;
        Ok(self.moved.get(0))
    }
}
