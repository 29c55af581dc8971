//! Times of the stages on the CPU: `cpu_stages [NODES [THREADS [1]]]`, a square of 32 x 32 with zero edges;
//! 1: sweeps alone.

use std::time::Instant;

use zellige_engine::device::Cpu;
use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;
use zellige_poisson::grid::{Axis, Bc, Grid};
use zellige_poisson::problem::{Precision, StageSetup};
use zellige_poisson::stages::{Smoother, Stages, Start, cpu};
use zellige_poisson::step::{Cycle, CyclePlan, cycle, full_multigrid};

/// Prints the least time of `runs` calls, for `bytes` moved per item.
fn time(name: &str, runs: usize, items: f64, bytes: f64, mut work: impl FnMut() -> Result<()>) -> Result<()> {
    let mut least = f64::INFINITY;
    for _ in 0..runs {
        let start = Instant::now();
        work()?;
        least = least.min(start.elapsed().as_secs_f64());
    }
    println!("{name:24} {:9.2} ms {:7.2} ns/item {:7.2} GB/s", 1e3 * least, 1e9 * least / items, 1e-9 * bytes * items / least);
    Ok(())
}

/// Cycles until the residual has fallen by `tolerance`; gives their number.
fn solve(stages: &mut dyn Stages, plan: CyclePlan, full: bool, tolerance: f64) -> Result<u32> {
    let mut off = Profiler::off();
    stages.residual(0, &mut off)?;
    let first = stages.norms()?.l2;
    if full {
        full_multigrid(stages, plan, 1, &mut off)?;
    }
    let mut cycles = 0;
    while stages.norms()?.l2 > tolerance * first && cycles < 30 {
        cycle(stages, plan, &mut off)?;
        cycles += 1;
    }
    Ok(cycles)
}

/// The stages of a cycle and whole solves in mixed precision.
fn multigrid(grid: &Grid, cpu: &Cpu, f: &[f64], u: &[f64]) -> Result<()> {
    let (items, mut off) = (u.len() as f64, Profiler::off());
    let off = &mut off;
    let smoother = Smoother::RedBlack { omega: 1.15 };
    let plan = CyclePlan { cycle: Cycle::V, pre: 1, post: 1, smoother, adapts: false };
    let mut stages = cpu::new(&StageSetup::new(grid, usize::MAX, Precision::Mixed, true), cpu)?;
    let stages = &mut *stages;
    time("load", 3, items, 32.0, || stages.load(u, f))?;
    time("residual", 3, items, 20.0, || stages.residual(0, off))?;
    time("cycle", 3, items, 43.0, || cycle(stages, plan, off))?;
    time("descend 0", 3, items, 5.0, || stages.descend(0, Start::Zero, 1, smoother, off))?;
    time("ascend and correct 0", 3, items, 33.0, || stages.ascend_correct(1, 1, smoother, off))?;
    time("restrict f", 3, items, 13.3, || stages.restrict_rhs(off))?;
    time("interpolate 0", 3, items, 18.0, || stages.interpolate(0, 3, off))?;
    println!("memory {:.2} words of 8 bytes per unknown", stages.memory() as f64 / 8.0 / items);
    for (tolerance, full) in [(1e-6, false), (1e-6, true), (1e-10, false), (1e-10, true)] {
        let mut cycles = 0;
        time(&format!("solve {tolerance:e}{}", if full { " fmg" } else { "" }), 2, items, 0.0, || {
            stages.load(u, f)?;
            cycles = solve(stages, plan, full, tolerance)?;
            Ok(())
        })?;
        println!("{:24} {cycles} cycles, load included", "");
    }
    Ok(())
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse().unwrap_or(0_usize));
    let (n, threads) = (arguments.next().unwrap_or(4097).max(3), arguments.next().unwrap_or(1).max(1));
    let (length, cpu) = (32.0, Cpu::new(threads)?);
    let axis = || Axis::new(n, length, Bc::Dirichlet, Bc::Dirichlet);
    let grid = Grid::plane(axis(), axis());
    let h = length / (n - 1) as f64;
    let charge = |x: f64, y: f64, at: f64| (-0.5 * ((x - at).powi(2) + (y - 16.0).powi(2))).exp();
    let at = |i: usize| ((i % n) as f64 * h, (i / n) as f64 * h);
    let f: Vec<f64> = (0..n * n).map(at).map(|(x, y)| charge(x, y, 12.0) - charge(x, y, 20.0)).collect();
    let (u, items, mut off) = (vec![0.0; n * n], (n * n) as f64, Profiler::off());
    let off = &mut off;

    let (from, mut to) = (f.clone(), u.clone());
    time("copy", 5, items, 16.0, || {
        to.copy_from_slice(std::hint::black_box(&from));
        std::hint::black_box(&to);
        Ok(())
    })?;
    if arguments.next() != Some(1) {
        multigrid(&grid, &cpu, &f, &u)?;
    }
    let mut stages = cpu::new(&StageSetup::new(&grid, 0, Precision::F32, false), &cpu)?;
    stages.load(&u, &f)?;
    let sor = Smoother::RedBlack { omega: 1.9 };
    time("sor sweep, f32", 3, items, 12.0, || stages.sweep(0, 1, sor, off))?;
    time("sor 4 sweeps, f32", 3, 4.0 * items, 12.0, || stages.sweep(0, 4, sor, off))?;
    time("sor 10 sweeps", 9, 10.0 * items, 12.0, || stages.sweep(0, 10, sor, off))?;
    // What the benchmark sor-f32-4096 does.
    time("sor 10 sweeps, norms", 9, 10.0 * items, 12.0, || stages.sweep_norms(10, sor, off))
}
