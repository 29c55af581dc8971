//! CPU time of the benchmark cases on one thread, from the system's own account: on a shared machine wall time says little.
//!
//! `cargo run --profile quick -p zellige-dsmc --features measure --example gas_speed [CASE]...`; Linux only. Prints the least and
//! the median of several parts, ns of CPU time per particle-step, and what the stages hold of memory for a particle. Beside
//! the cases of the bench `near` (`collide-100k` with partners that are near, 10 and 40 in a cell), `rotating` and `vibrating` (the
//! same box of nitrogen at 300 K and at 3000 K). `samples [SIDE]` runs steps with samples and without in turn, of one gas, SIDE
//! cells a side: the difference is what samples cost, whatever else the machine does meanwhile. `threads [CASE]` runs a case with
//! one thread and with two in turn: wall time, and the CPU time of the busiest thread with all that is done by the caller
//! alone, which other work does not lengthen as much.

use std::collections::HashMap;
use std::path::Path;

use zellige_dsmc::bench::{CASES, config};
use zellige_dsmc::config::{Config, SpeciesConfig};
use zellige_dsmc::flow::Flow;
use zellige_dsmc::model::Partner;
use zellige_engine::device::{Cpu, Device};
use zellige_engine::profile::Profiler;

/// Seconds that the threads of this process have run.
fn processor_seconds() -> f64 {
    seconds_of_threads().values().sum()
}

/// CPU seconds by thread.
fn seconds_of_threads() -> HashMap<String, f64> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let seconds = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(path.join("schedstat")).ok()?;
        Some(text.split_whitespace().next()?.parse::<f64>().ok()? * 1e-9)
    };
    tasks.filter_map(|t| Some((t.file_name().into_string().ok()?, seconds(t.path())?))).collect()
}

/// Steps with one thread and with two in turn.
fn threads(case: &str) {
    let config = config(&format!("dsmc/{case}")).expect("a case of the list");
    let own = std::process::id().to_string();
    let mut flows = [1, 2].map(|n| {
        let device = Device::Cpu(Cpu::new(n).expect("threads"));
        Flow::new(&config, Path::new(""), 1, &device).expect("memory")
    });
    let particles = flows[0].totals().expect("a sum").particles as f64;
    let part = (4e6 / particles).ceil() as u64;
    let mut go = |k: usize| {
        let (before, begin) = (seconds_of_threads(), std::time::Instant::now());
        (0..part).for_each(|_| flows[k].advance(&mut Profiler::off()).expect("a step"));
        let (wall, after) = (begin.elapsed().as_secs_f64(), seconds_of_threads());
        let spent = |name: &String| after[name] - before.get(name).copied().unwrap_or(0.0);
        let workers: Vec<f64> = after.keys().filter(|name| **name != own).map(spent).collect();
        let (busiest, all) = (workers.iter().copied().fold(0.0, f64::max), workers.iter().sum::<f64>());
        [wall, busiest + spent(&own), all + spent(&own), spent(&own)].map(|s| s * 1e9 / (particles * part as f64))
    };
    (0..10).for_each(|k| _ = go(k % 2));
    let turns: Vec<[[f64; 4]; 2]> = (0..40).map(|_| [go(0), go(1)]).collect();
    let median = |f: &dyn Fn(&[[f64; 4]; 2]) -> f64| {
        let mut all: Vec<f64> = turns.iter().map(f).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    for k in 0..2 {
        let [wall, longest, all, caller] = [0, 1, 2, 3].map(|c| median(&|t| t[k][c]));
        println!("{case}, {} threads: wall {wall:.2} ns; busiest thread and caller {longest:.2}, all {all:.2}, caller {caller:.3}", k + 1);
    }
    let (wall, longest) = (median(&|t| t[0][0] / t[1][0]), median(&|t| t[0][1] / t[1][1]));
    println!("{case}: two threads {wall:.2} times as fast by wall time, {longest:.2} by the busiest thread's time (medians of turns)");
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
        change("near", &|c| c.collisions.partner = Partner::NearestNeighbour),
        change("near, 40 in a cell", &|c| {
            (c.collisions.partner, c.particles_per_cell) = (Partner::NearestNeighbour, Some(40.0));
        }),
        change("rotating", &|c| nitrogen(c, 300.0)),
        change("vibrating", &|c| {
            nitrogen(c, 3000.0);
            c.species[0].z_vibration = Some(50.0);
            c.collisions.vibration = true;
        }),
    ]
}

/// Steps with samples and without in turn.
fn samples(side: usize) {
    let mut config = config("dsmc/sampled-1m").expect("a case of the list");
    (config.grid.cells, config.grid.size) = (vec![side; 2], vec![1e-5 * side as f64; 2]);
    let mut flow = Flow::new(&config, Path::new(""), 1, &Device::Cpu(Cpu::new(1).expect("a thread"))).expect("memory");
    let particles = flow.totals().expect("a sum").particles as f64;
    let part = (1e6 / particles).ceil() as u64;
    let mut step = 0;
    let mut go = |sample: bool| {
        let begin = processor_seconds();
        for _ in 0..part {
            flow.stages.advance(step, sample, &mut Profiler::off()).expect("a step");
            step += 1;
        }
        (processor_seconds() - begin) * 1e9 / (particles * part as f64)
    };
    (0..40).for_each(|k| _ = go(k % 2 == 0));
    let pairs: Vec<[f64; 2]> = (0..100).map(|_| [go(false), go(true)]).collect();
    let median = |f: &dyn Fn(&[f64; 2]) -> f64| {
        let mut all: Vec<f64> = pairs.iter().map(f).collect();
        all.sort_by(f64::total_cmp);
        [all[0], all[all.len() / 2]]
    };
    let ([plain, p], [sampled, s], [_, cost]) = (median(&|t| t[0]), median(&|t| t[1]), median(&|t| 100.0 * (t[1] / t[0] - 1.0)));
    println!(
        "{side}: plain least {plain:.2}, median {p:.2} ns; sampled {sampled:.2}, {s:.2}; least {:.1} %, median of pairs {cost:.1} % more",
        100.0 * (sampled / plain - 1.0)
    );
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if wanted.first().is_some_and(|w| w == "samples") {
        return samples(wanted.get(1).and_then(|w| w.parse().ok()).unwrap_or(316));
    }
    if wanted.first().is_some_and(|w| w == "threads") {
        return threads(wanted.get(1).map_or("collide-1m", String::as_str));
    }
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
            "{:20} least {:6.2} ns ({:5.1} M/s), median {:6.2} ns ({:5.1} M/s), {:.1} bytes",
            name,
            times[0],
            million(times[0]),
            times[12],
            million(times[12]),
            flow.stages.memory() as f64 / particles
        );
    }
}
