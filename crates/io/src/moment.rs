//! The files of moments of a run: which records go into which files, prepared on all cores and named in order.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use zellige_engine::error::Result;
use zellige_engine::files::{self, CompleteFile};
use zellige_engine::parallel::{items, map_tasks};
use zellige_engine::record::{Content, Field, LazyPatches, Mesh, Palette, Record, Table, Values, Wave};

use crate::tensor::{Elements, Tensor};
use crate::{Format, Stamp, bov, check_axes, csv, hdf5, npy, picture, stack, vti, vtu};

/// Name of the HDF5 file of a moment.
pub const RESULTS: &str = "results";
/// Name of the folder of openPMD files.
pub const OPENPMD: &str = "openpmd";
/// Copies of parts of records that are larger than this together are made one at a time, bytes.
const LARGE: usize = 64 << 20;

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

/// A field, or a part of a record that becomes one when it is written.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    /// A field.
    Whole(&'a Field),
    /// A component of a mesh.
    Component(&'a Mesh, usize),
    /// A layer of a stack.
    Layer(&'a Field, usize),
}

impl<'a> Source<'a> {
    fn field(self) -> Cow<'a, Field> {
        match self {
            Self::Whole(field) => Cow::Borrowed(field),
            Self::Component(mesh, i) => Cow::Owned(mesh.field(i)),
            Self::Layer(stack, k) => Cow::Owned(stack::layer(stack, k)),
        }
    }

    /// Bytes that are copied for it.
    fn copied(self) -> usize {
        match self {
            Self::Whole(_) => 0,
            Self::Component(mesh, i) => 8 * mesh.components[i].values.len(),
            Self::Layer(stack, _) => 8 * stack.values.len() / stack.axes.last().map_or(1, |a| a.len.max(1)),
        }
    }
}

/// Writes a file under the name that it is given.
type Write<'a> = Box<dyn Fn(&Path) -> Result<()> + Send + Sync + 'a>;

/// A file to write.
struct Task<'a> {
    path: PathBuf,
    /// Bytes of records that are copied for it.
    copied: usize,
    /// The time series that it belongs to, and its time there.
    series: Option<(String, f64)>,
    write: Write<'a>,
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
    write(folder, &moments, formats, go_on)
}

pub(crate) fn write(
    folder: &Path,
    moments: &[(&[Record], Stamp)],
    formats: &[Format],
    go_on: &(dyn Fn() -> Result<()> + Sync),
) -> (Vec<PathBuf>, Result<()>) {
    let (mut tasks, mut result) = (Vec::new(), Ok(()));
    for (records, stamp) in moments {
        result = plan(folder, records, formats, *stamp, &mut tasks);
        if result.is_err() {
            break;
        }
    }
    let (prepared, failed) = prepare(&tasks, go_on);
    // The first error is that of the first file.
    result = failed.and(result);
    let files = tasks[..prepared.len()].iter();
    let mut written: Vec<PathBuf> = files.clone().map(|t| t.path.clone()).collect();
    let counts: Vec<usize> = prepared.iter().map(Vec::len).collect();
    let mut ready: Vec<CompleteFile> = prepared.into_iter().flatten().collect();
    let mut lists: BTreeMap<PathBuf, Vec<(f64, String)>> = BTreeMap::new();
    for task in files {
        if let (Some((name, time)), Some(file)) = (&task.series, task.path.file_name()) {
            lists.entry(series_file(folder, name)).or_default().push((*time, file.to_string_lossy().into_owned()));
        }
    }
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

/// Prepares files on all cores; those before the first that fails.
fn prepare(tasks: &[Task], go_on: &(dyn Fn() -> Result<()> + Sync)) -> (Vec<Vec<CompleteFile>>, Result<()>) {
    // Copies take memory that nobody has counted: those of large arrays are made one after the other.
    let heavy = tasks.iter().map(|t| t.copied).sum::<usize>() > LARGE;
    let (copying, light): (Vec<usize>, Vec<usize>) = (0..tasks.len()).partition(|i| heavy && tasks[*i].copied > 0);
    let chains: Vec<Vec<usize>> = std::iter::once(copying).filter(|c| !c.is_empty()).chain(light.into_iter().map(|i| vec![i])).collect();
    let done = map_tasks(items(&chains), |_, chain| {
        let one = |i: &usize| {
            let task = &tasks[*i];
            (*i, go_on().and_then(|()| files::prepare(|| (task.write)(&task.path))))
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

/// Adds the files of one moment.
fn plan<'a>(folder: &Path, records: &'a [Record], formats: &[Format], stamp: Stamp, tasks: &mut Vec<Task<'a>>) -> Result<()> {
    // Without cut cells, VTK's polygons are its images.
    let only_vtu = !formats.is_empty() && formats.iter().all(|f| *f == Format::Vtu);
    let images = formats.contains(&Format::Vti) || only_vtu && !records.iter().any(|r| matches!(r, Record::Patches(_)));
    let mut plan = Plan { folder, formats, images, stamp, tasks };
    let (mut meshes, mut tables, mut method, mut together) = (Vec::new(), Vec::new(), None, Vec::new());
    for record in records {
        match record {
            Record::Field(field) => plan.field(Source::Whole(field)),
            Record::Stack(stack) => plan.stack(stack)?,
            Record::Curve(curve) => {
                plan.push(&curve.name, "csv", move |path| csv::write_curve(path, curve));
                plan.picture(&curve.name, record);
            }
            Record::Measured(measured) => {
                plan.push(&measured.curve.name, "csv", move |path| csv::write_measured(path, measured));
                plan.picture(&measured.curve.name, record);
            }
            Record::Patches(patches) => plan.patches(patches, records),
            // Of somebody who watches: no results.
            Record::Planes(_) => {}
            Record::Wave(wave) => plan.wave(wave),
            Record::Archive(archive) => plan.push(&archive.name, archive.ending, move |path| hdf5::write_archive(path, archive)),
            Record::Mesh(mesh) => {
                (0..mesh.components.len()).for_each(|i| plan.field(Source::Component(mesh, i)));
                meshes.push(mesh);
            }
            Record::Method(how) => method = Some(how),
            Record::Table(table) => {
                if plan.wants(Format::Csv) || !(plan.wants(Format::Hdf5) && holds_particles(table)) {
                    plan.push(&table.name, "csv", move |path| csv::write_table(path, table));
                }
                if holds_particles(table) {
                    tables.push(table);
                }
            }
        }
        let fits = match record {
            Record::Field(_) | Record::Stack(_) | Record::Curve(_) | Record::Measured(_) => true,
            Record::Wave(wave) => !wave.live,
            Record::Table(table) => !holds_particles(table),
            Record::Mesh(_) | Record::Planes(_) | Record::Patches(_) | Record::Archive(_) | Record::Method(_) => false,
        };
        if fits {
            together.push(record);
        }
    }
    if !plan.wants(Format::Hdf5) {
        return Ok(());
    }
    if !together.is_empty() {
        plan.push(RESULTS, "h5", move |path| hdf5::write_moment(path, &together, Some(stamp)));
    }
    if !(meshes.is_empty() && tables.is_empty()) {
        // A folder of its own: openPMD-viewer opens every HDF5 file that stands in one.
        let folder = folder.join(OPENPMD);
        files::create_dir(&folder)?;
        let (path, time) = (folder.join(hdf5::openpmd::file_name(stamp.step)), stamp.time.unwrap_or(stamp.step as f64));
        let iteration = hdf5::openpmd::Iteration { step: stamp.step, time, dt: time / stamp.step.max(1) as f64 };
        plan.add(path, 0, move |path| hdf5::openpmd::write(path, iteration, &meshes, &tables, method));
    }
    Ok(())
}

/// The files of a moment so far.
struct Plan<'p, 'a> {
    folder: &'p Path,
    formats: &'p [Format],
    /// Fields are written as VTI.
    images: bool,
    stamp: Stamp,
    tasks: &'p mut Vec<Task<'a>>,
}

impl<'a> Plan<'_, 'a> {
    fn wants(&self, format: Format) -> bool {
        self.formats.contains(&format)
    }

    fn stem(&self, name: &str) -> String {
        if self.stamp.numbered { format!("{name}_{:06}", self.stamp.step) } else { name.to_owned() }
    }

    fn add(&mut self, path: PathBuf, copied: usize, write: impl Fn(&Path) -> Result<()> + Send + Sync + 'a) {
        self.tasks.push(Task { path, copied, series: None, write: Box::new(write) });
    }

    fn push(&mut self, name: &str, ending: &str, write: impl Fn(&Path) -> Result<()> + Send + Sync + 'a) {
        self.add(self.folder.join(format!("{}.{ending}", self.stem(name))), 0, write);
    }

    /// Puts the file that was added last into the time series `name`.
    fn add_to_series(&mut self, name: &str, time: f64) {
        if let Some(task) = self.tasks.last_mut() {
            task.series = Some((name.to_owned(), time));
        }
    }

    fn picture(&mut self, name: &str, record: &'a Record) {
        if self.wants(Format::Png) {
            self.push(name, "png", move |path| picture::write(path, record, &picture::Options::default()));
        }
    }

    fn patches(&mut self, patches: &'a LazyPatches, records: &'a [Record]) {
        if !self.wants(Format::Vtu) {
            return;
        }
        let (time, ending) = (self.stamp.time, if patches.segments { "vtp" } else { "vtu" });
        let path = self.folder.join(format!("{}.{ending}", self.stem(&patches.name)));
        // Polygons hold the fields once more.
        let copied = if patches.segments { 0 } else { records.iter().map(bytes).sum() };
        self.add(path, copied, move |path| vtu::write(path, &(patches.make)(records), time));
        if self.stamp.numbered {
            self.add_to_series(&patches.name, time.unwrap_or(self.stamp.step as f64));
        }
    }

    fn wave(&mut self, wave: &'a Wave) {
        if wave.live {
            if self.wants(Format::Png) {
                self.add(self.folder.join(format!("{}.png", wave.name)), 0, move |path| picture::write_wave(path, wave));
            }
            return;
        }
        if self.wants(Format::Npy) {
            self.push(&wave.name, "npy", move |path| {
                npy::write_tensor(path, &Tensor { shape: wave.shape.to_vec(), elements: Elements::Complex(wave.values.clone()) })
            });
        }
        if self.wants(Format::Png) {
            self.push(&wave.name, "png", move |path| picture::write_wave(path, wave));
        }
    }

    /// A field in the formats that have a file each.
    fn field(&mut self, source: Source<'a>) {
        let (name, palette) = match source {
            Source::Whole(field) | Source::Layer(field, _) => (field.name.clone(), field.palette),
            Source::Component(mesh, i) => (mesh.field_name(i), mesh.palette),
        };
        let stem = self.stem(&name);
        if self.wants(Format::Npy) {
            self.push(&name, "npy", move |path| match source {
                Source::Component(mesh, i) => {
                    let shape: Vec<usize> = mesh.axes.iter().rev().map(|a| a.len).collect();
                    npy::write(path, &shape, &mesh.components[i].values)
                }
                _ => {
                    let field = source.field();
                    npy::write(path, &field.shape(), &field.values)
                }
            });
        }
        self.drawn(source, &stem, self.stamp.time, palette != Palette::Undrawn);
        if self.images && self.stamp.numbered {
            let at = self.tasks.iter().rposition(|t| t.path.file_name().is_some_and(|n| n == format!("{stem}.vti").as_str()));
            if let Some(task) = at.map(|at| &mut self.tasks[at]) {
                task.series = Some((name, self.stamp.time.unwrap_or(self.stamp.step as f64)));
            }
        }
    }

    /// Writes the formats that have one file for each field or layer of a stack: VTI, BOV, CSV and pictures.
    fn drawn(&mut self, source: Source<'a>, stem: &str, time: Option<f64>, picture: bool) {
        let (copied, folder) = (source.copied(), self.folder);
        let path = |ending: &str| folder.join(format!("{stem}.{ending}"));
        if self.images {
            self.add(path("vti"), copied, move |path| vti::write(path, &source.field(), time));
        }
        if self.wants(Format::Bov) {
            self.add(path("bov"), copied, move |path| bov::write(path, &source.field(), time));
        }
        if self.wants(Format::Csv) {
            self.add(path("csv"), copied, move |path| csv::write_field(path, &source.field()));
        }
        if self.wants(Format::Png) && picture {
            self.add(path("png"), copied, move |path| picture::write_field(path, &source.field(), &picture::Options::default()));
        }
    }

    /// `u.npy` and HDF5 hold all layers; `u_0000.vti` and so on one each, which `u.pvd` lists by their numbers.
    fn stack(&mut self, stack: &'a Field) -> Result<()> {
        let name = &stack.name;
        check_axes(&self.folder.join(name), "stack", stack, 2..=4)?;
        if self.wants(Format::Npy) {
            self.push(name, "npy", move |path| npy::write(path, &stack.shape(), &stack.values));
        }
        let draws = stack.palette != Palette::Undrawn;
        let each = self.images || self.wants(Format::Bov) || self.wants(Format::Csv);
        let layers = stack.axes.last().map_or(0, |a| a.len);
        let mut series = Vec::new();
        for k in 0..if each { layers } else { layers.min(stack::DRAWN) } {
            let stem = format!("{}_{k:04}", self.stem(name));
            self.drawn(Source::Layer(stack, k), &stem, Some(k as f64), draws && k < stack::DRAWN);
            series.push((k as f64, format!("{stem}.vti")));
        }
        if self.images {
            self.push(name, "pvd", move |path| vti::write_series(path, &series));
        }
        Ok(())
    }
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

/// Path of the list of a time series.
pub fn series_file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.pvd"))
}

/// Adds files to a time series; a step that is written again replaces its entry.
fn extend_series(list: &Path, files: &[(f64, String)]) -> Result<()> {
    let mut entries = if list.exists() { vti::read_series(list)? } else { Vec::new() };
    for (time, file) in files {
        entries.retain(|e| e.1 != *file);
        entries.push((*time, file.clone()));
    }
    entries.sort_by(|a, b| a.0.total_cmp(&b.0));
    vti::write_series(list, &entries)
}
