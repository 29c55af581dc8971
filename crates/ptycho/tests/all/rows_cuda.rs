//! Rows of a run on a GPU, which come while the next iteration is at work there.

use std::path::Path;

use zellige_engine::device::Device;
use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Record, Row};
use zellige_engine::run::{self, Options, Progress, Sink};
use zellige_engine::schedule::Schedule;
use zellige_engine::sim::{Clock, Environment, Solver};
use zellige_engine::testing;
use zellige_ptycho::config::{EngineConfig, EngineName};
use zellige_ptycho::simulate::Pair;
use zellige_ptycho::solver::Ptycho;

#[derive(Default)]
struct Rows(Vec<(u64, Row)>);

impl Sink for Rows {
    fn row(&mut self, clock: &Clock, row: &Row) -> Result<()> {
        self.0.push((clock.step, row.clone()));
        Ok(())
    }

    fn progress(&mut self, _: &Progress, _: &Row) {}

    fn records(&mut self, _: &Clock, _: Vec<Record>, _: bool) -> Result<()> {
        Ok(())
    }

    fn notice(&mut self, _: &str) {}
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn rows_that_wait_are_those_of_their_iterations() {
    let Some(cuda) = testing::gpu() else { return };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/ptycho/simulated.toml");
    let mut config = zellige_engine::config::load::<Ptycho>(&file, &[]).unwrap().config;
    let made = config.scan[0].simulate.as_mut().unwrap();
    (made.frames, made.size) = (16, Pair::Same(64));
    config.engine =
        vec![EngineConfig::new(EngineName::Dm, 9), EngineConfig::new(EngineName::Ml, 3), EngineConfig::new(EngineName::Epie, 4)];
    config.output.local_errors = true;
    let folder = tempfile::tempdir().unwrap();
    let environment = Environment::new(Device::Cuda(cuda), folder.path(), 1);

    let mut by_hand = Vec::new();
    let (mut solver, mut waiting) = (Ptycho::setup(&config, &environment).unwrap(), Vec::new());
    while solver.outcome().is_none() {
        solver.step(&mut Profiler::off()).unwrap();
        waiting.push(solver.row_can_wait());
        by_hand.push((solver.clock().step, solver.row().unwrap()));
    }
    // The last iteration of an engine does not wait, nor does ML, which has its values on the host.
    let (yes, no) = (true, false);
    assert_eq!(waiting, [yes, yes, yes, yes, yes, yes, yes, yes, no, no, no, no, yes, yes, yes, no]);

    let mut rows = Rows::default();
    let options = Options { checkpoint: Some(Schedule::Steps(5)), ..Options::new(folder.path()) };
    run::run::<Ptycho>(&config, &environment, &options, &mut Profiler::new(), &mut rows).unwrap();
    assert_eq!(rows.0, by_hand);
    // A run that goes on from a checkpoint has the rows that were still to come.
    let mut rest = Rows::default();
    let folder = tempfile::tempdir().unwrap();
    let mut short = config.clone();
    short.engine.truncate(1);
    short.engine[0].iterations = Some(5);
    let first = Options { checkpoint: Some(Schedule::Steps(3)), ..Options::new(folder.path()) };
    run::run::<Ptycho>(&short, &environment, &first, &mut Profiler::new(), &mut Rows::default()).unwrap();
    let further = Options { resume: Some(folder.path().into()), ..Options::new(folder.path()) };
    run::run::<Ptycho>(&config, &environment, &further, &mut Profiler::new(), &mut rest).unwrap();
    assert_eq!(rest.0, by_hand[5..]);
}
