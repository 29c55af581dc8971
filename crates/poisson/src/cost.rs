//! The cost model: bytes that the method must move and memory that it holds, from the grid alone.
//!
//! A V(1,1) cycle in correction form takes two passes a level. On the finest one *descend* reads `r` and writes a quarter
//! of it (an eighth in space); *ascend* and *correct* in one pass read `r`, the coarse correction, `u` and `f`, and
//! write `u` and `r`. On coarser levels *ascend* reads `r` and the coarse correction and writes `e`. Sweeps within a
//! pass cost no traffic. A sweep of plain relaxation reads `u` and `f` and writes `u`.

use zellige_engine::device::Device;
use zellige_engine::sim::Cost;

use crate::direct;
use crate::grid::{Grid, Level};
use crate::method::Scheme;
use crate::problem::Precision;
use crate::step::Cycle;

/// Flops per unknown of one application of the formula or one relaxation, and of the transfers.
const FLOPS_APPLY: f64 = 8.0;
const FLOPS_TRANSFER: f64 = 5.0;

/// Visits of level `l` in one cycle.
pub(crate) fn visits(cycle: Cycle, l: usize) -> f64 {
    match cycle {
        Cycle::V | Cycle::C => 1.0,
        Cycle::W => 2.0_f64.powi(l as i32),
        Cycle::F => (l + 1) as f64,
    }
}

/// One step of a scheme.
pub fn step(levels: &[Level], scheme: Scheme, precision: Precision) -> Cost {
    let (outer, inner) = (precision.outer_bytes() as f64, precision.inner_bytes() as f64);
    let finest = levels[0].grid.unknowns() as f64;
    let mut cost = Cost { items: finest, ..Cost::default() };
    match scheme {
        Scheme::Cycles { plan, .. } => {
            for (l, pair) in levels.windows(2).enumerate() {
                let (n, coarse) = (pair[0].grid.unknowns() as f64, pair[1].grid.unknowns() as f64);
                let times = visits(plan.cycle, l);
                let down = inner * (n + coarse);
                let up = if l == 0 { inner * (n + coarse) + 3.0 * outer * n + inner * n } else { inner * (2.0 * n + coarse) };
                cost.bytes += times * (down + up);
                // The pre-smoothing is done twice; two residuals.
                let sweeps = f64::from(2 * plan.pre + plan.post);
                cost.flops += times * n * (FLOPS_APPLY * (sweeps + 1.0 + f64::from(u8::from(l == 0))) + 2.0 * FLOPS_TRANSFER);
            }
        }
        Scheme::Sweeps { block, .. } => {
            cost.bytes = finest * outer * (3.0 * f64::from(block) + 3.0);
            cost.flops = finest * FLOPS_APPLY * f64::from(block + 1);
        }
        Scheme::Direct => {
            // The right-hand side read, the modes written and read, the solution written; both read for the norms.
            cost.bytes = finest * outer * 6.0;
            cost.flops = levels[0].grid.axes.iter().filter(|a| !a.is_flat()).map(|a| 10.0 * finest * (a.nodes as f64).log2()).sum();
        }
    }
    cost
}

/// Full multigrid with `cycles` cycles per level: a cycle on each level and the interpolations.
pub fn full_multigrid(levels: &[Level], scheme: Scheme, precision: Precision, cycles: u32) -> Cost {
    let outer = precision.outer_bytes() as f64;
    let mut total = Cost { items: levels[0].grid.unknowns() as f64, ..Cost::default() };
    for l in 0..levels.len().saturating_sub(1) {
        let n = levels[l].grid.unknowns() as f64;
        let cycle = step(&levels[l..], scheme, precision);
        // Right-hand side down, solution up by cubics, and the residual that the cycle starts from.
        total.bytes += f64::from(cycles) * cycle.bytes + outer * n * 5.0;
        total.flops += f64::from(cycles) * cycle.flops + n * (FLOPS_APPLY + 4.0 * FLOPS_TRANSFER);
    }
    total
}

/// Bytes of shared memory of a block on a GPU; `None` on the CPU: what [`memory`] depends on.
pub fn shared(device: &Device) -> Option<u32> {
    match device {
        Device::Cpu(_) => None,
        Device::Cuda(cuda) => Some(cuda.properties().shared_per_block),
    }
}

/// Bytes that solving will hold on the device, which is a GPU where `shared` is given ([`shared`]). The workspace of DFTs of odd
/// lengths comes on top.
pub fn memory(levels: &[Level], scheme: Scheme, precision: Precision, shared: Option<u32>) -> u64 {
    let (outer, inner) = (precision.outer_bytes(), precision.inner_bytes());
    // Lines along x are padded on a GPU.
    let values = |l: &Level| {
        let [x, y, z] = [0, 1, 2].map(|d| l.grid.axes[d].nodes as u64);
        (if shared.is_some() { x.next_multiple_of(32) } else { x }) * y * z
    };
    let (finest, coarse) = (values(&levels[0]), levels[1..].iter().map(values).sum::<u64>());
    match (scheme, shared) {
        (Scheme::Cycles { fmg, .. }, None) => {
            let full = if fmg.is_some() { 2 * outer } else { 0 };
            finest * (2 * outer + 2 * inner) + coarse * (2 * inner + full)
        }
        (Scheme::Sweeps { .. }, None) => finest * (2 * outer + inner),
        // Two solutions and the right-hand side; two residuals, the correction and scratch; on coarser levels one residual and no
        // scratch, and the transformed field of the coarsest one, or of the only one.
        (Scheme::Cycles { .. } | Scheme::Sweeps { .. }, Some(_)) => {
            let full = if matches!(scheme, Scheme::Cycles { fmg: Some(_), .. }) { 3 * outer } else { 0 };
            finest * (3 * outer + 4 * inner) + coarse * (2 * inner + full) + if levels.len() == 1 { finest * inner } else { 0 }
        }
        // Solution, right-hand side and the solution after a sweep, which takes the place of the transforms on the CPU.
        (Scheme::Direct, None) => 3 * finest * outer,
        (Scheme::Direct, Some(shared)) => direct::memory_on_gpu(&levels[0].grid, shared, outer),
    }
}

/// Bytes that a run on the CPU has besides at most, when it is checked and when it is written: the right-hand side as given, the
/// solution handed out, and the right-hand side once more, with the sides folded in or on its way into a file.
pub fn beside(grid: &Grid) -> u64 {
    3 * size_of::<f64>() as u64 * grid.len() as u64
}

/// The relative residual at which rounding takes over for a typical right-hand side, before anything is known about the
/// solution: 2 % of eps times the condition number, measured with two Gaussian charges.
pub fn expected_floor(grid: &Grid, precision: Precision) -> f64 {
    let diagonal: f64 = grid.axes.iter().filter(|a| !a.is_flat()).map(|a| 2.0 / (a.h * a.h)).sum();
    let slowest = diagonal * (1.0 - crate::spectrum::Spectrum::of(grid).low);
    0.02 * precision.eps() * crate::operator::norm_bound(grid) / slowest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{Axis, Bc, hierarchy};
    use crate::method::{Method, Options};

    #[test]
    fn bytes_per_unknown_are_those_of_the_passes() {
        let axis = || Axis::new(1025, 1.0, Bc::Dirichlet, Bc::Dirichlet);
        let levels = hierarchy(&Grid::plane(axis(), axis()), usize::MAX);
        let options = Options { method: Method::Multigrid, ..Options::default() };
        let scheme = options.choose(&levels[0].grid, true, false).unwrap().scheme;
        for (precision, finest, coarse) in [(Precision::Mixed, 38.0, 14.0), (Precision::F32, 26.0, 14.0), (Precision::F64, 52.0, 28.0)] {
            let bytes = step(&levels, scheme, precision).bytes / levels[0].grid.unknowns() as f64;
            // The coarse levels hold a third of the unknowns, to the boundary's share of 1e-2.
            assert!((bytes - finest - coarse / 3.0).abs() < 0.2, "{precision}: {bytes}");
        }
        let words = memory(&levels, scheme, Precision::Mixed, Some(232_448)) as f64 / (8.0 * levels[0].grid.len() as f64);
        assert!(words < 6.0, "{words}");
    }

    #[test]
    fn the_expected_floor_is_near_the_measured_ones() {
        // Two Gaussian charges in single precision: 6.2e-5, 1.0e-3, 4.0e-3 at 256, 1024, 2048 intervals.
        for (n, measured) in [(257, 6.2e-5), (1025, 1.0e-3), (2049, 4.0e-3)] {
            let axis = || Axis::new(n, 32.0, Bc::Dirichlet, Bc::Dirichlet);
            let floor = expected_floor(&Grid::plane(axis(), axis()), Precision::F32);
            assert!((0.7..1.4).contains(&(floor / measured)), "{n}: {floor}");
        }
    }
}
