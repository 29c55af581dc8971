//! Tiles so full that several blocks work on them: against the CPU, against one block a tile, and run against run.

use zellige_engine::cuda::Cuda;
use zellige_engine::device::Cpu;
use zellige_engine::profile::Profiler;
use zellige_engine::rng::Philox;

use zellige_pic::grid::{FieldSide, Grid, ParticleSide};
use zellige_pic::particles::{Particles, Pusher, Species};
use zellige_pic::stages::cuda::{CudaStages, KernelConfig};
use zellige_pic::stages::{Component, Precision, Setup, Smoothing, Stages, cpu};
use zellige_pic::step::step;

const CELLS: [usize; 2] = [64, 48];
const N: usize = 40_000;

fn setup(weighted: bool) -> Setup {
    let grid = Grid {
        cells: CELLS,
        h: [0.1; 2],
        origin: [0.0; 2],
        dt: 0.07,
        fields: [[FieldSide::Periodic; 2]; 2],
        particles: [[ParticleSide::Periodic; 2]; 2],
        dimensions: 2,
        part: None,
    };
    let species = Species {
        name: "electrons".into(),
        charge: -1.0,
        mass: 1.0,
        // Density 1 where most of them are.
        weight: 64.0 / N as f64,
        weighted,
        tagged: true,
        mobile: true,
        pusher: Pusher::Boris,
        wall_thermal: [[0.1; 2]; 2],
    };
    Setup {
        grid,
        species: vec![species],
        expected: vec![N],
        precision: Precision::F32,
        order: 1,
        smoothing: [Smoothing::default(); 2],
        absorbing_cells: 0,
        external: std::array::from_fn(|_| Vec::new()),
        tile: Some([8, 8]),
        window: false,
        deterministic: true,
        seed: 1,
    }
}

/// Nine of ten in the tile of cells (24, 16) to (31, 23), the others anywhere.
fn dense(weighted: bool) -> Particles {
    let random = Philox::new(11, 4);
    let mut p = Particles::default();
    for k in 0..N {
        let ([a, b], [c, d]) = (random.uniforms(0, k as u64), random.uniforms(1, k as u64));
        let ([x, y], [z, _]) = (random.normals(2, k as u64), random.normals(3, k as u64));
        let (corner, size) = if k % 10 == 0 { ([0.0; 2], CELLS.map(|n| n as f64)) } else { ([24.0, 16.0], [8.0; 2]) };
        let [i, j] = [corner[0] + (a * size[0]).floor(), corner[1] + (b * size[1]).floor()];
        p.i.push(i as u32);
        p.j.push(j as u32);
        p.s.push(c - 0.5);
        p.t.push(d - 0.5);
        p.u.iter_mut().zip([x, y, z]).for_each(|(u, v)| u.push(0.3 * v));
        p.tag.push(k as u64);
        if weighted {
            p.weight.push(0.5 + (k % 3) as f64 * 0.5);
        }
    }
    p
}

/// Tag, position and momentum, by tag.
fn sorted(p: &Particles) -> Vec<(u64, [f64; 5])> {
    let one = |k: usize| (p.tag[k], [f64::from(p.i[k]) + p.s[k], f64::from(p.j[k]) + p.t[k], p.u[0][k], p.u[1][k], p.u[2][k]]);
    let mut list: Vec<_> = (0..p.len()).map(one).collect();
    list.sort_by_key(|p| p.0);
    list
}

fn fill(setup: &Setup, stages: &mut dyn Stages, p: &Particles) {
    stages.inject(0, p).unwrap();
    let random = Philox::new(9, 4);
    for (c, component) in Component::ALL[..6].iter().enumerate() {
        let values: Vec<f64> = (0..setup.grid.len()).map(|n| 0.3 * (random.uniforms(c as u64, n as u64)[0] - 0.5)).collect();
        stages.set_component(*component, &values).unwrap();
    }
}

fn run(setup: &Setup, stages: &mut dyn Stages, first: u64, steps: u64) {
    for k in first..first + steps {
        step(stages, &setup.species, &[], k, true, &mut Profiler::off()).unwrap();
    }
}

fn on_gpu(setup: &Setup, cuda: &Cuda, p: &Particles, target: usize) -> CudaStages {
    let mut stages = CudaStages::new(setup, cuda, |kind| KernelConfig { target, parts: 1, ..kind }).unwrap();
    fill(setup, &mut stages, p);
    stages
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn several_blocks_share_a_very_full_tile() {
    let Some(cuda) = zellige_engine::testing::gpu() else { return };
    for weighted in [false, true] {
        let (setup, p) = (setup(weighted), dense(weighted));
        let mut here = cpu::new(&setup, &Cpu::new(2).unwrap()).unwrap();
        fill(&setup, here.as_mut(), &p);
        let [mut there, mut again] = [0, 1].map(|_| on_gpu(&setup, &cuda, &p, 512));
        let mut unsplit = on_gpu(&setup, &cuda, &p, 1 << 20);
        // The mean of a tile is 833, and tiles are split into parts of up to twice that.
        assert!(there.helpers(0).unwrap()[0] > 15, "the full tile has helpers");
        assert_eq!(unsplit.helpers(0).unwrap()[0], 0);
        run(&setup, here.as_mut(), 0, 3);
        for stages in [&mut there, &mut again, &mut unsplit] {
            run(&setup, stages, 0, 3);
        }
        // Rounding of a push and a move, some ten operations; in three steps in fields of size 0.3 it grows by less than a factor of 4.
        let tolerance = 4.0 * 4e-6;
        let (a, b) = (sorted(&here.particles(0).unwrap()), sorted(&there.particles(0).unwrap()));
        assert_eq!((a.len(), b.len()), (N, N));
        for (x, y) in a.iter().zip(&b) {
            assert_eq!(x.0, y.0);
            for c in 0..5 {
                let away = (x.1[c] - y.1[c]).abs();
                let away = if c < 2 { away.min((away - CELLS[c] as f64).abs()) } else { away };
                assert!(away <= tolerance * x.1[c].abs().max(1.0), "weighted {weighted}, column {c}: {x:?} {y:?}");
            }
        }
        let (e, f) = (here.energies().unwrap(), there.energies().unwrap());
        assert_eq!(e.count, f.count);
        assert!((e.kinetic[0] / f.kinetic[0] - 1.0).abs() < 64.0 * tolerance, "{} {}", e.kinetic[0], f.kinetic[0]);
        let (r, q) = (here.charge(0, false).unwrap(), there.charge(0, false).unwrap());
        let worst = r.iter().zip(&q).fold(0.0_f64, |m, (a, b)| m.max((a - b).abs()));
        assert!(worst <= 8.0 * tolerance, "charge: {worst}");
        // Longer, until the tile has emptied itself into its neighbours: the same bits whoever did the work.
        for k in [3, 33] {
            let all: Vec<_> = [&mut there, &mut again, &mut unsplit]
                .map(|stages| {
                    run(&setup, stages, k, 30);
                    let fields = Component::ALL.map(|c| stages.component(c).unwrap());
                    (sorted(&stages.particles(0).unwrap()), fields)
                })
                .into();
            assert!(all[0].0 == all[1].0 && all[0].0 == all[2].0, "weighted {weighted}: particles after {} steps", k + 30);
            assert!(all[0].1 == all[1].1 && all[0].1 == all[2].1, "weighted {weighted}: fields after {} steps", k + 30);
        }
    }
}

/// A very full cloud goes through one tile after the other: helpers come back where it has been, and nothing is lost.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn helpers_go_along_with_what_is_dense() {
    let Some(cuda) = zellige_engine::testing::gpu() else { return };
    let (mut setup, mut p) = (setup(false), dense(false));
    // Without forces, 9 cells in 13 steps, the others at rest.
    for k in 0..N {
        p.u[0][k] = if k % 10 == 0 { 0.0 } else { 5.0 };
        (p.u[1][k], p.u[2][k]) = (0.0, 0.0);
    }
    setup.species[0].charge = -1e-9;
    let start = sorted(&p);
    let mut stages = CudaStages::new(&setup, &cuda, |kind| KernelConfig { target: 512, parts: 1, ..kind }).unwrap();
    stages.inject(0, &p).unwrap();
    let mut returned = 0;
    for k in 0..120 {
        run(&setup, &mut stages, k, 1);
        assert_eq!(stages.energies().unwrap().count, [N as u64], "after {k} steps");
        let [helping, spare] = stages.helpers(0).unwrap();
        assert!(helping - spare > 5, "the cloud has helpers after {k} steps");
        returned = returned.max(spare);
    }
    assert!(returned > 0, "none came back");
    // Ten round trips of the rounding of a position in single precision, with a sum each step: 120 roundings of half a unit of 2^-24.
    let shift = 120.0 * 0.7 * 5.0 / 26.0_f64.sqrt();
    for (a, b) in start.iter().zip(sorted(&stages.particles(0).unwrap())) {
        assert_eq!(a.0, b.0);
        let expected = if a.0 % 10 == 0 { a.1[0] } else { (a.1[0] + shift) % CELLS[0] as f64 };
        let away = (expected - b.1[0]).abs();
        // The speed is off by two units, the same in each step.
        assert!(away.min(CELLS[0] as f64 - away) < 120.0 * 3e-7, "{a:?} {b:?}");
    }
}

/// A window moves on while helpers are at work: a very full cloud goes through one tile after the other towards the side behind
/// which everything is lost, a cell a step beside its own way, and out there.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn a_window_moves_while_helpers_are_at_work() {
    let Some(cuda) = zellige_engine::testing::gpu() else { return };
    for weighted in [false, true] {
        let (mut setup, p) = (setup(weighted), dense(weighted));
        setup.grid.fields[0] = [FieldSide::Absorbing; 2];
        setup.grid.particles[0] = [ParticleSide::Absorb; 2];
        (setup.absorbing_cells, setup.window) = (6, true);
        let mut here = cpu::new(&setup, &Cpu::new(2).unwrap()).unwrap();
        fill(&setup, here.as_mut(), &p);
        let [mut there, mut again] = [0, 1].map(|_| on_gpu(&setup, &cuda, &p, 512));
        let mut unsplit = on_gpu(&setup, &cuda, &p, 1 << 20);
        // Four particles a cell come in with each new column.
        let fresh = |step: u64| {
            let (random, last) = (Philox::new(12, 4), CELLS[0] as u32 - 1);
            let mut p = Particles::default();
            for k in 0..4 * CELLS[1] as u64 {
                let ([a, b], [x, y]) = (random.uniforms(step, 2 * k), random.normals(step, 2 * k + 1));
                p.i.push(last);
                p.j.push((k / 4) as u32);
                p.s.push(a - 0.5);
                p.t.push(b - 0.5);
                p.u.iter_mut().zip([x, y, 0.0]).for_each(|(u, v)| u.push(0.3 * v));
                p.tag.push(1_000_000 * (step + 1) + k);
                if weighted {
                    p.weight.push(0.5);
                }
            }
            p
        };
        let mut busy = 0;
        for k in 0..48 {
            for stages in [here.as_mut() as &mut dyn Stages, &mut there, &mut again, &mut unsplit] {
                run(&setup, stages, k, 1);
                stages.shift(&[fresh(k)], &[], &mut Profiler::off()).unwrap();
            }
            let [helping, spare] = there.helpers(0).unwrap();
            busy += u32::from(helping - spare > 5);
            assert_eq!(unsplit.helpers(0).unwrap()[0], 0);
            if k == 2 {
                // As in three steps of the test above; cells are counted from the window's side.
                let tolerance = 4.0 * 4e-6;
                let (a, b) = (sorted(&here.particles(0).unwrap()), sorted(&there.particles(0).unwrap()));
                assert_eq!(a.len(), b.len());
                for (x, y) in a.iter().zip(&b) {
                    assert_eq!(x.0, y.0);
                    for c in 0..5 {
                        let away = (x.1[c] - y.1[c]).abs();
                        let away = if c == 1 { away.min((away - CELLS[1] as f64).abs()) } else { away };
                        assert!(away <= tolerance * x.1[c].abs().max(1.0), "weighted {weighted}, column {c}: {x:?} {y:?}");
                    }
                }
                let (l, m) = (&here.ledger().unwrap()[0], &there.ledger().unwrap()[0]);
                assert_eq!((l.injected, l.removed), (m.injected, m.removed));
                let near = |x: f64, y: f64| (x - y).abs() <= 64.0 * tolerance * x.abs().max(1e-3);
                assert!(near(l.energy_out, m.energy_out) && near(l.charge_out, m.charge_out), "{l:?} {m:?}");
            }
            // Bitwise identical whoever did the work, in every step.
            let all: Vec<_> = [&mut there, &mut again, &mut unsplit]
                .map(|stages| {
                    let p = sorted(&stages.particles(0).unwrap());
                    let (l, fields) = (stages.ledger().unwrap(), Component::ALL.map(|c| stages.component(c).unwrap()));
                    assert_eq!(
                        p.len() as u64,
                        l[0].injected - l[0].removed,
                        "weighted {weighted}: number of particles after {} steps",
                        k + 1
                    );
                    (p, fields, l)
                })
                .into();
            assert!(all[0].0 == all[1].0 && all[0].0 == all[2].0, "weighted {weighted}: particles after {} steps", k + 1);
            assert!(all[0].1 == all[1].1 && all[0].1 == all[2].1, "weighted {weighted}: fields after {} steps", k + 1);
            assert!(all[0].2 == all[1].2 && all[0].2 == all[2].2, "weighted {weighted}: ledgers after {} steps", k + 1);
        }
        // The cloud has needed 24 to 32 steps to the side, more or less with its own speed.
        assert!(busy >= 20, "helpers were at work in {busy} steps");
        let left = there.particles(0).unwrap().len();
        assert!(left < N / 2, "{left} particles are left: the cloud has gone");
    }
}
