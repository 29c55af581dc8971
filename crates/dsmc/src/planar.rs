//! The gas of two velocity components: discs, or spheres that never leave their plane.
//!
//! Programs that keep x and y of a velocity alone compute it without saying so. Here it is asked for (`velocity_components = 2`),
//! so that one can compare with them, and the plan says what it changes. Velocities have no part along z, a collision turns the
//! relative velocity to any direction of the plane alike, and the cross-section as a function of the relative speed stays that of
//! the molecules. With `f ~ exp(-m c^2/(2 k T))` in the plane, relative speeds have the density `2 x exp(-x^2)` in
//! `x = g/sqrt(2 k T/m_r)`, and
//!
//! ```text
//! T = m <c'^2>/(2 k)        p = n k T        gamma = 2        c_v = k/m
//! <sigma g>  = rate (2 k T/m_r)^(1 - omega) Gamma(2 - omega)          sqrt(pi) Gamma(2 - omega)/(2 Gamma(5/2 - omega)) of the gas's
//! <c>        = sqrt(pi k T/(2 m))                                     pi/4 of it
//! mu         = 4 k T/((2 - omega)(3 - omega) <sigma g>)               first approximation of Chapman and Enskog, as
//! kappa      = 4 (k/m) mu                                             d p_xy/dt = -p_xy n <sigma g> (2 - omega)(3 - omega)/4
//! ```
//!
//! (the stress that collisions take away is `g_x g_y`, whose mean over directions after them is 0; Prandtl's number is 1/2). What
//! comes through a surface, and how it leaves a wall, is as ever but for z: the flux asks for the part of the velocity along the
//! normal alone.

use std::f64::consts::PI;

use crate::gas::pair::Pair;
use crate::gas::{Species, gamma, transport::Transport};
use crate::model::Model;
use crate::walls::BOLTZMANN;

/// Mean of `sigma g`, m^3/s.
pub fn mean_rate(pair: &Pair, temperature: f64) -> f64 {
    let omega = pair.scatter.omega;
    pair.rate * (2.0 * BOLTZMANN * temperature / pair.reduced_mass).powf(1.0 - omega) * gamma(2.0 - omega)
}

/// Mean speed of molecules of a mass (kg), m/s.
pub fn mean_speed(mass: f64, temperature: f64) -> f64 {
    (0.5 * PI * BOLTZMANN * temperature / mass).sqrt()
}

/// Viscosity, Pa s, and conductivity, W/(m K), of one species: first approximation of Chapman and Enskog.
pub fn transport(species: &Species, temperature: f64) -> [f64; 2] {
    let omega = species.scatter.omega;
    let rate = mean_rate(&Pair::new(species, species, None), temperature);
    let viscosity = 4.0 * BOLTZMANN * temperature / ((2.0 - omega) * (3.0 - omega) * rate);
    [viscosity, 4.0 * BOLTZMANN / species.mass * viscosity]
}

/// Differences of a run with two components: lines of its plan. `temperature` is that of the gas of the input.
pub(crate) fn changes(model: &Model, temperature: f64) -> Vec<(String, String)> {
    let mut lines = vec![
        (
            "2 components".to_owned(),
            "velocities have x and y alone: this is a gas of discs in a plane, not the one of the species".to_owned(),
        ),
        (
            "2 components".into(),
            "2 degrees of freedom, not 3: T = m <c^2>/(2 k), heat capacity k at constant volume, not 3/2 k; ratio of heats 2, not 5/3"
                .into(),
        ),
        (
            "2 components".into(),
            format!(
                "speed of sound {:.3} of the gas's at the same T: a Mach number is smaller by as much at the same speed; shocks are weaker",
                (2.0_f64 / (5.0 / 3.0)).sqrt()
            ),
        ),
    ];
    for (s, kind) in model.species.iter().enumerate() {
        let (own, real) = (model.mean_rate(s, s, temperature), model.pair(s, s).mean_rate(temperature));
        let ([viscosity, conductivity], gas) = (transport(kind, temperature), Transport::new(kind, temperature));
        lines.push((
            "2 components".into(),
            format!("{}: collision rate {:.4} of the gas's at the same density and {temperature} K", kind.name, own / real),
        ));
        lines.push((
            "2 components".into(),
            format!(
                "{}: viscosity {viscosity:.4e} Pa s, {:.3} of the gas's; conductivity {conductivity:.4e} W/(m K), {:.3} of it",
                kind.name,
                viscosity / gas.viscosity,
                conductivity / gas.conductivity
            ),
        ));
    }
    lines.push((
        "2 components".into(),
        "collisions turn to any direction of the plane alike: the exponent alpha of soft spheres is not used".into(),
    ));
    lines.push((
        "2 components".into(),
        "drag, heat transfer and shock coefficients are not comparable with measurements or with programs of three components".into(),
    ));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gas::table::{Model as Molecules, find};

    /// The closed forms against integrals over the distribution of relative speeds, and the ratio of hard spheres by hand, pi/4.
    #[test]
    fn means_are_the_integrals() {
        for (name, molecules) in [("Ar", Molecules::Vss), ("He", Molecules::Vhs), ("Ar", Molecules::Hs)] {
            let gas = find(name, molecules).unwrap();
            let pair = Pair::new(&gas, &gas, None);
            for t in [100.0, 273.15, 900.0] {
                let scale = (2.0 * BOLTZMANN * t / pair.reduced_mass).sqrt();
                let n = 4000;
                let x = |i: usize| (i as f64 + 0.5) * 8.0 / f64::from(n);
                let mean = |f: &dyn Fn(f64) -> f64| {
                    (0..n as usize).map(|i| 2.0 * x(i) * (-x(i) * x(i)).exp() * f(x(i))).sum::<f64>() * 8.0 / f64::from(n)
                };
                // The midpoint rule's error: the integrand grows as x^(3 - 2 omega) from 0, so that a first interval of 0.002 is 1e-6 of
                // it.
                let rate = mean(&|x| pair.sigma_g(scale * x));
                assert!((mean_rate(&pair, t) / rate - 1.0).abs() < 1e-5, "{name} {t}");
                let speed = mean(&|x| (2.0 * BOLTZMANN * t / gas.mass).sqrt() * x);
                assert!((mean_speed(gas.mass, t) / speed - 1.0).abs() < 1e-5, "{name} {t}");
                // n <sigma g g^4>/(64 (k T/m)^2) is the rate of the stress.
                let stress = mean(&|x| pair.sigma_g(scale * x) * (scale * x).powi(4)) / (64.0 * (BOLTZMANN * t / gas.mass).powi(2));
                assert!((transport(&gas, t)[0] * stress / (BOLTZMANN * t) - 1.0).abs() < 1e-5, "{name} {t}");
            }
        }
        let spheres = find("Ar", Molecules::Hs).unwrap();
        let pair = Pair::new(&spheres, &spheres, None);
        assert!((mean_rate(&pair, 300.0) / pair.mean_rate(300.0) / (PI / 4.0) - 1.0).abs() < 1e-12);
    }
}
