//! LSQML, around cuFFT; and the way from view to view of [`BatchSequence`].

use zellige_engine::cuda::{Argument, Buffer, Cuda, Kernel, Pool};
use zellige_engine::error::Result;

use super::Pair;
use super::arguments::ModelArgument;
use super::batch_sequence::BatchSequence;
use super::batches::{Batch, BatchOperations};
use super::frames::Frames;
use super::handover::batch::{BatchWaves, OwnViews};
use super::number::{C, Number};
use super::program::{KernelConfig, TEAM};
use super::recipes::sweeps_recipe;
use super::subpixel::SubpixelProbe;
use super::supports::Supports;
use crate::batch::BatchShare;
use crate::model::{Model, Storage};
use crate::stages::{LeastSquares, Noise, cpu};

/// Blocks that look for a greatest value.
const GREATEST: u32 = 264;

/// Kernels and buffers, made when first asked for.
pub(super) struct Sweeps<T: Number> {
    cuda: Cuda,
    pool: Pool,
    /// Processing from view to view.
    pub(super) batch_sequence: BatchSequence<T>,
    view_errors: Kernel,
    residual: Kernel,
    object_direction: Kernel,
    object_scatter: Kernel,
    greatest_of: Kernel,
    probe_direction: Kernel,
    divide: Kernel,
    products: Kernel,
    add: Kernel,
    /// Marks atomic sums of the objects.
    atomic: bool,
    order: Buffer<u32>,
    /// Greatest values of every object and probe.
    brightest: Buffer<T::Word>,
    direction: Option<Pair<T>>,
    norms: Buffer<T>,
    /// Probes as own views of a batch see them, directions likewise, and probes as all of the batch see them where that is of
    /// several parts; where these differ from view to view.
    own: [Buffer<C<T>>; 3],
    /// Waves that parts of a run tell each other.
    pub(super) told: Option<BatchWaves<T>>,
    config: KernelConfig,
}

impl<T: Number> Sweeps<T> {
    pub(super) fn new(model: &Model, cuda: &Cuda, pool: &Pool, config: KernelConfig) -> Result<Self> {
        let program = sweeps_recipe(&config).build(cuda)?;
        let nothing = || pool.alloc_zeros(0, "ptycho: shifted probes");
        Ok(Self {
            cuda: cuda.clone(),
            pool: pool.clone(),
            batch_sequence: BatchSequence::new(model, cuda, pool, &program)?,
            view_errors: program.kernel("view_errors")?,
            residual: program.kernel("residual")?,
            object_direction: program.kernel("object_direction")?,
            object_scatter: program.kernel("object_scatter")?,
            greatest_of: program.kernel("greatest_of")?,
            atomic: config.atomic,
            probe_direction: program.kernel("probe_direction")?,
            divide: program.kernel("divide")?,
            products: program.kernel("products")?,
            add: program.kernel("add")?,
            order: pool.alloc_zeros(model.views.len(), "ptycho: order")?,
            brightest: pool.alloc_zeros(0, "ptycho: greatest values")?,
            direction: None,
            norms: pool.alloc_zeros(0, "ptycho: norms")?,
            own: [nothing()?, nothing()?, nothing()?],
            told: None,
            config,
        })
    }

    /// Begins a pass over the views in `order`, by batches of `size`, where the run is in several parts.
    pub(super) fn share_batches(&mut self, model: &Model, order: &[u32], size: usize) -> Result<()> {
        if model.share.is_alone() {
            return Ok(());
        }
        let size = size.clamp(1, order.len().max(1));
        let told = match self.told.take().filter(|told| told.fits(size)) {
            Some(told) => told,
            None => BatchWaves::new(model, &self.cuda, &self.pool, self.config, size)?,
        };
        self.told.insert(told).begin(model, order, size)
    }

    /// Errors of some views of the order from the sums of their blocks.
    fn errors(&self, operations: &BatchOperations<T>, frames: &Frames<T>, OwnViews { list, count, .. }: OwnViews) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        let batch = Batch { list, ..operations.batch(frames, 0, 0) };
        let launch = self.view_errors.launch((count as u32).div_ceil(TEAM), TEAM).arg(batch).arg(operations.chunks()).arg(count as u32);
        // SAFETY: (Batch, u32, u32, const float*, float*) as `view_errors` declares; every one of the views has its sums.
        unsafe { launch.arg(&frames.weight).arg(&frames.errors).run() }
    }

    /// One pass of LSQML, batch by batch. The first argument is that of kernels that count own views of a part of a run, as lists
    /// of frames do, the second that of sums over all.
    pub(super) fn least_squares(
        &mut self,
        model: &Model,
        [argument, all]: [ModelArgument; 2],
        state: &mut Pair<T>,
        frames: &mut Frames<T>,
        operations: &mut BatchOperations<T>,
        (supports, mut subpixel): (Option<&Supports<T>>, Option<&mut SubpixelProbe<T>>),
        rule: &LeastSquares,
        order: &[u32],
    ) -> Result<()> {
        let chunks = operations.chunks();
        let batch_size = rule.batch.clamp(1, order.len().max(1));
        // Sums of the errors, and behind them those of a batch's steps.
        let behind = 3 * order.len() * chunks as usize;
        operations.need(batch_size, 1, 0, behind + 5 * batch_size * chunks as usize)?;
        self.cuda.upload_at(&mut self.order, 0, order)?;
        let layers: Vec<usize> = model.storages.iter().map(Storage::layer).collect();
        let norms = layers.iter().sum::<usize>().max(model.pixels());
        if self.norms.len() != norms {
            self.norms = self.pool.alloc_zeros(norms, "ptycho: norms")?;
        }
        let batches = order.len().div_ceil(batch_size);
        let each = model.storages.len() + model.probes;
        self.brightest = self.pool.alloc_zeros(batches * each, "ptycho: greatest values")?;
        let mut direction = match self.direction.take() {
            Some(direction) => direction,
            None => Pair::zeros(model, &self.pool, "ptycho: directions")?,
        };
        let mut along = ModelArgument { probe: direction.probe.address(), object: direction.object.address(), ..argument };
        let mut own = self.own.each_ref().map(|_| None);
        if let Some(subpixel) = subpixel.as_deref() {
            let kinds = if model.share.is_alone() { 2 } else { 3 };
            for (own, kept) in own.iter_mut().zip(&mut self.own).take(kinds) {
                let mut buffer = std::mem::replace(kept, self.pool.alloc_zeros(0, "ptycho: shifted probes")?);
                subpixel.grow(&mut buffer, batch_size)?;
                *own = Some(buffer);
            }
        }
        let (plain, mut told) = (argument, self.told.take());
        for (number, views) in order.chunks(batch_size).enumerate() {
            let first = number * batch_size;
            let (count, parts, list) = (views.len() as u32, BatchShare::new(&model.share, views), self.order.from(first).value());
            let own_views = told.as_ref().map_or(OwnViews { list, first, count: views.len() }, |told| told.own(number));
            let here = own_views.count as u32;
            let mut batch = Batch { list: own_views.list, ..operations.batch(frames, 0, 3 * own_views.first * chunks as usize) };
            let (mut argument, mut all) = (plain, all);
            if let (Some(subpixel), [Some(own), _, whole]) = (subpixel.as_deref_mut(), &mut own) {
                subpixel.take(operations, &state.probe)?;
                subpixel.shift_probes(operations, plain, batch, own_views.count, (own, 0), -1)?;
                argument.probe = own.address();
                all.probe = own.address();
                if let Some(whole) = whole {
                    let batch = Batch { list, ..batch };
                    subpixel.counting_all(model, |subpixel| subpixel.shift_probes(operations, all, batch, views.len(), (whole, 0), -1))?;
                    all.probe = whole.address();
                }
            }
            operations.multiply(argument, None, batch, own_views.count, -1)?;
            operations.propagate(0, batch, own_views.count, false)?;
            let poisson = u32::from(rule.noise == Noise::Poisson);
            // SAFETY: (Batch, u32) as `residual` declares; the sums hold all views of the order.
            unsafe { self.residual.launch((chunks, here), TEAM).arg(batch).arg(poisson).run()? };
            operations.propagate(0, batch, own_views.count, true)?;
            let own_batch = batch;
            if let Some(told) = &mut told {
                batch = told.tell(number, &parts, &operations.waves[0], batch, list)?;
            }
            self.cuda.fill_zero(&mut direction.object)?;
            self.cuda.fill_zero(&mut direction.probe)?;
            if rule.object {
                self.object_directions(model, all, batch, count, &direction, rule.damping, number * each)?;
            }
            if rule.probe {
                let largest = number * each + layers.len();
                if let Some(subpixel) = subpixel.as_deref_mut() {
                    let to = &mut direction;
                    subpixel.counting_all(model, |subpixel| {
                        self.probe_directions_subpixel(model, all, batch, count, operations, subpixel, to, rule.damping, largest)
                    })?;
                } else {
                    self.probe_directions(model, all, batch, count, &direction, rule.damping, largest, chunks)?;
                }
                if let Some(supports) = supports {
                    supports.apply(Some(operations), &mut direction.probe)?;
                }
            }
            if let (Some(subpixel), Some(own)) = (subpixel.as_deref_mut(), &mut own[1]) {
                subpixel.take(operations, &direction.probe)?;
                subpixel.shift_probes(operations, plain, own_batch, own_views.count, (own, 0), -1)?;
                along.probe = own.address();
            }
            let steps = Batch { sums: operations.sums.from(behind).value(), ..own_batch };
            // SAFETY: (Model, Model, Batch) as `products` declares; five sums a block of every view of the batch lie behind those of the
            // errors.
            unsafe { self.products.launch((chunks, here), TEAM).arg(argument).arg(along).arg(steps).run()? };
            let sums = self.cuda.download_range(&operations.sums, behind..behind + 5 * (here * chunks) as usize)?;
            let mut products = vec![[0.0; 5]; views.len()];
            for ((_, to), view) in parts.own_of(&mut products, 1).into_iter().zip(sums.chunks_exact(5 * chunks as usize)) {
                to[0] = view.chunks_exact(5).fold([0.0; 5], |all, part| std::array::from_fn(|i| all[i] + part[i]));
            }
            parts.tell(&mut products, 1)?;
            let mut mean = [0.0; 2];
            for all in products {
                let step = cpu::solve(all, [rule.object, rule.probe]);
                mean = [0, 1].map(|i| mean[i] + rule.step[i] * step[i] / views.len() as f64);
            }
            for (to, from, by) in [(&state.object, &direction.object, mean[0]), (&state.probe, &direction.probe, mean[1])] {
                let launch = self.add.launch((to.len() as u32).div_ceil(TEAM), TEAM).arg(to).arg(from).arg(to.len() as u64);
                // SAFETY: (C*, const C*, u64, float) as `add` declares; both are as long.
                unsafe { launch.arg(T::from_wide(by)).run()? };
            }
        }
        self.direction = Some(direction);
        let own_views = OwnViews { list: self.order.address(), first: 0, count: order.len() };
        let own_views = told.as_ref().map_or(own_views, |told| told.own_from(0, batches));
        self.told = told;
        for (kept, own) in self.own.iter_mut().zip(own) {
            if let Some(own) = own {
                *kept = own;
            }
        }
        self.errors(operations, frames, own_views)
    }

    /// Sums over the batch for the objects, over the illumination.
    #[allow(clippy::too_many_arguments)] // as the kernel has
    fn object_directions(
        &mut self,
        model: &Model,
        argument: ModelArgument,
        batch: Batch,
        count: u32,
        to: &Pair<T>,
        damping: f64,
        largest: usize,
    ) -> Result<()> {
        if self.atomic {
            self.cuda.fill_zero(&mut self.norms)?;
            let chunks = (model.pixels() as u32).div_ceil(4 * TEAM);
            let launch = self.object_scatter.launch((chunks, count), TEAM).arg(argument).arg(batch).arg(&to.object).arg(&self.norms);
            // SAFETY: (Model, Batch, C*, float*) as `object_scatter` declares; the norms hold a layer of every object.
            unsafe { launch.run()? };
        }
        let mut at = 0;
        for (number, storage) in model.storages.iter().enumerate() {
            if self.atomic {
                let launch = self.greatest_of.launch(GREATEST, TEAM).arg(self.norms.from(at)).arg(storage.layer() as u64);
                // SAFETY: (const float*, u64, u32*) as `greatest_of` declares.
                unsafe { launch.arg(self.brightest.from(largest + number)).run()? };
            } else {
                let [height, width] = storage.shape.map(|n| n as u32);
                let grid = (width.div_ceil(32), height.div_ceil(TEAM / 32));
                let launch = self.object_direction.launch(grid, TEAM).arg(argument).arg(batch).arg(number as u32).arg(count);
                // SAFETY: (Model, Batch, u32, u32, C*, float*, u32*) as `object_direction` declares; the norms hold a layer of every
                // object.
                unsafe { launch.arg(&to.object).arg(self.norms.from(at)).arg(self.brightest.from(largest + number)).run()? };
            }
            let launch = self
                .divide
                .launch((storage.layer() as u32).div_ceil(TEAM), TEAM)
                .arg(to.object.from(storage.offset))
                .arg(self.norms.from(at));
            let launch = launch.arg(self.brightest.from(largest + number)).arg(storage.layer() as u64).arg(model.modes[1] as u32);
            // SAFETY: (C*, const float*, const u32*, u64, u32, float) as `divide` declares; the layers lie in the object.
            unsafe { launch.arg(T::from_wide(damping)).run()? };
            at += storage.layer();
        }
        Ok(())
    }

    /// Directions of the probes with sub-pixel shifts: the contribution of each view is shifted back, the transmission is that of
    /// the views' own pixels.
    #[allow(clippy::too_many_arguments)] // as the kernels have
    fn probe_directions_subpixel(
        &self,
        model: &Model,
        argument: ModelArgument,
        batch: Batch,
        count: u32,
        operations: &mut BatchOperations<T>,
        subpixel: &mut SubpixelProbe<T>,
        to: &mut Pair<T>,
        damping: f64,
        largest: usize,
    ) -> Result<()> {
        subpixel.begin_batch(count as usize);
        subpixel.add_probe_sums(operations, argument, batch, count as usize, false)?;
        subpixel.end_batch(operations)?;
        let len = to.probe.len();
        self.cuda.copy(&subpixel.sums, 0, &mut to.probe, 0, len)?;
        let (pixels, size) = (model.pixels(), model.modes[0] * model.pixels());
        for set in 0..model.probes {
            let brightest = || self.brightest.from(largest + set);
            let norms = || subpixel.norms.from(set * pixels);
            let launch = self.greatest_of.launch(GREATEST, TEAM).arg(norms()).arg(pixels as u64).arg(brightest());
            // SAFETY: (const float*, u64, u32*) as `greatest_of` declares.
            unsafe { launch.run()? };
            let launch = self.divide.launch((pixels as u32).div_ceil(TEAM), TEAM).arg(to.probe.from(set * size)).arg(norms());
            let launch = launch.arg(brightest()).arg(pixels as u64).arg(model.modes[0] as u32);
            // SAFETY: (C*, const float*, const u32*, u64, u32, float) as `divide` declares; the modes lie in the probes.
            unsafe { launch.arg(T::from_wide(damping)).run()? };
        }
        Ok(())
    }

    /// Directions of the probes, over the transmission.
    #[allow(clippy::too_many_arguments)] // as the kernel has
    fn probe_directions(
        &self,
        model: &Model,
        argument: ModelArgument,
        batch: Batch,
        count: u32,
        to: &Pair<T>,
        damping: f64,
        largest: usize,
        chunks: u32,
    ) -> Result<()> {
        let size = model.modes[0] * model.pixels();
        for set in 0..model.probes {
            let launch = self.probe_direction.launch(chunks, TEAM).arg(argument).arg(batch).arg(set as u32).arg(count);
            // SAFETY: (Model, Batch, u32, u32, C*, float*, u32*) as `probe_direction` declares; the norms hold a frame.
            unsafe { launch.arg(&to.probe).arg(&self.norms).arg(self.brightest.from(largest + set)).run()? };
            let launch = self.divide.launch((model.pixels() as u32).div_ceil(TEAM), TEAM).arg(to.probe.from(set * size)).arg(&self.norms);
            let launch = launch.arg(self.brightest.from(largest + set)).arg(model.pixels() as u64).arg(model.modes[0] as u32);
            // SAFETY: (C*, const float*, const u32*, u64, u32, float) as `divide` declares; the modes lie in the probes.
            unsafe { launch.arg(T::from_wide(damping)).run()? };
        }
        Ok(())
    }
}
