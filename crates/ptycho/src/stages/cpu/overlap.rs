//! The overlap loop: object and probe from all exit waves. A band of rows of the object (of the probe) is one piece of work; it
//! adds the views that see it in their order.

use zellige_engine::error::Result;
use zellige_engine::large::Aligned;

use super::fft::PAD;
use super::lanes::{Lanes, Number, Work};
use super::object_sums::{ObjectRows, ObjectSums, thirds, thirds_mut};
use super::store::{planes, planes_mut};
use super::view::Row;
use super::{CpuStages, FixedData, blocks};
use crate::model::View;
use crate::relay::{Relay, sum_pieces};
use crate::share::Share;
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
    /// Parts of the run that have the waves of all views in the sums: one where this part has them all.
    pub(super) share: &'a Share,
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
        let Self { fixed, waves: Waves { views, exit, own, .. }, list, probe, layer, first, width, sums: [re, im, norm] } = self;
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
    pub(super) fn overlap_loop(&mut self, rule: &Overlap) -> Result<u32> {
        for pass in 0..rule.passes {
            if rule.object && (rule.object_first || pass > 0 || !rule.probe) {
                self.object_update(rule.object_inertia, &rule.limits)?;
            }
            if !rule.probe {
                return Ok(pass + 1);
            }
            if self.probe_update(&rule.probe_inertia)? < rule.tolerance {
                return Ok(pass + 1);
            }
        }
        Ok(rule.passes)
    }

    /// Updates every object from its views.
    fn object_update(&mut self, inertia: f64, limits: &ObjectLimits) -> Result<()> {
        if let Some(sigma) = limits.smooth {
            super::smooth::objects(&self.fixed, &mut self.state.object, sigma);
        }
        let Self { fixed, views, shifts, bands, adders, all, state, exit, .. } = self;
        let (fixed, inertia) = (&*fixed, T::from_f64(inertia));
        let update = |rows: &mut ObjectRows<T>, sums: [&[T]; 3]| {
            update_values(rows.re, rows.im, sums, inertia);
            if let Some(range) = limits.clip {
                clip(rows.re, rows.im, range);
            }
        };
        if fixed.subpixel {
            // Each view has a probe of its own: these are held for a batch of views at a time.
            let spectra = fixed.spectra(&state.probe);
            let size = fixed.exits() * 2 * fixed.shape.stored();
            let mut sums = ObjectSums::zeros(fixed);
            for batch in blocks(&fixed.share, all, super::shift::BATCH) {
                let probes = fixed.all_shifted(&spectra, views, shifts, batch);
                let list: Vec<[u32; 2]> = batch.iter().enumerate().map(|(slot, [j, _])| [*j, slot as u32]).collect();
                let first = batch.first().map_or(0, |[_, slot]| *slot as usize);
                let exit = &exit[first * size..(first + batch.len()) * size];
                sums.add(fixed, Waves { views, exit, own: true, share: &fixed.share }, &list, &probes, adders)?;
            }
            sums.each(fixed, &mut state.object, |mut rows, sums| update(&mut rows, sums));
            return Ok(());
        }
        let waves = Waves { views, exit, own: false, share: &fixed.share };
        let mut pieces = fixed.object_rows(&mut state.object, PIECE);
        let probe = &state.probe[..];
        fixed.cpu.install(|| {
            sum_pieces(
                &fixed.share,
                &mut pieces,
                |rows| &adders.bands[rows.storage][rows.first / BAND],
                |rows| 3 * rows.re.len(),
                |rows, sums| {
                    let (list, width) = (&bands[rows.storage][rows.first / BAND][..], fixed.storages[rows.storage].shape[1]);
                    let (layer, first, sums) = (rows.layer, rows.first, thirds_mut(sums));
                    T::with(fixed.isa, ObjectBand { fixed, waves, list, probe, layer, first, width, sums });
                },
                |rows, sums| update(rows, thirds(sums)),
            )
        })
    }

    /// Updates every probe from its views; returns the relative change, root mean square over the probes.
    fn probe_update(&mut self, inertia: &[f64]) -> Result<f64> {
        let Self { fixed, views, shifts, all, adders, state, exit, last, .. } = self;
        let fixed = &*fixed;
        let waves = Waves { views, exit, own: false, share: &fixed.share };
        let set_len = fixed.probe_len();
        let spectra = fixed.spectra(&state.probe);
        let mut change = 0.0;
        for (set, inertia) in inertia.iter().enumerate() {
            let weight = T::from_f64(*inertia);
            let list = ViewList { own: all, parts: adders.sets.get(set).cloned().unwrap_or_default() };
            let sums = if fixed.subpixel {
                let probe = &state.probe[set * set_len..(set + 1) * set_len];
                fixed.returned_sums(waves, shifts, &list, set, &state.object, Some((&spectra, probe)))?
            } else {
                fixed.probe_sums(waves, &[list], set, &state.object)?
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
        Ok((change / inertia.len() as f64).sqrt())
    }
}

/// Views that are summed, beginning with nothing.
pub(super) struct ViewList<'a> {
    /// Number and slot of own ones.
    pub(super) own: &'a [[u32; 2]],
    /// Parts of the run that have some of them; nothing where there is one part.
    pub(super) parts: Vec<usize>,
}

/// Numerators `[P][2][rows][sx]` of a band of a probe and its norms `[rows][sx]`, one behind the other.
pub(super) type BandSums<T> = Aligned<T>;

impl<T: Number> FixedData<T> {
    /// Numbers of a probe.
    pub(super) fn probe_len(&self) -> usize {
        self.modes[0] * 2 * self.shape.stored()
    }

    /// Numbers of a plane of each band of a probe.
    pub(super) fn band_lengths(&self) -> impl Iterator<Item = usize> + Clone {
        let shape = self.shape;
        (0..shape.ny).step_by(ROWS).map(move |first| ROWS.min(shape.ny - first) * shape.sx)
    }

    /// Numerators and norms of a band.
    pub(super) fn split_band<'a>(&self, sums: &'a [T]) -> (&'a [T], &'a [T]) {
        let planes = 2 * self.modes[0];
        sums.split_at(sums.len() / (planes + 1) * planes)
    }

    /// Sums of probe number `set` over the views of each list, band by band: those of all lists one behind the other.
    pub(super) fn probe_sums(&self, waves: Waves<T>, lists: &[ViewList], set: usize, object: &[T]) -> Result<Vec<BandSums<T>>> {
        let bands = self.shape.ny.div_ceil(ROWS);
        let mut relay = Relay::zeros(lists.iter().flat_map(|_| self.band_lengths()).map(|plane| (2 * self.modes[0] + 1) * plane));
        self.cpu.install(|| {
            relay.add(
                waves.share,
                |piece| &lists[piece / bands].parts,
                |piece, sums| {
                    let (list, first, numerators) = (lists[piece / bands].own, piece % bands * ROWS, self.split_band(sums).0.len());
                    let (sums, norm) = sums.split_at_mut(numerators);
                    T::with(self.isa, ProbeBand { fixed: self, waves, list, set: set as u32, object, first, sums, norm });
                },
            )
        })?;
        Ok(relay.into_sums())
    }

    /// Does `work` with the planes of each mode's bands and their sums.
    pub(super) fn each_band(&self, probe: &mut [T], sums: &[BandSums<T>], work: impl Fn(&mut [T], &mut [T], [&[T]; 3])) {
        let stored = self.shape.stored();
        for (i, sums) in sums.iter().enumerate() {
            let (sums, norm) = self.split_band(sums);
            let at = i * ROWS * self.shape.sx..i * ROWS * self.shape.sx + norm.len();
            for p in 0..self.modes[0] {
                let [re, im] = planes_mut(&mut probe[p * 2 * stored..(p + 1) * 2 * stored]);
                let [a, b] = planes(&sums[2 * p * norm.len()..2 * (p + 1) * norm.len()]);
                work(&mut re[at.clone()], &mut im[at.clone()], [a, b, norm]);
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
