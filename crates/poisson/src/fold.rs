//! Conversion of the problem as physics states it to the linear system that is solved.

use std::borrow::Cow;

use serde::Serialize;
use zellige_engine::error::Result;
use zellige_engine::large::zeros;
use zellige_engine::parallel::{chunks, chunks_mut, each, items_mut};

use crate::direct::fold_boundary;
use crate::grid::{Bc, Grid};
use crate::operator;
use crate::problem::{Problem, Side, SideValues, array_fault, refuse};
use crate::stages::Norms;

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
        self.check_statement()?;
        let grid = self.grid();
        let mut u = zeros(grid.len());
        let untouched = self.homogeneous() && !grid.singular();
        if !untouched {
            refuse(self.faults(true))?;
        }
        let mut f = self.rhs;
        let (imbalance, norms) = if untouched {
            let norms = operator::source_norms(&grid, &f);
            finite(&norms, &f, &self.nodes)?;
            (0.0, norms)
        } else {
            let f = f.to_mut();
            add_fluxes(&grid, &self.sides, f);
            set_boundary(&grid, &self.sides, &mut u);
            (take_mean(&grid, f), operator::residual_norms(&grid, &u, f))
        };
        if let Some(guess) = self.guess {
            copy_unknowns(&grid, &guess, &mut u);
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
            set_boundary(&grid, sides, u);
            let norms = operator::source_norms(&grid, &self.rhs);
            finite(&norms, &self.rhs, &nodes)?;
            return Ok(System { f: self.rhs, reference: Reference { l2: norms.l2, max: norms.max }, imbalance: 0.0, mean });
        }
        if spare.len() != grid.len() {
            spare = zeros(grid.len());
        }
        each((chunks_mut(&mut spare, grid.nodes()[0]), chunks(&self.rhs, grid.nodes()[0])), |_, (to, from)| to.copy_from_slice(from));
        add_fluxes(&grid, sides, &mut spare);
        set_boundary(&grid, sides, u);
        fold_boundary(&grid, u, |node, value| spare[node] -= value);
        let imbalance = take_mean(&grid, &mut spare);
        let norms = operator::source_norms(&grid, &spare);
        finite(&norms, &self.rhs, &nodes)?;
        Ok(System { f: Cow::Owned(spare), reference: Reference { l2: norms.l2, max: norms.max }, imbalance, mean })
    }
}

/// Refuses a right-hand side of which `norms` say that some value is not finite.
fn finite(norms: &Norms, rhs: &[f64], nodes: &[usize; 3]) -> Result<()> {
    let dimensions = if nodes[2] == 1 { 2 } else { 3 };
    let fault = if norms.max.is_nan() { array_fault("rhs", rhs, rhs.len(), &nodes[..dimensions]) } else { None };
    refuse(fault.into_iter().collect())
}

/// Takes the mean off the right-hand side of a singular problem and gives it.
fn take_mean(grid: &Grid, f: &mut [f64]) -> f64 {
    let imbalance = if grid.singular() { operator::mean(grid, f) } else { 0.0 };
    if imbalance != 0.0 {
        each(items_mut(f), |_, v| *v -= imbalance);
    }
    imbalance
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

/// `f -= 2 g / h` on Neumann sides.
fn add_fluxes(grid: &Grid, sides: &[[Side; 2]; 3], f: &mut [f64]) {
    for d in 0..3 {
        if grid.axes[d].is_flat() {
            continue;
        }
        for (end, side) in sides[d].iter().enumerate() {
            if side.bc == Bc::Neumann && side.values != SideValues::Constant(0.0) {
                let scale = 2.0 / grid.axes[d].h;
                for_side(grid, d, end, |node, n| f[node] -= scale * side.values.at(n));
            }
        }
    }
}

/// Dirichlet values into `u`; z first so that x has the last word.
fn set_boundary(grid: &Grid, sides: &[[Side; 2]; 3], u: &mut [f64]) {
    for d in (0..3).rev() {
        if grid.axes[d].is_flat() {
            continue;
        }
        for (end, side) in sides[d].iter().enumerate() {
            if side.bc == Bc::Dirichlet {
                for_side(grid, d, end, |node, n| u[node] = side.values.at(n));
            }
        }
    }
}

/// `to = from` at the unknowns.
fn copy_unknowns(grid: &Grid, from: &[f64], to: &mut [f64]) {
    let [m, n, _] = grid.nodes();
    let [x, y, z] = [0, 1, 2].map(|d| grid.axes[d].unknowns());
    each((chunks_mut(to, m), chunks(from, m)), |row, (to, from)| {
        if y.contains(&(row % n)) && z.contains(&(row / n)) {
            to[x.clone()].copy_from_slice(&from[x.clone()]);
        }
    });
}
