//! A plane of a field at the resolution of the picture: large fields are averaged over the area of each pixel, so that
//! nothing is skipped; small ones are interpolated between nodes, or drawn as crisp cells.

use zellige_engine::ops::plane::pixel_weights;
use zellige_engine::parallel::{chunks_mut, each_with};
use zellige_engine::record::{Field, Palette, Values};

/// Rows of pixels that a thread makes in a row.
const BAND: usize = 32;

/// A plane through a field: value `(i, j)` is `values[offset + i * stride_i + j * stride_j]`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plane<'a> {
    pub(super) field: &'a Field,
    /// Those of the field, or of a mesh that it is a component of.
    values: &'a Values,
    /// The axes to the right and upwards.
    pub(super) axes: (usize, usize),
    pub(super) offset: usize,
}

impl<'a> Plane<'a> {
    /// The plane of the axes `(i, j)`; the remaining axis, if there is one, is cut at its index `at`.
    pub(super) fn new(field: &'a Field, axes: (usize, usize), at: usize) -> Self {
        Self::of(field, &field.values, axes, at)
    }

    /// Likewise of a field whose values lie elsewhere.
    pub(super) fn of(field: &'a Field, values: &'a Values, axes: (usize, usize), at: usize) -> Self {
        let rest = (0..field.axes.len()).find(|a| *a != axes.0 && *a != axes.1);
        Self { field, values, axes, offset: rest.map_or(0, |a| at * stride(field, a)) }
    }

    /// A field of one axis, as a plane of one row.
    pub(super) fn line(field: &'a Field) -> Self {
        Self { field, values: &field.values, axes: (0, field.axes.len()), offset: 0 }
    }

    /// The plane on `width` times `height` pixels, rows from the top. Angles are averaged on the circle.
    pub(super) fn sample(&self, width: usize, height: usize) -> Vec<f64> {
        if self.field.palette == Palette::Cyclic {
            let sines = self.resample(width, height, f64::sin);
            let cosines = self.resample(width, height, f64::cos);
            return sines.iter().zip(&cosines).map(|(s, c)| s.atan2(*c)).collect();
        }
        self.resample(width, height, |v| v)
    }

    fn resample(&self, width: usize, height: usize, f: impl Fn(f64) -> f64 + Copy + Sync) -> Vec<f64> {
        let length = |axis: usize| self.field.axes.get(axis).map_or(1, |a| a.len);
        let (nx, ny) = (length(self.axes.0), length(self.axes.1));
        let columns = pixel_weights(nx, width, self.field.centring);
        let rows = pixel_weights(ny, height, self.field.centring);
        let mut out = vec![0.0; width * height];
        let make = || {
            // Neighbouring pixel rows share at most their outermost two field rows.
            let cache = [(usize::MAX, vec![0.0; width]), (usize::MAX, vec![0.0; width])];
            (cache, vec![0.0; nx])
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
                        self.row(j, source, f);
                        for (value, tap) in line.iter_mut().zip(&columns) {
                            let part = &source[tap.first..][..tap.weights.len()];
                            *value = part.iter().zip(&tap.weights).map(|(v, w)| v * w).sum();
                        }
                        *held = j;
                    }
                    for (t, v) in target.iter_mut().zip(line) {
                        *t += weight * *v;
                    }
                }
            }
        });
        out
    }

    fn row(&self, j: usize, out: &mut [f64], f: impl Fn(f64) -> f64) {
        let (si, start) = (stride(self.field, self.axes.0), self.offset + j * stride(self.field, self.axes.1));
        match self.values {
            Values::F32(v) => out.iter_mut().zip(v[start..].iter().step_by(si)).for_each(|(o, v)| *o = f(f64::from(*v))),
            Values::F64(v) => out.iter_mut().zip(v[start..].iter().step_by(si)).for_each(|(o, v)| *o = f(*v)),
        }
    }
}

fn stride(field: &Field, axis: usize) -> usize {
    field.axes[..axis].iter().map(|a| a.len).product()
}

#[cfg(test)]
mod tests {
    use zellige_engine::record::{Axis, Centring};

    use super::*;

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
            palette: Palette::Sequential,
        }
    }

    /// A linear field sampled at nodes is linear in the picture: exact at pixel centres away from the halved edge nodes.
    #[test]
    fn a_linear_field_stays_linear_and_upright() {
        for (n, pixels) in [(9, 64), (513, 64)] {
            let f = field(n, n, Centring::Node, |i, j| i as f64 + 1000.0 * j as f64);
            let picture = Plane::new(&f, (0, 1), 0).sample(pixels, pixels);
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
        assert!(Plane::new(&f, (0, 1), 0).sample(16, 16).iter().all(|v| v.abs() > 3.0));
    }

    #[test]
    fn averaging_keeps_the_mean_of_cells() {
        let f = field(120, 96, Centring::Cell, |i, j| ((i * 7919 + j * 104729) % 1000) as f64);
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
        let Values::F64(values) = &f.values else { unreachable!("built above") };
        let picture = Plane::new(&f, (0, 1), 0).sample(33, 17);
        // Equal areas: the mean is kept up to rounding.
        assert!((mean(&picture) - mean(values)).abs() < 1e-9);
    }
}
