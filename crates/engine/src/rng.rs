//! Random numbers without a state: Philox4x32-10, a function of (purpose, seed, step, index).
//!
//! Salmon, Moraes, Dror and Shaw, *Parallel random numbers: as easy as 1, 2, 3*, SC11 (2011). A draw is ten rounds on a
//! counter of 128 bits under a key of 64, so a number depends only on what it is for, never on the order in which
//! threads ask: nothing to checkpoint, and the same numbers on every device.
//!
//! Counter words: index (low, high), step (low, purpose). Key words: seed (low, high). The step has 48 bits and the
//! purpose 16, packed into the upper two words, so distinct (purpose, seed, step, index) never share a block.
//!
//! ```
//! use zellige_engine::rng::{Philox, uniform_f64};
//! let thermal = Philox::new(1, 2024);
//! let [a, b, c, d] = thermal.draw(10, 77);
//! assert_eq!([a, b, c, d], thermal.draw(10, 77));
//! assert!((0.0..1.0).contains(&uniform_f64(a, b)));
//! ```

use std::f64::consts::TAU;

/// Multipliers of the two halves of the counter.
const M: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// Weyl increments of the key: the golden ratio and the square root of 3, minus 1.
const W: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
/// Rounds; 7 already pass the known tests, 10 leave a margin.
const ROUNDS: usize = 10;
/// Largest step that has its own numbers.
pub const STEP_LIMIT: u64 = (1 << 48) - 1;
/// Largest purpose.
pub const PURPOSE_LIMIT: u32 = (1 << 16) - 1;

/// Ten rounds of Philox4x32 on a counter under a key: the function that the known answers are given for.
#[inline(always)]
pub const fn philox(counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    // Words of 64 bits whose upper halves are anything: registers multiply the lower ones, and nothing has to be taken apart.
    let [mut a, mut b, mut c, mut d] = [counter[0] as u64, counter[1] as u64, counter[2] as u64, counter[3] as u64];
    let mut round = 0;
    while round < ROUNDS {
        let (left, right) = (M[0] as u64 * (a & 0xFFFF_FFFF), M[1] as u64 * (c & 0xFFFF_FFFF));
        (a, b, c, d) = ((right >> 32) ^ b ^ key[0] as u64, right, (left >> 32) ^ d ^ key[1] as u64, left);
        key = [key[0].wrapping_add(W[0]), key[1].wrapping_add(W[1])];
        round += 1;
    }
    [a as u32, b as u32, c as u32, d as u32]
}

/// The random numbers of one purpose under one seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Philox {
    purpose: u32,
    key: [u32; 2],
}

impl Philox {
    /// Numbers for `purpose`, an id that each consumer in a solver has for itself, under the run's `seed`.
    ///
    /// # Panics
    /// Where `purpose` exceeds [`PURPOSE_LIMIT`]: purposes are constants of the program, not input.
    pub const fn new(purpose: u32, seed: u64) -> Self {
        assert!(purpose <= PURPOSE_LIMIT, "a purpose has 16 bits");
        Self { purpose, key: [seed as u32, (seed >> 32) as u32] }
    }

    /// Four independent words for item `index` (a cell, a particle, a draw of it) in step `step`, of which the low 48
    /// bits count.
    #[inline(always)]
    pub const fn draw(&self, step: u64, index: u64) -> [u32; 4] {
        let high = ((step >> 32) as u32 & 0xFFFF) | (self.purpose << 16);
        philox([index as u32, (index >> 32) as u32, step as u32, high], self.key)
    }

    /// Two uniform numbers in [0, 1).
    #[inline]
    pub fn uniforms(&self, step: u64, index: u64) -> [f64; 2] {
        let [a, b, c, d] = self.draw(step, index);
        [uniform_f64(a, b), uniform_f64(c, d)]
    }

    /// Two independent normal numbers of mean 0 and variance 1.
    #[inline]
    pub fn normals(&self, step: u64, index: u64) -> [f64; 2] {
        let [a, b, c, d] = self.draw(step, index);
        normal_pair(open_f64(a, b), uniform_f64(c, d))
    }
}

/// Uniform in [0, 1), multiples of 2^-24.
#[inline]
pub const fn uniform_f32(word: u32) -> f32 {
    (word >> 8) as f32 * (1.0 / 16_777_216.0)
}

/// Uniform in (0, 1), odd multiples of 2^-24: never 0 and never 1, so that it may go into a logarithm.
#[inline]
pub const fn open_f32(word: u32) -> f32 {
    ((word >> 9) as f32 + 0.5) * (1.0 / 8_388_608.0)
}

/// Uniform in [0, 1), multiples of 2^-53.
#[inline(always)]
pub const fn uniform_f64(high: u32, low: u32) -> f64 {
    ((((high as u64) << 32) | low as u64) >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
}

/// Uniform in (0, 1), odd multiples of 2^-53: never 0 and never 1.
#[inline(always)]
pub const fn open_f64(high: u32, low: u32) -> f64 {
    (((((high as u64) << 32) | low as u64) >> 12) as f64 + 0.5) * (1.0 / 4_503_599_627_370_496.0)
}

/// Two independent normal numbers (Box and Muller, Ann. Math. Stat. 29 (1958) 610) from `radius` in (0, 1) and `angle`
/// in [0, 1).
#[inline]
pub fn normal_pair(radius: f64, angle: f64) -> [f64; 2] {
    let r = (-2.0 * radius.ln()).sqrt();
    let (sin, cos) = (TAU * angle).sin_cos();
    [r * cos, r * sin]
}

/// An exponential number of mean 1 from `u` in (0, 1).
#[inline]
pub fn exponential(u: f64) -> f64 {
    -u.ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_answers() {
        // From the file kat_vectors of the Random123 distribution, philox4x32 10 rounds.
        let ones = u32::MAX;
        let pi = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        for (counter, key, answer) in [
            ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([ones; 4], [ones; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (pi, [0xa409_3822, 0x299f_31d0], [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]),
        ] {
            assert_eq!(philox(counter, key), answer);
        }
    }

    #[test]
    fn the_ends_of_the_intervals() {
        assert_eq!((uniform_f32(0), uniform_f64(0, 0)), (0.0, 0.0));
        let all = u32::MAX;
        assert_eq!(uniform_f32(all), 1.0 - f32::EPSILON / 2.0);
        assert_eq!(uniform_f64(all, all), 1.0 - f64::EPSILON / 2.0);
        assert_eq!((open_f32(0), open_f64(0, 0)), (0.5_f32.powi(24), 0.5_f64.powi(53)));
        assert_eq!((open_f32(all), open_f64(all, all)), (1.0 - f32::EPSILON / 2.0, 1.0 - f64::EPSILON / 2.0));
    }

    /// Draws of the statistical tests: 2 * 10^5 pairs under the seed 20261121.
    const N: u64 = 200_000;

    fn stream(purpose: u32) -> impl Iterator<Item = [f64; 2]> {
        let philox = Philox::new(purpose, 20_261_121);
        (0..N).map(move |i| philox.uniforms(3, i))
    }

    /// Fails beyond 4 standard deviations: 6e-5 for a fresh seed, and this seed is fixed.
    fn within_4_sigma(what: &str, found: f64, expected: f64, sigma: f64) {
        assert!((found - expected).abs() < 4.0 * sigma, "{what}: {found}, expected {expected} +- {sigma}");
    }

    #[test]
    fn uniforms_have_the_right_moments_and_no_correlation() {
        let n = N as f64;
        let (mut mean, mut square, mut cross, mut serial, mut last) = (0.0, 0.0, 0.0, 0.0, 0.5);
        for [a, b] in stream(1) {
            mean += a;
            square += a * a;
            cross += (a - 0.5) * (b - 0.5);
            serial += (a - 0.5) * (last - 0.5);
            last = a;
        }
        within_4_sigma("mean", mean / n, 0.5, (1.0 / 12.0 / n).sqrt());
        within_4_sigma("mean square", square / n, 1.0 / 3.0, (4.0 / 45.0 / n).sqrt());
        within_4_sigma("correlation in a block", cross / n, 0.0, 1.0 / 12.0 / n.sqrt());
        within_4_sigma("correlation of neighbours", serial / n, 0.0, 1.0 / 12.0 / n.sqrt());
    }

    #[test]
    fn uniforms_fill_equal_bins_equally() {
        const BINS: usize = 256;
        let mut count = [0_u32; BINS];
        for [a, b] in stream(2) {
            count[(a * BINS as f64) as usize] += 1;
            count[(b * BINS as f64) as usize] += 1;
        }
        let expected = 2.0 * N as f64 / BINS as f64;
        let chi2: f64 = count.iter().map(|c| (f64::from(*c) - expected).powi(2) / expected).sum();
        // Chi squared has mean BINS - 1 and variance 2 (BINS - 1).
        within_4_sigma("chi squared", chi2, 255.0, (2.0 * 255.0_f64).sqrt());
    }

    #[test]
    fn every_bit_is_fair() {
        let philox = Philox::new(3, 20_261_121);
        let mut ones = [0_u32; 128];
        for i in 0..N {
            for (w, word) in philox.draw(0, i).into_iter().enumerate() {
                for bit in 0..32 {
                    ones[32 * w + bit] += word >> bit & 1;
                }
            }
        }
        // The largest of 128 deviations exceeds 4.5 sigma with probability 9e-4.
        for (bit, count) in ones.into_iter().enumerate() {
            let sigma = (0.25 * N as f64).sqrt();
            assert!((f64::from(count) - 0.5 * N as f64).abs() < 4.5 * sigma, "bit {bit}: {count}");
        }
    }

    #[test]
    fn normals_and_exponentials_have_the_right_moments() {
        let philox = Philox::new(4, 20_261_121);
        let n = N as f64;
        let mut m = [0.0; 5];
        for i in 0..N {
            let [a, b] = philox.normals(0, i);
            let [u, _, v, _] = philox.draw(1, i);
            let e = exponential(open_f64(u, v));
            for (sum, term) in m.iter_mut().zip([a, a * a, a.powi(4), a * b, e]) {
                *sum += term / n;
            }
        }
        // Variances of a, a^2, a^4, a b and e are 1, 2, 105 - 9, 1 and 1.
        let cases = [("mean", 0.0, 1.0), ("variance", 1.0, 2.0), ("kurtosis", 3.0, 96.0), ("a b", 0.0, 1.0), ("exponential", 1.0, 1.0)];
        for ((what, expected, variance), found) in cases.into_iter().zip(m) {
            within_4_sigma(what, found, expected, (variance / n).sqrt());
        }
    }

    proptest! {
        #[test]
        fn purpose_seed_step_and_index_all_count(seed: u64, step in 0..STEP_LIMIT, index: u64, purpose in 0..PURPOSE_LIMIT) {
            let here = Philox::new(purpose, seed).draw(step, index);
            for other in [
                Philox::new(purpose + 1, seed).draw(step, index),
                Philox::new(purpose, seed ^ 1).draw(step, index),
                Philox::new(purpose, seed ^ (1 << 63)).draw(step, index),
                Philox::new(purpose, seed).draw(step + 1, index),
                Philox::new(purpose, seed).draw(step ^ (1 << 40), index),
                Philox::new(purpose, seed).draw(step, index ^ (1 << 50)),
            ] {
                // Two blocks of 128 random bits agree in one word with probability 1e-9.
                prop_assert!(here != other);
            }
        }
    }
}
