//! The arrays on the CPU, and how they come in and go out.
//!
//! All waves are planes: real parts, then imaginary parts. Frames have rows padded to `sx` numbers with zeros in the padding;
//! Fourier space lies transposed (`[nx][sy]`), and so do the moduli of a far detector, with [`MASKED`] in the padding. A layer of
//! an object is `[H][W]` and [`PAD`] numbers of nothing, so that a padded row of a patch can be read anywhere.

use std::path::Path;

use num_complex::Complex;
use zellige_engine::error::Result;
use zellige_engine::large::Large;
use zellige_engine::parallel::{chunks, chunks_mut, each, items, items_mut, map};

use super::fft::{PAD, Shape};
use super::lanes::Number;
use crate::model::{MASKED, Model, Storage, View};
use crate::noise;

/// Location of a storage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoragePlanes {
    /// Rows and columns.
    pub(crate) shape: [usize; 2],
    /// Offset of its first number.
    pub(crate) offset: usize,
    /// Numbers of a plane.
    pub(crate) plane: usize,
    /// Storage as the model has it.
    pub(crate) model: Storage,
}

impl StoragePlanes {
    pub(crate) fn all(storages: &[Storage], layers: usize) -> Vec<Self> {
        let mut offset = 0;
        let storage = |model: &Storage| {
            let plane = model.layer() + PAD;
            let storage = Self { shape: model.shape, offset, plane, model: *model };
            offset += 2 * plane * layers;
            storage
        };
        storages.iter().map(storage).collect()
    }

    /// The planes of layer `o` in the array of all objects.
    pub(crate) fn layer<'a, T>(&self, object: &'a [T], o: usize) -> [&'a [T]; 2] {
        let start = self.offset + 2 * o * self.plane;
        [&object[start..start + self.plane], &object[start + self.plane..start + 2 * self.plane]]
    }

    /// Mutable layer `o` of the storage, real and imaginary parts.
    pub(crate) fn layer_mut<'a, T>(&self, object: &'a mut [T], o: usize) -> [&'a mut [T]; 2] {
        let start = self.offset + 2 * o * self.plane;
        object[start..start + 2 * self.plane].split_at_mut(self.plane).into()
    }

    /// Number of the first pixel of a view's row `y` in a plane.
    #[inline(always)]
    pub(crate) fn at(&self, view: &View, y: usize) -> usize {
        (view.row as usize + y) * self.shape[1] + view.col as usize
    }
}

/// The two halves.
#[inline(always)]
pub(crate) fn planes<T>(wave: &[T]) -> [&[T]; 2] {
    wave.split_at(wave.len() / 2).into()
}

/// The two halves to write to.
#[inline(always)]
pub(crate) fn planes_mut<T>(wave: &mut [T]) -> [&mut [T]; 2] {
    let half = wave.len() / 2;
    wave.split_at_mut(half).into()
}

/// Frames `[..][ny][nx]` of complex numbers as padded planes `[..][2][ny][sx]`.
pub(crate) fn pack_frames<T: Number>(values: &[Complex<f64>], shape: Shape) -> Vec<T> {
    let Shape { ny, nx, sx, .. } = shape;
    let mut out = vec![T::ZERO; values.len() / (ny * nx) * 2 * shape.stored()];
    for (frame, out) in values.chunks_exact(ny * nx).zip(out.chunks_exact_mut(2 * shape.stored())) {
        let [re, im] = planes_mut(out);
        for (i, value) in frame.iter().enumerate() {
            let at = i / nx * sx + i % nx;
            (re[at], im[at]) = (T::from_f64(value.re), T::from_f64(value.im));
        }
    }
    out
}

/// Back.
pub(crate) fn unpack_frames<T: Number>(values: &[T], shape: Shape) -> Vec<Complex<f64>> {
    let Shape { ny, nx, sx, .. } = shape;
    let mut out = Vec::with_capacity(values.len() / (2 * shape.stored()) * ny * nx);
    for frame in values.chunks_exact(2 * shape.stored()) {
        let [re, im] = planes(frame);
        let at = (0..ny).flat_map(|y| (0..nx).map(move |x| y * sx + x));
        out.extend(at.map(|i| Complex::new(re[i].to_f64(), im[i].to_f64())));
    }
    out
}

/// Objects as planes.
pub(crate) fn pack_objects<T: Number>(values: &[Complex<f64>], storages: &[StoragePlanes], layers: usize) -> Vec<T> {
    let mut out = vec![T::ZERO; storages.iter().map(|p| 2 * p.plane * layers).sum()];
    for storage in storages {
        for o in 0..layers {
            let from = &values[storage.model.offset + o * storage.model.layer()..][..storage.model.layer()];
            let [re, im] = storage.layer_mut(&mut out, o);
            for (i, value) in from.iter().enumerate() {
                (re[i], im[i]) = (T::from_f64(value.re), T::from_f64(value.im));
            }
        }
    }
    out
}

/// Back.
pub(crate) fn unpack_objects<T: Number>(values: &[T], storages: &[StoragePlanes], layers: usize) -> Vec<Complex<f64>> {
    let mut out = vec![Complex::default(); storages.iter().map(|p| p.model.layer() * layers).sum()];
    let mut rest = &mut out[..];
    for storage in storages {
        for o in 0..layers {
            let [re, im] = storage.layer(values, o);
            let own = rest.split_off_mut(..storage.model.layer()).unwrap_or_default();
            each((items_mut(own), items(re), items(im)), |_, (to, re, im)| *to = Complex::new(re.to_f64(), im.to_f64()));
        }
    }
    out
}

/// Lines and their length of what the detector sees: transposed for a far one.
pub(crate) fn detector(shape: Shape, far: bool) -> [usize; 2] {
    if far { [shape.sx, shape.sy] } else { [shape.sy, shape.sx] }
}

/// A plane `[ny][nx]` in the order of the transform as the detector's plane lies here, `padding` in the padding.
pub(crate) fn to_detector<T: Copy>(values: &[T], shape: Shape, far: bool, padding: T) -> Vec<T> {
    let [lines, length] = detector(shape, far);
    let mut out = vec![padding; lines * length];
    for (i, value) in values.iter().enumerate() {
        let (y, x) = (i / shape.nx, i % shape.nx);
        out[if far { x * length + y } else { y * length + x }] = *value;
    }
    out
}

/// Back, without the padding.
pub(crate) fn from_detector<T: Copy>(values: &[T], shape: Shape, far: bool) -> Vec<T> {
    let [_, length] = detector(shape, far);
    let at = |y: usize, x: usize| if far { x * length + y } else { y * length + x };
    (0..shape.ny).flat_map(|y| (0..shape.nx).map(move |x| (y, x))).map(|(y, x)| values[at(y, x)]).collect()
}

/// Moduli of own frames, in a file in `folder` if there is one, and of each the number of pixels that count and the mean variance
/// of their moduli.
pub(crate) fn moduli<T: Number>(model: &Model, shape: Shape, far: bool, folder: Option<&Path>) -> Result<(Large<T>, Vec<[f64; 2]>)> {
    let mut out = Large::zeros(model.own().len() * shape.plane(), folder)?;
    let frames = (chunks_mut(&mut out, shape.plane()), chunks(&model.mag, model.counted()));
    let valid = map(frames, |_, (out, frame)| {
        for (out, m) in out.iter_mut().zip(to_detector(frame, shape, far, MASKED)) {
            *out = T::from_f64(f64::from(m));
        }
        let [[_, noise]] = noise::of_frames(frame, frame.len())[..] else { unreachable!("one frame") };
        [frame.iter().filter(|m| **m >= 0.0).count() as f64, noise]
    });
    Ok((out, valid))
}
