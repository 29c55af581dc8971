//! A Chebyshev polynomial on the solution that continues from one block of sweeps to the next: it remembers the solution a sweep
//! before, and is cut into passes of some sweeps as those of other relaxations are.

use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;
use zellige_engine::real::RealScalar;

use super::field::{Field, Shape};
use super::isa::{Isa, Run};
use super::pass::{HalfSweep, Pass};
use super::residual::{cost, stencil_flops};
use super::share::Share;
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

/// The values at all nodes in C order.
pub(super) fn dense<U: RealScalar>(field: &Field<U>) -> Vec<f64> {
    let shape = field.shape;
    let mut out = Vec::with_capacity(shape.nodes());
    for slab in field.all().chunks_exact(shape.slab()) {
        for j in 0..shape.rows {
            out.extend(shape.row(slab, j)[..shape.nx].iter().map(|v| v.to_f64()));
        }
    }
    out
}

impl<U: RealScalar> Polynomial<U> {
    fn begin(shape: Shape) -> Self {
        Self { recurrence: Chebyshev::default(), previous: Field::new(shape) }
    }

    /// One of which `sweeps` sweeps are done; `previous`: the solution a sweep before.
    pub(super) fn after(sweeps: u64, ratio: f64, previous: &[f64], shape: Shape, periodic: bool, isa: Isa) -> Self {
        let mut field = Field::new(shape);
        for (slab, from) in field.all_mut().chunks_exact_mut(shape.slab()).zip(previous.chunks_exact(shape.nx * shape.rows)) {
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

    pub(super) fn previous_solution(&mut self, share: &Share) -> Result<Vec<f64>> {
        share.complete(&mut self.previous)?;
        Ok(dense(&self.previous))
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
