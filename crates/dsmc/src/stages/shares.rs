//! Shares of the parts of a run: boxes of tiles, and what all tiles hold together, in the order of the tiles.

use std::ops::Range;

use bytemuck::Pod;
use zellige_engine::error::Result;
use zellige_engine::links::{Cut, Links};

use crate::grid::Rectangle;
use crate::model::Model;
use crate::particles::{Particles, Placed};

/// Boxes of tiles of about as many particles, of `tiles` of `tile` cells along each axis.
pub(super) fn boxes(model: &Model, tiles: [usize; 2], tile: [usize; 2], parts: usize) -> Cut {
    let lattice = [tiles[0], tiles[1], 1];
    if parts == 1 {
        return Cut::whole(lattice);
    }
    // A tile costs something also where there is no gas.
    Cut::new(lattice, &[0, 1], parts, |number| {
        let range = |axis: usize, at: usize| at * tile[axis]..((at + 1) * tile[axis]).min(model.grid.cells[axis]);
        let (columns, rows) = (range(0, number % tiles[0]), range(1, number / tiles[0]));
        let all = rows.flat_map(|j| columns.clone().map(move |i| [i, j]));
        all.map(|cell| 0.1 + model.geometry.fraction(model.grid.index(cell))).sum::<f64>()
    })
}

/// Cells of a part, of a grid of `cells` in tiles of `tile` cells.
pub(super) fn area(cut: &Cut, part: usize, tile: [usize; 2], cells: [usize; 2]) -> Rectangle {
    let block = cut.block(part);
    let cell = |at: [usize; 3]| [0, 1].map(|axis| (at[axis] * tile[axis]).min(cells[axis]));
    Rectangle { lower: cell(block.lower), upper: cell(block.upper) }
}

/// Numbers of each tile in the order of all tiles, at the first part; nothing at the others. `of` gives those of an own tile.
pub(super) fn gather(links: &Links, cut: &Cut, of: impl Fn(usize) -> Vec<f64>) -> Result<Vec<Vec<f64>>> {
    let [width, height, depth] = cut.lattice();
    let tiles = width * height * depth;
    if links.is_alone() {
        return Ok((0..tiles).map(of).collect());
    }
    let mut message = Vec::new();
    for tile in cut.tiles(links.rank()) {
        let numbers = of(tile);
        message.extend_from_slice(&(numbers.len() as u64).to_le_bytes());
        message.extend_from_slice(bytemuck::cast_slice(&numbers));
    }
    let mut all = vec![Vec::new(); if links.is_first() { tiles } else { 0 }];
    for (part, message) in links.gather(message)?.into_iter().enumerate() {
        let mut words = message.chunks_exact(8).map(|word| u64::from_le_bytes(std::array::from_fn(|i| word[i])));
        for tile in cut.tiles(part) {
            let length = words.next().unwrap_or(0) as usize;
            all[tile] = words.by_ref().take(length).map(f64::from_bits).collect();
        }
    }
    Ok(all)
}

/// All particles in the order of the tiles, at the first part; `own` are those here, of whose tiles `count` gives the number.
pub(super) fn gather_particles(links: &Links, cut: &Cut, count: impl Fn(usize) -> usize, own: Particles) -> Result<Particles> {
    if links.is_alone() {
        return Ok(own);
    }
    // Ranges of the tiles among the particles of all parts, which come part by part.
    let counts: Vec<usize> = gather(links, cut, |tile| vec![count(tile) as f64])?.iter().map(|n| n[0] as usize).collect();
    let mut ranges = vec![0..0; counts.len()];
    let (mut begin, parts) = (0, if counts.is_empty() { 0 } else { cut.parts() });
    for tile in (0..parts).flat_map(|part| cut.tiles(part)) {
        ranges[tile] = begin..begin + counts[tile];
        begin += counts[tile];
    }
    let Particles { cell, species, offset: [x, y], velocity: [u, v, w], rotation, level, tag } = own;
    Ok(Particles {
        cell: gather_column(links, cell, &ranges)?,
        species: gather_column(links, species, &ranges)?,
        offset: [gather_column(links, x, &ranges)?, gather_column(links, y, &ranges)?],
        velocity: [gather_column(links, u, &ranges)?, gather_column(links, v, &ranges)?, gather_column(links, w, &ranges)?],
        rotation: gather_column(links, rotation, &ranges)?,
        level: gather_column(links, level, &ranges)?,
        tag: gather_column(links, tag, &ranges)?,
    })
}

/// Ranges of the own particles, tile by tile, each with the number of its first among those of all tiles in their order. `count`
/// gives the number of particles of an own tile.
pub(super) fn places(links: &Links, cut: &Cut, count: impl Fn(usize) -> usize) -> Result<Vec<Placed>> {
    let own: Vec<usize> = cut.tiles(links.rank()).collect();
    let counts: Vec<u64> = links.joined(own.iter().map(|tile| count(*tile) as u64).collect())?;
    let [width, height, depth] = cut.lattice();
    let mut first = vec![0; width * height * depth];
    for (tile, n) in (0..cut.parts()).flat_map(|part| cut.tiles(part)).zip(&counts) {
        first[tile] = *n as usize;
    }
    let mut sum = 0;
    for number in &mut first {
        sum += std::mem::replace(number, sum);
    }
    let (mut placed, mut begin): (Vec<Placed>, usize) = (Vec::new(), 0);
    for tile in own {
        let end = begin + count(tile);
        match placed.last_mut().filter(|last| last.first + last.own.len() == first[tile]) {
            Some(last) => last.own.end = end,
            None => placed.push(Placed { first: first[tile], own: begin..end }),
        }
        begin = end;
    }
    Ok(placed)
}

/// A column of all particles in the order of the tiles, whose ranges are given.
fn gather_column<T: Pod>(links: &Links, own: Vec<T>, ranges: &[Range<usize>]) -> Result<Vec<T>> {
    let all = links.joined_at_first(own)?;
    // A column that no species needs is empty.
    if all.is_empty() {
        return Ok(all);
    }
    Ok(ranges.iter().flat_map(|range| &all[range.clone()]).copied().collect())
}
