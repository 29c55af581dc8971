//! `zellige ptycho convert`: a scan, read or simulated, in the formats of others.

use std::fmt::Write as _;
use std::path::Path;

use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::sim::Solver;
use zellige_ptycho::Ptycho;
use zellige_ptycho::config::ScanConfig;
use zellige_ptycho::data::write;
use zellige_ptycho::scan::Scan;
use zellige_ptycho::setup;

use crate::args::PtychoCommand;
use crate::commands::{print, run};
use crate::report;

/// Writes a scan to a new file.
type Write = fn(&Path, &mut Scan) -> Result<()>;

/// The formats by the endings of their files.
const FORMATS: [(&str, Write); 3] =
    [("cxi", |p, s| write::write_cxi(p, s)), ("ptyd", |p, s| write::write_ptyd(p, s)), ("npz", |p, s| write::write_npz(p, s))];

/// The command.
pub(crate) fn ptycho(command: PtychoCommand) -> Result<u8> {
    let PtychoCommand::Convert { input, outputs, overrides } = command;
    // Reading may take minutes: what cannot be written is said before.
    let targets = outputs.iter().map(|path| Ok((path, format(path)?))).collect::<Result<Vec<_>>>()?;
    let source = run::read(&input, &overrides)?;
    source.solver(&[Ptycho::NAME])?;
    let checked = source.typed::<Ptycho>()?;
    let mut scans = setup::scans(&checked.config, &checked.folder, checked.run.seed)
        .map_err(|e| run::with_positions(run::named(e, &checked.origin), &source))?;
    if scans.len() != 1 {
        let name = |(i, s): (usize, &ScanConfig)| s.name.clone().unwrap_or_else(|| format!("scan{i}"));
        let names: Vec<_> = checked.config.scan.iter().enumerate().map(name).collect();
        let problem = Problem::new("ptycho.scan", format!("the input has {} scans, but a file holds one", scans.len()));
        let hint = format!("keep one of {} in the input", names.join(", "));
        return Err(Error::input(input.to_string_lossy(), problem.hint(hint)));
    }
    let scan = &mut scans[0];
    for note in &scan.notes {
        report::note(note);
    }
    let mut text = String::new();
    for (path, write) in targets {
        write(path, scan)?;
        let _ = writeln!(text, "{}: {} frames of {} x {}", path.display(), scan.positions.len(), scan.shape[0], scan.shape[1]);
    }
    print(&text)
}

/// Picks the format of a new file by the ending of its name.
fn format(path: &Path) -> Result<Write> {
    let wrong = |message: String| Problem::new("", message);
    let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
    let Some((_, write)) = FORMATS.into_iter().find(|(known, _)| *known == ending) else {
        let problem = wrong(format!("no format of scans has the ending of `{}`", path.display()));
        return Err(Error::input("command line", problem.allowed(FORMATS.map(|(e, _)| format!(".{e}")).join(", "))));
    };
    if path.exists() {
        return Err(Error::input(
            "command line",
            wrong(format!("`{}` exists and is left as it is", path.display())).hint("name another file"),
        ));
    }
    Ok(write)
}
