//! Refinement of positions, for every engine: between iterations, each view looks whether it would fit better elsewhere.
//!
//! Annealing and grid: Maiden, Humphry, Sarahan, Kraus and Rodenburg, Ultramicroscopy 120 (2012) 64. Gradient: Gauss and Newton's
//! step of the squared deviation of the moduli with respect to the position (Dwivedi, Konijnenberg, Pereira and Urbach,
//! Ultramicroscopy 192 (2018) 29).

use zellige_engine::error::Result;
use zellige_engine::rng::Philox;

use crate::config::{AffinePart, PositionConfig, PositionMethod};
use crate::model::{Storage, View};
use crate::stages::Stages;

/// Random trials; one purpose for each engine of the list.
const PURPOSE_TRIALS: u32 = 0x5000;
/// Default reach, pixels.
const REACH: f64 = 2.0;
/// Default limit, pixels.
const LIMIT: f64 = 8.0;

/// Conditions of a position refinement.
pub struct RefinementContext<'a> {
    /// Rows and columns of a frame.
    pub frame: [usize; 2],
    /// Pixel of the sample plane, metres.
    pub pixel: [f64; 2],
    /// The objects.
    pub storages: &'a [Storage],
    /// Reported positions of the views, rows and columns with fractions.
    pub reported: &'a [[f64; 2]],
    /// Seed of trials.
    pub seed: u64,
    /// Number of the engine.
    pub number: usize,
    /// Marks sub-pixel shifts of the probe.
    pub subpixel: bool,
}

impl PositionConfig {
    /// Returns true if a refinement follows iteration `k` of `iterations`.
    pub fn due(&self, k: u64, iterations: u64) -> bool {
        k >= self.start && k < self.end(iterations) && (k - self.start).is_multiple_of(self.every)
    }

    fn end(&self, iterations: u64) -> u64 {
        self.stop.unwrap_or(iterations).min(iterations)
    }

    /// Returns true if no refinement follows the one after iteration `k`.
    fn last(&self, k: u64, iterations: u64) -> bool {
        k.saturating_add(self.every) >= self.end(iterations)
    }

    /// Fraction of the iterations left, 1 to 0.
    fn left(&self, k: u64, iterations: u64) -> f64 {
        let all = self.end(iterations).saturating_sub(self.start).max(1) as f64;
        1.0 - (k - self.start) as f64 / all
    }
}

impl RefinementContext<'_> {
    /// Returns true if a view at this position is inside its object and not too far from its reported position.
    fn allowed(&self, j: usize, view: &View, limit: [f64; 2]) -> bool {
        let storage = &self.storages[view.object as usize];
        let position = [view.row, view.col];
        (0..2).all(|d| {
            let inside = position[d] >= 0 && position[d] as usize + self.frame[d] <= storage.shape[d];
            inside && (f64::from(position[d]) - self.reported[j][d]).abs() <= limit[d]
        })
    }
}

/// One refinement after iteration `k`; gives the root mean square of the moves, pixels.
pub fn refine(stages: &mut dyn Stages, config: &PositionConfig, frame: &RefinementContext, k: u64, iterations: u64) -> Result<f64> {
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
    if config.affine == AffinePart::Removed && config.last(k, iterations) {
        remove_affine(frame, (&mut views, &mut shifts), limit);
    }
    let moved = |(j, (v, s)): (usize, (&View, &[f64; 2]))| {
        let now = exact(v, *s);
        (0..2).map(|d| (now[d] - before[j][d]).powi(2)).sum::<f64>()
    };
    let square: f64 = views.iter().zip(&shifts).enumerate().map(moved).sum();
    stages.set_views(&views, &shifts)?;
    Ok((square / before.len().max(1) as f64).sqrt())
}

/// Fewer views than this on an object have no affine part worth the name: it has six numbers.
const FEWEST: usize = 8;

/// The affine map of positions that fits their moves best: `shift + matrix (position - middle)`, pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Affine {
    middle: [f64; 2],
    /// Mean of the moves.
    pub shift: [f64; 2],
    /// Stretches on the diagonal, turn and shear beside it.
    pub matrix: [[f64; 2]; 2],
}

impl Affine {
    /// Fits the affine part of moves `by` from positions `from`; `None` for fewer than eight positions or positions on a line.
    pub fn of(from: &[[f64; 2]], by: &[[f64; 2]]) -> Option<Self> {
        if from.len() < FEWEST {
            return None;
        }
        let mean = |values: &[[f64; 2]]| [0, 1].map(|d| values.iter().map(|v| v[d]).sum::<f64>() / values.len() as f64);
        let (middle, shift) = (mean(from), mean(by));
        let product = |values: &[[f64; 2]], about: [f64; 2], i: usize, j: usize| -> f64 {
            from.iter().zip(values).map(|(x, v)| (x[i] - middle[i]) * (v[j] - about[j])).sum()
        };
        let own = |i, j| product(from, middle, i, j);
        let (yy, xx, yx) = (own(0, 0), own(1, 1), own(0, 1));
        let det = yy * xx - yx * yx;
        // Positions on a line: what goes across it is unknown.
        if det <= 1e-6 * (yy + xx).powi(2) {
            return None;
        }
        let row = |d: usize| {
            let (a, b) = (product(by, shift, 0, d), product(by, shift, 1, d));
            [(a * xx - b * yx) / det, (b * yy - a * yx) / det]
        };
        Some(Self { middle, shift, matrix: [row(0), row(1)] })
    }

    /// The move of a position.
    pub fn at(&self, position: [f64; 2]) -> [f64; 2] {
        let from = [position[0] - self.middle[0], position[1] - self.middle[1]];
        [0, 1].map(|d| self.shift[d] + self.matrix[d][0] * from[0] + self.matrix[d][1] * from[1])
    }
}

/// The affine part of the moves of the views of each object, from where they were reported.
pub fn affine_parts(reported: &[[f64; 2]], views: &[View], shifts: &[[f64; 2]], storages: usize) -> Vec<Option<Affine>> {
    let of = |object: usize| {
        let own = || views.iter().zip(shifts).zip(reported).filter(move |((v, _), _)| v.object as usize == object);
        let from: Vec<[f64; 2]> = own().map(|(_, r)| *r).collect();
        let by: Vec<[f64; 2]> = own().map(|((v, s), r)| (exact(v, *s), r)).map(|(now, r)| [now[0] - r[0], now[1] - r[1]]).collect();
        Affine::of(&from, &by)
    };
    (0..storages).map(of).collect()
}

/// Takes the affine part out of the moves. Frames know next to nothing of it: object and probe stretch, turn and shift along with
/// the positions, and the effect of noise on it accumulates from one refinement to the next.
fn remove_affine(frame: &RefinementContext, (views, shifts): (&mut [View], &mut [[f64; 2]]), limit: [f64; 2]) {
    let parts = affine_parts(frame.reported, views, shifts, frame.storages.len());
    for j in 0..views.len() {
        let Some(part) = &parts[views[j].object as usize] else { continue };
        let (now, by) = (exact(&views[j], shifts[j]), part.at(frame.reported[j]));
        let new = [now[0] - by[0], now[1] - by[1]];
        let whole = new.map(f64::round);
        let view = View { row: whole[0] as i32, col: whole[1] as i32, ..views[j] };
        if frame.allowed(j, &view, limit.map(|l| l + 0.5)) {
            (views[j], shifts[j]) = (view, [new[0] - whole[0], new[1] - whole[1]]);
        }
    }
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
fn trials(config: &PositionConfig, frame: &RefinementContext, views: usize, k: u64, reach: [f64; 2]) -> Vec<Vec<[i32; 2]>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A known stretch, turn and shift of a jittered raster, and a part that is random: the first is found as far as the second
    /// lets it, and is taken out.
    #[test]
    fn a_known_affine_map_is_found_and_removed() {
        let philox = Philox::new(1, 8);
        let reported: Vec<[f64; 2]> = (0..169).map(|j| [40.0 + 6.0 * f64::from(j / 13), 30.0 + 7.0 * f64::from(j % 13)]).collect();
        let random: Vec<[f64; 2]> = (0..169).map(|j| philox.normals(0, j).map(|v| 0.3 * v)).collect();
        let known = Affine { middle: [76.0, 72.0], shift: [0.4, -0.2], matrix: [[0.012, -0.004], [0.006, -0.008]] };
        let storages = [Storage { shape: [200, 200], offset: 0, origin: [0.0; 2] }];
        let (mut views, mut shifts) = (Vec::new(), Vec::new());
        for (position, more) in reported.iter().zip(&random) {
            let by = known.at(*position);
            let now = [0, 1].map(|d| position[d] + by[d] + more[d]);
            let whole = now.map(f64::round);
            views.push(View { probe: 0, object: 0, row: whole[0] as i32, col: whole[1] as i32 });
            shifts.push([now[0] - whole[0], now[1] - whole[1]]);
        }
        let part = affine_parts(&reported, &views, &shifts, 1)[0].unwrap();
        // Random moves of 0.3 pixels over a raster of 22 and 26 pixels in the root mean square: 0.3 / (22 sqrt 169) = 1e-3.
        for (found, known) in part.matrix.iter().flatten().zip(known.matrix.iter().flatten()) {
            assert!((found - known).abs() < 3e-3, "{part:?}");
        }
        let frame = RefinementContext {
            frame: [32, 32],
            pixel: [1e-8; 2],
            storages: &storages,
            reported: &reported,
            seed: 1,
            number: 0,
            subpixel: true,
        };
        remove_affine(&frame, (&mut views, &mut shifts), [8.0; 2]);
        let left: f64 =
            (0..169).map(|j| (0..2).map(|d| (exact(&views[j], shifts[j])[d] - reported[j][d] - random[j][d]).powi(2)).sum::<f64>()).sum();
        let all: f64 = random.iter().flatten().map(|r| r * r).sum();
        // Six numbers of 338 go with the affine part: 1.8 % of the squares.
        assert!(left < 0.04 * all, "{left} of {all}");
        let again = affine_parts(&reported, &views, &shifts, 1)[0].unwrap();
        assert!(again.shift.iter().chain(again.matrix.iter().flatten()).all(|v| v.abs() < 1e-12), "{again:?}");
    }

    #[test]
    fn few_positions_and_positions_on_a_line_have_no_affine_part() {
        let line: Vec<[f64; 2]> = (0..20).map(|j| [f64::from(j), 2.0 * f64::from(j)]).collect();
        assert_eq!(Affine::of(&line, &line), None);
        assert_eq!(Affine::of(&line[..7], &line[..7]), None);
    }
}
