//! `zellige view`: pictures of results.

use std::cmp::Reverse;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use zellige_engine::error::{Error, Problem, Result};
use zellige_engine::record::{Axis, Centring, Curve, Field, Palette, Record, Values, Wave};
use zellige_io::picture::{self, MAPS, Options, Rgb};
use zellige_io::tensor::{Elements, Tensor};
use zellige_io::{RESULTS, bov, csv, hdf5, npy, vti};

use crate::args::ViewArgs;
use crate::commands::{folder, print};
use crate::report;

/// Endings that can be drawn, the ones that say most about their data first.
const ENDINGS: [&str; 5] = ["vti", "h5", "bov", "npy", "csv"];
/// Other endings of HDF5, which are drawn when they are named.
const ALSO_HDF5: [&str; 5] = ["hdf5", "cxi", "ptyr", "ptyd", "nxs"];

/// The command.
pub(crate) fn view(arguments: &ViewArgs) -> Result<u8> {
    if let Some(address) = &arguments.live {
        return folder::show(&arguments.path, address);
    }
    let options = options(arguments)?;
    let folder = arguments.path.is_dir();
    let sources = if folder { in_folder(&arguments.path)? } else { vec![Source::alone(arguments.path.clone())] };
    if arguments.output.is_some() && sources.len() > 1 {
        let problem = Problem::new("--output", format!("`{}` holds {} results", arguments.path.display(), sources.len()));
        return Err(Error::input("command line", problem.hint("name one of the files in it")));
    }
    let in_colour = arguments.terminal || report::terminal_takes_colours();
    // A run's own pictures know more than the files do: titles, scales, what belongs together.
    let keeping = folder && arguments.output.is_none() && options == Options::default();
    let (mut done, mut failed) = (0, None);
    for Source { path: source, picture, .. } in &sources {
        let target = arguments.output.clone().unwrap_or_else(|| picture.clone());
        let kept = keeping && is_of_the_run(&target, &arguments.path, source);
        if kept {
            report::line("kept", &target.display().to_string());
        }
        if kept && !in_colour {
            done += 1;
            continue;
        }
        let record = match read(source) {
            Ok(record) => record,
            // One file that cannot be drawn must not hide the others.
            Err(error) if folder => {
                report::note(&format!("not drawn: {error}"));
                failed.get_or_insert(error);
                continue;
            }
            Err(error) => return Err(error),
        };
        if !kept {
            picture::write(&target, &record, &options)?;
            report::line("picture", &target.display().to_string());
        }
        done += 1;
        if let (Record::Field(field), true) = (&record, in_colour) {
            print(&in_terminal(field, &options))?;
        }
    }
    failed.filter(|_| done == 0).map_or(Ok(0), Err)
}

/// Returns true if a picture belongs to the run of the data: not older than the run's input with its defaults, or, in another
/// folder, than the data.
fn is_of_the_run(picture: &Path, folder: &Path, source: &Path) -> bool {
    let time = |path: &Path| std::fs::metadata(path).and_then(|d| d.modified()).ok();
    let begun = time(&folder.join("resolved.toml")).or_else(|| time(source));
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

/// Something that can be drawn.
pub(super) struct Source {
    /// A file, `file.h5:/u` for a dataset in it.
    pub(super) path: PathBuf,
    /// Path of its picture.
    pub(super) picture: PathBuf,
    /// Place of its format among [`ENDINGS`].
    rank: usize,
}

impl Source {
    fn alone(path: PathBuf) -> Self {
        let ending = |e: &str| path.extension().is_some_and(|own| own.eq_ignore_ascii_case(e));
        let rank = ENDINGS.iter().position(|e| ending(e)).unwrap_or(ENDINGS.len());
        Self { picture: picture_of(&path), path, rank }
    }
}

/// One source per result: a field that was written in several formats is drawn once.
pub(super) fn in_folder(folder: &Path) -> Result<Vec<Source>> {
    let entries = std::fs::read_dir(folder).map_err(|e| Error::file("read", folder, e))?;
    let files = entries.filter_map(|e| e.ok().map(|e| e.path())).filter(|p| p.is_file()).map(Source::alone);
    let files = files.filter(|s| s.rank < ENDINGS.len() && s.path.file_name().is_none_or(|n| n != "rows.csv") && !is_list(&s.path));
    let mut sources: Vec<Source> = files.flat_map(|file| of_a_run(&file).unwrap_or_else(|| vec![file])).collect();
    sources.sort_by(|a, b| (&a.picture, a.rank).cmp(&(&b.picture, b.rank)));
    sources.dedup_by(|b, a| a.picture == b.picture);
    if sources.is_empty() {
        let problem = Problem::new("", format!("`{}` holds nothing that can be drawn", folder.display()));
        return Err(Error::input("command line", problem.allowed(ENDINGS.map(|e| format!("*.{e}")).join(", "))));
    }
    Ok(sources)
}

/// The fields and waves of `results.h5` or `results_000120.h5`, whose pictures are named after them; curves have their CSV files.
fn of_a_run(file: &Source) -> Option<Vec<Source>> {
    let name = file.path.file_name()?.to_str()?;
    let step = name.strip_prefix(RESULTS)?.strip_suffix(".h5")?;
    let datasets = hdf5::list(&file.path).ok()?.into_iter().map(|d| (d.0.trim_matches('/').to_owned(), d.1));
    let drawn = datasets.filter(|(name, shape)| !name.contains('/') && (1..=3).contains(&shape.len()));
    let source = |(name, _): (String, _)| Source {
        path: PathBuf::from(format!("{}:/{name}", file.path.display())),
        picture: file.path.with_file_name(format!("{name}{step}.png")),
        rank: file.rank,
    };
    Some(drawn.map(source).collect())
}

/// A table that no curve comes of: its first column goes up and down, as the places of frames do.
fn is_list(file: &Path) -> bool {
    let is_csv = file.extension().is_some_and(|e| e.eq_ignore_ascii_case("csv"));
    let goes_back = |x: &[f64]| !x.is_sorted() && !x.is_sorted_by(|a, b| a >= b);
    is_csv && csv::read(file).is_ok_and(|table| table.columns.first().is_some_and(|x| goes_back(x)))
}

/// Path of the picture: beside the data, `file.h5:/a/b` as `file_a_b.png`.
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
    let cut = |ending: &str| text.split_once(&format!(".{ending}:")).map(|(file, name)| (format!("{file}.{ending}"), name.to_owned()));
    match std::iter::once("h5").chain(ALSO_HDF5).find_map(cut) {
        Some((file, name)) => (file.into(), Some(name)),
        None => (source.to_owned(), None),
    }
}

pub(super) fn read(source: &Path) -> Result<Record> {
    let (file, dataset) = split_dataset(source);
    std::fs::metadata(&file).map_err(|e| Error::file("read", &file, e))?;
    let ending = file.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
    let name = file.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    match ending.as_str() {
        "vti" => vti::read(&file).map(coloured),
        "bov" => bov::read(&file).map(coloured),
        ending if ending == "h5" || ALSO_HDF5.contains(&ending) => {
            let dataset = match dataset {
                Some(d) => d,
                None => first_dataset(&file)?,
            };
            match hdf5::read_wave(&file, &dataset)? {
                Some(wave) => Ok(Record::Wave(scaled(wave, &dataset))),
                None => hdf5::read_field(&file, &dataset).map(coloured),
            }
        }
        "npy" => bare(&file, name),
        "csv" => {
            let table = csv::read(&file)?;
            let (mut names, mut columns) = (table.names.into_iter(), table.columns.into_iter());
            let (Some(x_label), Some(x)) = (names.next(), columns.next()) else {
                return Err(Error::format(&file, "CSV", "it has no columns"));
            };
            let lines: Vec<(String, Vec<f64>)> = names.zip(columns).collect();
            let positive = lines.iter().flat_map(|l| &l.1).filter(|v| **v > 0.0);
            let (low, high) = positive.fold((f64::INFINITY, 0.0), |(a, b): (f64, f64), v| (a.min(*v), b.max(*v)));
            // The name of one column is no label for all.
            let y_label = if let [(name, _)] = &lines[..] { name.clone() } else { "value".into() };
            Ok(Record::Curve(Curve { title: name.clone(), name, x_label, y_label, x, lines, log_y: high > 1e3 * low }))
        }
        _ => {
            let problem = Problem::new("", format!("`{}` cannot be drawn", source.display()));
            let endings: Vec<_> = ENDINGS.iter().chain(&ALSO_HDF5).map(|e| format!("*.{e}")).collect();
            Err(Error::input("command line", problem.allowed(endings.join(", "))))
        }
    }
}

/// Part of an object's pixels whose modulus its picture shows; the rest is drawn as the brightest of them.
const SHOWN: f64 = 0.95;

/// Ends the scale of an object below its brightest pixels: where no light falls they may have any modulus, and one of them would
/// darken the picture of all others.
fn scaled(mut wave: Wave, dataset: &str) -> Wave {
    if wave.brightest.is_none() && dataset.contains("obj") {
        let mut moduli: Vec<f32> = wave.values.iter().map(|v| v.norm()).filter(|v| v.is_finite()).collect();
        moduli.sort_by(f32::total_cmp);
        let last = (SHOWN * moduli.len() as f64) as usize;
        wave.brightest = moduli.get(last).copied().filter(|v| *v > 0.0);
    }
    wave
}

/// An array without axes of its own.
fn bare(file: &Path, name: String) -> Result<Record> {
    let bytes = std::fs::read(file).map_err(|e| Error::file("read", file, e))?;
    let Tensor { shape, elements } = npy::tensor(&bytes).map_err(|m| Error::format(file, "NPY", m))?;
    if shape.is_empty() || shape.len() > 3 {
        return Err(Error::format(file, "NPY", format!("it has {} axes; 1 to 3 can be drawn", shape.len())));
    }
    let axis = |i: usize, len: usize| {
        let bare = Axis::bare(i, 0.0, 1.0, len);
        Axis { name: format!("{} index", bare.name), ..bare }
    };
    if let Elements::Complex(values) = elements {
        let [x, y, layers] = [1, 2, 3].map(|back| shape.len().checked_sub(back).map_or(1, |i| shape[i]));
        let (title, axes) = (name.clone(), [axis(0, x), axis(1, y)]);
        return Ok(Record::Wave(Wave { name, title, shape: [layers, y, x], axes, values, brightest: None, live: false }));
    }
    let axes = shape.iter().rev().enumerate().map(|(i, len)| axis(i, *len)).collect();
    let values = Tensor { shape, elements }.to_reals().unwrap_or_default();
    Ok(coloured(Field::bare(name, axes, Centring::Node, Values::F64(values))))
}

/// The largest array of a file that makes an image, or else a curve: an object before its probe, frames before their mask.
fn first_dataset(file: &Path) -> Result<String> {
    let mut found = hdf5::list(file)?;
    found.retain(|(_, shape)| (1..=3).contains(&shape.len()) && shape.iter().product::<usize>() > 1);
    found.sort_by_key(|(name, shape)| (shape.len() < 2, Reverse(shape.iter().product::<usize>()), name.clone()));
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
