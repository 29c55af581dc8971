//! What the solver says of inputs that cannot be meant, and what it makes of the keys of `read` in every format.

use std::path::Path;

use num_complex::Complex;
use zellige_io::npz;
use zellige_io::tensor::{Elements, Tensor};
use zellige_ptycho::config::{Config, EngineConfig, EngineName, ScanConfig};
use zellige_ptycho::data::{self, MaskValid, ReadConfig, write};
use zellige_ptycho::scan::{Mask, Scan};
use zellige_ptycho::setup;
use zellige_ptycho::simulate::{Pair, SimulateConfig, simulate};

fn made(change: impl FnOnce(&mut SimulateConfig)) -> SimulateConfig {
    let mut made = SimulateConfig { frames: 6, size: Pair::Same(8), ..SimulateConfig::default() };
    change(&mut made);
    made
}

fn small() -> Scan {
    simulate(&made(|_| ()), "s", Path::new(""), 1).unwrap()
}

/// An archive of the small scan with some arrays more, or others in place of its own.
fn archive(path: &Path, more: &[(&str, Tensor)]) {
    write::write_npz(path, &mut small()).unwrap();
    let mut file = npz::Archive::open(path).unwrap();
    let names: Vec<String> = file.names().filter(|n| more.iter().all(|m| m.0 != *n)).map(str::to_owned).collect();
    let own: Vec<(String, Tensor)> = names.into_iter().map(|n| (n.clone(), file.read(&n).unwrap())).collect();
    let all = own.iter().map(|(n, t)| (&n[..], t)).chain(more.iter().map(|(n, t)| (*n, t)));
    npz::write(path, &all.collect::<Vec<_>>(), false).unwrap();
}

fn entry(file: &str, read: ReadConfig) -> ScanConfig {
    ScanConfig { file: Some(file.into()), read, ..ScanConfig::default() }
}

fn load(file: &str, read: ReadConfig, folder: &Path) -> Result<Scan, String> {
    data::load(&entry(file, read), "s", folder, 1).map_err(|e| e.to_string())
}

fn waves(shape: &[usize], value: f32) -> Tensor {
    let values = vec![Complex::new(value, 0.0); shape.iter().product()];
    Tensor { shape: shape.to_vec(), elements: Elements::Complex(values) }
}

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

#[test]
fn keys_of_a_file_that_nothing_is_read_from_are_refused() {
    let faults = |read: ReadConfig| read.check().iter().map(ToString::to_string).collect::<Vec<_>>();
    let other = || Some("other.h5".into());
    for (read, said) in [
        (ReadConfig { mask_file: other(), ..ReadConfig::default() }, "`mask_file`: nothing says which dataset"),
        (ReadConfig { positions_file: other(), ..ReadConfig::default() }, "`positions_file`: nothing says which dataset"),
        (
            ReadConfig { swap: true, positions_y: Some("y".into()), positions_x: Some("x".into()), ..ReadConfig::default() },
            "`swap`: `positions_y` and `positions_x` say",
        ),
    ] {
        let found = faults(read);
        assert!(found.len() == 1 && found[0].starts_with(said) && found[0].contains("hint: "), "{found:?}");
    }
}

/// A dark frame makes no counts of what is none, and has to be one itself.
#[test]
fn bad_counts_are_seen_beside_a_dark_frame() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.npz");
    let read = ReadConfig { dark: Some("dark".into()), ..ReadConfig::default() };
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
        assert!(error.contains(said) && error.contains("s.npz") && error.contains("`ignore_file = true`"), "{error}");
        config.probe.ignore_file = true;
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
