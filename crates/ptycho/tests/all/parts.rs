//! Runs cut into parts: object, probe, errors, positions and checkpoints have the bits of a run in one part.

use std::path::Path;

use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::device::{Cpu, Device};
use zellige_engine::error::Result;
use zellige_engine::links::{Links, inside};
use zellige_engine::profile::Profiler;
use zellige_engine::record::Row;
use zellige_engine::sim::{Environment, Outcome, Solver};
use zellige_engine::testing::parts::model_tells_the_traffic;
use zellige_ptycho::config::{
    Config, EngineConfig, EngineName, NoiseName, PositionConfig, PositionMethod, Precision, ProbeStart, ScanConfig, WaveStorage,
};
use zellige_ptycho::data::{Negative, write};
use zellige_ptycho::memory::ObjectUpdate;
use zellige_ptycho::model::State;
use zellige_ptycho::scan::{Frames, Propagation};
use zellige_ptycho::simulate::{Aperture, SimulateConfig};
use zellige_ptycho::{Ptycho, stages};

use super::physics::input;

/// A small scan with noise: more views than ML takes at once in one part, and their number is no multiple of those of parts.
pub(crate) fn scan(modes: usize) -> SimulateConfig {
    SimulateConfig { photons: 1e5, ..SimulateConfig::case(75, 32, modes) }
}

/// A scan whose frames tell the defocus of their probe.
fn defocused() -> SimulateConfig {
    let mut made = SimulateConfig { photons: 1e7, ..SimulateConfig::case(100, 64, 1) };
    (made.illumination.aperture, made.illumination.inner, made.illumination.defocus) = (Aperture::Annular, 0.4, Some(4.1e-3));
    made
}

pub(crate) fn engine(name: EngineName, iterations: u64, change: impl FnOnce(&mut EngineConfig)) -> EngineConfig {
    let mut engine = EngineConfig { probe_update_start: Some(1), ..EngineConfig::new(name, iterations) };
    change(&mut engine);
    engine
}

pub(crate) fn case(made: SimulateConfig, engines: &[EngineConfig], change: impl FnOnce(&mut Config)) -> Config {
    let mut config = input(made, engines[0].clone());
    config.engine = engines.to_vec();
    config.output.local_errors = true;
    change(&mut config);
    assert_eq!(config.check(), []);
    config
}

pub(crate) fn refined(method: PositionMethod) -> PositionConfig {
    PositionConfig { method, start: 1, every: 2, trials: 2, ..PositionConfig::default() }
}

/// Inputs that between them reach all that parts exchange.
pub(crate) fn cases() -> Vec<(&'static str, Config)> {
    let (dm, raar, ml, lsqml) = (EngineName::Dm, EngineName::Raar, EngineName::Ml, EngineName::Lsqml);
    // Batches of which some parts have no view.
    let by = |name, batch, change: fn(&mut EngineConfig)| {
        engine(name, 3, |e| {
            (e.batch, e.probe_update_start) = (Some(batch), Some(0));
            change(e);
        })
    };
    let plain = |_: &mut EngineConfig| {};
    let gaussian = engine(ml, 3, |e| e.wavefield_preconditioner = Some(true));
    let poisson = engine(ml, 3, |e| {
        (e.noise, e.floating_intensities) = (Some(NoiseName::Poisson), Some(true));
        (e.smoothness, e.smooth_gradient, e.line_steps) = (Some(1e-3), Some(1.0), Some(2));
    });
    let between = |c: &mut Config| c.subpixel = true;
    let doubles = |c: &mut Config| c.precision = Precision::F64;
    vec![
        ("dm", case(scan(2), &[engine(dm, 4, plain)], |c| c.probe.modes = 2)),
        ("dm_objects", case(scan(1), &[engine(dm, 3, |e| e.object_clip = Some([0.1, 1.2]))], |c| c.object.modes = 2)),
        ("raar", case(scan(1), &[engine(raar, 4, |e| (e.probe_center_tolerance, e.probe_support) = (Some(0.1), Some(0.7)))], doubles)),
        (
            "dm_subpixel",
            case(scan(2), &[engine(dm, 4, |e| e.positions = Some(refined(PositionMethod::Gradient)))], |c| {
                (c.subpixel, c.probe.modes) = (true, 2);
            }),
        ),
        ("dm_annealing", case(scan(1), &[engine(dm, 4, |e| e.positions = Some(refined(PositionMethod::Annealing)))], doubles)),
        ("ml_gaussian", case(scan(2), std::slice::from_ref(&gaussian), |c| c.probe.modes = 2)),
        ("ml_poisson", case(SimulateConfig { fluctuation: 0.1, ..scan(1) }, std::slice::from_ref(&poisson), doubles)),
        ("ml_subpixel", case(scan(2), std::slice::from_ref(&gaussian), between)),
        (
            "near",
            case(
                SimulateConfig { propagation: Propagation::Near, ..scan(1) },
                &[engine(dm, 2, plain), engine(ml, 2, |e| e.noise = Some(NoiseName::Euclid))],
                between,
            ),
        ),
        (
            "resampled",
            case(scan(1), &[engine(dm, 2, |e| e.object_smooth = Some(0.5))], |c| c.resample = zellige_ptycho::simulate::Pair::Same(2)),
        ),
        ("from_frames", case(defocused(), &[engine(dm, 2, plain)], |c| c.probe.start = ProbeStart::Data)),
        ("lsqml", case(scan(2), &[engine(lsqml, 3, plain)], |c| c.probe.modes = 2)),
        (
            "lsqml_objects",
            case(scan(1), &[by(lsqml, 3, |e| e.noise = Some(NoiseName::Poisson))], |c| (c.object.modes, c.precision) = (2, Precision::F64)),
        ),
        (
            "lsqml_subpixel",
            case(scan(2), &[by(lsqml, 20, |e| e.positions = Some(refined(PositionMethod::Gradient)))], |c| {
                (c.subpixel, c.probe.modes) = (true, 2);
            }),
        ),
        ("epie", case(scan(1), &[by(EngineName::Epie, 4, |e| e.object_norm_is_global = Some(true))], |_| {})),
        (
            "rpie",
            case(scan(2), &[by(EngineName::Rpie, 10, |e| e.object_clip = Some([0.1, 1.2])), engine(dm, 2, plain)], |c| c.probe.modes = 2),
        ),
        ("sdr", case(scan(1), &[by(EngineName::Sdr, 7, |e| e.probe_support = Some(0.7))], doubles)),
        ("epie_subpixel", case(scan(1), &[by(EngineName::Epie, 6, plain)], between)),
        // Frames and waves in files: a limit below what a part would hold.
        ("in_files", case(scan(1), &[engine(dm, 2, plain), by(EngineName::Sdr, 5, plain)], |c| c.memory.device = Some("64 KiB".into()))),
        (
            "lsqml_halves",
            case(scan(1), &[by(lsqml, 8, plain), by(EngineName::Sdr, 5, plain)], |c| {
                let mut second = c.scan[0].clone();
                second.simulate.as_mut().unwrap().frames = 41;
                c.scan[0].object = Some("shared".into());
                second.object = Some("shared".into());
                c.scan.push(second);
                c.frc = true;
            }),
        ),
        (
            "two_scans",
            case(scan(1), &[engine(dm, 3, plain), engine(ml, 2, plain)], |c| {
                let mut second = c.scan[0].clone();
                second.simulate.as_mut().unwrap().frames = 41;
                second.simulate.as_mut().unwrap().seed = 3;
                c.scan[0].object = Some("shared".into());
                second.object = Some("shared".into());
                c.scan.push(second);
                c.frc = true;
            }),
        ),
    ]
}

fn cpu() -> Device {
    Device::Cpu(Cpu::new(1).unwrap())
}

fn environment(links: &Links) -> Environment {
    Environment::new(cpu(), "", 7).of_part(links.clone())
}

/// The checkpoint as it is in its file, which all parts write.
fn saved(solver: &mut Ptycho, links: &Links, folder: &Path) -> Result<Vec<u8>> {
    let path = folder.join("checkpoint");
    let mut writer = Writer::of_parts(links, &path, Ptycho::NAME)?;
    solver.save(&mut writer)?;
    writer.finish()?;
    Ok(std::fs::read(path).unwrap())
}

/// Findings of a part.
#[derive(Debug, PartialEq)]
pub(crate) struct Found {
    pub(crate) rows: Vec<Row>,
    pub(crate) state: State,
    errors: Vec<[f64; 3]>,
    begins: Vec<String>,
    checks: Vec<(String, u64)>,
    pub(crate) outcome: Option<Outcome>,
}

fn run(config: &Config, parts: usize, from: Option<&[u8]>, until: u64) -> (Vec<Found>, Vec<u8>) {
    run_on(&|_| cpu(), config, parts, from, until)
}

/// A run to its end, or to an iteration, on some parts, each on a device that is opened for its number: what each has found, and
/// the checkpoint of the first.
pub(crate) fn run_on(
    open: &(dyn Fn(usize) -> Device + Sync),
    config: &Config,
    parts: usize,
    from: Option<&[u8]>,
    until: u64,
) -> (Vec<Found>, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let before = folder.path().join("before");
    if let Some(bytes) = from {
        std::fs::write(&before, bytes).unwrap();
    }
    let part = |links: Links| {
        let mut solver = Ptycho::setup(config, &Environment::new(open(links.rank()), "", 7).of_part(links.clone()))?;
        if from.is_some() {
            solver.restore(&Reader::open(&before, Ptycho::NAME)?)?;
        }
        let mut rows = Vec::new();
        while solver.outcome().is_none() && solver.clock().step < until {
            solver.step(&mut Profiler::off())?;
            rows.push(solver.row()?);
        }
        let bytes = saved(&mut solver, &links, folder.path())?;
        let checks = solver.checks()?.into_iter().map(|check| (check.name, check.value.to_bits())).collect();
        let outcome = solver.outcome();
        let whole = solver.whole();
        let (state, begins) = (whole.stages.state()?, whole.model.begins.clone());
        let errors = whole.model.share.gathered(whole.stages.errors()?)?;
        Ok((Found { rows, state, errors, begins, checks, outcome }, bytes))
    };
    let (found, mut saved): (Vec<_>, Vec<_>) = inside::run(parts, part).unwrap().into_iter().unzip();
    (found, saved.swap_remove(0))
}

/// Checks that every part has found what the only part of another run has.
pub(crate) fn same(name: &str, parts: usize, found: &(Vec<Found>, Vec<u8>), expected: &(Vec<Found>, Vec<u8>)) {
    assert_eq!(found.0.len(), parts);
    for (part, found) in found.0.iter().enumerate() {
        assert_eq!(found.rows, expected.0[0].rows, "{name}: rows of part {part} of {parts}");
        assert!(*found == expected.0[0], "{name}: part {part} of {parts}");
    }
    assert!(found.1 == expected.1, "{name}: checkpoint of {parts} parts");
}

#[test]
fn any_number_of_parts_gives_the_bits_of_one() {
    for (name, config) in cases() {
        assert_eq!(Ptycho::only_in_one_part(&config), None, "{name}");
        let expected = run(&config, 1, None, u64::MAX);
        assert!(expected.0[0].outcome.is_some());
        assert_eq!(name == "from_frames", expected.0[0].begins[0].contains("by which neighbouring frames agree best"), "{name}");
        for parts in [2, 3, 4, 8] {
            same(name, parts, &run(&config, parts, None, u64::MAX), &expected);
        }
    }
}

/// Frames that no longer move are counted over all parts: the run says so after the same iteration.
#[test]
fn frames_at_rest_are_those_of_all_parts() {
    let config = case(scan(1), &[engine(EngineName::Raar, 25, |e| e.fourier_bound = Some(0.6))], |_| {});
    let expected = run(&config, 1, None, u64::MAX);
    let message = &expected.0[0].outcome.as_ref().unwrap().message;
    assert!(message.contains("stopped moving"), "{message}");
    for parts in [2, 3, 8] {
        same("frames at rest", parts, &run(&config, parts, None, u64::MAX), &expected);
    }
}

/// Sums in another order of the views have other bits, which the comparisons above would find.
#[test]
fn another_order_of_views_gives_other_bits() {
    let (_, config) = cases().remove(0);
    let (model, _) = super::physics::model(&config);
    let mut turned = model.clone();
    turned.views.reverse();
    turned.shifts.reverse();
    turned.mag = model.mag.chunks(model.counted()).rev().flatten().copied().collect();
    let [a, b] = [model, turned].map(|model| super::physics::run(&config, model, 1).state().unwrap());
    assert!(a != b);
    // Rounding of single precision, some iterations on.
    assert!(super::common::distance(&a.probe, &b.probe, |_| true) < 1e-3);
}

/// Messages as a dry run tells them are those that parts send in an iteration with one pass over object and probe.
#[test]
fn the_model_tells_the_traffic() {
    let config = case(scan(2), &[engine(EngineName::Dm, 20, |e| e.overlap_passes = Some(1))], |c| {
        (c.probe.modes, c.output.local_errors) = (2, false);
    });
    model_tells_the_traffic::<Ptycho>("dm", &config, Path::new(""), &[2, 4], 5, [2.0, 2.0]);
    for (name, of) in [("lsqml", EngineName::Lsqml), ("rpie", EngineName::Rpie)] {
        let config = case(scan(2), &[engine(of, 20, |e| e.batch = Some(20))], |c| (c.probe.modes, c.output.local_errors) = (2, false));
        model_tells_the_traffic::<Ptycho>(name, &config, Path::new(""), &[2, 4], 5, [2.0, 2.0]);
    }
}

/// A checkpoint belongs to no number of parts.
#[test]
fn runs_go_on_in_other_numbers_of_parts() {
    for (name, config) in cases() {
        let expected = run(&config, 1, None, u64::MAX);
        let half = run(&config, 4, None, 2);
        for parts in [1, 3] {
            let (found, saved) = run(&config, parts, Some(&half.1), u64::MAX);
            assert!(found.iter().all(|found| found.state == expected.0[0].state), "{name}: {parts} parts");
            assert!(saved == expected.1, "{name}: {parts} parts");
        }
    }
}

/// Records are whole at the first part, and nowhere else.
#[test]
fn records_are_those_of_one_part() {
    for (name, config) in cases().into_iter().filter(|(name, _)| ["dm", "two_scans"].contains(name)) {
        let records = |parts| {
            inside::run(parts, |links| {
                let mut solver = Ptycho::setup(&config, &environment(&links))?;
                solver.step(&mut Profiler::off())?;
                solver.records()
            })
            .unwrap()
        };
        let (one, three) = (records(1), records(3));
        assert!(!one[0].is_empty() && three[1..].iter().all(Vec::is_empty), "{name}");
        assert_eq!(format!("{:?}", three[0]), format!("{:?}", one[0]), "{name}");
    }
}

/// Frames of files: each part reads its own, and what is said about them is said of all.
#[test]
fn parts_read_their_frames() {
    let folder = tempfile::tempdir().unwrap();
    let made = SimulateConfig { noise: false, ..scan(1) };
    for file in ["scan.ptyd", "scan.npz"] {
        let path = folder.path().join(file);
        let mut scan = zellige_ptycho::simulate::simulate(&made, "scan", folder.path(), 1).unwrap();
        // A pixel without counts here and there.
        let Frames::Real(counts) = &mut scan.frames else { panic!("without noise counts are no whole numbers") };
        for frame in [5, 40, 70] {
            counts[frame * 1024 + 77] = -3.0;
        }
        if file.ends_with("npz") { write::write_npz(&path, &mut scan) } else { write::write_ptyd(&path, &mut scan) }.unwrap();
        let mut config =
            Config::new(ScanConfig { file: Some(path), every: Some(2), ..ScanConfig::default() }, engine(EngineName::Dm, 2, |_| {}));
        config.scan[0].read.negative = Negative::Mask;
        let notes = |parts| {
            inside::run(parts, |links| {
                Ok(Ptycho::plan_prepared(&Ptycho::prepare(&config, &environment(&links))?, &config, &environment(&links))?.warnings)
            })
            .unwrap()
        };
        let one = notes(1);
        assert!(one[0].iter().any(|note| note.starts_with("scan `scan0`: 2 negative counts")), "{one:?}");
        assert!(notes(3).iter().all(|part| *part == one[0]), "{:?}", notes(3));
        let expected = run(&config, 1, None, u64::MAX);
        for parts in [2, 5] {
            same(file, parts, &run(&config, parts, None, u64::MAX), &expected);
        }
    }
}

/// Refuses what parts cannot share: by the input and, where that is passed by, by the stages.
#[test]
fn what_is_not_shared_out_is_refused() {
    let one = Some(1);
    for (name, batch) in [(EngineName::Epie, None), (EngineName::Rpie, one), (EngineName::Sdr, None), (EngineName::Lsqml, one)] {
        let by_one = EngineConfig { batch, ..EngineConfig::new(name, 1) };
        let config = case(scan(1), &[engine(EngineName::Dm, 1, |_| {}), by_one], |_| {});
        assert!(Ptycho::only_in_one_part(&config).is_some_and(|reason| reason.contains("`batch`")), "{name:?}");
        if name == EngineName::Lsqml {
            continue;
        }
        let step = |links: Links| {
            let mut solver = Ptycho::setup(&config, &environment(&links))?;
            (0..2).try_for_each(|_| solver.step(&mut Profiler::off()))
        };
        let error = inside::run(2, step).unwrap_err().to_string();
        assert!(error.contains("one after the other"), "{name:?}: {error}");
    }
    let config = cases().remove(0).1;
    let on_gpus = |change: fn(&mut Config)| {
        let mut config = config.clone();
        change(&mut config);
        config.parts_only_on_cpu()
    };
    assert_eq!(on_gpus(|_| {}), None);
    for (said, change) in [
        ("object_update", (|c| c.object_update = ObjectUpdate::Atomic) as fn(&mut Config)),
        ("memory.exit_waves", |c| c.memory.exit_waves = WaveStorage::F16),
        ("memory.device", |c| c.memory.device = Some("1 GiB".into())),
    ] {
        assert!(on_gpus(change).is_some_and(|reason| reason.contains(said)), "{said}");
    }
    let few = case(SimulateConfig { frames: 3, ..scan(1) }, &[engine(EngineName::Dm, 1, |_| {})], |_| {});
    let error = inside::run(4, |links| Ptycho::prepare(&few, &environment(&links)).map(|_| ())).unwrap_err().to_string();
    assert!(error.contains("3 frames cannot be shared out over 4 parts"), "{error}");
}

/// Each part holds moduli and waves of its own frames.
#[test]
fn parts_share_the_memory_of_frames() {
    let (_, config) = cases().remove(0);
    let held = |parts| {
        let held = |links: Links| {
            let mut solver = Ptycho::setup(&config, &environment(&links))?;
            solver.step(&mut Profiler::off())?;
            Ok((solver.whole().model.mag.len(), solver.whole().stages.memory()))
        };
        inside::run(parts, held).unwrap()
    };
    let (one, four) = (held(1)[0], held(4));
    let kept = zellige_ptycho::memory::KeptData { waves: true, ..Default::default() };
    let all = stages::mapped(&super::physics::model(&config).0, &kept);
    for (moduli, memory) in four {
        assert!(moduli <= one.0.div_ceil(4) + 1024, "{moduli} of {}", one.0);
        // Rows of waves are padded: no less than three quarters of what is shared out.
        assert!(memory + all * 7 / 10 <= one.1, "{memory} of {}, {all} shared", one.1);
    }
}

/// A limit of memory is that of a host: what one part may hold goes to files where parts of it would hold more in all.
#[test]
fn parts_share_the_limit_of_a_host() {
    let folder = tempfile::tempdir().unwrap();
    let (_, mut config) = cases().remove(0);
    config.memory.scratch = Some(folder.path().to_owned());
    let held = |config: &Config, parts| {
        let held = |links: Links| {
            let prepared = Ptycho::prepare(config, &environment(&links))?;
            let told = Ptycho::plan_prepared(&prepared, config, &environment(&links))?.lines;
            let mut solver = Ptycho::setup_prepared(prepared, config, &environment(&links))?;
            solver.step(&mut Profiler::off())?;
            Ok((told.iter().any(|(line, _)| line == "files"), solver.whole().stages.memory()))
        };
        inside::run(parts, held).unwrap()
    };
    let [one, four] = [1, 4].map(|parts| held(&config, parts));
    assert!(one.iter().chain(&four).all(|(files, _)| !files));
    let kept = config.memory_budget(1.0).demand;
    config.memory.device = Some(format!("{}", stages::memory(&super::physics::model(&config).0, &kept)));
    assert_eq!(held(&config, 1), one, "all of one part fits");
    for ((files, memory), (_, before)) in held(&config, 4).into_iter().zip(four) {
        assert!(files && memory < before, "{files}: {memory} of {before}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Time that this thread has had of a core, seconds.
fn core_time() -> f64 {
    let all = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    1e-9 * all.split(' ').next().unwrap().parse::<f64>().unwrap()
}

/// Time of a core that an iteration takes on each of some parts, the least of several: run by hand with `--ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn times_of_parts() {
    for (name, batch) in [(EngineName::Dm, None), (EngineName::Ml, None), (EngineName::Lsqml, Some(40)), (EngineName::Epie, Some(40))] {
        let by = |e: &mut EngineConfig| (e.probe_update_start, e.batch) = (Some(0), batch);
        let config = case(SimulateConfig::case(400, 128, 1), &[engine(name, 6, by)], |_| {});
        for parts in [1, 2, 4, 8] {
            let time = |links: Links| {
                let mut solver = Ptycho::setup(&config, &environment(&links))?;
                let mut least = f64::INFINITY;
                while solver.outcome().is_none() {
                    let begun = core_time();
                    solver.step(&mut Profiler::off())?;
                    least = least.min(core_time() - begun);
                }
                Ok(least)
            };
            let times = inside::run(parts, time).unwrap();
            let [all, most] = [times.iter().sum::<f64>(), times.iter().copied().fold(0.0, f64::max)];
            println!("{name:?} on {parts} parts: {:.1} ms in all, {:.1} ms at the most", 1e3 * all, 1e3 * most);
        }
    }
}
