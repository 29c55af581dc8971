//! One value out of many: sum, minimum, maximum, largest magnitude.
//!
//! Reals are summed in `f64`, in blocks of fixed length, whose sums are joined in a fixed tree: the same result on any
//! number of threads, and the same on every GPU (but not the same on both, since the blocks differ). The error of a sum
//! is bounded by `(BLOCK / LANES + log2 n) * 2^-53 * sum |x|`. Integers are summed modulo 2^64. A value that is not a
//! number makes every result so. Of nothing: sum and largest magnitude 0, minimum and maximum the limits of the type.

mod cpu;
mod cuda;

pub use self::cpu::reduce;
pub use self::cuda::{Reducer, recipe};

use super::Total;

/// Reduction to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// The sum.
    Sum,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The largest magnitude.
    MaxAbs,
}

impl Op {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Sum, Self::Min, Self::Max, Self::MaxAbs];

    /// The result of nothing.
    pub fn zero<A: Total>(self) -> A {
        match self {
            Self::Sum | Self::MaxAbs => A::ZERO,
            Self::Min => A::HIGH,
            Self::Max => A::LOW,
        }
    }

    /// The functor in `reduce.cu`.
    fn functor(self) -> &'static str {
        match self {
            Self::Sum => "SumOf",
            Self::Min => "MinOf",
            Self::Max => "MaxOf",
            Self::MaxAbs => "MaxAbsOf",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Number;
    use proptest::prelude::*;

    fn on_threads<T: Number>(threads: usize, op: Op, x: &[T]) -> T::Total {
        crate::device::Cpu::new(threads).unwrap().install(|| reduce(op, x))
    }

    #[test]
    fn nothing_gives_the_neutral_value() {
        assert_eq!(reduce::<f32>(Op::Sum, &[]), 0.0);
        assert_eq!(reduce::<f32>(Op::Min, &[]), f64::INFINITY);
        assert_eq!(reduce::<u32>(Op::Max, &[]), 0);
        assert_eq!(reduce::<f64>(Op::MaxAbs, &[]), 0.0);
    }

    #[test]
    fn a_broken_value_cannot_hide() {
        for place in [0, 1, 7, 8, 4095, 8191, 8192, 19_999] {
            let mut x = vec![1.0f32; 20_000];
            x[place] = f32::NAN;
            for op in Op::ALL {
                assert!(reduce(op, &x).is_nan(), "{op:?} at {place}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn integers_are_exact(x in proptest::collection::vec(any::<u32>(), 0..30_000)) {
            prop_assert_eq!(reduce(Op::Sum, &x), x.iter().map(|v| u64::from(*v)).sum::<u64>());
            prop_assert_eq!(reduce(Op::Min, &x), x.iter().min().map_or(u64::MAX, |v| u64::from(*v)));
            prop_assert_eq!(reduce(Op::Max, &x), x.iter().max().map_or(0, |v| u64::from(*v)));
        }

        #[test]
        fn reals_are_near_and_the_same_on_any_number_of_threads(x in proptest::collection::vec(-1e3f64..1e3, 0..30_000)) {
            let sum = on_threads(1, Op::Sum, &x);
            for op in Op::ALL {
                prop_assert_eq!(on_threads(1, op, &x).to_bits(), on_threads(3, op, &x).to_bits());
            }
            // Both orders are within n * 2^-53 * sum |x| of the true sum.
            let size: f64 = x.iter().map(|v| v.abs()).sum();
            prop_assert!((sum - x.iter().sum::<f64>()).abs() <= 2.0 * x.len() as f64 * f64::EPSILON * size);
            prop_assert_eq!(reduce(Op::Max, &x), x.iter().copied().fold(f64::NEG_INFINITY, f64::max));
            prop_assert_eq!(reduce(Op::MaxAbs, &x), x.iter().fold(0.0, |m: f64, v| m.max(v.abs())));
        }
    }

    #[test]
    fn kernels_compile() {
        crate::testing::compiles(&recipe());
    }

    fn compare<T: Number>(reducer: &mut Reducer, cuda: &crate::cuda::Cuda, x: &[T], sum_error: impl Fn(T::Total, T::Total) -> bool) {
        let buffer = cuda.buffer_from(x, "values").unwrap();
        for op in Op::ALL {
            let (here, there) = (reduce(op, x), reducer.reduce(op, &buffer, x.len()).unwrap());
            if op == Op::Sum {
                assert!(sum_error(here, there), "{} {op:?} of {}: {here:?} {there:?}", T::CUDA, x.len());
                assert_eq!(there, reducer.reduce(op, &buffer, x.len()).unwrap(), "the same every time");
            } else {
                assert_eq!(here, there, "{} {op:?} of {}", T::CUDA, x.len());
            }
        }
    }

    #[test]
    #[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
    fn the_gpu_agrees() {
        let Some(cuda) = crate::testing::gpu() else { return };
        let mut reducer = Reducer::new(&cuda).unwrap();
        let philox = crate::rng::Philox::new(1, 11);
        for n in [0usize, 1, 31, 255, 256, 257, 4096, 4097, 1_000_003, 20_000_000] {
            let words: Vec<u32> = (0..n.div_ceil(4)).flat_map(|i| philox.draw(0, i as u64)).take(n).collect();
            let reals: Vec<f64> = words.iter().map(|w| f64::from(*w) - 2e9).collect();
            let singles: Vec<f32> = reals.iter().map(|v| *v as f32).collect();
            let longs: Vec<u64> = words.iter().map(|w| u64::from(*w) << 31).collect();
            // At most 600 additions in a row on either side (8192 / 16 here, 20e6 / 2048 / 256 there, and the trees).
            let near = |a: f64, b: f64| (a - b).abs() <= 600.0 * f64::EPSILON * n as f64 * 2.3e9;
            compare(&mut reducer, &cuda, &words, |a, b| a == b);
            compare(&mut reducer, &cuda, &longs, |a, b| a == b);
            compare(&mut reducer, &cuda, &reals, near);
            compare(&mut reducer, &cuda, &singles, near);
        }
        let broken = cuda.buffer_from(&[1.0f32, f32::NAN, 2.0], "broken").unwrap();
        for op in Op::ALL {
            assert!(reducer.reduce(op, &broken, 3).unwrap().is_nan(), "{op:?}");
        }
    }
}
