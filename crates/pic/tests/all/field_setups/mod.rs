//! Shared code of the field tests: set-ups without particles, random states, differences on the grid.
#![allow(unreachable_pub)]

use zellige_engine::device::Cpu;
use zellige_engine::real::RealScalar;
use zellige_engine::rng::Philox;
use zellige_pic::grid::{FieldSide, Grid, ParticleSide};
use zellige_pic::stages::cpu::fields::FieldSet;
use zellige_pic::stages::{Component, Precision, Setup, Smoothing};

pub const PERIODIC: [FieldSide; 2] = [FieldSide::Periodic; 2];

/// A domain in the plane; particles are reflected where the fields are not periodic.
pub fn grid(cells: [usize; 2], fields: [[FieldSide; 2]; 2], h: [f64; 2], courant: f64) -> Grid {
    let particles = fields.map(|axis| {
        axis.map(|side| match side {
            FieldSide::Periodic => ParticleSide::Periodic,
            FieldSide::Absorbing => ParticleSide::Absorb,
            _ => ParticleSide::Reflect,
        })
    });
    let mut grid =
        Grid { cells, h, origin: [0.0; 2], dt: 0.0, fields, particles, dimensions: if cells[1] == 1 { 1 } else { 2 }, part: None };
    grid.dt = courant * grid.courant_limit();
    grid
}

/// On one thread: tests run side by side, and on small grids waiting for each other costs more than the work.
pub fn alone<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    Cpu::new(1).unwrap().install(work)
}

/// A set-up without particles.
pub fn setup(grid: &Grid) -> Setup {
    Setup {
        grid: grid.clone(),
        species: Vec::new(),
        expected: Vec::new(),
        precision: Precision::F64,
        order: 1,
        smoothing: [Smoothing::default(); 2],
        absorbing_cells: 10,
        external: std::array::from_fn(|_| Vec::new()),
        tile: None,
        window: false,
        deterministic: true,
        seed: 1,
    }
}

/// Uniform numbers of -1 to 1.
pub fn random(seed: u64, n: usize) -> Vec<f64> {
    let philox = Philox::new(7, seed);
    (0..n.div_ceil(4)).flat_map(|i| philox.draw(0, i as u64)).take(n).map(|w| f64::from(w) / 2f64.powi(31) - 1.0).collect()
}

/// Random E and B.
pub fn randomised<T: RealScalar>(setup: &Setup, seed: u64) -> FieldSet<T> {
    let mut fields = FieldSet::new(setup);
    for c in &Component::ALL[..6] {
        fields.set(*c, &random(seed + *c as u64, setup.grid.len()));
    }
    fields
}

/// Largest magnitude over the nodes inside of one component.
pub fn largest(grid: &Grid, values: &[f64]) -> f64 {
    let mut most = 0.0_f64;
    for j in 0..grid.nodes(1) as isize {
        for i in 0..grid.nodes(0) as isize {
            most = most.max(values[grid.index(i, j)].abs());
        }
    }
    most
}

/// `div E` at the corners or `div B` at the centres, over arrays with valid guards.
pub fn divergence(grid: &Grid, x: &[f64], y: &[f64], corner: bool) -> Vec<f64> {
    let pitch = grid.pitch();
    let mut out = vec![0.0; grid.len()];
    for j in 0..grid.nodes(1) as isize {
        for i in 0..grid.nodes(0) as isize {
            let at = grid.index(i, j);
            let [(dx, ax), (dy, ay)] = if corner { [(at, at - 1), (at, at - pitch)] } else { [(at + 1, at), (at + pitch, at)] };
            out[at] = (x[dx] - x[ax]) / grid.h[0] + (y[dy] - y[ay]) / grid.h[1];
        }
    }
    out
}
