//! Parts of a cell that thin bodies keep apart, each with its own volume: particles of different parts never collide.
//!
//! The pieces in a cell and its four sides are a plane graph. Walking its edges with the area to the left gives the outlines of
//! all faces; those of gas are the parts. Everything is on the lattice, so areas are exact.

use std::collections::{BTreeMap, BTreeSet};

use super::cut::Piece;
use super::lattice::{ONE, Point, orient};

/// Parts below this part of a cell are left to the largest one: a wedge that the lattice hardly resolves.
const LEAST: f64 = 1e-6;

/// A part of a cell.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    /// Of the whole cell.
    pub(super) fraction: f64,
    /// Its outline, dangling plates there and back, the gas to the left; without the bodies that stand in it.
    outline: Vec<Point>,
}

impl Part {
    /// True if a position in the cell that is on no piece lies in it.
    pub(super) fn holds(&self, p: Point) -> bool {
        inside(&self.outline, p)
    }

    /// The corners of its outline.
    pub(super) fn outline(&self) -> &[Point] {
        &self.outline
    }
}

fn inside(outline: &[Point], p: Point) -> bool {
    (0..outline.len()).fold(false, |inside, k| {
        let (a, b) = (outline[k], outline[(k + 1) % outline.len()]);
        let crossed = (a.y > p.y) != (b.y > p.y) && (orient(a, b, p) > 0) == (b.y > a.y) && orient(a, b, p) != 0;
        inside != crossed
    })
}

/// Twice the area of a closed walk.
fn doubled_area(walk: &[Point]) -> i64 {
    (0..walk.len()).map(|k| (walk[k], walk[(k + 1) % walk.len()])).map(|(a, b)| a.x * b.y - a.y * b.x).sum()
}

/// Left side of an edge, as far as known.
#[derive(Debug, Clone, Copy, Default)]
struct Left {
    gas: bool,
    solid: bool,
}

/// Edges by their ends, both directions, each with what is known of its left.
type Edges = BTreeMap<(Point, Point), Left>;

fn edges(pieces: &[Piece], plate: impl Fn(u32) -> bool) -> Edges {
    let square = [Point::new(0, 0), Point::new(ONE, 0), Point::new(ONE, ONE), Point::new(0, ONE)];
    let own: Vec<&Piece> = pieces
        .iter()
        .filter(|p| {
            let (a, b) = p.ends();
            a.within(square[0], square[2]) && b.within(square[0], square[2])
        })
        .collect();
    let points: BTreeSet<Point> = own.iter().flat_map(|p| [p.ends().0, p.ends().1]).chain(square).collect();
    let mut edges = Edges::new();
    // Cut at all points on it, so that edges meet at their ends only.
    let mut add = |a: Point, b: Point, left: Left, right: Left| {
        // They are in the order of x: of thousands few are looked at.
        let across = Point::new(a.x.min(b.x), i64::MIN)..=Point::new(a.x.max(b.x), i64::MAX);
        let mut on: Vec<Point> = points.range(across).copied().filter(|p| p.within(a, b) && orient(a, b, *p) == 0).collect();
        if a > b {
            on.reverse();
        }
        for ends in on.windows(2) {
            for (key, side) in [((ends[0], ends[1]), left), ((ends[1], ends[0]), right)] {
                let known = edges.entry(key).or_default();
                known.gas |= side.gas;
                known.solid |= side.solid;
            }
        }
    };
    let nothing = Left::default();
    for k in 0..4 {
        add(square[k], square[(k + 1) % 4], nothing, nothing);
    }
    for piece in own {
        let (a, b) = piece.ends();
        let gas = Left { gas: true, solid: false };
        let left = if plate(piece.segment) { gas } else { Left { gas: false, solid: true } };
        add(a, b, left, gas);
    }
    edges
}

/// Half of the plane of a direction, for sorting by angle without angles: 0 from +x to below -x, then 1.
fn half(d: Point) -> u8 {
    u8::from(d.y < 0 || d.y == 0 && d.x < 0)
}

/// The parts of a cell, largest first: none where all is solid, one where nothing is divided. `None` where pieces cross on the
/// lattice, as needles thinner than it may do.
pub(super) fn parts(pieces: &[Piece], plate: impl Fn(u32) -> bool) -> Option<Vec<Part>> {
    let edges = edges(pieces, plate);
    let mut around: BTreeMap<Point, Vec<Point>> = BTreeMap::new();
    for (a, b) in edges.keys() {
        around.entry(*a).or_default().push(*b);
    }
    for (at, ends) in &mut around {
        ends.sort_unstable_by(|p, q| {
            let (d, e) = (p.minus(*at), q.minus(*at));
            half(d).cmp(&half(e)).then_with(|| orient(*at, *q, *p).cmp(&0))
        });
    }
    // At the end of an edge the face to its left goes on along the next edge clockwise from the way back.
    let follow = |(a, b): (Point, Point)| {
        let ends = &around[&b];
        let back = ends.iter().position(|p| *p == a).expect("every edge has its reverse");
        (b, ends[(back + ends.len() - 1) % ends.len()])
    };
    let mut seen = BTreeSet::new();
    let (mut faces, mut islands) = (Vec::new(), Vec::new());
    for start in edges.keys() {
        let (mut walk, mut left, mut at) = (Vec::new(), Left::default(), *start);
        while seen.insert(at) {
            walk.push(at.0);
            let known = edges[&at];
            // Bodies that touch along a side say solid to one side and gas to the other: neither tells.
            if known.gas != known.solid {
                left.gas |= known.gas;
                left.solid |= known.solid;
            }
            at = follow(at);
        }
        if walk.is_empty() {
            continue;
        }
        let area = doubled_area(&walk);
        if area > 0 {
            faces.push((walk, area, left));
        } else if area > -2 * ONE * ONE {
            islands.push((walk, area, left));
        }
        // Other walks go around the cell from outside.
    }
    if faces.iter().map(|f| f.1).sum::<i64>() + islands.iter().map(|i| i.1).sum::<i64>() != 2 * ONE * ONE {
        return None;
    }
    // An island stands in the smallest face around it; its area is taken off there, and what its outside is, so is that face.
    for (walk, area, left) in &islands {
        let home = faces.iter_mut().filter(|f| walk.iter().all(|p| inside(&f.0, *p))).min_by_key(|f| doubled_area(&f.0))?;
        home.1 += area;
        home.2.gas |= left.gas;
        home.2.solid |= left.solid;
    }
    let mut parts = Vec::new();
    for (outline, area, left) in faces {
        if left.gas && left.solid {
            return None;
        }
        if !left.solid {
            parts.push(Part { fraction: area as f64 / (2 * ONE * ONE) as f64, outline });
        }
    }
    parts.sort_by(|a, b| b.fraction.total_cmp(&a.fraction));
    let worth = parts.iter().filter(|p| p.fraction >= LEAST).count();
    parts.truncate(worth.max(1));
    Some(parts)
}
