//! Stresses and heat flux of a gas that something moves along z, by symmetry with y. Seed 20261121.

use crate::common::{argon, flow, gap, on_plate, run};
use zellige_dsmc::config::sides::SideConfig;
use zellige_dsmc::config::{Value, WallConfig};
use zellige_dsmc::model::Scheme;
use zellige_dsmc::output;
use zellige_dsmc::sampling::{VALUES, WITH_Z, first_with_z, width};

/// Plates that slide along z against plates that slide along y: the same shear, and the same heat flux in every cell. Left in it,
/// the work of the shear would be several times as large.
#[test]
fn plates_that_slide_along_z_warm_the_gas_as_others_do() {
    let (mut config, _) = gap(0.2, 12, [273.15; 2], [-300.0, 300.0]);
    (config.steps, config.sampling.start) = (4000, Some(400));
    let mut along_y = flow(&config, 1);
    run(&mut along_y, config.steps);
    let wall = |speed: f64| Some(SideConfig::from(WallConfig::diffuse(273.15, [0.0, 0.0, speed])));
    (config.boundary.x_lo, config.boundary.x_hi) = (wall(-300.0), wall(300.0));
    let mut along_z = flow(&config, 1);
    run(&mut along_z, config.steps);
    assert_eq!((width(&along_y.model), width(&along_z.model)), (VALUES, VALUES + WITH_Z.len()));
    let at = first_with_z(&along_z.model);
    let [y, z] = [&along_y, &along_z].map(zellige_dsmc::flow::Flow::all_values);
    // Speed, shear, the other two normal stresses, heat flux.
    for (name, of_y, of_z) in [
        ("speed", 2, 3),
        ("shear", 11, at + 1),
        ("stress", 10, at),
        ("stress", 9, 9),
        ("heat flux", 12, 12),
        ("heat flux along the plates", 13, at + 3),
    ] {
        for cell in 0..12 {
            let (a, b) = (y[cell * VALUES + of_y], z[cell * (VALUES + WITH_Z.len()) + of_z]);
            let error = along_y.samples.error(&along_y.model, cell, of_y).hypot(along_z.samples.error(&along_z.model, cell, of_z));
            // Some seventy numbers, 16 batches each: Student's t with 30 degrees of freedom exceeds 5 once in 4e4.
            assert!(error > 0.0 && (a - b).abs() < 5.0 * error, "{name} in cell {cell}: {a} along y, {b} along z, +- {error}");
        }
    }
    // Beside a plate the work of the shear is as large as the heat flux, and all of it well above the noise.
    let work = z[at + 1] * z[3];
    assert!(work.abs() > 20.0 * along_z.samples.error(&along_z.model, 0, 12) && z[12].abs() > 0.3 * work.abs(), "{work}, {}", z[12]);
    let ([a, ea], [b, eb]) = (on_plate(&along_y).0, on_plate(&along_z).0);
    assert!((a - b).abs() < 4.0 * ea.hypot(eb), "heat on the plate: {a} +- {ea}, {b} +- {eb}");
    let names: Vec<String> = output::records(&along_z).iter().map(|r| r.name().to_owned()).collect();
    assert!(["stress_zz", "stress_xz", "stress_yz_error", "heat_flux_z"].iter().all(|n| names.iter().any(|m| m == n)), "{names:?}");
    assert!(!output::records(&along_y).iter().any(|r| r.name() == "stress_zz"));
}

/// Molecules with y and z exchanged have the same stresses with names exchanged, and the same heat flux along x: with rotation and
/// without.
#[test]
fn molecules_with_y_and_z_exchanged_have_the_same_stresses() {
    for species in ["Ar", "N2"] {
        let mut config = argon(6, 100.0);
        config.species = vec![zellige_dsmc::config::SpeciesConfig::named(species)];
        config.collisions.scheme = Scheme::None;
        (config.dt, config.steps, config.sampling.start, config.sampling.batches) = (1e-15, 2, Some(0), 2);
        let of = |text: &str| Value::Expression(text.into());
        config.initial.velocity = Some([of("100*y/ly"), of("300*x/lx"), of("200 - 500*x/lx*y/ly")]);
        let mut given = flow(&config, 1);
        let mut exchanged = flow(&config, 1);
        let mut particles = exchanged.stages.particles().unwrap();
        particles.velocity.swap(1, 2);
        exchanged.stages.clear().unwrap();
        exchanged.stages.insert(&particles).unwrap();
        run(&mut given, 2);
        run(&mut exchanged, 2);
        let (at, width) = (first_with_z(&given.model), width(&given.model));
        let [a, b] = [&given, &exchanged].map(zellige_dsmc::flow::Flow::all_values);
        for (q, other) in
            [(2, 3), (3, 2), (9, 9), (10, at), (at, 10), (11, at + 1), (at + 1, 11), (at + 2, at + 2), (12, 12), (13, at + 3), (at + 3, 13)]
        {
            for (cell, (a, b)) in a.chunks_exact(width).zip(b.chunks_exact(width)).enumerate() {
                // Sums of hundred terms in single precision; differences of terms as large as the pressure times a speed of 500 m/s.
                let scale = if [12, 13, at + 3].contains(&q) {
                    a[8] * 500.0
                } else if q < 4 {
                    500.0
                } else {
                    a[8]
                };
                assert!((a[q] - b[other]).abs() < 1e-4 * scale, "{species}, cell {cell}, {q}: {} and {}", a[q], b[other]);
            }
        }
    }
}
