//! The unitary transform of a frame but for its factor, on registers of columns.
//!
//! A frame is two planes, real and imaginary, `[ny][sx]` with rows padded to whole registers (`sx`, `sy`: multiples of 16). A column
//! pass transforms along the first axis, a register of columns at a time: they are read into a buffer in the first-level cache, go
//! through Stockham's passes there (radices 8, 4, 2, 3, 5 and other primes), and are written back. The forward transform writes the
//! first pass's columns as rows and does a column pass again, so that Fourier space lies transposed, `[nx][sy]`: what is done
//! there does not mind, and half of all transpositions are saved. The inverse is the same with real and imaginary parts exchanged.

use std::f64::consts::TAU;

use num_complex::Complex;
use zellige_engine::real::Real;

use super::lanes::{Isa, Lanes, Library, Number, Work};

/// Rows are padded to a multiple of this.
pub(crate) const PAD: usize = 16;
/// Largest prime factor that has a pass; rustfft does what is beyond.
const LARGEST: usize = 23;

/// Sizes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Rows.
    pub(crate) ny: usize,
    /// Columns.
    pub(crate) nx: usize,
    /// Rows, padded: the length of a line of Fourier space.
    pub(crate) sy: usize,
    /// Columns, padded: the length of a line.
    pub(crate) sx: usize,
}

impl Shape {
    pub(crate) fn new([ny, nx]: [usize; 2]) -> Self {
        Self { ny, nx, sy: ny.next_multiple_of(PAD), sx: nx.next_multiple_of(PAD) }
    }

    /// Numbers of a plane that may be transformed.
    pub(crate) fn plane(&self) -> usize {
        self.sy * self.sx
    }

    /// Numbers of a stored plane.
    pub(crate) fn stored(&self) -> usize {
        self.ny * self.sx
    }
}

/// One of Stockham's passes.
#[derive(Debug, Clone)]
struct Pass<T> {
    radix: usize,
    /// Lengths of what is left: `n = radix m`.
    m: usize,
    /// Product of the radices before.
    s: usize,
    /// `exp(-2 pi i p j / n)`, `[p][j - 1]`, cosine and sine.
    twiddles: Vec<[T; 2]>,
    /// `exp(-2 pi i k / radix)` for the radices without a form of their own.
    roots: Vec<[T; 2]>,
}

/// Transforms of one length.
enum Line<T> {
    Passes(usize, Vec<Pass<T>>),
    /// With its length.
    Library(usize, Library<T>),
}

fn root<T: Number>(k: usize, n: usize) -> [T; 2] {
    let (sin, cos) = (TAU * (k % n) as f64 / n as f64).sin_cos();
    [T::from_f64(cos), T::from_f64(-sin)]
}

impl<T: Number> Line<T> {
    /// Without registers of its own the library does all.
    fn new(n: usize, isa: Isa) -> Self {
        if isa == Isa::Baseline {
            return Self::Library(n, T::library(n));
        }
        let mut radices = Vec::new();
        let mut left = n;
        while left.is_multiple_of(8) {
            radices.push(8);
            left /= 8;
        }
        // 8 and 2 make two passes of 4, which have the better ratio.
        if left == 2 && radices.pop().is_some() {
            radices.extend([4, 4]);
            left = 1;
        }
        for radix in [4, 2, 3, 5].into_iter().chain((7..=LARGEST).step_by(2)) {
            while left.is_multiple_of(radix) {
                radices.push(radix);
                left /= radix;
            }
        }
        if left > 1 {
            return Self::Library(n, T::library(n));
        }
        let (mut length, mut s) = (n, 1);
        let pass = |radix: usize| {
            let m = length / radix;
            let twiddles = (0..m).flat_map(|p| (1..radix).map(move |j| (p * j) % (radix * m))).map(|k| root(k, radix * m)).collect();
            let pass = Pass { radix, m, s, twiddles, roots: (0..radix).map(|k| root(k, radix)).collect() };
            (length, s) = (m, s * radix);
            pass
        };
        Self::Passes(n, radices.into_iter().map(pass).collect())
    }

    fn len(&self) -> usize {
        match self {
            Self::Passes(n, _) | Self::Library(n, _) => *n,
        }
    }
}

/// Transforms of one shape.
pub(crate) struct Plan<T> {
    pub(crate) shape: Shape,
    isa: Isa,
    rows: Line<T>,
    columns: Line<T>,
}

/// Room of a thread for the transform.
pub(crate) struct Room<T> {
    /// Two buffers of columns.
    columns: [Vec<T>; 2],
    /// One column, where a library transforms it.
    line: Vec<Complex<T>>,
}

impl<T: Number> Plan<T> {
    pub(crate) fn new(shape: Shape, isa: Isa) -> Self {
        Self { shape, isa, rows: Line::new(shape.ny, isa), columns: Line::new(shape.nx, isa) }
    }

    pub(crate) fn room(&self) -> Room<T> {
        let longest = self.shape.sy.max(self.shape.sx);
        let buffer = || vec![T::ZERO; 2 * longest * PAD];
        Room { columns: [buffer(), buffer()], line: vec![Complex::new(T::ZERO, T::ZERO); longest] }
    }

    /// `to[nx][sy] = F from[ny][sx]`, each two planes; `to` has room for `sx` lines.
    pub(crate) fn forward(&self, from: [&[T]; 2], to: [&mut [T]; 2], room: &mut Room<T>) {
        let Shape { sx, sy, ny, .. } = self.shape;
        assert!(from.iter().all(|p| p.len() >= ny * sx) && to.iter().all(|p| p.len() >= sx * sy));
        let [a, b] = to;
        let (from, to) = (from.map(<[T]>::as_ptr), [a.as_mut_ptr(), b.as_mut_ptr()]);
        self.both([&self.rows, &self.columns], room, from, to, [sx, sy]);
    }

    /// `to[ny][sx] = nx ny F^-1 from[nx][sy]`; `to` has room for `sy` lines.
    pub(crate) fn inverse(&self, from: [&[T]; 2], to: [&mut [T]; 2], room: &mut Room<T>) {
        let Shape { sx, sy, nx, .. } = self.shape;
        assert!(from.iter().all(|p| p.len() >= nx * sy) && to.iter().all(|p| p.len() >= sx * sy));
        let [re, im] = to;
        let (from, to) = ([from[1].as_ptr(), from[0].as_ptr()], [im.as_mut_ptr(), re.as_mut_ptr()]);
        self.both([&self.columns, &self.rows], room, from, to, [sy, sx]);
    }
}

impl<T: Number> Plan<T> {
    /// Both axes: along the first of `from`, whose lines are `stride[0]` long, into lines of `to` that are `stride[1]` long; then along
    /// the first of `to`.
    fn both(&self, [first, second]: [&Line<T>; 2], room: &mut Room<T>, from: [*const T; 2], to: [*mut T; 2], stride: [usize; 2]) {
        let n = T::lanes(self.isa);
        let padded = stride[1];
        // SAFETY: the planes were measured by the caller; buffers hold `PAD` columns of the longer axis.
        unsafe {
            for at in (0..stride[0]).step_by(n) {
                let turned = self.columns_of(first, from.map(|p| p.add(at)), stride[0], None, room);
                let buffer = &mut room.columns[turned];
                // Lines that pad the buffer become columns that pad the frame: nothing, not what an earlier line left there.
                for plane in 0..2 {
                    buffer[(plane * padded + first.len()) * n..(plane + 1) * padded * n].fill(T::ZERO);
                }
                let to = to.map(|p| p.add(at * stride[1]));
                T::with(self.isa, Turn { from: buffer.as_ptr(), to, lines: padded });
            }
            for at in (0..stride[1]).step_by(n) {
                let place = to.map(|p| p.add(at));
                self.columns_of(second, place.map(<*mut T>::cast_const), stride[1], Some((place, stride[1])), room);
            }
        }
    }

    /// Transforms a register of columns along lines that are `stride` apart, to `to`, or into a buffer of `room`, planes one behind the
    /// other and lines a register apart; gives the number of that buffer.
    unsafe fn columns_of(
        &self,
        line: &Line<T>,
        from: [*const T; 2],
        stride: usize,
        to: Option<([*mut T; 2], usize)>,
        room: &mut Room<T>,
    ) -> usize {
        let lanes = T::lanes(self.isa);
        let padded = line.len().next_multiple_of(PAD);
        // SAFETY: the caller's.
        unsafe {
            let buffers = [0, 1].map(|i: usize| {
                let start = room.columns[i].as_mut_ptr();
                [start, start.add(padded * lanes)]
            });
            match line {
                Line::Passes(_, passes) => {
                    let (mut src, mut src_step, mut next) = (from, stride, 0);
                    for (i, pass) in passes.iter().enumerate() {
                        let (dst, dst_step) = match to {
                            Some(to) if i + 1 == passes.len() => to,
                            _ => (buffers[next], lanes),
                        };
                        T::with(self.isa, Run { pass, src, src_step, dst, dst_step });
                        (src, src_step) = (dst.map(<*mut T>::cast_const), dst_step);
                        next = 1 - next;
                    }
                    1 - next
                }
                Line::Library(n, transform) => {
                    let (dst, dst_step) = to.unwrap_or((buffers[0], lanes));
                    for l in 0..lanes {
                        for i in 0..*n {
                            room.line[i] = Complex::new(*from[0].add(i * stride + l), *from[1].add(i * stride + l));
                        }
                        transform(&mut room.line[..*n]);
                        for i in 0..*n {
                            *dst[0].add(i * dst_step + l) = room.line[i].re;
                            *dst[1].add(i * dst_step + l) = room.line[i].im;
                        }
                    }
                    0
                }
            }
        }
    }
}

/// Squares of a buffer's two planes, columns to rows.
struct Turn<T> {
    from: *const T,
    to: [*mut T; 2],
    lines: usize,
}

impl<T: Number> Work<T> for Turn<T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes<T = T>>(self) {
        // SAFETY: the caller's.
        unsafe {
            for plane in 0..2 {
                let from = self.from.add(plane * self.lines * V::N);
                for y in (0..self.lines).step_by(V::N) {
                    V::turn(from.add(y * V::N), V::N, self.to[plane].add(y), self.lines);
                }
            }
        }
    }
}

/// A pass.
struct Run<'a, T> {
    pass: &'a Pass<T>,
    src: [*const T; 2],
    src_step: usize,
    dst: [*mut T; 2],
    dst_step: usize,
}

impl<T: Number> Work<T> for Run<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes<T = T>>(self) {
        // What has no registers has no passes.
        if V::REGISTERS {
            // SAFETY: the caller's.
            unsafe {
                match self.pass.radix {
                    2 => radix::<V, 2>(&self),
                    3 => radix::<V, 3>(&self),
                    4 => radix::<V, 4>(&self),
                    5 => radix::<V, 5>(&self),
                    8 => radix::<V, 8>(&self),
                    _ => prime::<V>(&self),
                }
            }
        }
    }
}

/// A complex register.
#[derive(Clone, Copy)]
struct C<V>(V, V);

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

/// The transform of a radix, in place.
#[inline(always)]
unsafe fn butterfly<V: Lanes, const R: usize>(x: &mut [C<V>; R], roots: &[[V::T; 2]]) {
    // SAFETY: the caller's.
    unsafe {
        match R {
            2 => (x[0], x[1]) = (x[0].add(x[1]), x[0].sub(x[1])),
            4 => {
                let y = four([x[0], x[1], x[2], x[3]]);
                x.copy_from_slice(&y[..R.min(4)]);
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

/// A pass of radix `R`.
#[inline(always)]
unsafe fn radix<V: Lanes, const R: usize>(run: &Run<'_, V::T>) {
    let Run { pass, src, src_step, dst, dst_step } = run;
    let (m, s) = (pass.m, pass.s);
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
                    let y = if j > 0 { x[j].times([V::splat(factors[j - 1][0]), V::splat(factors[j - 1][1])]) } else { x[j] };
                    let at = (q + s * (R * p + j)) * dst_step;
                    y.0.store(dst[0].add(at));
                    y.1.store(dst[1].add(at));
                }
            }
        }
    }
}
