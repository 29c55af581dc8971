//! Scan patterns: the positions of the probe.

use std::f64::consts::{PI, TAU};

use zellige_engine::rng::Philox;

use super::config::{PatternConfig, PatternKind, SimulateConfig};
use super::noise;

/// Nominal positions `[y, x]`, m, around zero.
pub(super) fn positions(config: &PatternConfig, frames: usize, step: f64, seed: u64) -> Vec<[f64; 2]> {
    let mut all: Vec<[f64; 2]> = Vec::with_capacity(frames);
    match config.kind {
        PatternKind::Raster => {
            let columns = (frames as f64).sqrt().ceil() as usize;
            all.extend((0..frames).map(|i| [(i / columns) as f64 * step, (i % columns) as f64 * step]));
        }
        PatternKind::Spiral => {
            let golden = PI * (3.0 - 5f64.sqrt());
            // A point takes the area of a square of the step.
            let turn = |i: usize| (step * ((i as f64 + 0.5) / PI).sqrt(), golden * i as f64);
            all.extend((0..frames).map(turn).map(|(r, angle)| [r * angle.sin(), r * angle.cos()]));
        }
        PatternKind::Round => {
            let ring = |k: usize| {
                let count = if k == 0 { 1 } else { (TAU * k as f64).round() as usize };
                (0..count).map(move |i| (k as f64 * step, TAU * i as f64 / count as f64))
            };
            all.extend((0..).flat_map(ring).take(frames).map(|(r, angle)| [r * angle.sin(), r * angle.cos()]));
        }
    }
    let philox = Philox::new(noise::POSITIONS, seed);
    for (i, position) in all.iter_mut().enumerate() {
        let random = philox.uniforms(0, i as u64);
        for d in 0..2 {
            position[d] += config.jitter * step * (random[d] - 0.5);
        }
    }
    let middle = [0, 1].map(|d| all.iter().map(|p| p[d]).sum::<f64>() / all.len().max(1) as f64);
    for position in &mut all {
        *position = [0, 1].map(|d| position[d] - middle[d]);
    }
    all
}

/// Reported and true positions, m.
pub(super) fn both(config: &SimulateConfig, resolution: [f64; 2], seed: u64) -> (Vec<[f64; 2]>, Vec<[f64; 2]>) {
    let size = config.size.both();
    // Resolution of one detector pixel: the step scales with it, however finely the waves are sampled.
    let coarse = config.beam().resolution(size);
    let field = [0, 1].map(|d| size[d] as f64 * coarse[d]);
    let step = config.pattern.step.unwrap_or(0.12 * field[0].min(field[1]));
    let whole = |p: [f64; 2]| if config.pattern.round { [0, 1].map(|d| (p[d] / resolution[d]).round() * resolution[d]) } else { p };
    let reported: Vec<_> = positions(&config.pattern, config.frames, step, seed).into_iter().map(whole).collect();
    if config.position_error == 0.0 {
        return (reported.clone(), reported);
    }
    let philox = Philox::new(noise::ERRORS, seed);
    let moved = |(i, p): (usize, &[f64; 2])| {
        let error = philox.normals(0, i as u64);
        whole([0, 1].map(|d| p[d] + config.position_error * error[d]))
    };
    let real = reported.iter().enumerate().map(moved).collect();
    (reported, real)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nearest neighbours are about a step apart in every pattern, and there are as many positions as asked for.
    #[test]
    fn patterns_have_the_step_asked_for() {
        for kind in [PatternKind::Raster, PatternKind::Spiral, PatternKind::Round] {
            let config = PatternConfig { kind, jitter: 0.0, ..PatternConfig::default() };
            let found = positions(&config, 200, 2.0, 1);
            assert_eq!(found.len(), 200);
            let nearest = |i: usize| {
                let others = (0..found.len()).filter(|&j| j != i);
                others.map(|j| (found[i][0] - found[j][0]).hypot(found[i][1] - found[j][1])).fold(f64::INFINITY, f64::min)
            };
            let mean = (0..found.len()).map(nearest).sum::<f64>() / 200.0;
            assert!((1.6..2.3).contains(&mean), "{kind:?}: {mean}");
        }
    }
}
