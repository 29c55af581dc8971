//! Random and quasi-random numbers for the start: a stream per cell and species, so that a particle depends on where it is
//! put and on nothing else. A window's new columns are therefore those of a box that was there from the start.

use zellige_engine::rng::{Philox, open_f64};

use crate::deviates::{direction, fraction, logarithm, normal_pair};
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
        let purpose = purpose::start(species, purpose);
        Self::at(Philox::new(purpose, seed), column, Self::first(row))
    }

    /// From a number on that was left off at.
    pub fn at(philox: Philox, column: u64, number: u64) -> Self {
        Self { philox, column, index: number }
    }

    /// The number of the next draw.
    pub fn number(&self) -> u64 {
        self.index
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

    /// A momentum `gamma v/c` of the Maxwell-Juttner distribution of temperature `theta = T/(m c^2)`, isotropic.
    ///
    /// With `gamma = 1 + theta x^2` the density of `x` is `(1 + theta x^2) sqrt(1 + theta x^2/2) x^2 exp(-x^2)`; the root is at
    /// most `1 + x sqrt(theta/2)`, which leaves four gamma variates to choose from and 70 % or more to be kept at any
    /// temperature (Canfield, Howard and Liang, Astrophys. J. 323 (1987) 565).
    pub fn maxwell_juttner(&mut self, theta: f64) -> [f64; 3] {
        if theta <= 0.0 {
            return [0.0; 3];
        }
        loop {
            let words = std::array::from_fn(|_| self.next());
            let found = relativistic_candidate(&words, theta);
            if found.kept {
                return found.u;
            }
        }
    }

    /// A momentum drawn at rest, seen from where its frame moves with momentum `drift`: the volume transform by flipping
    /// (Zenitani, Phys. Plasmas 22, 042116 (2015)), then the boost.
    pub fn boosted(&mut self, u: [f64; 3], drift: [f64; 3]) -> [f64; 3] {
        let p2: f64 = drift.iter().map(|d| d * d).sum();
        if p2 == 0.0 {
            return u;
        }
        let (p, frame) = (p2.sqrt(), (1.0 + p2).sqrt());
        let axis = drift.map(|d| d / p);
        let gamma = (1.0 + u.iter().map(|c| c * c).sum::<f64>()).sqrt();
        let mut along: f64 = (0..3).map(|c| axis[c] * u[c]).sum();
        let across = [0, 1, 2].map(|c| u[c] - along * axis[c]);
        let [flip, _] = self.open();
        if -(p / frame) * along / gamma > flip {
            along = -along;
        }
        let seen = frame * along + p * gamma;
        [0, 1, 2].map(|c| across[c] + seen * axis[c])
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

/// Draws that a try at a momentum of [`Stream::maxwell_juttner`] takes.
pub(crate) const DRAWS_OF_A_TRY: usize = 2;

/// A try at a momentum of [`Stream::maxwell_juttner`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    /// The momentum; not kept as often as it has to be.
    pub(crate) u: [f64; 3],
    /// True if it is kept.
    pub(crate) kept: bool,
}

/// A try from the next draws of a stream, 32 bits a number. Without branches: registers of cells go through it together.
#[inline(always)]
pub(crate) fn relativistic_candidate(words: &[[u32; 4]; DRAWS_OF_A_TRY], theta: f64) -> Candidate {
    let [[pick, keep, a, b], [c, angle, cos, phi]] = words;
    let root = (0.5 * theta).sqrt();
    // Integrals of x^n exp(-x^2) over 0..inf for n of 2 to 5, times the coefficient of x^n: of these one is picked.
    let sqrt_pi = 1.772_453_850_905_516;
    let parts = [0.25 * sqrt_pi, 0.5 * root, 0.375 * sqrt_pi * theta, theta * root];
    let first = fraction(*pick) * (parts[0] + parts[1] + parts[2] + parts[3]) - parts[0];
    let second = first - parts[1];
    let third = second - parts[2];
    // x^2 has a gamma variate of shape (n + 1)/2: half integers have a normal number in it, of which whole ones need the word.
    let even = first < 0.0 || (second >= 0.0 && third < 0.0);
    let normal = normal_pair(fraction(*c), fraction(*angle)).x;
    let b = if first < 0.0 { 1.0 } else { fraction(*b) };
    let c = if third < 0.0 { 1.0 } else { fraction(*c) };
    let whole = -logarithm(fraction(*a) * b * c);
    let square = if even { 0.5 * (normal * normal) + whole } else { whole };
    let t = theta * square;
    let kept = fraction(*keep) * (1.0 + (0.5 * t).sqrt()) < (1.0 + 0.5 * t).sqrt();
    // u^2 = gamma^2 - 1 without cancellation.
    let u = (t * (2.0 + t)).sqrt();
    // A direction, uniform on the sphere.
    let (cos, phi) = (2.0 * fraction(*cos) - 1.0, direction(fraction(*phi)));
    let sin = (1.0 - cos * cos).max(0.0).sqrt();
    Candidate { u: [u * (sin * phi.x), u * (sin * phi.y), u * cos], kept }
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

    /// The mean energy of a Maxwell-Juttner gas, `<gamma> = 3 theta + K1(1/theta)/K2(1/theta)`. Known: theta = 0.01, 1 and 10 from
    /// tables of Bessel functions (Abramowitz and Stegun 9.8).
    #[test]
    fn the_relativistic_gas_has_its_mean_energy_and_pressure() {
        // K1(1) = 0.6019072302, K2(1) = 1.6248388986; K1(0.1) = 9.8538447809, K2(0.1) = 199.5039646; K1/K2(100) = 0.98511...
        let ratio = |x: f64| {
            // K1/K2 by the integral of cosh and cosh 2t: an independent quadrature.
            let f = |n: f64| {
                (0..200_000)
                    .map(|i| {
                        let t = (f64::from(i) + 0.5) * 1e-4;
                        (-x * (t.cosh() - 1.0)).exp() * (n * t).cosh()
                    })
                    .sum::<f64>()
            };
            f(1.0) / f(2.0)
        };
        assert!((ratio(1.0) - 0.6019072302 / 1.6248388986).abs() < 1e-8);
        let n = 100_000;
        for theta in [0.01, 1.0, 10.0] {
            let mut stream = Stream::new(7, 0, Purpose::Momentum, 3, 5);
            let (mut gamma, mut square, mut pressure) = (0.0, 0.0, 0.0);
            for _ in 0..n {
                let u = stream.maxwell_juttner(theta);
                let g = (1.0 + u.iter().map(|c| c * c).sum::<f64>()).sqrt();
                gamma += g / f64::from(n);
                square += g * g / f64::from(n);
                // The pressure is n T exactly: <u_x v_x> = theta.
                pressure += u[0] * u[0] / g / f64::from(n);
            }
            let expected = 3.0 * theta + ratio(1.0 / theta);
            let sigma = ((square - gamma * gamma) / f64::from(n)).sqrt();
            assert!((gamma - expected).abs() < 4.0 * sigma, "theta {theta}: {gamma}, expected {expected} +- {sigma}");
            assert!((pressure / theta - 1.0).abs() < 4.0 * 3.0 / f64::from(n).sqrt(), "theta {theta}: {pressure}");
        }
    }

    /// Lengths have the distribution of Juttner, by a quadrature of `u^2 exp(-gamma/theta)`, and directions are uniform on the
    /// sphere: the largest differences of the shares are below those of one in a thousand samples (Kolmogorov and Smirnov).
    #[test]
    fn the_relativistic_gas_has_its_distribution() {
        let n = 200_000;
        let largest = |mut found: Vec<f64>, share: &dyn Fn(f64) -> f64| {
            found.sort_by(f64::total_cmp);
            let off = |(k, x): (usize, &f64)| (share(*x) - (k as f64 + 0.5) / f64::from(n)).abs();
            found.iter().enumerate().map(off).fold(0.0, f64::max) * f64::from(n).sqrt()
        };
        for (number, theta) in [1e-3, 0.03, 0.3, 1.0, 30.0].into_iter().enumerate() {
            let mut stream = Stream::new(11, number, Purpose::Momentum, 9, 2);
            let u: Vec<[f64; 3]> = (0..n).map(|_| stream.maxwell_juttner(theta)).collect();
            let length = |u: &[f64; 3]| u.iter().map(|c| c * c).sum::<f64>().sqrt();
            // Up to where exp(-gamma/theta) is e^-40 of its largest, by the rule of midpoints.
            let gamma = 1.0 + 40.0 * theta;
            let (cells, end) = (100_000, (gamma * gamma - 1.0).sqrt());
            let density = |k: usize| {
                let u = (k as f64 + 0.5) * end / cells as f64;
                u * u * (-(u * u / (1.0 + (1.0 + u * u).sqrt())) / theta).exp()
            };
            let mut below = vec![0.0];
            (0..cells).for_each(|k| below.push(below[k] + density(k)));
            let share = |u: f64| {
                let at = (u / end * cells as f64).min(cells as f64 - 1.0);
                let (k, part) = (at as usize, at.fract());
                (below[k] + part * (below[k + 1] - below[k])) / below[cells]
            };
            assert!(largest(u.iter().map(length).collect(), &share) < 1.95, "lengths at {theta}");
            for c in 0..3 {
                let cosines = u.iter().map(|u| u[c] / length(u)).collect();
                assert!(largest(cosines, &|cos| 0.5 * (1.0 + cos)) < 1.95, "component {c} at {theta}");
            }
            let turns = u.iter().map(|u| u[1].atan2(u[0]) / std::f64::consts::TAU + 0.5).collect();
            assert!(largest(turns, &|turn| turn) < 1.95, "angle at {theta}");
            // Neither a length and its direction nor momenta that follow each other have to do with each other.
            let mean = u.iter().map(length).sum::<f64>() / f64::from(n);
            let spread = u.iter().map(|u| (length(u) - mean).powi(2)).sum::<f64>() / f64::from(n);
            let along = |u: &[f64; 3]| u[2] / length(u) * 3.0_f64.sqrt();
            let with_cosine = u.iter().map(|u| (length(u) - mean) * along(u)).sum::<f64>();
            let with_next = u.windows(2).map(|w| (length(&w[0]) - mean) * (length(&w[1]) - mean)).sum::<f64>();
            for product in [with_cosine / spread.sqrt(), with_next / spread] {
                assert!(product.abs() < 4.0 * f64::from(n).sqrt(), "{product} at {theta}");
            }
        }
    }

    /// A boosted gas has the drift of its frame: `<v> = beta`.
    #[test]
    fn the_boosted_gas_moves_with_its_frame() {
        let n = 100_000;
        let drift = [0.6, 0.0, -0.8];
        let mut stream = Stream::new(7, 1, Purpose::Momentum, 0, 0);
        let mut v = [0.0; 3];
        for _ in 0..n {
            let rest = stream.maxwell_juttner(0.5);
            let u = stream.boosted(rest, drift);
            let g = (1.0 + u.iter().map(|c| c * c).sum::<f64>()).sqrt();
            for c in 0..3 {
                v[c] += u[c] / g / f64::from(n);
            }
        }
        // Velocities are below 1, so their means stray by less than 1/sqrt(n).
        for c in 0..3 {
            assert!((v[c] - drift[c] / 2.0_f64.sqrt()).abs() < 4.0 / f64::from(n).sqrt(), "{v:?}");
        }
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
