//! The direct solver on the processor.
//!
//! The array of the solution is all that is worked on: rows are transformed into it, eliminated, substituted back and
//! transformed back in place, a batch of planes at a time that stays in the cache (a plane is a row of x in the plane
//! problem, an x-y plane in space). So the grid streams through memory once up and once down. Within a batch the rows, and
//! then the modes, are shared among the threads; no sum runs across threads, so their number does not change a bit.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rustfft::num_complex::Complex;
use zellige_engine::device::Cpu;
use zellige_engine::parallel::{chunks, chunks_mut, each, items_mut};

use super::line::{Lines, WIDTH};
use super::relax::Field;
use super::transform::{Kind, SMALL, Scalar, Scratch, Transform, angles};
use super::turn;
use super::wide::wide;
use super::zero_mode;
use crate::grid::Grid;
use crate::stages::Norms;

/// Modes of a row that one task eliminates; whole blocks of tables.
const STRETCH: usize = 16 * WIDTH;
/// Line pairs of the middle axis that are gathered together: 128 or 64 bytes of every row.
const PAIRS: usize = 8;
/// Bytes of a batch per thread: about half of a second-level cache.
const BATCH: usize = 1 << 19;

/// One thread's buffers.
#[derive(Debug, Default)]
struct Worker<T> {
    scratch: Scratch<T>,
    lines: Vec<Complex<T>>,
    modes: Vec<Complex<T>>,
}

/// A planned problem in the number type `T`.
pub(super) struct Solver<T> {
    cpu: Cpu,
    /// Nodes along x, the middle axis (1 in the plane) and the last axis.
    nodes: [usize; 3],
    /// Unknowns along the same.
    unknowns: [Range<usize>; 3],
    x: Transform<T>,
    middle: Transform<T>,
    lines: Lines<T>,
    /// `-h^2` of the last axis.
    scale: f64,
    /// Singular problems: place of the constant mode in a plane, and what its system needs.
    zero: Option<(usize, zero_mode::Ends)>,
    field: Field,
    u: Vec<T>,
    f: Vec<T>,
    /// Where a sweep leaves its result; empty before the first one.
    relaxed: Vec<T>,
    carry: Vec<T>,
    border: Vec<T>,
    workers: Vec<Mutex<Worker<T>>>,
}

/// The rows of a stretch of modes, and what is carried from row to row.
struct Stretch<'a, T> {
    rows: Vec<(usize, &'a mut [T])>,
    block: usize,
    carry: &'a mut [T],
    border: &'a mut [T],
}

impl<T: Scalar> Solver<T> {
    pub(super) fn new(grid: &Grid, cpu: &Cpu) -> Self {
        let axes = super::ordered(grid);
        let (x, middle) = (Transform::new(axes[0]), Transform::new(axes[1]));
        let nodes = axes.map(|a| a.nodes);
        let unknowns = axes.map(crate::grid::Axis::unknowns);
        let lambda = super::deltas(axes, SMALL);
        let lines = Lines::new(axes[2], (0..middle.len()).map(|q| lambda[0].iter().map(|d| d + lambda[1][q]).collect()));
        let zero = grid.singular().then(|| {
            let at = |d: usize| angles(Kind::of(axes[d]), axes[d].intervals(), SMALL).iter().position(|p| *p == 0.0).unwrap_or(0);
            ((unknowns[1].start + at(1)) * nodes[0] + unknowns[0].start + at(0), zero_mode::Ends::of(axes[2]))
        });
        let modes = x.len() * middle.len();
        let workers = (0..cpu.threads()).map(|_| Mutex::new(Self::worker(&x, &middle))).collect();
        Self {
            cpu: cpu.clone(),
            nodes,
            unknowns,
            x,
            middle,
            lines,
            scale: -axes[2].h * axes[2].h,
            zero,
            field: Field::new(axes),
            relaxed: Vec::new(),
            u: vec![T::ZERO; grid.len()],
            f: vec![T::ZERO; grid.len()],
            carry: vec![T::ZERO; modes],
            border: vec![T::ZERO; modes],
            workers,
        }
    }

    fn worker(x: &Transform<T>, middle: &Transform<T>) -> Worker<T> {
        let mut worker = Worker::default();
        x.reserve(&mut worker.scratch);
        middle.reserve(&mut worker.scratch);
        let len = x.len().max(PAIRS * middle.len());
        worker.lines.resize(len, Complex::new(T::ZERO, T::ZERO));
        worker.modes.clone_from(&worker.lines);
        worker
    }

    pub(super) fn memory(&self) -> u64 {
        let values = self.u.len() + self.f.len() + self.relaxed.len() + self.carry.len() + self.border.len();
        (values * size_of::<T>()) as u64 + self.lines.memory()
    }

    /// Takes values over all nodes of `grid`, whose axis `turn` and last one have changed places in the solver's; those of
    /// Dirichlet nodes of `u` go into the neighbours' right-hand sides.
    pub(super) fn load(&mut self, u: &[f64], f: &[f64], grid: &Grid, turn: Option<usize>) {
        self.relaxed = Vec::new();
        self.cpu.install(|| {
            turn::copy(grid, turn, u, &mut self.u, T::of);
            turn::copy(grid, turn, f, &mut self.f, T::of);
        });
        let stride = turn::strides(grid, turn);
        let n = grid.nodes();
        super::fold_boundary(grid, u, |node, value| {
            let place = node % n[0] * stride[0] + node / n[0] % n[1] * stride[1] + node / (n[0] * n[1]) * stride[2];
            self.f[place] -= T::of(value);
        });
    }

    /// The solution over all nodes of `grid`, as [`Solver::load`] took it.
    pub(super) fn solution(&self, grid: &Grid, turn: Option<usize>) -> Vec<f64> {
        let mut solution = vec![0.0; self.u.len()];
        self.cpu.install(|| turn::copy(&turn::grid(grid, turn), turn, &self.u, &mut solution, T::to_f64));
        solution
    }

    /// Norms of the residual of what was loaded.
    pub(super) fn norms(&self) -> Norms {
        self.cpu.install(|| self.field.norms(&self.u, &self.f))
    }

    /// A sweep of damped Jacobi on the solution.
    pub(super) fn polish(&mut self, omega: f64) {
        if self.relaxed.is_empty() {
            self.relaxed.clone_from(&self.u);
        }
        let Self { cpu, field, u, f, relaxed, .. } = self;
        cpu.install(|| field.relax(u, f, relaxed, omega));
        std::mem::swap(u, relaxed);
    }

    fn plane(&self) -> usize {
        self.nodes[0] * self.nodes[1]
    }

    /// Planes of a batch, a multiple of [`Solver::group`].
    fn batch(&self) -> usize {
        let planes = BATCH * self.cpu.threads() / (self.plane() * size_of::<T>());
        let least = self.group() * self.cpu.threads();
        planes.max(least).next_multiple_of(least)
    }

    /// Planes that one task transforms: a pair of rows, or an x-y plane.
    fn group(&self) -> usize {
        if self.nodes[1] == 1 { 2 } else { 1 }
    }

    /// Solves what was loaded. Returns the mean that was taken off the right-hand side of a singular problem.
    pub(super) fn solve(&mut self) -> f64 {
        let cpu = self.cpu.clone();
        let (mut u, f) = (std::mem::take(&mut self.u), std::mem::take(&mut self.f));
        let (mut carry, mut border) = (std::mem::take(&mut self.carry), std::mem::take(&mut self.border));
        let removed = cpu.install(|| self.solve_on(&mut u, &f, &mut carry, &mut border));
        (self.u, self.f, self.carry, self.border) = (u, f, carry, border);
        removed
    }

    fn solve_on(&self, u: &mut [T], f: &[T], carry: &mut [T], border: &mut [T]) -> f64 {
        let (plane, rows) = (self.plane(), self.unknowns[2].clone());
        let batches: Vec<_> = rows.clone().step_by(self.batch()).map(|l| l..rows.end.min(l + self.batch())).collect();
        let mut column = Vec::with_capacity(rows.len());
        carry.fill(T::ZERO);
        for batch in &batches {
            let span = batch.start * plane..batch.end * plane;
            let (planes, f) = (&mut u[span.clone()], &f[span]);
            let size = self.group() * plane;
            each((chunks_mut(planes, size), chunks(f, size)), |_, (u, f)| self.with_worker(|w| self.analyse(u, f, w)));
            if let Some((place, _)) = &self.zero {
                column.extend(planes.chunks(plane).map(|p| p[*place].to_f64()));
            }
            each(items_mut(&mut self.stretches(planes, batch.start, carry, border)), |_, s| {
                wide(|| s.rows.iter_mut().for_each(|(l, row)| self.lines.eliminate(*l, s.block, row, s.carry, s.border)));
            });
        }
        let removed = self.zero.as_ref().map_or(0.0, |(_, ends)| ends.solve(&mut column) / self.scale);
        self.stretches(&mut [], 0, carry, border).iter_mut().for_each(|s| self.lines.close(s.block, s.border));
        carry.fill(T::ZERO);
        for batch in batches.iter().rev() {
            let planes = &mut u[batch.start * plane..batch.end * plane];
            each(items_mut(&mut self.stretches(planes, batch.start, carry, border)), |_, s| {
                wide(|| s.rows.iter_mut().rev().for_each(|(l, row)| self.lines.substitute(*l, s.block, row, s.carry, s.border)));
            });
            if let Some((place, _)) = &self.zero {
                for (p, value) in planes.chunks_mut(plane).zip(&column[batch.start - rows.start..]) {
                    p[*place] = T::of(*value);
                }
            }
            each(chunks_mut(planes, self.group() * plane), |_, u| self.with_worker(|w| self.synthesise(u, w)));
        }
        removed
    }

    fn with_worker(&self, work: impl FnOnce(&mut Worker<T>)) {
        let thread = rayon::current_thread_index().unwrap_or(0);
        let mut worker = self.workers[thread].lock().unwrap_or_else(PoisonError::into_inner);
        wide(|| work(&mut worker));
    }

    /// The rows of a batch cut into stretches of modes.
    fn stretches<'a>(&self, planes: &'a mut [T], first: usize, carry: &'a mut [T], border: &'a mut [T]) -> Vec<Stretch<'a, T>> {
        let (len, blocks) = (self.x.len(), self.x.len().div_ceil(WIDTH));
        let mut all: Vec<_> = carry
            .chunks_mut(len)
            .zip(border.chunks_mut(len))
            .enumerate()
            .flat_map(|(row, (carry, border))| {
                carry.chunks_mut(STRETCH).zip(border.chunks_mut(STRETCH)).enumerate().map(move |(i, (carry, border))| Stretch {
                    rows: Vec::new(),
                    block: row * blocks + i * (STRETCH / WIDTH),
                    carry,
                    border,
                })
            })
            .collect();
        for (l, plane) in planes.chunks_mut(self.plane()).enumerate() {
            let rows = plane.chunks_mut(self.nodes[0]).skip(self.unknowns[1].start).take(self.unknowns[1].len());
            let pieces = rows.flat_map(|row| row[self.unknowns[0].clone()].chunks_mut(STRETCH));
            pieces.zip(&mut all).for_each(|(piece, stretch)| stretch.rows.push((first + l, piece)));
        }
        all
    }

    /// Transforms the right-hand sides of some planes into the modes.
    #[inline(always)]
    fn analyse(&self, u: &mut [T], f: &[T], worker: &mut Worker<T>) {
        let x = self.unknowns[0].clone();
        let Worker { scratch, lines, modes } = worker;
        let (line, mode) = (&mut lines[..x.len()], &mut modes[..x.len()]);
        let mut rows = self.rows(u);
        for pair in rows.chunks_mut(2) {
            let from = |row: usize| &f[row * self.nodes[0]..][x.clone()];
            let first = from(pair[0].0);
            match pair.get(1) {
                Some((second, _)) => pack(first, from(*second), line),
                None => line.iter_mut().zip(first).for_each(|(z, a)| *z = Complex::new(*a, T::ZERO)),
            }
            self.x.forward(line, mode, self.scale, scratch);
            unpack(mode, pair, &x);
        }
        if self.nodes[1] > 1 {
            self.across(u, lines, modes, |line, mode| self.middle.forward(line, mode, 1.0, scratch));
        }
    }

    /// Transforms the modes of some planes into the solution.
    #[inline(always)]
    fn synthesise(&self, u: &mut [T], worker: &mut Worker<T>) {
        let x = self.unknowns[0].clone();
        let Worker { scratch, lines, modes } = worker;
        if self.nodes[1] > 1 {
            self.across(u, modes, lines, |mode, line| self.middle.backward(mode, line, scratch));
        }
        let (line, mode) = (&mut lines[..x.len()], &mut modes[..x.len()]);
        let mut rows = self.rows(u);
        for pair in rows.chunks_mut(2) {
            match pair {
                [(_, a), (_, b)] => pack(&a[x.clone()], &b[x.clone()], mode),
                [(_, a)] => mode.iter_mut().zip(&a[x.clone()]).for_each(|(z, a)| *z = Complex::new(*a, T::ZERO)),
                _ => {}
            }
            self.x.backward(mode, line, scratch);
            unpack(line, pair, &x);
        }
    }

    /// The rows of unknowns of some planes, with their number.
    fn rows<'a>(&self, u: &'a mut [T]) -> Vec<(usize, &'a mut [T])> {
        let (nodes, unknowns) = (self.nodes[1], self.unknowns[1].clone());
        u.chunks_mut(self.nodes[0]).enumerate().filter(|(row, _)| unknowns.contains(&(row % nodes))).collect()
    }

    /// Applies `work(from, to)` to the lines of the middle axis of a plane, neighbouring pairs of them as complex lines.
    #[inline(always)]
    fn across(
        &self,
        plane: &mut [T],
        from: &mut [Complex<T>],
        to: &mut [Complex<T>],
        mut work: impl FnMut(&mut [Complex<T>], &mut [Complex<T>]),
    ) {
        let (stride, len) = (self.nodes[0], self.middle.len());
        let start = self.unknowns[1].start * stride;
        let x = self.unknowns[0].clone();
        let mut at = x.start;
        while at < x.end {
            let columns = (2 * PAIRS).min(x.end - at);
            for l in 0..len {
                let row = &plane[start + l * stride + at..][..columns];
                for (p, pair) in row.chunks(2).enumerate() {
                    from[p * len + l] = Complex::new(pair[0], *pair.get(1).unwrap_or(&T::ZERO));
                }
            }
            for (from, to) in from.chunks_mut(len).zip(to.chunks_mut(len)).take(columns.div_ceil(2)) {
                work(from, to);
            }
            for l in 0..len {
                let row = &mut plane[start + l * stride + at..][..columns];
                for (p, pair) in row.chunks_mut(2).enumerate() {
                    let z = to[p * len + l];
                    pair[0] = z.re;
                    if let Some(second) = pair.get_mut(1) {
                        *second = z.im;
                    }
                }
            }
            at += columns;
        }
    }
}

#[inline(always)]
fn pack<T: Scalar>(a: &[T], b: &[T], z: &mut [Complex<T>]) {
    for ((z, a), b) in z.iter_mut().zip(a).zip(b) {
        *z = Complex::new(*a, *b);
    }
}

#[inline(always)]
fn unpack<T: Scalar>(z: &[Complex<T>], rows: &mut [(usize, &mut [T])], x: &Range<usize>) {
    match rows {
        [(_, a), (_, b)] => {
            for ((z, a), b) in z.iter().zip(&mut a[x.clone()]).zip(&mut b[x.clone()]) {
                (*a, *b) = (z.re, z.im);
            }
        }
        [(_, a)] => z.iter().zip(&mut a[x.clone()]).for_each(|(z, a)| *a = z.re),
        _ => {}
    }
}
