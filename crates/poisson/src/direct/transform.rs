//! The discrete sine, cosine and Fourier transforms that diagonalise the three-point operator of an axis.
//!
//! With `n` intervals the eigenvectors over the nodes `j` and the eigenvalues `-(4 / h^2) sin^2(phi / 2)` are
//!
//! ```text
//! Dirichlet, Dirichlet   sin(j phi)              phi = pi k / n            k = 1 .. n-1   (DST-I)
//! Neumann, Neumann       cos(j phi)              phi = pi k / n            k = 0 .. n     (DCT-I)
//! Neumann, Dirichlet     cos(j phi)              phi = pi (2k+1) / (2n)    k = 0 .. n-1   (quarter wave)
//! Dirichlet, Neumann     the same, mirrored
//! periodic               cos(j phi), sin(j phi)  phi = 2 pi k / n          k = 0 .. n/2   (DFT)
//! ```
//!
//! orthogonal under the control volumes, which are halved at a Neumann end. The transforms are real; they are applied to
//! complex lines, that is to two real lines at once. The order of the modes is whatever costs least: [`angles`] lists `phi` by
//! position.
//!
//! A sine or cosine transform of even `n` splits: its odd modes are a quarter-wave transform of `n / 2` points, its even
//! ones a transform of `n / 2` intervals of the same kind. A quarter-wave transform is one complex DFT between two
//! rotations (the transpose of Makhoul, IEEE Trans. ASSP 28 (1980) 27, without his permutations). One of odd `n` splits by
//! an odd factor `p`: the modes `k = p r + c (mod 2 n)`, each of which is the mode `c` or `-c` of a residue once, are a DFT
//! of `2 n / p` points of the folded and rotated extension, for `c = 1 .. (p - 1) / 2`; the multiples of `p` are a transform of
//! `n / p` intervals of the same kind. So a line pair costs a DFT of `n` points in parts, half of what the odd extension
//! costs, every step is unitary up to a factor, and no sums along the line lose digits (those of the transform by one real DFT
//! of `n` points do: rounding there grows as `sqrt(n)`).
//! What is left without a factor up to [`FACTORS`], or is small, is extended to `2 n` points.

use std::f64::consts::PI;
use std::sync::Arc;

use rustfft::num_complex::Complex;
use rustfft::{Fft, FftDirection};
use zellige_engine::ops::fft;
use zellige_engine::real::{Real, RealScalar};

use super::fold::{extend_cosine, extend_sine, fold_cosine, fold_sine, rotate_in, rotate_out, times_i, unfold_cosine, unfold_sine};
use super::odd;
#[cfg(target_arch = "x86_64")]
use super::pairs::{Pairs, x86};
use crate::grid::{Axis, Bc};
use crate::isa::{Isa, Run, Work};

/// The number types of the direct solver.
pub(super) trait Scalar: RealScalar + fft::Real {
    /// Complex numbers in the registers of AVX-512.
    #[cfg(target_arch = "x86_64")]
    type Avx512: Pairs<Self>;
    /// Complex numbers in the registers of AVX2.
    #[cfg(target_arch = "x86_64")]
    type Avx2: Pairs<Self>;

    /// `x`, rounded.
    #[inline(always)]
    fn of(x: f64) -> Self {
        <Self as Real>::from_f64(x)
    }
}
impl Scalar for f32 {
    #[cfg(target_arch = "x86_64")]
    type Avx512 = x86::F32x16;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = x86::F32x8;
}
impl Scalar for f64 {
    #[cfg(target_arch = "x86_64")]
    type Avx512 = x86::F64x8;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = x86::F64x4;
}

/// Intervals up to which the plain extension is as good as another split on the CPU.
pub(super) const SMALL: usize = 16;

/// Transform family of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransformType {
    /// Dirichlet on both ends.
    Sine,
    /// Neumann on both ends.
    Cosine,
    /// One of each; `mirrored` if the Dirichlet end comes first.
    Quarter { mirrored: bool },
    /// Periodic.
    Fourier,
    /// A single node.
    Flat,
}

impl TransformType {
    /// The family of an axis.
    pub(super) fn of(axis: &Axis) -> Self {
        match (axis.lo, axis.hi) {
            _ if axis.is_flat() => Self::Flat,
            (Bc::Periodic, _) | (_, Bc::Periodic) => Self::Fourier,
            (Bc::Dirichlet, Bc::Dirichlet) => Self::Sine,
            (Bc::Neumann, Bc::Neumann) => Self::Cosine,
            (Bc::Neumann, Bc::Dirichlet) => Self::Quarter { mirrored: false },
            (Bc::Dirichlet, Bc::Neumann) => Self::Quarter { mirrored: true },
        }
    }
}

/// One split of a line: which modes it makes, by which DFTs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Split {
    /// 1: a quarter wave, nothing is left. 2, or an odd factor: that part of the intervals is left.
    pub radix: usize,
    /// Intervals before the split.
    pub intervals: usize,
    /// Points of a DFT.
    pub points: usize,
    /// DFTs of a line, one behind the other.
    pub groups: usize,
}

impl Split {
    /// Modes that it makes.
    pub(super) fn width(&self) -> usize {
        self.points * self.groups
    }

    /// Rotations of the DFTs, halved: `e^{-i pi d c / n} / 2` for `d` up to half the points, for every group `c`; then (odd
    /// factors) the points `e^{2 pi i t / p}` of the circle.
    pub(super) fn rotations<T: Scalar>(&self) -> Vec<Complex<T>> {
        let (n, half) = (self.intervals as f64, self.points / 2);
        let quarter = self.radix <= 2;
        let turn = |c: usize, d: usize| Complex::from_polar(0.5, -PI * (c * d) as f64 / if quarter { 2.0 * self.points as f64 } else { n });
        let mut all: Vec<_> = (1..=self.groups).flat_map(|c| (0..=half).map(move |d| turn(c, d))).map(to).collect();
        if !quarter {
            all.extend((0..self.radix).map(|t| Complex::from_polar(1.0, 2.0 * PI * t as f64 / self.radix as f64)).map(to));
        }
        all
    }
}

/// The odd factors that a line is split by, the best first: a large one leaves little for further splits, but costs as many
/// operations a value.
pub(super) const FACTORS: [usize; 5] = [5, 7, 3, 11, 13];

/// The splits of a line, in order, and the intervals of the remainder. Lines of `small` intervals are not split further.
pub(super) fn split(kind: TransformType, intervals: usize, small: usize) -> (Vec<Split>, usize) {
    match kind {
        TransformType::Quarter { .. } => (vec![Split { radix: 1, intervals, points: intervals, groups: 1 }], 0),
        TransformType::Flat | TransformType::Fourier => (Vec::new(), intervals),
        TransformType::Sine | TransformType::Cosine => {
            let (mut parts, mut n) = (Vec::new(), intervals);
            while n > small {
                let factor = if n.is_multiple_of(2) { Some(&2) } else { FACTORS.iter().find(|p| n.is_multiple_of(**p)) };
                let Some(&radix) = factor else { break };
                let (points, groups) = if radix == 2 { (n / 2, 1) } else { (2 * n / radix, radix / 2) };
                parts.push(Split { radix, intervals: n, points, groups });
                n /= radix;
            }
            (parts, n)
        }
    }
}

/// `phi` of every mode of an axis, by position.
pub(super) fn angles(kind: TransformType, intervals: usize, small: usize) -> Vec<f64> {
    let n = intervals;
    let (parts, tail) = split(kind, n, small);
    let mut phi = Vec::with_capacity(n + 1);
    for part in parts {
        let (m, n) = (part.points, part.intervals);
        if part.radix <= 2 {
            // The DFT leaves mode 2k of the quarter wave at k, counted from below, and mode 2k + 1 counted from above.
            let mode = |p: usize| if 2 * p < m { 2 * p } else { 2 * (m - 1 - p) + 1 };
            phi.extend((0..m).map(|p| PI * (2 * mode(p) + 1) as f64 / (2 * m) as f64));
        } else {
            // Beyond n a mode comes with its sign turned (sines), which its own way back turns again.
            let modes = (1..=part.groups).flat_map(|c| (0..m).map(move |r| part.radix * r + c));
            phi.extend(modes.map(|k| PI * k.min(2 * n - k) as f64 / n as f64));
        }
    }
    match kind {
        TransformType::Flat => phi.push(0.0),
        TransformType::Sine => phi.extend((1..tail).map(|k| PI * k as f64 / tail as f64)),
        TransformType::Cosine => phi.extend((0..=tail).map(|k| PI * k as f64 / tail as f64)),
        TransformType::Fourier => phi.extend((0..n).map(|p| 2.0 * PI * p.min(n - p) as f64 / n as f64)),
        TransformType::Quarter { .. } => {}
    }
    phi
}

/// Scratch of one thread: three lines of the longest DFT.
#[derive(Debug, Default)]
pub(super) struct Scratch<T> {
    a: Vec<Complex<T>>,
    b: Vec<Complex<T>>,
    fft: Vec<Complex<T>>,
}

/// One split with its DFT.
struct Part<T> {
    split: Split,
    fft: Arc<dyn Fft<T>>,
    /// [`Split::rotations`].
    rotation: Vec<Complex<T>>,
}

/// The transform of one axis.
pub(super) struct Transform<T> {
    isa: Isa,
    kind: TransformType,
    /// Number of unknowns, nodes and modes alike.
    len: usize,
    intervals: usize,
    parts: Vec<Part<T>>,
    /// Intervals of what the parts leave, and the DFT of its extension (periodic: of the line itself).
    tail: usize,
    tail_fft: Option<Arc<dyn Fft<T>>>,
    scratch: [usize; 2],
}

impl<T: Scalar> Transform<T> {
    /// Plans the transform of an axis.
    pub(super) fn new(axis: &Axis) -> Self {
        let forward = |n: usize| T::line(n, FftDirection::Forward);
        let (kind, intervals) = (TransformType::of(axis), axis.intervals());
        let (parts, tail) = split(kind, intervals, SMALL);
        let parts: Vec<_> =
            parts.into_iter().map(|split| Part { split, fft: forward(split.points), rotation: split.rotations() }).collect();
        let tail_fft = match kind {
            TransformType::Sine | TransformType::Cosine => Some(forward(2 * tail)),
            TransformType::Fourier => Some(forward(tail)),
            TransformType::Quarter { .. } | TransformType::Flat => None,
        };
        let ffts = || parts.iter().map(|p| &p.fft).chain(&tail_fft);
        let widths = parts.iter().map(|p| p.split.width());
        let longest = widths.chain(tail_fft.iter().map(|f| f.len())).max().unwrap_or(0);
        let work = ffts().map(|f| f.get_outofplace_scratch_len().max(f.get_inplace_scratch_len())).max().unwrap_or(0);
        let len = axis.unknowns().len();
        Self { isa: Isa::best(), kind, len, intervals, parts, tail, tail_fft, scratch: [longest, work] }
    }

    /// Takes the loops around the DFTs compiled for `isa`.
    #[cfg(test)]
    pub(super) fn compile_for(&mut self, isa: Isa) {
        self.isa = isa;
    }

    /// Number of unknowns.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Grows `scratch` to what this transform needs.
    pub(super) fn reserve(&self, scratch: &mut Scratch<T>) {
        let zero = Complex::new(T::ZERO, T::ZERO);
        let grow = |v: &mut Vec<Complex<T>>, n: usize| v.resize(v.len().max(n), zero);
        grow(&mut scratch.a, self.scratch[0]);
        grow(&mut scratch.b, self.scratch[0]);
        grow(&mut scratch.fft, self.scratch[1]);
    }

    /// Factor of the analysis with which the synthesis needs none.
    fn norm(&self) -> f64 {
        if self.kind == TransformType::Flat { 1.0 } else { 2.0 / self.intervals as f64 }
    }

    /// Analysis: the modes of `line` times `scale` into `modes`. `line` is used up.
    pub(super) fn forward(&self, line: &mut [Complex<T>], modes: &mut [Complex<T>], scale: f64, scratch: &mut Scratch<T>) {
        self.isa.run(Forward { transform: self, line, modes, scale, scratch });
    }

    /// Synthesis: the line of `modes`. `modes` is used up.
    pub(super) fn backward(&self, modes: &mut [Complex<T>], line: &mut [Complex<T>], scratch: &mut Scratch<T>) {
        self.isa.run(Backward { transform: self, modes, line, scratch });
    }

    #[inline(always)]
    fn analyse(&self, line: &mut [Complex<T>], modes: &mut [Complex<T>], scale: f64, scratch: &mut Scratch<T>) {
        let scale = T::of(scale * self.norm());
        let (mut n, mut at) = (self.intervals, 0);
        for part in &self.parts {
            let m = part.split.width();
            let w = &mut scratch.a[..m];
            match (self.kind, part.split.radix) {
                (TransformType::Quarter { mirrored }, _) => rotate_in(line, mirrored, w, &part.rotation, scale),
                (TransformType::Sine, 2) => fold_sine(self.isa, &mut line[..n - 1], w, &part.rotation, scale),
                (_, 2) => fold_cosine(self.isa, &mut line[..=n], w, &part.rotation, scale),
                (TransformType::Sine, _) => odd::fold(&mut line[..n - 1], true, w, &part.split, &part.rotation, scale),
                _ => odd::fold(&mut line[..=n], false, w, &part.split, &part.rotation, scale),
            }
            part.fft.process_outofplace_with_scratch(w, &mut modes[at..at + m], &mut scratch.fft);
            at += m;
            n /= part.split.radix;
        }
        let Some(fft) = &self.tail_fft else {
            if self.kind == TransformType::Flat {
                modes[0] = line[0].scale(scale);
            }
            return;
        };
        let n = self.tail;
        let modes = &mut modes[at..];
        let (a, b) = (&mut scratch.a[..fft.len()], &mut scratch.b[..fft.len()]);
        match self.kind {
            TransformType::Sine => {
                extend_sine(&line[..n - 1], a);
                fft.process_outofplace_with_scratch(a, b, &mut scratch.fft);
                let half = scale * T::HALF;
                for (mode, e) in modes.iter_mut().zip(&b[1..n]) {
                    *mode = times_i(*e).scale(half);
                }
            }
            TransformType::Cosine => {
                extend_cosine(&line[..=n], a);
                fft.process_outofplace_with_scratch(a, b, &mut scratch.fft);
                let half = scale * T::HALF;
                for (mode, e) in modes.iter_mut().zip(&b[..=n]) {
                    *mode = e.scale(half);
                }
                // The constant and the saw-tooth have twice the norm of the others.
                modes[0] = modes[0].scale(T::HALF);
                modes[n] = modes[n].scale(T::HALF);
            }
            _ => {
                fft.process_outofplace_with_scratch(&mut line[..n], b, &mut scratch.fft);
                let half = scale * T::HALF;
                modes[0] = b[0].scale(half);
                if n.is_multiple_of(2) {
                    modes[n / 2] = b[n / 2].scale(half);
                }
                for k in 1..n.div_ceil(2) {
                    modes[k] = (b[k] + b[n - k]).scale(half);
                    modes[n - k] = times_i(b[k] - b[n - k]).scale(half);
                }
            }
        }
    }

    #[inline(always)]
    fn synthesise(&self, modes: &mut [Complex<T>], line: &mut [Complex<T>], scratch: &mut Scratch<T>) {
        let mut at = self.len;
        if let Some(fft) = &self.tail_fft {
            let n = self.tail;
            let (a, b) = (&mut scratch.a[..fft.len()], &mut scratch.b[..fft.len()]);
            match self.kind {
                TransformType::Sine => {
                    at -= n - 1;
                    extend_sine(&modes[at..], a);
                    fft.process_outofplace_with_scratch(a, b, &mut scratch.fft);
                    for (u, e) in line.iter_mut().zip(&b[1..n]) {
                        *u = times_i(*e).scale(T::HALF);
                    }
                }
                TransformType::Cosine => {
                    at -= n + 1;
                    modes[at] = modes[at].scale(T::TWO);
                    modes[at + n] = modes[at + n].scale(T::TWO);
                    extend_cosine(&modes[at..], a);
                    fft.process_outofplace_with_scratch(a, b, &mut scratch.fft);
                    for (u, e) in line.iter_mut().zip(&b[..=n]) {
                        *u = e.scale(T::HALF);
                    }
                }
                _ => {
                    a[0] = modes[0];
                    if n.is_multiple_of(2) {
                        a[n / 2] = modes[n / 2];
                    }
                    for k in 1..n.div_ceil(2) {
                        let (c, s) = (modes[k].scale(T::HALF), times_i(modes[n - k]).scale(T::HALF));
                        a[k] = c + s;
                        a[n - k] = c - s;
                    }
                    fft.process_outofplace_with_scratch(a, &mut line[..n], &mut scratch.fft);
                }
            }
        } else if self.kind == TransformType::Flat {
            line[0] = modes[0];
        }
        for part in self.parts.iter().rev() {
            let (m, n) = (part.split.width(), part.split.intervals);
            at -= m;
            let v = &mut scratch.a[..m];
            part.fft.process_outofplace_with_scratch(&mut modes[at..at + m], v, &mut scratch.fft);
            match (self.kind, part.split.radix) {
                (TransformType::Quarter { mirrored }, _) => rotate_out(v, line, mirrored, &part.rotation),
                (TransformType::Sine, 2) => unfold_sine(self.isa, v, &mut line[..n - 1], &part.rotation),
                (_, 2) => unfold_cosine(self.isa, v, &mut line[..=n], &part.rotation),
                (TransformType::Sine, _) => odd::unfold(v, &mut line[..n - 1], true, &part.split, &part.rotation),
                _ => odd::unfold(v, &mut line[..=n], false, &part.split, &part.rotation),
            }
        }
    }
}

/// [`Transform::forward`] of a line.
struct Forward<'a, T> {
    transform: &'a Transform<T>,
    line: &'a mut [Complex<T>],
    modes: &'a mut [Complex<T>],
    scale: f64,
    scratch: &'a mut Scratch<T>,
}

impl<T: Scalar> Work for Forward<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        self.transform.analyse(self.line, self.modes, self.scale, self.scratch);
    }
}

/// [`Transform::backward`] of a line.
struct Backward<'a, T> {
    transform: &'a Transform<T>,
    modes: &'a mut [Complex<T>],
    line: &'a mut [Complex<T>],
    scratch: &'a mut Scratch<T>,
}

impl<T: Scalar> Work for Backward<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        self.transform.synthesise(self.modes, self.line, self.scratch);
    }
}

fn to<T: Scalar>(z: Complex<f64>) -> Complex<T> {
    Complex::new(T::of(z.re), T::of(z.im))
}
