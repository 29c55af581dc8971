//! HDF5, the only module that knows the HDF5 library. A file holds each field as a dataset of its name, shape in C order, with the
//! attributes `title`, `unit`, `centring`, `axis_names`, `axis_units` (slowest axis first, as the shape), `grid_origin`,
//! `grid_spacing` and `unit_dimension`; each wave as a complex dataset; and each curve or table as a group of equally long
//! datasets.
//!
//! Text is written in fixed length, because several readers of variable-length attributes fail.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use rust_hdf5::{DatatypeMessage, H5Dataset, H5File, H5Group, H5Type, Hdf5Error};
use zellige_engine::error::{Error, Result};
use zellige_engine::files::Pending;
use zellige_engine::record::{Axis, Centring, Curve, Field, Record, Slot, Table, Values};

use self::address::Holes;
use crate::tensor::Tensor;
use crate::{Array, Stamp};

mod address;
mod attributes;
mod file;
pub mod openpmd;
mod storage;
mod tree;

pub use attributes::Attributes;
pub use file::{DatasetPart, File};
pub use tree::{Attribute, Node, Value, read_wave, write_archive, write_tree};

const FORMAT: &str = "HDF5";
/// Longest axis name or unit in an array of texts.
const WORD: usize = 16;
/// Deflate packs at most about 1032 to 1: a dataset that claims more than this times the file's length is damaged.
const DENSEST: u64 = 1100;

/// A text of fixed length, for arrays of texts.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
struct FixedText([u8; WORD]);

impl H5Type for FixedText {
    fn hdf5_type() -> DatatypeMessage {
        DatatypeMessage::fixed_string_utf8(WORD as u32)
    }

    fn element_size() -> usize {
        WORD
    }
}

impl FixedText {
    fn new(text: &str) -> Self {
        let mut bytes = [0; WORD];
        // One byte stays zero; a character is never cut.
        let end = (0..WORD).rev().find(|&n| text.is_char_boundary(n.min(text.len()))).unwrap_or(0).min(text.len());
        bytes[..end].copy_from_slice(&text.as_bytes()[..end]);
        Self(bytes)
    }
}

thread_local! {
    /// Calls of the library that are under way on this thread.
    static GUARDED: Cell<u32> = const { Cell::new(0) };
}

/// Returns true if a panic of this thread at this moment comes from the HDF5 library and is about to be turned into an error: panic
/// hooks should then print nothing.
pub fn is_guarded() -> bool {
    GUARDED.get() > 0
}

/// The library is young: a panic in it becomes an error of the file.
fn guarded<T>(path: &Path, action: &'static str, work: impl FnOnce() -> Result<T, Hdf5Error>) -> Result<T> {
    GUARDED.set(GUARDED.get() + 1);
    let result = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(GUARDED.get() - 1);
    match result {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(Hdf5Error::Io(e))) => Err(Error::file(action, path, e)),
        Ok(Err(e)) => match system_error(&e) {
            Some(e) => Err(Error::file(action, path, e)),
            None if action == "write" => Err(Error::file(action, path, std::io::Error::other(e.to_string()))),
            None => Err(Error::format(path, FORMAT, plain(&e.to_string()))),
        },
        Err(_) => Err(Error::format(path, FORMAT, "the HDF5 library cannot handle it (it is damaged, or uses a rare feature)")),
    }
}

/// The library's words about the two things that happen to files, for people.
fn plain(text: &str) -> String {
    if text.contains("invalid HDF5 signature") {
        "it does not begin as such a file does".into()
    } else if text.contains("buffer too short") || text.contains("file too short") {
        format!("it was cut off or damaged ({text})")
    } else {
        text.to_owned()
    }
}

/// The system's error inside one of the library, whose type for it is private: its number stands in the text alone.
fn system_error(error: &Hdf5Error) -> Option<std::io::Error> {
    let text = error.to_string();
    let (_, after) = text.rsplit_once("(os error ")?;
    after.split_once(')')?.0.parse().ok().map(std::io::Error::from_raw_os_error)
}

/// Writes fields, stacks of them, curves and waves into one file, each under its name: a field or a wave as a dataset, a curve as a
/// group of equally long ones. Meshes and particles go into files of [`openpmd`].
pub fn write(path: impl AsRef<Path>, records: &[Record]) -> Result<()> {
    write_moment(path.as_ref(), &records.iter().map(|record| (record, None)).collect::<Vec<_>>(), None).map(drop)
}

/// Writes as [`write()`] does, with the step and the time of the records as attributes `step` and `time` of the file: whole but for
/// the values of shares, whose places it returns; records come with their numbers among these.
pub(crate) fn write_moment(path: &Path, records: &[(&Record, Option<usize>)], stamp: Option<Stamp>) -> Result<Vec<Slot>> {
    for (record, _) in records {
        match record {
            Record::Field(field) => crate::check_field(path, FORMAT, field)?,
            Record::Stack(stack) => crate::check_axes(path, FORMAT, stack, 2..=4)?,
            Record::Curve(_) | Record::Measured(_) | Record::Wave(_) => {}
            Record::Table(table) if !crate::moment::holds_particles(table) => {}
            Record::Archive(_) => {
                return Err(Error::format(path, FORMAT, format!("`{}` is written into a file of its own", record.name())));
            }
            Record::Patches(_) => {
                return Err(Error::format(path, FORMAT, format!("`{}` is no field: it goes into VTK", record.name())));
            }
            Record::Planes(_) => {
                return Err(Error::format(path, FORMAT, format!("of `{}` there are only pictures", record.name())));
            }
            Record::Mesh(_) | Record::Table(_) | Record::Method(_) => {
                return Err(Error::format(path, FORMAT, format!("`{}` belongs into an openPMD file", record.name())));
            }
        }
    }
    let mut holes = Holes::default();
    let pending = begin(path, |file| {
        if let Some(stamp) = stamp {
            let root = file.root_group();
            root.set_attr_numeric("step", &stamp.step)?;
            if let Some(time) = stamp.time {
                root.set_attr_numeric("time", &time)?;
            }
        }
        let mut taken = BTreeSet::new();
        // Fields keep their names; a curve of one that is there gets another.
        let is_array = |r: &&(&Record, _)| matches!(r.0, Record::Field(_) | Record::Stack(_) | Record::Wave(_));
        for (record, share) in records.iter().filter(is_array) {
            let name = free(&mut taken, record.name());
            match record {
                Record::Field(field) | Record::Stack(field) => write_field(file, &name, field, *share, &mut holes)?,
                Record::Wave(wave) => tree::put_wave(file, &name, wave)?,
                _ => {}
            }
        }
        for (record, _) in records.iter().filter(|r| !is_array(r)) {
            let name = if taken.contains(record.name()) { format!("{}_curve", record.name()) } else { record.name().to_owned() };
            let name = free(&mut taken, &name);
            match record {
                Record::Curve(curve) => write_curve(file, &name, curve, &[])?,
                Record::Measured(measured) => write_curve(file, &name, &measured.curve, &measured.errors)?,
                Record::Table(table) => write_table(file, &name, table)?,
                _ => {}
            }
        }
        Ok(())
    })?;
    let slots = holes.slots(pending.temporary())?;
    pending.commit()?;
    Ok(slots)
}

/// The name, or it with a number behind it where it is taken; it is taken now.
fn free(taken: &mut BTreeSet<String>, name: &str) -> String {
    let plain = if name.is_empty() { "unnamed".to_owned() } else { name.replace('/', "_") };
    let mut name = plain.clone();
    for again in 2.. {
        if taken.insert(name.clone()) {
            break;
        }
        name = format!("{plain}_{again}");
    }
    name
}

/// Makes the file `path` whole or not at all.
fn create(path: &Path, fill: impl FnOnce(&H5File) -> Result<(), Hdf5Error>) -> Result<()> {
    begin(path, fill)?.commit()
}

/// Makes a file that has no name yet.
fn begin(path: &Path, fill: impl FnOnce(&H5File) -> Result<(), Hdf5Error>) -> Result<Pending> {
    let pending = Pending::create(path)?;
    guarded(path, "write", || {
        let file = H5File::create(pending.temporary())?;
        if let Err(error) = fill(&file).and_then(|()| file.flush()) {
            // Dropped, it would try again and complain on standard error; the file is removed anyway. A full disk gets its room back.
            let _ = std::fs::File::create(pending.temporary());
            std::mem::forget(file);
            return Err(error);
        }
        file.close()
    })?;
    Ok(pending)
}

fn set_text(dataset: &H5Dataset, name: &str, text: &str) -> Result<(), Hdf5Error> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    dataset.set_attr_typed(name, DatatypeMessage::fixed_string_utf8(bytes.len() as u32), bytes)
}

fn set_array<T: H5Type>(dataset: &H5Dataset, name: &str, values: &[T]) -> Result<(), Hdf5Error> {
    dataset.new_attr::<T>().shape([values.len()]).create(name)?.write_array(values)
}

/// Writes a field, of which only the place of the values is made if it is a share.
fn write_field(file: &H5File, name: &str, field: &Field, share: Option<usize>, holes: &mut Holes) -> Result<(), Hdf5Error> {
    let (root, shape) = (file.root_group(), field.shape());
    let dataset = openpmd::dataset(&root, name, &shape, &field.values, share.is_none())?;
    if let Some(share) = share {
        holes.add(&root, name, shape.iter().product::<usize>() * field.values.width(), share, 0);
    }
    set_text(&dataset, "title", &field.title)?;
    set_text(&dataset, "unit", &field.unit)?;
    set_text(&dataset, "centring", if field.centring == Centring::Node { "node" } else { "cell" })?;
    let words = |f: &dyn Fn(&Axis) -> &str| -> Vec<FixedText> { field.axes.iter().rev().map(|a| FixedText::new(f(a))).collect() };
    let reals = |f: &dyn Fn(&Axis) -> f64| -> Vec<f64> { field.axes.iter().rev().map(f).collect() };
    set_array(&dataset, "axis_names", &words(&|a| &a.name))?;
    set_array(&dataset, "axis_units", &words(&|a| &a.unit))?;
    set_array(&dataset, "grid_origin", &reals(&|a| a.origin))?;
    set_array(&dataset, "grid_spacing", &reals(&|a| a.spacing))?;
    set_array(&dataset, "unit_dimension", &field.dimension)
}

/// A group of equally long datasets. Names that are taken, or cannot be names, are changed.
struct Columns {
    group: H5Group,
    taken: BTreeSet<String>,
}

impl Columns {
    fn new(file: &H5File, name: &str) -> Result<Self, Hdf5Error> {
        Ok(Self { group: file.create_group(name)?, taken: BTreeSet::new() })
    }

    fn put(&mut self, name: &str, title: &str, values: &[f64]) -> Result<H5Dataset, Hdf5Error> {
        let name = free(&mut self.taken, name);
        let dataset = self.group.new_dataset::<f64>().shape([values.len()]).create(&name)?;
        if !values.is_empty() {
            dataset.write_raw(values)?;
        }
        set_text(&dataset, "title", title)?;
        Ok(dataset)
    }
}

/// The abscissa and the lines, and the lines' standard errors where there are some.
fn write_curve(file: &H5File, name: &str, curve: &Curve, errors: &[Vec<f64>]) -> Result<(), Hdf5Error> {
    let mut columns = Columns::new(file, name)?;
    columns.put("abscissa", &curve.x_label, &curve.x)?;
    for (name, values) in &curve.lines {
        columns.put(name, name, values)?;
    }
    for ((name, _), errors) in curve.lines.iter().zip(errors) {
        columns.put(&format!("{name} error"), &format!("standard error of {name}"), errors)?;
    }
    Ok(())
}

fn write_table(file: &H5File, name: &str, table: &Table) -> Result<(), Hdf5Error> {
    let mut columns = Columns::new(file, name)?;
    for column in &table.columns {
        let values: Vec<f64> = (0..table.len).map(|i| column.values.get(i)).collect();
        let dataset = columns.put(&column.name(), &column.name(), &values)?;
        set_text(&dataset, "unit", &column.unit)?;
    }
    Ok(())
}

/// The datasets of a file with their shapes.
pub fn list(path: impl AsRef<Path>) -> Result<Vec<(String, Vec<usize>)>> {
    Ok(File::open(path)?.datasets())
}

/// Reads the dataset at the path `name` within the file, for example `/fields/rho`; reals and integers become `f64`.
pub fn read(path: impl AsRef<Path>, name: &str) -> Result<Array> {
    let file = File::open(path)?;
    let Tensor { shape, elements } = file.read(name)?;
    match elements.into_reals() {
        Some(values) => Ok(Array { shape, values }),
        None => Err(file.content_error(format!("the dataset `{name}` holds complex numbers, not real ones"))),
    }
}

/// Reads some rows along the first axis of a dataset, as [`read()`] reads all.
pub fn read_rows(path: impl AsRef<Path>, name: &str, rows: Range<usize>) -> Result<Array> {
    let file = File::open(path)?;
    let part = file.part(name)?;
    let mut shape = part.shape().to_vec();
    let mut start = vec![0; shape.len()];
    match (start.first_mut(), shape.first_mut()) {
        (Some(start), Some(len)) if rows.start <= rows.end && rows.end <= *len => (*start, *len) = (rows.start, rows.len()),
        (_, len) => {
            let has = len.map_or(0, |len| *len);
            return Err(
                file.content_error(format!("the dataset `{name}` has {has} rows, those asked for are {} to {}", rows.start, rows.end))
            );
        }
    }
    match part.read(&start, &shape)?.into_reals() {
        Some(values) => Ok(Array { shape, values }),
        None => Err(file.content_error(format!("the dataset `{name}` holds complex numbers, not real ones"))),
    }
}

/// The shape of the dataset that [`read()`] would read.
pub fn shape_of(path: impl AsRef<Path>, name: &str) -> Result<Vec<usize>> {
    let file = File::open(path)?;
    file.shape(name)?.ok_or_else(|| file.lacks(name))
}

/// Reads a field that [`write()`] wrote, with its axes.
pub fn read_field(path: impl AsRef<Path>, name: &str) -> Result<Field> {
    let path = path.as_ref();
    let array = read(path, name)?;
    guarded(path, "read", || {
        let dataset = H5File::open(path)?.dataset(name.trim_matches('/'))?;
        let text = |attribute: &str| dataset.attr(attribute).and_then(|a| a.read_string()).unwrap_or_default();
        let reals = |attribute: &str| dataset.attr(attribute).and_then(|a| a.read_numeric_as::<f64>()).unwrap_or_default();
        let words = |attribute: &str| -> Vec<String> {
            let raw = dataset.attr(attribute).and_then(|a| a.read_raw()).unwrap_or_default();
            raw.chunks(WORD).map(|w| String::from_utf8_lossy(w).trim_end_matches('\0').to_owned()).collect()
        };
        let (names, units) = (words("axis_names"), words("axis_units"));
        let (origin, spacing) = (reals("grid_origin"), reals("grid_spacing"));
        let axis = |k: usize| Axis {
            name: names.get(k).cloned().unwrap_or_else(|| format!("axis {k}")),
            unit: units.get(k).cloned().unwrap_or_default(),
            origin: origin.get(k).copied().unwrap_or(0.0),
            spacing: spacing.get(k).copied().unwrap_or(1.0),
            len: array.shape[k],
        };
        let axes = (0..array.shape.len()).rev().map(axis).collect();
        let centring = if text("centring") == "cell" { Centring::Cell } else { Centring::Node };
        let mut field = Field::bare(name, axes, centring, Values::F64(array.values));
        field.title = Some(text("title")).filter(|t| !t.is_empty()).unwrap_or(field.title);
        field.unit = text("unit");
        field.dimension = reals("unit_dimension").try_into().unwrap_or(field.dimension);
        Ok(field)
    })
}

/// Placement of the values of a dataset in space, as far as its own attributes say it: those of fields that zellige writes
/// (`grid_origin`, `grid_spacing`, `centring`) and of openPMD (`gridGlobalOffset`, `gridSpacing`, `gridUnitSI`, `position`,
/// `axisLabels`, `unitSI`). Axes are those of the array in reverse, the fastest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Placement {
    /// Corner of the grid.
    pub origin: Option<Vec<f64>>,
    /// Distance between values.
    pub spacing: Option<Vec<f64>>,
    /// Position of the first value from the corner, in units of the spacing.
    pub position: Option<Vec<f64>>,
    /// Names of the axes.
    pub labels: Option<Vec<String>>,
    /// Factor that makes the values those of SI units.
    pub unit_si: Option<f64>,
}

/// Reads the placement of the dataset at the path `name` within a file. What openPMD says of a record of several components stands
/// on their group, whose attributes are not read.
pub fn placement(path: impl AsRef<Path>, name: &str) -> Result<Placement> {
    let path = path.as_ref();
    let attributes = Attributes::of(path, name)?;
    let dataset = |attribute: &str| H5File::open(path)?.dataset(name.trim_matches('/'))?.attr(attribute);
    let cells = guarded(path, "read", || Ok(dataset("centring").and_then(|a| a.read_string()).is_ok_and(|text| text == "cell")))?;
    // openPMD's stand in the order of the indices, which is that of the axes where the file says `F`.
    let in_order = attributes.words("dataOrder").is_some_and(|order| order.first().is_some_and(|order| order == "F"));
    let reals = |attribute: &str| {
        // Behind links the library alone finds them.
        let linked = || guarded(path, "read", || Ok(dataset(attribute).and_then(|a| a.read_numeric_as::<f64>()).ok())).ok().flatten();
        let mut values = attributes.reals(attribute).or_else(linked).filter(|values| !values.is_empty())?;
        if !in_order {
            values.reverse();
        }
        Some(values)
    };
    let unit = reals("gridUnitSI").map_or(1.0, |unit| unit[0]);
    let length = |values: Vec<f64>| values.into_iter().map(|v| v * unit).collect();
    let own = reals("grid_spacing");
    let labels = attributes.words("axisLabels").map(|mut labels| {
        if !in_order {
            labels.reverse();
        }
        labels
    });
    Ok(Placement {
        origin: reals("grid_origin").or_else(|| reals("gridGlobalOffset").map(length)),
        position: own.as_ref().map(|spacing| vec![if cells { 0.5 } else { 0.0 }; spacing.len()]).or_else(|| reals("position")),
        spacing: own.or_else(|| reals("gridSpacing").map(length)),
        labels,
        unit_si: reals("unitSI").map(|unit| unit[0]),
    })
}

#[cfg(test)]
mod tests {
    use zellige_engine::record::{Column, Measured};

    use super::*;
    use crate::samples;

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("all.h5");
        let mut twice = Measured { curve: samples::curve(), errors: samples::curve().lines.iter().map(|l| vec![0.5; l.1.len()]).collect() };
        // A name that a field has.
        twice.curve.name = "u".into();
        twice.curve.lines = vec![twice.curve.lines[0].clone(), twice.curve.lines[0].clone(), ("a/b".into(), vec![])];
        let columns = vec![Column::numbers("force", "x", "N", vec![1.0, 2.0]), Column::numbers("body", "", "", vec![0.0, 1.0])];
        let loads = Table { name: "loads".into(), title: "loads".into(), length_si: 1.0, time_si: 1.0, len: 2, share: None, columns };
        let others = [Record::Curve(samples::curve()), Record::Measured(twice), Record::Wave(samples::wave()), Record::Table(loads)];
        let records: Vec<Record> = samples::fields().into_iter().map(Record::Field).chain(others).collect();
        let all: Vec<(&Record, Option<usize>)> = records.iter().map(|record| (record, None)).collect();
        write_moment(&path, &all, Some(Stamp { step: 12, time: Some(0.5), numbered: true })).unwrap();
        let wave = read_wave(&path, "probe").unwrap().unwrap();
        assert_eq!((wave.values, wave.axes[1].spacing), (samples::wave().values, samples::wave().axes[1].spacing));
        let root = H5File::open(&path).unwrap().root_group();
        assert_eq!(root.attr_names().unwrap(), ["step", "time"]);
        assert_eq!(read(&path, "loads/force_x").unwrap().values, [1.0, 2.0]);
        let mut names = File::open(&path).unwrap().children("u_curve").unwrap();
        names.sort();
        let line = &samples::curve().lines[0].0;
        assert_eq!(names, ["a_b", "abscissa", line, &format!("{line} error"), &format!("{line}_2")]);
        for field in samples::fields() {
            let back = read_field(&path, &field.name).unwrap();
            samples::assert_same(&field, &back);
            assert_eq!((&back.title, &back.unit, back.dimension), (&field.title, &field.unit, field.dimension));
            assert_eq!(back.axes, field.axes);
        }
        let line = read(&path, "/residual/relative residual").unwrap();
        assert_eq!(line.values, samples::curve().lines[0].1);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_missing_dataset_lists_those_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("u.h5");
        write(&path, &[Record::Field(samples::plane())]).unwrap();
        let error = read(&path, "rho").unwrap_err().to_string();
        assert!(error.ends_with("u.h5`: it has no dataset `rho` (datasets: `u` [3, 5])"), "{error}");
    }

    /// Bytes set to 0xff, and cuts, all over a sound file: an array or an error, never a panic or a huge allocation.
    #[test]
    fn damage_ends_in_an_answer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("u.h5");
        write(&path, &[Record::Field(samples::plane())]).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| ()));
        for at in (0..whole.len()).step_by(whole.len() / 150 + 1) {
            let mut bytes = whole.clone();
            bytes[at] = 0xff;
            std::fs::write(&path, &bytes).unwrap();
            let _ = read(&path, "u");
            std::fs::write(&path, &whole[..at]).unwrap();
            let _ = read(&path, "u");
        }
        std::panic::set_hook(hook);
        assert!(matches!(read(folder.path().join("no.h5"), "u"), Err(Error::File { action: "read", .. })));
    }
}
