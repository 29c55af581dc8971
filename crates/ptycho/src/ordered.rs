//! Sums that are the same on any number of threads.

use std::ops::AddAssign;

use zellige_engine::parallel::{indices, map};

/// Terms that are made at once: too few for the system to take their memory back each time.
const BLOCK: usize = 1 << 15;

/// Sum of `term(i)` over `0..n`: the terms are made on all cores, a block at a time, and added in the order of `i`, so that the sum
/// is that of a plain loop to the last bit. Worth it where a term costs much more than an addition.
pub(crate) fn sum<T: Copy + Default + Send + AddAssign>(n: usize, term: impl Fn(usize) -> T + Sync) -> T {
    let mut total = T::default();
    for first in (0..n).step_by(BLOCK) {
        for value in map(indices((n - first).min(BLOCK)), |_, i| term(first + i)) {
            total += value;
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use zellige_engine::device::Cpu;

    /// Terms of very different sizes, so that another order is another sum.
    #[test]
    fn a_sum_is_that_of_a_loop_on_any_number_of_threads() {
        let n = 2 * BLOCK + 77;
        let term = |i: usize| (i as f64).sin().powi(9) * 10_f64.powi((i % 17) as i32);
        let plain: f64 = (0..n).map(term).sum();
        for threads in [1, 3] {
            assert_eq!(Cpu::new(threads).unwrap().install(|| sum(n, term)).to_bits(), plain.to_bits());
        }
        let backwards: f64 = (0..n).rev().map(term).sum();
        assert_ne!(backwards.to_bits(), plain.to_bits());
        assert_eq!(sum(0, term), 0.0);
    }
}
