//! A streaming pass over a level: relaxations, prolongation, residual and restriction (or correction) follow each
//! other by a slab, so that memory is read and written once and the slabs between live in cache.
//!
//! ```text
//! stage 0      makes slab j      of e: from zero by the first relaxation, or from the stored e
//! stage s      makes slab j - s  of e by relaxation s, from slabs j-s-1 .. j-s+1 of stage s-1
//! then         the residual of slab j - S - 1 and the restriction around it, or u += e and the new residual
//! ```
//!
//! Each stage keeps its last four slabs. A relaxation reads one array and writes another: a half-sweep changes nodes of
//! one colour from neighbours as they were before it, also where a periodic axis of odd length puts two of the same
//! colour side by side.

use zellige_engine::real::RealScalar;

use super::band::{Band, Slabs};
use super::field::{Aligned, Field, Shape};
use super::isa::Isa;
use super::rows::{AddScaled, Neighbours, OuterResidual, Relax, RelaxZero, RelaxZeroPair, Residual};
use super::tables::{AxisTransfer, Colour, Operator};

/// Slabs that a stage keeps.
const KEPT: usize = 4;

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

/// What a pass does, for all bands.
pub(super) struct Pass<'a, T, U> {
    pub isa: Isa,
    pub shape: Shape,
    /// Whether x, the rows of a slab and the slabs close on themselves.
    pub periodic: [bool; 3],
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

/// The slabs between the stages of a band.
#[derive(Debug)]
pub(super) struct Scratch<T> {
    pub rings: Vec<Aligned<T>>,
    /// A slab put together for a transfer.
    pub coarse: Aligned<T>,
    /// A row put together for a transfer.
    pub row: Aligned<T>,
    zeros: Aligned<T>,
}

impl<T: RealScalar> Scratch<T> {
    pub(super) fn new() -> Self {
        Self { rings: Vec::new(), coarse: Aligned::new(0), row: Aligned::new(0), zeros: Aligned::new(0) }
    }

    pub(super) fn reserve(&mut self, rings: usize, shape: Shape) {
        while self.rings.len() < rings {
            self.rings.push(Aligned::new(0));
        }
        for ring in &mut self.rings[..rings] {
            ring.reserve(KEPT * shape.slab());
        }
        self.coarse.reserve(shape.slab());
        self.row.reserve(shape.stride);
        self.zeros.reserve(shape.slab());
    }

    pub(super) fn bytes(&self) -> u64 {
        self.rings.iter().map(Aligned::bytes).sum::<u64>() + self.coarse.bytes() + self.row.bytes() + self.zeros.bytes()
    }
}

/// The data of one band.
pub(super) struct BandData<'a, T, U> {
    pub first: usize,
    pub end: usize,
    /// Right-hand side of the relaxations; the new residual where the pass corrects.
    pub r: Slabs<'a, T>,
    /// The stored correction, if it is read or written.
    pub e: Option<Slabs<'a, T>>,
    pub u: Option<Band<'a, U>>,
    /// The coarse residual: the slabs from `coarse_first` on.
    pub coarse: Option<(&'a mut [T], usize)>,
    pub sums: &'a mut [SlabSums],
    pub scratch: &'a mut Scratch<T>,
}

pub(super) fn slot<T>(ring: &[T], slab: usize, j: isize) -> &[T] {
    &ring[j.rem_euclid(KEPT as isize) as usize * slab..][..slab]
}

pub(super) fn slot_mut<T>(ring: &mut [T], slab: usize, j: isize) -> &mut [T] {
    &mut ring[j.rem_euclid(KEPT as isize) as usize * slab..][..slab]
}

impl<'a, T: RealScalar, U: RealScalar> Pass<'a, T, U> {
    /// A pass that does nothing yet.
    pub(super) fn new(isa: Isa, shape: Shape, periodic: [bool; 3], operator: &'a Operator<T>) -> Self {
        let (pre, post) = (Vec::new(), Vec::new());
        Self { isa, shape, periodic, operator, current: false, pre, prolong: None, post, restrict: None, correct: None }
    }

    /// Stages after the first.
    pub(super) fn last_stage(&self) -> usize {
        self.pre.len() + self.post.len() - self.fused_start()
    }

    /// Relaxations in stage 0: none where it reads the stored correction; the first one from zero; where a slab is a row
    /// also the second one, if they are the two colours. (Ghosts of the residual are not kept on a periodic axis.)
    fn fused_start(&self) -> usize {
        if self.current {
            return 0;
        }
        match &self.pre[..] {
            [] => 0,
            [first, second, ..]
                if first.colour == Colour::Red && second.colour == Colour::Black && self.shape.rows == 1 && !self.periodic[0] =>
            {
                2
            }
            _ => 1,
        }
    }

    /// Whether the pass only restricts its right-hand side. (Ghosts of it are not kept on a periodic axis.)
    pub(super) fn only_restricts(&self) -> bool {
        self.restrict.is_some() && !self.current && self.pre.is_empty() && !self.periodic[0]
    }

    /// Slabs beyond the band whose correction is needed.
    pub(super) fn reach(&self) -> usize {
        if self.restrict.is_some() { 2 } else { usize::from(self.correct.is_some()) }
    }

    /// Slabs of the right-hand side and of the stored correction needed beyond the band.
    pub(super) fn halo(&self) -> usize {
        self.reach() + self.last_stage() + usize::from(self.fused_start() == 2)
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
        let prolonged = self.pre.len() - self.fused_start();
        let (first, end) = (band.first as isize, band.end as isize);
        let within = |j: isize, beyond: usize| {
            let beyond = beyond as isize;
            (first - beyond..end + beyond).contains(&j) && (self.periodic[2] || (0..self.shape.slabs as isize).contains(&j))
        };
        let lag = |s: usize| s as isize;
        for t in first - lag(self.halo())..end + lag(last + 3) {
            let stages = if self.only_restricts() { 0 } else { last + 1 };
            for s in 0..stages {
                let j = t - lag(s);
                if !within(j, self.reach() + last - s) {
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
                self.shape.close(slot_mut(band.scratch.rings[s].get_mut(), self.shape.slab(), j), self.periodic[0]);
            }
            let j = t - lag(last);
            if let Some((transfer, coarse)) = &self.restrict {
                if stages > 0 && within(j - 1, 1) {
                    self.residual(&mut band, last, j - 1);
                }
                if within(j - 2, 0) {
                    self.restrict(&mut band, last + 1, j - 2, transfer, *coarse);
                }
            } else if let Some(correct) = &self.correct {
                if within(j, 1) {
                    self.correct(&mut band, correct, last, j);
                }
                if within(j - 1, 0) {
                    self.new_residual(&mut band, correct, j - 1);
                }
            } else if within(j, 0)
                && let Some(e) = band.e.as_mut().and_then(|e| e.get_mut(j))
            {
                e.copy_from_slice(slot(band.scratch.rings[last].get(), self.shape.slab(), j));
            }
        }
    }

    /// Stage 0.
    fn start(&self, band: &mut BandData<'_, T, U>, j: isize) {
        let out = slot_mut(band.scratch.rings[0].get_mut(), self.shape.slab(), j);
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
        if let (2, Some(second)) = (self.fused_start(), self.pre.get(1)) {
            self.start_pair(&band.r, out, [*sweep, *second], j);
            return;
        }
        let (rhs, k) = (band.r.get(j), self.node(j));
        for row in 0..self.shape.rows {
            let out = self.shape.row_mut(out, row);
            match self.operator.step(sweep.colour, row, k) {
                Some(step) => self.isa.run(RelaxZero { rhs: self.shape.row(rhs, row), step, omega: sweep.omega, out }),
                None => out.fill(T::ZERO),
            }
        }
    }

    /// Stage 0 with two relaxations.
    fn start_pair(&self, r: &Slabs<'_, T>, out: &mut [T], [red, black]: [HalfSweep<T>; 2], j: isize) {
        let (shape, k) = (self.shape, self.node(j));
        let out = shape.row_mut(out, 0);
        let Some(black_steps) = self.operator.step_with_ghosts(black.colour, 0, k) else {
            out.fill(T::ZERO);
            return;
        };
        let slabs = [-1, 0, 1].map(|step| self.neighbour(j, step));
        let reds = slabs.map(|j| self.operator.step_with_ghosts(red.colour, 0, self.node(j)).unwrap_or(self.operator.no_step()));
        self.isa.run(RelaxZeroPair {
            operator: self.operator,
            rhs: slabs.map(|j| shape.with_ghosts(r.get(j), 0)),
            red: reds,
            black: black_steps,
            slab_weights: self.operator.slabs[k],
            omega: [red.omega, black.omega],
            out,
        });
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
        let rows = self.shape.rows;
        let beside = |step: usize, at_end: bool| if at_end && !self.periodic[1] { row } else { (row + step) % rows };
        Neighbours {
            centre: self.shape.with_ghosts(centre, row),
            slabs: [-1, 1].map(|step| self.shape.row(slabs(self.neighbour(j, step)), row)),
            slab_weights: operator.slabs[self.node(j)],
            rows: [beside(rows - 1, row == 0), beside(1, row + 1 == rows)].map(|r| self.shape.row(centre, r)),
            row_weights: operator.rows[row],
        }
    }

    /// Stage `s`: one relaxation.
    fn relax(&self, band: &mut BandData<'_, T, U>, s: usize, j: isize) {
        let sweep = s - 1 + self.fused_start();
        let sweep = if sweep < self.pre.len() { self.pre[sweep] } else { self.post[sweep - self.pre.len()] };
        let (shape, slab, k) = (self.shape, self.shape.slab(), self.node(j));
        let (before, after) = band.scratch.rings.split_at_mut(s);
        let input = before[s - 1].get();
        // Stage 1 has momentum only if stage 0 relaxed from zero.
        let older = match s.checked_sub(2) {
            Some(two_before) => slot(before[two_before].get(), slab, j),
            None => &band.scratch.zeros.get()[..slab],
        };
        let out = slot_mut(after[0].get_mut(), slab, j);
        let rhs = band.r.get(j);
        for row in 0..shape.rows {
            let out = shape.row_mut(out, row);
            let Some(step) = self.operator.step(sweep.colour, row, k) else {
                out.copy_from_slice(shape.row(slot(input, slab, j), row));
                continue;
            };
            let neighbours = self.neighbours(self.operator, |j| slot(input, slab, j), row, j);
            let (operator, rhs, before) = (self.operator, shape.row(rhs, row), shape.row(older, row));
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

    /// `r - A e` on slab `j` into ring `last + 1`.
    fn residual(&self, band: &mut BandData<'_, T, U>, last: usize, j: isize) {
        let (shape, slab, k) = (self.shape, self.shape.slab(), self.node(j));
        let (before, after) = band.scratch.rings.split_at_mut(last + 1);
        let input = before[last].get();
        let out = slot_mut(after[0].get_mut(), slab, j);
        let rhs = band.r.get(j);
        for row in 0..shape.rows {
            let out = shape.row_mut(out, row);
            if !self.operator.has_unknowns(row, k) {
                out.fill(T::ZERO);
                continue;
            }
            let neighbours = self.neighbours(self.operator, |j| slot(input, slab, j), row, j);
            let (operator, rhs) = (self.operator, shape.row(rhs, row));
            if shape.rows > 1 {
                self.isa.run(Residual::<T, true> { operator, row: neighbours, rhs, out });
            } else {
                self.isa.run(Residual::<T, false> { operator, row: neighbours, rhs, out });
            }
        }
        shape.close(out, self.periodic[0]);
    }

    /// `u += e` on slab `j`.
    fn correct(&self, band: &mut BandData<'_, T, U>, correct: &Correct<'_, U>, last: usize, j: isize) {
        let shape = self.shape;
        let Some(u) = &mut band.u else { return };
        let u = u.get_mut(j);
        let e = slot(band.scratch.rings[last].get(), shape.slab(), j);
        for row in 0..shape.rows {
            self.isa.run(AddScaled { e: shape.row(e, row), scale: correct.e_scale, u: shape.row_mut(u, row) });
        }
        shape.close(u, self.periodic[0]);
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
