//! Collision parameters of two species.

use super::{Scatter, Species, gamma};
use crate::walls::BOLTZMANN;

/// Collision model of two species.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// Scattering.
    pub scatter: Scatter,
    /// Reduced mass, kg.
    pub reduced_mass: f64,
    /// `sigma g = rate g^(2 - 2 omega)`, SI.
    pub rate: f64,
}

impl Pair {
    /// Of two species: mean diameter, exponents and reference temperature, unless `given` says otherwise.
    pub fn new(a: &Species, b: &Species, given: Option<Scatter>) -> Self {
        let mean = |f: fn(&Scatter) -> f64| 0.5 * (f(&a.scatter) + f(&b.scatter));
        let scatter = given.unwrap_or(Scatter {
            diameter: mean(|s| s.diameter),
            omega: mean(|s| s.omega),
            t_ref: mean(|s| s.t_ref),
            alpha: mean(|s| s.alpha),
        });
        let reduced_mass = a.mass * b.mass / (a.mass + b.mass);
        let Scatter { diameter, omega, t_ref, .. } = scatter;
        let rate =
            std::f64::consts::PI * diameter * diameter * (2.0 * BOLTZMANN * t_ref / reduced_mass).powf(omega - 0.5) / gamma(2.5 - omega);
        Self { scatter, reduced_mass, rate }
    }

    /// Cross-section times relative speed, m^3/s.
    pub fn sigma_g(&self, g: f64) -> f64 {
        self.rate * g.powf(2.0 - 2.0 * self.scatter.omega)
    }

    /// Mean of [`Pair::sigma_g`] in a gas at rest, m^3/s: a molecule of a collides with `n_b` times as many of b in a second.
    pub fn mean_rate(&self, temperature: f64) -> f64 {
        let Scatter { diameter: d, omega, t_ref, .. } = self.scatter;
        let pi = std::f64::consts::PI;
        2.0 * pi.sqrt() * d * d * (2.0 * BOLTZMANN * t_ref / self.reduced_mass).sqrt() * (temperature / t_ref).powf(1.0 - omega)
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::{Model, find};
    use super::*;

    /// The closed form of the mean against the integral of `sigma g` over the distribution of relative speeds.
    #[test]
    fn the_mean_rate_is_the_integral() {
        let (a, b) = (find("Ar", Model::Vss).unwrap(), find("He", Model::Vss).unwrap());
        let pair = Pair::new(&a, &b, None);
        for t in [100.0, 273.15, 900.0] {
            let scale = (2.0 * BOLTZMANN * t / pair.reduced_mass).sqrt();
            let n = 4000;
            let x = |i: usize| (i as f64 + 0.5) * 8.0 / f64::from(n);
            let sum: f64 = (0..n as usize)
                .map(|i| 4.0 / std::f64::consts::PI.sqrt() * x(i).powi(2) * (-x(i) * x(i)).exp() * pair.sigma_g(scale * x(i)))
                .sum::<f64>()
                * 8.0
                / f64::from(n);
            // The midpoint rule's error of a smooth function that vanishes at both ends.
            assert!((pair.mean_rate(t) / sum - 1.0).abs() < 1e-6, "{t}: {} {sum}", pair.mean_rate(t));
        }
    }

    /// Argon and helium collide with the means of their diameters and exponents: 3.205e-10 m, 0.735 and 1.33. With the first the
    /// rate is `2 sqrt(pi) d^2 sqrt(2 k T/m)` at the reference temperature, from which it grows as `T^(1 - 0.735)`.
    #[test]
    fn unlike_molecules_collide_with_the_means_of_their_numbers() {
        let (a, b) = (find("Ar", Model::Vss).unwrap(), find("He", Model::Vss).unwrap());
        for pair in [Pair::new(&a, &b, None), Pair::new(&b, &a, None)] {
            assert!((pair.scatter.alpha - 1.33).abs() < 1e-15);
            // m = 66.3 * 6.65/72.95 = 6.0438e-27 kg: 2 k T/m is (1117.13 m/s)^2, and 2 sqrt(pi) d^2 3.64134e-19 m^2.
            assert!((pair.mean_rate(273.15) / 4.06783e-16 - 1.0).abs() < 1e-5, "{:e}", pair.mean_rate(273.15));
            let growth = pair.mean_rate(1092.6) / pair.mean_rate(273.15);
            assert!((growth / 4.0_f64.powf(0.265) - 1.0).abs() < 1e-12, "{growth}");
        }
    }
}
