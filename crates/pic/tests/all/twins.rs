//! The GPU against the CPU: one step of everything on random states, whole runs, and what must not depend on how the
//! particles are stored. Particles carry tags, by which they are matched.

use crate::common::{apart, at_wall, electrons, residual, run, setup, thermal, turned, walls};
use zellige_engine::cuda::Cuda;
use zellige_engine::device::Cpu;
use zellige_engine::profile::Profiler;
use zellige_engine::rng::Philox;
use zellige_engine::testing;
use zellige_pic::gauss::Gauss;
use zellige_pic::grid::{ABOVE, BELOW, FieldSide, ParticleSide};
use zellige_pic::particles::{Particles, Pusher, Species};
use zellige_pic::stages::cuda::{KernelConfig, new_with};
use zellige_pic::stages::{Bins, Component, Precision, Setup, Smoothing, Stages, cpu};
use zellige_pic::step::step;

/// A pair of stages with the same particles and fields.
fn pair(setup: &Setup, particles: &[Particles], cuda: &Cuda, adapt: impl Fn(KernelConfig) -> KernelConfig) -> [Box<dyn Stages>; 2] {
    let random = Philox::new(9, 4);
    let mut both = [cpu::new(setup, &Cpu::new(2).unwrap()).unwrap(), new_with(setup, cuda, adapt).unwrap()];
    for stages in &mut both {
        for (k, p) in particles.iter().enumerate() {
            stages.inject(k, p).unwrap();
        }
        for (c, component) in Component::ALL[..6].iter().enumerate() {
            let values: Vec<f64> = (0..setup.grid.len()).map(|n| 0.3 * (random.uniforms(c as u64, n as u64)[0] - 0.5)).collect();
            stages.set_component(*component, &values).unwrap();
        }
    }
    both
}

fn tagged(mut p: Particles, weighted: bool) -> Particles {
    p.tag = (0..p.len() as u64).collect();
    if weighted {
        p.weight = (0..p.len()).map(|k| 0.25 + (k % 7) as f64 * 0.5).collect();
    }
    p
}

/// Tag, cell, position, momentum, weight; by tag.
fn sorted(p: &Particles) -> Vec<(u64, [u32; 2], [f64; 6])> {
    let weight = |k: usize| p.weight.get(k).copied().unwrap_or(1.0);
    let mut list: Vec<_> =
        (0..p.len()).map(|k| (p.tag[k], [p.i[k], p.j[k]], [p.s[k], p.t[k], p.u[0][k], p.u[1][k], p.u[2][k], weight(k)])).collect();
    list.sort_by_key(|(tag, ..)| *tag);
    list
}

/// `tolerance` is for numbers of size 1: positions in cells and momenta.
fn agree(setup: &Setup, [a, b]: &mut [Box<dyn Stages>; 2], tolerance: f64, label: &str) {
    for s in 0..setup.species.len() {
        let (p, q) = (sorted(&a.particles(s).unwrap()), sorted(&b.particles(s).unwrap()));
        assert_eq!(p.len(), q.len(), "{label}: number of particles");
        for (x, y) in p.iter().zip(&q) {
            assert_eq!(x.0, y.0, "{label}: tags");
            for c in 0..6 {
                if c == 1 && setup.grid.dimensions == 1 {
                    // Across a line the processor puts particles where they cross nothing: no physics depends on it.
                    continue;
                }
                // On a border the two may differ on which cell it belongs to.
                let cells = if c < 2 { f64::from(y.1[c]) - f64::from(x.1[c]) } else { 0.0 };
                let n = if c < 2 { setup.grid.cells[c] as f64 } else { 1.0 };
                let away = (y.2[c] - x.2[c] + cells).abs();
                let away = if c < 2 { away.min((away - n).abs()) } else { away };
                let size = if c < 2 { 1.0 } else { x.2[c].abs().max(1.0) };
                assert!(away <= tolerance * size, "{label}: particle {} column {c}: {:?} {:?}", x.0, x, y);
            }
        }
        // A position that is off by the tolerance moves that part of a charge to the next node; (2 r)^2 particles around a node.
        let (r, q) = (a.charge(s, false).unwrap(), b.charge(s, false).unwrap());
        let largest = r.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        assert!(apart(&r, &q) <= 8.0 * tolerance * largest.max(1.0), "{label}: charge {} of {largest}", apart(&r, &q));
    }
    for c in Component::ALL {
        let [mut x, mut y] = [a.component(c).unwrap(), b.component(c).unwrap()];
        // Behind the last guard of a row is nothing.
        let row = BELOW + setup.grid.cells[0] + ABOVE;
        for values in [&mut x, &mut y] {
            values.chunks_mut(setup.grid.pitch()).for_each(|values| values[row..].fill(0.0));
        }
        let largest = x.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        let worst = (0..x.len()).max_by(|a, b| (x[*a] - y[*a]).abs().total_cmp(&(x[*b] - y[*b]).abs())).unwrap();
        let (i, j) = (worst % setup.grid.pitch(), worst / setup.grid.pitch());
        let values = format!("{} here, {} there at ({i} - 2, {j} - 2), largest {largest}", x[worst], y[worst]);
        assert!(apart(&x, &y) <= 16.0 * tolerance * largest.max(1.0), "{label}: {}: {values}", c.name());
    }
    let (e, f) = (a.energies().unwrap(), b.energies().unwrap());
    assert_eq!(e.count, f.count, "{label}");
    for s in 0..setup.species.len() {
        let near = |x: f64, y: f64| (x - y).abs() <= 64.0 * tolerance * e.kinetic[s].max(1e-3);
        assert!(near(e.kinetic[s], f.kinetic[s]), "{label}: kinetic energy {} {}", e.kinetic[s], f.kinetic[s]);
        assert!((0..3).all(|c| near(e.momentum[s][c], f.momentum[s][c])), "{label}: momentum {:?} {:?}", e.momentum, f.momentum);
    }
    for (l, m) in a.ledger().unwrap().iter().zip(b.ledger().unwrap()) {
        assert_eq!((l.injected, l.removed), (m.injected, m.removed), "{label}");
        assert!((l.energy_out - m.energy_out).abs() <= 64.0 * tolerance * l.energy_out.abs().max(1e-3), "{label}: {l:?} {m:?}");
        assert!((l.charge_out - m.charge_out).abs() <= 64.0 * tolerance * l.charge_out.abs().max(1e-3), "{label}: {l:?} {m:?}");
    }
}

/// Rounding of a push and a move, some ten operations on numbers of size 1 to 3; the unit of the integers is 2^-20 and 2^-40.
fn tolerance(setup: &Setup) -> f64 {
    if setup.precision == Precision::F32 { 4e-6 } else { 4e-12 }
}

fn small(kind: KernelConfig) -> KernelConfig {
    KernelConfig { shift: 6, parts: 2, block: 128, ..kind }
}

/// Each two of precision, order and pusher together: six programs, since one takes seconds to compile. The other six are compiled
/// by `kernels_compile` or differ from one of these in a call.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn a_step_of_every_kind_is_that_of_the_processor() {
    let Some(cuda) = testing::gpu() else { return };
    let (single, double) = (Precision::F32, Precision::F64);
    let kinds = [
        (single, 1, Pusher::Boris, false),
        (single, 2, Pusher::Vay, true),
        (single, 1, Pusher::HigueraCary, true),
        (double, 2, Pusher::Boris, true),
        (double, 1, Pusher::Vay, false),
        (double, 2, Pusher::HigueraCary, false),
    ];
    // Whole and cut tiles, lines, and domains smaller than a tile, which is the same for all: one program serves them.
    let sizes = [[48, 40], [17, 5], [5, 33], [70, 1], [3, 3]];
    for (precision, order, pusher, weighted) in kinds {
        for cells in sizes {
            let mut setup = setup(cells);
            setup.precision = precision;
            setup.order = order;
            setup.species = vec![Species { pusher, weighted, tagged: true, ..electrons(12) }];
            let p = tagged(thermal(cells, 12, 0.6, 3), weighted);
            setup.expected = vec![p.len()];
            let label = format!("{precision:?} order {order} {pusher:?} {cells:?}");
            let mut both = pair(&setup, &[p], &cuda, |kind| KernelConfig { tile: [16, 14], outbox_rounds: 8, ..small(kind) });
            agree(&setup, &mut both, tolerance(&setup), &format!("{label} start"));
            for stages in &mut both {
                run(&setup, stages.as_mut(), 0, 1);
            }
            agree(&setup, &mut both, tolerance(&setup), &label);
        }
    }
}

/// Weights down to nothing beside ordinary ones: charge and current of light particles are rounded to the unit of the sums, not to
/// garbage, and conserved. In double precision the unit is 2^-40.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn light_particles_deposit_what_they_do_on_the_processor() {
    let Some(cuda) = testing::gpu() else { return };
    for (precision, order) in [(Precision::F32, 1), (Precision::F64, 1), (Precision::F32, 2)] {
        let cells = [48, 40];
        let mut setup = setup(cells);
        (setup.precision, setup.order) = (precision, order);
        setup.species = vec![Species { weighted: true, tagged: true, ..electrons(12) }];
        let mut p = tagged(thermal(cells, 12, 0.6, 3), true);
        let light: &[f64] = if precision == Precision::F32 { &[1e-5, 1e-6, 9e-7, 1e-9, 1e-12] } else { &[1e-11, 1e-12, 8e-13, 1e-15] };
        p.weight = (0..p.len()).map(|k| if k % 4 == 0 { 1.0 } else { light[k % light.len()] }).collect();
        setup.expected = vec![p.len()];
        let mut both = pair(&setup, &[p], &cuda, small);
        let before = residual(&setup, both[1].as_mut());
        for stages in &mut both {
            run(&setup, stages.as_mut(), 0, 1);
        }
        agree(&setup, &mut both, tolerance(&setup), &format!("{precision:?} order {order}"));
        run(&setup, both[1].as_mut(), 1, 60);
        // Rounding of E, whose terms of the divergence are 3, in 60 steps: 1.5e-6, and 2000 nodes. Garbage is 100 and more.
        let change = apart(&before, &residual(&setup, both[1].as_mut()));
        let allowed = if precision == Precision::F32 { 2e-5 } else { 1e-11 };
        assert!(change < allowed, "{precision:?} order {order}: div E - rho changed by {change}");
    }
}

/// Particles of less than the unit of the sums carry the current that they have on average: 23 000 of 1.36 units each, which is
/// rounded to 0 or 2 at random, are right to 0.5 %.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn the_current_of_light_particles_is_right_in_the_mean() {
    let Some(cuda) = testing::gpu() else { return };
    let cells = [48, 40];
    let mut setup = setup(cells);
    setup.species = vec![Species { weighted: true, tagged: true, ..electrons(12) }];
    let mut p = tagged(thermal(cells, 12, 0.1, 3), true);
    p.weight = vec![1.3e-6; p.len()];
    p.u[0].iter_mut().for_each(|u| *u += 0.5);
    setup.expected = vec![p.len()];
    let field = |stages: &mut dyn Stages| {
        let values = stages.component(Component::ALL[0]).unwrap();
        let (g, inner) = (&setup.grid, |k: usize, n: usize| (BELOW..BELOW + n).contains(&k));
        let sum = |(n, v): (usize, &f64)| if inner(n % g.pitch(), cells[0]) && inner(n / g.pitch(), cells[1]) { *v } else { 0.0 };
        values.iter().enumerate().map(sum).sum::<f64>()
    };
    let [cpu, gpu] = pair(&setup, &[p], &cuda, small).map(|mut stages| {
        let before = field(stages.as_mut());
        run(&setup, stages.as_mut(), 0, 1);
        field(stages.as_mut()) - before
    });
    assert!(cpu.abs() > 1e-5 && (gpu / cpu - 1.0).abs() < 0.025, "{gpu} for {cpu}");
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn sides_do_to_particles_what_they_do_on_the_processor() {
    let Some(cuda) = testing::gpu() else { return };
    for side in [ParticleSide::Reflect, ParticleSide::Absorb] {
        for order in [1, 2] {
            // Tiles of one size: with one wall, with two, with three.
            for cells in [[40, 18], [10, 36]] {
                let mut setup = setup(cells);
                (0..2).for_each(|axis| walls(&mut setup, axis, FieldSide::Pec, side));
                setup.order = order;
                setup.tile = Some([10, 9]);
                setup.species = vec![Species { tagged: true, ..electrons(12) }];
                let p = tagged(thermal(cells, 12, 2.0, 5), false);
                setup.expected = vec![p.len()];
                let mut both = pair(&setup, &[p], &cuda, small);
                for stages in &mut both {
                    run(&setup, stages.as_mut(), 0, 3);
                }
                // Three steps in fields of size 0.3: errors grow by less than a factor of 4.
                agree(&setup, &mut both, 4.0 * tolerance(&setup), &format!("{side:?} order {order} {cells:?}"));
            }
        }
    }
}

/// Momenta of thermal walls are drawn with other keys than on the CPU: counts are exact, the spread is that of the wall.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn thermal_walls_keep_every_particle_and_give_their_own_spread() {
    let Some(cuda) = testing::gpu() else { return };
    let cells = [32, 32];
    let mut setup = setup(cells);
    (0..2).for_each(|axis| walls(&mut setup, axis, FieldSide::Pec, ParticleSide::Thermal));
    setup.species = vec![Species { tagged: true, mobile: true, wall_thermal: [[0.05; 2]; 2], charge: 1e-9, ..electrons(16) }];
    let p = tagged(thermal(cells, 16, 3.0, 5), false);
    setup.expected = vec![p.len()];
    let start = p.len();
    let mut stages = new_with(&setup, &cuda, small).unwrap();
    stages.inject(0, &p).unwrap();
    // In n steps x = 0.07 n / 3.2 domains are crossed at the speed of light; of an isotropic beam 1/(2 pi x^2) moves so closely along
    // z that it has not met a wall: 0.4 % here.
    run(&setup, stages.as_mut(), 0, 300);
    let p = stages.particles(0).unwrap();
    assert_eq!(p.len(), start);
    let tags: std::collections::BTreeSet<_> = p.tag.iter().collect();
    assert_eq!(tags.len(), start);
    // All others are slow now, |u_z| < 8 u_th.
    let slow: Vec<f64> = p.u[2].iter().copied().filter(|u| u.abs() < 0.4).collect();
    assert!(slow.len() * 100 > 99 * start, "{} of {start}", slow.len());
    // z is normal with u_th: the mean square of 16384 draws is right to 1.1 %, here 5 sigma.
    let z = slow.iter().map(|u| u * u).sum::<f64>() / slow.len() as f64;
    assert!((z / 0.0025 - 1.0).abs() < 0.055, "{z}");
}

/// The flux of each thermal wall, by the checks of the CPU (`conservation`); reflecting walls beside them.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn walls_turn_both_axes_on_a_gpu() {
    let Some(cuda) = testing::gpu() else { return };
    for precision in [Precision::F32, Precision::F64] {
        for (axis, end) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            for side in [ParticleSide::Reflect, ParticleSide::Thermal] {
                let (mut setup, p) = at_wall(axis, end, side);
                setup.precision = precision;
                let mut stages = new_with(&setup, &cuda, small).unwrap();
                stages.inject(0, &p).unwrap();
                run(&setup, stages.as_mut(), 0, 1);
                turned(&setup, axis, end, &stages.particles(0).unwrap(), tolerance(&setup));
            }
        }
    }
}

/// Everything into one tile and out of it again; pages of 128 to 512 slots; the same bits however the particles are stored.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn nothing_is_lost_and_nothing_depends_on_pages_and_tiles() {
    let Some(cuda) = testing::gpu() else { return };
    let cells = [40, 24];
    let mut setup = setup(cells);
    setup.species = vec![Species { tagged: true, charge: 1e-9, ..electrons(40) }];
    let n = 20_000_usize;
    let centre = |k: usize| [20.0 + (k % 100) as f64 / 101.0, 12.0 + (k / 100 % 200) as f64 / 201.0];
    let mut p = Particles::default();
    for k in 0..n {
        // On a circle of 10 cells, moving inwards: all meet at step 20 or so, and part again.
        let angle = std::f64::consts::TAU * k as f64 / n as f64;
        let [x, y] = centre(k);
        let (x, y) = (x + 9.0 * angle.cos(), y + 9.0 * angle.sin());
        p.i.push(x as u32);
        p.j.push(y as u32);
        p.s.push(x - x.floor() - 0.5);
        p.t.push(y - y.floor() - 0.5);
        for (u, v) in p.u.iter_mut().zip([-angle.cos(), -angle.sin(), 0.1]) {
            u.push(v);
        }
    }
    let p = tagged(p, false);
    setup.expected = vec![n];
    let mut reference = None;
    for (tile, shift, parts, block) in [([16, 16], 7, 1, 256), ([16, 16], 6, 3, 128), ([8, 8], 8, 1, 64), ([40, 24], 6, 5, 192)] {
        setup.tile = Some(tile);
        let mut stages = new_with(&setup, &cuda, |kind| KernelConfig { shift, parts, block, ..kind }).unwrap();
        stages.inject(0, &p).unwrap();
        let mut seen = Vec::new();
        for k in 0..60 {
            run(&setup, stages.as_mut(), k, 1);
            if k % 10 == 9 {
                seen.push((sorted(&stages.particles(0).unwrap()), stages.component(Component::Jx).unwrap()));
            }
        }
        assert!(seen.iter().all(|(p, _)| p.len() == n && p.windows(2).all(|w| w[0].0 < w[1].0)), "each particle once");
        match &reference {
            None => reference = Some(seen),
            Some(r) => {
                for (k, (a, b)) in r.iter().zip(&seen).enumerate() {
                    let differ = a.0.iter().zip(&b.0).filter(|(a, b)| a != b).collect::<Vec<_>>();
                    let label = format!("tile {tile:?}, page {}, after {} steps", 1 << shift, 10 * (k + 1));
                    let worst = |c: usize| differ.iter().map(|(a, b)| (a.2[c] - b.2[c]).abs()).fold(0.0, f64::max);
                    let (columns, some) = ([0, 1, 2, 3, 4].map(worst), &differ[..differ.len().min(4)]);
                    assert!(differ.is_empty(), "{label}: {} particles, at most by {columns:?}: {some:?}", differ.len());
                    assert!(a.1 == b.1, "{label}: currents differ by {}", apart(&a.1, &b.1));
                }
            }
        }
    }
}

/// A plasma of two species of different charge for 200 steps: V12 and V5 of the verification list, and the window.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn a_run_stays_with_the_processor_and_conserves_charge() {
    let Some(cuda) = testing::gpu() else { return };
    for precision in [Precision::F32, Precision::F64] {
        let cells = [48, 32];
        let mut setup = setup(cells);
        setup.precision = precision;
        let ions = Species { charge: 2.0, mass: 100.0, weight: 0.5 / 16.0, tagged: true, ..electrons(16) };
        setup.species = vec![Species { tagged: true, ..electrons(16) }, ions];
        let p = [tagged(thermal(cells, 16, 0.1, 1), false), tagged(thermal(cells, 16, 0.01, 2), false)];
        setup.expected = vec![p[0].len(), p[1].len()];
        let mut both = [cpu::new(&setup, &Cpu::new(2).unwrap()).unwrap(), new_with(&setup, &cuda, |k| k).unwrap()];
        let mut energies = Vec::new();
        for stages in &mut both {
            p.iter().enumerate().for_each(|(k, p)| stages.inject(k, p).unwrap());
            let before = residual(&setup, stages.as_mut());
            run(&setup, stages.as_mut(), 0, 200);
            let change = apart(&before, &residual(&setup, stages.as_mut()));
            // As for the processor: rounding of E in 200 steps, and of rho.
            let allowed = if precision == Precision::F32 { 2e-6 } else { 1e-11 };
            assert!(change < allowed, "{precision:?}: div E - rho changed by {change}");
            energies.push(stages.energies().unwrap());
        }
        let field = |k: usize| energies[k].electric.iter().chain(&energies[k].magnetic).sum::<f64>();
        let away = (field(1) / field(0) - 1.0).abs();
        println!("{precision:?}: field energies after 200 steps differ by {away:.1e}");
        assert!(away < if precision == Precision::F32 { 1e-3 } else { 1e-8 }, "{away}");
    }
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn a_window_and_a_restart_are_those_of_the_processor() {
    let Some(cuda) = testing::gpu() else { return };
    let cells = [40, 12];
    let mut setup = setup(cells);
    setup.grid.fields[0] = [FieldSide::Absorbing; 2];
    setup.grid.particles[0] = [ParticleSide::Absorb; 2];
    setup.species = vec![Species { tagged: true, ..electrons(8) }];
    let p = tagged(thermal(cells, 8, 0.2, 1), false);
    setup.expected = vec![p.len()];
    let mut both = pair(&setup, &[p], &cuda, small);
    for stages in &mut both {
        for k in 0..6 {
            step(stages.as_mut(), &setup.species, &[], k, true, &mut Profiler::off()).unwrap();
            let mut fresh = tagged(thermal([1, 12], 8, 0.2, 10 + k), false);
            fresh.i.iter_mut().for_each(|i| *i = 39);
            fresh.tag.iter_mut().for_each(|t| *t += 1_000_000 * (k + 1));
            stages.shift(&[fresh], &[], &mut Profiler::off()).unwrap();
        }
    }
    agree(&setup, &mut both, 16.0 * tolerance(&setup), "window");
    // Out and in again into fresh stages: the next steps are the same to the bit.
    let [_, gpu] = &mut both;
    let mut again = new_with(&setup, &cuda, |k| k).unwrap();
    again.replace(0, &gpu.particles(0).unwrap()).unwrap();
    for c in &Component::ALL[..6] {
        again.set_component(*c, &gpu.component(*c).unwrap()).unwrap();
    }
    again.set_auxiliary_state(&gpu.auxiliary_state().unwrap()).unwrap();
    run(&setup, gpu.as_mut(), 6, 5);
    run(&setup, again.as_mut(), 6, 5);
    assert!(sorted(&gpu.particles(0).unwrap()) == sorted(&again.particles(0).unwrap()));
    for c in Component::ALL {
        assert!(gpu.component(c).unwrap() == again.component(c).unwrap(), "{}", c.name());
    }
    assert_eq!(gpu.ledger().unwrap(), again.ledger().unwrap());
}

/// Snapshots of each step are the fields of that step, in order; a full list says so and is empty after it was asked for.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn samples_put_aside_are_those_taken_at_once() {
    let Some(cuda) = testing::gpu() else { return };
    let mut given = setup([300, 200]);
    (given.precision, given.species, given.expected) = (Precision::F32, vec![electrons(4)], vec![300 * 200 * 4]);
    let [_, stages] = &mut pair(&given, &[thermal([300, 200], 4, 0.1, 3)], &cuda, |kind| kind);
    let (mut there, mut full) = (Vec::new(), 0);
    for k in 0..40 {
        step(stages.as_mut(), &given.species, &[], k, false, &mut Profiler::off()).unwrap();
        if !stages.keep(1, Component::By).unwrap() {
            full += 1;
            let kept = stages.kept(1).unwrap();
            assert!(kept == there, "after {k} steps");
            there.clear();
            assert!(stages.keep(1, Component::By).unwrap() && !stages.keep(1, Component::Ex).unwrap());
        }
        there.push(stages.component(Component::By).unwrap());
    }
    // 249 KB each in single precision, of 4 MiB.
    assert!(full == 2 && stages.kept(1).unwrap() == there && stages.kept(1).unwrap().is_empty());
    assert!(there.iter().flatten().any(|v| *v != 0.0) && stages.kept(0).unwrap().is_empty());
}

/// Histograms, extents, courses and counts are reduced on the device: they are what the host makes of all particles.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn what_is_told_of_particles_needs_no_export() {
    let Some(cuda) = testing::gpu() else { return };
    for (weighted, precision) in [(false, Precision::F32), (true, Precision::F64)] {
        let mut given = setup([70, 37]);
        given.precision = precision;
        given.species = vec![Species { tagged: true, weighted, ..electrons(9) }];
        given.expected = vec![70 * 37 * 9];
        let particles = tagged(thermal([70, 37], 9, 0.1, 3), weighted);
        let mut both = pair(&given, &[particles], &cuda, |kind| kind);
        for stages in &mut both {
            run(&given, &mut **stages, 0, 3);
        }
        let [_, stages] = &mut both;
        let p = stages.particles(0).unwrap();
        assert_eq!(stages.count().unwrap(), [p.len() as u64]);
        let weight = |k: usize| p.weight.get(k).copied().unwrap_or(1.0);
        let column = |c: usize, k: usize| {
            let [x, y, z] = [0, 1, 2].map(|a| p.u[a][k]);
            [
                0.1 * (f64::from(p.i[k]) + 0.5 + p.s[k]) + 2.0,
                0.2 * (f64::from(p.j[k]) + 0.5 + p.t[k]),
                x,
                y,
                z,
                (1.0 + x * x + y * y + z * z).sqrt(),
                weight(k),
            ][c]
        };
        let axis = |c: usize, from: f64, spacing: f64, count: usize| Bins {
            column: c,
            from,
            spacing,
            count,
            position: [[2.0, 0.1], [0.0, 0.2]].get(c).copied().unwrap_or_default(),
        };
        for axes in [
            vec![axis(0, 2.0, 0.35, 20), axis(2, -0.2, 0.01, 40)],
            vec![axis(1, 0.0, 0.2, 37), axis(5, 1.0, 0.003, 10)],
            vec![axis(4, -0.3, 0.02, 30)],
            vec![axis(6, 0.0, 0.5, 8), axis(3, -0.3, 0.05, 12)],
        ] {
            let mut expected = vec![0.0; axes.iter().map(|a| a.count).product()];
            for k in 0..p.len() {
                let at = axes.iter().rev().try_fold(0, |at, a| Some(at * a.count + a.of(column(a.column, k))?));
                if let Some(at) = at {
                    expected[at] += weight(k);
                }
            }
            assert_eq!(stages.bins(0, &axes).unwrap(), expected, "{axes:?}: weights are quarters, whose sums are exact");
            let values = (0..p.len()).map(|k| column(axes[0].column, k));
            let [low, high] = values.fold([f64::INFINITY, f64::NEG_INFINITY], |[a, b], v| [a.min(v), b.max(v)]);
            let found = stages.extent(0, &axes[0]).unwrap();
            assert!((found[0] - low).abs() < 1e-14 && (found[1] - high).abs() < 1e-14, "{found:?} for {low} to {high}");
        }
        // The last one is nobody's.
        let followed = stages.follow(0, &[3, 1000, 1 << 40]).unwrap();
        let k = p.tag.iter().position(|t| *t == 1000).unwrap();
        let expected = [f64::from(p.i[k]) + 0.5 + p.s[k], f64::from(p.j[k]) + 0.5 + p.t[k], p.u[0][k], p.u[1][k], p.u[2][k]];
        assert_eq!(followed[1], expected);
        assert!(followed[0][0].is_finite() && followed[2].iter().all(|v| v.is_nan()));
        let mut told = Vec::new();
        stages.visit(0, &|p| p.tag.iter().map(|t| *t as f64).collect(), &mut |tags| told.extend(tags)).unwrap();
        told.sort_by(f64::total_cmp);
        assert!(told.iter().copied().eq((0..p.len()).map(|k| k as f64)), "each particle once");
    }
}

/// A fault at one corner is found on either device, at sides of any kind and through the filter, and the work of the fields is the
/// same.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn faults_and_the_work_of_fields_are_seen_alike() {
    let Some(cuda) = testing::gpu() else { return };
    for (side, particles, passes, order) in [
        (FieldSide::Periodic, ParticleSide::Periodic, 0, 1),
        (FieldSide::Periodic, ParticleSide::Periodic, 3, 2),
        (FieldSide::Pec, ParticleSide::Reflect, 0, 2),
        (FieldSide::Pmc, ParticleSide::Reflect, 2, 1),
        (FieldSide::Absorbing, ParticleSide::Absorb, 1, 2),
    ] {
        let mut given = setup([40, 33]);
        (given.precision, given.order) = (Precision::F64, order);
        given.smoothing = [Smoothing { passes, compensated: passes > 2 }; 2];
        walls(&mut given, 0, side, particles);
        walls(&mut given, 1, side, particles);
        given.species = vec![electrons(9), Species { name: "ions".into(), charge: 1.0, mass: 20.0, ..electrons(9) }];
        given.expected = vec![40 * 33 * 9; 2];
        let particles = [3, 4].map(|seed| thermal([40, 33], 9, 0.1, seed));
        let mut found = Vec::new();
        for stages in &mut pair(&given, &particles, &cuda, |kind| kind) {
            let mut gauss = Gauss::new(&given);
            stages.count_work().unwrap();
            run(&given, &mut **stages, 0, 2);
            gauss.update(&mut **stages, 2, 0).unwrap();
            run(&given, &mut **stages, 2, 8);
            let sound = gauss.update(&mut **stages, 10, 0).unwrap();
            let check = gauss.check().unwrap();
            assert!(check.ok && sound > 0.0, "{side:?} {passes}: {check:?}");
            for component in [Component::Ex, Component::Ey] {
                let mut e = stages.component(component).unwrap();
                e[given.grid.index(20, 17)] += 1e-3;
                stages.set_component(component, &e).unwrap();
            }
            let fault = gauss.update(&mut **stages, 11, 0).unwrap();
            // Two faces of the corner behind it.
            assert!((fault - 0.02).abs() < 1e-8, "{side:?} {passes}: {fault}");
            assert!(!gauss.check().unwrap().ok);
            found.push(stages.work().unwrap());
        }
        // The work is a sum of both signs, a hundredth of what it is made of or more; double precision, ten steps.
        assert!((found[0] / found[1] - 1.0).abs() < 1e-6, "{side:?} {passes}: {found:?}");
    }
}
