//! Timing of benchmark cases: the same set-up and steps as a run, without files, physics checked.

use std::time::Instant;

use serde::Serialize;

use crate::device::Device;
use crate::error::Result;
use crate::profile::{Profiler, StageRow, per_item};
use crate::record::Check;
use crate::sim::{Case, PeerTime, Solver};

/// The least number of timed repetitions.
const REPETITIONS: usize = 5;
/// Time limit of further repetitions: they are made while they and their resets, which can take much longer, take less than this
/// together, seconds.
pub const PATIENCE: f64 = 2.0;
/// But never more than this.
const MOST: usize = 200;

/// Seconds of the repetitions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Seconds {
    /// The one to quote.
    pub median: f64,
    /// The fastest.
    pub min: f64,
    /// The slowest.
    pub max: f64,
    /// Number of repetitions.
    pub repetitions: usize,
}

impl Seconds {
    /// Builds the statistics from at least one time, in seconds.
    fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        let n = times.len();
        let median = if n % 2 == 1 { times[n / 2] } else { 0.5 * (times[n / 2 - 1] + times[n / 2]) };
        Self { median, min: times[0], max: times[n - 1], repetitions: n }
    }
}

/// One case on one device, as `bench --json` writes it.
#[derive(Debug, Clone, Serialize)]
pub struct BenchResult {
    /// The case.
    pub name: String,
    /// Device.
    pub device: String,
    /// Threads of the host.
    pub threads: usize,
    /// Items (unknowns, particles, frames) that the figures are per.
    pub items: f64,
    /// Times of one repetition.
    pub seconds: Seconds,
    /// Steps of a repetition.
    pub steps: u64,
    /// Median time per item, nanoseconds.
    pub ns_per_item: f64,
    /// Bytes per item by the cost model.
    pub bytes_per_item: f64,
    /// Model traffic over median time, 1e9 bytes per second.
    pub gb_per_s: f64,
    /// Achieved bandwidth as a fraction of the measured copy bandwidth.
    pub fraction_of_bandwidth: f64,
    /// Copy bandwidth measured on the spot, 1e9 bytes per second.
    pub measured_bandwidth: f64,
    /// Memory held by the case on the device, bytes.
    pub memory: u64,
    /// Further figures by name.
    pub figures: serde_json::Map<String, serde_json::Value>,
    /// Checks of the physics of the timed work.
    pub checks: Vec<Check>,
    /// The stages of one more repetition, told apart; on a GPU without a recorded graph, so that their sum may be above the median.
    pub stages: Vec<StageRow>,
    /// Figures that other programs state for their stages.
    pub peer_times: &'static [PeerTime],
    /// Version of the program.
    pub version: String,
    /// Commit of the measured program.
    pub git_hash: String,
}

impl BenchResult {
    /// Returns true if every check passed; a case without checks has not.
    pub fn ok(&self) -> bool {
        !self.checks.is_empty() && self.checks.iter().all(|c| c.ok)
    }
}

/// Sets a case up, warms it up once and times it.
pub fn bench<S: Solver>(case: &Case, device: &Device, version: &str, git_hash: &str) -> Result<BenchResult> {
    bench_for::<S>(case, device, PATIENCE, version, git_hash)
}

/// Runs a benchmark as [`bench()`] does, with another time limit per case (`patience`, s).
pub fn bench_for<S: Solver>(case: &Case, device: &Device, patience: f64, version: &str, git_hash: &str) -> Result<BenchResult> {
    let mut work = S::bench(case, device)?;
    work.reset()?;
    work.run(&mut Profiler::off())?;
    let (mut times, first) = (Vec::new(), Instant::now());
    while times.len() < REPETITIONS || (first.elapsed().as_secs_f64() < patience && times.len() < MOST) {
        work.reset()?;
        let begun = Instant::now();
        work.run(&mut Profiler::off())?;
        times.push(begun.elapsed().as_secs_f64());
    }
    let (cost, seconds, bandwidth) = (work.cost(), Seconds::of(times), device.bandwidth()?);
    let (items, checks, figures) = (cost.items.max(1.0), work.checks()?, work.figures());
    let mut profiler = Profiler::new();
    profiler.set_bandwidth(bandwidth);
    work.reset()?;
    work.run(&mut profiler)?;
    let mut stages = profiler.table();
    per_item(&mut stages, cost.items);
    Ok(BenchResult {
        name: case.name.to_owned(),
        device: device.name().to_owned(),
        threads: device.threads(),
        items: cost.items,
        seconds,
        steps: work.steps(),
        ns_per_item: 1e9 * seconds.median / items,
        bytes_per_item: cost.bytes / items,
        gb_per_s: cost.bytes / seconds.median / 1e9,
        fraction_of_bandwidth: cost.bytes / seconds.median / bandwidth,
        measured_bandwidth: bandwidth / 1e9,
        memory: work.memory(),
        figures: figures.into_iter().map(|(k, v)| (k.to_owned(), v.into())).collect(),
        checks,
        stages,
        peer_times: work.peer_times(),
        version: version.to_owned(),
        git_hash: git_hash.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        let s = Seconds::of(vec![3.0, 1.0, 2.0, 10.0]);
        assert_eq!((s.median, s.min, s.max, s.repetitions), (2.5, 1.0, 10.0, 4));
        assert_eq!(Seconds::of(vec![3.0, 1.0, 2.0]).median, 2.0);
    }
}
