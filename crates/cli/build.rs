//! Puts the commit into the binary; without git, or outside a checkout, it is `unknown`.

use std::process::Command;

#[path = "../engine/build.rs"]
mod of_engine;

fn main() {
    of_engine::main();
    let output = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    let hash = output.ok().filter(|o| o.status.success()).and_then(|o| String::from_utf8(o.stdout).ok());
    println!("cargo::rustc-env=ZELLIGE_GIT_HASH={}", hash.as_deref().map_or("unknown", str::trim));
    // In a worktree these lie in a folder of their own; a file that is not there would make each build begin anew.
    for file in ["HEAD", "logs/HEAD"] {
        let output = Command::new("git").args(["rev-parse", "--git-path", file]).output();
        let path = output.ok().filter(|o| o.status.success()).and_then(|o| String::from_utf8(o.stdout).ok());
        if let Some(path) = path.filter(|path| std::path::Path::new(path.trim()).exists()) {
            println!("cargo::rerun-if-changed={}", path.trim());
        }
    }
    println!("cargo::rerun-if-changed=build.rs");
}
