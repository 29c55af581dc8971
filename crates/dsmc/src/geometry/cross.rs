//! Crossings of outlines: exact tests of the pairs of segments that share a cell and whose boxes touch.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write as _;

use zellige_engine::error::Problem;

use super::curve::{Form, Gas};
use super::cut::cut;
use super::lattice::{FINE, Point, on_fine, orient_fine};
use super::outline::Line;
use crate::grid::Grid;

/// Problems reported before giving up.
const MOST: usize = 8;

/// Relation of two segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contact {
    Apart,
    Touching,
    Crossing,
}

fn contact((a, b): (Point, Point), (c, d): (Point, Point)) -> Contact {
    let sides = [orient_fine(a, b, c), orient_fine(a, b, d), orient_fine(c, d, a), orient_fine(c, d, b)].map(i128::signum);
    if sides[0] * sides[1] < 0 && sides[2] * sides[3] < 0 {
        Contact::Crossing
    } else if on_fine(a, b, c) || on_fine(a, b, d) || on_fine(c, d, a) || on_fine(c, d, b) {
        Contact::Touching
    } else {
        Contact::Apart
    }
}

/// Position of their intersection, m.
fn position(grid: &Grid, (a, b): (Point, Point), (c, d): (Point, Point)) -> [f64; 2] {
    let ends = [orient_fine(c, d, a) as f64, orient_fine(c, d, b) as f64];
    let unit = 1.0 / (1_i64 << FINE) as f64;
    let at = |p: [f64; 2]| [0, 1].map(|k| short(grid.origin[k] + p[k] * unit * grid.h[k]));
    let of = |p: Point| [p.x as f64, p.y as f64];
    if ends[0] == ends[1] {
        let inner = [c, d].into_iter().find(|p| on_fine(a, b, *p)).unwrap_or(a);
        return at(of(inner));
    }
    let s = ends[0] / (ends[0] - ends[1]);
    at([a.x as f64 + s * (b.x - a.x) as f64, a.y as f64 + s * (b.y - a.y) as f64])
}

/// Ten digits: the rest is round-off, which no file shows.
pub(super) fn short(x: f64) -> f64 {
    format!("{x:.9e}").parse().unwrap_or(x)
}

/// All problems of curves with themselves and with each other, up to a few.
pub(super) fn crossings(lines: &[Line], grid: &Grid) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut touching = std::collections::BTreeSet::new();
    // The problem of two curves, and at how many more pairs of segments it is.
    let mut known: BTreeMap<(usize, usize), (usize, usize)> = BTreeMap::new();
    for (i, j) in pairs(lines, grid) {
        let before = problems.len();
        let (one, two) = (&lines[i.0], &lines[j.0]);
        let (s, t) = (one.ends(i.1), two.ends(j.1));
        let contact = contact(s, t);
        if contact == Contact::Apart {
            continue;
        }
        let [x, y] = position(grid, s, t);
        let both = format!("{} and {}", one.segment(i.1), two.segment(j.1));
        if i.0 == j.0 {
            let next = one.closed && (j.1 + 1) % one.len() == i.1 || j.1 == i.1 + 1;
            // Neighbours share a vertex; they may share no more than that.
            let folded = next && contact == Contact::Touching && folds(s, t);
            if contact == Contact::Crossing {
                problems.push(
                    one.refused(format!("`{}` crosses itself at ({x}, {y}): {both}", one.curve.name), "a body's outline must be simple"),
                );
            } else if folded || !next {
                let hint = "a body's outline must be simple; give bodies that touch as two";
                problems.push(one.refused(format!("`{}` touches itself at ({x}, {y}): {both}", one.curve.name), hint));
            }
        } else if contact == Contact::Crossing {
            let message = format!("`{}` and `{}` cross at ({x}, {y}): {both}", one.curve.name, two.curve.name);
            problems.push(two.refused(message, "bodies may touch but not overlap: move one, or join their outlines"));
        } else if share(s, t) && (!one.closed || !two.closed || along(s, t) > 0) {
            // Sides of bodies that touch run against each other.
            let message = format!("`{}` and `{}` lie on each other at ({x}, {y}): {both}", one.curve.name, two.curve.name);
            problems.push(two.refused(message, "bodies may touch but not overlap, and a plate may only end on a body"));
        } else {
            touching.insert((i.0, j.0));
            touching.insert((j.0, i.0));
        }
        if problems.len() > before {
            match known.entry((i.0, j.0)) {
                Entry::Occupied(mut first) => {
                    first.get_mut().1 += 1;
                    problems.pop();
                }
                Entry::Vacant(first) if before < MOST => _ = first.insert((before, 0)),
                Entry::Vacant(_) => _ = problems.pop(),
            }
        }
    }
    for (at, more) in known.into_values().filter(|k| k.1 > 0) {
        let _ = write!(problems[at].message, "; and so {more} more pair{} of their segments", if more == 1 { "" } else { "s" });
    }
    if problems.is_empty() {
        nested(lines, grid, &touching, &mut problems);
    }
    problems
}

/// The scalar product of two segments.
fn along((a, b): (Point, Point), (c, d): (Point, Point)) -> i128 {
    let (s, t) = (b.minus(a), d.minus(c));
    i128::from(s.x) * i128::from(t.x) + i128::from(s.y) * i128::from(t.y)
}

/// True if two segments have more than a point in common.
fn share((a, b): (Point, Point), (c, d): (Point, Point)) -> bool {
    let mut common: Vec<_> = [c, d].into_iter().filter(|p| on_fine(a, b, *p)).collect();
    common.extend([a, b].into_iter().filter(|p| on_fine(c, d, *p)));
    common.iter().any(|p| *p != common[0])
}

/// True if two segments that share an end lie on each other.
fn folds((a, b): (Point, Point), (c, d): (Point, Point)) -> bool {
    let (shared, p, q) = if b == c {
        (b, a, d)
    } else if a == d {
        (a, b, c)
    } else {
        return true;
    };
    on_fine(shared, p, q) || on_fine(shared, q, p)
}

/// Pairs of segments `(curve, segment)` that share a cell and whose boxes touch, each once, ordered.
fn pairs(lines: &[Line], grid: &Grid) -> Vec<((usize, usize), (usize, usize))> {
    let (mut held, mut scratch) = (Vec::new(), Vec::new());
    for (c, line) in lines.iter().enumerate() {
        for k in 0..line.len() {
            let (a, b) = line.ends(k);
            cut(grid.cells, a, b, &mut scratch, |cell, from, to| {
                held.push((grid.index(cell), (c, k)));
                // A part that ends on a face or runs along it is also in the cells beyond.
                for p in [from, to] {
                    for x in [(p.x - 1) >> FINE, p.x >> FINE] {
                        for y in [(p.y - 1) >> FINE, p.y >> FINE] {
                            if x >= 0 && y >= 0 && x < grid.cells[0] as i64 && y < grid.cells[1] as i64 {
                                held.push((grid.index([x as usize, y as usize]), (c, k)));
                            }
                        }
                    }
                }
            });
        }
    }
    held.sort_unstable();
    held.dedup();
    let mut pairs = Vec::new();
    let mut boxes = Vec::new();
    for cell in held.chunk_by(|p, q| p.0 == q.0) {
        boxes.clear();
        boxes.extend(cell.iter().map(|&(_, of)| {
            let (a, b) = lines[of.0].ends(of.1);
            ([a.x.min(b.x), a.y.min(b.y)], [a.x.max(b.x), a.y.max(b.y)], of)
        }));
        // Swept along the axis on which they are further apart: only boxes that touch are pairs.
        let spread = |d: usize| {
            let (least, most) = boxes.iter().fold((i64::MAX, i64::MIN), |(l, m), b| (l.min(b.0[d]), m.max(b.0[d])));
            most - least
        };
        let axis = usize::from(spread(1) > spread(0));
        let other = 1 - axis;
        boxes.sort_unstable_by_key(|b| (b.0[axis], b.2));
        for (k, (low, high, first)) in boxes.iter().enumerate() {
            let ahead = boxes[k + 1..].iter().take_while(|b| b.0[axis] <= high[axis]);
            let close = ahead.filter(|b| b.0[other] <= high[other] && b.1[other] >= low[other]);
            pairs.extend(close.map(|b| (*first.min(&b.2), *first.max(&b.2))));
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// Location of a point given in half units of the lattice: 1 inside, 0 on the outline, -1 outside.
fn side(line: &Line, p: Point) -> i32 {
    let mut inside = false;
    for k in 0..line.len() {
        let (a, b) = line.ends(k);
        let (a, b) = (Point::new(2 * a.x, 2 * a.y), Point::new(2 * b.x, 2 * b.y));
        if on_fine(a, b, p) {
            return 0;
        }
        if (a.y > p.y) != (b.y > p.y) && ((orient_fine(a, b, p) > 0) == (b.y > a.y)) {
            inside = !inside;
        }
    }
    if inside { 1 } else { -1 }
}

/// Bodies that lie in the solid of others.
fn nested(lines: &[Line], grid: &Grid, touching: &std::collections::BTreeSet<(usize, usize)>, problems: &mut Vec<Problem>) {
    let unit = 0.5 / (1_i64 << FINE) as f64;
    for (i, inner) in lines.iter().enumerate() {
        for (o, outer) in lines.iter().enumerate().filter(|(o, l)| *o != i && l.closed) {
            let (chamber, room) = (outer.curve.gas == Gas::Inside, inner.curve.gas == Gas::Inside);
            // A body that holds a chamber is found when the body is looked at.
            if room && !chamber {
                continue;
            }
            let wrong = if chamber && !room { -1 } else { 1 };
            // Apart, one point tells; touching, each vertex and each middle does.
            let tested = if touching.contains(&(i, o)) { inner.len() } else { 1 };
            let points = (0..tested).flat_map(|k| {
                let (a, b) = inner.ends(k);
                [Point::new(2 * a.x, 2 * a.y), a.plus(b)]
            });
            if let Some((k, p)) = points.enumerate().find(|(_, p)| side(outer, *p) == wrong) {
                let [x, y] = [(0, p.x), (1, p.y)].map(|(d, v)| short(grid.origin[d] + v as f64 * unit * grid.h[d]));
                let what = if wrong == 1 { "lies in" } else { "lies outside of" };
                let message = format!("`{}` {what} `{}` at ({x}, {y}): {}", inner.curve.name, outer.curve.name, inner.segment(k / 2));
                let hint = match (wrong, inner.curve.form) {
                    (1, Form::Plate) => "a plate may end on a body, not in it",
                    (1, _) => "bodies may touch but not overlap; a body with the gas inside is `gas = \"inside\"`",
                    _ => "the gas is inside of that curve: bodies must be too",
                };
                problems.push(inner.refused(message, hint));
                if problems.len() == MOST {
                    return;
                }
            }
        }
    }
}
