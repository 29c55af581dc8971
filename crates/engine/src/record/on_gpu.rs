//! Fields and particles that stay in a GPU's memory ([`FieldOnGpu`], [`TableOnGpu`]).

use num_complex::Complex;

use super::{Column, Field};
use crate::cuda::{Buffer, Cuda};
use crate::error::Result;

/// Values in a GPU's memory, slowest axis first (C order).
#[derive(Debug)]
pub enum ValuesOnGpu {
    /// Single precision.
    F32(Buffer<f32>),
    /// Double precision.
    F64(Buffer<f64>),
    /// Whole numbers.
    U64(Buffer<u64>),
    /// Complex numbers in single precision.
    Complex(Buffer<Complex<f32>>),
    /// Complex numbers in double precision.
    Complex128(Buffer<Complex<f64>>),
}

impl ValuesOnGpu {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F64(values) => values.len(),
            Self::U64(values) => values.len(),
            Self::Complex(values) => values.len(),
            Self::Complex128(values) => values.len(),
        }
    }

    /// Returns true if there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if values are real numbers, in single or double precision.
    pub fn is_real(&self) -> bool {
        matches!(self, Self::F32(_) | Self::F64(_))
    }

    /// Numbers of a value: two of complex ones.
    pub(crate) fn numbers(&self) -> usize {
        if matches!(self, Self::Complex(_) | Self::Complex128(_)) { 2 } else { 1 }
    }

    /// Returns true if numbers are in double precision.
    pub(crate) fn is_double(&self) -> bool {
        matches!(self, Self::F64(_) | Self::Complex128(_))
    }

    /// Number `k` of all values, a complex one being two. Waits.
    pub(crate) fn number(&self, cuda: &Cuda, k: usize) -> Result<f64> {
        let part = |pair: Complex<f64>| if k.is_multiple_of(2) { pair.re } else { pair.im };
        Ok(match self {
            Self::F32(values) => f64::from(cuda.download_range(values, k..k + 1)?[0]),
            Self::F64(values) => cuda.download_range(values, k..k + 1)?[0],
            Self::U64(values) => cuda.download_range(values, k..k + 1)?[0] as f64,
            Self::Complex(values) => {
                let pair = cuda.download_range(values, k / 2..k / 2 + 1)?[0];
                part(Complex::new(pair.re.into(), pair.im.into()))
            }
            Self::Complex128(values) => part(cuda.download_range(values, k / 2..k / 2 + 1)?[0]),
        })
    }

    /// Number of the GPU.
    pub fn gpu(&self) -> usize {
        match self {
            Self::F32(values) => values.gpu(),
            Self::F64(values) => values.gpu(),
            Self::U64(values) => values.gpu(),
            Self::Complex(values) => values.gpu(),
            Self::Complex128(values) => values.gpu(),
        }
    }

    /// The address on the device.
    pub fn address(&self) -> u64 {
        match self {
            Self::F32(values) => values.address(),
            Self::F64(values) => values.address(),
            Self::U64(values) => values.address(),
            Self::Complex(values) => values.address(),
            Self::Complex128(values) => values.address(),
        }
    }
}

/// A field of a moment as a copy in a GPU's memory, of the values that its record has.
#[derive(Debug)]
pub struct FieldOnGpu {
    /// The field without its values.
    pub field: Field,
    /// The values, on their way where the device is still at work.
    pub values: ValuesOnGpu,
}

/// Particles of a moment as copies in a GPU's memory, of the values that their record has, in its order.
#[derive(Debug)]
pub struct TableOnGpu {
    /// Columns without their values, and these.
    pub columns: Vec<(Column, ValuesOnGpu)>,
}
