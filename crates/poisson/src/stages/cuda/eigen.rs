//! The modes of one axis' operator, whatever its ends and last cells: `-A` is symmetric under the control volumes, so that
//! `V^1/2 (-A) V^-1/2` is symmetric and tridiagonal, on a periodic axis but for its corners.
//!
//! Source: the implicit QL method, Golub and Van Loan, Matrix Computations (2013), section 8.3.

use crate::grid::Axis;

/// Steps of the QL method for one eigenvalue before it counts as failed; two are usual.
const MOST_STEPS: usize = 60;

/// Eigenvalues and modes over all nodes of an axis of `n` nodes. Mode `p` has a number only where node `p` is an unknown;
/// rows and columns of other numbers are zero.
pub(super) struct Modes {
    /// Eigenvalues of `-A`, `n` of them, not negative; 1 where there is no mode. The constant mode's is exactly 0.
    pub values: Vec<f64>,
    /// `[p n + i]`: share of node `i` in mode `p`.
    pub forward: Vec<f64>,
    /// `[i n + p]`: mode `p` at node `i`; the inverse of `forward` over the unknowns.
    pub backward: Vec<f64>,
}

/// A symmetric tridiagonal matrix whose basis vectors are nodes or pairs of them.
struct Part {
    diagonal: Vec<f64>,
    /// `[i]` couples `i` and `i + 1`.
    beside: Vec<f64>,
    /// Basis vector `i` as nodes with their shares.
    basis: Vec<Vec<(usize, f64)>>,
}

impl Modes {
    pub(super) fn new(axis: &Axis) -> Self {
        let n = axis.nodes;
        let unknowns = axis.unknowns();
        let mut modes = Self { values: vec![1.0; n], forward: vec![0.0; n * n], backward: vec![0.0; n * n] };
        let root: Vec<f64> = (0..n).map(|i| axis.volume(i).sqrt()).collect();
        let mut p = unknowns.start;
        for part in parts(axis) {
            let count = part.diagonal.len();
            let (values, vectors) = eigen(part.diagonal, part.beside);
            for (value, vector) in values.iter().zip(vectors.chunks_exact(count.max(1))) {
                modes.values[p] = value.max(0.0);
                for (share, nodes) in vector.iter().zip(&part.basis) {
                    for (node, weight) in nodes {
                        modes.forward[p * n + node] = share * weight * root[*node];
                        modes.backward[node * n + p] = share * weight / root[*node];
                    }
                }
                p += 1;
            }
        }
        // Without a value on either side constants are in the null space, and not only to rounding.
        if unknowns.len() == n {
            let least = (0..n).min_by(|a, b| modes.values[*a].total_cmp(&modes.values[*b])).unwrap_or(0);
            modes.values[least] = 0.0;
        }
        modes
    }
}

/// The axis' matrix; on a periodic axis, which is its own mirror image, its even and its odd part.
fn parts(axis: &Axis) -> Vec<Part> {
    let unknowns = axis.unknowns();
    let sum = |i: usize| axis.weights(i).0 + axis.weights(i).1;
    let couple = |i: usize, j: usize| -(axis.weights(i).1 * axis.weights(j).0).sqrt();
    if !axis.periodic() {
        return vec![Part {
            diagonal: unknowns.clone().map(sum).collect(),
            beside: unknowns.clone().skip(1).map(|i| couple(i - 1, i)).collect(),
            basis: unknowns.map(|i| vec![(i, 1.0)]).collect(),
        }];
    }
    let (n, half) = (axis.nodes, 0.5_f64.sqrt());
    let pairs = n / 2;
    let part = |sign: f64| {
        let mut diagonal: Vec<f64> = (0..pairs).map(sum).collect();
        let mut beside: Vec<f64> = (1..pairs).map(|i| couple(i - 1, i)).collect();
        let mut basis: Vec<_> = (0..pairs).map(|i| vec![(i, half), (n - 1 - i, sign * half)]).collect();
        // A pair whose two nodes touch: across the seam, and in the middle.
        diagonal[0] += sign * couple(n - 1, 0);
        if n.is_multiple_of(2) {
            diagonal[pairs - 1] += sign * couple(pairs - 1, pairs);
        } else if sign > 0.0 {
            diagonal.push(sum(pairs));
            beside.push(couple(pairs - 1, pairs) / half);
            basis.push(vec![(pairs, 1.0)]);
        }
        Part { diagonal, beside, basis }
    };
    vec![part(1.0), part(-1.0)]
}

/// Eigenvalues of a symmetric tridiagonal matrix and its eigenvectors, one a row.
fn eigen(mut d: Vec<f64>, mut e: Vec<f64>) -> (Vec<f64>, Vec<f64>) {
    let n = d.len();
    e.push(0.0);
    let mut z = vec![0.0; n * n];
    for i in 0..n {
        z[i * n + i] = 1.0;
    }
    for l in 0..n {
        for step in 0.. {
            assert!(step < MOST_STEPS, "the QL method does not end");
            let m = (l..n - 1).find(|m| e[*m].abs() <= f64::EPSILON * (d[*m].abs() + d[*m + 1].abs())).unwrap_or(n - 1);
            if m == l {
                break;
            }
            // Wilkinson's shift.
            let g = (d[l + 1] - d[l]) / (2.0 * e[l]);
            let mut g = d[m] - d[l] + e[l] / (g + g.hypot(1.0).copysign(g));
            let (mut s, mut c, mut shift) = (1.0, 1.0, 0.0);
            let mut split = false;
            for i in (l..m).rev() {
                let (f, b) = (s * e[i], c * e[i]);
                let r = f.hypot(g);
                e[i + 1] = r;
                if r == 0.0 {
                    d[i + 1] -= shift;
                    e[m] = 0.0;
                    split = true;
                    break;
                }
                (s, c) = (f / r, g / r);
                g = d[i + 1] - shift;
                let r = (d[i] - g) * s + 2.0 * c * b;
                shift = s * r;
                d[i + 1] = g + shift;
                g = c * r - b;
                let (low, high) = z.split_at_mut((i + 1) * n);
                for (a, b) in low[i * n..].iter_mut().zip(&mut high[..n]) {
                    (*a, *b) = (c * *a - s * *b, s * *a + c * *b);
                }
            }
            if !split {
                d[l] -= shift;
                e[l] = g;
                e[m] = 0.0;
            }
        }
    }
    (d, z)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Bc;

    fn axes() -> Vec<Axis> {
        let (d, n, p) = (Bc::Dirichlet, Bc::Neumann, Bc::Periodic);
        let mut all = vec![Axis::flat()];
        for (lo, hi) in [(d, d), (n, n), (d, n), (n, d), (p, p)] {
            for nodes in [3, 4, 5, 6, 9, 12, 33, 100, 129] {
                let mut axis = Axis::new(nodes, 2.0, lo, hi);
                all.push(axis.clone());
                while axis.can_coarsen() {
                    axis = axis.coarsen();
                    all.push(axis.clone());
                }
            }
        }
        all
    }

    #[test]
    fn modes_are_modes_and_their_inverse_is_one() {
        for axis in axes() {
            let (n, modes) = (axis.nodes, Modes::new(&axis));
            let largest = modes.values.iter().fold(1.0, |m: f64, v| m.max(*v));
            // Rounding of some n rotations; short last cells make unlike volumes.
            let limit = 1e-13 * n as f64;
            for p in axis.unknowns() {
                for i in axis.unknowns() {
                    let mode = |i: usize| modes.backward[i * n + p];
                    let (west, east) = axis.weights(i);
                    let applied = west * (mode((i + n - 1) % n) - mode(i)) + east * (mode((i + 1) % n) - mode(i));
                    let size = 1.0 / axis.volume(i).sqrt();
                    assert!((applied + modes.values[p] * mode(i)).abs() < limit * largest * size, "{axis:?} mode {p} node {i}");
                }
                for q in axis.unknowns() {
                    let product: f64 = (0..n).map(|i| modes.forward[p * n + i] * modes.backward[i * n + q]).sum();
                    assert!((product - f64::from(u8::from(p == q))).abs() < limit, "{axis:?} modes {p}, {q}");
                }
            }
            let held = axis.unknowns().len() < n;
            assert_eq!(modes.values.contains(&0.0), !held, "{axis:?}");
        }
    }
}
