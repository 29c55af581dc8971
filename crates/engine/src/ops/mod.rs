//! Operations over whole arrays: [`fft`] on the CPU and the GPU, [`sum`] on the CPU, planes for pictures.

pub mod fft;
pub mod plane;
mod sum;

pub use self::sum::sum;
