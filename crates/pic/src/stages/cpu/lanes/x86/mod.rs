//! Registers of x86: sixteen numbers in single precision with AVX-512, eight with AVX2 and FMA.
//!
//! Values of these types are only made in functions that run after the processor was found to have the instructions
//! ([`super::super::isa`]); that is the reason for every `unsafe` here that touches no memory.

mod f32x16;
mod f32x8;

pub(crate) use self::f32x8::F32x8;
pub(crate) use self::f32x16::F32x16;

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
