//! Registers of numbers for the transform, and the instruction sets. The transform is written once over [`Lanes`] and compiled for
//! each set; the best one that the machine has is chosen at run time. Passes over pixels use the engine's plain lanes.

use std::sync::Arc;

use num_complex::Complex;
#[cfg(target_arch = "x86_64")]
use zellige_engine::real::AVX512;
pub(crate) use zellige_engine::real::Isa;
use zellige_engine::real::RealScalar;
use zellige_fft::{FftDirection, Planned};

/// A transform of one length that a library does, in place.
pub(crate) type LibraryTransform<T> = Arc<dyn Fn(&mut [Complex<T>]) + Send + Sync>;

/// `f32` or `f64`, with what each instruction set makes of it.
pub(crate) trait Number: RealScalar {
    /// The forward transform of `n` numbers.
    fn library(n: usize) -> LibraryTransform<Self>;

    /// Numbers of a register.
    fn lanes(isa: Isa) -> usize;

    /// Does `work` with the instructions of `isa`.
    fn with<W: Work<Self>>(isa: Isa, work: W) -> W::Out;
}

/// A piece of work that is compiled for each instruction set. `run` must be `#[inline(always)]`.
pub(crate) trait Work<T> {
    /// Result of the work.
    type Out;

    /// Does it.
    ///
    /// # Safety
    /// The CPU has the instructions of `V`.
    unsafe fn run<V: Lanes<T = T>>(self) -> Self::Out;
}

/// A method of [`FixedData`](super::FixedData) that is compiled for each instruction set: once in the binary, not once more in
/// every pass that calls it. The method that it names does it; that must be `#[inline(always)]`.
macro_rules! per_isa {
    ($(#[$doc:meta])* fn $name:ident(&self $(, $arg:ident: $kind:ty)*) -> $out:ty = $inlined:ident;) => {
        $(#[$doc])*
        pub(super) fn $name(&self $(, $arg: $kind)*) -> $out {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
            fn avx512<T: Number>(fixed: &FixedData<T> $(, $arg: $kind)*) -> $out {
                if zellige_engine::real::AVX512 { fixed.$inlined($($arg),*) } else { unreachable!("no `Isa` of this build") }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2<T: Number>(fixed: &FixedData<T> $(, $arg: $kind)*) -> $out {
                fixed.$inlined($($arg),*)
            }
            match self.isa {
                // SAFETY: `Avx512` and `Avx2` are only made by `Isa::all`, after the CPU said that it has them.
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => unsafe { avx512(self $(, $arg)*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => unsafe { avx2(self $(, $arg)*) },
                Isa::Baseline => self.$inlined($($arg),*),
            }
        }
    };
}
pub(super) use per_isa;

/// A register of `N` numbers.
///
/// # Safety
/// All methods need a processor with the type's instructions; `load` and `store` need `N` numbers at the pointer.
pub(crate) unsafe trait Lanes: Copy {
    /// The number.
    type T: RealScalar;
    /// Number of lanes.
    const N: usize;
    /// Marks types that are registers of the CPU: the transform's passes are compiled for them only.
    const REGISTERS: bool = true;
    /// The numbers from a pointer on.
    unsafe fn load(from: *const Self::T) -> Self;
    /// Writes them.
    unsafe fn store(self, to: *mut Self::T);
    /// One number in all lanes.
    unsafe fn splat(x: Self::T) -> Self;
    /// Sum.
    unsafe fn add(self, o: Self) -> Self;
    /// Difference.
    unsafe fn sub(self, o: Self) -> Self;
    /// Product.
    unsafe fn mul(self, o: Self) -> Self;
    /// `self * a + b`.
    unsafe fn mul_add(self, a: Self, b: Self) -> Self;
    /// `b - self * a`.
    unsafe fn mul_from(self, a: Self, b: Self) -> Self;
    /// Turns the square of `N` registers at `from`, `step` numbers apart, into that at `to`.
    unsafe fn transpose(from: *const Self::T, from_step: usize, to: *mut Self::T, to_step: usize) {
        for i in 0..Self::N {
            for j in 0..Self::N {
                // SAFETY: the caller's.
                unsafe { *to.add(j * to_step + i) = *from.add(i * from_step + j) };
            }
        }
    }
}

/// Eight numbers as an array: what runs everywhere.
#[derive(Clone, Copy)]
pub(crate) struct Plain<T>([T; 8]);

macro_rules! each {
    ($self:ident, $o:ident, $op:tt) => {{
        let mut out = $self.0;
        for i in 0..8 {
            out[i] = $self.0[i] $op $o.0[i];
        }
        Self(out)
    }};
}

// SAFETY: needs no special instructions.
unsafe impl<T: RealScalar> Lanes for Plain<T> {
    type T = T;
    const N: usize = 8;
    const REGISTERS: bool = false;
    #[inline(always)]
    unsafe fn load(from: *const T) -> Self {
        // SAFETY: the caller's; unaligned.
        unsafe { from.cast::<Self>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        // SAFETY: as above.
        unsafe { to.cast::<Self>().write_unaligned(self) }
    }
    #[inline(always)]
    unsafe fn splat(x: T) -> Self {
        Self([x; 8])
    }
    #[inline(always)]
    unsafe fn add(self, o: Self) -> Self {
        each!(self, o, +)
    }
    #[inline(always)]
    unsafe fn sub(self, o: Self) -> Self {
        each!(self, o, -)
    }
    #[inline(always)]
    unsafe fn mul(self, o: Self) -> Self {
        each!(self, o, *)
    }
    #[inline(always)]
    unsafe fn mul_add(self, a: Self, b: Self) -> Self {
        // SAFETY: needs nothing.
        unsafe { self.mul(a).add(b) }
    }
    #[inline(always)]
    unsafe fn mul_from(self, a: Self, b: Self) -> Self {
        // SAFETY: needs nothing.
        unsafe { b.sub(self.mul(a)) }
    }
}

macro_rules! number {
    ($t:ident, $wide:ident, $narrow:ident) => {
        impl Number for $t {
            fn library(n: usize) -> LibraryTransform<Self> {
                let line = <$t>::line(n, FftDirection::Forward);
                Arc::new(move |values| line.process(values))
            }

            fn lanes(isa: Isa) -> usize {
                match isa {
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx512 => x86::$wide::N,
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx2 => x86::$narrow::N,
                    Isa::Baseline => Plain::<$t>::N,
                }
            }

            #[inline]
            fn with<W: Work<Self>>(isa: Isa, work: W) -> W::Out {
                #[cfg(target_arch = "x86_64")]
                #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
                unsafe fn avx512<W: Work<$t>>(work: W) -> W::Out {
                    // SAFETY: this function is only called where the CPU has them.
                    if AVX512 { unsafe { work.run::<x86::$wide>() } } else { unreachable!("no `Isa` of this build") }
                }
                #[cfg(target_arch = "x86_64")]
                #[target_feature(enable = "avx2,fma")]
                unsafe fn avx2<W: Work<$t>>(work: W) -> W::Out {
                    // SAFETY: as above.
                    unsafe { work.run::<x86::$narrow>() }
                }
                #[inline(never)]
                fn baseline<W: Work<$t>>(work: W) -> W::Out {
                    // SAFETY: needs no special instructions.
                    unsafe { work.run::<Plain<$t>>() }
                }
                match isa {
                    // SAFETY: `Avx512` and `Avx2` are only made by `Isa::all`, after the CPU said that it has them.
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx512 => unsafe { avx512(work) },
                    // SAFETY: as above.
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx2 => unsafe { avx2(work) },
                    Isa::Baseline => baseline(work),
                }
            }
        }
    };
}
number!(f32, F32x16, F32x8);
number!(f64, F64x8, F64x4);

#[cfg(target_arch = "x86_64")]
mod x86 {
    #[allow(clippy::wildcard_imports)] // some thirty intrinsics
    use std::arch::x86_64::*;

    use super::super::transpose;
    use super::Lanes;

    macro_rules! register {
        ($name:ident, $reg:ident, $t:ident, $n:literal, $load:ident, $store:ident, $set1:ident, $add:ident, $sub:ident, $mul:ident, $fma:ident, $fnma:ident, $transpose:ident) => {
            #[derive(Clone, Copy)]
            pub(crate) struct $name($reg);

            // SAFETY: the trait's conditions are those of the intrinsics.
            unsafe impl Lanes for $name {
                type T = $t;
                const N: usize = $n;
                #[inline(always)]
                unsafe fn load(from: *const $t) -> Self {
                    Self(unsafe { $load(from) })
                }
                #[inline(always)]
                unsafe fn store(self, to: *mut $t) {
                    unsafe { $store(to, self.0) }
                }
                #[inline(always)]
                unsafe fn splat(x: $t) -> Self {
                    Self(unsafe { $set1(x) })
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
                unsafe fn mul(self, o: Self) -> Self {
                    Self(unsafe { $mul(self.0, o.0) })
                }
                #[inline(always)]
                unsafe fn mul_add(self, a: Self, b: Self) -> Self {
                    Self(unsafe { $fma(self.0, a.0, b.0) })
                }
                #[inline(always)]
                unsafe fn mul_from(self, a: Self, b: Self) -> Self {
                    Self(unsafe { $fnma(self.0, a.0, b.0) })
                }
                #[inline(always)]
                unsafe fn transpose(from: *const $t, from_step: usize, to: *mut $t, to_step: usize) {
                    unsafe { transpose::$transpose(from, from_step, to, to_step) }
                }
            }
        };
    }

    register!(
        F32x8,
        __m256,
        f32,
        8,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_set1_ps,
        _mm256_add_ps,
        _mm256_sub_ps,
        _mm256_mul_ps,
        _mm256_fmadd_ps,
        _mm256_fnmadd_ps,
        f32x8
    );
    register!(
        F64x4,
        __m256d,
        f64,
        4,
        _mm256_loadu_pd,
        _mm256_storeu_pd,
        _mm256_set1_pd,
        _mm256_add_pd,
        _mm256_sub_pd,
        _mm256_mul_pd,
        _mm256_fmadd_pd,
        _mm256_fnmadd_pd,
        f64x4
    );
    register!(
        F64x8,
        __m512d,
        f64,
        8,
        _mm512_loadu_pd,
        _mm512_storeu_pd,
        _mm512_set1_pd,
        _mm512_add_pd,
        _mm512_sub_pd,
        _mm512_mul_pd,
        _mm512_fmadd_pd,
        _mm512_fnmadd_pd,
        f64x8
    );
    register!(
        F32x16,
        __m512,
        f32,
        16,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_set1_ps,
        _mm512_add_ps,
        _mm512_sub_ps,
        _mm512_mul_ps,
        _mm512_fmadd_ps,
        _mm512_fnmadd_ps,
        f32x16
    );
}
