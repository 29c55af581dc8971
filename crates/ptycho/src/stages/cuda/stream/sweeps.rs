//! Sweeps over the blocks: the Fourier step with the overlap loop, and the likelihood.

use std::ops::Range;

use zellige_engine::cuda::Argument;
use zellige_engine::error::Result;

use super::ring::Access;
use super::sums::{BlockSums, Target};
use super::{BlockBuffers, StreamedStages};
use crate::model::View;
use crate::stages::cuda::CudaStages;
use crate::stages::cuda::arguments::{ConstraintArgument, ModelArgument, UpdateArgument};
use crate::stages::cuda::number::{C, Number};
use crate::stages::cuda::subpixel::object_alone;
use crate::stages::cuda::supports::Supports;
use crate::stages::{Likelihood, Overlap, Projection, Slot};

/// The Fourier step that leaves waves as they are, whatever is measured, and makes the exit waves of them.
pub(in crate::stages::cuda) const NEUTRAL: Projection = Projection { a: 0.0, b: 0.0, c: 0.0, bound: -1.0, noise: 0.0, likelihood: false };

/// The arrays as a kernel sees them that counts views from `first` on.
fn block_model<T: Number>(inner: &CudaStages<T>, first: usize) -> ModelArgument {
    ModelArgument { views: inner.scan.on_device.from(first).value(), ..inner.scan.model(&inner.state) }
}

impl<T: Number> CudaStages<T> {
    /// The arrays as kernels see them that count views from `first` on, of the block at work; and as sums over views see them,
    /// which count from the first one of all on. With sub-pixel shifts they have those of the block.
    pub(super) fn block(&mut self, first: usize) -> Result<[ModelArgument; 2]> {
        self.block_seen(first, false)
    }

    /// As [`CudaStages::block`]; `in_step`: for a Fourier step, which may shift the probes itself.
    fn block_seen(&mut self, first: usize, in_step: bool) -> Result<[ModelArgument; 2]> {
        self.need_subpixel()?;
        self.begin_at(first);
        let here = block_model(self, first);
        let here = if in_step { self.seen_in_step(here)? } else { self.seen_in(here)? };
        let all = self.scan.model(&self.state);
        let before = (first * self.model.modes[0] * self.model.pixels() * size_of::<C<T>>()) as u64;
        let probe = if self.frames.config.shifted { here.probe.wrapping_sub(before) } else { all.probe };
        Ok([here, ModelArgument { probe, ..all }])
    }

    /// Adds what the views of the block at work contribute to the probe, with sub-pixel shifts; tells whether there are any.
    fn ask_block(&mut self, here: ModelArgument, rest: bool) -> Result<bool> {
        match self {
            Self { subpixel: Some(subpixel), operations: Some(operations), frames, .. } => {
                subpixel.add_views(operations, here, frames, rest).map(|()| true)
            }
            _ => Ok(false),
        }
    }
}

impl<T: Number> StreamedStages<T> {
    /// Gives every block in turn to `work`, frames and waves in their buffers in `inner.frames`; `told`: errors of the views are
    /// taken over.
    pub(super) fn sweep(
        &mut self,
        access: Access,
        told: bool,
        mut work: impl FnMut(&mut CudaStages<T>, &BlockSums<T>, usize, &Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let bytes = self.bytes_of_pixel;
        let Self { work: Some(BlockBuffers { ring, sums, waves }), inner, convert, raw, order, weights, errors, .. } = self else {
            return Ok(());
        };
        let (cuda, wave) = (inner.cuda.clone(), inner.model.exits() * inner.model.pixels());
        let half = ring.half;
        ring.begin(access, raw)?;
        for b in 0..ring.layout.blocks() {
            let range = ring.layout.range(b);
            let views = range.len();
            let kept = ring.enter(b, raw)?;
            inner.frames.views = views;
            cuda.copy(weights, range.start, &mut inner.frames.weight, 0, views)?;
            if access.raw {
                convert.magnitudes((&kept.raw, bytes), order.as_ref(), &mut inner.frames.mag, views)?;
            }
            if half && access.read {
                convert.widen(&kept.half_precision, waves, views * wave)?;
            }
            let stored = if half { &mut *waves } else { &mut kept.waves };
            std::mem::swap(&mut inner.frames.waves, stored);
            let done = work(inner, sums, b, &range);
            std::mem::swap(&mut inner.frames.waves, stored);
            done?;
            if half && access.write {
                convert.narrow(waves, &mut kept.half_precision, views * wave)?;
            }
            if told {
                cuda.copy(&inner.frames.errors, 0, errors, 3 * range.start, 3 * views)?;
            }
            ring.leave(b, raw)?;
        }
        Ok(())
    }

    /// Waves of the present probe and object.
    pub(super) fn begin_waves(&mut self) -> Result<()> {
        self.pending = None;
        self.ready(true)?;
        self.sweep(Access { write: true, ..Access::default() }, false, |inner, _, _, range| {
            let [model, _] = inner.block(range.start)?;
            inner.frames.begin(model, false)
        })
    }

    /// A Fourier step, or none, and sums of the exit waves that it leaves.
    ///
    /// `first`: in the first pass of an overlap loop, which sums with the probes as the step itself shifts them.
    fn step(&mut self, step: Option<Projection>, target: Option<&Target<T>>, first: bool) -> Result<()> {
        let moves = step.is_some();
        self.inner.forget_seen();
        self.sweep(Access { raw: moves, read: true, write: moves }, moves, |inner, sums, b, range| {
            let [model, all] = inner.block_seen(range.start, first)?;
            inner.frames.project(model, ConstraintArgument::from(&step.unwrap_or(NEUTRAL)))?;
            let Some(target) = target else { return Ok(()) };
            if matches!(target, Target::Probe) && inner.ask_block(model, true)? {
                return Ok(());
            }
            sums.add(all, &inner.frames.exits, (b, range.start), &inner.sums, target)
        })
    }

    /// Makes the Fourier step that was put off.
    pub(super) fn flush(&mut self) -> Result<()> {
        match self.pending.take() {
            Some(step) => self.step(Some(step), None, true),
            None => Ok(()),
        }
    }

    /// The overlap loop, as `overlap.cu` makes it, or `supports.rs` where the object is smoothed or probes have a support in
    /// Fourier space.
    pub(super) fn overlap_loop(&mut self, rule: &Overlap) -> Result<u32> {
        self.ready(true)?;
        if self.inner.frames.config.shifted {
            return self.overlap_between(rule);
        }
        let apart = self.inner.supports.as_ref().is_some_and(Supports::apart);
        let by_steps = apart || rule.limits.smooth.is_some();
        if by_steps {
            self.inner.need_supports()?;
        }
        if apart {
            self.inner.need_batches()?;
        }
        let (update, mut pass) = (UpdateArgument::from(rule), 0);
        let limit = {
            let tolerance = T::from_wide(rule.tolerance);
            tolerance * tolerance * T::from_wide(self.inner.model.probes as f64)
        };
        while pass < rule.passes {
            pass += 1;
            if rule.object && (pass > 1 || rule.object_first || !rule.probe) {
                if let Some(sigma) = rule.limits.smooth {
                    // The Fourier step sees the object as it was.
                    self.flush()?;
                    let CudaStages { model, state, supports: Some(supports), .. } = &mut self.inner else { break };
                    supports.smooth(model, &state.object, sigma)?;
                }
                let step = self.pending.take();
                self.step(step, Some(&Target::Object(update)), pass == 1)?;
            }
            if !rule.probe {
                break;
            }
            let step = self.pending.take();
            self.step(step, Some(&Target::Probe), pass == 1)?;
            let Self { work: Some(BlockBuffers { sums: blocks, .. }), inner, .. } = self else { break };
            let argument = inner.scan.model(&inner.state);
            let CudaStages { cuda, model, state, frames, sums, operations, supports, .. } = inner;
            if let Some(supports) = supports.as_mut().filter(|_| by_steps) {
                supports.keep_before(sums)?;
                let support = if apart { 0 } else { supports.real() };
                sums.update_probes(argument, &frames.exits, update, &rule.probe_inertia, support)?;
                supports.hold_summed(state, sums, operations)?;
                if supports.change(model, state)? < rule.tolerance {
                    break;
                }
                continue;
            }
            let support = supports.as_ref().map_or(0, Supports::real);
            sums.update_probes(argument, &frames.exits, update, &rule.probe_inertia, support)?;
            blocks.measure(cuda, sums)?;
            if blocks.moved()? < limit {
                break;
            }
        }
        self.flush()?;
        Ok(pass)
    }

    /// Updates with sub-pixel shifts, as [`between`](crate::stages::cuda::subpixel) does.
    fn overlap_between(&mut self, rule: &Overlap) -> Result<u32> {
        self.inner.need_subpixel()?;
        self.inner.need_supports()?;
        let views = self.inner.scan.views.len();
        if let Some(subpixel) = &mut self.inner.subpixel {
            subpixel.weigh(rule)?;
        }
        let (update, mut passes) = (object_alone(rule), rule.passes);
        for pass in 0..rule.passes {
            if rule.object && (rule.object_first || pass > 0 || !rule.probe) {
                if let Some(sigma) = rule.limits.smooth {
                    // The Fourier step sees the object as it was.
                    self.flush()?;
                    let CudaStages { model, state, supports: Some(supports), .. } = &mut self.inner else { break };
                    supports.smooth(model, &state.object, sigma)?;
                }
                let step = self.pending.take();
                self.step(step, Some(&Target::Object(update)), pass == 0)?;
            }
            if !rule.probe {
                passes = pass + 1;
                break;
            }
            let CudaStages { subpixel: Some(subpixel), .. } = &mut self.inner else { break };
            subpixel.begin(views);
            let step = self.pending.take();
            self.step(step, Some(&Target::Probe), pass == 0)?;
            let CudaStages { model, state, sums, operations: Some(operations), supports: Some(supports), subpixel: Some(subpixel), .. } =
                &mut self.inner
            else {
                break;
            };
            subpixel.update_probes(state, sums, supports, operations)?;
            if subpixel.change(model, state, supports)? < rule.tolerance {
                passes = pass + 1;
                break;
            }
        }
        self.flush()?;
        Ok(passes)
    }

    /// The gradient, and the value of every view.
    pub(super) fn likelihood_gradient(&mut self, rule: &Likelihood) -> Result<Vec<f64>> {
        self.ready(false)?;
        self.inner.descent(Some(rule.noise))?;
        self.inner.slot(Slot::Gradient)?;
        let mut values = Vec::new();
        let views = self.inner.scan.views.len();
        self.inner.need_subpixel()?;
        if let Some(subpixel) = &mut self.inner.subpixel {
            subpixel.begin(views);
        }
        self.sweep(Access { raw: true, ..Access::default() }, false, |inner, blocks, b, range| {
            let [model, all] = inner.block(range.start)?;
            let CudaStages { descent: Some(descent), slots: [Some(to), ..], frames, sums, operations, .. } = inner else { return Ok(()) };
            values.extend(descent.gradient_part(model, frames, operations.as_mut(), rule, range)?);
            if rule.object {
                blocks.add(all, &frames.exits, (b, range.start), sums, &Target::Gradient(&to.object))?;
            }
            if rule.probe && !inner.ask_block(model, false)? {
                let CudaStages { frames, sums, .. } = inner;
                blocks.add(all, &frames.exits, (b, range.start), sums, &Target::Probe)?;
            }
            Ok(())
        })?;
        let CudaStages { descent: Some(descent), slots: [Some(to), ..], sums, cuda, operations, subpixel, .. } = &mut self.inner else {
            return Ok(Vec::new());
        };
        if !rule.object {
            cuda.fill_zero(&mut to.object)?;
        }
        match subpixel.as_mut().zip(operations.as_mut()) {
            Some((subpixel, operations)) if rule.probe => {
                subpixel.end(operations)?;
                let len = to.probe.len();
                cuda.copy(&subpixel.sums, 0, &mut to.probe, 0, len)?;
            }
            _ => descent.probe_gradient(sums, rule, &mut to.probe)?,
        }
        if descent.in_batches() { Ok(values) } else { Ok(descent.totals()?.iter().map(|v| v[0]).collect()) }
    }

    /// First and second order along the direction.
    pub(super) fn likelihood_line(&mut self, rule: &Likelihood) -> Result<[f64; 2]> {
        self.ready(false)?;
        self.inner.descent(Some(rule.noise))?;
        self.inner.slot(Slot::Direction)?;
        let mut values = Vec::new();
        self.sweep(Access { raw: true, ..Access::default() }, false, |inner, _, _, range| {
            let [model, _] = inner.block(range.start)?;
            let CudaStages { descent: Some(descent), slots: [_, _, Some(pair)], frames, scan, operations, subpixel, .. } = inner else {
                return Ok(());
            };
            let mut along = ModelArgument { views: model.views, ..scan.model(pair) };
            if let Some((subpixel, operations)) = subpixel.as_mut().zip(operations.as_mut()) {
                along.probe = subpixel.all(operations, along, frames, &pair.probe, 1)?;
            }
            values.extend(descent.line_part(model, along, frames, operations.as_mut(), rule, range)?);
            Ok(())
        })?;
        let Some(descent) = &self.inner.descent else { return Ok([0.0; 2]) };
        let values = if descent.in_batches() { values } else { descent.totals()? };
        Ok(values.iter().fold([0.0; 2], |s, v| [s[0] + v[0], s[1] + v[1]]))
    }
}

impl<T: Number> StreamedStages<T> {
    /// Asks `ask` of the views of every block where they look, or would look in `moved`.
    pub(super) fn each_block_at<R>(
        &mut self,
        moved: Option<&[View]>,
        mut ask: impl FnMut(&mut CudaStages<T>, ModelArgument, &[View]) -> Result<Vec<R>>,
    ) -> Result<Vec<R>> {
        if self.work.is_none() {
            self.ready(false)?;
        }
        self.inner.need_seeker()?;
        let mut all = Vec::with_capacity(self.inner.scan.views.len());
        self.sweep(Access { raw: true, ..Access::default() }, false, |inner, _, _, range| {
            let [model, _] = inner.block(range.start)?;
            let views = moved.map_or(&[][..], |views| &views[range.clone()]);
            let found = ask(inner, model, views)?;
            all.extend(found.into_iter().take(range.len()));
            Ok(())
        })?;
        Ok(all)
    }
}

impl<T: Number> CudaStages<T> {
    /// The part of the squared differences of neighbours: value (and its derivative to the gradient), or first and second order
    /// along the direction.
    pub(super) fn smoothness(&mut self, rule: &Likelihood, line: bool) -> Result<[f64; 2]> {
        let Self { model, state, slots: [to, _, along], descent: Some(descent), .. } = self else { return Ok([0.0; 2]) };
        if rule.smoothness <= 0.0 {
            return Ok([0.0; 2]);
        }
        let (along, gradient) = if line { (along.as_ref(), None) } else { (None, to.as_ref().filter(|_| rule.object)) };
        descent.neighbours(model, &state.object, along.map(|p| &p.object), gradient.map(|p| &p.object), rule.smoothness)
    }
}
