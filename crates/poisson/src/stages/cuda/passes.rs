//! The launches of the passes over the solution (solution.cu): a cycle on `u` itself, where solution and correction have one
//! precision. Between a cycle and the next `u` is ahead by a sweep: see [`super::data::Fields`].

use zellige_engine::cuda::Launch;
use zellige_engine::error::Result;

use super::bands::{OWN_TURN, bands, bands_of};
use super::data::{Data, number};
use super::program::{OnSolution, WARPS};

impl Data {
    /// The kernels of these passes where a level has them.
    pub(super) fn on_solution(&self, level: usize) -> Option<&OnSolution> {
        let l = &self.levels[level];
        self.on_solution.as_ref().filter(|_| l.fused && l.plain() && l.f.is_some())
    }

    /// `u`, the pass's factor and the level below are a cycle's after its first sweep.
    fn set_ahead(&mut self, level: usize, omega: f64, moved: bool) {
        let l = &mut self.levels[level];
        (l.ahead, l.omega) = (true, omega);
        if moved {
            l.u_at = 1 - l.u_at;
        }
    }

    /// Both levels' arguments and what lies below, `u` and `f`.
    fn levels_of<'a>(&self, launch: Launch<'a>, level: usize) -> Launch<'a> {
        self.soon(launch).plain(self.levels[level].argument).plain(self.levels[level + 1].argument)
    }

    /// The first sweep of a cycle on level `level` and `r_{l+1} = R (f - A u)`; with `norms` also those of `f - A u` before it, for
    /// which `u` may be known to be `zero`.
    pub(super) fn begin_solution(&mut self, level: usize, omega: f64, norms: bool, zero: bool) -> Result<()> {
        let Some(kernels) = self.on_solution(level) else { return Ok(()) };
        let (l, c) = (&self.levels[level], &self.levels[level + 1]);
        let [x, y] = c.extent().map(|n| 2 * n);
        let (kernel, height) = match (norms, zero) {
            (false, _) => (&kernels.begin_solution, l.heights.begin),
            (true, false) => (&kernels.begin_norms, l.heights.begin_norms),
            (true, true) => (&kernels.begin_zero, l.heights.begin_zero),
        };
        let launch = self.levels_of(kernel.launch(bands(x, y, height), 32 * WARPS), level);
        let launch = if norms && zero { launch } else { launch.arg(l.u()) }.arg(l.f()).arg(l.other_u()).arg(c.r());
        let launch = if norms { launch.plain(self.norms_argument()) } else { launch };
        // SAFETY: the arguments of `begin_solution`, `begin_norms` or `begin_zero` in order; u is written to the copy that is not read, and
        // `partials` has one entry a block.
        unsafe { number(launch, self.inner, omega).arg(height as i32).run() }?;
        self.set_ahead(level, omega, true);
        self.pending &= !norms;
        Ok(())
    }

    /// `u = P u_{l+1}` by cubics, and then as [`Data::begin_solution`].
    pub(super) fn begin_cubic(&mut self, level: usize, omega: f64) -> Result<()> {
        let Some(kernels) = self.on_solution(level) else { return Ok(()) };
        let (l, c) = (&self.levels[level], &self.levels[level + 1]);
        let ([x, y], height) = (c.extent().map(|n| 2 * n), l.heights.cubic);
        let launch = self.levels_of(kernels.begin_cubic.launch(bands(x, y, height), 32 * WARPS), level);
        let launch = launch.arg(c.u()).arg(l.u()).arg(l.f()).arg(c.r());
        // SAFETY: the arguments of `begin_cubic` in order; of u it reads held nodes only, which it does not change.
        unsafe { number(launch, self.inner, omega).arg(height as i32).run() }?;
        self.set_ahead(level, omega, false);
        Ok(())
    }

    /// `u += P e_{l+1}` and the last sweep of a cycle; on the finest level with the norms of the residual, which is not stored.
    pub(super) fn end_solution(&mut self, level: usize, omega: f64) -> Result<()> {
        let Some(kernels) = self.on_solution(level) else { return Ok(()) };
        let (l, c) = (&self.levels[level], &self.levels[level + 1]);
        let [x, y] = l.extent();
        let (kernel, height) = if level == 0 { (&kernels.end_solution, l.heights.end) } else { (&kernels.add_solution, l.heights.add) };
        let launch = self.levels_of(kernel.launch(bands(x, y, height), 32 * WARPS), level);
        let launch = launch.arg(l.u()).arg(&c.e).arg(l.f()).arg(l.other_u()).plain(self.norms_argument());
        // SAFETY: the arguments of `end_solution` in order; u is written to the copy that is not read, and `partials` has one entry a block.
        unsafe { number(launch, self.inner, omega).arg(height as i32).run() }?;
        let l = &mut self.levels[level];
        // Only the finest level's residual is ever expected to be that of its solution.
        (l.u_at, l.ahead, l.stale) = (1 - l.u_at, false, level == 0);
        self.pending &= level > 0;
        Ok(())
    }

    /// The end of a cycle on the finest level, its norms, not yet joined, and the beginning of the next one.
    pub(super) fn turn_solution(&mut self, pre: f64, post: f64) -> Result<()> {
        let Some(kernels) = self.on_solution(0) else { return Ok(()) };
        let (l, c) = (&self.levels[0], &self.levels[1]);
        let ([x, y], height) = (c.extent().map(|n| 2 * n), l.heights.turn);
        let launch = self.levels_of(kernels.turn_solution.launch(bands_of(OWN_TURN, x, y, height), 32 * WARPS), 0);
        let launch = launch.arg(l.u()).arg(&c.e).arg(l.f()).arg(l.other_u()).arg(c.r()).plain(self.norms_argument());
        // SAFETY: the arguments of `turn_solution` in order; u is written to the copy that is not read, and `partials` has one entry a warp.
        unsafe { number(number(launch, self.inner, pre), self.inner, post).arg(height as i32).run() }?;
        self.set_ahead(0, pre, true);
        self.pending = true;
        Ok(())
    }

    /// Joins the norms that [`Data::turn_solution`] has left, if nobody has asked for them yet.
    pub(super) fn join_pending(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.pending) {
            return Ok(());
        }
        let ([x, y], height) = (self.levels[1].extent().map(|n| 2 * n), self.levels[0].heights.turn);
        self.norms(x.div_ceil(OWN_TURN) * bands_of(OWN_TURN, x, y, height).1 as usize)
    }
}
