//! The probe and the object to start from.

use num_complex::Complex;
use zellige_engine::ops::fft::{Direction, Plan, Shape};
use zellige_engine::parallel::{each, indices, items_mut, map};
use zellige_engine::rng::Philox;

use crate::config::{ProbeConfig, ProbeShape};
use crate::engines::{corner_first, middle_first};
use crate::model::Storage;
use crate::modes::orthonormal;
use crate::propagation::{fresnel, signed};
use crate::scan::{Beam, Image, Propagation};

pub(crate) mod mean;

type C = Complex<f64>;

/// Random numbers of the starting modes of an object.
const PURPOSE_OBJECT: u32 = 0x4100;
/// Part of the power in the further modes of an object.
const OBJECT_PART: f64 = 0.1;
/// Distance from an image, in pixels, within which a position belongs to its edge: rounding.
const SLACK: f64 = 1e-6;

/// Modes `[P][ny][nx]` in the sample plane of total power `photons`.
pub(crate) fn probe(config: &ProbeConfig, beam: &Beam, shape: [usize; 2], modes: usize, photons: f64) -> Vec<C> {
    let first = opening(config, beam, shape);
    with_modes(vec![first], shape, modes, config.mode_power, photons)
}

/// An opening that is far larger than what it is drawn on, in words: a length in another unit.
pub(crate) fn beyond(config: &ProbeConfig, beam: &Beam, shape: [usize; 2]) -> Option<String> {
    let (size, pixel) = (config.size?, beam.resolution(shape));
    // Of the sample plane, or of the lens's plane.
    let field = [0, 1].map(|d| config.focal_length.map_or(shape[d] as f64 * pixel[d], |f| beam.wavelength * f / pixel[d]));
    let widest = field[0].max(field[1]);
    let on = if config.focal_length.is_some() { "the plane of the lens has" } else { "a frame covers" };
    (size > 10.0 * widest).then(|| format!("`probe.size` is {size:e} m, {on} {widest:.3e} m: is it in metres? The whole field is lit"))
}

/// Makes the modes of a probe from a known first mode.
pub(crate) fn probe_of(first: Vec<C>, config: &ProbeConfig, shape: [usize; 2], photons: f64) -> Vec<C> {
    with_modes(vec![first], shape, config.modes, config.mode_power, photons)
}

/// The modes of a file, as many as are wanted, with the power of the frames where it is known.
pub(crate) fn probe_from(image: &Image, shape: [usize; 2], modes: usize, power: f64, photons: Option<f64>) -> Vec<C> {
    let wide = |v: &Complex<f32>| C::new(f64::from(v.re), f64::from(v.im));
    let frame = shape[0] * shape[1];
    let given: Vec<Vec<C>> = image.values.chunks_exact(frame).take(modes).map(|m| m.iter().map(wide).collect()).collect();
    let own: f64 = given.iter().flatten().map(C::norm_sqr).sum();
    if given.len() == modes && photons.is_none() {
        return given.concat();
    }
    with_modes(given, shape, modes, power, photons.unwrap_or(own))
}

/// The image in the middle of a larger one, nothing around it.
pub(crate) fn widened(image: &Image, [height, width]: [usize; 2]) -> Image {
    let [modes, ny, nx] = image.shape;
    let (top, left) = (height / 2 - ny / 2, width / 2 - nx / 2);
    let mut values = vec![Complex::default(); modes * height * width];
    for (row, from) in image.values.chunks_exact(nx).enumerate() {
        let at = (row / ny * height + top + row % ny) * width + left;
        values[at..at + nx].copy_from_slice(from);
    }
    let origin = [top, left];
    let origin = [0, 1].map(|d| image.origin[d] - origin[d] as f64 * image.spacing[d]);
    Image { shape: [modes, height, width], values, origin, spacing: image.spacing }
}

/// Adds modes (the first times polynomials of the distance from its middle, made orthogonal) and brings all to the power `photons`.
fn with_modes(mut given: Vec<Vec<C>>, shape: [usize; 2], modes: usize, power: f64, photons: f64) -> Vec<C> {
    let norm = |wave: &[C]| wave.iter().map(C::norm_sqr).sum::<f64>();
    let brought = |mut all: Vec<C>| {
        let scale = (photons / norm(&all)).sqrt();
        each(items_mut(&mut all), |_, v| *v *= scale);
        all
    };
    if given.len() >= modes {
        return brought(given.concat());
    }
    let first = given[0].clone();
    let strength = norm(&first);
    let moment = |f: &dyn Fn(usize, usize) -> f64| {
        let sum: f64 = first.iter().enumerate().map(|(i, v)| v.norm_sqr() * f(i / shape[1], i % shape[1])).sum();
        sum / strength
    };
    let middle = [moment(&|y, _| y as f64), moment(&|_, x| x as f64)];
    let width = [moment(&|y, _| (y as f64 - middle[0]).powi(2)), moment(&|_, x| (x as f64 - middle[1]).powi(2))].map(|v| v.sqrt().max(1.0));
    // Degrees (1, 0), (0, 1), (2, 0), (1, 1), (0, 2), ..
    let mut degrees = (1..).flat_map(|d: i32| (0..=d).map(move |i| (d - i, i)));
    while given.len() < modes {
        let Some((dy, dx)) = degrees.next() else { break };
        let at = |i: usize, d: usize| (i as f64 - middle[d]) / width[d];
        let factor = |i: usize| at(i / shape[1], 0).powi(dy) * at(i % shape[1], 1).powi(dx);
        let mut wave: Vec<C> = first.iter().enumerate().map(|(i, v)| v * factor(i)).collect();
        orthonormal(&mut wave, &given);
        let scale = (power * strength).sqrt();
        for v in &mut wave {
            *v *= scale;
        }
        given.push(wave);
    }
    brought(given.concat())
}

/// The opening, or what its lens focuses, behind some distance.
fn opening(config: &ProbeConfig, beam: &Beam, [ny, nx]: [usize; 2]) -> Vec<C> {
    let spacing = beam.resolution([ny, nx]);
    let field = [ny as f64 * spacing[0], nx as f64 * spacing[1]];
    if beam.propagation == Propagation::Near && config.opening().is_empty() {
        // The near field is lit as a whole.
        return vec![C::new(1.0, 0.0); ny * nx];
    }
    // Soft over a pixel at least, so that its transform does not ring.
    let edge = |inside: f64, pixel: f64| (inside / config.soft_edge.unwrap_or(pixel).max(pixel) + 0.5).clamp(0.0, 1.0);
    let disc = |y: f64, x: f64, half: [f64; 2], pixel: [f64; 2]| {
        edge((1.0 - (y / half[0]).hypot(x / half[1])) * half[0].min(half[1]), pixel[0].max(pixel[1]))
    };
    let inside = |y: f64, x: f64, half: [f64; 2], pixel: [f64; 2]| {
        let open = match config.shape {
            ProbeShape::Round => disc(y, x, half, pixel),
            ProbeShape::Square => edge(half[0] - y.abs(), pixel[0]) * edge(half[1] - x.abs(), pixel[1]),
        };
        open * config.central_stop.map_or(1.0, |stop| 1.0 - disc(y, x, [0.5 * stop; 2], pixel))
    };
    let shape = Shape::frames(ny, nx, 1);
    let scale = 1.0 / (ny * nx) as f64;
    let mut wave: Vec<C> = if let Some(focal) = config.focal_length {
        // The lens's plane is the Fourier plane of its focus: a pixel there is lambda f over the field.
        let pixel = [0, 1].map(|d| beam.wavelength * focal / field[d]);
        let half = config.size.map_or([0, 1].map(|d| 0.25 * pixel[d] * [ny, nx][d] as f64), |s| [0.5 * s; 2]);
        let pupil = |i: usize| inside(signed(i / nx, ny) * pixel[0], signed(i % nx, nx) * pixel[1], half, pixel);
        let mut wave: Vec<C> = (0..ny * nx).map(|i| C::new(pupil(i), 0.0)).collect();
        Plan::new(shape).run(&mut wave, Direction::Inverse);
        middle_first(&wave, [ny, nx])
    } else {
        let half = config.size.map_or([0.25 * field[0], 0.25 * field[1]], |s| [0.5 * s; 2]);
        let at = |i: usize, n: usize, d: usize| (i as f64 - (n / 2) as f64) * spacing[d];
        (0..ny * nx).map(|i| C::new(inside(at(i / nx, ny, 0), at(i % nx, nx, 1), half, spacing), 0.0)).collect()
    };
    if let Some(defocus) = config.defocus.filter(|z| *z != 0.0) {
        let kernel = fresnel(beam.wavelength, defocus, [ny, nx], spacing);
        let mut turned = corner_first(&wave, [ny, nx]);
        let mut plan = Plan::new(shape);
        plan.run(&mut turned, Direction::Forward);
        turned.iter_mut().zip(&kernel).for_each(|(v, k)| *v *= k * scale);
        plan.run(&mut turned, Direction::Inverse);
        wave = middle_first(&turned, [ny, nx]);
    }
    wave
}

/// Layers `[O][H][W]` of an object: the given image where it reaches, `fill` elsewhere. Further layers have random phases and a
/// tenth of the power together.
pub(crate) fn object(
    image: Option<&Image>,
    shape: [usize; 2],
    origin: [f64; 2],
    spacing: [f64; 2],
    modes: usize,
    fill: f64,
    seed: u64,
) -> Vec<C> {
    let pixels = shape[0] * shape[1];
    let philox = Philox::new(PURPOSE_OBJECT, seed);
    let mut all = Vec::with_capacity(if modes == 1 { 0 } else { modes * pixels });
    for o in 0..modes {
        let layer = image.filter(|i| o < i.shape[0]);
        let part = match (modes, o, layer) {
            (1, ..) | (_, _, Some(_)) => 1.0,
            (_, 0, None) => (1.0 - OBJECT_PART).sqrt(),
            _ => (OBJECT_PART / (modes - 1) as f64).sqrt(),
        };
        let value = |_, i: usize| {
            let position = [origin[0] + (i / shape[1]) as f64 * spacing[0], origin[1] + (i % shape[1]) as f64 * spacing[1]];
            if let Some(value) = layer.and_then(|image| at(image, o, position)) {
                return value;
            }
            let phase = if o == 0 { 0.0 } else { std::f64::consts::TAU * philox.uniforms(o as u64, i as u64)[0] };
            C::from_polar(fill * part, phase)
        };
        if modes == 1 {
            return map(indices(pixels), value);
        }
        all.extend(map(indices(pixels), value));
    }
    all
}

/// Part of the frames' pixels, whose first ones are at `seen` in a storage, that lies on an image; 1 without frames.
pub(crate) fn covered(
    image: &Image,
    storage: &Storage,
    spacing: [f64; 2],
    frame: [usize; 2],
    seen: impl Iterator<Item = [usize; 2]>,
) -> f64 {
    // Numbers of rows (columns) of the storage before each that lie on the image: both are aligned, so that frames cost no loop over their pixels.
    let before = [0, 1].map(|d| {
        let inside = |i: usize| {
            let index = (storage.origin[d] + i as f64 * spacing[d] - image.origin[d]) / image.spacing[d];
            usize::from(index >= -SLACK && index <= image.shape[1 + d] as f64 - 1.0 + SLACK)
        };
        let sums = (0..storage.shape[d]).scan(0, |sum, i| {
            *sum += inside(i);
            Some(*sum)
        });
        std::iter::once(0).chain(sums).collect::<Vec<usize>>()
    });
    let (mut inside, mut count) = (0.0, 0.0);
    for first in seen {
        let [rows, columns] = [0, 1].map(|d| before[d][first[d] + frame[d]] - before[d][first[d]]);
        inside += (rows * columns) as f64;
        count += (frame[0] * frame[1]) as f64;
    }
    if count > 0.0 { inside / count } else { 1.0 }
}

/// Layer `o` of an image at a point, between its four nearest pixels.
fn at(image: &Image, o: usize, position: [f64; 2]) -> Option<C> {
    let [_, height, width] = image.shape;
    let index = [0, 1].map(|d| (position[d] - image.origin[d]) / image.spacing[d]);
    let (y, x) = (index[0], index[1]);
    if !(y >= -SLACK && x >= -SLACK && y <= height as f64 - 1.0 + SLACK && x <= width as f64 - 1.0 + SLACK) {
        return None;
    }
    let (y0, x0) = ((y.max(0.0) as usize).min(height - 1), (x.max(0.0) as usize).min(width - 1));
    let (fy, fx) = ((y - y0 as f64).clamp(0.0, 1.0), (x - x0 as f64).clamp(0.0, 1.0));
    let pixel = |y: usize, x: usize| {
        let v = image.values[(o * height + y.min(height - 1)) * width + x.min(width - 1)];
        C::new(f64::from(v.re), f64::from(v.im))
    };
    let row = |y: usize| pixel(y, x0) * (1.0 - fx) + pixel(y, x0 + 1) * fx;
    Some(row(y0) * (1.0 - fy) + row(y0 + 1) * fy)
}

/// The first layer of an image at the pixels of a window; `None` where it does not reach all of them.
pub(crate) fn sampled(image: &Image, shape: [usize; 2], origin: [f64; 2], spacing: [f64; 2]) -> Option<Vec<C>> {
    let position = |i: usize| [origin[0] + (i / shape[1]) as f64 * spacing[0], origin[1] + (i % shape[1]) as f64 * spacing[1]];
    // If the first and the last pixel of the window lie on the image, all do.
    let last = (shape[0] * shape[1]).checked_sub(1)?;
    at(image, 0, position(0)).and(at(image, 0, position(last)))?;
    Some(map(indices(last + 1), |_, i| at(image, 0, position(i)).unwrap_or_default()))
}
