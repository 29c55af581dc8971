//! Velocities that are set from outside between steps: to what they were, which changes nothing, and to others.

use zellige_dsmc::{Config, Dsmc};
use zellige_engine::device::{Cpu, Device};
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Check, Entries, GivenValues, Record, Values};
use zellige_engine::sim::{Environment, Solver};
use zellige_engine::testing;

/// Boxes, closed and between walls with flows in and out, a body, a mixture that rotates.
fn cases() -> Vec<(&'static str, Config)> {
    let parse = |text: &str| {
        let source = zellige_engine::config::Source::parse(text, zellige_engine::config::Format::Toml, "test").unwrap();
        source.typed::<Dsmc>().unwrap().config
    };
    let closed = parse(
        r#"
[dsmc]
dt = 2e-8
steps = 1000
particles_per_cell = 12
species = [{ name = "N2", fraction = 0.7 }, { name = "Ar", fraction = 0.3 }]
grid = { cells = [12, 10], size = [1.2e-3, 1e-3] }
gas = { density = 1e22, temperature = 300.0 }
sampling = { start = 4 }
"#,
    );
    let cylinder = std::fs::read_to_string("../../examples/dsmc/cylinder.toml").unwrap();
    let mut cylinder = parse(&cylinder);
    (cylinder.particles_per_cell, cylinder.sampling.start) = (Some(4.0), Some(4));
    vec![("closed", closed), ("cylinder", cylinder)]
}

type Columns = Vec<(String, Vec<f64>)>;

fn columns(gas: &mut Dsmc, species: &str) -> Columns {
    let table = gas.particles(species).unwrap().unwrap();
    let values = |entries: &Entries| match entries {
        Entries::Each(Values::F64(values)) => values.clone(),
        other => panic!("{other:?}"),
    };
    table.columns.iter().map(|column| (column.name(), values(&column.values))).collect()
}

fn steps(gas: &mut Dsmc, n: u64) {
    for _ in 0..n {
        gas.step(&mut Profiler::off()).unwrap();
    }
}

fn setup(config: &Config, device: &Device) -> Dsmc {
    Dsmc::setup(config, &Environment::new(device.clone(), "../../examples/dsmc", 1)).unwrap()
}

fn unchanged(device: &Device) {
    for (name, config) in cases() {
        let species: Vec<String> = config.species.iter().map(|s| s.name.clone()).collect();
        let run = |touch: bool| {
            let mut gas = setup(&config, device);
            steps(&mut gas, 11);
            if touch {
                for s in &species {
                    let now = columns(&mut gas, s);
                    assert!(!now[0].1.is_empty());
                    gas.set_particles(s, &now).unwrap();
                }
            }
            steps(&mut gas, 9);
            let particles: Vec<Columns> = species.iter().map(|s| columns(&mut gas, s)).collect();
            let fields: Vec<Record> = gas.records().unwrap();
            (particles, format!("{fields:?}"), gas.checks().unwrap())
        };
        let (expected, found) = (run(false), run(true));
        assert!(expected.0 == found.0, "{name}: particles");
        assert!(expected.1 == found.1, "{name}: averages");
        // The energy is held to that of the change.
        let names = |checks: &[Check]| checks.iter().map(|check| check.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&expected.2), names(&found.2), "{name}");
        assert!(expected.2.iter().chain(&found.2).all(|check| check.ok), "{name}: {:?}", found.2);
    }
}

/// Twice the velocities: four times the energy, of which the check of the energy takes no notice; other particles stay as they are.
fn changed(device: &Device) {
    let (_, config) = cases().swap_remove(0);
    let mut gas = setup(&config, device);
    steps(&mut gas, 6);
    let energy = |now: &Columns| now[2..].iter().flat_map(|(_, v)| v).map(|v| v * v).sum::<f64>();
    let (before, others) = (columns(&mut gas, "N2"), columns(&mut gas, "Ar"));
    let faster: Columns = before[2..].iter().map(|(name, v)| (name.clone(), v.iter().map(|v| 2.0 * v).collect())).collect();
    gas.set_particles("N2", &faster).unwrap();
    let after = columns(&mut gas, "N2");
    // Doubling is exact.
    assert_eq!((&after[2..], &after[..2]), (&faster[..], &before[..2]));
    assert!((energy(&after) / energy(&before) - 4.0).abs() < 1e-12);
    assert_eq!(columns(&mut gas, "Ar"), others);
    steps(&mut gas, 10);
    let checks = gas.checks().unwrap();
    assert!(checks.iter().any(|check| check.name.contains("energy")) && checks.iter().all(|check| check.ok), "{checks:?}");
}

#[test]
fn velocities_that_are_set_to_what_they_were_change_nothing() {
    unchanged(&Device::Cpu(Cpu::new(2).unwrap()));
}

#[test]
fn velocities_that_are_set_go_on() {
    let cpu = Device::Cpu(Cpu::new(2).unwrap());
    changed(&cpu);
    let mut gas = setup(&cases()[0].1, &cpu);
    let now = columns(&mut gas, "Ar");
    let told = [
        ("Xe", now.clone(), "no species of this run"),
        ("Ar", vec![("speed".into(), now[0].1.clone())], "no column of particles"),
        ("Ar", vec![("velocity_x".into(), vec![0.0; 3])], "3 values for"),
        ("Ar", vec![("position_x".into(), now[1].1.clone())], "stay where they are"),
        ("Ar", vec![("velocity_y".into(), vec![f64::INFINITY; now[0].1.len()])], "value 0 is inf"),
        // Its flights would never end.
        ("Ar", vec![("velocity_y".into(), vec![-1e12; now[0].1.len()])], "value 0 is -1000000000000 (allowed: -3e6 to 3e6 m/s)"),
    ];
    for (species, columns, text) in told {
        let error = gas.set_particles(species, &columns).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    assert_eq!(columns(&mut gas, "Ar"), now);
    assert!(gas.set_field("temperature", &[10, 12], GivenValues::Real(&[1.0; 120])).is_err());
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn velocities_are_set_on_a_gpu() {
    let Some(cuda) = testing::gpu() else { return };
    let device = Device::Cuda(cuda);
    unchanged(&device);
    changed(&device);
}
