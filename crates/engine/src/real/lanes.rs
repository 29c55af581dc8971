//! A register of numbers as a plain array.

use std::ops::{Add, AddAssign, BitAnd, BitOr, BitXor, Div, DivAssign, Mul, MulAssign, Neg, Not, Sub, SubAssign};

use super::{Mask, Real, RealScalar};

/// `N` numbers that are worked on together; 8 and 16 are the usual widths. A plain array: the compiler makes vector
/// instructions of the loops over it, in whatever width the function it is inlined into was compiled for.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(transparent)]
pub struct Lanes<T, const N: usize>(pub [T; N]);

/// A truth value for each lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct LaneMask<const N: usize>(pub [bool; N]);

/// Keeps the loop vectoriser from the loop around a [`Lanes::store`]: having unrolled the loops over lanes it would
/// vectorise across the steps of the outer one, with gathers. Costs no instruction.
#[inline(always)]
fn whole_lanes_only() {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: no instruction is emitted; no register, flag, stack or memory is touched.
    unsafe {
        std::arch::asm!("", options(nomem, nostack, preserves_flags));
    }
}

impl<T: RealScalar, const N: usize> Default for Lanes<T, N> {
    #[inline(always)]
    fn default() -> Self {
        Self::ZERO
    }
}

impl<T: RealScalar, const N: usize> Lanes<T, N> {
    /// The first `N` numbers of `from`.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline(always)]
    pub fn load(from: &[T]) -> Self {
        // Not by `copy_from_slice`, which without link-time optimisation stays a call that does not know the length.
        Self(*from.first_chunk().expect("as many numbers as lanes"))
    }

    /// Writes the lanes to the first `N` places of `to`.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline(always)]
    pub fn store(self, to: &mut [T]) {
        whole_lanes_only();
        *to.first_chunk_mut().expect("as many places as lanes") = self.0;
    }
}

// Loops over indices, not closures: those are not reliably inlined into functions with target features.
macro_rules! lane_operator {
    ($($Op:ident $op:ident $OpAssign:ident $op_assign:ident;)*) => {$(
        impl<T: RealScalar, const N: usize> $Op for Lanes<T, N> {
            type Output = Self;

            #[inline(always)]
            fn $op(mut self, other: Self) -> Self {
                for i in 0..N {
                    self.0[i] = self.0[i].$op(other.0[i]);
                }
                self
            }
        }

        impl<T: RealScalar, const N: usize> $OpAssign for Lanes<T, N> {
            #[inline(always)]
            fn $op_assign(&mut self, other: Self) {
                *self = (*self).$op(other);
            }
        }
    )*};
}

lane_operator! {
    Add add AddAssign add_assign;
    Sub sub SubAssign sub_assign;
    Mul mul MulAssign mul_assign;
    Div div DivAssign div_assign;
}

impl<T: RealScalar, const N: usize> Neg for Lanes<T, N> {
    type Output = Self;

    #[inline(always)]
    fn neg(mut self) -> Self {
        for i in 0..N {
            self.0[i] = -self.0[i];
        }
        self
    }
}

macro_rules! lane_unary {
    ($($name:ident)*) => {$(
        #[inline(always)]
        fn $name(mut self) -> Self {
            for i in 0..N {
                self.0[i] = Real::$name(self.0[i]);
            }
            self
        }
    )*};
}

macro_rules! lane_comparison {
    ($($name:ident)*) => {$(
        #[inline(always)]
        fn $name(self, other: Self) -> LaneMask<N> {
            let mut mask = [false; N];
            for i in 0..N {
                mask[i] = Real::$name(self.0[i], other.0[i]);
            }
            LaneMask(mask)
        }
    )*};
}

impl<T: RealScalar, const N: usize> Real for Lanes<T, N> {
    type Mask = LaneMask<N>;
    type Scalar = T;

    const LANES: usize = N;
    const ZERO: Self = Self([T::ZERO; N]);
    const HALF: Self = Self([T::HALF; N]);
    const ONE: Self = Self([T::ONE; N]);
    const TWO: Self = Self([T::TWO; N]);

    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        Self([T::from_f64(x); N])
    }

    #[inline(always)]
    fn splat(x: T) -> Self {
        Self([x; N])
    }

    lane_unary! { sqrt abs floor ceil }
    lane_comparison! { lt le gt ge }

    #[inline(always)]
    fn select(mask: LaneMask<N>, a: Self, mut b: Self) -> Self {
        for i in 0..N {
            b.0[i] = T::select(mask.0[i], a.0[i], b.0[i]);
        }
        b
    }
}

macro_rules! mask_operator {
    ($($Op:ident $op:ident;)*) => {$(
        impl<const N: usize> $Op for LaneMask<N> {
            type Output = Self;

            #[inline(always)]
            fn $op(mut self, other: Self) -> Self {
                for i in 0..N {
                    self.0[i] = self.0[i].$op(other.0[i]);
                }
                self
            }
        }
    )*};
}

mask_operator! {
    BitAnd bitand;
    BitOr bitor;
    BitXor bitxor;
}

impl<const N: usize> Not for LaneMask<N> {
    type Output = Self;

    #[inline(always)]
    fn not(mut self) -> Self {
        for i in 0..N {
            self.0[i] = !self.0[i];
        }
        self
    }
}

impl<const N: usize> Mask for LaneMask<N> {
    #[inline(always)]
    fn any(self) -> bool {
        self.0.iter().fold(false, |any, &lane| any | lane)
    }

    #[inline(always)]
    fn all(self) -> bool {
        self.0.iter().fold(true, |all, &lane| all & lane)
    }
}
