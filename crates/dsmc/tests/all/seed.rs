//! Inputs in the older form, as the program reads them.

use std::path::Path;

use crate::common::{K, device, run};
use serde_json::json;
use zellige_dsmc::Dsmc;
use zellige_dsmc::config::Config;
use zellige_dsmc::flow::Flow;
use zellige_dsmc::model::Model;
use zellige_dsmc::start::seed::adopt;
use zellige_engine::config::{Format, Source};
use zellige_engine::device::Device;
use zellige_engine::error::Problem;

const CASE: &str = "grid:\n  nx: 20\n  ny: 20\n  lx: 0.3\n  ly: 0.3\n\nphysics:\n  dt: 2.0e-8\n  total_steps: 100\n\n\
    init:\n  temp: 200.0\n  density: 1.0e16\n  particle_weight: 1.0e10\n";

fn adopted(text: &str) -> Result<Source, Vec<Problem>> {
    let mut source = Source::parse(text, Format::Yaml, "config.yaml").unwrap();
    assert!(adopt(&mut source.value)?);
    Ok(source)
}

#[test]
fn the_older_form_is_run_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("box.dat", "20 20 0.3 0.3\n147 0 0.11 0.11 0.12 0.11 0 -1\n148 0 0.12 0.11 0.12 0.119 1 0\n168 0 0.12 0.119 0.11 0.11 -1 1\n");
    write(
        "left.yaml",
        "total_particles: 5\ngeometry: {start_x: 0.0, start_y: 0.1, end_x: 0.0, end_y: 0.2}\ndirection: {x: 1, y: 0}\nvelocity: {temperature: 600, stream_x: 100}\n",
    );
    write("left.dat", "0 5\n");
    let source = adopted(&format!("{CASE}geometry: box.dat\nsource: [left.yaml]\nschedule: left.dat\n")).unwrap();
    let config = source.typed::<Dsmc>().unwrap().config;
    let model = Model::new(&config, folder.path(), 1).unwrap();
    assert_eq!((config.steps, model.dt, model.weight, model.grid.cells), (100, 2e-8, 1e10, [20, 20]));
    assert_eq!((model.species[0].mass, model.species[0].scatter.diameter, model.sources[0].count(0)), (6.6335e-26, 4.17e-10, 5));
    assert!((model.geometry.bodies()[0].area - 0.5 * 0.01 * 0.009).abs() < 1e-12, "{:?}", model.geometry.bodies());
    // 1e16 molecules per m^3 on 0.09 m^2 in parts of 1e10, less those of the body.
    assert!((model.expected / (1e6 * (0.09 - 4.5e-5)) - 1.0).abs() < 1e-9, "{}", model.expected);
    assert_eq!((config.velocity_components, model.components), (3, 3));
    let planar = adopted(&CASE.replace("dt:", "velocity_components: 2\n  dt:")).unwrap().typed::<Dsmc>().unwrap().config;
    assert_eq!(Model::new(&planar, folder.path(), 1).unwrap().components, 2);
    let empty = adopted(&CASE.replace("1.0e16", "0.0")).unwrap().typed::<Dsmc>().unwrap().config;
    assert_eq!(Model::new(&empty, folder.path(), 1).unwrap().expected, 0.0);
}

#[test]
fn other_inputs_are_left_alone_and_broken_ones_refused() {
    let mut value = json!({ "dsmc": {}, "grid": {}, "physics": {}, "init": {} });
    let before = value.clone();
    assert_eq!((adopt(&mut value), &value), (Ok(false), &before));
    assert_eq!(adopt(&mut json!({ "grid": {}, "physics": {} })), Ok(false));
    for (text, key, expected) in [
        (CASE.replace("  nx: 20\n", ""), "grid", "missing field `nx`"),
        (CASE.replace("temp:", "temperature:"), "init", "unknown field `temperature`"),
        (format!("{CASE}colour: 3\n"), "colour", "`colour` is unknown"),
        (format!("{CASE}geometry: 3\n"), "geometry", "this is no file"),
        (format!("{CASE}schedule: a.dat\n"), "schedule", "1 schedules for 0 sources"),
    ] {
        let problems = adopted(&text).unwrap_err();
        assert!(problems[0].path == key && problems[0].message.contains(expected), "{problems:?}");
    }
}

/// Every device there is.
fn devices() -> Vec<Device> {
    std::iter::once(device(0)).chain(zellige_engine::testing::gpu().map(Device::Cuda)).collect()
}

/// Runs an input to its end: nothing may be lost, and `fed` particles must be injected in a step.
fn run_whole(name: &str, config: &Config, folder: &Path, fed: u64, device: &Device) -> Flow {
    let mut gas = Flow::new(config, folder, 1, device).unwrap();
    let before = gas.totals().unwrap();
    run(&mut gas, config.steps);
    let (ledger, totals) = (gas.ledger().unwrap(), gas.totals().unwrap());
    let at = format!("{name} on {}", device.id());
    assert_eq!((ledger.there(), ledger.removed, ledger.stuck), (totals.particles, 0, 0), "{at}");
    assert_eq!(totals.particles, before.particles + config.steps * fed, "{at}");
    assert!(ledger.collisions > 0 && gas.samples.taken > 0, "{at}");
    let particles = gas.stages.particles().unwrap();
    let position = |i: usize| (gas.model.grid.cell(particles.cell[i] as usize), [0, 1].map(|d| f64::from(particles.offset[d][i])));
    assert!((0..particles.len()).map(position).all(|(cell, offset)| gas.model.geometry.in_gas(cell, offset)), "{at}: a particle in a body");
    if fed == 0 {
        // Rounding in single precision.
        assert!((totals.translation / before.translation - 1.0).abs() < 1e-5, "{at}: {before:?} {totals:?}");
    }
    gas
}

/// The cases of the older program a hundredth as large: a tenth of the cells along each axis, as many particles in each, and a
/// hundredth of what comes from the left.
#[test]
fn its_cases_run_on_both_devices() {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/dsmc/seed");
    let folder = tempfile::tempdir().unwrap();
    for name in ["left.yaml", "left_large.yaml"] {
        let mut source = Source::read(from.join(name)).unwrap().value;
        let hundredth = |n: &mut serde_json::Value| *n = json!(n.as_u64().unwrap() / 100);
        hundredth(&mut source["total_particles"]);
        source["schedule"].as_array_mut().unwrap().iter_mut().for_each(|entry| hundredth(&mut entry["count"]));
        // JSON is YAML.
        std::fs::write(folder.path().join(name), source.to_string()).unwrap();
    }
    for (name, cells, fed) in [("box.yaml", 500, 0), ("source.yaml", 500, 1000), ("large.yaml", 2500, 12_500)] {
        let mut source = Source::read(from.join(name)).unwrap();
        assert!(adopt(&mut source.value).unwrap());
        let mut config = source.typed::<Dsmc>().unwrap().config;
        assert_eq!((config.grid.cells.as_slice(), config.steps), (&[cells; 2][..], 100));
        config.grid.cells = vec![cells / 10; 2];
        config.weight = config.weight.map(|w| 100.0 * w);
        (config.steps, config.sampling.start) = (16, Some(8));
        for device in devices() {
            let mut gas = run_whole(name, &config, folder.path(), fed, &device);
            // Half of what comes moves at about 500 m/s and more, and all of it to the right: mirrors stop what was there to begin with only.
            let totals = gas.totals().unwrap();
            let speed = totals.momentum[0] / (totals.particles as f64 * gas.model.weight * gas.model.species[0].mass);
            assert_eq!(speed > 20.0, fed > 0, "{name}: {speed} m/s on average");
        }
    }
}

/// A body by a file of the older form, a square on its corner whose edges are diagonals of cells, and a source with a schedule of
/// its own.
#[test]
fn a_geometry_file_and_a_schedule_run_on_both_devices() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let (n, h, r) = (40_i32, 0.0075, 6);
    let mut lines = vec![format!("{n} {n} 0.3 0.3")];
    for (i, j) in (0..n).flat_map(|j| (0..n).map(move |i| (i, j))) {
        // Steps from the middle to the cell's corner that is nearest and the one that is furthest.
        let steps = |k: i32| if k < n / 2 { n / 2 - k - 1 } else { k - n / 2 };
        let near = steps(i) + steps(j);
        let (right, up) = (f64::from(i32::from(i >= n / 2)), f64::from(i32::from(j >= n / 2)));
        let [x, y] =
            [(i, 1.0 - right, right), (j, up, 1.0 - up)].map(|(k, from, to)| [f64::from(k) + from, f64::from(k) + to].map(|x| x * h));
        let number = j * n + i;
        if near == r - 1 {
            lines.push(format!("{number} 0 {:.6} {:.6} {:.6} {:.6} {} {}", x[0], y[0], x[1], y[1], 2.0 * right - 1.0, 2.0 * up - 1.0));
        } else if near < r - 1 {
            lines.push(format!("{number} 1"));
        }
    }
    write("square.dat", &lines.join("\n"));
    write(
        "left.yaml",
        "total_particles: 3200\ngeometry: {start_x: 0.0, start_y: 0.1, end_x: 0.0, end_y: 0.2}\ndirection: {x: 1, y: 0}\nvelocity: {temperature: 600, bulk_velocity: 100}\n",
    );
    write("left.dat", &(0..32).map(|k| format!("{k} 100")).collect::<Vec<_>>().join("\n"));
    let text = "grid: {nx: 40, ny: 40, lx: 0.3, ly: 0.3}\nphysics: {dt: 2.0e-6, total_steps: 32}\ninit: {temp: 200.0, density: 1.0e21, particle_weight: 1.0e15}\n\
        geometry: square.dat\n";
    for (sources, fed) in [("", 0), ("source: left.yaml\nschedule: left.dat\n", 100)] {
        let mut config = adopted(&format!("{text}{sources}")).unwrap().typed::<Dsmc>().unwrap().config;
        config.sampling.start = Some(0);
        for device in devices() {
            let gas = run_whole("square", &config, folder.path(), fed, &device);
            let segments = gas.model.geometry.segments();
            let area = 2.0 * (f64::from(r) * h).powi(2);
            assert!(segments.len() == 24 && (gas.model.geometry.bodies()[0].area / area - 1.0).abs() < 1e-4);
            // The gas at rest hits it with the flux n c/4; what comes from the left is not there yet.
            let hits = |s: usize| gas.samples.surface(&gas.model, 4 + s)[0][0] * segments[s].length();
            let time = gas.time() / gas.model.weight;
            let found = (0..24).map(hits).sum::<f64>() * time;
            let mean_speed = (8.0 * K * 200.0 / (std::f64::consts::PI * gas.model.species[0].mass)).sqrt();
            let expected = 1e21 * mean_speed / 4.0 * segments.iter().map(zellige_dsmc::geometry::Segment::length).sum::<f64>() * time;
            assert!((found - expected).abs() < 4.0 * expected.sqrt(), "{found} hits, {expected} expected on {}", device.id());
        }
    }
}
