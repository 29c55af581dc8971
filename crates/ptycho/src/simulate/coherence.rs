//! Modes of partially coherent light.

use num_complex::Complex;
use zellige_engine::ops::fft::{Direction, Plan, Shape};
use zellige_engine::parallel::{chunks_mut, each, items, items_mut};

use super::illumination::signed;

type C = Complex<f64>;

/// Pixels of all members that are multiplied at once.
const BLOCK: usize = 4096;

/// Points of Gauss and Hermite for a mean over the normal distribution: positions in standard deviations and weights. Seven
/// points are exact for polynomials up to the thirteenth degree (Abramowitz and Stegun, table 25.10, scaled by the root of 2
/// and of 1/pi).
const POINTS: [(f64, f64); 7] = [
    (-3.750_439_717_725_742, 5.482_688_559_722_18e-4),
    (-2.366_759_410_734_541, 3.075_712_396_758_65e-2),
    (-1.154_405_394_739_968, 0.240_123_178_605_012_7),
    (0.0, 0.457_142_857_142_857_1),
    (1.154_405_394_739_968, 0.240_123_178_605_012_7),
    (2.366_759_410_734_541, 3.075_712_396_758_65e-2),
    (3.750_439_717_725_742, 5.482_688_559_722_18e-4),
];

/// Waves that the mutual intensity of a source of this size is summed over.
pub(super) fn members(blur: [f64; 2]) -> u64 {
    blur.map(|b| if b > 0.0 { POINTS.len() as u64 } else { 1 }).iter().product()
}

/// Waves at the sample, centred at `[rows / 2, columns / 2]`, of a spectrum in FFT order whose source is blurred by `blur` metres
/// `[y, x]`: at most `count` orthogonal modes that together hold `photons`, the strongest first.
pub(super) fn modes(spectrum: &[C], shape: [usize; 2], spacing: [f64; 2], blur: [f64; 2], count: usize, photons: f64) -> Vec<Vec<C>> {
    let pixels = shape[0] * shape[1];
    let axis = |d: usize| if blur[d] > 0.0 { &POINTS[..] } else { &[(0.0, 1.0)][..] };
    let shifts: Vec<([f64; 2], f64)> = axis(0)
        .iter()
        .flat_map(|&(y, wy)| axis(1).iter().map(move |&(x, wx)| ([y * blur[0] / spacing[0], x * blur[1] / spacing[1]], wy * wx)))
        .collect();
    let mut waves = vec![C::default(); shifts.len() * pixels];
    // Line by line: there may be one shift, of a large frame.
    each(chunks_mut(&mut waves, shape[1]), |line, to| {
        let ((shift, weight), row) = (shifts[line / shape[0]], line % shape[0]);
        // The shift to the middle of the frame is whole.
        let position = [0, 1].map(|d| shift[d] + (shape[d] / 2) as f64);
        for (column, (to, v)) in to.iter_mut().zip(&spectrum[row * shape[1]..]).enumerate() {
            let at = [row, column];
            let turns: f64 = (0..2).map(|d| position[d] * signed(at[d], shape[d]) / shape[d] as f64).sum();
            *to = v * C::from_polar(weight.sqrt() / pixels as f64, -std::f64::consts::TAU * turns);
        }
    });
    Plan::new(Shape::frames(shape[0], shape[1], shifts.len())).run(&mut waves, Direction::Inverse);
    let members: Vec<&[C]> = waves.chunks_exact(pixels).collect();
    if members.len() == 1 {
        return vec![waves];
    }
    let k = members.len();
    // The upper half, a block of pixels at a time, in which all members stay in a cache; each sum goes on pixel by pixel.
    let pairs: Vec<(usize, usize)> = (0..k).flat_map(|p| (p..k).map(move |q| (p, q))).collect();
    let mut sums = vec![C::default(); pairs.len()];
    for first in (0..pixels).step_by(BLOCK) {
        let part = |m: usize| &members[m][first..(first + BLOCK).min(pixels)];
        each((items_mut(&mut sums), items(&pairs)), |_, (sum, (p, q))| {
            part(*p).iter().zip(part(*q)).for_each(|(a, b)| *sum += a.conj() * b);
        });
    }
    let mut gram = vec![C::default(); k * k];
    for ((p, q), sum) in pairs.into_iter().zip(sums) {
        (gram[q * k + p], gram[p * k + q]) = (sum.conj(), sum);
    }
    let (powers, vectors) = eigen(gram, k);
    let kept = count.min(k);
    let total: f64 = powers.iter().take(kept).sum();
    let scale = (photons / total.max(f64::MIN_POSITIVE)).sqrt();
    let kept = (0..kept).map(|m| {
        let mut wave = vec![C::default(); pixels];
        each(chunks_mut(&mut wave, shape[1]), |row, line| {
            for (member, part) in members.iter().enumerate() {
                let factor = vectors[member * k + m] * scale;
                line.iter_mut().zip(&part[row * shape[1]..]).for_each(|(w, p)| *w += factor * p);
            }
        });
        wave
    });
    kept.collect()
}

/// Eigenvalues, falling, and eigenvectors (column `m` at `[row * k + m]`) of a Hermitian matrix, by Jacobi's rotations.
fn eigen(mut a: Vec<C>, k: usize) -> (Vec<f64>, Vec<C>) {
    let mut v: Vec<C> = (0..k * k).map(|i| C::from(f64::from(u8::from(i / k == i % k)))).collect();
    let scale: f64 = (0..k).map(|i| a[i * k + i].re.abs()).sum();
    for _sweep in 0..60 {
        let mut off = 0.0;
        for p in 0..k {
            for q in p + 1..k {
                let g = a[p * k + q];
                let size = g.norm();
                off += size * size;
                if size <= scale * 1e-18 {
                    continue;
                }
                let turn = g.conj() / size;
                let theta = (a[q * k + q].re - a[p * k + p].re) / (2.0 * size);
                let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
                let c = 1.0 / (t * t + 1.0).sqrt();
                let s = t * c;
                let mix = |x: C, y: C| (x * c - y * s, x * s + y * c);
                for row in 0..k {
                    let (x, y) = mix(a[row * k + p], a[row * k + q] * turn);
                    (a[row * k + p], a[row * k + q]) = (x, y);
                    let (x, y) = mix(v[row * k + p], v[row * k + q] * turn);
                    (v[row * k + p], v[row * k + q]) = (x, y);
                }
                for column in 0..k {
                    let (x, y) = mix(a[p * k + column], a[q * k + column] * turn.conj());
                    (a[p * k + column], a[q * k + column]) = (x, y);
                }
            }
        }
        if off.sqrt() <= scale * 1e-14 {
            break;
        }
    }
    let mut order: Vec<usize> = (0..k).collect();
    order.sort_by(|&i, &j| a[j * k + j].re.total_cmp(&a[i * k + i].re));
    let powers = order.iter().map(|&i| a[i * k + i].re.max(0.0)).collect();
    let vectors = (0..k * k).map(|i| v[i / k * k + order[i % k]]).collect();
    (powers, vectors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eigenvectors_satisfy_their_equation() {
        let k = 6;
        let philox = zellige_engine::rng::Philox::new(1, 5);
        let raw: Vec<C> = (0..k * k).map(|i| philox.normals(0, i as u64)).map(|[a, b]| C::new(a, b)).collect();
        let matrix: Vec<C> = (0..k * k).map(|i| raw[i] + raw[i % k * k + i / k].conj()).collect();
        // Made positive, as a Gram matrix is.
        let matrix: Vec<C> = (0..k * k).map(|i| (0..k).map(|j| matrix[i / k * k + j] * matrix[i % k * k + j].conj()).sum()).collect();
        let (powers, vectors) = eigen(matrix.clone(), k);
        for m in 0..k {
            assert!(m == 0 || powers[m] <= powers[m - 1]);
            for row in 0..k {
                let image: C = (0..k).map(|j| matrix[row * k + j] * vectors[j * k + m]).sum();
                // Rounding of k^2 rotations of numbers of the size of the largest eigenvalue.
                assert!((image - vectors[row * k + m] * powers[m]).norm() < 1e-12 * powers[0]);
            }
        }
    }

    /// The mean over shifted probes is what the modes together show: the intensity of a Gaussian focus of width w blurred by s has
    /// the width sqrt(w^2 + s^2).
    #[test]
    fn modes_are_orthogonal_and_blur_the_intensity() {
        let (shape, spacing) = ([64, 64], [1.0, 1.0]);
        let (width, blur) = (4.0, [0.0, 3.0]);
        // Amplitude exp(-x^2 / (4 w^2)) has the intensity's deviation w; its transform is exp(-(2 pi k w)^2).
        let spectrum: Vec<C> = (0..64 * 64)
            .map(|i| {
                let k2: f64 = [i / 64, i % 64].iter().map(|&j| (signed(j, 64) / 64.0).powi(2)).sum();
                C::from((-(std::f64::consts::TAU * width).powi(2) * k2).exp())
            })
            .collect();
        let found = modes(&spectrum, shape, spacing, blur, 7, 1000.0);
        assert_eq!(found.len(), 7);
        for (i, a) in found.iter().enumerate() {
            for b in &found[..i] {
                assert!(a.iter().zip(b).map(|(a, b)| a.conj() * b).sum::<C>().norm() < 1e-9 * 1000.0);
            }
        }
        let intensity = |i: usize| found.iter().map(|m| m[i].norm_sqr()).sum::<f64>();
        let total: f64 = (0..64 * 64).map(intensity).sum();
        assert!((total / 1000.0 - 1.0).abs() < 1e-9, "{total}");
        for (axis, expected) in [(0, width), (1, width.hypot(blur[1]))] {
            let position = |i: usize| if axis == 0 { (i / 64) as f64 } else { (i % 64) as f64 } - 32.0;
            let mean = (0..64 * 64).map(|i| intensity(i) * position(i)).sum::<f64>() / total;
            let square = (0..64 * 64).map(|i| intensity(i) * (position(i) - mean).powi(2)).sum::<f64>() / total;
            // The frame cuts the Gaussian at 6.4 deviations.
            assert!(mean.abs() < 1e-6 && (square.sqrt() / expected - 1.0).abs() < 1e-3, "axis {axis}: {mean} {}", square.sqrt());
        }
    }
}
