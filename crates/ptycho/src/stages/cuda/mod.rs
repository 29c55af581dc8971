//! The stages on an NVIDIA GPU, in single or double precision (`Number`).
//!
//! The state of the projection engines is the Fourier transform of the exit waves, e: transforms are linear, so that one of P O
//! and one back serve the likelihood's error, the constraint and the new exit wave (`project.cu`). Where a frame is 2^a by 2^b
//! pixels, both transforms stay in the registers of a block, or of a cluster of blocks, to a near detector too; other shapes go
//! through memory, in tiles of lines (`tiles.cu`) or around cuFFT (`multi_pass.cu`), and so do batches and LSQML (`batches.rs`,
//! `sweeps.rs`). Doubles go in pieces whatever the shape; the Fourier step of 128 x 128 pixels and one mode is one kernel
//! (`clustered.cu`). Engines that go from view to view replay recorded launches (`batch_sequence.rs`). The overlap loop is one
//! launch whose blocks wait for each other (`overlap.cu`); its sums have one order, so that equal runs give equal bits, unless
//! atomic ones are asked for ([`KernelConfig::atomic`]). In a run of several parts each has a range of the frames, and these sums
//! go from part to part (`handover`).

mod arguments;
mod batch_sequence;
mod batches;
mod frames;
mod handover;
pub(crate) mod intensity;
mod likelihood;
mod lists;
mod multi_pass;
mod number;
mod on_demand;
mod positions;
mod program;
mod recipes;
mod saved;
mod sections;
mod shifted;
mod stages;
pub mod stream;
mod subpixel;
mod sums;
mod supports;
mod sweeps;
mod tiles;
mod wavefield;

use std::collections::VecDeque;

use zellige_engine::cuda::{Argument, Buffer, Coming, Cuda, Downloads, Pool};
use zellige_engine::error::{Error, Result};

use self::arguments::{ModelArgument, StorageArgument};
use self::batches::BatchOperations;
use self::frames::Frames;
use self::handover::Handover;
use self::likelihood::LikelihoodKernels;
pub(super) use self::lists::crowding;
pub(crate) use self::lists::probe_sums;
use self::number::{C, Number, narrow};
use self::positions::PositionTrials;
pub(crate) use self::program::TEAM;
pub use self::program::{FrameProcessing, KernelConfig};
pub use self::recipes::{Needed, recipes_for};
pub(crate) use self::sections::sections;
pub(crate) use self::stream::plan::without_frames;
use self::subpixel::SubpixelProbe;
use self::sums::Sums;
use self::supports::Supports;
use self::sweeps::Sweeps;
use self::wavefield::Wavefield;
use super::{SLOTS, Stages};
use crate::model::{Model, View};

/// The stages of a model on `cuda`, in single or double precision; equal runs give equal bits.
pub fn new(model: &Model, cuda: &Cuda, double: bool) -> Result<Box<dyn Stages>> {
    let config = KernelConfig::of(model, cuda.properties(), double);
    new_with(model, cuda, config)
}

/// Stages as [`new`] gives, with a kernel configuration of the caller's choice: for measurements and tests.
pub fn new_with(model: &Model, cuda: &Cuda, config: KernelConfig) -> Result<Box<dyn Stages>> {
    Ok(if config.double {
        Box::new(CudaStages::<f64>::new(model, cuda, config)?)
    } else {
        Box::new(CudaStages::<f32>::new(model, cuda, config)?)
    })
}

/// Stages as [`new`] gives, within a limit of device memory, with frames and waves streamed where they do not fit.
pub fn new_within(model: &Model, cuda: &Cuda, streaming: stream::plan::StreamingPlan) -> Result<Box<dyn Stages>> {
    let config = KernelConfig::of(model, cuda.properties(), streaming.demand.double);
    if config.double { stream::new::<f64>(model, cuda, config, streaming) } else { stream::new::<f32>(model, cuda, config, streaming) }
}

/// Error for a feature that GPUs do not have.
fn refused(what: impl std::fmt::Display, hint: &str) -> Error {
    Error::Device { device: "cuda".into(), message: format!("{what}: not on GPUs yet"), hint: Some(hint.to_owned()) }
}

/// Arrays as long as probe and object.
struct Pair<T> {
    probe: Buffer<C<T>>,
    object: Buffer<C<T>>,
}

impl<T: Number> Pair<T> {
    fn zeros(model: &Model, pool: &Pool, what: &str) -> Result<Self> {
        Ok(Self { probe: pool.alloc_zeros(model.probe_len(), what)?, object: pool.alloc_zeros(model.object_len(), what)? })
    }
}

/// Views on both sides, objects on the device.
struct ScanViews {
    views: Vec<View>,
    shifts: Vec<[f64; 2]>,
    on_device: Buffer<View>,
    storages: Buffer<StorageArgument>,
    /// Number of the first own view.
    first: usize,
    /// Address of the near field's kernel, or 0.
    near: u64,
}

impl ScanViews {
    /// `Model` of model.cu over a pair, for kernels that count own views.
    fn model<T: Number>(&self, pair: &Pair<T>) -> ModelArgument {
        ModelArgument { views: self.on_device.from(self.first).value(), ..self.of_all(pair) }
    }

    /// As [`ScanViews::model`], for sums over views, which count all.
    fn of_all<T: Number>(&self, pair: &Pair<T>) -> ModelArgument {
        ModelArgument {
            probe: pair.probe.address(),
            object: pair.object.address(),
            views: self.on_device.address(),
            storages: self.storages.address(),
            near: self.near,
            spectra: 0,
            shifts: 0,
        }
    }
}

/// State and stages.
struct CudaStages<T: Number> {
    cuda: Cuda,
    pool: Pool,
    /// The problem without its frames.
    model: Model,
    scan: ScanViews,
    state: Pair<T>,
    /// All slots but the first.
    slots: [Option<Pair<T>>; SLOTS - 1],
    frames: Frames<T>,
    sums: Sums<T>,
    /// Way of the sums through all parts of a run, where there are several.
    handover: Option<Handover<T>>,
    descent: Option<LikelihoodKernels<T>>,
    seeker: Option<PositionTrials>,
    operations: Option<BatchOperations<T>>,
    /// Kernels and arrays of sub-pixel shifts.
    subpixel: Option<SubpixelProbe<T>>,
    sweeps: Option<Sweeps<T>>,
    supports: Option<Supports<T>>,
    wavefield: Option<Wavefield>,
    /// Errors of the views per pixel, where the last pass was one over the likelihood.
    likelihoods: Option<Vec<f64>>,
    /// Copies of the errors to the host, once some were begun, and those that nobody has taken.
    downloads: Option<Downloads<T>>,
    errors_begun: VecDeque<Coming<T>>,
    /// Copies of probe and object for somebody who looks, once there was one.
    state_copies: Option<Downloads<C<T>>>,
}

impl<T: Number> CudaStages<T> {
    fn new(model: &Model, cuda: &Cuda, config: KernelConfig) -> Result<Self> {
        let pool = cuda.pool();
        let storages: Vec<_> = model
            .storages
            .iter()
            .map(|s| StorageArgument { offset: s.offset as u64, height: s.shape[0] as u32, width: s.shape[1] as u32 })
            .collect();
        let mut scan = ScanViews {
            views: model.views.clone(),
            shifts: model.shifts.clone(),
            on_device: pool.buffer_from(&model.views, "ptycho: views")?,
            storages: pool.buffer_from(&storages, "ptycho: objects")?,
            first: model.own().start,
            near: 0,
        };
        let state = Pair {
            probe: pool.buffer_from(&narrow(&model.start.probe), "ptycho: probes")?,
            object: pool.buffer_from(&narrow(&model.start.object), "ptycho: objects")?,
        };
        let frames = Frames::new(model, cuda, &pool, config)?;
        scan.near = frames.near();
        let mut sums = Sums::new(model, cuda, &pool, config)?;
        let handover =
            if model.share.is_alone() { None } else { Some(Handover::new(model, &model.views, cuda, &pool, config, &mut sums)?) };
        let model = stream::plan::without_frames(model);
        Ok(Self {
            cuda: cuda.clone(),
            pool,
            model,
            scan,
            state,
            slots: [const { None }; SLOTS - 1],
            frames,
            sums,
            handover,
            descent: None,
            seeker: None,
            operations: None,
            subpixel: None,
            sweeps: None,
            supports: None,
            wavefield: None,
            likelihoods: None,
            downloads: None,
            errors_begun: VecDeque::new(),
            state_copies: None,
        })
    }
}
