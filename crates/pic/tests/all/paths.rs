//! Rows in registers against one particle at a time, on every instruction set; and independence of threads.

use crate::common::{apart, electrons, run, setup, start, thermal, walls};
use zellige_engine::device::Cpu;
use zellige_pic::grid::{FieldSide, ParticleSide};
use zellige_pic::particles::{Particles, Pusher};
use zellige_pic::stages::cpu::{Isa, Path, with_path};
use zellige_pic::stages::{Component, Precision, Setup, Stages};

/// Particles by their tags.
fn sorted(p: &Particles) -> Vec<(u64, u32, u32, [f64; 5])> {
    let mut list: Vec<_> = (0..p.len()).map(|k| (p.tag[k], p.i[k], p.j[k], [p.s[k], p.t[k], p.u[0][k], p.u[1][k], p.u[2][k]])).collect();
    list.sort_unstable_by_key(|p| p.0);
    list
}

fn tagged(mut p: Particles, weighted: bool) -> Particles {
    p.tag = (0..p.len() as u64).collect();
    if weighted {
        p.weight = (0..p.len()).map(|k| 0.5 + (k % 7) as f64 / 7.0).collect();
    }
    p
}

/// Distance of two particles' positions in cells, on the torus or not.
fn distance(a: &(u64, u32, u32, [f64; 5]), b: &(u64, u32, u32, [f64; 5]), cells: [usize; 2]) -> f64 {
    let along = |i: u32, s: f64, j: u32, t: f64, n: usize| {
        let d = f64::from(i) + s - f64::from(j) - t;
        d.abs().min((d.abs() - n as f64).abs())
    };
    along(a.1, a.3[0], b.1, b.3[0], cells[0]).max(along(a.2, a.3[1], b.2, b.3[1], cells[1]))
}

/// State of the particles after five steps on one path.
fn stepped(setup: &Setup, particles: &Particles, path: Path) -> Box<dyn Stages> {
    let mut stages = with_path(setup, &Cpu::new(2).unwrap(), path).unwrap();
    stages.inject(0, particles).unwrap();
    run(setup, &mut *stages, 0, 5);
    stages
}

/// Five steps in rows of every instruction set and of one particle at a time: same particles and fields to the rounding of the
/// precision.
fn compare(what: &str, setup: &Setup, particles: &Particles) {
    let mut single = stepped(setup, particles, Path::Single);
    for isa in Isa::all() {
        agree(&format!("{isa:?} {what}"), setup, &mut *stepped(setup, particles, Path::Rows(isa)), &mut *single);
    }
}

fn agree<'a>(what: &str, setup: &Setup, rows: &'a mut dyn Stages, single: &'a mut dyn Stages) {
    let mut both = [rows, single];
    let eps = if setup.precision == Precision::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
    let [a, b] = [0, 1].map(|k| sorted(&both[k].particles(0).unwrap()));
    assert_eq!(a.len(), b.len(), "{what}");
    let fast = a.iter().flat_map(|p| &p.3[2..]).fold(1.0_f64, |m, u| m.max(u.abs()));
    for (p, q) in a.iter().zip(&b) {
        // Five steps of some ten roundings each, of numbers of order one.
        assert!(p.0 == q.0 && distance(p, q, setup.grid.cells) < 50.0 * eps, "{what}: {p:?} {q:?}");
        for c in 2..5 {
            assert!((p.3[c] - q.3[c]).abs() < 50.0 * eps * fast, "{what}: {p:?} {q:?}");
        }
    }
    for component in Component::ALL {
        let (f, g) = (both[0].component(component).unwrap(), both[1].component(component).unwrap());
        // J of order 1 is a sum of tens of terms; E and B collect dt J.
        assert!(apart(&f, &g) < 100.0 * eps, "{what} {component:?}: {:e}", apart(&f, &g));
    }
    let (x, y) = (both[0].energies().unwrap(), both[1].energies().unwrap());
    let momentum = x.momentum[0].iter().zip(y.momentum[0]).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(x.kinetic[0] > 0.0 && (x.kinetic[0] / y.kinetic[0] - 1.0).abs() < 20.0 * eps, "{what}: {x:?} {y:?}");
    assert!(momentum < 1e3 * eps * x.kinetic[0].max(1.0), "{what}: {x:?} {y:?}");
    assert_eq!(x.count, y.count);
}

#[test]
fn rows_are_what_single_particles_are() {
    let pushers = [(Pusher::Boris, false), (Pusher::Boris, true), (Pusher::Vay, false), (Pusher::HigueraCary, true)];
    let grids = [([33, 21], None), ([16, 16], Some([5, 3])), ([7, 40], None), ([50, 1], None)];
    for (p, precision) in [Precision::F32, Precision::F64].into_iter().enumerate() {
        for (q, (pusher, weighted)) in pushers.into_iter().enumerate() {
            // Each pusher in each precision on one of the grids, each grid in each precision with one of the pushers: how rows are cut and what is
            // done in them are apart.
            let (cells, tile) = grids[(2 * p + q) % 4];
            for (order, u_th) in [(1, 0.05), (1, 3.0), (2, if weighted { 3.0 } else { 0.2 })] {
                let mut s = setup(cells);
                (s.order, s.precision, s.tile) = (order, precision, tile);
                let mut species = electrons(9);
                (species.pusher, species.weighted, species.tagged) = (pusher, weighted, true);
                s.species = vec![species];
                s.expected = vec![9 * cells[0] * cells[1]];
                let p = tagged(thermal(cells, 9, u_th, 5), weighted);
                compare(&format!("{precision:?} {order} {pusher:?} {weighted} {cells:?} {tile:?} {u_th}"), &s, &p);
            }
        }
    }
}

#[test]
fn walls_are_the_same_on_both_paths() {
    for order in [1, 2] {
        for side in [ParticleSide::Reflect, ParticleSide::Absorb] {
            let mut s = setup([20, 24]);
            s.order = order;
            s.species = vec![electrons(16)];
            s.species[0].tagged = true;
            s.expected = vec![16 * 20 * 24];
            walls(&mut s, 0, FieldSide::Pec, side);
            walls(&mut s, 1, FieldSide::Pec, side);
            compare(&format!("{order} {side:?}"), &s, &tagged(thermal([20, 24], 16, 1.0, 9), false));
        }
    }
}

/// All particles in one cell, then in flight: rows and blocks of any length, growth on the way.
#[test]
fn a_dense_cell_flies_apart() {
    for order in [1, 2] {
        let mut s = setup([40, 40]);
        s.order = order;
        s.species = vec![electrons(16)];
        (s.species[0].tagged, s.species[0].weight, s.expected) = (true, 1e-5, vec![10]);
        let mut p = tagged(thermal([1, 1], 5000, 1.0, 9), false);
        (p.i, p.j) = (vec![16; 5000], vec![15; 5000]);
        compare(&format!("{order}"), &s, &p);
    }
}

/// Bitwise identical results on one thread and on three, thermal walls and all.
#[test]
fn threads_do_not_change_a_bit() {
    for order in [1, 2] {
        for precision in [Precision::F32, Precision::F64] {
            let cells = [70, 50];
            let mut s = setup(cells);
            (s.order, s.precision, s.species, s.expected) = (order, precision, vec![electrons(8)], vec![8 * 70 * 50]);
            s.species[0].tagged = true;
            walls(&mut s, 1, FieldSide::Pec, ParticleSide::Thermal);
            let p = tagged(thermal(cells, 8, 0.5, 2), false);
            let [mut one, mut three] = [1, 3].map(|threads| start(&s, std::slice::from_ref(&p), threads));
            run(&s, &mut *one, 0, 10);
            run(&s, &mut *three, 0, 10);
            assert_eq!(one.particles(0).unwrap(), three.particles(0).unwrap());
            assert_eq!(one.energies().unwrap(), three.energies().unwrap());
            for component in Component::ALL {
                assert_eq!(one.component(component).unwrap(), three.component(component).unwrap());
            }
            assert!(one.ledger().unwrap()[0].energy_in > 0.0, "no particle met the walls");
        }
    }
}

/// Particles that are taken out and put in again lie as they did: a restart is bitwise identical.
#[test]
fn a_restart_goes_on_to_the_bit() {
    let cells = [40, 30];
    let mut s = setup(cells);
    (s.species, s.expected) = (vec![electrons(8)], vec![8 * 40 * 30]);
    walls(&mut s, 0, FieldSide::Pmc, ParticleSide::Absorb);
    let mut a = start(&s, &[thermal(cells, 8, 0.5, 2)], 2);
    run(&s, &mut *a, 0, 20);
    let mut b = start(&s, &[], 1);
    b.replace(0, &a.particles(0).unwrap()).unwrap();
    for component in Component::ALL {
        b.set_component(component, &a.component(component).unwrap()).unwrap();
    }
    b.set_auxiliary_state(&a.auxiliary_state().unwrap()).unwrap();
    run(&s, &mut *a, 20, 20);
    run(&s, &mut *b, 20, 20);
    assert_eq!(a.particles(0).unwrap(), b.particles(0).unwrap());
    assert_eq!((a.energies().unwrap(), a.ledger().unwrap()), (b.energies().unwrap(), b.ledger().unwrap()));
    assert!(a.ledger().unwrap()[0].removed > 0);
}

/// Portions are all particles in the order in which they are told at once, however many threads there are.
#[test]
fn portions_are_all_particles_in_their_order() {
    let given = Setup { species: vec![electrons(64)], expected: vec![64 * 48 * 64], ..setup([64, 48]) };
    for threads in [1, 3] {
        let mut stages = start(&given, &[thermal([64, 48], 64, 0.1, 3)], threads);
        let (mut portions, mut told) = (0, Vec::new());
        let join = &mut |found: Vec<f64>| {
            portions += 1;
            told.extend(found);
        };
        stages.visit(0, &|p| p.s, join).unwrap();
        assert!(portions > 1 && told == stages.particles(0).unwrap().s, "{portions} portions, {} particles", told.len());
    }
}
