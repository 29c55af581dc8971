//! Closed forms: solutions that the five- and seven-point formulae reproduce exactly, and their order where they do not.

use std::f64::consts::PI;

use crate::common::{devices, max, max_error, options, plane, solved, torus};
use zellige_engine::device::Device;
use zellige_poisson::{Method, Options, Precision, Problem, Side};

/// Runs every method that solves to rounding, on every device.
fn each_exact(mut check: impl FnMut(&Options, &Device)) {
    for device in devices() {
        for (method, precision) in [(Method::Multigrid, Precision::F64), (Method::Fmg, Precision::Mixed), (Method::Direct, Precision::F64)]
        {
            check(&options(method, precision, 1e-13), &device);
        }
    }
}

/// Eigenvalue of the second difference for the angle `phi` per node.
fn eigenvalue(h: f64, phi: f64) -> f64 {
    -(2.0 / h * (0.5 * phi).sin()).powi(2)
}

#[test]
fn a_sine_mode_is_an_eigenvector_and_its_error_is_of_second_order() {
    let length = 32.0;
    let mut errors = Vec::new();
    for n in [64, 128, 256] {
        for (p, q) in [(1, 1), (3, 2)] {
            let (kx, ky) = (p as f64 * PI / length, q as f64 * PI / length);
            let mode = plane([n + 1, n + 1], [length, length], |x, y| (kx * x).sin() * (ky * y).sin());
            let rho: Vec<f64> = mode.iter().map(|m| -(kx * kx + ky * ky) * m).collect();
            let h = length / n as f64;
            let factor = -(kx * kx + ky * ky) / (eigenvalue(h, kx * h) + eigenvalue(h, ky * h));
            let problem = Problem::plane([n + 1, n + 1], [length, length], rho);
            each_exact(|options, device| {
                let u = solved(&problem, options, device).u;
                let discrete: Vec<f64> = mode.iter().map(|m| factor * m).collect();
                // The floor of the residual, eps ||A|| ||u||, through the smallest eigenvalue: eps (2 n / pi)^2.
                assert!(max_error(&u, &discrete) < 1e-11, "{n} {p} {q}: {}", max_error(&u, &discrete));
                if (p, q) == (1, 1) && options.method == Method::Fmg {
                    errors.push(max_error(&u, &mode));
                }
            });
        }
    }
    // pi^2 / (12 n^2): 2.0e-4, 5.0e-5, 1.25e-5.
    let devices = devices().len();
    for (i, n) in [64.0_f64, 128.0, 256.0].iter().enumerate() {
        let (found, expected) = (errors[i * devices], PI * PI / (12.0 * n * n));
        assert!((found / expected - 1.0).abs() < 1e-3, "{found} for {expected}");
    }
}

#[test]
fn polynomials_without_fourth_derivatives_are_exact_on_any_size() {
    for nodes in [[3, 3], [5, 9], [9, 5], [4, 31], [128, 127], [257, 129], [1000, 700]] {
        let size = [32.0, 20.0];
        let exact = plane(nodes, size, |x, y| x.powi(3) * y - x * y.powi(3) + x * x + 3.0 * y * y - 2.0 * x * y + 1.0);
        let [m, n] = nodes;
        let column = |i: usize| (0..n).map(|j| exact[i + m * j]).collect::<Vec<_>>();
        let row = |j: usize| exact[m * j..m * (j + 1)].to_vec();
        // The cubic part is harmonic: 2 + 6 are left.
        let problem = Problem::plane(nodes, size, vec![8.0; m * n])
            .sides(0, Side::dirichlet_nodes(column(0)), Side::dirichlet_nodes(column(m - 1)))
            .sides(1, Side::dirichlet_nodes(row(0)), Side::dirichlet_nodes(row(n - 1)));
        each_exact(|options, device| {
            let u = solved(&problem, options, device).u;
            assert!(max_error(&u, &exact) < 1e-11 * max(&exact), "{nodes:?} {:?}: {}", options.method, max_error(&u, &exact) / max(&exact));
        });
    }
}

/// `cargo test --test poisson physics -- --ignored`
#[test]
#[ignore = "half a minute"]
fn polynomials_are_exact_at_large_odd_and_even_sizes() {
    for nodes in [[4095, 4097], [4096, 4096]] {
        let exact = plane(nodes, [1.0, 1.0], |x, y| x * x + y);
        let [m, n] = nodes;
        let row = |j: usize| exact[m * j..m * (j + 1)].to_vec();
        let problem = Problem::plane(nodes, [1.0, 1.0], vec![2.0; m * n]).sides(0, Side::neumann(0.0), Side::neumann(2.0)).sides(
            1,
            Side::dirichlet_nodes(row(0)),
            Side::dirichlet_nodes(row(n - 1)),
        );
        each_exact(|options, device| {
            let u = solved(&problem, options, device).u;
            assert!(max_error(&u, &exact) < 1e-9, "{nodes:?}: {}", max_error(&u, &exact));
        });
    }
}

#[test]
fn a_cosine_between_neumann_sides_is_an_eigenvector() {
    let (nodes, size) = ([97, 130], [32.0, 20.0]);
    let mode = plane(nodes, size, |x, y| (PI * x / size[0]).cos() * (2.0 * PI * y / size[1]).cos());
    let lambda = eigenvalue(size[0] / 96.0, PI / 96.0) + eigenvalue(size[1] / 129.0, 2.0 * PI / 129.0);
    let problem = Problem::plane(nodes, size, mode.iter().map(|m| lambda * m).collect::<Vec<_>>())
        .sides(0, Side::neumann(0.0), Side::neumann(0.0))
        .sides(1, Side::neumann(0.0), Side::neumann(0.0));
    each_exact(|options, device| {
        let solution = solved(&problem, options, device);
        assert!(max_error(&solution.u, &mode) < 1e-11, "{}", max_error(&solution.u, &mode));
        assert!(solution.report.imbalance.abs() < 1e-15);
    });
}

#[test]
fn fluxes_of_a_saddle_are_exact_and_incompatible_ones_are_reported() {
    let (nodes, size) = ([65, 80], [2.0, 3.0]);
    let saddle = plane(nodes, size, |x, y| x * x - y * y);
    // The mean over the rectangle by the trapezoidal rule, which is the weight of the control volumes.
    let mean = |length: f64, n: usize| length * length / 3.0 + length * length / (6.0 * ((n - 1) * (n - 1)) as f64);
    let mean = mean(size[0], nodes[0]) - mean(size[1], nodes[1]);
    for excess in [0.0, 0.3] {
        let problem = Problem::plane(nodes, size, vec![excess; nodes[0] * nodes[1]])
            .sides(0, Side::neumann(0.0), Side::neumann(2.0 * size[0]))
            .sides(1, Side::neumann(0.0), Side::neumann(-2.0 * size[1]))
            .mean(mean);
        each_exact(|options, device| {
            let solution = solved(&problem, options, device);
            assert!(max_error(&solution.u, &saddle) < 1e-10, "{}", max_error(&solution.u, &saddle));
            assert!((solution.report.imbalance - excess).abs() < 1e-12, "{}", solution.report.imbalance);
        });
    }
}

#[test]
fn a_periodic_mode_keeps_its_mean_whatever_is_added_to_the_source() {
    let (nodes, size) = ([128, 90], [32.0, 32.0]);
    for (k, l) in [(1, 1), (3, 2), (0, 5)] {
        let wave = torus(nodes, size, |x, y| (2.0 * PI * k as f64 * x / size[0]).cos() * (2.0 * PI * l as f64 * y / size[1]).cos());
        let angle = |k: usize, n: usize| 2.0 * PI * k as f64 / n as f64;
        let lambda = eigenvalue(size[0] / 128.0, angle(k, 128)) + eigenvalue(size[1] / 90.0, angle(l, 90));
        for (excess, mean) in [(0.0, 0.0), (0.3, 0.0), (0.3, 2.5)] {
            let rho: Vec<f64> = wave.iter().map(|w| w + excess).collect();
            let problem = Problem::plane(nodes, size, rho).periodic(0).periodic(1).mean(mean);
            let exact: Vec<f64> = wave.iter().map(|w| w / lambda + mean).collect();
            each_exact(|options, device| {
                let solution = solved(&problem, options, device);
                assert!(max_error(&solution.u, &exact) < 1e-11 * max(&exact), "{k} {l}: {}", max_error(&solution.u, &exact));
                assert!((solution.report.imbalance - excess).abs() < 1e-14);
            });
        }
    }
}

#[test]
fn a_jump_on_a_node_is_exact_with_the_mean_value_there() {
    let (n, length) = (128, 32.0);
    // u'' = 1 left and -1 right of the middle, u = 0 at both ends: a parabola each.
    let half = length / 2.0;
    let parabola = |x: f64| if x <= half { 0.5 * x * (x - half) } else { -0.5 * (x - half) * (x - length) };
    let sign = |x: f64| {
        if x < half {
            1.0
        } else if x > half {
            -1.0
        } else {
            0.0
        }
    };
    let problem = Problem::plane([n + 1, 40], [length, 10.0], plane([n + 1, 40], [length, 10.0], |x, _| sign(x))).sides(
        1,
        Side::neumann(0.0),
        Side::neumann(0.0),
    );
    let exact = plane([n + 1, 40], [length, 10.0], |x, _| parabola(x));
    each_exact(|options, device| {
        let u = solved(&problem, options, device).u;
        assert!(max_error(&u, &exact) < 1e-12 * max(&exact), "{}", max_error(&u, &exact));
    });
}

#[test]
fn space_has_its_eigenvectors_for_any_mix_of_sides() {
    // Dirichlet and Neumann in x: a quarter wave. Neumann in y. Periodic in z.
    let (nodes, size) = ([33, 21, 24], [1.0, 1.5, 2.0]);
    let h = [size[0] / 32.0, size[1] / 20.0, size[2] / 24.0];
    let k = [2.5 * PI / size[0], 2.0 * PI / size[1], 2.0 * PI / size[2]];
    let lambda: f64 = (0..3).map(|d| eigenvalue(h[d], k[d] * h[d])).sum();
    let mut exact = Vec::new();
    for z in 0..nodes[2] {
        for y in 0..nodes[1] {
            for x in 0..nodes[0] {
                exact.push((k[0] * h[0] * x as f64).sin() * (k[1] * h[1] * y as f64).cos() * (k[2] * h[2] * z as f64).sin());
            }
        }
    }
    let problem = Problem::space(nodes, size, exact.iter().map(|u| lambda * u).collect::<Vec<_>>())
        .sides(0, Side::dirichlet(0.0), Side::neumann(0.0))
        .sides(1, Side::neumann(0.0), Side::neumann(0.0))
        .periodic(2);
    each_exact(|options, device| {
        let u = solved(&problem, options, device).u;
        assert!(max_error(&u, &exact) < 1e-11, "{:?}: {}", options.method, max_error(&u, &exact));
    });
}
