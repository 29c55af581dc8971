//! The run loop in several parts: what one of them meets ends, saves or goes on in all of them alike.

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use zellige_engine::checkpoint::Reader;
use zellige_engine::device::{Cpu, Device};
use zellige_engine::error::{Error, Result};
use zellige_engine::links::{Links, inside};
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Record, Row};
use zellige_engine::run::{self, Options, Progress, Silent, Sink, Summary};
use zellige_engine::schedule::Schedule;
use zellige_engine::sim::{Clock, Environment};
use zellige_engine::testing::toy::{Config, Toy};

use crate::TURN;

/// Sink of the first part: rows, and records that cannot be written from some step on.
#[derive(Default)]
struct Notes {
    rows: Vec<(u64, u64)>,
    full_from: Option<u64>,
    nap: Duration,
}

impl Sink for Notes {
    fn row(&mut self, clock: &Clock, row: &Row) -> Result<()> {
        std::thread::sleep(self.nap);
        self.rows.push((clock.step, row.get("position").unwrap_or_default().to_bits()));
        Ok(())
    }

    fn progress(&mut self, _: &Progress, _: &Row) {}

    fn records(&mut self, clock: &Clock, _: Vec<Record>, _: bool) -> Result<()> {
        match self.full_from {
            Some(step) if clock.step >= step => Err(Error::file("write", "position.csv", std::io::ErrorKind::StorageFull.into())),
            _ => Ok(()),
        }
    }

    fn notice(&mut self, _: &str) {}
}

/// Runs in `parts` parts; `config` may differ from part to part. Returns the step at which each part ended, and its error.
fn go(parts: usize, options: &Options, sink: &Mutex<Notes>, config: impl Fn(usize) -> Config + Sync) -> Result<Vec<Result<Summary>>> {
    inside::run(parts, |links: Links| {
        let environment = Environment::new(Device::Cpu(Cpu::new(1)?), options.folder.clone(), 1).of_part(links.clone());
        let config = config(links.rank());
        let done = if links.is_first() {
            run::run::<Toy>(&config, &environment, options, &mut Profiler::off(), &mut *sink.lock().unwrap())
        } else {
            run::run::<Toy>(&config, &environment, options, &mut Profiler::off(), &mut Silent)
        };
        match done {
            // Kept, as the ends of all parts are compared.
            Err(error @ (Error::Interrupted { .. } | Error::Unwritten { .. } | Error::Part { part: 0, .. })) => Ok(Err(error)),
            Err(error) => Err(error),
            Ok(summary) => Ok(Ok(summary)),
        }
    })
}

fn checkpoint(folder: &Path) -> Vec<u8> {
    std::fs::read(run::checkpoint_path(folder)).unwrap()
}

fn steps(steps: u64) -> Config {
    Config { steps, ..Config::default() }
}

/// Others wait for what a part has to save.
#[test]
fn a_part_whose_state_cannot_be_saved_ends_all() {
    let _turn = TURN.lock();
    let (folder, sink) = (tempfile::tempdir().unwrap(), Mutex::new(Notes::default()));
    let options = Options { checkpoint: Some(Schedule::Steps(4)), ..Options::new(folder.path()) };
    let done = go(3, &options, &sink, |part| Config { unsaved_from: (part == 1).then_some(8), ..steps(40) });
    let told = done.unwrap_err().to_string();
    assert!(told.contains("the state at step 8: it cannot be saved"), "{told}");
    // The one before is whole, and nothing is beside it.
    let checkpoint = run::checkpoint_path(folder.path());
    assert_eq!(Reader::open(&checkpoint, "toy").unwrap().u64("step").unwrap(), 4);
    assert_eq!(std::fs::read_dir(checkpoint.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn rows_and_checkpoints_of_parts_are_those_of_one() {
    let _turn = TURN.lock();
    let mut before = None;
    for parts in [1, 2, 5] {
        let (folder, sink) = (tempfile::tempdir().unwrap(), Mutex::new(Notes::default()));
        let options = Options { checkpoint: Some(Schedule::Steps(7)), records: Some(Schedule::Steps(10)), ..Options::new(folder.path()) };
        let done = go(parts, &options, &sink, |_| steps(40)).unwrap();
        assert!(done.iter().all(|part| part.as_ref().is_ok_and(|summary| summary.clock.step == 40)));
        let found = (sink.into_inner().unwrap().rows, checkpoint(folder.path()));
        assert_eq!(*before.get_or_insert(found.clone()), found, "{parts} parts");
    }
}

#[test]
fn the_wall_time_limit_stops_all_parts_after_the_same_step_and_any_number_goes_on() {
    let _turn = TURN.lock();
    let (folder, sink) = (tempfile::tempdir().unwrap(), Mutex::new(Notes { nap: Duration::from_millis(5), ..Notes::default() }));
    let limited = Options { wall_time: Some(Duration::from_millis(60)), ..Options::new(folder.path()) };
    let done = go(4, &limited, &sink, |_| steps(10_000)).unwrap();
    let stopped: Vec<u64> = done
        .into_iter()
        .map(|part| match part {
            Err(Error::Interrupted { reason: "the wall-time limit", step, checkpoint: Some(_) }) => step,
            other => panic!("expected an interrupt, got {other:?}"),
        })
        .collect();
    assert!(stopped[0] > 0 && stopped.iter().all(|step| *step == stopped[0]), "{stopped:?}");
    let rest = Mutex::new(Notes::default());
    let resumed = Options { resume: Some(folder.path().to_owned()), ..Options::new(folder.path()) };
    go(3, &resumed, &rest, |_| steps(10_000)).unwrap();
    let whole = Mutex::new(Notes::default());
    go(1, &Options::new(tempfile::tempdir().unwrap().path()), &whole, |_| steps(10_000)).unwrap();
    let rows = [sink.into_inner().unwrap().rows, rest.into_inner().unwrap().rows].concat();
    assert_eq!(rows, whole.into_inner().unwrap().rows);
}

#[test]
fn results_that_cannot_be_written_are_saved_by_all_parts_together() {
    let _turn = TURN.lock();
    let (folder, sink) = (tempfile::tempdir().unwrap(), Mutex::new(Notes { full_from: Some(20), ..Notes::default() }));
    let options = Options { records: Some(Schedule::Steps(10)), ..Options::new(folder.path()) };
    let done = go(3, &options, &sink, |_| steps(40)).unwrap();
    assert!(matches!(&done[0], Err(Error::Unwritten { step: 20, .. })), "{:?}", done[0].as_ref().err());
    assert!(done[1..].iter().all(Result::is_err), "no part goes on without the first");
    // And from there on any number of parts.
    let rest = Mutex::new(Notes::default());
    let resumed = Options { resume: Some(folder.path().to_owned()), ..options };
    let ends = go(2, &resumed, &rest, |_| steps(40)).unwrap();
    assert!(ends.iter().all(Result::is_ok) && rest.into_inner().unwrap().rows[0].0 == 21);
}

#[test]
fn a_checkpoint_that_cannot_be_written_is_no_reason_to_part() {
    let _turn = TURN.lock();
    let (folder, sink) = (tempfile::tempdir().unwrap(), Mutex::new(Notes::default()));
    // A file where the folder of checkpoints would be.
    std::fs::write(folder.path().join("checkpoint"), "").unwrap();
    let options = Options { checkpoint: Some(Schedule::Steps(7)), ..Options::new(folder.path()) };
    let done = go(3, &options, &sink, |_| steps(40)).unwrap();
    assert!(done.iter().all(|part| part.as_ref().is_ok_and(|summary| summary.clock.step == 40)));
}

#[test]
fn a_part_that_breaks_down_ends_the_run() {
    let _turn = TURN.lock();
    for broken in [0, 2] {
        let (folder, sink) = (tempfile::tempdir().unwrap(), Mutex::new(Notes::default()));
        let config = |rank| Config { break_after: (rank == broken).then_some(11), ..steps(40) };
        let error = go(3, &Options::new(folder.path()), &sink, config).unwrap_err();
        assert!(error.to_string().contains("the slope at step 12") && error.exit_code() == 3, "{error}");
    }
}
