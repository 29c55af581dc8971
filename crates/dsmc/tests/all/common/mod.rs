//! Shared code of the tests.
#![allow(dead_code, unreachable_pub)]

use std::path::Path;

use zellige_dsmc::config::{Config, WallConfig};
use zellige_dsmc::flow::Flow;
use zellige_dsmc::gas::table::Model as Molecules;
use zellige_dsmc::gas::transport::Transport;
use zellige_dsmc::sampling::VALUES;
use zellige_engine::cuda::Cuda;
use zellige_engine::device::{Cpu, Device};
use zellige_engine::profile::Profiler;

/// Number density of SPARTA's box of argon, 1/m^3, and its temperature, K.
pub const BOX: (f64, f64) = (7.07043e22, 273.15);
/// Boltzmann's constant.
pub const K: f64 = 1.380_649e-23;

/// Device of the tests: so many threads of the CPU, or, with `ZELLIGE_DSMC_TESTS=cuda`, the first GPU for all of them.
pub fn device(threads: usize) -> Device {
    match std::env::var("ZELLIGE_DSMC_TESTS").as_deref() {
        Ok("cuda") => Device::Cuda(Cuda::open(0).unwrap()),
        Ok(other) => panic!("ZELLIGE_DSMC_TESTS is `{other}`; only `cuda` is known"),
        Err(_) => Device::Cpu(Cpu::new(threads).unwrap()),
    }
}

/// A flow there. Tests ask for one thread: they run side by side, bits do not depend on the number, and threads that wait for each
/// other at the end of steps of a millisecond cost as much as they bring.
pub fn flow(config: &Config, threads: usize) -> Flow {
    flow_on(config, &device(threads))
}

/// A flow on a device.
pub fn flow_on(config: &Config, device: &Device) -> Flow {
    assert_eq!(config.check(), []);
    Flow::new(config, Path::new(""), 20_261_121, device).unwrap()
}

/// Steps on.
pub fn run(flow: &mut Flow, steps: u64) {
    for _ in 0..steps {
        flow.advance(&mut Profiler::off()).unwrap();
    }
    flow.fetch().unwrap();
}

/// A periodic box of argon, `side` cells a side of about a free path.
pub fn argon(side: usize, per_cell: f64) -> Config {
    let mut config = Config::new(vec![side; 2], vec![1e-5 * side as f64; 2], "Ar", BOX.0, BOX.1);
    config.particles_per_cell = Some(per_cell);
    config.dt = 7e-9;
    config.steps = 1 << 30;
    config
}

/// Mean of value `q` over cells.
pub fn mean(flow: &Flow, q: usize) -> f64 {
    let values = flow.values();
    values.chunks_exact(VALUES).map(|v| v[q]).sum::<f64>() / (values.len() / VALUES) as f64
}

/// Temperatures of the particles' motion along each axis about their mean, of the rotation, and the mean level of a lone mode.
pub fn temperatures(flow: &mut Flow) -> ([f64; 3], f64, f64) {
    let p = flow.stages.particles().unwrap();
    let n = p.len() as f64;
    let species = &flow.model.species[0];
    let moment = |c: usize| {
        let sum: f64 = p.velocity[c].iter().map(|v| f64::from(*v)).sum::<f64>() / n;
        let square = p.velocity[c].iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / n;
        species.mass / K * (square - sum * sum)
    };
    let rotation = p.rotation.iter().map(|e| f64::from(*e)).sum::<f64>() / n * 2.0 / f64::from(species.rotation.max(1));
    let level = p.level.iter().map(|q| f64::from(*q)).sum::<f64>() / n;
    ([moment(0), moment(1), moment(2)], rotation, level)
}

/// Fails where `found` is further from `expected` than the larger of the tolerance (relative) and four standard deviations
/// (relative). These may not be more than three times the tolerance or 5 %: a run's own errors that swell must not let anything
/// pass.
pub fn close(what: &str, found: f64, expected: f64, tolerance: f64, sigma: f64) {
    let most = f64::max(3.0 * tolerance, 0.05);
    assert!(4.0 * sigma <= most, "{what} is known to {sigma:.2e} of it only, four times which is more than {most:.2e}");
    near(what, found, expected, tolerance, sigma);
}

/// Checks a value with a standard deviation that is known beforehand, from the number of molecules.
pub fn near(what: &str, found: f64, expected: f64, tolerance: f64, sigma: f64) {
    let limit = tolerance.max(4.0 * sigma);
    println!("{what}: {found:e}, expected {expected:e}, off by {:.2e} of {limit:.2e}", found / expected - 1.0);
    assert!((found / expected - 1.0).abs() < limit, "{what}: {found:e}, expected {expected:e} within {limit:.2e}");
}

/// A gap of argon between plates, `cells` cells, so wide that its Knudsen number is `kn`.
pub fn gap(kn: f64, cells: usize, temperatures: [f64; 2], speeds: [f64; 2]) -> (Config, f64) {
    let mut config = Config::new(vec![cells], vec![1.0], "Ar", 1e20, 273.15);
    let argon = zellige_dsmc::gas::table::find("Ar", Molecules::default()).unwrap();
    let path = Transport::new(&argon, 273.15).free_path / 1e20;
    let length = path / kn;
    config.grid.size = vec![length];
    config.dt = (0.1 * path / 380.0).min(0.3 * length / cells as f64 / 380.0);
    let wall = |i: usize| Some(WallConfig::diffuse(temperatures[i], [0.0, speeds[i], 0.0]).into());
    (config.boundary.x_lo, config.boundary.x_hi) = (wall(0), wall(1));
    config.particles_per_cell = Some(100.0);
    (config, length)
}

/// Heat flux and shear on the lower plate with their errors.
pub fn on_plate(flow: &Flow) -> ([f64; 2], [f64; 2]) {
    let found = flow.samples.surface(&flow.model, 0);
    (found[4], found[2])
}
