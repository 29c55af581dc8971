//! The cases of `zellige bench pic` by themselves, on the first GPU: `bench CASE[:STEPS]...`, for a build of this crate alone.
//! Prints the median, the least and the most of the repetitions, of the first and of the second half, and what the case checks.

use std::time::Instant;

use zellige_engine::cuda::Cuda;
use zellige_engine::device::Device;
use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;
use zellige_pic::bench::{CASES, open};

fn main() -> Result<()> {
    let device = Device::Cuda(Cuda::open(0)?);
    for word in std::env::args().skip(1) {
        let (name, steps) = word.split_once(':').unwrap_or((&word, "2000"));
        let steps: f64 = steps.parse().expect("a number of steps");
        for case in CASES.iter().filter(|c| c.name.trim_start_matches("pic/").starts_with(name)) {
            let clock = Instant::now();
            let mut bench = open(case, &device)?;
            let setup = clock.elapsed().as_secs_f64();
            let figure =
                |bench: &dyn zellige_engine::sim::Bench, name: &str| bench.figures().iter().find(|f| f.0 == name).map_or(0.0, |f| f.1);
            let items = bench.cost().items;
            bench.run(&mut Profiler::off())?;
            let each = figure(bench.as_ref(), "steps");
            let mut times = Vec::new();
            while (times.len() as f64 + 1.0) * each < steps || times.len() < 5 {
                bench.reset()?;
                let clock = Instant::now();
                bench.run(&mut Profiler::off())?;
                times.push(clock.elapsed().as_secs_f64() * 1e9 / items);
            }
            let middle = |times: &[f64]| {
                let mut sorted = times.to_vec();
                sorted.sort_by(f64::total_cmp);
                (sorted[sorted.len() / 2], sorted[0], sorted[sorted.len() - 1])
            };
            let (first, second) = times.split_at(times.len() / 2);
            let ((m, low, high), (a, ..), (b, ..)) = (middle(&times), middle(first), middle(second));
            let checks: Vec<_> = bench.checks()?.iter().map(|c| format!("{c:?}")).collect();
            println!(
                "{}: {m:.4} ({low:.4} to {high:.4}; halves {a:.4}, {b:.4}) ns, {} repetitions, {} steps, {:.1} B, set up in {setup:.1} s; {}",
                case.name,
                times.len(),
                figure(bench.as_ref(), "steps"),
                figure(bench.as_ref(), "bytes_per_particle"),
                checks.join("; ")
            );
        }
    }
    Ok(())
}
