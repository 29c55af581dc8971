//! The trait of stages on a GPU.

use std::ops::Range;

use num_complex::Complex;
use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::cuda::Downloads;
use zellige_engine::error::Result;
use zellige_engine::ops::plane::FieldCopier;
use zellige_engine::parallel::{items, map};
use zellige_engine::record::ValuesOnGpu;

use super::CudaStages;
use super::arguments::{ConstraintArgument, PieStepArgument, UpdateArgument};
use super::handover::Handover;
use super::intensity::intensity;
use super::number::{C, Number, narrow, wide};
use super::on_demand::absent;
use super::supports::Supports;
use super::sweeps::Sweeps;
use super::wavefield::Wavefield;
use crate::model::{State, View};
use crate::stages::{Held, LeastSquares, Likelihood, Overlap, Projection, Slot, Stages, StateToCome, Sweep, in_one_part};

/// Errors of each view, from the device's values in a row.
fn of_views<T: Number>(errors: &[T]) -> Vec<[f64; 3]> {
    errors.as_chunks::<3>().0.iter().map(|errors| errors.map(T::wide)).collect()
}

impl<T: Number> Stages for CudaStages<T> {
    fn exits_from_product(&mut self) -> Result<()> {
        self.end_overlap()?;
        let model = self.seen()?;
        self.frames.begin(model, false)
    }

    fn project(&mut self, rule: &Projection) -> Result<()> {
        self.end_overlap()?;
        self.likelihoods = None;
        let argument = self.scan.model(&self.state);
        let model = self.seen_in_step(argument)?;
        self.frames.project(model, ConstraintArgument::from(rule))
    }

    fn set_bounds(&mut self, bounds: &[f64]) -> Result<()> {
        self.end_overlap()?;
        let mut weights = self.cuda.download(&self.frames.weight)?;
        weights.iter_mut().zip(bounds).for_each(|([_, noise], bound)| *noise = T::from_wide(*bound));
        self.cuda.upload(&mut self.frames.weight, &weights)
    }

    fn overlap(&mut self, rule: &Overlap) -> Result<u32> {
        self.end_overlap()?;
        if self.handover.is_some() {
            return self.overlap_in_parts(rule);
        }
        let argument = self.scan.model(&self.state);
        if self.frames.config.shifted {
            self.need_subpixel()?;
            self.need_supports()?;
            let Self { model, state, frames, sums, operations, supports: Some(supports), subpixel: Some(subpixel), .. } = self else {
                return Err(absent());
            };
            return subpixel.overlap(model, argument, state, frames, sums, supports, operations, rule);
        }
        let apart = self.supports.as_ref().is_some_and(Supports::apart);
        if rule.limits.smooth.is_some() || apart {
            self.need_supports()?;
            if apart {
                self.need_batches()?;
            }
            let Self { model, state, frames, sums, operations, supports: Some(supports), .. } = self else { return Err(absent()) };
            return supports.overlap(model, argument, state, &frames.exits, sums, operations, rule);
        }
        let support = self.supports.as_ref().map_or(0, Supports::real);
        self.sums.overlap(argument, &self.frames.exits, UpdateArgument::from(rule), &rule.probe_inertia, support)
    }

    fn end_overlap(&mut self) -> Result<()> {
        self.end_overlap_in_parts()
    }

    fn sweep(&mut self, rule: &Sweep, order: &[u32]) -> Result<()> {
        self.end_overlap()?;
        if rule.batch <= 1 {
            in_one_part(&self.model.share)?;
        }
        self.forget_seen();
        let views = self.scan.views.len();
        assert!(order.len() <= views && order.iter().all(|n| (*n as usize) < views), "an order of other views");
        self.likelihoods = None;
        let keep = rule.c != 1.0 || rule.a + rule.b != 1.0;
        let [argument, all] = [self.scan.model(&self.state), self.scan.of_all(&self.state)];
        let supports = self.supports.as_ref().filter(|_| rule.probe);
        let apart = supports.is_some_and(Supports::apart) || rule.looks_through_objects();
        if rule.batch <= 1 && !apart && self.frames.sequence_kind(keep).is_some() {
            let step = PieStepArgument::new(rule, keep, supports.map_or(0, Supports::real));
            return self.frames.sequence(argument, ConstraintArgument::from(rule), step, keep, order);
        }
        self.need_sweeps()?;
        self.need_subpixel()?;
        let Self { model, state, frames, operations: Some(operations), sweeps: Some(sweeps), supports, subpixel, .. } = self else {
            return Err(absent());
        };
        sweeps.share_batches(model, order, rule.batch)?;
        let Sweeps { batch_sequence, told, .. } = sweeps;
        let apart = (supports.as_ref(), subpixel.as_mut());
        batch_sequence.sweep(model, [argument, all], state, frames, operations, apart, told.as_mut(), rule, order)
    }

    fn least_squares(&mut self, rule: &LeastSquares, order: &[u32]) -> Result<()> {
        self.end_overlap()?;
        self.forget_seen();
        let views = self.scan.views.len();
        assert!(order.len() <= views && order.iter().all(|n| (*n as usize) < views), "an order of other views");
        self.likelihoods = None;
        let arguments = [self.scan.model(&self.state), self.scan.of_all(&self.state)];
        self.need_sweeps()?;
        self.need_subpixel()?;
        let Self { model, state, frames, operations: Some(operations), sweeps: Some(sweeps), supports, subpixel, .. } = self else {
            return Err(absent());
        };
        sweeps.share_batches(model, order, rule.batch)?;
        sweeps.least_squares(model, arguments, state, frames, operations, (supports.as_ref(), subpixel.as_mut()), rule, order)?;
        rule.clip.map_or(Ok(()), |range| self.clip(range))
    }

    fn gradient(&mut self, rule: &Likelihood) -> Result<f64> {
        self.end_overlap()?;
        self.descent(Some(rule.noise))?;
        self.slot(Slot::Gradient)?;
        let values = if self.handover.is_some() { self.gradient_in_parts(rule)? } else { self.gradient_of_views(rule)? };
        let mut value = values.iter().sum();
        if rule.smoothness > 0.0 {
            let Self { model, state, slots: [Some(to), ..], descent: Some(descent), .. } = self else { return Err(absent()) };
            let gradient = rule.object.then_some(&to.object);
            value += descent.neighbours(model, &state.object, None, gradient, rule.smoothness)?[0];
        }
        let pixels = self.model.counted() as f64;
        self.likelihoods = Some(values.iter().map(|v| v / pixels).collect());
        Ok(value)
    }

    fn line(&mut self, rule: &Likelihood) -> Result<[f64; 2]> {
        self.end_overlap()?;
        self.descent(Some(rule.noise))?;
        self.slot(Slot::Direction)?;
        let argument = self.seen()?;
        let Self { model, state, slots: [_, _, Some(along)], frames, operations, descent: Some(descent), subpixel, .. } = self else {
            return Err(absent());
        };
        let mut operations = operations.as_mut().filter(|_| descent.in_batches() || subpixel.is_some());
        let mut direction = self.scan.model(along);
        if let Some((subpixel, operations)) = subpixel.as_mut().zip(operations.as_deref_mut()) {
            direction.probe = subpixel.all(operations, direction, frames, &along.probe, 1)?;
        }
        let values = model.share.gathered(descent.line(argument, direction, frames, operations, rule)?)?;
        let mut both = values.iter().fold([0.0; 2], |s, v| [s[0] + v[0], s[1] + v[1]]);
        if rule.smoothness > 0.0 {
            let more = descent.neighbours(model, &state.object, Some(&along.object), None, rule.smoothness)?;
            both = [both[0] + more[0], both[1] + more[1]];
        }
        Ok(both)
    }

    fn dot(&mut self, a: Slot, b: Slot) -> Result<[f64; 2]> {
        self.end_overlap()?;
        self.descent(None)?;
        self.slot(a)?;
        self.slot(b)?;
        let Some(mut descent) = self.descent.take() else { return Err(absent()) };
        let dot = self.held(a).zip(self.held(b)).map(|(a, b)| descent.dot(a, b));
        self.descent = Some(descent);
        dot.unwrap_or_else(|| Err(absent()))
    }

    fn combine(&mut self, to: Slot, s: [f64; 2], from: Slot, f: [f64; 2]) -> Result<()> {
        self.end_overlap()?;
        assert_ne!(to, from, "a slot is not combined with itself");
        self.forget_seen();
        self.descent(None)?;
        self.slot(to)?;
        self.slot(from)?;
        let Some(mut descent) = self.descent.take() else { return Err(absent()) };
        let done = self.held(to).zip(self.held(from)).map(|(to, from)| descent.combine(to, s, from, f));
        self.descent = Some(descent);
        done.unwrap_or_else(|| Err(absent()))
    }

    fn wavefield(&mut self, slot: Slot, damping: [f64; 2]) -> Result<()> {
        self.end_overlap()?;
        assert_ne!(slot, Slot::State, "the state is not divided by itself");
        self.slot(slot)?;
        if self.wavefield.is_none() {
            self.wavefield = Some(Wavefield::new(&self.cuda, self.frames.config)?);
        }
        let (Some(wavefield), Some(to)) = (&self.wavefield, self.held(slot)) else { return Err(absent()) };
        wavefield.divide(self.scan.of_all(&self.state), &self.sums, to, damping)
    }

    fn smooth_object(&mut self, slot: Slot, sigma: f64) -> Result<()> {
        self.end_overlap()?;
        self.slot(slot)?;
        self.need_supports()?;
        let Some(mut supports) = self.supports.take() else { return Err(absent()) };
        let done = self.held(slot).map_or_else(|| Err(absent()), |pair| supports.smooth(&self.model, &pair.object, sigma));
        self.supports = Some(supports);
        done
    }

    fn clip(&mut self, range: [f64; 2]) -> Result<()> {
        self.end_overlap()?;
        Self::on_host(&self.cuda, &mut self.state.object, |object| {
            for value in object {
                let size = T::modulus(*value).wide();
                let to = size.clamp(range[0], range[1]);
                *value = if size > 0.0 { *value * T::from_wide(to / size) } else { Complex::new(T::from_wide(to), T::default()) };
            }
        })
    }

    fn roll(&mut self, probes: &[[i32; 2]], objects: &[[i32; 2]]) -> Result<()> {
        self.end_overlap()?;
        self.forget_seen();
        self.roll_all(probes, objects)
    }

    fn support(&mut self, slot: Slot) -> Result<()> {
        self.end_overlap()?;
        self.forget_seen();
        if !self.supports.as_ref().is_some_and(Supports::any) {
            return Ok(());
        }
        if self.supports.as_ref().is_some_and(Supports::apart) {
            self.need_batches()?;
        }
        self.slot(slot)?;
        let (Some(supports), mut operations) = (self.supports.take(), self.operations.take()) else { return Err(absent()) };
        let done = self.slot(slot).and_then(|pair| supports.apply(operations.as_mut(), &mut pair.probe));
        (self.supports, self.operations) = (Some(supports), operations);
        done
    }

    fn set_support(&mut self, real: Option<&[bool]>, fourier: Option<&[bool]>) -> Result<()> {
        self.end_overlap()?;
        if real.is_some() || fourier.is_some() {
            self.need_supports()?;
        }
        self.supports.as_mut().map_or(Ok(()), |supports| supports.set(real, fourier))
    }

    fn trial(&mut self, moved: &[[i32; 2]]) -> Result<Vec<f64>> {
        self.end_overlap()?;
        let views: Vec<View> =
            self.scan.views.iter().zip(moved).map(|(v, by)| View { row: v.row + by[0], col: v.col + by[1], ..*v }).collect();
        assert!(views.len() == self.scan.views.len() && views.iter().all(|v| self.inside(v)), "a trial outside of the objects");
        let argument = self.seen()?;
        self.need_seeker()?;
        let views = &views[self.model.own()];
        let found = match self {
            Self { seeker: Some(seeker), frames, .. } => seeker.trial(argument, frames, views),
            Self { operations: Some(operations), frames, .. } => operations.trial(argument, frames, views),
            _ => Err(absent()),
        };
        self.model.share.gathered(found?)
    }

    fn slope(&mut self) -> Result<Vec<[f64; 5]>> {
        self.end_overlap()?;
        let argument = self.seen()?;
        self.need_seeker()?;
        let found = match self {
            Self { seeker: Some(seeker), frames, .. } => seeker.slope(argument, frames),
            Self { operations: Some(operations), frames, subpixel, state, .. } => {
                operations.slope(argument, frames, subpixel.as_mut().map(|subpixel| (subpixel, &state.probe)))
            }
            _ => Err(absent()),
        };
        self.model.share.gathered(found?)
    }

    fn views(&self) -> (&[View], &[[f64; 2]]) {
        (&self.scan.views, &self.scan.shifts)
    }

    fn set_views(&mut self, views: &[View], shifts: &[[f64; 2]]) -> Result<()> {
        self.end_overlap()?;
        self.forget_seen();
        self.need_subpixel()?;
        if let Self { subpixel: Some(subpixel), operations: Some(operations), frames, scan, .. } = self {
            subpixel.set(operations, frames, &scan.shifts, shifts)?;
        }
        self.scan.views.copy_from_slice(views);
        self.scan.shifts.copy_from_slice(shifts);
        self.cuda.upload(&mut self.scan.on_device, views)?;
        self.sums.list(&self.model, views)?;
        if self.handover.is_some() {
            self.handover = Some(Handover::new(&self.model, views, &self.cuda, &self.pool, self.frames.config, &mut self.sums)?);
        }
        Ok(())
    }

    fn errors(&mut self) -> Result<Vec<[f64; 3]>> {
        if let Some(values) = &self.likelihoods {
            return Ok(values[self.model.own()].iter().map(|v| [0.0, *v, 0.0]).collect());
        }
        Ok(of_views(&self.cuda.download(&self.frames.errors)?))
    }

    fn begin_errors(&mut self) -> Result<bool> {
        // Those of a likelihood are on the host.
        if self.likelihoods.is_some() {
            return Ok(false);
        }
        let errors = &self.frames.errors;
        let downloads = match &mut self.downloads {
            Some(downloads) => downloads,
            none => none.insert(Downloads::new(&self.cuda, "ptycho: errors")?),
        };
        self.errors_begun.push_back(downloads.begin(errors, errors.len())?);
        Ok(true)
    }

    fn begun_errors(&mut self) -> Result<Vec<[f64; 3]>> {
        self.errors_begun.pop_front().map_or_else(|| Err(absent()), |errors| Ok(of_views(errors.wait()?)))
    }

    fn state(&mut self) -> Result<State> {
        self.end_overlap()?;
        Ok(State { probe: wide(&self.cuda.download(&self.state.probe)?), object: wide(&self.cuda.download(&self.state.object)?) })
    }

    fn begin_state(&mut self) -> Result<Option<StateToCome>> {
        if !self.model.share.links().is_alone() {
            return Ok(None);
        }
        self.end_overlap()?;
        let copies = Downloads::of(&mut self.state_copies, &self.cuda, "ptycho: probe and object for a look")?;
        let (probe, object) = (&self.state.probe, &self.state.object);
        let (probe, object) = (copies.begin(probe, probe.len())?, copies.begin(object, object.len())?);
        Ok(Some(Box::new(move || Ok(State { probe: wide(probe.wait()?), object: wide(object.wait()?) }))))
    }

    fn wave_on_gpu(
        &mut self,
        of: Held,
        range: Range<usize>,
        factors: &[Complex<f64>],
        copier: &FieldCopier,
    ) -> Result<Option<ValuesOnGpu>> {
        if !self.model.share.links().is_alone() {
            return Ok(None);
        }
        self.end_overlap()?;
        let wave = match of {
            Held::Probe => &self.state.probe,
            Held::Object => &self.state.object,
        };
        copier.wave(wave, range, factors, "a copy of a wave").map(Some)
    }

    fn set_wave_on_gpu(
        &mut self,
        of: Held,
        range: Range<usize>,
        factors: &[Complex<f64>],
        values: &ValuesOnGpu,
        copier: &FieldCopier,
    ) -> Result<bool> {
        self.end_overlap()?;
        let wave = match of {
            Held::Probe => &mut self.state.probe,
            Held::Object => &mut self.state.object,
        };
        let changed = copier.put_wave(values, wave, range, factors)?;
        if changed {
            self.forget_seen();
        }
        Ok(changed)
    }

    fn copy_state(&mut self, bits: &mut [u64]) -> Result<()> {
        self.end_overlap()?;
        let (probe, object) = bytemuck::cast_slice_mut::<u64, C<T>>(bits).split_at_mut(self.state.probe.len());
        self.cuda.download_to(&self.state.probe, 0, probe)?;
        self.cuda.download_to(&self.state.object, 0, object)
    }

    fn set_state(&mut self, state: &State) -> Result<()> {
        self.end_overlap()?;
        self.forget_seen();
        self.cuda.upload(&mut self.state.probe, &narrow(&state.probe))?;
        self.cuda.upload(&mut self.state.object, &narrow(&state.object))
    }

    fn exit_waves(&mut self) -> Result<Vec<Complex<f64>>> {
        self.end_overlap()?;
        if self.frames.waves.is_empty() {
            return Ok(Vec::new());
        }
        self.remake_exits()?;
        Ok(wide(&self.cuda.download(&self.frames.exits)?))
    }

    fn set_exit_waves(&mut self, waves: &[Complex<f64>]) -> Result<()> {
        self.end_overlap()?;
        self.frames.need()?;
        self.cuda.upload(&mut self.frames.exits, &narrow(waves))?;
        let model = self.scan.model(&self.state);
        self.frames.begin(model, true)
    }

    fn probe(&mut self) -> Result<Vec<Complex<f64>>> {
        self.end_overlap()?;
        Ok(wide(&self.cuda.download(&self.state.probe)?))
    }

    fn probe_products(&mut self) -> Result<Vec<Complex<f64>>> {
        self.end_overlap()?;
        self.sums.products(&self.state.probe)
    }

    fn intensities(&mut self, views: &[usize]) -> Result<Vec<Vec<f64>>> {
        self.end_overlap()?;
        let state = self.state()?;
        let (model, argument) = (&self.model, &self.scan);
        Ok(map(items(views), |_, j| intensity(model, &state, (argument.views[*j], argument.shifts[*j]))))
    }

    fn mix_probe(&mut self, basis: &[Complex<f64>]) -> Result<()> {
        self.end_overlap()?;
        self.forget_seen();
        self.sums.mix(&mut self.state.probe, basis)
    }

    fn save(&mut self, prefix: &str, writer: &mut Writer) -> Result<()> {
        self.end_overlap()?;
        self.save_all(prefix, writer)
    }

    fn restore(&mut self, prefix: &str, reader: &Reader) -> Result<()> {
        self.end_overlap()?;
        self.forget_seen();
        self.restore_all(prefix, reader)
    }

    fn memory(&self) -> u64 {
        self.pool.allocated()
    }

    fn memory_peak(&self) -> u64 {
        self.pool.peak()
    }

    fn cuda(&self) -> Option<zellige_engine::cuda::Cuda> {
        Some(self.cuda.clone())
    }
}
