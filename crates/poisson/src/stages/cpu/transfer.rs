//! The transfers of a pass: prolongation into a stage's slab, restriction of three slabs of the residual.

use zellige_engine::real::RealScalar;

use super::field::{PAD, Shape};
use super::isa::Run;
use super::pass::{BandData, Pass};
use super::ring::Scratch;
use super::rows::AddScaled;
use super::tables::AxisTransfer;
use super::transfer_rows::{ProlongX, RestrictX, WeightedSum2, WeightedSum3};
use crate::physics;

impl<T: RealScalar, U: RealScalar> Pass<'_, T, U> {
    /// `e += P e_c` on slab `j` of stage `s`.
    pub(super) fn prolong(&self, band: &mut BandData<'_, T, U>, s: usize, j: isize) {
        let Some((coarse, [tx, ty, tz])) = self.prolong else { return };
        let (fine_shape, shape, k) = (self.shape, coarse.shape, self.node(j));
        let Scratch { rings, ring_of, coarse: between, row: row_between, .. } = &mut *band.scratch;
        let out = rings[ring_of[s]].get_mut(j);
        let (west, east) = (tz.west[k], tz.east[k]);
        let (a, b) = (coarse.slab(tz.parent[k]), coarse.slab(tz.next[k]));
        let slab = if east == T::ZERO {
            a
        } else {
            let out = &mut between.get_mut()[..shape.slab()];
            self.isa.run(WeightedSum2 { west, a, east, b, out });
            out
        };
        for row in 0..fine_shape.rows {
            if !self.operator.has_unknowns(row, k) {
                continue;
            }
            let stride = shape.stride;
            let whole = |r: usize| &slab[r * stride..(r + 1) * stride];
            let (west, east) = (ty.west[row], ty.east[row]);
            let line = if east == T::ZERO {
                whole(ty.parent[row])
            } else {
                let out = &mut row_between.get_mut()[..stride];
                self.isa.run(WeightedSum2 { west, a: whole(ty.parent[row]), east, b: whole(ty.next[row]), out });
                out
            };
            let fine = fine_shape.row_mut(out, row);
            if tx.collapsed {
                for value in &mut fine[..fine_shape.nx] {
                    *value += line[PAD];
                }
            } else if tx.coarsened {
                let even = fine_shape.nx.next_multiple_of(2);
                self.isa.run(ProlongX { coarse: &line[PAD..], west: &tx.west, east: &tx.east, fine: &mut fine[..even] });
            } else {
                self.isa.run(AddScaled { e: &line[PAD..PAD + fine.len()], scale: T::ONE, u: fine });
            }
        }
    }

    /// The coarse slab whose fine slab is `c`, if there is one, from slabs `c - 1 .. c + 1` of the ring of `stage`.
    pub(super) fn restrict(&self, band: &mut BandData<'_, T, U>, stage: usize, c: isize, transfer: &[AxisTransfer<T>; 3], shape: Shape) {
        let [tx, ty, tz] = transfer;
        let (fine, k) = (self.shape, self.node(c));
        // The last coarse node may sit on an odd fine node.
        let coarse_k = match (tz.collapsed, tz.coarsened) {
            (true, _) => 0,
            (false, true) => k.div_ceil(2),
            (false, false) => k,
        };
        let Some((out, coarse_first)) = &mut band.coarse else { return };
        if tz.child.get(coarse_k) != Some(&k) {
            return;
        }
        let out = &mut out[(coarse_k - *coarse_first) * shape.slab()..][..shape.slab()];
        let Scratch { rings, ring_of, coarse: between, row: row_between, .. } = &mut *band.scratch;
        let input = &rings[ring_of[stage]];
        let rhs = &band.r;
        let slab_at = |step: isize| {
            let j = self.neighbour(c, step);
            if self.only_restricts() { rhs.get(j) } else { input.get(j) }
        };
        let slab = if tz.coarsened {
            let sum = &mut between.get_mut()[..fine.slab()];
            let weights = [0, 1, 2].map(|s| tz.restrict[s][coarse_k]);
            self.isa.run(WeightedSum3 { weights, rows: [-1, 0, 1].map(slab_at), out: sum });
            sum
        } else {
            slab_at(0)
        };
        for row in 0..shape.rows {
            let stride = fine.stride;
            let whole = |r: usize| &slab[r * stride..(r + 1) * stride];
            let child = ty.child[row];
            let line = if ty.coarsened {
                let sum = &mut row_between.get_mut()[..stride];
                let weights = [0, 1, 2].map(|s| ty.restrict[s][row]);
                let below = if child == 0 && !self.periodic[1] { 0 } else { (child + fine.rows - 1) % fine.rows };
                let above = if child + 1 == fine.rows && !self.periodic[1] { child } else { (child + 1) % fine.rows };
                self.isa.run(WeightedSum3 { weights, rows: [below, child, above].map(whole), out: sum });
                sum
            } else {
                whole(child)
            };
            let out = shape.row_mut(out, row);
            if !tx.coarsened {
                out.copy_from_slice(&line[PAD..PAD + out.len()]);
                continue;
            }
            let last = shape.nx - 1;
            let regular = if tx.child[last] == 2 * last { shape.nx } else { last };
            let weights = [0, 1, 2].map(|s| &tx.restrict[s][..]);
            self.isa.run(RestrictX { fine: &line[PAD - 1..], weights, out: &mut out[..regular] });
            if regular == last {
                let west = PAD + tx.child[last] - 1;
                let [a, b, c] = weights.map(|w| w[last]);
                out[last] = physics::three(a, line[west], b, line[west + 1], c, line[west + 2]);
            }
        }
    }
}
