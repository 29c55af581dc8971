//! Numbers that other programs computed.

use crate::common::{devices, dipole, max, options, scramble, solved};
use zellige_engine::device::Device;
use zellige_poisson::{Method, Precision, Problem};

/// Intervals, then `u(12, 16)`, `u(8, 8)`, `u(14, 18)` and `sqrt(sum h^2 u^2)` of the pair of Gaussian charges.
///
/// Source: sine transforms of SciPy 1.17, `u = idstn(dstn(rho, type=1) / lambda, type=1)`, in double precision.
const DIPOLE: [(usize, [f64; 4]); 3] = [
    (256, [-1.913689495130, -0.276414958844, -0.748941088868, 13.561747184381]),
    (1024, [-1.912791556204, -0.276416686906, -0.748983977921, 13.560506433518]),
    (4096, [-1.912735502679, -0.276416794737, -0.748986645877, 13.560428909800]),
];

fn dipole_figures(intervals: usize, method: Method, precision: Precision, tolerance: f64, device: &Device) -> [f64; 4] {
    let n = intervals + 1;
    let problem = Problem::plane([n, n], [32.0, 32.0], dipole(intervals, 0.0));
    let u = solved(&problem, &options(method, precision, tolerance), device).u;
    let h = 32.0 / intervals as f64;
    let at = |x: f64, y: f64| u[(x / h).round() as usize + n * (y / h).round() as usize];
    [at(12.0, 16.0), at(8.0, 8.0), at(14.0, 18.0), h * u.iter().map(|u| u * u).sum::<f64>().sqrt()]
}

fn check_dipole(cases: &[(usize, [f64; 4])]) {
    for device in devices() {
        for (intervals, expected) in cases {
            // Twelve decimals are given. Single precision: the error of the solution measured at 1024 is 9e-6 of its largest
            // value, 1.9; it grows with the square of the intervals.
            let single = 2e-5 * (*intervals as f64 / 1024.0).max(1.0);
            for (method, precision, limit) in [
                (Method::Multigrid, Precision::F64, 1e-9),
                (Method::Multigrid, Precision::Mixed, 1e-9),
                (Method::Fmg, Precision::Mixed, 1e-9),
                (Method::Multigrid, Precision::F32, single),
                (Method::Direct, Precision::F64, 2e-11),
            ] {
                let found = dipole_figures(*intervals, method, precision, if precision == Precision::F32 { 1e-8 } else { 1e-10 }, &device);
                for (found, expected) in found.iter().zip(expected) {
                    let error = (found - expected).abs() / expected.abs();
                    assert!(error < limit, "{intervals} {method:?} {precision}: {found} for {expected}");
                }
            }
        }
    }
}

#[test]
fn a_pair_of_charges_has_the_values_of_sine_transforms() {
    check_dipole(&DIPOLE[..1]);
}

#[test]
fn a_pair_of_charges_on_a_finer_grid() {
    check_dipole(&DIPOLE[1..2]);
}

/// `cargo test --test poisson golden -- --ignored`: 16.8 million unknowns, 1 GiB.
#[test]
#[ignore = "half a minute"]
fn a_pair_of_charges_at_the_size_of_the_benchmark() {
    check_dipole(&DIPOLE[2..]);
}

/// Nodes, `u` at `(M/2, N/2)`, `(M/3, N/5)` and `(M-2, 1)`, and `sqrt(sum hx hy u^2)` on 1 x 0.75 for the scrambled index.
///
/// Source: SciPy 1.17 as above, `rho.flat[i] = scramble(i)`, `h = 1/(M-1), 0.75/(N-1)`,
/// `lambda = -(4/hx^2) sin(pi k/(2(M-1)))^2 - (4/hy^2) sin(pi q/(2(N-1)))^2`.
const ROUGH: [([usize; 2], [f64; 4]); 3] = [
    ([257, 129], [1.349099519555737e-04, -8.8219114654208e-06, 2.462431355792726e-06, 9.758705316673261e-05]),
    ([1000, 700], [1.918382085865541e-05, -7.417385740956922e-06, 2.946814471561735e-07, 1.667359777873301e-05]),
    ([255, 511], [2.118956243646179e-05, -8.938035424312829e-06, -1.035778450932677e-06, 3.750643751308851e-05]),
];

#[test]
fn a_rough_right_hand_side_on_any_size_agrees_with_sine_transforms() {
    for device in devices() {
        for ([m, n], expected) in ROUGH {
            let problem = Problem::plane([m, n], [1.0, 0.75], scramble(m * n));
            // Relative to the largest of the figures: the residual's tolerance bounds the error of the smooth part, which is
            // what is left last. Single precision: eps ||A|| ||u|| / ||f|| of rounding, measured 6e-6.
            for (method, precision, limit) in [
                (Method::Multigrid, Precision::F64, 1e-11),
                (Method::Multigrid, Precision::Mixed, 1e-11),
                (Method::Multigrid, Precision::F32, 3e-5),
                (Method::Direct, Precision::F64, 1e-12),
                (Method::Direct, Precision::F32, 3e-5),
            ] {
                let u = solved(&problem, &options(method, precision, 1e-12), &device).u;
                let norm = (u.iter().map(|u| u * u).sum::<f64>() * 0.75 / ((m - 1) * (n - 1)) as f64).sqrt();
                let found = [u[m / 2 + m * (n / 2)], u[m / 3 + m * (n / 5)], u[m - 2 + m], norm];
                for (found, expected_one) in found.iter().zip(expected) {
                    let error = (found - expected_one).abs() / max(&expected);
                    assert!(error < limit, "{m} x {n} {method:?} {precision}: {found} for {expected_one}");
                }
            }
        }
    }
}
