//! The unit in which a GPU counts the charge of a macro-particle: an even whole number `K w` for the weight `w`.
//!
//! `K` is as large as the sums allow, 2^20 in single precision and 2^40 in double, so that heavy particles are exact to the last
//! bits. The charge of a light one is a few units or less than one. It is rounded to one of the two nearest even numbers at random,
//! such that its mean is right: a group of light particles has the charge that it should have, to 2^-8 units each, and no single
//! one is off by more than two. The random number is in the last bits of the weight ([`dithered`]), where it stays as long as the
//! particle is there: a charge that changed from step to step would not be conserved.

use zellige_device_macro::{device, device_source};
use zellige_engine::real::{Real, select};

use crate::stages::Precision;

/// Last bits of a weight that hold a random number.
const DITHER: u32 = 0xFF;
/// `K w` below which a particle is light. A heavy one is right to the inverse of this.
const LIGHT: f64 = 4096.0;

/// Charge unit `K` of a particle.
#[device]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnitOf<R> {
    /// K w, an even whole number; 0 for a particle without charge.
    pub k: R,
    /// 4 / K w; any number where `k` is 0, since it is only multiplied by 0.
    pub four: R,
    /// 2 / K w, likewise.
    pub two: R,
}

/// The unit of a particle for which `K w` is known.
#[device]
#[inline(always)]
pub fn unit_known<R: Real>(k: R) -> UnitOf<R> {
    let divisor = R::max(k, R::TWO);
    UnitOf::<R> { k, four: R::from_f64(4.0) / divisor, two: R::TWO / divisor }
}

/// The unit of a particle of `weight`, whose last bits are `dither`, 0 to 255.
#[device]
#[inline(always)]
pub fn unit_weighted<R: Real>(k: R, weight: R, dither: R) -> UnitOf<R> {
    let exact = R::HALF * k * weight;
    let chance = R::mul_add(dither, R::from_f64(1.0 / 256.0), R::from_f64(1.0 / 512.0));
    let half = R::floor(exact + select(exact.lt(R::from_f64(2048.0)), chance, R::HALF));
    unit_known(half + half)
}

/// The formulae above as CUDA C++.
pub const INTEGERS: &[&str] = &device_source![UnitOf, unit_known, unit_weighted];

/// `weight` as a particle of `precision` keeps it, the last bits of a light one random.
pub fn dithered(weight: f64, k: f64, precision: Precision, random: u32) -> f64 {
    match precision {
        _ if k * weight >= LIGHT => weight,
        Precision::F32 => f64::from(f32::from_bits(((weight as f32).to_bits() & !DITHER) | (random & DITHER))),
        Precision::F64 => f64::from_bits((weight.to_bits() & !u64::from(DITHER)) | u64::from(random & DITHER)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::physics::segment_current;
    use zellige_engine::rng::Philox;

    /// The arithmetic of `deposit.cu` in one of the two formats, operation by operation.
    trait EmulatedArithmetic: Real {
        const MAGIC: Self;
        const K: f64;
        const PRECISION: Precision;
        fn number(self) -> f64;
        fn fused(self, a: Self, b: Self) -> Self;
        fn last_bits(self) -> Self;
        /// `shifted`: the whole number in `i + MAGIC`, by its bits; garbage where it is none.
        fn shifted(self) -> i64;
    }

    impl EmulatedArithmetic for f32 {
        const MAGIC: Self = 12_582_912.0;
        const K: f64 = 1_048_576.0;
        const PRECISION: Precision = Precision::F32;
        fn number(self) -> f64 {
            self.into()
        }
        fn fused(self, a: Self, b: Self) -> Self {
            f32::mul_add(self, a, b)
        }
        fn last_bits(self) -> Self {
            (self.to_bits() & DITHER) as f32
        }
        fn shifted(self) -> i64 {
            (self.to_bits() as i32).wrapping_sub(Self::MAGIC.to_bits() as i32).into()
        }
    }

    impl EmulatedArithmetic for f64 {
        const MAGIC: Self = 6_755_399_441_055_744.0;
        const K: f64 = 1_099_511_627_776.0;
        const PRECISION: Precision = Precision::F64;
        fn number(self) -> f64 {
            self
        }
        fn fused(self, a: Self, b: Self) -> Self {
            f64::mul_add(self, a, b)
        }
        fn last_bits(self) -> Self {
            (self.to_bits() & u64::from(DITHER)) as f64
        }
        fn shifted(self) -> i64 {
            (self.to_bits() as i64).wrapping_sub(Self::MAGIC.to_bits() as i64)
        }
    }

    fn unit_of<R: EmulatedArithmetic>(weight: f64) -> UnitOf<R> {
        let w = R::from_f64(weight);
        unit_weighted(R::from_f64(R::K), w, w.last_bits())
    }

    /// `point`: a, b and c.
    fn point<R: EmulatedArithmetic>([s, t]: [R; 2], u: &UnitOf<R>) -> ([R; 2], [i64; 3]) {
        let [a, b] = [s, t].map(|x| R::fused(x, u.k, R::MAGIC));
        let [ra, rb] = [a, b].map(|x| x - R::MAGIC);
        ([ra, rb], [a.shifted(), b.shifted(), R::fused(ra * u.four, rb, R::MAGIC).shifted()])
    }

    /// Charges of the corners 00, 10, 01, 11, as `add_charge` has them.
    fn corners<R: EmulatedArithmetic>(at: [R; 2], u: &UnitOf<R>) -> [i64; 4] {
        let (_, [a, b, c]) = point(at, u);
        let k = u.k.number() as i64;
        [k - 2 * a - 2 * b + c, k + 2 * a - 2 * b - c, k - 2 * a + 2 * b - c, k + 2 * a + 2 * b + c]
    }

    /// `deposit`: currents in x (lower, upper), in y (left, right) and those in z.
    fn deposit<R: EmulatedArithmetic>(from: [R; 2], to: [R; 2], qz: R, u: &UnitOf<R>) -> ([i64; 4], [i64; 4]) {
        let ((p, pi), (q, qi)) = (point(from, u), point(to, u));
        let da = q[0] - p[0];
        let xi = R::fused(da * u.two, p[1] + q[1], R::MAGIC).shifted();
        let eta = qi[2] - pi[2] - xi;
        let (along, up) = (2 * (qi[0] - pi[0]), 2 * (qi[1] - pi[1]));
        let w = segment_current(from[0], from[1], to[0], to[1], R::ZERO, R::ZERO, R::ONE);
        let z = [w.z00, w.z10, w.z01, w.z11].map(|w| R::fused(qz * R::HALF, w, R::MAGIC).shifted());
        ([along - xi, along + xi, up - eta, up + eta], z)
    }

    fn paths_are_conserved<R: EmulatedArithmetic>() {
        let random = Philox::new(3, 1);
        // From the heaviest to far below the unit, and the two beside it that the old rounding made 0 and 2.
        let weights = [1.0, 0.013, 16.0 / R::K, 2.0 / R::K, 1.01 / R::K, 0.99 / R::K, 0.01 / R::K, 1e-9 / R::K, 0.0];
        for (k, weight) in weights.into_iter().enumerate() {
            for n in 0..2000 {
                let [a, b] = random.uniforms(k as u64, 3 * n);
                let [c, d] = random.uniforms(k as u64, 3 * n + 1);
                let (from, to) = ([a, b].map(|x| R::from_f64(x - 0.5)), [c, d].map(|x| R::from_f64(x - 0.5)));
                let u = unit_of::<R>(dithered(weight, R::K, R::PRECISION, random.draw(k as u64, 3 * n + 2)[0]));
                let kw = u.k.number();
                let (before, after) = (corners(from, &u), corners(to, &u));
                assert_eq!(before.iter().sum::<i64>(), 4 * kw as i64, "weight {weight}: the whole charge");
                // Each corner's share is right to what a, b and c are rounded by.
                let exact = [(-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0), (1.0, 1.0)]
                    .map(|(x, y)| kw * (1.0 + 2.0 * x * from[0].number()) * (1.0 + 2.0 * y * from[1].number()));
                for (v, e) in before.iter().zip(exact) {
                    assert!((*v as f64 - e).abs() <= 4.6, "weight {weight} at {from:?}: {before:?} for {exact:?}");
                }
                let qz = R::from_f64(4.0 * 0.7) * u.k;
                let ([lower, upper, left, right], z) = deposit(from, to, qz, &u);
                let change: Vec<i64> = after.iter().zip(before).map(|(a, b)| a - b).collect();
                let inflow = [-lower - left, lower - right, left - upper, right + upper];
                assert_eq!(change, inflow, "weight {weight}: continuity at every corner");
                // Nothing is larger than the charge that moves, and its roundings.
                let most = [lower, upper, left, right].into_iter().map(i64::abs).max().unwrap_or(0);
                assert!(most as f64 <= 4.0 * kw + 6.0 * f64::from(u8::from(kw > 0.0)), "weight {weight}: a current of {most} units");
                let along_z: i64 = z.iter().sum();
                assert!((along_z as f64 - 0.5 * qz.number()).abs() <= 2.6, "weight {weight}: {along_z} units along z");
            }
        }
    }

    /// Continuity to the last unit and bounded currents at every weight, as the kernel computes them.
    #[test]
    fn light_particles_deposit_no_more_than_they_have() {
        paths_are_conserved::<f32>();
        paths_are_conserved::<f64>();
    }

    fn mean_is_right<R: EmulatedArithmetic>() {
        const MANY: u64 = 1 << 16;
        let random = Philox::new(4, 1);
        for (k, units) in [300.0, 7.3, 2.0, 1.048, 0.93, 0.1, 0.02].into_iter().enumerate() {
            let weight = units / R::K;
            let charge = |n| unit_of::<R>(dithered(weight, R::K, R::PRECISION, random.draw(k as u64, n)[0])).k.number();
            let all: Vec<f64> = (0..MANY).map(charge).collect();
            assert!(all.iter().all(|k| (k - units).abs() < 2.01), "off by more than two units at {units}");
            let mean = all.iter().sum::<f64>() / MANY as f64;
            // Two values two units apart: a spread of 1 at most. Five sigmas, and the 256 values of the random number.
            assert!((mean - units).abs() < 5.0 / (MANY as f64).sqrt() + 2.0 / 256.0, "{mean} units for {units}");
        }
    }

    /// Groups of light particles have their charge.
    #[test]
    fn the_charge_of_light_particles_is_right_in_the_mean() {
        mean_is_right::<f32>();
        mean_is_right::<f64>();
    }

    #[test]
    fn heavy_weights_are_left_alone() {
        for w in [1.0, 0.25, 0.7, 0.01] {
            assert_eq!(dithered(w, f32::K, Precision::F32, 77), w);
            assert_eq!(dithered(w, f64::K, Precision::F64, 77), w);
        }
        let light = dithered(1e-6, f32::K, Precision::F32, 0x1234_5677);
        assert!((light / 1e-6 - 1.0).abs() < (-15.0_f64).exp2() && (light as f32).to_bits() & DITHER == 0x77);
    }
}
