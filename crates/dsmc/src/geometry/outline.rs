//! From curves to outlines: rounded to the lattice once, turned so that the solid is on the left, and checked. What is wrong is
//! said with the numbers of the segments and the point.

use std::ops::Range;

use zellige_engine::error::Problem;

use super::Segment;
use super::cross::{crossings, short};
use super::curve::{Curve, Form, Gas};
use super::lattice::{FINE, MOST_CELLS, Point};
use crate::grid::Grid;

/// A body: a closed outline or a plate.
#[derive(Debug, Clone, PartialEq)]
pub struct Body {
    /// Name.
    pub name: String,
    /// Its segments; a plate's other side follows its one side.
    pub segments: Range<usize>,
    /// Solid area, m^2 (volume per metre); negative for a curve with the gas inside, 0 for a plate.
    pub area: f64,
    /// Length of the sides exposed to the gas, m.
    pub perimeter: f64,
    /// Corners of the box about it, m.
    pub bounds: [[f64; 2]; 2],
}

/// Checked outlines of all bodies.
#[derive(Debug, Clone, Default)]
pub struct Outlines {
    /// Segments of all bodies.
    pub(super) segments: Vec<Segment>,
    /// Segments on the lattice.
    pub(super) lines: Vec<(Point, Point)>,
    /// Bodies.
    pub(super) bodies: Vec<Body>,
    /// Winding far away: 1 where the gas is inside a curve.
    pub(super) base: i32,
    /// Repairs, in words.
    pub notes: Vec<String>,
}

/// A curve on the lattice, the solid to its left.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) curve: &'a Curve,
    pub(super) points: Vec<Point>,
    positions: Vec<[f64; 2]>,
    numbers: Vec<u64>,
    walls: Vec<u32>,
    pub(super) closed: bool,
}

impl Line<'_> {
    /// Number of segments, one side of a plate.
    pub(super) fn len(&self) -> usize {
        self.points.len() - usize::from(!self.closed)
    }

    /// Ends of a segment.
    pub(super) fn ends(&self, k: usize) -> (Point, Point) {
        (self.points[k], self.points[(k + 1) % self.points.len()])
    }

    /// A segment in words.
    pub(super) fn segment(&self, k: usize) -> String {
        let number = self.numbers.get(k).copied().unwrap_or(k as u64 + 1);
        let [a, b] = [k, (k + 1) % self.positions.len()].map(|k| self.positions[k]);
        format!("segment {number} of `{}` from ({}, {}) to ({}, {})", self.curve.name, a[0], a[1], b[0], b[1])
    }

    /// Twice the area enclosed, positive if counter-clockwise, in cells of the lattice.
    fn doubled_area(&self) -> i128 {
        let o = self.points[0];
        let cross = |a: Point, b: Point| i128::from(a.x) * i128::from(b.y) - i128::from(a.y) * i128::from(b.x);
        (0..self.len()).map(|k| self.ends(k)).map(|(a, b)| cross(a.minus(o), b.minus(o))).sum()
    }

    /// True if all vertices lie on one straight line.
    fn straight(&self) -> bool {
        let (o, first) = (self.points[0], self.points[1].minus(self.points[0]));
        let beside = |p: &Point| {
            let p = p.minus(o);
            i128::from(first.x) * i128::from(p.y) - i128::from(first.y) * i128::from(p.x)
        };
        self.points.iter().all(|p| beside(p) == 0)
    }

    fn problem(&self, message: impl Into<String>) -> Problem {
        Problem::new(&self.curve.origin, message)
    }
}

impl Outlines {
    /// Checks curves against each other and the grid.
    ///
    /// # Errors
    /// All problems found: open curves, segments of no length, curves that leave the domain, cross or touch themselves, cross
    /// each other or lie in each other.
    pub fn new(curves: &[Curve], grid: &Grid) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut notes = Vec::new();
        if !curves.is_empty() && grid.cells.iter().any(|n| *n > MOST_CELLS) {
            let message = format!("{} x {} cells are too many for bodies", grid.cells[0], grid.cells[1]);
            problems.push(Problem::new(&curves[0].origin, message).allowed(format!("up to {MOST_CELLS} along an axis")));
            return Err(problems);
        }
        let lines: Vec<_> = curves.iter().filter_map(|c| line(c, grid, &mut notes).map_err(|p| problems.extend(p)).ok()).collect();
        if problems.is_empty() {
            problems = crossings(&lines, grid);
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut all = Self { base: i32::from(curves.iter().any(|c| c.gas == Gas::Inside)), notes, ..Self::default() };
        for (number, line) in lines.iter().enumerate() {
            all.push(number as u32, line, grid);
        }
        Ok(all)
    }

    fn push(&mut self, body: u32, line: &Line, grid: &Grid) {
        let start = self.segments.len();
        let upper = Point::new((grid.cells[0] as i64) << FINE, (grid.cells[1] as i64) << FINE);
        let mut add = |k: usize, from: usize, to: usize| {
            let ends = [line.positions[from], line.positions[to]];
            let t = [ends[1][0] - ends[0][0], ends[1][1] - ends[0][1]];
            let length = t[0].hypot(t[1]);
            let normal = [t[1] / length, -t[0] / length];
            let (a, b) = (line.points[from], line.points[to]);
            let on = |side: i64, a: i64, b: i64| a == side && b == side;
            let buried = on(0, a.x, b.x) && normal[0] < 0.0
                || on(0, a.y, b.y) && normal[1] < 0.0
                || on(upper.x, a.x, b.x) && normal[0] > 0.0
                || on(upper.y, a.y, b.y) && normal[1] > 0.0;
            self.segments.push(Segment { ends, normal, body, wall: line.walls.get(k).copied().unwrap_or(line.curve.wall), buried });
            self.lines.push((line.points[from], line.points[to]));
        };
        let after = |k: usize| (k + 1) % line.points.len();
        (0..line.len()).for_each(|k| add(k, k, after(k)));
        if !line.closed {
            (0..line.len()).rev().for_each(|k| add(k, after(k), k));
        }
        let unit = 1.0 / (1_i64 << FINE) as f64;
        let area = if line.closed { 0.5 * line.doubled_area() as f64 * unit * unit * grid.volume() } else { 0.0 };
        let segments = start..self.segments.len();
        let perimeter = self.segments[segments.clone()].iter().map(Segment::length).sum();
        let bounds = [f64::min, f64::max].map(|pick| [0, 1].map(|d| line.positions.iter().map(|p| p[d]).reduce(pick).expect("points")));
        self.bodies.push(Body { name: line.curve.name.clone(), segments, area, perimeter, bounds });
    }
}

/// Rounds, closes and turns a curve.
fn line<'a>(curve: &'a Curve, grid: &Grid, notes: &mut Vec<String>) -> Result<Line<'a>, Vec<Problem>> {
    let name = &curve.name;
    let refuse = |message: String, hint: &str| Err(vec![Problem::new(&curve.origin, message).hint(hint)]);
    let least = if curve.form == Form::Closed { 3 } else { 2 };
    if curve.vertices.len() < least {
        return refuse(format!("`{name}` has {} vertices", curve.vertices.len()), "a closed curve needs three, a plate two");
    }
    if let Some((k, [x, y])) = curve.vertices.iter().enumerate().find(|(_, v)| !v.iter().all(|x| x.is_finite())) {
        return refuse(format!("vertex {} of `{name}` is at ({x}, {y})", k + 1), "coordinates must be finite");
    }
    // So far outside that the lattice does not hold it is outside all the same.
    let far = (MOST_CELLS as f64 * 2.0, (1_i64 << FINE) as f64);
    let on = |v: &[f64; 2]| [0, 1].map(|d| ((((v[d] - grid.origin[d]) / grid.h[d]).clamp(-far.0, far.0)) * far.1).round() as i64);
    let mut line = Line {
        curve,
        points: curve.vertices.iter().map(on).map(|[x, y]| Point::new(x, y)).collect(),
        positions: curve.vertices.clone(),
        numbers: curve.numbers.clone(),
        walls: curve.walls.clone(),
        closed: curve.form == Form::Closed,
    };
    let upper = Point::new((grid.cells[0] as i64) << FINE, (grid.cells[1] as i64) << FINE);
    let inside = |p: Point| p.within(Point::new(0, 0), upper);
    if let Some(k) = line.points.iter().position(|p| !inside(*p)) {
        let (p, low) = (line.positions[k], grid.origin);
        let high = [0, 1].map(|d| short(low[d] + grid.length(d)));
        let message = format!(
            "`{name}` leaves the domain at ({}, {}), vertex {} ({} of its {} vertices are outside): {}",
            p[0],
            p[1],
            k + 1,
            line.points.iter().filter(|p| !inside(**p)).count(),
            line.points.len(),
            line.segment(k.min(line.len() - 1)),
        );
        let domain = format!(
            "the domain is {} to {} along x and {} to {} along y; a body may touch its sides; \
             half a body on a plane of symmetry is a polygon of that half, or an open curve of a file, with both ends on the side",
            low[0], high[0], low[1], high[1]
        );
        return refuse(message, &domain);
    }
    if let Some(k) = (0..line.len()).find(|k| line.ends(*k).0 == line.ends(*k).1) {
        let message = format!("{} has no length", line.segment(k));
        return refuse(message, "leave out vertices that repeat the one before; a closed curve does not repeat its first one");
    }
    if curve.form == Form::FromSideToSide {
        for end in [0, line.points.len() - 1] {
            let p = line.points[end];
            if p.x != 0 && p.y != 0 && p.x != upper.x && p.y != upper.y {
                let position = line.positions[end];
                let message = format!("`{name}` is open at ({}, {}): {}", position[0], position[1], line.segment(end.min(line.len() - 1)));
                return refuse(
                    message,
                    "join its end to its beginning, or let both end on sides of the domain; a thin plate is `shape = \"plate\"`",
                );
            }
        }
        close_along_sides(&mut line, upper, grid);
    }
    if line.closed {
        let area = line.doubled_area();
        if area == 0 {
            // As much on its left as on its right, or a line there and back.
            let crossed = if line.straight() { Vec::new() } else { crossings(std::slice::from_ref(&line), grid) };
            if !crossed.is_empty() {
                return Err(crossed);
            }
            let message = format!("`{name}` encloses nothing, from {}", line.segment(0));
            return refuse(message, "a plate without thickness is `shape = \"plate\"`");
        }
        if (area > 0) != (curve.gas == Gas::Outside) {
            let turned = if curve.form == Form::FromSideToSide {
                return refuse(
                    format!("`{name}` crosses itself: {}", line.segment(0)),
                    "its ends and the sides of the domain enclose nothing",
                );
            } else if curve.gas == Gas::Outside {
                "outside"
            } else {
                "inside"
            };
            if line.numbers.is_empty() {
                line.numbers = (1..=line.points.len() as u64).collect();
            }
            line.points.reverse();
            line.positions.reverse();
            // Segment k joins vertices k and k + 1: the last one stays the last.
            turn(&mut line.numbers);
            turn(&mut line.walls);
            // Shapes and polygons may be given either way; a file says where the gas is by its sense.
            if !curve.numbers.is_empty() {
                notes.push(format!("`{name}` was turned: the gas is {turned} of it"));
            }
        }
    }
    Ok(line)
}

/// Turns what segments have around, but for the last one.
fn turn<T>(all: &mut Vec<T>) {
    if let Some(last) = all.pop() {
        all.reverse();
        all.push(last);
    }
}

/// Joins the last point to the first counter-clockwise along the sides of the domain, so that the solid stays to the left.
fn close_along_sides(line: &mut Line, upper: Point, grid: &Grid) {
    // Way around the domain from its lower left corner.
    let (w, h) = (upper.x, upper.y);
    let way = |p: Point| -> i64 {
        if p.y == 0 {
            p.x
        } else if p.x == w {
            w + p.y
        } else if p.y == h {
            w + h + (w - p.x)
        } else {
            2 * w + h + (h - p.y)
        }
    };
    let around = 2 * (w + h);
    let (from, to) = (way(line.points[line.points.len() - 1]), way(line.points[0]));
    let length = (to - from).rem_euclid(around);
    let mut corners = [(w, w, 0), (w + h, w, h), (2 * w + h, 0, h), (around, 0, 0)]
        .map(|(at, x, y)| ((at - from).rem_euclid(around), Point::new(x, y)))
        .into_iter()
        .filter(|(at, _)| *at > 0 && *at < length)
        .collect::<Vec<_>>();
    corners.sort_unstable_by_key(|c| c.0);
    for (_, p) in corners {
        line.points.push(p);
        let unit = 1.0 / (1_i64 << FINE) as f64;
        line.positions.push([grid.origin[0] + p.x as f64 * unit * grid.h[0], grid.origin[1] + p.y as f64 * unit * grid.h[1]]);
    }
    line.closed = true;
}

impl Line<'_> {
    /// A problem of this curve, for [`crossings`].
    pub(super) fn refused(&self, message: impl Into<String>, hint: &str) -> Problem {
        self.problem(message).hint(hint)
    }
}
