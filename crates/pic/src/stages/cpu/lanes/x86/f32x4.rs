//! Four numbers: SSE2, which every x86-64 processor has. It cannot look numbers up by lane: tables are kept by cells.

use std::arch::x86_64::*;

use zellige_engine::real::Real;

use super::super::Lanes;
use super::{bits, lanes, real, register};

register! {
    /// Four numbers.
    F32x4 = [f32; 4] in __m128, _mm_xor_ps,
    Add add AddAssign add_assign _mm_add_ps;
    Sub sub SubAssign sub_assign _mm_sub_ps;
    Mul mul MulAssign mul_assign _mm_mul_ps;
    Div div DivAssign div_assign _mm_div_ps;
}

bits! { Bits(__m128): _mm_and_ps _mm_or_ps _mm_xor_ps _mm_castsi128_ps(_mm_set1_epi32(-1)), _mm_movemask_ps 0xf }

/// 3/2 of the number whose last digit is 1: added and taken away again it leaves the nearest whole number, halves to even ones.
const DIGITS: F32x4 = constant(1.5 * 8_388_608.0);

impl F32x4 {
    /// The nearest whole number below 2^22 in size, and itself above.
    #[inline(always)]
    fn rounded(self) -> Self {
        let near = (self + DIGITS) - DIGITS;
        Self::select(self.abs().lt(constant(4_194_304.0)), near, self)
    }
}

impl Real for F32x4 {
    real! { f32 4: _mm_set1_ps _mm_sqrt_ps _mm_min_ps _mm_max_ps, _mm_cmplt_ps, _mm_cmple_ps }

    #[inline(always)]
    fn abs(self) -> Self {
        // SAFETY: see the module.
        Self(unsafe { _mm_andnot_ps(constant(-0.0).0, self.0) })
    }
    #[inline(always)]
    fn floor(self) -> Self {
        let near = self.rounded();
        near - Self::ONE.keep(near.gt(self))
    }
    #[inline(always)]
    fn ceil(self) -> Self {
        let near = self.rounded();
        near + Self::ONE.keep(near.lt(self))
    }
    #[inline(always)]
    fn select(m: Bits, a: Self, b: Self) -> Self {
        // SAFETY: see the module.
        Self(unsafe { _mm_or_ps(_mm_and_ps(m.0, a.0), _mm_andnot_ps(m.0, b.0)) })
    }
}

impl Lanes for F32x4 {
    lanes! { f32 __m128i: _mm_loadu_ps _mm_storeu_ps _mm_loadu_si128 _mm_storeu_si128,
        _mm_or_ps _mm_cmpneq_ps, _mm_and_ps _mm_cvtps_epi32 _mm_cvtepi32_ps,
        _mm_set1_epi32 _mm_add_epi32 _mm_and_si128 _mm_sll_epi32 _mm_srl_epi32, _mm_setr_epi32(0, 1, 2, 3)
    }

    const CELLS: usize = 8;
    const BY_CELL: bool = true;

    #[inline(always)]
    unsafe fn load_cells(p: *const u8) -> __m128i {
        // SAFETY: see the module, and the trait for memory.
        unsafe {
            let zero = _mm_setzero_si128();
            _mm_unpacklo_epi16(_mm_unpacklo_epi8(_mm_cvtsi32_si128(p.cast::<i32>().read_unaligned()), zero), zero)
        }
    }
    #[inline(always)]
    unsafe fn store_cells(i: __m128i, p: *mut u8) {
        // SAFETY: see the module, and the trait for memory.
        unsafe {
            // Packing saturates: the lower byte alone survives both.
            let bytes = _mm_and_si128(i, _mm_set1_epi32(0xff));
            let words = _mm_packs_epi32(bytes, bytes);
            p.cast::<i32>().write_unaligned(_mm_cvtsi128_si32(_mm_packus_epi16(words, words)));
        }
    }
    #[inline(always)]
    unsafe fn lookup(t: *const f32, i: __m128i) -> Self {
        // SAFETY: see the module, and the trait for memory.
        unsafe { Self::gather(t, i) }
    }
    #[inline(always)]
    unsafe fn lookup_four(t: *const f32, at: __m128i) -> [Self; 4] {
        // SAFETY: see the module, and the trait for memory.
        unsafe {
            let [i, j, k, l] = std::mem::transmute::<__m128i, [u32; 4]>(at);
            let rows = [t.add(i as usize), t.add(j as usize), t.add(k as usize), t.add(l as usize)];
            let [a, b, c, d] = transpose([_mm_loadu_ps(rows[0]), _mm_loadu_ps(rows[1]), _mm_loadu_ps(rows[2]), _mm_loadu_ps(rows[3])]);
            [Self(a), Self(b), Self(c), Self(d)]
        }
    }
    #[inline(always)]
    unsafe fn gather(p: *const f32, i: __m128i) -> Self {
        // SAFETY: see the module, and the trait for memory.
        unsafe {
            let [i, j, k, l] = std::mem::transmute::<__m128i, [u32; 4]>(i);
            Self(_mm_setr_ps(*p.add(i as usize), *p.add(j as usize), *p.add(k as usize), *p.add(l as usize)))
        }
    }
    #[inline(always)]
    fn crossed(self) -> Self {
        (self + DIGITS) - DIGITS
    }
    #[inline(always)]
    fn first(n: usize) -> Bits {
        // SAFETY: see the module.
        Bits(unsafe { _mm_castsi128_ps(_mm_cmpgt_epi32(_mm_set1_epi32(n.min(4) as i32), Self::iota())) })
    }
    #[inline(always)]
    unsafe fn list(m: Bits, i: __m128i, to: *mut u32) -> usize {
        let mut bits = m.number();
        let n = bits.count_ones() as usize;
        // Most groups have none or one.
        // SAFETY: see the module, and the trait for memory.
        let all = unsafe { std::mem::transmute::<__m128i, [u32; 4]>(i) };
        let mut k = 0;
        while bits != 0 {
            // SAFETY: see the module, and the trait for memory.
            unsafe { *to.add(k) = all[(bits.trailing_zeros() & 3) as usize] };
            bits &= bits - 1;
            k += 1;
        }
        n
    }

    /// Two transposes of four by four; each particle is then two additions of 16 bytes.
    #[inline(always)]
    unsafe fn add_to_cells(v: [Self; 8], to: *mut f32, at: *const u32) {
        // SAFETY: see the module, and the trait for memory.
        unsafe {
            let low = transpose([v[0].0, v[1].0, v[2].0, v[3].0]);
            let high = transpose([v[4].0, v[5].0, v[6].0, v[7].0]);
            macro_rules! add {
                ($l:expr) => {{
                    let cell = to.add(*at.add($l) as usize);
                    _mm_store_ps(cell, _mm_add_ps(_mm_load_ps(cell), low[$l]));
                    _mm_store_ps(cell.add(4), _mm_add_ps(_mm_load_ps(cell.add(4)), high[$l]));
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
unsafe fn transpose([a, b, c, d]: [__m128; 4]) -> [__m128; 4] {
    // SAFETY: see the module.
    unsafe {
        let (ab, cd) = (_mm_unpacklo_ps(a, b), _mm_unpacklo_ps(c, d));
        let (ab_high, cd_high) = (_mm_unpackhi_ps(a, b), _mm_unpackhi_ps(c, d));
        [_mm_movelh_ps(ab, cd), _mm_movehl_ps(cd, ab), _mm_movelh_ps(ab_high, cd_high), _mm_movehl_ps(cd_high, ab_high)]
    }
}
