//! Outcome of the example inputs, as the checks at the end of a run see it.

use std::path::Path;

use zellige_engine::device::{Cpu, Device};
use zellige_engine::profile::Profiler;
use zellige_engine::record::Check;
use zellige_engine::sim::{Environment, Solver};
use zellige_ptycho::Ptycho;
use zellige_ptycho::config::{AffinePart, Config, EngineConfig, EngineName, PositionConfig, PositionMethod, ProbeStart};
use zellige_ptycho::half_sets;
use zellige_ptycho::reconstruction::Reconstruction;
use zellige_ptycho::simulate::{Pair, SimulateConfig};

use super::physics::{input, made, model, run};

fn finished(config: &Config) -> Vec<Check> {
    let environment = Environment::new(Device::Cpu(Cpu::new(2).unwrap()), ".", 1);
    let mut solver = Ptycho::setup(config, &environment).unwrap();
    while solver.outcome().is_none() {
        solver.step(&mut Profiler::off()).unwrap();
    }
    solver.checks().unwrap()
}

/// The mixed state of `examples/ptycho/mixed_state.toml` on fewer pixels: its recipe finds it, and the check does not pass DM and
/// ML, by which too much goes to the first mode.
#[test]
fn a_mixed_state_is_found_and_a_wrong_one_is_told() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/ptycho/mixed_state.toml");
    let mut config = zellige_engine::config::load::<Ptycho>(&file, &[]).unwrap().config;
    let made = config.scan[0].simulate.as_mut().unwrap();
    (made.frames, made.size, made.photons) = (100, Pair::Same(64), 8e6);
    // The image of the source in pixels, which are twice as large.
    made.illumination.blur = Pair::Same(1.2e-7);
    made.illumination.defocus = None;
    config.probe = zellige_ptycho::config::ProbeConfig { modes: 4, ..Default::default() };
    let fidelity = |checks: &[Check]| checks.iter().find(|c| c.name.contains("fidelity")).cloned().unwrap();
    let checks = finished(&config);
    assert!(checks.iter().all(|c| c.ok), "{checks:?}");
    let good = fidelity(&checks);
    config.engine = vec![EngineConfig::new(EngineName::Dm, 150), EngineConfig::new(EngineName::Ml, 60)];
    let checks = finished(&config);
    assert!(!fidelity(&checks).ok && fidelity(&checks).value > 2.0 * good.value, "{checks:?}");
}

/// Object and probe that were moved together are as right as before: the comparison of mixed states goes after them, each the right
/// way.
#[test]
fn mixed_states_are_compared_where_they_stand() {
    let made = SimulateConfig { noise: false, ..SimulateConfig::case(49, 32, 3) };
    let mut config = input(made, EngineConfig::new(EngineName::Dm, 1));
    config.probe.modes = 3;
    let (start, truth) = super::physics::from_truth(&config, 0.0);
    let mut whole = Reconstruction::new(&config, start, &Device::Cpu(Cpu::new(2).unwrap()), 7).unwrap();
    let truths = [Some(truth)];
    let mut found = || {
        let comparisons = half_sets::compare_with_truths(&mut whole, &truths).unwrap();
        let fidelity = half_sets::fidelities(&mut whole, &truths, &comparisons).unwrap()[0].1;
        whole.stages.roll(&[[2, -3]], &[[2, -3]]).unwrap();
        fidelity
    };
    // The shift is found to some hundredths of a pixel from what the object shows; three pixels the wrong way leave less than a half.
    let [here, moved] = [found(), found()];
    assert!(here > 0.999 && moved > 0.99, "{here} where they were, {moved} moved");
}

/// A run that has found nothing (one sweep from a plain opening) does not pass, and one that has does.
#[test]
fn frames_that_are_not_explained_are_told() {
    let missed = |iterations: u64, plain: bool| {
        let scan = made(|m| (m.noise, m.photons) = (true, 1e6));
        let mut config = input(scan, EngineConfig::new(EngineName::Epie, iterations));
        // A whole step of one sweep explains the frames within the limit.
        config.engine[0].object_step = plain.then_some(0.05);
        config.probe.start = if plain { ProbeStart::Opening } else { ProbeStart::File };
        finished(&config)[0].clone()
    };
    let (first, last) = (missed(1, true), missed(60, false));
    assert!(!first.ok && last.ok, "{first:?} {last:?}");
}

/// Positions that were reported a pixel wrong, frames of 1e5 photons: refined, they are nearer to the truth than they were
/// reported; with the affine part kept they are not as near, and the run tells what it is.
#[test]
fn places_come_nearer_at_low_dose() {
    let off = |affine: AffinePart| {
        let mut scan = SimulateConfig { photons: 1e5, ..SimulateConfig::case(100, 64, 1) };
        scan.position_error = 0.7 * scan.beam().resolution([64; 2])[0];
        let mut config = input(scan, EngineConfig::new(EngineName::Lsqml, 80));
        config.subpixel = true;
        config.object.margin = Some(10);
        let positions = PositionConfig { method: PositionMethod::Gradient, start: 10, every: 1, affine, ..PositionConfig::default() };
        config.engine[0].positions = Some(positions);
        let (start, truth) = model(&config);
        let pixel = start.pixel;
        let reported: Vec<[f64; 2]> = {
            let mut fresh = zellige_ptycho::setup::scans(&config, Path::new(""), 7).unwrap();
            fresh.remove(0).positions
        };
        let done = run(&config, start, 2);
        // Root mean square of the distances after the mean shift, pixels.
        let from_truth = |positions: &[[f64; 2]]| {
            let by: Vec<[f64; 2]> = positions.iter().zip(&truth.positions).map(|(a, b)| [0, 1].map(|d| (a[d] - b[d]) / pixel[d])).collect();
            let mean = [0, 1].map(|d| by.iter().map(|b| b[d]).sum::<f64>() / by.len() as f64);
            (by.iter().map(|b| (b[0] - mean[0]).powi(2) + (b[1] - mean[1]).powi(2)).sum::<f64>() / by.len() as f64).sqrt()
        };
        (from_truth(&reported), from_truth(&done.positions()), done.affine())
    };
    let (before, after, told) = off(AffinePart::Removed);
    assert!(after < 0.6 * before && told.is_empty(), "{before} to {after} pixels, {told:?}");
    let (_, kept, told) = off(AffinePart::Kept);
    assert!(kept > 1.1 * after && told.len() == 1, "{kept} pixels with the affine part, {after} without; {told:?}");
}
