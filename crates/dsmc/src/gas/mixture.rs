//! Viscosity and conductivity of a gas of several species, and how fast two of them diffuse into each other.
//!
//! First approximation of Chapman and Enskog with the collision integrals of variable soft spheres: Hirschfelder, Curtiss and Bird,
//! *Molecular Theory of Gases and Liquids* (1954), section 8.2; Muckenfuss and Curtiss, J. Chem. Phys. 29 (1958) 1273, for the
//! conductivity (of a gas in which nothing diffuses). Internal energy diffuses with the molecules (Hirschfelder, J. Chem. Phys. 26
//! (1957) 282).

use super::pair::Pair;
use super::transport::{Transport, schmidt, viscosity};
use super::{Scatter, Species};
use crate::model::ZDefinition;
use crate::walls::BOLTZMANN;

/// Viscosity, Pa s, and conductivity, W/(m K).
pub fn transport(
    species: &[Species],
    pair: impl Fn(usize, usize) -> Pair,
    fractions: &[f64],
    temperature: f64,
    z: ZDefinition,
) -> [f64; 2] {
    let there: Vec<usize> = (0..species.len()).filter(|s| fractions[*s] > 0.0).collect();
    let alone: Vec<Transport> = there.iter().map(|s| Transport::with(&species[*s], temperature, z)).collect();
    let n = there.len();
    let (mut friction, mut conduction) = (vec![vec![0.0; n]; n], vec![vec![0.0; n]; n]);
    for (i, a) in there.iter().enumerate() {
        let x = fractions[*a];
        friction[i][i] += x * x / alone[i].viscosity;
        conduction[i][i] += x * x / translation(species[*a].mass, alone[i].viscosity);
        for (j, b) in there.iter().enumerate().filter(|(j, _)| *j != i) {
            let (pair, y) = (pair(*a, *b), fractions[*b]);
            let (m, o, both) = (species[*a].mass, species[*b].mass, 2.0 * pair.reduced_mass);
            let (own, other) = (m / (m + o), o / (m + o));
            let mu = viscosity(&pair.scatter, both, temperature);
            let [a_star, b_star] = ratios(&pair.scatter);
            friction[i][i] += 2.0 * x * y / mu * own * other * (5.0 / (3.0 * a_star) + o / m);
            friction[i][j] = -2.0 * x * y / mu * own * other * (5.0 / (3.0 * a_star) - 1.0);
            let each = 0.5 * x * y / (translation(both, mu) * a_star);
            let squares = 7.5 * own * own + (6.25 - 3.0 * b_star) * other * other + 4.0 * own * other * a_star;
            conduction[i][i] += each * squares;
            conduction[i][j] = -each * own * other * (13.75 - 3.0 * b_star - 4.0 * a_star);
        }
    }
    let x: Vec<f64> = there.iter().map(|s| fractions[*s]).collect();
    let of = |matrix| solve(matrix, &x).iter().zip(&x).map(|(b, x)| b * x).sum::<f64>();
    let internal = |i: usize| {
        let spread: f64 = (0..n).map(|j| x[j] / diffusion(&pair(there[i], there[j]), temperature)).sum();
        x[i] * BOLTZMANN * (alone[i].heat_capacity - 1.5) / spread
    };
    // Factor by which exchange between modes lowers it, as in each gas by itself.
    let exchanged: f64 = (0..n).map(|i| x[i] * alone[i].conductivity / alone[i].eucken()).sum::<f64>() / x.iter().sum::<f64>();
    [of(friction), (of(conduction) + (0..n).map(internal).sum::<f64>()) * exchanged]
}

/// Coefficient of diffusion of two species, or of molecules of one among others of it, times the number density, 1/(m s).
pub fn diffusion(pair: &Pair, temperature: f64) -> f64 {
    let mass = 2.0 * pair.reduced_mass;
    viscosity(&pair.scatter, mass, temperature) / (mass * schmidt(&pair.scatter))
}

/// Conductivity of the motion of molecules of a mass, W/(m K), by their viscosity.
fn translation(mass: f64, viscosity: f64) -> f64 {
    3.75 * BOLTZMANN / mass * viscosity
}

/// The ratios A* and B* of collision integrals: 1 for hard spheres.
fn ratios(s: &Scatter) -> [f64; 2] {
    [5.0 / (6.0 * schmidt(s)), (3.5 - s.omega) * (0.5 + s.omega) / 3.0]
}

/// Solves a small system whose matrix is symmetric and positive.
fn solve(mut a: Vec<Vec<f64>>, right: &[f64]) -> Vec<f64> {
    let (n, mut x) = (right.len(), right.to_vec());
    for k in 0..n {
        for i in k + 1..n {
            let part = a[i][k] / a[k][k];
            for j in k..n {
                a[i][j] -= part * a[k][j];
            }
            x[i] -= part * x[k];
        }
    }
    for k in (0..n).rev() {
        let known: f64 = (k + 1..n).map(|j| a[k][j] * x[j]).sum();
        x[k] = (x[k] - known) / a[k][k];
    }
    x
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::super::table::{Model, find};
    use super::*;

    fn of(names: [&str; 2], model: Model, part: f64, t: f64) -> [f64; 2] {
        let species = names.map(|n| find(n, model).unwrap());
        let pair = |a: usize, b: usize| Pair::new(&species[a], &species[b], None);
        transport(&species, pair, &[part, 1.0 - part], t, ZDefinition::Jeans)
    }

    /// Two names for one gas are that gas, whatever their shares.
    #[test]
    fn a_mixture_of_equals_is_the_gas() {
        for name in ["Ar", "N2", "CO2"] {
            let alone = Transport::new(&find(name, Model::Vss).unwrap(), 400.0);
            for part in [0.0, 0.3, 1.0] {
                let [mu, k] = of([name; 2], Model::Vss, part, 400.0);
                assert!((mu / alone.viscosity - 1.0).abs() < 1e-12, "{name} {part}: {mu}, {}", alone.viscosity);
                assert!((k / alone.conductivity - 1.0).abs() < 1e-12, "{name} {part}: {k}, {}", alone.conductivity);
            }
        }
    }

    /// Viscosity of hard spheres by the closed form of Chapman and Cowling, *The Mathematical Theory of Non-uniform Gases* (1970),
    /// section 12.5, in their letters, A = 2/5.
    #[test]
    fn two_gases_of_hard_spheres_have_their_closed_form() {
        let (t, k) = (300.0, BOLTZMANN);
        for (names, part) in [(["He", "Ar"], 0.5), (["He", "Xe"], 0.7), (["H2", "N2"], 0.2)] {
            let [a, b] = names.map(|n| find(n, Model::Hs).unwrap());
            let [mu, _] = of(names, Model::Hs, part, t);
            let (x, y, both) = (part, 1.0 - part, a.mass + b.mass);
            let alone = |s: &Species| 5.0 / 16.0 * (s.mass * k * t / PI).sqrt() / s.scatter.diameter.powi(2);
            let d = 0.5 * (a.scatter.diameter + b.scatter.diameter);
            // Their E is 2/3 of the masses times n D.
            let spread = 3.0 / (8.0 * d * d) * (k * t * both / (2.0 * PI * a.mass * b.mass)).sqrt();
            let e = 2.0 / 3.0 * both * spread;
            assert!((diffusion(&Pair::new(&a, &b, None), t) / spread - 1.0).abs() < 1e-12, "{names:?}");
            let a_cc = 0.4;
            let (r1, r2) = (2.0 / 3.0 + a.mass * a_cc / b.mass, 2.0 / 3.0 + b.mass * a_cc / a.mass);
            let r12_above = e / 2.0 * (1.0 / alone(&a) + 1.0 / alone(&b)) + 2.0 * (2.0 / 3.0 - a_cc);
            let (m1, m2) = (a.mass / both, b.mass / both);
            let r12 = e / (2.0 * alone(&a) * alone(&b)) + 4.0 * a_cc / (3.0 * e * m1 * m2);
            let found = (x * x * r1 + y * y * r2 + x * y * r12_above) / (x * x * r1 / alone(&a) + y * y * r2 / alone(&b) + x * y * r12);
            assert!((mu / found - 1.0).abs() < 1e-9, "{names:?}: {mu}, {found}");
        }
    }
}
