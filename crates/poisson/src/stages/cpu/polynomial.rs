//! A Chebyshev polynomial on the solution that continues from one block of sweeps to the next: it remembers the solution a sweep
//! before, and is cut into passes of some sweeps as those of other relaxations are.

use std::ops::Range;

use zellige_engine::error::Result;
use zellige_engine::large::zeros;
use zellige_engine::parallel::{chunks_mut, each};
use zellige_engine::profile::Profiler;
use zellige_engine::real::RealScalar;

use super::field::{Field, Shape};
use super::isa::{Isa, Run};
use super::pass::{HalfSweep, Pass};
use super::residual::{cost, stencil_flops};
use super::tables::Colour;
use super::transfer_rows::Convert;
use super::{CpuStages, MAX_FUSED};
use crate::physics::Chebyshev;
use crate::stages::stage;

/// A polynomial that has begun.
pub(super) struct Polynomial<U> {
    recurrence: Chebyshev,
    /// The solution a sweep before.
    previous: Field<U>,
}

/// The next sweep of a polynomial.
pub(super) fn sweep<T: RealScalar>(recurrence: &mut Chebyshev, ratio: f64) -> HalfSweep<T> {
    let (step, momentum) = recurrence.next(2.0, ratio);
    HalfSweep { colour: Colour::All, omega: T::from_f64(step), momentum: T::from_f64(momentum) }
}

/// An array over all nodes in C order, with the values of the own slabs.
pub(super) fn dense<U: RealScalar>(field: &Field<U>, own: Range<usize>) -> Vec<f64> {
    let (shape, per_slab) = (field.shape, field.shape.nx * field.shape.rows);
    let mut out = zeros(shape.nodes());
    each(chunks_mut(&mut out[own.start * per_slab..own.end * per_slab], per_slab), |k, to| {
        for (j, to) in to.chunks_exact_mut(shape.nx).enumerate() {
            to.iter_mut().zip(shape.row(field.slab(own.start + k), j)).for_each(|(to, v)| *to = v.to_f64());
        }
    });
    out
}

impl<U: RealScalar> Polynomial<U> {
    fn begin(shape: Shape) -> Self {
        Self { recurrence: Chebyshev::default(), previous: Field::new(shape) }
    }

    /// One of which `sweeps` sweeps are done; `previous`: the solution a sweep before.
    pub(super) fn after(sweeps: u64, ratio: f64, previous: &[f64], own: Range<usize>, shape: Shape, periodic: bool, isa: Isa) -> Self {
        let (mut field, per_slab) = (Field::new(shape), shape.nx * shape.rows);
        let previous = &previous[own.start * per_slab..own.end * per_slab];
        for (slab, from) in field.slabs_mut(own).chunks_exact_mut(shape.slab()).zip(previous.chunks_exact(per_slab)) {
            for (j, from) in from.chunks_exact(shape.nx).enumerate() {
                isa.run(Convert { from, to: &mut shape.row_mut(slab, j)[..shape.nx] });
            }
            shape.fill_ghosts(slab, periodic);
        }
        Self { recurrence: Chebyshev::after(sweeps, 2.0, ratio), previous: field }
    }

    pub(super) fn restart_polynomial(&mut self) {
        self.recurrence = Chebyshev::default();
    }

    pub(super) fn previous_solution(&self, own: Range<usize>) -> Vec<f64> {
        dense(&self.previous, own)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.previous.bytes()
    }
}

impl<T: RealScalar, U: RealScalar> CpuStages<T, U> {
    /// `nu` more sweeps of the polynomial on the solution.
    pub(super) fn continue_polynomial(&mut self, nu: u32, ratio: f64, profiler: &mut Profiler) -> Result<()> {
        let (shape, sweeps) = (self.levels[0].shape, f64::from(nu));
        // Read and written: u and what it was before; and f read, each pass of eight sweeps.
        let words = 5.0 * sweeps / MAX_FUSED as f64;
        let all = cost(shape, words * size_of::<U>() as f64, (stencil_flops(shape) + 4.0) * sweeps);
        profiler.stage(stage::SWEEP, all, || {
            let data = &mut self.levels[0];
            let Some(outer) = &mut data.outer else { return Ok(()) };
            let Polynomial { recurrence, previous } = self.polynomial.get_or_insert_with(|| Polynomial::begin(shape));
            let mut left = nu as usize;
            while left > 0 {
                let mut pass = Pass::new(self.isa, data.shape, data.periodic, data.share.own(), &outer.operator);
                pass.current = true;
                pass.pre = (0..left.min(MAX_FUSED)).map(|_| sweep(recurrence, ratio)).collect();
                left -= pass.pre.len();
                for field in [&mut outer.f, &mut outer.u, &mut *previous] {
                    data.share.copy_beside(field, pass.halo(), data.periodic[2])?;
                }
                self.outer.advance_polynomial(&self.cpu, &pass, &outer.f, &mut outer.u, previous);
            }
            Ok(())
        })
    }
}
