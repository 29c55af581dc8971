//! Memory stated in a plan for a GPU, against the buffers of a solve. Skipped without a GPU.

use std::path::Path;

use zellige_engine::device::Device;
use zellige_engine::profile::Profiler;
use zellige_engine::sim::{Environment, Solver};
use zellige_engine::testing;
use zellige_poisson::config::{Config, Source};
use zellige_poisson::driver::Driver;
use zellige_poisson::method::{Method, Tolerance};
use zellige_poisson::problem::Precision;
use zellige_poisson::{Poisson, setup};

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn the_plan_tells_what_a_gpu_takes() {
    use Method::{Auto, Chebyshev, Direct, Fmg, Jacobi, Multigrid, Sor};
    use Precision::{F32, F64, Mixed};
    let Some(cuda) = testing::gpu() else { return };
    let device = Device::Cuda(cuda);
    let mut off = Vec::new();
    for (nodes, method, precision) in [
        (vec![1025, 1025], Auto, Mixed),
        (vec![2049, 2049], Multigrid, Mixed),
        (vec![2049, 2049], Multigrid, F32),
        (vec![2049, 2049], Multigrid, F64),
        (vec![2049, 1500], Fmg, F32),
        (vec![2049, 1500], Fmg, Mixed),
        (vec![1501, 2000], Direct, F64),
        (vec![2049, 2049], Direct, F32),
        (vec![1025, 1025], Sor, F32),
        (vec![1025, 1025], Jacobi, F64),
        (vec![1025, 1025], Chebyshev, F64),
        (vec![129, 129, 129], Multigrid, Mixed),
        (vec![129, 100, 129], Direct, Mixed),
    ] {
        let case = format!("{nodes:?} {method:?} {precision}");
        let size = vec![1.0; nodes.len()];
        let mut config = Config::new(nodes, size, Source::Number(1.0));
        (config.method, config.precision, config.tolerance, config.max_cycles) = (method, precision, Tolerance::Relative(1e-4), Some(3));
        let environment = Environment::new(device.clone(), ".", 1);
        let plan = Poisson::plan(&config, &environment).unwrap().memory;
        let grid = setup::grid(&config);
        let choice = config.options().choose_on(&grid, &device, false).unwrap();
        let mut driver = Driver::new(&grid, choice, &device).unwrap();
        driver.load(setup::problem(&config, Path::new(".")).unwrap().fold().unwrap()).unwrap();
        driver.begin(&mut Profiler::off()).unwrap();
        // Buffers are made at the start or when they are first needed, and stay.
        let mut took = driver.memory();
        while driver.status().is_none() {
            driver.step(&mut Profiler::off()).unwrap();
            took = took.max(driver.memory());
        }
        let share = took as f64 / plan as f64;
        println!("{case}: {:.1} MiB of {:.1}, {share:.3}", took as f64 / 1048576.0, plan as f64 / 1048576.0);
        if !(0.9..1.1).contains(&share) {
            off.push(format!("{case}: {share:.3}"));
        }
    }
    assert!(off.is_empty(), "{off:?}");
}
