//! Eight numbers: AVX2 and FMA.

use std::arch::x86_64::*;

use zellige_engine::real::Real;

use super::super::Lanes;
use super::f32x16::add_one;
use super::{bits, fused_and_rounded, lanes, places, real, register};

register! {
    /// Eight numbers.
    F32x8 = [f32; 8] in __m256, _mm256_xor_ps,
    Add add AddAssign add_assign _mm256_add_ps;
    Sub sub SubAssign sub_assign _mm256_sub_ps;
    Mul mul MulAssign mul_assign _mm256_mul_ps;
    Div div DivAssign div_assign _mm256_div_ps;
}

bits! { Bits(__m256): _mm256_and_ps _mm256_or_ps _mm256_xor_ps _mm256_castsi256_ps(_mm256_set1_epi32(-1)), _mm256_movemask_ps 0xff }

/// For each mask the lanes that hold.
static PLACES: [[u32; 8]; 256] = places();

impl Real for F32x8 {
    real! { f32 8: _mm256_set1_ps _mm256_sqrt_ps _mm256_min_ps _mm256_max_ps, _mm256_cmp_ps::<_CMP_LT_OQ>, _mm256_cmp_ps::<_CMP_LE_OQ> }
    fused_and_rounded! { _mm256_fmadd_ps _mm256_round_ps }

    #[inline(always)]
    fn abs(self) -> Self {
        // SAFETY: see the module.
        Self(unsafe { _mm256_andnot_ps(constant(-0.0).0, self.0) })
    }
    #[inline(always)]
    fn select(m: Bits, a: Self, b: Self) -> Self {
        // SAFETY: see the module.
        Self(unsafe { _mm256_blendv_ps(b.0, a.0, m.0) })
    }
}

impl Lanes for F32x8 {
    lanes! { f32 __m256i: _mm256_loadu_ps _mm256_storeu_ps _mm256_loadu_si256 _mm256_storeu_si256,
        _mm256_or_ps _mm256_cmp_ps::<_CMP_NEQ_UQ>, _mm256_and_ps _mm256_cvtps_epi32 _mm256_cvtepi32_ps,
        _mm256_set1_epi32 _mm256_add_epi32 _mm256_and_si256 _mm256_sll_epi32 _mm256_srl_epi32, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)
    }

    const CELLS: usize = 8;

    #[inline(always)]
    unsafe fn load_cells(p: *const u8) -> __m256i {
        // SAFETY: see the module, and the trait for memory.
        unsafe { _mm256_cvtepu8_epi32(_mm_loadl_epi64(p.cast())) }
    }
    #[inline(always)]
    unsafe fn store_cells(i: __m256i, p: *mut u8) {
        // SAFETY: see the module, and the trait for memory.
        unsafe {
            let low = _mm256_setr_epi8(
                0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
            );
            let four = _mm256_shuffle_epi8(i, low);
            _mm_storel_epi64(p.cast(), _mm_unpacklo_epi32(_mm256_castsi256_si128(four), _mm256_extracti128_si256::<1>(four)));
        }
    }
    #[inline(always)]
    unsafe fn lookup(t: *const f32, i: __m256i) -> Self {
        // SAFETY: see the module, and the trait for memory.
        Self(unsafe { _mm256_permutevar8x32_ps(_mm256_loadu_ps(t), i) })
    }
    #[inline(always)]
    unsafe fn gather(p: *const f32, i: __m256i) -> Self {
        // SAFETY: see the module, and the trait for memory.
        Self(unsafe { _mm256_i32gather_ps::<4>(p, i) })
    }
    #[inline(always)]
    fn crossed(self) -> Self {
        // SAFETY: see the module.
        Self(unsafe { _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self.0) })
    }
    #[inline(always)]
    fn first(n: usize) -> Bits {
        // SAFETY: see the module.
        Bits(unsafe { _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(n.min(8) as i32), Self::iota())) })
    }
    #[inline(always)]
    unsafe fn list(m: Bits, i: __m256i, to: *mut u32) -> usize {
        let bits = m.number();
        // SAFETY: see the module, and the trait for memory.
        unsafe {
            let places = _mm256_loadu_si256(PLACES[bits as usize].as_ptr().cast());
            _mm256_storeu_si256(to.cast(), _mm256_permutevar8x32_epi32(i, places));
        }
        bits.count_ones() as usize
    }

    /// A transpose of eight by eight; each particle is then one addition of 32 bytes.
    #[inline(always)]
    unsafe fn add_to_cells(v: [Self; 8], to: *mut f32, at: *const u32) {
        // SAFETY: see the module, and the trait for memory.
        unsafe {
            let low = |a: usize| _mm256_castps_pd(_mm256_unpacklo_ps(v[a].0, v[a + 1].0));
            let high = |a: usize| _mm256_castps_pd(_mm256_unpackhi_ps(v[a].0, v[a + 1].0));
            let (a0, a1, b0, b1) = (low(0), high(0), low(2), high(2));
            let (c0, c1, d0, d1) = (low(4), high(4), low(6), high(6));
            // Lane m of both halves of the registers: particles m and m + 4.
            macro_rules! half {
                ($m:expr, $front:expr, $back:expr) => {{
                    let (f, b) = (_mm256_castpd_ps($front), _mm256_castpd_ps($back));
                    add_one(to, at.add($m), _mm256_permute2f128_ps::<0x20>(f, b));
                    add_one(to, at.add($m + 4), _mm256_permute2f128_ps::<0x31>(f, b));
                }};
            }
            half!(0, _mm256_unpacklo_pd(a0, b0), _mm256_unpacklo_pd(c0, d0));
            half!(1, _mm256_unpackhi_pd(a0, b0), _mm256_unpackhi_pd(c0, d0));
            half!(2, _mm256_unpacklo_pd(a1, b1), _mm256_unpacklo_pd(c1, d1));
            half!(3, _mm256_unpackhi_pd(a1, b1), _mm256_unpackhi_pd(c1, d1));
        }
    }
}
