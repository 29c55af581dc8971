//! Open sides with a given pressure or mass flow: the state of the gas beyond a face, from that of the cell within.
//!
//! In a subsonic flow one characteristic comes from inside. With the speed of sound `a` of the cell, densities `rho`, pressures `p`
//! and speeds `u` into the domain, `c` for the cell and `e` for what is given:
//!
//! ```text
//! outlet, p given         rho = rho_c + (p_e - p_c) / a^2     u = u_c + (p_e - p_c) / (rho_c a)     T = p_e / (rho R)
//! inlet, p and T given    rho = p_e / (R T_e)                 u = u_c + (p_e - p_c) / (rho_c a)
//! inlet, flow and T given u = u_c, and rho such that injected less exited is the flow
//! ```
//!
//! (Nance, Hash and Hassan, J. Thermophys. Heat Transfer 12 (1998) 447; Fang and Liou, J. Heat Transfer 124 (2002) 338.) What goes
//! out counts: an inlet that only sets the injected flux misses its flow by as much. A cell's state is a moving average, as one
//! step's few particles would make the side follow their noise.

use super::BOLTZMANN;
use super::inflow::Stream;

/// Condition that a side prescribes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SubsonicBoundary {
    /// Pressure, Pa, where the gas leaves.
    Outlet {
        /// Pressure, Pa.
        pressure: f64,
    },
    /// Pressure and temperature, where it enters.
    Inlet {
        /// Pressure, Pa.
        pressure: f64,
        /// Temperature, K.
        temperature: f64,
    },
    /// Net flow and temperature, where it enters.
    Flow {
        /// Molecules per area and time, 1/(m^2 s); of a mixture those of the mean mass of the injected gas.
        flux: f64,
        /// Temperature, K.
        temperature: f64,
    },
}

/// The state of a cell beside the side: sums over steps whose weight falls by a constant factor from step to step. In a mixture
/// velocities and squares count by the mass of their molecule over that of the first species.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MovingAverage {
    /// Weight of all steps.
    pub weight: f64,
    /// Particles.
    pub count: f64,
    /// Velocity, m/s.
    pub velocity: [f64; 3],
    /// Its square, m^2/s^2.
    pub square: f64,
    /// Particles by species of a mixture; empty for a pure gas.
    pub by_species: Vec<f64>,
}

/// A step's sums over the particles of a cell, weighted as in [`MovingAverage`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CellSums {
    /// Particles.
    pub count: f64,
    /// Velocity, m/s.
    pub velocity: [f64; 3],
    /// Its square, m^2/s^2.
    pub square: f64,
}

impl MovingAverage {
    /// Takes a step's sums in, with the particles by species in a mixture. `memory` steps is how long a step counts.
    pub fn take(&mut self, seen: &CellSums, by_species: &[f64], memory: f64) {
        let keep = 1.0 - 1.0 / memory.max(1.0);
        self.weight = self.weight * keep + 1.0;
        self.count = self.count * keep + seen.count;
        for (sum, v) in self.velocity.iter_mut().zip(seen.velocity) {
            *sum = *sum * keep + v;
        }
        self.square = self.square * keep + seen.square;
        self.by_species.resize(by_species.len(), 0.0);
        for (sum, n) in self.by_species.iter_mut().zip(by_species) {
            *sum = *sum * keep + n;
        }
    }

    /// All of it, for a checkpoint: six numbers, and one for each species of a mixture.
    pub fn numbers(&self, species: usize) -> impl Iterator<Item = f64> + '_ {
        let [x, y, z] = self.velocity;
        let by_species = (0..Self::species_counts(species)).map(|s| self.by_species.get(s).copied().unwrap_or(0.0));
        [self.weight, self.count, x, y, z, self.square].into_iter().chain(by_species)
    }

    /// Numbers of species that are kept: none of a pure gas.
    pub const fn species_counts(species: usize) -> usize {
        if species > 1 { species } else { 0 }
    }

    /// From what [`MovingAverage::numbers`] gave.
    pub fn from_numbers(n: &[f64]) -> Self {
        Self { weight: n[0], count: n[1], velocity: [n[2], n[3], n[4]], square: n[5], by_species: n[6..].to_vec() }
    }

    /// The gas in the cell for `per_volume` molecules a particle and m^3, as one of the mean mass; nothing before some twenty
    /// particles have been seen. `masses` are those of the species, `components` those of a velocity.
    pub fn gas(&self, masses: &[f64], components: usize, per_volume: f64) -> Option<Stream> {
        if self.count < 20.0 {
            return None;
        }
        // Mean mass over that of the first species.
        let heavy = if self.by_species.is_empty() {
            1.0
        } else {
            self.by_species.iter().zip(masses).map(|(n, m)| n * m).sum::<f64>() / (masses[0] * self.count)
        };
        let velocity = self.velocity.map(|v| v / (self.count * heavy));
        let spread = self.square / self.count - heavy * velocity.iter().map(|v| v * v).sum::<f64>();
        // The mean of what is measured takes one particle's share of the spread.
        let temperature = masses[0] * spread / (components as f64 * BOLTZMANN) * self.count / (self.count - 1.0);
        let density = per_volume * self.count / self.weight;
        (temperature > 0.0).then_some(Stream { density, temperature, velocity, mass: masses[0] * heavy })
    }
}

/// A gas as one of its mean mass, divided into its species.
#[derive(Debug, Clone, Copy)]
pub struct Composition<'a> {
    /// Masses of the species, kg.
    pub masses: &'a [f64],
    /// Their mole fractions.
    pub fractions: &'a [f64],
}

impl Composition<'_> {
    /// A species of it.
    pub fn species(&self, gas: &Stream, s: usize) -> Stream {
        Stream { density: gas.density * self.fractions[s], mass: self.masses[s], ..*gas }
    }

    /// Mass through a surface, kg/(m^2 s), one way along the unit vector `normal`.
    fn mass_flux(&self, gas: &Stream, normal: [f64; 2]) -> f64 {
        (0..self.masses.len()).map(|s| self.masses[s] * self.species(gas, s).flux(normal)).sum()
    }

    /// Mean mass, kg.
    pub fn mean_mass(&self) -> f64 {
        self.masses.iter().zip(self.fractions).map(|(m, f)| m * f).sum()
    }
}

impl SubsonicBoundary {
    /// The gas beyond a face with the inward normal `normal`, for the gas in the cell within. `gamma` is the ratio of heats. Of
    /// mixtures both are as one gas of the mean mass; where a flow is given, `within` and `given` say of what they are made, and
    /// the flow is one of mass.
    ///
    /// Pressures further from the cell's than half of it, and speeds faster than sound, are cut there: from such a state the
    /// formulae above say nothing, and the next steps will come from a nearer one.
    pub fn beyond(&self, cell: &Stream, normal: [f64; 2], gamma: f64, [within, given]: [Composition<'_>; 2]) -> Stream {
        let r = BOLTZMANN / cell.mass;
        let (rho, a) = (cell.density * cell.mass, (gamma * r * cell.temperature).sqrt());
        let pressure = rho * r * cell.temperature;
        let inward = cell.velocity[0] * normal[0] + cell.velocity[1] * normal[1];
        let with = |density: f64, temperature: f64, u: f64| {
            let change = u.clamp(-a, a) - inward;
            let [x, y, z] = cell.velocity;
            Stream { density, temperature, velocity: [x + change * normal[0], y + change * normal[1], z], mass: cell.mass }
        };
        let excess = |p: f64| (p - pressure).clamp(-0.5 * pressure, 0.5 * pressure);
        match *self {
            Self::Outlet { pressure: p } => {
                let above = excess(p);
                let rho_b = rho + above / (a * a);
                with(rho_b / cell.mass, (pressure + above) / (rho_b * r), inward + above / (rho * a))
            }
            Self::Inlet { pressure: p, temperature } => with(p / (BOLTZMANN * temperature), temperature, inward + excess(p) / (rho * a)),
            Self::Flow { flux, temperature } => {
                let out = within.mass_flux(cell, normal.map(|n| -n));
                let one = given.mass_flux(&with(1.0, temperature, inward), normal);
                with(((flux * given.mean_mass() + out) / one).max(0.0), temperature, inward)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAMMA: f64 = 5.0 / 3.0;
    const MASS: f64 = 6.63e-26;
    const PURE: [Composition<'_>; 2] = [Composition { masses: &[MASS], fractions: &[1.0] }; 2];

    fn gas(density: f64, temperature: f64, u: f64) -> Stream {
        Stream { density, temperature, velocity: [0.6 * u, 0.8 * u, 7.0], mass: MASS }
    }

    fn near(a: Stream, b: Stream) {
        let close = |x: f64, y: f64| (x - y).abs() <= 1e-12 * y.abs().max(1e-300);
        assert!(close(a.density, b.density) && close(a.temperature, b.temperature), "{a:?} {b:?}");
        assert!(a.velocity.iter().zip(b.velocity).all(|(x, y)| (x - y).abs() < 1e-9), "{a:?} {b:?}");
    }

    #[test]
    fn a_state_that_is_as_given_stays() {
        let cell = gas(1e20, 300.0, 80.0);
        let (normal, pressure) = ([0.6, 0.8], 1e20 * BOLTZMANN * 300.0);
        near(SubsonicBoundary::Outlet { pressure }.beyond(&cell, normal, GAMMA, PURE), cell);
        near(SubsonicBoundary::Inlet { pressure, temperature: 300.0 }.beyond(&cell, normal, GAMMA, PURE), cell);
        let net = cell.flux(normal) - cell.flux(normal.map(|n| -n));
        assert!((net / (1e20 * 80.0) - 1.0).abs() < 1e-12, "injected less exited is the drift");
        near(SubsonicBoundary::Flow { flux: net, temperature: 300.0 }.beyond(&cell, normal, GAMMA, PURE), cell);
    }

    #[test]
    fn small_differences_travel_as_sound() {
        let (cell, normal) = (gas(1e20, 300.0, 50.0), [0.6, 0.8]);
        let (r, p) = (BOLTZMANN / MASS, 1e20 * BOLTZMANN * 300.0);
        let a = (GAMMA * r * 300.0).sqrt();
        let out = SubsonicBoundary::Outlet { pressure: p * 1.001 }.beyond(&cell, normal, GAMMA, PURE);
        let u = out.velocity[0] * 0.6 + out.velocity[1] * 0.8;
        // dp = rho a du, dp = a^2 drho: isentropic, so dT / T = (gamma - 1) / gamma dp / p to first order.
        assert!((1e20 * MASS * a * (u - 50.0) / (0.001 * p) - 1.0).abs() < 1e-9);
        assert!(((out.density / 1e20 - 1.0) * GAMMA / 0.001 - 1.0).abs() < 1e-9);
        assert!(((out.temperature / 300.0 - 1.0) * GAMMA / (GAMMA - 1.0) / 0.001 - 1.0).abs() < 2e-3);
        assert!((out.density * BOLTZMANN * out.temperature / (1.001 * p) - 1.0).abs() < 1e-12, "the pressure is the one given");
    }

    #[test]
    fn an_inlet_of_given_flow_has_it_net_from_any_cell() {
        let normal = [0.0, 1.0];
        for (n, t, u) in [(1e19, 250.0, 0.0), (3e20, 500.0, -40.0), (1e20, 300.0, 200.0)] {
            let cell = Stream { density: n, temperature: t, velocity: [3.0, u, 0.0], mass: MASS };
            let beyond = SubsonicBoundary::Flow { flux: 4e21, temperature: 320.0 }.beyond(&cell, normal, GAMMA, PURE);
            let net = beyond.flux(normal) - cell.flux([0.0, -1.0]);
            assert!((net / 4e21 - 1.0).abs() < 1e-12, "{net}");
        }
    }

    #[test]
    fn moving_averages_forget_and_are_not_biased() {
        let mut m = MovingAverage::default();
        assert_eq!(m.gas(&[MASS], 3, 1.0), None);
        for _ in 0..5000 {
            m.take(&CellSums { count: 10.0, velocity: [1000.0, 0.0, 0.0], square: 2e6 }, &[], 100.0);
        }
        assert!((m.weight - 100.0).abs() < 1e-9);
        for _ in 0..2000 {
            m.take(&CellSums { count: 20.0, velocity: [0.0, 400.0, 0.0], square: 1.2e6 }, &[], 100.0);
        }
        let gas = m.gas(&[MASS], 3, 3.0).unwrap();
        assert!((gas.density - 60.0).abs() < 1e-6 && gas.velocity[0].abs() < 1e-6 && (gas.velocity[1] - 20.0).abs() < 1e-6);
        let t = MASS * (6e4 - 400.0) / (3.0 * BOLTZMANN) * 2000.0 / 1999.0;
        assert!((gas.temperature / t - 1.0).abs() < 1e-6);
    }

    /// Two species by hand: 30 of helium at (10, 0, 0), 10 of argon at (2, 0, 0), each with the spread of 300 K.
    #[test]
    fn a_mixture_has_the_velocity_of_its_mass_and_the_flow_is_one_of_mass() {
        let masses = [6.65e-27, 6.63e-26];
        let spread = |m: f64| 3.0 * BOLTZMANN * 300.0 / m;
        let (ratio, mut m) = (masses[1] / masses[0], MovingAverage::default());
        let seen = CellSums {
            count: 40.0,
            velocity: [30.0 * 10.0 + ratio * 10.0 * 2.0, 0.0, 0.0],
            square: 30.0 * (100.0 + spread(masses[0])) + ratio * 10.0 * (4.0 + spread(masses[1])),
        };
        for _ in 0..4000 {
            m.take(&seen, &[30.0, 10.0], 200.0);
        }
        let gas = m.gas(&masses, 3, 2.0).unwrap();
        let mass = 30.0 * masses[0] + 10.0 * masses[1];
        let u = (300.0 * masses[0] + 20.0 * masses[1]) / mass;
        // Drifts against each other are heat for the whole: 40 k 3/2 dT = the sum of m (v - u)^2 / 2.
        let drift = (30.0 * masses[0] * (10.0 - u).powi(2) + 10.0 * masses[1] * (2.0 - u).powi(2)) / (3.0 * BOLTZMANN * 40.0);
        let unbiased = 8000.0 / 7999.0;
        assert!((gas.density / 80.0 - 1.0).abs() < 1e-9 && (gas.velocity[0] / u - 1.0).abs() < 1e-9, "{gas:?}");
        assert!((gas.mass / (mass / 40.0) - 1.0).abs() < 1e-12 && (gas.temperature / ((300.0 + drift) * unbiased) - 1.0).abs() < 1e-9);
        let kept: Vec<f64> = m.numbers(2).collect();
        assert_eq!((kept.len(), MovingAverage::from_numbers(&kept)), (8, m.clone()));

        let (within, given) = ([0.75, 0.25], [0.4, 0.6]);
        let [within, given] = [&within, &given].map(|fractions| Composition { masses: &masses, fractions });
        let normal = [1.0, 0.0];
        let beyond = SubsonicBoundary::Flow { flux: 3e3, temperature: 320.0 }.beyond(&gas, normal, GAMMA, [within, given]);
        let net = given.mass_flux(&beyond, normal) - within.mass_flux(&gas, [-1.0, 0.0]);
        assert!((net / (3e3 * (0.4 * masses[0] + 0.6 * masses[1])) - 1.0).abs() < 1e-12, "{net}");
    }
}
