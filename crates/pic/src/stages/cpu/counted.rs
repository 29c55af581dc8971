//! Extents of columns of particles, and histograms of them: some particles at a time, in registers of the best instruction set at
//! hand.

use zellige_engine::real::{Isa, RealScalar};

use super::store::{COLUMNS, PORTION, PlacedRow, Store, portions};
use crate::loading::lanes::{Work, on};
use crate::stages::Bins;

/// Particles whose values are in the first cache together.
const SOME: usize = 512;
/// 2^52: what is added to it is rounded to a whole number.
const WHOLE: f64 = 4_503_599_627_370_496.0;

/// Values along an axis of up to [`SOME`] of a row's particles, from slot `first` on.
#[inline(always)]
fn along<T: RealScalar>(([i, j], row): &PlacedRow<'_, T>, axis: &Bins, first: usize, out: &mut [f64]) {
    let slots = first..first + out.len();
    let column = |c: usize| &row.column(c)[slots.clone()];
    let [from, step] = axis.position;
    match axis.column {
        0 => {
            for ((out, cell), s) in out.iter_mut().zip(&row.keys()[slots.clone()]).zip(column(0)) {
                *out = from + step * ((*i as f64 + f64::from(*cell)) + 0.5 + s.to_f64());
            }
        }
        1 => {
            for (out, t) in out.iter_mut().zip(column(1)) {
                *out = from + step * (*j as f64 + 0.5 + t.to_f64());
            }
        }
        c @ 2..=4 => {
            for (out, u) in out.iter_mut().zip(column(c)) {
                *out = u.to_f64();
            }
        }
        5 => {
            for (((out, x), y), z) in out.iter_mut().zip(column(2)).zip(column(3)).zip(column(4)) {
                let (x, y, z) = (x.to_f64(), y.to_f64(), z.to_f64());
                *out = (1.0 + x * x + y * y + z * z).sqrt();
            }
        }
        _ if row.layout().width == COLUMNS => {
            for (out, w) in out.iter_mut().zip(column(5)) {
                *out = w.to_f64();
            }
        }
        _ => out.fill(1.0),
    }
}

struct Extent<'a, T> {
    rows: &'a [PlacedRow<'a, T>],
    axis: &'a Bins,
    found: &'a mut [f64; 2],
}

impl<T: RealScalar> Work for Extent<'_, T> {
    #[inline(always)]
    fn run(self) {
        // Running values for each lane, so that the loop is not one chain.
        let (mut low, mut high, mut values) = ([f64::INFINITY; 8], [f64::NEG_INFINITY; 8], [0.0; SOME]);
        for row in self.rows {
            for first in (0..row.1.len()).step_by(SOME) {
                let n = SOME.min(row.1.len() - first);
                along(row, self.axis, first, &mut values[..n]);
                // Nothing but a number is no less than any.
                values[n..n.next_multiple_of(8)].fill(f64::NAN);
                for values in values[..n.next_multiple_of(8)].as_chunks::<8>().0 {
                    for k in 0..8 {
                        let (v, counts) = (values[k], values[k].abs() <= f64::MAX);
                        low[k] = if counts && v < low[k] { v } else { low[k] };
                        high[k] = if counts && v > high[k] { v } else { high[k] };
                    }
                }
            }
        }
        *self.found = [low.into_iter().fold(f64::INFINITY, f64::min), high.into_iter().fold(f64::NEG_INFINITY, f64::max)];
    }
}

/// As [`crate::stages::Stages::extent`].
pub(super) fn extent<T: RealScalar>(store: &Store<T>, axis: &Bins) -> [f64; 2] {
    let part = |rows: &[PlacedRow<'_, T>]| {
        let mut found = [0.0; 2];
        on(Isa::best(), Extent { rows, axis, found: &mut found });
        found.to_vec()
    };
    let mut all = [f64::INFINITY, f64::NEG_INFINITY];
    portions(store, PORTION, &part, &mut |found| all = [all[0].min(found[0]), all[1].max(found[1])]);
    all
}

struct Counted<'a, T> {
    rows: &'a [PlacedRow<'a, T>],
    axes: &'a [Bins],
    sums: &'a mut [f64],
}

impl<T: RealScalar> Work for Counted<'_, T> {
    #[inline(always)]
    fn run(self) {
        let (mut values, mut places) = ([0.0; SOME], [0.0; SOME]);
        for row in self.rows {
            let weights = (row.1.layout().width == COLUMNS).then(|| row.1.column(COLUMNS - 1));
            for first in (0..row.1.len()).step_by(SOME) {
                let n = SOME.min(row.1.len() - first);
                let (values, places) = (&mut values[..n], &mut places[..n]);
                places.fill(0.0);
                for axis in self.axes.iter().rev() {
                    along(row, axis, first, values);
                    bin(axis, values, places);
                }
                for (k, position) in places.iter().enumerate() {
                    // NaN is in no bin.
                    if *position >= 0.0 {
                        let at = ((*position + WHOLE).to_bits() & (WHOLE as u64 - 1)) as usize;
                        self.sums[at] += weights.map_or(1.0, |w| w[first + k].to_f64());
                    }
                }
            }
        }
    }
}

/// Numbers of bins, whole as they are, with one more axis ahead of those before: as [`Bins::of`], not a number where that has none.
#[inline(always)]
fn bin(axis: &Bins, values: &[f64], places: &mut [f64]) {
    let (from, spacing, count) = (axis.from, axis.spacing, axis.count as f64);
    let end = from + spacing * count;
    for (position, v) in places.iter_mut().zip(values) {
        let bin = (v - from) / spacing;
        let near = (bin + WHOLE) - WHOLE;
        let whole = if near > bin { near - 1.0 } else { near };
        let whole = if whole == count && *v <= end { whole - 1.0 } else { whole };
        *position = if bin >= 0.0 && whole < count { *position * count + whole } else { f64::NAN };
    }
}

/// As [`crate::stages::Stages::bins`].
pub(super) fn bins<T: RealScalar>(store: &Store<T>, axes: &[Bins], weighted: bool) -> Vec<f64> {
    let none = vec![0.0; axes.iter().map(|axis| axis.count).product()];
    let part = |rows: &[PlacedRow<'_, T>]| {
        let mut sums = none.clone();
        on(Isa::best(), Counted { rows, axes, sums: &mut sums });
        sums
    };
    // Whole numbers have the same sum in any parts: such as are much larger than what is made of them.
    let size = if weighted { PORTION } else { PORTION.max(4 * none.len()) };
    let mut all = none.clone();
    portions(store, size, &part, &mut |found| all.iter_mut().zip(found).for_each(|(sum, v)| *sum += v));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_in_registers_are_those_of_the_formula() {
        let bins = [
            Bins { column: 2, from: -1.5, spacing: 0.1, count: 30, position: [0.0, 1.0] },
            Bins { column: 2, from: 0.0, spacing: 1.0 / 3.0, count: 3, position: [0.0, 1.0] },
        ];
        for axis in bins {
            let edges = (0..=axis.count).map(|k| axis.from + axis.spacing * k as f64);
            let beside = edges.flat_map(|v| [v.next_down(), v, v.next_up()]);
            let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e300, -0.0, 5e-324];
            let values: Vec<f64> = beside.chain(odd).collect();
            let mut places = vec![2.0; values.len()];
            bin(&axis, &values, &mut places);
            for (v, position) in values.iter().zip(places) {
                let expected = axis.of(*v).map(|k| (2 * axis.count + k) as f64);
                assert_eq!(expected, (!position.is_nan()).then_some(position), "{v} of {axis:?}");
            }
        }
    }
}
