//! Vibrational relaxation time: Millikan and White's correlation with Park's limit, and the probability of an exchange in a
//! collision that makes a gas follow it.
//!
//! ```text
//! p tau = exp(1.16e-3 mu^(1/2) theta^(4/3) (T^(-1/3) - 0.015 mu^(1/4)) - 18.42) atm s         mu in g/mol
//!   tau += 1/(c n sigma_v),  c = sqrt(8 k T/(pi m)),  sigma_v = 1e-20 m^2 (50000 K/T)^2
//! ```
//!
//! (Millikan and White, J. Chem. Phys. 39 (1963) 3209; Park, Nonequilibrium Hypersonic Aerothermodynamics (1990), section 2.) Both
//! times are over the density, so that with the collision rate `nu` the collision number `Z = tau nu` depends on the temperature
//! alone.
//!
//! A collision knows no temperature, only the pool `E` of the oscillator's energy and that of the relative motion, which the
//! exchange keeps. Any chance `P(E)` keeps detailed balance. Near equilibrium the energy of the vibration then relaxes with the
//! collision number `Z(T)` if
//!
//! ```text
//! < P(E) Var(e_v | E) > = Var(e_v) / Z(T)
//! ```
//!
//! over the pools of a gas at T: an integral equation for P, solved once for each pair. Its logarithm is corrected by that of the
//! ratio of both sides at all temperatures, each by the part that pools of E have there, again and again.
//!
//! High levels exchange more often than low ones, so that a gas far from equilibrium does not relax exponentially: oxygen at 12000
//! K with a vibration a fifth colder starts a fifth slower than by Landau and Teller's equation, and after one relaxation time has
//! gained a quarter less than by it.

use super::Species;
use super::pair::Pair;
use crate::walls::BOLTZMANN;

/// Points of the table, the largest pool in units of theta, temperatures that are fitted, and rounds.
pub(crate) const POINTS: usize = 400;
pub(crate) const LARGEST: f64 = 400.0;
const TEMPERATURES: usize = 80;
const ROUNDS: usize = 120;
/// Temperatures of the fit, in units of theta.
const RANGE: [f64; 2] = [0.15, 12.0];

/// Collision number of the vibration of `species` with the partners of `pair`. That of the softest mode for all of several: within
/// a molecule they exchange energy faster than with its translation, for which the softest is the way in.
pub fn collision_number(species: &Species, pair: &Pair, temperature: f64) -> f64 {
    let theta = species.vibration.modes().iter().map(|m| m.theta).fold(f64::INFINITY, f64::min);
    // g/mol of the reduced mass.
    let mu = pair.reduced_mass * 6.022_140_76e26;
    let exponent = 1.16e-3 * mu.sqrt() * theta.powf(4.0 / 3.0) * (temperature.cbrt().recip() - 0.015 * mu.powf(0.25)) - 18.42;
    let rate = pair.mean_rate(temperature);
    let mean = (8.0 * BOLTZMANN * temperature / (std::f64::consts::PI * species.mass)).sqrt();
    let limit = 1e-20 * (50_000.0 / temperature).powi(2);
    exponent.exp() * 101_325.0 / (BOLTZMANN * temperature) * rate + rate / (mean * limit)
}

/// Chance of an exchange by the pool.
#[derive(Debug, Clone, PartialEq)]
pub struct Chances {
    /// Characteristic temperature, K.
    theta: f64,
    /// At pools `theta LARGEST^(i/(POINTS - 1))`.
    values: Vec<f64>,
}

/// The pools of an oscillator: points, weights of a step of the logarithm, and the variance of the oscillator's energy, in units of
/// theta.
struct Pools {
    e: Vec<f64>,
    /// Density of states of the pool, `sum C(q + d - 1, d - 1) (e - q)^b`.
    states: Vec<f64>,
    variance: Vec<f64>,
    b: f64,
    degeneracy: u32,
    step: f64,
}

impl Pools {
    fn new(b: f64, degeneracy: u32) -> Self {
        let step = LARGEST.ln() / (POINTS - 1) as f64;
        let e: Vec<f64> = (0..POINTS).map(|i| (i as f64 * step).exp()).collect();
        // States of a level of d oscillators.
        let count = |q: u32| (1..degeneracy).map(|k| f64::from(q + k) / f64::from(k)).product::<f64>();
        let moment = |e: f64, k: i32| (0..=e as u32).map(|q| count(q) * (e - f64::from(q)).powf(b) * f64::from(q).powi(k)).sum::<f64>();
        let states: Vec<f64> = e.iter().map(|e| moment(*e, 0)).collect();
        let variance = e.iter().zip(&states).map(|(e, s)| moment(*e, 2) / s - (moment(*e, 1) / s).powi(2)).collect();
        Self { e, states, variance, b, degeneracy, step }
    }

    /// Parts that the pools at all points have in the right-hand side at `t` (in units of theta), if the chance is 1.
    fn parts(&self, t: f64) -> Vec<f64> {
        let x = 1.0 / t;
        let norm = super::gamma(self.b + 1.0) * t.powf(self.b + 1.0) / (1.0 - (-x).exp()).powi(self.degeneracy as i32);
        let all = f64::from(self.degeneracy) * x.exp() / x.exp_m1().powi(2);
        let part = |i: usize| self.variance[i] * self.states[i] * (-self.e[i] * x).exp() * self.e[i] * self.step / (norm * all);
        (0..POINTS).map(part).collect()
    }
}

impl Chances {
    /// For an oscillator of `theta` (K) and `degeneracy` in collisions with the exponent `omega` that relaxes with the collision
    /// number `z` of the temperature.
    pub fn new(theta: f64, degeneracy: u32, omega: f64, z: impl Fn(f64) -> f64) -> Self {
        let pools = Pools::new(1.5 - omega, degeneracy);
        let grid = |k: usize| RANGE[0] * (RANGE[1] / RANGE[0]).powf(k as f64 / (TEMPERATURES - 1) as f64);
        let kernel: Vec<(f64, Vec<f64>)> = (0..TEMPERATURES).map(|k| (1.0 / z(theta * grid(k)), pools.parts(grid(k)))).collect();
        // To begin with the number at the temperature whose pools are of this size on average.
        let sizes: Vec<[f64; 2]> = kernel
            .iter()
            .enumerate()
            .map(|(k, (_, parts))| [parts.iter().zip(&pools.e).map(|(p, e)| p * e).sum::<f64>() / parts.iter().sum::<f64>(), grid(k)])
            .collect();
        let begin = |e: f64| {
            let k = sizes.partition_point(|s| s[0] < e).clamp(1, TEMPERATURES - 1);
            let ([a, ta], [b, tb]) = (sizes[k - 1], sizes[k]);
            (1.0 / z(theta * (ta + (tb - ta) * ((e - a) / (b - a)).clamp(0.0, 1.0)))).min(1.0)
        };
        let mut values: Vec<f64> = pools.e.iter().map(|e| begin(*e)).collect();
        for _ in 0..ROUNDS {
            let (mut change, mut weight) = (vec![0.0; POINTS], vec![1e-12; POINTS]);
            for (target, parts) in &kernel {
                let found: f64 = parts.iter().zip(&values).map(|(p, v)| p * v).sum();
                let missing = (target / found).ln();
                for i in 0..POINTS {
                    let own = parts[i] * values[i] / found;
                    change[i] += own * missing;
                    weight[i] += own;
                }
            }
            for i in 0..POINTS {
                values[i] = (values[i] * (change[i] / weight[i]).exp()).min(1.0);
            }
        }
        Self { theta, values }
    }

    /// The table.
    pub(crate) fn values(&self) -> &[f64] {
        &self.values
    }

    /// The chance for a pool (K).
    pub fn at(&self, pool: f64) -> f64 {
        let at = (pool / self.theta).max(1.0).ln() / LARGEST.ln() * (POINTS - 1) as f64;
        let i = (at as usize).min(POINTS - 2);
        let part = (at - i as f64).min(1.0);
        self.values[i] * (1.0 - part) + self.values[i + 1] * part
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::{Model, find};
    use super::*;

    fn of(name: &str) -> (Species, Pair) {
        let species = find(name, Model::Vhs).unwrap();
        let pair = Pair::new(&species, &species, None);
        (species, pair)
    }

    /// `p tau` by hand: N2 at 5000 K, mu = 14, theta = 3371: A = 1.16e-3 * 3.742 * 50498 = 219.2, the exponent
    /// 219.2 (0.05848 - 0.02902) - 18.42 = -11.96, 6.4e-6 atm s.
    #[test]
    fn the_correlation_is_that_of_millikan_and_white() {
        let (n2, pair) = of("N2");
        let t = 5000.0;
        let z = collision_number(&n2, &pair, t);
        let park = pair.mean_rate(t) / ((8.0 * BOLTZMANN * t / (std::f64::consts::PI * n2.mass)).sqrt() * 1e-18);
        let tau = (z - park) / pair.mean_rate(t) * BOLTZMANN * t / 101_325.0;
        assert!((tau / 6.4e-6 - 1.0).abs() < 0.02, "{tau:e}");
    }

    /// The table put back into the equation gives the collision number that it was made for.
    #[test]
    fn chances_average_to_the_collision_number() {
        for (name, low, high) in [("N2", 0.25, 5.0_f64), ("O2", 0.25, 5.0), ("CO", 0.25, 5.0), ("CO2", 0.25, 5.0)] {
            let (species, pair) = of(name);
            let omega = pair.scatter.omega;
            let z = |t: f64| collision_number(&species, &pair, t);
            for mode in species.vibration.modes() {
                let chances = Chances::new(mode.theta, mode.degeneracy, omega, z);
                let pools = Pools::new(1.5 - omega, mode.degeneracy);
                for k in 0..12 {
                    let t = low * (high / low).powf(f64::from(k) / 11.0);
                    let found: f64 = pools.parts(t).iter().zip(&chances.values).map(|(p, v)| p * v).sum();
                    let ratio = found * z(mode.theta * t);
                    // Residual of the fit to a function that falls by four orders over these temperatures.
                    assert!((ratio - 1.0).abs() < 0.04, "{name} at {} K: {ratio}", mode.theta * t);
                }
            }
        }
        // Constant collision number at any temperature: the probability at all pools is that of Jeans' equation on average.
        for degeneracy in [1, 3] {
            let chances = Chances::new(3371.0, degeneracy, 0.74, |_| 50.0);
            let pools = Pools::new(1.5 - 0.74, degeneracy);
            let found: f64 = pools.parts(1.0).iter().zip(&chances.values).map(|(p, v)| p * v).sum();
            assert!((found * 50.0 - 1.0).abs() < 0.01, "{found}");
        }
    }

    /// Oxygen at 3000 K, where the exponent is `137.26 (0.069336 - 0.029998) - 18.42 = -13.0201`, to four digits: the pressure is
    /// in atmospheres.
    #[test]
    fn the_correlation_is_in_atmospheres() {
        let (o2, pair) = of("O2");
        let t = 3000.0;
        let park = pair.mean_rate(t) / ((8.0 * BOLTZMANN * t / (std::f64::consts::PI * o2.mass)).sqrt() * 1e-20 * (50.0_f64 / 3.0).powi(2));
        let tau = (collision_number(&o2, &pair, t) - park) / pair.mean_rate(t) * BOLTZMANN * t / 101_325.0;
        assert!((tau / 2.2153e-6 - 1.0).abs() < 1e-4, "{tau:e}");
    }
}
