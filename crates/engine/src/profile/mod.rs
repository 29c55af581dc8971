//! The profiler: time, calls, bytes and flops of each named stage.
//!
//! A stage is timed on the host ([`Profiler::stage`]) or, where it only puts work on a GPU's stream, by a pair of events
//! around it ([`Profiler::stage_on`]). Events are read when they are done, never waited for before [`Profiler::table`].
//! While a graph is captured nothing is recorded: the stage that launches the graph is what is timed. Events keep kernels from
//! overlapping, so that in a run not every step has them ([`Profiler::next_step`]).
//!
//! Stages may lie in one another ([`Profiler::stage_with`]). `total` holds the inner stages, `own` does not; the shares
//! in per cent are of `own`, so they add up to 100.
//!
//! ```
//! use zellige_engine::profile::Profiler;
//! use zellige_engine::sim::Cost;
//! let mut profiler = Profiler::new();
//! let cost = Cost { bytes: 8e3, flops: 1e3, items: 1e3 };
//! let sum: f64 = profiler.stage("sum", cost, || (0..1000).map(f64::from).sum());
//! let rows = profiler.table();
//! assert_eq!((sum, rows[0].name, rows[0].calls), (499500.0, "sum", 1));
//! ```

mod ledger;
mod table;

use std::collections::VecDeque;
use std::io::{self, Write};
use std::time::Instant;

use self::ledger::Ledger;
pub use self::ledger::{Clock, OfParts, StageRow, per_item};
pub use self::table::Table;
use crate::cuda::{Cuda, Event};
use crate::device::Device;
use crate::error::Result;
use crate::sim::Cost;
use crate::trace::Trace;

/// Pending pairs of events beyond which finished ones are read during the work.
const PENDING: usize = 256;
/// Steps of which one has its stages on a GPU timed: no divisor of what the solvers do every few steps. With every seventh an
/// iteration of 45 us took 50.5 in the mean, so 47.7 (H200, 2026-11-29).
const EVERY: u64 = 31;
/// Calls of a stage on a GPU that are timed in any case.
const ENOUGH: u64 = 3;
/// Events that are there before the first stage.
const READY: usize = 16;

/// Collects the time of stages. [`Profiler::off`] collects nothing and costs a branch a stage.
#[derive(Debug, Default)]
pub struct Profiler(Option<Box<On>>);

#[derive(Debug)]
struct On {
    origin: Instant,
    bandwidth: Option<f64>,
    ledger: Ledger,
    step: u64,
    /// The stages that are open, as the ledger numbers them, from the outermost in, of those that are timed.
    open: Vec<(usize, Clock)>,
    pending: VecDeque<Pending>,
    spare: Vec<Event>,
    trace: Option<Trace>,
    /// Reference point of the trace: an event and the time of its completion, in seconds after the origin.
    anchor: Option<(Event, f64)>,
    lost: u64,
}

/// A stage on a GPU whose events are not yet read.
#[derive(Debug)]
struct Pending {
    stage: usize,
    parent: Option<usize>,
    cost: Cost,
    device: Cuda,
    begin: Event,
    end: Event,
}

impl Profiler {
    /// A profiler that records.
    pub fn new() -> Self {
        Self(Some(Box::new(On {
            origin: Instant::now(),
            bandwidth: None,
            ledger: Ledger::default(),
            step: 0,
            open: Vec::new(),
            pending: VecDeque::new(),
            spare: Vec::new(),
            trace: None,
            anchor: None,
            lost: 0,
        })))
    }

    /// A profiler that records nothing.
    pub fn off() -> Self {
        Self(None)
    }

    /// Keeps a timeline as well, for [`Profiler::write_trace`].
    #[must_use]
    pub fn with_trace(mut self) -> Self {
        if let Some(on) = &mut self.0 {
            on.trace = Some(Trace::default());
        }
        self
    }

    /// Sets the measured copy bandwidth, bytes/s, that [`StageRow::fraction`] is of.
    pub fn set_bandwidth(&mut self, bytes_per_second: f64) {
        if let Some(on) = &mut self.0 {
            on.bandwidth = Some(bytes_per_second);
        }
    }

    /// Makes the events of the first stages on a GPU, and records them, beforehand: the first time takes the driver longer than a
    /// small stage does.
    pub fn make_ready(&mut self, device: &Device) {
        if let (Some(on), Device::Cuda(cuda)) = (&mut self.0, device) {
            // One that cannot be had is lost, as those of steps are.
            let ready = || cuda.event().and_then(|event| cuda.record(&event).map(|()| event)).ok();
            on.spare.extend((0..READY).map_while(|_| ready()));
        }
    }

    /// Begins the next step of a run. Of stages on a GPU the first calls are timed and those of every 31st step, of a run with
    /// a timeline all: events between kernels take a fifth of a step of a quarter of a millisecond.
    pub fn next_step(&mut self) {
        if let Some(on) = &mut self.0 {
            on.step += 1;
        }
    }

    /// Returns true if the profiler records.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Times `work` on the host as one call of the stage `name`.
    pub fn stage<R>(&mut self, name: &'static str, cost: Cost, work: impl FnOnce() -> R) -> R {
        self.stage_with(name, cost, |_| work())
    }

    /// Times a stage as [`Profiler::stage`] does; `work` receives the profiler for the stages inside this one.
    pub fn stage_with<R>(&mut self, name: &'static str, cost: Cost, work: impl FnOnce(&mut Self) -> R) -> R {
        let open = self.begin(name);
        let result = work(self);
        if let Some(open) = open {
            self.end(open, name, cost);
        }
        result
    }

    /// Times what `work` puts on the GPU's stream as one call of the stage `name`. Does not wait.
    pub fn stage_on<R>(&mut self, cuda: &Cuda, name: &'static str, cost: Cost, work: impl FnOnce() -> R) -> R {
        self.stage_on_with(cuda, name, cost, |_| work())
    }

    /// Times a stage as [`Profiler::stage_on`] does; `work` receives the profiler for the stages inside this one.
    pub fn stage_on_with<R>(&mut self, cuda: &Cuda, name: &'static str, cost: Cost, work: impl FnOnce(&mut Self) -> R) -> R {
        let open = self.begin_on(cuda, name, cost);
        let result = work(self);
        if let Some(open) = open {
            self.end_on(open, cuda, cost);
        }
        result
    }

    // The rest is not generic over the work, and so compiled once.

    fn begin(&mut self, name: &'static str) -> Option<(usize, Option<usize>, Instant)> {
        let (stage, parent) = self.0.as_mut()?.enter(name, Clock::Host);
        Some((stage, parent, Instant::now()))
    }

    fn end(&mut self, (stage, parent, begin): (usize, Option<usize>, Instant), name: &'static str, cost: Cost) {
        let seconds = begin.elapsed().as_secs_f64();
        let Some(on) = &mut self.0 else { return };
        on.open.pop();
        on.ledger.add(stage, parent, seconds, cost);
        let start = begin.duration_since(on.origin).as_secs_f64();
        if let Some(trace) = &mut on.trace {
            trace.add("host", name, start, seconds);
        }
    }

    fn begin_on(&mut self, cuda: &Cuda, name: &'static str, cost: Cost) -> Option<(usize, Option<usize>, Option<Event>)> {
        let on = self.0.as_mut().filter(|_| !cuda.capturing())?;
        let stage = on.ledger.stage(name, Clock::Device);
        let due = on.step.is_multiple_of(EVERY) || on.trace.is_some();
        if !on.ledger.ask(stage, if due { None } else { Some(ENOUGH) }) {
            on.ledger.count(stage, cost);
            return None;
        }
        let (stage, parent) = on.enter(name, Clock::Device);
        Some((stage, parent, on.mark(cuda)))
    }

    fn end_on(&mut self, (stage, parent, begin): (usize, Option<usize>, Option<Event>), cuda: &Cuda, cost: Cost) {
        let Some(on) = &mut self.0 else { return };
        on.open.pop();
        match (begin, on.mark(cuda)) {
            (Some(begin), Some(end)) => {
                on.pending.push_back(Pending { stage, parent, cost, device: cuda.clone(), begin, end });
                if on.pending.len() > PENDING {
                    on.settle(false);
                }
            }
            _ => on.lost += 1,
        }
    }

    /// One row a stage in the order of first use. Waits for unfinished work on a GPU.
    pub fn table(&mut self) -> Vec<StageRow> {
        let Some(on) = &mut self.0 else { return Vec::new() };
        on.settle(true);
        on.ledger.rows(on.bandwidth)
    }

    /// The table as far as the GPU has come, without waiting for it.
    pub fn table_so_far(&mut self) -> Vec<StageRow> {
        let Some(on) = &mut self.0 else { return Vec::new() };
        on.settle(false);
        on.ledger.rows(on.bandwidth)
    }

    /// Calls whose time is not in the table, since the driver refused to time them.
    pub fn lost(&self) -> u64 {
        self.0.as_ref().map_or(0, |on| on.lost)
    }

    /// Forgets all stages, keeping bandwidth and origin.
    pub fn reset(&mut self) {
        if let Some(on) = &mut self.0 {
            on.settle(true);
            on.ledger = Ledger::default();
            on.lost = 0;
            if let Some(trace) = &mut on.trace {
                *trace = Trace::default();
            }
        }
    }

    /// Writes the timeline as Chrome trace JSON; empty without [`Profiler::with_trace`].
    pub fn write_trace(&mut self, out: &mut impl Write) -> io::Result<()> {
        if let Some(on) = &mut self.0 {
            on.settle(true);
            if let Some(trace) = &on.trace {
                return trace.write(out);
            }
        }
        Trace::default().write(out)
    }
}

impl On {
    /// Opens a stage: its number, and that of the nearest open one by the same clock.
    fn enter(&mut self, name: &'static str, clock: Clock) -> (usize, Option<usize>) {
        let stage = self.ledger.stage(name, clock);
        let parent = self.open.iter().rev().find(|(_, c)| *c == clock).map(|(s, _)| *s);
        self.open.push((stage, clock));
        (stage, parent)
    }

    /// An event recorded now, used again where one is spare.
    fn mark(&mut self, cuda: &Cuda) -> Option<Event> {
        if self.trace.is_some() && self.anchor.is_none() {
            // The one wait of a trace: it ties the clock of the device to that of the host.
            let event = cuda.event().ok()?;
            cuda.record(&event).and_then(|()| event.wait()).ok()?;
            self.anchor = Some((event, self.origin.elapsed().as_secs_f64()));
        }
        let event = match self.spare.iter().rposition(|e| e.belongs_to(cuda)) {
            Some(at) => self.spare.swap_remove(at),
            None => cuda.event().ok()?,
        };
        cuda.record(&event).ok()?;
        Some(event)
    }

    /// Reads the events that are done; with `wait`, all of them.
    fn settle(&mut self, wait: bool) {
        while let Some(first) = self.pending.front() {
            if !wait && matches!(first.end.done(), Ok(false)) {
                return;
            }
            let Some(pending) = self.pending.pop_front() else { return };
            if self.read(&pending).is_err() {
                self.lost += 1;
            }
            self.spare.extend([pending.begin, pending.end]);
        }
    }

    fn read(&mut self, pending: &Pending) -> Result<()> {
        pending.end.wait()?;
        let seconds = pending.end.seconds_since(&pending.begin)?;
        self.ledger.add(pending.stage, pending.parent, seconds, pending.cost);
        if let (Some(trace), Some((anchor, at))) = (&mut self.trace, &self.anchor)
            && anchor.belongs_to(&pending.device)
        {
            let start = at + pending.begin.seconds_since(anchor)?;
            trace.add(pending.device.name(), self.ledger.name(pending.stage), start, seconds);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: Cost = Cost { bytes: 1e9, flops: 2e9, items: 1e6 };

    fn spin(milliseconds: u64) {
        let begin = Instant::now();
        while begin.elapsed().as_millis() < u128::from(milliseconds) {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn an_inner_stage_is_taken_off_the_outer_one() {
        let mut profiler = Profiler::new();
        profiler.stage_with("outer", Cost::default(), |profiler| {
            spin(4);
            profiler.stage("inner", COST, || spin(2));
            profiler.stage("inner", COST, || spin(2));
        });
        let rows = profiler.table();
        assert_eq!(rows.iter().map(|r| (r.name, r.calls)).collect::<Vec<_>>(), [("outer", 1), ("inner", 2)]);
        assert!((rows[0].total - rows[0].own - rows[1].total).abs() < 1e-12);
        assert!(rows[0].total >= 8e-3 && rows[0].own >= 4e-3 && rows[1].min >= 2e-3);
        assert!((rows.iter().map(|r| r.percent).sum::<f64>() - 100.0).abs() < 1e-9);
        assert_eq!(rows[1].bytes, 2e9);
    }

    #[test]
    fn results_pass_through_and_off_records_nothing() {
        for mut profiler in [Profiler::new(), Profiler::off(), Profiler::default()] {
            let answer: std::result::Result<u32, String> = profiler.stage("a", COST, || Err("stop".into()));
            assert_eq!(answer, Err("stop".to_owned()));
            assert_eq!(profiler.table().len(), usize::from(profiler.is_on()));
            profiler.reset();
            assert!(profiler.table().is_empty());
        }
    }

    #[test]
    fn the_trace_has_what_the_table_has() {
        let mut profiler = Profiler::new().with_trace();
        profiler.stage_with("outer", COST, |p| p.stage("inner", COST, || spin(1)));
        let mut bytes = Vec::new();
        profiler.write_trace(&mut bytes).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let spans: Vec<_> = json["traceEvents"].as_array().unwrap().iter().filter(|e| e["ph"] == "X").cloned().collect();
        assert_eq!(spans.iter().map(|s| s["name"].as_str().unwrap()).collect::<Vec<_>>(), ["inner", "outer"]);
        let number = |span: usize, key: &str| spans[span][key].as_f64().unwrap();
        let (start, end) = (number(1, "ts"), number(1, "ts") + number(1, "dur"));
        let ts = number(0, "ts");
        assert!(start <= ts && ts + number(0, "dur") <= end + 2e-3, "the inner span lies in the outer one");
    }

    #[test]
    #[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
    fn events_time_the_device_and_rest_in_a_capture() {
        let Some(cuda) = crate::testing::gpu() else { return };
        let mut profiler = Profiler::new().with_trace();
        profiler.set_bandwidth(cuda.bandwidth().unwrap());
        let n = 1 << 26;
        let (from, mut to) = (cuda.alloc_zeros::<u32>(n, "from").unwrap(), cuda.alloc_zeros::<u32>(n, "to").unwrap());
        let cost = Cost { bytes: 8.0 * n as f64, flops: 0.0, items: n as f64 };
        for _ in 0..2 * PENDING {
            profiler.stage_on_with(&cuda, "outer", Cost::default(), |p| {
                p.stage_on(&cuda, "copy", cost, || cuda.copy(&from, 0, &mut to, 0, n)).unwrap();
            });
        }
        let mut graph = cuda.capture(|| profiler.stage_on(&cuda, "captured", cost, || cuda.copy(&from, 0, &mut to, 0, n))).unwrap();
        // SAFETY: both buffers are alive.
        profiler.stage_on(&cuda, "graph", cost, || unsafe { graph.launch() }).unwrap();
        let rows = profiler.table();
        assert_eq!(rows.iter().map(|r| r.name).collect::<Vec<_>>(), ["outer", "copy", "graph"]);
        assert_eq!((rows[1].calls, profiler.lost()), (2 * PENDING as u64, 0));
        // The copy that the bandwidth was measured with. The fastest of them, since tests beside this one use the GPU
        // too; half leaves room for them.
        assert!((0.5..1.3).contains(&(cost.bytes / rows[1].min / cuda.bandwidth().unwrap())), "{rows:?}");
        assert!(rows[0].own < rows[0].total && rows[1].total <= rows[0].total, "{rows:?}");
        let mut bytes = Vec::new();
        profiler.write_trace(&mut bytes).unwrap();
        assert!(serde_json::from_slice::<serde_json::Value>(&bytes).unwrap()["traceEvents"].as_array().unwrap().len() > 4 * PENDING);
    }
}
