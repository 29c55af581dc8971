//! A solve where parts of a run have the planes: each transforms its own, and the systems across them go from part to part.
//!
//! Elimination carries a value of each mode from plane to plane: a part goes on with those of the part before, and substitution
//! comes back with those of the part behind. Modes are independent of each other, so they go in groups, and while one is with the
//! next part this one has another. What a part sends is a plane of values on either way, where transposes of the array, which
//! would make the systems whole, would send nearly all that it has. The arithmetic is that of one part, and so are the bits.

use std::ops::Range;

use zellige_engine::error::Result;
use zellige_engine::links::values;
use zellige_engine::parallel::{chunks, chunks_mut, each};

use super::super::relax::add;
use super::super::transform::Scalar;
use super::Solver;
use super::mode_range::{Elimination, ModeRanges, Substitution};
use crate::direct::waves;
use crate::isa::Run;
use crate::stages::Norms;

impl<T: Scalar> Solver<T> {
    /// Planes of this part with unknowns.
    pub(super) fn own_planes(&self) -> Range<usize> {
        let (own, rows) = (self.share.own(self.nodes[2]), &self.unknowns[2]);
        own.start.max(rows.start)..own.end.min(rows.end)
    }

    /// Solves as [`Solver::solve_on`] does, of which every part does its planes.
    pub(super) fn solve_in_parts(
        &self,
        u: &mut [T],
        f: &[T],
        carry: &mut [T],
        border: &mut [T],
        measured: bool,
    ) -> Result<(f64, Option<Norms>)> {
        let (plane, own, rows) = (self.plane(), self.own_planes(), &self.unknowns[2]);
        let (span, size) = (own.start * plane..own.end * plane, self.group() * plane);
        let planes = &mut u[span.clone()];
        each((chunks_mut(planes, size), chunks(&f[span.clone()], size)), |_, (u, f)| {
            self.analyse(u, f, &mut self.thread_buffers());
        });
        let (mut column, mut removed) = (Vec::new(), 0.0);
        if let Some((place, ends)) = &self.zero {
            column = self.share.joined(planes.chunks(plane).map(|p| p[*place].to_f64()).collect())?;
            removed = ends.solve(&mut column) / self.scale;
        }
        self.systems(planes, own.start, carry, border)?;
        if let Some((place, _)) = &self.zero {
            for (p, value) in planes.chunks_mut(plane).zip(&column[own.start - rows.start..]) {
                p[*place] = T::of(*value);
            }
        }
        each(chunks_mut(planes, size), |_, u| self.synthesise(u, &mut self.thread_buffers()));
        Ok((removed, if measured { Some(self.norms_of(u, f)?) } else { None }))
    }

    /// Solves the systems of all modes, of which this part has some `planes` from number `first` on.
    fn systems(&self, planes: &mut [T], first: usize, carry: &mut [T], border: &mut [T]) -> Result<()> {
        let (links, periodic) = (self.share.links(), self.lines.periodic());
        let (rank, last) = (links.rank(), links.size() - 1);
        let message = |carry: &[T], border: &[T]| -> Vec<u8> {
            let border: &[T] = if periodic { border } else { &[] };
            [bytemuck::cast_slice(carry), bytemuck::cast_slice(border)].concat()
        };
        let take = |message: Vec<u8>, carry: &mut [T], border: &mut [T]| {
            let values = values::<T>(&message);
            let (carried, bordered) = values.split_at(carry.len());
            carry.copy_from_slice(carried);
            if periodic {
                border.copy_from_slice(bordered);
            }
        };
        let groups = waves::groups(self.x.len(), self.middle.len(), links.size());
        // Groups that are on their way to the last part and back when the first of them returns.
        let ahead = 2 * (last - rank);
        for turn in 0..groups.len() + ahead {
            if let Some(group) = groups.get(turn) {
                let modes = group.modes();
                if rank == 0 {
                    carry[modes.clone()].fill(T::ZERO);
                } else {
                    take(links.receive(rank - 1)?, &mut carry[modes.clone()], &mut border[modes.clone()]);
                }
                each(ModeRanges::of_group(self, planes, first, [carry, border], group), |_, mode_range| {
                    self.isa.run(Elimination { lines: &self.lines, mode_range });
                });
                if rank < last {
                    links.send(rank + 1, message(&carry[modes.clone()], &border[modes]))?;
                } else {
                    each(ModeRanges::of_group(self, planes, first, [carry, border], group), |_, range| range.close(&self.lines));
                    carry[modes].fill(T::ZERO);
                }
            }
            if let Some(group) = turn.checked_sub(ahead).and_then(|turn| groups.get(turn)) {
                let modes = group.modes();
                if rank < last {
                    take(links.receive(rank + 1)?, &mut carry[modes.clone()], &mut border[modes.clone()]);
                }
                each(ModeRanges::of_group(self, planes, first, [carry, border], group), |_, mode_range| {
                    self.isa.run(Substitution { lines: &self.lines, mode_range });
                });
                if rank > 0 {
                    links.send(rank - 1, message(&carry[modes.clone()], &border[modes]))?;
                }
            }
        }
        Ok(())
    }

    /// Norms of the residual, of which this part has its planes of `u`; those beside are copied from other parts.
    pub(super) fn norms_of(&self, u: &mut [T], f: &[T]) -> Result<Norms> {
        self.share.copy_beside(u)?;
        let rows = self.field.sums(u, f, self.isa, self.own_planes());
        if !self.share.divided() {
            return Ok(self.field.total(&rows));
        }
        let Norms { l2, max, u_l2 } = Norms::default();
        let sums = self.share.links().in_turn(vec![[l2, max, u_l2]], |before| {
            let [l2, max, u_l2] = before[0];
            let Norms { l2, max, u_l2 } = add(Norms { l2, max, u_l2 }, &rows);
            vec![[l2, max, u_l2]]
        })?;
        let [l2, max, u_l2] = sums[0];
        Ok(self.field.roots(Norms { l2, max, u_l2 }))
    }
}
