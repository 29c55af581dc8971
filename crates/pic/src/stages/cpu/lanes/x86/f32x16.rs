//! Sixteen numbers: AVX-512 (F, BW, DQ, VL).

use std::arch::x86_64::*;

use zellige_engine::real::Real;

use super::super::Lanes;
use super::{fused_and_rounded, lanes, mask, real, register};

register! {
    /// Sixteen numbers.
    F32x16 = [f32; 16] in __m512, _mm512_xor_ps,
    Add add AddAssign add_assign _mm512_add_ps;
    Sub sub SubAssign sub_assign _mm512_sub_ps;
    Mul mul MulAssign mul_assign _mm512_mul_ps;
    Div div DivAssign div_assign _mm512_div_ps;
}

mask! { Bits(u16) }

impl Real for F32x16 {
    real! { f32 16: _mm512_set1_ps _mm512_sqrt_ps _mm512_min_ps _mm512_max_ps, _mm512_cmp_ps_mask::<_CMP_LT_OQ>, _mm512_cmp_ps_mask::<_CMP_LE_OQ> }
    fused_and_rounded! { _mm512_fmadd_ps _mm512_roundscale_ps }

    /// An estimate of 14 bits and a step of Newton's method, 2^-28 off before it is rounded: division takes four times as long.
    #[inline(always)]
    fn recip(self) -> Self {
        // SAFETY: see the module.
        unsafe {
            let y = _mm512_rcp14_ps(self.0);
            Self(_mm512_fmadd_ps(y, _mm512_fnmadd_ps(self.0, y, Self::ONE.0), y))
        }
    }
    /// Likewise.
    #[inline(always)]
    fn recip_sqrt(self) -> Self {
        // SAFETY: see the module.
        unsafe {
            let y = _mm512_rsqrt14_ps(self.0);
            let half = _mm512_mul_ps(_mm512_mul_ps(Self::HALF.0, self.0), y);
            Self(_mm512_fmadd_ps(y, _mm512_fnmadd_ps(half, y, Self::HALF.0), y))
        }
    }
    #[inline(always)]
    fn abs(self) -> Self {
        // SAFETY: see the module.
        Self(unsafe { _mm512_abs_ps(self.0) })
    }
    #[inline(always)]
    fn select(m: Bits, a: Self, b: Self) -> Self {
        // SAFETY: see the module.
        Self(unsafe { _mm512_mask_blend_ps(m.0, b.0, a.0) })
    }
}

impl Lanes for F32x16 {
    lanes! { f32 __m512i: _mm512_loadu_ps _mm512_storeu_ps _mm512_loadu_si512 _mm512_storeu_si512,
        _mm512_or_ps _mm512_cmp_ps_mask::<_CMP_NEQ_UQ>, _mm512_maskz_mov_ps _mm512_cvtps_epi32 _mm512_cvtepi32_ps,
        _mm512_set1_epi32 _mm512_add_epi32 _mm512_and_si512 _mm512_sll_epi32 _mm512_srl_epi32, _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
    }

    const CELLS: usize = 16;
    const HALVES: bool = true;

    #[inline(always)]
    unsafe fn load_cells(p: *const u8) -> __m512i {
        // SAFETY: see the module, and the trait for memory.
        unsafe { _mm512_cvtepu8_epi32(_mm_loadu_si128(p.cast())) }
    }
    #[inline(always)]
    unsafe fn store_cells(i: __m512i, p: *mut u8) {
        // SAFETY: see the module, and the trait for memory.
        unsafe { _mm_storeu_si128(p.cast(), _mm512_cvtepi32_epi8(i)) }
    }
    #[inline(always)]
    unsafe fn lookup(t: *const f32, i: __m512i) -> Self {
        // SAFETY: see the module, and the trait for memory.
        Self(unsafe { _mm512_permutexvar_ps(i, _mm512_loadu_ps(t)) })
    }
    #[inline(always)]
    unsafe fn lookup_half(t: *const f32, i: __m512i) -> Self {
        // SAFETY: see the module, and the trait for memory.
        Self(unsafe { _mm512_permutex2var_ps(_mm512_loadu_ps(t), i, _mm512_loadu_ps(t.add(16))) })
    }
    #[inline(always)]
    fn half(self, cell: __m512i) -> __m512i {
        // `cell | sign & 16`, the sign bit moved to 16.
        // SAFETY: see the module.
        unsafe { _mm512_ternarylogic_epi32::<0xf8>(cell, _mm512_srli_epi32::<27>(_mm512_castps_si512(self.0)), _mm512_set1_epi32(16)) }
    }
    #[inline(always)]
    unsafe fn gather(p: *const f32, i: __m512i) -> Self {
        // SAFETY: see the module, and the trait for memory.
        Self(unsafe { _mm512_i32gather_ps::<4>(i, p) })
    }
    #[inline(always)]
    fn crossed(self) -> Self {
        // SAFETY: see the module.
        Self(unsafe { _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self.0) })
    }
    #[inline(always)]
    fn first(n: usize) -> Bits {
        Bits(if n >= 16 { u16::MAX } else { (1 << n) - 1 })
    }
    #[inline(always)]
    unsafe fn list(m: Bits, i: __m512i, to: *mut u32) -> usize {
        // To memory by way of a register: compressing stores are slow on some processors.
        // SAFETY: see the module, and the trait for memory.
        unsafe { _mm512_storeu_si512(to.cast(), _mm512_maskz_compress_epi32(m.0, i)) };
        m.0.count_ones() as usize
    }

    /// A transpose of eight registers by pairs, fours and halves; each particle is then one addition of 32 bytes.
    #[inline(always)]
    unsafe fn add_to_cells(v: [Self; 8], to: *mut f32, at: *const u32) {
        // SAFETY: see the module, and the trait for memory.
        unsafe {
            let low = |a: usize| _mm512_castps_pd(_mm512_unpacklo_ps(v[a].0, v[a + 1].0));
            let high = |a: usize| _mm512_castps_pd(_mm512_unpackhi_ps(v[a].0, v[a + 1].0));
            let (a0, a1, b0, b1) = (low(0), high(0), low(2), high(2));
            let (c0, c1, d0, d1) = (low(4), high(4), low(6), high(6));
            let first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
            let second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
            // Lane m of each quarter of the registers: particles m, m + 4, m + 8, m + 12.
            macro_rules! quarter {
                ($m:expr, $front:expr, $back:expr) => {{
                    let u = _mm512_castpd_ps(_mm512_permutex2var_pd($front, first, $back));
                    let w = _mm512_castpd_ps(_mm512_permutex2var_pd($front, second, $back));
                    add_one(to, at.add($m), _mm512_castps512_ps256(u));
                    add_one(to, at.add($m + 4), _mm512_extractf32x8_ps::<1>(u));
                    add_one(to, at.add($m + 8), _mm512_castps512_ps256(w));
                    add_one(to, at.add($m + 12), _mm512_extractf32x8_ps::<1>(w));
                }};
            }
            quarter!(0, _mm512_unpacklo_pd(a0, b0), _mm512_unpacklo_pd(c0, d0));
            quarter!(1, _mm512_unpackhi_pd(a0, b0), _mm512_unpackhi_pd(c0, d0));
            quarter!(2, _mm512_unpacklo_pd(a1, b1), _mm512_unpacklo_pd(c1, d1));
            quarter!(3, _mm512_unpackhi_pd(a1, b1), _mm512_unpackhi_pd(c1, d1));
        }
    }
}

/// `to[at] += v`. The index is read back from memory as it stands there (`volatile`): the compiler would otherwise take it out
/// of the register lane by lane, which is slower.
#[inline(always)]
pub(super) unsafe fn add_one(to: *mut f32, at: *const u32, v: __m256) {
    // SAFETY: see the module, and the trait for memory.
    unsafe {
        let cell = to.add(at.read_volatile() as usize);
        _mm256_store_ps(cell, _mm256_add_ps(_mm256_load_ps(cell), v));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stages::cpu::Isa;

    /// Off by 3/2 (2^-14)^2 before it is rounded, and rounded at most three times by half a unit of 2^-23: two units.
    #[test]
    fn reciprocals_without_division_are_right_to_two_units() {
        #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
        unsafe fn both(x: &[f32; 16]) -> [[f32; 16]; 2] {
            let mut out = [[0.0; 16]; 2];
            // SAFETY: sixteen numbers each, and the caller's.
            unsafe {
                let x = F32x16::load(x.as_ptr());
                x.recip().store(out[0].as_mut_ptr());
                x.recip_sqrt().store(out[1].as_mut_ptr());
            }
            out
        }
        if !Isa::all().contains(&Isa::Avx512) {
            println!("skipped: no AVX-512");
            return;
        }
        // From 2^-60 to 2^120, no two mantissas alike: what 1 + u^2 can be, and much more.
        let mut x = 2_f64.powi(-60);
        while x < 2_f64.powi(120) {
            let inputs: [f32; 16] = std::array::from_fn(|k| (x * (1.0 + k as f64 / 16.0)) as f32);
            // SAFETY: the CPU was asked.
            let found = unsafe { both(&inputs) };
            for (k, x) in inputs.into_iter().enumerate() {
                for (found, exact) in [(found[0][k], 1.0 / f64::from(x)), (found[1][k], 1.0 / f64::from(x).sqrt())] {
                    let error = (f64::from(found) / exact - 1.0).abs();
                    assert!(error <= 2.0 * f64::from(f32::EPSILON), "{x}: {found} is off by {error}");
                }
            }
            x *= 1.000_37;
        }
    }
}
