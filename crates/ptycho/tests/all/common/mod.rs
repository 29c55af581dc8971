//! Helpers shared by the tests.
#![allow(dead_code, unreachable_pub)]

pub(crate) mod twins;

use std::path::Path;

use num_complex::Complex;
use zellige_engine::device::Cpu;
use zellige_engine::profile::Profiler;
use zellige_io::npz::Archive;
use zellige_io::tensor::{Elements, Tensor};
use zellige_ptycho::config::{Compatibility, EngineConfig};
use zellige_ptycho::engines::{self, EngineState, ProblemSize, corner_first};
use zellige_ptycho::model::{Model, Power, State, Storage, Transfer, View};
use zellige_ptycho::stages::{self, Stages};

/// Trajectories of PtyPy's engines on a synthetic scan; made by `tests/data/reduce.py`.
pub struct Reference {
    archive: Archive,
}

impl Reference {
    pub fn open() -> Self {
        Self::of("a64.npz")
    }

    /// Errors of the same runs in double precision.
    pub fn double() -> Self {
        Self::of("a64_double.npz")
    }

    /// A scan of two modes at fractional positions; made by `tests/data/make_modes.py`.
    pub fn modes() -> Self {
        Self::of("modes.npz")
    }

    fn of(file: &str) -> Self {
        Self { archive: Archive::open(Path::new(env!("CARGO_MANIFEST_DIR")).join("../ptycho/tests/data").join(file)).unwrap() }
    }

    pub fn tensor(&mut self, name: &str) -> Tensor {
        self.archive.read(name).unwrap()
    }

    pub fn numbers(&mut self, name: &str) -> Vec<f64> {
        match self.tensor(name).elements {
            Elements::U16(v) => v.into_iter().map(f64::from).collect(),
            Elements::I32(v) => v.into_iter().map(f64::from).collect(),
            Elements::F32(v) => v.into_iter().map(f64::from).collect(),
            Elements::F64(v) => v,
            Elements::Complex(_) => panic!("`{name}` is complex"),
        }
    }

    pub fn waves(&mut self, name: &str) -> Vec<Complex<f64>> {
        match self.tensor(name).elements {
            Elements::Complex(v) => v.into_iter().map(|v| Complex::new(f64::from(v.re), f64::from(v.im))).collect(),
            _ => panic!("`{name}` is not complex"),
        }
    }

    /// Errors of a run, an iteration: moduli, likelihood, exit waves.
    pub fn errors(&mut self, run: &str) -> Vec<[f64; 3]> {
        self.numbers(&format!("{run}_err")).as_chunks::<3>().0.to_vec()
    }

    /// Orders of the views, an iteration.
    pub fn orders(&mut self, run: &str, views: usize) -> Vec<Vec<u32>> {
        self.numbers(&format!("{run}_order")).chunks(views).map(|o| o.iter().map(|j| *j as u32).collect()).collect()
    }

    /// The problem as PtyPy had it: positions of the views, start values, the quadratic phase of the sample plane.
    pub fn model(&mut self) -> Model {
        let frame = [64, 64];
        let mag: Vec<f32> = self
            .numbers("intensity")
            .chunks(4096)
            .flat_map(|frame_| corner_first(frame_, frame))
            .map(|counts| counts.sqrt() as f32)
            .collect();
        let [wavelength, distance] = ["wavelength", "distance"].map(|k| self.numbers(k)[0]);
        let dx = self.numbers("resolution")[0];
        let filter: Vec<Complex<f64>> = (0..4096)
            .map(|i| {
                let at = |i: usize| (i as f64 - 32.0) * dx;
                Complex::cis(std::f64::consts::PI * (at(i / 64).powi(2) + at(i % 64).powi(2)) / (wavelength * distance))
            })
            .collect();
        let views: Vec<View> = self
            .numbers("addr")
            .chunks(15)
            .map(|a| View { probe: a[0] as u32, object: a[3] as u32, row: a[4] as i32, col: a[5] as i32 })
            .collect();
        let probe = self.waves("probe_init").iter().zip(&filter).map(|(p, f)| p * f).collect();
        Model {
            frame,
            bin: [1, 1],
            modes: [1, 1],
            probes: 1,
            storages: vec![Storage { shape: [116, 116], offset: 0, origin: [0.0; 2] }],
            subpixel: false,
            shifts: vec![[0.0; 2]; views.len()],
            views,
            power: Power::of(&mag, 4096),
            mag,
            transfer: Transfer::Far,
            pixel: [dx; 2],
            filter,
            start: State { probe, object: self.waves("object_init") },
            begins: Vec::new(),
            scans: vec![("a64".into(), 0)],
            share: zellige_ptycho::share::Share::default(),
        }
    }
}

/// An engine on a model: what it is run with.
pub struct Bench {
    pub stages: Box<dyn Stages>,
    pub engine: Box<dyn engines::Engine>,
    pub memory: EngineState,
    pub k: u64,
}

impl Bench {
    pub fn new(model: &Model, config: &EngineConfig, compatibility: Compatibility, threads: usize, double: bool) -> Self {
        let problem = ProblemSize::of(model, compatibility, 1);
        let engine = engines::engine(config, &problem, 0);
        let mut stages = stages::cpu::new(model, &Cpu::new(threads).unwrap(), double);
        engines::begin(&*engine, &mut *stages, model.frame).unwrap();
        Self { stages, engine, memory: EngineState::default(), k: 0 }
    }

    /// One iteration; gives the mean errors.
    pub fn step(&mut self, order: Option<&[u32]>) -> [f64; 3] {
        self.engine.iterate(&mut *self.stages, self.k, &mut self.memory, order, &mut Profiler::off()).unwrap();
        self.k += 1;
        mean(&self.stages.errors().unwrap())
    }
}

/// Means over the views.
pub fn mean(errors: &[[f64; 3]]) -> [f64; 3] {
    [0, 1, 2].map(|i| errors.iter().map(|e| e[i]).sum::<f64>() / errors.len() as f64)
}

/// Difference of `a` and `b` over `b` where `inside`, after the phase that fits best.
pub fn distance(a: &[Complex<f64>], b: &[Complex<f64>], inside: impl Fn(usize) -> bool) -> f64 {
    let pairs = || a.iter().zip(b).enumerate().filter(|(i, _)| inside(*i)).map(|(_, pair)| pair);
    let dot: Complex<f64> = pairs().map(|(a, b)| a.conj() * b).sum();
    let phase = dot / dot.norm().max(1e-300);
    let off: f64 = pairs().map(|(a, b)| (a * phase - b).norm_sqr()).sum();
    (off / pairs().map(|(_, b)| b.norm_sqr()).sum::<f64>()).sqrt()
}

/// Number of views that see each pixel of the first object.
pub fn seen(model: &Model) -> Vec<u32> {
    let [height, width] = model.storages[0].shape;
    let mut seen = vec![0; height * width];
    for view in &model.views {
        for y in 0..model.frame[0] {
            for x in 0..model.frame[1] {
                seen[(view.row as usize + y) * width + view.col as usize + x] += 1;
            }
        }
    }
    seen
}

/// Light on each pixel of the first object, over the most on any: squares of the probe, summed over the views.
pub fn lit(model: &Model, probe: &[Complex<f64>]) -> Vec<f64> {
    let [height, width] = model.storages[0].shape;
    let mut light = vec![0.0; height * width];
    for view in &model.views {
        for (i, p) in probe.iter().enumerate() {
            let (y, x) = (i / model.frame[1] % model.frame[0], i % model.frame[1]);
            light[(view.row as usize + y) * width + view.col as usize + x] += p.norm_sqr();
        }
    }
    let most = light.iter().copied().fold(0.0, f64::max);
    light.iter().map(|l| l / most).collect()
}
