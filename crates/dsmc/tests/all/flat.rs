//! The gas of two velocity components against its own closed forms (`src/planar.rs`), and that nothing ever moves along z. Seed
//! 20261121.

use crate::common::{BOX, K, argon, close, flow, gap, mean, near, on_plate, run, temperatures};
use crate::twins_flows::busy_planar;
use zellige_dsmc::config::Config;
use zellige_dsmc::config::sides::{SideConfig, SideWord};
use zellige_dsmc::flow::Flow;
use zellige_dsmc::gas::table::Model as Molecules;
use zellige_dsmc::model::Scheme;
use zellige_dsmc::planar;
use zellige_engine::checkpoint::{Reader, Writer};

const SCHEMES: [Scheme; 3] = [Scheme::Ntc, Scheme::Majorant, Scheme::Pairing];

fn two(mut config: Config) -> Config {
    config.velocity_components = 2;
    config
}

/// Not even a rounding of a part along z.
fn still(gas: &mut Flow) {
    let p = gas.stages.particles().unwrap();
    assert!(p.len() > 1000 && p.velocity[2].iter().all(|z| *z == 0.0));
    assert!(p.velocity[..2].iter().all(|v| v.iter().any(|v| *v != 0.0)));
    assert_eq!(gas.totals().unwrap().momentum[2], 0.0);
}

/// Half of `N n <sigma g>` collisions a second, with the mean over speeds in a plane: 0.900 of the gas's with argon.
#[test]
fn collisions_are_as_frequent_as_in_a_plane() {
    for scheme in SCHEMES {
        let mut config = two(argon(45, 10.0));
        config.collisions.scheme = scheme;
        let mut gas = flow(&config, 1);
        run(&mut gas, 60);
        let (before, steps) = (gas.ledger().unwrap(), 200);
        run(&mut gas, steps);
        let found = (gas.ledger().unwrap().collisions - before.collisions) as f64;
        let t = gas.totals().unwrap();
        let n = t.particles as f64;
        let temperature = t.translation / (K * n * gas.model.weight);
        // Of 20250 particles with two components each: 1/sqrt(N).
        close(&format!("{scheme:?}: temperature"), temperature, BOX.1, 0.0, n.sqrt().recip());
        let density = n * gas.model.weight / (gas.model.grid.volume() * gas.model.grid.len() as f64);
        let expected = 0.5 * n * density * planar::mean_rate(gas.model.pair(0, 0), temperature) * gas.model.dt * steps as f64;
        close(&format!("{scheme:?}: collisions"), found, expected, 0.005, expected.sqrt().recip());
        // Far below that of three components.
        let gas_rate = gas.model.pair(0, 0).mean_rate(temperature);
        close("ratio", planar::mean_rate(gas.model.pair(0, 0), temperature) / gas_rate, 0.9001, 1e-3, 0.0);
        still(&mut gas);
    }
}

/// x and y come to one temperature: `d ln(Txx - Tyy)/d(collisions per particle) = -(2 - omega)(3 - omega)/4`, and with it the
/// viscosity.
#[test]
fn stress_relaxes_as_the_viscosity_of_a_plane_has_it() {
    for (model, omega) in [(Molecules::Vss, 0.81), (Molecules::Hs, 0.5)] {
        let mut config = two(argon(60, 100.0));
        config.collisions.model = model;
        config.initial.temperatures = Some([350.0, 200.0, 0.0]);
        let mut gas = flow(&config, 1);
        let n = gas.totals().unwrap().particles as f64;
        let ([x, y, z], ..) = temperatures(&mut gas);
        assert_eq!(z, 0.0);
        let first = x - y;
        run(&mut gas, 7);
        let ([x, y, _], ..) = temperatures(&mut gas);
        let collisions = 2.0 * gas.ledger().unwrap().collisions as f64 / n;
        let slope = -(2.0 - omega) * (3.0 - omega) / 4.0;
        // Each difference has a standard deviation of 2 T/sqrt(N), here of the one that should be left; the first approximation itself is good
        // to about 2 % so far from equilibrium (anisotropy 0.55 of T).
        let sigma = 275.0 * 2.0 / n.sqrt() / (first * (slope * collisions).exp()) / (slope * collisions).abs();
        near(&format!("{model:?}"), ((x - y) / first).ln() / collisions, slope, 0.03, sigma);
        // Of the difference exp(-5) is left, 0.3 % of T.
        run(&mut gas, 55);
        let ([x, y, z], ..) = temperatures(&mut gas);
        close(&format!("{model:?}: x over y"), x, y, 0.004, 2.0 / n.sqrt());
        assert_eq!(z, 0.0);
    }
}

/// A gas at rest between diffuse walls presses with `n k T` and has the temperature of the walls; between two temperatures it
/// carries `3/2 k (T1 - T2)` a molecule, not `2 k (T1 - T2)`, of the same flux.
#[test]
fn walls_feel_two_degrees_of_freedom() {
    let free = |config: Config| {
        let mut config = two(config);
        config.collisions.scheme = Scheme::None;
        config.dt *= 4.0;
        config.steps = 3000;
        config.sampling.start = Some(375);
        let mut gas = flow(&config, 1);
        run(&mut gas, config.steps);
        still(&mut gas);
        gas
    };
    let gas = free(gap(1.0, 20, [450.0, 150.0], [0.0; 2]).0);
    let (m, n) = (gas.model.species[0].mass, 1e20);
    let (t1, t2): (f64, f64) = (450.0, 150.0);
    let flux = n * 2.0 * (t1 * t2).sqrt() / (t1.sqrt() + t2.sqrt()) * (K / (2.0 * std::f64::consts::PI * m)).sqrt();
    let ([heat, error], _) = on_plate(&gas);
    close("heat", -heat, 1.5 * K * flux * (t1 - t2), 0.005, error / heat.abs());
    let gas = free(gap(1.0, 20, [273.15; 2], [0.0; 2]).0);
    let pressure = n * K * 273.15;
    // The force on the lower plate is along -x.
    let [force, error] = gas.samples.surface(&gas.model, 0)[1];
    close("pressure on the wall", -force, pressure, 0.005, error / pressure);
    close("pressure within", mean(&gas, 8), pressure, 0.005, error / pressure);
    close("temperature within", mean(&gas, 4), 273.15, 0.005, error / pressure);
    close("stress xx", mean(&gas, 9), pressure, 0.005, error / pressure);
    close("stress yy", mean(&gas, 10), pressure, 0.005, error / pressure);
}

/// Gas through open sides fills the domain with its density, temperature and velocity.
#[test]
fn open_sides_keep_a_plane_gas() {
    for velocity in [[0.0; 3], [200.0, 100.0, 0.0], [1500.0, -900.0, 0.0]] {
        let mut config = two(argon(20, 20.0));
        config.gas.velocity = velocity;
        config.boundary.all = Some(SideConfig::Word(SideWord::Stream));
        config.dt = if velocity[0] > 1000.0 { 4e-9 } else { 1.4e-8 };
        config.steps = 700;
        config.sampling.start = Some(100);
        let mut gas = flow(&config, 1);
        run(&mut gas, config.steps);
        // As in `open_sides_keep_the_gas_that_flows_through`.
        let sigma = 4.3 / (gas.samples.closed() as f64 * 400.0 * 20.0).sqrt();
        close(&format!("{velocity:?}: density"), mean(&gas, 0), BOX.0, 0.003, sigma);
        close(&format!("{velocity:?}: temperature"), mean(&gas, 4), BOX.1, 0.003, sigma);
        let speed = (2.0 * K * BOX.1 / gas.model.species[0].mass).sqrt();
        for c in 0..2 {
            let found = mean(&gas, 1 + c);
            assert!((found - velocity[c]).abs() < speed * (4.0 * sigma).max(0.003), "{found}, expected {}", velocity[c]);
        }
        still(&mut gas);
    }
}

/// Streams, sources, walls that scatter as Cercignani, Lampis and Lord have it, bodies: nothing along z; the same on any number of
/// threads and after a restart.
#[test]
fn nothing_moves_along_z_and_no_bit_changes() {
    let config = busy_planar(Scheme::Ntc);
    let mut one = flow(&config, 1);
    run(&mut one, 60);
    let mut three = flow(&config, 3);
    run(&mut three, 33);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let mut writer = Writer::create(&path, "dsmc").unwrap();
    three.save(&mut writer).unwrap();
    writer.finish().unwrap();
    let mut resumed = flow(&config, 2);
    resumed.restore(&Reader::open(&path, "dsmc").unwrap()).unwrap();
    run(&mut resumed, 27);
    run(&mut three, 27);
    let expected = one.stages.particles().unwrap();
    for other in [&mut three, &mut resumed] {
        assert_eq!(other.stages.particles().unwrap(), expected);
        assert_eq!((other.values(), other.ledger().unwrap()), (one.values(), one.ledger().unwrap()));
    }
    still(&mut one);
    for surface in 0..4 + one.model.geometry.segments().len() {
        assert_eq!(one.samples.surface(&one.model, surface)[3][0], 0.0, "force along z on surface {surface}");
    }
}
