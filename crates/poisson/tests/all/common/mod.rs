//! Helpers shared by the verification tests: devices, problems with known solutions, errors and rates.

#![allow(unreachable_pub)]

use zellige_engine::device::{Cpu, Device};
use zellige_engine::testing;
use zellige_poisson::grid::{Axis, Bc, Grid};
use zellige_poisson::{Method, Options, Precision, Problem, Solution, Status, Tolerance, solve};

/// The CPU, and the GPU where there is one: every test body runs on each.
pub fn devices() -> Vec<Device> {
    let mut all = vec![cpu(2)];
    all.extend(testing::gpu().map(Device::Cuda));
    all
}

pub fn cpu(threads: usize) -> Device {
    Device::Cpu(Cpu::new(threads).unwrap())
}

/// Number `n` of a row in (-1, 1) without pattern.
pub fn noise(n: usize) -> f64 {
    let x = (n as f64 * 12.9898).sin() * 43758.5453;
    2.0 * (x - x.floor()) - 1.0
}

/// A grid by nodes, lengths and sides (lower, upper) of each axis; an axis of one node is none.
pub fn grid(nodes: [usize; 3], lengths: [f64; 3], sides: [(Bc, Bc); 3]) -> Grid {
    let axis = |d: usize| if nodes[d] == 1 { Axis::flat() } else { Axis::new(nodes[d], lengths[d], sides[d].0, sides[d].1) };
    Grid { axes: [axis(0), axis(1), axis(2)] }
}

/// `value(x, y)` at every node, sides included.
pub fn plane(nodes: [usize; 2], size: [f64; 2], value: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    let h = [size[0] / (nodes[0] - 1) as f64, size[1] / (nodes[1] - 1) as f64];
    (0..nodes[0] * nodes[1]).map(|k| value((k % nodes[0]) as f64 * h[0], (k / nodes[0]) as f64 * h[1])).collect()
}

/// Evaluates `value` as [`plane`] does, on a grid that is periodic along both axes.
pub fn torus(nodes: [usize; 2], size: [f64; 2], value: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    let h = [size[0] / nodes[0] as f64, size[1] / nodes[1] as f64];
    (0..nodes[0] * nodes[1]).map(|k| value((k % nodes[0]) as f64 * h[0], (k / nodes[0]) as f64 * h[1])).collect()
}

/// Numbers in [-1, 1) that any language makes again: the index, scrambled in 32 bits.
pub fn scramble(n: usize) -> Vec<f64> {
    (0..n as u32)
        .map(|i| {
            let mut h = i.wrapping_mul(2654435761);
            h ^= h >> 15;
            h = h.wrapping_mul(2246822519);
            h ^= h >> 13;
            f64::from(h) / 2_f64.powi(31) - 1.0
        })
        .collect()
}

/// Two opposite Gaussian charges on 32 x 32, with noise of the given amplitude.
pub fn dipole(intervals: usize, noise: f64) -> Vec<f64> {
    let charge = |x: f64, y: f64, at: f64| (-((x - at).powi(2) + (y - 16.0).powi(2)) / 2.0).exp();
    let n = intervals + 1;
    let mut rho = plane([n, n], [32.0, 32.0], |x, y| charge(x, y, 12.0) - charge(x, y, 20.0));
    rho.iter_mut().zip(scramble(n * n)).for_each(|(r, s)| *r += noise * s);
    rho
}

pub fn options(method: Method, precision: Precision, tolerance: f64) -> Options {
    Options { method, precision, tolerance: Tolerance::Relative(tolerance), ..Options::default() }
}

/// Solves, and demands that it ends well: the tolerance met, or the floor of the precision.
pub fn solved(problem: &Problem<'_>, options: &Options, device: &Device) -> Solution {
    let solution = solve(problem, options, device).unwrap();
    let status = solution.report.status;
    assert!(matches!(status, Status::Converged | Status::PrecisionFloor), "{status:?} after {:?}", solution.report.history);
    solution
}

pub fn max(v: &[f64]) -> f64 {
    v.iter().fold(0.0, |m, v| m.max(v.abs()))
}

pub fn max_error(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).fold(0.0, |m, (a, b)| m.max((a - b).abs()))
}

/// Geometric mean of the factors of the last `steps` steps.
pub fn rate(history: &[f64], steps: usize) -> f64 {
    let n = history.len() - 1;
    (history[n] / history[n - steps]).powf(1.0 / steps as f64)
}
