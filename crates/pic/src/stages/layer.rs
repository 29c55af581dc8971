//! The absorbing layer: coefficients of a convolutional perfectly matched layer (CPML).
//!
//! In the layer a derivative across it becomes `D / kappa + psi` with `psi' = -(sigma/kappa + alpha) psi - sigma/kappa^2 D`:
//! the stretched coordinate `s = kappa + sigma / (alpha + d/dt)` as a recursive convolution. `psi` is advanced once a step,
//! when its D is new, and the same value serves the two half steps of B around that time.
//!
//! Graded by the depth `d` into the layer, 0 at the inner edge and 1 at the wall: `sigma = SIGMA d^3` in units of `1/h`,
//! `kappa = 1 + (KAPPA - 1) d^3`, `alpha = ALPHA (1 - d)` in `w_n`. A wave meets `exp(-2 integral sigma cos)` on its way to
//! the conductor behind and back, `alpha` takes care of slowly varying fields. The figures are those for which 10 cells
//! leave the least of a pulse; `tests/all/waves.rs` holds what they leave.
//!
//! Source: Roden and Gedney, Microw. Opt. Technol. Lett. 27 (2000) 334; the optimum of sigma: Taflove and Hagness,
//! Computational Electrodynamics (2005), eq. 7.66.

use bytemuck::Pod;
use zellige_engine::error::Result;

use super::part::Part;
use crate::grid::{FieldSide, Grid};

/// Conductivity at the wall times the cell: `0.8 (m + 1)` for the grading `m = 3`.
pub const SIGMA: f64 = 3.2;
/// Stretch at the wall. Any is worse for waves: 3 leaves 5e-3 instead of 8e-4 where a wave has 8 cells, and as much elsewhere.
pub const KAPPA: f64 = 1.0;
/// Shift of the pole at the inner edge, `w_n`.
pub const ALPHA: f64 = 0.1;

/// Coefficients at one node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coefficients {
    /// `psi` of the step before is kept by this factor.
    pub keep: f64,
    /// The derivative enters `psi` by this factor.
    pub feed: f64,
    /// `1/kappa - 1`: factor of the derivative itself.
    pub stretch: f64,
}

/// The layers of one axis: coefficients by the distance from the wall, the same for both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Sides that have one.
    pub sides: [bool; 2],
    /// Cells, 0 where no side has a layer.
    pub cells: usize,
    /// At corners `s = 0..cells` from the wall, the wall first.
    pub corner: Vec<Coefficients>,
    /// Halfway, `s + 1/2` cells from the wall.
    pub half: Vec<Coefficients>,
}

impl Layer {
    /// The layers of an axis that are `cells` thick.
    ///
    /// # Panics
    /// Where two layers would overlap: the configuration is checked for it.
    pub fn new(grid: &Grid, axis: usize, cells: usize) -> Self {
        // A layer of no cells leaves the conductor behind it.
        let sides = grid.fields[axis].map(|side| side == FieldSide::Absorbing && cells > 0);
        let cells = if sides == [false; 2] { 0 } else { cells };
        assert!(sides.iter().filter(|s| **s).count() * cells < grid.cells[axis].max(1), "absorbing layers leave room between them");
        let at = |from_wall: f64| {
            let depth = 1.0 - from_wall / cells as f64;
            let sigma = SIGMA / grid.h[axis] * depth.powi(3);
            let kappa = 1.0 + (KAPPA - 1.0) * depth.powi(3);
            let rate = sigma / kappa + ALPHA * (1.0 - depth);
            let keep = (-rate * grid.dt).exp();
            // The limit of a rate of zero needs no case of its own: sigma is zero there only at the inner edge.
            Coefficients { keep, feed: sigma / (kappa * kappa * rate) * (keep - 1.0), stretch: 1.0 / kappa - 1.0 }
        };
        Self { sides, cells, corner: (0..cells).map(|s| at(s as f64)).collect(), half: (0..cells).map(|s| at(s as f64 + 0.5)).collect() }
    }

    /// Coefficients of a kind of node.
    pub fn at(&self, half: bool) -> &[Coefficients] {
        if half { &self.half } else { &self.corner }
    }
}

/// Index on an axis of `n` cells of the node `s` from the wall of a side.
pub fn node(n: usize, half: bool, upper: bool, s: usize) -> usize {
    match (upper, half) {
        (false, _) => s,
        (true, true) => n - 1 - s,
        (true, false) => n - s,
    }
}

/// Axis of each of the four derivatives in the equations of B and of E: `dEz/dy, dEz/dx, dEx/dy, dEy/dx` and
/// `dBz/dy, dBz/dx, dBy/dx, dBx/dy`.
pub const AXES: [[usize; 4]; 2] = [[1, 0, 1, 0], [1, 0, 0, 1]];

/// `psi` of one derivative at one side. Across x it has `cells` values a row, across y `cells` rows; the wall comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// 0 for B, 1 for E.
    pub field: usize,
    /// Number of the derivative, as in [`AXES`].
    pub term: usize,
    /// 0 for the lower side.
    pub side: usize,
    /// Values that lie together: what a window moves by one place.
    pub row: usize,
    /// Values in all.
    pub len: usize,
}

impl Memory {
    /// All that the layers of both axes need.
    pub fn all(layers: &[Layer; 2], grid: &Grid) -> Vec<Self> {
        let mut all = Vec::new();
        for (field, axes) in AXES.iter().enumerate() {
            for (term, axis) in axes.iter().enumerate() {
                let layer = &layers[*axis];
                let (row, rows) = if *axis == 0 { (layer.cells, grid.rows()) } else { (grid.pitch(), layer.cells) };
                let sides = [0, 1].into_iter().filter(|side| layer.sides[*side]);
                all.extend(sides.map(|side| Self { field, term, side, row, len: row * rows }));
            }
        }
        all
    }

    /// Its name in checkpoints.
    pub fn name(&self) -> String {
        format!("layer_{}_{}_{}", ["b", "e"][self.field], self.term, self.side)
    }

    /// Memory of the whole domain from that of a part's rows, at the first part; nothing at the others. Layers across y have
    /// `cells` cells.
    pub(in crate::stages) fn whole<V: Pod>(&self, part: &Part, grid: &Grid, cells: usize, own: &[V]) -> Result<Vec<V>> {
        if AXES[self.field][self.term] == 0 {
            return part.whole(grid, own, self.row, false);
        }
        debug_assert_eq!(own.len(), cells * self.row);
        // Across y, B has its derivatives halfway, E at corners.
        let node = |s: usize| node(grid.cells[1], self.field == 0, self.side == 1, s);
        part.picked(grid, own, self.row, &|s| part.holder(node(s) as isize))
    }

    /// A part's share of the memory of the whole domain.
    pub(in crate::stages) fn share<V: Copy>(&self, part: &Part, grid: &Grid, whole: &[V]) -> Vec<V> {
        if AXES[self.field][self.term] == 0 { part.share(grid, whole, self.row) } else { whole.to_vec() }
    }

    /// True if a window moves its values towards the start of a row: not where rows begin at an upper wall.
    pub fn moves_down(&self) -> bool {
        AXES[self.field][self.term] == 1 || self.side == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::ParticleSide;

    /// By hand, for 10 cells of 0.1 and steps of 0.05. At the wall sigma is 3.2/0.1 and alpha 0; halfway sigma is an eighth of
    /// that, 4, and alpha 0.05; half a cell from the inner edge sigma is 32 * 0.05^3 = 0.004 and alpha 0.095.
    #[test]
    fn conductivity_grows_with_the_third_power_of_the_depth_and_alpha_falls_with_it() {
        let grid = Grid {
            cells: [40, 1],
            h: [0.1, 1.0],
            origin: [0.0; 2],
            dt: 0.05,
            fields: [[FieldSide::Absorbing; 2], [FieldSide::Periodic; 2]],
            particles: [[ParticleSide::Absorb; 2], [ParticleSide::Periodic; 2]],
            dimensions: 1,
            part: None,
        };
        let layer = Layer::new(&grid, 0, 10);
        for (found, sigma, alpha) in [(layer.corner[0], 32.0, 0.0), (layer.corner[5], 4.0, 0.05), (layer.half[9], 0.004, 0.095)] {
            let keep = (-(sigma + alpha) * 0.05_f64).exp();
            let feed = sigma / (sigma + alpha) * (keep - 1.0);
            // Rounding of the depth, cubed.
            assert!((found.keep - keep).abs() < 1e-14 && (found.feed - feed).abs() < 1e-14, "{found:?}, not {keep} and {feed}");
            assert_eq!(found.stretch, 0.0);
        }
    }
}
