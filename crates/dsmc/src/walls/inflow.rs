//! Gas through a surface: the flux of a drifting Maxwellian and the velocities of what comes, exact at any speed ratio.

use std::f64::consts::PI;

use zellige_engine::expr::{erf, erfc};

/// The one-way flux of a gas of unit density over `c = sqrt(2 k T / m)`, for the speed ratio `s = u_n / c` of the drift along the
/// inward normal: `(exp(-s^2) + sqrt(pi) s (1 + erf s)) / (2 sqrt pi)`.
pub fn flux(s: f64) -> f64 {
    let root = PI.sqrt();
    // For an outward drift the terms cancel; 1 + erf is then erfc of the other sign, whose relative error is small.
    let above = if s < 0.0 { erfc(-s) } else { 1.0 + erf(s) };
    (((-s * s).exp() + root * s * above) / (2.0 * root)).max(0.0)
}

/// Speed along the inward normal of injected molecules, over `c`: the density is `x exp(-(x - s)^2)` for `x > 0`, without cuts.
/// Rejection from three envelopes takes at most four draws on average.
pub fn normal_speed(s: f64, uniform: &mut dyn FnMut() -> f64) -> f64 {
    loop {
        if s < -0.7 {
            // x exp(2 s x), the sum of two exponential numbers, over which the density falls as exp(-x^2).
            let x = (uniform() * uniform()).ln() / (2.0 * s);
            if uniform() < (-x * x).exp() {
                return x;
            }
        } else if s < 0.0 {
            // x exp(-x^2), over which it falls as exp(2 s x).
            let x = (-uniform().ln()).sqrt();
            if uniform() < (2.0 * s * x).exp() {
                return x;
            }
        } else {
            // With y = x - s: below (s + |y|) exp(-y^2), a Gaussian of mass s sqrt pi and a two-sided Rayleigh of mass 1.
            let gauss = s * PI.sqrt();
            let r = (-uniform().ln()).sqrt();
            let y = if uniform() * (gauss + 1.0) < gauss {
                r * (2.0 * PI * uniform()).cos()
            } else if uniform() < 0.5 {
                r
            } else {
                -r
            };
            if uniform() * (s + y.abs()) < s + y {
                return s + y;
            }
        }
    }
}

/// A gas in front of a surface.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stream {
    /// Number density, 1/m^3.
    pub density: f64,
    /// Temperature, K.
    pub temperature: f64,
    /// Velocity, m/s.
    pub velocity: [f64; 3],
    /// Mass of a molecule, kg.
    pub mass: f64,
}

impl Stream {
    /// Most probable thermal speed, m/s.
    pub fn thermal_speed(&self) -> f64 {
        (2.0 * super::BOLTZMANN * self.temperature / self.mass).sqrt()
    }

    /// Molecules through a surface with the inward unit normal `normal`, 1/(m^2 s).
    pub fn flux(&self, normal: [f64; 2]) -> f64 {
        let c = self.thermal_speed();
        self.density * c * flux((self.velocity[0] * normal[0] + self.velocity[1] * normal[1]) / c)
    }

    /// The velocity of one of them, m/s. The stream at rest is effusion.
    pub fn draw(&self, normal: [f64; 2], uniform: &mut dyn FnMut() -> f64) -> [f64; 3] {
        let c = self.thermal_speed();
        let n = c * normal_speed((self.velocity[0] * normal[0] + self.velocity[1] * normal[1]) / c, uniform);
        let v = super::formulae::diffuse_tangential(uniform(), uniform());
        let t = c * v.a + self.velocity[1] * normal[0] - self.velocity[0] * normal[1];
        [n * normal[0] - t * normal[1], n * normal[1] + t * normal[0], c * v.b + self.velocity[2]]
    }
}
