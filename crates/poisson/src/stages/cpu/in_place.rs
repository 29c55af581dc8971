//! A relaxation of one colour in place: half of the memory that is touched where it reads one array and writes another.
//!
//! The nodes of a colour have neighbours of the other colour only, which the relaxation leaves alone; so what it reads is
//! the same, before and after. (Not across the seam of a periodic axis of odd length: `pass` sees to that.)

use std::ops::Range;

use zellige_engine::real::{Lanes, Real, RealScalar};

use super::field::PAD;
use super::isa::Work;
use super::rows::{Neighbours, stretches};
use super::tables::Operator;
use crate::physics;

/// `u += omega / d (A u - rhs)` on the nodes of a row where `step` is not 0.
pub(super) struct RelaxInPlace<'a, T, const ROWS: bool> {
    pub operator: &'a Operator<T>,
    /// The row with its padding on both sides.
    pub line: &'a mut [T],
    /// Its neighbours; `centre` is not looked at.
    pub row: Neighbours<'a, T>,
    pub rhs: &'a [T],
    /// `1 / d` or 0.
    pub step: &'a [T],
    pub omega: T,
}

/// A stretch of a row in registers of `N` lanes. All slices have one length, so that no index is checked twice.
struct Blocks<'a, T, const N: usize> {
    slabs: [&'a [[T; N]]; 2],
    slab_weights: [Lanes<T, N>; 2],
    rows: [&'a [[T; N]]; 2],
    row_weights: [Lanes<T, N>; 2],
    west: &'a [[T; N]],
    east: &'a [[T; N]],
    rhs: &'a [[T; N]],
    step: &'a [[T; N]],
    omega: Lanes<T, N>,
    /// Weights west and east and `omega / d` of the first block: those of all blocks where the stretch is uniform.
    first: [Lanes<T, N>; 3],
}

#[inline(always)]
fn blocks<T, const N: usize>(row: &[T], start: usize, count: usize) -> &[[T; N]] {
    &row[start..].as_chunks::<N>().0[..count]
}

/// The lanes from `at` on, loaded at once: without the fence the compiler puts them together from those of other loads.
#[inline(always)]
fn load<T: RealScalar, const N: usize>(line: &[T], at: usize) -> Lanes<T, N> {
    let lanes = Lanes(*line[at..].first_chunk().expect("whole blocks and their padding"));
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: no instruction is emitted; nothing is touched.
    unsafe {
        std::arch::asm!("", options(nostack, preserves_flags));
    }
    lanes
}

#[inline(always)]
fn store<T: RealScalar, const N: usize>(line: &mut [T], at: usize, lanes: Lanes<T, N>) {
    *line[at..].first_chunk_mut().expect("whole blocks and their padding") = lanes.0;
}

impl<T: RealScalar, const N: usize> Blocks<'_, T, N> {
    /// The relaxed nodes of a block of `line`, which starts a padding before the stretch.
    #[inline(always)]
    fn relaxed<const ROWS: bool, const UNIFORM: bool>(&self, line: &[T], block: usize) -> Lanes<T, N> {
        let line = &line[block * N..][..N + 2 * PAD];
        let (before, centre, after) = (load(line, PAD - 1), load(line, PAD), load(line, PAD + 1));
        let [west, east, step] =
            if UNIFORM { self.first } else { [Lanes(self.west[block]), Lanes(self.east[block]), self.omega * Lanes(self.step[block])] };
        let mut sum = physics::second_difference(centre, before, after, west, east);
        if ROWS {
            let [lower, upper] = [load(&self.rows[0][block], 0), load(&self.rows[1][block], 0)];
            let [a, b] = self.row_weights;
            sum += physics::second_difference(centre, lower, upper, a, b);
        }
        let [lower, upper] = [load(&self.slabs[0][block], 0), load(&self.slabs[1][block], 0)];
        let [a, b] = self.slab_weights;
        sum += physics::second_difference(centre, lower, upper, a, b);
        physics::relax(centre, physics::residual(Lanes(self.rhs[block]), sum), step)
    }
}

impl<T: RealScalar, const ROWS: bool> RelaxInPlace<'_, T, ROWS> {
    #[inline(always)]
    fn stretch<const N: usize, const UNIFORM: bool>(&mut self, at: Range<usize>) {
        let count = at.len() / N;
        if count == 0 {
            return;
        }
        let Neighbours { slabs, slab_weights, rows, row_weights, .. } = self.row;
        let (west, east) = (blocks(&self.operator.west, at.start, count), blocks(&self.operator.east, at.start, count));
        let (rhs, step) = (blocks(self.rhs, at.start, count), blocks(self.step, at.start, count));
        let omega = Lanes::splat(self.omega);
        let work = Blocks::<T, N> {
            slabs: [blocks(slabs[0], at.start, count), blocks(slabs[1], at.start, count)],
            slab_weights: [Lanes::splat(slab_weights.0), Lanes::splat(slab_weights.1)],
            rows: [blocks(rows[0], at.start, count), blocks(rows[1], at.start, count)],
            row_weights: [Lanes::splat(row_weights.0), Lanes::splat(row_weights.1)],
            west,
            east,
            rhs,
            step,
            omega,
            first: [Lanes(west[0]), Lanes(east[0]), omega * Lanes(step[0])],
        };
        let line = &mut self.line[at.start..][..count * N + 2 * PAD];
        // A block is written when the next one has been read: a load that takes in part of what was just stored waits
        // until it has left for the cache.
        let mut relaxed = work.relaxed::<ROWS, UNIFORM>(line, 0);
        for block in 1..count {
            let next = work.relaxed::<ROWS, UNIFORM>(line, block);
            store(line, (block - 1) * N + PAD, relaxed);
            relaxed = next;
        }
        store(line, (count - 1) * N + PAD, relaxed);
    }

    #[inline(always)]
    fn lanes<const N: usize>(&mut self) {
        let [west, middle, east] = stretches(self.operator, self.rhs.len());
        self.stretch::<N, false>(west);
        self.stretch::<N, true>(middle);
        self.stretch::<N, false>(east);
    }
}

impl<T: RealScalar, const ROWS: bool> Work for RelaxInPlace<'_, T, ROWS> {
    type Out = ();

    #[inline(always)]
    fn run(mut self) {
        // A register of AVX-512.
        if size_of::<T>() == 4 { self.lanes::<16>() } else { self.lanes::<8>() }
    }
}
