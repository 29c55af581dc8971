//! Runs in several parts, as threads and as processes of both MPI libraries: the same files.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use zellige_engine::testing::{self, mpi::launchers};

use crate::common::{names, zellige};

/// Short runs: an example, and keys that make it short.
pub(crate) const RUNS: [(&str, &[&str]); 6] = [
    ("dsmc/jet.toml", &["dsmc.steps=60", "dsmc.sampling.start=20"]),
    ("poisson/channel.toml", &["poisson.method=multigrid"]),
    ("dsmc/couette.toml", &["dsmc.steps=40", "dsmc.sampling.start=20"]),
    ("pic/kong.toml", &["pic.steps=10", "pic.grid.cells=[96, 200]", "pic.grid.size=[9.6, 20.0]"]),
    ("ptycho/simulated.toml", &["ptycho.engine.0.iterations=4", "ptycho.engine.1.iterations=2"]),
    ("pic/kong.toml", PARTICLES),
];

/// A short run of `pic/kong.toml` that writes particles one by one.
pub(crate) const PARTICLES: &[&str] = &[
    "pic.steps=4",
    "pic.grid.cells=[96, 200]",
    "pic.grid.size=[9.6, 20.0]",
    "pic.species.0.tagged=true",
    "pic.diagnostics.particles=[{species = \"electrons\", every = 2}]",
    "output.formats=[\"npy\", \"hdf5\"]",
];

pub(crate) fn example(name: &str) -> String {
    format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn arguments<'a>(input: &'a str, keys: &[&'a str], output: &'a str) -> Vec<&'a str> {
    arguments_on("cpu", input, keys, output)
}

fn arguments_on<'a>(device: &'a str, input: &'a str, keys: &[&'a str], output: &'a str) -> Vec<&'a str> {
    let sets = keys.iter().flat_map(|key| ["--set", *key]);
    ["run", input, "--device", device, "--threads", "1", "-o", output].into_iter().chain(sets).collect()
}

/// Bytes of a file. Those of openPMD are equal but for the second in which they were written and the checksum of its header.
#[derive(Clone)]
pub(crate) struct Content(Vec<u8>);

impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        testing::alike(&self.0, &other.0)
    }
}

/// Files of a run, but the summary, which has times, and the picture that is drawn at times.
pub(crate) fn files(folder: &Path) -> Vec<(String, Content)> {
    let listed = |folder: &Path| if folder.is_dir() { names(folder) } else { Vec::new() };
    let mut all: Vec<String> = listed(folder).into_iter().filter(|name| name != "summary.json" && name != "live.png").collect();
    all.extend(listed(&folder.join("openpmd")).into_iter().map(|name| format!("openpmd/{name}")));
    all.sort();
    let read = |name: String| (name.clone(), Content(std::fs::read(folder.join(name)).unwrap()));
    all.into_iter().filter(|name| folder.join(name).is_file()).map(read).collect()
}

/// A plasma whose files, but for rows with energies of particles, have the same bits in two runs on a GPU.
const PLASMA: (&str, &[&str]) = ("pic/kelvin_helmholtz.toml", &["pic.t_end=0.5", "pic.grid.cells=[64, 128]", "pic.grid.size=[2.05, 4.1]"]);

/// Processes that share the GPUs of this host by turns.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn processes_on_gpus_write_the_files_of_one() {
    if testing::gpu().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let files = |folder: &Path| files(folder).into_iter().filter(|(name, _)| name != "rows.csv").collect::<Vec<_>>();
    let runs = RUNS.map(|run| if run.0.starts_with("pic/") { PLASMA } else { run });
    for (k, (name, keys)) in runs.into_iter().enumerate() {
        let input = example(name);
        let one = format!("one{k}");
        let found = zellige(folder.path(), &arguments_on("cuda", &input, keys, &one));
        assert_eq!(found.code, 0, "{name}: {}", found.err);
        let expected = files(&folder.path().join(&one));
        for mpirun in launchers() {
            for processes in [2, 3] {
                let output = format!("{k}-{}-{processes}", mpirun.maker.replace(' ', "_"));
                let mut command = mpirun.command(processes);
                command.arg(env!("CARGO_BIN_EXE_zellige")).args(arguments_on("cuda", &input, keys, &output)).current_dir(folder.path());
                let done = command.output().unwrap();
                let told = String::from_utf8_lossy(&done.stderr);
                assert!(done.status.success(), "{name} by {} in {processes}: {told}", mpirun.maker);
                let found = files(&folder.path().join(&output));
                let names = |files: &[(String, Content)]| files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
                assert_eq!(names(&found), names(&expected), "{name} by {} in {processes}", mpirun.maker);
                let other: Vec<_> = found.iter().zip(&expected).filter(|(a, b)| a != b).map(|((name, _), _)| name).collect();
                assert!(other.is_empty(), "{name} by {} in {processes}: other {other:?}", mpirun.maker);
            }
        }
    }
}

/// The youngest process of this program that works in a folder.
pub(crate) fn last_process(folder: &Path) -> u32 {
    let numbers = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse::<u32>().ok());
    let here = |process: &u32| {
        let link = |name: &str| std::fs::read_link(format!("/proc/{process}/{name}")).ok();
        link("cwd").is_some_and(|cwd| cwd == folder) && link("exe").is_some_and(|exe| exe.ends_with("zellige"))
    };
    numbers.filter(here).max().expect("a process of the run")
}

/// Kills the youngest process of a run in a folder, of which the others must end.
pub(crate) fn all_end_with_one(launcher: &mut Child, folder: &Path, maker: &str) {
    let victim = last_process(&folder.canonicalize().unwrap());
    assert!(Command::new("kill").args(["-9", &victim.to_string()]).status().unwrap().success());
    let killed = Instant::now();
    while launcher.try_wait().unwrap().is_none() {
        assert!(killed.elapsed() < Duration::from_secs(30), "processes outlive one of them with {maker}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// An input that one process reads and all find wrong, and one that is killed.
#[cfg(target_os = "linux")]
#[test]
fn processes_end_together_and_say_why_once() {
    let folder = tempfile::tempdir().unwrap();
    for mpirun in launchers() {
        let start = |arguments: &[&str]| -> Command {
            let mut command = mpirun.command(3);
            command.arg(env!("CARGO_BIN_EXE_zellige")).args(arguments).current_dir(folder.path());
            command
        };
        let jet = example("dsmc/jet.toml");
        let done = start(&["run", &jet, "--set", "dsmc.stepz=3"]).output().unwrap();
        let told = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(!done.status.success() && told.matches("did you mean `steps`?").count() == 1, "{told}");
        // Another number of threads is no other input; another number of steps is.
        let program = env!("CARGO_BIN_EXE_zellige");
        let short = ["--set", "dsmc.steps=4", "--set", "dsmc.sampling.start=2", "-o", "two"];
        for (more, expected) in [(["--threads", "2"], None), (["--set", "dsmc.dt=1e-7"], Some("the input is not the same everywhere"))] {
            let first = [&["run", jet.as_str()][..], &short].concat();
            let mut command = mpirun.command(1);
            command.arg(program).args(&first).args(["--threads", "1", ":", "-n", "1", program]).args(&first).args(more);
            let done = command.current_dir(folder.path()).output().unwrap();
            let told = String::from_utf8_lossy(&done.stderr).into_owned();
            assert_eq!(done.status.success(), expected.is_none(), "{}: {told}", mpirun.maker);
            assert!(expected.is_none_or(|words| told.matches(words).count() == 1), "{}: {told}", mpirun.maker);
        }
        // A run that takes minutes; one of its processes is killed.
        let keys = ["dsmc.steps=1000000"];
        let mut child = start(&arguments(&jet, &keys, "killed")).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        while !folder.path().join("killed").join("resolved.toml").exists() {
            assert!(begun.elapsed() < Duration::from_secs(60), "the run does not begin");
            std::thread::sleep(Duration::from_millis(50));
        }
        all_end_with_one(&mut child, folder.path(), mpirun.maker);
        std::fs::remove_dir_all(folder.path().join("killed")).unwrap();
    }
}

/// The plan of a run in parts: its cut, what a part holds and sends, and how long a step will take.
#[test]
fn a_dry_run_tells_the_cut_and_the_forecast() {
    let folder = tempfile::tempdir().unwrap();
    for (name, keys, cut) in [
        ("pic/kong.toml", &["pic.grid.cells=[96, 200]", "pic.grid.size=[9.6, 20.0]"][..], "rows of cells 0 to "),
        ("dsmc/cavity.toml", &[], "boxes of cells 0-"),
        ("poisson/channel.toml", &["poisson.method=multigrid"], "rows of nodes 0 to "),
        ("ptycho/simulated.toml", &[], "frames 0 to "),
    ] {
        let input = example(name);
        let found = zellige(folder.path(), &[&arguments(&input, keys, "none")[..], &["--parts", "3", "--dry-run"]].concat());
        assert_eq!(found.code, 0, "{name}: {}", found.err);
        let line = |label: &str| {
            let line = found.err.lines().find(|line| line.trim_start().starts_with(label));
            line.unwrap_or_else(|| panic!("{name} has no `{label}`: {}", found.err)).to_owned()
        };
        assert!(line("cut").contains(cut), "{}", found.err);
        assert!(line("a part").contains(" more work than the mean"), "{}", found.err);
        // This machine may have fewer cores than parts.
        assert_eq!(found.err.matches("messages between ").count(), 1, "{}", found.err);
    }
    // More parts than can be are refused before a folder is made.
    for (name, most) in [("pic/langmuir.toml", "tiles"), ("ptycho/simulated.toml", "frames")] {
        let input = example(name);
        let found = zellige(folder.path(), &[&arguments(&input, &[], "none")[..], &["--parts", "1000"]].concat());
        assert!(found.code == 2 && found.err.contains("1000 parts of") && found.err.contains(most), "{name}: {}", found.err);
    }
    assert_eq!(names(folder.path()), Vec::<String>::new());
}

/// A part that begins anew, or from an older state, beside others that go on would mix two runs.
#[test]
fn parts_resume_from_one_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let (input, keys) = (example("dsmc/jet.toml"), ["dsmc.steps=20", "run.checkpoint_every=10"]);
    assert_eq!(zellige(folder.path(), &arguments(&input, &keys, "one")).code, 0);
    for mpirun in launchers() {
        let begin =
            [&[env!("CARGO_BIN_EXE_zellige")][..], &arguments(&input, &["dsmc.steps=40", "run.checkpoint_every=10"], "two")].concat();
        let resume = [&begin[..], &["--resume", "one"]].concat();
        let done = mpirun.command(1).args(&resume).args([":", "-n", "1"]).args(&begin).current_dir(folder.path()).output().unwrap();
        let told = String::from_utf8_lossy(&done.stderr);
        let refusal = "the checkpoint to resume from is not the same everywhere: part 0";
        assert!(!done.status.success() && told.contains(refusal) && told.contains("part 1"), "by {}: {told}", mpirun.maker);
        assert!(!told.contains("panicked"), "by {}: {told}", mpirun.maker);
    }
}

/// The job script of the guide: cut off by its time, it goes on from its checkpoint when it is started again, to the same files.
#[cfg(target_os = "linux")]
#[test]
fn a_job_goes_on_from_its_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("{}/../../examples/cluster/job.sh", env!("CARGO_MANIFEST_DIR"));
    let mut text = std::fs::read_to_string(example("dsmc/jet.toml")).unwrap();
    for (long, short) in
        [("steps = 4000", "steps = 6000"), ("per_cell = 20", "per_cell = 4"), ("start = 1500", "start = 3000"), ("[run]\n", "[run]\n")]
    {
        assert!(text.contains(long), "the example has no `{long}`");
        text = text.replace(long, short);
    }
    let input = |name: &str, wall_time: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text.replace("[run]\n", &format!("[run]\nthreads = 1\n{wall_time}\n"))).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let whole = input("jet.toml", "");
    assert_eq!(zellige(folder.path(), &["run", &whole, "--device", "cpu", "-o", "whole"]).code, 0);
    let expected = files(&folder.path().join("whole"));
    for (k, mpirun) in launchers().into_iter().enumerate() {
        let limited = input(&format!("jet{k}.toml"), "wall_time = \"0.3 s\"");
        let start = mpirun.command(2);
        let words: Vec<_> = std::iter::once(start.get_program()).chain(start.get_args()).map(|w| w.to_str().unwrap().to_owned()).collect();
        let output = format!("job{k}");
        let job = || {
            let mut command = Command::new("bash");
            command.args([&script, &limited, &output]).env("LAUNCH", words.join(" ")).env("ZELLIGE", env!("CARGO_BIN_EXE_zellige"));
            for (name, value) in start.get_envs() {
                command.env(name, value.unwrap());
            }
            command.current_dir(folder.path()).output().unwrap()
        };
        let done = job();
        let told = String::from_utf8_lossy(&done.stderr).into_owned();
        let saved = folder.path().join(&output).join("checkpoint/latest.zck").exists();
        assert!(!done.status.success() && saved, "by {}: {told}", mpirun.maker);
        let lines = told.matches("interrupted by the wall-time limit").count();
        assert!(lines == 1 && !told.contains("ended the run"), "by {}, an orderly stop that {lines} parts tell: {told}", mpirun.maker);
        // The next job has time enough.
        input(&format!("jet{k}.toml"), "");
        let done = job();
        let told = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success() && told.contains("resumed after step"), "by {}: {told}", mpirun.maker);
        let found: Vec<_> = files(&folder.path().join(&output)).into_iter().filter(|(name, _)| name != "resolved.toml").collect();
        let same: Vec<_> = expected.iter().filter(|(name, _)| name != "resolved.toml").cloned().collect();
        assert!(found == same, "by {}: other files than of a run in one go", mpirun.maker);
        let idle = job();
        assert!(idle.status.success() && String::from_utf8_lossy(&idle.stdout).contains("is complete"), "{idle:?}");
    }
}

/// Inputs that one part computes are refused in more (`examples.rs`), and numbers of parts that there cannot be.
#[test]
fn numbers_of_parts_are_checked() {
    let (folder, channel) = (tempfile::tempdir().unwrap(), example("poisson/channel.toml"));
    for number in ["0", "1025"] {
        let found = zellige(folder.path(), &["run", &channel, "--device", "cpu", "--parts", number]);
        assert!(found.code == 2 && found.err.contains("allowed: 1 to 1024"), "{number}: {}", found.err);
    }
}
