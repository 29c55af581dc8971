//! The fields on the grid: E, B and J over all corners with guards, laid out by [`Grid::index`].
//!
//! Between steps E and B stand at one time and their guards are valid. Work is shared out by rows, and every value is
//! computed in one way only, so that nothing depends on the number of threads.

mod energy;
mod filter;
mod layers;
mod sides;
mod yee;

use std::ops::Range;

use zellige_engine::error::Result;
use zellige_engine::parallel::{chunks_mut, each};
use zellige_engine::real::RealScalar;
use zellige_engine::record::Values;

use self::layers::Layers;
use crate::grid::{BELOW, Grid};
use crate::stages::cells::cells;
use crate::stages::images::Quantity;
use crate::stages::{Component, Precision, Setup, Sheet, Smoothing};

/// Rows that a task takes.
const BAND: usize = 16;

/// The fields of a domain.
#[derive(Debug, Clone)]
pub struct FieldSet<T> {
    /// The domain.
    pub grid: Grid,
    /// Electric field, guards valid between steps.
    pub e: [Vec<T>; 3],
    /// Magnetic field, likewise.
    pub b: [Vec<T>; 3],
    /// Current: particles add to it, guards included, between [`FieldSet::begin`] and [`FieldSet::current`]. Its guards are
    /// not kept after that.
    pub j: [Vec<T>; 3],
    /// Fields that are felt and do not advance, and their sum with those that do: E then B. Empty where there are none.
    external: [Vec<T>; 6],
    total_field: [Vec<T>; 6],
    smoothing: [Smoothing; 2],
    layers: Layers<T>,
    scratch: Vec<T>,
    electric: [f64; 3],
    magnetic: [f64; 3],
    /// Work of E on J so far, where it is added up; columns with sheets, which are left out.
    work: Option<f64>,
    sheets: Vec<usize>,
}

impl<T: RealScalar> FieldSet<T> {
    /// All fields zero.
    pub fn new(setup: &Setup) -> Self {
        let grid = setup.grid.clone();
        let zero = || std::array::from_fn(|_| vec![T::ZERO; grid.len()]);
        let external: [Vec<T>; 6] = std::array::from_fn(|c| setup.external[c].iter().map(|v| T::from_f64(*v)).collect());
        let mut smoothing = setup.smoothing;
        if grid.dimensions == 1 {
            // One row, periodic: the filter would change nothing but round-off.
            smoothing[1] = Smoothing::default();
        }
        Self {
            e: zero(),
            b: zero(),
            j: zero(),
            total_field: external.clone(),
            external,
            smoothing,
            layers: Layers::new(&grid, setup.absorbing_cells),
            scratch: Vec::new(),
            electric: [0.0; 3],
            magnetic: [0.0; 3],
            work: None,
            sheets: Vec::new(),
            grid,
        }
    }

    /// `J = 0`; takes the energies where `measure` says so.
    pub fn begin(&mut self, measure: bool) {
        if measure {
            self.measure();
        }
        self.j.iter_mut().for_each(|j| sides::clear(&self.grid, j));
    }

    /// Completes J: guards to where they belong, wall corners, the filter, the sheets (which are not filtered, so that an
    /// antenna radiates what it is asked for).
    pub fn current(&mut self, sheets: &[Sheet]) {
        for (c, component) in [Component::Jx, Component::Jy, Component::Jz].into_iter().enumerate() {
            let quantity = Quantity::Vector(component);
            sides::fold(&self.grid, quantity, &mut self.j[c]);
            filter::smooth(&self.grid, self.smoothing, quantity, &mut self.j[c], &mut self.scratch);
        }
        self.sheets.clear();
        self.sheets.extend(sheets.iter().filter(|s| s.axis == 0).map(|s| s.node));
        self.sheets.sort_unstable();
        self.sheets.dedup();
        for sheet in sheets {
            self.on_line(sheet, |j, value| *j += value);
        }
    }

    /// Gives `f` each node of a line with what the sheet has for it.
    fn on_line(&mut self, sheet: &Sheet, f: impl Fn(&mut T, T)) {
        for (k, value) in sheet.values.iter().enumerate() {
            let (node, k) = (sheet.node as isize, k as isize);
            let place = if sheet.axis == 0 { self.grid.index(node, k) } else { self.grid.index(k, node) };
            f(&mut self.array_mut(sheet.component)[place], T::from_f64(*value));
        }
    }

    /// From time n to n + 1: B half a step, E a step, B half a step, with sides and layers.
    pub fn field(&mut self) {
        let before = self.work.map(|_| self.power());
        self.advance_b(false);
        self.advance_e();
        self.advance_b(true);
        if let (Some(work), Some(before)) = (self.work, before) {
            self.work = Some(work + 0.5 * self.grid.dt * (before + self.power()));
        }
        self.add_external();
    }

    /// Moves all fields one cell towards lower x; the last column of cells becomes empty, but for lines of E and B in `ahead`.
    /// External fields stay as they are in the window's frame.
    pub fn shift(&mut self, ahead: &[Sheet]) {
        let (n, pitch) = (self.grid.cells[0] + BELOW, self.grid.pitch());
        for (array, component) in self.e.iter_mut().chain(&mut self.b).chain(&mut self.j).zip(Component::ALL) {
            // The last values inside stood at the far side; those half a cell further are new.
            let first_new = n - usize::from(Quantity::Vector(component).half(0));
            each(chunks_mut(array, pitch), |_, row| {
                row.copy_within(1.., 0);
                row[first_new..].fill(T::ZERO);
            });
        }
        for line in ahead {
            self.on_line(line, |field, value| *field = value);
        }
        self.layers.shift();
        self.guards();
    }

    /// A component of E or B that acts on particles, external fields included. Guards are valid.
    pub fn gathered(&self, component: Component) -> &[T] {
        let c = component as usize;
        assert!(c < 6, "E and B are felt");
        match (self.total_field[c].is_empty(), c < 3) {
            (false, _) => &self.total_field[c],
            (true, true) => &self.e[c],
            (true, false) => &self.b[c - 3],
        }
    }

    /// A component over all corners with valid guards, external fields excluded.
    pub fn get(&self, component: Component) -> Vec<f64> {
        let mut copy = self.array(component).clone();
        sides::guards(&self.grid, Quantity::Vector(component), &mut copy);
        copy.iter().map(|v| v.to_f64()).collect()
    }

    /// A component on the cells of the box, as [`crate::stages::Stages::cells`] gives it.
    pub fn cells(&self, component: Component, precision: Precision, scale: f64) -> Result<Values> {
        let fetch = |range: Range<usize>, to: &mut [T]| {
            to.copy_from_slice(&self.array(component)[range]);
            Ok(())
        };
        cells(&self.grid, Quantity::Vector(component), precision, scale, fetch)
    }

    /// Sets a component; the guards given are replaced by what the sides say.
    pub fn set(&mut self, component: Component, values: &[f64]) {
        let grid = self.grid.clone();
        let array = self.array_mut(component);
        array.iter_mut().zip(values).for_each(|(a, v)| *a = T::from_f64(*v));
        sides::guards(&grid, Quantity::Vector(component), array);
        self.add_external();
    }

    /// Charge density of deposits: guards to where they belong, wall corners, the filter of the current where `smoothed`
    /// says so, guards filled.
    pub fn complete_charge(&self, rho: &mut [T], smoothed: bool) {
        complete_charge(&self.grid, if smoothed { self.smoothing } else { <[Smoothing; 2]>::default() }, rho);
    }

    /// `1/2 E^2` per component over the domain, as of the last measured step.
    pub fn electric(&self) -> [f64; 3] {
        self.electric
    }

    /// `1/2 B^2` likewise.
    pub fn magnetic(&self) -> [f64; 3] {
        self.magnetic
    }

    /// Adds up the work of E on J from here on.
    pub fn count_work(&mut self) {
        self.work = Some(0.0);
    }

    /// `sum dt integral J.E` since then, with E in the middle of the step; columns with sheets are left out.
    pub fn work(&self) -> f64 {
        self.work.unwrap_or(0.0)
    }

    /// The memory of the absorbing layers, and the work, named.
    pub fn auxiliary_state(&self) -> Vec<(String, Vec<f64>)> {
        let work = self.work.map(|work| ("work".to_owned(), vec![work]));
        self.layers.auxiliary_state().into_iter().chain(work).collect()
    }

    /// Takes back what [`FieldSet::auxiliary_state`] gave; entries of other names are left alone.
    pub fn set_auxiliary_state(&mut self, state: &[(String, Vec<f64>)]) {
        self.layers.set_auxiliary_state(state);
        if let (Some(work), Some((_, saved))) = (&mut self.work, state.iter().find(|entry| entry.0 == "work")) {
            *work = saved.iter().sum();
        }
    }

    /// Bytes held.
    pub fn memory(&self) -> u64 {
        let arrays = self.e.iter().chain(&self.b).chain(&self.j).chain(&self.external).chain(&self.total_field);
        let values = arrays.map(Vec::len).sum::<usize>() + self.scratch.len() + self.layers.len();
        (values * size_of::<T>()) as u64
    }

    fn array(&self, component: Component) -> &Vec<T> {
        let c = component as usize;
        [&self.e, &self.b, &self.j][c / 3].get(c % 3).expect("three components")
    }

    fn array_mut(&mut self, component: Component) -> &mut Vec<T> {
        let c = component as usize;
        [&mut self.e, &mut self.b, &mut self.j][c / 3].get_mut(c % 3).expect("three components")
    }

    /// Fills all guards of E and B.
    fn guards(&mut self) {
        for c in 0..3 {
            sides::guards(&self.grid, Quantity::Vector(Component::ALL[c]), &mut self.e[c]);
            sides::guards(&self.grid, Quantity::Vector(Component::ALL[c + 3]), &mut self.b[c]);
        }
        self.add_external();
    }

    /// Adds the external fields to those that advance.
    fn add_external(&mut self) {
        for (c, own) in self.e.iter().chain(&self.b).enumerate() {
            if !self.external[c].is_empty() {
                sides::sum(&self.grid, &mut self.total_field[c], own, &self.external[c]);
            }
        }
    }
}

/// Fills the guards of an array from the nodes inside.
pub(crate) fn fill_guards<T: RealScalar>(grid: &Grid, component: Component, array: &mut [T]) {
    sides::guards(grid, Quantity::Vector(component), array);
}

/// Makes a charge density of deposits: guards to where they belong, wall corners, the filter, guards filled.
pub(crate) fn complete_charge<T: RealScalar>(grid: &Grid, smoothing: [Smoothing; 2], rho: &mut [T]) {
    sides::fold(grid, Quantity::Charge, rho);
    filter::smooth(grid, smoothing, Quantity::Charge, rho, &mut Vec::new());
    sides::guards(grid, Quantity::Charge, rho);
}
