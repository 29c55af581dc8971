//! No time counter and majorant frequency: candidate pairs of each cell, and the attempted collisions of a tile.
//!
//! Attempts of a cell come one after the other in meaning; where their order does not matter they are processed in
//! [rows](super::rows).

use std::ops::Range;

use super::collide::{Kinetics, Table, cell_number, hit, pair_count, together, velocity};
use super::math::{Stream, power};
use super::rows::in_rows;
use super::store::{Columns, Tiling};
use super::tile::{Majorant, Scratch, Tile};
use crate::model::{Scheme, purpose};
use crate::physics::{difference, square};
use zellige_engine::rng::{Philox, open_f32, uniform_f32};

/// Attempts after which (sigma g)max may decrease.
const EVIDENCE: f32 = 2000.0;
/// It falls by no more than this factor at a time, and not below this multiple of what was seen.
const FALL: f32 = 0.9;
const MARGIN: f32 = 1.05;
/// Attempts processed at a time: about 20 MB of a thread, above what a tile has in a step that is not far too long.
const PIECE: usize = 1 << 18;
/// Attempts of a cell that are listed before their number is known.
pub(super) const AHEAD: usize = 4;

/// Attempted collisions of a tile in step `step`.
#[inline(always)]
pub(super) fn attempt_collisions(table: &Table, tile: &mut Tile, tiling: &Tiling, scratch: &mut Scratch, species: usize, step: u64) {
    let total = count_attempts(table, tile, tiling, scratch, species, step);
    if total == 0 {
        return;
    }
    tile.ledger.attempts += total as u64;
    // Mostly one piece.
    for from in (0..total).step_by(PIECE) {
        piece(table, tile, tiling, scratch, species, step, from..total.min(from + PIECE));
    }
    update_majorants(&mut tile.majorants, &scratch.attempts);
}

/// A consecutive part of the attempts of a tile; the parts together give the same result as all at once.
#[inline(always)]
fn piece(table: &Table, tile: &mut Tile, tiling: &Tiling, scratch: &mut Scratch, species: usize, step: u64, range: Range<usize>) {
    list_attempts(tile, tiling, scratch, species, range.clone());
    scratch.words.draw(purpose::PAIR, table.seed, step);
    // Partners depend on earlier collisions, and sub-volumes on positions.
    if table.tagged || !tile.divided.is_empty() {
        one_by_one(table, tile, tiling, scratch, species, step);
    } else {
        in_rows(table, tile, scratch, species, step, range.len());
    }
    record_maxima(&mut tile.majorants, &scratch.attempts, &scratch.rows.sigma_g, range);
}

/// Lists cell, pair and random-number key of each attempt of a piece.
#[inline(always)]
fn list_attempts(tile: &Tile, tiling: &Tiling, scratch: &mut Scratch, species: usize, range: Range<usize>) {
    let (pairs, total) = (pair_count(species), range.len());
    let Scratch { rows, words, attempts, start, .. } = scratch;
    rows.reserve(total, start.last().copied().unwrap_or(0) as usize);
    for row in &mut words.items {
        row.resize(total + AHEAD, 0);
    }
    let [cells, numbers] = &mut words.items;
    let (which, cells, numbers) = (&mut rows.which[..total + AHEAD], &mut cells[..total + AHEAD], &mut numbers[..total + AHEAD]);
    let (mut at, mut before) = (0, 0);
    for (slot, attempts) in attempts.chunks_exact(pairs).enumerate() {
        // Slots of a small tile at the end of an axis, mostly.
        if start[slot * species] == start[(slot + 1) * species] {
            continue;
        }
        let (cell, mut number) = (cell_number(tile, tiling, slot), 0_u32);
        for (p, n) in attempts.iter().enumerate() {
            // Range of these in the piece.
            let (n, low) = (*n as usize, range.start.saturating_sub(before).min(*n as usize));
            let count = range.end.saturating_sub(before).min(n) - low;
            before += n;
            let (first, key) = (number.wrapping_add(low as u32), (slot * pairs + p) as u32);
            // As many as there mostly are, whether or not: the next cell writes over what was too much.
            for k in 0..AHEAD {
                (which[at + k], cells[at + k], numbers[at + k]) = (key, cell, first.wrapping_add(k as u32));
            }
            number = number.wrapping_add(n as u32);
            for k in AHEAD..count {
                (which[at + k], cells[at + k], numbers[at + k]) = (key, cell, first.wrapping_add(k as u32));
            }
            at += count;
        }
    }
    for row in &mut words.items {
        row.truncate(total);
    }
}

/// Largest products seen in a piece.
#[inline(always)]
fn record_maxima(majorants: &mut [Majorant], attempts: &[u32], sigma_g: &[f32], range: Range<usize>) {
    let (mut at, mut before) = (0, 0);
    for (majorant, n) in majorants.iter_mut().zip(attempts) {
        let (n, low) = (*n as usize, range.start.saturating_sub(before).min(*n as usize));
        let count = range.end.saturating_sub(before).min(n) - low;
        before += n;
        let mut seen = majorant.seen;
        for s in &sigma_g[at..at + count] {
            seen = seen.max(*s);
        }
        at += count;
        majorant.seen = seen;
    }
}

/// Adapts (sigma g)max after all attempts.
#[inline(always)]
fn update_majorants(majorants: &mut [Majorant], attempts: &[u32]) {
    for (majorant, n) in majorants.iter_mut().zip(attempts) {
        if *n == 0 {
            continue;
        }
        let (sigma_g_max, seen) = (majorant.sigma_g_max, majorant.seen);
        majorant.attempts += *n as f32;
        if seen > sigma_g_max {
            majorant.sigma_g_max = seen;
        } else if majorant.attempts >= EVIDENCE {
            majorant.sigma_g_max = (sigma_g_max * FALL).max(seen * MARGIN).min(sigma_g_max);
            (majorant.seen, majorant.attempts) = (0.0, 0.0);
        }
    }
}

/// The particles of an attempt: one word for both, the fraction that the first leaves chooses the second; where the word has fewer
/// values than there are pairs, `further` chooses it.
#[inline(always)]
pub(super) fn partners(
    start: &[u32],
    slot: usize,
    species: usize,
    pair: &Kinetics,
    word: u32,
    further: impl FnOnce() -> u32,
) -> (usize, usize) {
    let (a, b) = (slot * species + pair.species[0], slot * species + pair.species[1]);
    let (first, second) = (start[a], start[b]);
    let (na, nb) = (start[a + 1] - first, start[b + 1] - second);
    let same = a == b;
    let product = u64::from(word) * u64::from(na);
    let i = (product >> 32) as u32;
    let rest = if u64::from(na) * u64::from(nb) > u64::from(u32::MAX) { further() } else { product as u32 };
    let mut j = ((u64::from(rest) * u64::from(nb - u32::from(same))) >> 32) as u32;
    j += u32::from(same && j >= i);
    ((first + i) as usize, (second + j) as usize)
}

/// A further word of an attempt.
#[cold]
pub(super) fn further(seed: u64, step: u64, items: &[Vec<u32>; 2], t: usize) -> u32 {
    Philox::new(purpose::PARTNER, seed).draw(step, u64::from(items[0][t]) << 32 | u64::from(items[1][t]))[0]
}

// Loops over indices, not closures over arrays: those are not reliably inlined into functions with target features.
/// Attempts one after the other.
#[inline(always)]
fn one_by_one(table: &Table, tile: &mut Tile, tiling: &Tiling, scratch: &mut Scratch, species: usize, step: u64) {
    let pairs = table.pairs.len();
    let Scratch { rows, words, start, sorted, .. } = scratch;
    let sorted = &mut Columns::of(sorted);
    for t in 0..words.items[0].len() {
        let (slot, p) = (rows.which[t] as usize / pairs, rows.which[t] as usize % pairs);
        let pair = &table.pairs[p];
        let sigma_g_max = tile.majorants[slot * pairs + p].sigma_g_max;
        let divided = tile.divided.get(slot) == Some(&true);
        let (i, mut j) = partners(start, slot, species, pair, words.words[0][t], || further(table.seed, step, &words.items, t));
        if table.tagged && !divided {
            let second = slot * species + pair.species[1];
            let range = [start[second] as usize, start[second + 1] as usize];
            j = table.nearest.map_or_else(|| fresh(sorted, i, j, range), |across| nearest(sorted, i, j, range, across));
        }
        let g = difference(velocity(sorted, i), velocity(sorted, j));
        let g2 = square(g);
        let sigma_g = pair.rate * power(g2, pair.power);
        rows.sigma_g[t] = sigma_g;
        if uniform_f32(words.words[1][t]) * sigma_g_max < sigma_g {
            let number = number_of(&words.items, t);
            if divided && !together(table, sorted, words.items[0][t], tiling, [i, j], step, number) {
                continue;
            }
            tile.ledger.exceeded += u64::from(sigma_g > sigma_g_max);
            tile.ledger.collisions += 1;
            hit(table, pair, sorted, [i, j], g, g2, [words.words[2][t], words.words[3][t]], step, number);
            if table.tagged {
                // A number that only these two have: until one of them collides again, it marks that they just did.
                let tag = words.words[2][t] ^ words.words[3][t].rotate_left(16) | 1;
                (sorted.tag[i], sorted.tag[j]) = (tag, tag);
            }
        }
    }
}

/// Key of the further random numbers of an attempted collision.
#[inline(always)]
pub(super) fn number_of(items: &[Vec<u32>; 2], t: usize) -> u64 {
    u64::from(items[0][t]) << 24 | u64::from(items[1][t] & 0xFF_FFFF)
}

/// Counts the attempted collisions of each cell and kind; returns their sum.
#[inline(always)]
fn count_attempts(table: &Table, tile: &Tile, tiling: &Tiling, scratch: &mut Scratch, species: usize, step: u64) -> usize {
    let (slots, pairs) = (tiling.cells_of_row(), table.pairs.len());
    // The numbers that round: a block for every four pairs of a cell.
    let blocks = pairs.div_ceil(4);
    let Scratch { words, start, attempts, .. } = scratch;
    let start = &start[..=slots * species];
    let occupied = |slot: usize| usize::from(start[slot * species] < start[(slot + 1) * species]);
    // Those of an empty cell are written over by the next.
    words.items.iter_mut().for_each(|row| row.resize(slots * blocks, 0));
    let (mut drawn, [cells, numbers]) = (0, &mut words.items);
    for slot in 0..slots {
        let cell = cell_number(tile, tiling, slot);
        for block in 0..blocks {
            (cells[drawn + block], numbers[drawn + block]) = (cell, block as u32);
        }
        drawn += blocks * occupied(slot);
    }
    words.items.iter_mut().for_each(|row| row.truncate(drawn));
    words.draw(purpose::COUNT, table.seed, step);
    attempts.clear();
    attempts.resize(slots * pairs, 0);
    for (p, pair) in table.pairs.iter().enumerate() {
        let [a, b] = pair.species;
        let (words, mut at) = (&words.words[p & 3][..drawn], p >> 2);
        for slot in 0..slots {
            let count = |s: usize| (start[slot * species + s + 1] - start[slot * species + s]) as f32;
            let both = if a == b { 0.5 * count(a) * (count(a) - 1.0) } else { count(a) * count(b) };
            let mean = both * tile.rate[slot] * tile.majorants[slot * pairs + p].sigma_g_max;
            // Any number for an empty cell, whose mean is 0.
            let word = words.get(at).copied().unwrap_or(0);
            at += blocks * occupied(slot);
            attempts[slot * pairs + p] = if table.scheme == Scheme::Ntc {
                (mean + uniform_f32(word)) as u32
            } else {
                let item = u64::from(cell_number(tile, tiling, slot)) * pairs as u64 + p as u64;
                poisson(mean, word, table.seed, step, item)
            };
        }
    }
    attempts.iter().map(|n| *n as usize).sum()
}

/// A number with Poisson's distribution: by inversion, in parts whose mean is small enough for it.
fn poisson(mean: f32, word: u32, seed: u64, step: u64, item: u64) -> u32 {
    let mut stream = Stream::new(purpose::PERMUTE, seed, step, item);
    let (mut left, mut total, mut u) = (f64::from(mean), 0, f64::from(open_f32(word)));
    while left > 0.0 {
        let part = left.min(16.0);
        left -= part;
        let (mut term, mut k) = ((-part).exp(), 0);
        let mut sum = term;
        while u > sum && k < 1000 {
            k += 1;
            term *= part / f64::from(k);
            sum += term;
        }
        total += k;
        u = stream.open();
    }
    total
}

/// Particle `from` of a cell's `range`, or the first one behind it that particle `i` has not just collided with, unless there is no
/// other.
#[inline(always)]
fn fresh(columns: &Columns<'_>, i: usize, from: usize, range: [usize; 2]) -> usize {
    let (tag, mut k) = (columns.tag[i], from);
    for _ in range[0]..range[1] {
        if k != i && (tag == 0 || columns.tag[k] != tag) {
            return k;
        }
        k = if k + 1 == range[1] { range[0] } else { k + 1 };
    }
    from
}

/// Particles searched for the nearest one.
const SEARCHED: usize = 48;

/// The nearest of a cell's particles `range` to particle `i`, without itself and the one that it has just collided with, unless
/// there is no other. Of many particles only some are searched, from `from` on.
#[inline(never)]
fn nearest(columns: &Columns<'_>, i: usize, from: usize, range: [usize; 2], across: [f32; 2]) -> usize {
    let [begin, end] = range;
    let (x, y, tag) = (columns.x[i], columns.y[i], columns.tag[i]);
    let (mut best, mut least) = (from, f32::INFINITY);
    let mut k = from;
    for _ in 0..(end - begin).min(SEARCHED) {
        let (dx, dy) = (columns.x[k] - x, columns.y[k] - y);
        let distance = across[0] * dx * dx + across[1] * dy * dy;
        if distance < least && k != i && (tag == 0 || columns.tag[k] != tag) {
            (best, least) = (k, distance);
        }
        k = if k + 1 == end { begin } else { k + 1 };
    }
    best
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{Config, SpeciesConfig};
    use crate::model::Model;
    use crate::stages::cpu::store::{ParticleState, Row, layout, tiling};
    use crate::stages::cpu::tile;
    use zellige_engine::rng::Philox;

    /// A tile of argon, or of argon and helium, or of nitrogen, its particles in order, few in a cell: many attempts share a
    /// particle.
    fn filled(species: &[&str], rotation: bool) -> (Model, Table, Tile, Tiling, Scratch) {
        let mut config = Config::new(vec![16; 2], vec![1.6e-4; 2], species[0], 7e22, 273.15);
        config.species =
            species.iter().map(|s| SpeciesConfig { fraction: 1.0 / species.len() as f64, ..SpeciesConfig::named(s) }).collect();
        (config.dt, config.particles_per_cell, config.collisions.rotation) = (4e-8, Some(6.0), rotation);
        let model = Model::new(&config, Path::new(""), 3).unwrap();
        let tiling = tiling(&model.grid, 6.0);
        let tile = tile::empty(&model, &tiling, 0);
        let (keys, layout, philox) = (tiling.cells_of_row() * species.len(), layout(&model), Philox::new(77, 5));
        let mut row = Row::new(layout, 0);
        for i in 0..6 * tiling.cells_of_row() {
            let [a, b] = philox.normals(0, 2 * i as u64);
            let [c, d] = philox.normals(0, 2 * i as u64 + 1);
            let v = [a, b, c].map(|v| (300.0 * v) as f32);
            let body = ParticleState { x: 0.0, y: 0.0, v, rotation: (200.0 * d * d) as f32, level: 0, tag: 0 };
            row.push(&body.with_key(((i * 7919) % keys) as u16));
        }
        let mut scratch = Scratch::new(layout);
        scratch.order(&row, keys);
        (model.clone(), Table::new(&model), tile, tiling, scratch)
    }

    #[test]
    fn a_fresh_partner_is_the_next_one_that_is_neither_oneself_nor_the_last() {
        let mut config = Config::new(vec![1], vec![1e-5], "Ar", 7e22, 273.15);
        config.collisions.partner = crate::model::Partner::Fresh;
        let mut row = Row::new(layout(&Model::new(&config, Path::new(""), 1).unwrap()), 0);
        for tag in [7, 7, 0, 9, 9, 3] {
            row.push(&ParticleState { x: 0.0, y: 0.0, v: [0.0; 3], rotation: 0.0, level: 0, tag }.with_key(0));
        }
        let columns = Columns::of(&mut row);
        let found = |i, from| fresh(&columns, i, from, [0, 6]);
        assert_eq!([found(0, 3), found(0, 1), found(0, 0), found(3, 4), found(4, 3), found(2, 5)], [3, 2, 2, 5, 5, 5]);
        // Those who are alone with their last partner have no other.
        assert_eq!(fresh(&columns, 3, 4, [3, 5]), 4);
    }

    /// Cells twice as high as wide: what is near along y in parts of a cell is further in metres. The last partner is none.
    #[test]
    fn the_nearest_partner_is_nearest_in_metres_and_not_the_last_one() {
        let mut config = Config::new(vec![4, 4], vec![4e-5, 8e-5], "Ar", 7e22, 273.15);
        config.collisions.partner = crate::model::Partner::NearestNeighbour;
        let model = Model::new(&config, Path::new(""), 1).unwrap();
        let across = Table::new(&model).nearest.unwrap();
        assert!((across[0] - 1.0).abs() < 1e-6 && (across[1] - 4.0).abs() < 1e-6, "{across:?}");
        let mut row = Row::new(layout(&model), 0);
        for (x, y, tag) in [(0.5, 0.5, 7), (0.8, 0.5, 0), (0.5, 0.7, 0), (0.5, 0.55, 7), (0.1, 0.1, 0)] {
            row.push(&ParticleState { x, y, v: [0.0; 3], rotation: 0.0, level: 0, tag }.with_key(0));
        }
        let columns = Columns::of(&mut row);
        // Distances of 0.3 and 0.4; number 3, at 0.1, it has just collided with.
        for from in 1..5 {
            assert_eq!(nearest(&columns, 0, from, [0, 5], across), 1, "from {from}");
        }
        // One without a tag takes the nearest of all.
        assert_eq!(nearest(&columns, 2, 4, [0, 5], across), 3);
    }

    #[test]
    fn attempts_in_pieces_are_those_all_at_once() {
        for species in [&["Ar"][..], &["Ar", "He"]] {
            let mut found = [usize::MAX, 37].map(|length| {
                let (_, table, mut tile, tiling, mut scratch) = filled(species, false);
                let total = count_attempts(&table, &tile, &tiling, &mut scratch, species.len(), 9);
                for from in (0..total).step_by(length.min(total)) {
                    piece(&table, &mut tile, &tiling, &mut scratch, species.len(), 9, from..total.min(from.saturating_add(length)));
                }
                update_majorants(&mut tile.majorants, &scratch.attempts);
                (Columns::of(&mut scratch.sorted).v.map(|v| v.to_vec()), tile.ledger, tile.majorants)
            });
            let (a, b) = (std::mem::take(&mut found[0].0), std::mem::take(&mut found[1].0));
            assert!(a == b && found[0] == found[1] && found[0].1.collisions > 300, "{species:?}: {:?} {:?}", found[0].1, found[1].1);
        }
    }

    #[test]
    fn attempts_in_rows_are_those_one_by_one() {
        for (species, rotation) in [(&["Ar"][..], false), (&["Ar", "He"], false), (&["N2"], true)] {
            let mut found = [false, true].map(|rows| {
                let (_, table, mut tile, tiling, mut scratch) = filled(species, rotation);
                let total = count_attempts(&table, &tile, &tiling, &mut scratch, species.len(), 9);
                list_attempts(&tile, &tiling, &mut scratch, species.len(), 0..total);
                scratch.words.draw(purpose::PAIR, table.seed, 9);
                if rows {
                    in_rows(&table, &mut tile, &mut scratch, species.len(), 9, total);
                } else {
                    one_by_one(&table, &mut tile, &tiling, &mut scratch, species.len(), 9);
                }
                let Scratch { mut sorted, rows, .. } = scratch;
                let sorted = Columns::of(&mut sorted);
                (sorted.v.map(|v| v.to_vec()), sorted.rotation.to_vec(), tile.ledger, rows.sigma_g[..total].to_vec())
            });
            let (a, b) = (std::mem::take(&mut found[0].0), std::mem::take(&mut found[1].0));
            assert!(a == b, "{species:?}: velocities");
            assert!(found[0] == found[1], "{species:?}: {:?} {:?}", found[0].2, found[1].2);
            assert!(found[0].2.collisions > 300, "{:?}", found[0].2);
        }
    }

    /// A million particles in a cell: a word that has chosen the first of them has 4096 values left, and a second word chooses
    /// among all.
    #[test]
    fn partners_of_a_crowd_are_all_of_it() {
        let config = Config::new(vec![1], vec![1.0], "Ar", 1e20, 300.0);
        let table = Table::new(&Model::new(&config, Path::new(""), 1).unwrap());
        let philox = Philox::new(0xfff3, 1);
        let found = |n: u32| {
            let draw = |k: u64| {
                let [word, other, ..] = philox.draw(0, k);
                partners(&[0, n], 0, 1, &table.pairs[0], word, || other)
            };
            (0..30_000).map(draw).collect::<Vec<_>>()
        };
        let crowd = found(1 << 20);
        assert!(crowd.iter().all(|(i, j)| i != j && *i < 1 << 20 && *j < 1 << 20));
        let mut second: Vec<usize> = crowd.iter().map(|p| p.1).collect();
        second.sort_unstable();
        second.dedup();
        // 30 000 of a million: 1.4 % come twice.
        assert!(second.len() > 29_000, "{} partners", second.len());
        // Up to 65 536 one word does, as before.
        let one = |n: u32| partners(&[0, n], 0, 1, &table.pairs[0], 0x1234_5678, || panic!("a second word"));
        let (i, j) = one(65_535);
        assert!(i < 65_535 && j < 65_535 && i != j);
        // By hand: 0x12345678 times 1000 is 71 and 0.111 of 2^32, which of 999 is 110, one more as 71 is before it.
        assert_eq!(one(1000), (71, 111));
    }
}
