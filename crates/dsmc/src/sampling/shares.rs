//! Cells of each part of a run: averages are closed where the cells are, and come together at the first part to be looked at.

use std::ops::Range;

use bytemuck::cast_slice;
use zellige_engine::checkpoint::Reader;
use zellige_engine::error::Result;
use zellige_engine::links::{Links, values};

use crate::grid::Rectangle;
use crate::model::Model;

/// Cells of all parts.
#[derive(Debug, Clone)]
pub(super) struct Shares {
    links: Links,
    grid: [usize; 2],
    /// Cells of each part.
    areas: Vec<Rectangle>,
}

impl Shares {
    /// Of parts that own these areas; a single part owns all.
    pub(super) fn new(model: &Model, links: &Links, areas: Vec<Rectangle>) -> Self {
        let grid = model.grid.cells;
        let areas = if links.is_alone() { vec![Rectangle { lower: [0; 2], upper: grid }] } else { areas };
        Self { links: links.clone(), grid, areas }
    }

    /// Cells of this part.
    pub(super) fn own(&self) -> Rectangle {
        self.areas[self.links.rank()]
    }

    /// True if the areas are those of before.
    pub(super) fn are(&self, areas: &[Rectangle]) -> bool {
        self.links.is_alone() || self.areas == areas
    }

    /// Numbers of the cells of this part, `width` a cell, row by row, each with its place among those of all cells.
    pub(super) fn placed<'a>(&self, own: &'a [f64], width: usize) -> Vec<(usize, &'a [f64])> {
        let within = rows(self.own(), self.own(), width);
        rows(self.own(), self.whole(), width).zip(within).map(|(to, from)| (to.start, &own[from])).collect()
    }

    /// Numbers of the cells of this part out of those of all in a section of a checkpoint.
    pub(super) fn read(&self, reader: &Reader, name: &str, width: usize) -> Result<Vec<f64>> {
        let (found, expected) = (reader.count::<f64>(name)?, self.whole().len() * width);
        if found != expected {
            return Err(reader.content_error(format!("section `{name}` has {found} numbers, {expected} expected")));
        }
        reader.picked(name, &rows(self.own(), self.whole(), width).collect::<Vec<_>>())
    }

    /// Numbers of all cells, at the first part; nothing at the others.
    pub(super) fn gathered(&self, own: &[f64], width: usize) -> Result<Vec<f64>> {
        let messages = self.links.gather(cast_slice(own).to_vec())?;
        let mut all = vec![0.0; if self.links.is_first() { self.whole().len() * width } else { 0 }];
        for (area, message) in self.areas.iter().zip(messages) {
            put(&mut all, self.whole(), *area, &message, width);
        }
        Ok(all)
    }

    /// Numbers of the cells that this part owns from now on, out of those that it owned, `width` a cell.
    pub(super) fn moved(&self, to: &Self, own: &[f64], width: usize) -> Result<Vec<f64>> {
        let (rank, all) = (self.links.rank(), 0..self.links.size());
        let shared = |from: usize, part: usize| Some(self.areas[from].common(to.areas[part])).filter(|area| !area.is_empty());
        let cut = |area: Rectangle| rows(area, self.own(), width).map(|row| cast_slice(&own[row])).collect::<Vec<&[u8]>>().concat();
        let send = all.clone().filter(|part| *part != rank).filter_map(|part| Some((part, cut(shared(rank, part)?))));
        let from: Vec<usize> = all.filter(|part| *part != rank && shared(*part, rank).is_some()).collect();
        let mut numbers = vec![0.0; to.own().len() * width];
        if let Some(area) = shared(rank, rank) {
            put(&mut numbers, to.own(), area, &cut(area), width);
        }
        for (part, message) in from.iter().zip(self.links.exchange(send, &from)?) {
            put(&mut numbers, to.own(), self.areas[*part].common(to.own()), &message, width);
        }
        Ok(numbers)
    }

    /// Sums of even regions along each axis at the first part, `[region][species][sum]`, of those of the cells of each part;
    /// nothing at the others.
    ///
    /// The numbers of a region come together at one part, which adds them in the order of the cells: so they have the bits of a run
    /// in one part, and all parts take some of them.
    pub(super) fn sums_of_regions(&self, model: &Model, cells: &[f64], regions: [usize; 2], sums: Range<usize>) -> Result<Vec<f64>> {
        let links = &self.links;
        if links.is_alone() {
            return Ok(sums_of_regions(model, cells, regions, sums));
        }
        let (one, species, width) = (model.collisions.sums(), model.species.len(), model.species.len() * sums.len());
        let (rank, own, dealt) = (links.rank(), self.own(), Dealt { grid: self.grid, regions, parts: links.size() });
        let message = |part: usize| {
            let mut numbers = Vec::new();
            for y in own.range(1) {
                for x in overlap(&own.range(0), &dealt.columns(part, y)) {
                    let of_cell = &cells[own.index([x, y]) * species * one..][..species * one];
                    numbers.extend(of_cell.chunks_exact(one).flat_map(|s| &s[sums.clone()]));
                }
            }
            numbers
        };
        let meets = |area: Rectangle, part: usize| area.range(1).any(|y| !overlap(&area.range(0), &dealt.columns(part, y)).is_empty());
        let others = || (0..links.size()).filter(|part| *part != rank);
        let send = others().filter(|part| meets(own, *part)).map(|part| (part, cast_slice(&message(part)).to_vec()));
        let from: Vec<usize> = others().filter(|part| meets(self.areas[*part], rank)).collect();
        let arrived = links.exchange(send, &from)?;
        let mut numbers = vec![Vec::new(); links.size()];
        numbers[rank] = message(rank);
        for (part, message) in from.iter().zip(arrived) {
            numbers[*part] = values(&message);
        }
        let mut out = vec![0.0; regions[0] * regions[1] * width];
        let adder = RowAdder::new(model, regions, sums.len(), 0..sums.len());
        let mut begin = vec![0; links.size()];
        // Parts from left to right: those that share a row of cells follow each other along it.
        let mut order: Vec<usize> = (0..links.size()).collect();
        order.sort_by_key(|part| self.areas[*part].lower[0]);
        for y in 0..self.grid[1] {
            let mine = dealt.columns(rank, y);
            for part in order.iter().copied().filter(|part| self.areas[*part].range(1).contains(&y)) {
                let columns = overlap(&self.areas[part].range(0), &mine);
                let length = columns.len() * width;
                adder.add([columns.start, y], &numbers[part][begin[part]..][..length], &mut out);
                begin[part] += length;
            }
        }
        let dealt = dealt.of(rank);
        links.joined_at_first(out[dealt.start * width..dealt.end * width].to_vec())
    }

    fn whole(&self) -> Rectangle {
        Rectangle { lower: [0; 2], upper: self.grid }
    }
}

/// Regions dealt out to parts, in their order.
#[derive(Clone, Copy)]
struct Dealt {
    grid: [usize; 2],
    regions: [usize; 2],
    parts: usize,
}

impl Dealt {
    /// Regions of a part.
    fn of(self, part: usize) -> Range<usize> {
        let [begin, end] = [part, part + 1].map(|part| part * self.regions[0] * self.regions[1] / self.parts);
        begin..end
    }

    /// Columns of cells of the regions of a part in a row of cells.
    fn columns(self, part: usize, y: usize) -> Range<usize> {
        let first = y * self.regions[1] / self.grid[1] * self.regions[0];
        let [begin, end] = [self.of(part).start, self.of(part).end].map(|region| region.clamp(first, first + self.regions[0]) - first);
        let column = |region: usize| (region * self.grid[0]).div_ceil(self.regions[0]);
        column(begin)..column(end)
    }
}

/// Numbers that two ranges share.
fn overlap(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    let begin = a.start.max(b.start);
    begin..a.end.min(b.end).max(begin)
}

/// Ranges of the numbers of an area, row by row, among those of one that it lies in, `width` a cell.
fn rows(area: Rectangle, within: Rectangle, width: usize) -> impl Iterator<Item = Range<usize>> {
    let length = area.range(0).len() * width;
    let begin = move |y: usize| within.index([area.lower[0], y]) * width;
    area.range(1).map(move |y| begin(y)..begin(y) + length)
}

/// Puts the numbers of an area in a message into those of one that it lies in.
fn put(numbers: &mut [f64], within: Rectangle, area: Rectangle, message: &[u8], width: usize) {
    for (row, bytes) in rows(area, within, width).zip(message.chunks_exact((8 * area.range(0).len() * width).max(1))) {
        numbers[row].copy_from_slice(&values::<f64>(bytes));
    }
}

/// Sums of even regions along each axis, `[region][species][sum]`, of those of all cells, by the weights of the cells.
pub(super) fn sums_of_regions(model: &Model, cells: &[f64], regions: [usize; 2], sums: Range<usize>) -> Vec<f64> {
    let mut out = vec![0.0; regions[0] * regions[1] * model.species.len() * sums.len()];
    let adder = RowAdder::new(model, regions, model.collisions.sums(), sums);
    for (y, cells) in cells.chunks_exact(adder.column.len() * model.species.len() * adder.one).enumerate() {
        adder.add([0, y], cells, &mut out);
    }
    out
}

/// Adder of cells to the sums of regions.
struct RowAdder<'a> {
    model: &'a Model,
    regions: [usize; 2],
    /// Numbers of a cell and species, and those that are added up.
    one: usize,
    sums: Range<usize>,
    /// Region of each column of cells: a division for each cell took longer than all else.
    column: Vec<usize>,
}

impl<'a> RowAdder<'a> {
    fn new(model: &'a Model, regions: [usize; 2], one: usize, sums: Range<usize>) -> Self {
        let cells = model.grid.cells[0];
        Self { model, regions, one, sums, column: (0..cells).map(|x| x * regions[0] / cells).collect() }
    }

    /// Adds cells of a row from `[x, y]` on.
    fn add(&self, [x, y]: [usize; 2], cells: &[f64], out: &mut [f64]) {
        let (grid, species, one) = (&self.model.grid, self.model.species.len(), self.one);
        let first = y * self.regions[1] / grid.cells[1] * self.regions[0];
        for (x, of_cell) in (x..).zip(cells.chunks_exact(species * one)) {
            let weight = self.model.relative(y * grid.cells[0] + x);
            let to = &mut out[(first + self.column[x]) * species * self.sums.len()..][..species * self.sums.len()];
            for (to, from) in to.chunks_exact_mut(self.sums.len()).zip(of_cell.chunks_exact(one)) {
                to.iter_mut().zip(&from[self.sums.clone()]).for_each(|(to, from)| *to += weight * from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use zellige_engine::links::{Cut, inside};
    use zellige_engine::rng::Philox;

    use super::*;
    use crate::config::Config;

    /// Areas of parts that own boxes of tiles of 4 x 3 cells, cut by a weight that leans to one side.
    fn areas(cells: [usize; 2], parts: usize, lean: f64) -> Vec<Rectangle> {
        let cut = Cut::new([cells[0].div_ceil(4), cells[1].div_ceil(3), 1], &[0, 1], parts, |tile| 1.0 + lean * (tile % 7) as f64);
        let cell = |tile: [usize; 3]| [(4 * tile[0]).min(cells[0]), (3 * tile[1]).min(cells[1])];
        (0..parts).map(|part| cut.block(part)).map(|block| Rectangle { lower: cell(block.lower), upper: cell(block.upper) }).collect()
    }

    #[test]
    fn parts_give_what_all_cells_give_in_one() {
        for (cells, parts) in [([37, 23], 2), ([37, 23], 5), ([9, 40], 8), ([50, 1], 3), ([2, 2], 3)] {
            let size = cells.map(|n| n as f64);
            let dimensions = if cells[1] == 1 { 1 } else { 2 };
            let model =
                Model::new(&Config::new(cells[..dimensions].to_vec(), size[..dimensions].to_vec(), "Ar", 1e3, 300.0), Path::new(""), 1);
            let (model, random) = (model.unwrap(), Philox::new(3, 1));
            let width = model.species.len() * model.collisions.sums();
            // Of all sizes, so that another order of additions has other bits.
            let all: Vec<f64> = (0..model.grid.len() * width).map(|i| (20.0 * random.uniforms(0, i as u64)[0]).exp()).collect();
            inside::run(parts, |links| {
                let shares = Shares::new(&model, &links, areas(cells, parts, 0.0));
                let taken =
                    |shares: &Shares| rows(shares.own(), shares.whole(), width).flat_map(|row| all[row].to_vec()).collect::<Vec<_>>();
                let own = taken(&shares);
                for regions in [[4.min(cells[0]), 4.min(cells[1])], [cells[0], 1], [1, cells[1]], [1, 1]] {
                    for sums in [0..model.collisions.sums(), 1..2] {
                        let expected = sums_of_regions(&model, &all, regions, sums.clone());
                        let found = shares.sums_of_regions(&model, &own, regions, sums)?;
                        assert_eq!(found, if links.is_first() { expected } else { Vec::new() }, "{regions:?} of {cells:?}, {parts} parts");
                    }
                }
                let others = Shares::new(&model, &links, areas(cells, parts, 3.0));
                let moved = shares.moved(&others, &own, width)?;
                assert_eq!(moved, taken(&others));
                assert_eq!(others.gathered(&moved, width)?, if links.is_first() { all.clone() } else { Vec::new() });
                Ok(())
            })
            .unwrap();
        }
    }
}
