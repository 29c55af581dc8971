//! Batches that a GPU closes, against those that the host closes of the same sums.

use std::path::Path;

use zellige_engine::device::Device;
use zellige_engine::profile::Profiler;

use super::spread::Cells;
use super::*;
use crate::config::SpeciesConfig;
use crate::flow::Flow;

/// Mixtures of molecules that rotate and vibrate in several modes around a body with a stream along z, cells of different weights,
/// and cells so full that they have layers.
fn cases() -> [(&'static str, Config); 3] {
    ["dsmc/mixture-body", "dsmc/weights", "dsmc/dense-cells"].map(|name| {
        let mut config = crate::bench::config(name).unwrap();
        match name {
            "dsmc/mixture-body" => {
                config.grid.cells = vec![48, 36];
                config.dt = 2e-6;
                config.particles_per_cell = Some(20.0);
                config.gas.temperature = 1500.0;
                config.gas.velocity[2] = 400.0;
                config.collisions.vibration = true;
                let part = |name, fraction| SpeciesConfig { fraction, z_vibration: Some(20.0), ..SpeciesConfig::named(name) };
                config.species = vec![part("N2", 0.6), part("CO2", 0.4)];
            }
            "dsmc/weights" => config.grid.cells = vec![60, 50],
            _ => config.grid.cells = vec![3, 2],
        }
        (config.steps, config.sampling.start, config.sampling.batches) = (44, Some(2), 6);
        (name, config)
    })
}

#[test]
#[cfg_attr(not(gpu_tests), ignore = "needs a GPU")]
fn a_gpu_closes_batches_as_the_host_does() {
    let Some(cuda) = zellige_engine::testing::gpu() else { return };
    for (name, config) in cases() {
        assert_eq!(config.check(), []);
        let Flow { model, mut stages, mut samples, .. } = Flow::new(&config, Path::new(""), 1, &Device::Cuda(cuda.clone())).unwrap();
        let (mut host, mut all) = (Cells::new(&model, model.grid.len()), vec![0.0; samples.own.sums.len()]);
        let (mut cells, mut surfaces) = (all.clone(), samples.surfaces.clone());
        let area = samples.shares.own();
        for step in 0..config.steps {
            let due = samples.due(step);
            stages.advance(step, due, &mut Profiler::off()).unwrap();
            if !due || !samples.count() {
                continue;
            }
            stages.take_samples(&mut cells, &mut surfaces).unwrap();
            stages.put_samples(&cells, &surfaces).unwrap();
            host.add(&model, area, &mut all, &cells, samples.batches + 1, samples.current);
            let (regions, sums) = ([3, 2], 0..model.collisions.sums());
            let found = stages.batches().unwrap().regions(regions, sums.clone()).unwrap();
            let wanted = sums_of_regions(&model, &cells, regions, sums);
            let most = wanted.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
            // Thousands of additions in another order.
            assert!(found.iter().zip(&wanted).all(|(a, b)| (a - b).abs() <= 1e-11 * b.abs() + 1e-13 * most), "{name}");
            samples.after(&model, &mut *stages, step + 1).unwrap();
        }
        samples.fetch(&model, &mut *stages).unwrap();
        assert_eq!(samples.batches, 6, "{name}");
        assert!(samples.own.sums == all && samples.own.spread.filled == host.filled, "{name}: sums and batches with particles");
        assert_eq!(samples.values(), host.value, "{name}");
        let (width, mut scattering) = (width(&model), 0);
        for value in 0..width {
            let of = |squares: &[f64]| squares.iter().skip(value).step_by(width).copied().collect::<Vec<_>>();
            let [found, wanted] = [&samples.own.spread.square, &host.square].map(|s| of(s));
            let most = wanted.iter().fold(0.0, |most: f64, v| most.max(*v));
            scattering += usize::from(most > 0.0);
            // Steps from batch to batch are a thousandth of a value or more, whose last bits differ by logarithms and powers.
            let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * b + 1e-12 * most;
            assert!(found.iter().zip(&wanted).all(close), "{name}: value {value}");
        }
        // Argon neither rotates nor vibrates.
        assert!(scattering >= if name == "dsmc/mixture-body" { width } else { VALUES - 2 }, "{name}: {scattering} of {width}");
        // The restored state is the saved one.
        let (square, filled) = (samples.own.spread.square.clone(), samples.own.spread.filled.clone());
        stages.batches().unwrap().put(&all, &square, &filled).unwrap();
        samples.own.clear();
        samples.fetched = false;
        samples.fetch(&model, &mut *stages).unwrap();
        assert!(samples.own.sums == all && samples.own.spread.square == square && samples.own.spread.filled == filled, "{name}");
    }
}
