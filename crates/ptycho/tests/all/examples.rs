//! Runs of every example, with few frames and iterations, through the solver: on the CPU, and beside it on a GPU where there is
//! one.

use std::path::Path;

use zellige_engine::device::{Cpu, Device};
use zellige_engine::profile::Profiler;
use zellige_engine::sim::{Environment, Solver};
use zellige_engine::testing;
use zellige_ptycho::Ptycho;
use zellige_ptycho::config::Config;

const FRAMES: usize = 9;

/// Errors of all iterations; records are made of the end.
fn run(config: &Config, folder: &Path, device: Device) -> Vec<[f64; 3]> {
    let environment = Environment::new(device, folder, 1);
    let prepared = Ptycho::prepare(config, &environment).unwrap();
    let plan = Ptycho::plan_prepared(&prepared, config, &environment).unwrap();
    assert!(!plan.lines.is_empty() && plan.memory > 0);
    let mut solver = Ptycho::setup_prepared(prepared, config, &environment).unwrap();
    let mut errors = Vec::new();
    while solver.outcome().is_none() {
        solver.step(&mut Profiler::off()).unwrap();
        errors.push(solver.whole().errors().unwrap());
    }
    let names: Vec<String> = solver.records().unwrap().iter().map(|r| r.name().to_owned()).collect();
    assert_eq!(names.iter().any(|n| n == "frc"), config.frc, "{names:?}");
    errors
}

#[test]
fn every_example_runs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/ptycho");
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "toml"));
    files.sort();
    assert_eq!(files.len(), 9, "{files:?}");
    let gpu = testing::gpu();
    for file in files {
        let mut config = zellige_engine::config::load::<Ptycho>(&file, &[]).unwrap().config;
        for scan in &mut config.scan {
            let made = scan.simulate.as_mut().unwrap();
            made.frames = made.frames.min(FRAMES);
        }
        for engine in &mut config.engine {
            engine.iterations = Some(3);
            if let Some(positions) = &mut engine.positions {
                (positions.start, positions.stop, positions.every) = (1, Some(3), 1);
            }
        }
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        assert_eq!(config.frc, name == "stacked", "no example has half-scans any more");
        // Little memory, so that frames lie in files there as they do in full.
        let mut little = config.clone();
        if let Some(device) = &mut little.memory.device {
            *device = "1 MiB".into();
        }
        let here = run(&little, &folder, Device::Cpu(Cpu::new(2).unwrap()));
        assert_eq!(here.len(), 3 * config.engine.len());
        // ML, which each of them ends with, goes down.
        let [first, last] = [here[here.len() - 3][1], here[here.len() - 1][1]];
        assert!(last < first, "{name}: the likelihood's error went from {first} to {last}");
        for gpu in gpu.iter().cloned() {
            let there = run(&config, &folder, Device::Cuda(gpu));
            for (k, (a, b)) in there.iter().zip(&here).enumerate() {
                // Single precision on both. After three iterations of the difference map on nine views the weakly lit pixels are what
                // rounding makes of them: `stacked` in doubles is 4.3e-3 from singles then, whose instruction sets differ by 2e-3.
                assert!((0..2).all(|i| (a[i] - b[i]).abs() <= 1e-2 * b[i]), "{name}, iteration {k}: {a:?} and {b:?}");
            }
        }
    }
}
