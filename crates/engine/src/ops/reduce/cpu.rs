//! Reduction on the threads of the pool at hand.

use super::Op;
use crate::ops::{Number, Total};
use crate::parallel::{chunks, map};

/// Values a block: the partition, and with it the result, does not depend on the threads.
const BLOCK: usize = 8192;
/// Running values a block, so that the loop is not one chain of additions.
const LANES: usize = 16;

/// `op` over all of `x`.
pub fn reduce<T: Number>(op: Op, x: &[T]) -> T::Total {
    // One arm an operation, so that each loop is compiled for its own.
    match op {
        Op::Sum => run(op, x, T::total, Total::plus),
        Op::Min => run(op, x, T::total, |a, b| if a.broken() || a < b { a } else { b }),
        Op::Max => run(op, x, T::total, |a, b| if a.broken() || a > b { a } else { b }),
        Op::MaxAbs => run(op, x, |v| v.total().magnitude(), |a, b| if a.broken() || a > b { a } else { b }),
    }
}

fn run<T: Number>(op: Op, x: &[T], load: impl Fn(T) -> T::Total + Sync, join: impl Fn(T::Total, T::Total) -> T::Total + Sync) -> T::Total {
    let block = |x: &[T]| {
        let mut lanes = [op.zero::<T::Total>(); LANES];
        let (rows, rest) = x.as_chunks::<LANES>();
        for row in rows {
            for (lane, value) in lanes.iter_mut().zip(row) {
                *lane = join(*lane, load(*value));
            }
        }
        for (lane, value) in lanes.iter_mut().zip(rest) {
            *lane = join(*lane, load(*value));
        }
        tree(&mut lanes, op, &join)
    };
    if x.len() <= BLOCK {
        return block(x);
    }
    let mut blocks = map(chunks(x, BLOCK), |_, part| block(part));
    tree(&mut blocks, op, &join)
}

/// Joins neighbours, then pairs of those, and so on.
fn tree<A: Total>(values: &mut [A], op: Op, join: &impl Fn(A, A) -> A) -> A {
    let mut n = values.len();
    while n > 1 {
        for i in 0..n / 2 {
            values[i] = join(values[2 * i], values[2 * i + 1]);
        }
        if n % 2 == 1 {
            values[n / 2] = values[n - 1];
        }
        n = n.div_ceil(2);
    }
    values.first().copied().unwrap_or_else(|| op.zero())
}
