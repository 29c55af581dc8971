//! The flux of a drifting Maxwellian through a plane: how much, and with which velocities. Exact for any speed ratio.

use zellige_engine::expr::Expr;

use crate::gas::Species;
use crate::model::Gas;
use crate::walls::BOLTZMANN;

/// Molecules of species number `s` per area and time that cross a plane towards `normal`, 1/(m^2 s) (Bird 1994, eq. 4.22).
pub fn rate(species: &Species, gas: &Gas, s: usize, normal: [f64; 2]) -> f64 {
    let speed = species.most_probable_speed(gas.temperature);
    let ratio = (gas.velocity[0] * normal[0] + gas.velocity[1] * normal[1]) / speed;
    gas.density * gas.fractions[s] * speed * 0.5 / std::f64::consts::PI.sqrt() * one_way(ratio)
}

/// `exp(-s^2) + sqrt(pi) s (1 + erf s)`: 1 at rest.
pub fn one_way(s: f64) -> f64 {
    let root = std::f64::consts::PI.sqrt();
    // `erfc(-s) = 1 + erf s` keeps its relative precision where the gas flows away from the plane.
    let erfc = Expr::parse("erfc(-s)", &["s"]).map_or(f64::NAN, |e| e.eval(&[s]));
    ((-s * s).exp() + root * s * erfc).max(0.0)
}

/// A speed over the most probable one from the density `x exp(-(x - s)^2)`, x > 0, for a gas of speed ratio `s` towards the plane.
///
/// With `y = x - s` and s >= 0 the density is the sum of `s exp(-y^2)` and `y exp(-y^2)` for y > 0 and `(s - |y|) exp(-y^2)` for
/// `-s < y < 0`: half a Gaussian, a Rayleigh distribution, and half a Gaussian thinned. For s < 0 it is `x exp(-x^2) exp(-2 |s| x)`,
/// of which either factor is drawn from and the other decides.
pub fn speed(s: f64, uniform: &mut dyn FnMut() -> f64) -> f64 {
    if s >= 0.0 {
        let half = 0.5 * s * std::f64::consts::PI.sqrt();
        loop {
            let pick = uniform() * (2.0 * half + 0.5);
            let mut gauss = || ((-uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos()).abs();
            if pick < half {
                return s + gauss();
            }
            if pick < half + 0.5 {
                return s + (-uniform().ln()).sqrt();
            }
            let y = gauss();
            if uniform() < 1.0 - y / s {
                return s - y;
            }
        }
    }
    loop {
        let (x, keep) = if s > -1.0 {
            let x = (-uniform().ln()).sqrt();
            (x, (2.0 * s * x).exp())
        } else {
            let x = -(uniform() * uniform()).ln() / (-2.0 * s);
            (x, (-x * x).exp())
        };
        if uniform() < keep {
            return x;
        }
    }
}

/// A velocity of the molecules that cross a plane towards `normal`, m/s.
pub fn velocity(species: &Species, gas: &Gas, normal: [f64; 2], uniform: &mut dyn FnMut() -> f64) -> [f64; 3] {
    let c = species.most_probable_speed(gas.temperature);
    let u = &gas.velocity;
    let across = c * speed((u[0] * normal[0] + u[1] * normal[1]) / c, uniform);
    let thermal = (BOLTZMANN * gas.temperature / species.mass).sqrt();
    let [a, b] = zellige_engine::rng::normal_pair(uniform(), uniform());
    // The tangent is the normal turned by a quarter to the left.
    let along = thermal * a + u[1] * normal[0] - u[0] * normal[1];
    [across * normal[0] - along * normal[1], across * normal[1] + along * normal[0], thermal * b + u[2]]
}

#[cfg(test)]
mod tests {
    use super::*;
    use zellige_engine::rng::{Philox, open_f64};

    /// Mean and mean square of the drawn speeds against quadrature, from flow straight away to straight on.
    #[test]
    fn speeds_have_the_moments_of_the_flux() {
        for s in [-3.0, -1.0, -0.4, 0.0, 0.3, 1.0, 4.0, 12.0_f64] {
            let philox = Philox::new(77, 20_261_121);
            let mut i = 0;
            let mut uniform = || {
                i += 1;
                let [a, b, ..] = philox.draw(0, i);
                open_f64(a, b)
            };
            let n = 200_000;
            let mut sums = [0.0; 3];
            for _ in 0..n {
                let x = speed(s, &mut uniform);
                assert!(x > 0.0);
                for (k, sum) in sums.iter_mut().enumerate() {
                    *sum += x.powi(k as i32 + 1);
                }
            }
            let moment = |k: i32| {
                let top = s.max(0.0) + 8.0;
                (0..40_000).map(|j| (f64::from(j) + 0.5) * top / 40_000.0).map(|x| x.powi(k + 1) * (-(x - s).powi(2)).exp()).sum::<f64>()
            };
            let m = [0, 1, 2, 3, 4].map(|k| moment(k) / moment(0));
            for k in 1..=2 {
                let sigma = ((m[2 * k] - m[k] * m[k]) / f64::from(n)).sqrt();
                let found = sums[k - 1] / f64::from(n);
                assert!((found - m[k]).abs() < 4.0 * sigma, "s = {s}, moment {k}: {found}, expected {} +- {sigma}", m[k]);
            }
        }
    }

    #[test]
    fn the_rate_is_a_quarter_of_the_mean_speed_at_rest_and_all_of_a_beam() {
        assert_eq!(one_way(0.0), 1.0);
        assert!((one_way(10.0) / (20.0 * std::f64::consts::PI.sqrt()) - 1.0).abs() < 1e-12);
        // Asymptotically exp(-s^2)/(2 s^2) for a gas that flows away.
        let away = one_way(-5.0) / ((-25.0_f64).exp() / 50.0);
        assert!((away - 1.0).abs() < 0.1, "{away}");
    }
}
