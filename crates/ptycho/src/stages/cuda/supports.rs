//! Supports of the probes, smoothing of the objects, and the overlap loop where these make it stop between its steps.

use zellige_engine::cuda::{Buffer, Cuda, Kernel, Pool};
use zellige_engine::error::Result;
use zellige_engine::ops::fft::Direction;

use super::Pair;
use super::arguments::{ModelArgument, UpdateArgument};
use super::batches::BatchOperations;
use super::number::{C, Number};
use super::program::{KernelConfig, TEAM};
use super::recipes::supports_recipe;
use super::sums::Sums;
use crate::model::Model;
use crate::stages::{Overlap, cpu};

/// Blocks of a comparison, a set of probes.
const BLOCKS: u32 = 64;

/// Kernels, masks and buffers.
pub(super) struct Supports<T> {
    cuda: Cuda,
    pool: Pool,
    smooth: Kernel,
    veil: Kernel,
    compare: Kernel,
    /// Supports of probes: 1 or 0 per pixel, in real space and in the order of the transform.
    real: Option<Buffer<T>>,
    fourier: Option<Buffer<T>>,
    /// An object between the axes of its smoothing, and the weights.
    middle: Buffer<C<T>>,
    weights: (f64, Buffer<T>),
    before: Buffer<C<T>>,
    sums: Buffer<f64>,
}

impl<T: Number> Supports<T> {
    pub(super) fn new(model: &Model, cuda: &Cuda, pool: &Pool, config: KernelConfig) -> Result<Self> {
        let program = supports_recipe(&config).build(cuda)?;
        Ok(Self {
            cuda: cuda.clone(),
            pool: pool.clone(),
            smooth: program.kernel("smooth")?,
            veil: program.kernel("veil")?,
            compare: program.kernel("compare")?,
            real: None,
            fourier: None,
            middle: pool.alloc_zeros(0, "ptycho: smoothing")?,
            weights: (0.0, pool.alloc_zeros(0, "ptycho: smoothing")?),
            before: pool.alloc_zeros(0, "ptycho: probes")?,
            sums: pool.alloc_zeros(2 * BLOCKS as usize * model.probes, "ptycho: sums")?,
        })
    }

    /// Takes masks.
    pub(super) fn set(&mut self, real: Option<&[bool]>, fourier: Option<&[bool]>) -> Result<()> {
        let mask = |inside: Option<&[bool]>| {
            let values = inside.map(|m| m.iter().map(|inside| T::from_wide(f64::from(u8::from(*inside)))).collect::<Vec<_>>());
            values.map(|m| self.pool.buffer_from(&m, "ptycho: support")).transpose()
        };
        (self.real, self.fourier) = (mask(real)?, mask(fourier)?);
        Ok(())
    }

    /// Address of the mask in real space, or 0.
    pub(super) fn real(&self) -> u64 {
        self.real.as_ref().map_or(0, Buffer::address)
    }

    /// Address of the mask in Fourier space, or 0.
    pub(super) fn fourier(&self) -> u64 {
        self.fourier.as_ref().map_or(0, Buffer::address)
    }

    /// Returns true if there is a support.
    pub(super) fn any(&self) -> bool {
        self.real.is_some() || self.fourier.is_some()
    }

    /// Returns true if there is one in Fourier space.
    pub(super) fn apart(&self) -> bool {
        self.fourier.is_some()
    }

    fn veil(&self, values: &Buffer<C<T>>, mask: &Buffer<T>, scale: T) -> Result<()> {
        let launch = self.veil.launch((values.len() as u32).div_ceil(TEAM), TEAM).arg(values).arg(mask).arg(values.len() as u64);
        // SAFETY: (C*, const float*, u64, float) as `veil` declares; the values are whole frames.
        unsafe { launch.arg(scale).run() }
    }

    /// The supports on an array shaped as the probes: Fourier space first, for which there must be `operations`.
    pub(super) fn apply(&self, operations: Option<&mut BatchOperations<T>>, probe: &mut Buffer<C<T>>) -> Result<()> {
        if let Some((mask, operations)) = self.fourier.as_ref().zip(operations) {
            operations.transform(probe, Direction::Forward)?;
            self.veil(probe, mask, T::from_wide(1.0) / T::from_wide(mask.len() as f64))?;
            operations.transform(probe, Direction::Inverse)?;
        }
        self.real.as_ref().map_or(Ok(()), |mask| self.veil(probe, mask, T::from_wide(1.0)))
    }

    /// Smooths every layer of the objects by a Gaussian of this standard deviation, pixels.
    pub(super) fn smooth(&mut self, model: &Model, object: &Buffer<C<T>>, sigma: f64) -> Result<()> {
        if self.weights.0 != sigma {
            let weights: Vec<T> = cpu::gaussian(sigma).into_iter().map(T::from_wide).collect();
            self.weights = (sigma, self.pool.buffer_from(&weights, "ptycho: smoothing")?);
        }
        let largest = model.storages.iter().map(crate::model::Storage::layer).max().unwrap_or(0);
        if self.middle.len() < largest {
            self.middle = self.pool.alloc_zeros(largest, "ptycho: smoothing")?;
        }
        let reach = (self.weights.1.len() - 1) as u32;
        for storage in &model.storages {
            let [height, width] = storage.shape.map(|n| n as u32);
            for layer in 0..model.modes[1] {
                let layer = object.from(storage.offset + layer * storage.layer());
                for (from, to, axis) in [(layer, self.middle.from(0), 0_u32), (self.middle.from(0), layer, 1)] {
                    let launch = self.smooth.launch((storage.layer() as u32).div_ceil(TEAM), TEAM).arg(from).arg(to);
                    // SAFETY: (const C*, C*, u32, u32, const float*, u32, u32) as `smooth` declares; both hold a layer.
                    unsafe { launch.arg(height).arg(width).arg(&self.weights.1).arg(reach).arg(axis).run()? };
                }
            }
        }
        Ok(())
    }

    /// Keeps the probes of the last test.
    pub(super) fn keep_before(&mut self, sums: &Sums<T>) -> Result<()> {
        if self.before.len() != sums.before.len() {
            self.before = self.pool.alloc_zeros(sums.before.len(), "ptycho: probes")?;
        }
        self.cuda.copy(&sums.before, 0, &mut self.before, 0, sums.before.len())
    }

    /// Applies a support in Fourier space to probes that were summed.
    pub(super) fn hold_summed(&self, state: &mut Pair<T>, sums: &mut Sums<T>, operations: &mut Option<BatchOperations<T>>) -> Result<()> {
        if !self.apart() {
            return Ok(());
        }
        self.apply(operations.as_mut(), &mut state.probe)?;
        self.cuda.copy(&state.probe, 0, &mut sums.before, 0, state.probe.len())
    }

    /// Change of the probes since [`Supports::keep_before`]: root mean square over the probes of the relative change.
    pub(super) fn change(&mut self, model: &Model, state: &Pair<T>) -> Result<f64> {
        let launch = self.compare.launch((BLOCKS, model.probes as u32), TEAM).arg(&state.probe).arg(&self.before);
        // SAFETY: (const C*, const C*, double*) as `compare` declares; both are as long as the probes.
        unsafe { launch.arg(&mut self.sums).run()? };
        let parts = self.cuda.download(&self.sums)?;
        let moved = |set: &[f64]| {
            let [moved, all] = set.chunks_exact(2).fold([0.0; 2], |s, part| [s[0] + part[0], s[1] + part[1]]);
            moved / all.max(f64::MIN_POSITIVE)
        };
        let change: f64 = parts.chunks_exact(2 * BLOCKS as usize).map(moved).sum();
        Ok((change / model.probes as f64).sqrt())
    }

    /// The overlap loop, one step a launch; gives the passes made.
    #[allow(clippy::too_many_arguments)] // the parts of the state that it touches
    pub(super) fn overlap(
        &mut self,
        model: &Model,
        argument: ModelArgument,
        state: &mut Pair<T>,
        exits: &Buffer<C<T>>,
        sums: &mut Sums<T>,
        operations: &mut Option<BatchOperations<T>>,
        rule: &Overlap,
    ) -> Result<u32> {
        let once = |object: bool| UpdateArgument::from(&Overlap { passes: 1, object, probe: !object, tolerance: 0.0, ..rule.clone() });
        for pass in 0..rule.passes {
            if rule.object && (rule.object_first || pass > 0 || !rule.probe) {
                if let Some(sigma) = rule.limits.smooth {
                    self.smooth(model, &state.object, sigma)?;
                }
                sums.overlap(argument, exits, once(true), &rule.probe_inertia, 0)?;
            }
            if !rule.probe {
                return Ok(pass + 1);
            }
            self.keep_before(sums)?;
            sums.overlap(argument, exits, once(false), &rule.probe_inertia, if self.apart() { 0 } else { self.real() })?;
            self.hold_summed(state, sums, operations)?;
            if self.change(model, state)? < rule.tolerance {
                return Ok(pass + 1);
            }
        }
        Ok(rule.passes)
    }
}
