//! The overlap loop: object and probe from all exit waves. A band of rows of the object (of the probe) is one piece of work; it adds
//! the views that see it in their order.

use rayon::prelude::*;

use super::fft::PAD;
use super::lanes::{Lanes, Number, Work};
use super::store::{planes, planes_mut};
use super::view::Row;
use super::{Fixed, Host};
use crate::model::View;
use crate::stages::{ObjectLimits, Overlap};

/// Rows of an object in a piece of work.
pub(super) const BAND: usize = 32;
/// Rows of a probe in a piece of work.
const ROWS: usize = 4;

/// Sums of a band of the object over its views.
struct ObjectBand<'a, T> {
    fixed: &'a Fixed<T>,
    views: &'a [View],
    list: &'a [u32],
    probe: &'a [T],
    exit: &'a [T],
    /// Object mode, first row, width.
    layer: usize,
    first: usize,
    width: usize,
    /// Sums: numerator (two planes) and illumination.
    sums: [&'a mut [T]; 3],
}

impl<T: Number> Work<T> for ObjectBand<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes<T = T>>(self) {
        let Self { fixed, views, list, probe, exit, layer, first, width, sums: [re, im, norm] } = self;
        let (shape, stored) = (fixed.shape, fixed.shape.stored());
        let rows = re.len() / width;
        for j in list {
            let view = &views[*j as usize];
            let top = view.row as usize;
            for y in first.saturating_sub(top)..(first + rows - top).min(shape.ny) {
                let to = (top + y - first) * width + view.col as usize;
                for p in 0..fixed.modes[0] {
                    let k = *j as usize * fixed.exits() + p * fixed.modes[1] + layer;
                    let wave = planes(&exit[2 * k * stored..2 * (k + 1) * stored]);
                    let probe = fixed.probe(probe, view.probe, p);
                    let row = y * shape.sx..y * shape.sx + shape.nx;
                    let (p0, p1) = (&probe[0][row.clone()], &probe[1][row.clone()]);
                    let (e0, e1) = (&wave[0][row.clone()], &wave[1][row]);
                    let end = to + shape.nx;
                    gather([p0, p1], [e0, e1], [&mut re[to..end], &mut im[to..end]], &mut norm[to..end]);
                }
            }
        }
    }
}

/// `sum += conj(a) b`, `norm += |a|^2`.
#[inline(always)]
pub(super) fn gather<T: Number>(a: [&[T]; 2], b: [&[T]; 2], sum: [&mut [T]; 2], norm: &mut [T]) {
    let n = norm.len();
    let ([a0, a1], [b0, b1], [s0, s1]) = (a.map(|x| &x[..n]), b.map(|x| &x[..n]), sum.map(|x| &mut x[..n]));
    for x in 0..n {
        s0[x] += a0[x] * b0[x] + a1[x] * b1[x];
        s1[x] += a0[x] * b1[x] - a1[x] * b0[x];
        norm[x] += a0[x] * a0[x] + a1[x] * a1[x];
    }
}

/// Sums of a band of rows of a probe over its views.
struct ProbeBand<'a, T> {
    fixed: &'a Fixed<T>,
    views: &'a [View],
    set: u32,
    object: &'a [T],
    exit: &'a [T],
    first: usize,
    /// Numerators `[P][2][rows][sx]`.
    sums: &'a mut [T],
    /// Transmission `[rows][sx]`.
    norm: &'a mut [T],
}

impl<T: Number> Work<T> for ProbeBand<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes<T = T>>(self) {
        let Self { fixed, views, set, object, exit, first, sums, norm } = self;
        let (shape, stored) = (fixed.shape, fixed.shape.stored());
        let (rows, size) = (norm.len() / shape.sx, norm.len());
        for (j, view) in views.iter().enumerate().filter(|(_, v)| v.probe == set) {
            let place = &fixed.places[view.object as usize];
            for o in 0..fixed.modes[1] {
                let layer = place.layer(object, o);
                for y in 0..rows {
                    let from = place.at(view, first + y);
                    let (o0, o1) = (&layer[0][from..from + shape.sx], &layer[1][from..from + shape.sx]);
                    let norm = &mut norm[y * shape.sx..(y + 1) * shape.sx];
                    for x in (0..shape.sx).step_by(PAD) {
                        let (a, b) = (Row::load(&o0[x..]), Row::load(&o1[x..]));
                        (Row::load(&norm[x..]) + (a * a + b * b)).store(&mut norm[x..]);
                    }
                    for p in 0..fixed.modes[0] {
                        let k = j * fixed.exits() + p * fixed.modes[1] + o;
                        let at = 2 * k * stored + (first + y) * shape.sx;
                        let (e0, e1) = (&exit[at..at + shape.sx], &exit[at + stored..at + stored + shape.sx]);
                        let (s0, s1) = sums[2 * p * size..2 * (p + 1) * size].split_at_mut(size);
                        let (s0, s1) = (&mut s0[y * shape.sx..(y + 1) * shape.sx], &mut s1[y * shape.sx..(y + 1) * shape.sx]);
                        for x in (0..shape.sx).step_by(PAD) {
                            let (a, b) = (Row::load(&o0[x..]), Row::load(&o1[x..]));
                            let (c, d) = (Row::load(&e0[x..]), Row::load(&e1[x..]));
                            (Row::load(&s0[x..]) + (a * c + b * d)).store(&mut s0[x..]);
                            (Row::load(&s1[x..]) + (a * d - b * c)).store(&mut s1[x..]);
                        }
                    }
                }
            }
        }
    }
}

impl<T: Number> Host<T> {
    /// The loop; gives the passes made.
    pub(super) fn overlap_loop(&mut self, rule: &Overlap) -> u32 {
        for pass in 0..rule.passes {
            if rule.object && (rule.object_first || pass > 0 || !rule.probe) {
                self.object_update(rule.object_inertia, &rule.limits);
            }
            if !rule.probe {
                return pass + 1;
            }
            if self.probe_update(&rule.probe_inertia) < rule.tolerance {
                return pass + 1;
            }
        }
        rule.passes
    }

    /// Every object from its views.
    fn object_update(&mut self, inertia: f64, limits: &ObjectLimits) {
        if let Some(sigma) = limits.smooth {
            super::smooth::objects(&self.fixed, &mut self.state.object, sigma);
        }
        let Self { fixed, views, bands, state, exit, .. } = self;
        let fixed = &*fixed;
        let inertia = T::from_f64(inertia);
        fixed.cpu.install(|| {
            for (place, bands) in fixed.places.iter().zip(&*bands) {
                for layer in 0..fixed.modes[1] {
                    let (width, pixels) = (place.shape[1], place.model.layer());
                    let [re, im] = place.layer_mut(&mut state.object, layer);
                    let band = BAND * width;
                    let parts = re[..pixels].par_chunks_mut(band).zip(im[..pixels].par_chunks_mut(band));
                    parts.zip(bands).enumerate().for_each(|(i, ((re, im), list))| {
                        let (mut a, mut b, mut norm) = (vec![T::ZERO; re.len()], vec![T::ZERO; re.len()], vec![T::ZERO; re.len()]);
                        let sums = [&mut a[..], &mut b[..], &mut norm[..]];
                        let first = i * BAND;
                        T::with(fixed.isa, ObjectBand { fixed, views, list, probe: &state.probe, exit, layer, first, width, sums });
                        settle(re, im, [&a, &b, &norm], inertia);
                        if let Some(range) = limits.clip {
                            clip(re, im, range);
                        }
                    });
                }
            }
        });
    }

    /// Every probe from its views; gives the relative change, root mean square over the probes.
    fn probe_update(&mut self, inertia: &[f64]) -> f64 {
        let Self { fixed, views, state, exit, last, .. } = self;
        let fixed = &*fixed;
        let shape = fixed.shape;
        let modes = fixed.modes[0];
        let set_len = modes * 2 * shape.stored();
        let mut change = 0.0;
        for (set, inertia) in inertia.iter().enumerate() {
            let weight = T::from_f64(*inertia);
            let sums: Vec<(Vec<T>, Vec<T>)> = fixed.cpu.install(|| {
                let bands = (0..shape.ny).into_par_iter().step_by(ROWS);
                let band = |first: usize| {
                    let size = ROWS.min(shape.ny - first) * shape.sx;
                    let (mut sums, mut norm) = (vec![T::ZERO; 2 * modes * size], vec![T::ZERO; size]);
                    let (sums_at, norm_at) = (&mut sums[..], &mut norm[..]);
                    let (object, set) = (&state.object[..], set as u32);
                    T::with(fixed.isa, ProbeBand { fixed, views, set, object, exit, first, sums: sums_at, norm: norm_at });
                    (sums, norm)
                };
                bands.map(band).collect()
            });
            let probe = &mut state.probe[set * set_len..(set + 1) * set_len];
            for (i, (sums, norm)) in sums.iter().enumerate() {
                for p in 0..modes {
                    let [re, im] = planes_mut(&mut probe[p * 2 * shape.stored()..(p + 1) * 2 * shape.stored()]);
                    let at = i * ROWS * shape.sx..i * ROWS * shape.sx + norm.len();
                    let [a, b] = planes(&sums[2 * p * norm.len()..2 * (p + 1) * norm.len()]);
                    settle(&mut re[at.clone()], &mut im[at], [a, b, norm], weight);
                }
            }
            fixed.supported(probe);
            let last = &mut last[set * set_len..(set + 1) * set_len];
            let (mut moved, mut all) = (0.0, 0.0);
            for (new, old) in probe.iter().zip(last) {
                moved += (new.to_f64() - old.to_f64()).powi(2);
                all += new.to_f64().powi(2);
                *old = *new;
            }
            change += moved / all.max(f64::MIN_POSITIVE);
        }
        (change / inertia.len() as f64).sqrt()
    }
}

/// `old = (w old + sum) / (w + norm)`; where there is neither, it stays.
fn settle<T: Number>(re: &mut [T], im: &mut [T], [a, b, norm]: [&[T]; 3], w: T) {
    for i in 0..re.len() {
        let down = w + norm[i];
        if down > T::ZERO {
            re[i] = (w * re[i] + a[i]) / down;
            im[i] = (w * im[i] + b[i]) / down;
        }
    }
}

/// Moduli into a range, phases kept.
pub(super) fn clip<T: Number>(re: &mut [T], im: &mut [T], range: [f64; 2]) {
    for (re, im) in re.iter_mut().zip(im) {
        let modulus = re.to_f64().hypot(im.to_f64());
        let to = modulus.clamp(range[0], range[1]);
        if to != modulus {
            if modulus > 0.0 {
                let factor = T::from_f64(to / modulus);
                (*re, *im) = (*re * factor, *im * factor);
            } else {
                *re = T::from_f64(to);
            }
        }
    }
}
