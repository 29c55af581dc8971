//! The fields of one problem on a GPU and the launches of the kernels on them. Which kernels make a stage is in
//! `mod.rs`.

use zellige_engine::cuda::{Argument as _, Buffer, Cuda, Kernel, Launch, Mapped, Pool};
use zellige_engine::error::Result;

use super::arguments;
use super::bands::{BandHeights, OWN_TURN, bands};
use super::bottom::BottomSolver;
use super::program::{COARSE, Kernels, NODES, OnSolution, OperatorWeights, RESTRICTING, ROWS, WARPS};
use super::tables::{Number, Tables, halves};
use crate::grid::{Axis, Grid, Level};
use crate::physics::Chebyshev;
use crate::stages::Smoother;

/// Bound of the spectrum of `D^-1 A`.
pub(super) const LAMBDA: f64 = 2.0;
/// Least nodes an axis where full multigrid's passes march: the window of coarse nodes wraps around at most once.
const LEAST_FULL: usize = 64;

/// Returns true if two nodes of one colour touch across the seam of a periodic axis.
fn seam(grid: &Grid) -> bool {
    grid.axes.iter().any(|a| a.periodic() && !a.is_flat() && a.nodes % 2 == 1)
}

/// Returns true if all unknowns of an axis have the same weight on both sides: no end with a derivative, no shorter interval.
fn even(axis: &Axis) -> bool {
    even_in(axis, axis.unknowns())
}

/// Returns true if these unknowns have the same weight on both sides, the first of the axis being among them.
fn even_in(axis: &Axis, mut unknowns: std::ops::Range<usize>) -> bool {
    let all = <[f64; 2]>::from(axis.weights(axis.unknowns().start));
    all[0] == all[1] && unknowns.all(|i| <[f64; 2]>::from(axis.weights(i)) == all)
}

/// Class of a level's operator, which selects the kernels.
fn weights(x: &Axis, y: &Axis) -> OperatorWeights {
    let all_but_last = |axis: &Axis| even(axis) || !axis.periodic() && even_in(axis, axis.unknowns().start..axis.unknowns().end - 1);
    if even(x) && even(y) {
        OperatorWeights::Plain
    } else if all_but_last(x) && all_but_last(y) && !x.periodic() && !y.periodic() {
        OperatorWeights::Short
    } else {
        OperatorWeights::General
    }
}

/// One level's fields: `r` and `u` twice where a pass reads neighbours of what it writes.
pub(super) struct Fields {
    pub argument: arguments::Level,
    pub nodes: usize,
    /// Plane, even around, in x by whole lanes: a marching sweep is possible.
    pub marches: bool,
    /// The whole fused pass is: both axes halve as well.
    pub fused: bool,
    /// Class of the operator: it selects kernels of less arithmetic.
    pub weights: OperatorWeights,
    /// Marks that the fused passes of full multigrid are possible too.
    pub full: bool,
    pub r: Vec<Buffer<u8>>,
    pub e: Buffer<u8>,
    pub u: Vec<Buffer<u8>>,
    pub f: Option<Buffer<u8>>,
    /// Index of the current copy of `u` and of `r`.
    pub u_at: usize,
    pub r_at: usize,
    /// `u` has had the first sweep of the next cycle, with the factor `omega`, and `r` of the level below is that cycle's; `r` of
    /// this level is not.
    pub smoothed: bool,
    pub omega: f64,
    /// `r` of this level is not the residual of `u`, although a cycle has ended.
    pub stale: bool,
    pub(super) heights: BandHeights,
}

impl Fields {
    /// Returns true if the residual can be carried on.
    pub(super) fn plain(&self) -> bool {
        self.weights == OperatorWeights::Plain
    }

    /// Columns and rows of a pass over the unknowns, and of one that also restricts.
    pub(super) fn extent(&self) -> [usize; 2] {
        [0, 1].map(|d| self.argument.axes()[d].n as usize)
    }

    pub(super) fn r(&self) -> &Buffer<u8> {
        &self.r[self.r_at]
    }

    pub(super) fn u(&self) -> &Buffer<u8> {
        &self.u[self.u_at]
    }

    pub(super) fn other_u(&self) -> &Buffer<u8> {
        &self.u[1 - self.u_at]
    }

    pub(super) fn f(&self) -> &Buffer<u8> {
        self.f.as_ref().unwrap_or(&self.e)
    }

    /// Blocks of the kernels that take a thread a node.
    pub(super) fn blocks(&self) -> (u32, u32, u32) {
        let [x, y, z] = self.argument.axes().map(|a| a.n as u32);
        (x.div_ceil(NODES.0), y.div_ceil(NODES.1), z)
    }

    /// Blocks of the kernels with sums.
    fn sums(&self) -> (u32, u32, u32) {
        let (x, y, z) = self.blocks();
        (x, y.div_ceil(ROWS), z)
    }
}

/// A field that a smoother works on, with its right-hand side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// `A e = r`.
    Correction,
    /// `A u = f`.
    Solution,
}

pub(super) struct Data {
    pub cuda: Cuda,
    pub pool: Pool,
    pub kernels: Kernels,
    pub on_solution: Option<OnSolution>,
    pub inner: Number,
    pub outer: Number,
    pub levels: Vec<Fields>,
    pub bottom: BottomSolver,
    /// Volume of the unknowns of the finest level.
    pub volume: f64,
    /// `r` and `e` hold this multiple of the residual and correction, a power of two: it keeps single precision in range.
    pub scale: f64,
    _tables: Tables,
    scratch: Buffer<u8>,
    pub(super) partials: Buffer<u8>,
    totals: Buffer<f64>,
    arrived: Buffer<u32>,
    pub host: Mapped<f64>,
    /// The norms of the last pass are partial sums that nobody has asked for yet.
    pub pending: bool,
}

/// A number in the precision of the kernel's parameter.
pub(super) fn number(launch: Launch<'_>, format: Number, value: f64) -> Launch<'_> {
    match format {
        Number::F32 => launch.arg(value as f32),
        Number::F64 => launch.arg(value),
    }
}

impl Data {
    /// Lets a kernel that waits by itself begin before the one ahead has ended, where the GPU can.
    pub(super) fn overlapping<'a>(&self, launch: Launch<'a>) -> Launch<'a> {
        if self.cuda.properties().capability.0 >= 9 { launch.early() } else { launch }
    }

    pub(super) fn new(
        cuda: &Cuda,
        (kernels, on_solution): (Kernels, Option<OnSolution>),
        grid: &[Level],
        inner: Number,
        outer: Number,
        full: bool,
    ) -> Result<Self> {
        let pool = cuda.pool();
        let tables = Tables::new(&pool, grid, inner, outer)?;
        let mut levels = Vec::with_capacity(grid.len());
        let mut partials = 1;
        for (l, (level, argument)) in grid.iter().zip(&tables.levels).enumerate() {
            let values = argument.values();
            let field = |number: Number, what: &str| pool.alloc_zeros::<u8>(values * number.bytes(), &format!("poisson level {l}: {what}"));
            let [x, y, z] = [0, 1, 2].map(|d| &level.grid.axes[d]);
            let whole = !x.periodic() || x.nodes.is_multiple_of(4);
            let marches = z.is_flat() && !seam(&level.grid) && whole && x.nodes >= 16 && y.nodes >= 16;
            let fused = marches && level.transfer.as_ref().is_some_and(|t| halves(&t[0]) && halves(&t[1]));
            let solution = l == 0 || full;
            let weights = if fused { weights(x, y) } else { OperatorWeights::General };
            let heights = BandHeights::new(cuda, (&kernels, on_solution.as_ref()), weights, [x.nodes, y.nodes])?;
            let fields = Fields {
                argument: *argument,
                nodes: level.grid.len(),
                marches,
                fused,
                weights,
                full: fused && full && x.nodes >= LEAST_FULL && y.nodes >= LEAST_FULL,
                r: (0..if l == 0 { 2 } else { 1 }).map(|_| field(inner, "residual")).collect::<Result<_>>()?,
                e: field(inner, "correction")?,
                u: (0..if solution { 2 } else { 0 }).map(|_| field(outer, "solution")).collect::<Result<_>>()?,
                f: solution.then(|| field(outer, "right-hand side")).transpose()?,
                u_at: 0,
                r_at: 0,
                smoothed: false,
                omega: 0.0,
                stale: false,
                heights,
            };
            let (a, b, c) = fields.sums();
            let least = fields.heights.min_height_with_sums();
            partials =
                partials.max(a as usize * b as usize * c as usize).max((x.nodes + 2).div_ceil(OWN_TURN) * (y.nodes + 2).div_ceil(least));
            levels.push(fields);
        }
        // Scratch of the levels that are smoothed by general kernels.
        let general = levels.iter().map(|l| l.argument.values()).max().unwrap_or(0);
        let last = grid.len() - 1;
        let fields = &levels[last];
        let ends = (fields.r[0].address(), fields.e.address());
        let limit = cuda.properties().shared_per_block;
        let bottom = BottomSolver::new(&pool, (last, &grid[last].grid), &fields.argument, (inner, limit), ends)?;
        let volume = grid[0].grid.axes.iter().map(|a| a.unknowns().map(|i| a.volume(i)).sum::<f64>()).product();
        Ok(Self {
            scratch: pool.alloc_zeros(general * inner.bytes(), "poisson: scratch")?,
            partials: pool.alloc_zeros(partials * 32, "poisson: partial sums")?,
            totals: pool.alloc_zeros(4, "poisson: sums")?,
            arrived: pool.alloc_zeros(1, "poisson: sums")?,
            pending: false,
            host: cuda.mapped(4)?,
            cuda: cuda.clone(),
            pool,
            kernels,
            on_solution,
            inner,
            outer,
            levels,
            bottom,
            volume,
            scale: 1.0,
            _tables: tables,
        })
    }

    pub(super) fn nodes<'a>(&self, kernel: &'a Kernel, level: usize) -> Launch<'a> {
        kernel.launch(self.levels[level].blocks(), NODES).arg(self.levels[level].argument)
    }

    /// The fused downward pass.
    pub(super) fn descend(&self, level: usize, omega: f64) -> Result<()> {
        let (l, c) = (&self.levels[level], &self.levels[level + 1]);
        let [x, y, _] = c.argument.axes().map(|a| 2 * a.n as usize);
        let launch = self.overlapping(self.kernels.passes(l.weights).0.launch(bands(x, y, l.heights.descend), 32 * WARPS));
        let launch = launch.arg(l.argument).arg(c.argument).arg(l.r()).arg(c.r());
        // SAFETY: the arguments of `descend` in order; the tables and fields belong to these two levels.
        unsafe { number(launch, self.inner, omega).arg(l.heights.descend as i32).run() }
    }

    /// The fused upward pass.
    pub(super) fn ascend(&self, level: usize, pre: f64, post: f64) -> Result<()> {
        let (l, c) = (&self.levels[level], &self.levels[level + 1]);
        let [x, y, _] = l.argument.axes().map(|a| a.n as usize);
        let launch = self.overlapping(self.kernels.passes(l.weights).1.launch(bands(x, y, l.heights.ascend), 32 * WARPS));
        let launch = launch.arg(l.argument).arg(c.argument).arg(l.r()).arg(&c.e).arg(&l.e);
        // SAFETY: the arguments of `ascend` in order; the tables and fields belong to these two levels.
        unsafe { number(number(launch, self.inner, pre), self.inner, post).arg(l.heights.ascend as i32).run() }
    }

    /// The fused upward pass with the correction of `u` and, on the finest level, the new residual: `f - A u`, or carried on
    /// as `r - A e` on a plain level.
    pub(super) fn ascend_correct(&mut self, level: usize, pre: f64, post: f64, carry: bool) -> Result<()> {
        let (l, c) = (&self.levels[level], &self.levels[level + 1]);
        let [x, y, _] = l.argument.axes().map(|a| a.n as usize);
        let (kernel, height) = if carry && l.plain() {
            (&self.kernels.ascend_carry_plain, l.heights.carry)
        } else {
            (self.kernels.passes(l.weights).2, l.heights.correct)
        };
        let launch = self.overlapping(kernel.launch(bands(x, y, height), 32 * WARPS));
        let launch = launch.arg(l.argument).arg(c.argument).arg(l.r()).arg(&c.e).arg(l.u()).arg(l.f()).arg(l.other_u());
        let launch = if level == 0 { launch.arg(&l.r[1 - l.r_at]) } else { launch.arg(0_u64) }.arg(self.norms_argument());
        let launch = number(number(launch, self.outer, self.scale), self.outer, 1.0 / self.scale);
        // SAFETY: the arguments of `ascend_correct` and `ascend_carry` in order; u and r are written to the copies that are not read, and
        // `partials` has one entry a block.
        unsafe { number(number(launch, self.inner, pre), self.inner, post).arg(height as i32).run() }?;
        let l = &mut self.levels[level];
        l.u_at = 1 - l.u_at;
        if level == 0 {
            l.r_at = 1 - l.r_at;
            self.pending = false;
        }
        Ok(())
    }

    /// Location where a pass leaves its norms.
    pub(super) fn norms_argument(&self) -> arguments::Norms {
        let [partials, totals, arrived] = [self.partials.address(), self.totals.address(), self.arrived.address()];
        arguments::Norms { partials, totals, host: self.host.value(), arrived }
    }

    /// Joins `count` partial sums.
    pub(super) fn norms(&self, count: usize) -> Result<()> {
        let launch = self.overlapping(self.kernels.norms.launch(1, 1024)).arg(&self.partials).arg(count as i32);
        // SAFETY: the arguments of `norms` in order; `count` entries were written by the kernel before.
        unsafe { launch.arg(&self.totals).arg(&self.host).run() }
    }

    /// `r = f - A u`, or after `u += e`; on a singular problem without its mean.
    pub(super) fn residual(&mut self, level: usize, correct: bool, singular: bool) -> Result<()> {
        let l = &self.levels[level];
        if l.marches && !correct {
            let ([x, y], height) = (l.extent(), l.heights.residual);
            let launch = self.overlapping(self.kernels.marching_residual.launch(bands(x, y, height), 32 * WARPS)).arg(l.argument);
            let launch = number(launch.arg(l.u()).arg(l.f()).arg(l.r()), self.outer, self.scale);
            // SAFETY: the arguments of `marching_residual` in order; `partials` has one entry a block.
            unsafe { launch.arg(self.norms_argument()).arg(height as i32).run() }?;
        } else {
            let kernel = if correct { &self.kernels.correct } else { &self.kernels.residual };
            let launch = kernel.launch(l.sums(), NODES).arg(l.argument).arg(l.u());
            let launch = if correct { launch.arg(&l.e).arg(l.f()).arg(l.other_u()) } else { launch.arg(l.f()) };
            let launch = number(launch.arg(l.r()), self.outer, self.scale);
            let launch = if correct { number(launch, self.outer, 1.0 / self.scale) } else { launch };
            // SAFETY: the arguments of `residual` or `correct` in order; `partials` has one entry a block.
            unsafe { launch.arg(&self.partials).run() }?;
            let (a, b, c) = l.sums();
            if level == 0 || singular {
                self.norms((a * b * c) as usize)?;
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
        (l.smoothed, l.stale) = (false, false);
        if correct {
            l.u_at = 1 - l.u_at;
        }
        Ok(())
    }

    /// Takes the mean off `f_0`; waits and returns it.
    pub(super) fn remove_mean(&mut self) -> Result<f64> {
        let l = &self.levels[0];
        // SAFETY: the arguments of `weigh` in order; `partials` has one entry a block.
        unsafe { self.kernels.weigh.launch(l.sums(), NODES).arg(l.argument).arg(l.f()).arg(&self.partials).run() }?;
        let (a, b, c) = l.sums();
        self.norms((a * b * c) as usize)?;
        // SAFETY: the arguments of `shift_u` in order.
        unsafe { self.nodes(&self.kernels.shift_u, 0).arg(l.f()).arg(&self.totals).arg(1.0 / self.volume).run() }?;
        self.cuda.synchronize()?;
        Ok(self.host.get(3) / self.volume)
    }

    /// The first red-black sweep on `A e = r` from zero.
    pub(super) fn relax_zero(&self, level: usize, omega: f64) -> Result<()> {
        let l = &self.levels[level];
        let launch = self.nodes(&self.kernels.relax_zero, level).arg(l.r()).arg(&l.e);
        // SAFETY: the arguments of `relax_zero` in order.
        unsafe { number(launch, self.inner, omega).run() }
    }

    /// `e = 0`.
    pub(super) fn clear(&mut self, level: usize) -> Result<()> {
        self.cuda.fill_zero(&mut self.levels[level].e)
    }

    /// `nu` sweeps by the general kernels from the stored values.
    pub(super) fn smooth(&mut self, target: Target, level: usize, nu: u32, smoother: Smoother) -> Result<()> {
        self.smooth_on(target, level, nu, smoother, &mut Chebyshev::default())
    }

    /// Smooths as [`Data::smooth`] does, and continues a polynomial. The solution before the last sweep is then the other copy.
    pub(super) fn smooth_on(
        &mut self,
        target: Target,
        level: usize,
        nu: u32,
        smoother: Smoother,
        recurrence: &mut Chebyshev,
    ) -> Result<()> {
        let mut swapped = false;
        for _ in 0..nu {
            match smoother {
                Smoother::RedBlack { omega } => {
                    self.relax(target, level, swapped, omega, 0)?;
                    self.relax(target, level, !swapped, omega, 1)?;
                }
                Smoother::Jacobi { omega } => {
                    self.relax(target, level, swapped, omega, 2)?;
                    swapped = !swapped;
                }
                Smoother::Chebyshev { ratio } => {
                    let (step, momentum) = recurrence.next(LAMBDA, ratio);
                    self.momentum(target, level, swapped, step, momentum)?;
                    swapped = !swapped;
                }
            }
        }
        if swapped {
            match target {
                Target::Solution => self.levels[level].u_at = 1 - self.levels[level].u_at,
                Target::Correction => {
                    let e = &mut self.levels[level].e;
                    let bytes = e.len();
                    self.cuda.copy(&self.scratch, 0, e, 0, bytes)?;
                }
            }
        }
        Ok(())
    }

    /// Field, right-hand side, the place for the result and the format; `swapped`: the field is where results went.
    fn target(&self, target: Target, level: usize, swapped: bool) -> (&Buffer<u8>, &Buffer<u8>, &Buffer<u8>, Number) {
        let l = &self.levels[level];
        let (a, b, f, format) = match target {
            Target::Correction => (&l.e, &self.scratch, l.r(), self.inner),
            Target::Solution => (l.u(), l.other_u(), l.f(), self.outer),
        };
        if swapped { (b, f, a, format) } else { (a, f, b, format) }
    }

    fn relax(&self, target: Target, level: usize, swapped: bool, omega: f64, colour: i32) -> Result<()> {
        let (v, f, out, format) = self.target(target, level, swapped);
        let kernel = if target == Target::Correction { &self.kernels.relax_e } else { &self.kernels.relax_u };
        let launch = self.nodes(kernel, level).arg(v).arg(f).arg(out);
        // SAFETY: the arguments of `relax_e` and `relax_u` in order; the result goes to another field.
        unsafe { number(launch, format, omega).arg(colour).run() }
    }

    fn momentum(&self, target: Target, level: usize, swapped: bool, step: f64, momentum: f64) -> Result<()> {
        let (v, f, out, format) = self.target(target, level, swapped);
        let kernel = if target == Target::Correction { &self.kernels.momentum_e } else { &self.kernels.momentum_u };
        let launch = self.nodes(kernel, level).arg(v).arg(f).arg(out).arg(out);
        // SAFETY: the arguments of `momentum_e` and `momentum_u` in order; a thread reads `before` only where it writes.
        unsafe { number(number(launch, format, step), format, momentum).run() }
    }

    /// One marching red-black sweep on `A u = f`, or two in one pass.
    pub(super) fn sweep(&mut self, level: usize, omega: f64, two: bool) -> Result<()> {
        let l = &self.levels[level];
        let [x, y, _] = l.argument.axes().map(|a| a.n as usize);
        let (kernel, height) = if two { (&self.kernels.two_sweeps, l.heights.two_sweeps) } else { (&self.kernels.sweep, l.heights.sweep) };
        let launch = self.overlapping(kernel.launch(bands(x, y, height), 32 * WARPS));
        let launch = launch.arg(l.argument).arg(l.u()).arg(l.f()).arg(l.other_u());
        // SAFETY: the arguments of `sweep` and `two_sweeps` in order; the result goes to another field.
        unsafe { number(launch, self.outer, omega).arg(height as i32).run() }?;
        let l = &mut self.levels[level];
        (l.u_at, l.smoothed) = (1 - l.u_at, false);
        Ok(())
    }

    /// `r_{l+1} = R (r - A e)`, or `R r`.
    pub(super) fn restrict(&self, level: usize, from_zero: bool) -> Result<()> {
        let (l, c) = (&self.levels[level], &self.levels[level + 1]);
        let launch = self.restricting(&self.kernels.restrict_residual, level).arg(l.r());
        let launch = if from_zero { launch.arg(0_u64) } else { launch.arg(&l.e) };
        // SAFETY: the arguments of `restrict_residual` in order; no correction means zero.
        unsafe { launch.arg(c.r()).run() }
    }

    pub(super) fn restricting<'a>(&self, kernel: &'a Kernel, level: usize) -> Launch<'a> {
        let (l, c) = (&self.levels[level], &self.levels[level + 1]);
        let n: [u32; 3] = std::array::from_fn(|d| (c.argument.axes()[d].n as u32).div_ceil(COARSE[d]));
        kernel.launch(n, RESTRICTING).arg(l.argument).arg(c.argument)
    }

    /// `e += P e_{l+1}`.
    pub(super) fn prolong(&self, level: usize) -> Result<()> {
        let (l, c) = (&self.levels[level], &self.levels[level + 1]);
        let launch = self.nodes(&self.kernels.prolong, level).arg(c.argument);
        // SAFETY: the arguments of `prolong` in order.
        unsafe { launch.arg(&c.e).arg(&l.e).run() }
    }
}
