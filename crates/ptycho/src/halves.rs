//! Two reconstructions of half of the frames each, and how well they agree; and the distance from a known truth.

use num_complex::Complex;
use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::device::Device;
use zellige_engine::error::Result;
use zellige_engine::profile::Profiler;

use crate::config::Config;
use crate::model::{Model, Power};
use crate::reconstruction::Reconstruction;
use crate::resolution::{self, Rings};
use crate::scan::Truth;
use crate::stages::Room;

/// The reconstructions of the even and of the odd frames.
pub struct Halves([Reconstruction; 2]);

impl Halves {
    /// Sets both up.
    pub fn new(config: &Config, model: &Model, device: &Device, seed: u64, room: &Room) -> Result<Self> {
        let half = |first| Reconstruction::within(config, half(model, first), device, seed, room);
        Ok(Self([half(0)?, half(1)?]))
    }

    /// An iteration of each.
    pub fn advance(&mut self, profiler: &mut Profiler) -> Result<()> {
        self.0.iter_mut().try_for_each(|half| half.advance(profiler))
    }

    /// How well the first layers of their first objects agree where both see enough.
    pub fn rings(&mut self) -> Result<Rings> {
        let [a, b] = &mut self.0;
        let model = a.model.clone_shape();
        let seen: Vec<u32> = seen(&a.model).into_iter().zip(seen(&b.model)).map(|(a, b)| a.min(b)).collect();
        let (box_, shape) = inner(&seen, model.0);
        let cut = |state: crate::model::State| window(&state.object, model.0[1], box_, shape);
        let (a_, b_) = (cut(a.state()?), cut(b.state()?));
        Ok(resolution::rings(&a_, &b_, shape, model.1))
    }

    /// Writes both.
    pub fn save(&mut self, writer: &mut Writer) -> Result<()> {
        self.0[0].save("even.", writer)?;
        self.0[1].save("odd.", writer)
    }

    /// Takes both back.
    pub fn restore(&mut self, reader: &Reader) -> Result<()> {
        self.0[0].restore("even.", reader)?;
        self.0[1].restore("odd.", reader)
    }
}

impl Model {
    /// Shape of the first object and the larger edge of a pixel.
    fn clone_shape(&self) -> ([usize; 2], f64) {
        (self.storages[0].shape, self.pixel[0].max(self.pixel[1]))
    }
}

/// Every other view, from number `first` on.
fn half(model: &Model, first: usize) -> Model {
    let pixels = model.counted();
    let every = |i: &usize| i % 2 == first;
    let mag: Vec<f32> = model.mag.chunks_exact(pixels).enumerate().filter(|(i, _)| every(i)).flat_map(|(_, m)| m).copied().collect();
    Model {
        views: model.views.iter().enumerate().filter(|(i, _)| every(i)).map(|(_, v)| *v).collect(),
        shifts: model.shifts.iter().enumerate().filter(|(i, _)| every(i)).map(|(_, s)| *s).collect(),
        power: Power::of(&mag, pixels),
        mag,
        storages: model.storages.clone(),
        transfer: model.transfer.clone(),
        filter: model.filter.clone(),
        start: model.start.clone(),
        scans: model.scans.iter().map(|(name, at)| (name.clone(), at / 2)).collect(),
        ..*model
    }
}

/// How many views see each pixel of the first object.
pub fn seen(model: &Model) -> Vec<u32> {
    let [height, width] = model.storages[0].shape;
    // Corners of the views, summed twice: a million views cost as much as their corners.
    let mut corners = vec![0_i64; (height + 1) * (width + 1)];
    for view in model.views.iter().filter(|v| v.object == 0) {
        let (y, x) = (view.row as usize, view.col as usize);
        for (dy, dx, sign) in [(0, 0, 1), (model.frame[0], 0, -1), (0, model.frame[1], -1), (model.frame[0], model.frame[1], 1)] {
            corners[(y + dy) * (width + 1) + x + dx] += sign;
        }
    }
    for y in 0..height {
        for x in 1..=width {
            corners[y * (width + 1) + x] += corners[y * (width + 1) + x - 1];
        }
        if y > 0 {
            for x in 0..=width {
                corners[y * (width + 1) + x] += corners[(y - 1) * (width + 1) + x];
            }
        }
    }
    (0..height * width).map(|i| corners[i / width * (width + 1) + i % width].max(0) as u32).collect()
}

/// Largest box about the middle whose pixels are all seen by at least a quarter of the views that see the best one: first pixel, shape.
fn inner(seen: &[u32], [height, width]: [usize; 2]) -> ([usize; 2], [usize; 2]) {
    let enough = (seen.iter().copied().max().unwrap_or(0) / 4).max(2);
    let fits = |n: usize| {
        let m = width.saturating_sub(2 * n * width / height.max(1)).max(2);
        let (y0, x0) = (n, (width - m) / 2);
        let shape = [height - 2 * n, m];
        let inside = (y0..y0 + shape[0]).all(|y| (x0..x0 + m).all(|x| seen[y * width + x] >= enough));
        inside.then_some(([y0, x0], shape))
    };
    (0..height.saturating_sub(8) / 2).find_map(fits).unwrap_or(([0, 0], [height, width]))
}

fn window(object: &[Complex<f64>], width: usize, [y0, x0]: [usize; 2], [ny, nx]: [usize; 2]) -> Vec<Complex<f64>> {
    (0..ny * nx).map(|i| object[(y0 + i / nx) * width + x0 + i % nx]).collect()
}

/// Relative distance of the first object from the truth where enough views look, after shift, linear phase and factor; none where the
/// truth does not reach.
pub fn off_truth(whole: &mut Reconstruction, truth: &Truth) -> Result<Option<f64>> {
    let Some((found, expected, _)) = beside_truth(whole, truth)? else { return Ok(None) };
    let off: f64 = found.iter().zip(&expected).map(|(a, b)| (a - b).norm_sqr()).sum();
    Ok(Some((off / expected.iter().map(Complex::norm_sqr).sum::<f64>()).sqrt()))
}

/// Object (aligned) and truth on the same pixels, and their shape; `None` where the truth does not reach.
#[allow(clippy::type_complexity)] // a pair of images and their shape
pub fn beside_truth(whole: &mut Reconstruction, truth: &Truth) -> Result<Option<(Vec<Complex<f64>>, Vec<Complex<f64>>, [usize; 2])>> {
    let state = whole.state()?;
    let model = &whole.model;
    let storage = model.storages[0];
    let (corner, shape) = inner(&seen(model), storage.shape);
    let mut found = window(&state.object, storage.shape[1], corner, shape);
    // On whole pixels of the truth, which is not blurred then: the rest is a shift that is taken out below.
    let origin = [0, 1].map(|d| {
        let (place, of) = (storage.origin[d] + corner[d] as f64 * model.pixel[d], truth.object.origin[d]);
        of + ((place - of) / model.pixel[d]).round() * model.pixel[d]
    });
    let Some(expected) = crate::start::sampled(&truth.object, shape, origin, model.pixel) else { return Ok(None) };
    resolution::align(&mut found, &expected, shape);
    Ok(Some((found, expected, shape)))
}
