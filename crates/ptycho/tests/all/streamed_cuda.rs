//! Runs whose frames come and go against runs that hold them all on the device: the same bits. Skipped without a GPU.

use num_complex::Complex;
use zellige_engine::cuda::Properties;
use zellige_engine::device::Device;
use zellige_engine::profile::Profiler;
use zellige_engine::sim::{Environment, Solver};
use zellige_engine::testing;
use zellige_ptycho::Ptycho;
use zellige_ptycho::config::{Compatibility, Config, EngineConfig, EngineName, MemoryConfig, NoiseName, ScanConfig};
use zellige_ptycho::engines::{self, EngineState, ProblemSize};
use zellige_ptycho::memory::{KeptData, MemoryBudget};
use zellige_ptycho::model::{MASKED, Model, Power, View};
use zellige_ptycho::stages::Stages;
use zellige_ptycho::stages::cuda::stream::plan::{self, StreamingForecast, StreamingPlan};
use zellige_ptycho::stages::cuda::{new, new_within};

use super::common::Bench;
use super::common::twins::{Case, PLAIN, model, off};
use super::streamed::{correlated, half_scans};

fn demand(name: EngineName) -> KeptData {
    demand_of(&EngineConfig::new(name, 1))
}

/// Data that the solver keeps for an input of this engine.
pub(super) fn demand_of(engine: &EngineConfig) -> KeptData {
    Config::new(ScanConfig::default(), engine.clone()).memory_budget(1.0).demand
}

/// Magnitudes whose squares are counts.
pub(super) fn counted(mut model: Model) -> Model {
    for m in model.mag.iter_mut().filter(|m| **m != MASKED) {
        *m = (*m * *m).round().sqrt();
    }
    model.power = Power::of(&model.mag, model.counted());
    model
}

fn run(model: &Model, config: &EngineConfig, stages: Box<dyn Stages>) -> Bench {
    let engine = engines::engine(config, &ProblemSize::of(model, Compatibility::None, 1), 0);
    let mut stages = stages;
    engines::begin(&*engine, &mut *stages, model.frame).unwrap();
    Bench { stages, engine, memory: EngineState::default(), k: 0 }
}

/// Steps of the allowances that are tried: fine enough for those of small frames, of which hardly a block ever stays away.
const STEPS: u64 = 500;

/// Allowances within which all, some and none of the blocks stay on the device.
pub(super) fn streaming_plans(model: &Model, device: &Properties, demand: KeptData, half: bool) -> Vec<(StreamingForecast, StreamingPlan)> {
    let at = |allowance| plan::outline(model, device, StreamingPlan { allowance, half, demand });
    let all = at(1 << 40).unwrap();
    let least = all.need.fixed;
    let span = all.memory - least + (8 << 20);
    let mut found: Vec<(StreamingForecast, StreamingPlan)> = Vec::new();
    let mut seen = [false; 3];
    for i in (0..STEPS).rev() {
        let allowance = least + span * i / STEPS;
        let Ok(outline) = at(allowance) else { continue };
        let layout = outline.layout;
        let kind = usize::from(layout.streamed > 0) + usize::from(layout.streamed == layout.blocks());
        if layout.blocks() > 3 && !std::mem::replace(&mut seen[kind], true) || kind == 0 && found.is_empty() {
            assert!(outline.memory <= allowance);
            found.push((outline, StreamingPlan { allowance, half, demand }));
        }
    }
    assert!(seen[1], "no allowance makes blocks stay and go: {seen:?}");
    found
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn streamed_runs_give_the_bits_of_resident_ones() {
    let Some(cuda) = testing::gpu() else { return };
    let dm = |passes| EngineConfig { overlap_passes: Some(passes), overlap_tolerance: Some(1e-4), ..EngineConfig::new(EngineName::Dm, 4) };
    let raar = EngineConfig {
        object_first: Some(false),
        probe_update_start: Some(0),
        object_clip: Some([0.1, 1.5]),
        ..EngineConfig::new(EngineName::Raar, 4)
    };
    let ml = |noise| EngineConfig {
        noise: Some(noise),
        smoothness: Some(0.1),
        floating_intensities: Some(noise == NoiseName::Gaussian),
        ..EngineConfig::new(EngineName::Ml, 4)
    };
    let steps = |name| EngineConfig { object_step: Some(0.5), probe_step: Some(0.2), ..EngineConfig::new(name, 3) };
    let many = Case { views: 61, ..PLAIN };
    let veiled = EngineConfig {
        probe_fourier_support: Some(0.6),
        probe_support: Some(0.7),
        object_smooth: Some(1.0),
        probe_update_start: Some(0),
        ..EngineConfig::new(EngineName::Dm, 4)
    };
    let lsqml_of = |batch| EngineConfig { batch: Some(batch), object_clip: Some([0.1, 1.5]), ..EngineConfig::new(EngineName::Lsqml, 2) };
    let lsqml = lsqml_of(1);
    // A tenth of the views at once, as by default; and batches whose last one is a single view.
    let tenth = EngineConfig { batch: None, ..lsqml.clone() };
    let batches = |name, batch| EngineConfig { batch: Some(batch), ..steps(name) };
    for (case, configs) in [
        (
            many,
            vec![
                veiled,
                lsqml,
                tenth.clone(),
                batches(EngineName::Epie, 5),
                EngineConfig { object_norm_is_global: Some(true), ..steps(EngineName::Epie) },
                batches(EngineName::Sdr, 4),
                dm(3),
                raar.clone(),
                ml(NoiseName::Gaussian),
                ml(NoiseName::Poisson),
                EngineConfig { wavefield_preconditioner: Some(true), line_steps: Some(2), ..ml(NoiseName::Gaussian) },
                steps(EngineName::Epie),
                steps(EngineName::Sdr),
            ],
        ),
        (Case { frame: [128, 128], views: 40, ..PLAIN }, vec![dm(2), steps(EngineName::Rpie), ml(NoiseName::Euclid)]),
        (Case { modes: [3, 2], sets: 2, views: 31, ..PLAIN }, vec![dm(2), raar.clone(), steps(EngineName::Epie), ml(NoiseName::Gaussian)]),
        (Case { frame: [256, 256], views: 17, ..PLAIN }, vec![dm(2), steps(EngineName::Epie)]),
        // Two sections of views.
        (Case { frame: [32, 32], views: 1100, ..PLAIN }, vec![dm(2), ml(NoiseName::Gaussian)]),
        (Case { frame: [96, 100], modes: [2, 2], views: 29, ..PLAIN }, vec![dm(2)]),
        (Case { frame: [64, 96], near: true, views: 29, ..PLAIN }, vec![dm(2)]),
        (Case { frame: [61, 45], modes: [2, 1], ..many }, vec![dm(2), ml(NoiseName::Gaussian)]),
        (
            Case { between: true, modes: [2, 1], ..many },
            vec![dm(2), raar.clone(), steps(EngineName::Epie), steps(EngineName::Sdr), ml(NoiseName::Gaussian), ml(NoiseName::Poisson)],
        ),
        (Case { between: true, frame: [61, 45], sets: 2, ..many }, vec![dm(2), lsqml_of(3), tenth, ml(NoiseName::Gaussian)]),
        (Case { between: true, near: true, ..many }, vec![dm(2), steps(EngineName::Sdr), ml(NoiseName::Gaussian)]),
        (Case { bin: [2, 1], ..many }, vec![dm(2), steps(EngineName::Epie), ml(NoiseName::Gaussian), ml(NoiseName::Poisson)]),
    ] {
        for counts in [true, false] {
            let model = if counts { counted(model(case)) } else { model(case) };
            for config in &configs {
                let mut whole = run(&model, config, new(&model, &cuda, false).unwrap());
                let expected: Vec<_> = (0..config.iterations()).map(|_| whole.step(None)).collect();
                let (state, errors) = (whole.stages.state().unwrap(), whole.stages.errors().unwrap());
                let streaming_plans = streaming_plans(&model, cuda.properties(), demand_of(config), false);
                // If a frame takes little memory compared with its work buffers, there is always some for a resident block.
                let small = case.between || case.bin != [1, 1] || case.frame[1] % 2 == 1 || case.frame[1] == 32;
                assert!(
                    small || streaming_plans.iter().any(|(o, _)| o.layout.streamed == o.layout.blocks()),
                    "{case:?}: no block ever stays away"
                );
                for (outline, streaming) in streaming_plans {
                    assert_eq!(outline.need.raw, if counts { 2 } else { 4 } * model.counted() as u64);
                    let mut part = run(&model, config, new_within(&model, &cuda, streaming).unwrap());
                    let found: Vec<_> = (0..config.iterations()).map(|_| part.step(None)).collect();
                    let what = format!("{case:?}, {:?}, {:?}", config.name, outline.layout);
                    assert_eq!(found, expected, "{what}: errors");
                    assert!(part.stages.state().unwrap() == state, "{what}: state");
                    assert_eq!(part.stages.errors().unwrap(), errors, "{what}: errors of the views");
                    assert!(part.stages.memory() <= streaming.allowance, "{what}: {} of {}", part.stages.memory(), streaming.allowance);
                }
            }
        }
    }
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn half_precision_keeps_waves_to_its_rounding() {
    let Some(cuda) = testing::gpu() else { return };
    let model = counted(model(Case { views: 61, ..PLAIN }));
    // With a bound by the input: at one by the counts some frames are just inside with one rounding and outside with the other.
    let config = EngineConfig { overlap_passes: Some(1), fourier_bound: Some(0.25), ..EngineConfig::new(EngineName::Dm, 3) };
    let mut whole = run(&model, &config, new(&model, &cuda, false).unwrap());
    for _ in 0..3 {
        whole.step(None);
    }
    let state = whole.stages.state().unwrap();
    let mut one = None;
    for (outline, streaming) in streaming_plans(&model, cuda.properties(), demand(EngineName::Dm), true) {
        let mut part = run(&model, &config, new_within(&model, &cuda, streaming).unwrap());
        for _ in 0..3 {
            part.step(None);
        }
        let found = part.stages.state().unwrap();
        // 11 bits of each part: 2^-12 of a value, which three iterations of noise may double each time.
        let far = off(&found.object, &state.object);
        assert!(far > 1e-7 && far < 8.0 / 4096.0, "{far:e}, {outline:?}");
        // The choice of resident blocks makes no difference here either.
        assert!(*one.get_or_insert_with(|| found.clone()) == found, "{:?}", outline.layout);
    }
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn a_streamed_state_goes_on_the_same_way() {
    let Some(cuda) = testing::gpu() else { return };
    let model = counted(model(Case { views: 61, modes: [2, 1], ..PLAIN }));
    let config = EngineConfig::new(EngineName::Dm, 6);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    for half in [false, true] {
        let streaming_plans = streaming_plans(&model, cuda.properties(), demand(EngineName::Dm), half);
        let mut first = run(&model, &config, new_within(&model, &cuda, streaming_plans[1].1).unwrap());
        for _ in 0..3 {
            first.step(None);
        }
        first.stages.roll(&[[3, -5]], &[[3, -5]]).unwrap();
        let turn = [Complex::new(0.6, 0.0), Complex::new(0.0, 0.8), Complex::new(0.0, 0.8), Complex::new(0.6, 0.0)];
        first.stages.mix_probe(&turn).unwrap();
        let mut writer = zellige_engine::checkpoint::Writer::create(&path, "ptycho").unwrap();
        first.stages.save("stages.", &mut writer).unwrap();
        writer.finish().unwrap();
        let expected = [first.step(None), first.step(None)];
        // Other blocks than those that wrote it.
        for (_, streaming) in &streaming_plans {
            let mut again = run(&model, &config, new_within(&model, &cuda, *streaming).unwrap());
            again.stages.restore("stages.", &zellige_engine::checkpoint::Reader::open(&path, "ptycho").unwrap()).unwrap();
            again.k = 3;
            assert_eq!([again.step(None), again.step(None)], expected);
            assert!(again.stages.state().unwrap() == first.stages.state().unwrap());
        }
    }
}

/// Half-scans whose blocks come and go correlate as those that stay.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn half_scans_in_blocks_correlate_alike() {
    let Some(cuda) = testing::gpu() else { return };
    let (config, start, half) = half_scans();
    let device = Device::Cuda(cuda.clone());
    let budget = MemoryBudget { deterministic: true, ..config.memory_budget(1.0) };
    let held = correlated(&config, &start, &device, &budget);
    for (outline, streaming) in streaming_plans(&half, cuda.properties(), budget.demand, false) {
        let found = correlated(&config, &start, &device, &MemoryBudget { allowance: Some(streaming.allowance), ..budget.clone() });
        assert!(found == held, "{:?}", outline.layout);
    }
}

/// Shifts do to waves that come and go what they do to waves that stay.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn waves_are_moved_alike() {
    let Some(cuda) = testing::gpu() else { return };
    let model = counted(model(Case { views: 61, modes: [2, 1], ..PLAIN }));
    let config = EngineConfig::new(EngineName::Dm, 6);
    let (_, streaming) = streaming_plans(&model, cuda.properties(), demand(EngineName::Dm), false)[1];
    let runs = [new(&model, &cuda, false).unwrap(), new_within(&model, &cuda, streaming).unwrap()].map(|stages| {
        let mut run = run(&model, &config, stages);
        run.step(None);
        run.stages.roll(&[[2, 7]], &[[2, 7]]).unwrap();
        (run.step(None), run.stages.state().unwrap())
    });
    assert_eq!(runs[0].0, runs[1].0);
    assert!(runs[0].1 == runs[1].1);
}

/// Waves that are kept go with their probes to other positions between the pixels.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn waves_are_turned_alike() {
    let Some(cuda) = testing::gpu() else { return };
    for near in [false, true] {
        let model = counted(model(Case { views: 61, between: true, near, ..PLAIN }));
        let shifts: Vec<[f64; 2]> = model.shifts.iter().map(|s| [0.5 * s[0] + 0.1, s[1] - 0.2]).collect();
        let config = EngineConfig::new(EngineName::Dm, 6);
        let (_, streaming) = streaming_plans(&model, cuda.properties(), demand(EngineName::Dm), false)[1];
        let runs = [new(&model, &cuda, false).unwrap(), new_within(&model, &cuda, streaming).unwrap()].map(|stages| {
            let mut run = run(&model, &config, stages);
            run.step(None);
            run.stages.set_views(&model.views, &shifts).unwrap();
            (run.step(None), run.stages.state().unwrap())
        });
        assert_eq!(runs[0].0, runs[1].0, "near: {near}");
        assert!(runs[0].1 == runs[1].1, "near: {near}");
    }
}

/// Views that are asked where they would fit better answer alike.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn places_are_judged_alike() {
    let Some(cuda) = testing::gpu() else { return };
    for case in [
        Case { views: 61, ..PLAIN },
        Case { frame: [96, 100], views: 29, ..PLAIN },
        Case { between: true, views: 61, ..PLAIN },
        Case { between: true, near: true, views: 61, ..PLAIN },
    ] {
        let model = counted(model(case));
        let moved: Vec<[i32; 2]> = (0..case.views as i32).map(|n| if n % 3 == 0 { [0, 0] } else { [-(n % 2), 0] }).collect();
        let fits = |v: &View, by: [i32; 2]| v.row + by[0] >= 0 && v.col + by[1] >= 0;
        let moved: Vec<[i32; 2]> = moved.iter().zip(&model.views).map(|(by, v)| if fits(v, *by) { *by } else { [0, 0] }).collect();
        let (_, streaming) = streaming_plans(&model, cuda.properties(), demand(EngineName::Epie), false)[1];
        let [whole, part] = [new(&model, &cuda, false).unwrap(), new_within(&model, &cuda, streaming).unwrap()]
            .map(|mut stages| (stages.trial(&moved).unwrap(), stages.slope().unwrap()));
        assert_eq!(whole, part, "{case:?}");
    }
}

/// The example, as the command line runs it, against the same without its limit.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn the_example_gives_what_it_would_in_more_memory() {
    let Some(cuda) = testing::gpu() else { return };
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/ptycho");
    let mut config = zellige_engine::config::load::<Ptycho>(folder.join("streamed.toml"), &[]).unwrap().config;
    assert_eq!(Ptycho::only_on_cpu(&config), Vec::<&str>::new());
    let environment = Environment::new(Device::Cuda(cuda), folder, 1);
    let run = |mut solver: Ptycho| {
        let begin = std::time::Instant::now();
        let mut errors = Vec::new();
        while solver.outcome().is_none() {
            solver.step(&mut Profiler::off()).unwrap();
            errors.push(solver.whole().errors().unwrap());
        }
        println!("{:.1} s, errors {:?}, {:?}, {:?}", begin.elapsed().as_secs_f64(), errors[0], errors[59], errors.last());
        for check in solver.checks().unwrap() {
            println!("{check:?}");
        }
        (errors, solver.whole().state().unwrap(), solver.whole().stages.memory())
    };
    let prepared = Ptycho::prepare(&config, &environment).unwrap();
    let plan = Ptycho::plan_prepared(&prepared, &config, &environment).unwrap();
    plan.lines.iter().for_each(|(label, line)| println!("{label}: {line}"));
    assert!(plan.lines.iter().any(|(label, line)| label == "blocks" && line.contains("are streamed")), "{:?}", plan.lines);
    let there = run(Ptycho::setup_prepared(prepared, &config, &environment).unwrap());
    assert!(there.2 <= config.memory.bytes().unwrap() && plan.memory <= config.memory.bytes().unwrap());
    config.memory = MemoryConfig::default();
    let prepared = Ptycho::prepare(&config, &environment).unwrap();
    let plan = Ptycho::plan_prepared(&prepared, &config, &environment).unwrap();
    assert!(plan.lines.iter().all(|(label, _)| label != "blocks"));
    let whole = run(Ptycho::setup_prepared(prepared, &config, &environment).unwrap());
    println!("{} and {} bytes held", there.2, whole.2);
    assert_eq!(there.0, whole.0);
    assert!(there.1 == whole.1);
}

/// Times of iterations: run by hand with `--ignored --nocapture` on a quiet GPU.
#[test]
#[ignore = "a measurement"]
fn times() {
    let Some(cuda) = testing::gpu() else { return };
    let [up, down] = cuda.host_rates().unwrap();
    println!("to the device {:.1} GB/s, back {:.1} GB/s", up * 1e-9, down * 1e-9);
    let views = 24_000;
    let mut model = counted(model(Case { frame: [128; 2], views: 1, ..PLAIN }));
    let side = (views as f64).sqrt().ceil() as usize;
    let step = 12;
    model.views = (0..views).map(|n| View { row: (n / side * step) as i32, col: (n % side * step) as i32, ..View::default() }).collect();
    model.shifts = vec![[0.0; 2]; views];
    model.storages[0].shape = [128 + side * step; 2];
    let pixels = model.storages[0].layer();
    model.start.object = (0..pixels).map(|i| Complex::from_polar(0.8, 0.5 * (i as f64 * 0.01).sin())).collect();
    model.mag = model.mag.repeat(views);
    for (name, half) in [(EngineName::Dm, false), (EngineName::Dm, true), (EngineName::Ml, false)] {
        let config = EngineConfig { probe_update_start: Some(0), overlap_passes: Some(1), ..EngineConfig::new(name, 100) };
        let demand = demand(name);
        let held = plan::resident(&model, cuda.properties(), demand);
        let time = |stages: Box<dyn Stages>| {
            let mut run = run(&model, &config, stages);
            let mut off = Profiler::off();
            let mut times: Vec<f64> = (0..6)
                .map(|_| {
                    let begin = std::time::Instant::now();
                    run.engine.iterate(&mut *run.stages, run.k, &mut run.memory, None, &mut off).unwrap();
                    run.k += 1;
                    run.stages.errors().unwrap();
                    begin.elapsed().as_secs_f64() * 1e3
                })
                .skip(2)
                .collect();
            times.sort_by(f64::total_cmp);
            (times[0], times[1], run.stages.memory() as f64 * 1e-9)
        };
        let (least, median, memory) = time(new(&model, &cuda, false).unwrap());
        println!("{name:?}, half {half}: all on the device {least:.2} ms (median {median:.2}), {memory:.2} GB");
        // All in blocks that stay; the frames alone twice the memory for frames; half of what a resident run takes; next to nothing.
        let frames = 2.0 * (views * 128 * 128) as f64;
        let fixed = (held as f64 - if demand.waves { 20.0 } else { 12.0 } / 2.0 * frames).max(0.0);
        for (what, allowance) in [
            ("all in blocks", 1e12),
            ("half of resident", 0.5 * held as f64),
            ("half of what is kept", fixed + 0.5 * frames * if demand.waves { if half { 3.0 } else { 5.0 } } else { 1.0 }),
            ("a tenth of resident", 0.1 * held as f64),
        ] {
            let streaming = StreamingPlan { allowance: allowance as u64, half, demand };
            let outline = match plan::outline(&model, cuda.properties(), streaming) {
                Ok(outline) => outline,
                Err(error) => {
                    println!("  {what}: {error}");
                    continue;
                }
            };
            let set_up = std::time::Instant::now();
            let stages = new_within(&model, &cuda, streaming).unwrap();
            let set_up = set_up.elapsed().as_secs_f64();
            let (least, median, memory) = time(stages);
            let copies = [outline.traffic[0] as f64 / up, outline.traffic[1] as f64 / down].map(|t| t * 1e3);
            let limit = copies[0].max(copies[1]);
            println!(
                "  {what}: {least:.2} ms (median {median:.2}), copies alone {:.2} up, {:.2} down, over the larger {:.2}; {memory:.2} GB of {:.2}, {:?}; set up in {set_up:.1} s",
                copies[0],
                copies[1],
                least / limit,
                streaming.allowance as f64 * 1e-9,
                outline.layout
            );
        }
    }
}
