//! Several runs of one command.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{SMALL, command, endless, names, outcome, zellige};

fn here() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("small.toml"), SMALL).expect("the folder can be written");
    folder
}

/// The rows of `queue.csv`, without the seconds.
fn table(folder: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(folder.join("queue.csv")).expect("a table");
    let seconds = text.lines().next().unwrap_or_default().split(',').position(|name| name == "seconds").expect("a column");
    let fields = |line: &str| line.split(',').enumerate().filter(|(k, _)| *k != seconds).map(|(_, f)| f.to_owned()).collect();
    text.lines().map(fields).collect()
}

/// A scan over two keys: a folder each, the same numbers as alone, and one that fails takes no other with it.
#[test]
fn a_scan_has_a_folder_for_each_run_and_tells_failures_apart() {
    let folder = here();
    let scan = ["--set", "poisson.method=multigrid", "--set", "poisson.precision=f64,mixed", "--set", "poisson.max_cycles=40,1"];
    let found = zellige(folder.path(), &[&["run", "small.toml", "--device", "cpu", "--threads", "1", "-o", "scan"][..], &scan].concat());
    assert_eq!(found.code, 3, "{}", found.err);
    let runs = ["f64", "mixed"].map(|p| ["40", "1"].map(|c| format!("small_precision={p}_max_cycles={c}")));
    let rows = table(&folder.path().join("scan"));
    assert_eq!(rows[0], ["run", "input", "poisson.precision", "poisson.max_cycles", "device", "exit_code", "message"]);
    for (k, name) in runs.concat().iter().enumerate() {
        let (text, failed) = (rows[k + 1].join(","), k % 2 == 1);
        assert!(text.starts_with(name.as_str()) && text.contains(if failed { ",cpu,3," } else { ",cpu,0," }), "{text}");
        let there = names(&folder.path().join("scan").join(name));
        assert!(["messages.txt", "summary.json", "resolved.toml"].iter().all(|f| there.iter().any(|t| t == f)), "{there:?}");
    }
    assert!(found.err.contains("2 done, 2 failed"), "{}", found.err);
    // The table of the queue is nothing to draw: its runs are named, on the page as well.
    for how in [&[][..], &["--live"]] {
        let found = zellige(folder.path(), &[&["view", "scan"], how].concat());
        assert_eq!(found.code, 2, "{}", found.err);
        let named = found.err.split("there are results in").nth(1).unwrap_or_default();
        assert!(runs.concat().iter().all(|name| named.contains(name.as_str())), "{}", found.err);
    }
    let alone = ["--set", "poisson.method=multigrid", "--set", "poisson.precision=mixed", "--set", "poisson.max_cycles=40"];
    let run = ["run", "small.toml", "--device", "cpu", "--threads", "1", "-o", "alone"];
    assert_eq!(zellige(folder.path(), &[&run[..], &alone].concat()).code, 0);
    let read = |of: &str| std::fs::read(folder.path().join(of).join("rows.csv")).unwrap();
    assert_eq!(read("alone"), read(&format!("scan/{}", runs[1][0])));
}

/// Nothing is begun where one input of several is mistyped.
#[test]
fn a_mistyped_input_is_found_before_others_run() {
    let folder = here();
    std::fs::write(folder.path().join("wrong.toml"), SMALL.replace("[poisson", "[poison")).unwrap();
    for (more, expected) in [
        (&["wrong.toml"][..], "wrong.toml"),
        (&["--set", "poisson.tolerance=1e-3,"], "empty value"),
        (&["--set", "poisson.tolerence=1e-3,1e-4"], "tolerence"),
        (&["small.toml", "--device", "cuda:2-1"], "names no devices"),
        (&["small.toml", "--resume", "out"], "one run is resumed at a time"),
    ] {
        let found = zellige(folder.path(), &[&["run", "small.toml"], more].concat());
        assert!(found.code == 2 && found.err.contains(expected), "{more:?}: {}", found.err);
        assert_eq!(names(folder.path()), ["small.toml", "wrong.toml"], "{more:?}");
    }
    let plans = zellige(folder.path(), &["run", "small.toml", "small.toml", "--dry-run"]);
    assert!(plans.code == 0 && plans.err.matches("this was a dry run").count() == 2, "{}", plans.err);
}

/// The messages of a run once they have these words.
fn messages_with(path: &Path, words: &str) -> String {
    let begun = Instant::now();
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if text.contains(words) {
            return text;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "no `{words}` in {text}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Nobody would stop what a queue that was killed has left, so its runs save and end by themselves.
#[test]
fn the_runs_of_a_killed_queue_save_and_end() {
    let folder = here();
    std::fs::write(folder.path().join("endless.toml"), endless()).unwrap();
    let arguments = ["run", "endless.toml", "small.toml", "--device", "cpu", "--threads", "1"];
    let mut child = command(folder.path(), &arguments).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let messages = folder.path().join("out/endless/messages.txt");
    messages_with(&messages, "unknowns/s");
    child.kill().unwrap();
    child.wait().unwrap();
    let text = messages_with(&messages, "resume with");
    assert!(text.contains("the end of its queue"), "{text}");
    assert!(folder.path().join("out/endless/checkpoint/latest.zck").exists());
}

/// A signal is handed on: runs under way save, waiting ones are not begun.
#[test]
fn a_stopped_queue_saves_what_runs_and_begins_nothing() {
    let folder = here();
    std::fs::write(folder.path().join("endless.toml"), endless()).unwrap();
    let arguments = ["run", "endless.toml", "small.toml", "--device", "cpu", "--threads", "1"];
    let child = command(folder.path(), &arguments).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    messages_with(&folder.path().join("out/endless/messages.txt"), "unknowns/s");
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let found = outcome(&child.wait_with_output().unwrap());
    assert_eq!(found.code, 143, "{}", found.err);
    assert!(found.err.contains("0 done, 1 failed, 1 not begun"), "{}", found.err);
    assert!(folder.path().join("out/endless/checkpoint").exists() && !folder.path().join("out/small").exists());
    let rows = table(&folder.path().join("out"));
    assert!(rows[1].contains(&"143".to_owned()) && rows[2].contains(&"not begun".to_owned()), "{rows:?}");
}
