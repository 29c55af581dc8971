//! Scans from files. `tests/data/make.py` made the files with h5py: six frames of 8 x 10 pixels, pixel `(7 i) mod 301` in C order,
//! on a raster of 2 x 3 positions 1 micrometre apart, 8 keV, 2 m, 55 micrometres.

use std::path::{Path, PathBuf};

use zellige_ptycho::config::{Config, EngineConfig, EngineName, ScanConfig};
use zellige_ptycho::data::{self, Invalid, MaskValid, Negative, ReadConfig, write};
use zellige_ptycho::scan::{Frames, Mask, Propagation, Scan};
use zellige_ptycho::setup;
use zellige_ptycho::simulate::{self, Pair, SimulateConfig};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ptycho/tests/data")
}

fn entry(file: &str, read: ReadConfig) -> ScanConfig {
    ScanConfig { file: Some(file.into()), read, ..ScanConfig::default() }
}

fn load(config: &ScanConfig) -> Result<Scan, String> {
    data::load(config, "test", &folder(), 1).map_err(|e| e.to_string())
}

fn values(scan: &mut Scan) -> Vec<f32> {
    let pixels = scan.shape[0] * scan.shape[1];
    let mut all = vec![0.0; scan.frames.len(pixels) * pixels];
    scan.frames.read(0, pixels, &mut all).unwrap();
    all
}

fn expected() -> Vec<f32> {
    (0..480).map(|i| (i * 7 % 301) as f32).collect()
}

/// The scan of `make.py`; its pixel [0, 3] is masked and reads as 0.
fn assert_same(mut scan: Scan, what: &str) {
    assert_eq!((scan.shape, scan.positions.len()), ([8, 10], 6), "{what}");
    let Mask::Common(mask) = &scan.mask else { panic!("{what}: no mask") };
    assert!(mask.iter().enumerate().all(|(i, v)| *v == (i != 3)), "{what}: {mask:?}");
    let found = values(&mut scan);
    for (i, (a, b)) in found.iter().zip(expected()).enumerate() {
        assert!(*a == b || i % 80 == 3, "{what}: {a} for {b} at {i}");
    }
    for (j, p) in scan.positions.iter().enumerate() {
        let position = [(j / 3) as f64 * 1e-6, (j % 3) as f64 * 1e-6];
        // Positions go through a division by units at most.
        assert!((0..2).all(|d| (p[d] - position[d]).abs() < 1e-18), "{what}: {p:?} for {position:?}");
    }
    assert!((scan.beam.energy() / 8.0 - 1.0).abs() < 1e-8, "{what}: {}", scan.beam.energy());
    assert_eq!((scan.beam.distance, scan.beam.pixel), (2.0, [55e-6; 2]), "{what}");
}

fn raster() -> ReadConfig {
    ReadConfig {
        frames: Some("entry/detector/data".into()),
        positions_y: Some("entry/motors/y".into()),
        positions_x: Some("entry/motors/x".into()),
        positions_unit: 1e-6,
        mask: Some("entry/calibration/mask".into()),
        energy: Some(8.0),
        distance: Some(2.0),
        pixel: Some(Pair::Same(55e-6)),
        center: Some([6.0, 8.0]),
        ..ReadConfig::default()
    }
}

#[test]
fn every_format_gives_the_same_scan() {
    assert_same(load(&entry("scan.ptyd", ReadConfig::default())).unwrap(), "ptyd");
    assert_same(load(&entry("scan.cxi", ReadConfig::default())).unwrap(), "cxi");
    let config = ScanConfig { crop: Some([8, 10]), ..entry("raster.nxs", raster()) };
    let scan = load(&config).unwrap();
    assert_eq!(scan.notes.len(), 1, "{:?}", scan.notes);
    assert_same(scan, "paths");
    let streamed = ScanConfig { read: ReadConfig { stream: true, ..raster() }, ..config };
    let scan = load(&streamed).unwrap();
    assert!(matches!(scan.frames, Frames::Stored(_)));
    assert_same(scan, "streamed");
}

#[test]
fn frames_are_read_in_blocks_in_any_order() {
    let streamed = |file: &str, read: ReadConfig| {
        let config = ScanConfig { crop: Some([8, 10]), ..entry(file, ReadConfig { stream: true, ..read }) };
        load(&config).unwrap()
    };
    for mut scan in
        [streamed("scan.ptyd", ReadConfig::default()), streamed("scan.cxi", ReadConfig::default()), streamed("raster.nxs", raster())]
    {
        let all = values(&mut scan);
        for (first, count) in [(3, 3), (0, 1), (1, 5), (5, 1), (2, 2)] {
            let mut part = vec![0.0; count * 80];
            scan.frames.read(first, 80, &mut part).unwrap();
            assert_eq!(part, all[first * 80..(first + count) * 80]);
        }
    }
}

#[test]
fn gaps_of_the_detector_are_masked_and_told() {
    let config = entry("raster.nxs", ReadConfig { mask: None, ..raster() });
    let scan = load(&config).unwrap();
    assert_eq!(scan.shape, [14, 14]);
    assert!(scan.notes[0].starts_with("14 pixels of the detector hold no counts"), "{:?}", scan.notes);
    let Mask::Common(mask) = scan.mask else { panic!("no mask") };
    // One column of gaps, two rows below and two columns beside what was padded to bring the axis to the middle.
    assert!(mask.contains(&false) && mask[7 * 14 + 7]);
}

#[test]
fn frames_are_cut_summed_skipped_and_turned() {
    let plain = load(&entry("scan.cxi", ReadConfig::default())).map(|mut s| values(&mut s)).unwrap();
    let read = ReadConfig { mask_valid: Some(MaskValid::Nonzero), ..ReadConfig::default() };
    let config = ScanConfig { crop: Some([4, 6]), every: Some(4), ..entry("scan.cxi", read) };
    let mut scan = load(&config).unwrap();
    let found = values(&mut scan);
    assert_eq!((scan.shape, scan.positions.len()), ([4, 6], 2));
    for (k, j) in [0, 4].into_iter().enumerate() {
        for (r, c) in (0..4).flat_map(|r| (0..6).map(move |c| (r, c))) {
            assert_eq!(found[(k * 4 + r) * 6 + c], plain[(j * 8 + r + 2) * 10 + c + 2]);
        }
    }
    let config = ScanConfig { rebin: Some(3), crop: Some([6, 6]), ..entry("scan.cxi", ReadConfig::default()) };
    let mut scan = load(&config).unwrap();
    assert_eq!((scan.shape, scan.beam.pixel), ([2, 2], [165e-6; 2]));
    // The middle pixel sums the nine around the axis [4, 5].
    let sum: f32 = (3..6).flat_map(|r| (4..7).map(move |c| (r, c))).map(|(r, c)| plain[r * 10 + c]).sum();
    assert_eq!(values(&mut scan)[3], sum);
    let config = entry("scan.cxi", ReadConfig { orientation: 4, ..ReadConfig::default() });
    let mut scan = load(&config).unwrap();
    assert_eq!(scan.shape, [10, 8]);
    assert_eq!(values(&mut scan)[6 * 8 + 4], plain[4 * 10 + 6]);
}

#[test]
fn corrections_are_applied() {
    let read = ReadConfig { dark: Some("entry/calibration/dark".into()), gain: 2.0, ..raster() };
    let mut scan = load(&ScanConfig { crop: Some([8, 10]), ..entry("raster.nxs", read) }).unwrap();
    for (i, (a, b)) in values(&mut scan).iter().zip(expected()).enumerate() {
        assert!(*a == b / 2.0 || i % 80 == 3);
    }
}

#[test]
fn a_start_is_taken_from_earlier_results() {
    let scan = load(&entry("scan.cxi", ReadConfig { start: Some("result.ptyr".into()), ..ReadConfig::default() })).unwrap();
    let (probe, object) = (scan.probe.unwrap(), scan.object.unwrap());
    assert_eq!((probe.shape, object.shape), ([1, 8, 10], [1, 12, 14]));
    assert_eq!((probe.values[3].re, probe.values[3].im), (3.0, 1.5));
    assert_eq!((object.spacing, object.origin), ([1e-7, 2e-7], [-5e-7, -2e-6]));
}

#[test]
fn what_is_wrong_with_a_file_is_said() {
    let with = |f: &dyn Fn(&mut ReadConfig)| {
        let mut read = raster();
        f(&mut read);
        load(&entry("raster.nxs", read)).err().unwrap_or_else(|| "it was read".into())
    };
    let missing = load(&entry("raster.nxs", ReadConfig::default())).err().unwrap();
    assert!(missing.contains("neither a .ptyd nor a CXI file") && missing.contains("`entry/motors/x` [3]"), "{missing}");
    for (error, said) in [
        (with(&|r| r.frames = Some("entry/nothing".into())), "it has no dataset `entry/nothing` (datasets: "),
        (with(&|r| r.frames = Some("entry/motors/y".into())), "[2], not [n, rows, columns]"),
        (with(&|r| r.positions_x = Some("entry/motors/y".into())), "do not fit 6 frames"),
        (with(&|r| r.energy = None), "it does not say the photon energy"),
        (with(&|r| r.mask = Some("entry/calibration/none".into())), "every pixel is masked"),
        (with(&|r| r.center = Some([40.0, 3.0])), "the optical axis [40.0, 3.0] lies outside"),
        (with(&|r| r.positions_unit = 1e3), "are positions in metres (of a file: `read = { positions_unit = 1e-6 }`"),
        (with(&|r| r.mask = Some("entry/motors/x".into())), "its mask has 3 pixels"),
        (load(&entry("absent.cxi", ReadConfig::default())).err().unwrap(), "cannot read"),
    ] {
        assert!(error.contains(said), "{error}");
    }
}

/// Units that cannot be meant are noted with the pixel that they give.
#[test]
fn odd_units_are_noted() {
    let odd = |f: &dyn Fn(&mut ReadConfig)| {
        let mut read = raster();
        f(&mut read);
        load(&entry("raster.nxs", read)).unwrap().notes
    };
    let notes = odd(&|r| r.distance = Some(2e4));
    assert!(notes.iter().any(|n| n.starts_with("the pixel of the object is ")), "{notes:?}");
    let notes = odd(&|r| r.positions_unit = 1e-12);
    assert!(notes.iter().any(|n| n.starts_with("all positions lie within half a pixel")), "{notes:?}");
    let notes = odd(&|r| r.energy = Some(8000.0));
    assert!(notes.iter().any(|n| n.contains("is it in eV?")), "{notes:?}");
}

/// Positions a metre apart span an object that no memory holds: said with its size and the units, before anything of it is asked
/// for.
#[test]
fn an_object_beyond_memory_is_refused_with_the_units() {
    let made = SimulateConfig { frames: 9, size: Pair::Same(16), ..SimulateConfig::default() };
    let config = Config::new(ScanConfig { simulate: Some(made), ..ScanConfig::default() }, EngineConfig::new(EngineName::Dm, 1));
    let mut scans = setup::scans(&config, &folder(), 1).unwrap();
    scans[0].positions[0] = [1.0, 1.0];
    let error = setup::model(&config, &mut scans, 1).err().unwrap().to_string();
    assert!(error.contains("more than the") && error.contains("hint: look at the units of the positions (metres), energy (7.2"), "{error}");
    // A scan is not simulated either on a sample of such a size.
    let mut made = config.scan[0].simulate.clone().unwrap();
    made.pattern.step = Some(1.0);
    let error = simulate::simulate(&made, "wide", &folder(), 1).err().unwrap().to_string();
    assert!(error.starts_with("out of memory on the host") && error.contains("is `pattern.step` in metres?"), "{error}");
}

#[test]
fn bad_counts_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let made = SimulateConfig { frames: 9, size: Pair::Same(16), noise: false, ..SimulateConfig::default() };
    let mut scan = simulate::simulate(&made, "bad", folder.path(), 1).unwrap();
    let Frames::Real(real) = &mut scan.frames else { panic!("without noise frames are real") };
    for (value, said) in [(f32::NAN, "is not a number"), (-3.0, "has -3 counts")] {
        real[4 * 256 + 17] = value;
        let copy = Frames::Real(real.clone());
        let mut bad =
            Scan { frames: copy, name: "bad".into(), mask: Mask::All, ..simulate::simulate(&made, "bad", folder.path(), 1).unwrap() };
        let path = folder.path().join("bad.npz");
        write::write_npz(&path, &mut bad).unwrap();
        let refused = ReadConfig { negative: Negative::Refuse, invalid: Invalid::Refuse, ..ReadConfig::default() };
        let error = data::load(&entry(path.to_str().unwrap(), refused), "bad", folder.path(), 1).err().unwrap().to_string();
        assert!(error.contains(&format!("pixel [1, 1] of frame 4 {said}")), "{error}");
    }
    let mut short = simulate::simulate(&made, "short", folder.path(), 1).unwrap();
    short.positions.pop();
    let path = folder.path().join("short.npz");
    let Frames::Real(real) = &mut short.frames else { panic!("without noise frames are real") };
    real.truncate(8 * 256);
    write::write_npz(&path, &mut short).unwrap();
    let mut archive = zellige_io::npz::Archive::open(&path).unwrap();
    let (frames, positions) = (archive.read("intensity").unwrap(), archive.read("pos_m").unwrap());
    let fewer = zellige_io::tensor::Tensor::reals(&[7, 2], positions.to_reals().unwrap()[..14].to_vec());
    zellige_io::npz::write(&path, &[("intensity", &frames), ("pos_m", &fewer)], false).unwrap();
    let error = data::load(&entry(path.to_str().unwrap(), ReadConfig::default()), "short", folder.path(), 1).err().unwrap().to_string();
    assert!(error.contains("it has 8 frames, but 7 positions"), "{error}");
}

/// A scan survives each format that is written: counts and masks bit for bit, geometry to rounding of an addition or two.
#[test]
fn what_is_written_is_read() {
    let folder = tempfile::tempdir().unwrap();
    for (noise, propagation) in [(true, Propagation::Far), (false, Propagation::Far), (true, Propagation::Near)] {
        let mut made = SimulateConfig { frames: 7, size: Pair::Each([12, 16]), noise, ..SimulateConfig::default() };
        made.detector.beamstop = 3.0;
        made.pixel = Pair::Each([75e-6, 55e-6]);
        made.propagation = propagation;
        let make = || simulate::simulate(&made, "a scan", folder.path(), 5).unwrap();
        let mut original = make();
        original.probe = original.truth.as_ref().map(|t| t.probe.clone());
        let frames = values(&mut original);
        type Writer = fn(&Path, &mut Scan) -> zellige_engine::error::Result<()>;
        let writers: [(&str, Writer); 3] = [
            ("scan.npz", |p, s| write::write_npz(p, s)),
            ("scan.cxi", |p, s| write::write_cxi(p, s)),
            ("scan.ptyd", |p, s| write::write_ptyd(p, s)),
        ];
        for (name, write) in writers {
            let path = folder.path().join(name);
            write(&path, &mut original).unwrap();
            let mut found = data::load(&entry(name, ReadConfig::default()), "again", folder.path(), 1).unwrap();
            assert_eq!(values(&mut found), frames, "{name}");
            assert_eq!(found.shape, original.shape);
            let (Mask::Common(a), Mask::Common(b)) = (&found.mask, &original.mask) else { panic!("{name}: no mask") };
            assert_eq!(a, b, "{name}");
            for (a, b) in found.positions.iter().zip(&original.positions) {
                assert!((0..2).all(|d| (a[d] - b[d]).abs() < 1e-18), "{name}");
            }
            let (a, b) = (&found.beam, &original.beam);
            assert!((a.wavelength / b.wavelength - 1.0).abs() < 1e-12, "{name}");
            assert_eq!((a.distance, a.pixel, a.propagation), (b.distance, b.pixel, propagation), "{name}");
            // The input takes precedence over the file.
            let told = ReadConfig { propagation: Some(Propagation::Far), ..ReadConfig::default() };
            let other = data::load(&entry(name, told), "again", folder.path(), 1).unwrap();
            assert_eq!(other.beam.propagation, Propagation::Far, "{name}");
            if name != "scan.ptyd" {
                let probe = found.probe.unwrap();
                assert_eq!(probe.values, original.probe.as_ref().unwrap().values, "{name}");
                let pixel = original.beam.resolution(original.shape);
                assert!((0..2).all(|d| (probe.spacing[d] / pixel[d] - 1.0).abs() < 1e-12), "{name}");
            }
        }
    }
}

#[test]
fn a_simulated_scan_is_cut_like_a_measured_one() {
    let config = ScanConfig {
        simulate: Some(SimulateConfig { frames: 8, size: Pair::Same(32), ..SimulateConfig::default() }),
        ..ScanConfig::default()
    };
    let mut whole = data::load(&config, "s", &folder(), 3).unwrap();
    let config = ScanConfig { crop: Some([16, 16]), every: Some(2), ..config };
    let mut cut = data::load(&config, "s", &folder(), 3).unwrap();
    assert_eq!((cut.shape, cut.positions.len()), ([16, 16], 4));
    assert_eq!(cut.beam, whole.beam);
    let (a, b) = (values(&mut whole), values(&mut cut));
    assert_eq!(b[256 + 8 * 16 + 8], a[2 * 1024 + 16 * 32 + 16]);
}

/// Bytes set to 0 and 0xff, and cuts, all over sound files: a scan whose parts fit one another, or an error; never a panic.
#[test]
fn damage_ends_in_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let made = SimulateConfig { frames: 4, size: Pair::Same(8), ..SimulateConfig::default() };
    let mut scan = simulate::simulate(&made, "s", folder.path(), 1).unwrap();
    write::write_npz(folder.path().join("whole.npz"), &mut scan).unwrap();
    let hook = std::panic::take_hook();
    // The library of HDF5 panics now and then; what comes out of `load` is what counts.
    std::panic::set_hook(Box::new(|_| ()));
    let mut refused = 0;
    for (source, name) in [
        (folder.path().join("whole.npz"), "scan.npz"),
        (self::folder().join("scan.cxi"), "scan.cxi"),
        (self::folder().join("scan.ptyd"), "scan.ptyd"),
    ] {
        let whole = std::fs::read(source).unwrap();
        std::fs::copy(self::folder().join("scan.ptyd.part001"), folder.path().join("scan.ptyd.part001")).unwrap();
        for at in (0..whole.len()).step_by(whole.len() / 80 + 1) {
            let mut damaged = [whole.clone(), whole.clone(), whole[..at].to_vec()];
            (damaged[0][at], damaged[1][at]) = (0, 0xff);
            for bytes in damaged {
                std::fs::write(folder.path().join(name), bytes).unwrap();
                match data::load(&entry(name, ReadConfig::default()), "d", folder.path(), 1) {
                    Ok(mut scan) => assert_eq!(values(&mut scan).len(), scan.positions.len() * scan.shape[0] * scan.shape[1]),
                    Err(error) => {
                        refused += 1;
                        assert!(!error.to_string().is_empty());
                    }
                }
            }
        }
    }
    std::panic::set_hook(hook);
    assert!(refused > 200, "{refused}");
}

/// Damages the results that a run starts from, up to the problem that is made of them.
#[test]
fn damaged_results_end_in_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(self::folder().join("scan.cxi"), folder.path().join("scan.cxi")).unwrap();
    let whole = std::fs::read(self::folder().join("result.ptyr")).unwrap();
    let read = ReadConfig { start: Some("damaged.ptyr".into()), ..ReadConfig::default() };
    let config = Config::new(entry("scan.cxi", read), EngineConfig::new(EngineName::Dm, 1));
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let mut refused = 0;
    // Nearly all that is not numbers lies in the first kilobytes.
    for at in (0..whole.len()).step_by(whole.len() / 100 + 1).chain((0..6000).step_by(47)) {
        let mut damaged = [whole.clone(), whole.clone(), whole[..at].to_vec()];
        (damaged[0][at], damaged[1][at]) = (0, 0xff);
        for bytes in damaged {
            std::fs::write(folder.path().join("damaged.ptyr"), bytes).unwrap();
            let made = setup::scans(&config, folder.path(), 1).and_then(|mut scans| setup::model(&config, &mut scans, 1));
            match made {
                Ok(model) => assert_eq!((model.start.probe.len(), model.start.object.len()), (model.probe_len(), model.object_len())),
                Err(error) => {
                    refused += 1;
                    assert!(!error.to_string().is_empty());
                }
            }
        }
    }
    std::panic::set_hook(hook);
    // Each file that is cut, at least.
    assert!(refused > 200, "{refused}");
}
