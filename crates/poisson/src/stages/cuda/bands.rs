//! Division of a level into bands of rows by the marching kernels.

use zellige_engine::cuda::{Cuda, Kernel};
use zellige_engine::error::Result;

use super::program::{Kernels, OWN, OnSolution, OperatorWeights, WARPS};

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
pub(super) struct BandHeights {
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
    pub descend_solution: usize,
    pub descend_solution_norms: usize,
    pub descend_zero_norms: usize,
    pub interpolate_descend: usize,
    pub ascend_descend: usize,
    pub ascend_solution_norms: usize,
    pub ascend_solution: usize,
}

impl BandHeights {
    /// Heights on a level of `nodes` columns and rows.
    pub(super) fn new(
        cuda: &Cuda,
        (kernels, on_solution): (&Kernels, Option<&OnSolution>),
        weights: OperatorWeights,
        nodes: [usize; 2],
    ) -> Result<Self> {
        let (down, ascend_finest, correct) = kernels.passes(weights);
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
            ascend: rows(ascend_finest, 8, 6)?,
            correct: rows(correct, 10, 6)?,
            carry: rows(&kernels.ascend_carry_plain, 10, 6)?,
            sweep: rows(&kernels.sweep, 4, 4)?,
            two_sweeps: rows(&kernels.two_sweeps, 8, 6)?,
            residual: rows(&kernels.marching_residual, 4, 4)?,
            restrict: rows(&kernels.full_restrict, 2, 4)?,
            restrict_two: of(&kernels.full_restrict_two, OWN_TWO, 4, 4)?.next_multiple_of(4),
            interpolate: rows(&kernels.full_residual, 4, 4)?,
            descend_solution: solution(|k| &k.descend_solution, OWN, 8)?,
            descend_solution_norms: solution(|k| &k.descend_solution_norms, OWN, 10)?,
            descend_zero_norms: solution(|k| &k.descend_zero_norms, OWN, 10)?,
            interpolate_descend: solution(|k| &k.interpolate_descend, OWN, 8)?,
            ascend_descend: solution(|k| &k.ascend_descend, OWN_TURN, 12)?,
            ascend_solution_norms: solution(|k| &k.ascend_solution_norms, OWN, 8)?,
            ascend_solution: solution(|k| &k.ascend_solution, OWN, 8)?,
        })
    }

    /// The largest height of the passes of cycles and sweeps; `on_solution`: of those over the solution too; `full`: and of those
    /// of full multigrid.
    pub(super) fn largest(&self, on_solution: bool, full: bool) -> usize {
        let always = [self.descend, self.ascend, self.correct, self.residual, self.sweep, self.two_sweeps];
        let solution = [self.descend_solution, self.ascend_solution_norms, self.ascend_solution, self.interpolate_descend];
        let of_full = [self.restrict, self.restrict_two, self.interpolate];
        let some = |heights: &[usize], are: bool| heights.iter().copied().filter(|_| are).max().unwrap_or(0);
        some(&always, true).max(some(&solution, on_solution)).max(some(&of_full, full))
    }

    /// The least height of the passes that leave a partial sum a warp.
    pub(super) fn min_height_with_sums(&self) -> usize {
        [
            self.correct,
            self.carry,
            self.residual,
            self.descend_solution_norms,
            self.descend_zero_norms,
            self.ascend_descend,
            self.ascend_solution_norms,
        ]
        .into_iter()
        .min()
        .unwrap_or(1)
    }
}
