//! A part of a gas on GPUs among the others: which cells and particles are its own, and what comes together of all.

use std::borrow::Cow;

use zellige_engine::error::Result;

use super::Gas;
use super::beyond::Beyond;
use crate::grid::Rectangle;
use crate::particles::Particles;
use crate::stages::shares::area;

impl Gas {
    /// Looks at the slabs between parts where that is due.
    pub(super) fn look_beyond(&mut self) -> Result<()> {
        let Some(beyond) = self.beyond.as_mut().filter(|_| Beyond::look_is_due(self.steps)) else { return Ok(()) };
        beyond.look(self.steps)?;
        self.whole().map(|_| ())
    }

    /// Cells of each part, in whose order parts hold averages.
    pub(super) fn all_areas(&self) -> Vec<Rectangle> {
        let Some(Beyond { cut, .. }) = &self.beyond else { return Vec::new() };
        let tiling = &self.store.tiling;
        (0..cut.parts()).map(|part| area(cut, part, tiling.tile(), tiling.cells)).collect()
    }

    /// Particles of this part among all.
    pub(super) fn own_of<'a>(&self, all: &'a Particles) -> Cow<'a, Particles> {
        let own = |cell: &u32| self.store.tiling.owns(self.model.grid.cell(*cell as usize));
        if self.beyond.is_none() || all.cell.iter().all(own) {
            return Cow::Borrowed(all);
        }
        let keep: Vec<bool> = all.cell.iter().map(own).collect();
        Cow::Owned(all.chosen(&keep))
    }

    /// Numbers of all tiles, `[outer][tile][inner]`, at the first part, of those of this one.
    pub(super) fn of_all(&self, own: Vec<f64>, outer: usize, inner: usize) -> Result<Vec<f64>> {
        match &self.beyond {
            Some(beyond) => beyond.whole(&self.store.tiling, &own, outer, inner),
            None => Ok(own),
        }
    }

    /// Numbers of the tiles of this part.
    pub(super) fn of_own<'a>(&self, all: &'a [f64], outer: usize, inner: usize) -> Cow<'a, [f64]> {
        match &self.beyond {
            Some(beyond) => Cow::Owned(beyond.own(&self.store.tiling, all, outer, inner)),
            None => Cow::Borrowed(all),
        }
    }

    /// Averages beside sides that follow the gas within, of all parts, at the first one.
    pub(super) fn all_moving(&self) -> Result<Vec<f64>> {
        let mut all = self.cuda.download(&self.moving)?;
        let Some(beyond) = &self.beyond else { return Ok(all) };
        let width = all.len() / self.tables.volume.len().max(1);
        let one = |face: &u32| std::iter::once(f64::from(*face)).chain(all[*face as usize * width..][..width].iter().copied());
        let own = self.tables.followed.iter().flat_map(one).collect();
        for numbers in beyond.links.joined_at_first(own)?.chunks_exact(1 + width) {
            all[numbers[0] as usize * width..][..width].copy_from_slice(&numbers[1..]);
        }
        Ok(all)
    }
}
