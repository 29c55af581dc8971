//! The domain, what stands on its sides, and arrays over it with guard nodes.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Guard nodes below the domain, per axis: a quadratic shape reaches one node below its cell, and a particle may have
/// moved to the next cell.
pub const BELOW: usize = 2;
/// Guard nodes above the last cell's lower corner, per axis.
pub const ABOVE: usize = 3;
/// Rows begin at multiples of this many values: whole cache lines in single precision.
const ALIGN: usize = 16;

/// Boundary condition for the fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(extend("x-synonyms" = { "open": "absorbing", "pml": "absorbing", "cpml": "absorbing", "outflow": "absorbing", "conductor": "pec", "conducting": "pec", "metal": "pec", "reflecting": "pec", "magnetic": "pmc", "cyclic": "periodic" }))]
pub enum FieldSide {
    /// Continues at the opposite side.
    Periodic,
    /// Electric conductor: tangential E, normal B zero.
    Pec,
    /// Magnetic conductor: tangential H, normal D zero.
    Pmc,
    /// Convolutional perfectly matched layer in the domain, a conductor behind (Roden and Gedney 2000).
    Absorbing,
}

/// Boundary condition for particles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(extend("x-synonyms" = { "reflecting": "reflect", "reflective": "reflect", "mirror": "reflect", "specular": "reflect", "absorbing": "absorb", "open": "absorb", "outflow": "absorb", "remove": "absorb", "reinject": "thermal", "reinjecting": "thermal", "diffuse": "thermal", "cyclic": "periodic" }))]
pub enum ParticleSide {
    /// Re-enter at the opposite side.
    Periodic,
    /// The normal momentum is reversed.
    Reflect,
    /// Removed; charge and energy go to the ledger.
    Absorb,
    /// Returned with the wall's Maxwellian flux.
    Thermal,
}

/// The domain: `cells` cells of `h` per axis; one dimension has `cells[1] == 1` and is periodic in y.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// Cells per axis, x first.
    pub cells: [usize; 2],
    /// Size of a cell, `c/w_n`.
    pub h: [f64; 2],
    /// Corner of the first cell, `c/w_n`, without what a window has moved.
    pub origin: [f64; 2],
    /// Time step, `1/w_n`.
    pub dt: f64,
    /// Fields at the lower and upper side of each axis.
    pub fields: [[FieldSide; 2]; 2],
    /// Particles at the lower and upper side of each axis.
    pub particles: [[ParticleSide; 2]; 2],
    /// Number of space dimensions, 1 or 2.
    pub dimensions: usize,
    /// Rows of cells that arrays hold, those of one part of a run; all of them where there is nothing. Cells and nodes are counted
    /// from the corner of the domain in any case.
    pub part: Option<Range<usize>>,
}

impl Grid {
    /// True if the fields of an axis are periodic.
    pub fn periodic(&self, axis: usize) -> bool {
        self.fields[axis][0] == FieldSide::Periodic
    }

    /// Corners of an axis that carry values of their own: one per cell, and the last one where the axis is not periodic.
    pub fn nodes(&self, axis: usize) -> usize {
        self.cells[axis] + usize::from(!self.periodic(axis))
    }

    /// Values from a row's begin to the next one's.
    pub fn pitch(&self) -> usize {
        (BELOW + self.cells[0] + ABOVE).next_multiple_of(ALIGN)
    }

    /// Values from a row's begin to that of the row above it: none on a line, whose one row has itself for neighbours.
    pub fn across(&self) -> usize {
        if self.dimensions == 1 { 0 } else { self.pitch() }
    }

    /// Rows of cells that arrays hold.
    pub fn held(&self) -> Range<usize> {
        self.part.clone().unwrap_or(0..self.cells[1])
    }

    /// Cells per axis that arrays hold.
    pub fn cells_held(&self) -> [usize; 2] {
        [self.cells[0], self.held().len()]
    }

    /// Corners per axis that arrays hold with values of their own.
    pub fn nodes_held(&self) -> [usize; 2] {
        [self.nodes(0), self.inside().len()]
    }

    /// The domain with arrays over all of it.
    #[must_use]
    pub fn whole(&self) -> Self {
        Self { part: None, ..self.clone() }
    }

    /// True if the rows of another part come next at the lower or the upper end of axis 1.
    pub fn continues(&self, end: usize) -> bool {
        self.part.as_ref().is_some_and(|held| self.periodic(1) || [held.start > 0, held.end < self.cells[1]][end])
    }

    /// Number of the row of an array that holds the nodes `j` of axis 1.
    pub fn place(&self, j: isize) -> usize {
        let place = j + BELOW as isize - self.part.as_ref().map_or(0, |held| held.start as isize);
        debug_assert!(place >= 0, "row {j} is below the guards");
        place as usize
    }

    /// Rows of an array whose nodes carry values of their own and belong to this part and no other.
    pub fn inside(&self) -> Range<usize> {
        let held = self.held();
        BELOW..BELOW + held.len() + usize::from(held.end == self.cells[1] && !self.periodic(1))
    }

    /// Rows, guards included.
    pub fn rows(&self) -> usize {
        BELOW + self.held().len() + ABOVE
    }

    /// Values of an array, guards included.
    pub fn len(&self) -> usize {
        self.pitch() * self.rows()
    }

    /// True if there are no values; never, but clippy asks.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Place of corner `(i, j)` in an array; guards have negative indices, or indices from `cells` on.
    pub fn index(&self, i: isize, j: isize) -> usize {
        debug_assert!(i >= -(BELOW as isize), "({i}, {j}) is below the guards");
        self.place(j) * self.pitch() + (i + BELOW as isize) as usize
    }

    /// Places of the cells `0..cells[0]` of row `j`.
    pub fn row(&self, j: isize) -> Range<usize> {
        let begin = self.index(0, j);
        begin..begin + self.cells[0]
    }

    /// Largest stable time step of the Yee grid, `1/sqrt(sum 1/h^2)` over the axes in use.
    pub fn courant_limit(&self) -> f64 {
        self.h[..self.dimensions].iter().map(|h| 1.0 / (h * h)).sum::<f64>().sqrt().recip()
    }

    /// Area of a cell (length in one dimension).
    pub fn cell_volume(&self) -> f64 {
        self.h[..self.dimensions].iter().product()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(cells: [usize; 2], dimensions: usize) -> Grid {
        Grid {
            cells,
            h: [0.1, 0.2],
            origin: [0.0; 2],
            dt: 0.05,
            fields: [[FieldSide::Periodic; 2], [FieldSide::Pec; 2]],
            particles: [[ParticleSide::Periodic; 2], [ParticleSide::Reflect; 2]],
            dimensions,
            part: None,
        }
    }

    #[test]
    fn indices_and_nodes_follow_the_sides() {
        let g = grid([20, 7], 2);
        assert_eq!((g.nodes(0), g.nodes(1)), (20, 8));
        assert_eq!(g.index(-2, -2), 0);
        assert_eq!(g.pitch(), 32);
        assert_eq!(g.row(3), g.index(0, 3)..g.index(20, 3));
        assert!(g.index(22, 9) < g.len() && g.rows() == 12);
    }

    #[test]
    fn a_part_holds_its_rows_and_their_guards() {
        let part = |held: Range<usize>| Grid { part: Some(held), ..grid([20, 7], 2) };
        let (low, high) = (part(0..3), part(3..7));
        assert_eq!((low.rows(), high.rows()), (8, 9));
        assert_eq!((low.inside(), high.inside()), (2..5, 2..7));
        assert_eq!((high.index(-2, 1), high.index(0, 3)), (0, 2 * 32 + 2));
        assert_eq!([0, 1].map(|end| (low.continues(end), high.continues(end))), [(false, true), (true, false)]);
        assert!(!grid([20, 7], 2).continues(1) && high.whole() == grid([20, 7], 2));
    }

    #[test]
    fn the_courant_limit_counts_the_axes_in_use() {
        let limit = grid([20, 7], 2).courant_limit();
        assert!((limit - 1.0 / (100.0_f64 + 25.0).sqrt()).abs() < 1e-15);
        assert!((grid([20, 1], 1).courant_limit() - 0.1).abs() < 1e-15);
    }
}
