//! Registers of complex numbers, for the loops around the DFTs: a loop is written once over [`Pairs`] and compiled for each
//! instruction set. No operation is fused or reordered, so all give the same bits.

use rustfft::num_complex::Complex;

#[cfg(target_arch = "x86_64")]
use zellige_engine::real::AVX512;

use super::transform::Scalar;
use crate::isa::Isa;

/// Register of neighbouring complex numbers with parts of type `T`.
///
/// # Safety
/// The methods of a register may be called only where its instructions are compiled in and the CPU has them.
pub(super) trait Pairs<T>: Copy {
    /// Complex numbers of a register.
    const LEN: usize;

    /// Loads the numbers from `from` on, which are at least [`Self::LEN`].
    unsafe fn load(from: *const Complex<T>) -> Self;
    /// Writes them to `to` on.
    unsafe fn store(self, to: *mut Complex<T>);
    /// The last one first.
    unsafe fn reversed(self) -> Self;
    /// Imaginary and real parts exchanged.
    unsafe fn swapped(self) -> Self;
    /// Real parts in both places.
    unsafe fn re(self) -> Self;
    /// Imaginary parts in both places.
    unsafe fn im(self) -> Self;
    unsafe fn add(self, o: Self) -> Self;
    unsafe fn sub(self, o: Self) -> Self;
    /// Part by part.
    unsafe fn times(self, o: Self) -> Self;
    unsafe fn scaled(self, by: T) -> Self;
    /// Real parts with the sign turned.
    unsafe fn negate_re(self) -> Self;

    /// Real parts less those of `o`, imaginary parts more.
    #[inline(always)]
    unsafe fn sub_add(self, o: Self) -> Self {
        // SAFETY: the caller's; likewise below.
        unsafe { self.add(o.negate_re()) }
    }
    /// Real parts more those of `o`, imaginary parts less.
    #[inline(always)]
    unsafe fn add_sub(self, o: Self) -> Self {
        unsafe { self.sub(o.negate_re()) }
    }
    /// Times `i`.
    #[inline(always)]
    unsafe fn times_i(self) -> Self {
        unsafe { self.swapped().negate_re() }
    }
    /// `self c`.
    #[inline(always)]
    unsafe fn by(self, c: Self) -> Self {
        unsafe { self.times(c.re()).sub_add(self.swapped().times(c.im())) }
    }
    /// `self` times the conjugate of `c`.
    #[inline(always)]
    unsafe fn by_conjugate(self, c: Self) -> Self {
        unsafe { self.times(c.re()).add_sub(self.swapped().times(c.im())) }
    }
}

/// A loop over complex numbers.
pub(super) trait Work<T> {
    /// Does it over registers `P`; must be `#[inline(always)]`.
    ///
    /// # Safety
    /// As for [`Pairs`].
    unsafe fn run<P: Pairs<T>>(self);
}

/// Does `work` with the instructions of `isa`, one of [`Isa::all`].
#[inline]
pub(super) fn run<T: Scalar, W: Work<T>>(isa: Isa, work: W) {
    match isa {
        // SAFETY: `Isa::all` asked the CPU.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { avx512::<T, W>(work) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { avx2::<T, W>(work) },
        // SAFETY: plain numbers need nothing.
        Isa::Baseline => unsafe { work.run::<Complex<T>>() },
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq")]
unsafe fn avx512<T: Scalar, W: Work<T>>(work: W) {
    // SAFETY: the caller's.
    if AVX512 { unsafe { work.run::<T::Avx512>() } } else { unreachable!("no `Isa` of this build") }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn avx2<T: Scalar, W: Work<T>>(work: W) {
    // SAFETY: the caller's.
    unsafe { work.run::<T::Avx2>() }
}

/// One complex number, on every processor.
impl<T: Scalar> Pairs<T> for Complex<T> {
    const LEN: usize = 1;

    #[inline(always)]
    unsafe fn load(from: *const Self) -> Self {
        // SAFETY: the caller's.
        unsafe { *from }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut Self) {
        // SAFETY: the caller's.
        unsafe { *to = self }
    }
    #[inline(always)]
    unsafe fn reversed(self) -> Self {
        self
    }
    #[inline(always)]
    unsafe fn swapped(self) -> Self {
        Self::new(self.im, self.re)
    }
    #[inline(always)]
    unsafe fn re(self) -> Self {
        Self::new(self.re, self.re)
    }
    #[inline(always)]
    unsafe fn im(self) -> Self {
        Self::new(self.im, self.im)
    }
    #[inline(always)]
    unsafe fn add(self, o: Self) -> Self {
        self + o
    }
    #[inline(always)]
    unsafe fn sub(self, o: Self) -> Self {
        self - o
    }
    #[inline(always)]
    unsafe fn times(self, o: Self) -> Self {
        Self::new(self.re * o.re, self.im * o.im)
    }
    #[inline(always)]
    unsafe fn scaled(self, by: T) -> Self {
        self.scale(by)
    }
    #[inline(always)]
    unsafe fn negate_re(self) -> Self {
        Self::new(-self.re, self.im)
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(clippy::wildcard_imports, reason = "the names of intrinsics cannot be confused")]
pub(super) mod x86 {
    use std::arch::x86_64::*;

    use super::{Complex, Pairs};

    macro_rules! pairs {
        (
            $(#[$doc:meta])* $name:ident($register:ty) of $len:literal $t:ty:
            $load:ident $store:ident $add:ident $sub:ident $mul:ident $xor:ident $splat:ident $sign:expr;
            reversed $reversed:expr; swapped $swapped:expr; re $re:expr; im $im:expr
        ) => {
            $(#[$doc])*
            #[derive(Clone, Copy)]
            pub(crate) struct $name($register);

            // SAFETY: the caller of a method has these instructions, and the numbers are there.
            impl Pairs<$t> for $name {
                const LEN: usize = $len;

                #[inline(always)]
                unsafe fn load(from: *const Complex<$t>) -> Self {
                    Self(unsafe { $load(from.cast()) })
                }
                #[inline(always)]
                unsafe fn store(self, to: *mut Complex<$t>) {
                    unsafe { $store(to.cast(), self.0) }
                }
                #[inline(always)]
                unsafe fn reversed(self) -> Self {
                    Self(unsafe { $reversed(self.0) })
                }
                #[inline(always)]
                unsafe fn swapped(self) -> Self {
                    Self(unsafe { $swapped(self.0) })
                }
                #[inline(always)]
                unsafe fn re(self) -> Self {
                    Self(unsafe { $re(self.0) })
                }
                #[inline(always)]
                unsafe fn im(self) -> Self {
                    Self(unsafe { $im(self.0) })
                }
                #[inline(always)]
                unsafe fn add(self, o: Self) -> Self {
                    Self(unsafe { $add(self.0, o.0) })
                }
                #[inline(always)]
                unsafe fn sub(self, o: Self) -> Self {
                    Self(unsafe { $sub(self.0, o.0) })
                }
                #[inline(always)]
                unsafe fn times(self, o: Self) -> Self {
                    Self(unsafe { $mul(self.0, o.0) })
                }
                #[inline(always)]
                unsafe fn scaled(self, by: $t) -> Self {
                    Self(unsafe { $mul(self.0, $splat(by)) })
                }
                #[inline(always)]
                unsafe fn negate_re(self) -> Self {
                    Self(unsafe { $xor(self.0, $sign) })
                }
            }
        };
    }

    pairs! {
        /// AVX-512, four of double precision.
        F64x8(__m512d) of 4 f64:
        _mm512_loadu_pd _mm512_storeu_pd _mm512_add_pd _mm512_sub_pd _mm512_mul_pd _mm512_xor_pd _mm512_set1_pd
        _mm512_setr_pd(-0.0, 0.0, -0.0, 0.0, -0.0, 0.0, -0.0, 0.0);
        reversed |v| _mm512_shuffle_f64x2::<0b00_01_10_11>(v, v); swapped _mm512_permute_pd::<0x55>;
        re _mm512_movedup_pd; im _mm512_permute_pd::<0xff>
    }
    pairs! {
        /// AVX-512, eight of single precision.
        F32x16(__m512) of 8 f32:
        _mm512_loadu_ps _mm512_storeu_ps _mm512_add_ps _mm512_sub_ps _mm512_mul_ps _mm512_xor_ps _mm512_set1_ps
        _mm512_castpd_ps(_mm512_set1_pd(f64::from_bits(0x8000_0000)));
        reversed |v| _mm512_castpd_ps(_mm512_permutexvar_pd(_mm512_setr_epi64(7, 6, 5, 4, 3, 2, 1, 0), _mm512_castps_pd(v)));
        swapped _mm512_permute_ps::<0b10_11_00_01>; re _mm512_moveldup_ps; im _mm512_movehdup_ps
    }
    pairs! {
        /// AVX2, two of double precision.
        F64x4(__m256d) of 2 f64:
        _mm256_loadu_pd _mm256_storeu_pd _mm256_add_pd _mm256_sub_pd _mm256_mul_pd _mm256_xor_pd _mm256_set1_pd
        _mm256_setr_pd(-0.0, 0.0, -0.0, 0.0);
        reversed |v| _mm256_permute2f128_pd::<1>(v, v); swapped _mm256_permute_pd::<0b0101>;
        re _mm256_movedup_pd; im _mm256_permute_pd::<0b1111>
    }
    pairs! {
        /// AVX2, four of single precision.
        F32x8(__m256) of 4 f32:
        _mm256_loadu_ps _mm256_storeu_ps _mm256_add_ps _mm256_sub_ps _mm256_mul_ps _mm256_xor_ps _mm256_set1_ps
        _mm256_castpd_ps(_mm256_set1_pd(f64::from_bits(0x8000_0000)));
        reversed |v| _mm256_castpd_ps(_mm256_permute4x64_pd::<0b00_01_10_11>(_mm256_castps_pd(v)));
        swapped _mm256_permute_ps::<0b10_11_00_01>; re _mm256_moveldup_ps; im _mm256_movehdup_ps
    }
}
