//! The loops around the DFTs of a [`super::transform::Transform`]: splitting a line about its middle, the rotations of the
//! quarter-wave transform, and the odd and even extensions. All loops run over places `d` and `m - d` at once, in place.

use rustfft::num_complex::Complex;

use super::transform::Scalar;

#[inline(always)]
pub(super) fn times_i<T: Scalar>(z: Complex<T>) -> Complex<T> {
    Complex::new(-z.im, z.re)
}

/// The rotation before the DFT, of places `d` and `m - d`, with `c = e^{-i pi d / (2m)} / 2`.
#[inline(always)]
pub(super) fn turn_in<T: Scalar>(y: Complex<T>, y_mirror: Complex<T>, c: Complex<T>) -> (Complex<T>, Complex<T>) {
    let q = times_i(y_mirror);
    ((y + q) * c, (y - q) * c.conj())
}

/// The rotation after the DFT, of places `d` and `m - d`.
#[inline(always)]
pub(super) fn turn_out<T: Scalar>(v: Complex<T>, v_mirror: Complex<T>, c: Complex<T>) -> (Complex<T>, Complex<T>) {
    let (p, q) = (v * c, v_mirror * c.conj());
    (p + q, times_i(p - q))
}

/// Distance 0 is the Neumann end of the quarter wave: the last place of a mirrored line.
#[inline(always)]
pub(super) fn rotate_in<T: Scalar>(y: &[Complex<T>], mirrored: bool, w: &mut [Complex<T>], rotation: &[Complex<T>], scale: T) {
    let m = w.len();
    let at = |d: usize| if mirrored { y[m - 1 - d] } else { y[d] };
    w[0] = at(0).scale(scale * T::HALF);
    for d in 1..=m / 2 {
        (w[d], w[m - d]) = turn_in(at(d), at(m - d), rotation[d].scale(scale));
    }
}

#[inline(always)]
pub(super) fn rotate_out<T: Scalar>(v: &[Complex<T>], y: &mut [Complex<T>], mirrored: bool, rotation: &[Complex<T>]) {
    let m = v.len();
    let place = |d: usize| if mirrored { m - 1 - d } else { d };
    y[place(0)] = v[0];
    for d in 1..=m / 2 {
        (y[place(d)], y[place(m - d)]) = turn_out(v[d], v[m - d], rotation[d]);
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
pub(super) fn fold_sine<T: Scalar>(z: &mut [Complex<T>], w: &mut [Complex<T>], rotation: &[Complex<T>], scale: T) {
    let m = w.len();
    w[0] = z[m - 1].scale(scale);
    if m.is_multiple_of(2) {
        let (d, z) = (m / 2, &mut *z);
        let (lower, upper) = (z[d - 1], z[m + d - 1]);
        let sum = lower + upper;
        w[d] = turn_in(sum, sum, rotation[d].scale(scale)).0;
        z[d - 1] = lower - upper;
    }
    let [a, b, c, e] = quarters(z, m, 1);
    let h = a.len();
    let (front, back) = w[1..].split_at_mut(h);
    let back = &mut back[m - 1 - 2 * h..];
    for ((((((a, b), c), e), front), back), r) in
        a.iter_mut().zip(b.iter_mut().rev()).zip(c.iter()).zip(e.iter().rev()).zip(front).zip(back.iter_mut().rev()).zip(&rotation[1..])
    {
        (*front, *back) = turn_in(*b + *c, *a + *e, r.scale(scale));
        *a = *a - *e;
        *b = *b - *c;
    }
}

#[inline(always)]
pub(super) fn unfold_sine<T: Scalar>(v: &[Complex<T>], z: &mut [Complex<T>], rotation: &[Complex<T>]) {
    let m = v.len();
    z[m - 1] = v[0];
    if m.is_multiple_of(2) {
        let d = m / 2;
        let (even, odd) = (z[d - 1], turn_out(v[d], v[d], rotation[d]).0);
        z[d - 1] = odd + even;
        z[m + d - 1] = odd - even;
    }
    let [a, b, c, e] = quarters(z, m, 1);
    let h = a.len();
    let (front, back) = (&v[1..=h], &v[m - h..]);
    for ((((((a, b), c), e), front), back), r) in
        a.iter_mut().zip(b.iter_mut().rev()).zip(c).zip(e.iter_mut().rev()).zip(front).zip(back.iter().rev()).zip(&rotation[1..])
    {
        let (inner, outer) = turn_out(*front, *back, *r);
        (*b, *c) = (inner + *b, inner - *b);
        (*a, *e) = (outer + *a, outer - *a);
    }
}

/// One split of a cosine line of nodes `0 ..= 2m`: differences about the middle, rotated, into `w`; sums stay in `0 ..= m`.
#[inline(always)]
pub(super) fn fold_cosine<T: Scalar>(z: &mut [Complex<T>], w: &mut [Complex<T>], rotation: &[Complex<T>], scale: T) {
    let m = w.len();
    let (lower, upper) = (z[0], z[2 * m]);
    w[0] = (lower - upper).scale(scale * T::HALF);
    z[0] = lower + upper;
    z[m] = z[m].scale(T::TWO);
    if m.is_multiple_of(2) {
        let d = m / 2;
        let (lower, upper) = (z[d], z[m + d]);
        let difference = lower - upper;
        w[d] = turn_in(difference, difference, rotation[d].scale(scale)).0;
        z[d] = lower + upper;
    }
    let [a, b, c, e] = quarters(z, m, 0);
    let h = a.len();
    let (front, back) = w[1..].split_at_mut(h);
    let back = &mut back[m - 1 - 2 * h..];
    for ((((((a, b), c), e), front), back), r) in
        a.iter_mut().zip(b.iter_mut().rev()).zip(c.iter()).zip(e.iter().rev()).zip(front).zip(back.iter_mut().rev()).zip(&rotation[1..])
    {
        (*front, *back) = turn_in(*a - *e, *b - *c, r.scale(scale));
        *a = *a + *e;
        *b = *b + *c;
    }
}

#[inline(always)]
pub(super) fn unfold_cosine<T: Scalar>(v: &[Complex<T>], z: &mut [Complex<T>], rotation: &[Complex<T>]) {
    let m = v.len();
    let even = z[0];
    z[0] = even + v[0];
    z[2 * m] = even - v[0];
    if m.is_multiple_of(2) {
        let d = m / 2;
        let (even, odd) = (z[d], turn_out(v[d], v[d], rotation[d]).0);
        z[d] = even + odd;
        z[m + d] = even - odd;
    }
    let [a, b, c, e] = quarters(z, m, 0);
    let h = a.len();
    let (front, back) = (&v[1..=h], &v[m - h..]);
    for ((((((a, b), c), e), front), back), r) in
        a.iter_mut().zip(b.iter_mut().rev()).zip(c).zip(e.iter_mut().rev()).zip(front).zip(back.iter().rev()).zip(&rotation[1..])
    {
        let (outer, inner) = turn_out(*front, *back, *r);
        (*a, *e) = (*a + outer, *a - outer);
        (*b, *c) = (*b + inner, *b - inner);
    }
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
