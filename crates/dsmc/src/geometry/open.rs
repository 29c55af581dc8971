//! Part of a side of the domain that bodies leave open.

use super::Geometry;
use super::lattice::ONE;
use crate::grid::Side;

impl Geometry {
    /// Part of a cell's face on a side of the domain that gas can come through: where [`Geometry::in_gas`] holds, to a step of the
    /// lattice.
    pub fn open_part(&self, cell: [usize; 2], side: Side) -> f64 {
        let (along, line) = (1 - side.axis, if side.upper { ONE } else { 0 });
        let mut marks = vec![0, ONE];
        for piece in self.pieces(cell[1] * self.cells[0] + cell[0]) {
            let [a, b] = [piece.a, piece.b].map(|p| p.map(i64::from));
            let (before, after) = (a[side.axis] - line, b[side.axis] - line);
            // A piece along the face ends it twice; one that ends on it does once.
            marks.extend([(before, a), (after, b)].iter().filter(|(off, _)| *off == 0).map(|(_, p)| p[along].clamp(0, ONE)));
        }
        marks.sort_unstable();
        let gas = |from: i64, to: i64| {
            let (mut offset, middle) = ([0.0; 2], (from + to) as f64 / (2 * ONE) as f64);
            (offset[side.axis], offset[along]) = (if side.upper { 1.0 } else { 0.0 }, middle);
            self.in_gas(cell, offset)
        };
        marks.windows(2).filter(|w| w[1] > w[0] && gas(w[0], w[1])).map(|w| (w[1] - w[0]) as f64 / ONE as f64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::refusals::{curve, plate};
    use super::super::{Curve, Form, Outlines};
    use super::*;
    use crate::grid::Grid;

    #[test]
    fn faces_are_open_where_no_body_covers_them() {
        let g = Grid { cells: [4, 5], h: [1.0, 2.0], origin: [-1.0, 0.0], dimensions: 2 };
        let make = |curves: &[Curve]| Geometry::new(&g, [false; 2], &Outlines::new(curves, &g).unwrap());
        let [left, right, low, _] = Side::ALL;
        let parts = |geometry: &Geometry, side: Side| -> Vec<f64> {
            let n = g.cells[1 - side.axis];
            let cell = |k: usize| {
                let mut cell = [k; 2];
                cell[side.axis] = if side.upper { g.cells[side.axis] - 1 } else { 0 };
                cell
            };
            (0..n).map(|k| geometry.open_part(cell(k), side)).collect()
        };
        let near = |found: &[f64], expected: &[f64]| {
            // Ends of pieces are rounded to a step of the lattice.
            assert!(
                found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 2.0 / ONE as f64) && found.len() == expected.len(),
                "{found:?}"
            );
        };
        // A block on the left side, from a quarter of the second cell to half of the fourth; a wedge whose tip is on the lower side and a
        // plate that ends there.
        let block = curve("b", &[[-1.0, 2.5], [0.5, 2.5], [0.5, 7.0], [-1.0, 7.0]]);
        let wedge = curve("w", &[[1.3, 0.0], [1.6, 1.0], [1.1, 1.0]]);
        let geometry = make(&[block, wedge, plate("p", &[[2.3, 0.0], [2.3, 0.7]])]);
        near(&parts(&geometry, left), &[1.0, 0.25, 0.0, 0.5, 1.0]);
        near(&parts(&geometry, right), &[1.0; 5]);
        near(&parts(&geometry, low), &[1.0; 4]);
        // A wedge with an edge on the right side; a duct.
        let slope = curve("s", &[[3.0, 3.0], [3.0, 4.2], [2.0, 4.2]]);
        near(&parts(&make(&[slope]), right), &[1.0, 0.5, 0.9, 1.0, 1.0]);
        let duct = [("lower", [[3.0, 4.5], [-1.0, 4.5]]), ("upper", [[-1.0, 5.5], [3.0, 5.5]])]
            .map(|(name, way)| Curve { form: Form::FromSideToSide, ..curve(name, &way) });
        near(&parts(&make(&duct), left), &[0.0, 0.0, 0.5, 0.0, 0.0]);
        near(&parts(&Geometry::empty(&g), left), &[1.0; 5]);
    }
}
