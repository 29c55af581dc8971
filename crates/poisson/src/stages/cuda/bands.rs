//! Division of a level into bands of rows by the marching kernels.

use zellige_engine::cuda::{Cuda, Kernel};
use zellige_engine::error::Result;

use super::program::{Kernels, OWN, OnSolution, WARPS, Weights};

/// Columns that a warp owns in the pass that has the halo of two cycles.
pub(super) const OWN_TURN: usize = 112;
/// Columns that a warp owns in the restriction over two levels.
pub(super) const OWN_TWO: usize = 124;
/// Largest number of rows of a marching band.
const MOST_ROWS: usize = 160;

/// Rows of a band such that the blocks just fill the GPU (`slots` at once) a whole number of times, `columns` of blocks
/// side by side. `halo` rows are repeated by each band; with them it is a whole number of `unroll` steps.
fn band_rows(rows: usize, columns: usize, slots: usize, halo: usize, unroll: usize) -> usize {
    // On small levels low bands are quicker, although they repeat most of their rows.
    let least = (rows / 110).clamp(6, 18);
    let whole = |rows: usize| (rows..rows + 2 * unroll).find(|h| h % 2 == 0 && (h + halo).is_multiple_of(unroll)).unwrap_or(rows);
    let height = |waves: usize| whole(rows.div_ceil((waves * slots / columns).max(1)).max(least));
    (1..=4)
        .map(|waves| (waves, height(waves)))
        .filter(|(w, h)| *h <= MOST_ROWS || *w == 4)
        .min_by_key(|(w, h)| w * (h + halo))
        .map_or(MOST_ROWS, |(_, h)| h)
}

/// Blocks of marching warps over `columns` and `rows`, `height` rows a band.
pub(super) fn bands(columns: usize, rows: usize, height: usize) -> (u32, u32) {
    bands_of(OWN, columns, rows, height)
}

/// Blocks of marching warps over `columns` and `rows`, for strips that own `own` columns.
pub(super) fn bands_of(own: usize, columns: usize, rows: usize, height: usize) -> (u32, u32) {
    (columns.div_ceil(own).div_ceil(WARPS as usize) as u32, rows.div_ceil(height) as u32)
}

/// Rows of the bands of the marching kernels.
pub(super) struct Heights {
    pub descend: usize,
    pub ascend: usize,
    pub correct: usize,
    pub carry: usize,
    pub sweep: usize,
    pub two_sweeps: usize,
    pub residual: usize,
    pub restrict: usize,
    pub restrict_two: usize,
    pub interpolate: usize,
    pub begin: usize,
    pub begin_norms: usize,
    pub begin_zero: usize,
    pub cubic: usize,
    pub turn: usize,
    pub end: usize,
    pub add: usize,
}

impl Heights {
    /// Heights on a level of `nodes` columns and rows.
    pub(super) fn new(
        cuda: &Cuda,
        (kernels, on_solution): (&Kernels, Option<&OnSolution>),
        weights: Weights,
        nodes: [usize; 2],
    ) -> Result<Self> {
        let (down, up, correct) = kernels.passes(weights);
        // `halo` and `unroll`: rows that a band repeats, and steps of a kernel's inner loop.
        let of = |kernel: &Kernel, own: usize, halo: usize, unroll: usize| -> Result<usize> {
            let slots = kernel.blocks_per_multiprocessor(32 * WARPS, 0)?.max(1) * cuda.properties().multiprocessors;
            Ok(band_rows(nodes[1], nodes[0].div_ceil(own).div_ceil(WARPS as usize), slots as usize, halo, unroll))
        };
        let rows = |kernel: &Kernel, halo: usize, unroll: usize| of(kernel, OWN, halo, unroll);
        let solution = |kernel: fn(&OnSolution) -> &Kernel, own: usize, halo: usize| {
            on_solution.map_or(Ok(MOST_ROWS), |k| of(kernel(k), own, halo, 6))
        };
        Ok(Self {
            descend: rows(down, 6, 4)?,
            ascend: rows(up, 8, 6)?,
            correct: rows(correct, 10, 6)?,
            carry: rows(&kernels.ascend_carry_plain, 10, 6)?,
            sweep: rows(&kernels.sweep, 4, 4)?,
            two_sweeps: rows(&kernels.two_sweeps, 8, 6)?,
            residual: rows(&kernels.marching_residual, 4, 4)?,
            restrict: rows(&kernels.full_restrict, 2, 4)?,
            restrict_two: of(&kernels.full_restrict_two, OWN_TWO, 4, 4)?.next_multiple_of(4),
            interpolate: rows(&kernels.full_residual, 4, 4)?,
            begin: solution(|k| &k.begin_solution, OWN, 8)?,
            begin_norms: solution(|k| &k.begin_norms, OWN, 10)?,
            begin_zero: solution(|k| &k.begin_zero, OWN, 10)?,
            cubic: solution(|k| &k.begin_cubic, OWN, 8)?,
            turn: solution(|k| &k.turn_solution, OWN_TURN, 12)?,
            end: solution(|k| &k.end_solution, OWN, 8)?,
            add: solution(|k| &k.add_solution, OWN, 8)?,
        })
    }

    /// The least height of the passes that leave a partial sum a warp.
    pub(super) fn least_with_sums(&self) -> usize {
        [self.correct, self.carry, self.residual, self.begin_norms, self.begin_zero, self.turn, self.end].into_iter().min().unwrap_or(1)
    }
}
