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
    Passes(Vec<Pass<T>>),
    /// With its length.
    Library(usize, Library<T>),
}

fn root<T: Number>(k: usize, n: usize) -> [T; 2] {
    let (sin, cos) = (TAU * (k % n) as f64 / n as f64).sin_cos();
    [T::from_f64(cos), T::from_f64(-sin)]
}

impl<T: Number> Line<T> {
    fn new(n: usize) -> Self {
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
        Self::Passes(radices.into_iter().map(pass).collect())
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
        Self { shape, isa, rows: Line::new(shape.ny), columns: Line::new(shape.nx) }
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
        T::with(self.isa, Both { first: &self.rows, second: &self.columns, room, from, to, lines: [self.shape.ny, sx], stride: [sx, sy] });
    }

    /// `to[ny][sx] = nx ny F^-1 from[nx][sy]`; `to` has room for `sy` lines.
    pub(crate) fn inverse(&self, from: [&[T]; 2], to: [&mut [T]; 2], room: &mut Room<T>) {
        let Shape { sx, sy, nx, .. } = self.shape;
        assert!(from.iter().all(|p| p.len() >= nx * sy) && to.iter().all(|p| p.len() >= sx * sy));
        let [re, im] = to;
        let (from, to) = ([from[1].as_ptr(), from[0].as_ptr()], [im.as_mut_ptr(), re.as_mut_ptr()]);
        T::with(self.isa, Both { first: &self.columns, second: &self.rows, room, from, to, lines: [self.shape.nx, sy], stride: [sy, sx] });
    }
}

/// Both axes: along the first of `from`, whose lines are `stride[0]` long, into lines of `to` that are `stride[1]` long; then along
/// the first of `to`.
struct Both<'a, T> {
    first: &'a Line<T>,
    second: &'a Line<T>,
    room: &'a mut Room<T>,
    from: [*const T; 2],
    to: [*mut T; 2],
    /// Lines of `from`; padded columns of `from`.
    lines: [usize; 2],
    stride: [usize; 2],
}

impl<T: Number> Work<T> for Both<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes<T = T>>(self) {
        let Self { first, second, room, from, to, lines: [n, columns], stride } = self;
        let padded = n.next_multiple_of(V::N);
        // SAFETY: the planes were measured by the caller; buffers hold `PAD` columns of the longer axis.
        unsafe {
            for at in (0..columns).step_by(V::N) {
                let from = from.map(|p| p.add(at));
                let turned = columns_of::<V>(first, from, stride[0], None, room);
                let buffer = &mut room.columns[turned];
                // Lines that pad the buffer become columns that pad the frame: nothing, not what an earlier line left there.
                buffer[n * V::N..padded * V::N].fill(T::ZERO);
                buffer[(padded + n) * V::N..2 * padded * V::N].fill(T::ZERO);
                let turned = buffer.as_ptr();
                for plane in 0..2 {
                    let (from, to) = (turned.add(plane * padded * V::N), to[plane].add(at * stride[1]));
                    for y in (0..padded).step_by(V::N) {
                        V::turn(from.add(y * V::N), V::N, to.add(y), stride[1]);
                    }
                }
            }
            for at in (0..stride[1]).step_by(V::N) {
                let place = to.map(|p| p.add(at));
                columns_of::<V>(second, place.map(<*mut T>::cast_const), stride[1], Some((place, stride[1])), room);
            }
        }
    }
}

/// Transforms a register of columns along lines that are `stride` apart, to `to`, or into a buffer of `room`, planes one behind the
/// other and lines `V::N` apart; gives the number of that buffer.
#[inline(always)]
unsafe fn columns_of<V: Lanes>(
    line: &Line<V::T>,
    from: [*const V::T; 2],
    stride: usize,
    to: Option<([*mut V::T; 2], usize)>,
    room: &mut Room<V::T>,
) -> usize
where
    V::T: Number,
{
    // SAFETY: the caller's.
    unsafe {
        let n = match line {
            Line::Library(n, _) => *n,
            Line::Passes(passes) => passes.iter().map(|p| p.radix).product(),
        };
        let padded = n.next_multiple_of(V::N);
        let buffers = [0, 1].map(|i: usize| {
            let start = room.columns[i].as_mut_ptr();
            [start, start.add(padded * V::N)]
        });
        match line {
            Line::Passes(passes) => {
                let (mut src, mut src_step, mut next) = (from, stride, 0);
                for (i, pass) in passes.iter().enumerate() {
                    let (dst, dst_step) = match to {
                        Some(to) if i + 1 == passes.len() => to,
                        _ => (buffers[next], V::N),
                    };
                    run_pass::<V>(pass, src, src_step, dst, dst_step);
                    (src, src_step) = (dst.map(<*mut V::T>::cast_const), dst_step);
                    next = 1 - next;
                }
                if passes.is_empty() {
                    let (dst, dst_step) = to.unwrap_or((buffers[0], V::N));
                    for plane in 0..2 {
                        V::load(src[plane]).store(dst[plane]);
                    }
                    let _ = (dst_step, src_step);
                    return 0;
                }
                1 - next
            }
            Line::Library(n, transform) => {
                let n = *n;
                let (dst, dst_step) = to.unwrap_or((buffers[0], V::N));
                for l in 0..V::N {
                    for i in 0..n {
                        room.line[i] = Complex::new(*from[0].add(i * stride + l), *from[1].add(i * stride + l));
                    }
                    transform(&mut room.line[..n]);
                    for i in 0..n {
                        *dst[0].add(i * dst_step + l) = room.line[i].re;
                        *dst[1].add(i * dst_step + l) = room.line[i].im;
                    }
                }
                0
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
            // Odd: pairs k and R - k share their products.
            _ => {
                let h = R / 2;
                let (mut sums, mut differences) = (*x, *x);
                let mut all = x[0];
                for k in 1..=h {
                    sums[k] = x[k].add(x[R - k]);
                    differences[k] = x[k].sub(x[R - k]);
                    all = all.add(sums[k]);
                }
                let first = x[0];
                x[0] = all;
                for j in 1..=h {
                    let (mut even, mut odd) = (first, C(V::splat(V::T::ZERO), V::splat(V::T::ZERO)));
                    for k in 1..=h {
                        let [c, s] = roots[j * k % R];
                        even = even.plus(V::splat(c), sums[k]);
                        // The root's sine is negative already.
                        odd = odd.plus(V::splat(V::T::ZERO - s), differences[k]);
                    }
                    [x[j], x[R - j]] = C::turned(even, odd);
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn radix<V: Lanes, const R: usize>(pass: &Pass<V::T>, src: [*const V::T; 2], src_step: usize, dst: [*mut V::T; 2], dst_step: usize) {
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
                    let y = if j > 0 && p > 0 { x[j].times(factors[j - 1].map(|f| V::splat(f))) } else { x[j] };
                    let at = (q + s * (R * p + j)) * dst_step;
                    y.0.store(dst[0].add(at));
                    y.1.store(dst[1].add(at));
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn run_pass<V: Lanes>(pass: &Pass<V::T>, src: [*const V::T; 2], src_step: usize, dst: [*mut V::T; 2], dst_step: usize) {
    macro_rules! radices {
        ($($r:literal),*) => {
            match pass.radix {
                // SAFETY: the caller's.
                $($r => unsafe { radix::<V, $r>(pass, src, src_step, dst, dst_step) },)*
                _ => unreachable!("plans have passes of these radices only"),
            }
        };
    }
    radices!(2, 3, 4, 5, 7, 8, 11, 13, 17, 19, 23);
}
