//! Sides and thermal walls act on particles on a GPU as on the CPU.

use crate::common::pairs::{agree, pair, small, tagged, tolerance};
use crate::common::{at_wall, electrons, run, setup, thermal, turned, walls};
use zellige_engine::testing;
use zellige_pic::grid::{FieldSide, ParticleSide};
use zellige_pic::particles::Species;
use zellige_pic::stages::Precision;
use zellige_pic::stages::cuda::new_with;

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn sides_do_to_particles_what_they_do_on_the_cpu() {
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
