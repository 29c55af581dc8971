//! Messages of the solver about inputs that cannot be meant, and the start of a run whose input says next to nothing.

use std::path::Path;

use zellige_engine::device::{Cpu, Device};
use zellige_engine::sim::{Environment, Plan, Solver};
use zellige_io::npz;
use zellige_io::tensor::Tensor;
use zellige_ptycho::Ptycho;
use zellige_ptycho::config::{Config, EngineConfig, EngineName, PositionConfig, ProbeStart, ScanConfig};
use zellige_ptycho::data::ReadConfig;
use zellige_ptycho::scan::{Frames, Mask, Scan};
use zellige_ptycho::simulate::{Pair, SimulateConfig};
use zellige_ptycho::{half_sets, setup};

use super::files::{archive, load, made};

#[test]
fn scans_whose_results_have_the_same_name_are_refused() {
    let named = |name: Option<&str>| ScanConfig {
        name: name.map(Into::into),
        ..ScanConfig { file: Some("f.npz".into()), ..ScanConfig::default() }
    };
    let faults = |names: [Option<&str>; 2]| {
        let config = Config { scan: names.map(named).into(), ..Config::new(named(None), EngineConfig::new(EngineName::Dm, 1)) };
        config.check().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for names in [[Some("a"), Some("a")], [Some("a b"), Some("a_b")], [Some("scan1"), None]] {
        let found = faults(names);
        assert!(found.len() == 1 && found[0].starts_with("`scan[1].name`: ") && found[0].contains("`scan[0]`"), "{found:?}");
    }
    assert_eq!(faults([Some("a"), None]), [""; 0]);
}

#[test]
fn keys_of_a_file_that_nothing_is_read_from_are_refused() {
    let faults = |read: ReadConfig| read.check().iter().map(ToString::to_string).collect::<Vec<_>>();
    let other = || Some("other.h5".into());
    for (read, said) in [
        (ReadConfig { mask_file: other(), ..ReadConfig::default() }, "`mask_file`: the dataset of its"),
        (ReadConfig { positions_file: other(), ..ReadConfig::default() }, "`positions_file`: the dataset of its"),
        (
            ReadConfig { swap: true, positions_y: Some("y".into()), positions_x: Some("x".into()), ..ReadConfig::default() },
            "`swap`: `positions_y` and `positions_x` say",
        ),
    ] {
        let found = faults(read);
        assert!(found.len() == 1 && found[0].starts_with(said) && found[0].contains("hint: "), "{found:?}");
    }
}

fn plan(config: &Config) -> Result<Plan, String> {
    let environment = Environment::new(Device::Cpu(Cpu::new(1).unwrap()), ".", 1);
    Ptycho::prepare(config, &environment).and_then(|p| Ptycho::plan_prepared(&p, config, &environment)).map_err(|e| e.to_string())
}

fn simulated(made: SimulateConfig, engine: EngineConfig) -> Config {
    Config::new(ScanConfig { simulate: Some(made), ..ScanConfig::default() }, engine)
}

/// An empty table and one engine: the object comes out, since the run begins with what the simulated optics should give.
#[test]
fn an_empty_table_shows_the_object() {
    let small = made(|m| (m.frames, m.size) = (49, Pair::Same(64)));
    let off = |change: &dyn Fn(&mut Config)| {
        let mut config = simulated(small.clone(), EngineConfig::new(EngineName::Dm, 25));
        change(&mut config);
        let (model, truth) = super::physics::model(&config);
        let mut done = super::physics::run(&config, model, 2);
        half_sets::distance_from_truth(&mut done, &truth).unwrap().unwrap()
    };
    let found = off(&|_| ());
    let opening = off(&|c| c.probe.start = ProbeStart::Opening);
    println!("{found} off the truth, from an opening {opening}");
    assert!(found < 0.1 && opening > 0.5, "{found} off the truth, from an opening {opening}");
}

/// Frames that are cut or summed, and waves finer than the detector, see the same probe in metres.
#[test]
fn the_expected_probe_is_that_of_the_frames_that_were_made() {
    let made = made(|m| (m.frames, m.size) = (4, Pair::Same(64)));
    let width = |change: &dyn Fn(&mut Config)| {
        let mut config = simulated(made.clone(), EngineConfig::new(EngineName::Dm, 1));
        change(&mut config);
        let mut scans = setup::scans(&config, Path::new(""), 1).unwrap();
        let model = setup::model(&config, &mut scans, 1).unwrap();
        let [ny, nx] = model.frame;
        let y = |i: usize| ((i / nx) as f64 - (ny / 2) as f64) * model.pixel[0];
        let (sum, square) = model
            .start
            .probe
            .iter()
            .enumerate()
            .fold((0.0_f64, 0.0_f64), |s, (i, v)| (s.0 + v.norm_sqr(), s.1 + y(i).powi(2) * v.norm_sqr()));
        (square / sum).sqrt()
    };
    let whole = width(&|_| ());
    let cut = width(&|c| c.scan[0].crop = Some([48, 48]));
    let finer = width(&|c| c.resample = Pair::Same(2));
    for other in [cut, finer] {
        assert!((other / whole - 1.0).abs() < 0.2, "{other} for {whole}");
    }
}

#[test]
fn dark_scans_and_what_is_masked_are_told() {
    let model = |change: &dyn Fn(&mut [Scan])| {
        let mut config = simulated(made(|m| m.photons = 1e4), EngineConfig::new(EngineName::Dm, 1));
        config.scan.push(ScanConfig { name: Some("second".into()), ..config.scan[0].clone() });
        let mut scans = setup::scans(&config, Path::new(""), 1).unwrap();
        change(&mut scans);
        let made = setup::model(&config, &mut scans, 1).map(|_| ()).map_err(|e| e.to_string());
        (made, scans.remove(1).notes)
    };
    let dark = |frames: usize| {
        move |scans: &mut [Scan]| {
            let Frames::Counts(counts) = &mut scans[1].frames else { panic!("counts are whole") };
            counts[..frames * 64].fill(0);
        }
    };
    let error = model(&dark(6)).0.unwrap_err();
    assert!(error.contains("scan `second`: none of its 6 frames has any counts"), "{error}");
    let (found, notes) = model(&dark(2));
    assert!(found.is_ok() && notes == ["2 of 6 frames have no counts in pixels that are not masked"], "{notes:?}");
    let (found, notes) = model(&|scans| scans[1].mask = Mask::Common((0..64).map(|i| i % 4 == 0).collect()));
    assert!(found.is_ok() && notes.len() == 1 && notes[0].starts_with("75 % of the pixels are masked: does `mask_valid`"), "{notes:?}");
    let mut config = simulated(made(|m| m.detector.beamstop = 2.5), EngineConfig::new(EngineName::Dm, 3));
    let lines = plan(&config).unwrap().lines;
    assert!(lines.iter().any(|(label, text)| label == "masked" && text.ends_with("% of the pixels of all frames")), "{lines:?}");
    config.output.frame = Some(6);
    let error = plan(&config).err().unwrap();
    assert!(error.contains("`ptycho.output.frame`: there is no frame 6 (allowed: 0 to 5)"), "{error}");
}

#[test]
fn updates_that_never_begin_are_told() {
    let never = |name: EngineName, iterations: u64, start: Option<u64>, positions: Option<u64>| {
        let positions = positions.map(|start| PositionConfig { start, ..PositionConfig::default() });
        let engine = EngineConfig { probe_update_start: start, positions, ..EngineConfig::new(name, iterations) };
        Config::new(ScanConfig::default(), engine).never()
    };
    assert_eq!(never(EngineName::Dm, 3, None, Some(2)), [""; 0]);
    assert_eq!(never(EngineName::Epie, 1, None, None), [""; 0]);
    for (found, said) in [
        (
            never(EngineName::Dm, 2, None, None),
            "engine[0] (DM) never updates the probe: `probe_update_start` is 2, counted from 0, and it ends after 2",
        ),
        (
            never(EngineName::Epie, 10, Some(12), None),
            "never updates the probe: `probe_update_start` is 12, counted from 0, and it ends after 10",
        ),
        (
            never(EngineName::Ml, 20, None, Some(50)),
            "never refines positions: `positions.start` is 50, counted from 0, and it ends after 20",
        ),
    ] {
        assert!(found.len() == 1 && found[0].ends_with(said), "{found:?}");
    }
}

/// Geometry in other units: the values stand in the message, what is odd of itself comes first, and what the file has is listed.
#[test]
fn wrong_units_are_told_by_name() {
    let folder = tempfile::tempdir().unwrap();
    archive(&folder.path().join("s.npz"), &[]);
    let error = load("s.npz", ReadConfig { pixel: Some(Pair::Same(0.99)), positions_unit: 1e3, ..ReadConfig::default() }, folder.path());
    let error = error.err().unwrap();
    let (optics, positions) =
        (error.find("energy (7.2000 keV), distance (7.19 m) and detector pixel (9.9e-1 m)"), error.find("are positions in metres"));
    assert!(optics.is_some() && optics < positions, "{error}");
    let mut file = npz::Archive::open(folder.path().join("s.npz")).unwrap();
    let kept: Vec<(&str, Tensor)> =
        ["intensity", "pos_m", "det_pixel", "distance"].into_iter().map(|n| (n, file.read(n).unwrap())).collect();
    npz::write(folder.path().join("bare.npz"), &kept.iter().map(|(n, t)| (*n, t)).collect::<Vec<_>>(), false).unwrap();
    let error = load("bare.npz", ReadConfig::default(), folder.path()).err().unwrap();
    assert!(error.contains("`read = { energy = ... }` (there are: ") && error.contains("`pos_m` [6, 2]"), "{error}");
    let mut config = simulated(made(|_| ()), EngineConfig::new(EngineName::Dm, 3));
    config.probe.size = Some(64.0);
    let warnings = plan(&config).unwrap().warnings;
    assert!(warnings.iter().any(|w| w.contains("`probe.size` is 6.4e1 m, a frame covers")), "{warnings:?}");
}
