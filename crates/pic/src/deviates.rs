//! Normal numbers and directions from random words, by operations that every device rounds alike: sums, products, quotients and
//! square roots, none of them fused, and no function of a library. So particles that a GPU makes are those of the CPU, bit
//! for bit, and the compiler makes loops over registers of them.

use zellige_device_macro::{device, device_source};

/// The logarithm of a normal positive number to 5e-11 of itself, less than the 32 bits of a draw can tell: the power of two apart,
/// `2 atanh(s)` of `s = (m - 1)/(m + 1)` by the first terms of its series for `m` from `sqrt(1/2)` to `sqrt(2)`.
#[device]
#[allow(clippy::approx_constant)]
#[inline(always)]
pub fn logarithm(x: f64) -> f64 {
    // The bits of sqrt(1/2) are the origin of the exponent.
    let shifted = x.to_bits().wrapping_add(0x95F_61998_0C433_u64);
    let m = f64::from_bits((shifted & 0x000F_FFFF_FFFF_FFFF_u64) + 0x3FE6_A09E_667F_3BCD_u64);
    // The exponent as the last bits of 2^52.
    let e = f64::from_bits((shifted >> 52) | 0x4330_0000_0000_0000_u64) - 4_503_599_627_371_519.0;
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let sum = 1.0 / 3.0 + z * (1.0 / 5.0 + z * (1.0 / 7.0 + z * (1.0 / 9.0 + z * (1.0 / 11.0))));
    e * 0.693_147_180_559_945_3 + 2.0 * (s + s * z * sum)
}

/// 32 random bits as a number in (0, 1): an odd multiple of 2^-33, without rounding.
#[device]
#[inline(always)]
pub fn fraction(word: u32) -> f64 {
    (word as f64 + 0.5) * (1.0 / 4_294_967_296.0)
}

/// Two numbers: a vector in the plane.
#[device]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// The first: a cosine.
    pub x: f64,
    /// The second: a sine.
    pub y: f64,
}

/// The direction at `turns` of a whole turn, 0 to 1, to 1.1e-10: to the nearest quarter of a turn, and from there by the series of
/// `2 pi r`.
#[device]
#[allow(clippy::approx_constant)]
#[inline(always)]
pub fn direction(turns: f64) -> Pair {
    // 1.5 * 2^52: what is added to it is rounded to a whole number, which its last bits hold.
    let shifted = 4.0 * turns + 6_755_399_441_055_744.0;
    let quarter = shifted.to_bits();
    let r = turns - 0.25 * (shifted - 6_755_399_441_055_744.0);
    let z = r * r;
    // (-1)^k (2 pi)^n / n!.
    let s = -76.705_859_753_061_39 + z * (42.058_693_944_897_655 + z * -15.094_642_576_822_99);
    let s = r * (6.283_185_307_179_586 + z * (-41.341_702_240_399_76 + z * (81.605_249_276_075_06 + z * s)));
    let c = -85.456_817_206_693_73 + z * (60.244_641_371_876_66 + z * -26.426_256_783_374_4);
    let c = 1.0 + z * (-19.739_208_802_178_716 + z * (64.939_394_022_668_3 + z * c));
    let odd = quarter & 1 == 1;
    let cos: f64 = if odd { s } else { c };
    let sin: f64 = if odd { c } else { s };
    Pair { x: f64::from_bits(cos.to_bits() ^ (((quarter + 1) & 2) << 62)), y: f64::from_bits(sin.to_bits() ^ ((quarter & 2) << 62)) }
}

/// The length in the plane of two independent normal numbers, from `radius` in (0, 1).
#[inline(always)]
pub fn normal_length(radius: f64) -> f64 {
    (-2.0 * logarithm(radius)).sqrt()
}

/// Two independent normal numbers (Box and Muller, Ann. Math. Stat. 29 (1958) 610) from `radius` in (0, 1) and `angle` in [0, 1).
#[device]
#[inline(always)]
pub fn normal_pair(radius: f64, angle: f64) -> Pair {
    let length = (-2.0 * logarithm(radius)).sqrt();
    let at = direction(angle);
    Pair { x: length * at.x, y: length * at.y }
}

/// The formulae above as CUDA C++, to be compiled without fused operations.
pub const DEVIATES: &[&str] = &device_source![logarithm, fraction, Pair, direction, normal_pair];

#[cfg(test)]
mod tests {
    use super::*;
    use zellige_engine::rng::{Philox, open_f64, uniform_f64};

    /// Against the library's functions: to the first term of the series that is left out, `s^12/13` of `s = 0.172` and
    /// `(pi/4)^12/12!`.
    #[test]
    fn logarithms_and_directions_are_right_to_what_a_draw_can_tell() {
        let random = Philox::new(1, 5);
        let ends = [open_f64(0, 0), open_f64(u32::MAX, u32::MAX), 0.5_f64.sqrt(), 0.5, 1.0, 2.0, 1e-300, 1e300, 0.707_106_781_186_547_4];
        let drawn = (0..200_000).map(|k| {
            let [a, b, c, _] = random.draw(0, k);
            open_f64(a, b) * 0.5_f64.powi((c % 60) as i32)
        });
        for x in ends.into_iter().chain(drawn) {
            let (found, exact) = (logarithm(x), x.ln());
            assert!((found - exact).abs() <= 5.1e-11 * exact.abs(), "ln {x:e}: {found:e}, {exact:e}");
        }
        let ends = [0.0, 0.125, 0.25, 0.375, 0.5, 0.75, 1.0 - f64::EPSILON];
        for a in ends.into_iter().chain((0..200_000).map(|k| random.uniforms(1, k)[0])) {
            let (found, (sin, cos)) = (direction(a), (std::f64::consts::TAU * a).sin_cos());
            let off = (found.x - cos).abs().max((found.y - sin).abs());
            assert!(off <= 1.16e-10, "{a}: {found:?}, {cos} {sin}");
            assert!((found.x.hypot(found.y) - 1.0).abs() < 1.16e-10);
        }
    }

    #[test]
    fn fractions_are_odd_multiples() {
        let random = Philox::new(1, 7);
        for word in [0, 1, 1 << 31, u32::MAX].into_iter().chain((0..50_000).map(|k| random.draw(0, k)[0])) {
            assert_eq!(fraction(word) * 8_589_934_592.0, 2.0 * f64::from(word) + 1.0);
        }
    }

    /// The library's normal numbers, which the other solvers draw: up to 8.6 long, to what their lengths and directions are.
    #[test]
    fn normal_numbers_are_those_of_the_engine() {
        let random = Philox::new(1, 6);
        for k in 0..50_000 {
            let [a, b, c, d] = random.draw(0, k);
            let (radius, angle) = (open_f64(a, b), uniform_f64(c, d));
            let (found, exact) = (normal_pair(radius, angle), zellige_engine::rng::normal_pair(radius, angle));
            assert!((found.x - exact[0]).abs().max((found.y - exact[1]).abs()) < 1.3e-9);
        }
    }
}
