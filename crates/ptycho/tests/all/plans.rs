//! Plans without frames; refusals, and runs that go on with more iterations than they had.

use std::path::Path;

use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::cuda::Properties;
use zellige_engine::device::{Cpu, Device};
use zellige_engine::links::Links;
use zellige_engine::profile::Profiler;
use zellige_engine::sim::{Environment, Solver};
use zellige_io::npz;
use zellige_io::tensor::Tensor;
use zellige_ptycho::Ptycho;
use zellige_ptycho::bench;
use zellige_ptycho::config::{Config, EngineConfig, EngineName, ScanConfig};
use zellige_ptycho::data::{self, Negative, ReadConfig, write};
use zellige_ptycho::scan::Mask;
use zellige_ptycho::setup;
use zellige_ptycho::simulate::{Pair, SimulateConfig, simulate};

fn environment(folder: &Path) -> Environment {
    Environment::new(Device::Cpu(Cpu::new(1).unwrap()), folder, 1)
}

fn small() -> SimulateConfig {
    SimulateConfig { frames: 9, size: Pair::Same(16), ..SimulateConfig::default() }
}

/// The lines of a plan by their names.
fn lines(config: &Config, folder: &Path) -> Vec<(String, String)> {
    Ptycho::plan(config, &environment(folder)).unwrap().lines
}

/// The scan is neither made nor read: of each format the frames are replaced by what cannot be read.
#[test]
fn a_plan_needs_no_frames() {
    let folder = tempfile::tempdir().unwrap();
    let made = Config::new(ScanConfig { simulate: Some(small()), ..ScanConfig::default() }, EngineConfig::new(EngineName::Dm, 1));
    let planned = lines(&made, folder.path());
    assert!(planned.iter().all(|(name, _)| name != "counts"), "{planned:?}");
    assert!(planned[0].1.starts_with("9 of 16 x 16 pixels"), "{planned:?}");
    // A run says the same and knows the counts.
    let there = environment(folder.path());
    let prepared = Ptycho::prepare(&made, &there).unwrap();
    let plan = Ptycho::plan_prepared(&prepared, &made, &there).unwrap();
    assert!(plan.lines.iter().any(|(name, _)| name == "counts"));
    assert_eq!(plan.lines.iter().filter(|l| l.0 != "counts").cloned().collect::<Vec<_>>(), planned);
    let mut scan = simulate(&small(), "s", folder.path(), 1).unwrap();
    write::write_npz(folder.path().join("s.npz"), &mut scan).unwrap();
    write::write_cxi(folder.path().join("s.cxi"), &mut scan).unwrap();
    write::write_ptyd(folder.path().join("s.ptyd"), &mut scan).unwrap();
    for file in ["s.npz", "s.cxi", "s.ptyd"] {
        let entry = ScanConfig { file: Some(file.into()), ..ScanConfig::default() };
        let config = Config::new(entry, EngineConfig::new(EngineName::Dm, 1));
        // Of a file nothing is known of the optics.
        let alike = |lines: Vec<(String, String)>| lines.into_iter().filter(|(name, _)| name != "start").collect::<Vec<_>>();
        assert_eq!(alike(lines(&config, folder.path())), alike(planned.clone()), "{file}");
        let mut scans = setup::planned(&config, folder.path(), 1).unwrap();
        assert!(matches!(scans[0].frames, zellige_ptycho::scan::Frames::Planned(9)) && matches!(scans[0].mask, Mask::All), "{file}");
        assert!(setup::outline(&config, &mut scans, &Links::default()).unwrap().mag.is_empty());
    }
}

/// An archive whose frames claim to be larger than the memory of the host: the plan and the run say so before they read any of
/// them.
#[test]
fn scans_that_no_memory_holds_are_refused_with_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.npz");
    // Enough frames of 4096 squared pixels.
    let frames = (zellige_engine::device::host_memory() >> 26) as usize + 4;
    let positions = Tensor::reals(&[frames, 2], (0..2 * frames).map(|i| 1e-9 * i as f64).collect());
    let one = Tensor::number;
    let numbers = [("energy_keV", one(8.0)), ("distance", one(2.0)), ("det_pixel", one(1e-4))];
    let header = format!("{{'descr': '<u2', 'fortran_order': False, 'shape': ({frames}, 4096, 4096), }}");
    let mut arrays: Vec<(&str, &Tensor)> = vec![("pos_m", &positions)];
    arrays.extend(numbers.iter().map(|(n, t)| (*n, t)));
    npz::write(&path, &arrays, false).unwrap();
    with_claim(&path, "intensity.npy", &header);
    for stream in [false, true] {
        let read = ReadConfig { stream, ..ReadConfig::default() };
        let entry = ScanConfig { file: Some("large.npz".into()), read, ..ScanConfig::default() };
        let config = Config::new(entry, EngineConfig::new(EngineName::Epie, 1));
        for error in [Ptycho::plan(&config, &environment(folder.path())).err(), Ptycho::setup(&config, &environment(folder.path())).err()] {
            let error = error.unwrap();
            let said = error.to_string();
            assert!(said.starts_with("out of memory on ") && said.contains(&format!("{frames} frames of 4096 x 4096 pixels")), "{said}");
            assert_eq!(error.exit_code(), 4);
        }
    }
}

/// Puts a stored member in front of an archive's directory that says it is an array of NumPy with this header, and holds nothing
/// else.
fn with_claim(path: &Path, name: &str, header: &str) {
    let bytes = std::fs::read(path).unwrap();
    let end = bytes.len() - 22;
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (size, start) = (word(end + 12) as usize, word(end + 16) as usize);
    let count = u16::from_le_bytes(bytes[end + 10..end + 12].try_into().unwrap());
    let mut array = b"\x93NUMPY\x01\x00".to_vec();
    let padded = header.len().next_multiple_of(64) + 54 - 1;
    array.extend(((padded + 1) as u16).to_le_bytes());
    array.extend(format!("{header:padded$}\n").bytes());
    // More than what is looked at to learn its shape.
    array.resize(8192, 0);
    let fields = |out: &mut Vec<u8>| {
        out.extend([0; 8]);
        out.extend(0_u32.to_le_bytes());
        out.extend([(array.len() as u32).to_le_bytes(); 2].concat());
        out.extend((name.len() as u16).to_le_bytes());
        out.extend(0_u16.to_le_bytes());
    };
    let mut out = bytes[..start].to_vec();
    out.extend(b"PK\x03\x04\x14\0");
    fields(&mut out);
    out.extend(name.bytes());
    out.extend(&array);
    let directory = out.len();
    out.extend(&bytes[start..start + size]);
    out.extend(b"PK\x01\x02\x14\0\x14\0");
    fields(&mut out);
    out.extend([0; 10]);
    out.extend((start as u32).to_le_bytes());
    out.extend(name.bytes());
    let size = (out.len() - directory) as u32;
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend([(count + 1).to_le_bytes(); 2].concat());
    out.extend(size.to_le_bytes());
    out.extend((directory as u32).to_le_bytes());
    out.extend([0; 2]);
    std::fs::write(path, out).unwrap();
}

/// Runs to the end and keeps a checkpoint, from one that is there if asked to.
fn ran(config: &Config, folder: &Path, from: Option<&Path>, to: &Path) -> Result<Ptycho, String> {
    let environment = environment(folder);
    let mut solver = Ptycho::setup(config, &environment).unwrap();
    if let Some(from) = from {
        solver.restore(&Reader::open(from, Ptycho::NAME).unwrap()).map_err(|e| e.to_string())?;
    }
    while solver.outcome().is_none() {
        solver.step(&mut Profiler::off()).unwrap();
    }
    let mut writer = Writer::create(to, Ptycho::NAME).unwrap();
    solver.save(&mut writer).unwrap();
    writer.finish().unwrap();
    Ok(solver)
}

/// Runs that ended go on with more iterations of their last engine, and with engines behind it, as if they had been asked for at
/// once.
#[test]
fn runs_go_on_with_more_iterations_and_engines() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let engine = |name, iterations| EngineConfig::new(name, iterations);
    let scan = ScanConfig { simulate: Some(small()), ..ScanConfig::default() };
    let of = |engine: Vec<EngineConfig>| Config { engine, ..Config::new(scan.clone(), EngineConfig::default()) };
    let short = of(vec![engine(EngineName::Dm, 3), engine(EngineName::Ml, 2)]);
    ran(&short, folder.path(), None, &at("short")).unwrap();
    let long = of(vec![engine(EngineName::Dm, 3), engine(EngineName::Ml, 4), engine(EngineName::Epie, 2)]);
    let mut whole = ran(&long, folder.path(), None, &at("whole")).unwrap();
    let mut later = ran(&long, folder.path(), Some(&at("short")), &at("later")).unwrap();
    assert_eq!(whole.clock().step, 9);
    assert_eq!((later.clock().step, later.whole().state().unwrap()), (9, whole.whole().state().unwrap()));
    // With modes, which were made orthogonal in between: the engine goes on as it was. Rounding of a change of basis and back grows a hundredfold in an iteration or two.
    let modes = |iterations| {
        let mut config = of(vec![engine(EngineName::Dm, iterations)]);
        config.probe.modes = 2;
        config
    };
    ran(&modes(3), folder.path(), None, &at("modes")).unwrap();
    let whole_modes = ran(&modes(5), folder.path(), None, &at("whole modes")).unwrap().whole().state().unwrap();
    let later_modes = ran(&modes(5), folder.path(), Some(&at("modes")), &at("later modes")).unwrap().whole().state().unwrap();
    let off = |a: &[num_complex::Complex<f64>], b: &[num_complex::Complex<f64>]| {
        let sum: f64 = a.iter().zip(b).map(|(a, b)| (a - b).norm_sqr()).sum();
        (sum / b.iter().map(num_complex::Complex::norm_sqr).sum::<f64>()).sqrt()
    };
    let off = off(&later_modes.object, &whole_modes.object);
    assert!(off < 1e-4, "{off}");
    // The run loop compares all of an input but this before it asks.
    assert_eq!(Ptycho::may_change(), ["engine"]);
    // Finished work cannot be changed.
    let refused = [
        (of(vec![engine(EngineName::Dm, 4), engine(EngineName::Ml, 4)]), "engine[0] (DM) differs"),
        (
            of(vec![engine(EngineName::Dm, 3), EngineConfig { probe_scale: Some(2.0), ..engine(EngineName::Ml, 4) }]),
            "engine[1] (ML) differs",
        ),
        (of(vec![engine(EngineName::Dm, 3)]), "belongs to an input of 2 engines, this one has 1"),
    ];
    for (config, said) in refused {
        let error = ran(&config, folder.path(), Some(&at("short")), &at("none")).err().unwrap();
        assert!(error.contains(said), "{error}");
    }
    let error = ran(
        &of(vec![engine(EngineName::Dm, 3), engine(EngineName::Ml, 4), engine(EngineName::Epie, 1)]),
        folder.path(),
        Some(&at("whole")),
        &at("none"),
    )
    .err()
    .unwrap();
    assert!(error.contains("engine[2] (ePIE) has done 2 iterations, and the input asks for 1"), "{error}");
}

/// Negative counts, values that are none, saturated and hot pixels: a scan goes on with what is left, alike whether frames are held
/// or streamed.
#[test]
fn frames_of_real_detectors_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut scan = simulate(&SimulateConfig { photons: 1e4, ..small() }, "s", folder.path(), 1).unwrap();
    write::write_npz(folder.path().join("s.npz"), &mut scan).unwrap();
    let mut archive = npz::Archive::open(folder.path().join("s.npz")).unwrap();
    let mut counts = archive.read("intensity").unwrap().to_reals().unwrap();
    let at = |frame: usize, row: usize, column: usize| (frame * 16 + row) * 16 + column;
    (counts[at(4, 1, 2)], counts[at(5, 1, 2)], counts[at(4, 3, 4)], counts[at(2, 8, 8)]) = (-3.0, -1.0, f64::NAN, 6e4);
    (0..9).for_each(|j| counts[at(j, 12, 3)] = 5000.0 + counts[at(j, 12, 3)]);
    // A gap of the detector has the same number in all frames.
    (0..9).for_each(|j| counts[at(j, 14, 14)] = -1.0);
    let names: Vec<String> = archive.names().map(str::to_owned).collect();
    let mut all: Vec<(String, Tensor)> = names.into_iter().map(|n| (n.clone(), archive.read(&n).unwrap())).collect();
    all.iter_mut().filter(|(n, _)| n == "intensity").for_each(|(_, t)| *t = Tensor::reals(&[9, 16, 16], counts.clone()));
    npz::write(folder.path().join("s.npz"), &all.iter().map(|(n, t)| (&n[..], t)).collect::<Vec<_>>(), false).unwrap();
    let model = |read: ReadConfig| {
        let entry = ScanConfig { file: Some("s.npz".into()), read, ..ScanConfig::default() };
        let config = Config::new(entry, EngineConfig::new(EngineName::Dm, 1));
        let mut scans = setup::scans(&config, folder.path(), 1).map_err(|e| e.to_string())?;
        let model = setup::model(&config, &mut scans, 1).map_err(|e| e.to_string())?;
        Ok::<_, String>((model, scans.remove(0).notes))
    };
    // Corner first: row 8 and column 8 are the middle.
    let mag = |m: &zellige_ptycho::model::Model, frame, row: usize, column: usize| m.mag[at(frame, (row + 8) % 16, (column + 8) % 16)];
    let masked = |m: &zellige_ptycho::model::Model| m.mag.iter().filter(|m| **m < 0.0).count();
    for stream in [false, true] {
        let (plain, notes) = model(ReadConfig { stream, ..ReadConfig::default() }).unwrap();
        assert_eq!((mag(&plain, 4, 1, 2), mag(&plain, 4, 3, 4), masked(&plain)), (0.0, -1.0, 9 + 1));
        assert!(notes.iter().any(|n| n.starts_with("2 negative counts are taken for 0")), "{notes:?}");
        assert!(notes.iter().any(|n| n.starts_with("1 values that are no counts")), "{notes:?}");
        let read = ReadConfig { stream, negative: Negative::Mask, saturated: Some(5e4), hot: Some(20.0), ..ReadConfig::default() };
        let (strict, notes) = model(read).unwrap();
        assert_eq!([(4, 1, 2), (2, 8, 8), (0, 12, 3), (8, 12, 3)].map(|(j, r, c)| mag(&strict, j, r, c)), [-1.0; 4], "{notes:?}");
        assert_eq!(masked(&strict), 2 * 9 + 4, "{notes:?}");
        assert!(
            notes.iter().any(|n| n.starts_with("1 hot pixels")) && notes.iter().any(|n| n.starts_with("1 counts of 50000 or more")),
            "{notes:?}"
        );
        let refused = model(ReadConfig { stream, negative: Negative::Refuse, ..ReadConfig::default() }).err().unwrap();
        assert!(refused.contains("pixel [1, 2] of frame 4 has -3 counts"), "{refused}");
    }
    // Another program is given numbers and a mask.
    let entry = ScanConfig { file: Some("s.npz".into()), ..ScanConfig::default() };
    let mut found = data::load(&entry, "s", folder.path(), 1).unwrap();
    write::write_ptyd(folder.path().join("again.ptyd"), &mut found).unwrap();
    let file = zellige_io::hdf5::File::open(folder.path().join("again.ptyd")).unwrap();
    assert!(file.read("chunks/0/data").unwrap().to_reals().unwrap().iter().all(|v| *v >= 0.0));
    assert_eq!(file.read("chunks/0/weights").unwrap().to_reals().unwrap().iter().filter(|w| **w == 0.0).count(), 10);
}

/// Kernels that are told before a run, for a pack, are those of the run: those of probes between pixels, of supports and of the
/// preconditioner.
#[test]
fn programs_of_what_is_asked_for_are_told() {
    let programs = |subpixel: bool, engine: EngineConfig| {
        let scan = ScanConfig { simulate: Some(small()), ..ScanConfig::default() };
        let config = Config { subpixel, ..Config::new(scan, engine) };
        let told = Ptycho::programs(&config, &environment(Path::new(".")), &Properties::usual("sm_90").unwrap()).unwrap();
        ["sub-pixel probes", "supports", "wavefield"].map(|name| told.iter().any(|p| p.name.starts_with(&format!("ptycho {name} "))))
    };
    let dm = || EngineConfig::new(EngineName::Dm, 1);
    assert_eq!(programs(false, dm()), [false; 3]);
    assert_eq!(programs(true, dm()), [true, true, false]);
    assert_eq!(programs(false, EngineConfig { probe_support: Some(0.7), ..dm() }), [false, true, false]);
    let ml = EngineConfig { wavefield_preconditioner: Some(true), ..EngineConfig::new(EngineName::Ml, 1) };
    assert_eq!(programs(false, ml), [false, false, true]);
}

/// The cases of a benchmark that are over in a second pass their checks, and come no nearer to the truth than they should.
#[test]
fn benchmark_cases_come_as_near_to_the_truth_as_they_should() {
    let (device, mut wrong) = (Device::Cpu(Cpu::new(2).unwrap()), Vec::new());
    for case in bench::CASES.iter().filter(|c| ["ptycho/dm-92x128", "ptycho/epie-92x128", "ptycho/ml-92x128"].contains(&c.name)) {
        let mut bench = bench::open(case, &device).unwrap();
        // The repetition that is not timed, as `zellige bench` has it.
        bench.reset().unwrap();
        bench.run(&mut Profiler::off()).unwrap();
        bench.reset().unwrap();
        let checks = bench.checks().unwrap();
        // The bound is a twentieth above what is found.
        if checks.len() != 3 || checks.iter().any(|c| !c.ok) || checks[0].value < 0.94 * checks[0].limit {
            wrong.push(format!("{}: {checks:?}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
