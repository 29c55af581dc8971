//! Puts the commit into the binary; without git, or outside a checkout, it is `unknown`.

use std::process::Command;

fn main() {
    let output = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    let hash = output.ok().filter(|o| o.status.success()).and_then(|o| String::from_utf8(o.stdout).ok());
    println!("cargo::rustc-env=ZELLIGE_GIT_HASH={}", hash.as_deref().map_or("unknown", str::trim));
    println!("cargo::rerun-if-changed=../../.git/HEAD");
    println!("cargo::rerun-if-changed=../../.git/logs/HEAD");
}
