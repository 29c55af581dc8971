//! Problems that stages of both devices work on, and what compares them.

use num_complex::Complex;
use zellige_engine::rng::Philox;
use zellige_ptycho::config::{Compatibility, EngineConfig};
use zellige_ptycho::engines::{self, EngineState, ProblemSize};
use zellige_ptycho::model::{MASKED, Model, Power, State, Storage, Transfer, View};
use zellige_ptycho::stages::cuda::{FrameProcessing, KernelConfig, new_with};
use zellige_ptycho::stages::{self, Stages};

use super::Bench;

/// Case of a twin test.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    pub(crate) frame: [usize; 2],
    pub(crate) modes: [usize; 2],
    /// Probes, and as many objects.
    pub(crate) sets: usize,
    pub(crate) near: bool,
    pub(crate) views: usize,
    /// Rows and columns of the waves that are counted as one.
    pub(crate) bin: [usize; 2],
    /// Views see the probe between pixels.
    pub(crate) between: bool,
}

pub(crate) const PLAIN: Case = Case { frame: [64, 64], modes: [1, 1], sets: 1, near: false, views: 23, bin: [1, 1], between: false };

/// A problem of noise: what is compared needs no solution.
pub(crate) fn model(case: Case) -> Model {
    let Case { frame, modes, sets, near, views, bin, between } = case;
    let philox = Philox::new(77, 5);
    let uniform = |purpose: u64, i: usize| philox.uniforms(purpose, i as u64)[0];
    let pixels = frame[0] * frame[1];
    let shape = [frame[0] + 37, frame[1] + 45];
    let layer = shape[0] * shape[1];
    let wave = |purpose, i: usize| Complex::from_polar(0.3 + uniform(purpose, i), uniform(purpose + 1, i));
    let start = State {
        // Light near the middle, as a probe has it, and some everywhere.
        probe: (0..sets * modes[0] * pixels)
            .map(|i| {
                let at = |i: usize, n: usize| (i as f64 / n as f64 - 0.5) * 3.0;
                let (y, x) = (at(i % pixels / frame[1], frame[0]), at(i % frame[1], frame[1]));
                wave(0, i) * ((-x * x - y * y).exp() + 0.05) * 20.0
            })
            .collect(),
        object: (0..sets * modes[1] * layer).map(|i| wave(2, i)).collect(),
    };
    let views: Vec<View> = (0..views)
        .map(|n| View {
            probe: (n % sets) as u32,
            object: (n % sets) as u32,
            row: (uniform(4, n) * 38.0) as i32,
            col: (uniform(5, n) * 46.0) as i32,
        })
        .collect();
    let counted = pixels / (bin[0] * bin[1]);
    let mag: Vec<f32> =
        (0..views.len() * counted).map(|i| if uniform(6, i) < 0.03 { MASKED } else { (20.0 * uniform(7, i).powi(3)) as f32 }).collect();
    Model {
        frame,
        bin,
        modes,
        probes: sets,
        storages: (0..sets).map(|s| Storage { shape, offset: s * modes[1] * layer, origin: [0.0; 2] }).collect(),
        subpixel: between,
        shifts: (0..views.len()).map(|n| if between { [uniform(8, n) - 0.5, uniform(9, n) - 0.5] } else { [0.0; 2] }).collect(),
        power: Power::of(&mag, counted),
        transfer: if near { Transfer::Near((0..pixels).map(|i| Complex::cis(0.01 * i as f64)).collect()) } else { Transfer::Far },
        views,
        mag,
        pixel: [1e-8; 2],
        filter: vec![Complex::new(1.0, 0.0); pixels],
        start,
        begins: Vec::new(),
        scans: vec![("noise".into(), 0)],
        share: zellige_ptycho::share::Share::default(),
    }
}

pub(crate) fn off(a: &[Complex<f64>], b: &[Complex<f64>]) -> f64 {
    assert!(a.iter().all(|v| v.is_finite()));
    let norm = |x: f64| x.sqrt();
    norm(a.iter().zip(b).map(|(a, b)| (a - b).norm_sqr()).sum()) / norm(b.iter().map(Complex::norm_sqr).sum())
}

pub(crate) fn close(what: &str, a: &[[f64; 3]], b: &[[f64; 3]], limit: f64) {
    for (n, (a, b)) in a.iter().zip(b).enumerate() {
        for i in 0..3 {
            assert!((a[i] - b[i]).abs() <= limit * b[i].abs(), "{what}, view {n}, {}: {} and {}", stages::ERRORS[i], a[i], b[i]);
        }
    }
}

/// Part of a tolerance of single precision that a GPU in doubles keeps to, whose rounding is 2e-9 of it: 2e-5 becomes 1e-10.
pub(crate) fn part(double: bool) -> f64 {
    if double { 5e-6 } else { 1.0 }
}

/// Stages on both, on the GPU in doubles or in pieces and as it chooses.
pub(crate) fn all(model: &Model, cuda: &zellige_engine::cuda::Cuda, double: bool) -> Vec<(&'static str, Box<dyn Stages>)> {
    if double {
        let cpu = stages::cpu::new(model, &zellige_engine::device::Cpu::new(2).unwrap(), true);
        let kind = KernelConfig::of(model, cuda.properties(), true);
        let mut list = vec![("processor", cpu), ("GPU in doubles", new_with(model, cuda, kind).unwrap())];
        if matches!(kind.processing, FrameProcessing::Clustered { .. }) {
            let tiled = FrameProcessing::Tiled { joined: true };
            list.push(("GPU in doubles, in tiles", new_with(model, cuda, KernelConfig { processing: tiled, ..kind }).unwrap()));
        }
        return list;
    }
    let kind = KernelConfig::of(model, cuda.properties(), false);
    let mut list = vec![
        ("processor", stages::cpu::new(model, &zellige_engine::device::Cpu::new(2).unwrap(), true)),
        ("GPU in pieces", new_with(model, cuda, KernelConfig { processing: FrameProcessing::MultiPass, ..kind }).unwrap()),
    ];
    if kind.processing != FrameProcessing::MultiPass {
        list.push(("GPU", new_with(model, cuda, kind).unwrap()));
    }
    if kind.processing == (FrameProcessing::Tiled { joined: true }) {
        list.push((
            "GPU, columns apart",
            new_with(model, cuda, KernelConfig { processing: FrameProcessing::Tiled { joined: false }, ..kind }).unwrap(),
        ));
    }
    list
}

/// A run on a GPU, as [`Bench`] makes one on the CPU.
pub(crate) fn bench(model: &Model, config: &EngineConfig, cuda: &zellige_engine::cuda::Cuda, processing: Option<FrameProcessing>) -> Bench {
    let kind = KernelConfig::of(model, cuda.properties(), false);
    bench_of(model, config, cuda, KernelConfig { processing: processing.unwrap_or(kind.processing), ..kind })
}

pub(crate) fn bench_of(model: &Model, config: &EngineConfig, cuda: &zellige_engine::cuda::Cuda, kind: KernelConfig) -> Bench {
    let engine = engines::engine(config, &ProblemSize::of(model, Compatibility::Ptypy, 1), 0);
    let mut stages = new_with(model, cuda, kind).unwrap();
    engines::begin(&*engine, &mut *stages, model.frame).unwrap();
    Bench { stages, engine, memory: EngineState::default(), k: 0 }
}
