//! Disturbances of a run: a second run in its folder, changed data, a full disk, too little memory.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use zellige_engine::record::Values;

use crate::common::{SMALL, command, endless, names, outcome, run_text, zellige};

fn here() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// Waits for a file, a minute at most.
fn wait_for(path: &Path) {
    let begun = Instant::now();
    while !path.exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no `{}`", path.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A job that was submitted twice.
#[test]
fn a_second_run_does_not_write_into_the_folder_of_the_first() {
    let folder = here();
    std::fs::write(folder.path().join("input.toml"), endless()).unwrap();
    let run = ["run", "input.toml", "--threads", "1", "-o", "out"];
    let mut first = command(folder.path(), &run).stderr(Stdio::null()).spawn().unwrap();
    wait_for(&folder.path().join("out/resolved.toml"));
    let short = ["--set", "run.wall_time=0.2 s", "--checkpoint-dir", "spare"];
    let second = zellige(folder.path(), &[&run[..], &short].concat());
    let holder = format!("process {} on ", first.id());
    assert!(second.code == 2 && second.err.contains(&holder) && second.err.contains("`--force`"), "{}", second.err);
    assert!(!folder.path().join("spare/checkpoint").exists(), "it ran all the same");
    let forced = zellige(folder.path(), &[&run[..], &short, &["--force"]].concat());
    assert_eq!(forced.code, 75, "{}", forced.err);
    // Killed, it leaves no lock, and the next run clears what it left half-written.
    first.kill().unwrap();
    first.wait().unwrap();
    let left = format!("out/.solution.npy.{}-7.tmp", first.id());
    std::fs::write(folder.path().join(&left), "half").unwrap();
    let third = zellige(folder.path(), &[&run[..], &short].concat());
    assert_eq!(third.code, 75, "{}", third.err);
    assert_eq!(names(&folder.path().join("out")), ["resolved.toml", "rows.csv"]);
}

/// More steps may be asked for, but not fewer than were made, and the random numbers are those that the run began with.
#[test]
fn a_run_goes_on_with_its_seed_to_an_end_that_lies_ahead() {
    let folder = here();
    let gas = "[dsmc]\ndt = 1e-6\nsteps = 20\nparticles_per_cell = 4\nspecies = [{ name = \"Ar\" }]\n[dsmc.grid]\ncells = [16]\nsize = [1.6]\n\
        [dsmc.gas]\ndensity = 1e19\ntemperature = 300.0\n[dsmc.boundary]\nx = \"specular\"\n";
    let first = run_text(folder.path(), gas, &["-o", "out", "--set", "run.checkpoint_every=10", "--keep-going"]);
    assert_eq!(first.code, 0, "{}", first.err);
    let resume = |key: &str| zellige(folder.path(), &["run", "input.toml", "--resume", "out", "-o", "more", "--keep-going", "--set", key]);
    for (key, says) in [("dsmc.steps=15", "is of step 20, beyond the end of this input"), ("run.seed=2", "`run.seed` was 1 and is 2")] {
        let refused = resume(key);
        assert!(refused.code == 2 && refused.err.contains(says) && !folder.path().join("more/summary.json").exists(), "{}", refused.err);
    }
    let more = resume("dsmc.steps=25");
    assert!(more.code == 0 && more.err.contains("resumed after step 20"), "{}", more.err);
}

/// Averages over two shapes are none of either.
#[test]
fn a_run_is_not_gone_on_with_when_its_data_changed() {
    let folder = here();
    let square = |half: f64| {
        let corners = [[-half, -half], [half, -half], [half, half], [-half, half]];
        let points = corners.iter().enumerate().map(|(i, [x, y])| format!("{} {x} {y}\n", i + 1)).collect::<Vec<_>>().concat();
        format!("a body\n\n4 points\n4 lines\n\nPoints\n\n{points}\nLines\n\n1 2 1\n2 3 2\n3 4 3\n4 1 4\n")
    };
    let gas = "[dsmc]\ndt = 1e-6\nsteps = 1000000\nparticles_per_cell = 4\nspecies = [{ name = \"Ar\" }]\n[dsmc.grid]\ncells = [16, 16]\nsize = [1.6, 1.6]\n\
        origin = [-0.8, -0.8]\n[dsmc.gas]\ndensity = 1e19\ntemperature = 300.0\n[dsmc.boundary]\nall = \"stream\"\n[[dsmc.bodies]]\nname = \"b\"\n\
        file = \"data\"\nwall = { temperature = 500.0 }\n";
    let field = |value: f64| zellige_io::npy::write(folder.path().join("data"), &[257, 257], &Values::F64(vec![value; 257 * 257])).unwrap();
    let poisson = endless().replace("\"sin(pi*x)*sin(2*pi*y)\"", "{ file = \"data.npy\" }");
    for (name, text, write) in [
        ("data", gas, &(|x: f64| std::fs::write(folder.path().join("data"), square(x)).unwrap()) as &dyn Fn(f64)),
        ("data.npy", &poisson, &|x: f64| {
            field(x);
            std::fs::rename(folder.path().join("data"), folder.path().join("data.npy")).unwrap();
        }),
    ] {
        write(0.3);
        let limit = ["-o", "out", "--set", "run.wall_time=0.3 s"];
        let first = run_text(folder.path(), text, &limit);
        assert_eq!(first.code, 75, "{}", first.err);
        let resume = || zellige(folder.path(), &["run", "input.toml", "--resume", "out", "--threads", "1", "--set", "run.wall_time=0.3 s"]);
        assert_eq!(resume().code, 75, "{}", resume().err);
        write(0.5);
        let changed = resume();
        assert!(
            changed.code == 2 && changed.err.contains(&format!("`--resume`: the data file `{name}` is not the one")),
            "{}",
            changed.err
        );
        std::fs::remove_dir_all(folder.path().join("out")).unwrap();
    }
}

#[test]
fn results_that_found_no_room_are_written_by_the_resumed_run() {
    let folder = here();
    // A folder where a result should be fails as a full disk does, after the last cycle.
    std::fs::create_dir_all(folder.path().join("out/solution.npy")).unwrap();
    let text = format!("{SMALL}[output]\nformats = [\"npy\"]\n");
    let result = run_text(folder.path(), &text, &["-o", "out", "--checkpoint-dir", "spare"]);
    assert_eq!(result.code, 5, "{}", result.err);
    assert!(result.err.contains("is saved in `spare/checkpoint/latest.zck`"), "{}", result.err);
    assert!(result.err.contains("`zellige run --resume spare` writes the results"), "{}", result.err);
    let whole = run_text(folder.path(), &text, &["-o", "whole"]);
    std::fs::remove_dir(folder.path().join("out/solution.npy")).unwrap();
    let result = zellige(folder.path(), &["run", "--resume", "spare", "-o", "out"]);
    assert!(result.code == 0 && whole.code == 0, "{}", result.err);
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    for name in ["solution.npy", "rows.csv"] {
        assert!(read(&format!("out/{name}")) == read(&format!("whole/{name}")), "{name}");
    }
}

const PLASMA: &str =
    "[pic]\nsteps = 2\n[pic.grid]\ncells = [CELLS, CELLS]\nsize = [12.8, 12.8]\n[[pic.species]]\nname = \"e\"\nparticles_per_cell = 100\n";
const GAS: &str = "[dsmc]\ndt = 1e-6\nsteps = 2\nparticles_per_cell = 100\nspecies = [{ name = \"Ar\" }]\n[dsmc.grid]\ncells = [CELLS, CELLS]\nsize = [1.0, 1.0]\n\
    [dsmc.gas]\ndensity = 1e20\ntemperature = 300.0\n";
const SCAN: &str = "[ptycho]\n[[ptycho.scan]]\n[ptycho.scan.simulate]\nframes = FRAMES\nsize = 64\nphotons = 1e7\n[[ptycho.engine]]\nname = \"DM\"\niterations = 2\n";

fn inputs(factor: usize) -> [(&'static str, String); 4] {
    let cells = (64 * factor).to_string();
    [
        ("poisson", SMALL.replace("[33, 49]", &format!("[{0}, {0}]", 256 * factor + 1))),
        ("pic", PLASMA.replace("CELLS", &cells)),
        ("dsmc", GAS.replace("CELLS", &cells)),
        ("ptycho", SCAN.replace("FRAMES", &(64 * factor * factor).to_string())),
    ]
}

/// Part of the wall time, and seconds, that the times of a run may miss of what its parent measures: the start and the end of a
/// process.
const UNNAMED: (f64, f64) = (0.02, 0.02);
/// Runs of an input at most, of which one has no more without a name.
const ATTEMPTS: usize = 40;

#[test]
fn every_second_of_a_run_has_a_name() {
    let folder = here();
    // Rows, fields on the way, a checkpoint at the end: all parts but those of a GPU.
    let on_the_way = ["--set", "run.checkpoint_every=1", "--set", "output.every=1"];
    // Other work may delay the start or the end of a process: another attempt decides. A stage without a name is missed by all.
    let run = |name: &str, text: &str| {
        let begun = Instant::now();
        let result = run_text(folder.path(), text, &[&["-o", name], &on_the_way[..]].concat());
        let wall = begun.elapsed().as_secs_f64();
        assert_eq!(result.code, 0, "{}", result.err);
        let times = zellige_io::json::read(folder.path().join(name).join("summary.json")).unwrap()["times"].clone();
        (result, wall, times)
    };
    for (name, text) in inputs(1) {
        let is_named = |(_, wall, times): &(_, f64, serde_json::Value)| {
            let sum = times["wall"].as_f64().unwrap();
            sum <= *wall && wall - sum <= (UNNAMED.0 * wall).max(UNNAMED.1)
        };
        let found = std::iter::repeat_with(|| run(name, &text)).take(ATTEMPTS).find(is_named);
        let Some((result, _, times)) = found else { panic!("{name}: {ATTEMPTS} runs had times without a name") };
        let of = |part: &str| times[part].as_f64().unwrap();
        let parts = ["reading", "loading", "compiling", "set_up", "steps", "diagnostics", "output", "checkpoints", "end"];
        let sum: f64 = parts.into_iter().map(of).sum();
        assert!((sum - of("wall")).abs() < 1e-9, "{times:#}");
        for part in ["reading", "set_up", "steps", "diagnostics", "output", "checkpoints", "end"] {
            assert!(of(part) > 0.0, "{name}: no time is `{part}`: {times:#}");
        }
        assert_eq!(of("compiling"), 0.0);
        // The line on the terminal leaves out what is small.
        let line = result.err.lines().rfind(|l| l.starts_with("  time ")).unwrap_or_default();
        let told: Vec<f64> = line.split(['+', '=']).filter_map(seconds).collect();
        assert!(told.len() > 3, "{name}: `{line}` in {}", result.err);
        let (parts, all) = told.split_at(told.len() - 1);
        assert!((parts.iter().sum::<f64>() - all[0]).abs() <= 0.02 * all[0] && (all[0] - sum).abs() <= 0.01 * sum, "{line}");
    }
}

/// The seconds in `set-up 4.55 ms` or `2.22 s in all`.
fn seconds(text: &str) -> Option<f64> {
    let words: Vec<&str> = text.trim().trim_end_matches(" in all").rsplit(' ').take(2).collect();
    let unit = match words[0] {
        "s" => 1.0,
        "ms" => 1e-3,
        "us" => 1e-6,
        _ => return None,
    };
    words[1].parse::<f64>().ok().map(|value| value * unit)
}

/// `ulimit -v` in the middle of what a run takes: never an abort.
#[test]
fn memory_that_cannot_be_had_is_an_error_of_its_own() {
    let folder = here();
    let mut told = 0;
    for (name, text) in inputs(4) {
        std::fs::write(folder.path().join("input.toml"), text).unwrap();
        for limit in ["60000", "90000", "120000"] {
            let script = "ulimit -v \"$1\"; exec \"$0\" run input.toml --threads 2 -o out";
            let mut limited = std::process::Command::new("sh");
            limited.current_dir(folder.path()).args(["-c", script, env!("CARGO_BIN_EXE_zellige"), limit]).stdin(Stdio::null());
            let result = outcome(&limited.env("NO_COLOR", "1").env("ZELLIGE_DEVICE", "cpu").output().unwrap());
            assert!(result.code == 0 || result.code == 4, "{name} with {limit} KB ends with {}: {}", result.code, result.err);
            assert!(
                result.code == 0 || result.err.contains("error: out of memory") || result.err.contains("error: device"),
                "{}",
                result.err
            );
            told += usize::from(result.err.contains("MiB more asked for in a run planned with"));
        }
    }
    assert!(told >= 2, "the limits do not fall into the middle of these runs any more: {told}");
}

/// A plan is what a batch system is asked for: it tells the peak within a tenth, what a run of any size has taken off.
fn the_plan_tells_the_peak(solver: &str) {
    the_plan_tells_the_peak_of([1, 6].map(|factor| inputs(factor).into_iter().find(|(name, _)| *name == solver).unwrap().1));
}

/// Of a large run against a small one: what the process itself takes is in neither plan.
fn the_plan_tells_the_peak_of([small, large]: [String; 2]) {
    let folder = here();
    // Peak and plan, MiB.
    let figures = |text: &str| {
        let result = run_text(folder.path(), text, &["-o", "out", "--set", "output.formats=[\"npy\"]"]);
        assert_eq!(result.code, 0, "{}", result.err);
        let summary = zellige_io::json::read(folder.path().join("out/summary.json")).unwrap();
        [&summary["peak_memory"], &summary["plan"]["memory"]].map(|v| v.as_f64().unwrap() / 1048576.0)
    };
    let ([base, of_base], [peak, plan]) = (figures(&small), figures(&large));
    let share = (peak - base) / (plan - of_base);
    assert!((0.9..1.1).contains(&share), "{peak:.1} MiB for {plan:.1}, small {base:.1} for {of_base:.1}: {share:.3}");
}

#[test]
fn the_plan_of_poisson_tells_the_peak() {
    the_plan_tells_the_peak("poisson");
}

#[test]
fn the_plan_of_ptycho_tells_the_peak() {
    the_plan_tells_the_peak("ptycho");
}

#[test]
fn the_plan_of_a_plasma_tells_the_peak() {
    the_plan_tells_the_peak("pic");
}

#[test]
fn the_plan_of_the_gas_tells_the_peak() {
    the_plan_tells_the_peak("dsmc");
}

/// A run of some seconds is compared with the bandwidth of copies, whose arrays must not be its peak. This one is halted so long.
#[test]
fn a_measurement_of_copies_is_not_the_peak_of_a_run() {
    let folder = here();
    let gas = inputs(6).into_iter().find(|(name, _)| *name == "dsmc").unwrap().1;
    std::fs::write(folder.path().join("input.toml"), gas).unwrap();
    let run = ["run", "input.toml", "--threads", "1", "-o", "out", "--set", "output.formats=[\"npy\"]"];
    let mut child = command(folder.path(), &run).stderr(Stdio::null()).spawn().unwrap();
    wait_for(&folder.path().join("out/resolved.toml"));
    let signal = |name: &str| std::process::Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(signal("-STOP").success());
    std::thread::sleep(Duration::from_millis(3500));
    assert!(signal("-CONT").success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let summary = zellige_io::json::read(folder.path().join("out/summary.json")).unwrap();
    let [peak, plan] = [&summary["peak_memory"], &summary["plan"]["memory"]].map(|v| v.as_f64().unwrap() / 1048576.0);
    assert!(peak < 1.1 * plan, "{peak:.1} MiB for {plan:.1}");
}

/// Cells decide, not particles. Forty steps, so that every sum has been written to.
#[test]
fn the_plan_of_a_sparse_gas_tells_the_peak() {
    let sparse = GAS.replace("particles_per_cell = 100", "particles_per_cell = 2").replace("steps = 2", "steps = 40");
    let mixture = sparse.replace("{ name = \"Ar\" }", "{ name = \"N2\", fraction = 0.5 }, { name = \"He\", fraction = 0.5 }");
    for text in [sparse, mixture] {
        the_plan_tells_the_peak_of([64, 256].map(|cells| text.replace("CELLS", &cells.to_string())));
    }
}
