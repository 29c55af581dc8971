//! Random positions and normal momenta for many particles at a time: pairs of particles that share draws.

use std::ops::Range;

use zellige_engine::real::Isa;
use zellige_engine::rng::Philox;

use super::lanes::{Work, on};
use crate::deviates::{direction, fraction, normal_length};
use crate::sampling::{normal_vector, random_offsets};

/// Keys of the random numbers of particles.
#[derive(Debug, Clone, Default)]
pub(super) struct Draws {
    /// Column of the cell, counted from the start of the run.
    pub(super) columns: Vec<u64>,
    /// First number of the cell's row.
    pub(super) rows: Vec<u64>,
    /// Number of the particle in its cell.
    pub(super) numbers: Vec<u32>,
    /// Cells of the batch.
    pub(super) cells: usize,
    /// First particles of which each cell has the same even number: one in each cell, then the second in each, and so on.
    pub(super) paired: usize,
}

impl Draws {
    pub(super) fn clear(&mut self) {
        self.columns.clear();
        self.rows.clear();
        self.numbers.clear();
        self.paired = 0;
    }

    pub(super) fn reserve(&mut self, n: usize) {
        self.columns.reserve(n);
        self.rows.reserve(n);
        self.numbers.reserve(n);
    }

    /// Runs of pairs whose first particles follow each other, for `some` pairs from pair `first` on.
    #[inline(always)]
    fn runs(&self, first: usize, some: usize) -> Runs {
        Runs { cells: self.cells, first, at: 0, some }
    }
}

/// Pairs that each loop takes together: their numbers stay in the first cache.
pub(super) const SOME: usize = 64;

/// Values of both particles of some pairs.
pub(super) type OfPairs = [[f64; SOME]; 2];

/// Offsets from the cell's centre of `some` pairs, by the column of each and the number of its draw.
#[inline(always)]
pub(super) fn offsets_of_pairs(philox: Philox, columns: &[u64; SOME], numbers: &[u64; SOME], some: usize, [s, t]: &mut [OfPairs; 2]) {
    let ([s, odd_s], [t, odd_t]) = (s, t);
    // Without it every place is checked, one by one.
    let some = some.min(SOME);
    for p in 0..some {
        let [a, b, c, d] = philox.draw(columns[p], numbers[p]);
        (s[p], t[p]) = (fraction(a) - 0.5, fraction(b) - 0.5);
        (odd_s[p], odd_t[p]) = (fraction(c) - 0.5, fraction(d) - 0.5);
    }
}

/// Normal vectors of `some` pairs, by component times `width` and moved by `shift`, by the column of each and the number of the
/// first of its two draws.
#[inline(always)]
pub(super) fn normals_of_pairs(
    philox: Philox,
    columns: &[u64; SOME],
    numbers: &[u64; SOME],
    some: usize,
    [width, shift]: [[f64; 3]; 2],
    u: &mut [OfPairs; 3],
) {
    let some = some.min(SOME);
    // Loops of their own for words, lengths and directions: each is one long chain, of which a CPU then has several under way.
    let ([mut even, mut odd, mut both], [mut even_at, mut odd_at, mut both_at]) = ([[0.0; SOME]; 3], [[0.0; SOME]; 3]);
    let [[even_x, odd_x], [even_y, odd_y], [even_z, odd_z]] = u;
    for p in 0..some {
        let [a, b, c, d] = philox.draw(columns[p], numbers[p]);
        (even[p], even_at[p], odd[p], odd_at[p]) = (fraction(a), fraction(b), fraction(c), fraction(d));
        let [a, b, _, _] = philox.draw(columns[p], numbers[p] + 1);
        (both[p], both_at[p]) = (fraction(a), fraction(b));
    }
    for p in 0..some {
        (even[p], odd[p], both[p]) = (normal_length(even[p]), normal_length(odd[p]), normal_length(both[p]));
    }
    for p in 0..some {
        let at = direction(even_at[p]);
        even_x[p] = even[p] * at.x * width[0] + shift[0];
        even_y[p] = even[p] * at.y * width[1] + shift[1];
    }
    for p in 0..some {
        let at = direction(odd_at[p]);
        odd_x[p] = odd[p] * at.x * width[0] + shift[0];
        odd_y[p] = odd[p] * at.y * width[1] + shift[1];
    }
    for p in 0..some {
        let at = direction(both_at[p]);
        even_z[p] = both[p] * at.x * width[2] + shift[2];
        odd_z[p] = both[p] * at.y * width[2] + shift[2];
    }
}

/// See [`Draws::runs`].
struct Runs {
    cells: usize,
    first: usize,
    at: usize,
    some: usize,
}

impl Iterator for Runs {
    /// Pairs, from 0, and the first particle of the first one; the second one is as many behind as there are cells.
    type Item = (Range<usize>, usize);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at == self.some {
            return None;
        }
        let (begin, pair) = (self.at, self.first + self.at);
        let cell = pair % self.cells;
        self.at = self.some.min(begin + self.cells - cell);
        Some((begin..self.at, 2 * (pair - cell) + cell))
    }
}

/// Columns of some pairs, and the numbers of their first draws.
struct Keys {
    columns: [u64; SOME],
    numbers: [u64; SOME],
    /// Bits of a particle's number that do not count: 1 where a pair has one draw, 0 where it has two.
    shared: u32,
}

impl Keys {
    fn new(shared: u32) -> Self {
        Self { columns: [0; SOME], numbers: [0; SOME], shared }
    }

    #[inline(always)]
    fn gather(&mut self, draws: &Draws, first: usize, some: usize) {
        for (pairs, p) in draws.runs(first, some) {
            let n = pairs.len();
            self.columns[pairs.clone()].copy_from_slice(&draws.columns[p..][..n]);
            let (numbers, rows, of) = (&mut self.numbers[pairs], &draws.rows[p..][..n], &draws.numbers[p..][..n]);
            for k in 0..n {
                numbers[k] = rows[k] + u64::from(of[k] >> self.shared);
            }
        }
    }
}

/// Puts values of pairs to their particles.
#[inline(always)]
fn scatter(draws: &Draws, first: usize, some: usize, [even, odd]: &OfPairs, to: &mut [f64]) {
    for (pairs, p) in draws.runs(first, some) {
        let n = pairs.len();
        to[p..][..n].copy_from_slice(&even[pairs.clone()]);
        to[p + draws.cells..][..n].copy_from_slice(&odd[pairs]);
    }
}

struct Positions<'a> {
    philox: Philox,
    draws: &'a Draws,
    s: &'a mut [f64],
    t: &'a mut [f64],
}

impl Work for Positions<'_> {
    #[inline(always)]
    fn run(self) {
        let (philox, draws) = (self.philox, self.draws);
        let (mut keys, mut found) = (Keys::new(1), [[[0.0; SOME]; 2]; 2]);
        for first in (0..draws.paired / 2).step_by(SOME) {
            let some = SOME.min(draws.paired / 2 - first);
            keys.gather(draws, first, some);
            offsets_of_pairs(philox, &keys.columns, &keys.numbers, some, &mut found);
            scatter(draws, first, some, &found[0], self.s);
            scatter(draws, first, some, &found[1], self.t);
        }
        for p in draws.paired..self.s.len() {
            [self.s[p], self.t[p]] = random_offsets(philox, draws.columns[p], draws.rows[p], draws.numbers[p]);
        }
    }
}

/// Random offsets from the cell's centre.
pub(super) fn positions(isa: Isa, philox: Philox, draws: &Draws, s: &mut [f64], t: &mut [f64]) {
    on(isa, Positions { philox, draws, s, t });
}

struct Normals<'a> {
    philox: Philox,
    draws: &'a Draws,
    width: [f64; 3],
    shift: [f64; 3],
    u: [&'a mut [f64]; 3],
}

impl Work for Normals<'_> {
    #[inline(always)]
    fn run(self) {
        let (philox, draws, width, shift) = (self.philox, self.draws, self.width, self.shift);
        let [x, y, z] = self.u;
        let (mut keys, mut found) = (Keys::new(0), [[[0.0; SOME]; 2]; 3]);
        for first in (0..draws.paired / 2).step_by(SOME) {
            let some = SOME.min(draws.paired / 2 - first);
            keys.gather(draws, first, some);
            normals_of_pairs(philox, &keys.columns, &keys.numbers, some, [width, shift], &mut found);
            scatter(draws, first, some, &found[0], x);
            scatter(draws, first, some, &found[1], y);
            scatter(draws, first, some, &found[2], z);
        }
        for p in draws.paired..x.len() {
            let u = normal_vector(philox, draws.columns[p], draws.rows[p], draws.numbers[p]);
            (x[p], y[p], z[p]) = (u[0] * width[0] + shift[0], u[1] * width[1] + shift[1], u[2] * width[2] + shift[2]);
        }
    }
}

/// Width and shift with which [`normals`] leaves normal vectors unchanged.
pub(super) const AS_THEY_ARE: [[f64; 3]; 2] = [[1.0; 3], [-0.0; 3]];

/// Normal vectors, by component times a width and moved by a shift.
pub(super) fn normals(isa: Isa, philox: Philox, draws: &Draws, [width, shift]: [[f64; 3]; 2], u: &mut [Vec<f64>; 3]) {
    on(isa, Normals { philox, draws, width, shift, u: u.each_mut().map(|u| &mut u[..]) });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::{Purpose, Stream, purpose};

    /// Pairs in registers have the bits of particles that are drawn one by one.
    #[test]
    fn every_instruction_set_has_the_bits_of_single_particles() {
        for (cells, each, more) in [(16, 18, 11), (1, 5, 0), (7, 2 * SOME, 3), (100, 2, 0), (3, 1, 0)] {
            let mut draws = Draws { cells, paired: each / 2 * 2 * cells, ..Draws::default() };
            for p in 0..cells * each + more {
                draws.columns.push(((p % cells) as u64 * 17) << 30);
                draws.rows.push(Stream::first(p % cells * 1000));
                draws.numbers.push((p / cells) as u32);
            }
            let n = draws.numbers.len();
            let philox = |what| Philox::new(purpose::start(3, what), 77);
            for isa in Isa::all() {
                let (mut s, mut t, mut u) = (vec![0.0; n], vec![0.0; n], [(); 3].map(|()| vec![0.0; n]));
                positions(isa, philox(Purpose::Position), &draws, &mut s, &mut t);
                normals(isa, philox(Purpose::Momentum), &draws, AS_THEY_ARE, &mut u);
                for p in 0..n {
                    let (column, row, k) = (draws.columns[p], draws.rows[p], draws.numbers[p]);
                    assert_eq!([s[p], t[p]], random_offsets(philox(Purpose::Position), column, row, k), "{isa:?} {cells} {p}");
                    assert_eq!([0, 1, 2].map(|c| u[c][p]), normal_vector(philox(Purpose::Momentum), column, row, k), "{isa:?} {cells} {p}");
                }
            }
        }
    }

    /// Means, variances, fourth moments and correlations, also of the particles of a pair, to four standard errors.
    #[test]
    fn particles_of_a_pair_are_independent() {
        let (n, philox) = (200_000_u32, Philox::new(purpose::start(0, Purpose::Momentum), 20_261_129));
        let pair = |m: u32| {
            let [even, odd] = [2 * m, 2 * m + 1].map(|k| (normal_vector(philox, 5, 0, k), random_offsets(philox, 6, 0, k)));
            // Uniform numbers to the same variance.
            let place = |x: f64| x * 12.0_f64.sqrt();
            [even, odd].map(|(u, x)| [u[0], u[1], u[2], place(x[0]), place(x[1])])
        };
        let (mut moments, mut products) = ([[[0.0; 3]; 5]; 2], [[0.0; 10]; 10]);
        for v in (0..n).map(pair) {
            for (sums, v) in moments.iter_mut().zip(v) {
                for (sums, v) in sums.iter_mut().zip(v) {
                    (0..3).for_each(|k| sums[k] += v.powi([1, 2, 4][k]) / f64::from(n));
                }
            }
            let all = [v[0], v[1]].concat();
            (0..100).for_each(|k| products[k / 10][k % 10] += all[k / 10] * all[k % 10] / f64::from(n));
        }
        let error = |variance: f64| 4.0 * (variance / f64::from(n)).sqrt();
        for (k, sums) in moments.iter().flat_map(|of| of.iter().enumerate()) {
            // The fourth moment and the variances of second and fourth powers: of normal and of uniform numbers.
            let (fourth, second_varies, fourth_varies) = if k < 3 { (3.0, 2.0, 96.0) } else { (1.8, 0.8, 5.76) };
            assert!(sums[0].abs() < error(1.0) && (sums[1] - 1.0).abs() < error(second_varies), "{k}: {sums:?}");
            assert!((sums[2] - fourth).abs() < error(fourth_varies), "{k}: {sums:?}");
        }
        for (a, b) in (0..10).flat_map(|a| (0..a).map(move |b| (a, b))) {
            assert!(products[a][b].abs() < error(1.0), "{a} {b}: {}", products[a][b]);
        }
    }
}
