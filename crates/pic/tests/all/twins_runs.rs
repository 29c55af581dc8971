//! Runs on a GPU are those of the CPU: tiles and pages, charge, a window and a restart.

use crate::common::pairs::{agree, pair, small, sorted, tagged, tolerance};
use crate::common::{apart, electrons, residual, run, setup, thermal};
use zellige_engine::device::Cpu;
use zellige_engine::profile::Profiler;
use zellige_engine::testing;
use zellige_pic::grid::{FieldSide, ParticleSide};
use zellige_pic::particles::{Particles, Species};
use zellige_pic::stages::cuda::{KernelConfig, new_with};
use zellige_pic::stages::{Component, Precision, cpu};
use zellige_pic::step::step;

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
fn a_run_stays_with_the_cpu_and_conserves_charge() {
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
            // As for the CPU: rounding of E in 200 steps, and of rho.
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
fn a_window_and_a_restart_are_those_of_the_cpu() {
    let Some(cuda) = testing::gpu() else { return };
    let cells = [40, 12];
    let mut setup = setup(cells);
    setup.grid.fields[0] = [FieldSide::Absorbing; 2];
    setup.grid.particles[0] = [ParticleSide::Absorb; 2];
    setup.species = vec![Species { tagged: true, ..electrons(8) }];
    setup.window = true;
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
    // Out and in again into fresh stages: the next steps are bitwise identical.
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

/// Tiles stand still while a window moves past them, one and a half times around: the same bits for any tiles.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn a_window_does_not_depend_on_tiles() {
    let Some(cuda) = testing::gpu() else { return };
    let cells = [40, 12];
    for order in [1, 2] {
        let mut setup = setup(cells);
        (setup.order, setup.window) = (order, true);
        setup.grid.fields[0] = [FieldSide::Absorbing; 2];
        setup.grid.particles[0] = [ParticleSide::Absorb; 2];
        setup.species = vec![Species { tagged: true, ..electrons(8) }];
        let p = tagged(thermal(cells, 8, 0.2, 1), false);
        setup.expected = vec![p.len()];
        let mut reference = None;
        for tile in [[8, 8], [16, 12], [40, 5], [7, 12]] {
            setup.tile = Some(tile);
            let mut stages = new_with(&setup, &cuda, small).unwrap();
            stages.inject(0, &p).unwrap();
            let mut seen = Vec::new();
            for k in 0..70 {
                run(&setup, stages.as_mut(), k, 1);
                let mut fresh = tagged(thermal([1, 12], 8, 0.2, 10 + k), false);
                fresh.i.fill(39);
                fresh.tag.iter_mut().for_each(|t| *t += 1_000_000 * (k + 1));
                stages.shift(&[fresh], &[], &mut Profiler::off()).unwrap();
                if k % 7 == 6 {
                    seen.push((sorted(&stages.particles(0).unwrap()), stages.component(Component::Jx).unwrap(), stages.ledger().unwrap()));
                }
            }
            // Particles that have come in are there or gone.
            let (last, ledger) = (&seen[9].0, &seen[9].2[0]);
            assert_eq!(last.len() as u64, ledger.injected - ledger.removed);
            assert!(last.len() > 3000 && last.iter().all(|(tag, ..)| *tag >= 1_000_000), "the first ones are left behind");
            match &reference {
                None => reference = Some(seen),
                Some(r) => {
                    for (k, (a, b)) in r.iter().zip(&seen).enumerate() {
                        let label = format!("order {order}, tile {tile:?}, after {} steps", 7 * (k + 1));
                        assert!(a.0 == b.0, "{label}: particles differ");
                        assert!(a.1 == b.1, "{label}: currents differ by {}", apart(&a.1, &b.1));
                        assert_eq!(a.2, b.2, "{label}");
                    }
                }
            }
        }
    }
}
