//! The overlap loop with sub-pixel shifts, one step a launch.

use zellige_engine::error::Result;

use super::{SubpixelProbe, object_alone};
use crate::model::Model;
use crate::stages::Overlap;
use crate::stages::cuda::Pair;
use crate::stages::cuda::arguments::ModelArgument;
use crate::stages::cuda::batches::BatchOperations;
use crate::stages::cuda::frames::Frames;
use crate::stages::cuda::number::Number;
use crate::stages::cuda::program::TEAM;
use crate::stages::cuda::shifted::ProbeStep;
use crate::stages::cuda::sums::Sums;
use crate::stages::cuda::supports::Supports;

impl<T: Number> SubpixelProbe<T> {
    /// Weights of the old probes.
    pub(in crate::stages::cuda) fn weigh(&mut self, rule: &Overlap) -> Result<()> {
        let weights: Vec<T> = rule.probe_inertia.iter().map(|w| T::from_wide(*w)).collect();
        if self.inertia_now != weights {
            self.cuda.upload(&mut self.inertia, &weights)?;
            self.inertia_now = weights;
        }
        Ok(())
    }

    /// Ends the sums and makes the step of them; [`Self::change`] tells how far it went.
    pub(in crate::stages::cuda) fn update_probes(
        &mut self,
        state: &mut Pair<T>,
        sums: &mut Sums<T>,
        supports: &mut Supports<T>,
        operations: &mut BatchOperations<T>,
    ) -> Result<()> {
        (self.current, self.taken) = (false, false);
        if let Some(registers) = self.registers.as_ref().filter(|_| !supports.apart()) {
            self.add_parts()?;
            let (before, inertia) = (&sums.before, &self.inertia);
            self.taken = true;
            return registers.step(&self.sums, &self.norms, &ProbeStep { probe: &state.probe, before, inertia, support: supports.real() });
        }
        supports.keep_before(sums)?;
        self.end(operations)?;
        let launch = self.step.launch((operations.chunks(), self.sets as u32), TEAM).arg(&state.probe).arg(&self.sums);
        // SAFETY: (C*, const C*, const float*, const float*, const float*) as `step_subpixel` declares.
        unsafe { launch.arg(&self.norms).arg(&self.inertia).arg(0_u64).run()? };
        supports.apply(Some(operations), &mut state.probe)?;
        self.cuda.copy(&state.probe, 0, &mut sums.before, 0, state.probe.len())
    }

    /// Change of the probes by the last step.
    pub(in crate::stages::cuda) fn change(&self, model: &Model, state: &Pair<T>, supports: &mut Supports<T>) -> Result<f64> {
        match self.registers.as_ref().filter(|_| !supports.apart()) {
            Some(registers) => registers.change(),
            None => supports.change(model, state),
        }
    }

    /// The overlap loop, one step a launch; gives the passes made.
    #[allow(clippy::too_many_arguments)] // the parts of the state that it touches
    pub(in crate::stages::cuda) fn overlap(
        &mut self,
        model: &Model,
        argument: ModelArgument,
        state: &mut Pair<T>,
        frames: &Frames<T>,
        sums: &mut Sums<T>,
        supports: &mut Supports<T>,
        operations: &mut Option<BatchOperations<T>>,
        rule: &Overlap,
    ) -> Result<u32> {
        let Some(operations) = operations.as_mut() else { return Ok(0) };
        let once = object_alone(rule);
        self.weigh(rule)?;
        for pass in 0..rule.passes {
            let seen = self.seen(operations, argument, frames, &state.probe)?;
            if rule.object && (rule.object_first || pass > 0 || !rule.probe) {
                if let Some(sigma) = rule.limits.smooth {
                    supports.smooth(model, &state.object, sigma)?;
                }
                sums.overlap(seen, &frames.exits, once, &rule.probe_inertia, 0)?;
            }
            if !rule.probe {
                return Ok(pass + 1);
            }
            self.begin(frames.views);
            self.add_views(operations, seen, frames, true)?;
            self.update_probes(state, sums, supports, operations)?;
            // Whatever comes next needs their transforms, and the device has work while the change is waited for.
            self.take_again(&state.probe)?;
            if pass + 1 < rule.passes && self.change(model, state, supports)? < rule.tolerance {
                return Ok(pass + 1);
            }
        }
        Ok(rule.passes)
    }
}
