//! State of `div E - rho` at each corner: crate::gauss.

use zellige_engine::parallel::{chunks, chunks_mut, indices, map};
use zellige_engine::real::RealScalar;

use crate::gauss::{ChargeCheck, ChargeErrors, Corner, check_corner};
use crate::grid::{BELOW, Grid};

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

    /// Looks at them, with the charge, its magnitude summed over species, and E in x and y.
    pub(super) fn check_charge<T: RealScalar>(
        &mut self,
        grid: &Grid,
        check: &ChargeCheck<'_>,
        rho: &[f64],
        all: &[f64],
        [ex, ey]: [&[T]; 2],
    ) -> ChargeErrors {
        let (pitch, turn, [hx, hy]) = (grid.pitch(), check.shift(grid.pitch()), grid.h);
        let rows = map((chunks(ex, pitch), chunks(ey, pitch), chunks(all, pitch)), |j, (ex, ey, all)| {
            if !(BELOW..BELOW + grid.nodes(1)).contains(&j) {
                return [0.0; 3];
            }
            let squares = |row: &[T], h: f64| row[BELOW..BELOW + grid.nodes(0)].iter().map(|e| (e.to_f64() / h).powi(2)).sum::<f64>();
            [squares(ex, hx), squares(ey, hy), all.iter().copied().fold(0.0, f64::max)]
        });
        let [x, y, fullest] = rows.into_iter().fold([0.0; 3], |[x, y, most], [a, b, c]| [x + a, y + b, f64::max(most, c)]);
        let rounding = check.rounding((x + y) / (grid.nodes(0) * grid.nodes(1)) as f64, fullest);
        let found = map(
            (chunks_mut(&mut self.base, pitch), chunks_mut(&mut self.variance, pitch), indices(grid.rows())),
            |row, (base, variance, _)| {
                let (j, mut seen) = (row as isize - BELOW as isize, ChargeErrors::NONE);
                if !check.range[1].contains(&j) {
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
            },
        );
        found.into_iter().fold(ChargeErrors::NONE, ChargeErrors::join)
    }
}
