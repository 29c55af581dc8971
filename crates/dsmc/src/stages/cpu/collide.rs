//! The collisions of a tile's cells.
//!
//! No time counter and majorant frequency: of the pairs of species a and b in a cell, `N_a N_b W (sigma g)max dt/V` are tried (half
//! of `N (N - 1)` within a species), rounded at random or as Poisson's number, and each collides with the probability
//! `sigma g/(sigma g)max`. The maximum begins high, rises at once where it was exceeded, and falls slowly towards what was seen, but
//! only when enough tries have been seen. Pairing: all particles in disjoint random pairs, each colliding with the probability
//! `(N - 1) W sigma g dt/V` (times `N/(N - 1)` for odd N), in so many rounds that no probability exceeds 1.
//!
//! Every number is drawn for (cell, try), so the result does not depend on threads.
//!
//! The partner of the first particle is any of the cell, or the nearest one that it has not just collided with.

use std::sync::Arc;

use super::exchange::{Modes, exchange};
use super::math::{Stream, power, turn};
use super::store::{Columns, Mosaic};
use super::tile::{Majorant, Scratch, Tile, prefetch};
use crate::gas::Relaxation;
use crate::gas::millikan::{Chances, collision_number};
use crate::geometry::Geometry;
use crate::model::{Model, Partner, Scheme, ZDefinition, purpose};
use crate::physics::{Vec3, deflected, difference, directed, moved, square};
use crate::walls::BOLTZMANN;
use zellige_engine::rng::{open_f32, uniform_f32};

/// Cross-sections times speeds are kept times this, so that single precision has room: they are about 1e-16 m^3/s.
pub(in crate::stages) const SCALE: f64 = 1e16;
/// Most probable speeds of a relative motion that the first maximum is for.
const FAST: f64 = 5.0;
/// Tries after which a maximum may fall.
const EVIDENCE: f32 = 2000.0;
/// It falls by no more than this factor at a time, and not below this multiple of what was seen.
const FALL: f32 = 0.9;
const MARGIN: f32 = 1.05;

/// Pairs of species with a <= b.
pub(in crate::stages) fn pair_count(species: usize) -> usize {
    species * (species + 1) / 2
}

/// What single collisions need of two species, in single precision.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kinetics {
    pub(super) species: [usize; 2],
    /// `sigma g = rate (g^2)^power`, times [`SCALE`].
    pub(super) rate: f32,
    pub(super) power: f32,
    /// 1/alpha; 1 means isotropic.
    soft: f32,
    /// Parts of the relative velocity that each gets: `m_b/(m_a + m_b)`, `m_a/(m_a + m_b)`.
    share: [f32; 2],
    /// Energy of the relative motion over k: `thermal g^2`, K.
    pub(super) thermal: f32,
    /// 5/2 - omega.
    pub(super) pool: f32,
    inelastic: bool,
    /// Place in [`Table::chances`] of the vibration of each by Millikan and White.
    pub(super) chances: [Option<usize>; 2],
}

/// Everything that collisions of a run need.
#[derive(Debug, Clone)]
pub(super) struct Table {
    scheme: Scheme,
    pub(super) pairs: Vec<Kinetics>,
    pub(super) modes: Vec<Modes>,
    pub(super) jeans: bool,
    /// `[a * species + b]`: place in `pairs`, and whether a comes second there.
    pub(super) lookup: Vec<usize>,
    pub(super) seed: u64,
    geometry: Arc<Geometry>,
    /// Whether partners are near, and the squared lengths of the cell's edges over that of the first.
    near: Option<[f32; 2]>,
    pub(super) chances: Vec<Chances>,
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
        let (mut pairs, mut lookup, mut chances) = (Vec::new(), vec![0; n * n], Vec::new());
        for a in 0..n {
            for b in a..n {
                let pair = model.pair(a, b);
                lookup[a * n + b] = pairs.len();
                lookup[b * n + a] = pairs.len();
                let mass = model.species[a].mass + model.species[b].mass;
                let mut relaxing = |s: usize| {
                    let kind = &model.species[s];
                    // A collision number that was given goes before the correlation.
                    let asked = c.millikan_white && modes[s].theta > 0.0 && kind.z_vibration == Relaxation::Constant(f64::INFINITY);
                    asked.then(|| {
                        chances.push(Chances::new(kind.vibration, pair.scatter.omega, |t| collision_number(kind, pair, t)));
                        chances.len() - 1
                    })
                };
                let own = relaxing(a);
                let relaxing = [own, if a == b { own } else { relaxing(b) }];
                pairs.push(Kinetics {
                    species: [a, b],
                    rate: (pair.rate * SCALE) as f32,
                    power: (1.0 - pair.scatter.omega) as f32,
                    soft: (1.0 / pair.scatter.alpha) as f32,
                    share: [model.species[b].mass / mass, model.species[a].mass / mass].map(|x| x as f32),
                    thermal: (0.5 * pair.reduced_mass / BOLTZMANN) as f32,
                    pool: (2.5 - pair.scatter.omega) as f32,
                    inelastic: [a, b].iter().any(|s| modes[*s].rotation > 0 || modes[*s].theta > 0.0),
                    chances: relaxing,
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
            near: (c.partner == Partner::Near).then(|| {
                let across = |d: usize| if d < model.grid.dimensions { (model.grid.h[d] / model.grid.h[0]).powi(2) as f32 } else { 0.0 };
                [across(0), across(1)]
            }),
            chances,
        }
    }
}

/// Smallest part of a cell that collisions are computed for with its own volume; in smaller ones they are as rare as in this one.
const SMALLEST: f64 = 0.02;

/// Weight times step over the free volume of a cell; 0 where there is none.
pub(in crate::stages) fn rate(model: &Model, cell: usize) -> f32 {
    let fraction = model.geometry.fraction(cell);
    // Of a parted cell the smallest part: pairs in larger ones are thinned by `together`.
    let fraction = model.geometry.smallest_part(cell).unwrap_or(fraction);
    let volume = if fraction > 0.0 { model.grid.volume() * fraction.max(SMALLEST) } else { 0.0 };
    if volume > 0.0 { (model.weight * model.dt / volume / SCALE) as f32 } else { 0.0 }
}

/// The first maxima of all pairs: of the fastest of a hot gas that meets another one at the fastest drift.
pub(in crate::stages) fn majorants(model: &Model) -> Vec<Majorant> {
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
        Scheme::Pairing => super::pairing::paired(table, tile, mosaic, scratch, species, step),
    }
}

/// Number of a cell in the grid, which its random numbers hang on.
#[inline(always)]
pub(super) fn cell_number(tile: &Tile, mosaic: &Mosaic, slot: usize) -> u32 {
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
                let (i, mut j) = (first + i, second + j);
                if let (Some(across), false) = (table.near, parted) {
                    j = nearest(sorted, i, j, [second, second + nb as usize], across);
                }
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
                    if table.near.is_some() {
                        // A number that only these two have: until one of them collides again, it tells that they just did.
                        let tag = words.words[2][t] ^ words.words[3][t].rotate_left(16) | 1;
                        (sorted.tag[i], sorted.tag[j]) = (tag, tag);
                    }
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

/// Particles that are looked at for a near one.
const LOOKED_AT: usize = 48;

/// The nearest of a cell's particles `range` to particle `i`, without itself and the one that it has just collided with, unless there
/// is no other. Of a crowd only some are looked at, from `from` on.
#[inline(never)]
fn nearest(columns: &Columns, i: usize, from: usize, range: [usize; 2], across: [f32; 2]) -> usize {
    let [begin, end] = range;
    let (x, y, tag) = (columns.x[i], columns.y[i], columns.tag[i]);
    let (mut best, mut least) = (from, f32::INFINITY);
    let mut k = from;
    for _ in 0..(end - begin).min(LOOKED_AT) {
        let (dx, dy) = (columns.x[k] - x, columns.y[k] - y);
        let distance = across[0] * dx * dx + across[1] * dy * dy;
        if distance < least && k != i && (tag == 0 || columns.tag[k] != tag) {
            (best, least) = (k, distance);
        }
        k = if k + 1 == end { begin } else { k + 1 };
    }
    best
}

/// Whether two particles of a parted cell are in the same part, thinned by the smallest part's volume over that of theirs: the rate
/// at which pairs are tried is that of the smallest part.
#[inline(never)]
pub(super) fn together(table: &Table, columns: &Columns, cell: u32, mosaic: &Mosaic, at: [usize; 2], step: u64, number: u64) -> bool {
    let place = [cell as usize % mosaic.cells[0], cell as usize / mosaic.cells[0]];
    let part = |i: usize| table.geometry.part_at(place, [f64::from(columns.x[i]), f64::from(columns.y[i])]);
    let ((first, fraction), (second, _)) = (part(at[0]), part(at[1]));
    let least = table.geometry.smallest_part(cell as usize).unwrap_or(fraction).max(SMALLEST);
    first == second && Stream::new(purpose::PART, table.seed, step, number).open() * fraction.max(SMALLEST) < least
}

#[inline(always)]
pub(super) fn velocity(columns: &Columns, i: usize) -> Vec3<f32> {
    Vec3 { x: columns.v[0][i], y: columns.v[1][i], z: columns.v[2][i] }
}

/// Two particles collide: internal energies first, then the direction. `g` is the relative velocity, `words` are for the direction.
#[inline(always)]
pub(super) fn hit(
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
