//! Reads or simulates the scans of an input and writes them in other formats:
//! `cargo run --example convert -- INPUT.toml scan.cxi scan.ptyd scan.npz`. Of several scans the first is taken.

use std::path::Path;
use std::process::ExitCode;

use zellige_engine::config::Source;
use zellige_engine::error::{Error, Problem, Result};
use zellige_ptycho::config::ScanConfig;
use zellige_ptycho::data::{self, write};

fn convert(arguments: &[String]) -> Result<()> {
    let wrong = |message: &str| Error::input("command line", Problem::new("", message).hint("convert INPUT.toml OUT.cxi|.ptyd|.npz .."));
    let Some((input, outputs)) = arguments.split_first() else { return Err(wrong("no input is named")) };
    let source = Source::read(Path::new(input))?;
    let first = source.value.pointer("/ptycho/scan/0").cloned().ok_or_else(|| wrong("the input has no [[ptycho.scan]]"))?;
    let config: ScanConfig = serde_json::from_value(first).map_err(|e| wrong(&e.to_string()))?;
    let folder = Path::new(input).parent().unwrap_or(Path::new(""));
    let mut scan = data::load(&config, config.name.as_deref().unwrap_or("scan0"), folder, 1)?;
    for note in &scan.notes {
        eprintln!("note: {note}");
    }
    for output in outputs {
        let path = Path::new(output);
        match path.extension().and_then(|e| e.to_str()) {
            Some("npz") => write::write_npz(path, &mut scan)?,
            Some("cxi") => write::write_cxi(path, &mut scan)?,
            Some("ptyd") => write::write_ptyd(path, &mut scan)?,
            _ => return Err(wrong("an output ends in .npz, .cxi or .ptyd")),
        }
        println!("{output}: {} frames of {} x {}", scan.positions.len(), scan.shape[0], scan.shape[1]);
    }
    Ok(())
}

fn main() -> ExitCode {
    match convert(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
