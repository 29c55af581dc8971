//! The constant mode of the transformed axes on a singular problem: a line `-u_{l-1} + 2 u_l - u_{l+1} = b_l` that has a
//! solution only if the weighted mean of `b` is zero, and then one for every mean of `u`.

use crate::grid::{Axis, Bc};

/// Closure of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineEnds {
    /// Neumann ends, which weigh one half.
    Neumann,
    /// Node 0 follows on the last one.
    Periodic,
}

impl LineEnds {
    /// The ends of an axis without Dirichlet sides.
    pub(super) fn of(axis: &Axis) -> Self {
        if axis.lo == Bc::Periodic { Self::Periodic } else { Self::Neumann }
    }

    fn mean(self, v: &[f64]) -> f64 {
        let sum: f64 = v.iter().sum();
        match self {
            Self::Periodic => sum / v.len() as f64,
            Self::Neumann => (sum - 0.5 * (v[0] + v[v.len() - 1])) / (v.len() - 1) as f64,
        }
    }

    /// Turns `b` into the solution of mean zero; returns the mean that was taken off `b`.
    pub(super) fn solve(self, b: &mut [f64]) -> f64 {
        let removed = self.mean(b);
        for b in b.iter_mut() {
            *b -= removed;
        }
        // The slope u_{l+1} - u_l falls by b_l; a Neumann end begins with half of it from slope zero.
        let mut slope = 0.0;
        if self == Self::Periodic {
            let (mut at, mut sum) = (0.0, 0.0);
            for b in b.iter() {
                at -= b;
                sum += at;
            }
            slope = -sum / b.len() as f64;
        } else {
            b[0] *= 0.5;
        }
        let mut u = 0.0;
        for b in b.iter_mut() {
            slope -= *b;
            *b = u;
            u += slope;
        }
        let mean = self.mean(b);
        for u in b.iter_mut() {
            *u -= mean;
        }
        removed
    }
}
