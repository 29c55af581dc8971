//! A run that goes on from a checkpoint, as the run loop sees it.

use crate::common::{BOX, argon, flow, mean, near, run};
use zellige_dsmc::{Config, Dsmc};
use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::device::{Cpu, Device};
use zellige_engine::profile::Profiler;
use zellige_engine::sim::{Environment, Solver};

/// Energy and momentum of a row are those of the last audit, and rates are since the row before: a part that goes on between two of
/// them must not put others there.
#[test]
fn rows_go_on_as_if_nothing_had_been() {
    let mut config = Config::new(vec![8, 8], vec![1e-3, 1e-3], "N2", 1e22, 300.0);
    (config.dt, config.steps, config.sampling.audit) = (2e-8, 30, Some(10));
    let folder = tempfile::tempdir().unwrap();
    let environment = Environment::new(Device::Cpu(Cpu::new(1).unwrap()), folder.path(), 7);
    let mut whole = Dsmc::setup(&config, &environment).unwrap();
    let mut profiler = Profiler::off();
    for _ in 0..14 {
        whole.step(&mut profiler).unwrap();
        if whole.clock().step.is_multiple_of(4) {
            whole.row().unwrap();
        }
    }
    let path = folder.path().join("a.zck");
    let mut writer = Writer::create(&path, "dsmc").unwrap();
    whole.save(&mut writer).unwrap();
    writer.finish().unwrap();
    let mut resumed = Dsmc::setup(&config, &environment).unwrap();
    resumed.restore(&Reader::open(&path, "dsmc").unwrap()).unwrap();
    for _ in 14..30 {
        let rows = [&mut whole, &mut resumed].map(|solver| {
            solver.step(&mut profiler).unwrap();
            (solver.clock().step % 4 == 0).then(|| solver.row().unwrap())
        });
        assert_eq!(rows[0], rows[1], "step {}", whole.clock().step);
    }
}

/// Cells of many thousands of particles, which several tiles of a GPU share: all collide as often as they should, averages are of
/// all, and what goes on from a checkpoint is bitwise identical.
#[test]
fn full_cells_collide_and_go_on_to_the_bit() {
    let mut config = argon(3, 9000.0);
    (config.steps, config.sampling.start, config.sampling.batches) = (60, Some(10), 5);
    let mut one = flow(&config, 1);
    run(&mut one, 60);
    let (n, ledger) = (81_000.0, one.ledger().unwrap());
    assert_eq!((ledger.there(), one.totals().unwrap().particles), (81_000, 81_000));
    let expected = 0.5 * n * BOX.0 * one.model.pair(0, 0).mean_rate(BOX.1) * config.dt * 60.0;
    near("collisions", ledger.collisions as f64, expected, 0.0, expected.sqrt().recip());
    // Numbers are whole, and none leaves a periodic box.
    near("density", mean(&one, 0), BOX.0, 1e-9, 0.0);
    let mut two = flow(&config, 1);
    run(&mut two, 33);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let mut writer = Writer::create(&path, "dsmc").unwrap();
    two.save(&mut writer).unwrap();
    writer.finish().unwrap();
    let mut resumed = flow(&config, 1);
    resumed.restore(&Reader::open(&path, "dsmc").unwrap()).unwrap();
    for other in [&mut two, &mut resumed] {
        run(other, 27);
        assert_eq!(other.stages.particles().unwrap(), one.stages.particles().unwrap());
        assert_eq!((other.values(), other.ledger().unwrap()), (one.values(), one.ledger().unwrap()));
    }
}
