//! `compatibility = "ptypy"` where positions are no whole pixels apart and probes have two modes, against PtyPy itself
//! (`tests/data/make_modes.py`); and what PtyPy's own functions demand of the files that are written for it.

use std::path::Path;

use num_complex::Complex;
use zellige_engine::device::{Cpu, Device};
use zellige_engine::profile::Profiler;
use zellige_engine::sim::{Environment, Solver};
use zellige_io::hdf5::File;
use zellige_ptycho::Ptycho;
use zellige_ptycho::config::{Compatibility, Config, EngineConfig, EngineName, ScanConfig};
use zellige_ptycho::data::{ReadConfig, write};
use zellige_ptycho::model::Model;
use zellige_ptycho::setup;
use zellige_ptycho::simulate::{Pair, SimulateConfig, simulate};

use super::common::{Bench, Reference, distance};

/// The scan of the reference, set up as the input says.
fn model(compatibility: Compatibility) -> Model {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ptycho/tests/data");
    let scan = ScanConfig { file: Some("modes.npz".into()), ..ScanConfig::default() };
    let mut config = Config { compatibility, ..Config::new(scan, EngineConfig::new(EngineName::Epie, 1)) };
    config.probe.modes = 2;
    let mut scans = setup::scans(&config, &folder, 1).unwrap();
    setup::model(&config, &mut scans, 1).unwrap()
}

/// Pixels hang on the first view, and halves are rounded up.
#[test]
fn views_lie_where_ptypy_puts_them() {
    let corners = Reference::modes().numbers("corner");
    let of = |model: &Model| model.views.iter().flat_map(|v| [f64::from(v.row), f64::from(v.col)]).collect::<Vec<_>>();
    let found = model(Compatibility::Ptypy);
    assert_eq!(of(&found), corners);
    assert_eq!(found.storages[0].shape, [21, 22]);
    // The positions themselves are those of the scan: first pixel, what is left over, and half a frame.
    let positions = Reference::modes().numbers("pos_m");
    for ((view, shift), position) in found.views.iter().zip(&found.shifts).zip(positions.chunks(2)) {
        let at = [f64::from(view.row) + shift[0], f64::from(view.col) + shift[1]];
        for d in 0..2 {
            let position_of_view = found.storages[0].origin[d] + (at[d] + 8.0) * found.pixel[d];
            // Rounding of numbers of some hundred pixels.
            assert!((position_of_view - position[d]).abs() < 1e-12 * found.pixel[d] * 1e3, "{position_of_view} {}", position[d]);
        }
    }
    // Otherwise they hang on the least position, which puts some of these views elsewhere.
    assert_ne!(of(&model(Compatibility::None)), corners);
}

/// A sweep with two modes: PtyPy's step of the probe is half of the published one.
#[test]
fn sweeps_with_two_modes_go_the_same_way() {
    let mut reference = Reference::modes();
    for (name, engine) in [("EPIE", EngineName::Epie), ("SDR", EngineName::Sdr)] {
        let mut model = model(Compatibility::Ptypy);
        let filter = model.filter.clone();
        let filtered = |waves: &[Complex<f64>]| waves.iter().zip(filter.iter().cycle()).map(|(p, f)| p * f).collect::<Vec<_>>();
        model.start.probe = filtered(&reference.waves("probe_init"));
        model.start.object = reference.waves("object_start");
        let order: Vec<u32> = reference.numbers(&format!("{name}_order")).iter().map(|j| *j as u32).collect();
        let off = |compatibility: Compatibility, reference: &mut Reference| {
            let mut bench = Bench::new(&model, &EngineConfig::new(engine, 1), compatibility, 1, true);
            let errors = bench.step(Some(&order));
            let state = bench.stages.state().unwrap();
            let probe = filtered(&reference.waves(&format!("{name}_probe")));
            let object = reference.waves(&format!("{name}_object"));
            let expected = reference.numbers(&format!("{name}_err"));
            let columns = if engine == EngineName::Sdr { 0..3 } else { 0..2 };
            let error = columns.map(|c| (errors[c] / expected[c] - 1.0).abs()).fold(0.0, f64::max);
            [distance(&state.probe, &probe, |_| true), distance(&state.object, &object, |_| true), error]
        };
        // Stored values are in single precision.
        let found = off(Compatibility::Ptypy, &mut reference);
        assert!(found.iter().all(|off| *off < 1e-6), "{name}: {found:?}");
        // The published step is another: nine views make it a difference of percents.
        if engine == EngineName::Epie {
            let published = off(Compatibility::None, &mut reference);
            assert!(published[0] > 1e-2, "{published:?}");
        }
    }
}

fn environment(folder: &Path) -> Environment {
    Environment::new(Device::Cpu(Cpu::new(1).unwrap()), folder, 1)
}

/// The results of a few iterations on a `.ptyd` as they are written.
fn results(folder: &Path, iterations: u64) -> File {
    let small = SimulateConfig { frames: 9, size: Pair::Same(16), ..SimulateConfig::default() };
    let mut scan = simulate(&small, "s", folder, 1).unwrap();
    write::write_ptyd(folder.join("s.ptyd"), &mut scan).unwrap();
    let entry = ScanConfig { name: Some("a scan".into()), file: Some("s.ptyd".into()), ..ScanConfig::default() };
    let mut config = Config::new(entry, EngineConfig::new(EngineName::Dm, iterations));
    config.probe.modes = 2;
    let mut run = Ptycho::setup(&config, &environment(folder)).unwrap();
    while run.outcome().is_none() {
        run.step(&mut Profiler::off()).unwrap();
    }
    let stamp = zellige_io::Stamp { step: iterations, time: None, numbered: false };
    zellige_io::write_records(folder, &run.records().unwrap(), &[], stamp).unwrap();
    File::open(folder.join("result.ptyr")).unwrap()
}

/// All errors in one array, those of some iterations by themselves: a file of thousands of small objects takes seconds.
#[test]
fn results_of_many_iterations_list_some_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = results(folder.path(), 1201);
    assert_eq!(file.shape("content/runtime/error").unwrap().unwrap(), [1201, 3]);
    let listed = file.children("content/runtime/iter_info").unwrap();
    // Every third one, and the last.
    assert_eq!(listed.len(), 401);
    for (name, iteration) in [(&listed[0], 3.0), (&listed[399], 1200.0), (&listed[400], 1201.0)] {
        for key in ["iteration", "iterations"] {
            assert_eq!(file.number(&format!("content/runtime/iter_info/{name}/{key}")).unwrap(), Some(iteration), "{name}");
        }
    }
}

/// A header that says which kind of file it is, storages with every field that PtyPy makes an object of, parameters, and the errors
/// of every iteration in a list.
#[test]
fn results_have_what_ptypy_demands() {
    let folder = tempfile::tempdir().unwrap();
    let file = results(folder.path(), 2);
    assert_eq!(file.text("header/kind").unwrap().as_deref(), Some("minimal"));
    for (kind, shape) in [("probe", vec![2.0, 16.0, 16.0]), ("obj", vec![1.0])] {
        let of = |key: &str| format!("content/{kind}/Sa_scanG00/{key}");
        assert_eq!(file.text(&of("ID")).unwrap().as_deref(), Some("Sa_scanG00"));
        assert_eq!(file.attribute(&of("shape"), "type").unwrap().as_deref(), Some("arraytuple"));
        let found = file.read(&of("shape")).unwrap();
        assert!(matches!(&found.elements, zellige_io::tensor::Elements::I32(v) if f64::from(v[0]) == shape[0]), "{kind}: {found:?}");
        let data = file.shape(&of("data")).unwrap().unwrap();
        assert_eq!(found.to_reals().unwrap(), data.iter().map(|n| *n as f64).collect::<Vec<_>>());
        assert_eq!(file.shape(&of("layermap")).unwrap().unwrap(), [data[0]]);
        for key in ["_psize", "_origin", "_center"] {
            assert_eq!(file.shape(&of(key)).unwrap().unwrap(), [2], "{key}");
        }
        for key in ["numID", "nlayers", "fill_value", "padding", "padonly", "DataTooSmall", "_is_scattered", "model_initialized"] {
            assert!(file.number(&of(key)).unwrap().is_some(), "{key}");
        }
        assert_eq!(file.children(&format!("content/{kind}/Sa_scanG00/_pool")).unwrap(), Vec::<String>::new());
    }
    assert_eq!(file.children("content/runtime/iter_info").unwrap().len(), 2);
    assert_eq!(file.text("content/runtime/iter_info/000000001/engine").unwrap().as_deref(), Some("DM"));
    assert_eq!(file.shape("content/runtime/iter_info/000000001/error").unwrap().unwrap(), [3]);
    // All views of an object together.
    assert_eq!(file.shape("content/positions/Sa_scanG00").unwrap().unwrap(), [9, 2]);
    let scan = |key: &str| file.text(&format!("content/pars/scans/a_scan/{key}")).unwrap().unwrap();
    assert_eq!((scan("name").as_str(), scan("data/name").as_str(), scan("propagation").as_str()), ("BlockFull", "PtydScan", "farfield"));
    assert_eq!(scan("data/dfile"), folder.path().join("s.ptyd").to_string_lossy());
    // A shape of arrays, of which there is none with halves of pixels.
    let scan = File::open(folder.path().join("s.ptyd")).unwrap();
    assert!(matches!(scan.read("meta/shape").unwrap().elements, zellige_io::tensor::Elements::I32(_)));
}

/// Positions that an earlier run has refined come with its probe and object, unless the input leaves them alone.
#[test]
fn a_start_brings_refined_positions() {
    let folder = tempfile::tempdir().unwrap();
    drop(results(folder.path(), 2));
    let entry = |label: Option<&str>, read: ReadConfig| {
        let read = ReadConfig { start: Some("result.ptyr".into()), start_label: label.map(Into::into), ..read };
        ScanConfig { name: Some("a scan".into()), file: Some("s.ptyd".into()), read, ..ScanConfig::default() }
    };
    let load = |scan: &ScanConfig| zellige_ptycho::data::load(scan, "a scan", folder.path(), 1).unwrap();
    // Nothing was refined: positions are those of the scan, bit for bit.
    let plain = load(&ScanConfig { read: ReadConfig::default(), ..entry(None, ReadConfig::default()) });
    assert_eq!(load(&entry(None, ReadConfig::default())).positions, plain.positions);
    // Read by other units, positions of the scan are far from those of the results.
    let apart = ReadConfig { positions_unit: 0.5, ..ReadConfig::default() };
    let found = load(&entry(None, apart.clone()));
    let pixel = plain.beam.resolution(plain.shape)[0];
    for (a, b) in found.positions.iter().zip(&plain.positions) {
        assert!((0..2).all(|d| (a[d] - b[d]).abs() < 1e-9 * pixel), "{a:?} {b:?}");
    }
    assert!(found.notes.iter().any(|n| n.starts_with("positions are those of `result.ptyr`, up to ")), "{:?}", found.notes);
    let left = load(&entry(None, ReadConfig { start_positions: false, ..apart.clone() }));
    assert_eq!(left.positions[3][0], 0.5 * plain.positions[3][0]);
    let fewer = load(&ScanConfig { every: Some(2), ..entry(None, apart) });
    assert_eq!(fewer.positions[1][0], 0.5 * plain.positions[2][0]);
    assert!(fewer.notes.iter().any(|n| n.starts_with("the 9 positions of `result.ptyr` are ignored")), "{:?}", fewer.notes);
}
