//! Open sides with a given pressure or mass flow: the state of the gas beyond a face, from that of the cell within.
//!
//! In a subsonic flow one characteristic comes from inside. With the speed of sound `a` of the cell, densities `rho`, pressures `p` and
//! speeds `u` into the domain, `c` for the cell and `e` for what is given:
//!
//! ```text
//! outlet, p given         rho = rho_c + (p_e - p_c) / a^2     u = u_c + (p_e - p_c) / (rho_c a)     T = p_e / (rho R)
//! inlet, p and T given    rho = p_e / (R T_e)                 u = u_c + (p_e - p_c) / (rho_c a)
//! inlet, flow and T given u = u_c, and rho such that what comes in less what goes out is the flow
//! ```
//!
//! (Nance, Hash and Hassan, J. Thermophys. Heat Transfer 12 (1998) 447; Fang and Liou, J. Heat Transfer 124 (2002) 338.) What goes out
//! counts: an inlet that only sets what comes in misses its flow by as much. A cell's state is a moving average, as one step's few
//! particles would make the side follow their noise.

use super::BOLTZMANN;
use super::inflow::Stream;

/// What is given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Given {
    /// Pressure, Pa, where the gas leaves.
    Outlet {
        /// Pressure, Pa.
        pressure: f64,
    },
    /// Pressure and temperature, where it comes in.
    Inlet {
        /// Pressure, Pa.
        pressure: f64,
        /// Temperature, K.
        temperature: f64,
    },
    /// Net flow and temperature, where it comes in.
    Flow {
        /// Molecules per area and time, 1/(m^2 s).
        flux: f64,
        /// Temperature, K.
        temperature: f64,
    },
}

/// The state of a cell beside the side: sums over steps whose weight falls by a constant factor from step to step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Moving {
    /// Weight of all steps.
    pub weight: f64,
    /// Particles.
    pub count: f64,
    /// Velocity, m/s.
    pub velocity: [f64; 3],
    /// Its square, m^2/s^2.
    pub square: f64,
}

impl Moving {
    /// Takes a step's sums in: number, velocity and its square over a cell's particles. `memory` steps is how long a step counts.
    pub fn take(&mut self, count: f64, velocity: [f64; 3], square: f64, memory: f64) {
        let keep = 1.0 - 1.0 / memory.max(1.0);
        self.weight = self.weight * keep + 1.0;
        self.count = self.count * keep + count;
        for (sum, v) in self.velocity.iter_mut().zip(velocity) {
            *sum = *sum * keep + v;
        }
        self.square = self.square * keep + square;
    }

    /// All of it, for a checkpoint.
    pub fn numbers(&self) -> [f64; 6] {
        let [x, y, z] = self.velocity;
        [self.weight, self.count, x, y, z, self.square]
    }

    /// From what [`Moving::numbers`] gave.
    pub fn from_numbers(n: &[f64]) -> Self {
        Self { weight: n[0], count: n[1], velocity: [n[2], n[3], n[4]], square: n[5] }
    }

    /// The gas in the cell for `per_volume` molecules a particle and m^3; nothing before some twenty particles have been seen.
    pub fn gas(&self, mass: f64, per_volume: f64) -> Option<Stream> {
        if self.count < 20.0 {
            return None;
        }
        let velocity = self.velocity.map(|v| v / self.count);
        let spread = self.square / self.count - velocity.iter().map(|v| v * v).sum::<f64>();
        // The mean of what is measured takes one particle's share of the spread.
        let temperature = mass * spread / (3.0 * BOLTZMANN) * self.count / (self.count - 1.0);
        let density = per_volume * self.count / self.weight;
        (temperature > 0.0).then_some(Stream { density, temperature, velocity, mass })
    }
}

impl Given {
    /// The gas beyond a face with the inward normal `normal`, for the gas in the cell within. `gamma` is the ratio of heats.
    ///
    /// Pressures further from the cell's than half of it, and speeds faster than sound, are cut there: from such a state the formulae
    /// above say nothing, and the next steps will come from a nearer one.
    pub fn beyond(&self, cell: &Stream, normal: [f64; 2], gamma: f64) -> Stream {
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
                let out = cell.flux(normal.map(|n| -n));
                let one = with(1.0, temperature, inward);
                with(((flux + out) / one.flux(normal)).max(0.0), temperature, inward)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAMMA: f64 = 5.0 / 3.0;
    const MASS: f64 = 6.63e-26;

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
        near(Given::Outlet { pressure }.beyond(&cell, normal, GAMMA), cell);
        near(Given::Inlet { pressure, temperature: 300.0 }.beyond(&cell, normal, GAMMA), cell);
        let net = cell.flux(normal) - cell.flux(normal.map(|n| -n));
        assert!((net / (1e20 * 80.0) - 1.0).abs() < 1e-12, "what comes in less what goes out is the drift");
        near(Given::Flow { flux: net, temperature: 300.0 }.beyond(&cell, normal, GAMMA), cell);
    }

    #[test]
    fn small_differences_travel_as_sound() {
        let (cell, normal) = (gas(1e20, 300.0, 50.0), [0.6, 0.8]);
        let (r, p) = (BOLTZMANN / MASS, 1e20 * BOLTZMANN * 300.0);
        let a = (GAMMA * r * 300.0).sqrt();
        let out = Given::Outlet { pressure: p * 1.001 }.beyond(&cell, normal, GAMMA);
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
            let beyond = Given::Flow { flux: 4e21, temperature: 320.0 }.beyond(&cell, normal, GAMMA);
            let net = beyond.flux(normal) - cell.flux([0.0, -1.0]);
            assert!((net / 4e21 - 1.0).abs() < 1e-12, "{net}");
        }
    }

    #[test]
    fn moving_averages_forget_and_are_not_biased() {
        let mut m = Moving::default();
        assert_eq!(m.gas(MASS, 1.0), None);
        for _ in 0..5000 {
            m.take(10.0, [1000.0, 0.0, 0.0], 2e6, 100.0);
        }
        assert!((m.weight - 100.0).abs() < 1e-9);
        for _ in 0..2000 {
            m.take(20.0, [0.0, 400.0, 0.0], 1.2e6, 100.0);
        }
        let gas = m.gas(MASS, 3.0).unwrap();
        assert!((gas.density - 60.0).abs() < 1e-6 && gas.velocity[0].abs() < 1e-6 && (gas.velocity[1] - 20.0).abs() < 1e-6);
        let t = MASS * (6e4 - 400.0) / (3.0 * BOLTZMANN) * 2000.0 / 1999.0;
        assert!((gas.temperature / t - 1.0).abs() < 1e-6);
    }
}
