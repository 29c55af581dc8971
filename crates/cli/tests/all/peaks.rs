//! Memory forecast of a reconstruction's plan, against the peak of its process: every kind of scan and engine.

use std::path::Path;

use crate::common::zellige;

/// Part of the peak that a plan may be off.
const WITHIN: f64 = 0.1;

/// A scan that is simulated, and what is made of it.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    frames: usize,
    size: usize,
    modes: usize,
    /// Keys of the top level, of the scan, of the probe, of the engine, and text after it.
    top: &'static str,
    scan: &'static str,
    probe: &'static str,
    engine: &'static str,
    more: &'static str,
    /// Ending of a file that the scan is written to and read from, and how it is read.
    file: Option<(&'static str, &'static str)>,
}

const DM: Case = Case {
    name: "DM",
    frames: 300,
    size: 128,
    modes: 1,
    top: "",
    scan: "",
    probe: "",
    engine: "name = \"DM\"\niterations = 1",
    more: "",
    file: None,
};
const EPIE: &str = "name = \"ePIE\"\niterations = 1";
const NEAR: &str = "energy = 17.0\ndistance = 0.02\npixel = 1e-7\npropagation = \"near\"\nphotons = 1e9\n\
    illumination = { optic = \"diffuser\", grain = 8e-7, roughness = 1.0 }";
const GRADIENT: &str = "positions = { method = \"gradient\", start = 0, every = 1 }";

fn cases() -> Vec<Case> {
    vec![
        DM,
        Case { name: "small frames", frames: 1200, size: 64, ..DM },
        Case { name: "large frames", frames: 16, size: 512, ..DM },
        Case { name: "larger frames", frames: 6, size: 1024, ..DM },
        Case { name: "four modes", frames: 120, modes: 4, ..DM },
        Case { name: "ePIE", frames: 600, engine: EPIE, ..DM },
        Case { name: "ePIE, four modes", frames: 300, modes: 4, engine: EPIE, ..DM },
        Case { name: "ML", frames: 400, engine: "name = \"ML\"\niterations = 1", ..DM },
        Case { name: "LSQML", frames: 400, engine: "name = \"LSQML\"\niterations = 1", ..DM },
        // The temporary memory of an iteration exceeds that of the results, and is the peak of the run where the probe is found.
        Case { name: "LSQML, all views at once", frames: 200, engine: "name = \"LSQML\"\niterations = 1\nbatch = 200", ..DM },
        Case { name: "probe from the data", frames: 150, size: 64, probe: "start = \"data\"", ..DM },
        Case { name: "near field", frames: 80, size: 256, scan: NEAR, ..DM },
        Case { name: "between pixels", top: "subpixel = true", scan: "pattern = { round = false }", ..DM },
        Case { name: "resampled", frames: 500, size: 64, top: "resample = 2", scan: "resample = 2", ..DM },
        Case { name: "places", more: GRADIENT, ..DM },
        Case { name: "half-scans", frames: 200, top: "frc = true", ..DM },
        Case { name: "double precision", frames: 200, top: "precision = \"f64\"", ..DM },
        Case { name: "of an archive", file: Some(("npz", "")), ..DM },
        // Nine modes of the truth beside one of the reconstruction.
        Case {
            name: "of an archive of many modes",
            frames: 12,
            size: 512,
            scan: "illumination = { blur = 1e-7, modes = 9 }",
            file: Some(("npz", "")),
            ..DM
        },
        Case { name: "of PtyPy's data", file: Some(("ptyd", "")), ..DM },
        Case { name: "of CXI, ePIE", frames: 600, engine: EPIE, file: Some(("cxi", "")), ..DM },
        Case { name: "left in its archive", file: Some(("npz", "read = { stream = true }")), ..DM },
    ]
}

/// The input of a case; the scan is written first where it comes from a file.
fn input(case: &Case, folder: &Path) -> String {
    let Case { name, frames, size, modes, top, scan, probe, engine, more, .. } = case;
    let blur = if *modes > 1 { format!("illumination = {{ blur = 1e-7, modes = {modes} }}") } else { String::new() };
    let made = format!("[ptycho.scan.simulate]\nframes = {frames}\nsize = {size}\n{blur}\n{scan}\n");
    let whole = |scan: &str| {
        format!("[ptycho]\n{top}\n[[ptycho.scan]]\n{scan}\n[ptycho.probe]\nmodes = {modes}\n{probe}\n[[ptycho.engine]]\n{engine}\n{more}\n")
    };
    let Some((ending, read)) = case.file else { return whole(&made) };
    std::fs::write(folder.join("made.toml"), whole(&made)).unwrap();
    let file = format!("{}.{ending}", name.replace(' ', "-"));
    let converted = zellige(folder, &["ptycho", "convert", "made.toml", &file]);
    assert_eq!(converted.code, 0, "{}", converted.err);
    whole(&format!("file = \"{file}\"\n{read}\n"))
}

/// The peak that a process tells of itself, whatever else the machine does. On two threads as on one, where every other case runs.
#[test]
fn the_plan_tells_the_peak_of_every_kind_of_reconstruction() {
    let folder = tempfile::tempdir().unwrap();
    let mut off = Vec::new();
    for (number, case) in cases().into_iter().enumerate() {
        std::fs::write(folder.path().join("input.toml"), input(&case, folder.path())).unwrap();
        let threads = ["1", "2"][number % 2];
        let result = zellige(
            folder.path(),
            &["run", "input.toml", "--threads", threads, "-o", "out", "--force", "--keep-going", "--set", "output.formats=[\"npy\"]"],
        );
        assert_eq!(result.code, 0, "{}: {}", case.name, result.err);
        let summary = zellige_io::json::read(folder.path().join("out/summary.json")).unwrap();
        let [peak, plan] = [&summary["peak_memory"], &summary["plan"]["memory"]].map(|v| v.as_f64().unwrap() / 1048576.0);
        let share = plan / peak;
        println!("{}: {peak:.1} MiB, planned {plan:.1}: {share:.3}", case.name);
        if (share - 1.0).abs() > WITHIN {
            off.push(format!("{}: planned {plan:.1} MiB, peak {peak:.1}", case.name));
        }
    }
    assert!(off.is_empty(), "{off:#?}");
}
