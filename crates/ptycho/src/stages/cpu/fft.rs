//! The unitary transform of a frame but for its factor, on registers of columns.
//!
//! A frame is two planes, real and imaginary, `[ny][sx]` with rows padded to whole registers (`sx`, `sy`: multiples of 16). A
//! column pass transforms along the first axis, a register of columns at a time: they are read into a buffer in the first-level
//! cache, go through Stockham's passes there (radices 16, 8, 4, 2, 3, 5 and other primes), and are written back. The forward
//! transform writes the first pass's columns as rows and does a column pass again, so that Fourier space lies transposed,
//! `[nx][sy]`: what is done there does not mind, and half of all transpositions are saved. The inverse is the same with real and
//! imaginary parts exchanged.

use num_complex::Complex;
use zellige_engine::large::Aligned;

use super::lanes::{Isa, Lanes, LibraryTransform, Number, Work};
use super::passes::{LARGEST, Pass, Run};

/// Rows are padded to a multiple of this.
pub(crate) const PAD: usize = 16;
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

/// Transforms of one length.
enum Line<T> {
    Passes(usize, Vec<Pass<T>>),
    /// Library with the length of its transforms.
    LibraryTransform(usize, LibraryTransform<T>),
}

impl<T: Number> Line<T> {
    /// Plans lines of length `n`; without registers of its own the library does all.
    fn new(n: usize, isa: Isa) -> Self {
        if isa == Isa::Baseline {
            return Self::LibraryTransform(n, T::library(n));
        }
        // Powers of two in as few passes as registers allow, the larger ones first; what 16 needs only AVX-512 has.
        #[cfg(target_arch = "x86_64")]
        let most = if isa == Isa::Avx512 { 4 } else { 3 };
        #[cfg(not(target_arch = "x86_64"))]
        let most = 3;
        let twos = n.trailing_zeros();
        let passes = twos.div_ceil(most);
        let mut radices: Vec<usize> = (0..passes).map(|i| 1 << ((twos + passes - 1 - i) / passes)).collect();
        let mut left = n >> twos;
        for radix in (3..=LARGEST).step_by(2) {
            while left.is_multiple_of(radix) {
                radices.push(radix);
                left /= radix;
            }
        }
        if left > 1 {
            return Self::LibraryTransform(n, T::library(n));
        }
        let (mut length, mut s) = (n, 1);
        let pass = |radix: usize| {
            length /= radix;
            let pass = Pass::new(radix, length, s);
            s *= radix;
            pass
        };
        Self::Passes(n, radices.into_iter().map(pass).collect())
    }

    fn len(&self) -> usize {
        match self {
            Self::Passes(n, _) | Self::LibraryTransform(n, _) => *n,
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

/// Work buffers of a thread for the transform.
pub(crate) struct Workspace<T> {
    /// Two buffers of columns.
    columns: [Aligned<T>; 2],
    /// One column, where a library transforms it.
    line: Vec<Complex<T>>,
    /// Kernel of the near field as the view at hand sees it, with sub-pixel shifts; empty otherwise.
    pub(super) near: Aligned<T>,
}

impl<T: Number> Plan<T> {
    pub(crate) fn new(shape: Shape, isa: Isa) -> Self {
        Self { shape, isa, rows: Line::new(shape.ny, isa), columns: Line::new(shape.nx, isa) }
    }

    pub(crate) fn workspace(&self) -> Workspace<T> {
        let longest = self.shape.sy.max(self.shape.sx);
        let buffer = || Aligned::zeros(2 * longest * PAD);
        Workspace { columns: [buffer(), buffer()], line: vec![Complex::new(T::ZERO, T::ZERO); longest], near: Aligned::default() }
    }

    /// `to[nx][sy] = F from[ny][sx]`, each two planes; `to` holds `sx` lines.
    pub(crate) fn forward(&self, from: [&[T]; 2], to: [&mut [T]; 2], workspace: &mut Workspace<T>) {
        let Shape { sx, sy, ny, .. } = self.shape;
        assert!(from.iter().all(|p| p.len() >= ny * sx) && to.iter().all(|p| p.len() >= sx * sy));
        let [a, b] = to;
        let (from, to) = (from.map(<[T]>::as_ptr), [a.as_mut_ptr(), b.as_mut_ptr()]);
        self.both([&self.rows, &self.columns], workspace, from, to, [sx, sy]);
    }

    /// `to[ny][sx] = nx ny F^-1 from[nx][sy]`; `to` holds `sy` lines.
    pub(crate) fn inverse(&self, from: [&[T]; 2], to: [&mut [T]; 2], workspace: &mut Workspace<T>) {
        let Shape { sx, sy, nx, .. } = self.shape;
        assert!(from.iter().all(|p| p.len() >= nx * sy) && to.iter().all(|p| p.len() >= sx * sy));
        let [re, im] = to;
        let (from, to) = ([from[1].as_ptr(), from[0].as_ptr()], [im.as_mut_ptr(), re.as_mut_ptr()]);
        self.both([&self.columns, &self.rows], workspace, from, to, [sy, sx]);
    }
}

impl<T: Number> Plan<T> {
    /// Transforms along both axes: along the first of `from`, whose lines are `stride[0]` long, into lines of `to` that are
    /// `stride[1]` long; then along the first of `to`.
    fn both(&self, [first, second]: [&Line<T>; 2], workspace: &mut Workspace<T>, from: [*const T; 2], to: [*mut T; 2], stride: [usize; 2]) {
        let n = T::lanes(self.isa);
        let padded = stride[1];
        // SAFETY: the planes were measured by the caller; buffers hold `PAD` columns of the longer axis.
        unsafe {
            for at in (0..stride[0]).step_by(n) {
                let turned = self.columns_of(first, from.map(|p| p.add(at)), stride[0], None, workspace);
                let buffer = &mut workspace.columns[turned];
                // Lines that pad the buffer become columns that pad the frame: nothing, not what an earlier line left there.
                for plane in 0..2 {
                    buffer[(plane * padded + first.len()) * n..(plane + 1) * padded * n].fill(T::ZERO);
                }
                let to = to.map(|p| p.add(at * stride[1]));
                T::with(self.isa, TransposeSquares { from: buffer.as_ptr(), to, lines: padded });
            }
            for at in (0..stride[1]).step_by(n) {
                let target = to.map(|p| p.add(at));
                self.columns_of(second, target.map(<*mut T>::cast_const), stride[1], Some((target, stride[1])), workspace);
            }
        }
    }

    /// Transforms a register of columns along lines that are `stride` apart, to `to`, or into a buffer of `workspace`, planes
    /// one behind the other and lines a register apart; gives the number of that buffer.
    unsafe fn columns_of(
        &self,
        line: &Line<T>,
        from: [*const T; 2],
        stride: usize,
        to: Option<([*mut T; 2], usize)>,
        workspace: &mut Workspace<T>,
    ) -> usize {
        let lanes = T::lanes(self.isa);
        let padded = line.len().next_multiple_of(PAD);
        // SAFETY: the caller's.
        unsafe {
            let buffers = [0, 1].map(|i: usize| {
                let start = workspace.columns[i].as_mut_ptr();
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
                Line::LibraryTransform(n, transform) => {
                    let (dst, dst_step) = to.unwrap_or((buffers[0], lanes));
                    for l in 0..lanes {
                        for i in 0..*n {
                            workspace.line[i] = Complex::new(*from[0].add(i * stride + l), *from[1].add(i * stride + l));
                        }
                        transform(&mut workspace.line[..*n]);
                        for i in 0..*n {
                            *dst[0].add(i * dst_step + l) = workspace.line[i].re;
                            *dst[1].add(i * dst_step + l) = workspace.line[i].im;
                        }
                    }
                    0
                }
            }
        }
    }
}

/// Squares of a buffer's two planes, columns to rows.
struct TransposeSquares<T> {
    from: *const T,
    to: [*mut T; 2],
    lines: usize,
}

impl<T: Number> Work<T> for TransposeSquares<T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes<T = T>>(self) {
        // SAFETY: the caller's.
        unsafe {
            for plane in 0..2 {
                let from = self.from.add(plane * self.lines * V::N);
                for y in (0..self.lines).step_by(V::N) {
                    V::transpose(from.add(y * V::N), V::N, self.to[plane].add(y), self.lines);
                }
            }
        }
    }
}
