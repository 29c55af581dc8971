//! Error bars of what walls feel, where its parts are not independent. Seed 20261121.

use std::path::Path;

use crate::common::{argon, device, flow, run};
use zellige_dsmc::config::sides::{SideConfig, SideWord};
use zellige_dsmc::config::{BodyConfig, WallConfig, WallModel};
use zellige_dsmc::diagnostics::surfaces;
use zellige_dsmc::flow::Flow;
use zellige_dsmc::geometry::{Gas, Shape};
use zellige_dsmc::model::Scheme;
use zellige_engine::checkpoint::{Reader, Writer};

fn body(outline: Shape, wall: WallConfig) -> BodyConfig {
    BodyConfig {
        name: "body".into(),
        outline: Some(outline),
        file: None,
        max_segment_length: None,
        gas: Gas::Outside,
        wall,
        temperature: None,
        walls: std::collections::BTreeMap::default(),
        reference: None,
    }
}

/// A cold beam along the diagonal hits a mirror that stands across: every molecule gives the same momentum along the normal and
/// none along the mirror, so that pressure is as uncertain as the number of hits, and neither shear nor lift is uncertain at all.
#[test]
fn a_mirror_at_45_degrees_has_no_uncertain_shear() {
    let mut config = argon(12, 4.0);
    config.collisions.scheme = Scheme::None;
    (config.gas.temperature, config.gas.velocity) = (0.5, [700.0, 700.0, 0.0]);
    config.boundary.all = Some(SideConfig::Word(SideWord::Stream));
    let mirror = WallConfig { model: WallModel::Specular, ..WallConfig::diffuse(300.0, [0.0; 3]) };
    config.bodies = vec![body(Shape::Plate { points: vec![[8e-5, 4e-5], [4e-5, 8e-5]] }, mirror)];
    config.bodies[0].max_segment_length = Some(1.2e-5);
    (config.steps, config.sampling.start) = (1000, Some(40));
    let mut gas = flow(&config, 1);
    run(&mut gas, config.steps);
    let mut count = 0;
    for s in 0..gas.model.geometry.segments().len() {
        let [hits, x, y, ..] = gas.samples.surface(&gas.model, 4 + s);
        let [pressure, shear] = gas.samples.segment_error(s);
        if hits[0] == 0.0 {
            continue;
        }
        count += 1;
        let part = pressure / x[0].hypot(y[0]) / (hits[1] / hits[0]);
        // The momentum of a molecule differs by 2 % (10 m/s of 990): times the noise of 16 batches, 1 % of the error.
        assert!((part - 1.0).abs() < 0.03, "segment {s}: pressure is {part} times as uncertain as the hits");
        // Rounding of single precision; on a GPU momenta are whole numbers of 1e-8.
        assert!(shear < 1e-5 * pressure, "segment {s}: shear +- {shear}, pressure +- {pressure}");
    }
    assert_eq!(count, 5);
    let [load, error] = surfaces::body(&gas, 0);
    let [[drag, drag_error], [lift, lift_error]] = surfaces::coefficients(&gas, 0, &[load, error]).unwrap().values;
    assert!(drag_error > 1e-3 * drag && lift.abs() < 1e-5 * drag && lift_error < 1e-5 * drag_error, "{drag_error}, {lift_error}");
    let along = error.force[0].hypot(error.force[1]);
    assert!((error.stream[0] / along - 1.0).abs() < 1e-5, "{} along the stream, {along}", error.stream[0]);
}

/// A cold beam hits two mirrors that turn it back, one after the other: what each gets across the beam is taken back by the other,
/// and what they get along it comes from the same molecules.
#[test]
fn segments_that_get_the_same_molecules_are_not_independent() {
    let mut config = argon(12, 4.0);
    config.collisions.scheme = Scheme::None;
    (config.gas.temperature, config.gas.velocity) = (0.5, [900.0, 0.0, 0.0]);
    config.boundary.all = Some(SideConfig::Word(SideWord::Stream));
    let mirror = WallConfig { model: WallModel::Specular, ..WallConfig::diffuse(300.0, [0.0; 3]) };
    config.bodies = vec![body(Shape::Plate { points: vec![[5e-5, 9e-5], [8e-5, 6e-5], [5e-5, 3e-5]] }, mirror)];
    (config.steps, config.sampling.start) = (4840, Some(40));
    let mut gas = flow(&config, 1);
    run(&mut gas, 3000);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let mut writer = Writer::create(&path, "dsmc").unwrap();
    gas.save(&mut writer).unwrap();
    writer.finish().unwrap();
    run(&mut gas, 1840);
    let mut resumed = flow(&config, 1);
    resumed.restore(&Reader::open(&path, "dsmc").unwrap()).unwrap();
    run(&mut resumed, 1840);
    let told = |gas: &Flow| format!("{:?} {:?}", surfaces::body(gas, 0), gas.samples.segment_error(0));
    assert_eq!(told(&gas), told(&resumed), "after a restart");
    let segments = gas.model.geometry.segments();
    let alone = |v: usize| {
        let each = (0..segments.len()).map(|s| gas.samples.surface(&gas.model, 4 + s)[v][1] * segments[s].length());
        each.map(|e| e * e).sum::<f64>().sqrt()
    };
    let [load, error] = surfaces::body(&gas, 0);
    let (x, y) = (error.force[0] / alone(1), error.force[1] / alone(2));
    // Twice the error of each, not the root of two. Of the 300 steps of a batch a molecule takes up to six from one to the other: what is
    // on its way then is some hundredth, whose root is a tenth, for each of both ends.
    assert!((x / 2.0_f64.sqrt() - 1.0).abs() < 0.05, "along the beam {x} times as uncertain as if independent");
    assert!(y < 0.5 && load.force[1].abs() < 4.0 * error.force[1], "across the beam {y} times as uncertain as if independent: {load:?}");
}

/// A cylinder in a stream that collides, computed many times: force, moment and heat scatter as their errors say, one of which a
/// run alone knows.
#[test]
fn totals_of_a_body_scatter_from_run_to_run_as_their_errors_say() {
    const RUNS: u64 = 16;
    let mut config = argon(8, 10.0);
    config.boundary.all = Some(SideConfig::Word(SideWord::Stream));
    config.gas.velocity = [300.0, 150.0, 0.0];
    let wall = WallConfig::diffuse(300.0, [0.0; 3]);
    config.bodies = vec![body(Shape::Circle { centre: [4e-5, 4e-5], radius: 2e-5, segments: 24 }, wall)];
    // A batch is two to three times as long as the gas takes through the box.
    (config.dt, config.steps, config.sampling.start) = (1e-8, 970, Some(74));
    let runs = (0..RUNS).map(|seed| {
        let mut gas = Flow::new(&config, Path::new(""), seed, &device(1)).unwrap();
        run(&mut gas, config.steps);
        surfaces::body(&gas, 0).map(|load| load.numbers())
    });
    let runs: Vec<_> = runs.collect();
    // Three components of the force, moment, heat.
    let parts = [0, 1, 2, 3, 4].map(|v| {
        let mean = runs.iter().map(|r| r[0][v]).sum::<f64>() / RUNS as f64;
        let scatter = runs.iter().map(|r| (r[0][v] - mean).powi(2)).sum::<f64>() / (RUNS - 1) as f64;
        scatter / (runs.iter().map(|r| r[1][v].powi(2)).sum::<f64>() / RUNS as f64)
    });
    // Five times chi-square with 15 degrees of freedom over 15: 1 +- 0.16; four deviations.
    let mean = parts.iter().sum::<f64>() / 5.0;
    println!("scatter over said error, squares: {parts:.2?}");
    assert!((mean - 1.0).abs() < 0.65, "{parts:?}");
}

/// Moment about another point and coefficients by another length than those of the box.
#[test]
fn loads_are_related_to_what_the_input_says() {
    let mut config = argon(8, 10.0);
    config.boundary.all = Some(SideConfig::Word(SideWord::Stream));
    config.gas.velocity = [300.0, 150.0, 0.0];
    let circle = Shape::Circle { centre: [4e-5, 4e-5], radius: 2e-5, segments: 24 };
    config.bodies = vec![body(circle, WallConfig::diffuse(300.0, [0.0; 3]))];
    (config.dt, config.steps, config.sampling.start) = (1e-8, 40, Some(0));
    let found = |config: &zellige_dsmc::config::Config| {
        let mut gas = Flow::new(config, Path::new(""), 1, &device(1)).unwrap();
        run(&mut gas, config.steps);
        let [load, error] = surfaces::body(&gas, 0);
        (load, surfaces::coefficients(&gas, 0, &[load, error]).unwrap())
    };
    let (load, by_box) = found(&config);
    let point = [1e-5, 3e-5];
    config.bodies[0].reference = Some(zellige_dsmc::config::ReferenceConfig { point: Some(point), length: Some(1e-4) });
    let (other, by_length) = found(&config);
    assert_eq!(load.force, other.force);
    let turned = load.moment + (4e-5 - point[0]) * load.force[1] - (4e-5 - point[1]) * load.force[0];
    assert!((other.moment - turned).abs() < 1e-9 * load.force[0].abs() * 4e-5, "{} and {turned}", other.moment);
    assert_eq!((by_length.width, by_length.what), (1e-4, "given length"));
    assert!((by_length.values[0][0] * 1e-4 / (by_box.values[0][0] * by_box.width) - 1.0).abs() < 1e-12);
    config.bodies[0].reference = Some(zellige_dsmc::config::ReferenceConfig { point: None, length: Some(-1.0) });
    let error = Flow::new(&config, Path::new(""), 1, &device(1)).err().unwrap().to_string();
    assert!(error.contains("`length` is -1"), "{error}");
}
