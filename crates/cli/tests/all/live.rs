//! Runs that are watched.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Stdio};
use std::time::{Duration, Instant};

use crate::common::{SMALL, command, names, zellige};

/// Starts a program with a page; the address of that, and what it says afterwards.
fn started(folder: &Path, arguments: &[&str]) -> (Child, BufReader<ChildStderr>, String) {
    let mut child = command(folder, &[arguments, &["--live"]].concat()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    let mut told = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    let url = loop {
        line.clear();
        assert!(told.read_line(&mut line).expect("messages are text") > 0, "no address was told");
        if let Some((_, url)) = line.split_once("http://") {
            break url.trim().to_owned();
        }
    };
    (child, told, url)
}

/// Asks for a path of a page; the response with its head.
fn get(url: &str, path: &str) -> String {
    let (address, own) = url.split_once('/').expect("a path with a token");
    let mut stream = TcpStream::connect(address).expect("the page is there");
    write!(stream, "GET /{own}{path} HTTP/1.1\r\nHost: {address}\r\n\r\n").expect("a request");
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Runs an example with a client that takes its events until the end; the events, and the exit code.
fn watched(folder: &Path, arguments: &[&str]) -> (String, i32) {
    let (mut child, mut told, url) = started(folder, arguments);
    let (address, path) = url.split_once('/').expect("a path with a token");
    let mut stream = TcpStream::connect(address).expect("the page is there");
    write!(stream, "GET /{path}events HTTP/1.1\r\nHost: {address}\r\n\r\n").expect("a request");
    let reader = std::thread::spawn(move || {
        let mut events = String::new();
        let _ = stream.read_to_string(&mut events);
        events
    });
    let mut rest = String::new();
    told.read_to_string(&mut rest).expect("messages are text");
    let code = child.wait().expect("it ends").code().unwrap_or(-1);
    (reader.join().expect("no panic"), code)
}

/// Bytes of the results of a folder: rows and arrays.
fn results(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let is_result = |name: &String| name == "rows.csv" || Path::new(name).extension().is_some_and(|e| e == "npy");
    names(folder).into_iter().filter(is_result).map(|name| (name.clone(), std::fs::read(folder.join(name)).expect("a file"))).collect()
}

/// Pictures of a run under way change no bit of its results, for any solver.
#[test]
fn watched_runs_have_the_same_bits() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let gas =
        ["dsmc.grid.cells=[80, 60]", "dsmc.steps=500", "dsmc.sampling.start=20", "dsmc.sampling.window=20", "dsmc.sampling.batches=4"];
    let scan = ["ptycho.scan.0.simulate.frames=81", "ptycho.scan.0.simulate.size=64"];
    let engines = ["ptycho.engine.0.iterations=60", "ptycho.engine.1.iterations=10"];
    let cases: [(&str, &str, &[&str]); 5] = [
        ("poisson/dipole", "1", &["poisson.grid.nodes=[513, 513]", "poisson.method=jacobi", "poisson.max_cycles=1500"]),
        ("pic/two_stream", "1", &["pic.t_end=30"]),
        ("dsmc/cylinder", "1", &gas),
        // All parts agree on when to make pictures.
        ("dsmc/cylinder", "2", &gas),
        ("ptycho/simulated", "1", &[scan, engines].concat()),
    ];
    for (name, parts, sets) in cases {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let input = examples.join(name).with_extension("toml").display().to_string();
        let set: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).chain(["--set", "output.formats=[\"npy\"]"]).collect();
        let run = |out: &'static str| [&["run", &input, "--threads", parts, "--parts", parts, "-o", out][..], &set].concat();
        let plain = zellige(folder.path(), &run("plain"));
        let (events, code) = watched(folder.path(), &run("watched"));
        assert_eq!(plain.code, code, "{name}: {}", plain.err);
        // The frames of the end, and others before.
        let moments = events.matches("\"frames\":[[").count();
        assert!(moments >= 2, "{name}: pictures of {moments} moments:\n{events:.2000}");
        assert!(events.contains("\"end\":["), "{name}");
        let [expected, found] = ["plain", "watched"].map(|out| results(&folder.path().join(out)));
        assert!(expected.len() >= 2, "{name}: {:?}", names(&folder.path().join("plain")));
        for ((file, a), (other, b)) in expected.iter().zip(&found) {
            assert!(file == other && a == b, "{name}: {file} differs");
        }
        assert_eq!(expected.len(), found.len(), "{name}");
    }
}

/// A queue lists its runs; the page of one is there while it is under way, and from its folder when it has ended.
#[test]
fn a_queue_has_a_page_with_those_of_its_runs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let input = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/poisson/dipole.toml").display().to_string();
    let set = ["poisson.grid.nodes=[257, 257]", "poisson.method=jacobi", "poisson.max_cycles=2000000", "poisson.tolerance=1e-13,1e-12"];
    let set: Vec<&str> = set.iter().flat_map(|set| ["--set", set]).collect();
    let run = [&["run", &input, "--device", "cpu", "--threads", "1", "-o", "queue", "--steer"][..], &set].concat();
    let (mut child, mut told, url) = started(folder.path(), &run);
    assert!(get(&url, "").contains("id=\"runs\""));
    let until = |wanted: &dyn Fn(&str) -> bool| {
        let begun = Instant::now();
        loop {
            let list = get(&url, "all");
            if wanted(&list) {
                return list;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{list}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let list = until(&|list| list.contains("\"page\":true"));
    assert!(list.contains("\"state\":\"running\"") && list.contains("\"state\":\"waiting\""), "{list}");
    assert!(get(&url, "0/").contains("id=\"pictures\""));
    let state = get(&url, "0/all");
    assert!(state.contains("\"solver\":\"poisson\"") && state.contains("\"end\":null"), "{state:.400}");
    // Stopped from their pages, one after the other.
    let stop = |number: usize| {
        let (address, path) = url.split_once('/').expect("a path with a token");
        let token = path.trim_end_matches('/');
        let mut stream = TcpStream::connect(address).expect("the page is there");
        write!(stream, "POST /{path}{number}/stop HTTP/1.1\r\nHost: {address}\r\nX-Zellige-Token: {token}\r\n\r\n").expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("a response");
        assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
    };
    stop(0);
    until(&|list| list.contains("\"state\":\"stopped\"") && list.matches("\"page\":true").count() == 2);
    let state = get(&url, "0/all");
    assert!(state.contains("the folder has no summary") && state.contains("relative_residual"), "{state:.400}");
    stop(1);
    let mut rest = String::new();
    told.read_to_string(&mut rest).expect("messages are text");
    assert_eq!(child.wait().expect("it ends").code(), Some(75), "{rest}");
}

#[test]
fn pages_that_cannot_be_served_are_refused_before_anything_is_computed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("small.toml"), SMALL).expect("the folder can be written");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = format!("--live={}", taken.local_addr().expect("an address").port());
    let cases: [(&[&str], &str); 5] = [
        (&["run", "small.toml", "--live=example.org"], "is no address"),
        (&["run", "small.toml", &port], "cannot listen at 127.0.0.1:"),
        (&["run", "small.toml", "--steer"], "--live"),
        (&["run", "small.toml", "small.toml", &port], "cannot listen at 127.0.0.1:"),
        (&["view", "small.toml", "--live"], "is no folder"),
    ];
    for (arguments, message) in cases {
        let found = zellige(folder.path(), arguments);
        assert_eq!(found.code, 2, "{arguments:?}: {}", found.err);
        assert!(found.err.contains(message), "{arguments:?}: {}", found.err);
        assert!(!folder.path().join("out/small/rows.csv").exists(), "{arguments:?}");
    }
}

/// Values that rows are drawn beside stand in the summary, and the rows are near them.
#[test]
fn plans_say_what_rows_should_be() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let expected_and_rows = |name: &str, text: &str| {
        let input = format!("{name}.toml");
        std::fs::write(folder.path().join(&input), text).expect("the folder can be written");
        let run = zellige(folder.path(), &["run", &input, "-o", name, "--threads", "1"]);
        assert_eq!(run.code, 0, "{}", run.err);
        let out = folder.path().join(name);
        let summary: serde_json::Value = zellige_io::json::read(out.join("summary.json")).expect("a summary");
        let expected = summary["plan"]["expected"].as_array().cloned().unwrap_or_default();
        assert_eq!(expected.len(), 1, "{expected:?}");
        let (column, value) = (expected[0]["column"].as_str().unwrap_or_default(), expected[0]["value"].as_f64().expect("a value"));
        let table = zellige_io::csv::read(out.join("rows.csv")).expect("rows");
        let at = table.names.iter().position(|n| n.split(" [").next() == Some(column)).unwrap_or_else(|| panic!("no column {column}"));
        (value, table.columns[at].clone())
    };
    let (goal, residuals) = expected_and_rows("plane", SMALL);
    assert!(residuals.last().is_some_and(|r| *r <= goal && *r > 1e-9 * goal) || residuals.len() == 1, "{residuals:?} {goal}");
    let gas = "[dsmc]\ndt = 5e-9\nsteps = 300\nparticles_per_cell = 50\nspecies = [{ name = \"Ar\" }]\n[dsmc.grid]\ncells = [10, 10]\n\
        size = [1e-4, 1e-4]\n[dsmc.gas]\ndensity = 7e22\ntemperature = 300.0\n[output]\nformats = []\n";
    let (rate, collisions) = expected_and_rows("gas", gas);
    let count = collisions.len() as f64;
    let mean = collisions.iter().sum::<f64>() / count;
    // Five standard errors of a count.
    assert!((mean - rate).abs() < 5.0 * (mean / 300.0).sqrt(), "{mean} for {rate}");
}
