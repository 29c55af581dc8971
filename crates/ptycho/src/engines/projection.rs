//! DM and RAAR: the Fourier step for all views, then the overlap loop.

use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;

use super::staged::staged;
use super::{DataSizes, Engine, EngineState, ProblemSize};
use crate::config::{EngineConfig, EngineName};
use crate::stages::{ObjectLimits, Overlap, Projection, Stages};

/// Default relaxation of the modulus.
const RELAX: f64 = 0.05;
/// Part of what photon noise makes of the mean squared deviation of a frame's moduli that is let through. With all of it faint
/// frames are inside their bound before anything is found; with none of it noise keeps them moving. Between 0.3 and 0.8 objects of
/// simulated scans of 1e4 to 1e6 photons a frame come within a third of the best, and from 1e7 on all parts do.
const NOISE: f64 = 0.5;
/// Frames are at rest where the mean squared change of their exit waves is less than this part of the mean counts of a pixel: a
/// thousandth of the modulus.
const REST: f64 = 1e-6;

/// Bound on the mean squared deviation of the moduli: a quarter, the variance of a Poisson modulus, of the relaxation squared, of
/// the brightest frame's mean counts.
pub fn bound(relax: f64, problem: &ProblemSize) -> f64 {
    0.25 * relax * relax * problem.power.max / (problem.frame[0] * problem.frame[1]) as f64
}

pub(super) struct ProjectionEngine {
    projection: Projection,
    overlap: Overlap,
    start: [u64; 2],
    supports: [Option<f64>; 2],
    sizes: DataSizes,
    /// Mean variance of the moduli of each frame, and mean counts of a pixel.
    noise: Vec<f64>,
    mean: f64,
}

impl ProjectionEngine {
    pub(super) fn new(config: &EngineConfig, problem: &ProblemSize) -> Self {
        let (a, b, c) = match config.name {
            EngineName::Raar => {
                let beta = config.beta.unwrap_or(0.75);
                (1.0 - 2.0 * beta, beta, 2.0)
            }
            _ => {
                let alpha = config.alpha.unwrap_or(1.0);
                (-alpha, 1.0, 1.0 + alpha)
            }
        };
        let [bound, noise] = match (config.fourier_bound, config.fourier_relax) {
            _ if config.bounds_of_views => [0.0, 1.0],
            (Some(given), _) => [given, 0.0],
            // PtyPy's grows with the light: from 1e8 photons a frame on nothing moves any more.
            (None, None) if !problem.ptypy() => [0.0, NOISE],
            (None, relax) => [bound(relax.unwrap_or(RELAX), problem), 0.0],
        };
        let layers = problem.views_of_probe.len() * problem.modes[0];
        let inertia = config.probe_inertia.unwrap_or(1e-9);
        // A view of K exit waves counts K times, over the layers of all probes: PtyPy's rule.
        let weight = |views: &usize| inertia * (views * problem.modes[0] * problem.modes[1]) as f64 / layers as f64;
        Self {
            projection: Projection { a, b, c, bound, noise, likelihood: config.log_likelihood.unwrap_or(true) },
            overlap: Overlap {
                probe: true,
                object: true,
                object_first: config.object_first.unwrap_or(true),
                tolerance: config.overlap_tolerance.unwrap_or(0.05),
                passes: config.overlap_passes.unwrap_or(10),
                object_inertia: config.object_inertia.unwrap_or(1e-4) * problem.power.mean,
                probe_inertia: problem.views_of_probe.iter().map(weight).collect(),
                limits: ObjectLimits { clip: config.object_clip, smooth: config.object_smooth.filter(|s| *s > 0.0) },
            },
            start: [config.probe_update_start.unwrap_or(2), config.object_update_start.unwrap_or(0)],
            supports: super::supports(config, problem.ptypy()),
            sizes: problem.sizes,
            noise: problem.noise.clone(),
            mean: problem.power.mean,
        }
    }
}

impl Engine for ProjectionEngine {
    fn iterate(&self, stages: &mut dyn Stages, k: u64, memory: &mut EngineState, _: Option<&[u32]>, profiler: &mut Profiler) -> Result<()> {
        // The state read and written, exit waves written.
        let cost = self.sizes.cost(24.0, 1.0, if self.projection.likelihood { 3.0 } else { 2.0 });
        staged(profiler, stages, "fourier", cost, |stages| stages.project(&self.projection))?;
        let (probe, object) = (k >= self.start[0], k >= self.start[1]);
        if probe || object {
            let rule = Overlap { probe, object, ..self.overlap.clone() };
            // Exit waves read once for each sum, in as many passes as the loop before took.
            let sums = f64::from(u8::from(probe) + u8::from(object)) * f64::from(memory.passes.max(1));
            let cost = self.sizes.cost(8.0 * sums, 0.0, 0.0);
            memory.passes = staged(profiler, stages, "overlap", cost, |stages| stages.overlap(&rule))?;
        }
        Ok(())
    }

    fn keeps_exits(&self) -> bool {
        true
    }

    fn supports(&self) -> [Option<f64>; 2] {
        self.supports
    }

    fn at_rest(&self, errors: &[[f64; 3]], first: usize) -> usize {
        let Projection { bound, noise, .. } = self.projection;
        let rests = |(error, own): &(&[f64; 3], &f64)| error[0] <= bound + noise * **own && error[2] <= REST * self.mean;
        errors.iter().zip(&self.noise[first..]).filter(rests).count()
    }
}
