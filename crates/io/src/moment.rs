//! The files of moments of a run: which records go into which files, prepared on all cores and named in order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use zellige_engine::error::Result;
use zellige_engine::files::{self, CompleteFile};
use zellige_engine::parallel::{items, map_tasks};
use zellige_engine::record::{Content, Field, Lead, Mesh, Outline, Palette, Record, Slot, Table, Values};

use self::plan::{SeriesEntry, Task, plan};
use crate::{Format, Stamp, picture, vti};

mod plan;
#[cfg(test)]
mod tests;

/// Name of the HDF5 file of a moment.
pub const RESULTS: &str = "results";
/// Name of the folder of openPMD files.
pub const OPENPMD: &str = "openpmd";
/// Copies of parts of records that are larger than this together are made one at a time, bytes.
const LARGE: usize = 64 << 20;

/// Bytes of a record from which on the parts of a run write it side by side.
const SHARED: usize = 4 << 20;

/// The records of one moment.
#[derive(Debug)]
pub struct Moment {
    /// Records to write.
    pub records: Vec<Record>,
    /// Step and time.
    pub stamp: Stamp,
}

impl Moment {
    /// Bytes that the values take.
    pub fn bytes(&self) -> usize {
        self.records.iter().map(bytes).sum()
    }
}

fn bytes(record: &Record) -> usize {
    let of = |values: &Values| match values {
        Values::F32(v) => 4 * v.len(),
        Values::F64(v) => 8 * v.len(),
    };
    match record {
        Record::Field(f) | Record::Stack(f) => of(&f.values),
        Record::Wave(w) => 8 * w.values.len(),
        Record::Planes(p) => p.pixels.iter().map(|pixels| 4 * pixels.len()).sum(),
        Record::Mesh(m) => m.components.iter().map(|c| of(&c.values)).sum(),
        Record::Curve(c) => 8 * (1 + c.lines.len()) * c.x.len(),
        Record::Measured(m) => 8 * (1 + 2 * m.curve.lines.len()) * m.curve.x.len(),
        Record::Table(t) => 8 * t.len * t.columns.len(),
        Record::Method(_) | Record::Patches(_) => 0,
        Record::Archive(a) => {
            let of = |content: &Content| match content {
                Content::Wholes(_, values) => 4 * values.len(),
                Content::Reals(_, values) => 8 * values.len(),
                Content::Complex(_, values) => 8 * values.len(),
                Content::Group | Content::Text(_) | Content::Number(_) | Content::Whole(_) | Content::Link(_) => 0,
            };
            a.leaves.iter().map(|leaf| of(&leaf.content)).sum()
        }
    }
}

/// Returns true if the lines of a table are macro-particles, which have a place of their own in openPMD.
pub(crate) fn holds_particles(table: &Table) -> bool {
    table.columns.iter().any(|c| c.quantity == "weighting")
}

/// Writes moments into a folder, each record in every format that suits it, and tells which files these are.
///
/// A wave becomes a complex array and a picture (hue is the phase, brightness the modulus). A field `u` becomes `u.npy`, `u.vti`,
/// `u.bov` with `u.raw`, `u.png`, `u.csv`; a curve always becomes a CSV file, and a picture if pictures are asked for; a table that
/// does not hold particles always becomes one too. In HDF5 all waves, fields, curves and such tables of a moment are in one file,
/// `results.h5`. Patches become `NAME.vtu` (polygons) or `NAME.vtp` (segments). Numbered, the names are `u_000120.npy` and so on,
/// and `u.pvd` lists the VTI files by time. A stack of fields is whole in `u.npy` and HDF5; the other formats have a file a layer,
/// `u_0003.vti`, and pictures are drawn of the first four. A mesh is written as a field a component (`E_x.npy`), but in HDF5 it
/// goes with all meshes and particles of the step into the openPMD file `openpmd/data_000120.h5`. Without HDF5, particles become a
/// CSV file.
///
/// Files are prepared on all cores and take their names in the order of moments, records and formats. `go_on` is asked before each
/// of them.
///
/// # Errors
/// The first in that order. What stands before it has its name and is among the files; nothing of what comes after it is left.
pub fn write_moments(
    folder: &Path,
    moments: &[Moment],
    formats: &[Format],
    go_on: &(dyn Fn() -> Result<()> + Sync),
) -> (Vec<PathBuf>, Result<()>) {
    let moments: Vec<_> = moments.iter().map(|m| (&m.records[..], m.stamp)).collect();
    write(folder, &moments, formats, go_on, &Lead::default())
}

/// Writes a moment as [`write_moments`] does, of which some records are shares of a part of the run ([`takes_share`]): `lead` has
/// all parts give what pictures show of them, and write them into the files once all are laid out; then these get their names.
///
/// # Errors
/// As there. Of a part that cannot write: no file has its name.
pub fn write_shares(
    folder: &Path,
    moment: &Moment,
    formats: &[Format],
    go_on: &(dyn Fn() -> Result<()> + Sync),
    lead: &Lead,
) -> (Vec<PathBuf>, Result<()>) {
    write(folder, &[(&moment.records, moment.stamp)], formats, go_on, lead)
}

/// Returns true if the parts of a run write a record in these formats side by side: particles in HDF5, meshes and fields also in
/// NPY and VTI, and as pictures if their values are more than the pixels. Few values are gathered before parts have met at a file,
/// and written while the run goes on.
pub fn takes_share(record: &Record, formats: &[Format]) -> bool {
    match record {
        Record::Table(table) => {
            let fits = holds_particles(table) && formats.contains(&Format::Hdf5) && !formats.contains(&Format::Csv);
            fits && bytes(record) >= SHARED
        }
        Record::Mesh(Mesh { axes, palette, .. }) | Record::Field(Field { axes, palette, .. }) => {
            // Each component with the bytes of a value.
            let components: Vec<(Field, usize)> = match record {
                Record::Mesh(mesh) => {
                    mesh.components.iter().enumerate().map(|(k, c)| (mesh.field_without_values(k), c.values.width())).collect()
                }
                Record::Field(field) => vec![(field.without_values(), field.values.width())],
                _ => Vec::new(),
            };
            let fits = !formats.is_empty() && formats.iter().all(|f| matches!(f, Format::Npy | Format::Vti | Format::Hdf5 | Format::Png));
            let cells: usize = axes.iter().map(|axis| axis.len).product();
            let drawn = formats.contains(&Format::Png) && *palette != Palette::Undrawn;
            // A picture shows a mean, in double precision, for each of its pixels; a curve each value.
            let less = |(field, width): &(Field, usize)| picture::pixels_shown(field).is_some_and(|pixels| 8 * pixels < cells * width);
            fits && cells * components.iter().map(|(_, width)| width).sum::<usize>() >= SHARED && (!drawn || components.iter().all(less))
        }
        _ => false,
    }
}

pub(crate) fn write(
    folder: &Path,
    moments: &[(&[Record], Stamp)],
    formats: &[Format],
    go_on: &(dyn Fn() -> Result<()> + Sync),
    lead: &Lead,
) -> (Vec<PathBuf>, Result<()>) {
    let (mut tasks, mut result) = (Vec::new(), Ok(()));
    for (records, stamp) in moments {
        result = plan(folder, records, formats, *stamp, lead, &mut tasks);
        if result.is_err() {
            break;
        }
    }
    let (prepared, failed) = prepare(&tasks, go_on);
    // The first error is that of the first file.
    result = failed.and(result);
    let outline = |Prepared { files, slots }: &Prepared| {
        let file = files.first().filter(|_| !slots.is_empty())?;
        Some(Outline { path: file.path().to_owned(), temporary: file.temporary().to_owned(), slots: slots.clone() })
    };
    let outlines: Vec<Outline> = prepared.iter().filter_map(outline).collect();
    if !outlines.is_empty()
        && let Some((records, _)) = moments.first()
        && let Err(error) = lead.write(records, &outlines)
    {
        return (Vec::new(), Err(error));
    }
    let prepared: Vec<_> = prepared.into_iter().map(|prepared| prepared.files).collect();
    let files = tasks[..prepared.len()].iter();
    let mut written: Vec<PathBuf> = files.clone().map(|t| t.path.clone()).collect();
    let counts: Vec<usize> = prepared.iter().map(Vec::len).collect();
    let mut ready: Vec<CompleteFile> = prepared.into_iter().flatten().collect();
    let mut lists: BTreeMap<PathBuf, Vec<(&SeriesEntry, String)>> = BTreeMap::new();
    for task in files {
        if let (Some(entry), Some(file)) = (&task.series, task.path.file_name()) {
            lists.entry(series_file(folder, &entry.name)).or_default().push((entry, file.to_string_lossy().into_owned()));
        }
    }
    lists.retain(|list, entries| list.exists() || entries.iter().any(|(entry, _)| entry.numbered));
    let several: Result<Vec<_>> = lists.iter().map(|(list, entries)| files::prepare(|| extend_series(list, entries))).collect();
    match several {
        Ok(several) => ready.extend(several.into_iter().flatten()),
        Err(error) => result = result.and(Err(error)),
    }
    let all = ready.len();
    let (named, renamed) = files::give_names(ready);
    if named.len() < all {
        // Those whose last file has its name.
        let ends = counts.iter().scan(0, |sum, n| {
            *sum += n;
            Some(*sum)
        });
        written.truncate(ends.take_while(|end| *end <= named.len()).count());
    }
    let lists: BTreeSet<PathBuf> = named.into_iter().filter(|path| lists.contains_key(path)).collect();
    written.extend(lists);
    (written, renamed.and(result))
}

/// Files of a task without their names, and places of values that are not in the first of them yet.
struct Prepared {
    files: Vec<CompleteFile>,
    slots: Vec<Slot>,
}

/// Prepares files on all cores; those before the first that fails.
fn prepare(tasks: &[Task], go_on: &(dyn Fn() -> Result<()> + Sync)) -> (Vec<Prepared>, Result<()>) {
    // Copies take memory that nobody has counted: those of large arrays are made one after the other.
    let heavy = tasks.iter().map(|t| t.copied).sum::<usize>() > LARGE;
    let (copying, light): (Vec<usize>, Vec<usize>) = (0..tasks.len()).partition(|i| heavy && tasks[*i].copied > 0);
    let chains: Vec<Vec<usize>> = std::iter::once(copying).filter(|c| !c.is_empty()).chain(light.into_iter().map(|i| vec![i])).collect();
    let done = map_tasks(items(&chains), |_, chain| {
        let one = |i: &usize| {
            let (task, mut slots) = (&tasks[*i], Vec::new());
            let lay_out = || (task.write)(&task.path).map(|found| slots = found);
            let prepared = go_on().and_then(|()| files::prepare(lay_out));
            (*i, prepared.map(|files| Prepared { files, slots }))
        };
        chain.iter().map(one).collect::<Vec<_>>()
    });
    let mut done: Vec<_> = done.into_iter().flatten().collect();
    done.sort_by_key(|(i, _)| *i);
    let mut ready = Vec::with_capacity(done.len());
    for (_, result) in done {
        match result {
            Ok(files) => ready.push(files),
            Err(error) => return (ready, Err(error)),
        }
    }
    (ready, Ok(()))
}

/// Names of the time series that a record's files belong to.
pub fn series_names(record: &Record) -> Vec<String> {
    match record {
        Record::Field(field) => vec![field.name.clone()],
        Record::Patches(patches) => vec![patches.name.clone()],
        Record::Mesh(mesh) => (0..mesh.components.len()).map(|i| mesh.field_name(i)).collect(),
        _ => Vec::new(),
    }
}

/// Returns true if a record is written to openPMD where that is asked for (HDF5).
pub fn goes_to_openpmd(record: &Record) -> bool {
    matches!(record, Record::Mesh(_)) || matches!(record, Record::Table(table) if holds_particles(table))
}

/// Path of the list of a time series.
pub fn series_file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.pvd"))
}

/// Adds files to a time series; a step that is written again replaces its entry, and the end of a run stands for its last step only
/// where that has no file with its number.
fn extend_series(list: &Path, files: &[(&SeriesEntry, String)]) -> Result<()> {
    let mut entries = if list.exists() { vti::read_series(list)? } else { Vec::new() };
    for (SeriesEntry { time, numbered, .. }, file) in files {
        entries.retain(|e| e.1 != *file);
        if *numbered || entries.iter().all(|e| e.0 != *time) {
            entries.push((*time, file.clone()));
        }
    }
    entries.sort_by(|a, b| a.0.total_cmp(&b.0));
    vti::write_series(list, &entries)
}
