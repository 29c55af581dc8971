//! Files and pictures: what zellige's solvers hand out as [`Record`](zellige_engine::record::Record)s is written in the
//! formats that people open, and arrays are read back. No solver types here.
//!
//! Everything is written under a temporary name and renamed, so a file that has its name is whole.

use std::io::{self, Write};

use zellige_engine::record::Values;

pub mod npy;
pub mod picture;

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
