//! Gases: species, how pairs of them collide, and what follows for a gas at rest.

pub mod millikan;
pub mod mixture;
pub mod pair;
pub mod sparta;
pub mod table;
pub mod transport;
pub mod vibration;

use crate::walls::{BOLTZMANN, Molecule};
use vibration::Vibration;

/// A species, in SI units.
#[derive(Debug, Clone, PartialEq)]
pub struct Species {
    /// Name, as in inputs and results.
    pub name: String,
    /// Mass of a molecule, kg.
    pub mass: f64,
    /// Scattering of two of its molecules.
    pub scatter: Scatter,
    /// Degrees of freedom of the rotation: 0, 2 or 3.
    pub rotation: u32,
    /// Collision number of the rotation.
    pub z_rotation: Relaxation,
    /// The modes of its vibration.
    pub vibration: Vibration,
    /// Modes that it has and that are not computed, as far as they are known.
    pub left_out: Vibration,
}

impl Species {
    /// Most probable speed at a temperature, `sqrt(2 k T/m)`, m/s.
    pub fn most_probable_speed(&self, temperature: f64) -> f64 {
        (2.0 * BOLTZMANN * temperature / self.mass).sqrt()
    }

    /// Properties that walls need of it.
    pub fn molecule(&self) -> Molecule {
        Molecule { mass: self.mass, rotation: self.rotation, vibration: self.vibration }
    }
}

/// The variable soft sphere: total cross-section `pi d^2 (g/g_ref)^(1 - 2 omega)`, deflection `cos chi = 2 R^(1/alpha) - 1`. Hard
/// spheres have `omega = 1/2`, `alpha = 1`; variable hard spheres `alpha = 1`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scatter {
    /// Diameter at the reference temperature, m.
    pub diameter: f64,
    /// Exponent of the viscosity, `mu ~ T^omega`.
    pub omega: f64,
    /// Reference temperature, K.
    pub t_ref: f64,
    /// Exponent of the deflection.
    pub alpha: f64,
}

/// Collision number of a rotation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Relaxation {
    /// Constant value at any energy; infinity freezes the mode.
    Constant(f64),
    /// Parker, Phys. Fluids 2 (1959) 449: `z_inf/(1 + (pi^1.5/2) sqrt(t/T) + (pi^2/4 + pi) t/T)`.
    Parker {
        /// Value at high temperature.
        z_inf: f64,
        /// Temperature of the attraction, K.
        t_star: f64,
    },
}

impl Relaxation {
    /// The collision number at a temperature.
    pub fn at(&self, temperature: f64) -> f64 {
        match *self {
            Self::Constant(z) => z,
            Self::Parker { z_inf, t_star } => {
                let (x, pi) = (t_star / temperature, std::f64::consts::PI);
                z_inf / (1.0 + 0.5 * pi.powf(1.5) * x.sqrt() + (0.25 * pi * pi + pi) * x)
            }
        }
    }
}

/// The gamma function of a positive number (Lanczos' series, g = 7, 9 terms: relative error below 1e-14).
pub fn gamma(x: f64) -> f64 {
    const TERMS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        return std::f64::consts::PI / ((std::f64::consts::PI * x).sin() * gamma(1.0 - x));
    }
    let x = x - 1.0;
    let sum = TERMS.iter().enumerate().fold(0.999_999_999_999_809_9, |sum, (i, c)| sum + c / (x + i as f64 + 1.0));
    let t = x + 7.5;
    std::f64::consts::TAU.sqrt() * t.powf(x + 0.5) * (-t).exp() * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gamma_function_has_its_known_values() {
        let root = std::f64::consts::PI.sqrt();
        for (x, want) in [(0.5, root), (1.0, 1.0), (1.5, 0.5 * root), (2.5, 0.75 * root), (5.0, 24.0), (0.25, 3.625_609_908_221_908)] {
            assert!((gamma(x) / want - 1.0).abs() < 1e-13, "{x}");
        }
    }

    #[test]
    fn parker_goes_to_its_limit_and_has_the_usual_value_for_nitrogen() {
        let z = Relaxation::Parker { z_inf: 18.1, t_star: 91.5 };
        assert!((z.at(1e9) / 18.1 - 1.0).abs() < 1e-3);
        // 18.1/(1 + 2.784 sqrt(0.305) + 5.609 * 0.305), by hand.
        assert!((z.at(300.0) - 4.26).abs() < 0.01, "{}", z.at(300.0));
    }
}
