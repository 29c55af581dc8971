//! Sub-pixel shifts of the probe for frames in registers (`shifted.cu`, `shifted_sums.cu`).

use zellige_engine::cuda::{Address, Argument, Buffer, Cuda, Event, Kernel, Launch, Mapped, Pool};
use zellige_engine::error::Result;

use super::arguments::ModelArgument;
use super::frames::Frames;
use super::number::{C, Number};
use super::program::KernelConfig;
use super::recipes::shifted_recipe;
use crate::model::Model;

/// Kernels, and what they keep.
pub(super) struct ShiftsInRegisters<T> {
    cuda: Cuda,
    config: KernelConfig,
    sets: usize,
    transform_probes: Kernel,
    shift_probes: Kernel,
    /// Sums of the waves, and of what P O leaves of them.
    gather: [Kernel; 2],
    end_sums: Kernel,
    /// Blocks of `shift_probes` that the device holds.
    blocks: u32,
    /// Transforms of probes, in their order.
    spectra: Buffer<C<T>>,
    /// Squared change and square of each mode of the probes at the last step, read behind `stepped`.
    changes: Mapped<[f32; 2]>,
    stepped: Event,
}

/// Arrays of a step of the probes.
pub(super) struct ProbeStep<'a, T> {
    pub(super) probe: &'a Buffer<C<T>>,
    pub(super) before: &'a Buffer<C<T>>,
    pub(super) inertia: &'a Buffer<T>,
    /// Address of the mask of the probes, or 0.
    pub(super) support: u64,
}

impl<T: Number> ShiftsInRegisters<T> {
    pub(super) fn new(model: &Model, cuda: &Cuda, pool: &Pool, config: KernelConfig) -> Result<Self> {
        let program = shifted_recipe(&config).build(cuda)?;
        let shift_probes = program.kernel("shift_probes")?;
        let (cluster, threads, shared) = (config.cluster(), config.threads(), config.shifted_shared(false));
        let blocks = if cluster == 0 {
            shift_probes.blocks_per_multiprocessor(threads, shared)? * cuda.properties().multiprocessors
        } else {
            shift_probes.clusters(1 << cluster, threads, shared)? << cluster
        };
        Ok(Self {
            cuda: cuda.clone(),
            config,
            sets: model.probes,
            transform_probes: program.kernel("transform_probes")?,
            shift_probes,
            gather: [program.kernel("gather_back")?, program.kernel("gather_rest_back")?],
            end_sums: program.kernel("end_sums")?,
            blocks,
            spectra: pool.alloc_zeros(model.probe_len(), "ptycho: shifted probes")?,
            changes: cuda.mapped(model.probes * model.modes[0])?,
            stepped: cuda.event()?,
        })
    }

    /// A launch of `frames` frames along x, for all modes of all probes, or of as many blocks as there are.
    fn launch<'a>(&self, kernel: &'a Kernel, frames: usize, sums: bool) -> Launch<'a> {
        let cluster = 1 << self.config.cluster();
        let grid = ((frames as u32) * cluster, self.config.modes[0] as u32, self.sets as u32);
        let launch = kernel.launch(grid, self.config.threads()).shared(self.config.shifted_shared(sums));
        if cluster > 1 { launch.cluster(cluster) } else { launch }
    }

    /// Address of the transforms of the probes that were taken.
    pub(super) fn spectra(&self) -> u64 {
        self.spectra.address()
    }

    /// Takes the transforms of probes.
    pub(super) fn take(&self, probe: &Buffer<C<T>>) -> Result<()> {
        // SAFETY: (const C*, C*) as `transform_probes` declares; both hold the modes of all probes.
        unsafe { self.launch(&self.transform_probes, 1, false).arg(probe).arg(&self.spectra).run() }
    }

    /// The probes whose transforms were taken, as the views see them.
    pub(super) fn shift(&self, argument: ModelArgument, shifts: Address<[T; 2]>, to: &Buffer<C<T>>, views: usize) -> Result<()> {
        let cluster = 1 << self.config.cluster();
        let grid = self.blocks.min((views * self.config.modes[0]) as u32 * cluster);
        let launch = self.shift_probes.launch(grid, self.config.threads()).shared(self.config.shifted_shared(false));
        let launch = if cluster > 1 { launch.cluster(cluster) } else { launch };
        // SAFETY: (Model, const C*, const float2*, C*, u32) as `shift_probes` declares; there is room for the modes of the views.
        unsafe { launch.arg(argument).arg(&self.spectra).arg(shifts).arg(to).arg(views as u32).run() }
    }

    /// Adds what the waves of the views of `frames`, or what P O leaves of them, say of the probes, to sums in parts.
    pub(super) fn add(
        &self,
        argument: ModelArgument,
        frames: &Frames<T>,
        shifts: Address<[T; 2]>,
        (parts, added): (usize, usize),
        rest: bool,
        (sums, norms): (&Buffer<C<T>>, &Buffer<T>),
    ) -> Result<()> {
        let launch = self.launch(&self.gather[usize::from(rest)], parts, true).early();
        let launch = launch.arg(argument).arg(&frames.exits).arg(shifts);
        // SAFETY: (Model, const C*, const float2*, u32, u32, C*, float*) as `gather_back` declares; there is room for all parts.
        unsafe { launch.arg(frames.views as u32).arg(added as u32).arg(sums).arg(norms).run() }
    }

    /// The sums in natural order, from their transforms.
    pub(super) fn end(&self, sums: &Buffer<C<T>>, norms: &Buffer<T>) -> Result<()> {
        self.finish(sums, norms, [0; 5])
    }

    /// A step of the probes, whose transforms are then taken; [`Self::change`] tells how far they went.
    pub(super) fn step(&self, sums: &Buffer<C<T>>, norms: &Buffer<T>, step: &ProbeStep<T>) -> Result<()> {
        let ProbeStep { probe, before, inertia, support } = step;
        self.finish(sums, norms, [inertia.address(), *support, probe.address(), before.address(), self.spectra()])?;
        self.cuda.record(&self.stepped)
    }

    fn finish(&self, sums: &Buffer<C<T>>, norms: &Buffer<T>, step: [u64; 5]) -> Result<()> {
        let launch = step.into_iter().fold(self.launch(&self.end_sums, 1, false).early().arg(sums).arg(norms), Launch::arg);
        // SAFETY: (C*, const float*, const float*, const float*, C*, C*, C*, float2*) as `end_sums` declares; all hold the modes of all probes.
        unsafe { launch.arg(self.changes.from(0).value()).run() }
    }

    /// Change of the probes by the last step: root mean square over them of the relative change. Waits for that step alone.
    pub(super) fn change(&self) -> Result<f64> {
        self.stepped.wait()?;
        let modes = self.config.modes[0];
        let of_set = |set: usize| {
            let values = (set * modes..(set + 1) * modes).map(|mode| self.changes.get(mode).map(f64::from));
            let [moved, all] = values.fold([0.0; 2], |s, v| [s[0] + v[0], s[1] + v[1]]);
            moved / all.max(f64::MIN_POSITIVE)
        };
        Ok(((0..self.sets).map(of_set).sum::<f64>() / self.sets as f64).sqrt())
    }
}
