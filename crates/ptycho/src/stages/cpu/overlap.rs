//! The overlap loop: object and probe from all exit waves. A band of rows of the object (of the probe) is one piece of work; it
//! adds the views that see it in their order.

use zellige_engine::large::Aligned;
use zellige_engine::parallel::{chunks_mut, each_task, indices, map_tasks};

use super::fft::PAD;
use super::lanes::{Lanes, Number, Work};
use super::store::{planes, planes_mut};
use super::view::Row;
use super::{CpuStages, FixedData};
use crate::model::View;
use crate::stages::{ObjectLimits, Overlap};

/// Rows of an object that have one list of views.
pub(super) const BAND: usize = 32;
/// Rows of an object in a piece of work: sums that stay in the first-level cache, pieces enough for many threads. It divides
/// [`BAND`].
const PIECE: usize = 8;
/// Rows of a probe in a piece of work.
pub(super) const ROWS: usize = 4;

/// Waves of some views, `[slots][K][2][ny][sx]`.
#[derive(Clone, Copy)]
pub(super) struct Waves<'a, T> {
    pub(super) views: &'a [View],
    pub(super) exit: &'a [T],
    /// Probes are not those of sets but of slots: a view has its own.
    pub(super) own: bool,
}

/// Sums of a band of an object over its views: `sum += conj(P) psi`, `norm += |P|^2`.
pub(super) struct ObjectBand<'a, T> {
    pub(super) fixed: &'a FixedData<T>,
    pub(super) waves: Waves<'a, T>,
    /// Numbers of views that may see the band, each with the slot of its wave.
    pub(super) list: &'a [[u32; 2]],
    pub(super) probe: &'a [T],
    /// Object mode, first row, width.
    pub(super) layer: usize,
    pub(super) first: usize,
    pub(super) width: usize,
    /// Numerator (two planes) and illumination.
    pub(super) sums: [&'a mut [T]; 3],
}

impl<T: Number> Work<T> for ObjectBand<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes<T = T>>(self) {
        let Self { fixed, waves: Waves { views, exit, own }, list, probe, layer, first, width, sums: [re, im, norm] } = self;
        let (shape, stored) = (fixed.shape, fixed.shape.stored());
        let rows = re.len() / width;
        for [j, slot] in list {
            let view = &views[*j as usize];
            let top = view.row as usize;
            for y in first.saturating_sub(top)..(first + rows).saturating_sub(top).min(shape.ny) {
                let to = (top + y - first) * width + view.col as usize;
                for p in 0..fixed.modes[0] {
                    let k = *slot as usize * fixed.exits() + p * fixed.modes[1] + layer;
                    let wave = planes(&exit[2 * k * stored..2 * (k + 1) * stored]);
                    let probe = fixed.probe(probe, if own { *slot } else { view.probe }, p);
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

/// Sums of a band of rows of a probe over its views: `sum += conj(O) psi`, `norm += |O|^2`.
pub(super) struct ProbeBand<'a, T> {
    pub(super) fixed: &'a FixedData<T>,
    pub(super) waves: Waves<'a, T>,
    pub(super) list: &'a [[u32; 2]],
    pub(super) set: u32,
    pub(super) object: &'a [T],
    pub(super) first: usize,
    /// Numerators `[P][2][rows][sx]`.
    pub(super) sums: &'a mut [T],
    /// Transmission `[rows][sx]`.
    pub(super) norm: &'a mut [T],
}

impl<T: Number> Work<T> for ProbeBand<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes<T = T>>(self) {
        let Self { fixed, waves: Waves { views, exit, .. }, list, set, object, first, sums, norm } = self;
        let (shape, stored) = (fixed.shape, fixed.shape.stored());
        let (rows, size) = (norm.len() / shape.sx, norm.len());
        for [j, slot] in list {
            let view = &views[*j as usize];
            if view.probe != set {
                continue;
            }
            let storage = &fixed.storages[view.object as usize];
            for o in 0..fixed.modes[1] {
                let layer = storage.layer(object, o);
                for y in 0..rows {
                    let from = storage.at(view, first + y);
                    let (o0, o1) = (&layer[0][from..from + shape.sx], &layer[1][from..from + shape.sx]);
                    let norm = &mut norm[y * shape.sx..(y + 1) * shape.sx];
                    for x in (0..shape.sx).step_by(PAD) {
                        let (a, b) = (Row::load(&o0[x..]), Row::load(&o1[x..]));
                        (Row::load(&norm[x..]) + (a * a + b * b)).store(&mut norm[x..]);
                    }
                    for p in 0..fixed.modes[0] {
                        let k = *slot as usize * fixed.exits() + p * fixed.modes[1] + o;
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

impl<T: Number> CpuStages<T> {
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

    /// Updates every object from its views.
    fn object_update(&mut self, inertia: f64, limits: &ObjectLimits) {
        if let Some(sigma) = limits.smooth {
            super::smooth::objects(&self.fixed, &mut self.state.object, sigma);
        }
        if self.fixed.subpixel {
            return self.object_between(inertia, limits);
        }
        let Self { fixed, views, bands, state, exit, .. } = self;
        let (fixed, waves) = (&*fixed, Waves { views, exit, own: false });
        let inertia = T::from_f64(inertia);
        fixed.cpu.install(|| {
            for (storage, bands) in fixed.storages.iter().zip(&*bands) {
                for layer in 0..fixed.modes[1] {
                    let (width, pixels) = (storage.shape[1], storage.model.layer());
                    let [re, im] = storage.layer_mut(&mut state.object, layer);
                    let piece = PIECE * width;
                    each_task((chunks_mut(&mut re[..pixels], piece), chunks_mut(&mut im[..pixels], piece)), |i, (re, im)| {
                        let list = &bands[i * PIECE / BAND];
                        let [mut a, mut b, mut norm] = std::array::from_fn(|_| Aligned::zeros(re.len()));
                        let sums = [&mut a[..], &mut b[..], &mut norm[..]];
                        T::with(fixed.isa, ObjectBand { fixed, waves, list, probe: &state.probe, layer, first: i * PIECE, width, sums });
                        update_values(re, im, [&a, &b, &norm], inertia);
                        if let Some(range) = limits.clip {
                            clip(re, im, range);
                        }
                    });
                }
            }
        });
    }

    /// Updates every object where each view has a probe of its own: these are held for a batch of views at a time.
    fn object_between(&mut self, inertia: f64, limits: &ObjectLimits) {
        let Self { fixed, views, shifts, all, state, exit, .. } = self;
        let fixed = &*fixed;
        let spectra = fixed.spectra(&state.probe);
        let size = fixed.exits() * 2 * fixed.shape.stored();
        let mut sum = vec![T::ZERO; state.object.len()];
        let mut norm = vec![T::ZERO; fixed.storages.iter().map(|p| p.model.layer()).sum()];
        for (batch, exit) in all.chunks(super::shift::BATCH).zip(exit.chunks(super::shift::BATCH * size)) {
            let probes = fixed.all_shifted(&spectra, views, shifts, batch);
            let list: Vec<[u32; 2]> = batch.iter().enumerate().map(|(slot, [j, _])| [*j, slot as u32]).collect();
            fixed.object_sums(Waves { views, exit, own: true }, &list, &probes, &mut sum, &mut norm);
        }
        let (inertia, mut norm) = (T::from_f64(inertia), &norm[..]);
        for storage in &fixed.storages {
            let (here, rest) = norm.split_at(storage.model.layer());
            norm = rest;
            for o in 0..fixed.modes[1] {
                let [a, b] = storage.layer(&sum, o).map(|plane| &plane[..here.len()]);
                let [re, im] = storage.layer_mut(&mut state.object, o).map(|plane| &mut plane[..here.len()]);
                update_values(re, im, [a, b, here], inertia);
                if let Some(range) = limits.clip {
                    clip(re, im, range);
                }
            }
        }
    }

    /// Updates every probe from its views; returns the relative change, root mean square over the probes.
    fn probe_update(&mut self, inertia: &[f64]) -> f64 {
        let Self { fixed, views, shifts, all, state, exit, last, .. } = self;
        let (fixed, waves) = (&*fixed, Waves { views, exit, own: false });
        let set_len = fixed.probe_len();
        let spectra = fixed.spectra(&state.probe);
        let mut change = 0.0;
        for (set, inertia) in inertia.iter().enumerate() {
            let weight = T::from_f64(*inertia);
            let sums = if fixed.subpixel {
                let probe = &state.probe[set * set_len..(set + 1) * set_len];
                fixed.returned_sums(waves, shifts, all, set, &state.object, Some((&spectra, probe)))
            } else {
                fixed.probe_sums(waves, all, set, &state.object)
            };
            let probe = &mut state.probe[set * set_len..(set + 1) * set_len];
            fixed.each_band(probe, &sums, |re, im, sums| update_values(re, im, sums, weight));
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

/// Numerators and norms of a band of a probe.
pub(super) type BandSums<T> = (Aligned<T>, Aligned<T>);

impl<T: Number> FixedData<T> {
    /// Numbers of a probe.
    pub(super) fn probe_len(&self) -> usize {
        self.modes[0] * 2 * self.shape.stored()
    }

    /// Sums of probe number `set` over the listed views, band by band.
    pub(super) fn probe_sums(&self, waves: Waves<T>, list: &[[u32; 2]], set: usize, object: &[T]) -> Vec<BandSums<T>> {
        let shape = self.shape;
        let band = |_, number: usize| {
            let first = number * ROWS;
            let size = ROWS.min(shape.ny - first) * shape.sx;
            let (mut sums, mut norm) = (Aligned::zeros(2 * self.modes[0] * size), Aligned::zeros(size));
            let (numerators, norms) = (&mut sums[..], &mut norm[..]);
            T::with(self.isa, ProbeBand { fixed: self, waves, list, set: set as u32, object, first, sums: numerators, norm: norms });
            (sums, norm)
        };
        self.cpu.install(|| map_tasks(indices(shape.ny.div_ceil(ROWS)), band))
    }

    /// Does `work` with the planes of each mode's bands and their sums.
    pub(super) fn each_band(&self, probe: &mut [T], sums: &[BandSums<T>], work: impl Fn(&mut [T], &mut [T], [&[T]; 3])) {
        let stored = self.shape.stored();
        for (i, (sums, norm)) in sums.iter().enumerate() {
            let at = i * ROWS * self.shape.sx..i * ROWS * self.shape.sx + norm.len();
            for p in 0..self.modes[0] {
                let [re, im] = planes_mut(&mut probe[p * 2 * stored..(p + 1) * 2 * stored]);
                let [a, b] = planes(&sums[2 * p * norm.len()..2 * (p + 1) * norm.len()]);
                work(&mut re[at.clone()], &mut im[at.clone()], [a, b, norm]);
            }
        }
    }

    /// Adds the listed views to the sums of all objects: `sum += conj(P) psi` (planes of the objects) and `norm += |P|^2`
    /// (`[storage][H][W]`, counted for the first object mode).
    pub(super) fn object_sums(&self, waves: Waves<T>, list: &[[u32; 2]], probe: &[T], sum: &mut [T], norm: &mut [T]) {
        let mut norm = norm;
        for (number, storage) in self.storages.iter().enumerate() {
            let own: Vec<[u32; 2]> = list.iter().filter(|[j, _]| waves.views[*j as usize].object as usize == number).copied().collect();
            let (pixels, width) = (storage.model.layer(), storage.shape[1]);
            let (here, rest) = norm.split_at_mut(pixels);
            norm = rest;
            let mut none = vec![T::ZERO; if self.modes[1] > 1 { pixels } else { 0 }];
            for layer in 0..self.modes[1] {
                let [re, im] = storage.layer_mut(sum, layer).map(|plane| &mut plane[..pixels]);
                let norm = if layer == 0 { &mut *here } else { &mut none[..] };
                let band = BAND * width;
                let parts = (chunks_mut(re, band), chunks_mut(im, band), chunks_mut(norm, band));
                self.cpu.install(|| {
                    each_task(parts, |i, (re, im, norm)| {
                        let first = i * BAND;
                        let sees = |[j, _]: &&[u32; 2]| {
                            let top = waves.views[*j as usize].row as usize;
                            top < first + BAND && first < top + self.shape.ny
                        };
                        let list: Vec<[u32; 2]> = own.iter().filter(sees).copied().collect();
                        T::with(self.isa, ObjectBand { fixed: self, waves, list: &list, probe, layer, first, width, sums: [re, im, norm] });
                    });
                });
            }
        }
    }
}

/// `old = (w old + sum) / (w + norm)`; where there is neither, it stays.
fn update_values<T: Number>(re: &mut [T], im: &mut [T], [a, b, norm]: [&[T]; 3], w: T) {
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
