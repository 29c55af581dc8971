//! The launches of the smoothers, and how far beside a part's own slabs they work.

use zellige_engine::error::Result;

use super::bands::bands;
use super::data::{Data, number};
use super::parts::{EVERYWHERE, Kind, Reach};
use super::program::WARPS;
use super::tables::Number;
use crate::physics::Chebyshev;
use crate::stages::Smoother;

/// Bound of the spectrum of `D^-1 A`.
pub(super) const LAMBDA: f64 = 2.0;
/// Rows beside a part's own that two sweeps in one pass read.
const SWEPT: Reach = 6;

/// A field that a smoother works on, with its right-hand side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// `A e = r`.
    Correction,
    /// `A u = f`.
    Solution,
}

/// Slabs beside the own ones on which a correction is wanted by a restriction, and a solution by its residual.
pub(super) const RESTRICTED: Reach = 2;
pub(super) const SOLVED: Reach = 1;

/// Slabs beside the own ones on which a level's correction is wanted at the end of the way up: by the finer level, or by the
/// correction of the solution.
pub(super) fn ascended(level: usize) -> Reach {
    if level == 0 { SOLVED } else { 3 }
}

/// Slabs beside the own ones on which it is made on the way down: as many as V-cycles with one sweep need on the way up.
fn descended(level: usize) -> Reach {
    ascended(level) + 2
}

impl Data {
    /// The first red-black sweep on `A e = r` from zero.
    pub(super) fn relax_zero(&mut self, level: usize, omega: f64) -> Result<()> {
        let made = descended(level);
        // Of the finest level the solution is wanted later: in one exchange.
        let more = [(Kind::R, made + 1), (Kind::U, self.levels[0].around())];
        self.refresh(level, if level == 0 { &more } else { &more[..1] })?;
        let l = &self.levels[level];
        let launch = self.nodes_with(&self.kernels.relax_zero, level, made).arg(l.r()).arg(l.e());
        // SAFETY: the arguments of `relax_zero` in order.
        unsafe { number(launch, self.inner, omega).run() }?;
        let l = &mut self.levels[level];
        l.e_reach = l.share.reach(made);
        Ok(())
    }

    /// `e = 0`.
    pub(super) fn clear(&mut self, level: usize) -> Result<()> {
        let l = &mut self.levels[level];
        l.e_reach = EVERYWHERE;
        self.cuda.fill_zero(&mut l.e.buffer)
    }

    /// `nu` sweeps by the general kernels from the stored values; the result is wanted on so many slabs beside the own ones.
    pub(super) fn smooth(&mut self, target: Target, level: usize, nu: u32, smoother: Smoother, wanted: Reach) -> Result<()> {
        self.smooth_on(target, level, nu, smoother, (wanted, &mut Chebyshev::default()))
    }

    /// Smooths as [`Data::smooth`] does, and continues a polynomial. The solution before the last sweep is then the other copy.
    pub(super) fn smooth_on(
        &mut self,
        target: Target,
        level: usize,
        nu: u32,
        smoother: Smoother,
        (wanted, recurrence): (Reach, &mut Chebyshev),
    ) -> Result<()> {
        self.swapped = false;
        for sweep in 0..nu {
            let left = wanted + 2 * (nu - 1 - sweep) as usize;
            match smoother {
                Smoother::RedBlack { omega } => {
                    let reach = self.room(target, level, left, 2)?;
                    self.relax(target, level, omega, 0, reach + 1)?;
                    self.relax(target, level, omega, 1, reach)?;
                }
                Smoother::Jacobi { omega } => {
                    let reach = self.room(target, level, wanted + (nu - 1 - sweep) as usize, 1)?;
                    self.relax(target, level, omega, 2, reach)?;
                }
                Smoother::Chebyshev { ratio } => {
                    let (step, momentum) = recurrence.next(LAMBDA, ratio);
                    // The solution before the last sweep is known on the own slabs only.
                    self.room(target, level, 0, 1)?;
                    self.momentum(target, level, step, momentum)?;
                }
            }
        }
        if std::mem::take(&mut self.swapped) {
            let l = &mut self.levels[level];
            match target {
                Target::Solution => l.u_at = 1 - l.u_at,
                Target::Correction => {
                    let bytes = l.e.buffer.len();
                    self.cuda.copy(&self.scratch, 0, &mut l.e.buffer, 0, bytes)?;
                }
            }
        }
        Ok(())
    }

    /// Slabs beside the own ones on which a sweep that takes off `taken` can be made, `wanted` at most: as many as are copied, or
    /// as are up to date.
    fn room(&mut self, target: Target, level: usize, wanted: Reach, taken: Reach) -> Result<Reach> {
        let (kind, side) = if target == Target::Correction { (Kind::E, Kind::R) } else { (Kind::U, Kind::F) };
        let l = &self.levels[level];
        if !l.share.divided() {
            return Ok(0);
        }
        let most = wanted.min(l.share.depth - taken);
        if l.reach(kind) < taken {
            self.refresh(level, &[(kind, most + taken), (side, most + taken)])?;
        }
        let to = most.min(self.levels[level].reach(kind) - taken);
        self.refresh(level, &[(side, to + taken)])?;
        Ok(to)
    }

    /// Sets what a smoother's kernel has made up to date, and swaps.
    fn smoothed(&mut self, target: Target, level: usize, beside: Reach) {
        let l = &mut self.levels[level];
        let reach = l.share.reach(beside);
        match target {
            Target::Correction => l.e_reach = reach,
            Target::Solution => l.u_reach = reach,
        }
        self.swapped = !self.swapped;
    }

    /// Field, right-hand side, the place for the result and the format.
    fn target(&self, target: Target, level: usize) -> (u64, u64, u64, Number) {
        let l = &self.levels[level];
        let (a, b, f, format) = match target {
            Target::Correction => (l.e(), self.scratch.address().wrapping_sub(l.e.skipped), l.r(), self.inner),
            Target::Solution => (l.u(), l.other_u(), l.f(), self.outer),
        };
        if self.swapped { (b, f, a, format) } else { (a, f, b, format) }
    }

    fn relax(&mut self, target: Target, level: usize, omega: f64, colour: i32, beside: Reach) -> Result<()> {
        let (v, f, out, format) = self.target(target, level);
        let kernel = if target == Target::Correction { &self.kernels.relax_e } else { &self.kernels.relax_u };
        let launch = self.nodes_with(kernel, level, beside).arg(v).arg(f).arg(out);
        // SAFETY: the arguments of `relax_e` and `relax_u` in order; the result goes to another field.
        unsafe { number(launch, format, omega).arg(colour).run() }?;
        self.smoothed(target, level, beside);
        Ok(())
    }

    fn momentum(&mut self, target: Target, level: usize, step: f64, momentum: f64) -> Result<()> {
        let (v, f, out, format) = self.target(target, level);
        let kernel = if target == Target::Correction { &self.kernels.momentum_e } else { &self.kernels.momentum_u };
        let launch = self.nodes(kernel, level).arg(v).arg(f).arg(out).arg(out);
        // SAFETY: the arguments of `momentum_e` and `momentum_u` in order; a thread reads `before` only where it writes.
        unsafe { number(number(launch, format, step), format, momentum).run() }?;
        self.smoothed(target, level, 0);
        Ok(())
    }

    /// One marching red-black sweep on `A u = f`, or two in one pass.
    pub(super) fn sweep(&mut self, level: usize, omega: f64, two: bool) -> Result<()> {
        self.refresh(level, &[(Kind::U, SWEPT), (Kind::F, SWEPT)])?;
        let l = &self.levels[level];
        let (kernel, height) = if two { (&self.kernels.two_sweeps, l.heights.two_sweeps) } else { (&self.kernels.sweep, l.heights.sweep) };
        // Bands begin on even rows, and need not be those of one part.
        let own = l.share.own();
        let rows = own.start / 2 * 2..own.end;
        let launch = self.overlapping(kernel.launch(bands(l.extent()[0], rows.len(), height), 32 * WARPS));
        let launch = launch.arg(l.over(&(rows.start as isize..rows.end as isize))).arg(l.u()).arg(l.f()).arg(l.other_u());
        // SAFETY: the arguments of `sweep` and `two_sweeps` in order; the result goes to another field.
        unsafe { number(launch, self.outer, omega).arg(height as i32).run() }?;
        let l = &mut self.levels[level];
        (l.u_at, l.smoothed, l.u_reach) = (1 - l.u_at, false, l.share.reach(0));
        Ok(())
    }
}
