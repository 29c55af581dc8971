//! State of a tile besides its particles, as numbers: for checkpoints, and for another part of the run that takes the tile over.

use super::Gas;
use super::inflow::Face;
use super::tile::Majorant;
use crate::stages::{Ledger, SURFACE_SUMS};
use crate::walls::subsonic::MovingAverage;

/// Numbers of a surface that was hit in a tile: tile, surface, sums.
const OF_HIT: usize = 2 + SURFACE_SUMS;

impl Gas {
    /// (sigma g)max of the cells of a tile.
    fn majorants(&self, tile: usize) -> Vec<f64> {
        self.tiles[tile].majorants.iter().flat_map(|m| [m.sigma_g_max, m.seen, m.attempts].map(f64::from)).collect()
    }

    /// Averages of the gas beside sides that follow it.
    fn sides(&self, tile: usize) -> Vec<f64> {
        let follows = |f: &&Face| self.model.given[f.side.index()].is_some();
        self.faces[tile].iter().filter(follows).flat_map(|f| f.moving.numbers(self.model.species.len())).collect()
    }

    /// Number of the last samples, and their sums.
    fn recent(&self, tile: usize) -> Vec<f64> {
        self.tiles[tile].sums.numbers().collect()
    }

    /// Sums of the hits of surfaces.
    fn hits(&self, tile: usize) -> Vec<f64> {
        let of = |(surface, sums): (&u32, &[f64; SURFACE_SUMS])| [tile as f64, f64::from(*surface)].into_iter().chain(*sums);
        self.tiles[tile].hits.iter().flat_map(of).collect()
    }

    fn set_majorants(&mut self, tile: usize, numbers: &[f64]) {
        for (m, v) in self.tiles[tile].majorants.iter_mut().zip(numbers.chunks_exact(3)) {
            *m = Majorant { sigma_g_max: v[0] as f32, seen: v[1] as f32, attempts: v[2] as f32 };
        }
    }

    fn set_sides(&mut self, tile: usize, numbers: &[f64]) {
        let given = &self.model.given;
        let faces = self.faces[tile].iter_mut().filter(|f| given[f.side.index()].is_some());
        for (face, n) in faces.zip(numbers.chunks_exact(of_face(self.model.species.len()))) {
            face.moving = MovingAverage::from_numbers(n);
        }
    }

    /// Adds hits to those of the tiles of this part. The numbers have been checked.
    fn set_hits(&mut self, numbers: &[f64]) {
        for [tile, surface, sums @ ..] in numbers.as_chunks::<OF_HIT>().0 {
            if self.owns(*tile as usize) {
                self.tiles[*tile as usize].hits.insert(*surface as u32, *sums);
            }
        }
    }

    /// Numbers of the sums of a tile, once there are any.
    pub(super) fn sums_of_tile(&self) -> usize {
        self.store.tiling.cells_of_row() * self.model.species.len() * self.model.collisions.kept()
    }

    /// State of a tile besides its particles: that of [`Gas::set_tile_numbers`].
    pub(super) fn tile_numbers(&self, tile: usize) -> Vec<f64> {
        let sums = &self.tiles[tile].sums;
        let old = (0..if sums.is_empty() { 0 } else { self.sums_of_tile() }).map(|i| sums.old(i)).collect();
        [self.majorants(tile), self.sides(tile), self.recent(tile), old, self.hits(tile)].concat()
    }

    /// Takes the state of a tile that another part had. `sampled` says whether there are sums of samples.
    pub(super) fn set_tile_numbers(&mut self, tile: usize, sampled: bool, numbers: &[f64]) {
        let (majorants, rest) = numbers.split_at(3 * self.tiles[tile].majorants.len());
        let (sides, rest) = rest.split_at(self.sides(tile).len());
        let sums = if sampled { self.sums_of_tile() } else { 0 };
        let (recent, rest) = rest.split_at(1 + sums);
        let (old, hits) = rest.split_at(sums);
        self.set_majorants(tile, majorants);
        self.set_sides(tile, sides);
        let to = &mut self.tiles[tile].sums;
        to.set_numbers(&mut recent.iter().copied(), sums);
        to.old_mut(sums)[..sums].copy_from_slice(old);
        self.tiles[tile].hits.clear();
        self.set_hits(hits);
    }

    /// State of all tiles besides particles and sums in double precision, for a checkpoint.
    pub(super) fn all_numbers(&self, ledger: &Ledger) -> zellige_engine::error::Result<Vec<f64>> {
        let counts = ledger.numbers(self.model.weighted());
        let all = [
            self.gather(|t| self.majorants(t))?,
            self.gather(|t| self.sides(t))?,
            self.gather(|t| self.recent(t))?,
            self.gather(|t| self.hits(t))?,
        ];
        Ok(counts.into_iter().chain(all.into_iter().flatten().flatten()).collect())
    }

    /// Takes it back: each part what is of its tiles.
    pub(super) fn set_all_numbers(&mut self, numbers: &[f64]) -> Result<(), String> {
        let tiles = self.tiles.len();
        let majorants: Vec<usize> = self.tiles.iter().map(|t| 3 * t.majorants.len()).collect();
        let sides: Vec<usize> = (0..tiles).map(|t| self.sides(t).len()).collect();
        let count = Ledger::length(self.model.weighted());
        let expected = count + majorants.iter().chain(&sides).sum::<usize>() + tiles;
        // Sums of samples are there once there was one, and behind them those of the surfaces that were hit.
        let with_sums = expected + tiles * self.sums_of_tile();
        let hits = numbers.len().checked_sub(with_sums).filter(|n| n.is_multiple_of(OF_HIT));
        if numbers.len() != expected && hits.is_none() {
            return Err(format!("{} numbers of the collisions' state, {expected} or {with_sums} expected", numbers.len()));
        }
        let sampled = if hits.is_some() { self.sums_of_tile() } else { 0 };
        let (counts, mut rest) = numbers.split_at(count);
        let mut taken = |n: usize| {
            let (taken, behind) = rest.split_at(n);
            rest = behind;
            taken
        };
        for (tile, n) in majorants.into_iter().enumerate() {
            self.set_majorants(tile, taken(n));
        }
        for (tile, n) in sides.into_iter().enumerate() {
            self.set_sides(tile, taken(n));
        }
        for tile in 0..tiles {
            let recent = taken(1 + sampled);
            self.tiles[tile].hits.clear();
            if self.owns(tile) {
                self.tiles[tile].sums.set_numbers(&mut recent.iter().copied(), sampled);
            }
        }
        let surfaces = self.surfaces.len() / SURFACE_SUMS;
        for [tile, surface, ..] in rest.as_chunks::<OF_HIT>().0 {
            if *tile as usize >= tiles || *surface as usize >= surfaces {
                return Err(format!("hits of surface {surface} in tile {tile}: there is no such"));
            }
        }
        self.set_hits(rest);
        self.inserted = 0;
        let first = if self.links.is_first() { Ledger::from_numbers(counts) } else { Ledger::default() };
        for (number, tile) in self.tiles.iter_mut().enumerate() {
            tile.ledger = if number == 0 { first } else { Ledger::default() };
            tile.attempts_before = tile.ledger.attempts;
        }
        Ok(())
    }
}

/// Numbers of the average at a face.
const fn of_face(species: usize) -> usize {
    6 + MovingAverage::species_counts(species)
}
