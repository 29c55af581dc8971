//! Runs of several scans: which probe and object each begins with, and what is said of each object at the end.

use std::path::Path;

use num_complex::Complex;
use zellige_engine::device::{Cpu, Device};
use zellige_engine::profile::Profiler;
use zellige_io::hdf5::{Node, Value, write_tree};
use zellige_io::tensor::{Elements, Tensor};
use zellige_ptycho::config::{Config, EngineConfig, EngineName, ScanConfig};
use zellige_ptycho::data::{ReadConfig, write};
use zellige_ptycho::half_sets::{HalfSets, compare_with_truths};
use zellige_ptycho::reconstruction::Reconstruction;
use zellige_ptycho::scan::Scan;
use zellige_ptycho::simulate::{Pair, SimulateConfig, simulate};
use zellige_ptycho::{resolution, setup};

use super::physics::made;

/// Results of two scans, whose probes and objects are 1 and 2 everywhere.
fn results(path: &Path, frame: usize) {
    let image = |kind: &str, id: &str, n: usize, value: f32| {
        let elements = Elements::Complex(vec![Complex::new(value, 0.0); n * n]);
        Node::new(format!("content/{kind}/{id}/data"), Value::Own(Tensor { shape: vec![1, n, n], elements }))
    };
    let nodes: Vec<Node> = [("Sa_leftG00", 1.0), ("Sa_rightG00", 2.0)]
        .into_iter()
        .flat_map(|(id, value)| [image("probe", id, frame, value), image("obj", id, 4 * frame, value)])
        .collect();
    write_tree(path, &nodes).unwrap();
}

#[test]
fn every_scan_begins_with_its_own_results() {
    let folder = tempfile::tempdir().unwrap();
    let small = SimulateConfig { frames: 4, size: Pair::Same(8), ..SimulateConfig::default() };
    let mut scan = simulate(&small, "s", folder.path(), 1).unwrap();
    write::write_npz(folder.path().join("s.npz"), &mut scan).unwrap();
    results(&folder.path().join("r.ptyr"), 8);
    let entry = |name: &str, probe: &str, label: Option<&str>| ScanConfig {
        name: Some(name.into()),
        file: Some("s.npz".into()),
        probe: Some(probe.into()),
        read: ReadConfig { start: Some("r.ptyr".into()), start_label: label.map(Into::into), ..ReadConfig::default() },
        ..ScanConfig::default()
    };
    let load = |scans: Vec<ScanConfig>| {
        let config = Config { scan: scans, ..Config::new(ScanConfig::default(), EngineConfig::new(EngineName::Dm, 1)) };
        assert_eq!(config.check(), []);
        setup::scans(&config, folder.path(), 1).map_err(|e| e.to_string())
    };
    let begins = |s: &Scan| [&s.probe, &s.object].map(|i| i.as_ref().unwrap().values[0].re);
    // The third has the second's probe, and an object that the file does not know.
    let scans = load(vec![entry("a left", "p", None), entry("a right", "q", None), entry("third", "q", None)]).unwrap();
    assert_eq!(scans.iter().map(begins).collect::<Vec<_>>(), [[1.0, 1.0], [2.0, 2.0], [2.0, 1.0]]);
    assert_eq!(scans.iter().map(|s| s.notes.len()).collect::<Vec<_>>(), [0, 0, 1], "{:?}", scans[2].notes);
    let note = &scans[2].notes[0];
    assert!(note.contains("has 2 objects (`Sa_leftG00`, `Sa_rightG00`), none of a scan `third`"), "{note}");
    let scans = load(vec![entry("third", "q", Some("a right"))]).unwrap();
    assert_eq!((begins(&scans[0]), scans[0].notes.len()), ([2.0, 2.0], 0));
    let error = load(vec![entry("third", "q", Some("up"))]).err().unwrap();
    assert!(error.contains("no probe or object of a scan `up`") && error.contains("Sa_rightG00"), "{error}");
}

/// Reports views that look beside the object of a file; no view on it is an error.
#[test]
fn an_object_that_does_not_reach_is_told() {
    let config = super::physics::input(made(|_| {}), EngineConfig::new(EngineName::Dm, 1));
    let model = |rows: f64| {
        let mut scans = setup::scans(&config, Path::new(""), 7).unwrap();
        let mut object = scans[0].truth.as_ref().unwrap().object.clone();
        object.origin[0] += rows * object.shape[1] as f64 * object.spacing[0];
        scans[0].object = Some(object);
        let made = setup::model(&config, &mut scans, 7).map_err(|e| e.to_string());
        (made.map(|_| ()), scans.remove(0).notes)
    };
    assert_eq!(model(0.0), (Ok(()), vec![]));
    let (found, notes) = model(0.5);
    assert!(found.is_ok() && notes.len() == 1 && notes[0].contains("% of the area of the frames lies outside the object"), "{notes:?}");
    let part: f64 = notes[0].split(' ').next().unwrap().parse().unwrap();
    // Half of the truth, which is as wide as what the frames see but for a margin; they look at its middle more often.
    assert!((40.0..60.0).contains(&part), "{part}");
    let error = model(1.5).0.unwrap_err();
    assert!(error.contains("no frame covers the object of its file") && error.contains("`ignore_file = true`"), "{error}");
}

#[test]
fn every_object_has_its_resolution() {
    let scan = |seed: u64| ScanConfig { simulate: Some(made(|m| m.seed = seed)), ..ScanConfig::default() };
    let mut config = Config::new(scan(1), EngineConfig::new(EngineName::Epie, 40));
    config.scan.push(scan(2));
    let mut scans = setup::scans(&config, Path::new(""), 7).unwrap();
    let truths: Vec<_> = scans.iter().map(|s| s.truth.clone()).collect();
    for scan in &mut scans {
        scan.probe = scan.truth.as_ref().map(|t| t.probe.clone());
    }
    let start = setup::model(&config, &mut scans, 7).unwrap();
    let device = Device::Cpu(Cpu::new(2).unwrap());
    let mut half_sets = HalfSets::new(&config, &start, &device, 7, &config.memory_budget(1.0)).unwrap();
    let mut whole = Reconstruction::new(&config, start, &device, 7).unwrap();
    for _ in 0..config.iterations() {
        half_sets.advance(&mut Profiler::off()).unwrap();
        whole.advance(&mut Profiler::off()).unwrap();
    }
    let rings = half_sets.rings().unwrap();
    assert_eq!(rings.iter().map(|r| r.0).collect::<Vec<_>>(), [0, 1]);
    // They are of different objects.
    assert_ne!(rings[0].1.correlation, rings[1].1.correlation);
    let beside = compare_with_truths(&mut whole, &truths).unwrap();
    assert_eq!(beside.iter().map(|b| b.object).collect::<Vec<_>>(), [0, 1]);
    for (i, one) in beside.iter().enumerate() {
        // Noise-free frames and the true probe, and pixels that few frames see: each agrees with its own truth, and less with the other's.
        assert!(one.relative_distance() < 0.2, "object {i}: {}", one.relative_distance());
        let mut crossed = one.found.clone();
        let other = &beside[1 - i].expected;
        assert_eq!(other.len(), crossed.len());
        resolution::align(&mut crossed, other, one.shape);
        let off: f64 = crossed.iter().zip(other).map(|(a, b)| (a - b).norm_sqr()).sum();
        let other = (off / other.iter().map(Complex::norm_sqr).sum::<f64>()).sqrt();
        println!("object {i}: {} off its truth, {other} off the other's", one.relative_distance());
        assert!(other > 1.5 * one.relative_distance(), "object {i}: {} off its truth, {other} off the other's", one.relative_distance());
    }
}
