//! `div E - rho`: it does not change where the current conserves charge, whatever it was at the start.
//!
//! What rounding may change is estimated corner by corner: the numbers next to it are rounded once a step, so that the variance of
//! `div E - rho` grows by the square of `eps` times what is there. The largest of a million normal numbers is five standard
//! deviations; ten are the limit.

use std::ops::Range;

use zellige_device_macro::{device, device_source};
use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::error::Result;
use zellige_engine::real::{Real, select};
use zellige_engine::record::Check;

use crate::grid::{FieldSide, Grid};
use crate::stages::{Energies, Precision, Setup, Stages};

/// Standard deviations that pass.
const SIGMAS: f64 = 10.0;
/// Standard deviation of the rounding of a number, over `eps` times it: `2^-1/sqrt(12)` of the distance of two numbers, which is
/// `eps` to `eps/2` of it, and as much again for the difference of B that is added.
const OF_FIELD: f64 = 0.3;
/// Standard deviation of the rounding of a step's current at a corner, over `eps` times the largest charge of all species at any.
const OF_CHARGE: f64 = 0.3;
/// Mean squares of fields count so often: waves that passed between two checks are not spread over the whole box.
const CONCENTRATION: f64 = 4.0;
/// Looks at each column while a window goes over it.
const CHECKS_PER_COLUMN: f64 = 4.0;

/// Numbers of a check at all corners.
#[device]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rounding<R> {
    /// Steps since the last check, times `eps^2`.
    pub steps: R,
    /// Twice `eps^2`.
    pub reading: R,
    /// Variance of a field's number, over the squares of `eps` and of the number; of those that have passed; and of the charges.
    pub of_field: R,
    /// Likewise of the fields that have passed.
    pub passed: R,
    /// Likewise of the charges.
    pub charge: R,
    /// Standard deviations that pass.
    pub sigmas: R,
}

/// A corner: its stored state, and the result of a check.
#[device]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Corner<R> {
    /// Residual that it had when it was first seen.
    pub base: R,
    /// Variance of rounding since then; 0 before.
    pub variance: R,
    /// Change of the residual; not a number where that is none.
    pub change: R,
    /// Limit that rounding sets to it; negative where the corner was not seen before.
    pub limit: R,
}

/// A check of a corner between faces with E over the cell of `right`, `left`, `upper` and `lower`, with the charge `rho`, the
/// magnitudes of which of all species are `all`.
#[device]
pub fn check_corner<R: Real>(right: R, left: R, upper: R, lower: R, rho: R, all: R, was: Corner<R>, of: Rounding<R>) -> Corner<R> {
    let residual = right - left + upper - lower - rho;
    let field = of.of_field * (right * right + left * left + upper * upper + lower * lower);
    // The residual and its base are rounded as well, once each. Above 0: the corner has been seen.
    let reading = R::max(of.reading * (field + all * all), R::from_f64(1e-300));
    let fresh = was.variance.le(R::ZERO);
    let base = select(fresh, residual, was.base);
    let grown = was.variance + of.steps * (field + of.passed + of.charge);
    let limit = of.sigmas * (grown + reading).sqrt();
    Corner::<R> {
        base,
        variance: select(fresh, reading, grown),
        change: (residual - base).abs(),
        limit: select(fresh, R::ZERO - R::ONE, limit),
    }
}

/// The formulae above as CUDA C++.
pub const GAUSS: &[&str] = &device_source![Rounding, Corner, check_corner];

/// Input of a backend for a check of all corners.
#[derive(Debug, Clone, Copy)]
pub struct ChargeCheck<'a> {
    /// Corners per axis: those of walls and of absorbing layers, in which E is stretched, are left out.
    pub range: &'a [Range<isize>; 2],
    /// True if the charge goes through the filter of the current.
    pub smoothed: bool,
    /// Columns that are seen as for the first time, by their nodes.
    pub forget: &'a [bool],
    /// Cells that a window has gone.
    pub moved: u64,
    /// Steps until the last check and until this one.
    steps: [f64; 2],
    eps: f64,
    squares: f64,
}

impl ChargeCheck<'_> {
    /// The numbers of it where the squares of fields over those of cells are `now` on the mean, and the fullest corner has
    /// `fullest`, added up from `summands` currents one after the other (0: without rounding). Each partial sum is rounded: of `n`
    /// equal summands to a variance of `sum_k (k/n)^2 = n/3` times that of the whole.
    pub fn rounding(&self, now: f64, fullest: f64, summands: f64) -> Rounding<f64> {
        let square = self.eps * self.eps;
        // Measured fields may all be older than what is there now; and sums are rounded to a unit of the largest charge on a GPU, so that
        // near-empty corners round as full ones do.
        let passed = 2.0 * CONCENTRATION * self.squares.max(2.0 * now);
        Rounding {
            steps: (self.steps[1] - self.steps[0]) * square,
            reading: 2.0 * square,
            of_field: OF_FIELD * OF_FIELD,
            passed: OF_FIELD * OF_FIELD * passed,
            charge: (OF_CHARGE * fullest).powi(2) * (1.0 + summands / 3.0),
            sigmas: SIGMAS,
        }
    }

    /// Index at which a row of `pitch` nodes keeps the state of its first one: a window moves on without moving the state.
    pub fn shift(&self, pitch: usize) -> usize {
        (self.moved % pitch as u64) as usize
    }
}

/// Result of a check of some corners.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChargeErrors {
    /// Largest change; not a number where a residual is none.
    pub most: f64,
    /// Change and limit where the change is largest beside its limit; none where no corner was seen before.
    pub worst: Option<[f64; 2]>,
}

impl ChargeErrors {
    /// Nothing.
    pub const NONE: Self = Self { most: 0.0, worst: None };

    /// Numbers that [`ChargeErrors::from_numbers`] takes back.
    pub(crate) fn to_numbers(self) -> [f64; 4] {
        let [change, limit] = self.worst.unwrap_or_default();
        [self.most, f64::from(u8::from(self.worst.is_some())), change, limit]
    }

    /// See above.
    pub(crate) fn from_numbers([most, some, change, limit]: [f64; 4]) -> Self {
        Self { most, worst: (some > 0.0).then_some([change, limit]) }
    }

    /// Combines with the result at other corners.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        let most = if self.most.is_nan() || other.most.is_nan() { f64::NAN } else { self.most.max(other.most) };
        let worst = match (self.worst, other.worst) {
            (Some([c, l]), Some([change, limit])) if change * l > c * limit || change.is_nan() => Some([change, limit]),
            (None, other) => other,
            (own, _) => own,
        };
        Self { most, worst }
    }

    /// Result of a check of one corner.
    pub fn of(found: &Corner<f64>) -> Self {
        let worst = (found.limit >= 0.0).then_some([found.change, found.limit]);
        Self { most: found.change, worst }
    }
}

/// Corners at which the residual is looked at, and the results so far; the state of each corner is with the backend.
#[derive(Debug, Clone)]
pub struct Gauss {
    grid: Grid,
    smoothed: bool,
    eps: f64,
    range: [Range<isize>; 2],
    /// Columns that were touched from outside since the last check.
    forget: Vec<bool>,
    /// Step of the last check.
    step: u64,
    /// Sum and number of the mean squares of fields, over the squares of cells, that were measured since then.
    squares: [f64; 2],
    /// Of all checks.
    seen: ChargeErrors,
}

impl Gauss {
    /// For a set-up; nothing has been seen.
    pub fn new(setup: &Setup) -> Self {
        let grid = setup.grid.clone();
        let margin = |d: usize, end: usize| match grid.fields[d][end] {
            FieldSide::Periodic => 0,
            FieldSide::Absorbing => setup.absorbing_cells as isize + 1,
            FieldSide::Pec | FieldSide::Pmc => 1,
        };
        Self {
            range: [0, 1].map(|d| margin(d, 0)..grid.nodes(d) as isize - margin(d, 1)),
            smoothed: setup.smoothing.iter().any(|s| s.passes > 0),
            eps: if setup.precision == Precision::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON },
            forget: vec![false; grid.nodes(0)],
            step: 0,
            squares: [0.0; 2],
            seen: ChargeErrors::NONE,
            grid,
        }
    }

    /// True if the charge goes through the filter of the current.
    pub fn smoothed(&self) -> bool {
        self.smoothed
    }

    /// Most steps between two checks while a window moves, so that it does not go over a column unseen.
    pub fn window_steps(&self) -> u64 {
        let columns = (self.range[0].end - self.range[0].start).max(1) as f64;
        ((columns * self.grid.h[0] / self.grid.dt / CHECKS_PER_COLUMN) as u64).max(1)
    }

    /// A sheet of current on a column has charge of its own where it is not even along y: its corners are not looked at.
    pub fn leave_out(&mut self, column: usize) {
        self.forget[column] = true;
    }

    /// Fields or particles were changed from outside: all corners are seen afresh.
    pub fn forget_all(&mut self) {
        self.forget.fill(true);
    }

    /// Takes the fields of a measured step.
    pub fn measured(&mut self, energies: &Energies) {
        let volume = self.grid.cell_volume() * (self.grid.cells[0] * self.grid.cells[1]) as f64;
        let [x, y] = [0, 1].map(|d| 2.0 * energies.electric[d] / volume / self.grid.h[d].powi(2));
        self.squares = [self.squares[0] + x + y, self.squares[1] + 1.0];
    }

    /// The window moves a cell: columns go with it, and what was laid down beside new plasma is seen afresh.
    pub fn shift(&mut self) {
        self.forget.rotate_left(1);
        let end = self.range[0].end.max(0) as usize;
        self.forget[end.saturating_sub(3)..].fill(true);
    }

    /// Checks all corners after `step` steps, the window having gone `moved` cells; the largest change since they were first
    /// seen, `e n_0`.
    pub fn update(&mut self, stages: &mut dyn Stages, step: u64, moved: u64) -> Result<f64> {
        let seen = stages.check_charge(&ChargeCheck {
            range: &self.range,
            smoothed: self.smoothed,
            forget: &self.forget,
            moved,
            steps: [self.step.min(step), step].map(|n| n as f64),
            eps: self.eps,
            squares: self.squares[0] / self.squares[1].max(1.0),
        })?;
        self.forget.fill(false);
        (self.step, self.squares) = (step, [0.0; 2]);
        self.seen = self.seen.join(seen);
        if self.seen.most.is_nan() {
            self.seen.worst = Some([f64::NAN, 0.0]);
        }
        Ok(seen.most)
    }

    /// The change at the corner where it was largest beside what rounding makes; none where no corner was seen twice.
    pub fn check(&self) -> Option<Check> {
        let [change, limit] = self.seen.worst?;
        Some(Check::at_most("continuity error, where it is largest relative to rounding (e n_0)", change, limit))
    }

    /// For a checkpoint.
    pub fn save(&self, writer: &mut Writer) -> Result<()> {
        writer.u64("gauss.step", self.step)?;
        writer.bytes("gauss.forget", &self.forget.iter().map(|f| u8::from(*f)).collect::<Vec<_>>())?;
        let [most, some, change, limit] = self.seen.to_numbers();
        writer.f64s("gauss.sums", &[self.squares[0], self.squares[1], some, change, limit, most])
    }

    /// From a checkpoint.
    pub fn restore(&mut self, reader: &Reader) -> Result<()> {
        self.step = reader.u64("gauss.step")?;
        let forget = reader.bytes("gauss.forget")?;
        if forget.len() != self.forget.len() {
            return Err(reader.content_error("the columns of the residual are not those of the box"));
        }
        self.forget.iter_mut().zip(forget).for_each(|(to, f)| *to = f != 0);
        let mut sums = [0.0; 6];
        reader.f64s_into("gauss.sums", &mut sums)?;
        let [x, y, some, change, limit, most] = sums;
        self.squares = [x, y];
        self.seen = ChargeErrors::from_numbers([most, some, change, limit]);
        Ok(())
    }
}
