//! Two axes that change places: the CPU eliminates along whichever axis transforms would find most awkward.
//!
//! Arrays are turned on loading and on reading, so the solver itself knows nothing of it. On a GPU that would be done in the
//! host's memory, whose bandwidth makes it cost more than it saves: there the last axis is always the one eliminated along.

use std::ops::Range;

use bytemuck::Pod;
use zellige_engine::error::Result;
use zellige_engine::large::zeros;
use zellige_engine::links::values;
use zellige_engine::parallel::{chunks, chunks_mut, each, items, items_mut};

use super::last;
use crate::grid::Grid;
use crate::stages::HostShare;

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

/// The way of arrays over a grid into the solver and back.
pub(super) struct Turn {
    /// The axis that the last one changes places with.
    pub(super) swapped: Option<usize>,
    /// Slabs of the grid's last axis by part of a run.
    pub(super) host: HostShare,
}

impl Turn {
    /// Distance between neighbouring nodes along the axes of `grid`, in values of an array of the solver.
    pub(super) fn strides(&self, grid: &Grid) -> [usize; 3] {
        let n = self::grid(grid, self.swapped).nodes();
        let mut stride = [1, n[0], n[0] * n[1]];
        if let Some(axis) = self.swapped {
            stride.swap(axis, last(grid));
        }
        stride
    }

    /// Part of an array of `len` values over the grid that this part of a run has.
    pub(super) fn given(&self, len: usize) -> Range<usize> {
        self.host.own(len)
    }

    /// Returns true if arrays change places between parts, each of which has slabs along one axis here and along another there.
    pub(super) fn between_parts(&self) -> bool {
        self.swapped.is_some() && self.host.divided()
    }

    /// Turns values over `grid` into an array of the solver, of which parts have a share. On the current thread pool.
    pub(super) fn there<A: Copy + Sync, B: Pod + Send + Sync>(
        &self,
        grid: &Grid,
        from: &[A],
        (to, share): (&mut [B], &HostShare),
        convert: impl Fn(A) -> B + Sync,
    ) -> Result<()> {
        let own = self.given(from.len());
        match self.swapped {
            Some(axis) if self.host.divided() && share.divided() => exchange(grid, axis, (from, &self.host), (to, share), convert),
            Some(_) if self.host.divided() => {
                let mut whole = zeros(to.len());
                each((items_mut(&mut whole[own.clone()]), items(&from[own])), |_, (to, from)| *to = convert(*from));
                self.host.complete(&mut whole)?;
                copy(grid, self.swapped, &whole, to, |v| v);
                Ok(())
            }
            Some(_) => {
                copy(grid, self.swapped, from, to, convert);
                Ok(())
            }
            None => {
                copy(grid, None, &from[own.clone()], &mut to[own], convert);
                Ok(())
            }
        }
    }

    /// Turns an array of the solver, of which parts have a share, back into values over `grid`.
    pub(super) fn back<A: Copy + Sync, B: Pod + Send + Sync>(
        &self,
        grid: &Grid,
        (from, share): (&[A], &HostShare),
        to: &mut [B],
        convert: impl Fn(A) -> B + Sync,
    ) -> Result<()> {
        let own = self.given(to.len());
        let turned = self::grid(grid, self.swapped);
        match self.swapped {
            Some(axis) if share.divided() => return exchange(&turned, axis, (from, share), (to, &self.host), convert),
            Some(_) => copy(&turned, self.swapped, from, to, convert),
            None => copy(grid, None, &from[own.clone()], &mut to[own], convert),
        }
        Ok(())
    }
}

/// Copies as [`copy`] does, where parts have slabs of both arrays: every part has a block for every other.
fn exchange<A: Copy + Sync, B: Pod + Send + Sync>(
    grid: &Grid,
    axis: usize,
    (from, given): (&[A], &HostShare),
    (to, taken): (&mut [B], &HostShare),
    convert: impl Fn(A) -> B + Sync,
) -> Result<()> {
    let (last, n, turned) = (last(grid), grid.nodes(), self::grid(grid, Some(axis)).nodes());
    let rank = given.links().rank();
    // Slabs of `to` are numbered along `axis` of the grid. In each of them a block has the nodes of some slabs of `from`, and all along
    // the axis that stays, which is x unless x changes places.
    let other = usize::from(axis == 0);
    let others = if last == 1 { 1 } else { n[other] };
    let (stride, turned_stride) = ([1, n[0], n[0] * n[1]], [1, turned[0], turned[0] * turned[1]]);
    let inner = |slabs: Range<usize>| slabs.flat_map(move |a| (0..others).map(move |o| (a, o)));
    let here = |l: usize, (a, o): (usize, usize)| l * stride[axis] + a * stride[last] + o * stride[other] * usize::from(others > 1);
    // Within a slab of `to`.
    let there = |(a, o): (usize, usize)| a * turned_stride[axis] + o * turned_stride[other] * usize::from(others > 1);
    let block = |part: usize| -> Vec<B> {
        let (slabs, own) = (taken.of_part(part, n[axis]), given.of_part(rank, n[last]));
        let size = own.len() * others;
        let mut block = zeros(slabs.len() * size);
        each(chunks_mut(&mut block, size), |l, block| {
            block.iter_mut().zip(inner(own.clone())).for_each(|(value, at)| *value = convert(from[here(slabs.start + l, at)]));
        });
        block
    };
    let slab = turned_stride[last];
    let mut place = |part: usize, block: Vec<B>| {
        let (slabs, theirs) = (taken.of_part(rank, n[axis]), given.of_part(part, n[last]));
        let size = theirs.len() * others;
        each((chunks_mut(&mut to[slabs.start * slab..slabs.end * slab], slab), chunks(&block, size)), |_, (to, block)| {
            block.iter().zip(inner(theirs.clone())).for_each(|(value, at)| to[there(at)] = *value);
        });
    };
    place(rank, block(rank));
    given.links().all_to_all(|part| bytemuck::cast_slice(&block(part)).to_vec(), |part, message| place(part, values(&message)))
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
