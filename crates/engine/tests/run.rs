//! The run loop with a solver of a few lines: a damped oscillator, whose closed form is known.

use std::fs;
use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::device::{Cpu, Device};
use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Check, Record, Row};
use zellige_engine::run::{self, Options, Progress, Sink};
use zellige_engine::schedule::Schedule;
use zellige_engine::sim::{Bench, Case, Clock, Cost, Ending, Environment, Outcome, Plan, Solver};

#[derive(Serialize, Deserialize, JsonSchema, Clone, PartialEq)]
struct Config {
    damping: f64,
    steps: u64,
    /// Breaks down at this step.
    poison: Option<u64>,
    /// Raises SIGTERM at this step.
    signal: Option<u64>,
    /// Sleeps this long per step.
    nap_ms: u64,
}

/// x'' + 2 g x' + x = 0 by its exact propagator.
struct Oscillator {
    config: Config,
    clock: Clock,
    state: [f64; 2],
}

const DT: f64 = 0.01;

impl Oscillator {
    fn exact(&self) -> f64 {
        let (g, t) = (self.config.damping, self.clock.step as f64 * DT);
        let w = (1.0 - g * g).sqrt();
        (-g * t).exp() * ((w * t).cos() + g / w * (w * t).sin())
    }
}

impl Solver for Oscillator {
    const NAME: &'static str = "oscillator";
    const STEP: &'static str = "step";
    const ITEM: &'static str = "oscillator";
    type Config = Config;

    fn check(_: &Config) -> Vec<Problem> {
        Vec::new()
    }
    fn plan(_: &Config, _: &Environment) -> Result<Plan> {
        Ok(Plan::default())
    }
    fn setup(config: &Config, _: &Environment) -> Result<Self> {
        Ok(Self { config: config.clone(), clock: Clock { step: 0, time: Some(0.0) }, state: [1.0, 0.0] })
    }
    fn step(&mut self, profiler: &mut Profiler) -> Result<()> {
        let g = self.config.damping;
        let w = (1.0 - g * g).sqrt();
        let (c, s, decay) = ((w * DT).cos(), (w * DT).sin(), (-g * DT).exp());
        let [x, v] = self.state;
        self.state = profiler.stage("push", Cost { bytes: 32.0, flops: 14.0, items: 1.0 }, || {
            [decay * (x * (c + g / w * s) + v * s / w), decay * (v * (c - g / w * s) - x * s / w)]
        });
        self.clock.step += 1;
        self.clock.time = Some(self.clock.step as f64 * DT);
        if self.config.poison == Some(self.clock.step) {
            self.state[0] = f64::NAN;
        }
        if self.config.signal == Some(self.clock.step) {
            // SAFETY: raising a signal that has a handler in this process.
            assert_eq!(unsafe { libc::raise(libc::SIGTERM) }, 0);
        }
        std::thread::sleep(Duration::from_millis(self.config.nap_ms));
        Ok(())
    }
    fn outcome(&self) -> Option<Outcome> {
        (self.clock.step >= self.config.steps).then(|| Outcome { ending: Ending::Finished, status: "done", message: String::new() })
    }
    fn clock(&self) -> Clock {
        self.clock
    }
    fn progress(&self) -> f64 {
        self.clock.step as f64 / self.config.steps as f64
    }
    fn row(&mut self) -> Result<Row> {
        let mut row = Row::default();
        row.push("x", "", self.state[0]);
        Ok(row)
    }
    fn records(&mut self) -> Result<Vec<Record>> {
        Ok(Vec::new())
    }
    fn checks(&mut self) -> Result<Vec<Check>> {
        Ok(vec![Check::at_most("error", (self.state[0] - self.exact()).abs(), 1e-12)])
    }
    fn save(&mut self, writer: &mut Writer) -> Result<()> {
        writer.u64("step", self.clock.step)?;
        writer.f64s("state", &self.state)
    }
    fn restore(&mut self, reader: &Reader) -> Result<()> {
        self.clock.step = reader.u64("step")?;
        self.clock.time = Some(self.clock.step as f64 * DT);
        reader.f64s_into("state", &mut self.state)
    }
    fn cost(&self) -> Cost {
        Cost { bytes: 32.0, flops: 14.0, items: 1.0 }
    }
    fn cases() -> &'static [Case] {
        &[]
    }
    fn bench(_: &Case, _: &Device) -> Result<Box<dyn Bench>> {
        unreachable!("the oscillator has no cases")
    }
}

#[derive(Default)]
struct Notes {
    rows: Vec<(u64, f64)>,
    records: Vec<(u64, bool)>,
    notices: Vec<String>,
    fraction: f64,
}

impl Sink for Notes {
    fn row(&mut self, clock: &Clock, row: &Row) -> Result<()> {
        self.rows.push((clock.step, row.get("x").unwrap()));
        Ok(())
    }
    fn progress(&mut self, progress: &Progress, _: &Row) {
        assert!(progress.fraction >= self.fraction);
        self.fraction = progress.fraction;
    }
    fn records(&mut self, clock: &Clock, _: Vec<Record>, last: bool) -> Result<()> {
        self.records.push((clock.step, last));
        Ok(())
    }
    fn notice(&mut self, text: &str) {
        self.notices.push(text.to_owned());
    }
}

fn config(steps: u64) -> Config {
    Config { damping: 0.1, steps, poison: None, signal: None, nap_ms: 0 }
}

fn go(config: &Config, options: &Options, notes: &mut Notes) -> Result<run::Summary> {
    let environment = Environment { device: Device::Cpu(Cpu::new(1)?), folder: ".".into(), seed: 1 };
    run::run::<Oscillator>(config, &environment, options, &mut Profiler::new(), notes)
}

fn interrupted_at(result: Result<run::Summary>) -> (&'static str, u64) {
    match result {
        Err(Error::Interrupted { reason, step, checkpoint: Some(path) }) => {
            assert!(path.exists());
            (reason, step)
        }
        other => panic!("expected an interrupt, got {other:?}"),
    }
}

/// Signals are the process's: the tests that listen to them take turns.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[test]
fn rows_and_records_come_on_schedule_and_at_the_end() {
    let _turn = TURN.lock();
    let folder = tempfile::tempdir().unwrap();
    let mut notes = Notes::default();
    let options = Options { rows: Schedule::Steps(40), records: Some(Schedule::Time(0.3)), ..Options::new(folder.path()) };
    let summary = go(&config(100), &options, &mut notes).unwrap();
    assert_eq!(notes.rows.iter().map(|r| r.0).collect::<Vec<_>>(), [40, 80, 100]);
    assert_eq!(notes.records, [(30, false), (60, false), (90, false), (100, true)]);
    assert_eq!((summary.steps, summary.exit_code(), notes.fraction), (100, 0, 1.0));
    assert!(summary.checks.iter().all(|c| c.ok), "{:?}", summary.checks);
    assert_eq!(summary.stages[0].calls, 100);
}

#[test]
fn a_signal_saves_first_and_the_resumed_run_ends_with_the_same_bits() {
    let _turn = TURN.lock();
    let folder = tempfile::tempdir().unwrap();
    let (mut whole, mut rest) = (Notes::default(), Notes::default());
    // The signal is part of the input, and of the whole run as well: there it comes after the end.
    let signalled = Config { signal: Some(57), ..config(100) };
    let at = interrupted_at(go(&signalled, &Options::new(folder.path()), &mut Notes::default()));
    assert_eq!(at, ("SIGTERM", 57));
    let resumed = Options { resume: Some(folder.path().to_owned()), ..Options::new(folder.path()) };
    let summary = go(&signalled, &resumed, &mut rest).unwrap();
    go(&config(100), &Options::new(folder.path()), &mut whole).unwrap();
    assert_eq!(summary.steps, 43);
    assert_eq!(rest.rows.last().unwrap().1.to_bits(), whole.rows.last().unwrap().1.to_bits());
    assert!(rest.notices[0].contains("57"));
}

#[test]
fn the_wall_time_limit_saves_and_stops() {
    let _turn = TURN.lock();
    let folder = tempfile::tempdir().unwrap();
    let slow = Config { nap_ms: 5, ..config(10_000) };
    let options = Options { wall_time: Some(Duration::from_millis(60)), ..Options::new(folder.path()) };
    let error = go(&slow, &options, &mut Notes::default()).unwrap_err();
    assert_eq!(error.exit_code(), 75);
    assert!(error.hint().unwrap().contains("--resume"));
    assert!(interrupted_at(Err(error)).1 < 1000);
}

#[test]
fn values_that_are_not_finite_end_the_run_at_once() {
    let _turn = TURN.lock();
    let folder = tempfile::tempdir().unwrap();
    let error = go(&Config { poison: Some(5), ..config(100) }, &Options::new(folder.path()), &mut Notes::default()).unwrap_err();
    assert_eq!(error.exit_code(), 3);
    assert!(error.to_string().contains("x at step 5"), "{error}");
}

#[test]
fn another_input_is_not_continued() {
    let _turn = TURN.lock();
    let folder = tempfile::tempdir().unwrap();
    let options = Options { checkpoint: Some(Schedule::Steps(10)), ..Options::new(folder.path()) };
    go(&config(20), &options, &mut Notes::default()).unwrap();
    let resumed = Options { resume: Some(folder.path().to_owned()), ..Options::new(folder.path()) };
    let error = go(&Config { damping: 0.2, ..config(20) }, &resumed, &mut Notes::default()).unwrap_err();
    assert!(error.to_string().contains("`oscillator.damping` was 0.1 and is 0.2"), "{error}");
}

#[test]
fn a_checkpoint_that_cannot_be_written_is_said_and_the_run_goes_on() {
    let _turn = TURN.lock();
    let folder = tempfile::tempdir().unwrap();
    // A file stands where the folder of checkpoints should be.
    fs::write(folder.path().join("checkpoint"), b"").unwrap();
    let options = Options { checkpoint: Some(Schedule::Steps(50)), ..Options::new(folder.path()) };
    let mut notes = Notes::default();
    go(&config(100), &options, &mut notes).unwrap();
    assert_eq!(notes.notices.len(), 2);
    assert!(run::checkpoint_path(Path::new("a")).ends_with("checkpoint/latest.zck"));
}
