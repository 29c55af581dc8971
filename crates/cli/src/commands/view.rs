//! `zellige view`: pictures of results.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::record::{Axis, Centring, Curve, Field, Palette, Record, Values};
use zellige_io::picture::{self, MAPS, Options, Rgb};
use zellige_io::{bov, csv, hdf5, npy, vti};

use crate::args::ViewArgs;
use crate::commands::print;
use crate::report;

/// Endings that can be drawn, the ones that say most about their data first.
const ENDINGS: [&str; 5] = ["vti", "h5", "bov", "npy", "csv"];

/// The command.
pub(crate) fn view(arguments: &ViewArgs) -> Result<u8> {
    let options = options(arguments)?;
    let sources = if arguments.path.is_dir() { in_folder(&arguments.path)? } else { vec![arguments.path.clone()] };
    if arguments.output.is_some() && sources.len() > 1 {
        let problem = Problem::new("--output", format!("`{}` holds {} results", arguments.path.display(), sources.len()));
        return Err(Error::input("command line", problem.hint("name one of the files in it")));
    }
    for source in &sources {
        let record = read(source)?;
        let target = arguments.output.clone().unwrap_or_else(|| picture_of(source));
        picture::write(&target, &record, &options)?;
        report::line("picture", &target.display().to_string());
        if let (Record::Field(field), true) = (&record, arguments.terminal || report::terminal_takes_colours()) {
            print(&in_terminal(field, &options))?;
        }
    }
    Ok(0)
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

/// One source per result: a field that was written in several formats is drawn once.
fn in_folder(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).map_err(|e| Error::file("read", folder, e))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|e| e.ok().map(|e| e.path())).filter(|p| p.is_file()).collect();
    let rank = |p: &PathBuf| p.extension().and_then(|e| ENDINGS.iter().position(|k| e.eq_ignore_ascii_case(k)));
    files.retain(|p| rank(p).is_some() && p.file_name().is_none_or(|n| n != "rows.csv") && !holds_curve(p));
    files.sort_by_key(|p| (p.file_stem().map(ToOwned::to_owned), rank(p)));
    files.dedup_by(|b, a| a.file_stem() == b.file_stem());
    if files.is_empty() {
        let problem = Problem::new("", format!("`{}` holds nothing that can be drawn", folder.display()));
        return Err(Error::input("command line", problem.allowed(ENDINGS.map(|e| format!("*.{e}")).join(", "))));
    }
    Ok(files)
}

/// An HDF5 file of curves, which has its CSV file beside it.
fn holds_curve(file: &Path) -> bool {
    let is_hdf5 = file.extension().is_some_and(|e| e.eq_ignore_ascii_case("h5"));
    is_hdf5 && hdf5::list(file).is_ok_and(|found| found.iter().any(|(name, _)| name.ends_with("/abscissa")))
}

/// Where the picture goes: beside the data, `file.h5:/a/b` as `file_a_b.png`.
fn picture_of(source: &Path) -> PathBuf {
    match split_dataset(source) {
        (file, Some(name)) => {
            let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            file.with_file_name(format!("{stem}{}.png", name.replace('/', "_")))
        }
        (file, None) => file.with_extension("png"),
    }
}

/// `file.h5:/path` in its parts.
fn split_dataset(source: &Path) -> (PathBuf, Option<String>) {
    let text = source.to_string_lossy();
    match text.split_once(".h5:").map(|(a, b)| (format!("{a}.h5"), b)).or(text.split_once(".hdf5:").map(|(a, b)| (format!("{a}.hdf5"), b)))
    {
        Some((file, name)) => (file.into(), Some(name.to_owned())),
        None => (source.to_owned(), None),
    }
}

fn read(source: &Path) -> Result<Record> {
    let (file, dataset) = split_dataset(source);
    std::fs::metadata(&file).map_err(|e| Error::file("read", &file, e))?;
    let ending = file.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
    let name = file.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    match ending.as_str() {
        "vti" => vti::read(&file).map(coloured),
        "bov" => bov::read(&file).map(coloured),
        "h5" | "hdf5" => {
            let dataset = match dataset {
                Some(d) => d,
                None => first_dataset(&file)?,
            };
            hdf5::read_field(&file, &dataset).map(coloured)
        }
        "npy" => {
            let array = npy::read(&file)?;
            if array.shape.is_empty() || array.shape.len() > 3 {
                return Err(Error::format(&file, "NPY", format!("it has {} axes; 1 to 3 can be drawn", array.shape.len())));
            }
            let axis = |(i, len): (usize, &usize)| {
                let bare = Axis::bare(i, 0.0, 1.0, *len);
                Axis { name: format!("{} index", bare.name), ..bare }
            };
            let axes = array.shape.iter().rev().enumerate().map(axis).collect();
            Ok(coloured(Field::bare(name, axes, Centring::Node, Values::F64(array.values))))
        }
        "csv" => {
            let table = csv::read(&file)?;
            let (mut names, mut columns) = (table.names.into_iter(), table.columns.into_iter());
            let (Some(x_label), Some(x)) = (names.next(), columns.next()) else {
                return Err(Error::format(&file, "CSV", "it has no columns"));
            };
            let lines: Vec<(String, Vec<f64>)> = names.zip(columns).collect();
            let positive = lines.iter().flat_map(|l| &l.1).filter(|v| **v > 0.0);
            let (low, high) = positive.fold((f64::INFINITY, 0.0), |(a, b): (f64, f64), v| (a.min(*v), b.max(*v)));
            let y_label = lines.first().map(|l| l.0.clone()).unwrap_or_default();
            Ok(Record::Curve(Curve { title: name.clone(), name, x_label, y_label, x, lines, log_y: high > 1e3 * low }))
        }
        _ => {
            let problem = Problem::new("", format!("`{}` cannot be drawn", source.display()));
            Err(Error::input("command line", problem.allowed(ENDINGS.map(|e| format!("*.{e}")).join(", "))))
        }
    }
}

fn first_dataset(file: &Path) -> Result<String> {
    let mut found = hdf5::list(file)?;
    found.retain(|(_, shape)| (1..=3).contains(&shape.len()) && shape.iter().product::<usize>() > 1);
    found.into_iter().next().map(|f| f.0).ok_or_else(|| Error::format(file, "HDF5", "it holds no array of 1 to 3 axes"))
}

/// The files do not say how to colour their values: those of both signs are drawn around zero.
fn coloured(mut field: Field) -> Record {
    let values = (0..field.values.len()).map(|i| field.values.get(i)).filter(|v| v.is_finite());
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
    if low < 0.0 && high > 0.0 && -low > 0.05 * high && high > 0.05 * -low {
        field.palette = Palette::Diverging;
    }
    Record::Field(field)
}

/// Columns of the picture in the terminal; rows come in halves.
const COLUMNS: usize = 72;

/// Two values a character, by upper half blocks in 24-bit colours.
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
