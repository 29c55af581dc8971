//! The residual with its norms, sweeps on the correction, and the cost of a pass.

use zellige_engine::error::Result;
use zellige_engine::real::RealScalar;
use zellige_engine::sim::Cost;

use super::coarse::remove_mean;
use super::field::{Field, Shape};
use super::level::LevelData;
use super::pass::{Correct, Pass, SlabSums};
use super::stream::Array;
use super::tables::Operator;
use super::{CpuStages, half_sweeps, sweeps_per_pass};
use crate::stages::{Norms, Smoother, Start};

/// Cost of a pass over `shape` that moves `bytes` bytes per node with `flops` operations each.
pub(super) fn cost(shape: Shape, bytes: f64, flops: f64) -> Cost {
    let items = shape.nodes() as f64;
    Cost { bytes: bytes * items, flops: flops * items, items }
}

/// Operations of a relaxation or a residual per node.
pub(super) fn stencil_flops(shape: Shape) -> f64 {
    if shape.rows > 1 { 20.0 } else { 14.0 }
}

impl<T: RealScalar, U: RealScalar> CpuStages<T, U> {
    /// Unit of the correction.
    pub(super) fn e_scale(&self) -> f64 {
        self.operator_scale / self.residual_scale
    }

    /// Sums over slabs into the norms of level 0, and the mean of `r` off on a singular problem.
    pub(super) fn finish_residual(&mut self, level: usize, mut sums: Vec<SlabSums>) -> Result<()> {
        let data = &mut self.levels[level];
        let Some(outer) = &data.outer else { return Ok(()) };
        data.share.gather_sums(&mut sums)?;
        let sums = &sums[..];
        let volume = outer.operator.volume;
        let total = |get: fn(&SlabSums) -> f64| pairwise(sums, get);
        let (mean, mut square) = (total(|s| s.r) / volume, total(|s| s.r2) / volume);
        let mut max = sums.iter().fold(0.0, |m: f64, s| m.max(s.max));
        if self.singular {
            max = remove_mean(&mut data.r, &outer.operator, &data.share, Some(mean))?.1;
            square = (square - mean * mean).max(0.0);
        }
        // A maximum does not see a value that is not a number; the sum does.
        let max = if square.is_nan() { f64::NAN } else { max };
        if level == 0 {
            let u_l2 = (total(|s| s.u2) / volume).sqrt() * self.operator_scale / self.residual_scale;
            self.norms = Norms { l2: square.sqrt() / self.residual_scale, max: max / self.residual_scale, u_l2 };
        }
        Ok(())
    }

    /// `nu` sweeps on the stored `e` of a level, from `start`.
    pub(super) fn sweep_correction(&mut self, level: usize, start: Start, nu: u32, smoother: Smoother) -> Result<()> {
        let data = &mut self.levels[level];
        let (mut current, mut left) = (start == Start::Current, nu);
        let Some(e) = &mut data.e else { return Ok(()) };
        if !current && nu == 0 {
            e.clear(data.share.own());
        }
        while left > 0 {
            let now = left.min(sweeps_per_pass(smoother));
            let mut pass = Pass::new(self.isa, data.shape, data.periodic, data.share.own(), &data.inner);
            pass.current = current;
            pass.pre = half_sweeps(smoother, now);
            data.share.copy_beside(&mut data.r, pass.halo(), data.periodic[2])?;
            if current {
                data.share.copy_beside(e, pass.halo(), data.periodic[2])?;
            }
            self.inner.stream(&self.cpu, &pass, Array::Read(&data.r), Some(Array::Write(&mut *e)), None, None);
            current = true;
            left -= now;
        }
        Ok(())
    }

    /// `r_l = f_l - A u_l`, after `u_l += e_l` if `add`, else after what `pass` does.
    pub(super) fn corrected<'a>(outer_operator: &'a Operator<U>, f: &'a Field<U>, scales: (f64, f64)) -> Correct<'a, U> {
        let (e_scale, r_scale) = scales;
        Correct {
            operator: outer_operator,
            f,
            e_scale: U::from_f64(e_scale),
            r_scale: U::from_f64(r_scale),
            u_scale: U::from_f64(1.0 / e_scale),
        }
    }

    /// Level `l` to change, and the next coarser one.
    pub(super) fn level_pair(&mut self, l: usize) -> (&mut LevelData<T, U>, Option<&mut LevelData<T, U>>) {
        let (fine, coarse) = self.levels.split_at_mut(l + 1);
        (&mut fine[l], coarse.first_mut())
    }
}

/// Sum in pairs of halves, so that the rounding does not grow with the number of slabs.
fn pairwise(sums: &[SlabSums], get: fn(&SlabSums) -> f64) -> f64 {
    match sums {
        [] => 0.0,
        [one] => get(one),
        _ => {
            let (a, b) = sums.split_at(sums.len() / 2);
            pairwise(a, get) + pairwise(b, get)
        }
    }
}
