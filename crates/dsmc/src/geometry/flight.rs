//! First hit of a path with an outline or a side of the domain.
//!
//! A particle's position and the end of its path are points of a lattice, and so are the ends of the pieces of outline; whether
//! the path crosses a piece is then a matter of signs of whole numbers, with no tolerance. A piece's end that lies exactly on
//! the path counts as to its right, so that a path through a shared vertex crosses both pieces or none, or one if the outline
//! passes from one side to the other. A path that ends on a piece hits it.
//!
//! Particles never stand on a piece and never cross one, from either side. After a hit the particle is put on a lattice
//! point just in front of the wall, and the search itself is asked whether the way there is free; if it is not, in the depth
//! of a corner, points further back are tried, at last the position where the flight began, which is free by induction. Nothing
//! can leak, whatever the round-off of positions, and no segment needs to be left out because the particle just left it.

use super::cut::Piece;
use super::lattice::{BITS, LONGEST, ONE, Point, orient};
use super::{BELOW_ONE, Flight, FlightEnd, Geometry};
use crate::grid::Side;

/// A piece that a path hits.
#[derive(Debug, Clone, Copy)]
struct Hit {
    /// Part of the path before it.
    s: f64,
    /// True if it is hit from the gas's side.
    front: bool,
    piece: Piece,
}

/// Result of a search.
#[derive(Debug, Clone, Copy)]
enum SearchResult {
    Free,
    Piece(Hit),
    Side(Side, f64),
}

/// A path of less than this, in cells, has no direction on the lattice: it ends where the lattice makes it hit a wall.
const TINY: f64 = 64.0 / ONE as f64;
/// Most hits of a path along a wall on the lattice only, before it ends there.
const GRAZES: u32 = 16;

/// Two hits closer than this part of a path are one, and its front counts. Parts have an error of a few 2^-53.
const SAME: f64 = 1e-12;

/// Hit of the path from `p` to `q` on a piece, if any. All points are counted from the corner of the piece's cell.
#[inline]
fn intersect(piece: &Piece, p: Point, q: Point) -> Option<Hit> {
    let (a, b) = piece.ends();
    if p.x.max(q.x) < a.x.min(b.x) || p.x.min(q.x) > a.x.max(b.x) || p.y.max(q.y) < a.y.min(b.y) || p.y.min(q.y) > a.y.max(b.y) {
        return None;
    }
    let (before, after) = (orient(a, b, p), orient(a, b, q));
    if after == 0 && q.within(a, b) {
        return Some(Hit { s: 1.0, front: before <= 0, piece: *piece });
    }
    let apart = before > 0 && after <= 0 || before < 0 && after >= 0;
    if apart && (orient(p, q, a) > 0) != (orient(p, q, b) > 0) {
        return Some(Hit { s: before as f64 / (before - after) as f64, front: before < 0, piece: *piece });
    }
    None
}

impl Geometry {
    /// Walks the cells from `p` to `q`, both counted from the corner of `cell`, until something is hit.
    fn search(&self, cell: [usize; 2], p: Point, q: Point) -> SearchResult {
        let d = q.minus(p);
        let (step, size) = ([d.x.signum(), d.y.signum()], [d.x.abs(), d.y.abs()]);
        let (from, to) = ([p.x, p.y], [q.x, q.y]);
        let mut at = [0_i64; 2];
        let mut best: Option<Hit> = None;
        loop {
            let now = |k: usize| (cell[k] as i64 + at[k]) as usize;
            let corner = Point::new(at[0] << BITS, at[1] << BITS);
            for piece in self.pieces(now(1) * self.cells[0] + now(0)) {
                if let Some(hit) = intersect(piece, p.minus(corner), q.minus(corner))
                    && best.is_none_or(|b| hit.s < b.s - SAME || hit.s <= b.s + SAME && hit.front && !b.front)
                {
                    best = Some(hit);
                }
            }
            // Lattice steps to the next face along each axis, if the path gets there.
            let ahead = |k: usize| {
                let face = (at[k] + i64::from(step[k] > 0)) << BITS;
                let reached = if step[k] > 0 { to[k] >= face } else { step[k] < 0 && to[k] < face };
                if reached { Some((face - from[k]).abs()) } else { None }
            };
            let ahead = [ahead(0), ahead(1)];
            let axis = match ahead {
                [None, None] => return best.map_or(SearchResult::Free, SearchResult::Piece),
                [Some(_), None] => 0,
                [None, Some(_)] => 1,
                [Some(x), Some(y)] => usize::from(x * size[1] > y * size[0]),
            };
            let s = if let Some(x) = ahead[axis] { x as f64 / size[axis] as f64 } else { 1.0 };
            if let Some(hit) = best
                && hit.s < s - SAME
            {
                return SearchResult::Piece(hit);
            }
            at[axis] += step[axis];
            let outside = cell[axis] as i64 + at[axis];
            if outside < 0 || outside >= self.cells[axis] as i64 {
                return best.map_or(SearchResult::Side(Side { axis, upper: step[axis] > 0 }, s), SearchResult::Piece);
            }
        }
    }

    /// True if nothing is hit on the way from `p` to `q`, which may lie on a side of the domain.
    fn free(&self, cell: [usize; 2], p: Point, q: Point) -> bool {
        let inside = [(0, q.x), (1, q.y)].iter().all(|&(k, x)| {
            let at = x + ((cell[k] as i64) << BITS);
            at >= 0 && at <= (self.cells[k] as i64) << BITS
        });
        inside && !matches!(self.search(cell, p, q), SearchResult::Piece(_))
    }

    /// Puts a flight at `q`, counted from the corner of `cell`: on the upper sides of the domain the offset is 1.
    fn put(&self, flight: &mut Flight, cell: [usize; 2], q: Point) {
        for (k, x) in [(0, q.x), (1, q.y)] {
            let at = x + ((cell[k] as i64) << BITS);
            let c = (at >> BITS).clamp(0, self.cells[k] as i64 - 1);
            flight.cell[k] = c as usize;
            flight.offset[k] = (at - (c << BITS)) as f64 / ONE as f64;
        }
    }

    /// Flies to the first hit of the path and stops there: cell, offset and the remaining path are those at the
    /// hit. Before a segment the flight stands a last bit of the lattice from it, on a side of the domain exactly on it.
    /// Cells are walked one by one, so that any length of path is right.
    pub fn advance(&self, flight: &mut Flight) -> FlightEnd {
        let path = flight.path;
        let longest = path[0].abs().max(path[1].abs());
        // A particle without a velocity that is a number stays where it is.
        let (mut rest, mut grazes) = (if longest.is_finite() { 1.0_f64 } else { 0.0 }, 0_u32);
        loop {
            let part = if longest * rest > LONGEST { LONGEST / longest } else { rest };
            let (cell, p) = (flight.cell, lattice_point(flight.offset));
            let q = p.plus(Point::new(nearest(path[0] * part * ONE as f64), nearest(path[1] * part * ONE as f64)));
            let (s, end) = match self.search(cell, p, q) {
                SearchResult::Free => {
                    self.put(flight, cell, q);
                    (1.0, FlightEnd::Nothing)
                }
                SearchResult::Piece(hit) => (hit.s, self.stop(flight, p, q, &hit)),
                SearchResult::Side(side, s) => match self.stop_at_side(flight, p, q, side, s) {
                    Ok(()) => (s, FlightEnd::Edge { side, done: 0.0 }),
                    Err(hit) => (s, self.stop(flight, p, q, &Hit { s, ..hit })),
                },
            };
            grazes += u32::from(end == FlightEnd::Nothing && s < 1.0);
            // Round-off of the parts must not leave a path behind, nor the lattice keep one going along a wall.
            let caught = s < 1.0 && (longest * rest < TINY || grazes > GRAZES);
            let arrived = end == FlightEnd::Nothing && (part == rest && s == 1.0 || caught);
            rest = if arrived { 0.0 } else { (rest - part * s).max(0.0) };
            flight.path = [path[0] * rest, path[1] * rest];
            let all = 1.0 - rest;
            match end {
                FlightEnd::Nothing if arrived => return FlightEnd::Nothing,
                FlightEnd::Nothing => {}
                FlightEnd::Edge { side, .. } => return FlightEnd::Edge { side, done: all },
                FlightEnd::Segment { segment, normal, .. } => return FlightEnd::Segment { segment, normal, done: all },
            }
        }
    }

    /// Stops in front of a piece. Says `Nothing` where only the path on the lattice hits it, and the path itself leads away:
    /// the flight goes on from there.
    fn stop(&self, flight: &mut Flight, p: Point, q: Point, hit: &Hit) -> FlightEnd {
        let cell = flight.cell;
        let (a, b) = hit.piece.ends();
        let (t, d) = (b.minus(a), q.minus(p));
        let way = [d.x as f64, d.y as f64];
        let length = way[0].hypot(way[1]).max(1.0);
        let sign = if hit.front { 1.0 } else { -1.0 };
        let across = (t.x as f64).hypot(t.y as f64);
        let n = [sign * t.y as f64 / across, -sign * t.x as f64 / across];
        // Steps back along the path and off the wall, in units of the lattice.
        let tried = [(0.0, 1.0), (1.0, 1.0), (2.0, 2.0), (8.0, 1.0), (8.0, 0.0), (64.0, 1.0), (64.0, 0.0), (1024.0, 0.0), (65536.0, 0.0)];
        let to = tried.into_iter().map(|(back, off)| {
            let s = (hit.s - back / length).max(0.0);
            Point::new(nearest(way[0] * s + n[0] * off), nearest(way[1] * s + n[1] * off)).plus(p)
        });
        let stand = to.into_iter().find(|to| self.free(cell, p, *to) && self.within(cell, *to)).unwrap_or(p);
        self.put(flight, cell, stand);
        flight.left = Some(hit.piece.segment);

        let physical = [0, 1].map(|k| flight.path[k] * self.h[k]);
        let towards = |n: [f64; 2]| n[0] * physical[0] + n[1] * physical[1] < 0.0;
        let normal = self.segments[hit.piece.segment as usize].normal.map(|x| x * sign);
        if towards(normal) {
            return FlightEnd::Segment { segment: hit.piece.segment, normal, done: 0.0 };
        }
        // Rounding turns the shortest pieces: a path along the wall then goes by what it hit.
        let m = [n[0] * self.h[1], n[1] * self.h[0]];
        let size = m[0].hypot(m[1]);
        let normal = m.map(|x| x / size);
        if towards(normal) { FlightEnd::Segment { segment: hit.piece.segment, normal, done: 0.0 } } else { FlightEnd::Nothing }
    }

    /// True if a position is inside the domain, not on its upper sides.
    fn within(&self, cell: [usize; 2], q: Point) -> bool {
        [(0, q.x), (1, q.y)].iter().all(|&(k, x)| x + ((cell[k] as i64) << BITS) < (self.cells[k] as i64) << BITS)
    }

    /// Stops on a side of the domain; `Err` with the obstacle at every position there.
    fn stop_at_side(&self, flight: &mut Flight, p: Point, q: Point, side: Side, s: f64) -> Result<(), Hit> {
        let (cell, d) = (flight.cell, q.minus(p));
        let edge = (if side.upper { self.cells[side.axis] as i64 } else { 0 } - cell[side.axis] as i64) << BITS;
        let (from, way, other) = if side.axis == 0 { (p.y, d.y, 1) } else { (p.x, d.x, 0) };
        let exact = from as f64 + way as f64 * s;
        let low = -((cell[other] as i64) << BITS);
        let high = low + ((self.cells[other] as i64) << BITS);
        let mut blocked = None;
        for off in [0.0, 1.0, -1.0, 2.0, -2.0] {
            let along = nearest(exact + off).clamp(low, high);
            let to = if side.axis == 0 { Point::new(edge, along) } else { Point::new(along, edge) };
            match self.search(cell, p, to) {
                SearchResult::Piece(hit) => blocked = blocked.or(Some(hit)),
                SearchResult::Free | SearchResult::Side(..) => {
                    self.put(flight, cell, to);
                    flight.left = None;
                    return Ok(());
                }
            }
        }
        blocked.map_or(Ok(()), Err)
    }

    /// The offset of a flight that has arrived, as the store keeps it: below 1, in the gas, and the same point of the lattice.
    pub fn stored_offset(&self, flight: &Flight) -> [f32; 2] {
        let p = lattice_point(flight.offset);
        if p.x < ONE && p.y < ONE {
            return [p.x as f32 / ONE as f32, p.y as f32 / ONE as f32];
        }
        // On an upper side: the nearest free position below it.
        let (x, y) = (p.x.min(ONE - 1), p.y.min(ONE - 1));
        let near = [(0, 0), (0, -1), (-1, 0), (0, 1), (1, 0), (-1, -1), (0, -2), (-2, 0), (-4, -4)];
        let free = near
            .into_iter()
            .map(|(i, j)| Point::new(x + i, y + j))
            .find(|q| q.x >= 0 && q.x < ONE && q.y >= 0 && q.y < ONE && self.free(flight.cell, p, *q));
        free.map_or([x as f32 / ONE as f32, y as f32 / ONE as f32], |q| [q.x as f32 / ONE as f32, q.y as f32 / ONE as f32])
            .map(|x| x.min(BELOW_ONE))
    }

    /// True if a position is in the gas: neither in a body nor on its outline.
    pub fn in_gas(&self, cell: [usize; 2], offset: [f64; 2]) -> bool {
        let number = cell[1] * self.cells[0] + cell[0];
        let p = lattice_point(offset);
        let Some(reference) = self.reference(number) else { return self.fraction(number) > 0.5 };
        let pieces = self.pieces(number);
        if pieces.iter().any(|piece| on(piece, p)) {
            return false;
        }
        reference.winding + turns(pieces, Point::new(reference.at[0].into(), reference.at[1].into()), p) == 0
    }
}

/// The nearest whole number of a number below 2^51, halves to even ones: two additions, where the call of a library would cost
/// more than a piece.
#[inline(always)]
fn nearest(x: f64) -> i64 {
    const SHIFT: f64 = 1.5 * (1_u64 << 52) as f64;
    ((x + SHIFT) - SHIFT) as i64
}

/// A position on the lattice, counted from the corner of its cell.
pub(super) fn lattice_point(offset: [f64; 2]) -> Point {
    let of = |x: f64| nearest(x * ONE as f64).clamp(0, ONE);
    Point::new(of(offset[0]), of(offset[1]))
}

/// True if a point is on a piece.
pub(super) fn on(piece: &Piece, p: Point) -> bool {
    let (a, b) = piece.ends();
    p.within(a, b) && orient(a, b, p) == 0
}

/// Change of the winding number from `p` to `q`, neither of them on a piece: one more for each outline entered.
pub(super) fn turns(pieces: &[Piece], p: Point, q: Point) -> i32 {
    pieces.iter().filter_map(|piece| intersect(piece, p, q)).map(|hit| if hit.front { 1 } else { -1 }).sum()
}
