//! Runs that are interrupted or killed, and go on.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use crate::common::{command, endless, zellige};

/// Starts a run that would take hours, waits for the line that contains `sign`, and interrupts it.
fn interrupt(folder: &Path, arguments: &[&str], sign: &str) -> (i32, String) {
    let mut child = command(folder, arguments).stderr(Stdio::piped()).spawn().unwrap();
    let mut text = String::new();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let mut sent = false;
    for line in &mut lines {
        if line.contains(sign) && !sent {
            sent = true;
            let id = child.id().to_string();
            assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        }
        text += &line;
        text.push('\n');
    }
    (child.wait().unwrap().code().unwrap_or(-1), text)
}

#[test]
fn an_interrupt_saves_the_state_and_the_run_goes_on_from_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("input.toml"), endless()).unwrap();
    let run = ["run", "input.toml", "--threads", "1", "-o", "out"];
    let (code, text) = interrupt(folder.path(), &run, " done ");
    assert_eq!(code, 130, "{text}");
    assert!(text.contains("hint: resume with `zellige run --resume out`"), "{text}");
    assert!(!folder.path().join("out/summary.json").exists(), "an interrupted run has no summary");
    let (code, text) = interrupt(folder.path(), &["run", "--resume", "out", "--threads", "1"], "resumed after");
    assert_eq!(code, 130, "{text}");
}

/// CPU time that a child has taken so far, seconds, also when it has ended and nobody has waited for it.
#[cfg(target_os = "linux")]
fn cpu_time(child: &std::process::Child) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    // Behind the name, which may have spaces: user and system time are the 14th and 15th field, in hundredths of a second.
    let fields = text.rsplit_once(')').unwrap().1.split_whitespace().skip(11).take(2);
    fields.map(|n| n.parse::<f64>().unwrap()).sum::<f64>() / 100.0
}

/// Waits until a child has worked so many seconds more, or has ended; a minute at most.
#[cfg(target_os = "linux")]
fn let_work(child: &std::process::Child, seconds: f64) {
    let (before, begun) = (cpu_time(child), std::time::Instant::now());
    while cpu_time(child) < before + seconds && begun.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Long steps: a polynomial of 100 000 sweeps on 75 unknowns, which is cut, a coarsest level of a million nodes, relaxed, which
/// looks for signals on its way, and Gauss-Seidel on four million, of which a decade would be millions of sweeps. All save a state
/// that continues; the first one soon stagnates.
#[test]
#[cfg(target_os = "linux")]
fn long_steps_end_within_a_moment_of_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let thin = "[poisson]\nmethod = \"chebyshev\"\nprecision = \"f64\"\ntolerance = 0\nmax_cycles = 1000000000\nrhs = \"x + 1e3*y\"\n\
        boundary = { x_hi = \"neumann\", y = \"periodic\" }\ngrid = { nodes = [16, 5], size = [169.9, 0.0137] }\n";
    let one_level = "[poisson]\nmethod = \"multigrid\"\ncoarse_levels = 0\ntolerance = 1e-10\nrhs = \"sin(pi*x)*exp(y)\"\n\
        grid = { nodes = [1025, 1025], size = [1.0, 1.0] }\n";
    let relaxed = "[poisson]\nmethod = \"gauss_seidel\"\ntolerance = 1e-10\nmax_cycles = 1000000000\nrhs = \"x - y\"\n\
        grid = { nodes = [2049, 2049], size = [1.0, 1.0] }\n";
    for (text, begun, wait) in [(thin, " done ", 0.1), (one_level, "traffic", 0.7), (relaxed, "traffic", 0.7)] {
        std::fs::write(folder.path().join("input.toml"), text).unwrap();
        let run = ["run", "input.toml", "--threads", "1", "-o", "out", "--force"];
        let mut child = command(folder.path(), &run).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut text: Vec<String> = lines.by_ref().take_while(|line| !line.contains(begun)).collect();
        // In the middle of a step.
        let_work(&child, wait);
        let (sent, before) = (std::time::Instant::now(), cpu_time(&child));
        assert!(std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        // The step has ended where the state begins to be saved: what the disk takes after that is not its time.
        while !folder.path().join("out/checkpoint").exists() && sent.elapsed().as_secs() < 60 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let worked = cpu_time(&child) - before;
        text.extend(lines);
        assert_eq!(child.wait().unwrap().code(), Some(130), "{text:#?}");
        // Some tenths of a second, a quarter of a minute and more for the whole step: by time on a core, however many share it, which
        // grows by half where others use the memory.
        assert!(worked < 2.0, "{worked} s of work: {text:#?}");
        assert!(text.iter().any(|line| line.contains("hint: resume with `zellige run --resume out`")), "{text:#?}");
        let (code, told) = interrupt(folder.path(), &["run", "--resume", "out", "--threads", "1"], "resumed after");
        assert!([3, 130].contains(&code), "{told}");
        std::fs::remove_dir_all(folder.path().join("out")).unwrap();
    }
}

/// Resumes a run killed by a batch system from its last checkpoint, with the rows up to it.
#[test]
fn a_killed_run_goes_on_with_the_rows_that_it_had() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("input.toml"), endless()).unwrap();
    let run = ["run", "input.toml", "--threads", "1", "-o", "out"];
    let every = [&run[..], &["--set", "run.checkpoint_every=2"]].concat();
    let mut child = command(folder.path(), &every).stderr(Stdio::null()).spawn().unwrap();
    let begun = std::time::Instant::now();
    while !folder.path().join("out/checkpoint/latest.zck").exists() && begun.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let steps = || zellige_io::csv::read(folder.path().join("out/rows.csv")).unwrap().columns.swap_remove(0);
    let before = steps().len();
    let result = zellige(folder.path(), &[&run[..], &["--resume", "out", "--set", "run.wall_time=1 s"]].concat());
    assert_eq!(result.code, 75, "{}", result.err);
    let after = steps();
    assert!(after.len() > before && after.iter().enumerate().all(|(i, s)| *s == i as f64 + 1.0), "{before}: {after:?}");
}
