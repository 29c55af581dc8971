//! Solves on the caller's arrays, on the CPU where the direct solver works on them as they are, and in a GPU's memory.

use std::borrow::Cow;

use zellige_engine::cuda::Buffer;
use zellige_engine::device::Device;
use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;

use super::{Backend, Driver, direct_verdict, on_host, set_mean, verdict_before};
use crate::fold::{Folded, Reference, System};
use crate::grid::Grid;
use crate::operator;
use crate::problem::Problem;
use crate::status::{ConvergenceMonitor, Status};

impl Driver {
    /// Returns true if [`Driver::solve_borrowed`] gives solutions.
    pub(crate) fn can_borrow(&self) -> bool {
        matches!(&self.backend, Backend::Direct(direct) if direct.can_borrow()) && !self.choice.warm && !self.choice.truncation
    }

    /// Solves `problem` into `u` on the caller's arrays, where the method can work on them as they are and its solution is good
    /// enough; else `None`, and what `u` holds means nothing. `spare` is kept for a right-hand side that sides change.
    pub(crate) fn solve_borrowed(
        &mut self,
        problem: Problem<'_>,
        u: &mut [f64],
        spare: &mut Vec<f64>,
        profiler: &mut Profiler,
    ) -> Result<Option<Status>> {
        if !self.can_borrow() {
            return Ok(None);
        }
        let Backend::Direct(direct) = &mut self.backend else { return Ok(None) };
        let System { f, reference, imbalance, mean } = on_host(&self.device, || problem.system(u, std::mem::take(spare)))?;
        let norm_a = operator::norm_bound(&self.grid);
        let mut monitor =
            ConvergenceMonitor::new(self.choice.criteria, self.choice.expected, self.choice.precision.eps(), norm_a, reference);
        let mut status = verdict_before(&mut monitor);
        if status.is_some() {
            // Nothing to solve: zero, with the values of the sides.
            zero_unknowns(&self.grid, u);
        }
        let mut norms = if status.is_none() { direct.solve_borrowed(&f, u, profiler)? } else { None };
        while let (None, Some(found)) = (status, norms) {
            status = direct_verdict(&mut monitor, found);
            norms = if status.is_none() { direct.polish_borrowed(&f, u, profiler)? } else { None };
        }
        if let Cow::Owned(f) = f {
            *spare = f;
        }
        let good = status.filter(|s| matches!(s, Status::Converged | Status::PrecisionFloor));
        if good.is_some() {
            (self.monitor, self.status, self.truncation) = (monitor, good, None);
            (self.imbalance, self.mean) = (imbalance, mean);
            on_host(&self.device, || set_mean(&self.grid, &self.share, u, mean))?;
        }
        Ok(good)
    }

    /// Solves `A u = f` of the unknowns alone, both dense over all nodes in the memory of the driver's GPU; `u` is zero on
    /// Dirichlet nodes. `reference`, `imbalance`: of `f`.
    pub(crate) fn solve_on_gpu(
        &mut self,
        f: &Buffer<f64>,
        u: &mut Buffer<f64>,
        (reference, imbalance): (Reference, f64),
        profiler: &mut Profiler,
    ) -> Result<Status> {
        let norm_a = operator::norm_bound(&self.grid);
        self.monitor = ConvergenceMonitor::new(self.choice.criteria, self.choice.expected, self.choice.precision.eps(), norm_a, reference);
        (self.status, self.truncation) = (None, None);
        (self.imbalance, self.zero) = (imbalance, true);
        match &mut self.backend {
            Backend::Stages(stages) => stages.load_on_gpu(f, reference.max)?,
            Backend::Direct(direct) => direct.load_on_gpu(f)?,
        }
        let mut status = self.run(profiler)?;
        if let (true, Device::Cuda(cuda)) = (self.missed(), self.device.clone()) {
            // Cycles after a direct solution are rare, and take the right-hand side from the host.
            let (grid, f) = (self.grid.clone(), Cow::Owned(cuda.download(f)?));
            let u = vec![0.0; grid.len()];
            self.fall_back(Folded { grid, u, f, reference, imbalance, mean: 0.0 })?;
            status = self.run(profiler)?;
        }
        match &mut self.backend {
            Backend::Stages(stages) => stages.solution_on_gpu(u)?,
            Backend::Direct(direct) => direct.solution_on_gpu(u)?,
        }
        Ok(status)
    }
}

/// `u = 0` at the unknowns.
fn zero_unknowns(grid: &Grid, u: &mut [f64]) {
    let ([m, n, _], [x, y, z]) = (grid.nodes(), [0, 1, 2].map(|d| grid.axes[d].unknowns()));
    for (_, row) in u.chunks_mut(m).enumerate().filter(|(row, _)| y.contains(&(row % n)) && z.contains(&(row / n))) {
        row[x.clone()].fill(0.0);
    }
}
