//! Viscosity and conductivity, and how cells and steps that are too coarse raise them:
//! `cargo test --test dsmc -- --ignored transport`. Seed 20261121.

use std::f64::consts::{PI, TAU};

use crate::common::{close, flow, gap, run};
use zellige_dsmc::config::{Config, Value, WallConfig};
use zellige_dsmc::flow::Flow;
use zellige_dsmc::gas::table::{Model as Molecules, find};
use zellige_dsmc::gas::transport::Transport;
use zellige_dsmc::model::Partner;
use zellige_dsmc::sampling::VALUES;

/// Length of the waves in free paths, and their amplitudes: temperature over its mean, velocity over v0.
const WAVE: f64 = 28.0;
const WARMER: f64 = 0.25;
const FASTER: f64 = 0.3;

/// A periodic box of hard spheres in which temperature varies as a sine at the same pressure and the velocity across as another
/// one. Both die away by conduction and friction alone. Cells are `dx` free paths wide, a step takes a molecule of speed v0 `dt` of
/// them.
fn waves(dx: f64, dt: f64, particles: f64) -> Flow {
    let (n, t) = (1e20, 273.15);
    let argon = find("Ar", Molecules::Hs).unwrap();
    let (path, v0) = (Transport::new(&argon, t).free_path / n, argon.most_probable_speed(t));
    let cells = (WAVE / dx).round();
    let mut config = Config::new(vec![cells as usize], vec![WAVE * path], "Ar", n, t);
    (config.collisions.model, config.collisions.partner) = (Molecules::Hs, Partner::Random);
    let wave = |a: f64, b: f64| Value::Expression(format!("{a} + {b}*sin(tau*x/lx)"));
    config.initial.density = Some(Value::Expression(format!("{n:e}/(1 + {WARMER}*sin(tau*x/lx))")));
    config.initial.temperature = Some(wave(t, t * WARMER));
    config.initial.velocity = Some([Value::Number(0.0), wave(0.0, FASTER * v0), Value::Number(0.0)]);
    config.particles_per_cell = Some(particles / cells);
    config.dt = dt * path / v0;
    config.steps = 1 << 20;
    flow(&config, 2)
}

/// Amplitudes of the waves: of the entropy `e - (5/2) n`, in which no sound is, and of the momentum.
fn amplitudes(gas: &mut Flow) -> [f64; 2] {
    let p = gas.stages.particles().unwrap();
    let (cells, v0) = (gas.model.grid.cells[0] as f64, gas.model.species[0].most_probable_speed(273.15));
    let mut sums = [0.0; 2];
    for i in 0..p.len() {
        let wave = (TAU * (f64::from(p.cell[i]) + f64::from(p.offset[0][i])) / cells).sin();
        let v = [0, 1, 2].map(|c| f64::from(p.velocity[c][i]) / v0);
        sums[0] += wave * (v.iter().map(|v| v * v).sum::<f64>() - 2.5);
        sums[1] += wave * v[1];
    }
    sums.map(|s| 2.0 * s / p.len() as f64)
}

/// Rates at which the waves die away, in v0 by free path, and their relative errors: fluctuations that came up meanwhile.
fn rates(dx: f64, dt: f64, particles: f64) -> [[f64; 2]; 2] {
    let mut gas = waves(dx, dt, particles);
    let first = amplitudes(&mut gas);
    let steps = (30.0 / dt).round();
    run(&mut gas, steps as u64);
    let last = amplitudes(&mut gas);
    // Variances of `e - 5/2` and of a velocity are 5/2 and 1/2.
    let noise = [2.5, 0.5].map(|v: f64| (2.0 * v / particles).sqrt());
    [0, 1].map(|k| {
        let gone = (first[k] / last[k]).ln();
        [gone / (steps * dt), noise[k] * (1.0 - (-2.0 * gone).exp()).sqrt() / last[k].abs() / gone]
    })
}

/// In cells of width dx and steps of dt conductivity and viscosity are larger by
///
/// ```text
/// 1 + 32/(225 pi) (dx/lambda)^2 + 64/(675 pi) (v0 dt/lambda)^2        1 + 16/(45 pi) (dx/lambda)^2 + 32/(150 pi) (v0 dt/lambda)^2
/// ```
///
/// of hard spheres with any partner of the cell (Alexander, Garcia and Alder, Phys. Fluids 10 (1998) 1540; Hadjiconstantinou, Phys.
/// Fluids 12 (2000) 2634; Garcia and Wagner, Phys. Fluids 12 (2000) 2621). Rates of coarse runs over that of a fine one, in which
/// all else is the same. Those of the fine one are the first approximation's within 12 %: waves of 28 free paths are not quite
/// long.
#[test]
#[ignore = "minutes"]
fn transport_grows_with_cells_and_steps_as_theory_has_it() {
    let particles = 2e6;
    let theory = |dx: f64, dt: f64| {
        let [a, b] = [dx * dx / PI, dt * dt / PI];
        [1.0 + 32.0 / 225.0 * a + 64.0 / 675.0 * b, 1.0 + 16.0 / 45.0 * a + 32.0 / 150.0 * b]
    };
    let fine = (0.25, 0.2);
    let found = rates(fine.0, fine.1, particles);
    // mu/rho of hard spheres is 5 pi/32 of the mean speed times the free path; conduction at a pressure goes as 3/2 of it.
    let friction = 5.0 * PI / 32.0 * 2.0 / PI.sqrt() * (TAU / WAVE).powi(2);
    for (k, (name, expected)) in [("conduction", 1.5 * friction), ("friction", friction)].into_iter().enumerate() {
        close(&format!("rate by {name}"), found[k][0], expected, 0.12, found[k][1]);
    }
    let coarse = [(1.0, 0.2), (0.25, 1.0), (2.0, 0.2), (0.25, 2.0)].map(|(dx, dt)| (dx, dt, rates(dx, dt, particles)));
    for (dx, dt, coarse) in coarse {
        for (k, name) in ["conductivity", "viscosity"].into_iter().enumerate() {
            let ratio = coarse[k][0] / found[k][0];
            let sigma = coarse[k][1].hypot(found[k][1]);
            let expected = theory(dx, dt)[k] / theory(fine.0, fine.1)[k];
            println!("{name}, cells {dx}, steps {dt}: {ratio:.4} +- {sigma:.4}, theory {expected:.4}");
            // Terms of fourth order, which the theory lacks, are some per cent at 1 and take up to four tenths of the rise at 2.
            let least = if dx.max(dt) > 1.5 { 1.0 + 0.6 * (expected - 1.0) } else { expected - 0.02 };
            assert!(ratio > least - 4.0 * sigma && ratio < expected + 0.02 + 4.0 * sigma, "{name}, {dx}, {dt}: {ratio} for {expected}");
        }
    }
}

/// Fourier's law in the middle of twenty free paths between 350 and 200 K: with `K ~ T^omega` the heat flux is that of a slope of
/// `T^(1 + omega)`.
///
/// The flux of the cells is that after collisions, in which it loses `2 dt p/(3 mu)` of itself and which flights give back: less by
/// half of that than what passes through, which walls know.
#[test]
#[ignore = "a minute"]
fn transport_of_heat_between_plates_follows_fouriers_law() {
    let cells = 120;
    let (mut config, length) = gap(0.05, cells, [350.0, 200.0], [0.0; 2]);
    config.particles_per_cell = Some(40.0);
    // A seventh of a free path.
    config.dt = 0.15 * 0.05 * length / 340.0;
    (config.steps, config.sampling.start) = (400_000, Some(10_000));
    let mut gas = flow(&config, 1);
    run(&mut gas, config.steps);
    let values = gas.values();
    let inner: Vec<usize> = (cells / 4..3 * cells / 4).collect();
    let mean = |f: &dyn Fn(usize) -> f64| inner.iter().map(|c| f(*c)).sum::<f64>() / inner.len() as f64;
    let argon = &gas.model.species[0];
    let power = 1.0 + argon.scatter.omega;
    let x = |c: usize| (c as f64 + 0.5) / cells as f64 - 0.5;
    let t = |c: usize| (values[c * VALUES + 4] / 273.15).powf(power);
    let slope = 273.15 / power * mean(&|c| x(c) * t(c)) / mean(&|c| x(c) * x(c)) / length;
    let transport = Transport::new(argon, 273.15);
    let found = [0, 1].map(|side| gas.samples.surface(&gas.model, side)[4]);
    let (wall, error) = (0.5 * (found[1][0] - found[0][0]), 0.5 * (found[0][1] + found[1][1]) / found[1][0]);
    // 1 % for the first approximation of the conductivity, cells and steps, and 1 % for the second order in the gradient: 1.3 +- 0.3 % too
    // little is found in 800 000 steps. The flux and the slope are known to the same each.
    close("conductivity", -wall / slope, transport.conductivity, 0.02, error * 2.0_f64.sqrt());
    let rate = mean(&|c| values[c * VALUES + 8] / transport.viscosity / (values[c * VALUES + 4] / 273.15).powf(power - 1.0));
    let lost = 2.0 / 3.0 * rate * config.dt;
    assert!(lost > 0.05 && error < 0.005, "{lost}, {error}");
    close("heat of the cells over that of the walls", mean(&|c| values[c * VALUES + 12]) / wall, 1.0 - 0.5 * lost, 0.005, error);
}

/// Nitrogen, which rotates, between the same plates: heat of translation and rotation, and what their exchange takes away, 3 % of
/// it.
#[test]
#[ignore = "a minute"]
fn transport_of_heat_by_molecules_that_rotate() {
    let cells = 120;
    let nitrogen = find("N2", Molecules::default()).unwrap();
    let length = Transport::new(&nitrogen, 273.15).free_path / 1e20 / 0.05;
    let mut config = Config::new(vec![cells], vec![length], "N2", 1e20, 273.15);
    let wall = |t: f64| Some(WallConfig::diffuse(t, [0.0; 3]).into());
    (config.boundary.x_lo, config.boundary.x_hi) = (wall(350.0), wall(200.0));
    config.particles_per_cell = Some(40.0);
    // A seventh of a free path.
    config.dt = 0.15 * 0.05 * length / 400.0;
    (config.steps, config.sampling.start) = (200_000, Some(10_000));
    let mut gas = flow(&config, 1);
    run(&mut gas, config.steps);
    let values = gas.values();
    let inner: Vec<usize> = (cells / 4..3 * cells / 4).collect();
    let power = 1.0 + nitrogen.scatter.omega;
    let x = |c: usize| (c as f64 + 0.5) / cells as f64 - 0.5;
    let t = |c: usize| (values[c * VALUES + 4] / 273.15).powf(power);
    let sum = |f: &dyn Fn(usize) -> f64| inner.iter().map(|c| f(*c)).sum::<f64>();
    let slope = 273.15 / power * sum(&|c| x(c) * t(c)) / sum(&|c| x(c) * x(c)) / length;
    let found = [0, 1].map(|side| gas.samples.surface(&gas.model, side)[4]);
    let (wall, error) = (0.5 * (found[1][0] - found[0][0]), 0.5 * (found[0][1] + found[1][1]) / found[1][0]);
    assert!(error < 0.005, "{error}");
    // As for argon; without the exchange 3.1 % more would be expected.
    close("conductivity", -wall / slope, Transport::new(&gas.model.species[0], 273.15).conductivity, 0.015, error);
}
