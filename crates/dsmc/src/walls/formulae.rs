//! The formulae of walls: numbers in, numbers out. Speeds are in units of the wall's `c_w = sqrt(2 k T_w / m)`, energies in
//! units of `k T_w`; `u` are uniform numbers in (0, 1).

use zellige_device_macro::{device, device_source};
use zellige_engine::real::RealScalar;

/// `2 pi`.
#[device]
#[expect(clippy::approx_constant, reason = "a constant of the other language needs its digits")]
pub const TURN: f64 = 6.283_185_307_179_586;

/// Two numbers.
#[device]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Two<R> {
    /// The first.
    pub a: R,
    /// The second.
    pub b: R,
}

/// Speed away from a diffuse wall: the density is `2 c exp(-c^2)`, that of the flux, of mean energy `k T_w`.
#[device]
#[inline(always)]
pub fn diffuse_normal<R: RealScalar>(u: R) -> R {
    (-u.ln()).sqrt()
}

/// Two speeds along a diffuse wall: Gaussian, of variance 1/2 each (Box and Muller).
#[device]
#[inline(always)]
pub fn diffuse_tangential<R: RealScalar>(u: R, angle: R) -> Two<R> {
    let r = (-u.ln()).sqrt();
    let phase = R::from_f64(TURN) * angle;
    Two::<R> { a: r * phase.cos(), b: r * phase.sin() }
}

/// Speed away from a Cercignani-Lampis wall for the speed `c` against it (Lord, Phys. Fluids A 3 (1991) 706, eq. 12):
/// `accommodation` of the normal energy. 0 is a mirror, 1 a diffuse wall.
#[device]
#[inline(always)]
pub fn cll_normal<R: RealScalar>(accommodation: R, c: R, u: R, angle: R) -> R {
    let r = (-(accommodation * u.ln())).sqrt();
    let kept = (R::ONE - accommodation).sqrt() * c;
    let phase = R::from_f64(TURN) * angle;
    let squared = r * r + kept * kept + R::TWO * r * kept * phase.cos();
    R::max(squared, R::ZERO).sqrt()
}

/// Speeds along and across the incident direction along a Cercignani-Lampis wall, for the speed `c` along it, with `accommodation`
/// of the tangential momentum, 0 to 2; of the energy it is `accommodation (2 - accommodation)`. 0 is a mirror, 1 a diffuse wall, 2
/// sends back.
#[device]
#[inline(always)]
pub fn cll_tangential<R: RealScalar>(accommodation: R, c: R, u: R, angle: R) -> Two<R> {
    let energy = accommodation * (R::TWO - accommodation);
    let r = (-(energy * u.ln())).sqrt();
    let phase = R::from_f64(TURN) * angle;
    Two::<R> { a: (R::ONE - accommodation) * c + r * phase.cos(), b: r * phase.sin() }
}

/// Rotational energy of two degrees of freedom after a wall, by the same kernel as the normal speed, whose square it is like.
#[device]
#[inline(always)]
pub fn rotation_two<R: RealScalar>(accommodation: R, energy: R, u: R, angle: R) -> R {
    let c = cll_normal(accommodation, energy.sqrt(), u, angle);
    c * c
}

/// Rotational energy of three degrees of freedom after a wall: a vector of three Gaussian parts of which the first starts with all
/// of the energy. `v` is one more uniform number.
#[device]
#[inline(always)]
pub fn rotation_three<R: RealScalar>(accommodation: R, energy: R, u: R, angle: R, v: R) -> R {
    let r = (-(accommodation * u.ln())).sqrt();
    let phase = R::from_f64(TURN) * angle;
    let first = (R::ONE - accommodation).sqrt() * energy.sqrt() + r * phase.cos();
    first * first - accommodation * v.ln()
}

/// Level of a quantised vibration at the wall's temperature, `steps = theta / T_w`.
#[device]
#[inline(always)]
pub fn vibration_level<R: RealScalar>(steps: R, u: R) -> R {
    (-u.ln() / steps).floor()
}

/// The formulae above as CUDA C++.
pub const WALLS: &[&str] = &device_source![
    TURN,
    Two,
    diffuse_normal,
    diffuse_tangential,
    cll_normal,
    cll_tangential,
    rotation_two,
    rotation_three,
    vibration_level
];
