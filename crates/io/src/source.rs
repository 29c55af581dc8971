//! An array in a file that the input names: NPY, or a dataset of HDF5.

use std::ops::Range;
use std::path::{Path, PathBuf};

use zellige_engine::error::{Error, Problem, Result};

use crate::{Array, hdf5, npy};

/// A file that the input names, and the array in it.
#[derive(Debug, Clone)]
pub struct SourceFile {
    key: String,
    name: String,
    path: PathBuf,
    /// Path of the dataset, or of a group, where the file is HDF5.
    dataset: Option<String>,
}

/// Cuts `file.h5:/path/in/it` into the file and the path.
pub fn split_hdf5(name: &str) -> Option<(&str, &str)> {
    // ASCII only: bytes stay where they are, and endings are ASCII.
    let lower = name.to_ascii_lowercase();
    let cut = [".h5:", ".hdf5:"].iter().find_map(|ending| lower.find(ending).map(|at| at + ending.len() - 1))?;
    Some((&name[..cut], &name[cut + 1..]))
}

/// Numbers as Python writes a shape or an index.
pub fn tuple(numbers: &[usize]) -> String {
    format!("({})", numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
}

impl SourceFile {
    /// NPY, or HDF5 where the name says `file.h5:/path/to/dataset`; relative to `folder`. `key` is the key of the input that names
    /// it.
    ///
    /// # Errors
    /// A name with another ending.
    pub fn new(key: impl Into<String>, file: &Path, folder: &Path) -> Result<Self> {
        let (key, name) = (key.into(), file.to_string_lossy().into_owned());
        if let Some((path, dataset)) = split_hdf5(&name) {
            let (path, dataset) = (folder.join(path), Some(dataset.to_owned()));
            return Ok(Self { key, name, path, dataset });
        }
        let lower = name.to_ascii_lowercase();
        let ends = |ending: &str| lower.as_bytes().ends_with(ending.as_bytes());
        if ends(".npy") {
            return Ok(Self { key, path: folder.join(file), name, dataset: None });
        }
        let hint = if ends(".h5") || ends(".hdf5") {
            format!("name the dataset too: `{name}:/path/to/dataset`")
        } else {
            "save it with `numpy.save`".into()
        };
        let problem = Problem::new(key, format!("`{name}` is of no known type"));
        Err(Error::input("the input", problem.allowed("`NAME.npy`, `NAME.h5:/path/to/dataset`").hint(hint)))
    }

    /// A problem of the file.
    pub fn problem(&self, message: impl Into<String>) -> Problem {
        Problem::new(&self.key, format!("`{}` {}", self.name, message.into()))
    }

    /// Reads the array.
    ///
    /// # Errors
    /// A file that cannot be read, and values that are not finite.
    pub fn array(&self) -> Result<Array> {
        let read = match &self.dataset {
            Some(dataset) => hdf5::read(&self.path, dataset),
            None => npy::read(&self.path),
        };
        let array = read.map_err(|e| e.of_key(&self.key))?;
        if let Some(index) = array.first_not_finite() {
            let n = index.iter().zip(&array.shape).fold(0, |n, (i, len)| n * len + i);
            let problem = self.problem(format!("holds {} at index {}", array.values[n], tuple(&index)));
            return Err(Error::input("the input", problem.allowed("finite numbers")));
        }
        Ok(array)
    }

    /// Reads some of the rows along the first axis of the array, of any number of axes: the rest is not read, if the file has its
    /// values in that order.
    ///
    /// # Errors
    /// As [`SourceFile::array`], of these rows; too many rows.
    pub fn rows(&self, rows: Range<usize>) -> Result<Vec<f64>> {
        let read = match &self.dataset {
            Some(dataset) => hdf5::read_rows(&self.path, dataset, rows.clone()),
            None => npy::read_rows(&self.path, rows.clone()),
        };
        let mut array = read.map_err(|e| e.of_key(&self.key))?;
        if let Some(mut index) = array.first_not_finite() {
            let n = index.iter().zip(&array.shape).fold(0, |n, (i, len)| n * len + i);
            index[0] += rows.start;
            let problem = self.problem(format!("holds {} at index {}", array.values[n], tuple(&index)));
            return Err(Error::input("the input", problem.allowed("finite numbers")));
        }
        Ok(std::mem::take(&mut array.values))
    }

    /// Shape of the array.
    pub fn shape(&self) -> Result<Vec<usize>> {
        let read = match &self.dataset {
            Some(dataset) => hdf5::shape_of(&self.path, dataset),
            None => npy::shape_of(&self.path),
        };
        read.map_err(|e| e.of_key(&self.key))
    }

    /// Placement of the array, as far as the file says it.
    ///
    /// # Errors
    /// Of a file whose axes are x, y and z in another order than from the fastest on.
    pub fn placement(&self) -> Result<hdf5::Placement> {
        let Some(dataset) = &self.dataset else { return Ok(hdf5::Placement::default()) };
        let placement = hdf5::placement(&self.path, dataset).map_err(|e| e.of_key(&self.key))?;
        if let Some(labels) = &placement.labels {
            // Those of another plane, such as (x, z), become x and y as they stand.
            if !labels.is_sorted() && labels.iter().all(|label| ["x", "y", "z"].iter().take(labels.len()).any(|own| own == label)) {
                let problem = self.problem(format!("has {} as its fastest axis, `axisLabels` says", labels[0]));
                return Err(Error::input(
                    "the input",
                    problem.allowed("x, then y").hint("write it transposed, with x as the fastest axis"),
                ));
            }
        }
        Ok(placement)
    }
}
