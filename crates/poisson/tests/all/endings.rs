//! The word that a solve ends with is the right one where it is easy to get wrong.

use zellige_poisson::*;

use crate::common::{cpu, max, noise, plane};

/// `u = e^x sin(pi x) sin(2 pi y)` on the unit square: its right-hand side.
fn manufactured(nodes: [usize; 2]) -> Problem<'static> {
    use std::f64::consts::PI;
    let rho = |x: f64, y: f64| x.exp() * (2.0 * PI * y).sin() * ((PI * x).sin() * (1.0 - 5.0 * PI * PI) + 2.0 * PI * (PI * x).cos());
    Problem::plane(nodes, [1.0, 1.0], plane(nodes, [1.0, 1.0], rho))
}

fn direct(precision: Precision, tolerance: f64, max_cycles: Option<u64>) -> Options {
    Options { method: Method::Direct, precision, tolerance: Tolerance::Relative(tolerance), max_cycles, ..Options::default() }
}

#[test]
fn the_direct_solver_says_that_the_limit_came_first() {
    for precision in [Precision::F32, Precision::F64] {
        let problem = manufactured([129, 150]);
        let one = solve(&problem, &direct(precision, 0.0, Some(1)), &cpu(1)).unwrap().report;
        assert_eq!((one.status, one.steps), (Status::MaxCycles, 1), "{:?}", one.history);
        // What a sweep more would meet: it leaves a third of the noise of the transforms.
        let goal = 0.6 * one.relative_residual;
        let limited = solve(&problem, &direct(precision, goal, Some(1)), &cpu(1)).unwrap().report;
        assert_eq!(limited.status, Status::MaxCycles, "{:?}", limited.history);
        let free = solve(&problem, &direct(precision, goal, None), &cpu(1)).unwrap().report;
        assert_eq!((free.status, free.steps), (Status::Converged, 2), "{:?}", free.history);
    }
}

#[test]
fn the_floor_of_the_direct_solver_is_rounding() {
    for nodes in [[129, 150], [33, 1000], [1000, 5], [258, 384], [600, 600]] {
        for precision in [Precision::F32, Precision::F64] {
            let all = nodes[0] * nodes[1];
            for problem in [manufactured(nodes), Problem::plane(nodes, [1.0, 0.01], (0..all).map(noise).collect::<Vec<_>>())] {
                let report = solve(&problem, &direct(precision, 0.0, None), &cpu(1)).unwrap().report;
                assert_eq!(report.status, Status::PrecisionFloor, "{nodes:?}: {:?}", report.history);
                // 0.1 to 0.22, measured.
                let units = report.backward_error / precision.eps();
                assert!(units < 1.0, "{nodes:?} {precision}: a backward error of {units} eps after {:?}", report.history);
            }
        }
    }
}

#[test]
fn a_limit_of_one_pass_is_enough_for_truncation() {
    let options = Options { tolerance: Tolerance::TRUNCATION, max_cycles: Some(1), ..Options::default() };
    for method in [Method::Fmg, Method::Auto] {
        let report = solve(&manufactured([65, 65]), &Options { method, ..options.clone() }, &cpu(1)).unwrap().report;
        assert_eq!((report.status, report.steps), (Status::Converged, 1), "{method:?}: {:?}", report.truncation);
        assert!(report.truncation.unwrap().share < 0.5, "{method:?}: {:?}", report.truncation);
    }
    // One damped Jacobi sweep a level leaves a hundred times as much, measured.
    let poor = Options { method: Method::Fmg, pre: Some(0), post: Some(1), smoother: Relaxation::Jacobi, ..options };
    let report = solve(&manufactured([257, 257]), &poor, &cpu(1)).unwrap().report;
    assert_eq!((report.status, report.steps), (Status::MaxCycles, 1), "{:?}", report.truncation);
    assert_eq!(report.truncation, None, "the residual hides the error of the formula");
}

#[test]
fn an_error_of_the_formula_that_cannot_be_measured_is_not_taken_for_reached() {
    // The formula is exact for such a polynomial: all that a fourth derivative shows is rounding.
    let at = |x: f64, y: f64| 0.3 * x * x - 0.3 * y * y + 0.7 * x * y;
    for nodes in [[65, 65], [257, 200], [5, 40]] {
        let u = plane(nodes, [1.0, 1.0], at);
        let [m, n] = nodes;
        let (column, row) = (|i: usize| (0..n).map(|j| u[i + m * j]).collect::<Vec<_>>(), |j: usize| u[m * j..][..m].to_vec());
        let problem = Problem::plane(nodes, [1.0, 1.0], vec![0.0; m * n])
            .sides(0, Side::dirichlet_nodes(column(0)), Side::dirichlet_nodes(column(m - 1)))
            .sides(1, Side::dirichlet_nodes(row(0)), Side::dirichlet_nodes(row(n - 1)));
        for (method, precision) in
            [(Method::Auto, Precision::F64), (Method::Fmg, Precision::F64), (Method::Fmg, Precision::Mixed), (Method::Fmg, Precision::F32)]
        {
            let options = Options { method, precision, tolerance: Tolerance::TRUNCATION, ..Options::default() };
            let solution = solve(&problem, &options, &cpu(1)).unwrap();
            let report = &solution.report;
            assert_eq!(report.truncation, None, "{nodes:?} {method:?} {precision}: {:?}", report.status);
            assert_eq!(report.status, Status::PrecisionFloor, "{nodes:?} {method:?} {precision}: {:?}", report.history);
            let difference: Vec<f64> = solution.u.iter().zip(&u).map(|(a, b)| a - b).collect();
            // A backward error of a few eps, amplified by the condition number n^2 at most.
            assert!(max(&difference) < 1e3 * precision.eps(), "{nodes:?} {method:?} {precision}: {:.1e}", max(&difference));
        }
    }
}

#[test]
fn grids_too_thin_for_an_estimate_of_truncation_are_refused() {
    let options = Options { tolerance: Tolerance::TRUNCATION, ..Options::default() };
    for (nodes, axis) in [([1000, 4], "4 nodes in y"), ([3, 65], "3 nodes in x")] {
        let refusal = solve(&manufactured(nodes), &options, &cpu(1)).unwrap_err().to_string();
        assert!(refusal.contains("tolerance") && refusal.contains(axis), "{refusal}");
        let mut config = Config::new(nodes.to_vec(), vec![1.0, 1.0], config::Source::Number(1.0));
        config.tolerance = Tolerance::TRUNCATION;
        let faults = config.check();
        assert!(faults.len() == 1 && faults[0].message.contains(axis), "{faults:?}");
        config.tolerance = Tolerance::Relative(1e-6);
        assert_eq!(config.check(), []);
    }
    let report = solve(&manufactured([65, 6]), &options, &cpu(1)).unwrap().report;
    assert!(report.status == Status::Converged && report.truncation.is_some(), "{report:?}");
}

#[test]
fn a_limit_of_sweeps_is_kept_to_the_sweep() {
    use zellige_poisson::method::Scheme;
    use zellige_poisson::problem::StageSetup;
    let problem = manufactured([129, 129]);
    for method in [Method::Sor, Method::Jacobi] {
        let options =
            Options { method, precision: Precision::F64, max_cycles: Some(50), tolerance: Tolerance::Relative(0.0), ..Options::default() };
        let Scheme::Sweeps { smoother, block, .. } = options.choose(&problem.grid(), false, false).unwrap().scheme else { panic!() };
        // Over-relaxation goes by blocks of 47 here.
        assert!(method != Method::Sor || (25..50).contains(&block), "{block}");
        let solution = solve(&problem, &options, &cpu(1)).unwrap();
        assert_eq!((solution.report.status, solution.report.steps), (Status::MaxCycles, 50_usize.div_ceil(block as usize)));
        let folded = problem.clone().fold().unwrap();
        let zellige_engine::device::Device::Cpu(one) = cpu(1) else { panic!() };
        let mut stages = stages::cpu::new(&StageSetup::new(&folded.grid, 0, Precision::F64, false), &one).unwrap();
        stages.load(&folded.u, &folded.f).unwrap();
        stages.sweep(0, 50, smoother, &mut zellige_engine::profile::Profiler::off()).unwrap();
        assert!(stages.solution().unwrap() == solution.u, "{method:?}: not what 50 sweeps give");
    }
}

#[test]
fn a_mean_that_the_sides_settle_is_refused() {
    let refusal = solve(&manufactured([9, 9]).mean(1.0), &Options::default(), &cpu(1)).unwrap_err().to_string();
    assert!(refusal.contains("mean"), "{refusal}");
    let mut config = Config::new(vec![9, 9], vec![1.0, 1.0], config::Source::Number(1.0));
    config.mean = 2.0;
    assert_eq!(config.check().iter().map(|f| f.path.as_str()).collect::<Vec<_>>(), ["mean"]);
    let periodic = Some(config::SideConfig::Kind(grid::Bc::Periodic));
    config.boundary.x = periodic.clone();
    assert_eq!(config.check().len(), 1, "two sides are still held");
    config.boundary.y = periodic;
    assert_eq!(config.check(), []);
}

/// Its limit of its own does not come before its floor, and noise is not called a solve that was too short.
#[test]
fn polynomials_end_at_their_floor() {
    let options = |tolerance| Options {
        method: Method::Chebyshev,
        precision: Precision::F32,
        tolerance: Tolerance::Relative(tolerance),
        ..Options::default()
    };
    for nodes in [[19, 14], [65, 65], [257, 40]] {
        let problem = manufactured(nodes);
        let report = solve(&problem, &options(1e-9), &cpu(1)).unwrap().report;
        assert_eq!(report.status, Status::PrecisionFloor, "{nodes:?}: {:?}", report.history);
        let report = solve(&problem, &options(3.0 * report.relative_residual), &cpu(1)).unwrap().report;
        assert_eq!(report.status, Status::Converged, "{nodes:?}: {:?}", report.history);
    }
}

/// The tables of a long axis take a moment: what is quadratic in its nodes would take minutes.
#[test]
fn a_long_axis_is_set_up_in_a_moment() {
    let nodes = [1 << 18, 3];
    let options = Options { method: Method::Multigrid, ..Options::default() };
    let began = std::time::Instant::now();
    let report = solve(&manufactured(nodes), &options, &cpu(1)).unwrap().report;
    assert_eq!(report.status, Status::Converged, "{:?}", report.history);
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
}
