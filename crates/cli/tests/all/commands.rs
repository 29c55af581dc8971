//! Commands, tested from outside: files, exit codes.

#[cfg(unix)]
use std::process::Stdio;

use crate::common::{SMALL, command, names, run_text, zellige};

fn here() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

#[test]
fn a_run_leaves_its_results_and_the_input_to_repeat_it() {
    let folder = here();
    let all = ["--set", "output.formats=[\"npy\", \"vti\", \"bov\", \"hdf5\", \"png\"]"];
    let result = run_text(folder.path(), SMALL, &[&["-o", "a", "--profile"], &all[..]].concat());
    assert_eq!((result.code, result.out.as_str()), (0, ""), "{}", result.err);
    let of_field = |name: &str| ["bov", "npy", "png", "raw", "vti"].map(|e| format!("{name}.{e}"));
    let others = ["residual.csv", "residual.png", "resolved.toml", "results.h5", "rows.csv", "summary.json", "trace.json"];
    let mut expected: Vec<String> = others.map(String::from).into_iter().chain(of_field("rhs")).chain(of_field("solution")).collect();
    expected.sort();
    assert_eq!(names(&folder.path().join("a")), expected);
    let summary = zellige_io::json::read(folder.path().join("a/summary.json")).unwrap();
    assert_eq!(summary["outcome"]["status"], "converged");
    assert!(summary["checks"].as_array().is_some_and(|c| !c.is_empty() && c.iter().all(|c| c["ok"] == true)), "{summary:#}");
    for key in ["version", "git_hash", "device", "threads", "stages", "ns_per_item", "plan"] {
        assert!(!summary[key].is_null(), "`{key}` is missing");
    }
    for key in ["items", "bytes_per_item", "gb_per_s", "peak_memory"] {
        assert!(summary[key].as_f64().is_some_and(|v| v > 0.0), "`{key}` is missing");
    }
    let stages = summary["stages"].as_array().unwrap();
    let costs: f64 = stages.iter().map(|s| s["ns_per_item"].as_f64().unwrap()).sum();
    assert!(costs > 0.0 && costs <= summary["ns_per_item"].as_f64().unwrap(), "{summary:#}");
    assert!(result.err.contains("trace.json"), "{}", result.err);
    let again = zellige(folder.path(), &["run", "a/resolved.toml", "-o", "b"]);
    assert_eq!(again.code, 0, "{}", again.err);
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert!(read("a/solution.npy") == read("b/solution.npy"), "the resolved input gives another result");
    assert!(result.err.contains("zellige view a"), "the next command is not named: {}", result.err);
}

/// Leaves out files that were not requested: pictures, rows, and all fields and curves in one file.
#[test]
fn a_run_leaves_few_files_unless_more_are_asked_for() {
    let folder = here();
    let result = run_text(folder.path(), SMALL, &["-o", "a"]);
    assert_eq!(result.code, 0, "{}", result.err);
    let out = folder.path().join("a");
    let pictures = ["residual.png", "rhs.png", "solution.png"];
    let rest = ["residual.csv", "resolved.toml", "results.h5", "rows.csv", "summary.json"];
    let mut expected = [&pictures[..], &rest[..]].concat();
    expected.sort_unstable();
    assert_eq!(names(&out), expected);
    let field = zellige_io::hdf5::read_field(out.join("results.h5"), "solution").unwrap();
    assert_eq!((field.shape(), field.axes[0].name.as_str(), field.axes[0].spacing), (vec![49, 33], "x", 1.0 / 32.0));
    assert!(zellige_io::hdf5::read(out.join("results.h5"), "residual/abscissa").is_ok());
    // They are known to belong together.
    let view = zellige(folder.path(), &["view", "a"]);
    for name in ["rhs", "solution", "residual"] {
        assert!(view.err.contains(&format!("kept         a/{name}.png")), "{}", view.err);
    }
    std::fs::remove_file(out.join("rhs.png")).unwrap();
    assert!(zellige(folder.path(), &["view", "a"]).err.contains("picture      a/rhs.png"));
}

/// Files are named relative to the input, and the resolved input lies elsewhere.
#[test]
fn the_resolved_input_finds_the_files_of_the_input() {
    let folder = here();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let rho = zellige_io::tensor::Tensor::reals(&[9, 7], (0..63).map(f64::from).collect());
    zellige_io::npy::write_tensor(data.join("rho.npy"), &rho).unwrap();
    let text = SMALL.replace("\"sin(pi*x)*sin(2*pi*y)\"", "{ file = \"data/rho.npy\" }").replace("[33, 49]", "[7, 9]");
    let text = text + "[output]\nformats = [\"npy\"]\n";
    assert_eq!(run_text(folder.path(), &text, &["-o", "a"]).code, 0);
    let again = zellige(folder.path(), &["run", "a/resolved.toml", "-o", "b"]);
    assert_eq!(again.code, 0, "{}", again.err);
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert!(read("a/solution.npy") == read("b/solution.npy"));
    // From the folder of the input, where it is relative.
    let moved = text.replace("data/rho.npy", "rho.npy") + "[run]\ndata_folder = \"data\"\n";
    assert_eq!(run_text(folder.path(), &moved, &["-o", "c"]).code, 0);
    assert!(read("a/solution.npy") == read("c/solution.npy"));
}

/// u = sin(pi x) sin(2 pi y / 2) has the Laplacian -2 pi^2 u; the five-point formula is off by h^2 pi^4 / 6 at most.
#[test]
fn the_seven_arguments_solve_by_every_method() {
    let folder = here();
    let rhs = "-2*pi^2*sin(pi*x)*sin(pi*y)";
    for q in ["0", "1", "2", "3"] {
        let result = zellige(folder.path(), &["poisson", "1", "2", "33", "65", "3", "1e-9", q, "-o", q, "--rhs", rhs, "--threads", "1"]);
        assert_eq!(result.code, 0, "{}", result.err);
        let u = zellige_io::npy::read(folder.path().join(q).join("solution.npy")).unwrap();
        assert_eq!(u.shape, [65, 33]);
        let h = 1.0 / 32.0;
        let worst = (0..u.values.len()).map(|i| {
            let (x, y) = ((i % 33) as f64 * h, (i / 33) as f64 * h);
            (u.values[i] - (std::f64::consts::PI * x).sin() * (std::f64::consts::PI * y).sin()).abs()
        });
        // Eigenvalue of the formula: relative error h^2 pi^2 / 12 = 8.03e-4 at h = 1/32.
        let worst = worst.fold(0.0, f64::max);
        assert!((7.9e-4..8.2e-4).contains(&worst), "method {q}: {worst:e}");
        for name in ["solution.bov", "solution.vti", "solution.png", "summary.json"] {
            assert!(folder.path().join(q).join(name).exists(), "{name}");
        }
    }
}

#[test]
fn a_right_hand_side_comes_from_a_file_of_the_right_shape() {
    let folder = here();
    let values = zellige_engine::record::Values::F64((0..9 * 17).map(|i| f64::from(i % 9 - 4)).collect());
    zellige_io::npy::write(folder.path().join("rho.npy"), &[17, 9], &values).unwrap();
    let run = |m: &str, n: &str| zellige(folder.path(), &["poisson", "1", "2", m, n, "3", "1e-8", "2", "-o", "out", "--rhs", "rho.npy"]);
    assert_eq!(run("9", "17").code, 0);
    let wrong = run("17", "9");
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("`rho.npy` has the shape (17, 9), expected (9, 17)"), "{}", wrong.err);
}

#[test]
fn a_place_that_cannot_be_written_is_found_before_anything_is_computed() {
    let folder = here();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let result = run_text(folder.path(), SMALL, &["-o", "file/out"]);
    assert_eq!(result.code, 5, "{}", result.err);
    assert!(result.err.contains("file/out") && !result.err.contains("cycle 1"), "{}", result.err);
}

#[test]
fn every_example_is_written_and_has_a_sound_input() {
    let folder = here();
    let some = zellige(folder.path(), &["new", "poisson"]);
    assert!(some.code == 0 && some.out.lines().count() >= 6 && some.out.lines().all(|l| l.starts_with("poisson/")), "{}", some.out);
    assert_eq!(zellige(folder.path(), &["new", "dsmc/seed/"]).out.lines().count(), 3);
    let listed = zellige(folder.path(), &["new"]);
    assert_eq!(listed.out, zellige(folder.path(), &["run"]).out);
    let examples: Vec<&str> = listed.out.lines().filter_map(|l| l.split_whitespace().next()).collect();
    assert!(examples.len() >= 6, "{examples:?}");
    for name in examples {
        let ending = if name.starts_with("dsmc/seed/") { "yaml" } else { "toml" };
        let file = format!("{}.{ending}", name.replace('/', "_"));
        assert_eq!(zellige(folder.path(), &["new", name, "-o", &file]).code, 0);
        let result = zellige(folder.path(), &["run", &file, "--dry-run"]);
        assert_eq!(result.code, 0, "{name}: {}", result.err);
        let text = std::fs::read_to_string(folder.path().join(&file)).unwrap();
        assert!(text.lines().next().is_some_and(|line| line.ends_with('.')), "{name} does not begin with a whole sentence");
        assert!(text.starts_with("# ") && text.contains("# Expected: ") && text.contains("# Run time: "), "{name} lacks its header");
        let again = zellige(folder.path(), &["new", name, "-o", &file]);
        assert_eq!(again.code, 2, "an existing file was overwritten");
    }
}

/// Files on the command line as the older program of rarefied gas took them, from where the command is typed.
#[test]
fn kernels_are_packed_without_a_gpu_and_a_damaged_pack_is_told() {
    if !zellige_engine::testing::compiler() {
        return;
    }
    let folder = here();
    let plasma =
        "[pic]\nsteps = 2\n[pic.grid]\ncells = [64, 64]\nsize = [12.8, 12.8]\n[[pic.species]]\nname = \"e\"\nparticles_per_cell = 4\n";
    std::fs::write(folder.path().join("plasma.toml"), plasma).unwrap();
    // Particles, fields, pixels of pictures, what makes the particles, and what copies fields and particles.
    let result = zellige(folder.path(), &["kernels", "p.kernels", "plasma.toml", "--arch", "sm_90"]);
    assert!(result.code == 0 && result.err.contains("p.kernels: 6 programs of 1 inputs for sm_90"), "{}", result.err);
    let devices = || {
        let output = command(folder.path(), &["devices"]).env("ZELLIGE_KERNELS", "p.kernels").output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    assert!(devices().0.contains("pack of kernels: p.kernels"), "{:?}", devices());
    let mut bytes = std::fs::read(folder.path().join("p.kernels")).unwrap();
    bytes[60] ^= 1;
    std::fs::write(folder.path().join("p.kernels"), bytes).unwrap();
    let (out, err) = devices();
    assert!(!out.contains("pack of kernels") && err.contains("the pack of kernels `p.kernels` is not used: it is damaged"), "{out}{err}");
    let unknown = zellige(folder.path(), &["kernels", "p.kernels", "plasma.toml", "--arch", "sm_1"]);
    assert!(unknown.code == 2 && unknown.err.contains("sm_90"), "{}", unknown.err);
}

#[test]
fn a_small_problem_is_not_shared_between_threads_unless_they_are_asked_for() {
    let folder = here();
    let cells = |n: usize| format!("[pic]\nsteps = 2\n[pic.grid]\ncells = [{n}]\n[[pic.species]]\nname = \"e\"\nparticles_per_cell = 64\n");
    let threads = |text: &str, more: &[&str]| {
        std::fs::write(folder.path().join("input.toml"), text.replace("cells", "size = [6.4]\ncells")).unwrap();
        let result = zellige(folder.path(), &[&["run", "input.toml", "-o", "out"], more].concat());
        assert_eq!(result.code, 0, "{}", result.err);
        let summary = zellige_io::json::read(folder.path().join("out/summary.json")).unwrap();
        (summary["threads"].as_u64().unwrap(), result.err.contains("threads is used"))
    };
    let all = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    assert_eq!(threads(&cells(64), &[]), (1, all > 1));
    assert_eq!(threads(&cells(64), &["--threads", "2"]), (2, false));
    assert_eq!(threads(&cells(1024), &[]), (all, false));
}

#[test]
fn inputs_of_the_older_form_are_converted_with_their_files() {
    let folder = here();
    for name in ["dsmc/seed/source", "dsmc/jet"] {
        assert_eq!(zellige(folder.path(), &["new", name]).code, 0);
    }
    let text = std::fs::read_to_string(folder.path().join("source.yaml")).unwrap();
    std::fs::create_dir(folder.path().join("inputs")).unwrap();
    std::fs::write(folder.path().join("inputs/alone.yaml"), text.replace("source: left.yaml", "")).unwrap();
    let convert = |old: &str, new: &str, more: &[&str]| zellige(folder.path(), &[&["dsmc", "convert", old, new], more].concat());
    // Named in the input, or on the command line: the same gas, which is also what `run` makes of the older form.
    assert_eq!(convert("source.yaml", "inputs/named.toml", &[]).code, 0);
    let given = convert("inputs/alone.yaml", "given.toml", &["-s", "left.yaml"]);
    assert_eq!(given.code, 0, "{}", given.err);
    let plan = |input: &str| {
        let dry = zellige(folder.path(), &["run", input, "--dry-run", "--device", "cpu", "--threads", "1"]);
        assert_eq!(dry.code, 0, "{input}: {}", dry.err);
        dry.err.lines().filter(|line| line.starts_with("  ")).map(str::to_owned).collect::<Vec<_>>()
    };
    let plans = ["source.yaml", "inputs/named.toml", "given.toml"].map(plan);
    assert!(plans[0].len() > 5 && plans[1] == plans[0] && plans[2] == plans[0], "{plans:#?}");
    // Its source has a schedule of its own, and there is no such file.
    std::fs::write(folder.path().join("times.dat"), "0 10\n").unwrap();
    for (old, new, more, expected) in [
        ("inputs/alone.yaml", "a.toml", &["-s", "left.yaml", "-S", "times.dat"][..], "a schedule file is given too"),
        ("inputs/alone.yaml", "a.toml", &["-s", "right.yaml"], "right.yaml"),
        ("inputs/alone.yaml", "a.toml", &["-g", "none.dat"], "none.dat"),
        ("jet.toml", "a.toml", &[], "not of the older form"),
        ("source.yaml", "given.toml", &[], "exists and is left as it is"),
        ("source.yaml", "a.yaml", &[], ".toml"),
    ] {
        let result = convert(old, new, more);
        assert!(result.code != 0 && result.err.contains(expected), "{old} {new} {more:?}: {}", result.err);
        assert!(!folder.path().join("a.toml").exists());
    }
}

#[test]
fn view_draws_every_format_and_the_terminal() {
    let folder = here();
    let formats = ["--set", "output.formats=[\"npy\", \"vti\", \"bov\", \"hdf5\"]"];
    assert_eq!(run_text(folder.path(), SMALL, &[&["-o", "out"], &formats[..]].concat()).code, 0);
    for (source, picture) in
        [("out/solution.npy", "n.png"), ("out/solution.vti", "v.png"), ("out/solution.bov", "b.png"), ("out/results.h5:/solution", "h.png")]
    {
        let result = zellige(folder.path(), &["view", source, "-o", picture, "--map", "magma", "--range", "-0.1", "0.1"]);
        assert_eq!((result.code, result.out.as_str()), (0, ""), "{}", result.err);
        assert!(std::fs::read(folder.path().join(picture)).unwrap().starts_with(b"\x89PNG"), "{picture}");
    }
    let all = zellige(folder.path(), &["view", "out", "--terminal"]);
    assert_eq!(all.code, 0, "{}", all.err);
    assert!(folder.path().join("out/solution.png").exists() && folder.path().join("out/residual.png").exists());
    let first = all.out.lines().next().unwrap_or_default();
    assert!(all.out.contains('▀') && first.contains(" from "), "{first}");
}

/// Follows `next zellige view DIR` at the end of a run, with the files of a ptychography run: complex ones, tables, archives.
#[test]
fn view_of_a_folder_keeps_the_runs_pictures_and_draws_what_has_none() {
    use num_complex::Complex;
    use zellige_io::tensor::{Elements, Tensor};
    let folder = here();
    assert_eq!(run_text(folder.path(), SMALL, &["-o", "out"]).code, 0);
    let out = folder.path().join("out");
    let drawn = std::fs::read(out.join("solution.png")).unwrap();
    let values: Vec<Complex<f32>> = (0..60).map(|i| Complex::from_polar(1.0, 0.1 * i as f32)).collect();
    let probe = Tensor { shape: vec![2, 5, 6], elements: Elements::Complex(values) };
    zellige_io::npy::write_tensor(out.join("probe.npy"), &probe).unwrap();
    zellige_io::npy::write_tensor(out.join("deep.npy"), &Tensor::reals(&[1, 1, 2, 2, 2], vec![0.0; 8])).unwrap();
    std::fs::write(out.join("views.csv"), "y,x\n0,1\n2,3\n1,4\n").unwrap();
    let nodes = [zellige_io::hdf5::Node::new("content/obj/S/data", zellige_io::hdf5::Value::Array(&probe))];
    zellige_io::hdf5::write_tree(out.join("result.ptyr"), &nodes).unwrap();
    let all = zellige(folder.path(), &["view", "out"]);
    assert_eq!(all.code, 0, "{}", all.err);
    assert!(all.err.contains("kept         out/solution.png") && all.err.contains("picture      out/probe.png"), "{}", all.err);
    assert!(all.err.contains("note: not drawn: `out/deep.npy`") && !all.err.contains("views"), "{}", all.err);
    assert_eq!(std::fs::read(out.join("solution.png")).unwrap(), drawn);
    for source in ["out/result.ptyr", "out/result.ptyr:/content/obj/S/data"] {
        let result = zellige(folder.path(), &["view", source, "-o", "r.png"]);
        assert_eq!(result.code, 0, "{}", result.err);
        // Width and height stand there: as many panels of the same shape.
        let size = |path: &std::path::Path| std::fs::read(path).unwrap()[16..24].to_vec();
        assert_eq!(size(&folder.path().join("r.png")), size(&out.join("probe.png")));
    }
    // Asked for, they are drawn anew.
    assert!(zellige(folder.path(), &["view", "out", "--map", "magma"]).err.contains("picture      out/solution.png"));
    assert_ne!(std::fs::read(out.join("solution.png")).unwrap(), drawn);
}

#[test]
fn data_goes_to_standard_output() {
    let folder = here();
    let schema: serde_json::Value = serde_json::from_str(&zellige(folder.path(), &["schema", "poisson"]).out).unwrap();
    assert!(schema["properties"]["poisson"].is_object(), "{schema:#}");
    let devices: serde_json::Value = serde_json::from_str(&zellige(folder.path(), &["devices", "--json", "--measure"]).out).unwrap();
    let processor = devices["devices"].as_array().and_then(|d| d.iter().find(|d| d["id"] == "cpu")).expect("a processor");
    assert!(processor["copy_bandwidth"].as_f64().is_some_and(|b| b > 1e8), "{devices:#}");
    for shell in ["bash", "zsh", "fish"] {
        assert!(zellige(folder.path(), &["completions", shell]).out.contains("zellige"));
    }
    let listed = |word: &str| zellige(folder.path(), &["bench", "--list", word]).out.lines().count();
    // `ptycho/dm-500x256m4` begins as `ptycho/dm-500x256`.
    assert_eq!((listed("ptycho/dm-500x256"), listed("ptycho/dm-500x25")), (1, 2));
    let cases = zellige(folder.path(), &["bench", "--list"]).out;
    for case in [
        "mixed-1e-6-4097",
        "mixed-1e-6-4096",
        "mixed-1e-10-4097",
        "mixed-1e-6-1025",
        "multigrid-1e-6-4097",
        "multigrid-1e-10-4097",
        "fmg-4097",
        "vcycle-f32-4096",
        "sor-f32-4096",
        "direct-4097",
        "3d-512",
    ] {
        assert!(cases.contains(&format!("poisson/{case} ")), "{case} is not listed:\n{cases}");
    }
}

/// The least case from the command line to the file that it writes.
#[test]
fn a_benchmark_is_timed_checked_and_written() {
    let folder = here();
    let case = "poisson/mixed-1e-6-1025";
    let result = zellige(folder.path(), &["bench", case, "--threads", "1", "--json", "bench.json"]);
    assert_eq!(result.code, 0, "{}", result.err);
    assert!(result.out.contains(case) && result.out.contains("4 of 4 ok"), "{}", result.out);
    let written: serde_json::Value = serde_json::from_slice(&std::fs::read(folder.path().join("bench.json")).unwrap()).unwrap();
    let [one] = written.as_array().map(Vec::as_slice).unwrap_or_default() else { panic!("{written:#}") };
    assert!(one["name"] == case && one["threads"] == 1 && one["items"] == 1023.0 * 1023.0, "{one:#}");
    let time = |key: &str| one["seconds"][key].as_f64().unwrap_or(f64::NAN);
    assert!(0.0 < time("min") && time("min") <= time("median") && time("median") <= time("max"), "{one:#}");
    let checks = one["checks"].as_array().unwrap();
    assert!(checks.len() == 4 && checks.iter().all(|c| c["ok"] == true), "{checks:#?}");
}

/// A scan goes through the formats of others and back: the same counts at the same places.
#[test]
fn scans_are_converted_and_nothing_is_overwritten() {
    let folder = here();
    let input = |scan: &str| format!("[ptycho]\n[[ptycho.scan]]\n{scan}\n[[ptycho.engine]]\nname = \"DM\"\niterations = 1\n");
    std::fs::write(folder.path().join("made.toml"), input("simulate = { frames = 9, size = 16, photons = 1e4 }")).unwrap();
    let convert = |from: &str, to: &[&str]| zellige(folder.path(), &[&["ptycho", "convert", from], to].concat());
    let result = convert("made.toml", &["a.cxi", "a.ptyd", "a.npz"]);
    assert_eq!(result.code, 0, "{}", result.err);
    assert_eq!(result.out.lines().count(), 3, "{}", result.out);
    let values = |file: &str| {
        let all = zellige_io::npz::from_bytes(&std::fs::read(folder.path().join(file)).unwrap()).unwrap();
        ["intensity", "pos_m"].map(|name| format!("{:?}", all.iter().find(|a| a.0 == name).unwrap().1))
    };
    for from in ["a.cxi", "a.ptyd", "a.npz"] {
        std::fs::write(folder.path().join("read.toml"), input(&format!("file = \"{from}\""))).unwrap();
        let to = format!("{}.npz", &from[2..]);
        let result = convert("read.toml", &[&to]);
        assert_eq!(result.code, 0, "{}", result.err);
        assert!(values(&to)[0] == values("a.npz")[0], "{from} has other counts");
    }
    let again = convert("made.toml", &["a.npz"]);
    assert!(again.code == 2 && again.err.contains("exists and is left as it is"), "{}", again.err);
    let other = convert("made.toml", &["a.tif"]);
    assert!(other.code == 2 && other.err.contains(".cxi, .ptyd, .npz"), "{}", other.err);
    std::fs::write(folder.path().join("lost.toml"), input("file = \"none.cxi\"")).unwrap();
    let lost = convert("lost.toml", &["b.npz"]);
    assert!(lost.code == 2 && lost.err.contains("lost.toml: 1 problem") && lost.err.contains("`ptycho.scan[0].file`"), "{}", lost.err);
}

/// Closes the reader of the messages (`zellige run x.toml 2>&1 | head -1`): the run goes on, and its exit code reports its outcome.
#[cfg(unix)]
#[test]
fn a_run_whose_messages_nobody_reads_ends_as_any_other() {
    let folder = here();
    for (text, code) in [(SMALL.to_owned(), 0), (SMALL.replace("rhs", "rsh"), 2)] {
        std::fs::write(folder.path().join("input.toml"), text).unwrap();
        let mut child = command(folder.path(), &["run", "input.toml", "-o", "out"]).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stderr.take());
        assert_eq!(child.wait().unwrap().code(), Some(code));
    }
    assert!(folder.path().join("out/summary.json").exists());
}

/// An input that is wrong only as a whole leaves the results of a sound one as they are, with the input that made them.
#[test]
fn what_cannot_be_set_up_leaves_the_folder_as_it_is() {
    let folder = here();
    assert_eq!(run_text(folder.path(), SMALL, &["-o", "out"]).code, 0);
    let before = std::fs::read(folder.path().join("out/resolved.toml")).unwrap();
    let result = run_text(folder.path(), &SMALL.replace("sin(pi*x)", "sin(1/x)"), &["-o", "out"]);
    assert_eq!(result.code, 2, "{}", result.err);
    assert!(std::fs::read(folder.path().join("out/resolved.toml")).unwrap() == before, "the input of the results was overwritten");
}
