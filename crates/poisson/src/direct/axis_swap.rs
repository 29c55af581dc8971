//! Two axes that change places: the CPU eliminates along whichever axis transforms would find most awkward.
//!
//! Arrays are turned on loading and on reading, so the solver itself knows nothing of it. On a GPU that would be done in the
//! host's memory, whose bandwidth makes it cost more than it saves: there the last axis is always the one eliminated along.

use zellige_engine::parallel::{chunks_mut, each, items, items_mut};

use super::last;
use crate::grid::Grid;

/// Nodes of a tile along both axes: its rows stay in the first-level cache between the reads of a line of it.
const TILE: usize = 32;

/// `grid` with the axis `swapped` and the last one in each other's place.
pub(super) fn grid(grid: &Grid, swapped: Option<usize>) -> Grid {
    let mut swapped_grid = grid.clone();
    if let Some(axis) = swapped {
        swapped_grid.axes.swap(axis, last(grid));
    }
    swapped_grid
}

/// Distance between neighbouring nodes along the axes of `grid`, in values of the array that [`copy`] fills.
pub(super) fn strides(grid: &Grid, swapped: Option<usize>) -> [usize; 3] {
    let n = self::grid(grid, swapped).nodes();
    let mut stride = [1, n[0], n[0] * n[1]];
    if let Some(axis) = swapped {
        stride.swap(axis, last(grid));
    }
    stride
}

/// Copies the values over all nodes of `grid`, x fastest, to where the nodes lie once its axis `swapped` and the last one have
/// changed places. On the current thread pool.
pub(super) fn copy<A: Copy + Sync, B: Send>(
    grid: &Grid,
    swapped: Option<usize>,
    from: &[A],
    to: &mut [B],
    convert: impl Fn(A) -> B + Sync,
) {
    let Some(axis) = swapped else {
        each((items_mut(to), items(from)), |_, (to, from)| *to = convert(*from));
        return;
    };
    let (n, last) = (grid.nodes(), last(grid));
    let stride = [1, n[0], n[0] * n[1]];
    // Indices in `from` of the nodes of the swapped grid.
    let (mut count, mut step) = (n, stride);
    count.swap(axis, last);
    step.swap(axis, last);
    if axis > 0 {
        // Rows of x stay whole.
        each(chunks_mut(to, n[0]), |row, to| {
            let first = row % count[1] * step[1] + row / count[1] * step[2];
            to.iter_mut().zip(&from[first..]).for_each(|(to, from)| *to = convert(*from));
        });
        return;
    }
    // x changes places. A stack of tiles is TILE rows of `to` that lie one after the other in `from`.
    let (width, plane) = (count[0], count[0] * count[1]);
    let line = |rows: &mut [&mut [B]], first: usize| {
        for begin in (0..width).step_by(TILE) {
            let end = width.min(begin + TILE);
            for (r, to) in rows.iter_mut().enumerate() {
                for (i, to) in (begin..end).zip(&mut to[begin..end]) {
                    *to = convert(from[first + r + i * step[0]]);
                }
            }
        }
    };
    if last == 1 {
        each(chunks_mut(to, TILE * width), |stack, to| {
            line(&mut to.chunks_mut(width).collect::<Vec<_>>(), stack * TILE);
        });
        return;
    }
    // In space these rows are a plane apart in `to`.
    let mut stacks: Vec<(usize, Vec<&mut [B]>)> = Vec::with_capacity(count[1] * count[2].div_ceil(TILE));
    for (l, plane) in to.chunks_mut(plane).enumerate() {
        for (q, row) in plane.chunks_mut(width).enumerate() {
            if l % TILE == 0 {
                stacks.push((q * step[1] + l, Vec::with_capacity(TILE)));
            }
            stacks[l / TILE * count[1] + q].1.push(row);
        }
    }
    each(items_mut(&mut stacks), |_, (first, rows)| line(rows, *first));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{Axis, Bc};

    #[test]
    fn every_node_goes_to_its_place_and_back() {
        let axis = |n: usize| if n == 1 { Axis::flat() } else { Axis::new(n, 1.0, Bc::Neumann, Bc::Neumann) };
        for n in [[5, 7, 1], [32, 64, 1], [33, 100, 1], [97, 31, 1], [3, 4, 5], [32, 3, 33], [70, 5, 41], [41, 5, 70]] {
            let given = Grid { axes: n.map(axis) };
            for swapped in [None, Some(0), Some(1)].into_iter().take(if n[2] == 1 { 2 } else { 3 }) {
                let swapped_grid = grid(&given, swapped);
                let from: Vec<usize> = (0..given.len()).collect();
                let mut to = vec![usize::MAX; from.len()];
                copy(&given, swapped, &from, &mut to, |v| v);
                let m = swapped_grid.nodes();
                for (i, value) in to.iter().enumerate() {
                    let mut at = [i % m[0], i / m[0] % m[1], i / (m[0] * m[1])];
                    if let Some(axis) = swapped {
                        at.swap(axis, last(&given));
                    }
                    assert_eq!(*value, at[0] + n[0] * (at[1] + n[1] * at[2]), "{n:?} {swapped:?} node {i}");
                }
                let mut back = vec![0; from.len()];
                copy(&swapped_grid, swapped, &to, &mut back, |v| v);
                assert_eq!(back, from, "{n:?} {swapped:?}");
            }
        }
    }
}
