//! Times the benchmark cases on the CPU by CPU time as well, which a busy machine does not disturb:
//! `cargo run --profile quick -p zellige-ptycho --features measure --example ptycho_speed -- [THREADS] [CASE]...`

use std::time::Instant;

use zellige_engine::device::{Cpu, Device};
use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;
use zellige_engine::sim::Case;
use zellige_ptycho::bench::{CASES, open};

/// Seconds of this process on all cores, where the system tells.
fn processor() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    // User and system time, in ticks of a hundredth of a second.
    [11, 12].iter().filter_map(|i| fields.get(*i)?.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).peekable();
    let threads = arguments.peek().and_then(|a| a.parse().ok()).unwrap_or(1);
    let wanted: Vec<String> = arguments.filter(|a| a.parse::<usize>().is_err()).collect();
    let device = Device::Cpu(Cpu::new(threads)?);
    for case in CASES.iter().filter(|c: &&Case| wanted.is_empty() || wanted.iter().any(|w| c.name.contains(w.as_str()))) {
        if case.gpu_only {
            continue;
        }
        let mut work = open(case, &device)?;
        work.run(&mut Profiler::off())?;
        let (mut wall, mut best, mut all) = (f64::INFINITY, f64::INFINITY, 0.0);
        for _ in 0..5 {
            let (begun, used) = (Instant::now(), processor());
            work.run(&mut Profiler::off())?;
            let each = work.figures()[0].1;
            wall = wall.min(1e3 * begun.elapsed().as_secs_f64() / each);
            let now = 1e3 * (processor() - used) / each;
            best = best.min(now);
            all += now / 5.0;
        }
        let checks: Vec<String> = work.checks()?.iter().map(|c| format!("{} {:.3}", c.name, c.value)).collect();
        println!(
            "{} on {threads}: wall {wall:.1} ms, processor {best:.1} (mean {all:.1}) ms an iteration; {}",
            case.name,
            checks.join(", ")
        );
    }
    Ok(())
}
