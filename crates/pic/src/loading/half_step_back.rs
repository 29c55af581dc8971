//! The half step back with which a leap-frog begins.

use zellige_engine::parallel::{each, items, items_mut};

use super::Batch;
use crate::grid::{BELOW, Grid};
use crate::particles::{Particles, Species};
use crate::sampling::half_step_back;
use crate::stages::{Component, Setup};

/// Push of a species' momenta half a step back.
struct HalfStepBack<'a> {
    grid: &'a Grid,
    order: u32,
    alpha: f64,
    fields: &'a [Vec<f64>; 6],
}

impl<'a> HalfStepBack<'a> {
    /// Nothing where there is nothing to do.
    fn new(grid: &'a Grid, order: u32, species: &Species, fields: &'a [Vec<f64>; 6]) -> Option<Self> {
        let total_field = species.mobile && !fields.iter().all(Vec::is_empty);
        total_field.then(|| Self { grid, order, alpha: 0.5 * grid.dt * species.charge_to_mass(), fields })
    }

    /// Momentum `u` at `offset` in `cell`, half a step earlier.
    fn pushed(&self, cell: [u32; 2], offset: [f64; 2], u: [f64; 3]) -> [f64; 3] {
        let at = |c: usize| {
            let field = &self.fields[c];
            if field.is_empty() {
                return 0.0;
            }
            self.alpha * gathered(self.grid, self.order, field, Component::ALL[c].stagger(), cell, offset)
        };
        half_step_back(u, [at(0), at(1), at(2)], [at(3), at(4), at(5)])
    }
}

/// Takes momenta from the time of the positions half a step back, in the fields given over all corners with guards (empty ones
/// are zero).
pub fn back_push(grid: &Grid, order: u32, species: &Species, fields: &[Vec<f64>; 6], particles: &mut Particles) {
    let Some(back) = HalfStepBack::new(grid, order, species, fields) else { return };
    let Particles { i, j, s, t, u, .. } = particles;
    let [ux, uy, uz] = u;
    let columns = (items(i), items(j), items(s), items(t));
    let momenta = (items_mut(ux), items_mut(uy), items_mut(uz));
    each((columns, momenta), |_, ((i, j, s, t), (ux, uy, uz))| {
        [*ux, *uy, *uz] = back.pushed([*i, *j], [*s, *t], [*ux, *uy, *uz]);
    });
}

/// True if the momenta of species `s` change in such fields.
pub(super) fn pushes(setup: &Setup, s: usize, fields: &[Vec<f64>; 6]) -> bool {
    HalfStepBack::new(&setup.grid, setup.order, &setup.species[s], fields).is_some()
}

/// Pushes particles of species `s` that are being made half a step back, on this thread.
pub(super) fn back_push_batch(setup: &Setup, s: usize, fields: &[Vec<f64>; 6], out: &mut Batch) {
    let Some(back) = HalfStepBack::new(&setup.grid, setup.order, &setup.species[s], fields) else { return };
    for p in 0..out.len() {
        let u = back.pushed(out.cells[out.cell[p] as usize], [out.s[p], out.t[p]], [0, 1, 2].map(|c| out.u[c][p]));
        (0..3).for_each(|c| out.u[c][p] = u[c]);
    }
}

/// A component at a particle: linear or quadratic weights about its own sub-grid.
fn gathered(grid: &Grid, order: u32, field: &[f64], stagger: [f64; 2], cell: [u32; 2], offset: [f64; 2]) -> f64 {
    // The first node, and the weights of it and those behind it.
    let axis = |d: usize| -> (isize, [f64; 3]) {
        // Distance from the grid's point 0, in cells.
        let x = f64::from(cell[d]) + 0.5 + offset[d] - stagger[d];
        if order == 1 {
            let low = x.floor();
            (low as isize, [low + 1.0 - x, x - low, 0.0])
        } else {
            let near = x.round();
            let r = x - near;
            (near as isize - 1, [0.5 * (0.5 - r).powi(2), 0.75 - r * r, 0.5 * (0.5 + r).powi(2)])
        }
    };
    let nodes = order as usize + 1;
    let ((i, wx), (j, wy)) = (axis(0), axis(1));
    let mut sum = 0.0;
    for (b, wy) in wy.iter().enumerate().take(nodes) {
        for (a, wx) in wx.iter().enumerate().take(nodes) {
            sum += wx * wy * field[grid.index((i + a as isize).max(-(BELOW as isize)), (j + b as isize).max(-(BELOW as isize)))];
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{ABOVE, FieldSide, ParticleSide};

    /// Linear and quadratic shapes give a field that is linear in x and y as it is at the particle, in every part of a cell and
    /// for every component.
    #[test]
    fn a_linear_field_is_felt_as_it_is() {
        let grid = Grid {
            cells: [6, 5],
            h: [0.1, 0.2],
            origin: [0.0; 2],
            dt: 0.05,
            fields: [[FieldSide::Periodic; 2]; 2],
            particles: [[ParticleSide::Periodic; 2]; 2],
            dimensions: 2,
            part: None,
        };
        let field = |x: f64, y: f64| 0.3 + 1.7 * x - 0.6 * y;
        for component in &Component::ALL[..6] {
            let stagger = component.stagger();
            let mut values = vec![0.0; grid.len()];
            for j in -(BELOW as isize)..(grid.cells[1] + ABOVE) as isize {
                for i in -(BELOW as isize)..(grid.cells[0] + ABOVE) as isize {
                    values[grid.index(i, j)] = field(i as f64 + stagger[0], j as f64 + stagger[1]);
                }
            }
            for order in [1, 2] {
                for [s, t] in [[-0.45, 0.1], [-0.2, -0.3], [0.15, 0.4], [0.48, -0.05]] {
                    let found = gathered(&grid, order, &values, stagger, [2, 3], [s, t]);
                    let expected = field(2.5 + s, 3.5 + t);
                    // Rounding of nine products of up to 15.
                    assert!((found - expected).abs() < 1e-13, "{} of order {order}: {found}, not {expected}", component.name());
                }
            }
        }
    }
}
