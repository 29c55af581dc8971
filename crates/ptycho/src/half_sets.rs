//! Two reconstructions of half of the frames each, and how well they agree; and the distance from a known truth.

use num_complex::Complex;
use zellige_engine::checkpoint::{Reader, Writer};
use zellige_engine::device::Device;
use zellige_engine::error::Result;
use zellige_engine::parallel::{each, indices, items, items_mut, map};
use zellige_engine::profile::Profiler;

use crate::config::{Config, EngineConfig};
use crate::memory::MemoryBudget;
use crate::model::{Model, Power, State, Storage};
use crate::modes;
use crate::ordered;
use crate::reconstruction::Reconstruction;
use crate::resolution::{self, ImageShift, RingCorrelation};
use crate::scan::Truth;

/// The reconstructions of the even and of the odd frames.
pub struct HalfSets([Reconstruction; 2]);

impl HalfSets {
    /// Sets both up.
    pub fn new(config: &Config, model: &Model, device: &Device, seed: u64, budget: &MemoryBudget) -> Result<Self> {
        let half_model = |first| Reconstruction::within(config, half_model(model, first)?, device, seed, budget);
        Ok(Self([half_model(0)?, half_model(1)?]))
    }

    /// Peak memory of the stages of both so far, bytes.
    pub fn memory_peak(&self) -> u64 {
        self.0.iter().map(|half_model| half_model.stages.memory_peak()).sum()
    }

    /// An iteration of each.
    pub fn advance(&mut self, profiler: &mut Profiler) -> Result<()> {
        self.0.iter_mut().try_for_each(|half_model| half_model.advance(profiler))
    }

    /// Both go on to their next engine.
    pub fn end_engine(&mut self, profiler: &mut Profiler) -> Result<()> {
        self.0.iter_mut().try_for_each(|half_model| half_model.end_engine(profiler))
    }

    /// Computes the agreement of the first layers of each of the two objects where both have enough views; objects that one of them
    /// does not have are left out.
    pub fn rings(&mut self) -> Result<Vec<(usize, RingCorrelation)>> {
        let [a, b] = &mut self.0;
        let (one, other) = (a.state()?, b.state()?);
        let of_object = |(number, storage): (usize, &Storage)| {
            let views_per_pixel = [&a.model, &b.model].map(|m| views_per_pixel(m, number));
            let both: Vec<u32> = views_per_pixel[0].iter().zip(&views_per_pixel[1]).map(|(a, b)| *a.min(b)).collect();
            let (corner, shape) = common_area(&both, storage.shape);
            let cut = |state: &State| window(&state.object[storage.offset..], storage.shape[1], corner, shape);
            let rings = || {
                let [mut one, other] = [cut(&one), cut(&other)];
                resolution::align(&mut one, &other, shape);
                resolution::rings(&one, &other, shape, a.model.pixel)
            };
            both.iter().any(|n| *n > 0).then(|| (number, rings()))
        };
        Ok(a.model.storages.iter().enumerate().filter_map(of_object).collect())
    }

    /// Writes both.
    pub fn save(&mut self, writer: &mut Writer) -> Result<()> {
        self.0[0].save("even.", writer)?;
        self.0[1].save("odd.", writer)
    }

    /// Takes both back.
    pub fn restore(&mut self, reader: &Reader, before: &[EngineConfig]) -> Result<()> {
        self.0[0].restore("even.", reader, before)?;
        self.0[1].restore("odd.", reader, before)
    }
}

/// Model of every other view, from number `first` on.
fn half_model(model: &Model, first: usize) -> Result<Model> {
    let every = |i: &usize| i % 2 == first;
    let mag: Vec<f32> = model.own().filter(every).flat_map(|j| model.moduli(j)).copied().collect();
    let share = model.share.of_kept(|j| every(&j));
    Ok(Model {
        views: model.views.iter().enumerate().filter(|(i, _)| every(i)).map(|(_, v)| *v).collect(),
        shifts: model.shifts.iter().enumerate().filter(|(i, _)| every(i)).map(|(_, s)| *s).collect(),
        power: Power::of_parts(&mag, model.counted(), &share)?,
        mag,
        share,
        storages: model.storages.clone(),
        transfer: model.transfer.clone(),
        filter: model.filter.clone(),
        start: model.start.clone(),
        scans: model.scans.iter().map(|(name, at)| (name.clone(), at / 2)).collect(),
        begins: model.begins.clone(),
        ..*model
    })
}

/// Number of views that see each pixel of an object.
pub fn views_per_pixel(model: &Model, object: usize) -> Vec<u32> {
    let [height, width] = model.storages[object].shape;
    // Corners of the views, summed twice: a million views cost as much as their corners.
    let mut corners = vec![0_i32; (height + 1) * (width + 1)];
    for view in model.views.iter().filter(|v| v.object as usize == object) {
        let (y, x) = (view.row as usize, view.col as usize);
        for (dy, dx, sign) in [(0, 0, 1), (model.frame[0], 0, -1), (0, model.frame[1], -1), (model.frame[0], model.frame[1], 1)] {
            corners[(y + dy) * (width + 1) + x + dx] += sign;
        }
    }
    let mut views_per_pixel = vec![0; height * width];
    let mut columns = vec![0; width];
    for (line, corners) in views_per_pixel.chunks_exact_mut(width.max(1)).zip(corners.chunks_exact(width + 1)) {
        let mut sum = 0;
        for ((to, column), corner) in line.iter_mut().zip(&mut columns).zip(corners) {
            *column += corner;
            sum += *column;
            *to = sum.max(0) as u32;
        }
    }
    views_per_pixel
}

/// Largest number up to `n` without prime factors above 7: Fourier transforms of such lengths take the least time.
fn smooth(n: usize) -> usize {
    let rest =
        |m: usize| [2, 3, 5, 7].iter().fold(m, |m, p| std::iter::successors(Some(m), |m| (m % p == 0).then(|| m / p)).last().unwrap_or(m));
    (1..=n).rev().find(|m| rest(*m) == 1).unwrap_or(n)
}

/// Large box about the middle whose pixels are all seen by at least a quarter of the views that see the best one: first pixel,
/// shape, of lengths that are fast to transform.
fn common_area(views_per_pixel: &[u32], [height, width]: [usize; 2]) -> ([usize; 2], [usize; 2]) {
    let enough = (views_per_pixel.iter().copied().max().unwrap_or(0) / 4).max(2);
    let fits = |n: usize| {
        let m = width.saturating_sub(2 * n * width / height.max(1)).max(2);
        let (y0, x0) = (n, (width - m) / 2);
        let shape = [height - 2 * n, m];
        let inside = (y0..y0 + shape[0]).all(|y| (x0..x0 + m).all(|x| views_per_pixel[y * width + x] >= enough));
        inside.then_some(([y0, x0], shape))
    };
    // Boxes lie within one another: from one that fits on, all do.
    let (mut least, mut end) = (0, height.saturating_sub(8) / 2);
    let last = end;
    while least < end {
        let middle = least.midpoint(end);
        if fits(middle).is_some() {
            end = middle;
        } else {
            least = middle + 1;
        }
    }
    let (corner, shape) = if least < last { fits(least) } else { None }.unwrap_or(([0, 0], [height, width]));
    let smooth = shape.map(smooth);
    ([0, 1].map(|d| corner[d] + (shape[d] - smooth[d]) / 2), smooth)
}

/// Pixels of an object that are set beside its truth.
pub(crate) fn compared_pixels(model: &Model, object: usize) -> usize {
    let (_, [height, width]) = common_area(&views_per_pixel(model, object), model.storages[object].shape);
    height * width
}

fn window(object: &[Complex<f64>], width: usize, [y0, x0]: [usize; 2], [ny, nx]: [usize; 2]) -> Vec<Complex<f64>> {
    map(indices(ny * nx), |_, i| object[(y0 + i / nx) * width + x0 + i % nx])
}

/// An object beside what its scan was made from.
pub struct TruthComparison {
    /// Number of the object.
    pub object: usize,
    /// Found, aligned to the truth.
    pub found: Vec<Complex<f64>>,
    /// The truth on the same pixels.
    pub expected: Vec<Complex<f64>>,
    /// Rows and columns of both.
    pub shape: [usize; 2],
    /// Shift of the object; a probe that moves with it moves as far, with the opposite slope of its phase.
    pub moved: ImageShift,
}

impl TruthComparison {
    /// Relative distance of the two.
    pub fn relative_distance(&self) -> f64 {
        let Self { found, expected, .. } = self;
        let off: f64 = ordered::sum(found.len(), |i| (found[i] - expected[i]).norm_sqr());
        (off / ordered::sum(expected.len(), |i| expected[i].norm_sqr())).sqrt()
    }
}

/// Relative distance of the first object from the truth; none where the truth does not reach.
pub fn distance_from_truth(whole: &mut Reconstruction, truth: &Truth) -> Result<Option<f64>> {
    let state = whole.state()?;
    Ok(compare_with_truth(&whole.model, &state, 0, truth).map(|b| b.relative_distance()))
}

/// Each object where enough views look, after shift, linear phase and factor, beside the truth of the first of its scans that has
/// one and reaches so far.
pub fn compare_with_truths(whole: &mut Reconstruction, truths: &[Option<Truth>]) -> Result<Vec<TruthComparison>> {
    if truths.iter().all(Option::is_none) {
        return Ok(Vec::new());
    }
    let state = whole.state()?;
    let model = &whole.model;
    let of_scan = |first: usize| model.views.get(first).map(|v| v.object as usize);
    let of_object = |number: usize| {
        let own = model.scans.iter().zip(truths).filter(|((_, first), _)| of_scan(*first) == Some(number));
        own.filter_map(|(_, truth)| truth.as_ref()).find_map(|truth| compare_with_truth(model, &state, number, truth))
    };
    Ok((0..model.storages.len()).filter_map(of_object).collect())
}

/// An object and a truth on the same pixels; `None` where the truth does not reach.
fn compare_with_truth(model: &Model, state: &State, object: usize, truth: &Truth) -> Option<TruthComparison> {
    let storage = model.storages[object];
    let (corner, shape) = common_area(&views_per_pixel(model, object), storage.shape);
    let mut found = window(&state.object[storage.offset..], storage.shape[1], corner, shape);
    // On whole pixels of the truth, which is not blurred then: the rest is a shift that is taken out below.
    let origin = [0, 1].map(|d| {
        let (position, of) = (storage.origin[d] + corner[d] as f64 * model.pixel[d], truth.object.origin[d]);
        of + ((position - of) / model.pixel[d]).round() * model.pixel[d]
    });
    let expected = crate::start::sampled(&truth.object, shape, origin, model.pixel)?;
    let mut moved = resolution::align(&mut found, &expected, shape);
    for d in 0..2 {
        // Of the shift this much is between the pixels of the two.
        moved.shift[d] += (origin[d] - storage.origin[d]) / model.pixel[d] - corner[d] as f64;
    }
    Some(TruthComparison { object, found, expected, shape, moved })
}

/// Fidelity of each probe of several modes, or of a truth of several, with the truth of the first of its scans that has one on the
/// same pixels: the name of the scan, and the overlap of the two mixed states ([`modes::fidelity`]) after the shift and slope that
/// bring the object to its truth, as `comparisons` has them.
pub fn fidelities(whole: &mut Reconstruction, truths: &[Option<Truth>], comparisons: &[TruthComparison]) -> Result<Vec<(String, f64)>> {
    let state = whole.state()?;
    let model = &whole.model;
    let size = model.modes[0] * model.pixels();
    let of_set = |set: usize| {
        let mut own = model.scans.iter().zip(truths).filter_map(|((name, first), truth)| {
            let view = model.views.get(*first).filter(|v| v.probe as usize == set)?;
            let moved = comparisons.iter().find(|b| b.object == view.object as usize)?.moved;
            Some((name, truth.as_ref().filter(|t| t.probe.shape[1..] == model.frame)?, moved))
        });
        let (name, truth, moved) = own.next()?;
        if model.modes[0].max(truth.probe.shape[0]) == 1 {
            return None;
        }
        let mut found = state.probe[set * size..(set + 1) * size].to_vec();
        for mode in found.chunks_exact_mut(model.pixels()) {
            each(items_mut(mode), |i, v| {
                let at = [i / model.frame[1], i % model.frame[1]];
                *v *= Complex::cis(-(moved.slope[0] * at[0] as f64 + moved.slope[1] * at[1] as f64));
            });
            resolution::displace(mode, model.frame, moved.shift);
        }
        let expected = map(items(&truth.probe.values), |_, v| Complex::new(f64::from(v.re), f64::from(v.im)));
        Some((name.clone(), modes::fidelity(&found, &expected, model.pixels())))
    };
    Ok((0..model.probes).filter_map(of_set).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compared_areas_have_lengths_that_are_fast_to_transform() {
        assert_eq!([0, 1, 11, 97, 2381, 2400].map(smooth), [0, 1, 10, 96, 2352, 2400]);
        // Enough views from row 3 to row 99 on, and across as far as the shape of the object asks: 96 rows of 97, in their middle.
        let seen = |i: usize| if (3..100).contains(&(i / 103)) { 8 } else { 1 };
        let views_per_pixel: Vec<u32> = (0..103 * 103).map(seen).collect();
        assert_eq!(common_area(&views_per_pixel, [103, 103]), ([3, 3], [96, 96]));
    }
}
