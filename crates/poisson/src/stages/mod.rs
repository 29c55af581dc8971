//! The stages of a multigrid cycle as one trait; `cpu` and `cuda` implement it and [`crate::step`] is written once
//! against it.
//!
//! Everything is in correction form. Level 0 holds the solution `u` and the right-hand side `f` in the outer
//! precision, every level `l` a residual `r_l` and a correction `e_l` in the inner one (mixed: f64 outside, f32
//! inside; else both the same):
//!
//! ```text
//! r_0 = f - A u            residual(0)
//! e_l = S^nu1(0; r_l)      descend(l): pre-smooth from zero, r_{l+1} = R (r_l - A e_l)
//! A e_L = r_L              coarse_solve()
//! e_l += P e_{l+1}         ascend(l):  then S^nu2(e_l; r_l)
//! u += e_0                 correct(0): then r_0 = f - A u and its norms
//! ```
//!
//! In this form the two passes of a V(1,1) cycle over a level need not store the pre-smoothed correction: `ascend`
//! makes it again from `r_l`. A backend is free to do so, and to fuse `ascend(0)` with `correct(0)`; what it must give
//! back is the arithmetic above.
//!
//! Full multigrid and the cascadic cycle also keep `u_l` and `f_l` (outer precision) on coarse levels.

pub mod cpu;
pub mod cuda;
mod host_share;
mod ranges;

use zellige_engine::cuda::{Buffer, Coming};
use zellige_engine::error::{Error, Result};
use zellige_engine::profile::Profiler;

pub use self::host_share::HostShare;
use crate::smoothing::Smoothing;

/// The relaxation that smooths.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Smoother {
    /// Red-black Gauss-Seidel, over-relaxed by `omega` (1 = plain). Red nodes have even `i + j + k` and go first.
    RedBlack {
        /// Relaxation factor.
        omega: f64,
    },
    /// Damped Jacobi.
    Jacobi {
        /// Damping factor.
        omega: f64,
    },
    /// Chebyshev polynomial of the Jacobi-scaled operator on the upper part `[lambda / ratio, lambda]` of its spectrum;
    /// a sweep is one application of A.
    Chebyshev {
        /// Ratio of the largest to the smallest eigenvalue that is damped.
        ratio: f64,
    },
}

/// Starting value of a pass of smoothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// `e_l = 0`, whatever is stored.
    Zero,
    /// The stored `e_l` (second visit of a W or F cycle).
    Current,
}

/// The residual of the finest grid in the form in which a device holds it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredResidual {
    /// Bytes of the residual.
    pub residual: Vec<u8>,
    /// Factor by which the stored residual is scaled.
    pub scale: f64,
}

/// Norms of the residual, grid-independent: the L2 norm is the root mean square weighted by control volumes over the
/// unknowns, the maximum norm is over the unknowns.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Norms {
    /// `sqrt(sum V r^2 / sum V)`.
    pub l2: f64,
    /// `max |r|`.
    pub max: f64,
    /// `sqrt(sum V u^2 / sum V)`, for the backward error and the precision floor.
    pub u_l2: f64,
}

/// Names of the stages in the profile; the same as the methods of [`Stages`].
pub mod stage {
    /// `r_0 = f - A u`.
    pub const RESIDUAL: &str = "residual";
    /// Pre-smooth, residual, restrict.
    pub const DESCEND: &str = "descend";
    /// Coarsest level.
    pub const COARSE_SOLVE: &str = "coarse solve";
    /// Prolong, post-smooth.
    pub const ASCEND: &str = "ascend";
    /// `u += e_0` and the new residual.
    pub const CORRECT: &str = "correct";
    /// Plain relaxation of `u`.
    pub const SWEEP: &str = "sweep";
    /// Interpolation of a coarse solution (FMG, C-cycle).
    pub const INTERPOLATE: &str = "interpolate";
}

/// Arrays in a GPU's memory were given to a solver on the CPU.
pub(crate) fn needs_gpu_stages() -> Error {
    Error::Device {
        device: "cpu".into(),
        message: "the arrays are in a GPU's memory, but the plan is for the CPU".into(),
        hint: Some("make the plan for that GPU, or give arrays of the host".into()),
    }
}

/// One problem's data on one device, and what can be done to it. Levels count from the finest, 0.
pub trait Stages: Send {
    /// Number of levels, the finest included.
    fn levels(&self) -> usize;

    /// The smoothing that a level needs.
    fn smoothing(&self, level: usize) -> Smoothing;

    /// Slabs of the finest grid that this part of a run has on its host.
    fn host_share(&self) -> HostShare;

    /// Takes a right-hand side (boundary fluxes already folded in) and a first guess whose Dirichlet nodes hold the
    /// boundary values, both over the nodes of the finest grid in C order, as far as [`Stages::host_share`] holds them. Nothing is
    /// computed.
    fn load(&mut self, u: &[f64], f: &[f64]) -> Result<()>;

    /// The solution as it is held, over the nodes of the finest grid, with values on the own slabs of [`Stages::host_share`]: that
    /// of a singular problem may have any mean.
    fn solution(&mut self) -> Result<Vec<f64>>;

    /// Pixels of the planes that pictures show of the solution, as [`zellige_engine::record::Planes`] has them, made where it lies
    /// and on their way; a record has doubles or not. `None` where it lies on the host or in several parts.
    fn picture(&mut self, _dimensions: usize, _double_in_record: bool) -> Result<Option<Vec<Coming<f32>>>> {
        Ok(None)
    }

    /// Loads as [`Stages::load`] does with a zero guess, from a right-hand side in the memory of the stages' GPU whose largest
    /// magnitude at the unknowns is `largest`.
    fn load_on_gpu(&mut self, _f: &Buffer<f64>, _largest: f64) -> Result<()> {
        Err(needs_gpu_stages())
    }

    /// Writes [`Stages::solution`] into the memory of the stages' GPU.
    fn solution_on_gpu(&mut self, _u: &mut Buffer<f64>) -> Result<()> {
        Err(needs_gpu_stages())
    }

    /// The residual of the finest grid as it is held, that of the own slabs, where only a copy has its bits: passes that make it
    /// from different neighbours' roundings would give others.
    fn stored_residual(&mut self) -> Result<Option<StoredResidual>> {
        Ok(None)
    }

    /// Takes what [`Stages::stored_residual`] gave, `u` being loaded; false where it is not of this device's kind.
    fn restore_residual(&mut self, _held: &StoredResidual) -> Result<bool> {
        Ok(false)
    }

    /// A Chebyshev polynomial that has begun: the solution a sweep before, as [`Stages::solution`] gives it.
    fn previous_solution(&mut self) -> Result<Option<Vec<f64>>>;

    /// Allows the solution of the coarsest level, which can take long on the CPU where `coarse_levels` is small, to end early with
    /// [`zellige_engine::error::Error::Interrupted`] when there is a reason to stop: the step is then begun anew.
    fn allow_interrupt(&mut self, _allowed: bool) {}

    /// The next sweeps begin a Chebyshev polynomial.
    fn restart_polynomial(&mut self);

    /// Goes on with a Chebyshev polynomial of which `sweeps` sweeps are done, `u` being loaded and `previous` what it was a sweep
    /// before.
    fn resume_polynomial(&mut self, sweeps: u64, ratio: f64, previous: &[f64]) -> Result<()>;

    /// `r_l = f_l - A u_l` and its norms. On a singular problem the mean of `r_l` is taken off.
    fn residual(&mut self, level: usize, profiler: &mut Profiler) -> Result<()>;

    /// `nu` sweeps of `smoother` on `A e_l = r_l` from `start`, then `r_{l+1} = R (r_l - A e_l)`. `nu = 0` only restricts.
    fn descend(&mut self, level: usize, start: Start, nu: u32, smoother: Smoother, profiler: &mut Profiler) -> Result<()>;

    /// Solves `A e = r` on the coarsest level to well below a cycle's factor. On a singular problem the mean of `e` is zero.
    fn coarse_solve(&mut self, profiler: &mut Profiler) -> Result<()>;

    /// `e_l += P e_{l+1}`, then `nu` sweeps. `start` is what the last `descend` of this level was given; with `pre` and
    /// `start` the backend can make the pre-smoothed `e_l` again instead of having stored it.
    fn ascend(&mut self, level: usize, start: Start, pre: u32, nu: u32, smoother: Smoother, profiler: &mut Profiler) -> Result<()>;

    /// `u_l += e_l`, then as [`Stages::residual`].
    fn correct(&mut self, level: usize, profiler: &mut Profiler) -> Result<()>;

    /// `ascend(0)` and `correct(0)` in one pass, where the backend can. One that begins a cycle on the solution itself need not
    /// store `r_0`, but makes its norms.
    fn ascend_correct(&mut self, pre: u32, nu: u32, smoother: Smoother, profiler: &mut Profiler) -> Result<()> {
        self.ascend(0, Start::Zero, pre, nu, smoother, profiler)?;
        self.correct(0, profiler)
    }

    /// `residual(0)` with the bits that the end of a cycle gives it on a device without [`Stages::stored_residual`]: that of
    /// `ascend_correct` with these sweeps before, these after and this smoother, or without them of `correct(0)`. Another pass may
    /// contract the same formula otherwise, or sum in another order.
    fn residual_as_corrected(&mut self, _ascends: Option<(u32, u32, Smoother)>, profiler: &mut Profiler) -> Result<()> {
        self.residual(0, profiler)
    }

    /// `residual(0)` and the way down on the finest level of the cycle that follows, in one pass where the backend can: `u` is
    /// then one sweep further than the norms say, and the next `descend(0)` or `descend_carry` has nothing left to do.
    /// `zero`: the caller knows that `u` is zero, on Dirichlet nodes too.
    fn residual_descend(&mut self, _pre: u32, _smoother: Smoother, _zero: bool, profiler: &mut Profiler) -> Result<()> {
        self.residual(0, profiler)
    }

    /// `descend(0)` from zero for a cycle that ends with [`Stages::ascend_carry`].
    fn descend_carry(&mut self, pre: u32, smoother: Smoother, profiler: &mut Profiler) -> Result<()> {
        self.descend(0, Start::Zero, pre, smoother, profiler)
    }

    /// Returns true if [`Stages::ascend_carry`] differs from [`Stages::ascend_correct`].
    fn carries(&self) -> bool {
        false
    }

    /// Ascends as [`Stages::ascend_correct`] does, before another cycle. The backend may carry the residual on, `r_0 - A e_0`
    /// instead of `f - A u`, which saves reading `f`; that differs from the true residual by the rounding of the last true one in
    /// the inner precision, and of `u`. Or it may begin the way down of the next cycle: the norms are then true, `u` is one sweep
    /// further than they say, and `r_0` is stale until the end of a cycle or [`Stages::residual`].
    fn ascend_carry(&mut self, pre: u32, nu: u32, smoother: Smoother, profiler: &mut Profiler) -> Result<()> {
        self.ascend_correct(pre, nu, smoother, profiler)
    }

    /// `interpolate(level, 3)` and `residual(level)` in one pass, where the backend can. The norms are stale afterwards.
    fn interpolate_residual(&mut self, level: usize, profiler: &mut Profiler) -> Result<()> {
        self.interpolate(level, 3, profiler)?;
        self.residual(level, profiler)
    }

    /// Interpolates as `interpolate_residual(level)` does, before a cycle on that level, whose way down the backend may do in the
    /// same pass, as [`Stages::residual_descend`] does.
    fn interpolate_descend(&mut self, level: usize, _pre: u32, _smoother: Smoother, profiler: &mut Profiler) -> Result<()> {
        self.interpolate_residual(level, profiler)
    }

    /// `ascend(level)`, then `u_l += e_l`. The residual is stale afterwards.
    fn ascend_add(&mut self, level: usize, pre: u32, nu: u32, smoother: Smoother, profiler: &mut Profiler) -> Result<()> {
        self.ascend(level, Start::Zero, pre, nu, smoother, profiler)?;
        self.correct(level, profiler)
    }

    /// `nu` sweeps of `smoother` on `A u_l = f_l` itself (the SOR, Gauss-Seidel, Jacobi and Chebyshev methods, and the
    /// smoothing of the cascadic cycle). The residual is stale afterwards.
    fn sweep(&mut self, level: usize, nu: u32, smoother: Smoother, profiler: &mut Profiler) -> Result<()>;

    /// `sweep(0)` and the norms of the residual that it leaves; `r_0` itself may be stale afterwards. A Chebyshev polynomial
    /// continues from call to call since [`Stages::load`] or [`Stages::restart_polynomial`], and has the same bits however its
    /// sweeps are divided among the calls.
    fn sweep_norms(&mut self, nu: u32, smoother: Smoother, profiler: &mut Profiler) -> Result<()> {
        self.sweep(0, nu, smoother, profiler)?;
        self.residual(0, profiler)
    }

    /// Full multigrid: fills `f_l` on every coarse level by restriction of `f_0` (and the boundary values of `u_l`).
    fn restrict_rhs(&mut self, profiler: &mut Profiler) -> Result<()>;

    /// `u_l = P u_{l+1}` by interpolation of the given order (1 linear, 3 cubic); Dirichlet nodes keep their values.
    fn interpolate(&mut self, level: usize, order: u32, profiler: &mut Profiler) -> Result<()>;

    /// `u = 0` on the coarsest level, boundary values kept, then `A u_L = f_L` solved there.
    fn coarse_solution(&mut self, profiler: &mut Profiler) -> Result<()>;

    /// Waits and returns the norms of the last residual of level 0.
    fn norms(&mut self) -> Result<Norms>;

    /// Singular problems: the volume-weighted mean of `f` that was removed when it was loaded.
    fn removed_mean(&self) -> f64;

    /// Bytes held on the device.
    fn memory(&self) -> u64;

    /// Runs `body`, which calls only stages that do not wait. A backend with graphs records it under `key` the first
    /// time and replays it afterwards.
    fn replay(
        &mut self,
        _key: &str,
        profiler: &mut Profiler,
        body: &mut dyn FnMut(&mut dyn Stages, &mut Profiler) -> Result<()>,
    ) -> Result<()>;
}
