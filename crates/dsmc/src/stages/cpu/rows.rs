//! The attempts of a tile in rows, for vectors: the cross-sections of all with the velocities before the first collision, then, of
//! those that collide by these or share a particle with an earlier one that may, the scattering; at last these few in their order,
//! where one with a particle that has changed since is done again by itself. The same bits as one by one.

use super::attempts::{AHEAD, further, number_of, partners};
use super::collide::{Table, change, hit, velocity};
use super::math::{power, turn};
use super::store::Columns;
use super::tile::{Scratch, Tile};
use crate::physics::{Vec3, deflected, difference, directed, in_plane, square};
use zellige_engine::rng::{open_f32, uniform_f32};

/// Bit of an entry of the list of candidates: it shares a particle with an earlier one.
const SHARED: u32 = 1 << 31;

/// Attempts of a tile in rows; an entry each.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// Slot of the cell times pairs plus the pair.
    pub(super) which: Vec<u32>,
    /// The two particles.
    at: [Vec<u32>; 2],
    /// Relative velocity.
    g: [Vec<f32>; 3],
    /// `sigma g = rate (g^2)^power`, and the (sigma g)max that it is compared with.
    rate: Vec<f32>,
    power: Vec<f32>,
    sigma_g_max: Vec<f32>,
    pub(super) sigma_g: Vec<f32>,
    taken: Vec<u8>,
    /// By particle: whether a candidate before has it.
    marks: Vec<u8>,
    /// The candidates: attempts, with [`SHARED`].
    list: Vec<u32>,
    /// Relative velocity of each, then the change of it; the words of its direction; 1/alpha.
    change: [Vec<f32>; 3],
    words: [Vec<u32>; 2],
    soft: Vec<f32>,
}

impl Rows {
    /// Room for `n` attempts among `particles`.
    #[inline(always)]
    pub(super) fn reserve(&mut self, n: usize, particles: usize) {
        if self.which.len() < n + AHEAD {
            let capacity = n + n / 4 + AHEAD;
            let [a, b] = &mut self.at;
            for row in [&mut self.which, a, b, &mut self.list] {
                row.resize(capacity, 0);
            }
            let [x, y, z] = &mut self.g;
            for row in [x, y, z, &mut self.rate, &mut self.power, &mut self.sigma_g_max, &mut self.sigma_g] {
                row.resize(capacity, 0.0);
            }
            self.taken.resize(capacity, 0);
        }
        self.marks.clear();
        self.marks.resize(particles, 0);
    }

    /// Room for `n` candidates.
    #[inline(always)]
    fn reserve_chosen(&mut self, n: usize) {
        if self.soft.len() < n {
            let capacity = n + n / 4;
            let [x, y, z] = &mut self.change;
            for row in [x, y, z, &mut self.soft] {
                row.resize(capacity, 0.0);
            }
            for row in &mut self.words {
                row.resize(capacity, 0);
            }
        }
    }
}

/// The attempts in rows, where partners are any of the cell and no cell is divided.
#[inline(always)]
pub(super) fn in_rows(table: &Table, tile: &mut Tile, scratch: &mut Scratch, species: usize, step: u64, total: usize) {
    let pairs = table.pairs.len();
    gather(table, tile, scratch, species, step, total);
    cross_sections(&mut scratch.rows, &scratch.words.words[1], total);
    let chosen = candidates(&mut scratch.rows, total);
    // Shortcut if all pairs scatter the same way and none has internal modes.
    let way = table.pairs[0].soft == 1.0;
    let plain = table.pairs.iter().all(|p| !p.inelastic && (p.soft == 1.0) == way);
    if plain {
        scatter(table, scratch, chosen, way);
    }
    let Scratch { rows, words, sorted, .. } = scratch;
    let sorted = &mut Columns::of(sorted);
    let (mut collisions, mut exceeded) = (0, 0);
    for k in 0..chosen {
        let (t, shared) = ((rows.list[k] & !SHARED) as usize, rows.list[k] & SHARED != 0);
        let (i, j) = (rows.at[0][t] as usize, rows.at[1][t] as usize);
        let pair = &table.pairs[if pairs == 1 { 0 } else { rows.which[t] as usize % pairs }];
        let sigma_g_max = rows.sigma_g_max[t];
        if plain && !shared {
            collisions += 1;
            exceeded += u64::from(rows.sigma_g[t] > sigma_g_max);
            change(sorted, pair, [i, j], Vec3 { x: rows.change[0][k], y: rows.change[1][k], z: rows.change[2][k] });
            continue;
        }
        let g = difference(velocity(sorted, i), velocity(sorted, j));
        let g2 = square(g);
        let sigma_g = pair.rate * power(g2, pair.power);
        rows.sigma_g[t] = sigma_g;
        if uniform_f32(words.words[1][t]) * sigma_g_max < sigma_g {
            collisions += 1;
            exceeded += u64::from(sigma_g > sigma_g_max);
            let directions = [words.words[2][t], words.words[3][t]];
            hit(table, pair, sorted, [i, j], g, g2, directions, step, number_of(&words.items, t));
        }
    }
    tile.ledger.collisions += collisions;
    tile.ledger.exceeded += exceeded;
}

/// Pairs of particles and their relative velocities.
#[inline(always)]
fn gather(table: &Table, tile: &Tile, scratch: &mut Scratch, species: usize, step: u64, total: usize) {
    let pairs = table.pairs.len();
    let Scratch { rows, words, start, sorted, .. } = scratch;
    let n = start.last().copied().unwrap_or(0) as usize;
    let sorted = Columns::of(sorted);
    let (vx, vy, vz) = (&sorted.v[0][..n], &sorted.v[1][..n], &sorted.v[2][..n]);
    let (which, word) = (&rows.which[..total], &words.words[0][..total]);
    let [at_i, at_j] = &mut rows.at;
    let [gx, gy, gz] = &mut rows.g;
    let (at_i, at_j, gx, gy, gz) = (&mut at_i[..total], &mut at_j[..total], &mut gx[..total], &mut gy[..total], &mut gz[..total]);
    let (rate, exponent, sigma_g_max) = (&mut rows.rate[..total], &mut rows.power[..total], &mut rows.sigma_g_max[..total]);
    for t in 0..total {
        let at = which[t] as usize;
        let (slot, p) = if pairs == 1 { (at, 0) } else { (at / pairs, at % pairs) };
        let pair = &table.pairs[p];
        let (i, j) = partners(start, slot, species, pair, word[t], || further(table.seed, step, &words.items, t));
        assert!(i < n && j < n, "particles of the tile");
        (at_i[t], at_j[t]) = (i as u32, j as u32);
        (gx[t], gy[t], gz[t]) = (vx[i] - vx[j], vy[i] - vy[j], vz[i] - vz[j]);
        (rate[t], exponent[t], sigma_g_max[t]) = (pair.rate, pair.power, tile.majorants[at].sigma_g_max);
    }
}

/// Cross-sections with the velocities before the first collision, and the candidates accepted with them.
#[inline(always)]
fn cross_sections(rows: &mut Rows, word: &[u32], total: usize) {
    let (gx, gy, gz) = (&rows.g[0][..total], &rows.g[1][..total], &rows.g[2][..total]);
    let (rate, exponent, sigma_g_max, word) = (&rows.rate[..total], &rows.power[..total], &rows.sigma_g_max[..total], &word[..total]);
    let (sigma_g, taken) = (&mut rows.sigma_g[..total], &mut rows.taken[..total]);
    for t in 0..total {
        let s = rate[t] * power(square(Vec3 { x: gx[t], y: gy[t], z: gz[t] }), exponent[t]);
        sigma_g[t] = s;
        taken[t] = u8::from(uniform_f32(word[t]) * sigma_g_max[t] < s);
    }
}

/// Lists those that collide, and those that share a particle with an earlier one of the list. Returns how many.
#[inline(always)]
fn candidates(rows: &mut Rows, total: usize) -> usize {
    let (taken, list, marks) = (&rows.taken[..total], &mut rows.list[..=total], &mut rows.marks[..]);
    let (at_i, at_j) = (&rows.at[0][..total], &rows.at[1][..total]);
    let mut k = 0;
    for t in 0..total {
        let (i, j) = (at_i[t] as usize, at_j[t] as usize);
        let shared = marks[i] | marks[j];
        let go = taken[t] | shared;
        marks[i] |= go;
        marks[j] |= go;
        // No branch: one that does not go is written over.
        list[k] = t as u32 | u32::from(shared) << 31;
        k += usize::from(go);
    }
    k
}

/// The change of the relative velocity of each candidate, with the velocities before the first collision.
#[inline(always)]
fn scatter(table: &Table, scratch: &mut Scratch, chosen: usize, isotropic: bool) {
    let pairs = table.pairs.len();
    let Scratch { rows, words, .. } = scratch;
    rows.reserve_chosen(chosen);
    let [x, y, z] = &mut rows.change;
    let (x, y, z) = (&mut x[..chosen], &mut y[..chosen], &mut z[..chosen]);
    let [first, second] = &mut rows.words;
    let (first, second, soft) = (&mut first[..chosen], &mut second[..chosen], &mut rows.soft[..chosen]);
    for k in 0..chosen {
        let t = (rows.list[k] & !SHARED) as usize;
        (x[k], y[k], z[k]) = (rows.g[0][t], rows.g[1][t], rows.g[2][t]);
        (first[k], second[k]) = (words.words[2][t], words.words[3][t]);
        soft[k] = table.pairs[if pairs == 1 { 0 } else { rows.which[t] as usize % pairs }].soft;
    }
    if table.planar {
        for k in 0..chosen {
            let g = Vec3 { x: x[k], y: y[k], z: 0.0 };
            let (se, ce) = turn(uniform_f32(second[k]));
            let after = in_plane(square(g).sqrt(), ce, se);
            (x[k], y[k], z[k]) = (after.x - x[k], after.y - y[k], 0.0);
        }
    } else if isotropic {
        for k in 0..chosen {
            let g = Vec3 { x: x[k], y: y[k], z: z[k] };
            let (se, ce) = turn(uniform_f32(second[k]));
            let after = directed(square(g).sqrt(), 2.0 * open_f32(first[k]) - 1.0, ce, se);
            (x[k], y[k], z[k]) = (after.x - x[k], after.y - y[k], after.z - z[k]);
        }
    } else {
        for k in 0..chosen {
            let g = Vec3 { x: x[k], y: y[k], z: z[k] };
            let (se, ce) = turn(uniform_f32(second[k]));
            let after = deflected(g, square(g).sqrt(), 2.0 * power(open_f32(first[k]), soft[k]) - 1.0, ce, se);
            (x[k], y[k], z[k]) = (after.x - x[k], after.y - y[k], after.z - z[k]);
        }
    }
}
