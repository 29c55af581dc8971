//! Outlines from files: SPARTA's surface files, and the geometry files of the program that this one grew from, both as they are.

use std::collections::HashMap;
use std::path::Path;

use zellige_engine::error::{Error, Result};
use zellige_engine::files::read_text;

use super::curve::{Curve, Form, Gas};
use super::join::{self, PrintedSegment};
use crate::grid::Grid;

/// Largest file read, bytes: some ten million segments.
const LIMIT: u64 = 1 << 30;

/// Names and walls of the curves of a file.
#[derive(Debug, Clone, Copy)]
pub struct Label<'a> {
    /// Name of the body; several bodies of a file are numbered.
    pub name: &'a str,
    /// Key of the input, for messages.
    pub origin: &'a str,
    /// On which side the gas is. With `Inside` the largest curve holds the gas, and the others are bodies in it.
    pub gas: Gas,
    /// Number of the wall.
    pub wall: u32,
    /// Types of SPARTA's lines that have a wall of their own, and its number.
    pub types: &'a [(&'a str, u32)],
}

/// Reads a file of either kind: one whose first line with content is four numbers is a geometry file.
///
/// # Errors
/// [`Error::File`] where it cannot be read and [`Error::Format`], with the line, where it is not what it should be.
pub fn read(path: impl AsRef<Path>, grid: &Grid, label: Label) -> Result<Vec<Curve>> {
    let path = path.as_ref();
    let text = read_text(path, "surface", LIMIT)?;
    let header = lines(&text).next().map(|(_, line)| line.split_whitespace().filter_map(|w| w.parse::<f64>().ok()).count());
    if header == Some(4) {
        cells(&text, grid, label).map_err(|m| Error::format(path, "geometry", m))
    } else {
        surf(&text, label).map_err(|m| Error::format(path, "SPARTA surface", m))
    }
}

/// Lines with content, numbered from 1, comments cut off.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(k, line)| (k + 1, line.split('#').next().unwrap_or("").trim())).filter(|(_, line)| !line.is_empty())
}

/// The numbers of a line.
fn numbers<const N: usize>(number: usize, words: &[&str]) -> Result<[f64; N], String> {
    let mut all = [0.0; N];
    if words.len() < N {
        return Err(format!("line {number} ends after {} of {N} numbers", words.len()));
    }
    for (x, word) in all.iter_mut().zip(words) {
        *x = word.parse::<f64>().ok().filter(|x| x.is_finite()).ok_or_else(|| format!("`{word}` in line {number} is no number"))?;
    }
    Ok(all)
}

/// A directed segment from one point to another, the solid to its left.
#[derive(Debug, Clone, Copy)]
struct Link {
    from: usize,
    to: usize,
    /// Number in the file.
    number: u64,
    /// Number of its wall.
    wall: u32,
}

/// SPARTA's surface file (its manual, `read_surf`): the gas is to the left of `p1 -> p2`.
pub(super) fn surf(text: &str, label: Label) -> Result<Vec<Curve>, String> {
    // The first line is a title, whatever it says.
    let mut rest = text
        .lines()
        .enumerate()
        .skip(1)
        .map(|(k, l)| (k + 1, l.split('#').next().unwrap_or("").trim()))
        .filter(|(_, l)| !l.is_empty())
        .peekable();
    let (mut points, mut count) = (None, None);
    while let Some(&(number, line)) = rest.peek() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["points" | "lines" | "triangles"] = words[1..] else { break };
        let n = words[0].parse::<usize>().map_err(|_| format!("`{}` in line {number} is no count", words[0]))?;
        match words[1] {
            "points" => points = Some(n),
            "lines" => count = Some(n),
            _ => return Err(format!("line {number} counts triangles: this is a surface in three dimensions")),
        }
        rest.next();
    }
    let Some(count) = count else { return Err("it has no line `N lines` in its header".into()) };
    let (mut positions, mut links): (Vec<[f64; 2]>, Vec<Link>) = (Vec::new(), Vec::new());
    let mut kind: Option<(String, u64)> = None;
    let mut used = vec![false; label.types.len()];
    let mut known: HashMap<[u64; 2], usize> = HashMap::new();
    while let Some((number, section)) = rest.next() {
        let expected = match section {
            "Points" => points.ok_or("it has a section `Points` but no line `N points` in its header")?,
            "Lines" => count,
            other => return Err(format!("line {number} is `{other}` where a section `Points` or `Lines` should begin")),
        };
        for k in 0..expected {
            let Some((number, line)) = rest.next() else {
                return Err(format!("it ends after {k} of {expected} {}", section.to_lowercase()));
            };
            let words: Vec<&str> = line.split_whitespace().collect();
            if section == "Points" {
                let [_, x, y] = numbers::<3>(number, &words)?;
                positions.push([x, y]);
                continue;
            }
            let id = words[0].parse::<u64>().map_err(|_| format!("`{}` in line {number} is no number of a line", words[0]))?;
            // A type may stand before the points: SPARTA gives each type a wall. A line without one is of type 1.
            let of = if matches!((points, words.len()), (Some(_), 4) | (None, 6)) { words[1] } else { "1" };
            let own = label.types.iter().position(|(name, _)| *name == of);
            if let Some(own) = own {
                used[own] = true;
            } else if matches!((points, words.len()), (Some(_), 3 | 4) | (None, 5 | 6)) {
                let (first, line) = kind.get_or_insert_with(|| (of.to_owned(), id));
                if first != of {
                    return Err(format!(
                        "line {line} is of type {first} and line {id} of type {of}, and `wall` is for one type: give the others in `walls`"
                    ));
                }
            }
            let wall = own.map_or(label.wall, |own| label.types[own].1);
            let ends = match (points, words.len()) {
                (Some(n), 3 | 4) => {
                    let end = |word: &str| match word.parse::<usize>() {
                        Ok(p) if (1..=n).contains(&p) => Ok(p - 1),
                        _ => Err(format!("`{word}` in line {number} is no point: there are {n}")),
                    };
                    [end(words[words.len() - 2])?, end(words[words.len() - 1])?]
                }
                (None, 5 | 6) => {
                    let [ax, ay, bx, by] = numbers::<4>(number, &words[words.len() - 4..])?;
                    [[ax, ay], [bx, by]].map(|p| {
                        // Adding 0 makes -0 and 0 one.
                        *known.entry(p.map(|x| (x + 0.0).to_bits())).or_insert_with(|| {
                            positions.push(p);
                            positions.len() - 1
                        })
                    })
                }
                (_, n) => return Err(format!("line {number} has {n} entries: a line is its number, perhaps a type, and two points")),
            };
            links.push(Link { from: ends[1], to: ends[0], number: id, wall });
        }
    }
    if links.len() != count {
        return Err("it has no section `Lines`".into());
    }
    if let Some(k) = used.iter().position(|used| !used) {
        return Err(format!("`walls` has a wall for type {}, of which no line is", label.types[k].0));
    }
    if let Some(n) = points
        && n != positions.len()
    {
        return Err("it has no section `Points`".into());
    }
    chains(&positions, &links, "line", label)
}

/// The geometry file of cells: `nx ny lx ly`, then `cell 0 x0 y0 x1 y1 nx ny` for a segment and `cell 1` for a solid cell.
pub(super) fn cells(text: &str, grid: &Grid, label: Label) -> Result<Vec<Curve>, String> {
    let mut rest = lines(text);
    let (number, header) = rest.next().ok_or("it is empty")?;
    let size = numbers::<4>(number, &header.split_whitespace().collect::<Vec<_>>())?;
    let own = [grid.cells[0] as f64, grid.cells[1] as f64, grid.length(0), grid.length(1)];
    // Lengths are printed with few digits.
    if size[..2] != own[..2] || (2..4).any(|k| (size[k] - own[k]).abs() > 1e-4 * own[k]) {
        return Err(format!(
            "line {number} is for {} x {} cells on {} m x {} m, the input has {} x {} on {} m x {} m",
            size[0], size[1], size[2], size[3], own[0], own[1], own[2], own[3]
        ));
    }
    let (mut all, mut solid) = (Vec::new(), Vec::new());
    for (number, line) in rest {
        let words: Vec<&str> = line.split_whitespace().collect();
        let cell = words[0].parse::<usize>().ok().filter(|c| *c < grid.len());
        let cell = cell.ok_or_else(|| format!("`{}` in line {number} is no cell: there are {}", words[0], grid.len()))?;
        match words.get(1) {
            Some(&"1") => solid.push((number, cell)),
            Some(&"0") => {
                let [ax, ay, bx, by, nx, ny] = numbers::<6>(number, &words[2..])?;
                let along = (by - ay) * nx - (bx - ax) * ny;
                let [a, b] = [[ax, ay], [bx, by]].map(|p| join::snapped([p[0] + grid.origin[0], p[1] + grid.origin[1]], grid));
                if a == b || along == 0.0 && join::near(a, b) {
                    // Shorter than the digits that are printed: its neighbours meet here.
                    continue;
                }
                if along == 0.0 {
                    return Err(format!("the normal in line {number}, cell {cell}, lies along the segment"));
                }
                // The normal to the right has the solid on the left.
                all.push(PrintedSegment { ends: if along > 0.0 { [a, b] } else { [b, a] }, line: number, cell });
            }
            _ => return Err(format!("line {number} is neither `cell 0 x0 y0 x1 y1 nx ny` nor `cell 1`")),
        }
    }
    let next = join::followers(&all);
    if let Some(what) = join::open(&all, &next, grid) {
        return Err(what);
    }
    // Each segment brings the point that it begins at, and one without a follower that it ends at.
    let mut positions: Vec<[f64; 2]> = all.iter().map(|s| s.ends[0]).collect();
    let links: Vec<Link> = (0..all.len())
        .map(|k| {
            let to = next[k].unwrap_or_else(|| {
                positions.push(all[k].ends[1]);
                positions.len() - 1
            });
            Link { from: k, to, number: all[k].cell as u64, wall: label.wall }
        })
        .collect();
    let mut curves = chains(&positions, &links, "segment of cell", label)?;
    for curve in &mut curves {
        merge(curve);
    }
    if let Some(c) =
        curves.iter().find(|c| c.form == Form::Closed && c.vertices.len() < 3 && c.vertices.iter().any(|v| !join::near(*v, c.vertices[0])))
    {
        let [x, y] = c.vertices[0];
        let of = all.iter().find(|s| s.ends[0] == c.vertices[0]).map_or(String::new(), PrintedSegment::at);
        return Err(format!("the segment in {of}, goes from ({x}, {y}) there and back and encloses nothing"));
    }
    curves.retain(|c| c.form != Form::Closed || c.vertices.len() > 2);
    if curves.is_empty() {
        return Err(format!("all its {} segments are shorter than the last of its digits", all.len()));
    }
    for (number, cell) in solid {
        let middle = grid.position(grid.cell(cell), [0.5; 2]);
        if label.gas == Gas::Outside && !curves.iter().any(|c| contains(&c.vertices, middle)) {
            return Err(format!("line {number} says that cell {cell} is solid, but no segments go around it"));
        }
    }
    Ok(curves)
}

/// Leaves out vertices that joining brought to the position of the one before.
fn merge(curve: &mut Curve) {
    let (v, closed) = (&curve.vertices, curve.form == Form::Closed);
    let n = v.len();
    // Segment k goes from vertex k to the next; where it has no length it goes, with its first vertex.
    let keep: Vec<bool> = (0..n).map(|k| k + 1 == n && !closed || n == 1 || v[k] != v[(k + 1) % n]).collect();
    let kept = |k: &usize| keep[*k];
    curve.numbers = (0..curve.numbers.len()).filter(kept).map(|k| curve.numbers[k]).collect();
    curve.walls = (0..curve.walls.len()).filter(kept).map(|k| curve.walls[k]).collect();
    curve.vertices = (0..n).filter(kept).map(|k| curve.vertices[k]).collect();
}

/// True if a point is in a closed polygon.
fn contains(v: &[[f64; 2]], p: [f64; 2]) -> bool {
    (0..v.len()).fold(false, |inside, k| {
        let (a, b) = (v[k], v[(k + 1) % v.len()]);
        let crossed = (a[1] > p[1]) != (b[1] > p[1]) && p[0] < a[0] + (p[1] - a[1]) / (b[1] - a[1]) * (b[0] - a[0]);
        inside != crossed
    })
}

/// Strings segments together to curves. `what` is how the file calls a segment.
fn chains(positions: &[[f64; 2]], links: &[Link], what: &str, label: Label) -> Result<Vec<Curve>, String> {
    if links.is_empty() {
        return Err("it has no segments".into());
    }
    let (mut leaves, mut enters) = (vec![None; positions.len()], vec![None; positions.len()]);
    for (k, link) in links.iter().enumerate() {
        for (ends, at, verb) in [(&mut leaves, link.from, "begin"), (&mut enters, link.to, "end")] {
            if let Some(other) = ends[at].replace(k) {
                let [x, y] = positions[at];
                let other: &Link = &links[other];
                return Err(format!(
                    "{what} {} and {what} {} both {verb} at ({x}, {y}): turn one of them, or give bodies that touch a point each",
                    other.number, link.number
                ));
            }
        }
    }
    let mut seen = vec![false; links.len()];
    let mut curves = Vec::new();
    // Open chains first, from their beginning.
    let starts = (0..links.len()).filter(|k| enters[links[*k].from].is_none()).chain(0..links.len()).collect::<Vec<_>>();
    for start in starts {
        if seen[start] {
            continue;
        }
        let (mut vertices, mut numbers, mut walls, mut at) = (vec![positions[links[start].from]], Vec::new(), Vec::new(), Some(start));
        while let Some(k) = at.filter(|k| !seen[*k]) {
            seen[k] = true;
            numbers.push(links[k].number);
            walls.push(links[k].wall);
            vertices.push(positions[links[k].to]);
            at = leaves[links[k].to];
        }
        let closed = at == Some(start);
        if closed {
            vertices.pop();
        }
        let form = if closed { Form::Closed } else { Form::FromSideToSide };
        curves.push(Curve {
            name: label.name.to_owned(),
            origin: label.origin.to_owned(),
            vertices,
            form,
            gas: Gas::Outside,
            wall: label.wall,
            numbers,
            walls,
        });
    }
    if curves.len() > 1 {
        curves.iter_mut().enumerate().for_each(|(k, c)| c.name = format!("{} {}", label.name, k + 1));
    }
    if label.gas == Gas::Inside {
        let area = |c: &Curve| {
            (0..c.vertices.len())
                .map(|k| (c.vertices[k], c.vertices[(k + 1) % c.vertices.len()]))
                .map(|(a, b)| a[0] * b[1] - a[1] * b[0])
                .sum::<f64>()
                .abs()
        };
        if let Some(outer) = curves.iter_mut().max_by(|a, b| area(a).total_cmp(&area(b))) {
            outer.gas = Gas::Inside;
        }
    }
    Ok(curves)
}
