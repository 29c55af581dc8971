//! Begin and end of averages, and their content for mixtures. Seed 20261121.

use std::path::Path;

use crate::common::{argon, device, flow, gap, on_plate, run};
use zellige_dsmc::config::{AUTO, BodyConfig, Config, SpeciesConfig, Value};
use zellige_dsmc::flow::Flow;
use zellige_dsmc::gas::transport::Transport;
use zellige_dsmc::output;
use zellige_dsmc::sampling::{OF_SPECIES, VALUES, width};
use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::record::{Record, Values};

/// Plates that start to slide: momentum diffuses in from the walls in the time `L^2 rho/(pi^2 mu)`. The start comes when that is
/// over, and the shear is that of a run in which the start was set late.
#[test]
fn the_start_is_found_after_the_gas_has_been_set_in_motion() {
    let (mut config, length) = gap(0.05, 20, [273.15; 2], [-400.0, 400.0]);
    (config.steps, config.particles_per_cell) = (6000, Some(400.0));
    config.sampling.start = Some(AUTO);
    let mut auto = flow(&config, 1);
    run(&mut auto, config.steps);
    let found = auto.samples.search.as_ref().unwrap().found.unwrap();
    let argon = &auto.model.species[0];
    let time = length * length * 1e20 * argon.mass / (std::f64::consts::PI.powi(2) * Transport::new(argon, 273.15).viscosity);
    let steps = time / config.dt;
    assert!(found.steady && found.measure <= 2.0, "{found:?}");
    // A flow that is steady from the start is found so after 50 of the 400 blocks of a run (`steady`), 750 steps: it is waited for.
    assert!(750.0 < 1.2 * steps, "{steps}");
    // With eight other seeds 1200 to 1500: the trend is told from noise until a fifth of the first motion is left, exp(-1.5), or less.
    assert!(found.step as f64 > 1.5 * steps && found.step < 3000, "{found:?}, {steps} steps");
    assert_eq!(auto.samples.taken, config.steps - found.step);
    (config.steps, config.sampling.start) = (5000, Some(3000));
    let mut set = flow(&config, 1);
    run(&mut set, config.steps);
    let ((_, [a, ea]), (_, [b, eb])) = (on_plate(&auto), on_plate(&set));
    assert!((a - b).abs() < 4.0 * ea.hypot(eb), "{a} +- {ea}, {b} +- {eb}");
}

/// A flow that goes on from the state of another.
fn taken_up(mut before: Flow, config: &Config) -> Flow {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let mut writer = Writer::create(&path, "dsmc").unwrap();
    before.save(&mut writer).unwrap();
    writer.finish().unwrap();
    let mut flow = flow(config, 1);
    flow.restore(&Reader::open(&path, "dsmc").unwrap()).unwrap();
    flow
}

/// A search that is broken off and taken up again finds the same.
#[test]
fn a_search_survives_a_restart() {
    let mut config = argon(10, 10.0);
    config.steps = 800;
    config.sampling.start = Some(AUTO);
    let mut whole = flow(&config, 1);
    let mut part = flow(&config, 1);
    run(&mut whole, 800);
    for steps in [33, 300, 467] {
        run(&mut part, steps);
        part = taken_up(part, &config);
    }
    let ended = |f: &Flow| (f.samples.search.as_ref().unwrap().found, f.samples.batches, f.values());
    assert!(ended(&whole).0.is_some_and(|f| f.steady), "{:?}", ended(&whole).0);
    assert_eq!(ended(&whole), ended(&part));
}

/// A run that is given more steps after its end is one that had them from the start, with batches as long.
#[test]
fn a_run_goes_on_with_more_steps() {
    let mut config = argon(10, 10.0);
    (config.steps, config.sampling.start, config.sampling.batches) = (800, Some(100), 14);
    let mut whole = flow(&config, 1);
    run(&mut whole, 800);
    (config.steps, config.sampling.batches) = (450, 7);
    let mut part = flow(&config, 1);
    run(&mut part, 450);
    config.steps = 800;
    let mut part = taken_up(part, &config);
    run(&mut part, 350);
    assert_eq!((part.samples.batches, part.samples.closed()), (14, 700));
    assert!(whole.values() == part.values(), "the averages differ");
    let errors = |f: &Flow| (0..100).map(|c| f.samples.error(&f.model, c, 4)).collect::<Vec<_>>();
    assert_eq!(errors(&whole), errors(&part));
}

/// A run that is given many more steps has batches as long as they need be: all that it had averaged is the beginning of the first.
#[test]
fn a_short_run_goes_on_with_longer_batches() {
    let mut config = argon(10, 10.0);
    (config.steps, config.sampling.start) = (800, Some(0));
    let mut whole = flow(&config, 1);
    run(&mut whole, 800);
    config.steps = 45;
    let mut part = flow(&config, 1);
    run(&mut part, 45);
    // Sixteen batches are asked for.
    assert_eq!((part.samples.batches, part.samples.closed()), (22, 44));
    config.steps = 800;
    let mut part = taken_up(part, &config);
    assert_eq!((part.samples.batches, part.samples.taken), (0, 45));
    run(&mut part, 755);
    assert_eq!((part.samples.batches, part.samples.closed()), (16, 800));
    // Samples are equal, and added in another order: differences of larger numbers have fewer digits.
    let near = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| a == b || (a - b).abs() <= 1e-4 * a.abs());
    assert!(near(&whole.values(), &part.values()), "the averages differ");
    let errors = |f: &Flow| (0..100).map(|c| f.samples.error(&f.model, c, 4)).collect::<Vec<_>>();
    assert!(near(&errors(&whole), &errors(&part)), "{:?} {:?}", errors(&whole), errors(&part));
}

/// A window holds what a run holds whose averages begin and end with it.
#[test]
fn a_window_begins_anew() {
    let with = |start: u64, steps: u64, window: Option<u64>| {
        let mut config: Config = argon(8, 10.0);
        (config.steps, config.sampling.start, config.sampling.window, config.sampling.batches) = (steps, Some(start), window, 4);
        flow(&config, 1)
    };
    let mut windows = with(20, 1000, Some(42));
    for k in 0..4_u64 {
        let (begin, end) = (20 + 42 * k, 20 + 42 * (k + 1));
        let steps = end - windows.step;
        run(&mut windows, steps);
        assert!(windows.samples.full);
        // Four batches of 10 steps: the last two of a window are not averaged.
        let mut one = with(begin, begin + 40, None);
        run(&mut one, begin + 40);
        assert_eq!((windows.values(), windows.samples.batches), (one.values(), 4), "window {k}");
        assert_eq!(windows.samples.error(&windows.model, 5, 4), one.samples.error(&one.model, 5, 4));
    }
    run(&mut windows, 1);
    assert!(!windows.samples.full && windows.samples.taken == 1);
}

#[test]
fn windows_and_searches_that_cannot_be_are_refused() {
    let mut config = argon(8, 10.0);
    (config.steps, config.sampling.start, config.sampling.window, config.sampling.every) = (300, Some(AUTO), Some(7), 2);
    let faults = config.check();
    for (path, text) in [("sampling.window", "7 steps"), ("sampling.start", "300 steps with samples every 2")] {
        assert!(faults.iter().any(|f| f.path == path && f.message.contains(text)), "{faults:?}");
    }
}

/// Species of a mixture add up to the gas, and each has its temperature, velocity and errors.
#[test]
fn species_have_values_of_their_own() {
    let mut config = argon(5, 200.0);
    config.species = vec![SpeciesConfig { fraction: 0.25, ..SpeciesConfig::named("N2") }, SpeciesConfig::named("He")];
    config.species[1].fraction = 0.75;
    config.gas.velocity = [100.0, 0.0, 0.0];
    config.dt = 1.4e-8;
    (config.steps, config.sampling.start) = (800, Some(0));
    let mut gas = flow(&config, 1);
    run(&mut gas, 800);
    let (all, width) = (gas.all_values(), width(&gas.model));
    assert_eq!(width, VALUES + 2 * OF_SPECIES.len());
    let mean = |q: usize| all.chunks_exact(width).map(|v| v[q]).sum::<f64>() / 25.0;
    for (kind, name) in [(0, "N2"), (1, "He")] {
        let at = VALUES + OF_SPECIES.len() * kind;
        // The box has 1250 molecules of nitrogen and 3750 of helium: its own temperature and velocity are off by so much.
        let n = [1250.0_f64, 3750.0][kind];
        let thermal = (crate::common::K * 273.15 / gas.model.species[kind].mass).sqrt();
        assert!((mean(at + 4) / 273.15 - 1.0).abs() < 4.0 * (2.0 / 3.0 / n).sqrt(), "{name}: {}", mean(at + 4));
        assert!((mean(at + 1) - 100.0).abs() < 4.0 * thermal / n.sqrt(), "{name}: {}", mean(at + 1));
        for q in [0, 1, 2, 4, 5, 6].into_iter().filter(|q| *q < 6 || kind == 0) {
            for (c, v) in all.chunks_exact(width).enumerate() {
                let error = gas.samples.error(&gas.model, c, at + q);
                // 25 cells, 11 values, 16 batches each: Student's t with 15 degrees of freedom exceeds 6.5 once in 1e5.
                assert!(
                    error > 0.0 && (v[at + q] - mean(at + q)).abs() < 6.5 * error,
                    "{name}, cell {c}, value {q}: {} +- {error}",
                    v[at + q]
                );
            }
        }
    }
    for v in all.chunks_exact(width) {
        assert!(
            ((v[VALUES] + v[VALUES + OF_SPECIES.len()]) / v[0] - 1.0).abs() < 1e-12 && v[VALUES + OF_SPECIES.len() + 6] == 0.0,
            "{v:?}"
        );
    }
    // About the common velocity, from which each species is off by w: p_ij of each and rho w_i w_j, the heat flux with what drifts along.
    for v in all.chunks_exact(width) {
        let (mut pressure, mut stress, mut heat) = (0.0, [0.0; 2], [0.0; 2]);
        for (s, own) in v[VALUES..].chunks_exact(OF_SPECIES.len()).enumerate() {
            let kind = &gas.model.species[s];
            let (rho, w) = (kind.mass * own[0], [1, 2, 3].map(|i| own[i] - v[i]));
            let square: f64 = w.iter().map(|w| w * w).sum();
            let energy = 1.5 * own[8] + 0.5 * f64::from(kind.rotation) * own[0] * crate::common::K * own[6] + 0.5 * rho * square;
            pressure += own[8] + rho * square / 3.0;
            stress[0] += own[9] + rho * w[0] * w[0];
            stress[1] += own[11] + rho * w[0] * w[1];
            heat[0] += own[12] + own[9] * w[0] + own[11] * w[1] + energy * w[0];
            heat[1] += own[13] + own[11] * w[0] + own[10] * w[1] + energy * w[1];
        }
        for (found, whole) in [(pressure, v[8]), (stress[0], v[9]), (stress[1], v[11])] {
            // One particle of 4e4 and more is spent on each mean.
            assert!((found - whole).abs() < 1e-4 * v[8], "{found} and {whole}");
        }
        for (found, whole) in heat.into_iter().zip(&v[12..14]) {
            // Products with z are left out, in either: noise of noise. Helium is as fast as 1300 m/s.
            assert!((found - whole).abs() < 1e-3 * v[8] * 1300.0, "heat flux: {found} and {whole}");
        }
    }
    let names: Vec<String> = output::records(&gas).iter().map(|r| r.name().to_owned()).collect();
    for name in [
        "pressure_He",
        "stress_xy_N2_error",
        "heat_flux_x_He",
        "temperature_N2",
        "density_He",
        "velocity_x_He_error",
        "temperature_rotation_N2",
        "free_path",
        "free_path_error",
        "knudsen_speed",
    ] {
        assert!(names.iter().any(|n| n == name), "{name} is not in {names:?}");
    }
    assert!(!names.iter().any(|n| n == "temperature_rotation_He"));
}

/// Values of a field among records.
fn field(records: &[Record], name: &str) -> Vec<f64> {
    match records.iter().find(|r| r.name() == name) {
        Some(Record::Field(f)) => match &f.values {
            Values::F64(v) => v.clone(),
            Values::F32(_) => panic!("{name} is in single precision"),
        },
        _ => panic!("there is no field {name}"),
    }
}

/// A density that rises linearly: `lambda n'/n` with the free path of what is there.
#[test]
fn local_knudsen_numbers_are_those_of_the_gradient() {
    let mut config = Config::new(vec![20], vec![1e-3], "Ar", 1e22, 273.15);
    config.boundary.all = Some(zellige_dsmc::config::SideConfig::Word(zellige_dsmc::config::sides::SideWord::Specular));
    config.initial.density = Some(Value::Expression("1e22*(1 + x/lx)".into()));
    // So short a step that nothing moves, and so many particles that the density is that asked for to 1e-4.
    (config.particles_per_cell, config.dt, config.steps, config.sampling.start, config.sampling.batches) =
        (Some(20_000.0), 1e-13, 4, Some(0), 2);
    let mut gas = flow(&config, 1);
    run(&mut gas, 4);
    let records = output::records(&gas);
    let (found, path) = (field(&records, "knudsen_density"), field(&records, "free_path"));
    let rate = gas.model.pair(0, 0).mean_rate(273.15);
    let speed = (8.0 * crate::common::K * 273.15 / (std::f64::consts::PI * gas.model.species[0].mass)).sqrt();
    for i in 0..20 {
        let n = 1e22 * (1.0 + (i as f64 + 0.5) / 20.0);
        // The temperature of 20000 particles is known to 0.6 %, of which the free path takes a third; four deviations.
        assert!((path[i] / (speed / (n * rate)) - 1.0).abs() < 0.008, "free path in cell {i}: {}", path[i]);
        let expected = path[i] * (1e22 / 1e-3) / n;
        // Differences of two cells' rounded numbers of particles over 2000 of them (1000 at the ends).
        assert!((found[i] / expected - 1.0).abs() < 2e-3, "cell {i}: {} for {expected}", found[i]);
    }
}

/// Two gases on both sides of plates, one along faces of cells and one through them: no gradient is seen across either, and none in
/// cells that mix both; without plates there is one.
#[test]
fn local_knudsen_numbers_do_not_look_through_bodies() {
    let mut config = Config::new(vec![12, 3], vec![1.2e-3, 3e-4], "Ar", 1e22, 273.15);
    config.boundary.all = Some(zellige_dsmc::config::SideConfig::Word(zellige_dsmc::config::sides::SideWord::Specular));
    config.initial.density = Some(Value::Expression("1e22*(1 + (x > 4e-4) + (x > 8.3e-4))".into()));
    // As above: nothing moves.
    (config.particles_per_cell, config.dt, config.steps, config.sampling.start, config.sampling.batches) =
        (Some(4000.0), 1e-13, 4, Some(0), 2);
    let knudsen = |config: &Config| {
        let mut gas = flow(config, 1);
        run(&mut gas, 4);
        field(&output::records(&gas), "knudsen_density")
    };
    let free = knudsen(&config);
    for (name, x) in [("along_faces", 4e-4), ("through_cells", 8.3e-4)] {
        let outline = zellige_dsmc::geometry::Shape::Plate { points: vec![[x, 0.0], [x, 3e-4]] };
        let wall = zellige_dsmc::config::WallConfig::diffuse(300.0, [0.0; 3]);
        let gas = zellige_dsmc::geometry::Gas::Outside;
        config.bodies.push(BodyConfig {
            name: name.into(),
            outline: Some(outline),
            file: None,
            max_segment_length: None,
            gas,
            wall,
            temperature: None,
            walls: std::collections::BTreeMap::default(),
            reference: None,
        });
    }
    let divided = knudsen(&config);
    for (cell, (free, divided)) in free.iter().zip(&divided).enumerate() {
        let column = cell % 12;
        // Free paths of 1.3e-4 m by densities of 1 to 3: a jump from one cell to the next makes some tenths.
        assert_eq!(*free > 0.05, [3, 4, 7, 8].contains(&column), "cell {cell} without plates: {free}");
        assert_eq!(divided.is_nan(), column == 8, "cell {cell}: {divided}");
        // Numbers of particles are rounded: one of 4000 and more, twice, over two cells of a free path.
        assert!(divided.is_nan() || *divided < 2e-3, "cell {cell}: {divided}");
    }
}

/// Eight particles fly through 400 cells: one alone, seen in two or three samples of a cell, has no temperature but round-off, and
/// would have a Mach number of thousands. What is not known is not a number.
#[test]
fn a_particle_alone_has_no_mach_number() {
    let mut config = argon(20, 0.02);
    // Half of a cell in a step, less than the box in the run: a particle comes by once, in two batches of fourteen at most.
    (config.dt, config.steps, config.gas.velocity) = (2e-9, 28, [3000.0, 0.0, 0.0]);
    (config.sampling.start, config.sampling.batches) = (Some(0), 14);
    let mut gas = flow(&config, 1);
    run(&mut gas, config.steps);
    let records = output::records(&gas);
    let [mach, density, speed] = ["mach", "density", "velocity_x"].map(|name| field(&records, name));
    for name in ["temperature", "temperature_error", "pressure", "stress_xx", "heat_flux_y", "free_path", "velocity_x_error"] {
        let found = field(&records, name).into_iter().zip(&density).filter(|(v, n)| **n > 0.0 && v.is_finite()).count();
        // Two batches at most have seen a particle; some cells have been crossed by several.
        assert!(found < 5, "{name} is known in {found} cells");
    }
    assert!(speed.iter().zip(&density).all(|(u, n)| u.is_nan() == (*n == 0.0)), "velocities of what is there are not shown");
    let crossed = density.iter().filter(|n| **n > 0.0).count();
    assert!(crossed > 40, "{crossed} cells were crossed");
    // That of the stream is 9.7, of two particles by chance some ten times that; round-off of single precision leaves 1/sqrt(eps),
    // thousands.
    assert!(mach.iter().all(|m| m.is_nan() || *m < 1e3), "{:e}", mach.iter().copied().fold(0.0, f64::max));
}

/// Argon that flies in from all sides of a box without collisions, some particles a batch in a cell, in some none: the error
/// bars are what temperatures and velocities scatter by.
#[test]
fn error_bars_of_sparse_cells_are_the_scatter() {
    let mut config = argon(16, 0.0);
    config.collisions.scheme = zellige_dsmc::model::Scheme::None;
    config.boundary.all = Some(zellige_dsmc::config::SideConfig::Word(zellige_dsmc::config::sides::SideWord::Stream));
    (config.gas.velocity, config.dt, config.steps, config.sampling.start) = ([150.0, 0.0, 0.0], 2e-8, 640, Some(0));
    // Squares of what is off from the mean over all cells and of the bars: of velocities, temperature, density and pressure.
    let quantities = [1, 2, 4, 0, 8];
    for per_cell in [0.05, 0.5] {
        config.particles_per_cell = Some(per_cell);
        let (mut off, mut bars) = ([0.0; 5], [0.0; 5]);
        for seed in 0..4 {
            let mut gas = Flow::new(&config, Path::new(""), seed, &device(1)).unwrap();
            run(&mut gas, config.steps);
            let values = gas.values();
            let all: Vec<_> = values.chunks_exact(VALUES).enumerate().filter(|(c, v)| gas.samples.warm(&gas.model, *c, 0, v)).collect();
            assert!(all.len() > 240, "only {} cells know their temperature", all.len());
            for (k, q) in quantities.into_iter().enumerate() {
                let mean = all.iter().map(|(_, v)| v[q]).sum::<f64>() / all.len() as f64;
                off[k] += all.iter().map(|(_, v)| (v[q] - mean).powi(2)).sum::<f64>();
                bars[k] += all.iter().map(|(c, _)| gas.samples.error(&gas.model, *c, q).powi(2)).sum::<f64>();
            }
        }
        for (k, q) in quantities.into_iter().enumerate() {
            let ratio = (bars[k] / off[k]).sqrt();
            println!("{per_cell} a cell, value {q}: bars are {ratio} of the scatter");
            // Particles cross some cells each: that is as many independent ones as 200, whose scatter is known to 1/sqrt(400).
            assert!((ratio - 1.0).abs() < 0.18, "{per_cell} a cell, value {q}: bars are {ratio} of the scatter");
        }
    }
}
