//! The benchmark cases, on smaller grids: a right solve passes and a wrong one does not.

use zellige_engine::device::{Cpu, Device};
use zellige_engine::profile::Profiler;
use zellige_engine::record::Check;
use zellige_engine::sim::Bench;
use zellige_poisson::bench::{SolveBench, Truth, cube, dipole, mixed_sides, modes};
use zellige_poisson::{Method, Options, Precision, Problem, Tolerance};

fn device() -> Device {
    Device::Cpu(Cpu::new(1).unwrap())
}

fn failures(bench: &mut SolveBench) -> Vec<Check> {
    bench.reset().unwrap();
    bench.run(&mut Profiler::off()).unwrap();
    bench.checks().unwrap().into_iter().filter(|c| !c.ok).collect()
}

/// The golden values on 256 intervals.
fn small() -> SolveBench {
    let values = [-1.913689495130, -0.276414958844, -0.748941088868];
    let options = Options { tolerance: Tolerance::Relative(1e-10), ..Options::default() };
    SolveBench::new(&device(), dipole(257), &options, Truth::Golden { values, limit: 1e-9 }, None, Some(1.1e-10)).unwrap()
}

#[test]
fn a_right_solve_passes_and_a_wrong_problem_fails() {
    let mut bench = small();
    assert!(failures(&mut bench).is_empty());
    // One part in 10^6 of the right-hand side.
    bench.folded.f.to_mut().iter_mut().for_each(|f| *f *= 1.000001);
    bench.reset().unwrap();
    bench.run(&mut Profiler::off()).unwrap();
    assert!(bench.checks().unwrap().iter().any(|c| !c.ok));
    assert!(bench.cost().bytes > 0.0 && bench.memory() > 0);
}

#[test]
fn sweeps_are_held_against_slow_ones() {
    let options = Options { method: Method::Sor, precision: Precision::F32, tolerance: Tolerance::Relative(0.0), ..Options::default() };
    let mut bench = SolveBench::new(&device(), dipole(256), &options, Truth::Sweeps { omega: 1.0 }, Some(1), None).unwrap();
    let omega = bench.repeat();
    bench.truth = Truth::Sweeps { omega };
    assert_eq!(failures(&mut bench), []);
    bench.truth = Truth::Sweeps { omega: omega * 0.9999 };
    assert_eq!(failures(&mut bench).len(), 1);
}

#[test]
fn modes_have_their_closed_form_between_all_sides() {
    let options = Options { tolerance: Tolerance::Relative(1e-8), ..Options::default() };
    let plane = Problem::plane([29, 38], [1.0; 2], Vec::new());
    let problems = [cube(32), mixed_sides([20, 17, 22]), plane.clone(), plane.periodic(0).periodic(1)];
    for problem in problems {
        let mut bench = SolveBench::new(&device(), modes(problem), &options, Truth::Modes { limit: 1e-7 }, None, Some(1.1e-8)).unwrap();
        assert_eq!(failures(&mut bench), []);
        // One part in 10^6 of the right-hand side.
        bench.folded.f.to_mut().iter_mut().for_each(|f| *f *= 1.000001);
        assert_eq!(failures(&mut bench).len(), 1);
    }
}
