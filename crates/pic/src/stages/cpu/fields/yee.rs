//! Maxwell's equations on the Yee grid, E and B at one time (B in two halves):
//!
//! ```text
//! Bx -= dt/2 dEz/dy     By += dt/2 dEz/dx     Bz += dt/2 (dEx/dy - dEy/dx)
//! Ex += dt (dBz/dy - Jx)     Ey -= dt (dBz/dx + Jy)     Ez += dt (dBy/dx - dBx/dy - Jz)
//! ```
//!
//! Source: Yee, IEEE Trans. Antennas Propag. 14 (1966) 302. A pass reads the one field and writes the other, so rows are
//! independent: 9 and 12 values a cell.

use zellige_engine::parallel::{chunks_mut, each};
use zellige_engine::real::RealScalar;

use super::{BAND, FieldSet, sides};
use crate::grid::BELOW;
use crate::stages::Component;
use crate::stages::images::Quantity;

impl<T: RealScalar> FieldSet<T> {
    /// B half a step and its guards; `remember` also advances the memory of the layers, which is due when E is new.
    pub(super) fn advance_b(&mut self, remember: bool) {
        let grid = &self.grid;
        let (pitch, across, n) = (grid.pitch(), grid.across(), grid.cells);
        let [hx, hy] = grid.h.map(|h| T::from_f64(0.5 * grid.dt / h));
        let ends = [0, 1].map(|axis| BELOW + grid.nodes(axis));
        let [ex, ey, ez] = &self.e;
        rows(&mut self.b, pitch, |row, [bx, by, bz]| {
            let (here, above) = (row * pitch + BELOW, row * pitch + BELOW + across);
            let count = n[0];
            if row < ends[1] {
                let ez = &ez[here..];
                for ((b, e), next) in by[BELOW..].iter_mut().zip(&ez[..count]).zip(&ez[1..]) {
                    *b += hx * (*next - *e);
                }
            }
            if row < BELOW + n[1] {
                for ((b, e), up) in bx[BELOW..ends[0]].iter_mut().zip(&ez[here..]).zip(&ez[above..]) {
                    *b -= hy * (*up - *e);
                }
                let (ex, up, ey) = (&ex[here..here + count], &ex[above..above + count], &ey[here..=here + count]);
                let bz = &mut bz[BELOW..BELOW + count];
                for i in 0..count {
                    bz[i] += hy * (up[i] - ex[i]) - hx * (ey[i + 1] - ey[i]);
                }
            }
        });
        self.layers.add_to_b(grid, &mut self.b, &self.e, remember);
        for c in 0..3 {
            sides::guards_of_steps(grid, Quantity::Vector(Component::ALL[3 + c]), &mut self.b[c]);
        }
    }

    /// E a step and its guards. What is tangential to a conductor is put back to zero with the guards.
    pub(super) fn advance_e(&mut self) {
        let grid = &self.grid;
        let (pitch, across, n) = (grid.pitch(), grid.across(), grid.cells);
        let dt = T::from_f64(grid.dt);
        let [hx, hy] = grid.h.map(|h| T::from_f64(grid.dt / h));
        let ends = [0, 1].map(|axis| BELOW + grid.nodes(axis));
        let ([bx, by, bz], [jx, jy, jz]) = (&self.b, &self.j);
        rows(&mut self.e, pitch, |row, [ex, ey, ez]| {
            let (here, below) = (row * pitch + BELOW, row * pitch + BELOW - across);
            let (count, corners) = (n[0], ends[0] - BELOW);
            if row < ends[1] {
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
            if row < BELOW + n[1] {
                let (bz, jy) = (&bz[here - 1..here + corners], &jy[here..here + corners]);
                let ey = &mut ey[BELOW..BELOW + corners];
                for i in 0..corners {
                    ey[i] -= hx * (bz[i + 1] - bz[i]) + dt * jy[i];
                }
            }
        });
        self.layers.add_to_e(grid, &mut self.e, &self.b);
        for c in 0..3 {
            sides::guards_of_steps(grid, Quantity::Vector(Component::ALL[c]), &mut self.e[c]);
        }
    }
}

/// Calls `work` with every row that is inside, and its number among all rows.
fn rows<T: RealScalar>(arrays: &mut [Vec<T>; 3], pitch: usize, work: impl Fn(usize, [&mut [T]; 3]) + Sync) {
    let [x, y, z] = arrays;
    let band = pitch * BAND;
    each((chunks_mut(x, band), chunks_mut(y, band), chunks_mut(z, band)), |k, (x, y, z)| {
        let rows = x.chunks_mut(pitch).zip(y.chunks_mut(pitch)).zip(z.chunks_mut(pitch));
        for (r, ((x, y), z)) in rows.enumerate() {
            let row = k * BAND + r;
            if row >= BELOW {
                work(row, [x, y, z]);
            }
        }
    });
}
