//! The electric field of a start that is not neutral: `E = -grad phi` with `div E = rho` at every corner of the grid.
//!
//! | side | potential |
//! |---|---|
//! | periodic | periodic; the mean of rho is taken off (an immobile background of the other sign) |
//! | PEC, absorbing layer (a conductor behind it) | `phi = 0` on the wall |
//! | PMC | `d phi/dn = 0`: no flux through the wall |
//!
//! Gradient and divergence of the Yee grid make up the five-point operator that `zellige-poisson` inverts directly. What
//! rounding of the potential leaves of the divergence (about `eps phi / h^2`) is solved for once more, so that the field
//! is as good as its own rounding.

use zellige_engine::device::Device;
use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;
use zellige_poisson::Precision;
use zellige_poisson::direct::Direct;
use zellige_poisson::grid::{Axis, Bc, Grid as Nodes};

use crate::grid::{FieldSide, Grid};

/// Solutions: the first and one that takes off its rounding.
const ROUNDS: usize = 2;

/// The field of a charge.
#[derive(Debug, Clone, PartialEq)]
pub struct InitialField {
    /// `Ex` and `Ey` over all corners, as [`Grid::index`] lays them out; guards are not filled.
    pub e: [Vec<f64>; 2],
    /// The mean charge density that was taken off because no wall could take its flux, `e n_0`.
    pub background: f64,
    /// Largest `|div E - (rho - background)|` over the corners that are no conductor, `e n_0`.
    pub residual: f64,
}

/// The field of the charge density `rho` (over all corners as [`Grid::index`] lays them out, sides complete: a wall corner
/// holds the density of its half cell). `device` does the work; the field is double precision on any.
pub fn field_of(grid: &Grid, rho: &[f64], device: &Device) -> Result<InitialField> {
    let mut start = InitialField { e: std::array::from_fn(|_| vec![0.0; grid.len()]), background: 0.0, residual: 0.0 };
    if grid.dimensions == 1 {
        along_a_line(grid, rho, &mut start);
    } else {
        in_the_plane(grid, rho, device, &mut start)?;
    }
    let left = defect(grid, rho, &start);
    start.residual = left.iter().fold(0.0, |most, v| v.abs().max(most));
    Ok(start)
}

/// True if a side is a conductor.
fn conducts(side: FieldSide) -> bool {
    matches!(side, FieldSide::Pec | FieldSide::Absorbing)
}

/// `rho - background - div E` over the nodes, x fastest; zero on conductors, which carry whatever charge is due.
fn defect(grid: &Grid, rho: &[f64], start: &InitialField) -> Vec<f64> {
    let nodes = [grid.nodes(0), grid.nodes(1)];
    let mut out = vec![0.0; nodes[0] * nodes[1]];
    for j in 0..nodes[1] {
        for i in 0..nodes[0] {
            let on_conductor = [i, j].into_iter().enumerate().any(|(axis, k)| {
                let [lower, upper] = grid.fields[axis];
                (k == 0 && conducts(lower)) || (!grid.periodic(axis) && k == grid.cells[axis] && conducts(upper))
            });
            if on_conductor {
                continue;
            }
            let mut divergence = 0.0;
            for (axis, k) in [i, j].into_iter().enumerate().take(grid.dimensions) {
                let n = grid.cells[axis];
                let at = |k: usize| if axis == 0 { grid.index(k as isize, j as isize) } else { grid.index(i as isize, k as isize) };
                let e = &start.e[axis];
                // Beyond a magnetic conductor the normal field is the image with the other sign.
                let after = if k == n { -e[at(n - 1)] } else { e[at(k)] };
                let before = match (k, grid.periodic(axis)) {
                    (0, true) => e[at(n - 1)],
                    (0, false) => -e[at(0)],
                    _ => e[at(k - 1)],
                };
                divergence += (after - before) / grid.h[axis];
            }
            out[j * nodes[0] + i] = rho[grid.index(i as isize, j as isize)] - start.background - divergence;
        }
    }
    out
}

fn in_the_plane(grid: &Grid, rho: &[f64], device: &Device, start: &mut InitialField) -> Result<()> {
    let nodes = [grid.nodes(0), grid.nodes(1)];
    let axes = [0, 1].map(|axis| {
        let [lo, hi] = grid.fields[axis].map(|side| match side {
            FieldSide::Periodic => Bc::Periodic,
            FieldSide::Pmc => Bc::Neumann,
            FieldSide::Pec | FieldSide::Absorbing => Bc::Dirichlet,
        });
        Axis::new(nodes[axis], grid.cells[axis] as f64 * grid.h[axis], lo, hi)
    });
    let [x, y] = axes;
    let mut solver = Direct::new(&Nodes::plane(x, y), Precision::F64, device)?;
    let zero = vec![0.0; nodes[0] * nodes[1]];
    for _ in 0..ROUNDS {
        // laplace phi = -rho.
        let f: Vec<f64> = defect(grid, rho, start).into_iter().map(|v| -v).collect();
        solver.load(&zero, &f)?;
        solver.solve(&mut Profiler::off())?;
        start.background -= solver.removed_mean()?[0];
        let phi = solver.solution()?;
        for j in 0..nodes[1] {
            for i in 0..nodes[0] {
                let (at, own) = (grid.index(i as isize, j as isize), phi[j * nodes[0] + i]);
                if i < grid.cells[0] {
                    start.e[0][at] -= (phi[j * nodes[0] + (i + 1) % nodes[0]] - own) / grid.h[0];
                }
                if j < grid.cells[1] {
                    start.e[1][at] -= (phi[(j + 1) % nodes[1] * nodes[0] + i] - own) / grid.h[1];
                }
            }
        }
    }
    Ok(())
}

/// One dimension: the running sum of the charge, and the constant that the sides ask for.
fn along_a_line(grid: &Grid, rho: &[f64], start: &mut InitialField) {
    let (n, h) = (grid.cells[0], grid.h[0]);
    let [lower, upper] = grid.fields[0];
    let open = !conducts(lower) && !conducts(upper);
    let at = |i: usize| grid.index(i as isize, 0);
    // Control volumes in cells: a wall corner that is an unknown has half of one.
    let volume = |i: usize| if !grid.periodic(0) && (i == 0 || i == n) { 0.5 } else { 1.0 };
    if open {
        let (charge, cells) = (0..grid.nodes(0)).fold((0.0, 0.0), |(q, v), i| (q + volume(i) * rho[at(i)], v + volume(i)));
        start.background = charge / cells;
    }
    let mut field = 0.0;
    for i in 0..n {
        let own = volume(i) * (rho[at(i)] - start.background);
        // A conductor's own charge is what the constant below makes it.
        if !(i == 0 && (conducts(lower) || grid.periodic(0))) {
            field += h * own;
        }
        start.e[0][at(i)] = field;
    }
    let constant = if lower == FieldSide::Pmc {
        0.0
    } else if upper == FieldSide::Pmc {
        // Remainder of the flux at the wall's half cell.
        -(start.e[0][at(n - 1)] + h * 0.5 * rho[at(n)])
    } else {
        // No voltage from end to end, or round the period.
        -(0..n).map(|i| start.e[0][at(i)]).sum::<f64>() / n as f64
    };
    (0..n).for_each(|i| start.e[0][at(i)] += constant);
    for j in 1..grid.nodes(1) {
        for i in 0..n {
            start.e[0][grid.index(i as isize, j as isize)] = start.e[0][at(i)];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::ParticleSide;
    use zellige_engine::device::Cpu;

    fn check(cells: [usize; 2], fields: [[FieldSide; 2]; 2]) {
        let dimensions = if cells[1] == 1 { 1 } else { 2 };
        let particles = [[ParticleSide::Periodic; 2]; 2];
        let grid = Grid { cells, h: [0.1, 0.13], origin: [0.0; 2], dt: 0.05, fields, particles, dimensions, part: None };
        let philox = zellige_engine::rng::Philox::new(3, 9);
        let rho: Vec<f64> = (0..grid.len()).map(|i| f64::from(philox.draw(0, i as u64)[0]) / 2f64.powi(31) - 0.9).collect();
        let device = Device::Cpu(Cpu::new(1).unwrap());
        let start = field_of(&grid, &rho, &device).unwrap();
        let singular = fields.iter().take(dimensions).flatten().all(|side| !conducts(*side));
        assert_eq!(start.background != 0.0, singular, "{fields:?}");
        // Roundings of a field of order 5 over h = 0.1; measured below 5e-14.
        assert!(start.residual < 1e-12, "{fields:?}: {}", start.residual);
        // Curl-free: it comes from a potential, so E along any line between conductors or round a period is nothing.
        for j in 1..grid.cells[1] {
            let ends = fields[0].iter().all(|side| *side == FieldSide::Periodic || conducts(*side));
            let voltage: f64 = (0..grid.cells[0]).map(|i| start.e[0][grid.index(i as isize, j as isize)]).sum::<f64>() * 0.1;
            assert!(!ends || voltage.abs() < 1e-12, "{fields:?} {j}: {voltage}");
            for i in 0..grid.cells[0] as isize - 1 {
                let (j, e) = (j as isize, &start.e);
                let curl = (e[1][grid.index(i + 1, j - 1)] - e[1][grid.index(i, j - 1)]) / 0.1
                    - (e[0][grid.index(i, j)] - e[0][grid.index(i, j - 1)]) / 0.13;
                assert!(curl.abs() < 1e-11, "{fields:?} ({i}, {j}): {curl}");
            }
        }
    }

    #[test]
    fn the_divergence_is_the_charge_for_every_mix_of_sides() {
        use FieldSide::{Absorbing, Pec, Periodic, Pmc};
        let kinds = [[Periodic; 2], [Pec; 2], [Pmc; 2], [Pec, Pmc], [Pmc, Absorbing]];
        for x in kinds {
            check([24, 1], [x, [Periodic; 2]]);
            for y in kinds {
                check([24, 18], [x, y]);
            }
        }
        check([512, 300], [[Periodic; 2]; 2]);
    }
}
