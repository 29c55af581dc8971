//! The stages of the cycle as passes.

use zellige_engine::error::{Error, Result};
use zellige_engine::parallel::{chunks, chunks_mut, each_with, map};
use zellige_engine::profile::Profiler;
use zellige_engine::real::RealScalar;
use zellige_engine::signal;

use super::coarse::{CoarseSolver, apply_inverse, remove_mean};
use super::full::{Rows, boundary_values, interpolate_slab};
use super::isa::Run;
use super::level::{LevelData, Outer};
use super::pass::Pass;
use super::polynomial::{Polynomial, dense};
use super::residual::{cost, stencil_flops};
use super::stream::Array;
use super::transfer_rows::Convert;
use super::{CpuStages, half_sweeps, power_of_two, sweeps_per_pass};
use crate::grid::Axis;
use crate::smoothing::{self, Smoothing};
use crate::stages::{HostShare, Norms, Smoother, Stages, Start, stage};

/// Coarse slabs beside a part's own that a cubic reaches.
const CUBIC: usize = 3;

impl<T: RealScalar, U: RealScalar> Stages for CpuStages<T, U> {
    fn levels(&self) -> usize {
        self.levels.len()
    }

    fn host_share(&self) -> HostShare {
        self.levels[0].share.on_host(self.levels[0].periodic[2])
    }

    fn smoothing(&self, level: usize) -> Smoothing {
        smoothing::of(&self.setup.levels, level)
    }

    fn load(&mut self, u: &[f64], f: &[f64]) -> Result<()> {
        let data = &mut self.levels[0];
        let (shape, isa) = (data.shape, self.isa);
        let Some(outer) = &mut data.outer else { return Ok(()) };
        let per_slab = shape.nx * shape.rows;
        let (x, periodic) = (data.grid.axes[0].unknowns(), data.periodic[0]);
        let Outer { operator, u: own_u, f: own_f, .. } = outer;
        let slab = |k: usize, [u, f]: [&[f64]; 2], [to_u, to_f]: [&mut [U]; 2]| {
            let mut largest = (0.0_f64, 0.0_f64);
            for j in 0..shape.rows {
                let row = j * shape.nx..(j + 1) * shape.nx;
                let to = &mut shape.row_mut(to_u, j)[..shape.nx];
                largest.1 = largest.1.max(isa.run(Convert { from: &u[row.clone()], to }));
                if operator.has_unknowns(j, k) {
                    let to = &mut shape.row_mut(to_f, j)[x.clone()];
                    largest.0 = largest.0.max(isa.run(Convert { from: &f[row][x.clone()], to }));
                }
            }
            shape.fill_ghosts(to_u, periodic);
            largest
        };
        let own = data.share.own();
        let nodes = own.start * per_slab..own.end * per_slab;
        let (from_u, from_f) = (chunks(&u[nodes.clone()], per_slab), chunks(&f[nodes], per_slab));
        (own_u.beside, own_f.beside) = (0, 0);
        let (to_u, to_f) = (chunks_mut(own_u.slabs_mut(own.clone()), shape.slab()), chunks_mut(own_f.slabs_mut(own.clone()), shape.slab()));
        let larger = |a: (f64, f64), b: (f64, f64)| (a.0.max(b.0), a.1.max(b.1));
        let first = own.start;
        let of_slabs =
            self.cpu.install(|| map((from_u, from_f, to_u, to_f), |k, (u, f, to_u, to_f)| slab(first + k, [u, f], [to_u, to_f])));
        let (largest_f, largest_u) = of_slabs.into_iter().fold((0.0, 0.0), larger);
        let (largest_f, largest_u) = (data.share.max(largest_f)?, data.share.max(largest_u)?);
        if size_of::<U>() == 4 {
            // As in the residual: numbers below the normal ones are slow, and these are far below rounding.
            let negligible = U::from_f64(1e-30 * largest_f);
            own_f.slabs_mut(own).iter_mut().filter(|f| f.abs() < negligible).for_each(|f| *f = U::ZERO);
        }
        let weights: f64 = data.grid.axes.iter().filter(|a| !a.is_flat()).map(|a| 2.0 / (a.h * a.h)).sum();
        // The residual is at most that large; from zero it is f.
        self.residual_scale = 1.0 / power_of_two(largest_f + 2.0 * weights * largest_u);
        self.removed_mean = if self.singular { remove_mean(&mut outer.f, &outer.operator, &data.share, None)?.0 } else { 0.0 };
        self.restart_polynomial();
        Ok(())
    }

    fn solution(&mut self) -> Result<Vec<f64>> {
        let data = &self.levels[0];
        Ok(data.outer.as_ref().map_or_else(Vec::new, |outer| self.cpu.install(|| dense(&outer.u, data.share.own()))))
    }

    fn previous_solution(&mut self) -> Result<Option<Vec<f64>>> {
        let own = self.levels[0].share.own();
        Ok(self.polynomial.as_ref().map(|polynomial| self.cpu.install(|| polynomial.previous_solution(own))))
    }

    fn allow_interrupt(&mut self, allowed: bool) {
        // Parts have to decide alike: the run loop stops them between steps.
        self.gives_way = allowed && self.levels[0].share.is_alone();
    }

    fn restart_polynomial(&mut self) {
        self.polynomial.iter_mut().for_each(Polynomial::restart_polynomial);
    }

    fn resume_polynomial(&mut self, sweeps: u64, ratio: f64, previous: &[f64]) -> Result<()> {
        let (shape, periodic) = (self.levels[0].shape, self.levels[0].periodic[0]);
        let own = self.levels[0].share.own();
        self.polynomial = Some(Polynomial::after(sweeps, ratio, previous, own, shape, periodic, self.isa));
        Ok(())
    }

    fn residual(&mut self, level: usize, profiler: &mut Profiler) -> Result<()> {
        self.ensure_outer(level);
        let shape = self.levels[level].shape;
        let bytes = (2 * size_of::<U>() + size_of::<T>()) as f64;
        profiler.stage(stage::RESIDUAL, cost(shape, bytes, stencil_flops(shape)), || {
            let scales = (self.e_scale(), self.residual_scale);
            let data = &mut self.levels[level];
            let Some(outer) = &mut data.outer else { return Ok(()) };
            data.share.copy_beside(&mut outer.u, 1, data.periodic[2])?;
            let mut pass = Pass::new(self.isa, data.shape, data.periodic, data.share.own(), &data.inner);
            pass.correct = Some(Self::corrected(&outer.operator, &outer.f, scales));
            let sums = self.inner.residual(&self.cpu, &pass, &outer.u, &mut data.r).to_vec();
            self.finish_residual(level, sums)
        })
    }

    fn descend(&mut self, level: usize, start: Start, nu: u32, smoother: Smoother, profiler: &mut Profiler) -> Result<()> {
        let shape = self.levels[level].shape;
        let stored = start == Start::Current;
        let words = 1.25 + f64::from(u8::from(stored));
        let flops = stencil_flops(shape) * f64::from(2 * nu + 1) + 6.0;
        let separate = nu > sweeps_per_pass(smoother);
        if separate || stored {
            self.ensure_correction(level);
        }
        profiler.stage(stage::DESCEND, cost(shape, words * size_of::<T>() as f64, flops), || {
            if separate {
                self.sweep_correction(level, start, nu, smoother)?;
            }
            let (isa, cpu) = (self.isa, self.cpu.clone());
            let (fine, coarse) = self.levels.split_at_mut(level + 1);
            let (Some(data), Some(coarse)) = (fine.last_mut(), coarse.first_mut()) else { return Ok(()) };
            data.smoothed = separate;
            let Some(transfer) = &data.transfer else { return Ok(()) };
            let mut pass = Pass::new(isa, data.shape, data.periodic, data.share.own(), &data.inner);
            pass.current = stored || separate;
            pass.pre = if separate { Vec::new() } else { half_sweeps(smoother, nu) };
            pass.restrict = Some((transfer, coarse.shape));
            data.share.copy_beside(&mut data.r, pass.halo(), data.periodic[2])?;
            if let Some(e) = data.e.as_mut().filter(|_| pass.current) {
                data.share.copy_beside(e, pass.halo(), data.periodic[2])?;
            }
            let e = data.e.as_ref().filter(|_| pass.current).map(Array::Read);
            self.inner.stream(&cpu, &pass, Array::Read(&data.r), e, None, Some(&mut coarse.r));
            data.share.complete_below(&coarse.share, &transfer[2], &mut coarse.r)
        })
    }

    fn coarse_solve(&mut self, profiler: &mut Profiler) -> Result<()> {
        let level = self.levels.len() - 1;
        self.ensure_correction(level);
        let shape = self.levels[level].shape;
        let (singular, gives_way) = (self.singular, self.gives_way);
        let mut given = None;
        profiler.stage(stage::COARSE_SOLVE, cost(shape, 2.0 * size_of::<T>() as f64, 0.0), || {
            if let CoarseSolver::Direct { inverse, nodes, rhs } = &mut self.solver {
                let data = &mut self.levels[level];
                if let Some(e) = &mut data.e {
                    apply_inverse(inverse, nodes, rhs, singular, &data.r, e);
                    let (slab, periodic) = (shape.slab(), data.periodic[0]);
                    e.all_mut().chunks_exact_mut(slab).for_each(|slab| shape.fill_ghosts(slab, periodic));
                }
                return Ok(());
            }
            let CoarseSolver::Sor { omega, sweeps } = self.solver else { return Ok(()) };
            if singular {
                let data = &mut self.levels[level];
                remove_mean(&mut data.r, &data.inner, &data.share, None)?;
            }
            let smoother = Smoother::RedBlack { omega };
            let mut start = Start::Zero;
            // Thousands of sweeps on a large level.
            for done in (0..sweeps).step_by(sweeps_per_pass(smoother) as usize) {
                given = signal::stop_reason().filter(|_| gives_way);
                if given.is_some() {
                    return Ok(());
                }
                self.sweep_correction(level, start, sweeps_per_pass(smoother).min(sweeps - done), smoother)?;
                start = Start::Current;
            }
            let data = &mut self.levels[level];
            if let Some(e) = data.e.as_mut().filter(|_| singular) {
                remove_mean(e, &data.inner, &data.share, None)?;
                let (slab, periodic) = (shape.slab(), data.periodic[0]);
                e.slabs_mut(data.share.own()).chunks_exact_mut(slab).for_each(|slab| shape.fill_ghosts(slab, periodic));
            }
            Ok(())
        })?;
        given.map_or(Ok(()), |reason| Err(Error::Interrupted { reason, step: 0, checkpoint: None }))
    }

    fn ascend(&mut self, level: usize, start: Start, pre: u32, nu: u32, smoother: Smoother, profiler: &mut Profiler) -> Result<()> {
        self.ensure_correction(level);
        let shape = self.levels[level].shape;
        let flops = stencil_flops(shape) * f64::from(2 * (pre + nu)) + 4.0;
        profiler.stage(stage::ASCEND, cost(shape, 2.25 * size_of::<T>() as f64, flops), || {
            let fused = nu.min(sweeps_per_pass(smoother));
            let (isa, cpu) = (self.isa, self.cpu.clone());
            let (fine, coarse) = self.levels.split_at_mut(level + 1);
            let (Some(data), Some(coarse)) = (fine.last_mut(), coarse.first_mut()) else { return Ok(()) };
            let mut pass = Pass::new(isa, data.shape, data.periodic, data.share.own(), &data.inner);
            pass.current = data.smoothed || start == Start::Current;
            pass.pre = if data.smoothed { Vec::new() } else { half_sweeps(smoother, pre) };
            pass.post = half_sweeps(smoother, fused);
            coarse.copy_correction(pass.halo() + 1)?;
            pass.prolong = coarse.e.as_ref().zip(data.transfer.as_ref());
            data.share.copy_beside(&mut data.r, pass.halo() + 1, data.periodic[2])?;
            if let Some(e) = data.e.as_mut().filter(|_| pass.current) {
                data.share.copy_beside(e, pass.halo() + 1, data.periodic[2])?;
            }
            let e = data.e.as_mut().map(Array::Write);
            self.inner.stream(&cpu, &pass, Array::Read(&data.r), e, None, None);
            self.sweep_correction(level, Start::Current, nu - fused, smoother)
        })
    }

    fn correct(&mut self, level: usize, profiler: &mut Profiler) -> Result<()> {
        self.ensure_outer(level);
        let shape = self.levels[level].shape;
        let bytes = (3 * size_of::<U>() + 2 * size_of::<T>()) as f64;
        profiler.stage(stage::CORRECT, cost(shape, bytes, stencil_flops(shape) + 2.0), || {
            let scales = (self.e_scale(), self.residual_scale);
            let data = &mut self.levels[level];
            let Some(outer) = &mut data.outer else { return Ok(()) };
            let mut pass = Pass::new(self.isa, data.shape, data.periodic, data.share.own(), &data.inner);
            pass.current = true;
            pass.correct = Some(Self::corrected(&outer.operator, &outer.f, scales));
            data.share.copy_beside(&mut data.r, pass.halo(), data.periodic[2])?;
            data.share.copy_beside(&mut outer.u, 1, data.periodic[2])?;
            if let Some(e) = &mut data.e {
                data.share.copy_beside(e, pass.halo(), data.periodic[2])?;
            }
            let e = data.e.as_ref().map(Array::Read);
            let sums = self.inner.stream(&self.cpu, &pass, Array::Write(&mut data.r), e, Some(&mut outer.u), None).to_vec();
            self.finish_residual(level, sums)
        })
    }

    fn ascend_correct(&mut self, pre: u32, nu: u32, smoother: Smoother, profiler: &mut Profiler) -> Result<()> {
        if pre + nu > sweeps_per_pass(smoother) || self.levels[0].smoothed || self.levels.len() == 1 {
            self.ascend(0, Start::Zero, pre, nu, smoother, profiler)?;
            return self.correct(0, profiler);
        }
        let shape = self.levels[0].shape;
        let bytes = 3.0 * size_of::<U>() as f64 + 2.25 * size_of::<T>() as f64;
        let flops = stencil_flops(shape) * f64::from(2 * (pre + nu) + 1) + 6.0;
        profiler.stage(stage::CORRECT, cost(shape, bytes, flops), || {
            let scales = (self.e_scale(), self.residual_scale);
            let (isa, cpu) = (self.isa, self.cpu.clone());
            let (data, coarse) = self.levels.split_at_mut(1);
            let (data, coarse) = (&mut data[0], &mut coarse[0]);
            let Some(outer) = &mut data.outer else { return Ok(()) };
            let mut pass = Pass::new(isa, data.shape, data.periodic, data.share.own(), &data.inner);
            pass.pre = half_sweeps(smoother, pre);
            pass.post = half_sweeps(smoother, nu);
            pass.correct = Some(Self::corrected(&outer.operator, &outer.f, scales));
            coarse.copy_correction(pass.halo() + 1)?;
            pass.prolong = coarse.e.as_ref().zip(data.transfer.as_ref());
            data.share.copy_beside(&mut data.r, pass.halo(), data.periodic[2])?;
            data.share.copy_beside(&mut outer.u, 1, data.periodic[2])?;
            let sums = self.inner.stream(&cpu, &pass, Array::Write(&mut data.r), None, Some(&mut outer.u), None).to_vec();
            self.finish_residual(0, sums)
        })
    }

    fn residual_as_corrected(&mut self, ascends: Option<(u32, u32, Smoother)>, profiler: &mut Profiler) -> Result<()> {
        if !self.singular {
            return self.residual(0, profiler);
        }
        // The mean that is taken off comes from sums, which each pass makes in its own order: the end of a cycle whose correction is zero.
        if let Some((pre, nu, smoother)) = ascends.filter(|(pre, nu, smoother)| pre + nu <= sweeps_per_pass(*smoother)) {
            self.ensure_correction(1);
            let [own, below] = [0, 1].map(|level| self.levels[level].share.own());
            self.levels[0].r.clear(own);
            self.levels[1].e.iter_mut().for_each(|e| e.clear(below.clone()));
            return self.ascend_correct(pre, nu, smoother, profiler);
        }
        self.ensure_correction(0);
        let own = self.levels[0].share.own();
        self.levels[0].e.iter_mut().for_each(|e| e.clear(own.clone()));
        self.correct(0, profiler)
    }

    fn sweep(&mut self, level: usize, nu: u32, smoother: Smoother, profiler: &mut Profiler) -> Result<()> {
        self.ensure_outer(level);
        let shape = self.levels[level].shape;
        let sweeps = f64::from(nu);
        let all = cost(shape, 3.0 * size_of::<U>() as f64 * sweeps, 2.0 * stencil_flops(shape) * sweeps);
        profiler.stage(stage::SWEEP, all, || {
            if self.uses_strips(level, smoother) {
                return self.sweep_in_strips(level, nu, smoother, false);
            }
            let data = &mut self.levels[level];
            let Some(outer) = &mut data.outer else { return Ok(()) };
            let mut left = nu;
            while left > 0 {
                let now = left.min(sweeps_per_pass(smoother));
                let mut pass = Pass::new(self.isa, data.shape, data.periodic, data.share.own(), &outer.operator);
                pass.current = true;
                pass.pre = half_sweeps(smoother, now);
                for field in [&mut outer.f, &mut outer.u] {
                    data.share.copy_beside(field, pass.halo(), data.periodic[2])?;
                }
                let (f, u) = (Array::Read(&outer.f), Some(Array::Write(&mut outer.u)));
                self.outer.stream(&self.cpu, &pass, f, u, None, None);
                left -= now;
            }
            Ok(())
        })
    }

    fn sweep_norms(&mut self, nu: u32, smoother: Smoother, profiler: &mut Profiler) -> Result<()> {
        if let Smoother::Chebyshev { ratio } = smoother {
            self.continue_polynomial(nu, ratio, profiler)?;
            return self.residual(0, profiler);
        }
        // The mean of a singular problem's residual has to be taken off before its largest value is known.
        if self.singular || nu == 0 || !self.uses_strips(0, smoother) {
            self.sweep(0, nu, smoother, profiler)?;
            return self.residual(0, profiler);
        }
        let (shape, sweeps) = (self.levels[0].shape, f64::from(nu));
        let all = cost(shape, 3.0 * size_of::<U>() as f64 * sweeps, stencil_flops(shape) * (2.0 * sweeps + 1.0) + 6.0);
        profiler.stage(stage::SWEEP, all, || self.sweep_in_strips(0, nu, smoother, true))
    }

    fn restrict_rhs(&mut self, profiler: &mut Profiler) -> Result<()> {
        for level in 0..self.levels.len() - 1 {
            self.ensure_outer(level + 1);
            let shape = self.levels[level].shape;
            profiler.stage(stage::DESCEND, cost(shape, 1.25 * size_of::<U>() as f64, 6.0), || {
                let (isa, cpu) = (self.isa, self.cpu.clone());
                let (fine, coarse) = self.levels.split_at_mut(level + 1);
                let (Some(data), Some(coarse)) = (fine.last_mut(), coarse.first_mut()) else { return Ok(()) };
                let (Some(outer), Some(below)) = (&mut data.outer, &mut coarse.outer) else { return Ok(()) };
                let Some(transfer) = &outer.transfer else { return Ok(()) };
                let mut pass = Pass::new(isa, data.shape, data.periodic, data.share.own(), &outer.operator);
                pass.restrict = Some((transfer, coarse.shape));
                data.share.copy_beside(&mut outer.f, pass.halo(), data.periodic[2])?;
                self.outer.stream(&cpu, &pass, Array::Read(&outer.f), None, None, Some(&mut below.f));
                data.share.complete_below(&coarse.share, &transfer[2], &mut below.f)?;
                // On the share of the finer level, whose boundary values are there.
                let own = data.share.on_level_below(&coarse.share, &transfer[2]);
                boundary_values(&outer.u, transfer, &below.operator, &coarse.grid, own, &mut below.u);
                data.share.complete_below(&coarse.share, &transfer[2], &mut below.u)?;
                let (shape, periodic) = (coarse.shape, coarse.periodic[0]);
                below.u.slabs_mut(coarse.share.own()).chunks_exact_mut(shape.slab()).for_each(|slab| shape.fill_ghosts(slab, periodic));
                Ok(())
            })?;
        }
        Ok(())
    }

    fn interpolate(&mut self, level: usize, order: u32, profiler: &mut Profiler) -> Result<()> {
        self.ensure_outer(level);
        self.ensure_outer(level + 1);
        let shape = self.levels[level].shape;
        profiler.stage(stage::INTERPOLATE, cost(shape, 1.25 * size_of::<U>() as f64, 10.0), || {
            let (isa, cpu) = (self.isa, self.cpu.clone());
            let (data, coarse) = self.level_pair(level);
            let Some(coarse) = coarse else { return Ok(()) };
            let (Some(outer), Some(below)) = (&mut data.outer, &mut coarse.outer) else { return Ok(()) };
            let tables = if order >= 3 { &outer.cubic } else { &outer.linear };
            let Some(tables) = tables else { return Ok(()) };
            coarse.share.copy_beside(&mut below.u, CUBIC, coarse.periodic[2])?;
            let (below, own) = (&*below, data.share.own());
            outer.u.beside = 0;
            let [x, rows, slabs] = data.grid.axes.each_ref().map(Axis::unknowns);
            let periodic = data.periodic[0];
            cpu.install(|| {
                each_with(
                    || Rows::new(shape, below.u.shape),
                    chunks_mut(outer.u.slabs_mut(own.clone()), shape.slab()),
                    |scratch, k, u| {
                        let k = own.start + k;
                        if slabs.contains(&k) {
                            interpolate_slab(isa, tables, &below.u, shape, [&x, &rows], k, scratch, u);
                            shape.fill_ghosts(u, periodic);
                        }
                    },
                );
            });
            Ok(())
        })
    }

    fn coarse_solution(&mut self, profiler: &mut Profiler) -> Result<()> {
        let level = self.levels.len() - 1;
        self.ensure_outer(level);
        let data = &mut self.levels[level];
        let (shape, axes) = (data.shape, data.grid.axes.each_ref().map(Axis::unknowns));
        if let Some(outer) = &mut data.outer {
            let [x, rows, slabs] = axes;
            let own = data.share.own();
            outer.u.beside = 0;
            for k in slabs.filter(|k| own.contains(k)) {
                for j in rows.clone() {
                    let at = k * shape.slab()..(k + 1) * shape.slab();
                    shape.row_mut(&mut outer.u.all_mut()[at], j)[x.clone()].fill(U::ZERO);
                }
            }
        }
        self.residual(level, profiler)?;
        self.coarse_solve(profiler)?;
        self.correct(level, profiler)
    }

    fn norms(&mut self) -> Result<Norms> {
        Ok(self.norms)
    }

    fn removed_mean(&self) -> f64 {
        self.removed_mean
    }

    fn memory(&self) -> u64 {
        let previous = self.polynomial.as_ref().map_or(0, Polynomial::bytes);
        self.levels.iter().map(LevelData::bytes).sum::<u64>() + self.inner.bytes() + self.outer.bytes() + self.solver.bytes() + previous
    }

    fn replay(
        &mut self,
        _key: &str,
        profiler: &mut Profiler,
        body: &mut dyn FnMut(&mut dyn Stages, &mut Profiler) -> Result<()>,
    ) -> Result<()> {
        body(self, profiler)
    }
}
