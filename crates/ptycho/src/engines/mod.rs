//! The engines: what is done in an iteration, as calls of stages. Written once for every backend.

mod least_squares;
mod likelihood;
mod projection;
mod staged;
mod sweep;

use serde::{Deserialize, Serialize};
use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;

use crate::config::{Compatibility, EngineConfig, EngineName};
use crate::model::{Model, Power};
use crate::noise;
use crate::reconstruction::groups;
use crate::stages::Stages;

pub use projection::bound;
pub use staged::DataSizes;
pub(crate) use staged::staged;
pub use sweep::divergence_warning;

/// Size of the problem that an engine works on.
#[derive(Debug, Clone)]
pub struct ProblemSize {
    /// Views.
    pub views: usize,
    /// Views of each probe.
    pub views_of_probe: Vec<usize>,
    /// Group of each probe: those that see the same objects, whose scale is one.
    pub groups: Vec<usize>,
    /// Modes of a probe and of an object.
    pub modes: [usize; 2],
    /// Rows and columns of a frame as it was counted.
    pub frame: [usize; 2],
    /// Pixels of all objects, modes included.
    pub object: usize,
    /// Amounts of data that stages move.
    pub sizes: DataSizes,
    /// Counts.
    pub power: Power,
    /// Mean variance of the moduli of each frame that photons make: of own frames, where not all have been gathered.
    pub noise: Vec<f64>,
    /// Seed of random orders.
    pub seed: u64,
    /// Whose defaults.
    pub compatibility: Compatibility,
}

impl ProblemSize {
    /// Size of a model.
    pub fn of(model: &Model, compatibility: Compatibility, seed: u64) -> Self {
        Self {
            views: model.views.len(),
            views_of_probe: model.views_of_probe(),
            groups: groups(model)[0].clone(),
            modes: model.modes,
            frame: model.detector(),
            object: model.object_len(),
            sizes: DataSizes::of(model),
            power: model.power,
            noise: noise::of_frames(&model.mag, model.counted()).into_iter().map(|[_, variance]| variance).collect(),
            seed,
            compatibility,
        }
    }

    /// Returns true if PtyPy's defaults are used.
    pub fn ptypy(&self) -> bool {
        self.compatibility == Compatibility::Ptypy
    }
}

/// State that an engine keeps from one iteration to the next, besides that of the stages.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct EngineState {
    /// ML: length of the last step.
    pub length: f64,
    /// ML: running ratio of the gradients.
    pub scale: f64,
    /// ML: value of the likelihood, smoothness included.
    pub value: f64,
    /// DM, RAAR: passes of the last overlap loop.
    pub passes: u32,
}

/// An engine at work.
pub trait Engine: Send {
    /// One iteration, number `k` of this engine. `order` is that of the views where it matters; a seeded one if none is given.
    fn iterate(
        &self,
        stages: &mut dyn Stages,
        k: u64,
        memory: &mut EngineState,
        order: Option<&[u32]>,
        profiler: &mut Profiler,
    ) -> Result<()>;

    /// Returns true if exit waves are kept from one iteration to the next.
    fn keeps_exits(&self) -> bool;

    /// Parts of the frame's area that the probe may fill, in real and Fourier space.
    fn supports(&self) -> [Option<f64>; 2];

    /// Number of frames that have come to rest because noise explains their deviation, among those from frame `first` on of which
    /// these are the errors of the last pass.
    fn at_rest(&self, _errors: &[[f64; 3]], _first: usize) -> usize {
        0
    }
}

/// The engine that an entry of the input asks for.
pub fn engine(config: &EngineConfig, problem: &ProblemSize, number: usize) -> Box<dyn Engine> {
    match config.name {
        EngineName::Dm | EngineName::Raar => Box::new(projection::ProjectionEngine::new(config, problem)),
        EngineName::Epie | EngineName::Rpie | EngineName::Sdr => Box::new(sweep::SweepEngine::new(config, problem, number)),
        EngineName::Ml => Box::new(likelihood::LikelihoodEngine::new(config, problem)),
        EngineName::Lsqml => Box::new(least_squares::LeastSquaresEngine::new(config, problem, number)),
    }
}

/// Selects those of [`crate::stages::ERRORS`] that the passes of an engine measure.
pub fn measured(config: &EngineConfig) -> [bool; 3] {
    match config.name {
        // Goes by the likelihood alone.
        EngineName::Ml => [false, true, false],
        _ => [true, config.log_likelihood.unwrap_or(true), true],
    }
}

/// Readies the stages for an engine: supports, and exit waves where it keeps them.
pub fn begin(engine: &dyn Engine, stages: &mut dyn Stages, frame: [usize; 2]) -> Result<()> {
    let [real, fourier] = engine.supports().map(|part| part.map(|part| disc(part, frame)));
    let fourier = fourier.map(|mask| corner_first(&mask, frame));
    stages.set_support(real.as_deref(), fourier.as_deref())?;
    if engine.keeps_exits() {
        stages.exits_from_product()?;
    }
    Ok(())
}

/// PtyPy's probes are held to this part of the frame unless something else is said.
const PTYPY_SUPPORT: f64 = 0.7;

/// Supports of the probe and of its transform that an entry asks for, or has from PtyPy.
pub(crate) fn supports(config: &EngineConfig, ptypy: bool) -> [Option<f64>; 2] {
    let stochastic = matches!(config.name, EngineName::Epie | EngineName::Rpie | EngineName::Sdr);
    let default = if ptypy && !stochastic { PTYPY_SUPPORT } else { 0.0 };
    let given = [config.probe_support.unwrap_or(default), config.probe_fourier_support.unwrap_or(0.0)];
    given.map(|part| (part > 0.0).then_some(part))
}

/// Pixels of a frame inside an ellipse of this part of its area about the middle, `[ny][nx]`, centred.
pub fn disc(part: f64, [ny, nx]: [usize; 2]) -> Vec<bool> {
    let square = |i: usize, n: usize| ((i as f64 - 0.5 * (n as f64 - 1.0)) / n as f64).powi(2);
    let inside = |i, k| std::f64::consts::PI * (square(i, ny) + square(k, nx)) < part;
    (0..ny).flat_map(|i| (0..nx).map(move |k| (i, k))).map(|(i, k)| inside(i, k)).collect()
}

/// `values[ny][nx]` with pixel `[ny / 2, nx / 2]` moved to `[0, 0]`: from the order of pictures to that of the transform.
pub fn corner_first<T: Copy>(values: &[T], [ny, nx]: [usize; 2]) -> Vec<T> {
    let from = |i: usize, n: usize| (i + n / 2) % n;
    (0..ny).flat_map(|i| (0..nx).map(move |k| values[from(i, ny) * nx + from(k, nx)])).collect()
}

/// The other way round.
pub fn middle_first<T: Copy>(values: &[T], [ny, nx]: [usize; 2]) -> Vec<T> {
    let from = |i: usize, n: usize| (i + n.div_ceil(2)) % n;
    (0..ny).flat_map(|i| (0..nx).map(move |k| values[from(i, ny) * nx + from(k, nx)])).collect()
}

/// Numbers 0 to n - 1 in an order that depends on seed, engine and iteration alone.
pub(crate) fn shuffled(n: usize, seed: u64, engine: usize, k: u64) -> Vec<u32> {
    let philox = zellige_engine::rng::Philox::new(PURPOSE_ORDER + engine as u32, seed);
    let mut order: Vec<u32> = (0..n as u32).collect();
    for i in (1..n).rev() {
        let [a, b, ..] = philox.draw(k, i as u64);
        let j = ((u128::from(u64::from(a) << 32 | u64::from(b)) * (i as u128 + 1)) >> 64) as usize;
        order.swap(i, j);
    }
    order
}

/// Random numbers of orders; one purpose for each engine of the list.
const PURPOSE_ORDER: u32 = 0x4000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_permutations_and_differ() {
        let a = shuffled(100, 1, 0, 0);
        let mut sorted = a.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<u32>>());
        assert_ne!(a, shuffled(100, 1, 0, 1));
        assert_ne!(a, shuffled(100, 1, 1, 0));
        assert_eq!(a, shuffled(100, 1, 0, 0));
    }

    #[test]
    fn the_middle_goes_to_the_corner_and_back() {
        for shape in [[4, 6], [5, 3]] {
            let values: Vec<usize> = (0..shape[0] * shape[1]).collect();
            let turned = corner_first(&values, shape);
            assert_eq!(turned[0], shape[0] / 2 * shape[1] + shape[1] / 2);
            assert_eq!(middle_first(&turned, shape), values);
        }
    }

    #[test]
    fn a_support_has_its_area() {
        let inside = disc(0.7, [256, 256]).iter().filter(|x| **x).count() as f64;
        // Pixels on the edge: one in some hundred.
        assert!((inside / 65536.0 / 0.7 - 1.0).abs() < 5e-3, "{inside}");
    }
}
