//! Four numbers in double precision: AVX2 and FMA. Tables are kept by cells: a row of four and a transpose are cheaper than four
//! gathers.

use std::arch::x86_64::*;
use std::ops::Neg;

use zellige_engine::real::Real;

use super::super::Lanes;
use super::{arithmetic, bits, whole_numbers};

/// Four numbers.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(crate) struct F64x4(__m256d);

bits! { Bits(__m256d): _mm256_and_pd _mm256_or_pd _mm256_xor_pd _mm256_castsi256_pd(_mm256_set1_epi32(-1)), _mm256_movemask_pd 0xf }

#[inline(always)]
const fn constant(x: f64) -> F64x4 {
    // SAFETY: four numbers, bit for bit.
    F64x4(unsafe { std::mem::transmute::<[f64; 4], __m256d>([x; 4]) })
}

impl Default for F64x4 {
    #[inline(always)]
    fn default() -> Self {
        Self::ZERO
    }
}

arithmetic! { F64x4:
    Add add AddAssign add_assign _mm256_add_pd;
    Sub sub SubAssign sub_assign _mm256_sub_pd;
    Mul mul MulAssign mul_assign _mm256_mul_pd;
    Div div DivAssign div_assign _mm256_div_pd;
}

impl Neg for F64x4 {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        // SAFETY: see the module.
        Self(unsafe { _mm256_xor_pd(self.0, constant(-0.0).0) })
    }
}

/// For each mask of four lanes the numbers of those that hold, in order.
static PLACES: [[u32; 4]; 16] = {
    let mut places = [[0; 4]; 16];
    let mut mask = 0;
    while mask < 16 {
        let (mut lane, mut n) = (0, 0);
        while lane < 4 {
            if mask >> lane & 1 == 1 {
                places[mask][n] = lane;
                n += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    places
};

impl Real for F64x4 {
    type Mask = Bits;
    type Scalar = f64;

    const LANES: usize = 4;
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
        Self(unsafe { _mm256_set1_pd(x) })
    }
    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        Self(unsafe { _mm256_fmadd_pd(self.0, a.0, b.0) })
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(unsafe { _mm256_sqrt_pd(self.0) })
    }
    // These give the second one where a comparison does not hold, as the trait has it.
    #[inline(always)]
    fn min(self, o: Self) -> Self {
        Self(unsafe { _mm256_min_pd(self.0, o.0) })
    }
    #[inline(always)]
    fn max(self, o: Self) -> Self {
        Self(unsafe { _mm256_max_pd(self.0, o.0) })
    }
    #[inline(always)]
    fn abs(self) -> Self {
        Self(unsafe { _mm256_andnot_pd(constant(-0.0).0, self.0) })
    }
    #[inline(always)]
    fn floor(self) -> Self {
        Self(unsafe { _mm256_round_pd::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(self.0) })
    }
    #[inline(always)]
    fn ceil(self) -> Self {
        Self(unsafe { _mm256_round_pd::<{ _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC }>(self.0) })
    }
    #[inline(always)]
    fn lt(self, o: Self) -> Bits {
        Bits(unsafe { _mm256_cmp_pd::<_CMP_LT_OQ>(self.0, o.0) })
    }
    #[inline(always)]
    fn le(self, o: Self) -> Bits {
        Bits(unsafe { _mm256_cmp_pd::<_CMP_LE_OQ>(self.0, o.0) })
    }
    #[inline(always)]
    fn select(m: Bits, a: Self, b: Self) -> Self {
        Self(unsafe { _mm256_blendv_pd(b.0, a.0, m.0) })
    }
}

impl Lanes for F64x4 {
    type Index = __m128i;

    const CELLS: usize = 8;
    const BY_CELL: bool = true;

    // SAFETY of all below: see the module for instructions, the trait for memory.
    #[inline(always)]
    unsafe fn load(p: *const f64) -> Self {
        Self(unsafe { _mm256_loadu_pd(p) })
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f64) {
        unsafe { _mm256_storeu_pd(p, self.0) }
    }
    #[inline(always)]
    unsafe fn load_cells(p: *const u8) -> __m128i {
        unsafe { _mm_cvtepu8_epi32(_mm_cvtsi32_si128(p.cast::<i32>().read_unaligned())) }
    }
    #[inline(always)]
    unsafe fn store_cells(i: __m128i, p: *mut u8) {
        unsafe {
            let low = _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
            p.cast::<i32>().write_unaligned(_mm_cvtsi128_si32(_mm_shuffle_epi8(i, low)));
        }
    }
    #[inline(always)]
    unsafe fn load_index(p: *const u32) -> __m128i {
        unsafe { _mm_loadu_si128(p.cast()) }
    }
    #[inline(always)]
    unsafe fn store_index(i: __m128i, p: *mut u32) {
        unsafe { _mm_storeu_si128(p.cast(), i) }
    }
    #[inline(always)]
    unsafe fn lookup(t: *const f64, i: __m128i) -> Self {
        unsafe { Self::gather(t, i) }
    }
    #[inline(always)]
    unsafe fn lookup_four(t: *const f64, at: __m128i) -> [Self; 4] {
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
        Self(unsafe { _mm256_i32gather_pd::<8>(p, i) })
    }
    #[inline(always)]
    fn crossed(self) -> Self {
        Self(unsafe { _mm256_round_pd::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self.0) })
    }
    #[inline(always)]
    fn either(self, o: Self) -> Bits {
        Bits(unsafe { _mm256_cmp_pd::<_CMP_NEQ_UQ>(_mm256_or_pd(self.0, o.0), Self::ZERO.0) })
    }
    #[inline(always)]
    fn whole(self) -> __m128i {
        unsafe { _mm256_cvtpd_epi32(self.0) }
    }
    #[inline(always)]
    fn real(i: __m128i) -> Self {
        Self(unsafe { _mm256_cvtepi32_pd(i) })
    }
    whole_numbers! { __m128i: _mm_set1_epi32 _mm_add_epi32 _mm_and_si128 _mm_sll_epi32 _mm_srl_epi32 }
    #[inline(always)]
    fn iota() -> __m128i {
        unsafe { _mm_setr_epi32(0, 1, 2, 3) }
    }
    #[inline(always)]
    fn first(n: usize) -> Bits {
        Bits(unsafe { _mm256_cmp_pd::<_CMP_LT_OQ>(_mm256_setr_pd(0.0, 1.0, 2.0, 3.0), _mm256_set1_pd(n.min(4) as f64)) })
    }
    #[inline(always)]
    fn keep(self, m: Bits) -> Self {
        Self(unsafe { _mm256_and_pd(m.0, self.0) })
    }
    #[inline(always)]
    unsafe fn list(m: Bits, i: __m128i, to: *mut u32) -> usize {
        let bits = m.number();
        unsafe {
            let places = _mm_loadu_si128(PLACES[bits as usize].as_ptr().cast());
            _mm_storeu_si128(to.cast(), _mm_castps_si128(_mm_permutevar_ps(_mm_castsi128_ps(i), places)));
        }
        bits.count_ones() as usize
    }

    /// Two transposes of four by four; each particle is then two additions of 32 bytes.
    #[inline(always)]
    unsafe fn add_to_cells(v: [Self; 8], to: *mut f64, at: *const u32) {
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
