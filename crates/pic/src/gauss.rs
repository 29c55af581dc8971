//! `div E - rho`: it does not change where the current conserves charge, whatever it was at the start.
//!
//! What rounding may change is estimated corner by corner: the numbers next to it are rounded once a step, so that the variance of
//! `div E - rho` grows by the square of `eps` times what is there. The largest of a million normal numbers is five standard deviations;
//! ten are the limit.

use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::error::Result;
use zellige_engine::record::Check;

use crate::grid::{FieldSide, Grid};
use crate::stages::{Component, Energies, Precision, Setup, Stages};

/// Standard deviations that pass.
const SIGMAS: f64 = 10.0;
/// Standard deviation of the rounding of a number, over `eps` times it: `2^-1/sqrt(12)` of the distance of two numbers, which is `eps` to
/// `eps/2` of it, and as much again for the difference of B that is added.
const OF_FIELD: f64 = 0.3;
/// The same of a step's current at a corner, over `eps` times the largest charge of all species at any: partial sums in the order of
/// particles, or their unit on a GPU (where quadratic shapes were found to need three quarters of it).
const OF_CHARGE: f64 = 0.6;
/// Mean squares of fields count so often: waves that passed between two looks are not spread over the whole box.
const CONCENTRATION: f64 = 4.0;
/// Looks at each column while a window goes over it.
const LOOKS: f64 = 4.0;

/// The residual at the start, what rounding may have made of it, and where it is looked at.
#[derive(Debug, Clone)]
pub struct Gauss {
    grid: Grid,
    smoothed: bool,
    species: usize,
    eps: f64,
    /// Corners per axis: those of walls and of absorbing layers, in which E is stretched, are left out.
    range: [std::ops::Range<isize>; 2],
    /// The residual that corners had when they were first seen; NaN before.
    base: Vec<f64>,
    /// Variance of rounding since then.
    variance: Vec<f64>,
    /// Step of the last look.
    step: u64,
    /// Sum and number of the mean squares of fields, over the squares of cells, that were measured since then.
    squares: [f64; 2],
    /// Change and limit of the corner where their ratio was largest; none before a corner was seen twice.
    worst: Option<[f64; 2]>,
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
            species: setup.species.len(),
            eps: if setup.precision == Precision::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON },
            base: vec![f64::NAN; grid.len()],
            variance: vec![0.0; grid.len()],
            step: 0,
            squares: [0.0; 2],
            worst: None,
            grid,
        }
    }

    /// Whether the charge goes through the filter of the current.
    pub fn smoothed(&self) -> bool {
        self.smoothed
    }

    /// Most steps between two looks while a window moves, so that it does not go over a column unseen.
    pub fn window_steps(&self) -> u64 {
        let columns = (self.range[0].end - self.range[0].start).max(1) as f64;
        ((columns * self.grid.h[0] / self.grid.dt / LOOKS) as u64).max(1)
    }

    /// A sheet of current on a column has charge of its own where it is not even along y: its corners are not looked at.
    pub fn leave_out(&mut self, column: usize) {
        for j in 0..self.grid.nodes(1) as isize {
            let at = self.grid.index(column as isize, j);
            self.base[at] = f64::NAN;
        }
    }

    /// Takes the fields of a measured step.
    pub fn measured(&mut self, energies: &Energies) {
        let volume = self.grid.cell_volume() * (self.grid.cells[0] * self.grid.cells[1]) as f64;
        let [x, y] = [0, 1].map(|d| 2.0 * energies.electric[d] / volume / self.grid.h[d].powi(2));
        self.squares = [self.squares[0] + x + y, self.squares[1] + 1.0];
    }

    /// The window moves a cell: so does what is known of corners, and the last column is new.
    pub fn shift(&mut self) {
        let pitch = self.grid.pitch();
        for row in self.base.chunks_exact_mut(pitch) {
            row.copy_within(1.., 0);
            row[pitch - 1] = f64::NAN;
        }
        for row in self.variance.chunks_exact_mut(pitch) {
            row.copy_within(1.., 0);
        }
        // What was laid down beside new plasma is seen afresh.
        for j in 0..self.grid.nodes(1) as isize {
            for i in self.range[0].end - 3..self.range[0].end {
                let at = self.grid.index(i.max(0), j);
                self.base[at] = f64::NAN;
            }
        }
    }

    /// Looks at all corners after `step` steps; the largest change since they were first seen, `e n_0`.
    pub fn look(&mut self, stages: &mut dyn Stages, step: u64) -> Result<f64> {
        let (mut rho, mut all) = (vec![0.0; self.grid.len()], vec![0.0; self.grid.len()]);
        for s in 0..self.species {
            for ((sum, all), r) in rho.iter_mut().zip(&mut all).zip(stages.charge(s, self.smoothed)?) {
                *sum += r;
                *all += r.abs();
            }
        }
        let (ex, ey) = (stages.component(Component::Ex)?, stages.component(Component::Ey)?);
        let grid = &self.grid;
        let [hx, hy] = grid.h;
        let steps = step.saturating_sub(self.step) as f64;
        // Measured fields may all be older than what is there now; and sums are rounded to a unit of the largest charge on a GPU, so that
        // near-empty corners round as full ones do.
        let mean = |e: &[f64], h: f64| e.iter().map(|e| (e / h).powi(2)).sum::<f64>() / e.len() as f64;
        let now = 2.0 * (mean(&ex, hx) + mean(&ey, hy));
        let passed = 2.0 * CONCENTRATION * (self.squares[0] / self.squares[1].max(1.0)).max(now);
        let fullest = all.iter().copied().fold(0.0, f64::max);
        let mut most = 0.0_f64;
        for j in self.range[1].clone() {
            for i in self.range[0].clone() {
                let at = grid.index(i, j);
                let faces = [ex[at] / hx, ex[grid.index(i - 1, j)] / hx, ey[at] / hy, ey[grid.index(i, j - 1)] / hy];
                let residual = faces[0] - faces[1] + faces[2] - faces[3] - rho[at];
                let (field, charge) = (OF_FIELD * OF_FIELD * faces.iter().map(|f| f * f).sum::<f64>(), (OF_CHARGE * fullest).powi(2));
                // The residual and its base are rounded as well, once each.
                let reading = 2.0 * self.eps * self.eps * (field + all[at] * all[at]);
                if self.base[at].is_nan() {
                    self.base[at] = residual;
                    self.variance[at] = reading;
                    // NaN must not pass for what has not been seen.
                    most = if residual.is_nan() { f64::NAN } else { most };
                    continue;
                }
                self.variance[at] += steps * self.eps * self.eps * (field + OF_FIELD * OF_FIELD * passed + charge);
                let (change, limit) = ((residual - self.base[at]).abs(), SIGMAS * (self.variance[at] + reading).sqrt());
                most = if change.is_nan() { f64::NAN } else { most.max(change) };
                let worse = self.worst.is_none_or(|[c, l]| change * l > c * limit || (change > 0.0 && limit == 0.0));
                if worse || change.is_nan() {
                    self.worst = Some([change, limit]);
                }
            }
        }
        (self.step, self.squares) = (step, [0.0; 2]);
        if most.is_nan() {
            self.worst = Some([f64::NAN, 0.0]);
        }
        Ok(most)
    }

    /// The change at the corner where it was largest beside what rounding makes; none where no corner was seen twice.
    pub fn check(&self) -> Option<Check> {
        let [change, limit] = self.worst?;
        Some(Check::at_most("change of div E - rho, largest beside its rounding (e n_0)", change, limit))
    }

    /// For a checkpoint.
    pub fn save(&self, writer: &mut Writer) -> Result<()> {
        writer.f64s("gauss", &self.base)?;
        writer.f64s("gauss.variance", &self.variance)?;
        writer.u64("gauss.step", self.step)?;
        let [change, limit] = self.worst.unwrap_or_default();
        writer.f64s("gauss.sums", &[self.squares[0], self.squares[1], f64::from(u8::from(self.worst.is_some())), change, limit])
    }

    /// From a checkpoint.
    pub fn restore(&mut self, reader: &Reader) -> Result<()> {
        reader.f64s_into("gauss", &mut self.base)?;
        reader.f64s_into("gauss.variance", &mut self.variance)?;
        self.step = reader.u64("gauss.step")?;
        let mut sums = [0.0; 5];
        reader.f64s_into("gauss.sums", &mut sums)?;
        self.squares = [sums[0], sums[1]];
        self.worst = (sums[2] > 0.0).then_some([sums[3], sums[4]]);
        Ok(())
    }
}
