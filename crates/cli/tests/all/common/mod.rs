//! Starts the binary as a user would, on the CPU with one thread, without colours.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Outcome of a command.
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// The binary in a folder, with an environment that makes its texts the same everywhere.
pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zellige"));
    command.current_dir(folder).args(arguments).stdin(Stdio::null());
    command.env("NO_COLOR", "1").env("ZELLIGE_DEVICE", "cpu").env_remove("RUST_BACKTRACE").env("COLUMNS", "110");
    command
}

/// Runs to the end.
pub(crate) fn zellige(folder: &Path, arguments: &[&str]) -> Outcome {
    let output = command(folder, arguments).output().expect("the binary starts");
    outcome(&output)
}

pub(crate) fn outcome(output: &Output) -> Outcome {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("messages are text");
    Outcome { code: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) }
}

/// Names in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let mut names: Vec<String> = entries.map(|e| e.expect("readable").file_name().into_string().expect("text")).collect();
    names.sort();
    names
}

/// Writes an input and runs it with further arguments.
pub(crate) fn run_text(folder: &Path, text: &str, arguments: &[&str]) -> Outcome {
    std::fs::write(folder.join("input.toml"), text).expect("the folder can be written");
    zellige(folder, &[&["run", "input.toml", "--threads", "1"], arguments].concat())
}

/// Hides what differs between machines: version, processor, times and speeds.
pub(crate) fn same_everywhere(text: &str) -> String {
    let hide = |line: &str| -> String {
        if line.starts_with("zellige ") && line.contains(" on ") {
            let solver = line.split_whitespace().nth(2).unwrap_or_default();
            return format!("zellige VERSION {solver} on DEVICE");
        }
        for label in ["  time ", "  speed ", "  next "] {
            if line.starts_with(label) {
                return format!("{label}...");
            }
        }
        line.trim_end().to_owned()
    };
    text.lines().map(hide).collect::<Vec<_>>().join("\n")
}

/// A problem that takes a few milliseconds.
pub(crate) const SMALL: &str = "\
[poisson]
rhs = \"sin(pi*x)*sin(2*pi*y)\"
[poisson.grid]
nodes = [33, 49]
size = [1.0, 2.0]
";

/// A run of hours.
#[cfg(unix)]
pub(crate) fn endless() -> String {
    let keys = "method = \"jacobi\"\nprecision = \"f64\"\ntolerance = 1e-15\nmax_cycles = 1000000000\nrhs";
    SMALL.replace("[33, 49]", "[257, 257]").replace("rhs", keys)
}
