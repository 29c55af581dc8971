//! Flows between walls, through open sides and past a body against closed forms; what must be bitwise identical. Seed 20261121.

use crate::common::{self, K, argon, close, flow, gap, mean, on_plate, run, temperatures};
use zellige_dsmc::config::sides::{SideConfig, SideInflow, SideWall, SideWord};
use zellige_dsmc::config::{BodyConfig, Config, GasConfig, SpeciesConfig, Value, WallConfig};
use zellige_dsmc::diagnostics::surfaces;
use zellige_dsmc::gas::table::Model as Molecules;
use zellige_dsmc::geometry::{Gas, Shape};
use zellige_dsmc::model::Scheme;
use zellige_dsmc::particles::Particles;
use zellige_dsmc::sampling::VALUES;
use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::rng::Philox;

/// Without collisions a step may be four times as long as one that must not cross a cell: flights are straight, and all hits count.
fn free(config: &mut Config) {
    config.collisions.scheme = Scheme::None;
    config.dt *= 4.0;
    config.steps = 2000;
    config.sampling.start = Some(375);
}

/// Without collisions: `q = 2 k n sqrt(2 k/(pi m)) sqrt(T1 T2)(T1 - T2)/(sqrt T1 + sqrt T2)`, shear `rho U sqrt(k T/(2 pi m))`.
#[test]
fn plates_without_collisions_have_the_free_molecular_fluxes() {
    plates(1.0, Scheme::None);
}

/// Fluxes with rare collisions: at Knudsen number 200 they take 0.13 % of the heat and 0.25 % of the shear.
#[test]
fn plates_far_nearer_than_a_free_path_have_the_free_molecular_fluxes() {
    plates(200.0, Scheme::Ntc);
}

fn plates(kn: f64, scheme: Scheme) {
    // The forms hold at any ratio and speed; large ones stand out of the noise.
    let set_up = |temperatures, speeds| {
        let (mut config, _) = gap(kn, 20, temperatures, speeds);
        free(&mut config);
        config.collisions.scheme = scheme;
        config
    };
    let config = set_up([450.0, 150.0], [0.0; 2]);
    let mut gas = flow(&config, 1);
    run(&mut gas, config.steps);
    let (m, n) = (gas.model.species[0].mass, 1e20);
    let (t1, t2): (f64, f64) = (450.0, 150.0);
    let q = 2.0 * K * n * (2.0 * K / (std::f64::consts::PI * m)).sqrt() * (t1 * t2).sqrt() * (t1 - t2) / (t1.sqrt() + t2.sqrt());
    let ([heat, error], _) = on_plate(&gas);
    // The hot plate is the lower one: it loses heat. The number of particles is kept exactly, so the density is.
    close("heat", -heat, q, 0.005, error / q);
    let config = set_up([273.15; 2], [-300.0, 300.0]);
    let mut gas = flow(&config, 1);
    run(&mut gas, config.steps);
    let shear = n * m * 600.0 * (K * 273.15 / (2.0 * std::f64::consts::PI * m)).sqrt();
    let ([heat, heat_error], [found, error]) = on_plate(&gas);
    close("shear", found, shear, 0.005, error / shear);
    // Each plate gets half of the work of both, seen from where it stands.
    close("heat of the work", heat, 300.0 * shear, 0.005, heat_error / heat);
}

/// Without collisions as many molecules hit every part of diffuse walls, whatever their temperatures. So the heat of each side of a
/// square whose lower one is warmer along it follows from what each of its positions sees of the others: a part `(1 - sin a)/2` of
/// what leaves at `s` goes to the side at the distance `s`, `tan a` being `s` over the height.
#[test]
fn a_wall_that_is_warmer_at_one_end_heats_the_side_beside_it() {
    let mut config = argon(20, 20.0);
    config.collisions.scheme = Scheme::None;
    (config.gas.temperature, config.dt) = (300.0, 8e-8);
    let wall = WallConfig::diffuse(300.0, [0.0; 3]);
    config.boundary.all = Some(wall.clone().into());
    config.boundary.y_lo = Some(SideConfig::Wall(SideWall { wall, temperature: Some("300 + 900*s/lx".into()) }));
    (config.steps, config.sampling.start) = (1200, Some(100));
    let mut gas = flow(&config, 1);
    run(&mut gas, config.steps);
    let found = [0, 1, 2, 3].map(|side| gas.samples.surface(&gas.model, side));
    let flux = found.iter().map(|f| f[0][0]).sum::<f64>() / 4.0;
    for (side, f) in found.iter().enumerate() {
        close(&format!("hits of side {side}"), f[0][0], flux, 0.004, f[0][1] / flux);
    }
    // The part of the warmth that arrives: 900 K on average u for u = s/L in 0..1.
    let n = 1000;
    let seen = |away: fn(f64) -> f64| {
        let part = |k: i32| {
            let u = (f64::from(k) + 0.5) / f64::from(n);
            u * 0.5 * (1.0 - away(u) / away(u).hypot(1.0))
        };
        (0..n).map(part).sum::<f64>() / f64::from(n)
    };
    let (low, high) = (seen(|u| u), seen(|u| 1.0 - u));
    for (side, part) in [(0, low), (1, high), (2, -0.5), (3, 0.5 - low - high)] {
        let expected = 2.0 * K * 900.0 * flux * part;
        // Cells of a twentieth of the side, each of one temperature: an error of the order of 1/400 of the whole.
        close(&format!("heat of side {side}"), found[side][4][0], expected, 0.01, found[side][4][1] / expected.abs());
    }
}

/// A box with four open sides stays as the gas around it, at rest and in a fast oblique stream.
#[test]
fn open_sides_keep_the_gas_that_flows_through() {
    for (velocity, species) in [([0.0; 3], "Ar"), ([200.0, 100.0, -50.0], "N2"), ([1500.0, -900.0, 0.0], "Ar")] {
        let mut config = argon(20, 20.0);
        config.species = vec![SpeciesConfig::named(species)];
        config.gas.velocity = velocity;
        config.boundary.all = Some(SideConfig::Word(SideWord::Stream));
        // A quarter of the time between collisions; a fast stream crosses half a cell.
        config.dt = if velocity[0] > 1000.0 { 4e-9 } else { 1.4e-8 };
        config.steps = 800;
        config.sampling.start = Some(100);
        let mut gas = flow(&config, 1);
        run(&mut gas, config.steps);
        let spread = (gas.samples.closed() as f64 * 400.0 * 20.0).sqrt();
        // Samples of successive steps are correlated over the time that a molecule stays: some twenty steps.
        let sigma = 4.3 / spread;
        close(&format!("{species} {velocity:?}: density"), mean(&gas, 0), common::BOX.0, 0.003, sigma);
        close(&format!("{species} {velocity:?}: temperature"), mean(&gas, 4), common::BOX.1, 0.003, sigma);
        for c in 0..3 {
            let speed = (2.0 * K * common::BOX.1 / gas.model.species[0].mass).sqrt();
            let found = mean(&gas, 1 + c);
            assert!((found - velocity[c]).abs() < speed * (4.0 * sigma).max(0.003), "{species}: {found}, expected {}", velocity[c]);
        }
        let ledger = gas.ledger().unwrap();
        assert_eq!(ledger.injected - ledger.removed, gas.totals().unwrap().particles);
    }
}

/// Gas on one side, vacuum on the other, no collisions: half the density, a half Maxwellian, flux `n c/4`.
#[test]
fn effusion_into_a_vacuum_is_half_a_maxwellian() {
    let mut config = Config::new(vec![10], vec![1e-3], "Ar", 1e20, 300.0);
    config.collisions.scheme = Scheme::None;
    config.boundary.x_lo =
        Some(SideConfig::Inflow(SideInflow { inflow: GasConfig { density: 1e20, temperature: 300.0, velocity: [0.0; 3] } }));
    config.boundary.x_hi = Some(SideConfig::Word(SideWord::Vacuum));
    config.initial.density = Some(Value::Number(0.0));
    config.particles_per_cell = Some(200.0);
    // A step and a half for a cell, which changes no flight.
    config.dt = 4e-7;
    // Slow molecules are the last to arrive: the density lacks those slower than a gap in the time passed, here 0.1 %.
    config.steps = 7500;
    config.sampling.start = Some(3750);
    let mut gas = flow(&config, 1);
    run(&mut gas, 3750);
    let before = gas.ledger().unwrap();
    run(&mut gas, 3750);
    let after = gas.ledger().unwrap();
    let m = gas.model.species[0].mass;
    let mean_speed = (8.0 * K * 300.0 / (std::f64::consts::PI * m)).sqrt();
    let expected = 1e20 * mean_speed / 4.0 * 3750.0 * gas.model.dt / gas.model.weight;
    close("flux in", (after.injected - before.injected) as f64, expected, 0.003, expected.sqrt().recip());
    close("flux out", (after.removed - before.removed) as f64, expected, 0.003, expected.sqrt().recip());
    close("density", mean(&gas, 0), 0.5e20, 0.005, 0.0);
    close("velocity", mean(&gas, 1), 0.5 * mean_speed, 0.005, 0.0);
    close("momentum flux", mean(&gas, 9) + m * mean(&gas, 0) * mean(&gas, 1).powi(2), 0.5e20 * K * 300.0, 0.01, 0.0);
}

fn cylinder(ratio: f64) -> Config {
    let mut config = Config::new(vec![40; 2], vec![4.0; 2], "Ar", 1e18, 200.0);
    config.grid.origin = vec![-2.0; 2];
    config.collisions.scheme = Scheme::None;
    let speed = ratio * zellige_dsmc::gas::table::find("Ar", Molecules::default()).unwrap().most_probable_speed(200.0);
    config.gas.velocity = [speed, 0.0, 0.0];
    config.boundary.all = Some(SideConfig::Word(SideWord::Stream));
    config.dt = 0.05 / speed;
    config.bodies.push(BodyConfig {
        name: "cylinder".into(),
        outline: Some(Shape::Circle { centre: [0.013, -0.027], radius: 0.5, segments: 120 }),
        file: None,
        gas: Gas::Outside,
        wall: WallConfig::diffuse(200.0, [0.0; 3]),
        max_segment_length: None,
        temperature: None,
        walls: std::collections::BTreeMap::default(),
        reference: None,
    });
    config.particles_per_cell = Some(20.0);
    config
}

/// Free-molecular drag of a diffuse cylinder: coefficient 3.0583 at speed ratio 2, 2.3381 at 5 (closed form with Bessel functions).
#[test]
fn a_cylinder_in_free_flight_has_its_drag() {
    for (ratio, drag) in [(2.0, 3.0583), (5.0, 2.3381)] {
        let mut config = cylinder(ratio);
        // Nothing comes back from beyond a box of twice the diameter; flights are straight, a cell a step, and every hit counts.
        (config.grid.cells, config.grid.size, config.grid.origin) = (vec![20; 2], vec![2.0; 2], vec![-1.0; 2]);
        config.dt *= 2.0;
        config.steps = 400;
        config.sampling.start = Some(40);
        let mut gas = flow(&config, 1);
        run(&mut gas, config.steps);
        let m = gas.model.species[0].mass;
        let scale = 0.5 * 1e18 * m * config.gas.velocity[0].powi(2) * 1.0;
        let [load, error] = surfaces::body(&gas, 0);
        let ([x, y, _], [ex, ey, _]) = (load.force, error.force);
        let [c, _] = surfaces::reference(&gas).unwrap().drag(load.force, 1.0);
        assert!((c - x / scale).abs() < 1e-12 * c, "{c}");
        close(&format!("drag at S = {ratio}"), x / scale, drag, 0.005, ex / x);
        assert!(y.abs() < 4.0 * ey, "lift {y} +- {ey}");
        let ledger = gas.ledger().unwrap();
        assert_eq!((ledger.injected - ledger.removed, ledger.stuck), (gas.totals().unwrap().particles, 0));
    }
}

/// A gas at rest around a body of its temperature: the density is the same in whole and in cut cells.
#[test]
fn a_gas_at_rest_is_even_up_to_the_wall() {
    let mut config = argon(16, 30.0);
    config.boundary.all = Some(SideConfig::Word(SideWord::Specular));
    config.bodies.push(BodyConfig {
        name: "disc".into(),
        outline: Some(Shape::Circle { centre: [8.3e-5, 7.6e-5], radius: 3.3e-5, segments: 60 }),
        file: None,
        gas: Gas::Outside,
        wall: WallConfig::diffuse(273.15, [0.0; 3]),
        max_segment_length: None,
        temperature: None,
        walls: std::collections::BTreeMap::default(),
        reference: None,
    });
    config.dt = 1.4e-8;
    config.steps = 1000;
    config.sampling.start = Some(40);
    let mut gas = flow(&config, 1);
    run(&mut gas, config.steps);
    let values = gas.values();
    let total = gas.totals().unwrap().particles as f64 * gas.model.weight;
    let volume: f64 = (0..gas.model.grid.len()).map(|c| gas.model.cell_volume(c)).sum();
    let (mut worst, mut cut) = (0.0_f64, 0);
    for c in (0..gas.model.grid.len()).filter(|c| gas.model.geometry.fraction(*c) > 0.02) {
        cut += usize::from(gas.model.geometry.fraction(c) < 1.0);
        worst = worst.max((values[c * VALUES] - total / volume).abs() / gas.samples.error(&gas.model, c, 0));
    }
    // Of 240 deviations in units of errors from 16 batches (Student's t with 15 degrees of freedom) the largest exceeds 5.5 with
    // a probability of 1.5 %.
    assert!(cut > 20 && worst < 5.5, "{worst} of {cut} cut cells");
}

/// Some input with everything: two species with rotation and vibration, walls, a body, open sides.
fn everything() -> Config {
    let mut config = cylinder(2.0);
    config.gas.density = 2e19;
    config.collisions.scheme = Scheme::Ntc;
    config.collisions.vibration = true;
    let vibrating = |name: &str| SpeciesConfig { z_vibration: Some(20.0), ..SpeciesConfig::named(name) };
    config.species = vec![vibrating("N2"), SpeciesConfig::named("O"), vibrating("CO2")];
    let wall = WallConfig::diffuse(3000.0, [100.0, 0.0, 50.0]);
    config.boundary.y_lo = Some(SideConfig::Wall(SideWall { wall, temperature: Some("3000 - 500*s/lx".into()) }));
    config.initial.temperature = Some("200 + 2000*(x > 0)".into_value());
    config.dt = 4e-5;
    config.steps = 60;
    config.sampling.start = Some(10);
    config.sampling.batches = 7;
    config
}

trait IntoValue {
    fn into_value(self) -> Value;
}

impl IntoValue for &str {
    fn into_value(self) -> Value {
        Value::Expression(self.into())
    }
}

/// Particles and averages are bitwise identical on one thread and on three, and across a restart.
#[test]
fn threads_and_restarts_change_no_bit() {
    let config = everything();
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
    assert!(expected.len() > 20_000 && expected.level.iter().any(|l| *l > 0), "{}", expected.len());
    for other in [&mut three, &mut resumed] {
        assert_eq!(other.stages.particles().unwrap(), expected);
        assert_eq!((other.values(), other.ledger().unwrap()), (one.values(), one.ledger().unwrap()));
        for s in [2, 10, 50] {
            assert_eq!(format!("{:?}", other.samples.surface(&other.model, s)), format!("{:?}", one.samples.surface(&one.model, s)));
        }
    }
}

/// Without collisions a particle between periodic sides and mirrors flies straight on, folded back into the box: whatever it
/// passes or hits on the way, a step is a step.
#[test]
fn flights_through_periodic_sides_and_off_mirrors_take_their_step() {
    let mut config = argon(8, 1.0);
    config.collisions.scheme = Scheme::None;
    config.boundary.y = Some(SideConfig::Word(SideWord::Specular));
    config.dt = 5e-8;
    let mut gas = flow(&config, 1);
    let (mut start, dice) = (Particles::default(), Philox::new(0xfff4, 1));
    for i in 0..400 {
        let ([cell, _], offset, [u, v]) = (dice.uniforms(0, i), dice.uniforms(1, i), dice.uniforms(2, i));
        // Up to four cells a step.
        let velocity = [1600.0 * u - 800.0, 1600.0 * v - 800.0, 0.0].map(|v| v as f32);
        start.push((64.0 * cell) as u32, 0, offset.map(|x| x as f32), velocity, None, None);
    }
    gas.stages.clear().unwrap();
    gas.stages.insert(&start).unwrap();
    let steps = 5;
    run(&mut gas, steps);
    let (end, per_velocity) = (gas.stages.particles().unwrap(), config.dt * steps as f64 / 1e-5);
    assert_eq!(end.len(), start.len());
    let position = |p: &Particles, i: usize| [0, 1].map(|d| f64::from([p.cell[i] % 8, p.cell[i] / 8][d]) + f64::from(p.offset[d][i]));
    for i in 0..start.len() {
        // Mirrors along x only turn the velocity along y: that along x tells who is who.
        let j = (0..end.len()).find(|j| end.velocity[0][*j] == start.velocity[0][i]).unwrap();
        let (from, found) = (position(&start, i), position(&end, j));
        let flown = [0, 1].map(|d| from[d] + per_velocity * f64::from(start.velocity[d][i]));
        let y = flown[1].rem_euclid(16.0);
        let expected = [flown[0].rem_euclid(8.0), y.min(16.0 - y)];
        // Positions in single precision, rounded in every step.
        let off = [(found[0] - expected[0] + 4.0).rem_euclid(8.0) - 4.0, found[1] - expected[1]];
        assert!(off.iter().all(|off| off.abs() < 1e-4), "{i}: {found:?}, expected {expected:?}");
    }
}

/// Particles on each side of the plate, and the sum of the squares of their velocities.
fn beside(gas: &mut zellige_dsmc::flow::Flow) -> [[f64; 2]; 2] {
    let p = gas.stages.particles().unwrap();
    let mut sums = [[0.0; 2]; 2];
    for i in 0..p.len() {
        let x = f64::from(p.cell[i] % 12) + f64::from(p.offset[0][i]);
        let side = &mut sums[usize::from(x > 5.3)];
        side[0] += 1.0;
        side[1] += (0..3).map(|c| f64::from(p.velocity[c][i]).powi(2)).sum::<f64>();
    }
    sums
}

/// A plate without thickness through the middle of cells, gases of two temperatures beside it: a mirror lets no energy through, and
/// no pair collides through it. Each side collides as often as its own density has it.
#[test]
fn nothing_collides_through_a_plate() {
    for scheme in [Scheme::Ntc, Scheme::Pairing] {
        let mut config = argon(12, 40.0);
        config.collisions.scheme = scheme;
        config.boundary.all = Some(SideConfig::Word(SideWord::Specular));
        config.initial.temperature = Some("if(x < 5.3e-5, 400, 150)".into_value());
        let wall = WallConfig { model: zellige_dsmc::config::WallModel::Specular, ..WallConfig::diffuse(1.0, [0.0; 3]) };
        let outline = Some(Shape::Plate { points: vec![[5.3e-5, 0.0], [5.3e-5, 12e-5]] });
        config.bodies.push(BodyConfig {
            name: "plate".into(),
            outline,
            file: None,
            max_segment_length: None,
            gas: Gas::Outside,
            wall,
            temperature: None,
            walls: std::collections::BTreeMap::default(),
            reference: None,
        });
        let mut gas = flow(&config, 1);
        let before = beside(&mut gas);
        run(&mut gas, 100);
        let first = gas.ledger().unwrap().collisions;
        run(&mut gas, 500);
        let collisions = (gas.ledger().unwrap().collisions - first) as f64;
        let after = beside(&mut gas);
        let mut expected = 0.0;
        for (s, cells) in [5.3, 6.7].into_iter().enumerate() {
            assert_eq!(before[s][0], after[s][0], "{scheme:?}: particles of side {s}");
            assert!((after[s][1] / before[s][1] - 1.0).abs() < 1e-5, "{scheme:?}: energy of side {s}: {before:?} {after:?}");
            let n = after[s][0];
            let density = n * gas.model.weight / (cells * 12.0 * gas.model.grid.volume());
            let temperature = gas.model.species[0].mass * after[s][1] / n / (3.0 * K);
            expected += 0.5 * n * density * gas.model.pair(0, 0).mean_rate(temperature) * gas.model.dt * 500.0;
        }
        close(&format!("{scheme:?}: collisions"), collisions, expected, 0.005, expected.sqrt().recip());
    }
}

/// Mirrors keep every joule, and everything moved is there: particles, whatever crowds in a corner.
#[test]
fn a_closed_box_keeps_particles_and_energy() {
    let mut config = argon(30, 10.0);
    config.boundary.all = Some(SideConfig::Word(SideWord::Specular));
    // All of the gas in one cell's width at the start: a cell with 300 times the mean, emptying into a vacuum.
    config.initial.density = Some("2e25*(x < hx)*(y < hy)".into_value());
    let mut gas = flow(&config, 1);
    let before = gas.totals().unwrap();
    run(&mut gas, 400);
    let after = gas.totals().unwrap();
    assert_eq!((after.particles, gas.ledger().unwrap().stuck), (before.particles, 0));
    assert!((after.translation / before.translation - 1.0).abs() < 1e-5);
    let ([x, y, z], ..) = temperatures(&mut gas);
    assert!(x.min(y).min(z) > 200.0, "{x} {y} {z}");
}
