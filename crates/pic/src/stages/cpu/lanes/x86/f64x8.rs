//! Eight numbers in double precision: AVX-512 (F, BW, DQ, VL).

use std::arch::x86_64::*;

use zellige_engine::real::Real;

use super::super::Lanes;
use super::{fused_and_rounded, lanes, mask, real, register};

register! {
    /// Eight numbers.
    F64x8 = [f64; 8] in __m512d, _mm512_xor_pd,
    Add add AddAssign add_assign _mm512_add_pd;
    Sub sub SubAssign sub_assign _mm512_sub_pd;
    Mul mul MulAssign mul_assign _mm512_mul_pd;
    Div div DivAssign div_assign _mm512_div_pd;
}

mask! { Bits(u8) }

impl Real for F64x8 {
    real! { f64 8: _mm512_set1_pd _mm512_sqrt_pd _mm512_min_pd _mm512_max_pd, _mm512_cmp_pd_mask::<_CMP_LT_OQ>, _mm512_cmp_pd_mask::<_CMP_LE_OQ> }
    fused_and_rounded! { _mm512_fmadd_pd _mm512_roundscale_pd }

    #[inline(always)]
    fn abs(self) -> Self {
        // SAFETY: see the module.
        Self(unsafe { _mm512_abs_pd(self.0) })
    }
    #[inline(always)]
    fn select(m: Bits, a: Self, b: Self) -> Self {
        // SAFETY: see the module.
        Self(unsafe { _mm512_mask_blend_pd(m.0, b.0, a.0) })
    }
}

impl Lanes for F64x8 {
    lanes! { f64 __m256i: _mm512_loadu_pd _mm512_storeu_pd _mm256_loadu_si256 _mm256_storeu_si256,
        _mm512_or_pd _mm512_cmp_pd_mask::<_CMP_NEQ_UQ>, _mm512_maskz_mov_pd _mm512_cvtpd_epi32 _mm512_cvtepi32_pd,
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
        unsafe { _mm_storel_epi64(p.cast(), _mm256_cvtepi32_epi8(i)) }
    }
    #[inline(always)]
    unsafe fn lookup(t: *const f64, i: __m256i) -> Self {
        // SAFETY: see the module, and the trait for memory.
        Self(unsafe { _mm512_permutexvar_pd(_mm512_cvtepu32_epi64(i), _mm512_loadu_pd(t)) })
    }
    #[inline(always)]
    unsafe fn gather(p: *const f64, i: __m256i) -> Self {
        // SAFETY: see the module, and the trait for memory.
        Self(unsafe { _mm512_i32gather_pd::<8>(i, p) })
    }
    #[inline(always)]
    fn crossed(self) -> Self {
        // SAFETY: see the module.
        Self(unsafe { _mm512_roundscale_pd::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self.0) })
    }
    #[inline(always)]
    fn first(n: usize) -> Bits {
        Bits(if n >= 8 { u8::MAX } else { (1 << n) - 1 })
    }
    #[inline(always)]
    unsafe fn list(m: Bits, i: __m256i, to: *mut u32) -> usize {
        // To memory by way of a register: compressing stores are slow on some processors.
        // SAFETY: see the module, and the trait for memory.
        unsafe { _mm256_storeu_si256(to.cast(), _mm256_maskz_compress_epi32(m.0, i)) };
        m.0.count_ones() as usize
    }

    /// A transpose of eight registers by pairs, then by quarters; each particle is then one addition of 64 bytes.
    #[inline(always)]
    unsafe fn add_to_cells(v: [Self; 8], to: *mut f64, at: *const u32) {
        macro_rules! four {
            ($unpack:ident, $first:expr) => {{
                let (a, b) = ($unpack(v[0].0, v[1].0), $unpack(v[2].0, v[3].0));
                let (c, d) = ($unpack(v[4].0, v[5].0), $unpack(v[6].0, v[7].0));
                let (ab, cd) = (_mm512_shuffle_f64x2::<0x44>(a, b), _mm512_shuffle_f64x2::<0x44>(c, d));
                add_one(to, at.add($first), _mm512_shuffle_f64x2::<0x88>(ab, cd));
                add_one(to, at.add($first + 2), _mm512_shuffle_f64x2::<0xdd>(ab, cd));
                let (ab, cd) = (_mm512_shuffle_f64x2::<0xee>(a, b), _mm512_shuffle_f64x2::<0xee>(c, d));
                add_one(to, at.add($first + 4), _mm512_shuffle_f64x2::<0x88>(ab, cd));
                add_one(to, at.add($first + 6), _mm512_shuffle_f64x2::<0xdd>(ab, cd));
            }};
        }
        // SAFETY: see the module, and the trait for memory.
        unsafe {
            four!(_mm512_unpacklo_pd, 0);
            four!(_mm512_unpackhi_pd, 1);
        }
    }
}

/// `to[at] += v`; the index as in the other registers' function of this name.
#[inline(always)]
unsafe fn add_one(to: *mut f64, at: *const u32, v: __m512d) {
    // SAFETY: see the module, and the trait for memory.
    unsafe {
        let cell = to.add(at.read_volatile() as usize);
        _mm512_storeu_pd(cell, _mm512_add_pd(_mm512_loadu_pd(cell), v));
    }
}
