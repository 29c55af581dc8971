//! Full multigrid's transfers of the solution: interpolation by cubics (or lines) at the true node positions, and the boundary
//! values of coarser levels.

use std::ops::Range;

use zellige_engine::real::RealScalar;

use super::field::{Field, PAD, Shape};
use super::isa::{Isa, Run, Work};
use super::tables::{AxisTransfer, Operator};
use crate::grid::{Axis, Grid};

/// Interpolation of one axis: each fine node from four coarse ones.
#[derive(Debug)]
pub(super) struct Interpolation<U> {
    points: Vec<[u32; 4]>,
    weights: Vec<[U; 4]>,
    /// Pairs of fine nodes `2 p, 2 p + 1` where the first is a copy and the second has the weights `middle` of
    /// coarse nodes `p - 1` to `p + 2`.
    regular: std::ops::Range<usize>,
    middle: [U; 4],
}

impl<U: RealScalar> Interpolation<U> {
    /// Interpolates from `coarse` to `fine` by polynomials through `order + 1` nodes, fewer where the coarse axis has fewer; at the
    /// ends through the nodes nearest to them.
    fn new(fine: &Axis, coarse: &Axis, coarsened: bool, order: u32) -> Self {
        let wanted = (order as usize + 1).min(4);
        let (n, nc) = (fine.nodes, coarse.nodes);
        let (mut points, mut weights) = (Vec::with_capacity(n), Vec::with_capacity(n));
        let length = coarse.position(coarse.intervals());
        for i in 0..n {
            // Coarse nodes sit on even fine ones, the last one perhaps on an odd one.
            let at = if coarsened { (i / 2..nc.min(i / 2 + 2)).find(|c| fine.fine_node(*c) == i) } else { Some(i) };
            if let Some(c) = at {
                points.push([c as u32; 4]);
                weights.push([U::ONE, U::ZERO, U::ZERO, U::ZERO]);
                continue;
            }
            // Node i lies between coarse nodes i / 2 and the next one.
            let first = (i / 2) as isize - (wanted as isize / 2 - 1);
            let count = if coarse.periodic() { wanted } else { wanted.min(nc) };
            let first = if coarse.periodic() { first } else { first.clamp(0, nc as isize - count as isize) };
            let (mut p, mut w) = ([0_u32; 4], [U::ZERO; 4]);
            let position = |c: isize| {
                let turns = c.div_euclid(nc as isize) as f64;
                if coarse.periodic() {
                    coarse.position(c.rem_euclid(nc as isize) as usize) + turns * length
                } else {
                    coarse.position(c as usize)
                }
            };
            let x = fine.position(i);
            for a in 0..count {
                let c = first + a as isize;
                let others = (0..count).filter(|b| *b != a).map(|b| first + b as isize);
                let weight: f64 = others.map(|o| (x - position(o)) / (position(c) - position(o))).product();
                p[a] = c.rem_euclid(nc as isize) as u32;
                w[a] = U::from_f64(weight);
            }
            points.push(p);
            weights.push(w);
        }
        let middle = if order >= 3 { [-0.0625, 0.5625, 0.5625, -0.0625] } else { [0.0, 0.5, 0.5, 0.0] }.map(U::from_f64);
        let near = |w: U, v: U| (w - v).to_f64().abs() < 1e-6;
        let regular_pair = |p: usize| {
            let (even, odd) = (2 * p, 2 * p + 1);
            if !coarsened || odd >= n || weights[even][0] != U::ONE || points[even][0] as usize != p {
                return false;
            }
            // Lines have their two points in front.
            let (from, expected) = if order >= 3 { (p - 1, middle) } else { (p, [middle[1], middle[2], U::ZERO, U::ZERO]) };
            (0..4).all(|q| near(weights[odd][q], expected[q]) && (expected[q] == U::ZERO || points[odd][q] as usize == from + q))
        };
        let end = (1..nc.saturating_sub(2)).find(|p| !regular_pair(*p)).unwrap_or(nc.saturating_sub(2).max(1));
        Self { points, weights, regular: 1..end, middle }
    }
}

/// The interpolation of a level from the next coarser one: along a row, across rows, across slabs.
pub(super) fn interpolations<U: RealScalar>(fine: &Grid, coarse: &Grid, order: u32) -> [Interpolation<U>; 3] {
    let (f, c) = (&fine.axes, &coarse.axes);
    std::array::from_fn(|d| Interpolation::new(&f[d], &c[d], f[d].nodes != c[d].nodes, order))
}

/// `out = sum w_q rows_q`.
struct WeightedSum4<'a, U> {
    weights: [U; 4],
    rows: [&'a [U]; 4],
    out: &'a mut [U],
}

impl<U: RealScalar> Work for WeightedSum4<'_, U> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let n = self.out.len();
        let [a, b, c, d] = self.rows;
        let (a, b, c, d, out) = (&a[..n], &b[..n], &c[..n], &d[..n], &mut self.out[..n]);
        let [wa, wb, wc, wd] = self.weights;
        for i in 0..n {
            out[i] = (wa * a[i] + wd * d[i]) + (wb * b[i] + wc * c[i]);
        }
    }
}

/// The regular pairs along x; `coarse` starts one node before the first pair's.
struct InterpolateX<'a, U> {
    middle: [U; 4],
    coarse: &'a [U],
    out: &'a mut [U],
}

impl<U: RealScalar> Work for InterpolateX<'_, U> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let n = self.out.len() / 2;
        let (coarse, out) = (&self.coarse[..n + 3], &mut self.out[..2 * n]);
        let [a, b, c, d] = self.middle;
        for p in 0..n {
            out[2 * p] = coarse[p + 1];
            out[2 * p + 1] = (a * coarse[p] + d * coarse[p + 3]) + (b * coarse[p + 1] + c * coarse[p + 2]);
        }
    }
}

/// Rows that the interpolation of a slab is put together in.
#[derive(Debug)]
pub(super) struct Rows<U> {
    slab: Vec<U>,
    row: Vec<U>,
    fine: Vec<U>,
}

impl<U: RealScalar> Rows<U> {
    pub(super) fn new(fine: Shape, coarse: Shape) -> Self {
        Self { slab: vec![U::ZERO; coarse.slab()], row: vec![U::ZERO; coarse.stride], fine: vec![U::ZERO; fine.stride] }
    }
}

/// Slab `k` of `u = P coarse`, on rows and nodes where `unknown` holds.
pub(super) fn interpolate_slab<U: RealScalar>(
    isa: Isa,
    tables: &[Interpolation<U>; 3],
    coarse: &Field<U>,
    shape: Shape,
    unknown: [&std::ops::Range<usize>; 2],
    k: usize,
    rows: &mut Rows<U>,
    u: &mut [U],
) {
    let [tx, ty, tz] = tables;
    let c = coarse.shape;
    let slab: &[U] = if tz.weights[k][0] == U::ONE {
        coarse.slab(tz.points[k][0] as usize)
    } else {
        let sources = tz.points[k].map(|p| coarse.slab(p as usize));
        isa.run(WeightedSum4 { weights: tz.weights[k], rows: sources, out: &mut rows.slab });
        &rows.slab
    };
    for j in unknown[1].clone() {
        let whole = |r: u32| &slab[r as usize * c.stride..][..c.stride];
        let line: &[U] = if ty.weights[j][0] == U::ONE {
            whole(ty.points[j][0])
        } else {
            isa.run(WeightedSum4 { weights: ty.weights[j], rows: ty.points[j].map(whole), out: &mut rows.row });
            &rows.row
        };
        let coarse_row = &line[PAD..];
        let fine = &mut rows.fine[..shape.width()];
        let regular = &tx.regular;
        for i in (0..shape.nx).filter(|i| regular.is_empty() || *i < 2 * regular.start || *i >= 2 * regular.end) {
            let (p, w) = (tx.points[i], tx.weights[i]);
            let v = p.map(|p| coarse_row[p as usize]);
            fine[i] = (w[0] * v[0] + w[3] * v[3]) + (w[1] * v[1] + w[2] * v[2]);
        }
        if !regular.is_empty() {
            let out = &mut fine[2 * regular.start..2 * regular.end];
            isa.run(InterpolateX { middle: tx.middle, coarse: &coarse_row[regular.start - 1..], out });
        }
        let x = unknown[0].clone();
        shape.row_mut(u, j)[x.clone()].copy_from_slice(&fine[x]);
    }
}

/// Coarse nodes of some slabs that are no unknowns take the value of the fine node under them; the others are zero.
pub(super) fn boundary_values<U: RealScalar>(
    fine: &Field<U>,
    transfer: &[AxisTransfer<U>; 3],
    operator: &Operator<U>,
    grid: &Grid,
    slabs: Range<usize>,
    coarse: &mut Field<U>,
) {
    let shape = coarse.shape;
    coarse.beside = 0;
    let x = grid.axes[0].unknowns();
    let [tx, ty, tz] = transfer;
    for k in slabs {
        for j in 0..shape.rows {
            let row_has_unknowns = operator.has_unknowns(j, k);
            for i in 0..shape.nx {
                let unknown = row_has_unknowns && x.contains(&i);
                let value = if unknown { U::ZERO } else { fine.at(tx.child[i], ty.child[j], tz.child[k]) };
                *coarse.at_mut(i, j, k) = value;
            }
        }
    }
}
