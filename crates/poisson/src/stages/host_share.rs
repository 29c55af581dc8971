//! Slabs of the finest grid that a part of a run has on its host.
//!
//! Slabs are planes, or rows of a plane grid. An array spans the grid on every part, but a part touches only its own slabs and some
//! beside them, and the system gives memory for no others: every index means the same on all parts.

use std::ops::Range;

use bytemuck::Pod;
use zellige_engine::error::Result;
use zellige_engine::large::zeros;
use zellige_engine::links::Links;

use super::Norms;
use super::ranges::Ranges;
use crate::fold::copy;
use crate::grid::Grid;
use crate::operator;

/// Slabs of the finest grid by part of a run, with the links between the parts.
#[derive(Debug, Clone, Default)]
pub struct HostShare {
    links: Links,
    ranges: Ranges,
    held: Range<usize>,
    periodic: bool,
}

impl HostShare {
    /// All slabs of a grid, where a run has one part.
    pub fn whole(grid: &Grid) -> Self {
        let slabs = slabs(grid);
        Self { links: Links::default(), ranges: Ranges::whole(slabs), held: 0..slabs, periodic: false }
    }

    /// Slabs of this part among those of all; stages take values of slabs `held`, its own among them.
    pub(super) fn new(links: &Links, ranges: &Ranges, held: Range<usize>, periodic: bool) -> Self {
        Self { links: links.clone(), ranges: ranges.clone(), held, periodic }
    }

    /// All slabs of a grid, which all parts work on alike.
    pub(crate) fn undivided(grid: &Grid, links: &Links) -> Self {
        Self { links: links.clone(), ..Self::whole(grid) }
    }

    /// The links between the parts.
    pub(crate) fn links(&self) -> &Links {
        &self.links
    }

    /// Returns true if parts have different slabs.
    pub fn divided(&self) -> bool {
        self.ranges.divided()
    }

    /// Part of an array of `len` elements over the grid that belongs to a part of the run.
    pub(crate) fn of_part(&self, part: usize, len: usize) -> Range<usize> {
        scaled(&self.ranges.of_part(part), len, self.ranges.slabs())
    }

    /// Own part of an array of `len` elements over the grid, as many a slab.
    pub fn own(&self, len: usize) -> Range<usize> {
        self.of_part(self.links.rank(), len)
    }

    /// Part of such an array that stages are loaded with.
    pub fn held(&self, len: usize) -> Range<usize> {
        scaled(&self.held, len, self.ranges.slabs())
    }

    /// Part of such an array that is held, and a slab on both sides of it where the grid goes on.
    pub fn around(&self, len: usize) -> Range<usize> {
        let Range { start, end } = self.held;
        scaled(&(start.saturating_sub(1)..(end + 1).min(self.ranges.slabs())), len, self.ranges.slabs())
    }

    /// An array of `len` elements over the grid with values on this part's slabs.
    pub(crate) fn spread<V: Pod + Send + Sync>(&self, own: &[V], len: usize) -> Vec<V> {
        let mut spread = zeros(len);
        copy(own, &mut spread[self.own(len)]);
        spread
    }

    /// Values of all parts in the order of the slabs, of which this part has its own.
    pub fn joined<V: Pod>(&self, own: Vec<V>) -> Result<Vec<V>> {
        if self.divided() { self.links.joined(own) } else { Ok(own) }
    }

    /// Mean of values over the unknowns of the grid, of which this part has its own, weighted by control volumes.
    pub fn mean(&self, grid: &Grid, values: &[f64]) -> Result<f64> {
        let [_, n, l] = grid.nodes();
        let rows = self.joined(operator::mean_rows(grid, values, self.own(n * l)))?;
        Ok(operator::mean_of_rows(grid, &rows))
    }

    /// Norms of `f - A u` and of `u`, of which this part has its own slabs; one beside on either side is copied from other parts.
    pub fn residual_norms(&self, grid: &Grid, u: &mut [f64], f: &[f64]) -> Result<Norms> {
        self.copy_beside(u)?;
        let [_, n, l] = grid.nodes();
        let rows = self.joined(operator::residual_rows(grid, u, f, self.own(n * l)))?;
        Ok(operator::norms_of_rows(grid, &rows))
    }

    /// The largest of a value over all parts.
    pub fn max(&self, value: f64) -> Result<f64> {
        let mut values = [value];
        if self.divided() {
            self.links.max(&mut values)?;
        }
        Ok(values[0])
    }

    /// Makes an error of any part one of all.
    pub fn together<T>(&self, result: Result<T>) -> Result<T> {
        if self.divided() { self.links.together(result) } else { result }
    }

    /// Makes an array over the grid whole on every part.
    pub fn complete<V: Pod>(&self, values: &mut [V]) -> Result<()> {
        if !self.divided() {
            return Ok(());
        }
        let len = values.len();
        let own = bytemuck::cast_slice(&values[self.own(len)]).to_vec();
        for (part, message) in self.links.all_gather(own)?.into_iter().enumerate() {
            bytemuck::cast_slice_mut(&mut values[self.of_part(part, len)]).copy_from_slice(&message);
        }
        Ok(())
    }

    /// An array over the grid at the first part; nothing at the others.
    pub fn at_first<V: Pod>(&self, mut values: Vec<V>) -> Result<Vec<V>> {
        if !self.divided() {
            return Ok(values);
        }
        if !self.links.is_first() {
            let own: &[u8] = bytemuck::cast_slice(&values[self.own(values.len())]);
            let mut message = zeros(own.len());
            copy(own, &mut message);
            drop(values);
            self.links.send(0, message)?;
            return Ok(Vec::new());
        }
        for part in 1..self.links.size() {
            let message = self.links.receive(part)?;
            let there = self.of_part(part, values.len());
            copy(&message, bytemuck::cast_slice_mut(&mut values[there]));
        }
        Ok(values)
    }

    /// Copies the slab before and the one behind this part's from those that own them.
    pub fn copy_beside<V: Pod>(&self, values: &mut [V]) -> Result<()> {
        if !self.divided() {
            return Ok(());
        }
        let (rank, slab) = (self.links.rank(), values.len() / self.ranges.slabs());
        let between = |owner: usize, reader: usize| {
            let theirs = self.ranges.of_part(owner);
            self.ranges.beside(reader, 1, self.periodic).into_iter().filter(move |k| theirs.contains(k))
        };
        let others = || self.ranges.parts().map(|(part, _)| part).filter(|part| *part != rank);
        let message = |to: usize| -> Vec<u8> {
            between(rank, to).flat_map(|k| bytemuck::cast_slice(&values[k * slab..][..slab]).iter().copied()).collect()
        };
        let send: Vec<_> = others().map(|to| (to, message(to))).filter(|(_, message)| !message.is_empty()).collect();
        let from: Vec<usize> = others().filter(|owner| between(*owner, rank).next().is_some()).collect();
        for (owner, message) in from.iter().zip(self.links.exchange(send, &from)?) {
            for (k, bytes) in between(*owner, rank).zip(message.chunks_exact(slab * size_of::<V>())) {
                bytemuck::cast_slice_mut(&mut values[k * slab..][..slab]).copy_from_slice(bytes);
            }
        }
        Ok(())
    }

    /// Pieces of an array over the grid that this part gives to a file that all write, with the numbers of their first elements:
    /// its own; of an array that all have, the first part gives all.
    pub fn pieces<'a, V>(&self, values: &'a [V]) -> Vec<(usize, &'a [V])> {
        let own = if self.divided() { self.own(values.len()) } else { 0..if self.links.is_first() { values.len() } else { 0 } };
        vec![(own.start, &values[own])]
    }
}

/// Number of slabs of a grid.
fn slabs(grid: &Grid) -> usize {
    let [_, rows, planes] = grid.nodes();
    if grid.axes[2].is_flat() { rows } else { planes }
}

fn scaled(slabs: &Range<usize>, len: usize, of: usize) -> Range<usize> {
    let slab = len / of;
    slabs.start * slab..slabs.end * slab
}
