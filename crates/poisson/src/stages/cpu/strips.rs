//! Many plain sweeps of a level in the plane in one pass over memory, in strips of columns that stay in cache.
//!
//! ```text
//! strip p, half-sweep s (from 0): columns  p W - 16 s  to  (p + 1) W - 16 s,  of row t - s at step t
//! ```
//!
//! A half-sweep needs its neighbours after the half-sweep before it and not yet after the next one. Rows: half-sweep s
//! is a row behind s - 1. Columns: it is a block behind, so that west of its strip all half-sweeps up to it are done by
//! the strip before, and no later one. So everything happens in place, in the array itself, with no copy of any row.

use std::ops::Range;

use zellige_engine::device::Cpu;
use zellige_engine::error::Result;
use zellige_engine::parallel::{each, owned};
use zellige_engine::real::RealScalar;

use super::band::{Band, bounds, split};
use super::field::{Field, PAD, Shape};
use super::in_place::{RelaxInPlace, UniformRows};
use super::isa::{Isa, Run, Work};
use super::pass::{HalfSweep, SlabSums};
use super::rows::Neighbours;
use super::stream::Workspace;
use super::tables::{Colour, Operator};
use super::{CpuStages, half_sweeps};
use crate::stages::Smoother;

/// Sweeps in one pass at most.
pub(super) const MOST: u32 = 10;

/// Bytes of a row within a strip: two for every half-sweep, about 200 KiB in all, stay in the second cache. Narrower strips
/// would stay in the first one, but the lookups of a row then take as long as its arithmetic.
const STRIP: usize = 4096;

/// Rows that memory is asked for before they are needed.
const AHEAD: isize = 3;

/// A pass of half-sweeps in strips, and the norms after it.
pub(super) struct Strips<'a, U> {
    pub isa: Isa,
    pub shape: Shape,
    /// Rows of this part.
    pub own: Range<usize>,
    /// Marks periodic rows.
    pub periodic: bool,
    pub operator: &'a Operator<U>,
    pub f: &'a Field<U>,
    pub sweeps: Vec<HalfSweep<U>>,
    /// Request for the norms of the residual and of the solution: their inverse units.
    pub norms: Option<[U; 2]>,
}

/// The work of one band.
struct March<'a, U> {
    pass: &'a Strips<'a, U>,
    band: Band<'a, U>,
    rows: (usize, usize),
    sums: &'a mut [SlabSums],
    zeros: &'a [U],
}

impl<U: RealScalar> Strips<'_, U> {
    /// Returns true if sweeps of one colour each on a level of `shape` can go in strips.
    pub(super) fn fit(shape: Shape, periodic: [bool; 3]) -> bool {
        shape.rows == 1 && !periodic[0] && !(periodic[2] && shape.slabs % 2 == 1)
    }

    /// Rows beyond a band that have to be known.
    fn halo(&self) -> usize {
        self.sweeps.len() + usize::from(self.norms.is_some())
    }
}

/// Asks for the cache line of `values[at]`.
#[inline(always)]
fn fetch<U>(values: &[U], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(value) = values.get(at) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every processor of the architecture has the instruction; it changes no value.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, at);
}

impl<U: RealScalar> March<'_, U> {
    /// Asks for share `s` of `stages` of what strip `p` needs of row `j`: the shifted ends of the strip would be waited for
    /// at every half-sweep.
    #[inline(always)]
    fn fetch(&self, j: isize, p: usize, s: usize, stages: usize) {
        let shape = self.pass.shape;
        if !self.band.owns(j) {
            return;
        }
        let (u, f) = (shape.row(self.band.get(j), 0), shape.row(self.pass.f.slab(j as usize), 0));
        let (line, strip) = (64 / size_of::<U>(), STRIP / size_of::<U>());
        let start = (p * strip).saturating_sub(PAD * stages) / line;
        let past = ((p + 1) * strip).min(shape.width()) / line;
        let share = past.saturating_sub(start).div_ceil(stages);
        for l in start + s * share..(start + (s + 1) * share).min(past) {
            fetch(u, l * line);
            fetch(f, l * line);
        }
    }

    /// Stage `s` (from 0; after the last half-sweep the norms) on `columns` of row `j`.
    #[inline(always)]
    fn stage(&mut self, s: usize, j: isize, columns: &Range<usize>) {
        let Strips { shape, operator, f, .. } = *self.pass;
        let k = j.rem_euclid(shape.slabs as isize) as usize;
        let sweep = self.pass.sweeps.get(s);
        let Some(step) = operator.step(sweep.map_or(Colour::All, |s| s.colour), 0, k) else { return };
        let uniform = &operator.uniform;
        if let Some(sweep) = sweep
            && columns.start >= uniform.start * PAD
            && columns.end <= uniform.end * PAD
            && let Some(lines) = self.band.around(j)
        {
            let (lower, upper) = operator.slabs[k];
            let at = columns.start;
            let rows = UniformRows {
                lines,
                stride: shape.stride,
                rhs: f.slab(k),
                weights: [operator.west[at], operator.east[at], lower, upper],
                step: &step[at..][..PAD],
                omega: sweep.omega,
            };
            return if size_of::<U>() == 4 { rows.over::<16>(columns) } else { rows.over::<8>(columns) };
        }
        let clipped_ranges = |j: isize| self.pass.periodic || (0..shape.slabs as isize).contains(&j);
        let beside = [j - 1, j + 1].map(|j| clipped_ranges(j).then_some(j));
        let (line, beside) = self.band.split_slab(j, beside);
        // Beyond the end of an axis the weight is zero.
        let row = Neighbours {
            centre: &[],
            slabs: beside.map(|row| shape.row(row.unwrap_or(self.zeros), 0)),
            slab_weights: operator.slabs[k],
            rows: [shape.row(self.zeros, 0); 2],
            row_weights: operator.rows[0],
        };
        let rhs = shape.row(f.slab(k), 0);
        match (sweep, self.pass.norms) {
            (Some(sweep), _) => RelaxInPlace::<U, false> { operator, line, row, rhs, step, omega: sweep.omega }.over(columns),
            (None, Some([r_scale, u_scale])) => {
                let inside = &operator.inside;
                let found = RelaxInPlace::<U, false> { operator, line, row, rhs, step: inside, omega: r_scale }.sums(columns, u_scale);
                let volume = operator.volumes[1][0] * operator.volumes[2][k];
                let sums = &mut self.sums[k - self.rows.0];
                sums.r2 += volume * found.r2;
                sums.u2 += volume * found.u2;
                sums.max = sums.max.max(found.max);
            }
            (None, None) => {}
        }
    }
}

impl<U: RealScalar> Work for March<'_, U> {
    type Out = ();

    #[inline(always)]
    fn run(mut self) {
        let (count, reach) = (self.pass.sweeps.len(), usize::from(self.pass.norms.is_some()));
        let (stages, width, strip) = (count + reach, self.pass.shape.width(), STRIP / size_of::<U>());
        let (first, end) = (self.rows.0 as isize, self.rows.1 as isize);
        let strips = (width + PAD * (stages - 1)).div_ceil(strip);
        for p in 0..strips {
            // Of the first stage: `halo - 1` rows beyond the band.
            for t in first - (stages - 1) as isize..end + (stages - 1) as isize {
                for s in 0..stages {
                    let (j, beyond) = (t - s as isize, (stages - 1 - s) as isize);
                    let inside = self.pass.periodic || (0..self.pass.shape.slabs as isize).contains(&j);
                    let start = (p * strip).saturating_sub(PAD * s);
                    let past = ((p + 1) * strip).saturating_sub(PAD * s).min(width);
                    self.fetch(t + AHEAD, p, s, stages);
                    if inside && (first - beyond..end + beyond).contains(&j) && start < past {
                        self.stage(s, j, &(start..past));
                    }
                }
            }
        }
    }
}

impl<R: RealScalar> Workspace<R, R> {
    /// Runs `pass` on `u`; gives the sums over rows where it makes norms.
    pub(super) fn strips(&mut self, cpu: &Cpu, pass: &Strips<'_, R>, u: &mut Field<R>) -> &[SlabSums] {
        let shape = pass.shape;
        let bounds = bounds(&pass.own, shape.nx, self.e_halos.len(), pass.halo());
        self.sums.clear();
        self.sums.resize(shape.slabs, SlabSums::default());
        self.zeros.reserve(shape.slab());
        let zeros = self.zeros.get();
        let parts = split(u, &bounds, pass.halo(), pass.periodic, &mut self.e_halos);
        let mut rest = &mut self.sums[pass.own.clone()];
        let mut bands = Vec::with_capacity(bounds.len());
        for (rows, band) in bounds.iter().zip(parts) {
            let (sums, after) = rest.split_at_mut(rows.1 - rows.0);
            rest = after;
            bands.push(March { pass, band, rows: *rows, sums, zeros });
        }
        let isa = pass.isa;
        if bands.len() == 1 {
            for band in bands {
                isa.run(band);
            }
        } else {
            cpu.install(|| each(owned(bands), |_, band| isa.run(band)));
        }
        &self.sums
    }
}

impl<T: RealScalar, U: RealScalar> CpuStages<T, U> {
    /// Returns true if sweeps on the solution of a level can go in strips.
    pub(super) fn uses_strips(&self, level: usize, smoother: Smoother) -> bool {
        matches!(smoother, Smoother::RedBlack { .. }) && Strips::<U>::fit(self.levels[level].shape, self.levels[level].periodic)
    }

    /// `nu` sweeps on the solution of a level, in passes of like length; with `norms` those of the residual of level 0.
    pub(super) fn sweep_in_strips(&mut self, level: usize, nu: u32, smoother: Smoother, norms: bool) -> Result<()> {
        let units = [self.residual_scale, 1.0 / self.e_scale()].map(U::from_f64);
        let data = &mut self.levels[level];
        let Some(outer) = &mut data.outer else { return Ok(()) };
        let mut left = nu;
        while left > 0 {
            let now = left.div_ceil(left.div_ceil(MOST));
            left -= now;
            let halo = 2 * now as usize + 1;
            data.share.copy_beside(&mut outer.f, halo, data.periodic[2])?;
            data.share.copy_beside(&mut outer.u, halo, data.periodic[2])?;
            let pass = Strips {
                isa: self.isa,
                shape: data.shape,
                own: data.share.own(),
                periodic: data.periodic[2],
                operator: &outer.operator,
                f: &outer.f,
                sweeps: half_sweeps(smoother, now),
                norms: (norms && left == 0).then_some(units),
            };
            let sums = self.outer.strips(&self.cpu, &pass, &mut outer.u);
            if pass.norms.is_some() {
                let sums = sums.to_vec();
                return self.finish_residual(level, sums);
            }
        }
        Ok(())
    }
}
