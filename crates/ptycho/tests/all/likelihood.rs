//! Maximum likelihood where the expansion along the gradient is of no use, and what LSQML has of its models of noise.

use zellige_ptycho::config::{Compatibility, EngineConfig, EngineName, NoiseName};

use super::common::Bench;
use super::physics::{from_truth, input, made};

/// A probe far too dark: the modulus goes with the product of probe and object, and along both at once the value is `(w (1 + t)^2 -
/// a)^2`, which has no minimum at second order where `3 w < a`. It must not stand still there.
#[test]
fn a_start_too_dark_comes_to_light() {
    for noise in [NoiseName::Gaussian, NoiseName::Euclid, NoiseName::Poisson] {
        let engine = EngineConfig { noise: Some(noise), probe_update_start: Some(0), ..EngineConfig::new(EngineName::Ml, 30) };
        let config = input(made(|_| {}), engine.clone());
        let (mut model, _) = from_truth(&config, 0.05);
        model.start.probe.iter_mut().for_each(|v| *v *= 0.03);
        let mut bench = Bench::new(&model, &engine, Compatibility::None, 2, true);
        let errors: Vec<f64> = (0..30).map(|_| bench.step(None)[1]).collect();
        println!("{noise:?}: {errors:?}");
        let (first, last) = (errors[0], errors[29]);
        assert!(last < 0.05 * first, "{noise:?}: {errors:?}");
    }
}

#[test]
fn noise_that_an_engine_does_not_have_is_refused() {
    let problems = |noise: Option<NoiseName>| {
        let engine = EngineConfig { noise, ..EngineConfig::new(EngineName::Lsqml, 1) };
        input(made(|_| {}), engine).check().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert!([None, Some(NoiseName::Euclid), Some(NoiseName::Poisson)].into_iter().all(|n| problems(n).is_empty()));
    let refused = problems(Some(NoiseName::Gaussian));
    assert!(refused.len() == 1 && refused[0].contains("engine[0].noise") && refused[0].contains("poisson"), "{refused:?}");
}
