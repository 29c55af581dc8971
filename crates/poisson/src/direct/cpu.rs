//! The direct solver on the CPU.
//!
//! The array of the solution is all that is worked on: rows are transformed into it, eliminated, substituted back and
//! transformed back in place, a batch of planes at a time that stays in the cache (a plane is a row of x in the plane
//! problem, an x-y plane in space). So the grid streams through memory once up and once down. Within a batch the rows, and
//! then the modes, are shared among the threads; no sum runs across threads, so their number does not change a bit.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustfft::num_complex::Complex;
use zellige_engine::device::Cpu;
use zellige_engine::error::Result;
use zellige_engine::large::zeros;
use zellige_engine::parallel::{chunks, chunks_mut, each, items, items_mut, thread};

use super::axis_swap::Turn;
use super::line::{Lines, WIDTH};
use super::relax::{Field, Row};
use super::transform::{SMALL, Scalar, Scratch, Transform, TransformType, angles};
use super::zero_mode;
use crate::fold::copy;
use crate::grid::Grid;
use crate::isa::{Isa, Run};
use crate::stages::{HostShare, Norms};

mod mode_range;
mod parts;
mod planes;

use mode_range::{Elimination, ModeRanges, Substitution};

/// Line pairs of the middle axis that are gathered together: 128 or 64 bytes of every row.
const PAIRS: usize = 8;
/// Bytes of a batch per thread: about half of a second-level cache.
const BATCH: usize = 1 << 19;

/// One thread's buffers.
#[derive(Debug, Default)]
struct ThreadBuffers<T> {
    scratch: Scratch<T>,
    lines: Vec<Complex<T>>,
    modes: Vec<Complex<T>>,
}

/// A planned problem in the number type `T`.
pub(super) struct Solver<T> {
    cpu: Cpu,
    isa: Isa,
    /// Planes by part of a run.
    share: HostShare,
    /// Nodes along x, the middle axis (1 in the plane) and the last axis.
    nodes: [usize; 3],
    /// Unknowns along the same.
    unknowns: [Range<usize>; 3],
    x: Transform<T>,
    middle: Transform<T>,
    lines: Lines<T>,
    /// `-h^2` of the last axis.
    scale: f64,
    /// Singular problems: index of the constant mode in a plane, and what its system needs.
    zero: Option<(usize, zero_mode::LineEnds)>,
    field: Field,
    /// The system's own arrays; empty as long as it works on lent ones.
    u: Vec<T>,
    f: Vec<T>,
    /// Result of a sweep; empty before the first one.
    relaxed: Vec<T>,
    carry: Vec<T>,
    border: Vec<T>,
    workers: Vec<Mutex<ThreadBuffers<T>>>,
}

impl<T: Scalar> Solver<T> {
    /// Plans for a grid of whose planes across the last axis a part has its share.
    pub(super) fn new(grid: &Grid, cpu: &Cpu, share: HostShare) -> Self {
        let axes = super::ordered(grid);
        let (x, middle) = (Transform::new(axes[0]), Transform::new(axes[1]));
        let nodes = axes.map(|a| a.nodes);
        let unknowns = axes.map(crate::grid::Axis::unknowns);
        let lambda = super::deltas(axes, SMALL);
        let lines = Lines::new(axes[2], (0..middle.len()).map(|q| lambda[0].iter().map(|d| d + lambda[1][q]).collect()));
        let zero = grid.singular().then(|| {
            let at = |d: usize| angles(TransformType::of(axes[d]), axes[d].intervals(), SMALL).iter().position(|p| *p == 0.0).unwrap_or(0);
            ((unknowns[1].start + at(1)) * nodes[0] + unknowns[0].start + at(0), zero_mode::LineEnds::of(axes[2]))
        });
        let modes = x.len() * middle.len();
        let workers = (0..cpu.threads()).map(|_| Mutex::new(Self::new_buffers(&x, &middle))).collect();
        Self {
            cpu: cpu.clone(),
            isa: Isa::best(),
            share,
            nodes,
            unknowns,
            x,
            middle,
            lines,
            scale: -axes[2].h * axes[2].h,
            zero,
            field: Field::new(axes),
            relaxed: Vec::new(),
            u: Vec::new(),
            f: Vec::new(),
            carry: vec![T::ZERO; modes],
            border: vec![T::ZERO; modes],
            workers,
        }
    }

    fn new_buffers(x: &Transform<T>, middle: &Transform<T>) -> ThreadBuffers<T> {
        let mut new_buffers = ThreadBuffers::default();
        x.reserve(&mut new_buffers.scratch);
        middle.reserve(&mut new_buffers.scratch);
        let len = x.len().max(PAIRS * middle.len());
        new_buffers.lines.resize(len, Complex::new(T::ZERO, T::ZERO));
        new_buffers.modes.clone_from(&new_buffers.lines);
        new_buffers
    }

    pub(super) fn memory(&self) -> u64 {
        let values = self.u.len() + self.f.len() + self.relaxed.len() + self.carry.len() + self.border.len();
        (values * size_of::<T>()) as u64 + self.lines.memory()
    }

    /// Takes values over all nodes of `grid`, whose axis `swapped` and last one have changed places in the solver's; those of
    /// Dirichlet nodes of `u` go into the neighbours' right-hand sides. A part has values on its slabs of `grid`.
    pub(super) fn load(&mut self, u: &[f64], f: &[f64], grid: &Grid, turn: &Turn) -> Result<()> {
        self.relaxed = Vec::new();
        if self.u.is_empty() {
            (self.u, self.f) = (zeros(grid.len()), zeros(grid.len()));
        }
        let cpu = self.cpu.clone();
        cpu.install(|| {
            turn.there(grid, u, (&mut self.u, &self.share), T::of)?;
            let (n, stride, given) = (grid.nodes(), turn.strides(grid), turn.given(grid.len()));
            if !turn.between_parts() {
                turn.there(grid, f, (&mut self.f, &self.share), T::of)?;
                super::fold_boundary(grid, u, &given, |node, value| {
                    let place = node % n[0] * stride[0] + node / n[0] % n[1] * stride[1] + node / (n[0] * n[1]) * stride[2];
                    self.f[place] -= T::of(value);
                });
                return Ok(());
            }
            // Sides belong to the part that has the slab.
            let mut folded = zeros::<T>(grid.len());
            each((items_mut(&mut folded[given.clone()]), items(&f[given.clone()])), |_, (to, from)| *to = T::of(*from));
            super::fold_boundary(grid, u, &given, |node, value| folded[node] -= T::of(value));
            turn.there(grid, &folded, (&mut self.f, &self.share), |v| v)
        })
    }

    /// The solution over all nodes of `grid`, as [`Solver::load`] took it.
    pub(super) fn solution(&self, grid: &Grid, turn: &Turn) -> Result<Vec<f64>> {
        let mut solution = zeros(self.u.len());
        self.cpu.install(|| turn.back(grid, (&self.u, &self.share), &mut solution, T::to_f64))?;
        Ok(solution)
    }

    /// Norms of the residual of the loaded problem.
    pub(super) fn norms(&mut self) -> Result<Norms> {
        let (mut u, cpu) = (std::mem::take(&mut self.u), self.cpu.clone());
        let norms = cpu.install(|| self.norms_of(&mut u, &self.f));
        self.u = u;
        norms
    }

    /// A sweep of damped Jacobi on the solution.
    pub(super) fn polish(&mut self, omega: f64) -> Result<()> {
        let planes = self.share.own(self.nodes[2]);
        if self.relaxed.is_empty() {
            // With the values of Dirichlet sides.
            self.relaxed = zeros(self.u.len());
            let own = planes.start * self.plane()..planes.end * self.plane();
            self.cpu.install(|| copy(&self.u[own.clone()], &mut self.relaxed[own.clone()]));
        }
        let Self { cpu, isa, share, field, u, f, relaxed, .. } = self;
        cpu.install(|| {
            share.copy_beside(u)?;
            field.relax(u, f, (relaxed, planes), omega, *isa);
            Ok(())
        })?;
        std::mem::swap(u, relaxed);
        Ok(())
    }

    /// Does [`Solver::polish`] and [`Solver::norms`] on lent arrays.
    pub(super) fn polish_borrowed(&mut self, f: &[T], u: &mut [T], omega: f64) -> Result<Norms> {
        self.relaxed.resize(u.len(), T::ZERO);
        self.relaxed.copy_from_slice(u);
        let planes = 0..self.nodes[2];
        self.cpu.install(|| {
            self.field.relax(&self.relaxed, f, (u, planes), omega, self.isa);
            self.norms_of(u, f)
        })
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

    /// Solves the loaded problem. Returns the mean that was subtracted from the right-hand side of a singular problem and, if
    /// `measured`, the norms of the residual, as [`Solver::norms`] gives them: rows are summed while the cache has them.
    pub(super) fn solve(&mut self, measured: bool) -> Result<(f64, Option<Norms>)> {
        let (mut u, f) = (std::mem::take(&mut self.u), std::mem::take(&mut self.f));
        let result = self.solve_borrowed(&f, &mut u, measured);
        (self.u, self.f) = (u, f);
        result
    }

    /// Solves as [`Solver::solve`] does, for a right-hand side that includes the values of Dirichlet sides, into `u`, of which
    /// Dirichlet nodes are not touched. Both cover all nodes of the solver's grid.
    pub(super) fn solve_borrowed(&mut self, f: &[T], u: &mut [T], measured: bool) -> Result<(f64, Option<Norms>)> {
        assert!(u.len() == f.len() && u.len() == self.plane() * self.nodes[2], "arrays cover all nodes of the grid");
        let cpu = self.cpu.clone();
        let (mut carry, mut border) = (std::mem::take(&mut self.carry), std::mem::take(&mut self.border));
        let result = cpu.install(|| {
            if self.share.divided() {
                self.solve_in_parts(u, f, &mut carry, &mut border, measured)
            } else {
                Ok(self.solve_on(u, f, &mut carry, &mut border, measured))
            }
        });
        (self.carry, self.border) = (carry, border);
        result
    }

    fn solve_on(&self, u: &mut [T], f: &[T], carry: &mut [T], border: &mut [T], measured: bool) -> (f64, Option<Norms>) {
        let (plane, rows) = (self.plane(), self.unknowns[2].clone());
        let batches: Vec<_> = rows.clone().step_by(self.batch()).map(|l| l..rows.end.min(l + self.batch())).collect();
        let mut column = Vec::with_capacity(rows.len());
        carry.fill(T::ZERO);
        for batch in &batches {
            let span = batch.start * plane..batch.end * plane;
            let (planes, f) = (&mut u[span.clone()], &f[span]);
            let size = self.group() * plane;
            each((chunks_mut(planes, size), chunks(f, size)), |_, (u, f)| {
                self.analyse(u, f, &mut self.thread_buffers());
            });
            if let Some((place, _)) = &self.zero {
                column.extend(planes.chunks(plane).map(|p| p[*place].to_f64()));
            }
            each(ModeRanges::new(self, planes, batch.start, carry, border), |_, mode_range| {
                self.isa.run(Elimination { lines: &self.lines, mode_range });
            });
        }
        let removed = self.zero.as_ref().map_or(0.0, |(_, ends)| ends.solve(&mut column) / self.scale);
        let blocks = self.x.len().div_ceil(WIDTH);
        border.chunks_mut(self.x.len()).enumerate().for_each(|(row, border)| self.lines.close(row * blocks, border));
        carry.fill(T::ZERO);
        // From which plane on they are measured: the last one of a periodic axis has its neighbour at the other end.
        let (mut sums, mut done) =
            (vec![Row::default(); rows.len() * self.unknowns[1].len()], rows.end - usize::from(self.lines.periodic()));
        let last = done;
        for batch in batches.iter().rev() {
            let planes = &mut u[batch.start * plane..batch.end * plane];
            each(ModeRanges::new(self, planes, batch.start, carry, border), |_, mode_range| {
                self.isa.run(Substitution { lines: &self.lines, mode_range });
            });
            if let Some((place, _)) = &self.zero {
                for (p, value) in planes.chunks_mut(plane).zip(&column[batch.start - rows.start..]) {
                    p[*place] = T::of(*value);
                }
            }
            each(chunks_mut(planes, self.group() * plane), |_, u| {
                self.synthesise(u, &mut self.thread_buffers());
            });
            // The first plane of a batch waits for the one before it.
            let first = if batch.start > rows.start { batch.start + 1 } else { rows.start };
            if measured && first < done {
                self.measure(u, f, first..done, &mut sums);
                done = first;
            }
        }
        if measured {
            self.measure(u, f, last..rows.end, &mut sums);
        }
        (removed, measured.then(|| self.field.total(&sums)))
    }

    /// The sums of the residual of some planes into their places.
    fn measure(&self, u: &[T], f: &[T], planes: Range<usize>, sums: &mut [Row]) {
        let (middle, at) = (self.unknowns[1].len(), planes.start - self.unknowns[2].start);
        sums[at * middle..][..planes.len() * middle].copy_from_slice(&self.field.sums(u, f, self.isa, planes));
    }

    /// The buffers of the current thread.
    fn thread_buffers(&self) -> MutexGuard<'_, ThreadBuffers<T>> {
        self.workers[thread()].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
