//! The GPU against the CPU: the same flights bit for bit, the same averages within their errors; on the GPU the same bits in
//! every run and after a restart. Seed 20261121. `ZELLIGE_DSMC_TESTS=cuda` runs all other tests of this program on the GPU as well.

use crate::common::{argon, flow_on, run};
use zellige_dsmc::Dsmc;
use zellige_dsmc::config::sides::{InletConfig, OutletConfig, SideConfig, SideInlet, SideOutlet, SideWall, SideWord};
use zellige_dsmc::config::{BodyConfig, Config, SourceConfig, SpeciesConfig, WallConfig, WallModel};
use zellige_dsmc::diagnostics::surfaces;
use zellige_dsmc::flow::Flow;
use zellige_dsmc::geometry::{Gas, Shape};
use zellige_dsmc::model::{Partner, Scheme};
use zellige_dsmc::particles::Particles;
use zellige_dsmc::sampling::{self, VALUES};
use zellige_dsmc::stages::SURFACE_SUMS;
use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::config::Source;
use zellige_engine::device::{Cpu, Device};
use zellige_engine::profile::Profiler;

fn mirror() -> WallConfig {
    WallConfig { model: WallModel::Specular, ..WallConfig::diffuse(300.0, [0.0; 3]) }
}

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

/// Every particle as numbers, in an order of their own.
fn listed(p: &Particles) -> Vec<[u32; 6]> {
    let bits = |v: &[f32], i: usize| v[i].to_bits();
    let one = |i: usize| {
        let [vx, vy, vz] = [0, 1, 2].map(|c| bits(&p.velocity[c], i));
        [p.cell[i], bits(&p.offset[0], i), bits(&p.offset[1], i), vx, vy, vz]
    };
    let mut all: Vec<_> = (0..p.len()).map(one).collect();
    all.sort_unstable();
    all
}

/// Mirrors and periodic sides, a star with sharp corners, a plate through cells, steps of up to three cells: no random number is
/// drawn, so both must find every particle where the other has it.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn flights_are_the_same_on_both() {
    let Some(cuda) = zellige_engine::testing::gpu() else { return };
    let mut config = argon(40, 10.0);
    config.collisions.scheme = Scheme::None;
    config.dt = 3e-8;
    config.boundary.y = Some(SideConfig::Word(SideWord::Specular));
    let star = |k: usize| {
        let (r, a) = (if k.is_multiple_of(2) { 9e-5 } else { 2.5e-5 }, std::f64::consts::TAU * k as f64 / 14.0 + 0.1);
        [1.9e-4 + r * a.cos(), 2.03e-4 + r * a.sin()]
    };
    config.bodies = vec![
        body(Shape::Polygon { vertices: (0..14).map(star).collect() }, mirror()),
        BodyConfig { name: "plate".into(), ..body(Shape::Plate { points: vec![[3.05e-4, 1.1e-4], [3.4e-4, 3.07e-4]] }, mirror()) },
    ];
    let mut found = [Device::Cpu(Cpu::new(0).unwrap()), Device::Cuda(cuda)].map(|device| {
        let mut gas = flow_on(&config, &device);
        run(&mut gas, 60);
        let ledger = gas.ledger().unwrap();
        assert_eq!((ledger.removed, ledger.stuck), (0, 0));
        listed(&gas.stages.particles().unwrap())
    });
    let (a, b) = (std::mem::take(&mut found[0]), std::mem::take(&mut found[1]));
    assert_eq!(a.len(), b.len());
    let other = b.iter().filter(|p| a.binary_search(p).is_err()).count();
    // A length of the C library may differ in its last place from CUDA's, and turn a position on the lattice by one: about 1e-8 of the
    // half a million hits.
    assert!(other * 100_000 <= a.len(), "{other} of {} particles are elsewhere on the GPU", a.len());
}

/// Boxes so full that flights against mirrors are part of the pass, some with several hits, far ways and a pair of periodic sides:
/// the same particles, and the same sums of the sides but for their rounding to whole numbers.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn flights_against_mirrors_of_a_crowd_are_the_same_on_both() {
    let Some(cuda) = zellige_engine::testing::gpu() else { return };
    for (cells, dt, along_x) in [([9, 8], 3e-8, SideWord::Specular), ([3, 2], 1e-7, SideWord::Specular), ([8, 3], 4e-8, SideWord::Periodic)]
    {
        let mut config = Config { dt, ..argon(1, 5000.0) };
        (config.grid.cells, config.grid.size) = (cells.to_vec(), cells.map(|n| 1e-5 * n as f64).to_vec());
        config.collisions.scheme = Scheme::None;
        config.boundary.x = Some(SideConfig::Word(along_x));
        config.boundary.y = Some(SideConfig::Word(SideWord::Specular));
        let found = [Device::Cpu(Cpu::new(0).unwrap()), Device::Cuda(cuda.clone())].map(|device| {
            let mut gas = flow_on(&config, &device);
            (0..20).for_each(|step| gas.stages.advance(step, step % 2 == 1, &mut Profiler::off()).unwrap());
            let mut sums = vec![0.0; 4 * SURFACE_SUMS];
            let mut values = vec![0.0; gas.model.grid.len() * gas.model.collisions.sums()];
            gas.stages.take_samples(&mut values, &mut sums).unwrap();
            assert_eq!(gas.ledger().unwrap().stuck, 0);
            (listed(&gas.stages.particles().unwrap()), sums)
        });
        let other = found[0].0.iter().zip(&found[1].0).filter(|(a, b)| a != b).count();
        assert!(found[0].0.len() == found[1].0.len() && other == 0, "{other} of {} particles differ", found[0].0.len());
        for (side, (a, b)) in found[0].1.chunks_exact(SURFACE_SUMS).zip(found[1].1.chunks_exact(SURFACE_SUMS)).enumerate() {
            let hit = side >= 2 || along_x == SideWord::Specular;
            assert!(hit == (a[0] > 0.0) && (a[0] / b[0].max(1e-300) - 1.0).abs() < 1e-12 || !hit && a == b, "side {side}: {a:?} {b:?}");
            let momentum = a[1 + side / 2];
            for k in 1..SURFACE_SUMS {
                // A hit's rounding is at most 1e-7 of its momentum, and there are thousands of them.
                let most = 1e-7 * if k == 4 { momentum.abs() * 1e4 } else { momentum.abs() };
                assert!((a[k] - b[k]).abs() <= most, "side {side}, sum {k}: {} {}", a[k], b[k]);
            }
        }
    }
}

/// Nitrogen and argon between walls, through a body, fed by sides and a line: everything at once.
pub(crate) fn busy(scheme: Scheme) -> Config {
    let mut config = argon(24, 15.0);
    config.collisions.scheme = scheme;
    config.species =
        vec![SpeciesConfig { fraction: 0.6, ..SpeciesConfig::named("N2") }, SpeciesConfig { fraction: 0.4, ..SpeciesConfig::named("Ar") }];
    config.gas.velocity = [300.0, 50.0, 0.0];
    config.boundary.x = Some(SideConfig::Word(SideWord::Stream));
    config.boundary.y_lo = Some(SideConfig::Wall(SideWall {
        wall: WallConfig { model: WallModel::Cll, normal: 0.7, tangential: 0.8, ..WallConfig::diffuse(400.0, [50.0, 0.0, 0.0]) },
        temperature: Some("300 + 200*s/lx".into()),
    }));
    config.boundary.y_hi = Some(SideConfig::Word(SideWord::Vacuum));
    config.bodies = vec![
        body(Shape::Circle { centre: [1.1e-4, 1.2e-4], radius: 4e-5, segments: 40 }, WallConfig::diffuse(500.0, [0.0; 3])),
        BodyConfig { name: "plate".into(), ..body(Shape::Plate { points: vec![[1.9e-4, 0.8e-4], [1.93e-4, 1.6e-4]] }, mirror()) },
    ];
    config.sources = vec![SourceConfig {
        line: Some([[0.3e-4, 1e-5], [0.3e-4, 5e-5]]),
        direction: Some([1.0, 0.5]),
        temperature: Some(500.0),
        velocity: [100.0, 0.0, 0.0],
        density: Some(3e22),
        schedule: vec![[5, 40], [9, 100]],
        ..SourceConfig::default()
    }];
    config.steps = 60;
    config.sampling.start = Some(20);
    config.sampling.batches = 4;
    config
}

/// Hot gas with nearest-neighbour partners, and a vibration that relaxes as Millikan and White have it.
fn busy_nearest(scheme: Scheme) -> Config {
    let mut config = busy(scheme);
    config.collisions.partner = Partner::NearestNeighbour;
    (config.collisions.vibration, config.collisions.millikan_white) = (true, true);
    config.gas.temperature = 6000.0;
    config.initial.internal_temperature = Some(3000.0);
    config.dt = 2e-9;
    config
}

/// Hot gas of molecules with several modes of vibration, one, and none, blown along z too.
fn busy_modes(scheme: Scheme) -> Config {
    let mut config = busy(scheme);
    config.species[0] = SpeciesConfig { fraction: 0.4, z_vibration: Some(8.0), ..SpeciesConfig::named("CO2") };
    config.species.push(SpeciesConfig { fraction: 0.2, z_vibration: Some(20.0), ..SpeciesConfig::named("O2") });
    config.collisions.vibration = true;
    config.gas.temperature = 1500.0;
    config.initial.internal_temperature = Some(800.0);
    config.gas.velocity[2] = 200.0;
    // A batch of the averages is some three times as long as a molecule stays.
    config.dt = 6e-9;
    config
}

/// Gas with partners that are not the last ones.
fn busy_fresh() -> Config {
    let mut config = busy(Scheme::Ntc);
    config.collisions.partner = Partner::Fresh;
    config
}

/// Gas in cells of different weights, one after the other along x, of two sorts along y.
pub(crate) fn busy_weighted(scheme: Scheme) -> Config {
    Config { cell_weights: Some("(0.5 + 1.5*x/lx)*(1 + (y > ly/2))".into()), ..busy(scheme) }
}

/// Gas of two components of the velocity: a mixture of argon and helium.
pub(crate) fn busy_planar(scheme: Scheme) -> Config {
    let mut config = busy(scheme);
    config.velocity_components = 2;
    config.species[0] = SpeciesConfig { fraction: 0.6, ..SpeciesConfig::named("He") };
    config.boundary.y_hi = Some(SideConfig::Outlet(SideOutlet {
        outlet: OutletConfig { pressure: crate::common::BOX.0 * crate::common::K * 273.15, memory: 200.0 },
    }));
    config
}

/// A mixture between sides that follow it: a flow enters, a pressure lets it out. Walls slide along z.
fn mixed(pressure: f64) -> Config {
    let mut config = argon(20, 30.0);
    config.species =
        vec![SpeciesConfig { fraction: 0.3, ..SpeciesConfig::named("Ar") }, SpeciesConfig { fraction: 0.7, ..SpeciesConfig::named("He") }];
    config.boundary.all = Some(WallConfig::diffuse(300.0, [0.0, 0.0, 150.0]).into());
    let mass = 0.3 * 66.3e-27 + 0.7 * 6.65e-27;
    let mass_flow = Some(crate::common::BOX.0 * mass * 20.0 * 2e-4);
    config.boundary.x_lo =
        Some(SideConfig::Inlet(SideInlet { inlet: InletConfig { temperature: 273.15, pressure: None, mass_flow, memory: 200.0 } }));
    config.boundary.x_hi = Some(SideConfig::Outlet(SideOutlet { outlet: OutletConfig { pressure, memory: 200.0 } }));
    config.dt = 4e-9;
    config.steps = 60;
    config.sampling.start = Some(20);
    config.sampling.batches = 4;
    config
}

/// Everything that a step changes.
fn state(gas: &mut Flow) -> (Particles, Vec<f64>, Vec<f64>) {
    let extra = gas.stages.extra().unwrap();
    (gas.stages.particles().unwrap(), extra, gas.values())
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn runs_on_the_gpu_are_the_same_to_the_bit_and_go_on_so_after_a_restart() {
    let Some(cuda) = zellige_engine::testing::gpu() else { return };
    let device = Device::Cuda(cuda);
    let folder = tempfile::tempdir().unwrap();
    let near = [Scheme::Ntc, Scheme::Majorant].map(busy_nearest);
    let others = [busy_modes(Scheme::Ntc), busy_modes(Scheme::Pairing)];
    let near_weighted = Config { cell_weights: busy_weighted(Scheme::Ntc).cell_weights, ..busy_nearest(Scheme::Ntc) };
    let weighted = [busy_weighted(Scheme::Ntc), busy_weighted(Scheme::Pairing), near_weighted, busy_fresh()];
    let planar = [Scheme::Ntc, Scheme::Pairing].map(busy_planar);
    for config in
        [Scheme::Ntc, Scheme::Majorant, Scheme::Pairing].map(busy).into_iter().chain(near).chain(others).chain(planar).chain(weighted)
    {
        let scheme = (config.collisions.scheme, config.collisions.partner);
        let runs: Vec<_> = (0..3)
            .map(|_| {
                let mut gas = flow_on(&config, &device);
                run(&mut gas, 60);
                let ledger = gas.ledger().unwrap();
                assert_eq!(ledger.there(), gas.totals().unwrap().particles, "{scheme:?}: {ledger:?}");
                assert!(ledger.collisions > 1000 && ledger.removed > 1000 && ledger.stuck == 0, "{ledger:?}");
                state(&mut gas)
            })
            .collect();
        assert!(runs[0] == runs[1] && runs[1] == runs[2], "{scheme:?}");
        // A look in between changes nothing, nor does a new beginning from a checkpoint in the midst of a batch.
        let mut gas = flow_on(&config, &device);
        run(&mut gas, 33);
        let path = folder.path().join("checkpoint");
        let mut writer = Writer::create(&path, "dsmc").unwrap();
        gas.save(&mut writer).unwrap();
        writer.finish().unwrap();
        run(&mut gas, 27);
        assert!(state(&mut gas) == runs[0], "{scheme:?}: after a look");
        let mut gas = flow_on(&config, &device);
        gas.restore(&Reader::open(&path, "dsmc").unwrap()).unwrap();
        run(&mut gas, 27);
        assert!(state(&mut gas) == runs[0], "{scheme:?}: after a restart");
    }
}

/// Means over the domain of the values of the gas, batch by batch: `[batch][VALUES]`. Runs to the end.
fn batches(gas: &mut Flow, steps: u64) -> Vec<[f64; VALUES]> {
    let free: Vec<usize> = (0..gas.model.grid.len()).filter(|c| gas.model.geometry.fraction(*c) > 0.05).collect();
    let sums = |gas: &Flow| (0..gas.model.grid.len()).map(|c| gas.samples.sums(&gas.model, c).to_vec()).collect::<Vec<_>>();
    let (mut before, mut closed, mut all) = (sums(gas), 0, Vec::new());
    while gas.step < steps {
        run(gas, 1);
        if gas.samples.closed() == closed {
            continue;
        }
        let (now, samples) = (sums(gas), gas.samples.closed() - closed);
        let mut mean = [0.0; VALUES];
        for c in &free {
            let own: Vec<f64> = now[*c].iter().zip(&before[*c]).map(|(a, b)| a - b).collect();
            let found = sampling::values(&gas.model, *c, &own, samples);
            mean.iter_mut().zip(found).for_each(|(mean, v)| *mean += v / free.len() as f64);
        }
        all.push(mean);
        (before, closed) = (now, gas.samples.closed());
    }
    all
}

/// The mean of a value over batches and its standard error.
fn mean_of(batches: &[[f64; VALUES]], q: usize) -> [f64; 2] {
    let n = batches.len() as f64;
    let mean = batches.iter().map(|b| b[q]).sum::<f64>() / n;
    let square = batches.iter().map(|b| (b[q] - mean).powi(2)).sum::<f64>();
    [mean, (square / (n - 1.0) / n).sqrt()]
}

/// As rare in Student's t with the 30 degrees of freedom of two times 16 batches as four deviations in Gauss's law.
const FOUR: f64 = 4.6;

/// Checks quantities that are equal everywhere: means over the domain, and the loads on each body.
fn the_same_as_a_whole(name: &str, flows: [&Flow; 2], batches: [&[[f64; VALUES]]; 2]) {
    // All but the free path, which goes with density and temperature and is infinite where nothing is.
    for q in 0..VALUES - 1 {
        let [[a, ea], [b, eb]] = batches.map(|batches| mean_of(batches, q));
        println!("{name} {q}: means {a:e} and {b:e}, off by {:.2} errors", (a - b) / ea.hypot(eb));
        assert!((a - b).abs() <= FOUR * ea.hypot(eb), "{name}: the mean of value {q} is {a} +- {ea} and {b} +- {eb}");
    }
    for (number, body) in flows[0].model.geometry.bodies().iter().enumerate() {
        let [[a, ea], [b, eb]] = flows.map(|f| surfaces::body(f, number).map(|load| load.numbers()));
        for v in (0..a.len()).filter(|v| *v != 4 || !is_mirror(flows[0], body.segments.start)) {
            let error = ea[v].hypot(eb[v]);
            println!("{name} {} {v}: {:e} and {:e}, off by {:.2} errors", body.name, a[v], b[v], (a[v] - b[v]) / error);
            assert!((a[v] - b[v]).abs() <= FOUR * error, "{name}: {}, number {v}: {} and {}, error {error}", body.name, a[v], b[v]);
        }
    }
}

/// True if a segment is of a mirror, which gets no heat but rounding, which the GPU's whole numbers do not have.
fn is_mirror(flow: &Flow, segment: usize) -> bool {
    flow.model.walls[flow.model.geometry.segments()[segment].wall as usize].model == zellige_dsmc::walls::Model::Specular
}

/// Averages of the same flow on both: every cell and surface, means over the domain, what bodies feel; errors from the batches of
/// both.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn averages_agree_within_their_errors() {
    let Some(cuda) = zellige_engine::testing::gpu() else { return };
    let mut slow = argon(20, 30.0);
    slow.boundary.all = Some(WallConfig::diffuse(300.0, [0.0; 3]).into());
    let pressure = crate::common::BOX.0 * crate::common::K * 273.15;
    slow.boundary.x_lo = Some(SideConfig::Inlet(SideInlet {
        inlet: InletConfig { temperature: 273.15, pressure: Some(pressure * 1.1), mass_flow: None, memory: 200.0 },
    }));
    slow.boundary.x_hi = Some(SideConfig::Outlet(SideOutlet { outlet: OutletConfig { pressure, memory: 200.0 } }));
    let all = [
        ("busy", busy(Scheme::Ntc)),
        ("busy pairs", busy(Scheme::Pairing)),
        ("busy nearest", busy_nearest(Scheme::Ntc)),
        ("pressures", slow),
    ];
    let several = [
        ("pressure and flow of a mixture", mixed(pressure)),
        ("several modes", busy_modes(Scheme::Ntc)),
        ("two components", busy_planar(Scheme::Ntc)),
        ("two components, pairs", busy_planar(Scheme::Pairing)),
        ("weights", busy_weighted(Scheme::Ntc)),
        ("weights, pairs", busy_weighted(Scheme::Pairing)),
        ("fresh partners", busy_fresh()),
    ];
    for (name, config) in all.into_iter().chain(several) {
        let mut config = config;
        // Batches several times as long as what a mean over the domain remembers: the time that a molecule stays, 115 to 130 steps; where
        // sides follow the gas, 200 steps of theirs and 130 that momentum takes to the walls, and there is a fifth of the particles.
        let follows = config.gas.velocity[0] == 0.0;
        let batch = if follows {
            1200
        } else if config.collisions.partner == Partner::NearestNeighbour {
            600
        } else {
            400
        };
        if follows {
            config.particles_per_cell = Some(6.0);
        }
        config.steps = 1000 + 16 * batch;
        config.sampling.start = Some(1000);
        config.sampling.batches = 16;
        let [(one, by_one), (other, by_other)] = [Device::Cpu(Cpu::new(0).unwrap()), Device::Cuda(cuda.clone())].map(|device| {
            let mut gas = flow_on(&config, &device);
            let batches = batches(&mut gas, config.steps);
            (gas, batches)
        });
        the_same_as_a_whole(name, [&one, &other], [&by_one, &by_other]);
        let flows = [one, other];
        // Density, speed along x, temperatures, pressure, heat flux: mean square of the differences over the errors, which is 1 for
        // independent batches; (1 + 1/16) and the correlation of neighbours widen it. Single cells may not be far off either.
        let (at, width) = (sampling::first_with_z(&flows[0].model), sampling::width(&flows[0].model));
        let values = flows.each_ref().map(Flow::all_values);
        for q in [0, 1, 2, 4, 5, 6, 7, 8, 11, 12, 13].into_iter().chain(at..width) {
            let (mut squares, mut sum, mut count, mut worst) = (0.0, 0.0, 0.0, 0.0_f64);
            for cell in 0..flows[0].model.grid.len() {
                let error = flows[0].samples.error(&flows[0].model, cell, q).hypot(flows[1].samples.error(&flows[1].model, cell, q));
                if error > 0.0 && flows[0].model.geometry.fraction(cell) > 0.05 {
                    let z = (values[0][cell * width + q] - values[1][cell * width + q]) / error;
                    squares += z * z;
                    sum += z;
                    count += 1.0;
                    worst = worst.max(z.abs());
                }
            }
            // Deviations that all cells share, such as the flow through a channel that its ends drive, the means over the domain
            // tell better.
            let spread = (squares - sum * sum / f64::max(count, 1.0)) / f64::max(count, 1.0);
            println!("{name} {q}: mean square {spread:.3} about the mean of {count} cells, worst {worst:.2}");
            // Student's t with 30 degrees of freedom: mean square 1.07; 576 cells scatter by 7 %, correlated ones by some times that.
            assert!(spread < 1.6, "{name}: value {q} differs: mean square {spread}");
            assert!(worst < 7.0, "{name}: value {q} differs by {worst} errors in a cell");
        }
        for surface in 0..4 + flows[0].model.geometry.segments().len() {
            let found = flows.each_ref().map(|f| f.samples.surface(&f.model, surface));
            for v in 0..if surface >= 4 && is_mirror(&flows[0], surface - 4) { 4 } else { 5 } {
                let ([a, b], error) = ([found[0][v][0], found[1][v][0]], found[0][v][1].hypot(found[1][v][1]));
                assert!((a - b).abs() <= 6.5 * error, "{name}: surface {surface}, value {v}: {a} and {b}, error {error}");
            }
        }
    }
}

/// A particle's journey over half of the domain in a step, and a cell with all of the gas: far leavers, tiles that do not fit.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn nothing_is_lost_where_everything_moves_far_or_crowds() {
    let Some(cuda) = zellige_engine::testing::gpu() else { return };
    let device = Device::Cuda(cuda);
    for (dt, boundary) in [(2e-6, SideWord::Periodic), (7e-9, SideWord::Specular)] {
        let mut config = argon(64, 10.0);
        config.dt = dt;
        config.boundary.all = Some(SideConfig::Word(boundary));
        config.collisions.scheme = Scheme::Pairing;
        config.initial.density = Some(zellige_dsmc::config::Value::Expression("3e21*4096*(x < hx)*(y < hy)".into()));
        let mut gas = flow_on(&config, &device);
        let before = gas.totals().unwrap();
        run(&mut gas, 100);
        let after = gas.totals().unwrap();
        assert_eq!((after.particles, gas.ledger().unwrap().stuck), (before.particles, 0));
        // Rounding in single precision.
        assert!((after.translation / before.translation - 1.0).abs() < 1e-5, "{before:?} {after:?}");
        assert_eq!(gas.stages.particles().unwrap().len() as u64, before.particles);
    }
}

/// Every example as it stands, for a few steps with samples: what comes and goes adds up.
#[test]
fn every_example_runs() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/dsmc");
    let mut names: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "toml")).collect();
    names.sort();
    assert!(names.len() >= 6, "{names:?}");
    let mut devices = vec![crate::common::device(0)];
    devices.extend(zellige_engine::testing::gpu().map(Device::Cuda));
    for path in names {
        let mut config = Source::read(&path).unwrap().typed::<Dsmc>().unwrap().config;
        config.sampling.start = Some(10);
        for device in &devices {
            let mut gas = Flow::new(&config, &folder, 1, device).unwrap();
            run(&mut gas, 20);
            let (ledger, totals) = (gas.ledger().unwrap(), gas.totals().unwrap());
            assert_eq!((ledger.there(), ledger.stuck), (totals.particles, 0), "{} on {}", path.display(), device.id());
            assert!(totals.particles > 0 && gas.samples.taken > 0, "{} on {}", path.display(), device.id());
        }
    }
}

/// A checkpoint of the CPU is no checkpoint of a GPU: refused, not misread.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn a_checkpoint_stays_on_its_device() {
    let Some(cuda) = zellige_engine::testing::gpu() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (config, path) = (busy(Scheme::Ntc), folder.path().join("checkpoint"));
    let devices = [Device::Cpu(Cpu::new(0).unwrap()), Device::Cuda(cuda)];
    for (from, to) in [(0, 1), (1, 0)] {
        let mut gas = flow_on(&config, &devices[from]);
        run(&mut gas, 3);
        let mut writer = Writer::create(&path, "dsmc").unwrap();
        gas.save(&mut writer).unwrap();
        writer.finish().unwrap();
        let error = flow_on(&config, &devices[to]).restore(&Reader::open(&path, "dsmc").unwrap()).unwrap_err();
        assert!(error.to_string().contains("collisions"), "{error}");
    }
}
