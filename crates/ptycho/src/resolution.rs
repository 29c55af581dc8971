//! Agreement of two images, ring by ring of Fourier space, and the resolution at which it ends.
//!
//! Fourier ring correlation: van Heel and Schatz, J. Struct. Biol. 151 (2005) 250, with its half-bit and one-bit thresholds.

use std::ops::AddAssign;

use num_complex::Complex;
use zellige_engine::ops::fft::{Direction, Plan, Shape};
use zellige_engine::parallel::{chunks, chunks_mut, each, indices, items, items_mut, map};
use zellige_engine::record::{Curve, Record};

use crate::ordered;
use crate::propagation::signed;

type C = Complex<f64>;

/// A curve over rings: spatial frequency in parts of Nyquist's, correlation, threshold.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RingCorrelation {
    /// Frequency of a ring over Nyquist's of the larger pixel.
    pub frequency: Vec<f64>,
    /// Correlation, -1 to 1.
    pub correlation: Vec<f64>,
    /// Half-bit threshold where two halves are compared.
    pub half_bit: Vec<f64>,
    /// One-bit threshold, the whole is compared with a truth.
    pub one_bit: Vec<f64>,
    /// The larger edge of a pixel, metres.
    pub pixel: f64,
}

impl RingCorrelation {
    /// Half-period resolution, metres: the first ring at which the correlation falls below a threshold; a pixel where it never
    /// does.
    fn crossing(&self, threshold: &[f64]) -> f64 {
        let cut = |i: usize| self.correlation[i] - threshold[i];
        // The innermost rings have few pixels and hold what a slope of the phase leaves: it counts from where the correlation is above.
        let above = (1..self.correlation.len()).find(|i| cut(*i) > 0.0).unwrap_or(1);
        for i in above..self.correlation.len() {
            if cut(i) < 0.0 {
                let (before, after) = (cut(i - 1), cut(i));
                let t = if before > 0.0 { before / (before - after) } else { 0.0 };
                let f = self.frequency[i - 1] + t * (self.frequency[i] - self.frequency[i - 1]);
                return self.pixel / f.max(1e-9);
            }
        }
        self.pixel
    }

    /// Converts the rings to a curve; against the half-bit threshold where two halves were compared, the one-bit one where one of
    /// them is the truth.
    pub fn curve(&self, name: &str, title: &str, half_sets: bool) -> Record {
        let (threshold, label, ends) = if half_sets {
            (&self.half_bit, "half-bit threshold", self.half_bit_resolution())
        } else {
            (&self.one_bit, "one-bit threshold", self.one_bit_resolution())
        };
        Record::Curve(Curve {
            name: name.into(),
            title: format!("{title}: half period {:.1} nm", 1e9 * ends),
            x_label: "spatial frequency / Nyquist frequency".into(),
            y_label: "correlation".into(),
            x: self.frequency.clone(),
            lines: vec![("correlation".into(), self.correlation.clone()), (label.into(), threshold.clone())],
            log_y: false,
        })
    }

    /// Resolution by the half-bit threshold.
    pub fn half_bit_resolution(&self) -> f64 {
        self.crossing(&self.half_bit)
    }

    /// Resolution by the one-bit threshold.
    pub fn one_bit_resolution(&self) -> f64 {
        self.crossing(&self.one_bit)
    }
}

/// Sums over the frequencies of a ring.
#[derive(Debug, Clone, Copy, Default)]
struct Ring {
    cross: C,
    own: [f64; 2],
    count: f64,
}

impl AddAssign for Ring {
    fn add_assign(&mut self, by: Self) {
        self.cross += by.cross;
        self.own = [0, 1].map(|i| self.own[i] + by.own[i]);
        self.count += by.count;
    }
}

/// Rows of a spectrum whose rings one thread adds up: the partition, and with it the sums, does not depend on the threads.
const ROWS: usize = 64;

/// Correlation of two images `[height][width]` of pixels `[y, x]`, metres, that [`align`] has brought together: edges are faded
/// first. Rings are round in cycles a metre, whatever the shape of image and pixels, and end where the larger pixel does.
pub fn rings(a: &[C], b: &[C], shape: [usize; 2], pixel: [f64; 2]) -> RingCorrelation {
    let [mut a, mut b] = [a, b].map(copied);
    for image in [&mut a, &mut b] {
        fade(image, shape);
    }
    let mut plan = Plan::new(Shape::frames(shape[0], shape[1], 1));
    plan.run(&mut a, Direction::Forward);
    plan.run(&mut b, Direction::Forward);
    // Cycles a metre: a ring is as wide as the frequencies of the shorter edge are apart.
    let width = (0..2).map(|d| 1.0 / (shape[d] as f64 * pixel[d])).fold(0.0, f64::max);
    let coarser = pixel[0].max(pixel[1]);
    let most = 0.5 / coarser;
    // An edge of an even number of pixels has a ring at the end, to rounding.
    let n = (most / width * (1.0 + 1e-9)) as usize;
    let ring_of = |i: usize| {
        let index = [signed(i / shape[1], shape[0]), signed(i % shape[1], shape[1])];
        let [y, x] = [0, 1].map(|d| index[d] / (shape[d] as f64 * pixel[d]));
        (y.hypot(x) / width).round() as usize
    };
    let block = ROWS * shape[1].max(1);
    let of_rows = |number: usize, values: &[C]| {
        let mut rings = vec![Ring::default(); n + 1];
        for (i, a) in (number * block..).zip(values) {
            if let Some(ring) = rings.get_mut(ring_of(i)) {
                *ring += Ring { cross: a * b[i].conj(), own: [a.norm_sqr(), b[i].norm_sqr()], count: 1.0 };
            }
        }
        rings
    };
    let mut rings = vec![Ring::default(); n + 1];
    for of_block in map(chunks(&a, block), of_rows) {
        rings.iter_mut().zip(of_block).for_each(|(ring, by)| *ring += by);
    }
    let value = |ring: &Ring| ring.cross.re / (ring.own[0] * ring.own[1]).sqrt().max(f64::MIN_POSITIVE);
    // Fading the edges halves the independent pixels of a ring along each axis.
    let independent = |ring: &Ring| (ring.count * FADED).max(1.0).sqrt();
    let half = |s: f64| (0.2071 + 1.9102 / s) / (1.2071 + 0.9102 / s);
    let one = |s: f64| (0.5 + (1.0 + std::f64::consts::SQRT_2) / s) / (1.5 + std::f64::consts::SQRT_2 / s);
    RingCorrelation {
        frequency: (0..=n).map(|i| i as f64 * width / most).collect(),
        correlation: rings.iter().map(value).collect(),
        half_bit: rings.iter().map(|ring| half(independent(ring))).collect(),
        one_bit: rings.iter().map(|ring| one(independent(ring))).collect(),
        pixel: coarser,
    }
}

/// Part of the area that a Hann window over both axes leaves: the square of 3/8 over the square of 1/2, inverted.
const FADED: f64 = 0.316;

/// Mean of an image; 0 of none.
fn mean(image: &[C]) -> C {
    ordered::sum(image.len(), |i| image[i]) / image.len().max(1) as f64
}

/// Hann's window about the mean.
fn fade(image: &mut [C], [height, width]: [usize; 2]) {
    let window = |i: usize, n: usize| 0.5 - 0.5 * (std::f64::consts::TAU * (i as f64 + 0.5) / n as f64).cos();
    let mean = mean(image);
    let [down, along] = [height, width].map(|n| (0..n).map(|i| window(i, n)).collect::<Vec<f64>>());
    each(chunks_mut(image, width.max(1)), |row, line| {
        line.iter_mut().zip(&along).for_each(|(v, along)| *v = (*v - mean) * (down[row] * along) + mean);
    });
}

/// Slope of a phase, a pixel along each axis, and shift, pixels, that bring an image to another one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ImageShift {
    /// Radians a pixel.
    pub slope: [f64; 2],
    /// Pixels.
    pub shift: [f64; 2],
}

/// Brings `a` to `b`: shift below a pixel, linear phase, factor. Twice, since each disturbs the other.
pub fn align(a: &mut [C], b: &[C], shape: [usize; 2]) -> ImageShift {
    let mut moved = ImageShift::default();
    let add = |to: &mut [f64; 2], by: [f64; 2]| *to = [to[0] + by[0], to[1] + by[1]];
    let mut plan = Plan::new(Shape::frames(shape[0], shape[1], 1));
    let spectrum = faded_spectrum(b, shape, &mut plan);
    for _ in 0..2 {
        add(&mut moved.slope, ramp(a, b, shape));
        add(&mut moved.shift, shift(a, &spectrum, shape, &mut plan));
    }
    add(&mut moved.slope, ramp(a, b, shape));
    let dot: C = ordered::sum(a.len(), |i| a[i].conj() * b[i]);
    let own: f64 = ordered::sum(a.len(), |i| a[i].norm_sqr());
    if own > 0.0 {
        each(items_mut(a), |_, v| *v *= dot / own);
    }
    moved
}

/// Takes the linear phase of `b a*` off.
fn ramp(a: &mut [C], b: &[C], [height, width]: [usize; 2]) -> [f64; 2] {
    let relative: Vec<C> = map(indices(a.len()), |_, i| b[i] * a[i].conj());
    let pairs = |dy: usize, dx: usize| -> C {
        let [rows, columns] = [height.saturating_sub(dy), width.saturating_sub(dx)];
        ordered::sum(rows * columns, |i| {
            let at = i / columns * width + i % columns;
            relative[at + dy * width + dx] * relative[at].conj()
        })
    };
    let slope = [pairs(1, 0).arg(), pairs(0, 1).arg()];
    each(items_mut(a), |i, v| {
        let (y, x) = ((i / width) as f64 - 0.5 * height as f64, (i % width) as f64 - 0.5 * width as f64);
        *v *= C::cis(slope[0] * y + slope[1] * x);
    });
    slope
}

/// A copy, made by all threads.
fn copied(image: &[C]) -> Vec<C> {
    map(items(image), |_, v| *v)
}

/// Transform of an image whose edges are faded and whose mean is taken off.
fn faded_spectrum(image: &[C], shape: [usize; 2], plan: &mut Plan<f64>) -> Vec<C> {
    let mut image = copied(image);
    fade(&mut image, shape);
    let mean = mean(&image);
    each(items_mut(&mut image), |_, v| *v -= mean);
    plan.run(&mut image, Direction::Forward);
    image
}

/// Shifts `a` to where its correlation with the image of which `spectrum` is the [`faded_spectrum`] is largest, by whole pixels
/// around the edges and a parabola between.
fn shift(a: &mut [C], spectrum: &[C], shape: [usize; 2], plan: &mut Plan<f64>) -> [f64; 2] {
    let [height, width] = shape;
    let mut cross = faded_spectrum(a, shape, plan);
    each(items_mut(&mut cross), |i, a| *a = spectrum[i] * a.conj());
    plan.run(&mut cross, Direction::Inverse);
    let power =
        |y: isize, x: isize| cross[y.rem_euclid(height as isize) as usize * width + x.rem_euclid(width as isize) as usize].norm_sqr();
    let brightest = |row: usize, line: &[C]| line.iter().map(C::norm_sqr).zip(row * width..).max_by(|a, b| a.0.total_cmp(&b.0));
    let brightest = map(chunks(&cross, width.max(1)), brightest).into_iter().flatten().max_by(|a, b| a.0.total_cmp(&b.0));
    let Some((_, best)) = brightest else { return [0.0; 2] };
    let (y, x) = ((best / width) as isize, (best % width) as isize);
    let between = |low: f64, here: f64, high: f64| {
        let curve = low - 2.0 * here + high;
        if curve < 0.0 { (0.5 * (low - high) / curve).clamp(-0.5, 0.5) } else { 0.0 }
    };
    let by = [
        signed(y as usize, height) + between(power(y - 1, x), power(y, x), power(y + 1, x)),
        signed(x as usize, width) + between(power(y, x - 1), power(y, x), power(y, x + 1)),
    ];
    drop(cross);
    if by != [0.0; 2] {
        displace_with(a, shape, by, plan);
    }
    by
}

/// Moves an image by pixels and parts of them, around the edges.
pub fn displace(a: &mut [C], shape: [usize; 2], by: [f64; 2]) {
    displace_with(a, shape, by, &mut Plan::new(Shape::frames(shape[0], shape[1], 1)));
}

fn displace_with(a: &mut [C], [height, width]: [usize; 2], by: [f64; 2], plan: &mut Plan<f64>) {
    plan.run(a, Direction::Forward);
    let scale = 1.0 / a.len() as f64;
    each(items_mut(a), |i, v| {
        let f = [signed(i / width, height) / height as f64, signed(i % width, width) / width as f64];
        *v *= C::cis(-std::f64::consts::TAU * (f[0] * by[0] + f[1] * by[1])) * scale;
    });
    plan.run(a, Direction::Inverse);
}

#[cfg(test)]
mod tests {
    use zellige_engine::rng::Philox;

    use super::*;

    /// A smooth random image.
    fn image(n: usize, seed: u64) -> Vec<C> {
        let philox = Philox::new(3, seed);
        let mut values: Vec<C> = (0..n * n).map(|i| philox.normals(0, i as u64)).map(|[a, b]| C::new(a, b)).collect();
        for (i, v) in values.iter_mut().enumerate() {
            let f = [signed(i / n, n), signed(i % n, n)];
            *v *= (-(f[0] * f[0] + f[1] * f[1]) / 60.0).exp();
        }
        Plan::new(Shape::frames(n, n, 1)).run(&mut values, Direction::Inverse);
        values.iter().map(|v| C::new(1.0, 0.0) + v * (0.1 / n as f64)).collect()
    }

    #[test]
    fn shifts_phases_and_factors_are_found() {
        let n = 64;
        let b = image(n, 1);
        let mut a = b.clone();
        a.rotate_right(3 * n + 2);
        for (i, v) in a.iter_mut().enumerate() {
            *v *= C::from_polar(2.0, 0.7 + 0.02 * (i % n) as f64 - 0.01 * (i / n) as f64);
        }
        align(&mut a, &b, [n, n]);
        let middle = (0..n * n).filter(|i| (8..56).contains(&(i / n)) && (8..56).contains(&(i % n)));
        let off: f64 = middle.clone().map(|i| (a[i] - b[i]).norm_sqr()).sum();
        let all: f64 = middle.map(|i| b[i].norm_sqr()).sum();
        // The parabola of a correlation peak some pixels wide is good to a hundredth of a pixel.
        assert!((off / all).sqrt() < 1e-2, "{}", (off / all).sqrt());
    }

    #[test]
    fn noise_ends_the_correlation_where_it_is_as_strong_as_the_image() {
        let n = 128;
        let clean = image(n, 1);
        let philox = Philox::new(4, 9);
        let noisy = |step: u64| -> Vec<C> {
            let noise = (0..n * n).map(|i| philox.normals(step, i as u64)).map(|[a, b]| C::new(a, b) * 1e-2);
            clean.iter().zip(noise).map(|(v, e)| v + e).collect()
        };
        let rings = rings(&noisy(0), &noisy(1), [n, n], [1e-9; 2]);
        // A hundred times the power of the noise: 0.99 on average, in rings of a few pixels of random strength less.
        assert!(rings.correlation[1..6].iter().all(|c| *c > 0.9), "{:?}", &rings.correlation[..6]);
        // Beyond the image there is noise only: its correlation scatters by one over the root of a ring's pixels, 400 at the end.
        assert!(rings.correlation[60].abs() < 0.2, "{}", rings.correlation[60]);
        let resolution = rings.half_bit_resolution();
        // Amplitude of the image at ring f is exp(-f^2/60) 0.1 n against 1e-2 n: equal at f^2 = 60 ln 10, ring 12.
        assert!((64e-9 / 22.0..64e-9 / 8.0).contains(&resolution), "{resolution:e}");
        assert!(super::rings(&noisy(0), &noisy(0), [n, n], [1e-9; 2]).half_bit_resolution() <= 1e-9);
    }

    /// Compares two images that are the same up to a frequency in metres, and have nothing in common beyond, on pixels and images
    /// of several shapes: the frequency is found in each.
    #[test]
    fn rings_are_round_in_metres() {
        let philox = Philox::new(5, 2);
        let ends = 0.125e9;
        for (shape, pixel) in [([96, 96], [1e-9; 2]), ([128, 64], [1e-9, 2e-9]), ([64, 128], [2e-9, 1e-9]), ([96, 160], [1e-9; 2])] {
            let make = |purpose: u64| -> Vec<C> {
                let noise = |step: u64, i: usize| philox.normals(step, i as u64);
                let value = |i: usize| {
                    let index = [signed(i / shape[1], shape[0]), signed(i % shape[1], shape[1])];
                    let q = [0, 1].map(|d| index[d] / (shape[d] as f64 * pixel[d]));
                    let common = q[0].hypot(q[1]) < ends;
                    let [re, im] = noise(if common { 0 } else { purpose }, i);
                    C::new(re, im) * if common { 2.0 } else { 1.0 }
                };
                let mut all: Vec<C> = (0..shape[0] * shape[1]).map(value).collect();
                Plan::new(Shape::frames(shape[0], shape[1], 1)).run(&mut all, Direction::Inverse);
                // Upon a mean, by which the phases are brought together.
                all.iter().map(|v| C::new(1.0, 0.0) + v * (0.05 / (all.len() as f64).sqrt())).collect()
            };
            let found = rings(&make(1), &make(2), shape, pixel);
            assert!((found.frequency.last().unwrap() - 1.0).abs() < 1e-6, "{:?}", found.frequency.last());
            // A ring is 1/96 of a cycle a nanometre wide or less, a twelfth of where it ends; fading mixes neighbours.
            let period = found.half_bit_resolution();
            assert!((period * 2.0 * ends - 1.0).abs() < 0.15, "{shape:?} {pixel:?}: {period:e} m for {:e} m", 0.5 / ends);
        }
    }
}
