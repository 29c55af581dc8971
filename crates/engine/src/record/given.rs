//! Values that come back from outside, in place of those of a record.

use num_complex::Complex;

use crate::error::{Error, Problem, Result};

/// Values of a field, slowest axis first.
#[derive(Debug, Clone, Copy)]
pub enum GivenValues<'a> {
    /// Real numbers.
    Real(&'a [f64]),
    /// Complex numbers.
    Complex(&'a [Complex<f64>]),
}

impl<'a> GivenValues<'a> {
    /// The values of the real field `name`.
    ///
    /// # Errors
    /// They are complex.
    pub fn real(self, name: &str) -> Result<&'a [f64]> {
        match self {
            Self::Real(values) => Ok(values),
            Self::Complex(_) => Err(Error::input("the run", Problem::new(name, "complex values of a real field").allowed("real numbers"))),
        }
    }

    /// The values of a complex field, real ones without an imaginary part.
    pub fn complex(self) -> Vec<Complex<f64>> {
        match self {
            Self::Real(values) => values.iter().map(|v| Complex::from(*v)).collect(),
            Self::Complex(values) => values.to_vec(),
        }
    }
}
