//! Processor time of the benchmark cases on one thread, from the system's own account: on a shared machine wall time says little.
//!
//! `cargo run --profile quick -p zellige-dsmc --example gas_speed [CASE]...`; Linux only. Prints the least and the median of several
//! parts, ns of processor time per particle-step. Beside the cases of the bench `near` (`collide-100k` with partners that are near, 10 and 40
//! in a cell), `rotating` and `vibrating` (the same box of nitrogen at 300 K and at 3000 K).

use std::path::Path;

use zellige_dsmc::bench::{CASES, config};
use zellige_dsmc::config::{Config, SpeciesConfig};
use zellige_dsmc::flow::Flow;
use zellige_dsmc::model::Partner;
use zellige_engine::device::{Cpu, Device};
use zellige_engine::profile::Profiler;

/// Seconds that the threads of this process have run.
fn processor_seconds() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let nanoseconds = |path: std::path::PathBuf| {
        std::fs::read_to_string(path.join("schedstat")).ok().and_then(|t| t.split_whitespace().next()?.parse::<f64>().ok()).unwrap_or(0.0)
    };
    tasks.map(|t| nanoseconds(t.path())).sum::<f64>() * 1e-9
}

/// Gases that are no case of the bench.
fn others() -> Vec<(&'static str, Config)> {
    let change = |name, change: &dyn Fn(&mut Config)| {
        let mut config = config("dsmc/collide-100k").expect("a case of the list");
        change(&mut config);
        (name, config)
    };
    let nitrogen = |config: &mut Config, temperature: f64| {
        config.species = vec![SpeciesConfig::named("N2")];
        config.gas.temperature = temperature;
        config.dt *= (273.15 / temperature).sqrt();
    };
    vec![
        change("near", &|c| c.collisions.partner = Partner::Near),
        change("near, 40 in a cell", &|c| {
            (c.collisions.partner, c.particles_per_cell) = (Partner::Near, Some(40.0));
        }),
        change("rotating", &|c| nitrogen(c, 300.0)),
        change("vibrating", &|c| {
            nitrogen(c, 3000.0);
            c.species[0].z_vibration = Some(50.0);
            c.collisions.vibration = true;
        }),
    ]
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let device = Device::Cpu(Cpu::new(1).expect("a thread"));
    let cases = CASES.iter().filter(|c| !c.gpu_only).map(|c| (c.name, config(c.name).expect("a case of the list")));
    for (name, config) in cases.chain(others()) {
        if !(wanted.is_empty() || wanted.iter().any(|w| name.ends_with(w.as_str()) || name.starts_with(w.as_str()))) {
            continue;
        }
        let mut flow = Flow::new(&config, Path::new(""), 1, &device).expect("memory");
        let particles = flow.totals().expect("a sum").particles as f64;
        let part = (2e6 / particles).ceil() as u64;
        let mut go = |steps| (0..steps).for_each(|_| flow.advance(&mut Profiler::off()).expect("a step"));
        go(30);
        let mut times: Vec<f64> = (0..25)
            .map(|_| {
                let begin = processor_seconds();
                go(part);
                (processor_seconds() - begin) * 1e9 / (particles * part as f64)
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let million = |ns: f64| 1e3 / ns;
        println!(
            "{:20} least {:6.2} ns ({:5.1} M/s), median {:6.2} ns ({:5.1} M/s)",
            name,
            times[0],
            million(times[0]),
            times[12],
            million(times[12])
        );
    }
}
