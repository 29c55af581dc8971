//! Registers of x86: with AVX-512 sixteen numbers in single precision or eight in double, with AVX2 and FMA
//! eight or four, with SSE2 four or two.
//!
//! Values of these types are only made in functions that run after the CPU was found to have the instructions
//! ([`super::super::isa`]); that is the reason for every `unsafe` here that touches no memory.

#![allow(clippy::wildcard_imports, reason = "dozens of intrinsics")]

mod f32x16;
mod f32x4;
mod f32x8;
mod f64x2;
mod f64x4;
mod f64x8;

pub(crate) use self::f32x4::F32x4;
pub(crate) use self::f32x8::F32x8;
pub(crate) use self::f32x16::F32x16;
pub(crate) use self::f64x2::F64x2;
pub(crate) use self::f64x4::F64x4;
pub(crate) use self::f64x8::F64x8;

/// A register, its constants and arithmetic operators.
macro_rules! register {
    ($(#[$doc:meta])* $Type:ident = [$Scalar:ident; $lanes:literal] in $Register:ident, $xor:ident, $($Op:ident $op:ident $OpAssign:ident $op_assign:ident $intrinsic:ident;)*) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        #[repr(transparent)]
        pub(crate) struct $Type($Register);

        #[inline(always)]
        const fn constant(x: $Scalar) -> $Type {
            // SAFETY: the same numbers, bit for bit.
            $Type(unsafe { std::mem::transmute::<[$Scalar; $lanes], $Register>([x; $lanes]) })
        }

        impl Default for $Type {
            #[inline(always)]
            fn default() -> Self {
                Self::ZERO
            }
        }

        impl std::ops::Neg for $Type {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                // SAFETY: see the module.
                Self(unsafe { $xor(self.0, constant(-0.0).0) })
            }
        }
        $(
            impl std::ops::$Op for $Type {
                type Output = Self;
                #[inline(always)]
                fn $op(self, o: Self) -> Self {
                    // SAFETY: see the module.
                    Self(unsafe { $intrinsic(self.0, o.0) })
                }
            }
            impl std::ops::$OpAssign for $Type {
                #[inline(always)]
                fn $op_assign(&mut self, o: Self) {
                    *self = std::ops::$Op::$op(*self, o);
                }
            }
        )*
    };
}
use register;

/// The functions of [`Real`](zellige_engine::real::Real) that all registers have alike, within its implementation.
macro_rules! real {
    ($Scalar:ident $lanes:literal: $splat:ident $sqrt:ident $min:ident $max:ident, $lt:expr, $le:expr) => {
        type Mask = Bits;
        type Scalar = $Scalar;

        const LANES: usize = $lanes;
        const ZERO: Self = constant(0.0);
        const HALF: Self = constant(0.5);
        const ONE: Self = constant(1.0);
        const TWO: Self = constant(2.0);

        #[inline(always)]
        fn from_f64(x: f64) -> Self {
            Self::splat(x as $Scalar)
        }
        #[inline(always)]
        fn splat(x: $Scalar) -> Self {
            // SAFETY: see the module.
            Self(unsafe { $splat(x) })
        }
        #[inline(always)]
        fn sqrt(self) -> Self {
            // SAFETY: see the module.
            Self(unsafe { $sqrt(self.0) })
        }
        // These give the second one where a comparison does not hold, as the trait has it.
        #[inline(always)]
        fn min(self, o: Self) -> Self {
            // SAFETY: see the module.
            Self(unsafe { $min(self.0, o.0) })
        }
        #[inline(always)]
        fn max(self, o: Self) -> Self {
            // SAFETY: see the module.
            Self(unsafe { $max(self.0, o.0) })
        }
        #[inline(always)]
        fn lt(self, o: Self) -> Bits {
            // SAFETY: see the module.
            Bits(unsafe { $lt(self.0, o.0) })
        }
        #[inline(always)]
        fn le(self, o: Self) -> Bits {
            // SAFETY: see the module.
            Bits(unsafe { $le(self.0, o.0) })
        }
    };
}
use real;

/// Those that AVX has instructions for.
macro_rules! fused_and_rounded {
    ($fused:ident $round:ident) => {
        #[inline(always)]
        fn mul_add(self, a: Self, b: Self) -> Self {
            // SAFETY: see the module.
            Self(unsafe { $fused(self.0, a.0, b.0) })
        }
        #[inline(always)]
        fn floor(self) -> Self {
            // SAFETY: see the module.
            Self(unsafe { $round::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(self.0) })
        }
        #[inline(always)]
        fn ceil(self) -> Self {
            // SAFETY: see the module.
            Self(unsafe { $round::<{ _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC }>(self.0) })
        }
    };
}
use fused_and_rounded;

/// A truth value for each lane, as AVX-512 has them: a bit.
macro_rules! mask {
    ($Bits:ident($Word:ident)) => {
        /// A truth value for each.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) struct $Bits($Word);

        impl std::ops::BitAnd for $Bits {
            type Output = Self;
            #[inline(always)]
            fn bitand(self, o: Self) -> Self {
                Self(self.0 & o.0)
            }
        }
        impl std::ops::BitOr for $Bits {
            type Output = Self;
            #[inline(always)]
            fn bitor(self, o: Self) -> Self {
                Self(self.0 | o.0)
            }
        }
        impl std::ops::BitXor for $Bits {
            type Output = Self;
            #[inline(always)]
            fn bitxor(self, o: Self) -> Self {
                Self(self.0 ^ o.0)
            }
        }
        impl std::ops::Not for $Bits {
            type Output = Self;
            #[inline(always)]
            fn not(self) -> Self {
                Self(!self.0)
            }
        }
        impl zellige_engine::real::Mask for $Bits {
            #[inline(always)]
            fn any(self) -> bool {
                self.0 != 0
            }
            #[inline(always)]
            fn all(self) -> bool {
                self.0 == $Word::MAX
            }
        }
    };
}
use mask;

/// A truth value for each lane, as SSE and AVX have them: all bits of its number, or none.
macro_rules! bits {
    ($Bits:ident($Register:ident): $and:ident $or:ident $xor:ident $equal:expr, $number:ident $all:literal) => {
        /// A truth value for each: all bits of its number, or none.
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct $Bits($Register);

        impl std::ops::BitAnd for $Bits {
            type Output = Self;
            #[inline(always)]
            fn bitand(self, o: Self) -> Self {
                // SAFETY: see the module.
                Self(unsafe { $and(self.0, o.0) })
            }
        }
        impl std::ops::BitOr for $Bits {
            type Output = Self;
            #[inline(always)]
            fn bitor(self, o: Self) -> Self {
                // SAFETY: see the module.
                Self(unsafe { $or(self.0, o.0) })
            }
        }
        impl std::ops::BitXor for $Bits {
            type Output = Self;
            #[inline(always)]
            fn bitxor(self, o: Self) -> Self {
                // SAFETY: see the module.
                Self(unsafe { $xor(self.0, o.0) })
            }
        }
        impl std::ops::Not for $Bits {
            type Output = Self;
            #[inline(always)]
            fn not(self) -> Self {
                // SAFETY: see the module.
                Self(unsafe { $xor(self.0, $equal) })
            }
        }
        impl $Bits {
            /// Bit `l`: whether it holds in lane `l`.
            #[inline(always)]
            fn number(self) -> u32 {
                // SAFETY: see the module.
                unsafe { $number(self.0) as u32 }
            }
        }
        impl zellige_engine::real::Mask for $Bits {
            #[inline(always)]
            fn any(self) -> bool {
                self.number() != 0
            }
            #[inline(always)]
            fn all(self) -> bool {
                self.number() == $all
            }
        }
    };
}
use bits;

/// For each mask of `N` lanes, of which there are `M`, the numbers of those that hold, in order.
const fn places<const N: usize, const M: usize>() -> [[u32; N]; M] {
    let mut places = [[0; N]; M];
    let mut mask = 0;
    while mask < M {
        let (mut lane, mut n) = (0, 0);
        while lane < N {
            if mask >> lane & 1 == 1 {
                places[mask][n] = lane as u32;
                n += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    places
}

/// The functions of [`Lanes`](super::Lanes) that all registers have alike, within its implementation: memory, numbers, whole
/// numbers.
macro_rules! lanes {
    ($Scalar:ident $Index:ident: $load:ident $store:ident $load_index:ident $store_index:ident,
     $or:ident $not_equal:expr, $keep:ident $whole:ident $real:ident,
     $every:ident $plus:ident $both:ident $left:ident $right:ident, $iota:expr) => {
        type Index = $Index;

        #[inline(always)]
        unsafe fn load(p: *const $Scalar) -> Self {
            // SAFETY: see the module, and the trait for memory.
            Self(unsafe { $load(p) })
        }
        #[inline(always)]
        unsafe fn store(self, p: *mut $Scalar) {
            // SAFETY: see the module, and the trait for memory.
            unsafe { $store(p, self.0) }
        }
        #[inline(always)]
        unsafe fn load_index(p: *const u32) -> $Index {
            // SAFETY: see the module, and the trait for memory.
            unsafe { $load_index(p.cast()) }
        }
        #[inline(always)]
        unsafe fn store_index(i: $Index, p: *mut u32) {
            // SAFETY: see the module, and the trait for memory.
            unsafe { $store_index(p.cast(), i) }
        }
        #[inline(always)]
        fn either(self, o: Self) -> Bits {
            // SAFETY: see the module.
            Bits(unsafe { $not_equal($or(self.0, o.0), Self::ZERO.0) })
        }
        #[inline(always)]
        fn keep(self, m: Bits) -> Self {
            // SAFETY: see the module.
            Self(unsafe { $keep(m.0, self.0) })
        }
        #[inline(always)]
        fn whole(self) -> $Index {
            // SAFETY: see the module.
            unsafe { $whole(self.0) }
        }
        #[inline(always)]
        fn real(i: $Index) -> Self {
            // SAFETY: see the module.
            Self(unsafe { $real(i) })
        }
        #[inline(always)]
        fn every(i: u32) -> $Index {
            // SAFETY: see the module.
            unsafe { $every(i as i32) }
        }
        #[inline(always)]
        fn iota() -> $Index {
            // SAFETY: see the module.
            unsafe { $iota }
        }
        #[inline(always)]
        fn plus(a: $Index, b: $Index) -> $Index {
            // SAFETY: see the module.
            unsafe { $plus(a, b) }
        }
        #[inline(always)]
        fn both(a: $Index, b: $Index) -> $Index {
            // SAFETY: see the module.
            unsafe { $both(a, b) }
        }
        #[inline(always)]
        fn left<const N: u32>(a: $Index) -> $Index {
            // SAFETY: see the module.
            unsafe { $left(a, _mm_cvtsi32_si128(N as i32)) }
        }
        #[inline(always)]
        fn right<const N: u32>(a: $Index) -> $Index {
            // SAFETY: see the module.
            unsafe { $right(a, _mm_cvtsi32_si128(N as i32)) }
        }
    };
}
use lanes;
