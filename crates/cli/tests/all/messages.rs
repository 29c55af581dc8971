//! Messages that people read: help, errors of mistyped inputs, the plan of a dry run. `INSTA_UPDATE=always cargo test` rewrites the
//! snapshots; read their difference before keeping it.

use crate::common::{Outcome, SMALL, run_text, same_everywhere, zellige};

fn here() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// The exit code, and the message from the error on; a plan before it is not what is looked at.
fn verdict(result: &Outcome) -> String {
    let start = result.err.find("error: ").unwrap_or(0);
    format!("exit code {}\n{}", result.code, result.err[start..].trim_end())
}

#[test]
fn help() {
    let folder = here();
    for name in ["", "run", "bench", "view", "poisson"] {
        let arguments: Vec<&str> = name.split_whitespace().chain(["--help"]).collect();
        let result = zellige(folder.path(), &arguments);
        assert_eq!((result.code, result.err.as_str()), (0, ""));
        insta::assert_snapshot!(format!("help_{}", if name.is_empty() { "zellige" } else { name }), result.out);
    }
}

#[test]
fn mistyped_inputs_are_answered_with_place_and_way_out() {
    let folder = here();
    let cases = [
        ("unknown_keys", SMALL.replace("rhs", "rsh").replace("nodes", "node")),
        ("wrong_types", SMALL.replace("[33, 49]", "\"many\"").replace("2.0]", "\"long\"]")),
        ("out_of_range", SMALL.replace("[33, 49]", "[2, 49]").replace("2.0]", "-2.0]").replace("rhs", "omega = 2.5\nrhs")),
        ("expression", SMALL.replace("2*pi*y", "2*pi*w")),
        (
            "all_at_once",
            SMALL.replace("2*pi*y", "2*pi*w").replace("[33, 49]", "[2, 49]").replace("2.0]", "-2.0]").replace("rhs", "omega = 2.5\nrhs")
                + "[run]\nthreads = 5000\n",
        ),
        ("syntax", SMALL.replace("[poisson.grid]", "[poisson.grid")),
        ("no_solver", "[run]\nthreads = 1\n".into()),
        ("other_solver", SMALL.replace("poisson", "poison")),
        ("missing_file", SMALL.replace("\"sin(pi*x)*sin(2*pi*y)\"", "{ file = \"rho.npy\" }")),
    ];
    for (name, text) in cases {
        let result = run_text(folder.path(), &text, &["-o", "out"]);
        insta::assert_snapshot!(format!("input_{name}"), verdict(&result));
        assert!(!folder.path().join("out/summary.json").exists(), "`{name}` left a result");
    }
}

/// Words that other programs have for a value, in every solver.
#[test]
fn values_by_other_names_are_led_to_theirs() {
    let folder = here();
    let pic = "[pic]\ndt = 0.05\nsteps = 2\nprecision = \"double\"\nboundary.x = \"open\"\nboundary.y = { fields = \"pml\", particles = \"open\" }\n\
               [pic.grid]\ncells = [64, 64]\nsize = [6.4, 6.4]\n[[pic.species]]\nname = \"electrons\"\nparticles_per_cell = 4\n\
               density = { box = { from = 1.0, to = 2.0 } }\n";
    let dsmc = "[dsmc]\nsteps = 2\ncollisions.scheme = \"bird\"\nboundary.x = \"symmetry\"\n";
    let ptycho =
        "[ptycho]\nprecision = \"float64\"\n[[ptycho.scan]]\npropagation = \"Fresnel\"\n[[ptycho.engine]]\nname = \"maximum likelihood\"\n";
    let poisson = SMALL.replace("rhs", "precision = \"double\"\nmethod = \"fft\"\nboundary.x = \"fixed\"\nrhs");
    for (name, text) in [("pic", pic), ("dsmc", dsmc), ("ptycho", ptycho), ("poisson", &poisson)] {
        let result = run_text(folder.path(), text, &["-o", "out"]);
        insta::assert_snapshot!(format!("synonyms_{name}"), verdict(&result));
    }
}

#[test]
fn mistyped_commands_are_answered() {
    let folder = here();
    std::fs::write(folder.path().join("input.toml"), SMALL).unwrap();
    let cases: [(&str, &[&str]); 14] = [
        ("no_file", &["run", "imput.toml"]),
        ("run_example", &["run", "poisson/dipole"]),
        ("no_table", &["run", "input.toml", "--set", "poison.tolerance=1e-3"]),
        ("override", &["run", "input.toml", "--set", "poisson.tolerance=much"]),
        (
            "override_entry",
            &["run", "input.toml", "--set", "output.formats=['npy']", "--set", "output.formats.2=png", "--set", "poisson.grid.x=1"],
        ),
        ("device", &["run", "input.toml", "--device", "gpu"]),
        ("resume", &["run", "input.toml", "--resume", "elsewhere"]),
        ("bench", &["bench", "poisson/none"]),
        ("new", &["new", "poisson/monopole"]),
        ("new_slip", &["new", "two_strem"]),
        ("gas", &["dsmc", "gas", "N2", "--T", "-5"]),
        ("schema", &["schema", "navier"]),
        ("view", &["view", "input.toml"]),
        ("poisson", &["poisson", "1", "-2", "2", "65", "3", "1e-6", "2"]),
    ];
    for (name, arguments) in cases {
        let result = zellige(folder.path(), arguments);
        insta::assert_snapshot!(format!("command_{name}"), verdict(&result));
        assert_eq!(result.out, "", "`{name}` wrote data");
    }
}

/// Refuses problems beyond the memory of any machine of today with the number of bytes, in every solver, before anything is
/// allocated.
#[test]
fn what_memory_cannot_hold_is_an_error_that_says_how_much() {
    let folder = here();
    let plane = SMALL.replace("[33, 49]", "[1000000, 1000000]");
    let plasma = "[pic]\nsteps = 1\n[pic.grid]\ncells = [60000, 60000]\nsize = [6000.0, 6000.0]\n[[pic.species]]\nname = \"e\"\nparticles_per_cell = 1000\n";
    let gas = "[dsmc]\ndt = 1e-6\nsteps = 1\nparticles_per_cell = 1e7\nspecies = [{ name = \"Ar\" }]\n[dsmc.grid]\ncells = [100, 100]\nsize = [1.0, 1.0]\n\
        [dsmc.gas]\ndensity = 1e20\ntemperature = 300.0\n";
    let scan =
        "[ptycho]\n[[ptycho.scan]]\nsimulate = { frames = 10000000, size = 1024 }\n[[ptycho.engine]]\nname = \"DM\"\niterations = 1\n";
    for text in [&plane, plasma, gas, scan] {
        let result = run_text(folder.path(), text, &["-o", "out"]);
        assert_eq!(result.code, 4, "{}", result.err);
        assert!(result.err.contains("error: out of memory on ") && result.err.contains("iB asked for "), "{}", result.err);
        assert!(std::fs::read_dir(folder.path().join("out")).map_or(true, |mut d| d.next().is_none()), "something was left");
    }
}

#[test]
fn a_dry_run_says_what_would_be_done_and_writes_nothing() {
    let folder = here();
    let result = run_text(folder.path(), SMALL, &["--dry-run"]);
    assert_eq!(result.code, 0);
    insta::assert_snapshot!("dry_run", same_everywhere(&result.err));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "only the input itself");
    // A job that would break down after its hours in the queue is found out here.
    let result = run_text(folder.path(), SMALL, &["--dry-run", "--set", "poisson.rhs={file='rho.npy'}"]);
    assert!(result.code == 2 && result.err.contains("`poisson.rhs.file`: cannot read"), "{}", result.err);
}

/// A limit on the length of files does what a full disk does, for any user and at a known place: writing fails half-way.
#[cfg(unix)]
#[test]
fn a_full_disk_is_said_and_leaves_nothing_half_written() {
    let folder = here();
    std::fs::write(folder.path().join("input.toml"), SMALL.replace("[33, 49]", "[129, 129]")).unwrap();
    for format in ["npy", "vti", "bov", "hdf5", "csv", "png"] {
        // 8 blocks of 512 bytes (or 1024, in some shells); the field has 130 KB.
        let script = "ulimit -f 8; exec \"$0\" \"$@\"";
        let set = format!("output.formats=['{format}']");
        let arguments = ["run", "input.toml", "--threads", "1", "-o", format, "--set", &set];
        let mut limited = std::process::Command::new("sh");
        limited.current_dir(folder.path()).args(["-c", script, env!("CARGO_BIN_EXE_zellige")]).args(arguments);
        limited.env("NO_COLOR", "1").env("ZELLIGE_DEVICE", "cpu").stdin(std::process::Stdio::null());
        let result = crate::common::outcome(&limited.output().unwrap());
        assert_eq!(result.code, 5, "{format}: {}", result.err);
        let expected = format!("error: cannot write `{format}/");
        assert!(result.err.contains(&expected) && result.err.contains("hint: the system limits"), "{format}: {}", result.err);
        // The history of residuals is as small, and written whole where it comes before the field.
        let left: Vec<_> = crate::common::names(&folder.path().join(format)).into_iter().filter(|n| n != "residual.csv").collect();
        assert_eq!(left, ["resolved.toml", "rows.csv"], "{format} left more than the small files");
    }
}
