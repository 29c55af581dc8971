//! Cost of the methods, as bytes per unknown at the speed of a copy: the figures behind `method = "auto"`.
//!
//! A device's time for a pass is not its bytes over the copy bandwidth, and small grids wait for launches. So each part
//! carries a constant that was measured once per kind of device (an H200; one core of a Xeon, whose figures hold for several
//! cores as long as these share the bandwidth evenly) and divided by its copy bandwidth. Only ratios count, and a choice
//! between two methods of nearly the same cost may go either way. docs/numerics/direct.md has the rules.

use crate::cost;
use crate::direct;
use crate::grid::{Axis, Grid};
use crate::problem::Precision;

/// The constants of a kind of device: bytes per unknown in double precision unless said, and bytes per solve.
struct DeviceCosts {
    /// Transform of an axis there and back: around the DFTs, and in DFTs of 2048 points.
    around: f64,
    dft: f64,
    /// A further transformed axis is transposed to lie along lines.
    transpose: f64,
    /// Elimination, and the norms of the residual.
    lines: f64,
    norms: f64,
    /// A sweep on the solution with its norms.
    polish: f64,
    /// Factor of single precision on all of these: bytes are half, arithmetic and waiting are not.
    single: f64,
    /// Overhead of a launch or a stage, bytes.
    launch: f64,
    /// A V(1,1) cycle in mixed precision in the plane and in space, and what each cycle costs on top, bytes.
    cycle: [f64; 2],
    wait: f64,
    /// Cost of a cycle in single and in double precision relative to mixed precision, in the plane and in space, without the
    /// waiting.
    words: [[f64; 2]; 2],
    /// The start of full multigrid, in cycles.
    start: f64,
    /// Two axes change places in the right-hand side, the solution given and the one found; none where it is not done.
    axis_swap: Option<f64>,
}

/// H200, 4.25 TB/s: 1 us is 4.25e6 bytes.
const GPU: DeviceCosts = DeviceCosts {
    around: 50.0,
    dft: 43.0,
    transpose: 45.0,
    lines: 35.0,
    norms: 28.0,
    polish: 70.0,
    single: 0.75,
    launch: 1e7,
    cycle: [64.0, 320.0],
    wait: 2.2e8,
    words: [[0.65, 1.25], [0.95, 1.8]],
    // Three as such; on right-hand sides with noise it saves two cycles fewer than on smooth ones.
    start: 4.0,
    axis_swap: None,
};

/// One core, 9.8 GB/s.
const CPU: DeviceCosts = DeviceCosts {
    around: 30.0,
    dft: 70.0,
    transpose: 0.0,
    lines: 42.0,
    norms: 30.0,
    polish: 65.0,
    single: 0.6,
    launch: 0.0,
    cycle: [90.0, 140.0],
    wait: 0.0,
    words: [[0.95, 1.8]; 2],
    start: 2.6,
    axis_swap: Some(75.0),
};

/// Factor of the residual in a V(1,1) cycle: five cycles to 1e-6, eight to 1e-10.
const RATE: f64 = 0.056;
/// Cycles that the start of full multigrid saves.
const SAVED: f64 = 4.0;
/// The residual that the transforms leave, over the expected floor: 2.2e-10 at 4097 x 4097, where that is 3e-11.
const NOISE: f64 = 8.0;
/// Factor of that residual in a sweep.
const SWEEP: f64 = 0.27;

fn device(gpu: bool) -> &'static DeviceCosts {
    if gpu { &GPU } else { &CPU }
}

/// The relative residual that a direct solution leaves before any sweep.
pub fn noise(grid: &Grid, precision: Precision) -> f64 {
    NOISE * cost::expected_floor(grid, precision)
}

/// Sweeps after a direct solution to `goal`.
pub fn sweeps(grid: &Grid, precision: Precision, goal: f64) -> u32 {
    let mut left = noise(grid, precision);
    let mut sweeps = 0;
    while left > goal && sweeps < 2 {
        left *= SWEEP;
        sweeps += 1;
    }
    sweeps
}

/// Work of the DFTs of an axis over that of 4096 intervals.
fn weight(axis: &Axis, gpu: bool) -> f64 {
    let parts = direct::dfts(axis, gpu);
    let work: f64 = parts.iter().map(|(points, count)| (points * count) as f64 * (*points as f64).log2() * penalty(*points)).sum();
    work / (axis.intervals() as f64 * 11.0)
}

/// Lengths with large prime factors: direct sums up to 127 (a factor of 73 was measured), a convolution beyond.
fn penalty(mut points: usize) -> f64 {
    let mut largest = 1;
    for p in 2.. {
        if p * p > points {
            break;
        }
        while points.is_multiple_of(p) {
            points /= p;
            largest = p;
        }
    }
    match largest.max(points) {
        ..=13 => 1.0,
        14..=127 => 4.0,
        _ => 8.0,
    }
}

/// Bytes of the transform of an axis there and back.
fn transformed(axis: &Axis, gpu: bool) -> f64 {
    let d = device(gpu);
    d.around + d.dft * weight(axis, gpu)
}

/// The axis that the direct solver eliminates along in place of the last one, where that pays.
pub fn axis_to_swap(grid: &Grid, gpu: bool) -> Option<usize> {
    let axis_swap = device(gpu).axis_swap?;
    let last = direct::last(grid);
    let of = |axis: usize| transformed(&grid.axes[axis], gpu);
    // Of equals the last: its rows lie best.
    let dearest = (0..last).filter(|a| !grid.axes[*a].is_flat()).max_by(|a, b| of(*a).total_cmp(&of(*b)))?;
    (of(dearest) > of(last) + axis_swap).then_some(dearest)
}

/// The direct solver with `sweeps` sweeps and the norms after it.
pub fn direct(grid: &Grid, precision: Precision, gpu: bool, sweeps: u32) -> f64 {
    let d = device(gpu);
    let eliminated = axis_to_swap(grid, gpu).unwrap_or(direct::last(grid));
    let [_, middle, _] = direct::ordered(grid);
    let mut bytes = d.lines + d.norms + f64::from(sweeps) * d.polish;
    let mut launches = 3.0 + 2.0 * f64::from(sweeps);
    if eliminated != direct::last(grid) {
        bytes += d.axis_swap.unwrap_or_default();
    }
    for axis in (0..3).filter(|a| *a != eliminated).map(|a| &grid.axes[a]).filter(|a| !a.is_flat()) {
        bytes += transformed(axis, gpu);
        launches += 4.0 + 2.0 * direct::dfts(axis, gpu).len() as f64;
    }
    if !middle.is_flat() {
        bytes += d.transpose;
    }
    let share = if precision == Precision::F32 { d.single } else { 1.0 };
    bytes * share + launches * d.launch / grid.unknowns() as f64
}

/// Cycles to a relative residual of `goal`, after full multigrid or from zero.
pub fn cycles(grid: &Grid, precision: Precision, gpu: bool, fmg: bool, goal: f64) -> f64 {
    let d = device(gpu);
    let unknowns = grid.unknowns() as f64;
    let goal = goal.max(cost::expected_floor(grid, precision)).min(0.5);
    let plain = (goal.ln() / RATE.ln()).ceil();
    let space = usize::from(grid.dimensions() == 3);
    let words = match precision {
        Precision::F32 => d.words[space][0],
        Precision::Mixed => 1.0,
        Precision::F64 => d.words[space][1],
    };
    let cycle = d.cycle[space] * words + d.wait / unknowns;
    if fmg { d.start * cycle + (plain - SAVED).max(1.0) * cycle } else { plain * cycle }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Bc;

    fn square(n: usize) -> Grid {
        let axis = || Axis::new(n, 32.0, Bc::Dirichlet, Bc::Dirichlet);
        Grid::plane(axis(), axis())
    }

    #[test]
    fn estimates_are_near_what_was_measured() {
        // Nanoseconds per unknown at the copy bandwidth of the same machine: docs/performance/poisson.md.
        for (found, measured) in [
            (direct(&square(4097), Precision::F64, false, 0), 0.244e9 / 16.8e6 * 9.8 + 28.0),
            (direct(&square(4097), Precision::F64, true, 0), 0.640e-3 * 4.25e12 / 16.8e6),
            (direct(&square(4096), Precision::F64, true, 1), 0.937e-3 * 4.25e12 / 16.8e6),
            (direct(&square(1025), Precision::F64, true, 0), 0.070e-3 * 4.25e12 / 1.05e6),
            (direct(&square(4097), Precision::F32, true, 0), 0.477e-3 * 4.25e12 / 16.8e6),
            (cycles(&square(4097), Precision::Mixed, false, true, 1e-6), 33.0 * 9.8),
            (cycles(&square(4097), Precision::Mixed, false, true, 1e-10), 60.0 * 9.8),
            (cycles(&square(4097), Precision::Mixed, true, false, 1e-6), 1.53e-3 * 4.25e12 / 16.8e6),
            (cycles(&square(1025), Precision::Mixed, true, false, 1e-6), 0.336e-3 * 4.25e12 / 1.05e6),
            (cycles(&square(513), Precision::Mixed, true, false, 1e-6), 0.244e-3 * 4.25e12 / 0.263e6),
            (cycles(&square(4097), Precision::F64, true, false, 1e-6), 1.84e-3 * 4.25e12 / 16.8e6),
            (cycles(&square(1025), Precision::F64, true, false, 1e-6), 0.40e-3 * 4.25e12 / 1.05e6),
            (cycles(&square(4097), Precision::F32, true, false, 1e-2), 0.415e-3 * 4.25e12 / 16.8e6),
            // Full multigrid on smooth data, and with noise.
            (cycles(&square(4097), Precision::Mixed, true, true, 1e-6), 1.24e-3 * 4.25e12 / 16.8e6),
            (cycles(&square(4097), Precision::Mixed, true, true, 1e-6), 1.79e-3 * 4.25e12 / 16.8e6),
            (cycles(&square(1025), Precision::Mixed, true, true, 1e-6), 0.365e-3 * 4.25e12 / 1.05e6),
        ] {
            assert!((0.7..1.4).contains(&(found / measured)), "{found} for {measured}");
        }
    }

    #[test]
    fn large_primes_cost_more_and_odd_lengths_no_more_than_a_little() {
        let [even, odd, prime] = [4097, 4096, 4094].map(|n| direct(&square(n), Precision::F64, true, 0));
        assert!(odd < 1.4 * even && prime > 2.0 * odd, "{even} {odd} {prime}");
        assert_eq!([64, 2 * 73, 2 * 4093].map(penalty), [1.0, 4.0, 8.0]);
    }

    #[test]
    fn the_cpu_eliminates_along_the_awkward_axis() {
        let grid =
            |n: [usize; 3]| Grid { axes: n.map(|n| if n == 1 { Axis::flat() } else { Axis::new(n, 32.0, Bc::Dirichlet, Bc::Dirichlet) }) };
        // 4094 and 384 nodes have prime numbers of intervals, 4093 and 383.
        for (nodes, swapped) in [
            ([4094, 4097, 1], Some(0)),
            ([4097, 4094, 1], None),
            ([4094, 4094, 1], None),
            ([4096, 4097, 1], None),
            ([384, 257, 257], Some(0)),
            ([257, 384, 257], Some(1)),
            ([257, 257, 384], None),
        ] {
            assert_eq!(axis_to_swap(&grid(nodes), false), swapped, "{nodes:?}");
            assert_eq!(axis_to_swap(&grid(nodes), true), None, "{nodes:?}");
        }
        let [awkward, good, either] =
            [[4094, 4094, 1], [4097, 4094, 1], [4094, 4097, 1]].map(|n| direct(&grid(n), Precision::F64, false, 0));
        assert!(good < either && either < awkward, "{good} {either} {awkward}");
    }

    #[test]
    fn sweeps_follow_the_tolerance() {
        let grid = square(4097);
        assert_eq!([1e-6, 1e-10, 3e-11].map(|goal| sweeps(&grid, Precision::Mixed, goal)), [0, 1, 2]);
    }
}
