//! Whole solves in double precision on the GPU against the CPU: the same cycles to the same solution.

use std::fmt::Write as _;

use crate::common::{cpu, max, max_error, scramble};
use zellige_engine::device::Device;
use zellige_engine::testing;
use zellige_poisson::step::Cycle;
use zellige_poisson::{Method, Options, Precision, Problem, Side, Tolerance, solve};

/// Conditions that fix the solution.
enum Sides {
    /// Zero all round.
    StoredResidual,
    /// Periodic along x, a derivative and a value along y, zero along z.
    Mixed,
    /// No side: periodic along every axis.
    Free,
}

fn problem(nodes: &[usize], sides: &Sides) -> Problem<'static> {
    let mut rhs = scramble(nodes.iter().product());
    if matches!(sides, Sides::Free) {
        // Along a period all volumes are the same.
        let mean = rhs.iter().sum::<f64>() / rhs.len() as f64;
        for v in &mut rhs {
            *v -= mean;
        }
    }
    let problem = match *nodes {
        [x, y] => Problem::plane([x, y], [1.0, y as f64 / x as f64], rhs),
        _ => Problem::space([nodes[0], nodes[1], nodes[2]], [1.0; 3], rhs),
    };
    match sides {
        Sides::StoredResidual => problem,
        Sides::Mixed => problem.periodic(0).sides(1, Side::neumann(0.5), Side::dirichlet(1.0)),
        Sides::Free => (0..nodes.len()).fold(problem, Problem::periodic),
    }
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn double_precision_takes_the_same_cycles_to_the_same_solution() {
    let Some(gpu) = testing::gpu() else { return };
    let devices = [cpu(2), Device::Cuda(gpu)];
    let mut faults = String::new();
    for (nodes, sides) in [
        (vec![257, 257], Sides::StoredResidual),
        (vec![256, 128], Sides::Free),
        (vec![300, 200], Sides::Mixed),
        (vec![513, 130], Sides::StoredResidual),
        (vec![1024, 1024], Sides::StoredResidual),
        (vec![1025, 1025], Sides::StoredResidual),
        (vec![1025, 700], Sides::Mixed),
        (vec![65, 65, 65], Sides::StoredResidual),
        (vec![70, 52, 81], Sides::Mixed),
    ] {
        let problem = problem(&nodes, &sides);
        let large = nodes.iter().product::<usize>() > 1 << 20;
        let cycles = [Cycle::V, Cycle::W, Cycle::F].map(|cycle| (Method::Multigrid, cycle, None));
        let full = [(Method::Fmg, Cycle::V, None), (Method::Fmg, Cycle::V, Some(2))];
        for (method, cycle, pre) in cycles.into_iter().chain(full) {
            if large && cycle != Cycle::V {
                continue;
            }
            // As users run it: no hierarchy is asked for.
            let tolerance = Tolerance::Relative(1e-9);
            let options = Options { method, cycle, pre, precision: Precision::F64, tolerance, ..Options::default() };
            let [a, b] = devices.each_ref().map(|device| solve(&problem, &options, device).unwrap());
            // Rounding alone: both take the same sums, grouped otherwise here and there.
            let (scale, error) = (max(&a.u), max_error(&a.u, &b.u));
            let steps = [&a, &b].map(|s| s.report.steps);
            if steps[0] != steps[1] || error.partial_cmp(&(1e-12 * scale)) != Some(std::cmp::Ordering::Less) {
                let _ = writeln!(faults, "{nodes:?} {method:?} {cycle:?} {pre:?}: {steps:?} steps, {error:.2e} of {scale:.2e} apart");
            }
        }
    }
    assert!(faults.is_empty(), "{faults}");
}
