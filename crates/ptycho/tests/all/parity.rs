//! Iteration by iteration against PtyPy 0.9 on a synthetic scan.
//!
//! Rounding decides what can be asked for. The difference map makes any difference 1.6 times as large from one iteration to the
//! next: a start that is off by 1e-15 is off by 1e-3 after sixty, in double precision, and one that is off by 6e-8, as every number
//! in single precision is, has come to what the map wanders about, 3.3e-2 to 3.9e-2 of the object, by the fortieth. That is between
//! any two runs, PtyPy's own two precisions among them (`rounding_parts_runs`). Nearly all of it lies where hardly any light falls:
//! a pixel that four frames see need not be lit by any. Where at least a hundredth of the most light falls runs are 4e-3 apart.
//! RAAR comes to rest: 2e-4 to 1.7e-3 apart, 1e-4 in the light. So objects are compared in the light within what PtyPy's two
//! precisions are asked for (2e-2 and 1e-3), and everywhere within what any two runs are apart; the map's after ten iterations as
//! well. ePIE's differ by 8e-4 to 1e-3 in either. The conventions show in double precision, where nothing but PtyPy's start, known
//! to single precision, is in the way.

use num_complex::Complex;
use zellige_engine::rng::Philox;
use zellige_ptycho::config::{Compatibility, EngineConfig, EngineName, NoiseName};
use zellige_ptycho::model::Model;

use super::common::{Bench, Reference, distance, lit, seen};

/// Part of the most light from which on a pixel is lit.
const LIT: f64 = 0.01;

/// Objects that are compared: after how many iterations, name in the reference, limits everywhere and in the light.
type Objects<'a> = &'a [(usize, &'a str, [f64; 2])];

/// Compares the columns of the errors, up to an iteration within a limit each, and objects.
fn compare(name: &str, config: &EngineConfig, columns: &[usize], limits: &[(usize, f64)], objects: Objects) {
    compare_in(&mut Reference::open(), name, config, columns, limits, objects, false);
}

/// Compares with errors of `errors`, in either precision.
fn compare_in(
    errors: &mut Reference,
    name: &str,
    config: &EngineConfig,
    columns: &[usize],
    limits: &[(usize, f64)],
    objects: Objects,
    double: bool,
) {
    let mut reference = Reference::open();
    let model = reference.model();
    let expected = errors.errors(name);
    let ordered = matches!(config.name, EngineName::Epie | EngineName::Sdr);
    let orders = if ordered { reference.orders(name, model.views.len()) } else { Vec::new() };
    let mut bench = Bench::new(&model, config, Compatibility::Ptypy, 2, double);
    let last = limits.iter().map(|l| l.0).chain(objects.iter().map(|o| o.0)).max().unwrap();
    for (k, expected) in expected[..last].iter().enumerate() {
        let found = bench.step(orders.get(k).map(Vec::as_slice));
        if let Some((_, limit)) = limits.iter().find(|(until, _)| k < *until) {
            for c in columns {
                let off = (found[*c] / expected[*c] - 1.0).abs();
                println!("{name}, iteration {k}, error {c}: off by {off:.1e}");
                assert!(off < *limit, "{name}, iteration {k}, error {c}: {:e}, PtyPy {:e}: off by {off:.1e}", found[*c], expected[*c]);
            }
        }
        for (_, object, limits) in objects.iter().filter(|o| o.0 == k + 1) {
            let [off, in_light] = apart(&model, &mut bench, &reference.waves(object));
            println!("{object}: {off:.1e}, in the light {in_light:.1e}");
            assert!(off < limits[0] && in_light < limits[1], "{object}: off by {off:.1e}, in the light {in_light:.1e}");
        }
    }
}

/// Distance of the object from another one: where at least four frames look, and where there is light besides.
fn apart(model: &Model, bench: &mut Bench, other: &[Complex<f64>]) -> [f64; 2] {
    let state = bench.stages.state().unwrap();
    let (seen, lit) = (seen(model), lit(model, &state.probe));
    [0.0, LIT].map(|least| distance(&state.object, other, |i| seen[i] >= 4 && lit[i] >= least))
}

#[test]
fn the_difference_map_goes_the_same_way() {
    let limits = [(10, 1e-5), (20, 2e-4), (60, 1e-2)];
    compare(
        "DM",
        &EngineConfig::new(EngineName::Dm, 60),
        &[0, 1, 2],
        &limits,
        &[(10, "DM_object10", [2e-4, 2e-5]), (60, "DM_object", [5e-2, 8e-3])],
    );
}

#[test]
fn raar_goes_the_same_way() {
    let limits = [(10, 1e-5), (20, 1e-4), (40, 2e-4)];
    compare("RAAR", &EngineConfig::new(EngineName::Raar, 40), &[0, 1, 2], &limits, &[(40, "RAAR_object", [2.6e-3, 3e-4])]);
}

/// The change of the exit wave is against the sweep before in PtyPy, and against the present product here, where no waves are kept.
#[test]
fn epie_in_the_recorded_order_goes_the_same_way() {
    let config = EngineConfig::new(EngineName::Epie, 20);
    compare("EPIE", &config, &[0, 1], &[(1, 1e-5), (4, 1e-3), (20, 3e-3)], &[(20, "EPIE_object", [1e-3, 2e-3])]);
}

/// Runs SDR from a start where it diverges: six iterations are all that the reference has, four what rounding leaves alone.
#[test]
fn sdr_goes_the_same_way() {
    compare("SDR", &EngineConfig::new(EngineName::Sdr, 6), &[0, 1, 2], &[(4, 1e-5)], &[]);
}

#[test]
fn gaussian_likelihood_goes_the_same_way() {
    let config = EngineConfig::new(EngineName::Ml, 20);
    compare("MLgauss", &config, &[1], &[(20, 1e-5)], &[(20, "MLgauss_object", [1e-5; 2])]);
}

#[test]
fn floating_intensities_and_smoothness_go_the_same_way() {
    let config = EngineConfig {
        floating_intensities: Some(true),
        smoothness: Some(1.0),
        scale_preconditioner: Some(true),
        probe_update_start: Some(0),
        ..EngineConfig::new(EngineName::Ml, 20)
    };
    compare("MLgauss_fi", &config, &[1], &[(20, 1e-5)], &[(20, "MLgauss_fi_object", [1e-5; 2])]);
}

/// Computes in doubles, since dark pixels weigh by one over their modelled counts; from iteration 5 on it is ill-conditioned: PtyPy
/// in single and double precision differ by 3 % at iteration 8.
#[test]
fn poisson_likelihood_goes_the_same_way() {
    let config = EngineConfig { noise: Some(NoiseName::Poisson), ..EngineConfig::new(EngineName::Ml, 15) };
    compare_in(&mut Reference::open(), "MLpoisson", &config, &[1], &[(3, 1e-5), (4, 3e-5)], &[], true);
}

/// PtyPy's runs in double precision: what is left is the rounding of the start, which is stored in single precision.
#[test]
fn doubles_go_the_same_way() {
    let all = &[0, 1, 2][..];
    for (name, engine, columns, limits) in [
        ("DM", EngineName::Dm, all, &[(5, 5e-7), (10, 3e-6), (20, 3e-4)][..]),
        ("RAAR", EngineName::Raar, all, &[(5, 5e-7), (10, 3e-6), (20, 1e-4)]),
        ("EPIE", EngineName::Epie, &[0, 1], &[(1, 1e-6), (4, 1e-3)]),
        ("MLgauss", EngineName::Ml, &[1], &[(10, 2e-6)]),
    ] {
        compare_in(&mut Reference::double(), name, &EngineConfig::new(engine, 60), columns, limits, &[], true);
    }
}

/// Measures how far runs come apart whose starts differ by rounding: `cargo test --test ptycho rounding_parts -- --ignored
/// --nocapture`.
#[test]
#[ignore = "a measurement"]
fn rounding_parts_runs() {
    let mut reference = Reference::open();
    let model = reference.model();
    for (name, engine, iterations) in [("DM", EngineName::Dm, 60), ("RAAR", EngineName::Raar, 40)] {
        let stored = reference.waves(&format!("{name}_object"));
        for (by, double) in [(1e-15, true), (6e-8, true), (6e-8, false)] {
            let ends: Vec<_> = (0..6)
                .map(|n| {
                    let mut shaken = model.clone();
                    let philox = Philox::new(3, n);
                    let shake = |values: &mut Vec<Complex<f64>>, step| {
                        for (i, v) in values.iter_mut().enumerate() {
                            let [a, b] = philox.normals(step, i as u64);
                            *v *= Complex::new(1.0 + by * a, by * b);
                        }
                    };
                    shake(&mut shaken.start.probe, 0);
                    shake(&mut shaken.start.object, 1);
                    let mut bench = Bench::new(&shaken, &EngineConfig::new(engine, iterations), Compatibility::Ptypy, 2, double);
                    for _ in 0..iterations {
                        bench.step(None);
                    }
                    bench
                })
                .collect();
            let objects: Vec<_> = ends.into_iter().map(|mut bench| (bench.stages.state().unwrap().object, bench)).collect();
            let (mut mutual, mut from) = (Vec::new(), Vec::new());
            let others: Vec<_> = objects.iter().map(|o| o.0.clone()).collect();
            for (i, (_, mut bench)) in objects.into_iter().enumerate() {
                from.push(apart(&model, &mut bench, &stored));
                mutual.extend(others[..i].iter().map(|other| apart(&model, &mut bench, other)));
            }
            let range = |all: &[[f64; 2]], c: usize| {
                let least = all.iter().map(|o| o[c]).fold(f64::INFINITY, f64::min);
                format!("{least:.1e} to {:.1e}", all.iter().map(|o| o[c]).fold(0.0, f64::max))
            };
            for (what, all) in [("from one another", &mutual), ("from PtyPy's single precision", &from)] {
                println!("{name}, shaken by {by:e}, doubles {double}: {what} {}, in the light {}", range(all, 0), range(all, 1));
            }
        }
    }
}
