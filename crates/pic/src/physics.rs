//! The formulae of the method: numbers in, numbers out, no memory. Written once over [`Real`]: scalars are the reference,
//! lanes run in the CPU's inner loops, and `#[device]` gives the same text to the GPU.
//!
//! Fields come scaled by `alpha = q dt / (2 m)`: `e = alpha E`, `b = alpha B`. Offsets `s`, `t` are from the cell's centre in
//! units of the cell, `-1/2..=1/2`.

use zellige_device_macro::{device, device_source};
use zellige_engine::real::{Real, select};

/// Three components.
#[device]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Vec3<R> {
    /// x.
    pub x: R,
    /// y.
    pub y: R,
    /// z.
    pub z: R,
}

/// `a + b`.
#[device]
#[inline(always)]
pub fn add<R: Real>(a: Vec3<R>, b: Vec3<R>) -> Vec3<R> {
    Vec3::<R> { x: a.x + b.x, y: a.y + b.y, z: a.z + b.z }
}

/// `k a`.
#[device]
#[inline(always)]
pub fn scaled<R: Real>(k: R, a: Vec3<R>) -> Vec3<R> {
    Vec3::<R> { x: k * a.x, y: k * a.y, z: k * a.z }
}

/// `a . b`.
#[device]
#[inline(always)]
pub fn dot<R: Real>(a: Vec3<R>, b: Vec3<R>) -> R {
    R::mul_add(a.x, b.x, R::mul_add(a.y, b.y, a.z * b.z))
}

/// `a + b x c`.
#[device]
#[inline(always)]
pub fn add_cross<R: Real>(a: Vec3<R>, b: Vec3<R>, c: Vec3<R>) -> Vec3<R> {
    Vec3::<R> {
        x: R::mul_add(-b.z, c.y, R::mul_add(b.y, c.z, a.x)),
        y: R::mul_add(-b.x, c.z, R::mul_add(b.z, c.x, a.y)),
        z: R::mul_add(-b.y, c.x, R::mul_add(b.x, c.y, a.z)),
    }
}

/// `hash` with `word` mixed in: a multiplication and a fold, so that every bit of both counts.
#[device]
#[inline(always)]
pub fn mixed_in(hash: u64, word: u64) -> u64 {
    let product = (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    product ^ (product >> 32)
}

/// `1 + u^2`: the square of `gamma`.
#[device]
#[inline(always)]
pub fn gamma_squared<R: Real>(u: Vec3<R>) -> R {
    R::mul_add(u.x, u.x, R::mul_add(u.y, u.y, R::mul_add(u.z, u.z, R::ONE)))
}

/// `gamma = sqrt(1 + u^2)`.
#[device]
#[inline(always)]
pub fn gamma<R: Real>(u: Vec3<R>) -> R {
    gamma_squared(u).sqrt()
}

/// `1 / gamma`.
#[device]
#[inline(always)]
pub fn inverse_gamma<R: Real>(u: Vec3<R>) -> R {
    gamma_squared(u).recip_sqrt()
}

/// `gamma - 1 = u^2 / (gamma + 1)`, exact for slow particles too.
#[device]
#[inline(always)]
pub fn kinetic_energy<R: Real>(u: Vec3<R>) -> R {
    dot(u, u) * (R::ONE + gamma(u)).recip()
}

/// The rotation of `u` by the angle `2 atan |t|` about `t` (Boris 1970): keeps `|u|` to round-off for any `t`.
#[device]
#[inline(always)]
pub fn rotated<R: Real>(u: Vec3<R>, t: Vec3<R>) -> Vec3<R> {
    let k = R::TWO * gamma_squared(t).recip();
    let halfway = add_cross(u, u, t);
    add_cross(u, halfway, scaled(k, t))
}

/// Boris: half the electric kick, the rotation with `gamma` in the middle, the other half. As [`rotated`] about `t = b / gamma`,
/// with `1 / (1 + t^2)` written as `gamma^2 / (gamma^2 + b^2)`: that need not wait for `t`.
#[device]
#[inline(always)]
pub fn boris<R: Real>(u: Vec3<R>, e: Vec3<R>, b: Vec3<R>) -> Vec3<R> {
    let middle = add(u, e);
    let squared = gamma_squared(middle);
    let k = (squared + squared) * (squared + dot(b, b)).recip();
    let t = scaled(inverse_gamma(middle), b);
    let halfway = add_cross(middle, middle, t);
    add(add_cross(middle, halfway, scaled(k, t)), e)
}

/// `gamma` of the momentum that a rotation about `b` leads to on average: the positive root of
/// `gamma^4 - (g2 - b^2) gamma^2 - (b^2 + (u.b)^2) = 0`, `g2 = 1 + u^2` (Vay 2008, eq. 11; Higuera and Cary 2017, eq. 20).
#[device]
#[inline(always)]
pub fn mean_gamma<R: Real>(u: Vec3<R>, b: Vec3<R>) -> R {
    let b2 = dot(b, b);
    let along = dot(u, b);
    let sigma = R::ONE + dot(u, u) - b2;
    let squared: R = R::mul_add(along, along, b2);
    let root: R = R::mul_add(sigma, sigma, R::from_f64(4.0) * squared).sqrt();
    // For strong fields sigma is negative and would cancel in the sum.
    let positive = R::HALF * (sigma.abs() + root);
    let other = squared / positive;
    select(sigma.lt(R::ZERO), other, positive).sqrt()
}

/// Higuera-Cary: as Boris, with the `gamma` that makes it volume-preserving and exact for E x B drift.
#[device]
#[inline(always)]
pub fn higuera_cary<R: Real>(u: Vec3<R>, e: Vec3<R>, b: Vec3<R>) -> Vec3<R> {
    let middle = add(u, e);
    let inverse = mean_gamma(middle, b).recip();
    add(rotated(middle, scaled(inverse, b)), e)
}

/// Vay: an explicit half step with the velocity at the start, an implicit one with that at the end.
#[device]
#[inline(always)]
pub fn vay<R: Real>(u: Vec3<R>, e: Vec3<R>, b: Vec3<R>) -> Vec3<R> {
    let kicked = add(u, scaled(R::TWO, e));
    let first = add_cross(kicked, scaled(inverse_gamma(u), u), b);
    let t = scaled(mean_gamma(first, b).recip(), b);
    let turned = add_cross(first, first, t);
    let along = scaled(dot(first, t), t);
    scaled((R::ONE + dot(t, t)).recip(), add(turned, along))
}

/// Current that a straight path inside one cell adds at the nodes around it (linear shapes), per unit of charge flow: x on
/// the two rows, y on the two columns, z on the four corners.
#[device]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Currents<R> {
    /// `Jx(i+1/2, j)`.
    pub x_lower: R,
    /// `Jx(i+1/2, j+1)`.
    pub x_upper: R,
    /// `Jy(i, j+1/2)`.
    pub y_left: R,
    /// `Jy(i+1, j+1/2)`.
    pub y_right: R,
    /// `Jz(i, j)`.
    pub z00: R,
    /// `Jz(i+1, j)`.
    pub z10: R,
    /// `Jz(i, j+1)`.
    pub z01: R,
    /// `Jz(i+1, j+1)`.
    pub z11: R,
}

/// The current of a path from `(s0, t0)` to `(s1, t1)` in one cell (Villasenor and Buneman 1992). `qx = q dx/dt`,
/// `qy = q dy/dt`; `qz = q v_z` times the part of the step that the path takes. The z part is the exact integral of the
/// bilinear weight along the path: the product of the mean weights plus `ds dt / 12` with alternating sign.
#[device]
#[inline(always)]
pub fn segment_current<R: Real>(s0: R, t0: R, s1: R, t1: R, qx: R, qy: R, qz: R) -> Currents<R> {
    let ds = s1 - s0;
    let dt = t1 - t0;
    let s = R::HALF * (s0 + s1);
    let t = R::HALF * (t0 + t1);
    let left = R::HALF - s;
    let right = R::HALF + s;
    let lower = R::HALF - t;
    let upper = R::HALF + t;
    let jx = qx * ds;
    let jy = qy * dt;
    let twist = ds * dt * R::from_f64(1.0 / 12.0);
    Currents::<R> {
        x_lower: jx * lower,
        x_upper: jx * upper,
        y_left: jy * left,
        y_right: jy * right,
        z00: qz * R::mul_add(left, lower, twist),
        z10: qz * R::mul_add(right, lower, -twist),
        z01: qz * R::mul_add(left, upper, -twist),
        z11: qz * R::mul_add(right, upper, twist),
    }
}

/// The formulae above as CUDA C++.
pub const PHYSICS: &[&str] = &device_source![
    Vec3,
    mixed_in,
    add,
    scaled,
    dot,
    add_cross,
    gamma_squared,
    gamma,
    inverse_gamma,
    kinetic_energy,
    rotated,
    boris,
    mean_gamma,
    higuera_cary,
    vay,
    Currents,
    segment_current
];

#[cfg(test)]
mod tests {
    use super::*;

    fn vec3(x: f64, y: f64, z: f64) -> Vec3<f64> {
        Vec3 { x, y, z }
    }

    /// V8 of the verification list: the angle of a step is known in closed form.
    #[test]
    fn boris_turns_by_twice_the_arc_tangent() {
        for u0 in [0.1, 1.0, 10.0] {
            let (u, b) = (vec3(u0, 0.0, 0.0), vec3(0.0, 0.0, -0.025 * gamma(vec3(u0, 0.0, 0.0))));
            let next = boris(u, vec3(0.0, 0.0, 0.0), b);
            let angle = 2.0 * (b.z / gamma(u)).atan();
            assert!((next.y.atan2(next.x) + angle).abs() < 1e-14, "{u0}");
            assert!((dot(next, next).sqrt() / u0 - 1.0).abs() < 1e-15);
        }
    }

    /// V9: with `E = -v x B` Vay and Higuera-Cary keep a fast particle's course, Boris does not.
    #[test]
    fn crossed_fields_leave_the_course_alone() {
        let v: f64 = (1.0 - 1.0 / 400.0_f64).sqrt();
        let start = vec3(0.0, 20.0 * v, 0.0);
        // Ex = -vy Bz; the step is large: alpha B / gamma = 0.5.
        let (bz, mut paths) = (10.0, [start; 3]);
        let (e, b) = (vec3(-v * bz, 0.0, 0.0), vec3(0.0, 0.0, bz));
        let mut drift = [0.0_f64; 3];
        for _ in 0..100 {
            for (k, push) in [boris, vay, higuera_cary].into_iter().enumerate() {
                paths[k] = push(paths[k], e, b);
                drift[k] += paths[k].x / gamma(paths[k]);
            }
        }
        assert!(drift[0].abs() > 1e-3, "{drift:?}");
        // Rounding of 1e-16 u a step, amplified by no growth: 100 steps.
        assert!(drift[1].abs() / 100.0 < 1e-12 && drift[2].abs() / 100.0 < 1e-12, "{drift:?}");
    }

    /// In a weak field all three agree to second order in the step.
    #[test]
    fn pushers_agree_for_small_steps() {
        let u = vec3(0.3, -1.2, 0.7);
        for step in [1e-3, 1e-4] {
            let (e, b) = (vec3(0.2 * step, step, -0.4 * step), vec3(-step, 0.3 * step, 0.8 * step));
            let [first, second, third] = [boris(u, e, b), vay(u, e, b), higuera_cary(u, e, b)];
            for other in [second, third] {
                let away = add(first, scaled(-1.0, other));
                assert!(dot(away, away).sqrt() < 4.0 * step * step, "{step}: {away:?}");
            }
        }
    }

    /// Continuity at the four corners of a cell: the change of the bilinear charge is minus the divergence of the current.
    #[test]
    fn a_segment_conserves_charge_and_sums_to_the_flow() {
        let (s0, t0, s1, t1) = (-0.31, 0.44, 0.27, -0.5);
        let j = segment_current(s0, t0, s1, t1, 2.0, 3.0, 5.0);
        let weight =
            |s: f64, t: f64, right: bool, upper: bool| (if right { 0.5 + s } else { 0.5 - s }) * (if upper { 0.5 + t } else { 0.5 - t });
        // In units of q: d rho / dt = -(Jx flux / qx + Jy flux / qy).
        for (right, upper, x, y) in [
            (false, false, j.x_lower, j.y_left),
            (true, false, -j.x_lower, j.y_right),
            (false, true, j.x_upper, -j.y_left),
            (true, true, -j.x_upper, -j.y_right),
        ] {
            let change = weight(s1, t1, right, upper) - weight(s0, t0, right, upper);
            assert!((change + x / 2.0 + y / 3.0).abs() < 1e-15);
        }
        assert!((j.z00 + j.z10 + j.z01 + j.z11 - 5.0).abs() < 1e-15);
        // The exact time integral, by Gauss' rule of two points (exact for quadratics).
        let at = |tau: f64, right, upper| weight(s0 + (s1 - s0) * tau, t0 + (t1 - t0) * tau, right, upper);
        let (a, b) = (0.5 - 0.5 / 3.0_f64.sqrt(), 0.5 + 0.5 / 3.0_f64.sqrt());
        for (right, upper, z) in [(false, false, j.z00), (true, false, j.z10), (false, true, j.z01), (true, true, j.z11)] {
            assert!((z - 2.5 * (at(a, right, upper) + at(b, right, upper))).abs() < 1e-15);
        }
    }
}
