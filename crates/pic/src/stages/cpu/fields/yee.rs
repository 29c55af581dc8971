//! Maxwell's equations on the Yee grid, E and B at one time (B in two halves):
//!
//! ```text
//! Bx -= dt/2 dEz/dy     By += dt/2 dEz/dx     Bz += dt/2 (dEx/dy - dEy/dx)
//! Ex += dt (dBz/dy - Jx)     Ey -= dt (dBz/dx + Jy)     Ez += dt (dBy/dx - dBx/dy - Jz)
//! ```
//!
//! Source: Yee, IEEE Trans. Antennas Propag. 14 (1966) 302. A pass reads the one field and writes the other, so rows are
//! independent: 9 and 12 values a cell.

use std::ops::Range;

use zellige_engine::parallel::{chunks_mut, each};
use zellige_engine::real::RealScalar;

use super::{BAND, FieldSet, sides};
use crate::grid::{ABOVE, BELOW, Grid};
use crate::stages::Component;
use crate::stages::images::Quantity;

impl<T: RealScalar> FieldSet<T> {
    /// B half a step and its guards; `remember` also advances the memory of the layers, which is due when E is new.
    ///
    /// Rows of guards that other parts have are advanced as these do it: E is valid there, and B need not be sent.
    pub(super) fn advance_b(&mut self, remember: bool) {
        let grid = &self.grid;
        let (pitch, across, n) = (grid.pitch(), grid.across(), grid.cells);
        let [hx, hy] = grid.h.map(|h| T::from_f64(0.5 * grid.dt / h));
        let end = BELOW + grid.nodes(0);
        let [corners, halves] = both_fields(grid);
        let [ex, ey, ez] = &self.e;
        rows(&mut self.b, pitch, corners.clone(), |row, [bx, by, bz]| {
            let (here, above) = (row * pitch + BELOW, row * pitch + BELOW + across);
            let count = n[0];
            let after = &ez[here..];
            for ((b, e), next) in by[BELOW..].iter_mut().zip(&after[..count]).zip(&after[1..]) {
                *b += hx * (*next - *e);
            }
            if row < halves.end {
                for ((b, e), up) in bx[BELOW..end].iter_mut().zip(&ez[here..]).zip(&ez[above..]) {
                    *b -= hy * (*up - *e);
                }
                let (ex, up, ey) = (&ex[here..here + count], &ex[above..above + count], &ey[here..=here + count]);
                let bz = &mut bz[BELOW..BELOW + count];
                for i in 0..count {
                    bz[i] += hy * (up[i] - ex[i]) - hx * (ey[i + 1] - ey[i]);
                }
            }
        });
        self.layers.add_to_b(grid, &mut self.b, &self.e, remember, &corners);
        for c in 0..3 {
            sides::guards_of_steps(grid, Quantity::Vector(Component::ALL[3 + c]), &mut self.b[c], corners.clone());
        }
    }

    /// E a step and its guards, but not those that other parts have. What is tangential to a conductor is put back to
    /// zero with the guards.
    pub(super) fn advance_e(&mut self) {
        let grid = &self.grid;
        let (pitch, across, n) = (grid.pitch(), grid.across(), grid.cells);
        let dt = T::from_f64(grid.dt);
        let [hx, hy] = grid.h.map(|h| T::from_f64(grid.dt / h));
        let corners = grid.nodes(0);
        let inside = grid.inside();
        let halves = BELOW..BELOW + grid.held().len();
        let ([bx, by, bz], [jx, jy, jz]) = (&self.b, &self.j);
        rows(&mut self.e, pitch, inside.clone(), |row, [ex, ey, ez]| {
            let (here, below) = (row * pitch + BELOW, row * pitch + BELOW - across);
            let count = n[0];
            {
                let (bz, down, jx) = (&bz[here..here + count], &bz[below..below + count], &jx[here..here + count]);
                let ex = &mut ex[BELOW..BELOW + count];
                for i in 0..count {
                    ex[i] += hy * (bz[i] - down[i]) - dt * jx[i];
                }
                let (by, jz) = (&by[here - 1..here + corners], &jz[here..here + corners]);
                let (bx, down) = (&bx[here..here + corners], &bx[below..below + corners]);
                let ez = &mut ez[BELOW..BELOW + corners];
                for i in 0..corners {
                    ez[i] += hx * (by[i + 1] - by[i]) - hy * (bx[i] - down[i]) - dt * jz[i];
                }
            }
            if row < halves.end {
                let (bz, jy) = (&bz[here - 1..here + corners], &jy[here..here + corners]);
                let ey = &mut ey[BELOW..BELOW + corners];
                for i in 0..corners {
                    ey[i] -= hx * (bz[i + 1] - bz[i]) + dt * jy[i];
                }
            }
        });
        self.layers.add_to_e(grid, &mut self.e, &self.b, &inside);
        for c in 0..3 {
            sides::guards_of_steps(grid, Quantity::Vector(Component::ALL[c]), &mut self.e[c], inside.clone());
        }
    }
}

/// Rows of corners and of halfway nodes on which both fields can be advanced: those inside, and where other parts go on the guards
/// that are valid for E together with the row above.
fn both_fields(grid: &Grid) -> [Range<usize>; 2] {
    let begin = if grid.continues(0) { 0 } else { BELOW };
    let above = BELOW + grid.held().len() + ABOVE - 1;
    let end = |end: usize| if grid.continues(1) { above } else { end };
    [begin..end(grid.inside().end), begin..end(BELOW + grid.held().len())]
}

/// Calls `work` with some rows of the arrays, and their numbers.
fn rows<T: RealScalar>(arrays: &mut [Vec<T>; 3], pitch: usize, some: Range<usize>, work: impl Fn(usize, [&mut [T]; 3]) + Sync) {
    let [x, y, z] = arrays;
    let band = pitch * BAND;
    each((chunks_mut(x, band), chunks_mut(y, band), chunks_mut(z, band)), |k, (x, y, z)| {
        let rows = x.chunks_mut(pitch).zip(y.chunks_mut(pitch)).zip(z.chunks_mut(pitch));
        for (r, ((x, y), z)) in rows.enumerate() {
            let row = k * BAND + r;
            if some.contains(&row) {
                work(row, [x, y, z]);
            }
        }
    });
}
