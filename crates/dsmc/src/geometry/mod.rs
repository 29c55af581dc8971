//! Bodies in the flow: closed curves and plates of segments, the cells that they cut, and the next thing that a particle's
//! path hits.
//!
//! ```text
//! curve, read   shapes and files -> curves in metres
//! join          the segments of a geometry file
//! outline       -> outlines: rounded to a lattice once, turned, closed
//! cross         refused if they cross, touch themselves or overlap
//! cut           -> pieces in cells, and the solid part of each cell
//! split, sub_volumes -> parts of a cell that a thin body keeps apart, cells cut to nearly nothing
//! flight        paths against pieces, exact
//! open, across  what bodies leave open of a side of the domain, and lines that run into them
//! ```
//!
//! Positions are a cell and an offset in it, `0..=1` in units of the cell, so that precision does not depend on the size of the
//! domain. Paths are in cells. Offsets are multiples of 2^-24, which single precision holds: a particle's position is the same
//! number here and in the store.

mod across;
mod cross;
pub mod curve;
mod cut;
mod flight;
mod join;
mod lattice;
mod open;
mod outline;
pub mod read;
#[cfg(test)]
mod refusals;
mod split;
mod sub_volumes;

pub use curve::{Curve, Form, Gas, Shape};
pub(crate) use cut::PIECE_CUDA;
pub use cut::Piece;
pub use outline::{Body, Outlines};
pub use sub_volumes::SMALLEST;

use zellige_device_macro::device;

use crate::grid::{Grid, Side};
use cut::{OwnedPiece, cuts, touched};
use lattice::{BITS, ONE, Point};

/// A segment of a body's outline, or one side of a thin plate. The gas is on the side of the normal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    /// Ends, m.
    pub ends: [[f64; 2]; 2],
    /// Unit normal into the gas.
    pub normal: [f64; 2],
    /// Number of the body.
    pub body: u32,
    /// Number of the wall model in the list of walls.
    pub wall: u32,
    /// True if it lies on a side of the domain, its normal outwards: no gas is there.
    pub buried: bool,
}

impl Segment {
    /// Length, m.
    pub fn length(&self) -> f64 {
        (self.ends[1][0] - self.ends[0][0]).hypot(self.ends[1][1] - self.ends[0][1])
    }

    /// Its middle, m.
    pub fn middle(&self) -> [f64; 2] {
        [0, 1].map(|d| 0.5 * (self.ends[0][d] + self.ends[1][d]))
    }

    /// Change of the position along it for a metre along x and y, with -1 at its first end and 1 at its second.
    pub fn per_metre(&self) -> [f64; 2] {
        let [a, b] = self.ends;
        let way = [b[0] - a[0], b[1] - a[1]];
        let square = way[0] * way[0] + way[1] * way[1];
        way.map(|w| 2.0 * w / square)
    }
}

/// A particle on its way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flight {
    /// Cell.
    pub cell: [usize; 2],
    /// Offset in the cell, `0..=1`.
    pub offset: [f64; 2],
    /// Remainder of the path, in cells.
    pub path: [f64; 2],
    /// Segment that the particle hit last, for tallies; the search does not need it.
    pub left: Option<u32>,
}

/// End of a flight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FlightEnd {
    /// Nothing: the flight has arrived.
    Nothing,
    /// A segment.
    Segment {
        /// Its number.
        segment: u32,
        /// Unit normal towards the particle.
        normal: [f64; 2],
        /// Part of the path that was flown, `0..=1`.
        done: f64,
    },
    /// A side of the domain. The flight stands in the last cell before it, its offset on the side (0 or 1).
    Edge {
        /// The side.
        side: Side,
        /// Part of the path that was flown, `0..=1`.
        done: f64,
    },
}

/// A position in a cell with its winding.
#[device]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reference {
    at: [i32; 2],
    winding: i32,
}

/// See [`Geometry::lists`].
pub(crate) type Lists<'a> = (&'a [u32], &'a [u32], &'a [Piece], &'a [Reference]);

/// Everything that particles and cells need to know of the bodies.
#[derive(Debug, Clone)]
pub struct Geometry {
    cells: [usize; 2],
    h: [f64; 2],
    segments: Vec<Segment>,
    bodies: Vec<Body>,
    /// Part of each cell that is gas; empty without bodies.
    fractions: Vec<f64>,
    /// See [`Geometry::reach`]; empty without bodies.
    reach: Vec<u8>,
    /// One more than the index of a cell in `first`, 0 where it has no pieces; empty without bodies.
    slots: Vec<u32>,
    /// First piece of each slot, and the end.
    first: Vec<u32>,
    pieces: Vec<Piece>,
    /// One per slot.
    references: Vec<Reference>,
    sub_volumes: sub_volumes::SubVolumes,
}

impl Geometry {
    /// A domain without bodies.
    pub fn empty(grid: &Grid) -> Self {
        Self {
            cells: grid.cells,
            h: grid.h,
            segments: Vec::new(),
            bodies: Vec::new(),
            fractions: Vec::new(),
            reach: Vec::new(),
            slots: Vec::new(),
            first: Vec::new(),
            pieces: Vec::new(),
            references: Vec::new(),
            sub_volumes: sub_volumes::SubVolumes::default(),
        }
    }

    /// Cuts checked outlines along the faces of the grid. `periodic` says whether the domain goes on across its sides.
    pub fn new(grid: &Grid, periodic: [bool; 2], outlines: &Outlines) -> Self {
        let mut geometry = Self::empty(grid);
        if outlines.lines.is_empty() {
            return geometry;
        }
        geometry.segments.clone_from(&outlines.segments);
        geometry.bodies.clone_from(&outlines.bodies);
        let cuts = cuts(grid.cells, &outlines.lines, outlines.base);
        geometry.fractions = vec![1.0; grid.len()];
        for (from, to, winding) in &cuts.runs {
            geometry.fractions[*from..*to].fill(if *winding == 0 { 1.0 } else { 0.0 });
        }
        for (cell, solid) in &cuts.solid {
            geometry.fractions[*cell] = (1.0 - solid).clamp(0.0, 1.0);
        }
        geometry.list(&cuts.pieces, periodic);
        geometry.refer(&cuts.pieces, outlines.base);
        geometry.measure_reach(periodic);
        geometry.find_sub_volumes();
        geometry
    }

    /// Lists every piece in all cells that it touches, so that a path need not look into cells that it only grazes.
    fn list(&mut self, pieces: &[OwnedPiece], periodic: [bool; 2]) {
        let mut listed: Vec<(usize, Piece)> = Vec::new();
        for piece in pieces {
            for cell in touched(piece) {
                let wrapped = [0, 1].map(|d| {
                    let n = self.cells[d] as i64;
                    if periodic[d] { cell[d].rem_euclid(n) } else { cell[d] }
                });
                if [0, 1].iter().any(|&d| wrapped[d] < 0 || wrapped[d] >= self.cells[d] as i64) {
                    continue;
                }
                let corner = Point::new(cell[0] << BITS, cell[1] << BITS);
                let local = |p: Point| [(p.x - corner.x) as i32, (p.y - corner.y) as i32];
                let number = wrapped[1] as usize * self.cells[0] + wrapped[0] as usize;
                listed.push((number, Piece { a: local(piece.a), b: local(piece.b), segment: piece.segment }));
            }
        }
        listed.sort_by_key(|l| l.0);
        self.slots = vec![0; self.cells[0] * self.cells[1]];
        for cell in listed.chunk_by(|a, b| a.0 == b.0) {
            self.first.push(self.pieces.len() as u32);
            self.slots[cell[0].0] = self.first.len() as u32;
            self.pieces.extend(cell.iter().map(|l| l.1));
        }
        self.first.push(self.pieces.len() as u32);
    }

    /// A position in each cell with pieces whose winding is counted from the right side of the domain.
    fn refer(&mut self, pieces: &[OwnedPiece], base: i32) {
        let rows: Vec<usize> = (0..=self.cells[1]).map(|row| pieces.partition_point(|p| p.cell[1] < row)).collect();
        self.references = vec![Reference { at: [0; 2], winding: 0 }; self.first.len() - 1];
        for cell in 0..self.slots.len() {
            let slot = self.slots[cell] as usize;
            if slot == 0 {
                continue;
            }
            let [i, j] = [cell % self.cells[0], cell / self.cells[0]];
            let held = self.pieces(cell);
            // Positions strictly inside the cell, spread evenly (the plastic number's sequence); a few dozen pieces miss most.
            let position = |k: u32| {
                let at = |g: f64| 1 + ((0.5 + g * f64::from(k)).fract() * (ONE - 2) as f64) as i64;
                Point::new(at(0.754_877_666_246_692_7), at(0.569_840_290_998_053_3))
            };
            let p =
                (0..1 << 20).map(position).find(|p| !held.iter().any(|piece| flight::on(piece, *p))).expect("pieces do not fill a cell");
            let far = Point::new(p.x + ((i as i64) << BITS), p.y + ((j as i64) << BITS));
            let row = &pieces[rows[j]..rows[j + 1]];
            let beyond = &row[row.partition_point(|q| q.cell[0] < i)..];
            let winding = beyond.iter().map(|q| rises(q, far)).sum::<i32>() + base;
            self.references[slot - 1] = Reference { at: [p.x as i32, p.y as i32], winding };
        }
    }

    /// Steps of a king from each cell to the nearest one with pieces.
    fn measure_reach(&mut self, periodic: [bool; 2]) {
        let [nx, ny] = self.cells;
        self.reach = self.slots.iter().map(|s| if *s == 0 { 255 } else { 0 }).collect();
        let at = |i: i64, j: i64| {
            let fold = |x: i64, n: usize, wrap: bool| {
                let n = n as i64;
                if wrap { Some(x.rem_euclid(n)) } else { (0..n).contains(&x).then_some(x) }
            };
            Some((fold(j, ny, periodic[1])? * nx as i64 + fold(i, nx, periodic[0])?) as usize)
        };
        // Two sweeps do without wrapping; across periodic sides a second pair carries what the first brought to the side.
        for _ in 0..if periodic == [false; 2] { 1 } else { 2 } {
            for backward in [false, true] {
                for step in 0..nx * ny {
                    let cell = if backward { nx * ny - 1 - step } else { step };
                    let (i, j, sign) = ((cell % nx) as i64, (cell / nx) as i64, if backward { 1 } else { -1 });
                    let near = [(sign, 0), (-1, sign), (0, sign), (1, sign)];
                    let best = near.iter().filter_map(|(x, y)| at(i + x, j + y)).map(|c| self.reach[c].saturating_add(1)).min();
                    self.reach[cell] = self.reach[cell].min(best.unwrap_or(255));
                }
            }
        }
    }

    /// All segments, in the order of their numbers.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Gives a segment a wall of its own.
    pub fn set_wall(&mut self, segment: usize, wall: u32) {
        self.segments[segment].wall = wall;
    }

    /// All bodies, in the order of their numbers.
    pub fn bodies(&self) -> &[Body] {
        &self.bodies
    }

    /// True if there is no body at all.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Part of a cell (by [`Grid::index`]) that gas can fill: 1 away from bodies, 0 inside them.
    pub fn fraction(&self, cell: usize) -> f64 {
        self.fractions.get(cell).copied().unwrap_or(1.0)
    }

    /// Reach of a cell: a flight that ends fewer than this many cells away along both axes hits no segment. 0 for a cell with
    /// segments, 1 for one beside it, 255 where no body is near.
    pub fn reach(&self, cell: usize) -> u8 {
        self.reach.get(cell).copied().unwrap_or(255)
    }

    /// Pieces of outlines that a cell touches.
    pub fn pieces(&self, cell: usize) -> &[Piece] {
        match self.slots.get(cell) {
            None | Some(0) => &[],
            Some(slot) => &self.pieces[self.first[*slot as usize - 1] as usize..self.first[*slot as usize] as usize],
        }
    }

    /// The lists of pieces as they are kept: one more than the index of a cell in the second list (0 without pieces, empty without
    /// bodies), where the pieces of each begin and the end, all pieces, and a position in each such cell with its winding.
    pub(crate) fn lists(&self) -> Lists<'_> {
        (&self.slots, &self.first, &self.pieces, &self.references)
    }

    fn reference(&self, cell: usize) -> Option<Reference> {
        match self.slots.get(cell) {
            None | Some(0) => None,
            Some(slot) => Some(self.references[*slot as usize - 1]),
        }
    }
}

/// Change of the winding number by a piece to the right of `p`: 1 if it rises past it, -1 if it falls.
fn rises(piece: &OwnedPiece, p: Point) -> i32 {
    let up = i32::from(piece.b.y > p.y) - i32::from(piece.a.y > p.y);
    if up == 0 {
        return 0;
    }
    let corner = Point::new(p.x, p.y);
    let (a, b) = (piece.a.minus(corner), piece.b.minus(corner));
    // Pieces further right may be a whole domain away: products there need more than 64 bits.
    let side = i128::from(b.x - a.x) * i128::from(-a.y) - i128::from(b.y - a.y) * i128::from(-a.x);
    if (side > 0) == (up > 0) { up } else { 0 }
}

/// Steps of the lattice of particles along a cell.
pub const LATTICE: i32 = ONE as i32;

/// The largest offset that the store keeps.
pub const BELOW_ONE: f32 = 1.0 - f32::EPSILON / 2.0;
