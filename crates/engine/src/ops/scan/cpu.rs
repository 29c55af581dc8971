//! Running sums on the threads of the pool at hand: sums of blocks, their running sums, then each block.

use super::{Integer, ScanKind};
use crate::parallel::{chunks, chunks_mut, each, items, map, threads};

/// Values a block: two passes over one stay in the second-level cache.
pub(super) const BLOCK: usize = 16_384;

/// Replaces `x` by its running sums; returns the total.
pub fn scan<T: Integer>(kind: ScanKind, x: &mut [T]) -> T {
    if x.len() <= 2 * BLOCK || threads() == 1 {
        return serial(kind, x, T::zeroed());
    }
    let mut starts = map(chunks(x, BLOCK), |_, block| block.iter().fold(T::zeroed(), |s, v| s.plus(*v)));
    let total = serial(ScanKind::Exclusive, &mut starts, T::zeroed());
    each((chunks_mut(x, BLOCK), items(&starts)), |_, (block, start)| {
        serial(kind, block, *start);
    });
    total
}

fn serial<T: Integer>(kind: ScanKind, x: &mut [T], start: T) -> T {
    let mut sum = start;
    for value in x {
        let next = sum.plus(*value);
        *value = if kind == ScanKind::Inclusive { next } else { sum };
        sum = next;
    }
    sum
}
