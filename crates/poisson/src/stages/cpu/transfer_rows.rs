//! The row operations of the transfers between levels, and of loading.

use zellige_engine::real::{Real, RealScalar};

use super::field::PAD;
use super::isa::Work;
use crate::physics;

/// `out = west a + east b`.
pub(super) struct WeightedSum2<'a, T> {
    pub west: T,
    pub a: &'a [T],
    pub east: T,
    pub b: &'a [T],
    pub out: &'a mut [T],
}

impl<T: RealScalar> Work for WeightedSum2<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let n = self.out.len();
        let (a, b, out) = (&self.a[..n], &self.b[..n], &mut self.out[..n]);
        for i in 0..n {
            out[i] = physics::between(self.west, a[i], self.east, b[i]);
        }
    }
}

/// `out = w0 a + w1 b + w2 c`.
pub(super) struct WeightedSum3<'a, T> {
    pub weights: [T; 3],
    pub rows: [&'a [T]; 3],
    pub out: &'a mut [T],
}

impl<T: RealScalar> Work for WeightedSum3<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let n = self.out.len();
        let [a, b, c] = self.rows;
        let (a, b, c, out) = (&a[..n], &b[..n], &c[..n], &mut self.out[..n]);
        let [wa, wb, wc] = self.weights;
        for i in 0..n {
            out[i] = physics::three(wa, a[i], wb, b[i], wc, c[i]);
        }
    }
}

/// Restriction along x of a row with ghosts, to the coarse nodes `0..out.len()` whose fine nodes are `2 i`.
pub(super) struct RestrictX<'a, T> {
    /// The fine row from its west ghost on.
    pub fine: &'a [T],
    pub weights: [&'a [T]; 3],
    pub out: &'a mut [T],
}

impl<T: RealScalar> Work for RestrictX<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let n = self.out.len();
        let fine = &self.fine[..=2 * n];
        let [a, b, c] = self.weights;
        let (a, b, c) = (&a[..n], &b[..n], &c[..n]);
        for i in 0..n {
            self.out[i] = physics::three(a[i], fine[2 * i], b[i], fine[2 * i + 1], c[i], fine[2 * i + 2]);
        }
    }
}

/// `fine += P coarse` along x.
pub(super) struct ProlongX<'a, T> {
    /// The coarse row; its east ghost follows it.
    pub coarse: &'a [T],
    pub west: &'a [T],
    pub east: &'a [T],
    pub fine: &'a mut [T],
}

impl<T: RealScalar> Work for ProlongX<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let n = self.fine.len() / 2;
        let coarse = &self.coarse[..=n];
        let (west, east, fine) = (&self.west[..2 * n], &self.east[..2 * n], &mut self.fine[..2 * n]);
        for i in 0..n {
            fine[2 * i] += physics::between(west[2 * i], coarse[i], east[2 * i], coarse[i + 1]);
            fine[2 * i + 1] += physics::between(west[2 * i + 1], coarse[i], east[2 * i + 1], coarse[i + 1]);
        }
    }
}

/// `to = from` between precisions; gives the largest absolute value.
pub(super) struct Convert<'a, U> {
    pub from: &'a [f64],
    pub to: &'a mut [U],
}

impl<U: RealScalar> Work for Convert<'_, U> {
    type Out = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let mut max = [0.0_f64; PAD];
        for (from, to) in self.from.chunks(16 * PAD).zip(self.to.chunks_mut(16 * PAD)) {
            for i in 0..from.len().min(to.len()) {
                to[i] = U::from_f64(from[i]);
            }
            for block in from.chunks(PAD) {
                for (m, v) in max.iter_mut().zip(block) {
                    *m = Real::max(v.abs(), *m);
                }
            }
        }
        max.iter().fold(0.0, |m, v| f64::max(m, *v))
    }
}
