//! Transport properties of a gas: viscosity, conductivity, diffusion, free path.
//!
//! First approximation of Chapman and Enskog for variable soft spheres: Koura and Matsumoto, Phys. Fluids A 3 (1991) 2459; Bird
//! (1994), sections 3.5 and 4.3.

use super::pair::Pair;
use super::{Scatter, Species};
use crate::model::ZDefinition;
use crate::walls::BOLTZMANN;

/// A pure gas at rest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transport {
    /// Viscosity, Pa s.
    pub viscosity: f64,
    /// Thermal conductivity, W/(m K): of translation by Chapman and Enskog, of internal modes by self-diffusion, both with what
    /// exchange between them takes away (Mason and Monchick, J. Chem. Phys. 36 (1962) 1622).
    pub conductivity: f64,
    /// Self-diffusion times number density, 1/(m s).
    pub diffusion: f64,
    /// Mean free path times number density, 1/m^2: of hard spheres of the same viscosity, as the literature has it.
    pub free_path: f64,
    /// Collisions of a molecule in a second, over the number density, m^3/s.
    pub rate: f64,
    /// Heat capacity of a molecule at constant volume over Boltzmann's constant.
    pub heat_capacity: f64,
    mass: f64,
}

/// Viscosity of molecules of a mass, Pa s.
pub(super) fn viscosity(s: &Scatter, mass: f64, temperature: f64) -> f64 {
    let pi = std::f64::consts::PI;
    5.0 * (s.alpha + 1.0) * (s.alpha + 2.0) * (pi * mass * BOLTZMANN * s.t_ref).sqrt()
        / (4.0 * s.alpha * pi * s.diameter * s.diameter * (5.0 - 2.0 * s.omega) * (7.0 - 2.0 * s.omega))
        * (temperature / s.t_ref).powf(s.omega)
}

/// Schmidt's number mu/(rho D) of the model: 5/6 for hard spheres.
pub(super) fn schmidt(s: &Scatter) -> f64 {
    5.0 / (7.0 - 2.0 * s.omega) * (s.alpha + 2.0) / (3.0 * s.alpha)
}

impl Transport {
    /// Of a species at a temperature, with collision numbers as Jeans' equation has them.
    pub fn new(species: &Species, temperature: f64) -> Self {
        Self::with(species, temperature, ZDefinition::Jeans)
    }

    /// Of a species at a temperature.
    pub fn with(species: &Species, temperature: f64, z: ZDefinition) -> Self {
        let s = &species.scatter;
        let (m, k, pi) = (species.mass, BOLTZMANN, std::f64::consts::PI);
        let viscosity = viscosity(s, m, temperature);
        let diffusion = viscosity / (m * schmidt(s));
        let internal = 0.5 * f64::from(species.rotation) + species.vibration.capacity(temperature);
        let mean_speed = (8.0 * k * temperature / (pi * m)).sqrt();
        let free_path = 2.0 * (5.0 - 2.0 * s.omega) * (7.0 - 2.0 * s.omega) * viscosity
            / (15.0 * m * (2.0 * pi * k * temperature / m).sqrt())
            * (6.0 * s.alpha / ((s.alpha + 1.0) * (s.alpha + 2.0)));
        let rate = Pair::new(species, species, None).mean_rate(temperature);
        debug_assert!((free_path * rate / mean_speed).is_finite());
        let mut all = Self { viscosity, conductivity: 0.0, diffusion, free_path, rate, heat_capacity: 1.5 + internal, mass: m };
        all.conductivity = all.eucken() - all.exchanged(species, temperature, z);
        all
    }

    /// Conductivity if no collision moved energy between translation and internal modes, W/(m K): Eucken's form.
    pub(super) fn eucken(&self) -> f64 {
        BOLTZMANN * (3.75 / self.mass * self.viscosity + self.diffusion * (self.heat_capacity - 1.5))
    }

    /// Part of that which their exchange takes away, W/(m K).
    fn exchanged(&self, species: &Species, temperature: f64, z: ZDefinition) -> f64 {
        let spread = self.mass * self.diffusion / self.viscosity;
        let freedom = 5.0 - 2.0 * species.scatter.omega;
        // Half of pi times Z, where a mode of capacity c relaxes in Z times pi mu/(4 p).
        let less = |c: f64, number: f64| {
            let number = if z == ZDefinition::Jeans { number } else { number * (1.0 + 2.0 * c / freedom) };
            // Mean collision times are `1/(n rate)`, `p = n k T`.
            let long = 2.0 * BOLTZMANN * temperature / (self.rate * self.viscosity) * number;
            let part = (2.5 - spread) / (long + 5.0 / 3.0 * c + spread);
            // Translation loses 5/2 of it, the mode gains its own spread of it.
            c * part * (2.5 - spread)
        };
        let rotation = less(0.5 * f64::from(species.rotation), species.z_rotation.at(temperature));
        let vibration: f64 = species.vibration.modes().iter().map(|m| less(m.capacity(temperature), m.z)).sum();
        BOLTZMANN / self.mass * self.viscosity * (rotation + vibration)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Relaxation;
    use super::super::table::{Model, find, names};
    use super::*;

    /// Measured viscosities at 273 K (1e-5 Pa s; Chapman and Cowling 1970, table 11, as Bird's appendix A uses them).
    const MEASURED: [(&str, f64); 13] = [
        ("He", 1.865),
        ("Ne", 2.975),
        ("Ar", 2.117),
        ("Kr", 2.328),
        ("Xe", 2.107),
        ("H2", 0.845),
        ("N2", 1.656),
        ("O2", 1.919),
        ("CO", 1.635),
        ("NO", 1.774),
        ("CO2", 1.380),
        ("CH4", 1.024),
        ("NH3", 0.923),
    ];

    #[test]
    fn viscosities_are_those_measured() {
        for (name, measured) in MEASURED {
            for model in [Model::Hs, Model::Vhs, Model::Vss] {
                let mu = Transport::new(&find(name, model).unwrap(), 273.15).viscosity * 1e5;
                // Two or three digits of a diameter, which enters squared: 5.9 for NH3 is good to 1.7 %.
                assert!((mu / measured - 1.0).abs() < 0.017, "{name} {model:?}: {mu}, measured {measured}");
            }
        }
        assert!(names().iter().all(|n| find(n, Model::Vss).is_some()));
    }

    /// Heat capacities at constant pressure (J/(mol K)) at 298.15 and 1000 K, and conductivities at 300 K (W/(m K)): NIST-JANAF
    /// Thermochemical Tables (Chase 1998); CRC Handbook of Chemistry and Physics.
    #[test]
    fn heat_capacities_are_those_measured() {
        const MEASURED: [(&str, f64, f64, f64); 4] = [
            ("N2", 29.124, 32.697, 0.0260),
            ("CO2", 37.129, 54.308, 0.0168),
            ("CH4", 35.639, 71.795, 0.0344),
            ("NH3", 35.652, 56.491, 0.0251),
        ];
        for (name, cold, hot, conductivity) in MEASURED {
            let gas = find(name, Model::Vss).unwrap();
            let molar = |t: f64| 8.314_463 * (1.0 + Transport::new(&gas, t).heat_capacity);
            // Anharmonic levels and the stretching of rotors are left out.
            assert!((molar(298.15) / cold - 1.0).abs() < 0.01, "{name}: {} for {cold}", molar(298.15));
            assert!((molar(1000.0) / hot - 1.0).abs() < 0.02, "{name}: {} for {hot}", molar(1000.0));
            // Eucken's form, in which internal energy diffuses as molecules do, is some ten per cent above polyatomic gases and 13 above
            // ammonia, whose polar molecules hand their rotation on.
            let found = Transport::new(&gas, 300.0).conductivity;
            assert!((found / conductivity - 1.0).abs() < 0.15, "{name}: {found} for {conductivity}");
        }
    }

    /// Nitrogen at 300 K by hand: `rho D/mu` 1.3406, Z 4.2605, which is 3.615 times `pi mu/(4 p)`. Translation loses 5/2 of
    /// `(2.5 - 1.3406)/(1.5708 3.615 + 5/3 + 1.3406) = 0.13347`, rotation gains 1.3406 of it: 4.936 in place of 5.091.
    #[test]
    fn exchange_takes_some_of_the_conductivity_away() {
        let mut gas = find("N2", Model::Vss).unwrap();
        gas.vibration = super::super::vibration::Vibration::NONE;
        let t = Transport::new(&gas, 300.0);
        assert!((t.conductivity / t.eucken() - 0.9696).abs() < 1e-4, "{}", t.conductivity / t.eucken());
        // A Z of the other definition is a longer one: 1 + 2/3.52.
        let other = Transport::with(&gas, 300.0, ZDefinition::Particle);
        gas.z_rotation = Relaxation::Constant(gas.z_rotation.at(300.0) * (1.0 + 2.0 / 3.52));
        assert!((other.conductivity / Transport::new(&gas, 300.0).conductivity - 1.0).abs() < 1e-12);
        gas.z_rotation = Relaxation::Constant(f64::INFINITY);
        let frozen = Transport::new(&gas, 300.0);
        assert!((frozen.conductivity / frozen.eucken() - 1.0).abs() < 1e-14);
    }

    #[test]
    fn argon_conducts_and_its_free_path_is_mean_speed_over_rate() {
        let argon = find("Ar", Model::Vss).unwrap();
        let t = Transport::new(&argon, 273.15);
        assert!((t.conductivity - 0.01652).abs() < 2e-5, "{}", t.conductivity);
        // Bird's free path of VSS molecules is exactly the mean speed over the collision rate at the reference temperature.
        let mean_speed = (8.0 * BOLTZMANN * 273.15 / (std::f64::consts::PI * argon.mass)).sqrt();
        assert!((t.free_path * t.rate / mean_speed - 1.0).abs() < 1e-12, "{}", t.free_path * t.rate / mean_speed);
        // 4 d^2 n sqrt(pi k T/m) = 2.0195e7 /s at n = 7.07043e22, to the digits of that figure.
        assert!((t.rate * 7.07043e22 / 2.0195e7 - 1.0).abs() < 1e-3, "{}", t.rate * 7.07043e22);
        let n2 = Transport::new(&find("N2", Model::Vss).unwrap(), 273.15);
        // Measured 0.0240 W/(m K); Eucken's form is good to some per cent.
        assert!((n2.conductivity / 0.0240 - 1.0).abs() < 0.05, "{}", n2.conductivity);
    }

    /// Heat capacities at constant pressure at 1000 K (J/(mol K)), where vibration has a part of them: NIST-JANAF Thermochemical
    /// Tables (Chase 1998).
    #[test]
    fn vibration_of_two_atoms_has_its_part_of_the_heat_capacity() {
        for (name, measured) in [("H2", 30.205), ("O2", 34.870), ("CO", 33.183), ("NO", 33.987)] {
            let found = 8.314_463 * (1.0 + Transport::new(&find(name, Model::Vss).unwrap(), 1000.0).heat_capacity);
            // Anharmonic levels and the stretching of rotors, most in hydrogen.
            assert!((found / measured - 1.0).abs() < 0.015, "{name}: {found}, measured {measured}");
        }
    }

    /// Noble gases diffuse in themselves as a Lennard-Jones potential has it at any temperature: `rho D/mu = 6 A*/5` with A* of
    /// 1.09 to 1.12 (Hirschfelder, Curtiss and Bird 1954, table I-N). The viscosity alone hardly tells alpha.
    #[test]
    fn noble_gases_diffuse_as_their_potential_has_it() {
        for name in ["He", "Ne", "Ar", "Kr", "Xe"] {
            let gas = find(name, Model::Vss).unwrap();
            let t = Transport::new(&gas, 273.15);
            let found = gas.mass * t.diffusion / t.viscosity;
            // Diameters and alphas of the table are of measured coefficients: 2 %.
            assert!(found > 1.31 * 0.98 && found < 1.344 * 1.02, "{name}: {found}");
        }
    }
}
