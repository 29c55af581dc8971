//! A step on a GPU is that of the CPU: every kernel, and light particles.

use crate::common::pairs::{agree, pair, small, tagged, tolerance};
use crate::common::{apart, electrons, residual, run, setup, thermal};
use zellige_engine::testing;
use zellige_pic::grid::BELOW;
use zellige_pic::particles::{Pusher, Species};
use zellige_pic::stages::cuda::KernelConfig;
use zellige_pic::stages::{Component, Precision, Stages};

/// Each two of precision, order and pusher together: six programs, since one takes seconds to compile. The other six are compiled
/// by `kernels_compile` or differ from one of these in a call.
#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn a_step_of_every_kind_is_that_of_the_cpu() {
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
fn light_particles_deposit_what_they_do_on_the_cpu() {
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
