//! A sum of reals that does not depend on the number of threads.

use crate::parallel::{chunks, map};

/// Values a block: the partition, and with it the result, does not depend on the threads.
const BLOCK: usize = 8192;
/// Running sums of a block, so that the loop is not one chain of additions.
const LANES: usize = 16;

/// The sum of `x`, in blocks of fixed length whose sums are joined in a fixed tree. Its error is bounded by
/// `(BLOCK / LANES + log2 n) * 2^-53 * sum |x|`.
pub fn sum(x: &[f64]) -> f64 {
    if x.len() <= BLOCK {
        return of_block(x);
    }
    tree(&mut map(chunks(x, BLOCK), |_, part| of_block(part)))
}

fn of_block(x: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let (rows, rest) = x.as_chunks::<LANES>();
    for row in rows {
        for (lane, value) in lanes.iter_mut().zip(row) {
            *lane += value;
        }
    }
    for (lane, value) in lanes.iter_mut().zip(rest) {
        *lane += value;
    }
    tree(&mut lanes)
}

/// Joins neighbours, then pairs of those, and so on.
fn tree(values: &mut [f64]) -> f64 {
    let mut n = values.len();
    while n > 1 {
        for i in 0..n / 2 {
            values[i] = values[2 * i] + values[2 * i + 1];
        }
        if n % 2 == 1 {
            values[n / 2] = values[n - 1];
        }
        n = n.div_ceil(2);
    }
    values[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn on_threads(threads: usize, x: &[f64]) -> f64 {
        crate::device::Cpu::new(threads).unwrap().install(|| sum(x))
    }

    #[test]
    fn a_broken_value_cannot_hide() {
        assert_eq!(sum(&[]), 0.0);
        for place in [0, 1, 15, 16, 8191, 8192, 19_999] {
            let mut x = vec![1.0; 20_000];
            x[place] = f64::NAN;
            assert!(sum(&x).is_nan(), "at {place}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn sums_are_near_and_the_same_on_any_number_of_threads(x in proptest::collection::vec(-1e3f64..1e3, 0..30_000)) {
            let found = on_threads(1, &x);
            prop_assert_eq!(found.to_bits(), on_threads(3, &x).to_bits());
            // Both orders are within n * 2^-53 * sum |x| of the true sum.
            let size: f64 = x.iter().map(|v| v.abs()).sum();
            prop_assert!((found - x.iter().sum::<f64>()).abs() <= 2.0 * x.len() as f64 * f64::EPSILON * size);
        }
    }
}
