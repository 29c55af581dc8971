//! A run that goes on from a checkpoint, as the run loop sees it.

use zellige_dsmc::{Config, Dsmc};
use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::device::{Cpu, Device};
use zellige_engine::profile::Profiler;
use zellige_engine::sim::{Environment, Solver};

/// Energy and momentum of a row are those of the last audit, and rates are since the row before: a part that goes on between two of them must
/// not put others there.
#[test]
fn rows_go_on_as_if_nothing_had_been() {
    let mut config = Config::new(vec![8, 8], vec![1e-3, 1e-3], "N2", 1e22, 300.0);
    (config.dt, config.steps, config.sampling.audit) = (2e-8, 30, Some(10));
    let folder = tempfile::tempdir().unwrap();
    let environment = Environment { device: Device::Cpu(Cpu::new(1).unwrap()), folder: folder.path().into(), seed: 7 };
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
