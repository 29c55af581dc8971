//! The domain: a line or a plane of equal cells.

use std::ops::Range;

/// Cells of equal size; one dimension is a plane one cell high and periodic in y, none is a single periodic cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// Cells per axis, x first.
    pub cells: [usize; 2],
    /// Size of a cell, m.
    pub h: [f64; 2],
    /// Lower corner of the first cell, m.
    pub origin: [f64; 2],
    /// Space dimensions, 0 to 2.
    pub dimensions: usize,
}

/// A rectangle of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rectangle {
    /// Lowest cell.
    pub lower: [usize; 2],
    /// One past the highest cell, on each axis.
    pub upper: [usize; 2],
}

impl Rectangle {
    /// Cells along an axis.
    pub fn range(&self, axis: usize) -> Range<usize> {
        self.lower[axis]..self.upper[axis]
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.range(0).len() * self.range(1).len()
    }

    /// True if there are no cells.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Cells that lie in another one too.
    #[must_use]
    pub fn common(&self, other: Self) -> Self {
        let lower = [0, 1].map(|axis| self.lower[axis].max(other.lower[axis]));
        Self { lower, upper: [0, 1].map(|axis| self.upper[axis].min(other.upper[axis]).max(lower[axis])) }
    }

    /// Number of a cell among those of the rectangle: x runs fastest.
    pub fn index(&self, cell: [usize; 2]) -> usize {
        (cell[1] - self.lower[1]) * self.range(0).len() + cell[0] - self.lower[0]
    }

    /// Cell of a number.
    pub fn cell(&self, index: usize) -> [usize; 2] {
        let width = self.range(0).len();
        [self.lower[0] + index % width, self.lower[1] + index / width]
    }
}

/// A side of the domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Side {
    /// 0 for x, 1 for y.
    pub axis: usize,
    /// True if it is the upper one.
    pub upper: bool,
}

impl Side {
    /// All four: x below and above, y below and above.
    pub const ALL: [Self; 4] =
        [Self { axis: 0, upper: false }, Self { axis: 0, upper: true }, Self { axis: 1, upper: false }, Self { axis: 1, upper: true }];

    /// Index in [`Side::ALL`].
    pub fn index(self) -> usize {
        2 * self.axis + usize::from(self.upper)
    }

    /// Name in inputs and results: `x_lo`, `x_hi`, `y_lo`, `y_hi`.
    pub fn name(self) -> &'static str {
        ["x_lo", "x_hi", "y_lo", "y_hi"][self.index()]
    }

    /// Unit normal into the domain.
    pub fn normal(self) -> [f64; 2] {
        let mut normal = [0.0; 2];
        normal[self.axis] = if self.upper { -1.0 } else { 1.0 };
        normal
    }
}

impl Grid {
    /// Number of cells.
    pub fn len(&self) -> usize {
        self.cells[0] * self.cells[1]
    }

    /// True if there are no cells; a checked input has some.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of cell `(i, j)`: x runs fastest.
    pub fn index(&self, cell: [usize; 2]) -> usize {
        cell[1] * self.cells[0] + cell[0]
    }

    /// Cell of a number.
    pub fn cell(&self, index: usize) -> [usize; 2] {
        [index % self.cells[0], index / self.cells[0]]
    }

    /// Volume of a whole cell, m^3: per metre in the directions that the grid does not have.
    pub fn volume(&self) -> f64 {
        self.h[0] * self.h[1]
    }

    /// Length of the domain along an axis, m.
    pub fn length(&self, axis: usize) -> f64 {
        self.h[axis] * self.cells[axis] as f64
    }

    /// A position in a cell, m.
    pub fn position(&self, cell: [usize; 2], offset: [f64; 2]) -> [f64; 2] {
        [0, 1].map(|d| self.origin[d] + (cell[d] as f64 + offset[d]) * self.h[d])
    }
}
