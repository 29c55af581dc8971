//! Sums over views and the overlap loop.

use std::sync::Arc;

use num_complex::Complex;
use zellige_engine::cuda::{Buffer, Cuda, Kernel, Mapped, Pool, Program};
use zellige_engine::error::Result;

use super::arguments::{ModelArgument, SumsArgument, UpdateArgument};
use super::lists::{self, Part, Tile, Visit};
use super::number::{C, Number};
use super::program::{KernelConfig, TEAM};
use super::recipes::sums_recipe;
use crate::model::{Model, View};
use crate::modes;

/// Lists, partial sums, and the kernels that use them.
pub(super) struct Sums<T> {
    cuda: Cuda,
    pool: Pool,
    overlap: Kernel,
    pub(super) blocks: u32,
    probes: usize,
    views: usize,
    /// Sums of the objects between atomic additions and the update, zero otherwise; nothing where sums are gathered.
    pool_of_objects: Option<Buffer<[T; 4]>>,
    /// Tiles of the objects; empty where sums are atomic.
    pub(super) tiles: Buffer<Tile>,
    visits: Buffer<Visit>,
    cuts: Buffer<u32>,
    pub(super) parts: Buffer<Part>,
    bundles: Buffer<u32>,
    first_bundle: Buffer<u32>,
    listed: Buffer<u32>,
    pub(super) numerators: Arc<Buffer<C<T>>>,
    pub(super) weights: Arc<Buffer<T>>,
    /// Sums of bundles, where parts of a run tell each other no more.
    pub(super) bundled: Option<Bundled<T>>,
    /// The probes at the last test of the overlap loop.
    pub(super) before: Buffer<C<T>>,
    inertia: Buffer<T>,
    /// Host copy of `inertia`.
    inertia_now: Vec<f64>,
    changes: Buffer<[T; 2]>,
    barrier: Buffer<u32>,
    passes: Mapped<u32>,
    mixing: Mixing,
}

/// Sums for the probes of whole bundles of parts.
pub(super) struct Bundled<T> {
    pub(super) numerators: Arc<Buffer<C<T>>>,
    pub(super) weights: Arc<Buffer<T>>,
    /// Numbers of the bundles, and the end: each is one sum.
    pub(super) each: Buffer<u32>,
}

/// Products of modes and their change of basis (mix.cu).
struct Mixing {
    products: Kernel,
    mix: Kernel,
    modes: usize,
    pixels: usize,
    /// `[sets][blocks][p <= q]`.
    parts: Buffer<[f64; 2]>,
    /// `[sets][modes][modes]`.
    basis: Buffer<[f64; 2]>,
}

impl Mixing {
    fn new(model: &Model, program: &Program, pool: &Pool) -> Result<Self> {
        let ([modes, _], pixels) = (model.modes, model.pixels());
        let parts = model.probes * pixels.div_ceil(modes::BLOCK) * (modes * (modes + 1) / 2);
        Ok(Self {
            products: program.kernel("mode_products")?,
            mix: program.kernel("mode_mix")?,
            modes,
            pixels,
            parts: pool.alloc_zeros(parts, "ptycho: products of modes")?,
            basis: pool.alloc_zeros(model.probes * modes * modes, "ptycho: products of modes")?,
        })
    }
}

impl<T: Number> Sums<T> {
    pub(super) fn new(model: &Model, cuda: &Cuda, pool: &Pool, config: KernelConfig) -> Result<Self> {
        let program = sums_recipe(&config).build(cuda)?;
        let overlap = program.kernel("overlap")?;
        let blocks = overlap.blocks_per_multiprocessor(TEAM, 0)? * cuda.properties().multiprocessors;
        let nothing = "ptycho: lists of views";
        let mut sums = Self {
            cuda: cuda.clone(),
            pool: pool.clone(),
            overlap,
            blocks,
            probes: model.probes,
            views: model.views.len(),
            pool_of_objects: if config.atomic { Some(pool.alloc_zeros(model.object_len(), "ptycho: sums of the objects")?) } else { None },
            tiles: pool.alloc_zeros(0, nothing)?,
            visits: pool.alloc_zeros(0, nothing)?,
            cuts: pool.alloc_zeros(0, nothing)?,
            parts: pool.alloc_zeros(0, nothing)?,
            bundles: pool.alloc_zeros(0, nothing)?,
            first_bundle: pool.alloc_zeros(0, nothing)?,
            listed: pool.alloc_zeros(0, nothing)?,
            numerators: Arc::new(pool.alloc_zeros(0, nothing)?),
            weights: Arc::new(pool.alloc_zeros(0, nothing)?),
            bundled: None,
            before: pool.alloc_zeros(model.probe_len(), "ptycho: probes")?,
            inertia: pool.alloc_zeros(model.probes, "ptycho: probes")?,
            inertia_now: vec![0.0; model.probes],
            changes: pool.alloc_zeros(model.probes * blocks as usize, "ptycho: changes")?,
            barrier: pool.alloc_zeros(1, "ptycho: barrier")?,
            passes: cuda.mapped(1)?,
            mixing: Mixing::new(model, &program, pool)?,
        };
        sums.list(model, &model.views)?;
        Ok(sums)
    }

    /// Lists anew where the views look.
    pub(super) fn list(&mut self, model: &Model, views: &[View]) -> Result<()> {
        let what = "ptycho: lists of views";
        let (tiles, visits, cuts) = if self.atomic() { (Vec::new(), Vec::new(), Vec::new()) } else { lists::tiles(model, views) };
        let (listed, parts, bundles, first) = lists::parts(model, views, self.cuda.properties().multiprocessors, size_of::<T>());
        self.tiles = self.pool.buffer_from(&tiles, what)?;
        self.visits = self.pool.buffer_from(&visits, what)?;
        self.cuts = self.pool.buffer_from(&cuts, what)?;
        self.listed = self.pool.buffer_from(&listed, what)?;
        self.bundles = self.pool.buffer_from(&bundles, what)?;
        self.first_bundle = self.pool.buffer_from(&first, what)?;
        self.bundled = None;
        if parts.len() != self.parts.len() {
            let what = "ptycho: sums of the probes";
            self.numerators = Arc::new(self.pool.alloc_zeros(parts.len() * model.modes[0] * model.pixels(), what)?);
            self.weights = Arc::new(self.pool.alloc_zeros(parts.len() * model.pixels(), what)?);
        }
        self.parts = self.pool.buffer_from(&parts, what)?;
        Ok(())
    }

    /// Returns true if sums of the objects are atomic.
    pub(super) fn atomic(&self) -> bool {
        self.pool_of_objects.is_some()
    }

    /// `support`: address of the mask of the probes, or 0.
    pub(super) fn argument(&self, support: u64) -> SumsArgument {
        SumsArgument {
            tiles: self.tiles.address(),
            visits: self.visits.address(),
            cuts: self.cuts.address(),
            parts: self.parts.address(),
            bundles: self.bundles.address(),
            first_bundle: self.first_bundle.address(),
            listed: self.listed.address(),
            numerators: self.numerators.address(),
            weights: self.weights.address(),
            before: self.before.address(),
            support,
            inertia: self.inertia.address(),
            changes: self.changes.address(),
            barrier: self.barrier.address(),
            passes: zellige_engine::cuda::Argument::value(self.passes.from(0)),
            pool: self.pool_of_objects.as_ref().map_or(0, Buffer::address),
            values: self.pool_of_objects.as_ref().map_or(0, Buffer::len) as u64,
            tile_count: self.tiles.len() as u32,
            part_count: self.parts.len() as u32,
            sets: self.probes as u32,
            views: self.views as u32,
        }
    }

    /// The argument for kernels that take the sums for the probes of all views.
    pub(super) fn complete(&self, support: u64) -> SumsArgument {
        let argument = self.argument(support);
        match &self.bundled {
            None => argument,
            Some(Bundled { numerators, weights, each }) => {
                SumsArgument { bundles: each.address(), numerators: numerators.address(), weights: weights.address(), ..argument }
            }
        }
    }

    /// The overlap loop. Gives the passes of the last loop that has ended: nothing waits for this one.
    pub(super) fn overlap(
        &mut self,
        model: ModelArgument,
        exits: &Buffer<C<T>>,
        update: UpdateArgument<T>,
        inertia: &[f64],
        support: u64,
    ) -> Result<u32> {
        self.set_inertia(inertia)?;
        self.launch(model, exits, self.argument(support), update)?;
        Ok(self.passes.get(0))
    }

    /// Updates the probes from sums of the probes' parts that exist already, in one pass: nothing is summed over views.
    pub(super) fn update_probes(
        &mut self,
        model: ModelArgument,
        exits: &Buffer<C<T>>,
        update: UpdateArgument<T>,
        inertia: &[f64],
        support: u64,
    ) -> Result<()> {
        self.set_inertia(inertia)?;
        let argument = SumsArgument { tile_count: 0, part_count: 0, views: 0, ..self.complete(support) };
        self.launch(model, exits, argument, update.of_probes())
    }

    /// Gram matrices `[sets][modes][modes]` of the probes' modes.
    pub(super) fn products(&mut self, probe: &Buffer<C<T>>) -> Result<Vec<Complex<f64>>> {
        let Mixing { products, modes, parts, .. } = &mut self.mixing;
        let launch = products.launch((parts.len() as u32).div_ceil(TEAM), TEAM).arg(probe).arg(&mut *parts).arg(self.probes as u32);
        // SAFETY: (const C*, double2*, u32) as `mode_products` declares; there is a thread for each of the parts, and the probes are those of the model.
        unsafe { launch.run()? };
        let parts: Vec<_> = self.cuda.download(parts)?.into_iter().map(|[re, im]| Complex::new(re, im)).collect();
        let of_set = parts.len() / self.probes;
        Ok(parts.chunks_exact(of_set).flat_map(|set| modes::summed(set, *modes)).collect())
    }

    /// Changes the basis of the probes' modes, `[sets][modes][modes]`, of `probe` and of the probes at the last test.
    pub(super) fn mix(&mut self, probe: &mut Buffer<C<T>>, basis: &[Complex<f64>]) -> Result<()> {
        let Mixing { mix, pixels, basis: on_device, .. } = &mut self.mixing;
        self.cuda.upload(on_device, &basis.iter().map(|b| [b.re, b.im]).collect::<Vec<_>>())?;
        for probe in [probe, &mut self.before] {
            let launch = mix.launch(((*pixels as u32).div_ceil(TEAM), self.probes as u32), TEAM).arg(probe).arg(&*on_device);
            // SAFETY: (C*, const double2*) as `mode_mix` declares; both arrays hold the modes of all probes, the basis a matrix for each.
            unsafe { launch.run()? };
        }
        Ok(())
    }

    fn set_inertia(&mut self, inertia: &[f64]) -> Result<()> {
        if self.inertia_now != inertia {
            self.cuda.upload(&mut self.inertia, &inertia.iter().map(|x| T::from_wide(*x)).collect::<Vec<_>>())?;
            self.inertia_now = inertia.to_vec();
        }
        Ok(())
    }

    fn launch(&self, model: ModelArgument, exits: &Buffer<C<T>>, argument: SumsArgument, update: UpdateArgument<T>) -> Result<()> {
        let launch = self.overlap.launch(self.blocks, TEAM).cooperative().arg(model).arg(exits).arg(argument).plain(update);
        // SAFETY: (Model, const C*, Sums, Update) as `overlap` declares; the lists were made for these views, and all blocks are resident.
        unsafe { launch.run() }
    }
}
