//! Cutting outlines along the faces of cells: the pieces that each cell holds, and the part of it that is solid.
//!
//! The solid part follows from Green's theorem, a sum over the pieces of `x dy`: a piece covers what is to its left in its own
//! cell, and whole cells further left. Nothing needs to be known of how pieces hang together, and the sum over all cells is
//! the area of the outline, because every crossing of a face is one number for the cells on both sides.

use zellige_device_macro::device;

use super::lattice::{BITS, FINE, Point, rounded};

/// A piece of a segment in a cell, on a lattice of 2^-24 of a cell, counted from the lower corner of the cell that lists it. The
/// gas is to the right of `a -> b`.
#[device]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Start point.
    pub a: [i32; 2],
    /// End point.
    pub b: [i32; 2],
    /// Number of the segment.
    pub segment: u32,
}

impl Piece {
    pub(super) fn ends(&self) -> (Point, Point) {
        let point = |p: [i32; 2]| Point::new(i64::from(p[0]), i64::from(p[1]));
        (point(self.a), point(self.b))
    }
}

/// A piece with its cell: ends on the lattice of particles, counted from the corner of the domain.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnedPiece {
    pub(super) cell: [usize; 2],
    pub(super) a: Point,
    pub(super) b: Point,
    pub(super) segment: u32,
}

/// The number of the cell on whose row or column `at` lies, for positions on faces the upper one inside the domain.
fn column(at: i64, cells: usize) -> usize {
    (at >> FINE).clamp(0, cells as i64 - 1) as usize
}

/// Cuts a segment, given on the lattice of outlines, where it crosses faces; calls `piece` with the cell and the ends of each
/// part, in order. A segment and its reverse are cut at the same positions.
pub(super) fn cut(cells: [usize; 2], a: Point, b: Point, scratch: &mut Vec<Point>, mut piece: impl FnMut([usize; 2], Point, Point)) {
    let (low, high) = if a <= b { (a, b) } else { (b, a) };
    let d = high.minus(low);
    scratch.clear();
    scratch.extend([a, b]);
    // `low` is the left one.
    for k in (low.x >> FINE) + 1.. {
        let x = k << FINE;
        if x >= high.x {
            break;
        }
        scratch.push(Point::new(x, low.y + rounded(i128::from(d.y) * i128::from(x - low.x), i128::from(d.x))));
    }
    let (bottom, top) = (low.y.min(high.y), low.y.max(high.y));
    for k in (bottom >> FINE) + 1.. {
        let y = k << FINE;
        if y >= top {
            break;
        }
        let (rise, run) = (i128::from(d.y), i128::from(d.x) * i128::from(y - low.y));
        scratch.push(Point::new(low.x + if rise > 0 { rounded(run, rise) } else { rounded(-run, -rise) }, y));
    }
    // Rounding keeps the order along both axes.
    let (sx, sy) = ((b.x - a.x).signum(), (b.y - a.y).signum());
    scratch.sort_unstable_by_key(|p| (p.x * sx, p.y * sy));
    for k in 1..scratch.len() {
        let (from, to) = (scratch[k - 1], scratch[k]);
        if from != to {
            // Twice the middle; halving by the shift keeps the sign.
            let middle = from.plus(to);
            piece([column(middle.x >> 1, cells[0]), column(middle.y >> 1, cells[1])], from, to);
        }
    }
}

/// Result of the cut of all segments.
#[derive(Debug)]
pub(super) struct Cuts {
    /// By row, then column, then in the order of segments.
    pub(super) pieces: Vec<OwnedPiece>,
    /// The solid part of the cells that have pieces, in the order of the cells.
    pub(super) solid: Vec<(usize, f64)>,
    /// Windings of the outlines about the runs of cells between: first cell, cell after the last, winding.
    pub(super) runs: Vec<(usize, usize, i32)>,
}

/// Cuts segments `(a, b)` on the lattice of outlines, the solid to the left of each. `base` is the winding far away: 1 where
/// the gas is inside an outline.
pub(super) fn cuts(cells: [usize; 2], segments: &[(Point, Point)], base: i32) -> Cuts {
    let unit = 1.0 / (1_i64 << FINE) as f64;
    let mut pieces = Vec::new();
    // Cell, own area, cover of all cells to the left.
    let mut parts: Vec<(usize, f64, f64)> = Vec::new();
    let mut scratch = Vec::new();
    for (number, &(a, b)) in segments.iter().enumerate() {
        cut(cells, a, b, &mut scratch, |cell, from, to| {
            let (ca, cb) = (from.coarse(), to.coarse());
            if ca != cb {
                pieces.push(OwnedPiece { cell, a: ca, b: cb, segment: number as u32 });
            }
            let left = (cell[0] as i64) << FINE;
            let width = (from.x - left + to.x - left) as f64 * (0.5 * unit);
            let dy = (to.y - from.y) as f64 * unit;
            parts.push((cell[1] * cells[0] + cell[0], width * dy, dy));
        });
    }
    pieces.sort_by_key(|p: &OwnedPiece| (p.cell[1], p.cell[0]));
    parts.sort_by_key(|p| p.0);

    // Each row from the right: what is covered is the sum of what pieces further right cover.
    let (mut solid, mut runs) = (Vec::new(), Vec::new());
    for row in parts.chunk_by(|p, q| p.0 / cells[0] == q.0 / cells[0]) {
        let start = row[0].0 / cells[0] * cells[0];
        let (mut beyond, mut covered) = (start + cells[0], f64::from(base));
        for cell in row.chunk_by(|p, q| p.0 == q.0).rev() {
            let number = cell[0].0;
            if covered.round() as i32 != 0 && number + 1 < beyond {
                runs.push((number + 1, beyond, covered.round() as i32));
            }
            solid.push((number, covered + cell.iter().map(|p| p.1).sum::<f64>()));
            covered += cell.iter().map(|p| p.2).sum::<f64>();
            beyond = number;
        }
        if covered.round() as i32 != 0 && start < beyond {
            runs.push((start, beyond, covered.round() as i32));
        }
    }
    if base != 0 {
        let mut rows = parts.iter().map(|p| p.0 / cells[0]).collect::<Vec<_>>();
        rows.dedup();
        for row in (0..cells[1]).filter(|row| rows.binary_search(row).is_err()) {
            runs.push((row * cells[0], (row + 1) * cells[0], base));
        }
    }
    solid.sort_by_key(|s| s.0);
    Cuts { pieces, solid, runs }
}

/// The closed cells that a piece touches, its own among them, as steps from the corner of the domain; those of neighbours
/// across a periodic side lie outside it.
pub(super) fn touched(piece: &OwnedPiece) -> impl Iterator<Item = [i64; 2]> {
    let mut cells = [[i64::MIN; 2]; 9];
    let mut count = 1;
    cells[0] = piece.cell.map(|c| c as i64);
    for end in [piece.a, piece.b] {
        let lowest = |at: i64| (at - 1) >> BITS;
        for y in lowest(end.y)..=end.y >> BITS {
            for x in lowest(end.x)..=end.x >> BITS {
                if !cells[..count].contains(&[x, y]) {
                    cells[count] = [x, y];
                    count += 1;
                }
            }
        }
    }
    cells.into_iter().take(count)
}
