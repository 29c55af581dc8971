//! Sums of the velocities of a cell: x, y, z, xx, yy, zz, xy, `c^2 x`, `c^2 y`, in double precision, so that a fast stream leaves its
//! temperature enough digits.
//!
//! Four lanes take every fourth particle each and are added up as `(0 + 1) + (2 + 3)`: the same bits with and without AVX2. Left to
//! the compiler, loops over lanes came out slower than none (6.2 against 3.9 ns a particle; as written here 1.6).

use std::ops::Range;

/// Number of sums.
pub(super) const MOMENTS: usize = 9;
const LANES: usize = 4;

/// The sums over a range of velocities. `wide` says that the processor has AVX2.
#[inline(always)]
pub(super) fn moments(v: &[Vec<f32>; 3], range: Range<usize>, wide: bool) -> [f64; MOMENTS] {
    #[cfg(target_arch = "x86_64")]
    if wide {
        // The columns have room behind their last particle.
        let end = range.end + LANES;
        // SAFETY: the caller's word that AVX2 is there; the slices have a whole register behind the last particle.
        return unsafe { x86::moments(&v[0][range.start..end], &v[1][range.start..end], &v[2][range.start..end]) };
    }
    let _ = wide;
    plain(v, range)
}

/// The same without vector instructions.
fn plain(v: &[Vec<f32>; 3], range: Range<usize>) -> [f64; MOMENTS] {
    let mut sums = [[0.0_f64; MOMENTS]; LANES];
    for (k, i) in range.enumerate() {
        let sums = &mut sums[k % LANES];
        let (x, y, z) = (f64::from(v[0][i]), f64::from(v[1][i]), f64::from(v[2][i]));
        let (xx, yy, zz) = (x * x, y * y, z * z);
        let square = xx + yy + zz;
        for (sum, term) in sums.iter_mut().zip([x, y, z, xx, yy, zz, x * y, square * x, square * y]) {
            *sum += term;
        }
    }
    let mut all = [0.0; MOMENTS];
    for (q, all) in all.iter_mut().enumerate() {
        *all = (sums[0][q] + sums[1][q]) + (sums[2][q] + sums[3][q]);
    }
    all
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    #[allow(clippy::wildcard_imports)]
    use std::arch::x86_64::*;

    use super::{LANES, MOMENTS};

    /// A register of each component, squares and products, added to the sums.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn add(sums: &mut [__m256d; MOMENTS], x: __m256d, y: __m256d, z: __m256d) {
        let (xx, yy, zz) = (_mm256_mul_pd(x, x), _mm256_mul_pd(y, y), _mm256_mul_pd(z, z));
        let square = _mm256_add_pd(_mm256_add_pd(xx, yy), zz);
        let terms = [x, y, z, xx, yy, zz, _mm256_mul_pd(x, y), _mm256_mul_pd(square, x), _mm256_mul_pd(square, y)];
        for q in 0..MOMENTS {
            sums[q] = _mm256_add_pd(sums[q], terms[q]);
        }
    }

    /// # Safety
    /// Columns of one length, each with a register's worth of values behind the last one that counts.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) unsafe fn moments(x: &[f32], y: &[f32], z: &[f32]) -> [f64; MOMENTS] {
        let n = x.len() - LANES;
        let mut sums = [_mm256_setzero_pd(); MOMENTS];
        let mut i = 0;
        while i + LANES <= n {
            // SAFETY: below `n`, which all columns exceed by a register.
            let [a, b, c] = unsafe { [_mm_loadu_ps(x.as_ptr().add(i)), _mm_loadu_ps(y.as_ptr().add(i)), _mm_loadu_ps(z.as_ptr().add(i))] };
            add(&mut sums, _mm256_cvtps_pd(a), _mm256_cvtps_pd(b), _mm256_cvtps_pd(c));
            i += LANES;
        }
        if i < n {
            let left = _mm_cmpgt_epi32(_mm_set1_epi32((n - i) as i32), _mm_setr_epi32(0, 1, 2, 3));
            let mask = _mm_castsi128_ps(left);
            // SAFETY: as above; what is behind the end is masked.
            let [a, b, c] = unsafe { [_mm_loadu_ps(x.as_ptr().add(i)), _mm_loadu_ps(y.as_ptr().add(i)), _mm_loadu_ps(z.as_ptr().add(i))] };
            let (a, b, c) = (_mm_and_ps(mask, a), _mm_and_ps(mask, b), _mm_and_ps(mask, c));
            add(&mut sums, _mm256_cvtps_pd(a), _mm256_cvtps_pd(b), _mm256_cvtps_pd(c));
        }
        let mut all = [0.0; MOMENTS + 3];
        let zero = _mm256_setzero_pd();
        for (q, four) in [[sums[0], sums[1], sums[2], sums[3]], [sums[4], sums[5], sums[6], sums[7]], [sums[8], zero, zero, zero]]
            .into_iter()
            .enumerate()
        {
            let (ab, cd) = (_mm256_hadd_pd(four[0], four[1]), _mm256_hadd_pd(four[2], four[3]));
            let sum = _mm256_add_pd(_mm256_permute2f128_pd::<0x20>(ab, cd), _mm256_permute2f128_pd::<0x31>(ab, cd));
            // SAFETY: three registers of four fit into twelve numbers.
            unsafe { _mm256_storeu_pd(all.as_mut_ptr().add(4 * q), sum) };
        }
        let mut out = [0.0; MOMENTS];
        out.copy_from_slice(&all[..MOMENTS]);
        out
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
        let v = [0, 1, 2].map(|c| (0..200).map(|i| ((i * 7919 + c * 331) % 997) as f32 * 1.37 - 400.0).collect::<Vec<f32>>());
        for begin in 0..9 {
            for n in 0..40 {
                let (found, plain) = (moments(&v, begin..begin + n, wide), plain(&v, begin..begin + n));
                assert_eq!(found, plain, "{n} from {begin}");
                let direct: f64 = (begin..begin + n).map(|i| f64::from(v[0][i]) * f64::from(v[1][i])).sum();
                // Sums of at most 40 products of 1.6e5 in another order.
                assert!((found[6] - direct).abs() < 1e-8, "{n} from {begin}");
            }
        }
    }
}
