//! The run loop with a solver whose closed form is known.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use zellige_engine::device::{Cpu, Device};
use zellige_engine::error::{Error, Result};
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Check, Record, Row};
use zellige_engine::run::{self, Options, Progress, Running, Sink};
use zellige_engine::schedule::Schedule;
use zellige_engine::signal;
use zellige_engine::sim::{Clock, Ending, Environment, Solver};
use zellige_engine::testing::toy::{Config, Toy};

use crate::TURN;

/// Occasion at which to raise SIGTERM.
#[derive(Default, Clone, Copy, PartialEq)]
enum Raise {
    #[default]
    Never,
    /// Raises it with the row of this step.
    Row(u64),
    /// While the records of this step are written; with the flag, the last ones.
    Records(u64, bool),
    /// Raises it between two files of the records of this step.
    Between(u64),
}

#[derive(Default)]
struct Notes {
    rows: Vec<(u64, f64)>,
    records: Vec<(u64, bool)>,
    rows_before_records: Vec<usize>,
    samples: Vec<u64>,
    notices: Vec<String>,
    fraction: f64,
    raise: Raise,
    nap: Duration,
    /// Records are files between which a reason to stop is heeded.
    heeds: bool,
    /// Records of these steps cannot be written.
    full: Vec<u64>,
    /// Rows handed over before each checkpoint, and whether an older one was there.
    saving: Vec<(usize, bool)>,
    /// Occasion of the first of them.
    first: Option<Instant>,
    checkpoint: PathBuf,
}

impl Notes {
    fn raise(&self, here: Raise) {
        if self.raise == here {
            // SAFETY: raising a signal that has a handler in this process.
            assert_eq!(unsafe { libc::raise(libc::SIGTERM) }, 0);
        }
    }
}

impl Sink for Notes {
    fn row(&mut self, clock: &Clock, row: &Row) -> Result<()> {
        self.rows.push((clock.step, row.get("position").unwrap()));
        self.raise(Raise::Row(clock.step));
        std::thread::sleep(self.nap);
        Ok(())
    }
    fn progress(&mut self, progress: &Progress, _: &Row) {
        assert!(progress.fraction > self.fraction, "of the same step twice");
        self.fraction = progress.fraction;
    }
    fn records(&mut self, clock: &Clock, records: Vec<Record>, last: bool) -> Result<()> {
        if records[0].name() == "velocity" {
            assert!(records.len() == 1 && !last);
            self.samples.push(clock.step);
            return Ok(());
        }
        self.raise(Raise::Records(clock.step, last));
        if self.full.contains(&clock.step) {
            return Err(Error::file("write", "position.csv", std::io::ErrorKind::StorageFull.into()));
        }
        if self.heeds {
            signal::interruption().check()?;
        }
        if self.raise == Raise::Between(clock.step) {
            self.raise(Raise::Between(clock.step));
            signal::interruption().check()?;
        }
        self.records.push((clock.step, last));
        self.rows_before_records.push(self.rows.len());
        Ok(())
    }
    fn saving(&mut self) -> Result<()> {
        self.saving.push((self.rows.len(), self.checkpoint.exists()));
        self.first.get_or_insert_with(Instant::now);
        Ok(())
    }
    fn notice(&mut self, text: &str) {
        self.notices.push(text.to_owned());
    }
}

fn config(steps: u64) -> Config {
    Config { steps, ..Config::default() }
}

fn go(config: &Config, options: &Options, notes: &mut Notes) -> Result<run::Summary> {
    // Data files lie with the results.
    let environment = Environment::new(Device::Cpu(Cpu::new(1)?), options.folder.clone(), 1);
    run::run::<Toy>(config, &environment, options, &mut Profiler::new(), notes)
}

/// A solver that looks for values that are no numbers now and then only: once it has found one, no further step is made.
#[test]
fn a_run_that_broke_down_makes_no_further_step() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config { poison_after: Some(7), ..config(100) };
    let options = Options { rows: Schedule::Steps(5), ..Options::new(folder.path()) };
    let environment = Environment::new(Device::Cpu(Cpu::new(1).unwrap()), options.folder.clone(), 1);
    let (mut notes, mut profiler) = (Notes::default(), Profiler::off());
    let mut running = Running::<Toy>::set_up(None, &config, &environment, &options).unwrap();
    running.start(&options, &mut notes).unwrap();
    let told = loop {
        if let Err(error) = running.make_step(None, &mut profiler, &mut notes) {
            break error.to_string();
        }
    };
    let at = running.solver().clock();
    assert!(told.contains("NaN") && at.step > 7, "{told}");
    for _ in 0..6 {
        let steps = [running.make_step(None, &mut profiler, &mut notes), running.advance(None, &mut profiler, &mut notes)];
        assert!(steps.into_iter().all(|step| step.is_err_and(|error| error.to_string() == told)));
        assert_eq!(running.solver().clock(), at);
    }
    // Nor does it take the place of a checkpoint that is sound.
    let saved = running.save(folder.path(), &mut notes);
    assert!(saved.is_err_and(|error| error.to_string() == told) && !folder.path().join("checkpoint").exists());
    // A change from outside may have mended it.
    running.change(|_| Ok(())).unwrap();
    assert!(running.save(folder.path(), &mut notes).is_ok());
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

#[test]
fn rows_and_records_come_on_schedule_and_at_the_end() {
    let _turn = TURN.lock();
    let folder = tempfile::tempdir().unwrap();
    let mut notes = Notes::default();
    let options = Options { rows: Schedule::Steps(40), records: Some(Schedule::Time(3.0)), ..Options::new(folder.path()) };
    let summary = go(&config(100), &options, &mut notes).unwrap();
    assert_eq!(notes.rows.iter().map(|r| r.0).collect::<Vec<_>>(), [40, 80, 100]);
    assert_eq!(notes.records, [(30, false), (60, false), (90, false), (100, true)]);
    assert_eq!((summary.steps, summary.exit_code(), notes.fraction), (100, 0, 1.0));
    assert!(summary.checks.iter().all(|c| c.ok), "{:?}", summary.checks);
    assert_eq!((summary.stages[0].name, summary.stages[0].calls), ("advance", 100));
}

#[test]
fn diagnostics_follow_their_own_schedule_from_the_start_to_the_end_and_over_a_restart() {
    let _turn = TURN.lock();
    let folder = tempfile::tempdir().unwrap();
    let sampled = Config { sample_every: Some(Schedule::Time(2.5)), ..config(100) };
    let mut notes = Notes::default();
    go(&sampled, &Options::new(folder.path()), &mut notes).unwrap();
    assert_eq!(notes.samples, [0, 25, 50, 75, 100]);
    let (mut first, mut rest) = (Notes { raise: Raise::Row(50), ..Notes::default() }, Notes::default());
    interrupted_at(go(&sampled, &Options::new(folder.path()), &mut first));
    go(&sampled, &Options { resume: Some(folder.path().to_owned()), ..Options::new(folder.path()) }, &mut rest).unwrap();
    assert_eq!((first.samples, rest.samples), (vec![0, 25, 50], vec![75, 100]));
}

#[test]
fn a_signal_saves_first_and_the_resumed_run_ends_with_the_same_bits() {
    let _turn = TURN.lock();
    let folder = tempfile::tempdir().unwrap();
    let (mut whole, mut rest) = (Notes::default(), Notes::default());
    let mut signalled = Notes { raise: Raise::Row(57), ..Notes::default() };
    assert_eq!(interrupted_at(go(&config(100), &Options::new(folder.path()), &mut signalled)), ("SIGTERM", 57));
    let resumed = Options { resume: Some(folder.path().to_owned()), ..Options::new(folder.path()) };
    let summary = go(&config(100), &resumed, &mut rest).unwrap();
    go(&config(100), &Options::new(folder.path()), &mut whole).unwrap();
    assert_eq!(summary.steps, 43);
    assert_eq!(rest.rows.last().unwrap().1.to_bits(), whole.rows.last().unwrap().1.to_bits());
    assert!(rest.notices[0].contains("57"));
}

#[test]
fn a_signal_during_output_lets_the_output_end_first() {
    let _turn = TURN.lock();
    let folder = tempfile::tempdir().unwrap();
    let options = Options { records: Some(Schedule::Steps(30)), ..Options::new(folder.path()) };
    let mut between = Notes { raise: Raise::Records(60, false), ..Notes::default() };
    assert_eq!(interrupted_at(go(&config(100), &options, &mut between)), ("SIGTERM", 60));
    assert_eq!(between.records, [(30, false), (60, false)]);
    // While the last results are written there is nothing left to interrupt: the run has ended.
    let mut at_the_end = Notes { raise: Raise::Records(100, true), ..Notes::default() };
    let summary = go(&config(100), &options, &mut at_the_end).unwrap();
    assert_eq!((summary.exit_code(), at_the_end.records.last()), (0, Some(&(100, true))));
}

#[test]
fn the_wall_time_limit_saves_and_stops() {
    let _turn = TURN.lock();
    let folder = tempfile::tempdir().unwrap();
    let options = Options { wall_time: Some(Duration::from_millis(60)), ..Options::new(folder.path()) };
    let mut slow = Notes { nap: Duration::from_millis(5), ..Notes::default() };
    let error = go(&config(10_000), &options, &mut slow).unwrap_err();
    assert_eq!(error.exit_code(), 75);
    assert!(error.hint().unwrap().contains("--resume"));
    assert!(interrupted_at(Err(error)).1 < 1000);
}

/// Jobs whose start takes all of their time: each makes a step, or writes what the one before owed.
#[test]
fn a_chain_of_jobs_comes_to_its_end_whatever_their_limit() {
    let _turn = TURN.lock();
    let folder = tempfile::tempdir().unwrap();
    let options = |resume: bool| Options {
        wall_time: Some(Duration::from_nanos(1)),
        records: Some(Schedule::Steps(2)),
        resume: resume.then(|| folder.path().to_owned()),
        ..Options::new(folder.path())
    };
    let (mut rows, mut records) = (Vec::new(), Vec::new());
    for job in 0..6 {
        let mut notes = Notes { heeds: true, ..Notes::default() };
        let done = go(&config(5), &options(job > 0), &mut notes);
        // The last one has nothing to make any more.
        assert_eq!(notes.notices.iter().any(|n| n.contains("has passed at the start")), job < 5, "{:?}", notes.notices);
        rows.extend(notes.rows.iter().map(|row| row.0));
        records.extend(notes.records);
        match job {
            // Results of the end are begun, and given up.
            0..5 => assert_eq!(interrupted_at(done), ("the wall-time limit", job + 1)),
            _ => assert_eq!(done.unwrap().exit_code(), 0),
        }
    }
    assert_eq!((rows, records), ((1..=5).collect(), vec![(2, false), (4, false), (5, true)]));
    // A limit beyond all clocks is none.
    let long = Options { wall_time: Some(Duration::MAX), ..Options::new(folder.path()) };
    go(&config(5), &long, &mut Notes::default()).unwrap();
}

#[test]
fn values_that_are_not_finite_end_the_run_at_once() {
    let _turn = TURN.lock();
    let folder = tempfile::tempdir().unwrap();
    let poisoned = Config { poison_after: Some(4), ..config(100) };
    let error = go(&poisoned, &Options::new(folder.path()), &mut Notes::default()).unwrap_err();
    assert_eq!(error.exit_code(), 3);
    assert!(error.to_string().contains("position at step 5"), "{error}");
}

/// A device may be at work on the next step already.
#[test]
fn rows_that_wait_are_the_same_and_come_before_anything_else_looks() {
    let _turn = TURN.lock();
    let folder = tempfile::tempdir().unwrap();
    let options = |rows: u64, records| Options {
        rows: Schedule::Steps(rows),
        records: Some(Schedule::Steps(records)),
        checkpoint: Some(Schedule::Steps(25)),
        ..Options::new(folder.path())
    };
    for (rows, records) in [(1, 10), (7, 14), (7, 3), (1, 1)] {
        let told = |rows_wait| {
            let mut notes = Notes::default();
            let summary = go(&Config { rows_wait, ..config(100) }, &options(rows, records), &mut notes).unwrap();
            (notes.rows, notes.records, notes.rows_before_records, notes.saving, summary.row)
        };
        assert_eq!(told(true), told(false), "rows every {rows}, records every {records}");
    }
    // The step that finds no row for the one before: that one is missing.
    let mut notes = Notes::default();
    let broken = Config { break_after: Some(50), rows_wait: true, ..config(100) };
    go(&broken, &Options { rows: Schedule::Steps(40), ..Options::new(folder.path()) }, &mut notes).unwrap_err();
    assert_eq!(notes.rows.iter().map(|r| r.0).collect::<Vec<_>>(), [40, 42, 43, 44, 45, 46, 47, 48, 49]);
    assert!(notes.notices.iter().any(|n| n.contains("stops after step 49")), "{:?}", notes.notices);
    // A value that is not finite is found with the row, one step later, and named by its own step.
    let poisoned = Config { poison_after: Some(4), rows_wait: true, ..config(100) };
    let error = go(&poisoned, &Options::new(folder.path()), &mut Notes::default()).unwrap_err();
    assert!(error.to_string().contains("position at step 5"), "{error}");
}

/// The rows that did not fall due are those that tell what grew.
#[test]
fn a_run_that_breaks_down_keeps_its_last_rows_and_says_so() {
    let _turn = TURN.lock();
    let folder = tempfile::tempdir().unwrap();
    let options = Options { rows: Schedule::Steps(40), ..Options::new(folder.path()) };
    for broken in [Config { poison_after: Some(50), ..config(100) }, Config { break_after: Some(50), ..config(100) }] {
        let mut notes = Notes::default();
        assert_eq!(go(&broken, &options, &mut notes).unwrap_err().exit_code(), 3);
        assert_eq!(notes.rows.iter().map(|r| r.0).collect::<Vec<_>>(), [40, 43, 44, 45, 46, 47, 48, 49, 50]);
        assert!(notes.notices.iter().any(|n| n.contains("stops after step 50")), "{:?}", notes.notices);
    }
    // A row that the sink has does not come twice.
    let options = Options { rows: Schedule::Steps(48), ..Options::new(folder.path()) };
    let mut notes = Notes::default();
    go(&Config { break_after: Some(50), ..config(100) }, &options, &mut notes).unwrap_err();
    assert_eq!(notes.rows.iter().map(|r| r.0).collect::<Vec<_>>(), [48, 49, 50]);
}

#[test]
fn a_check_that_fails_is_told_with_its_figures_and_ends_in_exit_code_3() {
    let _turn = TURN.lock();
    let folder = tempfile::tempdir().unwrap();
    let run = |bound| go(&Config { bound, ..config(100) }, &Options::new(folder.path()), &mut Notes::default()).unwrap();
    assert_eq!((run(1.0).exit_code(), run(1.0).verdict()), (0, None));
    let mut failed = run(1e-9);
    let check = failed.checks[0].clone();
    let words = format!("error against the closed form: {:.3e} (at most {:.3e})", check.value, check.limit);
    assert_eq!((failed.exit_code(), failed.verdict()), (3, Some(format!("a check failed: {words}"))));
    // Of several, those that failed; one that is no number failed too.
    failed.checks.extend([Check::at_most("fine", 1.0, 2.0), Check::at_most("lost", f64::NAN, 2.0)]);
    assert_eq!(failed.verdict(), Some(format!("2 checks failed: {words}; lost: NaN (at most 2.000e0)")));
    failed.outcome.ending = Ending::Failed;
    let verdict = failed.verdict().unwrap();
    assert!(verdict.starts_with("the goal was missed (finished: ") && verdict.contains(", and 2 checks failed: "), "{verdict}");
}

/// A step of minutes is no reason to be deaf: it gives way, and what it has done is not done again.
#[test]
fn a_step_that_gives_way_is_saved_where_it_is_and_gone_on_with() {
    let _turn = TURN.lock();
    let folder = tempfile::tempdir().unwrap();
    let (mut first, mut rest, mut whole) = (Notes::default(), Notes::default(), Notes::default());
    let lingering = Config { linger_after: Some(20), ..config(30) };
    let options = Options { wall_time: Some(Duration::from_millis(50)), ..Options::new(folder.path()) };
    assert_eq!(interrupted_at(go(&lingering, &options, &mut first)), ("the wall-time limit", 20));
    assert_eq!((first.rows.len(), signal::stop_reason()), (20, None), "no row of half a step, and the limit is gone");
    let resumed = Options { resume: Some(folder.path().to_owned()), ..Options::new(folder.path()) };
    go(&lingering, &resumed, &mut rest).unwrap();
    go(&config(30), &Options::new(folder.path()), &mut whole).unwrap();
    assert_eq!([first.rows, rest.rows].concat(), whole.rows);
}

#[test]
fn the_verdict_of_the_solver_comes_before_the_guard() {
    let _turn = TURN.lock();
    let folder = tempfile::tempdir().unwrap();
    let (diverging, mut notes) = (Config { diverge_after: Some(7), ..config(100) }, Notes::default());
    let summary = go(&diverging, &Options::new(folder.path()), &mut notes).unwrap();
    assert_eq!((summary.outcome.status, summary.exit_code(), notes.records.as_slice()), ("diverged", 3, &[(8, true)][..]));
    // A summary with infinite values is still JSON.
    assert!(serde_json::to_string(&summary).unwrap().contains("\"diverged\""));
    // The state that failed takes no checkpoint's place: one of step 4 is there.
    let options = Options { checkpoint: Some(Schedule::Steps(4)), ..Options::new(folder.path()) };
    go(&diverging, &options, &mut Notes::default()).unwrap();
    let resumed = Options { resume: Some(folder.path().to_owned()), ..Options::new(folder.path()) };
    assert_eq!(go(&diverging, &resumed, &mut Notes::default()).unwrap().steps, 4);
}

#[test]
fn another_input_is_not_continued() {
    let _turn = TURN.lock();
    let folder = tempfile::tempdir().unwrap();
    let options = Options { checkpoint: Some(Schedule::Steps(10)), ..Options::new(folder.path()) };
    go(&config(20), &options, &mut Notes::default()).unwrap();
    let resumed = Options { resume: Some(folder.path().to_owned()), ..Options::new(folder.path()) };
    let error = go(&Config { gamma: 0.2, ..config(20) }, &resumed, &mut Notes::default()).unwrap_err();
    assert!(error.to_string().contains("`toy.gamma` was 0.1 and is 0.2"), "{error}");
    let environment = Environment::new(Device::Cpu(Cpu::new(1).unwrap()), folder.path().to_owned(), 2);
    let error = run::run::<Toy>(&config(20), &environment, &resumed, &mut Profiler::new(), &mut Notes::default()).unwrap_err();
    assert!(error.to_string().contains("`run.seed` was 1 and is 2"), "{error}");
    // A number that serde_json takes for its neighbour without `float_roundtrip` (not all with so many digits are).
    let exact = Config { gamma: 1.650_000_000_000_000_1, ..config(20) };
    go(&exact, &options, &mut Notes::default()).unwrap();
    go(&exact, &resumed, &mut Notes::default()).unwrap();
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
    // With a signal there is no going on: the error is that of the file, not a promise to resume.
    let error = go(&config(100), &options, &mut Notes { raise: Raise::Row(7), ..Notes::default() }).unwrap_err();
    assert!(matches!(error, Error::File { .. }) && error.exit_code() == 5, "{error}");
}

/// A process that is killed between the two has rows that are not lost: those behind the checkpoint come again.
#[test]
fn rows_are_kept_before_the_checkpoint_that_they_belong_to() {
    let _turn = TURN.lock();
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = run::checkpoint_path(folder.path());
    let mut notes = Notes { checkpoint: checkpoint.clone(), ..Notes::default() };
    go(&config(10), &Options { checkpoint: Some(Schedule::Steps(4)), ..Options::new(folder.path()) }, &mut notes).unwrap();
    assert_eq!(notes.saving, [(4, false), (8, true)]);
    fs::remove_file(&checkpoint).unwrap();
    let mut notes = Notes { checkpoint, raise: Raise::Row(7), ..Notes::default() };
    interrupted_at(go(&config(10), &Options::new(folder.path()), &mut notes));
    assert_eq!(notes.saving, [(7, false)]);
}

#[test]
fn a_data_file_that_changed_is_not_gone_on_with() {
    let _turn = TURN.lock();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("body.surf");
    let with_file = Config { file: Some("body.surf:/points".into()), ..config(20) };
    let saving = Options { checkpoint: Some(Schedule::Steps(15)), ..Options::new(folder.path()) };
    let resumed = Options { resume: Some(folder.path().to_owned()), ..saving.clone() };
    fs::write(&file, "a circle").unwrap();
    go(&with_file, &saving, &mut Notes::default()).unwrap();
    // Written anew with what it had, it is the same.
    fs::write(&file, "a circle").unwrap();
    assert_eq!(go(&with_file, &resumed, &mut Notes::default()).unwrap().steps, 5);
    fs::write(&file, "a square").unwrap();
    let error = go(&with_file, &resumed, &mut Notes::default()).unwrap_err();
    assert!(
        error.exit_code() == 2 && error.to_string().contains("the data file `body.surf` is not the one that the checkpoint"),
        "{error}"
    );
    fs::remove_file(&file).unwrap();
    let error = go(&with_file, &resumed, &mut Notes::default()).unwrap_err();
    assert!(error.to_string().contains("`body.surf` is not there any more"), "{error}");
}

#[test]
fn a_run_that_takes_long_saves_checkpoints_unasked_and_removes_them() {
    let _turn = TURN.lock();
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = run::checkpoint_path(folder.path());
    let options = Options { temporary_checkpoints: Some(Duration::from_millis(30)), ..Options::new(folder.path()) };
    let slow = || Notes { nap: Duration::from_millis(5), checkpoint: checkpoint.clone(), ..Notes::default() };
    let (mut notes, begun) = (slow(), Instant::now());
    // A second of naps at the least: twenty times what a checkpoint takes on a loaded machine.
    go(&config(200), &options, &mut notes).unwrap();
    assert!(notes.saving.len() > 1 && notes.saving[1].1, "{:?}", notes.saving);
    // By the clock: naps are long on such a machine, and few rows come before it.
    assert!(notes.first.is_some_and(|first| first >= begun + Duration::from_millis(30)), "{:?}", notes.saving);
    assert!(notes.notices.len() == 1 && notes.notices[0].contains("`run.checkpoint_every`"), "{:?}", notes.notices);
    assert!(!checkpoint.parent().unwrap().exists());
    // A shorter one saves none, nor does one that saves when it was asked to.
    let long = Options { temporary_checkpoints: Some(Duration::from_secs(600)), ..options.clone() };
    let asked = Options { checkpoint: Some(Schedule::Steps(90)), ..options.clone() };
    for (options, saved) in [(long, 0), (asked, 1)] {
        let mut notes = slow();
        go(&config(100), &options, &mut notes).unwrap();
        assert_eq!((notes.saving.len(), checkpoint.exists()), (saved, saved == 1));
    }
    // A run that breaks down, or ends with a failed check, leaves a checkpoint from which to look for the reason.
    fs::remove_file(&checkpoint).unwrap();
    go(&Config { poison_after: Some(90), ..config(100) }, &options, &mut slow()).unwrap_err();
    assert!(checkpoint.exists());
    fs::remove_file(&checkpoint).unwrap();
    go(&Config { bound: 1e-9, ..config(100) }, &options, &mut slow()).unwrap();
    assert!(checkpoint.exists());
}

#[test]
fn a_run_that_is_started_once_more_removes_the_checkpoint_of_its_first_start() {
    let _turn = TURN.lock();
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = run::checkpoint_path(folder.path());
    let at_once = Options { temporary_checkpoints: Some(Duration::ZERO), ..Options::new(folder.path()) };
    let late = Options { temporary_checkpoints: Some(Duration::from_secs(600)), ..at_once.clone() };
    let environment = Environment::new(Device::Cpu(Cpu::new(1).unwrap()), at_once.folder.clone(), 1);
    let (mut notes, mut profiler) = (Notes::default(), Profiler::off());
    let mut running = Running::<Toy>::set_up(None, &config(20), &environment, &at_once).unwrap();
    running.start(&at_once, &mut notes).unwrap();
    running.make_step(None, &mut profiler, &mut notes).unwrap();
    assert!(checkpoint.exists());
    running.start(&late, &mut notes).unwrap();
    let outcome = loop {
        if let Some(outcome) = running.make_step(None, &mut profiler, &mut notes).unwrap() {
            break outcome;
        }
    };
    running.end(outcome, &mut profiler, &mut notes).unwrap();
    assert!(!checkpoint.exists());
}

#[test]
fn results_that_cannot_be_written_can_be_later_without_computing_again() {
    let _turn = TURN.lock();
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let elsewhere = Some(other.path().to_owned());
    let options = Options { records: Some(Schedule::Steps(8)), checkpoint_folder: elsewhere.clone(), ..Options::new(folder.path()) };
    // On the way, and at the end: a resumed run begins with those.
    for (full, steps, written) in [(16, 4, vec![(16, false), (20, true)]), (20, 0, vec![(20, true)])] {
        let error = go(&config(20), &options, &mut Notes { full: vec![full], ..Notes::default() }).unwrap_err();
        let expected = format!("the state after step {full} is saved in `{}", other.path().display());
        assert!(error.exit_code() == 5 && error.to_string().contains(&expected), "{error}");
        assert!(error.hint().unwrap().contains(&format!("then `zellige run --resume {}` writes the results", other.path().display())));
        let mut notes = Notes::default();
        let summary = go(&config(20), &Options { resume: elsewhere.clone(), ..options.clone() }, &mut notes).unwrap();
        assert_eq!((summary.steps, notes.records), (steps, written));
    }
    // If the state cannot be saved either, the first error is the one reported.
    fs::write(folder.path().join("checkpoint"), b"").unwrap();
    let mut notes = Notes { full: vec![20], ..Notes::default() };
    let error = go(&config(20), &Options { checkpoint_folder: None, ..options }, &mut notes).unwrap_err();
    assert!(matches!(error, Error::File { .. }) && notes.notices[0].contains("--checkpoint-dir"), "{error}");
}

#[test]
fn a_signal_between_two_files_of_results_leaves_them_for_the_resumed_run() {
    let _turn = TURN.lock();
    let folder = tempfile::tempdir().unwrap();
    let options = Options { records: Some(Schedule::Steps(8)), ..Options::new(folder.path()) };
    let resumed = Options { resume: Some(folder.path().to_owned()), ..options.clone() };
    for (step, all) in [(8, vec![(8, false), (16, false), (20, true)]), (20, vec![(20, true)])] {
        let mut notes = Notes { raise: Raise::Between(step), ..Notes::default() };
        assert_eq!(interrupted_at(go(&config(20), &options, &mut notes)), ("SIGTERM", step));
        let mut rest = Notes::default();
        go(&config(20), &resumed, &mut rest).unwrap();
        assert_eq!(rest.records, all);
    }
}
