//! The stages on a GPU against those on the CPU, and against PtyPy's trajectories. Skipped without a GPU.
//!
//! Tolerances of single precision: a sum of `n` terms in whatever order is off by some `sqrt(n) eps`, a transform by some
//! `log2 n eps`: a few 1e-6 an iteration for errors and fields, which the difference map doubles or so from one to the next.

use num_complex::Complex;
use zellige_engine::testing;
use zellige_ptycho::config::{Compatibility, EngineConfig, EngineName};
use zellige_ptycho::engines;
use zellige_ptycho::model::{Model, State};
use zellige_ptycho::noise::of_frames;
use zellige_ptycho::stages::cuda::{FrameProcessing, KernelConfig};
use zellige_ptycho::stages::{self, Likelihood, Noise, Overlap, Projection, Slot, Stages};

use super::common::twins::{Case, PLAIN, all, bench, bench_of, close, model, off, part};
use super::common::{Bench, Reference, mean};

const CASES: [Case; 36] = [
    PLAIN,
    Case { frame: [128, 128], ..PLAIN },
    Case { frame: [256, 256], views: 9, ..PLAIN },
    Case { frame: [32, 128], sets: 2, ..PLAIN },
    Case { frame: [256, 64], ..PLAIN },
    Case { frame: [128, 256], views: 7, ..PLAIN },
    Case { modes: [3, 2], sets: 2, ..PLAIN },
    Case { frame: [128, 128], modes: [4, 1], ..PLAIN },
    Case { frame: [256, 256], modes: [2, 1], views: 5, ..PLAIN },
    Case { frame: [96, 100], modes: [2, 2], ..PLAIN },
    Case { frame: [64, 96], near: true, ..PLAIN },
    Case { near: true, modes: [2, 1], sets: 2, ..PLAIN },
    Case { near: true, frame: [128, 128], ..PLAIN },
    Case { near: true, frame: [256, 256], views: 5, ..PLAIN },
    Case { near: true, frame: [256, 128], modes: [2, 1], views: 5, ..PLAIN },
    Case { bin: [2, 2], ..PLAIN },
    Case { bin: [3, 2], frame: [96, 100], modes: [2, 2], sets: 2, ..PLAIN },
    Case { bin: [1, 4], near: true, ..PLAIN },
    Case { frame: [63, 45], modes: [2, 1], sets: 2, ..PLAIN },
    Case { frame: [192, 200], views: 7, ..PLAIN },
    Case { frame: [300, 100], views: 5, ..PLAIN },
    Case { frame: [512, 512], views: 3, ..PLAIN },
    Case { frame: [48, 1024], views: 5, sets: 2, ..PLAIN },
    Case { frame: [2048, 26], modes: [2, 1], views: 3, ..PLAIN },
    // A factor of 17: around cuFFT alone.
    Case { frame: [34, 62], modes: [2, 1], ..PLAIN },
    Case { frame: [66, 70], bin: [2, 5], views: 9, ..PLAIN },
    Case { frame: [50, 75], near: true, bin: [2, 3], ..PLAIN },
    Case { between: true, ..PLAIN },
    // More views than parts of the sums.
    Case { between: true, frame: [32, 32], views: 150, ..PLAIN },
    Case { between: true, frame: [128, 128], modes: [2, 2], sets: 2, ..PLAIN },
    Case { between: true, frame: [128, 256], modes: [2, 1], views: 9, ..PLAIN },
    Case { between: true, frame: [256, 256], views: 19, ..PLAIN },
    Case { between: true, frame: [96, 100], modes: [2, 2], sets: 2, ..PLAIN },
    Case { between: true, frame: [63, 45], bin: [3, 1], modes: [2, 1], ..PLAIN },
    Case { between: true, near: true, ..PLAIN },
    Case { between: true, near: true, frame: [63, 50], modes: [2, 1], sets: 2, ..PLAIN },
];

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn stages_of_the_projections_agree() {
    let Some(cuda) = testing::gpu() else { return };
    for case in CASES {
        projections_agree(case, &cuda, false);
    }
}

/// Stages of DM and RAAR on both.
pub(super) fn projections_agree(case: Case, cuda: &zellige_engine::cuda::Cuda, double: bool) {
    let model = model(case);
    let errors = first_errors(&model);
    let shares = errors.iter().zip(of_frames(&model.mag, model.counted())).map(|(e, [_, v])| e[0] / v);
    let share = shares.sum::<f64>() / errors.len() as f64;
    for rule in [
        Projection { a: -1.0, b: 1.0, c: 2.0, bound: 0.9 * mean(&errors)[0], noise: 0.0, likelihood: true },
        Projection { a: -0.5, b: 0.75, c: 2.0, bound: 0.0, noise: 0.0, likelihood: true },
        // A bound of its own for each frame: some are inside it and some are not.
        Projection { a: -1.0, b: 1.0, c: 2.0, bound: 0.0, noise: share, likelihood: true },
    ] {
        let mut found = Vec::new();
        for (name, mut stages) in all(&model, cuda, double) {
            stages.set_support(Some(&engines::disc(0.7, case.frame)), None).unwrap();
            stages.exits_from_product().unwrap();
            // A start of its own, so that products and exit waves differ.
            let mut state = model.start.clone();
            state.object.iter_mut().enumerate().for_each(|(i, o)| *o *= Complex::from_polar(1.0, 0.3 * (i as f64).sin()));
            stages.set_state(&state).unwrap();
            stages.project(&rule).unwrap();
            let overlap = Overlap {
                probe: true,
                object: true,
                object_first: case.sets == 1,
                tolerance: 1e-3,
                passes: 3,
                object_inertia: 0.1,
                probe_inertia: vec![0.2; case.sets],
                limits: stages::ObjectLimits { clip: Some([0.2, 1.2]), smooth: None },
            };
            stages.overlap(&overlap).unwrap();
            found.push((name, stages.errors().unwrap(), stages.state().unwrap(), stages.intensities(&[1]).unwrap().remove(0)));
        }
        let (_, errors, state, intensity) = &found[0];
        for (name, e, s, i) in &found[1..] {
            let what = format!("{case:?}, {rule:?}, {name}");
            close(&what, e, errors, 2e-5 * part(double));
            assert!(off(&s.probe, &state.probe) < 1e-5 * part(double), "{what}: probe {:e}", off(&s.probe, &state.probe));
            assert!(off(&s.object, &state.object) < 1e-5 * part(double), "{what}: object {:e}", off(&s.object, &state.object));
            let worst = i.iter().zip(intensity).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-4 * part(double) * intensity.iter().copied().fold(0.0, f64::max), "{what}: intensity {worst}");
        }
    }
}

/// Probes that are shifted for all views are used again only while the state has them.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn shifted_probes_are_those_of_the_state() {
    // The second step doubles what rounding made of the first (4e-5 was measured); other probes are wrong in the first digit.
    const LIMIT: f64 = 1e-4;
    const RULE: Projection = Projection { a: -1.0, b: 1.0, c: 2.0, bound: 0.0, noise: 0.0, likelihood: true };
    let Some(cuda) = testing::gpu() else { return };
    let model = model(Case { between: true, ..PLAIN });
    let other: Vec<_> = model.shifts.iter().map(|[y, x]| [-x, 0.5 * y]).collect();
    let twice = State { probe: model.start.probe.iter().map(|p| p * 2.0).collect(), ..model.start.clone() };
    for change in ["probe", "shifts", "roll"] {
        let run = |mut stages: Box<dyn Stages>| {
            stages.exits_from_product().unwrap();
            stages.project(&RULE).unwrap();
            match change {
                "probe" => stages.set_state(&twice).unwrap(),
                "shifts" => stages.set_views(&model.views, &other).unwrap(),
                _ => stages.roll(&[[3, -2]], &[[0, 0]]).unwrap(),
            }
            stages.project(&RULE).unwrap();
            stages.errors().unwrap()
        };
        let found: Vec<_> = all(&model, &cuda, false).into_iter().map(|(_, stages)| run(stages)).collect();
        found[1..].iter().for_each(|errors| close(change, errors, &found[0], LIMIT));
    }
}

/// Exit waves come out of every kind as the CPU has them, and those that are put in are worked on.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn exit_waves_go_out_and_in() {
    // Two steps in single precision, as above.
    const LIMIT: f64 = 1e-4;
    const RULE: Projection = Projection { a: -1.0, b: 1.0, c: 2.0, bound: 0.0, noise: 0.0, likelihood: true };
    let Some(cuda) = testing::gpu() else { return };
    let model = model(Case { modes: [2, 1], ..PLAIN });
    let run = |mut stages: Box<dyn Stages>| {
        assert!(stages.exit_waves().unwrap().is_empty());
        stages.exits_from_product().unwrap();
        stages.project(&RULE).unwrap();
        let waves = stages.exit_waves().unwrap();
        stages.set_exit_waves(&waves.iter().map(|w| w * 2.0).collect::<Vec<_>>()).unwrap();
        stages.project(&RULE).unwrap();
        (waves, stages.errors().unwrap())
    };
    let found: Vec<_> = all(&model, &cuda, false).into_iter().map(|(_, stages)| run(stages)).collect();
    for (waves, errors) in &found[1..] {
        assert!(off(waves, &found[0].0) < LIMIT);
        close("exit waves", errors, &found[0].1, LIMIT);
    }
}

/// Errors of the unconstrained model, by which the bound is chosen.
fn first_errors(model: &Model) -> Vec<[f64; 3]> {
    let mut stages = stages::cpu::new(model, &zellige_engine::device::Cpu::new(2).unwrap(), true);
    stages.exits_from_product().unwrap();
    stages.project(&Projection { a: 0.0, b: 1.0, c: 1.0, bound: 0.0, noise: 0.0, likelihood: true }).unwrap();
    stages.errors().unwrap()
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn trajectories_are_those_of_ptypy() {
    let Some(cuda) = testing::gpu() else { return };
    let mut reference = Reference::open();
    let model = reference.model();
    for (name, engine, processing, limits) in [
        ("DM", EngineName::Dm, None, [(5, 1e-5), (20, 1e-3)]),
        ("DM", EngineName::Dm, Some(FrameProcessing::MultiPass), [(5, 1e-5), (20, 1e-3)]),
        ("RAAR", EngineName::Raar, None, [(5, 1e-5), (20, 1e-3)]),
        ("EPIE", EngineName::Epie, None, [(1, 1e-5), (4, 1e-3)]),
        ("SDR", EngineName::Sdr, None, [(4, 1e-4), (4, 1e-4)]),
    ] {
        let expected = reference.errors(name);
        let ordered = matches!(engine, EngineName::Epie | EngineName::Sdr);
        let orders = if ordered { reference.orders(name, model.views.len()) } else { Vec::new() };
        let mut run = bench(&model, &EngineConfig::new(engine, expected.len() as u64), &cuda, processing);
        for (k, expected) in expected[..limits[1].0].iter().enumerate() {
            let found = run.step(orders.get(k).map(Vec::as_slice));
            let limit = limits.iter().find(|(until, _)| k < *until).unwrap().1;
            for c in 0..if name == "EPIE" { 2 } else { 3 } {
                let off = (found[c] / expected[c] - 1.0).abs();
                assert!(off < limit, "{name} {processing:?}, iteration {k}, error {c}: {} for {}", found[c], expected[c]);
            }
        }
    }
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn sweeps_agree() {
    let Some(cuda) = testing::gpu() else { return };
    for case in [
        PLAIN,
        Case { frame: [128, 128], ..PLAIN },
        Case { frame: [32, 128], sets: 2, ..PLAIN },
        Case { frame: [256, 256], views: 5, ..PLAIN },
        Case { near: true, frame: [128, 128], views: 11, ..PLAIN },
    ] {
        let model = model(case);
        for (config, step) in [(EngineName::Epie, 0.5), (EngineName::Rpie, 0.3), (EngineName::Sdr, 0.5)] {
            let config = EngineConfig {
                object_step: Some(step),
                probe_step: Some(0.2),
                object_clip: Some([0.1, 1.5]),
                ..EngineConfig::new(config, 2)
            };
            let mut here = Bench::new(&model, &config, Compatibility::Ptypy, 2, true);
            here.step(None);
            let (errors, state) = (here.stages.errors().unwrap(), here.stages.state().unwrap());
            for registers in [true, false] {
                let mut there =
                    bench_of(&model, &config, &cuda, KernelConfig { registers, ..KernelConfig::of(&model, cuda.properties(), false) });
                there.step(None);
                let what = format!("{case:?}, {:?}, in registers: {registers}", config.name);
                // Every view starts from what the one before left: noise divided by weak light grows by a third or so from one to the next,
                // 1e-7 to 1e-4 in 23 views (1.4e-4 was measured in the probe).
                close(&what, &there.stages.errors().unwrap(), &errors, 5e-4);
                let found = there.stages.state().unwrap();
                let (probe, object) = (off(&found.probe, &state.probe), off(&found.object, &state.object));
                assert!(probe < 5e-4 && object < 5e-4, "{what}: {probe:e} {object:e}");
            }
        }
    }
}

/// Models of noise, and whether brightness floats.
pub(super) const RULES: [(Noise, bool); 4] =
    [(Noise::Gaussian, false), (Noise::Gaussian, true), (Noise::Poisson, false), (Noise::Euclid, true)];

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn the_likelihood_agrees() {
    let Some(cuda) = testing::gpu() else { return };
    for (case, rules) in [
        // A program for each shape and noise takes the compiler seconds: every noise once, every shape once.
        (PLAIN, &RULES[..]),
        (Case { frame: [128, 128], ..PLAIN }, &RULES[..1]),
        (Case { modes: [3, 2], sets: 2, ..PLAIN }, &RULES[1..3]),
        (Case { frame: [256, 256], views: 5, ..PLAIN }, &RULES[2..3]),
        (Case { frame: [256, 256], modes: [2, 1], views: 5, ..PLAIN }, &RULES[3..]),
        (Case { frame: [64, 128], near: true, ..PLAIN }, &RULES[1..2]),
        (Case { frame: [96, 100], modes: [2, 1], sets: 2, ..PLAIN }, &RULES[..3]),
        (Case { frame: [64, 96], near: true, ..PLAIN }, &RULES[3..]),
        (Case { bin: [2, 2], modes: [2, 1], ..PLAIN }, &RULES[..]),
        (Case { bin: [3, 1], near: true, frame: [96, 64], ..PLAIN }, &RULES[1..2]),
        (Case { frame: [63, 45], modes: [2, 1], sets: 2, ..PLAIN }, &RULES[1..2]),
        (Case { between: true, ..PLAIN }, &RULES[..]),
        (Case { between: true, frame: [128, 128], modes: [2, 1], sets: 2, ..PLAIN }, &RULES[1..2]),
        (Case { between: true, frame: [63, 45], modes: [2, 2], sets: 2, ..PLAIN }, &RULES[1..2]),
        (Case { between: true, near: true, frame: [64, 96], modes: [2, 1], ..PLAIN }, &RULES[1..2]),
    ] {
        likelihood_agrees(case, rules, &cuda, false);
    }
}

/// Gradient and line of a likelihood on both.
pub(super) fn likelihood_agrees(case: Case, rules: &[(Noise, bool)], cuda: &zellige_engine::cuda::Cuda, double: bool) {
    let model = model(case);
    for (noise, floating) in rules.iter().copied() {
        let rule = Likelihood { noise, floating, floating_left_out: case.sets == 2, smoothness: 0.1, probe: true, object: true };
        let run = |mut stages: Box<dyn Stages>| {
            let value = stages.gradient(&rule).unwrap();
            stages.combine(Slot::Direction, [0.0; 2], Slot::Gradient, [-1.0, -2.0]).unwrap();
            let line = stages.line(&rule).unwrap();
            let dots = stages.dot(Slot::Direction, Slot::Gradient).unwrap();
            let errors = stages.errors().unwrap();
            stages.combine(Slot::State, [0.5, 1.0], Slot::Gradient, [1e-3, 1e-4]).unwrap();
            (value, line, dots, errors, stages.state().unwrap())
        };
        let cpu = zellige_engine::device::Cpu::new(2).unwrap();
        let here = run(stages::cpu::new(&model, &cpu, true));
        let there = run(stages::cuda::new(&model, cuda, double).unwrap());
        let what = format!("{case:?}, {noise:?}");
        let same =
            |name: &str, a: f64, b: f64, limit: f64| assert!((a - b).abs() <= limit * part(double) * b.abs(), "{what}: {name} {a} and {b}");
        same("value", there.0, here.0, 1e-5);
        // Terms of both signs: some digits are lost in the sum.
        same("slope", there.1[0], here.1[0], 1e-4);
        // Poisson's goes with one over the square of the modelled counts: pixels that are all but dark, where rounding of brighter ones
        // is a part of their own 1e-3, make most of the sum (1.6e-4 was measured).
        same("curvature", there.1[1], here.1[1], if noise == Noise::Poisson { 2e-3 } else { 1e-4 });
        (0..2).for_each(|i| same("product", there.2[i], here.2[i], 1e-4));
        for (a, b) in there.3.iter().zip(&here.3) {
            same("likelihood", a[1], b[1], 1e-5);
        }
        assert!(off(&there.4.probe, &here.4.probe) < 1e-4 * part(double), "{what}: probe {:e}", off(&there.4.probe, &here.4.probe));
        assert!(off(&there.4.object, &here.4.object) < 1e-4 * part(double), "{what}: object {:e}", off(&there.4.object, &here.4.object));
    }
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn equal_runs_give_equal_bits() {
    let Some(cuda) = testing::gpu() else { return };
    for case in [
        PLAIN,
        Case { frame: [128, 128], views: 150, ..PLAIN },
        Case { frame: [96, 100], modes: [2, 2], ..PLAIN },
        Case { between: true, modes: [2, 1], ..PLAIN },
    ] {
        let model = model(case);
        let once = || {
            let mut run = bench(&model, &EngineConfig::new(EngineName::Dm, 6), &cuda, None);
            let errors: Vec<_> = (0..6).map(|_| run.step(None)).collect();
            (errors, run.stages.state().unwrap())
        };
        assert_eq!(once(), once(), "{case:?}");
    }
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn a_saved_state_goes_on_the_same_way() {
    let Some(cuda) = testing::gpu() else { return };
    for (name, between) in [(EngineName::Dm, false), (EngineName::Dm, true), (EngineName::Sdr, true), (EngineName::Ml, true)] {
        goes_on(name, between, &cuda, false);
    }
}

/// A saved state goes on with the same bits.
pub(super) fn goes_on(name: EngineName, between: bool, cuda: &zellige_engine::cuda::Cuda, double: bool) {
    let model = model(Case { between, ..PLAIN });
    let config = EngineConfig::new(name, 6);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let bench = || bench_of(&model, &config, cuda, KernelConfig::of(&model, cuda.properties(), double));
    let mut run = bench();
    for _ in 0..3 {
        run.step(None);
    }
    if between {
        // Positions that were refined: waves have gone with them.
        let shifts: Vec<[f64; 2]> = model.shifts.iter().map(|s| s.map(|d| 0.8 * d)).collect();
        run.stages.set_views(&model.views, &shifts).unwrap();
    }
    let mut writer = zellige_engine::checkpoint::Writer::create(&path, "ptycho").unwrap();
    run.stages.save("stages.", &mut writer).unwrap();
    writer.finish().unwrap();
    let mut again = bench();
    again.stages.restore("stages.", &zellige_engine::checkpoint::Reader::open(&path, "ptycho").unwrap()).unwrap();
    (again.k, again.memory) = (run.k, run.memory);
    for _ in 0..3 {
        assert_eq!(run.step(None), again.step(None), "{name:?} {between}");
    }
    assert_eq!(run.stages.state().unwrap(), again.stages.state().unwrap(), "{name:?} {between}");
}
