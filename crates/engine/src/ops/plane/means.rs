//! Means of a plane of a field over the pixels of a picture, on the CPU: large fields are averaged over the area of each pixel, so
//! that nothing is skipped; small ones are interpolated between nodes, or drawn as crisp cells. Parts of a run that have some rows
//! of it each make a piece, and the pieces make the bits that one part makes.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{PixelWeights, pixel_weights};
use crate::parallel::{chunks_mut, each_with};
use crate::record::{Centring, Field, Palette, Values};

/// Rows of pixels that a thread makes in a row.
const BAND: usize = 32;

/// A plane through a field: value `(i, j)` is number `begin + i strides[0] + j strides[1]`, the rows upwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plane {
    /// Values along a row, and rows.
    pub len: [usize; 2],
    /// Distances of neighbours along them, in values.
    pub strides: [usize; 2],
    /// Number of the first value.
    pub begin: usize,
    /// Location of the values.
    pub centring: Centring,
    /// The values are angles, whose means are taken on the circle.
    pub angles: bool,
}

/// Rows of a plane that a part of a run has, and what these alone make of a picture ([`Plane::piece`]).
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// The rows.
    pub rows: Range<usize>,
    /// Pixel rows from the top: where the part has all rows that make one, the means; else the means along x of each row that it
    /// has. Of angles those of the sine, then those of the cosine.
    pub means: Vec<f64>,
}

impl Plane {
    /// The plane of the axes `(i, j)` of a field, whose values need not be there. The remaining axis, if there is one, is cut at
    /// its index `at`; an axis that the field does not have has one value.
    pub fn of(field: &Field, (i, j): (usize, usize), at: usize) -> Self {
        let len = |axis: usize| field.axes.get(axis).map_or(1, |a| a.len);
        let stride = |axis: usize| field.axes.iter().take(axis).map(|a| a.len).product::<usize>();
        let rest = (0..field.axes.len()).find(|a| *a != i && *a != j);
        Self {
            len: [len(i), len(j)],
            strides: [stride(i), stride(j)],
            begin: rest.map_or(0, |axis| at * stride(axis)),
            centring: field.centring,
            angles: field.palette == Palette::Cyclic,
        }
    }

    /// Means over `width` times `height` pixels, rows from the top.
    pub fn means(&self, values: &Values, size: [usize; 2]) -> Vec<f64> {
        let taps = pixel_weights(self.len[1], size[1], self.centring);
        if self.angles {
            return angles(&self.sums(values, 0, &taps, size[0], f64::sin), &self.sums(values, 0, &taps, size[0], f64::cos));
        }
        self.sums(values, 0, &taps, size[0], |v| v)
    }

    /// A part's piece of a picture, made of its values of a field: the first of them has the number `first` there, and no row has
    /// values elsewhere.
    pub fn piece(&self, values: &Values, first: usize, size: [usize; 2]) -> Piece {
        let row = |number: usize| number.saturating_sub(self.begin).div_ceil(self.strides[1]).min(self.len[1]);
        let rows = row(first)..row(first + values.len());
        let taps = pixel_weights(self.len[1], size[1], self.centring);
        let means = if self.angles {
            [self.part(values, first, &rows, &taps, size[0], f64::sin), self.part(values, first, &rows, &taps, size[0], f64::cos)].concat()
        } else {
            self.part(values, first, &rows, &taps, size[0], |v| v)
        };
        Piece { rows, means }
    }

    /// Means as of [`Plane::means`] from the pieces of all parts, in the order of their rows; nothing if they make no picture.
    pub fn joined(&self, pieces: &[Piece], size: [usize; 2]) -> Option<Vec<f64>> {
        let taps = pixel_weights(self.len[1], size[1], self.centring);
        let join = |k: usize, of: usize| {
            let parts = pieces.iter().map(|piece| (&piece.rows, &piece.means[piece.means.len() / of * k..][..piece.means.len() / of]));
            join(parts.collect(), &taps, size[0])
        };
        if self.angles { Some(angles(&join(0, 2)?, &join(1, 2)?)) } else { join(0, 1) }
    }

    /// A part's piece of the means of `f`.
    fn part(
        &self,
        values: &Values,
        first: usize,
        rows: &Range<usize>,
        taps: &[PixelWeights],
        width: usize,
        f: impl Fn(f64) -> f64 + Copy + Sync,
    ) -> Vec<f64> {
        // Pixel rows with any of these rows, and those with no others.
        let touched = taps.partition_point(|tap| tap.end() <= rows.start)..taps.partition_point(|tap| tap.first < rows.end);
        let begin = taps.partition_point(|tap| tap.first < rows.start);
        let own = begin..taps.partition_point(|tap| tap.end() <= rows.end).max(begin);
        let columns = pixel_weights(self.len[0], width, self.centring);
        let mut source = vec![0.0; self.len[0]];
        let mut lines = |pixels: Range<usize>| -> Vec<f64> {
            let rows = taps[pixels].iter().rev().flat_map(|tap| tap.first.max(rows.start)..tap.end().min(rows.end));
            rows.flat_map(|j| {
                self.row(values, first, j, &mut source, f);
                columns.iter().map(|tap| mean(tap, &source)).collect::<Vec<_>>()
            })
            .collect()
        };
        let above = lines(own.end..touched.end.max(own.end));
        let below = lines(touched.start.min(own.start)..own.start);
        [above, self.sums(values, first, &taps[own], width, f), below].concat()
    }

    /// Means of `f` over some rows of pixels.
    fn sums(&self, values: &Values, first: usize, rows: &[PixelWeights], width: usize, f: impl Fn(f64) -> f64 + Copy + Sync) -> Vec<f64> {
        let columns = pixel_weights(self.len[0], width, self.centring);
        let height = rows.len();
        let mut out = vec![0.0; width * height];
        let make = || {
            // Neighbouring pixel rows share at most their outermost two field rows.
            let cache = [(usize::MAX, vec![0.0; width]), (usize::MAX, vec![0.0; width])];
            (cache, vec![0.0; self.len[0]])
        };
        each_with(make, chunks_mut(&mut out, BAND * width), |(cache, source), band, targets| {
            let count = targets.len() / width;
            // From the bottom of the band, in the order of the field's rows.
            let taps = &rows[height - band * BAND - count..][..count];
            for (tap, target) in taps.iter().zip(targets.chunks_exact_mut(width).rev()) {
                for (k, &weight) in tap.weights.iter().enumerate() {
                    let j = tap.first + k;
                    let (held, line) = &mut cache[j % 2];
                    if *held != j {
                        self.row(values, first, j, source, f);
                        line.iter_mut().zip(&columns).for_each(|(value, tap)| *value = mean(tap, source));
                        *held = j;
                    }
                    add(target, weight, line);
                }
            }
        });
        out
    }

    fn row(&self, values: &Values, first: usize, j: usize, out: &mut [f64], f: impl Fn(f64) -> f64) {
        let (step, start) = (self.strides[0], self.begin + j * self.strides[1] - first);
        match values {
            Values::F32(v) => out.iter_mut().zip(v[start..].iter().step_by(step)).for_each(|(o, v)| *o = f(f64::from(*v))),
            Values::F64(v) => out.iter_mut().zip(v[start..].iter().step_by(step)).for_each(|(o, v)| *o = f(*v)),
        }
    }
}

impl PixelWeights {
    /// Number after that of the last value.
    fn end(&self) -> usize {
        self.first + self.weights.len()
    }
}

fn mean(tap: &PixelWeights, values: &[f64]) -> f64 {
    values[tap.first..tap.end()].iter().zip(&tap.weights).map(|(v, w)| v * w).sum()
}

fn add(target: &mut [f64], weight: f64, line: &[f64]) {
    target.iter_mut().zip(line).for_each(|(t, v)| *t += weight * *v);
}

fn angles(sines: &[f64], cosines: &[f64]) -> Vec<f64> {
    sines.iter().zip(cosines).map(|(s, c)| s.atan2(*c)).collect()
}

/// Pixel rows of pieces, those of several parts added up in the order of the rows.
fn join(mut parts: Vec<(&Range<usize>, &[f64])>, taps: &[PixelWeights], width: usize) -> Option<Vec<f64>> {
    let mut out = vec![0.0; width * taps.len()];
    for (tap, target) in taps.iter().rev().zip(out.chunks_exact_mut(width)) {
        for (rows, rest) in &mut parts {
            let own = tap.first.max(rows.start)..tap.end().min(rows.end);
            let whole = own.len() == tap.weights.len();
            for j in own.take(if whole { 1 } else { usize::MAX }) {
                let (line, behind) = rest.split_at_checked(width)?;
                *rest = behind;
                if whole {
                    target.copy_from_slice(line);
                } else {
                    add(target, tap.weights[j - tap.first], line);
                }
            }
        }
    }
    parts.iter().all(|(_, rest)| rest.is_empty()).then_some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::record::Axis;

    fn field(nx: usize, ny: usize, centring: Centring, f: impl Fn(usize, usize) -> f64) -> Field {
        let axis = |name: &str, len| Axis { name: name.into(), unit: String::new(), origin: 0.0, spacing: 1.0, len };
        Field {
            name: "f".into(),
            title: "f".into(),
            unit: String::new(),
            dimension: [0.0; 7],
            axes: vec![axis("x", nx), axis("y", ny)],
            centring,
            values: Values::F64((0..nx * ny).map(|k| f(k % nx, k / nx)).collect()),
            share: None,
            palette: Palette::Sequential,
        }
    }

    fn sample(field: &Field, size: [usize; 2]) -> Vec<f64> {
        Plane::of(field, (0, 1), 0).means(&field.values, size)
    }

    /// A linear field sampled at nodes is linear in the picture: exact at pixel centres away from the halved edge nodes.
    #[test]
    fn a_linear_field_stays_linear_and_upright() {
        for (n, pixels) in [(9, 64), (513, 64)] {
            let f = field(n, n, Centring::Node, |i, j| i as f64 + 1000.0 * j as f64);
            let picture = sample(&f, [pixels, pixels]);
            let pitch = (n - 1) as f64 / pixels as f64;
            for row in 1..pixels - 1 {
                for column in 1..pixels - 1 {
                    let (x, y) = ((column as f64 + 0.5) * pitch, ((pixels - 1 - row) as f64 + 0.5) * pitch);
                    let expected = x + 1000.0 * y;
                    assert!((picture[row * pixels + column] - expected).abs() < 1e-9 * expected.max(1.0));
                }
            }
        }
    }

    /// Interpolated as numbers, 3.1 and -3.1 would meet at 0, the opposite angle.
    #[test]
    fn angles_are_averaged_on_the_circle() {
        let mut f = field(2, 2, Centring::Node, |i, _| if i == 0 { 3.1 } else { -3.1 });
        f.palette = Palette::Cyclic;
        assert!(sample(&f, [16, 16]).iter().all(|v| v.abs() > 3.0));
    }

    #[test]
    fn averaging_keeps_the_mean_of_cells() {
        let f = field(120, 96, Centring::Cell, |i, j| ((i * 7919 + j * 104729) % 1000) as f64);
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
        let Values::F64(values) = &f.values else { unreachable!("built above") };
        let picture = sample(&f, [33, 17]);
        // Equal areas: the mean is kept up to rounding.
        assert!((mean(&picture) - mean(values)).abs() < 1e-9);
    }

    proptest! {
        /// Cut three axes anywhere between two layers, or two between rows: every plane has the same bits, angles too.
        #[test]
        fn pieces_of_parts_make_the_bits_of_one(
            len in [1usize..7, 1usize..40, 1usize..40], three: bool, size in [1usize..12, 1usize..30],
            cuts in prop::collection::vec(0usize..41, 0..4), nodes: bool, angles: bool, double: bool,
        ) {
            let centring = if nodes { Centring::Node } else { Centring::Cell };
            let axes: Vec<Axis> = len.iter().take(if three { 3 } else { 2 }).enumerate().map(|(i, n)| Axis::bare(i, 0.0, 1.0, *n)).collect();
            let (layers, count) = (axes[axes.len() - 1].len, axes.iter().map(|a| a.len).product::<usize>());
            let number = |k: usize| (k as f64 * 0.7).sin() / 3.0;
            let some = |range: Range<usize>| {
                if double { Values::F64(range.map(number).collect()) } else { Values::F32(range.map(|k| number(k) as f32).collect()) }
            };
            let mut field = Field::bare("f", axes, centring, some(0..count));
            field.palette = if angles { Palette::Cyclic } else { Palette::Sequential };
            let mut ends: Vec<usize> = cuts.iter().map(|c| c % (layers + 1) * (count / layers)).chain([0, count]).collect();
            ends.sort_unstable();
            let pairs: &[(usize, usize)] = if three { &[(0, 1), (0, 2), (1, 2)] } else { &[(0, 1)] };
            for pair in pairs {
                let rest = (0..3).find(|axis| *axis != pair.0 && *axis != pair.1).unwrap();
                let plane = Plane::of(&field, *pair, len[rest] / 2);
                let pieces: Vec<Piece> = ends.windows(2).map(|end| plane.piece(&some(end[0]..end[1]), end[0], size)).collect();
                let bits = |means: Vec<f64>| means.into_iter().map(f64::to_bits).collect::<Vec<_>>();
                prop_assert_eq!(plane.joined(&pieces, size).map(bits), Some(bits(plane.means(&field.values, size))));
            }
        }
    }
}
