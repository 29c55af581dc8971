//! Plates whose distance is a few hundredths of a free path, and plates so far apart that the gas slips along them:
//! `cargo test --test dsmc -- --ignored plates_`. Seed 20261121.

use crate::common::{K, close, flow, gap, on_plate, run};
use crate::kinetic::{delta, heat, shear};
use zellige_dsmc::gas::table::Model as Molecules;
use zellige_dsmc::gas::transport::Transport;
use zellige_dsmc::sampling::VALUES;

/// At Knudsen number 200, with collisions: the free-molecular heat and shear less what the few collisions take, 0.13 and 0.25 %.
/// Half a per cent and four errors of 0.1 %.
#[test]
#[ignore = "half a minute"]
fn plates_without_room_for_collisions_have_the_free_molecular_fluxes() {
    let long = |temperatures, speeds| {
        let (mut config, length) = gap(200.0, 20, temperatures, speeds);
        config.dt *= 4.0;
        (config.steps, config.sampling.start) = (40_000, Some(400));
        let mut gas = flow(&config, 1);
        run(&mut gas, config.steps);
        assert!(gas.ledger().unwrap().collisions > 1000);
        (gas, length)
    };
    let (t1, t2): (f64, f64) = (450.0, 150.0);
    let (gas, length) = long([t1, t2], [0.0; 2]);
    let (m, n) = (gas.model.species[0].mass, 1e20);
    let free = 2.0 * K * n * (2.0 * K / (std::f64::consts::PI * m)).sqrt() * (t1 * t2).sqrt() * (t1 - t2) / (t1.sqrt() + t2.sqrt());
    let [lower, upper] = [0, 1].map(|side| gas.samples.surface(&gas.model, side)[4]);
    let (found, error) = (0.5 * (upper[0] - lower[0]), 0.5 * (upper[1] + lower[1]));
    close("heat", found, free * heat(delta(&gas, length, 273.15)), 0.005, error / free);
    assert!(error < 0.002 * free, "{error}");
    let (gas, length) = long([273.15; 2], [-300.0, 300.0]);
    let free = n * m * 600.0 * (K * 273.15 / (2.0 * std::f64::consts::PI * m)).sqrt();
    let (_, [found, error]) = on_plate(&gas);
    close("shear", found, free * shear(delta(&gas, length, 273.15)), 0.005, error / free);
    assert!(error < 0.002 * free, "{error}");
}

/// Handbooks take, between the free-molecular flux and that of a continuum, `1/(1/a + 1/b)`: against the kinetic equation too much
/// by up to a tenth, as it has no room for slip and jumps (5 % at a rarefaction of 0.3 already, so 5 % cannot be asked of the gas).
#[test]
fn fluxes_between_plates_are_near_the_sum_of_resistances() {
    for rarefaction in [0.05, 0.3, 1.0, 3.0, 10.0] {
        let simple = 1.0 / (1.0 + rarefaction / std::f64::consts::PI.sqrt());
        let off = simple / shear(rarefaction) - 1.0;
        let simple = 1.0 / (1.0 + rarefaction * 8.0 / (15.0 * std::f64::consts::PI.sqrt()));
        let warm = simple / heat(rarefaction) - 1.0;
        println!("{rarefaction}: shear off by {off:.4}, heat by {warm:.4}");
        assert!(off.abs() < 0.1 && warm.abs() < 0.1, "{rarefaction}: shear off by {off}, heat by {warm}");
    }
}

/// Hard spheres slip along a diffuse wall as if it stood 0.987 viscous lengths `mu v0/p` behind itself, 1.11 free paths
/// `sqrt(pi)/2 mu v0/p` (Boltzmann's equation linearised: Ohwada, Sone and Aoki, Phys. Fluids A 1 (1989) 1588; the model of
/// Bhatnagar, Gross and Krook has 1.016). Twenty free paths between the plates, of which the middle twelve are looked at, where
/// nothing is left of the layers at the walls. Friction warms the gas, by 2 %: the speed is linear in `int dx/mu`. 5 %, and four
/// errors of 3 %.
#[test]
#[ignore = "a minute"]
fn plates_far_apart_let_the_gas_slip_by_its_known_length() {
    let (cells, kn, speed) = (100, 0.05, 120.0);
    let (mut config, _) = gap(kn, cells, [273.15; 2], [-speed, speed]);
    config.collisions.model = Molecules::Hs;
    let path = Transport::new(&zellige_dsmc::gas::table::find("Ar", Molecules::Hs).unwrap(), 273.15).free_path / 1e20;
    let length = path / kn;
    config.grid.size = vec![length];
    config.particles_per_cell = Some(80.0);
    config.dt = 0.2 * path / 340.0;
    const WINDOWS: u64 = 16;
    let each = 12_000;
    (config.steps, config.sampling.start, config.sampling.window) = (each * (WINDOWS + 1), Some(each), Some(each));
    config.sampling.batches = 2;
    let mut gas = flow(&config, 1);
    run(&mut gas, each);
    let viscous = length / delta(&gas, length, 273.15);
    let found: Vec<f64> = (0..WINDOWS)
        .map(|_| {
            run(&mut gas, each);
            assert!(gas.samples.full);
            let values = gas.values();
            // Of hard spheres `mu ~ sqrt T`: the position by what lies before it, from the middle on.
            let thin = |c: usize| (273.15 / values[c * VALUES + 4]).sqrt() / cells as f64;
            let half = 0.5 * (0..cells).map(thin).sum::<f64>();
            let mut before = -half;
            let (mut xu, mut xx) = (0.0, 0.0);
            for c in 0..cells {
                let x = before + 0.5 * thin(c);
                before += thin(c);
                if (cells / 5..4 * cells / 5).contains(&c) {
                    (xu, xx) = (xu + x * values[c * VALUES + 2], xx + x * x);
                }
            }
            // In gaps: where a line through the middle has the speed of the plate.
            (speed / (xu / xx) - half) * length / viscous
        })
        .collect();
    let n = WINDOWS as f64;
    let mean = found.iter().sum::<f64>() / n;
    let error = (found.iter().map(|f| (f - mean).powi(2)).sum::<f64>() / (n * (n - 1.0))).sqrt();
    println!("a slip of {mean} +- {error} viscous lengths, {} free paths", mean * 2.0 / std::f64::consts::PI.sqrt());
    close("slip", mean, 0.987, 0.05, error / mean);
    assert!(error < 0.04, "{error}");
}
