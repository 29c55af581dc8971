//! Lanes against scalars: every operation of `Real`, bit for bit, on numbers of every kind.

use proptest::prelude::*;
use zellige_engine::real::{LaneMask, Lanes, Mask, Real, RealScalar, select};

const N: usize = 8;

/// Equal bits, where any not-a-number is as good as another (its payload follows the order of operands, which the
/// compiler is free to choose).
fn same<T: RealScalar>(a: T, b: T) -> bool {
    (a.to_f64().is_nan() && b.to_f64().is_nan()) || a.to_f64().to_bits() == b.to_f64().to_bits()
}

/// A formula with every operation in it.
fn formula<R: Real>(a: R, b: R, c: R) -> R {
    let mut x = a.mul_add(b, c).abs().sqrt() + R::from_f64(0.1) * (a - b) / c;
    x += select(a.lt(b) & !c.ge(a) | b.le(c), a.min(c), -b.max(c));
    x *= R::HALF + select(a.gt(R::ZERO) ^ b.gt(R::TWO), a.floor(), b.ceil());
    x -= (x + R::ONE).recip();
    x /= R::splat(R::Scalar::from_f64(3.0));
    x
}

fn check<T: RealScalar>(a: [T; N], b: [T; N], c: [T; N]) {
    let whole = formula(Lanes(a), Lanes(b), Lanes(c));
    let (lt, gt) = (Lanes(a).lt(Lanes(b)), Lanes(a).gt(Lanes(b)));
    for i in 0..N {
        let single = formula(a[i], b[i], c[i]);
        assert!(same(whole.0[i], single), "lane {i} of formula({:?}, {:?}, {:?}): {:?}, not {single:?}", a[i], b[i], c[i], whole.0[i]);
        assert_eq!((lt.0[i], gt.0[i]), (a[i] < b[i], a[i] > b[i]));
    }
    assert_eq!((lt.any(), lt.all()), (lt.0.contains(&true), !lt.0.contains(&false)));
}

proptest! {
    #[test]
    fn lanes_equal_scalars_f64(a: [u64; N], b: [u64; N], c: [f64; N]) {
        check(a.map(f64::from_bits), b.map(f64::from_bits), c);
    }

    #[test]
    fn lanes_equal_scalars_f32(a: [u32; N], b: [f32; N], c in prop::array::uniform8(-10.0_f32..10.0)) {
        check(a.map(f32::from_bits), b, c);
        check(c, c.map(|x| 1.0 - x), b);
    }
}

#[test]
fn min_and_max_take_the_second_where_nothing_compares() {
    for nan in [f32::NAN, -f32::NAN] {
        assert_eq!((Real::min(nan, 1.0), Real::max(nan, 1.0)), (1.0, 1.0));
        assert!(Real::min(1.0, nan).is_nan() && Real::max(1.0, nan).is_nan());
    }
    assert_eq!((Real::min(1.0, 2.0), Real::max(1.0_f64, 2.0)), (1.0, 2.0));
}

#[test]
fn mul_add_rounds_twice() {
    // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24: the last term is half a unit of f32 and is lost to even in the product.
    let x = 1.0 + 2.0_f32.powi(-12);
    assert_eq!(Real::mul_add(x, x, -1.0), 2.0_f32.powi(-11));
    assert_eq!(f32::mul_add(x, x, -1.0), 2.0_f32.powi(-11) + 2.0_f32.powi(-24));
}

#[test]
fn load_and_store_move_the_first_lanes() {
    let from: Vec<f32> = (0..10).map(|i| i as f32).collect();
    let mut to = vec![-1.0; 10];
    Lanes::<f32, N>::load(&from[1..]).store(&mut to);
    assert_eq!(to, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, -1.0, -1.0]);
    assert!(LaneMask([true; N]).all() && !LaneMask([false; N]).any());
}
