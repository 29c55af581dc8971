//! Argon and helium through open sides: each species by its own closed form. Seed 20261121.

use crate::common::{BOX, K, argon, close, flow, run};
use zellige_dsmc::config::sides::{SideConfig, SideInflow, SideWord};
use zellige_dsmc::config::{Config, GasConfig, SpeciesConfig, Value};
use zellige_dsmc::model::Scheme;
use zellige_dsmc::sampling::{OF_SPECIES, VALUES, width};

/// Parts of argon and helium.
const PARTS: [f64; 2] = [0.3, 0.7];

fn mix(config: &mut Config) {
    let named = |(name, part): (&str, f64)| SpeciesConfig { fraction: part, ..SpeciesConfig::named(name) };
    config.species = ["Ar", "He"].into_iter().zip(PARTS).map(named).collect();
}

/// A box with four open sides stays as the mixture around it, in a fast oblique stream without collisions and in a slow one with
/// them: of each species the density, the velocity and the temperature. With the flux of one species by the mass of the other, or
/// of the mean mass, densities would be off by factors.
#[test]
fn open_sides_keep_a_mixture_as_it_is() {
    const WINDOWS: usize = 12;
    for (scheme, velocity) in [(Scheme::None, [1500.0, -900.0, 200.0]), (Scheme::Ntc, [300.0, 150.0, -80.0])] {
        let mut config = argon(10, 20.0);
        mix(&mut config);
        config.collisions.scheme = scheme;
        config.gas.velocity = velocity;
        config.boundary.all = Some(SideConfig::Word(SideWord::Stream));
        // Flights without collisions are exact at any step. With them, density of a species spreads by diffusion: 8e-7 s from the middle
        // to the sides, two fifths of a window.
        let (steps, dt) = if scheme == Scheme::None { (30, 4e-8) } else { (140, 1.4e-8) };
        (config.dt, config.sampling.start, config.sampling.window) = (dt, Some(steps), Some(steps));
        config.sampling.batches = 2;
        let mut gas = flow(&config, 1);
        run(&mut gas, steps);
        // Means over the cells, window by window.
        let windows: Vec<Vec<f64>> = (0..WINDOWS)
            .map(|_| {
                run(&mut gas, steps);
                assert!(gas.samples.full);
                let (values, width) = (gas.all_values(), width(&gas.model));
                let mean = |i: usize| values.chunks_exact(width).map(|v| v[i]).sum::<f64>() / 100.0;
                (VALUES..VALUES + 2 * OF_SPECIES.len()).map(mean).collect()
            })
            .collect();
        for (s, part) in PARTS.into_iter().enumerate() {
            let thermal = (2.0 * K * BOX.1 / gas.model.species[s].mass).sqrt();
            let [x, y, z] = velocity;
            let expected = [part * BOX.0, x, y, z, BOX.1];
            let scale = [part * BOX.0, thermal, thermal, thermal, BOX.1];
            for (q, (expected, scale)) in expected.into_iter().zip(scale).enumerate() {
                let of = |w: &Vec<f64>| w[s * OF_SPECIES.len() + q];
                let mean = windows.iter().map(of).sum::<f64>() / WINDOWS as f64;
                let square = windows.iter().map(|w| (of(w) - mean).powi(2)).sum::<f64>() / (WINDOWS - 1) as f64;
                let (off, error) = ((mean - expected) / scale, (square / WINDOWS as f64).sqrt() / scale);
                let what = format!("{scheme:?} {velocity:?}, species {s}, value {q}: off by {off:.1e} +- {error:.1e}");
                println!("{what}");
                // Student's t with 11 degrees of freedom exceeds 5.5 in one of 20 comparisons with a probability of 0.4 %.
                assert!(off.abs() < 5.5 * error, "{what}");
                assert!(error < if scheme == Scheme::None { 0.005 } else { 0.012 }, "{what}");
            }
        }
        let ledger = gas.ledger().unwrap();
        assert_eq!(ledger.there(), gas.totals().unwrap().particles);
    }
}

/// The mixture on one side, vacuum on the other, no collisions: of each species half the density, half a Maxwellian, the flux
/// `n c/4` with its own mean speed, three times as large for helium as for argon.
#[test]
fn a_mixture_effuses_each_species_with_its_own_speed() {
    let mut config = Config::new(vec![10], vec![1e-3], "Ar", 1e20, 300.0);
    mix(&mut config);
    config.collisions.scheme = Scheme::None;
    let inflow = GasConfig { density: 1e20, temperature: 300.0, velocity: [0.0; 3] };
    config.boundary.x_lo = Some(SideConfig::Inflow(SideInflow { inflow }));
    config.boundary.x_hi = Some(SideConfig::Word(SideWord::Vacuum));
    config.initial.density = Some(Value::Number(0.0));
    config.particles_per_cell = Some(200.0);
    // As for argon alone (`flows.rs`): the slowest are the last to arrive.
    (config.dt, config.steps, config.sampling.start) = (6e-7, 5000, Some(2500));
    let mut gas = flow(&config, 1);
    run(&mut gas, config.steps);
    let (flows, values, width) = (gas.samples.flows(&gas.model), gas.all_values(), width(&gas.model));
    for (s, part) in PARTS.into_iter().enumerate() {
        let name = ["Ar", "He"][s];
        let mass = gas.model.species[s].mass;
        let mean_speed = (8.0 * K * 300.0 / (std::f64::consts::PI * mass)).sqrt();
        let expected = mass * part * 1e20 * mean_speed / 4.0;
        // Lines of a section: all, argon, helium. What crosses a section crosses the next one soon.
        let [through, error] = [0, 1].map(|k| flows.chunks_exact(3).map(|lines| lines[1 + s][k]).sum::<f64>() / 10.0);
        close(&format!("flux of {name}"), through, expected, 0.0, error / expected);
        assert!(error < 0.005 * expected, "the flux of {name} is known to {}", error / expected);
        let mean = |q: usize| values.chunks_exact(width).map(|v| v[VALUES + s * OF_SPECIES.len() + q]).sum::<f64>() / 10.0;
        close(&format!("density of {name}"), mean(0), 0.5 * part * 1e20, 0.008, 0.0);
        close(&format!("velocity of {name}"), mean(1), 0.5 * mean_speed, 0.008, 0.0);
    }
}
