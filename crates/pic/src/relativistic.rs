//! Momenta of a relativistic gas from random words, by operations that every device rounds alike ([`crate::deviates`]).

use zellige_device_macro::{device, device_source};
use zellige_engine::rng::Philox;

use crate::deviates::{fraction, logarithm, normal_pair};

/// A try at a momentum `gamma v/c`.
#[device]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// The momentum; not kept as often as it has to be.
    pub x: f64,
    /// Its second component.
    pub y: f64,
    /// Its third component.
    pub z: f64,
    /// Number that was drawn for it: the try is kept if it is below the limit. Over the limit it is then uniform in (0, 1),
    /// whatever the momentum.
    pub drawn: f64,
    /// The limit.
    pub limit: f64,
}

/// A try at a momentum of the Maxwell-Juttner distribution of temperature `theta = T/(m c^2)`, isotropic, from eight words.
///
/// With `gamma = 1 + theta x^2` the density of `x` is `(1 + theta x^2) sqrt(1 + theta x^2/2) x^2 exp(-x^2)`; a bound of the root
/// leaves gamma variates of `x^2` to choose from (Canfield, Howard and Liang, Astrophys. J. 323 (1987) 565). Here the bound is the
/// tangent at `theta x^2/2 = 1.2 theta`, so that 95 % or more are kept at any temperature, and only even powers of `x` occur. The
/// first has the length of three normal numbers, which are the direction. Without branches: registers of particles go through it
/// together. What is kept lies below the root: how far, in shares of it, is a number that nothing else depends on.
#[device]
#[inline(always)]
pub fn relativistic_candidate(pick: u32, keep: u32, a: u32, b: u32, c: u32, angle: u32, d: u32, turn: u32, theta: f64) -> Candidate {
    // The tangent, times sqrt(1 + 1.2 theta), is constant + theta x^2/4.
    let constant = 1.0 + 0.6 * theta;
    // Integrals of x^n exp(-x^2) over 0..inf for n of 2, 4 and 6 over that for 2, times the coefficient of x^n: of these one is picked.
    let fourth_power = 1.5 * theta * (constant + 0.25);
    let sixth_power = 0.9375 * (theta * theta);
    let first = fraction(pick) * (constant + fourth_power + sixth_power) - constant;
    let second = first - fourth_power;
    // x^2 has a gamma variate of shape (n + 1)/2: half the square of the normal numbers, and none, one or two exponential numbers.
    let pair = normal_pair(fraction(c), fraction(angle));
    let other = normal_pair(fraction(d), fraction(turn));
    let length = pair.x * pair.x + pair.y * pair.y + other.x * other.x;
    let a_taken = if first < 0.0 { 1.0 } else { fraction(a) };
    let b_taken = if second < 0.0 { 1.0 } else { fraction(b) };
    let t = theta * (0.5 * length - logarithm(a_taken * b_taken));
    // u^2 = gamma^2 - 1 without cancellation.
    let scale = (t * (2.0 + t) / length).sqrt();
    let drawn = fraction(keep) * (constant + 0.25 * t);
    let limit = ((1.0 + 1.2 * theta) * (1.0 + 0.5 * t)).sqrt();
    Candidate { x: scale * pair.x, y: scale * pair.y, z: scale * other.x, drawn, limit }
}

/// A frame that moves: the direction of its momentum, the momentum, and its Lorentz factor.
#[device]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame {
    /// The direction; 0 at rest.
    pub x: f64,
    /// Its second component.
    pub y: f64,
    /// Its third component.
    pub z: f64,
    /// Momentum `gamma v/c`.
    pub momentum: f64,
    /// Lorentz factor.
    pub gamma: f64,
}

/// The frame of momentum `(x, y, z)`.
#[device]
#[inline(always)]
pub fn frame_of(x: f64, y: f64, z: f64) -> Frame {
    let square = x * x + y * y + z * z;
    let momentum = square.sqrt();
    let length = if momentum > 0.0 { momentum } else { 1.0 };
    Frame { x: x / length, y: y / length, z: z / length, momentum, gamma: (1.0 + square).sqrt() }
}

/// A momentum drawn in `frame`, seen from where it moves: the volume transform by flipping (Zenitani, Phys. Plasmas 22, 042116
/// (2015)), then the boost.
#[device]
#[inline(always)]
pub fn boosted(u: Candidate, frame: Frame) -> Candidate {
    let gamma = (1.0 + (u.x * u.x + u.y * u.y + u.z * u.z)).sqrt();
    let along = frame.x * u.x + frame.y * u.y + frame.z * u.z;
    let flipped = if -(frame.momentum / frame.gamma) * along * u.limit > u.drawn * gamma { -along } else { along };
    let seen = frame.gamma * flipped + frame.momentum * gamma;
    let more = seen - along;
    Candidate { x: u.x + more * frame.x, y: u.y + more * frame.y, z: u.z + more * frame.z, drawn: u.drawn, limit: u.limit }
}

/// Numbers of a cell's stream that a particle may take: two for each of its tries, of which there are never so many.
#[device]
pub const NUMBERS_OF_A_PARTICLE: u64 = 1024;

/// The formulae above as CUDA C++, to be compiled without fused operations.
pub const RELATIVISTIC_GAS: &[&str] = &device_source![Candidate, relativistic_candidate, Frame, frame_of, boosted, NUMBERS_OF_A_PARTICLE];

/// Momentum of particle `k` of a cell, by the cell's column and the first number of its row, drawn by itself: what registers of
/// particles have to give.
pub fn relativistic_momentum(philox: Philox, column: u64, first: u64, k: u32, theta: f64, frame: Frame) -> [f64; 3] {
    let mut number = first + u64::from(k) * NUMBERS_OF_A_PARTICLE;
    loop {
        let [[pick, keep, a, b], [c, angle, d, turn]] = [philox.draw(column, number), philox.draw(column, number + 1)];
        let found = relativistic_candidate(pick, keep, a, b, c, angle, d, turn, theta);
        if found.drawn < found.limit {
            let Candidate { x, y, z, .. } = boosted(found, frame);
            return [x, y, z];
        }
        number += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::{Purpose, Stream, purpose};

    /// Momenta of `n` particles of a cell, of momentum `drift` on the mean.
    fn gas(species: usize, n: u32, theta: f64, [x, y, z]: [f64; 3]) -> Vec<[f64; 3]> {
        let philox = Philox::new(purpose::start(species, Purpose::Momentum), 7);
        (0..n).map(|k| relativistic_momentum(philox, 3, Stream::first(5), k, theta, frame_of(x, y, z))).collect()
    }

    fn gamma(u: &[f64; 3]) -> f64 {
        (1.0 + u.iter().map(|c| c * c).sum::<f64>()).sqrt()
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
            let (mut mean, mut square, mut pressure) = (0.0, 0.0, 0.0);
            for u in gas(0, n, theta, [0.0; 3]) {
                let g = gamma(&u);
                mean += g / f64::from(n);
                square += g * g / f64::from(n);
                // The pressure is n T exactly: <u_x v_x> = theta.
                pressure += u[0] * u[0] / g / f64::from(n);
            }
            let expected = 3.0 * theta + ratio(1.0 / theta);
            let sigma = ((square - mean * mean) / f64::from(n)).sqrt();
            assert!((mean - expected).abs() < 4.0 * sigma, "theta {theta}: {mean}, expected {expected} +- {sigma}");
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
            let u = gas(number, n, theta, [0.0; 3]);
            let length = |u: &[f64; 3]| u.iter().map(|c| c * c).sum::<f64>().sqrt();
            // Up to where exp(-gamma/theta) is e^-40 of its largest, by the rule of midpoints.
            let most = 1.0 + 40.0 * theta;
            let (cells, end) = (100_000, (most * most - 1.0).sqrt());
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
        let mut v = [0.0; 3];
        for u in gas(1, n, 0.5, drift) {
            for c in 0..3 {
                v[c] += u[c] / gamma(&u) / f64::from(n);
            }
        }
        // Velocities are below 1, so their means stray by less than 1/sqrt(n).
        for c in 0..3 {
            assert!((v[c] - drift[c] / 2.0_f64.sqrt()).abs() < 4.0 / f64::from(n).sqrt(), "{v:?}");
        }
    }

    /// Momenta along the drift have their distribution, by a quadrature of the exact marginal of `exp(-(Gamma gamma - U u)/theta)`
    /// with `Gamma` and `U` of the frame, `(gamma + theta/Gamma) exp(-(Gamma gamma - U u)/theta)` with `gamma = sqrt(1 + u^2)`: the
    /// largest difference of the shares is below that of one in a thousand samples (Kolmogorov and Smirnov).
    #[test]
    fn the_boosted_gas_has_its_distribution() {
        let (n, momentum) = (200_000, 1.5_f64);
        let boost = (1.0 + momentum * momentum).sqrt();
        for (number, theta) in [0.03_f64, 0.5, 3.0].into_iter().enumerate() {
            let mut along: Vec<f64> = gas(number, n, theta, [0.0, -momentum, 0.0]).iter().map(|u| -u[1]).collect();
            along.sort_by(f64::total_cmp);
            // From far below the gas that flies against the drift to where exp(-gamma'/theta) is e^-40 of its largest.
            let own = 1.0 + 40.0 * theta;
            let reach = (own * own - 1.0).sqrt();
            let (from, to) = (momentum * own - boost * reach, momentum * own + boost * reach);
            let cells = 200_000;
            let density = |k: usize| {
                let u = from + (k as f64 + 0.5) * (to - from) / cells as f64;
                let gamma = (1.0 + u * u).sqrt();
                (gamma + theta / boost) * (-(boost * gamma - momentum * u - 1.0) / theta).exp()
            };
            let mut below = vec![0.0];
            (0..cells).for_each(|k| below.push(below[k] + density(k)));
            let share = |u: f64| {
                let at = ((u - from) / (to - from) * cells as f64).clamp(0.0, cells as f64 - 1.0);
                let (k, part) = (at as usize, at.fract());
                (below[k] + part * (below[k + 1] - below[k])) / below[cells]
            };
            let off = |(k, u): (usize, &f64)| (share(*u) - (k as f64 + 0.5) / f64::from(n)).abs();
            let most = along.iter().enumerate().map(off).fold(0.0, f64::max) * f64::from(n).sqrt();
            assert!(most < 1.95, "{most} at {theta}");
        }
    }

    /// A gas without temperature has the momentum of its frame.
    #[test]
    fn a_cold_gas_moves_with_its_frame() {
        for u in gas(0, 1000, 0.0, [0.0; 3]) {
            assert_eq!(u, [0.0; 3]);
        }
        for u in gas(0, 1000, 0.0, [3.0, -0.5, 1e-3]) {
            let off = u.iter().zip([3.0, -0.5, 1e-3]).map(|(u, drift)| (u - drift).abs()).fold(0.0, f64::max);
            assert!(off < 1e-15, "{u:?}");
        }
    }
}
