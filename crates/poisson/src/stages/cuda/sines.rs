//! The bottom level in the sine modes of both axes, by FFTs in shared memory (sines.cu): any number of intervals that is a
//! power of two, all alike, between held ends. Its three launches take little longer on 1025 nodes an axis than the products
//! and the elimination of `bottom.rs` on 257, and replace two more levels.

use std::f64::consts::PI;

use zellige_device_macro::device;

use super::arguments;
use super::bottom::{Argument, BottomLaunch};
use super::tables::Number;
use crate::grid::{Axis, Bc, Grid};

/// Intervals of an axis: a thread has eight points of the line continued to twice its length, a block at most 1024 threads.
const INTERVALS: std::ops::RangeInclusive<usize> = 16..=1024;
/// Threads of a block that transforms rows.
const ROW_THREADS: usize = 256;

/// Transform of all lines of an axis.
#[device]
#[derive(Debug, Clone, Copy)]
pub(super) struct Sines {
    from: *const real,
    to: *mut real,
    roots: *const Complex,
    /// Eigenvalues along the axes.
    x: *const real,
    y: *const real,
    scale: f64,
    /// Points of a continued line.
    n: i32,
    /// Lines between the ends.
    lines: i32,
    /// Lines of a block at once.
    width: i32,
    /// Points of a line in shared memory.
    stride: i32,
    pitch: i32,
}

/// Pairs of columns of a block: 32 bytes of a row.
fn columns(number: Number) -> usize {
    16 / number.bytes()
}

/// Points of a line in shared memory: gaps after every eight, and lines beside each other in other banks.
fn stride(points: usize) -> usize {
    (points * 9 / 8).next_multiple_of(16) + 4
}

/// Bytes of shared memory of `lines` lines.
fn shared(points: usize, lines: usize, number: Number) -> usize {
    lines * stride(points) * 2 * number.bytes()
}

/// Returns true if `grid` can be solved by sines within `limit` bytes of shared memory per block.
pub(super) fn fit(grid: &Grid, number: Number, limit: u32) -> bool {
    let sines = |axis: &Axis| {
        let intervals = axis.intervals();
        let alike = axis.theta == 1.0 && axis.lo == Bc::Dirichlet && axis.hi == Bc::Dirichlet;
        alike && intervals.is_power_of_two() && INTERVALS.contains(&intervals)
    };
    let [x, y, z] = &grid.axes;
    z.is_flat() && sines(x) && sines(y) && {
        let least = shared(2 * y.intervals(), columns(number), number).max(shared(2 * x.intervals(), rows(x), number));
        least <= limit as usize
    }
}

/// Pairs of rows of a block.
fn rows(x: &Axis) -> usize {
    (ROW_THREADS / (x.intervals() / 4)).max(1)
}

/// `exp(-2 pi i k / n)`, real and imaginary parts in turn.
fn roots(points: usize) -> Vec<f64> {
    (0..points).map(|k| 2.0 * PI * k as f64 / points as f64).flat_map(|angle| [angle.cos(), -angle.sin()]).collect()
}

/// Eigenvalues of minus the axis' operator, from that of the constant on; none matters beyond the last node.
fn values(axis: &Axis) -> Vec<f64> {
    let (n, (weight, _)) = (axis.intervals(), axis.weights(axis.unknowns().start));
    (0..axis.nodes.next_multiple_of(4)).map(|k| 4.0 * weight * (0.5 * PI * k as f64 / n as f64).sin().powi(2)).collect()
}

/// The tables of both axes in a row, and where each begins: roots and eigenvalues of x, and of y.
pub(super) fn tables(grid: &Grid) -> (Vec<f64>, [usize; 4]) {
    let [x, y, _] = &grid.axes;
    let mut all = Vec::new();
    let solution_omega = [roots(2 * x.intervals()), values(x), roots(2 * y.intervals()), values(y)].map(|table| {
        all.extend_from_slice(&table);
        all.len() - table.len()
    });
    (all, solution_omega)
}

/// The launches from `r` over `between` to `e`, with the addresses of the [`tables`].
pub(super) fn steps(
    grid: &Grid,
    argument: &arguments::Level,
    number: Number,
    [r, between, e]: [u64; 3],
    tables: [u64; 4],
) -> Vec<BottomLaunch> {
    let [x, y, _] = &grid.axes;
    let ([nx, ny], [roots_x, values_x, roots_y, values_y]) = ([x.intervals(), y.intervals()], tables);
    let there = Sines {
        from: r,
        to: between,
        roots: roots_x,
        x: values_x,
        y: values_y,
        // A sum of sines there and back is N / 2 times the line, and a transform makes twice the sum.
        scale: 0.5 / nx as f64,
        n: 2 * nx as i32,
        lines: ny as i32 - 1,
        width: rows(x) as i32,
        stride: stride(2 * nx) as i32,
        pitch: argument.pitch,
    };
    let along = Sines { from: between, roots: roots_y, scale: 0.5 / ny as f64, n: 2 * ny as i32, lines: nx as i32 - 1, ..there };
    let along = Sines { width: columns(number) as i32, stride: stride(2 * ny) as i32, ..along };
    let back = Sines { from: between, to: e, scale: 1.0, ..there };
    let step = |argument: fn(Sines) -> Argument, sines: Sines, lines: usize| BottomLaunch {
        argument: argument(sines),
        blocks: (lines.div_ceil(2 * sines.width as usize) as u32, 1, 1),
        threads: (sines.width * sines.n / 8) as u32,
        shared: shared(sines.n as usize, sines.width as usize, number) as u32,
    };
    vec![step(Argument::Rows, there, ny - 1), step(Argument::Columns, along, nx), step(Argument::Rows, back, ny - 1)]
}

impl Sines {
    /// Floating-point operations a node.
    pub(super) fn flops(&self) -> f64 {
        // n log2 n / 4 butterflies of ten flops for two lines of n / 2 nodes.
        5.0 * f64::from(self.n).log2()
    }

    /// Redirects the output to another field.
    pub(super) fn to(self, to: u64) -> Self {
        Self { to, ..self }
    }
}
