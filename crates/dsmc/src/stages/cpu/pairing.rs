//! Pairing: all particles of a cell in disjoint random pairs.

use super::collide::{Table, cell_number, hit, together, velocity};
use super::math::{Stream, power};
use super::store::{Columns, Tiling};
use super::tile::{Scratch, Tile};
use crate::model::purpose;
use crate::physics::{difference, square};
use zellige_engine::rng::uniform_f32;

/// Largest number of rounds of pairing in a step.
const ROUNDS: u32 = 64;

/// All collisions of a tile in step `step`.
#[inline(always)]
pub(super) fn paired(table: &Table, tile: &mut Tile, tiling: &Tiling, scratch: &mut Scratch, species: usize, step: u64) {
    let (slots, pairs) = (tiling.cells_of_row(), table.pairs.len());
    let Scratch { sorted, start, order, .. } = scratch;
    let sorted = &mut Columns::of(sorted);
    for slot in 0..slots {
        let begin = start[slot * species] as usize;
        let n = start[(slot + 1) * species] as usize - begin;
        if n < 2 {
            continue;
        }
        let cell = cell_number(tile, tiling, slot);
        let divided = tile.divided.get(slot) == Some(&true);
        // The rounds follow from (sigma g)max of any pair, which is kept as the other schemes keep it.
        let majorants = &mut tile.majorants[slot * pairs..(slot + 1) * pairs];
        let sigma_g_max = majorants.iter().map(|m| m.sigma_g_max).fold(0.0, f32::max);
        let even = n & !1;
        let scale = if n == even { (n - 1) as f32 } else { n as f32 };
        let rounds = ((scale * tile.rate[slot] * sigma_g_max).ceil() as u32).clamp(1, ROUNDS);
        let probability = scale * tile.rate[slot] / rounds as f32;
        let mut stream = Stream::with_room(purpose::PERMUTE, table.seed, step, u64::from(cell), 30);
        for round in 0..rounds {
            order.clear();
            order.extend(begin as u32..(begin + n) as u32);
            for i in (1..n).rev() {
                let j = (u64::from(stream.word()) * (i as u64 + 1)) >> 32;
                order.swap(i, j as usize);
            }
            for (t, two) in order[..even].chunks_exact(2).enumerate() {
                let (i, j) = (two[0] as usize, two[1] as usize);
                let kind = |i: usize| usize::from(sorted.key[i]) % species;
                let p = table.lookup[kind(i) * species + kind(j)];
                let pair = &table.pairs[p];
                let (i, j) = if kind(i) == pair.species[0] { (i, j) } else { (j, i) };
                let g = difference(velocity(sorted, i), velocity(sorted, j));
                let g2 = square(g);
                let sigma_g = pair.rate * power(g2, pair.power);
                majorants[p].sigma_g_max = majorants[p].sigma_g_max.max(sigma_g);
                tile.ledger.attempts += 1;
                let chance = sigma_g * probability;
                tile.ledger.exceeded += u64::from(chance > 1.0);
                let number = u64::from(cell) << 24 | (u64::from(round) << 18 | t as u64) & 0xFF_FFFF;
                if uniform_f32(stream.word()) < chance && (!divided || together(table, sorted, cell, tiling, [i, j], step, number)) {
                    tile.ledger.collisions += 1;
                    let words = [stream.word(), stream.word()];
                    hit(table, pair, sorted, [i, j], g, g2, words, step, number);
                }
            }
        }
    }
}
