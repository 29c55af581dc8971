//! The number that a formula is written in: [`Real`] is `f32`, `f64`, or a register of lanes.
//!
//! A function of `physics.rs` generic over `R: Real` is written once and instantiated as a scalar (the reference that
//! everything else is tested against), as [`Lanes`] in the inner loops of the CPU, and, through the attribute
//! `#[device]`, as a C++ template on the GPU. Where lanes part ways it uses [`select`], not `if`.
//!
//! All lane operations equal the scalar ones bit for bit, on every instruction set.

use std::fmt::Debug;
use std::ops::{Add, AddAssign, BitAnd, BitOr, BitXor, Div, DivAssign, Mul, MulAssign, Neg, Not, Sub, SubAssign};

mod isa;
mod lanes;

pub use isa::{AVX512, Isa, prefetch};
pub use lanes::{LaneMask, Lanes};

/// The C++ helpers that text emitted by `#[device]` calls; goes before it in a program.
pub const CUDA: &str = include_str!("real.cuh");

/// One truth value per lane; `bool` for scalars.
pub trait Mask:
    Copy + Debug + Send + Sync + 'static + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self> + Not<Output = Self>
{
    /// Returns true if the mask is set in some lane.
    fn any(self) -> bool;

    /// Returns true if the mask is set in every lane.
    fn all(self) -> bool;
}

impl Mask for bool {
    #[inline(always)]
    fn any(self) -> bool {
        self
    }

    #[inline(always)]
    fn all(self) -> bool {
        self
    }
}

/// A real number, or a register of them.
pub trait Real:
    Copy
    + Debug
    + Default
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
{
    /// Result type of a comparison.
    type Mask: Mask;
    /// The number in one lane; `Self` for scalars.
    type Scalar: RealScalar;

    /// Number of lanes; 1 for scalars.
    const LANES: usize;
    /// 0 in every lane.
    const ZERO: Self;
    /// 1/2 in every lane.
    const HALF: Self;
    /// 1 in every lane.
    const ONE: Self;
    /// 2 in every lane.
    const TWO: Self;

    /// `x` rounded to this precision, in every lane.
    fn from_f64(x: f64) -> Self;

    /// `x` in every lane.
    fn splat(x: Self::Scalar) -> Self;

    /// `self * a + b`, rounded twice on the CPU, so that every instruction set gives the same bits (a fused
    /// operation is not part of the x86-64 baseline, and its emulation is slow). The GPU fuses it.
    #[must_use]
    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        self * a + b
    }

    /// `1 / self`.
    #[must_use]
    #[inline(always)]
    fn recip(self) -> Self {
        Self::ONE / self
    }

    /// Square root, correctly rounded.
    #[must_use]
    fn sqrt(self) -> Self;

    /// `1 / sqrt(self)`. Registers that have a better way than both operations may round once or twice otherwise.
    #[must_use]
    #[inline(always)]
    fn recip_sqrt(self) -> Self {
        self.sqrt().recip()
    }

    /// Absolute value.
    #[must_use]
    fn abs(self) -> Self;

    /// The largest whole number that is not above.
    #[must_use]
    fn floor(self) -> Self;

    /// The smallest whole number that is not below.
    #[must_use]
    fn ceil(self) -> Self;

    /// The lesser: `self` where `self < other`, else `other` (also where one is not a number).
    #[must_use]
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Self::select(self.lt(other), self, other)
    }

    /// The greater: `self` where `self > other`, else `other` (also where one is not a number).
    #[must_use]
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Self::select(self.gt(other), self, other)
    }

    /// `self < other`.
    fn lt(self, other: Self) -> Self::Mask;

    /// `self <= other`.
    fn le(self, other: Self) -> Self::Mask;

    /// `self > other`.
    #[inline(always)]
    fn gt(self, other: Self) -> Self::Mask {
        other.lt(self)
    }

    /// `self >= other`.
    #[inline(always)]
    fn ge(self, other: Self) -> Self::Mask {
        other.le(self)
    }

    /// `a` where `mask` holds, else `b`; both are computed.
    #[must_use]
    fn select(mask: Self::Mask, a: Self, b: Self) -> Self;
}

/// `a` where `mask` holds, else `b`; both are computed.
#[inline(always)]
pub fn select<R: Real>(mask: R::Mask, a: R, b: R) -> R {
    R::select(mask, a, b)
}

/// A single real number: `f32` or `f64`, with what has no lane form.
pub trait RealScalar: Real<Mask = bool, Scalar = Self> + PartialOrd + bytemuck::Pod {
    /// The nearest `f64`.
    fn to_f64(self) -> f64;

    /// Returns true if the value is neither infinite nor not-a-number.
    fn is_finite(self) -> bool;

    /// `e^self`.
    #[must_use]
    fn exp(self) -> Self;

    /// Natural logarithm.
    #[must_use]
    fn ln(self) -> Self;

    /// Sine of an angle in radians.
    #[must_use]
    fn sin(self) -> Self;

    /// Cosine of an angle in radians.
    #[must_use]
    fn cos(self) -> Self;

    /// `self` to the power `y`.
    #[must_use]
    fn powf(self, y: Self) -> Self;
}

macro_rules! scalar {
    ($t:ident) => {
        impl Real for $t {
            type Mask = bool;
            type Scalar = $t;

            const LANES: usize = 1;
            const ZERO: Self = 0.0;
            const HALF: Self = 0.5;
            const ONE: Self = 1.0;
            const TWO: Self = 2.0;

            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $t
            }

            #[inline(always)]
            fn splat(x: $t) -> Self {
                x
            }

            #[inline(always)]
            fn sqrt(self) -> Self {
                $t::sqrt(self)
            }

            #[inline(always)]
            fn abs(self) -> Self {
                $t::abs(self)
            }

            #[inline(always)]
            fn floor(self) -> Self {
                $t::floor(self)
            }

            #[inline(always)]
            fn ceil(self) -> Self {
                $t::ceil(self)
            }

            #[inline(always)]
            fn lt(self, other: Self) -> bool {
                self < other
            }

            #[inline(always)]
            fn le(self, other: Self) -> bool {
                self <= other
            }

            #[inline(always)]
            fn select(mask: bool, a: Self, b: Self) -> Self {
                if mask { a } else { b }
            }
        }

        impl RealScalar for $t {
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }

            #[inline(always)]
            fn is_finite(self) -> bool {
                $t::is_finite(self)
            }

            #[inline(always)]
            fn exp(self) -> Self {
                $t::exp(self)
            }

            #[inline(always)]
            fn ln(self) -> Self {
                $t::ln(self)
            }

            #[inline(always)]
            fn sin(self) -> Self {
                $t::sin(self)
            }

            #[inline(always)]
            fn cos(self) -> Self {
                $t::cos(self)
            }

            #[inline(always)]
            fn powf(self, y: Self) -> Self {
                $t::powf(self, y)
            }
        }
    };
}

scalar!(f32);
scalar!(f64);
