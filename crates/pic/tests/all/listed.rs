//! Cases of the verification list (V1 to V13, see the book's page on it) and defects found in other codes that no other file holds.

use serde_json::{Value, json};
use zellige_engine::record::Record;
use zellige_engine::rng::Philox;
use zellige_engine::sim::Solver;
use zellige_pic::grid::{FieldSide, ParticleSide};
use zellige_pic::particles::Particles;
use zellige_pic::physics::{Vec3, boris, higuera_cary, vay};
use zellige_pic::stages::{Precision, Stages};

use crate::common::{electrons, run, setup, start, thermal, walls};
use crate::physics::finished;

/// V3. Light in a cold plasma: `w^2 = 1 + k^2`. Shape and lattice lower it by some `(k h)^2/10 <= 0.4 %`; the list allows 0.5 %.
#[test]
fn a_cold_plasma_slows_light_down() {
    for (cells, size, mode, component, wave) in [
        (json!([64]), json!([6.4]), json!([1]), "ez", "1e-3*cos(2*pi*x/lx)"),
        (json!([64]), json!([6.4]), json!([2]), "ey", "1e-3*cos(4*pi*x/lx)"),
        (json!([4, 48]), json!([0.4, 4.8]), json!([0, 1]), "ez", "1e-3*cos(2*pi*y/ly)"),
        (json!([4, 48]), json!([0.4, 4.8]), json!([0, 1]), "ex", "1e-3*cos(2*pi*y/ly)"),
    ] {
        let k = match (&mode[0], mode.get(1)) {
            (m, None) => format!("2*pi*{m}/lx"),
            (_, Some(n)) => format!("2*pi*{n}/ly"),
        };
        let mut table = json!({
            "dt": 0.06, "t_end": 60.0,
            "grid": { "cells": cells, "size": size },
            "species": [{ "name": "electrons", "particles_per_cell": 4 }],
            "initial": { "fields": {} },
            "diagnostics": { "mode": [{
                "name": "light", "component": component, "mode": mode, "measure": "frequency", "fit": [0, 60],
                "expected": format!("sqrt(1 + ({k})^2)"), "tolerance": 0.005
            }] }
        });
        table["initial"]["fields"][component] = json!(wave);
        finished(table);
    }
}

/// V4, the other rows of the list: two filaments and eight.
#[test]
fn the_other_filaments_grow_at_their_rates() {
    for (mode, fit) in [(2, [14.0, 22.0]), (8, [10.0, 17.0])] {
        let u = 0.6_f64;
        let beam = |name: &str, sign: f64| {
            json!({ "name": name, "particles_per_cell": [4, 2], "density": 0.5,
                "momentum": { "drift": [format!("{}*sin(2*pi*{mode}*x/lx)", sign * 1e-5), 0, sign * u] } })
        };
        let (k, g) = (2.0 * std::f64::consts::PI * f64::from(mode) / 12.8, (1.0 + u * u).sqrt());
        let (sum, drive) = (k * k + g.powi(-3), k * k * u * u / g.powi(3));
        let expected = (0.5 * ((sum * sum + 4.0 * drive).sqrt() - sum)).sqrt();
        finished(json!({
            "dt": 0.07, "t_end": fit[1],
            "grid": { "cells": [128, 4], "size": [12.8, 0.4] },
            "species": [beam("up", 1.0), beam("down", -1.0)],
            "diagnostics": { "mode": [{
                "name": "filaments", "component": "by", "mode": [mode, 0], "fit": fit, "expected": expected
            }] }
        }));
    }
}

/// V13. A periodic plasma of electrons and positrons stays where it is: the shapes' aliases exert forces of a plasma on itself, but
/// move it by little of what chance gave it at the start, `u_th / sqrt(N)` a component: by 0.06 of it with linear shapes and by
/// 0.02 with quadratic ones, twice which is the bound. (Electrons alone swing against the background.)
#[test]
fn a_plasma_does_not_push_itself() {
    for (order, part) in [(1, 0.12), (2, 0.04)] {
        let (cells, ppc, u_th) = ([16, 16], 16, 0.1);
        let n = cells[0] * cells[1] * ppc;
        let mut s = setup(cells);
        (s.order, s.precision, s.species, s.expected) = (order, Precision::F64, vec![electrons(ppc); 2], vec![n; 2]);
        s.species[1].charge = 1.0;
        let mut stages = start(&s, &[thermal(cells, ppc, u_th, 3), thermal(cells, ppc, u_th, 4)], 1);
        let mean = |stages: &mut dyn Stages, c: usize| {
            let momentum = stages.energies().unwrap().momentum;
            (momentum[0][c] + momentum[1][c]) / (s.species[0].macro_mass() * s.grid.cell_volume() * 2.0 * n as f64)
        };
        run(&s, &mut *stages, 0, 1);
        let first = [0, 1, 2].map(|c| mean(&mut *stages, c));
        run(&s, &mut *stages, 1, 200);
        let change = [0, 1, 2].map(|c| (mean(&mut *stages, c) - first[c]).abs());
        let chance = u_th / (2.0 * n as f64).sqrt();
        assert!(first.iter().any(|u| u.abs() > 0.1 * chance), "{first:?}");
        assert!(change.iter().all(|c| *c < part * chance), "order {order}: {change:?} of {chance:e}");
        println!("order {order}: the mean momentum changed by {change:?} in 200 steps, chance gave {chance:.1e}");
    }
}

/// V13. Walls that reflect keep every component of every momentum but its sign, bit for bit.
#[test]
fn reflecting_walls_keep_speeds() {
    for order in [1, 2] {
        let cells = [20, 14];
        let mut s = setup(cells);
        (s.order, s.species, s.expected) = (order, vec![electrons(16)], vec![16 * 280]);
        // So light that no momentum feels the fields.
        s.species[0].weight = 1e-30;
        (0..2).for_each(|axis| walls(&mut s, axis, FieldSide::Pec, ParticleSide::Reflect));
        let p = thermal(cells, 16, 0.5, 11);
        let mut stages = start(&s, std::slice::from_ref(&p), 2);
        run(&s, &mut *stages, 0, 100);
        let q = stages.particles(0).unwrap();
        for c in 0..3 {
            let sizes = |p: &Particles| {
                let mut sizes: Vec<u32> = p.u[c].iter().map(|u| (*u as f32).abs().to_bits()).collect();
                sizes.sort_unstable();
                sizes
            };
            assert!(sizes(&p) == sizes(&q), "order {order}, component {c}");
        }
    }
}

/// A peer's rotation was not orthogonal as soon as B had a y component: here three perpendicular momenta stay perpendicular and of
/// their length, whatever B, and every pusher keeps lengths.
#[test]
fn rotations_are_rotations() {
    let random = Philox::new(3, 4);
    let dot = |a: Vec3<f64>, b: Vec3<f64>| a.x * b.x + a.y * b.y + a.z * b.z;
    let zero = Vec3 { x: 0.0, y: 0.0, z: 0.0 };
    for k in 0..1000 {
        let ([x, y], [z, size]) = (random.normals(0, k), random.normals(1, k));
        let b = Vec3 { x: x * size, y: y * size, z: z * size };
        let axes = [Vec3 { x: 2.0, ..zero }, Vec3 { y: 2.0, ..zero }, Vec3 { z: 2.0, ..zero }];
        let turned = axes.map(|u| boris(u, zero, b));
        for m in 0..3 {
            for n in 0..=m {
                let expected = if m == n { 4.0 } else { 0.0 };
                // Some thirty roundings of numbers of up to 4.
                assert!((dot(turned[m], turned[n]) - expected).abs() < 1e-13, "B = {b:?}: {m} {n}");
            }
            for push in [vay::<f64>, higuera_cary::<f64>] {
                let u = push(axes[m], zero, b);
                assert!((dot(u, u) / 4.0 - 1.0).abs() < 1e-12, "B = {b:?}: {u:?}");
            }
        }
    }
}

/// Particles on borders, next to them by a rounding unit, and about to cross by next to nothing: a peer's periodic sides lost some
/// in single precision.
#[test]
fn nothing_falls_through_a_border() {
    for (order, side) in [(1, ParticleSide::Periodic), (2, ParticleSide::Periodic), (1, ParticleSide::Reflect), (2, ParticleSide::Reflect)]
    {
        for precision in [Precision::F32, Precision::F64] {
            let cells = [17, 18];
            let mut s = setup(cells);
            (s.order, s.precision, s.species) = (order, precision, vec![electrons(1)]);
            (s.species[0].weight, s.species[0].tagged) = (1e-30, true);
            if side == ParticleSide::Reflect {
                (0..2).for_each(|axis| walls(&mut s, axis, FieldSide::Pec, side));
            }
            let offsets = [-0.5, -0.5 + 6e-8, -0.49999, 0.0, 1e-30, 0.49999, 0.5 - 3e-8, 0.5];
            let speeds = [0.0, 1e-30, -1e-30, 1e-9, -1e-9, 1e-7, -1e-7, 0.3, -0.3, 50.0, -50.0];
            let mut p = Particles::default();
            for (i, j) in [(0, 0), (16, 17), (0, 17), (15, 0), (16, 1), (7, 7)] {
                // Every position and speed along x with a quarter of those along y, and the other way round: 4 and 7 have no divisor in
                // common.
                let along: Vec<_> = offsets.iter().flat_map(|s| speeds.map(|u| (*s, u))).collect();
                for (a, (s, ux)) in along.iter().enumerate() {
                    for (t, uy) in along.iter().skip(7 * a % 4).step_by(4) {
                        p.i.push(i);
                        p.j.push(j);
                        p.s.push(*s);
                        p.t.push(*t);
                        p.u.iter_mut().zip([*ux, *uy, 0.0]).for_each(|(c, u)| c.push(u));
                        p.tag.push(p.tag.len() as u64);
                    }
                }
            }
            s.expected = vec![p.len()];
            let mut stages = start(&s, std::slice::from_ref(&p), 1);
            run(&s, &mut *stages, 0, 30);
            let q = stages.particles(0).unwrap();
            let mut tags = q.tag.clone();
            tags.sort_unstable();
            assert!(tags.iter().copied().eq(0..p.len() as u64), "order {order} {side:?} {precision:?}");
            for k in 0..q.len() {
                let inside = (q.i[k] as usize) < cells[0] && (q.j[k] as usize) < cells[1] && q.s[k].abs() <= 0.5 && q.t[k].abs() <= 0.5;
                assert!(inside, "order {order} {side:?} {precision:?}: ({}, {}) in ({}, {})", q.s[k], q.t[k], q.i[k], q.j[k]);
            }
        }
    }
}

/// A histogram's integral is the number of particles, and its axes are those of the box: a peer did not scale y by its own cell.
#[test]
fn histograms_are_to_scale() {
    let table = |cells: Value, size: Value, axes: Value, density: &str| {
        json!({
            "courant": 0.9, "steps": 1,
            "grid": { "cells": cells, "size": size },
            "species": [{ "name": "e", "particles_per_cell": 16, "density": density, "weighting": "equal", "mobile": false }],
            "diagnostics": { "phase_space": [{ "name": "h", "species": "e", "axes": axes }] }
        })
    };
    let bins = |table: Value| {
        let mut pic = finished(table);
        let record = pic.records().unwrap().into_iter().find(|r| r.name() == "h").expect("no histogram");
        let Record::Field(field) = record else { panic!("not a field") };
        (field.axes.clone(), (0..field.values.len()).map(|k| field.values.get(k)).collect::<Vec<_>>())
    };
    // Filled up to a quarter of y: lx there, nothing above.
    let (axes, values) = bins(table(json!([8, 40]), json!([4.0, 2.0]), json!([{ "value": "y", "bins": 20 }]), "if(y < ly/4, 1, 0)"));
    assert!((axes[0].origin, axes[0].len) == (0.0, 20) && (axes[0].spacing - 0.1).abs() < 1e-15);
    for (k, v) in values.iter().enumerate() {
        assert!((v - if k < 5 { 4.0 } else { 0.0 }).abs() < 1e-12, "bin {k}: {v}");
    }
    let (axes, values) = bins(table(json!([50]), json!([10.0]), json!([{ "value": "x", "bins": 25 }]), "if(x < lx/2, 1, 0)"));
    let integral: f64 = values.iter().sum::<f64>() * axes[0].spacing;
    assert!((integral - 5.0).abs() < 1e-12, "{integral}");
    let both = json!([{ "value": "x", "bins": 8 }, { "value": "y", "bins": 10 }]);
    let (axes, values) = bins(table(json!([8, 40]), json!([4.0, 2.0]), both, "1"));
    assert_eq!([axes[0].len, axes[1].len], [8, 10]);
    assert!(values.iter().all(|v| (v - 1.0).abs() < 1e-12), "{values:?}");
}

/// The drift of every cell is taken off in boxes higher than wide (a peer's rows had the length of the columns there, and it wrote
/// beyond its memory), and in wide ones.
#[test]
fn drifts_are_corrected_in_any_box() {
    for cells in [[4, 128], [128, 4], [5, 33]] {
        let pic = finished(json!({
            "courant": 0.9, "steps": 1, "precision": "f64",
            "grid": { "cells": cells, "size": [0.1 * cells[0] as f64, 0.1 * cells[1] as f64] },
            "species": [{ "name": "e", "particles_per_cell": 9, "positions": "random", "mobile": false,
                "momentum": { "drift": [0.1, -0.2, 0.3], "thermal": 0.05, "corrected": true } }]
        }));
        let mut pic = pic;
        let p = pic.plasma().stages.particles(0).unwrap();
        let mut sums = vec![[0.0; 3]; cells[0] * cells[1]];
        for k in 0..p.len() {
            let sum = &mut sums[p.j[k] as usize * cells[0] + p.i[k] as usize];
            (0..3).for_each(|c| sum[c] += p.u[c][k] / 9.0);
        }
        for sum in sums {
            assert!(sum.iter().zip([0.1, -0.2, 0.3]).all(|(a, b)| (a - b).abs() < 1e-14), "{cells:?}: {sum:?}");
        }
    }
}
