//! Transposition of squares of numbers in registers.

#[allow(clippy::wildcard_imports)] // the shuffles
use std::arch::x86_64::*;

/// 16 x 16 numbers: pairs and fours within a quarter of a register, then the quarters. 64 shuffles.
#[inline(always)]
pub(super) unsafe fn f32x16(from: *const f32, from_step: usize, to: *mut f32, to_step: usize) {
    // SAFETY: the caller's.
    unsafe {
        let mut x = [_mm512_setzero_ps(); 16];
        for g in 0..4 {
            let row = |i: usize| _mm512_loadu_ps(from.add((4 * g + i) * from_step));
            let (a, b, c, d) = (row(0), row(1), row(2), row(3));
            let pairs = |a, b| (_mm512_castps_pd(_mm512_unpacklo_ps(a, b)), _mm512_castps_pd(_mm512_unpackhi_ps(a, b)));
            let ((a, b), (c, d)) = (pairs(a, b), pairs(c, d));
            // Of column 4 l + k the rows 4 g .. 4 g + 4 are quarter l of register 4 g + k.
            x[4 * g] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
            x[4 * g + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
            x[4 * g + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
            x[4 * g + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
        }
        for k in 0..4 {
            let (a, b) = (_mm512_shuffle_f32x4::<0x88>(x[k], x[4 + k]), _mm512_shuffle_f32x4::<0xdd>(x[k], x[4 + k]));
            let (c, d) = (_mm512_shuffle_f32x4::<0x88>(x[8 + k], x[12 + k]), _mm512_shuffle_f32x4::<0xdd>(x[8 + k], x[12 + k]));
            _mm512_storeu_ps(to.add(k * to_step), _mm512_shuffle_f32x4::<0x88>(a, c));
            _mm512_storeu_ps(to.add((4 + k) * to_step), _mm512_shuffle_f32x4::<0x88>(b, d));
            _mm512_storeu_ps(to.add((8 + k) * to_step), _mm512_shuffle_f32x4::<0xdd>(a, c));
            _mm512_storeu_ps(to.add((12 + k) * to_step), _mm512_shuffle_f32x4::<0xdd>(b, d));
        }
    }
}

/// 8 x 8 numbers, likewise in halves.
#[inline(always)]
pub(super) unsafe fn f32x8(from: *const f32, from_step: usize, to: *mut f32, to_step: usize) {
    // SAFETY: the caller's.
    unsafe {
        let mut x = [_mm256_setzero_ps(); 8];
        for g in 0..2 {
            let row = |i: usize| _mm256_loadu_ps(from.add((4 * g + i) * from_step));
            let (a, b, c, d) = (row(0), row(1), row(2), row(3));
            let pairs = |a, b| (_mm256_castps_pd(_mm256_unpacklo_ps(a, b)), _mm256_castps_pd(_mm256_unpackhi_ps(a, b)));
            let ((a, b), (c, d)) = (pairs(a, b), pairs(c, d));
            x[4 * g] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, c));
            x[4 * g + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, c));
            x[4 * g + 2] = _mm256_castpd_ps(_mm256_unpacklo_pd(b, d));
            x[4 * g + 3] = _mm256_castpd_ps(_mm256_unpackhi_pd(b, d));
        }
        for k in 0..4 {
            _mm256_storeu_ps(to.add(k * to_step), _mm256_permute2f128_ps::<0x20>(x[k], x[4 + k]));
            _mm256_storeu_ps(to.add((4 + k) * to_step), _mm256_permute2f128_ps::<0x31>(x[k], x[4 + k]));
        }
    }
}

/// 8 x 8 doubles.
#[inline(always)]
pub(super) unsafe fn f64x8(from: *const f64, from_step: usize, to: *mut f64, to_step: usize) {
    // SAFETY: the caller's.
    unsafe {
        let mut x = [_mm512_setzero_pd(); 8];
        for g in 0..4 {
            let (a, b) = (_mm512_loadu_pd(from.add(2 * g * from_step)), _mm512_loadu_pd(from.add((2 * g + 1) * from_step)));
            // Of column 2 l + k the rows 2 g and 2 g + 1 are quarter l of register 2 g + k.
            x[2 * g] = _mm512_unpacklo_pd(a, b);
            x[2 * g + 1] = _mm512_unpackhi_pd(a, b);
        }
        for k in 0..2 {
            let (a, b) = (_mm512_shuffle_f64x2::<0x88>(x[k], x[2 + k]), _mm512_shuffle_f64x2::<0xdd>(x[k], x[2 + k]));
            let (c, d) = (_mm512_shuffle_f64x2::<0x88>(x[4 + k], x[6 + k]), _mm512_shuffle_f64x2::<0xdd>(x[4 + k], x[6 + k]));
            _mm512_storeu_pd(to.add(k * to_step), _mm512_shuffle_f64x2::<0x88>(a, c));
            _mm512_storeu_pd(to.add((2 + k) * to_step), _mm512_shuffle_f64x2::<0x88>(b, d));
            _mm512_storeu_pd(to.add((4 + k) * to_step), _mm512_shuffle_f64x2::<0xdd>(a, c));
            _mm512_storeu_pd(to.add((6 + k) * to_step), _mm512_shuffle_f64x2::<0xdd>(b, d));
        }
    }
}

/// 4 x 4 doubles.
#[inline(always)]
pub(super) unsafe fn f64x4(from: *const f64, from_step: usize, to: *mut f64, to_step: usize) {
    // SAFETY: the caller's.
    unsafe {
        let row = |i: usize| _mm256_loadu_pd(from.add(i * from_step));
        let (a, b, c, d) = (row(0), row(1), row(2), row(3));
        let (a, b, c, d) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b), _mm256_unpacklo_pd(c, d), _mm256_unpackhi_pd(c, d));
        _mm256_storeu_pd(to, _mm256_permute2f128_pd::<0x20>(a, c));
        _mm256_storeu_pd(to.add(to_step), _mm256_permute2f128_pd::<0x20>(b, d));
        _mm256_storeu_pd(to.add(2 * to_step), _mm256_permute2f128_pd::<0x31>(a, c));
        _mm256_storeu_pd(to.add(3 * to_step), _mm256_permute2f128_pd::<0x31>(b, d));
    }
}
