//! Bodies in the flow: closed curves of segments, the cells that they cut, and the next thing that a particle's path meets.
//!
//! Places are a cell and an offset in it, `0..=1` in units of the cell, so that precision does not depend on the size of the
//! domain. Paths are in cells. Everything here is in double precision; the store rounds offsets to single precision, and
//! [`Geometry::settle`] makes sure that rounding does not put a particle into a body.

use crate::grid::{Grid, Side};

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
}

impl Segment {
    /// Length, m.
    pub fn length(&self) -> f64 {
        (self.ends[1][0] - self.ends[0][0]).hypot(self.ends[1][1] - self.ends[0][1])
    }
}

/// A particle on its way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flight {
    /// Cell.
    pub cell: [usize; 2],
    /// Offset in the cell, `0..=1`.
    pub offset: [f64; 2],
    /// What is left of the path, in cells.
    pub path: [f64; 2],
    /// Segment that the particle stands on, which it cannot meet again at once.
    pub left: Option<u32>,
}

/// What a path met.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Met {
    /// Nothing: the flight has arrived.
    Nothing,
    /// A segment, from its front.
    Segment {
        /// Its number.
        segment: u32,
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

/// Everything that particles and cells need to know of the bodies.
#[derive(Debug, Clone)]
pub struct Geometry {
    cells: [usize; 2],
    segments: Vec<Segment>,
}

impl Geometry {
    /// A domain without bodies.
    pub fn empty(grid: &Grid) -> Self {
        Self { cells: grid.cells, segments: Vec::new() }
    }

    /// All segments, in the order of their numbers.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Whether there is no body at all.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Part of a cell (by [`Grid::index`]) that gas can fill: 1 away from bodies, 0 inside them.
    pub fn fraction(&self, _cell: usize) -> f64 {
        1.0
    }

    /// How far a flight from a cell is certain to meet no segment: it does if it ends fewer than this many cells away along
    /// both axes. 0 for a cell with segments, 1 for one beside it, 255 where no body is near.
    pub fn reach(&self, _cell: usize) -> u8 {
        255
    }

    /// Whether a place is in the gas.
    pub fn in_gas(&self, _cell: [usize; 2], _offset: [f64; 2]) -> bool {
        true
    }

    /// Flies to the next thing that the path meets and stops there: cell, offset and the remaining path are those at the
    /// meeting, and `left` is the segment met. Cells are walked one by one, so that any length of path is right.
    pub fn advance(&self, flight: &mut Flight) -> Met {
        // The first side that the path crosses; without bodies cells between need no look.
        let at = [0, 1].map(|d| flight.cell[d] as f64 + flight.offset[d]);
        let (mut done, mut met) = (1.0, None);
        for d in 0..2 {
            let (p, bound) = (flight.path[d], self.cells[d] as f64);
            let end = at[d] + p;
            if p < 0.0 && end < 0.0 || p > 0.0 && end > bound {
                let upper = p > 0.0;
                let s = (((if upper { bound } else { 0.0 }) - at[d]) / p).clamp(0.0, 1.0);
                if met.is_none() || s < done {
                    (done, met) = (s, Some(Side { axis: d, upper }));
                }
            }
        }
        for d in 0..2 {
            let local = flight.offset[d] + done * flight.path[d];
            let cell = (flight.cell[d] as f64 + local.floor()).clamp(0.0, (self.cells[d] - 1) as f64) as usize;
            flight.offset[d] = (local - (cell as f64 - flight.cell[d] as f64)).clamp(0.0, 1.0);
            flight.cell[d] = cell;
            flight.path[d] *= 1.0 - done;
        }
        let Some(side) = met else { return Met::Nothing };
        flight.cell[side.axis] = if side.upper { self.cells[side.axis] - 1 } else { 0 };
        flight.offset[side.axis] = if side.upper { 1.0 } else { 0.0 };
        flight.left = None;
        Met::Edge { side, done }
    }

    /// The offset of a flight that has arrived, rounded to what the store keeps: below 1 and in the gas.
    pub fn settle(&self, flight: &Flight) -> [f32; 2] {
        flight.offset.map(|x| (x as f32).min(BELOW_ONE))
    }
}

/// The largest offset that the store keeps.
pub const BELOW_ONE: f32 = 1.0 - f32::EPSILON / 2.0;
