//! Running sums of integers: `inclusive[i] = x[0] + ... + x[i]`, `exclusive[i] = x[0] + ... + x[i-1]`, modulo the type.
//!
//! On the GPU in three launches (sums of tiles, their running sums, the running sums of the values): the values are
//! read twice and written once, 12 bytes for each `u32`.

mod cpu;
mod cuda;

pub use self::cpu::scan;
pub use self::cuda::{Scanner, recipe};

/// Inclusion of a value in its own sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanKind {
    /// Leaves the value itself out: the first sum is 0.
    Exclusive,
    /// Includes the value itself: the last sum is the total.
    Inclusive,
}

/// Integer types that can be scanned: `u32`, `u64`.
pub trait Integer: bytemuck::Pod + Send + Sync + Eq + std::fmt::Debug {
    /// The type in CUDA C++.
    const CUDA: &'static str;
    /// The sum modulo the type.
    #[must_use]
    fn plus(self, other: Self) -> Self;
}

impl Integer for u32 {
    const CUDA: &'static str = "u32";
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
}

impl Integer for u64 {
    const CUDA: &'static str = "u64";
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain<T: Integer>(kind: ScanKind, x: &[T]) -> (Vec<T>, T) {
        let mut sum = T::zeroed();
        let mut out = Vec::with_capacity(x.len());
        for value in x {
            let before = sum;
            sum = sum.plus(*value);
            out.push(if kind == ScanKind::Inclusive { sum } else { before });
        }
        (out, sum)
    }

    fn check<T: Integer>(kind: ScanKind, x: &[T]) {
        let mut out = x.to_vec();
        let total = scan(kind, &mut out);
        assert_eq!((out, total), plain(kind, x));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn any_length_is_scanned(x in proptest::collection::vec(any::<u32>(), 0..70_000)) {
            let long: Vec<u64> = x.iter().map(|v| u64::from(*v) << 33).collect();
            for kind in [ScanKind::Exclusive, ScanKind::Inclusive] {
                crate::device::Cpu::new(3).unwrap().install(|| {
                    check(kind, &x);
                    check(kind, &long);
                });
            }
        }
    }

    #[test]
    fn lengths_around_a_block_are_scanned() {
        for n in [0, 1, 2, cpu::BLOCK - 1, cpu::BLOCK, cpu::BLOCK + 1, 3 * cpu::BLOCK] {
            check(ScanKind::Exclusive, &vec![3u32; n]);
            check(ScanKind::Inclusive, &vec![u64::MAX; n]);
        }
    }

    #[test]
    fn kernels_compile() {
        crate::testing::compiles(&recipe());
    }

    fn compare<T: Integer>(scanner: &mut Scanner, cuda: &crate::cuda::Cuda, x: &[T]) {
        let from = cuda.buffer_from(x, "values").unwrap();
        // Room for the total, which goes behind the sums.
        let mut to = cuda.alloc_zeros::<T>(x.len() + 1, "sums").unwrap();
        for kind in [ScanKind::Exclusive, ScanKind::Inclusive] {
            scanner.scan(kind, &from, &mut to, x.len()).unwrap();
            let (mut sums, total) = plain(kind, x);
            sums.push(total);
            assert!(cuda.download(&to).unwrap() == sums, "{} {kind:?} of {}", T::CUDA, x.len());
            let mut place = cuda.buffer_from(x, "values").unwrap();
            scanner.scan_in_place(kind, &mut place, x.len()).unwrap();
            sums.pop();
            assert!(cuda.download(&place).unwrap() == sums, "{} {kind:?} of {} in place", T::CUDA, x.len());
        }
    }

    #[test]
    #[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
    fn the_gpu_agrees() {
        let Some(cuda) = crate::testing::gpu() else { return };
        let mut scanner = Scanner::new(&cuda, 20_000_000).unwrap();
        let philox = crate::rng::Philox::new(2, 12);
        for n in [0usize, 1, 31, 32, 33, 4095, 4096, 4097, 100_000, 16_777_216, 16_777_217, 20_000_000] {
            let words: Vec<u32> = (0..n.div_ceil(4)).flat_map(|i| philox.draw(0, i as u64)).take(n).collect();
            let longs: Vec<u64> = words.iter().map(|w| u64::from(*w) << 31).collect();
            compare(&mut scanner, &cuda, &words);
            compare(&mut scanner, &cuda, &longs);
        }
    }
}
