//! Charge of particles at the corners.

use zellige_engine::error::Result;
use zellige_engine::parallel::{items, map, map_tasks};

use super::CpuStages;
use super::advance::deposit_charge;
use super::isa::Format;
use super::store::Tile;
use crate::grid::{ABOVE, BELOW};
use zellige_engine::links::values;

/// Tiles whose charge is in memory together.
const TILES_AT_A_TIME: usize = 256;

impl<T: Format> CpuStages<T> {
    /// Charge of some tiles of a species, as [`deposit_charge`] gives it.
    fn charge_of_tiles(&self, species: usize, tiles: &[usize]) -> Vec<Vec<f64>> {
        let (order, width) = (self.setup.order, self.charge_width());
        let deposit = |tile: &Tile<T>| match order {
            _ if tile.is_empty() => Vec::new(),
            1 => deposit_charge::<T, 1>(tile, width),
            _ => deposit_charge::<T, 2>(tile, width),
        };
        let store = &self.species[species].store;
        self.cpu.install(|| map_tasks(items(tiles), |_, tile| deposit(&store.tiles[*tile])))
    }

    /// Corners in a row of the charge of a tile.
    fn charge_width(&self) -> usize {
        BELOW + self.tiling.tile[0] + ABOVE
    }

    /// Charge that tiles of this part have on nodes which another part adds up, row by row of those tiles: tile, row of nodes and
    /// values.
    fn charge_strips(&self, species: usize, peer: usize) -> Vec<f64> {
        let width = self.charge_width();
        let strips: Vec<_> = self.part.strips(&self.tiling, self.part.links().rank(), peer).collect();
        let tiles: Vec<usize> = strips.iter().map(|(tile, _)| *tile).collect();
        let mut message = Vec::new();
        for ((_, rows), charge) in strips.into_iter().zip(self.charge_of_tiles(species, &tiles)) {
            for row in rows {
                let begin = (row + BELOW as isize) as usize * width;
                // A tile without particles has none.
                if charge.is_empty() { message.extend(std::iter::repeat_n(0.0, width)) } else { message.extend(&charge[begin..][..width]) }
            }
        }
        message
    }

    /// Adds a row of a tile's charge to that of the part, if it adds up that row.
    fn add_charge(&self, rho: &mut [f64], tile: usize, row: isize, charge: &[f64]) {
        let (grid, (corner, cells)) = (&self.fields.grid, self.tiling.bounds(tile));
        let j = corner[1] as isize + row;
        if self.part.collected(self.part.links().rank()).contains(&j) {
            let begin = grid.index(corner[0] as isize - BELOW as isize, j);
            let reach = BELOW + cells[0] + ABOVE;
            rho[begin..begin + reach].iter_mut().zip(charge).for_each(|(a, b)| *a += *b);
        }
    }

    /// Charge of a species at the corners of this part with guards; those that other parts have are not filled.
    pub(super) fn sum_charge(&self, species: usize, smoothed: bool) -> Result<Vec<T>> {
        let (part, grid) = (&self.part, &self.fields.grid);
        let (width, own) = (self.charge_width(), part.links().rank());
        let messages: Vec<_> = part.peers().iter().map(|p| (*p, bytemuck::cast_slice(&self.charge_strips(species, *p)).to_vec())).collect();
        let received = part.links().exchange(messages, part.peers())?;
        let mut rho = vec![0.0; grid.len()];
        // Tiles in their order: those of parts before this one first.
        let mut from_peers = part.peers().iter().zip(&received).peekable();
        let mut add_strips = |rho: &mut [f64], before: bool| {
            while let Some((peer, message)) = from_peers.next_if(|(peer, _)| !before || **peer < own) {
                let values: Vec<f64> = values(message);
                let mut rows = values.chunks_exact(width);
                for (tile, strip) in part.strips(&self.tiling, *peer, own) {
                    for (row, charge) in strip.zip(&mut rows) {
                        self.add_charge(rho, tile, row, charge);
                    }
                }
            }
        };
        add_strips(&mut rho, true);
        // Some tiles at a time, each on a thread of its own; added up in their order.
        let tiles: Vec<usize> = part.tiles().collect();
        for tiles in tiles.chunks(TILES_AT_A_TIME) {
            for (tile, charge) in tiles.iter().zip(self.charge_of_tiles(species, tiles)) {
                for (row, charge) in charge.chunks_exact(width).enumerate() {
                    self.add_charge(&mut rho, *tile, row as isize - BELOW as isize, charge);
                }
            }
        }
        add_strips(&mut rho, false);
        let q = self.species[species].species.macro_charge();
        let mut rho = self.cpu.install(|| map(items(&rho), |_, r| T::from_f64(q * r)));
        part.stage(|| self.fields.complete_charge(&mut rho, smoothed))?;
        Ok(rho)
    }
}
