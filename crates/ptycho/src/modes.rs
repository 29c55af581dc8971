//! Modes: made orthogonal, ordered by power.
//!
//! The modes of a probe are defined up to a unitary change of basis. The eigenvectors of their Gram matrix `G_pq = <P_p, P_q>`,
//! Hermitian, give the basis in which they are orthogonal and the first holds as much power as any single mode can (Thibault and
//! Menzel, Nature 494 (2013) 68).

use num_complex::Complex;
use zellige_engine::parallel::{indices, map};

type C = Complex<f64>;

/// Pixels whose products are summed at once, by one thread of a GPU. `PRODUCTS` of mix.cu.
pub(crate) const BLOCK: usize = 256;

/// Takes the parts along `others` out of `wave` and brings it to norm 1.
pub(crate) fn orthonormal(wave: &mut [C], others: &[Vec<C>]) {
    // Twice is enough (Kahan; Parlett, The Symmetric Eigenvalue Problem, 6.9).
    for _ in 0..2 {
        for other in others {
            let norm: f64 = other.iter().map(C::norm_sqr).sum();
            let dot: C = other.iter().zip(&*wave).map(|(o, w)| o.conj() * w).sum();
            if norm > 0.0 {
                wave.iter_mut().zip(other).for_each(|(w, o)| *w -= o * (dot / norm));
            }
        }
    }
    let norm = wave.iter().map(C::norm_sqr).sum::<f64>().sqrt();
    if norm > 0.0 {
        for w in wave {
            *w /= norm;
        }
    }
}

/// Eigenvalues, largest first, and the eigenvectors as rows of a Hermitian matrix `[n][n]`, by Jacobi's rotations.
pub fn eigen(matrix: &[C], n: usize) -> (Vec<f64>, Vec<C>) {
    let mut a = matrix.to_vec();
    let mut v = vec![C::new(0.0, 0.0); n * n];
    for i in 0..n {
        v[i * n + i] = C::new(1.0, 0.0);
    }
    let scale: f64 = a.iter().map(C::norm_sqr).sum::<f64>().sqrt();
    for _ in 0..60 {
        let off: f64 =
            (0..n).flat_map(|p| (0..n).filter(move |q| *q != p).map(move |q| (p, q))).map(|(p, q)| a[p * n + q].norm_sqr()).sum();
        // Rounding of the rotations.
        if off.sqrt() <= 1e-15 * scale {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                rotate(&mut a, &mut v, n, p, q);
            }
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|i, j| a[j * n + j].re.total_cmp(&a[i * n + i].re));
    let rows = order.iter().flat_map(|i| (0..n).map(|k| v[k * n + *i]).collect::<Vec<_>>()).collect();
    (order.iter().map(|i| a[i * n + i].re).collect(), rows)
}

/// Annihilates element (p, q): `A <- J* A J`, `V <- V J`.
fn rotate(a: &mut [C], v: &mut [C], n: usize, p: usize, q: usize) {
    let x = a[p * n + q];
    if x.norm_sqr() == 0.0 {
        return;
    }
    let phase = x / x.norm();
    let tau = (a[q * n + q].re - a[p * n + p].re) / (2.0 * x.norm());
    let t = if tau >= 0.0 { 1.0 / (tau + (1.0 + tau * tau).sqrt()) } else { -1.0 / (-tau + (1.0 + tau * tau).sqrt()) };
    let c = 1.0 / (1.0 + t * t).sqrt();
    let s = phase * (t * c);
    for k in 0..n {
        let (x, y) = (a[k * n + p], a[k * n + q]);
        (a[k * n + p], a[k * n + q]) = (x * c - y * s.conj(), x * s + y * c);
        let (x, y) = (v[k * n + p], v[k * n + q]);
        (v[k * n + p], v[k * n + q]) = (x * c - y * s.conj(), x * s + y * c);
    }
    for k in 0..n {
        let (x, y) = (a[p * n + k], a[q * n + k]);
        (a[p * n + k], a[q * n + k]) = (x * c - y * s, x * s.conj() + y * c);
    }
}

/// The change of basis `[modes][modes]` that makes the modes `[modes][pixels]` orthogonal, the strongest first, and their powers.
pub fn orthogonal(waves: &[C], modes: usize) -> (Vec<C>, Vec<f64>) {
    basis(&products(waves, modes), modes)
}

/// Orthogonalises modes, given their [`products`].
pub fn basis(products: &[C], modes: usize) -> (Vec<C>, Vec<f64>) {
    // With G_pq = <P_p, P_q> the modes sum_q u_q P_q and sum_q v_q P_q have the product u* G v.
    let (powers, rows) = eigen(products, modes);
    (rows, powers)
}

/// Gram matrix `[modes][modes]` of modes `[modes][pixels]`: `G_pq = <P_p, P_q>`.
pub fn products(waves: &[C], modes: usize) -> Vec<C> {
    let pixels = waves.len() / modes.max(1);
    let dot = |a: &[C], b: &[C]| -> C { a.iter().zip(b).map(|(a, b)| a.conj() * b).sum() };
    // Blocks of pixels on all cores, their sums in order.
    let part = |first: usize| -> Vec<C> {
        let wave = |p: usize| &waves[p * pixels + first..p * pixels + (first + BLOCK).min(pixels)];
        let upper = (0..modes).flat_map(|p| (p..modes).map(move |q| (p, q)));
        upper.map(|(p, q)| dot(wave(p), wave(q))).collect()
    };
    let parts = map(indices(pixels.div_ceil(BLOCK)), |_, block| part(block * BLOCK));
    summed(&parts.concat(), modes)
}

/// Sums the upper halves of the products of blocks of pixels, `[blocks][p <= q]`, in the order of the blocks.
pub(crate) fn summed(parts: &[C], modes: usize) -> Vec<C> {
    let mut gram = vec![C::new(0.0, 0.0); modes * modes];
    for (i, (p, q)) in (0..modes).flat_map(|p| (p..modes).map(move |q| (p, q))).enumerate() {
        let sum: C = parts.iter().skip(i).step_by(modes * (modes + 1) / 2).sum();
        (gram[p * modes + q], gram[q * modes + p]) = (sum, sum.conj());
    }
    gram
}

/// `new_p = sum_q basis[p][q] old_q` for modes `[modes][pixels]`.
pub fn change(basis: &[C], waves: &[C], modes: usize) -> Vec<C> {
    let pixels = waves.len() / modes.max(1);
    let mut out = vec![C::new(0.0, 0.0); waves.len()];
    for p in 0..modes {
        for q in 0..modes {
            let factor = basis[p * modes + q];
            let (to, from) = (&mut out[p * pixels..(p + 1) * pixels], &waves[q * pixels..(q + 1) * pixels]);
            to.iter_mut().zip(from).for_each(|(to, from)| *to += factor * from);
        }
    }
    out
}

/// Fidelity of two mixed states of modes `[..][pixels]`, 0 to 1: `(Tr sqrt(sqrt(A) B sqrt(A)))^2 / (Tr A Tr B)` of their mutual
/// intensities `A = sum |a_p><a_p|` and `B` (Uhlmann, Rep. Math. Phys. 9 (1976) 273; Jozsa, J. Mod. Opt. 41 (1994) 2315). The
/// root's trace is the sum of the singular values of `<a_p, b_q>`, whatever the basis of the modes.
pub fn fidelity(a: &[C], b: &[C], pixels: usize) -> f64 {
    let dot = |a: &[C], b: &[C]| -> C { a.iter().zip(b).map(|(a, b)| a.conj() * b).sum() };
    let [n, m] = [a, b].map(|waves| waves.len() / pixels.max(1));
    let mode = |of: &[C], p: usize| of[p * pixels..(p + 1) * pixels].to_vec();
    let cross: Vec<C> = (0..n * m).map(|i| dot(&mode(a, i / m), &mode(b, i % m))).collect();
    // Squares of the singular values: eigenvalues of the product with its adjoint.
    let square: Vec<C> = (0..n * n).map(|i| (0..m).map(|q| cross[i / n * m + q] * cross[i % n * m + q].conj()).sum()).collect();
    let (squares, _) = eigen(&square, n);
    let root: f64 = squares.iter().map(|s| s.max(0.0).sqrt()).sum();
    let powers: f64 = [a, b].iter().map(|waves| waves.iter().map(C::norm_sqr).sum::<f64>()).product();
    root * root / powers.max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use zellige_engine::rng::Philox;

    use super::*;

    #[test]
    fn modes_become_orthogonal_and_their_intensity_stays() {
        // Within a block, and beyond.
        [50, BLOCK + 7].into_iter().for_each(become_orthogonal);
    }

    fn become_orthogonal(pixels: usize) {
        let modes = 4;
        let philox = Philox::new(1, 2);
        let waves: Vec<C> = (0..modes * pixels).map(|i| philox.normals(0, i as u64)).map(|[a, b]| C::new(a, b)).collect();
        let (basis, powers) = orthogonal(&waves, modes);
        let new = change(&basis, &waves, modes);
        let wave = |p: usize| &new[p * pixels..(p + 1) * pixels];
        for p in 0..modes {
            for q in 0..modes {
                let dot: C = wave(p).iter().zip(wave(q)).map(|(a, b)| a.conj() * b).sum();
                let expected = if p == q { powers[p] } else { 0.0 };
                // Rounding of about 200 products of size 1, and of as many times more.
                assert!((dot - expected).norm() < 1e-11 * (pixels as f64 / 50.0), "{p} {q}: {dot}, {expected}");
            }
        }
        assert!(powers.windows(2).all(|w| w[0] >= w[1]), "{powers:?}");
        for i in 0..pixels {
            let sum = |waves: &[C]| (0..modes).map(|p| waves[p * pixels + i].norm_sqr()).sum::<f64>();
            assert!((sum(&waves) - sum(&new)).abs() < 1e-12);
        }
    }

    /// Against states whose fidelity is known: the basis does not matter, modes in common give the overlap of their powers, others
    /// none.
    #[test]
    fn mixed_states_are_compared_whatever_their_basis() {
        let (modes, pixels) = (4, 60);
        let philox = Philox::new(1, 3);
        let raw: Vec<C> = (0..modes * pixels).map(|i| philox.normals(0, i as u64)).map(|[a, b]| C::new(a, b)).collect();
        let mut basis: Vec<Vec<C>> = Vec::new();
        for wave in raw.chunks_exact(pixels) {
            let mut wave = wave.to_vec();
            orthonormal(&mut wave, &basis);
            basis.push(wave);
        }
        let state = |powers: &[f64]| powers.iter().zip(&basis).flat_map(|(p, b)| b.iter().map(move |v| v * p.sqrt())).collect::<Vec<C>>();
        let truth = state(&[0.58, 0.19, 0.19, 0.04]);
        let (turn, _) = orthogonal(&raw, modes);
        let turned = change(&turn, &truth, modes);
        assert!((fidelity(&turned, &truth, pixels) - 1.0).abs() < 1e-12);
        // Powers of the same modes: the square of the sum of the roots of their products.
        let other = [0.85, 0.07, 0.06, 0.02];
        let expected = [0.58_f64, 0.19, 0.19, 0.04].iter().zip(other).map(|(p, q)| (p * q).sqrt()).sum::<f64>().powi(2);
        assert!((fidelity(&state(&other), &turned, pixels) - expected).abs() < 1e-12);
        assert!((fidelity(&basis[1], &turned, pixels) - 0.19).abs() < 1e-12, "one mode of four has its power");
        assert!(fidelity(&basis[3], &state(&[0.5, 0.5]), pixels) < 1e-24);
    }

    #[test]
    fn one_mode_and_none_at_all_are_fine() {
        assert_eq!(orthogonal(&[C::new(0.0, 0.0); 3], 1).1, [0.0]);
        assert_eq!(orthogonal(&[C::new(0.0, 2.0)], 1).1, [4.0]);
    }
}
