//! The loops around the DFTs of a [`super::transform::Transform`]: splitting a line about its middle, the rotations of the
//! quarter-wave transform, and the odd and even extensions. All loops run over indices `d` and `m - d` at once, in place.

use rustfft::num_complex::Complex;

use super::pairs::{Pairs, Work, run};
use super::transform::Scalar;
use crate::isa::Isa;

#[inline(always)]
pub(super) fn times_i<T: Scalar>(z: Complex<T>) -> Complex<T> {
    Complex::new(-z.im, z.re)
}

/// The rotation before the DFT, of indices `d` and `m - d`, with `c = e^{-i pi d / (2m)} / 2`.
#[inline(always)]
pub(super) fn rotate_pair<T: Scalar>(y: Complex<T>, y_mirror: Complex<T>, c: Complex<T>) -> (Complex<T>, Complex<T>) {
    let q = times_i(y_mirror);
    ((y + q) * c, (y - q) * c.conj())
}

/// The rotation after the DFT, of indices `d` and `m - d`.
#[inline(always)]
pub(super) fn rotate_pair_back<T: Scalar>(v: Complex<T>, v_mirror: Complex<T>, c: Complex<T>) -> (Complex<T>, Complex<T>) {
    let (p, q) = (v * c, v_mirror * c.conj());
    (p + q, times_i(p - q))
}

/// The splitting of indices `d` and their mirror images: rotated values go to `front` and `back`, the rest stays.
struct Fold<'a, T> {
    /// [`quarters`].
    line: [&'a mut [Complex<T>]; 4],
    /// DFT input `d` and, backwards, `m - d`.
    front: &'a mut [Complex<T>],
    back: &'a mut [Complex<T>],
    rotation: &'a [Complex<T>],
    scale: T,
    sine: bool,
}

impl<T: Scalar> Fold<'_, T> {
    /// Places `i ..` of a register.
    ///
    /// # Safety
    /// As for [`Pairs`]; they exist.
    #[inline(always)]
    unsafe fn step<P: Pairs<T>>(&mut self, i: usize) {
        let j = self.front.len() - i - P::LEN;
        let [a, b, c, e] = self.line.each_mut().map(|q| q.as_mut_ptr());
        // SAFETY: the caller's; all are as long as `front`.
        unsafe {
            let (va, vb) = (P::load(a.add(i)), P::load(b.add(j)).reversed());
            let (vc, ve) = (P::load(c.add(i)), P::load(e.add(j)).reversed());
            let r = P::load(self.rotation.as_ptr().add(i)).scaled(self.scale);
            let (y, mirror) = if self.sine { (vb.add(vc), va.add(ve)) } else { (va.sub(ve), vb.sub(vc)) };
            let q = mirror.swapped();
            y.sub_add(q).by(r).store(self.front.as_mut_ptr().add(i));
            y.add_sub(q).by_conjugate(r).reversed().store(self.back.as_mut_ptr().add(j));
            let (va, vb) = if self.sine { (va.sub(ve), vb.sub(vc)) } else { (va.add(ve), vb.add(vc)) };
            va.store(a.add(i));
            vb.reversed().store(b.add(j));
        }
    }
}

impl<T: Scalar> Work<T> for Fold<'_, T> {
    #[inline(always)]
    unsafe fn run<P: Pairs<T>>(mut self) {
        let h = self.front.len();
        assert!(self.line.iter().all(|q| q.len() == h) && self.back.len() == h && self.rotation.len() >= h);
        let whole = h - h % P::LEN;
        // SAFETY: the caller's, and all lengths have just been looked at.
        unsafe {
            for i in (0..whole).step_by(P::LEN) {
                self.step::<P>(i);
            }
            for i in whole..h {
                self.step::<Complex<T>>(i);
            }
        }
    }
}

/// The way back.
struct Unfold<'a, T> {
    line: [&'a mut [Complex<T>]; 4],
    front: &'a [Complex<T>],
    back: &'a [Complex<T>],
    rotation: &'a [Complex<T>],
    sine: bool,
}

impl<T: Scalar> Unfold<'_, T> {
    /// Processes elements `i ..` of one register, as [`Fold::step`] does.
    ///
    /// # Safety
    /// The same.
    #[inline(always)]
    unsafe fn step<P: Pairs<T>>(&mut self, i: usize) {
        let j = self.front.len() - i - P::LEN;
        let [a, b, c, e] = self.line.each_mut().map(|q| q.as_mut_ptr());
        // SAFETY: the caller's; all are as long as `front`.
        unsafe {
            let r = P::load(self.rotation.as_ptr().add(i));
            let p = P::load(self.front.as_ptr().add(i)).by(r);
            let q = P::load(self.back.as_ptr().add(j)).reversed().by_conjugate(r);
            let (sum, difference) = (p.add(q), p.sub(q).times_i());
            let (va, vb) = (P::load(a.add(i)), P::load(b.add(j)).reversed());
            let [va, vb, vc, ve] = if self.sine {
                [difference.add(va), sum.add(vb), sum.sub(vb), difference.sub(va)]
            } else {
                [va.add(sum), vb.add(difference), vb.sub(difference), va.sub(sum)]
            };
            va.store(a.add(i));
            vb.reversed().store(b.add(j));
            vc.store(c.add(i));
            ve.reversed().store(e.add(j));
        }
    }
}

impl<T: Scalar> Work<T> for Unfold<'_, T> {
    #[inline(always)]
    unsafe fn run<P: Pairs<T>>(mut self) {
        let h = self.front.len();
        assert!(self.line.iter().all(|q| q.len() == h) && self.back.len() == h && self.rotation.len() >= h);
        let whole = h - h % P::LEN;
        // SAFETY: the caller's, and all lengths have just been looked at.
        unsafe {
            for i in (0..whole).step_by(P::LEN) {
                self.step::<P>(i);
            }
            for i in whole..h {
                self.step::<Complex<T>>(i);
            }
        }
    }
}

/// Distance 0 is the Neumann end of the quarter wave: the last index of a mirrored line.
#[inline(always)]
pub(super) fn rotate_in<T: Scalar>(y: &[Complex<T>], mirrored: bool, w: &mut [Complex<T>], rotation: &[Complex<T>], scale: T) {
    let m = w.len();
    let at = |d: usize| if mirrored { y[m - 1 - d] } else { y[d] };
    w[0] = at(0).scale(scale * T::HALF);
    for d in 1..=m / 2 {
        (w[d], w[m - d]) = rotate_pair(at(d), at(m - d), rotation[d].scale(scale));
    }
}

#[inline(always)]
pub(super) fn rotate_out<T: Scalar>(v: &[Complex<T>], y: &mut [Complex<T>], mirrored: bool, rotation: &[Complex<T>]) {
    let m = v.len();
    let place = |d: usize| if mirrored { m - 1 - d } else { d };
    y[place(0)] = v[0];
    for d in 1..=m / 2 {
        (y[place(d)], y[place(m - d)]) = rotate_pair_back(v[d], v[m - d], rotation[d]);
    }
}

/// The four stretches of a line `z` of nodes `0 ..= 2m` that mirror each other about `m / 2` and `m`, each for
/// `d = 1 .. (m + 1) / 2`: `z[d]`, `z[m - d]` (backwards), `z[m + d]`, `z[2m - d]` (backwards). `first` is the node of `z[0]`.
#[inline(always)]
fn quarters<T>(z: &mut [T], m: usize, first: usize) -> [&mut [T]; 4] {
    let h = m.div_ceil(2) - 1;
    let (left, right) = z.split_at_mut(m + 1 - first);
    let a = 1 - first;
    let (front, back) = left[a..a + m - 1].split_at_mut(h);
    let skip = back.len() - h;
    let (low, high) = right[..m - 1].split_at_mut(h);
    let gap = high.len() - h;
    [front, &mut back[skip..], low, &mut high[gap..]]
}

/// One split of a sine line of nodes `1 .. 2m`: sums about the middle, rotated, into `w`; differences stay in `1 .. m`.
#[inline(always)]
pub(super) fn fold_sine<T: Scalar>(isa: Isa, z: &mut [Complex<T>], w: &mut [Complex<T>], rotation: &[Complex<T>], scale: T) {
    let m = w.len();
    w[0] = z[m - 1].scale(scale);
    if m.is_multiple_of(2) {
        let (d, z) = (m / 2, &mut *z);
        let (lower, upper) = (z[d - 1], z[m + d - 1]);
        let sum = lower + upper;
        w[d] = rotate_pair(sum, sum, rotation[d].scale(scale)).0;
        z[d - 1] = lower - upper;
    }
    let line = quarters(z, m, 1);
    let h = line[0].len();
    let (front, back) = w[1..].split_at_mut(h);
    let back = &mut back[m - 1 - 2 * h..];
    run(isa, Fold { line, front, back, rotation: &rotation[1..], scale, sine: true });
}

#[inline(always)]
pub(super) fn unfold_sine<T: Scalar>(isa: Isa, v: &[Complex<T>], z: &mut [Complex<T>], rotation: &[Complex<T>]) {
    let m = v.len();
    z[m - 1] = v[0];
    if m.is_multiple_of(2) {
        let d = m / 2;
        let (even, odd) = (z[d - 1], rotate_pair_back(v[d], v[d], rotation[d]).0);
        z[d - 1] = odd + even;
        z[m + d - 1] = odd - even;
    }
    let line = quarters(z, m, 1);
    let h = line[0].len();
    run(isa, Unfold { line, front: &v[1..=h], back: &v[m - h..], rotation: &rotation[1..], sine: true });
}

/// One split of a cosine line of nodes `0 ..= 2m`: differences about the middle, rotated, into `w`; sums stay in `0 ..= m`.
#[inline(always)]
pub(super) fn fold_cosine<T: Scalar>(isa: Isa, z: &mut [Complex<T>], w: &mut [Complex<T>], rotation: &[Complex<T>], scale: T) {
    let m = w.len();
    let (lower, upper) = (z[0], z[2 * m]);
    w[0] = (lower - upper).scale(scale * T::HALF);
    z[0] = lower + upper;
    z[m] = z[m].scale(T::TWO);
    if m.is_multiple_of(2) {
        let d = m / 2;
        let (lower, upper) = (z[d], z[m + d]);
        let difference = lower - upper;
        w[d] = rotate_pair(difference, difference, rotation[d].scale(scale)).0;
        z[d] = lower + upper;
    }
    let line = quarters(z, m, 0);
    let h = line[0].len();
    let (front, back) = w[1..].split_at_mut(h);
    let back = &mut back[m - 1 - 2 * h..];
    run(isa, Fold { line, front, back, rotation: &rotation[1..], scale, sine: false });
}

#[inline(always)]
pub(super) fn unfold_cosine<T: Scalar>(isa: Isa, v: &[Complex<T>], z: &mut [Complex<T>], rotation: &[Complex<T>]) {
    let m = v.len();
    let even = z[0];
    z[0] = even + v[0];
    z[2 * m] = even - v[0];
    if m.is_multiple_of(2) {
        let d = m / 2;
        let (even, odd) = (z[d], rotate_pair_back(v[d], v[d], rotation[d]).0);
        z[d] = even + odd;
        z[m + d] = even - odd;
    }
    let line = quarters(z, m, 0);
    let h = line[0].len();
    run(isa, Unfold { line, front: &v[1..=h], back: &v[m - h..], rotation: &rotation[1..], sine: false });
}

/// `0, z_1 .. z_{n-1}, 0, -z_{n-1} .. -z_1`.
#[inline(always)]
pub(super) fn extend_sine<T: Scalar>(z: &[Complex<T>], e: &mut [Complex<T>]) {
    let n = e.len() / 2;
    let zero = Complex::new(T::ZERO, T::ZERO);
    (e[0], e[n]) = (zero, zero);
    for j in 1..n {
        e[j] = z[j - 1];
        e[2 * n - j] = -z[j - 1];
    }
}

/// `z_0 .. z_n, z_{n-1} .. z_1`.
#[inline(always)]
pub(super) fn extend_cosine<T: Scalar>(z: &[Complex<T>], e: &mut [Complex<T>]) {
    let n = e.len() / 2;
    (e[0], e[n]) = (z[0], z[n]);
    for j in 1..n {
        e[j] = z[j];
        e[2 * n - j] = z[j];
    }
}
