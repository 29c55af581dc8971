//! The fields of a level and the ways through it.

use std::ops::Range;

use zellige_engine::cuda::{Buffer, Cuda};
use zellige_engine::error::Result;

use super::arguments;
use super::bands::BandHeights;
use super::parts::{EVERYWHERE, Places, Reach, Share};
use super::program::{Kernels, NODES, OnSolution, OperatorWeights, ROWS};
use super::tables::halves;
use crate::grid::{Axis, Grid, Level};

/// Least nodes an axis where full multigrid's passes march: the window of coarse nodes wraps around at most once.
pub(super) const LEAST_FULL: usize = 64;

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

/// Field of a level: values of the slabs that this part holds.
pub(super) struct Field {
    pub(super) buffer: Buffer<u8>,
    /// Bytes of the level before them.
    pub(super) skipped: u64,
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
    /// This part's slabs, and the slabs beside them on which fields are up to date.
    pub share: Share,
    pub(super) places: Places,
    pub(super) r_reach: Reach,
    pub(super) e_reach: Reach,
    pub(super) u_reach: Reach,
    pub(super) f_reach: Reach,
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

    /// Blocks of the kernels with sums.
    pub(super) fn sums(&self) -> (u32, u32, u32) {
        sums(&self.argument)
    }

    /// Slabs: planes, or rows of a plane grid.
    pub(super) fn slabs(&self) -> usize {
        if self.argument.z.n > 1 { self.argument.z.n as usize } else { self.argument.y.n as usize }
    }

    /// Slabs beside the own ones that kernels with sums read: rows are taken by whole blocks.
    pub(super) fn around(&self) -> Reach {
        if self.argument.z.n > 1 { 1 } else { EVERYWHERE }
    }

    /// Slabs of a block of the kernels with sums.
    pub(super) fn sum_height(&self) -> usize {
        if self.argument.z.n > 1 { 1 } else { (ROWS * NODES.1) as usize }
    }

    /// Blocks of the kernels with sums to so many slabs.
    pub(super) fn sums_each(&self) -> usize {
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
pub(super) fn sums(level: &arguments::Level) -> (u32, u32, u32) {
    let (x, y, z) = blocks(level);
    (x, y.div_ceil(ROWS), z)
}

/// Ways through a level.
pub(super) struct Passes {
    pub(super) marches: bool,
    pub(super) fused: bool,
    pub(super) weights: OperatorWeights,
    pub(super) heights: BandHeights,
}

impl Passes {
    pub(super) fn new(cuda: &Cuda, kernels: (&Kernels, Option<&OnSolution>), level: &Level) -> Result<Self> {
        let [x, y, z] = [0, 1, 2].map(|d| &level.grid.axes[d]);
        let whole = !x.periodic() || x.nodes.is_multiple_of(4);
        let marches = z.is_flat() && !seam(&level.grid) && whole && x.nodes >= 16 && y.nodes >= 16;
        let fused = marches && level.transfer.as_ref().is_some_and(|t| halves(&t[0]) && halves(&t[1]));
        let weights = if fused { weights(x, y) } else { OperatorWeights::General };
        Ok(Self { marches, fused, weights, heights: BandHeights::new(cuda, kernels, weights, [x.nodes, y.nodes])? })
    }

    /// The most rows of a band, those of the kernels with sums included.
    pub(super) fn largest(&self, on_solution: bool, full: bool) -> usize {
        let sums = (ROWS * NODES.1) as usize;
        if self.marches { self.heights.largest(on_solution && self.fused, full).max(sums) } else { sums }
    }
}
