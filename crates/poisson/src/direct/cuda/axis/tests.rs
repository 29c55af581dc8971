//! The kernels around the DFTs, run on the CPU: the way to the modes and back through the eigenvalues is the second
//! difference of the line, for every family and every order of splits.

use rustfft::{FftDirection, FftPlanner};
use zellige_engine::testing::host::Host;

use super::*;
use crate::direct::transform::angles;
use crate::grid::{Axis, Bc};

const PAIRS: [(Bc, Bc); 5] = [
    (Bc::Dirichlet, Bc::Dirichlet),
    (Bc::Neumann, Bc::Neumann),
    (Bc::Dirichlet, Bc::Neumann),
    (Bc::Neumann, Bc::Dirichlet),
    (Bc::Periodic, Bc::Periodic),
];

type Z = Complex<f64>;
const ZERO: Z = Complex::new(0.0, 0.0);

type Gather = unsafe extern "C" fn(Transform, LineLayout, *mut Z, f64);
type Scatter = unsafe extern "C" fn(Transform, LineLayout, *mut Z);
type Shrink = unsafe extern "C" fn(*const Z, *mut Z, u32, u32, i32, f64);
type Extend = unsafe extern "C" fn(*const Z, *mut Z, u32, u32, i32);

/// The kernels and the DFTs.
struct TestKernels {
    host: Host,
    planner: FftPlanner<f64>,
}

/// Range of modes of all lines, as in [`Part`].
struct Modes {
    split: Option<Split>,
    at: usize,
    width: usize,
    values: Vec<Z>,
}

impl TestKernels {
    fn dfts(&mut self, values: &mut [Z], points: usize) {
        self.planner.plan_fft(points, FftDirection::Forward).process(values);
    }

    /// Applies `forward`, the eigenvalues of `-h^2 d^2/dx^2` and `backward` to the lines of `layout`.
    fn second_difference(&mut self, axis: &Axis, small: usize, count: usize, layout: LineLayout) {
        let (kind, n, len) = (TransformType::of(axis), axis.intervals(), axis.unknowns().len());
        let (splits, rest) = split(kind, n, small);
        let mut parts = Vec::new();
        let (mut at, mut levels) = (0, [arguments::Split::zeroed(); LEVELS]);
        let mut tables: Vec<Vec<Z>> = splits.iter().map(Split::rotations).collect();
        for ((split, level), table) in splits.iter().zip(&mut levels).zip(&mut tables) {
            let mut part = Modes { split: Some(*split), at, width: split.width(), values: vec![ZERO; split.width() * count] };
            *level = arguments::Split::of(split, part.values.as_mut_ptr() as u64, table.as_mut_ptr() as u64);
            at += part.width;
            parts.push(part);
        }
        let points = if len > at { extension(kind, n, rest) } else { 0 };
        let mut extended = vec![ZERO; points * count];
        if len > at {
            parts.push(Modes { split: None, at, width: len - at, values: vec![ZERO; (len - at) * count] });
        }
        let argument = Transform::of(axis, &levels, &splits, if len > at { rest } else { 0 }, extended.as_mut_ptr() as u64);
        let mut scratch = vec![Z::new(f64::NAN, f64::NAN); line(axis) * count];
        // SAFETY: the parameters of the kernels.
        let (gather, scatter, shrink, extend) = unsafe {
            let host = &self.host;
            let ends = (host.kernel::<Shrink>("shrink"), host.kernel::<Extend>("extend"));
            (host.kernel::<Gather>("gather"), host.kernel::<Scatter>("scatter"), ends.0, ends.1)
        };
        let (scale, lines, number) = (2.0 / n as f64, count as u32, argument.kind as i32);
        let (scratch, places) = (scratch.as_mut_ptr(), [blocks(rest + 1, count), 1, 1]);
        // Few threads, so that each has several nodes.
        self.host.launch([lines, 1, 1], [32, 1, 1], &|| unsafe { gather(argument, layout, scratch, scale) });
        let phi = angles(kind, n, small);
        for part in &mut parts {
            let to = part.values.as_mut_ptr();
            match part.split {
                Some(split) => self.dfts(&mut part.values, split.points),
                None => {
                    self.dfts(&mut extended, points);
                    let e = extended.as_ptr();
                    self.host.launch(places, [256, 1, 1], &|| unsafe { shrink(e, to, rest as u32, lines, number, 0.5 * scale) });
                }
            }
            for line in part.values.chunks_mut(part.width) {
                for (value, phi) in line.iter_mut().zip(&phi[part.at..]) {
                    *value *= 4.0 * (0.5 * phi).sin().powi(2);
                }
            }
            let from = part.values.as_ptr();
            match part.split {
                Some(split) => self.dfts(&mut part.values, split.points),
                None => {
                    let e = extended.as_mut_ptr();
                    self.host.launch(places, [256, 1, 1], &|| unsafe { extend(from, e, rest as u32, lines, number) });
                    self.dfts(&mut extended, points);
                }
            }
        }
        self.host.launch([lines, 1, 1], [32, 1, 1], &|| unsafe { scatter(argument, layout, scratch) });
    }

    /// Lines of `intervals` intervals, once in pairs of rows of a grid and once one behind the other.
    fn check(&mut self, [lo, hi]: [Bc; 2], intervals: usize, small: usize) {
        let axis = Axis::new(intervals + usize::from(lo != Bc::Periodic), 1.0, lo, hi);
        let (len, first) = (axis.unknowns().len(), axis.unknowns().start);
        // Three rows: the second pair has one only.
        let number = |i: usize| ((i * 7919 + intervals) % 1009) as f64 / 504.0 - 1.0;
        let rows: Vec<f64> = (0..3 * axis.nodes).map(number).collect();
        let mut grid = rows.clone();
        let mut layout = LineLayout { first: first as u64, last: axis.nodes as u64, rows: 1, middles: 1, end: 3, ..LineLayout::zeroed() };
        layout.grid = grid.as_mut_ptr() as u64;
        self.second_difference(&axis, small, 2, layout);
        let row = |k: usize| &rows[k * axis.nodes + first..][..len];
        let mut lines: Vec<Z> = row(0).iter().zip(row(1)).chain(row(2).iter().zip(row(0))).map(|(a, b)| Z::new(*a, *b)).collect();
        self.second_difference(&axis, small, 2, LineLayout { lines: lines.as_mut_ptr() as u64, ..LineLayout::zeroed() });
        for k in 0..3 {
            for i in 0..len {
                let at = |step: i32, side: Bc, inside: bool| match side {
                    _ if inside => row(k)[i.wrapping_add_signed(step as isize)],
                    Bc::Dirichlet => 0.0,
                    Bc::Neumann => row(k)[i.wrapping_add_signed(-step as isize)],
                    Bc::Periodic => row(k)[if step < 0 { len - 1 } else { 0 }],
                };
                let expected = 2.0 * row(k)[i] - at(-1, lo, i > 0) - at(1, hi, i + 1 < len);
                let line = lines[k / 2 * len + i];
                for found in [grid[k * axis.nodes + first + i], if k == 1 { line.im } else { line.re }] {
                    // Some dozen roundings of values of order one in each of the splits, times the largest eigenvalue.
                    let limit = 256.0 * f64::EPSILON * (intervals as f64).log2().max(1.0);
                    assert!((found - expected).abs() < limit, "{lo:?} {hi:?} {intervals} ({small}) row {k} node {i}: {found}, {expected}");
                }
            }
        }
    }
}

#[test]
fn every_order_of_splits_is_its_own_way_back() {
    let flat = Axis::flat();
    let recipe = crate::direct::cuda::recipe("double", [&flat, &flat, &Axis::new(33, 1.0, Bc::Dirichlet, Bc::Dirichlet)], false, false);
    let Some(host) = Host::compile(&recipe) else { return };
    let mut machine = TestKernels { host, planner: FftPlanner::new() };
    for (lo, hi) in PAIRS {
        // Split down to nothing, whatever the order of factors: 2 2 3, 2 5 7, 3 13 ..
        for intervals in (2..=72).chain([2 * 77, 4 * 45, 8 * 39, 6 * 121, 2 * 13 * 13]) {
            machine.check([lo, hi], intervals, 2);
        }
        // As on a device; the last three are of grids that once went wrong there.
        for intervals in [256, 258, 270, 300, 301, 330, 1001, 1023, 2 * 1023, 4092, 6000, 8190] {
            machine.check([lo, hi], intervals, SMALL);
        }
    }
}
