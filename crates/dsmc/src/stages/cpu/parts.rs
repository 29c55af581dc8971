//! A run in several parts: each owns a box of tiles. Particles that leave for tiles of another part are sent to it after each pass,
//! and what all tiles hold comes together at the first part, in the order of the tiles.

use zellige_engine::error::Result;
use zellige_engine::links::Cut;
use zellige_engine::parallel::{chunks_mut, each_task, indices};

use super::Gas;
use super::store::{Outbox, Tiling, held};
use super::sums::Sums;
use crate::grid::Rectangle;
use crate::model::Model;
use crate::particles::{Particles, Placed};
use crate::stages::SURFACE_SUMS;
use crate::stages::shares::{area, boxes, gather, gather_particles, places};

/// Boxes of tiles of about as many particles.
pub(super) fn cut(model: &Model, tiling: &Tiling, parts: usize) -> Cut {
    boxes(model, tiling.tiles, tiling.tile, parts)
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
        gather(&self.links, &self.cut, of)
    }

    /// Cells of a part.
    pub(super) fn area(&self, part: usize) -> Rectangle {
        area(&self.cut, part, self.store.tiling.tile, self.store.tiling.cells)
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
        gather_particles(&self.links, &self.cut, |tile| self.store.tiles[tile].len(), own)
    }

    /// Particles of this part, tile by tile.
    pub(super) fn own(&mut self) -> Result<Particles> {
        self.complete_exchange()?;
        let [rotation, level, tag] = held(&self.store.layout());
        let mut own = Particles::default();
        own.reserve(self.store.len());
        self.for_each(|cell, species, b| {
            own.push(cell as u32, species as u16, [b.x, b.y], b.v, rotation.then_some(b.rotation), level.then_some(b.level));
            own.tag.extend(tag.then_some(b.tag));
        });
        Ok(own)
    }

    /// Their places among the particles of all parts.
    pub(super) fn places(&self) -> Result<Vec<Placed>> {
        places(&self.links, &self.cut, |tile| self.store.tiles[tile].len())
    }
}
