//! Conversion of the problem as physics states it to the linear system that is solved.

use std::borrow::Cow;
use std::ops::Range;

use serde::Serialize;
use zellige_engine::error::{Problem as Fault, Result};
use zellige_engine::large::zeros;
use zellige_engine::parallel::{chunks, chunks_mut, each, items_mut};

use crate::direct::fold_boundary;
use crate::grid::{Bc, Grid};
use crate::operator;
use crate::problem::{Problem, Side, SideValues, array_fault, refuse};
use crate::stages::{HostShare, Norms};

/// The linear system `A u = f` of a problem.
#[derive(Debug, Clone)]
pub struct Folded<'a> {
    /// The finest grid.
    pub grid: Grid,
    /// First guess, Dirichlet values on their nodes.
    pub u: Vec<f64>,
    /// Right-hand side with the Neumann fluxes in it, without its mean if singular; not read on Dirichlet nodes. The caller's own
    /// where nothing had to be changed.
    pub f: Cow<'a, [f64]>,
    /// Norms of `f - A u_b`, where `u_b` holds the Dirichlet values and is zero at the unknowns: the right-hand side of
    /// the system of the unknowns alone. What "relative" refers to.
    pub reference: Reference,
    /// Singular problems: the mean that was taken off `f`.
    pub imbalance: f64,
    /// Singular problems: the mean that `u` must have.
    pub mean: f64,
}

/// The two norms of a right-hand side.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Reference {
    /// Root mean square, weighted by control volumes, over the unknowns.
    pub l2: f64,
    /// Largest magnitude over the unknowns.
    pub max: f64,
}

/// The linear system of the unknowns alone: `A u = f` with `u = 0` on Dirichlet sides, whose values are in `f`.
#[derive(Debug)]
pub(crate) struct System<'a> {
    /// Right-hand side: [`Folded::f`].
    pub f: Cow<'a, [f64]>,
    /// Norms of reference: [`Folded::reference`].
    pub reference: Reference,
    /// Imbalance: [`Folded::imbalance`].
    pub imbalance: f64,
    /// Mean: [`Folded::mean`].
    pub mean: f64,
}

impl<'a> Problem<'a> {
    /// Returns true if all sides hold zero, so that the right-hand side is that of the unknowns without change.
    fn homogeneous(&self) -> bool {
        self.sides.iter().flatten().all(|side| side.bc == Bc::Periodic || side.values == SideValues::Constant(0.0))
    }

    /// The linear system of this problem.
    pub fn fold(self) -> Result<Folded<'a>> {
        // There is a grid only if the statement has no fault.
        refuse(self.faults(Some(0..0), false))?;
        let share = HostShare::whole(&self.grid());
        self.fold_in(&share)
    }

    /// The linear system on the slabs that a part of a run holds, where its problem has values; the norms are those of the whole.
    pub(crate) fn fold_in(self, share: &HostShare) -> Result<Folded<'a>> {
        let grid = self.grid();
        let [_, n, l] = grid.nodes();
        let (own, held, rows) = (share.own(grid.len()), share.held(grid.len()), share.own(n * l));
        let mut u = zeros(grid.len());
        let untouched = self.homogeneous() && !grid.singular();
        share.together(refuse(self.faults(Some(own.clone()), !untouched)))?;
        let (f, imbalance, norms) = if untouched {
            let norms = operator::norms_of_rows(&grid, &share.joined(operator::source_rows(&grid, &self.rhs, rows))?);
            share.together(finite(&norms, &self.rhs, own, &self.nodes))?;
            (self.rhs, 0.0, norms)
        } else {
            let mut f = match self.rhs {
                Cow::Owned(f) => f,
                Cow::Borrowed(rhs) => {
                    let mut f = zeros(grid.len());
                    copy(&rhs[held.clone()], &mut f[held.clone()]);
                    f
                }
            };
            add_fluxes(&grid, &self.sides, &held, &mut f);
            set_boundary(&grid, &self.sides, &share.around(grid.len()), &mut u);
            let imbalance = take_mean(&grid, &mut f, share)?;
            let sums = share.joined(operator::residual_rows(&grid, &u, &f, rows))?;
            (Cow::Owned(f), imbalance, operator::norms_of_rows(&grid, &sums))
        };
        in_range(norms.max)?;
        if let Some(guess) = self.guess {
            copy_unknowns(&grid, &guess, &share.held(n * l), &mut u);
        }
        Ok(Folded { grid, u, f, reference: Reference { l2: norms.l2, max: norms.max }, imbalance, mean: self.mean })
    }

    /// The system of the unknowns alone; the values of Dirichlet sides go into `u`, of which nothing else is touched. A right-hand
    /// side that has to be changed is copied to `spare`.
    pub(crate) fn system(self, u: &mut [f64], mut spare: Vec<f64>) -> Result<System<'a>> {
        self.check_statement()?;
        let grid = self.grid();
        let untouched = self.homogeneous() && !grid.singular();
        let (nodes, mean, sides) = (self.nodes, self.mean, &self.sides);
        if untouched {
            set_boundary(&grid, sides, &(0..grid.len()), u);
            let norms = operator::source_norms(&grid, &self.rhs);
            finite(&norms, &self.rhs, 0..self.rhs.len(), &nodes)?;
            in_range(norms.max)?;
            return Ok(System { f: self.rhs, reference: Reference { l2: norms.l2, max: norms.max }, imbalance: 0.0, mean });
        }
        if spare.len() != grid.len() {
            spare = zeros(grid.len());
        }
        copy(&self.rhs, &mut spare);
        add_fluxes(&grid, sides, &(0..grid.len()), &mut spare);
        set_boundary(&grid, sides, &(0..grid.len()), u);
        fold_boundary(&grid, u, &(0..grid.len()), |node, value| spare[node] -= value);
        let imbalance = take_mean(&grid, &mut spare, &HostShare::whole(&grid))?;
        let norms = operator::source_norms(&grid, &spare);
        finite(&norms, &self.rhs, 0..self.rhs.len(), &nodes)?;
        in_range(norms.max)?;
        Ok(System { f: Cow::Owned(spare), reference: Reference { l2: norms.l2, max: norms.max }, imbalance, mean })
    }
}

/// Refuses a right-hand side of which `norms` say that some value is not finite; the one at fault is named if it is in `own`.
fn finite(norms: &Norms, rhs: &[f64], own: Range<usize>, nodes: &[usize; 3]) -> Result<()> {
    let dimensions = if nodes[2] == 1 { 2 } else { 3 };
    let fault = if norms.max.is_nan() { array_fault("rhs", rhs, own, rhs.len(), &nodes[..dimensions]) } else { None };
    refuse(fault.into_iter().collect())
}

/// Largest magnitudes of a system that can be told from zero and from infinity: their squares, by which residuals are measured, are
/// numbers, and those of residuals by many powers of ten smaller.
const MAGNITUDES: std::ops::RangeInclusive<f64> = 1e-135..=1e150;

/// Refuses a system whose norms would be zero or no numbers, by its largest magnitude.
pub(crate) fn in_range(max: f64) -> Result<()> {
    let fault = || {
        let message =
            format!("with the values of the sides it reaches {:.1e}, too {} to be squared", max, if max < 1.0 { "small" } else { "large" });
        let [least, most] = [MAGNITUDES.start(), MAGNITUDES.end()];
        Fault::new("rhs", message)
            .allowed(format!("magnitudes of {least:.0e} to {most:.0e}, or zero"))
            .hint("state the problem in other units")
    };
    refuse((max != 0.0 && !MAGNITUDES.contains(&max)).then(fault).into_iter().collect())
}

/// Values that a thread copies in a row.
const PIECE: usize = 1 << 16;

/// Copies by all threads: what takes the time is the memory that is touched first.
pub(crate) fn copy<V: Copy + Send + Sync>(from: &[V], to: &mut [V]) {
    each((chunks_mut(to, PIECE), chunks(from, PIECE)), |_, (to, from)| to.copy_from_slice(from));
}

/// Takes the mean off the right-hand side of a singular problem and gives it.
fn take_mean(grid: &Grid, f: &mut [f64], share: &HostShare) -> Result<f64> {
    if !grid.singular() {
        return Ok(0.0);
    }
    let imbalance = share.mean(grid, f)?;
    if imbalance != 0.0 {
        let held = share.held(f.len());
        each(items_mut(&mut f[held]), |_, v| *v -= imbalance);
    }
    Ok(imbalance)
}

/// Calls `visit(node, node of the side)` for each node of side `end` of axis `d`.
pub(crate) fn for_side(grid: &Grid, d: usize, end: usize, mut visit: impl FnMut(usize, usize)) {
    let n = grid.nodes();
    let stride = [1, n[0], n[0] * n[1]];
    let (a, b) = [(1, 2), (0, 2), (0, 1)][d];
    let base = if end == 0 { 0 } else { (n[d] - 1) * stride[d] };
    for q in 0..n[b] {
        for p in 0..n[a] {
            visit(base + p * stride[a] + q * stride[b], p + n[a] * q);
        }
    }
}

/// `f -= 2 g / h` on Neumann sides, at the nodes of `range`.
fn add_fluxes(grid: &Grid, sides: &[[Side; 2]; 3], range: &Range<usize>, f: &mut [f64]) {
    for d in 0..3 {
        if grid.axes[d].is_flat() {
            continue;
        }
        for (end, side) in sides[d].iter().enumerate() {
            if side.bc == Bc::Neumann && side.values != SideValues::Constant(0.0) {
                let scale = 2.0 / grid.axes[d].h;
                for_side(grid, d, end, |node, n| {
                    if range.contains(&node) {
                        f[node] -= scale * side.values.at(n);
                    }
                });
            }
        }
    }
}

/// Dirichlet values into `u` at the nodes of `range`; z first so that x has the last word.
fn set_boundary(grid: &Grid, sides: &[[Side; 2]; 3], range: &Range<usize>, u: &mut [f64]) {
    for d in (0..3).rev() {
        if grid.axes[d].is_flat() {
            continue;
        }
        for (end, side) in sides[d].iter().enumerate() {
            if side.bc == Bc::Dirichlet {
                for_side(grid, d, end, |node, n| {
                    if range.contains(&node) {
                        u[node] = side.values.at(n);
                    }
                });
            }
        }
    }
}

/// `to = from` at the unknowns of some rows.
pub(crate) fn copy_unknowns(grid: &Grid, from: &[f64], rows: &Range<usize>, to: &mut [f64]) {
    let [m, n, _] = grid.nodes();
    let [x, y, z] = [0, 1, 2].map(|d| grid.axes[d].unknowns());
    let nodes = rows.start * m..rows.end * m;
    each((chunks_mut(&mut to[nodes.clone()], m), chunks(&from[nodes], m)), |row, (to, from)| {
        let row = rows.start + row;
        if y.contains(&(row % n)) && z.contains(&(row / n)) {
            to[x.clone()].copy_from_slice(&from[x.clone()]);
        }
    });
}
