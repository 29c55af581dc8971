//! Registers of x86: with AVX-512 sixteen numbers in single precision or eight in double, with AVX2 and FMA
//! eight in single, with SSE2 four.
//!
//! Values of these types are only made in functions that run after the processor was found to have the instructions
//! ([`super::super::isa`]); that is the reason for every `unsafe` here that touches no memory.

#![allow(clippy::wildcard_imports, reason = "dozens of intrinsics")]

mod f32x16;
mod f32x4;
mod f32x8;
mod f64x8;

pub(crate) use self::f32x4::F32x4;
pub(crate) use self::f32x8::F32x8;
pub(crate) use self::f32x16::F32x16;
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
