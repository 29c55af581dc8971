//! A run in several parts: each owns a box of tiles. Particles that leave for tiles of another part are sent to it after each pass,
//! and what all tiles hold comes together at the first part, in the order of the tiles.

use std::ops::Range;

use zellige_engine::error::Result;
use zellige_engine::links::Cut;
use zellige_engine::parallel::{chunks_mut, each_task, indices};

use super::Gas;
use super::store::{Outbox, Tiling};
use super::sums::Sums;
use crate::grid::Rectangle;
use crate::model::Model;
use crate::particles::Particles;
use crate::stages::SURFACE_SUMS;

/// Boxes of tiles of about as many particles.
pub(super) fn cut(model: &Model, tiling: &Tiling, parts: usize) -> Cut {
    let lattice = [tiling.tiles[0], tiling.tiles[1], 1];
    if parts == 1 {
        return Cut::whole(lattice);
    }
    // A tile costs something also where there is no gas.
    let free = |corner: [usize; 2], cells: [usize; 2]| {
        let all = (0..cells[1]).flat_map(|j| (0..cells[0]).map(move |i| [corner[0] + i, corner[1] + j]));
        all.map(|cell| 0.1 + model.geometry.fraction(model.grid.index(cell))).sum::<f64>()
    };
    Cut::new(lattice, &[0, 1], parts, |tile| {
        let (corner, cells) = tiling.bounds(tile);
        free(corner, cells)
    })
}

impl Gas {
    /// Returns true for tiles of this part.
    pub(super) fn owns(&self, tile: usize) -> bool {
        self.cut.owner(tile) == self.links.rank()
    }

    /// Leaves the boxes of a pass to the next one: with what comes from the tiles of other parts.
    pub(super) fn route(&mut self) -> Result<()> {
        self.boxes.swap(0, 1);
        let boxes = &mut self.boxes[0];
        if self.links.is_alone() {
            self.post.sort(boxes);
            return Ok(());
        }
        let (rank, cut) = (self.links.rank(), &self.cut);
        let mut messages = vec![Vec::new(); cut.parts()];
        for tile in cut.tiles(rank) {
            boxes[tile].send_away(tile as u32, |to| Some(cut.owner(to)).filter(|part| *part != rank), &mut messages);
        }
        let mut from = Vec::new();
        for message in self.relay.carry(&self.links, messages)? {
            Outbox::receive(boxes, &message, &mut from);
        }
        from.sort_unstable();
        from.dedup();
        for tile in from {
            boxes[tile].seal();
        }
        self.post.sort(boxes);
        Ok(())
    }

    /// Numbers of each tile in the order of all tiles, at the first part; nothing at the others.
    pub(super) fn gather(&self, of: impl Fn(usize) -> Vec<f64>) -> Result<Vec<Vec<f64>>> {
        let (links, cut) = (&self.links, &self.cut);
        if links.is_alone() {
            return Ok((0..self.tiles.len()).map(of).collect());
        }
        let mut message = Vec::new();
        for tile in cut.tiles(links.rank()) {
            let numbers = of(tile);
            message.extend_from_slice(&(numbers.len() as u64).to_le_bytes());
            message.extend_from_slice(bytemuck::cast_slice(&numbers));
        }
        let mut all = vec![Vec::new(); if links.is_first() { self.tiles.len() } else { 0 }];
        for (part, message) in links.gather(message)?.into_iter().enumerate() {
            let mut words = message.chunks_exact(8).map(|word| u64::from_le_bytes(std::array::from_fn(|i| word[i])));
            for tile in cut.tiles(part) {
                let length = words.next().unwrap_or(0) as usize;
                all[tile] = words.by_ref().take(length).map(f64::from_bits).collect();
            }
        }
        Ok(all)
    }

    /// Cells of a part.
    pub(super) fn area(&self, part: usize) -> Rectangle {
        let (block, tiling) = (self.cut.block(part), &self.store.tiling);
        let cell = |tile: [usize; 3]| [0, 1].map(|axis| (tile[axis] * tiling.tile[axis]).min(tiling.cells[axis]));
        Rectangle { lower: cell(block.lower), upper: cell(block.upper) }
    }

    /// Sums of samples of the cells of this part, `[cell][species][sums]`; `of` gives one of a tile.
    pub(super) fn put_cells(&self, cells: &mut [f64], of: impl Fn(&Sums, usize) -> f64 + Sync) {
        let (species, kept, sums) = (self.model.species.len(), self.model.collisions.kept(), self.model.collisions.sums());
        let (rank, tiling, width) = (self.links.rank(), self.store.tiling, species * sums);
        let (block, area) = (self.cut.block(rank), self.area(rank));
        // A row of tiles has whole rows of cells.
        let rows = chunks_mut(cells, (tiling.tile[1] * area.range(0).len() * width).max(1));
        self.cpu.install(|| {
            each_task((indices(block.range(1).len()), rows), |_, (row, cells)| {
                cells.fill(0.0);
                let first = (block.lower[1] + row) * tiling.tiles[0];
                let tiles = &self.tiles[first + block.lower[0]..first + block.upper[0]];
                for tile in tiles.iter().filter(|t| !t.sums.is_empty()) {
                    for (j, i) in (0..tile.cells[1]).flat_map(|j| (0..tile.cells[0]).map(move |i| (j, i))) {
                        let (slot, cell) = (j * tiling.tile[0] + i, j * area.range(0).len() + tile.corner[0] + i - area.lower[0]);
                        for (s, to) in cells[cell * width..][..width].chunks_exact_mut(sums).enumerate() {
                            let first = (slot * species + s) * kept;
                            to[..kept].iter_mut().enumerate().for_each(|(q, to)| *to = of(&tile.sums, first + q));
                        }
                    }
                }
            });
        });
    }

    /// Sums of the hits of all surfaces, in the order of the tiles, at the first part.
    pub(super) fn gather_surfaces(&self, surfaces: &mut [f64]) -> Result<()> {
        surfaces.iter_mut().zip(&self.surfaces).for_each(|(to, from)| *to = *from);
        let of_tile = |t: usize| {
            let hits = self.tiles[t].hits.iter();
            hits.flat_map(|(surface, sums)| std::iter::once(f64::from(*surface)).chain(*sums)).collect()
        };
        for hit in self.gather(of_tile)?.iter().flat_map(|tile| tile.as_chunks::<{ 1 + SURFACE_SUMS }>().0) {
            let [surface, sums @ ..] = hit;
            let to = &mut surfaces[*surface as usize * SURFACE_SUMS..][..SURFACE_SUMS];
            to.iter_mut().zip(sums).for_each(|(to, from)| *to += from);
        }
        Ok(())
    }

    /// All particles in the order of the tiles, at the first part; `own` are those of this one.
    pub(super) fn gather_particles(&self, own: Particles) -> Result<Particles> {
        if self.links.is_alone() {
            return Ok(own);
        }
        // Ranges of the tiles among the particles of all parts, which come part by part.
        let counts: Vec<usize> = self.gather(|t| vec![self.store.tiles[t].len() as f64])?.iter().map(|n| n[0] as usize).collect();
        let mut ranges = vec![0..0; counts.len()];
        let (mut begin, parts) = (0, if counts.is_empty() { 0 } else { self.cut.parts() });
        for tile in (0..parts).flat_map(|part| self.cut.tiles(part)) {
            ranges[tile] = begin..begin + counts[tile];
            begin += counts[tile];
        }
        let Particles { cell, species, offset: [x, y], velocity: [u, v, w], rotation, level, tag } = own;
        Ok(Particles {
            cell: self.gather_column(cell, &ranges)?,
            species: self.gather_column(species, &ranges)?,
            offset: [self.gather_column(x, &ranges)?, self.gather_column(y, &ranges)?],
            velocity: [self.gather_column(u, &ranges)?, self.gather_column(v, &ranges)?, self.gather_column(w, &ranges)?],
            rotation: self.gather_column(rotation, &ranges)?,
            level: self.gather_column(level, &ranges)?,
            tag: self.gather_column(tag, &ranges)?,
        })
    }

    /// A column of all particles in the order of the tiles, whose ranges are given.
    fn gather_column<T: bytemuck::Pod>(&self, own: Vec<T>, ranges: &[Range<usize>]) -> Result<Vec<T>> {
        let all = self.links.joined_at_first(own)?;
        // A column that no species needs is empty.
        if all.is_empty() {
            return Ok(all);
        }
        Ok(ranges.iter().flat_map(|range| &all[range.clone()]).copied().collect())
    }
}
