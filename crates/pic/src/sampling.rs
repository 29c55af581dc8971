//! Random and quasi-random numbers for the start: a stream per cell and species, so that a particle depends on where it is
//! put and on nothing else. A window's new columns are therefore those of a box that was there from the start.

use zellige_engine::rng::{Philox, open_f64};

use crate::deviates::{fraction, normal_pair};
use crate::physics::{self, Vec3};

/// Species that have random numbers of their own.
pub const MOST_SPECIES: usize = 0x1000;

/// Purposes of random numbers, disjoint for up to [`MOST_SPECIES`] species.
pub(crate) mod purpose {
    use super::Purpose;

    /// Of the start: four for each species.
    pub(crate) fn start(species: usize, what: Purpose) -> u32 {
        0x5000 + 4 * species as u32 + what as u32
    }

    /// Momenta that thermal walls give back.
    pub(crate) fn walls(species: usize) -> u32 {
        0x9000 + species as u32
    }

    /// The last bits of weights (integers.rs).
    pub(crate) fn charge(species: usize) -> u32 {
        0xA000 + species as u32
    }
}

/// Purpose of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Places inside cells.
    Position,
    /// Momenta.
    Momentum,
    /// Number of particles in a cell.
    Count,
}

/// Numbers one after the other for one cell of one species.
#[derive(Debug, Clone)]
pub struct Stream {
    philox: Philox,
    column: u64,
    index: u64,
}

impl Stream {
    /// For the cell in column `column`, counted from the start of the run, and row `row`.
    pub fn new(seed: u64, species: usize, purpose: Purpose, column: u64, row: usize) -> Self {
        Self { philox: Philox::new(purpose::start(species, purpose), seed), column, index: Self::first(row) }
    }

    /// The number of the first draw of a row: it has 2^40 before it meets the next one.
    pub fn first(row: usize) -> u64 {
        (row as u64) << 40
    }

    fn next(&mut self) -> [u32; 4] {
        let words = self.philox.draw(self.column, self.index);
        self.index += 1;
        words
    }

    /// Two uniform numbers in `(0, 1)`.
    pub fn open(&mut self) -> [f64; 2] {
        let [a, b, c, d] = self.next();
        [open_f64(a, b), open_f64(c, d)]
    }
}

/// Random offsets from the centre of a cell of its particle `k`, by the cell's column and the first number of its row. Particles
/// `2m` and `2m + 1` share draw `m`.
#[inline(always)]
pub(crate) fn random_offsets(philox: Philox, column: u64, first: u64, k: u32) -> [f64; 2] {
    let [a, b, c, d] = philox.draw(column, first + u64::from(k / 2));
    let odd = k & 1 == 1;
    [fraction(if odd { c } else { a }) - 0.5, fraction(if odd { d } else { b }) - 0.5]
}

/// Three normal numbers for particle `k` of a cell, none longer than 6.8. Particles `2m` and `2m + 1` share draws `2m`, which has
/// two numbers for each, and `2m + 1`, of which each takes one.
#[inline(always)]
pub(crate) fn normal_vector(philox: Philox, column: u64, first: u64, k: u32) -> [f64; 3] {
    let [a, b, c, d] = philox.draw(column, first + u64::from(k & !1));
    let odd = k & 1 == 1;
    let across = normal_pair(fraction(if odd { c } else { a }), fraction(if odd { d } else { b }));
    let [a, b, _, _] = philox.draw(column, first + u64::from(k | 1));
    let along = normal_pair(fraction(a), fraction(b));
    [across.x, across.y, if odd { along.y } else { along.x }]
}

/// The radical inverse of `k` in `base`: van der Corput's sequence, in `[0, 1)`.
pub fn radical_inverse(base: u64, mut k: u64) -> f64 {
    let (mut value, mut digit) = (0.0, 1.0 / base as f64);
    while k > 0 {
        value += (k % base) as f64 * digit;
        k /= base;
        digit /= base as f64;
    }
    value
}

/// The normal number below which the share `p` lies, `0 < p < 1`, to 1.2e-9 (P. J. Acklam's rational approximation).
pub fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 6] =
        [-3.969683028665376e1, 2.209460984245205e2, -2.759285104469687e2, 1.38357751867269e2, -3.066479806614716e1, 2.506628277459239];
    const B: [f64; 6] = [-5.447609879822406e1, 1.615858368580409e2, -1.556989798598866e2, 6.680131188771972e1, -1.328068155288572e1, 1.0];
    const C: [f64; 6] =
        [-7.784894002430293e-3, -3.223964580411365e-1, -2.400758277161838, -2.549732539343734, 4.374664141464968, 2.938163982698783];
    const D: [f64; 5] = [7.784695709041462e-3, 3.224671290700398e-1, 2.445134137142996, 3.754408661907416, 1.0];
    let horner = |c: &[f64], x: f64| c.iter().fold(0.0, |sum, c| sum * x + c);
    let tail = |q: f64| horner(&C, q) / horner(&D, q);
    match p {
        p if p < 0.02425 => tail((-2.0 * p.ln()).sqrt()),
        p if p > 1.0 - 0.02425 => -tail((-2.0 * (1.0 - p).ln()).sqrt()),
        p => {
            let q = p - 0.5;
            q * horner(&A, q * q) / horner(&B, q * q)
        }
    }
}

/// The momentum half a step earlier: the start of a leap-frog of second order. `e` and `b` are scaled as in
/// [`crate::physics`], by `q dt / (2 m)`.
pub fn half_step_back(u: [f64; 3], e: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    let vector = |v: [f64; 3], k: f64| Vec3 { x: k * v[0], y: k * v[1], z: k * v[2] };
    let back = physics::boris(vector(u, 1.0), vector(e, -0.5), vector(b, -0.5));
    [back.x, back.y, back.z]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purposes_of_all_species_are_disjoint() {
        let whats = [Purpose::Position, Purpose::Momentum, Purpose::Count];
        let of = |s: usize| whats.map(|w| purpose::start(s, w)).into_iter().chain([purpose::walls(s), purpose::charge(s)]);
        let all: Vec<u32> = (0..MOST_SPECIES).flat_map(of).collect();
        let different: std::collections::BTreeSet<u32> = all.iter().copied().collect();
        assert_eq!(different.len(), all.len());
        assert!(all.iter().all(|p| *p <= zellige_engine::rng::PURPOSE_LIMIT));
    }

    #[test]
    fn quantiles_and_sequences_have_known_values() {
        for (p, x) in [(0.5, 0.0), (0.975, 1.959963984540054), (0.001, -3.090232306167814), (0.841344746068543, 1.0)] {
            assert!((normal_quantile(p) - x).abs() < 5e-9, "{p}: {}", normal_quantile(p));
        }
        assert_eq!([1, 2, 3, 4].map(|k| radical_inverse(2, k)), [0.5, 0.25, 0.75, 0.125]);
        assert!((radical_inverse(3, 5) - (2.0 / 3.0 + 1.0 / 9.0)).abs() < 1e-15);
    }

    #[test]
    fn the_half_step_back_is_undone_by_half_a_step() {
        let (u, e, b) = ([0.3, -1.0, 2.0], [0.01, 0.02, -0.03], [0.2, -0.1, 0.05]);
        let back = half_step_back(u, e, b);
        let vector = |v: [f64; 3], k: f64| Vec3 { x: k * v[0], y: k * v[1], z: k * v[2] };
        let again = physics::boris(vector(back, 1.0), vector(e, 0.5), vector(b, 0.5));
        assert!((again.x - u[0]).abs() + (again.y - u[1]).abs() + (again.z - u[2]).abs() < 1e-14);
    }
}
