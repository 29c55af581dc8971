//! `zellige view`: pictures of results.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::record::{Field, Record};
use zellige_io::picture::{self, MAPS, Options, Rgb};

use crate::args::ViewArgs;
use crate::commands::{folder, print};
use crate::report;
use crate::sink::RESOLVED;

mod read;
mod sources;

pub(super) use read::{Drawable, read};
pub(super) use sources::{Found, Source, in_folder};

/// Endings that can be drawn, the ones that say most about their data first.
const ENDINGS: [&str; 5] = ["vti", "h5", "bov", "npy", "csv"];
/// Other endings of HDF5, which are drawn when they are named, or where nothing else can be drawn.
const ALSO_HDF5: [&str; 5] = ["hdf5", "cxi", "ptyr", "ptyd", "nxs"];

/// All endings, for messages.
fn endings() -> String {
    ENDINGS.iter().chain(&ALSO_HDF5).map(|e| format!("*.{e}")).collect::<Vec<_>>().join(", ")
}

/// The command.
pub(crate) fn view(arguments: &ViewArgs) -> Result<u8> {
    if let Some(address) = &arguments.live {
        return folder::show(&arguments.path, address);
    }
    let options = options(arguments)?;
    if let Some(output) = arguments.output.as_ref().filter(|o| !o.extension().is_some_and(|e| e.eq_ignore_ascii_case("png"))) {
        let problem = Problem::new("--output", format!("`{}` is not the name of a picture", output.display()));
        return Err(Error::input("command line", problem.allowed("NAME.png")));
    }
    let folder = arguments.path.is_dir();
    let Found { sources, others } =
        if folder { in_folder(&arguments.path)? } else { sources::in_file(&arguments.path, arguments.output.is_some())? };
    if arguments.output.is_some() && sources.len() > 1 {
        let problem = Problem::new("--output", format!("`{}` holds {} results", arguments.path.display(), sources.len()));
        return Err(Error::input("command line", problem.hint("name one of the files in it")));
    }
    let in_colour = arguments.terminal || report::terminal_takes_colours();
    // A run's own pictures know more than the files do: titles, scales, what belongs together.
    let keeping = folder && arguments.output.is_none() && options == Options::default();
    let (mut done, mut failed) = (0, None);
    for Source { path: source, picture, .. } in &sources {
        let target = arguments.output.clone().unwrap_or_else(|| beside(picture, folder));
        let kept = keeping && is_of_the_run(&target, source);
        if kept {
            report::line("kept", &target.display().to_string());
        }
        if kept && !in_colour {
            done += 1;
            continue;
        }
        let Drawable { record, notes } = match read(source) {
            Ok(drawable) => drawable,
            // One that cannot be drawn must not hide the others.
            Err(error) if sources.len() > 1 => {
                report::note(&format!("not drawn: {error}"));
                failed.get_or_insert(error);
                continue;
            }
            Err(error) => return Err(error),
        };
        if !kept {
            picture::write(&target, &record, &options)?;
            report::line("picture", &target.display().to_string());
            for text in &notes {
                report::note(text);
            }
        }
        done += 1;
        if let (Record::Field(field), true) = (&record, in_colour) {
            print(&in_terminal(field, &options))?;
        }
    }
    for text in &others {
        report::note(text);
    }
    failed.filter(|_| done == 0).map_or(Ok(0), Err)
}

/// The picture of a file that was named: beside the one that a run has drawn, where there is one.
fn beside(picture: &Path, folder: bool) -> PathBuf {
    if folder || !picture.exists() || !picture.with_file_name(RESOLVED).exists() {
        return picture.to_owned();
    }
    let stem = picture.file_stem().unwrap_or_default().to_string_lossy();
    picture.with_file_name(format!("{stem}_view.png"))
}

/// Returns true if a picture belongs to the run of the data: not older than the run's input with its defaults, or, in another
/// folder, than the data.
fn is_of_the_run(picture: &Path, source: &Path) -> bool {
    let time = |path: &Path| std::fs::metadata(path).and_then(|d| d.modified()).ok();
    let begun = time(&picture.with_file_name(RESOLVED)).or_else(|| time(source));
    time(picture).is_some_and(|drawn| begun.is_some_and(|begun| drawn >= begun))
}

fn options(arguments: &ViewArgs) -> Result<Options> {
    let wrong = |p: Problem| Error::input("command line", p);
    let map = match &arguments.map {
        None => None,
        Some(name) => Some(MAPS.into_iter().find(|m| m.name() == name).ok_or_else(|| {
            let names: Vec<_> = MAPS.iter().map(|m| m.name()).collect();
            wrong(Problem::new("--map", format!("`{name}` is not a colour map")).allowed(names.join(", ")))
        })?),
    };
    let range = match arguments.range.as_deref() {
        Some([low, high]) if low < high && low.is_finite() && high.is_finite() => Some((*low, *high)),
        None => None,
        Some(_) => return Err(wrong(Problem::new("--range", "the lowest value must be below the highest, both finite"))),
    };
    Ok(Options { range, log: arguments.log, map, contours: None })
}

/// Columns of the picture in the terminal; rows come in halves.
const COLUMNS: usize = 72;

/// Draws two values per character, by upper half blocks in 24-bit colours.
fn in_terminal(field: &Field, options: &Options) -> String {
    let aspect = match &field.axes[..] {
        [x, y, ..] => (y.len as f64 * y.spacing) / (x.len as f64 * x.spacing),
        _ => 0.1,
    };
    let rows = ((COLUMNS as f64 * aspect / 2.0).round() as usize).clamp(2, 60) * 2;
    let (colours, low, high) = picture::thumbnail(field, COLUMNS, rows, options);
    let code = |c: Rgb| format!("{};{};{}", c[0], c[1], c[2]);
    let mut out = format!("{} from {low:.4e} to {high:.4e}\n", field.title);
    for pair in colours.chunks(2 * COLUMNS) {
        let (upper, lower) = pair.split_at(COLUMNS);
        for (u, l) in upper.iter().zip(lower) {
            let _ = write!(out, "\x1b[38;2;{}m\x1b[48;2;{}m\u{2580}", code(*u), code(*l));
        }
        out += "\x1b[0m\n";
    }
    out
}
