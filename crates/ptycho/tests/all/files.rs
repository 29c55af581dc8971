//! Files that lack something or say it otherwise: what is read of them in every format, and what is said.

use std::path::Path;

use num_complex::Complex;
use zellige_io::hdf5::{Node, Value, write_tree};
use zellige_io::npz;
use zellige_io::tensor::{Elements, Tensor};
use zellige_ptycho::config::ProbeStart;
use zellige_ptycho::config::{Config, EngineConfig, EngineName, ScanConfig};
use zellige_ptycho::data::{self, Invalid, MaskValid, Negative, ReadConfig, write};
use zellige_ptycho::scan::{Mask, Propagation, Scan};
use zellige_ptycho::setup;
use zellige_ptycho::simulate::{Pair, SimulateConfig, simulate};

pub(super) fn made(change: impl FnOnce(&mut SimulateConfig)) -> SimulateConfig {
    let mut made = SimulateConfig { frames: 6, size: Pair::Same(8), ..SimulateConfig::default() };
    change(&mut made);
    made
}

pub(super) fn small() -> Scan {
    simulate(&made(|_| ()), "s", Path::new(""), 1).unwrap()
}

/// An archive of the small scan with some arrays more, or others in place of its own.
pub(super) fn archive(path: &Path, more: &[(&str, Tensor)]) {
    write::write_npz(path, &mut small()).unwrap();
    let mut file = npz::Archive::open(path).unwrap();
    let names: Vec<String> = file.names().filter(|n| more.iter().all(|m| m.0 != *n)).map(str::to_owned).collect();
    let own: Vec<(String, Tensor)> = names.into_iter().map(|n| (n.clone(), file.read(&n).unwrap())).collect();
    let all = own.iter().map(|(n, t)| (&n[..], t)).chain(more.iter().map(|(n, t)| (*n, t)));
    npz::write(path, &all.collect::<Vec<_>>(), false).unwrap();
}

pub(super) fn entry(file: &str, read: ReadConfig) -> ScanConfig {
    ScanConfig { file: Some(file.into()), read, ..ScanConfig::default() }
}

pub(super) fn load(file: &str, read: ReadConfig, folder: &Path) -> Result<Scan, String> {
    data::load(&entry(file, read), "s", folder, 1).map_err(|e| e.to_string())
}

pub(super) fn waves(shape: &[usize], value: f32) -> Tensor {
    let values = vec![Complex::new(value, 0.0); shape.iter().product()];
    Tensor { shape: shape.to_vec(), elements: Elements::Complex(values) }
}

/// `positions_unit`, `flip` and `swap` mean the same in every format, whether the input names the positions or the format has them.
#[test]
fn positions_are_turned_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let mut scan = small();
    archive(&folder.path().join("s.npz"), &[]);
    write::write_cxi(folder.path().join("s.cxi"), &mut scan).unwrap();
    write::write_ptyd(folder.path().join("s.ptyd"), &mut scan).unwrap();
    let turned = ReadConfig { positions_unit: 0.5, swap: true, flip: [false, true], ..ReadConfig::default() };
    for file in ["s.npz", "s.cxi", "s.ptyd"] {
        let found = load(file, turned.clone(), folder.path()).unwrap();
        for (a, b) in found.positions.iter().zip(&scan.positions) {
            assert!((a[0] - 0.5 * b[1]).abs() < 1e-18 && (a[1] + 0.5 * b[0]).abs() < 1e-18, "{file}: {a:?} of {b:?}");
        }
    }
    // In pixels, which are not square; along one axis each, in another file.
    let pixel = scan.beam.resolution(scan.shape);
    let pixels = scan.positions.iter().flat_map(|p| [p[1] / pixel[1], p[0] / pixel[0]]).collect();
    let mut file = npz::Archive::open(folder.path().join("s.npz")).unwrap();
    let kept: Vec<(&str, Tensor)> =
        ["intensity", "wavelength", "distance", "det_pixel"].into_iter().map(|n| (n, file.read(n).unwrap())).collect();
    let mut listed: Vec<(&str, &Tensor)> = kept.iter().map(|(n, t)| (*n, t)).collect();
    let in_pixels = Tensor::reals(&[6, 2], pixels);
    listed.push(("pos_px", &in_pixels));
    npz::write(folder.path().join("p.npz"), &listed, false).unwrap();
    let found = load("p.npz", ReadConfig { swap: true, ..ReadConfig::default() }, folder.path()).unwrap();
    assert!(found.positions.iter().zip(&scan.positions).all(|(a, b)| (0..2).all(|d| (a[d] - b[d]).abs() < 1e-18)));
    let [y, x] = [0, 1].map(|d| Tensor::reals(&[6], scan.positions.iter().map(|p| 1e6 * p[d]).collect()));
    let mut mask = vec![1.0; 64];
    mask[5] = 0.0;
    let mask = Tensor::reals(&[8, 8], mask);
    npz::write(folder.path().join("more.npz"), &[("y", &y), ("x", &x), ("ok", &mask)], false).unwrap();
    let read = ReadConfig {
        positions_y: Some("y".into()),
        positions_x: Some("x".into()),
        positions_file: Some("more.npz".into()),
        positions_unit: 1e-6,
        mask: Some("ok".into()),
        mask_file: Some("more.npz".into()),
        mask_valid: Some(MaskValid::Nonzero),
        ..ReadConfig::default()
    };
    for file in ["s.npz", "s.cxi", "s.ptyd"] {
        let found = load(file, read.clone(), folder.path()).unwrap();
        assert!(found.positions.iter().zip(&scan.positions).all(|(a, b)| (0..2).all(|d| (a[d] - b[d]).abs() < 1e-18)), "{file}");
        assert!(matches!(&found.mask, Mask::Common(m) if m.iter().enumerate().all(|(i, v)| *v == (i != 5))), "{file}");
    }
}

/// A dark frame makes no counts of what is none, and has to be one itself.
#[test]
fn bad_counts_are_seen_beside_a_dark_frame() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.npz");
    let read = ReadConfig { dark: Some("dark".into()), negative: Negative::Refuse, invalid: Invalid::Refuse, ..ReadConfig::default() };
    let dark = |value: f64| {
        let mut values = vec![1.0; 64];
        values[9] = value;
        Tensor::reals(&[8, 8], values)
    };
    for (count, darks, said) in [
        (-3.0, 1.0, "pixel [1, 1] of frame 2 has -3 counts"),
        (f64::NAN, 1.0, "pixel [1, 1] of frame 2 is not a number"),
        (4.0, -2.0, "pixel [1, 1] of its dark frame has -2 counts"),
        (4.0, f64::NAN, "pixel [1, 1] of its dark frame is not a number"),
    ] {
        let mut counts = vec![4.0; 6 * 64];
        counts[2 * 64 + 9] = count;
        archive(&path, &[("intensity", Tensor::reals(&[6, 8, 8], counts)), ("dark", dark(darks))]);
        let error = load("s.npz", read.clone(), folder.path()).err().unwrap();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn starts_that_nothing_can_begin_with_are_refused_where_they_come_from() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.npz");
    let scans = |config: &Config| setup::scans(config, folder.path(), 1).map_err(|e| e.to_string());
    for (value, said) in [(0.0, "its probe is zero everywhere"), (f32::NAN, "pixel [0, 0, 0] (mode, row, column) of its probe is not")] {
        let mut probe = waves(&[1, 8, 8], value);
        archive(&path, &[("probe_init", probe.clone())]);
        let mut config = Config::new(entry("s.npz", ReadConfig::default()), EngineConfig::new(EngineName::Dm, 1));
        let error = scans(&config).err().unwrap();
        assert!(error.contains(said) && error.contains("s.npz") && error.contains("`start = \"data\"`"), "{error}");
        config.probe.start = ProbeStart::Data;
        scans(&config).unwrap();
        // Of earlier results, and the object.
        probe = waves(&[1, 8, 8], 1.0);
        let (pixel, origin) = (Tensor::reals(&[2], vec![1e-6; 2]), Tensor::reals(&[2], vec![0.0; 2]));
        let object = waves(&[1, 9, 9], value);
        npz::write(
            folder.path().join("start.npz"),
            &[("probe", &probe), ("object", &object), ("pixel", &pixel), ("origin", &origin)],
            false,
        )
        .unwrap();
        config.scan[0].read.start = Some("start.npz".into());
        let error = scans(&config).err().unwrap();
        assert!(error.contains(&said.replace("probe", "object")) && error.contains("start.npz"), "{error}");
    }
}

/// Lengths of CXI and NeXus by their `units`; one that is no length is refused by name, unless the input says the number.
#[test]
fn lengths_are_in_the_units_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let scan = small();
    let write = |units: [&str; 4]| {
        let [pixel, distance, position, energy] = units;
        let by = |unit: &str| match unit {
            "mm" => 1e3,
            "um" | "micron" => 1e6,
            "angstrom" => 1e10,
            _ => 1.0,
        };
        let detector = |name: &str| format!("entry_1/instrument_1/detector_1/{name}");
        let number = |name: &str, value: f64, unit: &str| Node::number(detector(name), value * by(unit)).with("units", unit.to_owned());
        let moves = scan.positions.iter().flat_map(|p| [p[1], p[0], 0.0]).map(|v| v * by(position)).collect();
        let frames = Tensor::reals(&[6, 8, 8], vec![3.0; 6 * 64]);
        let nodes = vec![
            Node::new(detector("data"), Value::Own(frames)),
            number("x_pixel_size", scan.beam.pixel[1], pixel),
            number("y_pixel_size", scan.beam.pixel[0], pixel),
            number("distance", scan.beam.distance, distance),
            Node::new(detector("translation"), Value::Own(Tensor::reals(&[6, 3], moves))).with("units", position.to_owned()),
            Node::number("entry_1/instrument_1/beam_1/energy", scan.beam.energy()).with("units", energy.to_owned()),
        ];
        write_tree(folder.path().join("u.cxi"), &nodes).unwrap();
    };
    for units in [["um", "mm", "micron", "keV"], ["m", "m", "angstrom", "keV"], ["mm", "m", "m", "keV"]] {
        write(units);
        let found = load("u.cxi", ReadConfig::default(), folder.path()).unwrap();
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-12 * b.abs().max(1e-6);
        assert!(close(found.beam.distance, scan.beam.distance) && close(found.beam.pixel[0], scan.beam.pixel[0]), "{units:?}");
        assert!(found.positions.iter().zip(&scan.positions).all(|(a, b)| (0..2).all(|d| close(a[d], b[d]))), "{units:?}");
    }
    write(["m", "m", "rad", "keV"]);
    let error = load("u.cxi", ReadConfig::default(), folder.path()).err().unwrap();
    assert!(error.contains("detector_1/translation` is in `rad`, not in m"), "{error}");
    write(["m", "furlong", "mm", "keV"]);
    let error = load("u.cxi", ReadConfig::default(), folder.path()).err().unwrap();
    assert!(error.contains("detector_1/distance` is in `furlong`"), "{error}");
    // The input's unit goes before the file's.
    let read = ReadConfig { distance: Some(scan.beam.distance), positions_unit: 1e-3, ..ReadConfig::default() };
    let found = load("u.cxi", read, folder.path()).unwrap();
    assert!((found.positions[1][1] - scan.positions[1][1]).abs() < 1e-15);
}

/// Reads the truth of a simulated scan back from the archive, as long as its pixels are those of the frames.
#[test]
fn the_truth_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    for (propagation, bin) in [(Propagation::Far, 1), (Propagation::Near, 2)] {
        let made = made(|m| (m.propagation, m.resample) = (propagation, Pair::Same(bin)));
        let mut scan = simulate(&made, "s", Path::new(""), 1).unwrap();
        write::write_npz(folder.path().join("t.npz"), &mut scan).unwrap();
        let (found, truth) = (load("t.npz", ReadConfig::default(), folder.path()).unwrap().truth.unwrap(), scan.truth.unwrap());
        assert_eq!(
            (&found.object.values, found.object.origin, found.positions),
            (&truth.object.values, truth.object.origin, truth.positions)
        );
        assert!((0..2).all(|d| (found.object.spacing[d] / truth.object.spacing[d] - 1.0).abs() < 1e-12));
        assert_eq!((found.probe.values, found.probe.shape), (truth.probe.values, truth.probe.shape));
        let cut = ScanConfig { crop: Some([4, 4]), ..entry("t.npz", ReadConfig::default()) };
        assert!(data::load(&cut, "s", folder.path(), 1).unwrap().truth.is_none());
    }
}

#[test]
fn starts_without_coordinates_or_with_half_of_them_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.npz");
    archive(&path, &[("object_init", waves(&[1, 9, 9], 1.0))]);
    let scan = load("s.npz", ReadConfig::default(), folder.path()).unwrap();
    assert!(scan.object.is_none() && scan.notes.iter().any(|n| n.starts_with("the object of the file is ignored")), "{:?}", scan.notes);
    let start = |arrays: &[(&str, &Tensor)]| {
        npz::write(folder.path().join("start.npz"), arrays, false).unwrap();
        load("s.npz", ReadConfig { start: Some("start.npz".into()), ..ReadConfig::default() }, folder.path())
    };
    let (probe, object, pixel) = (waves(&[1, 8, 8], 1.0), waves(&[1, 9, 9], 1.0), Tensor::reals(&[2], vec![1e-6; 2]));
    let scan = start(&[("probe", &probe), ("object", &object), ("pixel", &pixel)]).unwrap();
    assert!(scan.object.is_none() && scan.probe.is_some());
    assert!(scan.notes.iter().any(|n| n.contains("is ignored: `object` needs `pixel` and `origin`")), "{:?}", scan.notes);
    let error = start(&[("object", &object)]).err().unwrap();
    assert!(error.contains("its `object` needs `pixel` and `origin`") && error.contains("`object` [1, 9, 9]"), "{error}");
    // Results of two scans, of which one had a probe of its own.
    let data = |name: &str| Node::new(name.to_owned(), Value::Own(waves(&[1, 8, 8], 1.0)));
    write_tree(
        folder.path().join("r.ptyr"),
        &[data("content/probe/SaG00/data"), data("content/obj/SaG00/data"), data("content/obj/SbG00/data")],
    )
    .unwrap();
    let read = ReadConfig { start: Some("r.ptyr".into()), start_label: Some("b".into()), ..ReadConfig::default() };
    let scan = load("s.npz", read, folder.path()).unwrap();
    assert!(scan.probe.is_none() && scan.notes.iter().any(|n| n.contains("has no probe of a scan `b`")), "{:?}", scan.notes);
}

#[test]
fn frames_that_are_cut_or_widened_unasked_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.npz");
    archive(&path, &[("intensity", Tensor::reals(&[6, 9, 8], vec![2.0; 6 * 72])), ("mask", Tensor::reals(&[9, 8], vec![1.0; 72]))]);
    let notes = |crop: Option<[usize; 2]>, rebin: Option<usize>| {
        let config = ScanConfig { crop, rebin, ..entry("s.npz", ReadConfig::default()) };
        data::load(&config, "s", folder.path(), 1).unwrap().notes.join("; ")
    };
    assert!(notes(None, None).contains("of 9 x 8 pixels, 8 x 8 are used: rows and columns have to be even"), "{}", notes(None, None));
    assert!(notes(Some([16, 8]), None).contains("frames of 9 x 8 pixels are widened to 16 x 8"));
    assert!(notes(None, Some(3)).contains("of 9 x 8 pixels, 6 x 6 are used, summed to 2 x 2"), "{}", notes(None, Some(3)));
    assert_eq!(notes(Some([8, 8]), None), "");
}
