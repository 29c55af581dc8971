//! ML: maximum likelihood by conjugate gradients (Polak and Ribiere) with a step found from the second-order expansion along the
//! direction. Thibault and Guizar-Sicairos, New J. Phys. 14 (2012) 063004.

use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;
use zellige_engine::sim::Cost;

use super::staged::staged;
use super::{DataSizes, Engine, EngineState, ProblemSize};
use crate::config::{EngineConfig, NoiseName};
use crate::stages::{Likelihood, Noise, Slot, Stages};

/// Weight of the past in the running ratio of the gradients.
const SCALE_MEMORY: f64 = 0.9;
/// Steps that are tried where the expansion along the direction has no minimum; the last is a two-thousandth of the first.
const TRIALS: u32 = 12;
/// Squared norm of the probe's gradient below which there is none.
const NO_GRADIENT: f64 = 1e-5;
/// PtyPy's damping of the wavefield preconditioner.
const WAVEFIELD_DAMPING: f64 = 0.1;
/// A further step along a direction that is shorter than this, relative to all of them, is one of rounding.
const SHORT: f64 = 1e-7;

pub(super) struct LikelihoodEngine {
    rule: Likelihood,
    /// Strength of the smoothness in the gradient.
    smoothness: f64,
    start: [u64; 2],
    supports: [Option<f64>; 2],
    scaled: bool,
    probe_scale: f64,
    /// Damping of probe and object in the wavefield preconditioner, where it is asked for.
    wavefield: Option<[f64; 2]>,
    line_steps: u32,
    smooth: f64,
    decay: f64,
    /// Smooths a direction once more than the gradient, as PtyPy does.
    smooth_twice: bool,
    clip: Option<[f64; 2]>,
    sizes: DataSizes,
}

impl LikelihoodEngine {
    pub(super) fn new(config: &EngineConfig, problem: &ProblemSize) -> Self {
        let noise = match config.noise.unwrap_or_default() {
            NoiseName::Gaussian => Noise::Gaussian,
            NoiseName::Poisson => Noise::Poisson,
            NoiseName::Euclid => Noise::Euclid,
        };
        // The expected variance of the object's values is pixels over photons; eight differences a pixel: PtyPy's scale, by which
        // a strength of 1 weighs about as much as the data.
        let measured = (problem.views * problem.frame[0] * problem.frame[1]) as f64;
        let pixels = problem.object as f64;
        let rescale = measured * problem.power.total / (8.0 * pixels * pixels);
        let rule = Likelihood {
            noise,
            floating: config.floating_intensities.unwrap_or(false),
            floating_left_out: problem.ptypy(),
            smoothness: config.smoothness.unwrap_or(0.0) * rescale,
            probe: true,
            object: true,
        };
        // PtyPy's gradients of these two are twice the derivative, which nothing else sees.
        let twice = problem.ptypy() && noise != Noise::Gaussian;
        Self {
            rule,
            smoothness: rule.smoothness * if twice { 0.5 } else { 1.0 },
            start: [config.probe_update_start.unwrap_or(2), config.object_update_start.unwrap_or(0)],
            supports: super::supports(config, problem.ptypy()),
            scaled: config.scale_preconditioner.unwrap_or(!problem.ptypy()),
            probe_scale: config.probe_scale.unwrap_or(1.0),
            wavefield: (config.wavefield_preconditioner == Some(true)).then(|| {
                [config.wavefield_probe_damping, config.wavefield_object_damping].map(|damping| damping.unwrap_or(WAVEFIELD_DAMPING))
            }),
            line_steps: config.line_steps.unwrap_or(1),
            smooth: config.smooth_gradient.unwrap_or(0.0),
            decay: config.smooth_gradient_decay.unwrap_or(if problem.ptypy() { 1.0 } else { 0.95 }),
            smooth_twice: problem.ptypy(),
            clip: config.object_clip,
            sizes: problem.sizes,
        }
    }

    /// The wavefield preconditioner on the gradient. What is summed comes from the caches.
    fn wavefield(&self, stages: &mut dyn Stages, damping: [f64; 2], profiler: &mut Profiler) -> Result<()> {
        let cost = self.sizes.cost(0.0, 0.0, 0.0);
        staged(profiler, stages, "wavefield", cost, |stages| stages.wavefield(Slot::Gradient, damping))
    }

    /// Ratio by which the probe's part of the gradient is scaled.
    fn scale(&self, [probe, object]: [f64; 2], memory: &EngineState) -> f64 {
        if !self.scaled {
            return self.probe_scale;
        }
        let now = if probe > NO_GRADIENT { self.probe_scale * object / probe } else { self.probe_scale };
        // There is no past in the first iteration, whichever number it has.
        if memory.scale == 0.0 { now } else { memory.scale.powf(SCALE_MEMORY) * now.powf(1.0 - SCALE_MEMORY) }
    }
}

/// The longest of the steps `t`, `t / 2`, .. after which the value is below `value`; 0 if there is none. The state is put back, the
/// gradient and the errors of the views are those of the last trial.
fn backtrack(stages: &mut dyn Stages, rule: &Likelihood, t: f64, value: f64, (profiler, cost): (&mut Profiler, Cost)) -> Result<f64> {
    let mut length = t;
    for _ in 0..TRIALS {
        stages.combine(Slot::State, [1.0; 2], Slot::Direction, [length; 2])?;
        let found = staged(profiler, stages, "gradient", cost, |stages| stages.gradient(rule))?;
        stages.combine(Slot::State, [1.0; 2], Slot::Direction, [-length; 2])?;
        if found < value {
            return Ok(length);
        }
        length *= 0.5;
    }
    Ok(0.0)
}

impl Engine for LikelihoodEngine {
    fn iterate(&self, stages: &mut dyn Stages, k: u64, memory: &mut EngineState, _: Option<&[u32]>, profiler: &mut Profiler) -> Result<()> {
        let rule = Likelihood { probe: k >= self.start[0], object: k >= self.start[1], ..self.rule };
        let of_gradient = Likelihood { smoothness: self.smoothness, ..rule };
        // Waves of the gradient written, and read for the sums of object and probe; nothing but moduli is read along a line.
        let (gradient, line) = (self.sizes.cost(24.0, 1.0, 2.0), self.sizes.cost(0.0, 1.0, 3.0));
        memory.value = staged(profiler, stages, "gradient", gradient, |stages| stages.gradient(&of_gradient))?;
        stages.support(Slot::Gradient)?;
        if let Some(damping) = self.wavefield {
            self.wavefield(stages, damping, profiler)?;
        }
        let sigma = self.smooth * self.decay.powf(k as f64 + 1.0);
        // A Gaussian that narrow leaves every pixel as it is, to a hundredth.
        if sigma > 0.3 {
            stages.smooth_object(Slot::Gradient, sigma)?;
        }
        let norms = stages.dot(Slot::Gradient, Slot::Gradient)?;
        let s = self.scale(norms, memory);
        memory.scale = s;
        let mut turn = 0.0;
        if k > 0 && memory.length != 0.0 {
            let mixed = stages.dot(Slot::Gradient, Slot::Last)?;
            let last = stages.dot(Slot::Last, Slot::Last)?;
            let down = s * last[0] + last[1];
            let up = s * (norms[0] - mixed[0]) + norms[1] - mixed[1];
            turn = if down > 0.0 { (up / down).max(0.0) / memory.length } else { 0.0 };
        }
        stages.combine(Slot::Last, [0.0; 2], Slot::Gradient, [s, 1.0])?;
        // The preconditioner stands once in the gradient, whose products are those of its root, and once more in the direction.
        if let Some(damping) = self.wavefield {
            self.wavefield(stages, damping, profiler)?;
        }
        if sigma > 0.3 && self.smooth_twice {
            stages.smooth_object(Slot::Gradient, sigma)?;
        }
        stages.combine(Slot::Direction, [turn; 2], Slot::Gradient, [-s, -1.0])?;
        let [mut b1, mut b2] = staged(profiler, stages, "line", line, |stages| stages.line(&rule))?;
        if !(b2 > 0.0 && b1 < 0.0) && turn > 0.0 {
            // The direction does not lead down: begin again along the gradient.
            stages.combine(Slot::Direction, [0.0; 2], Slot::Gradient, [-s, -1.0])?;
            [b1, b2] = staged(profiler, stages, "line", line, |stages| stages.line(&rule))?;
        }
        let t = -0.5 * b1 / b2;
        memory.length = match t.is_finite() {
            true if b2 > 0.0 => t,
            // Downhill without a minimum, as where the model is much darker than the frames: the iteration would be the same for ever.
            true if b1 < 0.0 => backtrack(stages, &of_gradient, -t, memory.value, (profiler, gradient))?,
            _ => 0.0,
        };
        stages.combine(Slot::State, [1.0; 2], Slot::Direction, [memory.length; 2])?;
        for _ in 1..self.line_steps {
            // From here again: the expansion of the same value along the same line.
            [b1, b2] = staged(profiler, stages, "line", line, |stages| stages.line(&rule))?;
            let more = -0.5 * b1 / b2;
            if !(b2 > 0.0 && more.is_finite() && more.abs() > SHORT * memory.length.abs()) {
                break;
            }
            stages.combine(Slot::State, [1.0; 2], Slot::Direction, [more; 2])?;
            memory.length += more;
        }
        stages.combine(Slot::Direction, [memory.length; 2], Slot::Last, [0.0; 2])?;
        if let Some(range) = self.clip {
            stages.clip(range)?;
        }
        Ok(())
    }

    fn keeps_exits(&self) -> bool {
        false
    }

    fn supports(&self) -> [Option<f64>; 2] {
        self.supports
    }
}
