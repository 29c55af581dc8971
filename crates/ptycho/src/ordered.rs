//! Sums that are the same on any number of threads.

use std::ops::AddAssign;

use zellige_engine::parallel::{indices, map};

/// Terms that one thread adds up: the partition, and with it the sum, does not depend on the threads.
const BLOCK: usize = 1 << 13;

/// Sum of `term(i)` over `0..n`: of each block of fixed length in the order of `i`, and of the blocks in theirs.
pub(crate) fn sum<T: Copy + Default + Send + AddAssign>(n: usize, term: impl Fn(usize) -> T + Sync) -> T {
    let add = |mut total: T, term: T| {
        total += term;
        total
    };
    let of_block = |_, block: usize| (block * BLOCK..n.min((block + 1) * BLOCK)).map(&term).fold(T::default(), add);
    map(indices(n.div_ceil(BLOCK)), of_block).into_iter().fold(T::default(), add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use zellige_engine::device::Cpu;

    /// Terms of very different sizes, so that another order is another sum.
    #[test]
    fn a_sum_is_the_same_on_any_number_of_threads() {
        let n = 5 * BLOCK + 77;
        let term = |i: usize| (i as f64).sin().powi(9) * 10_f64.powi((i % 17) as i32);
        let blocks: Vec<f64> = (0..n).step_by(BLOCK).map(|first| (first..n.min(first + BLOCK)).map(term).sum()).collect();
        let plain: f64 = blocks.iter().sum();
        for threads in [1, 3] {
            assert_eq!(Cpu::new(threads).unwrap().install(|| sum(n, term)).to_bits(), plain.to_bits());
        }
        let backwards: f64 = (0..n).rev().map(term).sum();
        assert_ne!(backwards.to_bits(), plain.to_bits());
        assert_eq!(sum(0, term), 0.0);
    }
}
