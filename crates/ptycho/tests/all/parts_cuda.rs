//! Runs in several parts on all GPUs that there are: object, probe, errors, positions and checkpoints have the bits of a run in
//! one part. Skipped without a GPU.

use std::time::Instant;

use zellige_engine::cuda::Cuda;
use zellige_engine::device::Device;
use zellige_engine::links::{Links, inside};
use zellige_engine::profile::Profiler;
use zellige_engine::sim::{Environment, Solver};
use zellige_engine::testing;
use zellige_ptycho::Ptycho;
use zellige_ptycho::config::{Config, EngineConfig, EngineName, Precision};
use zellige_ptycho::scan::Propagation;
use zellige_ptycho::simulate::SimulateConfig;

use super::parts::{Found, case, cases, engine, run_on, same, scan};

/// A GPU for a part, in turn of all that there are.
fn gpu(part: usize) -> Device {
    Device::Cuda(Cuda::open(part % Cuda::count().unwrap()).unwrap())
}

/// Inputs for parts on a GPU: those of the CPU without what stays there, and others whose frames go other ways through it.
fn on_gpus() -> Vec<(&'static str, Config)> {
    let dm = |change: fn(&mut EngineConfig)| engine(EngineName::Dm, 4, change);
    let others = vec![
        // Passes that end by the change of the probe, some of them early.
        ("dm_passes", case(scan(2), &[dm(|e| (e.overlap_tolerance, e.overlap_passes) = (Some(0.02), Some(12)))], |c| c.probe.modes = 2)),
        ("dm_odd", case(SimulateConfig::case(75, 36, 1), &[dm(|e| e.object_smooth = Some(0.7))], |_| {})),
        ("dm_wide", case(SimulateConfig::case(60, 128, 1), &[dm(|e| e.probe_fourier_support = Some(0.6))], |_| {})),
        // One pass, which nothing looks at.
        (
            "dm_wide_once",
            case(SimulateConfig::case(60, 128, 1), &[dm(|e| (e.probe_fourier_support, e.overlap_passes) = (Some(0.6), Some(1)))], |_| {}),
        ),
        // Views and sums for the probes in two sections, and views in four: parts of these do not wait for each other.
        ("dm_sections", case(SimulateConfig::case(1600, 128, 1), &[dm(|e| e.overlap_passes = Some(3))], |_| {})),
        ("ml_sections", case(SimulateConfig::case(2100, 32, 1), &[engine(EngineName::Ml, 3, |_| {})], |_| {})),
        // Batches: frames of any shape, a near detector, and exit waves in the order of the kernels in registers.
        ("lsqml_odd", case(SimulateConfig::case(75, 36, 1), &[engine(EngineName::Lsqml, 3, |e| e.object_clip = Some([0.1, 1.2]))], |_| {})),
        (
            "lsqml_near",
            case(
                SimulateConfig { propagation: Propagation::Near, ..scan(1) },
                &[engine(EngineName::Lsqml, 3, |e| (e.batch, e.probe_fourier_support) = (Some(10), Some(0.6)))],
                |_| {},
            ),
        ),
        (
            "sdr_wide",
            case(
                SimulateConfig::case(60, 128, 1),
                &[dm(|_| {}), engine(EngineName::Sdr, 3, |e| e.batch = Some(24)), engine(EngineName::Epie, 2, |e| e.batch = Some(90))],
                |_| {},
            ),
        ),
        (
            "annealing",
            case(scan(1), &[dm(|e| e.positions = Some(super::parts::refined(zellige_ptycho::config::PositionMethod::Annealing)))], |c| {
                c.precision = Precision::F32;
            }),
        ),
    ];
    let kept = cases().into_iter().filter(|(_, config)| Ptycho::parts_only_on_cpu(config).is_none());
    kept.chain(others).map(|(name, config)| (name, Config { deterministic: true, ..config })).collect()
}

/// Says where two runs with the same end differ first, with the values.
fn told(name: &str, parts: usize, found: &Found, one: &Found) {
    let rows = &one.rows[one.rows.len() - found.rows.len()..];
    if let Some(k) = found.rows.iter().zip(rows).position(|(a, b)| a != b) {
        println!("{name} in {parts} parts: row {k} is {:?}, in one {:?}", found.rows[k], rows[k]);
    }
    for (what, a, b) in [("probe", &found.state.probe, &one.state.probe), ("object", &found.state.object, &one.state.object)] {
        let count = a.iter().zip(b).filter(|(a, b)| a != b).count();
        if let Some(k) = a.iter().zip(b).position(|(a, b)| a != b) {
            println!("{name} in {parts} parts: {count} of {} values of the {what} differ, first {k}: {} and {}", a.len(), a[k], b[k]);
        }
    }
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn parts_of_a_gpu_have_the_bits_of_one() {
    if testing::gpu().is_none() {
        return;
    }
    for (name, config) in on_gpus() {
        let expected = run_on(&gpu, &config, 1, None, u64::MAX);
        assert!(expected.0[0].outcome.is_some());
        // Those with many frames take long to simulate.
        let counts = if name.ends_with("sections") { &[2, 3, 4][..2 + usize::from(name == "ml_sections")] } else { &[2, 3, 5][..] };
        for parts in counts.iter().copied() {
            let found = run_on(&gpu, &config, parts, None, u64::MAX);
            for found in &found.0 {
                told(name, parts, found, &expected.0[0]);
            }
            same(name, parts, &found, &expected);
        }
    }
}

/// A checkpoint belongs to no number of parts.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn runs_on_a_gpu_go_on_in_other_numbers_of_parts() {
    if testing::gpu().is_none() {
        return;
    }
    for (name, config) in on_gpus().into_iter().filter(|(name, _)| *name != "dm_sections") {
        let expected = run_on(&gpu, &config, 1, None, u64::MAX);
        let half = run_on(&gpu, &config, 4, None, 2);
        for parts in [1, 3] {
            let (found, saved) = run_on(&gpu, &config, parts, Some(&half.1), u64::MAX);
            for found in &found {
                told(name, parts, found, &expected.0[0]);
            }
            assert!(found.iter().all(|found| found.state == expected.0[0].state), "{name}: {parts} parts");
            assert!(saved == expected.1, "{name}: {parts} parts");
        }
    }
}

/// Time of an iteration in one and more parts on all GPUs: run by hand with `--ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn times_of_parts_on_a_gpu() {
    if testing::gpu().is_none() {
        return;
    }
    let (dm, lsqml, epie) = (EngineName::Dm, EngineName::Lsqml, EngineName::Epie);
    let cases =
        [(dm, 500, 256, 1), (dm, 4000, 128, 1), (dm, 20_000, 128, 1), (lsqml, 500, 256, 1), (lsqml, 4000, 128, 1), (epie, 500, 256, 1)];
    for (name, frames, size, modes) in cases {
        let batch = (name == epie).then_some(50);
        let config = case(SimulateConfig::case(frames, size, modes), &[engine(name, 60, |e| e.batch = batch)], |c| {
            (c.probe.modes, c.deterministic, c.output.local_errors) = (modes, true, false);
        });
        for parts in [1, 2, 4] {
            let time = |links: Links| {
                let mut solver = Ptycho::setup(&config, &Environment::new(gpu(links.rank()), "", 7).of_part(links.clone()))?;
                for _ in 0..5 {
                    solver.step(&mut Profiler::off())?;
                }
                solver.whole().stages.probe()?;
                let (begun, before) = (Instant::now(), links.traffic());
                for _ in 0..30 {
                    solver.step(&mut Profiler::off())?;
                }
                solver.whole().stages.probe()?;
                let found = (begun.elapsed().as_secs_f64() / 30.0, links.traffic().since(before).messages as f64 / 30.0);
                let mut profiler = Profiler::new();
                for _ in 0..5 {
                    solver.step(&mut profiler)?;
                }
                let stages = profiler.table().iter().map(|row| format!("{} {:.3}", row.name, 1e3 * row.total / 5.0)).collect::<Vec<_>>();
                Ok((found.0, found.1, stages.join(", ")))
            };
            let times = inside::run(parts, time).unwrap();
            let (each, messages, stages) = &times[0];
            println!(
                "{name:?}, {frames} frames of {size}, {modes} modes, in {parts} parts: {:.3} ms, {messages:.0} messages; {stages}",
                1e3 * each
            );
        }
    }
}
