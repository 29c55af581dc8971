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
use std::sync::Arc;

use zellige_engine::error::Result;
use zellige_engine::parallel::{chunks_mut, each};
use zellige_engine::real::RealScalar;
use zellige_engine::record::Values;

use self::layers::Layers;
use crate::grid::{ABOVE, BELOW, Grid};
use crate::stages::cells::cells;
use crate::stages::images::Quantity;
use crate::stages::part::{Array, Part};
use crate::stages::rows::{self, ReadRow};
use crate::stages::{Component, Precision, Setup, Sheet, Smoothing};

/// Rows that a task takes.
const BAND: usize = 16;

/// Steps after which parts of a run exchange what they know of the work on particles although nobody has asked for it.
const STEPS: usize = 64;

/// The fields of a domain.
#[derive(Debug, Clone)]
pub struct FieldSet<T> {
    /// The domain, and the rows of it that are here.
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
    part: Arc<Part>,
    /// Sums of `J.E` over rows of this part, two for a step, that are still to be joined with those of others.
    powers: Vec<Vec<Vec<f64>>>,
}

impl<T: RealScalar> FieldSet<T> {
    /// All fields zero, over the whole domain.
    pub fn new(setup: &Setup) -> Self {
        Self::of_part(setup, Arc::new(Part::alone(&setup.grid)))
    }

    /// All fields zero, on the rows of a part.
    pub(super) fn of_part(setup: &Setup, part: Arc<Part>) -> Self {
        let grid = part.grid(&setup.grid);
        let zero = || std::array::from_fn(|_| vec![T::ZERO; grid.len()]);
        let external: [Vec<T>; 6] = std::array::from_fn(|c| match &setup.external[c] {
            none if none.is_empty() => Vec::new(),
            whole => part.share(&grid, whole, grid.pitch()).into_iter().map(T::from_f64).collect(),
        });
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
            powers: Vec::new(),
            part,
            grid,
        }
    }

    /// `J = 0`; takes the energies where `measure` says so.
    pub fn begin(&mut self, measure: bool) -> Result<()> {
        if measure {
            self.measure()?;
        }
        let part = self.part.clone();
        part.loops(|| self.j.iter_mut().for_each(|j| sides::clear(&self.grid, j)));
        Ok(())
    }

    /// Completes J: guards to where they belong, wall corners, the filter, the sheets (which are not filtered, so that an
    /// antenna radiates what it is asked for).
    pub fn current(&mut self, sheets: &[Sheet]) -> Result<()> {
        complete(&self.part, &self.grid, self.smoothing, &mut arrays(Component::Jx, &mut self.j), &mut self.scratch)?;
        self.sheets.clear();
        self.sheets.extend(sheets.iter().filter(|s| s.axis == 0).map(|s| s.node));
        self.sheets.sort_unstable();
        self.sheets.dedup();
        for sheet in sheets {
            self.on_line(sheet, |j, value| *j += value);
        }
        Ok(())
    }

    /// Gives `f` each node of a line inside with what the sheet has for it.
    fn on_line(&mut self, sheet: &Sheet, f: impl Fn(&mut T, T)) {
        let first = self.grid.held().start;
        let held = first..first + self.grid.inside().len();
        for (k, value) in sheet.values.iter().enumerate() {
            if !held.contains(if sheet.axis == 0 { &k } else { &sheet.node }) {
                continue;
            }
            let (node, k) = (sheet.node as isize, k as isize);
            let place = if sheet.axis == 0 { self.grid.index(node, k) } else { self.grid.index(k, node) };
            f(&mut self.array_mut(sheet.component)[place], T::from_f64(*value));
        }
    }

    /// From time n to n + 1: B half a step, E a step, B half a step, with sides and layers.
    pub fn field(&mut self) -> Result<()> {
        let part = self.part.clone();
        let works = self.work.is_some();
        part.loops(|| {
            if works {
                self.powers.push(self.power_of_rows());
            }
            self.advance_b(false);
            self.advance_e();
        });
        part.fill(&self.grid, &mut arrays(Component::Ex, &mut self.e), [BELOW, ABOVE])?;
        part.loops(|| {
            self.advance_b(true);
            if works {
                self.powers.push(self.power_of_rows());
            }
            self.add_external();
        });
        // Alone there is nobody to wait for.
        if self.grid.part.is_none() || self.powers.len() >= 2 * STEPS { self.settle_work() } else { Ok(()) }
    }

    /// Adds up the work of steps for which that is still to be done; all parts take part.
    fn settle_work(&mut self) -> Result<()> {
        let components = 3;
        let rows = self.part.lists_of_rows(&self.grid, self.powers.drain(..).flatten().collect())?;
        for step in rows.chunks_exact(2 * components) {
            let [before, after] = [&step[..components], &step[components..]].map(|rows| self.power(rows));
            self.work = self.work.map(|work| work + 0.5 * self.grid.dt * (before + after));
        }
        Ok(())
    }

    /// Moves all fields one cell towards lower x; the last column of cells becomes empty, but for lines of E and B in `ahead`.
    /// External fields stay as they are in the window's frame.
    pub fn shift(&mut self, ahead: &[Sheet]) -> Result<()> {
        let part = self.part.clone();
        part.loops(|| self.shift_rows(ahead));
        part.fill(&self.grid, &mut arrays(Component::Ex, &mut self.e), [BELOW, ABOVE])?;
        part.fill(&self.grid, &mut arrays(Component::Bx, &mut self.b), [BELOW, ABOVE])?;
        part.loops(|| self.add_external());
        Ok(())
    }

    /// Moves what is here, and fills the guards that no other part has.
    fn shift_rows(&mut self, ahead: &[Sheet]) {
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
        for c in 0..3 {
            sides::guards(&self.grid, Quantity::Vector(Component::ALL[c]), &mut self.e[c]);
            sides::guards(&self.grid, Quantity::Vector(Component::ALL[c + 3]), &mut self.b[c]);
        }
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

    /// A component over all corners of the domain with valid guards, external fields excluded.
    pub fn get(&self, component: Component) -> Result<Vec<f64>> {
        let mut copy = self.part.whole(&self.grid, self.array(component), self.grid.pitch(), true)?;
        sides::guards(&self.grid.whole(), Quantity::Vector(component), &mut copy);
        Ok(copy.iter().map(|v| v.to_f64()).collect())
    }

    /// Rows of nodes of a component that are this part's, external fields excluded, and the number of the first.
    pub(in crate::stages) fn own_rows(&self, component: Component) -> (usize, Vec<f64>) {
        rows::own(&self.part, &self.grid, self.array(component))
    }

    /// Sets a component to rows of nodes of the domain.
    pub(in crate::stages) fn set_rows(&mut self, component: Component, read: ReadRow<'_>) -> Result<()> {
        let held = rows::held(&self.grid, component, read)?;
        *self.array_mut(component) = held.into_iter().map(T::from_f64).collect();
        self.add_external();
        Ok(())
    }

    /// A component on the cells of the box, as [`crate::stages::Stages::cells`] gives it.
    pub fn cells(&self, component: Component, precision: Precision, scale: f64) -> Result<Values> {
        let quantity = Quantity::Vector(component);
        cells_of(&self.grid, quantity, precision, scale, self.array(component))
    }

    /// Sets a component; the guards given are replaced by what the sides say.
    pub fn set(&mut self, component: Component, values: &[f64]) {
        let mut whole: Vec<T> = values.iter().map(|v| T::from_f64(*v)).collect();
        sides::guards(&self.grid.whole(), Quantity::Vector(component), &mut whole);
        *self.array_mut(component) = self.part.share(&self.grid, &whole, self.grid.pitch());
        self.add_external();
    }

    /// Charge density of deposits: guards to where they belong, wall corners, the filter of the current where `smoothed`
    /// says so, guards filled.
    pub fn complete_charge(&self, rho: &mut [T], smoothed: bool) -> Result<()> {
        charge_completed(&self.part, &self.grid, if smoothed { self.smoothing } else { <[Smoothing; 2]>::default() }, rho)
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
    pub fn work(&mut self) -> Result<f64> {
        self.settle_work()?;
        Ok(self.work.unwrap_or(0.0))
    }

    /// The memory of the absorbing layers, whole at the first part, and the work, named.
    pub fn auxiliary_state(&mut self) -> Result<Vec<(String, Vec<f64>)>> {
        self.settle_work()?;
        let work = self.work.map(|work| ("work".to_owned(), vec![work]));
        Ok(self.layers.auxiliary_state(&self.part, &self.grid)?.into_iter().chain(work).collect())
    }

    /// Takes back what [`FieldSet::auxiliary_state`] gave; entries of other names are left alone.
    pub fn set_auxiliary_state(&mut self, state: &[(String, Vec<f64>)]) {
        self.layers.set_auxiliary_state(&self.part, &self.grid, state);
        self.powers.clear();
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

/// Fills the guards of an array of a part from its rows and those of other parts that are in it.
pub(in crate::stages) fn fill_guards_of_rows<T: RealScalar>(grid: &Grid, component: Component, array: &mut [T]) {
    sides::guards_of_rows(grid, Quantity::Vector(component), array);
}

/// Fills the guards of a charge density over the whole domain.
pub(super) fn fill_guards_of_charge<T: RealScalar>(grid: &Grid, rho: &mut [T]) {
    sides::guards(grid, Quantity::Charge, rho);
}

/// Makes a charge density of deposits: guards to where they belong, wall corners, the filter, guards filled.
pub(crate) fn complete_charge<T: RealScalar>(grid: &Grid, smoothing: [Smoothing; 2], rho: &mut [T]) -> Result<()> {
    charge_completed(&Part::alone(grid), grid, smoothing, rho)
}

/// [`complete_charge`] on the rows of a part; guards that other parts have are left as they are.
fn charge_completed<T: RealScalar>(part: &Part, grid: &Grid, smoothing: [Smoothing; 2], rho: &mut [T]) -> Result<()> {
    complete(part, grid, smoothing, &mut [(Quantity::Charge, &mut *rho)], &mut Vec::new())?;
    part.loops(|| sides::guards(grid, Quantity::Charge, rho));
    Ok(())
}

/// Makes densities of deposits: guards to where they belong, wall corners, the filter.
fn complete<T: RealScalar>(
    part: &Part,
    grid: &Grid,
    smoothing: [Smoothing; 2],
    arrays: &mut [Array<'_, T>],
    scratch: &mut Vec<T>,
) -> Result<()> {
    part.loops(|| arrays.iter_mut().for_each(|(quantity, array)| sides::fold(grid, *quantity, array)));
    part.fold(grid, arrays)?;
    filter::smooth(part, grid, smoothing, arrays, scratch)
}

/// The three components of a vector, from `first` on.
fn arrays<T>(first: Component, vector: &mut [Vec<T>; 3]) -> [Array<'_, T>; 3] {
    let mut components = Component::ALL[first as usize..].iter();
    vector.each_mut().map(|array| (Quantity::Vector(*components.next().expect("three components")), &mut array[..]))
}

/// The cells of an array over the rows of a part, as [`crate::stages::cells`] gives them.
pub(super) fn cells_of<T: RealScalar>(grid: &Grid, quantity: Quantity, precision: Precision, scale: f64, array: &[T]) -> Result<Values> {
    cells(grid, quantity, precision, scale, |range: Range<usize>, to: &mut [T]| {
        to.copy_from_slice(&array[range]);
        Ok(())
    })
}
