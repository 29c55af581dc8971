//! The solution of a driver, and what else of its state is taken from it or given back.

use zellige_engine::cuda::{Buffer, Coming, Cuda};
use zellige_engine::error::Result;
use zellige_engine::parallel::{each, items_mut};

use super::{Backend, Driver, on_host};
use crate::grid::Grid;
use crate::method::Scheme;
use crate::on_gpu;
use crate::stages::{HostShare, Smoother, StoredResidual};

/// Gives the solution of a singular problem the mean asked for; any other stays as it is.
pub(crate) fn set_mean(grid: &Grid, share: &HostShare, u: &mut [f64], mean: f64) -> Result<()> {
    if grid.singular() {
        let (shift, own) = (mean - share.mean(grid, u)?, share.own(u.len()));
        each(items_mut(&mut u[own]), |_, v| *v += shift);
    }
    Ok(())
}

impl Driver {
    /// State besides the solution that cycles on this device continue from, that of this part's slabs.
    pub fn stored_residual(&mut self) -> Result<Option<StoredResidual>> {
        match &mut self.backend {
            Backend::Stages(stages) if matches!(self.choice.scheme, Scheme::Cycles { .. }) => stages.stored_residual(),
            _ => Ok(None),
        }
    }

    /// A Chebyshev polynomial that has begun continues with this: the solution a sweep before, as [`Driver::state`] gives it.
    pub fn previous_solution(&mut self) -> Result<Option<Vec<f64>>> {
        match &mut self.backend {
            Backend::Stages(stages) => stages.previous_solution(),
            Backend::Direct(_) => Ok(None),
        }
    }

    /// Continues, after [`Driver::resume`], the polynomial of the steps that were done.
    pub fn resume_polynomial(&mut self, previous: &[f64]) -> Result<()> {
        let steps = self.own_steps() as u64;
        match (&mut self.backend, self.choice.scheme) {
            (Backend::Stages(stages), Scheme::Sweeps { smoother: Smoother::Chebyshev { ratio }, block, pieces, .. }) => {
                stages.resume_polynomial(steps % u64::from(pieces) * u64::from(block), ratio, previous)
            }
            _ => Ok(()),
        }
    }

    /// Slabs of the grid that this part of a run has on its host.
    pub fn share(&self) -> &HostShare {
        &self.share
    }

    /// The solution as the device holds it: an array over all nodes, with values on this part's slabs.
    pub fn state(&mut self) -> Result<Vec<f64>> {
        match &mut self.backend {
            Backend::Stages(stages) => stages.solution(),
            Backend::Direct(direct) => direct.solution(),
        }
    }

    /// The solution, as [`Driver::state`] gives it; a singular problem's has the mean asked for.
    pub fn solution(&mut self) -> Result<Vec<f64>> {
        let mut u = self.state()?;
        let (grid, share, mean) = (&self.grid, &self.share, self.mean);
        on_host(&self.device, || set_mean(grid, share, &mut u, mean))?;
        Ok(u)
    }

    /// [`Driver::solution`] as a copy in the memory of the GPU that it lies on; a mean is set to rounding.
    pub(crate) fn solution_on_gpu(&mut self, cuda: &Cuda) -> Result<Buffer<f64>> {
        let mut u = cuda.alloc_zeros(self.grid.len(), "a copy of the solution")?;
        match &mut self.backend {
            Backend::Stages(stages) => stages.solution_on_gpu(&mut u)?,
            Backend::Direct(direct) => direct.solution_on_gpu(&mut u)?,
        }
        if self.grid.singular() {
            on_gpu::set_mean(&self.grid, &u, self.mean, cuda)?;
        }
        Ok(u)
    }

    /// Pixels of the solution over a grid of so many axes, as [`Stages::picture`] gives them. `None` too where a mean is asked for,
    /// of which all nodes are a part.
    pub(crate) fn picture(&mut self, dimensions: usize, double_in_record: bool) -> Result<Option<Vec<Coming<f32>>>> {
        if self.grid.singular() || dimensions < 2 {
            return Ok(None);
        }
        match &mut self.backend {
            Backend::Stages(stages) => stages.picture(dimensions, double_in_record),
            Backend::Direct(direct) => direct.picture(dimensions, double_in_record),
        }
    }
}
