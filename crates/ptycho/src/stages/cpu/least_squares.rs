//! LSQML on the CPU. The waves of a batch are computed by all threads, and by all parts of a run; sums over them are taken in the
//! batch's order.

use zellige_engine::error::Result;
use zellige_engine::large::Large;
use zellige_engine::parallel::{each_task, map_tasks, owned};
use zellige_engine::real::{Real, select};

use super::lanes::{Lanes, Number, Work};
use super::object_sums::ObjectSums;
use super::overlap::{ViewList, Waves};
use super::shift::ViewInputs;
use super::store::{planes, planes_mut};
use super::view::{Row, product, sum};
use super::{CpuStages, FixedData, Pair, Scratch};
use crate::batch::BatchShare;
use crate::model::View;
use crate::physics::{deviation, modulus_factor};
use crate::share::Share;
use crate::stages::{LeastSquares, Noise};

/// Added to moduli and norms in denominators, relative to the largest.
const GUARD: f64 = 1e-10;

/// The residual wave of a view, into `out[K][2][ny][sx]`.
struct Residual<'a, T> {
    fixed: &'a FixedData<T>,
    noise: Noise,
    state: ViewInputs<'a, T>,
    view: View,
    mag: &'a [T],
    valid: f64,
    out: &'a mut [T],
    scratch: &'a mut Scratch<T>,
}

impl<T: Number> Work<T> for Residual<'_, T> {
    type Out = [f64; 3];

    #[inline(always)]
    unsafe fn run<V: Lanes<T = T>>(self) -> [f64; 3] {
        let Self { fixed, noise, state, view, mag, valid, out, scratch } = self;
        let Scratch { workspace, product: waves, wave, one, two, plane: [power, ..], .. } = scratch;
        let (size, stored) = (2 * fixed.shape.plane(), 2 * fixed.shape.stored());
        fixed.products(state.probe, state.object, &view, waves);
        for (from, to) in waves.chunks_exact(size).zip(wave.chunks_exact_mut(size)) {
            fixed.propagate(from, to, two, workspace);
        }
        fixed.intensity(wave, power);
        let likelihood = fixed.photons_of(power, mag);
        let [lines, length] = fixed.detector();
        let scale = Row::splat(fixed.scale() * fixed.scale());
        let error = sum!(lines, length, |i| {
            let (m, p) = (Row::load(&mag[i..]), Row::load(&power[i..]));
            let af = p.sqrt();
            let factor = match noise {
                // Near the solution this is the ratio of moduli to first order.
                Noise::Poisson => {
                    let ratio = Row::HALF * (m * m / (p + Row::ONE) - p / (p + Row::ONE));
                    select(m.lt(Row::ZERO), Row::ZERO, ratio)
                }
                _ => modulus_factor(m, af, Row::ZERO, Row::from_f64(GUARD)) - Row::ONE,
            };
            (factor * scale).store(&mut power[i..]);
            deviation(m, af)
        });
        let mut change = 0.0;
        fixed.apply(wave, power);
        for (k, out) in out.chunks_exact_mut(stored).enumerate() {
            fixed.back(&wave[k * size..(k + 1) * size], one, two, workspace);
            for (to, from) in out.chunks_exact_mut(stored / 2).zip(one.chunks_exact(size / 2)) {
                to.copy_from_slice(&from[..stored / 2]);
            }
            change += sum!(fixed.shape.ny * 2, fixed.shape.sx, |i| {
                let d = Row::load(&out[i..]);
                d * d
            });
        }
        [error / valid.max(1.0), likelihood, change / (fixed.shape.ny * fixed.shape.nx) as f64]
    }
}

/// The step of a view along the directions of object and probe.
struct SolveSteps<'a, T> {
    fixed: &'a FixedData<T>,
    state: ViewInputs<'a, T>,
    direction: ViewInputs<'a, T>,
    both: [bool; 2],
    view: View,
    residual: &'a [T],
    scratch: &'a mut Scratch<T>,
}

impl<T: Number> Work<T> for SolveSteps<'_, T> {
    /// Steps of object and probe.
    type Out = [f64; 2];

    #[inline(always)]
    unsafe fn run<V: Lanes<T = T>>(self) -> [f64; 2] {
        let Self { fixed, state, direction, both, view, residual, scratch } = self;
        let Scratch { product: first, one, .. } = scratch;
        let (size, stored) = (2 * fixed.shape.plane(), 2 * fixed.shape.stored());
        let storage = fixed.storages[view.object as usize];
        // <a, a>, <b, b>, Re<a, b>, Re<a, chi>, Re<b, chi> with a = P dO, b = dP O.
        let mut s = [0.0; 5];
        for p in 0..fixed.modes[0] {
            let probes = [state.probe, direction.probe].map(|probe| fixed.probe(probe, view.probe, p));
            for o in 0..fixed.modes[1] {
                let objects = [state.object, direction.object].map(|object| storage.layer(object, o));
                let k = p * fixed.modes[1] + o;
                let a = &mut first[..size];
                product(fixed, probes[0], objects[1], &storage, &view, a);
                product(fixed, probes[1], objects[0], &storage, &view, one);
                let chi = &residual[k * stored..(k + 1) * stored];
                let pairs: [(&[T], &[T], usize, usize); 5] =
                    [(a, a, size, size), (one, one, size, size), (a, one, size, size), (a, chi, size, stored), (one, chi, size, stored)];
                for (s, (x, y, nx, ny)) in s.iter_mut().zip(pairs) {
                    for plane in 0..2 {
                        let (x, y) = (&x[plane * nx / 2..], &y[plane * ny / 2..]);
                        *s += sum!(fixed.shape.ny, fixed.shape.sx, |i| Row::load(&x[i..]) * Row::load(&y[i..]));
                    }
                }
            }
        }
        solve(s, both)
    }
}

/// Regularisation: factor on the squares of both directions. Without it, two nearly parallel directions, those of a few views on a
/// flat object, would get steps made of rounding; with it each goes half of the way, and others are a thousandth short.
const RIDGE: f64 = 1e-3;

/// Least squares of `chi = x a + y b` from the products, damped by [`RIDGE`].
pub(in crate::stages) fn solve([aa, bb, ab, ac, bc]: [f64; 5], [object, probe]: [bool; 2]) -> [f64; 2] {
    let alone = |norm: f64, dot: f64| if norm > 0.0 { dot / norm } else { 0.0 };
    match (object, probe) {
        (true, true) if aa > 0.0 && bb > 0.0 => {
            let [a, b] = [(1.0 + RIDGE) * aa, (1.0 + RIDGE) * bb];
            let det = a * b - ab * ab;
            [(ac * b - bc * ab) / det, (bc * a - ac * ab) / det]
        }
        (true, true) => [alone(aa, ac), alone(bb, bc)],
        (true, false) => [alone(aa, ac), 0.0],
        (false, _) => [0.0, alone(bb, bc)],
    }
}

impl<T: Number> CpuStages<T> {
    /// One pass over the views in `order`, batch by batch.
    pub(super) fn least_squares_views(&mut self, rule: &LeastSquares, order: &[u32]) -> Result<()> {
        self.exit = Large::default();
        let size = self.fixed.exits() * 2 * self.fixed.shape.stored();
        let most = rule.batch.min(order.len()).max(1);
        let mut residuals = vec![T::ZERO; most * size];
        let mut direction = Pair { probe: vec![T::ZERO; self.state.probe.len()], object: vec![T::ZERO; self.state.object.len()] };
        let mut sums = ObjectSums::zeros(&self.fixed);
        // Sums over a batch, whose waves all parts have.
        let whole = Share::default();
        for batch in order.chunks(most) {
            let Self { fixed, views, shifts, adders, state, errors, .. } = self;
            let fixed = &*fixed;
            let state_now = &*state;
            let noise = rule.noise;
            let list: Vec<[u32; 2]> = batch.iter().enumerate().map(|(slot, j)| [*j, slot as u32]).collect();
            let own = fixed.all_shifted(&fixed.spectra(&state_now.probe), views, shifts, &list);
            let parts = BatchShare::new(&fixed.share, batch);
            let found: Vec<[f64; 3]> = fixed.cpu.install(|| {
                let one = |_, (slot, out): (usize, &mut [T])| {
                    let (j, scratch) = (batch[slot] as usize, &mut *fixed.scratch());
                    let (state, view) = fixed.own_or(state_now, &own, slot, (views[j], shifts[j]), scratch);
                    let (mag, valid) = (fixed.moduli(j), fixed.valid(j)[0]);
                    T::with(fixed.isa, Residual { fixed, noise, state, view, mag, valid, out, scratch })
                };
                map_tasks(owned(parts.own_of(&mut residuals, size)), one)
            });
            for (slot, found) in parts.own().iter().zip(found) {
                errors[batch[*slot as usize] as usize - fixed.own.start] = found;
            }
            parts.tell(&mut residuals, size)?;
            let waves = Waves { views, exit: &residuals, own: fixed.subpixel, share: &whole };
            direction.object.fill(T::ZERO);
            direction.probe.fill(T::ZERO);
            if rule.object {
                sums.clear();
                sums.add(fixed, waves, &list, if fixed.subpixel { &own } else { &state_now.probe }, adders)?;
                fixed.precondition(&mut direction.object, &sums, rule.damping);
            }
            if rule.probe {
                let len = fixed.probe_len();
                for (set, direction) in direction.probe.chunks_exact_mut(len).enumerate() {
                    let (list, object) = (ViewList { own: &list, parts: Vec::new() }, &state_now.object);
                    let sums = if fixed.subpixel {
                        fixed.returned_sums(waves, shifts, &list, set, object, None)?
                    } else {
                        fixed.probe_sums(waves, &[list], set, object)?
                    };
                    // The padding of a row holds the object beside the frame: not the probe's.
                    let rows = sums.iter().flat_map(|sums| fixed.split_band(sums).1.chunks_exact(fixed.shape.sx));
                    let largest = rows.flat_map(|row| &row[..fixed.shape.nx]).fold(0.0, |a: f64, v| a.max(v.to_f64()));
                    let damping = T::from_f64(rule.damping * largest);
                    fixed.each_band(direction, &sums, |re, im, [a, b, norm]| divide(re, im, a, b, norm, damping));
                }
                fixed.supported(&mut direction.probe);
            }
            let both = [rule.object, rule.probe];
            let along = fixed.all_shifted(&fixed.spectra(&direction.probe), views, shifts, &list);
            let mut steps = vec![[0.0; 2]; batch.len()];
            fixed.cpu.install(|| {
                let one = |_, (slot, step): (usize, &mut [[f64; 2]])| {
                    let (j, scratch) = (batch[slot] as usize, &mut *fixed.scratch());
                    let (at, residual) = ((views[j], shifts[j]), &residuals[slot * size..(slot + 1) * size]);
                    let (state, view) = fixed.own_or(state_now, &own, slot, at, scratch);
                    let (direction, _) = fixed.own_or(&direction, &along, slot, at, scratch);
                    step[0] = T::with(fixed.isa, SolveSteps { fixed, state, direction, both, view, residual, scratch });
                };
                each_task(owned(parts.own_of(&mut steps, 1)), one);
            });
            parts.tell(&mut steps, 1)?;
            let mean = |i: usize| rule.step[i] * steps.iter().map(|s| s[i]).sum::<f64>() / steps.len() as f64;
            add(&mut state.object, &direction.object, mean(0));
            add(&mut state.probe, &direction.probe, mean(1));
        }
        Ok(())
    }
}

fn add<T: Number>(to: &mut [T], from: &[T], factor: f64) {
    let factor = T::from_f64(factor);
    to.iter_mut().zip(from).for_each(|(to, from)| *to += factor * *from);
}

/// `to = sum / (norm + damping)`, nothing where nothing is known.
fn divide<T: Number>(re: &mut [T], im: &mut [T], a: &[T], b: &[T], norm: &[T], damping: T) {
    for i in 0..re.len() {
        let down = norm[i] + damping;
        if down > T::ZERO {
            (re[i], im[i]) = (a[i] / down, b[i] / down);
        }
    }
}

impl<T: Number> FixedData<T> {
    /// Objects of the sums, divided by the illumination and a part of its largest value.
    fn precondition(&self, object: &mut [T], sums: &ObjectSums<T>, part: f64) {
        let damping: Vec<T> = sums.largest(self).into_iter().map(|largest| T::from_f64(part * largest)).collect();
        sums.each(self, object, |rows, [a, b, norm]| divide(rows.re, rows.im, a, b, norm, damping[rows.storage]));
    }
}

/// New modes of a wave stack `[..][P][rest]` of one probe: `new_p = sum_q basis[p][q] old_q`, planes alike.
pub(super) fn mix<T: Number>(waves: &mut [T], basis: &[num_complex::Complex<f64>], modes: usize, plane: usize) {
    let size = waves.len() / modes;
    let old = waves.to_vec();
    for p in 0..modes {
        let to = &mut waves[p * size..(p + 1) * size];
        to.fill(T::ZERO);
        for q in 0..modes {
            let (c, s) = (T::from_f64(basis[p * modes + q].re), T::from_f64(basis[p * modes + q].im));
            for (to, from) in to.chunks_exact_mut(2 * plane).zip(old[q * size..(q + 1) * size].chunks_exact(2 * plane)) {
                let ([re, im], [a, b]) = (planes_mut(to), planes(from));
                for i in 0..plane {
                    re[i] += c * a[i] - s * b[i];
                    im[i] += c * b[i] + s * a[i];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_fit_and_parallel_directions_share() {
        // chi = 0.5 a + 0.25 b with a b = 0.3 |a| |b|: a thousandth short, times what the angle adds.
        let [object, probe] = solve([4.0, 9.0, 1.8, 0.5 * 4.0 + 0.25 * 1.8, 0.5 * 1.8 + 0.25 * 9.0], [true; 2]);
        assert!((object - 0.5).abs() < 1e-3 && (probe - 0.25).abs() < 1e-3, "{object} {probe}");
        // One direction twice, once longer: each half of the way, and no less so with rounding of single precision in between.
        for rounding in [-1e-7, 0.0, 1e-7] {
            let [object, probe] = solve([1.0, 4.0, 2.0 * (1.0 + rounding), 0.8, 1.6], [true; 2]);
            // The ridge of 1e-3 makes 5e-5 of 1e-7.
            assert!((object - 0.4).abs() < 4e-4 && (probe - 0.2).abs() < 4e-4, "{object} {probe}");
        }
        assert_eq!(solve([0.0, 4.0, 0.0, 0.0, 2.0], [true; 2]), [0.0, 0.5]);
        assert_eq!(solve([2.0, 4.0, 1.0, 1.0, 2.0], [true, false]), [0.5, 0.0]);
    }
}
