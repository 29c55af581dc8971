//! Sums of the velocities of a cell: x, y, z, xx, yy, zz, xy, `c^2 x`, `c^2 y`.
//!
//! Of up to 64 particles at a time the sums are in single precision and are then added up in double: rounding is at random, and with
//! a speed of a hundred times the thermal one still below 1e-3 of a single particle's share of the temperature. Eight lanes take every
//! eighth particle each and are added up as `((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7))`: the same bits with and without AVX2.

use std::ops::Range;

/// Number of sums.
pub(super) const MOMENTS: usize = 9;
const LANES: usize = 8;
/// Particles that are added up in single precision.
const CHUNK: usize = 64;

/// Adds the sums over a range of velocities to `total`. `wide` says that the processor has AVX2.
#[inline(always)]
pub(super) fn moments(v: &[Vec<f32>; 3], range: Range<usize>, total: &mut [f64; MOMENTS], wide: bool) {
    let mut begin = range.start;
    while begin < range.end {
        let end = (begin + CHUNK).min(range.end);
        #[cfg(target_arch = "x86_64")]
        if wide {
            // The columns have room behind their last particle.
            let there = begin..end + LANES;
            // SAFETY: the caller's word that AVX2 is there; the slices have a whole register behind the last particle.
            unsafe { x86::moments(&v[0][there.clone()], &v[1][there.clone()], &v[2][there], total) };
            begin = end;
            continue;
        }
        let _ = wide;
        plain(v, begin..end, total);
        begin = end;
    }
}

/// The same without vector instructions, of one chunk.
fn plain(v: &[Vec<f32>; 3], range: Range<usize>, total: &mut [f64; MOMENTS]) {
    let mut sums = [[0.0_f32; MOMENTS]; LANES];
    for (k, i) in range.enumerate() {
        let (x, y, z) = (v[0][i], v[1][i], v[2][i]);
        let (xx, yy, zz) = (x * x, y * y, z * z);
        let square = xx + yy + zz;
        for (sum, term) in sums[k % LANES].iter_mut().zip([x, y, z, xx, yy, zz, x * y, square * x, square * y]) {
            *sum += term;
        }
    }
    for (q, total) in total.iter_mut().enumerate() {
        let two = |i: usize| sums[i][q] + sums[i + 1][q];
        *total += f64::from((two(0) + two(2)) + (two(4) + two(6)));
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    #[allow(clippy::wildcard_imports)]
    use std::arch::x86_64::*;

    use super::{LANES, MOMENTS};

    /// A register of each component, squares and products, added to the sums.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn add(sums: &mut [__m256; MOMENTS], x: __m256, y: __m256, z: __m256) {
        let (xx, yy, zz) = (_mm256_mul_ps(x, x), _mm256_mul_ps(y, y), _mm256_mul_ps(z, z));
        let square = _mm256_add_ps(_mm256_add_ps(xx, yy), zz);
        let terms = [x, y, z, xx, yy, zz, _mm256_mul_ps(x, y), _mm256_mul_ps(square, x), _mm256_mul_ps(square, y)];
        for q in 0..MOMENTS {
            sums[q] = _mm256_add_ps(sums[q], terms[q]);
        }
    }

    /// The sums of the lanes of four registers.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn across(a: __m256, b: __m256, c: __m256, d: __m256) -> __m256d {
        let four = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
        _mm256_cvtps_pd(_mm_add_ps(_mm256_castps256_ps128(four), _mm256_extractf128_ps::<1>(four)))
    }

    /// # Safety
    /// Columns of one length, each with a register's worth of values behind the last one that counts.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) unsafe fn moments(x: &[f32], y: &[f32], z: &[f32], total: &mut [f64; MOMENTS]) {
        let n = x.len() - LANES;
        let mut sums = [_mm256_setzero_ps(); MOMENTS];
        let mut i = 0;
        while i + LANES <= n {
            // SAFETY: below `n`, which all columns exceed by a register.
            let [a, b, c] =
                unsafe { [_mm256_loadu_ps(x.as_ptr().add(i)), _mm256_loadu_ps(y.as_ptr().add(i)), _mm256_loadu_ps(z.as_ptr().add(i))] };
            add(&mut sums, a, b, c);
            i += LANES;
        }
        if i < n {
            let left = _mm256_cmpgt_epi32(_mm256_set1_epi32((n - i) as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
            let mask = _mm256_castsi256_ps(left);
            // SAFETY: as above; what is behind the end is masked.
            let [a, b, c] =
                unsafe { [_mm256_loadu_ps(x.as_ptr().add(i)), _mm256_loadu_ps(y.as_ptr().add(i)), _mm256_loadu_ps(z.as_ptr().add(i))] };
            add(&mut sums, _mm256_and_ps(mask, a), _mm256_and_ps(mask, b), _mm256_and_ps(mask, c));
        }
        for (q, four) in [across(sums[0], sums[1], sums[2], sums[3]), across(sums[4], sums[5], sums[6], sums[7])].into_iter().enumerate() {
            // SAFETY: the first eight of nine numbers.
            unsafe {
                let at = total.as_mut_ptr().add(4 * q);
                _mm256_storeu_pd(at, _mm256_add_pd(_mm256_loadu_pd(at), four));
            }
        }
        let last = across(sums[8], sums[8], sums[8], sums[8]);
        total[8] += _mm256_cvtsd_f64(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_give_the_bits_of_the_plain_sums() {
        #[cfg(target_arch = "x86_64")]
        let wide = is_x86_feature_detected!("avx2");
        #[cfg(not(target_arch = "x86_64"))]
        let wide = false;
        let v = [0, 1, 2].map(|c| (0..300).map(|i| ((i * 7919 + c * 331) % 997) as f32 * 1.37 - 400.0).collect::<Vec<f32>>());
        for begin in 0..9 {
            for n in (0..40).chain([64, 65, 200]) {
                let (mut found, mut plain) = ([1.0; MOMENTS], [1.0; MOMENTS]);
                moments(&v, begin..begin + n, &mut found, wide);
                moments(&v, begin..begin + n, &mut plain, false);
                assert_eq!(found, plain, "{n} from {begin}");
                let term = |i: usize| f64::from(v[0][i]) * f64::from(v[1][i]);
                let direct: f64 = 1.0 + (begin..begin + n).map(term).sum::<f64>();
                let size: f64 = (begin..begin + n).map(|i| term(i).abs()).sum();
                // The product rounds, and at most eight sums in a lane and three across: 12 times half of 2^-23 of the sum of the sizes.
                assert!((found[6] - direct).abs() <= 12.0 * 6e-8 * size, "{n} from {begin}: {} {direct}", found[6]);
            }
        }
    }
}
