//! The fields of one problem on a GPU and the launches of the kernels on them. Which kernels make a stage is in
//! `mod.rs`.

use std::ops::Range;

use zellige_engine::cuda::{Argument as _, Buffer, Cuda, Kernel, Launch, Mapped, Pool};
use zellige_engine::error::Result;
use zellige_engine::links::Links;

use super::arguments;
use super::bands::{BandHeights, OWN_TURN, bands};
use super::bottom::BottomSolver;
use super::parts::{EVERYWHERE, Kind, Parts, Places, Reach, Share};
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

/// Slabs beside a part's own on which a correction is made on the way down: as many as V-cycles with one sweep need on the way up.
const DEEP: Reach = 5;
/// Rows beside a part's own that two sweeps in one pass read.
const SWEPT: Reach = 6;
/// Slabs beside a part's own on which a correction is wanted: by the finer level, or by a restriction.
const WANTED: Reach = 3;

/// Field of a level: values of the slabs that this part holds.
pub(super) struct Field {
    pub(super) buffer: Buffer<u8>,
    /// Bytes of the level before them.
    skipped: u64,
}

impl Field {
    /// Address that the level's first value would have.
    pub(super) fn address(&self) -> u64 {
        self.buffer.address().wrapping_sub(self.skipped)
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
    pub r: Vec<Field>,
    pub e: Field,
    pub u: Vec<Field>,
    pub f: Option<Field>,
    /// This part's slabs, and the slabs beside them on which `r`, `e` and `u` are up to date; `f` is on all that are held.
    pub share: Share,
    pub(super) places: Places,
    pub(super) r_reach: Reach,
    pub(super) e_reach: Reach,
    pub(super) u_reach: Reach,
    /// Slabs under those of the level below.
    pub(super) children: Vec<u32>,
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

    pub(super) fn r(&self) -> u64 {
        self.r[self.r_at].address()
    }

    pub(super) fn e(&self) -> u64 {
        self.e.address()
    }

    pub(super) fn u(&self) -> u64 {
        self.u[self.u_at].address()
    }

    pub(super) fn other_u(&self) -> u64 {
        self.u[1 - self.u_at].address()
    }

    pub(super) fn f(&self) -> u64 {
        self.f.as_ref().unwrap_or(&self.e).address()
    }

    /// Blocks of the kernels that take a thread a node.
    pub(super) fn blocks(&self) -> (u32, u32, u32) {
        blocks(&self.argument)
    }

    /// Blocks of the kernels with sums.
    fn sums(&self) -> (u32, u32, u32) {
        sums(&self.argument)
    }

    /// Slabs: planes, or rows of a plane grid.
    pub(super) fn slabs(&self) -> usize {
        if self.argument.z.n > 1 { self.argument.z.n as usize } else { self.argument.y.n as usize }
    }

    /// Slabs beside the own ones that kernels with sums read: rows are taken by whole blocks.
    fn around(&self) -> Reach {
        if self.argument.z.n > 1 { 1 } else { EVERYWHERE }
    }

    /// Slabs of a block of the kernels with sums.
    fn sum_height(&self) -> usize {
        if self.argument.z.n > 1 { 1 } else { (ROWS * NODES.1) as usize }
    }

    /// Blocks of the kernels with sums to so many slabs.
    fn sums_each(&self) -> usize {
        let (x, y, _) = self.sums();
        if self.argument.z.n > 1 { (x * y) as usize } else { x as usize }
    }

    /// The bands of a pass of bands of `height` rows over `rows` rows that this part makes, and the argument of its launch.
    pub(super) fn banded(&self, rows: usize, height: usize) -> (Range<usize>, arguments::Level) {
        let bands = self.share.bands(rows, height);
        let argument = self.over(&((bands.start * height) as isize..self.argument.y.n as isize));
        (bands, argument)
    }
}

/// Blocks of the kernels that take a thread a node, over the slabs of a launch.
pub(super) fn blocks(level: &arguments::Level) -> (u32, u32, u32) {
    let [x, y, z] = level.axes().map(|a| (a.end - a.begin) as u32);
    (x.div_ceil(NODES.0), y.div_ceil(NODES.1), z)
}

/// Blocks of the kernels with sums, likewise.
fn sums(level: &arguments::Level) -> (u32, u32, u32) {
    let (x, y, z) = blocks(level);
    (x, y.div_ceil(ROWS), z)
}

/// A field that a smoother works on, with its right-hand side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// `A e = r`.
    Correction,
    /// `A u = f`.
    Solution,
}

/// Ways through a level.
struct Passes {
    marches: bool,
    fused: bool,
    weights: OperatorWeights,
    heights: BandHeights,
}

impl Passes {
    fn new(cuda: &Cuda, kernels: (&Kernels, Option<&OnSolution>), level: &Level) -> Result<Self> {
        let [x, y, z] = [0, 1, 2].map(|d| &level.grid.axes[d]);
        let whole = !x.periodic() || x.nodes.is_multiple_of(4);
        let marches = z.is_flat() && !seam(&level.grid) && whole && x.nodes >= 16 && y.nodes >= 16;
        let fused = marches && level.transfer.as_ref().is_some_and(|t| halves(&t[0]) && halves(&t[1]));
        let weights = if fused { weights(x, y) } else { OperatorWeights::General };
        Ok(Self { marches, fused, weights, heights: BandHeights::new(cuda, kernels, weights, [x.nodes, y.nodes])? })
    }

    /// The most rows of a band, those of the kernels with sums included.
    fn largest(&self, on_solution: bool) -> usize {
        let sums = (ROWS * NODES.1) as usize;
        if self.marches { self.heights.largest(on_solution && self.fused).max(sums) } else { sums }
    }
}

/// Slabs beside the own ones on which the result of smoothing is wanted.
fn wanted(target: Target) -> Reach {
    if target == Target::Correction { WANTED } else { 1 }
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
    /// The other parts of the run, where they have other slabs. Dropped before the fields.
    pub(super) parts: Option<Parts>,
    /// Volume of the unknowns of the finest level.
    pub volume: f64,
    /// `r` and `e` hold this multiple of the residual and correction, a power of two: it keeps single precision in range.
    pub scale: f64,
    _tables: Tables,
    pub(super) scratch: Buffer<u8>,
    /// A smoother's field is where its results went: the correction in the scratch field, the solution in the other copy.
    pub(super) swapped: bool,
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
        (kernels, kernels_on_solution): (Kernels, Option<OnSolution>),
        grid: &[Level],
        inner: Number,
        outer: Number,
        full: bool,
        links: &Links,
    ) -> Result<Self> {
        let pool = cuda.pool();
        let tables = Tables::new(&pool, grid, inner, outer)?;
        let mut levels: Vec<Fields> = Vec::with_capacity(grid.len());
        let mut partials = 1;
        let on_solution = kernels_on_solution.as_ref();
        let passes = grid.iter().map(|level| Passes::new(cuda, (&kernels, on_solution), level)).collect::<Result<Vec<_>>>()?;
        let heights: Vec<usize> = passes.iter().map(|p| p.largest(on_solution.is_some())).collect();
        let shares = Share::of_levels(grid, &heights, links);
        for (l, (((level, argument), passes), share)) in grid.iter().zip(&tables.levels).zip(passes).zip(shares).enumerate() {
            let held = share.held();
            let field = |number: Number, what: &str| -> Result<Field> {
                let slab = argument.slab() * number.bytes();
                let buffer = pool.alloc_zeros::<u8>(held.len() * slab, &format!("poisson level {l}: {what}"))?;
                Ok(Field { buffer, skipped: (held.start * slab) as u64 })
            };
            let [x, y, z] = [0, 1, 2].map(|d| &level.grid.axes[d]);
            let Passes { marches, fused, weights, heights } = passes;
            let solution = l == 0 || full;
            let slabs = if z.is_flat() { 1 } else { 2 };
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
                share,
                places: Places::default(),
                r_reach: EVERYWHERE,
                e_reach: EVERYWHERE,
                u_reach: EVERYWHERE,
                children: level.transfer.as_ref().map_or_else(Vec::new, |t| t[slabs].child.clone()),
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
        let scratch = levels.iter().map(|l| l.share.held().len() * l.slab(inner)).max().unwrap_or(0);
        let last = grid.len() - 1;
        let fields = &levels[last];
        let ends = (fields.r[0].address(), fields.e.address());
        let limit = cuda.properties().shared_per_block;
        let bottom = BottomSolver::new(&pool, (last, &grid[last].grid), &fields.argument, (inner, limit), ends)?;
        let volume = grid[0].grid.axes.iter().map(|a| a.unknowns().map(|i| a.volume(i)).sum::<f64>()).product();
        let scratch = pool.alloc_zeros(scratch, "poisson: scratch")?;
        let partials = pool.alloc_zeros(partials * 32, "poisson: partial sums")?;
        Ok(Self {
            parts: Parts::new(cuda, links, &mut levels, [&partials, &scratch])?,
            scratch,
            swapped: false,
            partials,
            totals: pool.alloc_zeros(4, "poisson: sums")?,
            arrived: pool.alloc_zeros(1, "poisson: sums")?,
            pending: false,
            host: cuda.mapped(4)?,
            cuda: cuda.clone(),
            pool,
            kernels,
            on_solution: kernels_on_solution,
            inner,
            outer,
            levels,
            bottom,
            volume,
            scale: 1.0,
            _tables: tables,
        })
    }

    /// A launch of a thread a node of a level's own slabs and so many beside them.
    pub(super) fn nodes_with<'a>(&self, kernel: &'a Kernel, level: usize, beside: Reach) -> Launch<'a> {
        let l = &self.levels[level];
        let argument = l.over(&l.share.with(beside));
        kernel.launch(blocks(&argument), NODES).arg(argument)
    }

    /// A launch of a thread a node of a level's own slabs.
    pub(super) fn nodes<'a>(&self, kernel: &'a Kernel, level: usize) -> Launch<'a> {
        self.nodes_with(kernel, level, 0)
    }

    /// The fused downward pass.
    pub(super) fn descend(&mut self, level: usize, omega: f64) -> Result<()> {
        self.refresh(level, &[(Kind::R, EVERYWHERE)])?;
        let (l, c) = (&self.levels[level], &self.levels[level + 1]);
        let ([x, y], height) = (c.extent().map(|n| 2 * n), l.heights.descend);
        let (band, argument) = l.banded(y, height);
        let launch = self.overlapping(self.kernels.passes(l.weights).0.launch(bands(x, band.len(), 1), 32 * WARPS));
        let launch = launch.arg(argument).arg(c.argument).arg(l.r()).arg(c.r());
        // SAFETY: the arguments of `descend` in order; the tables and fields belong to these two levels.
        unsafe { number(launch, self.inner, omega).arg(height as i32).run() }?;
        self.restricted(level)
    }

    /// The fused upward pass.
    pub(super) fn ascend(&mut self, level: usize, pre: f64, post: f64) -> Result<()> {
        self.refresh(level, &[(Kind::R, EVERYWHERE)])?;
        self.refresh(level + 1, &[(Kind::E, EVERYWHERE)])?;
        let (l, c) = (&self.levels[level], &self.levels[level + 1]);
        let ([x, y], height) = (l.extent(), l.heights.ascend);
        let (band, argument) = l.banded(y, height);
        let launch = self.overlapping(self.kernels.passes(l.weights).1.launch(bands(x, band.len(), 1), 32 * WARPS));
        let launch = launch.arg(argument).arg(c.argument).arg(l.r()).arg(c.e()).arg(l.e());
        // SAFETY: the arguments of `ascend` in order; the tables and fields belong to these two levels.
        unsafe { number(number(launch, self.inner, pre), self.inner, post).arg(height as i32).run() }?;
        let l = &mut self.levels[level];
        l.e_reach = l.share.reach(0);
        Ok(())
    }

    /// The fused upward pass with the correction of `u` and, on the finest level, the new residual: `f - A u`, or carried on
    /// as `r - A e` on a plain level.
    pub(super) fn ascend_correct(&mut self, level: usize, pre: f64, post: f64, carry: bool) -> Result<()> {
        self.refresh(level, &[(Kind::R, EVERYWHERE), (Kind::U, EVERYWHERE)])?;
        self.refresh(level + 1, &[(Kind::E, EVERYWHERE)])?;
        let (l, c) = (&self.levels[level], &self.levels[level + 1]);
        let [x, y] = l.extent();
        let (kernel, height) = if carry && l.plain() {
            (&self.kernels.ascend_carry_plain, l.heights.carry)
        } else {
            (self.kernels.passes(l.weights).2, l.heights.correct)
        };
        let (band, argument) = l.banded(y, height);
        let blocks = bands(x, band.len(), 1);
        let launch = self.overlapping(kernel.launch(blocks, 32 * WARPS));
        let launch = launch.arg(argument).arg(c.argument).arg(l.r()).arg(c.e()).arg(l.u()).arg(l.f()).arg(l.other_u());
        let launch = if level == 0 { launch.arg(l.r[1 - l.r_at].address()) } else { launch.arg(0_u64) };
        let launch = launch.arg(self.norms_argument(band.start * blocks.0 as usize));
        let launch = number(number(launch, self.outer, self.scale), self.outer, 1.0 / self.scale);
        // SAFETY: the arguments of `ascend_correct` and `ascend_carry` in order; u and r are written to the copies that are not read, and
        // `partials` has one entry a block.
        unsafe { number(number(launch, self.inner, pre), self.inner, post).arg(height as i32).run() }?;
        let l = &mut self.levels[level];
        l.u_at = 1 - l.u_at;
        l.u_reach = l.share.reach(0);
        if level == 0 {
            l.r_at = 1 - l.r_at;
            l.r_reach = l.share.reach(0);
            self.pending = false;
            self.join_bands(x, y, height)?;
        }
        Ok(())
    }

    /// Location where a pass leaves its norms, from partial result `first` on.
    pub(super) fn norms_argument(&self, first: usize) -> arguments::Norms {
        let [partials, totals, arrived] = [self.partials.address(), self.totals.address(), self.arrived.address()];
        let arrived = if self.in_parts() { 0 } else { arrived };
        arguments::Norms { partials: partials + 32 * first as u64, totals, host: self.host.value(), arrived }
    }

    /// Joins the norms of a pass in bands of `height` rows over columns and rows, where a part has made some of them.
    pub(super) fn join_bands(&self, x: usize, y: usize, height: usize) -> Result<()> {
        if !self.in_parts() {
            return Ok(());
        }
        let (each, count) = bands(x, y, height);
        self.complete_partials(y, height, each as usize)?;
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

    /// Joins the sums of a kernel that [`Data::summing`] has launched on the finest level, or on one that is not divided.
    fn join_sums(&self, level: usize) -> Result<()> {
        let l = &self.levels[level];
        if level == 0 {
            self.complete_partials(l.slabs(), l.sum_height(), l.sums_each())?;
        }
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
        let wants = [(Kind::U, around), (Kind::E, around)];
        self.refresh(level, if correct { &wants } else { &wants[..1] })?;
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
                self.join_bands(x, y, height)?;
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

    /// The first red-black sweep on `A e = r` from zero.
    pub(super) fn relax_zero(&mut self, level: usize, omega: f64) -> Result<()> {
        // Of the finest level the solution is wanted later: in one exchange.
        let more = [(Kind::R, DEEP + 1), (Kind::U, self.levels[0].around())];
        self.refresh(level, if level == 0 { &more } else { &more[..1] })?;
        let l = &self.levels[level];
        let launch = self.nodes_with(&self.kernels.relax_zero, level, DEEP).arg(l.r()).arg(l.e());
        // SAFETY: the arguments of `relax_zero` in order.
        unsafe { number(launch, self.inner, omega).run() }?;
        let l = &mut self.levels[level];
        l.e_reach = l.share.reach(DEEP);
        Ok(())
    }

    /// `e = 0`.
    pub(super) fn clear(&mut self, level: usize) -> Result<()> {
        let l = &mut self.levels[level];
        l.e_reach = EVERYWHERE;
        self.cuda.fill_zero(&mut l.e.buffer)
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
        self.swapped = false;
        let wanted = wanted(target);
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
                    // What was before the last sweep is only known on the own slabs.
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

    /// Slabs beside the own ones on which a sweep that takes off `taken` can be made, `wanted` at most: as many as are copied, or as are
    /// up to date.
    fn room(&mut self, target: Target, level: usize, wanted: Reach, taken: Reach) -> Result<Reach> {
        let kind = if target == Target::Correction { Kind::E } else { Kind::U };
        let l = &self.levels[level];
        let reach = |l: &Fields| if kind == Kind::E { l.e_reach } else { l.u_reach };
        if !l.share.divided() {
            return Ok(0);
        }
        let most = wanted.min(l.share.depth - taken);
        if reach(l) < taken {
            self.refresh(level, &[(kind, most + taken), (Kind::R, if kind == Kind::E { most + taken } else { 0 })])?;
        }
        let to = most.min(reach(&self.levels[level]) - taken);
        if kind == Kind::E {
            self.refresh(level, &[(Kind::R, to + taken)])?;
        }
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
        self.refresh(level, &[(Kind::U, SWEPT)])?;
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

    /// `r_{l+1} = R (r - A e)`, or `R r`.
    pub(super) fn restrict(&mut self, level: usize, from_zero: bool) -> Result<()> {
        let wants = [(Kind::R, 1), (Kind::E, 2)];
        self.refresh(level, if from_zero { &wants[..1] } else { &wants })?;
        let (l, c) = (&self.levels[level], &self.levels[level + 1]);
        let launch = self.restricting(&self.kernels.restrict_residual, level).arg(l.r());
        let launch = if from_zero { launch.arg(0_u64) } else { launch.arg(l.e()) };
        // SAFETY: the arguments of `restrict_residual` in order; no correction means zero.
        unsafe { launch.arg(c.r()).run() }?;
        self.restricted(level)
    }

    /// A launch that restricts to the slabs of the level below that lie on this part's.
    pub(super) fn restricting<'a>(&self, kernel: &'a Kernel, level: usize) -> Launch<'a> {
        let (l, c) = (&self.levels[level], &self.levels[level + 1]);
        let below = self.own_below(level);
        let argument = if l.share.divided() { c.over(&(below.start as isize..below.end as isize)) } else { c.argument };
        let n: [u32; 3] = std::array::from_fn(|d| {
            let axis = argument.axes()[d];
            ((axis.end - axis.begin) as u32).div_ceil(COARSE[d])
        });
        kernel.launch(n, RESTRICTING).arg(l.argument).arg(argument)
    }

    /// `e += P e_{l+1}`, before so many sweeps.
    pub(super) fn prolong(&mut self, level: usize, nu: u32) -> Result<()> {
        let l = &self.levels[level];
        let wanted = (wanted(Target::Correction) + 2 * nu as usize).min(l.share.depth);
        self.refresh(level, &[(Kind::E, if l.e_reach == 0 { wanted } else { 0 })])?;
        // A slab beside lies between two coarse ones.
        let coarse = |reach: Reach| reach / 2 + 1;
        let wanted = wanted.min(self.levels[level].e_reach);
        self.refresh(level + 1, &[(Kind::E, coarse(wanted))])?;
        let (l, c) = (&self.levels[level], &self.levels[level + 1]);
        let beside = if c.e_reach == EVERYWHERE { wanted } else { wanted.min(2 * (c.e_reach - 1)) };
        let launch = self.nodes_with(&self.kernels.prolong, level, beside).arg(c.argument);
        // SAFETY: the arguments of `prolong` in order.
        unsafe { launch.arg(c.e()).arg(l.e()).run() }?;
        let l = &mut self.levels[level];
        l.e_reach = l.share.reach(beside);
        Ok(())
    }
}
