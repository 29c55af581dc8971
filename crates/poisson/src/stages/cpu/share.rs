//! Shares of a level: the slabs that each part of a run works on.
//!
//! An array spans the whole level on every part, but a part touches only its own slabs and copies of those beside them, and the
//! system gives memory for no others. So every index means the same on all parts. A level that is too small to be divided is worked
//! on by all parts alike.

use std::ops::Range;

use zellige_engine::error::Result;
use zellige_engine::links::Links;
use zellige_engine::real::RealScalar;

use super::field::Field;
use super::pass::SlabSums;
use super::tables::AxisTransfer;
use crate::grid::Grid;
use crate::stages::HostShare;
use crate::stages::ranges::Ranges;

/// Least slabs and nodes of a part's share: with fewer, a message takes longer than the work.
const LEAST: [usize; 2] = [8, 4096];

/// Returns true if so many slabs of `nodes` nodes are worth a share of their own.
pub(super) fn large_enough(slabs: usize, nodes: usize) -> bool {
    slabs >= LEAST[0] && slabs * nodes >= LEAST[1]
}

/// Slabs at which shares may begin, the first and from one to the next: the direct solver transforms rows of a plane grid in pairs.
pub(super) fn begins(grid: &Grid) -> [usize; 2] {
    [grid.axes[2].unknowns().start, if grid.axes[1].is_flat() { 2 } else { 1 }]
}

/// Slabs of a grid by part of a run, as [`Stages`](crate::stages::Stages) on the CPU have them.
pub(crate) fn host_slabs(grid: &Grid, links: &Links) -> HostShare {
    let mut grid = grid.clone();
    if grid.axes[2].is_flat() {
        grid.axes.swap(1, 2);
    }
    Share::even(links, &grid).on_host(grid.axes[2].periodic())
}

/// Slabs of a level by part, and the links between the parts.
#[derive(Debug, Clone)]
pub(super) struct Share {
    links: Links,
    ranges: Ranges,
}

impl Share {
    /// Even shares of the slabs of a grid in the order of [`super::field::in_slabs`].
    pub(super) fn even(links: &Links, grid: &Grid) -> Self {
        let [x, rows, slabs] = grid.nodes();
        let ranges = Ranges::even(links.size(), slabs, begins(grid), |slabs| large_enough(slabs, x * rows));
        Self { links: links.clone(), ranges }
    }

    /// Shares of the level below one with this share: the coarse slabs on a part's fine ones. `divides` is false for a level that
    /// is never divided.
    pub(super) fn below<T>(&self, transfer: &AxisTransfer<T>, slabs: usize, nodes: usize, divides: bool) -> Self {
        let start = |fine: usize| transfer.child.partition_point(|child| *child < fine);
        let ranges = self.ranges.below(start, slabs, |slabs| divides && large_enough(slabs, nodes));
        Self { links: self.links.clone(), ranges }
    }

    /// Returns true if parts have different slabs.
    pub(super) fn divided(&self) -> bool {
        self.ranges.divided()
    }

    /// Returns true if the run is not cut into parts.
    pub(super) fn is_alone(&self) -> bool {
        self.links.is_alone()
    }

    /// Slabs of the finest level for what the host does with its arrays.
    pub(super) fn on_host(&self, periodic: bool) -> HostShare {
        HostShare::new(&self.links, &self.ranges, self.own(), periodic)
    }

    /// Slabs of this part.
    pub(super) fn own(&self) -> Range<usize> {
        self.ranges.of_part(self.links.rank())
    }

    /// Copies the `depth` slabs beside this part's from the parts that own them, unless they are up to date.
    pub(super) fn copy_beside<T: RealScalar>(&self, field: &mut Field<T>, depth: usize, periodic: bool) -> Result<()> {
        if !self.divided() || field.beside >= depth {
            return Ok(());
        }
        let (rank, slab) = (self.links.rank(), field.shape.slab());
        let others = || self.ranges.parts().filter(|(part, _)| *part != rank);
        let own = self.own();
        let mut send = Vec::new();
        for (part, _) in others() {
            let wanted = self.ranges.beside(part, depth, periodic).into_iter().filter(|k| own.contains(k));
            let message: Vec<u8> = wanted.flat_map(|k| bytemuck::cast_slice(field.slab(k)).iter().copied()).collect();
            if !message.is_empty() {
                send.push((part, message));
            }
        }
        let wanted = self.ranges.beside(rank, depth, periodic);
        let from = |part: usize| {
            let theirs = self.ranges.of_part(part);
            wanted.iter().copied().filter(move |k| theirs.contains(k))
        };
        let others: Vec<usize> = others().map(|(part, _)| part).filter(|part| from(*part).next().is_some()).collect();
        for (part, message) in others.iter().zip(self.links.exchange(send, &others)?) {
            for (k, bytes) in from(*part).zip(message.chunks_exact(slab * size_of::<T>())) {
                bytemuck::cast_slice_mut(&mut field.all_mut()[k * slab..(k + 1) * slab]).copy_from_slice(bytes);
            }
        }
        field.beside = depth;
        Ok(())
    }

    /// Slabs of the level below, with share `below`, that lie on this part's slabs of this level.
    pub(super) fn on_level_below<V>(&self, below: &Self, transfer: &AxisTransfer<V>) -> Range<usize> {
        let start = |fine: usize| transfer.child.partition_point(|child| *child < fine).min(below.ranges.slabs());
        let own = self.own();
        if self.divided() { start(own.start)..start(own.end) } else { below.own() }
    }

    /// Completes an array of a level that is not divided, of which each part has made the slabs on its share of the finer level,
    /// which is this one.
    pub(super) fn complete_below<T: RealScalar, V>(&self, below: &Self, transfer: &AxisTransfer<V>, field: &mut Field<T>) -> Result<()> {
        if !self.divided() || below.divided() {
            return Ok(());
        }
        let start = |fine: usize| transfer.child.partition_point(|child| *child < fine).min(below.ranges.slabs());
        let slab = field.shape.slab();
        let range = |part: usize| {
            let range = self.ranges.of_part(part);
            start(range.start) * slab..start(range.end) * slab
        };
        self.gather_ranges(field.all_mut(), range)
    }

    fn gather_ranges<T: RealScalar>(&self, values: &mut [T], range: impl Fn(usize) -> Range<usize>) -> Result<()> {
        let own = bytemuck::cast_slice(&values[range(self.links.rank())]).to_vec();
        for (part, message) in self.links.all_gather(own)?.into_iter().enumerate() {
            bytemuck::cast_slice_mut(&mut values[range(part)]).copy_from_slice(&message);
        }
        Ok(())
    }

    /// The sums of all slabs, in their order, of which this part has its own.
    pub(super) fn gather_sums(&self, sums: &mut [SlabSums]) -> Result<()> {
        let mut values: Vec<[f64; 4]> = sums.iter().map(|s| [s.r, s.r2, s.u2, s.max]).collect();
        self.gather_values(&mut values)?;
        sums.iter_mut().zip(values).for_each(|(s, [r, r2, u2, max])| *s = SlabSums { r, r2, u2, max });
        Ok(())
    }

    /// Values of all slabs, of which this part has its own.
    pub(super) fn gather_values<const N: usize>(&self, values: &mut [[f64; N]]) -> Result<()> {
        if !self.divided() {
            return Ok(());
        }
        let own: Vec<u8> = bytemuck::cast_slice(values[self.own()].as_flattened()).to_vec();
        for ((_, range), message) in self.ranges.parts().zip(self.links.all_gather(own)?) {
            bytemuck::cast_slice_mut(values[range.clone()].as_flattened_mut()).copy_from_slice(&message);
        }
        Ok(())
    }

    /// The largest of a value over all parts.
    pub(super) fn max(&self, value: f64) -> Result<f64> {
        let mut values = [value];
        if self.divided() {
            self.links.max(&mut values)?;
        }
        Ok(values[0])
    }
}
