//! Engines that go from view to view, and LSQML, where not one mode at a time in registers.

use zellige_engine::cuda::{Argument, Buffer, Cuda, Kernel, Pool};
use zellige_engine::error::Result;

use super::arguments::{ModelArgument, Rule, Step};
use super::frames::Frames;
use super::pieces::{Lot, Pieces};
use super::program::{Kind, TEAM, sweeps_recipe};
use super::supports::Supports;
use super::{C, Pair};
use crate::model::{Model, Storage};
use crate::stages::{LeastSquares, Noise, Sweep, cpu};

/// Kernels and room, made when first asked for.
pub(super) struct Sweeps {
    cuda: Cuda,
    pool: Pool,
    difference: Kernel,
    settle_errors: Kernel,
    step_object: Kernel,
    step_probe: Kernel,
    finish: Kernel,
    residual: Kernel,
    object_direction: Kernel,
    probe_direction: Kernel,
    divide: Kernel,
    products: Kernel,
    add: Kernel,
    order: Buffer<u32>,
    /// What the probes get, shaped as they are; zero between batches.
    steps: Buffer<C>,
    /// Greatest values: of every set after each batch, of every view's patch.
    brightest: Buffer<u32>,
    clearest: Buffer<u32>,
    /// Of LSQML.
    direction: Option<Pair>,
    norms: Buffer<f32>,
}

impl Sweeps {
    pub(super) fn new(model: &Model, cuda: &Cuda, pool: &Pool, kind: Kind) -> Result<Self> {
        let program = sweeps_recipe(&kind).build(cuda)?;
        let greatest = || pool.alloc_zeros(0, "ptycho: greatest values");
        Ok(Self {
            cuda: cuda.clone(),
            pool: pool.clone(),
            difference: program.kernel("difference")?,
            settle_errors: program.kernel("settle_errors")?,
            step_object: program.kernel("step_object")?,
            step_probe: program.kernel("step_probe")?,
            finish: program.kernel("finish")?,
            residual: program.kernel("residual")?,
            object_direction: program.kernel("object_direction")?,
            probe_direction: program.kernel("probe_direction")?,
            divide: program.kernel("divide")?,
            products: program.kernel("products")?,
            add: program.kernel("add")?,
            order: pool.alloc_zeros(model.views.len(), "ptycho: order")?,
            steps: pool.alloc_zeros(model.probe_len(), "ptycho: steps of the probes")?,
            brightest: greatest()?,
            clearest: greatest()?,
            direction: None,
            norms: pool.alloc_zeros(0, "ptycho: norms")?,
        })
    }

    /// Errors of all views of the order from the sums of their blocks.
    fn errors(&self, pieces: &Pieces, frames: &Frames, views: usize) -> Result<()> {
        let lot = Lot { list: self.order.address(), ..pieces.lot(frames, 0, 0) };
        let launch = self.settle_errors.launch((views as u32).div_ceil(TEAM), TEAM).plain(lot).arg(pieces.chunks()).arg(views as u32);
        // SAFETY: (Lot, u32, u32, const float*, float*) as `settle_errors` declares; every view of the order has its sums.
        unsafe { launch.arg(&frames.weight).arg(&frames.errors).run() }
    }

    /// One pass from view to view, or from batch to batch.
    pub(super) fn sweep(
        &mut self,
        model: &Model,
        places: ModelArgument,
        state: &mut Pair,
        frames: &mut Frames,
        pieces: &mut Pieces,
        supports: Option<&Supports>,
        rule: &Sweep,
        order: &[u32],
    ) -> Result<()> {
        let keep = rule.c != 1.0 || rule.a + rule.b != 1.0;
        if keep {
            frames.need()?;
        }
        let (sets, chunks) = (model.probes, pieces.chunks());
        let batch = rule.batch.clamp(1, order.len().max(1));
        pieces.need(batch, 1, 1, 3 * order.len() * chunks as usize)?;
        self.cuda.upload_at(&mut self.order, 0, order)?;
        let batches = order.len().div_ceil(batch);
        self.brightest = self.pool.alloc_zeros((batches + 2) * sets, "ptycho: greatest values")?;
        self.clearest = self.pool.alloc_zeros(order.len(), "ptycho: greatest values")?;
        let (formula, step) = (Rule::from(rule), Step::new(rule, keep, 0));
        let waves = if keep { frames.waves.address() } else { 0 };
        let real = supports.map_or(0, Supports::real);
        let apart = supports.is_some_and(Supports::apart);
        let finish = |number: usize, probe: &Buffer<C>, support: u64| {
            let launch = self.finish.launch((chunks, sets as u32), TEAM).arg(probe).arg(&self.steps).arg(support);
            // SAFETY: (C*, C*, const float*, u32*) as `finish` declares; both are as long as the probes.
            unsafe { launch.arg(self.brightest.from(number * sets)).run() }
        };
        // The steps are zero: this only looks for the brightest pixels.
        finish(0, &state.probe, 0)?;
        for (number, views) in order.chunks(batch).enumerate() {
            let first = number * batch;
            let lot = Lot { list: self.order.from(first).value(), ..pieces.lot(frames, 0, 3 * first * chunks as usize) };
            pieces.multiply(places, None, lot, views.len(), -1)?;
            pieces.propagate(0, views.len(), false)?;
            let launch = self.difference.launch((chunks, views.len() as u32), TEAM).plain(lot).arg(waves).plain(formula);
            // SAFETY: (Lot, C*, Rule) as `difference` declares; the waves hold all views, the sums those of the order.
            unsafe { launch.run()? };
            pieces.propagate(0, views.len(), true)?;
            for i in 0..views.len() {
                let launch = self.step_object.launch(chunks, TEAM).plain(places).plain(lot).arg(i as u32);
                let launch = launch.arg(self.brightest.from(number * sets)).arg(self.clearest.from(first + i)).plain(step);
                // SAFETY: (Model, Lot, u32, const u32*, u32*, Step) as `step_object` declares.
                unsafe { launch.run()? };
                if rule.probe {
                    let launch = self.step_probe.launch(chunks, TEAM).plain(places).plain(lot).arg(i as u32);
                    let launch = launch.arg(self.clearest.from(first + i)).plain(step).arg(1.0 / views.len() as f32);
                    // SAFETY: (Model, Lot, u32, const u32*, Step, float, C*) as `step_probe` declares.
                    unsafe { launch.arg(&self.steps).run()? };
                }
            }
            if let (true, true, Some(supports)) = (apart, rule.probe, supports) {
                // The support in Fourier space comes between the step and the search for the brightest pixel; the last slot is read by no one.
                finish(batches + 1, &state.probe, 0)?;
                supports.apply(Some(pieces), &mut state.probe)?;
                finish(number + 1, &state.probe, 0)?;
            } else {
                finish(number + 1, &state.probe, if rule.probe { real } else { 0 })?;
            }
        }
        self.errors(pieces, frames, order.len())
    }

    /// One pass of LSQML, batch by batch.
    pub(super) fn least_squares(
        &mut self,
        model: &Model,
        places: ModelArgument,
        state: &mut Pair,
        frames: &mut Frames,
        pieces: &mut Pieces,
        supports: Option<&Supports>,
        rule: &LeastSquares,
        order: &[u32],
    ) -> Result<()> {
        let chunks = pieces.chunks();
        let batch = rule.batch.clamp(1, order.len().max(1));
        // Sums of the errors, and behind them those of a batch's steps.
        let behind = 3 * order.len() * chunks as usize;
        pieces.need(batch, 1, 0, behind + 5 * batch * chunks as usize)?;
        self.cuda.upload_at(&mut self.order, 0, order)?;
        let layers: Vec<usize> = model.storages.iter().map(Storage::layer).collect();
        let norms = layers.iter().sum::<usize>().max(model.pixels());
        if self.norms.len() != norms {
            self.norms = self.pool.alloc_zeros(norms, "ptycho: norms")?;
        }
        let batches = order.len().div_ceil(batch);
        let each = model.storages.len() + model.probes;
        self.brightest = self.pool.alloc_zeros(batches * each, "ptycho: greatest values")?;
        let mut direction = match self.direction.take() {
            Some(direction) => direction,
            None => Pair::zeros(model, &self.pool, "ptycho: directions")?,
        };
        let along = ModelArgument { probe: direction.probe.address(), object: direction.object.address(), ..places };
        for (number, views) in order.chunks(batch).enumerate() {
            let first = number * batch;
            let count = views.len() as u32;
            let lot = Lot { list: self.order.from(first).value(), ..pieces.lot(frames, 0, 3 * first * chunks as usize) };
            pieces.multiply(places, None, lot, views.len(), -1)?;
            pieces.propagate(0, views.len(), false)?;
            let poisson = u32::from(rule.noise == Noise::Poisson);
            // SAFETY: (Lot, u32) as `residual` declares; the sums hold all views of the order.
            unsafe { self.residual.launch((chunks, count), TEAM).plain(lot).arg(poisson).run()? };
            pieces.propagate(0, views.len(), true)?;
            self.cuda.fill_zero(&mut direction.object)?;
            self.cuda.fill_zero(&mut direction.probe)?;
            if rule.object {
                self.object_directions(model, places, lot, count, &direction, rule.damping, number * each)?;
            }
            if rule.probe {
                self.probe_directions(model, places, lot, count, &direction, rule.damping, number * each + layers.len(), chunks)?;
                if let Some(supports) = supports {
                    supports.apply(Some(pieces), &mut direction.probe)?;
                }
            }
            let steps = Lot { sums: pieces.sums.from(behind).value(), ..lot };
            // SAFETY: (Model, Model, Lot) as `products` declares; five sums a block of every view of the batch lie behind those of the errors.
            unsafe { self.products.launch((chunks, count), TEAM).plain(places).plain(along).plain(steps).run()? };
            let sums = self.cuda.download_range(&pieces.sums, behind..behind + 5 * (count * chunks) as usize)?;
            let mut mean = [0.0; 2];
            for view in sums.chunks_exact(5 * chunks as usize) {
                let all = view.chunks_exact(5).fold([0.0; 5], |all, part| std::array::from_fn(|i| all[i] + part[i]));
                let step = cpu::solve(all, [rule.object, rule.probe]);
                mean = [0, 1].map(|i| mean[i] + rule.step[i] * step[i] / views.len() as f64);
            }
            for (to, from, by) in [(&state.object, &direction.object, mean[0]), (&state.probe, &direction.probe, mean[1])] {
                let launch = self.add.launch((to.len() as u32).div_ceil(TEAM), TEAM).arg(to).arg(from).arg(to.len() as u64);
                // SAFETY: (C*, const C*, u64, float) as `add` declares; both are as long.
                unsafe { launch.arg(by as f32).run()? };
            }
        }
        self.direction = Some(direction);
        self.errors(pieces, frames, order.len())
    }

    /// Sums over the batch for the objects, over the illumination.
    #[allow(clippy::too_many_arguments)] // as the kernel has
    fn object_directions(
        &self,
        model: &Model,
        places: ModelArgument,
        lot: Lot,
        count: u32,
        to: &Pair,
        damping: f64,
        largest: usize,
    ) -> Result<()> {
        let mut at = 0;
        for (number, storage) in model.storages.iter().enumerate() {
            let [height, width] = storage.shape.map(|n| n as u32);
            let grid = (width.div_ceil(32), height.div_ceil(TEAM / 32));
            let launch = self.object_direction.launch(grid, TEAM).plain(places).plain(lot).arg(number as u32).arg(count);
            // SAFETY: (Model, Lot, u32, u32, C*, float*, u32*) as `object_direction` declares; the norms hold a layer of every object.
            unsafe { launch.arg(&to.object).arg(self.norms.from(at)).arg(self.brightest.from(largest + number)).run()? };
            let launch = self
                .divide
                .launch((storage.layer() as u32).div_ceil(TEAM), TEAM)
                .arg(to.object.from(storage.offset))
                .arg(self.norms.from(at));
            let launch = launch.arg(self.brightest.from(largest + number)).arg(storage.layer() as u64).arg(model.modes[1] as u32);
            // SAFETY: (C*, const float*, const u32*, u64, u32, float) as `divide` declares; the layers lie in the object.
            unsafe { launch.arg(damping as f32).run()? };
            at += storage.layer();
        }
        Ok(())
    }

    /// And for the probes, over the transmission.
    #[allow(clippy::too_many_arguments)] // as the kernel has
    fn probe_directions(
        &self,
        model: &Model,
        places: ModelArgument,
        lot: Lot,
        count: u32,
        to: &Pair,
        damping: f64,
        largest: usize,
        chunks: u32,
    ) -> Result<()> {
        let size = model.modes[0] * model.pixels();
        for set in 0..model.probes {
            let launch = self.probe_direction.launch(chunks, TEAM).plain(places).plain(lot).arg(set as u32).arg(count);
            // SAFETY: (Model, Lot, u32, u32, C*, float*, u32*) as `probe_direction` declares; the norms hold a frame.
            unsafe { launch.arg(&to.probe).arg(&self.norms).arg(self.brightest.from(largest + set)).run()? };
            let launch = self.divide.launch((model.pixels() as u32).div_ceil(TEAM), TEAM).arg(to.probe.from(set * size)).arg(&self.norms);
            let launch = launch.arg(self.brightest.from(largest + set)).arg(model.pixels() as u64).arg(model.modes[0] as u32);
            // SAFETY: (C*, const float*, const u32*, u64, u32, float) as `divide` declares; the modes lie in the probes.
            unsafe { launch.arg(damping as f32).run()? };
        }
        Ok(())
    }
}
