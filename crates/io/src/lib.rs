//! Files and pictures: what zellige's solvers hand out as [`Record`]s is written in the formats that people open, and
//! arrays are read back. No solver types here.
//!
//! Everything is written under a temporary name and renamed, so a file that has its name is whole.

use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use zellige_engine::error::{Error, Result};
use zellige_engine::record::{Curve, Field, Measured, Palette, Patches, Record, Values, Wave};
use zellige_engine::signal;

use crate::tensor::{Elements, Tensor};

pub mod bov;
pub mod csv;
pub mod hdf5;
pub mod json;
pub mod npy;
pub mod npz;
pub mod picture;
mod stack;
pub mod tensor;
pub mod vti;
pub mod vtu;
mod zip;

#[cfg(test)]
mod samples;

/// An array read from a file: C order, the last index fastest.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// Length of each axis, slowest first.
    pub shape: Vec<usize>,
    /// The values, converted to double precision.
    pub values: Vec<f64>,
}

impl Array {
    /// Index of the first value that is NaN or infinite, one number per axis.
    pub fn first_not_finite(&self) -> Option<Vec<usize>> {
        let mut flat = self.values.iter().position(|v| !v.is_finite())?;
        let mut index = vec![0; self.shape.len()];
        for (i, &n) in index.iter_mut().zip(&self.shape).rev() {
            *i = flat % n;
            flat /= n;
        }
        Some(index)
    }
}

/// A format that records are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// NumPy array.
    Npy,
    /// VTK image data.
    Vti,
    /// VTK polygons and lines; alone, and where there are none, VTK image data.
    Vtu,
    /// Brick of values.
    Bov,
    /// HDF5, one file per record.
    Hdf5,
    /// A picture.
    Png,
    /// A table; curves are always written as CSV.
    Csv,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 7] = [Self::Npy, Self::Vti, Self::Vtu, Self::Bov, Self::Hdf5, Self::Png, Self::Csv];

    /// The name in inputs and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Npy => "npy",
            Self::Vti => "vti",
            Self::Vtu => "vtu",
            Self::Bov => "bov",
            Self::Hdf5 => "hdf5",
            Self::Png => "png",
            Self::Csv => "csv",
        }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.map(Self::name).join(", ");
        Self::ALL.into_iter().find(|f| f.name() == text).ok_or_else(|| format!("unknown format `{text}` (allowed: {known})"))
    }
}

/// Which moment of a run the records belong to.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Stamp {
    /// The step.
    pub step: u64,
    /// The physical time, kept where a format has a place for it.
    pub time: Option<f64>,
    /// Whether the names have the step as a suffix; those of the final result have none.
    pub numbered: bool,
}

/// Writes records into a folder, each in every format that suits it, and tells which files these are.
///
/// A wave becomes a complex array and a picture (hue is the phase, brightness the modulus). A field `u` becomes `u.npy`, `u.vti`, `u.bov` with `u.raw`, `u.h5`, `u.png`, `u.csv`; a curve always becomes a CSV file,
/// and a picture if pictures are asked for. Patches become `NAME.vtu` (polygons) or `NAME.vtp` (segments). Numbered, the names are `u_000120.npy` and so on, and `u.pvd` lists the VTI
/// files by time. A stack of fields is whole in `u.npy` and `u.h5`; the other formats have a file a layer, `u_0003.vti`, and pictures are drawn of the first four. A mesh is written as a field a component (`E_x.npy`), but in HDF5 it goes with all meshes and particles
/// of the step into the openPMD file `openpmd/data_000120.h5`. Without HDF5, particles become a CSV file.
pub fn write_records(folder: impl AsRef<Path>, records: &[Record], formats: &[Format], stamp: Stamp) -> Result<Vec<PathBuf>> {
    // Where nothing has cells that bodies cut, VTK's polygons are its images.
    let only_vtu = !formats.is_empty() && formats.iter().all(|f| *f == Format::Vtu);
    let images = formats.contains(&Format::Vti) || only_vtu && !records.iter().any(|r| matches!(r, Record::Patches(_)));
    let mut files = Files { folder: folder.as_ref(), formats, images, stamp, written: Vec::new() };
    let (mut meshes, mut tables, mut method) = (Vec::new(), Vec::new(), None);
    for record in records {
        signal::give_way()?;
        match record {
            Record::Field(field) => files.field(field, true)?,
            Record::Stack(stack) => files.stack(stack)?,
            Record::Curve(curve) => files.curve(curve, record)?,
            Record::Measured(measured) => files.measured(measured, record)?,
            Record::Patches(patches) => files.patches(patches)?,
            Record::Wave(wave) => files.wave(wave)?,
            Record::Archive(archive) => files.push(&archive.name, archive.ending, |path| hdf5::write_archive(path, archive))?,
            Record::Mesh(mesh) => {
                for i in 0..mesh.components.len() {
                    files.field(&mesh.field(i), false)?;
                }
                meshes.push(mesh);
            }
            Record::Method(how) => method = Some(how),
            Record::Table(table) => {
                if formats.contains(&Format::Csv) || !formats.contains(&Format::Hdf5) {
                    files.push(&table.name, "csv", |path| csv::write_table(path, table))?;
                }
                tables.push(table);
            }
        }
    }
    if formats.contains(&Format::Hdf5) && !(meshes.is_empty() && tables.is_empty()) {
        // A folder of its own: openPMD-viewer opens every HDF5 file that stands in one.
        let folder = files.folder.join("openpmd");
        zellige_engine::files::create_dir(&folder)?;
        let (path, time) = (folder.join(hdf5::openpmd::file_name(stamp.step)), stamp.time.unwrap_or(stamp.step as f64));
        let iteration = hdf5::openpmd::Iteration { step: stamp.step, time, dt: time / stamp.step.max(1) as f64 };
        hdf5::openpmd::write(&path, iteration, &meshes, &tables, method)?;
        files.written.push(path);
    }
    Ok(files.written)
}

/// What [`write_records`] has written so far.
struct Files<'a> {
    folder: &'a Path,
    formats: &'a [Format],
    /// Fields are written as VTI.
    images: bool,
    stamp: Stamp,
    written: Vec<PathBuf>,
}

impl Files<'_> {
    fn stem(&self, name: &str) -> String {
        if self.stamp.numbered { format!("{name}_{:06}", self.stamp.step) } else { name.to_owned() }
    }

    fn push(&mut self, name: &str, ending: &str, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let path = self.folder.join(format!("{}.{ending}", self.stem(name)));
        write(&path)?;
        self.written.push(path);
        Ok(())
    }

    fn curve(&mut self, curve: &Curve, record: &Record) -> Result<()> {
        self.push(&curve.name, "csv", |path| csv::write_curve(path, curve))?;
        if self.formats.contains(&Format::Hdf5) {
            self.push(&curve.name, "h5", |path| hdf5::write(path, std::slice::from_ref(record)))?;
        }
        if self.formats.contains(&Format::Png) {
            self.push(&curve.name, "png", |path| picture::write(path, record, &picture::Options::default()))?;
        }
        Ok(())
    }

    fn measured(&mut self, measured: &Measured, record: &Record) -> Result<()> {
        self.push(&measured.curve.name, "csv", |path| csv::write_measured(path, measured))?;
        if self.formats.contains(&Format::Png) {
            self.push(&measured.curve.name, "png", |path| picture::write(path, record, &picture::Options::default()))?;
        }
        Ok(())
    }

    fn patches(&mut self, patches: &Patches) -> Result<()> {
        if !self.formats.contains(&Format::Vtu) {
            return Ok(());
        }
        let (time, ending) = (self.stamp.time, vtu::ending(patches));
        self.push(&patches.name, ending, |path| vtu::write(path, patches, time))?;
        if self.stamp.numbered {
            let file = format!("{}.{ending}", self.stem(&patches.name));
            self.written.push(extend_series(self.folder, &patches.name, time.unwrap_or(self.stamp.step as f64), file)?);
        }
        Ok(())
    }

    fn wave(&mut self, wave: &Wave) -> Result<()> {
        let formats = self.formats;
        if wave.live {
            if formats.contains(&Format::Png) {
                let path = self.folder.join(format!("{}.png", wave.name));
                picture::write_wave(&path, wave)?;
                if !self.written.contains(&path) {
                    self.written.push(path);
                }
            }
            return Ok(());
        }
        if formats.contains(&Format::Npy) {
            let tensor = Tensor { shape: wave.shape.to_vec(), elements: Elements::Complex(wave.values.clone()) };
            self.push(&wave.name, "npy", |path| npy::write_tensor(path, &tensor))?;
        }
        if formats.contains(&Format::Hdf5) {
            self.push(&wave.name, "h5", |path| hdf5::write_wave(path, wave))?;
        }
        if formats.contains(&Format::Png) {
            self.push(&wave.name, "png", |path| picture::write_wave(path, wave))?;
        }
        Ok(())
    }

    fn field(&mut self, field: &Field, hdf5: bool) -> Result<()> {
        let (name, time, formats) = (&field.name, self.stamp.time, self.formats);
        let wants = |format| formats.contains(&format);
        if wants(Format::Npy) {
            self.push(name, "npy", |path| npy::write(path, &field.shape(), &field.values))?;
        }
        if self.images {
            self.push(name, "vti", |path| vti::write(path, field, time))?;
        }
        if wants(Format::Bov) {
            self.push(name, "bov", |path| bov::write(path, field, time))?;
        }
        if wants(Format::Csv) {
            self.push(name, "csv", |path| csv::write_field(path, field))?;
        }
        if wants(Format::Hdf5) && hdf5 {
            self.push(name, "h5", |path| hdf5::write_one(path, field))?;
        }
        if wants(Format::Png) && field.palette != Palette::Undrawn {
            self.push(name, "png", |path| picture::write_field(path, field, &picture::Options::default()))?;
        }
        if self.images && self.stamp.numbered {
            let file = format!("{}.vti", self.stem(name));
            self.written.push(extend_series(self.folder, name, time.unwrap_or(self.stamp.step as f64), file)?);
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

/// Where the list of a time series stands.
pub fn series_file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.pvd"))
}

/// Adds a file to the time series of a field; a step that is written again replaces its entry.
fn extend_series(folder: &Path, name: &str, time: f64, file: String) -> Result<PathBuf> {
    let path = series_file(folder, name);
    let mut entries = if path.exists() { vti::read_series(&path)? } else { Vec::new() };
    entries.retain(|e| e.1 != file);
    entries.push((time, file));
    entries.sort_by(|a, b| a.0.total_cmp(&b.0));
    vti::write_series(&path, &entries)?;
    Ok(path)
}

/// One to three axes, none empty, as many values as they say.
fn check_field(path: &Path, format: &'static str, field: &Field) -> Result<()> {
    check_axes(path, format, field, 1..=3)
}

/// As many axes as there may be, none empty, as many values as they say.
fn check_axes(path: &Path, format: &'static str, field: &Field, allowed: RangeInclusive<usize>) -> Result<()> {
    let count = field.axes.iter().try_fold(1usize, |n, a| n.checked_mul(a.len));
    if allowed.contains(&field.axes.len()) && count == Some(field.values.len()) && count != Some(0) {
        return Ok(());
    }
    let (name, shape, values) = (&field.name, field.shape(), field.values.len());
    Err(Error::format(
        path,
        format,
        format!(
            "the field `{name}` has {values} values for the shape {shape:?}; {} to {} axes can be written",
            allowed.start(),
            allowed.end()
        ),
    ))
}

/// Writes values as little-endian bytes.
fn write_values(out: &mut impl Write, values: &Values) -> io::Result<()> {
    if cfg!(target_endian = "little") {
        return match values {
            Values::F32(v) => out.write_all(bytemuck::cast_slice(v)),
            Values::F64(v) => out.write_all(bytemuck::cast_slice(v)),
        };
    }
    match values {
        Values::F32(v) => v.iter().try_for_each(|x| out.write_all(&x.to_le_bytes())),
        Values::F64(v) => v.iter().try_for_each(|x| out.write_all(&x.to_le_bytes())),
    }
}

/// Values from bytes of a known type and order.
fn read_values(bytes: &[u8], double: bool, big: bool) -> Values {
    fn words<const N: usize>(bytes: &[u8], big: bool) -> impl Iterator<Item = [u8; N]> {
        bytes.as_chunks::<N>().0.iter().map(move |word| {
            let mut word = *word;
            if big {
                word.reverse();
            }
            word
        })
    }
    if double {
        Values::F64(words(bytes, big).map(f64::from_le_bytes).collect())
    } else {
        Values::F32(words(bytes, big).map(f32::from_le_bytes).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_become_files_that_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        let records = [Record::Field(samples::plane()), Record::Curve(samples::curve())];
        let files = write_records(folder.path(), &records, &Format::ALL, Stamp::default()).unwrap();
        let names: Vec<_> = files.iter().map(|f| f.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["u.npy", "u.vti", "u.bov", "u.csv", "u.h5", "u.png", "residual.csv", "residual.h5", "residual.png"]);
        // And the raw values of the BOV file.
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), files.len() + 1);
        let table = csv::read(folder.path().join("u.csv")).unwrap();
        assert_eq!(table.names, ["x [m]", "y [m]", "u [V]"]);
        assert_eq!((table.columns[0][6], table.columns[1][6], table.columns[2][6]), (-0.5, 1.75, samples::plane().values.get(6)));
    }

    #[test]
    fn steps_make_a_time_series() {
        let folder = tempfile::tempdir().unwrap();
        let records = [Record::Field(samples::plane())];
        for (step, time) in [(0, 0.0), (10, 0.5), (10, 0.5)] {
            write_records(folder.path(), &records, &[Format::Vti], Stamp { step, time: Some(time), numbered: true }).unwrap();
        }
        let series = vti::read_series(folder.path().join("u.pvd")).unwrap();
        assert_eq!(series, [(0.0, "u_000000.vti".into()), (0.5, "u_000010.vti".into())]);
    }

    #[test]
    fn meshes_and_particles_become_openpmd_or_what_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let records = [Record::Mesh(samples::mesh()), Record::Mesh(samples::density()), Record::Table(samples::species())];
        let stamp = Stamp { step: 7, time: Some(3.5), numbered: true };
        let files = write_records(folder.path(), &records, &[Format::Npy, Format::Hdf5], stamp).unwrap();
        let names: Vec<_> = files.iter().map(|f| f.strip_prefix(folder.path()).unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["E_x_000007.npy", "E_y_000007.npy", "rho_000007.npy", "openpmd/data_000007.h5"]);
        // Without HDF5 no particle is lost.
        let files = write_records(folder.path(), &records[2..], &[Format::Png], stamp).unwrap();
        let table = csv::read(&files[0]).unwrap();
        assert_eq!(table.names, ["position_x", "momentum_x", "weighting", "charge", "mass", "id"]);
        assert!(std::fs::read_to_string(&files[0]).unwrap().contains(",9007199254740993"));
        assert_eq!(table.columns[2..4], [vec![1.0, 2.0, 4.0], vec![-1.0; 3]]);
        // A component begins where its first value sits.
        write_records(folder.path(), &records[..1], &[Format::Csv], Stamp::default()).unwrap();
        let field = csv::read(folder.path().join("E_x.csv")).unwrap();
        assert_eq!((field.columns[0][0], field.columns[1][0]), (-0.75, 0.0));
    }

    #[test]
    fn the_first_bad_value_is_found() {
        let array = Array { shape: vec![2, 3], values: vec![0.0, 1.0, 2.0, 3.0, f64::NAN, f64::INFINITY] };
        assert_eq!(array.first_not_finite(), Some(vec![1, 1]));
        assert_eq!(Array { shape: vec![1], values: vec![0.0] }.first_not_finite(), None);
    }

    #[test]
    fn an_uneven_field_is_refused_by_every_writer() {
        let folder = tempfile::tempdir().unwrap();
        let mut field = samples::plane();
        field.axes[0].len = 4;
        for format in Format::ALL {
            let error = write_records(folder.path(), &[Record::Field(field.clone())], &[format], Stamp::default()).unwrap_err();
            assert!(error.to_string().contains("values"), "{error}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
