//! Species that spread into each other: coefficients of diffusion against kinetic theory, with cross-sections from numbers put down
//! here, so that the rule by which two diameters and exponents are mixed is tested too. Seed 20261121.

use std::f64::consts::{PI, TAU};

use crate::common::{BOX, K, close, flow, run};
use zellige_dsmc::config::{Config, SpeciesConfig};
use zellige_dsmc::flow::Flow;
use zellige_dsmc::particles::Particles;
use zellige_engine::rng::{Philox, uniform_f64};

/// Diameter (m), omega, alpha, mass (kg) of a molecule, at 273.15 K.
type Molecule = [f64; 4];
const ARGON: Molecule = [4.11e-10, 0.81, 1.40, 66.3e-27];
const HELIUM: Molecule = [2.30e-10, 0.66, 1.26, 6.65e-27];

/// Coefficient of diffusion times number density by the first approximation of Chapman and Enskog, `3 k T/(16 m_r Omega)`, with the
/// collision integral summed up: `Omega = sqrt(k T/(2 pi m_r)) int exp(-y^2) y^5 sigma(g) <1 - cos chi> dy`, whose last mean is
/// `2/(alpha + 1)`.
fn diffusion(a: Molecule, b: Molecule, temperature: f64) -> f64 {
    let [d, omega, alpha] = [0, 1, 2].map(|k| 0.5 * (a[k] + b[k]));
    let reduced = a[3] * b[3] / (a[3] + b[3]);
    let gamma = zellige_dsmc::gas::gamma(2.5 - omega);
    let sigma = |g: f64| PI * d * d * (2.0 * K * 273.15 / (reduced * g * g)).powf(omega - 0.5) / gamma;
    const N: usize = 4000;
    let y = |i: usize| (i as f64 + 0.5) * 8.0 / N as f64;
    let speed = (2.0 * K * temperature / reduced).sqrt();
    let each = |y: f64| (-y * y).exp() * y.powi(5) * sigma(speed * y) * 2.0 / (alpha + 1.0);
    let integral = (0..N).map(|i| each(y(i))).sum::<f64>() * 8.0 / N as f64;
    3.0 * K * temperature / (16.0 * reduced * (K * temperature / (2.0 * PI * reduced)).sqrt() * integral)
}

/// Amplitude of the wave in the share of the first species.
fn amplitude(gas: &mut Flow) -> f64 {
    let p = gas.stages.particles().unwrap();
    let cells = gas.model.grid.cells[0] as f64;
    let wave = |i: usize| (TAU * (f64::from(p.cell[i]) + f64::from(p.offset[0][i])) / cells).sin();
    let sum: f64 = (0..p.len()).map(|i| if p.species[i] == 0 { wave(i) } else { -wave(i) }).sum();
    sum / p.len() as f64
}

/// Half of each, in a wave along a periodic box at rest with the same pressure everywhere: it dies away as `exp(-D k^2 t)`.
fn spreads(species: &[SpeciesConfig; 2], [a, b]: [Molecule; 2], particles: f64) {
    let expected = diffusion(a, b, BOX.1) / BOX.0;
    // A length of diffusion between two collisions or so; waves of 60 of them.
    let (slow, fast) = (a[3].max(b[3]), a[3].min(b[3]));
    let thermal = (2.0 * K * BOX.1 / fast).sqrt();
    let path = 2.0 * expected / (8.0 * K * BOX.1 / (PI * (slow * fast).sqrt())).sqrt();
    let cells = 240;
    let mut config = Config::new(vec![cells], vec![60.0 * path], "Ar", BOX.0, BOX.1);
    config.species = species.to_vec();
    config.species.iter_mut().for_each(|s| s.fraction = 0.5);
    config.particles_per_cell = Some(particles / cells as f64);
    config.dt = 0.3 * path / thermal;
    config.steps = 1 << 20;
    let mut gas = flow(&config, 1);
    let before = gas.stages.particles().unwrap();
    // Identical particles, each of a species that is drawn by its position; velocities go with the mass.
    let (mut waved, dice) = (Particles::default(), Philox::new(0xfff2, 1));
    for i in 0..before.len() {
        let wave = (TAU * (f64::from(before.cell[i]) + f64::from(before.offset[0][i])) / cells as f64).sin();
        let [first, second, ..] = dice.draw(0, i as u64);
        let chosen = u16::from(uniform_f64(first, second) >= 0.5 + 0.45 * wave);
        let scale = ([a, b][usize::from(before.species[i])][3] / [a, b][usize::from(chosen)][3]).sqrt() as f32;
        let velocity = [0, 1, 2].map(|c| before.velocity[c][i] * scale);
        waved.push(before.cell[i], chosen, [before.offset[0][i], before.offset[1][i]], velocity, None, None);
    }
    gas.stages.clear().unwrap();
    gas.stages.insert(&waved).unwrap();
    // Until the flow of each follows its gradient: some collisions.
    run(&mut gas, 30);
    let first = amplitude(&mut gas);
    let rate = expected * (TAU / (60.0 * path)).powi(2);
    let steps = (0.9 / (rate * config.dt)).round();
    run(&mut gas, steps as u64);
    let last = amplitude(&mut gas);
    let gone = (first / last).ln();
    // Of n particles the noise of an amplitude is 1/sqrt(2 n); what is there at the beginning dies away with the wave.
    let sigma = (1.0 - (-2.0 * gone).exp()).sqrt() / (2.0 * before.len() as f64).sqrt() / last / gone;
    // The first approximation is up to 2 % low, a wave of 60 paths 1 % slower than a long one, cells of a quarter of a path and steps of a third 1 %
    // faster. Diameters mixed by their geometric mean make 8.6 %, an alpha of 1 in place of 1.33 14 %, a species' own cross-section 39 %.
    close(&format!("{} in {}", config.species[0].name, config.species[1].name), gone / (steps * config.dt), rate, 0.04, sigma);
    assert!(sigma < 0.01, "{sigma}");
}

/// Argon among argon: two names for one molecule.
#[test]
fn a_gas_diffuses_in_itself() {
    let other = SpeciesConfig {
        mass: Some(66.3e-27),
        diameter: Some(4.11e-10),
        omega: Some(0.81),
        alpha: Some(1.4),
        ..SpeciesConfig::named("argon")
    };
    spreads(&[SpeciesConfig::named("Ar"), other], [ARGON; 2], 2e5);
}

/// Helium in argon.
#[test]
fn two_gases_diffuse_into_each_other() {
    spreads(&[SpeciesConfig::named("He"), SpeciesConfig::named("Ar")], [HELIUM, ARGON], 2e5);
}
