//! The direct solver against the operator, closed forms and a dense solve.

use proptest::prelude::*;
use zellige_engine::device::{Cpu, Device};
use zellige_engine::profile::Profiler;
use zellige_engine::testing;

use super::*;
use crate::operator;

const PAIRS: [(Bc, Bc); 5] = [
    (Bc::Dirichlet, Bc::Dirichlet),
    (Bc::Neumann, Bc::Neumann),
    (Bc::Dirichlet, Bc::Neumann),
    (Bc::Neumann, Bc::Dirichlet),
    (Bc::Periodic, Bc::Periodic),
];

/// Uniform in [-1, 1], the same for the same seed.
fn noise(n: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

fn grid(nodes: [usize; 3], sizes: [f64; 3], bcs: [usize; 3]) -> Grid {
    let axes =
        std::array::from_fn(|d| if nodes[d] == 1 { Axis::flat() } else { Axis::new(nodes[d], sizes[d], PAIRS[bcs[d]].0, PAIRS[bcs[d]].1) });
    Grid { axes }
}

fn cpu() -> Device {
    Device::Cpu(Cpu::new(2).unwrap())
}

/// Random values on Dirichlet nodes, NaN at the unknowns, which must not be read.
fn boundary(grid: &Grid, seed: u64) -> Vec<f64> {
    let n = grid.nodes();
    let unknown = |i: usize| {
        let at = [i % n[0], i / n[0] % n[1], i / (n[0] * n[1])];
        (0..3).all(|d| grid.axes[d].unknowns().contains(&at[d]))
    };
    noise(grid.len(), seed).into_iter().enumerate().map(|(i, v)| if unknown(i) { f64::NAN } else { v }).collect()
}

fn solve(grid: &Grid, precision: Precision, threads: usize, u: &[f64], f: &[f64]) -> (Vec<f64>, f64) {
    solve_on(&Device::Cpu(Cpu::new(threads).unwrap()), grid, precision, u, f)
}

fn solve_on(device: &Device, grid: &Grid, precision: Precision, u: &[f64], f: &[f64]) -> (Vec<f64>, f64) {
    let mut direct = Direct::new(grid, precision, device).unwrap();
    direct.load(u, f).unwrap();
    direct.solve(&mut Profiler::off()).unwrap();
    (direct.solution().unwrap(), direct.removed_mean().unwrap()[0])
}

/// The largest residual over `eps (||A|| ||u|| + ||f||)`.
fn backward_error(grid: &Grid, u: &[f64], f: &[f64], removed: f64, eps: f64) -> f64 {
    let f: Vec<f64> = f.iter().map(|f| f - removed).collect();
    let norm_a: f64 = grid.axes.iter().filter(|a| !a.is_flat()).map(|a| 4.0 / (a.h * a.h)).sum();
    let max = |v: &[f64]| v.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    operator::residual_norms(grid, u, &f).max / (eps * (norm_a * max(u) + max(&f)))
}

#[test]
fn every_pair_of_conditions_has_exact_eigenvectors() {
    for (bc, (lo, hi)) in PAIRS.into_iter().enumerate() {
        for nodes in [3, 4, 5, 16, 17, 33, 34, 35, 36, 65, 129, 101, 22, 28, 46, 56, 78, 106, 136, 151, 70] {
            // x carries the mode, y is constant or a half wave that its own conditions know.
            let grid = grid([nodes, 5, 1], [1.0, 1.0, 1.0], [bc, 1, 0]);
            let axis = &grid.axes[0];
            let angles = transform::angles(transform::Kind::of(axis), axis.intervals(), transform::SMALL);
            // The rounding of phi i, up to eps n, times lambda_max, seen through the smallest eigenvalue: (2 n / pi)^2 together.
            let limit = f64::EPSILON * (nodes as f64).powi(3);
            assert_eq!(angles.len(), axis.unknowns().len(), "{lo:?} {hi:?} {nodes}");
            for phi in angles.iter().filter(|phi| **phi > 0.0) {
                let wave = |i: usize| if lo == Bc::Dirichlet { (phi * i as f64).sin() } else { (phi * i as f64).cos() };
                let lambda = -(2.0 / axis.h * (0.5 * phi).sin()).powi(2);
                let u: Vec<f64> = (0..grid.len()).map(|n| wave(n % nodes)).collect();
                let f: Vec<f64> =
                    u.iter().enumerate().map(|(n, u)| if axis.unknowns().contains(&(n % nodes)) { lambda * u } else { 0.0 }).collect();
                let (found, _) = solve(&grid, Precision::F64, 1, &vec![0.0; grid.len()], &f);
                for n in 0..grid.len() {
                    if axis.unknowns().contains(&(n % nodes)) {
                        assert!((found[n] - u[n]).abs() < limit, "{lo:?} {hi:?} {nodes} phi {phi} node {n}: {} {}", found[n], u[n]);
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn plane_problems_solve_to_rounding(x in 3_usize..70, y in 3_usize..70, a in 0_usize..5, b in 0_usize..5, stretch in 0.1_f64..10.0, seed in 0_u64..1000) {
        check(&cpu(), &grid([x, y, 1], [1.0, stretch, 1.0], [a, b, 0]), seed)?;
    }

    #[test]
    fn problems_in_space_solve_to_rounding(n in prop::array::uniform3(3_usize..24), bcs in prop::array::uniform3(0_usize..5), stretch in 0.2_f64..5.0, seed in 0_u64..1000) {
        check(&cpu(), &grid(n, [1.0, stretch, 1.0], bcs), seed)?;
    }
}

fn check(device: &Device, grid: &Grid, seed: u64) -> std::result::Result<(), TestCaseError> {
    let (f, u) = (noise(grid.len(), seed), boundary(grid, seed + 1));
    for (precision, eps) in [(Precision::F64, f64::EPSILON), (Precision::F32, f64::from(f32::EPSILON))] {
        let (found, removed) = solve_on(device, grid, precision, &u, &f);
        let error = backward_error(grid, &found, &f, removed, eps);
        // A backward stable solve stays below a modest multiple of eps: log2(n) butterflies and the sums along a line. 3 is
        // usual, 11 the most seen in a thousand cases.
        prop_assert!(error < 32.0, "{precision}: backward error {error} eps");
        for (found, given) in found.iter().zip(&u) {
            prop_assert!(given.is_nan() || (*given - *found).abs() <= eps, "a boundary value moved");
        }
        if grid.singular() {
            let scale = found.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
            prop_assert!(operator::mean(grid, &found).abs() <= 8.0 * eps * scale);
            prop_assert!((removed - operator::mean(grid, &f)).abs() <= 8.0 * eps);
        } else {
            prop_assert_eq!(removed, 0.0);
        }
    }
    Ok(())
}

#[test]
fn smooth_modes_keep_their_digits_on_long_lines() {
    // delta = (pi / 2048)^2 = 2.4e-6 is 1e10 eps only: written as 2 + delta it would cost ten digits of this mode.
    let n = 2048;
    let grid = grid([n + 1, n + 1, 1], [1.0, 1.0, 1.0], [0, 0, 0]);
    let wave = |i: usize| (std::f64::consts::PI * i as f64 / n as f64).sin();
    let lambda = -2.0 * (2.0 * n as f64 * (std::f64::consts::FRAC_PI_2 / n as f64).sin()).powi(2);
    let u: Vec<f64> = (0..grid.len()).map(|i| wave(i % (n + 1)) * wave(i / (n + 1))).collect();
    let f: Vec<f64> = u.iter().map(|u| lambda * u).collect();
    for (precision, limit) in [(Precision::F64, 1e-12), (Precision::F32, 1e-5)] {
        let (found, _) = solve(&grid, precision, 2, &vec![0.0; grid.len()], &f);
        let error = found.iter().zip(&u).fold(0.0_f64, |m, (a, b)| m.max((a - b).abs()));
        // A random walk of 2 * 2048 roundings along a line, and log2(n) of the transforms.
        assert!(error < limit, "{precision}: {error}");
    }
}

#[test]
fn a_dense_solve_agrees() {
    for bcs in [[0, 2, 3], [3, 0, 1], [4, 2, 4], [1, 4, 0]] {
        let grid = grid([4, 5, 3], [1.0, 1.5, 0.7], bcs);
        let (f, u) = (noise(grid.len(), 7), boundary(&grid, 8));
        let (found, _) = solve(&grid, Precision::F64, 1, &u, &f);
        let expected = dense(&grid, &u, &f);
        for (a, b) in found.iter().zip(&expected) {
            // 60 unknowns with a condition number below 1e3.
            assert!((a - b).abs() < 1e-13, "{bcs:?}: {a} {b}");
        }
    }
}

/// Gaussian elimination with pivoting on the whole matrix; Dirichlet nodes are identity rows.
fn dense(grid: &Grid, u: &[f64], f: &[f64]) -> Vec<f64> {
    let (n, nodes) = (grid.len(), grid.nodes());
    let mut m = vec![vec![0.0; n + 1]; n];
    for i in 0..n {
        let at = [i % nodes[0], i / nodes[0] % nodes[1], i / (nodes[0] * nodes[1])];
        if !(0..3).all(|d| grid.axes[d].unknowns().contains(&at[d])) {
            (m[i][i], m[i][n]) = (1.0, u[i]);
            continue;
        }
        m[i][n] = f[i];
        let mut stride = 1;
        for (d, axis) in grid.axes.iter().enumerate() {
            let (w, e) = axis.weights(at[d]);
            let base = i - at[d] * stride;
            m[i][base + (at[d] + nodes[d] - 1) % nodes[d] * stride] += w;
            m[i][base + (at[d] + 1) % nodes[d] * stride] += e;
            m[i][i] -= w + e;
            stride *= nodes[d];
        }
    }
    for c in 0..n {
        let pivot = (c..n).max_by(|a, b| m[*a][c].abs().total_cmp(&m[*b][c].abs())).unwrap();
        m.swap(c, pivot);
        for r in 0..n {
            if r != c && m[r][c] != 0.0 {
                let factor = m[r][c] / m[c][c];
                for k in c..=n {
                    m[r][k] -= factor * m[c][k];
                }
            }
        }
    }
    (0..n).map(|i| m[i][n] / m[i][i]).collect()
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    for (nodes, bcs) in [([300, 200, 1], [0, 0, 0]), ([65, 90, 1], [4, 1, 0]), ([20, 30, 25], [2, 4, 0])] {
        let grid = grid(nodes, [1.0, 1.0, 1.0], bcs);
        let (f, u) = (noise(grid.len(), 3), boundary(&grid, 4));
        let one = solve(&grid, Precision::F64, 1, &u, &f);
        for threads in [2, 3, 7] {
            assert!(solve(&grid, Precision::F64, threads, &u, &f) == one, "{nodes:?} with {threads} threads");
        }
    }
}

#[test]
fn a_plan_serves_many_right_hand_sides() {
    let grid = grid([40, 30, 1], [1.0, 1.0, 1.0], [1, 1, 0]);
    let device = Device::Cpu(Cpu::new(1).unwrap());
    let mut direct = Direct::new(&grid, Precision::F64, &device).unwrap();
    let zero = vec![0.0; grid.len()];
    for seed in 0..3 {
        let f = noise(grid.len(), seed);
        direct.load(&zero, &f).unwrap();
        direct.solve(&mut Profiler::off()).unwrap();
        direct.solve(&mut Profiler::off()).unwrap();
        let alone = solve(&grid, Precision::F64, 1, &zero, &f);
        assert!((direct.solution().unwrap(), direct.removed_mean().unwrap()[0]) == alone);
    }
}

#[test]
fn the_gpu_solves_to_rounding_and_repeats_itself() {
    let Some(cuda) = testing::gpu() else { return };
    let gpu = Device::Cuda(cuda);
    let mut cases: Vec<([usize; 3], [usize; 3])> = Vec::new();
    for bc in 0..5 {
        // Every kind along every axis, sizes with and without splits, lines of one segment and of many.
        cases.push(([65, 48 + bc, 1], [bc, (bc + 1) % 5, 0]));
        cases.push(([37 + bc, 1200 + 7 * bc, 1], [(bc + 3) % 5, bc, 0]));
        cases.push(([3 + bc, 3, 1], [bc, bc, 0]));
        cases.push(([18 + bc, 33, 20], [bc, (bc + 2) % 5, (bc + 4) % 5]));
    }
    cases.extend([([9, 12, 10], [1, 1, 1]), ([9, 12, 10], [4, 4, 4]), ([3, 3, 3], [0, 0, 0]), ([257, 4097, 1], [0, 0, 0])]);
    for (seed, (nodes, bcs)) in cases.into_iter().enumerate() {
        let grid = grid(nodes, [1.0, 1.3, 0.8], bcs);
        check(&gpu, &grid, seed as u64).unwrap_or_else(|error| panic!("{nodes:?} {bcs:?}: {error}"));
        let (f, u) = (noise(grid.len(), 5), boundary(&grid, 6));
        let once = solve_on(&gpu, &grid, Precision::F64, &u, &f);
        assert!(once == solve_on(&gpu, &grid, Precision::F64, &u, &f), "{nodes:?} {bcs:?}: run to run");
        let (expected, _) = solve(&grid, Precision::F64, 2, &u, &f);
        let scale = expected.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        let apart = once.0.iter().zip(&expected).fold(0.0_f64, |m, (a, b)| m.max((a - b).abs()));
        // Two roundings of the same formulae: a random walk along lines of up to 4096 rows.
        assert!(apart < 1e-12 * scale, "{nodes:?} {bcs:?}: {apart} of {scale}");
    }
}

#[test]
fn kernels_compile_for_every_architecture() {
    if !testing::compiler() {
        return;
    }
    for (arch, bc) in testing::ARCHITECTURES.into_iter().zip([0, 1, 2, 4]) {
        for (real, nodes) in [("float", 4097), ("double", 513)] {
            let (last, flat) = (Axis::new(nodes, 1.0, PAIRS[bc].0, PAIRS[bc].1), Axis::flat());
            let middle = if nodes == 513 { &last } else { &flat };
            cuda::recipe(real, [&last, middle, &last], nodes == 513).compile_only(arch).unwrap();
        }
    }
}
