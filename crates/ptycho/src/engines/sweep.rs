//! ePIE, rPIE and SDR: view by view in a seeded order.

use num_complex::Complex;
use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;

use super::staged::staged;
use super::{DataSizes, Engine, EngineState, ProblemSize, shuffled};
use crate::config::{Compatibility, EngineConfig, EngineName};
use crate::stages::{Stages, Sweep};

pub(super) struct SweepEngine {
    rule: Sweep,
    start: [u64; 2],
    supports: [Option<f64>; 2],
    views: usize,
    seed: u64,
    number: usize,
    sizes: DataSizes,
    /// Probes keep their power: nothing else tells the scale of object and probe.
    keeps_power: bool,
    /// Group of each probe.
    groups: Vec<usize>,
    /// Modes of a probe.
    modes: usize,
}

/// The part of an old exit wave that is left in the new one is `sigma tau`: at 1 nothing is forgotten, and what frames with noise
/// disagree about piles up from sweep to sweep.
const SIGMA: f64 = 0.25;
/// Relaxation tau, likewise. Their product, 0.19, falls for 120 sweeps of frames of 1e4 to 1e7 photons, from near and far; 0.5 has
/// been seen to grow from the 60th on.
const TAU: f64 = 0.75;
/// Relaxation from which on runs with noise were seen to grow.
const LASTING: f64 = 0.5;

/// SDR's sigma and tau: PtyPy's do not relax at all.
fn relaxations(config: &EngineConfig, compatibility: Compatibility) -> [f64; 2] {
    let [sigma, tau] = if compatibility == Compatibility::Ptypy { [1.0; 2] } else { [SIGMA, TAU] };
    [config.sigma.unwrap_or(sigma), config.tau.unwrap_or(tau)]
}

/// Warns of an SDR that may diverge.
pub fn divergence_warning(config: &EngineConfig, compatibility: Compatibility) -> Option<String> {
    let [sigma, tau] = relaxations(config, compatibility);
    let left = sigma * tau;
    (config.name == EngineName::Sdr && left >= LASTING).then(|| {
        format!(
            "SDR with sigma = {sigma} and tau = {tau} leaves {left} of an exit wave from sweep to sweep: noise piles up and errors grow, the sooner the more is left \
             ({SIGMA} and {TAU} do not)"
        )
    })
}

impl SweepEngine {
    pub(super) fn new(config: &EngineConfig, problem: &ProblemSize, number: usize) -> Self {
        let [object, probe] = [config.object_step, config.probe_step];
        let (a, b, c, step, local) = match config.name {
            EngineName::Sdr => {
                let [sigma, tau] = relaxations(config, problem.compatibility);
                let local = [object.unwrap_or(0.9), probe.unwrap_or(0.1)];
                (1.0 - tau * (1.0 + sigma), tau, 1.0 + sigma, local, local)
            }
            EngineName::Rpie => {
                // The weight of the largest norm is `alpha`; that of the local one is what is left.
                let local = 1.0 - config.alpha.unwrap_or(0.1);
                (0.0, 1.0, 1.0, [object.unwrap_or(0.25), probe.unwrap_or(0.25)], [local; 2])
            }
            _ => (0.0, 1.0, 1.0, [object.unwrap_or(1.0), probe.unwrap_or(1.0)], [0.0; 2]),
        };
        let whole = config.object_norm_is_global.unwrap_or(false);
        // PtyPy's engines of these names count object (probe) once for every mode of probe (object) in the norm, but for a whole object's.
        let times = match config.name {
            EngineName::Rpie => [1.0; 2],
            _ if !problem.ptypy() => [1.0; 2],
            _ => [if whole { 1.0 } else { problem.modes[0] as f64 }, problem.modes[1] as f64],
        };
        let step = [step[0] / times[1], step[1] / times[0]];
        let rule = Sweep {
            a,
            b,
            c,
            step,
            local,
            probe: true,
            object: true,
            batch: config.batch.unwrap_or(1),
            clip: config.object_clip,
            likelihood: config.log_likelihood.unwrap_or(true),
            whole,
        };
        let start = [config.probe_update_start.unwrap_or(0), config.object_update_start.unwrap_or(0)];
        Self {
            rule,
            start,
            supports: super::supports(config, problem.ptypy()),
            views: problem.views,
            seed: problem.seed,
            number,
            sizes: problem.sizes,
            keeps_power: !problem.ptypy() && config.name != EngineName::Sdr && config.object_clip.is_none(),
            groups: problem.groups.clone(),
            modes: problem.modes[0],
        }
    }
}

impl SweepEngine {
    /// Power of the probes of each group, from the [products](Stages::probe_products) of their modes. They keep it over a sweep:
    /// frames tell the product of object and probe alone, and noise, which adds power to both, would let one grow and the other
    /// fade until the unlit rim of the object outshines the rest.
    fn powers(&self, products: &[Complex<f64>]) -> Vec<f64> {
        let mut powers = vec![0.0; self.groups.len()];
        for (set, group) in products.chunks_exact(self.modes * self.modes).zip(&self.groups) {
            powers[*group] += set.iter().step_by(self.modes + 1).map(|p| p.re).sum::<f64>();
        }
        powers
    }

    /// Changes of basis that bring the probes from the powers of their groups after a sweep back to those before it.
    fn back(&self, before: &[f64], after: &[f64]) -> Vec<Complex<f64>> {
        let mut basis = vec![Complex::default(); self.groups.len() * self.modes * self.modes];
        for (set, group) in basis.chunks_exact_mut(self.modes * self.modes).zip(&self.groups) {
            let factor = (before[*group] / after[*group]).sqrt();
            set.iter_mut().step_by(self.modes + 1).for_each(|b| *b = Complex::from(if factor.is_normal() { factor } else { 1.0 }));
        }
        basis
    }
}

impl Engine for SweepEngine {
    fn iterate(&self, stages: &mut dyn Stages, k: u64, _: &mut EngineState, order: Option<&[u32]>, profiler: &mut Profiler) -> Result<()> {
        let rule = Sweep { probe: k >= self.start[0], object: k >= self.start[1], ..self.rule };
        let order = order.map_or_else(|| shuffled(self.views, self.seed, self.number, k), <[u32]>::to_vec);
        let cost = self.sizes.cost(if self.keeps_exits() { 16.0 } else { 0.0 }, 1.0, 2.0);
        let keeps = self.keeps_power && rule.probe && rule.object;
        let before = if keeps { Some(self.powers(&stages.probe_products()?)) } else { None };
        staged(profiler, stages, "sweep", cost, |stages| stages.sweep(&rule, &order))?;
        let Some(before) = before else { return Ok(()) };
        let after = self.powers(&stages.probe_products()?);
        stages.mix_probe(&self.back(&before, &after))
    }

    fn keeps_exits(&self) -> bool {
        self.rule.c != 1.0 || self.rule.a + self.rule.b != 1.0
    }

    fn supports(&self) -> [Option<f64>; 2] {
        self.supports
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Power;

    fn size() -> ProblemSize {
        ProblemSize {
            views: 1,
            views_of_probe: vec![1],
            groups: vec![0],
            modes: [1, 1],
            frame: [8, 8],
            object: 64,
            sizes: DataSizes::default(),
            power: Power::default(),
            noise: Vec::new(),
            seed: 1,
            compatibility: Compatibility::None,
        }
    }

    /// Probes of two scans that see nothing in common, and of two that share an object.
    #[test]
    fn probes_of_a_group_get_back_the_power_that_they_had_together() {
        let size = ProblemSize { views_of_probe: vec![1; 3], groups: vec![0, 1, 1], ..size() };
        let engine = SweepEngine::new(&EngineConfig::new(EngineName::Rpie, 1), &size, 0);
        let before = engine.powers(&[2.0, 8.0, 32.0].map(Complex::from));
        assert_eq!(before, [2.0, 40.0, 0.0]);
        assert_eq!(engine.back(&before, &[8.0, 40.0, 0.0]), [0.5, 1.0, 1.0].map(Complex::from));
        for power in [0.0, f64::INFINITY, f64::NAN] {
            assert_eq!(engine.back(&before, &[power; 3]), [Complex::from(1.0); 3]);
        }
        // Of two modes the products between them do not count.
        let modes = SweepEngine { modes: 2, ..SweepEngine::new(&EngineConfig::new(EngineName::Rpie, 1), &size, 0) };
        let products = [3.0, 9.0, 9.0, 1.0].map(Complex::from).repeat(3);
        assert_eq!(modes.powers(&products), [4.0, 8.0, 0.0]);
        assert_eq!(modes.back(&[4.0, 8.0, 0.0], &[16.0, 2.0, 0.0])[..8], [0.5, 0.0, 0.0, 0.5, 2.0, 0.0, 0.0, 2.0].map(Complex::from));
        let clipped = EngineConfig { object_clip: Some([0.0, 1.0]), ..EngineConfig::new(EngineName::Rpie, 1) };
        assert!(engine.keeps_power && !SweepEngine::new(&clipped, &size, 0).keeps_power);
    }

    /// Relaxed reflections (Pham, Rana, Miao and Osher, Opt. Express 27 (2019) 31246):
    /// `psi <- tau sigma psi + (1 - tau (1 + sigma)) P O + tau F((1 + sigma) P O - sigma psi)`.
    /// The runs of PtyPy that the engine is compared with have both at 1.
    #[test]
    fn a_relaxed_reflection_keeps_what_it_says() {
        let size = size();
        for (sigma, tau) in [(1.0, 1.0), (0.25, 0.75), (0.3, 0.6), (0.0, 1.0)] {
            let config = EngineConfig { sigma: Some(sigma), tau: Some(tau), ..EngineConfig::new(EngineName::Sdr, 1) };
            let Sweep { a, b, c, .. } = SweepEngine::new(&config, &size, 0).rule;
            // `(1 - a - b) psi + a P O + b F(c P O + (1 - c) psi)`.
            for (found, expected) in [(1.0 - a - b, tau * sigma), (a, 1.0 - tau * (1.0 + sigma)), (b, tau), (c, 1.0 + sigma)] {
                assert!((found - expected).abs() < 1e-15, "{sigma} {tau}: {found}, not {expected}");
            }
        }
    }
}
