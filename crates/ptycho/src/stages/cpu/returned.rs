//! Sums over views for a probe that each view sees shifted: what comes back from a view is shifted back.

use zellige_engine::error::Result;
use zellige_engine::parallel::{chunks_mut, each_task, items};

use super::fft::PAD;
use super::lanes::{Lanes, Number, Work};
use super::overlap::{BandSums, ROWS, ViewList, Waves, gather};
use super::shift::{BATCH, Ramp, ShiftedModes, ViewInputs};
use super::store::{planes, planes_mut};
use super::view::{Row, product};
use super::{FixedData, Scratch, blocks};
use crate::model::View;
use crate::relay::{Relay, sum_pieces};

/// Numbers of a piece of a sum in Fourier space: they stay in the first-level cache.
const PIECE: usize = 2048;

/// Contribution of a view to the probe, in Fourier space and shifted back: `exp(+2 pi i k d / n) F [conj(O) psi]` for each mode.
struct ShiftedBack<'a, T> {
    fixed: &'a FixedData<T>,
    object: &'a [T],
    /// The view's shifted probe, where `psi - P O` is meant instead of `psi`.
    probe: Option<&'a [T]>,
    view: View,
    by: [f64; 2],
    /// `[K][2][ny][sx]`.
    wave: &'a [T],
    /// `[P][2][plane]`.
    out: &'a mut [T],
    scratch: &'a mut Scratch<T>,
}

impl<T: Number> Work<T> for ShiftedBack<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes<T = T>>(self) {
        let Self { fixed, object, probe, view, by, wave, out, scratch: Scratch { workspace, one, two, plane: [unused, ..], .. } } = self;
        let (shape, storage) = (fixed.shape, fixed.storages[view.object as usize]);
        let (stored, size) = (2 * shape.stored(), 2 * shape.plane());
        let ramp = Ramp::new(shape, [-by[0], -by[1]]);
        for (p, out) in out.chunks_exact_mut(size).enumerate() {
            one.fill(T::ZERO);
            for o in 0..fixed.modes[1] {
                let layer = storage.layer(object, o);
                let k = p * fixed.modes[1] + o;
                let psi = &wave[k * stored..(k + 1) * stored];
                let rest = &mut two[..size];
                let half = size / 2;
                if let Some(probe) = probe {
                    product(fixed, fixed.probe(probe, 0, p), layer, &storage, &view, rest);
                    for plane in 0..2 {
                        let (from, to) = (&psi[plane * stored / 2..], &mut rest[plane * half..]);
                        for i in (0..stored / 2).step_by(PAD) {
                            (Row::load(&from[i..]) - Row::load(&to[i..])).store(&mut to[i..]);
                        }
                    }
                } else {
                    rest[..stored / 2].copy_from_slice(&psi[..stored / 2]);
                    rest[half..half + stored / 2].copy_from_slice(&psi[stored / 2..]);
                }
                let (sum, rest) = (planes_mut(one), planes(rest));
                let [re, im] = sum;
                for y in 0..shape.ny {
                    let (from, row) = (storage.at(&view, y), y * shape.sx..y * shape.sx + shape.nx);
                    let (o0, o1) = (&layer[0][from..from + shape.nx], &layer[1][from..from + shape.nx]);
                    let (e0, e1) = (&rest[0][row.clone()], &rest[1][row.clone()]);
                    gather([o0, o1], [e0, e1], [&mut re[row.clone()], &mut im[row.clone()]], &mut unused[row]);
                }
            }
            fixed.plan.forward(planes(one), planes_mut(two), workspace);
            ramp.apply(shape, planes(two), planes_mut(out), 1.0, None);
        }
    }
}

/// `|O|^2` over the listed views, rows `first ..` of a probe.
struct ObjectIntensity<'a, T> {
    fixed: &'a FixedData<T>,
    views: &'a [View],
    list: &'a [[u32; 2]],
    set: u32,
    object: &'a [T],
    first: usize,
    norm: &'a mut [T],
}

impl<T: Number> Work<T> for ObjectIntensity<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes<T = T>>(self) {
        let Self { fixed, views, list, set, object, first, norm } = self;
        for view in list.iter().map(|[j, _]| &views[*j as usize]).filter(|v| v.probe == set) {
            let storage = &fixed.storages[view.object as usize];
            for o in 0..fixed.modes[1] {
                let layer = storage.layer(object, o);
                for (y, norm) in norm.chunks_exact_mut(fixed.shape.sx).enumerate() {
                    let from = storage.at(view, first + y);
                    for x in (0..norm.len()).step_by(PAD) {
                        let (a, b) = (Row::load(&layer[0][from + x..]), Row::load(&layer[1][from + x..]));
                        (Row::load(&norm[x..]) + (a * a + b * b)).store(&mut norm[x..]);
                    }
                }
            }
        }
    }
}

impl<T: Number> FixedData<T> {
    /// Numerators of probe number `set` over the views of each list, each view's part shifted back: of each list, planes
    /// `[P][2][ny][sx]`. With `rest` (transforms of all probes) the sums are those of `psi - P O`.
    pub(super) fn returned(
        &self,
        waves: Waves<T>,
        shifts: &[[f64; 2]],
        lists: &[ViewList],
        set: usize,
        object: &[T],
        rest: Option<&[T]>,
    ) -> Result<Vec<Vec<T>>> {
        let (shape, views) = (self.shape, waves.views);
        let (stored, size) = (2 * shape.stored(), self.modes[0] * 2 * shape.plane());
        // Each with the number of its list.
        let of_list = |(k, list): (usize, &ViewList)| {
            let own = list.own.iter().filter(|[j, _]| views[*j as usize].probe as usize == set);
            own.map(|[j, slot]| (k, *j as usize, *slot as usize)).collect::<Vec<_>>()
        };
        let own: Vec<(usize, usize, usize)> = lists.iter().enumerate().flat_map(of_list).collect();
        let pieces = size.div_ceil(PIECE);
        let mut relay = Relay::zeros(lists.iter().flat_map(|_| (0..size).step_by(PIECE)).map(|first| PIECE.min(size - first)));
        self.cpu.install(|| {
            for batch in blocks(waves.share, &own, BATCH) {
                let mut back = vec![T::ZERO; batch.len() * size];
                each_task((chunks_mut(&mut back, size), items(batch)), |_, (out, (_, j, slot))| {
                    let (j, at) = (*j, slot * self.exits() * stored);
                    let wave = &waves.exit[at..at + self.exits() * stored];
                    let scratch = &mut *self.scratch();
                    let mut own = std::mem::take(&mut scratch.own);
                    let seen = ViewInputs { probe: &[], object };
                    let probe = rest.map(|spectra| self.seen(seen, spectra, (views[j], shifts[j]), &mut own, scratch).0.probe);
                    T::with(self.isa, ShiftedBack { fixed: self, object, probe, view: views[j], by: shifts[j], wave, out, scratch });
                    scratch.own = own;
                });
                let parts = |piece: usize| &lists[piece / pieces].parts[..];
                relay.add(waves.share, parts, |piece, sum| {
                    let (list, at) = (piece / pieces, piece % pieces * PIECE);
                    let first = batch.partition_point(|(k, ..)| *k < list);
                    let last = batch.partition_point(|(k, ..)| *k <= list);
                    // In the order of the views, whatever the number of threads.
                    for view in back[first * size..last * size].chunks_exact(size) {
                        let from = &view[at..];
                        for i in (0..sum.len()).step_by(PAD) {
                            (Row::load(&sum[i..]) + Row::load(&from[i..])).store(&mut sum[i..]);
                        }
                    }
                })?;
            }
            let steps = relay.sums().chunks_exact(pieces).map(|sums| {
                let spectra: Vec<T> = sums.iter().flat_map(|sums| sums.iter().copied()).collect();
                let mut steps = vec![T::ZERO; self.probe_len()];
                let (out, scratch) = (&mut steps[..], &mut *self.scratch());
                T::with(self.isa, ShiftedModes { fixed: self, spectra: &spectra, by: [0.0; 2], along: None, out, scratch });
                steps
            });
            Ok(steps.collect())
        })
    }

    /// Sums as [`FixedData::probe_sums`], of one list. With `rest` (transforms of all probes, and the probe of the set) they are
    /// those of `psi - P O`, of which a step is made that begins at the probe: the weight of a pixel is then none of the
    /// unknown's, which each view sees elsewhere.
    pub(super) fn returned_sums(
        &self,
        waves: Waves<T>,
        shifts: &[[f64; 2]],
        list: &ViewList,
        set: usize,
        object: &[T],
        rest: Option<(&[T], &[T])>,
    ) -> Result<Vec<BandSums<T>>> {
        let steps = self.returned(waves, shifts, std::slice::from_ref(list), set, object, rest.map(|(spectra, _)| spectra))?.concat();
        let probe = rest.map(|(_, probe)| probe);
        self.cpu.install(|| self.banded(&steps, waves, list, set, object, probe))
    }

    /// Numerators by bands, with the sums of `|O|^2` there; `norm probe` added where the step is to begin at the probe.
    fn banded(
        &self,
        steps: &[T],
        Waves { views, share, .. }: Waves<T>,
        list: &ViewList,
        set: usize,
        object: &[T],
        probe: Option<&[T]>,
    ) -> Result<Vec<BandSums<T>>> {
        let (shape, stored) = (self.shape, self.shape.stored());
        let mut bands: Vec<BandSums<T>> = self.band_lengths().map(|plane| BandSums::zeros((2 * self.modes[0] + 1) * plane)).collect();
        let place = |number: usize, band: &[T]| (number * ROWS, self.split_band(band).0.len());
        let mut pieces: Vec<(usize, &mut BandSums<T>)> = bands.iter_mut().enumerate().collect();
        sum_pieces(
            share,
            &mut pieces,
            |_| &list.parts,
            |(_, band)| self.split_band(band).1.len(),
            |(number, _), norm| {
                let (first, list) = (number * ROWS, list.own);
                T::with(self.isa, ObjectIntensity { fixed: self, views, list, set: set as u32, object, first, norm });
            },
            |(number, band), norm| {
                let (first, numerators) = place(*number, band);
                let (sums, to) = band.split_at_mut(numerators);
                to.copy_from_slice(norm);
                for (plane, sums) in sums.chunks_exact_mut(norm.len()).enumerate() {
                    let at = plane * stored + first * shape.sx;
                    for (i, sum) in sums.iter_mut().enumerate() {
                        let step = steps[at + i];
                        *sum = probe.map_or(step, |probe| step + norm[i] * probe[at + i]);
                    }
                }
            },
        )?;
        Ok(bands)
    }
}
