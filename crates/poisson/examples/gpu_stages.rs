//! Times of the stages on a GPU, as replayed graphs: `gpu_stages [NODES [PRECISION [BOTTOM]]]`, a square of 32 x 32 with zero
//! edges; BOTTOM: the most nodes an axis of the level that is solved directly.

use std::time::Instant;

use zellige_engine::cuda::Cuda;
use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;
use zellige_poisson::grid::{Axis, Bc, Grid};
use zellige_poisson::problem::{Precision, StageSetup};
use zellige_poisson::stages::{Smoother, Stages, Start, cuda};
use zellige_poisson::step::{Cycle, CyclePlan, carried_cycle, cycle, full_multigrid};

/// Replays of a graph between two waits, and repetitions of that.
const REPLAYS: u32 = 20;
const REPEATS: usize = 7;

type Body<'a> = &'a mut dyn FnMut(&mut dyn Stages, &mut Profiler) -> Result<()>;

/// Prints the median time of `body` as a replayed graph; `bytes` per item are what it has to move.
fn time(stages: &mut dyn Stages, name: &str, items: f64, bytes: f64, body: Body<'_>) -> Result<()> {
    let mut off = Profiler::off();
    let mut times = Vec::new();
    for _ in 0..REPEATS {
        // Two: a graph for either copy of the fields is recorded before the clock starts.
        stages.replay(name, &mut off, body)?;
        stages.replay(name, &mut off, body)?;
        stages.norms()?;
        let start = Instant::now();
        for _ in 0..REPLAYS {
            stages.replay(name, &mut off, body)?;
        }
        stages.norms()?;
        times.push(start.elapsed().as_secs_f64() / f64::from(REPLAYS));
    }
    times.sort_by(f64::total_cmp);
    let t = times[REPEATS / 2];
    println!("{name:24} {:9.1} us {:7.2} TB/s", 1e6 * t, 1e-12 * bytes * items / t);
    Ok(())
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let n = arguments.next().and_then(|a| a.parse().ok()).unwrap_or(4097_usize).max(3);
    let (precision, inner, outer) = match arguments.next().as_deref() {
        Some("mixed") => (Precision::Mixed, 4.0, 8.0),
        Some("f64") => (Precision::F64, 8.0, 8.0),
        _ => (Precision::F32, 4.0, 4.0),
    };
    let bottom = arguments.next().and_then(|a| a.parse().ok());
    let length = 32.0;
    let axis = || Axis::new(n, length, Bc::Dirichlet, Bc::Dirichlet);
    let grid = Grid::plane(axis(), axis());
    let h = length / (n - 1) as f64;
    let charge = |x: f64, y: f64, at: f64| (-0.5 * ((x - at).powi(2) + (y - 16.0).powi(2))).exp();
    let at = |i: usize| ((i % n) as f64 * h, (i / n) as f64 * h);
    let f: Vec<f64> = (0..n * n).map(at).map(|(x, y)| charge(x, y, 12.0) - charge(x, y, 20.0)).collect();
    let (u, items) = (vec![0.0; n * n], (n * n) as f64);

    let cuda = Cuda::open(0)?;
    println!("{}, {n} x {n}, {precision}, copy {:.2} TB/s", cuda.name(), 1e-12 * cuda.bandwidth()?);
    let smoother = Smoother::RedBlack { omega: 1.15 };
    let plan = CyclePlan { cycle: Cycle::V, pre: 1, post: 1, smoother, adapts: false };
    let mut stages = cuda::with_bottom(&StageSetup::new(&grid, usize::MAX, precision, true), &cuda, bottom)?;
    let s = &mut *stages;
    println!("{} levels, {:.2} words of 8 bytes per unknown", s.levels(), s.memory() as f64 / 8.0 / items);
    s.load(&u, &f)?;
    s.residual(0, &mut Profiler::off())?;
    time(s, "cycle", items, 2.25 * inner + 3.0 * outer + 1.25 * inner, &mut |s, p| cycle(s, plan, p))?;
    time(s, "carried cycle", items, 2.25 * inner + 2.0 * outer + 1.25 * inner, &mut |s, p| carried_cycle(s, plan, p))?;
    time(s, "full multigrid", items, 0.0, &mut |s, p| full_multigrid(s, plan, 1, p))?;
    time(s, "residual", items, 2.0 * outer + inner, &mut |s, p| s.residual(0, p))?;
    time(s, "restrict f", items, 5.0 / 3.0 * outer, &mut |s, p| s.restrict_rhs(p))?;
    time(s, "coarse solve", 0.0, 0.0, &mut |s, p| s.coarse_solve(p))?;
    let mut size = items;
    for level in 0..s.levels() - 1 {
        // On the finest level a cycle in one precision begins and ends on the solution.
        if level > 0 || precision == Precision::Mixed {
            let (down, up) = (format!("descend {level}"), format!("ascend {level}"));
            time(s, &down, size, 1.25 * inner, &mut |s, p| s.descend(level, Start::Zero, 1, smoother, p))?;
            time(s, &up, size, 2.25 * inner, &mut |s, p| s.ascend(level, Start::Zero, 1, 1, smoother, p))?;
        }
        let name = format!("interpolate, begin {level}");
        time(s, &name, size, 2.25 * outer + 0.25 * inner, &mut |s, p| s.interpolate_ahead(level, 1, smoother, p))?;
        let name = format!("that, end {level}");
        let mut both = |s: &mut dyn Stages, p: &mut Profiler| {
            s.interpolate_ahead(level, 1, smoother, p)?;
            if level == 0 { s.ascend_correct(1, 1, smoother, p) } else { s.ascend_add(level, 1, 1, smoother, p) }
        };
        time(s, &name, size, 5.25 * outer + 0.5 * inner, &mut both)?;
        size /= 4.0;
    }
    time(s, "begin, zero", items, 2.0 * outer + 0.25 * inner, &mut |s, p| s.residual_ahead(1, smoother, true, p))?;
    time(s, "begin, norms", items, 3.0 * outer + 0.25 * inner, &mut |s, p| s.residual_ahead(1, smoother, false, p))?;
    time(s, "turn 0", items, 3.0 * outer + 0.5 * inner, &mut |s, p| s.ascend_carry(1, 1, smoother, p))?;
    time(s, "sweep", items, 3.0 * outer, &mut |s, p| s.sweep(0, 1, Smoother::RedBlack { omega: 1.5 }, p))?;
    time(s, "ten sweeps", 10.0 * items, 3.0 * outer, &mut |s, p| s.sweep(0, 10, Smoother::RedBlack { omega: 1.5 }, p))
}
