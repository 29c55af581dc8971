//! Findings of the audit of a run, as the run loop sees it.

use std::path::Path;

use crate::common::device;
use zellige_dsmc::config::sides::{SideConfig, SideWord};
use zellige_dsmc::{Config, Dsmc};
use zellige_engine::device::Device;
use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;
use zellige_engine::record::{Record, Row};
use zellige_engine::run::{self, Options, Progress, Sink, Summary};
use zellige_engine::sim::{Clock, Ending, Environment, Solver};

/// A closed box of nitrogen.
fn closed() -> Config {
    let mut config = Config::new(vec![8, 8], vec![1e-3, 1e-3], "N2", 1e22, 300.0);
    config.boundary.all = Some(SideConfig::Word(SideWord::Specular));
    (config.dt, config.steps, config.sampling.audit) = (2e-8, 40, Some(5));
    config
}

/// Steps at which rows and records came; of the latter whether they were the last ones.
#[derive(Default)]
struct Notes {
    rows: Vec<u64>,
    records: Vec<(u64, bool)>,
}

impl Sink for Notes {
    fn row(&mut self, clock: &Clock, _: &Row) -> Result<()> {
        self.rows.push(clock.step);
        Ok(())
    }
    fn progress(&mut self, _: &Progress, _: &Row) {}
    fn records(&mut self, clock: &Clock, records: Vec<Record>, last: bool) -> Result<()> {
        assert!(!records.is_empty());
        self.records.push((clock.step, last));
        Ok(())
    }
    fn notice(&mut self, _: &str) {}
}

/// Change that makes a fault.
type Fault<'a> = &'a dyn Fn(&mut Dsmc);

/// Twelve steps, then `fault`, then a run that goes on from there.
fn run_with(config: &Config, folder: &Path, fault: impl FnOnce(&mut Dsmc)) -> (Summary, Notes) {
    let environment = Environment::new(device(1), folder, 7);
    let mut solver = Dsmc::setup(config, &environment).unwrap();
    for _ in 0..12 {
        solver.step(&mut Profiler::off()).unwrap();
    }
    fault(&mut solver);
    run::save(&mut solver, config, &run::checkpoint_path(folder)).unwrap();
    let options = Options { resume: Some(folder.into()), ..Options::new(folder) };
    let mut notes = Notes::default();
    let summary = run::run::<Dsmc>(config, &environment, &options, &mut Profiler::off(), &mut notes).unwrap();
    (summary, notes)
}

#[test]
fn a_loss_ends_the_run_at_the_next_audit_and_leaves_its_results() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = closed();
    config.sampling.start = Some(2);
    // Two more put in than are there.
    let particles = |solver: &mut Dsmc| {
        let stages = &mut solver.flow().stages;
        let mut extra = stages.extra().unwrap();
        // A GPU's state begins with the number of its tiles.
        extra[usize::from(matches!(device(1), Device::Cuda(_)))] += 2.0;
        stages.set_extra(&extra).unwrap();
    };
    // Each faster by a part in two thousand.
    let energy = |solver: &mut Dsmc| {
        let stages = &mut solver.flow().stages;
        let mut all = stages.particles().unwrap();
        all.velocity.iter_mut().flatten().for_each(|v| *v *= 1.0005);
        stages.clear().unwrap();
        stages.insert(&all).unwrap();
    };
    let faults: [(Fault<'_>, &str, &str); 2] = [
        (&particles, "2 particles are missing: 640 are there, and 642 must be", "particles missing or too many"),
        (&energy, "the energy of the closed box went from", "relative change of the energy"),
    ];
    for (fault, message, check) in faults {
        let (summary, notes) = run_with(&config, folder.path(), fault);
        let outcome = &summary.outcome;
        assert_eq!((outcome.ending, outcome.status, summary.exit_code()), (Ending::Failed, "not_conserved", 3));
        assert!(outcome.message.contains(message) && outcome.message.contains("after step 15"), "{}", outcome.message);
        assert_eq!((notes.rows, notes.records), (vec![13, 14, 15], vec![(15, true)]));
        let not_ok: Vec<_> = summary.checks.iter().filter(|c| !c.ok).map(|c| c.name.as_str()).collect();
        assert_eq!(not_ok, [check]);
    }
    let (summary, notes) = run_with(&config, folder.path(), |_| {});
    assert_eq!((summary.exit_code(), notes.records), (0, vec![(40, true)]), "{:?}", summary.outcome);
    assert!(summary.checks.iter().all(|c| c.ok), "{:?}", summary.checks);
}
