//! Gaussian smoothing of objects, mirrored at the edges.

use zellige_engine::parallel::{chunks, chunks_mut, each};

use super::FixedData;
use super::lanes::Number;

/// Standard deviations at which the kernel is cut off.
const REACH: f64 = 4.0;

/// One side of the kernel, the middle first; normalised.
pub(in crate::stages) fn kernel<T: Number>(sigma: f64) -> Vec<T> {
    let reach = (REACH * sigma + 0.5) as usize;
    let weights: Vec<f64> = (0..=reach).map(|i| (-0.5 * (i as f64 / sigma).powi(2)).exp()).collect();
    let all = 2.0 * weights.iter().sum::<f64>() - weights[0];
    weights.into_iter().map(|w| T::from_f64(w / all)).collect()
}

/// Index `i` mirrored into 0 to n - 1, edges counted twice.
fn mirrored(i: isize, n: usize) -> usize {
    let i = i.rem_euclid(2 * n as isize) as usize;
    if i < n { i } else { 2 * n - 1 - i }
}

/// Smooths every layer of `object`.
pub(super) fn objects<T: Number>(fixed: &FixedData<T>, object: &mut [T], sigma: f64) {
    let weights = kernel::<T>(sigma);
    fixed.cpu.install(|| {
        for storage in &fixed.storages {
            for o in 0..fixed.modes[1] {
                for plane in storage.layer_mut(object, o) {
                    layer(&mut plane[..storage.model.layer()], storage.shape, &weights);
                }
            }
        }
    });
}

fn layer<T: Number>(plane: &mut [T], [height, width]: [usize; 2], weights: &[T]) {
    let from = plane.to_vec();
    let mut middle = vec![T::ZERO; plane.len()];
    each(chunks_mut(&mut middle, width), |y, row| {
        for (i, weight) in weights.iter().enumerate() {
            for side in if i == 0 { &[0_isize][..] } else { &[-1, 1] } {
                let other = &from[mirrored(y as isize + side * i as isize, height) * width..][..width];
                for (to, from) in row.iter_mut().zip(other) {
                    *to += *weight * *from;
                }
            }
        }
    });
    each((chunks_mut(plane, width), chunks(&middle, width)), |_, (row, from)| {
        for (x, to) in row.iter_mut().enumerate() {
            let mut all = weights[0] * from[x];
            for (i, weight) in weights.iter().enumerate().skip(1) {
                let pair = from[mirrored(x as isize - i as isize, width)] + from[mirrored(x as isize + i as isize, width)];
                all += *weight * pair;
            }
            *to = all;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whole pixels of a Gaussian have its variance to 1e-3 from a width of one on; what is cut off at four of them is less.
    #[test]
    fn the_kernel_has_its_width() {
        for sigma in [1.0, 1.7, 3.2_f64] {
            let weights = kernel::<f64>(sigma);
            let moment = |k: i32| weights.iter().enumerate().skip(1).map(|(i, w)| 2.0 * w * (i as f64).powi(k)).sum::<f64>();
            assert!((weights[0] + moment(0) - 1.0).abs() < 1e-14, "{sigma}");
            assert!((moment(2) / (sigma * sigma) - 1.0).abs() < 2e-3, "{sigma}: variance {}", moment(2));
        }
    }
}
