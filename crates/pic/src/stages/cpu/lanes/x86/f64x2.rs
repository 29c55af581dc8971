//! Two numbers in double precision: SSE2, which every x86-64 processor has. It cannot look numbers up by lane: tables are kept by
//! cells.

use std::arch::x86_64::*;
use std::ops::Neg;

use zellige_engine::real::Real;

use super::super::Lanes;
use super::{arithmetic, bits, whole_numbers};

/// Two numbers.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(crate) struct F64x2(__m128d);

bits! { Bits(__m128d): _mm_and_pd _mm_or_pd _mm_xor_pd _mm_castsi128_pd(_mm_set1_epi32(-1)), _mm_movemask_pd 0x3 }

#[inline(always)]
const fn constant(x: f64) -> F64x2 {
    // SAFETY: two numbers, bit for bit.
    F64x2(unsafe { std::mem::transmute::<[f64; 2], __m128d>([x; 2]) })
}

/// 3/2 of the number whose last digit is 1: added and taken away again it leaves the nearest whole number, halves to even ones.
const DIGITS: F64x2 = constant(1.5 * (1_u64 << 52) as f64);

impl Default for F64x2 {
    #[inline(always)]
    fn default() -> Self {
        Self::ZERO
    }
}

arithmetic! { F64x2:
    Add add AddAssign add_assign _mm_add_pd;
    Sub sub SubAssign sub_assign _mm_sub_pd;
    Mul mul MulAssign mul_assign _mm_mul_pd;
    Div div DivAssign div_assign _mm_div_pd;
}

impl Neg for F64x2 {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        // SAFETY: see the module.
        Self(unsafe { _mm_xor_pd(self.0, constant(-0.0).0) })
    }
}

impl F64x2 {
    /// The nearest whole number below 2^51 in size, and itself above.
    #[inline(always)]
    fn rounded(self) -> Self {
        let near = (self + DIGITS) - DIGITS;
        Self::select(self.abs().lt(constant((1_u64 << 51) as f64)), near, self)
    }
}

impl Real for F64x2 {
    type Mask = Bits;
    type Scalar = f64;

    const LANES: usize = 2;
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
        Self(unsafe { _mm_set1_pd(x) })
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(unsafe { _mm_sqrt_pd(self.0) })
    }
    // These give the second one where a comparison does not hold, as the trait has it.
    #[inline(always)]
    fn min(self, o: Self) -> Self {
        Self(unsafe { _mm_min_pd(self.0, o.0) })
    }
    #[inline(always)]
    fn max(self, o: Self) -> Self {
        Self(unsafe { _mm_max_pd(self.0, o.0) })
    }
    #[inline(always)]
    fn abs(self) -> Self {
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
    fn lt(self, o: Self) -> Bits {
        Bits(unsafe { _mm_cmplt_pd(self.0, o.0) })
    }
    #[inline(always)]
    fn le(self, o: Self) -> Bits {
        Bits(unsafe { _mm_cmple_pd(self.0, o.0) })
    }
    #[inline(always)]
    fn select(m: Bits, a: Self, b: Self) -> Self {
        Self(unsafe { _mm_or_pd(_mm_and_pd(m.0, a.0), _mm_andnot_pd(m.0, b.0)) })
    }
}

/// The whole numbers of both lanes are the first two of four; the others mean nothing.
impl Lanes for F64x2 {
    type Index = __m128i;

    const CELLS: usize = 8;
    const BY_CELL: bool = true;

    // SAFETY of all below: see the module for instructions, the trait for memory.
    #[inline(always)]
    unsafe fn load(p: *const f64) -> Self {
        Self(unsafe { _mm_loadu_pd(p) })
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f64) {
        unsafe { _mm_storeu_pd(p, self.0) }
    }
    #[inline(always)]
    unsafe fn load_cells(p: *const u8) -> __m128i {
        unsafe {
            let zero = _mm_setzero_si128();
            let bytes = _mm_cvtsi32_si128(i32::from(p.cast::<u16>().read_unaligned()));
            _mm_unpacklo_epi16(_mm_unpacklo_epi8(bytes, zero), zero)
        }
    }
    #[inline(always)]
    unsafe fn store_cells(i: __m128i, p: *mut u8) {
        unsafe {
            let [i, j] = two(i);
            p.cast::<[u8; 2]>().write_unaligned([i as u8, j as u8]);
        }
    }
    #[inline(always)]
    unsafe fn load_index(p: *const u32) -> __m128i {
        unsafe { _mm_loadl_epi64(p.cast()) }
    }
    #[inline(always)]
    unsafe fn store_index(i: __m128i, p: *mut u32) {
        unsafe { _mm_storel_epi64(p.cast(), i) }
    }
    #[inline(always)]
    unsafe fn lookup(t: *const f64, i: __m128i) -> Self {
        unsafe { Self::gather(t, i) }
    }
    #[inline(always)]
    unsafe fn lookup_four(t: *const f64, at: __m128i) -> [Self; 4] {
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
    fn either(self, o: Self) -> Bits {
        Bits(unsafe { _mm_cmpneq_pd(_mm_or_pd(self.0, o.0), Self::ZERO.0) })
    }
    #[inline(always)]
    fn whole(self) -> __m128i {
        unsafe { _mm_cvtpd_epi32(self.0) }
    }
    #[inline(always)]
    fn real(i: __m128i) -> Self {
        Self(unsafe { _mm_cvtepi32_pd(i) })
    }
    whole_numbers! { __m128i: _mm_set1_epi32 _mm_add_epi32 _mm_and_si128 _mm_sll_epi32 _mm_srl_epi32 }
    #[inline(always)]
    fn iota() -> __m128i {
        unsafe { _mm_setr_epi32(0, 1, 2, 3) }
    }
    #[inline(always)]
    fn first(n: usize) -> Bits {
        Bits(unsafe { _mm_cmplt_pd(_mm_setr_pd(0.0, 1.0), _mm_set1_pd(n.min(2) as f64)) })
    }
    #[inline(always)]
    fn keep(self, m: Bits) -> Self {
        Self(unsafe { _mm_and_pd(m.0, self.0) })
    }
    #[inline(always)]
    unsafe fn list(m: Bits, i: __m128i, to: *mut u32) -> usize {
        let bits = m.number();
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
