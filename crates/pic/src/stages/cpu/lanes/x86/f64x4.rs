//! Four numbers in double precision: AVX2 and FMA. Tables are kept by cells: a row of four and a transpose are cheaper than four
//! gathers.

use std::arch::x86_64::*;

use zellige_engine::real::Real;

use super::super::Lanes;
use super::{bits, fused_and_rounded, lanes, places, real, register};

register! {
    /// Four numbers.
    F64x4 = [f64; 4] in __m256d, _mm256_xor_pd,
    Add add AddAssign add_assign _mm256_add_pd;
    Sub sub SubAssign sub_assign _mm256_sub_pd;
    Mul mul MulAssign mul_assign _mm256_mul_pd;
    Div div DivAssign div_assign _mm256_div_pd;
}

bits! { Bits(__m256d): _mm256_and_pd _mm256_or_pd _mm256_xor_pd _mm256_castsi256_pd(_mm256_set1_epi32(-1)), _mm256_movemask_pd 0xf }

/// For each mask the lanes that hold.
static PLACES: [[u32; 4]; 16] = places();

impl Real for F64x4 {
    real! { f64 4: _mm256_set1_pd _mm256_sqrt_pd _mm256_min_pd _mm256_max_pd, _mm256_cmp_pd::<_CMP_LT_OQ>, _mm256_cmp_pd::<_CMP_LE_OQ> }
    fused_and_rounded! { _mm256_fmadd_pd _mm256_round_pd }

    #[inline(always)]
    fn abs(self) -> Self {
        // SAFETY: see the module.
        Self(unsafe { _mm256_andnot_pd(constant(-0.0).0, self.0) })
    }
    #[inline(always)]
    fn select(m: Bits, a: Self, b: Self) -> Self {
        // SAFETY: see the module.
        Self(unsafe { _mm256_blendv_pd(b.0, a.0, m.0) })
    }
}

impl Lanes for F64x4 {
    lanes! { f64 __m128i: _mm256_loadu_pd _mm256_storeu_pd _mm_loadu_si128 _mm_storeu_si128,
        _mm256_or_pd _mm256_cmp_pd::<_CMP_NEQ_UQ>, _mm256_and_pd _mm256_cvtpd_epi32 _mm256_cvtepi32_pd,
        _mm_set1_epi32 _mm_add_epi32 _mm_and_si128 _mm_sll_epi32 _mm_srl_epi32, _mm_setr_epi32(0, 1, 2, 3)
    }

    const CELLS: usize = 8;
    const BY_CELL: bool = true;

    #[inline(always)]
    unsafe fn load_cells(p: *const u8) -> __m128i {
        // SAFETY: see the module, and the trait for memory.
        unsafe { _mm_cvtepu8_epi32(_mm_cvtsi32_si128(p.cast::<i32>().read_unaligned())) }
    }
    #[inline(always)]
    unsafe fn store_cells(i: __m128i, p: *mut u8) {
        // SAFETY: see the module, and the trait for memory.
        unsafe {
            let low = _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
            p.cast::<i32>().write_unaligned(_mm_cvtsi128_si32(_mm_shuffle_epi8(i, low)));
        }
    }
    #[inline(always)]
    unsafe fn lookup(t: *const f64, i: __m128i) -> Self {
        // SAFETY: see the module, and the trait for memory.
        unsafe { Self::gather(t, i) }
    }
    #[inline(always)]
    unsafe fn lookup_four(t: *const f64, at: __m128i) -> [Self; 4] {
        // SAFETY: see the module, and the trait for memory.
        unsafe {
            let [i, j, k, l] = std::mem::transmute::<__m128i, [u32; 4]>(at);
            let rows = [t.add(i as usize), t.add(j as usize), t.add(k as usize), t.add(l as usize)];
            let [a, b, c, d] =
                transpose([_mm256_loadu_pd(rows[0]), _mm256_loadu_pd(rows[1]), _mm256_loadu_pd(rows[2]), _mm256_loadu_pd(rows[3])]);
            [Self(a), Self(b), Self(c), Self(d)]
        }
    }
    #[inline(always)]
    unsafe fn gather(p: *const f64, i: __m128i) -> Self {
        // SAFETY: see the module, and the trait for memory.
        Self(unsafe { _mm256_i32gather_pd::<8>(p, i) })
    }
    #[inline(always)]
    fn crossed(self) -> Self {
        // SAFETY: see the module.
        Self(unsafe { _mm256_round_pd::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self.0) })
    }
    #[inline(always)]
    fn first(n: usize) -> Bits {
        // SAFETY: see the module.
        Bits(unsafe { _mm256_cmp_pd::<_CMP_LT_OQ>(_mm256_setr_pd(0.0, 1.0, 2.0, 3.0), _mm256_set1_pd(n.min(4) as f64)) })
    }
    #[inline(always)]
    unsafe fn list(m: Bits, i: __m128i, to: *mut u32) -> usize {
        let bits = m.number();
        // SAFETY: see the module, and the trait for memory.
        unsafe {
            let places = _mm_loadu_si128(PLACES[bits as usize].as_ptr().cast());
            _mm_storeu_si128(to.cast(), _mm_castps_si128(_mm_permutevar_ps(_mm_castsi128_ps(i), places)));
        }
        bits.count_ones() as usize
    }

    /// Two transposes of four by four; each particle is then two additions of 32 bytes.
    #[inline(always)]
    unsafe fn add_to_cells(v: [Self; 8], to: *mut f64, at: *const u32) {
        // SAFETY: see the module, and the trait for memory.
        unsafe {
            let low = transpose([v[0].0, v[1].0, v[2].0, v[3].0]);
            let high = transpose([v[4].0, v[5].0, v[6].0, v[7].0]);
            macro_rules! add {
                ($l:expr) => {{
                    // The index as in the other registers' function of this name.
                    let cell = to.add(at.add($l).read_volatile() as usize);
                    _mm256_store_pd(cell, _mm256_add_pd(_mm256_load_pd(cell), low[$l]));
                    _mm256_store_pd(cell.add(4), _mm256_add_pd(_mm256_load_pd(cell.add(4)), high[$l]));
                }};
            }
            add!(0);
            add!(1);
            add!(2);
            add!(3);
        }
    }
}

/// Rows become columns.
#[inline(always)]
unsafe fn transpose([a, b, c, d]: [__m256d; 4]) -> [__m256d; 4] {
    // SAFETY: see the module.
    unsafe {
        let (ab, cd) = (_mm256_unpacklo_pd(a, b), _mm256_unpacklo_pd(c, d));
        let (ab_high, cd_high) = (_mm256_unpackhi_pd(a, b), _mm256_unpackhi_pd(c, d));
        [
            _mm256_permute2f128_pd::<0x20>(ab, cd),
            _mm256_permute2f128_pd::<0x20>(ab_high, cd_high),
            _mm256_permute2f128_pd::<0x31>(ab, cd),
            _mm256_permute2f128_pd::<0x31>(ab_high, cd_high),
        ]
    }
}
