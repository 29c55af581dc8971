//! Rates and frequencies of a mode over time, with their uncertainty and the stretch that they are from.

use std::f64::consts::PI;

/// Number of times at which intervals that are tried begin and end.
const PARTS: usize = 64;
/// A stretch is worth the rise of its logarithm less what that strays from its line, as a root mean square, over this.
const STRAIGHT: f64 = 0.01;
/// Relative uncertainty from which a fit is poor.
const POOR: f64 = 0.1;
/// Root mean square by which zeros stray from even ones, over half a period, from which there is no one frequency: two waves whose
/// amplitudes have the ratio r make it `r / (sqrt(2) pi)`, two equal ones 0.29.
const STRAYING: f64 = 0.1;

/// A figure and where it is from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// Rate or angular frequency.
    pub figure: f64,
    /// Its standard error.
    pub error: f64,
    /// First and last time.
    pub stretch: [f64; 2],
}

impl Fit {
    /// True if it tells little.
    pub fn is_poor(&self) -> bool {
        self.error.is_nan() || self.error > POOR * self.figure.abs()
    }
}

/// Sums over points for a straight line.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    n: f64,
    t: f64,
    a: f64,
    tt: f64,
    ta: f64,
    aa: f64,
}

impl Sums {
    fn with(self, t: f64, a: f64) -> Self {
        Self { n: self.n + 1.0, t: self.t + t, a: self.a + a, tt: self.tt + t * t, ta: self.ta + t * a, aa: self.aa + a * a }
    }

    fn without(self, o: Self) -> Self {
        Self { n: self.n - o.n, t: self.t - o.t, a: self.a - o.a, tt: self.tt - o.tt, ta: self.ta - o.ta, aa: self.aa - o.aa }
    }

    /// Slope and root mean square of the residual.
    fn line(self) -> Option<[f64; 2]> {
        let [tt, ta, aa] = [self.tt - self.t * self.t / self.n, self.ta - self.t * self.a / self.n, self.aa - self.a * self.a / self.n];
        (self.n >= 3.0 && tt > 0.0).then(|| [ta / tt, ((aa - ta * ta / tt).max(0.0) / self.n).sqrt()])
    }
}

fn sums(points: &[(f64, f64)]) -> Sums {
    points.iter().fold(Sums::default(), |s, (t, a)| s.with(*t, *a))
}

/// The crests of a wave that stands or beats: of an amplitude that falls below half of each before the next one. Else all points.
fn envelope(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let crests: Vec<usize> =
        (1..points.len().saturating_sub(1)).filter(|k| points[*k].1 > points[k - 1].1 && points[*k].1 >= points[k + 1].1).collect();
    let dips = crests.windows(2).filter(|w| {
        let least = points[w[0]..w[1]].iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
        least < 0.5 * points[w[0]].1.min(points[w[1]].1)
    });
    if crests.len() >= 5 && 4 * dips.count() >= 3 * (crests.len() - 1) {
        crests.into_iter().map(|k| points[k]).collect()
    } else {
        points.to_vec()
    }
}

/// Rate of an amplitude over time: slope of the logarithm by least squares. Where the stretch is to be found (`search`), it is that
/// over which the amplitude changes most and still exponentially, which leaves out noise before it and saturation after it. The
/// error is that of the slopes of fifths of the stretch.
pub fn growth(points: &[(f64, f64)], search: bool) -> Option<Fit> {
    let points: Vec<(f64, f64)> = envelope(points).iter().filter(|(_, a)| *a > 0.0).map(|(t, a)| (*t, a.ln())).collect();
    let mut range = 0..points.len();
    if search {
        let mut running = vec![Sums::default()];
        // About the first time, so that sums of squares do not cancel.
        let origin = points.first()?.0;
        for (t, a) in &points {
            running.push(running[running.len() - 1].with(t - origin, *a));
        }
        let ends: Vec<usize> = (0..=PARTS).map(|k| k * points.len() / PARTS).collect();
        let mut best = 0.0;
        for (k, from) in ends.iter().enumerate() {
            for to in &ends[k + 1..] {
                let Some([slope, left]) = running[*to].without(running[*from]).line() else { continue };
                let rise = (slope * (points[to - 1].0 - points[*from].0)).abs();
                let worth = rise - left / STRAIGHT;
                if worth > best {
                    (best, range) = (worth, *from..*to);
                }
            }
        }
    }
    let points = &points[range];
    let [figure, _] = sums(points).line()?;
    let fifth = points.len() / 5;
    let slopes: Vec<f64> =
        if fifth >= 3 { points.chunks_exact(fifth).filter_map(|part| Some(sums(part).line()?[0])).collect() } else { Vec::new() };
    let n = slopes.len() as f64;
    let mean = slopes.iter().sum::<f64>() / n;
    let error = (slopes.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt();
    // Too few points for fifths: the line's own error.
    let error = if n > 1.0 { error } else { line_error(points) };
    Some(Fit { figure, error, stretch: [points.first()?.0, points.last()?.0] })
}

/// Standard error of the slope of a line through points of independent errors.
fn line_error(points: &[(f64, f64)]) -> f64 {
    let s = sums(points);
    let Some([_, left]) = s.line() else { return f64::NAN };
    let spread = s.tt - s.t * s.t / s.n;
    if s.n > 2.0 { left * (s.n / (s.n - 2.0) / spread).sqrt() } else { f64::NAN }
}

/// Angular frequency from the zeros of the mode along the direction in which it swings most: they are half a period apart, by least
/// squares.
pub fn frequency(points: &[(f64, f64, f64)]) -> Option<Fit> {
    // The direction is the larger axis of the points' second moments.
    let (xx, xy, yy) = points.iter().fold((0.0, 0.0, 0.0), |(a, b, c), (_, x, y)| (a + x * x, b + x * y, c + y * y));
    let (sin, cos) = (0.5 * f64::atan2(2.0 * xy, xx - yy)).sin_cos();
    let swing: Vec<(f64, f64)> = points.iter().map(|(t, x, y)| (*t, x * cos + y * sin)).collect();
    let zeros: Vec<(f64, f64)> = swing
        .windows(2)
        .filter(|w| (w[0].1 < 0.0) != (w[1].1 < 0.0))
        .enumerate()
        .map(|(k, w)| (k as f64, w[0].0 + (w[1].0 - w[0].0) * w[0].1 / (w[0].1 - w[1].1)))
        .collect();
    let [half, left] = sums(&zeros).line()?;
    let figure = PI / half;
    let ends = [points.first()?.0, points.last()?.0];
    // Errors of zeros among those of two waves are not independent: what their line says of itself is far too little.
    let error = figure / half * if left > STRAYING * half { left } else { line_error(&zeros) };
    Some(Fit { figure, error, stretch: ends })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_and_frequency_of_closed_forms() {
        let times = (0..400).map(|k| 0.05 * f64::from(k));
        let growing: Vec<_> = times.clone().map(|t| (t, 3e-4 * (0.35 * t).exp())).collect();
        for search in [false, true] {
            let fit = growth(&growing, search).unwrap();
            assert!((fit.figure - 0.35).abs() < 1e-10 && fit.error < 1e-10 && !fit.is_poor(), "{fit:?}");
        }
        assert_eq!(growth(&growing[..2], false), None);
        // A straight line between samples misses a zero by (w dt)^2 w dt / 12 of a period at most.
        let swinging: Vec<_> = times.map(|t| (t, 0.6 * (1.7 * t + 0.3).cos(), -0.8 * (1.7 * t + 0.3).cos())).collect();
        let fit = frequency(&swinging).unwrap();
        assert!((fit.figure - 1.7).abs() < 1e-4 && fit.error < 1e-3, "{fit:?}");
        assert_eq!(frequency(&swinging[..10]), None);
    }

    /// Two waves (a magnetised plasma's, at 0.8123 and 1.4423) are no one frequency; a faint second one does not matter.
    #[test]
    fn two_waves_are_no_one_frequency() {
        let waves = |second: f64| -> Vec<(f64, f64, f64)> {
            (0..2000).map(|k| 0.05 * f64::from(k)).map(|t| (t, (0.8123 * t).cos() + second * (1.4423 * t + 0.3).cos(), 0.0)).collect()
        };
        for second in [0.6, 1.0] {
            assert!(frequency(&waves(second)).unwrap().is_poor(), "{second}");
        }
        let fit = frequency(&waves(0.1)).unwrap();
        assert!(!fit.is_poor() && (fit.figure - 0.8123).abs() < 2e-3, "{fit:?}");
    }

    /// Noise before, saturation after: the exponential part alone is fitted, and its rate is inside a few of its errors.
    #[test]
    fn the_exponential_part_is_found() {
        let amplitude = |t: f64| {
            let wave = 1e-5 * (0.35 * t).exp();
            wave / (1.0 + wave / 0.1) + 2e-5 * (1.0 + 0.3 * (7.3 * t).sin())
        };
        let points: Vec<_> = (0..1200).map(|k| (0.05 * f64::from(k), amplitude(0.05 * f64::from(k)))).collect();
        let fit = growth(&points, true).unwrap();
        assert!((fit.figure - 0.35).abs() < 0.02 && (fit.figure - 0.35).abs() < 4.0 * fit.error, "{fit:?}");
        assert!(fit.stretch[0] > 1.0 && fit.stretch[1] < 30.0, "{fit:?}");
        // The second half is saturated, and says so.
        assert!(growth(&points[600..], false).unwrap().is_poor());
    }

    /// A standing wave that is damped: its crests, not its zeros.
    #[test]
    fn a_damped_standing_wave_has_its_rate() {
        let wave = |t: f64| ((-0.0126 * t).exp() * (1.16 * t).cos()).abs();
        let points: Vec<_> = (0..2000).map(|k| 0.02 * f64::from(k)).map(|t| (t, wave(t))).collect();
        let fit = growth(&points, true).unwrap();
        assert!((fit.figure + 0.0126).abs() < 2e-4, "{fit:?}");
    }
}
