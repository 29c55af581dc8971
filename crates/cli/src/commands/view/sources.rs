//! Search for what can be drawn: in folders of runs and others, and in HDF5 files of this program and others.

use std::cmp::Reverse;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use zellige_engine::error::{Error, Problem, Result};
use zellige_io::hdf5::{self, openpmd};
use zellige_io::{OPENPMD, RESULTS, csv};

use super::read::{MOST_AXES, is_curve};
use super::{ALSO_HDF5, ENDINGS, endings};
use crate::commands::queue;
use crate::sink::ROWS;

/// Names that a message lists at most.
const LISTED: usize = 12;

/// Something that can be drawn.
pub(in crate::commands) struct Source {
    /// A file, `file.h5:/u` for a dataset in it.
    pub(in crate::commands) path: PathBuf,
    /// Path of its picture.
    pub(in crate::commands) picture: PathBuf,
    /// Place of its format among [`ENDINGS`].
    rank: usize,
}

/// Things that were found.
pub(in crate::commands) struct Found {
    pub(in crate::commands) sources: Vec<Source>,
    /// Other things there, and things that are missing, in words.
    pub(in crate::commands) others: Vec<String>,
}

impl Source {
    fn alone(path: PathBuf) -> Self {
        let ending = ending_of(&path);
        let rank = ENDINGS.iter().position(|e| *e == ending).unwrap_or(ENDINGS.len());
        Self { picture: picture_of(&path), path, rank }
    }

    fn dataset(file: &Path, name: &str, picture: PathBuf) -> Self {
        Self { path: PathBuf::from(format!("{}:/{}", file.display(), name.trim_matches('/'))), picture, rank: 1 }
    }
}

fn ending_of(path: &Path) -> String {
    path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default()
}

pub(super) fn is_hdf5(path: &Path) -> bool {
    let ending = ending_of(path);
    ending == "h5" || ALSO_HDF5.contains(&ending.as_str())
}

/// Names in a row, of very many the first.
fn listed(names: &[String]) -> String {
    let shown = names.iter().take(LISTED).map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    if names.len() > LISTED { format!("{shown} and {} more", names.len() - LISTED) } else { shown }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// One source per result: a field that was written in several formats is drawn once.
pub(in crate::commands) fn in_folder(folder: &Path) -> Result<Found> {
    let entries = std::fs::read_dir(folder).map_err(|e| Error::file("read", folder, e))?;
    let mut entries: Vec<PathBuf> = entries.filter_map(|e| e.ok().map(|e: DirEntry| e.path())).collect();
    entries.sort();
    let files: Vec<&PathBuf> = entries.iter().filter(|p| p.is_file()).collect();
    let with = |wanted: &dyn Fn(&Path) -> bool| files.iter().filter(|p| wanted(p)).map(|p| Source::alone((*p).clone())).collect::<Vec<_>>();
    let usual = with(&|p| ENDINGS.contains(&ending_of(p).as_str()) && ![ROWS, queue::TABLE].contains(&&*name_of(p)) && !is_list(p));
    let mut others = Vec::new();
    let mut sources: Vec<Source> = Vec::new();
    for file in usual {
        match of_a_run(&file) {
            Some(own) => sources.extend(own),
            None if file.rank == 1 => match of_openpmd(&file.path, folder, Some(&name_of(&file.path.with_extension("")))) {
                Some(found) => {
                    sources.extend(found.sources);
                    others.extend(found.others);
                }
                None => sources.push(file),
            },
            None => sources.push(file),
        }
    }
    sources.extend(of_openpmd_folder(folder, &mut others));
    if sources.is_empty() {
        sources = with(&|p| ALSO_HDF5.contains(&ending_of(p).as_str()));
    }
    sources.sort_by(|a, b| (&a.picture, a.rank).cmp(&(&b.picture, b.rank)));
    sources.dedup_by(|b, a| a.picture == b.picture);
    if sources.is_empty() {
        return Err(nothing(folder, &entries));
    }
    others.dedup();
    Ok(Found { sources, others })
}

/// The error that a folder holds nothing that can be drawn: it tells what is there, and where results may lie.
fn nothing(folder: &Path, entries: &[PathBuf]) -> Error {
    let names = |wanted: &dyn Fn(&Path) -> bool| entries.iter().filter(|p| wanted(p)).map(|p| name_of(p)).collect::<Vec<_>>();
    let (files, folders) = (names(&|p| p.is_file()), names(&|p| p.is_dir()));
    let drawable = |p: &Path| ENDINGS.contains(&ending_of(p).as_str()) || is_hdf5(p);
    let has_results = |p: &Path| std::fs::read_dir(p).is_ok_and(|inside| inside.flatten().any(|e| drawable(&e.path())));
    let results = names(&|p| p.is_dir() && has_results(p));
    let there = match (files.is_empty(), folders.is_empty()) {
        (true, true) => "it is empty".to_owned(),
        (true, false) => format!("it has only folders: {}", listed(&folders)),
        (false, true) => format!("its files are {}", listed(&files)),
        (false, false) => format!("its files are {}, its folders {}", listed(&files), listed(&folders)),
    };
    let problem = Problem::new("", format!("`{}` holds nothing that can be drawn: {there}", folder.display())).allowed(endings());
    let hint = if results.is_empty() {
        "name the folder of a run, or a file; `zellige run INPUT -o FOLDER` makes one".into()
    } else {
        format!("there are results in {}: name one of them", listed(&results))
    };
    Error::input("command line", problem.hint(hint))
}

/// The fields and waves of `results.h5` or `results_000120.h5`, whose pictures are named after them; curves have their CSV files.
fn of_a_run(file: &Source) -> Option<Vec<Source>> {
    let name = file.path.file_name()?.to_str()?;
    let step = name.strip_prefix(RESULTS)?.strip_suffix(".h5")?;
    let datasets = hdf5::list(&file.path).ok()?.into_iter().map(|d| (d.0.trim_matches('/').to_owned(), d.1));
    let drawn = datasets.filter(|(name, shape)| !name.contains('/') && (1..=MOST_AXES).contains(&shape.len()));
    let source = |(name, _): (String, _)| Source::dataset(&file.path, &name, file.path.with_file_name(format!("{name}{step}.png")));
    Some(drawn.map(source).collect())
}

/// The meshes of `openpmd/data_000120.h5` in the folder of a run, whose pictures are named as the run names them: those of its end
/// have no step.
fn of_openpmd_folder(folder: &Path, others: &mut Vec<String>) -> Vec<Source> {
    let inside = std::fs::read_dir(folder.join(OPENPMD)).map(|entries| entries.flatten().map(|e| e.path()).collect::<Vec<_>>());
    let mut files: Vec<PathBuf> = inside.unwrap_or_default().into_iter().filter(|p| is_hdf5(p)).collect();
    files.sort();
    let mut sources = Vec::new();
    for (k, file) in files.iter().enumerate() {
        let Some(found) = of_openpmd(file, folder, None) else { continue };
        if k + 1 == files.len() {
            others.extend(found.others);
        }
        let step = name_of(&file.with_extension("")).rsplit_once('_').map(|(_, step)| step.to_owned());
        for mut source in found.sources {
            if let (Some(step), false) = (&step, k + 1 == files.len()) {
                let stem = name_of(&source.picture.with_extension(""));
                source.picture = source.picture.with_file_name(format!("{stem}_{step}.png"));
            }
            sources.push(source);
        }
    }
    sources
}

/// The components of meshes of an openPMD file; `None` if it is none, or cannot be read, which is told when it is drawn.
fn of_openpmd(file: &Path, folder: &Path, before: Option<&str>) -> Option<Found> {
    let openpmd::Contents { components, others, lacking } = openpmd::contents(file).ok()??;
    let source = |(dataset, name): &(String, String)| {
        let stem = before.map_or_else(|| name.clone(), |before| format!("{before}_{name}"));
        Source::dataset(file, dataset, folder.join(format!("{stem}.png")))
    };
    let name = file.display();
    let mut told: Vec<String> = lacking.into_iter().map(|text| format!("`{name}`: {text}")).collect();
    if !others.is_empty() {
        let shown: Vec<&str> = others.iter().take(LISTED).map(String::as_str).collect();
        told.push(format!("`{name}` also has, not drawn: {}", shown.join("; ")));
    }
    Some(Found { sources: components.iter().map(source).collect(), others: told })
}

/// Sources of one file, or of a dataset or a group in it; `single` where one picture is wanted.
pub(super) fn in_file(path: &Path, single: bool) -> Result<Found> {
    let (file, dataset) = split_dataset(path);
    let alone = || Found { sources: vec![Source::alone(path.to_owned())], others: Vec::new() };
    if !is_hdf5(&file) {
        return Ok(alone());
    }
    std::fs::metadata(&file).map_err(|e| Error::file("read", &file, e))?;
    let all = hdf5::list(&file)?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let drawn = |shape: &[usize]| (1..=MOST_AXES).contains(&shape.len()) && shape.iter().product::<usize>() > 1;
    let Some(dataset) = dataset else {
        let stem = name_of(&file.with_extension(""));
        if let Some(found) = of_openpmd(&file, folder, Some(&stem)).filter(|f| !single && !f.sources.is_empty()) {
            return Ok(found);
        }
        // The largest array that makes an image, or else a curve: an object before its probe, frames before their mask.
        let mut arrays: Vec<_> = all.iter().filter(|(_, shape)| drawn(shape)).collect();
        arrays.sort_by_key(|(name, shape)| (shape.len() < 2, Reverse(shape.iter().product::<usize>()), name.clone()));
        let Some((first, rest)) = arrays.split_first() else {
            let there = hdf5::File::open(&file)?.listing();
            return Err(Error::format(&file, "HDF5", format!("it holds no array of 1 to {MOST_AXES} axes (datasets: {there})")));
        };
        let source = Source { picture: picture_of(&file), ..Source::dataset(&file, &first.0, PathBuf::new()) };
        let names: Vec<String> = rest.iter().map(|(name, shape)| format!("{}` {shape:?}", name.trim_matches('/'))).collect();
        let mut others = Vec::new();
        if !names.is_empty() {
            let shown = names.iter().take(LISTED).map(|n| format!("`{n}")).collect::<Vec<_>>().join(", ");
            let more = if names.len() > LISTED { format!(" and {} more", names.len() - LISTED) } else { String::new() };
            others.push(format!(
                "drawn: `{}`; also there: {shown}{more}; `zellige view {}:/NAME` draws one",
                first.0.trim_matches('/'),
                file.display()
            ));
        }
        return Ok(Found { sources: vec![source], others });
    };
    let wanted = dataset.trim_matches('/');
    if all.iter().any(|(name, _)| name.trim_matches('/') == wanted) || is_curve(&file, wanted)? {
        return Ok(alone());
    }
    // A group: what can be drawn in it.
    let inside = all.iter().filter(|(name, shape)| name.trim_matches('/').starts_with(&format!("{wanted}/")) && drawn(shape));
    let source = |(name, _): &(String, Vec<usize>)| {
        let path = PathBuf::from(format!("{}:/{}", file.display(), name.trim_matches('/')));
        Source { picture: picture_of(&path), path, rank: 1 }
    };
    let sources: Vec<Source> = inside.map(source).collect();
    // An absent one is told by who reads it.
    Ok(if sources.is_empty() { alone() } else { Found { sources, others: Vec::new() } })
}

/// A table that no picture comes of: its first column goes up and down, as the places of frames do, or stands still, as the number
/// of a body does.
fn is_list(file: &Path) -> bool {
    let goes_back = |x: &[f64]| !x.is_sorted() && !x.is_sorted_by(|a, b| a >= b);
    let no_abscissa = |x: &Vec<f64>| goes_back(x) || (!x.is_empty() && x.first() == x.last());
    ending_of(file) == "csv"
        && csv::read(file).is_ok_and(|table| table.columns.first().is_some_and(no_abscissa) && table.field("").is_none())
}

/// Path of the picture: beside the data, `file.h5:/a/b` as `file_a_b.png`.
fn picture_of(source: &Path) -> PathBuf {
    match split_dataset(source) {
        (file, Some(name)) => {
            let stem = name_of(&file.with_extension(""));
            file.with_file_name(format!("{stem}{}.png", name.replace('/', "_")))
        }
        (file, None) => file.with_extension("png"),
    }
}

/// `file.h5:/path` in its parts.
pub(super) fn split_dataset(source: &Path) -> (PathBuf, Option<String>) {
    let text = source.to_string_lossy();
    let cut = |ending: &str| text.split_once(&format!(".{ending}:")).map(|(file, name)| (format!("{file}.{ending}"), name.to_owned()));
    match std::iter::once("h5").chain(ALSO_HDF5).find_map(cut) {
        Some((file, name)) => (file.into(), Some(name)),
        None => (source.to_owned(), None),
    }
}
