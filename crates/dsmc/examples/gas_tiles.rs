//! Times steps of the benchmark cases on the first GPU with tiles of several sizes.
//!
//! `cargo run --profile quick -p zellige-dsmc --features measure --example gas_tiles -- CASE SIDE PARTICLES:THREADS:RESIDENT...`:
//! SIDE cells along x, so many particles in a tile, threads to a block, blocks on a multiprocessor. With `bench CASE...` the cases
//! as they are, checks too; with `file INPUT [STEPS]` an input of either form, in ten parts.

use std::path::Path;
use std::time::Instant;

use zellige_dsmc::flow::Flow;
use zellige_dsmc::stages::{Stages, cuda};
use zellige_dsmc::{Dsmc, bench, seed};
use zellige_engine::config::Source;
use zellige_engine::cuda::Cuda;
use zellige_engine::device::Device;
use zellige_engine::error::{Error, Result};
use zellige_engine::profile::Profiler;

/// Steps before any is timed, those of a repetition, and repetitions.
const STEPS: [u64; 3] = [40, 20, 5];

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|w| w == "bench") {
        return words[1..].iter().try_for_each(|name| whole(name));
    }
    if let [word, path, rest @ ..] = words.as_slice()
        && word == "file"
    {
        return file(path, rest.first().and_then(|n| n.parse().ok()));
    }
    let [case, side, tiles @ ..] = words.as_slice() else {
        println!("CASE SIDE PARTICLES:THREADS:RESIDENT...");
        return Ok(());
    };
    let Some(mut config) = bench::config(case) else {
        println!("there is no case `{case}`");
        return Ok(());
    };
    let side: usize = side.parse().unwrap_or(1000);
    let height = config.grid.cells[1] * side / config.grid.cells[0];
    config.dt *= if config.bodies.is_empty() { 1.0 } else { config.grid.cells[0] as f64 / side as f64 };
    if config.bodies.is_empty() {
        config.grid.size = vec![1e-5 * side as f64, 1e-5 * height as f64];
    }
    config.grid.cells = vec![side, height];
    let gpu = Cuda::open(0)?;
    let begin = Instant::now();
    let mut flow = Flow::new(&config, Path::new(""), 1, &Device::Cuda(gpu.clone()))?;
    println!("{case} {side} x {height}: set up in {:.2} s", begin.elapsed().as_secs_f64());
    let particles = flow.stages.particles()?;
    time("as chosen", &mut *flow.stages, case, true)?;
    let model = flow.model.clone();
    drop(flow);
    for tile in tiles {
        let numbers: Vec<f64> = tile.split(':').filter_map(|n| n.parse().ok()).collect();
        let [best, threads, resident] = numbers[..] else { continue };
        let mut stages = cuda::tuned(&model, &gpu, best, threads as u32, resident as u32)?;
        stages.insert(&particles)?;
        time(tile, &mut *stages, case, false)?;
    }
    Ok(())
}

/// An input as it stands, the steps of it or fewer, each tenth timed with everything that it does.
fn file(path: &str, steps: Option<u64>) -> Result<()> {
    let mut source = Source::read(path)?;
    seed::adopt(&mut source.value).map_err(|problems| Error::Input { origin: path.into(), problems })?;
    let config = source.typed::<Dsmc>()?.config;
    let begin = Instant::now();
    let folder = Path::new(path).parent().unwrap_or(Path::new("."));
    let mut flow = Flow::new(&config, folder, 1, &Device::Cuda(Cuda::open(0)?))?;
    let first = flow.totals()?;
    println!("{path}: {} particles, set up in {:.1} s", first.particles, begin.elapsed().as_secs_f64());
    let part = (steps.unwrap_or(config.steps).min(config.steps) / 10).max(1);
    for _ in 0..10 {
        let begin = Instant::now();
        for _ in 0..part {
            flow.advance(&mut Profiler::off())?;
        }
        flow.stages.wait()?;
        let (seconds, ledger) = (begin.elapsed().as_secs_f64() / part as f64, flow.ledger()?);
        let particles = (ledger.injected - ledger.removed) as f64;
        println!(
            "step {}: {particles} particles, {:.2} ms a step, {:.0} million particle-steps/s, {:.2} GB, samples {}",
            flow.step,
            1e3 * seconds,
            1e-6 * particles / seconds,
            1e-9 * flow.stages.memory() as f64,
            flow.samples.taken
        );
    }
    let (ledger, totals) = (flow.ledger()?, flow.totals()?);
    println!("missing or too many: {}; {ledger:?}", (ledger.injected - ledger.removed).abs_diff(totals.particles));
    Ok(())
}

/// A case with its checks.
fn whole(name: &str) -> Result<()> {
    let Some(case) = bench::CASES.iter().find(|c| c.name == name) else {
        println!("there is no case `{name}`");
        return Ok(());
    };
    let begin = Instant::now();
    let found = zellige_engine::bench::bench::<Dsmc>(case, &Device::Cuda(Cuda::open(0)?), "", "")?;
    let million = |seconds: f64| 1e-6 * found.items / seconds;
    println!(
        "{name}: median {:.0}, best {:.0} million particle-steps/s; {:.0} GB/s of {:.0}; {:.1} s in all; {:?}",
        million(found.seconds.median),
        million(found.seconds.min),
        found.gb_per_s,
        found.measured_bandwidth,
        begin.elapsed().as_secs_f64(),
        found.figures
    );
    found.checks.iter().for_each(|c| println!("    {} {:.3e} of {:.3e}: {}", c.name, c.value, c.limit, c.ok));
    Ok(())
}

fn time(name: &str, stages: &mut dyn Stages, case: &str, table: bool) -> Result<()> {
    let sample = case.starts_with("dsmc/sampled");
    let mut step = 0;
    let mut run = |stages: &mut dyn Stages, n: u64, profiler: &mut Profiler| -> Result<f64> {
        stages.wait()?;
        let begin = Instant::now();
        for _ in 0..n {
            stages.advance(step, sample, profiler)?;
            step += 1;
        }
        stages.wait()?;
        Ok(begin.elapsed().as_secs_f64() / n as f64)
    };
    run(stages, STEPS[0], &mut Profiler::off())?;
    let mut least = f64::INFINITY;
    for _ in 0..STEPS[2] {
        least = least.min(run(stages, STEPS[1], &mut Profiler::off())?);
    }
    let particles = stages.totals()?.particles as f64;
    let bytes = stages.memory() as f64 / particles;
    println!(
        "{name:>16}: {:.3} ms a step, {:.0} million particle-steps/s, {bytes:.1} bytes a particle",
        1e3 * least,
        1e-6 * particles / least
    );
    if table {
        let mut profiler = Profiler::new();
        run(stages, STEPS[1], &mut profiler)?;
        for row in profiler.table() {
            println!("{:>24}: {:.3} ms", row.name, 1e3 * row.total / row.calls as f64);
        }
    }
    Ok(())
}
