//! Operations over whole arrays: [`fft`] on the CPU and the GPU, [`sum`] on the CPU.

pub mod fft;
mod sum;

pub use self::sum::sum;
