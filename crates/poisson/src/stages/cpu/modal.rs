//! The bottom level solved directly in the modes of its axes, `e = -B (F r) / (lambda_x + lambda_y + lambda_z)`: small dense
//! products along each axis, there and back. What `cuda/bottom.rs` does on a GPU.

use zellige_engine::real::RealScalar;

use super::field::Field;
use super::isa::{Isa, Work};
use crate::grid::Grid;
use crate::stages::eigen::Modes;

/// The matrices of a level and room for its values.
#[derive(Debug)]
pub(super) struct ModalSolver {
    /// Nodes within a row, rows, slabs.
    nodes: [usize; 3],
    /// For each axis that is not flat: which, and its matrices there and back.
    axes: Vec<(usize, [Vec<f64>; 2])>,
    eigenvalues: [Vec<f64>; 3],
    /// The operator's factor.
    scale: f64,
    values: Vec<f64>,
    next: Vec<f64>,
}

/// `out = sum_k factors[k] rows[k]`, rows of the length of `out`.
struct Combine<'a> {
    factors: &'a [f64],
    rows: &'a [f64],
    out: &'a mut [f64],
}

impl Work for Combine<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let n = self.out.len();
        let out = &mut self.out[..n];
        out.fill(0.0);
        let mut rows = self.rows.chunks_exact(4 * n);
        let mut factors = self.factors.chunks_exact(4);
        for (rows, f) in (&mut rows).zip(&mut factors) {
            let (a, b, c, d) = (&rows[..n], &rows[n..][..n], &rows[2 * n..][..n], &rows[3 * n..][..n]);
            let (fa, fb, fc, fd) = (f[0], f[1], f[2], f[3]);
            for i in 0..n {
                out[i] += (fa * a[i] + fb * b[i]) + (fc * c[i] + fd * d[i]);
            }
        }
        for (row, f) in rows.remainder().chunks_exact(n).zip(factors.remainder()) {
            for i in 0..n {
                out[i] += *f * row[i];
            }
        }
    }
}

fn transposed(matrix: &[f64], n: usize) -> Vec<f64> {
    (0..n * n).map(|q| matrix[(q % n) * n + q / n]).collect()
}

impl ModalSolver {
    /// For `grid`, whose axes are in the order of a row, rows and slabs, and its operator times `scale`.
    pub(super) fn new(grid: &Grid, scale: f64) -> Self {
        let modes = grid.axes.each_ref().map(Modes::new);
        let matrices = |d: usize| {
            let n = grid.axes[d].nodes;
            let both = [&modes[d].forward, &modes[d].backward];
            // Along a row the values are the factors, and the rows of the transposed matrix are combined.
            (d, both.map(|m| if d == 0 { transposed(m, n) } else { m.clone() }))
        };
        let axes = (0..3).filter(|d| !grid.axes[*d].is_flat()).map(matrices).collect();
        let (values, next) = (vec![0.0; grid.len()], vec![0.0; grid.len()]);
        Self { nodes: grid.axes.each_ref().map(|a| a.nodes), axes, eigenvalues: modes.map(|m| m.values), scale, values, next }
    }

    pub(super) fn bytes(&self) -> u64 {
        let matrices: usize = self.axes.iter().map(|(_, m)| m[0].len() + m[1].len()).sum();
        8 * (matrices + 2 * self.values.len()) as u64
    }

    /// The product along axis `d`.
    fn product(&mut self, isa: Isa, d: usize, matrix: usize) {
        let [nx, rows, slabs] = self.nodes;
        let Some((_, matrices)) = self.axes.iter().find(|(axis, _)| *axis == d) else { return };
        let matrix = &matrices[matrix];
        let (values, next) = (&self.values, &mut self.next);
        if d == 0 {
            for (factors, out) in values.chunks_exact(nx).zip(next.chunks_exact_mut(nx)) {
                isa.run(Combine { factors, rows: matrix, out });
            }
        } else {
            // Rows of a slab, or slabs of the level.
            let (length, count) = if d == 1 { (nx, rows) } else { (nx * rows, slabs) };
            for (rows, out) in values.chunks_exact(length * count).zip(next.chunks_exact_mut(length * count)) {
                for (factors, out) in matrix.chunks_exact(count).zip(out.chunks_exact_mut(length)) {
                    isa.run(Combine { factors, rows, out });
                }
            }
        }
        std::mem::swap(&mut self.values, &mut self.next);
    }

    /// Solves `A e = r`; of a singular problem the constant mode is left out.
    pub(super) fn solve<T: RealScalar>(&mut self, isa: Isa, r: &Field<T>, e: &mut Field<T>) {
        let [nx, rows, slabs] = self.nodes;
        let place = |n: usize| (n % nx, n / nx % rows, n / (nx * rows));
        for (n, value) in self.values.iter_mut().enumerate() {
            let (i, j, k) = place(n);
            *value = r.at(i, j, k).to_f64();
        }
        (0..3).for_each(|d| self.product(isa, d, 0));
        for k in 0..slabs {
            for j in 0..rows {
                let across = self.eigenvalues[1][j] + self.eigenvalues[2][k];
                let row = &mut self.values[(k * rows + j) * nx..][..nx];
                for (value, along) in row.iter_mut().zip(&self.eigenvalues[0]) {
                    let sum = -self.scale * (along + across);
                    *value = if sum == 0.0 { 0.0 } else { *value / sum };
                }
            }
        }
        (0..3).for_each(|d| self.product(isa, d, 1));
        for (n, value) in self.values.iter().enumerate() {
            let (i, j, k) = place(n);
            *e.at_mut(i, j, k) = T::from_f64(*value);
        }
    }
}
