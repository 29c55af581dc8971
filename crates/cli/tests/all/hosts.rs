//! Runs on two hosts. The second is this machine by another name, with users of its own: messages go through sockets.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use zellige_engine::testing::mpi::{Mpirun, SECOND_HOST, launchers, second_host};

use crate::common::zellige;
use crate::parts::{RUNS, all_end_with_one, arguments, example, files};

fn command(mpirun: &Mpirun, each: usize, second_host: &Path, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = mpirun.command_on_two_hosts(each, second_host);
    command.arg(env!("CARGO_BIN_EXE_zellige")).args(arguments).current_dir(folder).stdin(Stdio::null());
    command
}

#[test]
fn two_hosts_write_the_files_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let Some(second_host) = second_host(folder.path(), None) else { return };
    for (k, (name, keys)) in RUNS.into_iter().enumerate() {
        let input = example(name);
        let one = format!("one{k}");
        assert_eq!(zellige(folder.path(), &arguments(&input, keys, &one)).code, 0, "{name}");
        let expected = files(&folder.path().join(&one));
        for mpirun in launchers() {
            let output = format!("{k}-{}", mpirun.maker.replace(' ', "_"));
            let done = command(&mpirun, 1, &second_host, folder.path(), &arguments(&input, keys, &output)).output().unwrap();
            let told = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "{name} by {}: {told}", mpirun.maker);
            assert!(files(&folder.path().join(&output)) == expected, "{name} by {}", mpirun.maker);
            let summary = std::fs::read_to_string(folder.path().join(&output).join("summary.json")).unwrap();
            assert_eq!(summary.matches(SECOND_HOST).count(), 1, "{name} by {}: {summary}", mpirun.maker);
        }
    }
}

/// A process on the second host is killed: all end, and the last checkpoint, which both hosts have written, is gone on with by one.
#[test]
fn a_process_that_is_killed_on_another_host_ends_all() {
    let folder = tempfile::tempdir().unwrap();
    let Some(second_host) = second_host(folder.path(), None) else { return };
    let jet = example("dsmc/jet.toml");
    let keys = ["dsmc.steps=3000", "dsmc.sampling.start=1000", "run.checkpoint_every=100"];
    assert_eq!(zellige(folder.path(), &arguments(&jet, &keys, "whole")).code, 0);
    let whole: Vec<_> = files(&folder.path().join("whole")).into_iter().filter(|(name, _)| name != "resolved.toml").collect();
    for mpirun in launchers() {
        let mut all = command(&mpirun, 2, &second_host, folder.path(), &arguments(&jet, &keys, "killed"));
        let mut child = all.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        let checkpoint = folder.path().join("killed/checkpoint/latest.zck");
        while !checkpoint.exists() {
            assert!(begun.elapsed() < Duration::from_secs(60), "no checkpoint by {}", mpirun.maker);
            std::thread::sleep(Duration::from_millis(50));
        }
        all_end_with_one(&mut child, folder.path(), mpirun.maker);
        std::fs::rename(folder.path().join("killed"), folder.path().join("from")).unwrap();
        let more = [&arguments(&jet, &keys, "more")[..], &["--resume", "from"]].concat();
        let done = zellige(folder.path(), &more);
        assert_eq!(done.code, 0, "by {}: {}", mpirun.maker, done.err);
        let found: Vec<_> = files(&folder.path().join("more")).into_iter().filter(|(name, _)| name != "resolved.toml").collect();
        assert!(found == whole, "by {}: other files", mpirun.maker);
        for gone in ["from", "more"] {
            std::fs::remove_dir_all(folder.path().join(gone)).unwrap();
        }
    }
}

/// Results then go through the first process, as is told once; a checkpoint needs a folder that all hosts share.
#[test]
fn a_folder_that_hosts_do_not_share_is_told() {
    let [folder, programs] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let Some(second_host) = second_host(programs.path(), Some(folder.path())) else { return };
    let jet = example("dsmc/jet.toml");
    let keys = ["dsmc.steps=60", "dsmc.sampling.start=20", "run.checkpoint_every=30"];
    for mpirun in launchers() {
        let output = mpirun.maker.replace(' ', "_");
        let done = command(&mpirun, 1, &second_host, folder.path(), &arguments(&jet, &keys, &output)).output().unwrap();
        let told = String::from_utf8_lossy(&done.stderr);
        let expected = format!("part 1 on {SECOND_HOST}: cannot open `{output}/checkpoint/latest.zck`");
        assert!(told.contains(&expected) && told.contains("a folder that all hosts of the run share"), "{}: {told}", mpirun.maker);
        assert!(done.status.success() && folder.path().join(output).join("summary.json").is_file(), "{}: {told}", mpirun.maker);
    }
    let (name, keys) = RUNS[5];
    let input = example(name);
    assert_eq!(zellige(folder.path(), &arguments(&input, keys, "one")).code, 0);
    for mpirun in launchers() {
        let output = format!("particles-{}", mpirun.maker.replace(' ', "_"));
        let done = command(&mpirun, 1, &second_host, folder.path(), &arguments(&input, keys, &output)).output().unwrap();
        let told = String::from_utf8_lossy(&done.stderr);
        let expected = format!("all results go through part 0: part 1 on {SECOND_HOST} cannot write into `{output}`");
        assert!(done.status.success() && told.matches(&expected).count() == 1, "{}: {told}", mpirun.maker);
        assert!(files(&folder.path().join(&output)) == files(&folder.path().join("one")), "{}: other files", mpirun.maker);
    }
}
