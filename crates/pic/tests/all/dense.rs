//! Targets so dense that their tiles are cut into bands for several threads, and walls whose random numbers must not tell how.

use crate::common::{apart, electrons, run, setup, start, thermal, walls};
use zellige_pic::grid::{FieldSide, ParticleSide};
use zellige_pic::particles::Particles;
use zellige_pic::stages::{Component, Precision, Setup};

/// More than one task advances in any case (`stages::BAND`).
const FULL: usize = 1 << 15;

/// `n` tagged particles in the first cells of the domain, `cells` of them.
fn dense(cells: [usize; 2], n: usize, u_th: f64) -> Particles {
    let mut p = thermal(cells, n / (cells[0] * cells[1]), u_th, 3);
    p.tag = (0..p.len() as u64).collect();
    p
}

/// Tag, cell, offsets and momentum of all particles, by tag.
fn by_tag(p: &Particles) -> Vec<(u64, [u32; 2], [f64; 5])> {
    let mut all: Vec<_> = (0..p.len()).map(|k| (p.tag[k], [p.i[k], p.j[k]], [p.s[k], p.t[k], p.u[0][k], p.u[1][k], p.u[2][k]])).collect();
    all.sort_unstable_by_key(|p| p.0);
    all
}

fn plasma(cells: [usize; 2], expected: usize) -> Setup {
    let mut s = setup(cells);
    (s.species, s.expected) = (vec![electrons(100)], vec![expected]);
    s.species[0].tagged = true;
    s
}

/// One thread and three give the same bits where a tile is cut; tiles that are not cut give the same plasma to rounding.
#[test]
fn a_dense_target_is_cut_and_stays_what_it_is() {
    for (cells, filled, order, precision) in [
        ([40, 20], [16, 14], 1, Precision::F32),
        ([40, 20], [12, 16], 2, Precision::F32),
        ([40, 20], [16, 14], 1, Precision::F64),
        ([24, 1], [16, 1], 1, Precision::F32),
    ] {
        let p = dense(filled, 5 * FULL / 2, 0.3);
        assert!(p.len() > 2 * FULL);
        let mut s = plasma(cells, p.len());
        (s.order, s.precision) = (order, precision);
        let eps = if precision == Precision::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let [mut one, mut three] = [1, 3].map(|threads| start(&s, std::slice::from_ref(&p), threads));
        // Four rows, or cells, of 5000 particles each: below the limit.
        s.tile = Some(if cells[1] == 1 { [4, 1] } else { [5, 4] });
        let mut small = start(&s, std::slice::from_ref(&p), 2);
        run(&s, &mut *one, 0, 5);
        run(&s, &mut *three, 0, 5);
        run(&s, &mut *small, 0, 5);
        assert_eq!(one.particles(0).unwrap(), three.particles(0).unwrap());
        assert_eq!(one.energies().unwrap(), three.energies().unwrap());
        for component in Component::ALL {
            let [f, g, h] = [&mut one, &mut three, &mut small].map(|s| s.component(component).unwrap());
            assert_eq!(f, g);
            let largest = f.iter().fold(1.0_f64, |m, v| m.max(v.abs()));
            // Sums of some hundred particles' currents at a node, rounded at each step: sqrt(1000) eps on the largest partial sum, five
            // times; the bound leaves a factor of ten.
            assert!(apart(&f, &h) < 1500.0 * eps * largest, "{cells:?} {component:?}: {:e} of {largest}", apart(&f, &h));
        }
        let (x, y) = (one.energies().unwrap(), small.energies().unwrap());
        assert_eq!(x.count, y.count);
        assert!((x.kinetic[0] / y.kinetic[0] - 1.0).abs() < 100.0 * eps);
        assert_eq!(by_tag(&one.particles(0).unwrap()).len(), p.len());
    }
}

/// Thermal walls draw by the particle that meets them: without fields, tiles, bands and threads do not change a bit.
#[test]
fn thermal_walls_do_not_know_tiles() {
    for order in [1, 2] {
        let p = dense([30, 26], 3 * FULL / 2, 0.5);
        let mut s = plasma([30, 26], p.len());
        s.order = order;
        // So light that no momentum feels the fields.
        s.species[0].weight = 1e-30;
        walls(&mut s, 0, FieldSide::Pec, ParticleSide::Thermal);
        walls(&mut s, 1, FieldSide::Pec, ParticleSide::Thermal);
        let mut reference = None;
        // The last tile holds everything and is cut into bands.
        for (tile, threads) in [(None, 1), (Some([5, 3]), 2), (Some([7, 64]), 1), (Some([32, 32]), 3)] {
            s.tile = tile;
            let mut stages = start(&s, std::slice::from_ref(&p), threads);
            run(&s, &mut *stages, 0, 12);
            let ledger = stages.ledger().unwrap()[0];
            assert!(ledger.energy_in > 0.0 && ledger.removed == 0);
            let found = by_tag(&stages.particles(0).unwrap());
            let wanted = reference.get_or_insert_with(|| found.clone());
            assert!(*wanted == found, "order {order}: tiles of {tile:?}, {threads} threads");
        }
        // All draws are different: no two particles came out of the walls alike.
        let drawn = reference.unwrap();
        let mut momenta: Vec<_> = drawn.iter().zip(by_tag(&p)).filter(|(a, b)| a.2[4] != b.2[4]).map(|(a, _)| a.2[4].to_bits()).collect();
        let n = momenta.len();
        momenta.sort_unstable();
        momenta.dedup();
        // Single precision has about 2^24 values to draw from; of n(n-1)/2 pairs some agree by chance: n^2 / 2^25, doubled.
        assert!(n > 7_000 && (n - momenta.len()) as f64 <= 2.0 * (n as f64).powi(2) / f64::from(1 << 25) + 10.0, "{n} {}", momenta.len());
    }
}
