//! Sums over the views of all parts of a run, with the bits of one part.
//!
//! A part has the frames of a range of views, and objects, probes and the lists of all views. Sums are those of blocks of frames
//! (`stream`), which take them in the order of the views: a part is a block. Where it consists of sections (`sections.rs`), its
//! sums are complete; where it ends within one, the next part goes on from where it has stopped (`rounds.rs`). Complete sums go to
//! all others, each of which makes the same of them; of tiles that one part alone completes, updated values go (`completed.rs`),
//! beside the sums for the probes. Engines that go by batches tell each other waves instead (`batch.rs`).

pub(super) mod batch;
mod completed;
mod rounds;
mod stages;

use std::ops::Range;
use std::sync::Arc;

use zellige_engine::cuda::{Buffer, Cuda, Kernel, Pool, Recipe};
use zellige_engine::error::Result;
use zellige_engine::links::{Opened, Ways};

use self::completed::{CompletedTiles, complete, runs, whole_bundles};
use self::rounds::{Copied, Round, Rounds, Touch, rounds};
use super::arguments::ModelArgument;
use super::batches::BatchOperations;
use super::frames::Frames;
use super::lists;
use super::number::{C, Number};
use super::on_demand::absent;
use super::program::{KernelConfig, TEAM, TILE_COLUMNS, TILE_ROWS};
use super::recipes::recipe;
use super::stream::sums::{BlockSums, NAMES, Target, Touched};
use super::stream::tile_ranges::{PartRange, TileRange, firsts, pieces, touches};
use super::subpixel::SubpixelProbe;
use super::sums::{Bundled, Sums};
use crate::model::{Model, View};
use crate::share::Share;
use crate::stages::Overlap;

/// Kernels of sums that go from part to part.
pub(super) fn handover_recipe(config: &KernelConfig) -> Recipe {
    let roots = ["stream/stream.cu", "handover/handover.cu"];
    recipe(config, "sums of parts", &roots, &[&NAMES[..], &["tiles_out", "tiles_in", "bundle_sums", "waves_in"]].concat())
}

impl Touch for TileRange {
    fn sum(&self) -> usize {
        self.sum as usize
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
    /// Sums of sections of tiles that several parts complete, first one of each part (and the end), and numbers of a sum.
    sections: Opened<T>,
    first_section: Vec<usize>,
    section: usize,
    /// No part adds to a sum that another one has begun: what own views touch is complete here.
    apart: bool,
    /// Values of the other parts are to be taken behind the next time at which all settle.
    late: bool,
    /// Tiles of several sections that this part completes, and all.
    alone: usize,
    sectioned: usize,
}

impl<T: Number> Completed<T> {
    /// Carries the values of tiles that some parts complete to or from where they are packed.
    fn carried(&self, kernel: &Kernel, of: Range<usize>, model: ModelArgument, sums: &Sums<T>, values: &Buffer<C<T>>) -> Result<()> {
        let (begin, count) = (self.first[of.start], self.first[of.end] - self.first[of.start]);
        if count == 0 {
            return Ok(());
        }
        let launch = kernel.launch(count as u32, TEAM).arg(model).arg(sums.argument(0)).arg(self.tiles.from(begin)).arg(values);
        // SAFETY: (Model, Sums, const u32*, C*, C*) as `tiles_out` and `tiles_in` declare; the tiles are those of the lists, the
        // values those of all objects, and there is a place for each tile.
        unsafe { launch.arg(self.packed.own().from(begin * self.values)).run() }
    }

    /// Takes the values of tiles that parts other than `me` complete.
    fn take(&self, me: usize, model: ModelArgument, sums: &Sums<T>, values: &Buffer<C<T>>) -> Result<()> {
        self.carried(&self.back, 0..me, model, sums, values)?;
        self.carried(&self.back, me + 1..self.first.len() - 1, model, sums, values)
    }
}

/// Sums for the probes that the parts tell each other.
struct Told<T> {
    /// Kernel that makes them, of bundles of parts, where all parts of a bundle are complete at the same part of the run; elsewhere
    /// parts of the sums are told as they are.
    bundle: Option<Kernel>,
    /// Those that are complete here: the first, and how many follow.
    here: Vec<[usize; 2]>,
    /// Both places are those of `numerators` and `weights` where there are no bundles.
    numerators: Opened<C<T>>,
    weights: Opened<T>,
}

/// Sums for probes that each view sees shifted: as they come from the part before, and complete.
struct Shifted<T> {
    before: (Opened<C<T>>, Opened<T>),
    complete: (Opened<C<T>>, Opened<T>),
}

/// The overlap loop so far.
#[derive(Debug, Default)]
struct OverlapLoop {
    /// Rule and passes of the one that goes on if the probes do not rest.
    open: Option<(Overlap, u32)>,
    /// Passes of the last one that has ended.
    passes: u32,
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
    /// They take those only behind the sums for the probes.
    unread: bool,
    probes: Rounds,
    numerators: Opened<C<T>>,
    weights: Opened<T>,
    /// Values of a part of the probes' sums: numerators and weights.
    sizes: [usize; 2],
    told: Told<T>,
    /// The others have used the sums for the probes before.
    used: bool,
    overlap: OverlapLoop,
    shifted: Option<Shifted<T>>,
}

impl<T: Number> Handover<T> {
    /// Sums of a part where views look at `views`; all parts make theirs at the same time.
    pub(super) fn new(model: &Model, views: &[View], cuda: &Cuda, pool: &Pool, config: KernelConfig, sums: &mut Sums<T>) -> Result<Self> {
        let (share, what) = (model.share.clone(), "ptycho: sums between parts");
        share.must_all_have_views()?;
        let (links, me, parts) = (share.links(), share.links().rank(), share.links().size());
        let bounds = share.bounds();
        let lists = lists::tiles(model, views);
        let (mut of_tiles, tile_sums) = touches(&lists, bounds);
        let tile_rounds = rounds(&mut of_tiles, tile_sums).swap_remove(me);
        let apart = of_tiles.iter().flatten().all(TileRange::alone);
        let (tiles, _, cuts) = lists;
        let CompletedTiles { of: completed, first: first_section, sectioned, alone, places } =
            CompletedTiles::new(&tiles, &cuts, &mut of_tiles, tile_sums, me);
        let (listed, probe_parts, bundles, _) = lists::parts(model, views, cuda.properties().multiprocessors, size_of::<T>());
        let mut of_probes = pieces(&listed, &probe_parts, bounds);
        let whole = whole_bundles(&bundles, &of_probes, probe_parts.len());
        let probe_rounds = rounds(&mut of_probes, probe_parts.len()).swap_remove(me);
        let (tiles_here, pieces) = (of_tiles.swap_remove(me), of_probes.swap_remove(me));
        let slots = tiles_here.iter().filter(|touch| !touch.alone()).count();
        let program = handover_recipe(&config).build(cuda)?;
        let all_sectioned = sectioned.tiles.len();
        let pieces_here = runs(complete(&pieces).into_iter().map(|part| part as usize));
        let blocks = BlockSums::of_lists(model, cuda, pool, &program, &Touched { tiles: tiles_here, slots, pieces, sectioned, places })?;
        let values = model.modes[1] * TILE_ROWS * TILE_COLUMNS;
        // A word in each round of tiles and of probes, and three times at which all settle.
        let mut ways = Ways::new(cuda, links, 2 * parts + 3)?;
        let sizes = [model.modes[0] * model.pixels(), model.pixels()];
        let (numerators, weights) = (ways.open(sums.numerators.clone())?, ways.open(sums.weights.clone())?);
        let told = match whole {
            None => Told {
                bundle: None,
                here: pieces_here,
                numerators: ways.open(sums.numerators.clone())?,
                weights: ways.open(sums.weights.clone())?,
            },
            Some(mut of) => {
                let (count, what) = (bundles.len() - 1, "ptycho: sums of the probes");
                let numerators = Arc::new(pool.alloc_zeros(count * sizes[0], what)?);
                let weights = Arc::new(pool.alloc_zeros(count * sizes[1], what)?);
                let each: Vec<u32> = (0..=count as u32).collect();
                let bundled = Bundled { numerators: numerators.clone(), weights: weights.clone(), each: pool.buffer_from(&each, what)? };
                sums.bundled = Some(bundled);
                let here = runs(of.swap_remove(me).into_iter());
                Told {
                    bundle: Some(program.kernel("bundle_sums")?),
                    here,
                    numerators: ways.open(numerators)?,
                    weights: ways.open(weights)?,
                }
            }
        };
        let mut between = |parts: usize| -> Result<(Opened<C<T>>, Opened<T>)> {
            let sums = Arc::new(pool.alloc_zeros(parts * model.probe_len(), what)?);
            let norms = Arc::new(pool.alloc_zeros(parts * model.probes * model.pixels(), what)?);
            Ok((ways.open(sums)?, ways.open(norms)?))
        };
        let shifted = if config.shifted {
            Some(Shifted { before: between(config.shifted_parts(model.probes))?, complete: between(1)? })
        } else {
            None
        };
        Ok(Self {
            shifted,
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
                sections: ways.open(blocks.sections.clone())?,
                first_section,
                section: 3 * values,
                apart,
                late: false,
                alone,
                sectioned: all_sectioned,
            },
            taken: false,
            unread: false,
            probes: probe_rounds,
            numerators,
            weights,
            sizes,
            told,
            used: false,
            overlap: OverlapLoop::default(),
            ways,
            views: views.len(),
            blocks,
            share,
        })
    }

    /// Takes the sums over all views of the objects, or of a gradient, and updates them: `values`, which all parts have alike
    /// afterwards; with `late` only behind the next sums for the probes and [`late_tiles`](Self::late_tiles). `model` is that of
    /// all views, `exits` those of own ones.
    pub(super) fn tiles(
        &mut self,
        model: ModelArgument,
        exits: &Buffer<C<T>>,
        sums: &Sums<T>,
        target: &Target<T>,
        values: &Buffer<C<T>>,
        late: bool,
    ) -> Result<()> {
        let first = self.share.own(self.views).start;
        let Self { ways, blocks, tiles, held, held_weights, slot, .. } = &mut *self;
        for Round { open, to, complete, from } in &*tiles {
            blocks.add_tiles(model, exits, first, sums, open.clone(), target)?;
            for (part, copies) in to {
                for [here, there, count] in copies.iter().map(|copied| copied.map(|n| n * *slot)) {
                    ways.copy(held.own(), here, held, *part, there, count);
                    ways.copy(held_weights.own(), here, held_weights, *part, there, count);
                }
            }
            ways.post(&receivers(to))?;
            blocks.add_tiles(model, exits, first, sums, complete.clone(), target)?;
            ways.hear(from)?;
        }
        let Completed { alone, sectioned, .. } = self.completed;
        self.blocks.join_sections(model, sums, 0..alone, target)?;
        self.completed.late = late && self.completed.apart;
        self.share_tiles(model, sums, values)?;
        self.blocks.join_sections(model, sums, alone..sectioned, target)
    }

    /// Gives the values of the tiles that are complete here, and sums of sections of others, to all other parts,
    /// and takes theirs.
    fn share_tiles(&mut self, model: ModelArgument, sums: &Sums<T>, values: &Buffer<C<T>>) -> Result<()> {
        let me = self.share.links().rank();
        let Self { ways, completed, taken, unread, used, .. } = self;
        completed.carried(&completed.out, me..me + 1, model, sums, values)?;
        let Completed { first, packed, values: size, sections, first_section, section, late, .. } = &*completed;
        // Copies beside begin behind a time at which all settle; others would come over values that are still to be taken.
        if !*taken || (std::mem::take(unread) && !*late) {
            ways.settle()?;
        }
        let (at, len) = (first[me] * *size, (first[me + 1] - first[me]) * *size);
        let [begin, end] = [first_section[me], first_section[me + 1]].map(|sum| sum * *section);
        for part in ways.others() {
            if *late {
                ways.copy_beside(packed.own(), at, packed, part, at, len);
            } else {
                ways.copy(packed.own(), at, packed, part, at, len);
            }
            ways.copy(sections.own(), begin, sections, part, begin, end - begin);
        }
        ways.settle()?;
        (*taken, *used) = (false, true);
        if *late { Ok(()) } else { completed.take(me, model, sums, values) }
    }

    /// Takes what other parts have completed, where [`tiles`](Self::tiles) has left that for later.
    pub(super) fn late_tiles(&mut self, model: ModelArgument, sums: &Sums<T>, values: &Buffer<C<T>>) -> Result<()> {
        if !std::mem::take(&mut self.completed.late) {
            return Ok(());
        }
        self.completed.take(self.share.links().rank(), model, sums, values)
    }

    /// Takes the sums over all views for the probes, which all parts have alike afterwards.
    pub(super) fn probes(&mut self, model: ModelArgument, exits: &Buffer<C<T>>, sums: &Sums<T>) -> Result<()> {
        let first = self.share.own(self.views).start;
        let Self { ways, blocks, probes, numerators, weights, sizes, told, completed, taken, unread, used, .. } = self;
        let copy = |ways: &mut Ways, numerators: &Opened<C<T>>, weights: &Opened<T>, part: usize, begin: usize, count: usize| {
            let [at, n] = [begin * sizes[0], count * sizes[0]];
            ways.copy(numerators.own(), at, numerators, part, at, n);
            let [at, n] = [begin * sizes[1], count * sizes[1]];
            ways.copy(weights.own(), at, weights, part, at, n);
        };
        if !*used {
            ways.settle()?;
        }
        for Round { open, to, complete, from } in &*probes {
            blocks.add_pieces(model, exits, first, sums, open.clone())?;
            for (part, copies) in to {
                for [here, _, count] in copies {
                    copy(ways, numerators, weights, *part, *here, *count);
                }
            }
            ways.post(&receivers(to))?;
            blocks.add_pieces(model, exits, first, sums, complete.clone())?;
            ways.hear(from)?;
        }
        let Told { bundle, here, numerators, weights } = told;
        for [begin, count] in here.iter().copied() {
            if let Some(kernel) = bundle {
                let launch = kernel.launch(((sizes[1] as u32).div_ceil(TEAM), count as u32), TEAM).arg(sums.argument(0)).arg(begin as u32);
                // SAFETY: (Sums, u32, C*, float*) as `bundle_sums` declares; there is a place for each bundle.
                unsafe { launch.arg(numerators.own()).arg(weights.own()).run()? };
            }
            ways.others().for_each(|part| copy(ways, numerators, weights, part, begin, count));
        }
        ways.settle()?;
        (*taken, *unread, *used) = (true, completed.late, false);
        Ok(())
    }

    /// Takes the sums over all views for probes that each view sees shifted, which all parts have alike afterwards. Every one of
    /// them is of views here and there, so that each part goes on where the one before has stopped; `here` is the argument of
    /// kernels that count own views.
    pub(super) fn shifted(
        &mut self,
        subpixel: &mut SubpixelProbe<T>,
        operations: &mut BatchOperations<T>,
        here: ModelArgument,
        frames: &Frames<T>,
        rest: bool,
    ) -> Result<()> {
        let (me, parts, first) = (self.share.links().rank(), self.share.links().size(), self.share.own(self.views).start);
        let Self { ways, shifted: Some(Shifted { before, complete }), taken, unread, .. } = self else { return Err(absent()) };
        subpixel.begin(self.views);
        // Those of the part before come in the round in which it sends them.
        for round in 0..me {
            ways.post(&[])?;
            ways.hear(if round + 1 < me { &[] } else { std::slice::from_ref(&round) })?;
        }
        if me > 0 {
            subpixel.go_on(first, before.0.own(), before.1.own())?;
        }
        subpixel.add_views(operations, here, frames, rest)?;
        let last = me + 1 == parts;
        if last {
            subpixel.complete()?;
        }
        let ([values, weights], to) = (subpixel.under_way(), if last { &*complete } else { &*before });
        for part in if last { 0..me } else { me + 1..me + 2 } {
            ways.copy(&subpixel.sums, 0, &to.0, part, 0, values);
            ways.copy(&subpixel.norms, 0, &to.1, part, 0, weights);
        }
        if !last {
            ways.post(&[me + 1])?;
            ways.hear(&[])?;
        }
        ways.settle()?;
        (*taken, *unread) = (true, false);
        if last { Ok(()) } else { subpixel.take_complete(complete.0.own(), complete.1.own()) }
    }
}

/// Parts that sums go to.
fn receivers(to: &[(usize, Vec<Copied>)]) -> Vec<usize> {
    to.iter().map(|(part, _)| *part).collect()
}
