//! Files of a moment: which record goes into which file, and what writes it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use zellige_engine::error::Result;
use zellige_engine::files;
use zellige_engine::record::{Field, LazyPatches, Lead, Mesh, Palette, Record, Slot, Values, Wave};

use super::{OPENPMD, RESULTS, bytes, holds_particles};
use crate::tensor::{Elements, Tensor};
use crate::{Format, Stamp, bov, check_axes, csv, hdf5, npy, picture, stack, vti, vtu};

/// A field, or a part of a record that becomes one when it is written.
#[derive(Clone, Copy)]
enum Source<'a> {
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

/// Writes a file under the name that it is given, and tells the places of values that parts of the run write.
pub(super) type Write<'a> = Box<dyn Fn(&Path) -> Result<Vec<Slot>> + Send + Sync + 'a>;

/// A file to write.
pub(super) struct Task<'a> {
    pub(super) path: PathBuf,
    /// Bytes of records that are copied for it.
    pub(super) copied: usize,
    pub(super) series: Option<SeriesEntry>,
    pub(super) write: Write<'a>,
}

/// The time series that a file belongs to, and its time there.
pub(super) struct SeriesEntry {
    pub(super) name: String,
    pub(super) time: f64,
    /// A file with its step in its name. Others, of the end of a run, are of a series where there are such files.
    pub(super) numbered: bool,
}

/// Adds the files of one moment; `lead` has all parts of the run give what pictures show of shares.
pub(super) fn plan<'a>(
    folder: &Path,
    records: &'a [Record],
    formats: &[Format],
    stamp: Stamp,
    lead: &Lead,
    tasks: &mut Vec<Task<'a>>,
) -> Result<()> {
    // Without cut cells, VTK's polygons are its images.
    let only_vtu = !formats.is_empty() && formats.iter().all(|f| *f == Format::Vtu);
    let images = formats.contains(&Format::Vti) || only_vtu && !records.iter().any(|r| matches!(r, Record::Patches(_)));
    let mut plan = Plan { folder, records, formats, images, stamp, lead, tasks };
    let (mut meshes, mut tables, mut method, mut together) = (Vec::new(), Vec::new(), None, Vec::new());
    let mut shares = 0..;
    for record in records {
        let share = record.share().and_then(|_| shares.next());
        match record {
            Record::Field(field) => match share {
                None => plan.field(Source::Whole(field)),
                Some(share) => plan.share(field.without_values(), &field.values, [share, 0])?,
            },
            Record::Stack(stack) => plan.stack(stack)?,
            Record::Curve(curve) => {
                plan.push(&curve.name, "csv", move |path| csv::write_curve(path, curve));
                plan.picture(&curve.name, record);
            }
            Record::Measured(measured) => {
                plan.push(&measured.curve.name, "csv", move |path| csv::write_measured(path, measured));
                plan.picture(&measured.curve.name, record);
            }
            Record::Patches(patches) => plan.patches(patches),
            // Of somebody who watches: no results.
            Record::Planes(_) => {}
            Record::Wave(wave) => plan.wave(wave),
            Record::Archive(archive) => plan.push(&archive.name, archive.ending, move |path| hdf5::write_archive(path, archive)),
            Record::Mesh(mesh) => {
                for i in 0..mesh.components.len() {
                    match share {
                        None => plan.field(Source::Component(mesh, i)),
                        Some(share) => plan.share(mesh.field_without_values(i), &mesh.components[i].values, [share, i])?,
                    }
                }
                meshes.push((mesh, share));
            }
            Record::Method(how) => method = Some(how),
            Record::Table(table) => {
                if plan.wants(Format::Csv) || !(plan.wants(Format::Hdf5) && holds_particles(table)) {
                    plan.push(&table.name, "csv", move |path| csv::write_table(path, table));
                }
                if holds_particles(table) {
                    tables.push((table, share));
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
            together.push((record, share));
        }
    }
    if !plan.wants(Format::Hdf5) {
        return Ok(());
    }
    if !together.is_empty() {
        let path = folder.join(format!("{}.h5", plan.stem(RESULTS)));
        plan.lay_out(path, 0, move |path| hdf5::write_moment(path, &together, Some(stamp)));
    }
    if !(meshes.is_empty() && tables.is_empty()) {
        // A folder of its own: openPMD-viewer opens every HDF5 file that stands in one.
        let folder = folder.join(OPENPMD);
        files::create_dir(&folder)?;
        let (path, time) = (folder.join(hdf5::openpmd::file_name(stamp.step)), stamp.time.unwrap_or(stamp.step as f64));
        let iteration = hdf5::openpmd::Iteration { step: stamp.step, time, dt: time / stamp.step.max(1) as f64 };
        plan.lay_out(path, 0, move |path| hdf5::openpmd::lay_out(path, iteration, &meshes, &tables, method));
    }
    Ok(())
}

/// The files of a moment so far.
struct Plan<'p, 'a> {
    folder: &'p Path,
    records: &'a [Record],
    formats: &'p [Format],
    /// Fields are written as VTI.
    images: bool,
    stamp: Stamp,
    lead: &'p Lead,
    tasks: &'p mut Vec<Task<'a>>,
}

impl<'a> Plan<'_, 'a> {
    fn wants(&self, format: Format) -> bool {
        self.formats.contains(&format)
    }

    fn stem(&self, name: &str) -> String {
        if self.stamp.numbered { format!("{name}_{:06}", self.stamp.step) } else { name.to_owned() }
    }

    fn lay_out(&mut self, path: PathBuf, copied: usize, write: impl Fn(&Path) -> Result<Vec<Slot>> + Send + Sync + 'a) {
        self.tasks.push(Task { path, copied, series: None, write: Box::new(write) });
    }

    fn add(&mut self, path: PathBuf, copied: usize, write: impl Fn(&Path) -> Result<()> + Send + Sync + 'a) {
        self.lay_out(path, copied, move |path| write(path).map(|()| Vec::new()));
    }

    fn push(&mut self, name: &str, ending: &str, write: impl Fn(&Path) -> Result<()> + Send + Sync + 'a) {
        self.add(self.folder.join(format!("{}.{ending}", self.stem(name))), 0, write);
    }

    fn series_entry(&self, name: &str) -> SeriesEntry {
        let time = self.stamp.time.unwrap_or(self.stamp.step as f64);
        SeriesEntry { name: name.to_owned(), time, numbered: self.stamp.numbered }
    }

    /// Puts the file that was added last into the time series `name`.
    fn add_to_series(&mut self, name: &str) {
        let entry = self.series_entry(name);
        if let Some(task) = self.tasks.last_mut() {
            task.series = Some(entry);
        }
    }

    fn picture(&mut self, name: &str, record: &'a Record) {
        if self.wants(Format::Png) {
            self.push(name, "png", move |path| picture::write(path, record, &picture::Options::default()));
        }
    }

    fn patches(&mut self, patches: &'a LazyPatches) {
        if !self.wants(Format::Vtu) {
            return;
        }
        let (time, records, ending) = (self.stamp.time, self.records, if patches.segments { "vtp" } else { "vtu" });
        let path = self.folder.join(format!("{}.{ending}", self.stem(&patches.name)));
        // Polygons hold the fields once more.
        let copied = if patches.segments { 0 } else { records.iter().map(bytes).sum() };
        self.add(path, copied, move |path| vtu::write(path, &(patches.make)(records), time));
        self.add_to_series(&patches.name);
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

    /// A component of a share, by the numbers of both, in the formats that have a file each: values that all parts will write, and
    /// the picture that they make together. `field` has no values; those of this part are `own`.
    fn share(&mut self, field: Field, own: &'a Values, component: [usize; 2]) -> Result<()> {
        let [share, column] = component;
        let stem = self.stem(&field.name);
        let path = |ending: &str| self.folder.join(format!("{stem}.{ending}"));
        let [npy_path, vti_path, png_path] = ["npy", "vti", "png"].map(path);
        if self.wants(Format::Npy) {
            let shape = field.shape();
            self.lay_out(npy_path, 0, move |path| {
                let at = npy::lay_out(path, &shape, own)?;
                Ok(vec![Slot { share, column, at, mark: None }])
            });
        }
        let drawn = self.wants(Format::Png) && field.palette != Palette::Undrawn;
        if !self.images && !drawn {
            return Ok(());
        }
        let (lead, records, time) = (self.lead, self.records, self.stamp.time);
        let extremes = lead.extremes(records, component)?;
        if self.images {
            let (field, marked) = (field.clone(), extremes.unknown > 0);
            let name = field.name.clone();
            self.lay_out(vti_path, 0, move |path| {
                let (at, marks) = vti::lay_out(path, &field, own, marked, time)?;
                let slot = |at, mark| Slot { share, column, at, mark };
                Ok([slot(at, None)].into_iter().chain(marks.map(|at| slot(at, Some(vti::mark(&field))))).collect())
            });
            self.add_to_series(&name);
        }
        if drawn {
            let canvas = picture::draw_means(&field, extremes, |plane, size| lead.means(records, component, *plane, size))?;
            self.add(png_path, 0, move |path| picture::write_png(path, &canvas, &field.title));
        }
        Ok(())
    }

    /// A field in the formats that have a file each.
    fn field(&mut self, source: Source<'a>) {
        let (name, palette) = match source {
            Source::Whole(field) | Source::Layer(field, _) => (field.name.clone(), field.palette),
            Source::Component(mesh, i) => (mesh.field_name(i), mesh.palette),
        };
        let stem = self.stem(&name);
        if self.wants(Format::Npy) {
            let path = self.folder.join(format!("{stem}.npy"));
            self.add(path, 0, move |path| {
                let (axes, values) = match source {
                    Source::Component(mesh, i) => (&mesh.axes, &mesh.components[i].values),
                    Source::Whole(field) | Source::Layer(field, _) => (&field.axes, &field.values),
                };
                let shape: Vec<usize> = axes.iter().rev().map(|a| a.len).collect();
                npy::write(path, &shape, values)
            });
        }
        self.drawn(source, &stem, self.stamp.time, palette != Palette::Undrawn);
        if self.images {
            let at = self.tasks.iter().rposition(|t| t.path.file_name().is_some_and(|n| n == format!("{stem}.vti").as_str()));
            let entry = self.series_entry(&name);
            if let Some(task) = at.map(|at| &mut self.tasks[at]) {
                task.series = Some(entry);
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
