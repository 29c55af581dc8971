//! Histogram on the threads of the pool at hand: one set of counts a part, added up at the end.

use crate::parallel::{map, owned, threads};

/// Keys a part at least: with fewer, adding the counts up would cost more than counting.
const PART: usize = 16_384;

/// Counts of the keys `0..bins`, and behind them that of all others; with weights, their sums.
///
/// # Panics
/// If there are weights and not one for each key.
pub fn histogram(keys: &[u32], weights: Option<&[u32]>, bins: usize) -> Vec<u64> {
    if let Some(weights) = weights {
        assert_eq!(keys.len(), weights.len(), "one weight a key");
    }
    let part = keys.len().div_ceil(threads()).max(PART).max(bins);
    let starts: Vec<usize> = (0..keys.len()).step_by(part).collect();
    let count = |_, start: usize| {
        let end = (start + part).min(keys.len());
        let mut counts = vec![0u64; bins + 1];
        match weights {
            None => keys[start..end].iter().for_each(|k| counts[(*k as usize).min(bins)] += 1),
            Some(w) => {
                for (key, weight) in keys[start..end].iter().zip(&w[start..end]) {
                    counts[(*key as usize).min(bins)] += u64::from(*weight);
                }
            }
        }
        counts
    };
    let add = |mut a: Vec<u64>, b: Vec<u64>| {
        a.iter_mut().zip(&b).for_each(|(a, b)| *a += b);
        a
    };
    // Integer sums: the order in which parts are joined does not matter.
    map(owned(starts), count).into_iter().reduce(add).unwrap_or_else(|| vec![0; bins + 1])
}
