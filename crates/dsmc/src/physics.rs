//! The formulae of a collision: numbers in, numbers out, no memory. Velocities in m/s, energies over Boltzmann's constant in K, so
//! that single precision has room on both sides.
//!
//! Sources: Bird (1994), chapters 2 and 5; Koura and Matsumoto (1991) for the soft sphere; Bergemann and Boyd, Prog. Astronaut.
//! Aeronaut. 158 (1994) 174 for quantised vibration.

use zellige_device_macro::{device, device_source};
use zellige_engine::real::{Real, RealScalar, select};

/// Three components.
#[device]
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Vec3<R> {
    /// x.
    pub x: R,
    /// y.
    pub y: R,
    /// z.
    pub z: R,
}

/// `a - b`.
#[device]
#[inline(always)]
pub fn difference<R: Real>(a: Vec3<R>, b: Vec3<R>) -> Vec3<R> {
    Vec3::<R> { x: a.x - b.x, y: a.y - b.y, z: a.z - b.z }
}

/// `a + k b`.
#[device]
#[inline(always)]
pub fn moved<R: Real>(a: Vec3<R>, k: R, b: Vec3<R>) -> Vec3<R> {
    Vec3::<R> { x: R::mul_add(k, b.x, a.x), y: R::mul_add(k, b.y, a.y), z: R::mul_add(k, b.z, a.z) }
}

/// `a . a`.
#[device]
#[inline(always)]
pub fn square<R: Real>(a: Vec3<R>) -> R {
    R::mul_add(a.x, a.x, R::mul_add(a.y, a.y, a.z * a.z))
}

/// A vector of length `g` in the direction of which `cos` is the cosine with x and `ce`, `se` the azimuth's cosine and sine:
/// isotropic scattering.
#[device]
#[inline(always)]
pub fn directed<R: Real>(g: R, cos: R, ce: R, se: R) -> Vec3<R> {
    let sin = (R::ONE - cos * cos).max(R::ZERO).sqrt();
    Vec3::<R> { x: g * cos, y: g * (sin * ce), z: g * (sin * se) }
}

/// A vector of length `g` in the plane, in the direction of `ce`, `se`: isotropic scattering of two velocity components.
#[device]
#[inline(always)]
pub fn in_plane<R: Real>(g: R, ce: R, se: R) -> Vec3<R> {
    Vec3::<R> { x: g * ce, y: g * se, z: R::ZERO }
}

/// `v`, turned by the angle whose cosine is `cos` about an axis across it at the azimuth of `ce`, `se`, with its length made `g`
/// (Bird 1994, eq. 2.22).
#[device]
#[inline(always)]
pub fn deflected<R: Real>(v: Vec3<R>, g: R, cos: R, ce: R, se: R) -> Vec3<R> {
    let sin = (R::ONE - cos * cos).max(R::ZERO).sqrt();
    let across2: R = R::mul_add(v.y, v.y, v.z * v.z);
    let speed = R::mul_add(v.x, v.x, across2).sqrt();
    let across = across2.sqrt();
    // Along x the azimuth has no direction to begin from: any will do.
    let thin = across.le(R::from_f64(1e-6) * speed);
    let safe = select(thin, R::ONE, across);
    let k = select(speed.gt(R::ZERO), g / speed, R::ZERO);
    let y = v.y / safe;
    let z = v.z / safe;
    let turned = Vec3::<R> {
        x: k * (cos * v.x + sin * (se * across)),
        y: k * (cos * v.y + sin * (speed * z * ce - v.x * y * se)),
        z: k * (cos * v.z - sin * (speed * y * ce + v.x * z * se)),
    };
    let along = Vec3::<R> { x: k * (cos * v.x), y: g * (sin * ce), z: g * (sin * se) };
    Vec3::<R> { x: select(thin, along.x, turned.x), y: select(thin, along.y, turned.y), z: select(thin, along.z, turned.z) }
}

/// Energy that a rotor with two degrees of freedom keeps of the pool `e` of its own and the translation's, by Larsen and Borgnakke
/// (J. Comput. Phys. 18 (1975) 405); `u` in (0, 1), `power = 1/(5/2 - omega)`.
#[device]
#[inline(always)]
pub fn rotor_share<R: RealScalar>(e: R, u: R, power: R) -> R {
    e * (R::ONE - u.powf(power))
}

/// True if a rotor with three degrees of freedom takes the part `x` of the pool: density `sqrt(x) (1 - x)^b` relative to its
/// largest value, `b = 3/2 - omega`; `u` in (0, 1).
#[device]
#[inline(always)]
pub fn top_takes<R: RealScalar>(x: R, u: R, b: R) -> bool {
    // The largest value is at x = 1/(1 + 2 b).
    let peak = R::ONE / (R::ONE + R::TWO * b);
    (x / peak).sqrt() * ((R::ONE - x) / (R::ONE - peak)).powf(b) > u
}

/// True if an oscillator takes the level of energy `q` of the pool `e`: probability `(1 - q/e)^b`, `b = 3/2 - omega`.
#[device]
#[inline(always)]
pub fn level_taken<R: RealScalar>(q: R, e: R, u: R, b: R) -> bool {
    (R::ONE - q / e).max(R::ZERO).powf(b) > u
}

/// True if an oscillator of degeneracy `d`, up to 4, takes the level `q` of the pool `n` (in units of its temperature): probability
/// `C(q + d - 1, d - 1) (1 - q/n)^b` relative to a bound of it, the largest value of `(q + d/2)^(d - 1) (1 - q/n)^b`, as the
/// product of `q + 1` to `q + d - 1` is at most their mean to that power.
#[device]
#[inline(always)]
pub fn levels_taken<R: RealScalar>(q: R, n: R, d: R, u: R, b: R) -> bool {
    let middle = R::from_f64(0.5) * d;
    let others = d - R::ONE;
    let peak = ((others * n - b * middle) / (others + b)).max(R::ZERO);
    let top = peak + middle;
    let two = R::TWO;
    let three = R::from_f64(3.0);
    let second = select(d.gt(R::ONE), (q + R::ONE) / top, R::ONE);
    let third = select(d.gt(two), (q + two) / top, R::ONE);
    let fourth = select(d.gt(three), (q + three) / top, R::ONE);
    second * third * fourth * ((n - q).max(R::ZERO) / (n - peak)).powf(b) > u
}

/// Everything of this module that kernels use.
pub const PHYSICS: &[&str] =
    &device_source![Vec3, difference, moved, square, directed, in_plane, deflected, rotor_share, top_takes, level_taken, levels_taken];

#[cfg(test)]
mod tests {
    use super::*;

    /// The length is what was asked for and the angle has the cosine that was asked for, also along the axes.
    #[test]
    fn a_deflection_has_its_length_and_angle() {
        let vectors = [[1.0, 0.0, 0.0], [-2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.3, -0.2, 0.7], [1.0, 1e-9, 0.0], [1e3, 1e-2, 4e2]];
        for v in vectors.map(|[x, y, z]| Vec3 { x, y, z }) {
            for (cos, azimuth) in [(0.3, 0.1), (-0.9, 2.0), (1.0, 3.0), (-1.0, 5.0), (0.0, 6.0_f64)] {
                let (se, ce) = azimuth.sin_cos();
                let w: Vec3<f64> = deflected(v, 2.5, cos, ce, se);
                // Rounding of a dozen operations; 1e-6 is where the azimuth's direction is given up.
                assert!((square(w).sqrt() / 2.5 - 1.0).abs() < 2e-6, "{v:?} {cos} {w:?}");
                let dot = (v.x * w.x + v.y * w.y + v.z * w.z) / (square(v).sqrt() * 2.5);
                assert!((dot - cos).abs() < 2e-6, "{v:?} {cos} {dot}");
            }
        }
        assert_eq!(square(deflected(Vec3::default(), 1.0, 0.3, 1.0, 0.0)), square(Vec3 { x: 0.0, y: (1.0_f64 - 0.09).sqrt(), z: 0.0 }));
    }

    /// The bound of a level's probability is one, and close: no number above 1 is ever reached, and none is far below it at its
    /// largest.
    #[test]
    fn the_bound_of_degenerate_levels_holds() {
        for d in [1.0, 2.0, 3.0, 4.0] {
            for (n, b) in [(0.3, 0.7), (1.9, 0.4), (7.3, 0.76), (40.0, 1.0), (250.7, 0.69)] {
                let reached = |u: f64| (0..=n as u32).any(|q| levels_taken(f64::from(q), n, d, u, b));
                assert!(!reached(1.0 + 1e-12), "{d} {n} {b}");
                // The mean of 1 to 3 to the third power is 8 for their product 6, and levels are whole.
                assert!(reached(0.45), "{d} {n} {b}");
            }
        }
    }
}
