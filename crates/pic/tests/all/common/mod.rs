//! Plasmas for tests: a set-up, its particles, and what must stay.

use zellige_engine::device::Cpu;
use zellige_engine::profile::Profiler;
use zellige_engine::rng::Philox;
use zellige_pic::grid::{FieldSide, Grid, ParticleSide};
use zellige_pic::particles::{Particles, Pusher, Species};
use zellige_pic::stages::{Component, Precision, Setup, Smoothing, Stages, cpu};
use zellige_pic::step::step;

/// A periodic domain of electrons: cells of 0.1, `dt` 0.07 (0.06 in one dimension), linear shapes, single precision.
pub(crate) fn setup(cells: [usize; 2]) -> Setup {
    let dimensions = if cells[1] == 1 { 1 } else { 2 };
    let grid = Grid {
        cells,
        h: [0.1, 0.1],
        origin: [0.0; 2],
        dt: 0.07,
        fields: [[FieldSide::Periodic; 2]; 2],
        particles: [[ParticleSide::Periodic; 2]; 2],
        dimensions,
    };
    Setup {
        grid,
        species: Vec::new(),
        expected: Vec::new(),
        precision: Precision::F32,
        order: 1,
        smoothing: [Smoothing::default(); 2],
        absorbing_cells: 8,
        external: Default::default(),
        tile: None,
        deterministic: true,
        seed: 7,
    }
}

/// Walls of one kind on both sides of an axis.
pub(crate) fn walls(setup: &mut Setup, axis: usize, fields: FieldSide, particles: ParticleSide) {
    setup.grid.fields[axis] = [fields; 2];
    setup.grid.particles[axis] = [particles; 2];
}

/// Electrons of `ppc` to a cell.
pub(crate) fn electrons(ppc: usize) -> Species {
    Species {
        name: "electrons".into(),
        charge: -1.0,
        mass: 1.0,
        weight: 1.0 / ppc as f64,
        weighted: false,
        tagged: false,
        mobile: true,
        pusher: Pusher::Boris,
        wall_thermal: [[0.1; 2]; 2],
    }
}

/// `ppc` particles a cell at random places with normal momenta of `u_th`.
pub(crate) fn thermal(cells: [usize; 2], ppc: usize, u_th: f64, seed: u64) -> Particles {
    let (place, kick) = (Philox::new(1, seed), Philox::new(2, seed));
    let mut p = Particles::default();
    for k in 0..cells[0] * cells[1] * ppc {
        let cell = k / ppc;
        p.i.push((cell % cells[0]) as u32);
        p.j.push((cell / cells[0]) as u32);
        let [s, t] = place.uniforms(0, k as u64);
        p.s.push(s - 0.5);
        p.t.push(t - 0.5);
        let ([x, y], [z, _]) = (kick.normals(0, k as u64), kick.normals(1, k as u64));
        for (u, n) in p.u.iter_mut().zip([x, y, z]) {
            u.push(u_th * n);
        }
    }
    p
}

/// The stages with their particles in.
pub(crate) fn start(setup: &Setup, particles: &[Particles], threads: usize) -> Box<dyn Stages> {
    let mut stages = cpu::new(setup, &Cpu::new(threads).unwrap()).unwrap();
    for (k, p) in particles.iter().enumerate() {
        stages.inject(k, p).unwrap();
    }
    stages
}

/// `n` steps from step `first`.
pub(crate) fn run(setup: &Setup, stages: &mut dyn Stages, first: u64, n: u64) {
    for k in first..first + n {
        step(stages, &setup.species, &[], k, true, &mut Profiler::off()).unwrap();
    }
}

/// `div E - rho` at the corners that carry values, without those of walls and absorbing layers (where E is stretched): where
/// charge is conserved it does not change.
pub(crate) fn residual(setup: &Setup, stages: &mut dyn Stages) -> Vec<f64> {
    let grid = &setup.grid;
    let smoothed = setup.smoothing.iter().any(|s| s.passes > 0);
    let mut rho = vec![0.0; grid.len()];
    for k in 0..setup.species.len() {
        for (sum, r) in rho.iter_mut().zip(stages.charge(k, smoothed).unwrap()) {
            *sum += r;
        }
    }
    let (ex, ey) = (stages.component(Component::Ex).unwrap(), stages.component(Component::Ey).unwrap());
    let range = |axis: usize| {
        let margin = match grid.fields[axis][0] {
            FieldSide::Periodic => return 0..grid.cells[axis] as isize,
            FieldSide::Absorbing => setup.absorbing_cells as isize + 1,
            _ => 1,
        };
        margin..grid.cells[axis] as isize + 1 - margin
    };
    let mut found = Vec::new();
    for j in range(1) {
        for i in range(0) {
            let div = (ex[grid.index(i, j)] - ex[grid.index(i - 1, j)]) / grid.h[0]
                + (ey[grid.index(i, j)] - ey[grid.index(i, j - 1)]) / grid.h[1];
            found.push(div - rho[grid.index(i, j)]);
        }
    }
    found
}

/// Largest distance of two lists.
pub(crate) fn apart(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}
