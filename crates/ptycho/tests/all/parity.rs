//! Iteration by iteration against PtyPy 0.9 on a synthetic scan. Tolerances: rounding alone (its single against its double precision) moves
//! the difference map by 4e-7 at iteration 10, 1e-4 at 20, 2e-3 at 40, and ePIE's first differences of 6e-8 by 8e-5 in 4 sweeps. The last
//! objects of its single and double precision differ by 1.9e-2 (difference map), 1.3e-3 (RAAR), 8e-4 (ePIE) and 1.2e-6 (ML): no limit can be below these. Twice that is
//! let through where rounding decides, so the difference map's object is compared after ten iterations too (found: 8e-5). The errors of its RAAR in single and double
//! precision are up to 9e-5 apart, those of ePIE 1.5e-3.

use zellige_ptycho::config::{Compatibility, EngineConfig, EngineName, NoiseName};

use super::common::{Bench, Reference, distance, seen};

/// Compares the columns of `errors`, up to an iteration within a limit each, and objects: after how many iterations, name in the reference, limit.
fn compare(name: &str, config: &EngineConfig, columns: &[usize], limits: &[(usize, f64)], objects: &[(usize, &str, f64)]) {
    compare_in(name, config, columns, limits, objects, false);
}

fn compare_in(name: &str, config: &EngineConfig, columns: &[usize], limits: &[(usize, f64)], objects: &[(usize, &str, f64)], double: bool) {
    let mut reference = Reference::open();
    let model = reference.model();
    let expected = reference.errors(name);
    let ordered = matches!(config.name, EngineName::Epie | EngineName::Sdr);
    let orders = if ordered { reference.orders(name, model.views.len()) } else { Vec::new() };
    let mut bench = Bench::new(&model, config, Compatibility::Ptypy, 2, double);
    let seen = seen(&model);
    let last = limits.iter().map(|l| l.0).chain(objects.iter().map(|o| o.0)).max().unwrap();
    for (k, expected) in expected[..last].iter().enumerate() {
        let found = bench.step(orders.get(k).map(Vec::as_slice));
        if let Some((_, limit)) = limits.iter().find(|(until, _)| k < *until) {
            for c in columns {
                let off = (found[*c] / expected[*c] - 1.0).abs();
                assert!(off < *limit, "{name}, iteration {k}, error {c}: {:e}, PtyPy {:e}: off by {off:.1e}", found[*c], expected[*c]);
            }
        }
        for (_, object, limit) in objects.iter().filter(|o| o.0 == k + 1) {
            let found = bench.stages.state().unwrap().object;
            let off = distance(&found, &reference.waves(object), |i| seen[i] >= 4);
            assert!(off < *limit, "{object}: off by {off:.1e}");
        }
    }
}

#[test]
fn the_difference_map_goes_the_same_way() {
    let limits = [(10, 1e-5), (20, 2e-4), (60, 1e-2)];
    compare("DM", &EngineConfig::new(EngineName::Dm, 60), &[0, 1, 2], &limits, &[(10, "DM_object10", 2e-4), (60, "DM_object", 4e-2)]);
}

#[test]
fn raar_goes_the_same_way() {
    let limits = [(10, 1e-5), (20, 1e-4), (40, 2e-4)];
    compare("RAAR", &EngineConfig::new(EngineName::Raar, 40), &[0, 1, 2], &limits, &[(40, "RAAR_object", 2.6e-3)]);
}

/// The change of the exit wave is against the sweep before in PtyPy, and against the present product here, where no waves are kept.
#[test]
fn epie_in_the_recorded_order_goes_the_same_way() {
    let config = EngineConfig::new(EngineName::Epie, 20);
    compare("EPIE", &config, &[0, 1], &[(1, 1e-5), (4, 1e-3), (20, 3e-3)], &[(20, "EPIE_object", 1e-3)]);
}

/// It runs away from this start: six iterations are all that the reference has, four what rounding leaves alone.
#[test]
fn sdr_goes_the_same_way() {
    compare("SDR", &EngineConfig::new(EngineName::Sdr, 6), &[0, 1, 2], &[(4, 1e-5)], &[]);
}

#[test]
fn gaussian_likelihood_goes_the_same_way() {
    let config = EngineConfig::new(EngineName::Ml, 20);
    compare("MLgauss", &config, &[1], &[(20, 1e-5)], &[(20, "MLgauss_object", 1e-5)]);
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
    compare("MLgauss_fi", &config, &[1], &[(20, 1e-5)], &[(20, "MLgauss_fi_object", 1e-5)]);
}

/// In doubles, since dark pixels weigh by one over their modelled counts; from iteration 5 on it is ill-conditioned: PtyPy in single and
/// double precision differ by 3 % at iteration 8.
#[test]
fn poisson_likelihood_goes_the_same_way() {
    let config = EngineConfig { noise: Some(NoiseName::Poisson), ..EngineConfig::new(EngineName::Ml, 15) };
    compare_in("MLpoisson", &config, &[1], &[(3, 1e-5), (4, 3e-5)], &[], true);
}
