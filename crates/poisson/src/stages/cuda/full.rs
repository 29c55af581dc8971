//! The launches of full multigrid: right-hand sides and boundary values down (full_restrict.cu), the solution up
//! (full_residual.cu, and the general kernels of transfer.cu).

use zellige_engine::error::Result;

use super::bands::{OWN_TWO, bands, bands_of};
use super::data::{Data, number};
use super::fields::blocks;
use super::parts::{EVERYWHERE, Kind, Reach};
use super::program::{NODES, WARPS};

/// Coarse slabs beside those under a part's own that cubics reach.
const CUBIC: Reach = 4;

impl Data {
    /// `u_l = P u_{l+1}` by cubics and `r_l = f_l - A u_l` in one pass.
    pub(super) fn full_residual(&mut self, level: usize) -> Result<()> {
        self.refresh(level, &[(Kind::U, EVERYWHERE), (Kind::F, EVERYWHERE)])?;
        self.refresh(level + 1, &[(Kind::U, EVERYWHERE)])?;
        let (l, c) = (&self.levels[level], &self.levels[level + 1]);
        let ([x, y], height) = (l.extent(), l.heights.interpolate);
        let (band, argument) = l.banded(y, height);
        let launch = self.overlapping(self.kernels.full_residual.launch(bands(x, band.len(), 1), 32 * WARPS));
        let launch = launch.arg(argument).arg(c.argument).arg(c.u()).arg(l.u()).arg(l.f()).arg(l.r());
        // SAFETY: the arguments of `full_residual` in order; of u the kernel reads held nodes only, which it does not change.
        unsafe { number(launch, self.outer, self.scale).arg(height as i32).run() }?;
        let l = &mut self.levels[level];
        (l.u_reach, l.r_reach) = (l.share.reach(0), l.share.reach(0));
        Ok(())
    }

    /// Returns true if two levels below `level` are made in one pass.
    pub(super) fn restricts_two(&self, level: usize) -> bool {
        let marches = |l: usize| self.levels[l].full && self.levels[l].argument.axes()[..2].iter().all(|a| a.periodic == 0);
        let divided = self.levels[level].share.divided();
        !divided && level + 2 < self.levels.len() && marches(level) && self.levels[level + 1].fused
    }

    /// `f_{l+1} = R f_l`, and `f_{l+2} = R f_{l+1}` if `two`, where [`Data::restricts_two`].
    pub(super) fn restrict_rhs(&mut self, level: usize, two: bool) -> Result<()> {
        self.refresh(level, &[(Kind::F, if self.levels[level].full { EVERYWHERE } else { 1 })])?;
        let (l, c) = (&self.levels[level], &self.levels[level + 1]);
        if two {
            let n = &self.levels[level + 2];
            let ([x, y], height) = (n.extent().map(|n| 4 * n), l.heights.restrict_two);
            let launch = self.overlapping(self.kernels.full_restrict_two.launch(bands_of(OWN_TWO, x, y, height), 32 * WARPS));
            let launch = launch.arg(l.argument).arg(c.argument).arg(n.argument).arg(l.f()).arg(c.f()).arg(n.f());
            // SAFETY: the arguments of `full_restrict_two` in order.
            return unsafe { launch.arg(height as i32).run() };
        }
        if l.full {
            let ([x, y], height) = (c.extent().map(|n| 2 * n), l.heights.restrict);
            let (band, argument) = l.banded(y, height);
            let launch = self.overlapping(self.kernels.full_restrict.launch(bands(x, band.len(), 1), 32 * WARPS));
            let launch = launch.arg(argument).arg(c.argument).arg(l.f()).arg(c.f()).arg(height as i32);
            // SAFETY: the arguments of `full_restrict` in order.
            unsafe { launch.run() }?;
        } else {
            // SAFETY: the arguments of `restrict_rhs` in order.
            unsafe { self.restricting(&self.kernels.restrict_rhs, level).arg(l.f()).arg(c.f()).run() }?;
        }
        self.restricted(level, Kind::F)
    }

    /// The boundary values of `u_{l+1}`, whose unknowns become zero if it is the `last` one.
    pub(super) fn restrict_edges(&mut self, level: usize, last: bool) -> Result<()> {
        let (l, c) = (&self.levels[level], &self.levels[level + 1]);
        let launch = if l.full && !last && !l.share.divided() {
            // Interpolation makes the unknowns.
            let [x, y, _] = c.argument.axes().map(|a| a.n as u32);
            self.overlapping(self.kernels.full_edges.launch((2 * (x + y)).div_ceil(256), 256)).arg(l.argument).arg(c.argument)
        } else {
            let argument = self.below(level);
            self.overlapping(self.kernels.inject.launch(blocks(&argument), NODES)).arg(l.argument).arg(argument)
        };
        // SAFETY: the arguments of `inject` and `full_edges` in order.
        unsafe { launch.arg(l.u()).arg(c.u()).run() }?;
        self.restricted(level, Kind::U)
    }

    /// `u = P u_{l+1}`.
    pub(super) fn interpolate(&mut self, level: usize, linear: bool) -> Result<()> {
        self.refresh(level + 1, &[(Kind::U, CUBIC)])?;
        let (l, c) = (&self.levels[level], &self.levels[level + 1]);
        let launch = self.nodes(&self.kernels.interpolate, level).arg(c.argument);
        // SAFETY: the arguments of `interpolate` in order.
        unsafe { launch.arg(c.u()).arg(l.u()).arg(i32::from(linear)).run() }?;
        let l = &mut self.levels[level];
        l.u_reach = l.share.reach(0);
        Ok(())
    }
}
