//! Times of the direct solver: `direct_times cpu|gpu [THREADS] [NODESxNODES[xNODES][*SYSTEMS][f]]..
//! `, zero edges, a dipole with 1 % of noise; `f` for single precision. Prints the solve, the solve with its norms, the norms
//! alone, a sweep (medians, in brackets the least), and the residuals.

use std::time::Instant;

use zellige_engine::cuda::Cuda;
use zellige_engine::device::{Cpu, Device};
use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;
use zellige_poisson::direct::Direct;
use zellige_poisson::grid::{Axis, Bc, Grid};
use zellige_poisson::operator;
use zellige_poisson::problem::Precision;

/// Median and least of the times of `runs` calls after one that is not counted, in milliseconds.
fn times(runs: usize, mut work: impl FnMut() -> Result<()>) -> Result<[f64; 2]> {
    work()?;
    let mut times = Vec::new();
    for _ in 0..runs {
        let start = Instant::now();
        work()?;
        times.push(1e3 * start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok([times[runs / 2], times[0]])
}

fn case(text: &str, device: &Device) -> Result<()> {
    let single = text.ends_with('f');
    let (shape, systems) = text.trim_end_matches('f').split_once('*').unwrap_or((text.trim_end_matches('f'), "1"));
    let systems: usize = systems.parse().unwrap_or(1);
    let nodes: Vec<usize> = shape.split('x').map(|n| n.parse().unwrap_or(65)).collect();
    let axis = |d: usize| nodes.get(d).map_or_else(Axis::flat, |n| Axis::new(*n, 32.0, Bc::Dirichlet, Bc::Dirichlet));
    let grid = Grid { axes: [axis(0), axis(1), axis(2)] };
    let h = [0, 1, 2].map(|d| grid.axes[d].h);
    let charge = |x: f64, y: f64, at: f64| (-0.5 * ((x - at).powi(2) + (y - 16.0).powi(2))).exp();
    let at = |i: usize| ((i % nodes[0]) as f64 * h[0], (i / nodes[0] % nodes[1]) as f64 * h[1]);
    let noise = |i: usize| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as f64 / 2_f64.powi(63) - 1.0;
    let f: Vec<f64> = (0..grid.len()).map(|i| charge(at(i).0, at(i).1, 12.0) - charge(at(i).0, at(i).1, 20.0) + 0.01 * noise(i)).collect();
    let f = operator::unknowns_only(&grid, &f);
    let zero = vec![0.0; grid.len()];
    let reference = operator::residual_norms(&grid, &zero, &f).l2;
    let mut off = Profiler::off();
    let off = &mut off;
    let mut direct = Direct::batch(&grid, systems, if single { Precision::F32 } else { Precision::F64 }, device)?;
    for system in 0..systems {
        direct.load_system(system, &zero, &f)?;
    }
    let runs = if matches!(device, Device::Cpu(_)) { 9 } else { 25 };
    let solve = times(runs, || {
        direct.solve(off)?;
        direct.wait()
    })?;
    let mut norms = Vec::new();
    let checked = times(runs, || {
        norms = direct.solve_measured(off)?;
        Ok(())
    })?;
    let apart = times(runs, || direct.norms(off).map(drop))?;
    let mut residuals = vec![norms[systems - 1].l2 / reference];
    for _ in 0..3 {
        residuals.push(direct.polish(&vec![true; systems], off)?[systems - 1].l2 / reference);
    }
    let sweep = times(runs, || direct.polish(&vec![true; systems], off).map(drop))?;
    let unknowns = (grid.unknowns() * systems) as f64;
    let residuals: Vec<_> = residuals.iter().map(|r| format!("{r:.1e}")).collect();
    println!(
        "{text:16} solve {:9.3} ms ({:.3}; {:6.2} ns/unknown), with norms {:9.3} ({:.3}), norms {:8.3} ({:.3}), sweep {:8.3} ({:.3}); residuals {}; {:.1} B/unknown",
        solve[0],
        solve[1],
        1e6 * solve[0] / unknowns,
        checked[0],
        checked[1],
        apart[0],
        apart[1],
        sweep[0],
        sweep[1],
        residuals.join(" "),
        direct.memory() as f64 / unknowns
    );
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let gpu = arguments.first().is_some_and(|a| a == "gpu");
    let threads = arguments.get(1).and_then(|a| a.parse().ok()).unwrap_or(1);
    let device = if gpu { Device::Cuda(Cuda::open(0)?) } else { Device::Cpu(Cpu::new(threads)?) };
    arguments.iter().skip(2).try_for_each(|text| case(text, &device))
}
