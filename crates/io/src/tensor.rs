//! Arrays with a type of their own: what containers of several arrays (NPZ, HDF5) hold.

use num_complex::Complex;

/// An array in C order.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// Length of each axis, slowest first; none for a scalar.
    pub shape: Vec<usize>,
    /// The values.
    pub elements: Elements,
}

/// Values of a [`Tensor`]. Types that are not listed are read into the narrowest that holds them: bytes and truth values into
/// 16 bits, longer and signed integers into double precision.
#[derive(Debug, Clone, PartialEq)]
pub enum Elements {
    /// Counts.
    U16(Vec<u16>),
    /// Indices, signed numbers.
    I32(Vec<i32>),
    /// Single precision.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
    /// Complex numbers of single precision.
    Complex(Vec<Complex<f32>>),
}

impl Elements {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::U16(v) => v.len(),
            Self::I32(v) => v.len(),
            Self::F32(v) => v.len(),
            Self::F64(v) => v.len(),
            Self::Complex(v) => v.len(),
        }
    }

    /// Returns true if there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values in double precision; none where they are complex.
    pub fn into_reals(self) -> Option<Vec<f64>> {
        Some(match self {
            Self::U16(v) => v.into_iter().map(f64::from).collect(),
            Self::I32(v) => v.into_iter().map(f64::from).collect(),
            Self::F32(v) => v.into_iter().map(f64::from).collect(),
            Self::F64(v) => v,
            Self::Complex(_) => return None,
        })
    }

    /// Name of the type, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::U16(_) => "u16",
            Self::I32(_) => "i32",
            Self::F32(_) => "f32",
            Self::F64(_) => "f64",
            Self::Complex(_) => "complex",
        }
    }
}

impl Tensor {
    /// A single number.
    pub fn number(value: f64) -> Self {
        Self { shape: Vec::new(), elements: Elements::F64(vec![value]) }
    }

    /// Real numbers of double precision.
    ///
    /// # Panics
    /// If the shape needs another number of values.
    pub fn reals(shape: &[usize], values: Vec<f64>) -> Self {
        assert_eq!(shape.iter().product::<usize>(), values.len(), "values of {shape:?}");
        Self { shape: shape.to_vec(), elements: Elements::F64(values) }
    }

    /// The values in double precision; none where they are complex.
    pub fn to_reals(&self) -> Option<Vec<f64>> {
        self.elements.clone().into_reals()
    }

    /// The values as complex numbers; real ones have no imaginary part.
    pub fn to_complex(&self) -> Vec<Complex<f32>> {
        match &self.elements {
            Elements::Complex(v) => v.clone(),
            _ => self.to_reals().unwrap_or_default().into_iter().map(|v| Complex::new(v as f32, 0.0)).collect(),
        }
    }
}
