//! Particles in portions, for what takes them from the host.

use std::ops::Range;

use zellige_engine::error::Result;
use zellige_engine::parallel::{each, map, owned};

use super::{Batch, Source};
use crate::particles::Particles;

/// Particles handed over at a time, about.
const PORTION: usize = 1 << 22;
/// Cells of a batch.
const CELLS: usize = 64;

impl Source<'_> {
    /// The particles in the columns `columns` of the box, row by row, in portions.
    pub fn portions(&self, columns: Range<usize>, mut give: impl FnMut(Particles) -> Result<()>) -> Result<()> {
        let width = columns.len().max(1);
        let batches = (width * self.model.grid.cells[1]).div_ceil(CELLS);
        let step = (PORTION / self.most(CELLS).max(1)).max(1);
        for first in (0..batches).step_by(step) {
            let parts: Vec<Particles> = map(first..(first + step).min(batches), |_, batch| {
                let end = ((batch + 1) * CELLS).min(columns.len() * self.model.grid.cells[1]);
                let cell = |k: usize| [(columns.start + k % width) as u32, (k / width) as u32];
                let mut out = Batch::default();
                self.fill((batch * CELLS..end).map(cell), &mut out)?;
                Ok(out.particles())
            })
            .into_iter()
            .collect::<Result<_>>()?;
            give(joined(&parts))?;
        }
        Ok(())
    }
}

impl Batch {
    /// With the cell of each.
    fn particles(self) -> Particles {
        let of = |axis: usize| self.cell.iter().map(|c| self.cells[*c as usize][axis]).collect();
        Particles { i: of(0), j: of(1), s: self.s, t: self.t, u: self.u, weight: self.weight, tag: self.tag }
    }
}

/// One after the other.
pub(crate) fn joined(parts: &[Particles]) -> Particles {
    Particles {
        i: column(parts, |p| &p.i),
        j: column(parts, |p| &p.j),
        s: column(parts, |p| &p.s),
        t: column(parts, |p| &p.t),
        u: [0, 1, 2].map(|c| column(parts, |p| &p.u[c])),
        weight: column(parts, |p| &p.weight),
        tag: column(parts, |p| &p.tag),
    }
}

fn column<T: bytemuck::Pod + Send + Sync>(parts: &[Particles], of: impl Fn(&Particles) -> &[T] + Sync) -> Vec<T> {
    let mut out = vec![T::zeroed(); parts.iter().map(|p| of(p).len()).sum()];
    let mut rest = out.as_mut_slice();
    let pieces: Vec<_> = parts.iter().map(|p| (rest.split_off_mut(..of(p).len()).expect("as many as there are"), of(p))).collect();
    each(owned(pieces), |_, (to, from)| to.copy_from_slice(from));
    out
}
