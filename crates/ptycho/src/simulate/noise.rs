//! Random fields and counts, by Philox: the same on any number of threads.

use num_complex::Complex;
use zellige_engine::ops::fft::{Direction, Plan, Shape};
use zellige_engine::parallel::{chunks, chunks_mut, each, items, items_mut, map};
use zellige_engine::rng::{Philox, open_f64, uniform_f64};

use super::illumination::signed;

/// Purposes of random numbers.
pub(super) const DIFFUSER: u32 = 0x5001;
pub(super) const OBJECT: u32 = 0x5002;
pub(super) const SHAPES: u32 = 0x5006;
pub(super) const POSITIONS: u32 = 0x5007;
pub(super) const ERRORS: u32 = 0x5008;
pub(super) const LIGHT: u32 = 0x5009;
pub(super) const DEAD: u32 = 0x500a;
pub(super) const COUNTS: u32 = 0x500b;

/// White noise blurred by Gaussians of the given root mean square widths in pixels, periodic, scaled to mean 0 and variance 1.
pub(super) fn smooth(shape: [usize; 2], width: [f64; 2], seed: u64, purpose: u32) -> Vec<f64> {
    let philox = Philox::new(purpose, seed);
    let mut data = vec![Complex::default(); shape[0] * shape[1]];
    each(chunks_mut(&mut data, 2), |pair, to| {
        to.iter_mut().zip(philox.normals(0, pair as u64)).for_each(|(to, normal)| *to = Complex::from(normal));
    });
    let mut plan = Plan::new(Shape::frames(shape[0], shape[1], 1));
    plan.run(&mut data, Direction::Forward);
    each(items_mut(&mut data), |i, v| {
        let at = [i / shape[1], i % shape[1]];
        let k2: f64 = (0..2).map(|d| (width[d] * signed(at[d], shape[d]) / shape[d] as f64).powi(2)).sum();
        *v *= (-2.0 * std::f64::consts::PI.powi(2) * k2).exp();
    });
    data[0] = Complex::default();
    plan.run(&mut data, Direction::Inverse);
    // Row by row, so that the sum does not depend on threads.
    let squares = map(chunks(&data, shape[1]), |_, row| row.iter().map(|v| v.re * v.re).sum::<f64>());
    let deviation = (squares.iter().sum::<f64>() / data.len() as f64).sqrt().max(f64::MIN_POSITIVE);
    map(items(&data), |_, v| v.re / deviation)
}

/// Counts of the mean numbers `means`: those of `first` on.
pub(super) fn counts(philox: Philox, first: u64, means: &[f64], into: &mut [f32]) {
    let piece = 1 << 12;
    each((chunks_mut(into, piece), chunks(means, piece)), |n, (into, means)| {
        for ((count, &mean), i) in into.iter_mut().zip(means).zip(first + (n * piece) as u64..) {
            *count = poisson(philox, i, mean) as f32;
        }
    });
}

/// Above this mean the rejection method is used.
const MANY: f64 = 12.0;

/// A Poisson number of the given mean: by inversion for small means, else by transformed rejection (W. Hoermann, Insurance:
/// Mathematics and Economics 12 (1993) 39, algorithm PTRS), whose attempts are the steps of the generator.
pub(super) fn poisson(philox: Philox, index: u64, mean: f64) -> f64 {
    if mean <= 0.0 {
        return 0.0;
    }
    if mean < MANY {
        let [a, b, ..] = philox.draw(0, index);
        let u = uniform_f64(a, b);
        let (mut k, mut p) = (0.0, (-mean).exp());
        let mut sum = p;
        // Terms vanish long before this bound.
        while u >= sum && k < 200.0 {
            k += 1.0;
            p *= mean / k;
            sum += p;
        }
        return k;
    }
    let b = 0.931 + 2.53 * mean.sqrt();
    let a = -0.059 + 0.02483 * b;
    let inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
    let accept = 0.9277 - 3.6224 / (b - 2.0);
    for attempt in 0.. {
        let words = philox.draw(attempt, index);
        let u = open_f64(words[0], words[1]) - 0.5;
        let v = open_f64(words[2], words[3]);
        let us = 0.5 - u.abs();
        let k = ((2.0 * a / us + b) * u + mean + 0.43).floor();
        if us >= 0.07 && v <= accept {
            return k;
        }
        if k < 0.0 || (us < 0.013 && v > us) {
            continue;
        }
        if (v * inverse_alpha / (a / (us * us) + b)).ln() <= k * mean.ln() - mean - ln_factorial(k) {
            return k;
        }
    }
    mean
}

/// Logarithm of k!, by Stirling's series above 10 (error below 1e-10).
fn ln_factorial(k: f64) -> f64 {
    if k < 10.0 {
        return (2..=k as u32).map(|i| f64::from(i).ln()).sum();
    }
    let x = k + 1.0;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3)) + 1.0 / (1260.0 * x.powi(5))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and variance of 2 * 10^5 draws: within 4 standard deviations, seed fixed.
    #[test]
    fn counts_have_the_mean_and_the_variance_of_poisson() {
        let n = 200_000;
        for mean in [0.01, 0.7, 5.0, 11.9, 12.1, 40.0, 3e3, 2e6] {
            let philox = Philox::new(COUNTS, 11);
            let draws: Vec<f64> = (0..n).map(|i| poisson(philox, i, mean)).collect();
            let count = n as f64;
            let average = draws.iter().sum::<f64>() / count;
            let variance = draws.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / count;
            assert!((average - mean).abs() < 4.0 * (mean / count).sqrt(), "mean {mean}: {average}");
            // The fourth central moment is mean + 3 mean^2.
            let sigma = ((mean + 2.0 * mean * mean) / count).sqrt();
            assert!((variance - mean).abs() < 4.0 * sigma, "mean {mean}: variance {variance}");
            assert!(draws.iter().all(|d| *d >= 0.0 && d.fract() == 0.0));
        }
    }

    /// Chi squared against the probabilities themselves, on both sides of the change of method; 4 standard deviations.
    #[test]
    fn counts_are_distributed_as_poisson() {
        let n = 200_000u64;
        for mean in [6.0, 30.0] {
            let philox = Philox::new(COUNTS, 12);
            let bins = 80;
            let mut found = vec![0.0f64; bins];
            for i in 0..n {
                found[(poisson(philox, i, mean) as usize).min(bins - 1)] += 1.0;
            }
            let (mut chi2, mut degrees) = (0.0, -1.0);
            for (k, count) in found.iter().enumerate() {
                let expected = n as f64 * (k as f64 * f64::ln(mean) - mean - ln_factorial(k as f64)).exp();
                if expected > 20.0 {
                    chi2 += (count - expected).powi(2) / expected;
                    degrees += 1.0;
                }
            }
            assert!((chi2 - degrees).abs() < 4.0 * f64::sqrt(2.0 * degrees), "mean {mean}: {chi2} for {degrees}");
        }
    }
}
