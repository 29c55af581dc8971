//! The current conserves charge to round-off: `div E - rho` does not change (V5 of the verification list), whatever the
//! pusher, order, tile, precision and sides.

use crate::common::{apart, electrons, residual, run, setup, start, thermal, walls};
use zellige_pic::grid::{FieldSide, ParticleSide};
use zellige_pic::particles::Pusher;
use zellige_pic::stages::{Precision, Setup, Smoothing};

/// Steps of a case.
const STEPS: u64 = 25;

/// Largest change of `div E - rho` in [`STEPS`] steps of a warm plasma, in `n_0`.
fn change(setup: &mut Setup, u_th: f64) -> f64 {
    let ppc = 8;
    if setup.species.is_empty() {
        setup.species = vec![electrons(ppc)];
    }
    let cells = setup.grid.cells;
    setup.expected = vec![cells[0] * cells[1] * ppc; setup.species.len()];
    let particles: Vec<_> = (0..setup.species.len())
        .map(|k| {
            let mut p = thermal(cells, ppc, u_th, 3 + k as u64);
            if setup.species[k].weighted {
                // From a millionth to 1.5, as a steep density has them.
                p.weight = (0..p.len()).map(|n| 1e-6 + ((n * 7919) % 1000) as f64 * 1.5e-3).collect();
            }
            p
        })
        .collect();
    // Bits do not depend on threads (`paths`); two only where tiles are cut on purpose, as waiting for each other costs more than a step.
    let mut stages = start(setup, &particles, if setup.tile.is_some() { 2 } else { 1 });
    let before = residual(setup, &mut *stages);
    run(setup, &mut *stages, 0, STEPS);
    apart(&before, &residual(setup, &mut *stages))
}

/// Rounding of one number of order 1 a step (E and J), as a random walk, and a factor 8 for the divergence by `h` and the
/// largest of thousands of nodes; `E` reaches 0.1 and is divided by `h = 0.1`.
fn bound(precision: Precision) -> f64 {
    let eps = if precision == Precision::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
    8.0 * eps * (STEPS as f64).sqrt()
}

fn hold(what: &str, setup: &mut Setup, u_th: f64) {
    let found = change(setup, u_th);
    assert!(found > 0.0, "{what}: nothing moved");
    assert!(found < bound(setup.precision), "{what}: {found:e}, bound {:e}", bound(setup.precision));
}

#[test]
fn every_pusher_order_and_precision() {
    for pusher in [Pusher::Boris, Pusher::Vay, Pusher::HigueraCary] {
        for order in [1, 2] {
            for precision in [Precision::F32, Precision::F64] {
                let mut s = setup([24, 20]);
                (s.order, s.precision) = (order, precision);
                s.species = vec![electrons(8)];
                s.species[0].pusher = pusher;
                hold(&format!("{pusher:?} {order} {precision:?}"), &mut s, 0.3);
            }
        }
    }
}

/// Tiles that divide nothing, tiles of one cell, tiles larger than the domain; domains of any size, tall and flat ones.
#[test]
fn every_tile_and_grid() {
    for (c, cells) in [[17, 5], [5, 33], [1, 9], [40, 1], [3, 2], [16, 16]].into_iter().enumerate() {
        for (t, tile) in [None, Some([1, 1]), Some([3, 2]), Some([8, 8]), Some([7, 64]), Some([64, 64])].into_iter().enumerate() {
            // Both orders on every grid and in every tile, by turns: what is cut does not ask which particle is in it.
            let order = 1 + (c + t) as u32 % 2;
            let mut s = setup(cells);
            (s.order, s.tile, s.precision) = (order, tile, Precision::F64);
            hold(&format!("{cells:?} {tile:?} {order}"), &mut s, 0.3);
        }
    }
}

/// Every pair of sides, at speeds at which a particle meets a wall in most of its flights.
#[test]
fn every_side() {
    let kinds = [
        (FieldSide::Pec, ParticleSide::Reflect),
        (FieldSide::Pec, ParticleSide::Absorb),
        (FieldSide::Pmc, ParticleSide::Thermal),
        (FieldSide::Pmc, ParticleSide::Reflect),
        (FieldSide::Absorbing, ParticleSide::Absorb),
        (FieldSide::Absorbing, ParticleSide::Reflect),
    ];
    for (k, (fields, particles)) in kinds.into_iter().enumerate() {
        for (a, axes) in [[true, false], [false, true], [true, true]].into_iter().enumerate() {
            for order in [1, 2] {
                // Walls in both directions have all that walls in one have: those with the orders by turns.
                if a < 2 && (k + a) % 2 != order as usize - 1 {
                    continue;
                }
                let precisions = if axes == [true, true] { &[Precision::F32, Precision::F64][..] } else { &[Precision::F64] };
                for &precision in precisions {
                    let mut s = setup([20, 24]);
                    (s.order, s.precision) = (order, precision);
                    for axis in (0..2).filter(|a| axes[*a]) {
                        walls(&mut s, axis, fields, particles);
                    }
                    hold(&format!("{fields:?} {particles:?} {axes:?} {order} {precision:?}"), &mut s, 2.0);
                    s.smoothing = [Smoothing { passes: 2, compensated: true }; 2];
                    hold(&format!("{fields:?} {particles:?} {axes:?} {order} {precision:?}, filtered"), &mut s, 2.0);
                }
            }
        }
    }
}

/// A filtered current belongs to the filtered charge.
#[test]
fn with_a_filter() {
    for order in [1, 2] {
        let mut s = setup([24, 20]);
        (s.order, s.precision) = (order, Precision::F64);
        s.smoothing = [Smoothing { passes: 2, compensated: true }; 2];
        hold(&format!("order {order}"), &mut s, 0.3);
    }
}

/// Positrons and weighted electrons together.
#[test]
fn with_weights_and_species() {
    for order in [1, 2] {
        let mut s = setup([24, 20]);
        (s.precision, s.order) = (Precision::F64, order);
        let mut positrons = electrons(8);
        (positrons.charge, positrons.mass) = (1.0, 2.0);
        s.species = vec![electrons(8), positrons];
        s.species.iter_mut().for_each(|species| species.weighted = true);
        hold(&format!("two species of order {order}"), &mut s, 0.3);
    }
}

/// V5 as it is listed: 64 x 64, 64 a cell, 500 steps.
#[test]
#[ignore = "ten seconds"]
fn the_listed_case() {
    for (precision, limit) in [(Precision::F32, 2e-6), (Precision::F64, 1e-13)] {
        let mut s = setup([64, 64]);
        s.precision = precision;
        s.species = vec![electrons(64)];
        s.expected = vec![64 * 64 * 64];
        let mut stages = start(&s, &[thermal([64, 64], 64, 0.1, 1)], 2);
        let before = residual(&s, &mut *stages);
        run(&s, &mut *stages, 0, 500);
        let found = apart(&before, &residual(&s, &mut *stages));
        assert!(found < limit, "{precision:?}: {found:e}");
    }
}
