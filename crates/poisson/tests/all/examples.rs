//! The examples give the numbers that their headers state.

use std::path::Path;

use zellige_engine::config::Source;
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Record, Values};
use zellige_engine::sim::{Environment, Solver};
use zellige_poisson::{Poisson, Status, setup, solve};

use crate::common::{cpu, max, max_error, plane, torus};

/// The header, the nodes and the solution of an example.
fn solved(name: &str) -> (String, Vec<usize>, Vec<f64>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/poisson");
    let path = folder.join(name).with_extension("toml");
    let header: Vec<String> =
        std::fs::read_to_string(&path).unwrap().lines().take_while(|l| l.starts_with('#')).map(str::to_owned).collect();
    let config = Source::read(&path).unwrap().typed::<Poisson>().unwrap().config;
    let solution = solve(&setup::problem(&config, &folder).unwrap(), &config.options(), &cpu(2)).unwrap();
    assert_eq!(solution.report.status, Status::Converged, "{name}: {:?}", solution.report);
    (header.join(" ").replace("# ", ""), config.grid.nodes, solution.u)
}

/// The header and the solutions of the example with many right-hand sides, all of which converge.
fn solved_batch() -> (String, Vec<f64>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/poisson");
    let path = folder.join("batch.toml");
    let header: Vec<String> =
        std::fs::read_to_string(&path).unwrap().lines().take_while(|l| l.starts_with('#')).map(str::to_owned).collect();
    let config = Source::read(&path).unwrap().typed::<Poisson>().unwrap().config;
    let mut poisson = Poisson::setup(&config, &Environment::new(cpu(2), folder, 0)).unwrap();
    while poisson.outcome().is_none() {
        poisson.step(&mut Profiler::off()).unwrap();
    }
    let outcome = poisson.outcome().unwrap();
    assert!(outcome.status == "converged" && outcome.message.contains("of 24 right-hand sides 24 converged"), "{}", outcome.message);
    let Record::Stack(stack) = poisson.records().unwrap().remove(0) else { panic!("no stack") };
    let Values::F64(u) = stack.values else { panic!("not in double precision") };
    (header.join(" ").replace("# ", ""), u)
}

/// The header states `number`, which `found` is but for `within` of it: an error of rounding, or half of its last digit.
fn states(header: &str, number: &str, found: f64, within: f64) {
    assert!(header.contains(number), "`{number}` is not in: {header}");
    let stated: f64 = number.parse().unwrap();
    assert!((found - stated).abs() <= within * stated.abs(), "{found} for {number}: {header}");
}

#[test]
fn the_numbers_of_the_examples_are_those_in_their_headers() {
    use std::f64::consts::PI;
    let (header, n, u) = solved("anisotropic");
    states(&header, "-0.020904", u[n[0] * (n[1] / 2) + n[0] / 2], 3e-5);

    let (header, n, u) = solved("channel");
    // Periodic in x over the length 2.
    let wave: Vec<f64> = torus([n[0], 1], [2.0, 1.0], |x, _| (PI * x).sin());
    let exact: Vec<f64> =
        (0..n[0] * n[1]).map(|k| wave[k % n[0]] * (PI * (1.0 - (k / n[0]) as f64 / (n[1] - 1) as f64)).cosh() / PI.cosh()).collect();
    states(&header, "1.285e-6", max_error(&u, &exact), 1e-3);
    states(&header, "0.21646", u[n[0] * (n[1] / 2) + n[0] / 4], 3e-5);

    let (header, n, u) = solved("neumann");
    let error = max_error(&u, &plane([n[0], n[1]], [1.0, 1.0], |x, y| x * x - y * y));
    assert!(header.contains("1e-13") && error < 1e-13, "{error}");

    let (header, n, u) = solved("periodic");
    states(&header, "1.9487e-3", max(&u), 3e-5);
    let exact = torus([n[0], n[1]], [1.0, 1.0], |x, y| -(4.0 * PI * x).cos() * (6.0 * PI * y).cos() / (52.0 * PI * PI));
    states(&header, "1.8e-7", max_error(&u, &exact), 0.03);

    let (header, n, u) = solved("manufactured");
    let exact = plane([n[0], n[1]], [1.0, 1.0], |x, y| x.exp() * (PI * x).sin() * (2.0 * PI * y).sin());
    states(&header, "4.4e-6", max_error(&u, &exact), 0.1);

    let (header, u) = solved_batch();
    let lowest = |k: usize| u[257 * 257 * k..][..257 * 257].iter().copied().fold(0.0, f64::min);
    let turned = [0, 6, 12, 18].map(lowest);
    states(&header, "-0.23567", turned[0], 3e-5);
    assert!(turned.iter().all(|u| (u - turned[0]).abs() < 1e-6), "{turned:?}");

    let (header, n, u) = solved("point_charges_3d");
    let middle = n[0] / 2 + n[0] * (n[1] / 2 + n[1] * (n[2] / 2));
    states(&header, "-3.702e-4", u[middle], 2e-4);
}
