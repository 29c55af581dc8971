//! Joins the segments of a geometry file, whose ends are printed with six digits after the point: in a fine grid a few units of the
//! last one are a whole segment.

use std::collections::HashMap;

use crate::grid::Grid;

/// The last digit, m.
const DIGIT: f64 = 1e-6;

/// A segment as printed, the solid to its left.
#[derive(Debug, Clone, Copy)]
pub(super) struct PrintedSegment {
    pub(super) ends: [[f64; 2]; 2],
    /// Line of the file.
    pub(super) line: usize,
    pub(super) cell: usize,
}

impl PrintedSegment {
    /// Location in the file, in words.
    pub(super) fn at(&self) -> String {
        format!("line {}, cell {}", self.line, self.cell)
    }
}

/// True if two positions may be one: a direction between them says nothing.
pub(super) fn near(a: [f64; 2], b: [f64; 2]) -> bool {
    (0..2).all(|d| (a[d] - b[d]).abs() < 1.5 * DIGIT)
}

/// A position printed half a digit off a side of the domain is on it.
pub(super) fn snapped(mut p: [f64; 2], grid: &Grid) -> [f64; 2] {
    for d in 0..2 {
        for side in [grid.origin[d], grid.origin[d] + grid.length(d)] {
            if (p[d] - side).abs() < 0.6 * DIGIT.min(0.1 * grid.h[d]) {
                p[d] = side;
            }
        }
    }
    p
}

/// The segment that follows on each: one that begins exactly where it ends, or, where none does, the nearest one within the last
/// digit; never itself.
pub(super) fn followers(all: &[PrintedSegment]) -> Vec<Option<usize>> {
    // Adding 0 makes -0 and 0 one.
    let bits = |p: [f64; 2]| p.map(|x| (x + 0.0).to_bits());
    let mut begin: HashMap<[u64; 2], Vec<usize>> = HashMap::new();
    for (k, s) in all.iter().enumerate().rev() {
        begin.entry(bits(s.ends[0])).or_default().push(k);
    }
    let mut next: Vec<Option<usize>> = all.iter().map(|s| begin.get_mut(&bits(s.ends[1])).and_then(Vec::pop)).collect();
    let digit = |p: [f64; 2]| p.map(|x| (x / DIGIT).round() as i64);
    let mut loose: HashMap<[i64; 2], Vec<usize>> = HashMap::new();
    for k in begin.into_values().flatten() {
        loose.entry(digit(all[k].ends[0])).or_default().push(k);
    }
    let mut pairs = Vec::new();
    for k in (0..all.len()).filter(|k| next[*k].is_none()) {
        let p = all[k].ends[1];
        let [x, y] = digit(p);
        for key in (-1..=1).flat_map(|dx| (-1..=1).map(move |dy| [x.saturating_add(dx), y.saturating_add(dy)])) {
            for &m in loose.get(&key).into_iter().flatten().filter(|m| **m != k) {
                let q = all[m].ends[0];
                pairs.push(((q[0] - p[0]).hypot(q[1] - p[1]), k, m));
            }
        }
    }
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let mut taken = std::collections::HashSet::new();
    for (_, k, m) in pairs {
        if next[k].is_none() && taken.insert(m) {
            next[k] = Some(m);
        }
    }
    next
}

/// Message about an outline that is open inside the domain: the first such end.
pub(super) fn open(all: &[PrintedSegment], next: &[Option<usize>], grid: &Grid) -> Option<String> {
    let on_side = |p: [f64; 2]| (0..2).any(|d| p[d] == grid.origin[d] || p[d] == grid.origin[d] + grid.length(d));
    let mut followed = vec![false; all.len()];
    next.iter().flatten().for_each(|m| followed[*m] = true);
    let loose = |end: usize, k: usize| if end == 1 { next[k].is_none() } else { !followed[k] };
    let (end, k) =
        [1, 0].into_iter().flat_map(|e| (0..all.len()).map(move |k| (e, k))).find(|&(e, k)| loose(e, k) && !on_side(all[k].ends[e]))?;
    let [does, should] = if end == 1 { ["ends", "begins"] } else { ["begins", "ends"] };
    let [x, y] = all[k].ends[end];
    let away = |m: &usize| (all[*m].ends[1 - end][0] - x).hypot(all[*m].ends[1 - end][1] - y);
    let other = (0..all.len()).filter(|m| *m != k && loose(1 - end, *m)).min_by(|a, b| away(a).total_cmp(&away(b)));
    let nearest = other.map_or(String::new(), |m| {
        let [x, y] = all[m].ends[1 - end];
        format!("; the nearest that is free {should} at ({x}, {y}), {}", all[m].at())
    });
    Some(format!(
        "the outline is open: the segment in {} {does} at ({x}, {y}), and no other {should} there to {DIGIT:e} m{nearest}. An outline must \
         be closed, or end on sides of the domain",
        all[k].at()
    ))
}
