//! The fields on the GPU against those of the CPU, on random states.

use zellige_engine::cuda::Cuda;
use zellige_engine::profile::Profiler;
use zellige_engine::real::RealScalar;
use zellige_engine::rng::Philox;

use std::sync::Arc;

use super::{Current, Fields};
use crate::grid::{FieldSide, Grid, ParticleSide};
use crate::stages::cpu::fields::FieldSet;
use crate::stages::part::Part;
use crate::stages::{Component, Precision, Setup, Sheet, Smoothing};

fn random(seed: u64, n: usize) -> Vec<f64> {
    let philox = Philox::new(5, seed);
    (0..n.div_ceil(4)).flat_map(|i| philox.draw(0, i as u64)).take(n).map(|w| f64::from(w) / 2f64.powi(31) - 1.0).collect()
}

fn setup(cells: [usize; 2], fields: [[FieldSide; 2]; 2], passes: [u32; 2], precision: Precision) -> Setup {
    let particles = fields.map(|axis| {
        axis.map(|side| match side {
            FieldSide::Periodic => ParticleSide::Periodic,
            FieldSide::Absorbing => ParticleSide::Absorb,
            _ => ParticleSide::Reflect,
        })
    });
    let dimensions = if cells[1] == 1 { 1 } else { 2 };
    let mut grid = Grid { cells, h: [0.1, 0.13], origin: [0.0; 2], dt: 0.0, fields, particles, dimensions, part: None };
    grid.dt = 0.95 * grid.courant_limit();
    Setup {
        grid,
        species: Vec::new(),
        expected: Vec::new(),
        precision,
        order: 1,
        smoothing: passes.map(|passes| Smoothing { passes, compensated: passes > 1 }),
        absorbing_cells: 7,
        external: std::array::from_fn(|_| Vec::new()),
        tile: None,
        window: true,
        deterministic: true,
        seed: 1,
    }
}

/// Steps with random currents, a window's shift in the middle, a restart of the GPU's state from the CPU's at the end.
fn compare<T: RealScalar>(cuda: &Cuda, given: &Setup, tolerance: f64) {
    let (grid, pool) = (&given.grid, cuda.pool());
    let mut here: FieldSet<T> = FieldSet::new(given);
    let mut there = Fields::new(given, &Arc::new(Part::alone(&given.grid)), cuda, &pool).unwrap();
    let mut profiler = Profiler::off();
    for c in &Component::ALL[..6] {
        let values = random(*c as u64, grid.len());
        here.set(*c, &values);
        there.set(*c, &values).unwrap();
    }
    let windowed = !grid.periodic(0);
    for step in 0..12 {
        here.begin(true).unwrap();
        there.measure(&mut profiler).unwrap();
        for c in 0..3 {
            let mut deposits = random(100 + 3 * step + c as u64, grid.len());
            if grid.dimensions == 1 {
                // Particles of a line reach the corners 0 to 3 across it.
                deposits[..grid.index(-2, 0)].fill(0.0);
                deposits[grid.index(-2, 4)..].fill(0.0);
            }
            here.j[c].iter_mut().zip(&deposits).for_each(|(j, v)| *j = T::from_f64(*v));
            there.put_current(c, &deposits).unwrap();
        }
        let sheet = Sheet { component: Component::Jz, axis: 0, node: 3.min(grid.nodes(0) - 1), values: random(7, grid.nodes(1)) };
        here.current(std::slice::from_ref(&sheet)).unwrap();
        there.current(&[sheet], &mut profiler).unwrap();
        if step == 0 {
            same(given, &Component::ALL[6..], &here, &mut there, tolerance);
        }
        here.field().unwrap();
        there.field(&mut profiler).unwrap();
        if windowed && step == 5 {
            let ahead = Sheet { component: Component::By, axis: 0, node: grid.cells[0] - 1, values: random(8, grid.nodes(1)) };
            here.shift(std::slice::from_ref(&ahead)).unwrap();
            there.shift(&[ahead], &mut profiler).unwrap();
        }
        if step == 8 {
            for (name, values) in here.auxiliary_state().unwrap() {
                let mine = there.auxiliary_state().unwrap().into_iter().find(|entry| entry.0 == name).expect("the same names").1;
                assert_eq!(mine.len(), values.len(), "{name}");
                assert!(values.iter().any(|v| *v != 0.0) && mine.iter().any(|v| *v != 0.0), "{name}");
            }
            there.set_auxiliary_state(&here.auxiliary_state().unwrap()).unwrap();
        }
    }
    same(given, &Component::ALL[..6], &here, &mut there, tolerance);
    let expected = [here.electric(), here.magnetic()].concat();
    cuda.synchronize().unwrap();
    let measured = there.energies().unwrap();
    for (c, (a, b)) in expected.iter().zip(measured).enumerate() {
        assert!((a / b - 1.0).abs() < tolerance, "energy {c}: {a} {b}");
    }
}

fn same<T: RealScalar>(given: &Setup, components: &[Component], here: &FieldSet<T>, there: &mut Fields, tolerance: f64) {
    for c in components {
        let (a, b) = (here.get(*c).unwrap(), there.get(*c).unwrap());
        let size = a.iter().fold(1.0_f64, |m, v| m.max(v.abs()));
        let g = &given.grid;
        for j in -2..g.cells[1] as isize + 3 {
            for i in -2..g.cells[0] as isize + 3 {
                let (a, b) = (a[g.index(i, j)], b[g.index(i, j)]);
                assert!((a - b).abs() <= tolerance * size, "{given:?} {c:?} ({i}, {j}): {a} here, {b} there");
            }
        }
    }
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn the_gpu_agrees() {
    use FieldSide::{Absorbing, Pec, Periodic, Pmc};
    let Some(cuda) = zellige_engine::testing::gpu() else { return };
    let kinds = [[Periodic; 2], [Pec; 2], [Pmc; 2], [Pec, Pmc], [Absorbing; 2], [Absorbing, Pec]];
    let mut all = Vec::new();
    for x in kinds {
        all.push(([40, 1], [x, [Periodic; 2]], [1, 3]));
        for y in kinds {
            all.push(([70, 37], [x, y], [0, 0]));
            all.push(([41, 70], [x, y], [2, 1]));
            all.push(([41, 20], [x, y], [2, 0]));
            all.push(([20, 41], [x, y], [0, 2]));
        }
    }
    all.push(([5, 6], [[Pec; 2], [Periodic; 2]], [4, 0]));
    all.push(([2, 3], [[Periodic; 2]; 2], [3, 3]));
    all.push(([600, 500], [[Periodic; 2]; 2], [0, 2]));
    for (cells, sides, passes) in all {
        // Round-off of 12 steps whose currents, folded at walls, are of order 10; a filter in another order of sums.
        compare::<f64>(&cuda, &setup(cells, sides, passes, Precision::F64), 1e-13);
        compare::<f32>(&cuda, &setup(cells, sides, passes, Precision::F32), 1e-5);
        // A filter at walls that take particles.
        let mut takes = setup(cells, sides, passes, Precision::F64);
        let walls = takes.grid.particles.iter_mut().flatten().filter(|side| **side == ParticleSide::Reflect);
        if walls.map(|side| *side = ParticleSide::Absorb).count() > 0 && passes != [0, 0] {
            compare::<f64>(&cuda, &takes, 1e-13);
        }
    }
}

/// The one pass of a periodic domain against the passes one by one, also where a domain is narrower than a block or its guards.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn a_leap_is_the_passes_one_by_one() {
    let Some(cuda) = zellige_engine::testing::gpu() else { return };
    for cells in [[70, 37], [32, 16], [5, 6], [2, 3], [40, 1], [600, 500]] {
        for precision in [Precision::F32, Precision::F64] {
            let given = setup(cells, [[FieldSide::Periodic; 2]; 2], [0, 0], precision);
            let (grid, pool) = (&given.grid, cuda.pool());
            let [mut one, mut by_one] = [0, 1].map(|_| Fields::new(&given, &Arc::new(Part::alone(&given.grid)), &cuda, &pool).unwrap());
            assert!(one.fuses_fields());
            for c in &Component::ALL[..6] {
                let values = random(*c as u64, grid.len());
                one.set(*c, &values).unwrap();
                by_one.set(*c, &values).unwrap();
            }
            let scales = [1e-6, 2e-6, 3e-6];
            let mut sums = [0, 1].map(|_| pool.alloc_zeros::<i64>(3 * grid.len(), "test").unwrap());
            for step in 0..6 {
                // Nothing in the guards: particles put what lies there onto its images.
                let mut deposits = vec![0_i64; 3 * grid.len()];
                for c in 0..3 {
                    let values = random(100 + 3 * step + c as u64, grid.len());
                    let mut j = vec![0.0; grid.len()];
                    for at in (0..grid.cells[1] as isize).flat_map(|y| (0..grid.cells[0] as isize).map(move |x| grid.index(x, y))) {
                        let v = (1e6 * values[at]) as i64;
                        deposits[c * grid.len() + at] = v;
                        j[at] = v as f64 * scales[c];
                    }
                    by_one.put_current(c, &j).unwrap();
                }
                cuda.upload(&mut sums[0], &deposits).unwrap();
                cuda.upload(&mut sums[1], &vec![7_i64; 3 * grid.len()]).unwrap();
                let profiler = &mut Profiler::off();
                one.fused_fields(&sums[0], &sums[1], Current { scales, more: false }, profiler).unwrap();
                by_one.current(&[], profiler).unwrap();
                by_one.field(profiler).unwrap();
            }
            let left = cuda.download(&sums[1]).unwrap();
            for at in (0..grid.cells[1] as isize).flat_map(|y| (0..grid.cells[0] as isize).map(move |x| grid.index(x, y))) {
                assert!((0..3).all(|c| left[c * grid.len() + at] == 0), "{cells:?}: sums are cleared");
            }
            // The compiler chooses which products are fused: a few roundings of six steps.
            let eps = if precision == Precision::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
            for c in &Component::ALL[..6] {
                let (a, b) = (one.get(*c).unwrap(), by_one.get(*c).unwrap());
                let worst = a.iter().zip(&b).fold(0.0_f64, |m, (a, b)| m.max((a - b).abs()));
                assert!(worst <= 64.0 * eps, "{cells:?} {precision:?} {}: {worst}", c.name());
            }
        }
    }
}
