//! Energy, momentum and counts: V6, V8, V9 and V13 of the verification list, through the stages.

use crate::common::{at_wall, electrons, run, setup, start, thermal, turned, walls};
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

/// A reflecting wall turns y as well as x (a peer's y walls did nothing), and a thermal one sends back the flux of its temperature:
/// in either precision, and whether tags or positions alone tell particles apart.
#[test]
fn walls_turn_both_axes() {
    let kinds = [Precision::F32, Precision::F64].map(|p| [(p, true), (p, false)]).concat();
    for ((axis, end), (precision, tagged)) in [(0, 0), (0, 1), (1, 0), (1, 1)].into_iter().flat_map(|w| kinds.iter().map(move |k| (w, *k)))
    {
        for side in [ParticleSide::Reflect, ParticleSide::Thermal] {
            let (mut s, mut p) = at_wall(axis, end, side);
            (s.precision, s.species[0].tagged) = (precision, tagged);
            if !tagged {
                p.tag.clear();
            }
            let mut stages = start(&s, &[p], 1);
            run(&s, &mut *stages, 0, 1);
            // Eight roundings of numbers below 1 in a push and a move.
            turned(&s, axis, end, &stages.particles(0).unwrap(), 1e-6);
        }
    }
}

/// A window that moves counts what it leaves behind, and keeps every other particle where it is in the laboratory: after one cell,
/// and after a way on which all tiles were left behind.
#[test]
fn the_window_loses_only_what_it_leaves_behind() {
    // With room for nothing as well: a peer lost those that stayed when its memory had to grow in a run with a window.
    let cases = [([37, 11], 1), ([16, 16], 1), ([5, 3], 1), ([37, 11], 0), ([16, 16], 0)];
    for ((cells, room), way) in cases.into_iter().flat_map(|c| [(c, 1), (c, 25), (c, 60)]) {
        let mut s = setup(cells);
        let n = 4 * cells[0] * cells[1];
        (s.species, s.expected, s.window) = (vec![electrons(4)], vec![n * room], true);
        s.species[0].tagged = true;
        let mut p = thermal(cells, 4, 0.1, 8);
        p.tag = (0..n as u64).collect();
        let mut stages = start(&s, std::slice::from_ref(&p), 2);
        // The cell that each particle is in, counted from where the window began.
        let mut home: Vec<[usize; 2]> = (0..n).map(|k| [p.i[k] as usize, p.j[k] as usize]).collect();
        for moved in 1..=way {
            let mut fresh = thermal([1, cells[1]], 2, 0.1, 9);
            fresh.i.fill(cells[0] as u32 - 1);
            fresh.tag = (home.len() as u64..).take(fresh.len()).collect();
            home.extend(fresh.j.iter().map(|j| [cells[0] - 1 + moved, *j as usize]));
            stages.shift(&[fresh], &[], &mut zellige_engine::profile::Profiler::off()).unwrap();
        }
        let q = stages.particles(0).unwrap();
        let mut found: Vec<_> = (0..q.len()).map(|k| (q.tag[k], [q.i[k] as usize + way, q.j[k] as usize])).collect();
        found.sort_unstable();
        let wanted: Vec<_> = (0..).zip(home.iter().copied()).filter(|(_, at)| at[0] >= way).collect();
        assert!(found == wanted, "{cells:?}, {way} cells: {} particles, {} expected", found.len(), wanted.len());
        let l = stages.ledger().unwrap()[0];
        assert_eq!((l.removed, l.injected), ((home.len() - wanted.len()) as u64, home.len() as u64));
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
