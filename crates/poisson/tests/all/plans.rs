//! A plan against the same systems loaded and solved one by one: to the last bit, whatever the arrays hold before.

use crate::common::{cpu, devices, max, max_error, scramble};
use zellige_engine::device::Device;
use zellige_engine::error::Error;
use zellige_engine::profile::Profiler;
use zellige_engine::testing;
use zellige_poisson::driver::Driver;
use zellige_poisson::{Method, Options, Plan, Precision, Problem, Side, Status, Tolerance, solve, solve_batch};

/// The solution by the way that runs of the command line go: folded, loaded, solved and read.
fn loaded(problem: &Problem<'_>, options: &Options, device: &Device) -> (Status, Vec<f64>, f64) {
    let folded = problem.clone().fold().unwrap();
    let choice = options.choose_on(&folded.grid, device, false).unwrap();
    let mut driver = Driver::new(&folded.grid, choice, device).unwrap();
    driver.load(folded).unwrap();
    let status = driver.run(&mut Profiler::off()).unwrap();
    (status, driver.solution().unwrap(), driver.monitor().relative())
}

/// Sides that hold zero, values and derivatives, only values along one axis, and nothing.
fn shapes() -> Vec<Problem<'static>> {
    let plane = |m: usize, n: usize| Problem::plane([m, n], [1.0, 1.5], vec![]);
    let along = |n: usize| Side::dirichlet_nodes(scramble(n));
    vec![
        plane(33, 48),
        plane(48, 33).sides(0, Side::dirichlet(2.0), Side::neumann(-0.5)).sides(1, along(48), Side::dirichlet(0.25)),
        plane(31, 40).periodic(0).sides(1, Side::neumann(1.0), Side::dirichlet(0.0)),
        plane(32, 17).periodic(0).sides(1, Side::neumann(0.5), Side::neumann(0.0)).mean(0.75),
        Problem::space([12, 17, 9], [1.0; 3], vec![]).sides(2, Side::neumann_nodes(scramble(12 * 17)), Side::dirichlet(1.0)),
        // 4093 intervals are awkward for transforms: the CPU eliminates along x.
        plane(4094, 8),
    ]
}

#[test]
fn a_plan_gives_the_bits_of_single_solves() {
    for device in devices() {
        for (n, shape) in shapes().into_iter().enumerate() {
            let count = shape.nodes.iter().product();
            for (method, precision, tolerance) in [
                (Method::Auto, Precision::Mixed, 1e-6),
                // Asks for sweeps on the direct solution.
                (Method::Direct, Precision::F64, 1e-14),
                (Method::Direct, Precision::F32, 1e-4),
                (Method::Multigrid, Precision::Mixed, 1e-8),
            ] {
                let options = Options { method, precision, tolerance: Tolerance::Relative(tolerance), ..Options::default() };
                let mut plan = Plan::new(&shape, &options, &device).unwrap();
                // Earlier content must not matter.
                let mut u = vec![f64::NAN; count];
                for (k, scale) in [1.0, 0.0, -3.0].into_iter().enumerate() {
                    let rhs: Vec<f64> = scramble(count + k)[k..].iter().map(|v| scale * v).collect();
                    let problem = Problem { rhs: rhs.clone().into(), ..shape.clone() };
                    let (status, expected, relative) = loaded(&problem, &options, &device);
                    let report = plan.solve_into(&rhs, &mut u).unwrap();
                    assert_eq!(report.status, status, "shape {n}, {options:?}: {:?}", report.history);
                    assert!((report.relative_residual - relative).abs() <= 1e-9 * relative, "{} {relative}", report.relative_residual);
                    assert!(u == expected, "shape {n}, right-hand side {k}, {options:?}");
                    assert!(plan.solve(&rhs).unwrap().u == expected && solve(&problem, &options, &device).unwrap().u == expected);
                    let batch = solve_batch(std::slice::from_ref(&problem), &options, &device).unwrap();
                    assert!(batch[0].u == expected, "shape {n} in a batch");
                }
            }
        }
    }
}

#[test]
fn a_plan_of_the_direct_solver_holds_no_arrays_of_nodes() {
    let shape = Problem::plane([257, 257], [1.0, 1.0], vec![]);
    let mut plan = Plan::new(&shape, &Options::default(), &cpu(1)).unwrap();
    let (rhs, mut u) = (scramble(257 * 257), vec![0.0; 257 * 257]);
    plan.solve_into(&rhs, &mut u).unwrap();
    // Tables along the last axis, for every mode; the arrays would be 16 bytes a node more.
    assert!(plan.memory() < 12 * 257 * 257, "{} bytes", plan.memory());
}

#[test]
fn what_is_wrong_with_a_right_hand_side_is_said() {
    for (number, shape) in [Problem::plane([9, 8], [1.0, 1.0], vec![]), shapes().remove(1)].into_iter().enumerate() {
        let [m, l, _] = shape.nodes;
        let (mut plan, rhs) = (Plan::new(&shape, &Options::default(), &cpu(1)).unwrap(), vec![1.0; m * l]);
        let mut u = rhs.clone();
        // On a side and inside, none and infinite.
        for (at, value) in [(0, f64::NAN), (3 + 4 * m, f64::INFINITY), (m * l - 1, f64::NEG_INFINITY)] {
            let mut wrong = rhs.clone();
            wrong[at] = value;
            let error = plan.solve_into(&wrong, &mut u).unwrap_err().to_string();
            let place = format!("the value at index ({}, {})", at / m, at % m);
            assert!(error.contains("rhs") && error.contains(&place), "{error}");
        }
        let refused = |e: &Error, key: &str| matches!(e, Error::Input { problems, .. } if problems[0].path == key);
        // Numbers, though their squares are infinite or zero.
        // Beside the values of sides nothing is too small.
        let small = (number == 0).then_some((1e-200, "too small to be squared"));
        for (value, words) in [(1e200, "too large to be squared")].into_iter().chain(small) {
            let error = plan.solve(&vec![value; m * l]).unwrap_err();
            assert!(refused(&error, "rhs") && error.to_string().contains(words), "{error}");
        }
        assert!(refused(&plan.solve(&rhs[1..]).unwrap_err(), "rhs"));
        assert!(refused(&plan.solve_into(&rhs, &mut u[1..]).unwrap_err(), "u"));
        assert!(plan.solve(&rhs).is_ok());
    }
    let guessed = Problem::plane([9, 8], [1.0, 1.0], vec![]).guess(vec![0.0; 72]);
    assert!(Plan::new(&guessed, &Options::default(), &cpu(1)).err().unwrap().to_string().contains("starts from zero"));
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn a_plan_solves_in_the_memory_of_a_gpu() {
    let Some(cuda) = testing::gpu() else { return };
    let device = Device::Cuda(cuda.clone());
    let torus = Problem::plane([40, 36], [1.0, 1.0], vec![]).periodic(0).periodic(1).mean(-0.5);
    for (n, shape) in shapes().into_iter().chain([torus]).enumerate() {
        let count = shape.nodes.iter().product();
        for (method, precision, tolerance) in [
            (Method::Direct, Precision::F64, 1e-9),
            (Method::Direct, Precision::Mixed, 1e-9),
            (Method::Multigrid, Precision::F64, 1e-9),
            (Method::Multigrid, Precision::Mixed, 1e-9),
            (Method::Fmg, Precision::Mixed, 1e-9),
        ] {
            let options = Options { method, precision, tolerance: Tolerance::Relative(tolerance), ..Options::default() };
            let mut plan = Plan::new(&shape, &options, &device).unwrap();
            let mut u = cuda.buffer_from(&vec![f64::NAN; count], "what was there before").unwrap();
            for (k, scale) in [1.0, 0.0, -3.0].into_iter().enumerate() {
                let rhs: Vec<f64> = scramble(count + k)[k..].iter().map(|v| scale * v).collect();
                let borrowed = cuda.buffer_from(&rhs, "right-hand side").unwrap();
                let report = plan.solve_on_gpu(&borrowed, &mut u).unwrap();
                let expected = plan.solve(&rhs).unwrap();
                let what = format!("shape {n}, right-hand side {k}, {options:?}: {:?} {:?}", report.history, expected.report.history);
                assert_eq!(report.status, expected.report.status, "{what}");
                assert!((report.imbalance - expected.report.imbalance).abs() <= 1e-12, "{what}");
                assert!((report.reference - expected.report.reference).abs() <= 1e-9 * expected.report.reference, "{what}");
                // Both meet the tolerance; what they leave is smooth at worst, where a residual r is an error of r / (pi / 1.5)^2.
                let (found, limit) = (cuda.download(&u).unwrap(), 2.0 * tolerance * report.reference / 4.0 + 1e-13 * max(&expected.u));
                assert!(max_error(&found, &expected.u) <= 10.0 * limit, "{what}: {} {limit}", max_error(&found, &expected.u));
            }
            for value in [f64::NAN, f64::INFINITY] {
                let mut wrong = vec![1.0; count];
                wrong[count - 1] = value;
                let error = plan.solve_on_gpu(&cuda.buffer_from(&wrong, "wrong").unwrap(), &mut u).unwrap_err();
                assert!(error.to_string().contains("not finite"), "{error}");
            }
            let short = cuda.alloc_zeros::<f64>(count - 1, "short").unwrap();
            assert!(matches!(plan.solve_on_gpu(&short, &mut u), Err(Error::Input { .. })));
        }
    }
    // Numbers whose squares are none, as on the host.
    let mut plan = Plan::new(&Problem::plane([9, 8], [1.0, 1.0], vec![]), &Options::default(), &device).unwrap();
    let mut u = cuda.alloc_zeros(72, "u").unwrap();
    for value in [1e-200, 1e200] {
        let error = plan.solve_on_gpu(&cuda.buffer_from(&[value; 72], "out of range").unwrap(), &mut u).unwrap_err();
        assert!(matches!(error, Error::Input { .. }), "{value}: {error}");
    }
}
