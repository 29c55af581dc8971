//! Low-discrepancy sequences: Halton's points for positions and, in the dimensions that those leave, for momenta.

use crate::sampling::{normal_quantile, radical_inverse};

/// Fractions of a rotation from row to row, per component: roots of primes, so that rows together fill the momenta evenly (a
/// rotation as of Cranley and Patterson, SIAM J. Numer. Anal. 13 (1976) 904, by Weyl's sequence).
const ROTATIONS: [f64; 3] = [0.414_213_562_373_095_05, 0.732_050_807_568_877_3, 0.236_067_977_499_789_7];

/// Radical inverses in one base, the last digits from a table. The same bits as [`radical_inverse`].
pub(super) struct Halton {
    base: u64,
    low: Vec<f64>,
    /// Value of the first digit that is not in the table.
    digit: f64,
}

impl Halton {
    fn new(base: u64) -> Self {
        let (mut length, mut digit) = (1, 1.0 / base as f64);
        while length * base <= 1 << 13 {
            length *= base;
            digit /= base as f64;
        }
        Self { base, low: (0..length).map(|k| radical_inverse(base, k)).collect(), digit }
    }

    fn at(&self, k: u64) -> f64 {
        let length = self.low.len() as u64;
        let (mut value, mut digit, mut k) = (self.low[(k % length) as usize], self.digit, k / length);
        while k > 0 {
            value += (k % self.base) as f64 * digit;
            k /= self.base;
            digit /= self.base as f64;
        }
        value
    }
}

/// The sequences of momenta in a box of this many dimensions.
pub(super) fn bases(dimensions: usize) -> [Halton; 3] {
    (if dimensions == 1 { [3, 5, 7] } else { [5, 7, 11] }).map(Halton::new)
}

/// Position `k` of the `n` in a cell, from its lower corner: Halton's points, moved so that their mean is the centre where `n` is a
/// power of 2.
pub(super) fn position(n: usize, k: usize) -> [f64; 2] {
    [2, 3].map(|base| (radical_inverse(base, k as u64) + 0.5 / n as f64).fract())
}

/// Normal vector `k` of the `n` of a cell. A row of cells has one Halton sequence, in the dimensions that positions leave,
/// which each row turns by another angle: the box has as many different momenta as particles. The same in each cell it would
/// have `n`.
pub(super) fn normal(bases: &[Halton; 3], k: usize, n: usize, column: u64, row: usize) -> [f64; 3] {
    // The quantile has no bound at the ends.
    let least = 1e-3 / n as f64;
    std::array::from_fn(|c| {
        let p = (bases[c].at(column * n as u64 + k as u64) + row as f64 * ROTATIONS[c]).fract();
        normal_quantile(p.clamp(least, 1.0 - least))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_the_bits_of_the_digits() {
        for halton in bases(1).into_iter().chain(bases(2)) {
            let length = halton.low.len() as u64;
            for k in (0..3 * length).chain([u64::from(u32::MAX), 1 << 45]) {
                assert_eq!(halton.at(k), radical_inverse(halton.base, k), "{k} in base {}", halton.base);
            }
        }
    }
}
