//! Deviation that photon noise alone leaves between a frame and its true intensities, estimated from the counts.

use zellige_engine::parallel::{chunks, map};

/// Estimates of [`modulus_variance`] from counts of 0 to 5 photons, by least squares of the relative deviation for means of 0.003
/// to 30: the mean over Poisson's counts is within 4 % of the variance whatever the mean. A pixel of mean count l << 1 has the
/// variance l, one with much light 1/4.
const VARIANCES: [f64; 6] = [0.0, 0.998, 0.063, 0.277, 0.407, 0.25];

/// Estimate of the variance of a Poisson modulus from its counts.
pub fn modulus_variance(counts: f64) -> f64 {
    let (low, last) = (counts.max(0.0) as usize, VARIANCES.len() - 1);
    if low >= last {
        return VARIANCES[last];
    }
    let part = counts.max(0.0) - low as f64;
    VARIANCES[low] + part * (VARIANCES[low + 1] - VARIANCES[low])
}

/// Estimates, from counts likewise, of the squared deviation of the counts divided by the counts plus one, within 8 % of its mean;
/// 1 from 5 photons on.
const DEVIATIONS: [f64; 5] = [0.0, 0.498, 1.446, 0.605, 2.173];

/// Sums over pixels that count: squared deviation of modelled intensities from the counts over the counts plus one, what photon
/// noise makes of it, and the counts' own squares over the same.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub struct NoiseStatistics {
    deviation: f64,
    noise: f64,
    power: f64,
}

impl NoiseStatistics {
    /// Sums of a frame: its moduli, as `mag` of the model has them, and the model's intensities.
    pub fn of(mag: &[f32], intensity: &[f64]) -> Self {
        let mut sums = Self::default();
        for (m, i) in mag.iter().zip(intensity).filter(|(m, _)| **m >= 0.0) {
            let counts = f64::from(*m).powi(2);
            let over = 1.0 / (counts + 1.0);
            sums.deviation += (i - counts).powi(2) * over;
            sums.power += counts * counts * over;
            // Counts that are not whole have no noise of their own below a photon: nearest.
            sums.noise += DEVIATIONS.get(counts.round() as usize).copied().unwrap_or(1.0);
        }
        sums
    }

    /// The part of the counts that the model does not explain, beyond twice what photon noise alone makes; 0 where noise explains
    /// all.
    pub fn unexplained(&self) -> f64 {
        (self.deviation - 2.0 * self.noise).max(0.0) / self.power.max(f64::MIN_POSITIVE)
    }
}

impl std::ops::AddAssign for NoiseStatistics {
    fn add_assign(&mut self, other: Self) {
        self.deviation += other.deviation;
        self.noise += other.noise;
        self.power += other.power;
    }
}

/// Values of each frame of `pixels` pixels, with moduli as `mag` of the model has them: one over the number of pixels that count,
/// and their mean [`modulus_variance`] in single precision.
pub fn of_frames(mag: &[f32], pixels: usize) -> Vec<[f64; 2]> {
    map(chunks(mag, pixels), |_, frame| {
        let counted = || frame.iter().filter(|m| **m >= 0.0);
        let over = 1.0 / counted().count().max(1) as f64;
        let sum: f64 = counted().map(|m| modulus_variance(f64::from(m * m))).sum();
        [over, f64::from((sum * f64::from(over as f32)) as f32)]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Poisson's probabilities of 0 to 199 photons.
    fn poisson(mean: f64) -> impl Iterator<Item = (f64, f64)> {
        let mut p = (-mean).exp();
        (0..200).map(move |n| {
            let here = p;
            p *= mean / f64::from(n + 1);
            (f64::from(n), here)
        })
    }

    #[test]
    fn counts_tell_the_variance_of_their_moduli() {
        for mean in [0.003, 0.03, 0.1, 0.3, 0.6, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 40.0] {
            let of = |value: fn(f64) -> f64| poisson(mean).map(|(n, p)| p * value(n)).sum::<f64>();
            let variance = mean - of(f64::sqrt).powi(2);
            let found = of(modulus_variance);
            // Agreement that six numbers can reach.
            assert!((found / variance - 1.0).abs() < 0.04, "mean {mean}: {found}, not {variance}");
        }
        assert!((modulus_variance(0.5) - 0.499).abs() < 1e-12, "between counts it goes straight");
    }

    #[test]
    fn a_model_of_the_mean_explains_counts_at_any_dose_and_a_wrong_one_does_not() {
        for mean in [0.02, 0.3, 2.0, 30.0] {
            let [mut deviation, mut floor] = [0.0; 2];
            for (n, p) in poisson(mean) {
                let one = NoiseStatistics::of(&[n.sqrt() as f32], &[mean]);
                deviation += p * one.deviation;
                floor += p * one.noise;
            }
            assert!((floor / deviation - 1.0).abs() < 0.08, "mean {mean}: {floor} for {deviation}");
        }
        let unexplained = |intensity: f64| {
            let all = NoiseStatistics::of(&[10.0, -1.0, 20.0], &[100.0 * intensity, 1e9, 400.0 * intensity]);
            all.unexplained()
        };
        // Half of the light is a quarter of the squares, all but the noise.
        assert_eq!(unexplained(1.0), 0.0);
        assert!((unexplained(0.5) - 0.25).abs() < 0.01, "{}", unexplained(0.5));
    }

    #[test]
    fn masked_pixels_have_no_noise() {
        let [[over, variance], [_, none]] = of_frames(&[-1.0, 3.0, 0.0, 1.0, -1.0, -1.0, -1.0, -1.0], 4)[..] else { panic!() };
        assert_eq!(over, 1.0 / 3.0);
        assert!((variance - (0.25 + 0.998) / 3.0).abs() < 1e-6);
        assert_eq!(none, 0.0);
    }
}
