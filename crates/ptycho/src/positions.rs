//! Refinement of positions, for every engine: between iterations, each view looks whether it would fit better elsewhere.
//!
//! Annealing and grid: Maiden, Humphry, Sarahan, Kraus and Rodenburg, Ultramicroscopy 120 (2012) 64. Gradient: Gauss and Newton's step of the
//! squared deviation of the moduli by the place (Dwivedi, Konijnenberg, Pereira and Urbach, Ultramicroscopy 192 (2018) 29).

use zellige_engine::error::Result;
use zellige_engine::rng::Philox;

use crate::config::{PositionConfig, PositionMethod};
use crate::model::{Storage, View};
use crate::stages::Stages;

/// Random trials; one purpose for each engine of the list.
const PURPOSE_TRIALS: u32 = 0x5000;
/// Default reach, pixels.
const REACH: f64 = 2.0;
/// Default limit, pixels.
const LIMIT: f64 = 8.0;

/// What a refinement must know.
pub struct Frame<'a> {
    /// Rows and columns of a frame.
    pub frame: [usize; 2],
    /// Pixel of the sample plane, metres.
    pub pixel: [f64; 2],
    /// The objects.
    pub storages: &'a [Storage],
    /// Where the views were reported to be, rows and columns with fractions.
    pub reported: &'a [[f64; 2]],
    /// Seed of trials.
    pub seed: u64,
    /// Number of the engine.
    pub number: usize,
    /// Whether views see the probe between pixels.
    pub subpixel: bool,
}

impl PositionConfig {
    /// Whether a refinement follows iteration `k` of `iterations`.
    pub fn due(&self, k: u64, iterations: u64) -> bool {
        k >= self.start && k < self.end(iterations) && (k - self.start).is_multiple_of(self.every)
    }

    fn end(&self, iterations: u64) -> u64 {
        self.stop.unwrap_or(iterations).min(iterations)
    }

    /// What is left of the way to the end, 1 to 0.
    fn left(&self, k: u64, iterations: u64) -> f64 {
        let all = self.end(iterations).saturating_sub(self.start).max(1) as f64;
        1.0 - (k - self.start) as f64 / all
    }
}

impl Frame<'_> {
    /// Whether a view at this place is inside its object and not too far from where it was reported to be.
    fn allowed(&self, j: usize, view: &View, limit: [f64; 2]) -> bool {
        let storage = &self.storages[view.object as usize];
        let place = [view.row, view.col];
        (0..2).all(|d| {
            let inside = place[d] >= 0 && place[d] as usize + self.frame[d] <= storage.shape[d];
            inside && (f64::from(place[d]) - self.reported[j][d]).abs() <= limit[d]
        })
    }
}

/// One refinement after iteration `k`; gives the root mean square of the moves, pixels.
pub fn refine(stages: &mut dyn Stages, config: &PositionConfig, frame: &Frame, k: u64, iterations: u64) -> Result<f64> {
    let limit = frame.pixel.map(|p| config.limit.map_or(LIMIT, |l| l / p));
    let (views, shifts) = stages.views();
    let (mut views, mut shifts) = (views.to_vec(), shifts.to_vec());
    let before: Vec<[f64; 2]> = views.iter().zip(&shifts).map(|(v, s)| exact(v, *s)).collect();
    if config.method == PositionMethod::Gradient {
        for (j, slope) in stages.slope()?.into_iter().enumerate() {
            let step = newton(slope);
            let old = exact(&views[j], shifts[j]);
            // The slope was taken where the view looks, on whole pixels unless it sees the probe between them: what it says is relative to that.
            let from = exact(&views[j], if frame.subpixel { shifts[j] } else { [0.0; 2] });
            let goal = [from[0] + step[0], from[1] + step[1]];
            let new = [0, 1].map(|d| {
                let reported = frame.reported[j][d];
                (old[d] + config.step * (goal[d] - old[d])).clamp(reported - limit[d], reported + limit[d])
            });
            let whole = new.map(f64::round);
            let view = View { row: whole[0] as i32, col: whole[1] as i32, ..views[j] };
            if frame.allowed(j, &view, limit.map(|l| l + 0.5)) {
                views[j] = view;
                shifts[j] = [new[0] - whole[0], new[1] - whole[1]];
            }
        }
    } else {
        let reach = frame.pixel.map(|p| config.amplitude.map_or(REACH, |a| a / p) * config.left(k, iterations));
        let mut best = stages.trial(&vec![[0; 2]; views.len()])?;
        let mut moves = vec![[0; 2]; views.len()];
        for trial in trials(config, frame, views.len(), k, reach) {
            let allowed = |(j, by): (usize, &[i32; 2])| {
                let moved = View { row: views[j].row + by[0], col: views[j].col + by[1], ..views[j] };
                if frame.allowed(j, &moved, limit) { *by } else { [0; 2] }
            };
            let trial: Vec<[i32; 2]> = trial.iter().enumerate().map(allowed).collect();
            for (j, error) in stages.trial(&trial)?.into_iter().enumerate() {
                if error < best[j] {
                    (best[j], moves[j]) = (error, trial[j]);
                }
            }
        }
        for (j, by) in moves.into_iter().enumerate().filter(|(_, by)| *by != [0; 2]) {
            (views[j].row, views[j].col) = (views[j].row + by[0], views[j].col + by[1]);
            if !frame.subpixel {
                shifts[j] = [0.0; 2];
            }
        }
    }
    let moved = |(j, (v, s)): (usize, (&View, &[f64; 2]))| {
        let now = exact(v, *s);
        (0..2).map(|d| (now[d] - before[j][d]).powi(2)).sum::<f64>()
    };
    let square: f64 = views.iter().zip(&shifts).enumerate().map(moved).sum();
    stages.set_views(&views, &shifts)?;
    Ok((square / before.len().max(1) as f64).sqrt())
}

/// Rows and columns with fractions.
pub fn exact(view: &View, shift: [f64; 2]) -> [f64; 2] {
    [f64::from(view.row) + shift[0], f64::from(view.col) + shift[1]]
}

/// Gauss and Newton's step, at most a pixel along each axis.
fn newton([gy, gx, hyy, hxx, hyx]: [f64; 5]) -> [f64; 2] {
    // A little of Levenberg's: directions that the frame knows nothing of stay.
    let (hyy, hxx) = (hyy * (1.0 + 1e-3), hxx * (1.0 + 1e-3));
    let det = hyy * hxx - hyx * hyx;
    if det <= 0.0 || det.is_nan() {
        return [0.0; 2];
    }
    [(hyx * gx - hxx * gy) / det, (hyx * gy - hyy * gx) / det].map(|s| s.clamp(-1.0, 1.0))
}

/// Moves to try, of all views at a time.
fn trials(config: &PositionConfig, frame: &Frame, views: usize, k: u64, reach: [f64; 2]) -> Vec<Vec<[i32; 2]>> {
    let whole = |y: f64, x: f64| [(y * reach[0]).round() as i32, (x * reach[1]).round() as i32];
    if config.method == PositionMethod::Grid {
        let step = |sign: i32, d: usize| sign * (reach[d].round() as i32).max(1);
        let around = (-1..=1).flat_map(|y| (-1..=1).map(move |x| (y, x))).filter(|at| *at != (0, 0));
        return around.map(|(y, x)| vec![[step(y, 0), step(x, 1)]; views]).collect();
    }
    let philox = Philox::new(PURPOSE_TRIALS + frame.number as u32, frame.seed);
    let one = |trial: u32| {
        let at = |j: usize| {
            let [radius, angle] = philox.uniforms(k << 10 | u64::from(trial), j as u64);
            let (sin, cos) = (std::f64::consts::TAU * angle).sin_cos();
            whole(radius.sqrt() * sin, radius.sqrt() * cos)
        };
        (0..views).map(at).collect()
    };
    (0..config.trials).map(one).collect()
}
