//! Lines from which gas comes, and walls whose temperature changes along them, in whole flows.

use crate::common::{self, flow, mean, run};
use zellige_dsmc::Dsmc;
use zellige_dsmc::config::sides::SideWord;
use zellige_dsmc::config::{BodyConfig, Config, SideConfig, SourceConfig, WallConfig};
use zellige_dsmc::geometry::{Gas, Shape};
use zellige_dsmc::model::Scheme;
use zellige_dsmc::sampling::VALUES;
use zellige_engine::device::{Cpu, Device};
use zellige_engine::profile::Profiler;
use zellige_engine::sim::{Environment, Solver};

/// A channel of argon without collisions, 40 x 8 cells of 2.5 cm, a vacuum at both ends, a line across it.
pub(crate) fn channel(source: SourceConfig) -> Config {
    let mut config = Config::new(vec![40, 8], vec![1.0, 0.2], "Ar", 1e18, 300.0);
    config.particles_per_cell = Some(40.0);
    config.collisions.scheme = Scheme::None;
    config.boundary.x = Some(SideConfig::Word(SideWord::Vacuum));
    config.initial.density = Some(zellige_dsmc::config::Value::Number(0.0));
    config.dt = 1e-5;
    config.steps = 400;
    config.sampling.start = Some(200);
    config.sources.push(source);
    config
}

pub(crate) fn line() -> SourceConfig {
    SourceConfig { line: Some([[0.3, 0.0], [0.3, 0.2]]), direction: Some([2.0, 0.0]), temperature: Some(300.0), ..SourceConfig::default() }
}

#[test]
fn a_steady_line_makes_a_beam_of_its_density_and_temperature() {
    // At a speed ratio of 3 all but 1e-5 of the gas moves on: behind the line it is the Maxwellian of the source, before it nothing.
    let thermal = (2.0 * common::K * 300.0 / 66.3e-27_f64).sqrt();
    let config = channel(SourceConfig { density: Some(1e18), velocity: [3.0 * thermal, 0.0, 20.0], ..line() });
    let mut flow = flow(&config, 1);
    run(&mut flow, config.steps);
    let values = flow.values();
    for cell in 0..40 * 8 {
        let found = &values[cell * VALUES..][..5];
        if cell % 40 < 12 {
            assert_eq!(found[0], 0.0, "cell {cell} is upstream");
        } else {
            // 200 samples of 40 particles that stay for two or three steps: 0.7 to 2 % with the time that neighbours share.
            assert!((found[0] / 1e18 - 1.0).abs() < 0.08, "cell {cell}: {found:?}");
            assert!((found[4] / 300.0 - 1.0).abs() < 0.12, "cell {cell}: {found:?}");
        }
    }
    let beam: Vec<f64> = (0..320).filter(|c| c % 40 >= 12).map(|c| values[c * VALUES]).collect();
    let density = beam.iter().sum::<f64>() / beam.len() as f64;
    // About 400 steps of 2000 injected particles: 1e-3, four sigma.
    assert!((density / 1e18 - 1.0).abs() < 4e-3, "{density}");
    assert!(mean(&flow, 0) < 1e18);
}

#[test]
fn a_schedule_is_kept_to_the_particle() {
    let folder = tempfile::tempdir().unwrap();
    let source = "total_particles: 1800\ngeometry: {start_x: 0.3, start_y: 0.05, end_x: 0.5, end_y: 0.15}\ndirection: {x: 1.0, y: -1.0}\n\
        velocity: {temperature: 432.4, stream_x: 500.0}\n";
    std::fs::write(folder.path().join("left.yaml"), source).unwrap();
    std::fs::write(folder.path().join("left.dat"), "0 1000\n3 700\n7 100\n").unwrap();
    let file = SourceConfig { file: Some("left.yaml".into()), schedule_file: Some("left.dat".into()), ..SourceConfig::default() };
    let mut config = channel(file);
    config.boundary.x = Some(SideConfig::Word(SideWord::Specular));
    let mut found = Vec::new();
    for threads in [1, 2] {
        assert_eq!(config.check(), []);
        let device = crate::common::device(threads);
        let mut flow = zellige_dsmc::flow::Flow::new(&config, folder.path(), 7, &device).unwrap();
        for (steps, count) in [(1, 1000), (2, 1000), (1, 1700), (3, 1700), (1, 1800), (20, 1800)] {
            run(&mut flow, steps);
            assert_eq!(flow.totals().unwrap().particles, count);
            assert_eq!(flow.ledger().unwrap().injected, count);
        }
        found.push(flow.stages.particles().unwrap());
    }
    assert_eq!(found[0], found[1], "the number of threads changes nothing");
}

/// Mirrors all around keep what is there, but not what a hot line adds: its energy is no fault of the run, and its cross-sections
/// are reckoned with from the start.
#[test]
fn a_box_with_a_source_is_not_closed() {
    let mut config = channel(SourceConfig { temperature: Some(3000.0), schedule: vec![[0, 20_000]], ..line() });
    config.boundary = zellige_dsmc::config::Boundary { all: Some(SideConfig::Word(SideWord::Specular)), ..Default::default() };
    config.collisions.scheme = Scheme::Ntc;
    config.gas.density = 1e20;
    config.initial.density = None;
    (config.dt, config.steps) = (1e-6, 20);
    assert_eq!(config.check(), []);
    let environment = Environment::new(Device::Cpu(Cpu::new(1).unwrap()), ".", 1);
    let mut gas = Dsmc::setup(&config, &environment).unwrap();
    while gas.outcome().is_none() {
        gas.step(&mut Profiler::off()).unwrap();
    }
    let checks = gas.checks().unwrap();
    assert!(checks.iter().all(|c| c.ok) && checks.len() == 3, "{checks:?}");
    let ledger = gas.flow().ledger().unwrap();
    assert!(ledger.exceeded as f64 <= 1e-3 * ledger.collisions as f64, "{ledger:?}");
}

#[test]
fn what_a_source_lacks_is_said() {
    for (source, expected) in [
        (line(), "the source is not whole"),
        (SourceConfig { file: Some("a.yaml".into()), ..line() }, "both a file and values are given"),
        (SourceConfig { schedule: vec![[1, 2], [1, 3]], ..line() }, "step 1 is there twice"),
    ] {
        let faults = channel(source).check();
        assert!(faults.iter().any(|f| f.message.contains(expected)), "{faults:?}");
    }
    let outside = SourceConfig { line: Some([[0.3, 0.0], [0.3, 0.3]]), density: Some(1e18), ..line() };
    let config = channel(outside);
    let error = zellige_dsmc::model::Model::new(&config, std::path::Path::new(""), 1).unwrap_err().to_string();
    assert!(error.contains("`dsmc.sources[0]`: the source leaves the domain at (0.3, 0.3)"), "{error}");
}

#[test]
fn the_heat_from_a_wall_follows_its_temperature() {
    // A plate in a gas at rest, free molecular: each position gives and takes the flux n cbar / 4 of molecules, and 2 k (T - Tw) with it.
    let mut config = Config::new(vec![20, 20], vec![0.4, 0.4], "Ar", 1e18, 300.0);
    config.particles_per_cell = Some(50.0);
    config.collisions.scheme = Scheme::None;
    config.boundary.all = Some(SideConfig::Word(SideWord::Stream));
    config.dt = 2e-5;
    config.steps = 600;
    config.sampling.start = Some(100);
    let points = (0..=4).map(|k| [0.1 + 0.05 * f64::from(k), 0.21]).collect();
    config.bodies.push(BodyConfig {
        name: "plate".into(),
        outline: Some(Shape::Plate { points }),
        file: None,
        gas: Gas::Outside,
        wall: WallConfig::diffuse(300.0, [0.0; 3]),
        max_segment_length: None,
        temperature: Some("400 + 2000*(x - 0.2)".into()),
        walls: std::collections::BTreeMap::default(),
        reference: None,
    });
    let mut flow = flow(&config, 1);
    run(&mut flow, config.steps);
    let mass = flow.model.species[0].mass;
    let flux = 1e18 * (8.0 * common::K * 300.0 / (std::f64::consts::PI * mass)).sqrt() / 4.0;
    for (k, segment) in flow.model.geometry.segments().iter().enumerate() {
        let wall = 400.0 + 2000.0 * (segment.middle()[0] - 0.2);
        let [hits, _, _, _, heat, _] = flow.samples.surface(&flow.model, 4 + k);
        let exact = flux * 2.0 * common::K * (300.0 - wall);
        // Molecules bring 2 kT with a deviation of sqrt 2 kT: of N hits the heat is known to 2 k (300 + 600) / sqrt N.
        let n = flux * segment.length() * 500.0 * config.dt / flow.model.weight;
        let sigma = flux * 2.0 * common::K * 900.0 / n.sqrt();
        assert!((heat[0] - exact).abs() < 4.0 * sigma, "segment {k}: {heat:?}, {exact}, {sigma}");
        assert!((hits[0] / flux - 1.0).abs() < 5.0 / n.sqrt(), "segment {k}: {hits:?}, {flux}");
    }
}
