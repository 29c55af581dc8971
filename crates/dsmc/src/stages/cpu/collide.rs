//! The collisions of a tile's cells.
//!
//! No time counter and majorant frequency: of the pairs of species a and b in a cell, `N_a N_b W (sigma g)max dt/V` are tried (half
//! of `N (N - 1)` within a species), rounded at random or as Poisson's number, and each collides with the probability
//! `sigma g/(sigma g)max`. The maximum begins high, rises at once where it was exceeded, and falls slowly towards what was seen, but
//! only when enough tries have been seen. Pairing: all particles in disjoint random pairs, each colliding with the probability
//! `(N - 1) W sigma g dt/V` (times `N/(N - 1)` for odd N), in so many rounds that no probability exceeds 1.
//!
//! Every number is drawn for (cell, try), so the result does not depend on threads.

use std::sync::Arc;

use super::math::{Stream, power, turn};
use super::store::{Columns, Mosaic};
use super::tile::{Majorant, Scratch, Tile, prefetch};
use crate::geometry::Geometry;
use crate::model::{Model, Scheme, ZDefinition, purpose};
use crate::physics::{Vec3, deflected, difference, directed, level_taken, moved, rotor_share, square, top_takes};
use crate::walls::BOLTZMANN;
use zellige_engine::rng::{open_f32, uniform_f32};

/// Cross-sections times speeds are kept times this, so that single precision has room: they are about 1e-16 m^3/s.
pub(super) const SCALE: f64 = 1e16;
/// Most probable speeds of a relative motion that the first maximum is for.
const FAST: f64 = 5.0;
/// Tries after which a maximum may fall.
const EVIDENCE: f32 = 2000.0;
/// It falls by no more than this factor at a time, and not below this multiple of what was seen.
const FALL: f32 = 0.9;
const MARGIN: f32 = 1.05;
/// Largest number of rounds of pairing in a step.
const ROUNDS: u32 = 64;

/// Pairs of species with a <= b.
pub(super) fn pair_count(species: usize) -> usize {
    species * (species + 1) / 2
}

/// What single collisions need of two species, in single precision.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kinetics {
    species: [usize; 2],
    /// `sigma g = rate (g^2)^power`, times [`SCALE`].
    rate: f32,
    power: f32,
    /// 1/alpha; 1 means isotropic.
    soft: f32,
    /// Parts of the relative velocity that each gets: `m_b/(m_a + m_b)`, `m_a/(m_a + m_b)`.
    share: [f32; 2],
    /// Energy of the relative motion over k: `thermal g^2`, K.
    thermal: f32,
    /// 5/2 - omega.
    pool: f32,
    inelastic: bool,
}

/// Internal modes of a species.
#[derive(Debug, Clone, Copy)]
pub(super) struct Modes {
    rotation: u32,
    z_rotation: crate::gas::Relaxation,
    theta: f32,
    z_vibration: crate::gas::Relaxation,
}

/// Everything that collisions of a run need.
#[derive(Debug, Clone)]
pub(super) struct Table {
    scheme: Scheme,
    pairs: Vec<Kinetics>,
    modes: Vec<Modes>,
    jeans: bool,
    /// `[a * species + b]`: place in `pairs`, and whether a comes second there.
    lookup: Vec<usize>,
    seed: u64,
    geometry: Arc<Geometry>,
}

impl Table {
    pub(super) fn new(model: &Model) -> Self {
        let n = model.species.len();
        let c = &model.collisions;
        let mode = |s: usize| {
            let s = &model.species[s];
            Modes {
                rotation: if c.rotation { s.rotation } else { 0 },
                z_rotation: s.z_rotation,
                theta: if c.vibration { s.vibration as f32 } else { 0.0 },
                z_vibration: s.z_vibration,
            }
        };
        let modes: Vec<Modes> = (0..n).map(mode).collect();
        let (mut pairs, mut lookup) = (Vec::new(), vec![0; n * n]);
        for a in 0..n {
            for b in a..n {
                let pair = model.pair(a, b);
                lookup[a * n + b] = pairs.len();
                lookup[b * n + a] = pairs.len();
                let mass = model.species[a].mass + model.species[b].mass;
                pairs.push(Kinetics {
                    species: [a, b],
                    rate: (pair.rate * SCALE) as f32,
                    power: (1.0 - pair.scatter.omega) as f32,
                    soft: (1.0 / pair.scatter.alpha) as f32,
                    share: [model.species[b].mass / mass, model.species[a].mass / mass].map(|x| x as f32),
                    thermal: (0.5 * pair.reduced_mass / BOLTZMANN) as f32,
                    pool: (2.5 - pair.scatter.omega) as f32,
                    inelastic: [a, b].iter().any(|s| modes[*s].rotation > 0 || modes[*s].theta > 0.0),
                });
            }
        }
        Self {
            scheme: c.scheme,
            pairs,
            modes,
            jeans: c.z_definition == ZDefinition::Jeans,
            lookup,
            seed: model.seed,
            geometry: model.geometry.clone(),
        }
    }
}

/// Smallest part of a cell that collisions are computed for with its own volume; in smaller ones they are as rare as in this one.
const SMALLEST: f64 = 0.02;

/// Weight times step over the free volume of a cell; 0 where there is none.
pub(super) fn rate(model: &Model, cell: usize) -> f32 {
    let fraction = model.geometry.fraction(cell);
    // Of a parted cell the smallest part: pairs in larger ones are thinned by `together`.
    let fraction = model.geometry.smallest_part(cell).unwrap_or(fraction);
    let volume = if fraction > 0.0 { model.grid.volume() * fraction.max(SMALLEST) } else { 0.0 };
    if volume > 0.0 { (model.weight * model.dt / volume / SCALE) as f32 } else { 0.0 }
}

/// The first maxima of all pairs: of the fastest of a hot gas that meets another one at the fastest drift.
pub(super) fn majorants(model: &Model) -> Vec<Majorant> {
    let n = model.species.len();
    let [temperature, drift] = model.hottest;
    let most = |a: usize, b: usize| {
        let pair = model.pair(a, b);
        let g = FAST * (2.0 * BOLTZMANN * temperature / pair.reduced_mass).sqrt() / std::f64::consts::SQRT_2 + 2.0 * drift;
        Majorant { most: (pair.sigma_g(g) * SCALE) as f32, seen: 0.0, tries: 0.0 }
    };
    (0..n).flat_map(|a| (a..n).map(move |b| (a, b))).map(|(a, b)| most(a, b)).collect()
}

/// All collisions of a tile in step `step`. `sums` is the width of a cell's sums if they are needed afterwards, or 0.
#[inline(always)]
pub(super) fn collide(table: &Table, tile: &mut Tile, mosaic: &Mosaic, scratch: &mut Scratch, species: usize, step: u64, sums: usize) {
    match table.scheme {
        Scheme::None => {}
        Scheme::Ntc | Scheme::Majorant => tried(table, tile, mosaic, scratch, species, step, sums),
        Scheme::Pairing => paired(table, tile, mosaic, scratch, species, step),
    }
}

/// Number of a cell in the grid, which its random numbers hang on.
#[inline(always)]
fn cell_number(tile: &Tile, mosaic: &Mosaic, slot: usize) -> u32 {
    let (i, j) = (slot & ((1 << mosaic.shift[0]) - 1), slot >> mosaic.shift[0]);
    ((tile.corner[1] + j) * mosaic.cells[0] + tile.corner[0] + i) as u32
}

// Loops over indices, not closures over arrays: those are not reliably inlined into functions with target features.
#[inline(always)]
fn tried(table: &Table, tile: &mut Tile, mosaic: &Mosaic, scratch: &mut Scratch, species: usize, step: u64, sums: usize) {
    let (slots, pairs) = (mosaic.slots(), table.pairs.len());
    let total = count_tries(table, tile, mosaic, scratch, species, step);
    if total == 0 {
        return;
    }
    tile.ledger.attempts += total as u64;
    let words = &mut scratch.words;
    words.items[0].clear();
    words.items[1].clear();
    for slot in 0..slots {
        let mut n = 0;
        for p in 0..pairs {
            n += scratch.tries[slot * pairs + p];
        }
        if n > 0 {
            let cell = cell_number(tile, mosaic, slot);
            for t in 0..n {
                words.items[0].push(cell);
                words.items[1].push(t);
            }
        }
    }
    words.draw(purpose::PAIR, table.seed, step);
    let start = &scratch.start;
    let sorted = &mut scratch.sorted;
    let (mut at, mut collisions, mut exceeded) = (0, 0, 0);
    for slot in 0..slots {
        if sums > 0 {
            prefetch(tile, slot, sums);
        }
        for p in 0..pairs {
            let n = scratch.tries[slot * pairs + p] as usize;
            if n == 0 {
                continue;
            }
            let pair = &table.pairs[p];
            let (a, b) = (slot * species + pair.species[0], slot * species + pair.species[1]);
            let (first, second) = (start[a] as usize, start[b] as usize);
            let (na, nb) = (start[a + 1] - start[a], start[b + 1] - start[b]);
            let same = a == b;
            let majorant = &mut tile.majorants[slot * pairs + p];
            let (most, mut seen) = (majorant.most, majorant.seen);
            let parted = tile.parted.get(slot) == Some(&true);
            for t in at..at + n {
                // One word for both partners: the fraction that the first leaves chooses the second.
                let product = u64::from(words.words[0][t]) * u64::from(na);
                let i = (product >> 32) as usize;
                let rest = u64::from(product as u32);
                let mut j = ((rest * u64::from(nb - u32::from(same))) >> 32) as usize;
                j += usize::from(same && j >= i);
                let (i, j) = (first + i, second + j);
                let g = difference(velocity(sorted, i), velocity(sorted, j));
                let g2 = square(g);
                let sigma_g = pair.rate * power(g2, pair.power);
                seen = seen.max(sigma_g);
                if uniform_f32(words.words[1][t]) * most < sigma_g {
                    let number = u64::from(words.items[0][t]) << 24 | u64::from(words.items[1][t] & 0xFF_FFFF);
                    if parted && !together(table, sorted, words.items[0][t], mosaic, [i, j], step, number) {
                        continue;
                    }
                    exceeded += u64::from(sigma_g > most);
                    collisions += 1;
                    hit(table, pair, sorted, [i, j], g, g2, [words.words[2][t], words.words[3][t]], step, number);
                }
            }
            at += n;
            majorant.tries += n as f32;
            majorant.seen = seen;
            if seen > most {
                majorant.most = seen;
            } else if majorant.tries >= EVIDENCE {
                majorant.most = (most * FALL).max(seen * MARGIN).min(most);
                (majorant.seen, majorant.tries) = (0.0, 0.0);
            }
        }
    }
    tile.ledger.collisions += collisions;
    tile.ledger.exceeded += exceeded;
}

/// How many pairs of each cell and kind are to be tried; returns their sum.
#[inline(always)]
fn count_tries(table: &Table, tile: &Tile, mosaic: &Mosaic, scratch: &mut Scratch, species: usize, step: u64) -> usize {
    let (slots, pairs) = (mosaic.slots(), table.pairs.len());
    // The numbers that round: a block for every four pairs of a cell.
    let blocks = pairs.div_ceil(4);
    let words = &mut scratch.words;
    words.items[0].clear();
    words.items[1].clear();
    for slot in 0..slots {
        let cell = cell_number(tile, mosaic, slot);
        for block in 0..blocks {
            words.items[0].push(cell);
            words.items[1].push(block as u32);
        }
    }
    words.draw(purpose::COUNT, table.seed, step);
    let start = &scratch.start;
    scratch.tries.clear();
    let mut total = 0_usize;
    for slot in 0..slots {
        for p in 0..pairs {
            let pair = &table.pairs[p];
            let (a, b) = (slot * species + pair.species[0], slot * species + pair.species[1]);
            let (na, nb) = ((start[a + 1] - start[a]) as f32, (start[b + 1] - start[b]) as f32);
            let both = if a == b { 0.5 * na * (na - 1.0) } else { na * nb };
            let mean = both * tile.rate[slot] * tile.majorants[slot * pairs + p].most;
            let mut n = 0;
            if mean > 0.0 {
                let word = words.words[p & 3][slot * blocks + (p >> 2)];
                n = if table.scheme == Scheme::Ntc {
                    (mean + uniform_f32(word)) as u32
                } else {
                    poisson(mean, word, table.seed, step, u64::from(cell_number(tile, mosaic, slot)) * pairs as u64 + p as u64)
                };
            }
            scratch.tries.push(n);
            total += n as usize;
        }
    }
    total
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

#[inline(always)]
fn paired(table: &Table, tile: &mut Tile, mosaic: &Mosaic, scratch: &mut Scratch, species: usize, step: u64) {
    let (slots, pairs) = (mosaic.slots(), table.pairs.len());
    for slot in 0..slots {
        let begin = scratch.start[slot * species] as usize;
        let n = scratch.start[(slot + 1) * species] as usize - begin;
        if n < 2 {
            continue;
        }
        let cell = cell_number(tile, mosaic, slot);
        let parted = tile.parted.get(slot) == Some(&true);
        // The rounds follow from the largest cross-section of any pair, which is kept as the other schemes keep it.
        let majorants = &mut tile.majorants[slot * pairs..(slot + 1) * pairs];
        let most = majorants.iter().map(|m| m.most).fold(0.0, f32::max);
        let even = n & !1;
        let scale = if n == even { (n - 1) as f32 } else { n as f32 };
        let rounds = ((scale * tile.rate[slot] * most).ceil() as u32).clamp(1, ROUNDS);
        let probability = scale * tile.rate[slot] / rounds as f32;
        let mut stream = Stream::with_room(purpose::PERMUTE, table.seed, step, u64::from(cell), 30);
        for round in 0..rounds {
            let order = &mut scratch.order;
            order.clear();
            order.extend(begin as u32..(begin + n) as u32);
            for i in (1..n).rev() {
                let j = (u64::from(stream.word()) * (i as u64 + 1)) >> 32;
                order.swap(i, j as usize);
            }
            for (t, two) in order[..even].chunks_exact(2).enumerate() {
                let (i, j) = (two[0] as usize, two[1] as usize);
                let kind = |i: usize| usize::from(scratch.sorted.key[i]) % species;
                let p = table.lookup[kind(i) * species + kind(j)];
                let pair = &table.pairs[p];
                let (i, j) = if kind(i) == pair.species[0] { (i, j) } else { (j, i) };
                let g = difference(velocity(&scratch.sorted, i), velocity(&scratch.sorted, j));
                let g2 = square(g);
                let sigma_g = pair.rate * power(g2, pair.power);
                majorants[p].most = majorants[p].most.max(sigma_g);
                tile.ledger.attempts += 1;
                let chance = sigma_g * probability;
                tile.ledger.exceeded += u64::from(chance > 1.0);
                let number = u64::from(cell) << 24 | (u64::from(round) << 18 | t as u64) & 0xFF_FFFF;
                if uniform_f32(stream.word()) < chance && (!parted || together(table, &scratch.sorted, cell, mosaic, [i, j], step, number))
                {
                    tile.ledger.collisions += 1;
                    let words = [stream.word(), stream.word()];
                    hit(table, pair, &mut scratch.sorted, [i, j], g, g2, words, step, number);
                }
            }
        }
    }
}

/// Whether two particles of a parted cell are in the same part, thinned by the smallest part's volume over that of theirs: the rate
/// at which pairs are tried is that of the smallest part.
#[inline(never)]
fn together(table: &Table, columns: &Columns, cell: u32, mosaic: &Mosaic, at: [usize; 2], step: u64, number: u64) -> bool {
    let place = [cell as usize % mosaic.cells[0], cell as usize / mosaic.cells[0]];
    let part = |i: usize| table.geometry.part_at(place, [f64::from(columns.x[i]), f64::from(columns.y[i])]);
    let ((first, fraction), (second, _)) = (part(at[0]), part(at[1]));
    let least = table.geometry.smallest_part(cell as usize).unwrap_or(fraction).max(SMALLEST);
    first == second && Stream::new(purpose::PART, table.seed, step, number).open() * fraction.max(SMALLEST) < least
}

#[inline(always)]
fn velocity(columns: &Columns, i: usize) -> Vec3<f32> {
    Vec3 { x: columns.v[0][i], y: columns.v[1][i], z: columns.v[2][i] }
}

/// Two particles collide: internal energies first, then the direction. `g` is the relative velocity, `words` are for the direction.
#[inline(always)]
fn hit(
    table: &Table,
    pair: &Kinetics,
    columns: &mut Columns,
    at: [usize; 2],
    g: Vec3<f32>,
    g2: f32,
    words: [u32; 2],
    step: u64,
    number: u64,
) {
    let speed = if pair.inelastic { exchange(table, pair, columns, at, g2, step, number) } else { g2.sqrt() };
    let (se, ce) = turn(uniform_f32(words[1]));
    let u = open_f32(words[0]);
    let after = if pair.soft == 1.0 {
        directed(speed, 2.0 * u - 1.0, ce, se)
    } else {
        deflected(g, speed, 2.0 * power(u, pair.soft) - 1.0, ce, se)
    };
    // The first gets `m_b/(m_a + m_b)` of the change of the relative velocity, the second the rest, backwards.
    let change = difference(after, g);
    let (v, w) = (moved(velocity(columns, at[0]), pair.share[0], change), moved(velocity(columns, at[1]), -pair.share[1], change));
    (columns.v[0][at[0]], columns.v[1][at[0]], columns.v[2][at[0]]) = (v.x, v.y, v.z);
    (columns.v[0][at[1]], columns.v[1][at[1]], columns.v[2][at[1]]) = (w.x, w.y, w.z);
}

/// Larsen and Borgnakke's exchange, one mode of one particle after the other. Returns the new relative speed.
#[inline(never)]
fn exchange(table: &Table, pair: &Kinetics, columns: &mut Columns, at: [usize; 2], g2: f32, step: u64, number: u64) -> f32 {
    let mut stream = Stream::new(purpose::INTERNAL, table.seed, step, number);
    let mut uniform = || open_f32(stream.word());
    let mut energy = pair.thermal * g2;
    let (b, freedom) = (pair.pool - 1.0, 2.0 * pair.pool);
    for (i, s) in at.into_iter().zip(pair.species) {
        let modes = &table.modes[s];
        // What the collision number is taken at and what the exchange keeps are the same, so that detailed balance holds.
        if modes.theta > 0.0 {
            let pool = energy + f32::from(columns.level[i]) * modes.theta;
            let z = modes.z_vibration.at(f64::from(2.0 * pool / freedom)) as f32;
            let chance = if table.jeans {
                let x = modes.theta / (2.0 * pool / freedom);
                (freedom + 2.0 * x / x.exp_m1().max(1e-30)) / (freedom * z)
            } else {
                1.0 / z
            };
            if uniform() < chance {
                let highest = (pool / modes.theta).min(65_000.0);
                loop {
                    let level = ((highest + 1.0).floor() * uniform()).floor().min(highest.floor());
                    if level_taken(level * modes.theta, pool, uniform(), b) {
                        columns.level[i] = level as u16;
                        energy = (pool - level * modes.theta).max(0.0);
                        break;
                    }
                }
            }
        }
        if modes.rotation > 0 {
            let pool = energy + columns.rotation[i];
            let zeta = modes.rotation as f32;
            let z = modes.z_rotation.at(f64::from(2.0 * pool / (freedom + zeta))) as f32;
            let chance = if table.jeans { (freedom + zeta) / (freedom * z) } else { 1.0 / z };
            if uniform() < chance {
                let own = if modes.rotation == 2 {
                    rotor_share(pool, uniform(), 1.0 / pair.pool)
                } else {
                    loop {
                        let x = uniform();
                        if top_takes(x, uniform(), b) {
                            break pool * x;
                        }
                    }
                };
                columns.rotation[i] = own;
                energy = (pool - own).max(0.0);
            }
        }
    }
    (energy / pair.thermal).sqrt()
}
