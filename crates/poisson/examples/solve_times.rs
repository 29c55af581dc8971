//! Whole solves as a program calls them, on one thread: `solve_times [NODESxNODES]..`, zero edges, a dipole with 1 % of noise.
//! Prints times of `solve`, of a `Plan` with its first right-hand side, and of further ones: the mean CPU time of some calls,
//! and the least wall time.

use std::time::Instant;

use zellige_engine::device::{Cpu, Device};
use zellige_engine::error::Result;
use zellige_poisson::{Options, Plan, Problem, solve};

/// Seconds of CPU time of the threads of this process so far; 0 where the system does not tell.
fn processor() -> f64 {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let of = |text: String| text.split(' ').next().and_then(|t| t.parse::<f64>().ok());
    threads.filter_map(|t| std::fs::read_to_string(t.path().join("schedstat")).ok().and_then(of)).sum::<f64>() * 1e-9
}

/// Mean CPU time and least wall time of `runs` calls, in milliseconds. The system's account of the former is too coarse for
/// one call.
fn times(runs: usize, mut work: impl FnMut() -> Result<()>) -> Result<[f64; 2]> {
    let (before, mut least) = (processor(), f64::INFINITY);
    for _ in 0..runs {
        let start = Instant::now();
        work()?;
        least = least.min(1e3 * start.elapsed().as_secs_f64());
    }
    Ok([1e3 * (processor() - before) / runs as f64, least])
}

fn case(nodes: [usize; 2], device: &Device) -> Result<()> {
    let count = nodes[0] * nodes[1];
    let runs = (50_000_000 / count).clamp(3, 500);
    let h = nodes.map(|n| 32.0 / (n - 1) as f64);
    let charge = |x: f64, y: f64, at: f64| (-0.5 * ((x - at).powi(2) + (y - 16.0).powi(2))).exp();
    let noise = |i: usize| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as f64 / 2_f64.powi(63) - 1.0;
    let at = |i: usize| ((i % nodes[0]) as f64 * h[0], (i / nodes[0]) as f64 * h[1]);
    let rho: Vec<f64> = (0..count).map(|i| charge(at(i).0, at(i).1, 12.0) - charge(at(i).0, at(i).1, 20.0) + 0.01 * noise(i)).collect();
    let (problem, options) = (Problem::plane(nodes, [32.0; 2], &rho[..]), Options::default());
    let alone = times(runs, || solve(&problem, &options, device).map(drop))?;
    let mut report = None;
    let first = times(runs, || {
        let mut plan = Plan::new(&problem, &options, device)?;
        report = Some(plan.solve(&rho)?.report);
        Ok(())
    })?;
    let (mut plan, mut u) = (Plan::new(&problem, &options, device)?, vec![0.0; count]);
    plan.solve_into(&rho, &mut u)?;
    let next = times(runs, || plan.solve_into(&rho, &mut u).map(drop))?;
    println!(
        "{:>11} nodes: solve {:.3} ms ({:.3} wall), plan and solve {:.3} ({:.3}), kept plan {:.3} ({:.3}); relative residual {:.1e}",
        format!("{} x {}", nodes[0], nodes[1]),
        alone[0],
        alone[1],
        first[0],
        first[1],
        next[0],
        next[1],
        report.map_or(f64::NAN, |r| r.relative_residual)
    );
    Ok(())
}

fn main() -> Result<()> {
    let device = Device::Cpu(Cpu::new(1)?);
    std::env::args().skip(1).try_for_each(|text| {
        let (m, n) = text.split_once('x').unwrap_or((&text, &text));
        case([m, n].map(|n| n.parse().unwrap_or(65)), &device)
    })
}
