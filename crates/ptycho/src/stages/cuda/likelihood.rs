//! The likelihood's gradient and its expansion along a direction, and the arithmetic of directions.

use std::ops::Range;

use zellige_engine::cuda::{Address, Argument, Buffer, Cuda, Kernel, Launch, Pool};
use zellige_engine::error::Result;

use super::arguments::{LineSearchArgument, ModelArgument};
use super::batches::{Batch, BatchOperations};
use super::frames::Frames;
use super::number::{C, Number};
use super::program::{FrameProcessing, KernelConfig, TEAM, pair};
use super::recipes::{batch_likelihood_recipe, likelihood_recipe, vectors_recipe};
use super::subpixel::SubpixelProbe;
use super::sums::Sums;
use super::{Pair, refused};
use crate::model::Model;
use crate::stages::{Likelihood, Noise};

/// Blocks of a reduction whose parts the host adds up.
const BLOCKS: u32 = 264;

/// Processing of frames.
enum FrameKernels {
    /// Processing in registers; blocks of both kernels.
    Fused { gradient: Kernel, line: Kernel, blocks: u32 },
    /// Processing in pieces around cuFFT.
    BatchOperations { brighten: Kernel, view_brightness: Kernel, weigh: Kernel, bend: Kernel },
}

/// Kernels and buffers, made when first asked for.
pub(super) struct LikelihoodKernels<T> {
    cuda: Cuda,
    config: KernelConfig,
    noise: Noise,
    passes: FrameKernels,
    object_sums: Kernel,
    object_adds: Kernel,
    probe_parts: Kernel,
    probe_sums: Kernel,
    dot: Kernel,
    combine: Kernel,
    neighbours: Kernel,
    /// Two values for each block that shares a frame, per view.
    values: Buffer<f64>,
    /// Brightness of the views, and whether it was let float.
    factors: Buffer<T>,
    floated: bool,
    /// Two values per block of a reduction.
    parts: Buffer<f64>,
}

impl<T: Number> LikelihoodKernels<T> {
    pub(super) fn new(cuda: &Cuda, pool: &Pool, config: KernelConfig, noise: Noise, views: usize) -> Result<Self> {
        let vectors = vectors_recipe(&config).build(cuda)?;
        let (passes, config, room) = if let FrameProcessing::Fused { cluster, .. } = config.processing {
            // The wave to come is not fetched here.
            let config = KernelConfig { processing: FrameProcessing::Fused { cluster, fetch: false }, ..config };
            let frames = likelihood_recipe(&config, noise).build(cuda)?;
            let line = frames.kernel("line")?;
            let (threads, shared) = (config.threads(), config.likelihood_shared());
            let blocks = if cluster == 0 {
                line.blocks_per_multiprocessor(threads, shared)? * cuda.properties().multiprocessors
            } else {
                line.clusters(1 << cluster, threads, shared)? << cluster
            };
            (FrameKernels::Fused { gradient: frames.kernel("gradient")?, line, blocks }, config, (views * 2) << cluster)
        } else {
            let program = batch_likelihood_recipe(&config, noise).build(cuda)?;
            let passes = FrameKernels::BatchOperations {
                brighten: program.kernel("brighten")?,
                view_brightness: program.kernel("view_brightness")?,
                weigh: program.kernel("weigh")?,
                bend: program.kernel("bend")?,
            };
            (passes, config, 0)
        };
        Ok(Self {
            cuda: cuda.clone(),
            config,
            noise,
            passes,
            object_sums: vectors.kernel("object_sums")?,
            object_adds: vectors.kernel("object_adds")?,
            probe_parts: vectors.kernel("probe_parts")?,
            probe_sums: vectors.kernel("probe_sums")?,
            dot: vectors.kernel("dot")?,
            combine: vectors.kernel("combine")?,
            neighbours: vectors.kernel("neighbours")?,
            values: pool.alloc_zeros(room, "ptycho: likelihoods")?,
            factors: pool.buffer_from(&vec![T::from_wide(1.0); views], "ptycho: brightness")?,
            floated: false,
            parts: pool.alloc_zeros(2 * BLOCKS as usize, "ptycho: sums")?,
        })
    }

    pub(super) fn noise(&self) -> Noise {
        self.noise
    }

    /// Returns true if [`LikelihoodKernels::gradient`] and [`LikelihoodKernels::line`] take [`BatchOperations`].
    pub(super) fn in_batches(&self) -> bool {
        matches!(self.passes, FrameKernels::BatchOperations { .. })
    }

    fn launch<'a>(&self, kernel: &'a Kernel, blocks: u32) -> Launch<'a> {
        let cluster = 1 << self.config.cluster();
        let launch = kernel.launch(blocks, self.config.threads()).shared(self.config.likelihood_shared());
        if cluster > 1 { launch.cluster(cluster) } else { launch }
    }

    fn search(views: &Range<usize>, rule: &Likelihood) -> LineSearchArgument {
        LineSearchArgument { views: views.len() as u32, floating: rule.floating.into(), left_out: rule.floating_left_out.into() }
    }

    /// Values of the views, two each.
    pub(super) fn totals(&self) -> Result<Vec<[f64; 2]>> {
        let values = self.cuda.download(&self.values)?;
        Ok(values
            .chunks_exact(2 << self.config.cluster())
            .map(|v| v.chunks_exact(2).fold([0.0; 2], |s, v| [s[0] + v[0], s[1] + v[1]]))
            .collect())
    }

    /// Waves of the gradient of some views to the buffer of the exit waves; `argument` and the arrays of `frames` begin with the
    /// first of them. Their values are given where there are `operations`, and are among [`LikelihoodKernels::totals`] otherwise.
    pub(super) fn gradient_part(
        &mut self,
        argument: ModelArgument,
        frames: &mut Frames<T>,
        operations: Option<&mut BatchOperations<T>>,
        rule: &Likelihood,
        views: &Range<usize>,
    ) -> Result<Vec<f64>> {
        // Kernels in pieces read the factors in any case, and an engine before may have let them float.
        if self.floated && !rule.floating {
            let ones = vec![T::from_wide(1.0); self.factors.len()];
            self.cuda.upload(&mut self.factors, &ones)?;
        }
        self.floated = rule.floating;
        let FrameKernels::Fused { gradient, blocks, .. } = &self.passes else {
            let operations = operations.ok_or_else(|| refused("ML in pieces that were not made", "take `--device cpu`, and report it"))?;
            return self.gradient_in_batches(argument, frames, operations, rule, views.start);
        };
        let values = self.values.from((views.start * 2) << self.config.cluster());
        let launch = self.launch(gradient, *blocks).arg(argument).arg(&mut frames.exits).arg(&frames.mag).arg(values);
        // SAFETY: arguments as `gradient` declares; every array holds the views.
        unsafe { launch.arg(self.factors.from(views.start)).arg(Self::search(views, rule)).run()? };
        Ok(Vec::new())
    }

    /// First and second order of some views, likewise; exit waves are overwritten.
    pub(super) fn line_part(
        &mut self,
        argument: ModelArgument,
        along: ModelArgument,
        frames: &mut Frames<T>,
        operations: Option<&mut BatchOperations<T>>,
        rule: &Likelihood,
        views: &Range<usize>,
    ) -> Result<Vec<[f64; 2]>> {
        let FrameKernels::Fused { line, blocks, .. } = &self.passes else {
            let operations = operations.ok_or_else(|| refused("ML in pieces that were not made", "take `--device cpu`, and report it"))?;
            return self.line_in_batches(argument, along, frames, operations, views.start);
        };
        let values = self.values.from((views.start * 2) << self.config.cluster());
        let launch = self.launch(line, *blocks).arg(argument).arg(along).arg(&mut frames.exits).arg(&frames.mag).arg(values);
        // SAFETY: arguments as `line` declares; every array holds the views.
        unsafe { launch.arg(self.factors.from(views.start)).arg(Self::search(views, rule)).run()? };
        Ok(Vec::new())
    }

    /// The probe's part of the gradient from the sums of its parts, nothing where it is not asked for.
    pub(super) fn probe_gradient(&mut self, sums: &Sums<T>, rule: &Likelihood, to: &mut Buffer<C<T>>) -> Result<()> {
        if !rule.probe {
            return self.cuda.fill_zero(to);
        }
        let (list, pixels) = (sums.complete(0), (self.config.frame[0] * self.config.frame[1]) as u32);
        // SAFETY: (Sums, C*) as declared.
        unsafe { self.probe_sums.launch((pixels.div_ceil(TEAM), list.sets), TEAM).arg(list).arg(to).run() }
    }

    /// Gradient to `to`; gives the value of every view.
    pub(super) fn gradient(
        &mut self,
        argument: ModelArgument,
        frames: &mut Frames<T>,
        (mut operations, subpixel): (Option<&mut BatchOperations<T>>, Option<&mut SubpixelProbe<T>>),
        sums: &Sums<T>,
        rule: &Likelihood,
        to: &mut Pair<T>,
    ) -> Result<Vec<f64>> {
        frames.need_exits()?;
        let pixels = (self.config.frame[0] * self.config.frame[1]) as u32;
        let values = self.gradient_part(argument, frames, operations.as_deref_mut(), rule, &(0..frames.views))?;
        let list = sums.argument(0);
        if rule.object && sums.atomic() {
            self.cuda.fill_zero(&mut to.object)?;
            let launch = self.object_adds.launch(sums.blocks, TEAM).arg(argument).arg(&frames.exits).arg(list);
            // SAFETY: (Model, const C*, Sums, C*) as declared; every view lies in its object.
            unsafe { launch.arg(&mut to.object).run()? };
        } else if rule.object {
            let launch = self.object_sums.launch(sums.tiles.len() as u32, TEAM).arg(argument).arg(&frames.exits).arg(list);
            // SAFETY: (Model, const C*, Sums, C*) as declared; every pixel of the objects is in a tile.
            unsafe { launch.arg(&mut to.object).run()? };
        } else {
            self.cuda.fill_zero(&mut to.object)?;
        }
        if let (Some(subpixel), Some(operations), true) = (subpixel, operations, rule.probe) {
            subpixel.probe_sums(operations, argument, frames, false)?;
            let len = to.probe.len();
            self.cuda.copy(&subpixel.sums, 0, &mut to.probe, 0, len)?;
            return self.values(values);
        }
        if rule.probe {
            let launch = self
                .probe_parts
                .launch(((pixels / pair(self.config.frame, self.config.number()) as u32).div_ceil(TEAM), sums.parts.len() as u32), TEAM);
            // SAFETY: (Model, const C*, Sums) as declared.
            unsafe { launch.arg(argument).arg(&frames.exits).arg(list).run()? };
        }
        self.probe_gradient(sums, rule, &mut to.probe)?;
        self.values(values)
    }

    /// Values of the views: those of [`LikelihoodKernels::gradient_part`] where it gives them.
    pub(super) fn values(&self, values: Vec<f64>) -> Result<Vec<f64>> {
        if self.in_batches() { Ok(values) } else { Ok(self.totals()?.iter().map(|v| v[0]).collect()) }
    }

    /// First and second order of every view along a direction.
    pub(super) fn line(
        &mut self,
        argument: ModelArgument,
        along: ModelArgument,
        frames: &mut Frames<T>,
        operations: Option<&mut BatchOperations<T>>,
        rule: &Likelihood,
    ) -> Result<Vec<[f64; 2]>> {
        if !self.in_batches() {
            frames.need_exits()?;
        }
        let values = self.line_part(argument, along, frames, operations, rule, &(0..frames.views))?;
        if self.in_batches() { Ok(values) } else { self.totals() }
    }

    /// Waves of the gradient to the buffer of the exit waves, around cuFFT; gives the values of the views, the first of which
    /// is view `start` of all.
    fn gradient_in_batches(
        &self,
        argument: ModelArgument,
        frames: &mut Frames<T>,
        operations: &mut BatchOperations<T>,
        rule: &Likelihood,
        start: usize,
    ) -> Result<Vec<f64>> {
        let FrameKernels::BatchOperations { brighten, view_brightness, weigh, .. } = &self.passes else { return Ok(Vec::new()) };
        let (views, chunks, wave) = (frames.views, operations.chunks(), operations.wave());
        let group = operations.group(views);
        let part = views * chunks as usize;
        let factors = || self.factors.from(start);
        // Values, and behind them what brightness is found from.
        operations.need(group, 0, 1, part + 2 * group * chunks as usize)?;
        for first in (0..views).step_by(group) {
            let count = group.min(views - first);
            let grid = (chunks, count as u32);
            let work = frames.exits.from(first * wave).value();
            let batch = Batch { work, ..operations.batch(frames, first, first * chunks as usize) };
            operations.multiply(argument, None, batch, count, -1)?;
            operations.propagate_in(&mut frames.exits, first * wave, batch, count, false)?;
            operations.intensity(batch, count)?;
            if rule.floating {
                let behind = Batch { sums: operations.sums.from(part).value(), ..batch };
                // SAFETY: (Batch), (Batch, u32, u32, float*) as declared; there is room for two sums a block of the batch behind
                // the values.
                unsafe {
                    brighten.launch(grid, TEAM).arg(behind).run()?;
                    let launch = view_brightness.launch((count as u32).div_ceil(TEAM), TEAM).arg(behind);
                    launch.arg(chunks).arg(count as u32).arg(factors()).run()?;
                }
            }
            let launch = weigh.launch(grid, TEAM).arg(batch).arg(factors());
            // SAFETY: (Batch, const float*, u32) as `weigh` declares.
            unsafe { launch.arg(u32::from(rule.floating_left_out)).run()? };
            operations.propagate_in(&mut frames.exits, first * wave, batch, count, true)?;
        }
        Ok(operations.totals::<1>(0..views)?.into_iter().map(|[v]| v).collect())
    }

    /// First and second order of every view, likewise.
    fn line_in_batches(
        &self,
        argument: ModelArgument,
        along: ModelArgument,
        frames: &Frames<T>,
        operations: &mut BatchOperations<T>,
        start: usize,
    ) -> Result<Vec<[f64; 2]>> {
        let FrameKernels::BatchOperations { bend, .. } = &self.passes else { return Ok(Vec::new()) };
        let (views, chunks) = (frames.views, operations.chunks());
        let group = operations.group(views);
        operations.need(group, 3, 1, 2 * views * chunks as usize)?;
        // P dO and dP O.
        let mixed = [ModelArgument { object: along.object, ..argument }, ModelArgument { probe: along.probe, ..argument }];
        for first in (0..views).step_by(group) {
            let count = group.min(views - first);
            let batch = operations.batch(frames, first, 2 * first * chunks as usize);
            let others = [1, 2].map(|i| Batch { work: operations.waves[i].address(), ..batch });
            operations.multiply(argument, None, batch, count, -1)?;
            operations.multiply(mixed[0], Some(mixed[1]), others[0], count, -1)?;
            operations.multiply(along, None, others[1], count, -1)?;
            for which in 0..3 {
                operations.propagate(which, batch, count, false)?;
            }
            operations.intensity(batch, count)?;
            let launch = bend.launch((chunks, count as u32), TEAM).arg(batch).arg(&operations.waves[1]).arg(&operations.waves[2]);
            // SAFETY: (Batch, const C*, const C*, const float*) as `bend` declares; there is room for two sums a block of every
            // view.
            unsafe { launch.arg(self.factors.from(start)).run()? };
        }
        operations.totals::<2>(0..views)
    }

    /// `2 a sum |d|^2` of neighbours' differences in all objects, its derivative added to `gradient`; or its first and second order
    /// along a direction.
    pub(super) fn neighbours(
        &mut self,
        model: &Model,
        object: &Buffer<C<T>>,
        along: Option<&Buffer<C<T>>>,
        gradient: Option<&Buffer<C<T>>>,
        a: f64,
    ) -> Result<[f64; 2]> {
        let mut both = [0.0; 2];
        for storage in &model.storages {
            for o in 0..model.modes[1] {
                let at = storage.offset + o * storage.layer();
                let address = |b: Option<&Buffer<C<T>>>| b.map_or(0, |b| zellige_engine::cuda::Argument::value(b.from(at)));
                let [height, width] = storage.shape.map(|n| n as u32);
                let launch = self.neighbours.launch(BLOCKS, TEAM).arg(address(Some(object))).arg(address(along)).arg(address(gradient));
                // SAFETY: (const C*, const C*, C*, u32, u32, float, double*) as declared; the layer lies in every array given.
                unsafe { launch.arg(height).arg(width).arg(T::from_wide(a)).arg(&mut self.parts).run()? };
                for part in self.cuda.download(&self.parts)?.chunks_exact(2) {
                    both = [both[0] + part[0], both[1] + part[1]];
                }
            }
        }
        Ok(both)
    }

    /// `Re <a, b>` of probes and objects.
    pub(super) fn dot(&mut self, a: &Pair<T>, b: &Pair<T>) -> Result<[f64; 2]> {
        for (part, x, y) in [(0, &a.probe, &b.probe), (1, &a.object, &b.object)] {
            let to: Address<f64> = self.parts.from(part * BLOCKS as usize);
            // SAFETY: (const C*, const C*, u64, double*) as declared; both are as long, and there is room for a sum a block.
            unsafe { self.dot.launch(BLOCKS, TEAM).arg(x).arg(y).arg(x.len() as u64).arg(to).run()? };
        }
        let parts = self.cuda.download(&self.parts)?;
        Ok([0, 1].map(|i| parts[i * BLOCKS as usize..(i + 1) * BLOCKS as usize].iter().sum()))
    }

    /// `to = s to + f from`.
    pub(super) fn combine(&mut self, to: &Pair<T>, s: [f64; 2], from: &Pair<T>, f: [f64; 2]) -> Result<()> {
        for (i, to, from) in [(0, &to.probe, &from.probe), (1, &to.object, &from.object)] {
            let launch = self.combine.launch(BLOCKS, TEAM).arg(to).arg(from).arg(to.len() as u64);
            // SAFETY: (C*, const C*, u64, float, float) as declared; both are as long, and the slots are different ones.
            unsafe { launch.arg(T::from_wide(s[i])).arg(T::from_wide(f[i])).run()? };
        }
        Ok(())
    }
}
