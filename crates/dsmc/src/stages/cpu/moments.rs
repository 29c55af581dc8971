//! Sums of the velocities of a cell: x, y, z, xx, yy, zz, xy, `c^2 x`, `c^2 y`.
//!
//! In single precision, of up to 64 particles at a time: rounding is at random, and with a speed of a hundred times the thermal one still
//! some hundredths of a single particle's share of the temperature. Eight lanes take every eighth particle each and are added up as
//! `((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7))`: the same bits with and without AVX2.

use std::ops::Range;

/// Number of sums.
pub(super) const MOMENTS: usize = 9;
const LANES: usize = 8;
/// Particles that are added up in single precision.
const CHUNK: usize = 64;

/// Adds the sums over a range of velocities to `total`. `wide` says that the processor has AVX2.
#[inline(always)]
pub(super) fn moments(v: [&[f32]; 3], range: Range<usize>, total: &mut [f32; MOMENTS], wide: bool) {
    let mut begin = range.start;
    while begin < range.end {
        let end = (begin + CHUNK).min(range.end);
        #[cfg(target_arch = "x86_64")]
        if wide {
            // The columns have room behind their last particle.
            let there = begin..end + 2 * LANES;
            // SAFETY: the caller's word that AVX2 is there; the slices have two registers' worth behind the last particle.
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
fn plain(v: [&[f32]; 3], range: Range<usize>, total: &mut [f32; MOMENTS]) {
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
        *total += (two(0) + two(2)) + (two(4) + two(6));
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    #[allow(clippy::wildcard_imports)]
    use std::arch::x86_64::*;

    use super::{LANES, MOMENTS};

    /// Squares and products of a register of each component.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn terms(x: __m256, y: __m256, z: __m256) -> [__m256; MOMENTS] {
        let (xx, yy, zz) = (_mm256_mul_ps(x, x), _mm256_mul_ps(y, y), _mm256_mul_ps(z, z));
        let square = _mm256_add_ps(_mm256_add_ps(xx, yy), zz);
        [x, y, z, xx, yy, zz, _mm256_mul_ps(x, y), _mm256_mul_ps(square, x), _mm256_mul_ps(square, y)]
    }

    /// Sums of neighbours of both: of `a` in the even lanes, of `b` in the odd ones. Blends where `hadd` would shuffle twice: a processor
    /// shuffles once a cycle and blends three times.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn pairs(a: __m256, b: __m256) -> __m256 {
        let (own, other) = (_mm256_blend_ps::<0b1010_1010>(a, b), _mm256_blend_ps::<0b1010_1010>(b, a));
        _mm256_add_ps(own, _mm256_permute_ps::<0b10_11_00_01>(other))
    }

    /// The same of pairs of lanes.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn fours(a: __m256, b: __m256) -> __m256 {
        let (own, other) = (_mm256_blend_ps::<0b1100_1100>(a, b), _mm256_blend_ps::<0b1100_1100>(b, a));
        _mm256_add_ps(own, _mm256_permute_ps::<0b01_00_11_10>(other))
    }

    /// The same of halves.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn halves(a: __m256, b: __m256) -> __m256 {
        let (own, other) = (_mm256_blend_ps::<0b1111_0000>(a, b), _mm256_blend_ps::<0b1111_0000>(b, a));
        _mm256_add_ps(own, _mm256_permute2f128_ps::<1>(other, other))
    }

    /// # Safety
    /// Columns of one length, each with two registers' worth of values behind the last one that counts.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) unsafe fn moments(x: &[f32], y: &[f32], z: &[f32], total: &mut [f32; MOMENTS]) {
        let n = x.len() - 2 * LANES;
        // Sixteen at a time, so that most cells have no loop; what is behind the end is masked.
        let two = |i: usize| {
            let left = _mm256_set1_epi32((n - i) as i32);
            let first = _mm256_castsi256_ps(_mm256_cmpgt_epi32(left, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)));
            let second = _mm256_castsi256_ps(_mm256_cmpgt_epi32(left, _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15)));
            // SAFETY: below `n`, which all columns exceed by two registers.
            unsafe {
                let at = |v: &[f32], i: usize| _mm256_loadu_ps(v.as_ptr().add(i));
                let and = |v: &[f32], i: usize, mask: __m256| _mm256_and_ps(mask, at(v, i));
                let low = terms(and(x, i, first), and(y, i, first), and(z, i, first));
                let high = terms(and(x, i + LANES, second), and(y, i + LANES, second), and(z, i + LANES, second));
                (low, high)
            }
        };
        let (low, high) = two(0);
        let mut sums = low;
        for q in 0..MOMENTS {
            sums[q] = _mm256_add_ps(low[q], high[q]);
        }
        let mut i = 2 * LANES;
        while i < n {
            let (low, high) = two(i);
            for q in 0..MOMENTS {
                sums[q] = _mm256_add_ps(_mm256_add_ps(sums[q], low[q]), high[q]);
            }
            i += 2 * LANES;
        }
        let [a, b, c, d, e, f, g, h, last] = sums;
        let eight = halves(fours(pairs(a, b), pairs(c, d)), fours(pairs(e, f), pairs(g, h)));
        // SAFETY: the first eight of nine numbers.
        unsafe {
            let at = total.as_mut_ptr();
            _mm256_storeu_ps(at, _mm256_add_ps(_mm256_loadu_ps(at), eight));
        }
        let four = fours(pairs(last, last), pairs(last, last));
        total[8] += _mm_cvtss_f32(_mm_add_ss(_mm256_castps256_ps128(four), _mm256_extractf128_ps::<1>(four)));
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
        let columns = [&v[0][..], &v[1][..], &v[2][..]];
        for begin in 0..9 {
            for n in (0..40).chain([64, 65, 200]) {
                let (mut found, mut plain) = ([1.0; MOMENTS], [1.0; MOMENTS]);
                moments(columns, begin..begin + n, &mut found, wide);
                moments(columns, begin..begin + n, &mut plain, false);
                assert_eq!(found, plain, "{n} from {begin}");
                let term = |i: usize| f64::from(v[0][i]) * f64::from(v[1][i]);
                let direct: f64 = 1.0 + (begin..begin + n).map(term).sum::<f64>();
                let size: f64 = (begin..begin + n).map(|i| term(i).abs()).sum();
                // The product rounds, at most eight sums in a lane and three across, and those of the chunks: 16 times half of 2^-23 of the
                // sum of the sizes, and of the number before.
                assert!((f64::from(found[6]) - direct).abs() <= 16.0 * 6e-8 * (size + 1.0), "{n} from {begin}: {} {direct}", found[6]);
            }
        }
    }
}
