//! The GPU's stages against the CPU's on the same systems: every boundary condition, sizes with and without a
//! fractional cell, both dimensions, all smoothers, starts and cycles, all precisions.
//!
//! Without a GPU the tests say so and pass; `ZELLIGE_REQUIRE_GPU=1` makes that a failure. The kernels' compilation for
//! other architectures needs NVRTC alone; `ZELLIGE_REQUIRE_NVRTC=1` makes its absence a failure.

use crate::common::noise;
use zellige_engine::cuda::Cuda;
use zellige_engine::device::Cpu;
use zellige_engine::profile::Profiler;
use zellige_engine::testing;
use zellige_poisson::grid::{Axis, Bc, Grid};
use zellige_poisson::operator;
use zellige_poisson::problem::{Precision, StageSetup};
use zellige_poisson::stages::{Norms, Smoother, Stages, cpu, cuda};
use zellige_poisson::step::{Cycle, CyclePlan, carried_cycle, cycle, full_multigrid};

const D: Bc = Bc::Dirichlet;
const N: Bc = Bc::Neumann;
const P: Bc = Bc::Periodic;
const RED_BLACK: Smoother = Smoother::RedBlack { omega: 1.15 };
const V11: CyclePlan = CyclePlan { cycle: Cycle::V, pre: 1, post: 1, smoother: RED_BLACK, adapts: false };

fn gpu() -> Option<Cuda> {
    match Cuda::open(0) {
        Ok(cuda) => Some(cuda),
        Err(e) => {
            assert!(std::env::var("ZELLIGE_REQUIRE_GPU").as_deref() != Ok("1"), "{e}");
            println!("skipped: no GPU ({e})");
            None
        }
    }
}

/// A right-hand side that a singular grid accepts, and a first guess with values on Dirichlet nodes.
fn system(grid: &Grid) -> (Vec<f64>, Vec<f64>) {
    let [nx, ny, _] = grid.nodes();
    let split = |q: usize| [q % nx, q / nx % ny, q / (nx * ny)];
    let unknown = |q: usize| (0..3).all(|d| grid.axes[d].unknowns().contains(&split(q)[d]));
    let u = (0..grid.len()).map(|q| if unknown(q) { 0.0 } else { noise(q + 17) }).collect();
    let mut f: Vec<f64> = (0..grid.len()).map(|q| if unknown(q) { noise(q) } else { 0.0 }).collect();
    if grid.singular() {
        let volume = |q: usize| -> f64 { (0..3).map(|d| grid.axes[d].volume(split(q)[d])).product() };
        let total: f64 = (0..f.len()).map(volume).sum();
        let mean = (0..f.len()).map(|q| volume(q) * f[q]).sum::<f64>() / total;
        for v in &mut f {
            *v -= mean;
        }
    }
    (u, f)
}

struct Outcome {
    u: Vec<f64>,
    norms: Vec<Norms>,
}

fn run(stages: &mut dyn Stages, grid: &Grid, body: &mut dyn FnMut(&mut dyn Stages, &mut Profiler), times: usize) -> Outcome {
    let (u, f) = system(grid);
    let profiler = &mut Profiler::off();
    stages.load(&u, &f).unwrap();
    stages.residual(0, profiler).unwrap();
    let mut norms = vec![stages.norms().unwrap()];
    for _ in 0..times {
        body(stages, profiler);
        norms.push(stages.norms().unwrap());
    }
    Outcome { u: stages.solution().unwrap(), norms }
}

/// Nodes an axis of a level that the CPU solves exactly as well: at most 400 unknowns.
fn small(grid: &Grid) -> usize {
    if grid.dimensions() == 3 { 7 } else { 17 }
}

/// Runs `body` on both devices, on the same levels, and holds the GPU's outcome against the CPU's. `tolerance` is relative,
/// in units of the largest value.
fn twins(
    name: &str,
    cuda: &Cuda,
    setup: &StageSetup,
    tolerance: f64,
    times: usize,
    body: &mut dyn FnMut(&mut dyn Stages, &mut Profiler),
) -> Result<(), String> {
    let grid = setup.grid().clone();
    let mut levels = 0;
    let mut on = |device: bool| {
        let work = || {
            let mut stages = if device {
                cuda::with_bottom(setup, cuda, Some(small(&grid))).unwrap()
            } else {
                cpu::new(&StageSetup::new(&grid, levels - 1, setup.precision, setup.full), &Cpu::new(1).unwrap()).unwrap()
            };
            levels = stages.levels();
            run(stages.as_mut(), &grid, body, times)
        };
        // A panic is a fault of its case; the others are still looked at.
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(work))
            .map_err(|_| format!("{name} {}: panicked on the {}", setup.precision, if device { "GPU" } else { "processor" }))
    };
    let got = on(true)?;
    let expected = on(false)?;
    // Constants are in the null space of a singular problem.
    let mean = |u: &[f64]| if grid.singular() { u.iter().sum::<f64>() / u.len() as f64 } else { 0.0 };
    let (a, b) = (mean(&expected.u), mean(&got.u));
    let scale = expected.u.iter().fold(0.0, |s: f64, v| s.max((v - a).abs()));
    let error = expected.u.iter().zip(&got.u).fold(0.0, |s: f64, (v, w)| {
        let d = ((v - a) - (w - b)).abs();
        if d.is_nan() { f64::INFINITY } else { s.max(d) }
    });
    let mut faults = Vec::new();
    if error > tolerance * scale {
        faults.push(format!("solutions differ by {error:.2e} of {scale:.2e}"));
    }
    for (i, (p, q)) in expected.norms.iter().zip(&got.norms).enumerate() {
        // Rounding of u makes residuals of this size whatever the method.
        let floor = 20.0 * tolerance * expected.norms[0].l2;
        for (what, x, y) in [("l2", p.l2, q.l2), ("max", p.max, q.max)] {
            if (x - y).abs().partial_cmp(&(1e-3 * x + 20.0 * floor)) != Some(std::cmp::Ordering::Less) {
                faults.push(format!("{what} after {i}: {x:.6e} and {y:.6e}"));
            }
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(format!("{name} {}: {}", setup.precision, faults.join("; "))) }
}

fn plane(nx: usize, ny: usize, x: (Bc, Bc), y: (Bc, Bc), stretch: f64) -> Grid {
    Grid::plane(Axis::new(nx, 1.0, x.0, x.1), Axis::new(ny, stretch * ny as f64 / nx as f64, y.0, y.1))
}

fn grids() -> Vec<(String, Grid)> {
    let mut all = Vec::new();
    let pairs = [((D, D), (D, D)), ((N, N), (N, N)), ((P, P), (P, P)), ((D, N), (P, P)), ((N, D), (D, N)), ((P, P), (N, D))];
    for (nx, ny) in [(3, 3), (5, 9), (33, 33), (64, 48), (100, 70), (129, 257), (150, 131), (258, 300), (513, 130)] {
        for (x, y) in pairs {
            all.push((format!("{nx}x{ny} {x:?} {y:?}"), plane(nx, ny, x, y, 1.0)));
        }
    }
    for stretch in [0.1, 7.0] {
        all.push((format!("stretched {stretch}"), plane(200, 180, (D, D), (D, D), stretch)));
        all.push((format!("stretched {stretch} free"), plane(128, 180, (P, P), (N, N), stretch)));
    }
    all.push(("thin".into(), plane(3, 400, (N, N), (D, D), 1.0)));
    for n in [[9, 9, 9], [17, 12, 20], [34, 33, 29]] {
        for (x, y, z) in [((D, D), (D, D), (D, D)), ((P, P), (N, N), (P, P)), ((D, N), (P, P), (N, D))] {
            let axis = |n: usize, (lo, hi)| Axis::new(n, n as f64 / 16.0, lo, hi);
            all.push((format!("{n:?} {x:?} {y:?} {z:?}"), Grid { axes: [axis(n[0], x), axis(n[1], y), axis(n[2], z)] }));
        }
    }
    all
}

/// Rounding of u in the solution, over some thousand operations in different orders. In mixed precision the cycles' own
/// rounding is in what the last of them leaves.
fn tolerance(precision: Precision) -> f64 {
    match precision {
        Precision::F32 => 2e-4,
        Precision::Mixed => 1e-8,
        Precision::F64 => 1e-12,
    }
}

/// Tolerance of intermediate iterates: rounding, and with few levels also that the backends solve the coarsest one, which is large,
/// by iterations of their own.
fn loose(precision: Precision, levels: usize) -> f64 {
    match (precision, levels) {
        (Precision::F32, _) => 1e-4,
        (_, usize::MAX) => 1e-9,
        _ => 1e-5,
    }
}

fn check(faults: &[String]) {
    assert!(faults.is_empty(), "{} cases differ:\n{}", faults.len(), faults.join("\n"));
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn cycles_agree_on_every_grid() {
    let Some(cuda) = gpu() else { return };
    let mut faults = Vec::new();
    for (name, grid) in grids() {
        for precision in [Precision::F64, Precision::Mixed, Precision::F32] {
            let setup = StageSetup::new(&grid, usize::MAX, precision, false);
            // Ten cycles of V(1,1) come below the rounding of u, so that the solutions can be compared.
            let times = if precision == Precision::F32 { 6 } else { 12 };
            faults.extend(twins(&name, &cuda, &setup, tolerance(precision), times, &mut |s, p| cycle(s, V11, p).unwrap()).err());
        }
    }
    check(&faults);
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn all_cycles_smoothers_and_methods_agree() {
    let Some(cuda) = gpu() else { return };
    let mut faults = Vec::new();
    let grids = [plane(300, 260, (D, D), (N, D), 1.0), plane(128, 129, (P, P), (N, N), 1.0)];
    let others = [Smoother::Jacobi { omega: 0.8 }, Smoother::Chebyshev { ratio: 4.0 }, RED_BLACK];
    for grid in &grids {
        for precision in [Precision::F64, Precision::F32] {
            for levels in [usize::MAX, 2] {
                let setup = StageSetup::new(grid, levels, precision, true);
                for smoother in others {
                    for (kind, pre, post) in [(Cycle::V, 2, 1), (Cycle::W, 1, 1), (Cycle::F, 1, 2), (Cycle::C, 1, 1)] {
                        let plan = CyclePlan { cycle: kind, pre, post, smoother, adapts: false };
                        let name = format!("{kind:?}({pre},{post}) {smoother:?} of {levels} on {:?}", grid.nodes());
                        // Two cycles: the same iterates to rounding, not only the same limit.
                        let tolerance = loose(precision, levels);
                        faults.extend(twins(&name, &cuda, &setup, tolerance, 2, &mut |s, p| cycle(s, plan, p).unwrap()).err());
                    }
                    let name = format!("sweeps {smoother:?} on {:?}", grid.nodes());
                    let mut sweeps = |s: &mut dyn Stages, p: &mut Profiler| {
                        s.sweep(0, 3, smoother, p).unwrap();
                        s.residual(0, p).unwrap();
                    };
                    faults
                        .extend(twins(&name, &cuda, &setup, if precision == Precision::F32 { 1e-5 } else { 1e-12 }, 3, &mut sweeps).err());
                    // Blocks of sweeps, of which a polynomial's go on with one another.
                    let mut blocks = |s: &mut dyn Stages, p: &mut Profiler| s.sweep_norms(5, smoother, p).unwrap();
                    let name = format!("blocks of {name}");
                    faults
                        .extend(twins(&name, &cuda, &setup, if precision == Precision::F32 { 1e-5 } else { 1e-12 }, 3, &mut blocks).err());
                }
                let name = format!("full multigrid of {levels} on {:?}", grid.nodes());
                let tolerance = loose(precision, levels);
                faults.extend(twins(&name, &cuda, &setup, tolerance, 1, &mut |s, p| full_multigrid(s, V11, 1, p).unwrap()).err());
            }
        }
    }
    check(&faults);
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn full_multigrid_agrees_on_planes() {
    let Some(cuda) = gpu() else { return };
    let mut faults = Vec::new();
    let pairs =
        [((D, D), (D, D)), ((N, N), (N, N)), ((P, P), (P, P)), ((D, N), (P, P)), ((N, D), (D, N)), ((P, P), (N, D)), ((N, N), (P, P))];
    for (nx, ny) in [(64, 64), (65, 130), (132, 96), (257, 129), (257, 257), (258, 300), (515, 132), (700, 514)] {
        for (x, y) in pairs {
            for (precision, tolerance) in [(Precision::F64, 1e-10), (Precision::Mixed, 1e-4), (Precision::F32, 1e-4)] {
                let setup = StageSetup::new(&plane(nx, ny, x, y, 1.0), usize::MAX, precision, true);
                let name = format!("full multigrid on {nx}x{ny} {x:?} {y:?}");
                faults.extend(twins(&name, &cuda, &setup, tolerance, 1, &mut |s, p| full_multigrid(s, V11, 1, p).unwrap()).err());
            }
        }
    }
    check(&faults);
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn the_bottom_is_solved_to_rounding() {
    let Some(cuda) = gpu() else { return };
    let mut faults = Vec::new();
    let mut grids = grids();
    for (x, y) in [((D, D), (D, D)), ((N, N), (N, N)), ((P, P), (P, P)), ((N, D), (P, P))] {
        grids.push(("257".into(), plane(257, 257, x, y, 1.0)));
        let axis = |(lo, hi)| Axis::new(65, 1.0, lo, hi);
        grids.push(("65".into(), Grid { axes: [axis(x), axis(y), axis(x)] }));
    }
    // Modes that are sines may be more; their least eigenvalue is below 1 here, so that what is left anywhere would grow.
    let sines = [(17, 17), (17, 1025), (1025, 33), (65, 129), (513, 257), (1025, 1025)];
    grids.extend(sines.map(|(nx, ny)| ("sines".into(), Grid::plane(Axis::new(nx, 40.0, D, D), Axis::new(ny, 50.0, D, D)))));
    for (name, grid) in grids {
        let most = if grid.dimensions() == 3 { 65 } else { 257 };
        let times = if name == "sines" { 40 } else { 1 };
        if grid.nodes().iter().any(|n| *n > most) && times == 1 {
            continue;
        }
        for precision in [Precision::F64, Precision::F32] {
            let setup = StageSetup::new(&grid, 0, precision, false);
            let mut stages = cuda::new(&setup, &cuda).unwrap();
            let outcome = run(stages.as_mut(), &grid, &mut |s, p| cycle(s, V11, p).unwrap(), times);
            let (first, last) = (outcome.norms[0].l2, outcome.norms[times].l2);
            // Backward stable products: rounding of u under the operator. Matrices of n columns add some sqrt(n) roundings.
            let eps = if precision == Precision::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
            let bound = 10.0 * eps * (operator::norm_bound(&grid) * outcome.norms[times].u_l2 + first);
            if last.partial_cmp(&bound) != Some(std::cmp::Ordering::Less) {
                faults.push(format!("{name} {:?} {precision}: {first:.2e} to {last:.2e}, not {bound:.2e}", grid.nodes()));
            }
        }
    }
    check(&faults);
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn cycles_with_the_bottom_as_chosen_are_no_slower() {
    let Some(cuda) = gpu() else { return };
    let mut faults = Vec::new();
    let pairs = [((D, D), (D, D)), ((N, N), (N, N)), ((P, P), (P, P)), ((N, D), (D, N))];
    for (nx, ny) in [(600, 300), (1025, 700), (1100, 1028)] {
        for (x, y) in pairs {
            let grid = plane(nx, ny, x, y, 1.0);
            for precision in [Precision::F64, Precision::Mixed] {
                let setup = StageSetup::new(&grid, usize::MAX, precision, false);
                let mut here = cuda::new(&setup, &cuda).unwrap();
                let mut there = cpu::new(&setup, &Cpu::new(1).unwrap()).unwrap();
                let [got, expected] =
                    [here.as_mut(), there.as_mut()].map(|s| run(s, &grid, &mut |s, p| cycle(s, V11, p).unwrap(), 6).norms);
                for (i, (a, b)) in got.iter().zip(&expected).enumerate() {
                    // An exact coarse solution makes a cycle better, up to how its errors happen to add up.
                    let bound = 1.1 * b.l2 + 1e-10 * expected[0].l2;
                    if a.l2.partial_cmp(&bound) != Some(std::cmp::Ordering::Less) {
                        faults.push(format!("{nx}x{ny} {x:?} {y:?} {precision}: {:.3e} for {:.3e} after {i}", a.l2, b.l2));
                    }
                }
            }
        }
    }
    check(&faults);
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn carried_residuals_are_true_but_for_rounding() {
    let Some(cuda) = gpu() else { return };
    let mut faults = Vec::new();
    for (nx, ny, x, y) in [(257, 300, (D, D), (D, D)), (320, 129, (P, P), (D, D)), (128, 130, (P, P), (P, P))] {
        let grid = plane(nx, ny, x, y, 1.0);
        for (precision, eps) in
            [(Precision::F32, f64::from(f32::EPSILON)), (Precision::Mixed, f64::from(f32::EPSILON)), (Precision::F64, f64::EPSILON)]
        {
            let setup = StageSetup::new(&grid, usize::MAX, precision, false);
            let mut stages = cuda::new(&setup, &cuda).unwrap();
            assert!(stages.carries(), "{nx} x {ny} {precision}");
            let carried = run(stages.as_mut(), &grid, &mut |s, p| carried_cycle(s, V11, p).unwrap(), 4).norms;
            let made = run(stages.as_mut(), &grid, &mut |s, p| cycle(s, V11, p).unwrap(), 4).norms;
            let made_first = made[0].l2;
            // Rounding of the residuals on the way, and of u as it is stored, in the norm of the operator.
            let stored = if precision == Precision::F32 { eps } else { f64::EPSILON };
            for (cycles, (carried, made)) in carried.iter().zip(&made).enumerate() {
                let bound = 2.0 * (eps * made_first + stored * operator::norm_bound(&grid) * made.u_l2);
                if (carried.l2 - made.l2).abs().partial_cmp(&bound) != Some(std::cmp::Ordering::Less) {
                    faults.push(format!(
                        "{nx} x {ny} {precision} after {cycles}: {:.3e} carried, {:.3e} made, bound {bound:.1e}",
                        carried.l2, made.l2
                    ));
                }
                // A rounding a half-sweep and addition at the most.
                if (carried.u_l2 - made.u_l2).abs() > 6.0 * cycles as f64 * eps * made.u_l2 {
                    faults
                        .push(format!("{nx} x {ny} {precision} after {cycles}: u of {:.9e} carried, {:.9e} made", carried.u_l2, made.u_l2));
                }
            }
            let last = carried[4];
            if last.l2 > 1e-3 * carried[0].l2 {
                faults.push(format!("{nx} x {ny} {precision}: {:.3e} after four cycles from {:.3e}", last.l2, carried[0].l2));
            }
        }
    }
    check(&faults);
    // Ends with a derivative have weights of their own.
    let stages = cuda::new(&StageSetup::new(&plane(129, 129, (N, D), (D, D), 1.0), usize::MAX, Precision::Mixed, false), &cuda).unwrap();
    assert!(!stages.carries());
}

/// A cycle that ends with the beginning of the next one, in every order with what may come between, leaves the iterates of
/// plain cycles: with graphs and without, on levels with even and odd numbers of intervals.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn cycles_that_begin_ahead_are_the_same_cycles() {
    let Some(cuda) = gpu() else { return };
    let mut faults = Vec::new();
    for (nx, ny, x, y) in [(257, 300, (D, D), (D, D)), (514, 131, (D, D), (D, D)), (320, 129, (P, P), (D, D)), (128, 256, (P, P), (P, P))] {
        let grid = plane(nx, ny, x, y, 0.7);
        for (precision, tolerance) in [(Precision::F64, 1e-11), (Precision::F32, 1e-4)] {
            let setup = StageSetup::new(&grid, usize::MAX, precision, true);
            let mut stages = cuda::new(&setup, &cuda).unwrap();
            let expected = run(stages.as_mut(), &grid, &mut |s, p| cycle(s, V11, p).unwrap(), 4);
            let (u, f) = system(&grid);
            let scale = expected.u.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
            let profiler = &mut Profiler::off();
            for (name, graphs, order) in [
                ("together", true, "aCCCc"),
                ("without graphs", false, "aCCCc"),
                ("begun later", true, "rcCCc"),
                ("made in between", true, "rCcCc"),
                ("ahead at once", true, "acccc"),
            ] {
                stages.load(&u, &f).unwrap();
                for step in order.chars() {
                    let mut body =
                        |s: &mut dyn Stages, p: &mut Profiler| if step == 'C' { carried_cycle(s, V11, p) } else { cycle(s, V11, p) };
                    match step {
                        'a' => stages.residual_descend(1, RED_BLACK, u.iter().all(|v| *v == 0.0), profiler).unwrap(),
                        'r' => stages.residual(0, profiler).unwrap(),
                        _ if graphs => stages.replay(&step.to_string(), profiler, &mut body).unwrap(),
                        _ => body(stages.as_mut(), profiler).unwrap(),
                    }
                }
                let (norms, got) = (stages.norms().unwrap(), stages.solution().unwrap());
                let error = got
                    .iter()
                    .zip(&expected.u)
                    .fold(0.0, |m: f64, (a, b)| if (a - b).is_nan() { f64::INFINITY } else { m.max((a - b).abs()) });
                let last = expected.norms[4];
                // Residual due to the rounding of u.
                let floor = tolerance * expected.norms[0].l2;
                if error > tolerance * scale
                    || (norms.l2 - last.l2).abs().partial_cmp(&(1e-3 * last.l2 + floor)) != Some(std::cmp::Ordering::Less)
                {
                    faults
                        .push(format!("{nx} x {ny} {precision} {name}: {error:.1e} of {scale:.1e}, {:.3e} for {:.3e}", norms.l2, last.l2));
                }
            }
            // Another smoothing than the one begun with: the beginning does not count.
            let other = CyclePlan { pre: 2, post: 2, ..V11 };
            stages.load(&u, &f).unwrap();
            stages.residual_descend(1, RED_BLACK, false, profiler).unwrap();
            let before = stages.norms().unwrap();
            cycle(stages.as_mut(), other, profiler).unwrap();
            let after = stages.norms().unwrap();
            if after.l2.partial_cmp(&(0.2 * before.l2)) != Some(std::cmp::Ordering::Less) {
                faults.push(format!(
                    "{nx} x {ny} {precision}: V(2,2) after the beginning of a V(1,1): {:.3e} of {:.3e}",
                    after.l2, before.l2
                ));
            }
        }
    }
    check(&faults);
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn replays_are_the_same_bit_by_bit() {
    let Some(cuda) = gpu() else { return };
    let grid = plane(700, 513, (D, N), (D, D), 1.0);
    let setup = StageSetup::new(&grid, usize::MAX, Precision::Mixed, true);
    let outcome = |graphs: bool| {
        let mut stages = cuda::new(&setup, &cuda).unwrap();
        run(
            stages.as_mut(),
            &grid,
            &mut |s, p| {
                let mut body = |s: &mut dyn Stages, p: &mut Profiler| cycle(s, V11, p);
                if graphs { s.replay("cycle", p, &mut body).unwrap() } else { body(s, p).unwrap() }
            },
            7,
        )
    };
    let (a, b, c) = (outcome(false), outcome(true), outcome(true));
    assert_eq!(a.norms, b.norms);
    assert_eq!(b.norms, c.norms);
    assert!(a.u.iter().zip(&b.u).all(|(v, w)| v.to_bits() == w.to_bits()));
}

#[test]
fn kernels_compile_for_every_architecture() {
    for precision in [Precision::F32, Precision::Mixed, Precision::F64] {
        testing::compiles(&cuda::recipe(precision));
    }
}
