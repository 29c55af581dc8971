//! Frames, their waves, and the kernels that they go through.

use zellige_engine::cuda::{Buffer, Cuda, Kernel, Pool};
use zellige_engine::error::Result;
use zellige_engine::ops::fft::CudaPlans;
use zellige_engine::parallel::{chunks, chunks_mut, each};

use super::arguments::{ConstraintArgument, ModelArgument, PieStepArgument};
use super::multi_pass::{GROUP, Group, MultiPass, step_group};
use super::number::{C, Number, narrow, pairs};
use super::program::{FrameProcessing, KernelConfig, TEAM};
use super::recipes::{frames_recipe, sequence_recipe};
use super::refused;
use crate::model::{Model, Transfer};
use crate::noise;

enum Kernels<T> {
    MultiPass(Box<MultiPass<T>>),
    Fused { begin: Kernel, project: Kernel, blocks: u32 },
}

/// Kernel that goes from view to view.
struct Sequence<T> {
    kernel: Kernel,
    config: KernelConfig,
    keep: bool,
    /// Moduli, where they are not those of [`Frames`].
    mag: Option<Buffer<f32>>,
    near: Option<Buffer<C<T>>>,
}

/// All frames.
pub(super) struct Frames<T> {
    pub(super) config: KernelConfig,
    cuda: Cuda,
    pool: Pool,
    kernels: Kernels<T>,
    /// Made when first asked for.
    sequence: Option<Sequence<T>>,
    pub(super) views: usize,
    /// Moduli, in the kernels' order.
    pub(super) mag: Buffer<f32>,
    /// One over the pixels that count, and the mean variance of their moduli, of each view.
    pub(super) weight: Buffer<[T; 2]>,
    /// Fourier transforms of the exit waves, in the kernels' order; empty until an engine needs them.
    pub(super) waves: Buffer<C<T>>,
    /// Exit waves.
    pub(super) exits: Buffer<C<T>>,
    /// Three errors per view.
    pub(super) errors: Buffer<T>,
    order: Buffer<u32>,
    /// Kernel of the near field.
    near: Option<Buffer<C<T>>>,
    /// Sub-pixel remainders of every view, where frames are shifted back by them (a near detector, sub-pixel shifts); 0 elsewhere.
    pub(super) shifts: u64,
    /// The arrays are those of one block of frames after another (`stream`).
    pub(super) one_block: bool,
}

impl<T: Number> Frames<T> {
    pub(super) fn new(model: &Model, cuda: &Cuda, pool: &Pool, config: KernelConfig) -> Result<Self> {
        let kernels = match config.processing {
            FrameProcessing::MultiPass | FrameProcessing::Tiled { .. } | FrameProcessing::Clustered { .. } => {
                Kernels::MultiPass(Box::new(MultiPass::new(cuda, pool, config, model.own().len())?))
            }
            FrameProcessing::Fused { cluster, .. } => {
                let program = frames_recipe(&config).build(cuda)?;
                let project = program.kernel("project")?;
                let blocks = if cluster == 0 {
                    project.blocks_per_multiprocessor(config.threads(), config.shared())? * cuda.properties().multiprocessors
                } else {
                    project.clusters(1 << cluster, config.threads(), config.shared())? << cluster
                };
                Kernels::Fused { begin: program.kernel("begin")?, project, blocks }
            }
        };
        let pixels = model.counted();
        let mag = match config.order(4) {
            None => pool.buffer_from(&model.mag, "ptycho: frames")?,
            Some(order) => {
                let mut buffer = pool.alloc_zeros(model.mag.len(), "ptycho: frames")?;
                // A part at a time: a copy of all frames on the host would double what a large scan takes there.
                let part = (GROUP / (4 * pixels)).max(1) * pixels;
                let mut turned = vec![0.0_f32; part.min(model.mag.len())];
                for (i, frames) in model.mag.chunks(part).enumerate() {
                    let turned = &mut turned[..frames.len()];
                    each((chunks_mut(turned, pixels), chunks(frames, pixels)), |_, (to, m)| {
                        to.iter_mut().zip(&order).for_each(|(to, j)| *to = m[*j as usize]);
                    });
                    cuda.upload_at(&mut buffer, i * part, turned)?;
                }
                buffer
            }
        };
        let near = match &model.transfer {
            Transfer::Far => None,
            // As the transform leaves its values.
            Transfer::Near(kernel) => {
                let kernel = narrow::<T>(kernel);
                let turned = config.order_in(2, false).map(|order| order.iter().map(|i| kernel[*i as usize]).collect::<Vec<_>>());
                Some(pool.buffer_from(&turned.unwrap_or(kernel), "ptycho: near field")?)
            }
        };
        Ok(Self {
            config,
            cuda: cuda.clone(),
            pool: pool.clone(),
            kernels,
            sequence: None,
            views: model.own().len(),
            mag,
            weight: pool.buffer_from(&pairs(&noise::of_frames(&model.mag, pixels)), "ptycho: frames")?,
            waves: pool.alloc_zeros(0, "ptycho: exit waves")?,
            exits: pool.alloc_zeros(0, "ptycho: exit waves")?,
            errors: pool.alloc_zeros(3 * model.own().len(), "ptycho: errors")?,
            order: pool.alloc_zeros(model.own().len(), "ptycho: order")?,
            near,
            shifts: 0,
            one_block: false,
        })
    }

    /// Address of the near field's kernel, or 0.
    pub(super) fn near(&self) -> u64 {
        self.near.as_ref().map_or(0, Buffer::address)
    }

    fn pixels(&self) -> usize {
        self.config.frame[0] * self.config.frame[1]
    }

    fn wave(&self) -> usize {
        self.config.exits() * self.pixels()
    }

    /// Allocates waves behind the sample alone.
    pub(super) fn need_exits(&mut self) -> Result<()> {
        let len = self.views * self.wave();
        if self.exits.len() < len {
            self.exits = self.pool.alloc_zeros(len, "ptycho: exit waves")?;
        }
        Ok(())
    }

    /// Allocates exit waves.
    pub(super) fn need(&mut self) -> Result<()> {
        let len = self.views * self.wave();
        if self.waves.len() < len {
            self.waves = self.pool.alloc_zeros(len, "ptycho: exit waves")?;
        }
        self.need_exits()
    }

    /// Exit waves and their transforms of probe and object, or transforms of the exit waves that are there.
    pub(super) fn begin(&mut self, model: ModelArgument, from_exits: bool) -> Result<()> {
        self.need()?;
        let (views, wave, group) = (self.views, self.wave(), step_group(&self.config, self.views));
        if let Kernels::Fused { begin, blocks, .. } = &self.kernels {
            let cluster = 1 << self.config.cluster();
            let launch = begin.launch(*blocks, self.config.threads()).shared(self.config.shared());
            let launch = if cluster > 1 { launch.cluster(cluster) } else { launch };
            let launch = launch.arg(model).arg(&mut self.waves).arg(&mut self.exits).arg(views as u32).arg(u32::from(from_exits));
            // SAFETY: (Model, C*, C*, u32, u32) as `begin` declares; waves and exits hold all views.
            return unsafe { launch.run() };
        }
        let Self { cuda, kernels: Kernels::MultiPass(plain), waves, exits, near, shifts, .. } = self else {
            unreachable!("launches of a fused kernel")
        };
        for first in (0..views).step_by(group) {
            let group = Group { first, count: group.min(views - first), near: near.as_ref(), shifts: *shifts };
            if !from_exits {
                plain.spread(model, exits, &group)?;
            }
            cuda.copy(exits, first * wave, waves, first * wave, group.count * wave)?;
            plain.carry(waves, &group)?;
        }
        Ok(())
    }

    /// The Fourier step.
    pub(super) fn project(&mut self, model: ModelArgument, rule: ConstraintArgument<T>) -> Result<()> {
        self.need()?;
        let (views, group) = (self.views, step_group(&self.config, self.views));
        if let Kernels::Fused { project, blocks, .. } = &self.kernels {
            let cluster = 1 << self.config.cluster();
            let grid = (*blocks).min((views as u32).saturating_mul(cluster));
            let launch = project.launch(grid, self.config.threads()).shared(self.config.shared());
            let launch = if cluster > 1 { launch.cluster(cluster) } else { launch };
            let launch = launch.arg(model).arg(&mut self.waves).arg(&mut self.exits).arg(&self.mag).arg(&self.weight);
            // SAFETY: arguments as `project` declares; every array holds all views.
            return unsafe { launch.arg(&mut self.errors).arg(0u32).arg(views as u32).plain(rule).run() };
        }
        let Self { kernels: Kernels::MultiPass(plain), waves, exits, mag, weight, errors, near, shifts, .. } = self else {
            unreachable!("launches of a fused kernel")
        };
        for first in (0..views).step_by(group) {
            let group = Group { first, count: group.min(views - first), near: near.as_ref(), shifts: *shifts };
            plain.project(model, rule, (&mut *waves, &mut *exits), (mag, weight), &mut *errors, &group)?;
        }
        plain.frame_errors(views, weight, errors)
    }

    /// One pass from view to view; `keep`: waves are kept from one pass to the next.
    pub(super) fn sequence(
        &mut self,
        model: ModelArgument,
        rule: ConstraintArgument<T>,
        step: PieStepArgument<T>,
        keep: bool,
        order: &[u32],
    ) -> Result<()> {
        if keep {
            self.need()?;
        }
        if self.sequence.as_ref().is_none_or(|s| s.keep != keep) {
            self.sequence = Some(self.make_sequence(keep)?);
        }
        self.cuda.upload(&mut self.order, order)?;
        let Some(Sequence { kernel, config, mag, near, .. }) = &self.sequence else { unreachable!("made above") };
        let model = near.as_ref().map_or(model, |near| ModelArgument { near: near.address(), ..model });
        let cluster = 1 << config.cluster();
        let launch = kernel.launch(cluster, config.threads()).shared(config.sequence_shared());
        let launch = if cluster > 1 { launch.cluster(cluster) } else { launch };
        let mag = mag.as_ref().unwrap_or(&self.mag);
        let launch = launch.arg(model).arg(&mut self.waves).arg(mag).arg(&self.weight).arg(&mut self.errors);
        // SAFETY: arguments as `sequence` declares; the order was checked to hold numbers of views.
        unsafe { launch.arg(&self.order).arg(order.len() as u32).plain(rule).plain(step).run() }
    }

    /// The kind that goes from view to view in registers: one mode, and frames whose probe fits into shared memory, where cuFFT is
    /// not there or not wanted.
    pub(super) fn sequence_kind(&self, keep: bool) -> Option<KernelConfig> {
        // Sub-pixel shifts are made in pieces there.
        if self.config.shifted || (!self.config.registers && CudaPlans::new(&self.cuda).is_ok()) {
            return None;
        }
        let device = self.cuda.properties();
        let same = self.config.unfetched();
        let config = if keep { same } else { same.spread_out(device) };
        (matches!(config.processing, FrameProcessing::Fused { .. })
            && config.exits() == 1
            && config.sequence_shared() <= device.shared_per_block)
            .then_some(config)
    }

    fn make_sequence(&self, keep: bool) -> Result<Sequence<T>> {
        let (same, Some(config)) = (self.config.unfetched(), self.sequence_kind(keep)) else {
            return Err(refused("engines that go from view to view in registers with these frames", "take `--device cpu`"));
        };
        let program = sequence_recipe(&config).build(&self.cuda)?;
        let kernel = program.kernel("sequence")?;
        // Moduli lie as the blocks that share a frame want them.
        let mag = if config == same || self.one_block { None } else { Some(self.reordered(config, &program.kernel("reorder_frames")?)?) };
        let near = match &self.near {
            Some(near) if config != same => {
                let values = self.cuda.download(near)?;
                Some(self.pool.buffer_from(
                    &self.between(config, 2, false).into_iter().map(|i| values[i]).collect::<Vec<_>>(),
                    "ptycho: near field",
                )?)
            }
            _ => None,
        };
        Ok(Sequence { kernel, config, keep, mag, near })
    }

    /// Positions of the values of another kind's frame, in its order, in one of this kind.
    fn between(&self, config: KernelConfig, pack: usize, real: bool) -> Vec<usize> {
        let (Some(old), Some(new)) = (self.config.order_in(pack, real), config.order_in(pack, real)) else {
            return (0..self.pixels()).collect();
        };
        let mut slots = vec![0; old.len()];
        old.iter().enumerate().for_each(|(i, slot)| slots[*slot as usize] = i);
        new.iter().map(|slot| slots[*slot as usize]).collect()
    }

    /// The moduli in the order of another kind, by `reorder_frames` of reorder.cu.
    fn reordered(&self, config: KernelConfig, reorder: &Kernel) -> Result<Buffer<f32>> {
        let mut to = self.pool.alloc_zeros(self.mag.len(), "ptycho: frames")?;
        let order: Vec<u32> = self.between(config, 4, self.config.near).into_iter().map(|i| i as u32).collect();
        let order = self.pool.buffer_from(&order, "ptycho: order of frames")?;
        let blocks = 8 * self.cuda.properties().multiprocessors;
        let launch = reorder.launch(blocks, TEAM).arg(&self.mag).arg(&order).arg(&mut to).arg(self.mag.len() as u64);
        // SAFETY: (const float*, const u32*, float*, u64) as `reorder_frames` declares; both hold as many whole frames, the order numbers
        // of a frame's pixels.
        unsafe { launch.run()? };
        Ok(to)
    }
}
