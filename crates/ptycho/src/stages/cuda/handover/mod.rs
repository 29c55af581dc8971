//! Sums over the views of all parts of a run: each part goes on from where the one before has stopped.
//!
//! A part has the frames of a range of views, and objects, probes and the lists of all views. Sums are those of blocks of frames
//! (`stream`), which take them in the order of the views: a part is a block. What several parts add to goes from part to part
//! (`rounds.rs`); the last of them has the total, and sends it to all others: values of the tiles of the objects, which it has
//! updated, or sums for the probes, of which each part makes the same.

mod rounds;
mod stages;

use std::ops::Range;
use std::sync::Arc;

use zellige_engine::cuda::{Buffer, Cuda, Kernel, Pool, Recipe};
use zellige_engine::error::Result;
use zellige_engine::links::{Opened, Ways};

use self::rounds::{Copied, Round, Rounds, Touch, rounds};
use super::arguments::ModelArgument;
use super::lists;
use super::number::{C, Number};
use super::program::{KernelConfig, TEAM, TILE_COLUMNS, TILE_ROWS};
use super::recipes::recipe;
use super::refused;
use super::stream::sums::{BlockSums, NAMES, Target, Touched};
use super::stream::tile_ranges::{PartRange, TileRange, firsts, pieces, touches};
use super::sums::Sums;
use crate::model::{Model, View};
use crate::share::Share;

/// Kernels of sums that go from part to part.
pub(super) fn handover_recipe(config: &KernelConfig) -> Recipe {
    let [object, probe, change] = NAMES;
    let roots = ["stream/stream.cu", "handover/handover.cu"];
    recipe(config, "sums of parts", &roots, &[object, probe, change, "tiles_out", "tiles_in"])
}

impl Touch for TileRange {
    fn sum(&self) -> usize {
        self.tile as usize
    }

    fn completes(&self) -> bool {
        self.completes()
    }

    fn wait_in(&mut self, free: usize) -> usize {
        self.slot = free as u32;
        free
    }
}

impl Touch for PartRange {
    fn sum(&self) -> usize {
        self.part as usize
    }

    fn completes(&self) -> bool {
        self.completes()
    }

    // Alike on all parts.
    fn wait_in(&mut self, _: usize) -> usize {
        self.part as usize
    }
}

/// Tiles by the part that completes them, and memory for their values.
struct Completed<T> {
    out: Kernel,
    back: Kernel,
    /// Tiles in the order of the parts, and number of the first one of each part (and the end).
    tiles: Buffer<u32>,
    first: Vec<usize>,
    /// Values of all tiles, `[tiles][OBJECTS][TILE_ROWS][TILE_COLUMNS]`.
    packed: Opened<C<T>>,
    /// Values of a tile.
    values: usize,
}

/// Lists, kernels and ways of one part.
pub(super) struct Handover<T: Number> {
    // First: it waits before anything is freed.
    ways: Ways,
    share: Share,
    views: usize,
    blocks: BlockSums<T>,
    tiles: Rounds,
    held: Opened<C<T>>,
    held_weights: Opened<T>,
    /// Values of a slot: those of every warp of a block of threads.
    slot: usize,
    completed: Completed<T>,
    /// The others have taken the values of the tiles before.
    taken: bool,
    probes: Rounds,
    numerators: Opened<C<T>>,
    weights: Opened<T>,
    /// Values of a part of the probes' sums: numerators and weights.
    sizes: [usize; 2],
    /// Parts of the probes' sums that are complete here: the first, and how many follow.
    summed: Vec<[usize; 2]>,
    /// The others have used the sums for the probes before.
    used: bool,
}

impl<T: Number> Handover<T> {
    /// Sums of a part where views look at `views`; all parts make theirs at the same time.
    pub(super) fn new(model: &Model, views: &[View], cuda: &Cuda, pool: &Pool, config: KernelConfig, sums: &Sums<T>) -> Result<Self> {
        if config.shifted {
            return Err(refused("sub-pixel shifts in several parts", "take `--device cpu`, or one part"));
        }
        let (share, what) = (model.share.clone(), "ptycho: sums between parts");
        share.must_all_have_views()?;
        let (links, me, parts) = (share.links(), share.links().rank(), share.links().size());
        let bounds = share.bounds();
        let (tiles, visits) = lists::tiles(model, views);
        let mut of_tiles = touches(&tiles, &visits, bounds);
        let tile_rounds = rounds(&mut of_tiles, tiles.len()).swap_remove(me);
        let completed: Vec<Vec<u32>> = of_tiles.iter().map(|list| complete(list)).collect();
        let (listed, probe_parts, _) = lists::parts(model, views, cuda.properties().multiprocessors, size_of::<T>());
        let mut of_probes = pieces(&listed, &probe_parts, bounds);
        let probe_rounds = rounds(&mut of_probes, probe_parts.len()).swap_remove(me);
        let (tiles_here, pieces) = (of_tiles.swap_remove(me), of_probes.swap_remove(me));
        let mut summed: Vec<[usize; 2]> = Vec::new();
        for part in complete(&pieces) {
            match summed.last_mut() {
                Some([first, count]) if *first + *count == part as usize => *count += 1,
                _ => summed.push([part as usize, 1]),
            }
        }
        let slots = tiles_here.iter().filter(|touch| !touch.alone()).count();
        let program = handover_recipe(&config).build(cuda)?;
        let blocks = BlockSums::of_lists(model, cuda, pool, &program, &Touched { tiles: tiles_here, slots, pieces })?;
        let values = model.modes[1] * TILE_ROWS * TILE_COLUMNS;
        // A word in each round of tiles and of probes, and three times at which all settle.
        let mut ways = Ways::new(cuda, links, 2 * parts + 3)?;
        Ok(Self {
            tiles: tile_rounds,
            held: ways.open(blocks.held.clone())?,
            held_weights: ways.open(blocks.held_weights.clone())?,
            slot: values * TEAM as usize / TILE_COLUMNS,
            completed: Completed {
                out: program.kernel("tiles_out")?,
                back: program.kernel("tiles_in")?,
                tiles: pool.buffer_from(&completed.concat(), what)?,
                first: firsts(&completed),
                packed: ways.open(Arc::new(pool.alloc_zeros(tiles.len() * values, what)?))?,
                values,
            },
            taken: false,
            probes: probe_rounds,
            numerators: ways.open(sums.numerators.clone())?,
            weights: ways.open(sums.weights.clone())?,
            sizes: [model.modes[0] * model.pixels(), model.pixels()],
            summed,
            used: false,
            ways,
            views: views.len(),
            blocks,
            share,
        })
    }

    /// Takes the sums over all views of the objects, or of a gradient, and updates them: `values`, which all parts have alike
    /// afterwards. `model` is that of all views, `exits` those of own ones.
    pub(super) fn tiles(
        &mut self,
        model: ModelArgument,
        exits: &Buffer<C<T>>,
        sums: &Sums<T>,
        target: &Target<T>,
        values: &Buffer<C<T>>,
    ) -> Result<()> {
        let first = self.share.own(self.views).start;
        let Self { ways, blocks, tiles, held, held_weights, slot, .. } = &mut *self;
        for Round { open, to, complete, from } in &*tiles {
            blocks.add_tiles(model, exits, first, sums, open.clone(), target)?;
            for (part, copies) in to {
                for [here, there, count] in copies.iter().map(|copied| copied.map(|n| n * *slot)) {
                    ways.copy(held.own(), here, held, *part, there, count)?;
                    ways.copy(held_weights.own(), here, held_weights, *part, there, count)?;
                }
            }
            ways.post(&receivers(to))?;
            blocks.add_tiles(model, exits, first, sums, complete.clone(), target)?;
            ways.hear(from)?;
        }
        self.share_tiles(model, sums, values)
    }

    /// Gives the values of the tiles that are complete here to all other parts, and takes theirs.
    fn share_tiles(&mut self, model: ModelArgument, sums: &Sums<T>, values: &Buffer<C<T>>) -> Result<()> {
        let (me, parts) = (self.share.links().rank(), self.share.links().size());
        let Self { ways, completed, taken, used, .. } = self;
        let Completed { out, back, tiles, first, packed, values: size } = completed;
        let carried = |kernel: &Kernel, of: Range<usize>| {
            let (begin, count) = (first[of.start], first[of.end] - first[of.start]);
            if count == 0 {
                return Ok(());
            }
            let launch = kernel.launch(count as u32, TEAM).arg(model).arg(sums.argument(0)).arg(tiles.from(begin)).arg(values);
            // SAFETY: (Model, Sums, const u32*, C*, C*) as `tiles_out` and `tiles_in` declare; the tiles are those of the lists, the
            // values those of all objects, and there is a place for each tile.
            unsafe { launch.arg(packed.own().from(begin * *size)).run() }
        };
        carried(out, me..me + 1)?;
        if !*taken {
            ways.settle()?;
        }
        let (at, len) = (first[me] * *size, (first[me + 1] - first[me]) * *size);
        ways.others().try_for_each(|part| ways.copy(packed.own(), at, packed, part, at, len))?;
        ways.settle()?;
        carried(back, 0..me)?;
        carried(back, me + 1..parts)?;
        (*taken, *used) = (false, true);
        Ok(())
    }

    /// Takes the sums over all views for the probes, which all parts have alike afterwards.
    pub(super) fn probes(&mut self, model: ModelArgument, exits: &Buffer<C<T>>, sums: &Sums<T>) -> Result<()> {
        let first = self.share.own(self.views).start;
        let Self { ways, blocks, probes, numerators, weights, sizes, summed, taken, used, .. } = self;
        let copy = |ways: &mut Ways, part: usize, begin: usize, count: usize| {
            let [at, n] = [begin * sizes[0], count * sizes[0]];
            ways.copy(numerators.own(), at, numerators, part, at, n)?;
            let [at, n] = [begin * sizes[1], count * sizes[1]];
            ways.copy(weights.own(), at, weights, part, at, n)
        };
        if !*used {
            ways.settle()?;
        }
        for Round { open, to, complete, from } in &*probes {
            blocks.add_pieces(model, exits, first, sums, open.clone())?;
            for (part, copies) in to {
                copies.iter().try_for_each(|[here, _, count]| copy(ways, *part, *here, *count))?;
            }
            ways.post(&receivers(to))?;
            blocks.add_pieces(model, exits, first, sums, complete.clone())?;
            ways.hear(from)?;
        }
        ways.others().try_for_each(|part| summed.iter().try_for_each(|[begin, count]| copy(ways, part, *begin, *count)))?;
        ways.settle()?;
        (*taken, *used) = (true, false);
        Ok(())
    }

    /// Change of the probes by the last update ([`BlockSums::moved`]).
    pub(super) fn moved(&self, cuda: &Cuda, sums: &Sums<T>) -> Result<T> {
        self.blocks.moved(cuda, sums)
    }
}

/// Parts that sums go to.
fn receivers(to: &[(usize, Vec<Copied>)]) -> Vec<usize> {
    to.iter().map(|(part, _)| *part).collect()
}

/// Numbers of the sums that a part completes, in their order.
fn complete<S: Touch>(touches: &[S]) -> Vec<u32> {
    let mut sums: Vec<u32> = touches.iter().filter(|touch| touch.completes()).map(|touch| touch.sum() as u32).collect();
    sums.sort_unstable();
    sums
}
