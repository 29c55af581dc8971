//! The data of one level.

use zellige_engine::error::Result;
use zellige_engine::real::RealScalar;

use super::field::{Field, Shape};
use super::full::{Interpolation, interpolations};
use super::share::Share;
use super::tables::{AxisTransfer, Operator, transfers};
use crate::grid::{Axis, Grid, Level};

/// One level: `r` and `e` in the inner precision, `u` and `f` in the outer one.
#[derive(Debug)]
pub(super) struct LevelData<T, U> {
    pub grid: Grid,
    pub shape: Shape,
    /// Slabs of each part.
    pub share: Share,
    /// Periodicity along x, across the rows of a slab and across the slabs.
    pub periodic: [bool; 3],
    /// `A` times the common scale of the inner precision.
    pub inner: Operator<T>,
    pub transfer: Option<[AxisTransfer<T>; 3]>,
    pub r: Field<T>,
    /// Absent on level 0 until a stage stores it there.
    pub e: Option<Field<T>>,
    /// Marks `e` as the pre-smoothed correction of the last `descend`.
    pub smoothed: bool,
    pub outer: Option<Outer<U>>,
}

/// Arrays of a level that holds a solution.
#[derive(Debug)]
pub(super) struct Outer<U> {
    pub operator: Operator<U>,
    pub u: Field<U>,
    pub f: Field<U>,
    pub transfer: Option<[AxisTransfer<U>; 3]>,
    /// Interpolation of `u` from the coarser level by lines and by cubics.
    pub linear: Option<[Interpolation<U>; 3]>,
    pub cubic: Option<[Interpolation<U>; 3]>,
}

impl<U: RealScalar> Outer<U> {
    pub(super) fn new(level: &Level, coarse: Option<&Grid>) -> Self {
        let (grid, shape) = (&level.grid, Shape::new(&level.grid));
        let below = level.transfer.as_ref().zip(coarse);
        Self {
            operator: Operator::new(grid, 1.0),
            u: Field::new(shape),
            f: Field::new(shape),
            transfer: below.map(|(t, c)| transfers(t, grid, c)),
            linear: coarse.map(|c| interpolations(grid, c, 1)),
            cubic: coarse.map(|c| interpolations(grid, c, 3)),
        }
    }
}

impl<T: RealScalar, U: RealScalar> LevelData<T, U> {
    pub(super) fn new(level: &Level, coarse: Option<&Grid>, share: Share, scale: f64, finest: bool, outer: bool) -> Self {
        let (grid, shape) = (&level.grid, Shape::new(&level.grid));
        let below = level.transfer.as_ref().zip(coarse);
        Self {
            grid: grid.clone(),
            shape,
            share,
            periodic: grid.axes.each_ref().map(Axis::periodic),
            inner: Operator::new(grid, scale),
            transfer: below.map(|(t, c)| transfers(t, grid, c)),
            r: Field::new(shape),
            e: (!finest || coarse.is_none()).then(|| Field::new(shape)),
            smoothed: false,
            outer: outer.then(|| Outer::new(level, coarse)),
        }
    }

    /// Has the correction beside this part's slabs up to date as far as the finer level reaches, whose pass needs `halo` slabs.
    pub(super) fn copy_correction(&mut self, halo: usize) -> Result<()> {
        match &mut self.e {
            Some(e) => self.share.copy_beside(e, halo / 2 + 2, self.periodic[2]),
            None => Ok(()),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        let outer = self.outer.as_ref().map_or(0, |o| o.u.bytes() + o.f.bytes());
        self.r.bytes() + self.e.as_ref().map_or(0, Field::bytes) + outer
    }
}
