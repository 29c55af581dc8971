//! Plasmas for tests: a set-up, its particles, and what must stay.

pub(crate) mod pairs;

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
        part: None,
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
        window: false,
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

/// `ppc` particles a cell at random positions with normal momenta of `u_th`.
pub(crate) fn thermal(cells: [usize; 2], ppc: usize, u_th: f64, seed: u64) -> Particles {
    let (position, kick) = (Philox::new(1, seed), Philox::new(2, seed));
    let mut p = Particles::default();
    for k in 0..cells[0] * cells[1] * ppc {
        let cell = k / ppc;
        p.i.push((cell % cells[0]) as u32);
        p.j.push((cell / cells[0]) as u32);
        let [s, t] = position.uniforms(0, k as u64);
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

/// Particles that `at_wall` makes.
const AT_WALL: usize = 4000;

/// Particles so light that they feel nothing, all on their way through the wall at `end` of `axis` in one step, at one distance
/// from it; along it, where they have no momentum, each has a position of its own: thermal walls draw by the particle. Every
/// wall has its own temperature.
pub(crate) fn at_wall(axis: usize, end: usize, side: ParticleSide) -> (Setup, Particles) {
    let (n, mut s) = (AT_WALL, setup([20, 20]));
    (s.species, s.expected) = (vec![electrons(1)], vec![n]);
    (s.species[0].weight, s.species[0].wall_thermal, s.species[0].tagged) = (1e-12, [[0.1, 0.15], [0.2, 0.3]], true);
    walls(&mut s, axis, FieldSide::Pec, side);
    let (cell, u, toward) = [(0, -0.5, -0.4), (19, 0.5, 0.4)][end];
    let along: Vec<f64> = (0..n).map(|k| (k as f64 + 0.5) / n as f64 - 0.5).collect();
    let mut p =
        Particles { i: vec![7; n], j: vec![7; n], s: along.clone(), t: along, tag: (0..n as u64).collect(), ..Particles::default() };
    p.u = std::array::from_fn(|c| vec![if c == axis { u } else { 0.0 }; n]);
    (if axis == 0 { &mut p.i } else { &mut p.j }).fill(cell);
    (if axis == 0 { &mut p.s } else { &mut p.t }).fill(toward);
    (s, p)
}

/// Checks the particles of [`at_wall`] after a step: mirror images of straight flights to `rounding` of a cell, mirrored momenta,
/// or those of the flux of a thermal wall to four standard deviations of the statistic.
pub(crate) fn turned(setup: &Setup, axis: usize, end: usize, q: &Particles, rounding: f64) {
    let side = setup.grid.particles[axis][end];
    let what = format!("axis {axis}, end {end}, {side:?}");
    assert_eq!(q.len(), AT_WALL, "{what}");
    let inward = [1.0, -1.0][end];
    let flight = setup.grid.dt / setup.grid.h[axis] * 0.5 / f64::hypot(1.0, 0.5);
    let offset = if axis == 0 { &q.s } else { &q.t };
    let off = offset.iter().map(|o| (o - inward * (flight - 0.1 - 0.5)).abs()).fold(0.0, f64::max);
    assert!(off < rounding, "{what}: {off} of a cell from the mirror image");
    let (n, normal) = (AT_WALL as f64, |k: usize| q.u[axis][k] * inward);
    let mean = |f: &dyn Fn(usize) -> f64| (0..AT_WALL).map(f).sum::<f64>() / n;
    if side == ParticleSide::Reflect {
        assert!((0..AT_WALL).all(|k| (normal(k) - 0.5).abs() < rounding && q.u[1 - axis][k] == 0.0), "{what}");
        return;
    }
    assert!((0..AT_WALL).all(|k| normal(k) > 0.0), "{what}");
    let u_th = setup.species[0].wall_thermal[axis][end];
    let near = |statistic: &str, found: f64, expected: f64, deviation: f64| {
        let off = (found / u_th.powi(2) - expected) / (deviation / n.sqrt());
        assert!(off.abs() < 4.0, "{what}: {statistic} is off by {off:.1} standard deviations");
    };
    // Rayleigh's distribution: the mean is sqrt(pi/2), its variance 2 - pi/2; the square has mean and deviation 2.
    let half = std::f64::consts::FRAC_PI_2;
    near("the normal momentum", mean(&normal) * u_th, half.sqrt(), (2.0 - half).sqrt());
    near("the square of the normal momentum", mean(&|k| normal(k).powi(2)), 2.0, 2.0);
    // Along the wall, in the plane and out of it: normal numbers, whose squares have a deviation of sqrt 2; independent.
    for c in [1 - axis, 2] {
        near("a momentum along the wall", mean(&|k| q.u[c][k]) * u_th, 0.0, 1.0);
        near("the square of a momentum along the wall", mean(&|k| q.u[c][k].powi(2)), 1.0, 2.0_f64.sqrt());
        near("normal momentum times one along the wall", mean(&|k| normal(k) * q.u[c][k]), 0.0, 2.0_f64.sqrt());
    }
    near("the product of the momenta along the wall", mean(&|k| q.u[1 - axis][k] * q.u[2][k]), 0.0, 1.0);
}
