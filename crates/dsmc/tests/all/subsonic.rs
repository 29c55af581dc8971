//! Sides with a given pressure or flow: a channel of argon, one dimension, some twenty free paths long.

use crate::common::{K, flow, run};
use zellige_dsmc::config::sides::{InletConfig, OutletConfig, SideInlet, SideOutlet, SideWord};
use zellige_dsmc::config::{BodyConfig, Config, SideConfig, WallConfig, WallModel};
use zellige_dsmc::geometry::{Gas, Shape};
use zellige_dsmc::model::Model;
use zellige_dsmc::sampling::VALUES;

pub(crate) const MASS: f64 = 66.3e-27;
pub(crate) const PRESSURE: f64 = 1e20 * K * 300.0;

pub(crate) fn outlet(pressure: f64) -> SideConfig {
    SideConfig::Outlet(SideOutlet { outlet: OutletConfig { pressure, memory: 250.0 } })
}

pub(crate) fn inlet(pressure: Option<f64>, mass_flow: Option<f64>) -> SideConfig {
    SideConfig::Inlet(SideInlet { inlet: InletConfig { temperature: 300.0, pressure, mass_flow, memory: 250.0 } })
}

/// 40 cells of half a free path; a step is two fifths of the time between collisions, as nothing here hangs on how fast the gas
/// diffuses, and what the errors come from is the time that passes, not the number of steps.
pub(crate) fn channel(lower: SideConfig, upper: SideConfig) -> Config {
    let mut config = Config::new(vec![40], vec![0.26], "Ar", 1e20, 300.0);
    config.particles_per_cell = Some(150.0);
    config.dt = 1e-5;
    (config.boundary.x_lo, config.boundary.x_hi) = (Some(lower), Some(upper));
    config.steps = 10_000;
    config.sampling.start = Some(4000);
    config
}

/// Density, velocity, temperature and the flux of molecules with its error by the batches, each over the cells, and the means over
/// the inner ones.
fn profile(config: &Config) -> (Vec<[f64; 5]>, [f64; 5]) {
    let mut flow = flow(config, 1);
    run(&mut flow, config.steps);
    let of = |(c, v): (usize, &[f64])| {
        let (n, u) = (flow.samples.error(&flow.model, c, 0) / v[0], flow.samples.error(&flow.model, c, 1) / v[1]);
        [v[0], v[1], v[4], v[0] * v[1], (v[0] * v[1]).abs() * n.hypot(u)]
    };
    let cells: Vec<[f64; 5]> = flow.values().chunks_exact(VALUES).enumerate().map(of).collect();
    let mean = [0, 1, 2, 3, 4].map(|q| cells[5..35].iter().map(|c| c[q]).sum::<f64>() / 30.0);
    (cells, mean)
}

#[test]
fn gas_between_equal_pressures_stays_at_rest() {
    let mut config = channel(inlet(Some(PRESSURE), None), outlet(PRESSURE));
    // It begins as it is to stay.
    config.steps = 5500;
    config.sampling.start = Some(500);
    let (_, [n, u, t, ..]) = profile(&config);
    // Over ten seeds the pressure had a deviation of 0.002. No wall holds the gas: any speed fits equal pressures, and slow gas carries
    // no temperature from the inlet, so both wander, with deviations of 7 m/s (of 323 m/s of sound) and 4 K about what is given.
    assert!((n * K * t / PRESSURE - 1.0).abs() < 0.008, "pressure {}", n * K * t / PRESSURE);
    assert!((t / 300.0 - 1.0).abs() < 0.05, "temperature {t}");
    assert!(u.abs() < 28.0, "velocity {u}");
}

#[test]
fn an_inlet_of_given_flow_lets_that_much_through() {
    let speed = 20.0;
    let given = 1e20 * MASS * speed;
    let mut config = channel(inlet(None, Some(given)), outlet(PRESSURE));
    config.particles_per_cell = Some(100.0);
    let (cells, [n, _, t, flux, error]) = profile(&config);
    // Equal flow through every cell, and what is asked for; the pressure is that of the outlet, as nothing resists. Errors are
    // those of 16 batches, of a cell; noise that is the same in all cells makes that of their mean no smaller. Student's t with 15
    // degrees of freedom exceeds 6 in one of 40 cells once in a thousand.
    let through = |f: f64| f * MASS / given;
    assert!((through(flux) - 1.0).abs() < 4.0 * through(error), "{} +- {}", through(flux), through(error));
    assert!(through(error) < 0.035, "the flux is known to {}", through(error));
    for (i, c) in cells.iter().enumerate() {
        assert!((c[3] - flux).abs() < 6.0 * c[4], "cell {i}: {} +- {}, mean {}", through(c[3]), through(c[4]), through(flux));
    }
    assert!((n * K * t / PRESSURE - 1.0).abs() < 0.02, "pressure {}", n * K * t / PRESSURE);
}

#[test]
fn a_higher_pressure_at_the_inlet_drives_the_gas() {
    // No walls: the flow grows until the characteristic relations of both sides agree on one state between their pressures.
    let mut config = channel(inlet(Some(1.1 * PRESSURE), None), outlet(PRESSURE));
    config.steps = 3000;
    config.sampling.start = Some(1500);
    let (cells, [n, u, t, ..]) = profile(&config);
    assert!(u > 10.0, "velocity {u}");
    let p = n * K * t / PRESSURE;
    assert!(p > 0.98 && p < 1.12, "pressure {p}");
    assert!(cells.iter().all(|c| c[1] > 0.0));
}

/// Helium into which argon flows: three quarters of the molecules that enter are helium, so are those that leave.
#[test]
fn a_mixture_flows_as_its_mass_is_asked_for() {
    let (light, speed) = (6.65e-27, 20.0);
    let mean = 0.75 * light + 0.25 * MASS;
    let given = 1e20 * mean * speed;
    let mut config = channel(inlet(None, Some(given)), outlet(PRESSURE));
    config.species[0].fraction = 0.25;
    config.species.push(zellige_dsmc::config::SpeciesConfig { fraction: 0.75, ..zellige_dsmc::config::SpeciesConfig::named("He") });
    // Three times of passage, in which the light molecules get where they belong, and three more for the averages.
    config.dt = 5e-6;
    config.particles_per_cell = Some(100.0);
    config.steps = 14_000;
    config.sampling.start = Some(7000);
    let mut flow = flow(&config, 1);
    run(&mut flow, config.steps);
    let sections: Vec<[[f64; 2]; 3]> = flow.samples.flows(&flow.model).as_chunks::<3>().0.to_vec();
    assert_eq!(sections.len(), 40);
    let mean_of = |line: usize| sections[5..35].iter().map(|s| s[line][0]).sum::<f64>() / 30.0;
    let error_of = |line: usize| sections[5..35].iter().map(|s| s[line][1]).sum::<f64>() / 30.0;
    // Noise that all cells share is no smaller in their mean; 16 batches, four deviations.
    assert!((mean_of(0) - given).abs() < 4.0 * error_of(0), "{} +- {} of {given}", mean_of(0), error_of(0));
    assert!(error_of(0) < 0.06 * given, "the flow is known to {}", error_of(0) / given);
    assert!((mean_of(0) / (mean_of(1) + mean_of(2)) - 1.0).abs() < 1e-12);
    for (line, part) in [(1, 0.25 * MASS / mean), (2, 0.75 * light / mean)] {
        // Light molecules get ahead or fall back by diffusion until the channel has the injected composition: the same part, within errors.
        assert!(
            (mean_of(line) - part * given).abs() < 5.0 * error_of(line),
            "{line}: {} +- {}",
            mean_of(line) / given,
            error_of(line) / given
        );
        for (i, s) in sections.iter().enumerate() {
            assert!((s[line][0] - mean_of(line)).abs() < 6.0 * s[line][1], "section {i}, line {line}: {:?}", s[line]);
        }
    }
    let width = zellige_dsmc::sampling::width(&flow.model);
    let pressure = flow.all_values().chunks_exact(width).map(|v| v[0] * K * v[4]).sum::<f64>() / 40.0;
    assert!((pressure / PRESSURE - 1.0).abs() < 0.02, "pressure {}", pressure / PRESSURE);
}

/// A block on the inlet's side covers nine twentieths of it, cells in part: all of the flow enters through the rest.
#[test]
fn an_inlet_behind_a_body_lets_all_of_its_flow_through() {
    let (height, speed) = (0.052, 40.0);
    let given = 1e20 * MASS * speed * height;
    let mut config = channel(inlet(None, Some(given)), outlet(PRESSURE));
    (config.grid.cells, config.grid.size) = (vec![16, 8], vec![2.0 * height, height]);
    config.particles_per_cell = Some(40.0);
    config.boundary.y = Some(SideConfig::Word(SideWord::Specular));
    let block = |low: f64, high: f64| vec![[0.0, low], [0.3 * height, low], [0.3 * height, high], [0.0, high]];
    let mut body = BodyConfig {
        name: "block".into(),
        outline: Some(Shape::Polygon { vertices: block(0.2 * height, 0.65 * height) }),
        file: None,
        max_segment_length: None,
        gas: Gas::Outside,
        wall: WallConfig { model: WallModel::Specular, ..WallConfig::diffuse(300.0, [0.0; 3]) },
        temperature: None,
        walls: std::collections::BTreeMap::default(),
        reference: None,
    };
    config.bodies = vec![body.clone()];
    config.steps = 2500;
    config.sampling.start = Some(900);
    let mut gas = flow(&config, 1);
    run(&mut gas, config.steps);
    let flows = gas.samples.flows(&gas.model);
    assert_eq!(flows.len(), 16);
    // Noise that all columns share is no smaller in their mean; 16 batches, four deviations.
    let [through, error] = [0, 1].map(|k| flows.iter().map(|f| f[k]).sum::<f64>() / 16.0 / given);
    assert!((through - 1.0).abs() < 4.0 * error && error < 0.02, "{through} +- {error}");
    body.outline = Some(Shape::Polygon { vertices: block(0.0, height) });
    config.bodies = vec![body];
    let Err(error) = Model::new(&config, std::path::Path::new(""), 1) else { panic!("a side that is covered is an inlet") };
    let text = error.to_string();
    assert!(text.contains("boundary.x_lo.inlet.mass_flow") && text.contains("bodies cover the whole side"), "{text}");
}

#[test]
fn what_is_wrong_with_a_side_is_said() {
    let config = channel(inlet(Some(PRESSURE), Some(1.0)), outlet(-1.0));
    let faults = config.check();
    for (path, text) in [("boundary.x_lo.inlet", "one of the two"), ("boundary.x_hi.outlet.pressure", "the value is -1e0")] {
        assert!(faults.iter().any(|f| f.path == path && f.message.contains(text)), "{faults:?}");
    }
}
