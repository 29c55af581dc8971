//! Error bars from batches: of what is summed over time, and of the values of cells, which are ratios of sums.

use zellige_engine::parallel::{chunks, chunks_mut, each};

use super::values::{Base, bases, cell_values, lines, width};
use crate::grid::Rectangle;
use crate::model::Model;

/// Cells whose values are made at a time.
const PIECE: usize = 256;
/// Batches that must have seen a particle for an error bar of what is an average over particles, or all where there are fewer.
pub(crate) const FILLED: u64 = 4;

/// Mean and summed squared deviation of batches (Welford), of what is linear in the sums.
#[derive(Debug, Clone, Default)]
pub(super) struct Spread {
    pub(super) mean: Vec<f64>,
    pub(super) square: Vec<f64>,
}

impl Spread {
    pub(super) fn new(n: usize) -> Self {
        Self { mean: vec![0.0; n], square: vec![0.0; n] }
    }

    /// Takes batch number `count`, from 1.
    pub(super) fn add(&mut self, values: &[f64], count: u64) {
        for ((mean, square), x) in self.mean.iter_mut().zip(&mut self.square).zip(values) {
            let before = x - *mean;
            *mean += before / count as f64;
            *square += before * (x - *mean);
        }
    }

    /// Standard error of the mean of `count` batches.
    pub(super) fn error(&self, i: usize, count: u64) -> f64 {
        if count < 2 { f64::NAN } else { (self.square[i] / ((count - 1) * count) as f64).sqrt() }
    }
}

/// Scatter of the values of cells as batches are added to the sums.
///
/// With `V_b` the value of all batches up to number `b` and `W_b` what it is taken over up to there, the sum `Q` of
/// `W_b W_(b-1) (V_b - V_(b-1))^2` gives the squared error `Q/W^2 F/(F-1)` of the last value, `F` the batches with anything in
/// them. Where `V` is a mean of batch values by their weights `w`, this is the ratio estimator, the sum of `w^2 (v - V)^2` over
/// `W^2`, and with even weights Welford's. It is the spread of the value that is written, whatever a batch alone would give: a
/// temperature is about the velocity of all of them.
#[derive(Debug, Clone)]
pub(super) struct Cells {
    bases: Vec<Base>,
    /// `V` and `Q`, `[cell][width]`.
    pub(super) value: Vec<f64>,
    pub(super) square: Vec<f64>,
    /// Batches with particles, `[cell][line]`: of the gas, and of each species of a mixture.
    pub(super) filled: Vec<f64>,
    lines: usize,
}

impl Cells {
    /// Scatter of `cells` cells.
    pub(super) fn new(model: &Model, cells: usize) -> Self {
        let (width, lines) = (width(model), lines(model));
        Self {
            bases: bases(model),
            value: vec![0.0; cells * width],
            square: vec![0.0; cells * width],
            filled: vec![0.0; cells * lines],
            lines,
        }
    }

    /// Adds the sums `batch` of the cells of an area to `all`; it is number `count`, from 1, of batches of `samples` samples.
    pub(super) fn add(&mut self, model: &Model, area: Rectangle, all: &mut [f64], batch: &[f64], count: u64, samples: u64) {
        let (from, lines, bases) = (model.species.len() * model.collisions.sums(), self.lines, &self.bases);
        let width = bases.len();
        // Some cells at a time: their values stay in the cache, where those of all would be written to memory and read again.
        let spread = (chunks_mut(&mut self.value, PIECE * width), chunks_mut(&mut self.square, PIECE * width));
        let filled = chunks_mut(&mut self.filled, PIECE * lines);
        each((spread.0, spread.1, filled, (chunks_mut(all, PIECE * from), chunks(batch, PIECE * from))), |piece, part| {
            let (value, square, filled, (all, batch)) = part;
            let (mut found, mut weight) = (vec![0.0; width], vec![[0.0; 2]; lines]);
            for (k, (all, batch)) in all.chunks_exact_mut(from).zip(batch.chunks_exact(from)).enumerate() {
                for (line, (weight, filled)) in weight.iter_mut().zip(&mut filled[k * lines..]).enumerate() {
                    let (before, here) = (number(model, all, line), number(model, batch, line));
                    *weight = [before, before + here];
                    *filled += f64::from(u8::from(here > 0.0));
                }
                all.iter_mut().zip(batch).for_each(|(to, from)| *to += from);
                let cell = model.grid.index(area.cell(piece * PIECE + k));
                cell_values(model, cell, all, count * samples, &mut found);
                let (value, square) = (&mut value[k * width..][..width], &mut square[k * width..][..width]);
                for (((value, square), new), base) in value.iter_mut().zip(square).zip(&found).zip(bases) {
                    let [before, after] = match base {
                        Base::Time => [count as f64 - 1.0, count as f64],
                        Base::Particles(line) => weight[*line],
                    };
                    let step = new - *value;
                    // A free path is infinite as long as nothing is known of the temperature.
                    if before > 0.0 && step.is_finite() {
                        *square += before * after * step * step;
                    }
                    *value = *new;
                }
            }
        });
    }

    /// Standard error of a value of a cell after `count` batches; `sums` are all of the cell.
    pub(super) fn error(&self, model: &Model, cell: usize, value: usize, sums: &[f64], count: u64) -> f64 {
        let (filled, weight) = match self.bases[value] {
            Base::Time => (count, count as f64),
            Base::Particles(line) => (self.filled(cell, line), number(model, sums, line)),
        };
        if filled < FILLED.min(count) || filled < 2 {
            return f64::NAN;
        }
        (self.square[cell * self.bases.len() + value] * filled as f64 / (filled - 1) as f64).sqrt() / weight
    }

    /// Batches with particles of a line in a cell.
    pub(super) fn filled(&self, cell: usize, line: usize) -> u64 {
        self.filled[cell * self.lines + line] as u64
    }
}

/// Particles in the sums of a cell: of all, or of species `line - 1`.
fn number(model: &Model, sums: &[f64], line: usize) -> f64 {
    let mut each = sums.chunks_exact(model.collisions.sums()).map(|s| s[0]);
    if line == 0 { each.sum() } else { each.nth(line - 1).unwrap_or(0.0) }
}
