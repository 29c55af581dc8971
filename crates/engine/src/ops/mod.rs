//! Operations over whole arrays that every solver needs, each for the CPU and the GPU: [`reduce`], [`scan`],
//! [`histogram`], [`fft`].
//!
//! Every folder has the same files: `mod.rs` says what is computed, `cpu.rs` and `cuda.rs` do it, the `.cu` beside them
//! holds the kernels. The results on the CPU do not depend on the number of threads, those on a GPU not on the
//! order in which blocks run: sums of reals are taken over a fixed partition, all else is exact.

pub mod fft;
pub mod histogram;
pub mod reduce;
pub mod scan;

/// Number types that the operations take: `f32`, `f64`, `u32`, `u64`.
pub trait Number: bytemuck::Pod + Send + Sync + PartialOrd + std::fmt::Debug {
    /// Type of its sums: `f64` for reals, `u64` for integers (modulo 2^64).
    type Total: Total;
    /// The type in CUDA C++.
    const CUDA: &'static str;
    /// Converts the value to the type of sums, exactly.
    fn total(self) -> Self::Total;
}

/// Number types of sums and extrema: `f64` or `u64`.
pub trait Total: bytemuck::Pod + Send + Sync + PartialOrd + std::fmt::Debug {
    /// The type in CUDA C++.
    const CUDA: &'static str;
    /// Zero, the start of a sum.
    const ZERO: Self;
    /// Below all others.
    const LOW: Self;
    /// Above all others.
    const HIGH: Self;
    /// The sum; of integers modulo 2^64.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// Absolute value.
    #[must_use]
    fn magnitude(self) -> Self;
    /// Returns true if it is not a number.
    fn broken(self) -> bool;
}

impl Total for f64 {
    const CUDA: &'static str = "double";
    const ZERO: Self = 0.0;
    const LOW: Self = f64::NEG_INFINITY;
    const HIGH: Self = f64::INFINITY;
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self + other
    }
    #[inline(always)]
    fn magnitude(self) -> Self {
        self.abs()
    }
    #[inline(always)]
    fn broken(self) -> bool {
        self.is_nan()
    }
}

impl Total for u64 {
    const CUDA: &'static str = "u64";
    const ZERO: Self = 0;
    const LOW: Self = 0;
    const HIGH: Self = u64::MAX;
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
    #[inline(always)]
    fn magnitude(self) -> Self {
        self
    }
    #[inline(always)]
    fn broken(self) -> bool {
        false
    }
}

macro_rules! numbers {
    ($($t:ty, $total:ty, $cuda:literal);*) => {$(
        impl Number for $t {
            type Total = $total;
            const CUDA: &'static str = $cuda;
            #[inline(always)]
            fn total(self) -> $total {
                <$total>::from(self)
            }
        }
    )*};
}
numbers!(f32, f64, "float"; f64, f64, "double"; u32, u64, "u32"; u64, u64, "u64");
