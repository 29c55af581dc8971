//! `div E - rho`: it does not change where the current conserves charge, whatever it was at the start.

use zellige_engine::error::Result;

use crate::grid::{FieldSide, Grid};
use crate::stages::{Component, Precision, Setup, Stages};

/// The residual at the start, and where it is looked at.
#[derive(Debug, Clone)]
pub struct Gauss {
    grid: Grid,
    smoothed: bool,
    species: usize,
    /// Corners per axis: those of walls and of absorbing layers, in which E is stretched, are left out.
    range: [std::ops::Range<isize>; 2],
    /// The residual that corners had when they were first seen; NaN before.
    base: Vec<f64>,
    /// Largest term of the sum seen so far, `e n_0`: what rounding is relative to.
    scale: f64,
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
        let range = [0, 1].map(|d| margin(d, 0)..grid.nodes(d) as isize - margin(d, 1));
        let base = vec![f64::NAN; grid.len()];
        Self { smoothed: setup.smoothing.iter().any(|s| s.passes > 0), species: setup.species.len(), range, base, scale: 0.0, grid }
    }

    /// Whether the charge goes through the filter of the current.
    pub fn smoothed(&self) -> bool {
        self.smoothed
    }

    /// What rounding may do to the residual in `steps` steps: `eps` of its largest term in each, of random sign; ten sigmas.
    pub fn limit(&self, setup: &Setup, steps: u64) -> f64 {
        let eps = if setup.precision == Precision::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
        // Particles of all species pass charge on even where their sum is neutral.
        let cells = (setup.grid.cells[0] * setup.grid.cells[1]).max(1) as f64;
        let charge: f64 = setup.species.iter().zip(&setup.expected).map(|(s, n)| s.macro_charge().abs() * *n as f64 / cells).sum();
        10.0 * eps * (self.scale + charge.max(f64::MIN_POSITIVE)) * (1.0 + (steps as f64).sqrt())
    }

    /// The residuals that corners began with.
    pub fn base(&self) -> &[f64] {
        &self.base
    }

    /// Takes them back.
    pub fn set_base(&mut self, base: Vec<f64>) {
        self.base = base;
    }

    /// The window moves a cell: so do the residuals, and the last column has none yet.
    pub fn shift(&mut self) {
        let pitch = self.grid.pitch();
        for row in self.base.chunks_exact_mut(pitch) {
            row.copy_within(1.., 0);
            row[pitch - 1] = f64::NAN;
        }
        // What was laid down beside new plasma is seen afresh.
        for j in 0..self.grid.nodes(1) as isize {
            for i in self.range[0].end - 3..self.range[0].end {
                let at = self.grid.index(i.max(0), j);
                self.base[at] = f64::NAN;
            }
        }
    }

    /// The largest change of the residual since corners were first seen, `e n_0`.
    pub fn largest_change(&mut self, stages: &mut dyn Stages) -> Result<f64> {
        let mut rho = vec![0.0; self.grid.len()];
        for s in 0..self.species {
            for (sum, r) in rho.iter_mut().zip(stages.charge(s, self.smoothed)?) {
                *sum += r;
            }
        }
        let (ex, ey) = (stages.component(Component::Ex)?, stages.component(Component::Ey)?);
        let (grid, mut worst, mut scale) = (&self.grid, 0.0_f64, self.scale);
        for j in self.range[1].clone() {
            for i in self.range[0].clone() {
                let at = grid.index(i, j);
                let div = (ex[at] - ex[grid.index(i - 1, j)]) / grid.h[0] + (ey[at] - ey[grid.index(i, j - 1)]) / grid.h[1];
                let term = (ex[at] / grid.h[0]).abs().max((ey[at] / grid.h[1]).abs()).max(rho[at].abs());
                scale = scale.max(term);
                let residual = div - rho[at];
                if self.base[at].is_nan() {
                    self.base[at] = residual;
                }
                let change = (residual - self.base[at]).abs();
                // NaN must not be lost in the maximum.
                worst = if change.is_nan() { f64::NAN } else { worst.max(change) };
            }
        }
        self.scale = scale;
        Ok(worst)
    }
}
