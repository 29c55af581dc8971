//! Amount of smoothing on each level of a cycle.
//!
//! Most grids need one sweep before and one after the coarse correction, with the best factor for square cells. Where that leaves a
//! cycle slow, it is at single lines or on stretched cells of coarse levels, which are cheap: they get another factor and more
//! sweeps. Numbers from measured factors of whole cycles, of 0.3 and less without them; `tests/all/every_grid.rs` holds what they
//! give.

use crate::grid::{Axis, Grid, Level};

/// The sweeps and the factor of red-black relaxation that a level needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Smoothing {
    /// Sweeps before the coarse correction, at least.
    pub pre: u32,
    /// Sweeps after it, at least.
    pub post: u32,
    /// Factor of relaxation.
    pub omega: f64,
}

/// Best factor on square cells, in the plane and in space: it takes the overshoot of full weighting and linear interpolation down.
const PLANE: f64 = 1.15;
const SPACE: f64 = 1.2;
/// Factor on levels with an uneven axis, whatever the dimension.
const UNEVEN: f64 = 1.25;
/// Bound of `omega (1 + coupling)` of [`paired`] nodes: that of square cells, where neighbours keep the difference from growing.
const PAIRED: f64 = 2.05;
/// Control volumes beyond a Neumann end from which on it takes more than a sweep.
const WIDE_TAIL: f64 = 0.6;
/// Spacings that differ by this factor make coarse levels slow that are coarsened along all axes.
const STRETCHED: f64 = 1.2;
/// Limit in space, where the finest level is slow too.
const STRETCHED_SPACE: f64 = 1.05;

/// Periodic, with two nodes of one colour side by side or an interval shorter than the others.
fn uneven(axis: &Axis) -> bool {
    axis.periodic() && !axis.is_flat() && (axis.nodes % 2 == 1 || axis.theta != 1.0)
}

/// Coupling of the two nodes of one colour side by side on a periodic axis of odd length, over the diagonal: relaxed at once, their
/// difference is multiplied by `1 - omega (1 + coupling)`. Zero for other axes.
fn paired(grid: &Grid, d: usize) -> f64 {
    let axis = &grid.axes[d];
    if axis.is_flat() || !axis.periodic() || axis.nodes.is_multiple_of(2) {
        return 0.0;
    }
    let others = (0..3).filter(|o| *o != d && !grid.axes[*o].is_flat());
    let least = |a: &Axis| a.unknowns().map(|i| a.weights(i)).map(|(w, e)| w + e).fold(f64::INFINITY, f64::min);
    // The interval between the last node and the first is the short one.
    let (west, east) = axis.weights(0);
    west / (west + east + others.map(|o| least(&grid.axes[o])).sum::<f64>())
}

/// Smoothing for level `l` of a hierarchy.
pub fn of(levels: &[Level], l: usize) -> Smoothing {
    let Level { grid, transfer } = &levels[l];
    let axes = || grid.axes.iter().filter(|axis| !axis.is_flat());
    let space = grid.dimensions() == 3;
    let mut need = Smoothing { pre: 1, post: 1, omega: if space { SPACE } else { PLANE } };
    if axes().any(uneven) {
        let sweeps = if axes().any(|a| a.periodic() && a.theta != 1.0) { 4 } else { 2 };
        let omega = (0..3).fold(UNEVEN, |omega, d| omega.min(PAIRED / (1.0 + paired(grid, d))));
        return Smoothing { pre: sweeps, post: sweeps, omega };
    }
    if axes().any(|a| a.tail > WIDE_TAIL) {
        return Smoothing { pre: 2, post: 2, omega: UNEVEN };
    }
    if space && axes().any(|a| a.tail > 0.0) {
        need.omega = UNEVEN;
    }
    // Axes that could still be coarsened: the others are short, and their modes far from smooth.
    let spacings = || axes().filter(|a| a.can_coarsen()).map(|a| a.h);
    let stretch = spacings().fold(0.0, f64::max) / spacings().fold(f64::INFINITY, f64::min);
    let waits = |d: usize| grid.axes[d].can_coarsen() && transfer.as_ref().is_some_and(|t| !t[d].coarsened);
    if (0..3).any(waits) {
        // Along the strong coupling alone: over-relaxation leaves more of what is rough across it.
        need.omega = if space { 1.1 } else { 1.0 };
        need.pre = if space { 2 } else { 1 };
    } else if space && stretch > STRETCHED_SPACE {
        need.pre = 2;
    } else if l > 0 && stretch > STRETCHED {
        (need.pre, need.post) = (2, 2);
    }
    need
}
