//! `zellige bench run/..` and `zellige bench sweep/..`: whole runs beside their steps alone, and a solver's plain case over sizes.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Instant;

use serde::Serialize;
use serde_json::Value;
use zellige_engine::bench::{BenchResult, PATIENCE};
use zellige_engine::device::Device;
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::files;
use zellige_engine::sim::{Case, WorkEstimate};

use crate::another_process;
use crate::args::BenchArgs;
use crate::commands::bench::choose;
use crate::commands::{print, ready};
use crate::report;
use crate::solvers::{Entry, SOLVERS};

/// A whole run of a case, beside its steps alone.
#[derive(Debug, Serialize)]
struct WholeRun {
    name: String,
    device: String,
    threads: usize,
    /// Time from the start of the process to its end, seconds.
    wall: f64,
    steps: u64,
    /// Seconds of a step of the run, and in the bench.
    step: f64,
    step_alone: f64,
    /// Parts of the wall time as the run names them, seconds.
    times: Value,
    ok: bool,
}

/// Whole runs of the cases that have an input: by a process of their own, with default diagnostics and output, into a folder that
/// is removed.
pub(super) fn runs(arguments: &BenchArgs) -> Result<u8> {
    let words: Vec<String> =
        arguments.cases.iter().map(|w| w.strip_prefix("run/").or(w.strip_prefix("run")).unwrap_or(w).to_owned()).collect();
    let chosen: Vec<_> = choose(&words)?.into_iter().filter(|(solver, case)| solver.input(case).is_some()).collect();
    if arguments.list {
        let lines: Vec<String> = chosen.iter().map(|(_, c)| format!("run/{}\n", c.name)).collect();
        return print(&lines.concat());
    }
    let device = open(arguments)?;
    let on_gpu = matches!(device, Device::Cuda(_));
    let head = ["whole run", "wall", "start", "steps", "diagnostics", "output", "end", "a step", "in bench", "ratio"];
    print(&line(&head.map(String::from), ""))?;
    let mut results = Vec::new();
    for (solver, case) in chosen {
        let name = format!("run/{}", case.name);
        if case.gpu_only && !on_gpu {
            report::note(&format!("`{name}` is skipped: it needs a GPU"));
            continue;
        }
        let Some(input) = solver.input(case) else { continue };
        let (wall, summary) = process(&input?, &device)?;
        // Only now: it would share the device with the run.
        let alone = solver.bench(case, &device, PATIENCE)?;
        let result = whole_run(&name, &device, wall, &summary, &alone);
        let time = |key: &str| report::seconds(result.times[key].as_f64().unwrap_or(0.0));
        let start = ["reading", "loading", "compiling", "set_up"].map(|key| result.times[key].as_f64().unwrap_or(0.0));
        let columns = [
            name,
            report::seconds(wall),
            report::seconds(start.iter().sum()),
            time("steps"),
            time("diagnostics"),
            time("output"),
            time("end"),
            report::seconds(result.step),
            report::seconds(result.step_alone),
            format!("{:.2}", result.step / result.step_alone),
        ];
        print(&line(&columns, if result.ok { "" } else { "a check failed" }))?;
        results.push(result);
        if let Some(path) = &arguments.json {
            zellige_io::json::write(path, &results)?;
        }
    }
    Ok(if results.iter().all(|r| r.ok) { 0 } else { 3 })
}

fn whole_run(name: &str, device: &Device, wall: f64, summary: &Value, alone: &BenchResult) -> WholeRun {
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    WholeRun {
        name: name.to_owned(),
        device: device.name().to_owned(),
        threads: device.threads(),
        wall,
        steps: summary["steps"].as_u64().unwrap_or(0),
        step: 1e-9 * number(&summary["ns_per_item"]) * number(&summary["items"]),
        step_alone: alone.seconds.median / alone.steps.max(1) as f64,
        times: summary["times"].clone(),
        ok: summary["exit_code"] == 0 && alone.ok(),
    }
}

/// Runs an input by a process of its own; its wall time and its summary.
fn process(input: &Value, device: &Device) -> Result<(f64, Value)> {
    let folder = Temporary::new()?;
    let (file, out) = (folder.0.join("input.json"), folder.0.join("out"));
    zellige_io::json::write(&file, input)?;
    let mut command = another_process()?;
    command.arg("run").arg(&file).arg("-o").arg(&out).args(["--device", &device.id(), "--keep-going"]);
    if let Device::Cpu(cpu) = device {
        command.args(["--threads", &cpu.threads().to_string()]);
    }
    let begun = Instant::now();
    let output = command.stdin(Stdio::null()).output().map_err(|e| Error::file("start", command.get_program(), e))?;
    let wall = begun.elapsed().as_secs_f64();
    let summary = zellige_io::json::read(out.join("summary.json")).map_err(|_| {
        let words = String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or("it says nothing").to_owned();
        Error::Device { device: device.id(), message: format!("the run ended without a result: {words}"), hint: None }
    })?;
    Ok((wall, summary))
}

/// A folder that is removed.
struct Temporary(PathBuf);

impl Temporary {
    fn new() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("zellige-bench-{}", std::process::id()));
        files::create_dir(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A case of a sweep is flagged if it is slower per item than its neighbours by more than this factor.
const CLIFF: f64 = 2.0;
/// Seconds for which a size is timed.
const SHORT: f64 = 0.2;
/// A size is left out where a step is forecast to take longer than this, seconds.
const LONGEST: f64 = 2.0;
/// Part of the memory that is free which a case may take.
const ROOM: f64 = 0.8;

/// Sizes of the solvers that are asked for, all without a name.
pub(super) fn sweeps(arguments: &BenchArgs) -> Result<u8> {
    let words: Vec<&str> = arguments.cases.iter().map(|w| w.strip_prefix("sweep/").unwrap_or("")).collect();
    let all = SOLVERS.iter().flat_map(|s| s.sweep().into_iter().map(move |series| (*s, series)));
    let wanted = |(solver, series): (&'static dyn Entry, Vec<Case>)| {
        let chosen: Vec<Case> = series.into_iter().filter(|c| words.iter().any(|w| c.name["sweep/".len()..].starts_with(w))).collect();
        (!chosen.is_empty()).then_some((solver, chosen))
    };
    let series: Vec<_> = all.filter_map(wanted).collect();
    if series.is_empty() {
        let names: Vec<_> = SOLVERS.iter().map(|s| format!("sweep/{}", s.name())).collect();
        let problem = Problem::new("", format!("no size begins with `{}`", arguments.cases.join(" ")));
        return Err(Error::input("command line", problem.allowed(names.join(", "))));
    }
    if arguments.list {
        let lines: Vec<String> = series.iter().flat_map(|(_, cases)| cases).map(|c| format!("{}\n", c.name)).collect();
        return print(&lines.concat());
    }
    let device = open(arguments)?;
    print(&line(&["size", "items", "median", "ns/item", "memory"].map(String::from), ""))?;
    let mut results = Vec::new();
    for (solver, cases) in series {
        let first = results.len();
        for case in &cases {
            if let Some(why) = left_out(solver, case, &device)? {
                report::note(&format!("`{}` is ignored: {why}", case.name));
                continue;
            }
            results.push(solver.bench(case, &device, SHORT)?);
            if let Some(path) = &arguments.json {
                zellige_io::json::write(path, &results)?;
            }
        }
        let done = &results[first..];
        let costs: Vec<f64> = done.iter().map(|r| r.ns_per_item).collect();
        for (i, result) in done.iter().enumerate() {
            let columns = [
                result.name.clone(),
                report::count(result.items as u64),
                report::seconds(result.seconds.median),
                format!("{:.4}", result.ns_per_item),
                report::bytes(result.memory as f64),
            ];
            let off = cliff(&costs, i).map(|times| format!("CLIFF: {times:.1} times its neighbours"));
            let failed = result.checks.iter().find(|c| !c.ok).map(|c| format!("NOT OK: {c}"));
            print(&line(&columns, &[off, failed].into_iter().flatten().collect::<Vec<_>>().join(", ")))?;
        }
    }
    Ok(if results.iter().all(BenchResult::ok) { 0 } else { 3 })
}

/// Returns the cost of an item relative to its neighbouring sizes, where it is too high. A cost that rises or falls by a factor
/// from size to size, for example where launches alone cost time, is no cliff: it is compared with the geometric mean of the
/// neighbours.
fn cliff(costs: &[f64], i: usize) -> Option<f64> {
    let beside = |i: usize| costs.get(i).copied().filter(|c| *c > 0.0);
    let neighbours = (beside(i.checked_sub(1)?)? * beside(i + 1)?).sqrt();
    Some(costs[i] / neighbours).filter(|times| *times > CLIFF)
}

/// Returns the reason why a size is not timed, if it is not.
fn left_out(solver: &'static dyn Entry, case: &Case, device: &Device) -> Result<Option<String>> {
    let Some(plan) = solver.plan(case, device).transpose()? else { return Ok(None) };
    let free = device.memory_free().unwrap_or_else(|| device.memory()) as f64;
    if plan.memory as f64 > ROOM * free {
        return Ok(Some(format!("it needs {} of {} free", report::bytes(plan.memory as f64), report::bytes(free))));
    }
    let step = plan.work.map(|work| match device {
        Device::Cpu(cpu) => WorkEstimate { steps: 1.0, ..work }.on_threads(cpu.threads()),
        Device::Cuda(_) => WorkEstimate { steps: 1.0, ..work }.on_gpu(),
    });
    Ok(step.filter(|s| *s > LONGEST).map(|s| format!("a step is forecast to take {}", report::seconds(s))))
}

fn open(arguments: &BenchArgs) -> Result<Device> {
    let device = ready::open(&arguments.target, "auto", 0, None)?;
    report::heading(&format!("{} ({}, {} thread(s))", device.name(), device.id(), device.threads()));
    Ok(device)
}

/// A line of a table: names to the left, the rest to the right.
fn line(columns: &[String], remark: &str) -> String {
    let [name, rest @ ..] = columns else { return String::new() };
    let text = rest.iter().fold(format!("{name:30}"), |line, column| format!("{line} {column:>12}"));
    format!("{}\n", format!("{text}  {remark}").trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cliff_is_what_neither_neighbour_explains() {
        // Launches alone: a quarter from size to size. Then a peak of three times, and an end that has one neighbour only.
        let costs = [64.0, 16.0, 4.0, 1.0, 3.0, 1.0, 1.1, 5.0];
        let found: Vec<usize> = (0..costs.len()).filter(|i| cliff(&costs, *i).is_some()).collect();
        assert_eq!(found, [4]);
        assert!((cliff(&costs, 4).unwrap() - 3.0).abs() < 1e-12);
    }

    #[test]
    fn sizes_and_cases_have_sound_inputs() {
        let device = Device::open(&zellige_engine::device::DeviceSpec::Cpu, 1).unwrap().0;
        for solver in SOLVERS {
            let series = solver.sweep();
            assert!(series.iter().all(|cases| cases.len() > 5), "{}", solver.name());
            let (least, named) = (series.iter().map(|cases| &cases[0]), solver.cases().iter());
            for case in least.chain(named) {
                let Some(input) = solver.input(case) else { continue };
                let source =
                    zellige_engine::config::Source::parse(&input.unwrap().to_string(), zellige_engine::config::Format::Json, case.name);
                assert_eq!(source.unwrap().solver(&[solver.name()]).unwrap(), solver.name());
            }
            for case in series.iter().map(|cases| &cases[0]) {
                let work = solver.plan(case, &device).unwrap().unwrap().work.unwrap();
                assert!(work.steps >= 1.0 && work.thread_seconds > 0.0 && work.bytes > 0.0, "{} {work:?}", case.name);
                // Simulated scans take their time.
                if work.thread_seconds < 0.05 {
                    assert!(solver.bench(case, &device, 0.0).unwrap().ok(), "{}", case.name);
                }
            }
        }
    }

    #[test]
    fn a_folder_of_a_run_does_not_stay() {
        let folder = Temporary::new().unwrap();
        let path = folder.0.clone();
        assert!(path.exists());
        drop(folder);
        assert!(!path.exists());
    }
}
