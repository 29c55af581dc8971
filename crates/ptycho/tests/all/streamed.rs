//! Runs on the CPU whose frames and exit waves lie in files.

use zellige_engine::cuda::Properties;
use zellige_engine::device::{Cpu, Device};
use zellige_engine::profile::Profiler;
use zellige_ptycho::config::{Compatibility, Config, EngineConfig, EngineName, ScanConfig};
use zellige_ptycho::engines::{self, EngineState, ProblemSize};
use zellige_ptycho::half_sets::HalfSets;
use zellige_ptycho::memory::{KeptData, MemoryBudget};
use zellige_ptycho::model::{Model, Power};
use zellige_ptycho::reconstruction::Reconstruction;
use zellige_ptycho::resolution::RingCorrelation;
use zellige_ptycho::scan::{Beam, Frames, Mask, Propagation, Scan};
use zellige_ptycho::setup;
use zellige_ptycho::simulate::SimulateConfig;
use zellige_ptycho::stages::cuda::stream::plan::{self, StreamingPlan};
use zellige_ptycho::stages::{self, Stages, cpu};

use super::common::Bench;
use super::common::twins::{Case, PLAIN, model};
use super::physics::{from_truth, input};
use super::streamed_cuda::{counted, streaming_plans};

#[test]
fn arrays_in_files_give_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let device = Cpu::new(2).unwrap();
    for case in [
        PLAIN,
        Case { frame: [48, 40], modes: [2, 2], sets: 2, near: true, views: 11, ..PLAIN },
        Case { frame: [48, 60], bin: [2, 3], modes: [2, 1], views: 11, ..PLAIN },
    ] {
        let model = model(case);
        for name in [EngineName::Dm, EngineName::Sdr, EngineName::Rpie, EngineName::Ml, EngineName::Lsqml] {
            let config = EngineConfig::new(name, 3);
            let run = |mut stages: Box<dyn Stages>| {
                let engine = engines::engine(&config, &ProblemSize::of(&model, Compatibility::None, 1), 0);
                engines::begin(&*engine, &mut *stages, model.frame).unwrap();
                let mut run = Bench { stages, engine, memory: EngineState::default(), k: 0 };
                let errors: Vec<_> = (0..3).map(|_| run.step(None)).collect();
                (errors, run.stages.state().unwrap(), run.stages.memory())
            };
            let held = run(cpu::new(&model, &device, false));
            let mapped = run(cpu::new_in(&model, &device, false, folder.path()).unwrap());
            assert_eq!(held.0, mapped.0, "{case:?}, {name:?}");
            assert!(held.1 == mapped.1, "{case:?}, {name:?}");
            // Data in files take no memory: moduli, and two numbers a mode where exit waves are kept. Rows are padded.
            let least = stages::mapped(&model, &KeptData { waves: name.keeps_exits(), ..KeptData::default() });
            assert!(held.2 >= mapped.2 + least, "{name:?}: {} and {}, {least} less", held.2, mapped.2);
        }
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn what_is_allowed_decides() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(PLAIN);
    let mut config = Config::new(ScanConfig::default(), EngineConfig::new(EngineName::Dm, 2));
    config.memory.scratch = Some(folder.path().to_owned());
    let device = Device::Cpu(Cpu::new(1).unwrap());
    let mut held = Vec::new();
    for size in [None, Some("1 GiB"), Some("100 KiB")] {
        config.memory.device = size.map(str::to_owned);
        let mut run = Reconstruction::new(&config, model.clone(), &device, 1).unwrap();
        run.advance(&mut Profiler::off()).unwrap();
        held.push(run.stages.memory());
    }
    assert_eq!(held[0], held[1]);
    assert!(held[2] < held[0] / 2, "{held:?}");
    config.memory.scratch = Some(folder.path().join("missing"));
    let error = Reconstruction::new(&config, model, &device, 1).err().unwrap();
    assert!(error.to_string().contains("missing"), "{error}");
}

/// A scan with its start, and the model of its even frames.
pub(super) fn half_scans() -> (Config, Model, Model) {
    let scan = SimulateConfig { photons: 1e6, ..SimulateConfig::case(144, 64, 1) };
    let mut config = input(scan, EngineConfig::new(EngineName::Dm, 3));
    config.engine.push(EngineConfig::new(EngineName::Ml, 3));
    config.frc = true;
    let (start, _) = from_truth(&config, 0.1);
    let mag: Vec<f32> = start.mag.chunks(start.counted()).step_by(2).flatten().copied().collect();
    let half = Model {
        views: start.views.iter().step_by(2).copied().collect(),
        shifts: start.shifts.iter().step_by(2).copied().collect(),
        power: Power::of(&mag, start.counted()),
        mag,
        ..start.clone()
    };
    (config, start, half)
}

/// Correlations of the half-scans' objects, each half within `budget`.
pub(super) fn correlated(config: &Config, start: &Model, device: &Device, budget: &MemoryBudget) -> Vec<(usize, RingCorrelation)> {
    let mut half_sets = HalfSets::new(config, start, device, 7, budget).unwrap();
    for _ in 0..config.iterations() {
        half_sets.advance(&mut Profiler::off()).unwrap();
    }
    half_sets.rings().unwrap()
}

/// Half-scans whose frames lie in files correlate, bit for bit, as those that are held. (On a GPU: `streamed_cuda`.)
#[test]
fn half_scans_in_files_correlate_alike() {
    let folder = tempfile::tempdir().unwrap();
    let (config, start, half) = half_scans();
    let cpu = Device::Cpu(Cpu::new(2).unwrap());
    let little = MemoryBudget { allowance: Some(100 << 10), folder: Some(folder.path().to_owned()), ..config.memory_budget(1.0) };
    assert!(little.folder_for(&half).is_some());
    let held = correlated(&config, &start, &cpu, &config.memory_budget(1.0));
    assert_eq!(held.len(), 1);
    assert!(correlated(&config, &start, &cpu, &little) == held);
    // And there is something to be tried on a GPU.
    assert!(streaming_plans(&half, &device(), config.memory_budget(1.0).demand, false).len() > 1);
}

fn device() -> Properties {
    Properties {
        name: "some".into(),
        capability: (9, 0),
        multiprocessors: 132,
        l2: 50 << 20,
        shared_per_block: 227 << 10,
        shared_per_multiprocessor: 228 << 10,
        memory: 80 << 30,
        cooperative: true,
    }
}

/// A GPU's plan: every block takes the largest batch, or the run is refused before it begins; and what a batch takes is counted.
#[test]
fn batches_are_planned_for() {
    let device = device();
    let model = model(Case { views: 61, ..PLAIN });
    let demand = |engines: &[EngineConfig]| {
        let mut config = Config::new(ScanConfig::default(), engines[0].clone());
        config.engine = engines.to_vec();
        config.memory_budget(1.0).demand
    };
    let dm = EngineConfig::new(EngineName::Dm, 1);
    let of = |name, batch| EngineConfig { batch, ..EngineConfig::new(name, 1) };
    let wave = (8 * model.pixels()) as u64;
    let plain = plan::resident(&model, &device, demand(std::slice::from_ref(&dm)));
    for (engines, batches) in [
        (vec![of(EngineName::Lsqml, None)], [7, 0]),
        (vec![of(EngineName::Epie, Some(20)), of(EngineName::Lsqml, Some(9))], [20, 0]),
        (vec![of(EngineName::Sdr, Some(30))], [30, 30]),
        (vec![of(EngineName::Rpie, Some(1000))], [61, 0]),
        (vec![dm.clone(), of(EngineName::Lsqml, None)], [7, 0]),
        (vec![dm.clone()], [0, 0]),
    ] {
        let demand = demand(&engines);
        assert_eq!([false, true].map(|waves| demand.batch(waves, 61)), batches, "{engines:?}");
        let largest = batches[0].max(batches[1]);
        if demand.waves {
            assert!(plan::resident(&model, &device, demand) >= plain + largest as u64 * wave, "{engines:?}");
        }
        let at = |allowance| plan::outline(&model, &device, StreamingPlan { allowance, half: false, demand });
        let (least, all) = (at(1 << 40).unwrap().need.fixed, at(1 << 40).unwrap().memory);
        let (mut streamed, mut refused) = (0, 0);
        for i in 0..=100 {
            let allowance = least + (all - least) * i / 100;
            match at(allowance) {
                Ok(outline) => {
                    let layout = outline.layout;
                    assert!(layout.block >= batches[usize::from(demand.waves)].max(1) && outline.memory <= allowance, "{layout:?}");
                    streamed += usize::from(layout.streamed > 0);
                }
                Err(error) => {
                    // Blocks with waves hold a batch of engines without them before these are asked.
                    let named = batches == [0, 0] || demand.waves && batches[1] == 0 || error.to_string().contains("`batch`");
                    assert!(named, "{engines:?}: {error}");
                    refused += 1;
                }
            }
        }
        // Half of the views on their way three times are more than all of them.
        assert!(refused > 0 && (streamed > 0 || largest >= 30), "{engines:?}: {streamed} {refused}");
    }
}

/// Finds the allowances that `streamed_cuda` tries on a GPU: those within which blocks of whole batches stay, and stay and go, and
/// all go.
#[test]
fn batches_have_allowances_to_be_tried_in() {
    for (case, engine) in [
        (Case { views: 61, ..PLAIN }, EngineConfig::new(EngineName::Lsqml, 2)),
        (Case { views: 61, ..PLAIN }, EngineConfig { batch: Some(5), ..EngineConfig::new(EngineName::Epie, 3) }),
        (Case { views: 61, ..PLAIN }, EngineConfig { batch: Some(4), ..EngineConfig::new(EngineName::Sdr, 3) }),
        (Case { between: true, frame: [61, 45], sets: 2, views: 61, ..PLAIN }, EngineConfig::new(EngineName::Lsqml, 2)),
    ] {
        let demand = Config::new(ScanConfig::default(), engine).memory_budget(1.0).demand;
        for model in [model(case), counted(model(case))] {
            let found = streaming_plans(&model, &device(), demand, false);
            let gone = found.iter().any(|(o, _)| o.layout.streamed == o.layout.blocks());
            assert!(gone || case.between, "{case:?}, {demand:?}: {found:?}");
        }
    }
}

/// Time to start: run by hand with `--ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn a_million_views() {
    let (side, frame) = (1000, [16, 16]);
    let pixels = frame[0] * frame[1];
    let beam = Beam { wavelength: 1e-10, distance: 1.0, pixel: [1e-4; 2], propagation: Propagation::Far };
    let step = beam.resolution(frame)[0] * 1.7;
    let scan = || Scan {
        name: "million".into(),
        frames: Frames::Counts((0..side * side * pixels).map(|i| (((i * 2_654_435_761) >> 20) & 1023) as u16).collect()),
        shape: frame,
        mask: Mask::All,
        positions: (0..side * side).map(|n| [(n / side) as f64 * step, (n % side) as f64 * step]).collect(),
        beam,
        probe: None,
        object: None,
        truth: None,
        notes: Vec::new(),
    };
    let config = Config::new(
        ScanConfig { simulate: Some(SimulateConfig::default()), ..ScanConfig::default() },
        EngineConfig::new(EngineName::Epie, 1),
    );
    let device = Cpu::new(0).unwrap();
    let mut scans = [scan()];
    let mut begin = std::time::Instant::now();
    let mut told = |what: &str| {
        println!("{what}: {:.3} s", begin.elapsed().as_secs_f64());
        begin = std::time::Instant::now();
    };
    let model = setup::model(&config, &mut scans, 1).unwrap();
    told("model");
    let problem = ProblemSize::of(&model, config.compatibility, 1);
    let engine = engines::engine(&config.engine[0], &problem, 0);
    told("engine");
    let mut stages = cpu::new(&model, &device, false);
    engines::begin(&*engine, &mut *stages, model.frame).unwrap();
    told("stages on the processor");
    if let Some(gpu) = zellige_engine::testing::gpu() {
        let mut stages = stages::cuda::new(&model, &gpu, false).unwrap();
        told("stages on the GPU, kernels compiled");
        engines::begin(&*engine, &mut *stages, model.frame).unwrap();
        stages = stages::cuda::new(&model, &gpu, false).unwrap();
        told("stages on the GPU again");
        drop(stages);
    }
}
