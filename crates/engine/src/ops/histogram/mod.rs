//! Histogram of keys: the number of occurrences of each key, or the sum of a weight over each: cells of particles, spectra, grey
//! levels.
//!
//! Keys are `u32`; those not below `bins` are counted in one more bin behind the others, so the counts always add up to
//! the number of keys. Weights are `u32`, their sums `u64`: exact and the same in any order. A real weight is given in
//! fixed point, scaled by its caller, who knows its range.
//!
//! On the GPU each block counts in shared memory, where all bins fit, and adds its counts to the result at its end:
//! 4 bytes read a key, 8 with weights.

mod cpu;
mod cuda;

pub use self::cpu::histogram;
pub use self::cuda::{Histogram, recipe};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(keys: &[u32], weights: Option<&[u32]>, bins: usize) -> Vec<u64> {
        let mut counts = vec![0; bins + 1];
        for (i, key) in keys.iter().enumerate() {
            counts[(*key as usize).min(bins)] += weights.map_or(1, |w| u64::from(w[i]));
        }
        counts
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn every_key_is_counted_once(
            pairs in proptest::collection::vec((0u32..40, any::<u32>()), 0..60_000), bins in 1usize..50, threads in 1usize..4
        ) {
            let (keys, weights): (Vec<u32>, Vec<u32>) = pairs.into_iter().unzip();
            crate::device::Cpu::new(threads).unwrap().install(|| {
                assert_eq!(histogram(&keys, None, bins), plain(&keys, None, bins));
                assert_eq!(histogram(&keys, Some(&weights), bins), plain(&keys, Some(&weights), bins));
            });
            prop_assert_eq!(histogram(&keys, None, bins).iter().sum::<u64>(), keys.len() as u64);
        }
    }

    #[test]
    fn nothing_and_no_bins_are_fine() {
        assert_eq!(histogram(&[], None, 3), [0; 4]);
        assert_eq!(histogram(&[0, 7, u32::MAX], None, 0), [3]);
    }

    #[test]
    fn kernels_compile() {
        crate::testing::compiles(&recipe());
    }

    #[test]
    #[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
    fn the_gpu_agrees() {
        let Some(cuda) = crate::testing::gpu() else { return };
        let mut counter = Histogram::new(&cuda).unwrap();
        let philox = crate::rng::Philox::new(3, 13);
        // Few bins (contention), as many as shared memory holds and one more, and more than it holds.
        let most = counter.shared_bins(false);
        for bins in [1, 2, 255, most, most + 1, 1_000_000] {
            for n in [0usize, 1, 1000, 3_000_001] {
                let words: Vec<u32> = (0..n.div_ceil(4)).flat_map(|i| philox.draw(0, i as u64)).take(n).collect();
                let keys: Vec<u32> = words.iter().map(|w| ((u64::from(*w) * (bins as u64 + 3)) >> 32) as u32).collect();
                let (k, w) = (cuda.buffer_from(&keys, "keys").unwrap(), cuda.buffer_from(&words, "weights").unwrap());
                let mut counts = cuda.alloc_zeros::<u64>(bins + 1, "counts").unwrap();
                counter.count(&k, None, n, bins, &mut counts).unwrap();
                assert!(cuda.download(&counts).unwrap() == plain(&keys, None, bins), "{n} keys, {bins} bins");
                counter.count(&k, Some(&w), n, bins, &mut counts).unwrap();
                assert!(cuda.download(&counts).unwrap() == plain(&keys, Some(&words), bins), "{n} weights, {bins} bins");
            }
        }
    }
}
