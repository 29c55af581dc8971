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

/// Arithmetic operators by intrinsics.
macro_rules! arithmetic {
    ($Type:ident: $($Op:ident $op:ident $OpAssign:ident $op_assign:ident $intrinsic:ident;)*) => {$(
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
    )*};
}
use arithmetic;

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
                // SAFETY: see the module; the same holds below.
                Self(unsafe { $and(self.0, o.0) })
            }
        }
        impl std::ops::BitOr for $Bits {
            type Output = Self;
            #[inline(always)]
            fn bitor(self, o: Self) -> Self {
                Self(unsafe { $or(self.0, o.0) })
            }
        }
        impl std::ops::BitXor for $Bits {
            type Output = Self;
            #[inline(always)]
            fn bitxor(self, o: Self) -> Self {
                Self(unsafe { $xor(self.0, o.0) })
            }
        }
        impl std::ops::Not for $Bits {
            type Output = Self;
            #[inline(always)]
            fn not(self) -> Self {
                Self(unsafe { $xor(self.0, $equal) })
            }
        }
        impl $Bits {
            /// Bit `l`: whether it holds in lane `l`.
            #[inline(always)]
            fn number(self) -> u32 {
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

/// Arithmetic of the whole numbers of a register, within an implementation of `Lanes`.
macro_rules! whole_numbers {
    ($Index:ident: $every:ident $plus:ident $both:ident $left:ident $right:ident) => {
        #[inline(always)]
        fn every(i: u32) -> $Index {
            // SAFETY: see the module; the same holds below.
            unsafe { $every(i as i32) }
        }
        #[inline(always)]
        fn plus(a: $Index, b: $Index) -> $Index {
            unsafe { $plus(a, b) }
        }
        #[inline(always)]
        fn both(a: $Index, b: $Index) -> $Index {
            unsafe { $both(a, b) }
        }
        #[inline(always)]
        fn left<const N: u32>(a: $Index) -> $Index {
            unsafe { $left(a, _mm_cvtsi32_si128(N as i32)) }
        }
        #[inline(always)]
        fn right<const N: u32>(a: $Index) -> $Index {
            unsafe { $right(a, _mm_cvtsi32_si128(N as i32)) }
        }
    };
}
use whole_numbers;
