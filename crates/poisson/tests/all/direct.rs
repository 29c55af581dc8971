//! The direct solver against the operator, closed forms and a dense solve.

use proptest::prelude::*;
use zellige_engine::device::Device;
use zellige_engine::profile::Profiler;
use zellige_engine::testing;

use crate::common::{self, cpu};
use zellige_poisson::direct::Direct;
use zellige_poisson::grid::{Bc, Grid};
use zellige_poisson::{Method, Options, Precision, Problem, Status, Tolerance, operator, solve_batch};

const PAIRS: [(Bc, Bc); 5] = [
    (Bc::Dirichlet, Bc::Dirichlet),
    (Bc::Neumann, Bc::Neumann),
    (Bc::Dirichlet, Bc::Neumann),
    (Bc::Neumann, Bc::Dirichlet),
    (Bc::Periodic, Bc::Periodic),
];

/// Uniform in [-1, 1], the same for the same seed.
pub(crate) fn noise(n: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

pub(crate) fn grid(nodes: [usize; 3], sizes: [f64; 3], bcs: [usize; 3]) -> Grid {
    common::grid(nodes, sizes, bcs.map(|pair| PAIRS[pair]))
}

/// Random values on Dirichlet nodes, NaN at the unknowns, which must not be read.
pub(crate) fn boundary(grid: &Grid, seed: u64) -> Vec<f64> {
    let n = grid.nodes();
    let unknown = |i: usize| {
        let at = [i % n[0], i / n[0] % n[1], i / (n[0] * n[1])];
        (0..3).all(|d| grid.axes[d].unknowns().contains(&at[d]))
    };
    noise(grid.len(), seed).into_iter().enumerate().map(|(i, v)| if unknown(i) { f64::NAN } else { v }).collect()
}

fn solve(grid: &Grid, precision: Precision, threads: usize, u: &[f64], f: &[f64]) -> (Vec<f64>, f64) {
    solve_on(&cpu(threads), grid, precision, u, f)
}

fn solve_on(device: &Device, grid: &Grid, precision: Precision, u: &[f64], f: &[f64]) -> (Vec<f64>, f64) {
    solve_with_axis_swap(device, grid, None, precision, u, f)
}

/// Eliminates along the axis `swapped`, or the last one, whatever the estimate would choose.
fn solve_with_axis_swap(
    device: &Device,
    grid: &Grid,
    swapped: Option<usize>,
    precision: Precision,
    u: &[f64],
    f: &[f64],
) -> (Vec<f64>, f64) {
    let mut direct = Direct::with_axis_swap(grid, swapped, 1, precision, device).unwrap();
    direct.load(u, f).unwrap();
    direct.solve(&mut Profiler::off()).unwrap();
    (direct.solution().unwrap(), direct.removed_mean().unwrap()[0])
}

/// The largest residual over `eps (||A|| ||u|| + ||f||)`.
pub(crate) fn backward_error(grid: &Grid, u: &[f64], f: &[f64], removed: f64, eps: f64) -> f64 {
    let f: Vec<f64> = f.iter().map(|f| f - removed).collect();
    let norm_a: f64 = grid.axes.iter().filter(|a| !a.is_flat()).map(|a| 4.0 / (a.h * a.h)).sum();
    let max = |v: &[f64]| v.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    operator::residual_norms(grid, u, &f).max / (eps * (norm_a * max(u) + max(&f)))
}

/// The angles of the eigenvectors of an axis of `n` intervals, each pair of a periodic one twice.
fn angles(bc: usize, n: usize) -> Vec<f64> {
    let part = |k: f64| std::f64::consts::PI * k / n as f64;
    match PAIRS[bc] {
        (Bc::Dirichlet, Bc::Dirichlet) => (1..n).map(|k| part(k as f64)).collect(),
        (Bc::Neumann, Bc::Neumann) => (0..=n).map(|k| part(k as f64)).collect(),
        (Bc::Periodic, _) => (0..n).map(|k| part(2.0 * (k / 2 + k % 2) as f64)).collect(),
        _ => (0..n).map(|k| part(k as f64 + 0.5)).collect(),
    }
}

#[test]
fn every_pair_of_conditions_has_exact_eigenvectors() {
    for (bc, (lo, hi)) in PAIRS.into_iter().enumerate() {
        for nodes in [3, 4, 5, 16, 17, 33, 34, 35, 36, 65, 129, 101, 22, 28, 46, 56, 78, 106, 136, 151, 70] {
            // x carries the mode, y is constant or a half wave that its own conditions know.
            let grid = grid([nodes, 5, 1], [1.0, 1.0, 1.0], [bc, 1, 0]);
            let axis = &grid.axes[0];
            let angles = angles(bc, axis.intervals());
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
    fn plane_problems_solve_to_rounding(x in 3_usize..70, y in 3_usize..70, a in 0_usize..5, b in 0_usize..5, swapped in prop::option::of(0_usize..1), stretch in 0.1_f64..10.0, seed in 0_u64..1000) {
        check(&cpu(2), &grid([x, y, 1], [1.0, stretch, 1.0], [a, b, 0]), swapped, seed)?;
    }

    #[test]
    fn problems_in_space_solve_to_rounding(n in prop::array::uniform3(3_usize..24), bcs in prop::array::uniform3(0_usize..5), swapped in prop::option::of(0_usize..2), stretch in 0.2_f64..5.0, seed in 0_u64..1000) {
        check(&cpu(2), &grid(n, [1.0, stretch, 1.0], bcs), swapped, seed)?;
    }
}

fn check(device: &Device, grid: &Grid, swapped: Option<usize>, seed: u64) -> std::result::Result<(), TestCaseError> {
    let (f, u) = (noise(grid.len(), seed), boundary(grid, seed + 1));
    for (precision, eps) in [(Precision::F64, f64::EPSILON), (Precision::F32, f64::from(f32::EPSILON))] {
        let (found, removed) = solve_with_axis_swap(device, grid, swapped, precision, &u, &f);
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
fn norms_are_those_of_the_operator_and_sweeps_reach_the_floor() {
    let mut devices = vec![(cpu(2), None), (cpu(2), Some(0))];
    devices.extend(testing::gpu().map(|cuda| (Device::Cuda(cuda), None)));
    for (device, swapped) in &devices {
        for (nodes, bcs) in [
            ([300, 200, 1], [0, 0, 0]),
            ([65, 90, 1], [2, 1, 0]),
            ([3, 41, 1], [4, 3, 0]),
            ([20, 33, 25], [2, 0, 4]),
            ([16, 3, 40], [4, 1, 0]),
        ] {
            let grid = grid(nodes, [1.0, 1.3, 0.8], bcs);
            let (f, mut direct) = (
                operator::unknowns_only(&grid, &noise(grid.len(), 3)),
                Direct::with_axis_swap(&grid, *swapped, 1, Precision::F64, device).unwrap(),
            );
            let mut u = boundary(&grid, 4);
            direct.load(&u, &f).unwrap();
            let off = &mut Profiler::off();
            direct.solve(off).unwrap();
            let mut before = direct.norms(off).unwrap()[0];
            for sweep in 0..4 {
                u = direct.solution().unwrap();
                let norms = if sweep == 0 { before } else { direct.polish(&[true], off).unwrap()[0] };
                let expected = operator::residual_norms(&grid, &direct.solution().unwrap(), &f);
                // Both round each term of a row: a few eps of ||A|| |u| between them, where the residual itself is no more.
                let rounding = 8.0 * f64::EPSILON * operator::norm_bound(&grid) * u.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
                let close = |a: f64, b: f64, within: f64| assert!((a - b).abs() <= within, "{nodes:?} {bcs:?} sweep {sweep}: {a} {b}");
                close(norms.l2, expected.l2, rounding);
                close(norms.max, expected.max, rounding);
                close(norms.u_l2, expected.u_l2, 1e-13 * expected.u_l2);
                // No sweep may harm: what it adds is the rounding of storing u.
                assert!(norms.l2 <= before.l2 + rounding, "{nodes:?} {bcs:?} sweep {sweep}: {} after {}", norms.l2, before.l2);
                before = norms;
            }
        }
    }
}

#[test]
fn measuring_while_solving_changes_neither_solution_nor_norms() {
    let mut devices = vec![cpu(1), cpu(3)];
    devices.extend(testing::gpu().map(Device::Cuda));
    for device in &devices {
        // Planes in one batch and in many, a last one that waits for the first, and batches that end in a single row.
        for (nodes, bcs) in [
            ([2049, 331, 1], [0, 0, 0]),
            ([1030, 401, 1], [1, 4, 0]),
            ([1500, 261, 1], [4, 1, 0]),
            ([17, 9, 1], [2, 4, 0]),
            ([66, 130, 41], [0, 1, 4]),
            ([120, 90, 30], [2, 0, 3]),
        ] {
            for precision in [Precision::F32, Precision::F64] {
                let grid = grid(nodes, [1.0, 1.3, 0.8], bcs);
                let f = operator::unknowns_only(&grid, &noise(grid.len(), 3));
                let mut direct = Direct::new(&grid, precision, device).unwrap();
                direct.load(&boundary(&grid, 4), &f).unwrap();
                let off = &mut Profiler::off();
                direct.solve(off).unwrap();
                let (norms, solution, removed) = (direct.norms(off).unwrap(), direct.solution().unwrap(), direct.removed_mean().unwrap());
                let measured = direct.solve_measured(off).unwrap();
                assert_eq!(measured, norms, "{nodes:?} {bcs:?} {precision}");
                assert!(measured[0].l2 > 0.0 && measured[0].max.is_finite());
                assert!(
                    direct.solution().unwrap() == solution && direct.removed_mean().unwrap() == removed,
                    "{nodes:?} {bcs:?} {precision}"
                );
            }
        }
    }
}

#[test]
fn a_sweep_takes_most_of_the_noise_away() {
    // A smooth solution with white noise on top, whose residual a sweep multiplies by 0.27.
    let grid = grid([1025, 513, 1], [1.0, 0.5, 1.0], [0, 0, 0]);
    let n = grid.nodes()[0];
    let wave = |i: usize| (std::f64::consts::PI * i as f64 / (n - 1) as f64).sin();
    let exact: Vec<f64> = (0..grid.len()).map(|i| wave(i % n) * wave(2 * (i / n))).collect();
    let lambda = -(1.0 + 4.0) * (2.0 * (n - 1) as f64 * (0.5 * std::f64::consts::PI / (n - 1) as f64).sin()).powi(2);
    let mut devices = vec![cpu(2)];
    devices.extend(testing::gpu().map(Device::Cuda));
    for device in &devices {
        let mut direct = Direct::new(&grid, Precision::F64, device).unwrap();
        let f = operator::unknowns_only(&grid, &exact.iter().map(|u| lambda * u).collect::<Vec<_>>());
        direct.load(&vec![0.0; grid.len()], &f).unwrap();
        let off = &mut Profiler::off();
        direct.solve(off).unwrap();
        let u = direct.solution().unwrap();
        let noisy: Vec<f64> = u.iter().zip(noise(grid.len(), 5)).map(|(u, e)| if *u == 0.0 { 0.0 } else { u + 1e-9 * e }).collect();
        direct.load(&noisy, &f).unwrap();
        let before = direct.norms(off).unwrap()[0].l2;
        let factor = direct.polish(&[true], off).unwrap()[0].l2 / before;
        assert!((0.22..0.32).contains(&factor), "{factor}");
    }
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn a_batch_on_the_gpu_gives_the_bits_of_single_solves() {
    let Some(cuda) = testing::gpu() else { return };
    let gpu = Device::Cuda(cuda);
    for (nodes, bcs) in
        [([65, 48, 1], [0, 1, 0]), ([64, 129, 1], [4, 0, 0]), ([31, 20, 1], [1, 1, 0]), ([18, 33, 20], [1, 4, 1]), ([22, 16, 9], [0, 2, 0])]
    {
        let grid = grid(nodes, [1.0, 1.3, 0.8], bcs);
        for precision in [Precision::F64, Precision::F32] {
            let off = &mut Profiler::off();
            let mut batch = Direct::batch(&grid, 5, precision, &gpu).unwrap();
            let given: Vec<_> = (0..5).map(|s| (boundary(&grid, 2 * s), noise(grid.len(), 2 * s + 1))).collect();
            for (s, (u, f)) in given.iter().enumerate() {
                batch.load_system(s, u, f).unwrap();
            }
            batch.solve(off).unwrap();
            let solved = batch.norms(off).unwrap();
            let active = [true, false, true, true, false];
            let polished = batch.polish(&active, off).unwrap();
            for (s, (u, f)) in given.iter().enumerate() {
                let mut one = Direct::new(&grid, precision, &gpu).unwrap();
                one.load(u, f).unwrap();
                one.solve(off).unwrap();
                assert_eq!(one.norms(off).unwrap()[0], solved[s], "{nodes:?} {precision} system {s}");
                if active[s] {
                    assert_eq!(one.polish(&[true], off).unwrap()[0], polished[s], "{nodes:?} {precision} system {s}");
                }
                assert!(one.solution().unwrap() == batch.solution_of(s).unwrap(), "{nodes:?} {precision} system {s}");
                assert_eq!(one.removed_mean().unwrap()[0], batch.removed_mean().unwrap()[s], "{nodes:?} {precision} system {s}");
            }
        }
    }
}

#[test]
fn a_plan_serves_many_right_hand_sides() {
    let grid = grid([40, 30, 1], [1.0, 1.0, 1.0], [1, 1, 0]);
    let device = cpu(1);
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
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
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
    cases.extend([
        ([136, 40, 1], [0, 1, 0]),
        ([456, 40, 1], [1, 0, 0]),
        ([1002, 30, 1], [0, 0, 0]),
        ([1366, 20, 1], [0, 0, 0]),
        ([144, 30, 1], [1, 0, 0]),
        ([170, 30, 1], [0, 4, 0]),
        ([274, 9, 1], [0, 0, 0]),
        ([9, 276, 10], [1, 0, 1]),
        ([9, 12, 10], [1, 1, 1]),
        ([9, 12, 10], [4, 4, 4]),
        ([3, 3, 3], [0, 0, 0]),
        ([257, 4097, 1], [0, 0, 0]),
    ]);
    for (seed, (nodes, bcs)) in cases.into_iter().enumerate() {
        let grid = grid(nodes, [1.0, 1.3, 0.8], bcs);
        check(&gpu, &grid, None, seed as u64).unwrap_or_else(|error| panic!("{nodes:?} {bcs:?}: {error}"));
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
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn many_problems_on_the_gpu_end_as_each_alone_does() {
    let Some(cuda) = testing::gpu() else { return };
    let gpu = Device::Cuda(cuda);
    let (m, n) = (129, 97);
    let plane =
        |seed: u64, scale: f64| Problem::plane([m, n], [1.0, 0.7], noise(m * n, seed).iter().map(|v| scale * v).collect::<Vec<_>>());
    // A zero among them is done before it begins; another grid and a guess end a stretch that is solved together.
    let mut problems: Vec<_> = (0..6).map(|s| plane(s, if s == 2 { 0.0 } else { 1.0 })).collect();
    problems.push(Problem::plane([65, 65], [1.0, 1.0], noise(65 * 65, 9)).periodic(0).periodic(1).mean(3.0));
    problems.extend([plane(7, 1.0).guess(vec![0.5; m * n]), plane(8, 1.0)]);
    for tolerance in [1e-6, 1e-13] {
        let options = Options { tolerance: Tolerance::Relative(tolerance), method: Method::Direct, ..Options::default() };
        let batch = solve_batch(&problems, &options, &gpu).unwrap();
        assert_eq!(batch.len(), problems.len());
        for (k, (problem, together)) in problems.iter().zip(&batch).enumerate() {
            let alone = zellige_poisson::solve(problem, &options, &gpu).unwrap();
            assert!(alone.u == together.u, "problem {k} to {tolerance}");
            assert_eq!((alone.report.status, &alone.report.history), (together.report.status, &together.report.history), "problem {k}");
            assert!(tolerance < 1e-12 || together.report.status == Status::Converged, "{:?}", together.report);
        }
    }
}
