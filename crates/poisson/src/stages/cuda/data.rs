//! The fields of one problem on a GPU and the launches of the kernels on them. Which kernels make a stage is in
//! `mod.rs`.

use zellige_engine::cuda::{Buffer, Cuda, Kernel, Launch, Mapped, Pool};
use zellige_engine::error::Result;
use zellige_engine::links::Links;

use super::arguments;
use super::bands::{OWN_TURN, bands};
use super::bottom::BottomSolver;
use super::fields::{Field, Fields, LEAST_FULL, Passes, blocks};
use super::parts::{EVERYWHERE, Kind, Parts, Places, Reach, Share};
use super::program::{COARSE, Kernels, NODES, OnSolution, RESTRICTING, WARPS};
use super::smoother::ascended;
use super::tables::{Number, Tables};
use crate::grid::Level;

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
    pub(super) totals: Buffer<f64>,
    pub(super) arrived: Buffer<u32>,
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
        let heights: Vec<usize> = passes.iter().map(|p| p.largest(on_solution.is_some(), full)).collect();
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
                f_reach: EVERYWHERE,
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
        self.restricted(level, Kind::R)
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
        self.refresh(level, &[(Kind::R, EVERYWHERE), (Kind::U, EVERYWHERE), (Kind::F, EVERYWHERE)])?;
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
            self.join_bands(level, [x, y], height)?;
        }
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
        self.restricted(level, Kind::R)
    }

    /// The level below with its slabs that lie on this part's.
    pub(super) fn below(&self, level: usize) -> arguments::Level {
        let (l, c) = (&self.levels[level], &self.levels[level + 1]);
        let slabs = self.own_below(level);
        if l.share.divided() { c.over(&(slabs.start as isize..slabs.end as isize)) } else { c.argument }
    }

    /// A launch that restricts to the slabs of the level below that lie on this part's.
    pub(super) fn restricting<'a>(&self, kernel: &'a Kernel, level: usize) -> Launch<'a> {
        let argument = self.below(level);
        let n: [u32; 3] = std::array::from_fn(|d| {
            let axis = argument.axes()[d];
            ((axis.end - axis.begin) as u32).div_ceil(COARSE[d])
        });
        kernel.launch(n, RESTRICTING).arg(self.levels[level].argument).arg(argument)
    }

    /// `e += P e_{l+1}`, before so many sweeps.
    pub(super) fn prolong(&mut self, level: usize, nu: u32) -> Result<()> {
        let l = &self.levels[level];
        let wanted = (ascended(level) + 2 * nu as usize).min(l.share.depth);
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
