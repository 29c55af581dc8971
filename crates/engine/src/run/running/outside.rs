//! Fields and particles of a run in the memory of its GPU, and changes of its state from outside.

use super::Running;
use crate::cuda::Cuda;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::notice;
use crate::ops::plane::FieldCopier;
use crate::record::{FieldOnGpu, TableOnGpu, ValuesOnGpu};
use crate::run::state::PendingResults;
use crate::sim::Solver;

impl<S: Solver> Running<S> {
    /// A copy of a field in the memory of the run's GPU ([`Solver::field_on_gpu`]), ready for any stream.
    ///
    /// # Errors
    /// The run computes on the CPU or in several parts; those of the solver.
    pub fn field_on_gpu(&mut self, name: &str) -> Result<FieldOnGpu> {
        self.on_gpu(name, |solver, copier| solver.field_on_gpu(name, copier))
    }

    /// Copies of particles likewise ([`Solver::particles_on_gpu`]).
    pub fn particles_on_gpu(&mut self, species: &str) -> Result<Option<TableOnGpu>> {
        self.on_gpu(species, |solver, copier| solver.particles_on_gpu(species, copier))
    }

    /// The GPU that the run computes on.
    pub fn gpu(&self) -> Option<&Cuda> {
        match &self.device {
            Device::Cuda(cuda) => Some(cuda),
            Device::Cpu(_) => None,
        }
    }

    /// Has something of the solver in the memory of its GPU, once it is there.
    fn on_gpu<R>(&mut self, name: &str, work: impl FnOnce(&mut S, &FieldCopier) -> Result<R>) -> Result<R> {
        let refused = |message: &str, hint: &str| {
            let message = format!("`{name}` is no array on a GPU: {message}");
            Err(Error::Device { device: self.device.name().to_owned(), message, hint: Some(hint.to_owned()) })
        };
        let Device::Cuda(cuda) = &self.device else {
            return refused("the run computes on the CPU", "take and give it in host memory, or make the run with `device=\"cuda\"`");
        };
        if !self.links.is_alone() {
            return refused("each part of the run has a share of it", "take and give it in host memory, or leave `--parts` out");
        }
        let copier = match &mut self.copier {
            Some(copier) => copier,
            none => none.insert(FieldCopier::new(cuda)?),
        };
        let found = work(&mut self.solver, copier);
        // Also where it failed: the caller's arrays are not read any more.
        cuda.synchronize()?;
        found
    }

    /// Changes the state between two steps, which the summary tells.
    pub fn change(&mut self, change: impl FnOnce(&mut S) -> Result<()>) -> Result<()> {
        change(&mut self.solver)?;
        self.changed();
        Ok(())
    }

    /// Sets a field from values in the memory of the run's GPU ([`Solver::set_field_on_gpu`]), which are not read afterwards.
    ///
    /// # Errors
    /// As [`Running::field_on_gpu`].
    pub fn set_field_on_gpu(&mut self, name: &str, shape: &[usize], values: &ValuesOnGpu) -> Result<()> {
        self.on_gpu(name, |solver, copier| solver.set_field_on_gpu(name, shape, values, copier))?;
        self.changed();
        Ok(())
    }

    /// Sets columns of particles likewise ([`Solver::set_particles_on_gpu`]).
    ///
    /// # Errors
    /// As [`Running::field_on_gpu`].
    pub fn set_particles_on_gpu(&mut self, species: &str, columns: &[(String, ValuesOnGpu)]) -> Result<()> {
        self.on_gpu(species, |solver, copier| solver.set_particles_on_gpu(species, columns, copier))?;
        self.changed();
        Ok(())
    }

    /// Takes note of a change from outside, which may have mended what had broken down.
    fn changed(&mut self) {
        self.broken = None;
        let step = self.solver.clock().step;
        if matches!(self.pending, PendingResults::Results) {
            self.pending = PendingResults::Nothing;
            notice::tell(&format!("results after {} {step}, which were not written yet, are left out: the state was changed", S::STEP));
        }
        if self.changed_after.last() != Some(&step) {
            self.changed_after.push(step);
        }
    }
}
