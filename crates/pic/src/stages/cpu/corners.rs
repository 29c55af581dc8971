//! State of `div E - rho` at each corner: crate::gauss.

use zellige_engine::error::Result;
use zellige_engine::parallel::{chunks, chunks_mut, indices, map};
use zellige_engine::real::RealScalar;

use crate::gauss::{ChargeCheck, ChargeErrors, Corner, check_corner};
use crate::grid::{BELOW, Grid};
use crate::stages::part::Part;

/// Base and variance of all corners, a row of them turned round as far as a window has gone.
#[derive(Debug)]
pub(super) struct Corners {
    pub(super) base: Vec<f64>,
    pub(super) variance: Vec<f64>,
}

impl Corners {
    /// None has been seen.
    pub(super) fn new(grid: &Grid) -> Self {
        Self { base: vec![0.0; grid.len()], variance: vec![0.0; grid.len()] }
    }

    /// Looks at them, with the number of particles, the charge, its magnitude summed over species, and E in x and y.
    pub(super) fn check_charge<T: RealScalar>(
        &mut self,
        (part, grid): (&Part, &Grid),
        check: &ChargeCheck<'_>,
        particles: u64,
        rho: &[f64],
        all: &[f64],
        [ex, ey]: [&[T]; 2],
    ) -> Result<ChargeErrors> {
        let (pitch, turn, [hx, hy]) = (grid.pitch(), check.shift(grid.pitch()), grid.h);
        let some = grid.inside().start * pitch..grid.inside().end * pitch;
        let rows = part.loops(|| {
            let arrays = (chunks(&ex[some.clone()], pitch), chunks(&ey[some.clone()], pitch), chunks(&all[some], pitch));
            map(arrays, |_, (ex, ey, all)| {
                let squares = |row: &[T], h: f64| row[BELOW..BELOW + grid.nodes(0)].iter().map(|e| (e.to_f64() / h).powi(2)).sum::<f64>();
                let total = all[BELOW..BELOW + grid.nodes(0)].iter().sum::<f64>();
                [squares(ex, hx), squares(ey, hy), all.iter().copied().fold(0.0, f64::max), total]
            })
        });
        let rows = part.lists_of_rows(grid, vec![rows.concat()])?.concat();
        let rows = rows.as_chunks::<4>().0.iter();
        let [x, y, fullest, total] = rows.fold([0.0; 4], |[x, y, most, sum], [a, b, c, d]| [x + a, y + b, f64::max(most, *c), sum + d]);
        // Those at the fullest corner, if they have the mean charge.
        let summands = if total > 0.0 { particles as f64 * fullest / total } else { 0.0 };
        let rounding = check.rounding((x + y) / (grid.nodes(0) * grid.nodes(1)) as f64, fullest, summands);
        let (first, inside) = (grid.held().start as isize - BELOW as isize, grid.inside());
        let looked_at = |(row, base, variance): (usize, &mut [f64], &mut [f64])| {
            let (j, mut seen) = (row as isize + first, ChargeErrors::NONE);
            if !inside.contains(&row) || !check.range[1].contains(&j) {
                return seen;
            }
            for i in check.range[0].clone() {
                let at = grid.index(i, j);
                let k = (at % pitch + turn) % pitch;
                let variance_was = if check.forget[i as usize] { 0.0 } else { variance[k] };
                let was = Corner { base: base[k], variance: variance_was, change: 0.0, limit: 0.0 };
                let [right, left] = [at, grid.index(i - 1, j)].map(|at| ex[at].to_f64() / hx);
                let [upper, lower] = [at, at - grid.across()].map(|at| ey[at].to_f64() / hy);
                let now = check_corner(right, left, upper, lower, rho[at], all[at], was, rounding);
                (base[k], variance[k]) = (now.base, now.variance);
                seen = seen.join(ChargeErrors::of(&now));
            }
            seen
        };
        let found = part.loops(|| {
            let arrays = (chunks_mut(&mut self.base, pitch), chunks_mut(&mut self.variance, pitch), indices(grid.rows()));
            map(arrays, |row, (base, variance, _)| looked_at((row, base, variance)))
        });
        let found = part.lists_of_rows(grid, vec![found.into_iter().flat_map(ChargeErrors::to_numbers).collect()])?.concat();
        let found = found.as_chunks::<4>().0.iter().map(|numbers| ChargeErrors::from_numbers(*numbers));
        Ok(found.fold(ChargeErrors::NONE, ChargeErrors::join))
    }
}
