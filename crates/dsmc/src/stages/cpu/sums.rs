//! Sums of the samples of a tile: of the last few in single precision, which are added to those before in double precision after a
//! fixed number of samples. So a sample reads and writes half as many bytes.

use crate::stages::samples_at_a_time;

/// The sums of a tile, `[slot of the cell][species][kept]`; empty until the first sample.
#[derive(Debug)]
pub(super) struct Sums {
    recent: Vec<f32>,
    old: Vec<f64>,
    /// Samples in `recent`, counted from `begin`, which differs from tile to tile: so the work is spread over the steps.
    held: u32,
    begin: u32,
    most: u32,
}

impl Sums {
    /// Of tile `number`, with so many particles expected in a cell.
    pub(super) fn new(number: usize, per_cell: f64) -> Self {
        let most = samples_at_a_time(per_cell);
        let begin = number as u32 % most;
        Self { recent: Vec::new(), old: Vec::new(), held: begin, begin, most }
    }

    /// Those of the last samples, `n` of them, to be added to by one sample.
    #[inline(always)]
    pub(super) fn open(&mut self, n: usize) -> &mut [f32] {
        if self.recent.len() < n {
            self.reserve(n);
        }
        &mut self.recent[..n]
    }

    fn reserve(&mut self, n: usize) {
        self.recent.resize(n, 0.0);
        self.old.resize(n, 0.0);
    }

    /// After a sample.
    #[inline(always)]
    pub(super) fn close(&mut self) {
        self.held += 1;
        if self.held == self.most {
            self.held = 0;
            let n = self.old.len();
            let (old, recent) = (&mut self.old[..n], &mut self.recent[..n]);
            for i in 0..n {
                old[i] += f64::from(recent[i]);
                recent[i] = 0.0;
            }
        }
    }

    /// True if there are any.
    pub(super) fn is_empty(&self) -> bool {
        self.old.is_empty()
    }

    /// Sum of all samples at an index.
    pub(super) fn all(&self, i: usize) -> f64 {
        self.old[i] + f64::from(self.recent[i])
    }

    /// Sum in double precision at an index.
    pub(super) fn old(&self, i: usize) -> f64 {
        self.old[i]
    }

    /// All `n` of them.
    pub(super) fn old_mut(&mut self, n: usize) -> &mut [f64] {
        if self.old.len() < n {
            self.reserve(n);
        }
        &mut self.old
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.recent.fill(0.0);
        self.old.fill(0.0);
        self.held = self.begin;
    }

    /// State of a continuation besides [`Sums::old_mut`]: the number of samples, and their sums.
    pub(super) fn numbers(&self) -> impl Iterator<Item = f64> + '_ {
        std::iter::once(f64::from(self.held)).chain(self.recent.iter().map(|x| f64::from(*x)))
    }

    /// Takes it back: `n` sums.
    pub(super) fn set_numbers(&mut self, numbers: &mut impl Iterator<Item = f64>, n: usize) {
        self.held = numbers.next().unwrap_or(0.0) as u32 % self.most;
        self.reserve(n);
        for (to, from) in self.recent.iter_mut().zip(numbers) {
            *to = from as f32;
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        4 * self.recent.capacity() + 8 * self.old.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_kept_whenever_they_are_looked_at_and_go_on_to_the_bit() {
        for (number, per_cell) in [(0, 10.0), (5, 10.0), (7, 200.0), (3, 1e6)] {
            let mut sums = Sums::new(number, per_cell);
            let sample = |sums: &mut Sums, k: usize| {
                for (i, s) in sums.open(3).iter_mut().enumerate() {
                    *s += 1.37 * (k * (i + 1)) as f32;
                }
                sums.close();
            };
            (0..37).for_each(|k| sample(&mut sums, k));
            let kept: Vec<f64> = sums.numbers().collect();
            let old = sums.old_mut(3).to_vec();
            let mut other = Sums::new(number, per_cell);
            other.set_numbers(&mut kept.into_iter(), 3);
            other.old_mut(3).copy_from_slice(&old);
            (37..80).for_each(|k| sample(&mut sums, k));
            (37..80).for_each(|k| sample(&mut other, k));
            for i in 0..3 {
                assert_eq!(sums.all(i).to_bits(), other.all(i).to_bits());
                let exact = 1.37 * (79 * 80 / 2 * (i + 1)) as f64;
                // Thirty-two additions in a row.
                assert!((sums.all(i) / exact - 1.0).abs() < 32.0 * 6e-8, "{}", sums.all(i) / exact);
            }
            sums.clear();
            assert_eq!(sums.all(1), 0.0);
        }
    }
}
