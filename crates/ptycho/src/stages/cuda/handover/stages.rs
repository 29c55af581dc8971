//! Stages that sum over the views of all parts of a run.

use zellige_engine::error::Result;

use super::super::CudaStages;
use super::super::arguments::UpdateArgument;
use super::super::number::Number;
use super::super::on_demand::absent;
use super::super::stream::sums::Target;
use super::super::subpixel::object_alone;
use super::super::supports::Supports;
use super::Handover;
use crate::stages::{Likelihood, Overlap};

impl<T: Number> CudaStages<T> {
    /// The overlap loop, as `overlap.cu` makes it, or `supports.rs` where the object is smoothed or probes have a support in
    /// Fourier space; one step a launch. The first pass is on the stream; [`Stages::end_overlap`](crate::stages::Stages) looks at
    /// it. Gives the passes of the loop before.
    pub(in crate::stages::cuda) fn overlap_in_parts(&mut self, rule: &Overlap) -> Result<u32> {
        if self.frames.config.shifted {
            return self.overlap_between_in_parts(rule);
        }
        let apart = self.supports.as_ref().is_some_and(Supports::apart);
        if apart || rule.limits.smooth.is_some() {
            self.need_supports()?;
        }
        if apart {
            self.need_batches()?;
        }
        self.pass_in_parts(rule, 1)?;
        let Some(Handover { overlap, .. }) = &mut self.handover else { return Err(absent()) };
        overlap.open = Some((rule.clone(), 1));
        Ok(overlap.passes.max(1))
    }

    /// The loop with sub-pixel shifts, as [`between`](super::super::subpixel) makes it; gives the passes made.
    fn overlap_between_in_parts(&mut self, rule: &Overlap) -> Result<u32> {
        self.need_subpixel()?;
        self.need_supports()?;
        if let Some(subpixel) = &mut self.subpixel {
            subpixel.weigh(rule)?;
        }
        let once = object_alone(rule);
        for pass in 0..rule.passes {
            let argument = self.scan.model(&self.state);
            let Self { state, frames, operations: Some(operations), subpixel: Some(subpixel), .. } = self else { return Err(absent()) };
            let here = subpixel.seen(operations, argument, frames, &state.probe)?;
            let all = self.seen_by_all(here);
            let Self { model, state, frames, sums, operations, supports, subpixel, handover: Some(handover), .. } = self else {
                return Err(absent());
            };
            let (Some(operations), Some(supports), Some(subpixel)) = (operations, supports, subpixel) else { return Err(absent()) };
            if rule.object && (rule.object_first || pass > 0 || !rule.probe) {
                if let Some(sigma) = rule.limits.smooth {
                    supports.smooth(model, &state.object, sigma)?;
                }
                handover.tiles(all, &frames.exits, sums, &Target::Object(once), &state.object, false)?;
            }
            if !rule.probe {
                return Ok(pass + 1);
            }
            handover.shifted(subpixel, operations, here, frames, true)?;
            subpixel.update_probes(state, sums, supports, operations)?;
            // Whatever comes next needs their transforms, and the device has work while the change is waited for.
            subpixel.take_again(&state.probe)?;
            if pass + 1 < rule.passes && subpixel.change(model, state, supports)? < rule.tolerance {
                return Ok(pass + 1);
            }
        }
        Ok(rule.passes)
    }

    /// Looks at the last pass of the loop and makes those that are left.
    pub(in crate::stages::cuda) fn end_overlap_in_parts(&mut self) -> Result<()> {
        let Some((rule, mut pass)) = self.handover.as_mut().and_then(|handover| handover.overlap.open.take()) else { return Ok(()) };
        while rule.probe && pass < rule.passes && !self.rests(&rule)? {
            pass += 1;
            self.pass_in_parts(&rule, pass)?;
        }
        let Some(Handover { overlap, .. }) = &mut self.handover else { return Err(absent()) };
        overlap.passes = pass;
        Ok(())
    }

    /// One pass of the loop.
    fn pass_in_parts(&mut self, rule: &Overlap, pass: u32) -> Result<()> {
        let apart = self.supports.as_ref().is_some_and(Supports::apart);
        let by_steps = apart || rule.limits.smooth.is_some();
        let support = self.supports.as_ref().filter(|_| !apart).map_or(0, Supports::real);
        let update = UpdateArgument::from(rule);
        let all = self.scan.of_all(&self.state);
        let Self { cuda, model, state, frames, sums, operations, supports, handover: Some(handover), .. } = self else {
            return Err(absent());
        };
        if rule.object && (pass > 1 || rule.object_first || !rule.probe) {
            if let Some((sigma, supports)) = rule.limits.smooth.zip(supports.as_mut()) {
                supports.smooth(model, &state.object, sigma)?;
            }
            handover.tiles(all, &frames.exits, sums, &Target::Object(update), &state.object, rule.probe)?;
        }
        if !rule.probe {
            return Ok(());
        }
        if let Some(supports) = supports.as_mut().filter(|_| by_steps) {
            supports.keep_before(sums)?;
        }
        handover.probes(all, &frames.exits, sums)?;
        handover.late_tiles(all, sums, &state.object)?;
        sums.update_probes(all, &frames.exits, update, &rule.probe_inertia, support)?;
        match supports.as_mut().filter(|_| by_steps) {
            Some(supports) => supports.hold_summed(state, sums, operations),
            None => handover.blocks.measure(cuda, sums),
        }
    }

    /// Returns true if the last pass has left the probes as they were, within the tolerance.
    fn rests(&mut self, rule: &Overlap) -> Result<bool> {
        let apart = self.supports.as_ref().is_some_and(Supports::apart);
        let Self { model, state, supports, handover: Some(handover), .. } = self else { return Err(absent()) };
        if let Some(supports) = supports.as_mut().filter(|_| apart || rule.limits.smooth.is_some()) {
            return Ok(supports.change(model, state)? < rule.tolerance);
        }
        let limit = T::from_wide(rule.tolerance) * T::from_wide(rule.tolerance) * T::from_wide(model.probes as f64);
        Ok(handover.blocks.moved()? < limit)
    }

    /// The gradient, of which the value of every view is given.
    pub(in crate::stages::cuda) fn gradient_in_parts(&mut self, rule: &Likelihood) -> Result<Vec<f64>> {
        let here = self.seen()?;
        let all = self.seen_by_all(here);
        let Self { cuda, model, slots: [Some(to), ..], frames, sums, operations, subpixel, .. } = self else { return Err(absent()) };
        let (Some(descent), Some(handover)) = (&mut self.descent, &mut self.handover) else { return Err(absent()) };
        frames.need_exits()?;
        let views = 0..frames.views;
        let values = descent.gradient_part(here, frames, operations.as_mut().filter(|_| descent.in_batches()), rule, &views)?;
        if rule.object {
            let late = rule.probe && !frames.config.shifted;
            handover.tiles(all, &frames.exits, sums, &Target::Gradient(&to.object), &to.object, late)?;
        } else {
            cuda.fill_zero(&mut to.object)?;
        }
        if let (Some(subpixel), Some(operations), true) = (subpixel, operations, rule.probe) {
            handover.shifted(subpixel, operations, here, frames, false)?;
            subpixel.end(operations)?;
            let len = to.probe.len();
            cuda.copy(&subpixel.sums, 0, &mut to.probe, 0, len)?;
            return model.share.gathered(descent.values(values)?);
        }
        if rule.probe {
            handover.probes(all, &frames.exits, sums)?;
            handover.late_tiles(all, sums, &to.object)?;
        }
        descent.probe_gradient(sums, rule, &mut to.probe)?;
        model.share.gathered(descent.values(values)?)
    }
}
