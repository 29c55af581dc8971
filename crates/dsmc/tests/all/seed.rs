//! Inputs in the older form, as the program reads them.

use serde_json::json;
use zellige_dsmc::Dsmc;
use zellige_dsmc::model::Model;
use zellige_dsmc::seed::adopt;
use zellige_engine::config::{Format, Source};
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
    let flat = adopted(&CASE.replace("dt:", "velocity_components: 2\n  dt:")).unwrap().typed::<Dsmc>().unwrap().config;
    assert_eq!(Model::new(&flat, folder.path(), 1).unwrap().components, 2);
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
