//! Diagnostics on a GPU are those of the CPU: samples, particles, the charge check and the work of the fields.

use crate::common::pairs::{pair, tagged};
use crate::common::{electrons, run, setup, thermal, walls};
use zellige_engine::profile::Profiler;
use zellige_engine::testing;
use zellige_pic::gauss::Gauss;
use zellige_pic::grid::{FieldSide, ParticleSide};
use zellige_pic::particles::Species;
use zellige_pic::stages::{Bins, Component, Precision, Smoothing};
use zellige_pic::step::step;

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
