//! Parts of the stages that are made when first asked for.

use zellige_engine::error::Result;

use super::arguments::ModelArgument;
use super::batches::BatchOperations;
use super::likelihood::LikelihoodKernels;
use super::number::{C, Number};
use super::positions::PositionTrials;
use super::program::FrameProcessing;
use super::subpixel::SubpixelProbe;
use super::supports::Supports;
use super::sweeps::Sweeps;
use super::{CudaStages, Pair, refused, stream};
use crate::model::{Model, View};
use crate::stages::{Likelihood, Noise, Slot};

/// Error of a missing array that was made just before: a defect.
pub(super) fn absent() -> zellige_engine::error::Error {
    refused("a part that was not made", "take `--device cpu`, and report it")
}

impl<T: Number> CudaStages<T> {
    /// The slot's pair; slots other than the state are made when first asked for.
    pub(super) fn slot(&mut self, slot: Slot) -> Result<&mut Pair<T>> {
        let number = match slot {
            Slot::State => return Ok(&mut self.state),
            Slot::Gradient => 0,
            Slot::Last => 1,
            Slot::Direction => 2,
        };
        let slot = &mut self.slots[number];
        if slot.is_none() {
            *slot = Some(Pair::zeros(&self.model, &self.pool, "ptycho: gradients")?);
        }
        slot.as_mut().ok_or_else(absent)
    }

    /// A slot that was made.
    pub(super) fn held(&self, slot: Slot) -> Option<&Pair<T>> {
        match slot {
            Slot::State => Some(&self.state),
            Slot::Gradient => self.slots[0].as_ref(),
            Slot::Last => self.slots[1].as_ref(),
            Slot::Direction => self.slots[2].as_ref(),
        }
    }

    /// Makes the kernels of the likelihood, for this noise if it matters.
    pub(super) fn descent(&mut self, noise: Option<Noise>) -> Result<()> {
        if self.descent.as_ref().is_none_or(|d| noise.is_some_and(|n| n != d.noise())) {
            let config = self.frames.config;
            self.descent = Some(LikelihoodKernels::new(&self.cuda, &self.pool, config, noise.unwrap_or_default(), self.model.own().len())?);
        }
        if self.descent.as_ref().is_some_and(LikelihoodKernels::in_batches) {
            self.need_batches()?;
        }
        Ok(())
    }

    /// Builds the kernels of position refinement.
    pub(super) fn need_seeker(&mut self) -> Result<()> {
        let FrameProcessing::Fused { cluster, .. } = self.frames.config.processing else { return self.need_batches() };
        if self.frames.config.shifted {
            return self.need_batches();
        }
        if self.seeker.is_none() {
            self.seeker = Some(PositionTrials::new(&self.cuda, &self.pool, self.frames.config, cluster, self.model.own().len())?);
        }
        Ok(())
    }

    /// Makes the kernels for frames in pieces.
    pub(super) fn need_batches(&mut self) -> Result<()> {
        if self.operations.is_none() {
            self.operations = Some(BatchOperations::new(&self.model, &self.cuda, &self.pool, self.frames.config)?);
        }
        Ok(())
    }

    /// Prepares the kernels of sub-pixel shifts, if there are any; returns the argument of the kernels of all views.
    pub(super) fn seen(&mut self) -> Result<ModelArgument> {
        let argument = self.scan.model(&self.state);
        self.seen_in(argument)
    }

    /// Prepares probes, as [`Self::seen`] does, for the views that `argument` and the present frames begin with.
    pub(super) fn seen_in(&mut self, argument: ModelArgument) -> Result<ModelArgument> {
        if !self.frames.config.shifted {
            return Ok(argument);
        }
        self.need_subpixel()?;
        let Self { state, frames, operations: Some(operations), subpixel: Some(subpixel), .. } = self else { return Err(absent()) };
        Ok(ModelArgument { probe: subpixel.all(operations, argument, frames, &state.probe, 0)?, ..argument })
    }

    /// Prepares probes, as [`Self::seen`] does, for a Fourier step: in registers it shifts them itself.
    pub(super) fn seen_in_step(&mut self, argument: ModelArgument) -> Result<ModelArgument> {
        self.need_subpixel()?;
        match self {
            Self { state, frames, operations: Some(operations), subpixel: Some(subpixel), .. } => {
                subpixel.seen_in_step(operations, argument, frames, &state.probe)
            }
            _ => Ok(argument),
        }
    }

    /// Takes note that probes or sub-pixel remainders change.
    pub(super) fn forget_seen(&mut self) {
        if let Some(subpixel) = &mut self.subpixel {
            subpixel.forget();
        }
    }

    /// Builds the kernels of sub-pixel shifts, if there are any.
    pub(super) fn need_subpixel(&mut self) -> Result<()> {
        if self.frames.config.shifted && self.subpixel.is_none() {
            self.need_batches()?;
            let argument = Model { shifts: self.scan.shifts.clone(), ..stream::plan::without_frames(&self.model) };
            self.subpixel = Some(SubpixelProbe::new(&argument, &self.cuda, &self.pool, self.frames.config)?);
            self.begin_at(self.scan.first);
        }
        Ok(())
    }

    /// Arrays begin with view `first` of all.
    pub(super) fn begin_at(&mut self, first: usize) {
        let Self { subpixel: Some(subpixel), operations: Some(operations), frames, .. } = self else { return };
        let shifts = subpixel.begin_at(first);
        // A near detector's frames go back by what the probe was shifted in them.
        if frames.config.near {
            (operations.shifts, frames.shifts) = (shifts, shifts);
        }
    }

    /// The argument of kernels that count own views, with the probes that these see, and that of sums over views, which count all.
    pub(super) fn seen_by_all(&self, here: ModelArgument) -> ModelArgument {
        let all = self.scan.of_all(&self.state);
        if !self.frames.config.shifted {
            return all;
        }
        let before = (self.scan.first * self.model.modes[0] * self.model.pixels() * size_of::<C<T>>()) as u64;
        ModelArgument { probe: here.probe.wrapping_sub(before), ..all }
    }

    /// Gradient, of which the value of every view is given.
    pub(super) fn gradient_of_views(&mut self, rule: &Likelihood) -> Result<Vec<f64>> {
        let argument = self.seen()?;
        let Self { slots: [Some(to), ..], frames, sums, operations, descent: Some(descent), subpixel, .. } = self else {
            return Err(absent());
        };
        let operations = operations.as_mut().filter(|_| descent.in_batches() || subpixel.is_some());
        descent.gradient(argument, frames, (operations, subpixel.as_mut()), sums, rule, to)
    }

    /// Builds the kernels of engines that go from view to view.
    pub(super) fn need_sweeps(&mut self) -> Result<()> {
        self.need_batches()?;
        if self.sweeps.is_none() {
            self.sweeps = Some(Sweeps::new(&self.model, &self.cuda, &self.pool, self.frames.config)?);
        }
        Ok(())
    }

    /// Builds the kernels of supports and smoothing.
    pub(super) fn need_supports(&mut self) -> Result<()> {
        if self.supports.is_none() {
            self.supports = Some(Supports::new(&self.model, &self.cuda, &self.pool, self.frames.config)?);
        }
        Ok(())
    }

    /// Returns true if a view lies in its object and has a probe.
    pub(super) fn inside(&self, view: &View) -> bool {
        let fits = |first: i32, frame: usize, all: usize| first >= 0 && first as usize + frame <= all;
        let storage = self.model.storages.get(view.object as usize);
        storage.is_some_and(|s| fits(view.row, self.model.frame[0], s.shape[0]) && fits(view.col, self.model.frame[1], s.shape[1]))
            && (view.probe as usize) < self.model.probes
    }
}
