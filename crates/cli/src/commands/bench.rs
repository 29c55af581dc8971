//! `zellige bench`: times the named cases and prints them as a table.

use zellige_engine::bench::{BenchResult, PATIENCE};
use zellige_engine::device::Device;
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::profile::Clock;
use zellige_engine::sim::Case;
use zellige_engine::text::did_you_mean;

use crate::args::BenchArgs;
use crate::commands::{print, ready, whole};
use crate::report;
use crate::solvers::{Entry, SOLVERS};

/// The command.
pub(crate) fn bench(arguments: &BenchArgs) -> Result<u8> {
    match arguments.cases.first().and_then(|word| word.split('/').next()) {
        Some("run") => return whole::runs(arguments),
        Some("sweep") => return whole::sweeps(arguments),
        _ => {}
    }
    let chosen = choose(&arguments.cases)?;
    if arguments.list {
        let lines: Vec<String> = chosen.iter().map(|(_, c)| format!("{:26} {}\n", c.name, c.about)).collect();
        return print(&lines.concat());
    }
    // One device for the whole table.
    let device = ready::open(&arguments.target, "auto", 0, None)?;
    let on_gpu = matches!(device, Device::Cuda(_));
    let copy = device.bandwidth()? / 1e9;
    report::heading(&format!("{} ({}, {} thread(s)), copy {copy:.1} GB/s", device.name(), device.id(), device.threads()));
    print(&format!("{}\n", header()))?;
    let mut results = Vec::new();
    for (solver, case) in chosen {
        if case.gpu_only && !on_gpu {
            report::note(&format!("`{}` is skipped: it needs a GPU", case.name));
            continue;
        }
        let result = solver.bench(case, &device, PATIENCE)?;
        print(&format!("{}\n{}", row(&result), stages(&result, on_gpu)))?;
        for check in result.checks.iter().filter(|c| !c.ok) {
            report::warning(&format!(
                "{}: {} is {:.3e}, above {:.3e}: the time is worth nothing",
                result.name, check.name, check.value, check.limit
            ));
        }
        results.push(result);
        // After each case, so that an interrupted bench keeps what it has.
        if let Some(path) = &arguments.json {
            zellige_io::json::write(path, &results)?;
        }
    }
    Ok(if results.iter().all(BenchResult::ok) { 0 } else { 3 })
}

/// The cases that have one of the words for a name, or whose names begin with it.
pub(super) fn choose(words: &[String]) -> Result<Vec<(&'static dyn Entry, &'static Case)>> {
    let all = || SOLVERS.iter().flat_map(|s| s.cases().iter().map(move |c| (*s, c)));
    for word in words {
        if !all().any(|(_, c)| c.name.starts_with(word.as_str())) {
            let names: Vec<_> = all().map(|(_, c)| c.name).collect();
            let mut problem = Problem::new("", format!("no case begins with `{word}`")).allowed(names.join(", "));
            problem.hint = did_you_mean(word, names);
            return Err(Error::input("command line", problem));
        }
    }
    // A whole name means that case alone, though others may begin so.
    let meant = |word: &str, name: &str| name == word || (name.starts_with(word) && !all().any(|(_, c)| c.name == word));
    Ok(all().filter(|(_, c)| words.is_empty() || words.iter().any(|w| meant(w, c.name))).collect())
}

fn header() -> String {
    format!(
        "{:26} {:>12} {:>10} {:>10} {:>9} {:>9} {:>8} {:>9} {:>7} {:>11}  checks, figures",
        "case", "median", "min", "max", "ns/item", "M/s", "B/item", "GB/s", "% of bw", "memory"
    )
}

/// The stages of a case, a line each under its row, and in the last column what others state for the same work.
fn stages(result: &BenchResult, on_gpu: bool) -> String {
    if result.stages.len() < 2 && result.peer_times.is_empty() {
        return String::new();
    }
    let items = result.items.max(1.0);
    let number = |value: Option<f64>| value.map_or("-".into(), |v| format!("{v:.1}"));
    let lines = result.stages.iter().map(|stage| {
        let peers = result.peer_times.iter().filter(|s| s.ours == stage.name).map(|s| {
            let percent = s.percent_of_bandwidth.map(|p| format!(" ({p} %)")).unwrap_or_default();
            format!("{}: {} {:.3}{percent}", s.by, s.stage, s.ns_per_item)
        });
        // On a GPU the host's clock sees launches and waiting, not the work.
        let name = if on_gpu && stage.clock == Clock::Host { format!("{} (host)", stage.name) } else { stage.name.to_owned() };
        let line = format!(
            "  {name:24} {:>12} {:>10} {:>10} {:>9.4} {:>9} {:>8} {:>9} {:>7} {:>11}  {}",
            report::seconds(stage.own),
            "",
            "",
            1e9 * stage.own / items,
            "",
            number((stage.bytes > 0.0).then_some(stage.bytes / items)),
            number(stage.gb_per_s),
            number(stage.fraction.map(|f| 100.0 * f)),
            "",
            peers.collect::<Vec<_>>().join("; ")
        );
        format!("{}\n", line.trim_end())
    });
    lines.collect()
}

fn row(result: &BenchResult) -> String {
    let seconds = &result.seconds;
    let steps = format!("steps {}", result.steps);
    let figures: Vec<_> = [steps].into_iter().chain(result.figures.iter().map(|(k, v)| format!("{k} {v}"))).collect();
    let passed = result.checks.iter().filter(|c| c.ok).count();
    format!(
        "{:26} {:>12} {:>10} {:>10} {:>9.4} {:>9.1} {:>8.1} {:>9.1} {:>7.1} {:>11}  {passed} of {} ok; {}",
        result.name,
        report::seconds(seconds.median),
        report::seconds(seconds.min),
        report::seconds(seconds.max),
        result.ns_per_item,
        1e3 / result.ns_per_item,
        result.bytes_per_item,
        result.gb_per_s,
        100.0 * result.fraction_of_bandwidth,
        report::bytes(result.memory as f64),
        result.checks.len(),
        figures.join(", ")
    )
}
