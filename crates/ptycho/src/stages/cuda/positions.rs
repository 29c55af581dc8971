//! Error of views at other positions, and its slope.

use zellige_engine::cuda::{Buffer, Cuda, Kernel, Launch, Pool};
use zellige_engine::error::Result;

use super::arguments::ModelArgument;
use super::frames::Frames;
use super::number::Number;
use super::program::{FrameProcessing, KernelConfig};
use super::recipes::positions_recipe;
use crate::model::View;

/// Kernels and buffers, made when first asked for.
pub(super) struct PositionTrials {
    cuda: Cuda,
    config: KernelConfig,
    trial: Kernel,
    slope: Kernel,
    /// Blocks of both kernels.
    blocks: u32,
    /// Positions of the views in a trial.
    moved: Buffer<View>,
    errors: Buffer<f32>,
    /// Room of `slope`, and what comes of it.
    planes: Buffer<f32>,
    values: Buffer<f64>,
}

impl PositionTrials {
    /// Seeker for frames that go through registers.
    pub(super) fn new(cuda: &Cuda, pool: &Pool, config: KernelConfig, cluster: u32, views: usize) -> Result<Self> {
        // The wave to come is not fetched here.
        let config = KernelConfig { processing: FrameProcessing::Fused { cluster, fetch: false }, ..config };
        let program = positions_recipe(&config).build(cuda)?;
        let (trial, slope) = (program.kernel("trial")?, program.kernel("slope")?);
        let (threads, shared) = (config.threads(), config.likelihood_shared());
        let blocks = if cluster == 0 {
            slope.blocks_per_multiprocessor(threads, shared)? * cuda.properties().multiprocessors
        } else {
            slope.clusters(1 << cluster, threads, shared)? << cluster
        };
        Ok(Self {
            cuda: cuda.clone(),
            config,
            trial,
            slope,
            blocks,
            moved: pool.alloc_zeros(views, "ptycho: positions")?,
            errors: pool.alloc_zeros(views, "ptycho: positions")?,
            planes: pool.alloc_zeros(96 * (blocks * threads) as usize, "ptycho: positions")?,
            values: pool.alloc_zeros((5 * views) << cluster, "ptycho: positions")?,
        })
    }

    fn launch<'a>(&self, kernel: &'a Kernel) -> Launch<'a> {
        let cluster = 1 << self.config.cluster();
        let launch = kernel.launch(self.blocks, self.config.threads()).shared(self.config.likelihood_shared());
        if cluster > 1 { launch.cluster(cluster) } else { launch }
    }

    /// Mean squared deviation of the moduli of every view if it looked there.
    pub(super) fn trial<T: Number>(&mut self, argument: ModelArgument, frames: &Frames<T>, views: &[View]) -> Result<Vec<f64>> {
        self.cuda.upload(&mut self.moved, views)?;
        let argument = ModelArgument { views: self.moved.address(), ..argument };
        let launch = self.launch(&self.trial).arg(argument).arg(&frames.mag).arg(&frames.weight).arg(&self.errors);
        // SAFETY: (Model, const float*, const float*, float*, u32) as `trial` declares; every view was checked to lie in its object.
        unsafe { launch.arg(views.len() as u32).run()? };
        Ok(self.cuda.download(&self.errors)?.into_iter().map(f64::from).collect())
    }

    /// Derivatives of the summed squared deviation with respect to the position of every view: y, x, yy, xx and yx.
    pub(super) fn slope<T: Number>(&mut self, argument: ModelArgument, frames: &Frames<T>) -> Result<Vec<[f64; 5]>> {
        let launch = self.launch(&self.slope).arg(argument).arg(&frames.mag).arg(&mut self.planes).arg(&mut self.values);
        // SAFETY: (Model, const float*, float*, double*, u32) as `slope` declares; there are 96 floats a thread of the grid.
        unsafe { launch.arg(frames.views as u32).run()? };
        let values = self.cuda.download(&self.values)?;
        let all = |v: &[f64]| std::array::from_fn(|i| v.iter().skip(i).step_by(5).sum());
        Ok(values.chunks_exact(5 << self.config.cluster()).map(all).collect())
    }
}
