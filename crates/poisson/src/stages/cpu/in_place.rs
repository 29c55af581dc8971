//! A relaxation of one colour in place: half of the memory that is touched where it reads one array and writes another.
//!
//! The nodes of a colour have neighbours of the other colour only, which the relaxation leaves alone; so what it reads is
//! the same, before and after. (Not across the seam of a periodic axis of odd length: `pass` sees to that.)

use std::ops::Range;

use zellige_engine::real::{Lanes, Real, RealScalar};

use super::field::PAD;
use super::isa::Work;
use super::rows::{Neighbours, RowSums, stretches};
use super::tables::Operator;
use crate::physics;

/// `u += omega / d (A u - rhs)` on the nodes of a row where `step` is not 0.
pub(super) struct RelaxInPlace<'a, T, const ROWS: bool> {
    pub operator: &'a Operator<T>,
    /// The row with its padding on both sides.
    pub line: &'a mut [T],
    /// Neighbouring rows; `centre` is not read.
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
    /// The nodes of a block of `line`, which starts a padding before the stretch; their defects; and `omega / d`.
    #[inline(always)]
    fn defects<const ROWS: bool, const UNIFORM: bool>(&self, line: &[T], block: usize) -> [Lanes<T, N>; 3] {
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
        [centre, physics::residual(Lanes(self.rhs[block]), sum), step]
    }

    /// The relaxed nodes of a block.
    #[inline(always)]
    fn relaxed<const ROWS: bool, const UNIFORM: bool>(&self, line: &[T], block: usize) -> Lanes<T, N> {
        let [centre, defect, step] = self.defects::<ROWS, UNIFORM>(line, block);
        physics::relax(centre, defect, step)
    }
}

/// A row with the rows around it, in the same memory, where nothing varies along it but the values.
pub(super) struct UniformRows<'a, T> {
    /// The row before, the row and the row after, each with its padding.
    pub lines: &'a mut [T],
    /// Values from row to row.
    pub stride: usize,
    /// The padded row of the right-hand side.
    pub rhs: &'a [T],
    /// Weights west and east, of the row before and the row after.
    pub weights: [T; 4],
    /// `1 / d` or 0 in a block, `PAD` values.
    pub step: &'a [T],
    pub omega: T,
}

/// The blocks of [`UniformRows`] in registers of `N` lanes.
struct UniformBlocks<'a, T, const N: usize> {
    before: &'a [[T; N]],
    after: &'a [[T; N]],
    rhs: &'a [[T; N]],
    west: Lanes<T, N>,
    east: Lanes<T, N>,
    lower: Lanes<T, N>,
    upper: Lanes<T, N>,
    step: Lanes<T, N>,
}

impl<T: RealScalar, const N: usize> UniformBlocks<'_, T, N> {
    /// The relaxed nodes of a block of `line`, which starts a padding before the stretch.
    #[inline(always)]
    fn relaxed(&self, line: &[T], block: usize) -> Lanes<T, N> {
        let line = &line[block * N..][..N + 2 * PAD];
        let (a, centre, b) = (load(line, PAD - 1), load(line, PAD), load(line, PAD + 1));
        let mut sum = physics::second_difference(centre, a, b, self.west, self.east);
        let (a, b) = (load(&self.before[block], 0), load(&self.after[block], 0));
        sum += physics::second_difference(centre, a, b, self.lower, self.upper);
        physics::relax(centre, physics::residual(load(&self.rhs[block], 0), sum), self.step)
    }
}

impl<T: RealScalar> UniformRows<'_, T> {
    /// Relaxes as [`RelaxInPlace::over`] does, with fewer lookups.
    #[inline(always)]
    pub(super) fn over<const N: usize>(self, columns: &Range<usize>) {
        let (start, count) = (columns.start, (columns.end - columns.start) / N);
        let (before, rest) = self.lines.split_at_mut(self.stride);
        let (line, after) = rest.split_at_mut(self.stride);
        let work = UniformBlocks::<T, N> {
            before: blocks(before, PAD + start, count),
            after: blocks(after, PAD + start, count),
            rhs: blocks(self.rhs, PAD + start, count),
            west: Lanes::splat(self.weights[0]),
            east: Lanes::splat(self.weights[1]),
            lower: Lanes::splat(self.weights[2]),
            upper: Lanes::splat(self.weights[3]),
            step: Lanes::splat(self.omega) * Lanes::load(self.step),
        };
        let line = &mut line[start..][..count * N + 2 * PAD];
        let mut last = work.relaxed(line, 0);
        for block in 1..count {
            let next = work.relaxed(line, block);
            store(line, (block - 1) * N + PAD, last);
            last = next;
        }
        store(line, (count - 1) * N + PAD, last);
    }
}

#[inline(always)]
fn common(at: &Range<usize>, columns: &Range<usize>) -> Range<usize> {
    at.start.clamp(columns.start, columns.end)..at.end.clamp(columns.start, columns.end)
}

/// `stretches` as far as they lie in `columns`.
#[inline(always)]
fn clipped_ranges<T>(operator: &Operator<T>, columns: &Range<usize>, n: usize) -> [Range<usize>; 3] {
    let [west, middle, east] = stretches(operator, n);
    [common(&west, columns), common(&middle, columns), common(&east, columns)]
}

impl<'a, T: RealScalar, const ROWS: bool> RelaxInPlace<'a, T, ROWS> {
    /// The blocks of a stretch that is not empty.
    #[inline(always)]
    fn blocks<const N: usize>(&self, at: &Range<usize>) -> Blocks<'a, T, N> {
        let count = at.len() / N;
        let Neighbours { slabs, slab_weights, rows, row_weights, .. } = self.row;
        let (west, east) = (blocks(&self.operator.west, at.start, count), blocks(&self.operator.east, at.start, count));
        let (rhs, step) = (blocks(self.rhs, at.start, count), blocks(self.step, at.start, count));
        let omega = Lanes::splat(self.omega);
        Blocks {
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
        }
    }

    #[inline(always)]
    fn stretch<const N: usize, const UNIFORM: bool>(&mut self, at: Range<usize>) {
        let count = at.len() / N;
        if count == 0 {
            return;
        }
        let work = self.blocks::<N>(&at);
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
    fn lanes<const N: usize>(&mut self, columns: &Range<usize>) {
        let [west, middle, east] = clipped_ranges(self.operator, columns, self.rhs.len());
        self.stretch::<N, false>(west);
        self.stretch::<N, true>(middle);
        self.stretch::<N, false>(east);
    }

    /// The relaxation on `columns` alone, from one whole block to another.
    #[inline(always)]
    pub(super) fn over(&mut self, columns: &Range<usize>) {
        // A register of AVX-512.
        if size_of::<T>() == 4 { self.lanes::<16>(columns) } else { self.lanes::<8>(columns) }
    }

    #[inline(always)]
    fn add<const N: usize, const UNIFORM: bool>(&self, at: Range<usize>, unit: T, sums: &mut LaneSums<T, N>) {
        let count = at.len() / N;
        if count == 0 {
            return;
        }
        let (work, unit) = (self.blocks::<N>(&at), Lanes::splat(unit));
        let volumes = blocks::<T, N>(&self.operator.volume_x, at.start, count);
        let line = &self.line[at.start..][..count * N + 2 * PAD];
        // Squares below the normal numbers would take a hundred times as long; so far below the largest value nothing is lost.
        // What is not a number stays so.
        let negligible = T::from_f64(if size_of::<T>() == 4 { 1e-18 } else { 1e-150 });
        for block in 0..count {
            let [centre, defect, scale] = work.defects::<ROWS, UNIFORM>(line, block);
            let volume = Lanes(if UNIFORM { volumes[0] } else { volumes[block] });
            let [mut r, mut u] = [scale * defect, unit * centre];
            for i in 0..N {
                r.0[i] = Real::max(negligible, r.0[i].abs()) - negligible;
            }
            for i in 0..N {
                u.0[i] = Real::max(negligible, u.0[i].abs()) - negligible;
            }
            let mut max: Lanes<T, N> = load(&sums.max, 0);
            for i in 0..N {
                max.0[i] = Real::max(r.0[i], max.0[i]);
            }
            store(&mut sums.max, 0, max);
            let r2 = load(&sums.r2, 0) + volume * (r * r);
            store(&mut sums.r2, 0, r2);
            let u2 = load(&sums.u2, 0) + volume * (u * u);
            store(&mut sums.u2, 0, u2);
        }
    }

    #[inline(always)]
    fn lane_sums<const N: usize>(&self, columns: &Range<usize>, unit: T) -> RowSums {
        let [west, middle, east] = clipped_ranges(self.operator, columns, self.rhs.len());
        let mut sums = LaneSums { r2: [T::ZERO; N], u2: [T::ZERO; N], max: [T::ZERO; N] };
        // In memory that others might look at: kept as numbers by themselves they are put together from pieces of registers, at
        // four times the cost.
        let sums = std::hint::black_box(&mut sums);
        self.add::<N, false>(west, unit, sums);
        self.add::<N, true>(middle, unit, sums);
        self.add::<N, false>(east, unit, sums);
        let mut row = RowSums::default();
        for i in 0..N {
            row.r2 += sums.r2[i].to_f64();
            row.u2 += sums.u2[i].to_f64();
            row.max = row.max.max(sums.max[i].to_f64());
        }
        row
    }

    /// Instead of relaxing, the sums of `(omega step (rhs - A u))^2` and `(unit u)^2` on `columns`, weighted by the volumes along
    /// x, and the largest residual; that of the residual itself is left out.
    #[inline(always)]
    pub(super) fn sums(&self, columns: &Range<usize>, unit: T) -> RowSums {
        if size_of::<T>() == 4 { self.lane_sums::<16>(columns, unit) } else { self.lane_sums::<8>(columns, unit) }
    }
}

/// Sums over a row, lane by lane.
struct LaneSums<T, const N: usize> {
    r2: [T; N],
    u2: [T; N],
    max: [T; N],
}

impl<T: RealScalar, const ROWS: bool> Work for RelaxInPlace<'_, T, ROWS> {
    type Out = ();

    #[inline(always)]
    fn run(mut self) {
        let columns = 0..self.rhs.len();
        self.over(&columns);
    }
}
