//! Two numbers in double precision: SSE2, which every x86-64 processor has. It cannot look numbers up by lane: tables are kept by
//! cells.

use std::arch::x86_64::*;

use zellige_engine::real::Real;

use super::super::Lanes;
use super::{bits, lanes, real, register};

register! {
    /// Two numbers.
    F64x2 = [f64; 2] in __m128d, _mm_xor_pd,
    Add add AddAssign add_assign _mm_add_pd;
    Sub sub SubAssign sub_assign _mm_sub_pd;
    Mul mul MulAssign mul_assign _mm_mul_pd;
    Div div DivAssign div_assign _mm_div_pd;
}

bits! { Bits(__m128d): _mm_and_pd _mm_or_pd _mm_xor_pd _mm_castsi128_pd(_mm_set1_epi32(-1)), _mm_movemask_pd 0x3 }

/// 3/2 of the number whose last digit is 1: added and taken away again it leaves the nearest whole number, halves to even ones.
const DIGITS: F64x2 = constant(1.5 * (1_u64 << 52) as f64);

impl F64x2 {
    /// The nearest whole number below 2^51 in size, and itself above.
    #[inline(always)]
    fn rounded(self) -> Self {
        let near = (self + DIGITS) - DIGITS;
        Self::select(self.abs().lt(constant((1_u64 << 51) as f64)), near, self)
    }
}

impl Real for F64x2 {
    real! { f64 2: _mm_set1_pd _mm_sqrt_pd _mm_min_pd _mm_max_pd, _mm_cmplt_pd, _mm_cmple_pd }

    #[inline(always)]
    fn abs(self) -> Self {
        // SAFETY: see the module.
        Self(unsafe { _mm_andnot_pd(constant(-0.0).0, self.0) })
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
        Self(unsafe { _mm_or_pd(_mm_and_pd(m.0, a.0), _mm_andnot_pd(m.0, b.0)) })
    }
}

/// The whole numbers of both lanes are the first two of four; the others mean nothing.
impl Lanes for F64x2 {
    lanes! { f64 __m128i: _mm_loadu_pd _mm_storeu_pd _mm_loadl_epi64 _mm_storel_epi64,
        _mm_or_pd _mm_cmpneq_pd, _mm_and_pd _mm_cvtpd_epi32 _mm_cvtepi32_pd,
        _mm_set1_epi32 _mm_add_epi32 _mm_and_si128 _mm_sll_epi32 _mm_srl_epi32, _mm_setr_epi32(0, 1, 2, 3)
    }

    const CELLS: usize = 8;
    const BY_CELL: bool = true;

    #[inline(always)]
    unsafe fn load_cells(p: *const u8) -> __m128i {
        // SAFETY: see the module, and the trait for memory.
        unsafe {
            let zero = _mm_setzero_si128();
            let bytes = _mm_cvtsi32_si128(i32::from(p.cast::<u16>().read_unaligned()));
            _mm_unpacklo_epi16(_mm_unpacklo_epi8(bytes, zero), zero)
        }
    }
    #[inline(always)]
    unsafe fn store_cells(i: __m128i, p: *mut u8) {
        // SAFETY: see the module, and the trait for memory.
        unsafe {
            let [i, j] = two(i);
            p.cast::<[u8; 2]>().write_unaligned([i as u8, j as u8]);
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
            let [i, j] = two(at);
            let (a, b) = (t.add(i as usize), t.add(j as usize));
            let [first, second] = columns(_mm_loadu_pd(a), _mm_loadu_pd(b));
            let [third, fourth] = columns(_mm_loadu_pd(a.add(2)), _mm_loadu_pd(b.add(2)));
            [first, second, third, fourth]
        }
    }
    #[inline(always)]
    unsafe fn gather(p: *const f64, i: __m128i) -> Self {
        // SAFETY: see the module, and the trait for memory.
        unsafe {
            let [i, j] = two(i);
            Self(_mm_setr_pd(*p.add(i as usize), *p.add(j as usize)))
        }
    }
    #[inline(always)]
    fn crossed(self) -> Self {
        (self + DIGITS) - DIGITS
    }
    #[inline(always)]
    fn first(n: usize) -> Bits {
        // SAFETY: see the module.
        Bits(unsafe { _mm_cmplt_pd(_mm_setr_pd(0.0, 1.0), _mm_set1_pd(n.min(2) as f64)) })
    }
    #[inline(always)]
    unsafe fn list(m: Bits, i: __m128i, to: *mut u32) -> usize {
        let bits = m.number();
        // SAFETY: see the module, and the trait for memory.
        unsafe {
            let [i, j] = two(i);
            *to = if bits & 1 == 1 { i } else { j };
            *to.add(1) = j;
        }
        bits.count_ones() as usize
    }

    /// Four transposes of two by two; each particle is then four additions of 16 bytes.
    #[inline(always)]
    unsafe fn add_to_cells(v: [Self; 8], to: *mut f64, at: *const u32) {
        // SAFETY: see the module, and the trait for memory.
        unsafe {
            let (a, b) = (to.add(*at as usize), to.add(*at.add(1) as usize));
            // Lane after lane: both may be of one cell.
            let quarters = [columns(v[0].0, v[1].0), columns(v[2].0, v[3].0), columns(v[4].0, v[5].0), columns(v[6].0, v[7].0)];
            macro_rules! add {
                ($cell:expr, $lane:expr) => {{
                    (Self(_mm_load_pd($cell)) + quarters[0][$lane]).store($cell);
                    (Self(_mm_load_pd($cell.add(2))) + quarters[1][$lane]).store($cell.add(2));
                    (Self(_mm_load_pd($cell.add(4))) + quarters[2][$lane]).store($cell.add(4));
                    (Self(_mm_load_pd($cell.add(6))) + quarters[3][$lane]).store($cell.add(6));
                }};
            }
            add!(a, 0);
            add!(b, 1);
        }
    }
}

/// The whole numbers of both lanes.
#[inline(always)]
fn two(i: __m128i) -> [u32; 2] {
    // SAFETY: 16 bytes each.
    let [i, j, _, _] = unsafe { std::mem::transmute::<__m128i, [u32; 4]>(i) };
    [i, j]
}

/// Rows become columns.
#[inline(always)]
unsafe fn columns(a: __m128d, b: __m128d) -> [F64x2; 2] {
    // SAFETY: see the module.
    unsafe { [F64x2(_mm_unpacklo_pd(a, b)), F64x2(_mm_unpackhi_pd(a, b))] }
}
