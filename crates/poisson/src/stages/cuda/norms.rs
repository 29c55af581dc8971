//! The launches of residuals and of sums over the nodes: each of the same blocks however a level is divided.

use zellige_engine::cuda::Argument as _;
use zellige_engine::error::Result;

use super::arguments;
use super::bands::bands;
use super::data::{Data, number};
use super::fields::sums;
use super::parts::Kind;
use super::program::{NODES, WARPS};

impl Data {
    /// Location where a pass leaves its norms, from partial result `first` on.
    pub(super) fn norms_argument(&self, first: usize) -> arguments::Norms {
        let [partials, totals, arrived] = [self.partials.address(), self.totals.address(), self.arrived.address()];
        let arrived = if self.in_parts() { 0 } else { arrived };
        arguments::Norms { partials: partials + 32 * first as u64, totals, host: self.host.value(), arrived }
    }

    /// Joins the norms of a pass over a level in bands of `height` rows of columns and rows, where a part has made some of them.
    pub(super) fn join_bands(&self, level: usize, [x, y]: [usize; 2], height: usize) -> Result<()> {
        if !self.in_parts() {
            return Ok(());
        }
        let (each, count) = bands(x, y, height);
        self.complete_partials(level, y, height, each as usize)?;
        let launch = self.overlapping(self.kernels.join_bands.launch(1, 32 * WARPS));
        // SAFETY: the arguments of `join_bands` in order; the parts have written that many entries.
        unsafe { launch.arg(self.norms_argument(0)).arg((each * count) as i32).run() }
    }

    /// The argument of a launch of a kernel with sums of a level's own slabs, its blocks, and where the first one leaves its sums.
    fn summing(&self, level: usize) -> (arguments::Level, (u32, u32, u32), u64) {
        let l = &self.levels[level];
        let own = l.share.own();
        let height = l.sum_height();
        // Whole blocks of rows.
        let slabs = own.start / height * height..own.end.next_multiple_of(height).min(l.slabs());
        let argument = l.over(&(slabs.start as isize..slabs.end as isize));
        let blocks = sums(&argument);
        (argument, blocks, self.partials.address() + 32 * (slabs.start / height * l.sums_each()) as u64)
    }

    /// Joins the sums of a kernel that [`Data::summing`] has launched.
    fn join_sums(&self, level: usize) -> Result<()> {
        let l = &self.levels[level];
        self.complete_partials(level, l.slabs(), l.sum_height(), l.sums_each())?;
        self.norms(l.slabs().div_ceil(l.sum_height()) * l.sums_each())
    }

    /// Joins `count` partial sums.
    pub(super) fn norms(&self, count: usize) -> Result<()> {
        let launch = self.overlapping(self.kernels.norms.launch(1, 1024)).arg(&self.partials).arg(count as i32);
        // SAFETY: the arguments of `norms` in order; `count` entries were written by the kernel before.
        unsafe { launch.arg(&self.totals).arg(&self.host).run() }
    }

    /// `r = f - A u`, or after `u += e`; on a singular problem without its mean.
    pub(super) fn residual(&mut self, level: usize, correct: bool, singular: bool) -> Result<()> {
        let around = self.levels[level].around();
        let wants = [(Kind::U, around), (Kind::F, around), (Kind::E, around)];
        self.refresh(level, if correct { &wants } else { &wants[..2] })?;
        let l = &self.levels[level];
        if l.marches && !correct {
            let ([x, y], height) = (l.extent(), l.heights.residual);
            let (band, argument) = l.banded(y, height);
            let blocks = bands(x, band.len(), 1);
            let launch = self.overlapping(self.kernels.marching_residual.launch(blocks, 32 * WARPS)).arg(argument);
            let launch = number(launch.arg(l.u()).arg(l.f()).arg(l.r()), self.outer, self.scale);
            // SAFETY: the arguments of `marching_residual` in order; `partials` has one entry a block.
            unsafe { launch.arg(self.norms_argument(band.start * blocks.0 as usize)).arg(height as i32).run() }?;
            if level == 0 || singular {
                self.join_bands(level, [x, y], height)?;
            }
        } else {
            let (argument, blocks, partials) = self.summing(level);
            let kernel = if correct { &self.kernels.correct } else { &self.kernels.residual };
            let launch = kernel.launch(blocks, NODES).arg(argument).arg(l.u());
            let launch = if correct { launch.arg(l.e()).arg(l.f()).arg(l.other_u()) } else { launch.arg(l.f()) };
            let launch = number(launch.arg(l.r()), self.outer, self.scale);
            let launch = if correct { number(launch, self.outer, 1.0 / self.scale) } else { launch };
            // SAFETY: the arguments of `residual` or `correct` in order; `partials` has one entry a block.
            unsafe { launch.arg(partials).run() }?;
            if level == 0 || singular {
                self.join_sums(level)?;
            }
        }
        if singular {
            let launch = self.nodes(&self.kernels.shift_r, level).arg(l.r()).arg(&self.totals).arg(self.scale / self.volume);
            // SAFETY: the arguments of `shift_r` in order.
            unsafe { launch.run() }?;
        }
        if level == 0 {
            self.pending = false;
        }
        let l = &mut self.levels[level];
        (l.smoothed, l.stale, l.r_reach) = (false, false, l.share.reach(0));
        if correct {
            (l.u_at, l.u_reach) = (1 - l.u_at, l.share.reach(0));
        }
        Ok(())
    }

    /// Takes the mean off `f_0`; waits and returns it.
    pub(super) fn remove_mean(&mut self) -> Result<f64> {
        let l = &self.levels[0];
        let (argument, blocks, partials) = self.summing(0);
        // SAFETY: the arguments of `weigh` in order; `partials` has one entry a block.
        unsafe { self.kernels.weigh.launch(blocks, NODES).arg(argument).arg(l.f()).arg(partials).run() }?;
        self.join_sums(0)?;
        let launch = self.nodes_with(&self.kernels.shift_u, 0, l.share.depth);
        // SAFETY: the arguments of `shift_u` in order.
        unsafe { launch.arg(l.f()).arg(&self.totals).arg(1.0 / self.volume).run() }?;
        self.cuda.synchronize()?;
        Ok(self.host.get(3) / self.volume)
    }
}
