//! Checkpoints of runs in parts: one file, whatever writes it, and the last whole one where something fails.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use zellige_engine::checkpoint::Reader;
use zellige_engine::testing::mpi::{Mpirun, launchers};

use crate::common::zellige;
use crate::parts::{arguments, example, last_process};

/// A small plasma that is measured in every step: where one ends makes no difference to what is measured.
const PLASMA: &[&str] =
    &["pic.grid.cells=[96, 200]", "pic.grid.size=[9.6, 20.0]", "pic.diagnostics.energies_every=1", "pic.diagnostics.charge_every=1"];

/// Short runs: an example, keys that make it short, the key of its end where that may change, and the solver.
const RUNS: [(&str, &[&str], Option<&str>, &str); 4] = [
    ("pic/kong.toml", PLASMA, Some("pic.steps"), "pic"),
    ("dsmc/jet.toml", &["dsmc.steps=30", "dsmc.sampling.start=5"], None, "dsmc"),
    ("ptycho/simulated.toml", &["ptycho.engine.0.iterations=8", "ptycho.engine.1.iterations=2"], None, "ptycho"),
    ("poisson/channel.toml", &["poisson.method=multigrid", "poisson.max_cycles=3"], None, "poisson"),
];

fn checkpoint(folder: &Path, output: &str) -> Vec<u8> {
    std::fs::read(folder.join(output).join("checkpoint/latest.zck")).unwrap()
}

/// A program of several processes. `limit` goes before it, in a shell.
pub(crate) fn processes(mpirun: &Mpirun, count: usize, limit: &str, arguments: &[&str], folder: &Path) -> Command {
    let mut command = mpirun.command(count);
    command.args(["sh", "-c", &format!("{limit} exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_zellige")]).args(arguments);
    command.current_dir(folder);
    command
}

pub(crate) fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The file at the end has the bits of a run in one part, also where parts of another number have gone half of the way.
#[test]
fn checkpoints_are_the_same_from_any_parts_and_processes() {
    let folder = tempfile::tempdir().unwrap();
    for (name, keys, steps, solver) in RUNS {
        let input = example(name);
        let [half, all] = [6, 12].map(|n| steps.map(|steps| format!("{steps}={n}")));
        let words = |end: &Option<String>, output: &str, more: &[&str]| -> Vec<String> {
            let keys: Vec<&str> = keys.iter().copied().chain(end.as_deref()).chain(["run.checkpoint_every=2"]).collect();
            arguments(&input, &keys, output).into_iter().chain(more.iter().copied()).map(str::to_owned).collect()
        };
        // Those that end half-way go on with another number of parts.
        let ways = |output: &str, [first, second]: [usize; 2]| {
            let half = (half.is_some()).then(|| (words(&half, output, &[]), first));
            let resume: &[&str] = if steps.is_some() { &["--resume", output] } else { &[] };
            half.into_iter().chain([(words(&all, output, resume), second)]).collect::<Vec<_>>()
        };
        let saved = |told: &str| assert!(!told.contains("could not be saved"), "{name}: {told}");
        let run = |words: &[String]| saved(&zellige(folder.path(), &words.iter().map(String::as_str).collect::<Vec<_>>()).err);
        run(&words(&all, "one", &[]));
        let expected = checkpoint(folder.path(), "one");
        // Every section can be read, which verifies all.
        let reader = Reader::open(folder.path().join("one/checkpoint/latest.zck"), solver).unwrap();
        assert!(reader.names().count() > 3 && reader.names().all(|name| reader.raw(name).is_ok()), "{name}");
        for (words, parts) in ways("parts", [3, 2]) {
            run(&words.into_iter().chain(["--parts".to_owned(), parts.to_string()]).collect::<Vec<_>>());
        }
        assert!(checkpoint(folder.path(), "parts") == expected, "{name} in parts");
        for mpirun in launchers() {
            for (words, count) in ways("mpi", [2, 3]) {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                saved(&told(&processes(&mpirun, count, "", &words, folder.path()).output().unwrap()));
            }
            assert!(checkpoint(folder.path(), "mpi") == expected, "{name} by {}", mpirun.maker);
            std::fs::remove_dir_all(folder.path().join("mpi")).unwrap();
        }
        for output in ["one", "parts"] {
            std::fs::remove_dir_all(folder.path().join(output)).unwrap();
        }
    }
}

/// One process may not write long files, as on a full disk: all are told, and what was saved before stays.
#[test]
fn a_process_that_cannot_write_is_named_by_all_and_the_last_checkpoint_stays() {
    let folder = tempfile::tempdir().unwrap();
    let input = example("pic/kong.toml");
    let keys = ["pic.grid.cells=[96, 200]", "pic.grid.size=[9.6, 20.0]", "pic.steps=4", "run.checkpoint_every=2"];
    assert_eq!(zellige(folder.path(), &arguments(&input, &keys, "out")).code, 0);
    let before = checkpoint(folder.path(), "out");
    // 40 000 blocks of 512 bytes for one of them: enough for what MPI shares with others in files.
    let limit = "if [ \"${PMI_RANK:-$OMPI_COMM_WORLD_RANK}\" = 1 ]; then ulimit -f 40000; fi;";
    for mpirun in launchers() {
        // A checkpoint on the way is no reason to end; one that the end of the time asks for is all that is left.
        for (end, fails) in [("pic.steps=6", false), ("pic.steps=1000000", true)] {
            let limited = ["run.wall_time=2 s"];
            let keys: Vec<&str> =
                keys[..2].iter().copied().chain([end, "run.checkpoint_every=3"]).chain(limited.into_iter().filter(|_| fails)).collect();
            let words: Vec<&str> = arguments(&input, &keys, "out").into_iter().chain(["--resume", "out"]).collect();
            let begun = Instant::now();
            let done = processes(&mpirun, 3, limit, &words, folder.path()).output().unwrap();
            let told = told(&done);
            assert_eq!(done.status.success(), !fails, "by {}: {told}", mpirun.maker);
            assert!(begun.elapsed() < Duration::from_secs(60), "by {}: {told}", mpirun.maker);
            assert!(told.contains("part 1 on ") && told.contains("cannot write `"), "by {}: {told}", mpirun.maker);
            assert!(checkpoint(folder.path(), "out") == before, "by {}", mpirun.maker);
            let left = crate::common::names(&folder.path().join("out/checkpoint"));
            assert_eq!(left, ["latest.zck"], "by {}", mpirun.maker);
        }
    }
}

/// Killed while a checkpoint is being written: the one before is whole, and goes on.
#[cfg(target_os = "linux")]
#[test]
fn a_process_that_is_killed_in_a_checkpoint_leaves_the_last_one() {
    let folder = tempfile::tempdir().unwrap();
    let input = example("pic/kong.toml");
    let keys = ["pic.grid.cells=[192, 200]", "pic.grid.size=[19.2, 20.0]", "pic.steps=1000000", "run.checkpoint_every=1"];
    let here = folder.path().canonicalize().unwrap();
    for mpirun in launchers() {
        let words = arguments(&input, &keys, "killed");
        let mut child = processes(&mpirun, 3, "", &words, folder.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let (begun, saved) = (Instant::now(), folder.path().join("killed/checkpoint"));
        let under_way = || {
            let names = std::fs::read_dir(&saved).map(|all| all.flatten().map(|e| e.file_name()).collect::<Vec<_>>()).unwrap_or_default();
            names.iter().any(|name| name == "latest.zck") && names.len() == 2
        };
        while !under_way() {
            assert!(begun.elapsed() < Duration::from_secs(60), "no checkpoint is under way");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(Command::new("kill").args(["-9", &last_process(&here).to_string()]).status().unwrap().success());
        let killed = Instant::now();
        while child.try_wait().unwrap().is_none() {
            assert!(killed.elapsed() < Duration::from_secs(30), "processes outlive one of them with {}", mpirun.maker);
            std::thread::sleep(Duration::from_millis(20));
        }
        let reader = Reader::open(saved.join("latest.zck"), "pic").unwrap();
        assert!(reader.names().all(|name| reader.raw(name).is_ok()), "by {}", mpirun.maker);
        let end = format!("pic.steps={}", reader.u64("step").unwrap() + 1);
        let keys = [&keys[..2], &[end.as_str()]].concat();
        let words: Vec<&str> = arguments(&input, &keys, "killed").into_iter().chain(["--resume", "killed", "--parts", "2"]).collect();
        let resumed = zellige(folder.path(), &words);
        assert_eq!(resumed.code, 0, "by {}: {}", mpirun.maker, resumed.err);
        std::fs::remove_dir_all(folder.path().join("killed")).unwrap();
    }
}
