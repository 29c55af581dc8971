//! Words about a run: its plan before it, and how it ended.

use std::collections::BTreeSet;
use std::path::Path;

use zellige_engine::device::Device;
use zellige_engine::profile::Table;
use zellige_engine::run::{PartRow, Summary};
use zellige_engine::sim::{Ending, Plan, Solver};
use zellige_engine::times::{Phase, Times};

use crate::report;
use crate::sink::Output;

/// The plan, and a warning where it cannot fit.
pub(super) fn show(plan: &Plan, item: &str, step: &str, device: &Device) {
    for (label, text) in &plan.lines {
        report::line(label, text);
    }
    let (memory, traffic) = (report::bytes(plan.memory as f64), report::bytes(plan.traffic as f64));
    let items = format!("{item}s");
    if plan.lines.iter().all(|(label, _)| *label != items) {
        report::line(&items, &report::count(plan.items));
    }
    report::line("memory", &format!("{memory}; traffic {traffic} {} {step}", report::article(step)));
    for text in &plan.warnings {
        report::warning(text);
    }
    if let Some(free) = device.memory_free().filter(|free| plan.memory > *free) {
        report::warning(&format!("{memory} are needed and {} are free on {}", report::bytes(free as f64), device.id()));
    }
}

/// Part of the wall time below which a time is not shown: all nine below it are less than 2 %.
const UNSHOWN: f64 = 0.002;

/// Times by name, and their sum.
pub(super) fn times_line(times: &Times, steps: &str) -> String {
    let wall = times.wall();
    let told = times.phases().filter(|(part, seconds)| *part == Phase::Steps || *seconds >= UNSHOWN * wall);
    let told = told.map(|(part, seconds)| match part {
        Phase::Steps => format!("{steps} {}", report::seconds(seconds)),
        part => format!("{} {}", part.name().replace('_', "-"), report::seconds(seconds)),
    });
    format!("{} = {} in all", told.collect::<Vec<_>>().join(" + "), report::seconds(wall))
}

/// Parts of a run, and the share of messages and waiting in the time from the first step to the last. None where there is one
/// part only.
fn parts_line(parts: &[PartRow]) -> Option<String> {
    let share = |row: &PartRow| 100.0 * row.exchange / row.seconds.max(1e-9);
    let longest = parts.iter().max_by(|a, b| share(a).total_cmp(&share(b)))?;
    let mean = parts.iter().map(share).sum::<f64>() / parts.len() as f64;
    Some(format!(
        "{}, which exchanged and waited for {mean:.1} % on average of the time from the first step to the last, part {} for {:.1} %",
        parts.len(),
        longest.part,
        share(longest)
    ))
}

/// Files named at the end of a run.
const SHOWN: usize = 24;

/// Status, times, stages, checks, files and what to type next.
pub(super) fn conclude<S: Solver>(summary: &Summary, output: &Output, folder: &Path, profile: bool) {
    let outcome = &summary.outcome;
    let status = outcome.status.replace('_', " ");
    match outcome.ending {
        Ending::Finished | Ending::Failed => report::line("status", &format!("{status}: {}", outcome.message)),
        Ending::Limited => report::warning(&format!("{status}: {}", outcome.message)),
    }
    report::line(
        "time",
        &times_line(&summary.times, &format!("{} {}{}", summary.steps, S::STEP, if summary.steps == 1 { "" } else { "s" })),
    );
    let share = summary.bandwidth.map(|b| {
        let percent = 100.0 * summary.bytes_per_second / b;
        format!(", {percent:.0} % of the {:.1} GB/s measured", b / 1e9)
    });
    report::line(
        "speed",
        &format!(
            "{} per {} and {}, {:.1} GB/s of model traffic{}",
            report::nanoseconds(summary.ns_per_item),
            S::ITEM,
            S::STEP,
            summary.bytes_per_second / 1e9,
            share.unwrap_or_default()
        ),
    );
    if let Some(text) = parts_line(&summary.parts) {
        report::line("parts", &text);
    }
    for check in &summary.checks {
        let verdict = if check.ok { "ok" } else { "NOT OK" };
        report::line("check", &format!("{check} {verdict}"));
    }
    report::say!("{}", Table(&summary.stages));
    let written = output.written();
    let mut names: Vec<_> = written.iter().filter_map(|p| p.file_name()).map(|n| n.to_string_lossy()).collect();
    // A file that was written anew on the way is one file.
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    // Dozens of fields with their errors would bury the rest.
    let more = if names.len() > SHOWN { format!(", and {} more", names.len() - SHOWN) } else { String::new() };
    let shown = names[..names.len().min(SHOWN)].join(", ");
    let trace = if profile { ", trace.json" } else { "" };
    report::line("files", &format!("{}: {shown}{more}, summary.json, resolved.toml{trace}", folder.display()));
    report::line("next", &format!("zellige view {}", folder.display()));
}
