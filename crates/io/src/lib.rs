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
use zellige_engine::record::{Field, Lead, Record, Values};
use zellige_engine::signal;

pub use crate::moment::{Moment, OPENPMD, RESULTS, goes_to_openpmd, series_file, series_names, takes_share, write_moments, write_shares};
pub use crate::stack::layer;

pub mod bov;
pub mod csv;
pub mod hdf5;
pub mod json;
mod moment;
pub mod npy;
pub mod npz;
pub mod picture;
pub mod source;
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
    /// HDF5, one file a moment.
    Hdf5,
    /// A picture.
    Png,
    /// A table; curves are always written as CSV.
    Csv,
}

impl Format {
    /// List of all formats.
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

/// Moment of a run that the records belong to.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Stamp {
    /// The step.
    pub step: u64,
    /// The physical time, kept where a format has a place for it.
    pub time: Option<f64>,
    /// Adds the step to file names as a suffix; names of the final result have none.
    pub numbered: bool,
}

/// Writes the records of one moment as [`write_moments`] does, and gives way to a signal between two files where the run does.
pub fn write_records(folder: impl AsRef<Path>, records: &[Record], formats: &[Format], stamp: Stamp) -> Result<Vec<PathBuf>> {
    let interruption = signal::interruption();
    let (written, result) = moment::write(folder.as_ref(), &[(records, stamp)], formats, &|| interruption.check(), &Lead::default());
    result.map(|()| written)
}

/// One to three axes, none empty, as many values as they say.
fn check_field(path: &Path, format: &'static str, field: &Field) -> Result<()> {
    check_axes(path, format, field, 1..=3)
}

/// Checks that the number of axes is allowed, that none is empty, and that there are as many values as they require, or some of
/// them in a share.
fn check_axes(path: &Path, format: &'static str, field: &Field, allowed: RangeInclusive<usize>) -> Result<()> {
    let count = field.axes.iter().try_fold(1usize, |n, a| n.checked_mul(a.len));
    let fits = |count: usize| field.share.map_or(field.values.len() == count, |first| first + field.values.len() <= count);
    if allowed.contains(&field.axes.len()) && count.is_some_and(fits) && count != Some(0) {
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
        assert_eq!(names, ["u.npy", "u.vti", "u.bov", "u.csv", "u.png", "residual.csv", "residual.png", "results.h5"]);
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
