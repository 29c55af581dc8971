//! The sums behind the profile's table.

use serde::{Deserialize, Serialize};

use crate::sim::Cost;

/// Clock that timed a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// The host's clock.
    Host,
    /// Events on a GPU's stream.
    Device,
}

/// One line of the profile. Times in seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StageRow {
    /// The stage.
    pub name: &'static str,
    /// Clock that timed it.
    pub clock: Clock,
    /// Number of calls.
    pub calls: u64,
    /// Calls that were timed: of stages on a GPU in a long run not all ([`Profiler::next_step`](super::Profiler::next_step)). All
    /// times follow from them.
    pub timed: u64,
    /// Time of all calls, stages inside this one included.
    pub total: f64,
    /// Time of all calls without the stages inside by the same clock.
    pub own: f64,
    /// Share of `own` in the sum of `own` over all rows, per cent.
    pub percent: f64,
    /// `total / calls`.
    pub average: f64,
    /// The shortest call.
    pub min: f64,
    /// The longest call.
    pub max: f64,
    /// Bytes read and written by the cost model, all calls.
    pub bytes: f64,
    /// Floating-point operations by the cost model, all calls.
    pub flops: f64,
    /// `bytes / total` in 10^9 bytes/s, where the model gives bytes.
    pub gb_per_s: Option<f64>,
    /// `flops / total` in 10^9 operations/s, where the model gives flops.
    pub gflop_per_s: Option<f64>,
    /// `bytes / total` as a fraction of the measured copy bandwidth, where both are known.
    pub fraction: Option<f64>,
    /// `total` per item and step, nanoseconds, where the number of items is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ns_per_item: Option<f64>,
    /// `bytes` per item and step, where the number of items is known and the model gives bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_item: Option<f64>,
    /// `total` over all parts, where the run has several: all else is of the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<OfParts>,
}

/// Time of a stage over all parts of a run, seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OfParts {
    /// Time of the part that took longest.
    pub slowest: f64,
    /// Mean over the parts.
    pub mean: f64,
}

/// Fills in what a table of stages costs per item: `items` is the number of items times that of steps.
pub fn per_item(rows: &mut [StageRow], items: f64) {
    for row in rows.iter_mut().filter(|_| items > 0.0) {
        row.ns_per_item = Some(1e9 * row.total / items);
        row.bytes_per_item = Some(row.bytes / items).filter(|b| *b > 0.0);
    }
}

#[derive(Debug)]
struct Stage {
    name: &'static str,
    clock: Clock,
    calls: u64,
    /// Calls whose time was asked for, and those of them whose time is known.
    asked: u64,
    timed: u64,
    /// Time of the timed calls, and of stages inside them.
    total: f64,
    inside: f64,
    min: f64,
    max: f64,
    bytes: f64,
    flops: f64,
}

/// Sums by stage.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    stages: Vec<Stage>,
}

impl Ledger {
    /// The number of the stage, new if need be. The same name on host and device makes two stages.
    pub(super) fn stage(&mut self, name: &'static str, clock: Clock) -> usize {
        self.stages.iter().position(|s| s.name == name && s.clock == clock).unwrap_or_else(|| {
            let none = 0.0;
            self.stages.push(Stage {
                name,
                clock,
                calls: 0,
                asked: 0,
                timed: 0,
                total: none,
                inside: none,
                min: f64::INFINITY,
                max: none,
                bytes: none,
                flops: none,
            });
            self.stages.len() - 1
        })
    }

    pub(super) fn name(&self, stage: usize) -> &'static str {
        self.stages[stage].name
    }

    /// Asks for the time of a call, which is then for [`Ledger::add`]; false if the call is booked without one, since `enough` of
    /// this stage were asked for.
    pub(super) fn ask(&mut self, stage: usize, enough: Option<u64>) -> bool {
        let row = &mut self.stages[stage];
        let asks = enough.is_none_or(|enough| row.asked < enough);
        row.asked += u64::from(asks);
        asks
    }

    /// Books one call without its time.
    pub(super) fn count(&mut self, stage: usize, cost: Cost) {
        let row = &mut self.stages[stage];
        row.calls += 1;
        row.bytes += cost.bytes;
        row.flops += cost.flops;
    }

    /// Books one call. A stage inside itself counts once.
    pub(super) fn add(&mut self, stage: usize, parent: Option<usize>, seconds: f64, cost: Cost) {
        self.count(stage, cost);
        let row = &mut self.stages[stage];
        row.timed += 1;
        row.total += seconds;
        row.min = row.min.min(seconds);
        row.max = row.max.max(seconds);
        if let Some(parent) = parent {
            self.stages[parent].inside += seconds;
        }
    }

    pub(super) fn rows(&self, bandwidth: Option<f64>) -> Vec<StageRow> {
        let all_calls = |s: &Stage, of_timed: f64| of_timed * (s.calls as f64 / s.timed as f64);
        let known = || self.stages.iter().filter(|s| s.timed > 0);
        let own = |s: &Stage| all_calls(s, (s.total - s.inside).max(0.0));
        let all: f64 = known().map(own).sum();
        let per = |amount: f64, seconds: f64| (amount > 0.0 && seconds > 0.0).then(|| amount / seconds);
        let row = |s: &Stage| {
            let total = all_calls(s, s.total);
            StageRow {
                name: s.name,
                clock: s.clock,
                calls: s.calls,
                timed: s.timed,
                total,
                own: own(s),
                percent: if all > 0.0 { 100.0 * own(s) / all } else { 0.0 },
                average: s.total / s.timed as f64,
                min: s.min,
                max: s.max,
                bytes: s.bytes,
                flops: s.flops,
                gb_per_s: per(s.bytes, total).map(|v| v * 1e-9),
                gflop_per_s: per(s.flops, total).map(|v| v * 1e-9),
                fraction: per(s.bytes, total).zip(bandwidth).map(|(v, b)| v / b),
                ns_per_item: None,
                bytes_per_item: None,
                parts: None,
            }
        };
        // A stage that is open or whose events are pending has no call yet and no row.
        known().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_follow_from_what_was_booked() {
        let mut ledger = Ledger::default();
        let outer = ledger.stage("cycle", Clock::Device);
        let inner = ledger.stage("smooth", Clock::Device);
        let host = ledger.stage("smooth", Clock::Host);
        assert_eq!(ledger.stage("smooth", Clock::Device), inner);
        assert!(ledger.rows(None).is_empty());
        let cost = Cost { bytes: 3e9, flops: 1e9, items: 1.0 };
        ledger.add(inner, Some(outer), 1.0, cost);
        ledger.add(inner, Some(outer), 2.0, cost);
        ledger.add(outer, None, 4.0, Cost::default());
        ledger.add(host, None, 1.0, Cost::default());
        let rows = ledger.rows(Some(4e9));
        assert_eq!((rows[0].total, rows[0].own, rows[0].percent), (4.0, 1.0, 20.0));
        assert_eq!((rows[0].gb_per_s, rows[0].fraction, rows[0].gflop_per_s), (None, None, None));
        assert_eq!((rows[1].calls, rows[1].total, rows[1].average, rows[1].min, rows[1].max), (2, 3.0, 1.5, 1.0, 2.0));
        assert_eq!((rows[1].gb_per_s, rows[1].fraction, rows[1].percent), (Some(2.0), Some(0.5), 60.0));
        assert_eq!((rows[2].clock, rows[2].percent), (Clock::Host, 20.0));
        let mut rows = rows;
        per_item(&mut rows, 0.0);
        assert_eq!(rows[1].ns_per_item, None);
        per_item(&mut rows, 2e9);
        assert_eq!((rows[1].ns_per_item, rows[1].bytes_per_item), (Some(1.5), Some(3.0)));
        assert_eq!((rows[2].ns_per_item, rows[2].bytes_per_item), (Some(0.5), None));
    }

    #[test]
    fn totals_are_of_all_calls_where_some_are_timed() {
        let mut ledger = Ledger::default();
        let (outer, inner) = (ledger.stage("cycle", Clock::Device), ledger.stage("smooth", Clock::Device));
        let cost = Cost { bytes: 3e9, flops: 0.0, items: 1.0 };
        for call in 0..8 {
            let enough = if call % 4 == 0 { None } else { Some(1) };
            if ledger.ask(inner, enough) {
                assert!(ledger.ask(outer, enough));
                ledger.add(inner, Some(outer), 1.0, cost);
                ledger.add(outer, None, 4.0, Cost::default());
            } else {
                assert!(!ledger.ask(outer, enough));
                ledger.count(inner, cost);
                ledger.count(outer, Cost::default());
            }
        }
        let rows = ledger.rows(None);
        assert_eq!((rows[0].calls, rows[0].timed, rows[0].total, rows[0].own), (8, 2, 32.0, 24.0));
        assert_eq!((rows[1].total, rows[1].average, rows[1].percent, rows[1].gb_per_s), (8.0, 1.0, 25.0, Some(3.0)));
        // The first call of a stage is timed, whenever it comes.
        let rare = ledger.stage("shift", Clock::Device);
        assert!(ledger.ask(rare, Some(1)) && !ledger.ask(rare, Some(1)));
    }
}
