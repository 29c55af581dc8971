//! Energy, momentum and counts: V6, V8, V9 and V13 of the verification list, through the stages.

use crate::common::{electrons, run, setup, start, thermal, walls};
use zellige_pic::grid::{FieldSide, ParticleSide};
use zellige_pic::particles::{Particles, Pusher};
use zellige_pic::stages::{Component, Precision, Setup, Stages};

/// Field and kinetic energy at the beginning of the last step.
fn energy(stages: &mut dyn Stages) -> f64 {
    let e = stages.energies().unwrap();
    e.electric.iter().sum::<f64>() + e.magnetic.iter().sum::<f64>() + e.kinetic.iter().sum::<f64>()
}

/// V6, reduced, with shapes of the second order (those of the first: `physics`): energies centred in time stay within the listed
/// 1.5e-3.
#[test]
fn a_warm_plasma_keeps_its_energy() {
    let mut s = setup([16, 16]);
    (s.order, s.species, s.expected) = (2, vec![electrons(64)], vec![64 * 16 * 16]);
    let mut stages = start(&s, &[thermal([16, 16], 64, 0.1, 4)], 1);
    run(&s, &mut *stages, 0, 1);
    let before = energy(&mut *stages);
    run(&s, &mut *stages, 1, 200);
    let drift = energy(&mut *stages) / before - 1.0;
    assert!(drift.abs() < 1.5e-3, "{drift:e}");
    assert!(stages.energies().unwrap().electric[0] > 1e-4 * before, "no fluctuations: nothing was tested");
}

/// One particle with momentum `u`, so light that its own field is nothing, in fields that are the same everywhere.
fn lone(u: [f64; 3], pusher: Pusher, dt: f64, fields: [f64; 6], precision: Precision) -> (Setup, Box<dyn Stages>) {
    let mut s = setup([16, 12]);
    // Cells so large that a step stays inside the reach of one.
    (s.grid.h, s.grid.dt, s.precision) = ([4.0 * dt; 2], dt, precision);
    s.species = vec![electrons(1)];
    (s.species[0].pusher, s.species[0].weight, s.expected) = (pusher, 1e-30, vec![1]);
    s.external = fields.map(|f| vec![f; s.grid.len()]);
    let p = Particles { i: vec![8], j: vec![6], s: vec![0.1], t: vec![-0.2], u: u.map(|u| vec![u]), ..Particles::default() };
    let stages = start(&s, &[p], 1);
    (s, stages)
}

/// V8: the angle of a step is `2 atan(alpha B / gamma)`, the speed stays, for 1000 steps.
#[test]
fn gyration_is_exact() {
    for (precision, limit) in [(Precision::F32, 1e-5), (Precision::F64, 1e-12)] {
        for u0 in [0.1, 1.0, 10.0] {
            let gamma = f64::hypot(1.0, u0);
            let dt = 0.05 * gamma;
            let (s, mut stages) = lone([u0, 0.0, 0.0], Pusher::Boris, dt, [0.0, 0.0, 0.0, 0.0, 0.0, 1.0], precision);
            let angle = 2.0 * (0.5 * dt / gamma).atan();
            let mut turned = 0.0_f64;
            let mut last = 0.0_f64;
            for k in 0..1000 {
                run(&s, &mut *stages, k, 1);
                let p = stages.particles(0).unwrap();
                let now = p.u[1][0].atan2(p.u[0][0]);
                turned += (now - last).rem_euclid(std::f64::consts::TAU);
                last = now;
                assert!((f64::hypot(p.u[0][0], p.u[1][0]) / u0 - 1.0).abs() < limit, "{precision:?} {u0} step {k}");
            }
            // An electron turns in the positive sense about B; rounding of each angle adds up as the limit does.
            assert!((turned / 1000.0 - angle).abs() < limit, "{precision:?} {u0}: {} {angle}", turned / 1000.0);
        }
    }
}

/// V9: in crossed fields without force Vay and Higuera-Cary keep the course, Boris does not.
#[test]
fn crossed_fields_without_force() {
    let gamma: f64 = 20.0;
    let u_y = (gamma * gamma - 1.0).sqrt();
    let v = u_y / gamma;
    for (pusher, stays) in [(Pusher::Boris, false), (Pusher::Vay, true), (Pusher::HigueraCary, true)] {
        let fields = [-v * 10.0, 0.0, 0.0, 0.0, 0.0, 10.0];
        let (s, mut stages) = lone([0.0, u_y, 0.0], pusher, 1.0, fields, Precision::F64);
        let mut furthest = 0.0_f64;
        for k in 0..100 {
            run(&s, &mut *stages, k, 1);
            let p = stages.particles(0).unwrap();
            furthest = furthest.max((f64::from(p.i[0]) + p.s[0] - 8.1).abs() * s.grid.h[0]);
        }
        assert_eq!(furthest / 100.0 < 1e-6, stays, "{pusher:?}: {furthest:e}");
    }
}

/// V13: nothing is lost, and what walls give and take closes the balance.
#[test]
fn the_ledger_closes() {
    for side in [ParticleSide::Reflect, ParticleSide::Thermal, ParticleSide::Absorb] {
        let cells = [30, 26];
        let mut s = setup(cells);
        // A plasma so thin that its fields hold no energy worth counting.
        (s.species, s.expected) = (vec![electrons(8)], vec![8 * 30 * 26]);
        s.species[0].weight = 1e-9;
        for axis in 0..2 {
            walls(&mut s, axis, FieldSide::Pec, side);
        }
        let mut stages = start(&s, &[thermal(cells, 8, 0.3, 6)], 1);
        run(&s, &mut *stages, 0, 100);
        let (e, l) = (stages.energies().unwrap(), stages.ledger().unwrap()[0]);
        assert_eq!(l.injected, 8 * 30 * 26);
        assert_eq!(e.count[0] + l.removed, l.injected, "{side:?}");
        assert_eq!(l.removed > 1000, side == ParticleSide::Absorb, "{side:?}: {}", l.removed);
        // A step measures before the walls act, so the next one tells what these left.
        run(&s, &mut *stages, 100, 1);
        let kinetic = stages.energies().unwrap().kinetic[0];
        let balance = l.energy_in - l.energy_out;
        assert!((kinetic / balance - 1.0).abs() < 1e-5, "{side:?}: {kinetic:e} {balance:e}");
        if side == ParticleSide::Absorb {
            let lost = -1e-9 * s.grid.cell_volume() * l.removed as f64;
            assert!((l.charge_out / lost - 1.0).abs() < 1e-12, "{} {lost}", l.charge_out);
        }
    }
}

/// A reflecting wall turns y as well as x (a peer's y walls did nothing), and a thermal one sends back the flux of its temperature.
#[test]
fn walls_turn_both_axes() {
    for axis in 0..2 {
        for (cell, u, inward) in [(0, -0.5, 1.0), (19, 0.5, -1.0)] {
            for side in [ParticleSide::Reflect, ParticleSide::Thermal] {
                let mut s = setup([20, 20]);
                (s.species, s.expected) = (vec![electrons(1)], vec![1]);
                (s.species[0].weight, s.species[0].wall_thermal) = (1e-12, [[0.2; 2]; 2]);
                walls(&mut s, axis, FieldSide::Pec, side);
                let n = 4000;
                // Alike in everything but their tags: thermal walls draw by the particle.
                s.species[0].tagged = true;
                let tag = (0..n as u64).collect();
                let mut p = Particles { tag, i: vec![7; n], j: vec![7; n], s: vec![0.25; n], t: vec![0.25; n], ..Particles::default() };
                p.u = std::array::from_fn(|c| vec![if c == axis { u } else { 0.0 }; n]);
                (if axis == 0 { &mut p.i } else { &mut p.j }).fill(cell);
                let toward = if u < 0.0 { -0.4 } else { 0.4 };
                (if axis == 0 { &mut p.s } else { &mut p.t }).fill(toward);
                let mut stages = start(&s, &[p], 1);
                run(&s, &mut *stages, 0, 1);
                let q = stages.particles(0).unwrap();
                assert!(q.u[axis].iter().all(|u| u * inward > 0.0), "{axis} {side:?}");
                // The mirror image of the straight flight.
                let flight = 0.07 / 0.1 * 0.5 / f64::hypot(1.0, 0.5);
                let offset = if axis == 0 { q.s[0] } else { q.t[0] };
                assert!((offset - inward * (flight - 0.1 - 0.5)).abs() < 1e-6, "{axis} {side:?} {offset}");
                if side == ParticleSide::Thermal {
                    // Mean of the flux: u_th sqrt(pi / 2); its standard deviation is u_th sqrt(2 - pi / 2). Four of it.
                    let mean = q.u[axis].iter().sum::<f64>() * inward / n as f64;
                    let sigma = 0.2 * (2.0 - std::f64::consts::FRAC_PI_2).sqrt() / (n as f64).sqrt();
                    assert!((mean - 0.2 * std::f64::consts::FRAC_PI_2.sqrt()).abs() < 4.0 * sigma, "{axis}: {mean}");
                    // Along the wall, in the plane and out of it: Gaussian.
                    for c in [1 - axis, 2] {
                        let square: f64 = q.u[c].iter().map(|u| u * u).sum::<f64>() / n as f64;
                        assert!((square / 0.04 - 1.0).abs() < 4.0 * (2.0 / n as f64).sqrt(), "{axis} {c}: {square}");
                    }
                }
            }
        }
    }
}

/// A window that moves counts what it leaves behind, and keeps every other particle where it is in the laboratory.
#[test]
fn the_window_loses_only_its_last_column() {
    // With room for nothing as well: a peer lost those that stayed when its memory had to grow in a run with a window.
    for (cells, room) in [([37, 11], 1), ([16, 16], 1), ([5, 3], 1), ([37, 11], 0), ([16, 16], 0)] {
        let mut s = setup(cells);
        let n = 4 * cells[0] * cells[1];
        (s.species, s.expected) = (vec![electrons(4)], vec![n * room]);
        s.species[0].tagged = true;
        let mut p = thermal(cells, 4, 0.1, 8);
        p.tag = (0..n as u64).collect();
        let mut stages = start(&s, std::slice::from_ref(&p), 2);
        let mut fresh = thermal([1, cells[1]], 2, 0.1, 9);
        fresh.i.fill(cells[0] as u32 - 1);
        fresh.tag = (0..fresh.len() as u64).map(|k| 1_000_000 + k).collect();
        stages.shift(std::slice::from_ref(&fresh), &[], &mut zellige_engine::profile::Profiler::off()).unwrap();
        let q = stages.particles(0).unwrap();
        assert_eq!(q.len(), n - 4 * cells[1] + 2 * cells[1]);
        for k in 0..q.len() {
            if q.tag[k] < 1_000_000 {
                let old = q.tag[k] as usize;
                assert_eq!((q.i[k] + 1, q.j[k]), (p.i[old], p.j[old]));
            } else {
                assert_eq!(q.i[k] as usize, cells[0] - 1);
            }
        }
        let l = stages.ledger().unwrap()[0];
        assert_eq!((l.removed, l.injected), (4 * cells[1] as u64, (n + fresh.len()) as u64));
    }
}

/// Particles that are not in the domain, not numbers, or of uneven columns are refused by name, and nothing goes in.
#[test]
fn wrong_particles_are_refused() {
    let mut s = setup([8, 8]);
    (s.species, s.expected) = (vec![electrons(1)], vec![64]);
    let mut stages = start(&s, &[], 1);
    let good = thermal([8, 8], 1, 0.1, 1);
    // Each component by itself: a peer looked at the same one three times.
    let spoil: [fn(&mut Particles); 9] = [
        |p| p.i[3] = 8,
        |p| p.j[63] = 8,
        |p| p.s[3] = 0.6,
        |p| p.u[0][3] = f64::NAN,
        |p| p.u[1][3] = f64::INFINITY,
        |p| p.u[2][3] = f64::NAN,
        |p| p.t[3] = f64::NAN,
        |p| p.weight = vec![2.0; 64],
        |p| p.t.truncate(63),
    ];
    for change in spoil {
        let mut p = good.clone();
        change(&mut p);
        let message = stages.inject(0, &p).unwrap_err().to_string();
        assert!(message.contains("electrons"), "{message}");
    }
    assert!(stages.particles(0).unwrap().is_empty());
    assert_eq!(stages.component(Component::Ex).unwrap().len(), s.grid.len());
}
