//! ePIE, rPIE and SDR: view by view, or batch by batch. The waves of a batch are computed by all threads, and by all parts of a
//! run; what they do to object and probe is applied view by view in the order of the batch, on every part.

use zellige_engine::error::Result;
use zellige_engine::parallel::{map_tasks, owned};

use super::fourier::{mix, update_to};
use super::greatest::Greatest;
use super::lanes::{Lanes, Number, Work};
use super::shift::ViewInputs;
use super::store::{planes, planes_mut};
use super::{CpuStages, FixedData, Scratch};
use crate::batch::BatchShare;
use crate::model::View;
use crate::physics::pie_weight;
use crate::stages::{Sweep, in_one_part};

/// A view's difference `D = psi - P O`, into `out[K][2][ny][sx]`.
struct Difference<'a, T> {
    fixed: &'a FixedData<T>,
    rule: &'a Sweep,
    probe: &'a [T],
    object: &'a [T],
    view: View,
    mag: &'a [T],
    valid: f64,
    /// Exit wave, empty where none is kept.
    exit: &'a mut [T],
    out: &'a mut [T],
    scratch: &'a mut Scratch<T>,
}

impl<T: Number> Work<T> for Difference<'_, T> {
    type Out = [f64; 3];

    #[inline(always)]
    unsafe fn run<V: Lanes<T = T>>(self) -> [f64; 3] {
        let Self { fixed, rule, probe, object, view, mag, valid, exit, out, scratch } = self;
        let Scratch { workspace, product, wave, one, two, plane: [power, ..], .. } = scratch;
        let shape = fixed.shape;
        let (size, stored) = (2 * shape.plane(), 2 * shape.stored());
        fixed.products(probe, object, &view, product);
        let mut likelihood = 0.0;
        if rule.likelihood || exit.is_empty() {
            for (from, to) in product.chunks_exact(size).zip(wave.chunks_exact_mut(size)) {
                fixed.propagate(from, to, two, workspace);
            }
            likelihood = fixed.photons(wave, power, mag);
        }
        if !exit.is_empty() {
            let parts = [rule.c, 1.0 - rule.c].map(T::from_f64);
            for (k, exit) in exit.chunks_exact(stored).enumerate() {
                let at = k * size..(k + 1) * size;
                mix(stored / 2, parts, &product[at.clone()], exit, one);
                fixed.propagate(one, &mut wave[at], two, workspace);
            }
        }
        let error = fixed.constrain(wave, power, mag, valid, 0.0);
        let mut change = 0.0;
        for (k, out) in out.chunks_exact_mut(stored).enumerate() {
            let at = k * size..(k + 1) * size;
            fixed.back(&wave[at.clone()], one, two, workspace);
            let exit = if exit.is_empty() { &mut [][..] } else { &mut exit[k * stored..(k + 1) * stored] };
            change += update_to(fixed, [rule.a, rule.b], &product[at], one, exit, out);
        }
        [error, likelihood, change / (shape.ny * shape.nx) as f64]
    }
}

/// Update of object and probe by a view's difference.
struct ApplyDifference<'a, T> {
    fixed: &'a FixedData<T>,
    rule: &'a Sweep,
    view: View,
    difference: &'a [T],
    /// Views of the batch: the probe takes their mean.
    batch: usize,
    probe: &'a [T],
    object: &'a mut [T],
    /// Norm of a patch.
    norm: &'a mut [T],
    /// Step of the probe, `[P][2][ny][sx]`, added up over the batch.
    step: &'a mut [T],
    /// Greatest values of whole objects, where the step of the probe goes by them.
    greatest: Option<&'a mut Greatest<T>>,
}

/// `out = sum_m |waves_m|^2` over pixels that rows of `a` and `at` share; gives the largest.
#[inline(always)]
fn add_norm<T: Number>(norm: &mut [T], re: &[T], im: &[T]) {
    let (re, im) = (&re[..norm.len()], &im[..norm.len()]);
    for (x, norm) in norm.iter_mut().enumerate() {
        *norm += re[x] * re[x] + im[x] * im[x];
    }
}

/// The largest of norms.
#[inline(always)]
fn largest<T: Number>(norm: &[T], width: usize, stride: usize) -> T {
    let mut largest = T::ZERO;
    for row in norm.chunks_exact(stride) {
        for value in &row[..width] {
            largest = if *value > largest { *value } else { largest };
        }
    }
    largest
}

/// Turns norms into weights; gives nothing where there is nothing.
#[inline(always)]
fn weights<T: Number>(norm: &mut [T], largest: T, width: usize, stride: usize, step: f64, local: f64) {
    let (step, local) = (T::from_f64(step), T::from_f64(local));
    for row in norm.chunks_exact_mut(stride) {
        for value in &mut row[..width] {
            let weight = pie_weight(step, local, largest, *value);
            *value = if weight.is_finite() { weight } else { T::ZERO };
        }
    }
}

impl<T: Number> ApplyDifference<'_, T> {
    /// `O += w conj(P) D`.
    #[inline(always)]
    fn object(&mut self) {
        let Self { fixed, rule, view, difference, probe, object, norm, .. } = self;
        let (shape, stored) = (fixed.shape, fixed.shape.stored());
        let storage = fixed.storages[view.object as usize];
        norm.fill(T::ZERO);
        for p in 0..fixed.modes[0] {
            let [re, im] = fixed.probe(probe, view.probe, p);
            add_norm(norm, re, im);
        }
        weights(norm, largest(norm, shape.nx, shape.sx), shape.nx, shape.sx, rule.step[0], rule.local[0]);
        for o in 0..fixed.modes[1] {
            let [re, im] = storage.layer_mut(object, o);
            for p in 0..fixed.modes[0] {
                let k = p * fixed.modes[1] + o;
                let d = planes(&difference[2 * k * stored..2 * (k + 1) * stored]);
                let probe = fixed.probe(probe, view.probe, p);
                for y in 0..shape.ny {
                    let (to, at) = (storage.at(view, y), y * shape.sx..y * shape.sx + shape.nx);
                    let rows = [probe[0], probe[1], d[0], d[1]].map(|plane| &plane[at.clone()]);
                    step_row(&mut re[to..to + shape.nx], &mut im[to..to + shape.nx], rows, &norm[at]);
                }
            }
            if let Some(range) = rule.clip {
                for y in 0..shape.ny {
                    let to = storage.at(view, y);
                    super::overlap::clip(&mut re[to..to + shape.nx], &mut im[to..to + shape.nx], range);
                }
            }
        }
    }

    /// `step += w conj(O) D`.
    #[inline(always)]
    fn probe(&mut self) {
        let Self { fixed, rule, view, difference, batch, object, norm, step, greatest, .. } = self;
        let (shape, stored) = (fixed.shape, fixed.shape.stored());
        let storage = fixed.storages[view.object as usize];
        norm.fill(T::ZERO);
        for o in 0..fixed.modes[1] {
            let [re, im] = storage.layer(object, o);
            for y in 0..shape.ny {
                let from = storage.at(view, y);
                add_norm(&mut norm[y * shape.sx..y * shape.sx + shape.nx], &re[from..], &im[from..]);
            }
        }
        let largest = greatest.as_ref().map_or_else(|| largest(norm, shape.nx, shape.sx), |greatest| greatest.of(view.object));
        weights(norm, largest, shape.nx, shape.sx, rule.step[1] / *batch as f64, rule.local[1]);
        for p in 0..fixed.modes[0] {
            let [re, im] = planes_mut(&mut step[2 * p * stored..2 * (p + 1) * stored]);
            for o in 0..fixed.modes[1] {
                let k = p * fixed.modes[1] + o;
                let d = planes(&difference[2 * k * stored..2 * (k + 1) * stored]);
                let layer = storage.layer(object, o);
                for y in 0..shape.ny {
                    let (from, at) = (storage.at(view, y), y * shape.sx..y * shape.sx + shape.nx);
                    let (o0, o1) = (&layer[0][from..from + shape.nx], &layer[1][from..from + shape.nx]);
                    let rows = [o0, o1, &d[0][at.clone()], &d[1][at.clone()]];
                    step_row(&mut re[at.clone()], &mut im[at.clone()], rows, &norm[at]);
                }
            }
        }
    }
}

/// `to += w conj(a) d` along a row.
#[inline(always)]
fn step_row<T: Number>(re: &mut [T], im: &mut [T], rows: [&[T]; 4], w: &[T]) {
    let n = re.len();
    let ([a0, a1, d0, d1], w, im) = (rows.map(|row| &row[..n]), &w[..n], &mut im[..n]);
    for x in 0..n {
        re[x] += w[x] * (a0[x] * d0[x] + a1[x] * d1[x]);
        im[x] += w[x] * (a0[x] * d1[x] - a1[x] * d0[x]);
    }
}

impl<T: Number> Work<T> for ApplyDifference<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes<T = T>>(mut self) {
        if self.rule.object {
            self.object();
            if let Some(greatest) = &mut self.greatest {
                greatest.changed(self.fixed, self.object, &self.view);
            }
        }
        if self.rule.probe {
            self.probe();
        }
    }
}

impl<T: Number> CpuStages<T> {
    /// One pass over the views in `order`.
    pub(super) fn sweep_views(&mut self, rule: &Sweep, order: &[u32]) -> Result<()> {
        if rule.batch <= 1 {
            in_one_part(&self.fixed.share)?;
        }
        let Self { fixed, views, shifts, state, exit, errors, .. } = self;
        let fixed = &*fixed;
        let stored = fixed.exits() * 2 * fixed.shape.stored();
        let keeps = !exit.is_empty();
        let mut differences = vec![T::ZERO; rule.batch.min(order.len()) * stored];
        let mut norm = vec![T::ZERO; fixed.shape.stored()];
        let mut steps = vec![T::ZERO; state.probe.len()];
        // The probe as the views of a batch see it, and the step that one of them asks for there.
        let own = if fixed.subpixel { fixed.probe_len() } else { 0 };
        let mut back = vec![T::ZERO; own];
        let mut greatest = rule.looks_through_objects().then(|| Greatest::new(fixed, &state.object));
        let exits = ExitWaves(exit.as_mut_ptr());
        fixed.cpu.install(|| {
            for batch in order.chunks(rule.batch) {
                let state_now = &*state;
                let list: Vec<[u32; 2]> = batch.iter().enumerate().map(|(slot, j)| [*j, slot as u32]).collect();
                let probes = &fixed.all_shifted(&fixed.spectra(&state_now.probe), views, shifts, &list)[..];
                let parts = BatchShare::new(&fixed.share, batch);
                let work = |slot: usize, out: &mut [T]| {
                    let j = batch[slot] as usize;
                    // SAFETY: `order` holds each view at most once, so that no other work has this wave.
                    let exit = if keeps { unsafe { exits.wave(j - fixed.own.start, stored) } } else { &mut [] };
                    let (mag, valid, scratch) = (fixed.moduli(j), fixed.valid(j)[0], &mut *fixed.scratch());
                    let (ViewInputs { probe, object }, view) = fixed.own_or(state_now, probes, slot, (views[j], shifts[j]), scratch);
                    T::with(fixed.isa, Difference { fixed, rule, probe, object, view, mag, valid, exit, out, scratch })
                };
                let mut to = parts.own_of(&mut differences, stored);
                let found = if let [(slot, out)] = &mut to[..] {
                    vec![work(*slot, out)]
                } else {
                    map_tasks(owned(to), |_, (slot, out)| work(slot, out))
                };
                for (slot, found) in parts.own().iter().zip(found) {
                    errors[batch[*slot as usize] as usize - fixed.own.start] = found;
                }
                parts.tell(&mut differences, stored)?;
                if rule.probe {
                    steps.fill(T::ZERO);
                }
                for (i, j) in batch.iter().enumerate() {
                    let view = views[*j as usize];
                    let set = view.probe as usize * fixed.probe_len()..(view.probe as usize + 1) * fixed.probe_len();
                    let (difference, batch, object, norm) =
                        (&differences[i * stored..(i + 1) * stored], batch.len(), &mut state.object[..], &mut norm[..]);
                    let greatest = greatest.as_mut();
                    if fixed.subpixel {
                        // The step is the usual one of the probe that the view sees; S is unitary, so that it is shifted back as it is.
                        back.fill(T::ZERO);
                        let (probe, view) = (&probes[i * own..(i + 1) * own], View { probe: 0, ..view });
                        T::with(
                            fixed.isa,
                            ApplyDifference { fixed, rule, view, difference, batch, probe, object, norm, step: &mut back, greatest },
                        );
                        if rule.probe {
                            let by = shifts[*j as usize];
                            fixed.moved(&mut back, [-by[0], -by[1]]);
                            steps[set].iter_mut().zip(&back).for_each(|(step, back)| *step += *back);
                        }
                        continue;
                    }
                    let (probe, step) = (&state.probe[..], &mut steps[set]);
                    T::with(fixed.isa, ApplyDifference { fixed, rule, view, difference, batch, probe, object, norm, step, greatest });
                }
                if rule.probe {
                    for (probe, step) in state.probe.iter_mut().zip(&steps) {
                        *probe += *step;
                    }
                    fixed.supported(&mut state.probe);
                }
            }
            Ok(())
        })
    }
}

/// The exit waves of all views, given out one by one.
struct ExitWaves<T>(*mut T);

// SAFETY: waves are given out to one thread each.
unsafe impl<T: Send> Sync for ExitWaves<T> {}

impl<T> ExitWaves<T> {
    /// The wave of view `j`.
    ///
    /// # Safety
    /// There are more than `j` waves of this size, and no one else has this one.
    #[allow(clippy::mut_from_ref)] // that is what it is for
    unsafe fn wave(&self, j: usize, size: usize) -> &mut [T] {
        // SAFETY: the caller's.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(j * size), size) }
    }
}
