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
        // A further sweep would reach it: it leaves a third of the noise of the transforms.
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
    assert_eq!(report.truncation, None, "the residual hides the truncation error");
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

/// A polynomial's sweeps give the same bits however they are dealt out, to steps, to passes and to threads.
#[test]
fn a_polynomial_may_be_cut_anywhere() {
    use zellige_poisson::problem::StageSetup;
    let off = &mut zellige_engine::profile::Profiler::off();
    for problem in [
        manufactured([129, 200]).sides(0, Side::neumann(0.5), Side::dirichlet(1.0)),
        Problem::plane([33, 300], [1.0, 9.0], vec![1.0; 33 * 300]).periodic(0).periodic(1),
        Problem::space([17, 40, 60], [1.0, 2.0, 3.0], vec![1.0; 17 * 40 * 60]),
    ] {
        let folded = problem.fold().unwrap();
        for precision in [Precision::F32, Precision::F64] {
            let mut all = Vec::new();
            for (threads, blocks) in [(1, &[41][..]), (1, &[1, 7, 8, 9, 16]), (3, &[20, 21]), (2, &[41])] {
                let zellige_engine::device::Device::Cpu(cpu) = cpu(threads) else { panic!() };
                let mut stages = stages::cpu::new(&StageSetup::new(&folded.grid, 0, precision, false), &cpu).unwrap();
                stages.load(&folded.u, &folded.f).unwrap();
                let smoother = stages::Smoother::Chebyshev { ratio: 500.0 };
                for block in blocks {
                    stages.sweep_norms(*block, smoother, off).unwrap();
                }
                all.push((stages.solution().unwrap(), stages.norms().unwrap().l2));
                if threads == 1 && blocks.len() == 1 {
                    stages.load(&folded.u, &folded.f).unwrap();
                    stages.sweep(0, 41, smoother, off).unwrap();
                    assert!(stages.solution().unwrap() == all[0].0, "{precision}: as one pass");
                }
            }
            assert!(all.iter().all(|a| a.0 == all[0].0), "{precision} {:?}", folded.grid.nodes());
        }
    }
}

/// 75 unknowns whose sides differ so much that a polynomial of 100 000 sweeps is called for: a step took minutes, and no signal was
/// heard.
#[test]
fn a_step_on_a_thin_grid_ends_within_a_moment() {
    for method in [Method::Chebyshev, Method::GaussSeidel, Method::Jacobi, Method::Sor] {
        let rhs: Vec<f64> = (0..16 * 5).map(|k| f64::from(k % 7)).collect();
        let problem = Problem::plane([16, 5], [169.9, 0.0137], rhs).sides(0, Side::dirichlet(1.0), Side::neumann(0.0)).periodic(1);
        let options = Options { method, precision: Precision::F64, ..Options::default() };
        let choice = options.choose(&problem.grid(), false, false).unwrap();
        let mut driver = zellige_poisson::driver::Driver::new(&problem.grid(), choice, &cpu(1)).unwrap();
        driver.load(problem.fold().unwrap()).unwrap();
        let off = &mut zellige_engine::profile::Profiler::off();
        driver.begin(off).unwrap();
        let began = std::time::Instant::now();
        driver.step(off).unwrap();
        // Some tenths of a second on an idle core.
        assert!(began.elapsed().as_secs() < 10, "{method:?}: {:?}", began.elapsed());
    }
}

/// Solves with two nodes of one colour side by side, where over-relaxation by the textbook's factor grows.
#[test]
fn over_relaxation_converges_on_periodic_axes_of_odd_length() {
    let mut wrong = Vec::new();
    // Ratios of the weights; the first grid is one that went wrong.
    let mut grids = vec![([33, 32], [0.05, 1.0])];
    for [m, n] in [[3, 8], [5, 5], [9, 12], [17, 16], [15, 9]] {
        grids.extend([0.02_f64, 1.0, 50.0].map(|ratio| ([m, n], [m as f64 / n as f64 / ratio.sqrt(), 1.0])));
    }
    for ([m, n], size) in grids {
        for [x, y] in [[true, false], [false, true], [true, true]] {
            let mut problem = Problem::plane([m, n], size, (0..m * n).map(noise).collect::<Vec<_>>());
            for (axis, closed) in [(0, x), (1, y)] {
                problem = if closed { problem.periodic(axis) } else { problem.sides(axis, Side::dirichlet(1.0), Side::neumann(0.0)) };
            }
            let options = Options { method: Method::Sor, precision: Precision::F64, ..Options::default() };
            let report = solve(&problem, &options, &cpu(1)).unwrap().report;
            if report.status != Status::Converged {
                let Report { status, steps, method, .. } = report;
                wrong.push(format!("{m} x {n}, {size:?}, periodic {x} {y}: {status:?} after {steps} steps, {method}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Values on a side that are large beside the right-hand side make the reference large, and what relaxation leaves of it is smooth.
#[test]
fn relaxation_has_small_errors_where_the_sides_dominate() {
    let n = 65;
    let side: Vec<f64> = (0..n).map(|j| 1000.0 * (20.0 * std::f64::consts::PI * j as f64 / (n - 1) as f64).sin()).collect();
    let problem = Problem::plane([n, n], [1.0, 1.0], vec![1.0; n * n]).sides(0, Side::dirichlet_nodes(side), Side::dirichlet(0.0));
    let exact = solve(&problem, &Options { tolerance: Tolerance::Relative(1e-12), ..Options::default() }, &cpu(1)).unwrap().u;
    for method in [Method::Jacobi, Method::GaussSeidel, Method::Sor, Method::Chebyshev] {
        let solution = solve(&problem, &Options { method, ..Options::default() }, &cpu(1)).unwrap();
        assert_eq!(solution.report.status, Status::Converged, "{method:?}: {:?}", solution.report);
        let middle = n / 2 * n + n / 2;
        let error = (solution.u[middle] / exact[middle] - 1.0).abs();
        // The tolerance times the solution's norm, about 70 here, over its 0.07 in the middle.
        assert!(error < 2e-3, "{method:?}: {} for {}", solution.u[middle], exact[middle]);
    }
}

/// Reduces a guess without a right-hand side: relative to the residual that it begins with.
#[test]
fn a_guess_without_a_right_hand_side_goes_to_zero() {
    let n = 33;
    for method in [Method::Auto, Method::Multigrid, Method::Sor, Method::Jacobi, Method::Chebyshev, Method::Direct] {
        let problem = Problem::plane([n, n], [1.0, 1.0], vec![0.0; n * n]).guess((0..n * n).map(noise).collect::<Vec<_>>());
        let solution = solve(&problem, &Options { method, ..Options::default() }, &cpu(1)).unwrap();
        assert_eq!(solution.report.status, Status::Converged, "{method:?}: {:?}", solution.report);
        assert!(solution.report.relative_residual <= 1e-6 && solution.u.iter().all(|u| u.abs() < 1e-3), "{method:?}");
    }
}

/// Kernels count nodes in 32 bits.
#[test]
fn more_nodes_than_a_gpu_counts_are_refused() {
    let axis = |n| grid::Axis::new(n, 1.0, grid::Bc::Dirichlet, grid::Bc::Dirichlet);
    for (nodes, refused) in [([46_337, 46_337], true), ([32_769, 65_537], true), ([32_768, 65_535], false), ([1 << 20, 1 << 11], true)] {
        let grid = grid::Grid::plane(axis(nodes[0]), axis(nodes[1]));
        let outcome = Options::default().choose(&grid, true, false);
        assert_eq!(outcome.is_err(), refused, "{nodes:?}");
        if let Err(error) = outcome {
            assert!(error.to_string().contains("grid.nodes") && error.to_string().contains("2^31"), "{error}");
        }
        assert!(Options::default().choose(&grid, false, false).is_ok());
    }
}

/// Checks that a polynomial's own limit does not come before its floor, and that noise is not called a solve that was too short.
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
