//! The split of a sine or cosine line by an odd factor `p` (transform.rs): with `m = 2 n / p`, the odd or even extension `e`
//! of the line and `a = 2 pi c / p`, the DFT of group `c` is fed, for the indices `d` and `m - d` at once, with
//!
//! ```text
//! U = sum_s e_{d + m s} cos(a s)     V = sum_s e_{d + m s} sin(a s)     w_d ~ (U - i V) e^{-i pi d c / n}
//! ```
//!
//! and what is left, the multiples of `p`, is the line `sum_s e_{d + m s}`. Each value of a line belongs to one `d`, so
//! all of this works in place, and the way back likewise.

use rustfft::num_complex::Complex;

use super::fold::{rotate_pair, rotate_pair_back};
use super::transform::{Scalar, Split};

/// The line as its extension sees it: `(index in the slice, whether with the sign changed)`; `None` is a zero.
#[inline(always)]
fn place(j: usize, n: usize, sine: bool) -> Option<(usize, bool)> {
    let (j, beyond) = if j > n { (2 * n - j, true) } else { (j, false) };
    match sine {
        true if j == 0 || j == n => None,
        true => Some((j - 1, beyond)),
        false => Some((j, false)),
    }
}

/// One split of nodes `1 .. n` (sine) or `0 ..= n` of a line: the input of the DFTs into `w`, the rest into the first
/// `n / p` intervals of `z`.
#[inline(always)]
pub(super) fn fold<T: Scalar>(z: &mut [Complex<T>], sine: bool, w: &mut [Complex<T>], split: &Split, table: &[Complex<T>], scale: T) {
    match split.radix {
        3 => fold_by::<T, 3>(z, sine, w, split, table, scale),
        5 => fold_by::<T, 5>(z, sine, w, split, table, scale),
        7 => fold_by::<T, 7>(z, sine, w, split, table, scale),
        11 => fold_by::<T, 11>(z, sine, w, split, table, scale),
        _ => fold_by::<T, 13>(z, sine, w, split, table, scale),
    }
}

/// The way back: the DFTs `v` and the rest, in the first intervals of `z`, put together in `z`.
#[inline(always)]
pub(super) fn unfold<T: Scalar>(v: &[Complex<T>], z: &mut [Complex<T>], sine: bool, split: &Split, table: &[Complex<T>]) {
    match split.radix {
        3 => unfold_by::<T, 3>(v, z, sine, split, table),
        5 => unfold_by::<T, 5>(v, z, sine, split, table),
        7 => unfold_by::<T, 7>(v, z, sine, split, table),
        11 => unfold_by::<T, 11>(v, z, sine, split, table),
        _ => unfold_by::<T, 13>(v, z, sine, split, table),
    }
}

#[inline(always)]
fn fold_by<T: Scalar, const P: usize>(
    z: &mut [Complex<T>],
    sine: bool,
    w: &mut [Complex<T>],
    split: &Split,
    table: &[Complex<T>],
    scale: T,
) {
    let (n, m, groups) = (split.intervals, split.points, split.groups);
    let half = m / 2;
    let (turns, circle) = table.split_at(groups * (half + 1));
    let zero = Complex::new(T::ZERO, T::ZERO);
    for d in 0..=half {
        let mut e = [zero; P];
        for (s, e) in e.iter_mut().enumerate() {
            if let Some((at, beyond)) = place(d + m * s, n, sine) {
                *e = if beyond { -z[at] } else { z[at] };
            }
        }
        // cos is even in s and sin odd: the values are taken in pairs.
        let (mut plus, mut minus) = ([zero; P], [zero; P]);
        let mut rest = e[0];
        for s in 1..=P / 2 {
            (plus[s], minus[s]) = (e[s] + e[P - s], e[s] - e[P - s]);
            rest = rest + plus[s];
        }
        for c in 1..=P / 2 {
            let (mut u, mut v) = (e[0], zero);
            for s in 1..=P / 2 {
                let turn = circle[s * c % P];
                u = u + plus[s].scale(turn.re);
                v = v + minus[s].scale(turn.im);
            }
            let (y, mirror) = if sine { (v, u) } else { (u, -v) };
            let (near, far) = rotate_pair(y, mirror, turns[(c - 1) * (half + 1) + d].scale(scale));
            w[(c - 1) * m + d] = near;
            if d > 0 && d < half {
                w[c * m - d] = far;
            }
        }
        if let Some((at, _)) = place(d, half, sine) {
            z[at] = rest;
        }
    }
}

#[inline(always)]
fn unfold_by<T: Scalar, const P: usize>(v: &[Complex<T>], z: &mut [Complex<T>], sine: bool, split: &Split, table: &[Complex<T>]) {
    let (n, m, groups) = (split.intervals, split.points, split.groups);
    let half = m / 2;
    let (turns, circle) = table.split_at(groups * (half + 1));
    let zero = Complex::new(T::ZERO, T::ZERO);
    for d in 0..=half {
        let rest = place(d, half, sine).map_or(zero, |(at, _)| z[at]);
        let (mut even, mut odd) = ([rest; P], [zero; P]);
        for c in 1..=P / 2 {
            let (near, far) = (v[(c - 1) * m + d], v[(c - 1) * m + (m - d) % m]);
            let (y, mirror) = rotate_pair_back(near, far, turns[(c - 1) * (half + 1) + d]);
            let (cosine, sines) = if sine { (mirror, y) } else { (y, -mirror) };
            even[0] = even[0] + cosine;
            for s in 1..=P / 2 {
                let turn = circle[s * c % P];
                even[s] = even[s] + cosine.scale(turn.re);
                odd[s] = odd[s] + sines.scale(turn.im);
            }
        }
        for s in 0..P {
            let value = if s <= P / 2 { even[s] + odd[s] } else { even[P - s] - odd[P - s] };
            // At the ends of a stretch both images of a node are met; the first one is it.
            let own = d + m * s <= n || (d > 0 && d < half);
            if let Some((at, beyond)) = place(d + m * s, n, sine).filter(|_| own) {
                z[at] = if beyond { -value } else { value };
            }
        }
    }
}
