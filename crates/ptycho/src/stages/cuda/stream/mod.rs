//! Frames and waves that are not all on the device at once.
//!
//! A scan is cut into blocks of frames ([`layout`]). As many as the memory allows stay on the device, the others lie in page-locked
//! host memory: counts of 16 bits (or magnitudes), and for the engines that keep exit waves their transforms, in single or half
//! precision. Three streams work at once (`ring.rs`): the next block comes while one is computed and the one before goes. Probe,
//! object and their sums stay on the device; sums are taken in the order of the views (`tile_ranges.rs`), so that nothing but time
//! tells a streamed run from one that holds everything (half precision apart).
//!
//! Exit waves themselves are never kept: they are the transforms of the kept waves, made again by the kernel of the Fourier step
//! with a rule that changes nothing, bit for bit what that step has left. The Fourier step waits for the first sum of the overlap
//! loop, which then goes over the same blocks in the same sweep.

mod keep;
pub mod layout;
mod picked;
pub mod plan;
mod ring;
mod slow;
mod stages;
pub(super) mod sums;
mod sweeps;
pub(super) mod tile_ranges;

use zellige_engine::cuda::{Buffer, Cuda, Pinned, Recipe};
use zellige_engine::error::Result;

use self::keep::FrameConverter;
use self::layout::Layout;
use self::ring::BlockRing;
use self::sums::BlockSums;
pub(super) use self::sweeps::NEUTRAL;
use super::number::{C, Number, pairs};
use super::{CudaStages, KernelConfig};
use crate::model::Model;
use crate::noise;
use crate::stages::{Projection, Stages};

/// Buffers of a streamed run for blocks of one kind: with waves or without.
struct BlockBuffers<T: Number> {
    // First: its streams wait before anything is freed.
    ring: BlockRing<T>,
    sums: BlockSums<T>,
    /// Waves of the block at work, where they are kept in half precision.
    waves: Buffer<C<T>>,
}

/// State and stages of a run whose frames come and go.
struct StreamedStages<T: Number> {
    work: Option<BlockBuffers<T>>,
    /// Stages for all else, with buffers for the frames of one block.
    inner: CudaStages<T>,
    convert: FrameConverter,
    /// All frames.
    raw: Pinned<u8>,
    order: Option<Buffer<u32>>,
    /// Weights as in [`super::frames::Frames`], and errors, of all views.
    weights: Buffer<[T; 2]>,
    errors: Buffer<T>,
    counted: Vec<[T; 2]>,
    memory: plan::StreamingPlan,
    bytes_of_pixel: u64,
    /// The Fourier step that waits for its sums.
    pending: Option<Projection>,
    /// Arrays of the engines that go from view to view.
    picked: Option<picked::ReorderedFrames<T>>,
}

/// The stages of a model on `cuda` within some memory.
pub(super) fn new<T: Number>(model: &Model, cuda: &Cuda, config: KernelConfig, memory: plan::StreamingPlan) -> Result<Box<dyn Stages>> {
    if config.double && memory.half {
        return Err(keep::halves_of_doubles());
    }
    let pixels = model.counted();
    let counted = pairs(&noise::of_frames(&model.mag, pixels));
    let bytes_of_pixel = keep::bytes_of_pixel(&model.mag);
    let raw = keep::frames(cuda, &model.mag, bytes_of_pixel)?;
    let inner = CudaStages::new(&plan::without_frames(model), cuda, config)?;
    let pool = &inner.pool;
    Ok(Box::new(StreamedStages::<T> {
        work: None,
        convert: FrameConverter::new(cuda, config)?,
        raw,
        order: keep::order(pool, config)?,
        weights: pool.buffer_from(&counted, "ptycho: frames")?,
        errors: pool.alloc_zeros(3 * model.views.len(), "ptycho: errors")?,
        counted,
        memory,
        bytes_of_pixel,
        pending: None,
        picked: None,
        inner,
    }))
}

/// Kernels of streamed runs, for tests.
pub fn recipes(config: &KernelConfig) -> [Recipe; 2] {
    [sums::sums_recipe(config), keep::keep_recipe(config)]
}

impl<T: Number> StreamedStages<T> {
    /// Blocks with waves or without, made when they are asked for.
    fn ready(&mut self, waves: bool) -> Result<()> {
        if self.work.as_ref().is_some_and(|w| (w.ring.need.wave > 0) == waves) {
            return Ok(());
        }
        self.work = None;
        let Self { inner, memory, .. } = self;
        let (cuda, pool, config) = (inner.cuda.clone(), inner.pool.clone(), inner.frames.config);
        let frames = &mut inner.frames;
        for buffer in [&mut frames.waves, &mut frames.exits] {
            *buffer = pool.alloc_zeros(0, "ptycho: exit waves")?;
        }
        let multiprocessors = cuda.properties().multiprocessors;
        let need = plan::need(&inner.model, cuda.properties(), self.bytes_of_pixel, waves, *memory);
        let (layout, _) = plan::layout(&inner.model, &need, multiprocessors, memory)?;
        let (pixels, wave) = (inner.model.counted(), inner.model.exits() * inner.model.pixels());
        frames.mag = pool.alloc_zeros(layout.block * pixels, "ptycho: frames")?;
        frames.exits = pool.alloc_zeros(layout.block * wave, "ptycho: exit waves")?;
        frames.weight = pool.alloc_zeros(layout.block, "ptycho: frames")?;
        frames.errors = pool.alloc_zeros(3 * layout.block, "ptycho: errors")?;
        frames.one_block = true;
        let room = if waves && memory.half { layout.block * wave } else { 0 };
        self.work = Some(BlockBuffers {
            sums: BlockSums::new(&inner.model, &inner.scan.views, &cuda, &pool, config, &layout)?,
            waves: pool.alloc_zeros(room, "ptycho: exit waves")?,
            ring: BlockRing::new(&cuda, &pool, layout, need, waves && memory.half, &self.raw)?,
        });
        Ok(())
    }

    /// Lists anew where the views look.
    fn list(&mut self) -> Result<()> {
        let Self { work: Some(BlockBuffers { sums, ring, .. }), inner, .. } = self else { return Ok(()) };
        *sums = BlockSums::new(&inner.model, &inner.scan.views, &inner.cuda, &inner.pool, inner.frames.config, &ring.layout)?;
        Ok(())
    }

    /// Layout of the blocks, where there are any yet.
    fn layout(&self) -> Option<Layout> {
        self.work.as_ref().map(|w| w.ring.layout)
    }
}
