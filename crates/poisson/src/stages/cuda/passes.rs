//! The launches of the passes over the solution (solution.cu): a cycle on `u` itself, where solution and correction have one
//! precision. Between a cycle and the next `u` is ahead by a sweep: see [`super::fields::Fields`].

use zellige_engine::error::Result;

use super::bands::{OWN_TURN, bands, bands_of};
use super::data::{Data, number};
use super::parts::{EVERYWHERE, Kind};
use super::program::{OnSolution, WARPS};

impl Data {
    /// The kernels of these passes where a level has them.
    pub(super) fn on_solution(&self, level: usize) -> Option<&OnSolution> {
        let l = &self.levels[level];
        self.on_solution.as_ref().filter(|_| l.fused && l.plain() && l.f.is_some())
    }

    /// `u`, the pass's factor and the level below are a cycle's after its first sweep.
    fn mark_smoothed(&mut self, level: usize, omega: f64, moved: bool) {
        let l = &mut self.levels[level];
        (l.smoothed, l.omega) = (true, omega);
        if moved {
            (l.u_at, l.u_reach) = (1 - l.u_at, l.share.reach(0));
        }
    }

    /// The first sweep of a cycle on level `level` and `r_{l+1} = R (f - A u)`; with `norms` also those of `f - A u` before it, for
    /// which `u` may be known to be `zero`.
    pub(super) fn descend_solution(&mut self, level: usize, omega: f64, norms: bool, zero: bool) -> Result<()> {
        self.refresh(level, &[(Kind::U, EVERYWHERE), (Kind::F, EVERYWHERE)])?;
        let Some(kernels) = self.on_solution(level) else { return Ok(()) };
        let (l, c) = (&self.levels[level], &self.levels[level + 1]);
        let [x, y] = c.extent().map(|n| 2 * n);
        let (kernel, height) = match (norms, zero) {
            (false, _) => (&kernels.descend_solution, l.heights.descend_solution),
            (true, false) => (&kernels.descend_solution_norms, l.heights.descend_solution_norms),
            (true, true) => (&kernels.descend_zero_norms, l.heights.descend_zero_norms),
        };
        let (band, argument) = l.banded(y, height);
        let blocks = bands(x, band.len(), 1);
        let launch = self.overlapping(kernel.launch(blocks, 32 * WARPS)).arg(argument).arg(c.argument);
        let launch = if norms && zero { launch } else { launch.arg(l.u()) }.arg(l.f()).arg(l.other_u()).arg(c.r());
        let launch = if norms { launch.arg(self.norms_argument(band.start * blocks.0 as usize)) } else { launch };
        // SAFETY: the arguments of `descend_solution`, `descend_solution_norms` or `descend_zero_norms` in order; u is written to the copy that is not read, and
        // `partials` has one entry a block.
        unsafe { number(launch, self.inner, omega).arg(height as i32).run() }?;
        self.mark_smoothed(level, omega, true);
        if norms {
            self.pending = false;
            self.join_bands(level, [x, y], height)?;
        }
        self.restricted(level, Kind::R)
    }

    /// `u = P u_{l+1}` by cubics, and then as [`Data::descend_solution`].
    pub(super) fn interpolate_descend(&mut self, level: usize, omega: f64) -> Result<()> {
        self.refresh(level, &[(Kind::U, EVERYWHERE), (Kind::F, EVERYWHERE)])?;
        self.refresh(level + 1, &[(Kind::U, EVERYWHERE)])?;
        let Some(kernels) = self.on_solution(level) else { return Ok(()) };
        let (l, c) = (&self.levels[level], &self.levels[level + 1]);
        let ([x, y], height) = (c.extent().map(|n| 2 * n), l.heights.interpolate_descend);
        let (band, argument) = l.banded(y, height);
        let launch = kernels.interpolate_descend.launch(bands(x, band.len(), 1), 32 * WARPS);
        let launch = self.overlapping(launch).arg(argument).arg(c.argument);
        let launch = launch.arg(c.u()).arg(l.u()).arg(l.f()).arg(c.r());
        // SAFETY: the arguments of `interpolate_descend` in order; of u it reads held nodes only, which it does not change.
        unsafe { number(launch, self.inner, omega).arg(height as i32).run() }?;
        self.mark_smoothed(level, omega, false);
        let l = &mut self.levels[level];
        l.u_reach = l.share.reach(0);
        self.restricted(level, Kind::R)
    }

    /// `u += P e_{l+1}` and the last sweep of a cycle; on the finest level with the norms of the residual, which is not stored.
    pub(super) fn ascend_solution_norms(&mut self, level: usize, omega: f64) -> Result<()> {
        self.refresh(level, &[(Kind::U, EVERYWHERE), (Kind::F, EVERYWHERE)])?;
        self.refresh(level + 1, &[(Kind::E, EVERYWHERE)])?;
        let Some(kernels) = self.on_solution(level) else { return Ok(()) };
        let (l, c) = (&self.levels[level], &self.levels[level + 1]);
        let [x, y] = l.extent();
        let (kernel, height) = if level == 0 {
            (&kernels.ascend_solution_norms, l.heights.ascend_solution_norms)
        } else {
            (&kernels.ascend_solution, l.heights.ascend_solution)
        };
        let (band, argument) = l.banded(y, height);
        let blocks = bands(x, band.len(), 1);
        let launch = self.overlapping(kernel.launch(blocks, 32 * WARPS)).arg(argument).arg(c.argument);
        let launch = launch.arg(l.u()).arg(c.e()).arg(l.f()).arg(l.other_u());
        let launch = launch.arg(self.norms_argument(band.start * blocks.0 as usize));
        // SAFETY: the arguments of `ascend_solution_norms` in order; u is written to the copy that is not read, and `partials` has one entry a block.
        unsafe { number(launch, self.inner, omega).arg(height as i32).run() }?;
        let l = &mut self.levels[level];
        // Only the finest level's residual is ever expected to be that of its solution.
        (l.u_at, l.smoothed, l.stale, l.u_reach) = (1 - l.u_at, false, level == 0, l.share.reach(0));
        if level == 0 {
            self.pending = false;
            self.join_bands(level, [x, y], height)?;
        }
        Ok(())
    }

    /// The end of a cycle on the finest level, its norms, not yet joined, and the beginning of the next one.
    pub(super) fn ascend_descend(&mut self, pre: f64, post: f64) -> Result<()> {
        let Some(kernels) = self.on_solution(0) else { return Ok(()) };
        let (l, c) = (&self.levels[0], &self.levels[1]);
        let ([x, y], height) = (c.extent().map(|n| 2 * n), l.heights.ascend_descend);
        let launch = kernels.ascend_descend.launch(bands_of(OWN_TURN, x, y, height), 32 * WARPS);
        let launch = self.overlapping(launch).arg(l.argument).arg(c.argument);
        let launch = launch.arg(l.u()).arg(c.e()).arg(l.f()).arg(l.other_u()).arg(c.r()).arg(self.norms_argument(0));
        // SAFETY: the arguments of `ascend_descend` in order; u is written to the copy that is not read, and `partials` has one entry a warp.
        unsafe { number(number(launch, self.inner, pre), self.inner, post).arg(height as i32).run() }?;
        self.mark_smoothed(0, pre, true);
        self.pending = true;
        Ok(())
    }

    /// Joins the norms that [`Data::ascend_descend`] has left, if nobody has asked for them yet.
    pub(super) fn join_pending(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.pending) {
            return Ok(());
        }
        let ([x, y], height) = (self.levels[1].extent().map(|n| 2 * n), self.levels[0].heights.ascend_descend);
        self.norms(x.div_ceil(OWN_TURN) * bands_of(OWN_TURN, x, y, height).1 as usize)
    }
}
