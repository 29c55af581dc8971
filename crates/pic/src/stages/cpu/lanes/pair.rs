//! Two registers side by side: two chains of operations that do not depend on each other, for the processor to overlap.

use std::ops::{Add, AddAssign, BitAnd, BitOr, BitXor, Div, DivAssign, Mul, MulAssign, Neg, Not, Sub, SubAssign};

use zellige_engine::real::{Mask, Real};

use super::Lanes;

/// Two registers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pair<X>(X, X);

macro_rules! operator {
    ($($Op:ident $op:ident $OpAssign:ident $op_assign:ident;)*) => {$(
        impl<X: Real> $Op for Pair<X> {
            type Output = Self;
            #[inline(always)]
            fn $op(self, o: Self) -> Self {
                Self(self.0.$op(o.0), self.1.$op(o.1))
            }
        }
        impl<X: Real> $OpAssign for Pair<X> {
            #[inline(always)]
            fn $op_assign(&mut self, o: Self) {
                *self = (*self).$op(o);
            }
        }
    )*};
}

operator! {
    Add add AddAssign add_assign;
    Sub sub SubAssign sub_assign;
    Mul mul MulAssign mul_assign;
    Div div DivAssign div_assign;
}

macro_rules! mask_operator {
    ($($Op:ident $op:ident)*) => {$(
        impl<M: Mask> $Op for Pair<M> {
            type Output = Self;
            #[inline(always)]
            fn $op(self, o: Self) -> Self {
                Self(self.0.$op(o.0), self.1.$op(o.1))
            }
        }
    )*};
}

mask_operator! { BitAnd bitand BitOr bitor BitXor bitxor }

impl<M: Mask> Not for Pair<M> {
    type Output = Self;
    #[inline(always)]
    fn not(self) -> Self {
        Self(!self.0, !self.1)
    }
}

impl<M: Mask> Mask for Pair<M> {
    #[inline(always)]
    fn any(self) -> bool {
        (self.0 | self.1).any()
    }
    #[inline(always)]
    fn all(self) -> bool {
        (self.0 & self.1).all()
    }
}

impl<X: Real> Neg for Pair<X> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self(-self.0, -self.1)
    }
}

impl<X: Real> Real for Pair<X> {
    type Mask = Pair<X::Mask>;
    type Scalar = X::Scalar;

    const LANES: usize = 2 * X::LANES;
    const ZERO: Self = Self(X::ZERO, X::ZERO);
    const HALF: Self = Self(X::HALF, X::HALF);
    const ONE: Self = Self(X::ONE, X::ONE);
    const TWO: Self = Self(X::TWO, X::TWO);

    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        Self(X::from_f64(x), X::from_f64(x))
    }
    #[inline(always)]
    fn splat(x: X::Scalar) -> Self {
        Self(X::splat(x), X::splat(x))
    }
    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        Self(self.0.mul_add(a.0, b.0), self.1.mul_add(a.1, b.1))
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(self.0.sqrt(), self.1.sqrt())
    }
    #[inline(always)]
    fn abs(self) -> Self {
        Self(self.0.abs(), self.1.abs())
    }
    #[inline(always)]
    fn floor(self) -> Self {
        Self(self.0.floor(), self.1.floor())
    }
    #[inline(always)]
    fn ceil(self) -> Self {
        Self(self.0.ceil(), self.1.ceil())
    }
    #[inline(always)]
    fn lt(self, o: Self) -> Self::Mask {
        Pair(self.0.lt(o.0), self.1.lt(o.1))
    }
    #[inline(always)]
    fn le(self, o: Self) -> Self::Mask {
        Pair(self.0.le(o.0), self.1.le(o.1))
    }
    #[inline(always)]
    fn select(m: Self::Mask, a: Self, b: Self) -> Self {
        Self(X::select(m.0, a.0, b.0), X::select(m.1, a.1, b.1))
    }
}

// SAFETY of all below: both halves keep to the demands of the trait, the second one `X::LANES` elements further on.
impl<X: Lanes> Lanes for Pair<X> {
    type Index = (X::Index, X::Index);

    const CELLS: usize = X::CELLS;

    #[inline(always)]
    unsafe fn load(p: *const X::Scalar) -> Self {
        unsafe { Self(X::load(p), X::load(p.add(X::LANES))) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut X::Scalar) {
        unsafe {
            self.0.store(p);
            self.1.store(p.add(X::LANES));
        }
    }
    #[inline(always)]
    unsafe fn load_cells(p: *const u8) -> Self::Index {
        unsafe { (X::load_cells(p), X::load_cells(p.add(X::LANES))) }
    }
    #[inline(always)]
    unsafe fn store_cells(i: Self::Index, p: *mut u8) {
        unsafe {
            X::store_cells(i.0, p);
            X::store_cells(i.1, p.add(X::LANES));
        }
    }
    #[inline(always)]
    unsafe fn load_index(p: *const u32) -> Self::Index {
        unsafe { (X::load_index(p), X::load_index(p.add(X::LANES))) }
    }
    #[inline(always)]
    unsafe fn store_index(i: Self::Index, p: *mut u32) {
        unsafe {
            X::store_index(i.0, p);
            X::store_index(i.1, p.add(X::LANES));
        }
    }
    #[inline(always)]
    unsafe fn lookup(t: *const X::Scalar, i: Self::Index) -> Self {
        unsafe { Self(X::lookup(t, i.0), X::lookup(t, i.1)) }
    }
    #[inline(always)]
    unsafe fn gather(p: *const X::Scalar, i: Self::Index) -> Self {
        unsafe { Self(X::gather(p, i.0), X::gather(p, i.1)) }
    }
    #[inline(always)]
    fn whole(self) -> Self::Index {
        (self.0.whole(), self.1.whole())
    }
    #[inline(always)]
    fn real(i: Self::Index) -> Self {
        Self(X::real(i.0), X::real(i.1))
    }
    #[inline(always)]
    fn every(i: u32) -> Self::Index {
        (X::every(i), X::every(i))
    }
    #[inline(always)]
    fn iota() -> Self::Index {
        (X::iota(), X::plus(X::iota(), X::every(X::LANES as u32)))
    }
    #[inline(always)]
    fn plus(a: Self::Index, b: Self::Index) -> Self::Index {
        (X::plus(a.0, b.0), X::plus(a.1, b.1))
    }
    #[inline(always)]
    fn both(a: Self::Index, b: Self::Index) -> Self::Index {
        (X::both(a.0, b.0), X::both(a.1, b.1))
    }
    #[inline(always)]
    fn left<const N: u32>(a: Self::Index) -> Self::Index {
        (X::left::<N>(a.0), X::left::<N>(a.1))
    }
    #[inline(always)]
    fn right<const N: u32>(a: Self::Index) -> Self::Index {
        (X::right::<N>(a.0), X::right::<N>(a.1))
    }
    #[inline(always)]
    fn first(n: usize) -> Self::Mask {
        Pair(X::first(n), X::first(n.saturating_sub(X::LANES)))
    }
    #[inline(always)]
    fn keep(self, m: Self::Mask) -> Self {
        Self(self.0.keep(m.0), self.1.keep(m.1))
    }
    #[inline(always)]
    unsafe fn list(m: Self::Mask, i: Self::Index, to: *mut u32) -> usize {
        unsafe {
            let n = X::list(m.0, i.0, to);
            n + X::list(m.1, i.1, to.add(n))
        }
    }
    #[inline(always)]
    unsafe fn add_to_cells(v: [Self; 8], to: *mut X::Scalar, at: *const u32) {
        unsafe {
            X::add_to_cells([v[0].0, v[1].0, v[2].0, v[3].0, v[4].0, v[5].0, v[6].0, v[7].0], to, at);
            X::add_to_cells([v[0].1, v[1].1, v[2].1, v[3].1, v[4].1, v[5].1, v[6].1, v[7].1], to, at.add(X::LANES));
        }
    }
}
