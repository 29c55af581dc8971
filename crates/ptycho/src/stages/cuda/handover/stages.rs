//! Stages that sum over the views of all parts of a run.

use zellige_engine::error::Result;

use super::super::CudaStages;
use super::super::arguments::UpdateArgument;
use super::super::number::Number;
use super::super::on_demand::absent;
use super::super::stream::sums::Target;
use super::super::supports::Supports;
use crate::stages::{Likelihood, Overlap};

impl<T: Number> CudaStages<T> {
    /// The overlap loop, as `overlap.cu` makes it, or `supports.rs` where the object is smoothed or probes have a support in
    /// Fourier space; one step a launch.
    pub(in crate::stages::cuda) fn overlap_in_parts(&mut self, rule: &Overlap) -> Result<u32> {
        let apart = self.supports.as_ref().is_some_and(Supports::apart);
        let by_steps = apart || rule.limits.smooth.is_some();
        if by_steps {
            self.need_supports()?;
        }
        if apart {
            self.need_batches()?;
        }
        let support = self.supports.as_ref().filter(|_| !apart).map_or(0, Supports::real);
        let update = UpdateArgument::from(rule);
        let limit = T::from_wide(rule.tolerance) * T::from_wide(rule.tolerance) * T::from_wide(self.model.probes as f64);
        let all = self.scan.of_all(&self.state);
        let Self { cuda, model, state, frames, sums, operations, supports, handover: Some(handover), .. } = self else {
            return Err(absent());
        };
        for pass in 1..=rule.passes {
            if rule.object && (pass > 1 || rule.object_first || !rule.probe) {
                if let Some((sigma, supports)) = rule.limits.smooth.zip(supports.as_mut()) {
                    supports.smooth(model, &state.object, sigma)?;
                }
                handover.tiles(all, &frames.exits, sums, &Target::Object(update), &state.object)?;
            }
            if !rule.probe {
                return Ok(pass);
            }
            let mut steps = supports.as_mut().filter(|_| by_steps);
            if let Some(supports) = &mut steps {
                supports.keep_before(sums)?;
            }
            handover.probes(all, &frames.exits, sums)?;
            sums.update_probes(all, &frames.exits, update, &rule.probe_inertia, support)?;
            let rests = match steps {
                Some(supports) => supports.changed(model, state, sums, operations)? < rule.tolerance,
                None => handover.moved(cuda, sums)? < limit,
            };
            if rests {
                return Ok(pass);
            }
        }
        Ok(rule.passes)
    }

    /// The gradient, of which the value of every view is given.
    pub(in crate::stages::cuda) fn gradient_in_parts(&mut self, rule: &Likelihood) -> Result<Vec<f64>> {
        let (here, all) = (self.seen()?, self.scan.of_all(&self.state));
        let Self { cuda, model, slots: [Some(to), ..], frames, sums, operations, descent: Some(descent), handover: Some(handover), .. } =
            self
        else {
            return Err(absent());
        };
        frames.need_exits()?;
        let operations = operations.as_mut().filter(|_| descent.in_batches());
        let values = descent.gradient_part(here, frames, operations, rule, &(0..frames.views))?;
        if rule.object {
            handover.tiles(all, &frames.exits, sums, &Target::Gradient(&to.object), &to.object)?;
        } else {
            cuda.fill_zero(&mut to.object)?;
        }
        if rule.probe {
            handover.probes(all, &frames.exits, sums)?;
        }
        descent.probe_gradient(sums, rule, &mut to.probe)?;
        model.share.gathered(descent.values(values)?)
    }
}
