//! The end of a run: its summary, what is said about it, and the exit code.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use zellige_engine::device::host_memory_peak;
use zellige_engine::error::{Error, Result};
use zellige_engine::files;
use zellige_engine::profile::Profiler;
use zellige_engine::run::Summary;
use zellige_engine::sim::{Ending, Outcome, Plan, Solver};
use zellige_engine::times::{self, Phase};

use crate::args::RunArgs;
use crate::commands::run::named;
use crate::commands::tell::conclude;
use crate::report::{self, GIT_HASH, VERSION};
use crate::sink::{FieldNote, Output, SUMMARY};

/// Brings the files of a run to their end, writes its summary and tells how it ended; returns the exit code. `held` is what the run
/// has held: all that takes time comes before the times are told.
pub(crate) fn conclude_run<S: Solver>(
    result: Result<Summary>,
    origin: &str,
    plan: &Plan,
    folder: &Path,
    mut output: Output,
    mut profiler: Profiler,
    arguments: &RunArgs,
    held: impl Sized,
) -> Result<u8> {
    times::switch_to(Phase::End);
    // Rows are kept also when the run broke down or was interrupted.
    let finished = times::within(Phase::Output, || output.finish());
    if let Err(error @ Error::Numerics { .. }) = &result {
        broken_down::<S>(error, plan, folder)?;
    }
    if let (Err(_), Err(error)) = (&result, &finished) {
        report::warning(&format!("earlier results could not all be written either: {error}"));
    }
    let mut summary = result.map_err(|error| named(error, origin))?;
    finished?;
    if arguments.profile {
        files::atomic_write(folder.join("trace.json"), |out| profiler.write_trace(out))?;
    }
    drop((held, profiler));
    summary.times = times::elapsed();
    let verdict = summary.verdict();
    // A missed goal is not excused by a flag about checks.
    let excused = arguments.keep_going && summary.outcome.ending != Ending::Failed;
    let exit_code = if excused { 0 } else { summary.exit_code() };
    let (items, bytes) = (summary.cost_per_step.items, summary.cost_per_step.bytes);
    let whole = SummaryFile {
        version: VERSION,
        git_hash: GIT_HASH,
        exit_code,
        verdict: verdict.as_deref(),
        plan,
        items,
        bytes_per_item: bytes / items.max(1.0),
        gb_per_s: summary.bytes_per_second / 1e9,
        fraction_of_bandwidth: summary.bandwidth.map(|b| summary.bytes_per_second / b),
        measured_bandwidth: summary.bandwidth.map(|b| b / 1e9),
        peak_memory: host_memory_peak(),
        fields: output.fields(),
        run: &summary,
    };
    zellige_io::json::write(folder.join(SUMMARY), &whole)?;
    conclude::<S>(&summary, &output, folder, arguments.profile);
    // The last line, where nobody overlooks it.
    match verdict {
        Some(verdict) if excused => report::warning(&format!("{verdict}; exit code 0 nevertheless, because of --keep-going")),
        // Whoever drives the run finds it in the summary.
        Some(_) if report::is_quiet() => {}
        Some(verdict) => report::fault(&format!("{verdict}; do not trust the result (exit code {exit_code})")),
        None => {}
    }
    Ok(exit_code)
}

/// The summary of a run that broke down: scripts find here how it ended, as of any other.
fn broken_down<S: Solver>(error: &Error, plan: &Plan, folder: &Path) -> Result<()> {
    let outcome = Outcome { ending: Ending::Failed, status: "broken_down", message: error.to_string() };
    let summary = serde_json::json!({
        "version": VERSION,
        "git_hash": GIT_HASH,
        "exit_code": error.exit_code(),
        "verdict": outcome.message,
        "plan": plan,
        "solver": S::NAME,
        "outcome": outcome,
    });
    zellige_io::json::write(folder.join(SUMMARY), &summary)
}

/// The summary as it is written.
#[derive(Serialize)]
struct SummaryFile<'a> {
    version: &'a str,
    git_hash: &'a str,
    exit_code: u8,
    /// Reason why the result is not to be trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'a str>,
    plan: &'a Plan,
    // Under the names that `bench --json` uses.
    items: f64,
    bytes_per_item: f64,
    gb_per_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    fraction_of_bandwidth: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    measured_bandwidth: Option<f64>,
    /// Peak host memory of the process, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_memory: Option<u64>,
    /// Axes and units of the fields at the end, by their names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    fields: &'a BTreeMap<String, FieldNote>,
    #[serde(flatten)]
    run: &'a Summary,
}
