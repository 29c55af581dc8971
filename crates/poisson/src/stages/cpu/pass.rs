//! A streaming pass over a level: relaxations, prolongation, residual and restriction (or correction) follow each
//! other by a slab, so that memory is read and written once and the slabs between live in cache.
//!
//! ```text
//! stage 0      makes slab j      of e: from zero by the first relaxation, or from the stored e
//! stage s      makes slab j - s  of e by relaxation s, from slabs j-s-1 .. j-s+1 of stage s-1
//! then         the residual of slab j - S - 1 and the restriction around it, or u += e and the new residual
//! ```
//!
//! Each stage keeps its last slabs in a ring. A relaxation of one colour changes them in place; one of all nodes reads one
//! ring and writes another, and so does a half-sweep where a periodic axis of odd length puts two nodes of the same
//! colour side by side, and one after which the coarse correction is added while its neighbours still want the old values.

use std::cmp::Ordering;
use std::ops::Range;

use zellige_engine::real::RealScalar;

use super::band::{Band, Slabs};
use super::field::{Field, Shape};
use super::in_place::RelaxInPlace;
use super::isa::{Isa, Run};
use super::ring::Scratch;
use super::rows::{AddScaled, Neighbours, OuterResidual, Relax, RelaxZero, Residual};
use super::tables::{AxisTransfer, Colour, Operator};

/// One relaxation of the nodes of one colour.
#[derive(Debug, Clone, Copy)]
pub(super) struct HalfSweep<T> {
    pub colour: Colour,
    pub omega: T,
    /// Chebyshev: part of the last change that is repeated.
    pub momentum: T,
}

/// The correction of the solution at the end of a pass.
pub(super) struct Correct<'a, U> {
    pub operator: &'a Operator<U>,
    pub f: &'a Field<U>,
    /// Unit of the correction.
    pub e_scale: U,
    /// Inverse unit of the residual.
    pub r_scale: U,
    /// Inverse unit of the solution in its norm.
    pub u_scale: U,
}

/// Work of a pass, for all bands.
pub(super) struct Pass<'a, T, U> {
    pub isa: Isa,
    pub shape: Shape,
    /// Periodicity along x, across the rows of a slab and across the slabs.
    pub periodic: [bool; 3],
    /// Slabs of this part.
    pub own: Range<usize>,
    pub operator: &'a Operator<T>,
    /// Start from the stored correction, not from zero.
    pub current: bool,
    pub pre: Vec<HalfSweep<T>>,
    /// The coarse correction that is added between `pre` and `post`, with its transfer.
    pub prolong: Option<(&'a Field<T>, &'a [AxisTransfer<T>; 3])>,
    pub post: Vec<HalfSweep<T>>,
    /// Restrict the residual, to a level of this shape.
    pub restrict: Option<(&'a [AxisTransfer<T>; 3], Shape)>,
    pub correct: Option<Correct<'a, U>>,
}

/// Sums over a slab for the norms.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SlabSums {
    pub r: f64,
    pub r2: f64,
    pub u2: f64,
    pub max: f64,
}

/// The data of one band.
pub(super) struct BandData<'a, T, U> {
    pub first: usize,
    pub end: usize,
    /// Right-hand side of the relaxations; the new residual where the pass corrects.
    pub r: Slabs<'a, T>,
    /// The stored correction, if it is read or written.
    pub e: Option<Slabs<'a, T>>,
    /// A polynomial that continues: the correction a sweep before the stored one, and at the end a sweep before the new one.
    pub previous: Option<Band<'a, T>>,
    pub u: Option<Band<'a, U>>,
    /// The coarse residual: the slabs from `coarse_first` on.
    pub coarse: Option<(&'a mut [T], usize)>,
    pub sums: &'a mut [SlabSums],
    pub scratch: &'a mut Scratch<T>,
}

impl<'a, T: RealScalar, U: RealScalar> Pass<'a, T, U> {
    /// A pass that does nothing yet.
    pub(super) fn new(isa: Isa, shape: Shape, periodic: [bool; 3], own: Range<usize>, operator: &'a Operator<T>) -> Self {
        let (pre, post) = (Vec::new(), Vec::new());
        Self { isa, shape, periodic, own, operator, current: false, pre, prolong: None, post, restrict: None, correct: None }
    }

    /// Stages after the first.
    pub(super) fn last_stage(&self) -> usize {
        self.pre.len() + self.post.len() - self.fused_start()
    }

    /// The ring of each stage, and after them that of the residual.
    pub(super) fn rings(&self) -> Vec<usize> {
        let odd_seam =
            [self.shape.nx, self.shape.rows, self.shape.slabs].iter().zip(self.periodic).any(|(n, periodic)| periodic && n % 2 == 1);
        let prolonged = self.prolong.is_some().then_some(self.prolonged());
        let in_place = |s: usize| {
            let sweep = self.sweep(s);
            !odd_seam && sweep.colour != Colour::All && sweep.momentum == T::ZERO && prolonged != Some(s)
        };
        let mut ring_of = vec![0];
        for s in 1..=self.last_stage() {
            ring_of.push(ring_of[s - 1] + usize::from(!in_place(s)));
        }
        ring_of.push(ring_of[self.last_stage()] + 1);
        ring_of
    }

    /// The stage after which the coarse correction is added.
    fn prolonged(&self) -> usize {
        self.pre.len() - self.fused_start()
    }

    /// The relaxation of stage `s`, from 1.
    fn sweep(&self, s: usize) -> HalfSweep<T> {
        let sweep = s - 1 + self.fused_start();
        if sweep < self.pre.len() { self.pre[sweep] } else { self.post[sweep - self.pre.len()] }
    }

    /// Relaxations in stage 0: none where it reads the stored correction; the first one from zero.
    fn fused_start(&self) -> usize {
        usize::from(!self.current && !self.pre.is_empty())
    }

    /// Returns true if the pass only restricts its right-hand side. (Ghosts of it are not kept on a periodic axis.)
    pub(super) fn only_restricts(&self) -> bool {
        self.restrict.is_some() && !self.current && self.pre.is_empty() && !self.periodic[0]
    }

    /// Slabs beyond the band whose correction is needed.
    pub(super) fn reach(&self) -> usize {
        if self.restrict.is_some() { 2 } else { usize::from(self.correct.is_some()) }
    }

    /// Slabs of the right-hand side and of the stored correction needed beyond the band.
    pub(super) fn halo(&self) -> usize {
        self.reach() + self.last_stage()
    }

    /// The slab itself where the axis ends.
    pub(super) fn neighbour(&self, j: isize, step: isize) -> isize {
        let k = j + step;
        if self.periodic[2] || (0..self.shape.slabs as isize).contains(&k) { k } else { j }
    }

    pub(super) fn node(&self, j: isize) -> usize {
        j.rem_euclid(self.shape.slabs as isize) as usize
    }

    /// Runs the pass over one band.
    pub(super) fn run(&self, mut band: BandData<'_, T, U>) {
        let last = self.last_stage();
        let prolonged = self.prolonged();
        let (first, end) = (band.first as isize, band.end as isize);
        let clipped_ranges = |j: isize, beyond: usize| {
            let beyond = beyond as isize;
            (first - beyond..end + beyond).contains(&j) && (self.periodic[2] || (0..self.shape.slabs as isize).contains(&j))
        };
        let lag = |s: usize| s as isize;
        for t in first - lag(self.halo())..end + lag(last + 3) {
            let stages = if self.only_restricts() { 0 } else { last + 1 };
            for s in 0..stages {
                let j = t - lag(s);
                if !clipped_ranges(j, self.reach() + last - s) {
                    continue;
                }
                if s == 0 {
                    self.start(&mut band, j);
                } else {
                    self.relax(&mut band, s, j);
                }
                if s == prolonged {
                    self.prolong(&mut band, s, j);
                }
                self.shape.fill_ghosts(band.scratch.stage(s).get_mut(j), self.periodic[0]);
            }
            let j = t - lag(last);
            if let Some((transfer, coarse)) = &self.restrict {
                if stages > 0 && clipped_ranges(j - 1, 1) {
                    self.residual(&mut band, last, j - 1);
                }
                if clipped_ranges(j - 2, 0) {
                    self.restrict(&mut band, last + 1, j - 2, transfer, *coarse);
                }
            } else if let Some(correct) = &self.correct {
                if clipped_ranges(j, 1) {
                    self.correct(&mut band, correct, last, j);
                }
                if clipped_ranges(j - 1, 0) {
                    self.new_residual(&mut band, correct, j - 1);
                }
            } else if clipped_ranges(j, 0) {
                if let Some(e) = band.e.as_mut().and_then(|e| e.get_mut(j)) {
                    e.copy_from_slice(band.scratch.stage(last).get(j));
                }
                if let Some(previous) = band.previous.as_mut().filter(|_| last > 0) {
                    previous.get_mut(j).copy_from_slice(band.scratch.stage(last - 1).get(j));
                }
            }
        }
    }

    /// Stage 0.
    fn start(&self, band: &mut BandData<'_, T, U>, j: isize) {
        let out = band.scratch.stage(0).get_mut(j);
        if self.current {
            if let Some(e) = &band.e {
                out.copy_from_slice(e.get(j));
            }
            return;
        }
        let Some(sweep) = self.pre.first() else {
            out.fill(T::ZERO);
            return;
        };
        let (rhs, k) = (band.r.get(j), self.node(j));
        for row in 0..self.shape.rows {
            let out = self.shape.row_mut(out, row);
            match self.operator.step(sweep.colour, row, k) {
                Some(step) => self.isa.run(RelaxZero { rhs: self.shape.row(rhs, row), step, omega: sweep.omega, out }),
                None => out.fill(T::ZERO),
            }
        }
    }

    /// The rows before and after a row in its slab; the row itself where the axis ends.
    fn rows_beside(&self, row: usize) -> [usize; 2] {
        let rows = self.shape.rows;
        let beside = |step: usize, at_end: bool| if at_end && !self.periodic[1] { row } else { (row + step) % rows };
        [beside(rows - 1, row == 0), beside(1, row + 1 == rows)]
    }

    /// Row `row` of slab `j` and its neighbours in `slabs(j)`.
    fn neighbours<'b, V: RealScalar>(
        &self,
        operator: &Operator<V>,
        slabs: impl Fn(isize) -> &'b [V],
        row: usize,
        j: isize,
    ) -> Neighbours<'b, V> {
        let centre = slabs(j);
        Neighbours {
            centre: self.shape.with_ghosts(centre, row),
            slabs: [-1, 1].map(|step| self.shape.row(slabs(self.neighbour(j, step)), row)),
            slab_weights: operator.slabs[self.node(j)],
            rows: self.rows_beside(row).map(|r| self.shape.row(centre, r)),
            row_weights: operator.rows[row],
        }
    }

    /// Stage `s`: one relaxation.
    fn relax(&self, band: &mut BandData<'_, T, U>, s: usize, j: isize) {
        let ring = band.scratch.ring_of[s];
        if ring == band.scratch.ring_of[s - 1] {
            return self.relax_in_place(band, s, j);
        }
        let (sweep, shape, k) = (self.sweep(s), self.shape, self.node(j));
        let Scratch { rings, ring_of, zeros, .. } = &mut *band.scratch;
        let (before, after) = rings.split_at_mut(ring);
        let input = &before[ring_of[s - 1]];
        // Without an older correction stage 1 has momentum only if stage 0 relaxed from zero.
        let previous = match (s.checked_sub(2), &band.previous) {
            (Some(two_before), _) => before[ring_of[two_before]].get(j),
            (None, Some(previous)) => previous.get(j),
            (None, None) => &zeros.get()[..shape.slab()],
        };
        let out = after[0].get_mut(j);
        let rhs = band.r.get(j);
        for row in 0..shape.rows {
            let out = shape.row_mut(out, row);
            let Some(step) = self.operator.step(sweep.colour, row, k) else {
                out.copy_from_slice(shape.row(input.get(j), row));
                continue;
            };
            let neighbours = self.neighbours(self.operator, |j| input.get(j), row, j);
            let (operator, rhs, before) = (self.operator, shape.row(rhs, row), shape.row(previous, row));
            let (omega, momentum) = (sweep.omega, sweep.momentum);
            macro_rules! relax {
                ($rows:literal, $momentum:literal) => {
                    self.isa.run(Relax::<T, $rows, $momentum> { operator, row: neighbours, rhs, step, omega, momentum, before, out })
                };
            }
            match (shape.rows > 1, momentum != T::ZERO) {
                (false, false) => relax!(false, false),
                (false, true) => relax!(false, true),
                (true, false) => relax!(true, false),
                (true, true) => relax!(true, true),
            }
        }
    }

    /// Stage `s`: one relaxation of one colour in the ring of the stage before it.
    fn relax_in_place(&self, band: &mut BandData<'_, T, U>, s: usize, j: isize) {
        let (sweep, shape, k) = (self.sweep(s), self.shape, self.node(j));
        let Scratch { rings, ring_of, zeros, .. } = &mut *band.scratch;
        let (own, others) = rings[ring_of[s]].split_slab(j);
        let zeros = &zeros.get()[..shape.slab()];
        // Beyond the end of an axis the weight is zero.
        let beside = [-1, 1].map(|step| match self.neighbour(j, step) {
            same if same == j => zeros,
            other => others.get(other),
        });
        let rhs = band.r.get(j);
        for row in 0..shape.rows {
            let Some(step) = self.operator.step(sweep.colour, row, k) else { continue };
            let (before, rest) = own.split_at_mut(row * shape.stride);
            let (line, after) = rest.split_at_mut(shape.stride);
            let row_of = |r: usize| match r.cmp(&row) {
                Ordering::Less => shape.row(before, r),
                Ordering::Equal => shape.row(zeros, 0),
                Ordering::Greater => shape.row(after, r - row - 1),
            };
            let (operator, omega, rhs) = (self.operator, sweep.omega, shape.row(rhs, row));
            let neighbours = Neighbours {
                centre: &[],
                slabs: beside.map(|slab| shape.row(slab, row)),
                slab_weights: operator.slabs[k],
                rows: self.rows_beside(row).map(row_of),
                row_weights: operator.rows[row],
            };
            macro_rules! relax {
                ($rows:literal) => {
                    self.isa.run(RelaxInPlace::<T, $rows> { operator, line, row: neighbours, rhs, step, omega })
                };
            }
            if shape.rows > 1 { relax!(true) } else { relax!(false) }
        }
    }

    /// `r - A e` on slab `j` into its ring.
    fn residual(&self, band: &mut BandData<'_, T, U>, last: usize, j: isize) {
        let (shape, k) = (self.shape, self.node(j));
        let Scratch { rings, ring_of, .. } = &mut *band.scratch;
        let (before, after) = rings.split_at_mut(ring_of[last + 1]);
        let input = &before[ring_of[last]];
        let out = after[0].get_mut(j);
        let rhs = band.r.get(j);
        for row in 0..shape.rows {
            let out = shape.row_mut(out, row);
            if !self.operator.has_unknowns(row, k) {
                out.fill(T::ZERO);
                continue;
            }
            let neighbours = self.neighbours(self.operator, |j| input.get(j), row, j);
            let (operator, rhs) = (self.operator, shape.row(rhs, row));
            if shape.rows > 1 {
                self.isa.run(Residual::<T, true> { operator, row: neighbours, rhs, out });
            } else {
                self.isa.run(Residual::<T, false> { operator, row: neighbours, rhs, out });
            }
        }
        shape.fill_ghosts(out, self.periodic[0]);
    }

    /// `u += e` on slab `j`.
    fn correct(&self, band: &mut BandData<'_, T, U>, correct: &Correct<'_, U>, last: usize, j: isize) {
        let shape = self.shape;
        let Some(u) = &mut band.u else { return };
        let u = u.get_mut(j);
        let e = band.scratch.stage(last).get(j);
        for row in 0..shape.rows {
            self.isa.run(AddScaled { e: shape.row(e, row), scale: correct.e_scale, u: shape.row_mut(u, row) });
        }
        shape.fill_ghosts(u, self.periodic[0]);
    }

    /// `r = f - A u` on slab `j`, with its sums.
    fn new_residual(&self, band: &mut BandData<'_, T, U>, correct: &Correct<'_, U>, j: isize) {
        let (Some(u), Some(r)) = (&band.u, band.r.get_mut(j)) else { return };
        let sums = &mut band.sums[(j - band.first as isize) as usize];
        *sums = self.outer_residual(correct, |j| u.get(j), r, j);
    }

    /// `r = f - A u` on slab `j` of `u(j)`.
    pub(super) fn outer_residual<'b>(&self, correct: &Correct<'_, U>, u: impl Fn(isize) -> &'b [U], r: &mut [T], j: isize) -> SlabSums {
        let (shape, k) = (self.shape, self.node(j));
        let operator = correct.operator;
        let rhs = correct.f.slab(k);
        let mut sums = SlabSums::default();
        for row in 0..shape.rows {
            let out = shape.row_mut(r, row);
            if !operator.has_unknowns(row, k) {
                out.fill(T::ZERO);
                continue;
            }
            let neighbours = self.neighbours(operator, &u, row, j);
            let (rhs, scale, u_scale) = (shape.row(rhs, row), correct.r_scale, correct.u_scale);
            let of_row = if shape.rows > 1 {
                self.isa.run(OuterResidual::<T, U, true> { operator, row: neighbours, rhs, scale, u_scale, out })
            } else {
                self.isa.run(OuterResidual::<T, U, false> { operator, row: neighbours, rhs, scale, u_scale, out })
            };
            let volume = operator.volumes[1][row] * operator.volumes[2][k];
            sums.r += volume * of_row.r;
            sums.r2 += volume * of_row.r2;
            sums.u2 += volume * of_row.u2;
            sums.max = sums.max.max(of_row.max);
        }
        sums
    }
}
