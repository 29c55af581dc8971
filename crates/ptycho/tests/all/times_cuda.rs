//! Times of iterations on a GPU.

use num_complex::Complex;
use zellige_engine::profile::Profiler;
use zellige_engine::testing;
use zellige_ptycho::config::{EngineConfig, EngineName};
use zellige_ptycho::model::View;
use zellige_ptycho::stages::cuda::{FrameProcessing, KernelConfig};

use super::common::twins::{Case, PLAIN, bench_of, model};

/// Times of iterations, milliseconds: run by hand with `--ignored --nocapture` on a quiet GPU. `ZELLIGE_CASES` names those wanted.
#[test]
#[ignore = "a measurement"]
fn times() {
    let Some(cuda) = testing::gpu() else { return };
    let wanted = std::env::var("ZELLIGE_CASES").unwrap_or_default();
    for (name, engine, frame, modes, views, processing) in [
        ("dm-1000x128", EngineName::Dm, 128, 1, 1000, None),
        ("dm-1000x128 plain", EngineName::Dm, 128, 1, 1000, Some(FrameProcessing::MultiPass)),
        ("dm-500x128 between", EngineName::Dm, 128, 1, 500, None),
        ("dm-500x256 between", EngineName::Dm, 256, 1, 500, None),
        ("dm-1000x128 between", EngineName::Dm, 128, 1, 1000, None),
        ("epie-1000x128 between", EngineName::Epie, 128, 1, 1000, None),
        ("ml-1000x128 between", EngineName::Ml, 128, 1, 1000, None),
        ("ml-1000x128 plain", EngineName::Ml, 128, 1, 1000, Some(FrameProcessing::MultiPass)),
        ("lsqml-1000x128 between", EngineName::Lsqml, 128, 1, 1000, None),
        ("dm-500x128", EngineName::Dm, 128, 1, 500, None),
        ("dm-500x128 doubles", EngineName::Dm, 128, 1, 500, None),
        ("dm-500x128 tiled doubles", EngineName::Dm, 128, 1, 500, Some(FrameProcessing::Tiled { joined: true })),
        ("dm-500x256", EngineName::Dm, 256, 1, 500, None),
        ("dm-500x256 plain", EngineName::Dm, 256, 1, 500, Some(FrameProcessing::MultiPass)),
        ("dm-500x256m4", EngineName::Dm, 256, 4, 500, None),
        ("dm-500x256m4 plain", EngineName::Dm, 256, 4, 500, Some(FrameProcessing::MultiPass)),
        ("epie-1000x128", EngineName::Epie, 128, 1, 1000, None),
        ("ml-1000x128", EngineName::Ml, 128, 1, 1000, None),
        ("ml-500x256", EngineName::Ml, 256, 1, 500, None),
        ("epie-200x256", EngineName::Epie, 256, 1, 200, None),
        ("epie-500x64", EngineName::Epie, 64, 1, 500, None),
        ("epie-500x128m2", EngineName::Epie, 128, 2, 500, None),
        ("epie-500x128m4", EngineName::Epie, 128, 4, 500, None),
        ("epie-200x256m2", EngineName::Epie, 256, 2, 200, None),
        ("epie-500x96", EngineName::Epie, 96, 1, 500, None),
        ("lsqml-1000x128", EngineName::Lsqml, 128, 1, 1000, None),
        ("dm-1000x100", EngineName::Dm, 100, 1, 1000, None),
        ("dm-500x192", EngineName::Dm, 192, 1, 500, None),
        ("dm-500x192m4", EngineName::Dm, 192, 4, 500, None),
        ("dm-300x300", EngineName::Dm, 300, 1, 300, None),
        ("dm-200x512", EngineName::Dm, 512, 1, 200, None),
        ("dm-200x512m4", EngineName::Dm, 512, 4, 200, None),
        ("dm-60x1024", EngineName::Dm, 1024, 1, 60, None),
        ("dm-300x200", EngineName::Dm, 200, 1, 300, None),
        ("dm-60x1024 plain", EngineName::Dm, 1024, 1, 60, Some(FrameProcessing::MultiPass)),
        ("dm-500x192 plain", EngineName::Dm, 192, 1, 500, Some(FrameProcessing::MultiPass)),
        ("dm-500x256 tiled", EngineName::Dm, 256, 1, 500, Some(FrameProcessing::Tiled { joined: true })),
        ("dm-500x256m4 tiled", EngineName::Dm, 256, 4, 500, Some(FrameProcessing::Tiled { joined: false })),
        ("dm-1000x128 tiled", EngineName::Dm, 128, 1, 1000, Some(FrameProcessing::Tiled { joined: true })),
        ("dm-16x2048", EngineName::Dm, 2048, 1, 16, None),
        ("ml-500x192", EngineName::Ml, 192, 1, 500, None),
        ("ml-200x512", EngineName::Ml, 512, 1, 200, None),
        ("ml-60x1024", EngineName::Ml, 1024, 1, 60, None),
        ("epie-200x192", EngineName::Epie, 192, 1, 200, None),
        ("epie-200x512", EngineName::Epie, 512, 1, 200, None),
        ("epie-60x1024", EngineName::Epie, 1024, 1, 60, None),
    ] {
        if !name.contains(&wanted) {
            continue;
        }
        let mut model = model(Case { frame: [frame; 2], modes: [modes, 1], views: 1, between: name.ends_with("between"), ..PLAIN });
        // A square scan with steps of a tenth of a frame.
        let side = (views as f64).sqrt().ceil() as usize;
        let shape = [frame + side * frame / 10 + 1; 2];
        model.views = (0..views)
            .map(|n| View { row: (n / side * frame / 10) as i32, col: (n % side * frame / 10) as i32, ..View::default() })
            .collect();
        model.shifts = (0..views).map(|n| if model.subpixel { [0.3, 0.01 * (n % 40) as f64 - 0.2] } else { [0.0; 2] }).collect();
        model.storages[0].shape = shape;
        model.start.object = (0..shape[0] * shape[1]).map(|i| Complex::from_polar(0.8, 0.5 * (i as f64 * 0.01).sin())).collect();
        model.mag = model.mag.repeat(views);
        let config = EngineConfig { probe_update_start: Some(0), overlap_passes: Some(1), ..EngineConfig::new(engine, 100) };
        let kind = KernelConfig::of(&model, cuda.properties(), name.ends_with("doubles"));
        let mut run = bench_of(&model, &config, &cuda, KernelConfig { processing: processing.unwrap_or(kind.processing), ..kind });
        let repeats = if matches!(engine, EngineName::Epie | EngineName::Lsqml) { 3 } else { 20 };
        let mut off = Profiler::off();
        let mut times: Vec<f64> = (0..7)
            .map(|_| {
                cuda.synchronize().unwrap();
                let begin = std::time::Instant::now();
                for _ in 0..repeats {
                    run.engine.iterate(&mut *run.stages, run.k, &mut run.memory, None, &mut off).unwrap();
                }
                cuda.synchronize().unwrap();
                begin.elapsed().as_secs_f64() * 1e3 / f64::from(repeats)
            })
            .skip(1)
            .collect();
        times.sort_by(f64::total_cmp);
        let mut profiler = Profiler::new();
        for _ in 0..repeats {
            run.engine.iterate(&mut *run.stages, run.k, &mut run.memory, None, &mut profiler).unwrap();
        }
        for row in profiler.table() {
            println!("  {:?} {}: {:.4} ms, {:.0} GB/s", row.clock, row.name, row.average * 1e3, row.gb_per_s.unwrap_or(0.0));
        }
        println!("{name:20} least {:.4} ms, median {:.4} ms an iteration; {:.2} GB", times[0], times[3], run.stages.memory() as f64 * 1e-9);
    }
}
