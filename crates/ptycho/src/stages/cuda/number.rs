//! Numbers of a run's arrays and kernels: single or double precision.

use bytemuck::Pod;
use num_complex::Complex;
use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::cuda::Argument;
use zellige_engine::error::Result;
use zellige_engine::ops::fft::CudaReal;
use zellige_engine::parallel::{items, map};

/// `f32` or `f64`: `real` of model.cu.
pub(super) trait Number: CudaReal + PartialOrd + Argument {
    /// Whole number of the same size: `word` of model.cu.
    type Word: Pod + Argument + From<u32> + Send;

    /// Modulus of a value.
    fn modulus(value: Complex<Self>) -> Self;

    /// Writes a section of numbers.
    fn write(writer: &mut Writer, name: &str, values: &[Self]) -> Result<()>;

    /// Reads it.
    fn read(reader: &Reader, name: &str) -> Result<Vec<Self>>;
}

macro_rules! numbers {
    ($($t:ty, $word:ty, $section:ident;)*) => {$(
        impl Number for $t {
            type Word = $word;

            fn modulus(value: Complex<Self>) -> Self {
                value.norm()
            }

            fn write(writer: &mut Writer, name: &str, values: &[Self]) -> Result<()> {
                writer.$section(name, values)
            }

            fn read(reader: &Reader, name: &str) -> Result<Vec<Self>> {
                reader.$section(name)
            }
        }
    )*};
}
numbers! {
    f32, u32, f32s;
    f64, u64, f64s;
}

/// Complex values.
pub(super) type C<T> = Complex<T>;

/// Values in the precision of the run.
pub(super) fn narrow<T: Number>(values: &[Complex<f64>]) -> Vec<C<T>> {
    map(items(values), |_, v| Complex::new(T::from_wide(v.re), T::from_wide(v.im)))
}

/// Converts them back.
pub(super) fn wide<T: Number>(values: &[C<T>]) -> Vec<Complex<f64>> {
    map(items(values), |_, v| Complex::new(v.re.wide(), v.im.wide()))
}

/// Pairs of numbers in the precision of the run.
pub(super) fn pairs<T: Number>(values: &[[f64; 2]]) -> Vec<[T; 2]> {
    values.iter().map(|pair| pair.map(T::from_wide)).collect()
}
