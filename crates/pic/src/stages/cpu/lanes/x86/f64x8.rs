//! Eight numbers in double precision: AVX-512 (F, BW, DQ, VL).

use std::arch::x86_64::*;
use std::ops::Neg;

use zellige_engine::real::Real;

use super::super::Lanes;
use super::{arithmetic, mask, whole_numbers};

/// Eight numbers.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(crate) struct F64x8(__m512d);

mask! { Bits(u8) }

#[inline(always)]
const fn constant(x: f64) -> F64x8 {
    // SAFETY: eight numbers, bit for bit.
    F64x8(unsafe { std::mem::transmute::<[f64; 8], __m512d>([x; 8]) })
}

impl Default for F64x8 {
    #[inline(always)]
    fn default() -> Self {
        Self::ZERO
    }
}

arithmetic! { F64x8:
    Add add AddAssign add_assign _mm512_add_pd;
    Sub sub SubAssign sub_assign _mm512_sub_pd;
    Mul mul MulAssign mul_assign _mm512_mul_pd;
    Div div DivAssign div_assign _mm512_div_pd;
}

impl Neg for F64x8 {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        // SAFETY: see the module.
        Self(unsafe { _mm512_xor_pd(self.0, constant(-0.0).0) })
    }
}

impl Real for F64x8 {
    type Mask = Bits;
    type Scalar = f64;

    const LANES: usize = 8;
    const ZERO: Self = constant(0.0);
    const HALF: Self = constant(0.5);
    const ONE: Self = constant(1.0);
    const TWO: Self = constant(2.0);

    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        Self::splat(x)
    }
    #[inline(always)]
    fn splat(x: f64) -> Self {
        // SAFETY: see the module; the same holds below.
        Self(unsafe { _mm512_set1_pd(x) })
    }
    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        Self(unsafe { _mm512_fmadd_pd(self.0, a.0, b.0) })
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(unsafe { _mm512_sqrt_pd(self.0) })
    }
    // These give the second one where a comparison does not hold, as the trait has it.
    #[inline(always)]
    fn min(self, o: Self) -> Self {
        Self(unsafe { _mm512_min_pd(self.0, o.0) })
    }
    #[inline(always)]
    fn max(self, o: Self) -> Self {
        Self(unsafe { _mm512_max_pd(self.0, o.0) })
    }
    #[inline(always)]
    fn abs(self) -> Self {
        Self(unsafe { _mm512_abs_pd(self.0) })
    }
    #[inline(always)]
    fn floor(self) -> Self {
        Self(unsafe { _mm512_roundscale_pd::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(self.0) })
    }
    #[inline(always)]
    fn ceil(self) -> Self {
        Self(unsafe { _mm512_roundscale_pd::<{ _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC }>(self.0) })
    }
    #[inline(always)]
    fn lt(self, o: Self) -> Bits {
        Bits(unsafe { _mm512_cmp_pd_mask::<_CMP_LT_OQ>(self.0, o.0) })
    }
    #[inline(always)]
    fn le(self, o: Self) -> Bits {
        Bits(unsafe { _mm512_cmp_pd_mask::<_CMP_LE_OQ>(self.0, o.0) })
    }
    #[inline(always)]
    fn select(m: Bits, a: Self, b: Self) -> Self {
        Self(unsafe { _mm512_mask_blend_pd(m.0, b.0, a.0) })
    }
}

impl Lanes for F64x8 {
    type Index = __m256i;

    const CELLS: usize = 8;

    // SAFETY of all below: see the module for instructions, the trait for memory.
    #[inline(always)]
    unsafe fn load(p: *const f64) -> Self {
        Self(unsafe { _mm512_loadu_pd(p) })
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f64) {
        unsafe { _mm512_storeu_pd(p, self.0) }
    }
    #[inline(always)]
    unsafe fn load_cells(p: *const u8) -> __m256i {
        unsafe { _mm256_cvtepu8_epi32(_mm_loadl_epi64(p.cast())) }
    }
    #[inline(always)]
    unsafe fn store_cells(i: __m256i, p: *mut u8) {
        unsafe { _mm_storel_epi64(p.cast(), _mm256_cvtepi32_epi8(i)) }
    }
    #[inline(always)]
    unsafe fn load_index(p: *const u32) -> __m256i {
        unsafe { _mm256_loadu_si256(p.cast()) }
    }
    #[inline(always)]
    unsafe fn store_index(i: __m256i, p: *mut u32) {
        unsafe { _mm256_storeu_si256(p.cast(), i) }
    }
    #[inline(always)]
    unsafe fn lookup(t: *const f64, i: __m256i) -> Self {
        Self(unsafe { _mm512_permutexvar_pd(_mm512_cvtepu32_epi64(i), _mm512_loadu_pd(t)) })
    }
    #[inline(always)]
    unsafe fn gather(p: *const f64, i: __m256i) -> Self {
        Self(unsafe { _mm512_i32gather_pd::<8>(i, p) })
    }
    #[inline(always)]
    fn crossed(self) -> Self {
        Self(unsafe { _mm512_roundscale_pd::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self.0) })
    }
    #[inline(always)]
    fn either(self, o: Self) -> Bits {
        Bits(unsafe { _mm512_cmp_pd_mask::<_CMP_NEQ_UQ>(_mm512_or_pd(self.0, o.0), Self::ZERO.0) })
    }
    #[inline(always)]
    fn whole(self) -> __m256i {
        unsafe { _mm512_cvtpd_epi32(self.0) }
    }
    #[inline(always)]
    fn real(i: __m256i) -> Self {
        Self(unsafe { _mm512_cvtepi32_pd(i) })
    }
    whole_numbers! { __m256i: _mm256_set1_epi32 _mm256_add_epi32 _mm256_and_si256 _mm256_sll_epi32 _mm256_srl_epi32 }
    #[inline(always)]
    fn iota() -> __m256i {
        unsafe { _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7) }
    }
    #[inline(always)]
    fn first(n: usize) -> Bits {
        Bits(if n >= 8 { u8::MAX } else { (1 << n) - 1 })
    }
    #[inline(always)]
    fn keep(self, m: Bits) -> Self {
        Self(unsafe { _mm512_maskz_mov_pd(m.0, self.0) })
    }
    #[inline(always)]
    unsafe fn list(m: Bits, i: __m256i, to: *mut u32) -> usize {
        // To memory by way of a register: compressing stores are slow on some processors.
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
        unsafe {
            four!(_mm512_unpacklo_pd, 0);
            four!(_mm512_unpackhi_pd, 1);
        }
    }
}

/// `to[at] += v`; the index as in the other registers' function of this name.
#[inline(always)]
unsafe fn add_one(to: *mut f64, at: *const u32, v: __m512d) {
    unsafe {
        let cell = to.add(at.read_volatile() as usize);
        _mm512_storeu_pd(cell, _mm512_add_pd(_mm512_loadu_pd(cell), v));
    }
}
