//! Stockham's passes over registers of columns: radices 2, 3, 4, 5, 8 and 16, and other primes.

use std::f64::consts::TAU;

use zellige_engine::real::Real;

use super::lanes::{Lanes, Number, Work};

/// Largest prime factor that has a pass; rustfft transforms the others.
pub(super) const LARGEST: usize = 23;

/// One of Stockham's passes.
#[derive(Debug, Clone)]
pub(super) struct Pass<T> {
    radix: usize,
    /// Lengths of the remaining transform: `n = radix m`.
    m: usize,
    /// Product of the radices before.
    s: usize,
    /// `exp(-2 pi i p j / n)`, `[p][j - 1]`, cosine and sine.
    twiddles: Vec<[T; 2]>,
    /// `exp(-2 pi i k / radix)` for the radices without a form of their own.
    roots: Vec<[T; 2]>,
}

fn root<T: Number>(k: usize, n: usize) -> [T; 2] {
    let (sin, cos) = (TAU * (k % n) as f64 / n as f64).sin_cos();
    [T::from_f64(cos), T::from_f64(-sin)]
}

impl<T: Number> Pass<T> {
    /// Prepares the pass for the rest of a transform after a product `s` of radices, `m` times the radix.
    pub(super) fn new(radix: usize, m: usize, s: usize) -> Self {
        let twiddles = (0..m).flat_map(|p| (1..radix).map(move |j| (p * j) % (radix * m))).map(|k| root(k, radix * m)).collect();
        Self { radix, m, s, twiddles, roots: (0..radix).map(|k| root(k, radix)).collect() }
    }
}

/// A pass.
pub(super) struct Run<'a, T> {
    pub(super) pass: &'a Pass<T>,
    pub(super) src: [*const T; 2],
    pub(super) src_step: usize,
    pub(super) dst: [*mut T; 2],
    pub(super) dst_step: usize,
}

impl<T: Number> Work<T> for Run<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes<T = T>>(self) {
        // A target without registers has no passes.
        if V::REGISTERS {
            // SAFETY: the caller's.
            unsafe {
                match (self.pass.radix, self.pass.m == 1) {
                    (2, false) => radix::<V, 2, false>(&self),
                    (2, true) => radix::<V, 2, true>(&self),
                    (3, false) => radix::<V, 3, false>(&self),
                    (3, true) => radix::<V, 3, true>(&self),
                    (4, false) => radix::<V, 4, false>(&self),
                    (4, true) => radix::<V, 4, true>(&self),
                    (5, false) => radix::<V, 5, false>(&self),
                    (5, true) => radix::<V, 5, true>(&self),
                    (8, false) => radix::<V, 8, false>(&self),
                    (8, true) => radix::<V, 8, true>(&self),
                    (16, false) => radix::<V, 16, false>(&self),
                    (16, true) => radix::<V, 16, true>(&self),
                    _ => prime::<V>(&self),
                }
            }
        }
    }
}

/// A complex register.
#[derive(Clone, Copy)]
struct C<V>(V, V);

// SAFETY of all its functions: the caller has the instructions of `V`.
impl<V: Lanes> C<V> {
    #[inline(always)]
    unsafe fn add(self, o: Self) -> Self {
        unsafe { Self(self.0.add(o.0), self.1.add(o.1)) }
    }
    #[inline(always)]
    unsafe fn sub(self, o: Self) -> Self {
        unsafe { Self(self.0.sub(o.0), self.1.sub(o.1)) }
    }
    /// Times `c + i s`.
    #[inline(always)]
    unsafe fn times(self, [c, s]: [V; 2]) -> Self {
        unsafe { Self(self.1.mul_from(s, self.0.mul(c)), self.1.mul_add(c, self.0.mul(s))) }
    }
    /// `a + (-i) b` and `a - (-i) b`.
    #[inline(always)]
    unsafe fn turned(a: Self, b: Self) -> [Self; 2] {
        unsafe { [Self(a.0.add(b.1), a.1.sub(b.0)), Self(a.0.sub(b.1), a.1.add(b.0))] }
    }
    /// Times a real number.
    #[inline(always)]
    unsafe fn scaled(self, x: V) -> Self {
        unsafe { Self(self.0.mul(x), self.1.mul(x)) }
    }
    /// `self + x o`.
    #[inline(always)]
    unsafe fn plus(self, x: V, o: Self) -> Self {
        unsafe { Self(o.0.mul_add(x, self.0), o.1.mul_add(x, self.1)) }
    }
}

#[inline(always)]
unsafe fn four<V: Lanes>(x: [C<V>; 4]) -> [C<V>; 4] {
    unsafe {
        let (a, b) = (x[0].add(x[2]), x[0].sub(x[2]));
        let (c, d) = (x[1].add(x[3]), x[1].sub(x[3]));
        let [e, f] = C::turned(b, d);
        [a.add(c), e, a.sub(c), f]
    }
}

/// `x exp(-2 pi i k / 16)`.
#[inline(always)]
unsafe fn sixteenth<V: Lanes>(x: C<V>, k: usize) -> C<V> {
    /// `cos(pi/8)` and `sin(pi/8)`.
    const COS: f64 = 0.923_879_532_511_286_7;
    const SIN: f64 = 0.382_683_432_365_089_8;
    // SAFETY: the caller's.
    unsafe {
        let of = |v: f64| V::splat(V::T::from_f64(v));
        match k {
            0 => x,
            1 => x.times([of(COS), of(-SIN)]),
            2 => C(x.0.add(x.1), x.1.sub(x.0)).scaled(of(std::f64::consts::FRAC_1_SQRT_2)),
            3 => x.times([of(SIN), of(-COS)]),
            4 => C(x.1, V::splat(V::T::ZERO).sub(x.0)),
            6 => C(x.0.sub(x.1), x.0.add(x.1)).scaled(of(-std::f64::consts::FRAC_1_SQRT_2)),
            _ => x.times([of(-COS), of(SIN)]),
        }
    }
}

/// The transform of a radix, in place.
#[inline(always)]
unsafe fn butterfly<V: Lanes, const R: usize>(x: &mut [C<V>; R], roots: &[[V::T; 2]]) {
    // SAFETY: the caller's.
    unsafe {
        match R {
            2 => (x[0], x[1]) = (x[0].add(x[1]), x[0].sub(x[1])),
            4 => {
                let y = four([x[0], x[1], x[2], x[3]]);
                (x[0], x[1], x[2], x[3]) = (y[0], y[1], y[2], y[3]);
            }
            8 => {
                let even = four([x[0], x[2], x[4], x[6]]);
                let odd = four([x[1], x[3], x[5], x[7]]);
                let half = V::splat(V::T::from_f64(std::f64::consts::FRAC_1_SQRT_2));
                // Times exp(-i pi/4) and exp(-3 i pi/4).
                let one = C(odd[1].0.add(odd[1].1), odd[1].1.sub(odd[1].0)).scaled(half);
                let three = C(odd[3].1.sub(odd[3].0), V::splat(V::T::ZERO).sub(odd[3].0.add(odd[3].1))).scaled(half);
                (x[0], x[4]) = (even[0].add(odd[0]), even[0].sub(odd[0]));
                (x[1], x[5]) = (even[1].add(one), even[1].sub(one));
                [x[2], x[6]] = C::turned(even[2], odd[2]);
                (x[3], x[7]) = (even[3].add(three), even[3].sub(three));
            }
            16 => {
                // Of every fourth a transform, turned by exp(-2 pi i r q / 16), and transforms of these.
                let a = four([x[0], x[4], x[8], x[12]]);
                let [b0, b1, b2, b3] = four([x[1], x[5], x[9], x[13]]);
                let [c0, c1, c2, c3] = four([x[2], x[6], x[10], x[14]]);
                let [d0, d1, d2, d3] = four([x[3], x[7], x[11], x[15]]);
                [x[0], x[4], x[8], x[12]] = four([a[0], b0, c0, d0]);
                [x[1], x[5], x[9], x[13]] = four([a[1], sixteenth(b1, 1), sixteenth(c1, 2), sixteenth(d1, 3)]);
                [x[2], x[6], x[10], x[14]] = four([a[2], sixteenth(b2, 2), sixteenth(c2, 4), sixteenth(d2, 6)]);
                [x[3], x[7], x[11], x[15]] = four([a[3], sixteenth(b3, 3), sixteenth(c3, 6), sixteenth(d3, 9)]);
            }
            // 3 and 5.
            _ => odd(x, R, roots),
        }
    }
}

/// The transform of an odd length: pairs k and n - k share their products.
#[inline(always)]
unsafe fn odd<V: Lanes>(x: &mut [C<V>], n: usize, roots: &[[V::T; 2]]) {
    // SAFETY: the caller's.
    unsafe {
        let zero = C(V::splat(V::T::ZERO), V::splat(V::T::ZERO));
        let h = n / 2;
        let (mut sums, mut differences) = ([zero; LARGEST / 2 + 1], [zero; LARGEST / 2 + 1]);
        let first = x[0];
        for k in 1..=h {
            sums[k] = x[k].add(x[n - k]);
            differences[k] = x[k].sub(x[n - k]);
            x[0] = x[0].add(sums[k]);
        }
        for j in 1..=h {
            let (mut a, mut b) = (first, zero);
            for k in 1..=h {
                let [c, s] = roots[j * k % n];
                a = a.plus(V::splat(c), sums[k]);
                // The root's sine is negative already.
                b = b.plus(V::splat(V::T::ZERO - s), differences[k]);
            }
            [x[j], x[n - j]] = C::turned(a, b);
        }
    }
}

/// A pass of a radix without a form of its own.
#[inline(always)]
unsafe fn prime<V: Lanes>(run: &Run<'_, V::T>) {
    let (r, m, s) = (run.pass.radix, run.pass.m, run.pass.s);
    // SAFETY: the caller's.
    unsafe {
        let mut x = [C(V::splat(V::T::ZERO), V::splat(V::T::ZERO)); LARGEST];
        for p in 0..m {
            let factors = &run.pass.twiddles[p * (r - 1)..(p + 1) * (r - 1)];
            for q in 0..s {
                for k in 0..r {
                    let at = (q + s * (p + m * k)) * run.src_step;
                    x[k] = C(V::load(run.src[0].add(at)), V::load(run.src[1].add(at)));
                }
                odd(&mut x[..r], r, &run.pass.roots);
                for j in 0..r {
                    let y = if j > 0 { x[j].times([V::splat(factors[j - 1][0]), V::splat(factors[j - 1][1])]) } else { x[j] };
                    let at = (q + s * (r * p + j)) * run.dst_step;
                    y.0.store(run.dst[0].add(at));
                    y.1.store(run.dst[1].add(at));
                }
            }
        }
    }
}

/// A pass of radix `R`; `LAST` where nothing is left, so that nothing is turned.
#[inline(always)]
unsafe fn radix<V: Lanes, const R: usize, const LAST: bool>(run: &Run<'_, V::T>) {
    let Run { pass, src, src_step, dst, dst_step } = run;
    let (m, s) = (if LAST { 1 } else { pass.m }, pass.s);
    // SAFETY: the caller's.
    unsafe {
        for p in 0..m {
            let factors = &pass.twiddles[p * (R - 1)..(p + 1) * (R - 1)];
            for q in 0..s {
                let mut x = [C(V::splat(V::T::ZERO), V::splat(V::T::ZERO)); R];
                for k in 0..R {
                    let at = (q + s * (p + m * k)) * src_step;
                    x[k] = C(V::load(src[0].add(at)), V::load(src[1].add(at)));
                }
                butterfly::<V, R>(&mut x, &pass.roots);
                for j in 0..R {
                    let turned = j > 0 && !LAST;
                    let y = if turned { x[j].times([V::splat(factors[j - 1][0]), V::splat(factors[j - 1][1])]) } else { x[j] };
                    let at = (q + s * (R * p + j)) * dst_step;
                    y.0.store(dst[0].add(at));
                    y.1.store(dst[1].add(at));
                }
            }
        }
    }
}
